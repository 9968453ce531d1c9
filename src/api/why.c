/*
 * Why a job waits, what would start it, and when it should. Asked of the follower: nothing is written.
 */
#include <string.h>

#include "api/ask.h"
#include "control/outlook.h"

/* Reasons are found for each GPU type: what is the same for several is said once. */
static bool said_before(st_question *q, const st_core *core, const st_reasons *list, size_t i,
                        const char *text)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf other = {0};

    for (size_t j = 0; j < i; j++) {
        if (list->v[j].code != list->v[i].code)
            continue;
        other.n = 0;
        st_reason_text(core, &list->v[j], st_question_root(q, core), &other);
        if (strcmp(st_strbuf_str(&other), text) == 0)
            return true;
    }
    return false;
}

static void measure(st_question *q, const char *unit, int64_t used_m, int64_t asked_m,
                    int64_t bound_m)
{
    st_out_raw(&q->out, "measure", "{");
    st_out_text(&q->out, "unit", unit);
    st_out_milli(&q->out, "used", used_m);
    st_out_milli(&q->out, "asked", asked_m);
    st_out_milli(&q->out, "bound", bound_m);
    st_strbuf_addc(&q->out, '}');
}

/* The numbers of a reason, so that it can be drawn: an account's only for those who may see the account, as in the
 * sentence; how many tasks fit for everybody, as there. */
static void measure_json(st_question *q, const st_core *core, const st_reason *r)
{
    bool seen = r->account > ST_ROOT &&
                st_tree_within(st_core_tree(core), r->account, st_question_root(q, core));

    switch (r->code) {
    case ST_WHY_MAX:
        if (seen && r->dim == ST_GPU)
            measure(q, "gpu", r->used, r->asked, r->bound);
        break;
    case ST_WHY_OVER_FLOOR:
        if (seen)
            measure(q, "gpu", r->used, r->asked, r->bound);
        break;
    case ST_WHY_GPUS_BUSY:
    case ST_WHY_FRAGMENTED:
        if (r->asked > 1)
            measure(q, "tasks", r->used * 1000, 0, r->asked * 1000);
        break;
    default:
        break;
    }
}

static void reason_json(st_question *q, const st_core *core, const st_reasons *list, size_t i)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    const st_reason *r = &list->v[i];

    st_reason_text(core, r, st_question_root(q, core), &text);
    if (said_before(q, core, list, i, st_strbuf_str(&text)))
        return;
    if (i > 0)
        st_strbuf_addc(&q->out, ',');
    st_strbuf_addc(&q->out, '{');
    st_out_text(&q->out, "code", st_reason_name(r->code));
    st_out_raw(&q->out, "blocks", st_reason_blocks(r->code) ? "true" : "false");
    st_out_text(&q->out, "text", st_strbuf_str(&text));
    if (r->until_ms > 0 && r->until_ms != ST_TIME_NEVER)
        st_out_time(&q->out, "until", r->until_ms);
    measure_json(q, core, r);
    st_strbuf_addc(&q->out, '}');
}

/* Of a hundred such jobs, how many would be done by the deadline, if each ran to its limit. Eight in ten start from lo to
 * hi, and as many before the estimate as behind it. */
static int odds_percent(const st_estimate *e, int64_t start_by_ms)
{
    const int64_t at[] = {e->lo_ms, e->start_ms, e->hi_ms};
    const int odds[] = {10, 50, 90};

    if (start_by_ms < at[0])
        return 5;
    for (int i = 0; i < 2; i++)
        if (start_by_ms < at[i + 1])
            return odds[i] + (int)(40 * (start_by_ms - at[i]) / (at[i + 1] - at[i]));
    return 95;
}

/* How its deadline stands; `e` is when it should start, NULL: not known. */
static void deadline_json(st_question *q, const st_core *core, const st_job *job,
                          const st_estimate *e)
{
    int64_t left_ms = ST_MAX(job->limit_ms - st_job_ran_ms(job, st_core_now(core)), 0);
    bool soft = job->hold == 0 && job->limit_ms != ST_TIME_NEVER && e;
    st_deadline state = st_core_deadline(core, job);

    if (job->by_ms == 0)
        return;
    /* The core goes by what was told when the job came; this is what would be told now. */
    if (soft && state == ST_DEADLINE_OPEN && e->start_ms > job->by_ms - left_ms)
        state = ST_DEADLINE_AT_RISK;
    st_out_text(&q->out, "deadline", st_deadline_name(state));
    st_out_time(&q->out, "deadline_by", job->by_ms);
    if (soft && e->seen > 0)
        st_out_int(&q->out, "deadline_odds_percent", odds_percent(e, job->by_ms - left_ms));
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
    deadline_json(q, core, st_core_job(core, job), e.start_ms == ST_TIME_NEVER ? NULL : &e);
}

