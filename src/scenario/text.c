/*
 * A play in words: one line per thing that happened, for people.
 */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "scenario/scenario.h"

static void add_devices(uint32_t devs, st_strbuf *out)
{
    const char *comma = "";

    for (int d = 0; d < ST_DEVS_MAX; d++) {
        int last = d;

        if (!(devs >> d & 1))
            continue;
        while (devs >> (last + 1) & 1)
            last++;
        st_strbuf_addf(out, "%s%d", comma, d);
        if (last > d)
            st_strbuf_addf(out, "-%d", last);
        comma = ",";
        d = last;
    }
}

void st_play_grants_text(const st_play *play, const st_grant *grants, size_t n, st_strbuf *out)
{
    const st_fleet *fleet = st_core_fleet(play->core);

    for (size_t i = 0; i < n; i++) {
        uint32_t devs = 0;
        bool told = false;

        for (size_t k = 0; k < i; k++)
            told |= grants[k].node == grants[i].node;
        if (told)
            continue;
        for (size_t k = i; k < n; k++)
            if (grants[k].node == grants[i].node)
                devs |= grants[k].devs;
        st_strbuf_addf(out, "%s%s", i > 0 ? " " : "", fleet->nodes.v[grants[i].node]->name);
        if (devs) {
            st_strbuf_addc(out, ':');
            add_devices(devs, out);
        }
        if (grants[i].mig_start >= 0)
            st_strbuf_addf(out, "@%d", grants[i].mig_start);
    }
}

void st_play_why(const st_play *play, int64_t job, st_strbuf *out)
{
    const st_job *j = st_core_job(play->core, (uint64_t)job + 1);
    st_reasons list = {0};

    if (j && (j->state == ST_JOB_PENDING || j->state == ST_JOB_PAUSED))
        (void)st_core_explain(play->core, j->id, &list, NULL);
    for (size_t i = 0; i < list.n; i++) {
        st_strbuf_add(out, i > 0 ? "; " : "");
        st_reason_text(play->core, &list.v[i], ST_ROOT, out);
    }
    st_vec_free(&list);
}

void st_play_expected(const st_play *play, int64_t job, st_strbuf *out)
{
    st_estimates list = {0};
    char buf[ST_FMT_MAX], lo[ST_FMT_MAX], hi[ST_FMT_MAX];

    if (st_core_estimate(play->core, &list, NULL) < 0)
        return;
    for (size_t i = 0; i < list.n; i++) {
        const st_estimate *e = &list.v[i];

        if (e->job != (uint64_t)job + 1 || e->start_ms == ST_TIME_NEVER)
            continue;
        st_strbuf_addf(out, "%sshould start at about %s", out->n > 0 ? "; " : "",
                       st_fmt_duration(buf, e->start_ms));
        if (e->seen > 0)
            st_strbuf_addf(out, ", from %s to %s as 8 in 10 such estimates",
                           st_fmt_duration(lo, e->lo_ms), st_fmt_duration(hi, e->hi_ms));
    }
    st_vec_free(&list);
}

static const char *job_name(const st_play *play, uint64_t id)
{
    return play->s->jobs.v[id - 1].spec.name;
}

/* "for CLAIMANT, until 2m30s" */
static void add_claim(const st_play *play, const st_effect *fx, st_strbuf *out)
{
    char buf[ST_FMT_MAX];

    if (fx->other > 0)
        st_strbuf_addf(out, "for %s", job_name(play, fx->other));
    if (fx->until_ms > 0)
        st_strbuf_addf(out, "%sby %s", out->n > 0 ? ", " : "", st_fmt_duration(buf, fx->until_ms));
}

static void add_lost(const st_effect *fx, st_strbuf *out)
{
    char buf[ST_FMT_MAX];

    if (fx->lost_gpu_ms > 0)
        st_strbuf_addf(out, "%s GPU-hours of work lost",
                       st_fmt_milli(buf, fx->lost_gpu_ms / (INT64_C(3600) * 1000)));
}

