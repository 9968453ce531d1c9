/*
 * `stint bill --explain LINE`: the entries of the book that a line of a bill is made of, with their intervals and the
 * devices that were held, and what runs just now.
 */
#include "cli/bill_explain.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bill/bill.h"
#include "cli/table.h"
#include "cli/view.h"

#define GRANTS_SHOWN 2 /* in a table; CSV has all */

static int64_t nth(const json_t *list, size_t i)
{
    return json_integer_value(json_array_get(list, i));
}

/* ":0-3,6" of a mask of devices; nothing for none. */
static void put_devices(st_strbuf *out, int64_t devs)
{
    char before = ':';

    for (int d = 0; d < ST_DEVS_MAX; d++) {
        int first = d;

        if (!(devs >> d & 1))
            continue;
        while (d + 1 < ST_DEVS_MAX && devs >> (d + 1) & 1)
            d++;
        st_strbuf_addf(out, "%c%d", before, first);
        if (d > first)
            st_strbuf_addf(out, "-%d", d);
        before = ',';
    }
}

void st_bill_grants(const json_t *entry, bool all, st_strbuf *out)
{
    const json_t *list = json_object_get(entry, "grants");
    size_t n = json_array_size(list), shown = all || n <= GRANTS_SHOWN + 1 ? n : GRANTS_SHOWN, i;
    json_t *grant;

    json_array_foreach(list, i, grant)
    {
        const char *node = json_string_value(json_array_get(grant, 0));

        if (i == shown)
            break;
        st_strbuf_addf(out, "%s%s", i > 0 ? " " : "", node ? node : "?");
        put_devices(out, nth(grant, 1));
        if (nth(grant, 3) > 1)
            st_strbuf_addf(out, "(%lld tasks)", (long long)nth(grant, 3));
    }
    if (shown < n)
        st_strbuf_addf(out, " and %zu more", n - shown);
    if (n == 0)
        st_strbuf_addc(out, '-');
}

static void put_time(st_table *t, const json_t *entry, const char *key)
{
    char buf[ST_UTC_MAX];
    const json_t *ms = json_object_get(entry, key);

    st_table_cell(t, "%s", ms ? st_utc(buf, json_integer_value(ms)) : "-");
}

static const char *or_dash(const json_t *entry, const char *key)
{
    const char *text = st_view_text(entry, key);

    return *text ? text : "-";
}

/* A posting is [component, quantity, rate, factor, carried in, amount, carried on]; NULL: the entry has none. */
static void put_posting(st_table *t, const json_t *line, int what)
{
    char money[ST_MONEY_MAX], ratio[ST_RATIO_MAX];

    st_table_cell(
        t, "%s",
        what < 0 ? "-" : st_ratio(ratio, nth(line, 1), st_component_per((st_component)what), 6));
    st_table_cell(t, "%s", line ? st_money(money, nth(line, 2)) : "-");
    if (line)
        st_table_cell(t, "%s%%", st_ratio(ratio, nth(line, 3), ST_BP / 100, 2));
    else
        st_table_cell(t, "-");
    st_table_cell(t, "%s", st_money(money, nth(line, 5)));
}

static void put_row(st_table *t, const json_t *entry, const json_t *line, int what, bool running,
                    bool all)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf grants = {0};

    if (running)
        st_table_cell(t, "-");
    else
        st_table_cell(t, "%lld", (long long)json_integer_value(json_object_get(entry, "seq")));
    st_table_cell(t, "%s", running ? "running" : st_view_text(entry, "kind"));
    st_table_cell(t, "%s", or_dash(entry, "job"));
    st_table_cell(t, "%s", or_dash(entry, "user"));
    put_time(t, entry, "from");
    put_time(t, entry, "to");
    st_bill_grants(entry, all, &grants);
    st_table_cell(t, "%s", st_strbuf_str(&grants));
    st_table_cell(t, "%s", or_dash(entry, "class"));
    put_posting(t, line, what);
}

/* A row for each posting: what lies inside a floor has another rate than the rest. */
static void put_entry(st_table *t, const json_t *entry, const char *component, bool running,
                      bool all)
{
    int what = st_component_parse(component);
    bool any = false;
    json_t *line;
    size_t i;

    json_array_foreach(json_object_get(entry, "lines"), i, line)
    {
        const char *name = json_string_value(json_array_get(line, 0));

        if (!name || strcmp(name, component) != 0)
            continue;
        put_row(t, entry, line, what, running, all);
        any = true;
    }
    if (!any)
        put_row(t, entry, NULL, what, running, all);
}

