/* The numbers behind "it does not fit", from the same rooms the placement counts. */
#include "base/macros.h"
#include "place/placer.h"

/* What of the fleet is looked at. */
typedef enum look {
    FREE_NOW,    /* ready nodes as they are */
    READY_EMPTY, /* ready nodes, as if nobody were there */
    ALL_EMPTY,   /* every node, as if nobody were there */
} look;

/* The node's view for a look; false when it is not looked at. */
static bool see(const st_placer *placer, const st_ask *ask, const st_node *node, look at,
                st_view *ret)
{
    if (at != ALL_EMPTY && node->state != ST_NODE_READY)
        return false;
    if (!st_place_allowed(placer, node, ask->job, ask->type))
        return false;
    if (at == FREE_NOW)
        *ret = *st_ask_view(ask, node);
    else
        st_view_build(placer->fleet, placer->tree, node, ST_WHEN_EMPTY, ret);
    return true;
}

/* Nodes of a kind, by one of them. A node that is like no other stands for itself. */
typedef struct alike {
    const st_node *node;
    int64_t many;
} alike;

typedef ST_VEC(alike) census;

/* Whoever may be seen as something else than it is stands for itself too. */
static void take_census(st_placer *placer, const st_ask *ask, census *ret)
{
    st_place_kinds *k = &placer->kinds;
    st_kinds_look(k, placer->fleet);
    for (size_t i = 0; i < k->n; i++) {
        st_place_answer *at =
            k->of[i] && !ask->view && !ask->job->shape.nodes ? &k->answers[k->of[i]] : NULL;
        if (at && at->look == k->look) {
            ret->v[at->value].many++;
            continue;
        }
        if (at)
            *at = (st_place_answer){k->look, (int32_t)ret->n};
        st_vec_push(ret, (alike){placer->fleet->nodes.v[i], 1});
    }
}

/* Tasks that fit anywhere. */
static int64_t sum_rooms(const st_placer *placer, const census *all, const st_ask *ask,
                         const st_job *job, look at)
{
    int64_t sum = 0;
    for (size_t i = 0; i < all->n; i++) {
        const st_node *node = all->v[i].node;
        st_view view;
        if (see(placer, ask, node, at, &view))
            sum += all->v[i].many * st_place_room(placer, node, job, &view, st_all_devs(node));
    }
    return sum;
}

/* The most tasks that fit one domain of a level. */
static int64_t widest(st_placer *placer, const st_ask *ask, st_topo level, look at)
{
    int64_t best = 0;
    size_t n = placer->fleet->domains[level].n;
    st_vec_reserve(&placer->sums, n + 1);
    for (size_t i = 0; i < n; i++)
        placer->sums.v[i] = 0;
    for (size_t i = 0; i < placer->fleet->nodes.n; i++) {
        const st_node *node = placer->fleet->nodes.v[i];
        st_view view;
        if (!see(placer, ask, node, at, &view))
            continue;
        if (level == ST_TOPO_NVLINK) {
            int32_t last = -1;
            for (int d = 0; d < node->ndevs; d++) {
                if (node->nvlink[d] == last)
                    continue;
                last = node->nvlink[d];
                int64_t *sum = &placer->sums.v[last];
                *sum += st_place_room(placer, node, ask->job, &view, st_nvlink_devs(node, last));
                best = ST_MAX(best, *sum);
            }
            continue;
        }
        int64_t room = st_place_room(placer, node, ask->job, &view, st_all_devs(node));
        if (level == ST_TOPO_NODE) {
            best = ST_MAX(best, room);
        } else if (node->place[level] >= 0) {
            placer->sums.v[node->place[level]] += room;
            best = ST_MAX(best, placer->sums.v[node->place[level]]);
        }
    }
    return best;
}

static int64_t free_gpu_m(const st_placer *placer, const census *all, const st_ask *ask)
{
    int64_t sum = 0;
    for (size_t i = 0; i < all->n; i++) {
        const st_node *node = all->v[i].node;
        st_view view;
        if (see(placer, ask, node, FREE_NOW, &view))
            sum += all->v[i].many * st_free_m(&view);
    }
    return sum;
}

static int64_t most_ever(st_placer *placer, const census *all, const st_ask *ask)
{
    return ask->job->topo_required ? widest(placer, ask, ask->job->topo, ALL_EMPTY)
                                   : sum_rooms(placer, all, ask, ask->job, ALL_EMPTY);
}

int64_t st_place_most(st_placer *placer, const st_ask *ask)
{
    census all = {0};
    take_census(placer, ask, &all);
    int64_t most = most_ever(placer, &all, ask);
    st_vec_free(&all);
    return most;
}

void st_place_explain(st_placer *placer, const st_ask *ask, st_place_why *ret)
{
    const st_job *job = ask->job;
    st_job gpu = *job, gpu_cpu = *job, gpu_ram = *job, cpu = *job, ram = *job;
    gpu.shape.cpu_m = gpu_ram.shape.cpu_m = ram.shape.cpu_m = 0;
    gpu.shape.ram_mib = gpu_cpu.shape.ram_mib = cpu.shape.ram_mib = 0;
    cpu.shape.gpus = ram.shape.gpus = 0;
    census all = {0};
    take_census(placer, ask, &all);
    *ret = (st_place_why){
        .fit_now = sum_rooms(placer, &all, ask, job, FREE_NOW),
        .fit_gpu = sum_rooms(placer, &all, ask, &gpu, FREE_NOW),
        .fit_cpu = sum_rooms(placer, &all, ask, &cpu, FREE_NOW),
        .fit_ram = sum_rooms(placer, &all, ask, &ram, FREE_NOW),
        .fit_gpu_cpu = sum_rooms(placer, &all, ask, &gpu_cpu, FREE_NOW),
        .fit_gpu_ram = sum_rooms(placer, &all, ask, &gpu_ram, FREE_NOW),
        .fit_ready = sum_rooms(placer, &all, ask, job, READY_EMPTY),
        .fit_ever = sum_rooms(placer, &all, ask, job, ALL_EMPTY),
        .gpu_free_m = free_gpu_m(placer, &all, ask),
    };
    ret->fit_domain = job->topo_required ? widest(placer, ask, job->topo, FREE_NOW) : ret->fit_now;
    ret->domain_ever = most_ever(placer, &all, ask);
    st_vec_free(&all);
}
