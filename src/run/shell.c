/*
 * Commands beside a job's own (run/shell.h).
 */
#include "run/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/console.h"
#include "run/os.h"
#include "run/rights.h"
#include "run/state.h"
#include "tunnel/frame.h"

#define START_MS 20000
#define HELD_MAX 65536
#define HANG_MS  2000 /* between hanging up and the kill */
#define DRAIN_MS 1000

typedef struct shell {
    st_plan plan;
    json_t *spec;
    bool tty;
    int sock, signals;
    int in, out, err; /* ours of the command's streams; of a terminal `out` is all three */
    pid_t runtime, command;
    int status;       /* of the command, as wait() has it */
    bool ended, left; /* the command has; whoever asked for it has gone */
    bool in_ended;    /* nothing more comes for it */
    st_strbuf heard, to_in, to_sock;
    char buf[ST_FRAME_MAX];
} shell;

/* ---- what is run ------------------------------------------------------------------------------------ */

static void set_env(json_t *env, const char *name, const char *value)
{
    json_t *text = json_sprintf("%s=%s", name, value);
    const json_t *item;
    size_t i, n = strlen(name);

    json_array_foreach(env, i, item)
    {
        const char *old = json_string_value(item);

        if (old && strncmp(old, name, n) == 0 && old[n] == '=') {
            json_array_set_new(env, i, text);
            return;
        }
    }
    json_array_append_new(env, text);
}

/* The task's own process, with another command. */
static int write_process(const shell *s, const char *dir, st_err *err)
{
    const json_t *command = json_object_get(s->spec, "command"), *word;
    const char *term = json_string_value(json_object_get(s->spec, "term"));
    ST_CLEANUP(st_os_jsonp) json_t *config = NULL;
    json_t *process, *args = json_pack("[s, s, s]", "/run/stint/init", "--enter", "--");
    char path[PATH_MAX];
    size_t i;
    int r = st_os_path(path, err, "%s/bundle/config.json", dir);

    if (r == 0)
        r = st_os_read_json(path, &config, err);
    process = json_object_get(config, "process");
    json_array_foreach(command, i, word) json_array_append(args, (json_t *)(uintptr_t)word);
    if (r == 0 && !json_is_object(process))
        r = st_fail(err, ST_ECORRUPT, "the task's container has no description");
    if (r == 0) {
        json_object_set(process, "args", args);
        json_object_set_new(process, "terminal", json_boolean(s->tty));
        if (s->tty) {
            json_object_set_new(process, "consoleSize",
                                json_pack("{s:I, s:I}", "height",
                                          json_integer_value(json_object_get(s->spec, "rows")),
                                          "width",
                                          json_integer_value(json_object_get(s->spec, "cols"))));
            set_env(json_object_get(process, "env"), "TERM", term ? term : "xterm");
        }
        r = st_os_write_json("process.json", process, err);
    }
    json_decref(args);
    return r;
}

static _Noreturn void become_runtime(const shell *s, const int streams[3])
{
    const char *argv[20] = {s->plan.runtime, "--root", s->plan.runtime_root,
                            "--log",         "log",    "--log-format",
                            "json",          "exec",   "--detach"};
    char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    char *env[] = {path, NULL};
    sigset_t none;
    size_t n = 9;

    argv[n++] = "--pid-file";
    argv[n++] = "pid";
    argv[n++] = "--process";
    argv[n++] = "process.json";
    if (s->tty) {
        argv[n++] = "--console-socket";
        argv[n++] = ST_CONSOLE;
    }
    argv[n++] = s->plan.name;
    argv[n] = NULL;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 0; i < 3; i++)
        if (streams[i] >= 0)
            dup2(streams[i], i);
    close_range(3, ~0U, 0);
    execve(argv[0], (char *const *)(uintptr_t)argv, env);
    _exit(127);
}

