/*
 * The loop (control/control.h): takes commands, makes them one transaction, answers.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "billing/billing.h"
#include "control/feed.h"
#include "control/restore.h"
#include "control/series.h"
#include "control/state.h"

#define TOGETHER_MAX   1024           /* commands in one transaction */
#define TURN_US        INT64_C(10000) /* and so long: who comes meanwhile waits for its end */
#define FLUSH_MS       INT64_C(60000) /* uses of tokens are written this often */
#define PRUNE_FIRST_MS INT64_C(1000)
#define RETRY_MIN_MS   INT64_C(250) /* while the store is down */
#define RETRY_MAX_MS   INT64_C(10000)
#define SNAP_ROWS      INT64_C(32768)
#define SNAP_MS        INT64_C(86400000) /* the oldest may go when there is a newer one */
#define REPLAY_US      INT64_C(2000000)  /* of the core's work behind a snapshot, about */
#define IDLE_MS        INT64_C(60000)
#define WORD_MS        INT64_C(50)  /* how far our time may be ahead of the clock, see keep_word */
#define STILL_MS       INT64_C(200) /* between two looks at agents, while a restored store waits */
#define IDEM_KEEP_MS   INT64_C(172800000) /* two days */

static int64_t monotonic_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- one turn ------------------------------------------------------------------------------- */

static void fail_cmd(st_cmd *cmd, const st_err *err)
{
    if (!cmd->failed)
        cmd->failed = st_xmalloc(sizeof *cmd->failed);
    *cmd->failed = *err;
}

static void answer(st_control *ctl, st_cmd *cmd)
{
    st_err *failed = cmd->failed;

    cmd->failed = NULL;
    if (!failed && cmd->publish)
        cmd->publish(ctl, cmd);
    cmd->done(cmd, failed);
    free(failed);
}

static void note_use(void *ctx, int64_t token, int64_t at_ms)
{
    st_tx *tx = ctx;
    st_err err;

    if (!tx->broken && st_tx_open(tx, &err) == 0)
        st_tx_fault(tx, st_store_token_used(tx->ctl->store, token, at_ms, &err), &err);
}

/* What is not urgent: last uses of tokens, old idempotency keys. */
static void housekeeping(st_tx *tx)
{
    st_control *ctl = tx->ctl;
    int64_t n = 0;
    st_err err;

    st_refusals_write(tx);
    st_prune(tx);
    if (tx->now - ctl->flushed_ms < FLUSH_MS)
        return;
    ctl->flushed_ms = tx->now;
    st_count_tokens(ctl, tx->now);
    st_directory_used(ctl->dir, note_use, tx);
    if (!tx->broken && st_tx_open(tx, &err) == 0)
        st_tx_fault(tx, st_store_idem_expire(ctl->store, tx->now - IDEM_KEEP_MS, &n, &err), &err);
    if (!tx->broken && n > 0)
        st_tx_fault(tx, st_count_keys(ctl, &err), &err);
}

/* What the core and the meter were told, as it is played again. */
static int write_log(st_tx *tx, st_err *err)
{
    st_control *ctl = tx->ctl;

    st_notes_write(&tx->notes, &tx->log);
    const st_log_row row = {.seq = ctl->log_seq + 1,
                            .at_ms = tx->now,
                            .version = ST_LOG_VERSION,
                            .data = {tx->log.s, tx->log.n},
                            .hash = st_core_hash(ctl->core)};
    return st_tx_fault(tx, st_store_log_append(ctl->store, &row, err), err);
}

/* Runs the pass and writes rows, entries and log. */
static int write_all(st_tx *tx, st_err *err)
{
    st_control *ctl = tx->ctl;
    int64_t began;
    bool logged;
    int r = 0;

    st_pace_pass(tx);
    logged = tx->applied > 0 || tx->notes.n > 0;
    if (logged) {
        r = st_tx_open(tx, err);
        if (r == 0)
            r = st_rows_write(tx, err);
        if (r == 0)
            r = st_money_follow(tx, err);
        if (r == 0)
            r = write_log(tx, err);
    }
    if (r == 0)
        r = st_money_sign(tx, false, err);
    if (r == 0 && tx->open)
        r = st_mark_follow(tx, err);
    if (r < 0 || !tx->open)
        return r;
    began = monotonic_us();
    r = st_tx_fault(tx, st_store_commit(ctl->store, err), err);
    if (r < 0)
        return r;
    ctl->last_ms = ST_MAX(ctl->last_ms, tx->now);
    ctl->count.commits++;
    ctl->count.commit_us_sum += monotonic_us() - began;
    if (logged) {
        ctl->log_seq++;
        ctl->count.log_rows++;
    }
    return 0;
}

