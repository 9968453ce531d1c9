/*
 * Looking at accounts, nodes and the whole scene: what there is at this moment
 * of a play, written the way scenario_expect.c writes what was wanted.
 */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "scenario/expect.h"
#include "share/share.h"

static void add_count(st_strbuf *out, int64_t n)
{
    st_strbuf_addf(out, "%lld", (long long)n);
}

static void add_milli(st_strbuf *out, int64_t n)
{
    char buf[ST_FMT_MAX];

    st_strbuf_add(out, st_fmt_milli(buf, n));
}

/* ---- accounts -------------------------------------------------------------------------- */

static const st_account *account_of(const st_play *play, const st_scn_expect *e)
{
    const st_tree *tree = st_core_tree(play->core);
    int32_t id = st_tree_find(tree, e->account);

    return id < 0 ? NULL : st_tree_account(tree, id);
}

static void add_amount(const st_scn_expect *e, const st_use *use, st_strbuf *out)
{
    char buf[ST_FMT_MAX];

    if (e->type >= 0)
        add_milli(out, use->type_m[e->type]);
    else if (e->dim == ST_RAM)
        st_strbuf_add(out, st_fmt_mib(buf, use->ram_mib));
    else
        add_milli(out, e->dim == ST_GPU ? use->gpu_m : use->cpu_m);
}

static void account_use(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    const st_account *a = account_of(play, e);

    if (a)
        add_amount(e, &a->now, out);
}

static void account_guaranteed(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    const st_account *a = account_of(play, e);

    if (a)
        add_amount(e, &a->guaranteed, out);
}

static void account_floor(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    const st_account *a = account_of(play, e);
    st_use floor = {0};

    if (!a)
        return;
    floor.gpu_m = st_quota_gpu_m(&a->floor);
    floor.cpu_m = ST_MAX(a->floor.cpu_m, 0);
    floor.ram_mib = ST_MAX(a->floor.ram_mib, 0);
    for (int t = 0; t < ST_TYPES_MAX; t++)
        floor.type_m[t] = ST_MAX(a->floor.type_m[t], 0);
    add_amount(e, &floor, out);
}

static void account_borrowed(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    const st_account *a = account_of(play, e);

    if (a)
        add_milli(out, st_share_borrowed_m(st_core_tree(play->core), a->id));
}

static void account_share(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    const st_account *a = account_of(play, e);
    st_share_counts counts = (st_share_counts)st_core_policy(play->core)->counts;
    st_standing standing;

    if (!a)
        return;
    standing = st_share_standing(st_core_tree(play->core), a->id, counts, NULL);
    add_milli(out, st_standing_share_m(standing));
}

static void account_lost(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    const st_account *a = account_of(play, e);

    if (a)
        add_milli(out, a->lost / ST_SCN_GPU_HOUR);
}

/* ---- nodes ----------------------------------------------------------------------------- */

static int64_t free_gpus(const st_node *node)
{
    int64_t n = 0;

    for (int d = 0; d < node->ndevs; d++)
        n += node->state == ST_NODE_READY && node->view.dev[d].mode == ST_DEV_FREE;
    return n;
}

static void node_free(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    add_count(out, free_gpus(st_core_fleet(play->core)->nodes.v[e->node]));
}

static void node_state(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    st_strbuf_add(out, st_node_state_name(st_core_fleet(play->core)->nodes.v[e->node]->state));
}

/* Its GPUs that are out of service alone. */
static void node_gpus(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    const st_node *node = st_core_fleet(play->core)->nodes.v[e->node];
    char number[16];

    for (int d = 0; d < node->ndevs; d++) {
        if (!(node->out >> d & 1))
            continue;
        snprintf(number, sizeof number, "%d", d);
        st_scn_list_add(out, number);
    }
}

static void node_jobs(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    for (size_t i = 0; i < play->s->jobs.n; i++) {
        const st_job *job = st_core_job(play->core, (uint64_t)i + 1);
        bool here = false;

        for (int t = 0; job && job->grants && st_job_on_devices(job) && t < job->tasks; t++)
            here |= job->grants[t].node == e->node;
        if (here)
            st_scn_list_add(out, play->s->jobs.v[i].spec.name);
    }
}

/* ---- the scene ------------------------------------------------------------------------- */

static void add_names(const st_play *play, const int64_t *jobs, size_t n, st_strbuf *out)
{
    for (size_t i = 0; i < n; i++)
        st_scn_list_add(out, play->s->jobs.v[jobs[i]].spec.name);
}

static void scene_victims(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    (void)e;
    add_names(play, play->victims.v, play->victims.n, out);
}

static void scene_started(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    (void)e;
    add_names(play, play->started.v, play->started.n, out);
}

static void scene_evictions(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    (void)e;
    add_count(out, play->evictions);
}

static void scene_evicted_gpus(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    (void)e;
    add_milli(out, play->evicted_m);
}

static void add_in_state(const st_play *play, unsigned states, st_strbuf *out)
{
    for (size_t i = 0; i < play->s->jobs.n; i++) {
        const st_play_job *j = &play->jobs[i];

        if (j->submitted && !j->refused && (states >> j->state & 1))
            st_scn_list_add(out, play->s->jobs.v[i].spec.name);
    }
}

static void scene_running(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    (void)e;
    add_in_state(play, 1u << ST_JOB_RUNNING, out);
}

static void scene_pending(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    (void)e;
    add_in_state(play, 1u << ST_JOB_PENDING, out);
}

