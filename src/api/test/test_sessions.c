/*
 * Sessions of browsers and login codes: how long they live, whose they are, and that none is found once it is over.
 */
#include <string.h>

#include "api/sessions.h"
#include "base/testing.h"

#define HOUR (INT64_C(3600) * 1000)

static int gone_of[4];

static void gone(void *ctx, int32_t counted)
{
    (void)ctx;
    gone_of[counted]++;
}

static st_identity person(int64_t token, const char *user)
{
    st_identity who = {.token = token, .role = ST_ROLE_MEMBER};

    strncpy(who.user, user, sizeof who.user - 1);
    return who;
}

static st_sessions *begin(void)
{
    memset(gone_of, 0, sizeof gone_of);
    return st_sessions_new(gone, NULL);
}

static void test_whose(void **state)
{
    ST_CLEANUP(st_sessions_freep) st_sessions *all = begin();
    st_identity ada = person(1, "ada"), grace = person(2, "grace"), who;
    char a[ST_LOGIN_TEXT], g[ST_LOGIN_TEXT], other[ST_LOGIN_TEXT];
    uint64_t na, ng;

    (void)state;
    na = st_session_begin(all, &ada, 1, 0, a);
    ng = st_session_begin(all, &grace, 2, 0, g);
    assert_true(na != 0 && ng != 0 && na != ng);
    assert_true(st_session_find(all, a, 1, &who) == na);
    assert_string_equal(who.user, "ada");
    assert_true(st_session_find(all, g, 1, &who) == ng);
    assert_string_equal(who.user, "grace");
    memcpy(other, a, sizeof other);
    other[5] = other[5] == 'A' ? 'B' : 'A';
    assert_true(st_session_find(all, other, 1, &who) == 0);
    assert_true(st_session_find(all, "", 1, &who) == 0);
    st_session_end(all, na);
    assert_true(st_session_find(all, a, 1, &who) == 0);
    assert_false(st_session_lives(all, na, 1));
    assert_true(st_session_lives(all, ng, 1));
    st_session_end(all, na); /* a second time is nothing */
    assert_int_equal(gone_of[1], 1);
    assert_int_equal(gone_of[2], 0);
}

/* An hour without use, and twelve in any case. */
static void test_how_long(void **state)
{
    ST_CLEANUP(st_sessions_freep) st_sessions *all = begin();
    st_identity ada = person(1, "ada"), who;
    char idle[ST_LOGIN_TEXT], busy[ST_LOGIN_TEXT];
    uint64_t n = st_session_begin(all, &ada, 1, 0, idle),
             m = st_session_begin(all, &ada, 2, 0, busy);
    int64_t now;

    (void)state;
    for (now = HOUR / 2; now < 12 * HOUR; now += HOUR / 2) {
        assert_true(st_session_find(all, busy, now, &who) == m);
        assert_int_equal(st_session_lives(all, n, now), now < HOUR);
    }
    assert_true(st_session_find(all, idle, now, &who) == 0);
    assert_true(st_session_find(all, busy, 12 * HOUR, &who) == 0);
    st_sessions_sweep(all, 12 * HOUR - 1);
    assert_int_equal(gone_of[1], 1);
    assert_int_equal(gone_of[2], 0);
    st_sessions_sweep(all, 12 * HOUR);
    assert_int_equal(gone_of[2], 1);
}

static void test_codes(void **state)
{
    ST_CLEANUP(st_sessions_freep) st_sessions *all = begin();
    st_identity ada = person(1, "ada"), grace = person(2, "grace"), who;
    char code[ST_LOGIN_TEXT], late[ST_LOGIN_TEXT], more[ST_LOGIN_TEXT], cookie[ST_LOGIN_TEXT];

    (void)state;
    st_code_make(all, &ada, 0, code);
    st_code_make(all, &ada, 0, late);
    st_session_begin(all, &ada, 1, 0, cookie);
    assert_false(
        st_code_take(all, cookie, 1, &who)); /* a cookie is no code, nor the other way round */
    assert_true(st_session_find(all, code, 1, &who) == 0);
    assert_true(st_code_take(all, code, ST_CODE_MS - 1, &who));
    assert_string_equal(who.user, "ada");
    assert_false(st_code_take(all, code, ST_CODE_MS - 1, &who));
    assert_false(st_code_take(all, late, ST_CODE_MS, &who));

    /* One token's codes push out its own. */
    st_code_make(all, &grace, 0, code);
    for (int i = 0; i < ST_CODES_MAX * 2; i++)
        st_code_make(all, &ada, 0, more);
    assert_true(st_code_take(all, code, 1, &who));
    assert_string_equal(who.user, "grace");
    assert_true(st_code_take(all, more, 1, &who));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whose),
        cmocka_unit_test(test_how_long),
        cmocka_unit_test(test_codes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
