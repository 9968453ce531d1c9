/*
 * Wiring (stintd/stintd.h).
 */
#include "stintd/stintd.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/net.h"
#include "base/utf8.h"
#include "control/restore.h"
#include "engine/native.h"
#include "stintd/clock.h"
#include "stintd/deliver.h"
#include "stintd/listen.h"
#include "stintd/pull.h"
#include "stintd/reload.h"
#include "stintd/remedy.h"
#include "stintd/witness.h"

#define STOP_GRACE_MS 5000

struct st_serve {
    st_config config;
    st_clock *clock;
    st_engine *engine;
    st_engine *native; /* the part of it with agents; NULL */
    st_logs *logs;
    st_strbuf backups, events, volumes, spool; /* folders; spool: of answers until they are sent */
    st_control *control;
    st_api *api;
    st_witness *witness; /* NULL: none */
    st_remedies *remedies;
    st_courier *courier; /* where notices may go */
    st_deliverer *deliverer;
    st_config_reader *reader;
    void *reader_ctx;
    pthread_mutex_t reloading; /* one at a time */
    atomic_bool ending;        /* what it runs for long is to end */
};

/* Everything that is decided or counted goes by this. */
static int64_t now_ms(void *ctx)
{
    const st_serve *serve = ctx;

    return st_clock_ms(serve->clock);
}

/* One line a thing, with the time in front; systemd adds its own. */
static void log_line(void *ctx, const char *line)
{
    char at[32];
    struct tm tm;
    time_t s = time(NULL);

    (void)ctx;
    gmtime_r(&s, &tm);
    strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &tm);
    /* One line whatever is in it: names and reasons come from others. */
    ST_CLEANUP(st_freep) char *tame = st_xstrdup(line);

    st_text_tame(tame);
    fprintf(stderr, "time=%s %s\n", at, tame);
}

static void clock_jumped(void *ctx, int64_t jump_ms)
{
    char line[80];

    snprintf(line, sizeof line, "event=clock_jumped by_ms=%lld", (long long)jump_ms);
    log_line(ctx, line);
}

static int64_t clock_off(void *ctx, bool *ret_doubted)
{
    const st_serve *serve = ctx;

    return st_clock_off_ms(serve->clock, ret_doubted);
}

static bool clock_mark(void *ctx, st_clock_mark *ret)
{
    const st_serve *serve = ctx;
    const char *boot;

    if (!st_clock_mark_ms(serve->clock, &boot, &ret->ahead_ms))
        return false;
    snprintf(ret->boot, sizeof ret->boot, "%s", boot);
    return true;
}

static bool clock_accept(void *ctx)
{
    const st_serve *serve = ctx;

    return st_clock_accept(serve->clock);
}

/* Time goes on from the last moment in the store; a wall clock that is far from it is somebody's to look at. */
static void begin_clock(st_serve *serve)
{
    int64_t last = st_control_last_ms(serve->control), off;
    const st_clock_mark *mark = st_control_mark(serve->control);
    char line[160];
    bool doubted;

    if (last > 0)
        st_clock_go_on(serve->clock, last, serve->config.clock_limit_ms, mark->boot,
                       mark->ahead_ms);
    /* An old backup was put here by somebody who knows that it is. */
    if (st_control_restore_state(serve->control) != ST_RESTORE_NONE)
        (void)st_clock_accept(serve->clock);
    off = st_clock_off_ms(serve->clock, &doubted);
    if (!doubted && last > 0 && st_clock_ms(serve->clock) - last >= 60000) {
        snprintf(line, sizeof line,
                 "event=time_passed ms=%lld since=\"the last moment in the store\"",
                 (long long)(st_clock_ms(serve->clock) - last));
        log_line(serve, line);
    }
    if (!doubted)
        return;
    snprintf(line, sizeof line,
             "event=clock_doubted off_ms=%lld do=\"look at the machine's clock, then: stint admin "
             "clock accept\"",
             (long long)off);
    log_line(serve, line);
}

static void heard(void *ctx, const st_notice *notice)
{
    st_serve *serve = ctx;

    if (serve->api)
        st_api_notice(serve->api, notice);
    st_notices_hear(serve->control, notice);
}

static void deliver(void *ctx, const st_outgoing *o)
{
    st_serve *serve = ctx;

    st_deliverer_take(serve->deliverer, o);
}

static void reported(void *ctx, const st_report *report)
{
    st_serve *serve = ctx;

    st_control_report(serve->control, report);
}

static void name_job(void *ctx, uint64_t job, char ret[ST_NATIVE_NAME])
{
    const st_serve *serve = ctx;

    st_control_id_text(serve->control, job, ret);
}

