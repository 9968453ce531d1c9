/*
 * What the next submit of such a job may ask for, by what this one used: sentences for people. Nothing is said of what was not
 * measured, nor of less than half a minute of GPU time.
 */
#ifndef ST_RULES_ADVICE_H
#define ST_RULES_ADVICE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct st_advice_use {
    int64_t gpus;      /* of one task */
    int64_t asked_mib; /* memory of one task; 0: not known */
    int64_t whole_mib; /* of one whole GPU; 0: not known */
    int64_t peak_mib;  /* the most a task had in use; -1: not measured */
    int64_t seen_ms;   /* GPU time with samples */
    int64_t busy_ms;   /* of that; -1: not measured */
} st_advice_use;

typedef void st_advice_fn(void *ctx, const char *sentence);
void st_advice(const st_advice_use *use, st_advice_fn *fn, void *ctx);

#endif