static void go_down(st_control *ctl, const st_err *why)
{
    pthread_mutex_lock(&ctl->lock);
    ctl->down = true;
    ctl->down_why = *why;
    pthread_mutex_unlock(&ctl->lock);
    ctl->retry_step = ctl->retry_step ? ST_MIN(ctl->retry_step * 2, RETRY_MAX_MS) : RETRY_MIN_MS;
    ctl->retry_ms = ctl->options.clock(ctl->options.ctx) + ctl->retry_step;
    st_control_say(ctl, "event=store_down retry_ms=%" PRId64 " reason=\"%s\"", ctl->retry_step,
                   why->msg);
    st_store_rollback(ctl->store);
    st_control_unload(ctl);
}

/* Tries to read the core back and to write: only a store that takes a row is up again. */
static bool come_up(st_control *ctl)
{
    st_err err = {0};
    int r;

    if (ctl->options.clock(ctl->options.ctx) < ctl->retry_ms)
        return false;
    ctl->count.reloads++;
    r = st_control_load(ctl, &err);
    if (r == 0)
        r = st_epoch_confirm(ctl, &err);
    if (r < 0) {
        go_down(ctl, &err);
        return false;
    }
    pthread_mutex_lock(&ctl->lock);
    ctl->down = false;
    pthread_mutex_unlock(&ctl->lock);
    ctl->retry_step = 0;
    st_directory_follow(ctl->dir, ctl->core);
    /* Whether the last commit happened is known only now. */
    st_follower_seed(ctl);
    st_control_order_all(ctl);
    st_restoring_lead(ctl);
    st_control_complete(ctl);
    st_control_say(ctl, "event=store_up log_seq=%" PRId64, ctl->log_seq);
    return true;
}

static void refuse(st_control *ctl, st_cmd *cmd, const st_err *why)
{
    st_err err;

    if (cmd->more) {
        pthread_mutex_lock(&ctl->lock);
        st_lanes_give_up(ctl->lanes, cmd);
        pthread_mutex_unlock(&ctl->lock);
    }

    st_fail(&err, ST_EDOWN, "the store cannot be written at the moment (%.300s); try again later",
            why->msg);
    fail_cmd(cmd, &err);
    answer(ctl, cmd);
}

static void refuse_all(st_control *ctl, st_cmd *cmds, const st_err *why)
{
    for (st_cmd *cmd = cmds, *next; cmd; cmd = next) {
        next = cmd->next;
        refuse(ctl, cmd, why);
    }
}

static st_cmd *next_cmd(st_control *ctl, uint64_t last, bool young)
{
    st_cmd *cmd;

    pthread_mutex_lock(&ctl->lock);
    cmd = st_lanes_next(ctl->lanes, last, young);
    pthread_mutex_unlock(&ctl->lock);
    return cmd;
}

/* Those that wait now: who comes while they are answered may have come when all is well again. */
static void refuse_waiting(st_control *ctl, const st_err *why)
{
    st_cmd *cmds = NULL, **end = &cmds;

    pthread_mutex_lock(&ctl->lock);
    while ((*end = st_lanes_next(ctl->lanes, UINT64_MAX, true)))
        end = &(*end)->next;
    pthread_mutex_unlock(&ctl->lock);
    refuse_all(ctl, cmds, why);
}

