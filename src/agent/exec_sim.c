/*
 * The executor that runs nothing: a task lasts as its document's `sim` says (`run`, `exit`, `save`),
 * or for a while that follows from its name. Everything is in the task's record, so that tasks "run
 * on" while the agent is away.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/exec.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"

#define RUN_MIN_MS    INT64_C(20000)
#define RUN_SPREAD_MS INT64_C(280000)
#define SAVE_MS       INT64_C(500)
#define EXIT_LATE     137

static int64_t duration(const json_t *map, const char *key, int64_t otherwise)
{
    const json_t *v = json_object_get(map, key);
    int64_t ms;

    if (json_is_integer(v))
        return json_integer_value(v) * 1000;
    if (json_is_string(v) && st_parse_duration_ms(json_string_value(v), &ms, NULL) == 0)
        return ms;
    return otherwise;
}

static int whole(const json_t *v)
{
    int64_t n;

    if (json_is_string(v) && st_parse_i64(json_string_value(v), 0, 255, &n, NULL) == 0)
        return (int)n;
    return (int)json_integer_value(v);
}

static void sim_free(st_exec *e)
{
    free(e);
}

/* How long it runs from when it last began or went on: as long as it would, or to its limit. */
static int sim_retime(st_exec *e, st_task *t, int64_t deadline_ms, int64_t now, st_err *err)
{
    int64_t late = deadline_ms + ST_LATE_MS - now, ran = now - t->sim_since_ms;

    (void)e;
    (void)err;
    if (t->sim_since_ms == 0 || t->sim_run_ms == 0 || t->stopped)
        return 0;
    t->sim_left_ms = t->sim_run_ms;
    t->sim_exit = t->sim_status;
    if (deadline_ms > 0 && ran + late < t->sim_left_ms) {
        t->sim_left_ms = ran + late;
        t->sim_exit = EXIT_LATE;
    }
    return 0;
}

static int sim_start(st_exec *e, st_task *t, const st_launch *l, int64_t now, st_err *err)
{
    const json_t *doc = json_object_get(l->order->job, "document");
    const json_t *sim = json_object_get(doc, "sim");
    uint64_t h = st_hash_str(7, t->key.job);

    t->sim_run_ms = duration(sim, "run", RUN_MIN_MS + (int64_t)(h % (uint64_t)RUN_SPREAD_MS));
    t->sim_save_ms = duration(sim, "save", SAVE_MS);
    t->sim_status = whole(json_object_get(sim, "exit"));
    t->sim_since_ms = t->started_ms = now;
    (void)sim_retime(e, t, l->order->deadline_ms, now, err);
    t->phase = ST_PHASE_RUNNING;
    return 0;
}

/* It saves, then leaves; or just leaves. */
static int sim_signal(st_exec *e, st_task *t, int signal, int64_t now, st_err *err)
{
    int64_t ran = t->sim_since_ms != 0 ? now - t->sim_since_ms : 0;

    (void)e;
    (void)err;
    if (signal == t->notify_signal)
        return 0;
    if (t->sim_left_ms - ran > t->sim_save_ms) {
        t->sim_left_ms = ran + t->sim_save_ms;
        t->sim_exit = 0;
    }
    return 0;
}

static int sim_kill(st_exec *e, st_task *t, const char *reason, int64_t now, st_err *err)
{
    (void)e;
    (void)err;
    st_task_end(t, now, 0, SIGKILL, reason);
    return 0;
}

static int sim_pause(st_exec *e, st_task *t, int64_t now, st_err *err)
{
    (void)e;
    (void)err;
    if (t->sim_since_ms != 0) {
        t->sim_left_ms -= now - t->sim_since_ms;
        t->sim_run_ms -= now - t->sim_since_ms;
    }
    t->sim_since_ms = 0;
    return 0;
}

static int sim_resume(st_exec *e, st_task *t, int64_t now, st_err *err)
{
    (void)e;
    (void)err;
    if (t->sim_since_ms == 0)
        t->sim_since_ms = now;
    return 0;
}

static bool sim_look(st_exec *e, st_task *t, int64_t now)
{
    (void)e;
    if (t->phase == ST_PHASE_NOTED) {
        st_task_lost(t, now, "the agent ended while it was starting this task");
        return true;
    }
    if (t->sim_since_ms == 0 || now < t->sim_since_ms + t->sim_left_ms)
        return false;
    if (t->stopped)
        st_task_end(t, t->sim_since_ms + t->sim_left_ms, 0, SIGTERM, NULL);
    else
        st_task_end(t, t->sim_since_ms + t->sim_left_ms, t->sim_exit, 0,
                    t->sim_exit == EXIT_LATE ? "its time limit was over" : NULL);
    return true;
}

static int sim_left(st_exec *e, const st_task *t, int64_t *ret, st_err *err)
{
    (void)e;
    (void)t;
    (void)err;
    *ret = 0;
    return 0;
}

static int sim_remove(st_exec *e, const st_task *t, st_err *err)
{
    (void)e;
    (void)t;
    (void)err;
    return 0;
}

static bool sim_there(st_exec *e, const st_task *t)
{
    (void)e;
    (void)t;
    return false;
}

static void sim_watch(st_exec *e, st_notices *notices, st_task *t)
{
    (void)e;
    (void)notices;
    t->now.look_ms = 0;
}

static int sim_log(st_exec *e, const st_task *t, int64_t offset, char *buf, size_t cap,
                   st_run_piece *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    (void)e;
    (void)err;
    if (t->started_ms != 0)
        st_strbuf_addf(&text, "task %d started (simulated: nothing is run)\n", t->key.task);
    if (t->started_ms != 0 && t->phase == ST_PHASE_ENDED)
        st_strbuf_addf(&text, "task %d ended after %" PRId64 " ms (simulated)\n", t->key.task,
                       t->ended_ms - t->started_ms);
    *ret = (st_run_piece){.offset = offset, .end = (int64_t)text.n};
    if (offset < ret->end) {
        ret->n = ST_MIN(cap, (size_t)(ret->end - offset));
        memcpy(buf, text.s + offset, ret->n);
    }
    return 0;
}

static int64_t sim_due(const st_exec *e, const st_task *t, int64_t now)
{
    (void)e;
    (void)now;
    return t->sim_since_ms != 0 ? t->sim_since_ms + t->sim_left_ms : INT64_MAX;
}

static const st_exec_ops sim_ops = {
    .name = "sim",
    .free = sim_free,
    .start = sim_start,
    .signal = sim_signal,
    .kill = sim_kill,
    .pause = sim_pause,
    .resume = sim_resume,
    .look = sim_look,
    .left = sim_left,
    .remove = sim_remove,
    .there = sim_there,
    .watch = sim_watch,
    .log = sim_log,
    .due = sim_due,
    .retime = sim_retime,
};

st_exec *st_exec_sim_new(void)
{
    st_exec *e = st_xcalloc(1, sizeof *e);

    e->ops = &sim_ops;
    return e;
}
