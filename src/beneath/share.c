/*
 * Folders that the group of an account and the user of stintd may do everything in, and in what is made in them later by either.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "beneath/beneath.h"

int st_beneath_share(int fd, bool folder, int64_t gid, st_err *err)
{
    const st_acl_friend friends[] = {{.id = (uint32_t)geteuid()},
                                     {.group = true, .id = (uint32_t)gid}};
    unsigned char l[ST_ACL_BYTES];

    st_acl_write(friends, l);
    for (int i = 0; i < (folder ? 2 : 1); i++)
        if (fsetxattr(fd, st_acl_names[i], l, sizeof l, 0) != 0)
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
