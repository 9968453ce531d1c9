/* Layers into a folder; see the header. */
#include "run/unpack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/quote.h"
#include "run/os.h"

#define CHUNK      ((size_t)1 << 16)
#define ENTRY_COST 4096 /* what a file costs besides its bytes */
#define OPAQUE     ".wh..wh..opq"
#define HASH_SEED  7
#define SPARE_PER  16                  /* this part of the disk stays free */
#define LOOK_BYTES (INT64_C(64) << 20) /* between two looks at it */

struct st_unpack {
    int root;
    int64_t max_bytes, looked_bytes;
    st_unpacked sum;
    /* What this layer has made, by the hash of its name: whiteouts concern the layers below. A collision hides
     * a whiteout of the image that has it. */
    st_idmap *made;
    int parent; /* of the last entry, open */
    char parent_name[PATH_MAX];
    unsigned char buf[CHUNK];
};

st_unpack *st_unpack_new(int root, int64_t max_bytes)
{
    st_unpack *u = st_xcalloc(1, sizeof(*u));

    u->root = root;
    u->max_bytes = max_bytes;
    u->parent = -1;
    u->made = st_idmap_new();
    return u;
}

void st_unpack_free(st_unpack *u)
{
    if (!u)
        return;
    st_os_closep(&u->parent);
    st_idmap_free(u->made);
    free(u);
}

void st_unpack_sum(const st_unpack *u, st_unpacked *ret)
{
    *ret = u->sum;
}

/* ---- names ------------------------------------------------------------------------------ */

static int cannot(const char *name, st_err *err)
{
    char q[ST_QUOTE_MAX];
    int why = errno;

    return st_fail(err, why == ENOSPC || why == EDQUOT || why == EFBIG ? ST_EFULL : ST_EINVAL,
                   "the image cannot be unpacked: %s: %s", st_quote(q, name), strerror(why));
}

static uint64_t mark_of(const char *name)
{
    return st_hash_str(HASH_SEED, name);
}

/* It and the folders above it are this layer's. */
static void mark(st_unpack *u, const char *name)
{
    char up[PATH_MAX];
    char *slash;

    snprintf(up, sizeof(up), "%s", name);
    st_idmap_put(u->made, mark_of(up), 1);
    while ((slash = strrchr(up, '/'))) {
        *slash = '\0';
        if (st_idmap_get(u->made, mark_of(up), NULL))
            return;
        st_idmap_put(u->made, mark_of(up), 1);
    }
}

/* A folder of the tree. Links of the image are followed as they will be inside: as if the root were here. */
static int open_folder(const st_unpack *u, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

    return (int)syscall(SYS_openat2, u->root, name[0] ? name : ".", &how, sizeof(how));
}

static int count(st_unpack *u, int64_t bytes, st_err *err)
{
    struct statfs st;

    u->sum.bytes += bytes;
    if (u->sum.bytes > u->max_bytes)
        return st_fail(err, ST_ELIMIT, "the image has more than %lld MiB when it is unpacked",
                       (long long)(u->max_bytes >> 20));
    if (u->sum.bytes - u->looked_bytes < LOOK_BYTES)
        return 0;
    u->looked_bytes = u->sum.bytes;
    if (fstatfs(u->root, &st) == 0 && st.f_bavail < st.f_blocks / SPARE_PER)
        return st_fail(err, ST_EFULL, "the node's disk is too full to unpack the image");
    return 0;
}

static int make_folder(st_unpack *u, const char *name, st_err *err)
{
    char up[PATH_MAX];
    char *slash;
    int fd;

    snprintf(up, sizeof(up), "%s", name);
    slash = strrchr(up, '/');
    if (slash)
        *slash = '\0';
    fd = open_folder(u, slash ? up : "");
    if (fd < 0 && errno == ENOENT && slash) {
        int r = make_folder(u, up, err);

        if (r < 0)
            return r;
        fd = open_folder(u, up);
    }
    if (fd < 0 || (mkdirat(fd, slash ? slash + 1 : name, 0755) != 0 && errno != EEXIST)) {
        int r = cannot(name, err);

        st_os_closep(&fd);
        return r;
    }
    close(fd);
    return count(u, ENTRY_COST, err);
}

