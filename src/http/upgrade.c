/*
 * Connections that become something else: after a 101 the socket is its new owner's, and bytes go both ways.
 *
 * Invariants:
 *  1 Who asked for it hears exactly once: that it has begun, in a server thread, or that it never will.
 *  2 One that has begun is the owner's to close, once; until then it counts as a connection and as its caller's.
 *  3 What TLS carries is read and written here. libmicrohttpd would hand it on itself, through a socket pair and a buffer
 *    of eight bytes: that is kept from it, by telling it that there is nothing (gnutls_record_recv below). It goes on to
 *    own the session and ends it; until then nobody but the connection's owner uses it.
 *  4 A server that stops shuts the sockets, so that owners notice, and waits until all are closed: libmicrohttpd
 *    must not be stopped before.
 */
#include <dlfcn.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include "base/mem.h"
#include "http/call.h"

struct st_upgrade {
    st_http_server *server;
    struct MHD_UpgradeResponseHandle *handle;
    int fd, conn_fd;
    gnutls_session_t tls; /* NULL: there is none */
    st_upgrade_begun *begun;
    void *ctx;
    st_upgrade *prev, *next;
};

/* ---- TLS ------------------------------------------------------------------------------------------ */

static const char taken; /* the address is the mark of a session that an owner has */

typedef ssize_t record_recv(gnutls_session_t session, void *buf, size_t n);
typedef size_t record_pending(gnutls_session_t session);

/* The library's own, behind those that stand before it here. */
static void *real(const char *name)
{
    void *fn = dlsym(RTLD_NEXT, name);

    ST_ASSERT(fn);
    return fn;
}

static ssize_t real_recv(gnutls_session_t session, void *buf, size_t n)
{
    union {
        void *found;
        record_recv *fn;
    } it = {.found = real("gnutls_record_recv")};

    return it.fn(session, buf, n);
}

static bool is_taken(gnutls_session_t session)
{
    return gnutls_session_get_ptr(session) == (const void *)&taken;
}

/* libmicrohttpd calls these two. */
ssize_t gnutls_record_recv(gnutls_session_t session, void *buf, size_t n)
{
    return is_taken(session) ? GNUTLS_E_AGAIN : real_recv(session, buf, n);
}

size_t gnutls_record_check_pending(gnutls_session_t session)
{
    union {
        void *found;
        record_pending *fn;
    } it;

    if (is_taken(session))
        return 0;
    it.found = real("gnutls_record_check_pending");
    return it.fn(session);
}

static ssize_t of_tls(ssize_t n)
{
    if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
        return -1;
    if (n == GNUTLS_E_PREMATURE_TERMINATION)
        return 0;
    return n < 0 ? -2 : n;
}

static ssize_t of_socket(ssize_t n)
{
    return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? -1 : -2;
}

ssize_t st_upgrade_recv(void *owner, char *buf, size_t n)
{
    const st_upgrade *up = owner;

    return up->tls ? of_tls(real_recv(up->tls, buf, n))
                   : of_socket(recv(up->fd, buf, n, MSG_DONTWAIT));
}

/* What TLS did not take at once must be offered again as it was. */
ssize_t st_upgrade_send(void *owner, const char *buf, size_t n)
{
    const st_upgrade *up = owner;

    return up->tls ? of_tls(gnutls_record_send(up->tls, buf, n))
                   : of_socket(send(up->fd, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL));
}

static void take_session(st_upgrade *up, struct MHD_Connection *mhd, int fd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    union {
        const void *mark;
        void *wanted;
    } mark = {.mark = &taken};

    up->fd = fd;
    if (!info || !info->tls_session)
        return;
    up->tls = info->tls_session;
    up->fd = up->conn_fd;
    gnutls_session_set_ptr(up->tls, mark.wanted);
}

/* libmicrohttpd has the session again, and hears from its socket that nothing more comes: it would wait for that. */
static void give_back(st_upgrade *up)
{
    if (!up->tls)
        return;
    gnutls_bye(up->tls, GNUTLS_SHUT_WR);
    gnutls_session_set_ptr(up->tls, NULL);
    shutdown(up->conn_fd, SHUT_RD);
}

