/*
 * Connections: who is at the other end, how many there are, and those that
 * take too long. One that nobody known has used yet is a stranger's: it has little time, there are few of an
 * address, and it is the first to go when there are too many. Deadlines are kept here because libmicrohttpd only knows
 * inactivity, which a client that drips one byte at a time never shows.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/hash.h"
#include "base/mem.h"
#include "http/call.h"

void st_address_names(const struct sockaddr *addr, char *text, size_t size, char *counted_as,
                      size_t counted_size)
{
    if (addr->sa_family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, addr, sizeof(in));
        inet_ntop(AF_INET, &in.sin_addr, text, (socklen_t)size);
    } else if (addr->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, addr, sizeof(in6));
        if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
            inet_ntop(AF_INET, &in6.sin6_addr.s6_addr[12], text, (socklen_t)size);
        } else {
            inet_ntop(AF_INET6, &in6.sin6_addr, text, (socklen_t)size);
            /* Who has one address has the 2^64 beside it. */
            memset(&in6.sin6_addr.s6_addr[8], 0, 8);
            inet_ntop(AF_INET6, &in6.sin6_addr, counted_as, (socklen_t)counted_size);
            return;
        }
    } else {
        return;
    }
    snprintf(counted_as, counted_size, "%s", text);
}

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
    if (info)
        st_address_names(info->client_addr, text, size, conn->counted_as, sizeof(conn->counted_as));
    if (!conn->counted_as[0])
        snprintf(conn->counted_as, sizeof(conn->counted_as), "%s", text);
}

static void count(st_map *map, const char *key, int more)
{
    int64_t n = 0;

    st_map_get(map, key, &n);
    if (n + more > 0)
        st_map_put(map, key, n + more);
    else
        st_map_del(map, key);
}

static int64_t counted(const st_map *map, const char *key)
{
    int64_t n = 0;

    st_map_get(map, key, &n);
    return n;
}

static bool is_known(const st_conn *conn)
{
    return atomic_load_explicit(&conn->known, memory_order_relaxed);
}

/* Counts it out; with the lock held. */
static void count_out(st_http_server *server, const st_conn *conn)
{
    count(server->peers, conn->counted_as, -1);
    if (is_known(conn))
        return;
    count(server->strangers, conn->counted_as, -1);
    server->nstrangers--;
}

/* Its descriptor is closed only after `closed` took it off the list. */
static void cut(st_http_server *server, st_conn *conn)
{
    if (!conn->cut) {
        count_out(server, conn);
        conn->cut = true;
        server->nleaving++;
    }
    shutdown(conn->fd, SHUT_RDWR);
}

/* The stranger that has to go, NULL: there is none. Of those with the most strangers beside them, the one that
 * came first: who has just come may be about to say who it is. `like`, if not NULL, is the only place to look. */
static st_conn *first_to_go(st_http_server *server, const char *like)
{
    st_conn *victim = NULL;
    int64_t most = 0;

    /* The newest stand first. */
    for (st_conn *conn = server->conns; conn; conn = conn->next) {
        int64_t beside;

        if (conn->cut || is_known(conn) || (like && strcmp(conn->counted_as, like) != 0))
            continue;
        beside = counted(server->strangers, conn->counted_as);
        if (beside >= most) {
            most = beside;
            victim = conn;
        }
    }
    return victim;
}

/* Counts it in; ST_REJECT_COUNT when there is room, if need be made by cutting off a stranger. It is on the list
 * either way. */
static st_reject enlist(st_http_server *server, st_conn *conn)
{
    const st_http_options *opt = &server->opt;
    const char *key = conn->counted_as;
    st_reject why = ST_REJECT_COUNT, room = ST_REJECT_COUNT;
    st_conn *victim = NULL;

    pthread_mutex_lock(&server->lock);
    if (opt->connections_per_peer >= 0 && counted(server->peers, key) >= opt->connections_per_peer)
        room = ST_REJECT_PEER;
    else if (opt->strangers_per_peer >= 0 &&
             counted(server->strangers, key) >= opt->strangers_per_peer)
        room = ST_REJECT_STRANGER;
    else if ((opt->connections_max >= 0 &&
              server->nconn - server->nleaving >= opt->connections_max) ||
             (opt->strangers_max > 0 && server->nstrangers >= opt->strangers_max))
        room = ST_REJECT_TOTAL;
    if (room != ST_REJECT_COUNT)
        victim = first_to_go(server, room == ST_REJECT_TOTAL ? NULL : key);
    count(server->peers, key, 1);
    count(server->strangers, key, 1);
    server->nstrangers++;
    server->nconn++;
    conn->next = server->conns;
    if (conn->next)
        conn->next->prev = conn;
    server->conns = conn;
    if (victim)
        cut(server, victim);
    else if (room != ST_REJECT_COUNT)
        cut(server, conn);
    if (!victim)
        why = room;
    pthread_mutex_unlock(&server->lock);
    if (victim)
        st_stats_reject(server->stats, room);
    return why;
}

int64_t st_conn_patience_ms(const st_conn *conn)
{
    const st_http_options *opt = &conn->server->opt;

    return is_known(conn) ? opt->header_ms : opt->stranger_ms;
}

bool st_conn_claim(st_conn *conn, st_call *call)
{
    st_http_server *server = conn->server;
    const st_http_options *opt = &server->opt;
    st_err err = {0};

    if (opt->claim && opt->claim(opt->ctx, &conn->claim, call->principal.who, &err) < 0) {
        st_call_set_header(call, "Retry-After", "1");
        st_stats_reject(server->stats, ST_REJECT_QUOTA);
        st_call_fail(call, &err);
        return false;
    }
    if (is_known(conn))
        return true;
    pthread_mutex_lock(&server->lock);
    if (!conn->cut) {
        count(server->strangers, conn->counted_as, -1);
        server->nstrangers--;
    }
    atomic_store_explicit(&conn->known, true, memory_order_relaxed);
    pthread_mutex_unlock(&server->lock);
    return true;
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
    atomic_init(&conn->known, false);
    atomic_init(&conn->deadline_ms, st_now_ms() + server->opt.stranger_ms);
    *socket_context = conn;
    why = enlist(server, conn);
    if (why != ST_REJECT_COUNT)
        st_stats_reject(server->stats, why);
}

static void closed(void **socket_context)
{
    st_conn *conn = ST_TAKE(*socket_context);
    st_http_server *server = conn->server;

    pthread_mutex_lock(&server->lock);
    if (conn->cut)
        server->nleaving--;
    else
        count_out(server, conn);
    server->nconn--;
    if (conn->prev)
        conn->prev->next = conn->next;
    else
        server->conns = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
    pthread_mutex_unlock(&server->lock);
    if (conn->claim)
        server->opt.unclaim(server->opt.ctx, conn->claim);
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
        atomic_store_explicit(&conn->deadline_ms, 0, memory_order_relaxed);
        st_stats_reject(server->stats, ST_REJECT_SLOW);
        cut(server, conn);
    }
}
