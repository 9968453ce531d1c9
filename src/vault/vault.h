/*
 * What is nobody's to read: the site's keys, what is sealed under them, and the secrets of accounts.
 *
 *   keys       a file of the site (0600), beside the store; the first seals, the others only open
 *   sealed     text that says under which key it was made and opens only at its place: kind, owner, name
 *              and version are part of what is authenticated, so a row moved elsewhere does not open. The owner
 *              is an account's serial, not its name: who has the name later opens nothing
 *   documents  a job's document in which the values of `env`, the `command` and the `script` are sealed;
 *              the rest can be read and worked with as before
 *   secrets    of each account, by name, sealed; opened for the node that starts a job and nobody else
 *
 * All functions may be called from any thread. Plain text is never kept here, nor in an error's sentence.
 */
#ifndef ST_VAULT_VAULT_H
#define ST_VAULT_VAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macros.h"
#include "base/strbuf.h"

typedef struct st_vault st_vault;

/* ---- keys (keys.c) ---------------------------------------------------------------------------- */

#define ST_VAULT_KEY_ID 17 /* 16 hex digits and the NUL */

/* Reads the file; with `make`, one that is not there is made. ST_ENOENT: it is not there. One that others
 * than its owner can read is refused. */
int st_vault_open(const char *path, bool make, st_vault **ret, st_err *err);
/* With a key that is in no file and is gone with the process: for tests and trials. */
st_vault *st_vault_new_fleeting(void);
void st_vault_free(st_vault *v);
ST_DEFINE_FREEP(st_vault, st_vault_free)

/* Under which key is sealed now. */
void st_vault_key(st_vault *v, char ret[ST_VAULT_KEY_ID]);
bool st_vault_has_key(st_vault *v, const char *id);
/* A new key that seals from now on; those before remain in the file, for opening. */
int st_vault_renew(st_vault *v, st_err *err);
/* Everything is sealed under the newest: the others leave the file. This process can still open what it
 * holds in memory. */
int st_vault_retire(st_vault *v, st_err *err);

/* ---- sealing (seal.c) --------------------------------------------------------------------------- */

/* Where sealed text belongs. */
typedef struct st_vault_place {
    const char *kind; /* "env", "secret" */
    int64_t owner;    /* the account's serial */
    const char *name; /* inside it */
    int64_t version;
} st_vault_place;

/* Appends "v2.KEY.BASE64". */
void st_vault_seal(st_vault *v, const st_vault_place *place, const void *bytes, size_t n,
                   st_strbuf *out);
/* Appends what was sealed. ST_ECORRUPT: not made here, for another place, or under a key that is gone. */
int st_vault_unseal(st_vault *v, const st_vault_place *place, const char *text, st_strbuf *out,
                    st_err *err);
/* Whether sealed text was made under the newest key, and in the form of today. */
bool st_vault_fresh(st_vault *v, const char *text);

/* Text of the earlier form, "v1.", belonged to the name of an account. It opens here alone, to be sealed anew. */
bool st_vault_named(const char *text);
int st_vault_unseal_named(st_vault *v, const char *owner, const st_vault_place *place,
                          const char *text, st_strbuf *out, st_err *err);

/* Overwrites and frees. */
void st_wipe(st_strbuf *b);

/* ---- documents (document.c) ---------------------------------------------------------------------- */

/* Who is meant, in words that do not change with the row they are in. */
typedef struct st_vault_who {
    int64_t account; /* its serial, 0 the cluster's; one below 0 is nobody's */
    const char *user;
} st_vault_who;

/* Whom a document of the earlier form was sealed for. */
typedef struct st_vault_was {
    const char *account; /* the name */
    int64_t (*serial)(void *ctx, const char *account);
    void *ctx;
} st_vault_was;

/* How much of a document is shown. */
typedef enum st_vault_view {
    ST_VIEW_NAMES, /* names of variables; neither their values nor what is run */
    ST_VIEW_WORK,  /* and the command or script */
    ST_VIEW_ALL,   /* and the values */
} st_vault_view;

/* Appends the document (a JSON object) with its private parts sealed for `job`, whose account and user are
 * authenticated; `by` submitted it. One without private parts stays as it is. */
int st_vault_doc_seal(st_vault *v, const st_vault_who *job, const st_vault_who *by, const char *doc,
                      st_strbuf *out, st_err *err);
/* The same for what the pieces of an array begin with (st_rules_jobs.head). */
int st_vault_head_seal(st_vault *v, const st_vault_who *job, const st_vault_who *by,
                       const char *head, st_strbuf *out, st_err *err);
/* Appends as much of it as `view` says. ST_ECORRUPT: it cannot be opened. */
int st_vault_doc_open(st_vault *v, const st_vault_who *job, const char *doc, st_vault_view view,
                      st_strbuf *out, st_err *err);
/* Whether it was submitted by `who`. */
bool st_vault_doc_by(st_vault *v, const st_vault_who *job, const char *doc,
                     const st_vault_who *who);
/* Seals a document, or with `head` the beginning of one, anew unless it is sealed under the newest key or has nothing
 * to seal; *ret_changed: *out has it. One of the earlier form is opened only if `was` is given. */
int st_vault_doc_renew(st_vault *v, const st_vault_who *job, const st_vault_was *was,
                       const char *text, bool head, st_strbuf *out, bool *ret_changed, st_err *err);

/* ---- secrets (secrets.c) ------------------------------------------------------------------------- */

#define ST_SECRET_NAME_MAX   64
#define ST_SECRET_BYTES_MAX  65536
#define ST_SECRETS_MAX       100 /* of an account */
#define ST_JOB_SECRETS_MAX   32
#define ST_JOB_SECRETS_BYTES (256 * 1024) /* of one job, together */

/* What is known of a secret; texts are the vault's and copied on the way in. */
typedef struct st_secret {
    const char *account, *name;
    int64_t owner; /* the account's serial */
    int64_t version;
    int64_t made_ms, changed_ms;
    const char *by, *by_account; /* who put this value */
    bool below;                  /* jobs of accounts below may use it too */
    const char *sealed;
} st_secret;

/* A secret as it stands in the store. */
void st_secret_write(const st_secret *s, st_strbuf *out);
/* account, name, owner and version are the row's; the texts of *ret are the arena's, if it has one. */
int st_secret_read(const char *doc, st_arena *arena, st_secret *ret, st_err *err);

void st_vault_put(st_vault *v, const st_secret *s);
void st_vault_remove(st_vault *v, const char *account, const char *name);
/* Forgets all of them, before they are read again. */
void st_vault_clear(st_vault *v);
size_t st_vault_count(st_vault *v, const char *account);

typedef void (*st_secret_fn)(void *ctx, const st_secret *s);
/* Those of one account by name; with `below_only` those that jobs below may use. */
void st_vault_each(st_vault *v, const char *account, bool below_only, st_secret_fn fn, void *ctx);

/* The value a job gets under this name: its own account's, else that of the nearest account above which
 * has one for jobs below. `above` begins with the job's own account and ends with NULL. */
int st_vault_secret(st_vault *v, const char *const *above, const char *name, st_strbuf *ret,
                    st_err *err);

/* ---- a job's secrets (deliver.c) ----------------------------------------------------------------- */

/* Whether every secret the document names can be delivered: it is there, and fits. */
int st_vault_check_job(st_vault *v, const char *const *above, const char *doc, st_err *err);
/* Appends `,"secrets":[{"name":…,"env":true,"value":BASE64},…]` for an agent; nothing for a job without. */
int st_vault_deliver(st_vault *v, const char *const *above, const char *doc, st_strbuf *out,
                     st_err *err);

#endif
