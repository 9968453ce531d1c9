/*
 * A store that was restored from a backup: what would become of what nodes have, and the owner's word that it may be so
 * (control/restore.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "control/restore.h"

typedef struct ask {
    st_cmd_restore cmd; /* first */
    st_api *api;
    st_call *call;
    char digest[80];
} ask;

static const char *node_name(const st_restore_view *v, int32_t node)
{
    return st_core_fleet(v->core)->nodes.v[node]->name;
}

static void add_task(const st_api *api, const st_plan_task *t, st_strbuf *out)
{
    char id[ST_ID_TEXT] = "";

    if (t->told.job)
        st_control_id_text(api->control, t->told.job, id);
    st_strbuf_addc(out, '{');
    st_out_text(out, "job", id);
    st_out_int(out, "stay", t->told.stay);
    st_out_int(out, "task", t->told.task);
    st_out_text(out, "becomes", st_fate_name(t->fate));
    if (t->why)
        st_out_text(out, "why", t->why);
    st_strbuf_addc(out, '}');
}

static void add_node(const st_api *api, const st_restore_view *v, const st_told_node *n,
                     st_strbuf *out)
{
    const char *sep = "";

    st_strbuf_addc(out, '{');
    st_out_text(out, "node", node_name(v, n->node));
    st_out_raw(out, "heard", n->heard ? "true" : "false");
    st_out_raw(out, "clear", n->clear || n->over ? "true" : "false");
    st_out_int(out, "lease_seconds", (n->left_ms + 999) / 1000);
    st_strbuf_add(out, ",\"tasks\":[");
    for (size_t i = 0; i < v->plan->tasks.n; i++) {
        if (v->plan->tasks.v[i].told.node != n->node)
            continue;
        st_strbuf_add(out, sep);
        add_task(api, &v->plan->tasks.v[i], out);
        sep = ",";
    }
    st_strbuf_add(out, "]}");
}

static void add_job(const st_api *api, const st_restore_view *v, const st_plan_job *p,
                    st_strbuf *out)
{
    const st_job *job = st_core_job(v->core, p->id);
    char id[ST_ID_TEXT];

    st_control_id_text(api->control, p->id, id);
    st_strbuf_addc(out, '{');
    st_out_text(out, "job", id);
    st_out_text(out, "name", job ? job->name : "");
    st_out_text(out, "account",
                job ? st_tree_account(st_core_tree(v->core), job->account)->name : "");
    st_out_text(out, "becomes", st_fate_name(p->fate));
    if (p->why)
        st_out_text(out, "why", p->why);
    st_strbuf_addc(out, '}');
}

static void show(st_cmd_restore *cmd, const st_restore_view *v)
{
    static const char *const states[] = {
#define X(id, word) word,
        ST_RESTORE_TABLE(X)
#undef X
    };
    const ask *a = (const ask *)cmd;
    st_strbuf *out = &cmd->out;

    st_strbuf_addc(out, '{');
    st_out_text(out, "state", states[v->state]);
    st_out_text(out, "from", v->from);
    st_out_time(out, "restored_at", v->marked_ms > 0 ? v->marked_ms : -1);
    if (v->plan) {
        st_out_time(out, "backup_at", v->last_ms);
        st_out_int(out, "position", v->position);
        st_out_int(out, "valid_tokens", v->tokens);
        st_out_int(out, "waiting_jobs", (int64_t)v->plan->waiting);
        st_out_text(out, "plan", v->plan->digest);
        st_strbuf_add(out, ",\"nodes\":[");
        for (size_t i = 0; i < v->told->nodes.n; i++) {
            st_strbuf_add(out, i ? "," : "");
            add_node(a->api, v, &v->told->nodes.v[i], out);
        }
        st_strbuf_add(out, "],\"jobs\":[");
        for (size_t i = 0; i < v->plan->jobs.n; i++) {
            st_strbuf_add(out, i ? "," : "");
            add_job(a->api, v, &v->plan->jobs.v[i], out);
        }
        st_strbuf_addc(out, ']');
    }
    st_strbuf_addc(out, '}');
}

static void done(st_cmd *cmd, const st_err *err)
{
    ask *a = (ask *)cmd;

    if (err)
        st_call_fail(a->call, err);
    else
        st_call_reply_buf(a->call, 200, NULL, &a->cmd.out);
    st_strbuf_done(&a->cmd.out);
    free(a);
}

static void post(st_api *api, st_call *call, const char *digest)
{
    ask *a = st_xcalloc(1, sizeof *a);

    a->api = api;
    a->call = call;
    a->cmd.who = *st_api_who(call);
    a->cmd.show = show;
    if (digest) {
        snprintf(a->digest, sizeof a->digest, "%s", digest);
        a->cmd.accept = a->digest;
    }
    st_cmd_restore_init(&a->cmd);
    a->cmd.cmd.done = done;
    st_call_defer(call);
    st_api_post(api, call, &a->cmd.cmd);
}

void st_api_restore_get(st_call *call, void *ctx)
{
    post(ctx, call, NULL);
}

void st_api_restore_accept(st_call *call, void *ctx)
{
    st_err err = {0};
    json_t *body = NULL;
    int r = st_call_json(call, &body, &err);
    const char *plan = json_string_value(json_object_get(body, "plan"));

    if (r == 0 && (!plan || json_object_size(body) != 1))
        r = st_fail(&err, ST_EINVAL,
                    "give plan, as GET /v1/admin/restore shows it, and nothing else");
    if (r < 0)
        st_call_fail(call, &err);
    else
        post(ctx, call, plan);
    json_decref(body);
}
