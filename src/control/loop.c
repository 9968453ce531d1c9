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
#include "control/billing.h"
#include "control/feed.h"

#define WAITING_MAX  65536
#define TOGETHER_MAX 1024           /* commands in one transaction */
#define FLUSH_MS     INT64_C(60000) /* uses of tokens are written this often */
#define RETRY_MIN_MS INT64_C(250)   /* while the store is down */
#define RETRY_MAX_MS INT64_C(10000)
#define SNAP_ROWS    INT64_C(32768)
#define REPLAY_US    INT64_C(2000000) /* of the core's work behind a snapshot, about */
#define IDLE_MS      INT64_C(60000)
#define IDEM_KEEP_MS INT64_C(172800000) /* two days */

void st_control_say(st_control *ctl, const char *fmt, ...)
{
    char line[900];
    va_list ap;

    if (!ctl->options.log)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    ctl->options.log(ctl->options.ctx, line);
}

static int64_t monotonic_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- inside a transaction ------------------------------------------------------------------ */

st_core *st_tx_core(st_tx *tx)
{
    return tx->ctl->core;
}

int64_t st_tx_now(const st_tx *tx)
{
    return tx->now;
}

int st_tx_fault(st_tx *tx, int r, const st_err *err)
{
    if (r < 0 && !tx->broken) {
        tx->broken = true;
        tx->fault = *err;
    }
    return r;
}

int st_tx_open(st_tx *tx, st_err *err)
{
    int r;

    if (tx->broken) {
        *err = tx->fault;
        return -err->code;
    }
    if (tx->open)
        return 0;
    r = st_tx_fault(tx, st_store_begin(tx->ctl->store, err), err);
    tx->open = r == 0;
    return r;
}

int st_tx_apply(st_tx *tx, const st_event *event, st_err *err)
{
    int r = st_core_apply(tx->ctl->core, event, tx->now, &tx->fx, err);

    if (r < 0)
        return r;
    st_event_encode(event, &tx->log);
    tx->applied++;
    switch (event->kind) {
    case ST_EV_TYPE:
    case ST_EV_POOL:
    case ST_EV_NODE:
    case ST_EV_ACCOUNT:
        tx->names = true;
        break;
    default:
        break;
    }
    return 0;
}

int st_tx_audit(st_tx *tx, const st_identity *who, const char *verb, const char *account,
                const char *target, const char *detail, st_err *err)
{
    char actor[ST_NAME_MAX * 2 + 32];
    int r = st_tx_open(tx, err);

    /* Names have no blanks, so whoever shows it can take it apart. */
    snprintf(actor, sizeof actor, "%s %s %" PRId64, who->user, who->account[0] ? who->account : "-",
             who->token);
    const st_audit_row row = {.at_ms = tx->now,
                              .actor = actor,
                              .account = account,
                              .source = who->source,
                              .verb = verb,
                              .target = target,
                              .detail = detail ? detail : ""};
    if (r == 0)
        r = st_tx_fault(tx, st_store_audit_append(tx->ctl->store, &row, NULL, err), err);
    return r;
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
    int64_t n;
    st_err err;

    st_refusals_write(tx);
    if (tx->now - ctl->flushed_ms < FLUSH_MS)
        return;
    ctl->flushed_ms = tx->now;
    st_directory_used(ctl->dir, note_use, tx);
    if (!tx->broken && st_tx_open(tx, &err) == 0)
        st_tx_fault(tx, st_store_idem_expire(ctl->store, tx->now - IDEM_KEEP_MS, &n, &err), &err);
}

/* What the core and the meter were told, as it is played again. */
static int write_log(st_tx *tx, st_err *err)
{
    st_control *ctl = tx->ctl;

    st_notes_write(&tx->notes, &tx->log);
    const st_log_row row = {.seq = ctl->log_seq + 1,
                            .at_ms = tx->now,
                            .version = ST_VERSION,
                            .data = {tx->log.s, tx->log.n},
                            .hash = st_core_hash(ctl->core)};
    return st_tx_fault(tx, st_store_log_append(ctl->store, &row, err), err);
}

