/*
 * Configuration (stintd/config.h).
 */
#include "stintd/config.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/doc.h"
#include "base/num.h"
#include "model/types.h"
#include "share/divide.h"
#include "spec/fields.h"

/* X(key, kind, field, default in words, lowest, highest, meaning) */
#define CONFIG_TABLE(X)                                                                            \
    X("user", ST_F_TEXT, user, "none", 0, 0,                                                       \
      "user that stintd switches to when root starts it; capabilities are dropped in any case")    \
    X("store", ST_F_TEXT, store, "stint.db", 0, 0, "file of the database")                         \
    X("listen", ST_F_TEXT, listen, "127.0.0.1:7878", 0, 0, "address and port of the API")          \
    X("socket", ST_F_TEXT, socket, "none", 0, 0,                                                   \
      "unix socket on which root and stintd's own user act as owner without a token")              \
    X("tls_cert", ST_F_TEXT, cert, "none", 0, 0,                                                   \
      "certificate chain (PEM); with tls_key it turns on HTTPS")                                   \
    X("tls_key", ST_F_TEXT, key, "none", 0, 0, "private key (PEM)")                                \
    X("insecure", ST_F_BOOL, insecure, "false", 0, 0,                                              \
      "listen off loopback without TLS; tokens, jobs and secrets then travel unencrypted")         \
    X("agent_listen", ST_F_TEXT, agent_listen, "auto", 0, 0,                                       \
      "address and port for agents, separate from tenants' traffic; auto: the address of listen "  \
      "and the next port; none: share listen")                                                     \
    X("engine", ST_F_TEXT, engine, "auto", 0, 0,                                                   \
      "who runs jobs: sim (nodes are announced, nothing runs), native (agents register), auto "    \
      "(either, by node)")                                                                         \
    X("agent_lease", ST_F_DURATION, agent_lease_ms, "1m", 1000, 0,                                 \
      "silence after which a node counts as lost and its jobs restart elsewhere")                  \
    X("clock_limit", ST_F_DURATION, clock_limit_ms, "1d", 0, 0,                                    \
      "how far the clock may be ahead of the last time in the store at a start after a reboot; "   \
      "a clock further ahead is not used until an owner accepts it")                               \
    X("agent_keep", ST_F_BOOL, agent_keep, "false", 0, 0,                                          \
      "keep tasks running when a lease has ended; a job may then run twice")                       \
    X("logs", ST_F_TEXT, logs, "none", 0, 0,                                                       \
      "directory for the output of tasks (default: beside the store)")                             \
    X("log_size", ST_F_I64, log_mib, "64", 1, 1048576, "MiB of output kept per task")              \
    X("log_keep", ST_F_DURATION, log_keep_ms, "14d", 0, 0,                                         \
      "time after which a log without additions is removed; 0: never")                             \
    X("job_keep", ST_F_DURATION, job_keep_ms, "90d", 0, 0,                                         \
      "time after which an ended job is removed; its bills stay; 0: never")                        \
    X("history_keep", ST_F_DURATION, history_keep_ms, "7d", 0, 0,                                  \
      "how far back the scheduler's log reaches, for the console's Replay and stint sim replay; "  \
      "0: only what a start needs")                                                                \
    X("series_step", ST_F_DURATION, series_step_ms, "1m", 0, 60000,                                \
      "width of the narrowest buckets of figures over time; the next are ten and sixty of it; "    \
      "0: none are kept")                                                                          \
    X("series_keep", ST_F_DURATION, series_keep_ms, "2d", 0, 0,                                    \
      "how long the narrowest buckets are kept")                                                   \
    X("series_keep_10", ST_F_DURATION, series_keep_10_ms, "30d", 0, 0,                             \
      "how long buckets of ten steps are kept")                                                    \
    X("series_keep_60", ST_F_DURATION, series_keep_60_ms, "730d", 0, 0,                            \
      "how long buckets of sixty steps are kept")                                                  \
    X("connections", ST_F_I64, connections, "4096", 1, 100000, "most open connections per port")   \
    X("strangers", ST_F_I64, strangers, "64", 1, 100000,                                           \
      "most connections per address (or IPv6 /64) that have not shown a token")                    \
    X("rate", ST_F_I64, rate, "200", 1, 1000000, "requests per second and token")                  \
    X("threads", ST_F_I64, threads, "2", 1, 64, "threads that serve requests")                     \
    X("body", ST_F_I64, body_mib, "64", 1, 1024, "MiB that the body of a batch may have")          \
    X("snapshot_rows", ST_F_I64, snapshot_rows, "32768", 16, 1000000,                              \
      "rows of the log between two snapshots of the scheduler")                                    \
    X("billing_zone", ST_F_TEXT, billing_zone, "UTC", 0, 0,                                        \
      "time zone (IANA name) in which the months of bills end")                                    \
    X("billing_currency", ST_F_TEXT, billing_currency, "USD", 0, 0,                                \
      "name of the currency on bills; amounts are never converted")                                \
    X("billing_cluster", ST_F_TEXT, billing_cluster, "stint", 0, 0,                                \
      "cluster name on signed bills")                                                              \
    X("billing_key", ST_F_TEXT, billing_key, "none", 0, 0,                                         \
      "file of the key that signs bills (default: billing.key beside the store)")                  \
    X("witness", ST_F_TEXT, witness, "none", 0, 0,                                                 \
      "http or https address that the signed head of the log of checkpoints is posted to")         \
    X("anomaly", ST_F_I64, anomaly, "5", 0, 1000,                                                  \
      "times its usual cost of a day from which an account or user is reported as unusual; 0: "    \
      "never")                                                                                     \
    X("anomaly_floor", ST_F_I64, anomaly_floor, "100", 0, 1000000000,                              \
      "dollars that a day must cost at least to be reported")                                      \
    X("anomaly_days", ST_F_I64, anomaly_days, "14", 3, 31,                                         \
      "how many days before today are looked at for what is usual")                                \
    X("remedy", ST_F_TEXT, remedy, "none", 0, 0,                                                   \
      "program that resets, reboots or reports nodes that are out of service; without one the "    \
      "journal (stint node remedies) says what would be done")                                     \
    X("remedy_timeout", ST_F_DURATION, remedy_timeout_ms, "10m", 1000, 86400000,                   \
      "time after which that program is killed")                                                   \
    X("notice_hosts", ST_F_TEXT, notice_hosts, "none", 0, 0,                                       \
      "hosts that webhooks of notices may go to: hooks.example.com, *.example.com, "               \
      "host:8443, http://host:8080")                                                               \
    X("notice_networks", ST_F_TEXT, notice_networks, "none", 0, 0,                                 \
      "private networks that these hosts may be in: 10.2.0.0/16; without it only public "          \
      "addresses are connected to")                                                                \
    X("notice_ca", ST_F_TEXT, notice_ca, "none", 0, 0,                                             \
      "file of the certificates (PEM) by which these hosts are known (default: the system's)")     \
    X("notice_mail", ST_F_TEXT, notice_mail, "none", 0, 0,                                         \
      "mail server: smtp://mail.example.com:25 or smtps://mail.example.com")                       \
    X("notice_mail_login", ST_F_TEXT, notice_mail_login, "none", 0, 0,                             \
      "file with USER:PASSWORD for the mail server, which must then have TLS")                     \
    X("notice_mail_from", ST_F_TEXT, notice_mail_from, "none", 0, 0, "sender of these mails")      \
    X("notice_mail_domains", ST_F_TEXT, notice_mail_domains, "none", 0, 0,                         \
      "domains that mail may go to: example.com, example.org")                                     \
    X("notice_retry", ST_F_DURATION, notice_retry_ms, "10s", 100, 3600000,                         \
      "pause after the first attempt at a delivery that failed; it doubles, up to an hour")        \
    X("notice_keep", ST_F_DURATION, notice_keep_ms, "1d", 1000, 0, "how long one is tried")        \
    X("backup_dir", ST_F_TEXT, backup_dir, "none", 0, 0,                                           \
      "directory for stint admin backup (default: backups beside the store)")                      \
    X("volumes", ST_F_TEXT, volumes, "none", 0, 0,                                                 \
      "directory of the volumes, where agents have it too (--volumes; default: volumes beside "    \
      "the store)")                                                                                \
    X("images", ST_F_TEXT, images, "none", 0, 0,                                                   \
      "directory of images that were pulled, at the same path on every node")                      \
    X("registries", ST_F_TEXT, registries, "none", 0, 0,                                           \
      "registries that images may be pulled from, HOST[:PORT], comma-separated; needs images and " \
      "skopeo")                                                                                    \
    X("registry_policy", ST_F_TEXT, registry_policy, "none", 0, 0,                                 \
      "file that says which signatures images must have (containers-policy.json)")                 \
    X("registry_signatures", ST_F_TEXT, registry_signatures, "/etc/containers/registries.d", 0, 0, \
      "directory that says where signatures of images are (containers-registries.d)")              \
    X("registry_auth", ST_F_TEXT, registry_auth, "none", 0, 0,                                     \
      "file with logins for registries (containers-auth.json)")                                    \
    X("events_keep", ST_F_DURATION, events_keep_ms, "30d", 0, 0,                                   \
      "how long past events are kept (stint events --since), in at most 256 MiB beside the "       \
      "store; "                                                                                    \
      "0: none")                                                                                   \
    X("folder_keep", ST_F_DURATION, folder_keep_ms, "30d", 0, 0,                                   \
      "how long the folder of an ended job stays, and what submits brought (--with); 0: always")   \
    X("shells", ST_F_BOOL, shells, "true", 0, 0,                                                   \
      "people may run commands in their running jobs (stint exec)")                                \
    X("forwards", ST_F_BOOL, forwards, "true", 0, 0,                                               \
      "people may reach ports of their running jobs (stint forward)")                              \
    X("tunnel_idle", ST_F_DURATION, tunnel_idle_ms, "8h", 0, 0,                                    \
      "time without a byte after which a shell or a forwarded connection ends; 0: never")          \
    X("secrets_key", ST_F_TEXT, secrets_key, "none", 0, 0,                                         \
      "file of the key that encrypts secrets and environments (default: secrets.key beside the "   \
      "store)")

