/*
 * Questions to the core: asked of the follower (control/follower.h) by threads of their own, answered as JSON. The
 * control loop has no part in it. Private to src/api.
 */
#ifndef ST_API_ASK_H
#define ST_API_ASK_H

#include "api/state.h"
#include "control/follower.h"

/* A job's priority class as the site has it now. Its range is known while it is there for the account. */
typedef struct st_job_class {
    char name[ST_NAME_MAX + 1]; /* "": it has none */
    bool known;
    int64_t lowest, highest;
} st_job_class;

typedef struct st_question {
    st_api *api;
    st_call *call;
    st_identity who;
    uint64_t job;
    char name[ST_NAME_MAX + 2]; /* one too long for a name is still none */
    st_read_how how;            /* ST_READ_SHARED unless said otherwise */
    int64_t at_least;           /* the position that the caller has seen; 0: none */
    int64_t position;           /* of the answer */
    st_tx *tx;                  /* while `fill` runs */
    const char *type;           /* of the answer; NULL: JSON */
    st_strbuf out;
    st_job_class class; /* of a job that is asked about */
    char version[48];   /* of what is answered; "": it has none */
    int (*fill)(struct st_question *q, st_core *core, st_err *err);
    /* Around `fill`, which it calls through st_question_read: `ask` where there is something to get first, `work` for
     * what takes long afterwards; that has a thread of its own. */
    int (*ask)(struct st_question *q, st_err *err);
    int (*work)(struct st_question *q, st_err *err);
    void (*drop)(void *owner); /* NULL: nothing is owned */
    void *owner;
} st_question;

/* Defers the call, runs `fill` beside the loop, answers 200 with q->out; in one go, or in two. */
st_question *st_question_new(st_api *api, st_call *call,
                             int (*fill)(st_question *, st_core *, st_err *), const char *name,
                             uint64_t job);
void st_question_post(st_question *q);
void st_api_ask(st_api *api, st_call *call, int (*fill)(st_question *, st_core *, st_err *),
                const char *name, uint64_t job);
/* Runs q->fill with the committed state. */
int st_question_read(st_question *q, st_err *err);

/* why.c: the class that jobs of the account have; name NULL: none. */
void st_why_class(st_question *q, const char *name, const char *account);
/* The fields of a Why of q->job, of a core that only the caller has. */
int st_why_copy_json(st_question *q, st_core *copy, st_err *err);

/* What would become of a job: the spec is submitted to a copy of the core, and nothing is kept. `estimate`, or NULL, is told with it.
 * `drop` is given `owner`, which the spec points into, when that is known. */
void st_api_try(st_api *api, st_call *call, const st_job_spec *spec, const char *estimate,
                void (*drop)(void *owner), void *owner);

/* whatif.c: the asker's own jobs that an effect of this kind is about, for whomever it happens (0: for anybody). */
void st_trial_jobs_json(st_question *q, const st_core *core, const st_effects *fx,
                        st_effect_kind kind, uint64_t other, const char *key);

/* pools.c: what a change would make of a pool, told and not done; and the event of a change, of which a document says a part. */
void st_api_pool_try(st_api *api, st_call *call);
int st_api_pool_event(const st_doc *doc, const st_pool *now, st_event *ret, st_err *err);

/* The caller's account in the core's tree. */
int32_t st_question_root(const st_question *q, const st_core *core);
/* An account of the caller's subtree by name; fails as if it were not there. */
int st_question_account(const st_question *q, const st_core *core, const char *name, int32_t *ret,
                        st_err *err);

/* A caller that stands at the cluster: it may know what belongs to nobody. */
bool st_question_owner(const st_question *q);

#endif
