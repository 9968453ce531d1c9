/*
 * `stint-agent doctor`: what works on this node, what does not, and what to do about it.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/cpus.h"
#include "agent/files.h"
#include "agent/helper.h"
#include "agent/host.h"
#include "agent/rdma.h"
#include "agent/storage.h"
#include "base/num.h"
#include "gpu/sim.h"
#include "run/mps.h"
#include "run/run.h"

#define CUDA_MS 30000 /* drivers of many GPUs take their time */

static const char *const marks[] = {
    [ST_CHECK_OK] = "ok  ", [ST_CHECK_WARN] = "warn", [ST_CHECK_BAD] = "BAD "};

static void row(FILE *out, st_run_verdict verdict, const char *name, const char *text,
                const char *fix)
{
    fprintf(out, "%s  %-14s %s\n", marks[verdict], name, text);
    if (fix && fix[0])
        fprintf(out, "      %-14s -> %s\n", "", fix);
}

static void gpu_rows(st_gpu *g, const st_gpu_inventory *inv, FILE *out)
{
    char text[512], vram[ST_FMT_MAX];

    snprintf(text, sizeof text, "%d GPUs, driver %s (%s)", inv->n,
             inv->driver[0] ? inv->driver : "unknown", st_gpu_driver(g));
    row(out, ST_CHECK_OK, "gpus", text, NULL);
    for (int d = 0; d < inv->n; d++) {
        const st_gpu_info *i = &inv->gpu[d];
        char name[16];

        snprintf(name, sizeof name, "gpu %d", d);
        snprintf(text, sizeof text, "%s, %s, MIG %s", i->name, st_fmt_mib(vram, i->vram_mib),
                 !i->mig_capable ? "not possible" : (i->mig_on ? "on" : "off"));
        if (i->lost)
            row(out, ST_CHECK_BAD, name, "it does not answer",
                "reset it (nvidia-smi --gpu-reset) or restart the machine");
        else if (!i->type[0])
            row(out, ST_CHECK_WARN, name, text, "its type is not in our table; it joins as `gpu`");
        else
            row(out, ST_CHECK_OK, name, text, NULL);
    }
}

/* Level mps: the program, then a daemon for real, without a server, so that nobody on the GPU is disturbed. */
static void check_mps(const st_agent_conf *conf, const st_gpu_inventory *inv, FILE *out)
{
    char control[PATH_MAX], data[PATH_MAX], dir[PATH_MAX], text[PATH_MAX + 64];
    st_mps m = {.control = control, .dir = dir};
    st_gpu_mps facts;
    st_err err = {0};

    if (conf->sim && !conf->mps_control) {
        row(out, ST_CHECK_OK, "mps", "simulated with the GPUs", NULL);
        return;
    }
    if (st_mps_find(conf->mps_control, control, &err) < 0 ||
        st_gpu_mps_facts(inv, 0, &facts, &err) < 0) {
        row(out, ST_CHECK_WARN, "mps", err.msg, "jobs at level mps are refused until then");
        return;
    }
    if (!facts.memory_limit) {
        row(out, ST_CHECK_WARN, "mps", "the driver is too old for memory limits",
            "jobs at level mps are refused until it runs CUDA 11.5 or newer");
        return;
    }
    if (!realpath(conf->data, data) ||
        snprintf(dir, sizeof dir, "%s/mps-doctor", data) >= (int)sizeof dir)
        return; /* the row about data says so */
    if (st_mps_try(&m, inv->gpu[0].uuid, &err) < 0) {
        row(out, ST_CHECK_WARN, "mps", err.msg,
            geteuid() == 0 ? "see that the vendor's MPS package is that of the driver, and that no "
                             "other MPS daemon has the GPU (echo quit | nvidia-cuda-mps-control)"
                           : "run as root: namespaces and the compute mode need it");
        return;
    }
    snprintf(text, sizeof text, "%s answers; up to %d clients a GPU%s", control, facts.clients,
             inv->gpu[0].mig_on ? ", once MIG is off" : "");
    row(out, ST_CHECK_OK, "mps", text, NULL);
}

