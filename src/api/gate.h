/*
 * The way to a service's replicas: requests of callers, and health checks. Private to src/api.
 *
 * Invariants:
 *  1 A connection goes to the port of a replica's own task and nowhere else: no part of an address comes from a tenant.
 *  2 What a caller proves itself with does not reach a replica: no token, no cookie. What a replica answers cannot act as
 *    stintd: no cookie, no script with its origin, no length that two readers take for two things (http/upstream.h).
 *    A connection becomes a WebSocket only when the replica says so, and is nothing else than bytes from then on.
 *  3 A request counts as open at its replica from its choice to its end, once; so a replica that leaves is waited for.
 */
#ifndef ST_API_GATE_H
#define ST_API_GATE_H

#include "api/services.h"
#include "api/tunnels.h"
#include "http/onward.h"

typedef struct st_gate st_gate;

int st_gate_new(st_api *api, st_gate **ret, st_err *err);
/* Dials no more; and, once nothing waits for a tunnel any more, ends what is under way. Before the servers stop. */
void st_gate_quiet(st_gate *gate);
void st_gate_close(st_gate *gate);
void st_gate_free(st_gate *gate);

/* Ends the requests of those whose right to make them is over; about once a second. */
void st_gate_watch(st_gate *gate);
/* Health checks that are due, of all services; by the controller, without the services' lock. */
void st_gate_checks(st_gate *gate, int64_t now_ms);

#endif
