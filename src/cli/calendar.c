/*
 * `stint calendar`: what is booked, when windows and series are, and feeds for calendar programs.
 */
#include <string.h>

#include "base/quote.h"
#include "calendar/calendar.h"
#include "calendar/ics.h"
#include "calendar/tz.h"
#include "cli/view.h"
#include "cli/when_flags.h"

typedef struct calendar_flags {
    st_when_flags when;
    const char *kind, *account, *pool;
    st_cli_format format;
} calendar_flags;

const st_cli_row st_cli_calendar_options[] = {
    {"account", 'a', ST_CLI_STRING, offsetof(calendar_flags, account), "ACCOUNT",
     "account, with all below it (default: yours)", 0, 0},
    {"pool", 'p', ST_CLI_STRING, offsetof(calendar_flags, pool), "POOL", "bookings of this pool", 0,
     0},
    {"from", 0, ST_CLI_STRING, offsetof(calendar_flags, when.from), "TIME",
     "start (default: today)", 0, 0},
    {"to", 0, ST_CLI_STRING, offsetof(calendar_flags, when.to), "TIME",
     "end (default: seven days later)", 0, 0},
    {"zone", 0, ST_CLI_STRING, offsetof(calendar_flags, when.zone), "ZONE",
     "time zone (default: this machine's)", 0, 0},
    {"output", 'o', ST_CLI_LISTING, offsetof(calendar_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};
static const st_cli_row feed_options[] = {
    {"output", 'o', ST_CLI_OUTPUT, offsetof(calendar_flags, format), "table|json",
     "output format (default: table)", 0, 0},
    {0},
};

static const st_cli_row windows_options[] = {
    ST_WHEN_ROWS(calendar_flags, when),
    {"output", 'o', ST_CLI_STRING, offsetof(calendar_flags, kind), "table|json|csv|ics",
     "output format (default: table); ics is iCalendar", 0, 0},
    {0},
};

/* Moments come with their zone's offset, so UTC reads them. */
static int64_t moment(const json_t *row, const char *key)
{
    ST_CLEANUP(st_tz_freep) st_tz *utc = st_tz_utc();
    st_err err;
    int64_t ms = 0;

    return st_when_parse(st_view_text(row, key), utc, 0, &ms, &err) < 0 ? 0 : ms;
}

/* What a clock there shows: the offset is that of the zone. */
static void put_clock(const char *text, st_strbuf *out)
{
    st_strbuf_addf(out, "%.10s %.5s", text, strlen(text) > 11 ? text + 11 : "");
}

static void put_from(const json_t *row, st_strbuf *out)
{
    put_clock(st_view_text(row, "from"), out);
}

static void put_to(const json_t *row, st_strbuf *out)
{
    put_clock(st_view_text(row, "to"), out);
}

static void put_day(const json_t *row, st_strbuf *out)
{
    const char *text = st_view_text(row, "from");
    ST_CLEANUP(st_strbuf_done) st_strbuf date = {0};
    int64_t day;
    st_err err;

    st_strbuf_addf(&date, "%.10s", text);
    if (st_when_date(st_strbuf_str(&date), &day, &err) == 0)
        st_strbuf_addf(out, "%.3s", st_weekday_name(st_day_weekday(day)));
}

static void put_length(const json_t *row, st_strbuf *out)
{
    char buf[ST_FMT_MAX];

    st_strbuf_add(out, st_fmt_duration(buf, moment(row, "to") - moment(row, "from")));
}

static void put_utc(const json_t *row, st_strbuf *out)
{
    ST_CLEANUP(st_tz_freep) st_tz *utc = st_tz_utc();
    char buf[ST_WHEN_MAX];

    st_strbuf_add(out, st_when_rfc3339(buf, utc, moment(row, "from")));
}

static void put_note(const json_t *row, st_strbuf *out)
{
    st_strbuf_add(out,
                  json_is_true(json_object_get(row, "shifted")) ? "clocks skip its start" : "-");
}

static const st_view_column window_columns[] = {
    {"DAY", "from", ST_VIEW_FN, put_day},
    {"FROM", "from", ST_VIEW_FN, put_from},
    {"TO", "to", ST_VIEW_FN, put_to},
    {"LENGTH", "to", ST_VIEW_FN, put_length},
    {"START UTC", "from", ST_VIEW_FN, put_utc},
    {"NOTE", "shifted", ST_VIEW_FN, put_note},
    {0},
};

static void put_ics(st_cli *cli, const json_t *doc)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0}, uid = {0};
    const json_t *row;
    size_t i;

    st_ics_begin(&out, "stint");
    json_array_foreach(json_object_get(doc, "windows"), i, row)
    {
        st_strbuf_clear(&uid);
        st_strbuf_addf(&uid, "%lld@windows.stint", (long long)moment(row, "from"));
        st_ics_event_add(&out, &(st_ics_event){.uid = st_strbuf_str(&uid),
                                               .summary = "GPU window",
                                               .from_ms = moment(row, "from"),
                                               .to_ms = moment(row, "to"),
                                               .stamp_ms = moment(row, "from"),
                                               .status = ST_ICS_TENTATIVE});
    }
    st_ics_end(&out);
    fputs(st_strbuf_str(&out), cli->out);
}

