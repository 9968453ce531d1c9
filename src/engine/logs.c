/*
 * Logs as files (engine/logs.h).
 *
 * Invariant: a task's segments do not overlap; each begins at its BASE, and only the last one
 * grows.
 */
#include "engine/logs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "engine/logs_files.h"

#define SEGMENTS     4  /* of which a full log consists */
#define SEGMENTS_MAX 16 /* gaps begin new ones */

/* ---- the directory --------------------------------------------------------------------------- */

void st_log_path(const st_logs *logs, uint64_t job, int stay, int task, st_strbuf *out)
{
    st_strbuf_addf(out, "%s/%016" PRIx64 "/%d.%d", logs->dir, job, stay, task);
}

int st_log_io_fail(st_err *err, const char *path)
{
    return st_fail(err, errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? ST_EFULL : ST_EIO,
                   "%s: %s", path, strerror(errno));
}

static int make_dirs(const st_logs *logs, uint64_t job, const char *path, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf above = {0};

    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    st_strbuf_addf(&above, "%s/%016" PRIx64, logs->dir, job);
    if ((mkdir(logs->dir, 0700) < 0 && errno != EEXIST) ||
        (mkdir(st_strbuf_str(&above), 0700) < 0 && errno != EEXIST) ||
        (mkdir(path, 0700) < 0 && errno != EEXIST))
        return st_log_io_fail(err, path);
    return 0;
}

static int by_base(const void *pa, const void *pb)
{
    const st_log_segment *a = pa, *b = pb;

    return a->base < b->base ? -1 : a->base > b->base;
}

void st_log_segments_list(const char *path, st_log_segments *ret)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    struct stat st;

    while (dir && (entry = readdir(dir))) {
        int64_t base;

        if (st_parse_i64(entry->d_name, 0, INT64_MAX / 2, &base, NULL) == 0 &&
            fstatat(dirfd(dir), entry->d_name, &st, 0) == 0)
            st_vec_push(ret, (st_log_segment){base, base + (int64_t)st.st_size});
    }
    if (dir)
        closedir(dir);
    if (ret->n > 1)
        qsort(ret->v, ret->n, sizeof *ret->v, by_base);
}

/* Whether it is a task's directory or a segment: beside them are what is said about the job. */
static bool is_ours(const char *name)
{
    return name[0] >= '0' && name[0] <= '9';
}

/* The newest change among a job's files, and how many bytes they have; and, with `remove`, all of it away. */
static int64_t walk(const char *path, int depth, bool remove, int64_t *bytes)
{
    DIR *dir = opendir(path);
    int64_t newest = 0;
    struct dirent *entry;
    struct stat st;

    while (dir && (entry = readdir(dir))) {
        ST_CLEANUP(st_strbuf_done) st_strbuf below = {0};
        bool found = fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0;

        if (entry->d_name[0] == '.')
            continue;
        st_strbuf_addf(&below, "%s/%s", path, entry->d_name);
        if (found)
            newest = ST_MAX(newest, (int64_t)st.st_mtime * 1000);
        if (depth > 0 && is_ours(entry->d_name)) {
            int64_t there = walk(st_strbuf_str(&below), depth - 1, remove, bytes);

            newest = ST_MAX(newest, there);
            continue;
        }
        if (found && depth == 0)
            *bytes += (int64_t)st.st_size;
        if (remove)
            unlink(st_strbuf_str(&below));
    }
    if (dir)
        closedir(dir);
    if (remove)
        rmdir(path);
    return newest;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- whose, and how much ----------------------------------------------------------------------- */

void st_log_job_path(const st_logs *logs, uint64_t job, const char *file, st_strbuf *out)
{
    st_strbuf_addf(out, "%s/%016" PRIx64 "%s", logs->dir, job, file);
}

static void count(st_logs *logs, st_shelved *row, int64_t bytes)
{
    row->bytes += bytes;
    if (logs->rules.count)
        logs->rules.count(logs->rules.ctx, row->number, bytes);
}

/* What a job's account is, in a file beside its tasks. */
static bool read_word(const st_logs *logs, uint64_t job, const char *name, char *ret, size_t size)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf file = {0};
    FILE *f;
    bool got;

    st_log_job_path(logs, job, name, &file);
    f = fopen(st_strbuf_str(&file), "re");
    got = f && fgets(ret, (int)size, f);
    if (got)
        ret[strcspn(ret, "\n")] = '\0';
    if (f)
        fclose(f);
    return got;
}

/* Without it the log is the cluster's after a restart, no worse. */
static void write_word(const st_logs *logs, uint64_t job, const char *name, const char *word)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf dir = {0}, file = {0};
    FILE *f;

    st_log_job_path(logs, job, "", &dir);
    st_log_job_path(logs, job, name, &file);
    mkdir(logs->dir, 0700);
    mkdir(st_strbuf_str(&dir), 0700);
    f = fopen(st_strbuf_str(&file), "we");
    if (!f)
        return;
    fprintf(f, "%s\n", word);
    fclose(f);
}

