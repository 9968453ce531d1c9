/*
 * Forked children with a time limit (agent/worker.h).
 */
#include "agent/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/files.h"
#include "base/mem.h"
#include "base/vec.h"

#define ABANDON_MS \
    5000 /* after its kill: it hangs in the kernel, and will die when it leaves that */
#define IDLE_MS 60000

/* What a child says, in one write. */
typedef struct answer {
    int r;
    st_err err;
} answer;

typedef struct worker {
    int id;
    pid_t pid;
    st_agent_watch watch;
    st_agent_work work;
    int64_t began_ms, until_ms;
    bool ready; /* its pipe has something, or its end */
    bool killed;
    bool abandoned; /* `done` was called; only its end is waited for */
} worker;

struct st_workers {
    st_poll *poll;
    int last_id;
    ST_VEC(worker *) at;
};

st_workers *st_workers_new(st_poll *poll)
{
    st_workers *w = st_xcalloc(1, sizeof *w);

    w->poll = poll;
    return w;
}

static void forget(st_workers *w, size_t i)
{
    worker *k = w->at.v[i];

    st_poll_remove(w->poll, &k->watch);
    close(k->watch.fd);
    free(k);
    st_vec_remove(&w->at, i);
}

void st_workers_free(st_workers *w)
{
    if (!w)
        return;
    while (w->at.n > 0) {
        kill(w->at.v[0]->pid, SIGKILL);
        if (!w->at.v[0]->abandoned)
            waitpid(w->at.v[0]->pid, NULL, 0);
        forget(w, 0);
    }
    st_vec_free(&w->at);
    free(w);
}

int st_workers_busy(const st_workers *w, int64_t young_ms)
{
    int64_t since = st_boot_ms() - young_ms;
    int n = 0;

    for (size_t i = 0; i < w->at.n; i++)
        n += !w->at.v[i]->abandoned && !w->at.v[i]->work.aside && w->at.v[i]->began_ms > since;
    return n;
}

static void on_ready(void *ctx, uint32_t events)
{
    (void)events;
    ((worker *)ctx)->ready = true;
}

/* In the child: it dies with the thread that asked, and has nothing of it but the pipe. */
static _Noreturn void be(const st_agent_work *work, int out, pid_t parent)
{
    answer a = {0};
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (out != 3)
        dup3(out, 3, O_CLOEXEC);
    close_range(4, ~0U, 0);
    a.r = work->fn(work->ctx, &a.err);
    while (write(3, &a, sizeof a) < 0 && errno == EINTR)
        ;
    _exit(0);
}

int st_worker_start(st_workers *w, const st_agent_work *work, int *ret_id, st_err *err)
{
    pid_t parent = getpid();
    int pipes[2];
    worker *k;
    pid_t pid;

    if (w->at.n >= ST_WORKERS_MAX)
        return st_fail(err, ST_EDOWN, "%d helpers hang and do not end", ST_WORKERS_MAX);
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return st_fail(err, ST_EDOWN, "a helper cannot be started: %s", strerror(errno));
    pid = fork();
    if (pid == 0)
        be(work, pipes[1], parent);
    close(pipes[1]);
    if (pid < 0) {
        close(pipes[0]);
        return st_fail(err, ST_EDOWN, "a helper cannot be started: %s", strerror(errno));
    }
    k = st_xcalloc(1, sizeof *k);
    *k = (worker){.id = ++w->last_id,
                  .pid = pid,
                  .work = *work,
                  .began_ms = st_boot_ms(),
                  .until_ms = st_boot_ms() + work->limit_ms,
                  .watch = {.fd = pipes[0], .ready = on_ready, .ctx = k}};
    st_vec_push(&w->at, k);
    st_poll_add(w->poll, &k->watch, EPOLLIN);
    *ret_id = k->id;
    return 0;
}

static void end(worker *k)
{
    if (k->killed)
        return;
    k->killed = true;
    kill(k->pid, SIGKILL);
    k->until_ms = st_boot_ms() + ABANDON_MS;
}

void st_worker_kill(st_workers *w, int id)
{
    for (size_t i = 0; i < w->at.n; i++)
        if (w->at.v[i]->id == id)
            end(w->at.v[i]);
}

static void tell(worker *k, int r, const st_err *err)
{
    if (!k->abandoned)
        k->work.done(k->work.done_ctx, &k->work.key, r, err);
}

static void tell_dead(worker *k)
{
    st_err err = {0};
    int r = k->killed
                ? st_fail(&err, ST_EDOWN, "%s did not come to an end in its time", k->work.what)
                : st_fail(&err, ST_EDOWN, "%s was killed by somebody", k->work.what);

    tell(k, r, &err);
}

/* True: it is over and gone from the list. What is called may start others, which come last. */
static bool finish(st_workers *w, size_t i)
{
    worker *k = w->at.v[i];
    answer a;
    ssize_t n = read(k->watch.fd, &a, sizeof a);

    if (n < 0 && errno == EINTR)
        return false;
    if (n == (ssize_t)sizeof a)
        tell(k, a.r, &a.err);
    else
        tell_dead(k);
    kill(k->pid, SIGKILL); /* it has nothing more to do, and is ours until it is reaped */
    waitpid(k->pid, NULL, 0);
    forget(w, i);
    return true;
}

int64_t st_workers_turn(st_workers *w)
{
    int64_t boot = st_boot_ms(), next = boot + IDLE_MS;

    for (size_t i = 0; i < w->at.n;) {
        worker *k = w->at.v[i];

        if (k->ready && finish(w, i))
            continue;
        if (boot >= k->until_ms && !k->killed) {
            end(k);
        } else if (boot >= k->until_ms && !k->abandoned) {
            tell_dead(k);
            k->abandoned = true;
        }
        next = ST_MIN(next, k->abandoned ? next : k->until_ms);
        i++;
    }
    return next;
}
