/*
 * The journal (agent/journal.h), as JSON: it is read by people when something went wrong.
 */
#include "agent/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/files.h"

#define JOURNAL_FILE "tasks.json"

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
    X(signal, "signal")               \
    X(notify_signal, "notify_signal") \
    X(stop_ms, "stop_ms")             \
    X(started_ms, "started_ms")       \
    X(ended_ms, "ended_ms")           \
    X(exit_code, "exit_code")         \
    X(exit_signal, "exit_signal")     \
    X(log_sent, "log_sent")           \
    X(log_before, "log_before")       \
    X(log_done, "log_done")           \
    X(unlisted_ms, "unlisted_ms")     \
    X(used.at_ms, "used_at_ms")       \
    X(scrub.result, "scrub")          \
    X(scrub.bytes, "scrub_bytes")     \
    X(scrub.found, "scrub_found")     \
    X(scrub.ms, "scrub_ms")           \
    X(sim_left_ms, "sim_left_ms")     \
    X(sim_since_ms, "sim_since_ms")   \
    X(sim_exit, "sim_exit")           \
    X(sim_save_ms, "sim_save_ms")

void st_journal_done(st_journal *j)
{
    st_vec_free(&j->tasks);
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

static json_t *task_json(const st_task *t)
{
    json_t *o = json_object();

    json_object_set_new(o, "job", json_string(t->key.job));
    json_object_set_new(o, "phase", json_string(phases[t->phase]));
    json_object_set_new(o, "tenant", json_string(t->tenant));
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
    put_text(t.reason, sizeof t.reason, o, "reason");
#define X(field, key) t.field = (__typeof__(t.field))json_integer_value(json_object_get(o, key));
    NUMBER_TABLE(X)
#undef X
#define X(field) t.field = json_is_true(json_object_get(o, #field));
    ST_MARK_TABLE(X)
#undef X
    used_of(json_object_get(o, "usage"), &t.used);
    if (at < 0 || !t.key.job[0] || t.scrub.result < 0 || t.scrub.result >= ST_SCRUB_COUNT ||
        t.place.level < 0 || t.place.level >= ST_LEVEL_COUNT || t.place.mig_profile < -1 ||
        t.place.mig_profile >= ST_MIG_COUNT || t.place.mig_start < 0 ||
        t.place.mig_start >= ST_MIG_MEMORY)
        return false;
    t.phase = (st_phase)at;
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
    st_journal j = {.epoch = json_integer_value(json_object_get(root, "epoch"))};
    size_t i;
    int r = 0;

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

int st_journal_save(const st_journal *j, const char *dir, bool sync, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    st_journal_write(j, &out);
    return st_file_replace(dir, JOURNAL_FILE, out.s, out.n, sync, err);
}

int st_journal_load(const char *dir, st_journal *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_err why = {0};
    int r = st_file_load(dir, JOURNAL_FILE, &text, &why);

    if (r == -ST_ENOENT) {
        *ret = (st_journal){0};
        return 0;
    }
    if (r == 0)
        r = st_journal_read(st_strbuf_str(&text), text.n, ret, &why);
    if (r < 0)
        return st_fail(err, why.code, "%s/" JOURNAL_FILE ": %s", dir, why.msg);
    return 0;
}

st_task *st_journal_find(const st_journal *j, const st_task_key *key)
{
    for (size_t i = 0; i < j->tasks.n; i++)
        if (st_key_same(&j->tasks.v[i].key, key))
            return &j->tasks.v[i];
    return NULL;
}
