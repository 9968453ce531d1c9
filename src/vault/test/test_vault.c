/*
 * Keys, sealed text, documents and secrets: what opens, and what must not.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/testing.h"
#include "vault/test/named.h"

static const st_vault_place place = {"secret", 7, "hf", 3};

/* ---- sealing ------------------------------------------------------------------------------------ */

static void seals_and_opens(void **state)
{
    ST_CLEANUP(st_vault_freep) st_vault *v = st_vault_new_fleeting();
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    ST_CLEANUP(st_wipe) st_strbuf back = {0};
    st_err err;

    (void)state;
    st_vault_seal(v, &place, "tok\0en", 6, &text);
    assert_null(strstr(text.s, "tok"));
    assert_true(st_vault_fresh(v, text.s));
    assert_ok(st_vault_unseal(v, &place, text.s, &back, &err));
    assert_int_equal(back.n, 6);
    assert_memory_equal(back.s, "tok\0en", 6);
}

static void opens_at_its_place_alone(void **state)
{
    ST_CLEANUP(st_vault_freep) st_vault *v = st_vault_new_fleeting();
    ST_CLEANUP(st_vault_freep) st_vault *other = st_vault_new_fleeting();
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    ST_CLEANUP(st_wipe) st_strbuf back = {0};
    const st_vault_place elsewhere[] = {{"env", 7, "hf", 3},
                                        {"secret", 8, "hf", 3},
                                        {"secret", 7, "hf2", 3},
                                        {"secret", 7, "hf", 2},
                                        {"secret", -1, "hf", 3}};
    st_err err;

    (void)state;
    st_vault_seal(v, &place, "value", 5, &text);
    for (size_t i = 0; i < ST_ARRAY_LEN(elsewhere); i++)
        assert_fails(st_vault_unseal(v, &elsewhere[i], text.s, &back, &err), ST_ECORRUPT,
                     "belongs elsewhere");
    assert_fails(st_vault_unseal(other, &place, text.s, &back, &err), ST_ECORRUPT, "its key");
    assert_int_equal(back.n, 0);
}

static void damage_is_noticed(void **state)
{
    ST_CLEANUP(st_vault_freep) st_vault *v = st_vault_new_fleeting();
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    ST_CLEANUP(st_wipe) st_strbuf back = {0};
    st_err err;

    (void)state;
    st_vault_seal(v, &place, "a value of some length", 22, &text);
    for (size_t cut = 0; cut < text.n; cut++) {
        ST_CLEANUP(st_freep) char *part = st_xstrndup(text.s, cut);

        assert_int_equal(st_vault_unseal(v, &place, part, &back, &err), -ST_ECORRUPT);
    }
    for (size_t at = 0; at < text.n; at++) {
        ST_CLEANUP(st_freep) char *bad = st_xstrndup(text.s, text.n);

        bad[at] = bad[at] == 'A' ? 'B' : 'A';
        assert_int_equal(st_vault_unseal(v, &place, bad, &back, &err), -ST_ECORRUPT);
    }
    assert_int_equal(back.n, 0);
}

/* ---- the file of keys ----------------------------------------------------------------------------- */

static void key_file(void **state)
{
    char dir[] = "/tmp/stint-vault-XXXXXX", path[80], id[ST_VAULT_KEY_ID], id2[ST_VAULT_KEY_ID];
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    ST_CLEANUP(st_wipe) st_strbuf back = {0};
    st_vault *v = NULL;
    struct stat st;
    st_err err;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/secrets.key", dir);
    assert_fails(st_vault_open(path, false, &v, &err), ST_ENOENT, "not there");
    assert_ok(st_vault_open(path, true, &v, &err));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    st_vault_key(v, id);
    st_vault_seal(v, &place, "old", 3, &text);

    /* Renewed: a reader of the file opens the old, seals with the new. */
    assert_ok(st_vault_renew(v, &err));
    st_vault_free(ST_TAKE(v));
    assert_ok(st_vault_open(path, false, &v, &err));
    st_vault_key(v, id2);
    assert_string_not_equal(id, id2);
    assert_true(st_vault_has_key(v, id));
    assert_false(st_vault_fresh(v, text.s));
    assert_ok(st_vault_unseal(v, &place, text.s, &back, &err));

    /* Retired: this process still opens it, the next one does not. */
    assert_ok(st_vault_retire(v, &err));
    assert_ok(st_vault_unseal(v, &place, text.s, &back, &err));
    st_vault_free(ST_TAKE(v));
    assert_ok(st_vault_open(path, false, &v, &err));
    assert_false(st_vault_has_key(v, id));
    assert_fails(st_vault_unseal(v, &place, text.s, &back, &err), ST_ECORRUPT, "its key");
    st_vault_free(ST_TAKE(v));

    assert_int_equal(chmod(path, 0640), 0);
    assert_fails(st_vault_open(path, true, &v, &err), ST_EPERM, "chmod 600");
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(truncate(path, 40), 0);
    assert_fails(st_vault_open(path, true, &v, &err), ST_ECORRUPT, "no file of keys");
    unlink(path);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(st_vault_open(path, true, &v, &err), -ST_EIO);
    unlink(path);
    rmdir(dir);
}

