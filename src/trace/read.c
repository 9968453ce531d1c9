/*
 * What the readers of trace/read.h have in common.
 */
#include "trace/read.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/quote.h"

void st_trace_split(st_trace_job *job, int64_t gpus, int size)
{
    int64_t part = ST_MIN(gpus, size);

    ST_ASSERT(gpus > 0 && size > 0);
    while (gpus % part != 0)
        part--;
    job->tasks = (int)(gpus / part);
    job->shape.gpus = (int)part;
    job->split = true;
}

void st_trace_add_node(st_trace *trace, const char *prefix, const st_node_spec *like)
{
    char name[64];
    st_node_spec node = *like;

    snprintf(name, sizeof(name), "%.40s%zu", prefix, trace->nodes.n);
    node.name = st_arena_strdup(trace->arena, name);
    st_vec_push(&trace->nodes, node);
}

st_account_spec *st_trace_add_account(st_trace *trace, const char *name)
{
    st_account_spec spec;

    st_account_spec_init(&spec);
    spec.name = st_arena_strdup(trace->arena, name);
    st_vec_push(&trace->accounts, spec);
    return &trace->accounts.v[trace->accounts.n - 1];
}

int st_trace_add_job(st_trace *trace, const st_csv *csv, const st_trace_job *job, st_err *err)
{
    if (trace->jobs.n == ST_TRACE_JOBS_MAX)
        return st_csv_fail(csv, err, ST_ERANGE, "more than %d jobs", ST_TRACE_JOBS_MAX);
    st_vec_push(&trace->jobs, *job);
    return 0;
}

int st_csv_seconds_ms(const st_csv *csv, int column, const char *heading, int64_t *ret, st_err *err)
{
    st_err why = {0};

    if (st_parse_milli(st_csv_text(csv, column), 0, ST_DURATION_MAX_MS, ret, &why) < 0)
        return st_csv_fail(csv, err, why.code, "%s: %s", heading, why.msg);
    return 0;
}

/* ---- moments ------------------------------------------------------------------------------- */

static bool all_digits(const char *s, const char *pattern)
{
    for (; *pattern; s++, pattern++)
        if (*pattern == '0' ? *s < '0' || *s > '9' : *s != *pattern)
            return false;
    return *s == '\0';
}

static int digits(const char *s, int n)
{
    int x = 0;

    for (int i = 0; i < n; i++)
        x = x * 10 + (s[i] - '0');
    return x;
}

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Days from 1970 to the first of March of a year, which puts leap days at the end. */
static int64_t days_to_march(int64_t year)
{
    return year * 365 + year / 4 - year / 100 + year / 400 - 719468;
}

static int64_t days_since_1970(int year, int month, int day)
{
    int64_t y = month > 2 ? year : year - 1;
    int m = (month + 9) % 12; /* March is 0 */

    return days_to_march(y) + (153 * m + 2) / 5 + day - 1;
}

int st_parse_moment(const char *s, int64_t *ret, st_err *err)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool clock = all_digits(s, "0000-00-00 00:00:00");
    int year, month, day, hour = 0, minute = 0, second = 0;
    char q[ST_QUOTE_MAX];

    if (!clock && !all_digits(s, "0000-00-00"))
        return st_fail(err, ST_EPARSE,
                       "%s is not a moment, as in 2017-10-01 or 2017-10-01 07:01:55",
                       st_quote(q, s));
    year = digits(s, 4);
    month = digits(s + 5, 2);
    day = digits(s + 8, 2);
    if (clock) {
        hour = digits(s + 11, 2);
        minute = digits(s + 14, 2);
        second = digits(s + 17, 2);
    }
    if (year < 1970 || month < 1 || month > 12 || day < 1 ||
        day > days[month - 1] + (month == 2 && is_leap(year)) || hour > 23 || minute > 59 ||
        second > 59)
        return st_fail(err, ST_ERANGE, "%s is not in any calendar since 1970", st_quote(q, s));
    *ret = days_since_1970(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    return 0;
}
