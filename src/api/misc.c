/*
 * What belongs to no noun: health, metrics, the OpenAPI document, who one is, the audit log.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/money_metrics.h"
#include "base/mem.h"

void st_api_healthz(st_call *call, void *ctx)
{
    (void)ctx;
    st_call_reply_static(call, 200, "text/plain", "ok\n", 3);
}

void st_api_readyz(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_err why = {0};

    if (st_control_ready(api->control, &why)) {
        st_call_reply_static(call, 200, "text/plain", "ready\n", 6);
        return;
    }
    why.code = ST_EDOWN;
    st_call_fail(call, &why);
}

void st_api_openapi_doc(st_call *call, void *ctx)
{
    st_strbuf out = {0};
    st_err err = {0};

    (void)ctx;
    if (st_api_openapi(&out, &err) < 0)
        st_call_fail(call, &err);
    else
        st_call_reply_buf(call, 200, NULL, &out);
    st_strbuf_done(&out);
}

void st_api_whoami(st_call *call, void *ctx)
{
    const st_identity *who = st_api_who(call);
    st_strbuf out = {0};

    (void)ctx;
    st_strbuf_addc(&out, '{');
    st_out_text(&out, "user", who->user);
    st_out_text(&out, "account", who->account);
    st_out_text(&out, "role", st_role_words[who->role]);
    st_out_text(&out, "version", ST_VERSION);
    st_strbuf_addc(&out, '}');
    st_call_reply_buf(call, 200, NULL, &out);
    st_strbuf_done(&out);
}

void st_api_roles(st_call *call, void *ctx)
{
    st_strbuf out = {0};

    (void)ctx;
    st_strbuf_add(&out, "{\"roles\":[");
    for (int r = 0; r < ST_ROLE_COUNT; r++) {
        st_strbuf_add(&out, r ? ",{" : "{");
        st_out_text(&out, "role", st_role_words[r]);
        st_out_text(&out, "may", st_role_about((st_role)r));
        st_strbuf_addc(&out, '}');
    }
    st_strbuf_add(&out, "]}");
    st_call_reply_buf(call, 200, NULL, &out);
    st_strbuf_done(&out);
}

/* ---- metrics -------------------------------------------------------------------------------- */

static void per_account(const st_question *q, const st_core *core, st_metrics *m, const char *name,
                        const char *help, int64_t (*get)(const st_account *a))
{
    const st_tree *tree = st_core_tree(core);
    int32_t root = st_question_root(q, core);

    st_metrics_family(m, name, ST_METRIC_GAUGE, help);
    for (size_t i = ST_ROOT + 1; i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];

        if (!st_tree_within(tree, a->id, root))
            continue;
        st_metrics_label(m, "account", a->name);
        st_metrics_milli(m, get(a));
    }
}

static int64_t held(const st_account *a)
{
    return a->now.gpu_m;
}

static int64_t sure(const st_account *a)
{
    return a->sure.gpu_m;
}

static int64_t floor_of(const st_account *a)
{
    return st_quota_gpu_m(&a->floor);
}

static int64_t lost(const st_account *a)
{
    return a->lost / 1000; /* milli-GPU x ms to milli-GPU-seconds */
}

static void job_states(const st_question *q, const st_core *core, st_metrics *m)
{
    const st_tree *tree = st_core_tree(core);
    int32_t root = st_question_root(q, core);
    int64_t n[ST_JOB_STATE_COUNT] = {0}, gpu_m[ST_JOB_STATE_COUNT] = {0};

    for (size_t i = 0; i < st_core_njobs(core); i++) {
        const st_job *job = st_core_job_at(core, i);

        if (!st_tree_within(tree, job->account, root))
            continue;
        n[job->state]++;
        gpu_m[job->state] += st_job_gpu_m(job);
    }
    st_metrics_family(m, "stint_jobs", ST_METRIC_GAUGE, "Live jobs by state.");
    for (int s = 0; s <= ST_JOB_PAUSED; s++) {
        st_metrics_label(m, "state", st_job_state_name((st_job_state)s));
        st_metrics_int(m, n[s]);
    }
    st_metrics_family(m, "stint_jobs_gpus", ST_METRIC_GAUGE, "GPUs that live jobs ask for.");
    for (int s = 0; s <= ST_JOB_PAUSED; s++) {
        st_metrics_label(m, "state", st_job_state_name((st_job_state)s));
        st_metrics_milli(m, gpu_m[s]);
    }
}

