/*
 * Which CPUs a task runs on. Pure but for st_topology_load: a topology, what is taken, and an ask give the
 * same CPUs everywhere, so every case is a unit test.
 *
 *  1 A whole CPU of an ask is a CPU of its own, a fraction is a part of one that others with fractions
 *    have a part of as well. So four CPUs see four, and a half sees one.
 *  2 Near its GPUs first; then on one NUMA node; then wherever. Whole cores first, and what remains from
 *    cores that are broken already.
 *  3 Nothing fails here. Who asks for as many as there are gets all; where more was promised than exists
 *    (a node with --cpu, simulated ones), those with the least on them are shared. The quota holds anyway.
 *  4 Nothing is kept but in the records of tasks: what is taken is their sum, so a restart knows it, and
 *    what ends is free.
 */
#ifndef ST_AGENT_CPUS_H
#define ST_AGENT_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ST_CPUS_MAX      1024
#define ST_CPUS_TEXT_MAX (5 * ST_CPUS_MAX) /* of a list of them, in the worst case */

typedef struct st_cpuset {
    uint64_t w[ST_CPUS_MAX / 64];
} st_cpuset;

static inline bool st_cpuset_has(const st_cpuset *s, int cpu)
{
    return cpu >= 0 && cpu < ST_CPUS_MAX && (s->w[cpu / 64] >> (cpu % 64) & 1);
}

static inline void st_cpuset_add(st_cpuset *s, int cpu)
{
    s->w[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

int st_cpuset_count(const st_cpuset *s);
st_cpuset st_cpuset_or(const st_cpuset *a, const st_cpuset *b);

/* "0-3,8", as the kernel writes it; "" is none. What is beyond ST_CPUS_MAX is left out. */
int st_cpuset_parse(const char *text, st_cpuset *ret, st_err *err);
void st_cpuset_text(const st_cpuset *s, char ret[ST_CPUS_TEXT_MAX]);

typedef struct st_cpu {
    int id;         /* the kernel's */
    int core, node; /* numbered from 0 here */
} st_cpu;

typedef struct st_topology {
    int n, ncore, nnode; /* of CPUs, at least 1 of each */
    st_cpu cpu[ST_CPUS_MAX];
    bool guessed; /* hwloc did not say: each CPU a core, all on one node */
} st_topology;

/* Of this machine, as hwloc sees it; never fails. */
void st_topology_load(st_topology *ret);
/* Those of it that this process may use now: others are offline, or were kept from the agent. */
void st_topology_now(const st_topology *all, st_topology *ret);

/* What a task has. */
typedef struct st_pin {
    st_cpuset own;    /* nobody else, as far as there are enough */
    st_cpuset common; /* for the fraction */
} st_pin;

/* What all have. */
typedef struct st_cpu_load {
    int64_t m[ST_CPUS_MAX]; /* milli-CPUs, by the kernel's number */
    st_cpuset common;       /* those that fractions share */
} st_cpu_load;

void st_cpu_load_add(st_cpu_load *load, const st_pin *pin, int64_t cpu_m);

/* For an ask of cpu_m > 0; `near` is empty where it does not matter. */
st_pin st_cpus_pick(const st_topology *t, const st_cpu_load *load, int64_t cpu_m,
                    const st_cpuset *near);

#endif
