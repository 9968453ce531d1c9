/*
 * What is to be done about nodes that are out of service (remedies.c), for who does it.
 */
#ifndef ST_CONTROL_REMEDIES_H
#define ST_CONTROL_REMEDIES_H

#include "state/command.h"

#define ST_REMEDY_TEXT 300

/* One remedy, from its beginning to its end. */
typedef struct st_remedy_turn {
    char node[ST_NAME_MAX + 1], what[16];
    uint64_t incident;
    int64_t taken_ms;
    char *ask; /* JSON for the site's program; NULL: there is nothing to do. The caller frees it */
    /* What came of it. */
    const char *state; /* done, failed, timeout, broken or said; static text */
    char text[ST_REMEDY_TEXT];
    int64_t took_ms;
} st_remedy_turn;

typedef struct st_remedy_cmd {
    st_cmd cmd; /* first */
    st_remedy_turn *turn;
} st_remedy_cmd;

/* Commands, for `run`: the next one is begun and written down; what came of it is. */
int st_remedies_next(st_tx *tx, st_cmd *cmd, st_err *err);
int st_remedies_done(st_tx *tx, st_cmd *cmd, st_err *err);

#endif
