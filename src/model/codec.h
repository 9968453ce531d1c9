/* Values to bytes and back, for saves and for the log of events.
 *
 * One description serves both directions: each io_ function writes the value it is given, or
 * reads into it, so the two can never disagree about the order. Reading checks every range;
 * once something is wrong the codec is `bad` and everything reads as 0. */
#ifndef ST_MODEL_CODEC_H
#define ST_MODEL_CODEC_H

#include <endian.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "model/booking.h"
#include "model/fleet.h"
#include "model/labels.h"
#include "model/policy.h"

/* What has been added since, as one number for events and saves: a field that came with format N is
 * read where `format >= N` and keeps its zero where not, so that what was written before is still
 * understood.
 *   1 permissions and rules of pools, what a job needs of them
 *   2 when borrowers next look for whom to displace
 *   3 serials of accounts, accounts that are gone
 *   4 nodes with agents, how often a job has started, jobs that are stopping
 *   5 the policies `urgent`, `ageing` and `claim_effort`; when a job may borrow again, whether it lost
 *     its floor, where a pass stopped
 *   6 claims that came to nothing before it did
 *   7 how often a job has been on devices
 *   8 when the first of those who wait counts for more
 *   9 jobs that are barred
 *  10 what was given out in a future that is lost
 *  11 engines of pools, and the ways to yield that these lack
 *  12 the order in which a round began that is not over
 *  13 how many estimates have come true lately
 *  14 bookings, the policies `booking_...`
 *  15 windows of jobs
 *  16 deadlines
 *  17 limits on bookings, of accounts and of pools; changes of pools by force
 *  18 jobs that preempt nobody
 *  19 what is said of nodes and by whom, tests of nodes, the policies `acceptance`, `suspect`, `retest`
 *  20 labels of nodes, what bookings require of them, dedicated bookings
 *  21 incidents, what kind a fault is, and their policies; what jobs do when a node fails
 *  22 by when a node drains, and what becomes of its jobs then
 *  23 which nodes a job allows
 *  24 jobs that wait for others, are on hold, are tried again; arrays with a throttle
 *  25 what jobs need to save, how fast pauses were, the policy `grace_limit`; bookings of slices and shares
 *  26 GPUs that are out of service alone, and those that a test left out
 *  27 the policy `fill`
 *  28 how far intervals of estimates reach */
#define ST_CODEC_FORMAT 28

typedef struct codec {
    st_strbuf *out; /* NULL: reading */
    const char *in;
    size_t n, at;
    bool bad;   /* reading went wrong; everything reads as 0 from here on */
    int format; /* what was written: ST_CODEC_FORMAT, or when reading an older one */
} codec;

static inline void io_u64(codec *c, uint64_t *v)
{
    uint64_t le;
    if (c->out) {
        le = htole64(*v);
        st_strbuf_addn(c->out, (const char *)&le, 8);
        return;
    }
    *v = 0;
    if (c->bad || c->n - c->at < 8) {
        c->bad = true;
        return;
    }
    memcpy(&le, c->in + c->at, 8);
    *v = le64toh(le);
    c->at += 8;
}

/* Seven bits a byte, lowest first, the sign in the lowest bit: most numbers are small, and a save
 * has millions of them. So what has one byte is quick, and the others are written and read elsewhere. */
#define IO_I64_MAX 10 /* bytes */

static __attribute__((noinline, unused)) void io_write_long(codec *c, uint64_t u)
{
    char *to = st_strbuf_room(c->out, IO_I64_MAX);
    size_t n = 0;
    for (; u >= 0x80; u >>= 7)
        to[n++] = (char)(u | 0x80);
    to[n++] = (char)u;
    st_strbuf_grew(c->out, n);
}

static __attribute__((noinline, unused)) uint64_t io_read_long(codec *c)
{
    uint64_t u = 0;
    for (unsigned shift = 0;; shift += 7) {
        unsigned char next = c->at < c->n && !c->bad ? (unsigned char)c->in[c->at] : 0xff;
        if (c->bad || c->at >= c->n || (shift == 63 && next > 1)) {
            c->bad = true;
            return 0;
        }
        c->at++;
        u |= (uint64_t)(next & 0x7f) << shift;
        if (next < 0x80)
            return u;
    }
}

