/*
 * Is this node fit to run tasks? Each row tries one thing for real and says in plain words what
 * it found and what to do. Bad findings keep tasks from running, warnings take something away.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/os.h"
#include "run/runtime.h"

typedef struct prober {
    const st_run_conf *conf;
    st_run run;
    int prepared; /* result of st_runtime_prepare */
    st_err prepare_err;
    char scratch[PATH_MAX];
} prober;

static void say(st_run_finding *f, st_run_verdict verdict, const char *text, const char *fix)
{
    f->verdict = verdict;
    snprintf(f->text, sizeof(f->text), "%.*s", ST_RUN_TEXT_MAX - 1, text);
    snprintf(f->fix, sizeof(f->fix), "%.*s", ST_RUN_TEXT_MAX - 1, fix);
}

static void check_root(prober *p, st_run_finding *f)
{
    (void)p;
    if (geteuid() == 0)
        say(f, ST_CHECK_OK, "runs as root", "");
    else
        say(f, ST_CHECK_BAD, "does not run as root", "start the agent as root");
}

static void check_programs(prober *p, st_run_finding *f)
{
    if (p->prepared == 0)
        say(f, ST_CHECK_OK, "stint-shim, stint-init and the state directory are there", "");
    else
        say(f, ST_CHECK_BAD, p->prepare_err.msg,
            "install all programs into one folder; see "
            "that the state directory can be written");
}

/* Runs `fn` in a child and returns its errno, 0 when it worked. */
static int in_child(int (*fn)(const prober *), const prober *p)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(fn(p) == 0 ? 0 : (errno ? errno : 1));
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return EIO;
    return WEXITSTATUS(status);
}

static int try_namespaces(const prober *p)
{
    (void)p;
    return unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET |
                   CLONE_NEWCGROUP);
}

static void check_namespaces(prober *p, st_run_finding *f)
{
    int failed = in_child(try_namespaces, p);

    if (failed == 0)
        say(f, ST_CHECK_OK, "pid, mount, ipc, uts, net and cgroup namespaces work", "");
    else
        say(f, ST_CHECK_BAD, strerror(failed),
            "the kernel or a container around the agent forbids namespaces; allow them");
}

static int try_userns(const prober *p)
{
    (void)p;
    return unshare(CLONE_NEWUSER);
}

static void check_userns(prober *p, st_run_finding *f)
{
    int failed = in_child(try_userns, p);

    if (failed == 0)
        say(f, ST_CHECK_OK, "user namespaces work", "");
    else
        say(f, ST_CHECK_WARN, strerror(failed),
            "raise user.max_user_namespaces; until then tasks run under plain user ids");
}

static int try_overlay(const prober *p)
{
    char path[PATH_MAX + 16], options[3 * PATH_MAX];
    static const char *const dirs[] = {"low", "up", "work", "all"};

    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", p->scratch, "tmpfs", 0, "size=1m") != 0)
        return -1;
    for (size_t i = 0; i < ST_ARRAY_LEN(dirs); i++) {
        snprintf(path, sizeof(path), "%s/%s", p->scratch, dirs[i]);
        if (mkdir(path, 0755) != 0)
            return -1;
    }
    snprintf(options, sizeof(options),
             "lowerdir=%.1000s/low,upperdir=%.1000s/up,workdir=%.1000s/work", p->scratch,
             p->scratch, p->scratch);
    return mount("overlay", path, "overlay", 0, options); /* path is .../all now */
}

static void check_overlay(prober *p, st_run_finding *f)
{
    int failed = in_child(try_overlay, p);

    if (failed == 0)
        say(f, ST_CHECK_OK, "tmpfs and overlayfs can be mounted", "");
    else
        say(f, ST_CHECK_WARN, strerror(failed),
            "load the module overlay; until then only image \"host\" works");
}

static int try_openat2(const prober *p)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};

    (void)p;
    return syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof(how)) >= 0 ? 0 : -1;
}

static void check_openat2(prober *p, st_run_finding *f)
{
    int failed = in_child(try_openat2, p);

    if (failed == 0)
        say(f, ST_CHECK_OK, "images are opened beneath their folder (openat2)", "");
    else
        say(f, ST_CHECK_WARN, "openat2 does not work, so no OCI image can be read",
            "use Linux 5.6 or later, and allow openat2 in a container around the agent; until then "
            "jobs have "
            "the site's folders and the node's own programs");
}

static void check_cgroups(prober *p, st_run_finding *f)
{
    st_cg cg;
    char text[ST_RUN_TEXT_MAX], control[PATH_MAX], all[1024] = "";
    bool limits;

    (void)p;
    st_cg_find(&cg);
    if (cg.mode == ST_CG_V2) {
        if (st_os_path(control, NULL, "%s/cgroup.controllers", cg.unified) == 0)
            (void)st_os_peek(control, all, sizeof(all));
        limits = strstr(all, "memory") && strstr(all, "pids") && strstr(all, "cpu");
    } else {
        limits = cg.memory[0] && cg.pids[0] && cg.cpu[0] && cg.devices[0] && cg.freezer[0];
    }
    snprintf(text, sizeof(text), "cgroups: %s%s", st_cg_mode_name(cg.mode),
             limits ? ", with memory, cpu, pids and devices" : "");
    if (limits)
        say(f, ST_CHECK_OK, text, "");
    else
        say(f, ST_CHECK_BAD, text, "mount cgroup2 on /sys/fs/cgroup with memory, cpu and pids");
}

