/*
 * The books over restarts, a store that fails, a clock that is set back, stores without books; and the files of bills that prove
 * themselves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/test/money.h"
#include "log/log.h"
#include "store/test/tamper.h"

static int begin_at_noon(void **state)
{
    world *w;

    begin_at(state, NOON);
    w = *state;
    w->limit_ms = ST_TIME_NEVER;
    make_fleet(w);
    return 0;
}

/* ---- restarts and a store that fails ---------------------------------------------------------------------- */

static void a_restart_changes_nothing(void **state)
{
    world *w = *state;
    uint64_t ids[6];
    int64_t before;

    publish(w, PRICES);
    for (int i = 0; i < 6; i++) {
        ids[i] = start_job(w, "{}");
        let_pass(w, 777);
    }
    end_job(w, ids[0], 0);
    before = total_of(w, "team", NULL);
    for (int i = 1; i < 6; i++) {
        restart(w);
        assert_int_equal(total_of(w, "team", NULL), before);
        let_pass(w, 1234);
        end_job(w, ids[i], 0);
        before = total_of(w, "team", NULL);
    }
    expect_sound(w);
}

static void a_failing_store_books_nothing_twice(void **state)
{
    world *w = *state;
    st_err err = {0};
    seen book;
    uint64_t id, next;

    publish(w, PRICES);
    id = start_job(w, "{}");
    let_pass(w, 10 * S);
    const st_report report = {.kind = ST_REPORT_ENDED, .job = id, .stay = 1};
    faulty_arm(w->vfs, FAULT_SYNC, 1);
    st_control_report(w->ctl, &report);
    assert_int_equal(submit(w, NULL, "{}", &next, &err), -ST_EDOWN);
    faulty_arm(w->vfs, FAULT_NONE, 0);
    let_pass(w, 20 * S);
    for (int i = 0; i < 200 && submit(w, NULL, "{}", &next, &err) < 0; i++)
        let_pass(w, S);
    assert_int_equal(err.code, 0);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    assert_int_equal(count(&book, ST_ENTRY_USAGE), 1);
    assert_int_equal(nth(&book, ST_ENTRY_USAGE, 0)->cut, ST_CUT_ENDED);
    forget(&book);
    expect_sound(w);
}

/* A store from before there was money: the books begin when it is opened, with what is running. */
static void books_begin_where_they_were_not(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf saved = {0};
    st_store *store;
    st_core *core = NULL;
    seen book;
    st_err err = {0};
    uint64_t id = start_job(w, "{}");

    let_pass(w, 100 * S);
    nudge(w);
    st_control_stop(w->ctl);
    store = st_control_store(w->ctl);
    assert_ok(st_control_replay(store, &core, NULL, &err));
    st_core_save(core, &saved);
    int64_t seq = 0;
    assert_ok(st_store_log_last(store, &seq, &err));
    const st_snap_row snap = {
        .seq = seq, .at_ms = w->now, .version = ST_LOG_VERSION, .data = {saved.s, saved.n}};
    tamper_exec(store, "DELETE FROM book; DELETE FROM checkpoints; "
                       "DELETE FROM snap; DELETE FROM meta WHERE k LIKE 'billing%'");
    assert_kept(store, st_store_snap_put(store, &snap, INT64_MAX, &err));
    st_core_free(core);
    restart(w);
    nudge(w);
    let_pass(w, 50 * S);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    assert_int_equal(nth(&book, ST_ENTRY_ACCOUNT, 0)->seq, 1);
    assert_int_equal(count(&book, ST_ENTRY_USAGE), 1);
    assert_in_range(nth(&book, ST_ENTRY_USAGE, 0)->to_ms - nth(&book, ST_ENTRY_USAGE, 0)->from_ms,
                    50 * S - 1, 50 * S + 1);
    forget(&book);
    expect_sound(w);
}

/* An entry without an event moves the books' time and not the core's. */
static void a_clock_set_back_is_outlived(void **state)
{
    world *w = *state;
    st_cmd_credit credit = {.who = owner,
                            .account = "team",
                            .reason = "sorry",
                            .amount_udollars = 5000000,
                            .confirmed = true};
    st_err err = {0};
    seen book;
    uint64_t id;

    let_pass(w, H);
    st_cmd_credit_init(&credit);
    assert_ok(do_cmd(w, &credit.cmd, &err));
    assert_int_equal(total_of(w, "team", NULL), -5000000);
    st_control_free(w->ctl);
    let_pass(w, -30 * 60 * S);
    assert_ok(open_control(w, &err));
    id = start_job(w, "{}");
    let_pass(w, 40 * 60 * S);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    const st_entry *e = nth(&book, ST_ENTRY_USAGE, 0);
    assert_int_equal(e->from_ms, NOON + H);
    assert_int_equal(e->to_ms, NOON + H + 10 * 60 * S);
    forget(&book);
    expect_sound(w);
}