static inline void io_i64(codec *c, int64_t *v)
{
    uint64_t u = (uint64_t)*v << 1 ^ (*v < 0 ? UINT64_MAX : 0);
    if (c->out && u < 0x80) {
        *st_strbuf_room(c->out, 1) = (char)u;
        st_strbuf_grew(c->out, 1);
    } else if (c->out) {
        io_write_long(c, u);
    } else {
        bool one = !c->bad && c->at < c->n && (unsigned char)c->in[c->at] < 0x80;
        u = one ? (unsigned char)c->in[c->at++] : io_read_long(c);
        *v = (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
    }
}

/* A number with a range; reading one outside it spoils the load. */
static inline int64_t io_in(codec *c, int64_t v, int64_t lo, int64_t hi)
{
    io_i64(c, &v);
    if (!c->out && (v < lo || v > hi)) {
        c->bad = true;
        return lo;
    }
    return v;
}

/* Writing leaves the field alone: others may be reading it. */
#define IO_IN(c, field, lo, hi)                                \
    ((c)->out ? (void)io_in((c), (int64_t)(field), (lo), (hi)) \
              : (void)((field) = (__typeof__(field))io_in((c), (int64_t)(field), (lo), (hi))))
#define IO_BOOL(c, field) IO_IN(c, field, 0, 1)

static inline size_t io_count(codec *c, size_t n, size_t max)
{
    return (size_t)io_in(c, (int64_t)n, 0, (int64_t)max);
}

/* Make room for n zeroed items when reading. */
#define IO_GROW(c, vec, count)                                     \
    do {                                                           \
        if (!(c)->out) {                                           \
            st_vec_reserve(vec, (count) + 1);                      \
            memset((vec)->v, 0, ((count) + 1) * sizeof *(vec)->v); \
            (vec)->n = (count);                                    \
        }                                                          \
    } while (0)

static inline void io_str(codec *c, char **s)
{
    size_t n = io_count(c, c->out ? strlen(*s) : 0, 4 * ST_NAME_MAX);
    if (c->out) {
        st_strbuf_addn(c->out, *s, n);
        return;
    }
    if (c->bad || c->n - c->at < n) {
        c->bad = true;
        n = 0;
    }
    *s = st_xstrndup(c->in + c->at, n);
    c->at += n;
}

/* Labels, which are longer than names; NULL: none. */
static inline void io_labels(codec *c, char **s)
{
    size_t n = io_count(c, c->out && *s ? strlen(*s) : 0, ST_LABELS_TEXT_MAX);
    if (c->out) {
        st_strbuf_addn(c->out, *s ? *s : "", n);
        return;
    }
    *s = NULL;
    if (c->bad || c->n - c->at < n) {
        c->bad = true;
        return;
    }
    *s = n > 0 ? st_xstrndup(c->in + c->at, n) : NULL;
    c->bad |= *s && !st_labels_ok(*s);
    c->at += n;
}

static inline void io_note(codec *c, st_node_note *note)
{
    bool there = note->by != NULL;
    IO_BOOL(c, there);
    if (!there)
        return;
    io_str(c, &note->by);
    io_str(c, &note->reason);
    io_i64(c, &note->since_ms);
}

static inline void io_quota(codec *c, st_quota *q)
{
    io_i64(c, &q->gpu_m);
    io_i64(c, &q->cpu_m);
    io_i64(c, &q->ram_mib);
    for (int t = 0; t < ST_TYPES_MAX; t++)
        io_i64(c, &q->type_m[t]);
}

static inline void io_limits(codec *c, st_limits *l)
{
    io_i64(c, &l->gpu_m);
    io_i64(c, &l->vram_mib);
    io_i64(c, &l->share_m);
    io_i64(c, &l->run_ms);
}

static inline void io_book_limits(codec *c, st_book_limits *l)
{
    if (c->format < 17) {
        st_book_limits_clear(l);
        return;
    }
#define X(id, field, key, kind) io_i64(c, &l->field);
    ST_BOOK_LIMIT_TABLE(X)
#undef X
}

/* What came with a later format keeps its default where it was not written. */
static inline void io_policy(codec *c, st_policy *p)
{
#define X(field, key, kind, def, lo, hi, what) IO_IN(c, p->field, lo, hi);
    ST_POLICY_FIRST(X)
    if (c->format >= 5) {
        ST_POLICY_SINCE_5(X)
    }
    if (c->format >= 14) {
        ST_POLICY_SINCE_13(X)
    }
    if (c->format >= 19) {
        ST_POLICY_SINCE_19(X)
    }
    if (c->format >= 21) {
        ST_POLICY_SINCE_21(X)
    }
    if (c->format >= 25) {
        ST_POLICY_SINCE_25(X)
    }
    if (c->format >= 27) {
        ST_POLICY_SINCE_27(X)
    }
#undef X
#define X(field, key, kind, def, lo, hi, what) p->field = def;
    if (c->format < 5) {
        ST_POLICY_SINCE_5(X)
    }
    if (c->format < 14) {
        ST_POLICY_SINCE_13(X)
    }
    if (c->format < 19) {
        ST_POLICY_SINCE_19(X)
    }
    if (c->format < 21) {
        ST_POLICY_SINCE_21(X)
    }
    if (c->format < 25) {
        ST_POLICY_SINCE_25(X)
    }
    if (c->format < 27) {
        ST_POLICY_SINCE_27(X)
    }
#undef X
}

static inline void io_book_parts(codec *c, st_parts *p)
{
    IO_IN(c, p->level, 0, ST_LEVEL_COUNT - 1);
    IO_IN(c, p->profile, 0, ST_MIG_COUNT - 1);
    IO_IN(c, p->share_m, 0, ST_WHOLE_M);
    IO_IN(c, p->n, 0, INT32_MAX);
}

static inline void io_shape(codec *c, st_shape *s)
{
    IO_IN(c, s->types, 0, UINT32_MAX);
    IO_IN(c, s->level, 0, ST_LEVEL_COUNT - 1);
    IO_IN(c, s->gpus, 0, ST_DEVS_MAX);
    IO_IN(c, s->profile, 0, ST_MIG_COUNT - 1);
    IO_IN(c, s->share_m, 0, ST_QTY_MAX);
    IO_IN(c, s->vram_mib, 0, ST_QTY_MAX);
    IO_IN(c, s->cpu_m, 0, ST_QTY_MAX);
    IO_IN(c, s->ram_mib, 0, ST_QTY_MAX);
    if (c->format >= 1)
        IO_IN(c, s->needs, 0, UINT32_MAX);
}

static inline void io_pool_rules(codec *c, st_pool_rules *r)
{
    if (c->format < 1)
        return;
    IO_IN(c, r->allow, 0, UINT32_MAX);
#define X(field, key, kind, def, hi) IO_IN(c, r->field, 0, hi);
    ST_POOL_RULE_FIRST(X)
    if (c->format < 11)
        return;
    IO_IN(c, r->lacks, 0, UINT32_MAX);
    for (size_t i = 0; i < ST_ENGINE_NAME && (i == 0 || r->engine[i - 1]); i++)
        IO_IN(c, r->engine[i], 0, 127);
    if (c->format >= 17) {
        ST_POOL_RULE_SINCE_17(X)
    }
#undef X
}

#endif