static void take_job(st_logs *logs, uint64_t job)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    char account[256] = "";
    st_shelved *row;

    st_log_job_path(logs, job, "", &path);
    if (!read_word(logs, job, "/account", account, sizeof account))
        read_word(logs, job, "/pruned", account, sizeof account);
    row = st_shelf_add(logs->shelf, job, account);
    row->newest_ms = walk(st_strbuf_str(&path), 1, false, &row->bytes);
}

static void take_all(st_logs *logs)
{
    DIR *dir = opendir(logs->dir);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char *end;
        uint64_t job = strtoull(entry->d_name, &end, 16);

        if (strlen(entry->d_name) == 16 && !*end && !st_shelf_find(logs->shelf, job))
            take_job(logs, job);
    }
    if (dir)
        closedir(dir);
}

st_logs *st_logs_new(const char *dir, int64_t task_bytes)
{
    st_logs *logs = st_xcalloc(1, sizeof *logs);

    logs->dir = st_xstrdup(dir);
    logs->task_bytes = ST_MAX(task_bytes, SEGMENTS);
    logs->shelf = st_shelf_new();
    ST_ASSERT(pthread_mutex_init(&logs->lock, NULL) == 0);
    take_all(logs);
    return logs;
}

void st_logs_free(st_logs *logs)
{
    if (!logs)
        return;
    pthread_mutex_destroy(&logs->lock);
    st_shelf_free(logs->shelf);
    free(logs->dir);
    free(logs);
}

void st_logs_rule(st_logs *logs, const st_logs_rules *rules)
{
    int64_t n;

    pthread_mutex_lock(&logs->lock);
    logs->rules = *rules;
    st_shelved *rows = st_shelf_all(logs->shelf, &n);
    for (int64_t i = 0; i < n; i++) {
        rows[i].org = rules->org(rules->ctx, rows[i].account);
        rows[i].number = rules->number(rules->ctx, rows[i].account);
        rules->count(rules->ctx, rows[i].number, rows[i].bytes);
    }
    pthread_mutex_unlock(&logs->lock);
}

bool st_logs_knows(st_logs *logs, uint64_t job)
{
    bool known;

    pthread_mutex_lock(&logs->lock);
    known = st_shelf_find(logs->shelf, job) != NULL;
    pthread_mutex_unlock(&logs->lock);
    return known;
}

void st_logs_begin(st_logs *logs, uint64_t job, const char *account)
{
    pthread_mutex_lock(&logs->lock);
    if (!st_shelf_find(logs->shelf, job)) {
        st_shelved *row = st_shelf_add(logs->shelf, job, account);

        if (logs->rules.org) {
            row->org = logs->rules.org(logs->rules.ctx, account);
            row->number = logs->rules.number(logs->rules.ctx, account);
        }
        write_word(logs, job, "/account", account);
    }
    pthread_mutex_unlock(&logs->lock);
}

/* All of a job's files; `mark` leaves word of it. */
static void drop_job(st_logs *logs, uint64_t job, bool mark)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_shelved *row = st_shelf_find(logs->shelf, job);
    int64_t bytes = 0;

    st_log_job_path(logs, job, "", &path);
    walk(st_strbuf_str(&path), 1, true, &bytes);
    count(logs, row, -row->bytes);
    logs->pruned++;
    if (mark)
        write_word(logs, job, "/pruned", row->account);
    st_shelf_remove(logs->shelf, job);
}

/* False: there is no room for n bytes more, and nobody who could make some. */
static bool make_room(st_logs *logs, uint64_t job, int64_t n)
{
    const st_logs_rules *rules = &logs->rules;

    while (rules->left) {
        const st_shelved *row = st_shelf_find(logs->shelf, job), *victim;
        bool own = rules->left(rules->ctx, row->number) < n;

        if (!own && rules->left(rules->ctx, 0) >= n)
            return true;
        victim = st_shelf_oldest(logs->shelf, own ? row->org : -1, job);
        if (!victim)
            return false;
        drop_job(logs, victim->job, true);
    }
    return true;
}

/* ---- writing ------------------------------------------------------------------------------------ */

static void drop_oldest(st_logs *logs, st_shelved *row, const char *path, st_log_segments *list,
                        size_t more)
{
    while (list->n > 1) {
        char name[32];
        int64_t sum = (int64_t)more;
        ST_CLEANUP(st_strbuf_done) st_strbuf file = {0};

        for (size_t i = 0; i < list->n; i++)
            sum += list->v[i].end - list->v[i].base;
        if (sum <= logs->task_bytes && list->n <= SEGMENTS_MAX)
            return;
        snprintf(name, sizeof name, "/%" PRId64, list->v[0].base);
        st_strbuf_add(&file, path);
        st_strbuf_add(&file, name);
        if (unlink(st_strbuf_str(&file)) == 0)
            count(logs, row, list->v[0].base - list->v[0].end);
        st_vec_remove(list, 0);
    }
}

