/*
 * What agents say, and what follows from it.
 *
 * A gang ends well when all its tasks exited with 0. It fails with the first task that failed: the
 * others are told to stop at once. A task that the order to leave has ended (it was told to save,
 * or to pause) fails nobody: the core requeues the job when its time is up, or when all of it was
 * saved.
 *
 * A node is lost when it was silent for its lease, and comes back when nothing runs there that
 * should not.
 */
#include <stdio.h>
#include <string.h>

#include "engine/native_state.h"

#define EXIT_UNSTARTED 126 /* as a shell says of what it cannot run */
#define EXIT_VANISHED  137
#define EXIT_SIGNAL    128
#define REASON_MAX     171
#define TASKS_LEAST    4096 /* in a status, whatever the pool */
#define TASK_BYTES     256  /* that one of them has, generously */
#define NATIVE_FAULTS  4    /* nodes that may fail to start a job before it fails itself */

static const struct {
    const char *word;
    bool there;
} task_states[] = {
#define X(id, word, there) {word, there},
    ST_TASK_TABLE(X)
#undef X
};

int st_task_state_parse(const char *word)
{
    for (int s = ST_TASK_STARTING; s < ST_TASK_STATE_COUNT; s++)
        if (strcmp(task_states[s].word, word) == 0)
            return s;
    return -1;
}

bool st_native_there(st_task_state state)
{
    return task_states[state].there;
}

/* ---- jobs ---------------------------------------------------------------------------------------- */

void st_native_send(native *e, native_job *job, int64_t now)
{
    job->due = true;
    job->due_ms = now + NATIVE_AGAIN_MS;
    st_vec_push(&e->reports, job->report);
}

static bool leaves(const native_job *job)
{
    return job->want == ST_WANT_CHECKPOINT || job->want == ST_WANT_PAUSE;
}

static bool failed(const native_task *task)
{
    return task->state == ST_TASK_UNSTARTED ||
           (task->state == ST_TASK_EXITED && (task->exit_code != 0 || task->signal != 0));
}

static int exit_code_of(const native_task *task)
{
    if (task->state == ST_TASK_UNSTARTED)
        return task->exit_code ? task->exit_code : EXIT_UNSTARTED;
    return task->signal ? EXIT_SIGNAL + task->signal : task->exit_code;
}

static void stop_others(native *e, native_job *job)
{
    if (job->tasks <= 1)
        return;
    job->want = ST_WANT_STOP;
    job->until_ms = 0;
    st_native_touch_job(e, job);
}

/* The first failure decides; what comes later was brought about by it, or by our order to stop. */
static void fail_job(native *e, native_job *job, int t, const char *why, bool data_full,
                     int64_t now)
{
    const native_task *task = &job->task[t];
    const native_node *node = st_native_node_of(e, task->grant.node);
    const char *name = node ? node->name : "?";
    st_report *r = &job->report;

    *r = (st_report){.kind = ST_REPORT_ENDED,
                     .job = job->id,
                     .stay = job->stay,
                     .exit_code = exit_code_of(task),
                     .data_full = data_full,
                     .ended_ms = task->ended_ms};
    if (why && why[0])
        snprintf(r->reason, sizeof r->reason, "task %d on %.40s: %.170s", t, name, why);
    else if (task->state == ST_TASK_UNSTARTED)
        snprintf(r->reason, sizeof r->reason, "task %d could not be started on %.60s", t, name);
    else if (task->signal)
        snprintf(r->reason, sizeof r->reason, "task %d on %.60s was killed by signal %d", t, name,
                 task->signal);
    else
        snprintf(r->reason, sizeof r->reason, "task %d on %.60s exited with %d", t, name,
                 task->exit_code);
    st_idmap_del(e->faults, job->id);
    stop_others(e, job);
    st_native_send(e, job, now);
}

/* Nodes that cannot start it, for reasons of their own, are no fault of the job's. But what no node can
 * start will not get better. */