/* Runs those up to number `last` whose turn it is, until there are none, or the turn is over. Returns what was run. */
static st_cmd *run_cmds(st_tx *tx, uint64_t last)
{
    st_control *ctl = tx->ctl;
    st_cmd *ran = NULL, **end = &ran, *cmd;
    int64_t began = monotonic_us(), now = began;

    for (int n = 0; n < TOGETHER_MAX && now - began < TURN_US && !tx->broken; n++) {
        int64_t from = now;
        st_err err = {0};
        int r;

        cmd = next_cmd(ctl, last, now - began < TURN_US / 2);
        if (!cmd)
            break;
        ctl->count.commands++;
        r = st_cmd_run(tx, cmd, &err);
        if (r < 0) {
            fail_cmd(cmd, &err);
            ctl->count.refused++;
        }
        cmd->more = r > 0;
        *end = cmd;
        end = &cmd->next;
        now = monotonic_us();
        pthread_mutex_lock(&ctl->lock);
        st_lanes_took(ctl->lanes, cmd, now - from);
        if (cmd->more)
            st_lanes_block(ctl->lanes, cmd);
        pthread_mutex_unlock(&ctl->lock);
    }
    return ran;
}

/* Those that have more to do wait for their next turn. */
static void answer_all(st_control *ctl, st_cmd *cmds)
{
    for (st_cmd *cmd = cmds, *next; cmd; cmd = next) {
        next = cmd->next;
        if (!cmd->more) {
            answer(ctl, cmd);
            continue;
        }
        pthread_mutex_lock(&ctl->lock);
        st_lanes_put_back(ctl->lanes, cmd);
        pthread_mutex_unlock(&ctl->lock);
    }
}

/* A start plays the log behind the snapshot again: that must stay short. */
static bool snapshot_is_due(const st_control *ctl)
{
    int64_t rows = ctl->options.snap_rows ? ctl->options.snap_rows : SNAP_ROWS;

    if (ctl->pace.owed)
        return false;
    return ctl->log_seq - ctl->snap_seq >= rows || ctl->replay_us >= REPLAY_US ||
           (ctl->snap_ms > 0 && st_core_now(ctl->core) - ctl->snap_ms >= SNAP_MS);
}

/* What was said to be so from now on is so for whoever asks behind the answer, also within the same millisecond. The clock
 * is left behind by little, however much is said within one. */
static void keep_word(const st_tx *tx)
{
    st_control *ctl = tx->ctl;
    int64_t most;

    if (tx->in_force_ms <= __atomic_load_n(&ctl->word_ms, __ATOMIC_RELAXED))
        return;
    most = ctl->options.clock(ctl->options.ctx) + WORD_MS;
    __atomic_store_n(&ctl->word_ms, ST_MIN(tx->in_force_ms, most), __ATOMIC_RELEASE);
}

int64_t st_control_now(const st_control *ctl)
{
    int64_t now = ctl->options.clock(ctl->options.ctx);

    return ST_MAX(now, __atomic_load_n(&ctl->word_ms, __ATOMIC_ACQUIRE));
}

/* Writes a transaction, tells what came of it and answers its commands. False: the store is down. */
static bool finish(st_tx *tx, st_cmd *cmds)
{
    st_control *ctl = tx->ctl;
    int64_t before = ctl->log_seq;
    bool good;
    st_err err = {0};

    st_control_used_late(tx);
    if (!tx->broken)
        write_all(tx, &err);
    good = !tx->broken;
    if (good) {
        keep_word(tx);
        st_follower_feed(tx, ctl->log_seq > before);
        if (ctl->log_seq > before && ctl->options.engine && ctl->options.engine->ops->place)
            ctl->options.engine->ops->place(ctl->options.engine, ctl->restoring.branch,
                                            ctl->log_seq);
        if (tx->names) {
            st_directory_follow(ctl->dir, ctl->core);
            st_count_accounts(ctl);
        }
        st_rows_tell(tx);
        st_budget_tell(tx);
        st_budget_watch(tx);
        st_anomalies_watch(tx);
        st_caps_tell(tx);
        answer_all(ctl, cmds);
        st_rows_forget_ended(ctl);
        if (ctl->snap_ms == 0)
            ctl->snap_ms = st_core_now(ctl->core);
        if (snapshot_is_due(ctl) && st_control_snapshot(ctl, &err) < 0)
            st_control_say(ctl, "event=snapshot_failed reason=\"%s\"", err.msg);
    } else {
        go_down(ctl, &tx->fault);
        refuse_all(ctl, cmds, &tx->fault);
    }
    st_effects_done(&tx->fx);
    st_strbuf_done(&tx->log);
    st_vec_free(&tx->notes);
    st_strbuf_done(&tx->posted);
    st_asides_done(&tx->versions);
    st_asides_done(&tx->docs);
    return good;
}

