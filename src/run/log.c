/* A bounded log of one output stream; see the header. */
#include "run/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/num.h"
#include "base/vec.h"
#include "run/os.h"

int st_log_init(st_log *log, const char *prefix, int64_t bytes, st_err *err)
{
    *log = (st_log){.fd = -1, .file_max = ST_MAX(bytes / ST_LOG_FILES, 1)};
    return st_os_path(log->prefix, err, "%s", prefix);
}

static void forget_oldest(st_log *log)
{
    char path[PATH_MAX];

    if (st_os_path(path, NULL, "%s.%" PRId64, log->prefix, log->firsts[0]) == 0)
        unlink(path);
    log->nfile--;
    memmove(log->firsts, log->firsts + 1, sizeof(log->firsts[0]) * (size_t)log->nfile);
}

static bool open_next(st_log *log)
{
    char path[PATH_MAX];
    int64_t first = log->start + log->size;

    if (log->nfile == ST_LOG_FILES)
        forget_oldest(log);
    if (st_os_path(path, NULL, "%s.%" PRId64, log->prefix, first) != 0)
        return false;
    log->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (log->fd < 0)
        return false;
    log->firsts[log->nfile++] = first;
    log->start = first;
    log->size = 0;
    return true;
}

/* What could be written; a short count means that the disk is full or broken. */
static size_t put(st_log *log, const char *bytes, size_t n)
{
    size_t done = 0;

    if (log->fd < 0 && !open_next(log))
        return 0;
    while (done < n) {
        ssize_t w = write(log->fd, bytes + done, n - done);

        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            break;
        done += (size_t)w;
    }
    log->size += (int64_t)done;
    if (done > 0)
        log->mid_line = bytes[done - 1] != '\n';
    return done;
}

/* Says what is missing, before anything else is written. All of the line or none of it. */
static bool admit_loss(st_log *log)
{
    char line[128];
    int64_t missing = log->lost - log->lost_told;

    if (missing == 0)
        return true;
    int n = snprintf(line, sizeof(line), "%s[stint: %" PRId64 " bytes of output lost, disk full]\n",
                     log->mid_line ? "\n" : "", missing);
    size_t done = put(log, line, (size_t)n);

    if (done == (size_t)n) {
        log->lost_told = log->lost;
        return true;
    }
    if (done > 0 && ftruncate(log->fd, (off_t)(log->size - (int64_t)done)) == 0 &&
        lseek(log->fd, 0, SEEK_END) >= 0) {
        log->size -= (int64_t)done;
        log->mid_line = line[0] == '\n';
    }
    return false;
}

void st_log_done(st_log *log)
{
    (void)admit_loss(log);
    if (log->fd >= 0)
        close(log->fd);
    log->fd = -1;
}

int64_t st_log_end(const st_log *log)
{
    return log->start + log->size;
}

/* How many of the n bytes belong into the current file. */
static size_t room(const st_log *log, const char *bytes, size_t n)
{
    int64_t left = log->file_max - log->size;
    size_t plain = left > 0 ? ST_MIN((size_t)left, n) : 0;

    if (plain == n || (plain == 0 && !log->mid_line) || (plain > 0 && bytes[plain - 1] == '\n'))
        return plain;
    /* The file is full in the middle of a line: it takes the rest of it, within reason. */
    int64_t over = log->file_max + ST_LOG_LINE_MAX - log->size;
    size_t most = over > 0 ? ST_MIN((size_t)over, n) : 0;

    if (most <= plain)
        return plain;
    const char *end = memchr(bytes + plain, '\n', most - plain);

    return end ? (size_t)(end - bytes) + 1 : most;
}

/* Output never takes the last of a disk: how tasks ended, and who runs here, must find room. */
static bool leaves_room(const st_log *log)
{
    struct statvfs fs;

    return fstatvfs(log->fd, &fs) != 0 ||
           (uint64_t)fs.f_bavail * fs.f_frsize >
               ST_MIN((uint64_t)fs.f_blocks * fs.f_frsize / ST_LOG_DISK_PART, ST_LOG_DISK_MAX);
}

void st_log_add(st_log *log, const char *bytes, size_t n)
{
    while (n > 0) {
        if ((log->fd < 0 && !open_next(log)) || !leaves_room(log) || !admit_loss(log)) {
            log->lost += (int64_t)n;
            return;
        }
        size_t take = room(log, bytes, n);

        if (take == 0) {
            close(log->fd);
            log->fd = -1;
            continue;
        }
        size_t done = put(log, bytes, take);

        if (done < take) {
            log->lost += (int64_t)(n - done);
            return;
        }
        bytes += take;
        n -= take;
    }
}

/* ---- reading ---------------------------------------------------------------------------- */

typedef struct piece {
    int64_t first, size;
} piece;

typedef ST_VEC(piece) piece_vec;

static int by_first(const void *a, const void *b)
{
    const piece *x = a, *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

static int find_pieces(const char *dir, const char *stream, piece_vec *ret, st_err *err)
{
    DIR *d = opendir(dir);
    size_t len = strlen(stream);

    if (!d)
        return st_fail(err, ST_ENOENT, "there is no log in %s", dir);
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        int64_t first;

        if (strncmp(e->d_name, stream, len) != 0 || e->d_name[len] != '.' ||
            st_parse_i64(e->d_name + len + 1, 0, INT64_MAX, &first, NULL) != 0 ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        st_vec_push(ret, (piece){.first = first, .size = (int64_t)st.st_size});
    }
    closedir(d);
    if (ret->n > 0)
        qsort(ret->v, ret->n, sizeof(ret->v[0]), by_first);
    return 0;
}

static size_t read_piece(const char *path, int64_t at, char *buf, size_t cap)
{
    ST_CLEANUP(st_os_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    size_t n = 0;

    while (fd >= 0 && n < cap) {
        ssize_t r = pread(fd, buf + n, cap - n, (off_t)(at + (int64_t)n));

        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            break;
        n += (size_t)r;
    }
    return n;
}

int st_log_read(const char *dir, const char *stream, int64_t offset, char *buf, size_t cap,
                size_t *ret_n, int64_t *ret_first, int64_t *ret_end, st_err *err)
{
    piece_vec pieces = {0};
    int r = find_pieces(dir, stream, &pieces, err);

    if (r)
        return r;
    size_t n = 0;
    int64_t first = offset;
    int64_t end = pieces.n ? pieces.v[pieces.n - 1].first + pieces.v[pieces.n - 1].size : 0;

    for (size_t i = 0; i < pieces.n && n < cap; i++) {
        const piece *p = &pieces.v[i];
        int64_t at = first + (int64_t)n;
        char path[PATH_MAX];

        if (p->first + p->size <= at)
            continue;
        if (at < p->first) {
            if (n > 0)
                break; /* rotated away while we read */
            first = at = p->first;
        }
        if (st_os_path(path, NULL, "%s/%s.%" PRId64, dir, stream, p->first) == 0)
            n += read_piece(path, at - p->first, buf + n, cap - n);
    }
    st_vec_free(&pieces);
    *ret_n = n;
    *ret_first = ST_MIN(first, ST_MAX(end, 0));
    *ret_end = end;
    return 0;
}