static void dress_job(void *ctx, const char *account, const char *user, const char *doc,
                      st_strbuf *out)
{
    const st_serve *serve = ctx;

    st_control_dress(serve->control, account, user, doc, out);
}

static void node_changed(void *ctx, int32_t node)
{
    st_serve *serve = ctx;

    if (serve->api)
        st_api_node_changed(serve->api, node);
}

/* As configured, or `name` beside the store. */
static void place_of(const st_serve *serve, const char *given, const char *name, st_strbuf *out)
{
    if (given)
        st_strbuf_add(out, given);
    else
        st_store_beside_of(serve->config.store, name, out);
}

/* A folder that takes no files would be found out by whoever looks for the first lost line. */
static int check_folder(const char *dir, st_err *err)
{
    struct stat st;
    const char *why = NULL;

    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        why = strerror(errno);
    else if (stat(dir, &st) < 0 || access(dir, R_OK | W_OK | X_OK) < 0)
        why = strerror(errno);
    else if (!S_ISDIR(st.st_mode))
        why = "it is no folder";
    return why ? st_fail(err, ST_EINVAL, "logs: %s cannot be used: %s", dir, why) : 0;
}

static int open_logs(st_serve *serve, st_err *err)
{
    const st_config *c = &serve->config;
    ST_CLEANUP(st_strbuf_done) st_strbuf dir = {0};

    int r;

    place_of(serve, c->logs, "logs", &dir);
    r = c->logs ? check_folder(c->logs, err) : 0;
    if (r < 0)
        return r;
    serve->logs = st_logs_new(st_strbuf_str(&dir), c->log_mib * 1024 * 1024);
    if (c->log_keep_ms > 0) /* 0: they are kept */
        st_logs_prune(serve->logs, now_ms(serve) - c->log_keep_ms);
    return 0;
}

static int64_t log_bytes_left(void *ctx, int32_t number)
{
    const st_serve *serve = ctx;

    return st_allowance_left_as(st_control_allowance(serve->control), number, ST_AL_LOG_BYTES);
}

static void log_bytes_count(void *ctx, int32_t number, int64_t bytes)
{
    const st_serve *serve = ctx;

    st_allowance_put_as(st_control_allowance(serve->control), number, ST_AL_LOG_BYTES, bytes);
}

/* The name by which the directory knows an account of logs: "NAME (NUMBER)" is what it goes by when it is gone, and
 * NAME until then. Logs of earlier versions have the name alone. */
static const char *log_account(st_directory *dir, const char *word, char name[ST_NAME_MAX + 1])
{
    size_t n = strcspn(word, " ");

    if (n > ST_NAME_MAX || word[n] != ' ')
        return word;
    memcpy(name, word, n);
    name[n] = '\0';
    return st_directory_serial(dir, name) == strtoll(word + n + 2, NULL, 10) ? name : word;
}

/* Whoever stands next above an account that is gone pays for what it has left. */
static int32_t log_number(void *ctx, const char *word)
{
    const st_serve *serve = ctx;
    st_directory *dir = st_control_directory(serve->control);
    char name[ST_NAME_MAX + 1];
    const char *account = log_account(dir, word, name);
    int32_t number = -1;

    while (account &&
           (number = st_allowance_number(st_control_allowance(serve->control), account)) < 0)
        account = st_directory_parent(dir, account);
    return ST_MAX(number, ST_AL_CLUSTER);
}

static int32_t log_org(void *ctx, const char *word)
{
    const st_serve *serve = ctx;
    st_directory *dir = st_control_directory(serve->control);
    char name[ST_NAME_MAX + 1];

    return st_directory_org(dir, log_account(dir, word, name));
}

static int make_engine(st_serve *serve, st_err *err)
{
    const st_config *c = &serve->config;
    bool sim = strcmp(c->engine, "sim") == 0, native = strcmp(c->engine, "native") == 0;
    const st_native_options options = {.clock = now_ms,
                                       .name = name_job,
                                       .dress = dress_job,
                                       .changed = node_changed,
                                       .ctx = serve,
                                       .lease_ms = c->agent_lease_ms,
                                       .keep = c->agent_keep,
                                       .logs = serve->logs};
    st_engine *parts[2];
    size_t n = 0;

    if (!sim && !native && strcmp(c->engine, "auto") != 0)
        return st_fail(err, ST_EINVAL, "there is no engine %.40s; there are sim, native and auto",
                       c->engine);
    if (!sim)
        parts[n++] = serve->native = st_engine_native_new(&options);
    if (!native)
        parts[n++] = st_engine_sim_new();
    serve->engine = st_engine_mux_new(parts, n);
    return 0;
}

