/* A bill against an older one that somebody kept (bill/file.h): whether the books go on from where they were.
 *
 * Of each book a file has the root over all of its entries at that moment, also over those that it does not show. The hashes
 * around a range of entries begin with those of everything before it. So a newer file whose range begins at or before where
 * the older one ended, and goes on up to there, gives the older root again, or does not: then an entry was changed,
 * taken back or put in between, shown or not. Files of one month, and of two that follow each other, are such. */
#include <stdio.h>
#include <string.h>

#include "bill/file_kept.h"

static void fail(st_verdict *v, const char *what)
{
    v->good = false;
    v->line = v->seq = 0;
    snprintf(v->what, sizeof(v->what), "%s", what);
}

/* The root that the first `size` entries have by this range; false: it does not say. */
static bool root_at(const st_billkept *k, int64_t size, st_hash *ret)
{
    st_peaks p = {0};

    if (size < k->from || size > k->to)
        return false;
    /* A range without entries has no hashes of its own around it. */
    if (k->from > 0 && (k->from == k->to || !st_proof_peaks(k->from, k->proof.v, k->proof.n, &p)))
        return false;
    for (int64_t i = k->from; i < size; i++)
        st_peaks_add(&p, &k->leaves.v[i - k->from]);
    st_peaks_root(&p, ret);
    return true;
}

typedef enum answer { GOES_ON, DIFFERS, CANNOT_SAY, NOT_THERE } answer;

static answer compare(const st_billkept_list *new, const st_head *old)
{
    answer found = NOT_THERE;
    st_hash root;

    for (size_t i = 0; i < new->list.n; i++) {
        const st_billkept *k = &new->list.v[i];

        if (strcmp(k->head.account, old->account) != 0)
            continue;
        if (k->head.size < old->size)
            return DIFFERS; /* it was longer */
        if (k->head.size == old->size)
            return memcmp(&k->head.root, &old->root, sizeof(root)) == 0 ? GOES_ON : DIFFERS;
        found = CANNOT_SAY;
        if (root_at(k, old->size, &root))
            return memcmp(&root, &old->root, sizeof(root)) == 0 ? GOES_ON : DIFFERS;
    }
    return found;
}

static bool is_first(const st_billkept_list *list, size_t i)
{
    return i == 0 || strcmp(list->list.v[i].head.account, list->list.v[i - 1].head.account) != 0;
}

static void judge(const st_billkept_list *new, const st_billkept_list *old, st_verdict *v)
{
    char buf[sizeof(v->what)];
    int books = 0;
    bool own = false;

    if (strcmp(new->checkpoint.cluster, old->checkpoint.cluster) != 0 ||
        memcmp(new->checkpoint.key, old->checkpoint.key, sizeof(old->checkpoint.key)) != 0) {
        fail(v, "the older bill is of another cluster, or signed by another key");
        return;
    }
    if (old->checkpoint.at_ms > new->checkpoint.at_ms) {
        fail(v, "the bill to compare with was made after this one: give them the other way round");
        return;
    }
    for (size_t i = 0; i < old->list.n; i++) {
        const st_head *h = &old->list.v[i].head;
        answer a = is_first(old, i) ? compare(new, h) : NOT_THERE;

        if (a == DIFFERS || (a == CANNOT_SAY && strcmp(h->account, v->account) == 0)) {
            if (a == DIFFERS)
                snprintf(buf, sizeof(buf),
                         "the book of \"%s\" does not go on from the %lld entries that the older "
                         "bill saw: some were changed, taken back or put in between",
                         h->account, (long long)h->size);
            else
                snprintf(buf, sizeof(buf),
                         "the older bill is of a time before this one's entries of \"%s\" begin: "
                         "compare with one of a month in between",
                         h->account);
            fail(v, buf);
            return;
        }
        books += a == GOES_ON;
        own |= a == GOES_ON && strcmp(h->account, v->account) == 0;
    }
    if (!own && v->account[0]) {
        snprintf(buf, sizeof(buf), "the older bill has no book of \"%s\" to compare with",
                 v->account);
        fail(v, buf);
        return;
    }
    size_t n = strlen(v->what);
    snprintf(v->what + n, sizeof(v->what) - n,
             ". %d book%s go%s on from what the older bill saw: nothing of it was changed", books,
             books == 1 ? "" : "s", books == 1 ? "es" : "");
}

void st_billfile_against(const char *data, size_t len, const char *old, size_t old_len,
                         const unsigned char key[32], st_verdict *ret)
{
    st_billkept_list new = {0}, before = {0};
    st_verdict v;

    st_billfile_read(data, len, key, ret, &new);
    if (ret->good) {
        st_billfile_read(old, old_len, key, &v, &before);
        if (v.good) {
            judge(&new, &before, ret);
        } else {
            char buf[sizeof(v.what)];

            snprintf(buf, sizeof(buf), "the older bill is not right: %.700s", v.what);
            fail(ret, buf);
        }
    }
    st_billkept_done(&new);
    st_billkept_done(&before);
}
