/*
 * Frame lists (rules/frames.h).
 */
#include "rules/frames.h"

#include <inttypes.h>
#include <string.h>

#include "base/quote.h"

/* Digits only, at least one; *p behind them. */
static int take_number(const char **p, int64_t *ret)
{
    const char *s = *p;
    int64_t n = 0;

    while (*s >= '0' && *s <= '9') {
        n = n * 10 + (*s++ - '0');
        if (n > ST_FRAME_MAX)
            return -ST_ERANGE;
    }
    if (s == *p)
        return -ST_EPARSE;
    *p = s;
    *ret = n;
    return 0;
}

/* FIRST, FIRST-LAST or FIRST-LASTxSTEP. */
static int take_range(const char **p, st_frames *ret)
{
    int r = take_number(p, &ret->first);

    ret->last = ret->first;
    ret->step = 1;
    if (r == 0 && **p == '-') {
        ++*p;
        r = take_number(p, &ret->last);
        if (r == 0 && **p == 'x') {
            ++*p;
            r = take_number(p, &ret->step);
        }
    }
    return r;
}

int st_frames_parse(const char *text, st_frames_vec *ret, st_err *err)
{
    const char *p = text;
    char q[ST_QUOTE_MAX];
    int64_t before = -1;
    size_t n = 0;

    do {
        st_frames f;
        int r;

        if (n++ > 0)
            p++;
        r = take_range(&p, &f);
        if (r == -ST_ERANGE)
            return st_fail(err, ST_ERANGE, "%s: numbers go up to %" PRId64, st_quote(q, text),
                           ST_FRAME_MAX);
        if (r < 0 || (*p != ',' && *p != '\0'))
            return st_fail(err, ST_EPARSE,
                           "%s is no list like 1-240 or 1-240,300-310x2: it goes wrong at "
                           "character %td",
                           st_quote(q, text), p - text + 1);
        if (f.last < f.first)
            return st_fail(err, ST_EINVAL, "%s: %" PRId64 "-%" PRId64 " runs backwards",
                           st_quote(q, text), f.first, f.last);
        if (f.step < 1)
            return st_fail(err, ST_EINVAL, "%s: a step is at least 1", st_quote(q, text));
        if (f.first <= before)
            return st_fail(err, ST_EINVAL,
                           "%s: ranges are in order and do not overlap; %" PRId64
                           " comes behind %" PRId64,
                           st_quote(q, text), f.first, before);
        if (n > ST_CHUNKS_MAX)
            return st_fail(err, ST_ERANGE, "a list has at most %d ranges", ST_CHUNKS_MAX);
        before = f.last;
        f.last -= (f.last - f.first) % f.step;
        st_vec_push(ret, f);
    } while (*p == ',');
    return 0;
}

int64_t st_frames_count(const st_frames *range)
{
    return (range->last - range->first) / range->step + 1;
}

int st_frames_chunk(const st_frames_vec *ranges, int64_t chunk, st_frames_vec *ret, st_err *err)
{
    int64_t frames = 0, chunks = 0;

    ST_ASSERT(chunk >= 1 && chunk <= ST_FRAME_MAX + 1);
    for (size_t i = 0; i < ranges->n; i++) {
        int64_t n = st_frames_count(&ranges->v[i]);

        frames += n;
        chunks += (n + chunk - 1) / chunk;
    }
    if (chunks > ST_CHUNKS_MAX)
        return st_fail(err, ST_ERANGE,
                       "%" PRId64 " frames in chunks of %" PRId64 " would be %" PRId64
                       " jobs; at most %d come out of one submit, so use larger chunks",
                       frames, chunk, chunks, ST_CHUNKS_MAX);
    for (size_t i = 0; i < ranges->n; i++) {
        const st_frames *r = &ranges->v[i];

        for (int64_t at = r->first; at <= r->last; at += chunk * r->step)
            st_vec_push(ret, (st_frames){.first = at,
                                         .last = ST_MIN(r->last, at + (chunk - 1) * r->step),
                                         .step = r->step});
    }
    return 0;
}
