/*
 * Putting a backup in the store's place (stintd/restore.h). The copy is made, checked and marked under another name; only
 * then it gets the store's, in one step.
 */
#include "stintd/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "control/restore.h"
#include "stintd/check.h"

#define PART 65536

static int copy_bytes(int from, int to)
{
    static char part[PART];
    ssize_t n;

    while ((n = read(from, part, sizeof part)) > 0)
        for (ssize_t at = 0, w; at < n; at += w)
            if ((w = write(to, part + at, (size_t)(n - at))) < 0)
                return -1;
    return n < 0 ? -1 : fsync(to);
}

static int copy_file(const char *from, const char *to, st_err *err)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), out = -1, r = 0;

    if (in < 0)
        return st_fail(err, errno == ENOENT ? ST_ENOENT : ST_EIO, "%s: cannot be read: %s", from,
                       strerror(errno));
    out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (out < 0 || copy_bytes(in, out) < 0)
        r = st_fail(err, errno == ENOSPC ? ST_EFULL : ST_EIO, "%s: cannot be written: %s", to,
                    strerror(errno));
    if (out >= 0)
        close(out);
    close(in);
    return r;
}

static bool is_same(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A copy of a running stintd's file has only half of what it knew. */
static int check_whole(const char *backup, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf wal = {0};
    struct stat st;

    st_strbuf_addf(&wal, "%s-wal", backup);
    if (stat(st_strbuf_str(&wal), &st) == 0 && st.st_size > 0)
        return st_fail(err, ST_EINVAL,
                       "%s has a write-ahead log beside it, so it is no backup; make one with "
                       "`stint admin backup`",
                       backup);
    return 0;
}

static void leftovers(const char *path)
{
    static const char *const tails[] = {"", "-wal", "-shm", ".lock"};
    ST_CLEANUP(st_strbuf_done) st_strbuf name = {0};

    for (size_t i = 0; i < ST_ARRAY_LEN(tails); i++) {
        st_strbuf_clear(&name);
        st_strbuf_addf(&name, "%s%s", path, tails[i]);
        unlink(st_strbuf_str(&name));
    }
}

static void key_beside(const char *store, st_strbuf *out)
{
    const char *slash = strrchr(store, '/');

    st_strbuf_addf(out, "%.*sbilling.key", slash ? (int)(slash + 1 - store) : 0, store);
}

int st_restore_store(const char *store, const char *backup, const char *key, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf part = {0}, aside = {0}, said = {0}, beside = {0};
    struct timespec t;
    struct tm tm;
    char when[32];
    int r = 0;

    clock_gettime(CLOCK_REALTIME, &t);
    int64_t now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;

    if (is_same(store, backup)) {
        r = st_control_mark_restored(store, backup, now, &said, err);
    } else {
        gmtime_r(&t.tv_sec, &tm);
        strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &tm);
        st_strbuf_addf(&part, "%s.restoring", store);
        st_strbuf_addf(&aside, "%s.before-%s", store, when);
        key_beside(store, &beside);
        leftovers(st_strbuf_str(&part));
        r = check_whole(backup, err);
        if (r == 0)
            r = copy_file(backup, st_strbuf_str(&part), err);
        if (r == 0 && st_check_store(st_strbuf_str(&part), key ? key : st_strbuf_str(&beside)) != 0)
            r = st_fail(err, ST_ECORRUPT, "%s is damaged; the store is as it was", backup);
        if (r == 0)
            r = st_control_mark_restored(st_strbuf_str(&part), backup, now, &said, err);
        if (r == 0)
            r = st_store_replace(store, st_strbuf_str(&part), st_strbuf_str(&aside), err);
        leftovers(st_strbuf_str(&part));
    }
    if (r < 0)
        return r;
    fputs(st_strbuf_str(&said), stdout);
    if (aside.n > 0 && access(st_strbuf_str(&aside), F_OK) == 0)
        printf("The store that was there is %s.\n", st_strbuf_str(&aside));
    puts("Start stintd. It waits: agents report what they have and nothing is started or ended. "
         "Look\n"
         "at what would become of it with `stint admin restore`, then run `stint admin restore "
         "accept`.");
    return 0;
}
