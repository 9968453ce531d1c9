/*
 * Listening: sockets, certificates, and one daemon of libmicrohttpd for each.
 * The sockets are ours and the daemons get duplicates, so that a daemon can be
 * replaced by one with a new certificate without a moment of refusal.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "http/call.h"

#define BACKLOG        1024
#define PEM_BYTES_MAX  (1 << 20)
#define TLS_PRIORITIES "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"
/* Beside the headers, a connection's memory holds their table and a buffer to write from. */
#define POOL_EXTRA 8192

static void forward_log(void *cls, const char *fmt, va_list args)
{
    st_listener *listener = cls;
    const st_http_options *opt = &listener->server->opt;
    char line[512];
    size_t n;

    if (!opt->log)
        return;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    vsnprintf(line, sizeof(line), fmt, args);
#pragma GCC diagnostic pop
    n = strlen(line);
    while (n > 0 && line[n - 1] == '\n')
        line[--n] = '\0';
    opt->log(opt->ctx, line);
}

/* The router and the query reader decode; here nothing is. */
static size_t keep_escapes(void *cls, struct MHD_Connection *mhd, char *text)
{
    (void)cls, (void)mhd;
    return strlen(text);
}

static unsigned int flags_of(const st_listener *listener)
{
    unsigned int flags = (unsigned int)MHD_USE_EPOLL_INTERNAL_THREAD |
                         (unsigned int)MHD_ALLOW_SUSPEND_RESUME | (unsigned int)MHD_ALLOW_UPGRADE |
                         (unsigned int)MHD_USE_ERROR_LOG | (unsigned int)MHD_USE_TURBO;

    return listener->is_tls ? flags | (unsigned int)MHD_USE_TLS : flags;
}

int st_listener_start(st_listener *listener, st_err *err)
{
    const st_http_options *opt = &listener->server->opt;
    ST_CLEANUP(st_strbuf_done) st_strbuf cert = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf key = {0};
    struct MHD_OptionItem tls[] = {{MHD_OPTION_END, 0, NULL},
                                   {MHD_OPTION_HTTPS_MEM_KEY, 0, NULL},
                                   {MHD_OPTION_HTTPS_PRIORITIES, 0, NULL},
                                   {MHD_OPTION_END, 0, NULL}};
    char priorities[] = TLS_PRIORITIES;
    int fd;

    if (listener->is_tls) {
        if (st_file_read(listener->cert_file, PEM_BYTES_MAX, &cert, err) < 0 ||
            st_file_read(listener->key_file, PEM_BYTES_MAX, &key, err) < 0)
            return st_fail_prefix(err, "TLS for %s: ", listener->name);
        tls[0] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, cert.s};
        tls[1].ptr_value = key.s;
        tls[2].ptr_value = priorities;
    }
    fd = dup(listener->fd);
    if (fd < 0)
        return st_fail(err, ST_EIO, "%s: %s", listener->name, strerror(errno));
    listener->daemon = MHD_start_daemon(
        flags_of(listener), 0, NULL, NULL, st_call_access, listener, MHD_OPTION_EXTERNAL_LOGGER,
        forward_log, listener, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_THREAD_POOL_SIZE,
        (unsigned int)opt->threads, MHD_OPTION_CONNECTION_LIMIT,
        /* Ours is the limit; theirs is shared out among the threads. */
        (unsigned int)opt->threads * 1000000U, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)opt->header_bytes + POOL_EXTRA, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned int)((opt->header_ms + 999) / 1000), MHD_OPTION_URI_LOG_CALLBACK, st_call_uri,
        listener, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_NOTIFY_COMPLETED,
        st_call_over, listener, MHD_OPTION_NOTIFY_CONNECTION, st_conn_notify, listener,
        /* 1 would also close on a space in the target, unanswered; both are seen to in request.c. */
        MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (!listener->daemon) {
        close(fd);
        if (listener->is_tls)
            return st_fail(err, ST_EINVAL,
                           "%s: cannot serve with certificate %s and key %s; are they PEM, and do "
                           "they belong together?",
                           listener->name, listener->cert_file, listener->key_file);
        return st_fail(err, ST_EIO, "%s: libmicrohttpd does not start", listener->name);
    }
    return 0;
}