/* Once a day, in a quiet moment, everything is compared. */
static void every_day_is_compared(void **state)
{
    world *w = *state;
    st_control_stats stats = {0};
    uint64_t id = start_job(w, "{}");

    nudge(w);
    let_pass(w, DAY);
    end_job(w, id, 0);
    for (int i = 0; i < 500 && __atomic_load_n(&w->compared, __ATOMIC_RELAXED) == 0; i++) {
        nudge(w);
        usleep(2000);
    }
    st_control_stats_get(w->ctl, &stats);
    assert_int_equal(stats.differences, 0);
    assert_true(stats.entries > 0);
    expect_sound(w);
    assert_int_equal(w->compared, 1);
}

/* ---- proofs ------------------------------------------------------------------------------------------------ */

/* Plans are kept by those who have them; what they mean for prices is said to each who has it from them. */
static void terms_stand_in_every_book(void **state)
{
    world *w = *state;
    seen book;
    st_err err = {0};

    w->limit_ms = 2 * H;
    publish(w, PRICES);
    make_account(w, "crew", "team", "{name: crew}");
    assert_ok(set_plan(w, "discount: 5%\ncap: 7000\n", &err));
    let_pass(w, S);
    assert_ok(set_plan(w, "account: team\ndiscount: 40%\nchargeback: true\nbudget: 77.77\n", &err));
    let_pass(w, S);
    make_account(w, "squad", "crew", "{name: squad}");
    restart(w);
    uint64_t id = start_job(w, "{}");
    let_pass(w, H);
    end_job(w, id, 0);
    read_book(w, "crew", &book);
    assert_int_equal(count(&book, ST_ENTRY_PLAN), 0);
    assert_int_equal(count(&book, ST_ENTRY_TERMS), 2);
    assert_int_equal(nth(&book, ST_ENTRY_TERMS, 0)->discount_bp, 500);
    assert_int_equal(nth(&book, ST_ENTRY_TERMS, 1)->discount_bp, 4000);
    assert_int_equal(nth(&book, ST_ENTRY_TERMS, 1)->chargeback, 1);
    assert_string_equal(nth(&book, ST_ENTRY_CHILD, 0)->child, "squad");
    forget(&book);
    read_book(w, "team", &book);
    assert_int_equal(nth(&book, ST_ENTRY_TERMS, 1)->seq, nth(&book, ST_ENTRY_PLAN, 0)->seq + 1);
    assert_int_equal(paid(nth(&book, ST_ENTRY_USAGE, 0)), 1800000); /* $3.00 less 40% */
    forget(&book);
    read_book(w, "squad", &book);
    assert_int_equal(nth(&book, ST_ENTRY_TERMS, 0)->seq, 2);
    assert_int_equal(nth(&book, ST_ENTRY_TERMS, 0)->discount_bp, 4000);
    forget(&book);
    read_book(w, "", &book); /* in everybody's files */
    assert_int_equal(count(&book, ST_ENTRY_PLAN) + count(&book, ST_ENTRY_CHILD), 0);
    forget(&book);
    expect_file_without(w, "crew", NULL, "team");
    expect_file_without(w, "crew", NULL, "77770000");
    expect_file_without(w, "squad", NULL, "crew");
    expect_file(w, "team", NULL);
    expect_file(w, "", NULL);
    expect_sound(w);
}

static void files_prove_themselves(void **state)
{
    world *w = *state;
    st_err err = {0};
    uint64_t id;

    make_account(w, "org", "", "{name: org, guarantee: {gpu: 2}}");
    make_account(w, "inner", "org", "{name: inner, guarantee: {gpu: 1}}");
    publish(w, PRICES);
    expect_file(w, "team", NULL);
    assert_ok(set_plan(w, "account: org\ndiscount: 10%\n", &err));
    assert_ok(set_plan(w, "account: team\nchargeback: true\n", &err));
    id = start_job(w, "{}");
    let_pass(w, 10 * DAY);
    expect_file(w, "team", NULL);
    let_pass(w, 25 * DAY);
    nudge(w);
    end_job(w, id, 0);
    make_account(w, "young", "org", "{name: young}");
    restart(w);
    for (int i = 0; i < 2; i++) {
        const char *period = i ? "2026-10" : NULL;

        expect_file(w, "team", period);
        expect_file(w, "org", period);
        expect_file(w, "inner", period);
        expect_file(w, "", period);
    }
    expect_file(w, "young", NULL);
    expect_sound(w);
}

static void the_key_is_kept(void **state)
{
    world *w = *state;
    unsigned char key[32];
    char path[200];
    struct stat st;

    memcpy(key, st_control_key(w->ctl), sizeof key);
    snprintf(path, sizeof path, "%s/billing.key", w->place.folder);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    restart(w);
    assert_memory_equal(key, st_control_key(w->ctl), sizeof key);
    expect_sound(w);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_at_noon, end)
    const struct CMUnitTest tests[] = {
        TEST(a_restart_changes_nothing),       TEST(a_failing_store_books_nothing_twice),
        TEST(books_begin_where_they_were_not), TEST(a_clock_set_back_is_outlived),
        TEST(every_day_is_compared),           TEST(terms_stand_in_every_book),
        TEST(files_prove_themselves),          TEST(the_key_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
