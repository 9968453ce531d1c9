/*
 * Pieces of answers: times, amounts, and a job as its tenant sees it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/state.h"
#include "base/num.h"
#include "base/quote.h"
#include "base/suggest.h"
#include "bill/bill.h"
#include "model/labels.h"

void st_fmt_time(char buf[32], int64_t ms)
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    size_t n;

    gmtime_r(&s, &tm);
    n = strftime(buf, 24, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(buf + n, 32 - n, ".%03dZ", (int)(ms % 1000));
}

static void key_of(st_strbuf *out, const char *key)
{
    char last = out->n > 0 ? out->s[out->n - 1] : '{';

    if (last != '{' && last != '[')
        st_strbuf_addc(out, ',');
    st_strbuf_addc(out, '"');
    st_strbuf_add(out, key);
    st_strbuf_add(out, "\":");
}

void st_out_time(st_strbuf *out, const char *key, int64_t ms)
{
    char buf[32];

    key_of(out, key);
    if (ms < 0 || ms == ST_TIME_NEVER) {
        st_strbuf_add(out, "null");
        return;
    }
    st_fmt_time(buf, ms);
    st_strbuf_addc(out, '"');
    st_strbuf_add(out, buf);
    st_strbuf_addc(out, '"');
}

void st_out_text(st_strbuf *out, const char *key, const char *text)
{
    key_of(out, key);
    st_quote_json(out, text);
}

void st_out_milli(st_strbuf *out, const char *key, int64_t milli)
{
    char buf[ST_FMT_MAX];

    key_of(out, key);
    st_strbuf_add(out, st_fmt_milli(buf, milli));
}

void st_out_int(st_strbuf *out, const char *key, int64_t n)
{
    char buf[24];

    snprintf(buf, sizeof buf, "%" PRId64, n);
    key_of(out, key);
    st_strbuf_add(out, buf);
}

void st_out_raw(st_strbuf *out, const char *key, const char *json)
{
    key_of(out, key);
    st_strbuf_add(out, json);
}

void st_out_labels(st_strbuf *out, const char *key, const char *labels)
{
    char name[ST_LABEL_MAX + 1], value[ST_LABEL_MAX + 1];
    size_t at = 0;

    st_out_raw(out, key, "{");
    while (st_labels_next(labels, &at, name, value))
        st_out_text(out, name, value);
    st_strbuf_addc(out, '}');
}

void st_out_money(st_strbuf *out, const char *key, int64_t udollars)
{
    char name[64], buf[ST_MONEY_MAX];

    snprintf(name, sizeof name, "%s_udollars", key);
    st_out_int(out, name, udollars);
    st_out_text(out, key, st_money(buf, udollars));
}

void st_out_money_if(st_strbuf *out, const char *key, bool known, int64_t udollars)
{
    char name[64];

    if (known) {
        st_out_money(out, key, udollars);
        return;
    }
    snprintf(name, sizeof name, "%s_udollars", key);
    st_out_raw(out, name, "null");
    st_out_raw(out, key, "null");
}

/* The values of its variables are its user's and whoever's who submitted it; what it runs is also for those who work
 * in its account, and admins above. */
static st_vault_view view_of(st_api *api, const st_identity *who, const st_job_row *row)
{
    const st_vault_who job = {st_directory_serial(api->dir, row->account), row->user_name};
    bool same = who && strcmp(who->account, row->account) == 0;

    if (!who)
        return ST_VIEW_NAMES;
    if (same && strcmp(who->user, row->user_name) == 0)
        return ST_VIEW_ALL;
    if ((ST_MAY(who->role) & ST_MAY_SUBMIT) &&
        st_vault_doc_by(st_control_vault(api->control), &job, row->spec,
                        &(st_vault_who){st_directory_serial(api->dir, who->account), who->user}))
        return ST_VIEW_ALL;
    if ((ST_MAY(who->role) & ST_MAY_ADMIN) || (same && who->role == ST_ROLE_MEMBER))
        return ST_VIEW_WORK;
    return ST_VIEW_NAMES;
}

static void spec_json(st_api *api, const st_identity *who, const st_job_row *row, st_strbuf *out)
{
    const st_vault_who job = {st_directory_serial(api->dir, row->account), row->user_name};
    st_vault *vault = st_control_vault(api->control);
    st_err err;

    st_out_raw(out, "spec", "");
    if (!row->spec[0] ||
        (st_vault_doc_open(vault, &job, row->spec, view_of(api, who, row), out, &err) < 0 &&
         st_vault_doc_open(vault, &job, row->spec, ST_VIEW_NAMES, out, &err) < 0))
        st_strbuf_add(out, "{}");
}

