/*
 * Reading TZif and asking it (calendar/tz.h).
 */
#include "calendar/tz.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "calendar/calendar.h"
#include "calendar/tz_rule.h"

#define HEADER     44
#define TIMES_MAX  4000
#define TYPES_MAX  256
#define CHARS_MAX  512
#define FOOTER_MAX 128
#define EAST_S     (26 * 3600 - 1)       /* RFC 8536: no type is further east, */
#define WEST_S     (25 * 3600 - 1)       /* or west */
#define PAST_S     (-(INT64_C(1) << 60)) /* some files begin with the beginning of time */
#define FUTURE_S   INT64_C(253402300800) /* the year 10000 */

struct st_tz {
    char name[ST_TZ_NAME_MAX];
    size_t nchange, ntype;
    int64_t *at; /* instants of changes, ascending */
    uint8_t *to; /* the type from there on */
    st_tz_type *types;
    bool has_rule;
    st_tz_rule rule;
};

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct header {
    uint32_t isut, isstd, leap, time, type, chars;
} header;

static uint64_t be(const uint8_t *p, int n)
{
    uint64_t v = 0;

    for (int i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

static int bad(const char *name, const char *what, st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_fail(err, ST_EPARSE, "the data of time zone %s cannot be used: %s", st_quote(q, name),
                   what);
}

static bool read_header(const uint8_t *p, size_t n, header *h)
{
    if (n < HEADER || memcmp(p, "TZif", 4) != 0 || p[4] < '2' || p[4] > '9')
        return false;
    h->isut = (uint32_t)be(p + 20, 4);
    h->isstd = (uint32_t)be(p + 24, 4);
    h->leap = (uint32_t)be(p + 28, 4);
    h->time = (uint32_t)be(p + 32, 4);
    h->type = (uint32_t)be(p + 36, 4);
    h->chars = (uint32_t)be(p + 40, 4);
    return h->time <= TIMES_MAX && h->type <= TYPES_MAX && h->chars <= CHARS_MAX &&
           h->leap <= TIMES_MAX && h->isut <= TYPES_MAX && h->isstd <= TYPES_MAX;
}

static size_t body_size(const header *h, size_t time_size)
{
    return h->time * time_size + h->time + h->type * (size_t)6 + h->chars +
           h->leap * (time_size + 4) + h->isstd + h->isut;
}

static int read_types(st_tz *tz, const header *h, const uint8_t *p, st_err *err)
{
    const char *chars = (const char *)p + h->type * (size_t)6;

    if (h->type == 0 || h->chars == 0 || chars[h->chars - 1] != '\0')
        return bad(tz->name, "it has no types", err);
    tz->ntype = h->type;
    tz->types = st_xcalloc(tz->ntype, sizeof *tz->types);
    for (size_t i = 0; i < tz->ntype; i++, p += 6) {
        st_tz_type *t = &tz->types[i];
        int32_t offset = (int32_t)(uint32_t)be(p, 4);

        if (offset < -WEST_S || offset > EAST_S || p[4] > 1 || p[5] >= h->chars ||
            strlen(chars + p[5]) >= sizeof t->abbr)
            return bad(tz->name, "a type is out of range", err);
        t->offset_s = offset;
        t->dst = p[4];
        memcpy(t->abbr, chars + p[5], strlen(chars + p[5]) + 1);
        for (const char *c = t->abbr; *c; c++)
            if (*c <= ' ' || *c > '~')
                return bad(tz->name, "an abbreviation is not text", err);
    }
    return 0;
}

static int read_changes(st_tz *tz, const header *h, const uint8_t *p, st_err *err)
{
    const uint8_t *to = p + h->time * (size_t)8;

    tz->nchange = h->time;
    tz->at = st_xcalloc(tz->nchange + 1, sizeof *tz->at);
    tz->to = st_xcalloc(tz->nchange + 1, 1);
    for (size_t i = 0; i < tz->nchange; i++) {
        tz->at[i] = (int64_t)be(p + 8 * i, 8);
        tz->to[i] = to[i];
        if (tz->at[i] < PAST_S || tz->at[i] > FUTURE_S || (i > 0 && tz->at[i] <= tz->at[i - 1]) ||
            to[i] >= h->type)
            return bad(tz->name, "its changes are out of order or range", err);
    }
    return 0;
}

/* "\nRULE\n", and nothing behind it. */
static int read_footer(st_tz *tz, const uint8_t *p, size_t n, st_err *err)
{
    char text[FOOTER_MAX];

    if (n < 2 || n > sizeof text || p[0] != '\n' || p[n - 1] != '\n')
        return bad(tz->name, "its footer is broken", err);
    memcpy(text, p + 1, n - 2);
    text[n - 2] = '\0';
    if (n == 2)
        return 0;
    if (strlen(text) != n - 2 || st_tz_rule_parse(text, &tz->rule, err) < 0)
        return bad(tz->name, "its footer is broken", err);
    tz->has_rule = true;
    return 0;
}

int st_tz_parse(const char *name, const void *bytes, size_t n, st_tz **ret, st_err *err)
{
    ST_CLEANUP(st_tz_freep) st_tz *tz = st_xcalloc(1, sizeof *tz);
    const uint8_t *p = bytes;
    header h;
    int r;

    if (strlen(name) >= sizeof tz->name)
        return bad(name, "its name is too long", err);
    memcpy(tz->name, name, strlen(name) + 1);
    if (n > ST_TZ_BYTES_MAX)
        return bad(name, "it is too large", err);
    if (!read_header(p, n, &h))
        return bad(name, "it is no TZif of version 2 or later", err);
    size_t skip = HEADER + body_size(&h, 4);

    if (skip >= n || !read_header(p + skip, n - skip, &h) || body_size(&h, 8) > n - skip - HEADER)
        return bad(name, "it ends too early", err);
    if (h.leap > 0)
        return bad(name, "it counts leap seconds", err);
    const uint8_t *body = p + skip + HEADER;

    if ((r = read_changes(tz, &h, body, err)) < 0 ||
        (r = read_types(tz, &h, body + h.time * (size_t)9, err)) < 0 ||
        (r = read_footer(tz, body + body_size(&h, 8), n - skip - HEADER - body_size(&h, 8), err)) <
            0)
        return r;
    *ret = ST_TAKE(tz);
    return 0;
}

st_tz *st_tz_utc(void)
{
    st_tz *tz = st_xcalloc(1, sizeof *tz);

    memcpy(tz->name, "UTC", 4);
    tz->ntype = 1;
    tz->types = st_xcalloc(1, sizeof *tz->types);
    memcpy(tz->types[0].abbr, "UTC", 4);
    return tz;
}

int st_tz_of_rule(const char *name, const char *rule, st_tz **ret, st_err *err)
{
    st_tz_rule r = {0};
    char q[ST_QUOTE_MAX];
    int rc = st_tz_name_is_sane(name)
                 ? st_tz_rule_parse(rule, &r, err)
                 : st_fail(err, ST_EINVAL, "%s cannot be the name of a zone", st_quote(q, name));

    if (rc < 0)
        return rc;
    *ret = st_xcalloc(1, sizeof **ret);
    snprintf((*ret)->name, sizeof(*ret)->name, "%s", name);
    (*ret)->ntype = 1;
    (*ret)->types = st_xcalloc(1, sizeof *(*ret)->types);
    (*ret)->types[0] = r.std;
    (*ret)->has_rule = true;
    (*ret)->rule = r;
    return 0;
}

void st_tz_free(st_tz *tz)
{
    if (!tz)
        return;
    free(tz->at);
    free(tz->to);
    free(tz->types);
    free(tz);
}

const char *st_tz_name(const st_tz *tz)
{
    return tz->name;
}

bool st_tz_name_is_sane(const char *name)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";
    size_t n = strlen(name);

    return n > 0 && n < ST_TZ_NAME_MAX && strspn(name, plain) == n && name[0] != '/' &&
           name[0] != '-' && name[n - 1] != '/' && !strstr(name, "//");
}

/* ---- asking --------------------------------------------------------------------------------- */

/* How many changes have happened by then. */
static size_t changes_by(const st_tz *tz, int64_t utc_s)
{
    size_t lo = 0, hi = tz->nchange;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (tz->at[mid] <= utc_s)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static const st_tz_type *type_at(const st_tz *tz, int64_t utc_s)
{
    size_t n = changes_by(tz, utc_s);

    if (n == tz->nchange && tz->has_rule)
        return st_tz_rule_at(&tz->rule, utc_s);
    return &tz->types[n > 0 ? tz->to[n - 1] : 0];
}

st_tz_type st_tz_at(const st_tz *tz, int64_t utc_s)
{
    return *type_at(tz, utc_s);
}

bool st_tz_next(const st_tz *tz, int64_t after_s, int64_t *ret_s)
{
    size_t n = changes_by(tz, after_s);

    if (n < tz->nchange) {
        *ret_s = tz->at[n];
        return true;
    }
    return tz->has_rule && st_tz_rule_next(&tz->rule, after_s, ret_s);
}

/* From change to change over every instant that could show this local time. A gap is the first jump over it. */
st_tz_moment st_tz_resolve(const st_tz *tz, int64_t local_s)
{
    int64_t at = local_s - EAST_S - 1, end = local_s + WEST_S + 1;
    int32_t offset = type_at(tz, at)->offset_s;
    st_tz_moment m = {.kind = ST_TZ_GAP};
    bool found = false, jumped = false;

    while (at <= end) {
        int64_t next = INT64_MAX, hit = local_s - offset;

        if (!st_tz_next(tz, at, &next) || next > end)
            next = INT64_MAX;
        if (hit >= at && hit < next) {
            if (!found)
                m.first_s = hit;
            m.kind = found ? ST_TZ_TWICE : ST_TZ_ONCE;
            m.second_s = hit;
            found = true;
        }
        if (next == INT64_MAX)
            break;
        int32_t after = type_at(tz, next)->offset_s;

        if (!found && !jumped && next + offset <= local_s && local_s < next + after) {
            m.first_s = hit;
            m.second_s = next;
            jumped = true;
        }
        at = next;
        offset = after;
    }
    ST_ASSERT(found || jumped);
    return m;
}
