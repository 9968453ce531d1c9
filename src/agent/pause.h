/*
 * Taking a task off its devices without ending it, and putting it back: the steps of steps.h, carried
 * out. CUDA processes are moved to host memory by stint-cuda, then the whole container stands still.
 * Nothing here waits; what takes long is looked at in the next turn.
 */
#ifndef ST_AGENT_PAUSE_H
#define ST_AGENT_PAUSE_H

#include "agent/host.h"

void st_pause_begin(st_host *h, st_task *t, int64_t now_ms);
/* On the devices that the order names. */
void st_pause_end(st_host *h, st_task *t, const st_order *order, int64_t now_ms);
/* Goes on with what is under way. */
void st_pause_turn(st_host *h, int64_t now_ms);
/* Whether the process was taken off with the task. */
bool st_pause_has(const st_task *t, int64_t pid);

/* Whether stint-cuda has something to do here: for containers on GPUs, on simulated ones if a
 * stand-in for it was named. */
bool st_host_cuda(const st_host *h);

/* The name of what stint-cuda does for a task; WHAT is a letter or two. */
void st_cuda_name(const st_task *t, const char *what, char ret[128]);

#endif
