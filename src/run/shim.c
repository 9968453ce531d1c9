/*
 * The supervisor of one task. It has the runtime make the container, so that it, as the nearest
 * subreaper, becomes the parent of the container's first process; then it waits: for output, for
 * the end, for the time limit. It needs nobody, answers to nobody, and is not asked anything:
 * what others want to know is in the task's folder, and killing the group of the task needs no
 * help. Single-threaded; memory in use is a few hundred KiB.
 */
#include "run/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "run/image.h"
#include "run/init.h"
#include "run/log.h"
#include "run/os.h"
#include "run/private.h"
#include "run/state.h"
#include "run/targets.h"

#define START_TIMEOUT_MS 60000
#define NO_RUNTIME       (127 << 8) /* as a wait status: there was nothing to execute */
#define KILL_AGAIN_MS    1000
#define LEASE_AFTER_MS   2000
#define LEASE_LOOK_MS    10000 /* while there is none, or none that ends */
#define HELD_LOOK_MS     500   /* at a deadline that stands still */
#define LIMIT_LOOK_MS    10000 /* at whether the deadline was moved */
#define GONE_TIMEOUT_MS  10000
#define DRAIN_MS         1000
#define LIVE_AGAIN_MS    1000
#define CHUNK            65536

/* What the timer is for. */
typedef enum { FOR_START, FOR_LIMIT, FOR_GRACE, FOR_KILL } timer_use;

typedef struct shim {
    const char *dir;
    st_plan plan;
    st_cg cg;
    st_run_task task; /* the record in the making */
    int signals, timer;
    int lease;            /* a timer: the end of the node's lease, or when to look for it */
    int64_t lease_end_ms; /* as last read; 0: none was */
    int64_t limit_ms;   /* when its time is up, by the boot clock, if that is not moved; 0: never */
    int image;          /* keeps the unpacked image where it is */
    int out, err, word; /* read ends: stdout, stderr, stint-init */
    pid_t runtime;      /* while it works */
    bool ended;
    bool over_time;
    bool start_late;
    bool live_due; /* live.json could not be written */
    timer_use use;
    st_log log_out, log_err;
    char buf[CHUNK];
} shim;

static void arm(shim *s, timer_use use, int64_t ms)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 + (ms == 0)}};

    s->use = use;
    timerfd_settime(s->timer, 0, &when, NULL);
}

/* ---- the lease -------------------------------------------------------------------------- */

/* When to look at the lease: a little after its end, for the agent comes first, and its watchdog. */
static void arm_lease(shim *s)
{
    st_run_lease now = st_run_lease_load(s->plan.lease);
    int64_t mono = st_os_mono_ms();
    int64_t at = mono + LEASE_LOOK_MS;
    struct itimerspec when = {0};

    if (!s->plan.lease[0])
        return;
    if (now.keep || now.end_ms > 0)
        s->lease_end_ms = now.keep ? 0 : now.end_ms;
    if (s->lease_end_ms > 0)
        at = ST_MAX(s->lease_end_ms + LEASE_AFTER_MS, mono + 1);
    when.it_value = (struct timespec){.tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000};
    timerfd_settime(s->lease, TFD_TIMER_ABSTIME, &when, NULL);
}

/* It may have been renewed since. If not, whoever should have seen to that is dead. */
static void on_lease(shim *s)
{
    uint64_t times;

    if (read(s->lease, &times, sizeof(times)) < 0)
        return;
    arm_lease(s);
    if (s->lease_end_ms == 0 || st_os_mono_ms() < s->lease_end_ms + LEASE_AFTER_MS)
        return;
    (void)st_kill_write(s->dir, ST_RUN_LEASE_REASON, NULL);
    st_cg_kill(&s->cg, s->plan.cgroup, false);
    arm(s, FOR_KILL, KILL_AGAIN_MS);
}

/* ---- starting --------------------------------------------------------------------------- */

/* Runtimes give the private /tmp the mode of the folder it covers; everybody may write there. In
 * a user namespace they also make mount points as its root, which must own the top for that. */