/* ---- documents ------------------------------------------------------------------------------------- */

static const char *const job_doc =
    "{\"name\":\"train\",\"cpu\":0.1,\"env\":{\"TOKEN\":\"s3cret\",\"N\":7},"
    "\"script\":\"curl -H key\",\"labels\":{\"a\":\"b\"}}";
static const st_vault_who alice = {7, "alice"}, bob = {7, "bob"}, boss = {0, "boss"};

static void documents(void **state)
{
    ST_CLEANUP(st_vault_freep) st_vault *v = st_vault_new_fleeting();
    ST_CLEANUP(st_strbuf_done) st_strbuf kept = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_err err;

    (void)state;
    assert_ok(st_vault_doc_seal(v, &alice, &boss, job_doc, &kept, &err));
    assert_null(strstr(kept.s, "s3cret"));
    assert_null(strstr(kept.s, "curl"));
    assert_non_null(strstr(kept.s, "\"TOKEN\":null"));

    assert_ok(st_vault_doc_open(v, &alice, kept.s, ST_VIEW_NAMES, &out, &err));
    assert_string_equal(out.s,
                        "{\"name\":\"train\",\"cpu\":0.1,\"env\":{\"TOKEN\":null,\"N\":null},"
                        "\"script\":null,\"labels\":{\"a\":\"b\"}}");
    st_strbuf_clear(&out);
    assert_ok(st_vault_doc_open(v, &alice, kept.s, ST_VIEW_WORK, &out, &err));
    assert_non_null(strstr(out.s, "curl -H key"));
    assert_null(strstr(out.s, "s3cret"));
    st_strbuf_clear(&out);
    assert_ok(st_vault_doc_open(v, &alice, kept.s, ST_VIEW_ALL, &out, &err));
    assert_string_equal(out.s, job_doc);

    st_strbuf_clear(&out);
    assert_fails(st_vault_doc_open(v, &bob, kept.s, ST_VIEW_ALL, &out, &err), ST_ECORRUPT,
                 "belongs elsewhere");
    assert_int_equal(out.n, 0);
    assert_true(st_vault_doc_by(v, &alice, kept.s, &boss));
    assert_false(st_vault_doc_by(v, &alice, kept.s, &bob));
}

static void plain_documents(void **state)
{
    ST_CLEANUP(st_vault_freep) st_vault *v = st_vault_new_fleeting();
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf again = {0};
    bool changed;
    st_err err;

    (void)state;
    assert_ok(st_vault_doc_seal(v, &alice, &alice, "{\"gpus\":1}", &out, &err));
    assert_string_equal(out.s, "{\"gpus\":1}");
    st_strbuf_clear(&out);
    /* One of an older store: hidden even before it is sealed. */
    assert_ok(st_vault_doc_open(v, &alice, job_doc, ST_VIEW_NAMES, &out, &err));
    assert_null(strstr(out.s, "s3cret"));
    assert_null(strstr(out.s, "curl"));
    st_strbuf_clear(&out);
    assert_ok(st_vault_doc_renew(v, &alice, NULL, job_doc, false, &out, &changed, &err));
    assert_true(changed);
    assert_null(strstr(out.s, "s3cret"));
    assert_ok(st_vault_doc_renew(v, &alice, NULL, out.s, false, &again, &changed, &err));
    assert_false(changed);
    assert_ok(st_vault_renew(v, &err));
    assert_ok(st_vault_doc_renew(v, &alice, NULL, out.s, false, &again, &changed, &err));
    assert_true(changed);
    st_strbuf_clear(&out);
    assert_ok(st_vault_doc_open(v, &alice, again.s, ST_VIEW_ALL, &out, &err));
    assert_string_equal(out.s, job_doc);
}

/* ---- the earlier form ---------------------------------------------------------------------------------- */

static int64_t serial_of(void *ctx, const char *name)
{
    assert_string_equal(name, ctx);
    return 0;
}

