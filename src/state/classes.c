/*
 * Priority classes (state/classes.h).
 */
#include "state/classes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/vec.h"

typedef struct class
{
    char *name;
    json_t *doc;
    int64_t version; /* 0: it is there from the start */
} class;

struct st_classes {
    pthread_mutex_t lock;
    st_directory *dir;
    ST_VEC(class) all; /* by name */
};

/* X(name, document) */
#define BUILTIN_TABLE(X)                                                                           \
    X("best-effort", "{\"lowest\":-1000000,\"highest\":-100,\"priority\":-100,\"preempt\":false,"  \
                     "\"accounts\":\"all\",\"roles\":\"all\",\"about\":\"when nobody else wants "  \
                     "it; preempts nobody\"}")                                                     \
    X("critical", "{\"lowest\":200,\"highest\":1000000,\"priority\":200,\"preempt\":true,"         \
                  "\"accounts\":\"all\",\"roles\":[\"owner\",\"admin\"],\"about\":\"before all "   \
                  "others of the account; admins give it\"}")                                      \
    X("production", "{\"lowest\":100,\"highest\":199,\"priority\":100,\"preempt\":true,"           \
                    "\"accounts\":\"all\",\"roles\":\"all\",\"about\":\"what others depend on\"}") \
    X("standard", "{\"lowest\":-99,\"highest\":99,\"priority\":0,\"preempt\":true,"                \
                  "\"accounts\":\"all\",\"roles\":\"all\",\"about\":\"as without a class\"}")

/* ---- reading a document ------------------------------------------------------------------ */

/* "all", or a list of names. */
static int check_who(const json_t *said, const char *key, st_err *err)
{
    const json_t *row;
    size_t i;

    if (!said || (json_is_string(said) && strcmp(json_string_value(said), "all") == 0))
        return 0;
    if (!json_is_array(said) || json_array_size(said) > ST_CLASS_ACCOUNTS_MAX)
        return st_fail(err, ST_EINVAL,
                       "%s says who may use the class: \"all\", or a list of at most %d names", key,
                       ST_CLASS_ACCOUNTS_MAX);
    json_array_foreach(said, i, row)
    {
        if (!json_is_string(row) || !st_name_ok(json_string_value(row)))
            return st_fail(err, ST_EINVAL, "%s: number %zu is not a name", key, i + 1);
    }
    return 0;
}

static int check_roles(const json_t *said, st_err *err)
{
    const json_t *row;
    size_t i;

    json_array_foreach(said, i, row)
    {
        char q[ST_QUOTE_MAX];
        bool known = false;

        for (int r = 0; st_role_words[r]; r++)
            known = known || strcmp(st_role_words[r], json_string_value(row)) == 0;
        if (!known)
            return st_fail(err, ST_EINVAL, "there is no role %s",
                           st_quote(q, json_string_value(row)));
    }
    return 0;
}

static int check_number(const json_t *doc, const char *key, int64_t lo, int64_t hi, st_err *err)
{
    const json_t *v = json_object_get(doc, key);

    if (!json_is_integer(v) || json_integer_value(v) < lo || json_integer_value(v) > hi)
        return st_fail(err, ST_ERANGE, "%s is a whole number from %lld to %lld", key, (long long)lo,
                       (long long)hi);
    return 0;
}

static int64_t number(const json_t *doc, const char *key)
{
    return json_integer_value(json_object_get(doc, key));
}