static int calendar_windows(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    calendar_flags f = {.kind = "table"};
    char q[ST_QUOTE_MAX];
    json_t *doc = NULL;
    int n, r = st_cli_read(argc, argv, windows_options, &f, 0, 0, &n, err);
    bool table = strcmp(f.kind, "table") == 0, csv = strcmp(f.kind, "csv") == 0;

    if (r == 0 && !table && !csv && strcmp(f.kind, "json") != 0 && strcmp(f.kind, "ics") != 0)
        r = st_fail(err, ST_EINVAL, "%s: there is no format %s", argv[0], st_quote(q, f.kind));
    if (r == 0)
        r = st_when_flags_put(&f.when, argv[0], &body, err);
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r == 0)
        r = st_client_json(client,
                           &(st_request){.method = "POST",
                                         .path = "/v1/calendar/windows",
                                         .body = st_body_end(&body)},
                           &doc, &response, err);
    if (r < 0)
        return r;
    if (table || csv)
        st_view_rows(cli, csv ? ST_CLI_CSV : ST_CLI_TABLE, json_object_get(doc, "windows"),
                     window_columns);
    else if (strcmp(f.kind, "ics") == 0)
        put_ics(cli, doc);
    else
        st_view_raw(cli, &response);
    if (table)
        fprintf(cli->out, "Times are those of %s (tzdata %s).\n", st_view_text(doc, "zone"),
                st_view_text(doc, "tzdata"));
    json_decref(doc);
    return 0;
}

/* ---- bookings ------------------------------------------------------------------------------- */

static void put_gpus(const json_t *row, st_strbuf *out)
{
    st_strbuf_addf(out, "%lld",
                   (long long)(json_integer_value(json_object_get(row, "tasks")) *
                               json_integer_value(json_object_get(row, "gpus"))));
}

static const st_view_column calendar_columns[] = {
    {"DAY", "from", ST_VIEW_FN, put_day},
    {"FROM", "from", ST_VIEW_FN, put_from},
    {"TO", "to", ST_VIEW_FN, put_to},
    {"GPUS", "gpus", ST_VIEW_FN, put_gpus},
    {"TYPE", "type", ST_VIEW_TEXT, NULL},
    {"NAME", "name", ST_VIEW_TEXT, NULL},
    {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
    {"POOL", "pool", ST_VIEW_TEXT, NULL},
    {"STATE", "state", ST_VIEW_TEXT, NULL},
    {"ID", "id", ST_VIEW_TEXT, NULL},
    {0},
};

/* One that names no pool may be in any. */
static json_t *of_pool(const json_t *bookings, const char *pool)
{
    json_t *rows = json_array(), *row;
    size_t i;

    json_array_foreach(bookings, i, row)
    {
        const char *its = st_view_text(row, "pool");

        if (!pool || !its[0] || strcmp(its, pool) == 0)
            json_array_append(rows, row);
    }
    return rows;
}

int st_cli_calendar(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    calendar_flags f = {0};
    char zone[ST_CLI_ZONE_MAX];
    json_t *doc = NULL, *rows;
    int n, r = st_cli_read(argc, argv, st_cli_calendar_options, &f, 0, 0, &n, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    st_strbuf_add(&path, "/v1/calendar?zone=");
    st_url_add(&path, st_when_flags_zone(&f.when, zone));
    st_url_query(&path, "from", f.when.from);
    st_url_query(&path, "to", f.when.to);
    st_url_query(&path, "account", f.account);
    r = st_client_json(client, &(st_request){.path = st_strbuf_str(&path)}, &doc, &response, err);
    if (r < 0)
        return r;
    rows = of_pool(json_object_get(doc, "bookings"), f.pool);
    if (f.format == ST_CLI_JSON)
        st_view_raw(cli, &response);
    else
        st_view_rows(cli, f.format, rows, calendar_columns);
    if (f.format == ST_CLI_TABLE)
        fprintf(cli->out, "Times are those of %s.\n", st_view_text(doc, "zone"));
    json_decref(rows);
    json_decref(doc);
    return 0;
}

/* The address has the secret; whoever has the address reads the bookings and nothing else. */
static int calendar_feed(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_response_done) st_response response = {0};
    calendar_flags f = {0};
    json_t *doc = NULL;
    int n, r = st_cli_read(argc, argv, feed_options, &f, 0, 0, &n, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r == 0)
        r = st_client_json(client, &(st_request){.method = "POST", .path = "/v1/calendar/feeds"},
                           &doc, &response, err);
    if (r < 0)
        return r;
    if (f.format == ST_CLI_JSON) {
        st_view_raw(cli, &response);
    } else {
        fprintf(cli->out, "%s/v1/calendar.ics?token=%s\n", st_client_profile(client)->url,
                st_view_text(doc, "token"));
        fprintf(cli->errors,
                "whoever has this address can read the bookings; end it with `stint "
                "token revoke %s`\n",
                st_view_text(doc, "id"));
    }
    json_decref(doc);
    return 0;
}

const st_cli_verb st_cli_calendar_verbs[] = {
    {"feed", "Create the address of a calendar feed, for calendar programs", "[OPTION...]",
     "The feed is iCalendar with the bookings of your account and those below it, 90 days back\n"
     "and all that is ahead. Its token opens nothing else. `stint token revoke` ends it.\n",
     .fn = calendar_feed, .options = feed_options, .example = "  stint calendar feed\n"},
    {"windows", "Show when a window or a series is; book nothing", "[OPTION...]",
     "A series keeps its clock time over daylight saving time. A start that clocks skip is\n"
     "shifted on that day alone; of two that look the same the first counts.\n",
     .fn = calendar_windows, .options = windows_options,
     .example =
         "  stint calendar windows --from \"2027-03-25 22:00\" --for 8h --zone Europe/Berlin \\\n"
         "    --every week --on weekdays --until 2027-04-05 --length wall\n"},
    {0},
};
