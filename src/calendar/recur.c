/*
 * Expanding a series (calendar/recur.h).
 */
#include "calendar/recur.h"

#include <stdlib.h>

#include "calendar/calendar.h"

typedef struct walk {
    const st_recur *r;
    const st_tz *tz;
    int64_t anchor_day;
    int64_t time_s; /* of the day */
    int32_t counted;
    size_t excepted;
    st_occurrences out;
} walk;

/* ---- one day -------------------------------------------------------------------------------- */

static bool is_excepted(const st_recur *r, int64_t day)
{
    for (size_t i = 0; i < r->nexcept; i++)
        if (r->except[i] == day)
            return true;
    return false;
}

/* Rule 3. */
static int64_t end_of(const walk *w, int64_t day, int64_t start_s)
{
    int64_t elapsed = start_s + w->r->length_s;

    if (w->r->length == ST_RECUR_ELAPSED)
        return elapsed;
    st_tz_moment end = st_tz_resolve(w->tz, day * ST_DAY_S + w->time_s + w->r->length_s);

    return end.first_s > start_s ? end.first_s : elapsed;
}

/* Takes a day of the series; 1 when the series is complete. */
static int take_day(walk *w, int64_t day, st_err *err)
{
    const st_recur *r = w->r;
    st_tz_moment start = st_tz_resolve(w->tz, day * ST_DAY_S + w->time_s);
    bool gap = start.kind == ST_TZ_GAP;
    char date[ST_WHEN_MAX];

    if (gap && r->gap == ST_RECUR_SKIP)
        return 0;
    if (w->counted >= ST_RECUR_MAX)
        return st_fail(err, ST_ELIMIT,
                       "the series has more than %d occurrences; choose an earlier end",
                       ST_RECUR_MAX);
    w->counted++;
    if (is_excepted(r, day))
        w->excepted++;
    else {
        st_occurrence o = {.from_ms = start.first_s * 1000,
                           .to_ms = end_of(w, day, start.first_s) * 1000,
                           .wall = {day * ST_DAY_S + w->time_s, ST_WALL_NONE},
                           .day = day,
                           .shifted = gap};

        if (w->out.n > 0 && w->out.v[w->out.n - 1].to_ms > o.from_ms)
            return st_fail(err, ST_EINVAL,
                           "the occurrence of %s begins before the one before it has ended; "
                           "choose a shorter length",
                           st_when_day(date, day));
        if (r->length == ST_RECUR_WALL)
            o.wall.to_s = o.wall.from_s + r->length_s;
        st_vec_push(&w->out, o);
    }
    return r->count > 0 && w->counted == r->count;
}

/* A candidate day, in ascending order; 1 when there is nothing behind it. */
static int offer_day(walk *w, int64_t day, st_err *err)
{
    const st_recur *r = w->r;

    if (day < w->anchor_day)
        return 0;
    if (r->until_day != ST_RECUR_NO_DAY && day > r->until_day)
        return 1;
    if (day > w->anchor_day + ST_RECUR_SPAN_DAYS)
        return st_fail(err, ST_ELIMIT,
                       "the series goes on for more than ten years; choose an earlier end");
    return take_day(w, day, err);
}

/* ---- periods -------------------------------------------------------------------------------- */

static int offer_week(walk *w, int64_t monday, st_err *err)
{
    uint32_t days = w->r->weekdays ? w->r->weekdays : 1u << st_day_weekday(w->anchor_day);
    int r = 0;

    for (int d = 0; d < 7 && r == 0; d++)
        if (days >> d & 1)
            r = offer_day(w, monday + d, err);
    return r;
}

/* The day of a month, or 0 where the month has none. */
static int32_t day_of_month(const walk *w, int32_t year, int32_t month)
{
    const st_recur *r = w->r;
    int32_t days = st_date_month_days(year, month), day = r->monthday;

    if (r->nth != 0) {
        int first = st_day_weekday(st_date_to_day(&(st_date){year, month, 1}));
        int32_t on = (r->weekday - first + 7) % 7 + 1; /* the first such day */

        if (r->nth < 0)
            return on + (days - on) / 7 * 7;
        day = on + 7 * (r->nth - 1);
    } else if (day == 0)
        day = st_date_of_day(w->anchor_day).day;
    else if (day < 0)
        day += days + 1;
    return day >= 1 && day <= days ? day : 0;
}

static int offer_month(walk *w, int64_t month0, st_err *err)
{
    int32_t year = (int32_t)(month0 / 12), month = (int32_t)(month0 % 12) + 1;
    int32_t day = day_of_month(w, year, month);
    int64_t first = st_date_to_day(&(st_date){year, month, 1});

    if (day > 0)
        return offer_day(w, first + day - 1, err);
    /* A month without that day still ends what is over. */
    if (w->r->until_day != ST_RECUR_NO_DAY && first > w->r->until_day)
        return 1;
    return first > w->anchor_day + ST_RECUR_SPAN_DAYS ? offer_day(w, first, err) : 0;
}

