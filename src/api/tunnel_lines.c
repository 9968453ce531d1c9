/*
 * Lines of tunnels: from the call that asks for one, over the agent that dials, to two sockets that are joined
 * (api/tunnels.h).
 */
#include "api/tunnel_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/park.h"
#include "base/mem.h"
#include "base/utf8.h"

#define DIAL_MS     20000 /* for a node's agent to dial */
#define TOLD_MS     5000  /* it is told again */
#define REFUSED_MAX 300   /* of what an agent says */

/* ---- lines ------------------------------------------------------------------------------------------ */

/* Without the lock; the line is nobody else's. */
static void line_free(line *l, const int64_t moved[2])
{
    st_tunnels *all = l->all;
    tunnel *t = l->of, *last = NULL;

    if (t) {
        pthread_mutex_lock(&all->lock);
        t->lines--;
        t->left_ms = st_tunnels_now();
        for (int i = 0; moved && i < 2; i++)
            t->moved[i] += moved[i];
        if (st_tunnel_lines[t->spec.kind] == 1 && !t->over) {
            st_tunnel_stop(all, t, l->why ? l->why : "it was left");
            (void)st_tunnel_let_go(t);
        }
        if (st_tunnel_let_go(t))
            last = t;
        pthread_mutex_unlock(&all->lock);
    }
    if (last)
        st_tunnel_done(all, last);
    free(l->order);
    st_strbuf_done(&l->early);
    free(l);
}

static void refuse_line(line *l, const st_err *err)
{
    st_call *call = l->call;
    st_tunnel_dialed *fn = l->fn;
    void *ctx = l->ctx;

    l->why = "it was refused";
    line_free(l, NULL);
    if (call)
        st_call_fail(call, err);
    else
        fn(ctx, -1, err);
}

static void on_over(void *ctx, st_relay_why why, const int64_t moved[2])
{
    line *l = ctx;

    l->why = why == ST_RELAY_IDLE ? "nothing moved for too long" : NULL;
    line_free(l, moved);
}

static void close_upgrade(void *owner)
{
    st_upgrade_close(owner);
}

static st_relay_end end_of(st_upgrade *up, const char *early, size_t n)
{
    return (st_relay_end){.fd = st_upgrade_fd(up),
                          .close = close_upgrade,
                          .recv = st_upgrade_recv,
                          .send = st_upgrade_send,
                          .owner = up,
                          .whole = st_upgrade_is_tls(up),
                          .early = early,
                          .n = n};
}

/* Unless its tunnel has ended meanwhile: its lines were cut before this one was among them. */
static bool join(line *l, const st_relay_end *client)
{
    const st_relay_end agent = end_of(l->agent, l->early.s, l->early.n);
    const st_relay_rule rule = {
        .group = l->of ? l->of->group : 0, .idle_ms = l->idle_ms, .over = on_over, .ctx = l};
    bool joined;

    pthread_mutex_lock(&l->all->lock);
    joined = !l->all->closed && !(l->of && l->of->over);
    if (joined)
        st_relay_join(l->all->relay, client, &agent, &rule);
    pthread_mutex_unlock(&l->all->lock);
    return joined;
}

static void on_client(void *ctx, st_upgrade *up, const char *early, size_t n)
{
    line *l = ctx;
    st_relay_end client;

    if (!up) {
        st_upgrade_close(l->agent);
        line_free(l, NULL);
        return;
    }
    client = end_of(up, early, n);
    if (join(l, &client))
        return;
    st_upgrade_close(up);
    st_upgrade_close(l->agent);
    line_free(l, NULL);
}

static void join_inside(line *l)
{
    st_tunnel_dialed *fn = l->fn;
    void *ctx = l->ctx;
    st_err err = {0};
    int fd[2] = {-1, -1};

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) == 0 &&
        join(l, &(st_relay_end){.fd = fd[1]})) {
        fn(ctx, fd[0], NULL);
        return;
    }
    if (fd[0] >= 0) {
        close(fd[0]);
        close(fd[1]);
    }
    st_upgrade_close(l->agent);
    st_fail(&err, ST_EDOWN, "stintd is stopping or has no descriptors left");
    refuse_line(l, &err);
}

static void on_agent(void *ctx, st_upgrade *up, const char *early, size_t n)
{
    line *l = ctx;
    st_err err = {0};

    if (!up) {
        st_fail(&err, ST_EDOWN, "the connection to the node broke; try again");
        refuse_line(l, &err);
        return;
    }
    l->agent = up;
    if (n > 0)
        st_strbuf_addn(&l->early, early, n);
    if (l->call)
        st_call_upgrade(ST_TAKE(l->call), ST_TUNNEL_PROTOCOL, on_client, l);
    else
        join_inside(l);
}

/* With the lock held. */
static line *take_line(st_tunnels *all, size_t i)
{
    line *l = all->waiting.v[i];

    all->waiting.v[i] = all->waiting.v[--all->waiting.n];
    return l;
}

