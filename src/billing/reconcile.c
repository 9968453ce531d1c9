/*
 * Comparing everything that counts (billing/money.h): the meter with the core, the ledger with its books, usage with
 * itself and with the rows of jobs, and what agents counted with what was metered. What is wrong is said in one sentence
 * with its likely cause; nothing is changed.
 *
 * The loop fixes the moment: the ledger as bytes, and the number of the last entry. The rest is read by another thread.
 *
 * Books are never pruned, so what they say of all jobs does not fit into memory for ever. Jobs are looked at in parts, by
 * a hash of their names, and the books are read once for each part.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "billing/billing.h"
#include "core/metering.h"

#define SAID_MAX  100   /* sentences; more are counted */
#define SLACK_MS  60000 /* between an order and what an agent sees of it */
#define SLACK_ONE 20    /* and a twentieth */

struct st_reconcile {
    const st_billing *b; /* for its zones, which do not change */
    st_strbuf ledger;
    int64_t n, at_ms;
    st_err meter, core; /* what was wrong with them; code 0: nothing */
    bool sums_up;
    const bool *stop; /* set by another thread; NULL: nobody will */
};

/* ---- in the loop ------------------------------------------------------------------------------------------ */

st_reconcile *st_reconcile_new(st_control *ctl)
{
    const st_billing *b = ctl->billing;
    st_reconcile *rec;

    if (!b->meter || !ctl->core)
        return NULL;
    rec = st_xcalloc(1, sizeof *rec);
    rec->b = b;
    rec->n = b->books.n;
    rec->at_ms = st_core_now(ctl->core);
    st_ledger_save(b->ledger, &rec->ledger);
    rec->sums_up = st_ledger_sum(b->ledger) == 0;
    st_meter_check(b->meter, &rec->meter);
    st_core_meter_check(ctl->core, b->meter, &rec->core);
    return rec;
}

void st_reconcile_free(st_reconcile *rec)
{
    if (!rec)
        return;
    st_strbuf_done(&rec->ledger);
    free(rec);
}

/* ---- outside ---------------------------------------------------------------------------------------------- */

/* What the books say of a job, from its first interval to its last. */
typedef struct usage {
    char job[ST_ID_TEXT];
    int stay, piece;
    int64_t from_ms, to_ms, gpu_m, held;
    int64_t end_ms; /* of the last interval that is not empty, after corrections */
    st_level level;
    st_cut cut;
} usage;

typedef struct run {
    const st_reconcile *rec;
    st_finding_fn fn;
    void *ctx;
    int64_t n, began_ms;
    st_ledger *ledger; /* while the first part is read */
    bool cut_short;    /* an entry could not be read or applied; told once */
    uint64_t part, parts;
    st_map *ids; /* of the part's jobs, by name */
    ST_VEC(usage) jobs;
    const st_control *names; /* for what jobs are called */
    st_arena *arena;
} run;

static void found(run *r, const char *fmt, ...) ST_PRINTF(2, 3);

static void found(run *r, const char *fmt, ...)
{
    char sentence[700];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, ap);
    va_end(ap);
    if (r->n++ < SAID_MAX)
        r->fn(r->ctx, sentence);
}

static int stopped(const run *r, st_err *err)
{
    return r->rec->stop && __atomic_load_n(r->rec->stop, __ATOMIC_RELAXED)
               ? st_fail(err, ST_EDOWN, "stintd is stopping")
               : 0;
}

static bool in_part(const run *r, const char *job)
{
    return st_hash_str(0, job) % r->parts == r->part;
}

static usage *job_of(run *r, const char *job)
{
    int64_t at;

    if (!st_map_get(r->ids, job, &at)) {
        usage u = {.from_ms = -1};

        strncpy(u.job, job, sizeof u.job - 1);
        at = (int64_t)r->jobs.n;
        st_vec_push(&r->jobs, u);
        st_map_put(r->ids, job, at);
    }
    return &r->jobs.v[at];
}

/* Intervals of a stay join, and stays follow each other. */
static void add_usage(run *r, const st_book_row *row, const st_entry *e)
{
    usage *u = job_of(r, e->job);
    bool next_piece = e->stay == u->stay && e->piece == u->piece + 1;
    bool next_stay = e->stay > u->stay && e->piece == 1;

    if (u->from_ms < 0)
        u->from_ms = e->from_ms;
    else if (!next_piece && !next_stay)
        found(r,
              "job %s: entry %" PRId64 " has piece %d of stay %d behind piece %d of stay %d; an "
              "interval is missing or there twice",
              e->job, row->n, e->piece, e->stay, u->piece, u->stay);
    else if (next_piece ? e->from_ms != u->to_ms : e->from_ms < u->to_ms)
        found(r,
              "job %s: entry %" PRId64 " begins at %" PRId64
              " where the one before ends at %" PRId64 "; time was lost or counted twice",
              e->job, row->n, e->from_ms, u->to_ms);
    u->stay = e->stay;
    u->piece = e->piece;
    u->to_ms = e->to_ms;
    u->cut = e->cut;
    u->gpu_m = e->gpu_m;
    u->level = e->level;
    u->held += e->held;
    if (e->to_ms > e->from_ms || u->end_ms == 0)
        u->end_ms = e->to_ms;
}