static int walk_all(walk *w, st_err *err)
{
    st_date anchor = st_date_of_day(w->anchor_day);
    int64_t monday = w->anchor_day - st_day_weekday(w->anchor_day);
    int64_t month0 = (int64_t)anchor.year * 12 + anchor.month - 1;
    int r = 0;

    for (int64_t i = 0; r == 0; i += w->r->interval)
        switch (w->r->every) {
        case ST_RECUR_DAILY:
            r = offer_day(w, w->anchor_day + i, err);
            break;
        case ST_RECUR_WEEKLY:
            r = offer_week(w, monday + 7 * i, err);
            break;
        case ST_RECUR_MONTHLY:
            r = offer_month(w, month0 + i, err);
            break;
        }
    return r < 0 ? r : 0;
}

/* ---- all ------------------------------------------------------------------------------------ */

static int check(const st_recur *r, st_err *err)
{
    if (r->length_s <= 0)
        return st_fail(err, ST_EINVAL, "an occurrence must be longer than nothing");
    if (r->length_s > 366 * ST_DAY_S)
        return st_fail(err, ST_ELIMIT, "an occurrence is at most a year long");
    if (r->interval < 1 || r->interval > ST_RECUR_INTERVAL_MAX)
        return st_fail(err, ST_ERANGE, "the interval of a series must be 1 to %d",
                       ST_RECUR_INTERVAL_MAX);
    if (r->count < 0 || r->count > ST_RECUR_MAX)
        return st_fail(err, ST_ELIMIT, "a series has 1 to %d occurrences, not %d", ST_RECUR_MAX,
                       r->count);
    if ((r->count > 0) == (r->until_day != ST_RECUR_NO_DAY))
        return st_fail(err, ST_EINVAL,
                       "a series needs an end: a last day or a number of occurrences, not both");
    if (r->monthday < -31 || r->monthday > 31 || r->nth < -1 || r->nth > 5 || r->weekday < 0 ||
        r->weekday > 6 || r->weekdays > 127)
        return st_fail(err, ST_ERANGE, "a day of the series is out of range");
    return 0;
}

static int missing_exception(const walk *w, st_err *err)
{
    char date[ST_WHEN_MAX];

    for (size_t i = 0; i < w->r->nexcept; i++) {
        st_recur one = *w->r;
        walk again = {.r = &one, .tz = w->tz, .anchor_day = w->anchor_day, .time_s = w->time_s};
        st_err ignored = {0};

        one.except = &w->r->except[i];
        one.nexcept = 1;
        walk_all(&again, &ignored);
        st_vec_free(&again.out);
        if (again.excepted == 0)
            return st_fail(err, ST_EINVAL, "the exception %s is not a day of this series",
                           st_when_day(date, w->r->except[i]));
    }
    return st_fail(err, ST_EINVAL, "an exception is there twice");
}

int st_recur_expand(const st_recur *recur, const st_tz *tz, st_occurrences *ret, st_err *err)
{
    walk w = {.r = recur, .tz = tz, .anchor_day = st_day_of(recur->anchor_s)};
    int r = check(recur, err);

    w.time_s = recur->anchor_s - w.anchor_day * ST_DAY_S;
    if (r == 0 && recur->nexcept > ST_RECUR_MAX)
        r = st_fail(err, ST_ELIMIT, "a series has at most %d exceptions", ST_RECUR_MAX);
    if (r == 0)
        r = walk_all(&w, err);
    if (r == 0 && w.excepted != recur->nexcept)
        r = missing_exception(&w, err);
    if (r == 0 && w.out.n == 0)
        r = st_fail(err, ST_EINVAL, "the series has no occurrence; check its end and its days");
    for (size_t i = 0; r == 0 && i < w.out.n; i++)
        st_vec_push(ret, w.out.v[i]);
    st_vec_free(&w.out);
    return r;
}

void st_wall_resolve(const st_wall *wall, const st_tz *tz, int64_t *from_ms, int64_t *to_ms)
{
    int64_t length_ms = *to_ms - *from_ms;

    if (wall->from_s == ST_WALL_NONE)
        return;
    /* Clocks show seconds; what was written may have had a part of one. */
    *from_ms = st_tz_resolve(tz, wall->from_s).first_s * 1000 + *from_ms % 1000;
    if (wall->to_s != ST_WALL_NONE) {
        int64_t end_ms = st_tz_resolve(tz, wall->to_s).first_s * 1000 + *to_ms % 1000;

        if (end_ms > *from_ms) {
            *to_ms = end_ms;
            return;
        }
    }
    *to_ms = *from_ms + length_ms;
}
