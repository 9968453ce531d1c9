/*
 * The process that ends tasks whose lease is over (agent/fence.h).
 */
#include "agent/fence.h"

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
#include "base/mem.h"
#include "run/run.h"

#define LEASE_FILE "lease"
#define LOCK_FILE  "fence.lock"
#define REST_FILE  "fence.rest"
#define LOOK_MS    500
#define AFTER_MS   1000  /* the living agent goes first */
#define STALE_MS   60000 /* a lease that ended so long ago, and no task: nobody needs us */
#define KILL_MS    2000

/* ---- the lease ---------------------------------------------------------------------------------- */

void st_lease_path(const char *dir, char ret[PATH_MAX])
{
    if (snprintf(ret, PATH_MAX, "%s/" LEASE_FILE, dir) >= PATH_MAX)
        ret[0] = '\0';
}

st_run_lease st_lease_load(const char *dir)
{
    char path[PATH_MAX];

    st_lease_path(dir, path);
    return st_run_lease_load(path);
}

int st_lease_save(const char *dir, const st_run_lease *lease, st_err *err)
{
    char path[PATH_MAX];

    st_lease_path(dir, path);
    return st_run_lease_save(path, lease, err);
}

/* ---- starting it --------------------------------------------------------------------------------- */

/* The lock, or -1: with EWOULDBLOCK when somebody has it. */
static int take_lock(const char *dir)
{
    char path[PATH_MAX];
    int fd;

    if (snprintf(path, sizeof path, "%s/" LOCK_FILE, dir) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int was = errno;

        close(fd);
        errno = was;
        fd = -1;
    }
    return fd;
}

/* In the grandchild: nobody's child, with nothing of ours open. */
static _Noreturn void become(const char *dir)
{
    int null = open("/dev/null", O_RDWR);

    setsid();
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    close_range(3, ~0u, 0);
    if (chdir("/") == 0)
        execl("/proc/self/exe", "stint-agent", "fence", "--data", dir, (char *)NULL);
    _exit(127);
}

static bool rest_path(const char *dir, char ret[PATH_MAX])
{
    return snprintf(ret, PATH_MAX, "%s/" REST_FILE, dir) < PATH_MAX;
}

void st_fence_rest(const char *dir)
{
    char path[PATH_MAX];
    int fd = rest_path(dir, path) ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;

    if (fd >= 0)
        close(fd);
}

int st_fence_ensure(const char *dir, st_err *err)
{
    char rest[PATH_MAX];
    int lock, status;
    pid_t pid;

    if (rest_path(dir, rest))
        unlink(rest);
    lock = take_lock(dir);
    if (lock < 0 && errno == EWOULDBLOCK)
        return 0; /* it is there */
    if (lock < 0)
        return st_fail(err, ST_EIO, "%s/" LOCK_FILE ": %s", dir, strerror(errno));
    close(lock);
    pid = fork();
    if (pid == 0) {
        pid = fork();
        if (pid == 0)
            become(dir);
        _exit(pid < 0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return st_fail(err, ST_EIO, "nobody can be started to watch the lease: %s",
                       strerror(errno));
    return 0;
}

/* ---- the process --------------------------------------------------------------------------------- */

/* Kills what lives if `over`; how many there are. */
static size_t sweep(const st_run *run, bool over)
{
    ST_CLEANUP(st_freep) st_run_task *tasks = NULL;
    size_t n = 0, bad, live = 0;
    st_err err;

    if (st_run_list(run, &tasks, &n, &bad, &err) < 0)
        return 1; /* not known: stay */
    for (size_t i = 0; i < n; i++) {
        if (tasks[i].state == ST_RUN_ENDED || tasks[i].state == ST_RUN_LOST)
            continue;
        live++;
        if (over)
            st_run_kill(run, tasks[i].id, ST_FENCE_REASON, KILL_MS, &err);
    }
    return live;
}

int st_fence_main(const char *dir)
{
    ST_CLEANUP(st_run_freep) st_run *run = NULL;
    char state[PATH_MAX], rest[PATH_MAX];
    st_run_conf conf = {.state_dir = state, .runtime = "none"}; /* it starts nothing */
    st_err err = {0};
    int lock = take_lock(dir);

    if (lock < 0)
        return 0;
    if (snprintf(state, sizeof state, "%s/run", dir) >= (int)sizeof state ||
        !rest_path(dir, rest) || st_run_new(&conf, &run, &err) < 0)
        return 1;
    for (;;) {
        struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
        st_run_lease lease = st_lease_load(dir);
        int64_t late = lease.end_ms > 0 ? st_boot_ms() - lease.end_ms : 0;
        bool over = late > AFTER_MS && !lease.keep;

        /* Looking at every task twice a second would be for nothing while the lease is good. */
        if ((over || late > STALE_MS) && sweep(run, over) == 0 && late > STALE_MS)
            return 0;
        if (access(state, F_OK) != 0)
            return 0; /* the node was taken away */
        if (access(rest, F_OK) == 0 && sweep(run, false) == 0)
            return 0;
        nanosleep(&pause, NULL);
    }
}
