/*
 * The CPUs of this machine, their cores and NUMA nodes, as hwloc tells (agent/cpus.h).
 */
#include <hwloc.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "agent/cpus.h"
#include "base/macros.h"

/* Bigger than any machine's, as the kernel wants it. */
typedef union mask {
    cpu_set_t first;
    uint64_t w[8192 / 64];
} mask;

static bool usable(const mask *m, int cpu)
{
    return m->w[cpu / 64] >> (cpu % 64) & 1;
}

static bool mask_now(mask *ret)
{
    memset(ret, 0, sizeof *ret);
    return sched_getaffinity(0, sizeof *ret, &ret->first) == 0;
}

static void guess(st_topology *t)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    mask m;
    bool known = mask_now(&m);

    *t = (st_topology){.guessed = true, .nnode = 1};
    for (int i = 0; i < ST_CPUS_MAX; i++)
        if (known ? usable(&m, i) : i < online) {
            t->cpu[t->n] = (st_cpu){.id = i, .core = t->n};
            t->n++;
        }
    if (t->n == 0)
        t->n = 1;
    t->ncore = t->n;
}

/* The NUMA node whose CPUs it is among. */
static int node_of(hwloc_topology_t hw, hwloc_obj_t pu)
{
    hwloc_obj_t node = NULL;

    while ((node = hwloc_get_next_obj_by_type(hw, HWLOC_OBJ_NUMANODE, node)) != NULL)
        if (node->cpuset && hwloc_bitmap_isset(node->cpuset, pu->os_index))
            return (int)node->logical_index;
    return 0;
}

static void read_all(hwloc_topology_t hw, st_topology *t)
{
    hwloc_obj_t pu = NULL;

    *t = (st_topology){.ncore = 1, .nnode = 1};
    while ((pu = hwloc_get_next_obj_by_type(hw, HWLOC_OBJ_PU, pu)) != NULL && t->n < ST_CPUS_MAX) {
        hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(hw, HWLOC_OBJ_CORE, pu);
        st_cpu c = {.id = (int)pu->os_index,
                    .core = (int)(core ? core->logical_index : pu->logical_index),
                    .node = node_of(hw, pu)};

        if (c.id >= ST_CPUS_MAX || c.core >= ST_CPUS_MAX || c.node >= ST_CPUS_MAX)
            continue;
        t->cpu[t->n++] = c;
        t->ncore = ST_MAX(t->ncore, c.core + 1);
        t->nnode = ST_MAX(t->nnode, c.node + 1);
    }
}

void st_topology_load(st_topology *ret)
{
    hwloc_topology_t hw;

    ret->n = 0;
    if (hwloc_topology_init(&hw) == 0) {
        if (hwloc_topology_load(hw) == 0)
            read_all(hw, ret);
        hwloc_topology_destroy(hw);
    }
    if (ret->n == 0)
        guess(ret);
}

void st_topology_now(const st_topology *all, st_topology *ret)
{
    mask m;

    *ret = *all;
    if (!mask_now(&m))
        return;
    ret->n = 0;
    for (int i = 0; i < all->n; i++)
        if (usable(&m, all->cpu[i].id))
            ret->cpu[ret->n++] = all->cpu[i];
    if (ret->n == 0)
        *ret = *all;
}
