/*
 * Why a job waits, what would start it, and when it should. Asked of the follower: nothing is written.
 */
#include <stdlib.h>

#include "api/ask.h"
#include "base/mem.h"
#include "control/money.h"
#include "control/outlook.h"

static void reason_json(st_question *q, const st_core *core, const st_reason *r)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    st_reason_text(core, r, st_question_root(q, core), &text);
    st_strbuf_addc(&q->out, '{');
    st_out_text(&q->out, "code", st_reason_name(r->code));
    st_out_raw(&q->out, "blocks", st_reason_blocks(r->code) ? "true" : "false");
    st_out_text(&q->out, "text", st_strbuf_str(&text));
    if (r->until_ms > 0 && r->until_ms != ST_TIME_NEVER)
        st_out_time(&q->out, "until", r->until_ms);
    st_strbuf_addc(&q->out, '}');
}

/* When it should start, from an outlook that was made for everybody. */
static void estimate_json(st_question *q, st_core *core, uint64_t job, const st_outlook *outlook)
{
    st_estimate e;

    if (!outlook)
        return;
    if (!st_timeline_find(st_outlook_timeline(outlook), job, &e))
        st_timeline_probe(st_outlook_timeline(outlook), core, job, &e);
    if (e.start_ms != ST_TIME_NEVER)
        e.start_ms = ST_MAX(e.start_ms, st_core_now(core));
    st_out_time(&q->out, "start_estimate", e.start_ms);
    if (e.seen > 0) {
        st_out_time(&q->out, "start_earliest", e.lo_ms);
        st_out_time(&q->out, "start_latest", e.hi_ms);
        if (st_question_owner(q)) /* it counts everybody's */
            st_out_int(&q->out, "estimates_seen", e.seen);
    }
}

static int why_json(st_question *q, st_core *core, const st_outlook *outlook, st_err *err)
{
    const st_job *job = st_core_job(core, q->job);
    st_reasons list = {0};
    int r = 0;

    st_strbuf_addc(&q->out, '{');
    st_out_text(&q->out, "job", q->name);
    if (!job) {
        st_out_text(&q->out, "state", "over");
        st_out_raw(&q->out, "reasons", "[]");
        st_strbuf_addc(&q->out, '}');
        return 0;
    }
    st_out_text(&q->out, "state", st_job_state_name(job->state));
    st_out_raw(&q->out, "reasons", "[");
    if (job->state == ST_JOB_PENDING || job->state == ST_JOB_PAUSED)
        r = st_core_explain(core, q->job, &list, err);
    for (size_t i = 0; r == 0 && i < list.n; i++) {
        if (i > 0)
            st_strbuf_addc(&q->out, ',');
        reason_json(q, core, &list.v[i]);
    }
    st_vec_free(&list);
    st_strbuf_addc(&q->out, ']');
    if (r == 0 && job->state == ST_JOB_PENDING)
        estimate_json(q, core, q->job, outlook);
    st_strbuf_addc(&q->out, '}');
    return r;
}

static int fill_why(st_question *q, st_core *core, st_err *err)
{
    return why_json(q, core, q->owner, err);
}

static void drop_outlook(void *outlook)
{
    st_outlook_unref(outlook);
}

static int ask_why(st_question *q, st_err *err)
{
    q->owner = st_control_outlook(q->api->control, st_control_position(q->api->control));
    q->drop = drop_outlook;
    return st_question_read(q, err);
}

/* ---- what would become of it ------------------------------------------------------------------ */

/* Behind all others, as the newest is. */
#define TRIAL_ID ((uint64_t)INT64_MAX)

typedef struct trial {
    st_job_spec spec;
    void (*drop)(void *owner);
    void *owner;
    st_strbuf saved; /* the state it is tried on */
    int64_t now;
} trial;

/* All that the state is needed for: caps, and a copy. */
static int fill_copy(st_question *q, st_core *core, st_err *err)
{
    trial *t = q->owner;
    int r = st_spec_settle(st_core_fleet(core), &t->spec, err);

    if (r == 0)
        r = st_tx_admit(q->tx, &t->spec, err);
    t->now = st_tx_now(q->tx);
    if (r == 0)
        st_core_save(core, &t->saved);
    return r;
}

/* Where a play takes no time it is played with the job in it. */
static int try_json(st_question *q, st_core *copy, st_err *err)
{
    ST_CLEANUP(st_outlook_unrefp) st_outlook *outlook = st_control_outlook(q->api->control, 0);
    int r;

    if (outlook && !st_outlook_is_cheap(outlook))
        return why_json(q, copy, outlook, err);
    ST_CLEANUP(st_outlook_unrefp) st_outlook *own = NULL;
    r = st_outlook_of(copy, &own, err);
    return r < 0 ? r : why_json(q, copy, own, err);
}

static int try_out(st_question *q, st_err *err)
{
    trial *t = q->owner;
    st_event event = {.kind = ST_EV_SUBMIT};
    st_effects fx = {0};
    st_core *copy = NULL;
    int r = st_question_read(q, err);

    event.u.job = t->spec;
    event.u.job.id = TRIAL_ID;
    if (r == 0)
        r = st_core_load(st_strbuf_str(&t->saved), t->saved.n, &copy, err);
    if (r == 0)
        r = st_core_step(copy, &event, t->now, &fx, err);
    if (r == 0)
        r = try_json(q, copy, err);
    st_effects_done(&fx);
    st_core_free(copy);
    return r;
}

static void trial_free(void *arg)
{
    trial *t = arg;

    if (t->drop)
        t->drop(t->owner);
    st_strbuf_done(&t->saved);
    free(t);
}

void st_api_try(st_api *api, st_call *call, const st_job_spec *spec, void (*drop)(void *owner),
                void *owner)
{
    st_question *q = st_question_new(api, call, fill_copy, spec->name, TRIAL_ID);
    trial *t = st_xcalloc(1, sizeof *t);

    *t = (trial){.spec = *spec, .drop = drop, .owner = owner};
    q->work = try_out;
    q->drop = trial_free;
    q->owner = t;
    st_question_post(q);
}

void st_api_job_why(st_call *call, void *ctx)
{
    st_api *api = ctx;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_job_row row;
    uint64_t id;

    if (st_api_find_job(api, call, arena, &id, &row)) {
        st_question *q = st_question_new(api, call, fill_why, st_call_param(call, "id"), id);

        q->how = ST_READ_ALONE;
        q->ask = ask_why;
        st_question_post(q);
    }
}
