/*
 * Looking at a job: its state, its place, its past, and why it waits; written
 * the way scenario_expect.c writes what was wanted.
 */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "scenario/expect.h"

static const st_play_job *job_of(const st_play *play, const st_scn_expect *e)
{
    return &play->jobs[e->job];
}

static void add_count(st_strbuf *out, int64_t n)
{
    st_strbuf_addf(out, "%lld", (long long)n);
}

static void add_milli(st_strbuf *out, int64_t n)
{
    char buf[ST_FMT_MAX];

    st_strbuf_add(out, st_fmt_milli(buf, n));
}

static void add_time(st_strbuf *out, int64_t ms)
{
    char buf[ST_FMT_MAX];

    st_strbuf_add(out, ms < 0 || ms == ST_TIME_NEVER ? "never" : st_fmt_duration(buf, ms));
}

static void job_state(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    const st_play_job *j = job_of(play, e);

    st_strbuf_add(out, j->refused     ? "refused"
                       : j->submitted ? st_job_state_name(j->state)
                                      : "not submitted");
    if (j->submitted && !j->refused && j->state == ST_JOB_PENDING &&
        strcmp(e->want, st_strbuf_str(out)) != 0) {
        st_strbuf_add(out, ": ");
        st_play_why(play, e->job, out);
    }
}

static void job_class(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    st_strbuf_add(out, st_class_name(job_of(play, e)->class));
}

static const char *node_name(const st_play *play, int32_t id)
{
    return st_core_fleet(play->core)->nodes.v[id]->name;
}

/* The next larger node id among the grants; -1 when there is none. */
static int32_t next_node(const st_play_job *j, int32_t after)
{
    int32_t next = -1;

    for (size_t i = 0; i < j->grants.n; i++) {
        int32_t id = j->grants.v[i].node;

        if (id > after && (next < 0 || id < next))
            next = id;
    }
    return next;
}

static void job_nodes(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    const st_play_job *j = job_of(play, e);

    for (int32_t id = -1; (id = next_node(j, id)) >= 0;)
        st_scn_list_add(out, node_name(play, id));
    if (out->n == 0)
        st_strbuf_add(out, "none");
}

static uint32_t devices_on(const st_play_job *j, int32_t node)
{
    uint32_t devs = 0;

    for (size_t i = 0; i < j->grants.n; i++)
        if (j->grants.v[i].node == node)
            devs |= j->grants.v[i].devs;
    return devs;
}

static void job_devices(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    const st_play_job *j = job_of(play, e);
    int32_t first = next_node(j, -1);
    bool named = strchr(e->want, ':') || (first >= 0 && next_node(j, first) >= 0);

    if (first >= 0 && !named) {
        st_scn_devices_text(devices_on(j, first), out);
        return;
    }
    for (int32_t id = first; id >= 0; id = next_node(j, id)) {
        st_strbuf_addf(out, "%s%s: ", id == first ? "" : ", ", node_name(play, id));
        st_scn_devices_text(devices_on(j, id), out);
    }
    if (first < 0)
        st_strbuf_add(out, "none");
}

static void job_type(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    int32_t type = job_of(play, e)->type;

    st_strbuf_add(out, type < 0 ? "none" : st_core_fleet(play->core)->types.v[type].name);
}

static void job_mig_start(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    const st_play_job *j = job_of(play, e);

    for (int start = 0; start < ST_MIG_MEMORY; start++) {
        for (size_t i = 0; i < j->grants.n; i++) {
            char buf[ST_FMT_MAX];

            if (j->grants.v[i].mig_start != start)
                continue;
            snprintf(buf, sizeof(buf), "%d", start);
            st_scn_list_add(out, buf);
        }
    }
}

/* How many different racks or blocks the gang is in; a node outside any counts for itself. */
static void count_places(const st_play *play, const st_scn_expect *e, st_topo level, st_strbuf *out)
{
    const st_fleet *fleet = st_core_fleet(play->core);
    const st_play_job *j = job_of(play, e);
    int64_t n = 0;

    for (size_t i = 0; i < j->grants.n; i++) {
        int32_t mine = fleet->nodes.v[j->grants.v[i].node]->place[level];
        bool seen = false;

        for (size_t k = 0; k < i && !seen; k++)
            seen = mine >= 0 ? fleet->nodes.v[j->grants.v[k].node]->place[level] == mine
                             : j->grants.v[k].node == j->grants.v[i].node;
        n += !seen;
    }
    add_count(out, n);
}

