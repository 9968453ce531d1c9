/*
 * GET /metrics: what a monitoring system asks for every few seconds.
 *
 * Everybody sees the accounts of the own subtree; the owner of the cluster sees the fleet, the service and its process as
 * well. Of an account that counts in those below it, `parent` says under whom it stands: a sum over parent="" counts
 * everything once. The name of who stands above the caller is not told.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/money_metrics.h"
#include "api/tunnels.h"
#include "base/mem.h"

/* ---- accounts ------------------------------------------------------------------------------------------ */

typedef struct view {
    const st_question *q;
    const st_core *core;
    const st_tree *tree;
    int32_t root; /* the caller's */
    st_metrics *m;
} view;

static bool shown(const view *v, const st_account *a)
{
    return !a->gone && st_tree_within(v->tree, a->id, v->root);
}

static void label_account(const view *v, const st_account *a)
{
    bool top = a->id == v->root || a->parent == ST_ROOT;

    st_metrics_label(v->m, "account", a->name);
    st_metrics_label(v->m, "parent", top ? "" : st_tree_account(v->tree, a->parent)->name);
}

static void per_account(const view *v, const char *name, const char *help,
                        int64_t (*get)(const st_account *a))
{
    st_metrics_family(v->m, name, ST_METRIC_GAUGE, help);
    for (size_t i = ST_ROOT + 1; i < v->tree->accounts.n; i++) {
        const st_account *a = v->tree->accounts.v[i];

        if (!shown(v, a))
            continue;
        label_account(v, a);
        st_metrics_milli(v->m, get(a));
    }
}

static int64_t held(const st_account *a)
{
    return a->now.gpu_m;
}

static int64_t guaranteed(const st_account *a)
{
    return a->guaranteed.gpu_m;
}

static int64_t floor_of(const st_account *a)
{
    return st_quota_gpu_m(&a->floor);
}

static int64_t lost(const st_account *a)
{
    return a->lost / 1000; /* milli-GPU x ms to milli-GPU-seconds */
}

/* ---- jobs ---------------------------------------------------------------------------------------------- */

typedef struct by_state {
    int64_t n[ST_JOB_STATE_COUNT], gpu_m[ST_JOB_STATE_COUNT];
} by_state;

static bool live_state(int s)
{
    return s <= ST_JOB_PAUSED || s == ST_JOB_STOPPING;
}

static void put_states(const view *v, const by_state *all)
{
    st_metrics_family(v->m, "stint_jobs", ST_METRIC_GAUGE, "Live jobs by state.");
    for (int s = 0; s < ST_JOB_STATE_COUNT; s++) {
        if (!live_state(s))
            continue;
        st_metrics_label(v->m, "state", st_job_state_name((st_job_state)s));
        st_metrics_int(v->m, all->n[s]);
    }
    st_metrics_family(v->m, "stint_jobs_gpus", ST_METRIC_GAUGE, "GPUs that live jobs ask for.");
    for (int s = 0; s < ST_JOB_STATE_COUNT; s++) {
        if (!live_state(s))
            continue;
        st_metrics_label(v->m, "state", st_job_state_name((st_job_state)s));
        st_metrics_milli(v->m, all->gpu_m[s]);
    }
}

/* Of accounts that have a job in that state: most have none in most. */
static void put_queues(const view *v, const by_state *by)
{
    st_metrics_family(v->m, "stint_account_jobs", ST_METRIC_GAUGE,
                      "Live jobs of an account by state, without those of accounts below it; a "
                      "state without jobs is left out.");
    for (size_t i = ST_ROOT + 1; i < v->tree->accounts.n; i++)
        for (int s = 0; s < ST_JOB_STATE_COUNT; s++) {
            if (by[i].n[s] == 0)
                continue;
            label_account(v, v->tree->accounts.v[i]);
            st_metrics_label(v->m, "state", st_job_state_name((st_job_state)s));
            st_metrics_int(v->m, by[i].n[s]);
        }
    st_metrics_family(
        v->m, "stint_account_waiting_gpus", ST_METRIC_GAUGE,
        "GPUs that the waiting jobs of an account ask for, without those of accounts below it.");
    for (size_t i = ST_ROOT + 1; i < v->tree->accounts.n; i++) {
        if (by[i].n[ST_JOB_PENDING] == 0)
            continue;
        label_account(v, v->tree->accounts.v[i]);
        st_metrics_milli(v->m, by[i].gpu_m[ST_JOB_PENDING]);
    }
}

