/*
 * From the meter's records to entries of books: numbers become names, grants that repeat are counted.
 */
#include <jansson.h>
#include <string.h>

#include "base/num.h"
#include "control/billing.h"
#include "control/state.h"

#define FPS_DEFAULT_M 24000 /* as src/rules has it */

/* ---- a job's document ------------------------------------------------------------------------- */

const char *st_doc_workload(const char *doc, st_arena *arena)
{
    json_t *root = doc && strstr(doc, "\"workload\"") ? json_loads(doc, 0, NULL) : NULL;
    const char *word = json_string_value(json_object_get(root, "workload"));
    const char *ret =
        word && word[0] && strlen(word) <= ST_NAME_MAX ? st_arena_strdup(arena, word) : NULL;

    json_decref(root);
    return ret;
}

static int64_t frames_per_second_m(const json_t *root)
{
    const json_t *fps = json_object_get(root, "fps");
    int64_t m = 0;

    if (json_is_integer(fps))
        m = json_integer_value(fps) * 1000;
    else if (json_is_real(fps))
        m = (int64_t)(json_real_value(fps) * 1000 + 0.5);
    else if (json_is_string(fps) &&
             st_parse_milli(json_string_value(fps), 1, INT32_MAX, &m, NULL) < 0)
        m = 0;
    return m > 0 ? m : FPS_DEFAULT_M;
}

int64_t st_doc_pieces(const char *doc, st_component by)
{
    json_t *root = json_loads(doc, 0, NULL);
    const json_t *array = json_object_get(root, "array");
    const json_t *frames = json_object_get(array, "frames");
    int64_t n = 0, step = json_integer_value(json_object_get(array, "step"));

    if (json_array_size(frames) == 2) {
        int64_t first = json_integer_value(json_array_get(frames, 0));
        int64_t last = json_integer_value(json_array_get(frames, 1));

        n = last >= first ? (last - first) / (step > 0 ? step : 1) + 1 : 0;
    }
    if (by == ST_PAY_MINUTES)
        n = n * 1000000 / frames_per_second_m(root);
    json_decref(root);
    return n;
}

/* ---- records ---------------------------------------------------------------------------------- */

static const char *account_name(const st_core *core, int32_t id)
{
    return id > ST_ROOT ? st_tree_account(st_core_tree(core), id)->name : "";
}

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

/* Of GRANT and FIX. */
static void put_job(const st_control *ctl, const st_record *rec, const char *doc, st_arena *arena,
                    st_entry *e)
{
    const st_tree *tree = st_core_tree(ctl->core);
    const st_fleet *fleet = st_core_fleet(ctl->core);
    char name[ST_ID_TEXT];

    st_control_id_text(ctl, rec->job, name);
    e->job = st_arena_strdup(arena, name);
    e->user = rec->user >= 0 && (size_t)rec->user < tree->users.n ? tree->users.v[rec->user] : NULL;
    e->workload = st_doc_workload(doc, arena);
    e->stay = rec->stay;
    e->piece = rec->kind == ST_REC_FIX ? rec->fixes : rec->piece;
    e->level = rec->level;
    if (rec->profile >= 0 && rec->type >= 0)
        e->profile = st_mig_name(fleet->types.v[rec->type].board, (st_mig)rec->profile);
    e->basis = rec->basis;
    e->topo = rec->topo;
    e->tasks = rec->tasks;
    e->cut = rec->cut;
    e->held = rec->held;
    e->cpu = rec->cpu;
    e->ram = rec->ram;
    e->seen = delta(rec, rec->seen);
    e->busy = delta(rec, rec->busy);
    e->energy_mj = delta(rec, rec->energy_mj);
    e->lost = rec->lost;
    put_grants(fleet, rec, arena, e);
}

void st_entry_of(const st_control *ctl, const st_record *rec, const char *doc, st_arena *arena,
                 st_entry *ret)
{
    static const st_entry_kind kinds[] = {[ST_REC_GRANT] = ST_ENTRY_USAGE,
                                          [ST_REC_RESERVE] = ST_ENTRY_RESERVE,
                                          [ST_REC_FIX] = ST_ENTRY_FIX,
                                          [ST_REC_FLEET] = ST_ENTRY_FLEET};
    const st_fleet *fleet = st_core_fleet(ctl->core);

    *ret = (st_entry){.kind = kinds[rec->kind], .from_ms = rec->from_ms, .to_ms = rec->to_ms};
    ret->gpu = rec->type >= 0 ? fleet->types.v[rec->type].name : NULL;
    if (rec->kind == ST_REC_FLEET) {
        ret->account = ST_BOOK_FLEET;
        ret->total = rec->total;
        ret->granted = rec->granted;
        ret->idle = rec->idle;
        ret->unhealthy = rec->unhealthy;
        ret->overhead = rec->overhead;
        return;
    }
    ret->account = account_name(ctl->core, rec->account);
    ret->gpu_m = rec->gpu_m;
    ret->share = rec->share;
    if (rec->kind == ST_REC_RESERVE && rec->type < 0)
        ret->gpu = "*";
    else if (rec->kind != ST_REC_RESERVE)
        put_job(ctl, rec, doc, arena, ret);
}
