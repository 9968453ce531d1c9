/*
 * Which CPUs tasks run on (agent/cpus.h): what is chosen is in a task's record before it is started, and
 * taken as long as the record says that somebody of it may be there.
 */
#include <stdio.h>
#include <string.h>

#include "agent/host.h"
#include "agent/launch.h"

/* Of all nodes of the process: simulated ones are on the same machine. */
static const st_cpu_load *load_of(st_process *p)
{
    if (p->loaded)
        return &p->load;
    p->load = (st_cpu_load){0};
    p->loaded = true;
    for (size_t k = 0; k < p->hosts.n; k++)
        for (size_t i = 0; i < p->hosts.v[k]->journal.tasks.n; i++) {
            const st_task *t = &p->hosts.v[k]->journal.tasks.v[i];

            if (!t->gone)
                st_cpu_load_add(&p->load, &t->pin, t->cpu_m);
        }
    return &p->load;
}

/* Where its GPUs are attached; simulated ones are nowhere. */
static st_cpuset near(const st_host *h, const st_task_place *place)
{
    st_cpuset all = {0}, one;

    for (int d = 0; !h->sim_gpus && d < h->inv.n; d++)
        if (place->devs >> d & 1 && st_cpuset_parse(h->inv.gpu[d].cpus, &one, NULL) == 0)
            all = st_cpuset_or(&all, &one);
    return all;
}

static void pick(st_host *h, st_task *t)
{
    st_cpuset by = near(h, &t->place);
    st_topology now;

    st_topology_now(&h->process->topology, &now);
    t->pin = st_cpus_pick(&now, load_of(h->process), t->cpu_m, &by);
    st_cpu_load_add(&h->process->load, &t->pin, t->cpu_m);
}

void st_host_pin(st_host *h, st_task *t, const st_order *order)
{
    if (!h->exec->run || !st_run_pins(h->exec->run))
        return;
    t->cpu_m = st_launch_cpu_m(order);
    if (t->cpu_m > 0)
        pick(h, t);
}

void st_host_repin(st_host *h, st_task *t)
{
    char id[ST_RUN_ID_MAX], text[ST_CPUS_TEXT_MAX];
    st_pin before = t->pin;
    st_cpuset all;
    st_err err = {0};

    if (t->cpu_m == 0 || !h->exec->run)
        return;
    t->gone = true; /* its old ones are not taken on its account */
    h->process->loaded = false;
    pick(h, t);
    all = st_cpuset_or(&t->pin.own, &t->pin.common);
    st_cpuset_text(&all, text);
    st_launch_id(t, id);
    if (st_run_cpus(h->exec->run, id, text, &err) < 0) {
        t->pin = before; /* where it was is better than nowhere */
        h->process->loaded = false;
        st_say(h, "not-pinned", "job=%s task=%d reason=\"%s\"", t->key.job, t->key.task, err.msg);
    }
}