int st_classes_read(const char *name, const json_t *doc, st_err *err)
{
    static const char *const keys[] = {"lowest",   "highest", "priority", "preempt",
                                       "accounts", "roles",   "about",    NULL};
    char q[ST_QUOTE_MAX];
    const json_t *value;
    const char *key;
    int r;

    if (!st_name_ok(name))
        return st_fail(err, ST_EINVAL, "%s cannot be the name of a class", st_quote(q, name));
    if (!json_is_object(doc))
        return st_fail(err, ST_EINVAL, "a class is described by an object");
    json_object_foreach((json_t *)(uintptr_t)doc, key, value)
    {
        bool known = false;

        for (int i = 0; keys[i]; i++)
            known = known || strcmp(keys[i], key) == 0;
        if (!known)
            return st_fail(err, ST_EINVAL, "a class has no key %s", st_quote(q, key));
    }
    r = check_number(doc, "lowest", -ST_PRIO_MAX, ST_PRIO_MAX, err);
    if (r == 0)
        r = check_number(doc, "highest", number(doc, "lowest"), ST_PRIO_MAX, err);
    if (r == 0)
        r = check_number(doc, "priority", number(doc, "lowest"), number(doc, "highest"), err);
    if (r == 0 && json_object_get(doc, "preempt") &&
        !json_is_boolean(json_object_get(doc, "preempt")))
        r = st_fail(err, ST_EINVAL, "preempt is true or false");
    if (r == 0 && json_object_get(doc, "about") && !json_is_string(json_object_get(doc, "about")))
        r = st_fail(err, ST_EINVAL, "about is a text");
    if (r == 0)
        r = check_who(json_object_get(doc, "accounts"), "accounts", err);
    if (r == 0)
        r = check_who(json_object_get(doc, "roles"), "roles", err);
    return r < 0 ? r : check_roles(json_object_get(doc, "roles"), err);
}

/* ---- asking ------------------------------------------------------------------------------ */

static int by_name(const void *key, const void *one)
{
    return strcmp(key, ((const class *)one)->name);
}

static class *find(const st_classes *cs, const char *name)
{
    return cs->all.n ? bsearch(name, cs->all.v, cs->all.n, sizeof cs->all.v[0], by_name) : NULL;
}

/* For the accounts named, and all below them. */
static bool is_for(const st_classes *cs, const class *c, const char *account)
{
    const json_t *said = json_object_get(c->doc, "accounts"), *row;
    size_t i;

    if (!json_is_array(said))
        return true;
    json_array_foreach(said, i, row)
    {
        if (st_directory_within(cs->dir, account, json_string_value(row)))
            return true;
    }
    return false;
}

static bool has_role(const class *c, int role, st_strbuf *ret_roles)
{
    const json_t *said = json_object_get(c->doc, "roles"), *row;
    size_t i;

    if (!json_is_array(said))
        return true;
    json_array_foreach(said, i, row)
    {
        if (strcmp(json_string_value(row), st_role_words[role]) == 0)
            return true;
        st_strbuf_addf(ret_roles, "%s%s", i ? ", " : "", json_string_value(row));
    }
    return false;
}

static int in_range(const class *c, int64_t priority, st_err *err)
{
    int64_t lo = number(c->doc, "lowest"), hi = number(c->doc, "highest");

    if (priority >= lo && priority <= hi)
        return 0;
    return st_fail(err, ST_ERANGE, "class %s has the priorities %lld to %lld, not %lld", c->name,
                   (long long)lo, (long long)hi, (long long)priority);
}

int st_classes_admit(st_classes *cs, const char *name, const char *account, int role, bool said,
                     int *priority, bool *ret_meek, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf roles = {0};
    char q[ST_QUOTE_MAX];
    const class *c;
    int r = 0;

    pthread_mutex_lock(&cs->lock);
    c = find(cs, name);
    if (!c || !is_for(cs, c, account))
        r = st_fail(err, ST_ENOENT,
                    "there is no priority class %s; stint class list shows those you may use",
                    st_quote(q, name));
    else if (!has_role(c, role, &roles))
        r = st_fail(err, ST_EPERM, "class %s is for the roles %s; yours is %s", name,
                    roles.n ? st_strbuf_str(&roles) : "(none)", st_role_words[role]);
    else if (said)
        r = in_range(c, *priority, err);
    else
        *priority = (int)number(c->doc, "priority");
    if (r == 0)
        *ret_meek = json_is_false(json_object_get(c->doc, "preempt"));
    pthread_mutex_unlock(&cs->lock);
    return r;
}

