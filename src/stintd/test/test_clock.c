/*
 * The steady clock, given readings of a wall clock that jumps, drifts and goes back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/testing.h"
#include "stintd/clock.h"

#define MS INT64_C(1000)
#define S  INT64_C(1000000)

static void it_follows_a_good_clock(void **state)
{
    st_steady s;
    int64_t jump;
    (void)state;

    st_steady_init(&s, 5000 * S, 70 * S);
    for (int64_t t = 0; t < 1000 * S; t += 333 * MS) {
        assert_int_equal(st_steady_read(&s, 5000 * S + t, 70 * S + t, &jump), 5000 * S + t);
        assert_int_equal(jump, 0);
    }
}

/* A wall clock that is too fast by a thousandth is kept up with. */
static void drift_is_followed(void **state)
{
    st_steady s;
    int64_t jump, at = 0, wall = 0;
    (void)state;

    st_steady_init(&s, 0, 0);
    for (int64_t t = 0; t < 3600 * S; t += 1777) {
        wall = t + t / 1000;
        at = st_steady_read(&s, wall, t, &jump);
        assert_int_equal(jump, 0);
    }
    assert_in_range(wall - at, 0, 10);
}

static void expect_steady(int64_t jump_by, int64_t every, int64_t *ret_behind)
{
    st_steady s;
    int64_t jump, last = 100 * S, seen = 0, wall = 0;

    st_steady_init(&s, last, 0);
    for (int64_t t = every; t <= 100 * S; t += every) {
        wall = 100 * S + t + (t > 10 * S ? jump_by : 0);
        int64_t at = st_steady_read(&s, wall, t, &jump);

        /* Between two readings: what passed, give or take half a percent. */
        assert_in_range(at - last, every - every / 200 - 1, every + every / 200 + 1);
        last = at;
        seen += jump != 0;
        if (jump != 0)
            assert_in_range(jump < 0 ? jump - jump_by + 10 : jump_by - jump + 10, 0, 20);
    }
    assert_int_equal(seen, 1); /* said once */
    *ret_behind = wall - last;
}

static void jumps_make_no_time(void **state)
{
    static const int64_t every[] = {100, 7 * MS, 1 * S};
    (void)state;

    for (size_t i = 0; i < ST_ARRAY_LEN(every); i++) {
        int64_t behind;

        expect_steady(3600 * S, every[i], &behind);
        assert_int_equal(behind, 3600 * S);
        expect_steady(-3600 * S, every[i], &behind);
        assert_int_equal(-behind, 3600 * S);
        expect_steady(5 * S, every[i], &behind); /* near: it is followed, slowly */
        assert_in_range(behind, 5 * S - 460 * MS, 5 * S - 440 * MS);
    }
}

/* The store knows of a later moment than the wall clock: time goes on from there, more slowly. */
static void it_does_not_begin_before_the_store(void **state)
{
    st_steady s;
    int64_t jump, last;
    (void)state;

    st_steady_init(&s, 1000 * S, 0);
    st_steady_go_on(&s, 900 * S, 3600 * S);
    assert_int_equal(st_steady_read(&s, 1000 * S, 0, &jump), 1000 * S);
    st_steady_go_on(&s, 1001 * S, 3600 * S);
    assert_int_equal(last = st_steady_read(&s, 1000 * S, 0, &jump), 1001 * S);
    assert_int_equal(jump, 0);
    for (int64_t t = 0; t <= 199 * S; t += S, last = s.at)
        assert_true(st_steady_read(&s, 1000 * S + t, t, &jump) >= last);
    assert_int_equal(st_steady_read(&s, 1200 * S, 200 * S, &jump), 1200 * S);
}

/* Thirteen months ahead at a start, and for 200 hours: the store's last moment and the steady clock are what counts, to the
 * microsecond, until the owner accepts it. */
static void a_clock_far_ahead_is_not_believed(void **state)
{
    const int64_t ahead = INT64_C(34000000) * S;
    st_steady s;
    int64_t jump;
    (void)state;

    st_steady_init(&s, 1000 * S + ahead, 0);
    st_steady_go_on(&s, 1000 * S, 86400 * S);
    assert_true(st_steady_doubts(&s));
    for (int64_t t = 0; t <= 720000 * S; t += 600 * S)
        assert_int_equal(st_steady_read(&s, 1000 * S + ahead + t, t, &jump), 1000 * S + t);
    assert_true(st_steady_accept(&s));
    assert_false(st_steady_doubts(&s));
    assert_int_equal(st_steady_read(&s, 1000 * S + ahead + 720000 * S, 720000 * S, &jump),
                     1000 * S + ahead + 720000 * S);

    /* Put right while it runs, it is behind: time does not go back, whatever anybody accepts. */
    st_steady_init(&s, 1000 * S + ahead, 0);
    assert_int_equal(st_steady_read(&s, 1000 * S, S, &jump), 1001 * S + ahead);
    assert_true(st_steady_doubts(&s));
    assert_false(st_steady_accept(&s));
    assert_int_equal(st_steady_read(&s, 1001 * S, 2 * S, &jump), 1002 * S + ahead);

    /* A stop of some hours is none of this. */
    st_steady_init(&s, 80000 * S, 0);
    st_steady_go_on(&s, 1000 * S, 86400 * S);
    assert_int_equal(st_steady_read(&s, 80000 * S, 0, &jump), 80000 * S);
}

