/*
 * The demand that a stintd recorded, played again through the same core under another policy, other accounts, another
 * fleet or other prices; and both side by side. doc/run/simulate.md says how it is used, doc/reference/traces.md compares it with traces.
 *
 * The log is played twice. The first time (ST_WAS) as it was written: every row must lead to the hash it led to then.
 * That also tells how long each job really had to run, how long saving took, and when people did what. The second time
 * (ST_WOULD) with the changes. As long as all effects are the same, rows are played as they are; so with nothing changed
 * the second side is the first, effect for effect. From the first effect that differs on, only what came from outside
 * is taken from the log (submits, cancels, changes by people, nodes that fail and return); jobs end once they have run
 * as long as they really did, and save as fast as they really did.
 *
 * The store is opened for reading only. Documents of jobs, secrets, tokens and keys are not read.
 */
#ifndef ST_REPLAY_REPLAY_H
#define ST_REPLAY_REPLAY_H

#include <stdio.h>

#include "base/arena.h"
#include "base/doc.h"
#include "core/core.h"
#include "trace/stats.h"
#include "trace/trace.h"

typedef enum st_side { ST_WAS, ST_WOULD, ST_SIDES } st_side;

typedef struct st_rerun_options {
    const char *path;       /* of a store, or of a copy of one */
    bool backup;            /* nobody writes it: nothing is made beside it */
    int64_t from_ms, to_ms; /* what is counted; ST_UNSET: from the first submit, to the end */
    /* Lays what is to be different over a policy that was in force; NULL: as it was. */
    int (*policy)(void *ctx, st_policy *policy, st_err *err);
    void *policy_ctx;
    const st_doc
        *accounts; /* a scenario's key `accounts`: who is named is so from from_ms on; NULL */
    const st_doc
        *fleet; /* a scenario's keys `fleet`, `pools`, `types`: the nodes; NULL: as they were */
    const char *prices; /* the text of a price book; NULL: as they were */
    size_t nprices;
    bool react; /* for tests: as if something had differed from the beginning */
    void (*progress)(void *ctx, int done_m); /* NULL */
    void *ctx;
} st_rerun_options;

/* One side over the time that is counted. */
typedef struct st_rerun_figures {
    uint64_t started, ended, refused; /* of the jobs that are counted */
    st_spread wait;                   /* ms; of those that have not started, up to now */
    double allocated_gpu_hours, capacity_gpu_hours;
    double lost_gpu_hours;
    uint64_t preemptions;
    double jain; /* of what accounts got of what they were entitled to */
    int64_t bill_udollars;
    uint64_t hash; /* of all effects */
} st_rerun_figures;

typedef struct st_rerun_share {
    double gpu_hours, lost_gpu_hours;
    double wait_ms; /* mean */
    double turn_ms; /* mean from submit to end; of those that have not ended, up to now */
    uint64_t preemptions, refused;
    int64_t bill_udollars; /* with all below */
} st_rerun_share;

typedef struct st_rerun_account {
    const char *name;
    const char *parent; /* NULL: none, or not there any more */
    uint64_t jobs;
    st_rerun_share side[ST_SIDES];
    uint64_t sooner, later; /* jobs that would have ended sooner, or later */
    int verdict;            /* 1: better off; -1: worse; 0: neither */
} st_rerun_account;

typedef struct st_rerun {
    st_arena *arena;
    int64_t from_ms, to_ms;
    int64_t rows;      /* of the log, that are counted */
    uint64_t jobs;     /* that came, or had not started yet */
    bool same;         /* nothing differed */
    int64_t differ_ms; /* else when the first effect did */
    int64_t
        parted; /* the first row that this version decides otherwise than the one that wrote it; 0: none */
    const char *written_by;
    uint64_t sooner, later, alike;
    st_rerun_figures side[ST_SIDES];
    ST_VEC(st_rerun_account) accounts; /* that had jobs or pay, by name */
    st_trace *trace;                   /* what was demanded, with names replaced */
} st_rerun;

int st_rerun_play(const st_rerun_options *options, st_rerun **ret, st_err *err);
void st_rerun_free(st_rerun *run);
ST_DEFINE_FREEP(st_rerun, st_rerun_free)

/* The trace's fleet and accounts, for `stint sim trace --world`; its jobs are written by st_gen_write_jobs. */
void st_rerun_write_world(const st_trace *trace, FILE *out);

#endif
