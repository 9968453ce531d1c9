/*
 * The way of a submit through sizes, workloads, scripts and arrays (rules/rules.h), and the scripts
 * themselves.
 *
 *   1. A set of scripts never changes; putting or removing one makes a new set. Whoever runs
 *      scripts holds a reference to the set they are of.
 *   2. A box in the pool has the scripts of exactly one set. A box of an old set is thrown away
 *      when it is given back or found.
 *   3. `lock` guards references, the pool and the counts; no script runs under it.
 */
#include "rules/rules.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/vec.h"
#include "model/tree.h"
#include "rules/box.h"
#include "rules/sizes.h"
#include "rules/values.h"
#include "rules/workload.h"

#define POOL_MAX 64 /* boxes that wait for work; more are made and thrown away */

typedef struct script {
    int refs;
    char *name, *text;
    unsigned has;
    int64_t version, calls, refused, failed;
    char last_error[200];
} script;

typedef struct script_set {
    int refs;
    size_t n;
    script *v[ST_RULES_SCRIPTS_MAX]; /* by name */
} script_set;

typedef struct lease {
    st_box *box;
    script_set *set;
} lease;

typedef ST_VEC(lease) lease_vec;

struct st_rules {
    st_rules_options options;
    st_estimate_rules estimate; /* which `options` point to */
    st_sizes *sizes;
    atomic_size_t nscripts;
    pthread_mutex_t lock;
    script_set *set;
    lease_vec pool;
};

/* ---- life ----------------------------------------------------------------------------------- */

static void script_unref(script *s)
{
    if (--s->refs > 0)
        return;
    free(s->name);
    free(s->text);
    free(s);
}

static void set_unref(script_set *set)
{
    if (--set->refs > 0)
        return;
    for (size_t i = 0; i < set->n; i++)
        script_unref(set->v[i]);
    free(set);
}

st_rules *st_rules_new(const st_rules_options *options)
{
    st_rules *rules = st_xcalloc(1, sizeof *rules);
    const st_rules_limits usual = ST_RULES_LIMITS_DEFAULT;

    if (options)
        rules->options = *options;
    rules->estimate = rules->options.estimate ? *rules->options.estimate : st_estimate_default();
    rules->options.estimate = &rules->estimate;
    if (rules->options.limits.steps == 0)
        rules->options.limits = usual;
    rules->sizes = st_sizes_new(&rules->options);
    rules->set = st_xcalloc(1, sizeof *rules->set);
    rules->set->refs = 1;
    pthread_mutex_init(&rules->lock, NULL);
    return rules;
}

void st_rules_free(st_rules *rules)
{
    if (!rules)
        return;
    for (size_t i = 0; i < rules->pool.n; i++) {
        st_box_free(rules->pool.v[i].box);
        set_unref(rules->pool.v[i].set);
    }
    st_vec_free(&rules->pool);
    set_unref(rules->set);
    st_sizes_free(rules->sizes);
    pthread_mutex_destroy(&rules->lock);
    free(rules);
}

st_sizes *st_rules_sizes(st_rules *rules)
{
    return rules->sizes;
}

/* ---- the pool ------------------------------------------------------------------------------- */

static int fill_box(const script_set *set, const st_rules_limits *limits, st_box **ret, st_err *err)
{
    ST_CLEANUP(st_box_freep) st_box *box = NULL;
    int r = st_box_new(limits, &box, err);

    for (size_t i = 0; r == 0 && i < set->n; i++) {
        unsigned has;

        r = st_box_load(box, set->v[i]->name, set->v[i]->text, &has, err);
    }
    if (r == 0)
        *ret = ST_TAKE(box);
    return r;
}

