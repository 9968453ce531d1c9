/*
 * What `dcgmi diag -j` says, read (agent/trial.h). Its versions differ in where tests stand and how they name what they
 * tested; whatever is not understood is passed over, and a text in which no test of a GPU is found is none.
 */
#ifndef ST_AGENT_DCGM_H
#define ST_AGENT_DCGM_H

#include <stddef.h>

#include "base/err.h"
#include "model/types.h"

#define ST_DCGM_MAX ((size_t)1 << 20) /* bytes of it that are read */

typedef struct st_dcgm {
    char version[24];
    int made[ST_DEVS_MAX], failed[ST_DEVS_MAX]; /* tests of each GPU */
    char first[ST_DEVS_MAX][48];                /* the first that failed, by name */
    char setting
        [120]; /* what is set up wrong, or is no GPU's; "": nothing. It says nothing of the GPUs */
} st_dcgm;

/* -ST_EDOWN: it is no such text, or dcgmi says itself that it could not test. */
int st_dcgm_read(const char *text, size_t n, int gpus, st_dcgm *ret, st_err *err);

#endif