/* Its end was heard late: what had been metered beyond it was given back. */
static void add_fix(run *r, const st_entry *e)
{
    usage *u = job_of(r, e->job);

    u->held += e->held;
    if (e->held < 0 || e->cpu < 0 || e->ram < 0)
        u->end_ms = ST_MIN(u->end_ms, e->from_ms);
}

static int fold(void *ctx, const st_book_row *row, st_err *err)
{
    run *r = ctx;
    st_entry e;
    int bad = stopped(r, err);

    if (bad < 0)
        return bad;
    st_arena_reset(r->arena);
    if (row->n == 1)
        r->began_ms = row->at_ms;
    bad = st_entry_read(row->data, strlen(row->data), r->arena, &e, err);
    if (bad == 0 && r->ledger)
        bad = st_billing_apply(r->rec->b, r->ledger, &e, err);
    if (bad < 0 && r->cut_short)
        return 1;
    if (bad < 0) {
        r->cut_short = true;
        found(r,
              "entry %" PRId64 " (number %" PRId64 " of account \"%s\") does not follow from those "
              "before it: %s; the store was changed by another program, or by another version",
              row->n, row->seq, row->account, err->msg);
        return 1;
    }
    if (e.kind == ST_ENTRY_USAGE && in_part(r, e.job))
        add_usage(r, row, &e);
    else if (e.kind == ST_ENTRY_FIX && in_part(r, e.job))
        add_fix(r, &e);
    return 0;
}

static int check_ledger(run *r, st_store *reader, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf again = {0};
    const st_reconcile *rec = r->rec;
    int64_t before = r->n;
    int bad = st_billing_first(rec->b, reader, &r->ledger, err);

    if (bad == 0)
        bad = st_store_book_read(reader, 1, rec->n, fold, r, err);
    if (bad < 0)
        return bad;
    if (r->n > before)
        return 0; /* the fold ended early, or what it found explains the rest */
    st_ledger_save(r->ledger, &again);
    if (again.n != rec->ledger.n || memcmp(again.s, rec->ledger.s, again.n) != 0)
        found(r,
              "the ledger in memory is not what its %" PRId64 " entries add up to; restart stintd, "
              "which folds them again, and report this",
              rec->n);
    return 0;
}

/* ---- jobs ---------------------------------------------------------------------------------------------------- */

/* What agents counted over all stays, device-milliseconds; -1: nothing. */
static int64_t counted_ms(const char *result)
{
    json_t *root = json_loads(result, 0, NULL);
    const json_t *held = json_object_get(json_object_get(root, "usage"), "held_gpu_ms");
    int64_t v = json_is_integer(held) ? json_integer_value(held) : -1;

    json_decref(root);
    return v;
}

static void check_counters(run *r, const st_job_row *row, const usage *u)
{
    int64_t agents = counted_ms(row->result), metered = u->held / ST_WHOLE_M;
    int64_t slack = metered / SLACK_ONE + u->gpu_m / ST_WHOLE_M * SLACK_MS * u->stay;

    if (agents < 0 || u->level != ST_LEVEL_WHOLE || u->gpu_m == 0)
        return;
    if (agents > metered + slack)
        found(r,
              "job %s: agents counted %" PRId64 " s of its GPUs and %" PRId64
              " s were metered; its "
              "tasks went on after stintd had taken it off, or a node's clock is wrong",
              u->job, agents / 1000, metered / 1000);
    else if (agents < metered - slack)
        found(r,
              "job %s: %" PRId64 " s of its GPUs were metered and agents counted only %" PRId64
              " s; its tasks began late, or reports of an agent were lost",
              u->job, metered / 1000, agents / 1000);
}