static void fleet_metrics(const st_core *core, st_metrics *m)
{
    const st_fleet *fleet = st_core_fleet(core);

    st_metrics_family(m, "stint_nodes", ST_METRIC_GAUGE, "Nodes by state.");
    for (int s = 0; s < ST_NODE_STATE_COUNT; s++) {
        int64_t n = 0;

        for (size_t i = 0; i < fleet->nodes.n; i++)
            n += fleet->nodes.v[i]->state == (st_node_state)s;
        st_metrics_label(m, "state", st_node_state_name((st_node_state)s));
        st_metrics_int(m, n);
    }
    st_metrics_family(m, "stint_gpus", ST_METRIC_GAUGE, "GPUs that are there and healthy.");
    for (size_t t = 0; t < fleet->types.n; t++) {
        st_metrics_label(m, "type", fleet->types.v[t].name);
        st_metrics_milli(m, st_core_tree(core)->capacity.type_m[t]);
    }
}

static void service_metrics(const st_question *q, st_metrics *m)
{
    st_control_stats s;

    st_control_stats_get(q->api->control, &s);
    const struct {
        const char *name, *help;
        st_metric_type type;
        int64_t value;
    } rows[] = {
        {"stint_commits_total", "Transactions of the store.", ST_METRIC_COUNTER,
         (int64_t)s.commits},
        {"stint_commands_total", "Commands to the control loop.", ST_METRIC_COUNTER,
         (int64_t)s.commands},
        {"stint_commands_refused_total", "Commands that were refused.", ST_METRIC_COUNTER,
         (int64_t)s.refused},
        {"stint_effects_total", "Decisions of the scheduler.", ST_METRIC_COUNTER,
         (int64_t)s.effects},
        {"stint_passes_total", "Passes of the scheduler.", ST_METRIC_COUNTER, (int64_t)s.passes},
        {"stint_snapshots_total", "Snapshots of the core.", ST_METRIC_COUNTER,
         (int64_t)s.snapshots},
        {"stint_reloads_total", "Times the core was read back after a fault.", ST_METRIC_COUNTER,
         (int64_t)s.reloads},
        {"stint_event_streams", "Open event streams.", ST_METRIC_GAUGE,
         (int64_t)st_hub_streams(q->api->hub)},
        {"stint_ready", "1 while commands are taken.", ST_METRIC_GAUGE, s.ready},
    };

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        st_metrics_family(m, rows[i].name, rows[i].type, rows[i].help);
        st_metrics_int(m, rows[i].value);
    }
    st_metrics_family(m, "stint_commit_seconds_total", ST_METRIC_COUNTER, "Time spent in commits.");
    st_metrics_milli(m, s.commit_us_sum / 1000);
    st_metrics_family(m, "stint_pass_seconds_total", ST_METRIC_COUNTER, "Time spent in passes.");
    st_metrics_milli(m, s.pass_us_sum / 1000);
}

static int fill_metrics(st_question *q, st_core *core, st_err *err)
{
    st_metrics m = {.out = &q->out};
    int r;

    q->type = ST_METRICS_TYPE;
    job_states(q, core, &m);
    per_account(q, core, &m, "stint_account_gpus_held", "GPUs an account and those below hold.",
                held);
    per_account(q, core, &m, "stint_account_gpus_guaranteed", "Of these, inside its guarantee.",
                sure);
    per_account(q, core, &m, "stint_account_gpus_floor",
                "What its guarantee is worth with the nodes there are.", floor_of);
    per_account(q, core, &m, "stint_account_lost_gpu_seconds",
                "GPU time lost to preemption and failures.", lost);
    r = st_money_metrics(q, &m, err);
    if (r == 0 && st_question_owner(q)) {
        fleet_metrics(core, &m);
        service_metrics(q, &m);
    }
    st_metrics_done(&m);
    if (r == 0 && st_question_owner(q))
        st_http_server_metrics(q->api->server, &q->out);
    return r;
}

void st_api_metrics(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_metrics, NULL, 0);
}

/* ---- audit ------------------------------------------------------------------------------------ */

#define AUDIT_MAX 1000

typedef struct audit_list {
    st_api *api;
    const st_call *call;
    st_strbuf out;
    int64_t n, limit, last;
} audit_list;

/* Who did it, "USER ACCOUNT TOKEN" in the row. Somebody from outside the caller's subtree, which
 * is somebody above, has no name and comes from nowhere. */
static void actor_json(const audit_list *l, const st_audit_row *row, st_strbuf *out)
{
    char user[ST_NAME_MAX + 1] = "", account[ST_NAME_MAX + 1] = "", token[ST_ID_TEXT];
    long long number = 0;

    if (sscanf(row->actor, "%128s %128s %lld", user, account, &number) == 3 &&
        strcmp(account, "-") == 0)
        account[0] = '\0';
    if (!st_api_sees(l->api, l->call, account)) {
        st_out_text(out, "actor", "an account above yours");
        st_out_text(out, "source", "");
        return;
    }
    st_out_text(out, "actor", user);
    st_out_text(out, "actor_account", account);
    if (number > 0) {
        st_control_name(l->api->control, 't', (uint64_t)number, token);
        st_out_text(out, "actor_token", token);
    }
    st_out_text(out, "source", row->source);
}

