/* See deliver.h. */
#include "stintd/deliver.h"

#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "control/control.h"

#define AT_A_TIME     64 /* attempts, of all */
#define ORG_AT_A_TIME 8  /* of an organisation */
#define OWN_AT_A_TIME 2  /* of an account */
#define IDLE_MS       1000
#define PAUSE_MAX_MS  INT64_C(3600000)
#define SOON_MS       INT64_C(20000) /* between two looks for bookings that begin soon */
#define BATCH         200            /* outcomes in one command */

typedef struct letter {
    st_outgoing o; /* its texts are its own */
    int tries;
    struct letter *next;
} letter;

/* A notice with something to bring out. */
typedef struct place {
    char *notice, *account;
    letter *first, **end;
    uint64_t last; /* the greatest number it was given */
    bool busy;
    int64_t due_ms, pause_ms;
} place;

typedef struct org {
    ST_VEC(place *) places;
    size_t turn;
    int busy;
} org;

typedef struct attempt {
    st_sending *sending;
    int32_t org;
    place *place;
} attempt;

typedef struct batch {
    st_cmd_outcomes outcomes; /* first */
    st_deliverer *d;
} batch;

typedef struct plain {
    st_cmd cmd; /* first */
    st_deliverer *d;
} plain;

struct st_deliverer {
    st_deliver_options options;
    CURLM *multi;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t told;
    /* Under the lock. */
    bool stop;
    letter *in, **in_end;
    ST_VEC(st_notice_outcome) came; /* for the next command */
    int posted;                     /* commands on their way */
    int64_t rest_ms;                /* no command before: the last one failed */
    bool again;                     /* what the store has is still to be handed over */
    bool open; /* it is being handed over, or was: what comes before is in the store, too */
    bool runs;
    /* Of the thread. */
    ST_VEC(org) orgs;
    ST_VEC(attempt) attempts;
    size_t turn;
    int64_t soon_ms;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- letters ------------------------------------------------------------------------------------------ */

static void letter_free(letter *l)
{
    free((char *)(uintptr_t)l->o.notice);
    free((char *)(uintptr_t)l->o.account);
    free((char *)(uintptr_t)l->o.name);
    free((char *)(uintptr_t)l->o.id);
    free((char *)(uintptr_t)l->o.title);
    free((char *)(uintptr_t)l->o.body);
    free(l);
}

void st_deliverer_take(st_deliverer *d, const st_outgoing *o)
{
    letter *l = st_xcalloc(1, sizeof *l);

    l->o = *o;
    l->o.notice = st_xstrdup(o->notice);
    l->o.account = st_xstrdup(o->account);
    l->o.name = st_xstrdup(o->name);
    l->o.id = st_xstrdup(o->id);
    l->o.title = st_xstrdup(o->title);
    l->o.body = st_xstrdup(o->body);
    pthread_mutex_lock(&d->lock);
    if (d->open) {
        *d->in_end = ST_TAKE(l);
        d->in_end = &(*d->in_end)->next;
    }
    pthread_mutex_unlock(&d->lock);
    if (l)
        letter_free(l);
    curl_multi_wakeup(d->multi);
}

static place *place_of(st_deliverer *d, const letter *l)
{
    org *g;
    place *p;

    while (d->orgs.n <= (size_t)l->o.org)
        st_vec_push(&d->orgs, ((org){0}));
    g = &d->orgs.v[l->o.org];
    for (size_t i = 0; i < g->places.n; i++)
        if (strcmp(g->places.v[i]->notice, l->o.notice) == 0)
            return g->places.v[i];
    p = st_xcalloc(1, sizeof *p);
    p->notice = st_xstrdup(l->o.notice);
    p->account = st_xstrdup(l->o.account);
    p->end = &p->first;
    st_vec_push(&g->places, p);
    return p;
}

static void place_free(place *p)
{
    for (letter *l = p->first, *next; l; l = next) {
        next = l->next;
        letter_free(l);
    }
    free(p->notice);
    free(p->account);
    free(p);
}

/* Those that are handed over again at the start may be here. */
static void sort_in(st_deliverer *d)
{
    letter *in, *next;

    pthread_mutex_lock(&d->lock);
    in = d->in;
    d->in = NULL;
    d->in_end = &d->in;
    pthread_mutex_unlock(&d->lock);
    for (; in; in = next) {
        place *p = place_of(d, in);

        next = in->next;
        in->next = NULL;
        if (in->o.number <= p->last) {
            letter_free(in);
            continue;
        }
        p->last = in->o.number;
        *p->end = in;
        p->end = &in->next;
    }
}

static void drop_first(place *p)
{
    letter *l = p->first;

    p->first = l->next;
    if (!p->first)
        p->end = &p->first;
    letter_free(l);
}

/* ---- what came of it ------------------------------------------------------------------------------------ */

static void note(st_deliverer *d, const letter *l, const char *state, long status, const char *text)
{
    st_notice_outcome o = {.number = l->o.number,
                           .notice = st_xstrdup(l->o.notice),
                           .id = st_xstrdup(l->o.id),
                           .state = state,
                           .status = status,
                           .tries = l->tries};

    snprintf(o.text, sizeof o.text, "%s", text);
    pthread_mutex_lock(&d->lock);
    st_vec_push(&d->came, o);
    pthread_mutex_unlock(&d->lock);
}

static void delivered(st_deliverer *d, place *p, long status)
{
    note(d, p->first, "delivered", status, "");
    p->pause_ms = 0;
    drop_first(p);
}

/* The receiver is to be left alone for a while, and with it all that is behind this one. */
static void failed(st_deliverer *d, place *p, long status, const st_err *err)
{
    letter *l = p->first;
    bool old = st_control_now(d->options.control) - l->o.at_ms >= d->options.keep_ms;
    bool final = old || err->code == ST_EPERM || err->code == ST_ECORRUPT || status == 410;

    p->pause_ms = p->pause_ms > 0 ? ST_MIN(p->pause_ms * 2, PAUSE_MAX_MS) : d->options.retry_ms;
    p->due_ms = now_ms() + p->pause_ms;
    note(d, l, final ? "failed" : "waiting", status, err->msg);
    if (final)
        drop_first(p);
}

/* ---- attempts ------------------------------------------------------------------------------------------- */

static void add_lines(const json_t *doc, const char *before, st_strbuf *out)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)doc, key, value)
    {
        if (json_is_object(value))
            add_lines(value, key, out);
        else if (json_is_string(value))
            st_strbuf_addf(out, "%s%s%s: %s\n", before, before[0] ? " " : "", key,
                           json_string_value(value));
        else if (json_is_integer(value))
            st_strbuf_addf(out, "%s%s%s: %" PRId64 "\n", before, before[0] ? " " : "", key,
                           (int64_t)json_integer_value(value));
    }
}

