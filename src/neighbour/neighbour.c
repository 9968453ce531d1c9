/*
 * Who is on the device, and the order in which things are looked at (neighbour/neighbour.h).
 */
#include "neighbour/neighbour.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "neighbour/state.h"

const st_nb_policy st_nb_defaults = {
#define X(name, usual, ...) .name = (usual),
    ST_NB_POLICY(X)
#undef X
};

static const struct threshold {
    const char *name;
    size_t offset;
    int64_t least, most;
} thresholds[] = {
#define X(name, usual, least, most, about) {#name, offsetof(st_nb_policy, name), least, most},
    ST_NB_POLICY(X)
#undef X
};

/* NAME=N, up to `n` bytes. */
static int read_one(const char *text, size_t n, st_nb_policy *p, st_err *err)
{
    char word[64], q[ST_QUOTE_MAX], *value;

    snprintf(word, sizeof word, "%.*s", (int)ST_MIN(n, sizeof word - 1), text);
    value = strchr(word, '=');
    if (n >= sizeof word || !value)
        return st_fail(err, ST_EINVAL, "%s: NAME=N is wanted, for example ratio_pct=150",
                       st_quote(q, word));
    *value++ = '\0';
    for (size_t i = 0; i < ST_ARRAY_LEN(thresholds); i++) {
        const struct threshold *t = &thresholds[i];

        if (strcmp(t->name, word) != 0)
            continue;
        return st_parse_i64(value, t->least, t->most, (int64_t *)((char *)p + t->offset), err) < 0
                   ? st_fail_prefix(err, "%s: ", t->name)
                   : 0;
    }
    return st_fail(err, ST_EINVAL, "%s is no threshold", st_quote(q, word));
}

int st_nb_policy_read(const char *text, st_nb_policy *ret, st_err *err)
{
    st_nb_policy p = st_nb_defaults;
    int r = 0;

    for (size_t n; r == 0 && *text; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        r = read_one(text, n, &p, err);
    }
    if (r == 0 && p.slow > p.of)
        r = st_fail(err, ST_ERANGE, "slow must be at most of, which is %" PRId64, p.of);
    if (r == 0 && p.window_ms > p.window_max_ms)
        r = st_fail(err, ST_ERANGE, "window_ms must be at most window_max_ms, which is %" PRId64,
                    p.window_max_ms);
    if (r == 0 && p.hold_ms > p.hold_max_ms)
        r = st_fail(err, ST_ERANGE, "hold_ms must be at most hold_max_ms, which is %" PRId64,
                    p.hold_max_ms);
    if (r == 0)
        *ret = p;
    return r;
}

const char *st_nb_rung_name(st_nb_rung rung)
{
    static const char *const names[] = {
#define X(id, name, about) name,
        ST_NB_RUNGS(X)
#undef X
    };

    return names[rung];
}

const char *st_nb_kind_name(st_nb_kind kind)
{
    static const char *const names[] = {
#define X(id, name) name,
        ST_NB_NOTES(X)
#undef X
    };

    return names[kind];
}

int st_nb_rung_parse(const char *name)
{
    for (int r = 0; r < ST_NB_RUNG_COUNT; r++)
        if (strcmp(st_nb_rung_name((st_nb_rung)r), name) == 0)
            return r;
    return -1;
}

int st_nb_kind_parse(const char *name)
{
    for (int k = 0; k < ST_NB_KIND_COUNT; k++)
        if (strcmp(st_nb_kind_name((st_nb_kind)k), name) == 0)
            return k;
    return -1;
}

st_nb *st_nb_new(const st_nb_policy *policy)
{
    st_nb *nb = st_xcalloc(1, sizeof *nb);

    nb->policy = policy ? *policy : st_nb_defaults;
    return nb;
}

void st_nb_free(st_nb *nb)
{
    free(nb);
}

nb_task *st_nb_find(st_nb *nb, uint64_t id)
{
    for (int i = 0; id && i < nb->ntask; i++)
        if (nb->task[i].id == id)
            return &nb->task[i];
    return NULL;
}

void st_nb_say(st_nb *nb, st_nb_kind kind, uint64_t victim, uint64_t suspect, double ratio,
               int64_t now)
{
    if (nb->nnote == NB_NOTES) { /* nobody asks: the oldest go */
        memmove(nb->note, nb->note + 1, sizeof nb->note - sizeof nb->note[0]);
        nb->nnote--;
    }
    nb->note[nb->nnote++] = (st_nb_note){.kind = kind,
                                         .rung = nb->rung,
                                         .at_ms = now,
                                         .victim = victim,
                                         .suspect = suspect,
                                         .ratio_pct = (int)lround(ST_MIN(ratio, 10000.0) * 100)};
}

size_t st_nb_notes(st_nb *nb, st_nb_note *buf, size_t room)
{
    size_t n = ST_MIN(room, nb->nnote);

    memcpy(buf, nb->note, n * sizeof *buf);
    memmove(nb->note, nb->note + n, (nb->nnote - n) * sizeof *buf);
    nb->nnote -= n;
    return n;
}

/* ---- who is here -------------------------------------------------------------------------------- */

static nb_task *come(st_nb *nb, const st_nb_sample *s, int64_t now)
{
    nb_task *t;

    if (nb->ntask == ST_NB_TASKS)
        return NULL;
    t = &nb->task[nb->ntask++];
    *t = (nb_task){.id = s->id,
                   .came_ms = now,
                   .gpu_ns = s->gpu_ns,
                   .gpu_ms = now,
                   .grew_ms = -1,
                   .window_ms = now};
    if (s->times)
        memcpy(t->before, s->times, sizeof t->before);
    return t;
}

static void leave(st_nb *nb)
{
    int n = 0;

    for (int i = 0; i < nb->ntask; i++)
        if (!nb->task[i].gone) {
            if (n != i)
                nb->task[n] = nb->task[i];
            n++;
        }
    nb->ntask = n;
}

void st_nb_feed(st_nb *nb, int64_t now_ms, const st_nb_sample *v, size_t n)
{
    for (int i = 0; i < nb->ntask; i++)
        nb->task[i].gone = true;
    for (size_t i = 0; i < n; i++) {
        nb_task *t = st_nb_find(nb, v[i].id);

        if (!t)
            t = come(nb, &v[i], now_ms);
        if (!t)
            continue;
        t->gone = false;
        st_nb_see(nb, t, &v[i], now_ms);
    }
    leave(nb);
    st_nb_case_tick(nb, now_ms);
    for (int i = 0; i < nb->ntask; i++)
        if (st_nb_window(nb, &nb->task[i], now_ms))
            st_nb_case_window(nb, &nb->task[i], now_ms);
}

int st_nb_ratio_pct(const st_nb *nb, uint64_t id)
{
    for (int i = 0; i < nb->ntask; i++)
        if (nb->task[i].id == id)
            return (int)lround(ST_MIN(nb->task[i].past[0].ratio, 10000.0) * 100);
    return 0;
}