static bool another_try(native *e, const native_job *job)
{
    int64_t n = 0;

    st_idmap_get(e->faults, job->id, &n);
    st_idmap_put(e->faults, job->id, n + 1);
    return n + 1 < NATIVE_FAULTS;
}

static void requeue_job(native *e, native_job *job, int t, int64_t now)
{
    job->report = (st_report){.kind = ST_REPORT_UNSTARTED,
                              .job = job->id,
                              .stay = job->stay,
                              .ended_ms = job->task[t].ended_ms};
    stop_others(e, job);
    st_native_send(e, job, now);
}

void st_native_judge(native *e, native_job *job, int64_t now)
{
    int done = 0, saved = 0;
    int64_t last_ms = 0;

    if (job->due)
        return;
    for (int t = 0; t < job->tasks; t++) {
        const native_task *task = &job->task[t];
        bool gone = task->state == ST_TASK_EXITED && !failed(task);

        if (failed(task) && !leaves(job)) { /* it died while it was paused, and is to go on */
            fail_job(e, job, t, NULL, false, now);
            return;
        }
        done += gone;
        saved += task->state == ST_TASK_CHECKPOINTED || task->state == ST_TASK_PAUSED;
        if (gone)
            last_ms = ST_MAX(last_ms, task->ended_ms);
    }
    job->report = (st_report){.job = job->id, .stay = job->stay, .ended_ms = last_ms};
    if (job->tasks > 0 && done == job->tasks) {
        job->report.kind = ST_REPORT_ENDED;
        st_idmap_del(e->faults, job->id);
        st_native_send(e, job, now);
    } else if (leaves(job) && job->until_ms > 0 && saved > 0 && done + saved == job->tasks) {
        job->report.kind = ST_REPORT_CHECKPOINTED;
        st_native_send(e, job, now);
    }
}

void st_native_remind(native *e, int64_t now)
{
    for (size_t i = 0; i < e->jobs.n; i++)
        if (e->jobs.v[i]->due && e->jobs.v[i]->due_ms <= now)
            st_native_send(e, e->jobs.v[i], now);
}

/* ---- nodes --------------------------------------------------------------------------------------- */

/* What it should be said to be now; ST_NODE_STATE_COUNT: nothing new. */
static st_node_state judged(const native_node *node)
{
    if (node->state != ST_NODE_FAILED && (node->lost || node->sick))
        return ST_NODE_FAILED;
    if (node->state == ST_NODE_FAILED && node->ours && node->synced && !node->lost && !node->sick)
        return ST_NODE_READY;
    if ((node->state == ST_NODE_READY || node->state == ST_NODE_TESTING) && node->held)
        return ST_NODE_DRAINING;
    if (node->state == ST_NODE_DRAINING && node->ours && !node->held)
        return ST_NODE_READY;
    /* It was not taken out of service for what its agent said; that is over. */
    if (node->state == ST_NODE_SUSPECT && node->ours && !node->held)
        return ST_NODE_READY;
    return ST_NODE_STATE_COUNT;
}

/* What its agent says of single GPUs, where that is not how the core has them; again while a breaker holds it back. */
static void judge_gpus(native *e, native_node *node, int64_t now)
{
    unsigned sick = node->sick_gpus, back = node->synced ? node->out_gpus & ~sick : 0;

    for (unsigned devs = (sick & (unsigned)~node->out_gpus) | (sick & node->stay_gpus) | back; devs;
         devs &= devs - 1) {
        int d = __builtin_ctz(devs);
        bool is = sick >> d & 1;
        st_report r = {.kind = ST_REPORT_NODE, .node = node->id, .part = d + 1};

        if (now < node->gpu_told_ms[d])
            continue;
        node->gpu_told_ms[d] = now + NATIVE_AGAIN_MS;
        r.node_state = is ? ST_NODE_FAILED : ST_NODE_READY;
        if (is) {
            r.finding = node->gpu_found[d];
            snprintf(r.reason, sizeof r.reason, "%s", node->gpu_reason[d]);
        }
        st_vec_push(&e->reports, r);
    }
}

