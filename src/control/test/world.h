/*
 * A control loop with a real store that can fail, and a clock of our own; for tests of this folder.
 */
#ifndef ST_CONTROL_TEST_WORLD_H
#define ST_CONTROL_TEST_WORLD_H

#include "control/control.h"
#include "store/test/faulty_vfs.h"
#include "store/test/scratch.h"

#define VFS "faulty-control"

typedef struct world {
    scratch place;
    faulty_vfs *vfs;
    st_control *ctl;
    int64_t now;
    void (*when_read)(
        struct world *w); /* behind each look at the clock, in whose thread it was; NULL: nothing */
    st_billing_options billing;
    int64_t pass_long_us, snap_rows, tell_ms, keep_jobs_ms, keep_log_ms;
    st_engine *engine; /* the test's own; NULL: none */
    int64_t limit_ms;  /* of jobs; 0: an hour */
    int parted;        /* logs that led elsewhere */
    int shared;        /* books of two accounts */
    int refused;       /* entries that the ledger did not take */
    int compared;      /* days on which everything was */
    bool notices;      /* hear of warnings, as in stintd */
    int warnings;      /* about budgets; the last one: */
    st_notice_budget warned;
    char warned_account[ST_NAME_MAX + 1];
    int unusual;      /* days of somebody that were told as such */
    char capped[400]; /* what caps did: a word each, with a blank behind it */
} world;

/* A write behind the loop's back, which must have stopped. */
#define assert_kept(store, call)                      \
    do {                                              \
        assert_ok(st_store_begin(store, &err));       \
        assert_ok(st_store_end(store, (call), &err)); \
    } while (0)

extern const st_identity owner;

void let_pass(world *w, int64_t ms);
int open_control(world *w, st_err *err);
int begin_at(void **state, int64_t now);
int begin(void **state); /* long ago */
int end(void **state);
void restart(world *w);

/* Posts a command and waits for it. */
int do_cmd(world *w, st_cmd *cmd, st_err *err);
void make_event(world *w, st_event event);
int put_account(world *w, bool create, const char *name, const char *parent, const char *doc,
                st_err *err);
void make_account(world *w, const char *name, const char *parent, const char *doc);
/* A node with 8 GPUs and an account `team`. */
void make_fleet(world *w);
int submit(world *w, const char *key, const char *body, uint64_t *ret_id, st_err *err);

#endif
