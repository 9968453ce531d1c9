/*
 * Where a task is: for tunnels, which lead to it.
 */
#include <stdio.h>

#include "engine/native_state.h"

bool st_native_seat_of(st_engine *engine, uint64_t job, int task, st_native_seat *ret)
{
    native *e = (native *)engine;
    const native_job *j;

    st_native_lock(e);
    j = st_native_job_of(e, job);
    if (j) {
        *ret = (st_native_seat){.tasks = j->tasks, .stay = j->stay, .node = -1};
        if (task >= 0 && task < j->tasks && !j->halted) {
            const native_node *node = st_native_node_of(e, j->task[task].grant.node);

            ret->state = j->task[task].state;
            if (node && !node->removed) {
                ret->node = node->id;
                snprintf(ret->node_name, sizeof ret->node_name, "%s", node->name);
            }
        }
    }
    st_native_unlock(e);
    return j != NULL;
}
