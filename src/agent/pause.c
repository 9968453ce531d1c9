/*
 * Pauses, step by step (agent/pause.h).
 */
#include "agent/pause.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/files.h"
#include "agent/helper.h"
#include "agent/launch.h"
#include "agent/steps.h"

#define FREEZE_MS   10000 /* for all processes to stand still, or to go on */
#define DIED_MS     500   /* before what was killed is begun again */
#define PIDS_MAX    4096
#define PROCS_MAX   256
#define SPARE_MIB   512 /* of the node's RAM that a pause leaves alone */
#define PROBE_NAME  "probe"
#define MEMINFO_DIR "/proc"

bool st_host_cuda(const st_host *h)
{
    return h->gpu && h->exec->run && (!h->sim_gpus || h->process->conf->cuda);
}

void st_cuda_name(const st_task *t, const char *what, char ret[128])
{
    snprintf(ret, 128, "%s.%d.%d.%d.%s", t->key.job, t->key.stay, t->key.task, t->attempt, what);
}

bool st_pause_has(const st_task *t, int64_t pid)
{
    for (int i = 0; i < t->npids; i++)
        if (t->pid[i].pid == pid)
            return true;
    return false;
}

static void refuse(st_host *h, st_task *t, const char *why)
{
    t->refused = true;
    h->dirty = h->changed = true;
    st_say(h, "not-paused", "job=%s task=%d reason=\"%s\"", t->key.job, t->key.task, why);
}

/* ---- what this driver can do ----------------------------------------------------------------- */

/* 1: it can; 0: not known yet; -code: it cannot. Asked once. */
static int can_checkpoint(st_host *h, st_err *err)
{
    const char *argv[] = {h->cuda, "probe", NULL};
    json_t *said = NULL;
    st_err why = {0};

    if (h->checkpoint < 0)
        return st_fail(err, ST_EDOWN, "%s", h->no_checkpoint);
    if (h->checkpoint > 0)
        return 1;
    switch (st_helper_look(h->dir, PROBE_NAME, &said)) {
    case ST_HELPER_RUNNING:
        return 0;
    case ST_HELPER_NONE:
        if (h->probes++ < ST_STEP_TRIES &&
            st_helper_start(h->dir, PROBE_NAME, ST_HELPER_ALL, argv, NULL, &why) == 0)
            return 0;
        h->checkpoint = -1;
        snprintf(h->no_checkpoint, sizeof h->no_checkpoint, "%.190s",
                 why.msg[0] ? why.msg : "stint-cuda gives no answer");
        break;
    case ST_HELPER_DONE:
        h->checkpoint = json_is_true(json_object_get(said, "checkpoint")) ? 1 : -1;
        snprintf(h->no_checkpoint, sizeof h->no_checkpoint, "%s",
                 json_is_string(json_object_get(said, "error"))
                     ? json_string_value(json_object_get(said, "error"))
                     : "this driver takes no checkpoints; 570 is the first that does");
        st_helper_forget(h->dir, PROBE_NAME);
        break;
    }
    json_decref(said);
    return can_checkpoint(h, err);
}

/* ---- whom it concerns ------------------------------------------------------------------------- */

static int add_pid(st_task *t, int pid, st_err *err)
{
    uint64_t birth = st_run_birth(pid);

    if (st_pause_has(t, pid) || birth == 0)
        return 0;
    if (t->npids == ST_TASK_PIDS)
        return st_fail(err, ST_ELIMIT, "more than %d of its processes use CUDA", ST_TASK_PIDS);
    t->pid[t->npids++] = (st_task_pid){.pid = pid, .birth = birth};
    return 0;
}

