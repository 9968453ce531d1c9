/*
 * Ways into a task that runs, for who is let in by others: a port in its network, and a command beside its own.
 *
 * Invariants:
 *  1 The process whose namespaces are entered is the task's first one, and still is afterwards: a number that was used
 *    again is found out.
 *  2 A task without a network of its own is not entered by this way: its ports would be the node's.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/attach.h"
#include "run/console.h"
#include "run/os.h"
#include "run/shell.h"
#include "run/state.h"

/* A running task's network, pinned by a descriptor. */
static int open_net(const st_run *run, const char *id, int *ret, st_err *err)
{
    char path[64];
    st_run_task task, again;
    struct stat its, ours;
    int r = st_run_get(run, id, &task, err);
    ST_CLEANUP(st_os_closep) int fd = -1;

    if (r < 0)
        return r;
    snprintf(path, sizeof path, "/proc/%d/ns/net", task.init_pid);
    if (task.state == ST_RUN_RUNNING && task.init_pid > 0)
        fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || st_run_get(run, id, &again, NULL) != 0 || again.state != ST_RUN_RUNNING ||
        again.init_pid != task.init_pid)
        return st_fail(err, ST_ESTATE, "the task has just ended");
    if (fstat(fd, &its) != 0 || stat("/proc/thread-self/ns/net", &ours) != 0)
        return st_fail(err, ST_EIO, "the node cannot look at the task's network");
    if (its.st_dev == ours.st_dev && its.st_ino == ours.st_ino)
        return st_fail(err, ST_EPERM,
                       "the job has the node's network (network: host): its ports are not its own, "
                       "and are not forwarded");
    *ret = fd;
    fd = -1;
    return 0;
}

/* In our thread alone, and back. Where there is no way back the thread would do the rest of its work in there. */
static int socket_in(int net, int family, st_err *err)
{
    ST_CLEANUP(st_os_closep)
    int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int fd = -1;

    if (own >= 0 && setns(net, CLONE_NEWNET) == 0) {
        fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        ST_ASSERT(setns(own, CLONE_NEWNET) == 0);
    }
    return fd >= 0 ? fd : st_fail(err, ST_EIO, "the node cannot enter the task's network");
}

static int finish(int fd, const struct sockaddr *at, socklen_t len, int64_t until)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int fault = 0;
    socklen_t n = sizeof fault;

    if (connect(fd, at, len) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return errno;
    if (poll(&p, 1, (int)ST_MAX(until - st_os_mono_ms(), 0)) <= 0)
        return ETIMEDOUT;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &n);
    return fault;
}

int st_run_connect(const st_run *run, const char *id, int port, int timeout_ms, int *ret,
                   st_err *err)
{
    const struct sockaddr_in v4 = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                                    .sin6_port = htons((uint16_t)port),
                                    .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int64_t until = st_os_mono_ms() + timeout_ms;
    ST_CLEANUP(st_os_closep) int net = -1;
    int fault = 0, r = open_net(run, id, &net, err);

    if (r < 0)
        return r;
    if (port < 1 || port > 65535)
        return st_fail(err, ST_ERANGE, "there is no port %d", port);
    for (int i = 0; i < 2; i++) {
        ST_CLEANUP(st_os_closep) int fd = socket_in(net, i == 0 ? AF_INET : AF_INET6, err);

        if (fd < 0 && i == 0)
            return fd;
        fault = fd < 0   ? fault
                : i == 0 ? finish(fd, (const struct sockaddr *)&v4, sizeof v4, until)
                         : finish(fd, (const struct sockaddr *)&v6, sizeof v6, until);
        if (fd >= 0 && fault == 0) {
            *ret = fd;
            fd = -1;
            return 0;
        }
        if (fault != ECONNREFUSED)
            break;
    }
    if (fault == ECONNREFUSED)
        return st_fail(err, ST_ESTATE, "nothing listens on port %d of the task (on 127.0.0.1)",
                       port);
    return st_fail(err, ST_ESTATE, "port %d of the task does not answer: %s", port,
                   strerror(fault));
}

