/*
 * All that can happen in a small world, up to so many events: a fleet of 2 nodes with 2 GPUs each, three
 * accounts, three jobs, and every order of every event (exhaust.c has the list), each step checked like those
 * of random worlds (worlds/worlds.h). What leads to the same state is followed once.
 */
#ifndef ST_WORLDS_EXHAUST_H
#define ST_WORLDS_EXHAUST_H

#include "worlds/worlds.h"

#define ST_EXHAUST_MAX 8 /* events */

/* Worlds differ in their policy, or in who says that a job is gone. */
#define ST_EXHAUST_TABLE(X)                                                       \
    X(ST_EXHAUST_PLAIN, "plain")   /* short times, two reservations */            \
    X(ST_EXHAUST_ALONE, "alone")   /* homes: as_if_alone, and cooldowns */        \
    X(ST_EXHAUST_AGENTS, "agents") /* n0 has an agent whose word is waited for */ \
    X(ST_EXHAUST_SWAP, "swap")     /* shortest first by force, and moves */
typedef enum st_exhaust_world {
#define X(id, name) id,
    ST_EXHAUST_TABLE(X)
#undef X
        ST_EXHAUST_COUNT
} st_exhaust_world;

const char *st_exhaust_name(st_exhaust_world world);

typedef struct st_exhaust_counts {
    int64_t states;  /* that differ */
    int64_t steps;   /* looked at: each event in each state */
    int64_t refused; /* of these */
} st_exhaust_counts;

/* 0, or a broken invariant: the tape then has the events that lead there, and is the caller's in any case.
 * After `most` steps it stops, if that is above 0. */
int st_exhaust(st_exhaust_world world, int depth, int64_t most, st_exhaust_counts *ret,
               st_tape *ret_tape, st_err *err);

#endif