static int make_courier(st_serve *serve, st_err *err)
{
    const st_config *c = &serve->config;
    const st_courier_options options = {.hosts = c->notice_hosts,
                                        .networks = c->notice_networks,
                                        .ca = c->notice_ca,
                                        .smtp = c->notice_mail,
                                        .smtp_login = c->notice_mail_login,
                                        .from = c->notice_mail_from,
                                        .domains = c->notice_mail_domains};

    return st_courier_new(&options, &serve->courier, err);
}
static int reload_now(void *ctx, st_strbuf *ret, st_err *err);
static st_pull pull_of(const st_config *c)
{
    return (st_pull){.dir = c->images,
                     .registries = c->registries,
                     .policy = c->registry_policy,
                     .signatures = c->registry_signatures,
                     .auth = c->registry_auth};
}

static bool pull_ends(void *ctx)
{
    const st_serve *serve = ctx;

    return atomic_load(&serve->ending);
}

static int pull_image(void *ctx, const char *from, st_strbuf *ret_path, char ret_digest[72],
                      st_err *err)
{
    const st_serve *serve = ctx;
    st_pull p = pull_of(&serve->config);

    p.ends = pull_ends;
    p.ctx = ctx;
    return st_pull_image(&p, from, ret_path, ret_digest, err);
}

int st_serve_new(const st_config *config, st_serve **ret, st_err *err)
{
    st_serve *serve = st_xcalloc(1, sizeof *serve);
    int r = 0;

    serve->config = *config;
    ST_ASSERT(pthread_mutex_init(&serve->reloading, NULL) == 0);
    serve->clock = st_clock_new(clock_jumped, serve);
    const st_pull pull = pull_of(config);

    r = st_pull_check(&pull, err);
    if (r == 0)
        r = open_logs(serve, err);
    place_of(serve, config->backup_dir, "backups", &serve->backups);
    place_of(serve, config->volumes, "volumes", &serve->volumes);
    place_of(serve, NULL, "events", &serve->events);
    place_of(serve, NULL, ".", &serve->spool);
    if (r == 0)
        r = make_engine(serve, err);
    if (r == 0)
        r = make_courier(serve, err);
    if (r == 0) {
        serve->engine->report = reported;
        serve->engine->ctx = serve;
        const st_control_options options = {
            .store = config->store,
            .policy = config->policy,
            .clock = now_ms,
            .clock_mark = clock_mark,
            .log = log_line,
            .listen = heard,
            .deliver = deliver,
            .ctx = serve,
            .engine = serve->engine,
            .snap_rows = config->snapshot_rows,
            .keep_jobs_ms = config->job_keep_ms,
            .keep_log_ms = config->history_keep_ms,
            .series = {.step_ms = config->series_step_ms,
                       .keep_ms = {config->series_keep_ms, config->series_keep_10_ms,
                                   config->series_keep_60_ms}},
            .quota = &config->quota,
            .quota_total = &config->quota_total,
            .billing = {.zone = config->billing_zone,
                        .currency = config->billing_currency,
                        .cluster = config->billing_cluster,
                        .key = config->billing_key,
                        .credit_second = config->credit_alone != ST_UNSET,
                        .credit_alone_udollars = config->credit_alone * 1000000,
                        .anomaly = {.times = config->anomaly,
                                    .floor_udollars = config->anomaly_floor * 1000000,
                                    .days = (int)config->anomaly_days}},
            .secrets_key = config->secrets_key};
        r = st_control_new(&options, &serve->control, err);
        if (r == 0)
            begin_clock(serve);
    }
    if (r == 0)
        serve->deliverer =
            st_deliverer_new(&(st_deliver_options){.control = serve->control,
                                                   .courier = serve->courier,
                                                   .retry_ms = config->notice_retry_ms,
                                                   .keep_ms = config->notice_keep_ms});
    if (r == 0) {
        const st_api_options options = {
            .control = serve->control,
            .clock = now_ms,
            .clock_off = clock_off,
            .clock_accept = clock_accept,
            .reload = reload_now,
            .ctx = serve,
            .courier = serve->courier,
            .estimate = &serve->config.estimate,
            .native = serve->native,
            .logs = serve->logs,
            .log_keep_ms = config->log_keep_ms,
            .backup_dir = st_strbuf_str(&serve->backups),
            .pull = config->registries ? pull_image : NULL,
            .folder_keep_ms = config->folder_keep_ms,
            .events_dir = config->events_keep_ms > 0 ? st_strbuf_str(&serve->events) : NULL,
            .events_keep_ms = config->events_keep_ms,
            .volumes_dir = st_strbuf_str(&serve->volumes),
            .spool_dir = st_strbuf_str(&serve->spool),
            .no_shells = !config->shells,
            .no_forwards = !config->forwards,
            .tunnel_idle_ms = config->tunnel_idle_ms,
            .admin_uid = getuid(),
            .http = {.connections_max = (int)config->connections,
                     .connections_per_peer = (int)ST_MAX(config->connections / 4, 1),
                     .strangers_per_peer = (int)config->strangers,
                     .rate_per_s = (int)config->rate,
                     .threads = (int)config->threads,
                     .big_body_max = config->body_mib * 1024 * 1024},
        };
        r = st_api_new(&options, &serve->api, err);
        st_logs_rule(serve->logs, &(st_logs_rules){.ctx = serve,
                                                   .number = log_number,
                                                   .left = log_bytes_left,
                                                   .count = log_bytes_count,
                                                   .org = log_org});
    }
    if (r < 0) {
        st_serve_free(serve);
        return r;
    }
    *ret = serve;
    return 0;
}