static void live_jobs(const view *v)
{
    by_state all = {0}, *by = st_xcalloc(v->tree->accounts.n, sizeof *by);

    for (size_t i = 0; i < st_core_njobs(v->core); i++) {
        const st_job *job = st_core_job_at(v->core, i);
        int64_t gpu_m = st_job_gpu_m(job);

        if (!st_tree_within(v->tree, job->account, v->root))
            continue;
        all.n[job->state]++;
        all.gpu_m[job->state] += gpu_m;
        by[job->account].n[job->state]++;
        by[job->account].gpu_m[job->state] += gpu_m;
    }
    put_states(v, &all);
    put_queues(v, by);
    free(by);
}

static void put_waits(const view *v, const st_job_counts *sum)
{
    static const int64_t bounds_s[] = ST_TALLY_BOUNDS;
    int64_t bounds_us[ST_TALLY_BUCKETS];

    for (int b = 0; b < ST_TALLY_BUCKETS; b++)
        bounds_us[b] = bounds_s[b] * 1000000;
    st_metrics_family(
        v->m, "stint_job_wait_seconds", ST_METRIC_HISTOGRAM,
        "How long jobs waited before they started or went on, by class, since stintd started.");
    for (int c = ST_CLASS_GUARANTEED; c < ST_CLASS_COUNT; c++) {
        st_metrics_label(v->m, "class", st_class_name((st_class)c));
        st_metrics_histogram_us(v->m, bounds_us, sum->wait[c].count, ST_TALLY_BUCKETS,
                                sum->wait[c].count[ST_TALLY_BUCKETS], sum->wait[c].sum_ms * 1000);
    }
}

typedef uint64_t (*tally_get)(const st_job_counts *t);

static uint64_t preempted(const st_job_counts *t)
{
    return t->preempted;
}

static uint64_t requeued(const st_job_counts *t)
{
    return t->requeued;
}

static uint64_t slowed(const st_job_counts *t)
{
    return t->slowed;
}

static uint64_t slows(const st_job_counts *t)
{
    return t->slows;
}

/* Of accounts that have any. */
static void put_counts(const view *v, const st_job_counts *by, const char *name, const char *help,
                       tally_get get)
{
    st_metrics_family(v->m, name, ST_METRIC_COUNTER, help);
    for (size_t i = ST_ROOT + 1; i < v->tree->accounts.n; i++) {
        if (!shown(v, v->tree->accounts.v[i]) || get(&by[i]) == 0)
            continue;
        label_account(v, v->tree->accounts.v[i]);
        st_metrics_int(v->m, (int64_t)get(&by[i]));
    }
}

/* What became of jobs. */
static void past_jobs(const view *v)
{
    st_job_counts sum = {0}, *by = st_xcalloc(v->tree->accounts.n, sizeof *by);

    for (size_t i = ST_ROOT + 1; i < v->tree->accounts.n; i++) {
        if (!shown(v, v->tree->accounts.v[i]))
            continue;
        st_control_tally(v->q->api->control, (int32_t)i, &by[i]);
        st_control_tally(v->q->api->control, (int32_t)i, &sum);
    }
    st_metrics_family(v->m, "stint_account_jobs_ended_total", ST_METRIC_COUNTER,
                      "Jobs of an account that ended since stintd started, by how; without those "
                      "of accounts below it.");
    for (size_t i = ST_ROOT + 1; i < v->tree->accounts.n; i++)
        for (int s = 0; s < ST_JOB_STATE_COUNT; s++) {
            if (by[i].ended[s] == 0)
                continue;
            label_account(v, v->tree->accounts.v[i]);
            st_metrics_label(v->m, "outcome", st_job_state_name((st_job_state)s));
            st_metrics_int(v->m, (int64_t)by[i].ended[s]);
        }
    put_counts(v, by, "stint_account_preemptions_total",
               "Times that a job of an account had to leave its devices for another job, since "
               "stintd started.",
               preempted);
    put_counts(v, by, "stint_account_requeues_total",
               "Times that a job had to start again for another reason, mostly a failed node, "
               "since stintd started.",
               requeued);
    put_counts(v, by, "stint_account_slowed_total",
               "Times that a job of an account was found to be slowed by a neighbour on its GPU, "
               "since stintd started.",
               slowed);
    put_counts(v, by, "stint_account_slows_total",
               "Times that a job of an account was found to slow a neighbour on its GPU, since "
               "stintd started.",
               slows);
    put_waits(v, &sum);
    free(by);
}

