/*
 * Steps that tests of money share: prices, plans, jobs that run a while, and what the books say then.
 */
#ifndef ST_CONTROL_TEST_MONEY_H
#define ST_CONTROL_TEST_MONEY_H

#include "billing/billing.h"
#include "control/control.h"
#include "control/test/world.h"

#define S     INT64_C(1000)
#define H     (3600 * S)
#define DAY   (24 * H)
#define OCT_1 (1790812800 * S) /* 2026-10-01, UTC */
#define NOON  (OCT_1 + 12 * H)

/* Three dollars an hour of burst: a GPU-second is 833 1/3 micro-dollars. */
#define PRICES "prices: first\ngpu: {\"*\": {reserved: 1, burst: 3}}\n"

void publish(world *w, const char *text);
int set_plan(world *w, const char *text, st_err *err);
uint64_t start_job(world *w, const char *doc);
/* Its engine says that it has ended; ended_ms 0: now. */
void end_job(world *w, uint64_t id, int64_t ended_ms);
/* Runs in the loop; NULL only waits until everything before it was taken. */
int in_loop(world *w, int (*fn)(st_tx *tx, void *ctx, st_err *err), void *ctx, st_err *err);
void nudge(world *w);

/* The book of an account, read; forget() frees. */
typedef struct seen {
    st_arena *arena;
    ST_VEC(st_entry) list;
} seen;

void read_book(world *w, const char *account, seen *ret);
void forget(seen *s);
const st_entry *nth(const seen *s, st_entry_kind kind, int n);
int count(const seen *s, st_entry_kind kind);
int64_t paid(const st_entry *e);
/* Of the bill as of now, or of a period. */
int64_t total_of(world *w, const char *account, const char *period);
/* What telemetry says of the open month, running jobs included. */
int64_t busy_of(world *w, const char *account);

/* A bill's file is right, it has no byte to spare, and `above` (NULL: nobody) is not in it. */
void expect_file_without(world *w, const char *account, const char *period, const char *above);
void expect_file(world *w, const char *account, const char *period);

void close_control(world *w);
/* What `stintd --restore` does to the store, which nobody has open. */
int mark_restored(world *w, int64_t now_ms, st_err *err);
/* What is in the store's second place becomes the store, as of now, and is accepted. */
void restore_backup(world *w);
/* An owner looks and accepts; nobody has anything, so the branch begins in the same turn. */
void accept_plan(world *w);

/* Collects sentences in an st_strbuf. */
void found(void *ctx, const char *sentence);
/* Stops, and looks at everything. */
void expect_sound(world *w);

#endif
