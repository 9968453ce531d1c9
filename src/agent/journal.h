/*
 * What a node must not forget: the tasks it has begun and how they ended, and the highest epoch it
 * has heard of. One small file per node, replaced whole.
 *
 * A task is in the file before it is started. One whose program was killed in between is found
 * there as `noted`, and is looked for; it is not started again.
 */
#ifndef ST_AGENT_JOURNAL_H
#define ST_AGENT_JOURNAL_H

#include "agent/plan.h"
#include "base/strbuf.h"

typedef struct st_journal {
    int64_t epoch;
    ST_VEC(st_task) tasks;
} st_journal;

void st_journal_done(st_journal *j);

void st_journal_write(const st_journal *j, st_strbuf *out);
int st_journal_read(const char *text, size_t n, st_journal *ret, st_err *err);

/* The file in a node's folder; one that is not there is an empty journal. */
int st_journal_save(const st_journal *j, const char *dir, bool sync, st_err *err);
int st_journal_load(const char *dir, st_journal *ret, st_err *err);

st_task *st_journal_find(const st_journal *j, const st_task_key *key);

#endif
