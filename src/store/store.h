/*
 * The durable store of stintd: a database behind a small driver table (store/driver.h), read and
 * written through typed helpers, one file per noun. doc/dev/store.md says what may be relied upon.
 *
 * Rules:
 * 1. An st_store is one connection and belongs to one thread. One store has one writer
 *    (st_store_open) and any number of readers (st_store_open_reader), each in a thread of its own.
 * 2. What st_store_commit() acknowledged survives a crash and a power loss. What was not
 *    acknowledged is there as a whole or not at all.
 * 3. What writes does so inside a transaction; outside of one it fails with ST_EINTERNAL. A helper whose row is not as it
 *    must be (ST_EEXIST, ST_ENOENT, ST_ESTATE) may know only at the commit, which then fails; the transaction is lost in
 *    either case.
 * 4. After any failure inside a transaction the only way on is st_store_rollback(); after that, or
 *    after a failed commit (which has rolled back), the store works again as soon as its fault ends.
 * 5. Rows handed to a callback, and all they point to, are good until the callback returns. What a
 *    `get` returns lives in the caller's arena. A callback returns 0 to go on, 1 to stop, or what
 *    st_fail returned, and must not use the same connection.
 *
 * Errors: ST_EFULL the disk is full; ST_EIO an I/O error, or a file system that is read-only;
 * ST_ECORRUPT the data is damaged; ST_ESTATE in use by another process, or another version than
 * expected; ST_EEXIST the row is there already; ST_ENOENT there is no such row.
 */
#ifndef ST_STORE_STORE_H
#define ST_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macros.h"
#include "base/strbuf.h"

typedef struct st_store st_store;

typedef struct st_bytes {
    const void *p;
    size_t n;
} st_bytes;

/* ---- opening -------------------------------------------------------------------------- */

typedef enum st_durability {
    ST_DURABLE_FULL,  /* a commit is on the disk when it returns */
    ST_DURABLE_CRASH, /* survives the process, the last commits may not survive a power loss */
} st_durability;

typedef struct st_store_options {
    bool read_only; /* no lock, no migrations; for looking at a store */
    bool still;     /* read_only, and nobody writes it: a backup. Nothing is made beside it */
    int busy_ms;    /* how long to wait for another connection; 0 is 5 s */
    st_durability durable; /* ST_DURABLE_FULL unless told otherwise */
    bool loose;            /* for tests: a write outside a transaction is one of its own */
    const char *vfs;       /* for tests: the SQLite VFS to use, NULL is the system's */
} st_store_options;

/* Opens the store at `where`: a path or "sqlite:PATH". Unless read_only, creates the file (0600) if
 * it is not there, takes the lock PATH.lock, and brings the schema up to date. o may be NULL. */
int st_store_open(const char *where, const st_store_options *o, st_store **ret, st_err *err);

/* One more connection that sees what is committed, for another thread. The store outlives it. */
int st_store_open_reader(const st_store *store, st_store **ret, st_err *err);

/* Rolls back what is open. */
void st_store_close(st_store *store);
ST_DEFINE_FREEP(st_store, st_store_close)

/* Where a file of the site is that nobody has given a place for: a key, logs, backups. Only the store knows whether there
 * is a folder that is its own. */
void st_store_beside(const st_store *store, const char *name, st_strbuf *out);
void st_store_beside_of(const char *where, const char *name, st_strbuf *out);
/* Whether a store is that file; whether somebody writes it at the moment. */
bool st_store_is_file(const char *where, const char *file);
bool st_store_is_written(const char *where);

/* The schema's version in the file. */
int st_store_schema(st_store *store, int64_t *ret_version, st_err *err);

/* ---- transactions --------------------------------------------------------------------- */

/* On a reader, begin fixes the moment that is read until commit or rollback. */
int st_store_begin(st_store *store, st_err *err);
int st_store_commit(st_store *store, st_err *err);
void st_store_rollback(st_store *store); /* also when nothing is open */
/* Commits where r is 0, else rolls back; r, or the failure of the commit. */
int st_store_end(st_store *store, int r, st_err *err);
bool st_store_in_transaction(const st_store *store);

/* ---- meta: small facts about the store ------------------------------------------------- */

int st_store_meta_put(st_store *store, const char *key, const char *value, st_err *err);
/* Only where it is still `was`, NULL: not there; ST_ESTATE otherwise, at once or at the commit. */
int st_store_meta_swap(st_store *store, const char *key, const char *was, const char *value,
                       st_err *err);
