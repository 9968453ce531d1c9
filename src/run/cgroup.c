/* Control groups of tasks; see the header. */
#include "run/cgroup.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/os.h"

#define PROCS_MAX     (1u << 20) /* bytes of a cgroup.procs we are ready to read */
#define CPU_PERIOD_US 100000
#define FREEZE_MS     200 /* for all of a group to stand still before they are killed */

static bool has_option(const char *options, const char *want)
{
    size_t n = strlen(want);

    for (const char *p = options; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, want, n) == 0 && (p[n] == ',' || p[n] == '\0'))
            return true;
    }
    return false;
}

static void note_v1(st_cg *cg, const char *dir, const char *options)
{
    const struct {
        const char *name;
        char *to;
    } rows[] = {{"memory", cg->memory}, {"pids", cg->pids},       {"cpu", cg->cpu},
                {"cpuset", cg->cpuset}, {"devices", cg->devices}, {"freezer", cg->freezer}};

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        if (has_option(options, rows[i].name) && !rows[i].to[0])
            snprintf(rows[i].to, sizeof(cg->memory), "%s", dir);
}

void st_cg_parse(const char *mounts, st_cg *ret)
{
    char dir[256], type[32], options[512];
    bool v1 = false;

    *ret = (st_cg){0};
    for (const char *line = mounts; line && *line;) {
        if (sscanf(line, "%*s %255s %31s %511s", dir, type, options) == 3 &&
            strncmp(type, "cgroup", 6) == 0) {
            if (ret->nall < ST_CG_ALL_MAX)
                memcpy(ret->all[ret->nall++], dir, sizeof(dir));
            if (strcmp(type, "cgroup2") == 0 && !ret->unified[0])
                snprintf(ret->unified, sizeof(ret->unified), "%s", dir);
            if (strcmp(type, "cgroup") == 0) {
                v1 = true;
                note_v1(ret, dir, options);
            }
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    ret->mode = v1 ? (ret->unified[0] ? ST_CG_HYBRID : ST_CG_V1)
                   : (ret->unified[0] ? ST_CG_V2 : ST_CG_NONE);
}

void st_cg_find(st_cg *ret)
{
    size_t cap = 256u << 10;
    ST_CLEANUP(st_freep) char *text = st_xmalloc(cap);

    if (st_os_peek("/proc/self/mounts", text, cap) < 0)
        text[0] = '\0';
    st_cg_parse(text, ret);
}

const char *st_cg_mode_name(st_cg_mode mode)
{
    static const char *const names[] = {"none", "version 1", "version 2", "hybrid (1 and 2)"};

    return names[mode];
}

/* The pids in one hierarchy's group, as text for strtol; NULL if the group is not there. */
static char *read_procs(const char *mount, const char *path)
{
    char file[PATH_MAX];
    char *text;

    if (!mount[0] || st_os_path(file, NULL, "%s/%s/cgroup.procs", mount, path) != 0 ||
        access(file, R_OK) != 0)
        return NULL;
    text = st_xmalloc(PROCS_MAX);
    if (st_os_peek(file, text, PROCS_MAX) < 0)
        text[0] = '\0';
    return text;
}

static int64_t count_lines(const char *text)
{
    int64_t n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* The hierarchies that tell who is in a group: one may have been left by a half-made start. */
#define WATCHED(cg)                                                           \
    {                                                                         \
        (cg)->unified, (cg)->pids, (cg)->freezer, (cg)->memory, (cg)->devices \
    }

int64_t st_cg_count(const st_cg *cg, const char *path)
{
    const char *const mounts[] = WATCHED(cg);
    int64_t most = 0;

    for (size_t i = 0; i < ST_ARRAY_LEN(mounts); i++) {
        ST_CLEANUP(st_freep) char *procs = read_procs(mounts[i], path);
        int64_t n = procs ? count_lines(procs) : 0;

        most = ST_MAX(most, n);
    }
    return most;
}

size_t st_cg_pids(const st_cg *cg, const char *path, int64_t *buf, size_t room)
{
    const char *const mounts[] = WATCHED(cg);

    for (size_t i = 0; i < ST_ARRAY_LEN(mounts); i++) {
        ST_CLEANUP(st_freep) char *procs = read_procs(mounts[i], path);
        size_t n = 0;

        for (char *p = procs; p && *p >= '0' && *p <= '9';) {
            int64_t pid = strtoll(p, &p, 10);

            if (n < room)
                buf[n] = pid;
            n++;
            p += *p == '\n';
        }
        if (n > 0)
            return n;
    }
    return 0;
}

/* The kernel says FREEZING until the last of them stands still: asked again, it looks again. */
static void freeze(const st_cg *cg, const char *path)
{
    int64_t until = st_os_mono_ms() + FREEZE_MS;
    char file[PATH_MAX];

    if (!cg->freezer[0] || st_os_path(file, NULL, "%s/%s/freezer.state", cg->freezer, path) != 0)
        return;
    for (;;) {
        char state[32] = "";

        if (st_os_poke(file, "FROZEN") < 0 || st_os_peek(file, state, sizeof state) < 0 ||
            strncmp(state, "FROZEN", strlen("FROZEN")) == 0 || st_os_mono_ms() > until)
            return;
        st_os_sleep_ms(1);
    }
}

static void thaw(const st_cg *cg, const char *path)
{
    char file[PATH_MAX];

    if (cg->freezer[0] && st_os_path(file, NULL, "%s/%s/freezer.state", cg->freezer, path) == 0)
        (void)st_os_poke(file, "THAWED");
}

/* Frozen processes cannot fork, so one round catches all; they die as they thaw. Without waiting for the last
 * to be frozen, a storm of forks is ahead of the list on a busy machine, for minutes. */
static void kill_by_hand(const st_cg *cg, const char *path)
{
    const char *const mounts[] = WATCHED(cg);

    freeze(cg, path);
    for (size_t i = 0; i < ST_ARRAY_LEN(mounts); i++) {
        ST_CLEANUP(st_freep) char *procs = read_procs(mounts[i], path);

        for (char *p = procs; p && *p;) {
            long pid = strtol(p, &p, 10);

            if (pid > 1)
                (void)kill((pid_t)pid, SIGKILL);
            while (*p && *p != '\n')
                p++;
            p += *p == '\n';
        }
    }
    thaw(cg, path);
}

void st_cg_kill(const st_cg *cg, const char *path, bool by_hand)
{
    char file[PATH_MAX];

    if (!by_hand && cg->unified[0] &&
        st_os_path(file, NULL, "%s/%s/cgroup.kill", cg->unified, path) == 0)
        (void)st_os_poke(file, "1");
    /* What cgroup.kill reached is as good as dead; this is for what was only in version 1. A
     * frozen group of version 1 would keep the dead from dying: thawing helps them along. */
    kill_by_hand(cg, path);
}

int64_t st_cg_kill_wait(const st_cg *cg, const char *path, int64_t timeout_ms)
{
    int64_t until = st_os_mono_ms() + timeout_ms;
    int64_t pause_ms = 1;

    for (bool tried = false;; tried = true) {
        int64_t left = st_cg_count(cg, path);

        if (left == 0 || (tried && st_os_mono_ms() > until))
            return left;
        st_cg_kill(cg, path, false);
        st_os_sleep_ms(pause_ms);
        pause_ms = ST_MIN(pause_ms * 2, 50);
    }
}

int st_cg_freeze(const st_cg *cg, const char *path, bool on)
{
    char file[PATH_MAX], text[512];
    bool old = cg->freezer[0] &&
               st_os_path(file, NULL, "%s/%s/freezer.state", cg->freezer, path) == 0 &&
               access(file, F_OK) == 0;

    if (old) {
        if (st_os_poke(file, on ? "FROZEN" : "THAWED") != 0 ||
            st_os_peek(file, text, sizeof(text)) < 0)
            return -1;
        return strncmp(text, on ? "FROZEN" : "THAWED", 6) == 0;
    }
    if (st_os_path(file, NULL, "%s/%s/cgroup.freeze", cg->unified, path) != 0 ||
        st_os_poke(file, on ? "1" : "0") != 0)
        return -1;
    if (st_os_path(file, NULL, "%s/%s/cgroup.events", cg->unified, path) != 0 ||
        st_os_peek(file, text, sizeof(text)) < 0)
        return -1;
    return strstr(text, on ? "frozen 1" : "frozen 0") != NULL;
}

/* Versions differ in names, and in how they say that there is no limit. */
static const char *memory_of(const st_cg *cg)
{
    return cg->memory[0] ? cg->memory : cg->unified;
}

static bool number(const char *dir, const char *path, const char *name, int64_t *ret)
{
    char file[PATH_MAX], text[64];

    if (st_os_path(file, NULL, "%s/%s/%s", dir, path, name) != 0 ||
        st_os_peek(file, text, sizeof(text)) <= 0)
        return false;
    *ret = strncmp(text, "max", 3) == 0 ? INT64_MAX : strtoll(text, NULL, 10);
    return true;
}

#define NO_LIMIT (INT64_C(1) << 60) /* version 1 has a number near the largest there is */

bool st_cg_memory(const st_cg *cg, const char *path, int64_t *ret_used, int64_t *ret_limit)
{
    const char *dir = memory_of(cg);
    bool old = cg->memory[0] != '\0';
    int64_t used, limit;

    if (!number(dir, path, old ? "memory.usage_in_bytes" : "memory.current", &used) ||
        !number(dir, path, old ? "memory.limit_in_bytes" : "memory.max", &limit))
        return false;
    *ret_used = used;
    *ret_limit = limit >= NO_LIMIT ? INT64_MAX : limit;
    return true;
}

static bool set_limit(const char *dir, const char *path, const char *name, int64_t value)
{
    char file[PATH_MAX], text[32];

    snprintf(text, sizeof(text), "%lld", (long long)value);
    return st_os_path(file, NULL, "%s/%s/%s", dir, path, name) == 0 && st_os_poke(file, text) == 0;
}

bool st_cg_memory_limit(const st_cg *cg, const char *path, int64_t bytes)
{
    const char *both = "memory.memsw.limit_in_bytes", *one = "memory.limit_in_bytes";
    int64_t swap;

    if (!cg->memory[0])
        return set_limit(cg->unified, path, "memory.max", bytes);
    if (!number(cg->memory, path, both, &swap)) /* no accounting of swap here */
        return set_limit(cg->memory, path, one, bytes);
    /* The limit with swap is never below the one without. */
    if (bytes > swap)
        return set_limit(cg->memory, path, both, bytes) && set_limit(cg->memory, path, one, bytes);
    return set_limit(cg->memory, path, one, bytes) && set_limit(cg->memory, path, both, bytes);
}

bool st_cg_pins(const st_cg *cg)
{
    char file[PATH_MAX], all[1024];

    if (cg->mode != ST_CG_V2)
        return cg->cpuset[0] != '\0';
    if (st_os_path(file, NULL, "%s/cgroup.controllers", cg->unified) != 0 ||
        st_os_peek(file, all, sizeof(all)) < 0)
        return false;
    /* Words between spaces; "cpu" is another. */
    for (const char *p = all; (p = strstr(p, "cpuset")) != NULL; p++)
        if ((p == all || p[-1] == ' ') && strchr(" \n", p[6]))
            return true;
    return false;
}

bool st_cg_cpus(const st_cg *cg, const char *path, const char *cpus)
{
    const char *dir = cg->cpuset[0] ? cg->cpuset : cg->unified;
    char file[PATH_MAX];

    return st_os_path(file, NULL, "%s/%s/cpuset.cpus", dir, path) == 0 &&
           st_os_poke(file, cpus) == 0;
}

bool st_cg_cpu_limit(const st_cg *cg, const char *path, int64_t cpu_m)
{
    int64_t quota = cpu_m * CPU_PERIOD_US / 1000;
    char file[PATH_MAX], text[64];

    if (cg->cpu[0])
        return set_limit(cg->cpu, path, "cpu.cfs_period_us", CPU_PERIOD_US) &&
               set_limit(cg->cpu, path, "cpu.cfs_quota_us", quota);
    snprintf(text, sizeof(text), "%lld %d", (long long)quota, CPU_PERIOD_US);
    return cg->unified[0] && st_os_path(file, NULL, "%s/%s/cpu.max", cg->unified, path) == 0 &&
           st_os_poke(file, text) == 0;
}

bool st_cg_allow(const st_cg *cg, const char *path, unsigned major, unsigned minor)
{
    char file[PATH_MAX], text[64];

    snprintf(text, sizeof(text), "c %u:%u rw", major, minor);
    return cg->devices[0] &&
           st_os_path(file, NULL, "%s/%s/devices.allow", cg->devices, path) == 0 &&
           st_os_poke(file, text) == 0;
}

static int64_t field(const char *mount, const char *path, const char *name, const char *key)
{
    char file[PATH_MAX], text[1024];
    size_t n = strlen(key);

    if (!mount[0] || st_os_path(file, NULL, "%s/%s/%s", mount, path, name) != 0 ||
        st_os_peek(file, text, sizeof(text)) < 0)
        return 0;
    for (const char *p = text; p; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (strncmp(p, key, n) == 0 && p[n] == ' ')
            return strtoll(p + n, NULL, 10);
    }
    return 0;
}

int64_t st_cg_oom_kills(const st_cg *cg, const char *path)
{
    if (cg->memory[0])
        return field(cg->memory, path, "memory.oom_control", "oom_kill");
    return field(cg->unified, path, "memory.events", "oom_kill");
}

void st_cg_remove(const st_cg *cg, const char *path)
{
    char dir[PATH_MAX];

    for (int i = 0; i < cg->nall; i++)
        if (st_os_path(dir, NULL, "%s/%s", cg->all[i], path) == 0)
            (void)rmdir(dir);
}
