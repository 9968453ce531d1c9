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
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/vec.h"

#define SEGMENTS     4  /* of which a full log consists */
#define SEGMENTS_MAX 16 /* gaps begin new ones */

struct st_logs {
    char *dir;
    int64_t task_bytes;
    pthread_mutex_t lock;
};

typedef struct segment {
    int64_t base, end;
} segment;

typedef ST_VEC(segment) segments;

st_logs *st_logs_new(const char *dir, int64_t task_bytes)
{
    st_logs *logs = st_xcalloc(1, sizeof *logs);

    logs->dir = st_xstrdup(dir);
    logs->task_bytes = ST_MAX(task_bytes, SEGMENTS);
    ST_ASSERT(pthread_mutex_init(&logs->lock, NULL) == 0);
    return logs;
}

void st_logs_free(st_logs *logs)
{
    if (!logs)
        return;
    pthread_mutex_destroy(&logs->lock);
    free(logs->dir);
    free(logs);
}

/* ---- the directory --------------------------------------------------------------------------- */

static void path_of(const st_logs *logs, uint64_t job, int stay, int task, st_strbuf *out)
{
    st_strbuf_addf(out, "%s/%016" PRIx64 "/%d.%d", logs->dir, job, stay, task);
}

static int io_fail(st_err *err, const char *path)
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
        return io_fail(err, path);
    return 0;
}

static int by_base(const void *pa, const void *pb)
{
    const segment *a = pa, *b = pb;

    return a->base < b->base ? -1 : a->base > b->base;
}

/* The segments of a task in order; none when there is no such directory. */
static void list_segments(const char *path, segments *ret)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    struct stat st;

    while (dir && (entry = readdir(dir))) {
        int64_t base;

        if (st_parse_i64(entry->d_name, 0, INT64_MAX / 2, &base, NULL) == 0 &&
            fstatat(dirfd(dir), entry->d_name, &st, 0) == 0)
            st_vec_push(ret, (segment){base, base + (int64_t)st.st_size});
    }
    if (dir)
        closedir(dir);
    if (ret->n > 1)
        qsort(ret->v, ret->n, sizeof *ret->v, by_base);
}

/* ---- writing ------------------------------------------------------------------------------------ */

static void drop_oldest(const st_logs *logs, const char *path, segments *list, size_t more)
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
        unlink(st_strbuf_str(&file));
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
        return io_fail(err, st_strbuf_str(&file));
    while (done < n) {
        ssize_t w = write(fd, bytes + done, n - done);

        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            break;
        done += (size_t)w;
    }
    int r = done < n ? io_fail(err, st_strbuf_str(&file)) : 0;
    close(fd);
    *ret_written = done;
    return r;
}

static int append(const st_logs *logs, const char *path, segments *list, int64_t offset,
                  const char *bytes, size_t n, size_t *ret_written, st_err *err)
{
    const segment *last = list->n > 0 ? &list->v[list->n - 1] : NULL;
    int64_t base = last && last->end == offset ? last->base : offset;

    if (last && offset - base >= logs->task_bytes / SEGMENTS)
        base = offset;
    drop_oldest(logs, path, list, n);
    return write_segment(path, base, bytes, n, ret_written, err);
}

int st_logs_append(st_logs *logs, uint64_t job, int stay, int task, int64_t offset,
                   const char *bytes, size_t n, int64_t *ret_next, size_t *ret_dropped, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    segments list = {0};
    size_t written = 0;
    int64_t end, next = offset + (int64_t)n;
    int r;

    if (offset < 0 || offset > INT64_MAX / 4 || n > ST_LOG_CHUNK_MAX)
        return st_fail(err, ST_ERANGE, "a piece of a log has at most %zu bytes, from 0 on",
                       ST_LOG_CHUNK_MAX);
    path_of(logs, job, stay, task, &path);
    pthread_mutex_lock(&logs->lock);
    r = make_dirs(logs, job, st_strbuf_str(&path), err);
    if (r == 0)
        list_segments(st_strbuf_str(&path), &list);
    end = list.n > 0 ? list.v[list.n - 1].end : 0;
    if (r == 0 && end > offset) { /* said before, as a whole or in part */
        size_t known = (size_t)ST_MIN(end - offset, (int64_t)n);

        bytes += known;
        n -= known;
        offset += (int64_t)known;
    }
    if (r == 0 && n > 0)
        r = append(logs, st_strbuf_str(&path), &list, offset, bytes, n, &written, err);
    pthread_mutex_unlock(&logs->lock);
    st_vec_free(&list);
    if (r < 0 && r != -ST_EFULL)
        return r;
    *ret_dropped = n - written;
    *ret_next = ST_MAX(next, end);
    return 0;
}

/* ---- reading ------------------------------------------------------------------------------------ */

