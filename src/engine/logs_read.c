/*
 * Reading logs (engine/logs.h): from an offset, from a moment, or the last lines.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/logs_files.h"

#define TAIL_STEP ((int64_t)64 << 10) /* bytes that are looked through for lines at once */

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

/* What is missing before all that is kept was, as a rule, more than is kept of one task. */
static void gap(st_strbuf *out, int64_t bytes, bool first)
{
    if (out->n > 0 && out->s[out->n - 1] != '\n')
        st_strbuf_addc(out, '\n');
    st_strbuf_addf(out, "[%" PRId64 " bytes are not kept: %s]\n", bytes,
                   first ? "newer output took their room"
                         : "there was no room for them, or their node could not bring them");
}

static int read_segment(const char *path, const st_log_segment *s, int64_t from, size_t max,
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
        return st_log_io_fail(err, st_strbuf_str(&file));
    got = pread(fd, bytes, n, from - s->base);
    close(fd);
    if (got < 0)
        return st_log_io_fail(err, st_strbuf_str(&file));
    st_strbuf_addn(out, bytes, (size_t)got);
    return (int)got;
}

static int read_from(const char *path, const st_log_segments *list, int64_t at, size_t left,
                     st_log_got *ret, st_err *err)
{
    for (size_t i = 0; i < list->n && left > 0; i++) {
        const st_log_segment *s = &list->v[i];
        int got;

        if (at >= s->end)
            continue;
        if (at < s->base) {
            gap(&ret->text, s->base - at, i == 0);
            at = s->base;
        }
        got = read_segment(path, s, at, left, &ret->text, err);
        if (got < 0)
            return got;
        at += got;
        left -= (size_t)got;
    }
    ret->next = at;
    return 0;
}

static bool was_pruned(const st_logs *logs, uint64_t job)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf file = {0};

    st_log_job_path(logs, job, "/pruned", &file);
    return access(st_strbuf_str(&file), F_OK) == 0;
}

/* Where the last `lines` lines begin: a line without an end counts. No further back than `max` bytes. */
static int find_tail(const char *path, const st_log_segments *list, int64_t lines, size_t max,
                     int64_t *ret, st_err *err)
{
    int64_t end = list->v[list->n - 1].end, left = lines;
    bool last = true; /* its very last byte has not been looked at */

    *ret = end;
    for (size_t i = list->n; i-- > 0 && left > 0;) {
        const st_log_segment *s = &list->v[i];

        for (int64_t to = s->end; to > s->base;) {
            ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0};
            int64_t from = ST_MAX(s->base, to - TAIL_STEP);
            const st_log_segment part = {s->base, to};
            int got = read_segment(path, &part, from, TAIL_STEP, &bytes, err);

            if (got < 0)
                return got;
            for (int64_t k = (int64_t)bytes.n; k-- > 0;) {
                if (bytes.s[k] == '\n' && !last && --left == 0) {
                    *ret = from + k + 1;
                    return 0;
                }
                last = false;
            }
            *ret = to = from;
            if (end - from > (int64_t)max)
                return 0;
        }
    }
    return 0;
}

/* Where to begin: the furthest of what is asked for. */
static int find_start(const char *path, const st_log_segments *list, const st_log_ask *ask,
                      int64_t *ret, st_err *err)
{
    int64_t end = list->v[list->n - 1].end, at;
    int r = 0;

    *ret = ST_MAX(ask->offset, 0);
    if (ask->since_ms > 0) {
        at = ST_MAX(st_log_times_find(path, ask->since_ms), list->v[0].base);
        *ret = ST_MAX(*ret, ST_MIN(at, end));
    }
    if (ask->tail > 0) {
        r = find_tail(path, list, ask->tail, ask->max, &at, err);
        *ret = r < 0 ? *ret : ST_MAX(*ret, at);
    }
    return r;
}

int st_logs_read(st_logs *logs, const st_log_ask *ask, st_log_got *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_log_segments list = {0};
    int64_t from = 0;
    int r;

    pthread_mutex_lock(&logs->lock);
    ret->newest = last_stay(logs, ask->job, ask->task);
    ret->stay = ask->stay > 0 ? ask->stay : ret->newest;
    if (ret->stay > 0) {
        st_log_path(logs, ask->job, ret->stay, ask->task, &path);
        st_log_segments_list(st_strbuf_str(&path), &list);
    }
    if (list.n > 0) {
        r = find_start(st_strbuf_str(&path), &list, ask, &from, err);
        if (r == 0)
            r = read_from(st_strbuf_str(&path), &list, from, ask->max, ret, err);
    } else if (was_pruned(logs, ask->job)) {
        r = st_fail(err, ST_ENOENT,
                    "what this job wrote was pruned: newer logs of its account needed the room");
    } else {
        r = st_fail(err, ST_ENOENT, "task %d of this job has not written anything yet", ask->task);
    }
    pthread_mutex_unlock(&logs->lock);
    st_vec_free(&list);
    return r;
}
