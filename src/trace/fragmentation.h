/*
 * How much of a fleet stays unused because of where things were put: pods of an openb trace arrive
 * one at a time and never leave, each placed by a policy that knows only what has arrived; one that
 * does not fit is dropped. doc/dev/placement.md has the policies and the results.
 */
#ifndef ST_TRACE_FRAGMENTATION_H
#define ST_TRACE_FRAGMENTATION_H

#include "trace/openb_list.h"

/* X(name, what it does) */
#define ST_FRAG_POLICIES(X)                                                    \
    X(stint, "the scheduler itself: every arrival is a job that is submitted") \
    X(fgd, "least increase of expected fragmentation, target as published")    \
    X(bestfit, "the node with least to spare")                                 \
    X(random, "any node that fits")

typedef enum {
#define ST_FRAG_POLICY_ENUM(name, text) ST_FRAG_POLICY_##name,
    ST_FRAG_POLICIES(ST_FRAG_POLICY_ENUM)
#undef ST_FRAG_POLICY_ENUM
        ST_FRAG_NPOLICIES
} st_frag_policy;

const char *st_frag_policy_name(st_frag_policy policy);

/* The policy of that name, or -1. */
int st_frag_policy_find(const char *name);

typedef struct st_fragmentation {
    double unallocated_pct_at_100; /* over the arrivals that round to 100 % of capacity */
    double allocated_pct_at_130;   /* when all have arrived */
    int64_t decisions;
    double seconds;
    double decision_p99_us;
} st_fragmentation;

/* Plays one seed over `times` copies of the nodes; fails where the scheduler does not take the fleet. */
int st_fragmentation_run(const st_openb *trace, st_frag_policy policy, uint64_t seed, int32_t times,
                         st_fragmentation *ret, st_err *err);

#endif
