/*
 * Who speaks with stintd: one thread for all nodes of the process, with their registrations, statuses,
 * lists and logs. It touches no task, no device and no file of a tenant, so that nothing a job does can
 * keep a status from going out or a lease from being renewed.
 *
 * The other thread, the acting one, does everything else (agent/node.h). What goes between the two is
 * mail, under its lock:
 *
 *   reports   what a node has, as text that is done: the newest is sent, again and again
 *   lists     what came, as it came: one at a time; the next is asked for when that was taken
 *   pieces    of logs: one at a time, sent until stintd has taken it or wants none of it
 *   terms     the lease, and how stintd's clock differs from the boot clock
 *
 * Invariants:
 *  1 What the voice says was true when the acting side last looked; a report is never built here.
 *  2 The lease counts from the moment the answered status was sent, on the boot clock, and is in a file
 *    before anything relies on it.
 *  3 A node whose acting side stands still for ST_STALL_MS is ill: that is said, once, and then nothing
 *    more, so that its lease ends on both sides.
 */
#ifndef ST_AGENT_VOICE_H
#define ST_AGENT_VOICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/plan.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "model/incident.h"

#define ST_STALL_MS  INT64_C(120000)
#define ST_TRIAL_MAX 1024

struct st_host;

typedef enum st_piece_state {
    ST_PIECE_NONE,
    ST_PIECE_READY,    /* to be sent, or under way */
    ST_PIECE_ANSWERED, /* the acting side has not seen the answer */
} st_piece_state;

typedef struct st_mail {
    pthread_mutex_t lock;

    /* From the acting side. */
    st_strbuf report;   /* a status from `"tasks"` on; empty: there is none yet */
    const char *health; /* ok, hold (nothing new is started) or failed; static text */
    char reason[200];   /* why it is not ok */
    st_finding found;   /* what that is, without words */
    uint64_t report_no; /* which report it is, from 1 */
    uint64_t urgent_no; /* stintd is to hear this one at once */
    int64_t wall_of_ms; /* UTC less the boot clock, as the report has it */
    int64_t epoch;      /* the highest that was heard of */
    st_history at;      /* where the last list stood */
    uint64_t revision;  /* of the list it goes by */
    bool bad_list;      /* the last one could not be used */
    int64_t turn_ms;    /* boot clock: when it last began a turn */
    const char *doing;  /* what it has been at since; static text */
    st_strbuf piece;    /* of a log */
    char piece_path[128];

    /* From the voice. */
    bool poked;               /* something is new for the acting side */
    bool said;                /* something is new for the voice */
    uint64_t heard_no;        /* the last report that was answered */
    int64_t test;             /* the test of the node that stintd waits for; 0 none */
    char trial[ST_TRIAL_MAX]; /* what it says of that, JSON; "": nothing */
    st_strbuf list;           /* as it came */
    bool has_list;            /* and was not taken yet */
    int64_t lease_end_ms;     /* boot clock; 0: none was given yet */
    bool lapsed;              /* one has ended, and the acting side has not seen to it */
    bool keep;
    int64_t skew_ms; /* stintd's clock less the boot clock */
    int64_t chunk;   /* of a log, at most */
    bool gpus_alone; /* stintd can take single GPUs out of service */
    bool log_down;   /* logs cannot be brought now */
    st_piece_state piece_state;
    long piece_status;
    int64_t piece_next;
} st_mail;

void st_mail_init(st_mail *m);
void st_mail_done(st_mail *m);

/* ---- for the acting side ------------------------------------------------------------------- */

/* The lease as it is now. */
bool st_voice_lease_over(struct st_host *h);
/* Whether there is one, for those who only show it. */
bool st_voice_leased(struct st_host *h);
/* A turn begins, or something that may take long: what the node is said to be stuck in, if it is. */
/* `,"fault":{…}`: a finding, without its words. */
void st_finding_json(const st_finding *found, st_strbuf *out);
void st_voice_doing(struct st_host *h, const char *what);
/* Something is new for the voice. */
void st_voice_wake(struct st_host *h);

/* ---- the thread -------------------------------------------------------------------------------- */

typedef struct st_agent_voice st_agent_voice;

struct st_process;
int st_voice_start(struct st_process *process, st_agent_voice **ret, st_err *err);
/* Ends it; what was under way is forgotten. */
void st_voice_stop(st_agent_voice *voice);

#endif