void st_native_judge_node(native *e, native_node *node, int64_t now)
{
    st_report r = {.kind = ST_REPORT_NODE, .node = node->id};

    if (!node->lost && now >= node->lease_ms) {
        node->lost = true;
        node->synced = false;
        node->finding = (st_finding){.kind = ST_FAULT_SILENT, .gpu = -1};
        snprintf(node->reason, sizeof node->reason, "its agent has been silent for %lld s",
                 (long long)(e->opt.lease_ms / 1000));
    }
    if (!node->lost && !node->sick)
        judge_gpus(e, node, now);
    r.node_state = judged(node);
    if (r.node_state == ST_NODE_STATE_COUNT || now < node->told_ms)
        return;
    node->told_ms = now + NATIVE_AGAIN_MS;
    if (r.node_state != ST_NODE_READY)
        snprintf(r.reason, sizeof r.reason, "%s", node->reason);
    if (r.node_state != ST_NODE_READY)
        r.finding = node->finding;
    st_vec_push(&e->reports, r);
}

/* Which of its GPUs its agent cannot use. */
static void take_gpus(native_node *node, const st_agent_status *status)
{
    node->sick_gpus = (uint16_t)(status->sick_gpus & ((1u << node->ndevs) - 1));
    for (int d = 0; d < node->ndevs; d++) {
        const st_agent_gpu *g = &status->gpus[d];

        if (!(node->sick_gpus >> d & 1))
            continue;
        node->gpu_found[d] = g->finding;
        st_said_text(g->reason && g->reason[0] ? g->reason : "its agent says it cannot be used",
                     node->gpu_reason[d], sizeof node->gpu_reason[d]);
    }
}

/* What its agent found when it tested the node; again until that was taken. */
static void take_test(native *e, native_node *node, const st_agent_status *status, int64_t now)
{
    st_report r = {.kind = ST_REPORT_TESTED,
                   .node = node->id,
                   .test = status->test.no,
                   .done = status->test.passed,
                   .without = status->test.without,
                   .finding = status->test.finding,
                   .doc = status->test.doc};

    if (node->test == 0 || status->test.no != node->test || now < node->test_told_ms)
        return;
    node->test_told_ms = now + NATIVE_AGAIN_MS;
    if (status->test.reason)
        st_said_text(status->test.reason, r.reason, sizeof r.reason);
    st_vec_push(&e->reports, r);
}

/* ---- a status ------------------------------------------------------------------------------------ */

#define SKEW_WINDOW 8 /* statuses */

/* Our clock less the agent's. A status may have been on its way for long, through a network that was
 * cut, and then seems to come from a clock that is slow; the least that was seen lately is nearest
 * to the truth. */
static int64_t skew_of(native_node *node, int64_t seen_ms)
{
    if (node->heard == 0)
        node->skew_ms = node->skew_before_ms = seen_ms;
    if (++node->skew_n > SKEW_WINDOW) {
        node->skew_before_ms = node->skew_ms;
        node->skew_ms = seen_ms;
        node->skew_n = 1;
    }
    node->skew_ms = ST_MIN(node->skew_ms, seen_ms);
    return ST_MIN(node->skew_ms, node->skew_before_ms);
}

/* When something ended, by our clock; what cannot be is now. */
int64_t st_native_ended_at(const native_job *job, const st_agent_status *status,
                           const st_agent_task *said, int64_t now)
{
    int64_t skew = status->now_ms > 0 ? now - status->now_ms : 0;
    int64_t at = said->ended_ms + skew;

    return said->ended_ms > 0 && at >= job->begun_ms && at <= now ? at : now;
}

/* Since when a task runs, by our clock. Of a gang, work begins with its last task. */
static void take_start(native *e, native_job *job, const st_agent_status *status,
                       const st_agent_task *said, int64_t now)
{
    int64_t skew = status->now_ms > 0 ? now - status->now_ms : 0;
    native_task *task = &job->task[said->task];
    st_report r = {.kind = ST_REPORT_STARTED, .job = job->id, .stay = job->stay};

    if (task->started_ms != 0 || said->started_ms <= 0)
        return;
    task->started_ms = ST_MIN(ST_MAX(said->started_ms + skew, job->begun_ms), now);
    if (++job->started < job->tasks)
        return;
    for (int t = 0; t < job->tasks; t++)
        r.started_ms = ST_MAX(r.started_ms, job->task[t].started_ms);
    st_vec_push(&e->reports, r);
}