void st_why_class(st_question *q, const char *name, const char *account)
{
    json_t *list, *row;
    size_t i;

    q->class = (st_job_class){0};
    if (!name)
        return;
    snprintf(q->class.name, sizeof q->class.name, "%s", name);
    list = st_classes_list(st_control_classes(q->api->control), account, false);
    json_array_foreach(list, i, row)
    {
        const char *its = json_string_value(json_object_get(row, "name"));

        if (!its || strcmp(its, name) != 0)
            continue;
        q->class.known = true;
        q->class.lowest = json_integer_value(json_object_get(row, "lowest"));
        q->class.highest = json_integer_value(json_object_get(row, "highest"));
    }
    json_decref(list);
}

/* Whether it preempts was settled when it was submitted. */
static void class_json(st_question *q, const st_job *job)
{
    if (!q->class.name[0])
        return;
    st_out_raw(&q->out, "priority_class", "{");
    st_out_text(&q->out, "name", q->class.name);
    if (q->class.known) {
        st_out_int(&q->out, "lowest", q->class.lowest);
        st_out_int(&q->out, "highest", q->class.highest);
    }
    st_out_int(&q->out, "priority", job->priority);
    st_out_raw(&q->out, "preempt", job->meek ? "false" : "true");
    st_strbuf_addc(&q->out, '}');
}

/* The fields of a Why, without braces. */
static int why_json(st_question *q, st_core *core, const st_outlook *outlook, st_err *err)
{
    const st_job *job = st_core_job(core, q->job);
    st_reasons list = {0};
    int r = 0;

    st_out_text(&q->out, "job", q->name);
    if (!job) {
        st_out_text(&q->out, "state", "over");
        st_out_raw(&q->out, "reasons", "[]");
        return 0;
    }
    st_out_text(&q->out, "state", st_job_state_name(job->state));
    st_out_raw(&q->out, "reasons", "[");
    if (job->state == ST_JOB_PENDING || job->state == ST_JOB_PAUSED || job->stopping)
        r = st_core_explain(core, q->job, &list, err);
    for (size_t i = 0; r == 0 && i < list.n; i++)
        reason_json(q, core, &list, i);
    st_vec_free(&list);
    st_strbuf_addc(&q->out, ']');
    class_json(q, job);
    if (r == 0 && job->state == ST_JOB_PENDING)
        estimate_json(q, core, q->job, outlook);
    else if (r == 0)
        deadline_json(q, core, job, NULL);
    return r;
}

static int fill_why(st_question *q, st_core *core, st_err *err)
{
    int r;

    st_strbuf_addc(&q->out, '{');
    r = why_json(q, core, q->owner, err);
    st_strbuf_addc(&q->out, '}');
    return r;
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

/* Where a play takes no time the copy is played by itself. */
int st_why_copy_json(st_question *q, st_core *copy, st_err *err)
{
    ST_CLEANUP(st_outlook_unrefp) st_outlook *outlook = st_control_outlook(q->api->control, 0);
    ST_CLEANUP(st_outlook_unrefp) st_outlook *own = NULL;
    int r = 0;

    if (!outlook || st_outlook_is_cheap(outlook))
        r = st_outlook_of(copy, &own, err);
    return r < 0 ? r : why_json(q, copy, own ? own : outlook, err);
}

void st_api_job_why(st_call *call, void *ctx)
{
    st_api *api = ctx;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_job_row row;
    uint64_t id;

    if (st_api_find_job(api, call, arena, &id, &row)) {
        st_question *q = st_question_new(api, call, fill_why, st_call_param(call, "id"), id);
        char class[ST_NAME_MAX + 1];

        st_why_class(q, st_api_job_class(&row, class) ? class : NULL, row.account);
        q->how = ST_READ_ALONE;
        q->ask = ask_why;
        st_question_post(q);
    }
}
