/*
 * A witness: whom the signed head of the log of checkpoints is posted to, so that somebody else has what stintd has shown.
 *
 * The address comes from the configuration alone, never from a request: what stintd can reach is not for tenants to ask for. A
 * thread of its own posts; no redirect is followed, a post takes ten seconds at most, and what is answered is thrown away.
 * Where the witness is away, bills go on: the next head says all that a missed one would have.
 */
#ifndef ST_STINTD_WITNESS_H
#define ST_STINTD_WITNESS_H

#include "api/api.h"

typedef struct st_witness st_witness;

/* What is wrong with the address: it must be http:// or https://, without a password in it. */
int st_witness_check(const char *url, st_err *err);
typedef void (*st_witness_log)(void *ctx, const char *line);
int st_witness_new(const char *url, st_api *api, st_witness_log log, void *ctx, st_witness **ret,
                   st_err *err);
void st_witness_free(st_witness *w);

#endif
