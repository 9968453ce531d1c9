/*
 * Programs that outlive us (agent/helper.h).
 */
#include "agent/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/files.h"
#include "run/rights.h"

#define ENV_MAX 8
#define LOCK_FD 3

void st_helper_find(const char *given, const char *name, char ret[PATH_MAX])
{
    char own[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    char *slash = n > 0 ? strrchr(own, '/') : NULL;

    if (slash)
        *slash = '\0';
    if (given || snprintf(ret, PATH_MAX, "%s/%s", own, name) >= PATH_MAX)
        snprintf(ret, PATH_MAX, "%s", given ? given : "");
}

static bool path_of(char ret[PATH_MAX], const char *dir, const char *name, const char *kind)
{
    return snprintf(ret, PATH_MAX, "%s/helpers/%s.%s", dir, name, kind) < PATH_MAX;
}

/* -1 when somebody holds it, with EWOULDBLOCK, or it cannot be opened. */
static int take(const char *dir, const char *name, int flags)
{
    char path[PATH_MAX];
    int fd;

    if (!path_of(path, dir, name, "lock"))
        return -1;
    fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int was = errno;

        close(fd);
        errno = was;
        return -1;
    }
    return fd;
}

/* Nobody's child, with the lock and its output and nothing else of ours. */
static _Noreturn void become(uint64_t keep, const char *const *argv, const char *const *env,
                             int lock, int out)
{
    int null = open("/dev/null", O_RDWR);

    setsid();
    if (fork() != 0)
        _exit(0);
    dup2(null, 0);
    dup2(out, 1);
    dup2(null, 2);
    if (lock != LOCK_FD)
        dup2(lock, LOCK_FD);
    else
        fcntl(LOCK_FD, F_SETFD, 0);
    close_range(LOCK_FD + 1, ~0u, 0);
    if (chdir("/") == 0 && (keep == ST_HELPER_ALL || st_rights_keep(keep, NULL) == 0))
        execve(argv[0], (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
    _exit(127);
}

int st_helper_start(const char *dir, const char *name, uint64_t keep, const char *const *argv,
                    const char *const *env, st_err *err)
{
    const char *vars[ENV_MAX + 3] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    char path[PATH_MAX], libraries[PATH_MAX];
    const char *where = getenv("LD_LIBRARY_PATH");
    int lock, out, status = 0, n = 1, r;
    pid_t pid;

    if (where && snprintf(libraries, sizeof libraries, "LD_LIBRARY_PATH=%s", where) < PATH_MAX)
        vars[n++] = libraries;
    for (int i = 0; env && env[i] && i < ENV_MAX; i++)
        vars[n++] = env[i];
    if (snprintf(path, sizeof path, "%s/helpers", dir) >= (int)sizeof path)
        return st_fail(err, ST_EINVAL, "%s: the name is too long", dir);
    r = st_dir_make(path, err);
    if (r < 0)
        return r;
    if (access(argv[0], X_OK) != 0)
        return st_fail(err, ST_EDOWN, "%s: %s", argv[0], strerror(errno));
    lock = take(dir, name, O_CREAT);
    out = lock >= 0 && path_of(path, dir, name, "json")
              ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
              : -1;
    if (out < 0) {
        r = st_fail(err, ST_EIO, "%s/helpers/%s: %s", dir, name, strerror(errno));
        if (lock >= 0)
            close(lock);
        return r;
    }
    pid = fork();
    if (pid == 0)
        become(keep, argv, vars, lock, out);
    close(lock);
    close(out);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return st_fail(err, ST_EIO, "%s cannot be started: %s", argv[0], strerror(errno));
    return 0;
}

st_helper_state st_helper_look(const char *dir, const char *name, json_t **ret)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    char folder[PATH_MAX], file[256];
    json_t *said = NULL;
    int lock = take(dir, name, 0);

    if (lock < 0)
        return errno == EWOULDBLOCK ? ST_HELPER_RUNNING : ST_HELPER_NONE;
    close(lock);
    if (snprintf(folder, sizeof folder, "%s/helpers", dir) < (int)sizeof folder &&
        snprintf(file, sizeof file, "%s.json", name) < (int)sizeof file &&
        st_file_load(folder, file, &text, NULL) == 0)
        said = json_loads(st_strbuf_str(&text), 0, NULL);
    if (!json_is_object(said)) {
        json_decref(said);
        return ST_HELPER_NONE;
    }
    *ret = said;
    return ST_HELPER_DONE;
}

st_helper_state st_helper_wait(const char *dir, const char *name, int64_t ms, json_t **ret)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int64_t until = st_boot_ms() + ms;
    st_helper_state state;

    while ((state = st_helper_look(dir, name, ret)) == ST_HELPER_RUNNING && st_boot_ms() < until)
        nanosleep(&pause, NULL);
    return state;
}

void st_helper_forget(const char *dir, const char *name)
{
    char path[PATH_MAX];

    if (path_of(path, dir, name, "json"))
        unlink(path);
    if (path_of(path, dir, name, "lock"))
        unlink(path);
}