static int take(st_rules *rules, lease *ret, st_err *err)
{
    lease l = {0};
    st_box *box = NULL;
    int r;

    pthread_mutex_lock(&rules->lock);
    if (rules->pool.n > 0)
        l = st_vec_pop(&rules->pool);
    else {
        l.set = rules->set;
        l.set->refs++;
    }
    pthread_mutex_unlock(&rules->lock);
    if (!l.box) {
        r = fill_box(l.set, &rules->options.limits, &box, err);
        if (r < 0) {
            pthread_mutex_lock(&rules->lock);
            set_unref(l.set);
            pthread_mutex_unlock(&rules->lock);
            return r;
        }
        l.box = box;
    }
    *ret = l;
    return 0;
}

static void give_back(st_rules *rules, lease *l)
{
    st_box *over = l->box;

    if (!l->set)
        return;
    pthread_mutex_lock(&rules->lock);
    if (l->set == rules->set && rules->pool.n < POOL_MAX) {
        st_vec_push(&rules->pool, *l);
        over = NULL;
    } else {
        set_unref(l->set);
    }
    pthread_mutex_unlock(&rules->lock);
    st_box_free(over);
}

/* Makes this the set that counts, under the lock. Takes the set over; the boxes of the old one
 * are the caller's to free once it has let go of the lock. */
static void install(st_rules *rules, script_set *set, lease_vec *ret_old)
{
    set_unref(rules->set);
    rules->set = set;
    atomic_store(&rules->nscripts, set->n);
    for (size_t i = 0; i < rules->pool.n; i++)
        set_unref(rules->pool.v[i].set);
    *ret_old = rules->pool;
    rules->pool = (lease_vec){0};
}

static void free_boxes(lease_vec *old)
{
    for (size_t i = 0; i < old->n; i++)
        st_box_free(old->v[i].box);
    st_vec_free(old);
}

/* ---- scripts -------------------------------------------------------------------------------- */

static int check(st_rules *rules, const char *name, const char *text, unsigned *ret_has,
                 st_err *err)
{
    ST_CLEANUP(st_box_freep) st_box *box = NULL;
    char q[ST_QUOTE_MAX];
    int r;

    if (!st_name_ok(name))
        return st_fail(err, ST_EINVAL,
                       "%s cannot be the name of a rule: it must be 1 to %d bytes without spaces "
                       "or control characters",
                       st_quote(q, name), ST_NAME_MAX);
    if (strlen(text) > ST_RULES_TEXT_MAX)
        return st_fail(err, ST_ERANGE, "rule %s: a script has at most %zu KiB, this has %zu", name,
                       ST_RULES_TEXT_MAX >> 10, (strlen(text) + 1023) >> 10);
    r = st_box_new(&rules->options.limits, &box, err);
    if (r < 0)
        return r;
    if (st_box_load(box, name, text, ret_has, err) < 0) {
        if (err)
            err->code = ST_EINVAL; /* whoever brought it is at fault, not the service */
        return -ST_EINVAL;
    }
    return 0;
}

int st_rules_check(st_rules *rules, const char *name, const char *text, st_err *err)
{
    unsigned has;

    return check(rules, name, text, &has, err);
}

/* Where the name is in the set, or belongs. */
static size_t position(const script_set *set, const char *name, bool *ret_there)
{
    size_t i = 0;

    while (i < set->n && strcmp(set->v[i]->name, name) < 0)
        i++;
    *ret_there = i < set->n && strcmp(set->v[i]->name, name) == 0;
    return i;
}

/* A copy of the set that counts, under the lock: without the script at `skip`, with room for one
 * at `gap`. */
static script_set *copy_set(const script_set *from, size_t skip, size_t gap)
{
    script_set *set = st_xcalloc(1, sizeof *set);

    set->refs = 1;
    for (size_t i = 0; i < from->n; i++) {
        if (set->n == gap)
            set->n++;
        if (i == skip)
            continue;
        from->v[i]->refs++;
        set->v[set->n++] = from->v[i];
    }
    if (set->n == gap)
        set->n++;
    return set;
}

