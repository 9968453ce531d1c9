/*
 * A job as it is submitted to a service (spec/spec.h).
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "model/volume.h"
#include "spec/flow.h"
#include "spec/spec.h"

#define SECRETS_MAX     32
#define SECRET_NAME_MAX 64
#define ENV_NAME_MAX    256
#define SIGNAL_MAX      64
#define COMMENT_MAX     1024

#define TEXT_ROW(word, field)                                                    \
    {                                                                            \
        .key = word, .kind = ST_F_TEXT, .offset = offsetof(st_submit_doc, field) \
    }
#define EITHER_ROW(word, field)                                                                   \
    {                                                                                             \
        .key = word, .kind = ST_F_TEXT, .offset = offsetof(st_submit_doc, field), .number = true, \
    }
#define NODE_ROW(word, field)                                                    \
    {                                                                            \
        .key = word, .kind = ST_F_NODE, .offset = offsetof(st_submit_doc, field) \
    }

static const st_field rows[] = {
    {.key = "name", .kind = ST_F_NAME, .offset = offsetof(st_submit_doc, name)},
    ST_JOB_ROWS(st_submit_doc, asks),
    NODE_ROW("command", command),
    TEXT_ROW("script", script),
    NODE_ROW("env", env),
    NODE_ROW("secrets", secrets),
    NODE_ROW("volumes", volumes),
    TEXT_ROW("with", with),
    TEXT_ROW("image", image),
    TEXT_ROW("workdir", workdir),
    TEXT_ROW("network", network),
    {.key = "rdma", .kind = ST_F_BOOL, .offset = offsetof(st_submit_doc, rdma)},
    {.key = "terminal", .kind = ST_F_BOOL, .offset = offsetof(st_submit_doc, terminal)},
    {.key = "stdin", .kind = ST_F_BOOL, .offset = offsetof(st_submit_doc, input)},
    EITHER_ROW("signal", signal),
    EITHER_ROW("notify_signal", notify_signal),
    {.key = "hard_share", .kind = ST_F_BOOL, .offset = offsetof(st_submit_doc, hard_share)},
    {.key = "gpu_time", .kind = ST_F_DURATION, .offset = offsetof(st_submit_doc, gpu_time_ms)},
    {.key = "comment", .kind = ST_F_LINE, .offset = offsetof(st_submit_doc, comment)},
    ST_FLOW_ROWS(st_submit_doc, flow),
    TEXT_ROW("workload", workload),
    TEXT_ROW("size", size),
    TEXT_ROW("booking", booking),
    TEXT_ROW("begin", begin),
    TEXT_ROW("end_by", end_by),
    TEXT_ROW("by", by),
    {.key = "hard", .kind = ST_F_BOOL, .offset = offsetof(st_submit_doc, hard)},
    TEXT_ROW("zone", zone),
    TEXT_ROW("slot", slot),
    TEXT_ROW("priority_class", priority_class),
    EITHER_ROW("model", model),
    EITHER_ROW("dtype", dtype),
    EITHER_ROW("context", context),
    EITHER_ROW("concurrency", concurrency),
    EITHER_ROW("attention", attention),
    EITHER_ROW("method", method),
    EITHER_ROW("batch_size", batch_size),
    EITHER_ROW("frames", frames),
    EITHER_ROW("chunk", chunk),
    EITHER_ROW("duration", duration),
    EITHER_ROW("fps", fps),
    TEXT_ROW("estimate", estimate),
    NODE_ROW("array", array),
    NODE_ROW("labels", labels),
    NODE_ROW("node_labels", node_labels),
    NODE_ROW("exclude_nodes", exclude_nodes),
    NODE_ROW("sim", sim),
    {0},
};

const st_field *st_spec_submit_keys(void)
{
    return rows;
}

static int check_list(const st_doc *doc, const st_doc_node *list, st_err *err)
{
    int r = st_doc_expect(doc, list, ST_DOC_SEQ, err);

    if (r == 0 && !list->child)
        r = st_doc_fail(doc, list, err, ST_EINVAL, "the command is empty");
    for (const st_doc_node *n = list->child; r == 0 && n; n = n->next) {
        r = st_doc_expect(doc, n, ST_DOC_SCALAR, err);
        if (r == 0 && st_doc_no_text(doc, n))
            r = st_doc_fail(doc, n, err, ST_EINVAL,
                            "key \"command\": expected text, found %.40s; text is in quotes",
                            n->value);
    }
    return r;
}

static int check_map(const st_doc *doc, const st_doc_node *map, st_err *err)
{
    int r = st_doc_expect(doc, map, ST_DOC_MAP, err);

    for (const st_doc_node *n = map->child; r == 0 && n; n = n->next)
        r = st_doc_expect(doc, n, ST_DOC_SCALAR, err);
    return r;
}

/* What the node would refuse when the job starts is refused before it waits. */
static int check_env(const st_doc *doc, const st_doc_node *map, st_err *err)
{
    int r = check_map(doc, map, err);
    char q[ST_QUOTE_MAX];

    for (const st_doc_node *n = map->child; r == 0 && n; n = n->next)
        if (!st_variable_name(n->key, ENV_NAME_MAX))
            r = st_doc_fail(doc, n, err, ST_EINVAL,
                            "%s cannot be the name of a variable: use letters, digits and _, and "
                            "begin with no digit",
                            st_quote(q, n->key));
    return r;
}

