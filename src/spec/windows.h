/*
 * When something is, as people write it: a window, or a series of them, in a zone.
 *
 *   from: 2026-12-01 09:00     a moment (calendar/calendar.h)
 *   for: 3d                    its length; or
 *   to: 2026-12-04 09:00       its end
 *   zone: Europe/Berlin        (default: UTC)
 *   repeat:
 *     every: week              day, week or month
 *     interval: 2              every other one (default: 1)
 *     on: mon,wed              weekly: weekdays; monthly: 15, last, 2nd tuesday
 *     until: 2027-03-31        the last day one may begin on; or
 *     count: 12                so many
 *     except: [2026-12-28]     days that are left out
 *     gap: shift               what becomes of a start that clocks skip: shift or skip
 *     length: elapsed          elapsed, or wall: it ends when the clock shows the same end each time
 */
#ifndef ST_SPEC_WINDOWS_H
#define ST_SPEC_WINDOWS_H

#include "calendar/recur.h"
#include "core/core.h"
#include "spec/fields.h"

/* Embedded in the fields of whoever reads it. */
typedef struct st_window_fields {
    const char *from, *to, *zone;
    int64_t for_ms;
    const st_doc_node *repeat;
} st_window_fields;

#define ST_WINDOW_FIELDS_INIT                  \
    {                                          \
        .zone = "UTC", .for_ms = ST_TIME_NEVER \
    }

/* The rows of a table of fields whose struct S has a st_window_fields M. */
#define ST_WINDOW_ROWS(S, M)                                                             \
    {.key = "from", .kind = ST_F_LINE, .offset = offsetof(S, M.from), .required = true}, \
        {.key = "to", .kind = ST_F_LINE, .offset = offsetof(S, M.to)},                   \
        {.key = "zone", .kind = ST_F_LINE, .offset = offsetof(S, M.zone)},               \
        {.key = "for", .kind = ST_F_DURATION, .offset = offsetof(S, M.for_ms)},          \
    {                                                                                    \
        .key = "repeat", .kind = ST_F_NODE, .offset = offsetof(S, M.repeat)              \
    }

/* Appends the windows, in order; `tz` is that of the field `zone`. */
int st_spec_windows(const st_doc *doc, const st_window_fields *f, const st_tz *tz, int64_t now_ms,
                    st_occurrences *ret, st_err *err);

#endif
