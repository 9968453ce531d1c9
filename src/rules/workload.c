/*
 * Workload types (rules/workload.h): one row of the table per type, one function for what needs
 * more than defaults.
 */
#include "rules/workload.h"

#include <inttypes.h>
#include <string.h>

#include "base/quote.h"
#include "base/strbuf.h"
#include "base/suggest.h"
#include "rules/fit.h"
#include "rules/values.h"

#define CONTEXT_MAX        (INT64_C(16) << 20)
#define SEQUENCES_MAX      65536
#define BATCH_MAX          65536
#define FINETUNE_NODES_MAX 64

typedef struct setting {
    const st_rules_options *options;
    const st_rules_who *who;
    json_t *job;
} setting;

/* ---- models --------------------------------------------------------------------------------- */

static int read_model(const json_t *job, st_model *ret, st_err *err)
{
    const json_t *v = json_object_get(job, "model");

    if (!st_value_has(job, "model"))
        return st_fail(err, ST_EINVAL, "workload %s needs a model, such as 13b",
                       json_string_value(json_object_get(job, "workload")));
    if (!json_is_string(v))
        return st_fail(err, ST_EINVAL, "model: a text like 13b is wanted");
    return st_model_parse(json_string_value(v), ret, err);
}

/* Notes the need beside what the job asks for itself. */
static void note_only(json_t *job, const st_estimate_need *need, st_strbuf *why)
{
    char g[ST_GIB_TEXT];

    st_strbuf_addf(why, "; on one GPU that is %s; the job says itself what it wants",
                   st_gib_text(g, st_need_each(need, 1)));
    st_value_set(job, "estimate", json_string(st_strbuf_str(why)));
}

/* The most memory one job could have. */
static void say_most(const st_kinds *fleet, int tasks_max, st_strbuf *out)
{
    int64_t most = 0;
    char g[ST_GIB_TEXT];

    for (size_t t = 0; t < fleet->n; t++) {
        int node = fleet->type[t].node_gpus > 0 ? fleet->type[t].node_gpus : 8;
        int64_t mib = st_kinds_vram_mib(&fleet->type[t]) * node;

        if ((fleet->allowed >> t & 1) && mib > most)
            most = mib;
    }
    st_strbuf_addf(out, "; %s %d node%s: the largest here has %s", "it may use", tasks_max,
                   tasks_max == 1 ? "" : "s", st_gib_text(g, most));
}

static int place_need(const setting *s, const st_estimate_need *need, const st_fit_rules *rules,
                      st_strbuf *why, st_err *err)
{
    st_kinds fleet;
    st_fit fit;
    int r;

    if (st_fit_said(s->job)) {
        note_only(s->job, need, why);
        return 0;
    }
    st_kinds_read(s->options, &fleet);
    r = st_kinds_restrict(&fleet, s->job, err);
    if (r < 0)
        return r;
    if (!st_fit_smallest(&fleet, need, rules, &fit)) {
        say_most(&fleet, rules->tasks_max, why);
        return st_fail(err, ST_EINVAL, "this does not fit: %s", st_strbuf_str(why));
    }
    st_fit_say(&fit, &fleet, why);
    st_fit_write(&fit, &fleet, s->job);
    st_value_set(s->job, "estimate", json_string(st_strbuf_str(why)));
    return 0;
}

static int need_of_inference(const setting *s, st_estimate_need *ret, st_strbuf *why, st_err *err)
{
    static const char *const attentions[] = {"gqa", "mha", NULL};
    int64_t context = 4096, sequences = 1;
    int dtype = ST_DTYPE_FP16, attention = 0;
    st_model model;
    int r = read_model(s->job, &model, err);

    if (r == 0)
        r = st_value_word(s->job, "dtype", st_dtype_words, &dtype, err);
    if (r == 0)
        r = st_value_word(s->job, "attention", attentions, &attention, err);
    if (r == 0)
        r = st_value_count(s->job, "context", 1, CONTEXT_MAX, &context, err);
    if (r == 0)
        r = st_value_count(s->job, "concurrency", 1, SEQUENCES_MAX, &sequences, err);
    if (r == 0)
        *ret = st_need_inference(s->options->estimate, &model, (st_dtype)dtype, context, sequences,
                                 attention == 1, why);
    return r;
}

