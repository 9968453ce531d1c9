/*
 * What tenants may have of stintd: counted at every account above, refused whole, in words for the reader.
 */
#include "base/testing.h"
#include "state/allowance.h"

static st_allowance *make(void)
{
    st_allowance_limits organisation = st_allowance_nothing(), cluster = st_allowance_nothing();
    st_allowance *al;

    organisation.v[ST_AL_PENDING] = 10;
    organisation.v[ST_AL_REQUESTS] = 5;
    cluster.v[ST_AL_PENDING] = 15;
    al = st_allowance_new(&organisation, &cluster);
    st_allowance_add(al, "acme", "");
    st_allowance_add(al, "vision", "acme");
    st_allowance_add(al, "robots", "acme");
    st_allowance_add(al, "rival", "");
    st_allowance_add(al, "rival", ""); /* once is enough */
    return al;
}

static int charge(st_allowance *al, const char *account, int64_t n, const char *reader, st_err *err)
{
    *err = (st_err){0};
    return st_allowance_charge(al, account, ST_AL_PENDING, n, reader, err);
}

static int64_t used(st_allowance *al, const char *account)
{
    st_allowance_row rows[ST_AL_COUNT];

    assert_true(st_allowance_read(al, account, "", rows));
    return rows[ST_AL_PENDING].used;
}

static int64_t limit(st_allowance *al, const char *account, const char *reader)
{
    st_allowance_row rows[ST_AL_COUNT];

    assert_true(st_allowance_read(al, account, reader, rows));
    return rows[ST_AL_PENDING].limit;
}

static void limit_pending(st_allowance *al, const char *account, int64_t n)
{
    st_allowance_limits limits = st_allowance_nothing();

    limits.v[ST_AL_PENDING] = n;
    st_allowance_set(al, account, &limits);
}

static void counts_at_every_ancestor(void **state)
{
    st_allowance *al = make();
    st_err err;

    (void)state;
    assert_ok(charge(al, "vision", 6, "vision", &err));
    assert_ok(charge(al, "robots", 4, "robots", &err));
    assert_int_equal(used(al, "acme"), 10);
    assert_int_equal(used(al, ""), 10);
    /* A sibling has used what the parent has; nothing is left of what was tried. */
    assert_fails(charge(al, "robots", 1, "acme", &err), ST_EALLOWANCE, "account acme");
    assert_non_null(strstr(err.msg, "10 of 10"));
    assert_int_equal(used(al, "robots"), 4);
    assert_int_equal(used(al, ""), 10);
    /* What another organisation uses is nobody's business but the cluster's. */
    assert_ok(charge(al, "rival", 5, "rival", &err));
    assert_fails(charge(al, "rival", 1, "rival", &err), ST_EALLOWANCE, "the cluster has no more");
    st_allowance_release(al, "vision", ST_AL_PENDING, 6);
    assert_ok(charge(al, "rival", 1, "rival", &err));
    assert_int_equal(used(al, "acme"), 4);
    st_allowance_clear(al, ST_AL_PENDING);
    assert_int_equal(used(al, "") + used(al, "acme") + used(al, "rival"), 0);
    st_allowance_free(al);
}

/* What a removed account has is given back where it was charged, whoever has its name meanwhile. */
static void removed_accounts(void **state)
{
    st_allowance *al = make();
    int32_t old = st_allowance_number(al, "vision");
    st_err err = {0};

    (void)state;
    assert_ok(st_allowance_charge_as(al, old, ST_AL_PENDING, 6, "vision", &err));
    st_allowance_remove(al, "vision");
    assert_int_equal(st_allowance_number(al, "vision"), -1);
    assert_int_equal(used(al, "acme"), 6);
    st_allowance_add(al, "vision", "rival");
    assert_true(st_allowance_number(al, "vision") > old);
    assert_int_equal(used(al, "vision"), 0);
    assert_ok(charge(al, "vision", 5, "vision", &err));
    assert_int_equal(st_allowance_left_as(al, old, ST_AL_PENDING), 4);
    /* It may still have more, as long as those above it may; a refusal has no name to tell. */
    assert_fails(st_allowance_charge_as(al, old, ST_AL_PENDING, 5, "acme", &err), ST_EALLOWANCE,
                 "account acme");
    limit_pending(al, "acme", ST_AL_NONE);
    st_allowance_put_as(al, old, ST_AL_PENDING, -6);
    assert_int_equal(used(al, "acme"), 0);
    assert_int_equal(used(al, "vision"), 5);
    assert_int_equal(used(al, "rival"), 5);
    assert_int_equal(used(al, ""), 5);
    st_allowance_put_as(al, -1, ST_AL_PENDING, 5); /* nobody's */
    assert_int_equal(used(al, ""), 5);
    st_allowance_free(al);
}

