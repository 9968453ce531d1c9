/*
 * Access lists that let the group of an account and the user of stintd do everything in a folder, and in what is made in it
 * later by either. As the kernel takes them (linux/posix_acl_xattr.h): a version, then entries in order of their kind.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "beneath/beneath.h"

#define VERSION   2
#define USER_OBJ  0x01
#define USER      0x02
#define GROUP_OBJ 0x04
#define GROUP     0x08
#define MASK      0x10
#define OTHER     0x20
#define NOBODY    UINT32_MAX
#define ALL       7

typedef struct entry {
    uint16_t kind, may;
    uint32_t id;
} entry;

typedef struct list {
    uint32_t version;
    entry row[6];
} list;

static entry row(uint16_t kind, uint16_t may, uint32_t id)
{
    return (entry){htole16(kind), htole16(may), htole32(id)};
}

int st_beneath_share(int fd, bool folder, int64_t gid, st_err *err)
{
    static const char *const names[] = {"system.posix_acl_access", "system.posix_acl_default"};
    const list l = {.version = htole32(VERSION),
                    .row = {row(USER_OBJ, ALL, NOBODY), row(USER, ALL, (uint32_t)geteuid()),
                            row(GROUP_OBJ, 0, NOBODY), row(GROUP, ALL, (uint32_t)gid),
                            row(MASK, ALL, NOBODY), row(OTHER, 0, NOBODY)}};

    _Static_assert(sizeof l == 4 + 6 * 8, "the kernel's layout has no holes");
    for (int i = 0; i < (folder ? 2 : 1); i++)
        if (fsetxattr(fd, names[i], &l, sizeof l, 0) != 0)
            return st_fail(err, ST_ESTATE,
                           "no access list can be set (%s); volumes need a file system with POSIX "
                           "access lists (ext4, XFS, tmpfs, Lustre)",
                           strerror(errno));
    return 0;
}

int st_beneath_make(int root, const char *name, int64_t gid, st_err *err)
{
    int fd, r;

    if (mkdirat(root, name, 0700) != 0)
        return errno == EEXIST
                   ? st_fail(err, ST_EEXIST, "%s is there already", name)
                   : st_fail(err, ST_EIO, "%s: cannot be made: %s", name, strerror(errno));
    fd = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    r = fd < 0 ? st_fail(err, ST_EIO, "%s: %s", name, strerror(errno))
               : st_beneath_share(fd, true, gid, err);
    if (fd >= 0)
        close(fd);
    if (r < 0)
        (void)unlinkat(root, name, AT_REMOVEDIR);
    return r;
}
