/*
 * Pools as they are, and as a change would leave them. A change is tried on a copy of the core, by the functions that make it: what is
 * refused there is refused with the same sentence, and nothing is kept. Changes themselves are in fleet.c.
 */
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "base/mem.h"
#include "base/quote.h"

/* 0 is a pool's word for an even part of its smallest node, so it is shown as none. */
static void rules_json(const st_pool *pool, st_strbuf *out)
{
    const st_pool_rules rules = st_pool_rules_of(pool);
    const char *sep = "", *unit;

    st_out_raw(out, "allow", "[");
    for (int p = 0; p < ST_ALLOW_COUNT; p++) {
        if (!(rules.allow >> p & 1))
            continue;
        st_strbuf_addf(out, "%s\"%s\"", sep, st_allow_name((st_allow)p));
        sep = ",";
    }
    st_strbuf_addc(out, ']');
    st_out_text(out, "engine", rules.engine[0] ? rules.engine : "auto");
    st_out_raw(out, "yields", "[");
    sep = "";
    for (int y = 0; y < ST_YIELD_COUNT; y++) {
        if (rules.lacks >> y & 1)
            continue;
        st_strbuf_addf(out, "%s\"%s\"", sep, st_yield_name((st_yield)y));
        sep = ",";
    }
    st_strbuf_addc(out, ']');
#define X(field, key, kind, def, hi)                                                         \
    unit = (kind) == ST_F_MIB ? key "_mib" : (kind) == ST_F_DURATION ? key "_seconds" : key; \
    if (rules.field == 0)                                                                    \
        st_out_raw(out, unit, "null");                                                       \
    else if ((kind) == ST_F_MILLI || (kind) == ST_F_DURATION)                                \
        st_out_milli(out, unit, rules.field);                                                \
    else                                                                                     \
        st_out_int(out, unit, rules.field);
    ST_POOL_RULE_TABLE(X)
#undef X
}

static void pool_json(const st_core *core, size_t p, st_strbuf *out)
{
    const st_fleet *fleet = st_core_fleet(core);
    const st_pool *pool = &fleet->pools.v[p];
    int64_t nodes = 0, gpus = 0, ready = 0;
    const char *sep = "";

    for (size_t i = 0; i < fleet->nodes.n; i++) {
        const st_node *n = fleet->nodes.v[i];

        if (n->pool != (int32_t)p || n->state == ST_NODE_REMOVED)
            continue;
        nodes++;
        gpus += n->ndevs;
        ready += n->state == ST_NODE_READY ? n->ndevs - __builtin_popcount(n->out) : 0;
    }
    st_strbuf_addc(out, '{');
    st_out_text(out, "name", pool->name);
    st_out_raw(out, "levels", "[");
    for (int l = 0; l < ST_LEVEL_COUNT; l++) {
        if (!(pool->levels >> l & 1))
            continue;
        st_strbuf_addf(out, "%s\"%s\"", sep, st_level_name((st_level)l));
        sep = ",";
    }
    st_strbuf_addc(out, ']');
    st_out_milli(out, "oversubscribe", pool->oversub_m);
    rules_json(pool, out);
    st_out_int(out, "nodes", nodes);
    st_out_int(out, "gpus", gpus);
    st_out_int(out, "gpus_ready", ready);
    st_strbuf_addc(out, '}');
}

static int fill_pools(st_question *q, st_core *core, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(core);
    char text[ST_QUOTE_MAX];

    for (size_t p = 0; q->name[0] && p < fleet->pools.n; p++) {
        if (strcmp(fleet->pools.v[p].name, q->name) == 0) {
            pool_json(core, p, &q->out);
            snprintf(q->version, sizeof q->version, "%lld",
                     (long long)st_tx_version(q->tx, "pool", q->name));
            return 0;
        }
    }
    if (q->name[0])
        return st_fail(err, ST_ENOENT, "there is no pool %s", st_quote(text, q->name));
    st_strbuf_add(&q->out, "{\"pools\":[");
    for (size_t p = 0; p < fleet->pools.n; p++) {
        if (!st_pool_there(&fleet->pools.v[p]))
            continue;
        if (q->out.s[q->out.n - 1] == '}')
            st_strbuf_addc(&q->out, ',');
        pool_json(core, p, &q->out);
    }
    st_strbuf_add(&q->out, "]}");
    return 0;
}

void st_api_pools_list(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_pools, NULL, 0);
}

