/*
 * Parsing a document and asking it for typed values (base/doc.h).
 */
#include "base/doc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/doc_build.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "base/strbuf.h"
#include "base/suggest.h"

const st_doc_limits st_doc_limits_default = {
    .bytes = (size_t)64 << 20,
    .nodes = 4000000,
    .scalar = (size_t)1 << 20,
    .depth = ST_DOC_DEPTH_MAX,
};

static bool is_json_name(const char *name)
{
    size_t len = strlen(name);

    return len >= 5 && strcmp(name + len - 5, ".json") == 0;
}

int st_doc_parse(const char *name, const char *text, size_t len, st_doc **ret, st_err *err)
{
    return st_doc_parse_limited(name, text, len, &st_doc_limits_default, ret, err);
}

int st_doc_parse_limited(const char *name, const char *text, size_t len,
                         const st_doc_limits *limits, st_doc **ret, st_err *err)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    ST_CLEANUP(st_doc_build_done) st_doc_build b = {.limits = *limits};
    int r;

    ST_ASSERT(name && text && ret);
    ST_ASSERT(limits->depth > 0 && limits->depth <= ST_DOC_DEPTH_MAX);
    if (len > limits->bytes)
        return st_fail(err, ST_ELIMIT, "%s: %zu bytes are too many (at most %zu)", name, len,
                       limits->bytes);
    b.doc = doc = st_xcalloc(1, sizeof(*doc));
    doc->arena = st_arena_new();
    doc->name = st_arena_strdup(doc->arena, name);
    r = is_json_name(name) ? st_doc_read_json(&b, text, len, err)
                           : st_doc_read_yaml(&b, text, len, err);
    if (r < 0)
        return r;
    if (!doc->root)
        return st_fail(err, ST_EPARSE, "%s:1: the document is empty", name);
    ST_ASSERT(b.depth == 0);
    *ret = ST_TAKE(doc);
    return 0;
}

void st_doc_free(st_doc *doc)
{
    if (!doc)
        return;
    st_arena_free(doc->arena);
    free(doc);
}

void st_doc_strict(st_doc *doc)
{
    doc->strict = is_json_name(doc->name);
}

bool st_doc_no_text(const st_doc *doc, const st_doc_node *node)
{
    return doc->strict && node->kind == ST_DOC_SCALAR && !node->quoted;
}

const st_doc_node *st_doc_root(const st_doc *doc)
{
    return doc->root;
}

const char *st_doc_name(const st_doc *doc)
{
    return doc->name;
}

static int fail_at(const st_doc *doc, int line, st_err *err, int code, const char *sentence)
{
    if (line > 0)
        return st_fail(err, code, "%s:%d: %s", doc->name, line, sentence);
    return st_fail(err, code, "%s: %s", doc->name, sentence);
}

int st_doc_fail(const st_doc *doc, const st_doc_node *node, st_err *err, int code, const char *fmt,
                ...)
{
    char sentence[sizeof(err->msg)];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    return fail_at(doc, node ? node->line : 0, err, code, sentence);
}

/* As st_doc_fail, with the node's key in front of the sentence. */
static int fail_value(const st_doc *doc, const st_doc_node *node, st_err *err, int code,
                      const char *sentence)
{
    char q[ST_QUOTE_MAX];

    if (!node->key)
        return st_doc_fail(doc, node, err, code, "%s", sentence);
    return st_doc_fail(doc, node, err, code, "key %s: %s", st_quote(q, node->key), sentence);
}

const st_doc_node *st_doc_get(const st_doc_node *map, const char *key)
{
    ST_ASSERT(map && key);
    if (map->kind != ST_DOC_MAP)
        return NULL;
    for (st_doc_node *n = map->child; n; n = n->next) {
        if (strcmp(n->key, key) == 0) {
            n->seen = true;
            return n;
        }
    }
    return NULL;
}

int st_doc_need(const st_doc *doc, const st_doc_node *map, const char *key, const st_doc_node **ret,
                st_err *err)
{
    const st_doc_node *node;
    char sentence[128];
    int r;

    r = st_doc_expect(doc, map, ST_DOC_MAP, err);
    if (r < 0)
        return r;
    node = st_doc_get(map, key);
    if (!node) {
        snprintf(sentence, sizeof(sentence), "key \"%s\" is missing", key);
        return fail_at(doc, map->key_line > 0 ? map->key_line : map->line, err, ST_EINVAL,
                       sentence);
    }
    *ret = node;
    return 0;
}

static const char *kind_name(st_doc_kind kind)
{
    switch (kind) {
    case ST_DOC_NULL:
        return "nothing";
    case ST_DOC_SCALAR:
        return "a single value";
    case ST_DOC_SEQ:
        return "a list";
    case ST_DOC_MAP:
        return "a map";
    }
    return "something else";
}

int st_doc_expect(const st_doc *doc, const st_doc_node *node, st_doc_kind kind, st_err *err)
{
    char sentence[64];

    ST_ASSERT(doc && node);
    if (node->kind == kind)
        return 0;
    snprintf(sentence, sizeof(sentence), "expected %s, found %s", kind_name(kind),
             kind_name(node->kind));
    return fail_value(doc, node, err, ST_EINVAL, sentence);
}

