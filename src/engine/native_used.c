/*
 * What agents say their tasks used, handed on to the control loop (ST_REPORT_USED).
 *
 * A status has it every few seconds; a report goes out twice a minute per task, and when a task has
 * left, before the report that its job has ended. An agent repeats what it says of a task that is
 * off its list until that was answered.
 */
#include "engine/native_state.h"

static bool left(const st_agent_task *said)
{
    return said->state != ST_TASK_STARTING && said->state != ST_TASK_RUNNING;
}

static void tell(native *e, const st_agent_task *said, bool last)
{
    const st_report r = {.kind = ST_REPORT_USED,
                         .job = said->job,
                         .stay = said->stay,
                         .task = said->task,
                         .last = last,
                         .used = said->used,
                         .scrub = said->scrub};

    st_vec_push(&e->reports, r);
}

static void listed(native *e, native_task *task, const st_agent_task *said, int64_t now)
{
    bool last = left(said);

    if (said->used.has == 0 && said->scrub.result == ST_SCRUB_PENDING)
        return;
    if (st_used_same(&said->used, &task->used) && said->scrub.result == task->scrub &&
        last == task->left)
        return;
    if (!last && task->used_ms > 0 && now < task->used_ms + ST_USED_EVERY_MS)
        return;
    task->used = said->used;
    task->scrub = said->scrub.result;
    task->used_ms = now;
    task->left = last;
    tell(e, said, last);
}

void st_native_used(native *e, const native_node *node, const st_agent_status *status, int64_t now)
{
    for (size_t i = 0; i < status->n; i++) {
        const st_agent_task *said = &status->tasks[i];
        native_job *job = st_native_meant(e, node, said);

        if (job)
            listed(e, &job->task[said->task], said, now);
    }
    for (size_t i = 0; i < status->npast; i++) {
        const st_agent_task *said = &status->past[i];

        if (st_native_was(node, said->job, said->stay, said->task))
            tell(e, said, true);
    }
}
