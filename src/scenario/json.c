/*
 * A play as JSON: every decision, and how things stand at the end. Times are in
 * milliseconds since the beginning, GPUs in thousandths; doc/reference/scenarios.md has
 * the fields.
 */
#include <jansson.h>

#include "scenario/scenario.h"

static json_t *grants_json(const st_play *play, const st_grant *grants, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) {
        json_t *devices = json_array();
        json_t *grant = json_object();

        for (int d = 0; d < ST_DEVS_MAX; d++)
            if (grants[i].devs >> d & 1)
                json_array_append_new(devices, json_integer(d));
        json_object_set_new(grant, "node",
                            json_string(st_core_fleet(play->core)->nodes.v[grants[i].node]->name));
        json_object_set_new(grant, "devices", devices);
        if (grants[i].mig_start >= 0)
            json_object_set_new(grant, "mig_start", json_integer(grants[i].mig_start));
        json_array_append_new(list, grant);
    }
    return list;
}

static const char *job_name(const st_play *play, uint64_t id)
{
    return play->s->jobs.v[id - 1].spec.name;
}

static const char *account_name(const st_play *play, int32_t id)
{
    return st_tree_account(st_core_tree(play->core), id)->name;
}

static void add_job_fields(const st_play *play, const st_effect *fx, json_t *o)
{
    json_object_set_new(o, "job", json_string(job_name(play, fx->job)));
    json_object_set_new(o, "state", json_string(st_job_state_name(fx->state)));
    if (fx->class != ST_CLASS_NONE)
        json_object_set_new(o, "class", json_string(st_class_name(fx->class)));
    if (fx->other & ST_BOOKING_BIT)
        json_object_set_new(o, "booking", json_integer((int64_t)(fx->other & ~ST_BOOKING_BIT)));
    else if (fx->other > 0)
        json_object_set_new(o, "claimant", json_string(job_name(play, fx->other)));
    if (fx->until_ms > 0)
        json_object_set_new(o, "until_ms", json_integer(fx->until_ms));
    if (fx->kind == ST_FX_START && fx->type >= 0)
        json_object_set_new(o, "type",
                            json_string(st_core_fleet(play->core)->types.v[fx->type].name));
    if (fx->kind == ST_FX_REQUEUE || fx->kind == ST_FX_END)
        json_object_set_new(o, "lost_gpu_ms", json_integer(fx->lost_gpu_ms));
    if (fx->ngrants > 0)
        json_object_set_new(o, "grants",
                            grants_json(play, play->grants.v + fx->grants_at, (size_t)fx->ngrants));
}

static json_t *event_json(const st_play *play, const st_play_event *event)
{
    const st_effect *fx = &event->fx;
    json_t *o = json_object();

    json_object_set_new(o, "at_ms", json_integer(fx->at_ms));
    if (event->refused) {
        json_object_set_new(o, "kind", json_string("refused"));
        json_object_set_new(o, "action", json_string(event->what));
        if (event->action >= 0)
            json_object_set_new(o, "job", json_string(job_name(play, (uint64_t)event->action + 1)));
        json_object_set_new(o, "message", json_string(event->refused));
        return o;
    }
    json_object_set_new(o, "kind", json_string(st_effect_name(fx->kind)));
    if (fx->job > 0)
        add_job_fields(play, fx, o);
    if (fx->account >= 0)
        json_object_set_new(o, "account", json_string(account_name(play, fx->account)));
    if (fx->kind == ST_FX_FLOOR)
        json_object_set_new(o, "floor_milli", json_integer(fx->floor_m));
    if (fx->kind == ST_FX_GPU)
        json_object_set_new(o, "gpu", json_integer((json_int_t)fx->other));
    if (fx->kind == ST_FX_NODE || fx->kind == ST_FX_GPU) {
        json_object_set_new(o, "node",
                            json_string(st_core_fleet(play->core)->nodes.v[fx->node]->name));
        json_object_set_new(o, "state",
                            json_string(st_node_state_name((st_node_state)fx->node_state)));
    }
    if (fx->kind == ST_FX_INCIDENT) {
        json_object_set_new(o, "incident", json_integer((json_int_t)fx->other));
        json_object_set_new(o, "news", json_string(st_incident_name((st_incident_news)fx->news)));
        if (fx->node >= 0)
            json_object_set_new(o, "node",
                                json_string(st_core_fleet(play->core)->nodes.v[fx->node]->name));
    }
    return o;
}

