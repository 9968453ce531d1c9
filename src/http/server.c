/*
 * The server as a whole: options, the ticker, stopping, numbers.
 *
 * The ticker is one thread that does what time demands: cuts connections past
 * their deadline, keeps idle streams alive, forgets idle callers, and stops
 * daemons whose certificate is outdated once their last connection is gone.
 */
#include "http/server.h"

#include <sodium.h>
#include <time.h>

#include "base/mem.h"
#include "http/call.h"

#define TICK_MS_MAX 500
#define TICK_MS_MIN 10
#define FAREWELL_MS 1000 /* for answers that were given as the server stopped */

int64_t st_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t st_now_ms(void)
{
    return st_now_us() / 1000;
}

#define OTHERWISE(field, value) ((void)(opt->field = opt->field ? opt->field : (value)))

static void fill_options(st_http_options *opt)
{
    OTHERWISE(threads, 2);
    OTHERWISE(connections_max, 4096);
    OTHERWISE(connections_per_peer, 1024);
    OTHERWISE(strangers_per_peer, 64);
    OTHERWISE(streams_max, 2048);
    OTHERWISE(header_bytes, 8192);
    OTHERWISE(target_bytes, 4096);
    OTHERWISE(body_max, 1 << 20);
    OTHERWISE(big_body_max, 64 << 20);
    OTHERWISE(header_ms, 30000);
    OTHERWISE(stranger_ms, ST_MIN(opt->header_ms, 5000));
    OTHERWISE(body_ms, 60000);
    OTHERWISE(rate_per_s, 200);
    OTHERWISE(stranger_rate_per_s, ST_MAX(opt->rate_per_s / 4, opt->rate_per_s < 0 ? -1 : 1));
    OTHERWISE(running_per_principal, 64);
    OTHERWISE(stream_bytes, 256 << 10);
    OTHERWISE(keepalive_ms, 15000);
}

#undef OTHERWISE

static int check_options(const st_http_options *opt, st_err *err)
{
    if (opt->threads < 1 || opt->threads > 256)
        return st_fail(err, ST_EINVAL, "http: threads must be 1 to 256, not %d", opt->threads);
    if (opt->header_bytes < 512 || opt->header_bytes > 1 << 20 || opt->target_bytes < 64)
        return st_fail(err, ST_EINVAL,
                       "http: headers must have 512 bytes to 1 MiB, and a target "
                       "at least 64 bytes");
    const struct {
        const char *name;
        int64_t value, lowest;
    } bounds[] = {
        {"body_max", (int64_t)opt->body_max, 0},
        {"big_body_max", (int64_t)opt->big_body_max, 0},
        {"header_ms", (int64_t)opt->header_ms, 1},
        {"body_ms", (int64_t)opt->body_ms, 1},
        {"stream_bytes", (int64_t)opt->stream_bytes, 1024},
        {"keepalive_ms", (int64_t)opt->keepalive_ms, 1},
    };
    for (size_t i = 0; i < ST_ARRAY_LEN(bounds); i++)
        if (bounds[i].value < bounds[i].lowest)
            return st_fail(err, ST_EINVAL, "http: %s must be at least %lld, not %lld",
                           bounds[i].name, (long long)bounds[i].lowest, (long long)bounds[i].value);
    for (const st_route *route = opt->routes; route->method; route++)
        if (!(route->flags & ST_ROUTE_NO_AUTH) && !opt->authenticate)
            return st_fail(err, ST_EINVAL, "route %s needs a caller, but nobody authenticates",
                           route->id);
    return 0;
}

/* ---- the ticker -------------------------------------------------------------------------- */

/* A daemon of an older certificate that has nothing left to do; off the list. */
static st_listener *take_drained(st_http_server *server)
{
    for (size_t i = 0; i < server->retired.n; i++) {
        st_listener *listener = server->retired.v[i];
        const union MHD_DaemonInfo *info =
            MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

        if (info && info->num_connections == 0) {
            st_vec_remove(&server->retired, i);
            return listener;
        }
    }
    return NULL;
}

