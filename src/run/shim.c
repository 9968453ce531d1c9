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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/console.h"
#include "run/init.h"
#include "run/os.h"
#include "run/shim_state.h"

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
#define ATTACHED_MS      3000 /* for who watches to hear of the end */

static void arm(st_shim *s, timer_use use, int64_t ms)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 + (ms == 0)}};

    s->use = use;
    timerfd_settime(s->timer, 0, &when, NULL);
}

/* ---- the lease -------------------------------------------------------------------------- */

/* When to look at the lease: a little after its end, for the agent comes first, and its watchdog. */
static void arm_lease(st_shim *s)
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
static void on_lease(st_shim *s)
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

/* What is typed goes to the job from now on. */
static void join_input(st_shim *s)
{
    if (s->console >= 0) {
        s->out = st_console_take(s->console);
        st_os_closep(&s->console);
        if (s->out >= 0)
            s->in = fcntl(s->out, F_DUPFD_CLOEXEC, 0);
    }
    if (s->attach) {
        st_attach_input(s->attach, s->in, s->plan.terminal);
        s->in = -1;
    }
}

/* The last complaint in the runtime's log, which has one JSON object a line; false: there is none. */
static bool runtime_complaint(const st_shim *s, char ret[ST_RUN_TEXT_MAX])
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
static void note_live(st_shim *s)
{
    s->live_due = st_live_write(s->dir, &s->task, NULL) != 0;
}

/* ---- while it runs ---------------------------------------------------------------------- */

static void signal_init(const st_shim *s, int sig)
{
    if (s->task.init_pid > 0 && !s->ended)
        kill(s->task.init_pid, sig); /* our own child, not yet reaped: the pid is still its */
}

/* Its limit may be moved while it runs, either way, and stands still while it is paused. */
static bool has_more_time(st_shim *s)
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

static void on_time(st_shim *s)
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
static void on_ready(st_shim *s)
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

static void on_word(st_shim *s)
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
static bool on_output(st_shim *s, int *fd, st_log *log)
{
    ssize_t n = read(*fd, s->buf, sizeof(s->buf));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (n <= 0) {
        st_os_closep(fd);
        return false;
    }
    int64_t at = st_log_end(log);

    st_log_add(log, s->buf, (size_t)n);
    if (s->attach && log == &s->log_out)
        st_attach_output(s->attach, at, s->buf, (size_t)n);
    return true;
}

static void on_runtime_end(st_shim *s, int status)
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
    join_input(s);
    note_live(s);
    if (st_kill_read(s->dir, reason)) /* asked for before there was anything to kill */
        st_cg_kill(&s->cg, s->plan.cgroup, false);
}

static void ended_now(st_shim *s)
{
    s->task.ended_ms = st_os_now_ms();
    s->task.ended_boot_ms = st_os_mono_ms();
}

static void on_init_end(st_shim *s, int status)
{
    s->ended = true;
    if (s->task.ended_ms)
        return; /* told by stint-init */
    ended_now(s);
    s->task.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    s->task.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void on_children(st_shim *s)
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

static void watch(st_shim *s)
{
    while (!s->ended) {
        struct pollfd fds[] = {{.fd = s->signals, .events = POLLIN},
                               {.fd = s->timer, .events = POLLIN},
                               {.fd = s->word, .events = POLLIN},
                               {.fd = s->out, .events = POLLIN},
                               {.fd = s->err, .events = POLLIN},
                               {.fd = s->lease, .events = POLLIN},
                               {.fd = s->attach ? st_attach_fd(s->attach) : -1, .events = POLLIN}};

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
        if (fds[6].revents)
            st_attach_turn(s->attach);
        if (fds[0].revents)
            on_children(s);
    }
}

/* ---- the end ---------------------------------------------------------------------------- */

/* Takes what is left in the pipes. Somebody outside may hold an end; we do not wait for them. */
static void drain(st_shim *s)
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
static bool lease_killed(const st_shim *s)
{
    st_run_lease now = st_run_lease_load(s->plan.lease);

    return s->task.signal == SIGKILL && !now.keep && now.end_ms > 0 &&
           s->task.ended_boot_ms > now.end_ms;
}

/* Why it ended, from the strongest reason to the weakest. */
static void find_why(st_shim *s)
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
static bool forget_container(const st_shim *s)
{
    char path[PATH_MAX];

    return s->task.gone && s->task.why != ST_RUN_WHY_START && s->task.init_pid > 0 &&
           st_os_path(path, NULL, "%s/%s", s->plan.runtime_root, s->plan.name) == 0 &&
           st_os_remove_tree(path, NULL) == 0;
}

static void clean_up(st_shim *s)
{
    const char *argv[] = {s->plan.runtime, "--root", s->plan.runtime_root, "delete", "--force",
                          s->plan.name,    NULL};
    char said[256];

    if (!forget_container(s))
        (void)st_os_run(argv, said, sizeof(said));
    st_cg_remove(&s->cg, s->plan.cgroup);
}

static void finish(st_shim *s)
{
    if (!s->task.ended_ms)
        ended_now(s);
    s->task.gone = st_cg_kill_wait(&s->cg, s->plan.cgroup, GONE_TIMEOUT_MS) == 0;
    drain(s);
    find_why(s);
    s->task.log_lost = s->log_out.lost + s->log_err.lost;
    st_log_done(&s->log_out); /* its end is still known */
    st_log_done(&s->log_err);
    /* A full disk must not swallow how a task ended: give up what was set aside for this, and if
     * somebody else takes that, wait for room. */
    while (st_exit_write(s->dir, &s->task, NULL) != 0 && access(s->dir, F_OK) == 0) {
        if (st_reserve_give(s->dir) != 0)
            st_os_sleep_ms(1000);
    }
    clean_up(s);
    /* Last: nobody waits for who watches. */
    if (s->attach)
        st_attach_end(s->attach, s->task.status, s->task.signal, ATTACHED_MS);
}

/* Out of the starter's session, with nothing of it but the lock. */
static void leave_parent(void)
{
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

static void on_typed_signal(void *ctx, int sig)
{
    const st_shim *s = ctx;

    if (s->task.started_us > 0) /* before that process 1 has no ear for it */
        signal_init(s, sig);
}

static int open_ends(st_shim *s, st_err *err)
{
    char path[PATH_MAX];
    sigset_t all;
    int r;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
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
    s->attach = st_attach_new(
        &(st_attach_job){.dir = s->dir, .log = &s->log_out, .signal = on_typed_signal, .ctx = s});
    return st_log_init(&s->log_err, path, s->plan.log_bytes, err);
}

int st_shim_main(const char *dir)
{
    ST_CLEANUP(st_freep) st_shim *s = st_xcalloc(1, sizeof(*s));
    st_err err = {0};

    leave_parent();
    s->dir = dir;
    s->signals = s->timer = s->lease = s->image = s->out = s->err = s->word = -1;
    s->in = s->console = -1;
    s->log_out.fd = s->log_err.fd = -1;
    if (st_plan_read(dir, &s->plan, &err) != 0)
        return 1;
    st_cg_find(&s->cg);
    s->task.shim_pid = getpid();
    if (open_ends(s, &err) == 0 && st_shim_start(s, &err) == 0) {
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
    st_attach_free(s->attach);
    return 0;
}