static bool among(int64_t pid, const int64_t *pids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

/* Those on its GPUs that are in its container. */
static int on_gpu(st_host *h, st_task *t, int gpu, const int64_t *mine, size_t nmine, st_err *err)
{
    st_gpu_proc procs[PROCS_MAX];
    size_t n = 0;
    int r = st_gpu_procs(h->gpu, gpu, procs, PROCS_MAX, &n, err);

    for (size_t i = 0; r == 0 && i < ST_MIN(n, PROCS_MAX); i++) {
        if (!among(procs[i].pid, mine, nmine))
            continue;
        r = add_pid(t, (int)procs[i].pid, err);
        t->paused_mib += ST_MAX(procs[i].mem_mib, 0);
    }
    return r;
}

static int find_processes(st_host *h, st_task *t, st_err *err)
{
    char id[ST_RUN_ID_MAX];
    int64_t mine[PIDS_MAX];
    size_t n = 0;
    int r = 0;

    t->npids = 0;
    t->paused_mib = 0;
    if (!st_host_cuda(h) || t->place.devs == 0)
        return 0;
    st_launch_id(t, id);
    r = st_run_pids(h->exec->run, id, mine, PIDS_MAX, &n, err);
    n = ST_MIN(n, PIDS_MAX);
    for (int d = 0; r == 0 && d < h->inv.n; d++)
        if (t->place.devs >> d & 1)
            r = on_gpu(h, t, d, mine, n, err);
    return r;
}

/* ---- room in host memory ------------------------------------------------------------------------ */

static int64_t available_mib(void)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    const char *at = NULL;

    if (st_file_load(MEMINFO_DIR, "meminfo", &text, NULL) == 0)
        at = strstr(st_strbuf_str(&text), "MemAvailable:");
    return at ? strtoll(at + strlen("MemAvailable:"), NULL, 10) / 1024 : 0;
}

/* What will land in host memory must fit into the node; the task's own limit will be raised by it. */
static int find_room(st_host *h, st_task *t, st_err *err)
{
    char id[ST_RUN_ID_MAX];
    int64_t used, limit, free_mib = available_mib();
    int r;

    t->ram_limit = 0;
    if (t->paused_mib + SPARE_MIB > free_mib)
        return st_fail(err, ST_ELIMIT,
                       "%" PRId64 " MiB of device memory do not fit into the node's RAM, of which "
                       "%" PRId64 " MiB are free",
                       t->paused_mib, free_mib);
    st_launch_id(t, id);
    r = st_run_ram(h->exec->run, id, &used, &limit, err);
    if (r == 0 && limit != INT64_MAX && used + (t->paused_mib << 20) > limit)
        t->ram_limit = limit;
    return r;
}

static int raise_limit(st_host *h, const st_task *t, st_err *err)
{
    char id[ST_RUN_ID_MAX];

    if (t->ram_limit == 0)
        return 0;
    st_launch_id(t, id);
    return st_run_ram_limit(h->exec->run, id, t->ram_limit + (t->paused_mib << 20), err);
}

/* Tried again in later turns: what it used may take a moment to be given back. */
static void lower_limit(st_host *h, st_task *t)
{
    char id[ST_RUN_ID_MAX];

    st_launch_id(t, id);
    if (t->ram_limit == 0 || st_run_ram_limit(h->exec->run, id, t->ram_limit, NULL) < 0)
        return;
    t->ram_limit = 0;
    h->dirty = true;
}

/* ---- steps ---------------------------------------------------------------------------------------- */

/* stint-cuda pause PID…, or resume PID… --map OLD=NEW… */
static int start_cuda(st_host *h, const st_task *t, const char *verb, st_err *err)
{
    const char *argv[ST_TASK_PIDS + 2 * ST_DEVS_MAX + 4] = {h->cuda, verb};
    char pids[ST_TASK_PIDS][16], maps[ST_DEVS_MAX][2 * ST_GPU_UUID_MAX + 2], name[128];
    int n = 2, to = 0;

    for (int i = 0; i < t->npids; i++) {
        snprintf(pids[i], sizeof pids[i], "%d", t->pid[i].pid);
        argv[n++] = pids[i];
    }
    for (int d = 0; d < h->inv.n && t->paused_devs != t->place.devs; d++) {
        if (!(t->paused_devs >> d & 1))
            continue;
        while (to < h->inv.n && !(t->place.devs >> to & 1))
            to++;
        if (to == h->inv.n)
            break;
        snprintf(maps[d], sizeof maps[d], "%s=%s", h->inv.gpu[d].uuid, h->inv.gpu[to++].uuid);
        argv[n++] = "--map";
        argv[n++] = maps[d];
    }
    st_cuda_name(t, "pause", name);
    return st_helper_start(h->dir, name, ST_HELPER_ALL, argv, NULL, err);
}