static void *tick(void *cls)
{
    st_http_server *server = cls;
    int64_t every_ms = ST_MIN(server->opt.keepalive_ms, server->opt.stranger_ms) / 4;
    struct timespec until;

    every_ms = ST_MAX(TICK_MS_MIN, ST_MIN(every_ms, TICK_MS_MAX));
    pthread_mutex_lock(&server->lock);
    while (!server->ticker_ends) {
        int64_t now_ms = st_now_ms();
        st_listener *drained;

        st_conns_cut_late(server, now_ms);
        st_streams_keep_alive(server, now_ms);
        st_limits_sweep(server->limits, now_ms);
        if (server->opt.tick) {
            pthread_mutex_unlock(&server->lock);
            server->opt.tick(server->opt.ctx);
            pthread_mutex_lock(&server->lock);
        }
        while ((drained = take_drained(server))) {
            /* Stopping joins threads that may want the lock. */
            pthread_mutex_unlock(&server->lock);
            st_listener_free(drained);
            pthread_mutex_lock(&server->lock);
        }
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)(every_ms % 1000) * 1000000;
        until.tv_sec += every_ms / 1000 + until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (!server->ticker_ends)
            pthread_cond_timedwait(&server->changed, &server->lock, &until);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

int st_http_server_new(const st_http_options *options, st_http_server **ret, st_err *err)
{
    st_http_server *server;
    st_router *router = NULL;
    st_http_options opt = *options;
    pthread_condattr_t attr;
    int r;

    fill_options(&opt);
    if (check_options(&opt, err) < 0)
        return -ST_EINVAL;
    if (sodium_init() < 0)
        return st_fail(err, ST_EINTERNAL, "libsodium does not start");
    r = st_router_new(opt.routes, &router, err);
    if (r < 0)
        return r;
    server = st_xcalloc(1, sizeof(*server));
    server->opt = opt;
    server->router = router;
    server->stats = st_stats_new(opt.routes, st_router_count(router));
    server->limits = st_limits_new();
    server->peers = st_map_new();
    server->strangers = st_map_new();
    randombytes_buf(&server->id_seed, sizeof(server->id_seed));
    json_object_seed(0);
    pthread_mutex_init(&server->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&server->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&server->ticker, NULL, tick, server) != 0) {
        st_http_server_free(server);
        return st_fail(err, ST_EINTERNAL, "http: a thread cannot be started");
    }
    server->ticker_runs = true;
    *ret = server;
    return 0;
}

/* ---- stopping ---------------------------------------------------------------------------- */

static void wait_for_calls(st_http_server *server, int64_t grace_ms)
{
    int64_t until_ms = st_now_ms() + grace_ms;

    while (atomic_load_explicit(&server->running, memory_order_acquire) > 0 &&
           st_now_ms() < until_ms)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* From here on nothing is suspended. Calls that their owner answers at this moment take
 * themselves off the list. */
static void abandon_deferred(st_http_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->closing = true;
    while (server->deferred) {
        st_call *next;

        for (st_call *call = server->deferred; call; call = next) {
            next = call->next;
            pthread_mutex_lock(&call->lock);
            if (call->suspended) {
                if (call->prev)
                    call->prev->next = next;
                else
                    server->deferred = next;
                if (next)
                    next->prev = call->prev;
                st_call_abandon(call);
            }
            pthread_mutex_unlock(&call->lock);
        }
        if (server->deferred)
            pthread_cond_wait(&server->changed, &server->lock);
    }
    pthread_mutex_unlock(&server->lock);
    /* Also for those whose owner came first: their connections were resumed, and their answers are still to be sent. */
    wait_for_calls(server, FAREWELL_MS);
}

static void end_ticker(st_http_server *server)
{
    if (!server->ticker_runs)
        return;
    pthread_mutex_lock(&server->lock);
    server->ticker_ends = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->ticker, NULL);
    server->ticker_runs = false;
}

void st_http_server_stop(st_http_server *server, int64_t grace_ms)
{
    atomic_store(&server->stopping, true);
    end_ticker(server);
    for (size_t i = 0; i < server->listeners.n; i++)
        st_listener_quiet(server->listeners.v[i]);
    pthread_mutex_lock(&server->lock);
    st_streams_say_bye(server);
    pthread_mutex_unlock(&server->lock);
    st_upgrades_end(server);
    wait_for_calls(server, grace_ms);
    abandon_deferred(server);
    st_upgrades_end(server);
    for (size_t i = 0; i < server->listeners.n; i++)
        st_listener_free(server->listeners.v[i]);
    for (size_t i = 0; i < server->retired.n; i++)
        st_listener_free(server->retired.v[i]);
    st_vec_free(&server->listeners);
    st_vec_free(&server->retired);
    ST_ASSERT(server->nconn == 0 && server->nstream == 0);
}

void st_http_server_free(st_http_server *server)
{
    if (!server)
        return;
    st_http_server_stop(server, 0);
    st_router_free(server->router);
    st_stats_free(server->stats);
    st_limits_free(server->limits);
    st_map_free(server->peers);
    st_map_free(server->strangers);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

void st_http_server_metrics(st_http_server *server, st_strbuf *out)
{
    st_metrics m = {.out = out};
    int conns, streams;

    pthread_mutex_lock(&server->lock);
    conns = server->nconn;
    streams = server->nstream;
    pthread_mutex_unlock(&server->lock);
    st_stats_write(server->stats, &m);
    st_metrics_family(&m, "stint_http_connections", ST_METRIC_GAUGE, "Open connections.");
    st_metrics_int(&m, conns);
    st_metrics_family(&m, "stint_http_streams", ST_METRIC_GAUGE, "Open event streams.");
    st_metrics_int(&m, streams);
    st_metrics_family(&m, "stint_http_running", ST_METRIC_GAUGE,
                      "Calls between their headers and the end of their answer.");
    st_metrics_int(&m, atomic_load(&server->running));
    st_metrics_done(&m);
}