static void job_racks(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    count_places(play, e, ST_TOPO_RACK, out);
}

static void job_blocks(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    count_places(play, e, ST_TOPO_BLOCK, out);
}

static void job_preemptions(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    add_count(out, job_of(play, e)->preemptions);
}

static void job_starts(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    add_count(out, job_of(play, e)->starts);
}

static void job_started(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    add_time(out, job_of(play, e)->started_ms);
}

static void job_ended(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    add_time(out, job_of(play, e)->ended_ms);
}

static void job_saved(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    add_time(out, job_of(play, e)->saved_ms);
}

static void job_lost(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    add_milli(out, job_of(play, e)->lost_gpu_ms / ST_SCN_GPU_HOUR);
}

static void job_yields_to(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    uint64_t id = job_of(play, e)->claimant;

    st_strbuf_add(out, id == 0 ? "none" : play->s->jobs.v[id - 1].spec.name);
}

static void job_until(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    add_time(out, job_of(play, e)->until_ms);
}

/* ---- reasons --------------------------------------------------------------------------- */

static void reasons_done(st_reasons *list)
{
    st_vec_free(list);
}

static void explain(const st_play *play, int64_t job, st_reasons *ret)
{
    const st_job *j = st_core_job(play->core, (uint64_t)job + 1);

    if (j && (j->state == ST_JOB_PENDING || j->state == ST_JOB_PAUSED))
        (void)st_core_explain(play->core, j->id, ret, NULL);
}

static void add_codes(const st_reasons *list, st_strbuf *out)
{
    for (int code = 0; code < ST_WHY_COUNT; code++) {
        for (size_t i = 0; i < list->n; i++) {
            if ((int)list->v[i].code == code) {
                st_scn_list_add(out, st_reason_name((st_why)code));
                break;
            }
        }
    }
}

static bool has_code(const st_reasons *list, int code)
{
    for (size_t i = 0; i < list->n; i++)
        if ((int)list->v[i].code == code)
            return true;
    return false;
}

static void job_reasons(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    ST_CLEANUP(reasons_done) st_reasons list = {0};

    explain(play, e->job, &list);
    if (has_code(&list, e->dim))
        st_strbuf_add(out, e->want);
    else
        add_codes(&list, out);
}

static void job_not_reasons(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    ST_CLEANUP(reasons_done) st_reasons list = {0};

    explain(play, e->job, &list);
    if (!has_code(&list, e->dim)) {
        st_strbuf_add(out, e->want);
    } else {
        st_strbuf_add(out, "it among ");
        st_play_why(play, e->job, out);
    }
}

static void job_reasons_exact(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    ST_CLEANUP(reasons_done) st_reasons list = {0};

    explain(play, e->job, &list);
    add_codes(&list, out);
}

static void job_blocked_by(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    ST_CLEANUP(reasons_done) st_reasons list = {0};

    explain(play, e->job, &list);
    for (size_t i = 0; i < list.n; i++) {
        const char *name;

        if (list.v[i].other == 0)
            continue;
        name = play->s->jobs.v[list.v[i].other - 1].spec.name;
        if (strcmp(name, e->want) == 0) {
            st_strbuf_clear(out);
            st_strbuf_add(out, name);
            return;
        }
        st_scn_list_add(out, name);
    }
    if (out->n == 0)
        st_strbuf_add(out, "none");
}

static bool same(int64_t want, int64_t have)
{
    return want == ST_KEEP || want == have;
}

static bool matches(const st_play *play, const st_scn_why *w, const st_reason *r)
{
    const st_tree *tree = st_core_tree(play->core);

    if (w->code != r->code || !same(w->used, r->used) || !same(w->asked, r->asked) ||
        !same(w->bound, r->bound) || !same(w->until_ms, r->until_ms))
        return false;
    if (w->account &&
        (r->account < 0 || strcmp(st_tree_account(tree, r->account)->name, w->account) != 0))
        return false;
    return (w->type < 0 || w->type == r->type) && (w->dim < 0 || w->dim == r->dim) &&
           (w->job < 0 || (uint64_t)w->job + 1 == r->other);
}

static void add_quantity(const st_reason *r, const char *name, int64_t n, st_strbuf *out)
{
    char buf[ST_FMT_MAX];

    switch (st_scn_why_unit(r->code, r->dim, strcmp(name, "bound") == 0)) {
    case ST_U_COUNT:
        snprintf(buf, sizeof(buf), "%lld", (long long)n);
        break;
    case ST_U_MILLI:
        st_fmt_milli(buf, n);
        break;
    case ST_U_MIB:
        st_fmt_mib(buf, n);
        break;
    case ST_U_MS:
        st_fmt_duration(buf, n);
        break;
    }
    st_strbuf_addf(out, ", %s %s", name, buf);
}

