/*
 * stint-init: process 1 inside a container. Linked statically, since any image may be around it.
 *
 *   stint-init -- COMMAND [ARGUMENT...]     runs it and ends with its exit status
 *   stint-init --enter -- COMMAND [ARGUMENT...]   becomes it: a command beside the job's, in a container that runs
 *   stint-init --check                      looks at its mounts, gives up what a job has not, and ends; for
 *                                           trying a runtime
 *   stint-init --seal FOLDER                a hook of the runtime, outside still: mends the mounts (run/walls.h)
 *
 * It takes one more thing off the job: the calls by which an owner moves its files to another quota project, or out
 * of all of them. The runtime's list of calls cannot tell one ioctl from another; this can.
 *
 * A process 1 without handlers ignores SIGTERM and must reap strangers; jobs are not written for
 * that, so this one takes both off them: signals go to the job's process group, orphans are
 * reaped. When the command ends, this ends, and the kernel ends all that is left inside.
 */
#include "run/init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run/walls.h"

static void tell(int32_t kind, int32_t value)
{
    st_init_word word = {.kind = kind, .value = value};
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    word.time_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    clock_gettime(CLOCK_BOOTTIME, &now);
    word.boot_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    while (write(ST_INIT_FD, &word, sizeof(word)) < 0 && errno == EINTR)
        ;
}

/* A terminal that the runtime has made is that of our session. It becomes the command's, whose session has nobody above it: so
 * Ctrl-C reaches what is in the foreground there, and Ctrl-Z does not stop what nobody could let go on. */
static bool leave_terminal(void)
{
    const struct timespec now = {0};
    sigset_t told;

    if (!isatty(STDIN_FILENO) || ioctl(STDIN_FILENO, TIOCNOTTY) != 0)
        return false;
    sigemptyset(&told);
    sigaddset(&told, SIGHUP);
    sigaddset(&told, SIGCONT);
    while (sigtimedwait(&told, NULL, &now) > 0)
        ; /* it tells its session that it goes */
    return true;
}

static _Noreturn void run_command(char **argv, const sigset_t *mask, bool terminal)
{
    setsid();
    if (terminal)
        ioctl(STDIN_FILENO, TIOCSCTTY, 0);
    sigprocmask(SIG_SETMASK, mask, NULL);
    tell(ST_INIT_STARTED, 0);
    execvp(argv[0], argv);
    int why = errno;
    tell(ST_INIT_NO_EXEC, why);
    _exit(why == ENOENT ? 127 : 126);
}

/* Adds what the job's variables are to the environment; they stay where they are mapped. False: they cannot be read. */
static bool take_variables(void)
{
    int fd = open(ST_INIT_ENV_PATH, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    char *all;

    if (fd < 0 || fstat(fd, &st) != 0)
        return fd < 0 && errno == ENOENT;
    all = mmap(NULL, (size_t)st.st_size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    close(fd);
    if (all == MAP_FAILED)
        return false;
    for (off_t at = 0; at < st.st_size; at += (off_t)strlen(all + at) + 1)
        if (strchr(all + at, '=') && putenv(all + at) != 0)
            return false;
    return true;
}

/* Calls of another architecture are the runtime's to refuse. The kernel looks at 32 bits of a request, and so do we. */
static bool keep_attributes(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_ioctl, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)FS_IOC_FSSETXATTR, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)FS_IOC_SETFLAGS, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)FS_IOC32_SETFLAGS, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    const struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0;
}

/* The way here, through the runtime and this program, is not on the job's CPU time: a limit of a hundredth of a CPU would
 * make it take a second. The supervisor sets the limit when it hears this, and only then answers. False: it is dead, or
 * could not. */
static bool let_go(void)
{
    char go;
    ssize_t n;

    tell(ST_INIT_READY, 0);
    while ((n = read(ST_INIT_FD, &go, 1)) < 0 && errno == EINTR)
        ;
    return n == 1;
}

/* With what the job has, and without what it has not. What goes wrong is said as a shell would. */
static int enter(char **argv)
{
    sigset_t none;

    sigemptyset(&none);
    prctl(PR_SET_DUMPABLE, 0);
    if (!take_variables() || !keep_attributes()) {
        dprintf(STDERR_FILENO, "stint: the task's variables or limits cannot be had: %s\n",
                strerror(errno));
        return 126;
    }
    setsid();
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(argv[0], argv);
    int why = errno;
    dprintf(STDERR_FILENO, "stint: %s: %s\n", argv[0],
            why == ENOENT ? "command not found" : strerror(why));
    return why == ENOENT ? 127 : 126;
}

/* A runtime writes the container's state to a hook, and crun fails when nobody reads it. */
static int seal(const char *root)
{
    char state[4096];

    while (read(STDIN_FILENO, state, sizeof(state)) > 0)
        ;
    return st_walls_seal(root) ? 0 : 1;
}

/* Reaps all that has ended; true once the command has, with its wait status. */
static bool reap(pid_t command, int *ret_status)
{
    bool ended = false;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == command) {
            *ret_status = status;
            ended = true;
        }
    }
    return ended;
}

int main(int argc, char **argv)
{
    sigset_t all, before;
    int status = 0;

    if (argc == 2 && strcmp(argv[1], "--check") == 0)
        return st_walls_check() && keep_attributes() ? 0 : 126;
    if (argc == 3 && strcmp(argv[1], "--seal") == 0)
        return seal(argv[2]);
    if (argc > 3 && strcmp(argv[1], "--enter") == 0 && strcmp(argv[2], "--") == 0)
        return enter(argv + 3);
    if (argc < 3 || strcmp(argv[1], "--") != 0)
        return 2;
    fcntl(ST_INIT_FD, F_SETFD, FD_CLOEXEC);
    /* Nobody inside may look into this process, or write to its descriptors through /proc. */
    prctl(PR_SET_DUMPABLE, 0);
    if (!take_variables() || !keep_attributes()) {
        tell(ST_INIT_NO_EXEC, errno);
        return 126;
    }
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    if (!let_go())
        return 126;
    bool terminal = leave_terminal();
    pid_t command = fork();

    if (command < 0)
        return 126;
    if (command == 0)
        run_command(argv + 2, &before, terminal);
    for (;;) {
        int sig = sigwaitinfo(&all, NULL);

        if (sig == SIGCHLD && reap(command, &status))
            break;
        if (sig > 0 && sig != SIGCHLD && kill(-command, sig) != 0)
            kill(command, sig);
    }
    tell(ST_INIT_EXITED, status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