/* The same as a webhook is told, in lines. */
static void write_mail(const letter *l, st_strbuf *subject, st_strbuf *text)
{
    json_t *doc = json_loads(l->o.body, 0, NULL);

    st_strbuf_addf(subject, "[stint] %s", l->o.title);
    st_strbuf_addf(text, "%s\n\n", l->o.title);
    json_object_del(doc, "title");
    add_lines(doc, "", text);
    st_strbuf_addf(text,
                   "\nWhy you get this: notice %s of account %s. To end it: stint notice "
                   "remove %s\n",
                   l->o.name, l->o.account, l->o.name);
    json_decref(doc);
}

static int begin(st_deliverer *d, const letter *l, st_sending **ret, st_err *err)
{
    ST_CLEANUP(st_wipe) st_strbuf to = {0};
    ST_CLEANUP(st_wipe) st_strbuf key = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf subject = {0}, text = {0};
    int r = st_notice_where(d->options.control, &l->o, &to, &key, err);

    if (r < 0)
        return r;
    if (l->o.mail)
        write_mail(l, &subject, &text);
    const st_letter out = {.id = l->o.id,
                           .to = st_strbuf_str(&to),
                           .key = st_strbuf_str(&key),
                           .body = l->o.body,
                           .subject = st_strbuf_str(&subject),
                           .text = st_strbuf_str(&text),
                           .seconds = (int64_t)time(NULL),
                           .mail = l->o.mail};
    return st_sending_new(d->options.courier, &out, ret, err);
}

static void start(st_deliverer *d, int32_t number, place *p)
{
    attempt a = {.org = number, .place = p};
    st_err err = {0};

    p->first->tries++;
    if (begin(d, p->first, &a.sending, &err) < 0) {
        if (err.code == ST_ENOENT) /* the notice is gone, and all of its rows */
            drop_first(p);
        else
            failed(d, p, 0, &err);
        return;
    }
    if (curl_multi_add_handle(d->multi, st_sending_handle(a.sending)) != CURLM_OK) {
        st_sending_free(a.sending);
        return;
    }
    p->busy = true;
    d->orgs.v[number].busy++;
    st_vec_push(&d->attempts, a);
}

static bool has_room(const st_deliverer *d, const place *p)
{
    int n = 0;

    for (size_t i = 0; i < d->attempts.n; i++)
        n += strcmp(d->attempts.v[i].place->account, p->account) == 0;
    return n < OWN_AT_A_TIME;
}

