/* What a task must not be able to do, tried from inside it; see the header. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/test/attack.h"

/* Each returns 0 if it got through and errno if not. */

static int of(long r)
{
    return r < 0 ? errno : 0;
}

static int opens(const char *path, int flags)
{
    return of(open(path, flags | O_CLOEXEC, 0600));
}

static int writes(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 ? errno : of(write(fd, text, strlen(text)));
}

static int do_mount(void)
{
    return of(mount("tmpfs", "/tmp", "tmpfs", 0, NULL));
}

static int do_umount(void)
{
    return of(umount2("/proc/sys", MNT_DETACH));
}

static int do_remount(void)
{
    return of(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
}

static int do_open_tree(void)
{
    return of(syscall(SYS_open_tree, AT_FDCWD, "/", 1));
}

static int do_chroot(void)
{
    return of(chroot("/tmp"));
}

static int do_ptrace(void)
{
    return of(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
}

static int do_kexec(void)
{
    return of(syscall(SYS_kexec_load, 0UL, 0UL, NULL, 0UL));
}

static int do_bpf(void)
{
    union bpf_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.map_type = BPF_MAP_TYPE_ARRAY;
    attr.key_size = attr.value_size = 4;
    attr.max_entries = 1;
    return of(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

static int do_keyctl(void)
{
    return of(syscall(SYS_keyctl, 0, -3, 1)); /* the session keyring's id */
}

static int do_perf(void)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_CPU_CLOCK};

    attr.exclude_kernel = 1;
    return of(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0UL));
}

static int do_userfaultfd(void)
{
    return of(syscall(SYS_userfaultfd, 1)); /* user mode only: free for all without a filter */
}

static int do_io_uring(void)
{
    char params[256] = {0};

    return of(syscall(SYS_io_uring_setup, 1, params));
}

static int do_unshare_user(void)
{
    return of(unshare(CLONE_NEWUSER));
}

static int do_clone_user(void)
{
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0UL, NULL, NULL, 0UL);

    if (pid == 0)
        _exit(0);
    return of(pid);
}

static int do_clone3(void)
{
    struct {
        unsigned long long flags, more[7];
    } args = {.flags = CLONE_NEWUSER};

    args.more[3] = SIGCHLD;
    long pid = syscall(SYS_clone3, &args, sizeof(args));

    if (pid == 0)
        _exit(0);
    return of(pid);
}

static int do_setns(void)
{
    int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? errno : of(setns(fd, 0));
}

static int do_mknod(void)
{
    return of(mknod("/tmp/mem", S_IFCHR | 0666, makedev(1, 1)));
}

static int do_mknod_dev(void)
{
    return of(mknod("/dev/nvidia0", S_IFCHR | 0666, makedev(195, 0)));
}

static int do_dev_mem(void)
{
    return opens("/dev/mem", O_RDONLY);
}

static int do_dev_other(void)
{
    return opens("/dev/nvidia0", O_RDWR);
}

static int do_dev_planted(void)
{
    return opens("/data/kmsg", O_RDWR); /* a node the test put into our storage */
}

static int do_disk(void)
{
    return opens("/dev/vda", O_RDONLY) && opens("/dev/sda", O_RDONLY) &&
                   opens("/dev/nvme0n1", O_RDONLY)
               ? ENOENT
               : 0;
}

static int do_sysctl(void)
{
    return writes("/proc/sys/kernel/core_pattern", "|/bin/sh");
}

static int do_sysrq(void)
{
    return writes("/proc/sysrq-trigger", "h");
}

static int do_sys_write(void)
{
    return writes("/sys/kernel/mm/transparent_hugepage/enabled", "always");
}

static int do_kcore(void)
{
    char c[4];
    int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno;
    return read(fd, c, sizeof(c)) > 0 ? 0 : EACCES; /* empty: masked */
}

static int do_cgroup_mem(void)
{
    return writes("/sys/fs/cgroup/memory/memory.limit_in_bytes", "-1") &&
                   writes("/sys/fs/cgroup/memory.max", "max")
               ? EROFS
               : 0;
}

static int do_cgroup_leave(void)
{
    return writes("/sys/fs/cgroup/pids/cgroup.procs", "0") &&
                   writes("/sys/fs/cgroup/cgroup.procs", "0")
               ? EROFS
               : 0;
}

