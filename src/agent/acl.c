/*
 * An access list for two users on a folder and on what is made in it later (agent/files.h). Written as the kernel takes it
 * (linux/posix_acl_xattr.h): a version, then entries in order of their kind.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#include "agent/files.h"
#include "base/macros.h"

#define VERSION  2
#define USER_OBJ 0x01
#define USER     0x02
#define GROUP    0x04
#define MASK     0x10
#define OTHER    0x20
#define NOBODY   UINT32_MAX
#define ALL      7

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

int st_dir_share(const char *path, int64_t a, int64_t b, st_err *err)
{
    static const char *const names[] = {"system.posix_acl_access", "system.posix_acl_default"};
    const list l = {.version = htole32(VERSION),
                    .row = {row(USER_OBJ, ALL, NOBODY), row(USER, ALL, (uint32_t)ST_MIN(a, b)),
                            row(USER, ALL, (uint32_t)ST_MAX(a, b)), row(GROUP, 0, NOBODY),
                            row(MASK, ALL, NOBODY), row(OTHER, 0, NOBODY)}};

    _Static_assert(sizeof l == 4 + 6 * 8, "the kernel's layout has no holes");
    for (size_t i = 0; i < ST_ARRAY_LEN(names); i++)
        if (setxattr(path, names[i], &l, sizeof l, 0) != 0)
            return st_fail(err, ST_EIO,
                           "%s: no access list can be set (%s); a file system with them is needed "
                           "for tasks that share a GPU by MPS",
                           path, strerror(errno));
    return 0;
}
