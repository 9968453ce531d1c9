/*
 * What is gathered of the bucket that is not over; between control/series.c and control/series_look.c.
 */
#ifndef ST_CONTROL_SERIES_LOOK_H
#define ST_CONTROL_SERIES_LOOK_H

#include "base/map.h"
#include "control/state.h"
#include "series/series.h"

typedef struct st_gathered {
    /* By number, but jobs: those as they came, through `at`. */
    ST_VEC(st_series_row) rows[ST_SERIES_KINDS];
    st_idmap *at;      /* job -> index */
    st_idmap *tenants; /* serial of an account -> its number; of the last look */
} st_gathered;

void st_gathered_init(st_gathered *g);
void st_gathered_done(st_gathered *g);

/* The state as it is stands for the last dt_ms. */
void st_gather_state(st_gathered *g, const st_core *core, int64_t dt_ms);
/* What tasks used; after a state was gathered. */
void st_gather_measures(st_gathered *g, const st_core *core, const st_measures *measures);
/* What everybody has spent this month. Nothing where that is not known. */
void st_gather_spent(st_gathered *g, st_tx *tx);

/* Takes the rows of a kind, by part and id, and begins anew; what is below a unit is carried on. */
void st_gathered_take(st_gathered *g, st_series_kind kind, st_series_set *ret);

#endif
