/* Parts of a saved state (save.c): each writes what is there, or reads it. Private to core. */
#ifndef ST_CORE_SAVE_HEALTH_H
#define ST_CORE_SAVE_HEALTH_H

#include "core/state.h"
#include "model/codec.h"

void st_save_life(codec *c, st_node *node);
void st_save_incidents(codec *c, st_core *core);
void st_save_booking(codec *c, const st_core *core, st_booking *b);
void st_save_grace(codec *c, const st_core *core, st_job *j); /* what it needs to save */
void st_save_pauses(codec *c, st_core *core);
void st_save_forecast(codec *c, st_forecast *f);
void st_save_pick(codec *c, st_fleet *fleet, st_job *j);

#endif
