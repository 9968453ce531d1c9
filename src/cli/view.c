/*
 * JSON for people (cli/view.h).
 */
#include "cli/view.h"

#include <ctype.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/spinner.h"
#include "cli/table.h"

#define WATCH_MS 2000

const json_t *st_view_at(const json_t *thing, const char *key)
{
    char part[64];

    while (thing && *key) {
        size_t n = strcspn(key, ".");

        snprintf(part, sizeof part, "%.*s", (int)n, key);
        thing = json_object_get(thing, part);
        key += n + (key[n] == '.');
    }
    return thing && !json_is_null(thing) ? thing : NULL;
}

const char *st_view_text(const json_t *thing, const char *key)
{
    const char *s = json_string_value(st_view_at(thing, key));

    return s ? s : "";
}

static int64_t milli_of(const json_t *v)
{
    if (json_is_integer(v))
        return (int64_t)json_integer_value(v) * 1000;
    return json_is_real(v) ? llround(json_real_value(v) * 1000) : 0;
}

int64_t st_view_milli(const json_t *thing, const char *key)
{
    return milli_of(st_view_at(thing, key));
}

bool st_time_parse(const char *text, int64_t *ret_ms)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    int64_t ms = 0, unit = 100;

    if (!rest)
        return false;
    if (*rest == '.') {
        for (rest++; isdigit((unsigned char)*rest); rest++, unit /= 10)
            ms += (*rest - '0') * unit;
    }
    if (strcmp(rest, "Z") != 0)
        return false;
    *ret_ms = (int64_t)timegm(&tm) * 1000 + ms;
    return true;
}

int64_t st_view_time(const json_t *thing, const char *key)
{
    int64_t ms;

    return st_time_parse(st_view_text(thing, key), &ms) ? ms : -1;
}

void st_fmt_age(char buf[ST_FMT_MAX], int64_t ms)
{
    static const int64_t units[] = {86400000, 3600000, 60000, 1000};
    size_t i = 0;

    ms = ST_MAX(ms, 0);
    while (i + 1 < ST_ARRAY_LEN(units) && ms < units[i])
        i++;
    /* The unit below the largest is the last that counts. */
    i = ST_MIN(i + 1, ST_ARRAY_LEN(units) - 1);
    st_fmt_duration(buf, ms / units[i] * units[i]);
}

/* ---- cells ---------------------------------------------------------------------------------- */

static void add_plain(const json_t *v, st_strbuf *out)
{
    char num[ST_FMT_MAX];

    if (json_is_string(v))
        st_strbuf_add(out, json_string_value(v));
    else if (json_is_number(v))
        st_strbuf_add(out, st_fmt_milli(num, milli_of(v)));
    else if (json_is_boolean(v))
        st_strbuf_add(out, json_is_true(v) ? "yes" : "no");
}

static void add_words(const json_t *v, st_strbuf *out)
{
    const char *key, *sep = "";
    json_t *item, *object;
    size_t i;

    json_array_foreach(v, i, item)
    {
        st_strbuf_add(out, sep);
        add_plain(item, out);
        sep = ", ";
    }
    object = json_is_object(v) ? json_copy((json_t *)(uintptr_t)v) : NULL;
    json_object_foreach(object, key, item)
    {
        st_strbuf_addf(out, "%s%s ", sep, key);
        add_plain(item, out);
        sep = ", ";
    }
    json_decref(object);
}

static void add_time(const char *text, bool age, int64_t now_ms, st_strbuf *out)
{
    char buf[ST_FMT_MAX], moment[40];
    struct tm tm;
    time_t s;
    int64_t ms;

    if (!st_time_parse(text, &ms)) {
        st_strbuf_add(out, text);
        return;
    }
    if (age) {
        st_fmt_age(buf, now_ms - ms);
        st_strbuf_add(out, buf);
        return;
    }
    s = ms / 1000;
    localtime_r(&s, &tm);
    strftime(moment, sizeof moment, "%Y-%m-%d %H:%M:%S", &tm);
    st_strbuf_add(out, moment);
}

void st_view_cell(const json_t *row, const st_view_column *c, bool raw, int64_t now_ms,
                  st_strbuf *out)
{
    const json_t *v = c->key ? st_view_at(row, c->key) : row;
    size_t before = out->n;
    char num[ST_FMT_MAX];

    switch (v || c->kind == ST_VIEW_FN ? c->kind : ST_VIEW_TEXT) {
    case ST_VIEW_TEXT:
    case ST_VIEW_NUM:
        add_plain(v, out);
        break;
    case ST_VIEW_AGE:
    case ST_VIEW_TIME:
        if (raw)
            add_plain(v, out);
        else
            add_time(json_string_value(v) ? json_string_value(v) : "", c->kind == ST_VIEW_AGE,
                     now_ms, out);
        break;
    case ST_VIEW_MIB:
        st_strbuf_add(out, st_fmt_mib(num, milli_of(v) / 1000));
        break;
    case ST_VIEW_SECONDS:
        st_strbuf_add(out, st_fmt_duration(num, milli_of(v)));
        break;
    case ST_VIEW_WORDS:
        add_words(v, out);
        break;
    case ST_VIEW_FN:
        c->fn(row, out);
        break;
    }
    if (out->n == before && !raw)
        st_strbuf_addc(out, '-');
}

