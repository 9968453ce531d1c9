/* The names of the enums in usage records. */
#include "model/record.h"

#include <string.h>

#include "base/macros.h"

static const char *const bases[] = {
#define X(id, name) [id] = name,
    ST_BASIS_TABLE(X)
#undef X
};

static const char *const cuts[] = {
#define X(id, name, blameless) [id] = name,
    ST_CUT_TABLE(X)
#undef X
};

static const char *const kinds[] = {
#define X(id, name) [id] = name,
    ST_RECORD_TABLE(X)
#undef X
};

static int find(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

const char *st_basis_name(st_basis basis)
{
    ST_ASSERT(basis < ST_BASIS_COUNT);
    return bases[basis];
}

const char *st_cut_name(st_cut cut)
{
    ST_ASSERT(cut < ST_CUT_COUNT);
    return cuts[cut];
}

const char *st_record_name(st_record_kind kind)
{
    ST_ASSERT(kind < ST_REC_COUNT);
    return kinds[kind];
}

int st_basis_parse(const char *name)
{
    return find(bases, ST_BASIS_COUNT, name);
}

int st_cut_parse(const char *name)
{
    return find(cuts, ST_CUT_COUNT, name);
}

bool st_cut_blameless(st_cut cut)
{
    static const bool of[] = {
#define X(id, name, blameless) [id] = blameless,
        ST_CUT_TABLE(X)
#undef X
    };
    ST_ASSERT(cut < ST_CUT_COUNT);
    return of[cut];
}