/* Takes the line. */
void st_tline_put(st_tunnels *all, line *l)
{
    st_err err = {0};
    int32_t node = l->place.node;
    bool taken;

    l->all = all;
    l->made_ms = st_tunnels_now();
    st_tunnels_id('l', l->id);
    pthread_mutex_lock(&all->lock);
    taken = !all->closed && !(l->of && l->of->over);
    if (taken)
        st_vec_push(&all->waiting, l);
    pthread_mutex_unlock(&all->lock);
    if (taken) {
        st_park_wake(all->api->agent_park, ST_PARK_NODE(node), false);
        return;
    }
    st_fail(&err, ST_EDOWN, "stintd is stopping; try again in a moment");
    refuse_line(l, &err);
}

void st_tunnel_dial(st_tunnels *all, const st_tunnel_place *place, int port, int64_t idle_ms,
                    st_tunnel_dialed *fn, void *ctx)
{
    line *l = st_xcalloc(1, sizeof *l);
    st_strbuf order = {0};

    st_strbuf_addf(&order, ",\"kind\":\"forward\",\"port\":%d", port);
    *l = (line){
        .place = *place, .order = st_strbuf_take(&order), .idle_ms = idle_ms, .fn = fn, .ctx = ctx};
    st_tline_put(all, l);
}

/* ---- agents ----------------------------------------------------------------------------------------- */

bool st_tunnels_orders(st_tunnels *all, int32_t node, st_strbuf *out)
{
    int64_t now = st_tunnels_now();
    bool some = false;

    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->waiting.n; i++) {
        line *l = all->waiting.v[i];
        char name[ST_ID_TEXT];

        if (l->place.node != node || (l->told_ms > 0 && now - l->told_ms < TOLD_MS))
            continue;
        l->told_ms = now;
        st_control_id_text(all->api->control, l->place.job, name);
        st_strbuf_addf(out, "%s{\"id\":\"%s\",\"job\":\"%s\",\"stay\":%d,\"task\":%d%s}",
                       some ? "," : "[", l->id, name, l->place.stay, l->place.task,
                       l->of ? l->of->order : l->order);
        some = true;
    }
    pthread_mutex_unlock(&all->lock);
    if (some)
        st_strbuf_addc(out, ']');
    return some;
}

void st_tunnels_dialed(st_tunnels *all, st_call *call, int32_t node, const char *id,
                       const char *refused)
{
    char why[REFUSED_MAX + 1];
    st_err err = {0};
    line *l = NULL;

    if (!refused && !st_call_may_upgrade(call, ST_TUNNEL_PROTOCOL)) {
        st_fail(&err, ST_EINVAL,
                "a tunnel is dialed with Connection: Upgrade and Upgrade: " ST_TUNNEL_PROTOCOL);
        st_call_fail(call, &err);
        return;
    }
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->waiting.n && !l; i++)
        if (all->waiting.v[i]->place.node == node && all->waiting.v[i]->told_ms > 0 &&
            strcmp(all->waiting.v[i]->id, id) == 0)
            l = take_line(all, i);
    pthread_mutex_unlock(&all->lock);
    if (!l) {
        st_fail(&err, ST_ENOENT, "there is no such tunnel");
        st_call_fail(call, &err);
        return;
    }
    if (!refused) {
        st_call_upgrade(call, ST_TUNNEL_PROTOCOL, on_agent, l);
        return;
    }
    snprintf(why, sizeof why, "%s", refused);
    st_text_tame(why);
    st_fail(&err, ST_ESTATE, "%s", why);
    st_call_reply_empty(call, 204);
    refuse_line(l, &err);
}

/* ---- late ------------------------------------------------------------------------------------------ */

/* The next line that has waited too long, or whose tunnel is over; it is the caller's now. */
static line *late_line(st_tunnels *all, int64_t now, st_err *err)
{
    line *l = NULL;

    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->waiting.n && !l; i++) {
        line *w = all->waiting.v[i];

        if (all->closed)
            st_fail(err, ST_EDOWN, "stintd is stopping; try again in a moment");
        else if (w->of && w->of->over)
            st_fail(err, ST_ESTATE, "the tunnel has ended: %s", w->of->why);
        else if (now - w->made_ms >= DIAL_MS)
            st_fail(err, ST_EDOWN,
                    "the node of the task did not answer in %d s; is its agent as new as stintd?",
                    DIAL_MS / 1000);
        else
            continue;
        l = take_line(all, i);
    }
    pthread_mutex_unlock(&all->lock);
    return l;
}

void st_tlines_refuse_late(st_tunnels *all)
{
    int64_t now = st_tunnels_now();
    st_err err = {0};
    line *l;

    while ((l = late_line(all, now, &err)))
        refuse_line(l, &err);
}
