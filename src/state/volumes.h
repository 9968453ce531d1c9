/*
 * The volumes of accounts: who owns them, how large they may get, and what those that a job names are on its nodes. Like the
 * image catalogue it is asked from any thread and changed by the control loop alone, after a commit; volumes are documents
 * of the store (kind "volume", name ACCOUNT/NAME).
 *
 * A job of an account may name its own volumes, and those of accounts above that are shared with accounts below; the nearest
 * has the name. For everybody else a volume is not there.
 */
#ifndef ST_STATE_VOLUMES_H
#define ST_STATE_VOLUMES_H

#include <jansson.h>

#include "model/volume.h"
#include "state/directory.h"

#define ST_VOLUME_ABOUT_MAX 200
#define ST_VOLUME_MIB_MAX   (INT64_C(1) << 40) /* an exbibyte */

/* X(id, word): what jobs of accounts below the owner may do with it. */
#define ST_VOLUME_BELOW_TABLE(X) \
    X(ST_BELOW_NOTHING, "none")  \
    X(ST_BELOW_READ, "read")     \
    X(ST_BELOW_WRITE, "write")
typedef enum st_volume_below {
#define X(id, word) id,
    ST_VOLUME_BELOW_TABLE(X)
#undef X
} st_volume_below;

extern const char *const st_volume_below_words[]; /* NULL at the end */

typedef struct st_volume {
    char account[ST_NAME_MAX + 1], name[ST_VOLUME_NAME_MAX + 1];
    char id[ST_VOLUME_ID_MAX]; /* of its folder */
    int64_t owner;             /* the account's number */
    int64_t size_mib;          /* how large it may get */
    st_volume_below below;
    char about[ST_VOLUME_ABOUT_MAX + 1];
    char by[ST_NAME_MAX + 1], by_account[ST_NAME_MAX + 1];
    int64_t made_ms, version;
} st_volume;

typedef struct st_volumes st_volumes;

st_volumes *st_volumes_new(st_directory *dir); /* borrowed */
void st_volumes_free(st_volumes *volumes);

/* As a document of the store. */
int st_volume_read(const char *kept, const char *doc, int64_t version, st_volume *ret, st_err *err);
void st_volume_write(const st_volume *v, st_strbuf *out);

/* ---- asked from any thread ------------------------------------------------------------ */

/* One of an account's own; false: there is none. */
bool st_volumes_get(st_volumes *volumes, const char *account, const char *name, st_volume *ret);
/* Those of an account by name; of an account above, those that are shared. */
void st_volumes_each(st_volumes *volumes, const char *account, bool shared,
                     void (*fn)(void *ctx, const st_volume *v), void *ctx);

/* Whether a job of the account may have what its document names. */
int st_volumes_admit(st_volumes *volumes, const char *account, const char *doc, st_err *err);
/* For an agent: what a job's volumes are, as JSON, and the folder that it came with; nothing where there is neither. */
void st_volumes_order(st_volumes *volumes, const char *account, const char *doc, const char *job,
                      st_strbuf *out);
/* Whether a job of `account` with this document has that volume. */
bool st_volumes_has(st_volumes *volumes, const char *account, const char *doc, const char *id);

/* ---- changed by the loop --------------------------------------------------------------- */

void st_volumes_put(st_volumes *volumes, const st_volume *v);
void st_volumes_remove(st_volumes *volumes, const char *account, const char *name);
int st_volumes_load(st_volumes *volumes, st_store *store, st_err *err);

#endif