static int inference(const setting *s, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf why = {0};
    const st_fit_rules rules = {.share = s->who->trusted, .tasks_max = 1};
    int dtype = ST_DTYPE_FP16, r;
    st_estimate_need need;

    if (!st_value_has(s->job, "model")) /* a service that knows what it needs */
        return st_value_word(s->job, "dtype", st_dtype_words, &dtype, err);
    r = need_of_inference(s, &need, &why, err);
    return r < 0 ? r : place_need(s, &need, &rules, &why, err);
}

static void prefer_block(json_t *job)
{
    int64_t tasks = 1;

    (void)st_value_i64(job, "tasks", 1, INT64_MAX, &tasks, NULL);
    if (tasks > 1)
        st_value_default(job, "topology", json_pack("{s:s}", "prefer", "block"));
}

static int need_of_finetune(const setting *s, st_estimate_need *ret, st_strbuf *why, st_err *err)
{
    int64_t context = 2048, batch = 1;
    int dtype = ST_DTYPE_BF16, method = ST_METHOD_LORA;
    st_model model;
    int r = read_model(s->job, &model, err);

    if (r == 0)
        r = st_value_word(s->job, "dtype", st_dtype_words, &dtype, err);
    if (r == 0)
        r = st_value_word(s->job, "method", st_method_words, &method, err);
    if (r == 0)
        r = st_value_count(s->job, "context", 1, CONTEXT_MAX, &context, err);
    if (r == 0)
        r = st_value_count(s->job, "batch_size", 1, BATCH_MAX, &batch, err);
    if (r == 0)
        *ret = st_need_finetune(s->options->estimate, &model, (st_dtype)dtype, (st_method)method,
                                context * batch, why);
    return r;
}

static int finetune(const setting *s, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf why = {0};
    const st_fit_rules rules = {.share = false, .tasks_max = FINETUNE_NODES_MAX};
    st_estimate_need need;
    int r = need_of_finetune(s, &need, &why, err);

    if (r == 0)
        r = place_need(s, &need, &rules, &why, err);
    if (r == 0)
        prefer_block(s->job);
    return r;
}

static int training(const setting *s, st_err *err)
{
    (void)err;
    prefer_block(s->job);
    return 0;
}

/* ---- people --------------------------------------------------------------------------------- */

/* Pausing moves a process to host memory as it is; inside a MIG slice or beside MPS clients that
 * cannot be done. */
static int notebook(const setting *s, st_err *err)
{
    const char *level;
    st_kinds fleet;
    st_fit fit;
    int r;

    if (!st_fit_said(s->job)) {
        st_kinds_read(s->options, &fleet);
        r = st_kinds_restrict(&fleet, s->job, err);
        if (r < 0)
            return r;
        st_fit_eighth(&fleet, s->who->trusted, &fit);
        st_fit_write(&fit, &fleet, s->job);
    }
    level = json_string_value(json_object_get(s->job, "level"));
    if (!level)
        level = st_value_has(s->job, "profile") ? "mig" : "whole";
    st_value_default(s->job, "on_preempt",
                     json_string(strcmp(level, "whole") == 0 || strcmp(level, "time") == 0
                                     ? "pause"
                                     : "requeue"));
    return 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

typedef struct workload_row {
    const char *name, *also; /* what people call it as well; NULL */
    const char *options[7];  /* keys it gives a meaning */
    int (*apply)(const setting *s, st_err *err);
    const char *on_preempt, *limit;
    int (*need)(const setting *s, st_estimate_need *ret, st_strbuf *why, st_err *err);
} workload_row;

static const workload_row rows[] = {
    {"inference",
     "serving",
     {"model", "dtype", "context", "concurrency", "attention"},
     inference,
     NULL,
     NULL,
     need_of_inference},
    {"finetune",
     "fine-tuning",
     {"model", "dtype", "context", "method", "batch_size"},
     finetune,
     "checkpoint",
     NULL,
     need_of_finetune},
    {"training",
     NULL,
     {"model", "dtype", "context", "batch_size"},
     training,
     "checkpoint",
     NULL,
     NULL},
    {"render", "rendering", {"frames", "chunk"}, NULL, NULL, NULL, NULL},
    {"video", NULL, {"frames", "chunk", "duration", "fps"}, NULL, NULL, NULL, NULL},
    {"notebook", NULL, {NULL}, notebook, NULL, "8h", NULL},
    {"batch", NULL, {NULL}, NULL, NULL, NULL, NULL},
};

static const workload_row *find(const char *name)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].name, name) == 0 || (rows[i].also && strcmp(rows[i].also, name) == 0))
            return &rows[i];
    return NULL;
}

