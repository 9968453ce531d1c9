/*
 * How a node gets in: who it is, what it has, its key.
 *
 * A registration signs a challenge of stintd's with the node's key. A node that is known there needs nothing else;
 * a new one shows a join token as well, which is read from its file when it is needed and never kept. One that
 * joined before there were keys has a token in DIR/node.token, and binds its key with it. Whichever is refused,
 * the next is tried.
 */
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/host.h"
#include "base/file.h"
#include "base/num.h"
#include "base/quote.h"

#define TOKEN_FILE   "node.token"
#define PORT_FILE    "agent.port"
#define REGISTER     "/v1/agent/register"
#define MACHINE_FILE "machine.id"
#define REGISTER_MS  15000
#define SECRET_MAX   4096

/* Per GPU, of a node that is simulated altogether. */
#define SIM_CPU_M   INT64_C(16000)
#define SIM_RAM_MIB INT64_C(262144)

/* ---- who ---------------------------------------------------------------------------------------- */

static void hex(const unsigned char *bytes, size_t n, char *ret)
{
    for (size_t i = 0; i < n; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

/* Of a real machine: from its own id, which stays its secret. Of a simulated one: drawn once. */
static int make_machine(st_host *h, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf own = {0};
    unsigned char id[20];

    if (h->process->conf->sim || st_file_load("/etc", "machine-id", &own, err) < 0 || own.n < 16)
        randombytes_buf(id, sizeof id);
    else
        crypto_generichash(id, sizeof id, (const unsigned char *)own.s, own.n,
                           (const unsigned char *)"stint-agent machine", 19);
    hex(id, sizeof id, h->machine);
    return st_file_replace(h->dir, MACHINE_FILE, h->machine, strlen(h->machine), h->exec->ops->real,
                           err);
}

int st_host_identity(st_host *h, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf machine = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf token = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf port = {0};
    int r = st_file_load(h->dir, MACHINE_FILE, &machine, err);

    if (r == -ST_ENOENT)
        r = make_machine(h, err);
    else if (r == 0)
        snprintf(h->machine, sizeof h->machine, "%s", st_strbuf_str(&machine));
    if (r < 0)
        return r;
    if (st_file_load(h->dir, PORT_FILE, &port, err) == 0)
        st_lines_port(h->process->lines, atoi(st_strbuf_str(&port)));
    r = st_ident_open(&h->talk.ident, h->dir, h->exec->ops->real, err);
    if (r < 0)
        return r;
    h->talk.way = h->talk.ident.fresh && h->process->conf->join_file ? ST_WAY_JOIN : ST_WAY_KEY;
    r = st_file_load(h->dir, TOKEN_FILE, &token, err);
    if (r == 0) {
        snprintf(h->talk.token, sizeof h->talk.token, "%s", st_strbuf_str(&token));
        h->talk.way = ST_WAY_TOKEN;
    }
    return r == -ST_ENOENT ? 0 : r;
}

/* ---- what ---------------------------------------------------------------------------------------- */

static int64_t cpu_m(const st_host *h)
{
    const st_agent_conf *c = h->process->conf;
    st_topology now;

    if (c->cpu_m > 0)
        return c->cpu_m;
    if (!h->exec->ops->real)
        return ST_MAX(h->inv.n, 1) * SIM_CPU_M;
    st_topology_now(&h->process->topology, &now);
    return (int64_t)now.n * 1000;
}

static int64_t ram_mib(const st_host *h)
{
    const st_agent_conf *c = h->process->conf;
    struct sysinfo info;

    if (c->ram_mib > 0)
        return c->ram_mib;
    if (!h->exec->ops->real)
        return ST_MAX(h->inv.n, 1) * SIM_RAM_MIB;
    sysinfo(&info);
    return (int64_t)((uint64_t)info.totalram * info.mem_unit >> 20);
}

static void text(st_strbuf *out, const char *key, const char *value)
{
    if (!value || !value[0])
        return;
    st_strbuf_addf(out, ",\"%s\":", key);
    st_quote_json(out, value);
}

static void gpu_json(const st_host *h, st_strbuf *out)
{
    const st_gpu_info *g = &h->inv.gpu[0];

    st_strbuf_addf(out, ",\"gpu\":{\"count\":%d", h->inv.n);
    text(out, "type", g->type[0] ? g->type : "gpu");
    st_strbuf_addf(out, ",\"vram\":\"%" PRId64 "Mi\"", g->vram_mib);
    if (g->board != ST_BOARD_NONE)
        text(out, "mig", st_board_name(g->board));
    st_strbuf_add(out, ",\"uuids\":[");
    for (int d = 0; d < h->inv.n; d++) {
        st_strbuf_add(out, d ? "," : "");
        st_quote_json(out, h->inv.gpu[d].uuid);
    }
    st_strbuf_add(out, "]}");
}

/* GPUs that reach each other by NVLink: all of them or none, as boards are built. */
static int nvlink(const st_host *h)
{
    for (int d = 0; d < h->inv.n; d++)
        if (h->inv.gpu[d].links == 0)
            return 0;
    return h->inv.n > 1 ? h->inv.n : 0;
}

static void registration_json(const st_host *h, st_strbuf *out)
{
    const st_agent_conf *c = h->process->conf;
    char cpu[ST_FMT_MAX];
    size_t at;

    st_strbuf_addf(out, "{\"cpu\":%s,\"ram\":\"%" PRId64 "Mi\"", st_fmt_milli(cpu, cpu_m(h)),
                   ram_mib(h));
    text(out, "name", h->name);
    text(out, "machine_id", h->machine);
    text(out, "key", h->talk.ident.key);
    text(out, "address", c->address);
    text(out, "version", ST_VERSION);
    text(out, "driver", h->inv.driver);
    if (h->inv.n > 0)
        gpu_json(h, out);
    st_strbuf_add(out, ",\"topology\":{");
    at = out->n;
    text(out, "rack", c->rack);
    text(out, "block", c->block);
    text(out, "zone", c->zone);
    if (nvlink(h) > 0)
        st_strbuf_addf(out, ",\"nvlink\":%d", nvlink(h));
    if (out->n > at)
        out->s[at] = ' '; /* the first comma */
    st_strbuf_addf(out,
                   "},\"labels\":{\"executor\":\"%s\",\"gpu_driver\":\"%s\",\"tests\":\"burn\","
                   "\"volumes\":\"%s\"}}",
                   h->exec->ops->name, h->gpu ? st_gpu_driver(h->gpu) : "none",
                   c->volumes ? "mounted"
                              : "none"); /* who needs them is placed by it: api/expand.c */
}

/* ---- the call ------------------------------------------------------------------------------------ */

static int read_join(const st_host *h, char ret[ST_TOKEN_MAX], st_err *err)
{
    const char *file = h->process->conf->join_file;
    st_strbuf secret = {0};
    int r;

    if (!file)
        return st_fail(err, ST_EAUTH,
                       "node %s has no token: give a join token with --join-token-file", h->name);
    r = st_file_read(file, SECRET_MAX, &secret, err);
    if (r == 0) {
        const char *s = st_strbuf_str(&secret);

        snprintf(ret, ST_TOKEN_MAX, "%.*s", (int)strcspn(s, " \t\r\n"), s);
        if (secret.n > 0)
            explicit_bzero(secret.s, secret.n);
    }
    st_strbuf_done(&secret);
    if (r == 0 && !ret[0])
        r = st_fail(err, ST_EAUTH, "%s: has no join token in it", file);
    return r;
}

void st_host_ask(st_host *h, st_agent_line *line, const char *path, const char *type,
                 const char *body, size_t n, int64_t timeout_ms)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf proof = {0};

    pthread_mutex_lock(&h->talk.ident_lock);
    st_ident_prove(&h->talk.ident, h->name, NULL, body ? "POST" : "GET", path, body, n, &proof);
    pthread_mutex_unlock(&h->talk.ident_lock);
    st_line_ask(line, path, st_strbuf_str(&proof), type, body, n, timeout_ms);
}

/* Another way in than the one that was refused. */
static void other_way(st_host *h)
{
    bool may_join = h->process->conf->join_file != NULL;

    h->talk.way = h->talk.way == ST_WAY_KEY && may_join ? ST_WAY_JOIN : ST_WAY_KEY;
}

static void answer_challenge(st_host *h, const char *token)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf proof = {0};

    registration_json(h, &body);
    pthread_mutex_lock(&h->talk.ident_lock);
    st_ident_prove(&h->talk.ident, h->name, h->talk.challenge, "POST", REGISTER, body.s, body.n,
                   &proof);
    pthread_mutex_unlock(&h->talk.ident_lock);
    h->talk.challenge[0] = '\0';
    h->talk.sent_ms = st_boot_ms();
    if (token)
        st_line_prove(h->talk.main, st_strbuf_str(&proof));
    st_line_ask(h->talk.main, REGISTER, token ? token : st_strbuf_str(&proof), "application/json",
                body.s, body.n, REGISTER_MS);
}

