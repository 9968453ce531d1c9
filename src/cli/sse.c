/*
 * The reader of event streams (cli/sse.h), by the WHATWG's rules: lines end with LF, CR or CRLF, a
 * blank line ends an event, what begins with a colon is a comment, one blank after a field's colon
 * does not count.
 *
 * Invariant: line holds the line that has no end yet; data, kind are of the event that has no end
 * yet; id is that of the last event that had one.
 */
#include "cli/sse.h"

#include <string.h>

#include "base/mem.h"

void st_sse_event_done(st_sse_event *ev)
{
    free(ev->id);
    free(ev->kind);
    free(ev->data);
    *ev = (st_sse_event){0};
}

void st_sse_done(st_sse *sse)
{
    for (size_t i = 0; i < sse->ready.n; i++)
        st_sse_event_done(&sse->ready.v[i]);
    st_vec_free(&sse->ready);
    st_strbuf_done(&sse->line);
    st_strbuf_done(&sse->data);
    st_strbuf_done(&sse->id);
    st_strbuf_done(&sse->kind);
    *sse = (st_sse){0};
}

static void end_event(st_sse *sse)
{
    if (sse->has_data)
        st_vec_push(&sse->ready, (st_sse_event){st_xstrdup(st_strbuf_str(&sse->id)),
                                                st_xstrdup(st_strbuf_str(&sse->kind)),
                                                st_xstrdup(st_strbuf_str(&sse->data))});
    st_strbuf_clear(&sse->data);
    st_strbuf_clear(&sse->kind);
    sse->has_data = false;
}

static void set(st_strbuf *buf, const char *text)
{
    st_strbuf_clear(buf);
    st_strbuf_add(buf, text);
}

static int end_line(st_sse *sse, st_err *err)
{
    char *name = sse->line.n ? sse->line.s : NULL, *value;

    if (!name) {
        end_event(sse);
        return 0;
    }
    value = strchr(name, ':');
    if (value) {
        *value++ = '\0';
        value += *value == ' ';
    }
    if (strcmp(name, "data") == 0) {
        if (sse->data.n + sse->line.n > ST_SSE_LINE_MAX)
            return st_fail(err, ST_ERANGE, "the server sent an event of more than %u bytes",
                           ST_SSE_LINE_MAX);
        if (sse->has_data)
            st_strbuf_addc(&sse->data, '\n');
        st_strbuf_add(&sse->data, value ? value : "");
        sse->has_data = true;
    } else if (strcmp(name, "event") == 0) {
        set(&sse->kind, value ? value : "");
    } else if (strcmp(name, "id") == 0) {
        set(&sse->id, value ? value : "");
    }
    st_strbuf_clear(&sse->line);
    return 0;
}

int st_sse_feed(st_sse *sse, const char *bytes, size_t n, st_err *err)
{
    for (size_t i = 0; i < n; i++) {
        bool cr = bytes[i] == '\r', lf = bytes[i] == '\n';

        if (lf && sse->after_cr) {
            sse->after_cr = false;
            continue;
        }
        sse->after_cr = cr;
        if (cr || lf) {
            int r = end_line(sse, err);

            if (r < 0)
                return r;
        } else if (bytes[i] != '\0') {
            if (sse->line.n >= ST_SSE_LINE_MAX)
                return st_fail(err, ST_ERANGE, "the server sent a line of more than %u bytes",
                               ST_SSE_LINE_MAX);
            st_strbuf_addc(&sse->line, bytes[i]);
        }
    }
    return 0;
}

bool st_sse_take(st_sse *sse, st_sse_event *ret)
{
    if (sse->ready.n == 0)
        return false;
    *ret = sse->ready.v[0];
    st_vec_remove(&sse->ready, 0);
    return true;
}
