/*
 * What a process may do beyond its user: capabilities, and calls that concern the whole machine. Both are only ever given
 * up, for this process and all it starts.
 */
#ifndef ST_RUN_RIGHTS_H
#define ST_RUN_RIGHTS_H

#include <linux/capability.h>
#include <stdint.h>

#include "base/err.h"

#define ST_RIGHT(cap) (UINT64_C(1) << (cap)) /* CAP_KILL and so on */

/* Keeps these capabilities and no others, nor can any be had again: not by a program with a set-user-id bit either. To be
 * called by the only thread there is. */
int st_rights_keep(uint64_t keep, st_err *err);

/* No call that restarts the machine, sets its clock, loads code into its kernel or reaches its ports. */
int st_rights_machine(st_err *err);

#endif
