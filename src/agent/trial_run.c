/*
 * The task that measures a node's GPUs (agent/trial.h): its order, what was seen while it ran, and what it said.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/dcgm.h"
#include "agent/files.h"
#include "agent/host.h"
#include "agent/tenant.h"
#include "base/mem.h"
#include "gpu/measure.h"

#define NAME      "node-test"
#define SAID_MAX  65536 /* bytes of its output that are looked at: the last */
#define SLACK_MS  60000 /* for a context and for leaving, beyond its level's time */
#define RAM_MIB   16384
#define SIM_RUN_S 1

bool st_trial_is(const st_task_key *key)
{
    return strcmp(key->job, NAME) == 0;
}

st_test_level st_trial_asked(const st_trial *trial, st_diag_limits *ret)
{
    json_t *orders = json_loads(trial->orders, 0, NULL);
    int level = st_test_level_parse(json_string_value(json_object_get(orders, "level")));
    const char *word;
    json_t *value;
    st_err ignored;

    *ret = st_diag_limits_of(json_string_value(json_object_get(orders, "type")));
    json_object_foreach(json_object_get(orders, "limits"), word, value)(void)
        st_limit_set(ret, word, json_integer_value(value), &ignored);
    json_decref(orders);
    return level > 0 ? (st_test_level)level : ST_TEST_QUICK;
}

uint16_t st_trial_without(const st_trial *trial)
{
    json_t *orders = json_loads(trial->orders, 0, NULL), *value;
    uint16_t devs = 0;
    size_t i;

    json_array_foreach(json_object_get(orders, "without"), i, value)
    {
        json_int_t d = json_is_integer(value) ? json_integer_value(value) : -1;

        if (d >= 0 && d < ST_DEVS_MAX)
            devs |= (uint16_t)(1u << d);
    }
    json_decref(orders);
    return devs;
}

/* ---- its order ------------------------------------------------------------------------------ */

/* A number that no record here has: what was started once is not started again. */
static int next_stay(const st_host *h)
{
    int last = 0;

    for (size_t i = 0; i < h->journal.tasks.n; i++)
        if (st_trial_is(&h->journal.tasks.v[i].key))
            last = ST_MAX(last, h->journal.tasks.v[i].key.stay);
    return last + 1;
}

/* Somebody has, or is to have, a GPU. */
static bool tenants(const st_host *h)
{
    for (size_t i = 0; i < h->list.orders.n; i++) {
        const st_order *o = &h->list.orders.v[i];

        if (!st_trial_is(&o->key) && o->place.devs && !o->over)
            return true;
    }
    return false;
}

static bool unwell(const st_host *h)
{
    return h->fenced || h->ill[0] || h->hangs[0] || h->stuck[0] || h->full[0] || h->unfit[0];
}

/* NVIDIA's program, where the site has it. Of simulated GPUs it would know nothing. */
static const char *dcgmi_of(const st_host *h)
{
    const char *given = h->process->conf->dcgmi, *usual = h->sim_gpus ? NULL : "/usr/bin/dcgmi";
    const char *path = given ? given : usual;

    return path && h->exec->ops->real && access(path, X_OK) == 0 ? path : NULL;
}

/* What the simulated driver would find is given to the program, which is run all the same. */
static json_t *command(st_host *h, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf figures = {0};
    static const char *const runs[] = {
        [ST_TEST_SHORT] = "2", [ST_TEST_LONG] = "3", [ST_TEST_BURN] = "4"};
    json_t *v;

    if (h->trial.dcgmi)
        return json_pack("[s,s,s,s,s]", ST_TEST_PROGRAM, "diag", "-r", runs[h->trial.level], "-j");
    v = json_pack("[s,s,s,s]", ST_TEST_PROGRAM, "measure", "--level",
                  st_test_level_name(h->trial.level));

    if (h->sim_gpus &&
        st_gpu_sim_measure(h->gpu, (st_test_depth)h->trial.level, &figures, err) < 0) {
        json_decref(v);
        return NULL;
    }
    if (h->sim_gpus) {
        json_array_append_new(v, json_string("--simulated"));
        json_array_append_new(v, json_string(st_strbuf_str(&figures)));
    }
    return v;
}

static int make_job(st_host *h, st_err *err)
{
    json_t *argv = command(h, err);

    if (!argv)
        return -err->code;
    h->trial.job =
        json_pack("{s:s,s:s,s:{s:I},s:i,s:i,s:{s:s},s:{s:o,s:s,s:{s:i}}}", "job", NAME, "account",
                  "stint", "tenant", "id", (json_int_t)ST_TENANT_MAX, "cpu", 2, "ram_mib", RAM_MIB,
                  "image", "kind", "host", "document", "command", argv, "network",
                  h->trial.dcgmi ? "host" : "none", "sim", "run", SIM_RUN_S);
    ST_ASSERT(h->trial.job);
    return 0;
}