/* A steady clock that stands still, or is read by threads out of order. */
static void nothing_goes_back(void **state)
{
    st_steady s;
    int64_t jump;
    (void)state;

    st_steady_init(&s, 10 * S, 10 * S);
    assert_int_equal(st_steady_read(&s, 11 * S, 11 * S, &jump), 11 * S);
    assert_int_equal(st_steady_read(&s, 11 * S, 10 * S, &jump), 11 * S);
    assert_int_equal(st_steady_read(&s, 0, 11 * S, &jump), 11 * S);
    assert_int_equal(jump, -11 * S);
}

/* Between two starts uptime is the witness: what it says has passed, whatever the wall clock says. */
static void uptime_is_a_witness(void **state)
{
    const int64_t hour = 3600 * S, last = 5000 * S;
    static const struct {
        int64_t wall; /* since the store's last moment, 600 s of uptime ago */
        bool doubted;
    } rows[] = {
        {600 * S, false},  {605 * S, false},
        {589 * S, true}, /* 10 s and a thousandth of the pause may be wrong */
        {4200 * S, true},  {-3000 * S, true},
        {90000 * S, true},
    };
    (void)state;

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        st_steady s;
        int64_t jump, at;

        st_steady_init(&s, last + rows[i].wall, 70 * S + 600 * S);
        st_steady_resume(&s, last, last - 70 * S);
        assert_int_equal(st_steady_doubts(&s), rows[i].doubted);
        at = st_steady_read(&s, last + rows[i].wall, 670 * S, &jump);
        assert_int_equal(at, last + (rows[i].doubted ? 600 * S : rows[i].wall));
        assert_int_equal(jump, 0);
    }
    /* It does not begin before the store, though uptime would. */
    st_steady s;

    st_steady_init(&s, last + hour, 10 * S);
    st_steady_resume(&s, last, 0);
    assert_int_equal(s.at, last);
}

/* The real clock: another run of the machine has no witness, its own has. */
static void a_reboot_has_no_witness(void **state)
{
    st_clock *clock = st_clock_new(NULL, NULL);
    const int64_t now = st_clock_ms(clock), hour = INT64_C(3600) * 1000;
    const char *boot;
    int64_t ahead;
    bool doubted;
    (void)state;

    if (!st_clock_mark_ms(clock, &boot, &ahead)) {
        st_clock_free(clock);
        skip();
    }
    st_clock_go_on(clock, now - 2 * hour, 24 * hour, "another", ahead - hour);
    st_clock_off_ms(clock, &doubted);
    assert_false(doubted);
    st_clock_go_on(clock, now - 2 * hour, 24 * hour, boot, ahead - hour);
    assert_in_range(st_clock_off_ms(clock, &doubted), hour - 1000, hour + 1000);
    assert_true(doubted);
    st_clock_free(clock);
}

/* The kernel writes it with dashes, systemd without: it is the same run. */
static void a_boot_has_one_name(void **state)
{
    static const char told[] = "0123456789abcdef0123456789abcdef";
    char real[ST_CLOCK_BOOT], path[] = "/tmp/stint-boot-XXXXXX", ret[ST_CLOCK_BOOT];
    int fd = mkstemp(path);
    (void)state;

    assert_true(fd >= 0);
    assert_int_equal(dprintf(fd, "01234567-89ab-cdef-0123-456789abcdef\n"), 37);
    close(fd);
    st_boot_read(path, ret);
    assert_string_equal(ret, told);
    unlink(path);
    setenv("STINT_BOOT_ID", told, 1);
    st_boot_read(path, ret);
    assert_string_equal(ret, told);
    st_boot_read("/proc/sys/kernel/random/boot_id", real);
    assert_string_not_equal(real, told); /* the kernel's word goes first */
    unsetenv("STINT_BOOT_ID");
    st_boot_read(path, ret);
    assert_string_equal(ret, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_follows_a_good_clock),
        cmocka_unit_test(a_clock_far_ahead_is_not_believed),
        cmocka_unit_test(drift_is_followed),
        cmocka_unit_test(jumps_make_no_time),
        cmocka_unit_test(it_does_not_begin_before_the_store),
        cmocka_unit_test(nothing_goes_back),
        cmocka_unit_test(uptime_is_a_witness),
        cmocka_unit_test(a_reboot_has_no_witness),
        cmocka_unit_test(a_boot_has_one_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