static bool over(const native_task *task)
{
    return task->state == ST_TASK_EXITED || task->state == ST_TASK_UNSTARTED;
}

/* `sick`: its node, or a GPU that it has. */
static void take_task(native *e, native_job *job, const st_agent_status *status,
                      const st_agent_task *said, bool sick, int64_t now)
{
    native_task *task = &job->task[said->task];

    if (over(task))
        return; /* how it ended was said before */
    take_start(e, job, status, said, now);
    task->state = said->state;
    if (!over(task))
        return;
    task->exit_code = said->exit_code;
    task->signal = said->signal;
    task->ended_ms = st_native_ended_at(job, status, said, now);
    if (!failed(task) || leaves(job) || job->due)
        return;
    if ((said->node_fault || sick) && another_try(e, job)) {
        requeue_job(e, job, said->task, now);
    } else {
        char why[REASON_MAX];

        st_said_text(said->reason ? said->reason : "", why, sizeof why);
        fail_job(e, job, said->task, why, said->data_full, now);
    }
}

/* What dies on a sick node was killed by it: the job goes back to the queue with all others there. */
static bool bad(const st_agent_task *said)
{
    return said->state == ST_TASK_UNSTARTED ||
           (said->state == ST_TASK_EXITED && (said->exit_code != 0 || said->signal != 0));
}

native_job *st_native_meant(const native *e, const native_node *node, const st_agent_task *said)
{
    native_job *job = st_native_job_of(e, said->job);

    if (!job || job->halted || job->stay != said->stay || said->task < 0 ||
        said->task >= job->tasks || job->task[said->task].grant.node != node->id)
        return NULL;
    return job;
}

static void take_tasks(native *e, native_node *node, const st_agent_status *given, int64_t now)
{
    st_agent_status corrected = *given;
    const st_agent_status *status = &corrected;
    bool strangers = false;
    /* Who stays on a node that was not taken out of service goes elsewhere with its next task that dies. */
    bool sick = given->sick && node->state != ST_NODE_SUSPECT;

    if (given->now_ms > 0)
        corrected.now_ms = now - skew_of(node, now - given->now_ms);
    node->heard++;
    for (size_t i = 0; i < status->n; i++) {
        const st_agent_task *said = &status->tasks[i];
        native_job *job = st_native_meant(e, node, said);

        if (!job) {
            strangers |= task_states[said->state].there;
            st_native_hear_late(e, node, status, said, now);
            continue;
        }
        job->task[said->task].heard_at = node->heard;
        if (said->odd)
            st_native_flag(e, node, ST_FLAG_FIGURES, "it said that a task ended as no process can",
                           now);
        uint16_t ill = job->task[said->task].grant.devs & node->sick_gpus;

        if (!(sick || (ill & ~node->stay_gpus)) || !bad(said))
            take_task(e, job, status, said, status->sick || ill, now);
    }
    for (size_t i = 0; i < node->list.n; i++) {
        native_job *job = node->list.v[i].job;
        native_task *task = &job->task[node->list.v[i].task];

        if (!sick && !(task->grant.devs & node->sick_gpus) && task->heard_at != node->heard &&
            task_states[task->state].there) {
            task->state = ST_TASK_EXITED;
            task->exit_code = EXIT_VANISHED;
            task->ended_ms = now;
            if (!leaves(job) && !job->due)
                fail_job(e, job, node->list.v[i].task, "its agent no longer knows of it", false,
                         now);
        }
        if (i + 1 == node->list.n || node->list.v[i + 1].job != job)
            st_native_judge(e, job, now);
    }
    st_native_hear_halted(e, node, status, now);
    node->synced = !strangers && status->revision == node->revision;
}

