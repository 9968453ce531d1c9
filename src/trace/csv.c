/*
 * The reader of trace/csv.h. The text is owned and cut up in place: a field's end becomes a NUL, and
 * quotes are taken out as the row is read, so reading allocates nothing per row.
 */
#include "trace/csv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "base/strbuf.h"
#include "base/suggest.h"

struct st_csv {
    char *name;
    char *text, *at, *end; /* end points at the closing NUL */
    int64_t line, next_line;
    int nheadings, nfields;
    char *headings[ST_CSV_FIELDS_MAX];
    const char *fields[ST_CSV_FIELDS_MAX];
};

void st_csv_free(st_csv *csv)
{
    if (!csv)
        return;
    for (int i = 0; i < csv->nheadings; i++)
        free(csv->headings[i]);
    free(csv->name);
    free(csv->text);
    free(csv);
}

int st_csv_fail(const st_csv *csv, st_err *err, int code, const char *fmt, ...)
{
    char sentence[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, args);
    va_end(args);
    return st_fail(err, code, "%s:%lld: %s", csv->name, (long long)csv->line, sentence);
}

/* ---- fields ---- */

static bool at_line_end(const st_csv *csv, const char *p)
{
    return p == csv->end || *p == '\n' || (p[0] == '\r' && (p[1] == '\n' || p + 1 == csv->end));
}

/* Reads "…" with its doubled quotes, which it takes out; *ret is behind the field. */
static int read_quoted(st_csv *csv, char *p, const char **ret_field, char **ret, st_err *err)
{
    char *to = p;

    *ret_field = p + 1;
    for (p++, to++;; *to++ = *p++) {
        if (p == csv->end)
            return st_csv_fail(csv, err, ST_EPARSE, "the quote that opens a field is not closed");
        if (*p == '\n')
            csv->next_line++;
        if (*p != '"')
            continue;
        if (p[1] != '"')
            break;
        p++;
    }
    p++;
    if (*p != ',' && !at_line_end(csv, p))
        return st_csv_fail(csv, err, ST_EPARSE, "there is text behind a quoted field");
    *ret = p;
    /* The caller ends the field at p; what was taken out lies between. */
    if (to < p)
        *to = '\0';
    return 0;
}

static int read_plain(st_csv *csv, char *p, const char **ret_field, char **ret, st_err *err)
{
    *ret_field = p;
    while (*p != ',' && !at_line_end(csv, p)) {
        if (*p == '"')
            return st_csv_fail(csv, err, ST_EPARSE, "a quote inside a field that is not quoted");
        p++;
    }
    *ret = p;
    return 0;
}

static int read_row(st_csv *csv, st_err *err)
{
    bool more = true;

    csv->nfields = 0;
    while (more) {
        char *p = csv->at;
        const char *field;
        int r;

        if (csv->nfields == ST_CSV_FIELDS_MAX)
            return st_csv_fail(csv, err, ST_ERANGE, "more than %d fields", ST_CSV_FIELDS_MAX);
        r = *p == '"' ? read_quoted(csv, p, &field, &p, err) : read_plain(csv, p, &field, &p, err);
        if (r < 0)
            return r;
        if (p - field > ST_CSV_FIELD_MAX)
            return st_csv_fail(csv, err, ST_ERANGE, "a field of more than %d bytes",
                               ST_CSV_FIELD_MAX);
        more = *p == ',';
        csv->at = p;
        if (p < csv->end) {
            csv->at = p + (*p == '\r' && p + 1 < csv->end ? 2 : 1);
            *p = '\0';
        }
        csv->fields[csv->nfields++] = field;
    }
    csv->next_line++;
    return 0;
}

int st_csv_next(st_csv *csv, st_err *err)
{
    int r;

    csv->nfields = 0;
    while (csv->at < csv->end && at_line_end(csv, csv->at)) {
        csv->at += *csv->at == '\r' && csv->at + 1 < csv->end ? 2 : 1;
        csv->next_line++;
    }
    csv->line = csv->next_line;
    if (csv->at >= csv->end)
        return 0;
    r = read_row(csv, err);
    if (r < 0)
        return r;
    if (csv->nheadings > 0 && csv->nfields != csv->nheadings)
        return st_csv_fail(csv, err, ST_EPARSE, "%d fields, but the heading has %d", csv->nfields,
                           csv->nheadings);
    return 1;
}