static bool is_signal(const char *word)
{
    char *end;
    long n = strtol(word, &end, 10);

    if (end != word)
        return *end == '\0' && n >= 1 && n <= SIGNAL_MAX;
    if (strncmp(word, "SIG", 3) == 0)
        word += 3;
    for (int s = 1; s < NSIG; s++) {
        const char *name = sigabbrev_np(s);

        if (name && strcmp(name, word) == 0)
            return true;
    }
    return false;
}

static int check_signal(const st_doc *doc, const st_doc_node *map, const char *key, st_err *err)
{
    const st_doc_node *node = st_doc_get(map, key);
    char q[ST_QUOTE_MAX];

    if (!node || is_signal(node->value))
        return 0;
    return st_doc_fail(doc, node, err, ST_EINVAL,
                       "%s is no signal; signals are called TERM, USR1, SIGUSR2 and so on",
                       st_quote(q, node->value));
}

int st_spec_labels(const st_doc *doc, const st_doc_node *map, st_err *err)
{
    int r = check_map(doc, map, err);
    const char *text;

    for (const st_doc_node *n = map->child; r == 0 && n; n = n->next) {
        st_doc_node value = *n;

        if (!st_text_honest(n->key))
            return st_doc_fail(doc, n, err, ST_EINVAL,
                               "a label's name has a character that is not seen or turns the "
                               "direction of writing");
        value.quoted = true; /* a number is a label as good as any */
        r = st_field_line(doc, &value, &text, err);
    }
    return r;
}

/* NAME: SECRET, or NAME: {secret: SECRET, as: file|env}. */
static int check_secret(const st_doc *doc, const st_doc_node *row, st_err *err)
{
    static const char *const keys[] = {"secret", "as", NULL};
    static const char *const as_words[] = {"file", "env", NULL};
    const st_doc_node *secret = row, *as = NULL;
    char q[ST_QUOTE_MAX];
    int word = 0, r = 0;

    if (row->kind == ST_DOC_MAP) {
        r = st_doc_check_keys(doc, row, keys, err);
        if (r == 0)
            r = st_doc_need(doc, row, "secret", &secret, err);
        as = st_doc_get(row, "as");
        if (r == 0 && as)
            r = st_field_word(doc, as, as_words, &word, err);
    }
    if (r == 0)
        r = st_doc_expect(doc, secret, ST_DOC_SCALAR, err);
    if (r < 0)
        return r;
    if (word == 1 ? !st_variable_name(row->key, SECRET_NAME_MAX)
                  : !st_plain_name(row->key, SECRET_NAME_MAX))
        return st_doc_fail(doc, row, err, ST_EINVAL,
                           "%s cannot be the name of a %s: 1 to %d letters, digits%s and _",
                           st_quote(q, row->key), word == 1 ? "variable" : "secret's file",
                           SECRET_NAME_MAX, word == 1 ? "" : ", ., -");
    if (!st_plain_name(secret->value, SECRET_NAME_MAX))
        return st_doc_fail(doc, secret, err, ST_EINVAL, "%s cannot be the name of a secret",
                           st_quote(q, secret->value));
    return 0;
}