/* ---- its own streams --------------------------------------------------------------------------------- */

static int connect_attach(const char *dir)
{
    ST_CLEANUP(st_os_closep) int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    ST_CLEANUP(st_os_closep)
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    int found = -1;

    st_socket_path(at, ST_ATTACH, where.sun_path);
    if (at >= 0 && fd >= 0 && connect(fd, (struct sockaddr *)&where, sizeof where) == 0) {
        found = fd;
        fd = -1;
    }
    return found;
}

int st_run_attach(const st_run *run, const char *id, int64_t from, bool may_write, int *ret,
                  st_err *err)
{
    const st_attach_ask ask = {.from = from, .may_write = may_write};
    char dir[PATH_MAX];
    st_run_task task;
    ST_CLEANUP(st_os_closep) int fd = -1;
    int r = st_run_get(run, id, &task, err);

    if (r == 0 && task.state != ST_RUN_RUNNING)
        r = st_fail(err, ST_ESTATE, "the task has just ended");
    if (r == 0)
        r = st_state_dir(run, id, dir, err);
    if (r < 0)
        return r;
    fd = connect_attach(dir);
    if (fd < 0 && errno == EAGAIN)
        return st_fail(err, ST_ESTATE, "too many come at once; try again in a moment");
    if (fd < 0 || send(fd, &ask, sizeof ask, MSG_NOSIGNAL) != (ssize_t)sizeof ask)
        return st_fail(err, ST_ESTATE,
                       "its streams cannot be had: the task has just ended, or was started by an "
                       "earlier version of the agent");
    *ret = fd;
    fd = -1;
    return 0;
}

/* ---- a command ---------------------------------------------------------------------------------------- */

static int start_shell(const st_run *run, char *dir, int sock, int spec, st_err *err)
{
    char enter[] = "enter";
    char *argv[] = {(char *)(uintptr_t)run->shim, enter, dir, NULL};
    char *env[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int status = 0, failed;
    pid_t pid;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, sock, ST_SHELL_SOCKET_FD);
    posix_spawn_file_actions_adddup2(&actions, spec, ST_SHELL_SPEC_FD);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    failed = posix_spawn(&pid, run->shim, &actions, &attr, argv, env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return st_fail(err, ST_EIO, "the node cannot start another program");
    /* It forks and ends at once; a caller that reaps all children may have been faster. */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0 ? 0 : st_fail(err, ST_EIO, "the node's program for commands has failed");
}

/* Above what the child has it as. */
static int lift(int fd)
{
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, ST_SHELL_SPEC_FD + 1);

    if (fd >= 0)
        close(fd);
    return high;
}

int st_run_enter(const st_run *run, const char *id, const char *spec, int *ret, st_err *err)
{
    ST_CLEANUP(st_os_closep) int what = lift(memfd_create("stint-enter", MFD_CLOEXEC));
    int pair[2] = {-1, -1};
    char dir[PATH_MAX];
    st_run_task task;
    int r = st_run_get(run, id, &task, err);

    if (r == 0 && task.state != ST_RUN_RUNNING)
        r = st_fail(err, ST_ESTATE, "the task has just ended");
    if (r == 0)
        r = st_state_dir(run, id, dir, err);
    if (r == 0 && (what < 0 || write(what, spec, strlen(spec)) != (ssize_t)strlen(spec) ||
                   socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0))
        r = st_fail(err, ST_EIO, "the node has no descriptors left");
    pair[1] = lift(pair[1]);
    if (r == 0)
        r = start_shell(run, dir, pair[1], what, err);
    st_os_closep(&pair[1]);
    if (r == 0)
        r = fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0 ? 0 : st_fail(err, ST_EIO, "no socket");
    if (r < 0)
        st_os_closep(&pair[0]);
    else
        *ret = pair[0];
    return r;
}
