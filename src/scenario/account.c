/*
 * Accounts in a scenario: a list that may nest, put in order; and single changes.
 */
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "scenario/read.h"

static int read_one(st_scenario *s, const st_doc_node *map, st_account_doc **ret,
                    const st_doc_node **ret_children, st_err *err)
{
    const st_spec_names names = st_scn_spec_names(s);
    st_account_doc a;
    int r = st_spec_account(s->doc, map, &names, true, &a, ret_children, err);

    if (r < 0)
        return r;
    *ret = st_arena_alloc(s->arena, sizeof(**ret));
    **ret = a;
    return 0;
}

int st_scn_read_account(st_scenario *s, const st_doc_node *map, st_account_doc **ret, st_err *err)
{
    const st_doc_node *children = NULL;
    int r = read_one(s, map, ret, &children, err);

    if (r == 0 && children)
        r = st_doc_fail(s->doc, children, err, ST_EINVAL,
                        "accounts are changed one by one: \"children\" has no place here");
    return r;
}

/* Recursion is as deep as the document, which is bounded. */
static int read_list(st_scenario *s, const st_doc_node *list, const char *parent, st_err *err)
{
    int r = st_doc_expect(s->doc, list, ST_DOC_SEQ, err);

    for (const st_doc_node *n = list->child; r == 0 && n; n = n->next) {
        const st_doc_node *children = NULL;
        st_account_doc *a;
        char q[ST_QUOTE_MAX];

        r = read_one(s, n, &a, &children, err);
        if (r < 0)
            return r;
        if (parent && a->parent && strcmp(a->parent, parent) != 0)
            return st_doc_fail(s->doc, n, err, ST_EINVAL,
                               "account %s stands below %s but names another parent",
                               st_quote(q, a->name), parent);
        if (st_map_get(s->account_ids, a->name, NULL))
            return st_doc_fail(s->doc, n, err, ST_EEXIST, "there is an account %s already",
                               st_quote(q, a->name));
        a->parent = parent ? parent : a->parent;
        st_scn_note_account(s, a->name);
        st_vec_push(&s->accounts, a);
        if (children)
            r = read_list(s, children, a->name, err);
    }
    return r;
}

static int cycle(const st_scenario *s, const st_map *at, size_t from, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    char q[ST_QUOTE_MAX];
    int64_t i = (int64_t)from;

    /* Whoever cannot be placed leads into the cycle; one round of it is told. */
    for (size_t n = 0; n < s->accounts.n; n++)
        st_map_get(at, s->accounts.v[i]->parent, &i);
    const st_account_doc *first = s->accounts.v[i];
    do {
        st_strbuf_addf(&text, "%s, child of ", st_quote(q, s->accounts.v[i]->name));
        st_map_get(at, s->accounts.v[i]->parent, &i);
    } while (s->accounts.v[i] != first);
    st_strbuf_add(&text, st_quote(q, first->name));
    const st_doc_node place = {.line = first->line};
    return st_doc_fail(s->doc, &place, err, ST_EINVAL, "accounts form a cycle: %s",
                       st_strbuf_str(&text));
}

/* Parents before children, otherwise in the order of the file. */
static int order(st_scenario *s, st_err *err)
{
    ST_CLEANUP(st_map_freep) st_map *at = st_map_new();
    ST_CLEANUP(st_freep) bool *done = st_xcalloc(s->accounts.n + 1, sizeof *done);
    ST_VEC(st_account_doc *) sorted = {0};

    for (size_t i = 0; i < s->accounts.n; i++)
        st_map_put(at, s->accounts.v[i]->name, (int64_t)i);
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < s->accounts.n; i++) {
            const char *parent = s->accounts.v[i]->parent;
            int64_t p;
            if (done[i] || (parent && st_map_get(at, parent, &p) && !done[p]))
                continue;
            st_vec_push(&sorted, s->accounts.v[i]);
            done[i] = moved = true;
        }
    }
    for (size_t i = 0; i < s->accounts.n; i++) {
        if (done[i])
            continue;
        st_vec_free(&sorted);
        return cycle(s, at, i, err);
    }
    for (size_t i = 0; i < s->accounts.n; i++)
        s->accounts.v[i] = sorted.v[i];
    st_vec_free(&sorted);
    return 0;
}

int st_scn_read_accounts(st_scenario *s, const st_doc_node *list, st_err *err)
{
    int r = read_list(s, list, NULL, err);
    return r < 0 ? r : order(s, err);
}
