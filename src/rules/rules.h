/*
 * What a submit goes through before the core sees it: a size becomes a shape, a workload type
 * becomes defaults and an estimate, the site's own rules in Lua have their say, and an array
 * becomes its jobs. doc/run/rules.md is the user's page.
 *
 * In comes one job document (the keys of POST /v1/jobs, src/spec/submit.c) and who submits it;
 * out come one or more complete documents, or one sentence that says why not. The order is
 *
 *   1. prepare(job, who) of every script that has one, in order of the scripts' names: the
 *      document as it was written; for changing `size`, `workload` and their options
 *   2. size, then workload: every key they stand for is filled in unless the document has it
 *   3. submit(job, who) of every script, in order of their names: the document complete, and
 *      whatever the scripts leave is what counts
 *   4. frames and arrays are cut into documents, one per piece
 *
 * The documents that come out are still to be read by st_spec_submit: scripts may write
 * anything, and the account and user in them are still to be checked against the caller's.
 *
 * Everything here may be called from any thread at any time. Scripts run in a pool of Lua states:
 * a call takes one that nobody else has, or makes one; the lock is held for taking and giving
 * back, never while a script runs. A script that is replaced or removed stays what it was for
 * the calls that have begun.
 */
#ifndef ST_RULES_RULES_H
#define ST_RULES_RULES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/doc.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/mig.h"
#include "model/types.h"
#include "rules/estimate.h"

typedef struct st_rules st_rules;
typedef struct st_sizes st_sizes;

/* A GPU type of the fleet, as estimates need it. */
typedef struct st_rules_type {
    char name[ST_NAME_MAX + 1];
    int64_t vram_mib;
    st_board board;
    int node_gpus; /* most GPUs of one node; 0: unknown, taken as 8 */
} st_rules_type;

typedef struct st_rules_limits {
    int64_t steps;  /* Lua instructions, and work of that size inside library functions */
    int64_t cpu_ms; /* CPU time of the calling thread */
    size_t memory;  /* bytes, for the script's data and the document */
} st_rules_limits;

/* 1,000,000 steps, 250 ms, 16 MiB: for one call of one script. */
#define ST_RULES_LIMITS_DEFAULT                                     \
    {                                                               \
        .steps = 1000000, .cpu_ms = 250, .memory = (size_t)16 << 20 \
    }

#define ST_RULES_SCRIPTS_MAX 64
#define ST_RULES_TEXT_MAX    ((size_t)256 << 10) /* bytes in one script */

typedef struct st_rules_options {
    st_rules_limits limits; /* all 0: the default */
    /* A script that fails (an error in it, too many steps, too much memory) refuses the submit.
     * With fail_open the submit goes on as if the script were not there. A script that refuses
     * has not failed. */
    bool fail_open;
    const st_estimate_rules *estimate; /* of memory; NULL: the default. Copied */
    /* Writes the fleet's types, at most ST_TYPES_MAX, and returns how many. Called from any
     * thread that submits. NULL: the types of st_spec_known_types(). */
    size_t (*types)(void *ctx, st_rules_type ret[ST_TYPES_MAX]);
    void *ctx;
} st_rules_options;

/* options may be NULL. */
st_rules *st_rules_new(const st_rules_options *options);
void st_rules_free(st_rules *rules);
ST_DEFINE_FREEP(st_rules, st_rules_free)

typedef struct st_rules_who {
    const char *account, *user, *role;
    /* The account and those above it, nearest first, NULL at the end: where sizes are looked up
     * before those of the cluster. NULL: the account alone. */
    const char *const *above;
    bool trusted;    /* may share a GPU with others of its domain (MPS) */
    int64_t now_ms;  /* since the epoch, UTC; who.now in scripts */
    int64_t zone_ms; /* local time minus UTC; who.now has local time */
} st_rules_who;

/* What one document became. The pieces of an array share most of their text, so that is there once:
 * `head` followed by a piece's own `tail` is the piece's document, as JSON. */
typedef struct st_rules_piece {
    char *tail;
    int64_t index;
    char *name; /* as it stands in the document; NULL: not an array, so look there */
} st_rules_piece;

typedef struct st_rules_jobs {
    char *head; /* "": this is no array, and the only tail is the whole */
    ST_VEC(st_rules_piece) pieces;
} st_rules_jobs;

void st_rules_jobs_done(st_rules_jobs *jobs);

/* Takes a document, JSON text, through the rules; *ret has at least one piece. Fails with
 * ST_EREFUSED when a rule refuses, ST_EINTERNAL when a script fails, and ST_EINVAL, ST_EPARSE,
 * ST_ERANGE or ST_ENOENT for what is wrong with the document. */
int st_rules_apply_text(st_rules *rules, const st_rules_who *who, const char *text, size_t len,
                        st_rules_jobs *ret, st_err *err);

/* What the estimate says today of the GPU memory of a complete job, on the GPUs of one task; false: it estimates nothing. */
bool st_rules_estimate(const st_rules *rules, const json_t *job, int64_t *ret_mib);

/* A document as text that st_doc_parse reads back exactly: jansson by itself writes 0.1 with
 * seventeen digits. The caller frees it. */
char *st_rules_text(const json_t *job);

/* Whether st_rules_apply could do anything to this document: there are scripts, or it has one of
 * the keys. A caller that has `false` saves itself the way through JSON. */
bool st_rules_concerns(st_rules *rules, const st_doc_node *job);

/* ---- scripts --------------------------------------------------------------------------- */

/* Adds or replaces a script, from the next submit on. It is compiled and its top level is run
 * first; if that fails, or it has neither submit nor prepare, the one that was there stays. The
 * message has the script's name and line. `version` is told in the list and means nothing here. */
int st_rules_put(st_rules *rules, const char *name, const char *text, int64_t version, st_err *err);
int st_rules_remove(st_rules *rules, const char *name, st_err *err);

/* What st_rules_put would say, and nothing is changed. */
int st_rules_check(st_rules *rules, const char *name, const char *text, st_err *err);

/* [{name, version, text, calls, refused, failed, last_error}], in the order they run; counts since the
 * name was first put. */
json_t *st_rules_list(st_rules *rules);

/* ---- sizes ----------------------------------------------------------------------------- */

/* Names for shapes. A size is a document with keys of a job: gpus, tasks, type, cpu, ram, level,
 * profile, share, vram, topology, limit, on_preempt, pool, priority, latency_critical, and
 * `about`, a line for people. small, medium and large are there from the start and may be
 * replaced; removing one's own brings them back. An account "" is the cluster. */
st_sizes *st_rules_sizes(st_rules *rules);

/* `version` is told in the list and means nothing here. */
int st_sizes_set(st_sizes *sizes, const char *account, const char *name, const json_t *doc,
                 int64_t version, st_err *err);
int st_sizes_remove(st_sizes *sizes, const char *account, const char *name, st_err *err);

/* [{name, account, builtin, version, size}], by name; those of these accounts and of the cluster. What is
 * hidden behind a nearer one is left out. */
json_t *st_sizes_list(st_sizes *sizes, const char *const *above);

#endif
