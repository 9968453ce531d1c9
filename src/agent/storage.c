/* Limits of /data by the file system, and counting it; see the header. */
#include "agent/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/num.h"

#define FILE_BYTES 16384 /* of the limit, for each file: as file systems are made */
#define FILES_MIN  INT64_C(10000)
#define BLOCK      1024 /* of quotas */
#define PART       20   /* of the time is spent counting a tenant, at most */

st_storage st_storage_limit(const char *dir, int64_t option_mib)
{
    struct statvfs s;
    st_storage limit = {.bytes = option_mib << 20};

    if (option_mib <= 0)
        limit.bytes =
            statvfs(dir, &s) == 0 ? (int64_t)(s.f_blocks / 2 * s.f_frsize) : INT64_C(1) << 40;
    limit.files = ST_MAX(limit.bytes / FILE_BYTES, FILES_MIN);
    return limit;
}

/* ---- by the file system --------------------------------------------------------------------- */

static int quota(int fd, unsigned command, int64_t project, void *at)
{
    return (int)syscall(SYS_quotactl_fd, fd, QCMD(command, PRJQUOTA), (unsigned)project, at);
}

static int open_folder(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool st_storage_enforced(const char *dir)
{
    struct fs_quota_statv state = {.qs_version = FS_QSTATV_VERSION1};
    int fd = open_folder(dir);
    bool on =
        fd >= 0 && quota(fd, Q_XGETQSTATV, 0, &state) == 0 && (state.qs_flags & FS_QUOTA_PDQ_ENFD);

    if (fd >= 0)
        close(fd);
    return on;
}

static int mark(int fd, int64_t project, bool folder)
{
    unsigned inherit = folder ? FS_XFLAG_PROJINHERIT : 0;
    struct fsxattr x;

    if (ioctl(fd, FS_IOC_FSGETXATTR, &x) != 0)
        return -1;
    if (x.fsx_projid == (unsigned)project && (x.fsx_xflags & inherit) == inherit)
        return 0;
    x.fsx_projid = (unsigned)project;
    x.fsx_xflags |= inherit;
    return ioctl(fd, FS_IOC_FSSETXATTR, &x);
}

static FTS *walk(const char *path)
{
    char *roots[] = {(char *)(uintptr_t)path, NULL};

    /* Links are not followed, and a folder that was swapped is not entered: it moves there and looks where it is. */
    return fts_open(roots, FTS_PHYSICAL | FTS_XDEV, NULL);
}

/* Folders before what is in them, so that what is made meanwhile belongs to the project already. */
static int mark_all(const char *path, int64_t project, st_err *err)
{
    FTS *tree = walk(path);
    FTSENT *e;
    int r = 0;

    while (tree && r == 0 && (e = fts_read(tree)) != NULL) {
        int fd;

        if (e->fts_info != FTS_D && e->fts_info != FTS_F)
            continue; /* links and pipes have no content */
        fd = open(e->fts_accpath, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 ? errno != ENOENT && errno != ELOOP
                   : mark(fd, project, e->fts_info == FTS_D) != 0)
            r = st_fail(err, ST_EIO, "%s: cannot be made part of project %" PRId64 ": %s",
                        e->fts_path, project, strerror(errno));
        if (fd >= 0)
            close(fd);
    }
    if (!tree)
        r = st_fail(err, ST_EIO, "%s: %s", path, strerror(errno));
    else
        fts_close(tree);
    return r;
}

int st_storage_enforce(const char *path, int64_t project, const st_storage *limit, st_err *err)
{
    const struct if_dqblk want = {.dqb_bhardlimit = (uint64_t)limit->bytes / BLOCK,
                                  .dqb_ihardlimit = (uint64_t)limit->files,
                                  .dqb_valid = QIF_LIMITS};
    struct if_dqblk now = {0}, set = want;
    int fd = open_folder(path), r = 0;

    if (fd < 0)
        return st_fail(err, ST_EIO, "%s: %s", path, strerror(errno));
    /* The limit is set last, so what has it was marked to the end. */
    if (quota(fd, Q_GETQUOTA, project, &now) != 0 || now.dqb_bhardlimit != want.dqb_bhardlimit ||
        now.dqb_ihardlimit != want.dqb_ihardlimit) {
        r = mark_all(path, project, err);
        if (r == 0 && quota(fd, Q_SETQUOTA, project, &set) != 0)
            r = st_fail(err, ST_EIO, "%s: its limit cannot be set: %s", path, strerror(errno));
    } else if (mark(fd, project, true) != 0) { /* a folder that was made anew */
        r = st_fail(err, ST_EIO, "%s: cannot be made project %" PRId64 ": %s", path, project,
                    strerror(errno));
    }
    close(fd);
    return r;
}

/* ---- by counting ---------------------------------------------------------------------------- */

int st_storage_count(const char *path, st_storage *ret, st_err *err)
{
    FTS *tree = walk(path);
    int64_t blocks = 0, files = 0;
    int failed = tree ? 0 : errno;
    FTSENT *e;

    while (tree && (errno = 0, e = fts_read(tree)) != NULL) {
        const struct stat *s = e->fts_statp;

        if (e->fts_info == FTS_DP)
            continue; /* a second time */
        if (e->fts_info == FTS_ERR || e->fts_info == FTS_DNR || e->fts_info == FTS_NS) {
            if (e->fts_errno != ENOENT || e->fts_level == 0) /* else it is gone meanwhile */
                failed = e->fts_errno;
            continue;
        }
        if (e->fts_info == FTS_D) {
            files++;
            blocks += s->st_blocks;
            continue;
        }
        files++;
        blocks += s->st_blocks / (int64_t)ST_MAX(s->st_nlink, 1);
    }
    if (tree && errno != 0 && failed == 0)
        failed = errno;
    if (tree)
        fts_close(tree);
    if (failed)
        return st_fail(err, ST_EIO, "%s", strerror(failed));
    *ret = (st_storage){.bytes = blocks * 512, .files = files};
    return 0;
}

int64_t st_storage_pause(int64_t took, bool over, int64_t room)
{
    int64_t soon = ST_MAX(ST_STORAGE_PAUSE_OVER_MS, took);
    int64_t full = ST_MAX(room, 0) / (ST_STORAGE_RATE / 1000); /* ms, at the soonest */
    int64_t most = over ? soon : ST_MIN(ST_STORAGE_PAUSE_MAX_MS, ST_MAX(soon, full));

    return ST_MAX(ST_STORAGE_PAUSE_MIN_MS, ST_MIN(PART * took, most));
}

bool st_storage_over(const char *what, const st_storage *use, const st_storage *limit,
                     char ret[160])
{
    char has[ST_FMT_MAX], most[ST_FMT_MAX];

    if (use->bytes > limit->bytes)
        snprintf(ret, 160, "%.80s holds %s, at most %s", what,
                 st_fmt_mib(has, (use->bytes + (1 << 20) - 1) >> 20),
                 st_fmt_mib(most, limit->bytes >> 20));
    else if (use->files > limit->files)
        snprintf(ret, 160, "%.80s holds %" PRId64 " files, at most %" PRId64, what, use->files,
                 limit->files);
    else
        return false;
    return true;
}
