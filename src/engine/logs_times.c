/*
 * When what came: a row for each second in which a task's output arrived.
 *
 * Invariants: rows have growing offsets and times that do not go back; what lies between the offset of a row and that
 * of the next came between the row's first and last moment. A file that is full becomes half as long: each two rows
 * are one. A clock that goes back adds to the last row until it has caught up.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/logs_files.h"

#define ROWS_MAX  ((size_t)2730) /* 64 KiB */
#define SECOND_MS 1000

typedef struct row {
    int64_t offset, first_ms, last_ms;
} row;

static int open_times(const char *path, int flags)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf file = {0};

    st_strbuf_addf(&file, "%s/times", path);
    return open(st_strbuf_str(&file), flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* How many whole rows there are: a torn one at the end, of a crash, is written over. */
static size_t rows_of(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 ? (size_t)st.st_size / sizeof(row) : 0;
}

static bool get(int fd, size_t i, size_t n, row *ret)
{
    return pread(fd, ret, n * sizeof *ret, (off_t)(i * sizeof *ret)) == (ssize_t)(n * sizeof *ret);
}

static bool put(int fd, size_t i, size_t n, const row *rows)
{
    return pwrite(fd, rows, n * sizeof *rows, (off_t)(i * sizeof *rows)) ==
           (ssize_t)(n * sizeof *rows);
}

static size_t halve(int fd, size_t n)
{
    ST_CLEANUP(st_freep) row *rows = st_xcalloc(n, sizeof *rows);
    size_t half = (n + 1) / 2;

    if (!get(fd, 0, n, rows))
        return n;
    for (size_t i = 0; i < half; i++) {
        size_t last = ST_MIN(2 * i + 1, n - 1);

        rows[i] = (row){rows[2 * i].offset, rows[2 * i].first_ms, rows[last].last_ms};
    }
    if (!put(fd, 0, half, rows) || ftruncate(fd, (off_t)(half * sizeof *rows)) < 0)
        return n;
    return half;
}

int64_t st_log_times_add(const char *path, int64_t offset, int64_t ms)
{
    int fd = open_times(path, O_RDWR | O_CREAT);
    size_t n, was;
    row last;

    if (fd < 0)
        return 0;
    was = n = rows_of(fd);
    if (n > 0 && get(fd, n - 1, 1, &last) &&
        (ms < last.last_ms || ms / SECOND_MS == last.first_ms / SECOND_MS)) {
        last.last_ms = ST_MAX(last.last_ms, ms);
        (void)put(fd, n - 1, 1, &last);
    } else {
        if (n >= ROWS_MAX)
            n = halve(fd, n);
        if (put(fd, n, 1, &(row){offset, ms, ms}))
            n++;
    }
    close(fd);
    return ((int64_t)n - (int64_t)was) * (int64_t)sizeof(row);
}

int64_t st_log_times_find(const char *path, int64_t ms)
{
    int fd = open_times(path, O_RDONLY);
    size_t lo = 0, hi;
    int64_t found = INT64_MAX;
    row r;

    if (fd < 0)
        return 0;
    hi = rows_of(fd);
    if (hi == 0)
        found = 0;
    while (lo < hi) { /* the first row whose last moment is not before it */
        size_t mid = lo + (hi - lo) / 2;

        if (!get(fd, mid, 1, &r)) {
            found = 0;
            break;
        }
        if (r.last_ms >= ms) {
            found = r.offset;
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    close(fd);
    return found;
}