/* ST_ENOENT if it was never put. */
int st_store_meta_get(st_store *store, const char *key, st_arena *a, const char **ret, st_err *err);

/* ---- log and snapshots: the core as its input ------------------------------------------- */

typedef struct st_log_row {
    int64_t seq; /* 1, 2, 3, … without gaps */
    int64_t at_ms;
    const char *version; /* of the core that wrote it */
    st_bytes data;
    uint64_t hash; /* of the core's effects afterwards */
} st_log_row;

typedef int (*st_log_fn)(void *ctx, const st_log_row *row, st_err *err);

/* row->seq must be the last one + 1 (ST_ESTATE otherwise). */
int st_store_log_append(st_store *store, const st_log_row *row, st_err *err);
/* All rows with seq >= from, in order; a gap among them is ST_ECORRUPT. */
int st_store_log_read(st_store *store, int64_t from, st_log_fn fn, void *ctx, st_err *err);
/* The newest row's seq or the newest snapshot's, whichever is greater; 0 for a new store. */
int st_store_log_last(st_store *store, int64_t *ret_seq, st_err *err);
/* Removes rows that no snapshot needs any more, the oldest first, at most `limit`; tells how many. Those behind the oldest
 * snapshot are needed. */
int st_store_log_prune(st_store *store, int64_t limit, int64_t *ret_n, st_err *err);

typedef struct st_snap_row {
    int64_t seq; /* the last log row that is in it */
    int64_t at_ms;
    const char *version;
    st_bytes data;
} st_snap_row;

/* Keeps the newest two and, of those before, the first of each hour of the last day and of each quarter of the days before, back to since_ms (and the one before that), so that
 * the log can be played from there; INT64_MAX: no others. */
int st_store_snap_put(st_store *store, const st_snap_row *row, int64_t since_ms, st_err *err);
/* How far back the log can be played, and from where a moment is best played to. */
typedef struct st_store_reach {
    int64_t first_ms; /* the first moment there is a state of; -1: none */
    bool whole;       /* the log begins with its first row */
    int64_t snap_seq; /* of the newest snapshot that is not later than the moment; 0: none */
} st_store_reach;

int st_store_log_reach(st_store *store, int64_t at_ms, st_store_reach *ret, st_err *err);

/* The newest with seq <= upto (INT64_MAX for any); ST_ENOENT if there is none. */
int st_store_snap_get(st_store *store, int64_t upto, st_arena *a, st_snap_row *ret, st_err *err);

/* ---- under which accounts a row stands ----------------------------------------------------- */

#define ST_STORE_DEPTH 8

/* The serials of the accounts above it and its own, from the top; 0 behind that. */
typedef struct st_stands {
    int64_t in[ST_STORE_DEPTH];
} st_stands;

/* Rows of an account and all below it: those with its serial at its level, 1 at the top. Level 0 is everything. */
typedef struct st_within {
    int level;
    int64_t serial;
} st_within;

/* Rows from before there was this: all jobs filed under `account`, and its rows of the audit log with
 * after < seq <= upto. */
int st_store_jobs_stand(st_store *store, const char *account, const st_stands *stands, st_err *err);
int st_store_audit_stand(st_store *store, const char *account, int64_t after, int64_t upto,
                         const st_stands *stands, st_err *err);

/* ---- jobs ------------------------------------------------------------------------------- */

#define ST_STORE_NEVER (-1) /* a start, end, expiry or exit status that is not (yet) there */

typedef struct st_job_row {
    int64_t id;
    const char *account, *user_name, *name;
    const char *state, *class_name;
    int64_t submit_ms, start_ms, end_ms; /* ST_STORE_NEVER while not known */
    int64_t priority, gpu_m, preemptions, lost;
    int64_t exit_code;  /* ST_STORE_NEVER while not known */
    const char *reason; /* "" for none */
    /* Documents; result is "" until it ended. Of a piece of an array `spec` is written as its own
     * part, what it shares is in st_store_array_put, and it is read as the two together. */
    const char *spec, *result;
    int64_t part_of; /* the first job of the array it belongs to; 0: none */
    st_stands stands;
} st_job_row;

typedef int (*st_job_row_fn)(void *ctx, const st_job_row *row, st_err *err);