static int open_tmp(const char *root, int64_t root_uid, st_err *err)
{
    ST_CLEANUP(st_os_closep)
    int top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ST_CLEANUP(st_os_closep) int tmp = -1;

    if (top >= 0 && (mkdirat(top, "tmp", 0755) == 0 || errno == EEXIST))
        tmp = openat(top, "tmp", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (tmp < 0 || fchmod(tmp, 01777) != 0)
        return st_fail(err, ST_EINVAL, "the image has no usable folder /tmp: %s", strerror(errno));
    if (root_uid > 0 && fchown(top, (uid_t)root_uid, (gid_t)-1) != 0)
        return st_fail(err, ST_EIO, "cannot hand over %s: %s", root, strerror(errno));
    return 0;
}

static bool unwanted(const void *ctx)
{
    char reason[ST_RUN_TEXT_MAX];

    return st_kill_read(ctx, reason);
}

/* An OCI image is read and unpacked by processes without rights; *s keeps the result until it ends. */
static int ready_image(shim *s, st_err *err)
{
    const st_plan_image *i = &s->plan.image;
    const st_image_ask ask = {.images = i->images,
                              .tenant = i->tenant,
                              .root = i->root,
                              .path = i->path,
                              .digest = i->digest,
                              .max_bytes = i->max_bytes,
                              .timeout_ms = i->timeout_ms,
                              .stop = unwanted,
                              .ctx = s->dir};

    return i->root[0] ? st_image_ready(&ask, s->plan.lower, &s->image, err) : 0;
}

/* A mount namespace of our own, so that what is mounted here is gone when we are; and first what no disk may hold. */
static int mount_private(const shim *s, st_err *err)
{
    char dir[PATH_MAX];
    int fd = ST_SHIM_PRIVATE_FD, r;

    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
        return st_fail(err, ST_EIO, "cannot make a mount namespace: %s", strerror(errno));
    r = st_os_path(dir, err, "%s/bundle/private", s->dir);
    if (r == 0)
        r = st_private_mount(fd, dir, err);
    close(fd);
    return r;
}

/* The image below, a small writable layer for mount points above. */
static int mount_root(const shim *s, st_err *err)
{
    char over[PATH_MAX], root[PATH_MAX], up[PATH_MAX], work[PATH_MAX];
    ST_CLEANUP(st_strbuf_done) st_strbuf options = {0};
    int r;

    if (!s->plan.lower[0])
        return 0;
    if ((r = st_os_path(over, err, "%s/bundle/over", s->dir)) != 0 ||
        (r = st_os_path(root, err, "%s/bundle/rootfs", s->dir)) != 0 ||
        (r = st_os_path(up, err, "%s/bundle/over/up", s->dir)) != 0 ||
        (r = st_os_path(work, err, "%s/bundle/over/work", s->dir)) != 0)
        return r;
    st_strbuf_addf(&options, "lowerdir=%s,upperdir=%s,workdir=%s", s->plan.lower, up, work);
    if (mount("tmpfs", over, "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,mode=755") != 0 ||
        mkdir(up, 0755) != 0 || mkdir(work, 0755) != 0)
        return st_fail(err, ST_EIO, "cannot make room for mount points: %s", strerror(errno));
    if (mount("overlay", root, "overlay", MS_NOSUID | MS_NODEV, options.s) != 0)
        return st_fail(err, ST_EIO, "cannot mount the image %s: %s", s->plan.lower,
                       strerror(errno));
    r = st_os_path(over, err, "%s/bundle", s->dir);
    if (r == 0)
        r = st_targets_check(over, err);
    return r < 0 ? r : open_tmp(root, s->plan.root_uid, err);
}

static _Noreturn void become_runtime(const shim *s, int out, int err_fd, int word)
{
    char bundle[PATH_MAX], pid_file[PATH_MAX], log[PATH_MAX];
    char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    char *env[] = {path, NULL};
    sigset_t none;

    if (st_os_path(bundle, NULL, "%s/bundle", s->dir) != 0 ||
        st_os_path(pid_file, NULL, "%s/init.pid", s->dir) != 0 ||
        st_os_path(log, NULL, "%s/runtime.log", s->dir) != 0)
        _exit(127);
    const char *argv[] = {s->plan.runtime,  "--root",   s->plan.runtime_root,
                          "--log",          log,        "--log-format",
                          "json",           "run",      "--detach",
                          "--preserve-fds", "1",        "--pid-file",
                          pid_file,         "--bundle", bundle,
                          s->plan.name,     NULL};

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(out, 1);
    dup2(err_fd, 2);
    dup2(word, ST_INIT_FD);
    close_range(ST_INIT_FD + 1, ~0U, 0);
    execve(argv[0], (char *const *)(uintptr_t)argv, env);
    _exit(127);
}

static int start_runtime(shim *s, st_err *err)
{
    int out[2], errs[2], word[2];

    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(errs, O_CLOEXEC) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, word) != 0)
        return st_fail(err, ST_EIO, "cannot make a pipe: %s", strerror(errno));
    s->runtime = fork();
    if (s->runtime == 0)
        become_runtime(s, out[1], s->plan.merge_output ? out[1] : errs[1], word[1]);
    close(out[1]);
    close(errs[1]);
    close(word[1]);
    s->out = out[0];
    s->err = errs[0];
    s->word = word[0];
    if (s->runtime < 0)
        return st_fail(err, ST_EIO, "cannot fork: %s", strerror(errno));
    return 0;
}