static script *script_new(const char *name, const char *text, unsigned has)
{
    script *s = st_xcalloc(1, sizeof *s);

    s->refs = 1;
    s->name = st_xstrdup(name);
    s->text = st_xstrdup(text);
    s->has = has;
    return s;
}

int st_rules_put(st_rules *rules, const char *name, const char *text, int64_t version, st_err *err)
{
    ST_CLEANUP(free_boxes) lease_vec old = {0};
    script_set *set;
    script *s;
    unsigned has;
    bool there;
    size_t at;
    int r = check(rules, name, text, &has, err);

    if (r < 0)
        return r;
    s = script_new(name, text, has);
    s->version = version;
    pthread_mutex_lock(&rules->lock);
    at = position(rules->set, name, &there);
    if (!there && rules->set->n == ST_RULES_SCRIPTS_MAX) {
        script_unref(s);
        r = st_fail(err, ST_ELIMIT, "rule %s: there are %d rules already", name,
                    ST_RULES_SCRIPTS_MAX);
    } else {
        if (there) {
            s->calls = rules->set->v[at]->calls;
            s->refused = rules->set->v[at]->refused;
            s->failed = rules->set->v[at]->failed;
        }
        set = copy_set(rules->set, there ? at : SIZE_MAX, at);
        set->v[at] = s;
        install(rules, set, &old);
    }
    pthread_mutex_unlock(&rules->lock);
    return r;
}

int st_rules_remove(st_rules *rules, const char *name, st_err *err)
{
    ST_CLEANUP(free_boxes) lease_vec old = {0};
    char q[ST_QUOTE_MAX];
    bool there;
    size_t at;

    pthread_mutex_lock(&rules->lock);
    at = position(rules->set, name, &there);
    if (there)
        install(rules, copy_set(rules->set, at, SIZE_MAX), &old);
    pthread_mutex_unlock(&rules->lock);
    return there ? 0 : st_fail(err, ST_ENOENT, "there is no rule %s", st_quote(q, name));
}

json_t *st_rules_list(st_rules *rules)
{
    json_t *list = json_array();

    pthread_mutex_lock(&rules->lock);
    for (size_t i = 0; i < rules->set->n; i++) {
        const script *s = rules->set->v[i];

        /* A script may have bytes in its comments that are not UTF-8; JSON may not. */
        json_array_append_new(list, json_pack("{s:s, s:I, s:s*, s:I, s:I, s:I, s:s}", "name",
                                              s->name, "version", (json_int_t)s->version, "text",
                                              s->text, "calls", (json_int_t)s->calls, "refused",
                                              (json_int_t)s->refused, "failed",
                                              (json_int_t)s->failed, "last_error", s->last_error));
    }
    pthread_mutex_unlock(&rules->lock);
    return list;
}

/* ---- a submit ------------------------------------------------------------------------------- */

static void count(st_rules *rules, script *s, st_rule_verdict verdict, const st_err *why)
{
    pthread_mutex_lock(&rules->lock);
    s->calls++;
    s->refused += verdict == ST_VERDICT_REFUSE;
    if (verdict == ST_VERDICT_FAIL) {
        s->failed++;
        snprintf(s->last_error, sizeof s->last_error, "%.*s", (int)sizeof s->last_error - 1,
                 why->msg);
    }
    pthread_mutex_unlock(&rules->lock);
}

/* Runs prepare or submit of every script; *job becomes what they make of it. */
static int run_scripts(st_rules *rules, lease *l, unsigned which, const st_rules_who *who,
                       json_t **job, st_err *err)
{
    for (size_t i = 0; l->set && i < l->set->n; i++) {
        json_t *after = NULL;
        st_err why = {0};
        st_rule_verdict v;

        if (!(l->set->v[i]->has & which))
            continue;
        v = st_box_call(l->box, i, which, who, *job, &after, &why);
        count(rules, l->set->v[i], v, &why);
        if (v == ST_VERDICT_REFUSE || (v == ST_VERDICT_FAIL && !rules->options.fail_open))
            return st_fail(err, why.code, "%s", why.msg);
        if (v == ST_VERDICT_ACCEPT) {
            json_decref(*job);
            *job = after;
        }
    }
    return 0;
}