static int do_cgroup_make(void)
{
    return mkdir("/sys/fs/cgroup/pids/mine", 0755) && mkdir("/sys/fs/cgroup/mine", 0755) ? EROFS
                                                                                         : 0;
}

static int do_rlimit(void)
{
    struct rlimit l;

    getrlimit(RLIMIT_NOFILE, &l);
    l.rlim_max += 1;
    return of(setrlimit(RLIMIT_NOFILE, &l));
}

static int do_oom_score(void)
{
    return writes("/proc/self/oom_score_adj", "-1000");
}

static int do_nice(void)
{
    return of(setpriority(PRIO_PROCESS, 0, -10));
}

static int do_setuid(void)
{
    return of(setuid(getuid() == 0 ? 1 : 0)); /* in a user namespace we are 0 already */
}

static int do_setgid(void)
{
    return of(setgid(getgid() == 0 ? 1 : 0));
}

static int do_caps(void)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "re");
    int any = !f;

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "Cap", 3) == 0)
            any |= strtoull(line + 8, NULL, 16) != 0;
    if (f)
        fclose(f);
    return any ? 0 : EPERM;
}

static int do_new_privs(void)
{
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? EPERM : 0;
}

static int do_hostname(void)
{
    return of(sethostname("x", 1));
}

static int do_settime(void)
{
    struct timeval t = {.tv_sec = 1};

    return of(settimeofday(&t, NULL));
}

static int do_reboot(void)
{
    return of(syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL)); /* only forbids ctrl-alt-del */
}

static int do_swap(void)
{
    return of(swapoff("/nothing")) == EPERM ? EPERM : 0;
}

static int do_module(void)
{
    return of(syscall(SYS_init_module, "", 0UL, ""));
}

static int do_syslog(void)
{
    char buf[16];

    return of(syscall(SYS_syslog, 3, buf, sizeof(buf)));
}

static int do_handle(void)
{
    struct {
        unsigned bytes;
        int type;
        char data[8];
    } handle = {.bytes = 8, .type = 1};

    return of(syscall(SYS_open_by_handle_at, AT_FDCWD, &handle, O_RDONLY));
}

static int do_packet(void)
{
    return of(socket(AF_PACKET, SOCK_RAW, 0));
}

static int do_raw(void)
{
    return of(socket(AF_INET, SOCK_RAW, 1));
}

static int do_vsock(void)
{
    return of(socket(AF_VSOCK, SOCK_STREAM, 0));
}

static int do_alg(void)
{
    return of(socket(AF_ALG, SOCK_SEQPACKET, 0));
}

static int do_init_exe(void)
{
    return opens("/proc/1/exe", O_WRONLY) && opens("/run/stint/init", O_WRONLY) ? EACCES : 0;
}

static int do_init_look(void)
{
    return opens("/proc/1/mem", O_RDWR) && opens("/proc/1/environ", O_RDONLY) &&
                   opens("/proc/1/fd/3", O_WRONLY) && opens("/proc/1/root/etc/passwd", O_RDONLY)
               ? EACCES
               : 0;
}

static int do_leaked_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int more = !d;

    for (struct dirent *e; d && (e = readdir(d));) {
        int fd = atoi(e->d_name);

        more |= e->d_name[0] != '.' && fd > 2 && fd != dirfd(d);
    }
    if (d)
        closedir(d);
    return more ? 0 : ENOENT;
}

static int do_see_others(void)
{
    DIR *d = opendir("/proc");
    int n = 0;

    for (struct dirent *e; d && (e = readdir(d));)
        n += atoi(e->d_name) > 0;
    if (d)
        closedir(d);
    return n <= 4 ? ESRCH : 0; /* init, the shell, we, and our child */
}

static int do_kill_others(void)
{
    for (int pid = 2; pid < 32768; pid++)
        if (pid != getpid() && pid != getppid() && (kill(pid, 0) == 0 || errno != ESRCH))
            return 0;
    return ESRCH;
}

static int do_write_root(void)
{
    return opens("/etc/passwd", O_WRONLY) && opens("/new", O_WRONLY | O_CREAT) &&
                   opens("/usr/bin/new", O_WRONLY | O_CREAT) &&
                   opens("/etc/new", O_WRONLY | O_CREAT) && opens("/run/stint/new", O_CREAT)
               ? EROFS
               : 0;
}

