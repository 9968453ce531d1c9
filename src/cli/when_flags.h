/*
 * Options that say when: a window or a series, for the verbs that ask about them or book them.
 */
#ifndef ST_CLI_WHEN_FLAGS_H
#define ST_CLI_WHEN_FLAGS_H

#include "cli/admin_doc.h"

typedef struct st_when_flags {
    const char *from, *to, *length, *zone;
    const char *every, *interval, *on, *until, *count, *gap, *wall;
    st_cli_words except;
} st_when_flags;

#define ST_WHEN_ROW(S, M, option, field, kind, value, about)      \
    {                                                             \
        option, 0, kind, offsetof(S, M.field), value, about, 0, 0 \
    }
/* The rows of a table of options whose struct S has a st_when_flags M. */
#define ST_WHEN_ROWS(S, M)                                                                        \
    ST_WHEN_ROW(S, M, "from", from, ST_CLI_STRING, "TIME",                                        \
                "start: 2026-12-01 09:00, tomorrow 09:00, now or +2h"),                           \
        ST_WHEN_ROW(S, M, "to", to, ST_CLI_STRING, "TIME", "end, in the same forms; or --for"),   \
        ST_WHEN_ROW(S, M, "for", length, ST_CLI_STRING, "DURATION", "length: 3d, 90m"),           \
        ST_WHEN_ROW(S, M, "zone", zone, ST_CLI_STRING, "ZONE",                                    \
                    "time zone of these times: Europe/Berlin (default: this machine's)"),         \
        ST_WHEN_ROW(S, M, "every", every, ST_CLI_STRING, "day|week|month", "repeat it"),          \
        ST_WHEN_ROW(S, M, "interval", interval, ST_CLI_STRING, "N",                               \
                    "repeat it every N days, weeks or months (default: 1)"),                      \
        ST_WHEN_ROW(S, M, "on", on, ST_CLI_STRING, "DAYS",                                        \
                    "mon,wed or weekdays; of a month 15, last, 2nd tuesday"),                     \
        ST_WHEN_ROW(S, M, "until", until, ST_CLI_STRING, "DATE",                                  \
                    "last day a repeat may begin on"),                                            \
        ST_WHEN_ROW(S, M, "count", count, ST_CLI_STRING, "N", "number of repeats"),               \
        ST_WHEN_ROW(S, M, "except", except, ST_CLI_MANY, "DATE", "day to leave out; repeatable"), \
        ST_WHEN_ROW(S, M, "gap", gap, ST_CLI_STRING, "shift|skip",                                \
                    "start that clocks skip: shift it, or skip that day (default: shift)"),       \
        ST_WHEN_ROW(S, M, "length", wall, ST_CLI_STRING, "elapsed|wall",                          \
                    "--for is elapsed time, or what the clock shows (default: elapsed)")

/* Adds them to a body that is being written. */
int st_when_flags_put(const st_when_flags *f, const char *verb, st_body *body, st_err *err);

/* The ends alone, of something that is there: what is not given stays. */
void st_when_flags_ends(const st_when_flags *f, st_body *body);

/* The zone that is given, or this machine's. */
#define ST_CLI_ZONE_MAX 64
const char *st_when_flags_zone(const st_when_flags *f, char buf[ST_CLI_ZONE_MAX]);

#endif