/* ---- commands that are waited for ------------------------------------------------------------ */

typedef struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
    st_err err;
} waiter;

/* The command to be waited for is run by one of our own, which knows who waits. */
typedef struct waited {
    st_cmd cmd;
    st_cmd *inner;
    waiter *who;
} waited;

static int run_waited(st_tx *tx, st_cmd *cmd, st_err *err)
{
    waited *w = (waited *)cmd;

    return w->inner->run(tx, w->inner, err);
}

static void publish_waited(st_control *ctl, st_cmd *cmd)
{
    waited *w = (waited *)cmd;

    if (w->inner->publish)
        w->inner->publish(ctl, w->inner);
}

static void done_waited(st_cmd *cmd, const st_err *err)
{
    waiter *who = ((waited *)cmd)->who;

    pthread_mutex_lock(&who->lock);
    if (err)
        who->err = *err;
    who->done = true;
    pthread_cond_signal(&who->cond);
    pthread_mutex_unlock(&who->lock);
}

int st_serve_do(st_serve *serve, st_cmd *cmd, st_err *err)
{
    waiter who = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    waited w = {.cmd = {.lane = ST_LANE_AGENTS,
                        .run = run_waited,
                        .publish = publish_waited,
                        .done = done_waited},
                .inner = cmd,
                .who = &who};

    if (!st_control_post(serve->control, &w.cmd))
        return st_fail(err, ST_EDOWN, "the control loop has stopped");
    pthread_mutex_lock(&who.lock);
    while (!who.done)
        pthread_cond_wait(&who.cond, &who.lock);
    pthread_mutex_unlock(&who.lock);
    if (who.err.code == 0)
        return 0;
    *err = who.err;
    return -err->code;
}

/* ---- starting and stopping -------------------------------------------------------------------- */

/* A changed configuration is an event, so that the log knows of it. */
static int change_policy(st_serve *serve, const st_policy *policy, st_err *err)
{
    st_cmd_event cmd = {.who = {.role = ST_ROLE_OWNER, .user = "stintd", .source = "configuration"},
                        .event = {.kind = ST_EV_POLICY, .u.policy = *policy},
                        .verb = "policy.change",
                        .target = "policy"};

    st_cmd_event_init(&cmd);
    return st_serve_do(serve, &cmd.cmd, err);
}

int st_serve_start(st_serve *serve, int *ret_port, st_err *err)
{
    const st_config *c = &serve->config;
    st_http_server *server = st_api_server(serve->api);
    int port = 0;
    bool same = st_control_has_policy(serve->control, &c->policy);
    int r = st_listen_secure(c, c->listen, log_line, err);

    if (r == 0 && c->witness)
        r = st_witness_check(c->witness, err);
    if (r == 0)
        r = st_remedies_check(c->remedy, err);
    if (r == 0)
        r = st_control_start(serve->control, err);
    if (r == 0)
        r = st_api_start(serve->api, err);
    /* A restored store takes it when it decides again. */
    if (r == 0 && !same && st_control_restore_state(serve->control) == ST_RESTORE_NONE)
        r = change_policy(serve, &c->policy, err);
    if (r == 0 && c->listen)
        r = st_http_listen(server, c->listen, c->cert, c->key, &port, err);
    if (r == 0 && serve->native && c->listen)
        r = st_listen_agents(c, serve->api, port, log_line, err);
    if (r == 0 && ret_port)
        *ret_port = port;
    if (r == 0 && c->socket)
        r = st_http_listen_unix(server, c->socket, 0600, err);
    if (r == 0 && c->witness)
        r = st_witness_new(c->witness, serve->api, log_line, NULL, &serve->witness, err);
    if (r == 0)
        r = st_remedies_new(serve, c->remedy, c->remedy_timeout_ms, &serve->remedies, err);
    if (r == 0)
        r = st_deliverer_start(serve->deliverer, err);
    return r;
}