/* What it weakens that somebody else owns the settings. */
static void check_settings(const st_agent_conf *conf, const st_gpu_inventory *inv, FILE *out)
{
    int mig = 0, shared = 0;
    char text[160];

    if (!st_settings_left(conf)) {
        row(out, ST_CHECK_OK, "settings", "MIG and compute mode are set as jobs need", NULL);
        return;
    }
    for (int d = 0; d < inv->n; d++) {
        mig += inv->gpu[d].mig_on;
        shared += inv->gpu[d].mode == (int)ST_GPU_MODE_DEFAULT;
    }
    snprintf(text, sizeof text, "MIG and compute mode stay as they are (MIG on %d of %d GPUs)", mig,
             inv->n);
    row(out, ST_CHECK_WARN, "settings", text,
        "level mig has only slices that exist, other levels only GPUs with MIG off: what does not "
        "suit is refused");
    if (shared > 0)
        row(out, ST_CHECK_WARN, "settings mps",
            "level mps runs in the default compute mode: a job that goes around its MPS daemon "
            "gets "
            "the whole GPU",
            "the agent ends it when it sees its memory, up to a second later; set the compute mode "
            "to EXCLUSIVE_PROCESS, or keep level mps to accounts that trust each other");
}

/* Without it jobs at levels mps and time are refused. */
static void check_guard(const st_agent_conf *conf, FILE *out)
{
    char path[PATH_MAX];
    st_err err = {0};

    if (conf->sim && !conf->guard)
        return;
    if (conf->guard && strcmp(conf->guard, "none") == 0)
        row(out, ST_CHECK_WARN, "guard", "off: tasks that share a GPU are watched, not limited",
            "start the agent without --guard none");
    else if (st_guard_find(conf->guard, path, &err) < 0)
        row(out, ST_CHECK_WARN, "guard", err.msg,
            "jobs at levels mps and time are refused until then");
    else
        row(out, ST_CHECK_OK, "guard", path, NULL);
}

/* What stint-cuda says of the driver: without it no memory is read between tenants. */
static bool check_cuda(const st_agent_conf *conf, FILE *out)
{
    char path[PATH_MAX];
    const char *argv[] = {path, "probe", NULL}, *why;
    bool never = strcmp(conf->scrub, "never") == 0, ok;
    json_t *said = NULL;
    st_err err = {0};

    st_helper_find(conf->cuda, "stint-cuda", path);
    if (st_helper_start(conf->data, "doctor", ST_HELPER_ALL, argv, NULL, &err) == 0 &&
        st_helper_wait(conf->data, "doctor", CUDA_MS, &said) != ST_HELPER_DONE)
        st_fail(&err, ST_EDOWN, "%s gives no answer", path);
    why = json_string_value(json_object_get(said, "error"));
    ok = json_is_true(json_object_get(said, "ok"));
    if (!ok)
        row(out, never ? ST_CHECK_WARN : ST_CHECK_BAD, "stint-cuda", why ? why : err.msg,
            "without it tasks cannot be paused, and memory cannot be read between tenants: install "
            "it beside stint-agent and the driver's libcuda.so.1, or give GPUs on unread with "
            "--scrub never");
    else if (!json_is_true(json_object_get(said, "checkpoint")))
        row(out, ST_CHECK_WARN, "stint-cuda", "this driver takes no checkpoints",
            "jobs with on_preempt: pause are asked to save instead; driver 570 is the first that "
            "does");
    else
        row(out, ST_CHECK_OK, "stint-cuda", "takes checkpoints, reads memory", NULL);
    json_decref(said);
    st_helper_forget(conf->data, "doctor");
    return ok || never;
}

static bool check_gpus(const st_agent_conf *conf, FILE *out)
{
    ST_CLEANUP(st_gpu_freep) st_gpu *g = NULL;
    st_gpu_sim_options sim = {.profile = conf->sim, .node = "doctor"};
    st_gpu_inventory inv;
    st_err err = {0};
    int r = conf->sim ? st_gpu_sim_open(&sim, &g, &err) : st_gpu_nvml_open(NULL, &g, &err);

    if (r == 0)
        r = st_gpu_inventory_get(g, &inv, &err);
    if (r < 0) {
        row(out, conf->sim ? ST_CHECK_BAD : ST_CHECK_WARN, "gpus", err.msg,
            conf->sim ? NULL
                      : "the node would join without GPUs; install the vendor's driver, or try "
                        "--sim h100x8");
        return !conf->sim;
    }
    gpu_rows(g, &inv, out);
    if (inv.n > 0) {
        check_settings(conf, &inv, out);
        check_mps(conf, &inv, out);
        check_guard(conf, out);
    }
    if (inv.n > 0 && (!conf->sim || conf->cuda) && !check_cuda(conf, out))
        return false;
    for (int d = 0; d < inv.n; d++)
        if (inv.gpu[d].lost)
            return false;
    return true;
}