void st_host_register(st_host *h)
{
    char join[ST_TOKEN_MAX] = "";
    st_err err = {0};

    if (h->talk.way == ST_WAY_KEY && h->talk.ident.fresh && !h->process->conf->join_file)
        read_join(h, join, &err); /* says what is missing */
    else if (h->talk.way == ST_WAY_JOIN)
        read_join(h, join, &err);
    if (err.code != 0) {
        st_say(h, "not-registered", "reason=\"%s\"", err.msg);
        st_retry_later(h, &h->talk.main_at);
        other_way(h);
        return;
    }
    h->talk.asked = !h->talk.challenge[0];
    if (h->talk.asked)
        st_line_ask(h->talk.main, "/v1/agent/challenge", NULL, NULL, NULL, 0, REGISTER_MS);
    else
        answer_challenge(h, h->talk.way == ST_WAY_JOIN    ? join
                            : h->talk.way == ST_WAY_TOKEN ? h->talk.token
                                                          : NULL);
    explicit_bzero(join, sizeof join);
}

/* Bound to a key: the token of the time before is good for nothing any more. */
static void drop_token(st_host *h)
{
    char path[PATH_MAX + 16];

    if (!h->talk.token[0])
        return;
    explicit_bzero(h->talk.token, sizeof h->talk.token);
    snprintf(path, sizeof path, "%s/" TOKEN_FILE, h->dir);
    unlink(path);
}

