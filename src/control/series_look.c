/*
 * What a look at the state and at what engines measured adds to a bucket (control/series_look.h).
 *
 * What an account has, its ancestors have: rows of accounts count in those below.
 */
#include "control/series_look.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "billing/money.h"
#include "share/share.h"

void st_gathered_init(st_gathered *g)
{
    *g = (st_gathered){.at = st_idmap_new(), .tenants = st_idmap_new()};
}

void st_gathered_done(st_gathered *g)
{
    for (int k = 0; k < ST_SERIES_KINDS; k++)
        st_vec_free(&g->rows[k]);
    st_idmap_free(g->at);
    st_idmap_free(g->tenants);
}

static st_series_row *row_of(st_gathered *g, st_series_kind kind, uint64_t id)
{
    while (g->rows[kind].n <= id)
        st_vec_push(&g->rows[kind], (st_series_row){.id = g->rows[kind].n});
    return &g->rows[kind].v[id];
}

static st_series_row *job_row(st_gathered *g, uint64_t id)
{
    int64_t at;

    if (!st_idmap_get(g->at, id, &at)) {
        at = (int64_t)g->rows[ST_SERIES_JOB].n;
        st_idmap_put(g->at, id, at);
        st_vec_push(&g->rows[ST_SERIES_JOB], (st_series_row){.id = id});
    }
    return &g->rows[ST_SERIES_JOB].v[at];
}

/* ---- the state --------------------------------------------------------------------------------- */

static void accounts(st_gathered *g, const st_tree *tree, int64_t dt)
{
    for (size_t i = 0; i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];
        st_series_row *row;

        if (a->gone)
            continue;
        row = row_of(g, ST_SERIES_ACCOUNT, i);
        st_series_put(row, ST_SERIES_WATCHED, dt);
        st_series_put(row, ST_SERIES_HELD, a->now.gpu_m * dt);
        /* Zero jobs are as much of an answer as some. */
        st_series_put(row, ST_SERIES_RUNNING, 0);
        st_series_put(row, ST_SERIES_WAITING, 0);
        st_series_put(row, ST_SERIES_WANTED, 0);
        if (i == ST_ROOT) {
            st_series_put(row, ST_SERIES_CAPACITY, tree->capacity.gpu_m * dt);
            continue;
        }
        st_series_put(row, ST_SERIES_GUARANTEED, ST_MIN(a->guaranteed.gpu_m, a->now.gpu_m) * dt);
        st_series_put(row, ST_SERIES_FLOOR, st_quota_gpu_m(&a->floor) * dt);
        st_series_put(
            row, ST_SERIES_SHARE,
            st_standing_share_m(st_share_standing(tree, (int32_t)i, ST_COUNTS_TOTAL, NULL)) * 1000 *
                dt);
    }
}

/* To an account and all above it. */
static void put_up(st_gathered *g, const st_tree *tree, int32_t account, st_series_column column,
                   int64_t v)
{
    for (int32_t a = account; a >= 0; a = a == ST_ROOT ? -1 : st_tree_account(tree, a)->parent)
        st_series_put(row_of(g, ST_SERIES_ACCOUNT, (uint64_t)a), column, v);
}

static void jobs(st_gathered *g, const st_core *core, int64_t dt)
{
    const st_tree *tree = st_core_tree(core);

    for (size_t i = 0; i < st_core_njobs(core); i++) {
        const st_job *job = st_core_job_at(core, i);

        if (st_job_on_devices(job)) {
            st_series_row *row = job_row(g, job->id);

            st_series_put(row, ST_SERIES_WATCHED, dt);
            st_series_put(row, ST_SERIES_HELD, st_job_gpu_m(job) * dt);
            put_up(g, tree, job->account, ST_SERIES_RUNNING, dt);
        } else if (job->state == ST_JOB_PENDING) {
            put_up(g, tree, job->account, ST_SERIES_WAITING, dt);
            put_up(g, tree, job->account, ST_SERIES_WANTED, st_job_gpu_m(job) * dt);
        }
    }
}

static void residents(st_gathered *g, const st_node *n, int64_t dt)
{
    for (size_t i = 0; i < n->residents.n; i++) {
        const st_job *job = n->residents.v[i].job;
        int64_t gpu_m;
        unsigned devs;

        if (!st_job_on_devices(job))
            continue;
        devs = job->grants[n->residents.v[i].task].devs;
        gpu_m = st_shape_gpu_m(&job->shape);
        st_series_put(row_of(g, ST_SERIES_NODE, (uint64_t)n->id), ST_SERIES_HELD, gpu_m * dt);
        for (int d = 0; d < n->ndevs; d++)
            if (devs >> d & 1)
                st_series_put(row_of(g, ST_SERIES_GPU, ST_SERIES_GPU_ID(n->id, d)), ST_SERIES_HELD,
                              gpu_m / __builtin_popcount(devs) * dt);
    }
}

static void nodes(st_gathered *g, const st_fleet *fleet, int64_t dt)
{
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        const st_node *n = fleet->nodes.v[i];
        st_series_row *row;

        if (n->state == ST_NODE_REMOVED)
            continue;
        row = row_of(g, ST_SERIES_NODE, (uint64_t)n->id);
        st_series_put(row, ST_SERIES_WATCHED, dt);
        st_series_put(row, ST_SERIES_HELD, 0);
        st_series_put(row, ST_SERIES_AWAY, st_node_away(n) ? dt : 0);
        residents(g, n, dt);
    }
}

void st_gather_state(st_gathered *g, const st_core *core, int64_t dt_ms)
{
    accounts(g, st_core_tree(core), dt_ms);
    jobs(g, core, dt_ms);
    nodes(g, st_core_fleet(core), dt_ms);
}

