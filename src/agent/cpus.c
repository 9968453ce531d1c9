/* The choice of CPUs; see the header. */
#include "agent/cpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

#define WHOLE INT64_C(1000)

/* ---- sets ------------------------------------------------------------------------------------ */

int st_cpuset_count(const st_cpuset *s)
{
    int n = 0;

    for (size_t i = 0; i < ST_ARRAY_LEN(s->w); i++)
        n += __builtin_popcountll(s->w[i]);
    return n;
}

st_cpuset st_cpuset_or(const st_cpuset *a, const st_cpuset *b)
{
    st_cpuset both = *a;

    for (size_t i = 0; i < ST_ARRAY_LEN(both.w); i++)
        both.w[i] |= b->w[i];
    return both;
}

/* A number up to a bound that no machine has. */
static bool number(const char **text, long *ret)
{
    char *end;

    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    *ret = strtol(*text, &end, 10);
    *text = end;
    return errno == 0 && *ret < 1000000;
}

int st_cpuset_parse(const char *text, st_cpuset *ret, st_err *err)
{
    const char *p = text;
    st_cpuset s = {0};

    while (*p && *p != '\n') {
        long first, last;

        if (!number(&p, &first))
            return st_fail(err, ST_EINVAL, "\"%.40s\" is not a list of CPUs like 0-3,8", text);
        last = first;
        if (*p == '-' && (p++, !number(&p, &last) || last < first))
            return st_fail(err, ST_EINVAL, "\"%.40s\" is not a list of CPUs like 0-3,8", text);
        for (long i = first; i <= last && i < ST_CPUS_MAX; i++)
            st_cpuset_add(&s, (int)i);
        if (*p && *p != '\n' && *p++ != ',')
            return st_fail(err, ST_EINVAL, "\"%.40s\" is not a list of CPUs like 0-3,8", text);
    }
    *ret = s;
    return 0;
}

void st_cpuset_text(const st_cpuset *s, char ret[ST_CPUS_TEXT_MAX])
{
    size_t n = 0;

    ret[0] = '\0';
    for (int i = 0; i < ST_CPUS_MAX; i++) {
        int last = i;

        if (!st_cpuset_has(s, i))
            continue;
        while (st_cpuset_has(s, last + 1))
            last++;
        n += (size_t)snprintf(ret + n, ST_CPUS_TEXT_MAX - n, last > i ? "%s%d-%d" : "%s%d",
                              n ? "," : "", i, last);
        i = last;
    }
}

/* ---- what is taken --------------------------------------------------------------------------- */

void st_cpu_load_add(st_cpu_load *load, const st_pin *pin, int64_t cpu_m)
{
    int common = st_cpuset_count(&pin->common);

    for (int k = 0; k < (int)ST_ARRAY_LEN(pin->own.w); k++) {
        for (uint64_t w = pin->own.w[k]; w; w &= w - 1)
            load->m[k * 64 + __builtin_ctzll(w)] += WHOLE;
        for (uint64_t w = pin->common.w[k]; w; w &= w - 1)
            load->m[k * 64 + __builtin_ctzll(w)] += cpu_m % WHOLE / common;
    }
    load->common = st_cpuset_or(&load->common, &pin->common);
}

/* ---- the choice ------------------------------------------------------------------------------ */

typedef struct picker {
    const st_topology *t;
    const st_cpuset *near;
    bool free[ST_CPUS_MAX];     /* by place in the topology: nothing is on it */
    int64_t m[ST_CPUS_MAX];     /* by place: what is on it */
    int core_size[ST_CPUS_MAX]; /* by core */
    int core_free[ST_CPUS_MAX];
    int node_free[ST_CPUS_MAX];  /* by node */
    bool node_near[ST_CPUS_MAX]; /* has CPUs that are near */
} picker;

static void look(picker *p, const st_topology *t, const st_cpu_load *load, const st_cpuset *near)
{
    *p = (picker){.t = t, .near = near};
    for (int i = 0; i < t->n; i++) {
        const st_cpu *c = &t->cpu[i];

        p->m[i] = load->m[c->id];
        p->free[i] = p->m[i] == 0 && !st_cpuset_has(&load->common, c->id);
        p->core_size[c->core]++;
        p->core_free[c->core] += p->free[i];
        p->node_free[c->node] += p->free[i];
        p->node_near[c->node] |= st_cpuset_has(near, c->id);
    }
}

static void take(picker *p, int i, st_cpuset *ret)
{
    const st_cpu *c = &p->t->cpu[i];

    p->free[i] = false;
    p->core_free[c->core]--;
    p->node_free[c->node]--;
    p->m[i] += WHOLE;
    st_cpuset_add(ret, c->id);
}

/* The free CPU of a node whose core has the fewest left, so that whole cores stay whole; -1: none. */
static int best_of(const picker *p, int node)
{
    int best = -1;

    for (int i = 0; i < p->t->n; i++) {
        const st_cpu *c = &p->t->cpu[i];

        if (c->node == node && p->free[i] &&
            (best < 0 || p->core_free[c->core] < p->core_free[p->t->cpu[best].core]))
            best = i;
    }
    return best;
}