static void sealed_for_a_name(void **state)
{
    static const st_vault_place of_alice = {"job", 7, "alice", 1};
    const st_vault_was was = {"acme", serial_of, (char[]){""}}, other = {"beta", serial_of, NULL};
    ST_CLEANUP(st_vault_freep) st_vault *v = st_vault_new_fleeting();
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0}, next = {0}, out = {0};
    bool changed;
    st_err err;

    (void)state;
    st_strbuf_add(&doc, "{\"sealed\":\"");
    seal_named(v, "acme", &of_alice, "{\"by\":[\"\",\"boss\"],\"env\":{\"K\":\"s3cret\"}}", &doc);
    st_strbuf_add(&doc, "\",\"env\":{\"K\":null}}");
    /* It opens for nobody, and is sealed anew only where names are looked up, and for that name. */
    assert_fails(st_vault_doc_open(v, &alice, doc.s, ST_VIEW_ALL, &out, &err), ST_ECORRUPT, "");
    assert_fails(st_vault_doc_renew(v, &alice, NULL, doc.s, false, &next, &changed, &err),
                 ST_ECORRUPT, "");
    assert_fails(st_vault_doc_renew(v, &alice, &other, doc.s, false, &next, &changed, &err),
                 ST_ECORRUPT, "belongs elsewhere");
    assert_int_equal(next.n, 0);
    assert_ok(st_vault_doc_renew(v, &alice, &was, doc.s, false, &next, &changed, &err));
    assert_true(changed);
    assert_ok(st_vault_doc_open(v, &alice, next.s, ST_VIEW_ALL, &out, &err));
    assert_string_equal(out.s, "{\"env\":{\"K\":\"s3cret\"}}");
    assert_true(st_vault_doc_by(v, &alice, next.s, &boss));
    assert_fails(st_vault_doc_open(v, &(st_vault_who){8, "alice"}, next.s, ST_VIEW_ALL, &out, &err),
                 ST_ECORRUPT, "belongs elsewhere");
}

/* Text that looks like the sealed member, inside a value. */
static void look_alikes(void **state)
{
    static const char *const doc =
        "{\"labels\":{\"sealed\":\"v1.0\",\"a\":\"x,\\\"sealed\\\":\\\"v1.00\"},\"name\":"
        "\",\\\"sealed\\\":\\\"\"}";
    ST_CLEANUP(st_vault_freep) st_vault *v = st_vault_new_fleeting();
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_err err;

    (void)state;
    assert_ok(st_vault_doc_open(v, &alice, doc, ST_VIEW_ALL, &out, &err));
    assert_string_equal(out.s, doc);
}

/* The pieces of an array share what is sealed. */
static void heads(void **state)
{
    static const char *const head = "{\"script\":\"x\",\"env\":{\"K\":\"s3cret\"",
                             *const tail = ",\"STINT_ARRAY_INDEX\":\"4\"},\"name\":\"a.4\"}";
    ST_CLEANUP(st_vault_freep) st_vault *v = st_vault_new_fleeting();
    ST_CLEANUP(st_strbuf_done) st_strbuf kept = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf next = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    bool changed;
    st_err err;

    (void)state;
    assert_ok(st_vault_head_seal(v, &alice, &alice, "{\"gpus\":1,\"env\":{", &kept, &err));
    assert_string_equal(kept.s, "{\"gpus\":1,\"env\":{");
    st_strbuf_clear(&kept);
    assert_ok(st_vault_head_seal(v, &alice, &alice, head, &kept, &err));
    assert_null(strstr(kept.s, "s3cret"));
    assert_ok(st_vault_renew(v, &err));
    assert_ok(st_vault_doc_renew(v, &alice, NULL, kept.s, true, &next, &changed, &err));
    assert_true(changed);
    assert_ok(st_vault_doc_renew(v, &alice, NULL, tail, false, &out, &changed, &err));
    assert_false(changed);
    st_strbuf_add(&next, tail);
    assert_ok(st_vault_doc_open(v, &alice, next.s, ST_VIEW_NAMES, &out, &err));
    assert_string_equal(out.s, "{\"script\":null,\"env\":{\"K\":null,\"STINT_ARRAY_INDEX\":\"4\"},"
                               "\"name\":\"a.4\"}");
    st_strbuf_clear(&out);
    assert_ok(st_vault_doc_open(v, &alice, next.s, ST_VIEW_ALL, &out, &err));
    assert_string_equal(out.s, "{\"script\":\"x\",\"env\":{\"K\":\"s3cret\","
                               "\"STINT_ARRAY_INDEX\":\"4\"},\"name\":\"a.4\"}");
}

/* ---- secrets --------------------------------------------------------------------------------------- */

static void put(st_vault *v, const char *account, const char *name, const char *value, bool below)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf sealed = {0};
    const st_vault_place at = {"secret", 7, name, 1};

    st_vault_seal(v, &at, value, strlen(value), &sealed);
    const st_secret s = {.account = account,
                         .name = name,
                         .owner = 7,
                         .version = 1,
                         .by = "adm",
                         .by_account = account,
                         .below = below,
                         .sealed = sealed.s};
    st_vault_put(v, &s);
}

