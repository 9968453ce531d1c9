/*
 * `stint forward`: a port of this machine, on its loopback address alone, leads to a port of a task. A process for each
 * connection, so that one that stands still holds up no other; they end with us.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "cli/spinner.h"
#include "cli/tunnel.h"

#define LOOK_MS  5000 /* how often the tunnel is looked at */
#define STEP_MS  200
#define TASK_MAX 1000000

typedef struct forward_flags {
    int64_t task;
} forward_flags;

const st_cli_row st_cli_forward_options[] = {
    {"task", 't', ST_CLI_I64, offsetof(forward_flags, task), "N", "task number (default: 0)", 0,
     TASK_MAX},
    {0},
};

typedef struct forward {
    st_cli *cli;
    st_client *client;
    const char *job;
    int64_t task, local, port;
    int listener;
    st_tunnel tunnel;
} forward;

/* PORT, or LOCAL:PORT; LOCAL 0 is any free one. */
static int read_ports(const char *word, int64_t *ret_local, int64_t *ret_port, st_err *err)
{
    const char *colon = strchr(word, ':');
    ST_CLEANUP(st_freep) char *local = colon ? st_xstrndup(word, (size_t)(colon - word)) : NULL;
    char q[ST_QUOTE_MAX];

    if (st_parse_i64(colon ? colon + 1 : word, 1, 65535, ret_port, NULL) < 0 ||
        (local && st_parse_i64(local, 0, 65535, ret_local, NULL) < 0))
        return st_fail(err, ST_EINVAL, "%s is no port; write 8888, or 9000:8888",
                       st_quote(q, word));
    if (!local)
        *ret_local = *ret_port;
    return 0;
}

static int open_listener(forward *f, st_err *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)f->local),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int one = 1;

    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (f->listener < 0)
        return st_fail(err, ST_EIO, "no socket: %s", strerror(errno));
    setsockopt(f->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(f->listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(f->listener, 64) < 0 ||
        getsockname(f->listener, (struct sockaddr *)&at, &len) < 0)
        return st_fail(err, ST_EIO,
                       "cannot listen on 127.0.0.1:%d: %s; name another port, as in 0:%d",
                       (int)f->local, strerror(errno), (int)f->port);
    f->local = ntohs(at.sin_port);
    return 0;
}

static int open_tunnel(forward *f, st_err *err)
{
    json_t *body = json_pack("{s:s, s:I, s:I}", "kind", "forward", "task", (json_int_t)f->task,
                             "port", (json_int_t)f->port);
    int r = st_tunnel_open(f->client, f->job, body, &f->tunnel, err);

    json_decref(body);
    return r;
}

/* In a process of its own. */
static _Noreturn void carry(const forward *f, int fd)
{
    st_dial *d = NULL;
    st_err err = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(f->listener);
    if (st_tunnel_connect(f->client, &f->tunnel, &d, &err) < 0) {
        fprintf(f->cli->errors, "stint: %s\n", err.msg);
        fflush(f->cli->errors);
        _exit(1);
    }
    st_dial_pump(d, fd, -1);
    _exit(0);
}

static void take(const forward *f)
{
    int fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    pid_t pid;

    if (fd < 0)
        return;
    pid = fork();
    if (pid == 0)
        carry(f, fd);
    if (pid < 0)
        fprintf(f->cli->errors, "stint: no process for a connection: %s\n", strerror(errno));
    close(fd);
}

/* The tunnel may have ended since: nobody used it for long, or the job has. 1: there is nothing more to do. */
static int look(forward *f, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    json_t *job = NULL;
    int r;

    if (st_tunnel_lives(f->client, &f->tunnel))
        return 0;
    st_job_path(&path, f->job, "");
    r = st_client_get(f->client, st_strbuf_str(&path), &job, err);
    if (r == 0 && st_job_over(st_view_text(job, "state"))) {
        fprintf(f->cli->errors, "job %s has ended (%s)\n", f->tunnel.job,
                st_view_text(job, "state"));
        r = 1;
    } else if (r == 0) {
        r = open_tunnel(f, err);
    }
    json_decref(job);
    return r;
}

static int serve(forward *f, st_err *err)
{
    int64_t looked = st_cli_clock_ms();

    for (;;) {
        struct pollfd p = {.fd = f->listener, .events = POLLIN};
        int r;

        if (poll(&p, 1, STEP_MS) > 0)
            take(f);
        if (st_signals_wait(0))
            return 0;
        if (st_cli_clock_ms() - looked < LOOK_MS)
            continue;
        r = look(f, err);
        if (r != 0)
            return r < 0 ? r : 0;
        looked = st_cli_clock_ms();
    }
}

int st_forward(const st_forward_to *to, st_err *err)
{
    forward f = {.cli = to->cli,
                 .client = to->client,
                 .job = to->job,
                 .task = to->task,
                 .local = to->local,
                 .port = to->port,
                 .listener = -1};
    int r = open_listener(&f, err);

    if (r == 0)
        r = open_tunnel(&f, err);
    if (r == 0) {
        signal(SIGCHLD, SIG_IGN);
        st_signals_block();
        to->tell(to, (int)f.local, f.tunnel.task, f.tunnel.job);
        fflush(to->cli->out);
        r = serve(&f, err);
        st_tunnel_close(f.client, &f.tunnel);
    }
    if (f.listener >= 0)
        close(f.listener);
    return r;
}

static void tell(const st_forward_to *to, int local, int task, const char *job)
{
    fprintf(to->cli->out, "127.0.0.1:%d leads to port %d of task %d of job %s; Ctrl-C ends it\n",
            local, (int)to->port, task, job);
}

int st_cli_forward(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    forward_flags flags = {0};
    st_forward_to to = {.cli = cli, .tell = tell};
    int r = st_cli_read(argc, argv, st_cli_forward_options, &flags, 2, 2, NULL, err);

    if (r == 0)
        r = read_ports(argv[2], &to.local, &to.port, err);
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    to.client = client;
    to.job = argv[1];
    to.task = flags.task;
    return st_forward(&to, err);
}