/* The last complaint in the runtime's log, which has one JSON object a line; false: there is none. */
static bool runtime_complaint(const shim *s, char ret[ST_RUN_TEXT_MAX])
{
    char path[PATH_MAX], text[8192];
    char *line = text;
    bool said = false;

    snprintf(ret, ST_RUN_TEXT_MAX, "the runtime gave no reason");
    if (st_os_path(path, NULL, "%s/runtime.log", s->dir) != 0 ||
        st_os_peek(path, text, sizeof(text)) <= 0)
        return false;
    while (line && *line) {
        char *end = strchr(line, '\n');

        if (end)
            *end++ = '\0';
        ST_CLEANUP(st_os_jsonp) json_t *entry = json_loads(line, 0, NULL);
        const char *msg = json_string_value(json_object_get(entry, "msg"));

        if (msg)
            snprintf(ret, ST_RUN_TEXT_MAX, "%s", msg);
        said = said || msg;
        line = end;
    }
    return said;
}

/* Words of the kernel's that a runtime passes on when the node has run out of something. What is wrong
 * with an image or a folder is the job's. */
static bool is_node_fault(const char *text)
{
    static const char *const words[] = {
        "no space left on device",          "cannot allocate memory", "too many open files",
        "resource temporarily unavailable", "input/output error",     "quota exceeded"};

    for (size_t i = 0; i < ST_ARRAY_LEN(words); i++)
        if (strcasestr(text, words[i]))
            return true;
    return false;
}

/* On a full disk the task runs on, and the record follows when there is room. */
static void note_live(shim *s)
{
    s->live_due = st_live_write(s->dir, &s->task, NULL) != 0;
}

/* ---- while it runs ---------------------------------------------------------------------- */

static void signal_init(const shim *s, int sig)
{
    if (s->task.init_pid > 0 && !s->ended)
        kill(s->task.init_pid, sig); /* our own child, not yet reaped: the pid is still its */
}

/* Its limit may be moved while it runs, either way, and stands still while it is paused. */
static bool has_more_time(shim *s)
{
    int64_t deadline, now = st_os_mono_ms(), left = LIMIT_LOOK_MS;
    bool moved = st_deadline_read(s->dir, &deadline);

    if (moved && deadline == 0)
        left = HELD_LOOK_MS;
    else if (moved || s->limit_ms > 0)
        left = ST_MIN(left, (moved ? deadline : s->limit_ms) - now);
    if (left <= 0)
        return false;
    arm(s, FOR_LIMIT, left);
    return true;
}

static void on_time(shim *s)
{
    uint64_t times;

    if (read(s->timer, &times, sizeof(times)) < 0)
        return;
    switch (s->use) {
    case FOR_START:
        s->start_late = true;
        if (s->runtime > 0)
            kill(s->runtime, SIGKILL);
        arm(s, FOR_KILL, 0);
        break;
    case FOR_LIMIT:
        if (has_more_time(s))
            break;
        s->over_time = true;
        signal_init(s, s->plan.signal ? s->plan.signal : SIGTERM);
        arm(s, FOR_GRACE, s->plan.grace_ms);
        break;
    case FOR_GRACE:
    case FOR_KILL:
        st_cg_kill(&s->cg, s->plan.cgroup, false);
        arm(s, FOR_KILL, KILL_AGAIN_MS);
        break;
    }
}

