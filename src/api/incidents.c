/*
 * Incidents of nodes (core/incidents.c), as the caller may see them. Owners see all of each. A tenant sees those of nodes that
 * its jobs were on when something was found, with these nodes and these jobs and nothing of the others.
 */
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "api/state.h"
#include "base/mem.h"

typedef struct seen {
    const st_question *q;
    const st_core *core;
    const st_incident *inc;
    int32_t root;
    bool owner;
} seen;

static bool own(const seen *s, const st_incident_job *j)
{
    return st_tree_within(st_core_tree(s->core), j->account, s->root);
}

static bool may_see_node(const seen *s, int32_t node)
{
    if (s->owner)
        return true;
    for (size_t i = 0; i < s->inc->jobs.n; i++)
        if (s->inc->jobs.v[i].node == node && own(s, &s->inc->jobs.v[i]))
            return true;
    return false;
}

static bool may_see(const seen *s)
{
    for (size_t i = 0; i < s->inc->jobs.n; i++)
        if (own(s, &s->inc->jobs.v[i]))
            return true;
    return s->owner;
}

static void node_json(const seen *s, const st_incident_node *at, st_strbuf *out)
{
    const st_node *node = st_core_fleet(s->core)->nodes.v[at->node];
    int64_t out_ms = at->out_ms;

    if (at->out && !at->held)
        out_ms += st_core_now(s->core) - at->since_ms;
    st_strbuf_addc(out, '{');
    st_out_text(out, "node", node->name);
    if (at->gpu >= 0)
        st_out_int(out, "gpu", at->gpu);
    if (at->code > 0)
        st_out_int(out, "code", at->code);
    st_out_text(out, "state", st_node_state_name(node->state));
    st_out_time(out, "found", at->from_ms);
    st_out_raw(out, "over", at->out ? "false" : "true");
    st_out_raw(out, "held", at->held ? "true" : "false");
    st_out_int(out, "out_seconds", out_ms / 1000);
    if (at->out && node->due_ms > 0)
        st_out_time(out, "test_at", node->due_ms);
    st_strbuf_addc(out, '}');
}

static void nodes_json(const seen *s, st_strbuf *out)
{
    const char *sep = "";

    st_out_raw(out, "nodes", "[");
    for (size_t i = 0; i < s->inc->nodes.n; i++) {
        if (!may_see_node(s, s->inc->nodes.v[i].node))
            continue;
        st_strbuf_add(out, sep);
        node_json(s, &s->inc->nodes.v[i], out);
        sep = ",";
    }
    st_strbuf_addc(out, ']');
}

static void jobs_json(const seen *s, st_strbuf *out)
{
    const char *sep = "";
    char id[ST_ID_TEXT];

    st_out_raw(out, "jobs", "[");
    for (size_t i = 0; i < s->inc->jobs.n; i++) {
        const st_incident_job *j = &s->inc->jobs.v[i];

        if (!own(s, j))
            continue;
        st_control_id_text(s->q->api->control, j->job, id);
        st_strbuf_addf(out, "%s{\"job\":\"%s\",\"node\":\"%s\"}", sep, id,
                       st_core_fleet(s->core)->nodes.v[j->node]->name);
        sep = ",";
    }
    st_strbuf_addc(out, ']');
}

static void incident_json(const seen *s, st_strbuf *out)
{
    const st_incident *inc = s->inc;
    char id[ST_ID_TEXT];

    st_control_name(s->q->api->control, ST_INCIDENT_ID, inc->id, id);
    st_strbuf_addc(out, '{');
    st_out_text(out, "id", id);
    st_out_text(out, "state", inc->over ? "over" : "open");
    st_out_text(out, "cause", st_cause_name(st_fault_cause(inc->kind)));
    st_out_text(out, "fault", st_fault_name(inc->kind));
    st_out_text(out, "about", st_fault_about(inc->kind));
    st_out_text(out, "scope", st_scope_name(st_core_incident_scope(s->core, inc)));
    st_out_text(out, "pool", st_core_fleet(s->core)->pools.v[inc->pool].name);
    st_out_time(out, "opened", inc->from_ms);
    if (inc->over)
        st_out_time(out, "closed", inc->to_ms);
    if (s->owner) {
        st_out_time(out, "last", inc->last_ms);
        st_out_int(out, "times", inc->times);
        st_out_raw(out, "breaker", inc->breaker ? "true" : "false");
        if (inc->words[0])
            st_out_text(out, "reason", inc->words);
        st_out_int(out, "nodes_out", (int64_t)st_incident_out(inc));
        if (inc->more > 0)
            st_out_int(out, "jobs_unlisted", inc->more);
    }
    nodes_json(s, out);
    jobs_json(s, out);
    st_strbuf_addc(out, '}');
}

