/*
 * Connections: who is at the other end, how many there are, and those that
 * take too long. Deadlines are kept here because libmicrohttpd only knows
 * inactivity, which a client that drips one byte at a time never shows.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/hash.h"
#include "base/mem.h"
#include "http/server.h"

static void find_peer(st_conn *conn, const st_listener *listener, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info;
    char *text = conn->peer.address;
    size_t size = sizeof(conn->peer.address);

    conn->peer.is_tls = listener->is_tls;
    if (listener->is_unix) {
        struct ucred peer = {.uid = (uid_t)-1, .gid = (gid_t)-1};
        socklen_t len = sizeof(peer);

        getsockopt(conn->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
        conn->peer.is_unix = true;
        conn->peer.uid = peer.uid;
        conn->peer.gid = peer.gid;
        snprintf(text, size, "unix");
        snprintf(conn->counted_as, sizeof(conn->counted_as), "unix:%u", (unsigned int)peer.uid);
        return;
    }
    snprintf(text, size, "unknown");
    info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info && info->client_addr->sa_family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, info->client_addr, sizeof(in));
        inet_ntop(AF_INET, &in.sin_addr, text, (socklen_t)size);
    } else if (info && info->client_addr->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, info->client_addr, sizeof(in6));
        if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
            inet_ntop(AF_INET, &in6.sin6_addr.s6_addr[12], text, (socklen_t)size);
        else
            inet_ntop(AF_INET6, &in6.sin6_addr, text, (socklen_t)size);
    }
    snprintf(conn->counted_as, sizeof(conn->counted_as), "%s", text);
}

/* Strangers make room for strangers; with the lock held. */
static void add_stranger(st_http_server *server, st_conn *conn)
{
    conn->stranger = true;
    conn->older = server->newest;
    *(conn->older ? &conn->older->newer : &server->oldest) = conn;
    server->newest = conn;
    server->nstrangers++;
}

static void remove_stranger(st_http_server *server, st_conn *conn)
{
    if (!conn->stranger)
        return;
    *(conn->older ? &conn->older->newer : &server->oldest) = conn->newer;
    *(conn->newer ? &conn->newer->older : &server->newest) = conn->older;
    conn->stranger = false;
    conn->older = conn->newer = NULL;
    server->nstrangers--;
}

void st_conn_known(st_conn *conn)
{
    st_http_server *server = conn->server;

    if (server->opt.strangers_max <= 0)
        return;
    pthread_mutex_lock(&server->lock);
    remove_stranger(server, conn);
    pthread_mutex_unlock(&server->lock);
}

/* The oldest of too many; its descriptor is closed only after `closed` took it off the lists. */
static void cut_oldest(st_http_server *server)
{
    st_conn *conn = server->oldest;

    if (server->nstrangers <= server->opt.strangers_max)
        return;
    remove_stranger(server, conn);
    st_stats_reject(server->stats, ST_REJECT_TOTAL);
    shutdown(conn->fd, SHUT_RDWR);
}

/* Counts it in; ST_REJECT_COUNT when there is room. It is on the list either way. */
static st_reject enlist(st_http_server *server, st_conn *conn)
{
    const st_http_options *opt = &server->opt;
    int64_t same = 0;
    st_reject why = ST_REJECT_COUNT;

    pthread_mutex_lock(&server->lock);
    st_map_get(server->peers, conn->counted_as, &same);
    st_map_put(server->peers, conn->counted_as, same + 1);
    server->nconn++;
    conn->next = server->conns;
    if (conn->next)
        conn->next->prev = conn;
    server->conns = conn;
    if (opt->strangers_max > 0) {
        add_stranger(server, conn);
        cut_oldest(server);
    }
    if (opt->connections_max >= 0 && server->nconn > opt->connections_max)
        why = ST_REJECT_TOTAL;
    else if (opt->connections_per_peer >= 0 && same >= opt->connections_per_peer)
        why = ST_REJECT_PEER;
    pthread_mutex_unlock(&server->lock);
    return why;
}

static void started(st_listener *listener, struct MHD_Connection *mhd, void **socket_context)
{
    st_http_server *server = listener->server;
    st_conn *conn = st_xcalloc(1, sizeof(*conn));
    st_reject why;

    conn->server = server;
    conn->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    find_peer(conn, listener, mhd);
    conn->key = st_hash_str(0, conn->counted_as);
    atomic_init(&conn->deadline_ms, st_now_ms() + server->opt.header_ms);
    *socket_context = conn;
    why = enlist(server, conn);
    if (why != ST_REJECT_COUNT) {
        st_stats_reject(server->stats, why);
        shutdown(conn->fd, SHUT_RDWR);
    }
}

static void closed(void **socket_context)
{
    st_conn *conn = ST_TAKE(*socket_context);
    st_http_server *server = conn->server;
    int64_t same = 0;

    pthread_mutex_lock(&server->lock);
    st_map_get(server->peers, conn->counted_as, &same);
    if (same > 1)
        st_map_put(server->peers, conn->counted_as, same - 1);
    else
        st_map_del(server->peers, conn->counted_as);
    server->nconn--;
    remove_stranger(server, conn);
    if (conn->prev)
        conn->prev->next = conn->next;
    else
        server->conns = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
    pthread_mutex_unlock(&server->lock);
    free(conn);
}

void st_conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
                    enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        started(cls, mhd, socket_context);
    else if (*socket_context)
        closed(socket_context);
}

void st_conns_cut_late(st_http_server *server, int64_t now_ms)
{
    for (st_conn *conn = server->conns; conn; conn = conn->next) {
        int64_t deadline_ms = atomic_load_explicit(&conn->deadline_ms, memory_order_relaxed);

        if (deadline_ms == 0 || now_ms < deadline_ms)
            continue;
        /* Its descriptor is closed only after `closed` took it off the list. */
        atomic_store_explicit(&conn->deadline_ms, 0, memory_order_relaxed);
        st_stats_reject(server->stats, ST_REJECT_SLOW);
        shutdown(conn->fd, SHUT_RDWR);
    }
}
