/*
 * Whom a job is to wait for, as its document names them. Whether they are there, may be seen and have ended is found out
 * in the transaction that submits it (control/flow.c); here a name becomes a number, and of `each` the jobs of an array
 * become those of another, one for one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/quote.h"
#include "spec/flow.h"

int st_api_afters(st_expansion *x, const st_doc *doc, const st_doc_node *map, st_submit_item *item,
                  st_err *err)
{
    const st_doc_node *list = st_doc_get(map, "after");
    st_after_ask *asks;
    int n = 0;

    if (!list)
        return 0;
    asks = st_arena_alloc(x->arena, ST_AFTER_MAX * sizeof *asks);
    for (const st_doc_node *at = NULL; (at = st_field_each(list, at));) {
        st_after_doc a;
        int r = st_spec_after(doc, at, &a, err);

        if (r < 0)
            return r;
        asks[n] = (st_after_ask){.text = st_arena_strdup(x->arena, a.job->value),
                                 .how = a.how,
                                 .only = a.only,
                                 .each = a.each};
        if (!st_control_id_parse(x->api->control, asks[n].text, &asks[n].id))
            asks[n].id = 0;
        if (a.each && !item->array)
            return st_doc_fail(
                doc, at, err, ST_EINVAL,
                "each is for arrays, whose jobs wait for those of another one by one");
        n++;
    }
    item->afters = n > 0 ? asks : NULL;
    item->nafters = n;
    return 0;
}

/* ---- one for one ----------------------------------------------------------------------------- */

typedef struct piece {
    int64_t index;
    uint64_t id;
} piece;

typedef ST_VEC(piece) pieces;

/* Its own part of the document ends with its place; what its user wrote cannot look so, for texts have no bare quotes. */
static int add_piece(void *ctx, const st_job_row *row, st_err *err)
{
    static const char key[] = "\"array\":{\"index\":";
    const char *at = NULL;

    (void)err;
    for (const char *next = row->spec; (next = strstr(next, key)); next++)
        at = next;
    if (at)
        st_vec_push((pieces *)ctx, (piece){strtoll(at + strlen(key), NULL, 10), (uint64_t)row->id});
    return 0;
}

static int by_index(const void *pa, const void *pb)
{
    const piece *a = pa, *b = pb;

    return (a->index > b->index) - (a->index < b->index);
}

/* Those of an array that the caller may see; none: there is no such array. */
static int read_pieces(st_expansion *x, const st_after_ask *ask, pieces *ret, st_err *err)
{
    st_job_filter f = {.part_of = (int64_t)ask->id, .own_part = true};
    st_store *reader;
    char q[ST_QUOTE_MAX];
    int r;

    f.within = st_directory_range(x->api->dir, x->who->account);
    reader = ask->id ? st_api_reader(x->api, err) : NULL;
    if (ask->id && !reader)
        return -err->code;
    r = reader ? st_store_jobs_list(reader, &f, add_piece, ret, err) : 0;
    st_api_reader_back(x->api, reader);
    if (r == 0 && ret->n == 0)
        r = st_fail(err, ST_ENOENT, "there is no array %s", st_quote(q, ask->text));
    if (ret->n > 1)
        qsort(ret->v, ret->n, sizeof *ret->v, by_index);
    return r;
}

static int one_each(st_expansion *x, st_submit_item *item, int64_t index, size_t k,
                    const pieces *of, st_err *err)
{
    const piece wanted = {.index = index}, *found;
    st_after_ask *mine;
    char text[ST_ID_TEXT];

    found = bsearch(&wanted, of->v, of->n, sizeof *of->v, by_index);
    if (!found)
        return st_fail(err, ST_EINVAL,
                       "array %s has no job %" PRId64 " that job %" PRId64
                       " of this one could wait for (each)",
                       item->afters[k].text, index, index);
    mine = st_arena_alloc(x->arena, (size_t)item->nafters * sizeof *mine);
    memcpy(mine, item->afters, (size_t)item->nafters * sizeof *mine);
    st_control_id_text(x->api->control, found->id, text);
    mine[k].id = found->id;
    mine[k].text = st_arena_strdup(x->arena, text);
    mine[k].only = true;
    mine[k].each = false;
    item->afters = mine;
    return 0;
}

int st_api_afters_each(st_expansion *x, size_t first, const st_rules_jobs *jobs, st_err *err)
{
    const st_submit_item *all = &x->items.v[first];
    int r = 0;

    for (int k = 0; r == 0 && k < all->nafters; k++) {
        pieces of = {0};

        if (!all->afters[k].each)
            continue;
        r = read_pieces(x, &all->afters[k], &of, err);
        /* The first comes last: the others begin with what it has. */
        for (size_t i = jobs->pieces.n; r == 0 && i-- > 0;)
            r = one_each(x, &x->items.v[first + i], jobs->pieces.v[i].index, (size_t)k, &of, err);
        st_vec_free(&of);
    }
    return r;
}