static int go_through(st_rules *rules, lease *l, const st_rules_who *who, json_t **job,
                      st_rules_jobs *ret_jobs, st_err *err)
{
    int r = run_scripts(rules, l, ST_BOX_PREPARE, who, job, err);

    if (r == 0)
        r = st_sizes_apply(rules->sizes, who, *job, err);
    if (r == 0)
        r = st_workload_apply(&rules->options, who, *job, err);
    if (r == 0)
        r = run_scripts(rules, l, ST_BOX_SUBMIT, who, job, err);
    if (r == 0)
        r = st_array_apply(*job, ret_jobs, err);
    return r;
}

/* Deeper than any document that means something, so that no script is blamed for it. */
static bool too_deep(const json_t *v, int left)
{
    json_t *of = (json_t *)(uintptr_t)v; /* iterating does not change it */

    if (left == 0)
        return true;
    for (size_t i = 0; i < json_array_size(v); i++)
        if (too_deep(json_array_get(v, i), left - 1))
            return true;
    for (void *at = json_object_iter(of); at; at = json_object_iter_next(of, at))
        if (too_deep(json_object_iter_value(at), left - 1))
            return true;
    return false;
}

#define DEPTH_MAX 16

static int apply(st_rules *rules, const st_rules_who *who, const json_t *job,
                 st_rules_jobs *ret_jobs, st_err *err)
{
    ST_CLEANUP(st_json_drop) json_t *doc = NULL;
    lease l = {0};
    int r = 0;

    if (!json_is_object(job))
        return st_fail(err, ST_EINVAL, "a job is a map of keys like gpus and command");
    if (too_deep(job, DEPTH_MAX))
        return st_fail(err, ST_EINVAL, "the job is nested more than %d deep", DEPTH_MAX);
    doc = json_copy((json_t *)(uintptr_t)job);
    if (atomic_load(&rules->nscripts) > 0)
        r = take(rules, &l, err);
    if (r == 0)
        r = go_through(rules, &l, who, &doc, ret_jobs, err);
    give_back(rules, &l);
    return r;
}

int st_rules_apply_text(st_rules *rules, const st_rules_who *who, const char *text, size_t len,
                        st_rules_jobs *ret_jobs, st_err *err)
{
    json_error_t at;
    ST_CLEANUP(st_json_drop)
    json_t *job = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);
    char q[ST_QUOTE_MAX];

    if (!job)
        return st_fail(err, ST_EPARSE, "line %d: this is no JSON: %s", at.line,
                       st_quote(q, at.text));
    return apply(rules, who, job, ret_jobs, err);
}

void st_rules_jobs_done(st_rules_jobs *jobs)
{
    for (size_t i = 0; i < jobs->pieces.n; i++) {
        free(jobs->pieces.v[i].tail);
        free(jobs->pieces.v[i].name);
    }
    st_vec_free(&jobs->pieces);
    free(jobs->head);
    jobs->head = NULL;
}

char *st_rules_text(const json_t *job)
{
    return json_dumps(job, JSON_COMPACT | JSON_REAL_PRECISION(15));
}

bool st_rules_concerns(st_rules *rules, const st_doc_node *job)
{
    static const char *const keys[] = {"size", "workload", "array", "estimate"};

    if (atomic_load(&rules->nscripts) > 0)
        return true;
    for (const st_doc_node *n = job->child; n && n->key; n = n->next) {
        for (size_t i = 0; i < ST_ARRAY_LEN(keys); i++)
            if (strcmp(n->key, keys[i]) == 0)
                return true;
        if (st_workload_key(n->key))
            return true;
    }
    return false;
}

bool st_rules_estimate(const st_rules *rules, const json_t *job, int64_t *ret_mib)
{
    return st_workload_memory(&rules->options, job, ret_mib);
}
