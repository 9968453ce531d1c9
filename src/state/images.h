/*
 * The image catalogue: what the names that jobs give as their `image` stand for on the nodes, and who may use them.
 * Like the directory it is asked from any thread and changed by the control loop alone, after a commit; the documents
 * are documents of the store (kind "image").
 *
 * A job carries a reference and nothing else. What it means is looked up here when the job is sent to its nodes, so
 * that no path ever comes from a tenant.
 */
#ifndef ST_STATE_IMAGES_H
#define ST_STATE_IMAGES_H

#include <jansson.h>

#include "state/directory.h"

#define ST_IMAGES_MAX         1000
#define ST_IMAGE_ACCOUNTS_MAX 1000

typedef struct st_images st_images;

st_images *st_images_new(st_directory *dir); /* borrowed */
void st_images_free(st_images *images);

/* Whether a document is one of an image; a sentence about the first thing that is not. */
int st_images_read(const char *name, const json_t *doc, st_err *err);

/* ---- asked from any thread ------------------------------------------------------------ */

/* Whether a job of the account may name this as its image, at this level. For one who may not, an image of others is
 * not there. */
int st_images_admit(st_images *images, const char *account, const char *image, st_level level,
                    st_err *err);

/* What the caller sees: of the account's images name, kind, digest, trust, version and words; with `all` every image, its
 * path and who may use it. */
json_t *st_images_list(st_images *images, const char *account, bool all);
/* One of them; NULL: it is not there, or not for this account. */
json_t *st_images_show(st_images *images, const char *account, const char *name, bool all);

/* For an agent: what the image of a job means, as JSON. `host` says whether the pool lets jobs have the node's own
 * programs as theirs. */
void st_images_order(st_images *images, const char *account, const char *doc, bool host,
                     st_strbuf *out);

/* ---- changed by the loop --------------------------------------------------------------- */

/* doc NULL: removed. */
int st_images_set(st_images *images, const char *name, const char *doc, int64_t version,
                  st_err *err);
int st_images_load(st_images *images, st_store *store, st_err *err);

#endif
