/*
 * The disk of the agent's folder: when it is full nothing is started, and what runs goes on.
 *
 * A reserve is set aside when the node joins. When a record finds no room, the reserve is given up for
 * it; the node is whole again when there is room for the reserve and for what a task writes. So a task
 * that ends and frees a few blocks does not bring starts that have no room.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/host.h"

#define RESERVE_FILE "reserve"
#define RESERVE_PART 64 /* of the disk */
#define RESERVE_MAX  (UINT64_C(64) << 20)
#define OUTPUT_PART  16 /* what is left to records when tasks write (run/log.h) */
#define OUTPUT_MAX   (UINT64_C(8) << 20)
#define INODES_MIN   256 /* what a dozen starts need */
#define LOOK_MS      1000
#define JOIN_FILE    "joins"
#define JOIN_BYTES   (256 << 10) /* more than a new node writes before it looks at its disk */
#define JOIN_INODES  64

typedef struct disk {
    uint64_t free;      /* bytes that are left */
    uint64_t low, high; /* below the one it is full, and then until the other */
    bool inodes;        /* there are enough */
} disk;

static bool look(const char *dir, disk *ret)
{
    struct statvfs s;
    uint64_t all;

    if (statvfs(dir, &s) != 0)
        return false;
    all = (uint64_t)s.f_blocks * s.f_frsize;
    *ret = (disk){.free = (uint64_t)s.f_bavail * s.f_frsize,
                  .low = ST_MIN(all / RESERVE_PART, RESERVE_MAX),
                  .high = ST_MIN(all / OUTPUT_PART, OUTPUT_MAX) + all / RESERVE_PART,
                  .inodes = s.f_files == 0 || s.f_favail >= INODES_MIN};
    return true;
}

bool st_disk_joins(const char *dir)
{
    char path[PATH_MAX];
    struct statvfs s;
    int fd, why;

    if (st_dir_make(dir, NULL) != 0)
        return errno != ENOSPC;
    if (snprintf(path, sizeof path, "%s/" JOIN_FILE, dir) >= (int)sizeof path)
        return true;
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    why = fd < 0 ? errno : posix_fallocate(fd, 0, JOIN_BYTES);
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    if (statvfs(dir, &s) == 0 && s.f_files > 0 && s.f_favail < JOIN_INODES)
        return false;
    return why != ENOSPC && why != EDQUOT;
}

static bool path_of(const st_host *h, char ret[PATH_MAX])
{
    return snprintf(ret, PATH_MAX, "%s/" RESERVE_FILE, h->dir) < PATH_MAX;
}

static void set_aside(st_host *h, uint64_t bytes)
{
    char path[PATH_MAX];
    int fd;

    if (h->reserved || !path_of(h, path))
        return;
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    h->reserved = posix_fallocate(fd, 0, (off_t)ST_MAX(bytes, 1)) == 0;
    close(fd);
    if (!h->reserved)
        unlink(path);
}

void st_host_disk_open(st_host *h)
{
    char path[PATH_MAX];
    struct stat s;

    h->reserved = path_of(h, path) && lstat(path, &s) == 0 && S_ISREG(s.st_mode) && s.st_blocks > 0;
}

bool st_host_disk_give(st_host *h)
{
    char path[PATH_MAX];

    if (!h->reserved || !path_of(h, path) || unlink(path) != 0)
        return false;
    h->reserved = false;
    st_say(h, "reserve-given", "reason=\"the disk is full\"");
    return true;
}

static void say_full(st_host *h, const char *why)
{
    bool news = !h->full[0] != !why[0];

    snprintf(h->full, sizeof h->full, "%s", why);
    if (!news)
        return;
    h->changed = true;
    st_say(h, why[0] ? "disk-full" : "disk-ok", "reason=\"%s\"", why);
}

void st_host_disk(st_host *h, int64_t boot)
{
    char why[120] = "";
    disk d;

    bool aside = h->reserved || !h->exec->ops->real; /* thousands on paper set nothing aside */

    if (boot < h->disk_ms || !look(h->dir, &d))
        return;
    h->disk_ms = boot + LOOK_MS;
    if (!d.inodes)
        snprintf(why, sizeof why, "its data disk has no room for more files");
    else if (d.free < (h->full[0] ? d.high : d.low) + (aside ? 0 : d.low))
        snprintf(why, sizeof why, "its data disk is full: %" PRIu64 " MiB are left", d.free >> 20);
    if (!why[0] && !aside)
        set_aside(h, d.low);
    if (!why[0] && !aside && !h->reserved)
        snprintf(why, sizeof why, "its data disk takes no reserve");
    say_full(h, why);
}
