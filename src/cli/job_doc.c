/*
 * The document of a job from the command line (cli/job_doc.h). The server says what is wrong with
 * what is in it; here only the form is looked at.
 */
#include "cli/job_doc.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "cli/service_flags.h"
#include "cli/when_flags.h"
#include "spec/spec.h"

#define ARRAY_MAX 10000

#define FLAG_ROW(field, option, letter, key, value, about) \
    {option, letter, ST_CLI_STRING, offsetof(st_job_flags, field), value, about, 0, 0},
#define OTHER(option, letter, kind, field, value, about)                        \
    {                                                                           \
        option, letter, kind, offsetof(st_job_flags, field), value, about, 0, 0 \
    }
#define COMMON_ROWS                                                                             \
    ST_JOB_FLAGS(FLAG_ROW)                                                                      \
    OTHER("task", 0, ST_CLI_STRING, workload, "WORKLOAD", "the same as --workload"),            \
        OTHER("type", 'T', ST_CLI_STRING, type, "TYPE,...",                                     \
              "GPU types the job accepts (default: any)"),                                      \
        OTHER("topology", 0, ST_CLI_STRING, topology, "require:LEVEL",                          \
              "require or prefer one nvlink, node, rack, block or zone"),                       \
        OTHER("latency-critical", 0, ST_CLI_FLAG, latency_critical, NULL,                       \
              "share a GPU only with jobs of your account"),                                    \
        OTHER("hard", 0, ST_CLI_FLAG, hard, NULL,                                               \
              "submit only if the deadline (--by) can be promised"),                            \
        OTHER("hard-share", 0, ST_CLI_FLAG, hard_share, NULL,                                   \
              "never get more than the share, even beside idle neighbours"),                    \
        OTHER("rdma", 0, ST_CLI_FLAG, rdma, NULL,                                               \
              "give the tasks the node's RDMA devices; the pool must permit it"),               \
        OTHER("terminal", 0, ST_CLI_FLAG, terminal, NULL,                                       \
              "give the job a terminal, for `stint attach`"),                                   \
        OTHER("stdin", 0, ST_CLI_FLAG, input, NULL,                                             \
              "keep its standard input open, for `stint attach`"),                              \
        OTHER("env", 'e', ST_CLI_MANY, env, "NAME=VALUE",                                       \
              "environment variable; NAME alone copies yours; repeatable"),                     \
        OTHER("secret", 0, ST_CLI_MANY, secrets, "NAME=SECRET[:env]",                           \
              "secret as file /run/stint/secrets/NAME; :env also sets a variable; repeatable"), \
        OTHER("volume", 'V', ST_CLI_MANY, volumes, "NAME:/PATH[:ro]",                           \
              "volume at a path of the job, ro: read only; repeatable"),                        \
        OTHER("label", 'L', ST_CLI_MANY, labels, "NAME=VALUE", "label of the job; repeatable"), \
        OTHER("comment", 0, ST_CLI_STRING, comment, "TEXT", "comment, shown with the job"),     \
        OTHER("after", 'a', ST_CLI_MANY, after, "ID,...",                                       \
              "start when these jobs or arrays have ended; repeatable"),                        \
        OTHER("after-ok", 0, ST_CLI_MANY, after_ok, "ID,...",                                   \
              "start when they are done, of an array all jobs; repeatable"),                    \
        OTHER("after-fail", 0, ST_CLI_MANY, after_fail, "ID,...",                               \
              "start when they have ended otherwise; repeatable"),                              \
        OTHER("hold", 0, ST_CLI_FLAG, hold, NULL, "hold the job until `stint release`"),        \
        OTHER("retry-on", 0, ST_CLI_STRING, retry_on, "exit,timeout",                           \
              "what is tried again: failing, or the time limit too (default: exit)"),           \
        OTHER("node-label", 0, ST_CLI_MANY, node_labels, "NAME=VALUE|NAME!=VALUE",              \
              "use only nodes with this label, or without it; repeatable"),                     \
        OTHER("exclude-node", 0, ST_CLI_MANY, exclude_nodes, "NODE",                            \
              "do not use this node; repeatable"),                                              \
        OTHER("sim-run", 0, ST_CLI_STRING, sim_run, "DURATION", "run time on simulated nodes"), \
        OTHER("sim-exit", 0, ST_CLI_STRING, sim_exit, "N",                                      \
              "exit status on simulated nodes (default: 0)"),                                   \
        OTHER("file", 'f', ST_CLI_STRING, file, "FILE",                                         \
              "read the job from YAML or JSON; options override it"),                           \
        OTHER("dry-run", 0, ST_CLI_FLAG, dry_run, NULL,                                         \
              "ask the scheduler what would happen; submit nothing"),                           \
        OTHER("print", 0, ST_CLI_FLAG, print, NULL, "print the job document; submit nothing")

