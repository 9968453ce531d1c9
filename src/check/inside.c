/* See check_inside.h. */
#include "check/inside.h"

#include <stdlib.h>

#include "base/mem.h"

/* Of an account with a floor, what could still be inside it of a type, beside this use. */
static int64_t floor_room(const st_quota *floor, const int64_t use_m[ST_TYPES_MAX], int32_t type)
{
    int64_t left = st_quota_gpu_m(floor);
    for (int t = 0; t < ST_TYPES_MAX; t++)
        left -= ST_MAX(use_m[t], ST_MAX(floor->type_m[t], 0));
    return ST_MAX(left, 0) + ST_MAX(ST_MAX(floor->type_m[type], 0) - use_m[type], 0);
}

static void floor_use(const st_tree *tree, const st_inside *row, int64_t gpu_m,
                      int64_t (*use_m)[ST_TYPES_MAX])
{
    for (int32_t id = row->account; id > ST_ROOT; id = tree->accounts.v[id]->parent)
        use_m[id][row->type] += gpu_m;
}

static int64_t room_of(const st_tree *tree, const st_inside *row, int64_t (*use_m)[ST_TYPES_MAX])
{
    int64_t least = row->gpu_m;
    bool any = false;
    for (int32_t id = row->account; id > ST_ROOT; id = tree->accounts.v[id]->parent) {
        const st_quota *floor = &tree->accounts.v[id]->floor;
        if (!st_quota_has_gpu(floor))
            continue;
        any = true;
        least = ST_MIN(least, floor_room(floor, use_m[id], row->type));
    }
    return any ? least : 0;
}

static int by_turn(const void *a, const void *b)
{
    const st_inside *x = a, *y = b;
    if (x->account != y->account)
        return x->account < y->account ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

void st_inside_reckon(const st_tree *tree, st_inside *rows, size_t n)
{
    int64_t(*use_m)[ST_TYPES_MAX] = st_xcalloc(tree->accounts.n, sizeof *use_m);
    if (n > 1)
        qsort(rows, n, sizeof *rows, by_turn);
    for (size_t i = 0; i < n; i++)
        if (rows[i].type >= 0 && rows[i].guaranteed)
            floor_use(tree, &rows[i], rows[i].gpu_m, use_m);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].type < 0 || rows[i].guaranteed)
            continue;
        rows[i].inside_m = room_of(tree, &rows[i], use_m);
        floor_use(tree, &rows[i], rows[i].inside_m, use_m);
    }
    free(use_m);
}
