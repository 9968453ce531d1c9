/*
 * Where a job's author wrote what the server complains about (cli/job_doc.h).
 *
 * The server has seen a document that was made from a file and flags; it names a line of that. The document is
 * written with one value a line, so the line says which value; a value came from a flag if the flag was given,
 * and otherwise from the file.
 */
#include <stdio.h>
#include <string.h>

#include "base/doc.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/strbuf.h"
#include "cli/job_doc.h"

#define PLACE "body.json:"

/* The child that begins last at or before the line; NULL: none does. */
static const st_doc_node *child_at(const st_doc_node *node, int line)
{
    const st_doc_node *found = NULL;

    for (const st_doc_node *n = node->child; n; n = n->next)
        if ((n->key_line ? n->key_line : n->line) <= line)
            found = n;
    return found;
}

static const st_doc_node *child_like(const st_doc_node *node, const st_doc_node *like_parent,
                                     const st_doc_node *like)
{
    const st_doc_node *n = node->child, *l = like_parent->child;

    if (like->key)
        return st_doc_get(node, like->key);
    for (; n && l && l != like; n = n->next)
        l = l->next;
    return n;
}

static bool named_in(const st_cli_words *words, const st_doc_node *entry)
{
    for (int i = 0; entry && entry->key && i < words->n; i++) {
        size_t n = strcspn(words->v[i], "=");

        if (strlen(entry->key) == n && strncmp(words->v[i], entry->key, n) == 0)
            return true;
    }
    return false;
}

/* The flag that a value came from; NULL: none. */
static const char *flag_of(const st_job_flags *f, const st_doc_node *value,
                           const st_doc_node *entry)
{
    const char *key = value->key;

#define X(field, option, letter, name, about_value, about) \
    if (strcmp(key, name) == 0 && f->field)                \
        return option;
    ST_JOB_FLAGS(X)
#undef X
    if (strcmp(key, "type") == 0 && f->type)
        return "type";
    if (strcmp(key, "topology") == 0 && f->topology)
        return "topology";
    if (strcmp(key, "node_labels") == 0 && f->node_labels.n > 0)
        return "node-label";
    if (strcmp(key, "exclude_nodes") == 0 && f->exclude_nodes.n > 0)
        return "exclude-node";
    if (strcmp(key, "array") == 0 && f->array)
        return "array";
    if (strcmp(key, "env") == 0 && named_in(&f->env, entry))
        return "env";
    if (strcmp(key, "secrets") == 0 && named_in(&f->secrets, entry))
        return "secret";
    if (strcmp(key, "labels") == 0 && named_in(&f->labels, entry))
        return "label";
    if (strcmp(key, "sim") == 0 && entry && entry->key && strcmp(entry->key, "run") == 0 &&
        f->sim_run)
        return "sim-run";
    return NULL;
}

/* The line of the file at which the value of that line of the document stands; 0: it is not there. */
static int line_in_file(const char *path, const st_doc_node *root, int line)
{
    ST_CLEANUP(st_doc_freep) st_doc *file = NULL;
    const st_doc_node *at, *child, *next;
    int found = 0;

    if (strcmp(path, "-") == 0 || st_doc_load(path, &file, NULL) < 0)
        return 0;
    at = st_doc_root(file);
    found = at->line;
    for (; at && (child = child_at(root, line)); root = child, at = next) {
        next = child_like(at, root, child);
        if (!next)
            break;
        found = next->key_line ? next->key_line : next->line;
    }
    return found;
}

/* What the flag's or the line's own name already says is not said again. */
static const char *without_key(const char *rest, const char *key)
{
    char said[ST_QUOTE_MAX + 8], q[ST_QUOTE_MAX];

    snprintf(said, sizeof said, "key %s: ", st_quote(q, key));
    return strncmp(rest, said, strlen(said)) == 0 ? rest + strlen(said) : rest;
}

void st_job_place(const st_job_flags *flags, const char *body, const char *detail, st_strbuf *out)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    const st_doc_node *value = NULL, *root;
    const char *rest, *flag = NULL;
    int line = 0, n = 0;

    if (sscanf(detail, PLACE "%d: %n", &line, &n) != 1 || n == 0 ||
        st_doc_parse("body.json", body, strlen(body), &doc, NULL) < 0) {
        st_strbuf_add(out, detail);
        return;
    }
    rest = detail + n;
    root = st_doc_root(doc);
    value = child_at(root, line);
    if (value && value->key)
        flag = flag_of(flags, value, child_at(value, line));
    if (flag)
        st_strbuf_addf(out, "--%s: %s", flag, without_key(rest, value->key));
    else if (flags->file && (line = line_in_file(flags->file, root, line)) > 0)
        st_strbuf_addf(out, "%s:%d: %s", flags->file, line, rest);
    else if (flags->file)
        st_strbuf_addf(out, "%s: %s", flags->file, rest);
    else
        st_strbuf_add(out, rest);
}