/* All that is left to run is the job's command, on its own time from here on. Without the limit it is not let go:
 * stint-init ends when we hang up. */
static void on_ready(shim *s)
{
    char go = 1;

    if (s->plan.cpu_m > 0 && !st_cg_cpu_limit(&s->cg, s->plan.cgroup, s->plan.cpu_m)) {
        s->task.why = ST_RUN_WHY_START;
        s->task.node_fault = true;
        snprintf(s->task.text, sizeof(s->task.text), "its CPU limit cannot be set: %s",
                 strerror(errno));
        st_os_closep(&s->word);
    } else if (write(s->word, &go, 1) != 1) {
        st_os_closep(&s->word); /* it is dead */
    }
}

static void on_word(shim *s)
{
    st_init_word word;
    ssize_t n = read(s->word, &word, sizeof(word));

    if (n != (ssize_t)sizeof(word)) {
        st_os_closep(&s->word);
        return;
    }
    switch (word.kind) {
    case ST_INIT_READY:
        on_ready(s);
        break;
    case ST_INIT_STARTED:
        if (s->task.started_us)
            break;
        s->task.started_us = word.time_us;
        s->task.started_boot_ms = word.boot_ms;
        if (s->plan.time_limit_ms > 0) {
            s->task.deadline_ms = word.time_us / 1000 + s->plan.time_limit_ms;
            s->limit_ms = st_os_mono_ms() + s->plan.time_limit_ms;
        }
        (void)has_more_time(s);
        if (s->task.init_pid > 0)
            note_live(s);
        break;
    case ST_INIT_NO_EXEC:
        s->task.why = ST_RUN_WHY_START;
        if (word.value == ENOENT)
            snprintf(s->task.text, sizeof(s->task.text),
                     "command not found, or the interpreter it names");
        else
            snprintf(s->task.text, sizeof(s->task.text), "the command cannot be executed: %s",
                     strerror(word.value));
        break;
    case ST_INIT_EXITED:
        s->task.status = WIFEXITED(word.value) ? WEXITSTATUS(word.value) : -1;
        s->task.signal = WIFSIGNALED(word.value) ? WTERMSIG(word.value) : 0;
        s->task.ended_ms = word.time_us / 1000;
        s->task.ended_boot_ms = word.boot_ms;
        break;
    default:
        break;
    }
}

/* False at the end of the stream. */
static bool on_output(shim *s, int *fd, st_log *log)
{
    ssize_t n = read(*fd, s->buf, sizeof(s->buf));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (n <= 0) {
        st_os_closep(fd);
        return false;
    }
    st_log_add(log, s->buf, (size_t)n);
    return true;
}

static void on_runtime_end(shim *s, int status)
{
    char path[PATH_MAX], text[32], reason[ST_RUN_TEXT_MAX];

    s->runtime = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        s->task.why = ST_RUN_WHY_START;
        s->task.node_fault = true; /* unless it says what is wrong with the task */
        if (s->start_late)
            snprintf(s->task.text, sizeof(s->task.text), "the runtime did not finish in %d s",
                     START_TIMEOUT_MS / 1000);
        else if (status == NO_RUNTIME)
            snprintf(s->task.text, sizeof(s->task.text), "the runtime %.200s cannot be executed",
                     s->plan.runtime);
        else if (WIFSIGNALED(status))
            snprintf(s->task.text, sizeof(s->task.text), "the runtime was killed by signal %d",
                     WTERMSIG(status));
        else if (runtime_complaint(s, s->task.text))
            s->task.node_fault = is_node_fault(s->task.text);
        s->task.status = -1;
        s->ended = true;
        return;
    }
    if (st_os_path(path, NULL, "%s/init.pid", s->dir) == 0 &&
        st_os_peek(path, text, sizeof(text)) > 0)
        s->task.init_pid = atoi(text);
    note_live(s);
    if (st_kill_read(s->dir, reason)) /* asked for before there was anything to kill */
        st_cg_kill(&s->cg, s->plan.cgroup, false);
}

static void ended_now(shim *s)
{
    s->task.ended_ms = st_os_now_ms();
    s->task.ended_boot_ms = st_os_mono_ms();
}