/* ---- asking ----------------------------------------------------------------------------------------- */

static bool lists(const char *header, const char *word)
{
    size_t n = strlen(word);

    while (header && *header) {
        size_t len = strcspn(header, ",");
        size_t skip = strspn(header, " \t"), end = len;

        while (end > skip && (header[end - 1] == ' ' || header[end - 1] == '\t'))
            end--;
        if (end > skip && end - skip == n && strncasecmp(header + skip, word, n) == 0)
            return true;
        header += len + (header[len] == ',');
    }
    return false;
}

bool st_call_may_upgrade(const st_call *call, const char *protocol)
{
    return lists(st_call_header(call, MHD_HTTP_HEADER_CONNECTION), "upgrade") &&
           lists(st_call_header(call, MHD_HTTP_HEADER_UPGRADE), protocol);
}

/* A machine that is gone says nothing; what hangs on it must not for ever. */
static void keep_alive(int fd)
{
    const int on = 1, idle_s = 30, every_s = 10, times = 3;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
}

/* In the thread that serves the connection. What the caller may have at a time is of requests, and this is none any more. */
static void begin(void *cls, struct MHD_Connection *mhd, void *con_cls, const char *early, size_t n,
                  MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
    st_upgrade *up = cls;
    st_call *call = con_cls;
    st_http_server *server = up->server;

    call->upgrade = NULL;
    call->streams_us = st_now_us();
    if (call->entered) {
        st_limits_leave(server->limits, call->limit_key);
        call->entered = false;
    }
    keep_alive(up->conn_fd);
    take_session(up, mhd, fd);
    up->handle = handle;
    pthread_mutex_lock(&server->lock);
    up->next = server->upgrades;
    if (up->next)
        up->next->prev = up;
    server->upgrades = up;
    if (atomic_load_explicit(&server->stopping, memory_order_relaxed))
        shutdown(up->fd, SHUT_RDWR);
    pthread_mutex_unlock(&server->lock);
    up->begun(up->ctx, up, early, n);
}

void st_call_upgrade(st_call *call, const char *protocol, st_upgrade_begun *begun, void *ctx)
{
    st_upgrade *up = st_xcalloc(1, sizeof(*up));
    struct MHD_Response *response = MHD_create_response_for_upgrade(begin, up);

    ST_ASSERT(response && !call->upgrade);
    *up = (st_upgrade){
        .server = call->server, .fd = -1, .conn_fd = call->conn_fd, .begun = begun, .ctx = ctx};
    MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, protocol);
    MHD_add_response_header(response, "X-Request-Id", call->id);
    for (size_t i = 0; i < call->headers.n; i++)
        MHD_add_response_header(response, call->headers.v[i].name, call->headers.v[i].value);
    call->upgrade = up;
    st_call_finish(call, 101, response, 0);
}

void st_upgrade_lost(st_upgrade *up)
{
    if (!up)
        return;
    up->begun(up->ctx, NULL, NULL, 0);
    free(up);
}

int st_upgrade_fd(const st_upgrade *up)
{
    return up->fd;
}

bool st_upgrade_is_tls(const st_upgrade *up)
{
    return up->tls != NULL;
}

void st_upgrade_close(st_upgrade *up)
{
    st_http_server *server = up->server;
    struct MHD_UpgradeResponseHandle *handle = up->handle;

    give_back(up);
    pthread_mutex_lock(&server->lock);
    if (up->prev)
        up->prev->next = up->next;
    else
        server->upgrades = up->next;
    if (up->next)
        up->next->prev = up->prev;
    pthread_cond_broadcast(&server->changed);
    /* With the lock held: the server does not stop libmicrohttpd before it has seen that there is none. */
    MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
    pthread_mutex_unlock(&server->lock);
    free(up);
}

void st_upgrades_end(st_http_server *server)
{
    pthread_mutex_lock(&server->lock);
    for (st_upgrade *up = server->upgrades; up; up = up->next)
        shutdown(up->fd, SHUT_RDWR);
    while (server->upgrades)
        pthread_cond_wait(&server->changed, &server->lock);
    pthread_mutex_unlock(&server->lock);
}
