/*
 * Access lists as the kernel takes them (linux/posix_acl_xattr.h): a version, then entries in order of their kind and number.
 */
#include <endian.h>
#include <string.h>

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

const char *const st_acl_names[] = {"system.posix_acl_access", "system.posix_acl_default"};

static entry row(uint16_t kind, uint16_t may, uint32_t id)
{
    return (entry){htole16(kind), htole16(may), htole32(id)};
}

static entry of_friend(const st_acl_friend *f)
{
    return row(f->group ? GROUP : USER, ALL, f->id);
}

static bool comes_first(const st_acl_friend *a, const st_acl_friend *b)
{
    return a->group == b->group ? a->id <= b->id : !a->group;
}

void st_acl_write(const st_acl_friend friends[2], unsigned char ret[ST_ACL_BYTES])
{
    bool swap = !comes_first(&friends[0], &friends[1]);
    const st_acl_friend *a = &friends[swap], *b = &friends[!swap];
    list l = {.version = htole32(VERSION), .row = {row(USER_OBJ, ALL, NOBODY)}};
    size_t n = 1;

    _Static_assert(sizeof l == ST_ACL_BYTES, "the kernel's layout has no holes");
    if (!a->group)
        l.row[n++] = of_friend(a);
    if (!b->group)
        l.row[n++] = of_friend(b);
    l.row[n++] = row(GROUP_OBJ, 0, NOBODY);
    if (a->group)
        l.row[n++] = of_friend(a);
    if (b->group)
        l.row[n++] = of_friend(b);
    l.row[n++] = row(MASK, ALL, NOBODY);
    l.row[n] = row(OTHER, 0, NOBODY);
    memcpy(ret, &l, sizeof l);
}