int st_store_job_insert(st_store *store, const st_job_row *row, st_err *err);
/* Writes everything but id, account, user_name, submit_ms, spec and part_of; ST_ENOENT. */
int st_store_job_update(st_store *store, const st_job_row *row, st_err *err);
/* Replaces the document, after a change by its owner. */
int st_store_job_put_spec(st_store *store, int64_t id, const char *spec, st_err *err);
/* All jobs of an account go by another name from now on: it was removed. */
int st_store_jobs_refile(st_store *store, const char *from, const char *to, st_err *err);
int st_store_job_get(st_store *store, int64_t id, st_arena *a, st_job_row *ret, st_err *err);

/* What the documents of an array's pieces begin with; replaces what is there. */
int st_store_array_put(st_store *store, int64_t id, const char *head, st_err *err);
/* ST_ENOENT: its pieces share nothing. */
int st_store_array_get(st_store *store, int64_t id, st_arena *a, const char **ret, st_err *err);

/* Removes jobs that ended before a moment, at most `limit`, and what arrays without pieces shared; tells how many jobs.
 * The newest job stays: its number says which were given. */
int st_store_jobs_prune(st_store *store, int64_t before_ms, int64_t limit, int64_t *ret_n,
                        st_err *err);

/* What is empty or NULL does not filter. */
typedef struct st_job_filter {
    st_within within;
    bool live; /* only what is not over */
    const char *const *states;
    size_t nstates;
    const char *user_name;
    const char *name_has;   /* part of the name, letters as they are */
    int64_t part_of;        /* pieces of this array; 0: all jobs */
    int64_t before_id;      /* cursor: ids below it; 0 begins with the newest */
    int64_t ended_since_ms; /* only what ended at or after it; 0 is everything */
    /* Only what was there at some time between the two, the first and the last moment included: not over before the
     * one, and submitted by the other. 0 is no bound. */
    int64_t there_since_ms, there_until_ms;
    int64_t limit; /* rows at most; 0 is no limit */
    bool own_part; /* `spec` as it was written: of a piece its own part alone */
    int64_t scan;  /* jobs looked at at most; 0 is no limit */
} st_job_filter;

/* States are at most a few dozen. Newest (greatest id) first. */
int st_store_jobs_list(st_store *store, const st_job_filter *f, st_job_row_fn fn, void *ctx,
                       st_err *err);
/* The last job that a list with `scan` looks at; 0: it looks at all there are. */
int st_store_jobs_reach(st_store *store, const st_job_filter *f, int64_t *ret_id, st_err *err);
/* How many the filter lets through; cursor and limit do not count. */
int st_store_jobs_count(st_store *store, const st_job_filter *f, int64_t *ret, st_err *err);

/* ---- tokens ----------------------------------------------------------------------------- */

typedef struct st_token_row {
    int64_t id;
    st_bytes hash; /* of the secret; no two tokens have the same */
    const char *account, *user_name, *role, *label;
    int64_t created_ms;
    int64_t expires_ms, revoked_ms, last_used_ms; /* ST_STORE_NEVER */
} st_token_row;

typedef int (*st_token_fn)(void *ctx, const st_token_row *row, st_err *err);

int st_store_token_insert(st_store *store, const st_token_row *row, st_err *err);
/* ST_ENOENT unless it is there and not revoked. */
int st_store_token_revoke(st_store *store, int64_t id, int64_t at_ms, st_err *err);
/* ST_ENOENT. Its number is not given again: the caller sees to that. */
int st_store_token_remove(st_store *store, int64_t id, st_err *err);
/* Revoked tokens of an account, made until then, go by another name of it from now on: it was removed. */
int st_store_tokens_refile(st_store *store, const char *from, const char *to, int64_t until_ms,
                           st_err *err);
int st_store_token_used(st_store *store, int64_t id, int64_t at_ms, st_err *err);
int st_store_token_get(st_store *store, int64_t id, st_arena *a, st_token_row *ret, st_err *err);
/* All, by id, with those revoked. */
int st_store_tokens(st_store *store, st_token_fn fn, void *ctx, st_err *err);

/* ---- audit: who did what, in a chain of hashes ------------------------------------------ */

#define ST_AUDIT_HASH 32

typedef struct st_audit_row {
    int64_t seq; /* given by append: 1, 2, 3, … */
    int64_t at_ms;
    const char *actor, *account, *source, *verb, *target, *detail;
    st_bytes hash;    /* given by append */
    st_stands stands; /* no part of what is hashed */
} st_audit_row;

typedef int (*st_audit_fn)(void *ctx, const st_audit_row *row, st_err *err);

