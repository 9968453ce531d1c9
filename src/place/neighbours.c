/* Large jobs of two accounts are kept out of one node or NVLink domain where there is a choice:
 * they would share its links and its noise. It only decides between places that are equally good
 * otherwise, so it costs no packing. */
#include "place/placer.h"

#define LARGE_GPUS 4

/* Whole GPUs, four or more in all, or half of the node's with a task. */
bool st_is_large(const st_job *job, const st_node *node)
{
    if (job->shape.level != ST_LEVEL_WHOLE || job->shape.gpus == 0)
        return false;
    return (int64_t)job->tasks * job->shape.gpus >= LARGE_GPUS ||
           (job->shape.gpus > 1 && 2 * job->shape.gpus >= node->ndevs);
}

bool st_has_stranger(const st_node *node, uint16_t devs, int32_t account)
{
    for (size_t i = 0; i < node->residents.n; i++) {
        const st_job *job = node->residents.v[i].job;
        bool stays = job->held || job->state == ST_JOB_RUNNING;
        if (stays && job->account != account && st_is_large(job, node) &&
            (job->grants[node->residents.v[i].task].devs & devs))
            return true;
    }
    return false;
}
