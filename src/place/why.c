/* The numbers behind "it does not fit", from the same rooms the placement counts. */
#include "base/macros.h"
#include "place/placer.h"

/* The most tasks one domain of the required level can take, rooms as in `cands`. */
static int64_t widest(st_placer *placer, const st_job *job)
{
    int64_t best = 0, total = 0;
    st_topo level = job->topo_required ? job->topo : ST_TOPO_NONE;
    size_t n = placer->fleet->domains[level].n;
    st_vec_reserve(&placer->sums, n + 1);
    for (size_t i = 0; i < n; i++)
        placer->sums.v[i] = 0;
    for (size_t i = 0; i < placer->work.n; i++) {
        const st_cand *c = &placer->work.v[i];
        total += c->room;
        if (level == ST_TOPO_NODE) {
            best = ST_MAX(best, c->room);
        } else if (level >= ST_TOPO_ZONE && level <= ST_TOPO_RACK) {
            int32_t dom = placer->fleet->nodes.v[c->node]->place[level];
            if (dom >= 0) {
                placer->sums.v[dom] += c->room;
                best = ST_MAX(best, placer->sums.v[dom]);
            }
        }
    }
    return level == ST_TOPO_NONE ? total : best;
}

static int64_t widest_nvlink(st_placer *placer, const st_ask *ask, bool empty, bool ever)
{
    int64_t best = 0;
    for (size_t k = 0; k < placer->fleet->domains[ST_TOPO_NVLINK].n; k++) {
        const st_domain *dom = &placer->fleet->domains[ST_TOPO_NVLINK].v[k];
        int64_t room = 0;
        for (size_t i = 0; i < dom->nodes.n; i++) {
            const st_node *node = placer->fleet->nodes.v[dom->nodes.v[i]];
            if ((!ever && node->state != ST_NODE_READY) ||
                !st_place_allowed(placer, node, ask->job, ask->type))
                continue;
            st_view view = *st_ask_view(ask, node);
            if (empty)
                st_view_build(placer->fleet, placer->tree, node, ST_WHEN_EMPTY, &view);
            uint16_t devs = 0;
            for (int d = 0; d < node->ndevs; d++)
                devs |= (uint16_t)((node->nvlink[d] == (int32_t)k) << d);
            room += st_place_room(placer, node, ask->job, &view, devs);
        }
        best = ST_MAX(best, room);
    }
    return best;
}

void st_place_explain(st_placer *placer, const st_ask *ask, st_place_why *ret)
{
    const st_job *job = ask->job;
    st_job gpu = *job, gpu_cpu = *job, gpu_ram = *job, cpu = *job, ram = *job;
    gpu.shape.cpu_m = gpu_ram.shape.cpu_m = ram.shape.cpu_m = 0;
    gpu.shape.ram_mib = gpu_cpu.shape.ram_mib = cpu.shape.ram_mib = 0;
    cpu.shape.gpus = ram.shape.gpus = 0;
    *ret = (st_place_why){0};
    st_vec_clear(&placer->work);
    for (size_t i = 0; i < placer->fleet->nodes.n; i++) {
        const st_node *node = placer->fleet->nodes.v[i];
        if (!st_place_allowed(placer, node, job, ask->type))
            continue;
        uint16_t all = (uint16_t)((1u << node->ndevs) - 1);
        st_view empty;
        st_view_build(placer->fleet, placer->tree, node, ST_WHEN_EMPTY, &empty);
        int ever = st_place_room(placer, node, job, &empty, all);
        ret->fit_ever += ever;
        if (node->state != ST_NODE_READY)
            continue;
        ret->fit_ready += ever;
        const st_view *view = st_ask_view(ask, node);
        int room = st_place_room(placer, node, job, view, all);
        ret->fit_now += room;
        ret->fit_gpu += st_place_room(placer, node, &gpu, view, all);
        ret->fit_cpu += st_place_room(placer, node, &cpu, view, all);
        ret->fit_ram += st_place_room(placer, node, &ram, view, all);
        ret->fit_gpu_cpu += st_place_room(placer, node, &gpu_cpu, view, all);
        ret->fit_gpu_ram += st_place_room(placer, node, &gpu_ram, view, all);
        for (int d = 0; d < node->ndevs; d++)
            if (view->dev[d].mode == ST_DEV_FREE)
                ret->gpu_free_m += ST_WHOLE_M;
            else if (view->dev[d].mode == ST_DEV_MIG)
                ret->gpu_free_m += 125 * (8 - __builtin_popcount(view->dev[d].mig_mask));
            else if (view->dev[d].mode != ST_DEV_WHOLE)
                ret->gpu_free_m += ST_MAX(ST_WHOLE_M - view->dev[d].used_m, 0);
        if (room > 0)
            st_vec_push(&placer->work, (st_cand){node->id, room, 0, all});
    }
    if (job->topo == ST_TOPO_NVLINK && job->topo_required)
        ret->fit_domain = widest_nvlink(placer, ask, false, false);
    else
        ret->fit_domain = widest(placer, job);

    st_vec_clear(&placer->work);
    for (size_t i = 0; i < placer->fleet->nodes.n; i++) {
        const st_node *node = placer->fleet->nodes.v[i];
        if (!st_place_allowed(placer, node, job, ask->type))
            continue;
        uint16_t all = (uint16_t)((1u << node->ndevs) - 1);
        st_view empty;
        st_view_build(placer->fleet, placer->tree, node, ST_WHEN_EMPTY, &empty);
        int room = st_place_room(placer, node, job, &empty, all);
        if (room > 0)
            st_vec_push(&placer->work, (st_cand){node->id, room, 0, all});
    }
    if (job->topo == ST_TOPO_NVLINK && job->topo_required)
        ret->domain_ever = widest_nvlink(placer, ask, true, true);
    else
        ret->domain_ever = widest(placer, job);
}