/* ---- opening ---- */

static int read_heading(st_csv *csv, st_err *err)
{
    int r = st_csv_next(csv, err);

    if (r < 0)
        return r;
    if (r == 0)
        return st_csv_fail(csv, err, ST_EPARSE, "the file is empty");
    for (int i = 0; i < csv->nfields; i++) {
        char q[ST_QUOTE_MAX];

        if (st_csv_find(csv, csv->fields[i]) >= 0)
            return st_csv_fail(csv, err, ST_EPARSE, "the heading %s stands twice",
                               st_quote(q, csv->fields[i]));
        csv->headings[csv->nheadings++] = st_xstrdup(csv->fields[i]);
    }
    return 0;
}

int st_csv_parse(const char *name, const char *text, size_t len, st_csv **ret, st_err *err)
{
    ST_CLEANUP(st_csv_freep) st_csv *csv = st_xcalloc(1, sizeof(*csv));
    const char *nul = memchr(text, '\0', len);
    int r;

    csv->name = st_xstrdup(name);
    csv->line = csv->next_line = 1;
    if (len > ST_CSV_BYTES_MAX)
        return st_fail(err, ST_ERANGE, "%s: %zu bytes are too many (at most %u)", name, len,
                       ST_CSV_BYTES_MAX);
    if (nul) {
        for (const char *p = text; p < nul; p++)
            csv->line += *p == '\n';
        return st_csv_fail(csv, err, ST_EPARSE, "a NUL byte");
    }
    csv->text = st_xmalloc(len + 1);
    memcpy(csv->text, text, len);
    csv->text[len] = '\0';
    csv->at = csv->text;
    csv->end = csv->text + len;
    if (len >= 3 && memcmp(csv->text, "\xef\xbb\xbf", 3) == 0)
        csv->at += 3;
    r = read_heading(csv, err);
    if (r < 0)
        return r;
    *ret = ST_TAKE(csv);
    return 0;
}

int st_csv_load(const char *path, st_csv **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    int r = st_file_read(path, ST_CSV_BYTES_MAX, &text, err);

    if (r < 0)
        return r;
    return st_csv_parse(st_file_name(path), st_strbuf_str(&text), text.n, ret, err);
}

/* ---- reading a row ---- */

int st_csv_find(const st_csv *csv, const char *heading)
{
    for (int i = 0; i < csv->nheadings; i++)
        if (strcmp(csv->headings[i], heading) == 0)
            return i;
    return -1;
}

int st_csv_need(const st_csv *csv, const char *heading, int *ret, st_err *err)
{
    int column = st_csv_find(csv, heading);

    if (column < 0)
        return st_fail(err, ST_EPARSE, "%s:1: the heading %s is missing", csv->name, heading);
    *ret = column;
    return 0;
}

int st_csv_check(const st_csv *csv, const char *const *allowed, st_err *err)
{
    for (int i = 0; i < csv->nheadings; i++) {
        const char *const *known = allowed, *nearest;
        char q[ST_QUOTE_MAX];

        while (*known && strcmp(*known, csv->headings[i]) != 0)
            known++;
        if (*known)
            continue;
        nearest = st_suggest(csv->headings[i], allowed);
        return st_fail(err, ST_EPARSE, "%s:1: unknown heading %s%s%s%s", csv->name,
                       st_quote(q, csv->headings[i]), nearest ? " (did you mean \"" : "",
                       nearest ? nearest : "", nearest ? "\"?)" : "");
    }
    return 0;
}

const char *st_csv_text(const st_csv *csv, int column)
{
    ST_ASSERT(column < csv->nfields);
    return column < 0 ? "" : csv->fields[column];
}

int st_csv_i64(const st_csv *csv, int column, int64_t lo, int64_t hi, int64_t *ret, st_err *err)
{
    st_err why = {0};
    int r;

    ST_ASSERT(column >= 0 && column < csv->nfields);
    r = st_parse_i64(csv->fields[column], lo, hi, ret, &why);
    return r < 0 ? st_csv_fail(csv, err, why.code, "%s: %s", csv->headings[column], why.msg) : 0;
}
