/*
 * Reading an answer that nobody trusts (http/upstream.h).
 */
#include "http/upstream.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define EARLY_MAX   8
#define LINE_MAX    1024 /* of a chunk's size */
#define TRAILER_MAX 8192
#define LENGTH_MAX  (INT64_C(1) << 50)

static void forget_headers(st_upstream *u)
{
    for (size_t i = 0; i < u->headers.n; i++) {
        free(u->headers.v[i].name);
        free(u->headers.v[i].value);
    }
    st_vec_clear(&u->headers);
}

void st_upstream_done(st_upstream *u)
{
    forget_headers(u);
    st_vec_free(&u->headers);
    st_strbuf_done(&u->line);
}

const char *st_upstream_header_of(const st_upstream *u, const char *name)
{
    for (size_t i = 0; i < u->headers.n; i++)
        if (strcasecmp(u->headers.v[i].name, name) == 0)
            return u->headers.v[i].value;
    return NULL;
}

/* ---- the head ------------------------------------------------------------------------------------ */

static bool is_token(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];

        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c))
            return false;
    }
    return n > 0;
}

static bool is_value(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < ' ' && *s != '\t') || *s == 0x7f)
            return false;
    return true;
}

static int read_status(st_upstream *u, const char *line, bool *ret_old, st_err *err)
{
    static const char digits[] = "0123456789";

    if (strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') || line[8] != ' ' ||
        strspn(line + 9, digits) != 3 || (line[12] && line[12] != ' ') || !is_value(line))
        return st_fail(err, ST_EPARSE, "the answer does not begin with a status line of HTTP/1");
    u->status = (int)strtol(line + 9, NULL, 10);
    *ret_old = line[7] == '0';
    return u->status >= 100 && u->status <= 599
               ? 0
               : st_fail(err, ST_EPARSE, "the answer has the status %d", u->status);
}

static int read_header(st_upstream *u, char *line, st_err *err)
{
    char *colon = strchr(line, ':'), *value, *end;

    if (u->headers.n == ST_UPSTREAM_HEADERS_MAX)
        return st_fail(err, ST_EPARSE, "the answer has more than %d headers",
                       ST_UPSTREAM_HEADERS_MAX);
    if (!colon || !is_token(line, (size_t)(colon - line)))
        return st_fail(err, ST_EPARSE, "the answer has a header without a proper name");
    *colon = '\0';
    value = colon + 1 + strspn(colon + 1, " \t");
    end = value + strlen(value);
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = '\0';
    if (!is_value(value))
        return st_fail(err, ST_EPARSE, "the answer's header %.40s has a control character", line);
    st_vec_push(&u->headers, ((st_upstream_header){st_xstrdup(line), st_xstrdup(value)}));
    return 0;
}

static int read_length(st_upstream *u, const char *text, st_err *err)
{
    size_t n = strlen(text);

    if (n == 0 || n > 15 || strspn(text, "0123456789") != n ||
        (u->length = strtoll(text, NULL, 10)) > LENGTH_MAX)
        return st_fail(err, ST_EPARSE, "the answer's Content-Length is no number");
    return 0;
}

/* How the body is framed: said once, in one way. */
static int read_framing(st_upstream *u, bool old, st_err *err)
{
    int lengths = 0, codings = 0, r = 0;
    bool chunked = false;

    for (size_t i = 0; r == 0 && i < u->headers.n; i++) {
        const st_upstream_header *h = &u->headers.v[i];

        if (strcasecmp(h->name, "Content-Length") == 0) {
            lengths++;
            r = read_length(u, h->value, err);
        } else if (strcasecmp(h->name, "Transfer-Encoding") == 0) {
            codings++;
            chunked = strcasecmp(h->value, "chunked") == 0;
        }
    }
    if (r < 0)
        return r;
    if (lengths + codings > 1 || (codings && (!chunked || old)))
        return st_fail(err, ST_EPARSE, "the answer's length is said in more than one way");
    u->left = u->length;
    if (u->head_only || u->status == 204 || u->status == 304)
        u->state = ST_UPSTREAM_DONE;
    else if (chunked)
        u->state = ST_UPSTREAM_CHUNK;
    else if (lengths)
        u->state = u->length > 0 ? ST_UPSTREAM_LENGTH : ST_UPSTREAM_DONE;
    else
        u->state = ST_UPSTREAM_CLOSE;
    return 0;
}

/* A whole head, line ends and all, is in u->line. */
static int read_head(st_upstream *u, st_err *err)
{
    char *at = u->line.s, *line;
    bool old = false;
    int r;

    if (memchr(u->line.s, '\0', u->line.n))
        return st_fail(err, ST_EPARSE, "the answer's head has a NUL byte");
    forget_headers(u);
    u->length = -1;
    line = strsep(&at, "\n");
    line[strcspn(line, "\r")] = '\0';
    r = read_status(u, line, &old, err);
    while (r == 0 && at && (line = strsep(&at, "\n")) && at) {
        size_t n = strlen(line);

        if (n > 0 && line[n - 1] == '\r')
            line[--n] = '\0';
        if (n > 0)
            r = read_header(u, line, err);
    }
    if (r < 0)
        return r;
    st_strbuf_clear(&u->line);
    if (u->status == 101 && u->may_switch) {
        u->state = ST_UPSTREAM_OTHER;
    } else if (u->status < 200) {
        if (u->status == 101 || ++u->early > EARLY_MAX)
            return st_fail(err, ST_EPARSE, "the answer does not come to its end");
        u->status = 0;
    } else {
        return read_framing(u, old, err);
    }
    return 0;
}

