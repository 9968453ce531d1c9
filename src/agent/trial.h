/*
 * Tests of the node above quick: what they measure, a program of ours does as a task of the node's own, under the walls of
 * every task. Its order is put on the list that stintd sent, so all that holds for tasks holds for it: its GPUs are empty
 * and their memory was read, it ends with the lease, it has a time limit, its memory is read afterwards.
 *
 * Where dcgmi is installed it measures in place of stint-cuda: the task then has the node's network, by which dcgmi reaches its
 * engine, and is otherwise the same.
 *
 * Invariants
 *  1 It gives way: while the list has a task with GPUs, its order is not there, and what runs of it ends.
 *  2 stintd hears of it as a test alone: no status, log or usage has the task.
 *  3 What breaks in it, and not in a GPU, is said to be the checker's.
 */
#ifndef ST_AGENT_TRIAL_H
#define ST_AGENT_TRIAL_H

#include <jansson.h>

#include "agent/plan.h"
#include "agent/voice.h"
#include "health/health.h"

struct st_host;

/* What GPUs did meanwhile, as the telemetry saw it. */
typedef struct st_trial_seen {
    int64_t temperature, power_w, clock; /* ST_DIAG_UNKNOWN: nothing was seen */
    int64_t throttle;                    /* bits, of all the time */
} st_trial_seen;

typedef struct st_trial {
    char orders
        [ST_TRIAL_MAX]; /* what stintd says of the test that is asked for, JSON; "": nothing */
    int64_t no;         /* the test that is being made; 0 none */
    st_test_level level;
    const char *program;           /* that measures */
    bool dcgmi;                    /* it is NVIDIA's */
    json_t *job;                   /* of its order; NULL: there is none */
    st_task_key key;               /* of its task */
    int64_t began_ms, deadline_ms; /* boot clock: when it began, and when it is ended */
    char why[160];                 /* why it could not even be begun; "": it could */
    bool waits;                    /* for GPUs; that was said */
    st_trial_seen seen[ST_DEVS_MAX];
} st_trial;

/* Whether a task is the node's own. */
bool st_trial_is(const st_task_key *key);
/* What stintd asks for: the level, and the limits of the node's GPUs. */
st_test_level st_trial_asked(const st_trial *trial, st_diag_limits *ret);
/* GPUs that stintd has out for good, as bits: what is found of them says nothing of the node. */
uint16_t st_trial_without(const st_trial *trial);

/* trial_run.c. Puts its order on the list, or takes it off; before a plan is made. */
void st_trial_order(struct st_host *h, int64_t now_ms);
/* 0: not yet; 1: *ret is what it said, which the caller drops; -ST_EDOWN: it broke, and why. */
int st_trial_look(struct st_host *h, json_t **ret, st_err *err);
void st_trial_done(struct st_host *h);

#endif
