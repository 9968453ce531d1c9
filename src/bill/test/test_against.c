/* A bill against an older one: it goes on from that, or it is said what does not. */
#include <string.h>

#include "base/testing.h"
#include "bill/test/shop.h"

static st_verdict against(const shop *s, const st_strbuf *new, const st_strbuf *old)
{
    st_verdict v;

    st_billfile_against(new->s, new->n, old->s, old->n, s->public, &v);
    return v;
}

static void assert_good(st_verdict v)
{
    if (!v.good)
        print_error("%s\n", v.what);
    assert_true(v.good);
    assert_non_null(strstr(v.what, "on from what the older bill saw"));
}

static void assert_bad(st_verdict v, const char *text)
{
    if (v.good || !strstr(v.what, text))
        print_error("%s\n", v.what);
    assert_false(v.good);
    assert_non_null(strstr(v.what, text));
}

static void it_goes_on(void **state)
{
    ST_CLEANUP(st_strbuf_done)
    st_strbuf early = {0}, later = {0}, final = {0}, next = {0}, after = {0};
    shop s;

    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        st_strbuf_clear(&early), st_strbuf_clear(&later), st_strbuf_clear(&final);
        st_strbuf_clear(&next), st_strbuf_clear(&after);
        shop_init(&s, seed);
        shop_days(&s, 3);
        shop_bill(&s, "acme", NULL, &early);
        shop_days(&s, 9);
        shop_bill(&s, "acme", NULL, &later);
        shop_days(&s, 19);
        shop_close(&s);
        shop_days(&s, 2);
        shop_bill(&s, "acme", "2026-10", &final); /* made two days into November */
        shop_days(&s, 2);
        shop_bill(&s, "acme", NULL, &next);
        shop_bill(&s, "vision", NULL, &after);
        assert_good(against(&s, &early, &early));
        assert_good(against(&s, &later, &early));
        assert_good(against(&s, &final, &later));
        assert_good(against(&s, &next, &final));
        assert_good(against(&s, &after, &final)); /* one below, against the whole */
        /* Where what was agreed about bookings since is in the file, that may be enough to say it. */
        st_verdict far = against(&s, &next, &early);
        if (!far.good)
            assert_bad(far, "of a month in between");
        assert_bad(against(&s, &final, &after), "made after this one");
        assert_bad(against(&s, &next, &after), "no book of \"acme\"");
        shop_done(&s);
    }
}

/* The same key, and a history that parted: a backup was restored, and what came after it is another. Both are right by
 * themselves. */
static void a_fork_is_found(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf kept = {0}, other = {0}, shorter = {0};
    st_verdict v;
    shop a, b;

    (void)state;
    shop_init(&a, 7);
    shop_init(&b, 7);
    shop_days(&a, 5);
    shop_days(&b, 5);
    shop_credit(&a, "vision", 1000000, "an outage");
    shop_bill(&a, "acme", NULL, &kept);
    shop_days(&b, 1);
    shop_bill(&b, "vision", NULL, &shorter);
    shop_days(&b, 20);
    shop_bill(&b, "acme", NULL, &other);
    memcpy(b.public, a.public, sizeof b.public);
    st_billfile_verify(other.s, other.n, a.public, &v);
    assert_true(v.good);
    assert_bad(against(&a, &other, &kept), "the book of \"vision\" does not go on");
    shop_done(&a);
    shop_done(&b);
}

static void damage_is_told(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf old = {0}, new = {0};
    shop s;

    (void)state;
    shop_init(&s, 9);
    shop_days(&s, 3);
    shop_bill(&s, "acme", NULL, &old);
    shop_days(&s, 3);
    shop_bill(&s, "acme", NULL, &new);
    for (size_t i = 0; i < old.n; i += 97) {
        old.s[i] ^= 1;
        assert_bad(against(&s, &new, &old), "the older bill is not right");
        old.s[i] ^= 1;
    }
    new.s[100] ^= 1;
    assert_false(against(&s, &new, &old).good);
    shop_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_on),
        cmocka_unit_test(a_fork_is_found),
        cmocka_unit_test(damage_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
