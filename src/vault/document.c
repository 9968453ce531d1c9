/*
 * A job's document with its private parts sealed: the values of `env`, the `command` and the `script`. Where they
 * were stands null (for `env`: the names with null), and the last member is the sealed text:
 *
 *   {"name":"train","env":{"TOKEN":null},"command":null,"sealed":"v1.…"}
 *
 * What is sealed is {"by":[ACCOUNT,USER],"env":{…},"command":[…]}. A tenant's document cannot have a member of that
 * name: it is none of the fields of a job.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "vault/state.h"

#define TAIL      ",\"sealed\":\""
#define TAIL_LEN  (sizeof TAIL - 1)
#define DUMP      (JSON_COMPACT | JSON_REAL_PRECISION(15))
#define ENV       "env"
#define PARTS_MAX 2

static const char *const parts[PARTS_MAX] = {"command", "script"};

/* Appends and wipes what jansson made. */
static void add_dump(st_strbuf *out, const json_t *j, size_t flags)
{
    char *text = json_dumps(j, flags);

    ST_ASSERT(text);
    st_strbuf_add(out, text);
    sodium_memzero(text, strlen(text));
    free(text);
}

static st_vault_place place_of(const st_vault_who *job)
{
    return (st_vault_place){.kind = "job", .owner = job->account, .name = job->user, .version = 1};
}

/* Where the sealed member begins and its text, which the caller frees; NULL: there is none. */
static char *sealed_of(const char *doc, size_t *ret_at)
{
    size_t n = strlen(doc);
    const char *tail = NULL;

    for (const char *p = strstr(doc, TAIL); p; p = strstr(p + 1, TAIL))
        tail = p;
    if (!tail || n < 2 || strcmp(doc + n - 2, "\"}") != 0 ||
        strcspn(tail + TAIL_LEN, "\"") != n - 2 - (size_t)(tail + TAIL_LEN - doc))
        return NULL;
    *ret_at = (size_t)(tail - doc);
    return st_xstrndup(tail + TAIL_LEN, n - 2 - *ret_at - TAIL_LEN);
}

/* Takes the private parts out of `doc` into a new object; NULL: it has none. */
static json_t *take_private(json_t *doc)
{
    json_t *private = json_object(), *env = json_object_get(doc, ENV), *value;
    const char *key;

    if (json_is_object(env) && json_object_size(env) > 0) {
        json_t *names = json_object();

        json_object_foreach(env, key, value)
        {
            json_object_set_new(names, key, json_null());
        }
        json_object_set(private, ENV, env);
        json_object_set_new(doc, ENV, names);
    }
    for (size_t i = 0; i < PARTS_MAX; i++) {
        value = json_object_get(doc, parts[i]);
        if (!value || json_is_null(value))
            continue;
        json_object_set(private, parts[i], value);
        json_object_set_new(doc, parts[i], json_null());
    }
    if (json_object_size(private) > 0)
        return private;
    json_decref(private);
    return NULL;
}

static int parse(const char *doc, json_t **ret, st_err *err)
{
    json_t *j = json_loads(doc, 0, NULL);

    if (!json_is_object(j)) {
        json_decref(j);
        return st_fail(err, ST_ECORRUPT, "a job's document is no JSON object");
    }
    *ret = j;
    return 0;
}

int st_vault_doc_seal(st_vault *v, const st_vault_who *job, const st_vault_who *by, const char *doc,
                      st_strbuf *out, st_err *err)
{
    ST_CLEANUP(json_decrefp) json_t *public = NULL;
    ST_CLEANUP(json_decrefp) json_t *private = NULL;
    ST_CLEANUP(st_wipe) st_strbuf plain = {0};
    const st_vault_place place = place_of(job);
    int r = parse(doc, &public, err);

    if (r < 0)
        return r;
    private = take_private(public);
    if (!private) {
        st_strbuf_add(out, doc);
        return 0;
    }
    json_object_set_new(private, "by", json_pack("[s,s]", by->account, by->user));
    add_dump(&plain, private, DUMP);
    add_dump(out, public, DUMP);
    out->n--; /* its closing brace: the public part has at least one member by now */
    st_strbuf_add(out, TAIL);
    st_vault_seal(v, &place, plain.s, plain.n, out);
    st_strbuf_add(out, "\"}");
    return 0;
}