/* Runs the pass and writes rows, entries and log. */
static int write_all(st_tx *tx, st_err *err)
{
    st_control *ctl = tx->ctl;
    int64_t began = monotonic_us();
    bool logged = tx->applied > 0 || tx->notes.n > 0;
    int r = 0;

    if (tx->applied > 0) {
        st_core_settle(ctl->core, tx->now, &tx->fx);
        ctl->count.passes++;
        ctl->count.pass_us_sum += monotonic_us() - began;
        ctl->replay_us += monotonic_us() - began;
    }
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
    if (r < 0 || !tx->open)
        return r;
    began = monotonic_us();
    r = st_tx_fault(tx, st_store_commit(ctl->store, err), err);
    if (r < 0)
        return r;
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
    char epoch[32];
    int r;

    if (ctl->options.clock(ctl->options.ctx) < ctl->retry_ms)
        return false;
    ctl->count.reloads++;
    r = st_control_load(ctl, &err);
    snprintf(epoch, sizeof epoch, "%" PRId64, ctl->epoch);
    if (r == 0)
        r = st_store_meta_put(ctl->store, "epoch", epoch, &err);
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
    st_control_say(ctl, "event=store_up log_seq=%" PRId64, ctl->log_seq);
    return true;
}

static void refuse_all(st_control *ctl, st_cmd *cmds, const st_err *why)
{
    st_err err;

    st_fail(&err, ST_EDOWN, "the store cannot be written at the moment (%.300s); try again later",
            why->msg);
    for (st_cmd *cmd = cmds, *next; cmd; cmd = next) {
        next = cmd->next;
        fail_cmd(cmd, &err);
        answer(ctl, cmd);
    }
}

static void run_cmds(st_tx *tx, st_cmd *cmds)
{
    for (st_cmd *cmd = cmds; cmd; cmd = cmd->next) {
        st_err err = {0};

        tx->ctl->count.commands++;
        if (!tx->broken && cmd->run(tx, cmd, &err) < 0) {
            fail_cmd(cmd, &err);
            tx->ctl->count.refused++;
        }
    }
}

/* A start plays the log behind the snapshot again: that must stay short. */
static bool snapshot_is_due(const st_control *ctl)
{
    int64_t rows = ctl->options.snap_rows ? ctl->options.snap_rows : SNAP_ROWS;

    return ctl->log_seq - ctl->snap_seq >= rows || ctl->replay_us >= REPLAY_US;
}