/* ---- what tasks used ------------------------------------------------------------------------------ */

/* A part of it, of a grant of several devices. Only what was seen counts: what a device does not measure is in no sum. */
static void put_used(st_series_row *row, const st_used *u, int part, int of)
{
    static const struct {
        st_used_kind kind;
        st_series_column seen, sum;
    } columns[] = {
        {ST_USED_BUSY, ST_SERIES_SEEN, ST_SERIES_BUSY},
        {ST_USED_ENERGY, ST_SERIES_POWERED, ST_SERIES_ENERGY},
        {ST_USED_MEM, ST_SERIES_FILLED, ST_SERIES_MEMORY},
        {ST_USED_HEAT, ST_SERIES_WARMED, ST_SERIES_HEAT},
    };

    for (size_t i = 0; i < ST_ARRAY_LEN(columns); i++) {
        int64_t seen = u->v[ST_USED_SEEN], sum = u->v[columns[i].kind];

        if (!(u->has >> columns[i].kind & 1) || !(u->has >> ST_USED_SEEN & 1) || seen <= 0)
            continue;
        st_series_put(row, columns[i].seen, seen * (part + 1) / of - seen * part / of);
        st_series_put(row, columns[i].sum, sum * (part + 1) / of - sum * part / of);
    }
}

static void measured(st_gathered *g, const st_tree *tree, const st_measure *m)
{
    int of = __builtin_popcount(m->devs), part = 0;
    int64_t account;

    put_used(job_row(g, m->job), &m->used, 0, 1);
    put_used(row_of(g, ST_SERIES_NODE, (uint64_t)m->node), &m->used, 0, 1);
    for (int d = 0; d < ST_SERIES_GPUS; d++)
        if (m->devs >> d & 1)
            put_used(row_of(g, ST_SERIES_GPU, ST_SERIES_GPU_ID(m->node, d)), &m->used, part++, of);
    if (!st_idmap_get(g->tenants, (uint64_t)m->tenant, &account))
        return;
    for (int32_t a = (int32_t)account; a >= 0;
         a = a == ST_ROOT ? -1 : st_tree_account(tree, a)->parent)
        put_used(row_of(g, ST_SERIES_ACCOUNT, (uint64_t)a), &m->used, 0, 1);
}

void st_gather_measures(st_gathered *g, const st_core *core, const st_measures *measures)
{
    const st_tree *tree = st_core_tree(core);
    size_t nodes_n = st_core_fleet(core)->nodes.n;

    if (measures->list.n == 0)
        return;
    for (size_t i = ST_ROOT + 1; i < tree->accounts.n; i++)
        st_idmap_put(g->tenants, (uint64_t)tree->accounts.v[i]->serial, (int64_t)i);
    for (size_t i = 0; i < measures->list.n; i++)
        if (measures->list.v[i].node >= 0 && (size_t)measures->list.v[i].node < nodes_n)
            measured(g, tree, &measures->list.v[i]);
}

/* ---- money ---------------------------------------------------------------------------------------- */

void st_gather_spent(st_gathered *g, st_tx *tx)
{
    const st_tree *tree = st_core_tree(st_tx_core(tx));
    ST_CLEANUP(st_freep) int64_t *spent = NULL;
    st_bill bill = {0};
    st_err err;

    if (st_tx_bill(tx, "", NULL, &bill, &err) < 0)
        return;
    spent = st_xcalloc(tree->accounts.n, sizeof *spent);
    for (size_t i = 0; i < bill.lines.n; i++) {
        int32_t a = st_tx_book_account(tx, bill.lines.v[i].account);

        for (a = ST_MAX(a, ST_ROOT); a >= 0;
             a = a == ST_ROOT ? -1 : st_tree_account(tree, a)->parent)
            spent[a] += bill.lines.v[i].amount;
    }
    for (size_t i = 0; i < tree->accounts.n; i++)
        if (!tree->accounts.v[i]->gone)
            st_series_put(row_of(g, ST_SERIES_ACCOUNT, i), ST_SERIES_SPENT, spent[i]);
    st_bill_done(&bill);
}

/* ---- taking --------------------------------------------------------------------------------------- */

static int by_part(const void *a, const void *b, void *kind)
{
    const st_series_row *x = a, *y = b;
    int64_t p = st_series_part(*(const st_series_kind *)kind, x->id),
            q = st_series_part(*(const st_series_kind *)kind, y->id);

    if (p != q)
        return p < q ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Jobs that nothing was said of in this bucket are not here any more. */
static void forget_jobs(st_gathered *g)
{
    size_t n = 0;

    for (size_t i = 0; i < g->rows[ST_SERIES_JOB].n; i++) {
        st_series_row *row = &g->rows[ST_SERIES_JOB].v[i];

        if (!st_series_says(row)) {
            st_idmap_del(g->at, row->id);
            continue;
        }
        st_idmap_put(g->at, row->id, (int64_t)n);
        g->rows[ST_SERIES_JOB].v[n++] = *row;
    }
    g->rows[ST_SERIES_JOB].n = n;
}

void st_gathered_take(st_gathered *g, st_series_kind kind, st_series_set *ret)
{
    if (kind == ST_SERIES_JOB)
        forget_jobs(g);
    for (size_t i = 0; i < g->rows[kind].n; i++) {
        st_series_row row;

        if (!st_series_says(&g->rows[kind].v[i]))
            continue;
        st_series_carry(kind, &g->rows[kind].v[i], &row);
        st_vec_push(&ret->rows, row);
    }
    if (ret->rows.n > 0)
        qsort_r(ret->rows.v, ret->rows.n, sizeof *ret->rows.v, by_part, &kind);
}
