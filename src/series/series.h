/*
 * Figures over time: what accounts, nodes, GPUs and jobs had, in buckets of fixed width.
 *
 * A bucket has sums over its time, never averages. So a wide bucket is the sum of the narrow ones in it, whatever was
 * lost is missing from both sides of a fraction, and what is read (GPUs held, utilisation, watts) is one column divided
 * by another. A column that nobody measured is not there: unknown is not 0.
 *
 * Many rows of one kind that are close to each other are one part, and a part of a bucket is one blob in the store.
 *
 * Invariants:
 *  1 Merging sets, in whatever groups, gives the same sums: of columns that are LAST, the newest.
 *  2 What st_series_carry hands out and what it leaves behind is what there was. Nothing is rounded away.
 *  3 What st_series_encode writes, st_series_decode reads back as it was. Any other bytes are refused or are a set.
 *
 * Place in the law: base <- series. Pure. The store keeps blobs (store/store.h), control fills them (control/series.c), the
 * API reads them.
 */
#ifndef ST_SERIES_SERIES_H
#define ST_SERIES_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

/* X(id, word, in how many parts: see st_series_part). Numbers are in stores: only ever add behind. */
#define ST_SERIES_KIND_TABLE(X)     \
    X(ST_SERIES_ACCOUNT, "account") \
    X(ST_SERIES_NODE, "node")       \
    X(ST_SERIES_GPU, "gpu")         \
    X(ST_SERIES_JOB, "job")
typedef enum st_series_kind {
#define X(id, word) id,
    ST_SERIES_KIND_TABLE(X)
#undef X
        ST_SERIES_KINDS
} st_series_kind;

const char *st_series_kind_word(st_series_kind kind);
int st_series_kind_parse(const char *word); /* -1: none of them */

/* X(id, last). Numbers are in stores: only ever add behind. `last`: no sum, the newest counts. */
#define ST_SERIES_COLUMN_TABLE(X)                                                                \
    X(ST_SERIES_WATCHED, false)    /* ms in which it was looked at */                            \
    X(ST_SERIES_AWAY, false)       /* ms of these in which the node had failed */                \
    X(ST_SERIES_CAPACITY, false)   /* milli-GPU x ms that were there and healthy; the cluster */ \
    X(ST_SERIES_HELD, false)       /* milli-GPU x ms that jobs had */                            \
    X(ST_SERIES_GUARANTEED, false) /* of these, as guaranteed */                                 \
    X(ST_SERIES_FLOOR, false)      /* milli-GPU x ms of its floor */                             \
    X(ST_SERIES_SHARE, false)      /* dominant share of what it holds, millionths x ms */        \
    X(ST_SERIES_RUNNING, false)    /* jobs on devices x ms */                                    \
    X(ST_SERIES_WAITING, false)    /* jobs that wait x ms */                                     \
    X(ST_SERIES_WANTED, false)     /* milli-GPU x ms that those who wait ask for */              \
    X(ST_SERIES_SEEN, false)       /* GPU-ms with samples of how busy they were */               \
    X(ST_SERIES_BUSY, false)       /* GPU-ms of these with a kernel running */                   \
    X(ST_SERIES_POWERED, false)    /* GPU-ms with samples of energy */                           \
    X(ST_SERIES_ENERGY, false)     /* mJ */                                                      \
    X(ST_SERIES_FILLED, false)     /* GPU-ms with samples of memory */                           \
    X(ST_SERIES_MEMORY, false)     /* MiB x s of memory in use on devices */                     \
    X(ST_SERIES_SPENT, true)       /* micro-dollars since the month began, as far as known */    \
    X(ST_SERIES_WARMED, false)     /* GPU-ms with samples of temperature */                      \
    X(ST_SERIES_HEAT, false)       /* C x s of these */
typedef enum st_series_column {
#define X(id, last) id,
    ST_SERIES_COLUMN_TABLE(X)
#undef X
        ST_SERIES_COLUMNS
} st_series_column;

typedef struct st_series_row {
    uint64_t id;
    uint32_t has; /* bit per column */
    int64_t v[ST_SERIES_COLUMNS];
} st_series_row;

/* By id, each at most once. */
typedef struct st_series_set {
    ST_VEC(st_series_row) rows;
} st_series_set;

void st_series_set_done(st_series_set *set);

/* Devices of a node, as ids. */
#define ST_SERIES_GPUS              16 /* to a node, in ids */
#define ST_SERIES_GPU_ID(node, gpu) ((uint64_t)(node)*ST_SERIES_GPUS + (uint64_t)(gpu))

/* In which part of its kind a row is. */
int64_t st_series_part(st_series_kind kind, uint64_t id);

/* Adds a column to a row; v is nothing new where it was not measured. */
void st_series_put(st_series_row *row, st_series_column column, int64_t v);
/* What came `more` later goes into `to`. */
void st_series_add(st_series_row *to, const st_series_row *more);
void st_series_merge(st_series_set *to, const st_series_set *more);
/* NULL: it is not in there. */
const st_series_row *st_series_find(const st_series_set *set, uint64_t id);

/* Takes out of what was gathered what a blob of this kind can say; what is below its units stays for the next bucket. */
void st_series_carry(st_series_kind kind, st_series_row *gathered, st_series_row *ret);
/* Whether a row says anything. */
bool st_series_says(const st_series_row *row);

/* Appends the set as one blob. Values are multiples of the kind's units, as st_series_carry gives them. */
void st_series_encode(st_series_kind kind, const st_series_set *set, st_strbuf *out);
/* ST_ECORRUPT: it is none of ours. */
int st_series_decode(st_series_kind kind, const void *data, size_t n, st_series_set *ret,
                     st_err *err);

/* The bucket of a width that a moment is in, by its beginning. */
int64_t st_series_bucket(int64_t at_ms, int64_t width_ms);

#endif