static json_t *reason_json(const st_play *play, const st_reason *r)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    json_t *o = json_object();

    st_reason_text(play->core, r, ST_ROOT, &text);
    json_object_set_new(o, "code", json_string(st_reason_name(r->code)));
    json_object_set_new(o, "blocks", json_boolean(st_reason_blocks(r->code)));
    json_object_set_new(o, "text", json_string(st_strbuf_str(&text)));
    if (r->account >= 0)
        json_object_set_new(o, "account", json_string(account_name(play, r->account)));
    if (r->type >= 0)
        json_object_set_new(o, "type",
                            json_string(st_core_fleet(play->core)->types.v[r->type].name));
    json_object_set_new(o, "used", json_integer(r->used));
    json_object_set_new(o, "asked", json_integer(r->asked));
    json_object_set_new(o, "bound", json_integer(r->bound));
    if (r->other > 0)
        json_object_set_new(o, "job", json_string(job_name(play, r->other)));
    if (r->until_ms != ST_TIME_NEVER)
        json_object_set_new(o, "until_ms", json_integer(r->until_ms));
    return o;
}

static json_t *reasons_json(const st_play *play, uint64_t id)
{
    json_t *list = json_array();
    st_reasons reasons = {0};

    if (st_core_job(play->core, id))
        (void)st_core_explain(play->core, id, &reasons, NULL);
    for (size_t i = 0; i < reasons.n; i++)
        json_array_append_new(list, reason_json(play, &reasons.v[i]));
    st_vec_free(&reasons);
    return list;
}

static json_t *job_json(const st_play *play, size_t i)
{
    const st_play_job *j = &play->jobs[i];
    const st_scn_job *job = &play->s->jobs.v[i];
    json_t *o = json_object();

    json_object_set_new(o, "job", json_string(job->spec.name));
    json_object_set_new(o, "account", json_string(job->spec.account));
    json_object_set_new(o, "user", json_string(job->spec.user));
    if (j->refused) {
        json_object_set_new(o, "state", json_string("refused"));
        json_object_set_new(o, "message", json_string(j->refusal));
        return o;
    }
    json_object_set_new(o, "state", json_string(st_job_state_name(j->state)));
    json_object_set_new(o, "class", json_string(st_class_name(j->class)));
    json_object_set_new(o, "grants", grants_json(play, j->grants.v, j->grants.n));
    json_object_set_new(o, "starts", json_integer(j->starts));
    json_object_set_new(o, "preemptions", json_integer(j->preemptions));
    json_object_set_new(o, "saved_ms", json_integer(j->saved_ms));
    json_object_set_new(o, "lost_gpu_ms", json_integer(j->lost_gpu_ms));
    if (j->started_ms >= 0)
        json_object_set_new(o, "started_ms", json_integer(j->started_ms));
    if (j->ended_ms >= 0)
        json_object_set_new(o, "ended_ms", json_integer(j->ended_ms));
    json_object_set_new(o, "reasons", reasons_json(play, (uint64_t)i + 1));
    return o;
}

static json_t *account_json(const st_account *a)
{
    json_t *o = json_object();

    json_object_set_new(o, "account", json_string(a->name));
    json_object_set_new(o, "floor_milli", json_integer(st_quota_gpu_m(&a->floor)));
    json_object_set_new(o, "use_milli", json_integer(a->now.gpu_m));
    json_object_set_new(o, "guaranteed_milli", json_integer(a->guaranteed.gpu_m));
    json_object_set_new(o, "lost_gpu_ms", json_integer(a->lost));
    return o;
}

json_t *st_play_json(const st_play *play)
{
    const st_tree *tree = st_core_tree(play->core);
    json_t *root = json_object(), *effects = json_array(), *jobs = json_array();
    json_t *accounts = json_array(), *diffs = json_array();

    for (size_t i = 0; i < play->diffs.n; i++) {
        json_t *o = json_object();

        json_object_set_new(o, "line", json_integer(play->diffs.v[i].line));
        json_object_set_new(o, "at_ms", json_integer(play->diffs.v[i].at_ms));
        json_object_set_new(o, "message", json_string(play->diffs.v[i].text));
        json_array_append_new(diffs, o);
    }
    for (size_t i = 0; i < play->events.n; i++)
        json_array_append_new(effects, event_json(play, &play->events.v[i]));
    for (size_t i = 0; i < play->s->jobs.n; i++)
        if (play->jobs[i].submitted || play->jobs[i].refused)
            json_array_append_new(jobs, job_json(play, i));
    for (size_t i = 1; i < tree->accounts.n; i++)
        json_array_append_new(accounts, account_json(tree->accounts.v[i]));
    json_object_set_new(root, "file", json_string(st_doc_name(play->s->doc)));
    json_object_set_new(root, "name", json_string(play->s->name));
    json_object_set_new(root, "ok", json_boolean(play->diffs.n == 0));
    json_object_set_new(root, "expectations", json_integer(play->looked));
    json_object_set_new(root, "differences", diffs);
    json_object_set_new(root, "end_ms", json_integer(play->now));
    json_object_set_new(root, "effects", effects);
    json_object_set_new(root, "jobs", jobs);
    json_object_set_new(root, "accounts", accounts);
    return root;
}
