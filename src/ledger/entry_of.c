/*
 * From the meter's records to entries of books: numbers become names, grants that repeat are counted.
 */
#include "ledger/ledger.h"

static void put_grants(const st_fleet *fleet, const st_record *rec, st_arena *arena, st_entry *e)
{
    st_entry_grant *list;

    if (!rec->grants || rec->tasks == 0)
        return;
    list = st_arena_alloc(arena, (size_t)rec->tasks * sizeof *list);
    for (int t = 0; t < rec->tasks; t++) {
        const st_grant *g = &rec->grants[t];
        const char *node = fleet->nodes.v[g->node]->name;
        st_entry_grant *last = e->ngrants > 0 ? &list[e->ngrants - 1] : NULL;

        if (last && last->node == node && last->devs == g->devs && last->mig_start == g->mig_start)
            last->n++;
        else
            list[e->ngrants++] =
                (st_entry_grant){.node = node, .devs = g->devs, .mig_start = g->mig_start, .n = 1};
    }
    e->grants = list;
}

/* A correction of what nobody measured corrects nothing. */
static int64_t delta(const st_record *rec, int64_t v)
{
    return rec->kind == ST_REC_FIX && v == ST_UNKNOWN ? 0 : v;
}

/* Of GRANT, FIX and LOST. */
static void put_stay(const st_record *rec, const st_record_names *names, st_arena *arena,
                     st_entry *e)
{
    const st_tree *tree = names->tree;
    const st_fleet *fleet = names->fleet;

    e->job = names->job;
    e->user = rec->user >= 0 && (size_t)rec->user < tree->users.n ? tree->users.v[rec->user] : NULL;
    e->workload = names->workload;
    e->priority_class = names->priority_class;
    e->name = names->name;
    e->labels = names->labels;
    e->stay = rec->stay;
    e->piece = rec->kind == ST_REC_GRANT ? rec->piece : rec->fixes;
    e->level = rec->level;
    if (rec->profile >= 0 && rec->type >= 0)
        e->profile = st_mig_name(fleet->types.v[rec->type].board, (st_mig)rec->profile);
    e->basis = rec->basis;
    e->topo = rec->topo;
    e->tasks = rec->tasks;
    e->cut = rec->cut;
    e->inside = rec->inside;
    e->inside_idle = rec->inside_idle;
    e->held = rec->held;
    e->cpu = rec->cpu;
    e->ram = rec->ram;
    e->seen = delta(rec, rec->seen);
    e->busy = delta(rec, rec->busy);
    e->energy_mj = delta(rec, rec->energy_mj);
    e->lost = rec->lost;
    put_grants(fleet, rec, arena, e);
}

void st_entry_of_record(const st_record *rec, const st_record_names *names, st_arena *arena,
                        st_entry *ret)
{
    static const st_entry_kind kinds[] = {[ST_REC_GRANT] = ST_ENTRY_USAGE,
                                          [ST_REC_RESERVE] = ST_ENTRY_RESERVE,
                                          [ST_REC_FIX] = ST_ENTRY_FIX,
                                          [ST_REC_LOST] = ST_ENTRY_LOST,
                                          [ST_REC_FLEET] = ST_ENTRY_FLEET};

    *ret = (st_entry){.kind = kinds[rec->kind], .from_ms = rec->from_ms, .to_ms = rec->to_ms};
    ret->gpu = rec->type >= 0 ? names->fleet->types.v[rec->type].name : NULL;
    if (rec->kind == ST_REC_FLEET) {
        ret->account = ST_BOOK_FLEET;
        ret->total = rec->total;
        ret->granted = rec->granted;
        ret->idle = rec->idle;
        ret->unhealthy = rec->unhealthy;
        ret->overhead = rec->overhead;
        return;
    }
    ret->account = rec->account > ST_ROOT ? st_tree_account(names->tree, rec->account)->name : "";
    ret->gpu_m = rec->gpu_m;
    ret->share = rec->share;
    if (rec->kind == ST_REC_RESERVE && rec->type < 0)
        ret->gpu = "*";
    else if (rec->kind != ST_REC_RESERVE)
        put_stay(rec, names, arena, ret);
}
