/*
 * The smallest part of a fleet that something fits: a MIG slice, a share of a GPU, a GPU, several
 * of one node, several nodes.
 */
#ifndef ST_RULES_FIT_H
#define ST_RULES_FIT_H

#include <jansson.h>

#include "rules/estimate.h"
#include "rules/rules.h"

typedef struct st_kinds {
    size_t n;
    st_rules_type type[ST_TYPES_MAX];
    uint32_t allowed; /* bit t set: type t will do */
} st_kinds;

/* What the rules know of the fleet: from the callback, or the types everybody knows. */
void st_kinds_read(const st_rules_options *options, st_kinds *ret);
/* Only the types the job names, if it names any. */
int st_kinds_restrict(st_kinds *fleet, const json_t *job, st_err *err);
/* Memory of one whole GPU that can be used. */
int64_t st_kinds_vram_mib(const st_rules_type *type);

typedef struct st_fit {
    st_level level;
    st_mig profile;
    int gpus, tasks;
    int64_t share_m;
    uint32_t types;
    int64_t each_mib;  /* what is needed on each GPU, or in the slice */
    int64_t taken_mib; /* memory of the GPUs that nobody else has */
    int best;          /* the type it was found on */
} st_fit;

typedef struct st_fit_rules {
    bool share;    /* MPS will do */
    int tasks_max; /* nodes */
} st_fit_rules;

/* Of all that fit, the one that takes the least memory; of equals the stronger fence, then the
 * type that comes first. */
bool st_fit_smallest(const st_kinds *fleet, const st_estimate_need *need, const st_fit_rules *rules,
                     st_fit *ret);

/* About an eighth of a GPU: a 1g slice where there is MIG, a share where that is allowed, else a
 * GPU. */
void st_fit_eighth(const st_kinds *fleet, bool share, st_fit *ret);

/* Writes the fit into the document: level, profile, share, gpus, tasks, type, and cpu and ram in
 * proportion; keys it has are left alone. */
void st_fit_write(const st_fit *fit, const st_kinds *fleet, json_t *job);
void st_fit_say(const st_fit *fit, const st_kinds *fleet, st_strbuf *why);

/* Whether the document says itself how much of a GPU it wants. */
bool st_fit_said(const json_t *job);

#define ST_GPU_CPU     8 /* that come with a GPU unless the job says otherwise */
#define ST_GPU_RAM_GIB 64

#endif
