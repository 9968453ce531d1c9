/*
 * Event streams. Every notice goes to the streams that stand at its account or above it; the last
 * few hundred of each account are kept, so that a client that was cut off can go on where it was.
 * They are kept by account, so that a busy neighbour pushes out nobody's but its own.
 *
 * Streams are kept in lists by the account they stand at. A notice walks from its account up to
 * the cluster and finds its streams there, so a thousand tenants who watch cost a notice of one of
 * them nothing.
 */
#include "api/events.h"

#include <stdlib.h>
#include <string.h>

#include "api/sessions.h"
#include "api/state.h"
#include "base/mem.h"
#include "base/num.h"
#include "control/bookings.h"

#define KEPT 512 /* of each account */

typedef struct watcher {
    st_stream *stream;
    struct watcher *next;
    st_event_filter filter;
    int64_t token;    /* whose it is; 0: the local socket's */
    uint64_t session; /* 0: not of a browser's */
    bool over;        /* it was ended here */
    bool admin;       /* hears what is for admins */
    struct place *place;
    st_hub *hub;
} watcher;

typedef struct kept {
    uint64_t seq, job;
    char *text, *node; /* node NULL: of none */
    const char *kind;
    bool admins; /* for nobody else */
} kept;

/* The streams of one account, and what happened in it. Never freed before the hub: of an account that was
 * removed those above it may still ask. */
typedef struct place {
    char *account;
    int64_t serial; /* whose it is, whoever has the name now */
    watcher *first;
    ST_VEC(kept) ring; /* grows to KEPT, then the oldest makes room */
    size_t oldest;
    uint64_t dropped; /* seq of the last that had to go; 0: none */
} place;

struct st_hub {
    st_api *api;
    st_events_log *log; /* what was told; NULL: it is not kept */
    pthread_mutex_t lock;
    ST_VEC(place *) places;
    st_map *at;
    size_t streams;
};

st_hub *st_hub_new(st_api *api)
{
    st_hub *hub = st_xcalloc(1, sizeof *hub);

    hub->api = api;
    hub->at = st_map_new();
    if (api->options.events_dir)
        hub->log = st_events_log_new(api->options.events_dir, api->options.events_keep_ms,
                                     api->options.clock(api->options.ctx));
    ST_ASSERT(pthread_mutex_init(&hub->lock, NULL) == 0);
    return hub;
}

void st_hub_free(st_hub *hub)
{
    if (!hub)
        return;
    for (size_t i = 0; i < hub->places.n; i++) {
        place *p = hub->places.v[i];

        for (size_t k = 0; k < p->ring.n; k++) {
            free(p->ring.v[k].text);
            free(p->ring.v[k].node);
        }
        st_vec_free(&p->ring);
        free(p->account);
        free(p);
    }
    st_vec_free(&hub->places);
    st_map_free(hub->at);
    pthread_mutex_destroy(&hub->lock);
    st_events_log_free(hub->log);
    free(hub);
}

const st_events_log *st_hub_log(const st_hub *hub)
{
    return hub->log;
}

size_t st_hub_streams(st_hub *hub)
{
    size_t n;

    pthread_mutex_lock(&hub->lock);
    n = hub->streams;
    pthread_mutex_unlock(&hub->lock);
    return n;
}

/* What happened in an account that is gone is kept under the name the directory has for it. */
static void bury(st_hub *hub, int64_t i)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf name = {0};
    place *p = hub->places.v[i];

    st_strbuf_addf(&name, ST_GONE_NAME, p->account, (long long)p->serial);
    st_map_del(hub->at, p->account);
    free(p->account);
    p->account = st_strbuf_take(&name);
    st_map_put(hub->at, p->account, i);
}

/* The account's own place; NULL: it has none. */
static place *find_place(st_hub *hub, const char *account)
{
    int64_t i;

    if (!st_map_get(hub->at, account, &i))
        return NULL;
    if (hub->places.v[i]->serial == st_directory_serial(hub->api->dir, account))
        return hub->places.v[i];
    bury(hub, i); /* of one that had the name before */
    return NULL;
}

static place *place_of(st_hub *hub, const char *account)
{
    place *p = find_place(hub, account);

    if (p)
        return p;
    p = st_xcalloc(1, sizeof *p);
    p->account = st_xstrdup(account);
    p->serial = st_directory_serial(hub->api->dir, account);
    st_map_put(hub->at, account, (int64_t)hub->places.n);
    st_vec_push(&hub->places, p);
    return p;
}

static void send_to(st_hub *hub, const watcher *w, const kept *k, const char *account)
{
    char id[ST_ID_TEXT];

    if (w->over || (k->admins && !w->admin) ||
        !st_event_passes(hub->api, &w->filter, k->job, k->kind, account, k->node))
        return;
    st_control_name(hub->api->control, 'e', k->seq, id);
    st_stream_send(w->stream, id, k->kind, k->text, strlen(k->text));
}

