/*
 * What there is besides verbs: keys of a job, states, reasons, events, errors, the policy. The rows are
 * the tables that the programs run on; `stint help TOPIC` prints them, and `stint help --reference`
 * writes them and the verbs as JSON, from which doc/reference/ is made (tools/docs).
 */
#include "cli/topics.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/num.h"
#include "base/strbuf.h"
#include "cli/job_doc.h"
#include "cli/sbatch.h"
#include "ledger/ledger.h"
#include "model/policy.h"
#include "share/divide.h"
#include "spec/spec.h"

#define PATH_MAX_BYTES 100
#define NAME_WIDTH     18
#define VALUE_MAX      80

typedef struct row {
    const char *name, *about, *remedy; /* remedy may be NULL */
    char value[VALUE_MAX];             /* "": none */
} row;

typedef ST_VEC(row) row_list;

typedef struct topic {
    const char *name, *summary;
    void (*fill)(row_list *rows);
} topic;

static void add(row_list *rows, const char *name, const char *value, const char *about,
                const char *remedy)
{
    row r = {.name = name, .about = about, .remedy = remedy};

    snprintf(r.value, sizeof(r.value), "%s", value ? value : "");
    st_vec_push(rows, r);
}

/* ---- a job's keys ------------------------------------------------------------------------------ */

static const char *kind_word(const st_field *f)
{
    switch (f->kind) {
    case ST_F_BOOL:
        return "true|false";
    case ST_F_INT:
    case ST_F_I64:
    case ST_F_MILLI:
        return "N";
    case ST_F_DURATION:
        return "DURATION";
    case ST_F_MIB:
        return "SIZE";
    case ST_F_NODE:
        return "map or list";
    default:
        return "TEXT";
    }
}

/* The option that is the key is described once, with the option. */
static void add_key(row_list *rows, const st_field *f)
{
    static const struct {
        const char *name, *value, *about;
    } known[] = {
#define X(field, option, letter, key, value, about) {key, value, about},
        ST_JOB_FLAGS(X)
#undef X
#define X(key, value, about) {key, value, about},
            ST_JOB_KEYS(X)
#undef X
    };

    for (size_t i = 0; i < ST_ARRAY_LEN(known); i++) {
        if (strcmp(known[i].name, f->key) == 0) {
            add(rows, f->key, known[i].value, known[i].about, NULL);
            return;
        }
    }
    add(rows, f->key, kind_word(f), "", NULL);
}

static void fill_job(row_list *rows)
{
    for (const st_field *f = st_spec_submit_keys(); f->key; f++)
        add_key(rows, f);
}

/* ---- the other tables -------------------------------------------------------------------------- */

static void fill_sbatch(row_list *rows)
{
    const char *name, *about;

    for (size_t i = 0; (name = st_sbatch_option(i, &about)); i++)
        add(rows, name, NULL, about, NULL);
}

static void fill_states(row_list *rows)
{
#define X(id, name, about) add(rows, name, NULL, about, NULL);
    ST_JOB_STATE_TABLE(X)
#undef X
}

static void fill_preempt(row_list *rows)
{
#define X(id, name, about) add(rows, name, NULL, about, NULL);
    ST_YIELD_TABLE(X)
#undef X
}

static void fill_nodes(row_list *rows)
{
#define X(id, name, about) add(rows, name, NULL, about, NULL);
    ST_NODE_STATE_TABLE(X)
#undef X
}

static void fill_faults(row_list *rows)
{
#define X(id, name, cause, weight, about) \
    if (id != ST_FAULT_NONE)              \
        add(rows, name, st_cause_name(cause), about, NULL);
    ST_FAULT_TABLE(X)
#undef X
}

static void fill_reasons(row_list *rows)
{
#define X(id, name, blocks, means, remedy) add(rows, name, (blocks) ? "*" : NULL, means, remedy);
    ST_REASON_TABLE(X)
#undef X
}

static void fill_events(row_list *rows)
{
#define X(id, name, about) add(rows, name, NULL, about, NULL);
    ST_EFFECT_TABLE(X)
#undef X
    add(rows, "budget", NULL, "an account passed a threshold of its budget or cap", NULL);
    add(rows, "anomaly", NULL,
        "an account, or a user in it, has cost much more today than usual; for its admins and "
        "those above",
        NULL);
    add(rows, "cap", NULL,
        "an account reached its cap; or a cap stops a job, keeps it waiting, or lets it run again",
        NULL);
    add(rows, "data", NULL,
        "a job was ended or refused because its account has too much in /data on a node", NULL);
    add(rows, "deadline", NULL,
        "a job's deadline is at_risk, promised again, met or missed; the last two when the job "
        "ends",
        NULL);
    add(rows, "neighbour", NULL,
        "the job is slowed by another one on its GPU, or slows one; reason says what is done",
        NULL);
    add(rows, "reset", NULL, "events were missed: list again", NULL);
    add(rows, "overflow", NULL, "the client reads too slowly and is disconnected", NULL);
    add(rows, "revoked", NULL, "the token is no longer valid; the stream ends", NULL);
    add(rows, "bye", NULL, "stintd stops; the stream ends", NULL);
}

static void fill_errors(row_list *rows)
{
#define X(id, name, http, cli, remedy) add(rows, name, #cli, "", remedy);
    ST_ERR_TABLE(X)
#undef X
}

static void fill_lines(row_list *rows)
{
#define X(id, name, unit, per, what) add(rows, name, unit, what, NULL);
    ST_COMPONENT_TABLE(X)
#undef X
}

/* Kinds of policy values, as ST_POLICY_TABLE names them. */
enum { DURATION, MILLI, COUNT, BOOL };

