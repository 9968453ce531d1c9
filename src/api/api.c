/*
 * The API's wiring: who calls, what they may see, and connections to the store.
 */
#include "api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/gate.h"
#include "api/money_metrics.h"
#include "api/park.h"
#include "api/sessions.h"
#include "api/state.h"
#include "api/tunnels.h"
#include "api/usages.h"
#include "api/volumes.h"
#include "api/work.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/quote.h"
#include "control/follower.h"
#include "zones/zones.h"

#define READERS_IDLE     16
#define AGENT_STRANGERS  512
#define AGENT_CHALLENGES 1000  /* a second, of one address */
#define ASKERS           2     /* threads that answer questions */
#define ASKS_WAITING     4096  /* and how many of these may wait */
#define PRUNE_MS         60000 /* old logs are looked for this often */
#define LISTERS          2     /* threads that make lists from the store */
#define MOVERS           4     /* threads that wait for the disk of volumes */
#define LABS             1 /* one: it takes a processor as long as it is asked, and there may be two */
#define LABS_WAITING     64
#define ASK_NICE         5
#define LAB_NICE         10
#define WORKERS          4   /* exports at a time */
#define WAITING          256 /* and so many more that wait for one of these */

/* ---- who ---------------------------------------------------------------------------------- */

static int authenticate(void *ctx, const st_call *call, const char *bearer, st_principal *ret,
                        st_err *err)
{
    st_api *api = ctx;
    const st_peer *peer = st_call_peer(call);
    st_caller caller = {0};
    st_identity who = {0};
    int cookie = bearer ? 0 : st_api_cookie(api, call, &caller, err);

    if (cookie < 0)
        return cookie;
    if (bearer && st_proof_is(bearer)) {
        int r = st_api_prove(api, bearer, &caller, err);
        if (r < 0)
            return r;
        who = caller.who;
        snprintf(ret->label, sizeof ret->label, "%.60s", who.user);
        ret->key = st_hash_str(1, who.user) | 1;
    } else if (bearer) {
        int r =
            st_directory_token(api->dir, bearer, api->options.clock(api->options.ctx), &who, err);
        if (r == -ST_EAUTH)
            st_control_refused(api->control, peer->address);
        if (r < 0)
            return r;
        r = st_api_unbound(api, &who, err);
        if (r < 0)
            return r;
        snprintf(ret->label, sizeof ret->label, "%lld", (long long)who.token);
        ret->key = (uint64_t)who.token;
    } else if (cookie) {
        who = caller.who;
        snprintf(ret->label, sizeof ret->label, "%lld", (long long)who.token);
        ret->key = (uint64_t)who.token;
    } else if (peer->is_unix && (peer->uid == 0 || peer->uid == api->options.admin_uid)) {
        who.role = ST_ROLE_OWNER;
        snprintf(who.user, sizeof who.user, "uid%u", (unsigned)peer->uid);
        snprintf(ret->label, sizeof ret->label, "uid%u", (unsigned)peer->uid);
        ret->rate_per_s = -1;
    } else {
        return st_fail(err, ST_EAUTH,
                       "no token was given: send the header Authorization: Bearer TOKEN, or run "
                       "`stint login`");
    }
    snprintf(who.source, sizeof who.source, "%s", peer->address);
    caller.who = who;
    caller.counted = st_allowance_number(api->allowance, who.account);
    ret->who = st_xmalloc(sizeof caller);
    memcpy(ret->who, &caller, sizeof caller);
    ret->roles = ST_MAY(who.role);
    ret->role = st_role_words[who.role];
    return 0;
}

/* A node with a key has no token; whether it is still one is looked at where it speaks. */
static bool still(void *ctx, const void *who)
{
    const st_api *api = ctx;
    const st_caller *c = who;
    int64_t now = api->options.clock(api->options.ctx);

    return st_directory_opens(api->dir, c->who.token, now) &&
           (c->session == 0 || st_session_lives(api->sessions, c->session, now));
}

