/*
 * Requests to services: which replica, what of a request goes there, and what of its answer comes back (api/gate.h).
 */
#include "api/gate.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "api/joint.h"
#include "base/mem.h"
#include "base/quote.h"

#define HEAD_MS 600000 /* a model may think for long */
#define IDLE_MS 300000
#define ROUTE   "/v1/services/"
#define CALL    "/call"

typedef struct errand errand;

struct st_gate {
    st_api *api;
    st_services *services;
    st_onwards *onwards;
    pthread_mutex_t lock;
    bool closed;
    int dialing;   /* those that hear of their sockets yet */
    errand *calls; /* all of them */
    pthread_cond_t quiet;
};

/* A request on its way, or a check. */
struct errand {
    st_gate *gate;
    errand *prev, *next; /* of calls */
    st_caller caller;
    int64_t bytes;       /* of its body, as they are counted */
    atomic_bool revoked; /* its caller's token is not good any more */
    st_joint *joint;     /* it became a WebSocket */
    st_onward onward;
    char kept[ST_SERVICE_KEPT_MAX];
    int64_t made_ms, serial;
    int stay;
    bool check;
    int64_t timeout_ms;
    st_svc_health health;
};

/* ---- calls that are under way --------------------------------------------------------------------- */

static void enlist(errand *e)
{
    st_gate *gate = e->gate;

    pthread_mutex_lock(&gate->lock);
    e->next = gate->calls;
    if (e->next)
        e->next->prev = e;
    gate->calls = e;
    pthread_mutex_unlock(&gate->lock);
}

/* It is over. */
static void errand_free(errand *e)
{
    st_gate *gate = e->gate;

    if (!e->check) {
        pthread_mutex_lock(&gate->lock);
        if (e->prev)
            e->prev->next = e->next;
        else
            gate->calls = e->next;
        if (e->next)
            e->next->prev = e->prev;
        pthread_cond_broadcast(&gate->quiet);
        pthread_mutex_unlock(&gate->lock);
    }
    if (e->bytes > 0)
        st_allowance_put_as(gate->api->allowance, e->caller.counted, ST_AL_CALL_BYTES, -e->bytes);
    free(e);
}

void st_gate_watch(st_gate *gate)
{
    st_api *api = gate->api;
    int64_t clock = api->options.clock(api->options.ctx);

    pthread_mutex_lock(&gate->lock);
    for (errand *e = gate->calls; e; e = e->next)
        if (!st_directory_opens(api->dir, e->caller.who.token, clock)) {
            atomic_store(&e->revoked, true);
            if (e->joint)
                st_joint_cut(e->joint);
        }
    pthread_mutex_unlock(&gate->lock);
}

/* More of a body whose length nobody said. */
static int count_bytes(void *ctx, size_t n, st_err *err)
{
    errand *e = ctx;
    int r = st_allowance_charge_as(e->gate->api->allowance, e->caller.counted, ST_AL_CALL_BYTES,
                                   (int64_t)n, e->caller.who.account, err);

    e->bytes += r == 0 ? (int64_t)n : 0;
    return r;
}

static bool alive(void *ctx)
{
    errand *e = ctx;

    return !atomic_load(&e->revoked);
}

/* ---- one at its replica ------------------------------------------------------------------------- */

/* The replica it is at; NULL: it is gone, and whatever has its name now is another one. With the lock held. */
static st_service_replica *replica_of(const errand *e, st_service **ret)
{
    st_service *s = st_services_kept(e->gate->services, e->kept);

    *ret = s;
    return s && s->made_ms == e->made_ms ? st_service_replica_of(s, e->serial) : NULL;
}

static void leave(errand *e)
{
    st_services *all = e->gate->services;
    st_service_replica *r;
    st_service *s;

    pthread_mutex_lock(&all->lock);
    r = replica_of(e, &s);
    if (r) {
        r->open--;
        s->last_ms = e->gate->api->options.clock(e->gate->api->options.ctx);
        if (r->left_ms > 0 && r->open == 0)
            pthread_cond_broadcast(&all->changed);
    }
    pthread_mutex_unlock(&all->lock);
}