int st_classes_priority(st_classes *cs, const char *name, int priority, st_err *err)
{
    const class *c;
    int r;

    pthread_mutex_lock(&cs->lock);
    c = find(cs, name);
    r = c ? in_range(c, priority, err) : 0;
    pthread_mutex_unlock(&cs->lock);
    return r;
}

json_t *st_classes_list(st_classes *cs, const char *account, bool all)
{
    json_t *list = json_array();

    pthread_mutex_lock(&cs->lock);
    for (size_t i = 0; i < cs->all.n; i++) {
        const class *c = &cs->all.v[i];
        json_t *row;

        if (!all && !is_for(cs, c, account))
            continue;
        row = json_deep_copy(c->doc);
        json_object_set_new(row, "name", json_string(c->name));
        json_object_set_new(row, "builtin", json_boolean(c->version == 0));
        json_object_set_new(row, "version", json_integer(c->version));
        if (!json_object_get(row, "preempt"))
            json_object_set_new(row, "preempt", json_true());
        if (!json_object_get(row, "roles"))
            json_object_set_new(row, "roles", json_string("all"));
        if (!all) /* who else may is nobody's to know */
            json_object_del(row, "accounts");
        else if (!json_object_get(row, "accounts"))
            json_object_set_new(row, "accounts", json_string("all"));
        json_array_append_new(list, row);
    }
    pthread_mutex_unlock(&cs->lock);
    return list;
}

/* ---- changing ---------------------------------------------------------------------------- */

static int in_order(const void *a, const void *b)
{
    return strcmp(((const class *)a)->name, ((const class *)b)->name);
}

static void put(st_classes *cs, const char *name, json_t *take, int64_t version)
{
    st_vec_push(&cs->all, ((class){.name = st_xstrdup(name), .doc = take, .version = version}));
    qsort(cs->all.v, cs->all.n, sizeof cs->all.v[0], in_order);
}

static void put_builtin(st_classes *cs, const char *name)
{
#define X(word, text)            \
    if (strcmp(name, word) == 0) \
        put(cs, word, json_loads(text, 0, NULL), 0);
    BUILTIN_TABLE(X)
#undef X
}

st_classes *st_classes_new(st_directory *dir)
{
    st_classes *cs = st_xcalloc(1, sizeof *cs);

    ST_ASSERT(pthread_mutex_init(&cs->lock, NULL) == 0);
    cs->dir = dir;
#define X(word, text) put_builtin(cs, word);
    BUILTIN_TABLE(X)
#undef X
    return cs;
}

static void class_done(class *c)
{
    free(c->name);
    json_decref(c->doc);
}

void st_classes_free(st_classes *cs)
{
    if (!cs)
        return;
    for (size_t i = 0; i < cs->all.n; i++)
        class_done(&cs->all.v[i]);
    st_vec_free(&cs->all);
    pthread_mutex_destroy(&cs->lock);
    free(cs);
}

int st_classes_set(st_classes *cs, const char *name, const char *doc, int64_t version, st_err *err)
{
    json_t *root = doc ? json_loads(doc, 0, NULL) : NULL;
    int r = doc ? st_classes_read(name, root, err) : 0;
    class *old;

    if (r < 0) {
        json_decref(root);
        return r;
    }
    pthread_mutex_lock(&cs->lock);
    old = find(cs, name);
    if (old) {
        class_done(old);
        st_vec_remove(&cs->all, (size_t)(old - cs->all.v));
    }
    if (doc)
        put(cs, name, root, version);
    else
        put_builtin(cs, name); /* as it was */
    pthread_mutex_unlock(&cs->lock);
    return 0;
}

static int load_one(void *ctx, const st_document_row *row, st_err *err)
{
    return st_classes_set(ctx, row->name, row->doc, row->at_ms, err);
}

int st_classes_load(st_classes *cs, st_store *store, st_err *err)
{
    int r = st_store_documents(store, "class", load_one, cs, err);

    return r < 0 ? r : 0;
}