/* What the runtime said last; it is about the container, not about the node. */
static int runtime_failed(st_err *err)
{
    char text[4096], *last = text, *next;

    if (st_os_peek("log", text, sizeof text) > 0) {
        while ((next = strchr(last, '\n')) && next[1])
            last = next + 1;
        ST_CLEANUP(st_os_jsonp) json_t *entry = json_loads(last, JSON_DISABLE_EOF_CHECK, NULL);
        const char *msg = json_string_value(json_object_get(entry, "msg"));

        if (msg)
            return st_fail(err, ST_ESTATE, "the command cannot be started in there: %.200s", msg);
    }
    return st_fail(err, ST_ESTATE, "the command cannot be started in there; has the task ended?");
}

/* Waits for the runtime; the command is then our child. */
static int wait_runtime(shell *s, st_err *err)
{
    int64_t until = st_os_mono_ms() + START_MS;
    struct pollfd p = {.fd = s->signals, .events = POLLIN};
    struct signalfd_siginfo info;
    char text[32];
    int status = 0;
    pid_t pid = 0;

    while (pid == 0) {
        pid = waitpid(s->runtime, &status, WNOHANG);
        if (pid == 0 && st_os_mono_ms() >= until) {
            kill(s->runtime, SIGKILL);
            (void)waitpid(s->runtime, &status, 0);
            return st_fail(err, ST_EDOWN, "the command did not start in %d s", START_MS / 1000);
        }
        if (pid == 0)
            poll(&p, 1, 100);
        while (read(s->signals, &info, sizeof info) > 0)
            ;
    }
    if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return runtime_failed(err);
    if (st_os_peek("pid", text, sizeof text) <= 0 || (s->command = atoi(text)) <= 1)
        return st_fail(err, ST_EIO, "the node does not know the command's process");
    return 0;
}

/* ---- streams ------------------------------------------------------------------------------------------ */

static void set_size(const shell *s, int rows, int cols)
{
    if (s->tty)
        st_console_size(s->out, rows, cols);
}

static int start_plain(shell *s, st_err *err)
{
    int in[2], out[2], errs[2];

    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(errs, O_CLOEXEC) != 0)
        return st_fail(err, ST_EIO, "cannot make a pipe: %s", strerror(errno));
    const int theirs[3] = {in[0], out[1], errs[1]};

    s->runtime = fork();
    if (s->runtime == 0)
        become_runtime(s, theirs);
    close(in[0]);
    close(out[1]);
    close(errs[1]);
    s->in = in[1];
    s->out = out[0];
    s->err = errs[0];
    fcntl(s->in, F_SETFL, O_NONBLOCK);
    return s->runtime > 0 ? wait_runtime(s, err) : st_fail(err, ST_EIO, "cannot fork");
}

static int start_tty(shell *s, st_err *err)
{
    ST_CLEANUP(st_os_closep) int listener = st_console_open(".", err);
    const int none[3] = {-1, -1, -1};
    int r;

    if (listener < 0)
        return listener;
    s->runtime = fork();
    if (s->runtime == 0)
        become_runtime(s, none);
    r = s->runtime > 0 ? wait_runtime(s, err) : st_fail(err, ST_EIO, "cannot fork");
    if (r < 0)
        return r;
    s->out = st_console_take(listener);
    if (s->out < 0)
        return st_fail(err, ST_EIO, "the runtime has sent no terminal");
    set_size(s, (int)json_integer_value(json_object_get(s->spec, "rows")),
             (int)json_integer_value(json_object_get(s->spec, "cols")));
    return 0;
}

/* ---- while it runs -------------------------------------------------------------------------------------- */

static void signal_command(const shell *s, int sig)
{
    if (s->command > 1 && !s->ended) { /* our child, not yet reaped: the number is still its */
        kill(-s->command, sig);
        kill(s->command, sig);
    }
}

static void on_children(shell *s)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;

    while (read(s->signals, &info, sizeof info) > 0)
        ;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == s->command) {
            s->ended = true;
            s->status = status;
        }
}

static void drop(st_strbuf *b, size_t n)
{
    memmove(b->s, b->s + n, b->n - n);
    b->n -= n;
}