/* What a check has found. */
static void note(errand *e, bool good, const char *trouble)
{
    st_services *all = e->gate->services;
    int64_t now = e->gate->api->options.clock(e->gate->api->options.ctx);
    st_service_replica *r;
    st_service *s;
    bool news;

    pthread_mutex_lock(&all->lock);
    r = replica_of(e, &s);
    if (r && r->stay == e->stay) {
        news = good != r->healthy || (!good && r->bad + 1 == s->failures);
        r->checking = false;
        r->healthy = good;
        r->bad = good ? 0 : r->bad + 1;
        r->check_ms = now + s->interval_ms;
        /* One that comes up is looked for more often. */
        if (!good && r->state == ST_SVC_STARTING)
            r->check_ms = now + ST_MIN(s->interval_ms, 1000);
        snprintf(r->trouble, sizeof r->trouble, "%s", good ? "" : trouble);
        if (news)
            pthread_cond_broadcast(&all->changed);
    }
    pthread_mutex_unlock(&all->lock);
}

static void over(void *ctx, int status, const st_err *err)
{
    errand *e = ctx;
    char text[160] = "";

    if (!e->check) {
        leave(e);
    } else if (status > 0) {
        snprintf(text, sizeof text, "its health check was answered with %d", status);
        note(e, status >= 200 && status < 400, text);
    } else {
        snprintf(text, sizeof text, "%.150s", err ? err->msg : "");
        note(e, false, text);
    }
    errand_free(e);
}

/* ---- WebSockets ------------------------------------------------------------------------------------ */

static void parted(void *ctx)
{
    errand *e = ctx;

    pthread_mutex_lock(&e->gate->lock);
    e->joint = NULL;
    pthread_mutex_unlock(&e->gate->lock);
    leave(e);
    errand_free(e);
}

/* The replica has said 101: its words and the client's are none of ours from here on. */
static void switched(void *ctx, st_call *call, const st_upstream *up, int fd, const char *early,
                     size_t n)
{
    errand *e = ctx;
    const st_joint_spec spec = {.call = call,
                                .up = up,
                                .fd = fd,
                                .early = early,
                                .n = n,
                                .idle_ms = e->gate->api->options.tunnel_idle_ms,
                                .over = parted,
                                .ctx = e};

    pthread_mutex_lock(&e->gate->lock);
    e->joint = st_joint_new(e->gate->api->tunnels, &spec);
    if (e->joint && atomic_load(&e->revoked))
        st_joint_cut(e->joint);
    pthread_mutex_unlock(&e->gate->lock);
    if (!e->joint)
        over(e, 0, NULL);
    else
        st_joint_begin(e->joint);
}

/* ---- dialing ------------------------------------------------------------------------------------- */

static void dialed(void *ctx, int fd, const st_err *err)
{
    errand *e = ctx;
    st_gate *gate = e->gate;

    if (e->check && e->health == ST_SVC_HEALTH_TCP && fd >= 0) {
        close(fd);
        st_strbuf_done(&e->onward.request);
        note(e, true, "");
        errand_free(e);
    } else {
        st_onward_begin(gate->onwards, &e->onward, fd, err);
    }
    pthread_mutex_lock(&gate->lock);
    gate->dialing--;
    pthread_cond_broadcast(&gate->quiet);
    pthread_mutex_unlock(&gate->lock);
}

static void give_up(errand *e)
{
    static const st_err stopping = {.code = ST_EDOWN, .msg = "stintd is stopping"};

    st_inflow_close(ST_TAKE(e->onward.in));
    if (e->onward.call)
        st_call_fail(ST_TAKE(e->onward.call), &stopping);
    st_strbuf_done(&e->onward.request);
    over(e, 0, &stopping);
}

/* From here on the errand is under way, whatever happens. */
static void dial(errand *e, const st_tunnel_place *place, int port)
{
    st_gate *gate = e->gate;
    bool closed;

    e->onward.over = over;
    e->onward.ctx = e;
    pthread_mutex_lock(&gate->lock);
    closed = gate->closed;
    gate->dialing += !closed;
    pthread_mutex_unlock(&gate->lock);
    if (closed)
        give_up(e);
    else
        st_tunnel_dial(gate->api->tunnels, place, port,
                       e->onward.switched ? gate->api->options.tunnel_idle_ms : IDLE_MS, dialed, e);
}

/* ---- headers ------------------------------------------------------------------------------------- */

static bool is_one_of(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (strcasecmp(*names, name) == 0)
            return true;
    return false;
}