/* Metering begins, and intervals are cut, at their own moments: each is a transaction before anything
 * newer. */
static bool catch_up(st_control *ctl, int64_t now)
{
    const st_event timer = {.kind = ST_EV_TIMER};

    while (!st_money_begun(ctl) || st_money_next(ctl) <= now) {
        bool begin = !st_money_begun(ctl);
        /* A pass that is owed is for now: nobody starts at a moment that is over. */
        bool owed = ctl->pace.owed;
        st_tx tx = {
            .ctl = ctl, .now = begin ? now : st_money_next(ctl), .pays = !owed, .later = owed};
        st_err err = {0};

        /* The first row says by which rules the rows behind it were decided: a store that is opened
         * with another configuration before its first snapshot must come to the same. */
        if (begin) {
            const st_event rules = {.kind = ST_EV_POLICY, .u.policy = *st_core_policy(ctl->core)};

            st_money_begin(&tx);
            st_tx_apply(&tx, &rules, &err);
        } else
            st_money_cut(&tx);
        st_tx_apply(&tx, &timer, &err);
        /* Those who wait are refused if it fails, and answered later if it does not. */
        if (!finish(&tx, NULL)) {
            refuse_waiting(ctl, &ctl->down_why);
            return false;
        }
    }
    return true;
}

/* Those that wait now: their time is that of a clock which is read later. */
static uint64_t last_cmd(st_control *ctl)
{
    uint64_t last;

    pthread_mutex_lock(&ctl->lock);
    last = st_lanes_last(ctl->lanes);
    pthread_mutex_unlock(&ctl->lock);
    return last;
}

static bool is_quiet(st_control *ctl)
{
    bool quiet;

    pthread_mutex_lock(&ctl->lock);
    quiet = st_lanes_count(ctl->lanes) == 0;
    pthread_mutex_unlock(&ctl->lock);
    return quiet;
}

/* While a restored store waits: its time stands still, and the core has no part in what is done. */
static void still_turn(st_control *ctl)
{
    st_tx tx = {.ctl = ctl, .now = st_control_last_ms(ctl), .later = true}, end = tx;
    st_cmd *cmds = run_cmds(&tx, UINT64_MAX);

    if (finish(&tx, cmds) && st_restoring_step(&end) && finish(&end, NULL))
        st_restoring_end(ctl);
    else if (end.broken)
        go_down(ctl, &end.fault);
}

static void turn(st_control *ctl, bool last)
{
    const st_event timer = {.kind = ST_EV_TIMER};
    uint64_t came = last_cmd(ctl); /* before the clock is read */
    st_tx tx = {.ctl = ctl, .now = st_control_now(ctl)};
    st_cmd *cmds;
    st_err err = {0};

    if (ctl->down && !come_up(ctl)) {
        err = ctl->down_why;
        refuse_waiting(ctl, &err);
        return;
    }
    if (ctl->restoring.state != ST_RESTORE_NONE) {
        still_turn(ctl);
        return;
    }
    tx.now = ST_MAX(tx.now, st_control_last_ms(ctl));
    if (!catch_up(ctl, tx.now))
        return;
    tx.pays = st_pace_due(ctl, last);
    cmds = tx.pays ? NULL : run_cmds(&tx, came);
    /* What is due is for a pass to see. */
    if (!tx.broken && tx.pays == ctl->pace.owed && st_core_next_timer(ctl->core) <= tx.now)
        st_tx_apply(&tx, &timer, &err);
    if (!tx.broken)
        housekeeping(&tx);
    if (!tx.broken)
        st_caps_watch(&tx);
    if (finish(&tx, cmds))
        st_reconcile_daily(ctl, tx.now, is_quiet(ctl));
}

