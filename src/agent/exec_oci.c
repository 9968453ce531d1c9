/*
 * The executor of real tasks: containers by way of src/run, whose supervisors outlive us.
 */
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/exec.h"
#include "agent/fence.h"
#include "agent/files.h"
#include "agent/launch.h"
#include "base/hash.h"
#include "base/mem.h"

#define LOOK_MS      10000 /* of one whose folder is watched: in case a notice was lost */
#define BLIND_MS     500   /* of one whose folder is not */
#define HOLD_WAIT_MS 50
#define FOREVER_MS   (INT64_C(20) * 365 * 86400000)
#define UNWATCHED    "its supervisor was killed, so it was ended: nobody could hold it to its limits"

static void oci_free(st_exec *e)
{
    st_run_free(e->run);
    free(e);
}

static int oci_start(st_exec *e, st_task *t, const st_launch *l, int64_t now, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_run_spec spec;
    int r = st_launch_spec(arena, t, l, now, &spec, err);

    if (r == 0)
        r = st_run_start(e->run, &spec, err);
    if (r == 0)
        t->phase = ST_PHASE_STARTING;
    return r;
}

static int oci_signal(st_exec *e, st_task *t, int signal, int64_t now, st_err *err)
{
    char id[ST_RUN_ID_MAX];

    (void)now;
    st_launch_id(t, id);
    /* Before it hears: who comes later knows what its exit means. */
    if (t->stopped || t->asked)
        (void)st_run_tell(e->run, id, t->stopped ? ST_RUN_TOLD_STOP : ST_RUN_TOLD_SAVE, NULL);
    return st_run_signal(e->run, id, signal, err);
}

static int oci_kill(st_exec *e, st_task *t, const char *reason, int64_t now, st_err *err)
{
    char id[ST_RUN_ID_MAX];

    (void)now;
    st_launch_id(t, id);
    return st_run_kill(e->run, id, reason, 0, err);
}

/* Its time limit stands still with it. */
static int oci_pause(st_exec *e, st_task *t, int64_t now, st_err *err)
{
    char id[ST_RUN_ID_MAX];
    int r;

    (void)now;
    st_launch_id(t, id);
    r = st_run_deadline(e->run, id, 0, err);
    return r < 0 ? r : st_run_freeze(e->run, id, true, HOLD_WAIT_MS, err);
}

static int oci_retime(st_exec *e, st_task *t, int64_t deadline_ms, int64_t now, st_err *err)
{
    char id[ST_RUN_ID_MAX];

    st_launch_id(t, id);
    return st_run_deadline(e->run, id,
                           (deadline_ms > 0 ? deadline_ms : now + FOREVER_MS) + ST_LATE_MS, err);
}

static int oci_resume(st_exec *e, st_task *t, int64_t now, st_err *err)
{
    char id[ST_RUN_ID_MAX];

    (void)now;
    st_launch_id(t, id);
    return st_run_freeze(e->run, id, false, HOLD_WAIT_MS, err);
}

/* Why a task ended, for its owner; NULL: its exit says it all. */
static const char *why(const st_run_task *now)
{
    if (now->text[0])
        return now->text;
    switch (now->why) {
    case ST_RUN_WHY_TIME:
        return "its time limit was over";
    case ST_RUN_WHY_OOM:
        return "it used more RAM than it asked for";
    case ST_RUN_WHY_EXIT:
        return now->oom && now->signal ? "it used more RAM than it asked for" : NULL;
    default:
        return NULL;
    }
}

/* Of one whose record was lost all is known again but what it used: it has ended as it did, unless that was for our
 * having lost it. */
static void know_stray(st_task *t, const st_run_task *now)
{
    if (now->why == ST_RUN_WHY_KILLED && strcmp(now->text, ST_STRAY_REASON) == 0)
        return;
    t->fault = false;
    t->reason[0] = '\0';
    t->asked = now->told == ST_RUN_TOLD_SAVE;
    t->stopped = now->told == ST_RUN_TOLD_STOP;
    t->killed = now->why == ST_RUN_WHY_KILLED;
    snprintf(t->tenant, sizeof t->tenant, "%s", now->tenant);
}

static void take_end(st_task *t, const st_run_task *now)
{
    if (t->stray)
        know_stray(t, now);
    if (now->why == ST_RUN_WHY_START) {
        st_task_unstarted(t, now->ended_boot_ms, now->node_fault,
                          now->text[0] ? now->text : "it could not be started");
        t->exit_code = ST_MAX(now->status, 0); /* 127: command not found, as shells say it */
        return;
    }
    /* While we were away. */
    if (now->why == ST_RUN_WHY_KILLED && strcmp(now->text, ST_FENCE_REASON) == 0)
        t->killed = t->fenced = true;
    st_task_end(t, now->ended_boot_ms, now->status, now->signal, why(now));
}