static int check_secrets(const st_doc *doc, const st_doc_node *map, st_err *err)
{
    int r = st_doc_expect(doc, map, ST_DOC_MAP, err);

    if (r == 0 && map->nchild > SECRETS_MAX)
        r = st_doc_fail(doc, map, err, ST_ELIMIT, "a job has at most %d secrets", SECRETS_MAX);
    for (const st_doc_node *n = map->child; r == 0 && n; n = n->next)
        r = check_secret(doc, n, err);
    return r;
}

static int check_with(const st_doc *doc, const st_doc_node *map, const char *with, st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_folder_digest_ok(with)
               ? 0
               : st_doc_fail(
                     doc, st_doc_get(map, "with"), err, ST_EINVAL,
                     "%s is not the digest of a folder that was brought; stint submit --with "
                     "DIR brings one",
                     st_quote(q, with));
}

/* [NAME:/PATH[:ro], ...]; whether they are there is the service's to say. */
static int check_volumes(const st_doc *doc, const st_doc_node *list, st_err *err)
{
    int r = st_doc_expect(doc, list, ST_DOC_SEQ, err);

    if (r == 0 && list->nchild > ST_VOLUMES_PER_JOB)
        r = st_doc_fail(doc, list, err, ST_ELIMIT, "a job names at most %d volumes",
                        ST_VOLUMES_PER_JOB);
    for (const st_doc_node *n = list->child; r == 0 && n; n = n->next) {
        st_volume_ask ask;
        const char *text;
        st_err why = {0};

        r = st_doc_str(doc, n, &text, err);
        if (r == 0 && st_volume_ask_read(text, &ask, &why) < 0)
            r = st_doc_fail(doc, n, err, why.code, "%s", why.msg);
    }
    return r;
}

/* Whoever submits it reads it once more, into memory of his own. */
static int check_pick(const st_doc *doc, const st_submit_doc *d, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf pick = {0};

    return st_spec_pick(doc, d->node_labels, d->exclude_nodes, &pick, err);
}

static int check_run(const st_doc *doc, const st_doc_node *map, const st_submit_doc *d, st_err *err)
{
    static const char *const networks[] = {"none", "host", "tenant", NULL};
    int word, r = 0;

    if (d->command && d->script)
        return st_doc_fail(doc, map, err, ST_EINVAL, "give a command or a script, not both");
    if (d->command)
        r = check_list(doc, d->command, err);
    if (r == 0 && d->env)
        r = check_env(doc, d->env, err);
    if (r == 0)
        r = check_signal(doc, map, "signal", err);
    if (r == 0)
        r = check_signal(doc, map, "notify_signal", err);
    if (r == 0 && d->secrets)
        r = check_secrets(doc, d->secrets, err);
    if (r == 0 && d->volumes)
        r = check_volumes(doc, d->volumes, err);
    if (r == 0 && d->with)
        r = check_with(doc, map, d->with, err);
    if (r == 0 && d->labels)
        r = st_spec_labels(doc, d->labels, err);
    if (r == 0 && d->sim)
        r = check_map(doc, d->sim, err);
    if (r == 0)
        r = check_pick(doc, d, err);
    if (r == 0 && d->image) {
        st_image_ref ref;
        st_err why = {0};

        if (st_spec_image(d->image, &ref, &why) < 0)
            r = st_doc_fail(doc, st_doc_get(map, "image"), err, why.code, "%s", why.msg);
    }
    if (r == 0 && d->network)
        r = st_field_word(doc, st_doc_get(map, "network"), networks, &word, err);
    return r;
}

static const st_field *row_of(const char *key)
{
    const st_field *row = rows;

    while (row->key && strcmp(row->key, key) != 0)
        row++;
    return row->key ? row : NULL;
}

static int unknown_key(const st_doc *doc, const st_doc_node *map, st_err *err)
{
    const char *keys[ST_ARRAY_LEN(rows)] = {NULL};

    for (size_t i = 0; rows[i].key; i++)
        keys[i] = rows[i].key;
    return st_doc_check_keys(doc, map, keys, err);
}