/* A number may be somebody else's by now. */
static void forget_dead(st_task *t)
{
    int n = 0;

    for (int i = 0; i < t->npids; i++)
        if (st_run_birth(t->pid[i].pid) == t->pid[i].birth)
            t->pid[n++] = t->pid[i];
    t->npids = n;
}

/* What begins a step; doing it again does no harm. */
static int begin_step(st_host *h, st_task *t, int64_t now, st_err *err)
{
    int r = 0;

    forget_dead(t);
    switch (t->step) {
    case ST_STEP_SAVE:
        r = raise_limit(h, t, err);
        return r < 0 || t->npids == 0 ? r : start_cuda(h, t, "pause", err);
    case ST_STEP_UNDO:
    case ST_STEP_LOAD:
        (void)h->exec->ops->resume(h->exec, t, now, NULL); /* seen to until it is so */
        return t->npids == 0 ? 0 : start_cuda(h, t, "resume", err);
    default:
        return 0;
    }
}

static st_outcome said_of(st_host *h, const st_task *t, int64_t now, char why[ST_TASK_REASON_MAX])
{
    char name[128];
    json_t *said = NULL;
    st_outcome outcome;

    st_cuda_name(t, "pause", name);
    switch (st_helper_look(h->dir, name, &said)) {
    case ST_HELPER_RUNNING:
        return ST_OUTCOME_WAIT;
    case ST_HELPER_NONE:
        snprintf(why, ST_TASK_REASON_MAX, "stint-cuda was killed");
        return now - t->step_ms < DIED_MS ? ST_OUTCOME_WAIT : ST_OUTCOME_DIED;
    default:
        break;
    }
    outcome = json_is_true(json_object_get(said, "ok"))       ? ST_OUTCOME_OK
              : json_is_true(json_object_get(said, "undone")) ? ST_OUTCOME_UNDONE
                                                              : ST_OUTCOME_FAILED;
    if (json_is_string(json_object_get(said, "error")))
        snprintf(why, ST_TASK_REASON_MAX, "%s", json_string_value(json_object_get(said, "error")));
    json_decref(said);
    st_helper_forget(h->dir, name);
    return outcome;
}

/* All of it stands still, and nobody began to use CUDA while the others were taken off. */
static st_outcome freeze(st_host *h, st_task *t, int64_t now, char why[ST_TASK_REASON_MAX])
{
    st_task again = *t;
    st_err err = {0};

    if (h->exec->ops->pause(h->exec, t, now, &err) < 0) {
        snprintf(why, ST_TASK_REASON_MAX, "%.150s", err.msg);
        return now - t->step_ms > FREEZE_MS ? ST_OUTCOME_FAILED : ST_OUTCOME_WAIT;
    }
    if (find_processes(h, &again, &err) < 0)
        return ST_OUTCOME_OK;
    for (int i = 0; i < again.npids; i++)
        if (!st_pause_has(t, again.pid[i].pid)) {
            snprintf(why, ST_TASK_REASON_MAX, "process %d began to use CUDA meanwhile",
                     again.pid[i].pid);
            return ST_OUTCOME_FAILED;
        }
    return ST_OUTCOME_OK;
}

static st_outcome look(st_host *h, st_task *t, int64_t now, char why[ST_TASK_REASON_MAX])
{
    bool back = t->step == ST_STEP_UNDO || t->step == ST_STEP_LOAD;
    st_err err = {0};

    if (t->step == ST_STEP_FREEZE)
        return freeze(h, t, now, why);
    if (back && h->exec->ops->resume(h->exec, t, now, &err) < 0) {
        snprintf(why, ST_TASK_REASON_MAX, "%.150s", err.msg);
        return now - t->step_ms > FREEZE_MS ? ST_OUTCOME_FAILED : ST_OUTCOME_WAIT;
    }
    return t->npids == 0 ? ST_OUTCOME_OK : said_of(h, t, now, why);
}