static void add_reason(const st_play *play, const st_reason *r, st_strbuf *out)
{
    char buf[ST_FMT_MAX];

    st_strbuf_addf(out, "code %s", st_reason_name(r->code));
    if (r->account >= 0)
        st_strbuf_addf(out, ", account %s",
                       st_tree_account(st_core_tree(play->core), r->account)->name);
    if (r->type >= 0)
        st_strbuf_addf(out, ", type %s", st_core_fleet(play->core)->types.v[r->type].name);
    add_quantity(r, "used", r->used, out);
    add_quantity(r, "asked", r->asked, out);
    add_quantity(r, "bound", r->bound, out);
    if (r->other > 0)
        st_strbuf_addf(out, ", job %s", play->s->jobs.v[r->other - 1].spec.name);
    if (r->until_ms > 0 && r->until_ms != ST_TIME_NEVER)
        st_strbuf_addf(out, ", until %s", st_fmt_duration(buf, r->until_ms));
}

static void job_reason(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    ST_CLEANUP(reasons_done) st_reasons list = {0};

    explain(play, e->job, &list);
    for (size_t i = 0; i < list.n; i++) {
        if (matches(play, e->why, &list.v[i])) {
            st_strbuf_clear(out);
            st_strbuf_add(out, e->want);
            return;
        }
        st_strbuf_add(out, i > 0 ? "; " : "");
        add_reason(play, &list.v[i], out);
    }
    if (list.n == 0)
        st_strbuf_add(out, "no reason");
}

static void job_estimate(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    st_estimates list = {0};
    int64_t at = -1;

    (void)st_core_estimate(play->core, &list, NULL);
    for (size_t i = 0; i < list.n; i++)
        if (list.v[i].job == (uint64_t)e->job + 1)
            at = list.v[i].start_ms;
    st_vec_free(&list);
    add_time(out, at);
}

/* The start that is reserved for, by forecasts or by limits. */
static void add_reserved(const st_play *play, int64_t job, bool limits, st_strbuf *out)
{
    st_reserved_list list = {0};
    int64_t at = -1;

    st_core_reserved(play->core, &list);
    for (size_t i = 0; i < list.n; i++)
        if (list.v[i].job == (uint64_t)job + 1)
            at = limits ? list.v[i].by_ms : list.v[i].at_ms;
    st_vec_free(&list);
    add_time(out, at);
}

static void job_reserved_at(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    add_reserved(play, e->job, false, out);
}

static void job_reserved_by(const st_play *play, const st_scn_expect *e, st_strbuf *out)
{
    add_reserved(play, e->job, true, out);
}

const st_expect_row st_expect_job[] = {
    {"state", ST_X_STATE, job_state},
    {"class", ST_X_CLASS, job_class},
    {"node", ST_X_NODE, job_nodes},
    {"nodes", ST_X_NODES, job_nodes},
    {"devices", ST_X_DEVICES, job_devices},
    {"type", ST_X_TYPE, job_type},
    {"mig_start", ST_X_COUNTS, job_mig_start},
    {"racks", ST_X_COUNT, job_racks},
    {"blocks", ST_X_COUNT, job_blocks},
    {"preemptions", ST_X_COUNT, job_preemptions},
    {"starts", ST_X_COUNT, job_starts},
    {"started_at", ST_X_DURATION, job_started},
    {"ended_at", ST_X_DURATION, job_ended},
    {"estimate", ST_X_DURATION, job_estimate},
    {"reserved_at", ST_X_DURATION, job_reserved_at},
    {"reserved_by", ST_X_DURATION, job_reserved_by},
    {"saved", ST_X_DURATION, job_saved},
    {"lost_gpu_hours", ST_X_MILLI, job_lost},
    {"yields_to", ST_X_JOB, job_yields_to},
    {"until", ST_X_DURATION, job_until},
    {"reasons", ST_X_REASONS, job_reasons},
    {"not_reasons", ST_X_REASONS, job_not_reasons},
    {"reasons_exact", ST_X_REASON_SET, job_reasons_exact},
    {"reason", ST_X_REASON, job_reason},
    {"blocked_by", ST_X_JOB, job_blocked_by},
    {0},
};