void st_listener_quiet(st_listener *listener)
{
    if (listener->quiet || !listener->daemon)
        return;
    listener->quiet = true;
    /* Its threads may look at it until they have ended: closed, it might be another file by then. */
    listener->quiet_fd = MHD_quiesce_daemon(listener->daemon);
}

void st_listener_free(st_listener *listener)
{
    if (!listener)
        return;
    if (listener->daemon)
        MHD_stop_daemon(listener->daemon);
    if (listener->quiet && listener->quiet_fd >= 0)
        close(listener->quiet_fd);
    if (listener->fd >= 0) {
        close(listener->fd);
        if (listener->is_unix)
            unlink(listener->name);
    }
    free(listener->name);
    free(listener->cert_file);
    free(listener->key_file);
    free(listener);
}

/* ---- addresses --------------------------------------------------------------------------- */

typedef union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
} address;

/* "HOST:PORT" with a numeric host, one in brackets for IPv6, or none for all. */
static int parse_address(const char *where, address *ret, socklen_t *ret_len, st_err *err)
{
    const char *colon = strrchr(where, ':');
    char host[64] = "", quoted[ST_QUOTE_MAX];
    size_t n = colon ? (size_t)(colon - where) : 0;
    int64_t port;

    memset(ret, 0, sizeof(*ret));
    if (!colon || n >= sizeof(host) || st_parse_i64(colon + 1, 0, 65535, &port, NULL) < 0)
        return st_fail(err, ST_EINVAL, "%s is no address to listen on; write 127.0.0.1:8080",
                       st_quote(quoted, where));
    memcpy(host, where, n);
    if (n >= 2 && host[0] == '[' && host[n - 1] == ']') {
        memmove(host, host + 1, n - 2);
        host[n - 2] = '\0';
    } else if (strcmp(host, "localhost") == 0) {
        strcpy(host, "127.0.0.1");
    }
    if (inet_pton(AF_INET, host, &ret->in.sin_addr) == 1) {
        ret->in.sin_family = AF_INET;
        ret->in.sin_port = htons((uint16_t)port);
        *ret_len = sizeof(ret->in);
        return 0;
    }
    memset(ret, 0, sizeof(*ret));
    if (n > 0 && inet_pton(AF_INET6, host, &ret->in6.sin6_addr) != 1)
        return st_fail(err, ST_EINVAL, "%s: the address must be numeric, like 127.0.0.1 or [::1]",
                       st_quote(quoted, where));
    ret->in6.sin6_family = AF_INET6;
    ret->in6.sin6_port = htons((uint16_t)port);
    *ret_len = sizeof(ret->in6);
    return 0;
}

