/*
 * Reading a shares question from its document (share/shares.h).
 *
 * Invariants once st_shares_new has returned 0: the parents form a forest at
 * most ST_DEPTH_MAX deep; every amount is finite and 0 .. ST_QTY_MAX, or
 * INFINITY for an absent max; so st_share_divide's assertions cannot fail.
 */
#include "share/shares.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/suggest.h"
#include "model/types.h"
#include "share/shares_check.h"

static const char *const top_keys[] = {"capacity", "basis", "accounts", NULL};
static const char *const account_keys[] = {"name",   "parent",   "guarantee", "max",
                                           "weight", "priority", "demand",    NULL};

static const char *const basis_names[] = {
#define BASIS_NAME(id, name) name,
    ST_SHARE_BASIS_TABLE(BASIS_NAME)
#undef BASIS_NAME
        NULL,
};

/* A decimal number as in JSON; strtod alone would also take hexadecimal, "nan" and "infinity". */
static bool is_number(const char *s)
{
    size_t digits;

    s += *s == '-';
    digits = strspn(s, "0123456789");
    s += digits;
    if (digits == 0)
        return false;
    if (*s == '.') {
        digits = strspn(s + 1, "0123456789");
        s += 1 + digits;
        if (digits == 0)
            return false;
    }
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '-' || *s == '+';
        digits = strspn(s, "0123456789");
        s += digits;
        if (digits == 0)
            return false;
    }
    return *s == '\0';
}

/* Reads a number from 0 to hi; the message names it by the node's key. */
static int read_amount(const st_doc *doc, const st_doc_node *node, double hi, double *ret,
                       st_err *err)
{
    char key[ST_QUOTE_MAX], text[ST_QUOTE_MAX];
    double x;
    int r = st_doc_expect(doc, node, ST_DOC_SCALAR, err);

    if (r < 0)
        return r;
    st_quote(key, node->key);
    st_quote(text, node->value);
    if (!is_number(node->value))
        return st_doc_fail(doc, node, err, ST_EPARSE, "key %s: %s is not a number", key, text);
    x = strtod(node->value, NULL);
    if (x < 0 || x > hi)
        return st_doc_fail(doc, node, err, ST_ERANGE,
                           "key %s: %s is out of range: it must be from "
                           "0 to %.15g",
                           key, text, hi);
    *ret = fabs(x); /* no -0 */
    return 0;
}

static int read_name(const st_doc *doc, const st_doc_node *node, const char **ret, st_err *err)
{
    const char *name;
    int r = st_doc_str(doc, node, &name, err);

    if (r < 0)
        return r;
    if (*name == '\0')
        return st_doc_fail(doc, node, err, ST_EINVAL, "a name must not be empty");
    if (strlen(name) > ST_NAME_MAX)
        return st_doc_fail(doc, node, err, ST_ERANGE,
                           "a name of %zu bytes is too long (at most %d)", strlen(name),
                           ST_NAME_MAX);
    for (const char *p = name; *p; p++) {
        char q[ST_QUOTE_MAX];

        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return st_doc_fail(doc, node, err, ST_EINVAL, "the name %s has a control character",
                               st_quote(q, name));
    }
    *ret = name;
    return 0;
}

