/*
 * A tenant's segment of the network: how its tasks on several nodes reach each other and nobody else. Private to run.
 *
 * Each task that has one notes it in its folder (segment.json). What a node must know, which nodes belong to whose
 * segment, is the union of these notes over the tasks that are not over, so it survives every program and is never kept
 * in step by hand. `st_segment_join` and `st_segment_settle` compare the kernel with it.
 *
 * Invariants:
 *  1 The rules of run/filter.h are set before a device takes its first packet, and stay: without them anybody on the
 *    nodes' network could speak in a segment.
 *  2 A segment has one number, its tenant's, which nobody else ever has; it comes from stintd.
 *  3 All of it happens under the lock of the folder of networks.
 *  4 From the first segment on, a device of our own keeps the port (`.hold`).
 */
#ifndef ST_RUN_SEGMENT_H
#define ST_RUN_SEGMENT_H

#include "run/run.h"

#define ST_SEGMENT_HOLD ".hold" /* among the networks: a name that no tenant has */

/* What is wrong with it, in one sentence. Pure. */
int st_segment_check(const st_run_segment *s, st_err *err);

/* Notes that the task of this folder has it. */
int st_segment_note(const char *dir, const st_run_segment *s, st_err *err);

/* The tenant's network, which exists, as the notes of its tasks say. */
int st_segment_join(const st_run *run, const char *tenant, st_err *err);

/* After a task that had one was removed: likewise, of one tenant, or of all with NULL. Who has no task with a
 * segment any more has no device. */
int st_segment_settle(const st_run *run, const char *tenant, st_err *err);

/* Whether the task of this folder has one. */
bool st_segment_noted(const char *dir);

/* Nothing is left of segments in the kernel but what goes with the namespaces. */
void st_segment_clear(const st_run *run);

#endif