/* The last stay of the task that has a log; 0: none. */
static int last_stay(const st_logs *logs, uint64_t job, int task)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    struct dirent *entry;
    int last = 0, s, t, used;
    DIR *dir;

    st_strbuf_addf(&path, "%s/%016" PRIx64, logs->dir, job);
    dir = opendir(st_strbuf_str(&path));
    while (dir && (entry = readdir(dir))) {
        used = 0;
        if (sscanf(entry->d_name, "%9d.%9d%n", &s, &t, &used) == 2 && entry->d_name[used] == '\0' &&
            t == task)
            last = ST_MAX(last, s);
    }
    if (dir)
        closedir(dir);
    return last;
}

static void gap(st_strbuf *out, int64_t bytes)
{
    if (out->n > 0 && out->s[out->n - 1] != '\n')
        st_strbuf_addc(out, '\n');
    st_strbuf_addf(out, "[%" PRId64 " bytes are not kept]\n", bytes);
}

static int read_segment(const char *path, const segment *s, int64_t from, size_t max,
                        st_strbuf *out, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf file = {0};
    size_t n = (size_t)ST_MIN(s->end - from, (int64_t)max);
    ST_CLEANUP(st_freep) char *bytes = st_xmalloc(n + 1);
    ssize_t got;
    int fd;

    st_strbuf_addf(&file, "%s/%" PRId64, path, s->base);
    fd = open(st_strbuf_str(&file), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return io_fail(err, st_strbuf_str(&file));
    got = pread(fd, bytes, n, from - s->base);
    close(fd);
    if (got < 0)
        return io_fail(err, st_strbuf_str(&file));
    st_strbuf_addn(out, bytes, (size_t)got);
    return (int)got;
}

static int read_all(const char *path, const segments *list, const st_log_ask *ask, st_strbuf *ret,
                    int64_t *ret_next, st_err *err)
{
    int64_t at = ST_MAX(ask->offset, 0);
    size_t left = ask->max;

    for (size_t i = 0; i < list->n && left > 0; i++) {
        const segment *s = &list->v[i];
        int got;

        if (at >= s->end)
            continue;
        if (at < s->base) {
            gap(ret, s->base - at);
            at = s->base;
        }
        got = read_segment(path, s, at, left, ret, err);
        if (got < 0)
            return got;
        at += got;
        left -= (size_t)got;
    }
    *ret_next = at;
    return 0;
}

int st_logs_read(st_logs *logs, const st_log_ask *ask, st_strbuf *ret, int64_t *ret_next,
                 st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    segments list = {0};
    int stay, r;

    pthread_mutex_lock(&logs->lock);
    stay = ask->stay > 0 ? ask->stay : last_stay(logs, ask->job, ask->task);
    if (stay > 0) {
        path_of(logs, ask->job, stay, ask->task, &path);
        list_segments(st_strbuf_str(&path), &list);
    }
    if (list.n > 0)
        r = read_all(st_strbuf_str(&path), &list, ask, ret, ret_next, err);
    else
        r = st_fail(err, ST_ENOENT, "task %d of this job has not written anything yet", ask->task);
    pthread_mutex_unlock(&logs->lock);
    st_vec_free(&list);
    return r;
}

/* ---- forgetting --------------------------------------------------------------------------------- */

/* The newest change among a job's files; and, with `remove`, all of it away. */
static int64_t walk(const char *path, int depth, bool remove)
{
    DIR *dir = opendir(path);
    int64_t newest = 0;
    struct dirent *entry;
    struct stat st;

    while (dir && (entry = readdir(dir))) {
        ST_CLEANUP(st_strbuf_done) st_strbuf below = {0};

        if (entry->d_name[0] == '.')
            continue;
        st_strbuf_addf(&below, "%s/%s", path, entry->d_name);
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            newest = ST_MAX(newest, (int64_t)st.st_mtime * 1000);
        if (depth > 0)
            newest = ST_MAX(newest, walk(st_strbuf_str(&below), depth - 1, remove));
        else if (remove)
            unlink(st_strbuf_str(&below));
    }
    if (dir)
        closedir(dir);
    if (remove)
        rmdir(path);
    return newest;
}

int64_t st_logs_prune(st_logs *logs, int64_t before_ms)
{
    DIR *dir = opendir(logs->dir);
    struct dirent *entry;
    int64_t n = 0;

    while (dir && (entry = readdir(dir))) {
        ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};

        if (strlen(entry->d_name) != 16)
            continue;
        st_strbuf_addf(&path, "%s/%s", logs->dir, entry->d_name);
        pthread_mutex_lock(&logs->lock);
        if (walk(st_strbuf_str(&path), 1, false) < before_ms) {
            walk(st_strbuf_str(&path), 1, true);
            n++;
        }
        pthread_mutex_unlock(&logs->lock);
    }
    if (dir)
        closedir(dir);
    return n;
}