static int audit_row(void *ctx, const st_audit_row *row, st_err *err)
{
    audit_list *l = ctx;
    char id[ST_ID_TEXT];

    (void)err;
    if (l->n == l->limit) {
        l->n++;
        return 1;
    }
    st_strbuf_add(&l->out, l->n++ > 0 ? ",{" : "{");
    st_control_name(l->api->control, 'a', (uint64_t)row->seq, id);
    st_out_text(&l->out, "id", id);
    st_out_time(&l->out, "at", row->at_ms);
    actor_json(l, row, &l->out);
    st_out_text(&l->out, "account", row->account);
    st_out_text(&l->out, "verb", row->verb);
    st_out_text(&l->out, "target", row->target);
    st_out_raw(&l->out, "detail", row->detail[0] ? row->detail : "null");
    st_strbuf_addc(&l->out, '}');
    l->last = row->seq;
    return 0;
}

static int same_seq(void *ctx, const st_audit_row *row, st_err *err)
{
    int64_t *seq = ctx;

    (void)err;
    if (row->seq == *seq)
        *seq = 0;
    return 1;
}

/* A cursor is a row that the caller has seen: other numbers would tell where its own rows stand
 * among everybody's. */
static int audit_from(st_api *api, st_store *reader, const char *cursor, st_audit_filter *f,
                      st_err *err)
{
    st_audit_filter one = {
        .accounts = f->accounts, .naccounts = f->naccounts, .no_account = f->no_account};
    uint64_t seq;
    int64_t at = -1;
    int r = 0;

    if (st_control_named(api->control, 'a', cursor, &seq)) {
        at = (int64_t)seq;
        one.before_seq = at + 1;
        one.limit = 1;
        r = st_store_audit_list(reader, &one, same_seq, &at, err);
        f->before_seq = (int64_t)seq;
    }
    if (r == 0 && at != 0)
        r = st_fail(err, ST_EINVAL, "the cursor is none that a list has given out");
    return r;
}

void st_api_audit_list(st_call *call, void *ctx)
{
    st_api *api = ctx;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    audit_list l = {.api = api, .call = call, .limit = st_call_query_int(call, "limit", 100)};
    const char *cursor = st_call_query(call, "cursor"), *account = st_api_who(call)->account;
    st_audit_filter f = {0};
    st_store *reader = NULL;
    st_err err = {0};
    char next[ST_ID_TEXT];
    int r = 0;

    l.limit = ST_MAX(1, ST_MIN(l.limit, AUDIT_MAX));
    f.limit = l.limit + 1;
    if (account[0])
        f.accounts = st_directory_below(api->dir, account, arena, &f.naccounts);
    st_strbuf_add(&l.out, "{\"rows\":[");
    reader = st_api_reader(api, &err);
    if (reader && cursor)
        r = audit_from(api, reader, cursor, &f, &err);
    if (reader && r == 0)
        r = st_store_audit_list(reader, &f, audit_row, &l, &err);
    st_api_reader_back(api, reader);
    if (!reader || r < 0) {
        st_call_fail(call, &err);
    } else {
        st_strbuf_addc(&l.out, ']');
        if (l.n > l.limit) {
            st_control_name(api->control, 'a', (uint64_t)l.last, next);
            st_out_text(&l.out, "next", next);
        }
        st_strbuf_addc(&l.out, '}');
        st_call_reply_buf(call, 200, NULL, &l.out);
    }
    st_strbuf_done(&l.out);
}

void st_api_audit_verify(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_audit_verdict v = {0};
    st_strbuf out = {0};
    st_err err = {0};
    st_store *reader = st_api_reader(api, &err);
    int r = reader ? st_store_audit_verify(reader, &v, &err) : -1;

    st_api_reader_back(api, reader);
    if (r < 0) {
        st_call_fail(call, &err);
        return;
    }
    st_strbuf_addc(&out, '{');
    st_out_raw(&out, "intact", v.bad_seq == 0 ? "true" : "false");
    /* How long the chain is and where it ends moves with what everybody does. */
    if (st_api_who(call)->account[0] == '\0') {
        st_out_int(&out, "rows", v.rows);
        if (v.bad_seq != 0)
            st_out_text(&out, "why", v.why);
        st_out_raw(&out, "head", "\"");
        for (size_t i = 0; i < sizeof v.head; i++)
            st_strbuf_addf(&out, "%02x", v.head[i]);
        st_strbuf_addc(&out, '"');
    }
    st_strbuf_addc(&out, '}');
    st_call_reply_buf(call, 200, NULL, &out);
    st_strbuf_done(&out);
}