static void on_init_end(shim *s, int status)
{
    s->ended = true;
    if (s->task.ended_ms)
        return; /* told by stint-init */
    ended_now(s);
    s->task.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    s->task.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void on_children(shim *s)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;

    while (read(s->signals, &info, sizeof(info)) > 0)
        ;
    /* First the runtime alone: until it has ended we do not know whose pid is whose. */
    if (s->runtime > 0 && waitpid(s->runtime, &status, WNOHANG) == s->runtime)
        on_runtime_end(s, status);
    while (s->runtime == 0 && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != s->task.init_pid)
            continue;
        while (s->word >= 0) /* what it said last is in the pipe */
            on_word(s);
        on_init_end(s, status);
    }
}

static void watch(shim *s)
{
    while (!s->ended) {
        struct pollfd fds[] = {
            {.fd = s->signals, .events = POLLIN}, {.fd = s->timer, .events = POLLIN},
            {.fd = s->word, .events = POLLIN},    {.fd = s->out, .events = POLLIN},
            {.fd = s->err, .events = POLLIN},     {.fd = s->lease, .events = POLLIN}};

        int ready = poll(fds, ST_ARRAY_LEN(fds), s->live_due ? LIVE_AGAIN_MS : -1);

        if (s->live_due)
            note_live(s);
        if (ready <= 0)
            continue;
        if (fds[1].revents)
            on_time(s);
        if (fds[2].revents)
            on_word(s);
        if (fds[3].revents)
            on_output(s, &s->out, &s->log_out);
        if (fds[4].revents)
            on_output(s, &s->err, &s->log_err);
        if (fds[5].revents)
            on_lease(s);
        if (fds[0].revents)
            on_children(s);
    }
}

/* ---- the end ---------------------------------------------------------------------------- */

/* Takes what is left in the pipes. Somebody outside may hold an end; we do not wait for them. */
static void drain(shim *s)
{
    int64_t until = st_os_mono_ms() + DRAIN_MS;

    while (s->out >= 0 || s->err >= 0) {
        struct pollfd fds[] = {{.fd = s->out, .events = POLLIN}, {.fd = s->err, .events = POLLIN}};
        int64_t left = until - st_os_mono_ms();

        if (left <= 0 || poll(fds, ST_ARRAY_LEN(fds), (int)left) <= 0)
            return;
        if (fds[0].revents)
            on_output(s, &s->out, &s->log_out);
        if (fds[1].revents)
            on_output(s, &s->err, &s->log_err);
    }
}

/* Killed when the lease was over: it was for that, even if a full disk took no word of it. */
static bool lease_killed(const shim *s)
{
    st_run_lease now = st_run_lease_load(s->plan.lease);

    return s->task.signal == SIGKILL && !now.keep && now.end_ms > 0 &&
           s->task.ended_boot_ms > now.end_ms;
}

/* Why it ended, from the strongest reason to the weakest. */
static void find_why(shim *s)
{
    st_run_task *t = &s->task;
    char reason[ST_RUN_TEXT_MAX];

    t->oom = st_cg_oom_kills(&s->cg, s->plan.cgroup) > 0;
    if (t->why == ST_RUN_WHY_START && !st_kill_read(s->dir, reason))
        return;
    if (st_kill_read(s->dir, reason)) {
        t->why = ST_RUN_WHY_KILLED;
        snprintf(t->text, sizeof(t->text), "%s", reason);
    } else if (lease_killed(s)) {
        t->why = ST_RUN_WHY_KILLED;
        snprintf(t->text, sizeof(t->text), "%s", ST_RUN_LEASE_REASON);
    } else if (s->over_time && st_deadline_read(s->dir, &(int64_t){0})) {
        t->why = ST_RUN_WHY_TIME;
        snprintf(t->text, sizeof(t->text), "ran longer than its time limit as it was set last");
    } else if (s->over_time) {
        t->why = ST_RUN_WHY_TIME;
        snprintf(t->text, sizeof(t->text), "ran longer than its limit of %lld s",
                 (long long)(s->plan.time_limit_ms / 1000));
    } else if (t->oom && t->status != 0) {
        t->why = ST_RUN_WHY_OOM;
        snprintf(t->text, sizeof(t->text), "needed more memory than its limit");
    }
}

/* A container that was made, and of which nobody is left, is for the runtime a folder and empty groups. It is not
 * started once more for that. */