bool st_api_job_class(const st_job_row *row, char ret[ST_NAME_MAX + 1])
{
    /* Most have none, and need not be read. */
    json_t *doc = strstr(row->spec, "\"priority_class\"") ? json_loads(row->spec, 0, NULL) : NULL;
    const char *name = json_string_value(json_object_get(doc, "priority_class"));
    bool has = name && name[0] && strlen(name) <= ST_NAME_MAX;

    snprintf(ret, ST_NAME_MAX + 1, "%s", has ? name : "");
    json_decref(doc);
    return has;
}

static int64_t number_in(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

/* How long it was on devices, waits in between left out; and since when it is on them now. */
static void run_json(const st_job_row *row, st_strbuf *out)
{
    int64_t ran = number_in(row->result, "\"ran_ms\":");
    int64_t since = number_in(row->result, "\"since_ms\":");

    if (row->start_ms == ST_STORE_NEVER)
        return;
    if (ran < 0) { /* written before this was kept */
        ran = 0;
        since = row->start_ms;
    }
    if (row->end_ms != ST_STORE_NEVER && since >= 0) {
        ran += ST_MAX(row->end_ms - since, 0);
        since = -1;
    }
    st_out_milli(out, "run_seconds", ran);
    if (since >= 0)
        st_out_time(out, "running_since", since);
}

/* A time limit that was changed; the document has the one it began with. */
static void limit_json(const st_job_row *row, st_strbuf *out)
{
    int64_t limit = number_in(row->result, "\"limit_ms\":");

    if (limit > 0)
        st_out_milli(out, "limit_seconds", limit);
    else if (limit == 0)
        st_out_raw(out, "limit_seconds", "null");
}

/* Its deadline, and how that stands. */
static void deadline_json(const st_api *api, const st_job_row *row, st_strbuf *out)
{
    int64_t by = number_in(row->result, "\"by_ms\":");
    bool hard = number_in(row->result, "\"hard\":") > 0;
    bool over = row->end_ms != ST_STORE_NEVER;
    int64_t at = over ? row->end_ms : api->options.clock(api->options.ctx);
    st_deadline state = hard ? ST_DEADLINE_PROMISED : ST_DEADLINE_OPEN;

    if (by <= 0)
        return;
    if (number_in(row->result, "\"at_risk\":") > 0)
        state = ST_DEADLINE_AT_RISK;
    if (at > by)
        state = ST_DEADLINE_MISSED;
    else if (over)
        state = strcmp(row->state, "done") == 0 ? ST_DEADLINE_MET : ST_DEADLINE_MISSED;
    st_out_raw(out, "deadline", "{");
    st_out_time(out, "by", by);
    st_out_raw(out, "hard", hard ? "true" : "false");
    st_out_text(out, "state", st_deadline_name(state));
    st_strbuf_addc(out, '}');
}

/* Who holds it back. */
static void held_json(const st_job_row *row, st_strbuf *out)
{
    int64_t by = number_in(row->result, "\"held_by\":");

    if (by > 0 && row->end_ms == ST_STORE_NEVER)
        st_out_text(out, "on_hold", by > 1 ? "admin" : "user");
}

/* It failed and waits before it is tried again. */
static void retry_json(const st_api *api, const st_job_row *row, st_strbuf *out)
{
    int64_t at = number_in(row->result, "\"retry_ms\":");

    if (at > api->options.clock(api->options.ctx) && row->end_ms == ST_STORE_NEVER &&
        strcmp(row->state, "pending") == 0)
        st_out_time(out, "retry_at", at);
}

/* The fields of a job, in the order they are written. X(id, name) */
#define JOB_FIELD_TABLE(X)            \
    X(JOB_ID, "id")                   \
    X(JOB_NAME, "name")               \
    X(JOB_ACCOUNT, "account")         \
    X(JOB_USER, "user")               \
    X(JOB_STATE, "state")             \
    X(JOB_CLASS, "class")             \
    X(JOB_PRIORITY, "priority")       \
    X(JOB_OF, "priority_class")       \
    X(JOB_GPUS, "gpus")               \
    X(JOB_SUBMITTED, "submitted")     \
    X(JOB_STARTED, "started")         \
    X(JOB_ENDED, "ended")             \
    X(JOB_RUN, "run_seconds")         \
    X(JOB_LIMIT, "limit_seconds")     \
    X(JOB_DEADLINE, "deadline")       \
    X(JOB_HELD, "on_hold")            \
    X(JOB_TRIES, "retries_used")      \
    X(JOB_RETRY, "retry_at")          \
    X(JOB_EXIT, "exit_code")          \
    X(JOB_REASON, "reason")           \
    X(JOB_PREEMPTIONS, "preemptions") \
    X(JOB_LOST, "lost_gpu_seconds")   \
    X(JOB_ARRAY, "array")             \
    X(JOB_PLACEMENT, "placement")     \
    X(JOB_SPEC, "spec")
typedef enum job_field {
#define X(id, name) id,
    JOB_FIELD_TABLE(X)
#undef X
        JOB_FIELD_COUNT
} job_field;

static const char *const field_names[] = {
#define X(id, name) name,
    JOB_FIELD_TABLE(X)
#undef X
        NULL,
};

int st_api_job_fields_read(const char *text, uint32_t *ret, st_err *err)
{
    uint32_t fields = 0;
    char word[32], q[ST_QUOTE_MAX];

    for (const char *at = text, *end; at; at = *end ? end + 1 : NULL) {
        const char *nearest;
        int f = 0;

        end = strchrnul(at, ',');
        snprintf(word, sizeof word, "%.*s", (int)ST_MIN(end - at, (ptrdiff_t)sizeof word - 1), at);
        while (field_names[f] && strcmp(field_names[f], word) != 0)
            f++;
        nearest = field_names[f] ? NULL : st_suggest(word, field_names);
        if (!field_names[f])
            return st_fail(err, ST_EINVAL, "fields: a job has no field %s%s%s%s", st_quote(q, word),
                           nearest ? " (did you mean " : "", nearest ? nearest : "",
                           nearest ? "?)" : "");
        fields |= 1u << f;
    }
    *ret = fields;
    return 0;
}

static void field_json(st_api *api, const st_identity *who, const st_job_row *row, job_field field,
                       st_strbuf *out)
{
    char id[ST_ID_TEXT], class[ST_NAME_MAX + 1];

    switch (field) {
    case JOB_ID:
        st_control_id_text(api->control, (uint64_t)row->id, id);
        st_out_text(out, "id", id);
        break;
    case JOB_NAME:
        st_out_text(out, "name", row->name);
        break;
    case JOB_ACCOUNT:
        st_out_text(out, "account", row->account);
        break;
    case JOB_USER:
        st_out_text(out, "user", row->user_name);
        break;
    case JOB_STATE:
        st_out_text(out, "state", row->state);
        break;
    case JOB_CLASS:
        st_out_text(out, "class", row->class_name);
        break;
    case JOB_PRIORITY:
        st_out_int(out, "priority", row->priority);
        break;
    case JOB_OF:
        if (st_api_job_class(row, class))
            st_out_text(out, "priority_class", class);
        break;
    case JOB_GPUS:
        st_out_milli(out, "gpus", row->gpu_m);
        break;
    case JOB_SUBMITTED:
        st_out_time(out, "submitted", row->submit_ms);
        break;
    case JOB_STARTED:
        st_out_time(out, "started", row->start_ms);
        break;
    case JOB_ENDED:
        st_out_time(out, "ended", row->end_ms);
        break;
    case JOB_RUN:
        run_json(row, out);
        break;
    case JOB_LIMIT:
        limit_json(row, out);
        break;
    case JOB_DEADLINE:
        deadline_json(api, row, out);
        break;
    case JOB_HELD:
        held_json(row, out);
        break;
    case JOB_TRIES:
        if (number_in(row->result, "\"tries\":") > 0)
            st_out_int(out, "retries_used", number_in(row->result, "\"tries\":"));
        break;
    case JOB_RETRY:
        retry_json(api, row, out);
        break;
    case JOB_EXIT:
        if (row->exit_code == ST_STORE_NEVER)
            st_out_raw(out, "exit_code", "null");
        else
            st_out_int(out, "exit_code", row->exit_code);
        break;
    case JOB_REASON:
        st_out_text(out, "reason", row->reason);
        break;
    case JOB_PREEMPTIONS:
        st_out_int(out, "preemptions", row->preemptions);
        break;
    case JOB_LOST:
        st_out_milli(out, "lost_gpu_seconds", row->lost / 1000);
        break;
    case JOB_ARRAY:
        if (row->part_of == 0)
            break;
        st_control_id_text(api->control, (uint64_t)row->part_of, id);
        st_out_text(out, "array", id);
        break;
    case JOB_PLACEMENT:
        st_out_raw(out, "placement", row->result[0] ? row->result : "null");
        break;
    case JOB_SPEC:
        spec_json(api, who, row, out);
        break;
    case JOB_FIELD_COUNT:
        break;
    }
}

void st_api_job_fields(st_api *api, const st_identity *who, const st_job_row *row, uint32_t fields,
                       st_strbuf *out)
{
    st_strbuf_addc(out, '{');
    for (int f = 0; f < JOB_FIELD_COUNT; f++)
        if (fields >> f & 1)
            field_json(api, who, row, (job_field)f, out);
    st_strbuf_addc(out, '}');
}

void st_api_job_json(st_api *api, const st_identity *who, const st_job_row *row, st_strbuf *out)
{
    st_api_job_fields(api, who, row, UINT32_MAX, out);
}