static bool oci_look(st_exec *e, st_task *t, int64_t now_ms)
{
    char id[ST_RUN_ID_MAX];
    st_agent_phase before = t->phase;
    int64_t left = 0;
    st_run_task now;
    st_err err = {0};
    int r;

    if (t->now.working || now_ms < t->now.look_ms)
        return false;
    t->now.look_ms = now_ms + (t->now.folder > 0 ? LOOK_MS : BLIND_MS);
    st_launch_id(t, id);
    r = st_run_get(e->run, id, &now, &err);
    /* Its folder is lost, and that says nothing about its processes. */
    if (r == -ST_ENOENT && (st_run_count(e->run, id, &left, &err) < 0 || left > 0)) {
        t->killed = true;
        if (!t->reason[0])
            snprintf(t->reason, sizeof t->reason, "%s", UNWATCHED);
        (void)st_run_kill(e->run, id, UNWATCHED, 0, &err);
        t->now.look_ms = now_ms + BLIND_MS;
        return false;
    }
    if (r == -ST_ENOENT) {
        /* Nothing of it was made, or kept: it may run elsewhere. */
        t->fault = before == ST_PHASE_NOTED || t->stray;
        st_task_lost(t, now_ms,
                     before == ST_PHASE_NOTED ? "the agent ended while it was starting this task"
                                              : "nothing is left of it on the node");
        return true;
    }
    if (r < 0)
        return false; /* unreadable for now; nothing is concluded from that */
    if (now.started_us > 0)
        t->started_ms = now.started_boot_ms;
    switch (now.state) {
    case ST_RUN_STARTING:
        t->phase = ST_PHASE_STARTING;
        break;
    case ST_RUN_RUNNING:
        if (t->phase != ST_PHASE_PAUSED)
            t->phase = ST_PHASE_RUNNING;
        break;
    case ST_RUN_UNSUPERVISED:
        /* Nobody else can become its parent, hold its pipes or learn its exit status: it is ended,
         * and said to be. What is left after this is seen to by the next look. */
        if (!t->reason[0])
            snprintf(t->reason, sizeof t->reason, "%s", UNWATCHED);
        if (st_run_kill(e->run, id, UNWATCHED, 0, &err) == 0)
            st_task_end(t, now_ms, 0, SIGKILL, UNWATCHED);
        t->now.look_ms = now_ms + BLIND_MS;
        break;
    case ST_RUN_ENDED:
        take_end(t, &now);
        break;
    case ST_RUN_LOST:
        st_task_end(t, now_ms, 0, SIGKILL, "its supervisor was killed; how it ended is not known");
        break;
    }
    return t->phase != before;
}

static int oci_left(st_exec *e, const st_task *t, int64_t *ret, st_err *err)
{
    char id[ST_RUN_ID_MAX];

    st_launch_id(t, id);
    return st_run_count(e->run, id, ret, err);
}

static int oci_pids(st_exec *e, const st_task *t, int64_t *buf, size_t room, size_t *ret_n,
                    st_err *err)
{
    char id[ST_RUN_ID_MAX];

    st_launch_id(t, id);
    return st_run_pids(e->run, id, buf, room, ret_n, err);
}

static int oci_remove(st_exec *e, const st_task *t, st_err *err)
{
    char id[ST_RUN_ID_MAX];
    int r;

    st_launch_id(t, id);
    r = st_run_remove(e->run, id, err);
    return r == -ST_ENOENT ? 0 : r;
}

static int oci_log(st_exec *e, const st_task *t, int64_t offset, char *buf, size_t cap,
                   st_run_piece *ret, st_err *err)
{
    char id[ST_RUN_ID_MAX];

    st_launch_id(t, id);
    return st_run_log_read(e->run, id, ST_RUN_OUT, offset, buf, cap, ret, err);
}

static int oci_tidy(st_exec *e, st_err *err)
{
    return st_run_tidy(e->run, err);
}

static int64_t oci_due(const st_exec *e, const st_task *t, int64_t now)
{
    (void)e;
    return t->now.working ? INT64_MAX : ST_MAX(t->now.look_ms, now);
}

static bool oci_there(st_exec *e, const st_task *t)
{
    char id[ST_RUN_ID_MAX], dir[PATH_MAX];

    st_launch_id(t, id);
    return st_run_folder(e->run, id, dir, NULL) == 0 && access(dir, F_OK) == 0;
}

static void oci_watch(st_exec *e, st_notices *notices, st_task *t)
{
    char id[ST_RUN_ID_MAX], dir[PATH_MAX], logs[PATH_MAX];

    t->now.look_ms = 0;
    t->now.output = true;
    st_launch_id(t, id);
    if (st_run_folder(e->run, id, dir, NULL) != 0 ||
        snprintf(logs, sizeof logs, "%s/logs", dir) >= (int)sizeof logs)
        return;
    t->now.folder = st_notice_watch(notices, dir, ST_NOTICE_RECORD);
    t->now.logs = st_notice_watch(notices, logs, ST_NOTICE_OUTPUT);
}

static const st_exec_ops oci_ops = {
    .name = "oci",
    .real = true,
    .free = oci_free,
    .start = oci_start,
    .signal = oci_signal,
    .kill = oci_kill,
    .pause = oci_pause,
    .resume = oci_resume,
    .look = oci_look,
    .left = oci_left,
    .pids = oci_pids,
    .remove = oci_remove,
    .there = oci_there,
    .watch = oci_watch,
    .log = oci_log,
    .tidy = oci_tidy,
    .due = oci_due,
    .retime = oci_retime,
};

int st_exec_oci_new(const char *dir, const st_agent_conf *agent, st_exec **ret, st_err *err)
{
    char path[PATH_MAX];
    char lease[PATH_MAX], root[32];
    st_run_conf conf = {.state_dir = path,
                        .runtime = agent->runtime,
                        .images_mib = agent->images_mib,
                        .image_ms = agent->image_ms,
                        .cgroup_root = root,
                        .lease = lease};
    st_exec *o = st_xcalloc(1, sizeof *o);
    int r;

    snprintf(path, sizeof path, "%s/run", dir);
    /* All groups below it are ours, and what we know nothing of is ended: so it is by the folder, which
     * one agent has. */
    snprintf(root, sizeof root, "stint-%08x", (unsigned)st_hash_str(5, path));
    st_lease_path(dir, lease);
    r = st_run_new(&conf, &o->run, err);
    if (r < 0) {
        free(o);
        return r;
    }
    o->ops = &oci_ops;
    fprintf(stderr, "event=exec kind=oci runtime=%s\n", st_run_runtime(o->run));
    *ret = o;
    return 0;
}
