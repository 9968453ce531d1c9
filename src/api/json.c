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
#include "ledger/export.h"

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

void st_out_money(st_strbuf *out, const char *key, int64_t udollars)
{
    char name[64], buf[ST_MONEY_MAX];

    snprintf(name, sizeof name, "%s_udollars", key);
    if (udollars == ST_UNSET) {
        st_out_raw(out, name, "null");
        st_out_raw(out, key, "null");
        return;
    }
    st_out_int(out, name, udollars);
    st_out_text(out, key, st_money(buf, udollars));
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

void st_api_job_json(st_api *api, const st_identity *who, const st_job_row *row, st_strbuf *out)
{
    char id[ST_ID_TEXT];

    st_control_id_text(api->control, (uint64_t)row->id, id);
    st_strbuf_addc(out, '{');
    st_out_text(out, "id", id);
    st_out_text(out, "name", row->name);
    st_out_text(out, "account", row->account);
    st_out_text(out, "user", row->user_name);
    st_out_text(out, "state", row->state);
    st_out_text(out, "class", row->class_name);
    st_out_int(out, "priority", row->priority);
    st_out_milli(out, "gpus", row->gpu_m);
    st_out_time(out, "submitted", row->submit_ms);
    st_out_time(out, "started", row->start_ms);
    st_out_time(out, "ended", row->end_ms);
    run_json(row, out);
    if (row->exit_code == ST_STORE_NEVER)
        st_out_raw(out, "exit_code", "null");
    else
        st_out_int(out, "exit_code", row->exit_code);
    st_out_text(out, "reason", row->reason);
    st_out_int(out, "preemptions", row->preemptions);
    st_out_milli(out, "lost_gpu_seconds", row->lost / 1000);
    if (row->part_of > 0) {
        st_control_id_text(api->control, (uint64_t)row->part_of, id);
        st_out_text(out, "array", id);
    }
    st_out_raw(out, "placement", row->result[0] ? row->result : "null");
    spec_json(api, who, row, out);
    st_strbuf_addc(out, '}');
}