static int read_capacity(st_shares *s, const st_doc_node *map, st_err *err)
{
    int r = st_doc_expect(s->doc, map, ST_DOC_MAP, err);

    if (r < 0)
        return r;
    if (map->nchild == 0)
        return st_doc_fail(s->doc, map, err, ST_EINVAL, "the capacity names no resource");
    if (map->nchild > ST_SHARES_RESOURCES_MAX)
        return st_doc_fail(s->doc, map, err, ST_ERANGE, "%d resources are too many (at most %d)",
                           map->nchild, ST_SHARES_RESOURCES_MAX);
    for (const st_doc_node *n = map->child; n; n = n->next) {
        const st_doc_node key = {.kind = ST_DOC_SCALAR, .value = n->key, .line = n->key_line};
        st_shares_resource *res = &s->resources[s->nresources++];

        r = read_name(s->doc, &key, &res->name, err);
        if (r < 0)
            return r;
        r = read_amount(s->doc, n, ST_DIVIDE_AMOUNT_MAX, &res->capacity, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_basis(st_shares *s, const st_doc_node *node, st_err *err)
{
    const char *name, *nearest;
    char q[ST_QUOTE_MAX];
    int r = st_doc_str(s->doc, node, &name, err);

    if (r < 0)
        return r;
    for (int i = 0; basis_names[i]; i++) {
        if (strcmp(name, basis_names[i]) == 0) {
            s->counts = (st_share_counts)i;
            return 0;
        }
    }
    nearest = st_suggest(name, basis_names);
    return st_doc_fail(s->doc, node, err, ST_EINVAL, "the basis is borrowed or total, not %s%s%s%s",
                       st_quote(q, name), nearest ? " (did you mean \"" : "",
                       nearest ? nearest : "", nearest ? "\"?)" : "");
}

static int find_resource(const st_shares *s, const st_doc_node *node, int *ret, st_err *err)
{
    const char *names[ST_SHARES_RESOURCES_MAX + 1] = {NULL}, *nearest;
    const st_doc_node at = {.line = node->key_line};
    char q[ST_QUOTE_MAX];

    for (int i = 0; i < s->nresources; i++) {
        names[i] = s->resources[i].name;
        if (strcmp(names[i], node->key) == 0) {
            *ret = i;
            return 0;
        }
    }
    nearest = st_suggest(node->key, names);
    return st_doc_fail(s->doc, &at, err, ST_EINVAL, "the capacity has no resource %s%s%s%s",
                       st_quote(q, node->key), nearest ? " (did you mean \"" : "",
                       nearest ? nearest : "", nearest ? "\"?)" : "");
}

typedef enum { GUARANTEE, MAX, DEMAND } amount_kind;

static const char *const amount_keys[] = {"guarantee", "max", "demand"};

static double *amount_of(st_divide_in *in, amount_kind kind)
{
    return kind == GUARANTEE ? &in->guarantee : kind == MAX ? &in->max : &in->demand;
}

/* Reads one of the account's maps of amounts. Absent entries, and null, leave the default. */
static int read_amounts(st_shares *s, int account, amount_kind kind, st_err *err)
{
    const st_doc_node *map = st_doc_get(s->accounts[account].node, amount_keys[kind]);
    int r;

    if (!map || map->kind == ST_DOC_NULL)
        return 0;
    r = st_doc_expect(s->doc, map, ST_DOC_MAP, err);
    if (r < 0)
        return r;
    for (const st_doc_node *n = map->child; n; n = n->next) {
        int k;

        r = find_resource(s, n, &k, err);
        if (r < 0)
            return r;
        s->resources[k].mentioned = true;
        if (n->kind == ST_DOC_NULL)
            continue;
        r = read_amount(s->doc, n, (double)ST_QTY_MAX,
                        amount_of(&s->resources[k].in[account], kind), err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_weight(st_shares *s, int account, double *ret, st_err *err)
{
    const st_doc_node *node = st_doc_get(s->accounts[account].node, "weight");
    char q[ST_QUOTE_MAX];
    int r;

    *ret = 1;
    if (!node || node->kind == ST_DOC_NULL)
        return 0;
    r = read_amount(s->doc, node, ST_DIVIDE_WEIGHT_MAX, ret, err);
    if (r < 0)
        return r;
    if (*ret > 0 && *ret < ST_DIVIDE_WEIGHT_MIN)
        return st_doc_fail(s->doc, node, err, ST_ERANGE,
                           "key \"weight\": %s is out of range: above 0 it is at least %.15g",
                           st_quote(q, node->value), ST_DIVIDE_WEIGHT_MIN);
    return 0;
}

static int read_priority(st_shares *s, int account, int *ret, st_err *err)
{
    const st_doc_node *node = st_doc_get(s->accounts[account].node, "priority");
    int64_t priority = 0;
    int r = 0;

    if (node && node->kind != ST_DOC_NULL)
        r = st_doc_i64(s->doc, node, -ST_PRIO_MAX, ST_PRIO_MAX, &priority, err);
    *ret = (int)priority;
    return r;
}

static int read_account(st_shares *s, int i, const st_doc_node *node, st_err *err)
{
    st_shares_account *a = &s->accounts[i];
    const st_doc_node *name, *parent;
    double weight;
    int r, priority;

    a->node = node;
    r = st_doc_check_keys(s->doc, node, account_keys, err);
    if (r < 0)
        return r;
    r = st_doc_need(s->doc, node, "name", &name, err);
    if (r < 0)
        return r;
    r = read_name(s->doc, name, &a->name, err);
    if (r < 0)
        return r;
    parent = st_doc_get(node, "parent");
    if (parent && parent->kind != ST_DOC_NULL)
        r = read_name(s->doc, parent, &a->parent_name, err);
    if (r < 0)
        return r;
    r = read_weight(s, i, &weight, err);
    if (r < 0)
        return r;
    r = read_priority(s, i, &priority, err);
    if (r < 0)
        return r;
    for (int k = 0; k < s->nresources; k++)
        s->resources[k].in[i] = (st_divide_in){
            .name = a->name, .max = INFINITY, .weight = weight, .priority = priority};
    for (amount_kind kind = GUARANTEE; kind <= DEMAND; kind++) {
        r = read_amounts(s, i, kind, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_accounts(st_shares *s, const st_doc_node *list, st_err *err)
{
    int i = 0, r = st_doc_expect(s->doc, list, ST_DOC_SEQ, err);
    size_t n;

    if (r < 0)
        return r;
    if (list->nchild > ST_SHARES_ACCOUNTS_MAX)
        return st_doc_fail(s->doc, list, err, ST_ERANGE, "%d accounts are too many (at most %d)",
                           list->nchild, ST_SHARES_ACCOUNTS_MAX);
    s->naccounts = list->nchild;
    n = (size_t)s->naccounts;
    s->accounts = st_arena_calloc(s->arena, n, sizeof(*s->accounts));
    for (int k = 0; k < s->nresources; k++) {
        s->resources[k].in = st_arena_calloc(s->arena, n, sizeof(*s->resources[k].in));
        s->resources[k].out = st_arena_calloc(s->arena, n, sizeof(*s->resources[k].out));
    }
    for (const st_doc_node *node = list->child; node; node = node->next) {
        r = read_account(s, i++, node, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_question(st_shares *s, st_err *err)
{
    const st_doc_node *root = st_doc_root(s->doc), *capacity, *accounts, *basis;
    int r = st_doc_check_keys(s->doc, root, top_keys, err);

    if (r < 0)
        return r;
    r = st_doc_need(s->doc, root, "capacity", &capacity, err);
    if (r < 0)
        return r;
    r = st_doc_need(s->doc, root, "accounts", &accounts, err);
    if (r < 0)
        return r;
    r = read_capacity(s, capacity, err);
    if (r < 0)
        return r;
    basis = st_doc_get(root, "basis");
    if (basis)
        r = read_basis(s, basis, err);
    if (r < 0)
        return r;
    r = read_accounts(s, accounts, err);
    if (r < 0)
        return r;
    r = st_shares_link(s, err);
    if (r < 0)
        return r;
    return st_shares_check_quotas(s, err);
}

int st_shares_new(const st_doc *doc, st_shares **ret, st_err *err)
{
    ST_CLEANUP(st_shares_freep) st_shares *s = st_xcalloc(1, sizeof(*s));
    int r;

    ST_ASSERT(doc && ret);
    s->doc = doc;
    s->arena = st_arena_new();
    r = read_question(s, err);
    if (r < 0)
        return r;
    for (int k = 0; k < s->nresources; k++) {
        st_shares_resource *res = &s->resources[k];

        for (int i = 0; i < s->naccounts; i++)
            res->in[i].parent = s->accounts[i].parent;
        st_share_divide(res->capacity, s->counts, res->in, s->naccounts, res->out, &res->left,
                        &res->left_whole);
    }
    *ret = ST_TAKE(s);
    return 0;
}

void st_shares_free(st_shares *s)
{
    if (!s)
        return;
    st_arena_free(s->arena);
    free(s);
}