static bool begins_with(const char *name, const char *prefix)
{
    return strncasecmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_plain(const char *value)
{
    for (; *value; value++)
        if ((unsigned char)*value < ' ' && *value != '\t')
            return false;
    return true;
}

/* What of a request a replica gets. Authorization and cookies are for stintd; what frames a message is said anew. */
static void pass_request(void *ctx, const char *name, const char *value)
{
    static const char *const names[] = {"Accept",
                                        "Accept-Encoding",
                                        "Accept-Language",
                                        "Cache-Control",
                                        "Content-Type",
                                        "Content-Encoding",
                                        "Content-Language",
                                        "If-Match",
                                        "If-None-Match",
                                        "If-Modified-Since",
                                        "If-Unmodified-Since",
                                        "If-Range",
                                        "Range",
                                        "User-Agent",
                                        "Traceparent",
                                        "Tracestate",
                                        "Idempotency-Key",
                                        NULL};
    st_strbuf *out = ctx;
    bool own = begins_with(name, "X-") && !begins_with(name, "X-Forwarded") &&
               !begins_with(name, "X-Real") && !begins_with(name, "X-Stint");

    if ((own || is_one_of(names, name)) && is_plain(value))
        st_strbuf_addf(out, "%s: %s\r\n", name, value);
}

/* What a WebSocket needs besides. */
static void pass_handshake(void *ctx, const char *name, const char *value)
{
    static const char *const names[] = {"Sec-WebSocket-Key", "Sec-WebSocket-Version",
                                        "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions", NULL};
    st_strbuf *out = ctx;

    if (is_one_of(names, name) && is_plain(value))
        st_strbuf_addf(out, "%s: %s\r\n", name, value);
}

/* Where a replica sends its client: within itself. */
static void pass_location(const errand *e, st_call *call, const char *value)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    const char *colon = strchr(value, ':');

    if (value[0] == '/' && (value[1] == '/' || value[1] == '\\'))
        return;
    if (value[0] == '/') {
        st_strbuf_add(&out, ROUTE);
        for (const char *c = e->kept; *c; c++)
            if (*c == '/')
                st_strbuf_add(&out, "%2F");
            else if (strchr("%?# \\", *c) || (unsigned char)*c >= 0x7f)
                st_strbuf_addf(&out, "%%%02X", (unsigned char)*c);
            else
                st_strbuf_addc(&out, *c);
        st_strbuf_add(&out, CALL);
    } else if (colon || strchr(value, '\\')) {
        return;
    }
    st_strbuf_add(&out, value);
    st_call_set_header(call, "Location", st_strbuf_str(&out));
}

/* What of an answer comes back: nothing that is kept, asked for or obeyed for the whole origin. */
static void pass_answer(void *ctx, st_call *call, const char *name, const char *value)
{
    static const char *const names[] = {"Accept-Ranges",
                                        "Cache-Control",
                                        "Content-Disposition",
                                        "Content-Encoding",
                                        "Content-Language",
                                        "Content-Range",
                                        "ETag",
                                        "Expires",
                                        "Last-Modified",
                                        "Retry-After",
                                        "Vary",
                                        NULL};
    static const char *const ours[] = {
        "X-Request-Id",     "X-Frame-Options", "X-Content-Type-Options",
        "X-Accel-Redirect", "X-Sendfile",      NULL};

    if (strcasecmp(name, "Location") == 0)
        pass_location(ctx, call, value);
    else if (is_one_of(names, name) || (begins_with(name, "X-") && !is_one_of(ours, name)))
        st_call_set_header(call, name, value);
}

/* ---- a request ------------------------------------------------------------------------------------ */

/* The replica that is ready and has the fewest requests; of those the one whose last began before the others'. With the lock
 * held. */
static st_service_replica *choose(st_service *s)
{
    st_service_replica *best = NULL;
    int64_t last = 0;

    for (size_t i = 0; i < s->replicas.n; i++) {
        st_service_replica *r = &s->replicas.v[i];

        last = ST_MAX(last, r->turn);
        if (r->state == ST_SVC_READY && r->left_ms == 0 &&
            (!best || r->open < best->open || (r->open == best->open && r->turn < best->turn)))
            best = r;
    }
    if (best)
        best->turn = last + 1;
    return best;
}

