/*
 * The controller of services: a thread that looks at the replicas of each, asks service/service.h what to do next, and does
 * it by the commands that tenants use. Rules, quotas and budgets hold for a replica as for any job.
 *
 * It looks when a service was changed, when it has done something, and every LOOK_MS while there are services.
 */
#include "api/gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/services.h"

#define LOOK_MS      500
#define SOON_MS      50    /* after something was done: what comes of it is seen */
#define TOLD_MS      60000 /* figures of a service are good for so long */
#define CONTROL_NICE 5

struct st_services_run {
    st_api *api;
    st_services *services;
    bool stopping; /* under the services' lock */
    bool started;
    pthread_t thread;
};

/* ---- waiting for the loop --------------------------------------------------------------------- */

typedef struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done;
    st_err err;
} waiter;

/* A command and who waits for it. */
typedef union any_cmd {
    st_cmd cmd;
    st_cmd_job job;
    st_cmd_look look;
    st_cmd_replica replica;
} any_cmd;

typedef struct waited {
    any_cmd u; /* first */
    waiter w;
} waited;

static void done(st_cmd *cmd, const st_err *err)
{
    waiter *w = &((waited *)cmd)->w;

    pthread_mutex_lock(&w->lock);
    if (err)
        w->err = *err;
    w->done = true;
    pthread_cond_signal(&w->over);
    pthread_mutex_unlock(&w->lock);
}

static int run_cmd(st_services_run *run, waited *c, int32_t lane, st_err *err)
{
    c->w = (waiter){.lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER};
    c->u.cmd.done = done;
    c->u.cmd.lane = lane;
    if (!st_control_post(run->api->control, &c->u.cmd))
        return st_fail(err, ST_EDOWN, "stintd is stopping or has too much to do");
    pthread_mutex_lock(&c->w.lock);
    while (!c->w.done)
        pthread_cond_wait(&c->w.over, &c->w.lock);
    pthread_mutex_unlock(&c->w.lock);
    if (c->w.err.code == 0)
        return 0;
    *err = c->w.err;
    return -err->code;
}

static int64_t now_ms(const st_services_run *run)
{
    return run->api->options.clock(run->api->options.ctx);
}

static int32_t lane_of(const st_services_run *run, const st_service *s)
{
    return st_directory_org(run->api->dir, s->account);
}

/* ---- carrying out -------------------------------------------------------------------------------- */

static int write_state(st_services_run *run, st_service *s, st_cmd_submit *submit, bool gone,
                       st_err *err)
{
    waited c = {.u.replica = {.submit = submit, .kept = s->kept, .made_ms = s->made_ms}};
    json_t *state;
    int r;

    pthread_mutex_lock(&run->services->lock);
    state = gone ? NULL : st_service_state_json(s);
    pthread_mutex_unlock(&run->services->lock);
    c.u.replica.state = state;
    st_cmd_replica_init(&c.u.replica);
    r = run_cmd(run, &c, lane_of(run, s), err);
    json_decref(state);
    return r;
}

/* The template as the job of one replica: its name and variables say which. */
static int template_of(const st_services_run *run, const st_service *s, const char *sealed,
                       int64_t serial, st_strbuf *out, st_err *err)
{
    const st_vault_who job = {st_directory_serial(run->api->dir, s->account), s->user};
    ST_CLEANUP(st_wipe) st_strbuf plain = {0};
    char name[ST_SERVICE_NAME_MAX + 24], text[24];
    json_t *doc, *env;
    char *dump;
    int r = st_vault_doc_open(st_control_vault(run->api->control), &job, sealed, ST_VIEW_ALL,
                              &plain, err);

    if (r < 0)
        return r;
    doc = json_loads(st_strbuf_str(&plain), 0, NULL);
    snprintf(name, sizeof name, "%s-%lld", s->name, (long long)serial);
    json_object_set_new(doc, "name", json_string(name));
    env = json_object_get(doc, "env");
    if (!json_is_object(env)) {
        env = json_object();
        json_object_set_new(doc, "env", env);
    }
    snprintf(text, sizeof text, "%lld", (long long)serial);
    json_object_set_new(env, "STINT_SERVICE", json_string(s->name));
    json_object_set_new(env, "STINT_REPLICA", json_string(text));
    snprintf(text, sizeof text, "%d", s->port);
    json_object_set_new(env, "STINT_PORT", json_string(text));
    dump = json_dumps(doc, JSON_COMPACT | JSON_REAL_PRECISION(15));
    st_strbuf_add(out, dump);
    explicit_bzero(dump, strlen(dump));
    free(dump);
    json_decref(doc);
    return 0;
}

int st_service_expand(st_api *api, const st_identity *who, const char *text, st_expansion *x,
                      st_doc **ret_doc, st_err *err)
{
    st_doc *doc = NULL;
    int r = st_doc_parse("job.json", text, strlen(text), &doc, err);

    *x = (st_expansion){.api = api, .who = who, .arena = x->arena};
    *ret_doc = doc;
    if (r == 0)
        r = st_expand(x, doc, st_doc_root(doc), err);
    if (r == 0 && x->items.n != 1)
        r = st_fail(err, ST_EINVAL,
                    "a service's job is one job, not an array: leave out array, frames and chunk");
    return r;
}