void st_view_rows(st_cli *cli, st_cli_format format, const json_t *rows,
                  const st_view_column *columns)
{
    ST_CLEANUP(st_table_done) st_table t = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf cell = {0};
    int64_t now = st_cli_wall_ms();
    json_t *row;
    size_t i;

    for (const st_view_column *c = columns; c->heading; c++)
        st_table_column(&t, c->heading,
                        c->kind == ST_VIEW_NUM || c->kind == ST_VIEW_AGE || c->kind == ST_VIEW_MIB);
    json_array_foreach(rows, i, row)
    {
        for (const st_view_column *c = columns; c->heading; c++) {
            st_strbuf_clear(&cell);
            st_view_cell(row, c, format == ST_CLI_CSV, now, &cell);
            st_table_cell(&t, "%s", st_strbuf_str(&cell));
        }
    }
    if (format == ST_CLI_CSV)
        st_table_csv(&t, cli->out);
    else
        st_table_print_fitted(&t, cli->out, st_table_terminal_width(cli->out));
}

void st_view_facts(st_cli *cli, const json_t *thing, const st_view_column *columns)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf cell = {0};
    int64_t now = st_cli_wall_ms();
    int width = 0;

    for (const st_view_column *c = columns; c->heading; c++)
        width = ST_MAX(width, (int)strlen(c->heading));
    for (const st_view_column *c = columns; c->heading; c++) {
        st_strbuf_clear(&cell);
        st_view_cell(thing, c, false, now, &cell);
        if (strcmp(st_strbuf_str(&cell), "-") == 0)
            continue;
        fprintf(cli->out, "%-*s  ", width, c->heading);
        st_put_text(cli->out, st_strbuf_str(&cell), INT32_MAX);
        fputc('\n', cli->out);
    }
}

/* ---- what most verbs do ---------------------------------------------------------------------- */

void st_view_raw(st_cli *cli, const st_response *response)
{
    fwrite(st_strbuf_str(&response->body), 1, response->body.n, cli->out);
    if (response->body.n > 0 && response->body.s[response->body.n - 1] != '\n')
        fputc('\n', cli->out);
}

int st_view_list(st_cli *cli, st_client *client, st_cli_format format, const char *path,
                 const char *list, const st_view_column *columns, st_err *err)
{
    ST_CLEANUP(st_response_done) st_response response = {0};
    json_t *doc;
    int r = st_client_json(client, &(st_request){.path = path}, &doc, &response, err);

    if (r < 0)
        return r;
    if (format == ST_CLI_JSON)
        st_view_raw(cli, &response);
    else
        st_view_rows(cli, format, st_view_at(doc, list), columns);
    json_decref(doc);
    return 0;
}

int st_view_one(st_cli *cli, st_client *client, st_cli_format format, const char *path,
                const st_view_column *columns, st_err *err)
{
    ST_CLEANUP(st_response_done) st_response response = {0};
    json_t *doc, *rows;
    int r = st_client_json(client, &(st_request){.path = path}, &doc, &response, err);

    if (r < 0)
        return r;
    if (format == ST_CLI_JSON) {
        st_view_raw(cli, &response);
    } else if (format == ST_CLI_CSV) {
        rows = json_pack("[O]", doc);
        st_view_rows(cli, format, rows, columns);
        json_decref(rows);
    } else {
        st_view_facts(cli, doc, columns);
    }
    json_decref(doc);
    return 0;
}

static void signals(sigset_t *ret)
{
    sigemptyset(ret);
    sigaddset(ret, SIGINT);
    sigaddset(ret, SIGTERM);
    sigaddset(ret, SIGQUIT);
    sigaddset(ret, SIGHUP);
}

void st_signals_block(void)
{
    sigset_t set;

    signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

int st_signals_wait(int timeout_ms)
{
    struct timespec t = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
    sigset_t set;
    int sig;

    signals(&set);
    sig = sigtimedwait(&set, NULL, &t);
    return sig > 0 ? sig : 0;
}

int st_view_watch(st_cli *cli, bool watch, st_view_fn *show, void *ctx, st_err *err)
{
    int fd = fileno(cli->out), r;
    bool screen = fd >= 0 && isatty(fd);

    if (!watch)
        return show(ctx, err);
    st_signals_block();
    for (;;) {
        if (screen)
            fputs("\033[H\033[2J", cli->out);
        r = show(ctx, err);
        if (r != 0)
            return r;
        if (!screen)
            fputc('\n', cli->out);
        if (fflush(cli->out) != 0 || st_signals_wait(WATCH_MS))
            return 0;
    }
}

int st_cli_agree(const st_cli *cli, const char *question, const char *instead, st_err *err)
{
    char line[16] = "";

    if (!isatty(STDIN_FILENO))
        return st_fail(err, ST_EINVAL, "%s, then give --yes", instead);
    fprintf(cli->errors, "%s [y/N] ", question);
    fflush(cli->errors);
    if (!fgets(line, sizeof line, stdin) || (line[0] != 'y' && line[0] != 'Y'))
        return st_fail(err, ST_ESTATE, "nothing was done");
    return 0;
}
