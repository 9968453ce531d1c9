/*
 * Reading windows and series (spec/windows.h).
 */
#include "spec/windows.h"

#include "calendar/calendar.h"

typedef struct repeat_fields {
    const char *on, *until;
    const st_doc_node *except;
    int every, interval, count, gap, length;
} repeat_fields;

#define WORD(name, string) string,
static const char *const every_words[] = {ST_RECUR_EVERY_TABLE(WORD) NULL};
static const char *const gap_words[] = {ST_RECUR_GAP_TABLE(WORD) NULL};
static const char *const length_words[] = {ST_RECUR_LENGTH_TABLE(WORD) NULL};
#undef WORD

#define OF(field) offsetof(repeat_fields, field)
static const st_field repeat_rows[] = {
    {.key = "every",
     .kind = ST_F_WORD,
     .offset = OF(every),
     .words = every_words,
     .required = true},
    {.key = "interval",
     .kind = ST_F_INT,
     .offset = OF(interval),
     .lo = 1,
     .hi = ST_RECUR_INTERVAL_MAX},
    {.key = "on", .kind = ST_F_LINE, .offset = OF(on), .number = true},
    {.key = "until", .kind = ST_F_LINE, .offset = OF(until)},
    {.key = "count", .kind = ST_F_INT, .offset = OF(count), .lo = 1, .hi = 1000000000},
    {.key = "except", .kind = ST_F_NODE, .offset = OF(except)},
    {.key = "gap", .kind = ST_F_WORD, .offset = OF(gap), .words = gap_words},
    {.key = "length", .kind = ST_F_WORD, .offset = OF(length), .words = length_words},
    {0},
};
#undef OF

typedef ST_VEC(int64_t) days_vec;

static int read_except(const st_doc *doc, const st_doc_node *list, days_vec *days, st_err *err)
{
    const st_doc_node *at = NULL;
    const char *text;
    int64_t day;
    int r = 0;

    while (r == 0 && list && (at = st_field_each(list, at))) {
        r = st_doc_str(doc, at, &text, err);
        if (r == 0 && st_when_date(text, &day, err) < 0)
            r = st_doc_fail(doc, at, err, ST_EPARSE, "%s", err->msg);
        if (r == 0 && days->n >= ST_RECUR_MAX)
            r = st_doc_fail(doc, at, err, ST_ELIMIT, "a series has at most %d exceptions",
                            ST_RECUR_MAX);
        if (r == 0)
            st_vec_push(days, day);
    }
    return r;
}

static int read_repeat(const st_doc *doc, const st_window_fields *f, st_recur *recur,
                       days_vec *except, st_err *err)
{
    repeat_fields p = {.interval = 1, .length = f->to ? ST_RECUR_WALL : ST_RECUR_ELAPSED};
    int r = st_doc_expect(doc, f->repeat, ST_DOC_MAP, err);

    if (r == 0)
        r = st_fields_read(doc, f->repeat, repeat_rows, &p, err);
    if (r < 0)
        return r;
    recur->every = (st_recur_every)p.every;
    recur->interval = p.interval;
    recur->count = p.count;
    recur->gap = (st_recur_gap)p.gap;
    recur->length = (st_recur_length)p.length;
    recur->until_day = ST_RECUR_NO_DAY;
    if (p.on && recur->every == ST_RECUR_DAILY)
        r = st_fail(err, ST_EINVAL,
                    "every day needs no days: leave `on` out, or repeat every week");
    else if (p.on && recur->every == ST_RECUR_WEEKLY)
        r = st_recur_weekdays(p.on, &recur->weekdays, err);
    else if (p.on)
        r = st_recur_monthly(p.on, recur, err);
    if (r == 0 && p.until)
        r = st_when_date(p.until, &recur->until_day, err);
    if (r < 0)
        return st_doc_fail(doc, f->repeat, err, err->code, "%s", err->msg);
    return read_except(doc, p.except, except, err);
}

static int read_series(const st_doc *doc, const st_window_fields *f, const st_tz *tz,
                       int64_t now_ms, st_occurrences *ret, st_err *err)
{
    st_recur recur = {0};
    days_vec except = {0};
    int64_t end_s = 0;
    int r = st_when_local(f->from, tz, now_ms, &recur.anchor_s, err);

    if (r == 0 && f->to)
        r = st_when_local(f->to, tz, now_ms, &end_s, err);
    recur.length_s = f->to ? end_s - recur.anchor_s : f->for_ms / 1000;
    if (r == 0)
        r = read_repeat(doc, f, &recur, &except, err);
    recur.except = except.v;
    recur.nexcept = except.n;
    if (r == 0)
        r = st_recur_expand(&recur, tz, ret, err);
    st_vec_free(&except);
    return r;
}

int st_spec_windows(const st_doc *doc, const st_window_fields *f, const st_tz *tz, int64_t now_ms,
                    st_occurrences *ret, st_err *err)
{
    char a[ST_WHEN_MAX], b[ST_WHEN_MAX];
    st_occurrence one = {.wall = {ST_WALL_NONE, ST_WALL_NONE}};
    int r;

    if ((f->to != NULL) == (f->for_ms != ST_TIME_NEVER))
        return st_fail(err, ST_EINVAL, "say how long it is: either `for` or `to`");
    if (f->repeat)
        return read_series(doc, f, tz, now_ms, ret, err);
    r = st_when_parse(f->from, tz, now_ms, &one.from_ms, err);
    if (r == 0 && f->to)
        r = st_when_parse(f->to, tz, now_ms, &one.to_ms, err);
    else if (r == 0)
        one.to_ms = one.from_ms + f->for_ms;
    if (r == 0 && one.to_ms <= one.from_ms)
        r = st_fail(err, ST_EINVAL, "the end %s is not after the start %s",
                    st_when_text(a, tz, one.to_ms), st_when_text(b, tz, one.from_ms));
    if (r < 0)
        return r;
    one.day = st_day_of(one.from_ms / 1000 + st_tz_at(tz, one.from_ms / 1000).offset_s);
    if (st_when_on_clock(f->from, tz, now_ms, &one.wall.from_s) && f->to)
        st_when_on_clock(f->to, tz, now_ms, &one.wall.to_s);
    st_vec_push(ret, one);
    return 0;
}
