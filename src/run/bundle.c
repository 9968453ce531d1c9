/*
 * The config.json of a task: who it is, what it sees, what it may use. Everything a task is
 * denied is denied here, in one place; doc/dev/tasks.md says it in words.
 */
#include "run/bundle.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"

#define OOM_SCORE 500 /* before anything of the node's own */
/* Of a terminal, until somebody is attached who has another size. */
#define TERMINAL_ROWS 24
#define TERMINAL_COLS 80

static const char *const masked[] = {
    "/proc/acpi",           "/proc/asound",        "/proc/kcore",
    "/proc/keys",           "/proc/key-users",     "/proc/latency_stats",
    "/proc/timer_list",     "/proc/timer_stats",   "/proc/sched_debug",
    "/proc/scsi",           "/proc/interrupts",    "/proc/kallsyms",
    "/proc/kpagecount",     "/proc/kpageflags",    "/proc/sysvipc",
    "/proc/vmallocinfo",    "/sys/firmware",       "/sys/kernel/debug",
    "/sys/kernel/security", "/sys/kernel/tracing", "/sys/devices/virtual/powercap"};
static const char *const read_only[] = {
    "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/proc/driver"};

static json_t *strings(const char *const *list, size_t n)
{
    json_t *array = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(array, json_string(list[i]));
    return array;
}

/* A limit no higher than our own, which we may not be able to raise. */
static json_t *rlimit(const char *type, int resource, rlim_t want)
{
    struct rlimit own = {0};

    if (getrlimit((__rlimit_resource_t)resource, &own) == 0)
        want = ST_MIN(want, own.rlim_max);
    /* JSON has no unsigned 64 bit for jansson; no limit is written as the largest signed one. */
    json_int_t value = want > INT64_MAX ? INT64_MAX : (json_int_t)want;

    return json_pack("{s:s, s:I, s:I}", "type", type, "hard", value, "soft", value);
}

static json_t *process_args(const st_run_spec *spec)
{
    json_t *args = json_pack("[s, s]", "/run/stint/init", "--");

    if (spec->script) {
        if (strncmp(spec->script, "#!", 2) != 0)
            json_array_append_new(args, json_string("/bin/sh"));
        json_array_append_new(args, json_string("/run/stint/script"));
    }
    for (const char *const *p = spec->command; p && *p; p++)
        json_array_append_new(args, json_string(*p));
    return args;
}

/* The job's own variables are not here: config.json is a file on a disk (run/private.h). */
static json_t *process(const st_run_spec *spec, const st_cdi_edits *cdi)
{
    st_run_spec bare = *spec;
    int64_t uid = spec->userns_ids > 0 ? 0 : spec->uid;
    int64_t gid = spec->userns_ids > 0 ? 0 : spec->gid;
    const char *cwd = spec->workdir ? spec->workdir : spec->data ? "/data" : "/tmp";
    json_t *limits = json_array(), *groups = json_array();

    for (size_t i = 0; i < spec->ngroup; i++)
        json_array_append_new(groups, json_integer(spec->groups[i]));
    bare.env = NULL;
    json_array_append_new(limits, rlimit("RLIMIT_NOFILE", RLIMIT_NOFILE, 1048576));
    json_array_append_new(limits, rlimit("RLIMIT_CORE", RLIMIT_CORE, ST_NO_CORE));
    if (spec->lock_memory)
        json_array_append_new(limits, rlimit("RLIMIT_MEMLOCK", RLIMIT_MEMLOCK, RLIM_INFINITY));
    json_t *p = json_pack(
        "{s:b, s:{s:I, s:I, s:i, s:o}, s:o, s:o, s:s, s:{s:[], s:[], s:[], s:[], s:[]},"
        " s:o, s:b, s:i}",
        "terminal", spec->terminal, "user", "uid", (json_int_t)uid, "gid", (json_int_t)gid, "umask",
        022, "additionalGids", groups, "args", process_args(spec), "env", st_bundle_env(&bare, cdi),
        "cwd", cwd, "capabilities", "bounding", "effective", "inheritable", "permitted", "ambient",
        "rlimits", limits, "noNewPrivileges", 1, "oomScoreAdj", OOM_SCORE);

    if (spec->terminal)
        json_object_set_new(
            p, "consoleSize",
            json_pack("{s:i, s:i}", "height", TERMINAL_ROWS, "width", TERMINAL_COLS));
    return p;
}