/* Writes a transaction, tells what came of it and answers its commands. False: the store is down. */
static bool finish(st_tx *tx, st_cmd *cmds)
{
    st_control *ctl = tx->ctl;
    int64_t before = ctl->log_seq;
    bool good;
    st_err err = {0};

    if (!tx->broken)
        write_all(tx, &err);
    good = !tx->broken;
    if (good) {
        st_follower_feed(tx, ctl->log_seq > before);
        if (tx->names)
            st_directory_follow(ctl->dir, ctl->core);
        st_rows_tell(tx);
        st_budget_tell(tx);
        for (st_cmd *cmd = cmds, *next; cmd; cmd = next) {
            next = cmd->next;
            answer(ctl, cmd);
        }
        st_rows_settle(ctl);
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
static bool catch_up(st_control *ctl, st_cmd *cmds, int64_t now)
{
    const st_event timer = {.kind = ST_EV_TIMER};

    while (!st_money_begun(ctl) || st_money_next(ctl) <= now) {
        bool begin = !st_money_begun(ctl);
        st_tx tx = {.ctl = ctl, .now = begin ? now : st_money_next(ctl)};
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
            refuse_all(ctl, cmds, &ctl->down_why);
            return false;
        }
    }
    return true;
}

static bool is_quiet(st_control *ctl)
{
    bool quiet;

    pthread_mutex_lock(&ctl->lock);
    quiet = ctl->head == NULL && ctl->agents == NULL;
    pthread_mutex_unlock(&ctl->lock);
    return quiet;
}

static void turn(st_control *ctl, st_cmd *cmds)
{
    const st_event timer = {.kind = ST_EV_TIMER};
    st_tx tx = {.ctl = ctl, .now = ctl->options.clock(ctl->options.ctx)};
    st_err err = {0};

    if (ctl->down && !come_up(ctl)) {
        err = ctl->down_why;
        refuse_all(ctl, cmds, &err);
        return;
    }
    tx.now = ST_MAX(tx.now, st_control_last_ms(ctl));
    if (!catch_up(ctl, cmds, tx.now))
        return;
    run_cmds(&tx, cmds);
    if (!tx.broken && st_core_next_timer(ctl->core) <= tx.now)
        st_tx_apply(&tx, &timer, &err);
    if (!tx.broken)
        housekeeping(&tx);
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
    st_billing_save(ctl, &data);
    saved = monotonic_us();
    const st_snap_row row = {.seq = ctl->log_seq,
                             .at_ms = st_core_now(ctl->core),
                             .version = ST_VERSION,
                             .data = {data.s, data.n}};
    r = st_store_begin(ctl->store, err);
    if (r == 0)
        r = st_store_snap_put(ctl->store, &row, err);
    if (r == 0)
        r = st_store_log_prune(ctl->store, ctl->snap_seq, err);
    if (r == 0)
        r = st_store_commit(ctl->store, err);
    if (r < 0) {
        st_store_rollback(ctl->store);
        return r;
    }
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
    next = ST_MIN(next, st_core_next_timer(ctl->core));
    next = st_money_begun(ctl) ? ST_MIN(next, st_money_next(ctl)) : now;
    if (ctl->options.engine && ctl->options.engine->ops->next_ms)
        next = ST_MIN(next, ctl->options.engine->ops->next_ms(ctl->options.engine));
    next = ST_MIN(next, st_refusals_next(ctl, now));
    return ST_MAX(next - now, 0);
}

/* All of the agents' lane, up to as many as fit one transaction; under the lock. Returns the end of the list. */
static st_cmd **take_agents(st_control *ctl, st_cmd **list, int *n)
{
    st_cmd **end = list;

    *list = ctl->agents;
    while (*end && *n < TOGETHER_MAX) {
        end = &(*end)->next;
        ++*n;
    }
    ctl->agents = *end;
    if (!ctl->agents)
        ctl->agents_tail = &ctl->agents;
    ctl->agents_waiting -= (size_t)*n;
    *end = NULL;
    return end;
}

/* Waits for commands, a timer or the end. */
static st_cmd *take(st_control *ctl, bool *ret_stop)
{
    bool refused =
        st_refusals_next(ctl, 0) != ST_TIME_NEVER; /* before the next line counts on it */
    int64_t ms = sleep_ms(ctl);
    struct timespec until;
    st_cmd *cmds = NULL, **first;
    int n = 0, urgent = 0, r = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&ctl->lock);
    /* A refusal that nobody waits for yet is a reason to look at the clock again. */
    while (!ctl->head && !ctl->agents && !ctl->stopping && r != ETIMEDOUT && ms > 0 &&
           (refused || ctl->refusals.n == 0))
        r = pthread_cond_timedwait(&ctl->wake, &ctl->lock, &until);
    first = take_agents(ctl, &cmds, &urgent);
    st_cmd **end = &ctl->head;
    while (*end && n < TOGETHER_MAX) {
        end = &(*end)->next;
        n++;
    }
    *first = n > 0 ? ctl->head : NULL;
    ctl->head = *end;
    if (!ctl->head)
        ctl->tail = &ctl->head;
    if (n > 0)
        *end = NULL;
    ctl->waiting -= (size_t)n;
    *ret_stop = ctl->stopping && !ctl->head && !ctl->agents;
    pthread_mutex_unlock(&ctl->lock);
    return cmds;
}

static void *loop(void *arg)
{
    st_control *ctl = arg;
    st_engine *engine = ctl->options.engine;

    for (bool stop = false; !stop;) {
        st_cmd *cmds = take(ctl, &stop);

        turn(ctl, cmds);
        if (engine && engine->ops->tick && !ctl->down)
            engine->ops->tick(engine, ctl->options.clock(ctl->options.ctx));
        pthread_mutex_lock(&ctl->lock);
        ctl->count.live = ctl->all.n;
        ctl->count.entries = ctl->billing->books.n;
        ctl->count.signed_ms = ctl->billing->books.signed_ms;
        ctl->count.differences = __atomic_load_n(&ctl->billing->daily_n, __ATOMIC_RELAXED);
        ctl->count.ready = !ctl->down;
        ctl->stats = ctl->count;
        stop = stop && !ctl->head && !ctl->agents;
        if (stop)
            ctl->stopped = true;
        pthread_mutex_unlock(&ctl->lock);
    }
    return NULL;
}