static bool has_option(const workload_row *row, const char *key)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(row->options) && row->options[i]; i++)
        if (strcmp(row->options[i], key) == 0)
            return true;
    return false;
}

bool st_workload_key(const char *key)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        if (has_option(&rows[i], key))
            return true;
    return false;
}

/* The workloads that have this option. */
static int fail_option(const char *key, const char *workload, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf list = {0};

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        if (has_option(&rows[i], key))
            st_strbuf_addf(&list, "%s%s", list.n > 0 ? ", " : "", rows[i].name);
    if (workload)
        return st_fail(err, ST_EINVAL, "%s means nothing to workload %s; it is for %s", key,
                       workload, st_strbuf_str(&list));
    return st_fail(err, ST_EINVAL, "%s needs a workload that it belongs to: %s", key,
                   st_strbuf_str(&list));
}

static int check_options(const workload_row *row, const json_t *job, st_err *err)
{
    json_t *of = (json_t *)(uintptr_t)job; /* iterating does not change it */

    for (void *at = json_object_iter(of); at; at = json_object_iter_next(of, at)) {
        const char *key = json_object_iter_key(at);

        if (st_workload_key(key) && !json_is_null(json_object_iter_value(at)) &&
            !(row && has_option(row, key)))
            return fail_option(key, row ? row->name : NULL, err);
    }
    return 0;
}

static int fail_workload(const json_t *said, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf list = {0};
    const char *names[ST_ARRAY_LEN(rows) + 1] = {NULL}, *near = NULL;
    char q[ST_QUOTE_MAX];

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        names[i] = rows[i].name;
        st_strbuf_addf(&list, "%s%s",
                       i == 0                       ? ""
                       : i + 1 < ST_ARRAY_LEN(rows) ? ", "
                                                    : " or ",
                       rows[i].name);
    }
    if (!json_is_string(said))
        return st_fail(err, ST_EINVAL, "workload: one of %s is wanted", st_strbuf_str(&list));
    near = st_suggest(json_string_value(said), names);
    return st_fail(err, ST_EINVAL, "workload: %s is none of %s%s%s%s",
                   st_quote(q, json_string_value(said)), st_strbuf_str(&list),
                   near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

int st_workload_apply(const st_rules_options *options, const st_rules_who *who, json_t *job,
                      st_err *err)
{
    const json_t *said = json_object_get(job, "workload");
    const setting s = {options, who, job};
    const workload_row *row;
    int r;

    json_object_del(job, "estimate"); /* ours to write */
    if (!st_value_has(job, "workload"))
        return check_options(NULL, job, err);
    row = json_is_string(said) ? find(json_string_value(said)) : NULL;
    if (!row)
        return fail_workload(said, err);
    if (strcmp(row->name, json_string_value(said)) != 0)
        st_value_set(job, "workload", json_string(row->name));
    r = check_options(row, job, err);
    if (r == 0 && row->apply)
        r = row->apply(&s, err);
    if (r < 0)
        return r;
    if (row->on_preempt)
        st_value_default(job, "on_preempt", json_string(row->on_preempt));
    if (row->limit)
        st_value_default(job, "limit", json_string(row->limit));
    return 0;
}

bool st_workload_memory(const st_rules_options *options, const json_t *job, int64_t *ret_mib)
{
    const char *name = json_string_value(json_object_get(job, "workload"));
    const workload_row *row = name ? find(name) : NULL;
    const setting s = {options, NULL, (json_t *)(uintptr_t)job}; /* reading does not change it */
    ST_CLEANUP(st_strbuf_done) st_strbuf why = {0};
    int64_t gpus = 1, tasks = 1;
    st_estimate_need need;
    st_err err;

    if (!row || !row->need || !st_value_has(job, "model") || row->need(&s, &need, &why, &err) < 0)
        return false;
    (void)st_value_i64(job, "gpus", 1, INT32_MAX, &gpus, NULL);
    (void)st_value_i64(job, "tasks", 1, INT32_MAX, &tasks, NULL);
    *ret_mib = st_need_each(&need, gpus * tasks) * gpus;
    return true;
}
