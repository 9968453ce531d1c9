/*
 * What belongs to no noun: health, metrics, the OpenAPI document, who one is.
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

        if (a->gone || !st_tree_within(tree, a->id, root))
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
    for (int s = 0; s < ST_JOB_STATE_COUNT; s++) {
        if (s > ST_JOB_PAUSED && s != ST_JOB_STOPPING)
            continue;
        st_metrics_label(m, "state", st_job_state_name((st_job_state)s));
        st_metrics_int(m, n[s]);
    }
    st_metrics_family(m, "stint_jobs_gpus", ST_METRIC_GAUGE, "GPUs that live jobs ask for.");
    for (int s = 0; s < ST_JOB_STATE_COUNT; s++) {
        if (s > ST_JOB_PAUSED && s != ST_JOB_STOPPING)
            continue;
        st_metrics_label(m, "state", st_job_state_name((st_job_state)s));
        st_metrics_milli(m, gpu_m[s]);
    }
}

static void fleet_metrics(const st_core *core, st_metrics *m)
{
    const st_fleet *fleet = st_core_fleet(core);

    st_metrics_family(m, "stint_nodes", ST_METRIC_GAUGE, "Nodes by state.");
    for (int s = 0; s < ST_NODE_REMOVED; s++) {
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
    st_logs_stats logs = {0};
    st_control_stats s;
    st_follower_stats f;

    st_control_stats_get(q->api->control, &s);
    st_control_follower_stats(q->api->control, &f);
    if (q->api->options.logs)
        st_logs_stats_get(q->api->options.logs, &logs);
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
        {"stint_log_position", "The last durable row of the log.", ST_METRIC_GAUGE, f.committed},
        {"stint_reader_position", "The row of the log that answers stand behind.", ST_METRIC_GAUGE,
         q->position},
        {"stint_reader_rows_total", "Transactions that the follower has played.", ST_METRIC_COUNTER,
         (int64_t)f.rows},
        {"stint_reader_seeds_total", "Times the follower was given a whole state.",
         ST_METRIC_COUNTER, (int64_t)f.seeds},
        {"stint_event_streams", "Open event streams.", ST_METRIC_GAUGE,
         (int64_t)st_hub_streams(q->api->hub)},
        {"stint_log_bytes", "Bytes of jobs' logs that are kept.", ST_METRIC_GAUGE, logs.bytes},
        {"stint_logs_pruned_total", "Jobs whose logs were removed: old, or to make room.",
         ST_METRIC_COUNTER, (int64_t)logs.pruned},
        {"stint_store_bytes", "What the store takes on the disk, with its log.", ST_METRIC_GAUGE,
         s.store_bytes},
        {"stint_jobs_pruned_total", "Jobs that ended long ago and were forgotten.",
         ST_METRIC_COUNTER, (int64_t)s.pruned_jobs},
        {"stint_history_pruned_total", "Rows of the scheduler's log that were removed.",
         ST_METRIC_COUNTER, (int64_t)s.pruned_rows},
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
