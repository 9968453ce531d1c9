/*
 * Private to place: what frag.c, frag_target.c, frag_price.c and frag_score.c share.
 *
 * Invariants:
 *   1. Slots are handed out in blocks of ST_FRAG_BLOCK, a block holds nodes of one type, and within
 *      a type a lower slot is a lower id.
 *   2. A class whose epoch is the target's and whose `seen` is the log's end has in score[slot] what
 *      st_frag_score says, and in low[block] the least score of the block.
 *   3. f->log[p % cap] is the node of change p; only a node's last change counts.
 */
#ifndef ST_PLACE_FRAG_STATE_H
#define ST_PLACE_FRAG_STATE_H

#include "base/map.h"
#include "base/vec.h"
#include "place/frag.h"

#define ST_FRAG_BLOCK    64
#define ST_FRAG_ONE      65536 /* shares and parts are counted in 1/65536 */
#define ST_FRAG_TYPICAL  128   /* classes the measure looks at, the heaviest */
#define ST_FRAG_RATIOS   256   /* steps of 256 milli-CPU per GPU */
#define ST_FRAG_NOWHERE  INT16_MAX
#define ST_FRAG_HALVE    65536 /* arrivals after which counts are halved */
#define ST_FRAG_FIRST    16    /* arrivals until the target is first derived */
#define ST_FRAG_PRICE_IN 64    /* arrivals between prices */

typedef struct frag_node {
    int64_t ram_mib;
    int64_t measure; /* cached, in milli-GPU / 65536 */
    uint64_t changed;
    int32_t cpu_m, type, slot;
    int32_t kind; /* nodes of one kind were added alike */
    int32_t total_m;
    int16_t gpus;
    bool touched; /* since it was added */
    int16_t free_m[ST_FRAG_GPUS_MAX];
} frag_node;

typedef struct frag_class {
    st_frag_ask ask;
    uint64_t key, weight;
    uint64_t seen;
    uint32_t epoch;
    size_t nslots; /* covered by score and low */
    int16_t *score;
    int16_t *low;
} frag_class;

/* One class of the target: p is its share among GPU classes. */
typedef struct frag_typical {
    st_frag_ask ask;
    uint64_t weight;
} frag_typical;

/* The learned workload as tables. cpu[] and part[] are the CPU and the parts asked for, ascending;
 * ranks count how many of them are within what a node or a GPU has. */
typedef struct frag_target {
    frag_typical typical[ST_FRAG_TYPICAL];
    int32_t n;
    int32_t ncpu, npart;
    int32_t cpu[ST_FRAG_TYPICAL];
    int32_t part[ST_FRAG_TYPICAL];
    uint8_t rank[1001];
    int32_t *one;   /* [type][cpu rank][part rank]: share of one-GPU classes that fit */
    int32_t *whole; /* [type][cpu rank][free whole GPUs]: likewise those of several GPUs */
    int32_t short_of[ST_FRAG_RATIOS + 2]; /* [CPU per GPU]: part of a GPU left without CPU */
} frag_target;

struct st_frag {
    ST_VEC(frag_node) nodes;
    ST_VEC(int32_t) node_of;    /* slot: node, or -1 */
    ST_VEC(int32_t) block_type; /* block: type */
    ST_VEC(frag_node) kinds;    /* one empty node of each */
    ST_VEC(int32_t) log;
    uint64_t changes;
    int32_t ntypes;
    int64_t type_free_m[ST_FRAG_TYPES_MAX];
    int32_t fill[ST_FRAG_TYPES_MAX]; /* the next slot of the type's open block; 0: none open */
    frag_class classes[ST_FRAG_CLASSES];
    int32_t nclasses;
    st_idmap *by_key;
    uint64_t arrivals, next_target, next_price;
    uint32_t epoch; /* of the target */
    frag_target target;
    double price[ST_FRAG_TYPES_MAX];
};

/* frag_target.c */
void st_frag_target_derive(st_frag *f);
void st_frag_target_done(frag_target *t);

/* frag_price.c: what one milli-GPU of each type costs above the cheapest. */
void st_frag_price_derive(st_frag *f);

/* The price of an ask on a type, in steps. */
int32_t st_frag_price(const st_frag *f, const st_frag_ask *ask, int32_t type);

/* frag_score.c */
int64_t st_frag_measure_raw(const st_frag *f, const frag_node *n);

/* The increase of the measure, in steps, and the GPUs that are best; ST_FRAG_NOWHERE without room. */
int16_t st_frag_score(const st_frag *f, const frag_node *n, const st_frag_ask *ask,
                      uint16_t *ret_devs);
int16_t st_frag_steps(int64_t raw);

#endif