static void check_pins(prober *p, st_run_finding *f)
{
    st_cg cg;

    (void)p;
    st_cg_find(&cg);
    if (st_cg_pins(&cg))
        say(f, ST_CHECK_OK, "jobs are held to the CPUs they were given (cpuset)", "");
    else
        say(f, ST_CHECK_WARN, "the cgroup controller cpuset is not there",
            "boot without cgroup_disable=cpuset; until then a job is held to its share of CPU "
            "time, and "
            "sees all CPUs");
}

static void check_kill(prober *p, st_run_finding *f)
{
    char path[PATH_MAX];
    st_cg cg;

    (void)p;
    st_cg_find(&cg);
    /* The root group has no such file; any child has. */
    if (cg.unified[0] && st_os_path(path, NULL, "%s/stint-probe", cg.unified) == 0 &&
        (mkdir(path, 0755) == 0 || errno == EEXIST)) {
        char file[PATH_MAX];
        bool there = st_os_path(file, NULL, "%s/stint-probe/cgroup.kill", cg.unified) == 0 &&
                     access(file, W_OK) == 0;

        rmdir(path);
        if (there) {
            say(f, ST_CHECK_OK, "cgroup.kill ends a task in one step", "");
            return;
        }
    }
    if (cg.freezer[0])
        say(f, ST_CHECK_OK, "tasks are frozen and killed one process at a time", "");
    else
        say(f, ST_CHECK_WARN, "neither cgroup.kill nor a freezer",
            "use Linux 5.14 or later; until then a fork bomb may take a while to end");
}

static void check_seccomp(prober *p, st_run_finding *f)
{
    char text[256];

    (void)p;
    if (st_os_peek("/proc/sys/kernel/seccomp/actions_avail", text, sizeof(text)) > 0 &&
        strstr(text, "errno"))
        say(f, ST_CHECK_OK, "seccomp filters work", "");
    else
        say(f, ST_CHECK_BAD, "the kernel has no seccomp filters",
            "use a kernel with CONFIG_SECCOMP_FILTER");
}

/* The last one, since it needs all the others. */
static void check_runtime(prober *p, st_run_finding *f)
{
    char path[PATH_MAX], text[ST_RUN_TEXT_MAX] = "", said[160];
    const char *const named[] = {p->conf->runtime, NULL};
    bool works = false;

    if (p->prepared != 0) {
        say(f, ST_CHECK_BAD, "not tried, something above is missing", "see to that first");
        return;
    }
    for (const char *const *name = named[0] ? named : st_runtime_names; *name; name++) {
        st_err err = {0};
        size_t n = strlen(text);

        if (!st_os_which(*name, path)) {
            snprintf(said, sizeof(said), "%s is not installed", *name);
        } else if (st_runtime_try(&p->run, path, &err) != 0) {
            snprintf(said, sizeof(said), "%.150s", err.msg);
        } else {
            snprintf(said, sizeof(said), "%.140s works", path);
            works = true;
        }
        snprintf(text + n, sizeof(text) - n, "%s%.120s", n ? "; " : "", said);
    }
    say(f, works ? ST_CHECK_OK : ST_CHECK_BAD, text,
        works      ? ""
        : named[0] ? "name another one, or none and have the first that works"
                   : "install crun, or runc where both cgroup versions are mixed");
}

static void check_disk(prober *p, st_run_finding *f)
{
    struct statvfs fs;
    char text[ST_RUN_TEXT_MAX];

    if (p->prepared != 0 || statvfs(p->run.state_dir, &fs) != 0) {
        say(f, ST_CHECK_WARN, "not looked at", "see to the state directory first");
        return;
    }
    long long mib = (long long)((st_i128)fs.f_bavail * fs.f_frsize >> 20);

    snprintf(text, sizeof(text), "%lld MiB free for logs and images", mib);
    say(f, mib >= 1024 ? ST_CHECK_OK : ST_CHECK_WARN, text,
        mib >= 1024 ? "" : "free some space; output is dropped when there is none");
}

static const struct {
    const char *name;
    void (*check)(prober *, st_run_finding *);
} rows[] = {
    {"root", check_root},
    {"programs", check_programs},
    {"namespaces", check_namespaces},
    {"user namespaces", check_userns},
    {"file systems", check_overlay},
    {"image files", check_openat2},
    {"cgroups", check_cgroups},
    {"pinning", check_pins},
    {"killing", check_kill},
    {"seccomp", check_seccomp},
    {"runtime", check_runtime},
    {"disk", check_disk},
};

size_t st_run_probe(const st_run_conf *conf, st_run_finding ret[ST_RUN_FINDINGS_MAX])
{
    prober p = {.conf = conf};

    _Static_assert(ST_ARRAY_LEN(rows) <= ST_RUN_FINDINGS_MAX, "room for every row");
    p.prepared = st_runtime_prepare(conf, &p.run, &p.prepare_err);
    snprintf(p.scratch, sizeof(p.scratch), "%s/runtime", p.run.state_dir);
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        ret[i] = (st_run_finding){.name = rows[i].name};
        rows[i].check(&p, &ret[i]);
    }
    return ST_ARRAY_LEN(rows);
}

const st_run_finding *st_run_probe_bad(const st_run_finding *findings, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (findings[i].verdict == ST_CHECK_BAD)
            return &findings[i];
    return NULL;
}