int st_control_snapshot(st_control *ctl, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf data = {0};
    int64_t began = monotonic_us(), saved;
    int r;

    if (ctl->down || ctl->log_seq == ctl->snap_seq)
        return 0;
    ST_ASSERT(!ctl->pace.owed);
    st_billing_save(ctl, &data);
    saved = monotonic_us();
    const st_snap_row row = {.seq = ctl->log_seq,
                             .at_ms = st_control_last_ms(ctl),
                             .version = ST_LOG_VERSION,
                             .data = {data.s, data.n}};
    int64_t since = ctl->options.keep_log_ms > 0 ? row.at_ms - ctl->options.keep_log_ms : INT64_MAX;

    ctl->snap_ms = row.at_ms; /* also if it fails: not at every turn */
    r = st_store_begin(ctl->store, err);
    if (r == 0)
        r = st_store_end(ctl->store, st_store_snap_put(ctl->store, &row, since, err), err);
    if (r < 0)
        return r;
    ctl->snap_seq = ctl->log_seq;
    ctl->replay_us = 0;
    ctl->count.snapshots++;
    st_control_say(ctl,
                   "event=snapshot seq=%" PRId64 " bytes=%zu save_us=%" PRId64 " write_us=%" PRId64,
                   ctl->log_seq, data.n, saved - began, monotonic_us() - saved);
    return 0;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static int64_t sleep_ms(st_control *ctl)
{
    int64_t now = ctl->options.clock(ctl->options.ctx), next = now + IDLE_MS;

    if (ctl->down)
        return ST_MAX(ctl->retry_ms - now, 0);
    if (ctl->restoring.state != ST_RESTORE_NONE)
        return STILL_MS;
    if (ctl->pace.owed)
        next = ST_MIN(next, now + st_pace_wait_ms(ctl));
    else
        next = ST_MIN(next, st_core_next_timer(ctl->core));
    next = st_money_begun(ctl) ? ST_MIN(next, st_money_next(ctl)) : now;
    if (ctl->options.engine && ctl->options.engine->ops->next_ms)
        next = ST_MIN(next, ctl->options.engine->ops->next_ms(ctl->options.engine));
    next = ST_MIN(next, st_refusals_next(ctl, now));
    next = ST_MIN(next, ctl->prune_ms);
    next = ST_MIN(next, st_prepare_next(ctl));
    next = ST_MIN(next, st_budget_next(ctl));
    next = ST_MIN(next, st_anomalies_next(ctl));
    next = ST_MIN(next, st_caps_next(ctl));
    return ST_MAX(next - now, 0);
}

/* Waits for commands, a timer or the end. */
static void wait_for_work(st_control *ctl, bool *ret_stop)
{
    bool refused =
        st_refusals_next(ctl, 0) != ST_TIME_NEVER; /* before the next line counts on it */
    int64_t ms = sleep_ms(ctl);
    struct timespec until;
    int r = 0;

    if (!st_follower_hand_over(ctl))
        ms = ST_MIN(ms, 1);

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&ctl->lock);
    /* A refusal that nobody waits for yet is a reason to look at the clock again. */
    while (st_lanes_count(ctl->lanes) == 0 && !ctl->stopping && r != ETIMEDOUT && ms > 0 &&
           (refused || ctl->refusals.n == 0))
        r = pthread_cond_timedwait(&ctl->wake, &ctl->lock, &until);
    *ret_stop = ctl->stopping;
    pthread_mutex_unlock(&ctl->lock);
}

static void *loop(void *arg)
{
    st_control *ctl = arg;
    st_engine *engine = ctl->options.engine;

    for (bool stop = false; !stop;) {
        wait_for_work(ctl, &stop);
        turn(ctl, stop);
        if (engine && engine->ops->tick && !ctl->down)
            engine->ops->tick(engine, ctl->options.clock(ctl->options.ctx));
        if (!ctl->down)
            st_prepare_turn(ctl, ctl->options.clock(ctl->options.ctx));
        pthread_mutex_lock(&ctl->lock);
        ctl->count.live = ctl->all.n;
        ctl->count.entries = ctl->billing->books.n;
        ctl->count.signed_ms = ctl->billing->books.signed_ms;
        ctl->count.differences = __atomic_load_n(&ctl->billing->daily_n, __ATOMIC_RELAXED);
        ctl->count.ready = !ctl->down;
        ctl->stats = ctl->count;
        stop = stop && st_lanes_count(ctl->lanes) == 0 && (ctl->down || !ctl->pace.owed);
        if (stop)
            ctl->stopped = true;
        pthread_mutex_unlock(&ctl->lock);
    }
    return NULL;
}