static void tell_job(const st_play *play, const st_effect *fx, st_strbuf *what, st_strbuf *where)
{
    const st_scn_job *job = &play->s->jobs.v[fx->job - 1];
    const st_grant *grants = fx->ngrants > 0 ? play->grants.v + fx->grants_at : NULL;
    char buf[ST_FMT_MAX];
    st_job shape = {.shape = job->spec.shape, .tasks = job->spec.tasks};

    switch (fx->kind) {
    case ST_FX_QUEUED:
        st_strbuf_add(what, "submitted");
        st_strbuf_addf(where, "%s, %s GPU", job->spec.account,
                       st_fmt_milli(buf, st_job_gpu_m(&shape)));
        break;
    case ST_FX_START:
    case ST_FX_RESUME:
        st_strbuf_addf(what, "%s, %s", fx->kind == ST_FX_START ? "started" : "resumed",
                       st_class_name(fx->class));
        st_play_grants_text(play, grants, (size_t)fx->ngrants, where);
        break;
    case ST_FX_CLASS:
        st_strbuf_addf(what, "now %s", st_class_name(fx->class));
        break;
    case ST_FX_HOLD:
        st_strbuf_add(what, "others must make room");
        st_play_grants_text(play, grants, (size_t)fx->ngrants, where);
        break;
    case ST_FX_UNHOLD:
        st_strbuf_add(what, "room no longer held");
        break;
    case ST_FX_NOTIFY:
        st_strbuf_add(what, "must yield");
        add_claim(play, fx, where);
        break;
    case ST_FX_SPARE:
        st_strbuf_add(what, "may stay after all");
        break;
    case ST_FX_CHECKPOINT:
        st_strbuf_add(what, "is saving its work");
        add_claim(play, fx, where);
        break;
    case ST_FX_PAUSE:
        st_strbuf_add(what, "paused in memory");
        add_claim(play, fx, where);
        break;
    case ST_FX_REQUEUE:
        st_strbuf_add(what, "back in the queue");
        add_lost(fx, where);
        break;
    case ST_FX_RETRY:
        st_strbuf_add(what, "failed, to be tried again");
        st_strbuf_addf(where, "at %s", st_fmt_duration(buf, fx->until_ms));
        break;
    case ST_FX_END:
        st_strbuf_add(what, st_job_state_name(fx->state));
        add_lost(fx, where);
        break;
    case ST_FX_DRAIN:
        st_strbuf_addf(what, "must be off node %s",
                       st_core_fleet(play->core)->nodes.v[fx->node]->name);
        st_strbuf_addf(where, "by %s", st_fmt_duration((char[ST_FMT_MAX]){0}, fx->until_ms));
        break;
    default:
        st_strbuf_add(what, st_effect_name(fx->kind));
        break;
    }
}

void st_play_what(const st_play *play, const st_play_event *event, st_strbuf *what,
                  st_strbuf *where)
{
    const st_effect *fx = &event->fx;
    char buf[ST_FMT_MAX];

    if (event->refused) {
        st_strbuf_addf(what, "%s refused", event->what);
        st_strbuf_add(where, event->refused);
    } else if (fx->job > 0) {
        tell_job(play, fx, what, where);
    } else if (fx->kind == ST_FX_FLOOR) {
        st_strbuf_add(what, "floor changed");
        st_strbuf_addf(where, "account %s: %s GPU are guaranteed now",
                       st_tree_account(st_core_tree(play->core), fx->account)->name,
                       st_fmt_milli(buf, fx->floor_m));
    } else if (fx->kind == ST_FX_NODE) {
        st_strbuf_addf(what, "node %s", st_node_state_name((st_node_state)fx->node_state));
        st_strbuf_add(where, st_core_fleet(play->core)->nodes.v[fx->node]->name);
    } else if (fx->kind == ST_FX_GPU) {
        st_strbuf_addf(what, "GPU %s", st_node_state_name((st_node_state)fx->node_state));
        st_strbuf_addf(where, "GPU %" PRIu64 " of %s", fx->other,
                       st_core_fleet(play->core)->nodes.v[fx->node]->name);
    } else if (fx->kind == ST_FX_INCIDENT) {
        st_strbuf_addf(what, "incident %s", st_incident_name((st_incident_news)fx->news));
        st_strbuf_addf(where, "%" PRIu64, fx->other);
        if (fx->node >= 0)
            st_strbuf_addf(where, " %s", st_core_fleet(play->core)->nodes.v[fx->node]->name);
    }
}
