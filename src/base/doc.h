/*
 * Documents: YAML and JSON read into one kind of tree that remembers lines, so
 * that every complaint about content can say FILE:LINE.
 *
 * A name ending in ".json" is read as JSON (RFC 8259), anything else as YAML.
 * Of YAML the plain part is taken: maps, lists, scalars, comments. Anchors,
 * aliases, tags and several documents in one file are refused with their line,
 * and so is a key given twice. Everything is bounded (st_doc_limits), reading
 * does not recurse, and nothing is interpreted before an accessor asks: the
 * scalar 010 is the text "010" until st_doc_i64 reads it.
 *
 * Messages are "NAME:LINE: sentence". Accessors want a node that exists; look
 * it up with st_doc_get (NULL if absent) or st_doc_need (an error if absent).
 */
#ifndef ST_BASE_DOC_H
#define ST_BASE_DOC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef enum { ST_DOC_NULL, ST_DOC_SCALAR, ST_DOC_SEQ, ST_DOC_MAP } st_doc_kind;

typedef struct st_doc_node {
    st_doc_kind kind;
    int line;     /* of the value; the first line is 1 */
    int key_line; /* of the key, 0 outside maps */
    int nchild;
    const char *key;   /* NULL outside maps */
    const char *value; /* scalars only */
    bool quoted;       /* the scalar was in quotes or a block (| or >), so it is text for sure */
    bool seen;         /* st_doc_get or st_doc_need has returned it */
    struct st_doc_node *child; /* first child of a map or list, in the order of the file */
    struct st_doc_node *next;
} st_doc_node;

typedef struct st_doc st_doc;

#define ST_DOC_DEPTH_MAX 64

typedef struct st_doc_limits {
    size_t bytes;
    size_t nodes;
    size_t scalar; /* bytes in one scalar or key */
    int depth;     /* containers in one another, at most ST_DOC_DEPTH_MAX */
} st_doc_limits;

/* 64 MiB, 4 million nodes, 1 MiB in a scalar, 64 deep. */
extern const st_doc_limits st_doc_limits_default;

int st_doc_parse(const char *name, const char *text, size_t len, st_doc **ret, st_err *err);
int st_doc_parse_limited(const char *name, const char *text, size_t len,
                         const st_doc_limits *limits, st_doc **ret, st_err *err);

/* Reads a file; "-" is standard input, then called "stdin" in messages. */
int st_doc_load(const char *path, st_doc **ret, st_err *err);

void st_doc_free(st_doc *doc);
ST_DEFINE_FREEP(st_doc, st_doc_free)

/* From now on a JSON document is taken at its word: text is in quotes and numbers are not. A YAML document stays as
 * it is, since quotes are a matter of taste there. */
void st_doc_strict(st_doc *doc);
/* Whether that was asked for, and the scalar is a number, true or false rather than text. */
bool st_doc_no_text(const st_doc *doc, const st_doc_node *node);

const st_doc_node *st_doc_root(const st_doc *doc);
const char *st_doc_name(const st_doc *doc);

/* The child under a key; NULL if it is absent or if the node is not a map. */
const st_doc_node *st_doc_get(const st_doc_node *map, const char *key);
int st_doc_need(const st_doc *doc, const st_doc_node *map, const char *key, const st_doc_node **ret,
                st_err *err);

/* Fails unless the node is of that kind. */
int st_doc_expect(const st_doc *doc, const st_doc_node *node, st_doc_kind kind, st_err *err);

/* Fails on the first key that is not in the NULL-terminated list, suggesting the nearest one. */
int st_doc_check_keys(const st_doc *doc, const st_doc_node *map, const char *const *allowed,
                      st_err *err);

/* Fails on the first key of the map that nobody has asked for with st_doc_get or st_doc_need. */
int st_doc_check_unknown(const st_doc *doc, const st_doc_node *map, st_err *err);

/* Scalars, read as base/num.h says; numbers may be in quotes, true and false may not.
 * st_doc_str takes any scalar (but see st_doc_strict); its text lives as long as the document. */
int st_doc_str(const st_doc *doc, const st_doc_node *node, const char **ret, st_err *err);
/* Fails unless the scalar may be a number: in a strict document it is none in quotes. */
int st_doc_number(const st_doc *doc, const st_doc_node *node, st_err *err);
int st_doc_bool(const st_doc *doc, const st_doc_node *node, bool *ret, st_err *err);
int st_doc_i64(const st_doc *doc, const st_doc_node *node, int64_t lo, int64_t hi, int64_t *ret,
               st_err *err);
int st_doc_milli(const st_doc *doc, const st_doc_node *node, int64_t lo, int64_t hi, int64_t *ret,
                 st_err *err);
int st_doc_duration_ms(const st_doc *doc, const st_doc_node *node, int64_t *ret, st_err *err);
int st_doc_mib(const st_doc *doc, const st_doc_node *node, int64_t *ret, st_err *err);

/* Fails with "NAME:LINE: sentence" for the node's line; node NULL leaves the line out. */
int st_doc_fail(const st_doc *doc, const st_doc_node *node, st_err *err, int code, const char *fmt,
                ...) ST_PRINTF(5, 6);

#endif
