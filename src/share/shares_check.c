/*
 * Linking the accounts of a shares question into a tree, and the rules between
 * parents and children (share/shares_check.h). Every walk is linear in the number
 * of accounts, however they are linked.
 */
#include "share/shares_check.h"

#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/strbuf.h"
#include "base/suggest.h"
#include "model/types.h"

/* Names listed in one message; the rest is counted. */
#define NAMES_SHOWN 5

/* Above this many accounts nobody is looking for a typo by eye, and comparing with all costs. */
#define SUGGEST_AMONG_MAX 1000

/* Sums of decimals such as 0.1 are allowed this much rounding, relative to their size. */
#define SUM_SLACK 1e-9

/* The node under a key, and under a key in that; the account's own where there is none. */
static const st_doc_node *line_of(const st_shares_account *a, const char *key, const char *sub)
{
    const st_doc_node *node = st_doc_get(a->node, key), *below;

    if (!node)
        return a->node;
    below = sub ? st_doc_get(node, sub) : NULL;
    return below ? below : node;
}

static int fail_parent(const st_shares *s, const st_shares_account *a, st_err *err)
{
    char name[ST_QUOTE_MAX], parent[ST_QUOTE_MAX], near[ST_QUOTE_MAX];
    const char *nearest = NULL;

    if (s->naccounts <= SUGGEST_AMONG_MAX) {
        ST_CLEANUP(st_freep)
        const char **names = st_xcalloc((size_t)s->naccounts + 1, sizeof(*names));
        int n = 0;

        for (int i = 0; i < s->naccounts; i++)
            if (&s->accounts[i] != a)
                names[n++] = s->accounts[i].name;
        nearest = st_suggest(a->parent_name, names);
    }
    return st_doc_fail(s->doc, line_of(a, "parent", NULL), err, ST_EINVAL,
                       "account %s: there is no account %s to be its parent%s%s%s",
                       st_quote(name, a->name), st_quote(parent, a->parent_name),
                       nearest ? " (did you mean " : "", nearest ? st_quote(near, nearest) : "",
                       nearest ? "?)" : "");
}

static int resolve_parents(st_shares *s, st_err *err)
{
    ST_CLEANUP(st_map_freep) st_map *index = st_map_new();

    for (int i = 0; i < s->naccounts; i++) {
        const st_shares_account *a = &s->accounts[i];
        int64_t first;
        char q[ST_QUOTE_MAX];

        if (st_map_get(index, a->name, &first))
            return st_doc_fail(s->doc, line_of(a, "name", NULL), err, ST_EINVAL,
                               "account %s is given twice; the first is on line %d",
                               st_quote(q, a->name),
                               line_of(&s->accounts[first], "name", NULL)->line);
        st_map_put(index, a->name, i);
    }
    for (int i = 0; i < s->naccounts; i++) {
        st_shares_account *a = &s->accounts[i];
        int64_t parent = -1;

        if (a->parent_name && !st_map_get(index, a->parent_name, &parent))
            return fail_parent(s, a, err);
        a->parent = (int)parent;
        if (parent >= 0)
            s->accounts[parent].inner = true;
    }
    return 0;
}

/* Account i is its own ancestor: says how. */
static int fail_cycle(const st_shares *s, int i, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf names = {0};
    char q[ST_QUOTE_MAX];
    int k = i, n = 0;

    do {
        if (n < NAMES_SHOWN)
            st_strbuf_addf(&names, "%s, child of ", st_quote(q, s->accounts[k].name));
        n++;
        k = s->accounts[k].parent;
    } while (k != i);
    if (n > NAMES_SHOWN)
        st_strbuf_addf(&names, "%d more and then ", n - NAMES_SHOWN);
    return st_doc_fail(s->doc, line_of(&s->accounts[i], "parent", NULL), err, ST_EINVAL,
                       "accounts form a cycle: %s%s", st_strbuf_str(&names),
                       st_quote(q, s->accounts[i].name));
}

/* Walks up from every account until one of known depth, then back down; an account met twice on
 * the way up closes a cycle. */
