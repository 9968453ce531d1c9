/* Symptoms: what is seen of a node in service that no single look tells: a link that goes up and down, memory errors that grow,
 * lanes that are lost, a GPU that is held down while its siblings are not, memory of the host that runs out.
 *
 * Invariants
 *  1 The same looks at the same times give the same symptoms: no clock, no chance.
 *  2 What is there for a moment is none: it lasts, happens again, or grows, as the thresholds say.
 *  3 What was not measured neither begins a symptom nor ends one. Counters that fell begin anew.
 *
 * Who is asked says it for as long as it lasts: the node takes nothing new meanwhile, and what runs there goes on. */
#ifndef ST_HEALTH_SYMPTOMS_H
#define ST_HEALTH_SYMPTOMS_H

#include "health/health.h"
#include "model/types.h"

/* X(name, default, least, most, about): the thresholds. */
#define ST_SYMPTOM_TABLE(X)                                                                      \
    X(lasts_ms, 60000, 0, 86400000, "time for which a thing is wrong before it is said, in ms")  \
    X(window_ms, 3600000, 1000, 86400000, "time in which changes and errors are counted, in ms") \
    X(link_changes, 3, 1, 1000, "times that the number of links changes in that time")           \
    X(corrected, 1000, 1, 1000000000, "memory errors that are corrected in that time")           \
    X(uncorrected, 1, 1, 1000000, "memory errors that are not, in that time")                    \
    X(memory_percent, 2, 0, 90, "memory of the host that is to be free, in percent")
typedef struct st_symptom_rules {
#define X(name, ...) int64_t name;
    ST_SYMPTOM_TABLE(X)
#undef X
} st_symptom_rules;

/* "lasts_ms=30000,link_changes=5": the defaults, but for these; NULL or "": all of them. */
int st_symptom_rules_read(const char *text, st_symptom_rules *ret, st_err *err);

/* One look at a GPU; ST_DIAG_UNKNOWN where something was not measured. */
typedef struct st_symptom_look {
    int64_t links, corrected, uncorrected, remap_pending, width, width_max;
    int64_t throttle; /* bits, as the driver has them */
} st_symptom_look;

/* A count over the window: of its two halves' beginnings the older counts. */
typedef struct st_symptom_count {
    bool known;
    int64_t value, before, at_ms;
} st_symptom_count;

typedef enum st_symptom {
    ST_SYMPTOM_UNCORRECTED,
    ST_SYMPTOM_REMAP,
    ST_SYMPTOM_FLAPS,
    ST_SYMPTOM_LINKS,
    ST_SYMPTOM_LANES,
    ST_SYMPTOM_CORRECTED,
    ST_SYMPTOM_THROTTLED,
    ST_SYMPTOM_MEMORY, /* of the host */
    ST_SYMPTOM_COUNT
} st_symptom;

typedef struct st_symptoms_gpu {
    st_symptom_count corrected, uncorrected, changes;
    int64_t links, most,
        changed; /* the last number of links, the most ever, how often it changed */
    int64_t since_ms[ST_SYMPTOM_COUNT]; /* 0: it is not there */
    int64_t value[ST_SYMPTOM_COUNT];
} st_symptoms_gpu;

typedef struct st_symptoms {
    st_symptom_rules rules;
    st_symptoms_gpu gpu[ST_DEVS_MAX]; /* of the host: the first's */
} st_symptoms;

void st_symptoms_init(st_symptoms *s, const st_symptom_rules *rules);
/* At now_ms, which is above 0 and never falls. memory_percent: of the host that is free, or ST_DIAG_UNKNOWN. */
void st_symptoms_see(st_symptoms *s, const st_symptom_look *gpu, int n, int64_t memory_percent,
                     int64_t now_ms);
/* The gravest that lasts, in words; false: there is none. */
bool st_symptoms_worst(const st_symptoms *s, int n, int64_t now_ms, st_finding *ret,
                       char text[ST_DIAG_TEXT]);

#endif