/* seq and hash of *row are not read; ret_seq may be NULL. */
int st_store_audit_append(st_store *store, const st_audit_row *row, int64_t *ret_seq, st_err *err);

typedef struct st_audit_verdict {
    int64_t rows;    /* good ones, from the start */
    int64_t bad_seq; /* the first that is wrong or missing; 0 if all is well */
    char why[200];
    unsigned char head[ST_AUDIT_HASH]; /* the hash of the last good row: keep it elsewhere, and a
                                        * chain that was cut short or written anew is found */
} st_audit_verdict;

/* Follows the chain from the start. A broken chain is a verdict, not an error. */
int st_store_audit_verify(st_store *store, st_audit_verdict *ret, st_err *err);

typedef struct st_audit_filter {
    st_within within;
    int64_t before_seq, limit;  /* as in st_job_filter */
    const char *by;             /* by a user of this name, of whatever account; NULL: anybody */
    const char *what;           /* this verb, or every one of this noun; NULL: any */
    int64_t since_ms, until_ms; /* from the first to before the second; 0: no end */
} st_audit_filter;

/* Newest first. */
int st_store_audit_list(st_store *store, const st_audit_filter *f, st_audit_fn fn, void *ctx,
                        st_err *err);

/* ---- idempotency keys ------------------------------------------------------------------- */

typedef struct st_idem_row {
    const char *owner, *key; /* together unique */
    int64_t at_ms;
    st_bytes digest; /* of the request */
    const char *answer;
    int64_t status;
} st_idem_row;

int st_store_idem_get(st_store *store, const char *owner, const char *key, st_arena *a,
                      st_idem_row *ret, st_err *err);
/* ST_EEXIST if the owner has used the key. */
int st_store_idem_put(st_store *store, const st_idem_row *row, st_err *err);
/* Its answer has become longer; ST_ENOENT. */
int st_store_idem_more(st_store *store, const char *owner, const char *key, const char *answer,
                       st_err *err);
/* How many each owner has. */
/* It is as if the key had not been used; nothing for one that was not. */
int st_store_idem_drop(st_store *store, const char *owner, const char *key, st_err *err);
typedef int (*st_idem_owner_fn)(void *ctx, const char *owner, int64_t n, st_err *err);
int st_store_idem_owners(st_store *store, st_idem_owner_fn fn, void *ctx, st_err *err);
int st_store_idem_expire(st_store *store, int64_t before_ms, int64_t *ret_n, st_err *err);

/* ---- documents: small ones with a version --------------------------------------------- */

typedef struct st_document_row {
    const char *kind, *name; /* together unique */
    int64_t version;         /* 1, 2, 3, … */
    int64_t at_ms;
    const char *doc;
} st_document_row;

typedef int (*st_document_fn)(void *ctx, const st_document_row *row, st_err *err);

int st_store_document_get(st_store *store, const char *kind, const char *name, st_arena *a,
                          st_document_row *ret, st_err *err);
/* Writes version row->version + 1 over version row->version; 0 means that it must not exist. If the
 * store has another version: ST_ESTATE, and nothing is changed. */
int st_store_document_put(st_store *store, const st_document_row *row, st_err *err);
/* ST_ENOENT if it is not there, ST_ESTATE if it has another version. */
int st_store_document_delete(st_store *store, const char *kind, const char *name, int64_t version,
                             st_err *err);
/* By name; kind NULL is everything, by kind and name. */
int st_store_documents(st_store *store, const char *kind, st_document_fn fn, void *ctx,
                       st_err *err);

/* ---- the books: entries about usage and money, and what was signed ------------------------ */

/* What is in `data` and how `chain` follows from it is the ledger's (proof/proof.h). */
typedef struct st_book_row {
    int64_t n;           /* 1, 2, 3, … over all books, in the order they were made */
    const char *account; /* whose book */
    int64_t seq;         /* 1, 2, 3, … in it */
    int64_t at_ms;
    const char *period; /* in which it counts */
    const char *job;    /* what people call it; "" none */
    const char *data;
    st_bytes chain;
} st_book_row;

typedef int (*st_book_fn)(void *ctx, const st_book_row *row, st_err *err);

/* row->n is the last one + 1; its place and that in the account's book must be free (ST_ESTATE). */
int st_store_book_append(st_store *store, const st_book_row *row, st_err *err);
/* The last entry's n; 0: none. */
int st_store_book_last(st_store *store, int64_t *ret_n, st_err *err);
/* All entries with from <= n <= to, in order; a gap among them is ST_ECORRUPT. */
int st_store_book_read(st_store *store, int64_t from, int64_t to, st_book_fn fn, void *ctx,
                       st_err *err);
