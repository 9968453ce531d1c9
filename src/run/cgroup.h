/*
 * Control groups of tasks, over version 1, version 2 and both at once ("hybrid"): find, count,
 * kill, and ask whether memory ran out. The runtime makes the groups and sets the limits.
 */
#ifndef ST_RUN_CGROUP_H
#define ST_RUN_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef enum { ST_CG_NONE, ST_CG_V1, ST_CG_V2, ST_CG_HYBRID } st_cg_mode;

#define ST_CG_ALL_MAX 24

/* Where hierarchies are mounted; "" where there is none. */
typedef struct st_cg {
    st_cg_mode mode;
    char all[ST_CG_ALL_MAX][256]; /* every one of them */
    int nall;
    char unified[256];
    char memory[256], pids[256], cpu[256], cpuset[256], devices[256], freezer[256];
} st_cg;

/* Reads a mount table as in /proc/self/mounts. Pure. */
void st_cg_parse(const char *mounts, st_cg *ret);
void st_cg_find(st_cg *ret);
const char *st_cg_mode_name(st_cg_mode mode);

/* How many processes are in the group at `path` (relative to the hierarchies); 0 if it is not
 * there. */
int64_t st_cg_count(const st_cg *cg, const char *path);

/* Who they are, up to `room`; returns how many there are. */
size_t st_cg_pids(const st_cg *cg, const char *path, int64_t *buf, size_t room);

/* Sends SIGKILL to every process in it, newborn ones included. Call until the count is 0.
 * by_hand forgoes cgroup.kill for freezing and killing one by one, as version 1 alone needs. */
void st_cg_kill(const st_cg *cg, const char *path, bool by_hand);

/* Kills, at least once whatever the time, and waits; the count left, 0 when all are gone. */
int64_t st_cg_kill_wait(const st_cg *cg, const char *path, int64_t timeout_ms);

/* Holds every process of it still, or lets them go on. 1: they are; 0: not all of them yet, ask
 * again; -1 with errno: it cannot be done. */
int st_cg_freeze(const st_cg *cg, const char *path, bool on);

/* Bytes of memory it uses and may use (INT64_MAX: no limit); and another limit. */
bool st_cg_memory(const st_cg *cg, const char *path, int64_t *ret_used, int64_t *ret_limit);
bool st_cg_memory_limit(const st_cg *cg, const char *path, int64_t bytes);

/* Whether groups can be held to certain CPUs; and others for one of them, as in "0-3,8". */
bool st_cg_pins(const st_cg *cg);
bool st_cg_cpus(const st_cg *cg, const char *path, const char *cpus);

/* How much time of CPUs it may use, in thousandths of one. */
bool st_cg_cpu_limit(const st_cg *cg, const char *path, int64_t cpu_m);

/* One more character device for it, to be read and written. */
bool st_cg_allow(const st_cg *cg, const char *path, unsigned major, unsigned minor);

/* How often the kernel killed something in it for memory. */
int64_t st_cg_oom_kills(const st_cg *cg, const char *path);

/* Removes the empty group from every hierarchy. */
void st_cg_remove(const st_cg *cg, const char *path);

#endif