static bool take_frame(shell *s, const st_frame *f)
{
    switch (f->kind) {
    case ST_FRAME_IN:
        if (!s->in_ended)
            st_strbuf_addn(&s->to_in, (const char *)f->bytes, f->n);
        return true;
    case ST_FRAME_IN_END:
        s->in_ended = true;
        if (s->tty)
            st_strbuf_addc(&s->to_in, 4); /* as if it was typed */
        return true;
    case ST_FRAME_SIZE:
        set_size(s, f->bytes[0] << 8 | f->bytes[1], f->bytes[2] << 8 | f->bytes[3]);
        return true;
    case ST_FRAME_SIGNAL:
        if (f->bytes[0] == 0 || f->bytes[0] > 31)
            return false;
        signal_command(s, f->bytes[0]);
        return true;
    default:
        return false;
    }
}

/* False: nothing more comes, or it makes no sense. */
static bool hear(shell *s)
{
    ssize_t n = recv(s->sock, s->buf, sizeof s->buf, MSG_DONTWAIT);
    size_t used = 0;
    st_frame f;
    int r;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n == 0)
        return false;
    st_strbuf_addn(&s->heard, s->buf, (size_t)n);
    while ((r = st_frame_read(s->heard.s, s->heard.n, false, &f, &used)) > 0) {
        if (!take_frame(s, &f))
            return false;
        drop(&s->heard, used);
    }
    return r == 0;
}

static void feed(shell *s)
{
    int fd = s->tty ? s->out : s->in;

    while (s->to_in.n > 0 && fd >= 0) {
        ssize_t n = write(fd, s->to_in.s, s->to_in.n);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) { /* it reads no more */
            s->to_in.n = 0;
            s->in_ended = true;
            break;
        }
        drop(&s->to_in, (size_t)n);
    }
    if (s->in_ended && s->to_in.n == 0 && !s->tty)
        st_os_closep(&s->in);
}

static void say(shell *s)
{
    while (s->to_sock.n > 0) {
        ssize_t n = send(s->sock, s->to_sock.s, s->to_sock.n, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            s->left = true;
            s->to_sock.n = 0;
            return;
        }
        drop(&s->to_sock, (size_t)n);
    }
}

static void take_output(shell *s, int *fd, st_frame_kind kind)
{
    ssize_t n = read(*fd, s->buf, sizeof s->buf);

    if (n > 0 && !s->left)
        st_frame_add(&s->to_sock, kind, s->buf, (size_t)n);
    if (n == 0 ||
        (n < 0 && errno != EAGAIN && errno != EINTR)) /* a terminal without users says EIO */
        st_os_closep(fd);
}

static void turn(shell *s, int timeout_ms)
{
    bool room = s->to_sock.n < HELD_MAX;
    struct pollfd fds[] = {
        {.fd = s->signals, .events = POLLIN},
        {.fd = s->left ? -1 : s->sock,
         .events =
             (short)((s->to_in.n < HELD_MAX ? POLLIN : 0) | (s->to_sock.n > 0 ? POLLOUT : 0))},
        {.fd = room ? s->out : -1, .events = POLLIN},
        {.fd = room ? s->err : -1, .events = POLLIN},
        {.fd = s->to_in.n > 0 ? (s->tty ? s->out : s->in) : -1, .events = POLLOUT},
    };

    if (poll(fds, ST_ARRAY_LEN(fds), timeout_ms) <= 0)
        return;
    if (fds[0].revents)
        on_children(s);
    if (fds[2].revents)
        take_output(s, &s->out, ST_FRAME_OUT);
    if (fds[3].revents)
        take_output(s, &s->err, ST_FRAME_ERR);
    if ((fds[1].revents & POLLIN) ? !hear(s) : (fds[1].revents & (POLLHUP | POLLERR)) != 0)
        s->left = true;
    feed(s);
    say(s);
}

/* Whoever asked for it has gone: it is hung up on, and does not stay. */
static void hang_up(shell *s)
{
    int64_t until = st_os_mono_ms() + HANG_MS;

    signal_command(s, SIGHUP);
    signal_command(s, SIGCONT);
    if (s->tty)
        st_os_closep(&s->out);
    st_os_closep(&s->in);
    while (!s->ended && st_os_mono_ms() < until)
        turn(s, 100);
    signal_command(s, SIGKILL);
    for (int i = 0; i < 20 && !s->ended; i++)
        turn(s, 100);
}