void st_api_pool_get(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_pools, st_call_param(call, "name"), 0);
}

/* What the change does not mention stays as it is. */
int st_api_pool_event(const st_doc *doc, const st_pool *now, st_event *ret, st_err *err)
{
    st_pool_doc pool = {.levels = now->levels, .oversub_m = now->oversub_m, .rules = now->rules};
    int r = st_spec_pool(doc, st_doc_root(doc), &pool, err);

    if (r < 0)
        return r;
    ret->u.pool.levels = pool.levels;
    ret->u.pool.oversub_m = pool.oversub_m;
    ret->u.pool.rules = pool.rules;
    return 0;
}

/* ---- a change that is only tried ------------------------------------------------------------- */

typedef struct pool_trial {
    st_doc *doc;
    st_strbuf saved, before; /* the state; the pool in it, JSON */
    st_event event;
    int64_t now;
} pool_trial;

static void trial_free(void *owner)
{
    pool_trial *t = owner;

    st_doc_free(t->doc);
    st_strbuf_done(&t->saved);
    st_strbuf_done(&t->before);
    free(t);
}

static int fill_trial(st_question *q, st_core *core, st_err *err)
{
    pool_trial *t = q->owner;
    const st_fleet *fleet = st_core_fleet(core);
    int p = st_fleet_pool(fleet, q->name), r;
    char text[ST_QUOTE_MAX];

    if (p < 0)
        return st_fail(err, ST_ENOENT, "there is no pool %s", st_quote(text, q->name));
    r = st_api_condition_of(q->tx, q->call, "pool", q->name, q->name, err);
    if (r == 0)
        r = st_api_pool_event(t->doc, &fleet->pools.v[p], &t->event, err);
    if (r < 0)
        return r;
    t->event.u.pool.name = q->name;
    t->now = st_tx_now(q->tx);
    pool_json(core, (size_t)p, &t->before);
    st_core_save(core, &t->saved);
    return 0;
}

static int64_t degraded(const st_core *core)
{
    int64_t n = 0;

    for (size_t i = 0; i < st_core_nbookings(core); i++)
        n += st_booking_degraded(st_core_booking_at(core, i));
    return n;
}

static int try_change(st_question *q, st_err *err)
{
    pool_trial *t = q->owner;
    st_effects fx = {0};
    st_core *copy = NULL;
    int64_t homeless = 0;
    int r = st_question_read(q, err);

    if (r == 0)
        r = st_core_load(st_strbuf_str(&t->saved), t->saved.n, &copy, err);
    if (r == 0) {
        st_core_settle(copy, t->now, &fx); /* what happens in any case is not the change's */
        st_effects_clear(&fx);
        homeless = degraded(copy);
        r = st_core_step(copy, &t->event, t->now, &fx, err);
    }
    if (r == 0) {
        st_strbuf_addc(&q->out, '{');
        st_out_text(&q->out, "name", q->name);
        st_out_raw(&q->out, "before", st_strbuf_str(&t->before));
        st_out_raw(&q->out, "after", "");
        pool_json(copy, (size_t)st_fleet_pool(st_core_fleet(copy), q->name), &q->out);
        st_trial_jobs_json(q, copy, &fx, ST_FX_START, 0, "starts");
        st_trial_jobs_json(q, copy, &fx, ST_FX_NOTIFY, 0, "displaces");
        st_out_int(&q->out, "bookings_degraded", ST_MAX(0, degraded(copy) - homeless));
        st_strbuf_addc(&q->out, '}');
    }
    st_effects_done(&fx);
    st_core_free(copy);
    return r;
}

void st_api_pool_try(st_api *api, st_call *call)
{
    pool_trial *t = st_xcalloc(1, sizeof *t);
    st_question *q;
    st_err err = {0};
    int r = st_call_doc(call, &t->doc, &err);

    if (r == 0)
        r = st_doc_expect(t->doc, st_doc_root(t->doc), ST_DOC_MAP, &err);
    if (r < 0) {
        st_call_fail(call, &err);
        trial_free(t);
        return;
    }
    t->event.kind = ST_EV_POOL_CHANGE;
    t->event.u.pool.force = st_call_query_bool(call, "force", false);
    q = st_question_new(api, call, fill_trial, st_call_param(call, "name"), 0);
    q->work = try_change;
    q->drop = trial_free;
    q->owner = t;
    st_question_post(q);
}