static void forget(void *ctx, void *who)
{
    st_api *api = ctx;
    st_caller *c = who;

    for (int i = 0; i < ST_AL_COUNT; i++)
        if (c->charged[i])
            st_allowance_put_as(api->allowance, c->counted, (st_allowed)i, -1);
    free(c);
}

static int charge(const st_api *api, const st_call *call, st_allowed what, st_err *err)
{
    st_caller *c = st_call_principal(call)->who;
    int r = c->charged[what]
                ? 0
                : st_allowance_charge_as(api->allowance, c->counted, what, 1, c->who.account, err);

    c->charged[what] = c->charged[what] || r == 0;
    return r;
}

bool st_api_charge(st_api *api, st_call *call, st_allowed what)
{
    st_err err = {0};

    if (charge(api, call, what, &err) == 0)
        return true;
    st_call_set_header(call, "Retry-After", "1");
    st_call_fail(call, &err);
    return false;
}

/* Each request counts; besides, what is a question or a change counts while it is answered. */
static int admit(void *ctx, st_call *call, int64_t *ret_wait_ms, st_err *err)
{
    st_api *api = ctx;
    const st_route *route = st_call_route(call);
    int r = st_allowance_request(api->allowance, st_api_who(call)->account,
                                 api->options.clock(api->options.ctx), ret_wait_ms, err);

    if (r == 0 && (route->flags & ST_ROUTE_COSTLY))
        r = charge(api, call, ST_AL_QUESTIONS, err);
    if (r == 0 && strcmp(route->method, "GET") != 0)
        r = charge(api, call, ST_AL_COMMANDS, err);
    return r;
}

/* A connection counts for the account that used it last; the claim is the account's number. */
static int claim(void *ctx, void **ret, void *caller_, st_err *err)
{
    st_api *api = ctx;
    const st_caller *c = caller_;
    int32_t *had = *ret;
    int r;

    if (c->who.role == ST_ROLE_NODE || (had && *had == c->counted))
        return 0;
    r = st_allowance_charge_as(api->allowance, c->counted, ST_AL_CONNECTIONS, 1, c->who.account,
                               err);
    if (r < 0)
        return r;
    if (had)
        st_allowance_put_as(api->allowance, *had, ST_AL_CONNECTIONS, -1);
    else
        *ret = had = st_xmalloc(sizeof *had);
    *had = c->counted;
    return 0;
}

static void unclaim(void *ctx, void *claim)
{
    st_api *api = ctx;

    st_allowance_put_as(api->allowance, *(int32_t *)claim, ST_AL_CONNECTIONS, -1);
    free(claim);
}

static void session_gone(void *ctx, int32_t counted)
{
    st_api *api = ctx;

    st_allowance_put_as(api->allowance, counted, ST_AL_SESSIONS, -1);
}

static void tick(void *ctx)
{
    st_api *api = ctx;

    int64_t now = api->options.clock(api->options.ctx);

    st_hub_check(api->hub, now);
    st_tunnels_check(api->tunnels);
    st_gate_watch(api->gate);
    st_sessions_sweep(api->sessions, now);
    st_api_zones_follow(api, now);
    st_api_folders_tidy(api, now);
    if (!api->options.logs || api->options.log_keep_ms <= 0 ||
        now - atomic_load(&api->pruned_ms) < PRUNE_MS)
        return;
    atomic_store(&api->pruned_ms, now);
    st_logs_prune(api->options.logs, now - api->options.log_keep_ms);
}

const st_caller *st_api_caller(const st_call *call)
{
    return st_call_principal(call)->who;
}

const st_identity *st_api_who(const st_call *call)
{
    return &st_api_caller(call)->who;
}

bool st_api_sees(st_api *api, const st_call *call, const char *account)
{
    return st_directory_within(api->dir, account, st_api_who(call)->account);
}

void st_api_no_such(st_call *call, const char *what, const char *name)
{
    char q[ST_QUOTE_MAX];
    st_err err;

    st_fail(&err, ST_ENOENT, "there is no %s %s", what, st_quote(q, name));
    st_call_fail(call, &err);
}

/* ---- the store ------------------------------------------------------------------------------ */