static const char *policy_value(char buf[ST_FMT_MAX], int kind, int64_t n)
{
    switch (kind) {
    case DURATION:
        st_fmt_duration(buf, n);
        break;
    case MILLI:
        st_fmt_milli(buf, n);
        break;
    case COUNT:
        snprintf(buf, ST_FMT_MAX, "%" PRId64, n);
        break;
    default:
        return n ? "true" : "false";
    }
    return buf;
}

static void fill_policy(row_list *rows)
{
    char buf[ST_FMT_MAX];

#define X(field, key, kind, def, lo, hi, what) \
    add(rows, key, policy_value(buf, kind, def), what, NULL);
    ST_POLICY_TABLE(X)
#undef X
    add(rows, "order", "age",
        "who goes first inside an account, after priority: age, shortest or attained", NULL);
    add(rows, "basis", "borrowed", "what fair shares count: borrowed or total", NULL);
}

static const topic topics[] = {
    {"job", "Keys of a job file (stint submit -f FILE)", fill_job},
    {"sbatch", "Options of sbatch, and what a script's #SBATCH lines become", fill_sbatch},
    {"states", "States of a job", fill_states},
    {"preemption", "What happens to a job that is preempted (on_preempt)", fill_preempt},
    {"node-states", "States of a node", fill_nodes},
    {"faults", "Kinds of faults of nodes, with their causes (stint incidents)", fill_faults},
    {"reasons", "Reasons why a job waits; * blocks the start by itself", fill_reasons},
    {"event-kinds", "Kinds of events (stint events, GET /v1/events)", fill_events},
    {"errors", "Error codes, with the exit status of stint", fill_errors},
    {"bill-lines", "Lines of a bill, with their units", fill_lines},
    {"policy", "Keys of the policy, with their defaults", fill_policy},
    {0},
};

/* ---- for people -------------------------------------------------------------------------------- */

static void print_row(FILE *out, const row *r)
{
    char left[160];

    snprintf(left, sizeof(left), "%s%s%s", r->name, r->value[0] ? " " : "", r->value);
    if (strlen(left) > NAME_WIDTH)
        fprintf(out, "  %s\n  %-*s  ", left, NAME_WIDTH, "");
    else
        fprintf(out, "  %-*s  ", NAME_WIDTH, left);
    if (r->about[0])
        fprintf(out, "%s\n", r->about);
    if (r->remedy && r->about[0])
        fprintf(out, "  %-*s  -> %s\n", NAME_WIDTH, "", r->remedy);
    else if (r->remedy)
        fprintf(out, "%s\n", r->remedy);
}

bool st_cli_topic(FILE *out, const char *name)
{
    for (const topic *t = topics; t->name; t++) {
        row_list rows = {0};

        if (strcmp(t->name, name) != 0)
            continue;
        fprintf(out, "%s.\n\n", t->summary);
        t->fill(&rows);
        for (size_t i = 0; i < rows.n; i++)
            print_row(out, &rows.v[i]);
        st_vec_free(&rows);
        return true;
    }
    return false;
}

void st_cli_topic_list(FILE *out)
{
    fprintf(out, "\n`stint help TOPIC` explains:\n");
    for (const topic *t = topics; t->name; t++)
        fprintf(out, "  %-11s  %s\n", t->name, t->summary);
}

/* ---- for the reference ------------------------------------------------------------------------- */

static json_t *text_of(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *options_of(const st_cli_row *rows)
{
    json_t *list = json_array();

    for (const st_cli_row *r = rows; r && r->name; r++) {
        char letter[2] = {r->letter, '\0'};

        json_array_append_new(list,
                              json_pack("{s:s,s:s,s:o,s:s}", "name", r->name, "letter", letter,
                                        "value", text_of(r->value), "about", r->about));
    }
    return list;
}

static void add_verbs(json_t *list, const char *path, const st_cli_verb *verbs)
{
    for (; verbs->name; verbs++) {
        char full[PATH_MAX_BYTES];

        snprintf(full, sizeof(full), "%s %s", path, verbs->name);
        json_array_append_new(
            list, json_pack("{s:s,s:s,s:s,s:o,s:o,s:o,s:b}", "path", full, "summary",
                            verbs->summary, "usage", verbs->usage, "help", text_of(verbs->help),
                            "options", options_of(verbs->options), "example",
                            text_of(verbs->example), "group", verbs->sub && !verbs->fn));
        if (verbs->sub)
            add_verbs(list, full, verbs->sub);
    }
}

static json_t *topic_of(const topic *t)
{
    json_t *list = json_array();
    row_list rows = {0};

    t->fill(&rows);
    for (size_t i = 0; i < rows.n; i++)
        json_array_append_new(list,
                              json_pack("{s:s,s:o,s:s,s:o}", "name", rows.v[i].name, "value",
                                        json_string(rows.v[i].value), "about", rows.v[i].about,
                                        "remedy", text_of(rows.v[i].remedy)));
    st_vec_free(&rows);
    return json_pack("{s:s,s:o}", "summary", t->summary, "rows", list);
}

void st_cli_reference(FILE *out, const st_cli_verb *verbs)
{
    json_t *list = json_array(), *all = json_object();
    json_t *doc = json_pack("{s:o,s:o}", "verbs", list, "topics", all);

    add_verbs(list, "stint", verbs);
    for (const topic *t = topics; t->name; t++)
        json_object_set_new(all, t->name, topic_of(t));
    json_dumpf(doc, out, JSON_INDENT(1));
    fputc('\n', out);
    json_decref(doc);
}
