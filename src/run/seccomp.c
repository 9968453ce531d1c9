/*
 * The system calls a task may make. An allow list: what is not named here fails with EPERM, and
 * calls newer than the list look missing to the C library. Left out on purpose:
 *
 *   mount, umount2, fsopen, open_tree, move_mount, pivot_root, chroot   the file system is ours
 *   unshare, setns, clone3, clone with CLONE_NEW*                       no namespaces inside
 *   ptrace, kcmp, perf_event_open, bpf, userfaultfd, io_uring_*         wide kernel surface
 *   keyctl, add_key, request_key, open_by_handle_at                     not held by namespaces
 *   kexec_*, *_module, reboot, swap*, acct, quotactl, syslog, iopl      the machine's
 *   mknod of devices, sockets beyond unix, inet, inet6 and netlink      not needed
 *
 * clone3 says ENOSYS, so that the C library falls back to clone, whose flags can be seen.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "run/bundle.h"

static const char *const allowed[] = {
    /* files */
    "access", "chdir", "chmod", "chown", "chown32", "close", "close_range", "copy_file_range",
    "creat", "dup", "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fadvise64_64",
    "fallocate", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown", "fchown32", "fchownat",
    "fcntl", "fcntl64", "fdatasync", "fgetxattr", "flistxattr", "flock", "fremovexattr",
    "fsetxattr", "fstat", "fstat64", "fstatat64", "fstatfs", "fstatfs64", "fsync", "ftruncate",
    "ftruncate64", "futimesat", "getcwd", "getdents", "getdents64", "getxattr", "inotify_add_watch",
    "inotify_init", "inotify_init1", "inotify_rm_watch", "io_cancel", "io_destroy", "io_getevents",
    "io_pgetevents", "io_setup", "io_submit", "ioctl", "lchown", "lchown32", "lgetxattr", "link",
    "linkat", "listxattr", "llistxattr", "lremovexattr", "lseek", "_llseek", "lsetxattr", "lstat",
    "lstat64", "mkdir", "mkdirat", "newfstatat", "open", "openat", "openat2", "pipe", "pipe2",
    "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read", "readahead",
    "readlink", "readlinkat", "readv", "removexattr", "rename", "renameat", "renameat2", "rmdir",
    "sendfile", "sendfile64", "setxattr", "splice", "stat", "stat64", "statfs", "statfs64", "statx",
    "symlink", "symlinkat", "sync", "sync_file_range", "syncfs", "tee", "truncate", "truncate64",
    "umask", "unlink", "unlinkat", "utime", "utimensat", "utimensat_time64", "utimes", "vmsplice",
    "write", "writev",
    /* memory */
    "brk", "get_mempolicy", "madvise", "mbind", "membarrier", "memfd_create", "migrate_pages",
    "mincore", "mlock", "mlock2", "mlockall", "mmap", "mmap2", "move_pages", "mprotect", "mremap",
    "msync", "munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free", "pkey_mprotect",
    "process_madvise", "process_mrelease", "process_vm_readv", "process_vm_writev",
    "remap_file_pages", "set_mempolicy", "set_mempolicy_home_node",
    /* processes and threads */
    "arch_prctl", "capget", "capset", "execve", "execveat", "exit", "exit_group", "fork", "futex",
    "futex_requeue", "futex_time64", "futex_wait", "futex_waitv", "futex_wake", "get_robust_list",
    "get_thread_area", "getcpu", "getegid", "getegid32", "geteuid", "geteuid32", "getgid",
    "getgid32", "getgroups", "getgroups32", "getitimer", "getpgid", "getpgrp", "getpid", "getppid",
    "getpriority", "getresgid", "getresgid32", "getresuid", "getresuid32", "getrlimit", "getrusage",
    "getsid", "gettid", "getuid", "getuid32", "ioprio_get", "ioprio_set", "kill",
    "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "pidfd_getfd",
    "pidfd_open", "pidfd_send_signal", "prctl", "prlimit64", "restart_syscall", "rseq",
    "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn",
    "rt_sigsuspend", "rt_sigtimedwait", "rt_sigtimedwait_time64", "rt_tgsigqueueinfo",
    "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr",
    "sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity",
    "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield", "seccomp",
    "set_robust_list", "set_thread_area", "set_tid_address", "setfsgid", "setfsgid32", "setfsuid",
    "setfsuid32", "setgid", "setgid32", "setgroups", "setgroups32", "setitimer", "setpgid",
    "setpriority", "setregid", "setregid32", "setresgid", "setresgid32", "setresuid", "setresuid32",
    "setreuid", "setreuid32", "setrlimit", "setsid", "setuid", "setuid32", "sigaltstack",
    "signalfd", "signalfd4", "sysinfo", "tgkill", "tkill", "ugetrlimit", "uname", "vfork", "wait4",
    "waitid", "waitpid", "cachestat",
    /* time */
    "alarm", "clock_getres", "clock_getres_time64", "clock_gettime", "clock_gettime64",
    "clock_nanosleep", "clock_nanosleep_time64", "gettimeofday", "nanosleep", "pause", "time",
    "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime", "timer_gettime64",
    "timer_settime", "timer_settime64", "timerfd_create", "timerfd_gettime", "timerfd_gettime64",
    "timerfd_settime", "timerfd_settime64", "times",
    /* waiting and talking */
    "accept", "accept4", "bind", "connect", "epoll_create", "epoll_create1", "epoll_ctl",
    "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd", "eventfd2", "getpeername", "getrandom",
    "getsockname", "getsockopt", "listen", "mq_getsetattr", "mq_notify", "mq_open",
    "mq_timedreceive", "mq_timedsend", "mq_unlink", "msgctl", "msgget", "msgrcv", "msgsnd", "poll",
    "ppoll", "ppoll_time64", "pselect6", "pselect6_time64", "recv", "recvfrom", "recvmmsg",
    "recvmmsg_time64", "recvmsg", "select", "_newselect", "semctl", "semget", "semop", "semtimedop",
    "semtimedop_time64", "send", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shmat", "shmctl",
    "shmdt", "shmget", "shutdown", "socketpair"};

