/*
 * Proofs of nodes: what is signed is what is taken, and nothing else is (model/proof.h).
 */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/testing.h"
#include "model/proof.h"

static unsigned char key[ST_KEY_BYTES], secret[ST_SECRET_BYTES];

static int set_up(void **state)
{
    (void)state;
    assert_true(sodium_init() >= 0);
    crypto_sign_keypair(key, secret);
    return 0;
}

static st_proof example(void)
{
    st_proof p = {.node = "h17.rack-3", .session = "00112233445566778899aabbccddeeff", .n = 42};

    memset(p.boot, 'b', ST_BOOT_TEXT - 1);
    st_proof_digest("POST", "/v1/agent/status", "{}", 2, p.digest);
    return p;
}

static void what_is_signed_is_taken(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_proof p = example(), got;

    (void)state;
    st_proof_sign(&p, secret, &text);
    assert_true(st_proof_is(text.s));
    assert_true(st_proof_parse(text.s, &got));
    assert_string_equal(got.node, p.node);
    assert_string_equal(got.boot, p.boot);
    assert_string_equal(got.session, p.session);
    assert_int_equal(got.n, 42);
    assert_memory_equal(got.digest, p.digest, sizeof p.digest);
    assert_true(st_proof_good(text.s, key));
}

/* Any other character anywhere is another proof, or none. */
static void every_character_counts(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_proof p = example(), got;

    (void)state;
    st_proof_sign(&p, secret, &text);
    for (size_t i = 0; i < text.n; i++) {
        char was = text.s[i];

        text.s[i] = was == 'a' ? 'c' : 'a';
        assert_false(st_proof_parse(text.s, &got) && st_proof_good(text.s, key));
        text.s[i] = was;
    }
    for (size_t n = 0; n < text.n; n++) {
        char was = text.s[n];

        text.s[n] = '\0';
        assert_false(st_proof_parse(text.s, &got));
        text.s[n] = was;
    }
    key[0] ^= 1;
    assert_false(st_proof_good(text.s, key));
    key[0] ^= 1;
}

static void what_is_no_proof(void **state)
{
    static const char *const texts[] = {
        "",
        "node1.",
        "node1......",
        "stint_00",
        "node1.zz.aa.bb.1.cc.dd",
        "node2.61",
        "node1.61.61.61.1.61.61.",
    };
    st_proof got;

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(texts); i++)
        assert_false(st_proof_parse(texts[i], &got));
}

static void keys_have_one_form(void **state)
{
    unsigned char got[ST_KEY_BYTES];
    char text[ST_KEY_TEXT + 2];

    (void)state;
    sodium_bin2hex(text, ST_KEY_TEXT, key, sizeof key);
    assert_true(st_key_parse(text, got));
    assert_memory_equal(got, key, sizeof key);
    text[3] = 'G';
    assert_false(st_key_parse(text, got));
    assert_false(st_key_parse("", got));
    memset(text, '0', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_false(st_key_parse(text, got));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_signed_is_taken),
        cmocka_unit_test(every_character_counts),
        cmocka_unit_test(what_is_no_proof),
        cmocka_unit_test(keys_have_one_form),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