/* The next of the organisation's, in turn; NULL: none may begin now. Empty ones go. */
static place *ready(const st_deliverer *d, org *g, int64_t now)
{
    for (size_t n = g->places.n; n > 0; n--) {
        size_t at = g->turn = g->turn < g->places.n ? g->turn : 0;
        place *p = g->places.v[at];

        if (!p->first && !p->busy && now >= p->due_ms) {
            st_vec_remove(&g->places, at);
            place_free(p);
            continue;
        }
        g->turn++;
        if (p->first && !p->busy && now >= p->due_ms && has_room(d, p))
            return p;
    }
    return NULL;
}

/* One of each organisation, and again, while there is room. */
static void start_some(st_deliverer *d)
{
    size_t idle = 0;
    int64_t now = now_ms();

    while (d->attempts.n < AT_A_TIME && idle < d->orgs.n) {
        size_t at = d->turn++ % d->orgs.n;
        org *g = &d->orgs.v[at];
        place *p = g->busy < ORG_AT_A_TIME ? ready(d, g, now) : NULL;

        idle = p ? 0 : idle + 1;
        if (p)
            start(d, (int32_t)at, p);
    }
}

static void end(st_deliverer *d, CURL *curl, CURLcode code)
{
    for (size_t i = 0; i < d->attempts.n; i++) {
        attempt a = d->attempts.v[i];
        long status = 0;
        st_err err = {0};

        if (st_sending_handle(a.sending) != curl)
            continue;
        st_vec_remove(&d->attempts, i);
        a.place->busy = false;
        d->orgs.v[a.org].busy--;
        if (st_sending_end(a.sending, code, &status, &err) == 0)
            delivered(d, a.place, status);
        else
            failed(d, a.place, status, &err);
        curl_multi_remove_handle(d->multi, curl);
        st_sending_free(a.sending);
        return;
    }
}

/* Whether any ended: others may begin. */
static bool end_some(st_deliverer *d)
{
    bool some = false;
    CURLMsg *m;
    int left;

    while ((m = curl_multi_info_read(d->multi, &left)))
        if (m->msg == CURLMSG_DONE) {
            end(d, m->easy_handle, m->data.result);
            some = true;
        }
    return some;
}

/* ---- commands ----------------------------------------------------------------------------------------------- */

static void outcome_free(st_notice_outcome *o)
{
    free(o->notice);
    free(o->id);
}

/* In the loop. What could not be written is written with the next. */
static void batch_done(st_cmd *cmd, const st_err *err)
{
    batch *b = (batch *)cmd;
    st_deliverer *d = b->d;

    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < b->outcomes.n; i++) {
        if (err)
            st_vec_push(&d->came, b->outcomes.v[i]);
        else
            outcome_free(&b->outcomes.v[i]);
    }
    d->rest_ms = err ? now_ms() + IDLE_MS : 0;
    d->posted--;
    pthread_cond_broadcast(&d->told);
    pthread_mutex_unlock(&d->lock);
    free(b->outcomes.v);
    free(b);
}

static void post_outcomes(st_deliverer *d)
{
    batch *b;
    size_t n;

    pthread_mutex_lock(&d->lock);
    n = d->posted > 0 || now_ms() < d->rest_ms ? 0 : ST_MIN(d->came.n, (size_t)BATCH);
    b = n > 0 ? st_xcalloc(1, sizeof *b) : NULL;
    if (b) {
        b->d = d;
        b->outcomes.cmd =
            (st_cmd){.lane = ST_LANE_AGENTS, .run = st_notices_came, .done = batch_done};
        b->outcomes.v = st_xmalloc(n * sizeof *b->outcomes.v);
        b->outcomes.n = n;
        memcpy(b->outcomes.v, d->came.v, n * sizeof *b->outcomes.v);
        memmove(d->came.v, d->came.v + n, (d->came.n - n) * sizeof *d->came.v);
        d->came.n -= n;
        d->posted++;
    }
    pthread_mutex_unlock(&d->lock);
    if (b && !st_control_post(d->options.control, &b->outcomes.cmd)) {
        const st_err down = {.code = ST_EDOWN};

        batch_done(&b->outcomes.cmd, &down);
    }
}

static int run_again(st_tx *tx, st_cmd *cmd, st_err *err);

static void plain_done(st_cmd *cmd, const st_err *err)
{
    plain *p = (plain *)cmd;
    st_deliverer *d = p->d;

    pthread_mutex_lock(&d->lock);
    d->posted--;
    if (err && cmd->run == run_again) {
        d->again = true;
        d->rest_ms = now_ms() + IDLE_MS;
    }
    pthread_cond_broadcast(&d->told);
    pthread_mutex_unlock(&d->lock);
    free(p);
}

