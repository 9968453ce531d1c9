/*
 * What tasks used, from the reports of engines into the job's row.
 *
 * While a job lives its last sums are kept in memory; agents say them again after a restart. When
 * it ends they go into the row's `result`: per grant of its last stay (`usage`, `scrub`), and over
 * all its stays together. A report that comes later, such as that its devices were scrubbed,
 * corrects the row.
 */
#include <jansson.h>
#include <stdlib.h>

#include "base/mem.h"
#include "billing/billing.h"
#include "control/state.h"

/* ---- as JSON ------------------------------------------------------------------------------- */

static json_t *sums_json(const st_used *used)
{
    json_t *o = json_object();

    for (int k = 0; k < ST_USED_COUNT; k++)
        if (used->has >> k & 1)
            json_object_set_new(o, st_used_key((st_used_kind)k), json_integer(used->v[k]));
    return o;
}

static json_t *scrub_json(const st_scrub *s)
{
    return json_pack("{s:s, s:I, s:I, s:I}", "result", st_scrub_name(s->result), "bytes",
                     (json_int_t)s->bytes, "found", (json_int_t)s->found, "ms", (json_int_t)s->ms);
}

static void put_grant(json_t *root, const st_live_used *u)
{
    json_t *grant = json_array_get(json_object_get(root, "grants"), (size_t)u->task);

    if (!grant || json_integer_value(json_object_get(root, "stay")) != u->stay)
        return;
    if (u->used.has)
        json_object_set_new(grant, "usage", sums_json(&u->used));
    if (u->scrub.result != ST_SCRUB_PENDING)
        json_object_set_new(grant, "scrub", scrub_json(&u->scrub));
}

/* ---- jobs that live ------------------------------------------------------------------------- */

static st_live_used *find(st_live *live, int stay, int task)
{
    /* From where the last one was: a node tells of its tasks in the same order each time. */
    for (size_t k = 0; k < live->used.n; k++) {
        size_t i = (live->used_next + k) % live->used.n;

        if (live->used.v[i].stay == stay && live->used.v[i].task == task) {
            live->used_next = i + 1;
            return &live->used.v[i];
        }
    }
    st_vec_push(&live->used, (st_live_used){.stay = stay, .task = task});
    live->used_next = live->used.n;
    return &live->used.v[live->used.n - 1];
}

static void note(st_live_used *u, const st_report *r)
{
    if (r->used.has)
        u->used = r->used;
    if (r->scrub.result != ST_SCRUB_PENDING)
        u->scrub = r->scrub;
}

void st_live_used_write(st_live *live)
{
    json_t *root = live->used.n > 0 && live->detail ? json_loads(live->detail, 0, NULL) : NULL;
    st_used all = {0};
    char *text;

    if (!root)
        return;
    for (size_t i = 0; i < live->used.n; i++) {
        st_used_add(&all, &live->used.v[i].used);
        put_grant(root, &live->used.v[i]);
    }
    if (all.has)
        json_object_set_new(root, "usage", sums_json(&all));
    text = json_dumps(root, JSON_COMPACT);
    ST_ASSERT(text);
    free(live->detail);
    live->detail = text;
    json_decref(root);
}

/* ---- jobs that are over --------------------------------------------------------------------- */

/* What the row says of the job as a whole grows by what is new of this grant. */
static void put_late(json_t *root, const st_report *r)
{
    json_t *grants = json_object_get(root, "grants"), *all = json_object_get(root, "usage");
    const json_t *before = json_object_get(json_array_get(grants, (size_t)r->task), "usage");
    st_live_used u = {.stay = r->stay, .task = r->task};

    if (json_integer_value(json_object_get(root, "stay")) != r->stay)
        return;
    note(&u, r);
    if (!all && u.used.has) {
        all = json_object();
        json_object_set_new(root, "usage", all);
    }
    for (int k = 0; k < ST_USED_COUNT && u.used.has; k++) {
        const char *key = st_used_key((st_used_kind)k);
        int64_t had = json_integer_value(json_object_get(before, key));
        int64_t sum = json_integer_value(json_object_get(all, key));

        if (u.used.has >> k & 1)
            json_object_set_new(all, key,
                                json_integer(k == ST_USED_MEM_PEAK ? ST_MAX(sum, u.used.v[k])
                                                                   : sum + u.used.v[k] - had));
    }
    put_grant(root, &u);
}

/* All that one transaction has of a job, from the first on: its row is read and written once, however many tasks. */
static void late(st_tx *tx, size_t first)
{
    const st_report *r = &tx->late.v[first];
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_freep) char *text = NULL;
    json_t *root;
    st_job_row row;
    st_err err = {0};
    int bad = st_tx_open(tx, &err);

    if (bad == 0)
        bad = st_store_job_get(tx->ctl->store, (int64_t)r->job, arena, &row, &err);
    root = bad == 0 ? json_loads(row.result, 0, NULL) : NULL;
    if (root) {
        for (size_t i = first; i < tx->late.n; i++)
            if (tx->late.v[i].job == r->job)
                put_late(root, &tx->late.v[i]);
        text = json_dumps(root, JSON_COMPACT);
        row.result = text;
        bad = st_store_job_update(tx->ctl->store, &row, &err);
    }
    json_decref(root);
    if (bad < 0 && bad != -ST_ENOENT) /* ENOENT: it was cleared away meanwhile */
        st_tx_fault(tx, bad, &err);
}

void st_control_used_late(st_tx *tx)
{
    for (size_t i = 0; i < tx->late.n && !tx->broken; i++) {
        bool seen = false;

        for (size_t k = 0; k < i && !seen; k++)
            seen = tx->late.v[k].job == tx->late.v[i].job;
        if (!seen)
            late(tx, i);
    }
    st_vec_free(&tx->late);
}

/* Bills as of now show it already. Nothing follows from it that could not be told again: counts only grow, and those
 * that an interval ends with are in the log. */
static void hear(st_tx *tx, const st_report *r)
{
    st_billing *b = tx->ctl->billing;
    st_records none = {0};
    st_sums sums;

    if (!r->used.has || !st_meter_watches(b->meter, r->job, r->stay))
        return;
    st_sums_of(&r->used, &sums);
    st_meter_used(b->meter, r->job, r->stay, r->task, &sums, &none);
    ST_ASSERT(none.n == 0);
}

void st_control_used(st_tx *tx, const st_report *r)
{
    st_live *live = st_control_live(tx->ctl, r->job);
    st_sums sums;

    if (r->task < 0 || r->task >= ST_TASKS_MAX)
        return;
    /* What is written down about it is written when the interval it is about ends; of one that is over, now. */
    if (live && r->stay >= 0 && r->stay <= live->stay) {
        st_live_used *u = find(live, r->stay, r->task);

        note(u, r);
        u->unmetered |= r->used.has != 0;
        hear(tx, r);
    } else if (!live && r->last) {
        st_vec_push(&tx->late, *r);
        if (r->used.has && r->stay > 0) {
            st_sums_of(&r->used, &sums);
            st_money_used(tx, r->job, r->stay, r->task, &sums);
        }
    }
}
