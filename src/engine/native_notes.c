/*
 * What the watch on neighbours of a node found and did, handed on to the control loop (ST_REPORT_NEIGHBOUR).
 *
 * A node speaks of its own tasks alone, and only of two that share the GPU it names: a note about anybody else is not taken. An
 * agent repeats a note until a status with it was answered; its number sees to it that it is taken once.
 */
#include "engine/native_state.h"

#define RATIO_MOST 1000000 /* per cent */

/* Whether the task shares that GPU, or lately was on the node. */
static bool is_there(const native *e, const native_node *node, uint64_t job, int stay, int task,
                     int gpu)
{
    const st_agent_task said = {.job = job, .stay = stay, .task = task};
    const native_job *meant = st_native_meant(e, node, &said);

    if (!meant)
        return st_native_was(node, job, stay, task) != NULL;
    return (meant->shape.level == ST_LEVEL_TIME || meant->shape.level == ST_LEVEL_MPS) &&
           (meant->task[task].grant.devs >> gpu & 1);
}

static bool possible(const native *e, const native_node *node, const st_agent_note *n)
{
    bool alone = n->kind == ST_NB_INCIDENT;

    if (n->gpu < 0 || n->gpu >= ST_DEVS_MAX || n->ratio_pct < 0 || n->ratio_pct > RATIO_MOST ||
        (n->suspect.job == 0) != alone || n->suspect.job == n->victim.job)
        return false;
    return is_there(e, node, n->victim.job, n->victim.stay, n->victim.task, n->gpu) &&
           (alone || is_there(e, node, n->suspect.job, n->suspect.stay, n->suspect.task, n->gpu));
}

void st_native_notes(native *e, native_node *node, const st_agent_status *status, int64_t now)
{
    for (size_t i = 0; i < status->nnotes; i++) {
        const st_agent_note *n = &status->notes[i];
        int64_t at = n->at_ms + (status->now_ms > 0 ? now - status->now_ms : 0);
        st_report r = {.kind = ST_REPORT_NEIGHBOUR,
                       .node = node->id,
                       .job = n->victim.job,
                       .stay = n->victim.stay,
                       .neighbour = {.kind = n->kind,
                                     .rung = n->rung,
                                     .suspect = n->suspect.job,
                                     .gpu = n->gpu,
                                     .ratio_pct = n->ratio_pct,
                                     .at_ms = n->at_ms > 0 && at < now ? at : now}};

        if (n->no <= node->note_no)
            continue;
        node->note_no = n->no;
        if (possible(e, node, n))
            st_vec_push(&e->reports, r);
    }
}
