/*
 * Places of mounts in an image (run/targets.h). What is below another mount is not looked at: there the image is covered. Devices and
 * libraries of the node's drivers (CDI, "rbind") go below /usr and are covered by what comes later; the runtime makes links of
 * /etc/hosts and /etc/resolv.conf work, as many images have them.
 */
#include "run/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/quote.h"
#include "run/os.h"

static bool may_be_link(const char *target, const json_t *mount)
{
    const char *first = json_string_value(json_array_get(json_object_get(mount, "options"), 0));

    return (first && strcmp(first, "rbind") == 0) || strcmp(target, "/etc/hosts") == 0 ||
           strcmp(target, "/etc/resolv.conf") == 0;
}

static const char *target_of(const json_t *mount)
{
    const char *target = json_string_value(json_object_get(mount, "destination"));

    return target && target[0] == '/' ? target : "/";
}

/* Whether one of the first `n` mounts covers what the image has there. */
static bool is_covered(const json_t *mounts, size_t n, const char *target)
{
    for (size_t i = 0; i < n; i++) {
        const char *above = target_of(json_array_get(mounts, i));
        size_t len = strlen(above);

        if (strncmp(target, above, len) == 0 && target[len] == '/')
            return true;
    }
    return false;
}

static int check(int root, const char *target, st_err *err)
{
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                                 .resolve =
                                     RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    ST_CLEANUP(st_os_closep)
    int fd = (int)syscall(SYS_openat2, root, target[1] ? target + 1 : ".", &how, sizeof how);
    char q[ST_QUOTE_MAX];

    if (fd >= 0 || errno == ENOENT) /* the runtime makes it */
        return 0;
    st_quote(q, target);
    if (errno == ELOOP)
        return st_fail(err, ST_EINVAL,
                       "%s of the image is, or is behind, a link; Stint mounts something there: "
                       "make it a folder or a file",
                       q);
    if (errno == ENOTDIR)
        return st_fail(err, ST_EINVAL,
                       "%s cannot be mounted: the image has a file on the way there", q);
    return st_fail(err, ST_EIO, "%s of the image cannot be looked at: %s", q, strerror(errno));
}

int st_targets_check(const char *bundle, st_err *err)
{
    char path[PATH_MAX];
    ST_CLEANUP(st_os_jsonp) json_t *config = NULL;
    ST_CLEANUP(st_os_closep) int root = -1;
    const json_t *mounts, *mount;
    json_error_t bad;
    size_t i;
    int r = st_os_path(path, err, "%s/config.json", bundle);

    if (r == 0)
        config = json_load_file(path, 0, &bad);
    if (r == 0)
        r = st_os_path(path, err, "%s/rootfs", bundle);
    if (r < 0)
        return r;
    root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    mounts = json_object_get(config, "mounts");
    if (root < 0 || !json_is_array(mounts))
        return st_fail(err, ST_EIO, "the bundle %s cannot be read", bundle);
    json_array_foreach(mounts, i, mount)
    {
        const char *target = target_of(mount);

        if (r == 0 && !may_be_link(target, mount) && !is_covered(mounts, i, target))
            r = check(root, target, err);
    }
    return r;
}