static void aim(errand *e, const st_service *s, const st_service_replica *r, st_tunnel_place *place,
                int *port)
{
    snprintf(e->kept, sizeof e->kept, "%s", s->kept);
    e->made_ms = s->made_ms;
    e->serial = r->serial;
    e->stay = r->stay;
    e->health = s->health;
    e->timeout_ms = s->timeout_ms;
    *place = (st_tunnel_place){.job = r->job, .stay = r->stay, .task = 0, .node = r->node};
    *port = s->port;
}

static int find(errand *e, const st_call *call, st_tunnel_place *place, int *port, st_err *err)
{
    st_services *all = e->gate->services;
    st_service_replica *r = NULL;
    st_service *s;

    pthread_mutex_lock(&all->lock);
    s = st_api_service_of(e->gate->api, st_api_who(call), st_call_param(call, "name"), err);
    if (s) {
        s->last_ms = e->gate->api->options.clock(e->gate->api->options.ctx);
        r = choose(s);
    }
    if (r && !r->agent) {
        r = NULL;
        st_fail(err, ST_ESTATE, "service %s is on simulated nodes, where nothing listens", s->name);
    } else if (r) {
        r->open++;
        aim(e, s, r, place, port);
    } else if (s) {
        st_fail(err, ST_EDOWN, "service %s has no replica that is ready; try again in a moment",
                s->name);
    }
    pthread_mutex_unlock(&all->lock);
    return r ? 0 : -err->code;
}

static void write_request(errand *e, const st_call *call)
{
    st_strbuf *out = &e->onward.request;
    const st_identity *who = st_api_who(call);
    const char *tail = st_call_tail(call), *query = st_call_raw_query(call),
               *method = st_call_method(call);
    /* Notebooks and others answer nobody who names another host: this is theirs, as with a forward. */
    st_strbuf_addf(out, "%s %s%s%s%s HTTP/1.1\r\nHost: localhost\r\n", method, tail[0] ? "" : "/",
                   tail, query[0] ? "?" : "", query);
    st_strbuf_add(out, e->onward.switched ? "Connection: Upgrade\r\nUpgrade: " ST_WEBSOCKET "\r\n"
                                          : "Connection: close\r\n");
    st_call_each_header(call, pass_request, out);
    if (e->onward.switched)
        st_call_each_header(call, pass_handshake, out);
    st_strbuf_addf(out, "X-Stint-Account: %s\r\nX-Stint-User: %s\r\n", who->account, who->user);
    if (e->onward.in && e->onward.chunked)
        st_strbuf_add(out, "Transfer-Encoding: chunked\r\n");
    else if (e->onward.in)
        st_strbuf_addf(out, "Content-Length: %lld\r\n", (long long)st_inflow_length(e->onward.in));
    else if (strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0)
        st_strbuf_add(out, "Content-Length: 0\r\n");
    st_strbuf_add(out, "\r\n");
}

/* What is written into the head as it was sent. */
static bool is_target(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || *text == 0x7f)
            return false;
    return true;
}

/* The body goes on as it comes: what is counted is what is said to come, or what has. */
static int take_body(errand *e, st_call *call, st_err *err)
{
    int64_t length;

    e->onward.in = st_call_inflow(call);
    if (!e->onward.in)
        return 0;
    length = st_inflow_length(e->onward.in);
    e->onward.chunked = length < 0;
    e->onward.body = count_bytes;
    return length > 0 ? count_bytes(e, (size_t)length, err) : 0;
}

/* True: it is to become a WebSocket. One with a body is not. */
static bool wants_switch(const st_call *call)
{
    return strcmp(st_call_method(call), "GET") == 0 && st_call_may_upgrade(call, ST_WEBSOCKET) &&
           !st_call_flows(call);
}

static void refuse(errand *e, st_call *call, const st_err *err)
{
    st_inflow_close(ST_TAKE(e->onward.in));
    if (err->code == ST_EDOWN)
        st_call_set_header(call, "Retry-After", "1");
    st_call_fail(call, err);
    errand_free(e);
}

