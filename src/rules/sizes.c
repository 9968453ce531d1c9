/*
 * Sizes: names for shapes (rules/rules.h).
 *
 * Own sizes are kept in one sorted list by name, then account; there are few. Documents are
 * copied on the way in and out, so that no two threads hold the same one.
 */
#include "rules/sizes.h"

#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/suggest.h"
#include "base/vec.h"
#include "model/tree.h"
#include "rules/values.h"
#include "spec/spec.h"

#define SIZES_MAX 4096

typedef struct own_size {
    char *name, *account;
    json_t *doc;
    int64_t version;
} own_size;

struct st_sizes {
    const st_rules_options *options;
    pthread_mutex_t lock; /* of own */
    ST_VEC(own_size) own;
};

static const char *const size_keys[] = {
    "gpus",     "tasks", "type",  "cpu",        "ram",  "level",    "profile",
    "share",    "vram",  "limit", "on_preempt", "pool", "priority", "latency_critical",
    "on_fault", "grace", "about", "topology",   NULL,
};

/* ---- those that are there from the start ------------------------------------------------- */

typedef struct builtin_size {
    const char *name, *about;
    int gpus; /* 0: an eighth */
} builtin_size;

static const builtin_size builtins[] = {
    {"large", "eight GPUs of one node", 8},
    {"medium", "one GPU", 1},
    {"small", "an eighth of a GPU: a 1g MIG slice where there is one, or a share", 0},
};

static const builtin_size *builtin(const char *name)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(builtins); i++)
        if (strcmp(builtins[i].name, name) == 0)
            return &builtins[i];
    return NULL;
}

/* The fleet decides what an eighth is. */
static json_t *builtin_doc(const builtin_size *b, const st_kinds *fleet, bool trusted)
{
    st_fit fit = {.level = ST_LEVEL_WHOLE, .gpus = b->gpus, .tasks = 1};
    json_t *doc = json_object();

    if (b->gpus == 0)
        st_fit_eighth(fleet, trusted, &fit);
    st_fit_write(&fit, fleet, doc);
    st_value_set(doc, "about", json_string(b->about));
    return doc;
}

/* ---- one's own ----------------------------------------------------------------------------- */

st_sizes *st_sizes_new(const st_rules_options *options)
{
    st_sizes *sizes = st_xcalloc(1, sizeof *sizes);

    sizes->options = options;
    pthread_mutex_init(&sizes->lock, NULL);
    return sizes;
}

static void own_done(own_size *own)
{
    free(own->name);
    free(own->account);
    json_decref(own->doc);
}

void st_sizes_free(st_sizes *sizes)
{
    if (!sizes)
        return;
    for (size_t i = 0; i < sizes->own.n; i++)
        own_done(&sizes->own.v[i]);
    st_vec_free(&sizes->own);
    pthread_mutex_destroy(&sizes->lock);
    free(sizes);
}

/* Where it is, or where it belongs. */
static size_t find(const st_sizes *sizes, const char *account, const char *name, bool *ret_there)
{
    size_t i = 0;
    int c = 1;

    for (; i < sizes->own.n; i++) {
        c = strcmp(sizes->own.v[i].name, name);
        if (c == 0)
            c = strcmp(sizes->own.v[i].account, account);
        if (c >= 0)
            break;
    }
    *ret_there = i < sizes->own.n && c == 0;
    return i;
}

/* Names for reading a size: the fleet's types, and any pool, which the submit will look up. */
static int name_type(void *ctx, const st_doc *doc, const st_doc_node *node, int32_t *ret,
                     st_err *err)
{
    const st_kinds *fleet = ctx;
    const char *names[ST_TYPES_MAX + 1] = {NULL}, *name;
    int r = st_doc_str(doc, node, &name, err);

    for (size_t t = 0; r == 0 && t < fleet->n; t++) {
        names[t] = fleet->type[t].name;
        if (strcmp(name, names[t]) == 0) {
            *ret = (int32_t)t;
            return 0;
        }
    }
    return r < 0 ? r : st_spec_missing(doc, node, "GPU type", names, err);
}

static int name_pool(void *ctx, const st_doc *doc, const st_doc_node *node, int32_t *ret,
                     st_err *err)
{
    const char *name;

    (void)ctx;
    *ret = 0;
    return st_doc_str(doc, node, &name, err);
}

static size_t name_ntypes(void *ctx)
{
    return ((const st_kinds *)ctx)->n;
}

static st_board name_board(void *ctx, int32_t type)
{
    return ((const st_kinds *)ctx)->type[type].board;
}