bool st_control_post(st_control *ctl, st_cmd *cmd)
{
    bool ok;

    cmd->failed = NULL;
    cmd->more = false;
    pthread_mutex_lock(&ctl->lock);
    ok = !ctl->stopped && st_lanes_put(ctl->lanes, cmd);
    if (ok && st_lanes_count(ctl->lanes) == 1)
        pthread_cond_signal(&ctl->wake);
    pthread_mutex_unlock(&ctl->lock);
    return ok;
}

void st_control_tally(st_control *ctl, int32_t account, st_job_counts *ret)
{
    st_tallies_get(ctl->tallies, account, ret);
}

int st_control_new(const st_control_options *options, st_control **ret, st_err *err)
{
    st_control *ctl = st_xcalloc(1, sizeof *ctl);
    pthread_condattr_t attr;
    int r;

    ctl->options = *options;
    ctl->lanes = st_lanes_new();
    ctl->tallies = st_tallies_new();
    ctl->dir = st_directory_new();
    st_catalogues_new(ctl);
    ctl->allowance = st_allowance_new(options->quota, options->quota_total);
    ST_ASSERT(pthread_mutex_init(&ctl->lock, NULL) == 0);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    ST_ASSERT(pthread_cond_init(&ctl->wake, &attr) == 0);
    pthread_condattr_destroy(&attr);
    r = st_store_open(options->store, &options->store_options, &ctl->store, err);
    if (r == 0)
        r = st_billing_open(ctl, true, err);
    if (r == 0)
        r = st_control_load(ctl, err);
    if (r == 0)
        r = st_catalogues_load(ctl, err);
    if (r == 0) {
        st_directory_follow(ctl->dir, ctl->core); /* secrets are of accounts */
        r = st_secrets_open(ctl, err);
    }
    if (r == 0)
        r = st_stands_load(ctl, err);
    if (r < 0) {
        st_control_free(ctl);
        return r;
    }
    /* The first turn is for whoever waited for the start. */
    ctl->prune_ms = ST_MAX(options->clock(options->ctx), st_control_last_ms(ctl)) + PRUNE_FIRST_MS;
    *ret = ctl;
    return 0;
}

int st_control_start(st_control *ctl, st_err *err)
{
    int r = st_follower_start(ctl, err);

    if (r == 0)
        r = st_outlooks_start(ctl, err);
    if (r < 0)
        return r;
    st_control_order_all(ctl);
    st_restoring_lead(ctl);
    st_control_complete(ctl);
    ctl->started = true;
    ctl->stats.ready = true;
    r = pthread_create(&ctl->thread, NULL, loop, ctl);
    if (r != 0) {
        ctl->started = false;
        return st_fail(err, ST_EINTERNAL, "the control thread cannot be started (%d)", r);
    }
    st_control_know_agents(ctl);
    st_control_follow_engines(ctl);
    return st_series_start(ctl, err);
}

void st_control_stop(st_control *ctl)
{
    st_err err = {0};

    if (!ctl->started)
        return;
    st_series_stop(ctl);
    pthread_mutex_lock(&ctl->lock);
    ctl->stopping = true;
    pthread_cond_signal(&ctl->wake);
    pthread_mutex_unlock(&ctl->lock);
    pthread_join(ctl->thread, NULL);
    st_follower_stop(ctl);
    st_outlooks_stop(ctl);
    st_reconcile_end(ctl, true);
    ctl->started = false;
    if (st_control_snapshot(ctl, &err) < 0)
        st_control_say(ctl, "event=snapshot_failed reason=\"%s\"", err.msg);
}

void st_control_free(st_control *ctl)
{
    if (!ctl)
        return;
    st_control_stop(ctl);
    st_outlooks_free(ctl);
    st_follower_free(ctl);
    st_control_unload(ctl);
    st_billing_free(ctl);
    st_store_close(ctl->store);
    st_catalogues_free(ctl);
    st_vault_free(ctl->vault);
    st_allowance_free(ctl->allowance);
    st_directory_free(ctl->dir);
    st_vec_free(&ctl->all);
    st_vec_free(&ctl->dirty);
    st_vec_free(&ctl->imaged);
    st_vec_free(&ctl->image_news);
    st_vec_free(&ctl->image_nodes);
    st_vec_free(&ctl->over);
    st_lanes_free(ctl->lanes);
    st_tallies_free(ctl->tallies);
    pthread_cond_destroy(&ctl->wake);
    pthread_mutex_destroy(&ctl->lock);
    free(ctl);
}