st_store *st_api_reader(st_api *api, st_err *err)
{
    st_store *reader = NULL;

    pthread_mutex_lock(&api->lock);
    if (api->readers.n > 0)
        reader = st_vec_pop(&api->readers);
    pthread_mutex_unlock(&api->lock);
    if (!reader && st_store_open_reader(st_control_store(api->control), &reader, err) < 0)
        return NULL;
    return reader;
}

void st_api_reader_back(st_api *api, st_store *reader)
{
    pthread_mutex_lock(&api->lock);
    if (reader && api->readers.n < READERS_IDLE) {
        st_vec_push(&api->readers, reader);
        reader = NULL;
    }
    pthread_mutex_unlock(&api->lock);
    st_store_close(reader);
}

void st_api_post(st_api *api, st_call *call, st_cmd *cmd)
{
    const st_identity *who = st_api_who(call);
    st_err err;

    cmd->lane =
        cmd->lane == ST_LANE_AGENTS || who->role == ST_ROLE_NODE || who->role == ST_ROLE_JOIN
            ? ST_LANE_AGENTS
            : st_directory_org(api->dir, who->account);

    cmd->token = who->token;
    if (st_api_key(api, call, cmd, &err) < 0) {
        cmd->done(cmd, &err);
        return;
    }
    if (st_control_post(api->control, cmd))
        return;
    st_fail(&err, ST_EDOWN, "stintd is stopping or has too much to do; try again in a moment");
    cmd->done(cmd, &err);
}

/* ---- positions ------------------------------------------------------------------------------ */

void st_api_stamp(st_api *api, st_call *call, int64_t position)
{
    char text[ST_POSITION_TEXT];

    st_control_position_text(api->control, position, text);
    st_call_set_header(call, "Stint-Position", text);
}

void st_api_stamp_now(st_api *api, st_call *call)
{
    st_api_stamp(api, call, st_control_position(api->control));
}

/* ---- the fleet, for estimates ------------------------------------------------------------------ */