bool st_control_post(st_control *ctl, st_cmd *cmd)
{
    bool ok;

    cmd->next = NULL;
    cmd->failed = NULL;
    pthread_mutex_lock(&ctl->lock);
    ok = !ctl->stopped &&
         (cmd->lane == ST_LANE_AGENTS ? ctl->agents_waiting : ctl->waiting) < WAITING_MAX;
    if (ok && cmd->lane == ST_LANE_AGENTS) {
        *ctl->agents_tail = cmd;
        ctl->agents_tail = &cmd->next;
        ctl->agents_waiting++;
        pthread_cond_signal(&ctl->wake);
    } else if (ok) {
        bool was_empty = ctl->head == NULL;

        *ctl->tail = cmd;
        ctl->tail = &cmd->next;
        ctl->waiting++;
        if (was_empty)
            pthread_cond_signal(&ctl->wake);
    }
    pthread_mutex_unlock(&ctl->lock);
    return ok;
}

bool st_control_ready(st_control *ctl, st_err *why)
{
    bool ready;

    pthread_mutex_lock(&ctl->lock);
    ready = ctl->started && !ctl->down && !ctl->stopping;
    if (ctl->down)
        *why = ctl->down_why;
    else if (!ready)
        st_fail(why, ST_EDOWN, "stintd is starting or stopping");
    pthread_mutex_unlock(&ctl->lock);
    return ready;
}

void st_control_stats_get(st_control *ctl, st_control_stats *ret)
{
    pthread_mutex_lock(&ctl->lock);
    *ret = ctl->stats;
    pthread_mutex_unlock(&ctl->lock);
}

int st_control_new(const st_control_options *options, st_control **ret, st_err *err)
{
    st_control *ctl = st_xcalloc(1, sizeof *ctl);
    pthread_condattr_t attr;
    int r;

    ctl->options = *options;
    ctl->tail = &ctl->head;
    ctl->agents_tail = &ctl->agents;
    ctl->dir = st_directory_new();
    ctl->images = st_images_new(ctl->dir);
    ST_ASSERT(pthread_mutex_init(&ctl->lock, NULL) == 0);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    ST_ASSERT(pthread_cond_init(&ctl->wake, &attr) == 0);
    pthread_condattr_destroy(&attr);
    r = st_store_open(options->store, &options->store_options, &ctl->store, err);
    if (r == 0)
        r = st_billing_open(ctl, true, err);
    if (r == 0)
        r = st_secrets_open(ctl, err);
    if (r == 0)
        r = st_control_load(ctl, err);
    if (r == 0)
        r = st_images_load(ctl->images, ctl->store, err);
    if (r < 0) {
        st_control_free(ctl);
        return r;
    }
    st_directory_follow(ctl->dir, ctl->core);
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
    ctl->started = true;
    ctl->stats.ready = true;
    r = pthread_create(&ctl->thread, NULL, loop, ctl);
    if (r != 0) {
        ctl->started = false;
        return st_fail(err, ST_EINTERNAL, "the control thread cannot be started (%d)", r);
    }
    return 0;
}

void st_control_stop(st_control *ctl)
{
    st_err err = {0};

    if (!ctl->started)
        return;
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
    st_images_free(ctl->images);
    st_vault_free(ctl->vault);
    st_directory_free(ctl->dir);
    st_vec_free(&ctl->all);
    st_vec_free(&ctl->dirty);
    st_vec_free(&ctl->over);
    pthread_cond_destroy(&ctl->wake);
    pthread_mutex_destroy(&ctl->lock);
    free(ctl);
}

st_directory *st_control_directory(st_control *ctl)
{
    return ctl->dir;
}

st_images *st_control_images(st_control *ctl)
{
    return ctl->images;
}

st_store *st_control_store(st_control *ctl)
{
    return ctl->store;
}

st_engine *st_control_engine(st_control *ctl)
{
    return ctl->options.engine;
}

int64_t st_control_last_ms(const st_control *ctl)
{
    return ST_MAX(st_core_now(ctl->core), ctl->billing->books.last_ms);
}
