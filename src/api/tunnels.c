/*
 * Tunnels and their lines (api/tunnels.h).
 */
#include "api/tunnels.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/sessions.h"
#include "api/tunnel_state.h"
#include "base/mem.h"
#include "base/quote.h"

#define UNUSED_MS   30000  /* for the first line of a tunnel */
#define KEPT_MS     600000 /* a forward without a line */
#define TUNNELS_MAX 65536
#define LAST_MS     10000 /* after its task, for one that watches that */

const char *const st_tunnel_words[] = {
#define X(id, word, lines, verb) word,
    ST_TUNNEL_TABLE(X)
#undef X
};
const char *const st_tunnel_verbs[] = {
#define X(id, word, lines, verb) verb,
    ST_TUNNEL_TABLE(X)
#undef X
};
const int st_tunnel_lines[] = {
#define X(id, word, lines, verb) lines,
    ST_TUNNEL_TABLE(X)
#undef X
};

int64_t st_tunnels_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void st_tunnels_id(char kind, char ret[ST_TUNNEL_ID])
{
    unsigned char bytes[16];

    randombytes_buf(bytes, sizeof bytes);
    ret[0] = kind;
    sodium_bin2hex(ret + 1, ST_TUNNEL_ID - 1, bytes, sizeof bytes);
}

/* ---- where a task is ------------------------------------------------------------------------------- */

int st_tunnel_place_of(st_api *api, uint64_t job, int task, const char *state, st_tunnel_place *ret,
                       st_err *err)
{
    char name[ST_ID_TEXT];
    st_native_seat seat;

    st_control_id_text(api->control, job, name);
    if (strcmp(state, "running") != 0 && strcmp(state, "notified") != 0 &&
        strcmp(state, "checkpointing") != 0)
        return st_fail(err, ST_ESTATE, "job %s is %s: only a job that runs can be entered", name,
                       state);
    if (!api->options.native || !st_native_seat_of(api->options.native, job, task, &seat))
        return st_fail(err, ST_ESTATE, "job %s runs on simulated nodes: there is nothing to enter",
                       name);
    if (task < 0 || task >= seat.tasks)
        return st_fail(err, ST_ENOENT, "job %s has no task %d; its tasks are 0 to %d", name, task,
                       seat.tasks - 1);
    if (seat.node < 0 || seat.state == ST_TASK_EXITED || seat.state == ST_TASK_UNSTARTED)
        return st_fail(err, ST_ESTATE, "task %d of job %s is over", task, name);
    if (seat.state != ST_TASK_RUNNING)
        return st_fail(err, ST_ESTATE, "task %d of job %s has not begun; try again in a moment",
                       task, name);
    *ret = (st_tunnel_place){.job = job, .stay = seat.stay, .task = task, .node = seat.node};
    return 0;
}

static bool still_there(st_api *api, const st_tunnel_place *p)
{
    st_native_seat seat;

    return api->options.native && st_native_seat_of(api->options.native, p->job, p->task, &seat) &&
           seat.stay == p->stay && seat.node == p->node && seat.state != ST_TASK_EXITED;
}

/* ---- the end of a tunnel --------------------------------------------------------------------------- */

typedef struct ended {
    st_cmd_note note; /* first */
    st_identity who;
    char account[ST_NAME_MAX + 1], target[ST_ID_TEXT], verb[24];
    st_strbuf detail;
} ended;

static void ended_done(st_cmd *cmd, const st_err *err)
{
    ended *e = (ended *)cmd;

    (void)err; /* the books of who went in are kept; of a loop that has stopped nobody hears */
    st_strbuf_done(&e->detail);
    free(e);
}

