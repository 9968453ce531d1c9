/*
 * Work that has no place in the control loop: questions, exports of a month, comparing everything. It runs in threads of its own, a few at a time and in
 * order, so that neither the control loop nor the threads that serve connections wait for it. Private to src/api.
 */
#ifndef ST_API_WORK_H
#define ST_API_WORK_H

#include <stdbool.h>

typedef struct st_work st_work;

/* `nice`: how much its threads leave to others, as nice(1) has it. */
st_work *st_work_new(int threads_max, int waiting_max, int nice);
/* Waits for what runs, and for what waits. */
void st_work_free(st_work *w);

/* Runs fn(arg) in a thread, at once or when it is its turn. False: as many as may wait do, and fn will not be
 * called. */
bool st_work_run(st_work *w, void (*fn)(void *arg), void *arg);

#endif
