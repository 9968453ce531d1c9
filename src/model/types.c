/* Names of the small enums. */
#include "model/types.h"

#include "base/macros.h"

#define X(id, name) [id] = name,
static const char *const level_names[] = {ST_LEVEL_TABLE(X)};
static const char *const topo_names[] = {ST_TOPO_TABLE(X)};
static const char *const dim_names[] = {ST_DIM_TABLE(X)};
#undef X

const char *st_level_name(st_level level)
{
    ST_ASSERT(level < ST_LEVEL_COUNT);
    return level_names[level];
}

const char *st_topo_name(st_topo topo)
{
    ST_ASSERT(topo < ST_TOPO_COUNT);
    return topo_names[topo];
}

const char *st_dim_name(st_dim dim)
{
    ST_ASSERT(dim < ST_NDIMS);
    return dim_names[dim];
}