static void note_end(st_tunnels *all, const tunnel *t)
{
    ended *e = st_xcalloc(1, sizeof *e);

    snprintf(e->account, sizeof e->account, "%s", t->spec.account);
    snprintf(e->verb, sizeof e->verb, "%s.end", st_tunnel_verbs[t->spec.kind]);
    st_control_id_text(all->api->control, t->spec.place.job, e->target);
    st_strbuf_addf(&e->detail,
                   "{\"task\":%d,\"seconds\":%lld,\"bytes_in\":%lld,\"bytes_out\":%lld,",
                   t->spec.place.task, (long long)(st_tunnels_now() - t->made_ms) / 1000,
                   (long long)t->moved[0], (long long)t->moved[1]);
    st_strbuf_add(&e->detail, "\"why\":");
    st_quote_json(&e->detail, t->why);
    st_strbuf_addc(&e->detail, '}');
    e->note = (st_cmd_note){.who = t->spec.caller.who,
                            .verb = e->verb,
                            .account = e->account,
                            .target = e->target,
                            .detail = st_strbuf_str(&e->detail)};
    st_cmd_note_init(&e->note);
    e->note.cmd.lane = ST_LANE_AGENTS;
    e->note.cmd.done = ended_done;
    if (!st_control_post(all->api->control, &e->note.cmd))
        ended_done(&e->note.cmd, NULL);
}

void st_tunnel_done(st_tunnels *all, tunnel *t)
{
    note_end(all, t);
    st_allowance_put_as(all->api->allowance, t->spec.caller.counted, ST_AL_TUNNELS, -1);
    free(t->order);
    free(t);
}

/* With the lock held: true when it is nobody's any more, and to be freed without it. */
bool st_tunnel_let_go(tunnel *t)
{
    return --t->refs == 0;
}

/* With the lock held; what waits is refused by whoever looks next. */
void st_tunnel_stop(st_tunnels *all, tunnel *t, const char *why)
{
    if (t->over)
        return;
    t->over = true;
    t->why = why;
    for (size_t i = 0; i < all->tunnels.n; i++)
        if (all->tunnels.v[i] == t) {
            all->tunnels.v[i] = all->tunnels.v[--all->tunnels.n];
            break;
        }
    st_relay_cut(all->relay, t->group);
}

/* ---- callers ---------------------------------------------------------------------------------------- */

static bool same_caller(const st_identity *a, const st_identity *b)
{
    return a->token == b->token && strcmp(a->account, b->account) == 0 &&
           strcmp(a->user, b->user) == 0;
}

static bool may_end(st_api *api, const st_call *call, const tunnel *t)
{
    const st_identity *who = st_api_who(call), *of = &t->spec.caller.who;

    if (who->role == ST_ROLE_OWNER || who->role == ST_ROLE_ADMIN)
        return st_api_sees(api, call, t->spec.account);
    return strcmp(who->account, of->account) == 0 && strcmp(who->user, of->user) == 0;
}

static tunnel *find(st_tunnels *all, const char *id)
{
    for (size_t i = 0; i < all->tunnels.n; i++)
        if (strcmp(all->tunnels.v[i]->id, id) == 0)
            return all->tunnels.v[i];
    return NULL;
}

int st_tunnel_begin(st_tunnels *all, const st_tunnel_spec *spec, char ret[ST_TUNNEL_ID],
                    st_err *err)
{
    tunnel *t;
    int r = st_allowance_charge_as(all->api->allowance, spec->caller.counted, ST_AL_TUNNELS, 1,
                                   spec->caller.who.account, err);

    if (r < 0)
        return r;
    t = st_xcalloc(1, sizeof *t);
    t->spec = *spec;
    t->spec.order = NULL;
    t->order = st_xstrdup(spec->order);
    t->made_ms = t->left_ms = st_tunnels_now();
    t->refs = 1;
    st_tunnels_id('w', t->id);
    memcpy(ret, t->id, ST_TUNNEL_ID);
    pthread_mutex_lock(&all->lock);
    t->group = ++all->groups;
    if (all->closed || all->tunnels.n >= TUNNELS_MAX)
        r = st_fail(err, ST_EDOWN, "stintd has too many tunnels open, or is stopping");
    else
        st_vec_push(&all->tunnels, t);
    pthread_mutex_unlock(&all->lock);
    if (r < 0) {
        t->why = "it never began";
        st_tunnel_done(all, t);
    }
    return r;
}