/* Writes what the disk takes; what it does not take is gone. */
static int write_segment(const char *path, int64_t base, const char *bytes, size_t n,
                         size_t *ret_written, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf file = {0};
    size_t done = 0;
    int fd;

    st_strbuf_addf(&file, "%s/%" PRId64, path, base);
    fd = open(st_strbuf_str(&file), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return st_log_io_fail(err, st_strbuf_str(&file));
    while (done < n) {
        ssize_t w = write(fd, bytes + done, n - done);

        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            break;
        done += (size_t)w;
    }
    int r = done < n ? st_log_io_fail(err, st_strbuf_str(&file)) : 0;
    close(fd);
    *ret_written = done;
    return r;
}

static int append(st_logs *logs, uint64_t job, const char *path, st_log_segments *list,
                  int64_t offset, const char *bytes, size_t n, size_t *ret_written, st_err *err)
{
    const st_log_segment *last = list->n > 0 ? &list->v[list->n - 1] : NULL;
    int64_t base = last && last->end == offset ? last->base : offset;
    st_shelved *row;
    int r;

    if (last && offset - base >= logs->task_bytes / SEGMENTS)
        base = offset;
    drop_oldest(logs, st_shelf_find(logs->shelf, job), path, list, n);
    if (!make_room(logs, job, (int64_t)n))
        return st_fail(err, ST_EFULL, "the account's logs have no room");
    r = write_segment(path, base, bytes, n, ret_written, err);
    row = st_shelf_find(logs->shelf, job); /* others may have moved */
    row->newest_ms = now_ms();
    count(logs, row, (int64_t)*ret_written);
    count(logs, row, st_log_times_add(path, offset, row->newest_ms));
    return r;
}

int st_logs_append(st_logs *logs, uint64_t job, int stay, int task, int64_t offset,
                   const char *bytes, size_t n, int64_t *ret_next, size_t *ret_dropped, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_log_segments list = {0};
    size_t written = 0;
    int64_t end, next = offset + (int64_t)n;
    int r;

    if (offset < 0 || offset > INT64_MAX / 4 || n > ST_LOG_CHUNK_MAX)
        return st_fail(err, ST_ERANGE, "a piece of a log has at most %zu bytes, from 0 on",
                       ST_LOG_CHUNK_MAX);
    st_log_path(logs, job, stay, task, &path);
    pthread_mutex_lock(&logs->lock);
    if (!st_shelf_find(logs->shelf, job))
        st_shelf_add(logs->shelf, job, "");
    r = make_dirs(logs, job, st_strbuf_str(&path), err);
    if (r == 0)
        st_log_segments_list(st_strbuf_str(&path), &list);
    end = list.n > 0 ? list.v[list.n - 1].end : 0;
    if (r == 0 && end > offset) { /* said before, as a whole or in part */
        size_t known = (size_t)ST_MIN(end - offset, (int64_t)n);

        bytes += known;
        n -= known;
        offset += (int64_t)known;
    }
    if (r == 0 && n > 0)
        r = append(logs, job, st_strbuf_str(&path), &list, offset, bytes, n, &written, err);
    pthread_mutex_unlock(&logs->lock);
    st_vec_free(&list);
    if (r < 0 && r != -ST_EFULL)
        return r;
    *ret_dropped = n - written;
    *ret_next = ST_MAX(next, end);
    return 0;
}

/* ---- forgetting --------------------------------------------------------------------------------- */

int64_t st_logs_prune(st_logs *logs, int64_t before_ms)
{
    int64_t n, gone = 0;

    pthread_mutex_lock(&logs->lock);
    st_shelved *rows = st_shelf_all(logs->shelf, &n);
    for (int64_t i = n - 1; i >= 0; i--) {
        if (rows[i].newest_ms >= before_ms)
            continue;
        drop_job(logs, rows[i].job, false); /* the last takes its place, and was looked at */
        gone++;
    }
    pthread_mutex_unlock(&logs->lock);
    return gone;
}

void st_logs_stats_get(st_logs *logs, st_logs_stats *ret)
{
    int64_t n;

    pthread_mutex_lock(&logs->lock);
    const st_shelved *rows = st_shelf_all(logs->shelf, &n);
    *ret = (st_logs_stats){.jobs = n, .pruned = logs->pruned};
    for (int64_t i = 0; i < n; i++)
        ret->bytes += rows[i].bytes;
    pthread_mutex_unlock(&logs->lock);
}
