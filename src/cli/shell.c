/* A terminal joined to a command in a job; see the header. */
#include "cli/shell.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"
#include "tunnel/frame.h"

#define HELD_MAX 65536
#define PIECE    16384
#define SIGNALED 128

typedef struct shell {
    st_shell *to;
    int signals;
    bool in_ended, over;
    int status;
    enum { TYPED, LINE, TILDE } keys; /* where in a line the last key stood */
    st_strbuf heard, to_net;
} shell;

void st_shell_size(int *ret_rows, int *ret_cols)
{
    struct winsize size = {0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    *ret_rows = ST_MIN(size.ws_row, 1000);
    *ret_cols = ST_MIN(size.ws_col, 1000);
}

static void send_size(shell *s)
{
    int rows, cols;
    unsigned char bytes[4];

    st_shell_size(&rows, &cols);
    bytes[0] = (unsigned char)(rows >> 8);
    bytes[1] = (unsigned char)rows;
    bytes[2] = (unsigned char)(cols >> 8);
    bytes[3] = (unsigned char)cols;
    st_frame_add(&s->to_net, ST_FRAME_SIZE, bytes, sizeof bytes);
}

static void on_signal(shell *s)
{
    struct signalfd_siginfo info;

    while (read(s->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        unsigned char number = (unsigned char)info.ssi_signo;

        if (info.ssi_signo == SIGWINCH && s->to->raw && !s->to->mute)
            send_size(s);
        else if (info.ssi_signo == SIGWINCH)
            continue;
        else if (s->to->mute || (s->to->attached && info.ssi_signo == SIGHUP))
            s->to->left = true; /* a terminal that closes ends no job */
        else
            st_frame_add(&s->to_net, ST_FRAME_SIGNAL, &number, 1);
    }
}

/* Keys, but for ~. at the beginning of a line, which leaves; ~~ is one of them. */
static void type(shell *s, const char *bytes, size_t n)
{
    char out[2 * PIECE];
    size_t k = 0;

    for (size_t i = 0; i < n && !s->to->left; i++) {
        if (s->keys == TILDE) {
            s->to->left = bytes[i] == '.';
            if (bytes[i] != '~' && !s->to->left)
                out[k++] = '~';
            s->keys = TYPED;
            if (!s->to->left)
                out[k++] = bytes[i];
        } else if (s->keys == LINE && bytes[i] == '~') {
            s->keys = TILDE;
        } else {
            out[k++] = bytes[i];
        }
        if (s->keys != TILDE)
            s->keys = bytes[i] == '\r' || bytes[i] == '\n' ? LINE : TYPED;
    }
    if (k > 0)
        st_frame_add(&s->to_net, ST_FRAME_IN, out, k);
}

static void take_input(shell *s)
{
    char buf[PIECE];
    ssize_t n = read(STDIN_FILENO, buf, sizeof buf);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        s->in_ended = true;
        st_frame_add(&s->to_net, ST_FRAME_IN_END, NULL, 0);
    } else if (s->to->raw) {
        type(s, buf, (size_t)n);
    } else {
        st_frame_add(&s->to_net, ST_FRAME_IN, buf, (size_t)n);
    }
}

static bool put(int fd, const unsigned char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);

        if (done < 0 && errno == EAGAIN)
            (void)poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (done < 0 && errno != EINTR)
            return false;
        bytes += ST_MAX(done, 0);
        n -= (size_t)ST_MAX(done, 0);
    }
    return true;
}

static int take_frame(shell *s, const st_frame *f, st_err *err)
{
    switch (f->kind) {
    case ST_FRAME_OUT:
    case ST_FRAME_ERR:
        s->to->got += (int64_t)f->n;
        if (!put(f->kind == ST_FRAME_OUT ? STDOUT_FILENO : STDERR_FILENO, f->bytes, f->n))
            return st_fail(err, ST_EIO, "what the command wrote cannot be written here: %s",
                           strerror(errno));
        return 0;
    case ST_FRAME_EXIT:
        s->over = true;
        s->status = f->bytes[1] ? SIGNALED + f->bytes[1] : f->bytes[0];
        return 0;
    case ST_FRAME_FAIL:
        return st_fail(err, ST_ESTATE, "%.*s", (int)f->n, (const char *)f->bytes);
    default:
        return st_fail(err, ST_EDOWN, "the job's node says something that is not understood");
    }
}