static void put_order(st_host *h)
{
    st_order o = {.key = h->trial.key,
                  .want = ST_DO_RUN,
                  .deadline_ms = h->trial.deadline_ms,
                  .place = {.level = ST_LEVEL_WHOLE, .mig_profile = -1},
                  .signal = SIGTERM,
                  .allow = ~0u,
                  .job = h->trial.job};

    st_tenant_name(ST_TENANT_MAX, o.tenant);
    snprintf(o.place.domain, sizeof o.place.domain, "%s", o.tenant);
    o.place.devs = (uint16_t)((1u << h->inv.n) - 1);
    st_vec_push(&h->list.orders, o);
}

static void take_off(st_host *h)
{
    for (size_t i = h->list.orders.n; i-- > 0;)
        if (st_trial_is(&h->list.orders.v[i].key))
            st_vec_remove(&h->list.orders, i);
}

static void begin(st_host *h, int64_t now)
{
    st_trial *k = &h->trial;
    st_diag_limits limits;

    const int64_t limit_ms = h->process->conf->test_ms;

    k->level = st_trial_asked(k, &limits);
    k->key = (st_task_key){.stay = next_stay(h)};
    snprintf(k->key.job, sizeof k->key.job, "%s", NAME);
    for (int d = 0; d < ST_DEVS_MAX; d++)
        k->seen[d] = (st_trial_seen){
            .temperature = ST_DIAG_UNKNOWN, .power_w = ST_DIAG_UNKNOWN, .clock = ST_DIAG_UNKNOWN};
    k->began_ms = now;
    k->deadline_ms = now + (limit_ms > 0 ? limit_ms : st_test_level_ms(k->level) + SLACK_MS);
    k->why[0] = '\0';
    k->dcgmi = dcgmi_of(h) != NULL;
    k->program = k->dcgmi ? dcgmi_of(h) : h->cuda;
    st_err err = {0};
    if (make_job(h, &err) < 0) {
        snprintf(k->why, sizeof k->why, "%.150s", err.msg);
        return;
    }
    k->no = h->test_wanted;
    st_say(h, "testing", "test=%" PRId64 " level=%s", k->no, st_test_level_name(k->level));
}

static void drop(st_host *h)
{
    take_off(h); /* it points there */
    json_decref(h->trial.job);
    h->trial.job = NULL;
    h->trial.no = 0;
}

/* Above quick, of a node with GPUs, and not told yet. */
static bool asked_for(const st_host *h)
{
    st_diag_limits limits;

    return h->test_wanted > 0 && h->test_no != h->test_wanted && h->inv.n > 0 && !unwell(h) &&
           st_trial_asked(&h->trial, &limits) > ST_TEST_QUICK;
}

/* stintd hears of none of them. */
static void hide(st_host *h)
{
    for (size_t i = 0; i < h->journal.tasks.n; i++)
        if (st_trial_is(&h->journal.tasks.v[i].key))
            h->journal.tasks.v[i].log_done = h->journal.tasks.v[i].told = true;
}

void st_trial_order(st_host *h, int64_t now)
{
    st_trial *k = &h->trial;
    bool wanted = asked_for(h) && h->has_list, busy = wanted && tenants(h);

    hide(h);
    if (!h->has_list)
        return;
    take_off(h);
    if (k->job && (!wanted || busy || k->no != h->test_wanted)) {
        st_say(h, "test-given-up", "test=%" PRId64 " reason=\"%s\"", k->no,
               busy ? "a task needs its GPUs" : "it is not asked for now");
        drop(h);
    }
    if (busy && !k->waits)
        st_say(h, "test-waits", "test=%" PRId64 " reason=\"tasks have GPUs\"", h->test_wanted);
    k->waits = busy;
    if (!wanted || busy)
        return;
    if (!k->job)
        begin(h, now);
    if (k->job)
        put_order(h);
}

/* ---- what came of it ------------------------------------------------------------------------ */

static void see_gpu(st_trial_seen *seen, const st_gpu_sample *s)
{
    if (st_gpu_has(s, ST_GPU_TEMP))
        seen->temperature = ST_MAX(seen->temperature, s->v[ST_GPU_TEMP]);
    if (st_gpu_has(s, ST_GPU_POWER))
        seen->power_w = ST_MAX(seen->power_w, s->v[ST_GPU_POWER] / 1000);
    if (!st_gpu_has(s, ST_GPU_THROTTLE))
        return;
    seen->throttle |= s->v[ST_GPU_THROTTLE];
    if (!(s->v[ST_GPU_THROTTLE] & 1) && st_gpu_has(s, ST_GPU_SM_CLOCK) &&
        (seen->clock == ST_DIAG_UNKNOWN || s->v[ST_GPU_SM_CLOCK] < seen->clock))
        seen->clock = s->v[ST_GPU_SM_CLOCK];
}

/* The last line that is an object: what is before may be a library's. */
static json_t *last_object(char *text)
{
    json_t *said = NULL;
    char *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        json_t *doc = line[0] == '{' ? json_loads(line, 0, NULL) : NULL;

        if (json_is_object(doc)) {
            json_decref(said);
            said = json_incref(doc);
        }
        json_decref(doc);
    }
    return said;
}