/* ---- what follows --------------------------------------------------------------------------------- */

static void lose(st_host *h, st_task *t, const char *why, int64_t now)
{
    st_err err = {0};

    snprintf(t->reason, sizeof t->reason, "it could not be put back onto its GPU: %.100s", why);
    t->killed = true;
    st_say(h, "lost", "job=%s task=%d reason=\"%s\"", t->key.job, t->key.task, t->reason);
    h->exec->ops->kill(h->exec, t, t->reason, now, &err);
}

static void set_deadline(st_host *h, const st_task *t)
{
    char id[ST_RUN_ID_MAX];

    st_launch_id(t, id);
    for (size_t i = 0; h->exec->run && h->has_list && i < h->list.orders.n; i++) {
        const st_order *o = &h->list.orders.v[i];

        if (st_key_same(&o->key, &t->key) && o->deadline_ms > 0)
            st_run_deadline(h->exec->run, id, o->deadline_ms + ST_LATE_MS, NULL);
    }
}

static void is_paused(st_host *h, st_task *t, int64_t now)
{
    t->phase = ST_PHASE_PAUSED;
    t->gone = t->clean = false;
    t->scrub = (st_scrub){0};
    st_host_load(h, t, false, now);
    st_say(h, "paused", "job=%s stay=%d task=%d processes=%d mib=%" PRId64, t->key.job, t->key.stay,
           t->key.task, t->npids, t->paused_mib);
}

static void is_back(st_host *h, st_task *t, int64_t now)
{
    t->phase = ST_PHASE_RUNNING;
    t->used.at_ms = now;
    set_deadline(h, t);
    lower_limit(h, t);
    st_host_load(h, t, true, now);
    st_say(h, "resumed", "job=%s stay=%d task=%d", t->key.job, t->key.stay, t->key.task);
}

/* Written down first, then begun. */
static void enter(st_host *h, st_task *t, st_agent_step step, int tries, int64_t now)
{
    st_err err = {0};

    t->step = step;
    t->tries = tries;
    t->step_ms = now;
    h->dirty = true;
    st_host_save(h);
    if (begin_step(h, t, now, &err) == 0)
        return;
    st_say(h, "step-failed", "job=%s step=%s reason=\"%s\"", t->key.job, st_step_name(step),
           err.msg);
    if (step == ST_STEP_SAVE) { /* nothing has happened yet */
        t->step = ST_STEP_NONE;
        lower_limit(h, t);
        refuse(h, t, err.msg);
    }
}

static void follow(st_host *h, st_task *t, const st_after *after, const char *why, int64_t now)
{
    if (after->again || after->step != ST_STEP_NONE) {
        if (why[0])
            st_say(h, "step-failed", "job=%s step=%s reason=\"%s\"", t->key.job,
                   st_step_name(t->step), why);
        enter(h, t, after->step, after->again ? t->tries + 1 : 1, now);
        return;
    }
    t->step = ST_STEP_NONE;
    if (after->paused)
        is_paused(h, t, now);
    if (after->running)
        is_back(h, t, now);
    if (after->refused) {
        lower_limit(h, t);
        set_deadline(h, t);
        refuse(h, t, why[0] ? why : "it could not be paused");
    }
    if (after->lost)
        lose(h, t, why, now);
    h->dirty = h->changed = true;
    st_host_save(h);
}

