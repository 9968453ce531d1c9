/*
 * The journal (agent/journal.h), as JSON: it is read by people when something went wrong.
 */
#include "agent/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const phases[] = {
#define X(id, word) word,
    ST_PHASE_TABLE(X)
#undef X
};

/* X(field, key): the numbers of a task. */
#define NUMBER_TABLE(X)               \
    X(key.stay, "stay")               \
    X(key.task, "task")               \
    X(attempt, "attempt")             \
    X(place.devs, "devices")          \
    X(place.level, "level")           \
    X(place.mig_profile, "mig")       \
    X(place.mig_start, "mig_start")   \
    X(place.share_m, "share_m")       \
    X(place.vram_mib, "vram_mib")     \
    X(cpu_m, "cpu_m")                 \
    X(signal, "signal")               \
    X(notify_signal, "notify_signal") \
    X(stop_ms, "stop_ms")             \
    X(owed, "owed")                   \
    X(started_ms, "started_ms")       \
    X(ended_ms, "ended_ms")           \
    X(exit_code, "exit_code")         \
    X(exit_signal, "exit_signal")     \
    X(log_sent, "log_sent")           \
    X(log_before, "log_before")       \
    X(log_done, "log_done")           \
    X(unlisted_ms, "unlisted_ms")     \
    X(used.at_ms, "used_at_ms")       \
    X(step, "step")                   \
    X(tries, "tries")                 \
    X(step_ms, "step_ms")             \
    X(paused_devs, "paused_devices")  \
    X(paused_mib, "paused_mib")       \
    X(ram_limit, "ram_limit")         \
    X(scrub.result, "scrub")          \
    X(scrub.bytes, "scrub_bytes")     \
    X(scrub.found, "scrub_found")     \
    X(scrub.ms, "scrub_ms")           \
    X(sim_left_ms, "sim_left_ms")     \
    X(sim_since_ms, "sim_since_ms")   \
    X(sim_exit, "sim_exit")           \
    X(sim_save_ms, "sim_save_ms")     \
    X(sim_run_ms, "sim_run_ms")       \
    X(sim_status, "sim_status")

void st_journal_done(st_journal *j)
{
    st_vec_free(&j->tasks);
    st_vec_free(&j->gone);
    st_idmap_free(j->index);
    j->index = NULL;
}

/* {"held_gpu_ms": [1200, 7], …}: whole units and what is below one. */
static json_t *used_json(const st_rollup *r)
{
    json_t *o = json_object();

    for (int k = 0; k < ST_USED_COUNT; k++)
        if (r->sum.has >> k & 1)
            json_object_set_new(
                o, st_used_key((st_used_kind)k),
                json_pack("[I,I]", (json_int_t)r->sum.v[k], (json_int_t)r->rest[k]));
    return o;
}

static void used_of(const json_t *o, st_rollup *ret)
{
    for (int k = 0; k < ST_USED_COUNT; k++) {
        const json_t *row = json_object_get(o, st_used_key((st_used_kind)k));

        if (!json_is_array(row))
            continue;
        ret->sum.has |= 1u << k;
        ret->sum.v[k] = json_integer_value(json_array_get(row, 0));
        ret->rest[k] = json_integer_value(json_array_get(row, 1));
    }
}

/* [[pid, birth], …] */
static json_t *pids_json(const st_task *t)
{
    json_t *list = json_array();

    for (int i = 0; i < t->npids; i++)
        json_array_append_new(list, json_pack("[i,I]", t->pid[i].pid, (json_int_t)t->pid[i].birth));
    return list;
}

static void pids_of(const json_t *list, st_task *ret)
{
    const json_t *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        if (ret->npids < ST_TASK_PIDS)
            ret->pid[ret->npids++] =
                (st_task_pid){.pid = (int)json_integer_value(json_array_get(row, 0)),
                              .birth = (uint64_t)json_integer_value(json_array_get(row, 1))};
    }
}

static void put_cpus(json_t *o, const char *key, const st_cpuset *s)
{
    char text[ST_CPUS_TEXT_MAX];

    st_cpuset_text(s, text);
    if (text[0])
        json_object_set_new(o, key, json_string(text));
}

/* Those of another machine's journal are none: the task is there, wherever it is. */
static void cpus_of(const json_t *o, const char *key, st_cpuset *ret)
{
    const char *s = json_string_value(json_object_get(o, key));

    if (s)
        (void)st_cpuset_parse(s, ret, NULL);
}

