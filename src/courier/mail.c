/*
 * A mail as it goes over the wire. Everything that tenants wrote is in base64, in the subject (RFC 2047) and in the text, so no name
 * of a job ends a header or a message.
 */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "courier/courier.h"

#define LINE 57 /* bytes that become 76 characters */
#define WORD 39 /* bytes of the subject in an encoded word, which has 75 characters at most */

static void add_base64(st_strbuf *out, const char *s, size_t n)
{
    char text[sodium_base64_ENCODED_LEN(LINE, sodium_base64_VARIANT_ORIGINAL)];

    st_strbuf_add(out, sodium_bin2base64(text, sizeof text, (const unsigned char *)s, n,
                                         sodium_base64_VARIANT_ORIGINAL));
}

/* No character is cut in two. */
static size_t piece(const char *s, size_t n)
{
    size_t take = n < WORD ? n : WORD;

    while (take > 0 && take < n && ((unsigned char)s[take] & 0xc0) == 0x80)
        take--;
    return take;
}

static void add_subject(st_strbuf *out, const char *subject)
{
    ST_CLEANUP(st_freep) char *tame = st_xstrdup(subject);
    size_t at = 0, n;

    st_text_tame(tame);
    n = strlen(tame);
    st_strbuf_add(out, "Subject:");
    do {
        size_t take = piece(tame + at, n - at);

        st_strbuf_add(out, at > 0 ? "\r\n =?UTF-8?B?" : " =?UTF-8?B?");
        add_base64(out, tame + at, take);
        st_strbuf_add(out, "?=");
        at += take;
    } while (at < n);
    st_strbuf_add(out, "\r\n");
}

void st_courier_message(const char *from, const char *to, const char *subject, const char *text,
                        const char *id, int64_t seconds, st_strbuf *out)
{
    const char *at = strrchr(from, '@');
    time_t when = (time_t)seconds;
    size_t n = strlen(text);
    char date[64];
    struct tm tm;

    gmtime_r(&when, &tm);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", &tm);
    st_strbuf_addf(out, "Date: %s\r\nFrom: %s\r\nTo: %s\r\nMessage-ID: <%s%s>\r\n", date, from, to,
                   id, at ? at : "@stint");
    add_subject(out, subject);
    st_strbuf_add(out, "Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
                       "Content-Type: text/plain; charset=utf-8\r\n"
                       "Content-Transfer-Encoding: base64\r\n\r\n");
    for (size_t i = 0; i < n; i += LINE) {
        add_base64(out, text + i, n - i < LINE ? n - i : LINE);
        st_strbuf_add(out, "\r\n");
    }
}
