/*
 * Putting a document together (base/doc_build.h), whatever it is written in.
 *
 * Invariants: 1. depth <= limits.depth <= ST_DOC_DEPTH_MAX. 2. a map's frame
 * has its key set exactly while its value is due. 3. nodes <= limits.nodes.
 */
#include "base/doc_build.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"

/* From this many keys on a map gets an index; below, searching is quicker. */
#define KEYS_INDEXED_FROM 16

void st_doc_build_done(st_doc_build *b)
{
    for (int i = 0; i < b->depth; i++)
        st_map_free(b->frames[i].keys);
    b->depth = 0;
}

int st_doc_build_fail(const st_doc_build *b, int line, st_err *err, int code, const char *fmt, ...)
{
    char sentence[sizeof(err->msg)];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    return st_fail(err, code, "%s:%d: %s", b->doc->name, line, sentence);
}

int st_doc_line_at(const char *text, size_t at)
{
    int line = 1;

    for (size_t i = 0; i < at; i++)
        if (text[i] == '\n' && line < INT_MAX)
            line++;
    return line;
}

static st_doc_frame *top_frame(st_doc_build *b)
{
    return b->depth > 0 ? &b->frames[b->depth - 1] : NULL;
}

bool st_doc_build_key_due(const st_doc_build *b)
{
    const st_doc_frame *f = b->depth > 0 ? &b->frames[b->depth - 1] : NULL;

    return f && f->node->kind == ST_DOC_MAP && !f->key;
}

/* Copies the text of a key or scalar into the document. */
static int keep_text(st_doc_build *b, const char *text, size_t len, int line, const char **ret,
                     st_err *err)
{
    if (len > b->limits.scalar)
        return st_doc_build_fail(b, line, err, ST_ELIMIT,
                                 "a value of %zu bytes is too long (at most %zu)", len,
                                 b->limits.scalar);
    if (memchr(text, '\0', len))
        return st_doc_build_fail(b, line, err, ST_EPARSE, "a value contains a NUL character");
    *ret = st_arena_strndup(b->doc->arena, text, len);
    return 0;
}

/* The line of an earlier key of the same name, 0 if there is none. */
static int find_key_line(st_doc_frame *f, const char *key)
{
    int64_t line = 0;

    if (f->keys) {
        st_map_get(f->keys, key, &line);
        return (int)line;
    }
    for (const st_doc_node *n = f->node->child; n; n = n->next)
        if (strcmp(n->key, key) == 0)
            return n->key_line;
    return 0;
}

static void index_key(st_doc_frame *f, const char *key, int line)
{
    if (f->keys) {
        st_map_put(f->keys, key, line);
        return;
    }
    if (f->node->nchild + 1 < KEYS_INDEXED_FROM)
        return;
    f->keys = st_map_new();
    for (const st_doc_node *n = f->node->child; n; n = n->next)
        st_map_put(f->keys, n->key, n->key_line);
    st_map_put(f->keys, key, line);
}

int st_doc_build_key(st_doc_build *b, const char *text, size_t len, int line, st_err *err)
{
    st_doc_frame *f = top_frame(b);
    char q[ST_QUOTE_MAX];
    const char *key = NULL;
    int earlier, r;

    ST_ASSERT(st_doc_build_key_due(b));
    r = keep_text(b, text, len, line, &key, err);
    if (r < 0)
        return r;
    ST_ASSERT(key);
    earlier = find_key_line(f, key);
    if (earlier > 0)
        return st_doc_build_fail(b, line, err, ST_EPARSE,
                                 "key %s is given twice; the first is on line %d", st_quote(q, key),
                                 earlier);
    index_key(f, key, line);
    f->key = key;
    f->key_line = line;
    return 0;
}

/* Makes the next node, a child of the innermost open container or the root. */
static int add_node(st_doc_build *b, st_doc_kind kind, int line, st_doc_node **ret, st_err *err)
{
    st_doc_frame *f = top_frame(b);
    st_doc_node *node;

    if (b->nodes >= b->limits.nodes)
        return st_doc_build_fail(b, line, err, ST_ELIMIT, "the document has more than %zu values",
                                 b->limits.nodes);
    b->nodes++;
    node = st_arena_alloc(b->doc->arena, sizeof(*node));
    node->kind = kind;
    node->line = line;
    if (!f) {
        ST_ASSERT(!b->doc->root);
        b->doc->root = node;
    } else {
        ST_ASSERT((f->node->kind == ST_DOC_MAP) == (f->key != NULL));
        node->key = f->key;
        node->key_line = f->key_line;
        f->key = NULL;
        f->key_line = 0;
        if (f->tail)
            f->tail->next = node;
        else
            f->node->child = node;
        f->tail = node;
        f->node->nchild++;
    }
    *ret = node;
    return 0;
}

static bool is_null_text(const char *text, size_t len)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};

    for (size_t i = 0; i < ST_ARRAY_LEN(nulls); i++)
        if (strlen(nulls[i]) == len && memcmp(nulls[i], text, len) == 0)
            return true;
    return false;
}

int st_doc_build_scalar(st_doc_build *b, const char *text, size_t len, bool quoted, int line,
                        st_err *err)
{
    const char *value = NULL;
    st_doc_node *node = NULL;
    bool null = !quoted && is_null_text(text, len);
    int r = 0;

    if (!null)
        r = keep_text(b, text, len, line, &value, err);
    if (r < 0)
        return r;
    r = add_node(b, null ? ST_DOC_NULL : ST_DOC_SCALAR, line, &node, err);
    if (r < 0)
        return r;
    ST_ASSERT(node);
    node->value = value;
    node->quoted = quoted;
    return 0;
}

int st_doc_build_open(st_doc_build *b, st_doc_kind kind, int line, st_err *err)
{
    st_doc_node *node = NULL;
    int r;

    ST_ASSERT(kind == ST_DOC_MAP || kind == ST_DOC_SEQ);
    if (b->depth >= b->limits.depth)
        return st_doc_build_fail(b, line, err, ST_ELIMIT,
                                 "lists and maps are nested more than %d deep", b->limits.depth);
    r = add_node(b, kind, line, &node, err);
    if (r < 0)
        return r;
    b->frames[b->depth++] = (st_doc_frame){.node = node};
    return 0;
}

void st_doc_build_close(st_doc_build *b)
{
    st_doc_frame *f = top_frame(b);

    ST_ASSERT(f && !f->key);
    st_map_free(f->keys);
    f->keys = NULL;
    b->depth--;
}