static size_t gpu_types(void *ctx, st_rules_type ret[ST_TYPES_MAX])
{
    const st_api *api = ctx;
    st_directory_gpu have[ST_TYPES_MAX];
    size_t n = st_directory_types(api->dir, have);

    for (size_t i = 0; i < n; i++) {
        ret[i] = (st_rules_type){
            .vram_mib = have[i].vram_mib, .board = have[i].board, .node_gpus = have[i].node_gpus};
        memcpy(ret[i].name, have[i].name, sizeof ret[i].name);
    }
    return n;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Agents have a server of their own: its connections, threads and limits are nobody else's. Those that have not
 * proved who they are compete with each other alone. */
static int make_agent_server(st_api *api, st_err *err)
{
    st_http_options http = api->options.http;
    size_t n = 0, at = 0;

    while (http.routes[n].method)
        n++;
    api->agent_routes = st_xcalloc(n + 1, sizeof *api->agent_routes);
    for (size_t i = 0; i < n; i++)
        if (strncmp(http.routes[i].pattern, "/v1/agent/", 10) == 0 ||
            strcmp(http.routes[i].pattern, "/healthz") == 0)
            memcpy(&api->agent_routes[at++], &http.routes[i], sizeof *api->agent_routes);
    http.routes = api->agent_routes;
    http.connections_per_peer = http.strangers_per_peer = -1;
    http.stranger_rate_per_s = AGENT_CHALLENGES; /* a whole hall of them may have one address */
    http.strangers_max = AGENT_STRANGERS;
    return st_http_server_new(&http, &api->agents, err);
}

int st_api_new(const st_api_options *options, st_api **ret, st_err *err)
{
    st_api *api = st_xcalloc(1, sizeof *api);
    int r;

    api->options = *options;
    api->control = options->control;
    api->dir = st_control_directory(options->control);
    api->allowance = st_control_allowance(options->control);
    ST_ASSERT(pthread_mutex_init(&api->lock, NULL) == 0);
    api->work = st_work_new(WORKERS, WAITING, 0);
    api->asks = st_work_new(ASKERS, ASKS_WAITING, ASK_NICE);
    api->lists = st_work_new(LISTERS, ASKS_WAITING, ASK_NICE);
    api->bodies = st_work_new(LISTERS, ASKS_WAITING, ASK_NICE);
    api->lab = st_work_new(LABS, LABS_WAITING, LAB_NICE);
    api->files = st_work_new(MOVERS, ASKS_WAITING, ASK_NICE);
    api->fills = st_fills_new();
    api->pulls = st_pulls_new(api);
    api->history = st_moments_new();
    api->hub = st_hub_new(api);
    const st_rules_options rules = {.types = gpu_types, .ctx = api, .estimate = options->estimate};
    api->rules = st_rules_new(&rules);
    api->park = st_park_new();
    api->agent_park = st_park_new();
    api->challenges = st_challenges_new();
    api->points = st_points_new();
    api->money_pages = st_money_pages_new();
    api->sessions = st_sessions_new(session_gone, api);
    api->zones = st_zones_new(st_zones_dir());
    api->usages = st_usages_new(ST_USAGES_ROWS);
    api->options.http.routes = st_api_routes();
    api->options.http.ctx = api;
    api->options.http.authenticate = authenticate;
    api->options.http.still = still;
    api->options.http.forget = forget;
    api->options.http.admit = admit;
    api->options.http.claim = claim;
    api->options.http.unclaim = unclaim;
    api->options.http.tick = tick;
    r = st_api_rules_load(api, err);
    if (r == 0)
        r = st_tunnels_new(api, &api->tunnels, err);
    if (r == 0)
        r = st_gate_new(api, &api->gate, err);
    if (r == 0)
        r = st_http_server_new(&api->options.http, &api->server, err);
    if (r == 0)
        r = make_agent_server(api, err);
    if (r < 0) {
        st_api_free(api);
        return r;
    }
    *ret = api;
    return 0;
}

int st_api_start(st_api *api, st_err *err)
{
    api->services = st_services_run_new(api);
    return st_services_run_start(api->services, err);
}

void st_api_stop(st_api *api)
{
    st_services_run_free(ST_TAKE(api->services));
}

void st_api_free(st_api *api)
{
    if (!api)
        return;
    st_park_close(api->park);
    st_park_close(api->agent_park);
    if (api->tunnels)
        st_tunnels_close(api->tunnels);
    st_work_free(api->work);
    st_work_free(api->asks);
    st_work_free(api->lists);
    st_work_free(api->bodies);
    st_work_free(api->lab);
    st_work_free(api->files);
    st_fills_free(api->fills);
    st_pulls_free(api->pulls);
    st_moments_free(api->history);
    st_http_server_free(api->server);
    st_http_server_free(api->agents);
    st_gate_free(api->gate);
    st_tunnels_free(api->tunnels);
    free(api->agent_routes);
    st_park_free(api->park);
    st_park_free(api->agent_park);
    st_hub_free(api->hub);
    st_challenges_free(api->challenges);
    st_points_free(api->points);
    st_money_pages_free(api->money_pages);
    st_sessions_free(api->sessions);
    st_zones_free(api->zones);
    st_usages_free(api->usages);
    st_rules_free(api->rules);
    for (size_t i = 0; i < api->readers.n; i++)
        st_store_close(api->readers.v[i]);
    st_vec_free(&api->readers);
    pthread_mutex_destroy(&api->lock);
    free(api);
}

st_http_server *st_api_server(st_api *api)
{
    return api->server;
}

void st_api_notice(st_api *api, const st_notice *notice)
{
    st_hub_send(api->hub, notice);
    if (notice->fx->kind == ST_FX_END)
        st_park_wake(api->park, ST_PARK_JOB(notice->job), true);
}

st_http_server *st_api_agent_server(st_api *api)
{
    return api->agents;
}

void st_api_agent_port(st_api *api, int port)
{
    atomic_store(&api->agent_port, port);
}

void st_api_quiet(st_api *api)
{
    st_park_close(api->park);
    st_park_close(api->agent_park);
    if (api->gate)
        st_gate_quiet(api->gate);
    st_tunnels_close(api->tunnels);
    if (api->gate)
        st_gate_close(api->gate);
}