typedef struct fields {
    st_config c;
    const st_doc_node *policy, *quota, *quota_total;
} fields;

static const st_field rows[] = {
#define X(k, what, f, def, low, high, about) \
    {.key = k, .kind = what, .offset = offsetof(fields, c.f), .lo = low, .hi = high},
    CONFIG_TABLE(X)
#undef X
#define X(k, f, def, low, high, about) \
    {.key = k, .kind = ST_F_I64, .offset = offsetof(fields, c.estimate.f), .lo = low, .hi = high},
        ST_ESTIMATE_TABLE(X)
#undef X
            {.key = "credit_alone",
             .kind = ST_F_I64,
             .offset = offsetof(fields, c.credit_alone),
             .hi = 1000000000,
             .none = true},
    {.key = "policy", .kind = ST_F_NODE, .offset = offsetof(fields, policy)},
    {.key = "quota", .kind = ST_F_NODE, .offset = offsetof(fields, quota)},
    {.key = "quota_total", .kind = ST_F_NODE, .offset = offsetof(fields, quota_total)},
    {0},
};

void st_config_init(st_config *config)
{
    *config = (st_config){.arena = st_arena_new(),
                          .store = "stint.db",
                          .listen = "127.0.0.1:7878",
                          .agent_listen = "auto",
                          .engine = "auto",
                          .agent_lease_ms = 60000,
                          .clock_limit_ms = INT64_C(86400) * 1000,
                          .log_mib = 64,
                          .log_keep_ms = INT64_C(14) * 86400 * 1000,
                          .job_keep_ms = INT64_C(90) * 86400 * 1000,
                          .history_keep_ms = INT64_C(7) * 86400 * 1000,
                          .series_step_ms = 60000,
                          .series_keep_ms = INT64_C(2) * 86400 * 1000,
                          .series_keep_10_ms = INT64_C(30) * 86400 * 1000,
                          .series_keep_60_ms = INT64_C(730) * 86400 * 1000,
                          .connections = 4096,
                          .strangers = 64,
                          .rate = 200,
                          .threads = 2,
                          .shells = true,
                          .forwards = true,
                          .tunnel_idle_ms = INT64_C(8) * 3600 * 1000,
                          .body_mib = 64,
                          .snapshot_rows = 32768,
                          .events_keep_ms = INT64_C(30) * 86400 * 1000,
                          .folder_keep_ms = INT64_C(30) * 86400 * 1000,
                          .billing_zone = "UTC",
                          .billing_currency = "USD",
                          .billing_cluster = "stint",
                          .anomaly = 5,
                          .anomaly_floor = 100,
                          .anomaly_days = 14,
                          .remedy_timeout_ms = 600000,
                          .notice_retry_ms = 10000,
                          .notice_keep_ms = INT64_C(86400) * 1000,
                          .estimate = st_estimate_default(),
                          .credit_alone = ST_UNSET,
                          .policy = st_policy_default(),
                          .quota = st_allowance_default(),
                          .quota_total = st_allowance_total()};
}