static json_t *resources(const st_run_spec *spec, st_cg_mode mode, json_t *rules)
{
    json_t *res = json_pack("{s:o, s:{s:I}}", "devices", rules, "pids", "limit",
                            (json_int_t)(spec->pids > 0 ? spec->pids : ST_RUN_PIDS_DEFAULT));

    if (spec->ram_mib > 0) {
        json_int_t bytes = (json_int_t)spec->ram_mib << 20;

        /* RAM and swap together: no swap. */
        json_object_set_new(res, "memory", json_pack("{s:I, s:I}", "limit", bytes, "swap", bytes));
        if (mode == ST_CG_V2)
            json_object_set_new(res, "unified", json_pack("{s:s}", "memory.oom.group", "1"));
    }
    json_t *cpu = json_object();

    /* Which memory it uses is left to the kernel, which prefers what is near its CPUs: a task whose RAM is more
     * than one NUMA node has would be killed on that alone. */
    if (spec->cpus)
        json_object_set_new(cpu, "cpus", json_string(spec->cpus));
    /* Its limit is set by the supervisor, when all that is left to run is the job's command (run/init.h). */
    if (spec->cpu_m > 0) {
        json_int_t shares = (json_int_t)ST_MIN(ST_MAX(spec->cpu_m * 1024 / 1000, 2), 262144);

        json_object_set_new(cpu, "shares", json_integer(shares));
    }
    if (json_object_size(cpu) > 0)
        json_object_set(res, "cpu", cpu);
    json_decref(cpu);
    return res;
}

static void add_namespace(json_t *list, const char *type, const char *path)
{
    json_t *item = json_pack("{s:s}", "type", type);

    if (path)
        json_object_set_new(item, "path", json_string(path));
    json_array_append_new(list, item);
}

static json_t *namespaces(const st_run_spec *spec, const st_bundle_place *place)
{
    static const char *const always[] = {"pid", "mount", "ipc", "uts", "cgroup"};
    json_t *list = json_array();

    for (size_t i = 0; i < ST_ARRAY_LEN(always); i++)
        add_namespace(list, always[i], NULL);
    if (spec->net != ST_NET_HOST)
        add_namespace(list, "network", spec->net == ST_NET_TENANT ? place->netns : NULL);
    if (spec->userns_ids > 0)
        add_namespace(list, "user", NULL);
    return list;
}

static json_t *id_map(int64_t first, int64_t n)
{
    return json_pack("[{s:i, s:I, s:I}]", "containerID", 0, "hostID", (json_int_t)first, "size",
                     (json_int_t)n);
}

static int linux_part(const st_run_spec *spec, const st_cdi_edits *cdi,
                      const st_bundle_place *place, json_t **ret, st_err *err)
{
    json_t *devices = json_array();
    json_t *rules = json_array();
    char group[PATH_MAX];
    int r = st_bundle_devices(spec, cdi, devices, rules, err);

    if (r) {
        json_decref(devices);
        json_decref(rules);
        return r;
    }
    snprintf(group, sizeof(group), "/%s", place->cgroup);
    json_t *part =
        json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:s}", "namespaces", namespaces(spec, place),
                  "devices", devices, "cgroupsPath", group, "resources",
                  resources(spec, place->cgroups, rules), "seccomp", st_bundle_seccomp(),
                  "maskedPaths", strings(masked, ST_ARRAY_LEN(masked)), "readonlyPaths",
                  strings(read_only, ST_ARRAY_LEN(read_only)), "rootfsPropagation", "private");

    if (spec->userns_ids > 0) {
        json_object_set_new(part, "uidMappings", id_map(spec->uid, spec->userns_ids));
        json_object_set_new(part, "gidMappings", id_map(spec->gid, spec->userns_ids));
    }
    *ret = part;
    return 0;
}

int st_bundle_config(const st_run_spec *spec, const st_cdi_edits *cdi, const st_bundle_place *place,
                     json_t **ret, st_err *err)
{
    json_t *for_linux = NULL;
    int r = linux_part(spec, cdi, place, &for_linux, err);

    if (r)
        return r;
    /* Runtimes forget flags of mounts; a hook sees to them (run/walls.h), and to the root's, which it makes read-only
     * after the runtime's last mount point is made. */
    json_t *config = json_pack(
        "{s:s, s:o, s:{s:s, s:b}, s:s, s:o, s:o, s:{s:[{s:s, s:[s, s, s]}]}}", "ociVersion",
        "1.0.2", "process", process(spec, cdi), "root", "path", place->rootfs, "readonly", 0,
        "hostname", place->hostname, "mounts", st_bundle_mounts(spec, cdi, place), "linux",
        for_linux, "hooks", "createContainer", "path", place->init, "args", place->init, "--seal",
        place->rootfs);

    if (!config)
        return st_fail(err, ST_EINVAL,
                       "the command, environment and paths of a task must be valid UTF-8");
    *ret = config;
    return 0;
}