static void nearest_account_wins(void **state)
{
    static const char *const team[] = {"vision", "acme", NULL};
    static const char *const rival[] = {"beta", NULL};
    ST_CLEANUP(st_vault_freep) st_vault *v = st_vault_new_fleeting();
    ST_CLEANUP(st_wipe) st_strbuf value = {0};
    st_err err;

    (void)state;
    put(v, "acme", "hf", "org", true);
    put(v, "acme", "mine", "org-only", false);
    assert_ok(st_vault_secret(v, team, "hf", &value, &err));
    assert_string_equal(value.s, "org");
    assert_fails(st_vault_secret(v, team, "mine", &value, &err), ST_ENOENT, "no secret");
    assert_fails(st_vault_secret(v, rival, "hf", &value, &err), ST_ENOENT, "no secret");
    put(v, "vision", "hf", "team", false);
    st_strbuf_clear(&value);
    assert_ok(st_vault_secret(v, team, "hf", &value, &err));
    assert_string_equal(value.s, "team");
    assert_int_equal(st_vault_count(v, "acme"), 2);
    st_vault_remove(v, "vision", "hf");
    st_vault_remove(v, "acme", "hf");
    assert_fails(st_vault_secret(v, team, "hf", &value, &err), ST_ENOENT, "no secret");
    assert_int_equal(st_vault_count(v, "vision"), 0);
}

/* A row of one account in the place of another's. */
static void swapped_rows(void **state)
{
    static const char *const rival[] = {"beta", NULL};
    ST_CLEANUP(st_vault_freep) st_vault *v = st_vault_new_fleeting();
    ST_CLEANUP(st_strbuf_done) st_strbuf sealed = {0};
    ST_CLEANUP(st_wipe) st_strbuf value = {0};
    const st_vault_place at = {"secret", 7, "hf", 1};
    st_err err;

    (void)state;
    st_vault_seal(v, &at, "org", 3, &sealed);
    const st_secret s = {.account = "beta",
                         .name = "hf",
                         .owner = 8,
                         .version = 1,
                         .by = "x",
                         .by_account = "beta",
                         .sealed = sealed.s};
    st_vault_put(v, &s);
    assert_fails(st_vault_secret(v, rival, "hf", &value, &err), ST_ECORRUPT, "belongs elsewhere");
    assert_int_equal(value.n, 0);
}

static void delivery(void **state)
{
    static const char *const own[] = {"acme", NULL};
    ST_CLEANUP(st_vault_freep) st_vault *v = st_vault_new_fleeting();
    ST_CLEANUP(st_wipe) st_strbuf out = {0};
    st_err err;

    (void)state;
    put(v, "acme", "hf", "abc", false);
    put(v, "acme", "bin", "\xff\xfe", false);
    assert_ok(st_vault_deliver(v, own, "{\"gpus\":1}", &out, &err));
    assert_int_equal(out.n, 0);
    assert_ok(st_vault_deliver(
        v, own, "{\"secrets\":{\"A\":\"hf\",\"B\":{\"secret\":\"hf\",\"as\":\"env\"}}}", &out,
        &err));
    assert_string_equal(out.s, ",\"secrets\":[{\"name\":\"A\",\"env\":false,\"value\":\"YWJj\"},"
                               "{\"name\":\"B\",\"env\":true,\"value\":\"YWJj\"}]");
    assert_fails(st_vault_check_job(v, own, "{\"secrets\":{\"A\":\"none\"}}", &err), ST_ENOENT,
                 "no secret \"none\"");
    assert_fails(st_vault_check_job(
                     v, own, "{\"secrets\":{\"B\":{\"secret\":\"bin\",\"as\":\"env\"}}}", &err),
                 ST_EINVAL, "is not text");
    assert_fails(st_vault_check_job(v, own, "{\"secrets\":{\"../x\":\"hf\"}}", &err), ST_EINVAL,
                 "make no sense");
}

static void names(void **state)
{
    (void)state;
    assert_true(st_plain_name("hf", 64));
    assert_true(st_plain_name("_a.b-c", 64));
    assert_false(st_plain_name("", 64));
    assert_false(st_plain_name(".", 64));
    assert_false(st_plain_name("..", 64));
    assert_false(st_plain_name("a/b", 64));
    assert_false(st_plain_name("-a", 64));
    assert_false(st_plain_name("a\n", 64));
    assert_true(st_variable_name("HF_TOKEN", 64));
    assert_false(st_variable_name("1A", 64));
    assert_false(st_variable_name("A.B", 64));
    assert_false(st_variable_name("A=B", 64));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seals_and_opens),
        cmocka_unit_test(opens_at_its_place_alone),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(key_file),
        cmocka_unit_test(documents),
        cmocka_unit_test(plain_documents),
        cmocka_unit_test(sealed_for_a_name),
        cmocka_unit_test(look_alikes),
        cmocka_unit_test(heads),
        cmocka_unit_test(nearest_account_wins),
        cmocka_unit_test(swapped_rows),
        cmocka_unit_test(delivery),
        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
