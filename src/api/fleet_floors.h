/*
 * What a smaller floor would have saved. Private to src/api.
 */
#ifndef ST_API_FLEET_FLOORS_H
#define ST_API_FLEET_FLOORS_H

#include "api/bills.h"

typedef struct st_floor_step {
    int64_t at_ms, gpu_m; /* so much more from here on */
} st_floor_step;
/* How much of a floor was in use, as it changed. */
typedef struct st_floor_use {
    ST_VEC(st_floor_step) steps;
    st_i128 value, share; /* of all use: at the burst price, and milli-GPU x ms */
} st_floor_use;

typedef struct st_floor_advice {
    int64_t floor_m, better_m; /* on average; what would have cost least */
    int64_t saved;             /* micro-dollars, less what would have been borrowed */
} st_floor_advice;

/* An interval of use inside the floor, and what an hour of it costs as burst. */
void st_floor_use_add(st_floor_use *u, const st_entry *e, int64_t burst);
/* Of a floor that cost so much from one moment to another. */
void st_floor_advise(st_floor_use *u, int64_t reserved, int64_t cost, int64_t from_ms,
                     int64_t to_ms, st_floor_advice *ret);
void st_floor_use_done(st_floor_use *u);

#endif