/* Of one account's book, from <= seq <= to; a gap is ST_ECORRUPT. */
int st_store_book_of(st_store *store, const char *account, int64_t from, int64_t to, st_book_fn fn,
                     void *ctx, st_err *err);
/* Everything about one job, oldest first. */
int st_store_book_of_job(st_store *store, const char *job, st_book_fn fn, void *ctx, st_err *err);

typedef struct st_checkpoint_row {
    int64_t n; /* the last entry that is covered */
    int64_t at_ms;
    const char *data;
} st_checkpoint_row;

typedef int (*st_checkpoint_fn)(void *ctx, const st_checkpoint_row *row, st_err *err);

/* Replaces one for the same n. */
int st_store_checkpoint_put(st_store *store, const st_checkpoint_row *row, st_err *err);
int st_store_checkpoint_last(st_store *store, st_arena *a, st_checkpoint_row *ret, st_err *err);
/* All with n >= from, in order. */
int st_store_checkpoints(st_store *store, int64_t from, st_checkpoint_fn fn, void *ctx,
                         st_err *err);

/* ---- figures over time ------------------------------------------------------------------- */

/* What is in `data`, and which rows are in which part, is series/series.h's. */
typedef struct st_series_blob {
    int64_t width_ms, kind, part;
    int64_t at_ms; /* the beginning of the bucket */
    st_bytes data;
} st_series_blob;

typedef int (*st_series_blob_fn)(void *ctx, const st_series_blob *blob, st_err *err);

/* Replaces what is there. */
int st_store_series_put(st_store *store, const st_series_blob *blob, st_err *err);
/* Of one part, from <= at_ms < to, in order. */
int st_store_series_read(st_store *store, const st_series_blob *of, int64_t from_ms, int64_t to_ms,
                         st_series_blob_fn fn, void *ctx, st_err *err);
/* How many parts a kind has in buckets of this width: all that are there have lower numbers. */
int st_store_series_parts(st_store *store, int64_t width_ms, int64_t kind, int64_t *ret,
                          st_err *err);
/* The oldest and the newest bucket of a part; -1: it has none. */
int st_store_series_span(st_store *store, const st_series_blob *of, int64_t *ret_first_ms,
                         int64_t *ret_last_ms, st_err *err);
/* The next width above one that has buckets; 0: there is none. */
int st_store_series_next_width(st_store *store, int64_t above_ms, int64_t *ret_ms, st_err *err);
/* Removes those of one part that began before a moment. */
int st_store_series_prune(st_store *store, const st_series_blob *of, int64_t before_ms,
                          st_err *err);

/* ---- check and backup ------------------------------------------------------------------- */

/* One sentence about something that is wrong. */
typedef void (*st_finding_fn)(void *ctx, const char *sentence);

/* Looks at everything: the database's structure, the log without gaps behind the snapshot, the
 * audit chain, the states of jobs (one of `states`, unless that is NULL). Findings are told, not
 * returned; an error means that the check could not be done. ret_n is the number of findings. */
int st_store_check(st_store *store, const char *const *states, size_t nstates, st_finding_fn fn,
                   void *ctx, int64_t *ret_n, st_err *err);

/* Writes a copy as of one moment to `path` (0600), while others write. ST_EEXIST: something is there already, and stays.
 * Works on a connection of its own and may be called from any thread. */
int st_store_backup(const st_store *store, const char *path, st_err *err);

/* A backup in the place of the store, in two steps. `stage` copies it to a name that is no store's yet, where it can be
 * opened, checked and changed; `replace` gives it the store's place in one move, while nobody has the store open, and what
 * was there another name with `when` in it. `unstage` removes what is left of a copy. */
int st_store_stage(const char *where, const char *backup, st_strbuf *ret_staged, st_err *err);
int st_store_replace(const char *where, const char *staged, const char *when, st_strbuf *ret_aside,
                     st_err *err);
void st_store_unstage(const char *where, const char *staged);

/* What it takes on the disk, with its log; -1: not known. */
int64_t st_store_bytes(const st_store *store);

/* Writes the file anew, so that nothing of what was replaced or deleted can be found in it or its log. As long as
 * copying it; outside a transaction. */
int st_store_scrub(st_store *store, st_err *err);

#endif