#define WITH_ROW                                     \
    OTHER("with", 'W', ST_CLI_STRING, folder, "DIR", \
          "folder that comes with the job, at /work; .stintignore names what stays here")

const st_cli_row st_cli_submit_options[] = {
    COMMON_ROWS,
    WITH_ROW,
    OTHER("array", 0, ST_CLI_STRING, array, "N|FIRST-LAST[%MOST]",
          "submit N jobs, or one per index (variable STINT_ARRAY_INDEX); at most MOST at a time"),
    OTHER("each", 0, ST_CLI_FLAG, each, NULL,
          "each job of the array waits for one of the named arrays, with the same index"),
    OTHER("wait", 'w', ST_CLI_FLAG, wait, NULL, "wait until the job ends and exit with its status"),
    OTHER("output", 'o', ST_CLI_OUTPUT, format, "table|json", "output format (default: table)"),
    {0},
};

#define SERVICE_ROW(field, option, value, about) \
    {option, 0, ST_CLI_STRING, offsetof(st_service_flags, field), value, about, 0, 0},
#define NOTEBOOK(field, option, value, about) SERVICE_ROW(field, option, value, about)
const st_cli_row st_cli_notebook_options[] = {
    NOTEBOOK(local, "local", "PORT", "port of this machine; 0 is any that is free (default: 8888)")
        NOTEBOOK(port, "port", "PORT", "port that it listens on in its container (default: 8888)")
            NOTEBOOK(idle, "idle", "DURATION", "time unused after which it ends (default: 1h)")
                NOTEBOOK(start, "start", "DURATION", "time it has to come up (default: 10m)")
                    COMMON_ROWS,
    {0}};

const st_cli_row st_cli_service_options[] = {ST_SERVICE_FLAGS(SERVICE_ROW) COMMON_ROWS, {0}};

const st_cli_row st_cli_run_options[] = {
    OTHER("it", 0, ST_CLI_FLAG, terminal, NULL,
          "give the job a terminal, and join this one to it; written -it"),
    COMMON_ROWS,
    WITH_ROW,
    {0}};

const st_cli_row st_cli_whatif_options[] = {
    COMMON_ROWS,
    OTHER("with", 'W', ST_CLI_MANY, with, "KEY=VALUE,...",
          "variant: the fields that differ; repeatable"),
    OTHER("accounts", 0, ST_CLI_STRING, accounts, "FILE",
          "account changes to assume, a list in YAML or JSON"),
    OTHER("output", 'o', ST_CLI_OUTPUT, format, "table|json", "output format (default: table)"),
    {0},
};

/* What is written as we write numbers is one; everything else, 007 too, is text. */
static json_t *value_of(const char *text)
{
    char same[ST_FMT_MAX];
    int64_t n;

    if (st_parse_milli(text, INT32_MIN, INT64_C(1000000000000), &n, NULL) < 0 ||
        strcmp(st_fmt_milli(same, n), text) != 0)
        return json_string(text);
    return n % 1000 ? json_real((double)n / 1000) : json_integer(n / 1000);
}

static int bad_text(const char *option, const char *text, st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_fail(err, ST_EINVAL, "option --%s: %s is not UTF-8", option, st_quote(q, text));
}

static int put(json_t *doc, const char *option, const char *key, json_t *value, const char *text,
               st_err *err)
{
    if (!value || json_object_set_new(doc, key, value) < 0)
        return bad_text(option, text, err);
    return 0;
}