#define NEW_NAMESPACES 0x7E020080 /* CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET and TIME */

/* One rule; with mask != 0 it applies when (argument & mask) == value. */
static json_t *rule(const char *name, int arg, uint64_t mask, uint64_t value)
{
    json_t *args = json_array();

    if (mask)
        json_array_append_new(args, json_pack("{s:i, s:I, s:I, s:s}", "index", arg, "value",
                                              (json_int_t)mask, "valueTwo", (json_int_t)value, "op",
                                              "SCMP_CMP_MASKED_EQ"));
    return json_pack("{s:[s], s:s, s:o}", "names", name, "action", "SCMP_ACT_ALLOW", "args", args);
}

json_t *st_bundle_seccomp(void)
{
    static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
    static const int personas[] = {0, 8, 0x20000, 0x20008, 0x40000}; /* the last: no randomising */
    json_t *names = json_array();
    json_t *rules = json_array();

    for (size_t i = 0; i < ST_ARRAY_LEN(allowed); i++)
        json_array_append_new(names, json_string(allowed[i]));
    json_array_append_new(rules,
                          json_pack("{s:o, s:s}", "names", names, "action", "SCMP_ACT_ALLOW"));
    json_array_append_new(rules, rule("clone", 0, NEW_NAMESPACES, 0));
    json_array_append_new(rules, json_pack("{s:[s], s:s, s:i}", "names", "clone3", "action",
                                           "SCMP_ACT_ERRNO", "errnoRet", ENOSYS));
    for (size_t i = 0; i < ST_ARRAY_LEN(families); i++)
        json_array_append_new(rules, rule("socket", 0, 0xffffffff, (uint64_t)families[i]));
    for (size_t i = 0; i < ST_ARRAY_LEN(personas); i++)
        json_array_append_new(rules, rule("personality", 0, 0xffffffff, (uint64_t)personas[i]));
    json_array_append_new(rules, rule("personality", 0, 0xffffffff, 0xffffffff)); /* asks only */
    json_array_append_new(rules, rule("mknod", 1, S_IFMT, S_IFIFO));
    json_array_append_new(rules, rule("mknodat", 2, S_IFMT, S_IFIFO));
    return json_pack("{s:s, s:i, s:o}", "defaultAction", "SCMP_ACT_ERRNO", "defaultErrnoRet", EPERM,
                     "syscalls", rules);
}