/* Submits one; the replica stands last in the service's list, without a job. */
static int submit(st_services_run *run, st_service *s, const st_identity *who, const char *text,
                  uint64_t *ret_job, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    st_expansion x = {.arena = arena};
    st_cmd_submit cmd = {.who = *who};
    int r = st_service_expand(run->api, who, text, &x, &doc, err);

    if (r == 0) {
        cmd.items = x.items.v;
        cmd.n = x.items.n;
        st_cmd_submit_init(&cmd);
        r = write_state(run, s, &cmd, false, err);
    }
    if (r == 0)
        *ret_job = x.items.v[0].id;
    st_expansion_done(&x);
    return r;
}

/* One more replica. False: it was refused. */
static bool start(st_services_run *run, st_service *s)
{
    st_services *all = run->services;
    ST_CLEANUP(st_wipe) st_strbuf text = {0};
    ST_CLEANUP(st_freep) char *sealed = NULL;
    st_identity who;
    int64_t serial;
    uint64_t job = 0;
    st_err err = {0};
    int r;

    pthread_mutex_lock(&all->lock);
    serial = ++s->next_serial;
    st_vec_push(&s->replicas, ((st_service_replica){.serial = serial,
                                                    .revision = s->spec.revision,
                                                    .state = ST_SVC_WAITING,
                                                    .since_ms = now_ms(run),
                                                    .node = -1}));
    sealed = st_xstrdup(s->job);
    who = s->by;
    pthread_mutex_unlock(&all->lock);
    r = template_of(run, s, sealed, serial, &text, &err);
    if (r == 0)
        r = submit(run, s, &who, st_strbuf_str(&text), &job, &err);
    pthread_mutex_lock(&all->lock);
    if (r == 0) {
        st_service_replica_of(s, serial)->job = job;
    } else {
        st_vec_remove(&s->replicas, s->replicas.n - 1);
        st_svc_failed(&s->spec, now_ms(run), &s->memory);
        snprintf(s->why, sizeof s->why, "a replica was refused: %.240s", err.msg);
        s->why_ms = now_ms(run);
    }
    pthread_mutex_unlock(&all->lock);
    return r == 0;
}

static void end(st_services_run *run, st_service *s, int64_t serial)
{
    waited c = {0};
    st_err err = {0};
    int r;

    pthread_mutex_lock(&run->services->lock);
    c.u.job = (st_cmd_job){.who = s->by, .id = st_service_replica_of(s, serial)->job};
    pthread_mutex_unlock(&run->services->lock);
    st_cmd_job_cancel(&c.u.job);
    r = run_cmd(run, &c, lane_of(run, s), &err);
    pthread_mutex_lock(&run->services->lock);
    st_service_replica_of(s, serial)->ending = r == 0;
    pthread_mutex_unlock(&run->services->lock);
}

/* ---- deciding --------------------------------------------------------------------------------------- */

typedef struct plan {
    ST_VEC(int64_t) ends;
    int starts;
    bool changed, gone;
} plan;

static void see(st_service *s, st_svc_figures *figures, int64_t now)
{
    *figures = (st_svc_figures){.queue = s->queue,
                                .latency_ms = s->latency_ms,
                                .told = s->told_ms > 0 && now - s->told_ms < TOLD_MS,
                                .last_ms = s->last_ms};
    for (size_t i = 0; i < s->replicas.n; i++)
        figures->requests += s->replicas.v[i].open;
}

/* Who is in one of its jobs uses it as well. */
static void see_use(const st_services_run *run, st_service *s, int64_t now)
{
    for (size_t i = 0; s->spec.idle_ms > 0 && i < s->replicas.n; i++)
        if (st_tunnels_uses(run->api->tunnels, s->replicas.v[i].job))
            s->last_ms = now;
}

static void apply(st_service *s, const st_svc_actions *actions, int64_t now, plan *p)
{
    for (size_t i = 0; i < actions->n; i++) {
        const st_svc_action *a = &actions->v[i];
        st_service_replica *r =
            a->what == ST_SVC_START ? NULL : st_service_replica_of(s, a->serial);

        switch (a->what) {
        case ST_SVC_START:
            p->starts++;
            break;
        case ST_SVC_RETIRE:
            if (r->state == ST_SVC_SICK || r->state == ST_SVC_STARTING) {
                snprintf(s->why, sizeof s->why, "replica %d was not healthy%s%s", (int)r->serial,
                         r->trouble[0] ? ": " : "", r->trouble);
                s->why_ms = now;
            }
            r->left_ms = now;
            r->state = ST_SVC_LEAVING;
            r->since_ms = now;
            p->changed = true;
            break;
        case ST_SVC_END:
            if (!r->ending)
                st_vec_push(&p->ends, r->serial);
            break;
        case ST_SVC_FORGET:
            st_vec_remove(&s->replicas, (size_t)(r - s->replicas.v));
            p->changed = true;
            break;
        }
    }
}