static int open_socket(const char *name, const address *at, socklen_t len, int *ret, st_err *err)
{
    int one = 1, zero = 0;
    int fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return st_fail(err, ST_EIO, "%s: %s", name, strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (at->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
    if (bind(fd, &at->any, len) < 0 || listen(fd, BACKLOG) < 0) {
        int fault = errno;

        close(fd);
        return st_fail(err, ST_EIO, "cannot listen on %s: %s", name, strerror(fault));
    }
    *ret = fd;
    return 0;
}

static int port_of(int fd)
{
    address at;
    socklen_t len = sizeof(at);

    if (getsockname(fd, &at.any, &len) < 0)
        return 0;
    return ntohs(at.any.sa_family == AF_INET ? at.in.sin_port : at.in6.sin6_port);
}

/* Takes the listener, whether it works or not. */
static int add_listener(st_http_server *server, st_listener *listener, st_err *err)
{
    int r = st_listener_start(listener, err);

    if (r < 0) {
        st_listener_free(listener);
        return r;
    }
    pthread_mutex_lock(&server->lock);
    st_vec_push(&server->listeners, listener);
    pthread_mutex_unlock(&server->lock);
    return 0;
}

int st_http_listen(st_http_server *server, const char *where, const char *cert_file,
                   const char *key_file, int *ret_port, st_err *err)
{
    st_listener *listener;
    address at;
    socklen_t len = 0;
    int fd = -1, port, r;

    if (!cert_file != !key_file)
        return st_fail(err, ST_EINVAL, "%s: TLS wants both a certificate and a key", where);
    r = parse_address(where, &at, &len, err);
    if (r == 0)
        r = open_socket(where, &at, len, &fd, err);
    if (r < 0)
        return r;
    port = port_of(fd);
    listener = st_xcalloc(1, sizeof(*listener));
    *listener = (st_listener){
        .server = server, .fd = fd, .name = st_xstrdup(where), .is_tls = cert_file != NULL};
    if (cert_file) {
        listener->cert_file = st_xstrdup(cert_file);
        listener->key_file = st_xstrdup(key_file);
    }
    r = add_listener(server, listener, err);
    if (r == 0 && ret_port)
        *ret_port = port;
    return r;
}

/* A socket file that nobody answers at is removed; anything else is left alone. */
static int clear_stale(const char *path, const address *at, st_err *err)
{
    struct stat st;
    int fd, r;

    if (lstat(path, &st) < 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return st_fail(err, ST_EEXIST, "%s exists and isn't a socket; remove it or change `socket`",
                       path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return st_fail(err, ST_EIO, "%s: %s", path, strerror(errno));
    r = connect(fd, &at->any, sizeof(at->un));
    close(fd);
    if (r == 0)
        return st_fail(err, ST_EEXIST, "another process serves %s", path);
    unlink(path);
    return 0;
}

int st_http_listen_unix(st_http_server *server, const char *path, mode_t mode, st_err *err)
{
    address at = {.un = {.sun_family = AF_UNIX}};
    st_listener *listener;
    int fd, r;

    if (strlen(path) >= sizeof(at.un.sun_path))
        return st_fail(err, ST_EINVAL, "%s: the path of a socket has at most %zu bytes", path,
                       sizeof(at.un.sun_path) - 1);
    strcpy(at.un.sun_path, path);
    r = clear_stale(path, &at, err);
    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* The mode before bind is the most that the file gets, so nobody slips in before chmod. */
    if (fd < 0 || fchmod(fd, mode) < 0 || bind(fd, &at.any, sizeof(at.un)) < 0 ||
        chmod(path, mode) < 0 || listen(fd, BACKLOG) < 0) {
        int fault = errno;

        if (fd >= 0)
            close(fd);
        return st_fail(err, ST_EIO, "cannot listen on %s: %s", path, strerror(fault));
    }
    listener = st_xcalloc(1, sizeof(*listener));
    *listener =
        (st_listener){.server = server, .fd = fd, .name = st_xstrdup(path), .is_unix = true};
    return add_listener(server, listener, err);
}

/* ---- certificates ------------------------------------------------------------------------ */

static int replace_listener(st_http_server *server, size_t i, st_err *err)
{
    st_listener *old = server->listeners.v[i];
    st_listener *fresh = st_xcalloc(1, sizeof(*fresh));
    int r;

    *fresh = (st_listener){.server = server,
                           .fd = dup(old->fd),
                           .is_tls = true,
                           .name = st_xstrdup(old->name),
                           .cert_file = st_xstrdup(old->cert_file),
                           .key_file = st_xstrdup(old->key_file)};
    if (fresh->fd < 0)
        r = st_fail(err, ST_EIO, "%s: %s", old->name, strerror(errno));
    else
        r = st_listener_start(fresh, err);
    if (r < 0) {
        st_listener_free(fresh);
        return r;
    }
    st_listener_quiet(old);
    pthread_mutex_lock(&server->lock);
    server->listeners.v[i] = fresh;
    st_vec_push(&server->retired, old);
    pthread_mutex_unlock(&server->lock);
    return 0;
}

int st_http_reload_tls(st_http_server *server, st_err *err)
{
    int r = 0;

    for (size_t i = 0; i < server->listeners.n && r == 0; i++)
        if (server->listeners.v[i]->is_tls)
            r = replace_listener(server, i, err);
    return r;
}
