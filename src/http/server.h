/*
 * What the files of the server share: the server, its listeners and its
 * connections.
 *
 * Locks, in the order they are taken: server->lock, then a call's or a stream's
 * lock, then libmicrohttpd's own. The callbacks of libmicrohttpd are entered
 * with none of them held.
 */
#ifndef ST_HTTP_SERVER_H
#define ST_HTTP_SERVER_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/vec.h"
#include "http/http.h"
#include "http/limits.h"
#include "http/router.h"
#include "http/stats.h"

typedef struct st_conn st_conn;
typedef struct st_listener st_listener;

struct st_conn {
    st_http_server *server;
    int fd;
    st_peer peer;
    char counted_as[80]; /* key in server->peers: the address or its /64, or unix:UID */
    uint64_t key;        /* the same as a number, for rates */
    /* Monotonic; 0 while it is our turn. Past it the connection is cut. */
    atomic_int_fast64_t deadline_ms;
    /* Somebody known has used it: it is not the first to go when there are too many. */
    atomic_bool known;
    bool cut;      /* it is on its way out, and counts no more; with server->lock */
    void *claim;   /* of st_http_options.claim */
    st_call *call; /* that is on it; only in the thread that serves it */
    st_conn *prev, *next;
};

struct st_listener {
    st_http_server *server;
    struct MHD_Daemon *daemon;
    int fd; /* ours; libmicrohttpd has a duplicate */
    bool is_unix, is_tls, quiet;
    int quiet_fd; /* what a quiet one accepted by; closed with it */
    char *name;   /* path of the socket, or the address as given */
    char *cert_file, *key_file;
};

struct st_http_server {
    st_http_options opt; /* without zeros */
    st_router *router;
    st_stats *stats;
    st_http_limits *limits;
    uint64_t id_seed;
    atomic_uint_fast64_t id_next;
    atomic_int running; /* calls between headers and end of answer, streams included */
    atomic_bool stopping;

    pthread_mutex_t lock; /* the rest */
    pthread_cond_t changed;
    bool closing; /* nothing may be suspended any more */
    bool ticker_runs, ticker_ends;
    pthread_t ticker;
    ST_VEC(st_listener *) listeners;
    ST_VEC(st_listener *) retired; /* had an older certificate; their connections go on */
    st_conn *conns;
    int nconn;
    int nleaving;      /* of these, that were cut */
    int nstrangers;    /* that are neither cut nor known */
    st_map *peers;     /* connections by counted_as */
    st_map *strangers; /* strangers by counted_as */
    st_stream *streams;
    int nstream;
    st_upgrade *upgrades; /* that have begun and are not closed */
    st_call *deferred;
};

int64_t st_now_us(void);
int64_t st_now_ms(void);

/* listen.c */
int st_listener_start(st_listener *listener, st_err *err);
void st_listener_quiet(st_listener *listener); /* accepts no more */
void st_listener_free(st_listener *listener);  /* stops it first */

/* connection.c: libmicrohttpd tells of a new connection and of its end; cls is the listener. */
void st_conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
                    enum MHD_ConnectionNotificationCode what);
/* The principal of the call uses the connection; false: it may not, and the call is answered. */
bool st_conn_claim(st_conn *conn, st_call *call);
/* How long it has to deliver the next headers. */
int64_t st_conn_patience_ms(const st_conn *conn);
/* Cuts what is past its deadline; with server->lock held. */
void st_conns_cut_late(st_http_server *server, int64_t now_ms);

/* stream.c; the first two with server->lock held. */
void st_streams_keep_alive(st_http_server *server, int64_t now_ms);
void st_streams_say_bye(st_http_server *server);

/* upgrade.c: shuts those that have begun, and waits until their owners have closed them. */
void st_upgrades_end(st_http_server *server);

/* An address as text, and what its connections are counted as: an IPv6 address is its /64. Untouched where it is neither
 * IPv4 nor IPv6. */
struct sockaddr;
void st_address_names(const struct sockaddr *addr, char *text, size_t size, char *counted_as,
                      size_t counted_size);

#endif