static int check_job(void *ctx, const st_job_row *row, st_err *err)
{
    run *r = ctx;
    char name[ST_ID_TEXT];
    int64_t at;
    int bad = stopped(r, err);
    char has[ST_FMT_MAX], counted[ST_FMT_MAX];

    if (bad < 0)
        return bad;
    st_control_id_text(r->names, (uint64_t)row->id, name);
    if (!in_part(r, name))
        return 0;
    bool metered = st_map_get(r->ids, name, &at);
    const usage *u = metered ? &r->jobs.v[at] : NULL;
    /* What began before the books is in them from their beginning on; what is not over, or was not then, is not. */
    if (row->submit_ms < r->began_ms || row->end_ms == ST_STORE_NEVER ||
        row->end_ms > r->rec->at_ms)
        return 0;
    if (row->start_ms == ST_STORE_NEVER && metered)
        found(r, "job %s never started, and %" PRId64 " ms of it were metered", name,
              u->to_ms - u->from_ms);
    if (row->start_ms == ST_STORE_NEVER)
        return 0;
    if (!metered) {
        found(r,
              "job %s ran from %" PRId64 " to %" PRId64 " and is in no book; its entry was refused "
              "(see entry_refused in the log)",
              name, row->start_ms, row->end_ms);
        return 0;
    }
    if (u->from_ms < row->start_ms ||
        u->from_ms > ST_MIN(row->start_ms + ST_METER_READY_MS, row->end_ms))
        found(r, "job %s started at %" PRId64 " and is metered from %" PRId64 " on", name,
              row->start_ms, u->from_ms);
    if (u->cut == ST_CUT_GOES_ON)
        found(r, "job %s ended at %" PRId64 " and its last interval goes on at %" PRId64, name,
              row->end_ms, u->to_ms);
    else if (u->cut == ST_CUT_ENDED && u->end_ms != row->end_ms && row->end_ms >= u->from_ms)
        found(r, "job %s ended at %" PRId64 " and is metered until %" PRId64, name, row->end_ms,
              u->end_ms);
    if (u->gpu_m != row->gpu_m)
        found(r, "job %s has %s GPUs and is metered with %s", name, st_fmt_milli(has, row->gpu_m),
              st_fmt_milli(counted, u->gpu_m));
    check_counters(r, row, u);
    return 0;
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

static void check_moment(run *r)
{
    if (r->rec->meter.code)
        found(r, "%s; the devices' time does not add up, report this", r->rec->meter.msg);
    if (r->rec->core.code)
        found(r, "%s; the meter missed something, report this", r->rec->core.msg);
    if (!r->rec->sums_up)
        found(r, "what all accounts have does not add up to nothing; report this");
}

int st_reconcile_run(const st_control *ctl, st_reconcile *rec, st_store *reader, int64_t at_once,
                     st_finding_fn fn, void *ctx, int64_t *ret_n, st_err *err)
{
    const st_job_filter all = {0};
    run r = {.rec = rec, .fn = fn, .ctx = ctx, .names = ctl};
    int bad = st_store_begin(reader, err);

    r.arena = st_arena_new();
    r.parts = 1 + (uint64_t)(rec->n / at_once);
    check_moment(&r);
    for (; bad >= 0 && r.part < r.parts; r.part++) {
        r.ids = st_map_new();
        bad = r.part == 0 ? check_ledger(&r, reader, err)
                          : st_store_book_read(reader, 1, rec->n, fold, &r, err);
        st_ledger_free(ST_TAKE(r.ledger));
        if (bad >= 0)
            bad = st_store_jobs_list(reader, &all, check_job, &r, err);
        st_map_free(r.ids);
        st_vec_clear(&r.jobs);
    }
    st_store_rollback(reader);
    st_vec_free(&r.jobs);
    st_arena_free(r.arena);
    if (bad < 0)
        return bad;
    *ret_n = r.n;
    return 0;
}

/* ---- every day ---------------------------------------------------------------------------------------------------- */

static void say(void *ctx, const char *sentence)
{
    st_control_say(ctx, "event=difference reason=\"%s\"", sentence);
}

static void *daily(void *arg)
{
    st_control *ctl = arg;
    st_billing *b = ctl->billing;
    ST_CLEANUP(st_store_closep) st_store *reader = NULL;
    int64_t n = 0;
    st_err err = {0};
    int r = st_store_open_reader(ctl->store, &reader, &err);

    if (r == 0)
        r = st_reconcile_run(ctl, b->daily, reader, ST_RECONCILE_ENTRIES, say, ctl, &n, &err);
    if (r < 0)
        st_control_say(ctl, "event=reconcile_failed reason=\"%s\"", err.msg);
    else
        st_control_say(ctl, "event=reconciled differences=%" PRId64 " entries=%" PRId64, n,
                       b->daily->n);
    __atomic_store_n(&b->daily_n, r < 0 ? -1 : n, __ATOMIC_RELAXED);
    __atomic_store_n(&b->daily_over, true, __ATOMIC_RELEASE);
    return NULL;
}

void st_reconcile_end(st_control *ctl, bool wait)
{
    st_billing *b = ctl->billing;

    if (!b || !b->daily || (!wait && !__atomic_load_n(&b->daily_over, __ATOMIC_ACQUIRE)))
        return;
    __atomic_store_n(&b->daily_stop, true, __ATOMIC_RELAXED);
    pthread_join(b->daily_thread, NULL);
    st_reconcile_free(ST_TAKE(b->daily));
}

void st_reconcile_daily(st_control *ctl, int64_t now, bool quiet)
{
    st_billing *b = ctl->billing;
    int64_t day = st_zone_midnight(now);

    st_reconcile_end(ctl, false);
    /* Not on the day of the start: somebody has just looked at everything. */
    if (b->daily_day == 0)
        b->daily_day = day;
    if (!quiet || b->daily || b->daily_day == day)
        return;
    b->daily_day = day;
    b->daily = st_reconcile_new(ctl);
    if (!b->daily)
        return;
    b->daily_stop = b->daily_over = false;
    b->daily->stop = &b->daily_stop;
    if (pthread_create(&b->daily_thread, NULL, daily, ctl) != 0)
        st_reconcile_free(ST_TAKE(b->daily));
}