static bool forget_container(const shim *s)
{
    char path[PATH_MAX];

    return s->task.gone && s->task.why != ST_RUN_WHY_START && s->task.init_pid > 0 &&
           st_os_path(path, NULL, "%s/%s", s->plan.runtime_root, s->plan.name) == 0 &&
           st_os_remove_tree(path, NULL) == 0;
}

static void clean_up(shim *s)
{
    const char *argv[] = {s->plan.runtime, "--root", s->plan.runtime_root, "delete", "--force",
                          s->plan.name,    NULL};
    char said[256];

    if (!forget_container(s))
        (void)st_os_run(argv, said, sizeof(said));
    st_cg_remove(&s->cg, s->plan.cgroup);
}

static void finish(shim *s)
{
    if (!s->task.ended_ms)
        ended_now(s);
    s->task.gone = st_cg_kill_wait(&s->cg, s->plan.cgroup, GONE_TIMEOUT_MS) == 0;
    drain(s);
    find_why(s);
    s->task.log_lost = s->log_out.lost + s->log_err.lost;
    st_log_done(&s->log_out);
    st_log_done(&s->log_err);
    /* A full disk must not swallow how a task ended: give up what was set aside for this, and if
     * somebody else takes that, wait for room. */
    while (st_exit_write(s->dir, &s->task, NULL) != 0 && access(s->dir, F_OK) == 0) {
        if (st_reserve_give(s->dir) != 0)
            st_os_sleep_ms(1000);
    }
    clean_up(s);
}

/* Out of the starter's session, with nothing of it but the lock. */
static void leave_parent(void)
{
    sigset_t all;

    /* What is meant for its starter's group, or for another process that had its pid, is not for it. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    if (fork() != 0)
        _exit(0);
    int null = open("/dev/null", O_RDWR);

    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    fcntl(ST_SHIM_LOCK_FD, F_SETFD, FD_CLOEXEC);
    fcntl(ST_SHIM_PRIVATE_FD, F_SETFD, FD_CLOEXEC);
    close_range(ST_SHIM_PRIVATE_FD + 1, ~0U, 0);
    if (chdir("/") != 0)
        _exit(1);
    umask(022); /* what the runtime makes must be seen from inside; our own files say their mode */
    (void)st_os_poke("/proc/self/oom_score_adj", "-900");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static int open_ends(shim *s, st_err *err)
{
    char path[PATH_MAX];
    sigset_t all;
    int r;

    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    s->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    s->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    s->lease = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (s->signals < 0 || s->timer < 0 || s->lease < 0)
        return st_fail(err, ST_EIO, "cannot make a descriptor: %s", strerror(errno));
    if ((r = st_os_path(path, err, "%s/logs/out", s->dir)) != 0 ||
        (r = st_log_init(&s->log_out, path, s->plan.log_bytes, err)) != 0 ||
        (r = st_os_path(path, err, "%s/logs/err", s->dir)) != 0)
        return r;
    return st_log_init(&s->log_err, path, s->plan.log_bytes, err);
}

int st_shim_main(const char *dir)
{
    ST_CLEANUP(st_freep) shim *s = st_xcalloc(1, sizeof(*s));
    st_err err = {0};

    leave_parent();
    s->dir = dir;
    s->signals = s->timer = s->lease = s->image = s->out = s->err = s->word = -1;
    s->log_out.fd = s->log_err.fd = -1;
    if (st_plan_read(dir, &s->plan, &err) != 0)
        return 1;
    st_cg_find(&s->cg);
    s->task.shim_pid = getpid();
    /* What no disk may hold first: nothing of it is open while others read the image. */
    if (open_ends(s, &err) == 0 && mount_private(s, &err) == 0 && ready_image(s, &err) == 0 &&
        mount_root(s, &err) == 0 && start_runtime(s, &err) == 0) {
        arm(s, FOR_START, START_TIMEOUT_MS);
        arm_lease(s);
        watch(s);
    } else {
        s->task.why = ST_RUN_WHY_START;
        s->task.status = -1;
        s->task.node_fault = st_run_node_fault(&err);
        snprintf(s->task.text, sizeof(s->task.text), "%.*s", ST_RUN_TEXT_MAX - 1, err.msg);
    }
    finish(s);
    return 0;
}