/* The private parts of a sealed document, which ends at *ret_at without them. */
static int open_private(st_vault *v, const st_vault_who *job, const char *doc, size_t *ret_at,
                        json_t **ret, st_err *err)
{
    ST_CLEANUP(st_freep) char *sealed = sealed_of(doc, ret_at);
    ST_CLEANUP(st_wipe) st_strbuf plain = {0};
    const st_vault_place place = place_of(job);
    json_t *private;
    int r = sealed ? st_vault_unseal(v, &place, sealed, &plain, err) : 0;

    if (r < 0 || !sealed)
        return r;
    private = json_loadb(plain.s ? plain.s : "", plain.n, 0, NULL);
    if (!json_is_object(private)) {
        json_decref(private);
        return st_fail(err, ST_ECORRUPT, "what is sealed here cannot be read");
    }
    *ret = private;
    return 0;
}

/* One that was never sealed is shown with as little. */
static int hide(const char *doc, st_vault_view view, st_strbuf *out, st_err *err)
{
    ST_CLEANUP(json_decrefp) json_t *j = NULL;
    ST_CLEANUP(json_decrefp) json_t *private = NULL;
    int r = parse(doc, &j, err);

    if (r < 0)
        return r;
    private = take_private(j);
    for (size_t i = 0; view == ST_VIEW_WORK && i < PARTS_MAX; i++)
        if (json_object_get(private, parts[i]))
            json_object_set(j, parts[i], json_object_get(private, parts[i]));
    if (private && view != ST_VIEW_ALL)
        add_dump(out, j, DUMP);
    else
        st_strbuf_add(out, doc);
    return 0;
}

int st_vault_doc_open(st_vault *v, const st_vault_who *job, const char *doc, st_vault_view view,
                      st_strbuf *out, st_err *err)
{
    ST_CLEANUP(json_decrefp) json_t *private = NULL;
    ST_CLEANUP(json_decrefp) json_t *j = NULL;
    ST_CLEANUP(st_freep) char *sealed = NULL;
    size_t at = 0;
    int r = 0;

    sealed = sealed_of(doc, &at);
    if (!sealed)
        return hide(doc, view, out, err);
    st_strbuf_addn(out, doc, at);
    st_strbuf_addc(out, '}');
    if (view == ST_VIEW_NAMES)
        return 0;
    r = open_private(v, job, doc, &at, &private, err);
    if (r == 0)
        r = parse(out->s + out->n - at - 1, &j, err);
    out->n -= at + 1;
    out->s[out->n] = '\0';
    if (r < 0)
        return r;
    for (size_t i = 0; i < PARTS_MAX; i++)
        if (json_object_get(private, parts[i]))
            json_object_set(j, parts[i], json_object_get(private, parts[i]));
    if (view == ST_VIEW_ALL && json_object_get(private, ENV))
        json_object_set(j, ENV, json_object_get(private, ENV));
    add_dump(out, j, DUMP);
    return 0;
}

bool st_vault_doc_by(st_vault *v, const st_vault_who *job, const char *doc, const st_vault_who *who)
{
    ST_CLEANUP(json_decrefp) json_t *private = NULL;
    const char *account = NULL, *user = NULL;
    size_t at;
    st_err err;

    if (open_private(v, job, doc, &at, &private, &err) < 0 || !private ||
        json_unpack(private, "{s:[s,s]}", "by", &account, &user) != 0)
        return false;
    return strcmp(account, who->account) == 0 && strcmp(user, who->user) == 0;
}

/* One that was kept in plain text is its user's. */
static int seal_plain(st_vault *v, const st_vault_who *job, const char *doc, st_strbuf *out,
                      bool *ret_changed, st_err *err)
{
    size_t before = out->n;
    int r = st_vault_doc_seal(v, job, job, doc, out, err);

    if (r == 0)
        *ret_changed = strcmp(out->s + before, doc) != 0;
    return r;
}

int st_vault_doc_renew(st_vault *v, const st_vault_who *job, const char *doc, st_strbuf *out,
                       bool *ret_changed, st_err *err)
{
    ST_CLEANUP(st_wipe) st_strbuf plain = {0};
    const st_vault_place place = place_of(job);
    size_t at = 0;
    ST_CLEANUP(st_freep) char *sealed = sealed_of(doc, &at);
    int r;

    if (!sealed)
        return seal_plain(v, job, doc, out, ret_changed, err);
    *ret_changed = !st_vault_fresh(v, sealed);
    if (!*ret_changed)
        return 0;
    r = st_vault_unseal(v, &place, sealed, &plain, err);
    if (r < 0)
        return r;
    st_strbuf_addn(out, doc, at);
    st_strbuf_add(out, TAIL);
    st_vault_seal(v, &place, st_strbuf_str(&plain), plain.n, out);
    st_strbuf_add(out, "\"}");
    return 0;
}
