/*
 * The list of jobs with logs (engine/shelf.h). In no order: it is looked through when room has to be made.
 */
#include "engine/shelf.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

struct st_shelf {
    ST_VEC(st_shelved) rows;
    st_idmap *at;
};

st_shelf *st_shelf_new(void)
{
    st_shelf *shelf = st_xcalloc(1, sizeof *shelf);

    shelf->at = st_idmap_new();
    return shelf;
}

void st_shelf_free(st_shelf *shelf)
{
    if (!shelf)
        return;
    for (size_t i = 0; i < shelf->rows.n; i++)
        free(shelf->rows.v[i].account);
    st_vec_free(&shelf->rows);
    st_idmap_free(shelf->at);
    free(shelf);
}

st_shelved *st_shelf_find(st_shelf *shelf, uint64_t job)
{
    int64_t i;

    return st_idmap_get(shelf->at, job, &i) ? &shelf->rows.v[i] : NULL;
}

st_shelved *st_shelf_add(st_shelf *shelf, uint64_t job, const char *account)
{
    ST_ASSERT(!st_shelf_find(shelf, job));
    st_idmap_put(shelf->at, job, (int64_t)shelf->rows.n);
    st_vec_push(&shelf->rows, (st_shelved){.job = job, .account = st_xstrdup(account), .org = -1});
    return &shelf->rows.v[shelf->rows.n - 1];
}

void st_shelf_remove(st_shelf *shelf, uint64_t job)
{
    st_shelved *row = st_shelf_find(shelf, job), *last = &shelf->rows.v[shelf->rows.n - 1];

    if (!row)
        return;
    free(row->account);
    st_idmap_del(shelf->at, job);
    if (row != last) {
        *row = *last;
        st_idmap_put(shelf->at, row->job, (int64_t)(row - shelf->rows.v));
    }
    shelf->rows.n--;
}

/* The organisation with the most bytes, without those of one job. */
static int32_t largest(const st_shelf *shelf, uint64_t except)
{
    st_idmap *sums = st_idmap_new();
    int64_t most = -1;
    int32_t org = -1;

    for (size_t i = 0; i < shelf->rows.n; i++) {
        const st_shelved *row = &shelf->rows.v[i];
        int64_t sum = 0;

        if (row->job == except)
            continue;
        st_idmap_get(sums, (uint64_t)(row->org + 1), &sum);
        sum += row->bytes;
        st_idmap_put(sums, (uint64_t)(row->org + 1), sum);
        if (sum > most) {
            most = sum;
            org = row->org;
        }
    }
    st_idmap_free(sums);
    return org;
}

st_shelved *st_shelf_oldest(st_shelf *shelf, int32_t org, uint64_t except)
{
    st_shelved *oldest = NULL;

    if (org < 0)
        org = largest(shelf, except);
    for (size_t i = 0; i < shelf->rows.n; i++) {
        st_shelved *row = &shelf->rows.v[i];

        if (row->job == except || row->org != org || row->bytes == 0)
            continue;
        if (!oldest || row->newest_ms < oldest->newest_ms ||
            (row->newest_ms == oldest->newest_ms && row->job < oldest->job))
            oldest = row;
    }
    return oldest;
}

st_shelved *st_shelf_all(st_shelf *shelf, int64_t *ret_n)
{
    *ret_n = (int64_t)shelf->rows.n;
    return shelf->rows.v;
}