static int do_host_files(void)
{
    return opens("/root", O_RDONLY) && opens("/home", O_RDONLY) && opens("/etc/shadow", O_RDONLY) &&
                   opens("/var/lib", O_RDONLY) && opens("/var/tmp", O_RDONLY)
               ? ENOENT
               : 0;
}

static int do_link_out(void)
{
    /* The test has put a link there that leads to another tenant's storage on the node. */
    return opens("/data/link/secret", O_RDONLY);
}

static int fill(const char *path, long mib)
{
    static char block[1 << 20];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return errno;
    memset(block, 1, sizeof(block));
    for (long i = 0; i <= mib; i++)
        if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block)) {
            unlink(path);
            return ENOSPC;
        }
    return 0;
}

static int do_fill_tmp(void)
{
    return fill("/tmp/big", 16);
}

static int do_fill_shm(void)
{
    return fill("/dev/shm/big", 8);
}

static int do_personality(void)
{
    return of(syscall(SYS_personality, 0x0400000UL)); /* READ_IMPLIES_EXEC */
}

static const struct {
    const char *name;
    int (*fn)(void);
} rows[] = {
    {"mount", do_mount},
    {"umount", do_umount},
    {"remount / writable", do_remount},
    {"open_tree", do_open_tree},
    {"chroot", do_chroot},
    {"ptrace", do_ptrace},
    {"kexec_load", do_kexec},
    {"bpf", do_bpf},
    {"keyctl", do_keyctl},
    {"perf_event_open", do_perf},
    {"userfaultfd", do_userfaultfd},
    {"io_uring", do_io_uring},
    {"unshare a user namespace", do_unshare_user},
    {"clone a user namespace", do_clone_user},
    {"clone3", do_clone3},
    {"setns", do_setns},
    {"mknod in /tmp", do_mknod},
    {"mknod in /dev", do_mknod_dev},
    {"/dev/mem", do_dev_mem},
    {"a GPU not given", do_dev_other},
    {"a device node in /data", do_dev_planted},
    {"the node's disk", do_disk},
    {"write /proc/sys", do_sysctl},
    {"sysrq", do_sysrq},
    {"write /sys", do_sys_write},
    {"read /proc/kcore", do_kcore},
    {"raise the memory limit", do_cgroup_mem},
    {"leave the cgroup", do_cgroup_leave},
    {"make a cgroup", do_cgroup_make},
    {"raise an rlimit", do_rlimit},
    {"lower the OOM score", do_oom_score},
    {"raise the priority", do_nice},
    {"setuid", do_setuid},
    {"setgid", do_setgid},
    {"capabilities", do_caps},
    {"new privileges by exec", do_new_privs},
    {"sethostname", do_hostname},
    {"settimeofday", do_settime},
    {"reboot", do_reboot},
    {"swapoff", do_swap},
    {"init_module", do_module},
    {"syslog", do_syslog},
    {"open_by_handle_at", do_handle},
    {"packet socket", do_packet},
    {"raw socket", do_raw},
    {"vsock socket", do_vsock},
    {"alg socket", do_alg},
    {"personality", do_personality},
    {"write the init program", do_init_exe},
    {"look into process 1", do_init_look},
    {"leaked descriptors", do_leaked_fds},
    {"see others' processes", do_see_others},
    {"signal others' processes", do_kill_others},
    {"write the root file system", do_write_root},
    {"read the node's files", do_host_files},
    {"a link out of /data", do_link_out},
    {"fill /tmp", do_fill_tmp},
    {"fill /dev/shm", do_fill_shm},
};

size_t attack_count(void)
{
    return sizeof(rows) / sizeof(rows[0]);
}

int attack_all(void)
{
    for (size_t i = 0; i < attack_count(); i++) {
        int status = 0;

        fflush(stdout);
        pid_t pid = fork(); /* an attack must not spoil the next */

        if (pid == 0)
            _exit(rows[i].fn());
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
            printf("THROUGH %s, or not tried\n", rows[i].name);
        else if (WIFSIGNALED(status))
            printf("denied %s: killed by signal %d\n", rows[i].name, WTERMSIG(status));
        else if (WEXITSTATUS(status))
            printf("denied %s: %s\n", rows[i].name, strerror(WEXITSTATUS(status)));
        else
            printf("THROUGH %s\n", rows[i].name);
    }
    return 0;
}