/* Whether the line that ends here was the empty one. */
static bool head_ends(const st_strbuf *head)
{
    return (head->n >= 2 && head->s[head->n - 2] == '\n') ||
           (head->n >= 3 && head->s[head->n - 2] == '\r' && head->s[head->n - 3] == '\n');
}

/* ---- lines of the framing ------------------------------------------------------------------------- */

static int read_chunk(st_upstream *u, st_err *err)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    size_t n = strspn(u->line.s, hex);
    char behind = u->line.s[n];

    if (n == 0 || n > 12 || !strchr("\r\n; \t", behind) || behind == '\0')
        return st_fail(err, ST_EPARSE, "the answer has a chunk without a proper size");
    u->left = strtoll(u->line.s, NULL, 16);
    u->state = u->left > 0 ? ST_UPSTREAM_DATA : ST_UPSTREAM_TRAILER;
    st_strbuf_clear(&u->line);
    return 0;
}

static int read_after(st_upstream *u, st_err *err)
{
    if (strcmp(u->line.s, "\r\n") != 0 && strcmp(u->line.s, "\n") != 0)
        return st_fail(err, ST_EPARSE, "the answer has a chunk that is longer than it says");
    u->state = ST_UPSTREAM_CHUNK;
    st_strbuf_clear(&u->line);
    return 0;
}

/* What stands behind the last chunk is dropped. */
static int read_trailer(st_upstream *u, st_err *err)
{
    (void)err;
    if (strcmp(u->line.s, "\r\n") == 0 || strcmp(u->line.s, "\n") == 0 || head_ends(&u->line))
        u->state = ST_UPSTREAM_DONE;
    return 0;
}

/* Up to the next line end; true: the line is whole. */
static bool take_line(st_upstream *u, const char *bytes, size_t n, size_t *at)
{
    const char *end = memchr(bytes + *at, '\n', n - *at);
    size_t len = end ? (size_t)(end - bytes) + 1 - *at : n - *at;

    st_strbuf_addn(&u->line, bytes + *at, len);
    *at += len;
    return end != NULL;
}

static size_t line_max(st_upstream_state state)
{
    return state == ST_UPSTREAM_HEAD      ? ST_UPSTREAM_HEAD_MAX
           : state == ST_UPSTREAM_TRAILER ? TRAILER_MAX
                                          : LINE_MAX;
}

static int on_line(st_upstream *u, st_err *err)
{
    switch (u->state) {
    case ST_UPSTREAM_HEAD:
        return head_ends(&u->line) ? read_head(u, err) : 0;
    case ST_UPSTREAM_CHUNK:
        return read_chunk(u, err);
    case ST_UPSTREAM_AFTER:
        return read_after(u, err);
    default:
        return read_trailer(u, err);
    }
}

static void take_body(st_upstream *u, const char *bytes, size_t n, size_t *at, st_strbuf *body)
{
    size_t len = n - *at;

    if (u->state != ST_UPSTREAM_CLOSE && (int64_t)len > u->left)
        len = (size_t)u->left;
    st_strbuf_addn(body, bytes + *at, len);
    *at += len;
    if (u->state == ST_UPSTREAM_CLOSE)
        return;
    u->left -= (int64_t)len;
    if (u->left == 0)
        u->state = u->state == ST_UPSTREAM_DATA ? ST_UPSTREAM_AFTER : ST_UPSTREAM_DONE;
}

int st_upstream_feed(st_upstream *u, const char *bytes, size_t n, size_t *ret_used, st_strbuf *body,
                     st_err *err)
{
    size_t at = 0;
    int r = 0;

    while (r == 0 && at < n && u->state != ST_UPSTREAM_DONE && u->state != ST_UPSTREAM_OTHER) {
        if (u->state == ST_UPSTREAM_LENGTH || u->state == ST_UPSTREAM_DATA ||
            u->state == ST_UPSTREAM_CLOSE) {
            take_body(u, bytes, n, &at, body);
            continue;
        }
        bool whole = take_line(u, bytes, n, &at);

        if (u->line.n > line_max(u->state))
            r = st_fail(err, ST_EPARSE, "the answer's %s is longer than %zu bytes",
                        u->state == ST_UPSTREAM_HEAD ? "head" : "framing", line_max(u->state));
        else if (whole)
            r = on_line(u, err);
    }
    *ret_used = at;
    return r;
}

int st_upstream_end(st_upstream *u, st_err *err)
{
    if (u->state == ST_UPSTREAM_CLOSE)
        u->state = ST_UPSTREAM_DONE;
    return u->state == ST_UPSTREAM_DONE
               ? 0
               : st_fail(err, ST_EPARSE, "the answer ended in the middle of its %s",
                         u->state == ST_UPSTREAM_HEAD ? "head" : "body");
}
