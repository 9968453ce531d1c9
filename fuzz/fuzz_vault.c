/*
 * Fuzzes what is sealed and how secrets are read: damaged text never opens, a document that was sealed comes back as it was,
 * hides its values meanwhile, and opens for nobody else.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "vault/vault.h"

static const st_vault_who alice = {7, "alice"}, bob = {7, "bob"};
static const char *const above[] = {"acme", NULL};

/* Nothing was made by this vault, so nothing may open. */
static void strange_text(st_vault *v, const char *text)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const st_vault_place place = {"secret", 7, "hf", 1};
    ST_CLEANUP(st_wipe) st_strbuf out = {0};
    st_secret s = {0};
    st_err err = {0};

    ST_ASSERT(st_vault_unseal(v, &place, text, &out, &err) == -ST_ECORRUPT && out.n == 0);
    if (st_secret_read(text, arena, &s, &err) == 0)
        ST_ASSERT(s.by && s.by_account && s.sealed);
    st_strbuf_clear(&out);
    if (st_vault_deliver(v, above, text, &out, &err) < 0)
        ST_ASSERT(out.n == 0);
    st_vault_check_job(v, above, text, &err);
}

/* The values of `env` and what is run must not be seen in what is kept: names stand with null. */
static void check_hidden(const char *text)
{
    json_t *doc = json_loads(text, 0, NULL), *value;
    const char *key;

    ST_ASSERT(json_is_object(doc));
    json_object_foreach(json_object_get(doc, "env"), key, value)
    {
        ST_ASSERT(json_is_null(value));
    }
    ST_ASSERT(!json_object_get(doc, "command") || json_is_null(json_object_get(doc, "command")));
    ST_ASSERT(!json_object_get(doc, "script") || json_is_null(json_object_get(doc, "script")));
    json_decref(doc);
}

/* As one document: numbers to the fifteen digits that are kept of them. */
static bool same(const char *text, const char *other)
{
    const size_t flags = JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(15);
    json_t *a = json_loads(text, 0, NULL), *b = json_loads(other, 0, NULL);
    char *x = json_dumps(a, flags), *y = json_dumps(b, flags);
    bool equal = x && y && strcmp(x, y) == 0;

    free(x);
    free(y);
    json_decref(a);
    json_decref(b);
    return equal;
}

static void document(st_vault *v, const char *text)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf kept = {0}, next = {0}, names = {0}, all = {0}, none = {0};
    bool changed;
    st_err err = {0};

    if (strncmp(text, "{\"sealed\"", 9) == 0 || !strstr(text, "{"))
        return; /* the reader of documents refuses it */
    if (st_vault_doc_seal(v, &alice, &bob, text, &kept, &err) < 0)
        return;
    ST_ASSERT(st_vault_doc_open(v, &alice, kept.s, ST_VIEW_NAMES, &names, &err) == 0);
    check_hidden(names.s);
    ST_ASSERT(st_vault_doc_renew(v, &alice, NULL, kept.s, false, &next, &changed, &err) == 0);
    ST_ASSERT(!changed || strncmp(kept.s, "{\"sealed\"", 9) != 0);
    ST_ASSERT(st_vault_doc_open(v, &alice, kept.s, ST_VIEW_ALL, &all, &err) == 0);
    ST_ASSERT(same(text, all.s));
    if (strncmp(kept.s, "{\"sealed\"", 9) == 0) {
        ST_ASSERT(st_vault_doc_by(v, &alice, kept.s, &bob));
        ST_ASSERT(st_vault_doc_open(v, &bob, kept.s, ST_VIEW_ALL, &none, &err) < 0 && none.n == 0);
    }
}

static void shown(const char *text)
{
    ST_CLEANUP(st_freep) char *tame = st_xstrdup(text);
    ST_CLEANUP(st_strbuf_done) st_strbuf cell = {0}, page = {0};
    char q[ST_QUOTE_MAX];

    st_text_tame(tame);
    ST_ASSERT(st_text_honest(tame) && strlen(tame) <= strlen(text));
    st_quote_csv(&cell, text);
    ST_ASSERT(!strchr("=@\t\r", cell.s[0]));
    st_quote_html(&page, text);
    ST_ASSERT(strlen(st_quote(q, text)) < ST_QUOTE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_vault_freep) st_vault *v = st_vault_new_fleeting();
    ST_CLEANUP(st_freep) char *text = st_xstrndup((const char *)data, size);

    strange_text(v, text);
    document(v, text);
    shown(text);
    return 0;
}