static void scene_paused(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    (void)e;
    add_in_state(play, 1u << ST_JOB_PAUSED, out);
}

static void scene_leaving(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    (void)e;
    add_in_state(play, 1u << ST_JOB_NOTIFIED | 1u << ST_JOB_CHECKPOINTING, out);
}

static void scene_done(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    (void)e;
    add_in_state(play, 1u << ST_JOB_DONE, out);
}

static void scene_free(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    const st_fleet *fleet = st_core_fleet(play->core);
    int64_t n = 0;

    (void)e;
    for (size_t i = 0; i < fleet->nodes.n; i++)
        n += free_gpus(fleet->nodes.v[i]);
    add_count(out, n);
}

static void scene_incidents(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    int64_t n = 0;

    (void)e;
    for (size_t i = 0; i < st_core_nincidents(play->core); i++)
        n += !st_core_incident_at(play->core, i)->over;
    add_count(out, n);
}

static void scene_incidents_ever(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    (void)e;
    add_count(out, (int64_t)st_core_nincidents(play->core));
}

static void scene_breakers(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    int64_t n = 0;

    (void)e;
    for (size_t i = 0; i < st_core_nincidents(play->core); i++)
        n += st_core_incident_at(play->core, i)->breaker;
    add_count(out, n);
}

static int64_t in_states(const st_play *play, uint32_t states)
{
    const st_fleet *fleet = st_core_fleet(play->core);
    int64_t n = 0;

    for (size_t i = 0; i < fleet->nodes.n; i++)
        n += states >> fleet->nodes.v[i]->state & 1;
    return n;
}

static void scene_suspects(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    (void)e;
    add_count(out, in_states(play, 1u << ST_NODE_SUSPECT));
}

static void scene_out(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    (void)e;
    add_count(out, in_states(play, 1u << ST_NODE_FAILED | 1u << ST_NODE_DRAINING |
                                       1u << ST_NODE_REPAIR | 1u << ST_NODE_RETIRED));
}

static void scene_shrunk(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    (void)e;
    st_strbuf_add(out, st_core_tree(play->core)->shrunk ? "true" : "false");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void scene_floors(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    ST_VEC(const char *) names = {0};

    (void)e;
    for (size_t i = 0; i < play->floors.n; i++)
        st_vec_push(&names, st_tree_account(st_core_tree(play->core), play->floors.v[i])->name);
    if (names.n > 1)
        qsort(names.v, names.n, sizeof(*names.v), by_text);
    for (size_t i = 0; i < names.n; i++)
        st_scn_list_add(out, names.v[i]);
    st_vec_free(&names);
}

/* ---- the tables ------------------------------------------------------------------------ */

const st_expect_row st_expect_account[] = {
    {"use", ST_X_AMOUNTS, account_use},
    {"guaranteed", ST_X_AMOUNTS, account_guaranteed},
    {"floor", ST_X_AMOUNTS, account_floor},
    {"borrowed", ST_X_MILLI, account_borrowed},
    {"share", ST_X_MILLI, account_share},
    {"lost_gpu_hours", ST_X_MILLI, account_lost},
    {0},
};

const st_expect_row st_expect_node[] = {
    {"state", ST_X_NODE_STATE, node_state},
    {"free_gpus", ST_X_COUNT, node_free},
    {"jobs", ST_X_JOB_SET, node_jobs},
    {"gpus_out", ST_X_COUNTS, node_gpus},
    {0},
};

const st_expect_row st_expect_scene[] = {
    {"victims", ST_X_JOBS, scene_victims},
    {"started", ST_X_JOBS, scene_started},
    {"evictions", ST_X_COUNT, scene_evictions},
    {"evicted_gpus", ST_X_MILLI, scene_evicted_gpus},
    {"running", ST_X_JOB_SET, scene_running},
    {"leaving", ST_X_JOB_SET, scene_leaving},
    {"pending", ST_X_JOB_SET, scene_pending},
    {"paused", ST_X_JOB_SET, scene_paused},
    {"done", ST_X_JOB_SET, scene_done},
    {"free_gpus", ST_X_COUNT, scene_free},
    {"shrunk", ST_X_BOOL, scene_shrunk},
    {"incidents", ST_X_COUNT, scene_incidents},
    {"incidents_ever", ST_X_COUNT, scene_incidents_ever},
    {"breakers", ST_X_COUNT, scene_breakers},
    {"suspects", ST_X_COUNT, scene_suspects},
    {"nodes_out", ST_X_COUNT, scene_out},
    {"floors_changed", ST_X_ACCOUNT_SET, scene_floors},
    {0},
};

char *st_play_look(const st_play *play, const st_scn_expect *e)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf found = {0};

    e->row->found(play, e, &found);
    if (strcmp(st_strbuf_str(&found), e->want) == 0)
        return NULL;
    if (found.n == 0)
        st_strbuf_add(&found, "nothing");
    return st_strbuf_take(&found);
}

void st_play_about(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    if (e->job >= 0)
        st_strbuf_addf(out, "job %s: ", play->s->jobs.v[e->job].spec.name);
    else if (e->account)
        st_strbuf_addf(out, "account %s: ", e->account);
    else if (e->node >= 0)
        st_strbuf_addf(out, "node %s: ", play->s->nodes.v[e->node].spec.name);
    st_strbuf_add(out, e->row->key);
    if (e->row->form == ST_X_AMOUNTS)
        st_strbuf_addf(out, " %s",
                       e->type >= 0 ? play->s->types.v[e->type].doc.name
                                    : st_dim_name((st_dim)e->dim));
}
