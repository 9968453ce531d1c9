/*
 * Giving up rights (stintd/drop.h).
 */
#include "stintd/drop.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

static bool is_empty(const char *path)
{
    DIR *dir = opendir(path);
    int entries = 0;

    if (!dir)
        return false;
    while (entries <= 2 && readdir(dir))
        entries++;
    closedir(dir);
    return entries <= 2; /* . and .. */
}

static int give_dir(const char *dir, const struct passwd *to, st_err *err)
{
    struct stat st;

    if (stat(dir, &st) < 0)
        return st_fail(err, ST_EIO, "%s: %s", dir, strerror(errno));
    if (st.st_uid == to->pw_uid)
        return 0;
    if (st.st_uid != 0 || !is_empty(dir))
        return st_fail(err, ST_EINVAL,
                       "%s does not belong to user %s; run: chown -R %s %s, then start again", dir,
                       to->pw_name, to->pw_name, dir);
    if (chown(dir, to->pw_uid, to->pw_gid) < 0)
        return st_fail(err, ST_EIO, "%s: cannot be given to %s: %s", dir, to->pw_name,
                       strerror(errno));
    return 0;
}

static int become(const char *user, const char *dir, st_err *err)
{
    const struct passwd *to = getpwnam(user);
    int r;

    if (!to)
        return st_fail(err, ST_EINVAL,
                       "user: there is no user %s; run: useradd --system --no-create-home %s", user,
                       user);
    if (geteuid() == to->pw_uid)
        return 0;
    if (geteuid() != 0)
        return st_fail(err, ST_EINVAL, "user: only root can become %s; start stintd as %s", user,
                       user);
    r = dir ? give_dir(dir, to, err) : 0;
    if (r == 0 && (setgroups(0, NULL) < 0 || setresgid(to->pw_gid, to->pw_gid, to->pw_gid) < 0 ||
                   setresuid(to->pw_uid, to->pw_uid, to->pw_uid) < 0))
        r = st_fail(err, ST_EIO, "user: cannot become %s: %s", user, strerror(errno));
    return r;
}

/* What a program that is started, or a file with capabilities, could get back. */
static void drop_bounding(void)
{
    prctl(PR_SET_SECUREBITS, SECURE_ALL_BITS | SECURE_ALL_LOCKS);
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap);
}

int st_drop(const char *user, const char *dir, st_err *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    int r;

    /* Keeps the rest of these calls from being undone by a change of user. */
    if (geteuid() == 0)
        drop_bounding();
    r = user ? become(user, dir, err) : 0;
    if (r == 0 &&
        (syscall(SYS_capset, &head, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0))
        r = st_fail(err, ST_EIO, "capabilities cannot be given up: %s", strerror(errno));
    /* Its memory has signing keys. */
    if (r == 0 && st_mem_no_core() < 0)
        r = st_fail(err, ST_EIO, "core files cannot be switched off: %s", strerror(errno));
    return r;
}
