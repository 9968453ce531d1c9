/*
 * The thread that joins sockets (tunnel/tunnel.h).
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "tunnel/tunnel.h"

#define SWEEP_MS 500
#define EVENTS   64
#define READS    4 /* of one direction before others have their turn */

typedef struct pair pair;

typedef struct side {
    pair *of;
    int fd;
    st_relay_end end;
    bool whole;
    uint32_t wants;    /* what epoll was told */
    bool ended;        /* nothing more comes from it */
    bool passed;       /* and the other side was told so */
    bool deaf;         /* it takes nothing more; what it has said last is still to be had */
    bool gone;         /* it hung up; epoll has nothing more to say of it */
    char *held;        /* from it, and not yet taken by the other */
    size_t at, n, cap; /* of these: from `at`, n bytes */
    int64_t moved;
} side;

struct pair {
    side side[2];
    st_relay_rule rule;
    int64_t moved_ms;
    bool over;
    bool more; /* it had its turn, and may have more to say than a poll shows */
    st_relay_why why;
    size_t place; /* in relay.pairs */
};

struct st_relay {
    int epoll, wake;
    pthread_t thread;
    char *scratch;
    ST_VEC(pair *) pairs; /* the thread's, like what follows */
    ST_VEC(pair *) dead;
    atomic_size_t count;
    bool more; /* some pair has */

