/* See child.h. */
#include "stintd/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MS 50 /* between two looks at the program */

typedef struct running {
    pid_t pid;
    int in, out; /* ends of ours; -1: closed */
} running;

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int spawn(const st_child *c, int in, int out, pid_t *ret)
{
    static const char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
    ST_CLEANUP(st_strbuf_done) st_strbuf home = {0};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none;
    int r;

    if (c->home)
        st_strbuf_addf(&home, "HOME=%s", c->home);
    const char *env[] = {path, c->home ? st_strbuf_str(&home) : NULL, NULL};

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    if (c->complains)
        posix_spawn_file_actions_adddup2(&files, out, 2);
    else
        posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addchdir_np(&files, "/");
    posix_spawnattr_init(&attr);
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    r = posix_spawn(ret, c->argv[0], &files, &attr, (char *const *)(uintptr_t)c->argv,
                    (char *const *)(uintptr_t)env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    errno = r;
    return r;
}

/* In a group of its own, with nothing of ours open. */
static int start(const st_child *c, running *ret)
{
    int in[2], out[2], r;

    if (pipe2(in, O_CLOEXEC) < 0)
        return -1;
    if (pipe2(out, O_CLOEXEC) < 0) {
        close(in[0]);
        close(in[1]);
        return -1;
    }
    r = spawn(c, in[0], out[1], &ret->pid);
    close(in[0]);
    close(out[1]);
    ret->in = in[1];
    ret->out = out[0];
    if (r == 0) {
        if (c->file_bytes > 0)
            (void)prlimit(ret->pid, RLIMIT_FSIZE,
                          &(struct rlimit){(rlim_t)c->file_bytes, (rlim_t)c->file_bytes}, NULL);
        return 0;
    }
    close_end(&ret->in);
    close_end(&ret->out);
    errno = r;
    return -1;
}

/* One that does not read what it is told is not waited for; SIGPIPE is ignored by all of stintd. */
static void feed(running *p, const char *text, size_t *at)
{
    size_t left = strlen(text) - *at;
    ssize_t n = p->in >= 0 && left > 0 ? write(p->in, text + *at, left) : 0;

    if (n > 0)
        *at += (size_t)n;
    if (!text[*at] || (n < 0 && errno != EAGAIN))
        close_end(&p->in);
}

static void drain(running *p, st_strbuf *out)
{
    char buf[4096];
    ssize_t n = 0;

    while (p->out >= 0 && (n = read(p->out, buf, sizeof buf)) > 0)
        if (out->n + (size_t)n <= ST_CHILD_ANSWER_MAX)
            st_strbuf_addn(out, buf, (size_t)n);
    if (n == 0)
        close_end(&p->out);
}

static int wait_for(const st_child *c, running *p, st_strbuf *out)
{
    int64_t until = now_ms() + c->timeout_ms;
    const char *input = c->input ? c->input : "";
    size_t at = 0;
    int status = 0;

    fcntl(p->in, F_SETFL, O_NONBLOCK);
    fcntl(p->out, F_SETFL, O_NONBLOCK);
    while (waitpid(p->pid, &status, WNOHANG) == 0) {
        struct pollfd fds[] = {{.fd = p->out, .events = POLLIN}, {.fd = p->in, .events = POLLOUT}};

        if (now_ms() >= until || (c->ends && c->ends(c->ctx))) {
            kill(-p->pid, SIGKILL);
            waitpid(p->pid, &status, 0);
            return -1;
        }
        feed(p, input, &at);
        drain(p, out);
        poll(fds, p->in >= 0 ? 2 : 1, SLICE_MS);
    }
    kill(-p->pid, SIGKILL); /* what it has left behind */
    drain(p, out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int st_child_run(const st_child *c, st_strbuf *out)
{
    running p = {.in = -1, .out = -1};
    int status;

    if (start(c, &p) < 0)
        return -2;
    status = wait_for(c, &p, out);
    close_end(&p.in);
    close_end(&p.out);
    return status;
}
