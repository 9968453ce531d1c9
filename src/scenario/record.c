/*
 * Following a play: effects become the player's own records, because a job that
 * has ended leaves the core, and become the lines a person reads.
 */
#include "scenario/play.h"

#include <string.h>

#include "base/mem.h"

void st_play_differ(st_play *play, int line, char *text)
{
    st_vec_push(&play->diffs, (st_play_diff){line, play->now, text});
}

void st_play_note_refusal(st_play *play, const st_scn_action *a, const char *why)
{
    st_play_event event = {.fx = {.at_ms = play->now, .account = -1, .node = a->node},
                           .action = a->job,
                           .refused = st_xstrdup(why),
                           .what = st_scn_do_name(a->kind)};

    if (a->kind == ST_DO_SUBMIT) {
        st_play_job *j = &play->jobs[a->job];

        j->refused = true;
        free(j->refusal);
        j->refusal = st_xstrdup(why);
    }
    st_vec_push(&play->events, event);
}

static void take_grants(const st_play *play, const st_effect *fx, st_play_job *j)
{
    st_vec_clear(&j->grants);
    for (int i = 0; i < fx->ngrants; i++)
        st_vec_push(&j->grants, play->fx.grants.v[fx->grants_at + (size_t)i]);
}

/* It had to go for somebody else: the core counts that in the job, and one that ends has left. */
static bool was_preempted(const st_play *play, const st_effect *fx, const st_play_job *j)
{
    const st_job *job = st_core_job(play->core, fx->job);

    if (job)
        return job->preemptions > j->preemptions;
    return fx->kind == ST_FX_END && fx->state == ST_JOB_CANCELLED && j->claimant != 0 &&
           !play->cancelling;
}

static void off_devices(st_play *play, const st_effect *fx, st_play_job *j)
{
    const st_scn_job *spec = &play->s->jobs.v[fx->job - 1];

    if (was_preempted(play, fx, j)) {
        const st_job *job = st_core_job(play->core, fx->job);
        st_job shape = {.shape = spec->spec.shape, .tasks = spec->spec.tasks};

        j->preemptions = job ? job->preemptions : j->preemptions + 1;
        play->evictions++;
        play->evicted_m += st_job_gpu_m(&shape);
    }
    j->lost_gpu_ms += fx->lost_gpu_ms;
    j->claimant = 0;
    j->until_ms = ST_UNSET;
    j->answer_ms = ST_TIME_NEVER;
}

static void follow_job(st_play *play, const st_effect *fx)
{
    int64_t index = (int64_t)fx->job - 1;
    st_play_job *j = &play->jobs[index];

    switch (fx->kind) {
    case ST_FX_QUEUED:
        j->submitted = true;
        break;
    case ST_FX_START:
    case ST_FX_RESUME:
        j->starts++;
        j->started_ms = fx->at_ms;
        j->type = fx->kind == ST_FX_START ? (int32_t)fx->type : j->type;
        j->until_ms = ST_UNSET;
        take_grants(play, fx, j);
        st_vec_push(&play->started, index);
        break;
    case ST_FX_NOTIFY:
        st_vec_push(&play->victims, index);
        j->claimant = fx->other;
        j->until_ms = fx->until_ms;
        break;
    case ST_FX_SPARE:
        j->claimant = 0;
        j->until_ms = ST_UNSET;
        break;
    case ST_FX_CHECKPOINT:
        j->until_ms = fx->until_ms;
        j->answer_ms = fx->at_ms + play->s->jobs.v[index].checkpoint_ms;
        break;
    case ST_FX_PAUSE:
        off_devices(play, fx, j);
        break;
    case ST_FX_REQUEUE:
    case ST_FX_RETRY:
        off_devices(play, fx, j);
        st_vec_clear(&j->grants);
        j->type = -1;
        break;
    case ST_FX_END:
        off_devices(play, fx, j);
        j->ended_ms = fx->at_ms;
        break;
    default:
        break;
    }
    j->state = fx->state;
    if (fx->kind != ST_FX_END)
        j->class = fx->class;
}

void st_play_follow(st_play *play)
{
    for (; play->followed < play->fx.list.n; play->followed++) {
        st_effect fx = play->fx.list.v[play->followed];

        if (fx.job > 0)
            follow_job(play, &fx);
        else if (fx.kind == ST_FX_FLOOR)
            st_vec_push(&play->floors, fx.account);
        st_play_event event = {.fx = fx, .action = -1};

        event.fx.grants_at = play->grants.n;
        for (int g = 0; g < fx.ngrants; g++)
            st_vec_push(&play->grants, play->fx.grants.v[fx.grants_at + (size_t)g]);
        st_vec_push(&play->events, event);
    }
}

void st_play_refresh(st_play *play)
{
    for (size_t i = 0; i < st_core_njobs(play->core); i++) {
        const st_job *job = st_core_job_at(play->core, i);
        st_play_job *j = &play->jobs[job->id - 1];

        j->state = job->state;
        j->class = job->class;
        j->saved_ms = job->saved_ms;
    }
}
