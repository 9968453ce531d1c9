/* Which nodes will do for a job: by their labels, and by their names. One text, a line for each term, in order:
 *
 *     !storage=hdd     no node with this label
 *     -node07          not this node
 *     driver=550       only nodes with this label
 *
 * Values are met as those that bookings require (model/labels.h): driver=550 is met by 550.54.15. */
#ifndef ST_MODEL_PICK_H
#define ST_MODEL_PICK_H

#include <stdbool.h>

#include "base/err.h"
#include "base/strbuf.h"

#define ST_PICK_TERMS    32 /* of one job */
#define ST_PICK_TEXT_MAX (ST_PICK_TERMS * 144)

/* Adds "k=v", "k!=v", or, with `node`, the name of one to leave out; the same twice is there once. */
int st_pick_add(st_strbuf *pick, const char *term, bool node, st_err *err);
/* In order, each term once, every word in its bounds; "" takes every node. */
bool st_pick_ok(const char *pick);
/* Whether a node of that name with these labels will do; NULL has no labels, and no pick takes every node. */
bool st_pick_meets(const char *pick, const char *name, const char *labels);
/* "driver=550, storage!=hdd, not node07" */
void st_pick_say(const char *pick, st_strbuf *out);

#endif
