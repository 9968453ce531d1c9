/*
 * The site's program that mends nodes: resets, reboots, tickets (control/remedies.c says which and when).
 *
 * It comes from the configuration alone. It is told what to do as JSON on its standard input, has an environment of its own without
 * anything of ours, and answers JSON: {"text": "…"}. Status 0 is done; 126, 127 and what is no answer mean that the program itself is
 * broken, which says nothing of the node. After the timeout it and all it has started are killed. Without a program the journal says
 * what would be done. One remedy runs at a time, in a thread of its own: nobody waits for it.
 */
#ifndef ST_STINTD_REMEDY_H
#define ST_STINTD_REMEDY_H

#include "stintd/stintd.h"

typedef struct st_remedies st_remedies;

/* Whether the program could be run; NULL: there is none. */
int st_remedies_check(const char *program, st_err *err);
int st_remedies_new(st_serve *serve, const char *program, int64_t timeout_ms, st_remedies **ret,
                    st_err *err);
/* Kills what still runs. */
void st_remedies_free(st_remedies *r);

#endif
