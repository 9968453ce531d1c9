/* Neighbour: who slows whom on a shared GPU, and what is done about it (doc/dev/neighbour.md).
 *
 * One st_nb is one device. It is told, again and again, what each task on it has done so far: GPU time, and how often a
 * request took how long. It answers with what each task is to be told (an order) and with what was found (notes).
 *
 * Invariants
 *  1 The same samples give the same orders and notes: no clock, no chance.
 *  2 At most one case is open at a time. An order concerns its victim or its suspect, nobody else, and is gone with either.
 *  3 Nobody is capped or held responsible who was not confirmed: paused, let go and paused again, with the victim better,
 *    worse and better.
 *  4 What did not help is taken back. What helped is taken back after a while, to see whether it is still needed.
 *
 * Place in the law: base <- neighbour <- agent. */
#ifndef ST_NEIGHBOUR_NEIGHBOUR_H
#define ST_NEIGHBOUR_NEIGHBOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ST_NB_TASKS 32  /* on one device */
#define ST_NB_TIMES 448 /* steps of a table of times, sixteen to a doubling */

/* X(name, default, least, most, about): the thresholds. */
#define ST_NB_POLICY(X)                                                                           \
    X(window_ms, 600, 100, 60000,                                                                 \
      "shortest window in which requests are looked at together, in ms")                          \
    X(window_max_ms, 1500, 100, 600000, "then a third of the requests will do, in ms")            \
    X(requests, 300, 50, 100000, "requests in a window")                                          \
    X(ratio_pct, 125, 105, 1000, "p99 over its usual value that is slow, in per cent")            \
    X(slow, 4, 1, 16, "slow windows that raise a suspicion; fewer do where chance is out")        \
    X(of, 5, 1, 16, "windows that are looked at for that")                                        \
    X(learn, 8, 2, 1000, "windows until a usual value is known")                                  \
    X(follow_ms, 60000, 1000, 3600000, "a slowdown follows an arrival or growth within, in ms")   \
    X(grow_pm, 100, 10, 1000, "GPU time, of 1000, by which a neighbour arrives or grows")         \
    X(dwell_ms, 2000, 0, 600000, "pause between two cases on a device, in ms")                    \
    X(pardon_ms, 600000, 0, 86400000, "who was tested and let go is not tested again for, in ms") \
    X(hold_ms, 300000, 1000, 86400000, "an action that helped is kept for, in ms")                \
    X(hold_max_ms, 3600000, 1000, 86400000, "and for at most, if it proves needed again, in ms")  \
    X(incident_ms, 600000, 1000, 86400000, "pause between two incidents of one job, in ms")

typedef struct st_nb_policy {
#define X(name, ...) int64_t name;
    ST_NB_POLICY(X)
#undef X
} st_nb_policy;

extern const st_nb_policy st_nb_defaults;
/* "ratio_pct=150,hold_ms=60000": the defaults, but for these. */
int st_nb_policy_read(const char *text, st_nb_policy *ret, st_err *err);

/* Cheapest first. The first two are the node's own; the others are wishes to who places jobs. */
#define ST_NB_RUNGS(X)                                                        \
    X(PROTECT, "protect", "its neighbours begin nothing while it is at work") \
    X(CAP, "cap", "the suspect gets at most half of its share")               \
    X(MOVE, "move", "the suspect should run elsewhere")
typedef enum st_nb_rung {
#define X(id, ...) ST_NB_##id,
    ST_NB_RUNGS(X)
#undef X
        ST_NB_RUNG_COUNT
} st_nb_rung;

#define ST_NB_NOTES(X)        \
    X(SUSPECTED, "suspected") \
    X(PARDONED, "pardoned")   \
    X(CONFIRMED, "confirmed") \
    X(ACTED, "acted")         \
    X(VERIFIED, "verified")   \
    X(REVERTED, "reverted")   \
    X(INCIDENT, "incident")
typedef enum st_nb_kind {
#define X(id, ...) ST_NB_##id,
    ST_NB_NOTES(X)
#undef X
        ST_NB_KIND_COUNT
} st_nb_kind;

const char *st_nb_rung_name(st_nb_rung rung);
const char *st_nb_kind_name(st_nb_kind kind);
/* -1: none of them. */
int st_nb_rung_parse(const char *name);
int st_nb_kind_parse(const char *name);

/* What a task has done so far. */
typedef struct st_nb_sample {
    uint64_t id;           /* never 0, never used again */
    uint64_t gpu_ns;       /* of the device */
    const uint64_t *times; /* ST_NB_TIMES counts of requests; NULL: it has none that count */
    int share_pm;
    bool latency; /* it is a latency task already */
    bool capable; /* it can be capped */
} st_nb_sample;

/* What a task is to be told; all zero: nothing. */
typedef struct st_nb_order {
    int cap_pm;   /* 0: no cap */
    bool protect; /* it is treated as a latency task */
} st_nb_order;

typedef struct st_nb_note {
    st_nb_kind kind;
    st_nb_rung rung; /* of ACTED, VERIFIED and REVERTED */
    int64_t at_ms;
    uint64_t victim, suspect; /* suspect 0: none, of an incident */
    int ratio_pct;            /* p99 over its usual value */
} st_nb_note;

typedef struct st_nb st_nb;

st_nb *st_nb_new(const st_nb_policy *policy);
void st_nb_free(st_nb *nb);

/* Everybody who is on the device now. Who is missing has gone. */
void st_nb_feed(st_nb *nb, int64_t now_ms, const st_nb_sample *v, size_t n);
st_nb_order st_nb_order_of(const st_nb *nb, uint64_t id);
/* Notes since the last call, at most `room`; how many. The rest comes next time. */
size_t st_nb_notes(st_nb *nb, st_nb_note *buf, size_t room);
/* How slow a job is, of its usual p99, in per cent; 0: not known. */
int st_nb_ratio_pct(const st_nb *nb, uint64_t id);

/* Where a step of a table of times begins, in ns. */
uint64_t st_nb_time_least(int step);

#endif
