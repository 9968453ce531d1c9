/* Names of the small enums of records. */
#include "model/record.h"

#include <string.h>

#include "base/macros.h"

#define X(id, name) [id] = name,
static const char *const basis_names[] = {ST_BASIS_TABLE(X)};
#undef X
#define X(id, name, blameless) [id] = name,
static const char *const cut_names[] = {ST_CUT_TABLE(X)};
#undef X

const char *st_basis_name(st_basis basis)
{
    ST_ASSERT(basis < ST_BASIS_COUNT);
    return basis_names[basis];
}

const char *st_cut_name(st_cut cut)
{
    ST_ASSERT(cut < ST_CUT_COUNT);
    return cut_names[cut];
}

int st_basis_parse(const char *name)
{
    for (int i = 0; i < ST_BASIS_COUNT; i++)
        if (strcmp(basis_names[i], name) == 0)
            return i;
    return -1;
}

int st_cut_parse(const char *name)
{
    for (int i = 0; i < ST_CUT_COUNT; i++)
        if (strcmp(cut_names[i], name) == 0)
            return i;
    return -1;
}