    pthread_mutex_t lock; /* the rest */
    bool ends;
    ST_VEC(pair *) fresh;
    ST_VEC(uint64_t) cuts;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static side *other(side *s)
{
    return &s->of->side[s == &s->of->side[0]];
}

static void end_pair(st_relay *r, pair *p, st_relay_why why)
{
    if (p->over)
        return;
    p->over = true;
    p->why = why;
    for (int i = 0; i < 2; i++)
        epoll_ctl(r->epoll, EPOLL_CTL_DEL, p->side[i].fd, NULL);
    st_vec_push(&r->dead, p);
}

/* After the turn: events of it may have been reported together with others. */
static void bury(st_relay *r)
{
    for (size_t i = 0; i < r->dead.n; i++) {
        pair *p = r->dead.v[i], *last = r->pairs.v[r->pairs.n - 1];
        const int64_t moved[2] = {p->side[0].moved, p->side[1].moved};

        r->pairs.v[p->place] = last;
        last->place = p->place;
        r->pairs.n--;
        atomic_fetch_sub(&r->count, 1);
        for (int k = 0; k < 2; k++) {
            side *s = &p->side[k];

            if (s->end.close)
                s->end.close(s->end.owner);
            else
                close(s->fd);
            free(s->held);
        }
        if (p->rule.over)
            p->rule.over(p->rule.ctx, p->why, moved);
        free(p);
    }
    r->dead.n = 0;
}

/* ---- moving bytes --------------------------------------------------------------------------------- */

static void hold(side *from, const char *bytes, size_t n)
{
    if (n > from->cap) {
        free(from->held);
        from->held = st_xmalloc(n);
        from->cap = n;
    }
    memmove(from->held, bytes, n);
    from->at = 0;
    from->n = n;
}

static ssize_t said(ssize_t n)
{
    return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? -1 : -2;
}

/* How much the other side takes now. */
static size_t give(side *to, const char *bytes, size_t n)
{
    if (to->deaf)
        return n;
    ssize_t sent = to->end.send ? to->end.send(to->end.owner, bytes, n)
                                : said(send(to->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT));

    to->deaf = sent < -1;
    return to->deaf ? n : (size_t)ST_MAX(sent, 0);
}

static void flush(side *from)
{
    size_t sent = 1;

    if (from->n == 0)
        return;
    while (from->n > 0 && sent > 0) {
        sent = give(other(from), from->held + from->at, from->n);
        from->moved += (int64_t)sent;
        from->at += sent;
        from->n -= sent;
    }
    if (from->n == 0) { /* an idle pair holds nothing */
        free(ST_TAKE(from->held));
        from->cap = from->at = 0;
    }
}

/* One piece; false: the pair is broken. *ret_more: there may be more. */
static bool move_piece(st_relay *r, side *from, bool *ret_more)
{
    ssize_t got = from->end.recv ? from->end.recv(from->end.owner, r->scratch, ST_RELAY_BYTES)
                                 : said(recv(from->fd, r->scratch, ST_RELAY_BYTES, MSG_DONTWAIT));
    size_t sent;

    *ret_more = false;
    if (got < 0)
        return got == -1;
    if (got == 0) {
        from->ended = true;
        return true;
    }
    sent = give(other(from), r->scratch, (size_t)got);
    from->moved += (int64_t)sent;
    if (sent < (size_t)got) {
        hold(from, r->scratch + sent, (size_t)got - sent);
        flush(from); /* some take a part at a time */
        return true;
    }
    *ret_more = true;
    return true;
}

static bool move(st_relay *r, side *from)
{
    int64_t before = from->moved;
    bool more = true, whole = true;

    flush(from);

    for (int i = 0; whole && more && (i < READS || from->gone) && from->n == 0 && !from->ended; i++)
        whole = move_piece(r, from, &more);
    if (from->moved != before)
        from->of->moved_ms = now_ms();
    if (more && from->n == 0 && !from->ended)
        from->of->more = r->more = true;
    return whole;
}

/* What came last was passed on: the other side hears that it was the last. False: and with that all is said. */
static bool pass_end(side *from)
{
    side *to = other(from);

    if (!from->ended || from->n > 0)
        return true;
    if (!from->passed && !to->whole)
        shutdown(to->fd, SHUT_WR);
    from->passed = true;
    return !to->whole && !to->passed && !from->gone && !from->deaf;
}

static void listen_for(st_relay *r, side *s)
{
    uint32_t wants = (s->n == 0 && !s->ended ? (uint32_t)EPOLLIN : 0) |
                     (other(s)->n > 0 ? (uint32_t)EPOLLOUT : 0);
    struct epoll_event e = {.events = wants, .data.ptr = s};

    if (wants == s->wants || s->gone)
        return;
    s->wants = wants;
    epoll_ctl(r->epoll, EPOLL_CTL_MOD, s->fd, &e);
}

static void look(st_relay *r, pair *p)
{
    p->more = false;
    for (int i = 0; i < 2; i++)
        if (!move(r, &p->side[i])) {
            end_pair(r, p, ST_RELAY_DONE);
            return;
        }
    if (!pass_end(&p->side[0]) || !pass_end(&p->side[1])) {
        end_pair(r, p, ST_RELAY_DONE);
        return;
    }
    listen_for(r, &p->side[0]);
    listen_for(r, &p->side[1]);
}

/* Nothing is wanted of a side that hung up, and epoll would say so again and again. What it said last may still be held. */
static void hung_up(st_relay *r, side *s)
{
    if (s->n == 0) {
        end_pair(r, s->of, ST_RELAY_DONE);
        return;
    }
    epoll_ctl(r->epoll, EPOLL_CTL_DEL, s->fd, NULL);
    s->gone = true;
}

/* ---- the thread ------------------------------------------------------------------------------------- */

static void take_in(st_relay *r)
{
    ST_VEC(pair *) fresh = {0};
    ST_VEC(uint64_t) cuts = {0};

    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->fresh.n; i++)
        st_vec_push(&fresh, r->fresh.v[i]);
    for (size_t i = 0; i < r->cuts.n; i++)
        st_vec_push(&cuts, r->cuts.v[i]);
    r->fresh.n = r->cuts.n = 0;
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < fresh.n; i++) {
        pair *p = fresh.v[i];

        p->place = r->pairs.n;
        p->moved_ms = now_ms();
        st_vec_push(&r->pairs, p);
        for (int k = 0; k < 2; k++) {
            struct epoll_event e = {.data.ptr = &p->side[k]};

            epoll_ctl(r->epoll, EPOLL_CTL_ADD, p->side[k].fd, &e);
        }
        look(r, p);
    }
    for (size_t c = 0; c < cuts.n; c++)
        for (size_t i = 0; i < r->pairs.n; i++)
            if (r->pairs.v[i]->rule.group == cuts.v[c])
                end_pair(r, r->pairs.v[i], ST_RELAY_CUT);
    st_vec_free(&fresh);
    st_vec_free(&cuts);
}

static void sweep(st_relay *r, int64_t now)
{
    for (size_t i = 0; i < r->pairs.n; i++) {
        pair *p = r->pairs.v[i];

        if (p->rule.idle_ms > 0 && now - p->moved_ms >= p->rule.idle_ms)
            end_pair(r, p, ST_RELAY_IDLE);
    }
}