static bool is_flag(const st_doc_node *node)
{
    return node->kind == ST_DOC_SCALAR && !node->quoted &&
           (strcmp(node->value, "true") == 0 || strcmp(node->value, "false") == 0);
}

/* A word, or a number. */
static int given_priority(const st_doc *doc, const st_doc_node *node, st_err *err)
{
    if (node->kind == ST_DOC_SCALAR && node->value[0] && strchr("-0123456789", node->value[0]))
        return st_doc_number(doc, node, err);
    return st_doc_expect(doc, node, ST_DOC_SCALAR, err);
}

int st_spec_given(const st_doc *doc, const st_doc_node *map, st_err *err)
{
    int r = st_doc_expect(doc, map, ST_DOC_MAP, err);

    for (const st_doc_node *n = map->child; r == 0 && n; n = n->next) {
        const st_field *row = row_of(n->key);
        const char *text;

        if (n->kind == ST_DOC_NULL)
            return row ? st_doc_expect(doc, n, ST_DOC_SCALAR, err) : unknown_key(doc, map, err);
        if (!row)
            continue; /* a rule may know it */
        if (row->kind == ST_F_TEXT || row->kind == ST_F_LINE || row->kind == ST_F_NAME)
            r = row->number && !is_flag(n) ? st_doc_expect(doc, n, ST_DOC_SCALAR, err)
                                           : st_doc_str(doc, n, &text, err);
        else if (row->kind == ST_F_INT || row->kind == ST_F_I64 || row->kind == ST_F_MILLI)
            r = st_doc_number(doc, n, err);
        else if (strcmp(n->key, "command") == 0 && n->kind == ST_DOC_SEQ)
            r = check_list(doc, n, err);
        else if (strcmp(n->key, "priority") == 0)
            r = given_priority(doc, n, err);
    }
    return r;
}

/* Only the guard counts a task's time, and it is there where GPUs are shared. */
static int check_guarded(const st_doc *doc, const st_doc_node *map, const st_submit_doc *d,
                         st_level level, st_err *err)
{
    const st_doc_node *time = st_doc_get(map, "gpu_time");
    const char *key = d->hard_share ? "hard_share" : time ? "gpu_time" : NULL;

    if (key && level != ST_LEVEL_MPS && level != ST_LEVEL_TIME)
        return st_doc_fail(doc, st_doc_get(map, key), err, ST_EINVAL,
                           "%s is for shared GPUs: it needs level mps or time", key);
    if (time && d->gpu_time_ms < 1000)
        return st_doc_fail(doc, time, err, ST_ERANGE, "gpu_time is less than 1s");
    return 0;
}

int st_spec_submit(const st_doc *doc, const st_doc_node *map, const st_spec_names *names,
                   st_job_spec *ret, st_err *err)
{
    st_submit_doc d = {.asks = ST_JOB_FIELDS_INIT};
    st_job_spec spec = {0};
    bool none = false;
    int r = st_doc_expect(doc, map, ST_DOC_MAP, err);

    if (r == 0)
        r = st_fields_read(doc, map, rows, &d, err);
    if (r == 0)
        r = check_run(doc, map, &d, err);
    if (r == 0)
        r = st_spec_job(doc, map, &d.asks, names, &spec, &none, err);
    if (r == 0)
        r = check_guarded(doc, map, &d, spec.shape.level, err);
    if (r == 0)
        r = st_spec_flow(doc, map, &d.flow, &spec, err);
    if (r == 0 && d.comment && strlen(d.comment) > COMMENT_MAX)
        r = st_doc_fail(doc, st_doc_get(map, "comment"), err, ST_ELIMIT,
                        "a comment has at most %d bytes", COMMENT_MAX);
    if (r < 0)
        return r;
    spec.shape.needs = st_allow_needed(d.image, d.network, d.rdma) | st_way_needed(spec.yield);
    spec.name = d.name ? d.name : "job";
    spec.hard = d.hard;
    spec.account = d.asks.account;
    spec.user = d.asks.user;
    if (none) {
        char q[ST_QUOTE_MAX];

        return st_fail(err, ST_EINVAL,
                       "job %s: none of the GPU types it may use has a MIG profile %s", spec.name,
                       st_quote(q, d.asks.profile));
    }
    *ret = spec;
    return 0;
}
