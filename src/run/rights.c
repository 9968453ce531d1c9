/*
 * Giving up capabilities and calls (run/rights.h).
 */
#include "run/rights.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"
#include "run/arch.h"

#define WORDS _LINUX_CAPABILITY_U32S_3

static int capget_all(struct __user_cap_data_struct now[WORDS])
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};

    return (int)syscall(SYS_capget, &head, now);
}

/* What a program that is started could get back. Who may not give that up has no rights that would matter. */
static void drop_bounding(uint64_t keep)
{
    for (int cap = 0; cap < 64 && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        if (!(keep >> cap & 1))
            prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

int st_rights_keep(uint64_t keep, st_err *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct now[WORDS];

    if (capget_all(now) < 0)
        return st_fail(err, ST_EIO, "capabilities cannot be read: %s", strerror(errno));
    drop_bounding(keep);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (int i = 0; i < WORDS; i++) {
        now[i].permitted &= (uint32_t)(keep >> 32 * i);
        now[i].effective &= now[i].permitted;
        now[i].inheritable = 0;
    }
    if (syscall(SYS_capset, &head, now) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return st_fail(err, ST_EIO, "capabilities cannot be given up: %s", strerror(errno));
    return 0;
}

/* Of the machine, and nobody's who runs tasks on it. */
static const int machine_calls[] = {
    __NR_reboot,       __NR_swapon,        __NR_swapoff,       __NR_init_module,
    __NR_finit_module, __NR_delete_module, __NR_kexec_load,    __NR_kexec_file_load,
    __NR_settimeofday, __NR_clock_settime, __NR_clock_adjtime, __NR_adjtimex,
    __NR_acct,         __NR_vhangup,
#ifdef __NR_iopl
    __NR_iopl,         __NR_ioperm,
#endif
};

int st_rights_machine(st_err *err)
{
    const size_t n = ST_ARRAY_LEN(machine_calls);
    struct sock_filter code[ST_ARRAY_LEN(machine_calls) + 8];
    unsigned short at = 0;

    code[at++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ST_AUDIT_ARCH, 1, 0);
    /* Programs of another kind in a task's image; the task's own filter is theirs as well. */
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[at++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < n; i++)
        code[at++] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, (unsigned)machine_calls[i], (unsigned char)(n - i), 0);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    const struct sock_fprog prog = {.len = at, .filter = code};

    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
        return st_fail(err, ST_EIO, "calls cannot be given up: %s", strerror(errno));
    return 0;
}
