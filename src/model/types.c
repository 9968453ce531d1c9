/* Names of the small enums. */
#include "model/types.h"

#include <string.h>

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

const char *st_allow_name(st_allow allow)
{
    static const char *const words[] = {
#define X(id, word, what) word,
        ST_ALLOW_TABLE(X)
#undef X
    };
    return words[allow];
}

uint32_t st_allow_needed(const char *image, const char *network, bool rdma)
{
    uint32_t needs = 0;

    if (!image || !image[0] || strcmp(image, "host") == 0)
        needs |= 1u << ST_ALLOW_HOST_IMAGE;
    if (network && strcmp(network, "host") == 0)
        needs |= 1u << ST_ALLOW_HOST_NETWORK;
    if (rdma)
        needs |= 1u << ST_ALLOW_RDMA;
    return needs;
}