void st_native_terms(st_engine *engine, st_agent_answer *ret)
{
    native *e = (native *)engine;

    st_native_lock(e);
    *ret = (st_agent_answer){.epoch = e->base.epoch,
                             .now_ms = e->opt.clock(e->opt.ctx),
                             .lease_ms = st_native_lease_told(e),
                             .keep = e->opt.keep};
    st_native_unlock(e);
}

/* A node has no more to say than its pool lets it have: live tasks, and as many that are over and to be forgotten. */
static int check_length(const native_node *node, const st_agent_status *status, st_err *err)
{
    size_t most = (size_t)ST_MAX(2 * node->rules.node_tasks, TASKS_LEAST);

    if (status->n > most || status->npast > most)
        return st_fail(err, ST_ELIMIT, "a status of %zu tasks; a node of this pool has at most %zu",
                       ST_MAX(status->n, status->npast), most);
    if (status->bytes > ST_MAX(most * TASK_BYTES, (size_t)1 << 20))
        return st_fail(err, ST_ELIMIT, "a status of %zu bytes is too long for a node of this pool",
                       status->bytes);
    return 0;
}

/* What it was told is not in the store: that is a copy from before. */
static bool is_ahead(const native *e, const st_agent_status *status)
{
    return status->branch > e->branch ||
           (status->branch == e->branch && status->position > e->position);
}

int st_native_status(st_engine *engine, const char *name, const st_agent_status *status,
                     st_agent_answer *ret, st_err *err)
{
    native *e = (native *)engine;
    int64_t now = e->opt.clock(e->opt.ctx), i;
    native_node *node;
    int r = 0;

    st_native_terms(engine, ret);
    st_native_lock(e);
    if (e->lead == ST_LEAD_FULL && is_ahead(e, status)) {
        r = st_fail(err, ST_ESTATE,
                    "this agent has followed a store that went on to row %lld, and this one ends "
                    "at row %lld: it is an older copy, and agents do not follow it. An owner can "
                    "restore it: stintd --restore",
                    (long long)status->position, (long long)e->position);
    } else if (e->lead == ST_LEAD_FULL && status->epoch > e->base.epoch) {
        r = st_fail(err, ST_ESTATE,
                    "a stintd of epoch %lld has taken over and this one is of epoch %lld: it must "
                    "not decide any more",
                    (long long)status->epoch, (long long)e->base.epoch);
    } else if (!st_map_get(e->by_name, name, &i)) {
        r = st_fail(err, ST_ENOENT, "node %.100s is not registered; register it again", name);
    } else if ((r = check_length(e->nodes.v[i], status, err)) == 0) {
        node = e->nodes.v[i];
        node->lost = false;
        node->lease_ms = now + e->opt.lease_ms;
        ret->taken = !status->waiting;
        ret->revision = node->revision;
        ret->state = node->state;
        if (e->lead != ST_LEAD_FULL && !status->waiting) {
            st_native_hear_restored(e, node, status);
            ret->taken = false;
        }
        if (status->waiting || e->lead != ST_LEAD_FULL) {
            st_native_unlock(e);
            return 0;
        }
        node->sick = status->sick;
        node->held = status->held;
        if (status->sick || status->held)
            node->finding = status->finding;
        if (status->sick || status->held)
            st_said_text(status->reason && status->reason[0] ? status->reason
                                                             : "its agent says it cannot be used",
                         node->reason, sizeof node->reason);
        take_gpus(node, status);
        take_test(e, node, status, now);
        st_native_take_images(e, node, status, now);
        st_native_used(e, node, status, now);
        st_native_notes(e, node, status, now);
        if (node->held) /* first: what it could not start goes elsewhere */
            st_native_judge_node(e, node, now);
        take_tasks(e, node, status, now);
        st_native_judge_node(e, node, now);
        ret->revision = node->revision;
        ret->state = node->state;
        ret->test = node->test;
        if (node->test > 0 && node->trial && strlen(node->trial) < sizeof ret->trial)
            memcpy(ret->trial, node->trial, strlen(node->trial) + 1);
    }
    st_native_unlock(e);
    return r;
}
