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

static const char *const of_accounts[] = {"id", "version", NULL};
static const char *const of_pools[] = {"nodes", "gpus", "gpus_ready", "yields", NULL};
static const char *const of_classes[] = {"builtin", "version", "price", NULL};
static const char *const of_sizes[] = {"builtin", "version", "account", NULL};
static const char *const of_rules[] = {"version", "calls", "refused", "failed", "last_error", NULL};
static const char *const of_prices[] = {"in_force", "from", NULL};

const st_site_kind st_site_kinds[] = {
    {"pools", "pool", "name", ST_SITE_PATCH, of_pools, false},
    {"accounts", "account", "name", ST_SITE_PATCH, of_accounts, false},
    {"classes", "class", "name", ST_SITE_PUT, of_classes, false},
    {"sizes", "size", "name", ST_SITE_PUT, of_sizes, false},
    {"rules", "rule", "name", ST_SITE_PUT, of_rules, true},
    {"prices", "price book", "prices", ST_SITE_POST, of_prices, false},
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
        static const char *const nothing[] = {NULL};

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

int st_site_fetch(st_client *client, const st_site_kind *kind, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    json_t *doc = NULL, *rows, *row;
    size_t i;
    int r;

    st_strbuf_addf(&path, "/v1/%s", kind->name);
    r = st_client_get(client, st_strbuf_str(&path), &doc, err);
    if (r < 0)
        return r;
    rows = json_array();
    json_array_foreach(json_object_get(doc, kind->name), i, row) if (is_ours(kind, row))
        insert(kind, rows, flat(settings(row, kind->derived)));
    json_decref(doc);
    *ret = rows;
    return 0;
}
