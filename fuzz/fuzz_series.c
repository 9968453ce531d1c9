/*
 * Fuzzes what is read of figures over time. The first byte is the kind, the rest a blob. It is refused, or it is a set whose ids
 * go up, that is the same when written and read again, and that merges with itself.
 */
#include <string.h>

#include "fuzz.h"
#include "series/series.h"

/* Twice as much as there is must still be a number. */
static bool small(const st_series_set *set)
{
    for (size_t i = 0; i < set->rows.n; i++)
        for (int c = 0; c < ST_SERIES_COLUMNS; c++)
            if (set->rows.v[i].v[c] > INT64_MAX / 4 || set->rows.v[i].v[c] < INT64_MIN / 4)
                return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_series_set_done) st_series_set set = {0}, again = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_err err = {0};

    if (size == 0)
        return 0;
    st_series_kind kind = (st_series_kind)(data[0] % ST_SERIES_KINDS);
    if (st_series_decode(kind, data + 1, size - 1, &set, &err) < 0) {
        ST_ASSERT(err.code == ST_ECORRUPT);
        return 0;
    }
    for (size_t i = 1; i < set.rows.n; i++)
        ST_ASSERT(set.rows.v[i].id > set.rows.v[i - 1].id);
    st_series_encode(kind, &set, &out);
    ST_ASSERT(st_series_decode(kind, out.s, out.n, &again, &err) == 0);
    ST_ASSERT(again.rows.n == set.rows.n);
    ST_ASSERT(set.rows.n == 0 ||
              memcmp(again.rows.v, set.rows.v, set.rows.n * sizeof *set.rows.v) == 0);
    if (!small(&set))
        return 0;
    st_series_merge(&set, &again);
    ST_ASSERT(set.rows.n == again.rows.n);
    return 0;
}