static json_t *output(st_host *h, const st_task *t)
{
    ST_CLEANUP(st_freep) char *buf = st_xcalloc(1, SAID_MAX + 1);
    st_run_piece piece = {0};
    st_err err;
    char none[1];

    if (h->exec->ops->log(h->exec, t, 0, none, 0, &piece, &err) < 0 ||
        h->exec->ops->log(h->exec, t, ST_MAX(piece.end - SAID_MAX, 0), buf, SAID_MAX, &piece,
                          &err) < 0)
        return NULL;
    return last_object(buf);
}

static int broke(const st_task *t, const json_t *said, st_err *err)
{
    const char *why = json_string_value(json_object_get(said, "error"));

    if (t->phase == ST_PHASE_UNSTARTED || t->reason[0])
        return st_fail(err, ST_EDOWN, "the test could not be made: %.120s", t->reason);
    if (t->exit_signal)
        return st_fail(err, ST_EDOWN, "the test could not be made: signal %d ended it",
                       t->exit_signal);
    return st_fail(err, ST_EDOWN, "the test could not be made: %.100s (exit %d)",
                   why ? why : "it said nothing",
                   t->exit_code ? t->exit_code
                                : (int)json_integer_value(json_object_get(said, "exit")));
}

/* ---- dcgmi ---------------------------------------------------------------------------------- */

/* In the words of stint-cuda. */
static json_t *as_figures(const st_dcgm *d, int gpus)
{
    char with[sizeof d->version + 8];
    json_t *list = json_array();

    snprintf(with, sizeof with, "dcgmi %s", d->version);
    for (int i = 0; i < gpus; i++) {
        json_t *gpu = json_pack("{s:i}", "gpu", i);

        if (d->made[i] > 0)
            json_object_set_new(gpu, "dcgm", json_integer(d->failed[i]));
        json_array_append_new(list, gpu);
    }
    return json_pack("{s:b,s:s,s:o}", "ok", true, "with", with, "gpus", list);
}

/* Its exit status is that of its tests too, so what it says counts; but 126 and 127 are of a program that never ran. */
static int take_dcgmi(st_host *h, const st_task *t, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_freep) char *buf = st_xcalloc(1, ST_DCGM_MAX + 2);
    st_run_piece piece = {0};
    st_dcgm d;
    int r;

    if (t->phase == ST_PHASE_UNSTARTED || t->exit_signal || t->exit_code == 126 ||
        t->exit_code == 127 || t->reason[0])
        return broke(t, NULL, err);
    r = h->exec->ops->log(h->exec, t, 0, buf, ST_DCGM_MAX + 1, &piece, err);
    if (r == 0)
        r = st_dcgm_read(buf, piece.n, h->inv.n, &d, err);
    if (r < 0)
        return st_fail_prefix(err, "the test could not be made (exit %d): ", t->exit_code);
    for (int i = 0; i < h->inv.n; i++)
        if (d.failed[i] > 0)
            st_say(h, "dcgm-failed", "gpu=%d tests=%d first=\"%s\"", i, d.failed[i], d.first[i]);
    if (d.setting[0])
        st_say(h, "dcgm-setting", "reason=\"%s\"", d.setting);
    *ret = as_figures(&d, h->inv.n);
    return 1;
}

/* Nothing was run: what it would have said. */
static json_t *simulated(st_host *h)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf figures = {0};
    st_err err;

    if (st_gpu_sim_measure(h->gpu, (st_test_depth)h->trial.level, &figures, &err) < 0)
        return NULL;
    return json_loads(st_strbuf_str(&figures), 0, NULL);
}

int st_trial_look(st_host *h, json_t **ret, st_err *err)
{
    st_trial *k = &h->trial;
    st_task *t = k->job ? st_journal_find(&h->journal, &k->key) : NULL;
    json_t *said;
    int r = 1;

    if (!k->job && k->why[0] && asked_for(h)) {
        r = st_fail(err, ST_EDOWN, "the test could not be made: %s", k->why);
        k->why[0] = '\0';
        return r;
    }
    if (!t)
        return 0;
    for (int d = 0; t->phase == ST_PHASE_RUNNING && d < h->inv.n; d++)
        if (h->sample[d].at_ms > t->started_ms)
            see_gpu(&k->seen[d], &h->sample[d]);
    if (st_task_live(t))
        return 0;
    if (k->dcgmi) {
        r = take_dcgmi(h, t, ret, err);
        drop(h);
        return r;
    }
    said = t->phase == ST_PHASE_UNSTARTED ? NULL : h->exec->ops->real ? output(h, t) : simulated(h);
    if (t->exit_code == 0 && t->exit_signal == 0 && json_is_true(json_object_get(said, "ok")))
        *ret = json_incref(said);
    else
        r = broke(t, said, err);
    json_decref(said);
    drop(h);
    return r;
}

void st_trial_done(st_host *h)
{
    json_decref(h->trial.job);
}