static bool same_memory(const st_svc_memory *a, const st_svc_memory *b)
{
    return a->target == b->target && a->fails == b->fails && a->retry_ms == b->retry_ms &&
           a->ended == b->ended;
}

static void decide(const st_services_run *run, st_service *s, int64_t now, plan *p)
{
    st_svc_memory before = s->memory;
    st_svc_actions actions = {0};
    st_svc_figures figures;
    ST_VEC(st_svc_seen) seen = {0};

    see_use(run, s, now);
    see(s, &figures, now);
    for (size_t i = 0; i < s->replicas.n; i++) {
        const st_service_replica *r = &s->replicas.v[i];

        st_vec_push(&seen, ((st_svc_seen){.serial = r->serial,
                                          .revision = r->revision,
                                          .state = r->state,
                                          .since_ms = r->since_ms,
                                          .moving = r->moving,
                                          .retired = r->left_ms > 0,
                                          .open = r->open}));
    }
    st_svc_decide(&s->spec, &figures, seen.v, seen.n, now, &s->memory, &actions, &s->look_ms);
    apply(s, &actions, now, p);
    p->changed = p->changed || !same_memory(&before, &s->memory);
    p->gone = s->spec.removed && s->replicas.n == 0;
    st_vec_free(&actions);
    st_vec_free(&seen);
}

/* Whether it has done anything. */
static bool turn_one(st_services_run *run, st_service *s)
{
    plan p = {0};
    bool acted;
    st_err err;

    pthread_mutex_lock(&run->services->lock);
    decide(run, s, now_ms(run), &p);
    pthread_mutex_unlock(&run->services->lock);
    acted = p.changed || p.gone || p.starts > 0 || p.ends.n > 0;
    for (size_t i = 0; i < p.ends.n; i++)
        end(run, s, p.ends.v[i]);
    st_vec_free(&p.ends);
    if (p.gone) {
        write_state(run, s, NULL, true, &err);
        return true;
    }
    while (p.starts-- > 0)
        if (!start(run, s)) {
            p.changed = true;
            break;
        }
    if (p.changed)
        write_state(run, s, NULL, false, &err);
    return acted;
}

static bool turn(st_services_run *run)
{
    ST_VEC(st_service *) all = {0};
    waited c = {0};
    bool acted = false;
    st_err err;

    st_cmd_look_init(&c.u.look);
    if (run_cmd(run, &c, ST_LANE_AGENTS, &err) < 0)
        return false;
    st_gate_checks(run->api->gate, now_ms(run));
    pthread_mutex_lock(&run->services->lock);
    for (size_t i = 0; i < run->services->all.n; i++)
        st_vec_push(&all, run->services->all.v[i]);
    pthread_mutex_unlock(&run->services->lock);
    for (size_t i = 0; i < all.n; i++)
        acted = turn_one(run, all.v[i]) || acted;
    st_vec_free(&all);
    return acted;
}

/* ---- the thread --------------------------------------------------------------------------------------- */

/* Until something was changed, or a moment later while there are services; with the lock held. */
static void wait_for_work(st_services_run *run, int64_t ms)
{
    struct timespec until;

    if (run->services->all.n == 0) {
        pthread_cond_wait(&run->services->changed, &run->services->lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms * 1000000;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_cond_timedwait(&run->services->changed, &run->services->lock, &until);
}

static void *loop(void *arg)
{
    st_services_run *run = arg;

    setpriority(PRIO_PROCESS, (id_t)gettid(), CONTROL_NICE);
    pthread_mutex_lock(&run->services->lock);
    while (!run->stopping) {
        bool any = run->services->all.n > 0, acted;

        pthread_mutex_unlock(&run->services->lock);
        acted = any && turn(run);
        pthread_mutex_lock(&run->services->lock);
        if (!run->stopping)
            wait_for_work(run, acted ? SOON_MS : LOOK_MS);
    }
    pthread_mutex_unlock(&run->services->lock);
    return NULL;
}

st_services_run *st_services_run_new(st_api *api)
{
    st_services_run *run = st_xcalloc(1, sizeof *run);

    run->api = api;
    run->services = st_control_services(api->control);
    return run;
}

int st_services_run_start(st_services_run *run, st_err *err)
{
    int r = pthread_create(&run->thread, NULL, loop, run);

    if (r != 0)
        return st_fail(err, ST_EINTERNAL, "the thread of services cannot be started (%d)", r);
    run->started = true;
    return 0;
}

void st_services_run_free(st_services_run *run)
{
    if (!run)
        return;
    if (run->started) {
        pthread_mutex_lock(&run->services->lock);
        run->stopping = true;
        pthread_cond_broadcast(&run->services->changed);
        pthread_mutex_unlock(&run->services->lock);
        pthread_join(run->thread, NULL);
    }
    free(run);
}
