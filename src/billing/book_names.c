/*
 * Whose book is whose. The first account of a name has the book of that name. Once it is removed its book stays in
 * the books, and whoever has the name later has a book of its own, NAME~SERIAL: it sees nothing of the old one, and
 * no plan, cap or hold of it applies. Which accounts these are follows from the core alone, so that playing the log
 * gives the same entries.
 *
 * In stores of earlier versions all accounts of a name have one book. That stays so for accounts up to the serial
 * `shared_upto`, which was the last when the store was first opened by this one.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "billing/billing.h"

#define META  "books_shared_upto"
#define ROOM  24 /* of "~SERIAL" and of " (SERIAL)" */
#define MARK  '~'
#define OTHER "%s~%" PRId64

/* ---- which it is ---------------------------------------------------------------------------------- */

const char *st_book_name(const st_control *ctl, int32_t id, char buf[ST_NAME_MAX + 1])
{
    const st_account *a = st_tree_account(st_core_tree(ctl->core), id);

    if (id == ST_ROOT)
        return "";
    if (!a->again || a->serial <= ctl->billing->shared_upto)
        return a->name;
    snprintf(buf, ST_NAME_MAX + 1, "%.*s~%" PRId64, ST_NAME_MAX - ROOM, a->name, a->serial);
    return buf;
}

/* One that is gone goes by "NAME (SERIAL)". */
int32_t st_account_known(const st_control *ctl, const char *name)
{
    const st_tree *tree = st_core_tree(ctl->core);
    int32_t id = name[0] ? st_tree_find(tree, name) : ST_ROOT;
    const char *paren = strstr(name, " (");
    int64_t serial = paren ? strtoll(paren + 2, NULL, 10) : 0;

    for (size_t i = ST_ROOT + 1; id < 0 && paren && i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];
        char filed[ST_NAME_MAX + ROOM + 8];

        if (a->serial != serial || !a->gone)
            continue;
        snprintf(filed, sizeof filed, ST_GONE_NAME, a->name, (long long)serial);
        return strcmp(filed, name) == 0 ? (int32_t)i : -1;
    }
    return id;
}

const char *st_book_of(const st_control *ctl, const char *account, char buf[ST_NAME_MAX + 1])
{
    int32_t id = st_account_known(ctl, account);

    return id < 0 ? account : st_book_name(ctl, id, buf);
}

int32_t st_book_account(const st_control *ctl, const char *book)
{
    const st_tree *tree = st_core_tree(ctl->core);
    int32_t id = book[0] ? st_tree_find(tree, book) : ST_ROOT;
    char buf[ST_NAME_MAX + 1];

    if (id >= 0 && strcmp(st_book_name(ctl, id, buf), book) == 0)
        return id;
    for (size_t i = tree->accounts.n - 1; i > ST_ROOT; i--)
        if (tree->accounts.v[i]->name[0] == book[0] &&
            strcmp(st_book_name(ctl, (int32_t)i, buf), book) == 0)
            return (int32_t)i;
    return -1;
}

/* ---- new ones ------------------------------------------------------------------------------------- */

static bool looks_like_another(const char *name)
{
    const char *mark = strrchr(name, MARK);

    return mark && mark[1] && strspn(mark + 1, "0123456789") == strlen(mark + 1);
}

bool st_book_free(const st_control *ctl, const char *name)
{
    const st_tree *tree = st_core_tree(ctl->core);
    char book[ST_NAME_MAX + ROOM];

    if (looks_like_another(name))
        return false;
    if (!st_map_get(tree->had, name, NULL))
        return true;
    snprintf(book, sizeof book, OTHER, name, tree->serials + 1);
    return strlen(name) <= ST_NAME_MAX - ROOM &&
           (!ctl->billing->ledger || !st_ledger_parent(ctl->billing->ledger, book));
}

/* ---- stores of earlier versions --------------------------------------------------------------------- */

/* Who goes on in the book of another that had its name: the owner should know. */
static void say_shared(st_control *ctl)
{
    const st_tree *tree = st_core_tree(ctl->core);

    for (size_t i = ST_ROOT + 1; i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];

        if (a->again && !a->gone && a->serial <= ctl->billing->shared_upto)
            st_control_say(ctl, "event=book_shared account=%s id=%" PRId64, a->name, a->serial);
    }
}

int st_books_shared(st_control *ctl, bool writes, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    char number[24];
    const char *text;
    int r = st_store_meta_get(ctl->store, META, arena, &text, err);

    ctl->billing->shared_upto = r == 0 ? strtoll(text, NULL, 10) : INT64_MAX;
    if (r == -ST_ENOENT && writes) {
        ctl->billing->shared_upto = st_core_tree(ctl->core)->serials;
        snprintf(number, sizeof number, "%" PRId64, ctl->billing->shared_upto);
        r = st_meta_keep(ctl->store, META, number, err);
    }
    if (r == 0 && writes)
        say_shared(ctl);
    return r == -ST_ENOENT ? 0 : r;
}
