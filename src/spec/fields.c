/*
 * Reading maps by tables (spec/fields.h).
 */
#include "spec/fields.h"

#include <string.h>

#include "base/quote.h"
#include "base/strbuf.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "model/tree.h"
#include "spec/spec.h"

#define KEYS_MAX 128

bool st_field_name_ok(const char *name)
{
    return st_name_ok(name) && st_text_honest(name);
}

int st_field_line(const st_doc *doc, const st_doc_node *node, const char **ret, st_err *err)
{
    char q[ST_QUOTE_MAX];
    const char *text;
    int r = st_doc_str(doc, node, &text, err);

    if (r == 0 && !st_text_honest(text))
        r = st_doc_fail(doc, node, err, ST_EINVAL,
                        "%s has a character that is not seen or turns the direction of writing",
                        st_quote(q, text));
    if (r == 0)
        *ret = text;
    return r;
}

static int read_name(const st_doc *doc, const st_doc_node *node, const char **ret, st_err *err)
{
    char q[ST_QUOTE_MAX];
    const char *name;
    int r = st_doc_str(doc, node, &name, err);

    if (r < 0)
        return r;
    if (!st_field_name_ok(name))
        return st_doc_fail(doc, node, err, ST_EINVAL,
                           "%s cannot be a name: it must be 1 to %d bytes without spaces, control "
                           "characters, or such as are not seen or turn the direction of writing",
                           st_quote(q, name), ST_NAME_MAX);
    *ret = name;
    return 0;
}

int st_field_word(const st_doc *doc, const st_doc_node *node, const char *const *words, int *ret,
                  st_err *err)
{
    char q[ST_QUOTE_MAX];
    ST_CLEANUP(st_strbuf_done) st_strbuf list = {0};
    const char *word, *nearest;
    int r = st_doc_str(doc, node, &word, err);

    if (r < 0)
        return r;
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], word) == 0) {
            *ret = i;
            return 0;
        }
        st_strbuf_addf(&list, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
    }
    nearest = st_suggest(word, words);
    return st_doc_fail(doc, node, err, ST_EINVAL, "%s is none of %s%s%s%s", st_quote(q, word),
                       st_strbuf_str(&list), nearest ? " (did you mean \"" : "",
                       nearest ? nearest : "", nearest ? "\"?)" : "");
}

static bool says_none(const st_doc_node *node)
{
    return node->kind == ST_DOC_SCALAR && strcmp(node->value, "none") == 0;
}

int st_field_read(const st_doc *doc, const st_doc_node *node, const st_field *field, void *into,
                  st_err *err)
{
    void *at = (char *)into + field->offset;
    int64_t n = 0;
    int r;

    if (field->none && says_none(node)) {
        *(int64_t *)at = ST_UNSET;
        return 0;
    }
    switch (field->kind) {
    case ST_F_TEXT:
        if (field->number) {
            r = st_doc_expect(doc, node, ST_DOC_SCALAR, err);
            if (r == 0)
                *(const char **)at = node->value;
            return r;
        }
        return st_doc_str(doc, node, (const char **)at, err);
    case ST_F_LINE:
        return st_field_line(doc, node, (const char **)at, err);
    case ST_F_NAME:
        return read_name(doc, node, (const char **)at, err);
    case ST_F_BOOL:
        return st_doc_bool(doc, node, (bool *)at, err);
    case ST_F_INT:
        r = st_doc_i64(doc, node, field->lo, field->hi, &n, err);
        if (r == 0)
            *(int *)at = (int)n;
        return r;
    case ST_F_I64:
        return st_doc_i64(doc, node, field->lo, field->hi, (int64_t *)at, err);
    case ST_F_WORD:
        return st_field_word(doc, node, field->words, (int *)at, err);
    case ST_F_MILLI:
        return st_doc_milli(doc, node, field->lo, field->hi, (int64_t *)at, err);
    case ST_F_DURATION:
        return st_doc_duration_ms(doc, node, (int64_t *)at, err);
    case ST_F_MIB:
        return st_doc_mib(doc, node, (int64_t *)at, err);
    case ST_F_NODE:
        *(const st_doc_node **)at = node;
        return 0;
    }
    ST_ASSERT(false);
    return 0;
}

int st_fields_read(const st_doc *doc, const st_doc_node *map, const st_field *fields, void *into,
                   st_err *err)
{
    const char *keys[KEYS_MAX + 1] = {NULL};
    int n = 0, r;

    for (; fields[n].key; n++) {
        ST_ASSERT(n < KEYS_MAX);
        keys[n] = fields[n].key;
    }
    r = st_doc_check_keys(doc, map, keys, err);
    for (int i = 0; r == 0 && i < n; i++) {
        const st_doc_node *node = NULL;

        if (fields[i].required)
            r = st_doc_need(doc, map, fields[i].key, &node, err);
        else
            node = st_doc_get(map, fields[i].key);
        if (r == 0 && node)
            r = st_field_read(doc, node, &fields[i], into, err);
    }
    return r;
}

const st_doc_node *st_field_each(const st_doc_node *node, const st_doc_node *at)
{
    if (node->kind != ST_DOC_SEQ)
        return at ? NULL : node;
    return at ? at->next : node->child;
}

/* Types are few and look alike: another one is no better guess than all of them. */
static int missing_type(const st_doc *doc, const st_doc_node *node, const char *const *names,
                        st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf list = {0};
    char q[ST_QUOTE_MAX];
    int n = 0;

    for (; names[n]; n++)
        st_strbuf_addf(&list, "%s%s", n == 0 ? "" : names[n + 1] ? ", " : " and ", names[n]);
    return st_doc_fail(doc, node, err, ST_ENOENT, "there is no GPU type %s; there %s %s",
                       st_quote(q, node->value), n == 1 ? "is" : "are",
                       n > 0 ? st_strbuf_str(&list) : "none");
}

int st_spec_missing(const st_doc *doc, const st_doc_node *node, const char *what,
                    const char *const *names, st_err *err)
{
    char q[ST_QUOTE_MAX], near[ST_QUOTE_MAX];
    const char *nearest = st_suggest(node->value, names);

    if (strcmp(what, "GPU type") == 0)
        return missing_type(doc, node, names, err);
    return st_doc_fail(doc, node, err, ST_ENOENT, "there is no %s %s%s%s%s", what,
                       st_quote(q, node->value), nearest ? " (did you mean " : "",
                       nearest ? st_quote(near, nearest) : "", nearest ? "?)" : "");
}
