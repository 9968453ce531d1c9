/*
 * Tenants by number, and what they had by name (agent/tenant.h).
 */
#include "agent/tenant.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/files.h"
#include "base/hash.h"
#include "model/volume.h"

#define PREFIX    "t."
#define UID_FIRST ST_TENANT_ID_FIRST /* and up to ST_TENANT_MAX more: 32 bits hold them */
#define UID_OLD \
    INT64_C(    \
        700000) /* of the first line of TENANTS_FILE; there are far less than UID_FIRST less this */
#define TENANTS_FILE "tenants"
#define ADOPTED_FILE "adopted"
#define HASH_DIGITS  16

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

void st_tenant_name(int64_t id, char ret[ST_RUN_NAME_MAX])
{
    snprintf(ret, ST_RUN_NAME_MAX, PREFIX "%" PRId64, id);
}

/* The number in a name; 0: it is an old one. */
static int64_t number_of(const char *tenant)
{
    char *end;
    long long id;

    if (strncmp(tenant, PREFIX, sizeof PREFIX - 1) != 0)
        return 0;
    id = strtoll(tenant + sizeof PREFIX - 1, &end, 10);
    return *end == '\0' && id > 0 && id <= ST_TENANT_MAX ? id : 0;
}

static bool is_plain(const char *account)
{
    size_t n = strlen(account);

    return n > 0 && n <= 40 && strspn(account, PLAIN) == n;
}

/* What an account of this name was called here. */
static void old_name(const char *account, char ret[ST_RUN_NAME_MAX])
{
    size_t n = strlen(account);

    if (is_plain(account)) {
        memcpy(ret, account, n + 1);
        return;
    }
    n = n < 24 ? n : 24;
    for (size_t i = 0; i < n; i++)
        ret[i] = strchr(PLAIN, account[i]) ? account[i] : '_';
    snprintf(ret + n, ST_RUN_NAME_MAX - n, "_%016llx", (unsigned long long)st_hash_str(1, account));
}

/* A name that reads like what another was turned into may have been chosen for that: it gets nothing. */
static bool is_doubtful(const char *account)
{
    size_t n = strlen(account);
    const char *tail = n > HASH_DIGITS ? account + n - HASH_DIGITS - 1 : "";

    return is_plain(account) && tail[0] == '_' &&
           strspn(tail + 1, "0123456789abcdef") == HASH_DIGITS;
}

/* The user id of an old name; 0: it had none. */
static int old_uid(const char *dir, const char *name, int64_t *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf names = {0};
    int r = st_file_load(dir, TENANTS_FILE, &names, err);
    int64_t id = UID_OLD;
    size_t n = strlen(name);

    *ret = 0;
    if (r < 0)
        return r == -ST_ENOENT ? 0 : r;
    for (const char *s = st_strbuf_str(&names); *s; id++) {
        size_t len = strcspn(s, "\n");

        if (len == n && memcmp(s, name, n) == 0)
            *ret = id;
        s += len + (s[len] == '\n');
    }
    return 0;
}

/* The line of a number, or of a name; false: there is none. */
static bool adopted(const char *text, int64_t id, const char *name, int64_t *ret_uid)
{
    while (*text) {
        char *at;
        int64_t number = strtoll(text, &at, 10), uid = strtoll(at, &at, 10);
        size_t len;

        at += *at == ' ';
        len = strcspn(at, "\n");
        if (number == id || (name && strlen(name) == len && strncmp(at, name, len) == 0)) {
            *ret_uid = uid;
            return true;
        }
        text = at + len + (at[len] == '\n');
    }
    return false;
}

int st_tenant_uid(const char *dir, const char *tenant, int64_t *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    int64_t id = number_of(tenant), uid = 0;
    int r;

    if (id == 0) {
        r = old_uid(dir, tenant, &uid, err);
        if (r == 0 && uid == 0)
            r = st_fail(err, ST_ENOENT, "tenant %s is not known on this node", tenant);
    } else {
        r = st_file_load(dir, ADOPTED_FILE, &text, err);
        if (r < 0 && r != -ST_ENOENT)
            return r;
        r = 0;
        if (!adopted(st_strbuf_str(&text), id, NULL, &uid))
            uid = UID_FIRST + id;
    }
    if (r == 0)
        *ret = uid;
    return r;
}

/* What a crash left, or the second half of adopting. A folder that is there already is not touched. */
static int move_storage(const char *dir, int64_t id, const char *name, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf from = {0}, to = {0};
    struct stat st;

    st_strbuf_addf(&from, "%s/storage/%s", dir, name);
    st_strbuf_addf(&to, "%s/storage/" PREFIX "%" PRId64, dir, id);
    if (lstat(st_strbuf_str(&to), &st) == 0 || lstat(st_strbuf_str(&from), &st) != 0)
        return 0;
    if (!S_ISDIR(st.st_mode) || rename(st_strbuf_str(&from), st_strbuf_str(&to)) != 0)
        return st_fail(err, ST_EIO, "%s: cannot be renamed to %s: %s", st_strbuf_str(&from),
                       st_strbuf_str(&to), strerror(errno));
    return 0;
}

int st_tenant_adopt(const char *dir, int64_t id, const char *was, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    char name[ST_RUN_NAME_MAX];
    int64_t uid = 0, unused;
    int r;

    old_name(was, name);
    if (is_doubtful(was))
        return 0;
    r = st_file_load(dir, ADOPTED_FILE, &text, err);
    if (r < 0 && r != -ST_ENOENT)
        return r;
    if (adopted(st_strbuf_str(&text), id, NULL, &unused))
        return move_storage(dir, id, name, err);
    if (adopted(st_strbuf_str(&text), 0, name, &unused))
        return 0; /* another's */
    r = old_uid(dir, name, &uid, err);
    if (r < 0 || uid == 0)
        return r;
    st_strbuf_addf(&text, "%s%" PRId64 " %" PRId64 " %s\n", text.n ? "\n" : "", id, uid, name);
    r = st_file_replace(dir, ADOPTED_FILE, text.s, text.n, true, err);
    return r < 0 ? r : move_storage(dir, id, name, err);
}