int st_tunnel_end(st_tunnels *all, st_api *api, const st_call *call, const char *id, st_err *err)
{
    tunnel *t, *last = NULL;
    bool found;

    pthread_mutex_lock(&all->lock);
    t = find(all, id);
    found = t && may_end(api, call, t);
    if (found) {
        st_tunnel_stop(all, t,
                       same_caller(st_api_who(call), &t->spec.caller.who) ? "it was left"
                                                                          : "somebody ended it");
        if (st_tunnel_let_go(t))
            last = t;
    }
    pthread_mutex_unlock(&all->lock);
    if (last)
        st_tunnel_done(all, last);
    return found ? 0 : st_fail(err, ST_ENOENT, "there is no such tunnel");
}

void st_tunnels_list(st_tunnels *all, const st_call *call, st_strbuf *out)
{
    int64_t now = st_tunnels_now();
    char name[ST_ID_TEXT];
    bool some = false;

    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->tunnels.n; i++) {
        const tunnel *t = all->tunnels.v[i];

        if (!may_end(all->api, call, t))
            continue;
        st_strbuf_add(out, some ? ",{" : "{");
        some = true;
        st_control_id_text(all->api->control, t->spec.place.job, name);
        st_out_text(out, "id", t->id);
        st_out_text(out, "kind", st_tunnel_words[t->spec.kind]);
        st_out_text(out, "job", name);
        st_out_int(out, "task", t->spec.place.task);
        st_out_text(out, "account", t->spec.account);
        st_out_text(out, "by",
                    st_api_sees(all->api, call, t->spec.caller.who.account)
                        ? t->spec.caller.who.user
                        : "an account above yours");
        st_out_int(out, "connections", t->lines);
        st_out_int(out, "seconds", (now - t->made_ms) / 1000);
        st_strbuf_addc(out, '}');
    }
    pthread_mutex_unlock(&all->lock);
}

/* With the lock held: one more line of the caller's tunnel. */
static tunnel *enter(st_tunnels *all, const st_call *call, const char *id, st_err *err)
{
    tunnel *t = find(all, id);

    if (!t || !same_caller(st_api_who(call), &t->spec.caller.who)) {
        st_fail(err, ST_ENOENT, "there is no such tunnel, or it has ended");
        return NULL;
    }
    if (t->lines >= st_tunnel_lines[t->spec.kind] ||
        (t->used && st_tunnel_lines[t->spec.kind] == 1)) {
        st_fail(err, ST_ESTATE, "this tunnel takes %d connection%s at a time, and has %d",
                st_tunnel_lines[t->spec.kind], st_tunnel_lines[t->spec.kind] == 1 ? "" : "s",
                t->lines);
        return NULL;
    }
    t->used = true;
    t->lines++;
    t->refs++;
    return t;
}

void st_tunnel_line(st_tunnels *all, st_call *call, const char *id)
{
    st_err err = {0};
    tunnel *t;
    line *l;

    if (!st_call_may_upgrade(call, ST_TUNNEL_PROTOCOL)) {
        st_fail(
            &err, ST_EINVAL,
            "this becomes a connection: send Connection: Upgrade and Upgrade: " ST_TUNNEL_PROTOCOL);
        st_call_fail(call, &err);
        return;
    }
    if (!st_api_charge(all->api, call, ST_AL_TUNNELS))
        return;
    pthread_mutex_lock(&all->lock);
    t = enter(all, call, id, &err);
    pthread_mutex_unlock(&all->lock);
    if (!t) {
        st_call_fail(call, &err);
        return;
    }
    l = st_xcalloc(1, sizeof *l);
    *l = (line){
        .of = t, .place = t->spec.place, .call = call, .idle_ms = all->api->options.tunnel_idle_ms};
    st_call_defer(call);
    st_tline_put(all, l);
}

/* ---- the clock -------------------------------------------------------------------------------------- */