static int measure_depths(st_shares *s, st_err *err)
{
    enum { ON_THE_WAY = -1 };
    ST_CLEANUP(st_freep) int *path = st_xcalloc((size_t)s->naccounts, sizeof(*path));

    for (int i = 0; i < s->naccounts; i++) {
        int k = i, n = 0;

        while (k >= 0 && s->accounts[k].depth == 0) {
            s->accounts[k].depth = ON_THE_WAY;
            path[n++] = k;
            k = s->accounts[k].parent;
        }
        if (k >= 0 && s->accounts[k].depth == ON_THE_WAY)
            return fail_cycle(s, k, err);
        for (int depth = k < 0 ? 0 : s->accounts[k].depth; n > 0;)
            s->accounts[path[--n]].depth = ++depth;
    }
    return 0;
}

int st_shares_link(st_shares *s, st_err *err)
{
    int r = resolve_parents(s, err);

    if (r < 0)
        return r;
    r = measure_depths(s, err);
    if (r < 0)
        return r;
    for (int i = 0; i < s->naccounts; i++) {
        const st_shares_account *a = &s->accounts[i];
        char q[ST_QUOTE_MAX];

        if (a->depth > ST_DEPTH_MAX)
            return st_doc_fail(s->doc, line_of(a, "parent", NULL), err, ST_ERANGE,
                               "account %s is %d levels deep (at most %d)", st_quote(q, a->name),
                               a->depth, ST_DEPTH_MAX);
    }
    return 0;
}

static int check_account(const st_shares *s, const st_shares_resource *res, int i, st_err *err)
{
    const st_shares_account *a = &s->accounts[i];
    const st_divide_in *in = &res->in[i];
    char q[ST_QUOTE_MAX];

    if (in->guarantee > in->max)
        return st_doc_fail(s->doc, line_of(a, "guarantee", res->name), err, ST_EINVAL,
                           "account %s: its guarantee of %.15g %s is above its max of %.15g",
                           st_quote(q, a->name), in->guarantee, res->name, in->max);
    if (a->inner && in->demand > 0)
        return st_doc_fail(s->doc, line_of(a, "demand", res->name), err, ST_EINVAL,
                           "account %s has children, so its demand is theirs and it cannot ask "
                           "for %.15g %s itself",
                           st_quote(q, a->name), in->demand, res->name);
    return 0;
}

static int fail_guarantees(const st_shares *s, const st_shares_resource *res, int parent,
                           double sum, st_err *err)
{
    const st_shares_account *p = &s->accounts[parent];
    ST_CLEANUP(st_strbuf_done) st_strbuf names = {0};
    char q[ST_QUOTE_MAX];
    int n = 0;

    for (int i = 0; i < s->naccounts; i++) {
        if (s->accounts[i].parent != parent || res->in[i].guarantee == 0)
            continue;
        if (n < NAMES_SHOWN)
            st_strbuf_addf(&names, "%s%s %.15g", n > 0 ? ", " : "",
                           st_quote(q, s->accounts[i].name), res->in[i].guarantee);
        n++;
    }
    if (n > NAMES_SHOWN)
        st_strbuf_addf(&names, " and %d more", n - NAMES_SHOWN);
    return st_doc_fail(s->doc, line_of(p, "guarantee", res->name), err, ST_EINVAL,
                       "account %s guarantees %.15g %s, but its children are guaranteed %.15g (%s)",
                       st_quote(q, p->name), res->in[parent].guarantee, res->name, sum,
                       st_strbuf_str(&names));
}

static int check_children(const st_shares *s, const st_shares_resource *res, double *sums,
                          st_err *err)
{
    memset(sums, 0, (size_t)s->naccounts * sizeof(*sums));
    for (int i = 0; i < s->naccounts; i++)
        if (s->accounts[i].parent >= 0)
            sums[s->accounts[i].parent] += res->in[i].guarantee;
    for (int i = 0; i < s->naccounts; i++)
        if (s->accounts[i].inner && sums[i] > res->in[i].guarantee * (1 + SUM_SLACK))
            return fail_guarantees(s, res, i, sums[i], err);
    return 0;
}

int st_shares_check_quotas(const st_shares *s, st_err *err)
{
    ST_CLEANUP(st_freep) double *sums = st_xcalloc((size_t)s->naccounts, sizeof(*sums));

    for (int k = 0; k < s->nresources; k++) {
        int r;

        for (int i = 0; i < s->naccounts; i++) {
            r = check_account(s, &s->resources[k], i, err);
            if (r < 0)
                return r;
        }
        r = check_children(s, &s->resources[k], sums, err);
        if (r < 0)
            return r;
    }
    return 0;
}