static int take_output(shell *s, bool *ret_more, st_err *err)
{
    char buf[PIECE];
    ssize_t n = st_dial_recv(s->to->d, buf, sizeof buf);
    size_t at = 0, used = 0;
    st_frame f;
    int r = 0, found = 0;

    *ret_more = n > 0;
    if (n == 0 || n == -2)
        return st_fail(err, ST_EDOWN,
                       "the connection ended: the job has, or stintd, its node, or the token");
    if (n < 0)
        return 0;
    st_strbuf_addn(&s->heard, buf, (size_t)n);
    while (r == 0 && !s->over &&
           (found = st_frame_read(s->heard.s + at, s->heard.n - at, true, &f, &used)) > 0) {
        r = take_frame(s, &f, err);
        at += used;
    }
    memmove(s->heard.s, s->heard.s + at, s->heard.n - at);
    s->heard.n -= at;
    if (r == 0 && found < 0)
        r = st_fail(err, ST_EDOWN, "the job's node says something that is not understood");
    return r;
}

static int flush(shell *s, st_err *err)
{
    while (s->to_net.n > 0) {
        ssize_t n = st_dial_send(s->to->d, s->to_net.s, s->to_net.n);

        if (n == -1)
            return 0;
        if (n < 0)
            return st_fail(err, ST_EDOWN, "the connection to the job broke");
        memmove(s->to_net.s, s->to_net.s + n, s->to_net.n - (size_t)n);
        s->to_net.n -= (size_t)n;
    }
    return 0;
}

static int run(shell *s, st_err *err)
{
    bool more = true;
    int r = 0;

    while (r == 0 && !s->over && !s->to->left) {
        struct pollfd fds[] = {
            {.fd = s->to->mute || s->in_ended || s->to_net.n >= HELD_MAX ? -1 : STDIN_FILENO,
             .events = POLLIN},
            {.fd = st_dial_fd(s->to->d),
             .events = (short)(POLLIN | (s->to_net.n > 0 ? POLLOUT : 0))},
            {.fd = s->signals, .events = POLLIN},
        };

        poll(fds, ST_ARRAY_LEN(fds), more ? 0 : -1);
        if (fds[2].revents)
            on_signal(s);
        if (fds[0].revents)
            take_input(s);
        r = take_output(s, &more, err);
        if (r == 0 && !s->over)
            r = flush(s, err);
    }
    return r;
}

static int open_signals(sigset_t *before)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int st_shell_join(st_shell *to, st_err *err)
{
    shell s = {.to = to, .keys = LINE};
    bool terminal = to->raw && !to->mute && isatty(STDIN_FILENO);
    struct termios was, now;
    sigset_t before;
    int r;

    fflush(to->cli->out);
    if (to->attached && to->raw && !to->mute)
        send_size(&s);
    terminal = terminal && tcgetattr(STDIN_FILENO, &was) == 0;
    if (terminal) {
        now = was;
        cfmakeraw(&now);
        tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
    }
    s.signals = open_signals(&before);
    r = s.signals >= 0 ? run(&s, err) : st_fail(err, ST_EIO, "signals cannot be waited for");
    if (s.signals >= 0)
        close(s.signals);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (terminal)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &was);
    st_strbuf_done(&s.heard);
    st_strbuf_done(&s.to_net);
    if (r == 0 && to->left && !s.over)
        return st_fail(err, ST_EDOWN,
                       to->attached ? "left; the job goes on" : "left; the command was hung up on");
    return r < 0 ? r : s.status;
}