/* Up to `want` free CPUs of a node: cores that nobody is on, while they are needed whole, then the rest. */
static int take_of(picker *p, int node, int want, st_cpuset *ret)
{
    int had = want, i;

    for (i = 0; i < p->t->n; i++) {
        int core = p->t->cpu[i].core;

        if (p->t->cpu[i].node != node || !p->free[i] || p->core_free[core] != p->core_size[core] ||
            p->core_size[core] > want)
            continue;
        want -= p->core_size[core];
        for (int k = i; k < p->t->n; k++)
            if (p->t->cpu[k].core == core)
                take(p, k, ret);
    }
    while (want > 0 && (i = best_of(p, node)) >= 0) {
        take(p, i, ret);
        want--;
    }
    return had - want;
}

/* The node that has enough and the least beyond that; else the one with the most; -1: all are full. */
static int best_node(const picker *p, int want)
{
    int best = -1;

    for (int k = 0; k < p->t->nnode; k++) {
        int n = p->node_free[k], b = best < 0 ? 0 : p->node_free[best];

        if (n > 0 && (best < 0 || (n >= want && (b < want || n < b)) || (b < want && n > b)))
            best = k;
    }
    return best;
}

/* Of the nodes of its GPUs, as much of each. */
static int take_near(picker *p, int want, st_cpuset *ret)
{
    int nodes = 0, got = 0;

    for (int k = 0; k < p->t->nnode; k++)
        nodes += p->node_near[k];
    for (int k = 0; k < p->t->nnode && nodes > 1; k++)
        if (p->node_near[k])
            got += take_of(p, k, want / nodes, ret);
    for (int k = 0; k < p->t->nnode && got < want; k++)
        if (p->node_near[k])
            got += take_of(p, k, want - got, ret);
    return got;
}

/* Nobody has it alone: the one with the least on it, which is not ours yet. */
static int least(const picker *p, const st_pin *pin)
{
    st_cpuset ours = st_cpuset_or(&pin->own, &pin->common);
    int best = -1;

    for (int i = 0; i < p->t->n; i++)
        if (!st_cpuset_has(&ours, p->t->cpu[i].id) && (best < 0 || p->m[i] < p->m[best]))
            best = i;
    return best;
}

static void pick_own(picker *p, int want, st_pin *ret)
{
    int node, i;

    want -= take_near(p, want, &ret->own);
    while (want > 0 && (node = best_node(p, want)) >= 0)
        want -= take_of(p, node, want, &ret->own);
    while (want-- > 0 && (i = least(p, ret)) >= 0)
        take(p, i, &ret->own);
}

/* The shared CPU with the least room that is enough, near ones first; -1: none has it. */
static int fits(const picker *p, const st_cpuset *common, int64_t part)
{
    int best = -1;

    for (int i = 0; i < p->t->n; i++) {
        int id = p->t->cpu[i].id;
        bool near = st_cpuset_has(p->near, id);

        if (!st_cpuset_has(common, id) || p->m[i] + part > WHOLE)
            continue;
        if (best < 0 || (near && !st_cpuset_has(p->near, p->t->cpu[best].id)) ||
            (near == st_cpuset_has(p->near, p->t->cpu[best].id) && p->m[i] > p->m[best]))
            best = i;
    }
    return best;
}

/* Some of the shared CPUs, which have the room together: those with the most first. */
static bool fits_several(picker *p, const st_cpuset *common, int64_t part, st_cpuset *ret)
{
    st_cpuset all = {0};
    int64_t room = 0;

    while (room < part) {
        int best = -1;

        for (int i = 0; i < p->t->n; i++) {
            int id = p->t->cpu[i].id;

            if (st_cpuset_has(common, id) && !st_cpuset_has(&all, id) && p->m[i] < WHOLE &&
                (best < 0 || p->m[i] < p->m[best]))
                best = i;
        }
        if (best < 0)
            return false;
        st_cpuset_add(&all, p->t->cpu[best].id);
        room += WHOLE - p->m[best];
    }
    *ret = all;
    return true;
}

static void pick_common(picker *p, const st_cpuset *common, int64_t part, st_pin *ret)
{
    st_cpuset fresh = {0};
    int node, i = fits(p, common, part);

    if (i >= 0) {
        st_cpuset_add(&ret->common, p->t->cpu[i].id);
        return;
    }
    if (fits_several(p, common, part, &ret->common))
        return;
    if (take_near(p, 1, &fresh) == 1 ||
        ((node = best_node(p, 1)) >= 0 && take_of(p, node, 1, &fresh) == 1))
        ret->common = fresh;
    else if ((i = least(p, ret)) >= 0)
        st_cpuset_add(&ret->common, p->t->cpu[i].id);
}

st_pin st_cpus_pick(const st_topology *t, const st_cpu_load *load, int64_t cpu_m,
                    const st_cpuset *near)
{
    int64_t whole = cpu_m / WHOLE, part = cpu_m % WHOLE;
    st_pin pin = {0};
    picker p;

    ST_ASSERT(cpu_m > 0 && t->n > 0);
    if (whole + (part > 0) >= t->n && whole > 0) {
        for (int i = 0; i < t->n; i++)
            st_cpuset_add(&pin.own, t->cpu[i].id);
        return pin;
    }
    look(&p, t, load, near);
    pick_own(&p, (int)whole, &pin);
    if (part > 0)
        pick_common(&p, &load->common, part, &pin);
    return pin;
}
