/*
 * Notices: what tenants want to be told of, by webhook or mail, and what is still to be told.
 *
 * A notice belongs to an account and goes by a name there. Where it goes and what it is signed with are sealed like a secret
 * ("notice/NAME", which no job can ask for); the rest is a document. What it is told is a delivery: a row that is written in the
 * transaction in which the thing happened, and removed when a receiver has taken it or it is given up. So whatever was committed is
 * told at least once, across restarts, and with one id. Who brings deliveries out is the caller's (stintd/notices.h); the loop never
 * waits for a receiver.
 *
 * kept as documents:  notice      ACCOUNT/NAME         who made it, what it is for, what others may see of where it goes
 *                     notice-out  ACCOUNT/NAME NUMBER  a delivery
 *                     notice-log  ACCOUNT/NAME         what came of the last deliveries, the newest last
 *                     notice-soon bookings             those whose beginning was told
 *                     notice-budget ACCOUNT            how many thresholds of its budget were told (notices_budget.c)
 *
 * Invariants:
 *  1 A notice has at most ST_NOTICE_WAITING deliveries, an organisation ST_NOTICE_ORG; what is more is counted, and the next
 *    delivery says how many there were.
 *  2 A notice tells of its account and those below it, as they are in the transaction; with `mine` of its maker's jobs alone.
 */
#ifndef ST_CONTROL_NOTICES_H
#define ST_CONTROL_NOTICES_H

#include "state/command.h"

/* X(id, word, about) */
#define ST_NOTICE_TABLE(X)                                                           \
    X(ST_ON_START, "start", "a job starts, or goes on after a pause")                \
    X(ST_ON_END, "end", "a job is over, however")                                    \
    X(ST_ON_FAIL, "fail", "a job failed or ran into its limit")                      \
    X(ST_ON_PREEMPT, "preempt", "a job is told to leave its GPUs, or has left them") \
    X(ST_ON_BUDGET, "budget", "spending has passed a threshold of a budget or cap")  \
    X(ST_ON_INCIDENT, "incident", "a node that a job is on has a fault")             \
    X(ST_ON_BOOKING, "booking", "a booking begins within 15 minutes, or misses its nodes")
typedef enum st_notice_on {
#define X(id, ...) id,
    ST_NOTICE_TABLE(X)
#undef X
        ST_ON_COUNT
} st_notice_on;

extern const char *const st_notice_words[]; /* NULL at the end */

#define ST_NOTICE_NAME_MAX 48
#define ST_NOTICE_KEPT     20 /* deliveries that are over, in the journal */
#define ST_NOTICE_WAITING  200
#define ST_NOTICE_ORG      1000

/* One delivery, for who brings it out. */
typedef struct st_outgoing {
    uint64_t number;
    const char *notice;         /* ACCOUNT/NAME */
    const char *account, *name; /* of the notice */
    int32_t org;                /* whose it is, among those who take turns */
    const char *id, *title;
    const char *body; /* JSON */
    int64_t at_ms;
    bool mail;
} st_outgoing;

/* What came of an attempt. */
typedef struct st_notice_outcome {
    uint64_t number;
    char *notice, *id;
    const char *
        state; /* "delivered", "waiting" (for the next attempt), "failed" or "dropped"; static text */
    long status;
    int tries;
    char text[240];
} st_notice_outcome;

/* ---- commands ------------------------------------------------------------------------------------- */

typedef struct st_cmd_notice {
    st_cmd cmd;
    st_identity who;
    const char *account, *name;
    uint32_t on; /* bits of st_notice_on */
    bool mine, mail;
    const char *to, *host; /* where it goes; what others may see of that */
    const char *key;       /* that webhooks are signed with */

    /* The loop's. */
    st_cmd *inner; /* of the sealed part */
    char id[40];   /* given: of the delivery of a test */
} st_cmd_notice;

void st_cmd_notice_add(st_cmd_notice *cmd);
void st_cmd_notice_remove(st_cmd_notice *cmd);
/* A delivery that says that it is one. */
void st_cmd_notice_test(st_cmd_notice *cmd);
void st_cmd_notice_done(st_cmd_notice *cmd); /* frees what is the loop's */

/* Of the sender. All that are still to be brought out are handed over again. */
int st_notices_again(st_tx *tx, st_cmd *cmd, st_err *err);
/* What came of some; and bookings that begin soon are told. */
typedef struct st_cmd_outcomes {
    st_cmd cmd;
    st_notice_outcome *v;
    size_t n;
} st_cmd_outcomes;
int st_notices_came(st_tx *tx, st_cmd *cmd, st_err *err);
int st_notices_soon(st_tx *tx, st_cmd *cmd, st_err *err);

/* From the loop's thread: something that is told after its commit. It is a row of the next transaction. */
void st_notices_hear(st_control *ctl, const st_notice *n);

/* Where a delivery goes and the key to sign it with; ST_ENOENT: the notice is gone, or another has its name now. From any thread. The
 * buffers are to be wiped. */
int st_notice_where(st_control *ctl, const st_outgoing *o, st_strbuf *to, st_strbuf *key,
                    st_err *err);
/* Whether a delivery of that number is of a notice that was added then. */
bool st_notice_owns(int64_t made_ms, uint64_t number);

#endif
