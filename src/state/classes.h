/*
 * Priority classes: names of the site's for how urgent a job is, with the priorities they stand for, who may use them and
 * whether their jobs preempt. What jobs of a class pay is in the price book. Like the catalogue of images they are asked
 * from any thread and changed by the control loop alone, after a commit; the documents are of the kind "class".
 *
 * Four are there from the start; a document of the same name replaces one.
 */
#ifndef ST_STATE_CLASSES_H
#define ST_STATE_CLASSES_H

#include <jansson.h>

#include "state/directory.h"

#define ST_CLASSES_MAX        64
#define ST_CLASS_ACCOUNTS_MAX 1000

typedef struct st_classes st_classes;

st_classes *st_classes_new(st_directory *dir); /* borrowed */
void st_classes_free(st_classes *classes);

/* Whether a document is one of a class; a sentence about the first thing that is not. */
int st_classes_read(const char *name, const json_t *doc, st_err *err);

/* ---- asked from any thread ------------------------------------------------------------ */

/* A job of the account that is to be in the class, by somebody with this role. `said`: whether its priority was said; if
 * not it gets that of the class. A class of other accounts is not there. */
int st_classes_admit(st_classes *classes, const char *name, const char *account, int role,
                     bool said, int *priority, bool *ret_meek, st_err *err);
/* Whether a job of the class may come to have the priority. One that is gone says nothing. */
int st_classes_priority(st_classes *classes, const char *name, int priority, st_err *err);

/* Those that jobs of the account may name; with `all` every one, and who may use it. */
json_t *st_classes_list(st_classes *classes, const char *account, bool all);

/* ---- changed by the loop --------------------------------------------------------------- */

/* doc NULL: removed. */
int st_classes_set(st_classes *classes, const char *name, const char *doc, int64_t version,
                   st_err *err);
int st_classes_load(st_classes *classes, st_store *store, st_err *err);

#endif
