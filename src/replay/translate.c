/*
 * Recorded events for the changed side (replay/state.h). Types, pools and nodes go by numbers in events, and a changed
 * fleet numbers them otherwise: they are found by name. What the changes decide is not taken from the log.
 */
#include <string.h>

#include "replay/state.h"

static int32_t pool_of(const st_rerun_side *side, int32_t pool)
{
    const st_fleet *was = st_core_fleet(side->lab->side[ST_WAS].core);

    if (pool < 0 || (size_t)pool >= was->pools.n || !st_pool_there(&was->pools.v[pool]))
        return pool;
    return st_fleet_pool(st_core_fleet(side->core), was->pools.v[pool].name);
}

static int32_t type_of(const st_rerun_side *side, int32_t type)
{
    const st_fleet *was = st_core_fleet(side->lab->side[ST_WAS].core);

    return type < 0 || (size_t)type >= was->types.n
               ? -1
               : st_fleet_type(st_core_fleet(side->core), was->types.v[type].name);
}

static uint32_t types_of(const st_rerun_side *side, uint32_t types)
{
    uint32_t ret = 0;

    for (int32_t t = 0; t < ST_TYPES_MAX; t++) {
        int32_t there = types >> t & 1 ? type_of(side, t) : -1;

        if (there >= 0)
            ret |= 1u << there;
    }
    return ret;
}

static void translate_quota(const st_rerun_side *side, st_quota *q)
{
    const st_quota was = *q;

    for (int32_t t = 0; t < ST_TYPES_MAX; t++)
        q->type_m[t] = ST_UNSET;
    for (int32_t t = 0; t < ST_TYPES_MAX; t++) {
        int32_t there = was.type_m[t] != ST_UNSET ? type_of(side, t) : -1;

        if (there >= 0)
            q->type_m[there] = was.type_m[t];
    }
}

static bool translate_job(const st_rerun_side *side, st_job_spec *spec, const char **ret_why)
{
    uint32_t types = spec->shape.types;
    int32_t pool = spec->pool;

    spec->pool = pool_of(side, pool);
    if (pool >= 0 && spec->pool < 0) {
        *ret_why = "its pool is not there";
        return false;
    }
    spec->shape.types = types_of(side, types);
    if (types != 0 && spec->shape.types == 0) {
        *ret_why = "none of its GPU types is there";
        return false;
    }
    return true;
}

/* Nodes are those of the document; of them, what happened to a node of that name happens. */
static bool translate_node_state(const st_rerun_side *side, st_event *ev)
{
    const st_fleet *was = st_core_fleet(side->lab->side[ST_WAS].core);
    int32_t node = ev->u.node_state.node;

    if (node < 0 || (size_t)node >= was->nodes.n)
        return false;
    ev->u.node_state.node = st_fleet_node(st_core_fleet(side->core), was->nodes.v[node]->name);
    return ev->u.node_state.node >= 0 && ev->u.node_state.state != ST_NODE_REMOVED;
}

static bool translate_fleet(st_rerun_side *side, st_event *ev, const char **ret_why)
{
    const st_fleet *fleet = st_core_fleet(side->core);

    switch (ev->kind) {
    case ST_EV_TYPE:
        return st_fleet_type(fleet, ev->u.type.name) < 0;
    case ST_EV_POOL:
        return st_fleet_pool(fleet, ev->u.pool.name) < 0;
    case ST_EV_NODE:
    case ST_EV_POOL_CHANGE:
    case ST_EV_POOL_REMOVE:
        return false;
    case ST_EV_NODE_STATE:
        return translate_node_state(side, ev);
    case ST_EV_ACCOUNT:
        translate_quota(side, &ev->u.account.guarantee);
        translate_quota(side, &ev->u.account.max);
        return true;
    case ST_EV_SUBMIT:
        return translate_job(side, &ev->u.job, ret_why);
    default:
        return true;
    }
}

/* What a job waits for may be over here already, however it ended. */
static void forget_over(st_rerun_side *side, st_job_spec *spec)
{
    int n = 0;

    for (int i = 0; i < spec->nafters; i++) {
        const st_await *a = &spec->afters[i];

        if (a->array ? st_core_array(side->core, a->id, NULL, NULL)
                     : st_core_job(side->core, a->id) != NULL)
            side->afters[n++] = *a;
    }
    spec->afters = side->afters;
    spec->nafters = n;
}

bool st_rerun_translate(st_rerun_side *side, const st_event *ev, st_event *ret,
                        const char **ret_why)
{
    const st_rerun_lab *lab = side->lab;
    const st_rerun_options *o = lab->options;

    *ret = *ev;
    if (!side->counting) /* before the changes all is as it was */
        return true;
    if (ev->kind == ST_EV_SUBMIT)
        forget_over(side, &ret->u.job);
    if (ev->kind == ST_EV_POLICY && o->policy) /* it was tried when it was read */
        (void)o->policy(o->policy_ctx, &ret->u.policy, NULL);
    if ((ev->kind == ST_EV_ACCOUNT || ev->kind == ST_EV_ACCOUNT_REMOVE) && lab->account_ids &&
        st_map_get(lab->account_ids, ev->u.account.name, NULL))
        return false;
    return lab->fleet ? translate_fleet(side, ret, ret_why) : true;
}

void st_rerun_translate_notes(st_rerun_side *side, st_notes *notes)
{
    const st_tree *was = st_core_tree(side->lab->side[ST_WAS].core);
    const st_tree *tree = st_core_tree(side->core);
    size_t kept = 0;

    for (size_t i = 0; i < notes->n; i++) {
        st_note note = notes->v[i];

        if (note.kind == ST_NOTE_AGREE) {
            if (note.v[0] < 0 || (size_t)note.v[0] >= was->accounts.n)
                continue;
            note.v[0] = st_tree_find(tree, was->accounts.v[note.v[0]]->name);
            if (note.v[0] < 0)
                continue;
        }
        notes->v[kept++] = note;
    }
    notes->n = kept;
}
