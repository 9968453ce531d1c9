/*
 * What of a site's settings is in files (cli/site_files.h).
 *
 * What the service says has units in its keys (ram_mib, run_seconds); what it takes has them in values (64Gi, 24h). Files have what it
 * takes. What is null there was never set, and is left out.
 */
#include "cli/site_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/mem.h"
#include "cli/admin_doc.h"

static const char *const of_accounts[] = {"id", "version", NULL};
static const char *const of_pools[] = {"nodes", "gpus", "gpus_ready", "yields", NULL};
static const char *const of_classes[] = {"builtin", "version", "price", NULL};
static const char *const of_sizes[] = {"builtin", "version", "account", NULL};
static const char *const of_rules[] = {"version", "calls", "refused", "failed", "last_error", NULL};
static const char *const of_prices[] = {"in_force", "from", NULL};
static const char *const nothing[] = {NULL};

const st_site_kind st_site_kinds[] = {
    {"pools", "pool", "name", ST_SITE_PATCH, of_pools, false, NULL},
    {"accounts", "account", "name", ST_SITE_PATCH, of_accounts, false, NULL},
    {"quotas", "quota of account", "name", ST_SITE_PATCH, nothing, false, "service-quota"},
    {"classes", "class", "name", ST_SITE_PUT, of_classes, false, NULL},
    {"images", "image", "name", ST_SITE_PUT, nothing, false, NULL},
    {"sizes", "size", "name", ST_SITE_PUT, of_sizes, false, NULL},
    {"rules", "rule", "name", ST_SITE_PUT, of_rules, true, NULL},
    {"plans", "plan of account", "name", ST_SITE_PUT, nothing, false, "plan"},
    {"prices", "price book", "prices", ST_SITE_POST, of_prices, false, NULL},
    {0},
};

static bool among(const char *const *words, const char *word)
{
    for (; *words; words++)
        if (strcmp(*words, word) == 0)
            return true;
    return false;
}

static bool ends(const char *text, const char *with)
{
    size_t n = strlen(text), w = strlen(with);

    return n > w && strcmp(text + n - w, with) == 0;
}

/* 65536 under ram_mib is "65536Mi" under ram. */
static json_t *with_unit(const char *key, const json_t *value, char ret_key[128])
{
    bool mib = ends(key, "_mib"), seconds = ends(key, "_seconds");
    double n = json_number_value(value);
    char text[64];

    snprintf(ret_key, 128, "%.*s", (int)(strlen(key) - (mib ? strlen("_mib") : strlen("_seconds"))),
             key);
    if (mib)
        snprintf(text, sizeof text, "%.0fMi", n);
    else if (seconds && n * 1000 >= (double)(int64_t)n * 1000 + 0.5)
        snprintf(text, sizeof text, "%.0fms", n * 1000);
    else
        snprintf(text, sizeof text, "%.0fs", n);
    return json_string(text);
}

static json_t *settings(const json_t *value, const char *const *derived)
{
    json_t *out, *inner;
    const char *key;
    char plain[128];

    if (!json_is_object(value))
        return json_deep_copy(value);
    out = json_object();
    json_object_foreach((json_t *)(uintptr_t)value, key, inner)
    {
        if (json_is_null(inner) || among(derived, key))
            continue;
        if (json_is_number(inner) && strlen(key) < sizeof plain &&
            (ends(key, "_mib") || ends(key, "_seconds"))) {
            json_t *text = with_unit(key, inner, plain);

            json_object_set_new(out, plain, text);
        } else {
            json_object_set_new(out, key, settings(inner, nothing));
        }
    }
    return out;
}

/* What was not set by anybody here: built in, of an account of its own, or no longer in force. */
static bool is_ours(const st_site_kind *kind, const json_t *row)
{
    const char *account = json_string_value(json_object_get(row, "account"));

    if (strcmp(kind->name, "classes") == 0)
        return json_integer_value(json_object_get(row, "version")) > 0;
    if (strcmp(kind->name, "sizes") == 0)
        return json_integer_value(json_object_get(row, "version")) > 0 && account && !*account;
    if (strcmp(kind->name, "prices") == 0)
        return json_is_true(json_object_get(row, "in_force"));
    return true;
}

const char *st_site_name(const st_site_kind *kind, const json_t *row)
{
    const char *name = json_string_value(json_object_get(row, kind->naming));

    return name ? name : "";
}

json_t *st_site_find(const st_site_kind *kind, const json_t *rows, const char *name)
{
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row) if (strcmp(st_site_name(kind, row), name) == 0) return row;
    return NULL;
}

/* A size has its fields one level deeper. */
static json_t *flat(json_t *row)
{
    json_t *size = json_object_get(row, "size");

    if (json_is_object(size)) {
        json_object_update(row, size);
        json_object_del(row, "size");
    }
    return row;
}

static void insert(const st_site_kind *kind, json_t *rows, json_t *row)
{
    size_t at = 0;

    while (at < json_array_size(rows) &&
           strcmp(st_site_name(kind, json_array_get(rows, at)), st_site_name(kind, row)) < 0)
        at++;
    json_array_insert_new(rows, at, row);
}

