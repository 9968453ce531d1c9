/*
 * A folder that two users share, with what is made in it later (agent/files.h).
 */
#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#include "agent/files.h"
#include "beneath/beneath.h"

int st_dir_share(const char *path, int64_t a, int64_t b, st_err *err)
{
    const st_acl_friend friends[] = {{.id = (uint32_t)a}, {.id = (uint32_t)b}};
    unsigned char l[ST_ACL_BYTES];

    st_acl_write(friends, l);
    for (int i = 0; i < 2; i++)
        if (setxattr(path, st_acl_names[i], l, sizeof l, 0) != 0)
            return st_fail(err, ST_EIO,
                           "%s: no access list can be set (%s); a file system with them is needed "
                           "for tasks that share a GPU by MPS",
                           path, strerror(errno));
    return 0;
}