int st_job_fields_doc(const char *text, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_freep) char *copy = st_xstrdup(text);
    json_t *doc = json_object();
    char *at = copy, *word;
    int r = 0;

    while (r == 0 && (word = strsep(&at, ","))) {
        char *value = strchr(word, '='), q[ST_QUOTE_MAX];

        if (!value || value == word) {
            r = st_fail(err, ST_EINVAL, "option --with: %s is not KEY=VALUE, as in gpus=4",
                        st_quote(q, word));
            break;
        }
        *value++ = '\0';
        r = put(doc, "with", word, value_of(value), value, err);
    }
    if (r < 0)
        json_decref(doc);
    else
        *ret = doc;
    return r;
}

static json_t *list_of(const char *text)
{
    ST_CLEANUP(st_freep) char *copy = st_xstrdup(text);
    json_t *list = json_array();
    char *save = NULL;

    for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save))
        json_array_append_new(list, json_string(word));
    return list;
}

/* NAME=VALUE into the map under `key`, which a file may have begun. */
static int put_pairs(json_t *doc, const char *option, const char *key, const st_cli_words *words,
                     bool ours, st_err *err)
{
    json_t *map = json_object_get(doc, key);
    char q[ST_QUOTE_MAX];

    for (int i = 0; i < words->n; i++) {
        ST_CLEANUP(st_freep) char *name = st_xstrdup(words->v[i]);
        const char *value = strchr(words->v[i], '=');
        json_t *text;

        if (value) {
            name[value - words->v[i]] = '\0';
            value++;
        } else if (ours) {
            value = getenv(name);
        }
        if (!value || !*name)
            return st_fail(err, ST_EINVAL, "option --%s: %s is not NAME=VALUE", option,
                           st_quote(q, words->v[i]));
        if (!json_is_object(map)) {
            map = json_object();
            json_object_set_new(doc, key, map);
        }
        text = json_string(value);
        if (!text || json_object_set_new(map, name, text) < 0)
            return bad_text(option, words->v[i], err);
    }
    return 0;
}

/* Instead of those of a file. */
static int put_words(json_t *doc, const char *option, const char *key, const st_cli_words *words,
                     st_err *err)
{
    json_t *list;

    if (words->n == 0)
        return 0;
    list = json_array();
    json_object_set_new(doc, key, list);
    for (int i = 0; i < words->n; i++)
        if (json_array_append_new(list, json_string(words->v[i])) < 0)
            return bad_text(option, words->v[i], err);
    return 0;
}

/* SECRET:env is {secret: SECRET, as: env}; no secret's name has a colon. */
static void spread_secrets(json_t *map)
{
    const char *name;
    json_t *value;

    json_object_foreach(map, name, value)
    {
        const char *text = json_string_value(value), *colon = text ? strchr(text, ':') : NULL;

        if (colon && strcmp(colon, ":env") == 0)
            json_object_set_new(
                map, name,
                json_pack("{s:s#,s:s}", "secret", text, (int)(colon - text), "as", "env"));
    }
}

/* Behind those that a file names. */
static int put_volumes(json_t *doc, const st_cli_words *words, st_err *err)
{
    json_t *list = json_object_get(doc, "volumes");

    if (words->n > 0 && !json_is_array(list)) {
        list = json_array();
        json_object_set_new(doc, "volumes", list);
    }
    for (int i = 0; i < words->n; i++)
        if (json_array_append_new(list, json_string(words->v[i])) < 0)
            return bad_text("volume", words->v[i], err);
    return 0;
}

static int put_topology(json_t *doc, const char *text, st_err *err)
{
    const char *colon = strchr(text, ':');
    char word[16], q[ST_QUOTE_MAX];

    snprintf(word, sizeof word, "%.*s", colon ? (int)(colon - text) : 0, text);
    if (!colon || (strcmp(word, "require") != 0 && strcmp(word, "prefer") != 0))
        return st_fail(err, ST_EINVAL, "option --topology is require:LEVEL or prefer:LEVEL, not %s",
                       st_quote(q, text));
    return put(doc, "topology", "topology", json_pack("{s:s}", word, colon + 1), text, err);
}