static void post_plain(st_deliverer *d, int (*run)(st_tx *tx, st_cmd *cmd, st_err *err))
{
    plain *p = st_xcalloc(1, sizeof *p);

    p->d = d;
    p->cmd = (st_cmd){.lane = ST_LANE_AGENTS, .run = run, .done = plain_done};
    pthread_mutex_lock(&d->lock);
    d->posted++;
    pthread_mutex_unlock(&d->lock);
    if (!st_control_post(d->options.control, &p->cmd))
        plain_done(&p->cmd, NULL);
}

static int run_again(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_deliverer *d = ((plain *)cmd)->d;

    pthread_mutex_lock(&d->lock);
    d->open = true;
    pthread_mutex_unlock(&d->lock);
    return st_notices_again(tx, cmd, err);
}

/* Once, when the loop does what it is asked: nothing of a restored store goes out before an owner has accepted it. */
static void post_again(st_deliverer *d)
{
    bool now;

    pthread_mutex_lock(&d->lock);
    now = d->again && now_ms() >= d->rest_ms;
    d->again = d->again && !now;
    pthread_mutex_unlock(&d->lock);
    if (now)
        post_plain(d, run_again);
}

/* ---- the thread ------------------------------------------------------------------------------------------------ */

/* Until the next attempt may begin. */
static int pause_of(const st_deliverer *d)
{
    int64_t now = now_ms(), wait = IDLE_MS;

    for (size_t i = 0; i < d->orgs.n; i++)
        for (size_t k = 0; k < d->orgs.v[i].places.n; k++) {
            const place *p = d->orgs.v[i].places.v[k];

            if (p->first && !p->busy && p->due_ms > now)
                wait = ST_MIN(wait, p->due_ms - now);
        }
    return (int)ST_MAX(wait, 1);
}

static bool stopping(st_deliverer *d)
{
    bool stop;

    pthread_mutex_lock(&d->lock);
    stop = d->stop;
    pthread_mutex_unlock(&d->lock);
    return stop;
}

static void *loop(void *arg)
{
    st_deliverer *d = arg;

    d->soon_ms = now_ms();
    while (!stopping(d)) {
        int running;

        post_again(d);
        sort_in(d);
        start_some(d);
        curl_multi_perform(d->multi, &running);
        bool ended = end_some(d);
        post_outcomes(d);
        if (now_ms() >= d->soon_ms) {
            d->soon_ms = now_ms() + SOON_MS;
            post_plain(d, st_notices_soon);
        }
        curl_multi_poll(d->multi, NULL, 0, ended ? 0 : pause_of(d), NULL);
    }
    return NULL;
}

st_deliverer *st_deliverer_new(const st_deliver_options *options)
{
    st_deliverer *d = st_xcalloc(1, sizeof *d);

    d->options = *options;
    d->in_end = &d->in;
    d->again = true;
    d->multi = curl_multi_init();
    ST_ASSERT(d->multi);
    ST_ASSERT(pthread_mutex_init(&d->lock, NULL) == 0);
    ST_ASSERT(pthread_cond_init(&d->told, NULL) == 0);
    return d;
}

int st_deliverer_start(st_deliverer *d, st_err *err)
{
    if (pthread_create(&d->thread, NULL, loop, d) != 0)
        return st_fail(err, ST_EINTERNAL, "the thread that delivers notices cannot be started");
    d->runs = true;
    return 0;
}

void st_deliverer_stop(st_deliverer *d)
{
    if (!d || !d->runs)
        return;
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    pthread_mutex_unlock(&d->lock);
    curl_multi_wakeup(d->multi);
    pthread_join(d->thread, NULL);
    d->runs = false;
    post_outcomes(d); /* what is known by now is not sent again after the next start */
    pthread_mutex_lock(&d->lock);
    while (d->posted > 0)
        pthread_cond_wait(&d->told, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

void st_deliverer_free(st_deliverer *d)
{
    if (!d)
        return;
    st_deliverer_stop(d);
    for (size_t i = 0; i < d->attempts.n; i++) {
        curl_multi_remove_handle(d->multi, st_sending_handle(d->attempts.v[i].sending));
        st_sending_free(d->attempts.v[i].sending);
    }
    for (size_t i = 0; i < d->orgs.n; i++) {
        for (size_t k = 0; k < d->orgs.v[i].places.n; k++)
            place_free(d->orgs.v[i].places.v[k]);
        st_vec_free(&d->orgs.v[i].places);
    }
    for (letter *l = d->in, *next; l; l = next) {
        next = l->next;
        letter_free(l);
    }
    for (size_t i = 0; i < d->came.n; i++)
        outcome_free(&d->came.v[i]);
    st_vec_free(&d->came);
    st_vec_free(&d->orgs);
    st_vec_free(&d->attempts);
    curl_multi_cleanup(d->multi);
    pthread_cond_destroy(&d->told);
    pthread_mutex_destroy(&d->lock);
    free(d);
}
