/*
 * Events of the past in files: over several segments, page by page, what is old goes, and a reading is bounded.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/events_log.h"
#include "base/strbuf.h"
#include "base/testing.h"

#define LONG 60000 /* bytes of a text */
#define MANY 500   /* of those: more than a reading looks at */

typedef struct world {
    char dir[64];
    st_events_log *log;
    char *text;
} world;

static int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);

    strcpy(w->dir, "/tmp/events-test-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    w->log = st_events_log_new(w->dir, 1000, 7);
    w->text = malloc(LONG + 1);
    memset(w->text, 'x', LONG);
    memcpy(w->text, "{\"a\":\"", 6);
    memcpy(w->text + LONG - 2, "\"}", 3);
    *state = w;
    return 0;
}

static size_t segments(const world *w, bool take_away)
{
    DIR *d = opendir(w->dir);
    const struct dirent *e;
    size_t n = 0;

    while ((e = readdir(d)))
        if (strstr(e->d_name, ".events")) {
            n++;
            if (take_away)
                unlinkat(dirfd(d), e->d_name, 0);
        }
    closedir(d);
    return n;
}

static int tear_down(void **state)
{
    world *w = *state;

    st_events_log_free(w->log);
    segments(w, true);
    rmdir(w->dir);
    free(w->text);
    free(w);
    return 0;
}

static void add(world *w, int from, int to)
{
    for (int i = from; i < to; i++)
        st_events_log_add(
            w->log,
            &(st_logged_event){
                .seq = (uint64_t)i, .at_ms = i, .kind = "start", .account = "a", .text = w->text});
}

typedef struct page {
    int64_t next, n, most; /* next: the number that the next one must have */
} page;

static int see(void *ctx, const st_logged_event *e, int64_t position)
{
    page *p = ctx;

    assert_true(position > 0);
    assert_int_equal(e->seq, p->next);
    assert_int_equal(strlen(e->text), LONG);
    assert_int_equal(e->run, 7);
    p->next--;
    return ++p->n == p->most;
}

/* All of them, in pages; how many readings it took. */
static int read_all(const world *w, int64_t newest, int64_t oldest, int64_t most)
{
    page p = {.next = newest};
    int64_t position = 0;
    int readings = 0;
    st_err err;

    do {
        p.n = 0;
        p.most = most;
        assert_int_equal(st_events_log_read(w->log, 0, &position, see, &p, &err), 0);
        readings++;
    } while (position != 0);
    assert_int_equal(p.next, oldest - 1);
    return readings;
}

static void over_segments(void **state)
{
    world *w = *state;

    add(w, 1, MANY + 1);
    assert_true(segments(w, false) > 3);
    assert_true(read_all(w, MANY, 1, 7) > MANY / 7);
    /* Without a limit a reading ends by itself, and goes on where it was. */
    assert_in_range(read_all(w, MANY, 1, 1 << 30), MANY * LONG / ST_EVENTS_SCAN, 4);
}

static void up_to_a_moment(void **state)
{
    world *w = *state;
    page p = {.next = 100, .most = 1 << 30};
    int64_t position = 0;
    st_err err;

    add(w, 1, 101);
    assert_int_equal(st_events_log_read(w->log, 81, &position, see, &p, &err), 0);
    assert_int_equal(p.n, 20);
    assert_int_equal(position, 0);
}

static void what_is_old_goes(void **state)
{
    world *w = *state;
    struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    char path[128];
    size_t before;

    add(w, 1, 201);
    before = segments(w, false);
    snprintf(path, sizeof path, "%s/000000000001.events", w->dir);
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    add(w, 1000000, 1000100); /* two segments more, by then */
    assert_int_equal(access(path, F_OK), -1);
    assert_in_range(segments(w, false), before - 1, before + 2);
}

/* A process that ended in a line costs that line. */
static void cut_off(void **state)
{
    world *w = *state;
    char path[128];
    page p = {.next = 3, .most = 1};
    int64_t position = 0;
    st_err err;

    add(w, 1, 3);
    snprintf(path, sizeof path, "%s/000000000001.events", w->dir);
    assert_int_equal(truncate(path, LONG + 200), 0);
    st_events_log_free(w->log);
    w->log = st_events_log_new(w->dir, 0, 7);
    add(w, 3, 4);
    assert_int_equal(st_events_log_read(w->log, 0, &position, see, &p, &err), 0);
    p.next = 1; /* 2 was cut off */
    p.most = 1 << 30;
    assert_int_equal(st_events_log_read(w->log, 0, &position, see, &p, &err), 0);
    assert_int_equal(p.next, 0);
}

static void add_for(world *w, int32_t org, int64_t at_ms, int n)
{
    for (int i = 0; i < n; i++)
        st_events_log_add(w->log, &(st_logged_event){.seq = 1,
                                                     .at_ms = at_ms,
                                                     .org = org,
                                                     .kind = "start",
                                                     .account = org == 1 ? "hog" : "other",
                                                     .text = w->text});
}

typedef struct tally {
    int hog, other;
} tally;

static int tell(void *ctx, const st_logged_event *e, int64_t position)
{
    tally *t = ctx;

    (void)position;
    *(strcmp(e->account, "hog") == 0 ? &t->hog : &t->other) += 1;
    return 0;
}

static tally count_all(const world *w)
{
    tally t = {0};
    int64_t position = 0;
    st_err err;

    do
        assert_int_equal(st_events_log_read(w->log, 0, &position, tell, &t, &err), 0);
    while (position != 0);
    return t;
}

/* One that makes events without end costs others none of theirs. */
static void nobody_pushes_others_out(void **state)
{
    const int most = ST_EVENTS_BURST / LONG;
    const int64_t day = INT64_C(86400) * 1000;
    world *w = *state;
    tally t;

    add_for(w, 2, 1000, 3);
    for (int i = 0; i < 10; i++) {
        add_for(w, 1, 1000 + i, most / 2);
        add_for(w, 2, 1000 + i, 1);
    }
    t = count_all(w);
    assert_in_range(t.hog, most - 2, most);
    assert_int_equal(t.other, 13);
    add_for(w, 1, 2000 + day / 2, most);
    t = count_all(w);
    assert_in_range(t.hog, most + most / 2 - 4, most + most / 2 + 4);
    assert_int_equal(t.other, 13);
}

static void no_position(void **state)
{
    world *w = *state;
    page p = {.next = 2, .most = 1};
    int64_t position = INT64_C(5) << 23;
    st_err err;

    add(w, 1, 3);
    assert_int_equal(st_events_log_read(w->log, 0, &position, see, &p, &err), -ST_EINVAL);
    position = (INT64_C(1) << 23) + 17; /* in the middle of a line */
    assert_int_equal(st_events_log_read(w->log, 0, &position, see, &p, &err), -ST_EINVAL);
    assert_int_equal(p.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(over_segments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(up_to_a_moment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_old_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cut_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_pushes_others_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_position, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