/* All pages in one: {"entries": [...], "running": [...]}. */
static int get_all(st_client *client, const char *base, json_t **ret, st_err *err)
{
    json_t *all = json_pack("{s:[],s:[]}", "entries", "running");
    ST_CLEANUP(st_freep) char *cursor = NULL;
    int r = 0;

    for (bool more = true; r == 0 && more;) {
        ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
        json_t *page = NULL;

        st_strbuf_add(&path, base);
        if (cursor)
            st_strbuf_addf(&path, "&cursor=%s", cursor);
        r = st_client_get(client, st_strbuf_str(&path), &page, err);
        json_array_extend(json_object_get(all, "entries"), json_object_get(page, "entries"));
        json_array_extend(json_object_get(all, "running"), json_object_get(page, "running"));
        more = json_is_string(json_object_get(page, "next"));
        free(cursor);
        cursor = more ? st_xstrdup(st_view_text(page, "next")) : NULL;
        json_decref(page);
    }
    if (r < 0)
        json_decref(all);
    else
        *ret = all;
    return r;
}

static void put_all(st_cli *cli, const json_t *all, const char *component, bool csv)
{
    static const char *const headings[] = {"ENTRY",    "KIND", "JOB",    "USER",
                                           "FROM",     "TO",   "GRANTS", "CLASS",
                                           "QUANTITY", "RATE", "FACTOR", "AMOUNT"};
    static const char *const lists[] = {"entries", "running"};
    ST_CLEANUP(st_table_done) st_table t = {0};
    json_t *entry;
    size_t i;

    for (size_t c = 0; c < ST_ARRAY_LEN(headings); c++)
        st_table_column(&t, headings[c], c == 0 || c >= 8);
    for (size_t k = 0; k < ST_ARRAY_LEN(lists); k++)
        json_array_foreach(json_object_get(all, lists[k]), i, entry)
            put_entry(&t, entry, component, k == 1, csv);
    if (csv)
        st_table_csv(&t, cli->out);
    else
        st_table_print_fitted(&t, cli->out, st_table_terminal_width(cli->out));
}

int st_bill_explain(st_cli *cli, st_client *client, const char *path, const json_t *line,
                    const char *format, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf base = {0};
    const char *component = st_view_text(line, "component"), *gpu = st_view_text(line, "gpu");
    json_t *all;
    char *text;
    int r;

    st_strbuf_addf(&base, "%scomponent=%s&limit=1000", path, component);
    if (*gpu) {
        st_strbuf_add(&base, "&gpu=");
        st_url_add(&base, gpu);
        st_strbuf_addf(&base, "&level=%s", st_view_text(line, "level"));
    }
    r = get_all(client, st_strbuf_str(&base), &all, err);
    if (r < 0)
        return r;
    if (strcmp(format, "json") == 0) {
        text = json_dumps(all, JSON_COMPACT);
        fprintf(cli->out, "%s\n", text);
        free(text);
    } else {
        put_all(cli, all, component, strcmp(format, "csv") == 0);
    }
    json_decref(all);
    return 0;
}

/* ---- where the devices were ---------------------------------------------------------------------- */

static void put_fleet(st_cli *cli, const json_t *entries, bool csv)
{
    static const char *const keys[] = {"total", "granted", "idle", "unhealthy", "overhead"};
    static const char *const headings[] = {"FROM",    "TO",   "GPU",       "GPU HOURS",
                                           "GRANTED", "IDLE", "UNHEALTHY", "OVERHEAD"};
    ST_CLEANUP(st_table_done) st_table t = {0};
    char hours[ST_RATIO_MAX];
    json_t *e;
    size_t i;

    for (size_t c = 0; c < ST_ARRAY_LEN(headings); c++)
        st_table_column(&t, headings[c], c >= 3);
    json_array_foreach(entries, i, e)
    {
        if (strcmp(st_view_text(e, "kind"), "fleet") != 0)
            continue;
        put_time(&t, e, "from");
        put_time(&t, e, "to");
        st_table_cell(&t, "%s", st_view_text(e, "gpu"));
        for (size_t k = 0; k < ST_ARRAY_LEN(keys); k++)
            st_table_cell(&t, "%s",
                          st_ratio(hours, json_integer_value(json_object_get(e, keys[k])),
                                   st_component_per(ST_PAY_BURST), 3));
    }
    if (csv)
        st_table_csv(&t, cli->out);
    else
        st_table_print_fitted(&t, cli->out, st_table_terminal_width(cli->out));
}

typedef struct fleet_flags {
    st_cli_format format;
} fleet_flags;

const st_cli_row st_cli_bill_fleet_options[] = {
    {"output", 'o', ST_CLI_LISTING, offsetof(fleet_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};

int st_cli_bill_fleet(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    fleet_flags f = {0};
    json_t *all = NULL;
    char *text;
    int n, r = st_cli_read(argc, argv, st_cli_bill_fleet_options, &f, 0, 1, &n, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    st_strbuf_add(&path, "/v1/bills/");
    st_url_add(&path, n > 0 ? argv[1] : "open");
    st_strbuf_add(&path, "/entries?account=%23fleet&limit=1000");
    r = get_all(client, st_strbuf_str(&path), &all, err);
    if (r < 0)
        return r;
    if (f.format == ST_CLI_JSON) {
        text = json_dumps(all, JSON_COMPACT);
        fprintf(cli->out, "%s\n", text);
        free(text);
    } else {
        put_fleet(cli, json_object_get(all, "entries"), f.format == ST_CLI_CSV);
    }
    json_decref(all);
    return 0;
}