/* ---- the fleet and the service ----------------------------------------------------------------------- */

static int64_t incidents(const st_core *core, st_cause cause, bool breaker)
{
    int64_t n = 0;

    for (size_t i = 0; i < st_core_nincidents(core); i++) {
        const st_incident *inc = st_core_incident_at(core, i);

        n += !inc->over && st_fault_cause(inc->kind) == cause && (inc->breaker || !breaker);
    }
    return n;
}

static void fleet_metrics(const st_core *core, st_metrics *m)
{
    const st_fleet *fleet = st_core_fleet(core);

    st_metrics_family(m, "stint_nodes", ST_METRIC_GAUGE, "Nodes by state.");
    for (int s = 0; s < ST_NODE_STATE_COUNT; s++) {
        int64_t n = 0;

        if (s == ST_NODE_REMOVED)
            continue;
        for (size_t i = 0; i < fleet->nodes.n; i++)
            n += fleet->nodes.v[i]->state == (st_node_state)s;
        st_metrics_label(m, "state", st_node_state_name((st_node_state)s));
        st_metrics_int(m, n);
    }
    st_metrics_family(m, "stint_incidents_open", ST_METRIC_GAUGE,
                      "Incidents of nodes that are not over, by cause.");
    for (int c = 0; c < ST_CAUSE_COUNT; c++) {
        st_metrics_label(m, "cause", st_cause_name((st_cause)c));
        st_metrics_int(m, incidents(core, (st_cause)c, false));
    }
    st_metrics_family(m, "stint_breakers_open", ST_METRIC_GAUGE,
                      "Incidents that hold nodes back until somebody has looked, by cause.");
    for (int c = 0; c < ST_CAUSE_COUNT; c++) {
        st_metrics_label(m, "cause", st_cause_name((st_cause)c));
        st_metrics_int(m, incidents(core, (st_cause)c, true));
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
    int64_t tunnels[2];

    st_tunnels_count(q->api->tunnels, tunnels);
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
        {"stint_tunnels", "Open ways into jobs.", ST_METRIC_GAUGE, tunnels[0]},
        {"stint_tunnel_connections", "Connections into jobs.", ST_METRIC_GAUGE, tunnels[1]},
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

/* Under the names that every exporter gives them. */
static void process_metrics(st_metrics *m)
{
    struct rusage used = {0};
    long long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f && fscanf(f, "%lld %lld", &pages, &resident) == 2) {
        st_metrics_family(m, "process_resident_memory_bytes", ST_METRIC_GAUGE,
                          "Memory that stintd has in RAM.");
        st_metrics_int(m, resident * sysconf(_SC_PAGESIZE));
    }
    if (f)
        fclose(f);
    if (getrusage(RUSAGE_SELF, &used) == 0) {
        st_metrics_family(m, "process_cpu_seconds_total", ST_METRIC_COUNTER, "CPU time of stintd.");
        st_metrics_micro(m, (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * INT64_C(1000000) +
                                used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    }
}

static int fill_metrics(st_question *q, st_core *core, st_err *err)
{
    st_metrics m = {.out = &q->out};
    view v = {q, core, st_core_tree(core), st_question_root(q, core), &m};
    int r;

    q->type = ST_METRICS_TYPE;
    live_jobs(&v);
    past_jobs(&v);
    per_account(&v, "stint_account_gpus_held", "GPUs an account and those below hold.", held);
    per_account(&v, "stint_account_gpus_guaranteed", "Of these, inside its guarantee.", guaranteed);
    per_account(&v, "stint_account_gpus_floor",
                "What its guarantee is worth with the nodes there are.", floor_of);
    per_account(&v, "stint_account_lost_gpu_seconds",
                "GPU time that an account and those below lost to preemption and failures.", lost);
    r = st_money_metrics(q, core, &m, err);
    if (r == 0 && st_question_owner(q)) {
        fleet_metrics(core, &m);
        service_metrics(q, &m);
        process_metrics(&m);
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
