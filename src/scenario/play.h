/*
 * Between the files of the player. Private to scenarios.
 */
#ifndef ST_SCENARIO_PLAY_H
#define ST_SCENARIO_PLAY_H

#include "scenario/scenario.h"

/* scenario_act.c: one action at the present moment, with what it was expected to come to. */
/* Bookings by a clock follow it (zone.c). */
void st_play_clocks(st_play *play, const st_scn_action *a);
void st_play_act(st_play *play, const st_scn_action *a);

/* Applies one event; what was accepted is remembered for the step. */
int st_play_apply(st_play *play, const st_event *ev, st_err *why);

/* scenario_record.c: takes the new effects of the step at hand into the records. */
void st_play_follow(st_play *play);

/* Brings the records of live jobs up to date with the core. */
void st_play_refresh(st_play *play);

/* Notes that an action was refused. */
void st_play_note_refusal(st_play *play, const st_scn_action *a, const char *why);

/* Notes that something is not as it should be; takes the text over. */
void st_play_differ(st_play *play, int line, char *text);

#endif
