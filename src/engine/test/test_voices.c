/*
 * Who speaks for a node: restarts, copies, replays (engine/voices.h).
 */
#include <stdio.h>
#include <string.h>

#include "base/testing.h"
#include "engine/voices.h"

#define SILENCE 6000

static const char *boot(char c)
{
    static char texts[26][ST_BOOT_TEXT];
    char *text = texts[c - 'a'];

    memset(text, c, ST_BOOT_TEXT - 1);
    return text;
}

static void first_voice_is_believed(void **state)
{
    st_voices v = {0};

    (void)state;
    assert_int_equal(st_voices_hear(&v, boot('a'), "s1", 1, SILENCE, 10000), ST_STALE);
    st_voices_open(&v, boot('a'), "s1", SILENCE, 10000);
    assert_int_equal(st_voices_hear(&v, boot('a'), "s1", 1, SILENCE, 10000), ST_HEARD);
    assert_int_equal(st_voices_hear(&v, boot('a'), "s0", 2, SILENCE, 10000), ST_STALE);
    assert_int_equal(st_voices_hear(&v, boot('b'), "s1", 2, SILENCE, 10000), ST_STALE);
    assert_true(st_voices_believes(&v, boot('a')));
    assert_false(st_voices_believes(&v, boot('b')));
    assert_false(st_voices_believes(&v, ""));
}

static void numbers_count_once(void **state)
{
    st_voices v = {0};

    (void)state;
    st_voices_open(&v, boot('a'), "s1", SILENCE, 10000);
#define SAY(n) st_voices_hear(&v, boot('a'), "s1", n, SILENCE, 10000)
    assert_int_equal(SAY(0), ST_REPLAY);
    assert_int_equal(SAY(3), ST_HEARD);
    assert_int_equal(SAY(1), ST_HEARD);
    assert_int_equal(SAY(1), ST_REPLAY);
    assert_int_equal(SAY(3), ST_REPLAY);
    assert_int_equal(SAY(2), ST_HEARD);
    assert_int_equal(SAY(66), ST_HEARD);
    assert_int_equal(SAY(2), ST_REPLAY);
    assert_int_equal(SAY(4), ST_HEARD);
    assert_int_equal(SAY(500), ST_HEARD);
    assert_int_equal(SAY(436), ST_REPLAY);
    assert_int_equal(SAY(437), ST_HEARD);
    assert_int_equal(SAY(UINT64_MAX), ST_HEARD);
    assert_int_equal(SAY(UINT64_MAX), ST_REPLAY);
    assert_int_equal(SAY(501), ST_REPLAY);
#undef SAY
}

static void a_restart_waits_until_the_old_voice_is_silent(void **state)
{
    st_voices v = {0};

    (void)state;
    st_voices_open(&v, boot('a'), "s1", SILENCE, 10000);
    st_voices_hear(&v, boot('a'), "s1", 1, SILENCE, 12000);
    st_voices_open(&v, boot('b'), "s2", SILENCE, 13000);
    assert_int_equal(st_voices_hear(&v, boot('b'), "s2", 1, SILENCE, 13001), ST_WAITING);
    /* A late message of the old one is no sign of life. */
    assert_int_equal(st_voices_hear(&v, boot('a'), "s1", 2, SILENCE, 17000), ST_STALE);
    assert_false(st_voices_tick(&v, SILENCE, 17999));
    assert_true(st_voices_tick(&v, SILENCE, 18000));
    assert_int_equal(st_voices_hear(&v, boot('b'), "s2", 2, SILENCE, 18000), ST_HEARD);
    assert_false(v.two);
    /* After a long silence nobody waits. */
    st_voices_open(&v, boot('c'), "s3", SILENCE, 30000);
    assert_int_equal(st_voices_hear(&v, boot('c'), "s3", 1, SILENCE, 30000), ST_HEARD);
    /* The one before last comes back: it was alive all the time. */
    st_voices_open(&v, boot('a'), "s4", SILENCE, 40000);
    assert_true(v.two);
    assert_true(st_voices_believes(&v, boot('c')));
    assert_int_equal(st_voices_hear(&v, boot('a'), "s4", 1, SILENCE, 40000), ST_WAITING);
}

static void a_copy_is_found_out(void **state)
{
    st_voices v = {0};

    (void)state;
    st_voices_open(&v, boot('a'), "s1", SILENCE, 10000);
    st_voices_open(&v, boot('b'), "s2", SILENCE, 11000);
    assert_false(v.two);
    st_voices_open(&v, boot('a'), "s3", SILENCE, 12000);
    assert_true(v.two);
    assert_true(st_voices_believes(&v, boot('a')));
    assert_int_equal(st_voices_hear(&v, boot('a'), "s3", 1, SILENCE, 12000), ST_HEARD);
    assert_int_equal(st_voices_hear(&v, boot('b'), "s2", 1, SILENCE, 99000), ST_WAITING);
    /* Silence does not promote anybody while it is frozen, nor does a third. */
    assert_false(st_voices_tick(&v, SILENCE, 99000));
    st_voices_open(&v, boot('c'), "s4", SILENCE, 99000);
    assert_int_equal(st_voices_hear(&v, boot('c'), "s4", 1, SILENCE, 99000), ST_WAITING);
    /* Thawed, the believed one goes on; the other is a newcomer again. */
    st_voices_hear(&v, boot('a'), "s3", 2, SILENCE, 100000);
    st_voices_thaw(&v);
    assert_int_equal(st_voices_hear(&v, boot('a'), "s3", 3, SILENCE, 100001), ST_HEARD);
    assert_int_equal(st_voices_hear(&v, boot('c'), "s4", 2, SILENCE, 100001), ST_STALE);
}

static void frozen_is_remembered(void **state)
{
    st_voices v = {0};

    (void)state;
    st_voices_freeze(&v, boot('a'));
    st_voices_open(&v, boot('b'), "s1", SILENCE, 10000);
    assert_int_equal(st_voices_hear(&v, boot('b'), "s1", 1, SILENCE, 10000), ST_WAITING);
    st_voices_open(&v, boot('a'), "s2", SILENCE, 10000);
    assert_int_equal(st_voices_hear(&v, boot('a'), "s2", 1, SILENCE, 10000), ST_HEARD);
    st_voices_forget(&v);
    assert_int_equal(st_voices_hear(&v, boot('a'), "s2", 2, SILENCE, 10000), ST_STALE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_voice_is_believed),
        cmocka_unit_test(numbers_count_once),
        cmocka_unit_test(a_restart_waits_until_the_old_voice_is_silent),
        cmocka_unit_test(a_copy_is_found_out),
        cmocka_unit_test(frozen_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