static int check_text(const st_sizes *sizes, const char *text, st_err *err)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    st_kinds fleet;
    const st_spec_names names = {&fleet, name_type, name_pool, name_ntypes, name_board};
    st_job_spec spec;
    int r;

    st_kinds_read(sizes->options, &fleet);
    r = st_doc_parse("size.json", text, strlen(text), &doc, err);
    if (r == 0)
        r = st_spec_submit(doc, st_doc_root(doc), &names, &spec, err);
    return r;
}

/* As a job it must be one that can be read. */
static int check_size(const st_sizes *sizes, const char *name, const json_t *doc, st_err *err)
{
    ST_CLEANUP(st_json_drop) json_t *job = json_deep_copy(doc);
    ST_CLEANUP(st_freep) char *text = NULL;
    static const char where[] = "size.json:1: ";
    const json_t *about = json_object_get(doc, "about");
    char q[ST_QUOTE_MAX];
    int r;

    if (!json_is_object(doc))
        return st_fail(err, ST_EINVAL, "size %s: a size is a map of keys like gpus and ram", name);
    for (void *at = json_object_iter(job); at; at = json_object_iter_next(job, at)) {
        const char *key = json_object_iter_key(at), *near = st_suggest(key, size_keys);
        size_t k = 0;

        while (size_keys[k] && strcmp(size_keys[k], key) != 0)
            k++;
        if (!size_keys[k])
            return st_fail(err, ST_EINVAL, "size %s: a size has no key %s%s%s%s", name,
                           st_quote(q, key), near ? " (did you mean \"" : "", near ? near : "",
                           near ? "\"?)" : "");
    }
    if (about && !json_is_string(about))
        return st_fail(err, ST_EINVAL, "size %s: about is a line of text", name);
    json_object_del(job, "about");
    text = st_rules_text(job);
    r = check_text(sizes, text, err);
    if (r < 0 && err) {
        bool line = strncmp(err->msg, where, sizeof where - 1) == 0;

        return st_fail(err, err->code, "size %s: %s", name,
                       err->msg + (line ? sizeof where - 1 : 0));
    }
    return r;
}

int st_sizes_set(st_sizes *sizes, const char *account, const char *name, const json_t *doc,
                 int64_t version, st_err *err)
{
    char q[ST_QUOTE_MAX];
    bool there;
    size_t i;
    int r = 0;

    if (!st_name_ok(name))
        return st_fail(err, ST_EINVAL,
                       "%s cannot be the name of a size: it must be 1 to %d bytes without spaces "
                       "or control characters",
                       st_quote(q, name), ST_NAME_MAX);
    r = check_size(sizes, name, doc, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&sizes->lock);
    i = find(sizes, account, name, &there);
    if (there) {
        json_decref(sizes->own.v[i].doc);
        sizes->own.v[i].doc = json_deep_copy(doc);
        sizes->own.v[i].version = version;
    } else if (sizes->own.n == SIZES_MAX) {
        r = st_fail(err, ST_ELIMIT, "size %s: there are %d sizes already", name, SIZES_MAX);
    } else {
        st_vec_insert(&sizes->own, i,
                      (own_size){.name = st_xstrdup(name),
                                 .account = st_xstrdup(account),
                                 .doc = json_deep_copy(doc),
                                 .version = version});
    }
    pthread_mutex_unlock(&sizes->lock);
    return r;
}

int st_sizes_remove(st_sizes *sizes, const char *account, const char *name, st_err *err)
{
    char q[ST_QUOTE_MAX];
    bool there;
    size_t i;

    pthread_mutex_lock(&sizes->lock);
    i = find(sizes, account, name, &there);
    if (there) {
        own_done(&sizes->own.v[i]);
        st_vec_remove(&sizes->own, i);
    }
    pthread_mutex_unlock(&sizes->lock);
    if (!there && builtin(name))
        return st_fail(err, ST_ESTATE, "size %s is built in: it can be replaced, not removed",
                       st_quote(q, name));
    if (!there)
        return st_fail(err, ST_ENOENT, "there is no size %s", st_quote(q, name));
    return 0;
}

/* ---- looking them up ------------------------------------------------------------------------ */

/* A copy of the nearest own size of this name, or NULL. */
static json_t *nearest(st_sizes *sizes, const char *const *above, const char *name)
{
    static const char *const none[] = {NULL};
    json_t *doc = NULL;
    bool there;

    if (!above)
        above = none;
    pthread_mutex_lock(&sizes->lock);
    for (size_t a = 0; !doc; a++) {
        size_t i = find(sizes, above[a] ? above[a] : "", name, &there);

        if (there)
            doc = json_deep_copy(sizes->own.v[i].doc);
        if (!above[a])
            break;
    }
    pthread_mutex_unlock(&sizes->lock);
    return doc;
}

