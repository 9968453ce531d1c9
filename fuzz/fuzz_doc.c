/*
 * Fuzzes the document readers. The first byte says which: 'j' JSON, anything
 * else YAML; the rest is the text. Whatever comes in, the result is a tree that
 * holds its promises, or one sentence that names the document.
 */
#include <string.h>

#include "base/doc.h"
#include "fuzz.h"

/* Visits every node without recursion; the tree is as deep as the reader allowed. */
static void check_tree(const st_doc *doc)
{
    const st_doc_node *stack[ST_DOC_DEPTH_MAX + 1];
    int depth = 0;

    stack[depth++] = st_doc_root(doc);
    while (depth > 0) {
        const st_doc_node *n = stack[--depth];
        const st_doc_node *first = n->child;
        st_err err = {0};
        const char *text;
        int64_t number;
        int children = 0;
        bool flag;

        ST_ASSERT(n->line > 0);
        ST_ASSERT((n->kind == ST_DOC_SCALAR) == (n->value != NULL));
        for (const st_doc_node *c = n->child; c; c = c->next) {
            ST_ASSERT((n->kind == ST_DOC_MAP) == (c->key != NULL));
            children++;
        }
        ST_ASSERT(children == n->nchild);
        if (n->kind == ST_DOC_SCALAR)
            ST_ASSERT(st_doc_str(doc, n, &text, &err) == 0);
        (void)st_doc_bool(doc, n, &flag, &err);
        (void)st_doc_i64(doc, n, INT64_MIN, INT64_MAX, &number, &err);
        (void)st_doc_milli(doc, n, 0, 1000000, &number, &err);
        (void)st_doc_duration_ms(doc, n, &number, &err);
        (void)st_doc_mib(doc, n, &number, &err);
        /* The next sibling waits below the first child, so the stack grows with depth only. */
        if (n->next)
            stack[depth++] = n->next;
        if (first) {
            ST_ASSERT(depth <= ST_DOC_DEPTH_MAX);
            stack[depth++] = first;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    const char *name = size > 0 && data[0] == 'j' ? "in.json" : "in.yaml";
    st_err err = {0};

    if (size == 0)
        return 0;
    if (st_doc_parse(name, (const char *)data + 1, size - 1, &doc, &err) == 0) {
        check_tree(doc);
    } else {
        ST_ASSERT(doc == NULL && err.code > 0);
        ST_ASSERT(strncmp(err.msg, name, strlen(name)) == 0);
        ST_ASSERT(strchr(err.msg, '\n') == NULL);
    }
    return 0;
}
