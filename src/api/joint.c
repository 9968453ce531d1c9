/*
 * WebSockets of services (api/joint.h).
 */
#include "api/joint.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "api/tunnel_state.h"
#include "base/mem.h"

struct st_joint {
    st_tunnels *all;
    st_call *call;
    int fd;
    st_strbuf early; /* of the replica */
    st_relay_rule rule;
    void (*over)(void *ctx);
    void *ctx;

    pthread_mutex_t lock;
    bool joined, cut;
};

static void joint_free(st_joint *j)
{
    j->over(j->ctx);
    if (j->fd >= 0)
        close(j->fd);
    st_strbuf_done(&j->early);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

static void on_over(void *ctx, st_relay_why why, const int64_t moved[2])
{
    (void)why, (void)moved;
    joint_free(ctx);
}

static void close_upgrade(void *owner)
{
    st_upgrade_close(owner);
}

static void on_client(void *ctx, st_upgrade *up, const char *early, size_t n)
{
    st_joint *j = ctx;
    bool joined = false;

    pthread_mutex_lock(&j->lock);
    if (up && !j->cut) {
        const st_relay_end client = {.fd = st_upgrade_fd(up),
                                     .close = close_upgrade,
                                     .recv = st_upgrade_recv,
                                     .send = st_upgrade_send,
                                     .owner = up,
                                     .whole = st_upgrade_is_tls(up),
                                     .early = early,
                                     .n = n};
        const st_relay_end replica = {.fd = j->fd, .early = j->early.s, .n = j->early.n};

        j->fd = -1;
        joined = j->joined = true;
        st_relay_join(j->all->relay, &client, &replica, &j->rule);
    }
    pthread_mutex_unlock(&j->lock);
    if (joined)
        return;
    if (up)
        st_upgrade_close(up);
    joint_free(j);
}

/* ---- the handshake ---------------------------------------------------------------------------------- */

static int count(const st_upstream *up, const char *name)
{
    int n = 0;

    for (size_t i = 0; i < up->headers.n; i++)
        n += strcasecmp(up->headers.v[i].name, name) == 0;
    return n;
}

static const char *find_fault(const st_upstream *up)
{
    const char *to = st_upstream_header_of(up, "Upgrade");

    if (!to || count(up, "Upgrade") != 1 || strcasecmp(to, ST_WEBSOCKET) != 0)
        return "it switches to something that is no WebSocket";
    if (count(up, "Sec-WebSocket-Accept") != 1 || count(up, "Sec-WebSocket-Protocol") > 1 ||
        count(up, "Sec-WebSocket-Extensions") > 1)
        return "its handshake is none";
    if (count(up, "Content-Length") + count(up, "Transfer-Encoding") > 0)
        return "its handshake has a body";
    return NULL;
}

static void tell_client(st_call *call, const st_upstream *up)
{
    static const char *const names[] = {"Sec-WebSocket-Accept", "Sec-WebSocket-Protocol",
                                        "Sec-WebSocket-Extensions"};

    for (size_t i = 0; i < ST_ARRAY_LEN(names); i++) {
        const char *value = st_upstream_header_of(up, names[i]);

        if (value)
            st_call_set_header(call, names[i], value);
    }
}

st_joint *st_joint_new(st_tunnels *all, const st_joint_spec *spec)
{
    const char *fault = find_fault(spec->up);
    st_err err = {0};
    st_joint *j;

    if (fault) {
        close(spec->fd);
        st_fail(&err, ST_EDOWN, "the replica's answer makes no sense: %s", fault);
        st_call_fail(spec->call, &err);
        return NULL;
    }
    j = st_xcalloc(1, sizeof *j);
    j->all = all;
    j->call = spec->call;
    j->fd = spec->fd;
    j->over = spec->over;
    j->ctx = spec->ctx;
    if (spec->n > 0)
        st_strbuf_addn(&j->early, spec->early, spec->n);
    pthread_mutex_init(&j->lock, NULL);
    pthread_mutex_lock(&all->lock);
    j->rule = (st_relay_rule){
        .group = ++all->groups, .idle_ms = spec->idle_ms, .over = on_over, .ctx = j};
    pthread_mutex_unlock(&all->lock);
    tell_client(j->call, spec->up);
    return j;
}

void st_joint_begin(st_joint *j)
{
    st_call_upgrade(ST_TAKE(j->call), ST_WEBSOCKET, on_client, j);
}

void st_joint_cut(st_joint *j)
{
    if (!j)
        return;
    pthread_mutex_lock(&j->lock);
    j->cut = true;
    if (j->joined)
        st_relay_cut(j->all->relay, j->rule.group);
    pthread_mutex_unlock(&j->lock);
}
