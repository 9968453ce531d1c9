/* MIG geometry as tables, and the few exact questions asked of it. */
#include "model/mig.h"

#include <string.h>

#include "base/macros.h"
#include "base/mutant.h"

typedef struct st_mig_row {
    const char *brief;
    int compute, memory;
    uint8_t starts; /* bit s set: may begin at memory slice s */
} st_mig_row;

static const st_mig_row rows[ST_MIG_COUNT] = {
    [ST_MIG_1G] = {"1g", 1, 1, 0x7f}, [ST_MIG_1G2] = {"1g+", 1, 2, 0x55},
    [ST_MIG_2G] = {"2g", 2, 2, 0x15}, [ST_MIG_3G] = {"3g", 3, 4, 0x11},
    [ST_MIG_4G] = {"4g", 4, 4, 0x01}, [ST_MIG_7G] = {"7g", 7, 8, 0x01},
};

typedef struct st_board_row {
    const char *name;
    const char *profile[ST_MIG_COUNT];
    int64_t vram_mib[ST_MIG_COUNT];
} st_board_row;

static const st_board_row boards[ST_BOARD_COUNT] = {
    [ST_BOARD_NONE] = {.name = "none"},
    [ST_BOARD_A100_40] = {"a100-40",
                          {"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"},
                          {4864, 9856, 9856, 19968, 19968, 40192}},
    [ST_BOARD_A100_80] = {"a100-80",
                          {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
                          {9856, 19968, 19968, 40192, 40192, 80384}},
    /* 9.75, 19.62, 39.5 and 79.25 GiB */
    [ST_BOARD_H100_80] = {"h100-80",
                          {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
                          {9984, 20090, 20090, 40448, 40448, 81152}},
    [ST_BOARD_H200_141] = {"h200-141",
                           {"1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"},
                           {16384, 33280, 33280, 71424, 71424, 143360}},
};

const char *st_board_name(st_board board)
{
    ST_ASSERT(board < ST_BOARD_COUNT);
    return boards[board].name;
}

const char *st_mig_name(st_board board, st_mig profile)
{
    ST_ASSERT(board < ST_BOARD_COUNT && profile < ST_MIG_COUNT);
    return boards[board].profile[profile];
}

int st_mig_parse(st_board board, const char *name)
{
    ST_ASSERT(board < ST_BOARD_COUNT);
    if (board == ST_BOARD_NONE)
        return -1;
    for (int p = 0; p < ST_MIG_COUNT; p++)
        if (strcmp(name, boards[board].profile[p]) == 0 || strcmp(name, rows[p].brief) == 0)
            return p;
    return -1;
}

int st_mig_compute(st_mig profile)
{
    ST_ASSERT(profile < ST_MIG_COUNT);
    return rows[profile].compute;
}

int st_mig_memory(st_mig profile)
{
    ST_ASSERT(profile < ST_MIG_COUNT);
    return rows[profile].memory;
}

int64_t st_mig_charge_m(st_mig profile)
{
    int64_t compute_m = 1000 * st_mig_compute(profile) / ST_MIG_COMPUTE;
    return ST_MAX(compute_m, st_mig_footprint_m(profile));
}

int64_t st_mig_footprint_m(st_mig profile)
{
    return 1000 * st_mig_memory(profile) / ST_MIG_MEMORY;
}

int64_t st_mig_vram_mib(st_board board, st_mig profile)
{
    ST_ASSERT(board < ST_BOARD_COUNT && profile < ST_MIG_COUNT);
    return boards[board].vram_mib[profile];
}

bool st_mig_start_legal(st_mig profile, int start)
{
    ST_ASSERT(profile < ST_MIG_COUNT);
    return start >= 0 && start < ST_MIG_MEMORY && (rows[profile].starts >> start & 1);
}

uint8_t st_mig_mask(st_mig profile, int start)
{
    ST_ASSERT(st_mig_start_legal(profile, start));
    return (uint8_t)(((1u << rows[profile].memory) - 1) << start);
}

bool st_mig_overlaps(uint8_t mask, st_mig profile, int start)
{
    return (mask & st_mig_mask(profile, start)) != 0 && !ST_BROKEN(MIG);
}

int st_mig_room(uint8_t mask, int compute, st_mig profile)
{
    ST_ASSERT(profile < ST_MIG_COUNT);
    /* Bit s of `open`: the memory slices from s on are free. The starts of one profile never
     * overlap each other, so counting those that are open is exact. */
    unsigned open = ST_BROKEN(MIG) ? 0xff : 0xffu & ~mask;
    for (int i = rows[profile].memory; i > 1; i /= 2)
        open &= open >> i / 2;
    int starts = __builtin_popcount(open & rows[profile].starts);
    return ST_MIN(starts, (ST_MIG_COMPUTE - compute) / rows[profile].compute);
}

/* Count the sets of further placements, taken in one fixed order so that each set counts
 * once. Depth is at most seven, one level per compute slice. */
static int doors_from(uint8_t mask, int compute, int profile, int start, bool classic)
{
    int n = 1;
    for (int p = profile; p < ST_MIG_COUNT; p++) {
        if (classic && p == ST_MIG_1G2)
            continue;
        if (compute + rows[p].compute > ST_MIG_COMPUTE)
            continue;
        for (int s = p == profile ? start : 0; s < ST_MIG_MEMORY; s++) {
            if (!st_mig_start_legal((st_mig)p, s))
                continue;
            uint8_t bits = st_mig_mask((st_mig)p, s);
            if (!(mask & bits))
                n += doors_from(mask | bits, compute + rows[p].compute, p, s + 1, classic);
        }
    }
    return n;
}

int st_mig_doors(uint8_t mask, int compute, bool classic)
{
    return doors_from(mask, compute, 0, 0, classic);
}

int st_mig_promise(uint8_t mask, int compute)
{
    /* The widest slice that is not the whole GPU has one place only: it is kept while it can be, and the number of
     * layouts decides between what is left. */
    bool wide = st_mig_room(mask, compute, ST_MIG_4G) > 0;
    return st_mig_doors(mask, compute, true) + (wide ? ST_MIG_DOORS_MAX : 0);
}

int st_mig_best_start(uint8_t mask, int compute, st_mig profile)
{
    if (st_mig_room(mask, compute, profile) == 0)
        return -1;
    int best = -1, best_promise = -1;
    for (int s = ST_MIG_MEMORY - 1; s >= 0; s--) {
        if (!st_mig_start_legal(profile, s) || st_mig_overlaps(mask, profile, s))
            continue;
        int promise =
            st_mig_promise(mask | st_mig_mask(profile, s), compute + rows[profile].compute);
        if (promise > best_promise) {
            best = s;
            best_promise = promise;
        }
    }
    return best;
}