static void write_notice(const st_hub *hub, const st_notice *n, st_strbuf *out)
{
    char id[ST_ID_TEXT];

    st_strbuf_addc(out, '{');
    st_out_time(out, "at", n->at_ms);
    st_out_text(out, "kind", n->kind);
    if (n->job != 0) {
        st_control_id_text(hub->api->control, n->job, id);
        st_out_text(out, "job", id);
        st_out_text(out, "account", n->account);
        st_out_text(out, "state", n->state);
    }
    if (n->booking != 0) {
        st_control_name(hub->api->control, ST_BOOKING_ID, n->booking, id);
        st_out_text(out, "booking", id);
        st_out_raw(out, "degraded", n->degraded ? "true" : "false");
    }
    if (n->job == 0 && n->state)
        st_out_text(out, "state", n->state);
    if (n->word) {
        st_out_text(out, "by", n->word->by);
        st_out_text(out, "reason", n->word->reason);
    }
    if (n->grants)
        st_out_raw(out, "grants", n->grants);
    if (n->name)
        st_out_text(out, n->job ? "name" : n->account[0] ? "account" : "node", n->name);
    if (n->budget) {
        st_strbuf_addf(out, ",\"threshold_percent\":%s",
                       st_fmt_milli((char[ST_FMT_MAX]){0}, n->budget->threshold_bp * 10));
        st_out_money(out, n->budget->of_cap ? "cap" : "budget", n->budget->of_udollars);
        st_out_money(out, "spent", n->budget->spent_udollars);
    }
    if (n->anomaly) {
        if (n->anomaly->user)
            st_out_text(out, "user", n->anomaly->user);
        st_out_money(out, "cost", n->anomaly->cost_udollars);
        st_out_money(out, "usual", n->anomaly->usual_udollars);
    }
    if (n->cap) {
        st_out_text(out, "does", n->cap->does);
        if (n->cap->at_cap) {
            st_out_text(out, "at_cap", n->cap->at_cap);
            st_out_money(out, "cap", n->cap->cap_udollars);
            st_out_money(out, "spent", n->cap->spent_udollars);
        }
    }
    if (n->deadline)
        st_out_text(out, "deadline", n->deadline);
    if (n->node) {
        st_out_text(out, "node", n->node);
        st_out_text(out, "then", n->then);
    }
    if (n->reason)
        st_out_text(out, "reason", n->reason);
    if (n->incident.flag) {
        st_out_text(out, "flag", n->incident.flag);
        st_out_text(out, "reason", n->incident.reason);
    }
    if (n->incident.id != 0) {
        st_control_name(hub->api->control, ST_INCIDENT_ID, n->incident.id, id);
        st_out_text(out, "incident", id);
        st_out_text(out, "fault", st_fault_name(n->incident.kind));
        st_out_text(out, "cause", st_cause_name(st_fault_cause(n->incident.kind)));
        if (n->incident.reason)
            st_out_text(out, "reason", n->incident.reason);
    }
    if (n->fx->until_ms > 0 && n->fx->until_ms != ST_TIME_NEVER)
        st_out_time(out, "until", n->fx->until_ms);
    st_strbuf_addc(out, '}');
}

static const kept *keep(place *p, kept k)
{
    kept *at;

    if (p->ring.n < KEPT) {
        st_vec_push(&p->ring, k);
        return &p->ring.v[p->ring.n - 1];
    }
    at = &p->ring.v[p->oldest];
    p->oldest = (p->oldest + 1) % KEPT;
    p->dropped = at->seq;
    free(at->text);
    free(at->node);
    *at = k;
    return at;
}

/* The node that it is about; NULL: none. */
static const char *node_of(const st_notice *n)
{
    return n->node ? n->node : !n->job && !n->account[0] ? n->name : NULL;
}

static void log_event(st_hub *hub, const st_notice *n, const char *text)
{
    const st_logged_event e = {.seq = n->seq,
                               .job = n->job,
                               .at_ms = n->at_ms,
                               .serial = st_directory_serial(hub->api->dir, n->account),
                               .org = st_directory_org(hub->api->dir, n->account),
                               .admins = n->anomaly != NULL,
                               .kind = n->kind,
                               .account = n->account,
                               .node = node_of(n),
                               .text = text};

    st_events_log_add(hub->log, &e);
}

