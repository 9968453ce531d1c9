/*
 * The files of the journal (agent/journal.h): one with all of it, one with what has changed since.
 *
 * Invariant: a log belongs to the one file that names it. A new file is whole before it has its name, and
 * names a log that is not there yet; so a crash leaves either pair.
 */
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/journal.h"
#include "base/hash.h"

#define JOURNAL_FILE "tasks.json"
#define LOG_LEAST    INT64_C(262144) /* a shorter log is not worth folding */

static void log_name(int64_t no, char ret[64])
{
    snprintf(ret, 64, "tasks.%" PRId64 ".log", no);
}

/* Never 0, which stands for nothing. */
static uint64_t hash_of(const st_task *t)
{
    return st_hash_bytes(t, offsetof(st_task, now), 1) | 1;
}

static void all_kept(st_journal *j)
{
    for (size_t i = 0; i < j->tasks.n; i++)
        j->tasks.v[i].now.kept = hash_of(&j->tasks.v[i]);
    st_vec_clear(&j->gone);
    j->kept_epoch = j->epoch;
    j->kept_at = j->at;
}

/* ---- writing -------------------------------------------------------------------------------------- */

static int fold(st_journal *j, const char *dir, bool sync, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    char name[64], path[PATH_MAX];
    int r;

    j->log_no++;
    st_journal_write(j, &out);
    r = st_file_replace(dir, JOURNAL_FILE, out.s, out.n, sync, err);
    if (r < 0) {
        j->log_no--;
        return r;
    }
    log_name(j->log_no - 1, name);
    if (snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path)
        unlink(path);
    j->log_size = 0;
    j->file_size = (int64_t)out.n;
    all_kept(j);
    return 0;
}

static void changes(const st_journal *j, st_strbuf *out)
{
    for (size_t i = 0; i < j->gone.n; i++)
        st_journal_gone_line(&j->gone.v[i], out);
    if (j->at.branch != j->kept_at.branch || j->at.position != j->kept_at.position)
        st_journal_at_line(&j->at, out);
    for (size_t i = 0; i < j->tasks.n; i++)
        if (j->tasks.v[i].now.kept != hash_of(&j->tasks.v[i]))
            st_journal_line(&j->tasks.v[i], out);
}

int st_journal_save(st_journal *j, const char *dir, bool sync, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    char name[64];
    int r;

    if (j->file_size == 0 || j->epoch != j->kept_epoch ||
        (j->log_size > LOG_LEAST && j->log_size > 2 * j->file_size))
        return fold(j, dir, sync, err);
    changes(j, &out);
    if (out.n == 0)
        return 0;
    log_name(j->log_no, name);
    r = st_file_append(dir, name, j->log_size, out.s, out.n, sync, err);
    if (r < 0)
        return r;
    j->log_size += (int64_t)out.n;
    all_kept(j);
    return 0;
}

/* ---- reading -------------------------------------------------------------------------------------- */

static int load_log(const char *dir, st_journal *j, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    char name[64];
    size_t used = 0;
    st_err why = {0};
    int r;

    log_name(j->log_no, name);
    r = st_file_whole(dir, name, &text, &why);
    if (r == -ST_ENOENT)
        return 0;
    if (r == 0)
        r = st_journal_apply(j, st_strbuf_str(&text), text.n, &used, &why);
    if (r < 0)
        return st_fail(err, why.code, "%s/%s: %s", dir, name, why.msg);
    j->log_size = (int64_t)used;
    return 0;
}

static st_journal_clock clock_now(void)
{
    st_journal_clock c = {.wall_of_ms = st_wall_ms() - st_boot_ms()};

    st_boot_id(c.boot);
    return c;
}

int st_journal_load(const char *dir, st_journal *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_journal_clock clock;
    st_journal j = {0};
    st_err why = {0};
    int r = st_file_load(dir, JOURNAL_FILE, &text, &why);

    if (r == -ST_ENOENT) {
        *ret = j;
        ret->clock = clock_now();
        return 0;
    }
    if (r == 0)
        r = st_journal_read(st_strbuf_str(&text), text.n, &j, &why);
    if (r < 0)
        return st_fail(err, why.code, "%s/" JOURNAL_FILE ": %s", dir, why.msg);
    j.file_size = (int64_t)text.n;
    r = load_log(dir, &j, err);
    if (r < 0) {
        st_journal_done(&j);
        return r;
    }
    clock = clock_now();
    if (strcmp(j.clock.boot, clock.boot) != 0)
        j.file_size = 0; /* its times will be others: to be written whole */
    st_journal_rebase(&j, &clock);
    all_kept(&j);
    *ret = j;
    return 0;
}
