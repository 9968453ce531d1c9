/*
 * Rows, sets and what is carried on (series/series.h).
 */
#include "series/series.h"

#include <string.h>

#include "series/units.h"

static const char *const words[] = {
#define X(id, word) [id] = word,
    ST_SERIES_KIND_TABLE(X)
#undef X
};

static const bool is_last[] = {
#define X(id, last) [id] = last,
    ST_SERIES_COLUMN_TABLE(X)
#undef X
};

const char *st_series_kind_word(st_series_kind kind)
{
    return words[kind];
}

int st_series_kind_parse(const char *word)
{
    for (int k = 0; k < ST_SERIES_KINDS; k++)
        if (strcmp(words[k], word) == 0)
            return k;
    return -1;
}

void st_series_set_done(st_series_set *set)
{
    st_vec_free(&set->rows);
}

/* A part is what one blob has: large enough to be packed well, small enough to be read for the sake of one row. Jobs come and
 * go, so neighbours in a part are not neighbours in number: those that live spread over all parts. */
int64_t st_series_part(st_series_kind kind, uint64_t id)
{
    switch (kind) {
    case ST_SERIES_JOB:
        return (int64_t)(id % 64);
    case ST_SERIES_GPU:
        return (int64_t)(id / (64 * ST_SERIES_GPUS));
    case ST_SERIES_NODE:
        return (int64_t)(id / 512);
    case ST_SERIES_ACCOUNT:
    case ST_SERIES_KINDS:
        break;
    }
    return (int64_t)(id / 128);
}

void st_series_put(st_series_row *row, st_series_column column, int64_t v)
{
    row->v[column] = is_last[column] ? v : row->v[column] + v;
    row->has |= 1u << column;
}

void st_series_add(st_series_row *to, const st_series_row *more)
{
    for (int c = 0; c < ST_SERIES_COLUMNS; c++)
        if (more->has >> c & 1)
            st_series_put(to, (st_series_column)c, more->v[c]);
}

void st_series_merge(st_series_set *to, const st_series_set *more)
{
    st_series_set all = {0};
    size_t i = 0, k = 0;

    st_vec_reserve(&all.rows, to->rows.n + more->rows.n);
    while (i < to->rows.n || k < more->rows.n) {
        const st_series_row *a = i < to->rows.n ? &to->rows.v[i] : NULL;
        const st_series_row *b = k < more->rows.n ? &more->rows.v[k] : NULL;
        st_series_row row = a && (!b || a->id <= b->id) ? *a : *b;

        if (a && b && a->id == b->id)
            st_series_add(&row, b);
        i += a && a->id == row.id;
        k += b && b->id == row.id;
        st_vec_push(&all.rows, row);
    }
    st_vec_free(&to->rows);
    *to = all;
}

const st_series_row *st_series_find(const st_series_set *set, uint64_t id)
{
    size_t from = 0, to = set->rows.n;

    while (from < to) {
        size_t mid = from + (to - from) / 2;

        if (set->rows.v[mid].id == id)
            return &set->rows.v[mid];
        if (set->rows.v[mid].id < id)
            from = mid + 1;
        else
            to = mid;
    }
    return NULL;
}

/* Of devices and jobs there are many, and what was measured of them is never the same twice: a tenth of a second, 100 J and a
 * GiB for a second are what their charts show. What they had is mostly the same, so it is as fine as time is. */
int64_t st_series_unit(st_series_kind kind, st_series_column column)
{
    bool many = kind != ST_SERIES_ACCOUNT;

    switch (column) {
    case ST_SERIES_CAPACITY:
    case ST_SERIES_HELD:
    case ST_SERIES_GUARANTEED:
    case ST_SERIES_FLOOR:
    case ST_SERIES_SHARE:
    case ST_SERIES_WANTED:
        return 1000;
    case ST_SERIES_SEEN:
    case ST_SERIES_BUSY:
    case ST_SERIES_POWERED:
    case ST_SERIES_FILLED:
    case ST_SERIES_WARMED:
        return many ? 100 : 1;
    case ST_SERIES_ENERGY:
        return many ? 100000 : 1000;
    case ST_SERIES_MEMORY:
        return many ? 1024 : 1;
    case ST_SERIES_HEAT:
        return many ? 10 : 1;
    case ST_SERIES_WATCHED:
    case ST_SERIES_AWAY:
    case ST_SERIES_RUNNING:
    case ST_SERIES_WAITING:
    case ST_SERIES_SPENT:
    case ST_SERIES_COLUMNS:
        break;
    }
    return 1;
}

void st_series_carry(st_series_kind kind, st_series_row *gathered, st_series_row *ret)
{
    *ret = (st_series_row){.id = gathered->id, .has = gathered->has};
    for (int c = 0; c < ST_SERIES_COLUMNS; c++) {
        int64_t rest = gathered->v[c] % st_series_unit(kind, (st_series_column)c);

        if (!(gathered->has >> c & 1))
            continue;
        ret->v[c] = gathered->v[c] - rest;
        gathered->v[c] = is_last[c] ? 0 : rest;
    }
    gathered->has = 0;
}

bool st_series_says(const st_series_row *row)
{
    return row->has != 0;
}

int64_t st_series_bucket(int64_t at_ms, int64_t width_ms)
{
    return at_ms - at_ms % width_ms;
}
