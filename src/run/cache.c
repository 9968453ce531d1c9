/* Unpacked images; see the header. */
#include "run/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "run/layout.h"
#include "run/os.h"

int st_cache_scope(const char *images, const char *tenant, char ret[PATH_MAX], st_err *err)
{
    int r = tenant[0] ? st_os_path(ret, err, "%s/of-%s", images, tenant)
                      : st_os_path(ret, err, "%s/site", images);

    if (r == 0)
        r = st_os_mkdirs(images, 0700, err);
    if (r == 0 && mkdir(ret, 0700) != 0 && errno != EEXIST)
        r = st_fail(err, ST_EIO, "cannot make %s: %s", ret, strerror(errno));
    return r;
}

/* ---- holding ---------------------------------------------------------------------------- */

/* The lock of its use; -1: somebody is taking the image away, or it cannot be had. A lock whose file has been removed
 * meanwhile holds nothing. */
static int use_lock(const char *scope, const char *hex, int how)
{
    char path[PATH_MAX];

    if (st_os_path(path, NULL, "%s/%s.use", scope, hex) != 0)
        return -1;
    for (int i = 0; i < 100; i++) {
        ST_CLEANUP(st_os_closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        struct stat st;

        if (fd < 0 || flock(fd, how | LOCK_NB) != 0 || fstat(fd, &st) != 0)
            return -1;
        if (st.st_nlink > 0) {
            int held = fd;

            fd = -1;
            return held;
        }
    }
    return -1;
}

bool st_cache_use(const char *scope, const char *hex, int *ret_use)
{
    char root[PATH_MAX];
    int use;

    /* Nothing is made for what is not there. */
    if (st_os_path(root, NULL, "%s/%s/root", scope, hex) != 0 || access(root, F_OK) != 0)
        return false;
    use = use_lock(scope, hex, LOCK_SH);
    if (use < 0)
        return false;
    if (access(root, F_OK) != 0) {
        close(use);
        return false;
    }
    (void)futimens(use, NULL);
    *ret_use = use;
    return true;
}

/* ---- making ----------------------------------------------------------------------------- */

int st_cache_part(const char *scope, const char *hex, char ret[PATH_MAX], st_err *err)
{
    char root[PATH_MAX];
    int r = st_os_path(ret, err, "%s/%s.part", scope, hex);

    if (r == 0)
        r = st_os_remove_tree(ret, err);
    if (r == 0)
        r = st_os_path(root, err, "%s/root", ret);
    if (r == 0 && (mkdir(ret, 0700) != 0 || mkdir(root, 0755) != 0))
        r = st_fail(err, ST_EIO, "cannot make %s: %s", root, strerror(errno));
    return r;
}

int st_cache_keep(const char *scope, const char *hex, const char *part, int64_t bytes, st_err *err)
{
    ST_CLEANUP(st_os_jsonp) json_t *meta = json_pack("{s:I}", "bytes", (json_int_t)bytes);
    ST_CLEANUP(st_os_closep) int fd = open(part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char path[PATH_MAX], final[PATH_MAX];
    int r = st_os_path(path, err, "%s/meta.json", part);

    if (r == 0)
        r = st_os_path(final, err, "%s/%s", scope, hex);
    if (r == 0)
        r = st_os_write_json(path, meta, err);
    /* What has the name is whole, also after the machine has crashed. */
    if (r == 0 && (fd < 0 || syncfs(fd) != 0 || rename(part, final) != 0))
        r = st_fail(err, ST_EIO, "the image cannot be kept: %s", strerror(errno));
    return r;
}

/* ---- of earlier versions ----------------------------------------------------------------- */

int st_cache_tidy(const char *images, st_err *err)
{
    DIR *d = opendir(images);
    int r = 0;

    for (struct dirent *e; d && r == 0 && (e = readdir(d));) {
        char path[PATH_MAX];

        if (strspn(e->d_name, "0123456789abcdef") != ST_DIGEST_HEX)
            continue;
        r = st_os_path(path, err, "%s/%s", images, e->d_name);
        if (r == 0)
            r = st_os_remove_tree(path, err);
    }
    if (d)
        closedir(d);
    return r;
}

/* ---- making room ------------------------------------------------------------------------ */

typedef struct slot {
    int scope;
    char hex[ST_DIGEST_HEX + 1];
    int64_t bytes, used_s;
    bool tried;
} slot;

typedef struct shelf {
    char (*scopes)[PATH_MAX];
    int64_t *held;
    int nscope, ours; /* ours: who needs room, -1: it has nothing yet */
    ST_VEC(slot) slots;
    int64_t total;
} shelf;

static void add_scope(shelf *s, const char *images, const char *name, const char *ours)
{
    size_t n = (size_t)s->nscope;

    s->scopes = st_xrealloc(s->scopes, (n + 1) * sizeof(*s->scopes));
    s->held = st_xrealloc(s->held, (n + 1) * sizeof(*s->held));
    s->held[n] = 0;
    if (st_os_path(s->scopes[n], NULL, "%s/%s", images, name) != 0)
        return;
    if (strcmp(s->scopes[n], ours) == 0)
        s->ours = s->nscope;
    DIR *d = opendir(s->scopes[n]);

    for (struct dirent *e; d && (e = readdir(d));) {
        ST_CLEANUP(st_os_jsonp) json_t *meta = NULL;
        slot one = {.scope = s->nscope};
        char path[PATH_MAX];
        struct stat st;

        if (strlen(e->d_name) != ST_DIGEST_HEX ||
            st_os_path(path, NULL, "%s/%s/meta.json", s->scopes[n], e->d_name) != 0 ||
            st_os_read_json(path, &meta, NULL) != 0)
            continue;
        memcpy(one.hex, e->d_name, sizeof(one.hex));
        one.bytes = json_integer_value(json_object_get(meta, "bytes"));
        if (st_os_path(path, NULL, "%s/%s.use", s->scopes[n], e->d_name) == 0 &&
            stat(path, &st) == 0)
            one.used_s = st.st_mtime;
        s->held[n] += one.bytes;
        s->total += one.bytes;
        st_vec_push(&s->slots, one);
    }
    if (d)
        closedir(d);
    s->nscope++;
}

static void shelf_done(shelf *s)
{
    st_vec_free(&s->slots);
    free(s->scopes);
    free(s->held);
}

/* The longest unused of the scope that has most; NULL: all were tried. `only` is a scope, -1: any. */
static slot *choose(shelf *s, int only)
{
    slot *best = NULL;

    for (size_t i = 0; i < s->slots.n; i++) {
        slot *one = &s->slots.v[i];

        if (one->tried || (only >= 0 && one->scope != only))
            continue;
        if (!best || s->held[one->scope] > s->held[best->scope] ||
            (one->scope == best->scope && one->used_s < best->used_s))
            best = one;
    }
    return best;
}

static void take_away(shelf *s, slot *one)
{
    char path[PATH_MAX], gone[PATH_MAX], use[PATH_MAX];
    const char *scope = s->scopes[one->scope];
    ST_CLEANUP(st_os_closep) int lock = use_lock(scope, one->hex, LOCK_EX);

    one->tried = true;
    if (lock < 0 || st_os_path(path, NULL, "%s/%s", scope, one->hex) != 0 ||
        st_os_path(gone, NULL, "%s/%s.gone", scope, one->hex) != 0 ||
        st_os_path(use, NULL, "%s/%s.use", scope, one->hex) != 0)
        return;
    (void)st_os_remove_tree(gone, NULL); /* of one that died half way */
    if (rename(path, gone) != 0 || st_os_remove_tree(gone, NULL) != 0)
        return;
    unlink(use);
    s->held[one->scope] -= one->bytes;
    s->total -= one->bytes;
}

int st_cache_room(const char *images, const char *scope, int64_t need, int64_t max_bytes,
                  st_err *err)
{
    bool site = strcmp(strrchr(scope, '/'), "/site") == 0;
    int64_t share = site ? max_bytes : max_bytes / 2;
    shelf s = {.ours = -1};
    DIR *d = opendir(images);
    slot *one;
    int r = 0;

    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            add_scope(&s, images, e->d_name, scope);
    if (d)
        closedir(d);
    while (s.ours >= 0 && s.held[s.ours] + need > share && (one = choose(&s, s.ours)))
        take_away(&s, one);
    while (s.total + need > max_bytes && (one = choose(&s, -1)))
        take_away(&s, one);
    if (s.total + need > max_bytes || (s.ours >= 0 ? s.held[s.ours] : 0) + need > share)
        r = st_fail(err, ST_EFULL,
                    "no room for the image on this node: it needs %lld MiB, %s may have %lld",
                    (long long)(need >> 20), site ? "all images" : "a tenant's images",
                    (long long)(share >> 20));
    shelf_done(&s);
    return r;
}