/* The folder an entry goes into, made where it is missing; *ret_last is the rest of the name. Borrowed. */
static int enter(st_unpack *u, const char *name, int *ret, const char **ret_last, st_err *err)
{
    const char *slash = strrchr(name, '/');
    char up[PATH_MAX] = "";
    int r = 0;

    if (slash)
        memcpy(up, name, (size_t)(slash - name));
    *ret_last = slash ? slash + 1 : name;
    if (u->parent < 0 || strcmp(up, u->parent_name) != 0) {
        st_os_closep(&u->parent);
        u->parent = open_folder(u, up);
        if (u->parent < 0 && errno == ENOENT && up[0] && (r = make_folder(u, up, err)) == 0)
            u->parent = open_folder(u, up);
        if (r < 0)
            return r;
        if (u->parent < 0)
            return cannot(name, err);
        memcpy(u->parent_name, up, sizeof(up));
    }
    *ret = u->parent;
    return 0;
}

/* ---- taking away ------------------------------------------------------------------------ */

/* What is in a folder; `name` is its own, for asking what this layer made. Keeps that if asked to. Closes it. */
static int empty(st_unpack *u, int fd, const char *name, bool keep_made, int depth, st_err *err);

static int take_away(st_unpack *u, int dir, const char *last, const char *name, bool keep_made,
                     int depth, st_err *err)
{
    bool kept = keep_made && st_idmap_get(u->made, mark_of(name), NULL);
    struct stat st;

    if (fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : cannot(name, err);
    if (S_ISDIR(st.st_mode)) {
        int sub = openat(dir, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int r = sub < 0 ? cannot(name, err) : empty(u, sub, name, kept, depth + 1, err);

        if (r < 0)
            return r;
    }
    if (!kept && unlinkat(dir, last, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) != 0)
        return cannot(name, err);
    return 0;
}

static int empty(st_unpack *u, int fd, const char *name, bool keep_made, int depth, st_err *err)
{
    char child[PATH_MAX];
    DIR *dir = depth <= ST_UNPACK_DEPTH_MAX ? fdopendir(fd) : NULL;
    int r = 0;

    if (!dir) {
        close(fd);
        return cannot(name, err);
    }
    for (struct dirent *e; r == 0 && (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (snprintf(child, sizeof(child), "%s%s%s", name, name[0] ? "/" : "", e->d_name) >=
            (int)sizeof(child))
            r = st_fail(err, ST_ELIMIT, "a name in the image is too long");
        else
            r = take_away(u, dirfd(dir), e->d_name, child, keep_made, depth, err);
    }
    closedir(dir);
    return r;
}

/* ".wh.NAME" hides NAME of the layers below, ".wh..wh..opq" all that is below in its folder. */
static int whiteout(st_unpack *u, int dir, const char *last, const char *entry, st_err *err)
{
    const char *hidden = last + 4;
    char name[PATH_MAX];

    if (strcmp(last, OPAQUE) == 0) {
        int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return again < 0 ? cannot(entry, err) : empty(u, again, u->parent_name, true, 0, err);
    }
    if (strncmp(hidden, ".wh.", 4) == 0)
        return 0; /* another file system's book-keeping */
    if (!hidden[0] || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
        return st_fail(err, ST_EINVAL, "a layer of the image hides a name that none has");
    if (snprintf(name, sizeof(name), "%s%s%s", u->parent_name, u->parent_name[0] ? "/" : "",
                 hidden) >= (int)sizeof(name))
        return st_fail(err, ST_ELIMIT, "a name in the image is too long");
    return take_away(u, dir, hidden, name, true, 0, err);
}

/* ---- making ----------------------------------------------------------------------------- */

static void set_time(int dir, const char *last, int64_t mtime_s)
{
    const struct timespec when[2] = {{.tv_sec = mtime_s}, {.tv_sec = mtime_s}};

    (void)utimensat(dir, last, when, AT_SYMLINK_NOFOLLOW);
}

static int put(int fd, const unsigned char *buf, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, buf, n);

        if (done < 0 && errno != EINTR)
            return -1;
        if (done > 0) {
            buf += done;
            n -= (size_t)done;
        }
    }
    return 0;
}

static int add_file(st_unpack *u, int dir, const char *last, const st_tar_entry *e, st_tar *tar,
                    st_err *err)
{
    ST_CLEANUP(st_os_closep)
    int fd = openat(dir, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    size_t n = 1;
    int r = fd < 0 ? cannot(e->name, err) : 0;

    while (r == 0 && n > 0) {
        r = st_tar_body(tar, u->buf, sizeof(u->buf), &n, err);
        if (r == 0)
            r = count(u, (int64_t)n, err);
        if (r == 0 && put(fd, u->buf, n) != 0)
            r = cannot(e->name, err);
    }
    if (r == 0 && fchmod(fd, (e->mode & 0777) | 0400) != 0)
        r = cannot(e->name, err);
    return r;
}

static int add_folder(int dir, const char *last, const st_tar_entry *e, st_err *err)
{
    /* Ours to write, so that the layers above get in. */
    mode_t mode = (e->mode & 01777) | 0700;

    if ((mkdirat(dir, last, 0700) != 0 && errno != EEXIST) || fchmodat(dir, last, mode, 0) != 0)
        return cannot(e->name, err);
    return 0;
}

static int add_hardlink(st_unpack *u, int dir, const char *last, const st_tar_entry *e, st_err *err)
{
    const char *slash = strrchr(e->link, '/');
    char up[PATH_MAX] = "";
    struct stat st;

    if (slash)
        memcpy(up, e->link, (size_t)(slash - e->link));
    const char *first = slash ? slash + 1 : e->link;
    ST_CLEANUP(st_os_closep) int from = e->link[0] ? open_folder(u, up) : -1;

    if (from < 0 || fstatat(from, first, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !(S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)))
        return st_fail(err, ST_EINVAL, "a hard link in the image leads to no file of the image");
    return linkat(from, first, dir, last, 0) == 0 ? 0 : cannot(e->name, err);
}

/* Makes way: what is there is of a layer below, or the same name again. A folder stays for a folder. */
static int make_way(st_unpack *u, int dir, const char *last, const st_tar_entry *e, bool *ret_same,
                    st_err *err)
{
    struct stat st, to;

    *ret_same = false;
    if (fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : cannot(e->name, err);
    if (e->kind == ST_TAR_FOLDER && S_ISDIR(st.st_mode))
        return 0;
    if (e->kind == ST_TAR_HARDLINK && strcmp(e->link, e->name) == 0) {
        *ret_same = fstatat(u->root, e->link, &to, AT_SYMLINK_NOFOLLOW) == 0;
        if (*ret_same)
            return 0;
    }
    return take_away(u, dir, last, e->name, false, 0, err);
}

static int add(st_unpack *u, const st_tar_entry *e, st_tar *tar, st_err *err)
{
    const char *last;
    bool same;
    int dir, r;

    if (++u->sum.entries > ST_UNPACK_ENTRIES_MAX)
        return st_fail(err, ST_ELIMIT, "the image has more than %d files", ST_UNPACK_ENTRIES_MAX);
    if (e->depth > ST_UNPACK_DEPTH_MAX)
        return st_fail(err, ST_ELIMIT, "the image has folders more than %d deep",
                       ST_UNPACK_DEPTH_MAX);
    if (e->depth == 0)
        return 0; /* the root: it is there */
    if ((r = count(u, ENTRY_COST, err)) < 0)
        return r;
    if (e->kind == ST_TAR_OTHER) {
        u->sum.left_out++;
        return 0;
    }
    if ((r = enter(u, e->name, &dir, &last, err)) < 0)
        return r;
    if (strncmp(last, ".wh.", 4) == 0)
        return whiteout(u, dir, last, e->name, err);
    if ((r = make_way(u, dir, last, e, &same, err)) < 0 || same)
        return r;
    mark(u, e->name);
    switch (e->kind) {
    case ST_TAR_FILE:
        r = add_file(u, dir, last, e, tar, err);
        break;
    case ST_TAR_FOLDER:
        r = add_folder(dir, last, e, err);
        break;
    case ST_TAR_SYMLINK:
        r = e->link[0] && symlinkat(e->link, dir, last) == 0 ? 0 : cannot(e->name, err);
        break;
    default:
        r = add_hardlink(u, dir, last, e, err);
        break;
    }
    if (r == 0 && e->kind != ST_TAR_HARDLINK)
        set_time(dir, last, e->mtime_s);
    return r;
}

int st_unpack_layer(st_unpack *u, st_tar *tar, st_err *err)
{
    ST_CLEANUP(st_freep) st_tar_entry *e = st_xcalloc(1, sizeof(*e));
    int r;

    st_idmap_free(u->made);
    u->made = st_idmap_new();
    st_os_closep(&u->parent);
    while ((r = st_tar_next(tar, e, err)) > 0)
        if ((r = add(u, e, tar, err)) < 0)
            return r;
    return r;
}
