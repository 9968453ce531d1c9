/* Labels of nodes, and what bookings require of them: "name=value" lines in order of name, as one text.
 *
 * A required value is met by the same value, and by one that goes on behind a dot: driver=550 is met by 550.54.15. */
#ifndef ST_MODEL_LABELS_H
#define ST_MODEL_LABELS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"

#define ST_LABELS_MAX 64 /* of one node, or one booking */
#define ST_LABEL_MAX  63 /* bytes of a name, and of a value */
#define ST_LABELS_TEXT_MAX \
    (ST_LABELS_MAX * (2 * ST_LABEL_MAX + 2)) /* bytes of a text, without its end */

/* 1 to ST_LABEL_MAX letters, digits and . _ - / + : */
bool st_label_word(const char *word);
/* In order, each name once, every word in its bounds; "" has none. */
bool st_labels_ok(const char *labels);
/* Puts one in its place, or takes the old one out (`value` NULL). */
int st_labels_set(st_strbuf *labels, const char *name, const char *value, st_err *err);
/* The first line of `labels`, from *at on; false: there is none. */
bool st_labels_next(const char *labels, size_t *at, char name[ST_LABEL_MAX + 1],
                    char value[ST_LABEL_MAX + 1]);
/* Whether all that is required is there; NULL has none, and requires none. */
bool st_labels_meet(const char *labels, const char *required);
/* "driver=550, storage=nvme" */
void st_labels_say(const char *labels, st_strbuf *out);

#endif
