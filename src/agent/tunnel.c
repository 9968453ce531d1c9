/*
 * Tunnels into tasks (agent/tunnel.h).
 */
#include "agent/tunnel.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/host.h"
#include "base/mem.h"
#include "base/quote.h"
#include "dial/dial.h"

#define DIAL_MS    10000
#define CONNECT_MS 3000
#define STACK      (256u << 10)
#define AGENT      "stint-agent/" ST_VERSION

typedef struct way {
    st_ways *all;
    struct way *prev, *next;
    st_host *host;
    char id[48];
    char *url; /* where stintd serves agents */
    json_t *order;
} way;

struct st_ways {
    pthread_mutex_t lock;
    pthread_cond_t gone;
    way *first;
    int n;
    int stop; /* can be read when all are to end */
};

static const char *text_of(const way *w, const char *key)
{
    return json_string_value(json_object_get(w->order, key));
}

static int64_t number_of(const way *w, const char *key)
{
    return json_integer_value(json_object_get(w->order, key));
}

/* ---- to stintd -------------------------------------------------------------------------------------- */

static void prove(st_host *h, const char *target, st_strbuf *out)
{
    pthread_mutex_lock(&h->talk.ident_lock);
    st_ident_prove(&h->talk.ident, h->name, NULL, "GET", target, NULL, 0, out);
    pthread_mutex_unlock(&h->talk.ident_lock);
}

/* `plain` is the target as it is signed: as it reads, not as it is sent. */
static st_dial *dial(const way *w, const char *plain, const char *target, const char *protocol)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf proof = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};
    char q[ST_QUOTE_MAX];
    st_dial *d = NULL;
    st_err err = {0};
    long status = 0;

    prove(w->host, plain, &proof);
    const st_dial_to to = {.url = w->url,
                           .ca = w->host->process->conf->ca,
                           .target = target,
                           .bearer = st_strbuf_str(&proof),
                           .protocol = protocol,
                           .program = AGENT,
                           .timeout_ms = DIAL_MS};
    if (st_dial_open(&to, &d, &status, &body, &err) < 0)
        st_say(w->host, "tunnel-not-dialed", "id=%s status=%ld reason=%s", w->id, status,
               st_quote(q, status ? st_strbuf_str(&body) : err.msg));
    return d;
}

/* Whoever asked for it hears why; what is said is about the task, not about the node. */
static void refuse(const way *w, const st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf target = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf plain = {0};

    st_strbuf_addf(&target, "/v1/agent/tunnels/%s?refused=", w->id);
    st_strbuf_addf(&plain, "%s%s", st_strbuf_str(&target), err->msg);
    for (const unsigned char *s = (const unsigned char *)err->msg; *s; s++)
        if ((*s >= '0' && *s <= '9') || ((*s | 0x20) >= 'a' && (*s | 0x20) <= 'z'))
            st_strbuf_addc(&target, (char)*s);
        else
            st_strbuf_addf(&target, "%%%02X", *s);
    st_dial_close(dial(w, st_strbuf_str(&plain), st_strbuf_str(&target), NULL));
}

/* ---- to the task ------------------------------------------------------------------------------------ */

/* The task as the runtime knows it: its last attempt. */
static int find_task(const way *w, char ret[ST_RUN_ID_MAX], st_err *err)
{
    ST_CLEANUP(st_freep) st_run_task *tasks = NULL;
    char id[ST_RUN_ID_MAX];
    const st_run_task *found = NULL;
    size_t n = 0, bad = 0, len;
    int r;

    if (!w->host->exec->run)
        return st_fail(err, ST_ESTATE, "the node only simulates tasks: there is nothing to enter");
    len = (size_t)snprintf(id, sizeof id, "%s/%d/%d", text_of(w, "job"), (int)number_of(w, "stay"),
                           (int)number_of(w, "task"));
    r = st_run_list(w->host->exec->run, &tasks, &n, &bad, err);
    for (size_t i = 0; r == 0 && i < n; i++)
        if (strncmp(tasks[i].id, id, len) == 0 &&
            (tasks[i].id[len] == '\0' || tasks[i].id[len] == '-') &&
            tasks[i].state == ST_RUN_RUNNING)
            found = &tasks[i];
    if (r < 0)
        return st_fail(err, ST_EDOWN, "the node cannot look at its tasks");
    if (!found)
        return st_fail(err, ST_ESTATE, "the task has just ended, or has not begun");
    memcpy(ret, found->id, sizeof found->id);
    return 0;
}

