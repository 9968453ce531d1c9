/*
 * What a node must not forget: the tasks it has begun and how they ended, and the highest epoch it
 * has heard of.
 *
 * On the disk it is a file with all of it, DIR/tasks.json, and one with what has changed since,
 * DIR/tasks.N.log, a line each; N is in the first. What a change costs does not depend on how many
 * tasks there are; the log is folded into a new file when it is longer than that.
 *
 * A task is on the disk before it is started. One whose program was killed in between is found
 * there as `noted`, and is looked for; it is not started again.
 */
#ifndef ST_AGENT_JOURNAL_H
#define ST_AGENT_JOURNAL_H

#include "agent/plan.h"
#include "base/map.h"
#include "base/strbuf.h"

/* By which clock the times in it are. */
typedef struct st_journal_clock {
    char boot[64];      /* the boot whose clock it is */
    int64_t wall_of_ms; /* UTC less that clock */
} st_journal_clock;

typedef struct st_journal {
    int64_t epoch;
    st_history at; /* where the last list that was followed stood */
    st_journal_clock clock;
    ST_VEC(st_task) tasks;

    st_idmap *index;          /* by key, to places in tasks; NULL: to be made */
    ST_VEC(st_task_key) gone; /* removed since the last save */
    int64_t kept_epoch;       /* as on the disk */
    st_history kept_at;       /* likewise */
    int64_t file_size;        /* of tasks.json; 0: there is none */
    int64_t log_no, log_size; /* of what is good in the log */
} st_journal;

void st_journal_done(st_journal *j);

void st_journal_write(const st_journal *j, st_strbuf *out);
int st_journal_read(const char *text, size_t n, st_journal *ret, st_err *err);

/* One task as a line of the log, and such lines applied; what has no end was cut short and is left
 * out: *ret_used is how many bytes were good. */
void st_journal_line(const st_task *t, st_strbuf *out);
void st_journal_gone_line(const st_task_key *key, st_strbuf *out);
void st_journal_at_line(const st_history *at, st_strbuf *out);
int st_journal_apply(st_journal *j, const char *text, size_t n, size_t *ret_used, st_err *err);

/* Its times by another clock: after a reboot, and of journals that had UTC. */
void st_journal_rebase(st_journal *j, const st_journal_clock *now);

/* The files in a node's folder; none is an empty journal. */
int st_journal_save(st_journal *j, const char *dir, bool sync, st_err *err);
int st_journal_load(const char *dir, st_journal *ret, st_err *err);

/* Pointers are good until the next add or remove. */
st_task *st_journal_find(st_journal *j, const st_task_key *key);
st_task *st_journal_add(st_journal *j, const st_task *t);
void st_journal_remove(st_journal *j, st_task *t);

#endif
