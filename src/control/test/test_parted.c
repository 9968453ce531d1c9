/*
 * A log that another version wrote: it is played, and where this version decides otherwise that is said and brought in line.
 * Nobody's end is taken back, nothing in the books changes, and what follows is as on any other day.
 */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "control/test/money.h"
#include "log/log.h"
#include "store/test/tamper.h"

/* All of the node, for so long at most. */
static uint64_t whole(world *w, int64_t limit_ms)
{
    st_submit_item item = {.spec = {.name = "train",
                                    .account = "team",
                                    .user = "ann",
                                    .pool = -1,
                                    .tasks = 1,
                                    .limit_ms = limit_ms,
                                    .shape = {.gpus = 8, .types = 1, .cpu_m = 1000}},
                           .doc = "{}"};
    st_cmd_submit cmd = {.who = owner, .items = &item, .n = 1};
    st_err err = {0};

    st_cmd_submit_init(&cmd);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
    return item.id;
}

typedef struct first {
    st_strbuf data;
} first;

/* The first row as a version wrote it that goes by another order. */
static int reorder(void *ctx, const st_log_row *row, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    first *f = ctx;
    size_t at = 0;
    st_err why = {0};

    (void)err;
    while (at < row->data.n && !st_notes_here(row->data.p, row->data.n, at)) {
        st_event ev;

        if (st_event_decode(row->data.p, row->data.n, &at, arena, &ev, &why) < 0)
            fail_msg("%s", why.msg);
        if (ev.kind == ST_EV_POLICY)
            ev.u.policy.order = ST_ORDER_SHORTEST;
        st_event_encode(&ev, &f->data);
    }
    st_strbuf_addn(&f->data, (const char *)row->data.p + at, row->data.n - at);
    return 1;
}

static void of_another_version(world *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf sql = {0};
    st_store *store = st_control_store(w->ctl);
    first f = {0};
    st_err err = {0};

    assert_true(st_store_log_read(store, 1, reorder, &f, &err) >= 0);
    st_strbuf_add(&sql, "UPDATE log SET data = x'");
    for (size_t i = 0; i < f.data.n; i++)
        st_strbuf_addf(&sql, "%02x", (unsigned char)f.data.s[i]);
    st_strbuf_add(&sql, "' WHERE seq = 1");
    tamper_exec(store, "UPDATE log SET version = '0.0.9'");
    tamper_exec(store, st_strbuf_str(&sql));
    tamper_exec(store, "DELETE FROM snap");
    st_strbuf_done(&f.data);
}

static int add_book(void *ctx, const st_book_row *row, st_err *err)
{
    (void)err;
    st_strbuf_addf(ctx, "%lld %s\n", (long long)row->n, row->data);
    return 0;
}

static void books(world *w, st_strbuf *out)
{
    ST_CLEANUP(st_store_closep) st_store *reader = NULL;
    st_err err = {0};

    assert_ok(st_store_open_reader(st_control_store(w->ctl), &reader, &err));
    assert_ok(st_store_book_read(reader, 1, INT64_MAX, add_book, out, &err));
}

static const char *state_of(world *w, uint64_t id)
{
    static char state[32];
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_store_closep) st_store *reader = NULL;
    st_job_row row;
    st_err err = {0};

    assert_ok(st_store_open_reader(st_control_store(w->ctl), &reader, &err));
    assert_ok(st_store_job_get(reader, (int64_t)id, arena, &row, &err));
    snprintf(state, sizeof state, "%s", row.state);
    return state;
}

static void finding(void *ctx, const char *sentence)
{
    (void)ctx;
    print_error("%s\n", sentence);
}

static void decisions_of_this_version_stand(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf was = {0}, is = {0};
    uint64_t a, b, c, d;
    int64_t n = 0;
    st_err err = {0};

    make_fleet(w);
    a = whole(w, 3600000);
    let_pass(w, 1000);
    b = whole(w, 7200000);
    let_pass(w, 1000);
    c = whole(w, 600000);
    let_pass(w, 1000);
    end_job(w, a, 0); /* the older starts; by the other order the shorter would have */
    assert_string_equal(state_of(w, b), "running");
    let_pass(w, 60000);
    end_job(w, b, 0); /* which this version has not even started then */
    d = whole(w, 7200000);
    let_pass(w, 1000);
    nudge(w);
    assert_string_equal(state_of(w, c), "running");
    st_control_stop(w->ctl);
    books(w, &was);
    of_another_version(w);
    restart(w);
    assert_int_equal(w->parted, 1);
    nudge(w);
    books(w, &is);
    assert_true(strncmp(st_strbuf_str(&was), st_strbuf_str(&is), was.n) == 0);
    assert_string_equal(state_of(w, a), "done"); /* what was told stands */
    assert_string_equal(state_of(w, b), "done");
    assert_string_equal(state_of(w, c), "running");
    assert_string_equal(state_of(w, d), "pending");

    /* As on any other day: it ends, the next one starts, and is paid for. */
    let_pass(w, 30000);
    end_job(w, c, 0);
    assert_string_equal(state_of(w, c), "done");
    assert_string_equal(state_of(w, d), "running");
    let_pass(w, 30000);
    end_job(w, d, 0);
    restart(w);
    assert_int_equal(w->parted, 1); /* once and for all */
    st_control_stop(w->ctl);
    assert_ok(st_control_check(st_control_store(w->ctl), NULL, finding, NULL, &n, &err));
    assert_int_equal(n, 0);
}

/* Rows of this version that lead elsewhere are damage, whatever others may do. */
static void our_own_rows_must_lead_where_they_led(void **state)
{
    world *w = *state;
    st_err err = {0};

    make_fleet(w);
    whole(w, 3600000);
    st_control_stop(w->ctl);
    tamper_exec(st_control_store(w->ctl), "UPDATE log SET hash = hash + 1 WHERE seq = 4");
    tamper_exec(st_control_store(w->ctl), "DELETE FROM snap");
    st_control_free(ST_TAKE(w->ctl));
    assert_fails(open_control(w, &err), ST_ECORRUPT, "does not lead to the state");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(decisions_of_this_version_stand, begin, end),
        cmocka_unit_test_setup_teardown(our_own_rows_must_lead_where_they_led, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