void st_config_done(st_config *config)
{
    st_arena_free(config->arena);
    config->arena = NULL;
}

static const char *const order_words[] = {
#define X(id, name) name,
    ST_ORDER_TABLE(X)
#undef X
        NULL,
};
static const char *const basis_words[] = {"borrowed", "total", NULL};

#define POLICY_KIND_DURATION ST_F_DURATION
#define POLICY_KIND_MILLI    ST_F_MILLI
#define POLICY_KIND_COUNT    ST_F_I64
#define POLICY_KIND_BOOL     ST_F_BOOL

typedef struct policy_bools {
    st_policy p;
#define X(field, key, kind, def, lo, hi, what) bool field##_flag;
    ST_POLICY_TABLE(X)
#undef X
} policy_bools;

/* A flag is a number in the policy and a bool in a document. */
#define POLICY_IS_BOOL(kind) (POLICY_KIND_##kind == ST_F_BOOL)
#define POLICY_OFFSET(kind, f) \
    (POLICY_IS_BOOL(kind) ? offsetof(policy_bools, f##_flag) : offsetof(policy_bools, p.f))

static int read_policy(const st_doc *doc, const st_doc_node *map, st_policy *ret, st_err *err)
{
    static const st_field policy_rows[] = {
#define X(f, k, kind_, def, low, high, what) \
    {.key = k,                               \
     .kind = POLICY_KIND_##kind_,            \
     .offset = POLICY_OFFSET(kind_, f),      \
     .lo = low,                              \
     .hi = high},
        ST_POLICY_TABLE(X)
#undef X
            {.key = "order",
             .kind = ST_F_WORD,
             .offset = offsetof(policy_bools, p.order),
             .words = order_words},
        {.key = "basis",
         .kind = ST_F_WORD,
         .offset = offsetof(policy_bools, p.counts),
         .words = basis_words},
        {0},
    };
    policy_bools f = {.p = *ret};
    int r = st_doc_expect(doc, map, ST_DOC_MAP, err);

#define X(field, key, kind, def, lo, hi, what) f.field##_flag = ret->field != 0;
    ST_POLICY_TABLE(X)
#undef X
    if (r == 0)
        r = st_fields_read(doc, map, policy_rows, &f, err);
    if (r < 0)
        return r;
#define X(field, key, kind, def, lo, hi, what) \
    if (POLICY_IS_BOOL(kind))                  \
        f.p.field = f.field##_flag;            \
    if (f.p.field < (lo) || f.p.field > (hi))  \
        return st_doc_fail(doc, map, err, ST_ERANGE, "policy %s is out of its range", key);
    ST_POLICY_TABLE(X)
#undef X
    *ret = f.p;
    return 0;
}

/* What tenants may have of the service: a number each, or none. */
static int read_quota(const st_doc *doc, const st_doc_node *map, st_allowance_limits *ret,
                      st_err *err)
{
    st_field quota_rows[ST_AL_COUNT + 1] = {{0}};
    st_allowance_limits limits = *ret;
    int r = st_doc_expect(doc, map, ST_DOC_MAP, err);

    for (int i = 0; i < ST_AL_COUNT; i++)
        quota_rows[i] = (st_field){.key = st_allowed_keys[i],
                                   .kind = ST_F_I64,
                                   .offset = (size_t)i * sizeof *limits.v,
                                   .hi = INT64_C(1) << 50,
                                   .none = true};
    if (r == 0)
        r = st_fields_read(doc, map, quota_rows, limits.v, err);
    if (r < 0)
        return r;
    for (int i = 0; i < ST_AL_COUNT; i++)
        ret->v[i] = limits.v[i] == ST_UNSET ? ST_AL_NONE : limits.v[i];
    return 0;
}

static const char *keep(st_config *config, const char *text)
{
    if (!text || strcmp(text, "none") == 0)
        return NULL;
    return st_arena_strdup(config->arena, text);
}

/* What a duration must reach, and what cannot be left out, said with the line that has it. */
static int check_values(const st_doc *doc, const fields *f, st_err *err)
{
    static const char *const wanted[] = {"store", "listen", "engine"};
    const st_doc_node *root = st_doc_root(doc);

    for (const st_field *row = rows; row->key; row++) {
        const st_doc_node *node = st_doc_get(root, row->key);
        const int64_t *ms = (const int64_t *)((const char *)f + row->offset);
        char least[ST_FMT_MAX];

        if (!node || row->kind != ST_F_DURATION || *ms >= row->lo)
            continue;
        st_fmt_duration(least, row->lo);
        return st_doc_fail(doc, node, err, ST_ERANGE, "key \"%s\": %s is too short, at least %s",
                           row->key, node->value, least);
    }
    for (size_t i = 0; i < ST_ARRAY_LEN(wanted); i++) {
        const st_doc_node *node = st_doc_get(root, wanted[i]);

        if (node && strcmp(node->value, "none") == 0)
            return st_doc_fail(doc, node, err, ST_EINVAL, "%s cannot be none", wanted[i]);
    }
    return 0;
}

int st_config_load(st_config *config, const char *path, st_err *err)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    fields f = {.c = *config};
    int r = st_doc_load(path, &doc, err);

    if (r == 0)
        r = st_doc_expect(doc, st_doc_root(doc), ST_DOC_MAP, err);
    if (r == 0)
        r = st_fields_read(doc, st_doc_root(doc), rows, &f, err);
    if (r == 0)
        r = check_values(doc, &f, err);
    if (r == 0 && f.policy)
        r = read_policy(doc, f.policy, &f.c.policy, err);
    if (r == 0 && f.quota)
        r = read_quota(doc, f.quota, &f.c.quota, err);
    if (r == 0 && f.quota_total)
        r = read_quota(doc, f.quota_total, &f.c.quota_total, err);
    if (r < 0)
        return r;
    for (const st_field *row = rows; row->key; row++) {
        const char **text = (const char **)((char *)&f + row->offset);

        if (row->kind == ST_F_TEXT)
            *text = keep(config, *text);
    }
    if (!f.c.cert != !f.c.key)
        return st_fail(err, ST_EINVAL, "%s: tls_cert and tls_key go together", path);
    *config = f.c;
    return 0;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_value(const st_field *row, const void *a, const void *b)
{
    switch (row->kind) {
    case ST_F_TEXT:
        return same_text(*(const char *const *)a, *(const char *const *)b);
    case ST_F_BOOL:
        return *(const bool *)a == *(const bool *)b;
    default:
        return *(const int64_t *)a == *(const int64_t *)b;
    }
}

const char *st_config_changed(const st_config *a, const st_config *b, size_t *at)
{
    const fields was = {.c = *a}, is = {.c = *b};

    for (; rows[*at].key; ++*at) {
        const st_field *row = &rows[*at];
        bool same = row->offset == offsetof(fields, policy)
                        ? memcmp(&a->policy, &b->policy, sizeof a->policy) == 0
                    : row->offset == offsetof(fields, quota)
                        ? memcmp(&a->quota, &b->quota, sizeof a->quota) == 0
                    : row->offset == offsetof(fields, quota_total)
                        ? memcmp(&a->quota_total, &b->quota_total, sizeof a->quota_total) == 0
                        : same_value(row, (const char *)&was + row->offset,
                                     (const char *)&is + row->offset);

        if (!same)
            return rows[(*at)++].key;
    }
    return NULL;
}

static void quota_help(st_strbuf *out, const char *key, int64_t n, const char *about)
{
    if (n == ST_AL_NONE)
        st_strbuf_addf(out, "  %s: none\n    # %s\n", key, about);
    else
        st_strbuf_addf(out, "  %s: %" PRId64 "\n    # %s\n", key, n, about);
}

void st_config_help(st_strbuf *out)
{
    char lo[ST_FMT_MAX], hi[ST_FMT_MAX], def[ST_FMT_MAX];

    st_strbuf_add(out, "The configuration is a YAML map. Every key may be left out.\n\n");
#define X(key, kind, field, default_, lo, hi, about) \
    st_strbuf_addf(out, "%s: %s\n    # %s\n", key, default_, about);
    CONFIG_TABLE(X)
#undef X
#define X(key, field, default_, lo, hi, about) \
    st_strbuf_addf(out, "%s: %d\n    # %s\n", key, default_, about);
    ST_ESTIMATE_TABLE(X)
#undef X
    st_strbuf_add(
        out, "credit_alone: none\n    # dollars that one owner may credit; above that a second "
             "one must ask for the same\n");
    st_strbuf_add(out, "policy:\n");
#define X(field, key, kind, default_, low, high, about)                                      \
    do {                                                                                     \
        if (POLICY_KIND_##kind == ST_F_DURATION) {                                           \
            st_fmt_duration(def, default_);                                                  \
            st_fmt_duration(lo, low);                                                        \
            st_fmt_duration(hi, high);                                                       \
        } else if (POLICY_KIND_##kind == ST_F_MILLI) {                                       \
            st_fmt_milli(def, default_);                                                     \
            st_fmt_milli(lo, low);                                                           \
            st_fmt_milli(hi, high);                                                          \
        } else {                                                                             \
            st_fmt_milli(def, INT64_C(1000) * (default_));                                   \
            st_fmt_milli(lo, INT64_C(1000) * (low));                                         \
            st_fmt_milli(hi, INT64_C(1000) * (high));                                        \
        }                                                                                    \
        if (POLICY_IS_BOOL(kind))                                                            \
            st_strbuf_addf(out, "  %s: %s\n    # %s\n", key, (default_) ? "true" : "false",  \
                           about);                                                           \
        else                                                                                 \
            st_strbuf_addf(out, "  %s: %s\n    # %s (%s to %s)\n", key, def, about, lo, hi); \
    } while (0);
    ST_POLICY_TABLE(X)
#undef X
    st_strbuf_add(
        out,
        "  order: age\n    # who goes first inside an account, after priority: age, shortest or "
        "attained\n  basis: borrowed\n    # what fair shares count: borrowed or total\n");
    st_strbuf_add(
        out,
        "quota:\n  # service quota of each organisation, unless an owner sets another; none: no "
        "limit\n");
#define X(id, key, def, total, about) quota_help(out, key, def, about);
    ST_ALLOWANCE_TABLE(X)
#undef X
    st_strbuf_add(out, "quota_total:\n  # service quota of all organisations together\n");
#define X(id, key, def, total, about) quota_help(out, key, total, about);
    ST_ALLOWANCE_TABLE(X)
#undef X
}