static bool in_chain(const char *const *above, const char *account)
{
    for (; above && *above; above++)
        if (strcmp(*above, account) == 0)
            return true;
    return account[0] == '\0';
}

/* How near an account of the chain is; the cluster is the farthest. */
static size_t distance(const char *const *above, const char *account)
{
    size_t n = 0;

    while (above && above[n] && strcmp(above[n], account) != 0)
        n++;
    return n;
}

static void add_row(json_t *list, const char *name, const char *account, bool is_builtin,
                    int64_t version, json_t *doc)
{
    json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:I, s:o}", "name", name, "account",
                                          account, "builtin", is_builtin, "version",
                                          (json_int_t)version, "size", doc));
}

/* Adds the nearest of the own sizes [i, j), which have one name. */
static bool add_own(const st_sizes *sizes, const char *const *above, size_t i, size_t j,
                    json_t *list)
{
    const own_size *best = NULL;

    for (; i < j; i++) {
        const own_size *own = &sizes->own.v[i];

        if (in_chain(above, own->account) &&
            (!best || distance(above, own->account) < distance(above, best->account)))
            best = own;
    }
    if (best)
        add_row(list, best->name, best->account, false, best->version, json_deep_copy(best->doc));
    return best != NULL;
}

json_t *st_sizes_list(st_sizes *sizes, const char *const *above)
{
    json_t *list = json_array();
    size_t i = 0, b = 0;
    st_kinds fleet;

    st_kinds_read(sizes->options, &fleet);
    pthread_mutex_lock(&sizes->lock);
    while (i < sizes->own.n || b < ST_ARRAY_LEN(builtins)) {
        int c = i >= sizes->own.n             ? 1
                : b >= ST_ARRAY_LEN(builtins) ? -1
                                              : strcmp(sizes->own.v[i].name, builtins[b].name);
        bool added = false;
        size_t j = i;

        while (c <= 0 && j < sizes->own.n &&
               strcmp(sizes->own.v[j].name, sizes->own.v[i].name) == 0)
            j++;
        if (c <= 0)
            added = add_own(sizes, above, i, j, list);
        if (c >= 0 && !added)
            add_row(list, builtins[b].name, "", true, 0, builtin_doc(&builtins[b], &fleet, false));
        if (c >= 0)
            b++;
        i = j;
    }
    pthread_mutex_unlock(&sizes->lock);
    return list;
}

static int get(st_sizes *sizes, const char *const *above, const char *name, const st_kinds *fleet,
               bool trusted, json_t **ret, st_err *err)
{
    char q[ST_QUOTE_MAX];
    json_t *doc = nearest(sizes, above, name);

    if (!doc && builtin(name))
        doc = builtin_doc(builtin(name), fleet, trusted);
    if (!doc)
        return st_fail(err, ST_ENOENT, "there is no size %s", st_quote(q, name));
    *ret = doc;
    return 0;
}

/* Keys of the size that the job's own make void: whoever says how much of a GPU it wants does not
 * get the size's fence around it. */
static void drop_what_is_said(const json_t *job, json_t *size)
{
    static const char *const fences[] = {"level", "profile", "share", "vram"};
    bool fenced =
        st_value_has(job, "level") || st_value_has(job, "profile") || st_value_has(job, "share");

    if (fenced)
        json_object_del(size, "gpus");
    for (size_t i = 0; i < ST_ARRAY_LEN(fences); i++)
        if (fenced || st_value_has(job, "gpus"))
            json_object_del(size, fences[i]);
    json_object_del(size, "about");
}

int st_sizes_apply(st_sizes *sizes, const st_rules_who *who, json_t *job, st_err *err)
{
    const char *const alone[] = {who->account ? who->account : "", NULL};
    const json_t *name = json_object_get(job, "size");
    ST_CLEANUP(st_json_drop) json_t *size = NULL;
    st_kinds fleet;
    int r;

    if (!st_value_has(job, "size"))
        return 0;
    if (!json_is_string(name))
        return st_fail(err, ST_EINVAL, "size: the name of a size is wanted");
    st_kinds_read(sizes->options, &fleet);
    r = st_kinds_restrict(&fleet, job, err);
    if (r == 0)
        r = get(sizes, who->above ? who->above : alone, json_string_value(name), &fleet,
                who->trusted, &size, err);
    if (r < 0)
        return r;
    drop_what_is_said(job, size);
    for (void *at = json_object_iter(size); at; at = json_object_iter_next(size, at))
        st_value_default(job, json_object_iter_key(at), json_incref(json_object_iter_value(at)));
    return 0;
}