/* 10 is ten jobs; 1-10 or 1-100x2 are indices. Behind % stands how many run at a time. */
static int put_array(json_t *doc, const char *text, st_err *err)
{
    char count[ST_FMT_MAX];
    const char *percent;
    int64_t n, most;

    if (!text)
        return 0;
    percent = strchr(text, '%');
    if (percent && strspn(text, "0123456789") == (size_t)(percent - text)) {
        if (st_parse_i64(percent + 1, 1, ARRAY_MAX, &most, err) < 0)
            return st_fail_prefix(err, "option --array: ");
        snprintf(count, sizeof count, "%.*s", (int)(percent - text), text);
        json_object_set_new(doc, "throttle", json_integer(most));
        text = count;
    }
    if (strspn(text, "0123456789") < strlen(text))
        return put(doc, "array", "array", json_string(text), text, err);
    if (st_parse_i64(text, 1, ARRAY_MAX, &n, err) < 0)
        return st_fail_prefix(err, "option --array: ");
    return put(doc, "array", "array", json_pack("{s:I}", "count", (json_int_t)n), text, err);
}

static int put_sim(json_t *doc, const st_job_flags *f, st_err *err)
{
    json_t *sim = json_object_get(doc, "sim");
    int r = 0;

    if (!f->sim_run && !f->sim_exit)
        return 0;
    if (!json_is_object(sim)) {
        sim = json_object();
        json_object_set_new(doc, "sim", sim);
    }
    if (f->sim_run)
        r = put(sim, "sim-run", "run", value_of(f->sim_run), f->sim_run, err);
    if (r == 0 && f->sim_exit)
        r = put(sim, "sim-exit", "exit", value_of(f->sim_exit), f->sim_exit, err);
    return r;
}

static int put_command(json_t *doc, int n, char **words, st_err *err)
{
    json_t *list;

    if (n == 0)
        return 0;
    list = json_array();
    json_object_set_new(doc, "command", list);
    for (int i = 0; i < n; i++)
        if (json_array_append_new(list, json_string(words[i])) < 0)
            return st_fail(err, ST_EINVAL, "word %d of the command is not UTF-8", i + 1);
    return 0;
}

/* Jobs that it waits for, behind those of a file. */
static void put_after(json_t *doc, const st_cli_words *ids, const char *end, bool each)
{
    json_t *list = json_object_get(doc, "after");

    for (int i = 0; i < ids->n; i++) {
        ST_CLEANUP(st_freep) char *copy = st_xstrdup(ids->v[i]);
        char *save = NULL;

        for (char *id = strtok_r(copy, ",", &save); id; id = strtok_r(NULL, ",", &save)) {
            json_t *one = json_pack("{s:s,s:s}", "job", id, "end", end);

            if (!json_is_array(list)) {
                json_t *was = list ? json_incref(list) : NULL;

                json_object_set_new(doc, "after", list = json_array());
                if (was)
                    json_array_append_new(list, was);
            }
            if (each)
                json_object_set_new(one, "each", json_true());
            json_array_append_new(list, one);
        }
    }
}

static int put_flow(json_t *doc, const st_job_flags *f, st_err *err)
{
    int r = 0;

    put_after(doc, &f->after, "any", f->each);
    put_after(doc, &f->after_ok, "ok", f->each);
    put_after(doc, &f->after_fail, "fail", f->each);
    if (f->each && f->after.n + f->after_ok.n + f->after_fail.n == 0)
        return st_fail(err, ST_EINVAL,
                       "option --each: say for which arrays (--after, --after-ok, --after-fail)");
    if (f->hold)
        json_object_set_new(doc, "hold", json_true());
    if (f->retry_on)
        r = put(doc, "retry-on", "retry_on", list_of(f->retry_on), f->retry_on, err);
    if (r == 0 && f->comment)
        r = put(doc, "comment", "comment", json_string(f->comment), f->comment, err);
    return r;
}