static void refused(st_host *h, const st_answer *a)
{
    json_t *root = a->status ? json_loadb(a->body, a->n, 0, NULL) : NULL;
    const char *detail = json_string_value(json_object_get(root, "detail"));

    if (h->talk.main_at.failures < 3 || h->talk.main_at.failures % 20 == 0)
        st_say(h, "not-registered", "status=%ld reason=\"%s\"", a->status,
               detail ? detail : a->err.msg);
    if (a->status == 401 || a->status == 403 || a->status == 409)
        other_way(h);
    st_retry_later(h, &h->talk.main_at);
    json_decref(root);
}

/* Kept, so that an agent that starts while the port for everybody is beset knows where to go. */
static void take_port(st_host *h, int64_t port)
{
    char text[24];
    st_err err;

    st_lines_port(h->process->lines, (int)port);
    if (port <= 0 || port == h->talk.port)
        return;
    h->talk.port = (int)port;
    snprintf(text, sizeof text, "%d", (int)port);
    if (st_file_replace(h->dir, PORT_FILE, text, strlen(text), false, &err) < 0)
        st_say(h, "port-not-kept", "reason=\"%s\"", err.msg);
}

static void challenged(st_host *h, const st_answer *a)
{
    json_t *root = a->status == 200 ? json_loadb(a->body, a->n, 0, NULL) : NULL;
    const char *text = json_string_value(json_object_get(root, "challenge"));

    take_port(h, json_integer_value(json_object_get(root, "agent_port")));
    if (text && strlen(text) < sizeof h->talk.challenge)
        snprintf(h->talk.challenge, sizeof h->talk.challenge, "%s", text);
    else
        refused(h, a);
    json_decref(root);
}

void st_host_registered(st_host *h, const st_answer *a)
{
    json_t *root;

    if (h->talk.asked) {
        challenged(h, a);
        return;
    }
    root = a->status == 200 || a->status == 201 ? json_loadb(a->body, a->n, 0, NULL) : NULL;
    const char *session = json_string_value(json_object_get(root, "session"));
    int64_t interval = json_integer_value(json_object_get(root, "interval_ms"));
    int64_t wait = json_integer_value(json_object_get(root, "wait_ms"));
    int64_t chunk = json_integer_value(json_object_get(root, "log_chunk_bytes"));

    if (!root || !session) {
        refused(h, a);
        json_decref(root);
        return;
    }
    if (h->talk.main_at.failures > 0)
        st_say(h, "back", "after=%d", h->talk.main_at.failures);
    pthread_mutex_lock(&h->talk.ident_lock);
    st_ident_session(&h->talk.ident, session);
    pthread_mutex_unlock(&h->talk.ident_lock);
    h->talk.tunnels = json_is_true(json_object_get(root, "tunnels"));
    h->talk.ident.fresh = false;
    h->talk.way = ST_WAY_KEY;
    drop_token(h);
    st_line_drop(h->talk.poll); /* it asked in an older session */
    h->talk.interval_ms = interval > 0 ? interval : h->talk.interval_ms;
    h->talk.wait_ms = wait > 0 ? wait : h->talk.wait_ms;
    h->talk.registered = true;
    h->talk.registered_ms = st_boot_ms();
    h->talk.sent_no = 0; /* all there is, at once */
    pthread_mutex_lock(&h->mail.lock);
    h->mail.gpus_alone = json_is_true(json_object_get(root, "gpus_alone"));
    h->mail.chunk = chunk > 0 ? ST_MIN(chunk, 262144) : h->mail.chunk;
    pthread_mutex_unlock(&h->mail.lock);
    st_retry_ok(&h->talk.main_at);
    st_retry_ok(&h->talk.poll_at);
    st_say(h, "registered", "pool=%s gpus=%d exec=%s",
           json_string_value(json_object_get(root, "pool")), h->inv.n, h->exec->ops->name);
    json_decref(root);
}
