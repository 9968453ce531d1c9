/*
 * Reading and keeping zones (zones/zones.h).
 */
#include "zones/zones.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/vec.h"

#define KEPT_MAX 1000 /* more names than the database has */

struct st_zones {
    char *dir;
    pthread_mutex_t lock;
    st_map *by_name;                    /* index in `kept` */
    size_t names;                       /* in by_name */
    char version[ST_ZONES_VERSION_MAX]; /* that was there when they were first looked for */
    ST_VEC(st_tz *) kept;
};

st_zones *st_zones_new(const char *dir)
{
    st_zones *zones = st_xcalloc(1, sizeof *zones);

    zones->dir = st_xstrdup(dir);
    zones->by_name = st_map_new();
    st_zones_version(zones, zones->version);
    ST_ASSERT(pthread_mutex_init(&zones->lock, NULL) == 0);
    return zones;
}

void st_zones_free(st_zones *zones)
{
    if (!zones)
        return;
    for (size_t i = 0; i < zones->kept.n; i++)
        st_tz_free(zones->kept.v[i]);
    st_vec_free(&zones->kept);
    st_map_free(zones->by_name);
    pthread_mutex_destroy(&zones->lock);
    free(zones->dir);
    free(zones);
}

/* Beneath the folder: a link there may lead to another zone, but not out of it. */
static int open_beneath(const st_zones *zones, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    int dir = open(zones->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = dir < 0 ? -1 : (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
    struct stat st;

    if (dir >= 0)
        close(dir);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* At most `max` bytes; fewer than the file has are none. */
static ssize_t read_all(int fd, char *buf, size_t max)
{
    size_t n = 0;

    while (n < max) {
        ssize_t r = read(fd, buf + n, max - n);

        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -1;
        if (r == 0)
            return (ssize_t)n;
        n += (size_t)r;
    }
    return -1;
}

static int no_zone(const char *name, st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_fail(err, ST_EINVAL,
                   "there is no time zone %s; use an IANA name such as Europe/Berlin",
                   st_quote(q, name));
}

static int load(const st_zones *zones, const char *name, st_tz **ret, st_err *err)
{
    ST_CLEANUP(st_freep) char *buf = st_xmalloc(ST_TZ_BYTES_MAX + 1);
    int fd = open_beneath(zones, name);
    ssize_t n = fd < 0 ? -1 : read_all(fd, buf, ST_TZ_BYTES_MAX + 1);

    if (fd >= 0)
        close(fd);
    if (n < 4 || memcmp(buf, "TZif", 4) != 0) /* a folder, a table, or nothing */
        return no_zone(name, err);
    return st_tz_parse(name, buf, (size_t)n, ret, err);
}

int st_zones_get(st_zones *zones, const char *name, const st_tz **ret, st_err *err)
{
    int64_t at;
    int r = 0;

    if (!st_tz_name_is_sane(name))
        return no_zone(name, err);
    pthread_mutex_lock(&zones->lock);
    if (!st_map_get(zones->by_name, name, &at)) {
        st_tz *tz = NULL;

        if (strcmp(name, "UTC") == 0)
            tz = st_tz_utc();
        else if (zones->names >= KEPT_MAX)
            r = st_fail(err, ST_ELIMIT, "too many time zones are in use");
        else
            r = load(zones, name, &tz, err);
        at = (int64_t)zones->kept.n;
        if (r == 0) {
            st_map_put(zones->by_name, name, at);
            zones->names++;
            st_vec_push(&zones->kept, tz);
        }
    }
    if (r == 0)
        *ret = zones->kept.v[at];
    pthread_mutex_unlock(&zones->lock);
    return r;
}

void st_zones_refresh(st_zones *zones)
{
    char version[ST_ZONES_VERSION_MAX];

    st_zones_version(zones, version);
    pthread_mutex_lock(&zones->lock);
    if (strcmp(version, zones->version) != 0) {
        st_map_free(zones->by_name);
        zones->by_name = st_map_new();
        zones->names = 0;
        memcpy(zones->version, version, sizeof version);
    }
    pthread_mutex_unlock(&zones->lock);
}

const char *st_zones_dir(void)
{
    const char *dir = getenv("TZDIR");

    return dir && dir[0] == '/' ? dir : ST_ZONES_DIR;
}

void st_zones_version(const st_zones *zones, char ret[ST_ZONES_VERSION_MAX])
{
    char head[64] = "", word[ST_ZONES_VERSION_MAX];
    int fd = open_beneath(zones, "tzdata.zi");

    if (fd >= 0) {
        ssize_t n = read(fd, head, sizeof head - 1);

        head[n > 0 ? n : 0] = '\0';
        close(fd);
    }
    if (sscanf(head, "# version %31[0-9A-Za-z.+-]", word) != 1)
        snprintf(word, sizeof word, "unknown");
    snprintf(ret, ST_ZONES_VERSION_MAX, "%s", word);
}