void st_hub_send(st_hub *hub, const st_notice *n)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    const char *account = n->account, *node = node_of(n);
    const kept *k;

    write_notice(hub, n, &text);
    if (hub->log)
        log_event(hub, n, st_strbuf_str(&text));
    pthread_mutex_lock(&hub->lock);
    k = keep(place_of(hub, account), (kept){.seq = n->seq,
                                            .job = n->job,
                                            .text = st_strbuf_take(&text),
                                            .node = node ? st_xstrdup(node) : NULL,
                                            .kind = n->kind,
                                            .admins = n->anomaly != NULL});
    for (; account; account = st_directory_parent(hub->api->dir, account)) {
        const place *p = find_place(hub, account);

        for (const watcher *w = p ? p->first : NULL; w; w = w->next)
            send_to(hub, w, k, n->account);
    }
    pthread_mutex_unlock(&hub->lock);
}

static void watcher_free(watcher *w)
{
    st_event_filter_done(&w->filter);
    free(w);
}

static void closed(void *ctx, st_stream *stream)
{
    watcher *w = ctx;
    st_hub *hub = w->hub;

    pthread_mutex_lock(&hub->lock);
    for (watcher **at = &w->place->first; *at; at = &(*at)->next) {
        if (*at == w) {
            *at = w->next;
            break;
        }
    }
    hub->streams--;
    pthread_mutex_unlock(&hub->lock);
    st_stream_unref(stream);
    watcher_free(w);
}

static bool is_open(const st_hub *hub, const watcher *w, int64_t now)
{
    return st_directory_opens(hub->api->dir, w->token, now) &&
           (w->session == 0 || st_session_lives(hub->api->sessions, w->session, now));
}

void st_hub_check(st_hub *hub, int64_t now)
{
    pthread_mutex_lock(&hub->lock);
    for (size_t i = 0; i < hub->places.n; i++)
        for (watcher *w = hub->places.v[i]->first; w; w = w->next)
            if (!w->over && !is_open(hub, w, now)) {
                w->over = true;
                st_stream_send(w->stream, NULL, "revoked", "{}", 2);
                st_stream_end(w->stream);
            }
    pthread_mutex_unlock(&hub->lock);
}

typedef struct seen {
    const kept *what;
    const char *account; /* its place's */
} seen;
typedef ST_VEC(seen) seen_list;

static int by_seq(const void *a, const void *b)
{
    const seen *x = a, *y = b;

    return (x->what->seq > y->what->seq) - (x->what->seq < y->what->seq);
}

/* What came after `last` in the account and those below; false when some of it is gone, or when
 * `last` is no event of theirs: somebody else's is as unknown as one that never was. */
static bool missed(st_hub *hub, uint64_t last, const char *account, seen_list *ret)
{
    bool known = false;

    for (size_t i = 0; i < hub->places.n; i++) {
        const place *p = hub->places.v[i];

        find_place(hub, p->account); /* which has its right name now */
        if (!st_directory_within(hub->api->dir, p->account, account))
            continue;
        if (p->dropped > last)
            return false;
        for (size_t k = 0; k < p->ring.n; k++) {
            known = known || p->ring.v[k].seq == last;
            if (p->ring.v[k].seq > last)
                st_vec_push(ret, ((seen){&p->ring.v[k], p->account}));
        }
    }
    return known;
}

/* What came after the event the client saw last; or that it must list again. */
static void catch_up(st_hub *hub, const watcher *w, const char *last, const char *account)
{
    seen_list list = {0};
    uint64_t seq;

    if (!st_control_named(hub->api->control, 'e', last, &seq) ||
        !missed(hub, seq, account, &list)) {
        st_stream_send(w->stream, NULL, "reset", "{}", 2);
    } else {
        if (list.n > 1)
            qsort(list.v, list.n, sizeof *list.v, by_seq);
        for (size_t i = 0; i < list.n; i++)
            send_to(hub, w, list.v[i].what, list.v[i].account);
    }
    st_vec_free(&list);
}

void st_api_events(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_hub *hub = api->hub;
    const st_identity who = *st_api_who(call);
    const char *last = st_call_last_event_id(call);
    ST_CLEANUP(st_freep) char *from = last ? st_xstrdup(last) : NULL;
    watcher *w = st_xcalloc(1, sizeof *w);

    w->hub = hub;
    w->token = who.token;
    w->admin = who.role == ST_ROLE_ADMIN || who.role == ST_ROLE_OWNER;
    w->session = st_api_caller(call)->session;
    if (!st_api_charge(api, call, ST_AL_STREAMS)) {
        free(w);
        return;
    }
    if (!st_event_filter_read(api, call, &w->filter)) {
        watcher_free(w);
        return;
    }
    pthread_mutex_lock(&hub->lock);
    w->place = place_of(hub, who.account);
    w->stream = st_call_stream(call, closed, w);
    if (!w->stream) {
        watcher_free(w);
    } else {
        hub->streams++;
        w->next = w->place->first;
        w->place->first = w;
        if (from)
            catch_up(hub, w, from, who.account);
    }
    pthread_mutex_unlock(&hub->lock);
}
