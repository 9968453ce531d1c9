/* A process without anything; see the header. */
#include "run/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/arch.h"

/* Sanitizers map more than anybody has and ask for their stack; gcc and clang say differently that one is there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#define MEMORY_BYTES ((rlim_t)1 << 30)
#define FILES_MAX    64
#define NICE         10

/* For every jail: reading what is open, memory, leaving. */
static const int calls_read[] = {
    __NR_read,        __NR_pread64,    __NR_write,         __NR_pwrite64,     __NR_lseek,
    __NR_close,       __NR_fstat,      __NR_fstatfs,       __NR_mmap,         __NR_munmap,
    __NR_mremap,      __NR_mprotect,   __NR_brk,           __NR_madvise,      __NR_openat2,
    __NR_exit,        __NR_exit_group, __NR_futex,         __NR_rt_sigreturn, __NR_getrandom,
    __NR_fadvise64,   __NR_newfstatat, __NR_clock_gettime,
#ifdef SANITIZED
    __NR_sigaltstack,
#endif
};
/* For who unpacks. */
static const int calls_make[] = {
    __NR_mkdirat,  __NR_unlinkat,  __NR_symlinkat,  __NR_linkat, __NR_fchmod,
    __NR_fchmodat, __NR_utimensat, __NR_getdents64, __NR_fcntl,  __NR_openat,
};

#define CALLS_MAX (ST_ARRAY_LEN(calls_read) + ST_ARRAY_LEN(calls_make))

/* What is not on the list fails with EPERM; another machine's calls end the process. */
static int filter_calls(bool makes)
{
    struct sock_filter code[CALLS_MAX + 8];
    unsigned short n = 0;
    size_t ncalls = ST_ARRAY_LEN(calls_read) + (makes ? ST_ARRAY_LEN(calls_make) : 0);

    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ST_AUDIT_ARCH, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < ncalls; i++) {
        int call =
            i < ST_ARRAY_LEN(calls_read) ? calls_read[i] : calls_make[i - ST_ARRAY_LEN(calls_read)];

        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call,
                                                 (unsigned char)(ncalls - i), 0);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog prog = {.len = n, .filter = code};

    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int limit(int what, rlim_t value)
{
    const struct rlimit l = {.rlim_cur = value, .rlim_max = value};

    return setrlimit((__rlimit_resource_t)what, &l);
}

static int limits(const st_jail *j)
{
#ifndef SANITIZED
    if (limit(RLIMIT_AS, MEMORY_BYTES) != 0)
        return -1;
#endif
    return limit(RLIMIT_CORE, 0) != 0 || limit(RLIMIT_NPROC, 0) != 0 ||
                   limit(RLIMIT_NOFILE, FILES_MAX) != 0 ||
                   limit(RLIMIT_FSIZE, (rlim_t)j->file_bytes) != 0
               ? -1
               : 0;
}

void st_jail_keep(const int *keep, int n)
{
    int first = 0; /* everything from here on that is not kept goes */

    for (int i = 0; i <= n; i++) {
        int next = -1; /* the lowest to be kept from here on */

        for (int k = 0; k < n; k++)
            if (keep[k] >= first && (next < 0 || keep[k] < next))
                next = keep[k];
        if (next < 0) {
            close_range((unsigned)first, ~0U, 0);
            return;
        }
        if (next > first)
            close_range((unsigned)first, (unsigned)next - 1, 0);
        first = next + 1;
    }
}

int st_jail_enter(const st_jail *j, st_err *err)
{
    const char *what = NULL;

    if (j->uid == 0 || j->gid == 0)
        return st_fail(err, ST_EPERM, "the image's folder belongs to root; give it to its tenant");
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICE);
    if (unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWUTS) != 0)
        what = "namespaces";
    else if (fchdir(j->root) != 0 || chroot(".") != 0)
        what = "its folder";
    else if (setgroups(0, NULL) != 0 || setresgid(j->gid, j->gid, j->gid) != 0 ||
             setresuid(j->uid, j->uid, j->uid) != 0)
        what = "its user";
    else if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0 ||
             prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        what = "its rights";
    else if (limits(j) != 0)
        what = "its limits";
    if (!what) {
        st_jail_keep(j->keep, j->nkeep);
        what = filter_calls(j->makes) != 0 ? "its system calls" : NULL;
    }
    if (what)
        return st_fail(err, ST_EIO, "the image cannot be read safely: %s: %s", what,
                       strerror(errno));
    return 0;
}

void st_jail_say(st_jail_word *word, const st_err *err)
{
    *word = (st_jail_word){.code = err->code};
    snprintf(word->text, sizeof(word->text), "%.*s", (int)sizeof(word->text) - 1, err->msg);
}

int st_jail_heard(const st_jail_word *word, st_err *err)
{
    char text[sizeof(word->text)];

    if (word->code == 0)
        return 0;
    memcpy(text, word->text, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
            *p = '?';
    return st_fail(err, word->code > 0 && word->code <= ST_EBUDGET ? word->code : ST_EIO, "%s",
                   text);
}