static json_t *task_json(const st_task *t)
{
    json_t *o = json_object();

    json_object_set_new(o, "job", json_string(t->key.job));
    json_object_set_new(o, "phase", json_string(phases[t->phase]));
    json_object_set_new(o, "tenant", json_string(t->tenant));
    json_object_set_new(o, "domain", json_string(t->place.domain));
    put_cpus(o, "cpus", &t->pin.own);
    put_cpus(o, "cpus_shared", &t->pin.common);
    if (t->reason[0])
        json_object_set_new(o, "reason", json_string(t->reason));
#define X(field, key) json_object_set_new(o, key, json_integer((json_int_t)t->field));
    NUMBER_TABLE(X)
#undef X
#define X(field)  \
    if (t->field) \
        json_object_set_new(o, #field, json_true());
    ST_MARK_TABLE(X)
#undef X
    if (t->used.sum.has)
        json_object_set_new(o, "usage", used_json(&t->used));
    if (t->npids > 0)
        json_object_set_new(o, "pids", pids_json(t));
    return o;
}

static void put_text(char *to, size_t room, const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    snprintf(to, room, "%s", s ? s : "");
}

static bool task_of(const json_t *o, st_task *ret)
{
    const char *phase = json_string_value(json_object_get(o, "phase"));
    st_task t = {0};
    int at = -1;

    for (int i = 0; phase && i < ST_PHASE_COUNT; i++)
        if (strcmp(phases[i], phase) == 0)
            at = i;
    put_text(t.key.job, sizeof t.key.job, o, "job");
    put_text(t.tenant, sizeof t.tenant, o, "tenant");
    put_text(t.place.domain, sizeof t.place.domain, o, "domain");
    put_text(t.reason, sizeof t.reason, o, "reason");
#define X(field, key) t.field = (__typeof__(t.field))json_integer_value(json_object_get(o, key));
    NUMBER_TABLE(X)
#undef X
#define X(field) t.field = json_is_true(json_object_get(o, #field));
    ST_MARK_TABLE(X)
#undef X
    cpus_of(o, "cpus", &t.pin.own);
    cpus_of(o, "cpus_shared", &t.pin.common);
    used_of(json_object_get(o, "usage"), &t.used);
    pids_of(json_object_get(o, "pids"), &t);
    if (t.step < 0 || t.step >= ST_STEP_COUNT)
        return false;
    if (at < 0 || !t.key.job[0] || t.scrub.result < 0 || t.scrub.result >= ST_SCRUB_COUNT ||
        t.place.level < 0 || t.place.level >= ST_LEVEL_COUNT || t.place.mig_profile < -1 ||
        t.place.mig_profile >= ST_MIG_COUNT || t.place.mig_start < 0 ||
        t.place.mig_start >= ST_MIG_MEMORY)
        return false;
    t.phase = (st_agent_phase)at;
    *ret = t;
    return true;
}

void st_journal_write(const st_journal *j, st_strbuf *out)
{
    json_t *root = json_object(), *tasks = json_array();
    char *text;

    for (size_t i = 0; i < j->tasks.n; i++)
        json_array_append_new(tasks, task_json(&j->tasks.v[i]));
    json_object_set_new(root, "epoch", json_integer(j->epoch));
    json_object_set_new(root, "branch", json_integer(j->at.branch));
    json_object_set_new(root, "position", json_integer(j->at.position));
    json_object_set_new(root, "log", json_integer(j->log_no));
    json_object_set_new(root, "boot", json_string(j->clock.boot));
    json_object_set_new(root, "wall_of_ms", json_integer(j->clock.wall_of_ms));
    json_object_set_new(root, "tasks", tasks);
    text = json_dumps(root, JSON_INDENT(1));
    ST_ASSERT(text);
    st_strbuf_add(out, text);
    free(text);
    json_decref(root);
}

int st_journal_read(const char *text, size_t n, st_journal *ret, st_err *err)
{
    json_error_t bad;
    json_t *root = json_loadb(text, n, 0, &bad), *row;
    st_journal j = {.epoch = json_integer_value(json_object_get(root, "epoch")),
                    .at = {json_integer_value(json_object_get(root, "branch")),
                           json_integer_value(json_object_get(root, "position"))},
                    .log_no = json_integer_value(json_object_get(root, "log"))};
    size_t i;
    int r = 0;

    put_text(j.clock.boot, sizeof j.clock.boot, root, "boot");
    j.clock.wall_of_ms = json_integer_value(json_object_get(root, "wall_of_ms"));
    if (!json_is_array(json_object_get(root, "tasks")))
        r = st_fail(err, ST_ECORRUPT, "is not a journal: %s", root ? "no tasks" : bad.text);
    json_array_foreach(json_object_get(root, "tasks"), i, row)
    {
        st_task t;

        if (task_of(row, &t))
            st_vec_push(&j.tasks, t);
        else if (r == 0)
            r = st_fail(err, ST_ECORRUPT, "its task %zu makes no sense", i);
    }
    json_decref(root);
    if (r < 0)
        st_journal_done(&j);
    else
        *ret = j;
    return r;
}

/* ---- lines of the log ----------------------------------------------------------------------------- */

static void add_line(json_t *root, st_strbuf *out)
{
    char *text = json_dumps(root, JSON_COMPACT);

    ST_ASSERT(text);
    st_strbuf_add(out, text);
    st_strbuf_addc(out, '\n');
    free(text);
    json_decref(root);
}

void st_journal_line(const st_task *t, st_strbuf *out)
{
    add_line(json_pack("{s:o}", "task", task_json(t)), out);
}

void st_journal_gone_line(const st_task_key *key, st_strbuf *out)
{
    add_line(json_pack("{s:{s:s,s:i,s:i}}", "gone", "job", key->job, "stay", key->stay, "task",
                       key->task),
             out);
}

void st_journal_at_line(const st_history *at, st_strbuf *out)
{
    add_line(json_pack("{s:{s:I,s:I}}", "at", "branch", (json_int_t)at->branch, "position",
                       (json_int_t)at->position),
             out);
}

static bool apply_line(st_journal *j, const char *line, size_t n)
{
    json_t *root = json_loadb(line, n, 0, NULL);
    const json_t *gone = json_object_get(root, "gone"), *task = json_object_get(root, "task");
    const json_t *place = json_object_get(root, "at");
    st_task t = {0}, *old;
    bool ok = true;

    if (gone) {
        put_text(t.key.job, sizeof t.key.job, gone, "job");
        t.key.stay = (int)json_integer_value(json_object_get(gone, "stay"));
        t.key.task = (int)json_integer_value(json_object_get(gone, "task"));
        old = st_journal_find(j, &t.key);
        if (old)
            st_journal_remove(j, old);
    } else if (task && task_of(task, &t)) {
        old = st_journal_find(j, &t.key);
        if (old)
            *old = t;
        else
            st_journal_add(j, &t);
    } else if (place) {
        j->at = (st_history){json_integer_value(json_object_get(place, "branch")),
                             json_integer_value(json_object_get(place, "position"))};
    } else {
        ok = false;
    }
    json_decref(root);
    return ok;
}

int st_journal_apply(st_journal *j, const char *text, size_t n, size_t *ret_used, st_err *err)
{
    size_t at = 0;

    while (at < n) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - text) - at : 0;

        if (!end)
            break;
        if (!apply_line(j, text + at, len))
            return st_fail(err, ST_ECORRUPT, "the line at byte %zu makes no sense", at);
        at += len + 1;
    }
    *ret_used = at;
    return 0;
}

