/*
 * Inside base only: how the YAML and the JSON reader put a document together.
 * They report what they meet, in the order of the file; the builder makes the
 * nodes, keeps the limits and refuses keys given twice.
 */
#ifndef ST_BASE_DOC_BUILD_H
#define ST_BASE_DOC_BUILD_H

#include "base/arena.h"
#include "base/doc.h"
#include "base/map.h"

struct st_doc {
    st_arena *arena; /* owns the nodes and their text */
    const char *name;
    st_doc_node *root;
    bool strict; /* st_doc_strict */
};

/* One container that is still open. */
typedef struct st_doc_frame {
    st_doc_node *node;
    st_doc_node *tail;
    const char *key; /* of the child to come; NULL when a key is due */
    int key_line;
    st_map *keys; /* key -> line, once the map is too large to search */
} st_doc_frame;

typedef struct st_doc_build {
    st_doc *doc;
    st_doc_limits limits;
    size_t nodes;
    int depth;
    st_doc_frame frames[ST_DOC_DEPTH_MAX];
} st_doc_build;

void st_doc_build_done(st_doc_build *b);

/* True between two entries of a map, where the next scalar is a key. */
bool st_doc_build_key_due(const st_doc_build *b);

int st_doc_build_key(st_doc_build *b, const char *text, size_t len, int line, st_err *err);
int st_doc_build_scalar(st_doc_build *b, const char *text, size_t len, bool quoted, int line,
                        st_err *err);
int st_doc_build_open(st_doc_build *b, st_doc_kind kind, int line, st_err *err);
void st_doc_build_close(st_doc_build *b);

/* Fails with "NAME:LINE: sentence". */
int st_doc_build_fail(const st_doc_build *b, int line, st_err *err, int code, const char *fmt, ...)
    ST_PRINTF(5, 6);

/* The readers. Each leaves doc->root set or fails. */
int st_doc_read_yaml(st_doc_build *b, const char *text, size_t len, st_err *err);
int st_doc_read_json(st_doc_build *b, const char *text, size_t len, st_err *err);

/* The line, from 1, on which byte `at` of the text lies. */
int st_doc_line_at(const char *text, size_t at);

#endif
