/*
 * A task's environment: what every task has, then CDI's, then the job's own, then what says
 * which GPUs and which place in a gang it has; later ones win. The names are those that torchrun,
 * mpirun (Open MPI 4 and 5, MPICH) and CUDA read.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "run/bundle.h"

#define HOSTFILE "/run/stint/hostfile"

/* Sets NAME=value in a list of such strings, replacing what is there. */
static void set(json_t *env, const char *name, const char *value)
{
    size_t n = strlen(name);
    json_t *text = json_sprintf("%s=%s", name, value);
    const json_t *item;
    size_t i;

    if (!text)
        return; /* not UTF-8; st_bundle_config complains about the whole */
    json_array_foreach(env, i, item)
    {
        const char *old = json_string_value(item);

        if (strncmp(old, name, n) == 0 && old[n] == '=') {
            json_array_set_new(env, i, text);
            return;
        }
    }
    json_array_append_new(env, text);
}

static void set_int(json_t *env, const char *name, int64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRId64, value);
    set(env, name, text);
}

static void set_pair(json_t *env, const char *pair)
{
    const char *eq = strchr(pair, '=');
    ST_CLEANUP(st_freep) char *name = st_xstrndup(pair, (size_t)(eq - pair));

    set(env, name, eq + 1);
}

static void set_gang(json_t *env, const st_run_gang *gang)
{
    if (gang->world_size == 0)
        return;
    set(env, "MASTER_ADDR", gang->master_addr);
    set_int(env, "MASTER_PORT", gang->master_port);
    set_int(env, "RANK", gang->rank);
    set_int(env, "WORLD_SIZE", gang->world_size);
    set_int(env, "LOCAL_RANK", gang->local_rank);
    if (gang->local_world_size > 0)
        set_int(env, "LOCAL_WORLD_SIZE", gang->local_world_size);
    set_int(env, "NODE_RANK", gang->node_rank);
    set_int(env, "GROUP_RANK", gang->node_rank);
    if (gang->addresses)
        set(env, "STINT_TASK_ADDRESSES", gang->addresses);
    if (gang->hostfile) {
        set(env, "STINT_HOSTFILE", HOSTFILE);
        set(env, "OMPI_MCA_orte_default_hostfile", HOSTFILE);
        set(env, "PRTE_MCA_prte_default_hostfile", HOSTFILE);
        set(env, "HYDRA_HOST_FILE", HOSTFILE);
    }
}

json_t *st_bundle_env(const st_run_spec *spec, const st_cdi_edits *cdi)
{
    json_t *env = json_array();

    set(env, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    set(env, "HOME", spec->data ? "/data" : "/tmp");
    set(env, "TMPDIR", "/tmp");
    set(env, "USER", "job");
    set(env, "LANG", "C.UTF-8");
    for (size_t i = 0; cdi && i < cdi->nenv; i++)
        set_pair(env, cdi->env[i]);
    for (const char *const *p = spec->env; p && *p; p++)
        set_pair(env, *p);
    set(env, "STINT_TASK", spec->id);
    set(env, "STINT_TENANT", spec->tenant);
    /* "void" and an empty list are what "no GPU" is called in these two. */
    set(env, "CUDA_VISIBLE_DEVICES",
        spec->gpu_visible ? spec->gpu_visible : (spec->gpu_uuids ? spec->gpu_uuids : ""));
    set(env, "NVIDIA_VISIBLE_DEVICES", spec->gpu_uuids ? spec->gpu_uuids : "void");
    set_gang(env, &spec->gang);
    return env;
}