static seen see(const st_question *q, const st_core *core, const st_incident *inc)
{
    return (seen){q, core, inc, st_question_root(q, core), st_question_owner(q)};
}

static bool has_job(const seen *s, uint64_t job)
{
    for (size_t i = 0; i < s->inc->jobs.n; i++)
        if (s->inc->jobs.v[i].job == job && own(s, &s->inc->jobs.v[i]))
            return true;
    return false;
}

/* The newest first. */
static int fill_list(st_question *q, st_core *core, st_err *err)
{
    bool all = st_call_query_bool(q->call, "all", false);
    const char *node = st_call_query(q->call, "node"), *job = st_call_query(q->call, "job");
    const char *sep = "";
    uint64_t id = 0;
    int32_t only = node ? st_fleet_node(st_core_fleet(core), node) : -1;

    (void)err;
    if (job && !st_control_id_parse(q->api->control, job, &id))
        id = 0; /* nobody's */
    st_strbuf_add(&q->out, "{\"incidents\":[");
    for (size_t i = st_core_nincidents(core); i-- > 0;) {
        const seen s = see(q, core, st_core_incident_at(core, i));

        if (!may_see(&s) || (!all && s.inc->over) || (job && !has_job(&s, id)) ||
            (node && (!st_incident_find(s.inc, only) || !may_see_node(&s, only))))
            continue;
        st_strbuf_add(&q->out, sep);
        incident_json(&s, &q->out);
        sep = ",";
    }
    st_strbuf_add(&q->out, "]}");
    return 0;
}

static int fill_one(st_question *q, st_core *core, st_err *err)
{
    uint64_t id = 0;
    bool named = st_control_named(q->api->control, ST_INCIDENT_ID, q->name, &id);
    const st_incident *inc = named ? st_core_incident(core, id) : NULL;
    const seen s = see(q, core, inc);

    if (!inc || !may_see(&s))
        return st_fail(err, ST_ENOENT,
                       "there is no such incident, or it is over for long; list them: stint "
                       "incidents list --all");
    incident_json(&s, &q->out);
    return 0;
}

void st_api_incidents(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_list, NULL, 0);
}

void st_api_incident(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_one, st_call_param(call, "id"), 0);
}

/* ---- somebody has looked ------------------------------------------------------------------------ */

typedef struct reset {
    st_cmd_event ev; /* first */
    st_call *call;
    char id[ST_ID_TEXT];
} reset;

static void reset_done(st_cmd *cmd, const st_err *err)
{
    reset *c = (reset *)cmd;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    st_strbuf_addc(&out, '{');
    st_out_text(&out, "name", c->id);
    st_strbuf_addc(&out, '}');
    if (err)
        st_call_fail(c->call, err);
    else
        st_call_reply_buf(c->call, 200, NULL, &out);
    free(c);
}

void st_api_incident_reset(st_call *call, void *ctx)
{
    st_api *api = ctx;
    const char *id = st_call_param(call, "id");
    uint64_t number;
    st_err err;
    reset *c;

    if (!st_control_named(api->control, ST_INCIDENT_ID, id, &number)) {
        st_fail(&err, ST_ENOENT, "there is no such incident");
        st_call_fail(call, &err);
        return;
    }
    c = st_xcalloc(1, sizeof *c);
    c->call = call;
    strncpy(c->id, id, sizeof c->id - 1);
    c->ev.who = *st_api_who(call);
    c->ev.verb = "incident.reset";
    c->ev.target = c->id;
    c->ev.event.kind = ST_EV_INCIDENT;
    c->ev.event.u.id = number;
    st_cmd_event_init(&c->ev);
    c->ev.cmd.done = reset_done;
    st_call_defer(call);
    st_api_post(api, call, &c->ev.cmd);
}