static void finish(shell *s)
{
    int64_t until = st_os_mono_ms() + DRAIN_MS;
    unsigned char how[2];

    /* What it left running may hold its streams. */
    while ((s->out >= 0 || s->err >= 0) && !s->left && st_os_mono_ms() < until)
        turn(s, 50);
    how[0] = (unsigned char)(WIFEXITED(s->status) ? WEXITSTATUS(s->status) : 0);
    how[1] = (unsigned char)(WIFSIGNALED(s->status) ? WTERMSIG(s->status) : 0);
    st_frame_add(&s->to_sock, ST_FRAME_EXIT, how, sizeof how);
    st_os_closep(&s->out);
    st_os_closep(&s->err);
    until = st_os_mono_ms() + 10 * DRAIN_MS;
    while (s->to_sock.n > 0 && !s->left && st_os_mono_ms() < until) {
        say(s);
        turn(s, 50);
    }
}

/* ---- the program ---------------------------------------------------------------------------------------- */

static int read_spec(shell *s, st_err *err)
{
    char text[131072];
    ssize_t n = pread(ST_SHELL_SPEC_FD, text, sizeof text, 0);

    close(ST_SHELL_SPEC_FD);
    s->spec = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
    s->tty = json_is_true(json_object_get(s->spec, "tty"));
    return json_array_size(json_object_get(s->spec, "command")) > 0
               ? 0
               : st_fail(err, ST_EINVAL, "there is no command");
}

/* A folder of our own in the task's, where names are short. */
static int open_folder(const char *dir, char ret[PATH_MAX], st_err *err)
{
    int r = st_os_path(ret, err, "%s/enter.XXXXXX", dir);

    if (r == 0 && (!mkdtemp(ret) || chdir(ret) != 0))
        r = st_fail(err, ST_EIO, "the node has no room for another command: %s", strerror(errno));
    return r;
}

static void fail_with(shell *s, const st_err *err)
{
    size_t n = strnlen(err->msg, 512);

    st_frame_add(&s->to_sock, ST_FRAME_FAIL, n ? err->msg : "?", n ? n : 1);
    for (int i = 0; i < 20 && s->to_sock.n > 0 && !s->left; i++) {
        say(s);
        turn(s, 50);
    }
}

/* Out of the starter's session; the starter does not wait. */
static void leave_parent(void)
{
    setsid();
    if (fork() != 0)
        _exit(0);
    int null = open("/dev/null", O_RDWR);

    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    fcntl(ST_SHELL_SOCKET_FD, F_SETFD, FD_CLOEXEC);
    fcntl(ST_SHELL_SPEC_FD, F_SETFD, FD_CLOEXEC);
    close_range(ST_SHELL_SPEC_FD + 1, ~0U, 0);
    umask(077);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_DUMPABLE, 0);
}

static int open_signals(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    return signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
}

int st_shell_main(const char *dir)
{
    ST_CLEANUP(st_freep) shell *s = st_xcalloc(1, sizeof *s);
    char own[PATH_MAX] = "";
    st_err err = {0};
    int r;

    leave_parent();
    s->sock = ST_SHELL_SOCKET_FD;
    s->in = s->out = s->err = -1;
    s->signals = open_signals();
    r = read_spec(s, &err);
    if (r == 0)
        r = st_plan_read(dir, &s->plan, &err);
    if (r == 0)
        r = open_folder(dir, own, &err);
    if (r == 0)
        r = write_process(s, dir, &err);
    if (r == 0)
        r = s->tty ? start_tty(s, &err) : start_plain(s, &err);
    if (own[0]) {
        if (chdir("/") != 0 && r == 0)
            r = st_fail(&err, ST_EIO, "the node cannot leave a folder");
        (void)st_os_remove_tree(own, NULL);
    }
    if (r == 0)
        r = st_rights_keep(ST_RIGHT(CAP_KILL), &err);
    if (r < 0) {
        signal_command(s, SIGKILL);
        fail_with(s, &err);
    } else {
        on_children(s);
        while (!s->ended && !s->left)
            turn(s, -1);
        if (s->left)
            hang_up(s);
        else
            finish(s);
    }
    json_decref(s->spec);
    st_strbuf_done(&s->heard);
    st_strbuf_done(&s->to_in);
    st_strbuf_done(&s->to_sock);
    return 0;
}
