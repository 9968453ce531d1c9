/*
 * GPUs that are free while jobs wait for GPUs (trace/play.h), and what keeps them free.
 *
 * At a sample that is the smaller of what is free and what waiting jobs ask for. What of it is of no
 * type that they take is a cause by itself; the rest is shared out in proportion to what the jobs
 * ask for that are blocked by each other cause: a job counts once, for the first in the order of the
 * table that `why` names for it. Only the largest jobs are asked; they ask for nearly everything.
 */
#include <stdlib.h>

#include "trace/play.h"

#define JOBS_ASKED 32

static const char *const names[] = {
#define X(id, name, what) [id] = name,
    ST_IDLE_TABLE(X)
#undef X
};

static const char *const whats[] = {
#define X(id, name, what) [id] = what,
    ST_IDLE_TABLE(X)
#undef X
};

const char *st_idle_name(st_idle cause)
{
    return names[cause];
}

const char *st_idle_what(st_idle cause)
{
    return whats[cause];
}

static st_idle cause_of(st_why code)
{
    switch (code) {
    case ST_WHY_MAX:
    case ST_WHY_USER_LIMIT:
    case ST_WHY_WEIGHT_ZERO:
        return ST_IDLE_LIMITS;
    case ST_WHY_HELD:
    case ST_WHY_YIELDING:
        return ST_IDLE_LEAVING;
    case ST_WHY_RESERVED:
        return ST_IDLE_RESERVED;
    case ST_WHY_TOPOLOGY:
        return ST_IDLE_TOPOLOGY;
    case ST_WHY_FRAGMENTED:
    case ST_WHY_CPU:
    case ST_WHY_RAM:
        return ST_IDLE_SCATTERED;
    case ST_WHY_GPUS_BUSY:
        return ST_IDLE_SIZE;
    default:
        return ST_IDLE_OTHER;
    }
}

static st_idle ask_why(st_core *core, uint64_t job)
{
    st_reasons reasons = {0};
    st_idle first = ST_IDLE_OTHER;

    if (st_core_explain(core, job, &reasons, NULL) == 0)
        for (size_t i = 0; i < reasons.n; i++)
            if (st_reason_blocks(reasons.v[i].code))
                first = ST_MIN(first, cause_of(reasons.v[i].code));
    st_vec_free(&reasons);
    return first;
}

typedef struct asker {
    uint64_t job;
    int64_t gpu_m;
    uint32_t types;
} asker;

typedef ST_VEC(asker) askers;

static void free_by_type(const st_player *p, int64_t ret_m[ST_TYPES_MAX])
{
    const st_fleet *fleet = st_core_fleet(p->core);

    for (size_t n = 0; n < fleet->nodes.n; n++) {
        const st_node *node = fleet->nodes.v[n];

        if (node->type >= 0 && node->state == ST_NODE_READY)
            ret_m[node->type] += (int64_t)__builtin_popcount(node->view.free) * ST_WHOLE_M;
    }
}

/* What of the free GPUs the jobs could have between them if only the type counted; whole GPUs
 * only. Those with the least choice first. */
static int64_t could_have_m(const st_player *p, const askers *list)
{
    int64_t free_m[ST_TYPES_MAX] = {0}, sum_m = 0;

    free_by_type(p, free_m);
    for (int choice = 1; choice <= ST_TYPES_MAX; choice++)
        for (size_t i = 0; i < list->n; i++) {
            int64_t left_m = list->v[i].gpu_m;

            for (int t = 0; __builtin_popcount(list->v[i].types) == choice && t < ST_TYPES_MAX;
                 t++) {
                int64_t got_m = list->v[i].types >> t & 1 ? ST_MIN(left_m, free_m[t]) : 0;

                free_m[t] -= got_m;
                left_m -= got_m;
                sum_m += got_m;
            }
        }
    return sum_m;
}

static int by_size(const void *pa, const void *pb)
{
    const asker *a = pa, *b = pb;

    if (a->gpu_m != b->gpu_m)
        return a->gpu_m > b->gpu_m ? -1 : 1;
    return a->job < b->job ? -1 : a->job > b->job;
}

void st_player_idle(st_player *p, st_run_sample *s)
{
    int64_t idle_m = ST_MIN(ST_MAX(s->capacity_m - s->allocated_m, 0), s->waiting_m);
    int64_t asked_m[ST_IDLE_COUNT] = {0}, sum_m = 0;
    askers list = {0};

    if (idle_m == 0)
        return;
    for (size_t i = 0; i < st_core_njobs(p->core); i++) {
        const st_job *job = st_core_job_at(p->core, i);

        if ((job->state == ST_JOB_PENDING || job->state == ST_JOB_PAUSED) && job->shape.gpus > 0)
            st_vec_push(&list, (asker){job->id, st_job_gpu_m(job), job->shape.types});
    }
    if (list.n > 1)
        qsort(list.v, list.n, sizeof(*list.v), by_size);
    for (size_t i = 0; i < ST_MIN(list.n, (size_t)JOBS_ASKED); i++) {
        asked_m[ask_why(p->core, list.v[i].job)] += list.v[i].gpu_m;
        sum_m += list.v[i].gpu_m;
    }
    s->idle_m[ST_IDLE_TYPE] = ST_MAX(idle_m - could_have_m(p, &list), 0);
    idle_m -= s->idle_m[ST_IDLE_TYPE];
    for (int c = ST_IDLE_TYPE + 1; sum_m > 0 && c < ST_IDLE_COUNT; c++)
        s->idle_m[c] = (int64_t)((st_i128)idle_m * asked_m[c] / sum_m);
    st_vec_free(&list);
}