/* ---- what accounts have, one by one --------------------------------------------------------------- */

void st_site_path(const st_site_kind *kind, const char *name, st_strbuf *out)
{
    if (kind->of && strcmp(name, ST_SITE_ALL) == 0) {
        st_strbuf_addf(out, "/v1/%s", kind->of);
        return;
    }
    st_admin_path(out, kind->of ? "accounts" : kind->name, name);
    if (kind->of)
        st_strbuf_addf(out, "/%s", kind->of);
}

static void keep(json_t *out, const char *key, const json_t *from, const char *of)
{
    json_t *value = json_object_get(from, of);

    if (value && !json_is_null(value))
        json_object_set(out, key, value);
}

static json_t *percent(const json_t *value)
{
    return json_sprintf("%g%%", json_number_value(value));
}

/* NULL: the account has the plan of one above it. */
static json_t *plan_of(const char *name, const json_t *doc)
{
    json_t *out, *warn, *each;
    size_t i;

    if (!json_is_false(json_object_get(doc, "inherited")))
        return NULL;
    out = json_pack("{s:s, s:o}", "name", name, "discount",
                    percent(json_object_get(doc, "discount_percent")));
    keep(out, "chargeback", doc, "chargeback");
    keep(out, "burst", doc, "burst_gpus");
    keep(out, "cap", doc, "cap");
    keep(out, "budget", doc, "budget");
    keep(out, "at_cap", doc, "at_cap");
    keep(out, "grace", doc, "grace");
    keep(out, "hold", doc, "hold");
    warn = json_array();
    json_array_foreach(json_object_get(doc, "warn_percent"), i, each)
        json_array_append_new(warn, percent(each));
    json_object_set_new(out, "warn", warn);
    return out;
}

/* NULL: it has what everybody has. */
static json_t *quota_of(const char *name, const json_t *doc)
{
    json_t *out = json_pack("{s:s}", "name", name), *row;
    size_t i;

    json_array_foreach(json_object_get(doc, "quota"), i, row)
    {
        const char *key = json_string_value(json_object_get(row, "name"));

        if (key)
            keep(out, key, row, "set");
    }
    if (json_object_size(out) > 1)
        return out;
    json_decref(out);
    return NULL;
}

static int fetch_one(st_client *client, const st_site_kind *kind, const char *name, json_t *rows,
                     st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    json_t *doc = NULL, *row;
    int r;

    st_site_path(kind, name, &path);
    r = st_client_get(client, st_strbuf_str(&path), &doc, err);
    if (r < 0)
        return r;
    row = strcmp(kind->of, "plan") == 0 ? plan_of(name, doc) : quota_of(name, doc);
    json_decref(doc);
    if (row)
        insert(kind, rows, row);
    return 0;
}

static int fetch_each(st_client *client, const st_site_kind *kind, json_t **ret, st_err *err)
{
    json_t *doc = NULL, *rows = json_array(), *account;
    int r = st_client_get(client, "/v1/accounts", &doc, err);
    size_t i;

    json_array_foreach(json_object_get(doc, "accounts"), i, account)
    {
        const char *name = json_string_value(json_object_get(account, "name"));

        if (r == 0 && name && strcmp(name, ST_SITE_ALL) != 0)
            r = fetch_one(client, kind, name, rows, err);
    }
    if (r == 0 && strcmp(kind->of, "plan") == 0) {
        r = fetch_one(client, kind, ST_SITE_ALL, rows, err);
        r = r == -ST_EPERM ? 0 : r; /* an account's admin has no part in it */
    }
    json_decref(doc);
    if (r == 0)
        *ret = rows;
    else
        json_decref(rows);
    return r;
}

/* NULL: who asks may not see where it lies. */
static json_t *image_of(const json_t *row)
{
    const char *kind = json_string_value(json_object_get(row, "kind"));
    json_t *out;

    if (!kind || !json_object_get(row, "path"))
        return NULL;
    out = json_object();
    keep(out, "name", row, "name");
    keep(out, strcmp(kind, "folder") == 0 ? "folder" : "layout", row, "path");
    keep(out, "digest", row, "digest");
    keep(out, "trust", row, "trust");
    keep(out, "about", row, "about");
    keep(out, "accounts", row, "accounts");
    return out;
}

int st_site_fetch(st_client *client, const st_site_kind *kind, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    json_t *doc = NULL, *rows, *row;
    size_t i;
    int r;

    if (kind->of)
        return fetch_each(client, kind, ret, err);
    st_strbuf_addf(&path, "/v1/%s", kind->name);
    r = st_client_get(client, st_strbuf_str(&path), &doc, err);
    if (r < 0)
        return r;
    rows = json_array();
    json_array_foreach(json_object_get(doc, kind->name), i, row)
    {
        json_t *ours = !is_ours(kind, row)                 ? NULL
                       : strcmp(kind->name, "images") == 0 ? image_of(row)
                                                           : flat(settings(row, kind->derived));
        if (ours)
            insert(kind, rows, ours);
    }
    json_decref(doc);
    *ret = rows;
    return 0;
}