/* ---- reading the configuration again (reload.c) ------------------------------------------------ */

st_config *st_serve_config(st_serve *serve)
{
    return &serve->config;
}

void st_serve_reader(st_serve *serve, st_config_reader *reader, void *ctx)
{
    serve->reader = reader;
    serve->reader_ctx = ctx;
}

int st_serve_read_config(st_serve *serve, st_config *ret, st_err *err)
{
    if (!serve->reader)
        return st_fail(err, ST_ESTATE, "stintd was started without a file of configuration");
    return serve->reader(serve->reader_ctx, ret, err);
}

int st_serve_read_tls(st_serve *serve, st_err *err)
{
    int r = 0;

    if (serve->config.cert)
        r = st_http_reload_tls(st_api_server(serve->api), err);
    if (serve->config.cert && r == 0)
        r = st_http_reload_tls(st_api_agent_server(serve->api), err);
    return r;
}

int st_serve_policy(st_serve *serve, const st_policy *policy, st_err *err)
{
    return change_policy(serve, policy, err);
}

int st_serve_remedies(st_serve *serve, st_err *err)
{
    st_remedies_free(serve->remedies);
    serve->remedies = NULL;
    return st_remedies_new(serve, serve->config.remedy, serve->config.remedy_timeout_ms,
                           &serve->remedies, err);
}

/* An owner asks for it. From a thread of its own, never from the loop. */
static int reload_now(void *ctx, st_strbuf *ret, st_err *err)
{
    st_serve *serve = ctx;
    st_reloaded now;
    int r;

    pthread_mutex_lock(&serve->reloading);
    r = st_reload(serve, &now, err);
    pthread_mutex_unlock(&serve->reloading);
    if (r < 0) {
        fprintf(stderr, "event=reload_failed reason=\"%s\"\n", err->msg);
        return r;
    }
    st_reload_say(&now);
    st_reload_json(&now, ret);
    return 0;
}

void st_serve_reload(st_serve *serve)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf said = {0};
    st_cmd_note note = {.who = {.role = ST_ROLE_OWNER, .user = "stintd", .source = "signal"},
                        .verb = "config.reload",
                        .account = "",
                        .target = "configuration"};
    st_err err = {0};

    if (reload_now(serve, &said, &err) < 0) {
        note.verb = "config.reload_failed";
    } else {
        note.detail = st_strbuf_str(&said);
    }
    st_cmd_note_init(&note);
    (void)st_serve_do(serve, &note.cmd, &err);
}

static void end_witness(st_serve *serve)
{
    st_deliverer_stop(serve->deliverer);
    st_remedies_free(serve->remedies);
    serve->remedies = NULL;
    st_witness_free(serve->witness);
    serve->witness = NULL;
}

void st_serve_stop(st_serve *serve)
{
    atomic_store(&serve->ending, true);
    end_witness(serve);
    st_api_quiet(serve->api);
    st_http_server_stop(st_api_server(serve->api), STOP_GRACE_MS);
    st_http_server_stop(st_api_agent_server(serve->api), STOP_GRACE_MS);
    st_api_stop(serve->api);
    st_control_stop(serve->control);
}

void st_serve_free(st_serve *serve)
{
    if (!serve)
        return;
    st_api *api = serve->api;
    end_witness(serve);
    if (api) { /* nobody may ask for it any more when it goes */
        st_api_quiet(api);
        st_http_server_stop(st_api_server(api), 0);
        st_http_server_stop(st_api_agent_server(api), 0);
        st_api_stop(api);
    }
    if (serve->control)
        st_control_stop(serve->control);
    st_deliverer_free(serve->deliverer);
    serve->api = NULL;
    st_api_free(api);
    st_control_free(serve->control);
    if (serve->engine)
        serve->engine->ops->free(serve->engine);
    st_logs_free(serve->logs);
    st_strbuf_done(&serve->backups);
    st_strbuf_done(&serve->volumes);
    st_strbuf_done(&serve->events);
    st_strbuf_done(&serve->spool);
    st_courier_free(serve->courier);
    st_clock_free(serve->clock);
    free(serve);
}

st_control *st_serve_control(st_serve *serve)
{
    return serve->control;
}