static bool check_data(const st_agent_conf *conf, FILE *out)
{
    char text[PATH_MAX + 64];
    st_err err = {0};

    if (st_dir_make(conf->data, &err) < 0 || access(conf->data, W_OK) != 0) {
        snprintf(text, sizeof text, "%s cannot be written", conf->data);
        row(out, ST_CHECK_BAD, "data", text, "choose another folder with --data, or run as root");
        return false;
    }
    snprintf(text, sizeof text, "%s can be written", conf->data);
    row(out, ST_CHECK_OK, "data", text, NULL);
    return true;
}

/* Who keeps tenants to the size of their /data. */
static void check_limit(const st_agent_conf *conf, FILE *out)
{
    st_storage limit = st_storage_limit(conf->data, conf->data_mib);
    char text[160], most[ST_FMT_MAX];

    snprintf(text, sizeof text, "/data of each account up to %s, %s",
             st_fmt_mib(most, limit.bytes >> 20),
             st_storage_enforced(conf->data) ? "kept by the file system (project quotas)"
                                             : "counted by the agent");
    row(out, ST_CHECK_OK, "data limit", text, NULL);
    if (!st_storage_enforced(conf->data))
        row(out, ST_CHECK_WARN, "data quotas", "this file system has no project quotas in force",
            "mount ext4 with prjquota or XFS with pquota, and nobody gets beyond the limit; until "
            "then who is above "
            "it starts nothing and its tasks are ended, a few seconds late");
}

static void check_cpus(FILE *out)
{
    st_topology all, now;
    char text[160];

    st_topology_load(&all);
    st_topology_now(&all, &now);
    snprintf(text, sizeof text, "%d CPUs for jobs, %d cores and %d NUMA node%s on this machine",
             now.n, all.ncore, all.nnode, all.nnode == 1 ? "" : "s");
    if (all.guessed)
        row(out, ST_CHECK_WARN, "cpus",
            "hwloc cannot tell how the CPUs of this machine belong together",
            "look at what lstopo says; until then jobs get CPUs regardless of cores and NUMA "
            "nodes");
    else
        row(out, ST_CHECK_OK, "cpus", text, NULL);
}

/* Nothing is said where there is nothing. */
static void check_rdma(FILE *out)
{
    struct rlimit lock = {0};
    char text[96];
    int n = st_rdma_count();

    snprintf(text, sizeof text, "%d RDMA devices, for jobs with `rdma` in a pool that allows it",
             n);
    if (n > 0 && getrlimit(RLIMIT_MEMLOCK, &lock) == 0 && lock.rlim_max != RLIM_INFINITY)
        row(out, ST_CHECK_WARN, "rdma", "tasks can lock little memory, which RDMA needs",
            "start the agent with LimitMEMLOCK=infinity (ulimit -l unlimited)");
    else if (n > 0)
        row(out, ST_CHECK_OK, "rdma", text, NULL);
}

int st_agent_doctor(const st_agent_conf *conf, FILE *out)
{
    st_run_finding found[ST_RUN_FINDINGS_MAX];
    char state[PATH_MAX];
    st_run_conf run = {.state_dir = state, .runtime = conf->runtime};
    bool ok = check_data(conf, out);
    size_t n;

    snprintf(state, sizeof state, "%s/run", conf->data);
    n = st_run_probe(&run, found);
    for (size_t i = 0; i < n; i++)
        row(out, found[i].verdict, found[i].name, found[i].text, found[i].fix);
    if (st_run_probe_bad(found, n))
        ok = false;
    st_run_probe_segments(conf->address, &found[0]);
    row(out, found[0].verdict, found[0].name, found[0].text, found[0].fix);
    check_rdma(out);
    check_cpus(out);
    check_limit(conf, out);
    ok = check_gpus(conf, out) && ok;
    fprintf(out, ok ? "\nThis node can run jobs.\n"
                    : "\nThis node cannot run jobs in containers until what is BAD is mended.\n");
    return ok ? 0 : 1;
}
