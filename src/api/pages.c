/*
 * The console's files (web/web.h), to anybody: they are the same for everybody and have no data. What a page may do is
 * said with each: scripts and styles of ours alone, calls to this server alone, in no frame.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "api/state.h"
#include "base/mem.h"
#include "web/web.h"

#define POLICY                                                                                 \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src " \
    "'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

static void set_headers(st_call *call)
{
    st_call_set_header(call, "Cache-Control", "no-cache"); /* asked for again, and mostly 304 */
    st_call_set_header(call, "Content-Security-Policy", POLICY);
    st_call_set_header(call, "X-Content-Type-Options", "nosniff");
    st_call_set_header(call, "X-Frame-Options", "DENY");
    st_call_set_header(call, "Referrer-Policy", "no-referrer");
    st_call_set_header(call, "Cross-Origin-Opener-Policy", "same-origin");
    st_call_set_header(call, "Cross-Origin-Resource-Policy", "same-origin");
}

/* For the few who cannot unpack. */
static char *unpacked(const st_web_file *f)
{
    char *text = st_xmalloc(f->len + 1);
    z_stream z = {.avail_in = (uInt)f->packed_len, .avail_out = (uInt)f->len};
    union {
        const unsigned char *given;
        unsigned char *wanted;
    } in = {.given = f->packed};

    z.next_in = in.wanted;
    z.next_out = (unsigned char *)text;
    ST_ASSERT(inflateInit2(&z, 15 + 16) == Z_OK);
    ST_ASSERT(inflate(&z, Z_FINISH) == Z_STREAM_END && z.total_out == f->len);
    inflateEnd(&z);
    return text;
}

static void send_file(st_call *call, const st_web_file *f)
{
    const char *seen = st_call_if_none_match(call);
    char tag[40];

    set_headers(call);
    if (!st_call_takes_gzip(call)) {
        st_call_reply_text(call, 200, f->type, unpacked(f), f->len);
        return;
    }
    snprintf(tag, sizeof tag, "\"%s\"", f->tag);
    st_call_set_header(call, "ETag", tag);
    if (seen && st_etag_listed(seen, f->tag, ST_ETAG_CONTENT)) {
        st_call_reply_empty(call, 304);
        return;
    }
    st_call_set_header(call, "Content-Encoding", "gzip");
    st_call_set_header(call, "Vary", "Accept-Encoding");
    st_call_reply_static(call, 200, f->type, f->packed, f->packed_len);
}

void st_api_page(st_call *call, void *ctx)
{
    (void)ctx;
    send_file(call, st_web_find("index.html"));
}

void st_api_page_file(st_call *call, void *ctx)
{
    const char *name = st_call_param(call, "file");
    const st_web_file *f = st_web_find(name);

    (void)ctx;
    if (f)
        send_file(call, f);
    else
        st_api_no_such(call, "file", name);
}