/* Programs in there are told what this one is. */
static void put_terminal(json_t *doc)
{
    json_t *env = json_object_get(doc, "env");
    const char *term = getenv("TERM");

    json_object_set_new(doc, "terminal", json_true());
    if (!term || !*term)
        return;
    if (!json_is_object(env)) {
        env = json_object();
        json_object_set_new(doc, "env", env);
    }
    if (!json_object_get(env, "TERM"))
        json_object_set_new(env, "TERM", json_string(term));
}

static int put_flags(json_t *doc, const st_job_flags *f, int ncommand, char **command, st_err *err)
{
    char zone[ST_CLI_ZONE_MAX];
    int r = 0;

#define X(field, option, letter, key, value, about) \
    if (r == 0 && f->field)                         \
        r = put(doc, option, key, value_of(f->field), f->field, err);
    ST_JOB_FLAGS(X)
#undef X
    if (r == 0 && (f->begin || f->end_by || f->by) && !json_object_get(doc, "zone"))
        json_object_set_new(doc, "zone",
                            json_string(st_when_flags_zone(&(st_when_flags){0}, zone)));
    if (r == 0 && f->type && strchr(f->type, ','))
        r = put(doc, "type", "type", list_of(f->type), f->type, err);
    else if (r == 0 && f->type)
        r = put(doc, "type", "type", json_string(f->type), f->type, err);
    if (r == 0 && f->topology)
        r = put_topology(doc, f->topology, err);
    if (f->hard)
        json_object_set_new(doc, "hard", json_true());
    if (f->latency_critical)
        json_object_set_new(doc, "latency_critical", json_true());
    if (f->rdma)
        json_object_set_new(doc, "rdma", json_true());
    if (f->hard_share)
        json_object_set_new(doc, "hard_share", json_true());
    if (f->input)
        json_object_set_new(doc, "stdin", json_true());
    if (f->terminal)
        put_terminal(doc);
    if (r == 0)
        r = put_pairs(doc, "env", "env", &f->env, true, err);
    if (r == 0)
        r = put_pairs(doc, "secret", "secrets", &f->secrets, false, err);
    if (r == 0)
        spread_secrets(json_object_get(doc, "secrets"));
    if (r == 0)
        r = put_volumes(doc, &f->volumes, err);
    if (r == 0)
        r = put_pairs(doc, "label", "labels", &f->labels, false, err);
    if (r == 0)
        r = put_flow(doc, f, err);
    if (r == 0)
        r = put_words(doc, "node-label", "node_labels", &f->node_labels, err);
    if (r == 0)
        r = put_words(doc, "exclude-node", "exclude_nodes", &f->exclude_nodes, err);
    if (r == 0)
        r = put_array(doc, f->array, err);
    if (r == 0)
        r = put_sim(doc, f, err);
    return r < 0 ? r : put_command(doc, ncommand, command, err);
}

static int load(const char *path, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    json_error_t bad;
    int r = st_doc_load(path, &doc, err);

    if (r == 0)
        r = st_doc_expect(doc, st_doc_root(doc), ST_DOC_MAP, err);
    if (r < 0)
        return r;
    st_spec_json(st_doc_root(doc), &text);
    *ret = json_loads(st_strbuf_str(&text), 0, &bad);
    return *ret ? 0 : st_fail(err, ST_EINVAL, "%s: cannot be sent as JSON: %s", path, bad.text);
}

int st_job_doc(const st_job_flags *flags, int ncommand, char **command, json_t **ret, st_err *err)
{
    json_t *doc = NULL;
    int r = 0;

    if (flags->file)
        r = load(flags->file, &doc, err);
    else
        doc = json_object();
    if (r == 0 && json_object_get(doc, "jobs")) {
        json_t *plain = json_object();

        r = put_flags(plain, flags, ncommand, command, err);
        if (r == 0 && json_object_size(plain) > 0)
            r = st_fail(err, ST_EINVAL,
                        "%s has several jobs: what they ask for stands there, not in flags",
                        flags->file);
        json_decref(plain);
    } else if (r == 0) {
        r = put_flags(doc, flags, ncommand, command, err);
    }
    if (r < 0) {
        json_decref(doc);
        return r;
    }
    *ret = doc;
    return 0;
}
