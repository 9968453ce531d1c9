/*
 * Questions to the core: asked in the loop, answered as JSON. Private to src/api.
 */
#ifndef ST_API_ASK_H
#define ST_API_ASK_H

#include "api/state.h"

typedef struct st_question {
    st_cmd_ask ask; /* first */
    st_api *api;
    st_call *call;
    st_identity who;
    uint64_t job;
    char name[ST_NAME_MAX + 2]; /* one too long for a name is still none */
    st_tx *tx;                  /* while `fill` runs */
    const char *type;           /* of the answer; NULL: JSON */
    st_strbuf out;
    char tag[32]; /* of the ETag; "": none */
    int (*fill)(struct st_question *q, st_core *core, st_err *err);
    const st_job_spec *trial;  /* of st_api_try */
    void (*drop)(void *owner); /* NULL: nothing is owned */
    void *owner;
} st_question;

/* Defers the call, runs `fill` in the loop, answers 200 with q->out; in one go, or in two. */
st_question *st_question_new(st_api *api, st_call *call,
                             int (*fill)(st_question *, st_core *, st_err *), const char *name,
                             uint64_t job);
void st_question_post(st_question *q);
void st_api_ask(st_api *api, st_call *call, int (*fill)(st_question *, st_core *, st_err *),
                const char *name, uint64_t job);

/* What would become of a job: the spec is submitted to a copy of the core, and nothing is kept.
 * `drop` is given `owner`, which the spec points into, when that is known. */
void st_api_try(st_api *api, st_call *call, const st_job_spec *spec, void (*drop)(void *owner),
                void *owner);

/* The caller's account in the core's tree. */
int32_t st_question_root(const st_question *q, const st_core *core);
/* An account of the caller's subtree by name; fails as if it were not there. */
int st_question_account(const st_question *q, const st_core *core, const char *name, int32_t *ret,
                        st_err *err);

/* A caller that stands at the cluster: it may know what belongs to nobody. */
bool st_question_owner(const st_question *q);

#endif