static int reach(const way *w, int *ret, st_err *err)
{
    const char *kind = text_of(w, "kind");
    char id[ST_RUN_ID_MAX];
    int r = find_task(w, id, err);

    if (r < 0)
        return r;
    if (strcmp(kind, "forward") == 0)
        return st_run_connect(w->host->exec->run, id, (int)number_of(w, "port"), CONNECT_MS, ret,
                              err);
    if (strcmp(kind, "exec") == 0) {
        ST_CLEANUP(st_freep) char *spec = json_dumps(w->order, JSON_COMPACT);

        return st_run_enter(w->host->exec->run, id, spec ? spec : "{}", ret, err);
    }
    if (strcmp(kind, "attach") == 0)
        return st_run_attach(w->host->exec->run, id, number_of(w, "from"),
                             json_is_true(json_object_get(w->order, "write")), ret, err);
    return st_fail(err, ST_ESTATE, "the node's agent is too old for this");
}

/* ---- a thread --------------------------------------------------------------------------------------- */

static void way_free(way *w)
{
    json_decref(w->order);
    free(w->url);
    free(w);
}

static void leave(way *w)
{
    st_ways *all = w->all;

    pthread_mutex_lock(&all->lock);
    if (w->prev)
        w->prev->next = w->next;
    else
        all->first = w->next;
    if (w->next)
        w->next->prev = w->prev;
    all->n--;
    pthread_cond_broadcast(&all->gone);
    pthread_mutex_unlock(&all->lock);
    way_free(w);
}

static void *go(void *arg)
{
    way *w = arg;
    char target[96];
    st_err err = {0};
    int fd = -1;

    if (reach(w, &fd, &err) < 0) {
        refuse(w, &err);
    } else {
        st_dial *d;

        snprintf(target, sizeof target, "/v1/agent/tunnels/%s", w->id);
        d = dial(w, target, target, "stint-tunnel");
        if (d)
            st_dial_pump(d, fd, w->all->stop);
        st_dial_close(d);
        close(fd);
    }
    leave(w);
    return NULL;
}

static bool well_formed(const way *w)
{
    const char *id = text_of(w, "id"), *job = text_of(w, "job");

    return id && strlen(id) < sizeof w->id && id[strspn(id, "0123456789abcdefl")] == '\0' && job &&
           text_of(w, "kind");
}

/* False: it goes on already, or there are too many. */
static bool enter(way *w)
{
    st_ways *all = w->all;
    bool room;

    pthread_mutex_lock(&all->lock);
    room = all->n < ST_WAYS_MAX;
    for (const way *o = all->first; o && room; o = o->next)
        room = strcmp(o->id, w->id) != 0;
    if (room) {
        w->next = all->first;
        if (w->next)
            w->next->prev = w;
        all->first = w;
        all->n++;
    }
    pthread_mutex_unlock(&all->lock);
    return room;
}

static void begin(st_ways *all, st_host *h, json_t *order)
{
    way *w = st_xcalloc(1, sizeof *w);
    pthread_attr_t attr;
    pthread_t thread;

    w->all = all;
    w->host = h;
    w->order = json_incref(order);
    if (!well_formed(w)) {
        way_free(w);
        return;
    }
    snprintf(w->id, sizeof w->id, "%s", text_of(w, "id"));
    w->url = st_xstrdup(st_lines_url(h->process->lines));
    if (!enter(w)) {
        way_free(w);
        return;
    }
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK);
    if (pthread_create(&thread, &attr, go, w) != 0)
        leave(w);
    pthread_attr_destroy(&attr);
}

void st_ways_take(st_ways *ways, st_host *h, const char *text, size_t n)
{
    json_t *root = json_loadb(text, n, 0, NULL), *row;
    size_t i;

    json_array_foreach(json_object_get(root, "tunnels"), i, row) begin(ways, h, row);
    json_decref(root);
}

/* ---- life ------------------------------------------------------------------------------------------- */

st_ways *st_ways_new(void)
{
    st_ways *all = st_xcalloc(1, sizeof *all);

    ST_ASSERT(pthread_mutex_init(&all->lock, NULL) == 0);
    ST_ASSERT(pthread_cond_init(&all->gone, NULL) == 0);
    all->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ST_ASSERT(all->stop >= 0);
    return all;
}

void st_ways_free(st_ways *all)
{
    const uint64_t one = 1;

    if (!all)
        return;
    ST_ASSERT(write(all->stop, &one, sizeof one) == sizeof one);
    pthread_mutex_lock(&all->lock);
    while (all->n > 0)
        pthread_cond_wait(&all->gone, &all->lock);
    pthread_mutex_unlock(&all->lock);
    pthread_cond_destroy(&all->gone);
    pthread_mutex_destroy(&all->lock);
    close(all->stop);
    free(all);
}