/* X(field): the moments of a task. */
#define MOMENT_TABLE(X) \
    X(stop_ms)          \
    X(started_ms)       \
    X(ended_ms)         \
    X(unlisted_ms)      \
    X(used.at_ms)       \
    X(step_ms)          \
    X(sim_since_ms)

void st_journal_rebase(st_journal *j, const st_journal_clock *now)
{
    int64_t by = j->clock.wall_of_ms - now->wall_of_ms;

    if (strcmp(j->clock.boot, now->boot) != 0)
        for (size_t i = 0; i < j->tasks.n; i++) {
            st_task *t = &j->tasks.v[i];

#define X(field)                                               \
    if (t->field != 0) {                                       \
        t->field += by;                                        \
        t->field -= t->field == 0; /* which stands for none */ \
    }
            MOMENT_TABLE(X)
#undef X
        }
    j->clock = *now;
}

/* ---- in memory -------------------------------------------------------------------------------------- */

static void make_index(st_journal *j)
{
    if (j->index)
        return;
    j->index = st_idmap_new();
    for (size_t i = 0; i < j->tasks.n; i++)
        st_idmap_put(j->index, st_key_hash(&j->tasks.v[i].key), (int64_t)i);
}

st_task *st_journal_find(st_journal *j, const st_task_key *key)
{
    int64_t i;

    make_index(j);
    if (!st_idmap_get(j->index, st_key_hash(key), &i))
        return NULL;
    if (st_key_same(&j->tasks.v[i].key, key))
        return &j->tasks.v[i];
    for (size_t k = 0; k < j->tasks.n; k++) /* two keys with one hash */
        if (st_key_same(&j->tasks.v[k].key, key))
            return &j->tasks.v[k];
    return NULL;
}

st_task *st_journal_add(st_journal *j, const st_task *t)
{
    make_index(j);
    st_vec_push(&j->tasks, *t);
    st_idmap_put(j->index, st_key_hash(&t->key), (int64_t)j->tasks.n - 1);
    return &j->tasks.v[j->tasks.n - 1];
}

void st_journal_remove(st_journal *j, st_task *t)
{
    if (t->now.kept)
        st_vec_push(&j->gone, t->key);
    st_vec_remove(&j->tasks, (size_t)(t - j->tasks.v));
    st_idmap_free(j->index);
    j->index = NULL;
}
