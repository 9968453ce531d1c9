/*
 * A job's document with its private parts sealed: the values of `env`, the `command` and the `script`. Where they
 * were stands null (for `env`: the names with null), and the first member is the sealed text:
 *
 *   {"sealed":"v2.…","name":"train","env":{"TOKEN":null},"command":null}
 *
 * What is sealed is {"by":[SERIAL,USER],"env":{…},"command":[…]}. A tenant's document cannot begin like that: it has
 * no member of that name. The pieces of an array share the beginning of their documents, up to the open `env`
 * (rules/rules.h), and with it what is sealed; variables of a piece's own stand in its tail as they are.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "vault/state.h"

#define HEAD      "{\"sealed\":\""
#define HEAD_LEN  (sizeof HEAD - 1)
#define OPEN_END  "}}" /* what a head lacks to be a document */
#define OPEN_LEN  (sizeof OPEN_END - 1)
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

/* The sealed text, which the caller frees, and where the rest goes on behind it; NULL: there is none. */
static char *sealed_of(const char *doc, size_t *ret_rest)
{
    size_t n;

    if (strncmp(doc, HEAD, HEAD_LEN) != 0)
        return NULL;
    n = strcspn(doc + HEAD_LEN, "\"");
    if (strncmp(doc + HEAD_LEN + n, "\",", 2) != 0)
        return NULL;
    *ret_rest = HEAD_LEN + n + 2;
    return st_xstrndup(doc + HEAD_LEN, n);
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

static int seal(st_vault *v, const st_vault_who *job, const st_vault_who *by, const char *doc,
                bool *ret_sealed, st_strbuf *out, st_err *err)
{
    ST_CLEANUP(json_decrefp) json_t *public = NULL;
    ST_CLEANUP(json_decrefp) json_t *private = NULL;
    ST_CLEANUP(st_wipe) st_strbuf plain = {0};
    const st_vault_place place = place_of(job);
    int r = parse(doc, &public, err);

    if (r < 0)
        return r;
    private = take_private(public);
    *ret_sealed = private;
    if (!private)
        return 0;
    json_object_set_new(private, "by", json_pack("[I,s]", (json_int_t)by->account, by->user));
    add_dump(&plain, private, DUMP);
    st_strbuf_add(out, HEAD);
    st_vault_seal(v, &place, plain.s, plain.n, out);
    st_strbuf_addc(out, '"');
    size_t brace = out->n;
    add_dump(out, public, DUMP);
    out->s[brace] = ','; /* instead of its opening brace: it has at least one member */
    return 0;
}

int st_vault_doc_seal(st_vault *v, const st_vault_who *job, const st_vault_who *by, const char *doc,
                      st_strbuf *out, st_err *err)
{
    bool sealed;
    int r = seal(v, job, by, doc, &sealed, out, err);

    if (r == 0 && !sealed)
        st_strbuf_add(out, doc);
    return r;
}

int st_vault_head_seal(st_vault *v, const st_vault_who *job, const st_vault_who *by,
                       const char *head, st_strbuf *out, st_err *err)
{
    ST_CLEANUP(st_wipe) st_strbuf doc = {0};
    bool sealed;
    int r;

    st_strbuf_add(&doc, head);
    st_strbuf_add(&doc, OPEN_END);
    r = seal(v, job, by, doc.s, &sealed, out, err);
    if (r == 0 && !sealed)
        st_strbuf_add(out, head);
    if (r < 0 || !sealed)
        return r;
    ST_ASSERT(out->n > OPEN_LEN && strcmp(out->s + out->n - OPEN_LEN, OPEN_END) == 0);
    out->n -= OPEN_LEN;
    out->s[out->n] = '\0';
    return 0;
}

/* The private parts of a sealed document. */
static int open_private(st_vault *v, const st_vault_who *job, const char *sealed, json_t **ret,
                        st_err *err)
{
    ST_CLEANUP(st_wipe) st_strbuf plain = {0};
    const st_vault_place place = place_of(job);
    json_t *private;
    int r = st_vault_unseal(v, &place, sealed, &plain, err);

    if (r < 0)
        return r;
    private = json_loadb(st_strbuf_str(&plain), plain.n, 0, NULL);
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

/* Puts private parts back where they were taken from. */
static void put_back(json_t *doc, json_t *private, st_vault_view view)
{
    json_t *env = json_object_get(private, ENV);

    for (size_t i = 0; i < PARTS_MAX; i++)
        if (json_object_get(private, parts[i]))
            json_object_set(doc, parts[i], json_object_get(private, parts[i]));
    if (view == ST_VIEW_ALL && env)
        json_object_update(json_object_get(doc, ENV), env);
}

int st_vault_doc_open(st_vault *v, const st_vault_who *job, const char *doc, st_vault_view view,
                      st_strbuf *out, st_err *err)
{
    ST_CLEANUP(json_decrefp) json_t *private = NULL;
    ST_CLEANUP(json_decrefp) json_t *j = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf public = {0};
    size_t rest = 0;
    ST_CLEANUP(st_freep) char *sealed = sealed_of(doc, &rest);
    int r;

    if (!sealed)
        return hide(doc, view, out, err);
    st_strbuf_addc(&public, '{');
    st_strbuf_add(&public, doc + rest);
    if (view == ST_VIEW_NAMES) {
        st_strbuf_add(out, public.s);
        return 0;
    }
    r = open_private(v, job, sealed, &private, err);
    if (r == 0)
        r = parse(public.s, &j, err);
    if (r < 0)
        return r;
    put_back(j, private, view);
    add_dump(out, j, DUMP);
    return 0;
}

bool st_vault_doc_by(st_vault *v, const st_vault_who *job, const char *doc, const st_vault_who *who)
{
    ST_CLEANUP(json_decrefp) json_t *private = NULL;
    json_int_t account = -1;
    const char *user = NULL;
    size_t rest;
    ST_CLEANUP(st_freep) char *sealed = sealed_of(doc, &rest);
    st_err err;

    if (!sealed || open_private(v, job, sealed, &private, &err) < 0 ||
        json_unpack(private, "{s:[I,s]}", "by", &account, &user) != 0)
        return false;
    return account >= 0 && account == who->account && strcmp(user, who->user) == 0;
}

/* One that was kept in plain text is its user's. */
static int seal_plain(st_vault *v, const st_vault_who *job, const char *text, bool head,
                      st_strbuf *out, bool *ret_changed, st_err *err)
{
    size_t before = out->n;
    int r = head ? st_vault_head_seal(v, job, job, text, out, err)
                 : st_vault_doc_seal(v, job, job, text, out, err);

    if (r == 0)
        *ret_changed = strcmp(out->s + before, text) != 0;
    return r;
}

/* Opens one of the earlier form: whoever submitted it is known by a name there. */
static int open_named(st_vault *v, const st_vault_who *job, const st_vault_was *was,
                      const char *sealed, st_strbuf *out, st_err *err)
{
    ST_CLEANUP(st_wipe) st_strbuf plain = {0};
    ST_CLEANUP(json_decrefp) json_t *private = NULL;
    const st_vault_place place = place_of(job);
    json_t *by;
    const char *name;
    int r = st_vault_unseal_named(v, was->account, &place, sealed, &plain, err);

    if (r < 0)
        return r;
    private = json_loadb(st_strbuf_str(&plain), plain.n, 0, NULL);
    by = json_object_get(private, "by");
    name = json_string_value(json_array_get(by, 0));
    if (!name)
        return st_fail(err, ST_ECORRUPT, "what is sealed here cannot be read");
    json_array_set_new(by, 0, json_integer(was->serial(was->ctx, name)));
    add_dump(out, private, DUMP);
    return 0;
}

int st_vault_doc_renew(st_vault *v, const st_vault_who *job, const st_vault_was *was,
                       const char *text, bool head, st_strbuf *out, bool *ret_changed, st_err *err)
{
    ST_CLEANUP(st_wipe) st_strbuf plain = {0};
    const st_vault_place place = place_of(job);
    size_t rest = 0;
    ST_CLEANUP(st_freep) char *sealed = sealed_of(text, &rest);
    int r;

    *ret_changed = false;
    if (text[0] != '{')
        return 0; /* the tail of a piece: what is private is in its head */
    if (!sealed)
        return seal_plain(v, job, text, head, out, ret_changed, err);
    if (st_vault_fresh(v, sealed))
        return 0;
    r = was && st_vault_named(sealed) ? open_named(v, job, was, sealed, &plain, err)
                                      : st_vault_unseal(v, &place, sealed, &plain, err);
    if (r < 0)
        return r;
    st_strbuf_add(out, HEAD);
    st_vault_seal(v, &place, st_strbuf_str(&plain), plain.n, out);
    st_strbuf_add(out, "\",");
    st_strbuf_add(out, text + rest);
    *ret_changed = true;
    return 0;
}