/* Says that nobody knows a key. */
static int fail_unknown(const st_doc *doc, const st_doc_node *node, const char *nearest,
                        st_err *err)
{
    char q[ST_QUOTE_MAX];
    ST_CLEANUP(st_strbuf_done) st_strbuf sentence = {0};

    st_strbuf_addf(&sentence, "unknown key %s", st_quote(q, node->key));
    if (nearest)
        st_strbuf_addf(&sentence, " (did you mean \"%s\"?)", nearest);
    return fail_at(doc, node->key_line, err, ST_EINVAL, st_strbuf_str(&sentence));
}

int st_doc_check_keys(const st_doc *doc, const st_doc_node *map, const char *const *allowed,
                      st_err *err)
{
    int r = st_doc_expect(doc, map, ST_DOC_MAP, err);

    if (r < 0)
        return r;
    for (const st_doc_node *n = map->child; n; n = n->next) {
        const char *const *a = allowed;

        while (*a && strcmp(*a, n->key) != 0)
            a++;
        if (!*a)
            return fail_unknown(doc, n, st_suggest(n->key, allowed), err);
    }
    return 0;
}

int st_doc_check_unknown(const st_doc *doc, const st_doc_node *map, st_err *err)
{
    int r = st_doc_expect(doc, map, ST_DOC_MAP, err);

    if (r < 0)
        return r;
    for (const st_doc_node *n = map->child; n; n = n->next)
        if (!n->seen)
            return fail_unknown(doc, n, NULL, err);
    return 0;
}

/* A bare word of JSON is a number, true or false, and safe to repeat; it may be long. */
static const char *unquoted(char buf[ST_QUOTE_MAX], const char *value)
{
    snprintf(buf, ST_QUOTE_MAX, "%.40s", value);
    return buf;
}

int st_doc_number(const st_doc *doc, const st_doc_node *node, st_err *err)
{
    char q[ST_QUOTE_MAX], sentence[128];
    int r = st_doc_expect(doc, node, ST_DOC_SCALAR, err);

    if (r < 0 || !doc->strict || !node->quoted)
        return r;
    snprintf(sentence, sizeof(sentence), "expected a number, found the text %s",
             st_quote(q, node->value));
    return fail_value(doc, node, err, ST_EINVAL, sentence);
}

int st_doc_str(const st_doc *doc, const st_doc_node *node, const char **ret, st_err *err)
{
    char q[ST_QUOTE_MAX], sentence[128];
    int r = st_doc_expect(doc, node, ST_DOC_SCALAR, err);

    if (r < 0)
        return r;
    if (st_doc_no_text(doc, node)) {
        snprintf(sentence, sizeof(sentence), "expected text, found %s; text is in quotes",
                 unquoted(q, node->value));
        return fail_value(doc, node, err, ST_EINVAL, sentence);
    }
    *ret = node->value;
    return 0;
}

int st_doc_bool(const st_doc *doc, const st_doc_node *node, bool *ret, st_err *err)
{
    char q[ST_QUOTE_MAX], sentence[128];
    int r = st_doc_expect(doc, node, ST_DOC_SCALAR, err);
    bool yes;

    if (r < 0)
        return r;
    yes = strcmp(node->value, "true") == 0;
    if (node->quoted || (!yes && strcmp(node->value, "false") != 0)) {
        snprintf(sentence, sizeof(sentence), "expected true or false, found %s",
                 st_quote(q, node->value));
        return fail_value(doc, node, err, ST_EPARSE, sentence);
    }
    *ret = yes;
    return 0;
}

int st_doc_i64(const st_doc *doc, const st_doc_node *node, int64_t lo, int64_t hi, int64_t *ret,
               st_err *err)
{
    st_err why = {0};
    int r = st_doc_number(doc, node, err);

    if (r < 0)
        return r;
    r = st_parse_i64(node->value, lo, hi, ret, &why);
    return r < 0 ? fail_value(doc, node, err, why.code, why.msg) : 0;
}

int st_doc_milli(const st_doc *doc, const st_doc_node *node, int64_t lo, int64_t hi, int64_t *ret,
                 st_err *err)
{
    st_err why = {0};
    int r = st_doc_number(doc, node, err);

    if (r < 0)
        return r;
    r = st_parse_milli(node->value, lo, hi, ret, &why);
    return r < 0 ? fail_value(doc, node, err, why.code, why.msg) : 0;
}

int st_doc_duration_ms(const st_doc *doc, const st_doc_node *node, int64_t *ret, st_err *err)
{
    st_err why = {0};
    int r = st_doc_expect(doc, node, ST_DOC_SCALAR, err);

    if (r < 0)
        return r;
    r = st_parse_duration_ms(node->value, ret, &why);
    return r < 0 ? fail_value(doc, node, err, why.code, why.msg) : 0;
}

int st_doc_mib(const st_doc *doc, const st_doc_node *node, int64_t *ret, st_err *err)
{
    st_err why = {0};
    int r = st_doc_expect(doc, node, ST_DOC_SCALAR, err);

    if (r < 0)
        return r;
    r = st_parse_mib(node->value, ret, &why);
    return r < 0 ? fail_value(doc, node, err, why.code, why.msg) : 0;
}

int st_doc_load(const char *path, st_doc **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    int r = st_file_read(path, st_doc_limits_default.bytes, &text, err);

    if (r < 0)
        return r;
    return st_doc_parse(st_file_name(path), st_strbuf_str(&text), text.n, ret, err);
}