/* Accounts above the reader are neither named nor counted out. */
static void words_for_the_reader(void **state)
{
    st_allowance *al = make();
    st_err err;

    (void)state;
    limit_pending(al, "vision", 3);
    assert_fails(charge(al, "vision", 4, "vision", &err), ST_EALLOWANCE, "quota pending: 0 of 3");
    assert_ok(charge(al, "robots", 9, "robots", &err));
    assert_fails(charge(al, "vision", 2, "vision", &err), ST_EALLOWANCE, "an account above yours");
    assert_null(strstr(err.msg, "acme"));
    assert_null(strstr(err.msg, "10"));
    assert_int_equal(limit(al, "vision", "vision"), 3);
    assert_int_equal(limit(al, "robots", "robots"),
                     ST_AL_NONE); /* its parent's is not its to know */
    assert_int_equal(limit(al, "robots", "acme"), 10);
    assert_int_equal(limit(al, "acme", "acme"), 10); /* the configuration's */
    st_allowance_free(al);
}

static void never_more_than_above(void **state)
{
    st_allowance *al = make();
    st_allowance_limits limits = st_allowance_nothing();
    st_err err = {0};

    (void)state;
    limits.v[ST_AL_PENDING] = 11;
    assert_fails(st_allowance_fits(al, "vision", &limits, "acme", &err), ST_ERANGE,
                 "more than account acme above it has (10)");
    assert_fails(st_allowance_fits(al, "vision", &limits, "vision", &err), ST_ERANGE,
                 "an account above yours");
    assert_ok(st_allowance_fits(al, "acme", &limits, "", &err)); /* an owner gives what it likes */
    limit_pending(al, "acme", 12);
    assert_ok(st_allowance_fits(al, "vision", &limits, "acme", &err));
    st_allowance_set(al, "vision", &limits);
    /* The parent's is lowered later: the child has what is left there all the same. */
    limit_pending(al, "acme", 2);
    assert_fails(charge(al, "vision", 3, "acme", &err), ST_EALLOWANCE, "0 of 2");
    limit_pending(al, "acme", 0);
    assert_fails(charge(al, "vision", 1, "acme", &err), ST_EALLOWANCE, "0 of 0");
    st_allowance_free(al);
}

static void unknown_accounts_are_nobodys(void **state)
{
    st_allowance *al = make();
    st_allowance_row rows[ST_AL_COUNT];
    st_err err;

    (void)state;
    assert_ok(charge(al, "gone", 1000, "gone", &err));
    assert_int_equal(used(al, ""), 0);
    assert_false(st_allowance_read(al, "gone", "", rows));
    st_allowance_remove(al, "rival");
    assert_false(st_allowance_read(al, "rival", "", rows));
    assert_ok(charge(al, "rival", 11, "rival", &err));
    st_allowance_add(al, "rival", ""); /* the name is free again, and begins at nothing */
    assert_int_equal(used(al, "rival"), 0);
    /* A number too many given back is not held against anybody. */
    st_allowance_release(al, "rival", ST_AL_PENDING, 5);
    assert_int_equal(used(al, "rival"), 0);
    assert_fails(charge(al, "rival", INT64_MAX, "rival", &err), ST_EALLOWANCE, "0 of 10");
    st_allowance_free(al);
}

static void requests_are_a_rate(void **state)
{
    st_allowance *al = make();
    int64_t wait = 0;
    st_err err = {0};

    (void)state;
    for (int i = 0; i < 10; i++) /* two seconds' worth, by any account below */
        assert_ok(st_allowance_request(al, i % 2 ? "vision" : "robots", 1000, &wait, &err));
    assert_fails(st_allowance_request(al, "vision", 1000, &wait, &err), ST_EALLOWANCE,
                 "above yours");
    assert_int_equal(wait, 200);
    assert_fails(st_allowance_request(al, "acme", 1100, &wait, &err), ST_EALLOWANCE,
                 "account acme");
    assert_ok(st_allowance_request(al, "rival", 1100, &wait, &err));
    assert_ok(st_allowance_request(al, "acme", 1200, &wait, &err));
    assert_fails(st_allowance_request(al, "acme", 1200, &wait, &err), ST_EALLOWANCE, "requests");
    /* A clock that stands still or goes back gives nothing. */
    assert_fails(st_allowance_request(al, "acme", 900, &wait, &err), ST_EALLOWANCE, "requests");
    for (int i = 0; i < 10; i++)
        assert_ok(st_allowance_request(al, "acme", 90000, &wait, &err));
    assert_fails(st_allowance_request(al, "acme", 90000, &wait, &err), ST_EALLOWANCE, "requests");
    st_allowance_free(al);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_at_every_ancestor), cmocka_unit_test(removed_accounts),
        cmocka_unit_test(words_for_the_reader),     cmocka_unit_test(never_more_than_above),
        cmocka_unit_test(requests_are_a_rate),      cmocka_unit_test(unknown_accounts_are_nobodys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
