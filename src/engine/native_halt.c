/*
 * What was told to be gone, and whether it is.
 *
 * A job that the core stops is taken off its nodes' lists at once, and kept here until each of its tasks is gone:
 *   - its agent, on a list without it, does not name it any more, or says that it has ended; or
 *   - its node's lease is over by our reckoning. The agent's own is shorter (st_native_lease_told), so by then it has
 *     killed what it had; or
 *   - its node was removed.
 * An agent on an older list that does not name a task may be about to start it, so that says nothing.
 * Then, and again until the receipt, the control loop is told.
 *
 * What was given up because its node was silent may have ended by itself before the lease did. When its agent is
 * heard again it says so; that is passed on if it had that task, and counts if no other stay has begun. A node that never
 * had it, or of which a stintd that was started anew does not know it, ends nobody's job.
 */
#include "engine/native_state.h"

void st_native_unhalt(native *e, native_job *job)
{
    for (size_t i = 0; job->halted && i < e->halted.n; i++) {
        if (e->halted.v[i] != job)
            continue;
        e->halted.v[i] = e->halted.v[e->halted.n - 1];
        e->halted.n--;
        break;
    }
    job->halted = false;
}

/* All of it: when it ended is known if every agent said so. */
static void judge(native *e, native_job *job, int64_t now)
{
    st_report r = {.kind = ST_REPORT_GONE, .job = job->id, .stay = job->stay, .done = true};
    bool known = true;

    for (int t = 0; t < job->tasks; t++) {
        const native_task *task = &job->task[t];

        if (!task->gone)
            return;
        r.done &= task->well;
        known &= task->said_end;
        r.ended_ms = ST_MAX(r.ended_ms, task->ended_ms);
    }
    if (!known)
        r.ended_ms = 0;
    if (job->due && job->report.kind == ST_REPORT_GONE)
        return;
    job->report = r;
    st_native_send(e, job, now);
}

void st_native_halt(native *e, native_job *job, int64_t now)
{
    if (job->halted)
        return;
    st_native_unlist(e, job);
    job->halted = true;
    job->due = false;
    st_vec_push(&e->halted, job);
    for (int t = 0; t < job->tasks; t++) {
        native_task *task = &job->task[t];
        const native_node *node = st_native_node_of(e, task->grant.node);

        task->off = node ? node->revision : 0;
        task->gone = task->state == ST_TASK_EXITED || task->state == ST_TASK_UNSTARTED;
        task->said_end = task->gone;
        task->well = task->state == ST_TASK_EXITED && task->exit_code == 0 && task->signal == 0;
    }
    st_native_judge_halted(e, now);
}

static const st_agent_task *named(const st_agent_status *status, const native_job *job, int task)
{
    for (size_t i = 0; i < status->n; i++) {
        const st_agent_task *said = &status->tasks[i];

        if (said->job == job->id && said->stay == job->stay && said->task == task)
            return said;
    }
    return NULL;
}

static void hear(native_job *job, int t, const native_node *node, const st_agent_status *status,
                 int64_t now)
{
    native_task *task = &job->task[t];
    const st_agent_task *said = named(status, job, t);

    if (task->gone || task->grant.node != node->id)
        return;
    if (said ? st_native_there(said->state) : status->revision < task->off)
        return;
    task->gone = true;
    if (!said)
        return;
    task->said_end = said->ended_ms > 0;
    task->ended_ms = st_native_ended_at(job, status, said, now);
    task->well = said->state == ST_TASK_EXITED && said->exit_code == 0 && said->signal == 0 &&
                 !said->stopped && !said->odd;
}

void st_native_hear_halted(native *e, const native_node *node, const st_agent_status *status,
                           int64_t now)
{
    for (size_t i = 0; i < e->halted.n; i++) {
        native_job *job = e->halted.v[i];

        for (int t = 0; t < job->tasks; t++)
            hear(job, t, node, status, now);
        judge(e, job, now);
    }
}

void st_native_judge_halted(native *e, int64_t now)
{
    for (size_t i = 0; i < e->halted.n; i++) {
        native_job *job = e->halted.v[i];

        for (int t = 0; t < job->tasks; t++) {
            const native_node *node = st_native_node_of(e, job->task[t].grant.node);

            job->task[t].gone |= !node || now >= node->lease_ms;
        }
        judge(e, job, now);
    }
}

void st_native_hear_late(native *e, const native_node *node, const st_agent_status *status,
                         const st_agent_task *said, int64_t now)
{
    const native_past *past = st_native_was(node, said->job, said->stay, said->task);
    int64_t skew = status->now_ms > 0 ? now - status->now_ms : 0;
    bool failed = said->exit_code != 0 || said->signal != 0;

    if (said->state != ST_TASK_EXITED || said->job == 0 || said->stopped || said->node_fault ||
        said->odd || !past || past->over || st_native_job_of(e, said->job) ||
        (failed && status->sick))
        return;
    const st_report r = {.kind = ST_REPORT_LATE,
                         .job = said->job,
                         .stay = said->stay,
                         .task = said->task,
                         .exit_code = said->signal ? 128 + said->signal : said->exit_code,
                         .ended_ms = said->ended_ms > 0 ? ST_MIN(said->ended_ms + skew, now) : 0};

    st_vec_push(&e->reports, r);
}