/* Who watches a task hears the end of its output and its exit status, which its node sends after it has said that it is over. */
static bool task_over(st_tunnels *all, tunnel *t, int64_t now)
{
    if (still_there(all->api, &t->spec.place))
        return false;
    if (t->over_ms == 0)
        t->over_ms = now;
    return t->spec.kind != ST_TUNNEL_ATTACH || t->lines == 0 || now - t->over_ms >= LAST_MS;
}

static const char *must_end(st_tunnels *all, tunnel *t, int64_t now, int64_t clock)
{
    const st_caller *c = &t->spec.caller;
    st_api *api = all->api;

    if (!st_directory_opens(api->dir, c->who.token, clock) ||
        (c->session != 0 && !st_session_lives(api->sessions, c->session, clock)))
        return "the token was revoked, or expired";
    if (task_over(all, t, now))
        return "the task is over";
    if (t->lines > 0 ||
        now - t->left_ms < (t->used && st_tunnel_lines[t->spec.kind] > 1 ? KEPT_MS : UNUSED_MS))
        return NULL;
    return "nobody used it";
}

void st_tunnels_check(st_tunnels *all)
{
    int64_t now = st_tunnels_now(), clock = all->api->options.clock(all->api->options.ctx);
    ST_VEC(tunnel *) dead = {0};

    pthread_mutex_lock(&all->lock);
    for (size_t i = all->tunnels.n; i-- > 0;) {
        tunnel *t = all->tunnels.v[i];
        const char *why = must_end(all, t, now, clock);

        if (!why)
            continue;
        st_tunnel_stop(all, t, why);
        if (st_tunnel_let_go(t))
            st_vec_push(&dead, t);
    }
    pthread_mutex_unlock(&all->lock);
    for (size_t i = 0; i < dead.n; i++)
        st_tunnel_done(all, dead.v[i]);
    st_vec_free(&dead);
    st_tlines_refuse_late(all);
}

bool st_tunnels_uses(st_tunnels *all, uint64_t job)
{
    bool uses = false;

    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; !uses && i < all->tunnels.n; i++)
        uses = all->tunnels.v[i]->spec.place.job == job && all->tunnels.v[i]->lines > 0;
    pthread_mutex_unlock(&all->lock);
    return uses;
}

void st_tunnels_count(st_tunnels *all, int64_t ret[2])
{
    pthread_mutex_lock(&all->lock);
    ret[0] = (int64_t)all->tunnels.n;
    pthread_mutex_unlock(&all->lock);
    ret[1] = (int64_t)st_relay_count(all->relay);
}

/* ---- life ------------------------------------------------------------------------------------------- */

int st_tunnels_new(st_api *api, st_tunnels **ret, st_err *err)
{
    st_tunnels *all = st_xcalloc(1, sizeof *all);
    int r = st_relay_new(&all->relay, err);

    if (r < 0) {
        free(all);
        return r;
    }
    all->api = api;
    ST_ASSERT(pthread_mutex_init(&all->lock, NULL) == 0);
    *ret = all;
    return 0;
}

void st_tunnels_close(st_tunnels *all)
{
    ST_VEC(tunnel *) dead = {0};

    pthread_mutex_lock(&all->lock);
    all->closed = true;
    while (all->tunnels.n > 0) {
        tunnel *t = all->tunnels.v[0];

        st_tunnel_stop(all, t, "stintd stopped");
        if (st_tunnel_let_go(t))
            st_vec_push(&dead, t);
    }
    pthread_mutex_unlock(&all->lock);
    for (size_t i = 0; i < dead.n; i++)
        st_tunnel_done(all, dead.v[i]);
    st_vec_free(&dead);
    st_relay_cut(all->relay, 0); /* those of nobody's tunnel */
    st_tlines_refuse_late(all);
}

void st_tunnels_free(st_tunnels *all)
{
    if (!all)
        return;
    st_tunnels_close(all);
    st_relay_free(all->relay);
    ST_ASSERT(all->tunnels.n == 0 && all->waiting.n == 0);
    st_vec_free(&all->tunnels);
    st_vec_free(&all->waiting);
    pthread_mutex_destroy(&all->lock);
    free(all);
}
