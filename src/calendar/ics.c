/*
 * Writing iCalendar (calendar/ics.h): lines end in CR LF, are folded at 75 octets, never inside a character, and text
 * cannot become a line or a property of its own.
 */
#include "calendar/ics.h"

#include <string.h>

#include "base/utf8.h"
#include "calendar/calendar.h"

#define FOLD 75

/* Adds a content line. A fold is CR LF and a blank, which counts for the line it begins. */
static void add_line(st_strbuf *out, const char *line)
{
    size_t used = 0;

    for (const char *p = line; *p;) {
        size_t n = 1;

        while ((p[n] & 0xc0) == 0x80) /* the rest of a character */
            n++;
        if (used + n > FOLD) {
            st_strbuf_add(out, "\r\n ");
            used = 1;
        }
        st_strbuf_addn(out, p, n);
        used += n;
        p += n;
    }
    st_strbuf_add(out, "\r\n");
}

static void add_text(st_strbuf *out, const char *name, const char *text)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf line = {0};

    const char *end = text + strlen(text);
    uint32_t code;

    st_strbuf_addf(&line, "%s:", name);
    for (const char *p = text; *p;) {
        size_t n = st_utf8_get(p, (size_t)(end - p), &code);

        if (*p == '\n')
            st_strbuf_add(&line, "\\n");
        else if (*p == '\\' || *p == ';' || *p == ',')
            st_strbuf_addf(&line, "\\%c", *p);
        else if (n == 0 || st_utf8_deceives(code))
            st_strbuf_add(&line, "\xef\xbf\xbd"); /* U+FFFD */
        else
            st_strbuf_addn(&line, p, n);
        p += n > 0 ? n : 1;
    }
    add_line(out, line.s);
}

static void add_moment(st_strbuf *out, const char *name, int64_t ms)
{
    int64_t s = ms / 1000 - (ms % 1000 < 0), day = st_day_of(s), of_day = s - day * ST_DAY_S;
    st_date d = st_date_of_day(day);

    st_strbuf_addf(out, "%s:%04d%02d%02dT%02d%02d%02dZ\r\n", name, d.year, d.month, d.day,
                   (int)(of_day / 3600), (int)(of_day / 60 % 60), (int)(of_day % 60));
}

void st_ics_begin(st_strbuf *out, const char *name)
{
    add_line(out, "BEGIN:VCALENDAR");
    add_line(out, "VERSION:2.0");
    add_line(out, "PRODID:-//Stint//Stint " ST_VERSION "//EN");
    add_line(out, "CALSCALE:GREGORIAN");
    add_line(out, "METHOD:PUBLISH");
    add_text(out, "NAME", name);
    add_text(out, "X-WR-CALNAME", name);
    add_line(out, "REFRESH-INTERVAL;VALUE=DURATION:PT15M");
    add_line(out, "X-PUBLISHED-TTL:PT15M");
}

void st_ics_event_add(st_strbuf *out, const st_ics_event *e)
{
    static const char *const status[] = {"STATUS:TENTATIVE", "STATUS:CONFIRMED",
                                         "STATUS:CANCELLED"};

    add_line(out, "BEGIN:VEVENT");
    add_text(out, "UID", e->uid);
    add_moment(out, "DTSTAMP", e->stamp_ms);
    add_moment(out, "LAST-MODIFIED", e->stamp_ms);
    add_moment(out, "DTSTART", e->from_ms);
    add_moment(out, "DTEND", e->to_ms);
    add_text(out, "SUMMARY", e->summary);
    if (e->description)
        add_text(out, "DESCRIPTION", e->description);
    if (e->location)
        add_text(out, "LOCATION", e->location);
    add_line(out, status[e->status]);
    add_line(out, "TRANSP:OPAQUE");
    add_line(out, "END:VEVENT");
}

void st_ics_end(st_strbuf *out)
{
    add_line(out, "END:VCALENDAR");
}
