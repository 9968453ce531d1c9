/*
 * Calls about a bill: the moment is fixed by the follower or, for a file, which is signed, in the loop; what takes long is done by a
 * worker with a reader of the store. Private to src/api.
 */
#ifndef ST_API_BILLS_H
#define ST_API_BILLS_H

#include "api/state.h"
#include "api/usages.h"
#include "bill/bill.h"
#include "billing/money.h"
#include "control/control.h"

typedef struct st_bill_call {
    st_cmd cmd;
    st_api *api;
    st_call *call;
    char account[ST_NAME_MAX + 32]; /* "" is the cluster; one that is gone is "NAME (SERIAL)" */
    char book[ST_NAME_MAX + 1];     /* its name in the books; known in the worker */
    char period[8];                 /* "": the open one */
    const char *format;             /* of the query; never NULL */
    bool prices;                    /* `ledger` is wanted */
    bool running;                   /* `open` is wanted: what sums are made of */
    bool whole;                     /* `open` is wanted: the account's own, with everything */
    bool floors;                    /* `idle` is wanted */
    bool devices;                   /* `where` is wanted */
    bool file;                      /* `ask` is wanted, and the bill is its */
    bool budget;                    /* `state` is wanted */
    bool fleet;                     /* it is about the fleet's book, which has no bill */
    /* In a worker. Answers the call. */
    bool leaves; /* as a file: written down */
    void (*finish)(struct st_bill_call *c, st_store *reader);

    st_arena *arena;
    st_bill own;
    const st_bill *bill;
    ST_VEC(st_entry) open; /* what the open intervals would post; in the arena */
    st_idle_floors idle;   /* likewise */
    st_idle_floors booked; /* likewise, of bookings */
    st_fleet_now where;    /* the devices were */
    st_bill_ask *ask;
    st_strbuf ledger; /* saved */
    st_budget_state state;
    int64_t now;
} st_bill_call;

/* Reads account and period of the call and checks that the caller may see them; NULL: answered. */
st_bill_call *st_bill_call_new(st_api *api, st_call *call, const char *format,
                               void (*finish)(st_bill_call *c, st_store *reader));
void st_bill_call_post(st_bill_call *c);
void st_bill_call_free(st_bill_call *c); /* of one that is not posted */

/* How many of the account's entries count in the bill's period: [*from, *to], 1 and 0 for none. */
void st_bill_span(const st_bill *bill, const char *account, int64_t *from, int64_t *to);
/* What the bill is made of, and what runs, added up by something that does not have many values. */
int st_bill_sums(const st_bill_call *c, st_store *reader, const char *by, st_sums_by *ret,
                 st_err *err);
void st_bill_about(const st_bill_call *c, st_export_about *ret);

#endif