void st_pause_turn(st_host *h, int64_t now)
{
    /* Before anybody needs to know: a driver of many GPUs takes seconds to say. */
    if (st_host_cuda(h) && h->checkpoint == 0)
        (void)can_checkpoint(h, NULL);
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        st_task *t = &h->journal.tasks.v[i];

        for (int n = 0; n < ST_STEP_COUNT && st_task_live(t) && t->step != ST_STEP_NONE; n++) {
            char why[ST_TASK_REASON_MAX] = "";
            st_outcome outcome = look(h, t, now, why);
            st_after after = st_step_after(t->step, outcome, t->tries);

            if (outcome == ST_OUTCOME_WAIT)
                break;
            follow(h, t, &after, why, now);
        }
        if (t->phase == ST_PHASE_RUNNING && t->step == ST_STEP_NONE && t->ram_limit > 0)
            lower_limit(h, t);
    }
}

/* ---- asked for -------------------------------------------------------------------------------------- */

void st_pause_begin(st_host *h, st_task *t, int64_t now)
{
    st_err err = {0};
    int r;

    if (t->place.devs && t->place.level != ST_LEVEL_WHOLE && t->place.level != ST_LEVEL_TIME) {
        refuse(h, t, "a GPU can be paused whole or time-sliced");
        return;
    }
    t->paused_devs = t->place.devs;
    r = find_processes(h, t, &err);
    if (r == 0 && t->npids > 0) {
        r = can_checkpoint(h, &err);
        if (r == 0)
            return; /* the next turn knows */
        r = r > 0 ? find_room(h, t, &err) : r;
    }
    if (r < 0)
        refuse(h, t, err.msg);
    else
        enter(h, t, t->npids > 0 ? ST_STEP_SAVE : ST_STEP_FREEZE, 1, now);
}

/* Whether somebody else is on a GPU that is to be the task's alone. */
static bool taken(st_host *h, const st_task *t, int gpu)
{
    st_gpu_proc procs[PROCS_MAX];
    size_t n = 0;
    st_err err;

    if (st_gpu_procs(h->gpu, gpu, procs, PROCS_MAX, &n, &err) < 0 || n > PROCS_MAX)
        return true;
    for (size_t i = 0; i < n; i++)
        if (!st_pause_has(t, procs[i].pid))
            return true;
    return false;
}

/* A restore that finds no room on the device is the end of the process: look first. */
static bool has_room(st_host *h, const st_task *t, const st_task_place *place)
{
    int64_t free_mib = 0;
    bool known = true;

    for (int d = 0; t->npids > 0 && d < h->inv.n; d++) {
        const st_gpu_sample *s = &h->sample[d];

        if (!(place->devs >> d & 1))
            continue;
        if (place->level == ST_LEVEL_WHOLE && taken(h, t, d))
            return false;
        known = known && st_gpu_has(s, ST_GPU_FB_USED);
        free_mib += known ? h->inv.gpu[d].vram_mib - s->v[ST_GPU_FB_USED] : 0;
    }
    return t->npids == 0 || !known || free_mib >= t->paused_mib;
}

/* It comes back to other GPUs than it had: their files, too. Real ones only. */
static int add_devices(st_host *h, const st_task *t, st_err *err)
{
    char id[ST_RUN_ID_MAX];
    int r = 0;

    st_launch_id(t, id);
    for (int d = 0; r == 0 && !h->sim_gpus && d < h->inv.n; d++)
        if (t->place.devs >> d & 1 && !(t->paused_devs >> d & 1))
            r = st_run_device_add(h->exec->run, id, h->inv.gpu[d].node, err);
    return r;
}

void st_pause_end(st_host *h, st_task *t, const st_order *order, int64_t now)
{
    st_err err = {0};

    if (!has_room(h, t, &order->place)) {
        st_say(h, "no-room", "job=%s task=%d mib=%" PRId64, t->key.job, t->key.task, t->paused_mib);
        return;
    }
    t->place = order->place;
    st_host_repin(h, t);
    t->gone = t->clean = false;
    t->scrub = (st_scrub){0};
    if (t->npids > 0 && add_devices(h, t, &err) < 0) {
        h->dirty = h->changed = true;
        lose(h, t, err.msg, now);
        return;
    }
    enter(h, t, ST_STEP_LOAD, 1, now);
}
