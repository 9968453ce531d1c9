/*
 * How a node gets in: who it is, what it has, its token.
 *
 * The join token is read from its file when it is needed, and never kept. The node's own token is in
 * DIR/node.token, readable by us alone.
 */
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/host.h"
#include "base/file.h"
#include "base/num.h"
#include "base/quote.h"

#define TOKEN_FILE   "node.token"
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
    int r = st_file_load(h->dir, MACHINE_FILE, &machine, err);

    if (r == -ST_ENOENT)
        r = make_machine(h, err);
    else if (r == 0)
        snprintf(h->machine, sizeof h->machine, "%s", st_strbuf_str(&machine));
    if (r < 0)
        return r;
    r = st_file_load(h->dir, TOKEN_FILE, &token, err);
    if (r == 0)
        snprintf(h->talk.token, sizeof h->talk.token, "%s", st_strbuf_str(&token));
    return r == -ST_ENOENT ? 0 : r;
}

/* ---- what ---------------------------------------------------------------------------------------- */

static int64_t cpu_m(const st_host *h)
{
    const st_agent_conf *c = h->process->conf;

    if (c->cpu_m > 0)
        return c->cpu_m;
    if (!h->exec->ops->real)
        return ST_MAX(h->inv.n, 1) * SIM_CPU_M;
    return (int64_t)sysconf(_SC_NPROCESSORS_ONLN) * 1000;
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
    st_strbuf_addf(out, "},\"labels\":{\"executor\":\"%s\",\"gpu_driver\":\"%s\"}}",
                   h->exec->ops->name, h->gpu ? st_gpu_driver(h->gpu) : "none");
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

void st_host_register(st_host *h)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};
    char join[ST_TOKEN_MAX] = "";
    st_err err = {0};

    if (!h->talk.token[0] && read_join(h, join, &err) < 0) {
        st_say(h, "not-registered", "reason=\"%s\"", err.msg);
        st_retry_later(h, &h->talk.main_at);
        return;
    }
    registration_json(h, &body);
    h->talk.sent_ms = st_boot_ms();
    st_line_ask(h->talk.main, "/v1/agent/register", h->talk.token[0] ? h->talk.token : join,
                "application/json", body.s, body.n, REGISTER_MS);
    explicit_bzero(join, sizeof join);
}

static void keep_token(st_host *h, const char *token)
{
    st_err err = {0};

    snprintf(h->talk.token, sizeof h->talk.token, "%s", token);
    if (st_file_replace(h->dir, TOKEN_FILE, token, strlen(token), h->exec->ops->real, &err) < 0)
        st_say(h, "token-not-kept", "reason=\"%s\"", err.msg);
}

static void refused(st_host *h, const st_answer *a)
{
    json_t *root = a->status ? json_loadb(a->body, a->n, 0, NULL) : NULL;
    const char *detail = json_string_value(json_object_get(root, "detail"));

    if (h->talk.main_at.failures < 3 || h->talk.main_at.failures % 20 == 0)
        st_say(h, "not-registered", "status=%ld reason=\"%s\"", a->status,
               detail ? detail : a->err.msg);
    /* Its own token is good for nothing: another try with a join token, if there is one. */
    if (a->status == 401 && h->talk.token[0] && h->process->conf->join_file)
        h->talk.token[0] = '\0';
    st_retry_later(h, &h->talk.main_at);
    json_decref(root);
}

void st_host_registered(st_host *h, const st_answer *a)
{
    json_t *root = a->status == 200 || a->status == 201 ? json_loadb(a->body, a->n, 0, NULL) : NULL;
    const char *token = json_string_value(json_object_get(root, "token"));
    int64_t interval = json_integer_value(json_object_get(root, "interval_ms"));
    int64_t wait = json_integer_value(json_object_get(root, "wait_ms"));
    int64_t chunk = json_integer_value(json_object_get(root, "log_chunk_bytes"));

    if (!root) {
        refused(h, a);
        return;
    }
    if (token)
        keep_token(h, token);
    h->talk.interval_ms = interval > 0 ? interval : h->talk.interval_ms;
    h->talk.wait_ms = wait > 0 ? wait : h->talk.wait_ms;
    h->talk.registered = true;
    h->talk.sent_no = 0; /* all there is, at once */
    if (chunk > 0) {
        pthread_mutex_lock(&h->mail.lock);
        h->mail.chunk = ST_MIN(chunk, 262144);
        pthread_mutex_unlock(&h->mail.lock);
    }
    st_retry_ok(&h->talk.main_at);
    st_retry_ok(&h->talk.poll_at);
    st_say(h, "registered", "pool=%s gpus=%d exec=%s",
           json_string_value(json_object_get(root, "pool")), h->inv.n, h->exec->ops->name);
    json_decref(root);
}
