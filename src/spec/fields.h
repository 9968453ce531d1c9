/*
 * Maps of a document read by tables, one row per key: what it holds, where it goes, its range. A
 * key without a row is refused, with the nearest one that has.
 */
#ifndef ST_SPEC_FIELDS_H
#define ST_SPEC_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/doc.h"

typedef enum st_field_kind {
    ST_F_TEXT,     /* const char * */
    ST_F_LINE,     /* const char *, fit to be shown in one line */
    ST_F_NAME,     /* const char *, fit to be the name of something */
    ST_F_BOOL,     /* bool */
    ST_F_INT,      /* int, lo to hi */
    ST_F_I64,      /* int64_t, lo to hi */
    ST_F_WORD,     /* int: which of `words` */
    ST_F_MILLI,    /* int64_t, lo to hi thousandths */
    ST_F_DURATION, /* int64_t ms */
    ST_F_MIB,      /* int64_t */
    ST_F_NODE,     /* const st_doc_node *: somebody else reads it */
} st_field_kind;

typedef struct st_field {
    const char *key;
    st_field_kind kind;
    size_t offset;
    int64_t lo, hi;           /* of the numbers */
    const char *const *words; /* of ST_F_WORD, NULL at the end */
    bool required;
    bool number; /* a text may be a number as well */
    bool none;   /* an int64_t may be "none": ST_UNSET */
} st_field;

/* Reads every key of the map into the struct; what is not given is left alone. Tables end with a
 * row without a key. */
int st_fields_read(const st_doc *doc, const st_doc_node *map, const st_field *fields, void *into,
                   st_err *err);

/* Whether somebody may call something so: what the core takes, without characters that deceive. */
bool st_field_name_ok(const char *name);
/* A text that is shown in one line. */
int st_field_line(const st_doc *doc, const st_doc_node *node, const char **ret, st_err *err);

/* One value, as a row describes it. */
int st_field_read(const st_doc *doc, const st_doc_node *node, const st_field *field, void *into,
                  st_err *err);

/* Which of the words the scalar is; fails with the nearest. */
int st_field_word(const st_doc *doc, const st_doc_node *node, const char *const *words, int *ret,
                  st_err *err);

/* One child of a list, or the node itself when it is no list: `finish: a` and `finish: [a, b]`.
 * Start with at NULL; NULL ends it. */
const st_doc_node *st_field_each(const st_doc_node *node, const st_doc_node *at);

#endif