void st_api_service_call(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_tunnel_place place;
    errand *e;
    st_err err = {0};
    int port;

    /* A page of a replica, opened in a browser, must not act as whoever is logged in there. */
    if (st_api_caller(call)->session > 0) {
        st_fail(&err, ST_EPERM, "a browser's session opens no service: send a token");
        st_call_fail(call, &err);
        return;
    }
    if (!st_api_charge(api, call, ST_AL_CALLS))
        return;
    if (!is_target(st_call_tail(call)) || !is_target(st_call_raw_query(call))) {
        st_fail(&err, ST_EINVAL, "path and query have a control character: send it as %%XX");
        st_call_fail(call, &err);
        return;
    }
    e = st_xcalloc(1, sizeof *e);
    e->gate = api->gate;
    e->caller = *st_api_caller(call);
    atomic_init(&e->revoked, false);
    enlist(e);
    if (take_body(e, call, &err) < 0 || find(e, call, &place, &port, &err) < 0) {
        refuse(e, call, &err);
        return;
    }
    if (wants_switch(call))
        e->onward.switched = switched;
    e->onward.alive = alive;
    write_request(e, call);
    e->onward.call = call;
    e->onward.head_only = strcmp(st_call_method(call), "HEAD") == 0;
    e->onward.head_ms = HEAD_MS;
    e->onward.idle_ms = IDLE_MS;
    e->onward.header = pass_answer;
    st_call_set_header(call, "Content-Security-Policy", "sandbox");
    st_call_set_header(call, "X-Content-Type-Options", "nosniff");
    st_call_set_header(call, "Cross-Origin-Resource-Policy", "same-origin");
    st_call_defer(call);
    dial(e, &place, port);
}

/* ---- checks ---------------------------------------------------------------------------------------- */

typedef struct due {
    errand *e;
    st_tunnel_place place;
    int port;
} due;

typedef ST_VEC(due) dues;

static void prepare(st_gate *gate, const st_service *s, st_service_replica *r, dues *list)
{
    due d = {.e = st_xcalloc(1, sizeof *d.e)};
    errand *e = d.e;

    e->gate = gate;
    e->check = true;
    aim(e, s, r, &d.place, &d.port);
    e->onward.head_ms = e->onward.idle_ms = e->timeout_ms;
    if (s->health == ST_SVC_HEALTH_HTTP)
        st_strbuf_addf(
            &e->onward.request,
            "GET %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: stint\r\nConnection: close\r\n\r\n",
            s->path);
    r->checking = true;
    st_vec_push(list, d);
}

void st_gate_checks(st_gate *gate, int64_t now_ms)
{
    st_services *all = gate->services;
    dues list = {0};

    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->all.n; i++) {
        st_service *s = all->all.v[i];

        for (size_t k = 0; s->health != ST_SVC_HEALTH_NONE && k < s->replicas.n; k++) {
            st_service_replica *r = &s->replicas.v[k];

            if (r->began && r->agent && !r->checking && r->left_ms == 0 && now_ms >= r->check_ms)
                prepare(gate, s, r, &list);
        }
    }
    pthread_mutex_unlock(&all->lock);
    for (size_t i = 0; i < list.n; i++)
        dial(list.v[i].e, &list.v[i].place, list.v[i].port);
    st_vec_free(&list);
}

/* ---- life -------------------------------------------------------------------------------------------- */

int st_gate_new(st_api *api, st_gate **ret, st_err *err)
{
    st_gate *gate = st_xcalloc(1, sizeof *gate);
    int r = st_onwards_new(&gate->onwards, err);

    if (r < 0) {
        free(gate);
        return r;
    }
    gate->api = api;
    gate->services = st_control_services(api->control);
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->quiet, NULL);
    *ret = gate;
    return 0;
}

void st_gate_quiet(st_gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->closed = true;
    pthread_mutex_unlock(&gate->lock);
}

void st_gate_close(st_gate *gate)
{
    st_gate_quiet(gate);
    pthread_mutex_lock(&gate->lock);
    while (gate->dialing > 0)
        pthread_cond_wait(&gate->quiet, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    st_onwards_free(ST_TAKE(gate->onwards));
    pthread_mutex_lock(&gate->lock);
    for (const errand *e = gate->calls; e; e = e->next)
        st_joint_cut(e->joint);
    while (gate->calls)
        pthread_cond_wait(&gate->quiet, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

void st_gate_free(st_gate *gate)
{
    if (!gate)
        return;
    st_gate_close(gate);
    pthread_cond_destroy(&gate->quiet);
    pthread_mutex_destroy(&gate->lock);
    free(gate);
}