static void look_again(st_relay *r)
{
    if (!r->more)
        return;
    r->more = false;
    for (size_t i = 0; i < r->pairs.n; i++)
        if (r->pairs.v[i]->more && !r->pairs.v[i]->over)
            look(r, r->pairs.v[i]);
}

static bool over(st_relay *r)
{
    bool ends;

    pthread_mutex_lock(&r->lock);
    ends = r->ends;
    pthread_mutex_unlock(&r->lock);
    return ends;
}

static void *run(void *arg)
{
    st_relay *r = arg;
    struct epoll_event events[EVENTS];
    int64_t swept = now_ms();

    while (!over(r)) {
        int n = epoll_wait(r->epoll, events, EVENTS, r->more ? 0 : SWEEP_MS);
        int64_t now = now_ms();

        for (int i = 0; i < n; i++) {
            side *s = events[i].data.ptr;
            uint64_t times;

            if (!s) {
                while (read(r->wake, &times, sizeof times) > 0)
                    ;
            } else if (!s->of->over) {
                if ((events[i].events & (EPOLLERR | EPOLLHUP)) && s->wants == 0)
                    hung_up(r, s);
                else
                    look(r, s->of);
            }
        }
        look_again(r);
        take_in(r);
        if (now - swept >= SWEEP_MS) {
            sweep(r, now);
            swept = now;
        }
        bury(r);
    }
    take_in(r);
    for (size_t i = 0; i < r->pairs.n; i++)
        end_pair(r, r->pairs.v[i], ST_RELAY_CUT);
    bury(r);
    return NULL;
}

/* ---- from other threads ------------------------------------------------------------------------------ */

static void wake(st_relay *r)
{
    const uint64_t one = 1;

    ST_ASSERT(write(r->wake, &one, sizeof one) == sizeof one);
}

static void set_side(pair *p, int i, const st_relay_end *end)
{
    side *s = &p->side[i];

    *s = (side){.of = p, .fd = end->fd, .end = *end, .whole = end->whole};
    if (end->n > 0) {
        s->held = st_xmalloc(end->n);
        s->cap = s->n = end->n;
        memcpy(s->held, end->early, end->n);
    }
}

void st_relay_join(st_relay *r, const st_relay_end *a, const st_relay_end *b,
                   const st_relay_rule *rule)
{
    pair *p = st_xcalloc(1, sizeof *p);

    set_side(p, 0, a);
    set_side(p, 1, b);
    p->rule = *rule;
    atomic_fetch_add(&r->count, 1);
    pthread_mutex_lock(&r->lock);
    ST_ASSERT(!r->ends);
    st_vec_push(&r->fresh, p);
    pthread_mutex_unlock(&r->lock);
    wake(r);
}

void st_relay_cut(st_relay *r, uint64_t group)
{
    pthread_mutex_lock(&r->lock);
    st_vec_push(&r->cuts, group);
    pthread_mutex_unlock(&r->lock);
    wake(r);
}

size_t st_relay_count(st_relay *r)
{
    return atomic_load(&r->count);
}

int st_relay_new(st_relay **ret, st_err *err)
{
    st_relay *r = st_xcalloc(1, sizeof *r);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};

    r->epoll = epoll_create1(EPOLL_CLOEXEC);
    r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ST_ASSERT(r->epoll >= 0 && r->wake >= 0);
    ST_ASSERT(epoll_ctl(r->epoll, EPOLL_CTL_ADD, r->wake, &e) == 0);
    ST_ASSERT(pthread_mutex_init(&r->lock, NULL) == 0);
    r->scratch = st_xmalloc(ST_RELAY_BYTES);
    if (pthread_create(&r->thread, NULL, run, r) != 0) {
        pthread_mutex_destroy(&r->lock);
        close(r->epoll);
        close(r->wake);
        free(r->scratch);
        free(r);
        return st_fail(err, ST_EINTERNAL, "a thread for tunnels cannot be started");
    }
    *ret = r;
    return 0;
}

void st_relay_free(st_relay *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->ends = true;
    pthread_mutex_unlock(&r->lock);
    wake(r);
    pthread_join(r->thread, NULL);
    ST_ASSERT(r->pairs.n == 0 && r->fresh.n == 0);
    st_vec_free(&r->pairs);
    st_vec_free(&r->dead);
    st_vec_free(&r->fresh);
    st_vec_free(&r->cuts);
    pthread_mutex_destroy(&r->lock);
    close(r->epoll);
    close(r->wake);
    free(r->scratch);
    free(r);
}
