/*
 * The inside of the native engine. Private to src/engine; everything is under the engine's lock.
 */
#ifndef ST_ENGINE_NATIVE_STATE_H
#define ST_ENGINE_NATIVE_STATE_H

#include <pthread.h>

#include "base/map.h"
#include "base/vec.h"
#include "engine/native.h"
#include "engine/voices.h"

#define ST_WANT_TABLE(X)                                                        \
    X(ST_WANT_RUN, "run")                                                       \
    X(ST_WANT_NOTIFY, "notify")         /* it will have to leave at until_ms */ \
    X(ST_WANT_CHECKPOINT, "checkpoint") /* save by until_ms, then be gone */    \
    X(ST_WANT_PAUSE, "pause")           /* off the devices, kept in memory */   \
    X(ST_WANT_STOP, "stop")             /* another task of the gang has failed */
typedef enum st_want {
#define X(id, word) id,
    ST_WANT_TABLE(X)
#undef X
} st_want;

typedef struct native_task {
    st_grant grant;
    st_task_state state;
    int exit_code, signal;
    int64_t started_ms, ended_ms; /* by our clock; 0: not known */
    uint64_t heard_at;            /* the node's count of statuses when it was last named */
    st_used used;                 /* as last reported */
    st_scrub_result scrub;
    int64_t used_ms;    /* when; 0: never */
    st_used from, next; /* what it had used when a stretch of time began, and the one after it */
    int64_t next_ms;    /* when that was */
    bool left;          /* and that it was the last */

    /* Of a halted job. */
    uint64_t off;  /* the first revision of its node's list without it */
    bool gone;     /* its agent said so, or its lease is over */
    bool well;     /* it had ended by itself, with 0 */
    bool said_end; /* and when is known */
} native_task;

typedef struct native_job {
    uint64_t id;
    int stay;
    size_t at; /* in native.jobs */
    st_want want;
    int64_t until_ms; /* 0: none */
    int64_t begun_ms, deadline_ms;
    int64_t ran_ms, at_ms;         /* how long it had been on devices, and when that was */
    int64_t watts, vram_mib;       /* of one of its devices, at most */
    int64_t tenant, domain_tenant; /* serials of the accounts */
    bool named, domain_named;      /* st_engine_order */
    bool untrusted;                /* likewise */
    char *volumes;                 /* JSON; NULL: it has none */
    char *account, *user, *domain, *doc, *image, *type, *hosts; /* hosts: JSON, one per task */
    const char *profile;
    st_shape shape;
    st_yield yield;
    int tasks;
    native_task *task;
    int started;  /* tasks of which it is known since when they run */
    bool adopted; /* after a restore: it is as agents say it is */
    bool halted;  /* off its nodes' lists, and not known to be gone (native_halt.c) */
    bool due;     /* `report` waits for its receipt */
    int64_t due_ms;
    st_report report;
} native_job;

typedef struct native_entry {
    native_job *job;
    int task;
} native_entry;

typedef struct native_past {
    uint64_t job;
    int stay, task;
    bool over; /* its end had been heard */
    int64_t tenant;
    uint16_t devs;
    st_bounds bounds; /* when it left */
    st_used used;     /* as last said */
} native_past;

#define NATIVE_PAST \
    16384 /* tasks whose last lines a node may still bring: all it can end at once */

typedef struct native_node {
    int32_t id;
    char *name, *address;
    char *uuids[ST_DEVS_MAX];
    st_node_state state;
    st_pool_rules rules; /* of its pool, as they hold */
    bool removed;
    bool ours;            /* declared failed or held by us, so ours to take back */
    int64_t test;         /* the test that is to be made; 0 none */
    char *trial;          /* what its agent is told of that, JSON; NULL: nothing */
    int64_t test_told_ms; /* when what it found was last reported */
    bool lost, sick, synced;
    bool held;          /* it takes nothing new, says its agent */
    st_finding finding; /* of lost, sick and held */
    char reason[120];
    int ndevs;
    uint16_t sick_gpus;                /* that its agent cannot use */
    uint16_t out_gpus, stay_gpus;      /* out for what an agent said; of them, whose jobs stay */
    st_finding gpu_found[ST_DEVS_MAX]; /* of sick_gpus */
    char gpu_reason[ST_DEVS_MAX][120];
    int64_t gpu_told_ms[ST_DEVS_MAX]; /* when its state was last reported */
    uint64_t revision, heard;         /* heard: how many statuses */
    int64_t lease_ms;                 /* when it runs out */
    int64_t told_ms;                  /* when its state was last reported */
    int64_t skew_ms,
        skew_before_ms; /* our clock less its: the least of these statuses, and of those before */
    int skew_n;         /* how many these are */
    bool told;          /* something was said while the lead was not full: */
    int64_t told_epoch; /* the highest epoch it has heard of, */
    uint64_t told_revision;    /* the list it goes by, */
    ST_VEC(st_told_task) said; /* and all it has */
    ST_VEC(native_entry) list;
    ST_VEC(native_past) past; /* a ring */
    size_t past_at;
    bool has_key;
    unsigned char key[ST_KEY_BYTES];
    st_voices voices;
    bool told_two;                  /* that it is frozen was written down */
    int64_t flag_ms[ST_FLAG_COUNT]; /* when each was last reported; 0: never */
    char *images;                   /* that it is to have ready, JSON; NULL: none */
    ST_VEC(uint64_t) image_said;    /* what was reported of them, as hashes */
    int64_t image_ms;               /* when that is reported again */
    int64_t note_no;                /* the last note on neighbours that was taken; 0: none */
} native_node;

typedef struct native {
    st_engine base;
    st_native_options opt;
    pthread_mutex_t lock;
    ST_VEC(native_node *) nodes; /* with an agent */
    st_map *by_name;             /* name -> index in nodes */
    st_idmap *by_id;             /* the core's number -> index in nodes */
    ST_VEC(native_job *) jobs;
    ST_VEC(native_job *) halted; /* of these, in no order */
    st_idmap *by_job;            /* id -> index in jobs */
    st_idmap *faults; /* id -> how often nodes could not start it, for their own reasons */
    int64_t sweep_ms;
    st_lead lead;
    int64_t branch, position;

    bool measured; /* somebody asks for measures */
    ST_VEC(st_measure) measures;

    /* What to tell once the lock is released. */
    ST_VEC(int32_t) touched;
    ST_VEC(st_report) reports;
} native;

#define NATIVE_SWEEP_MS INT64_C(1000)
#define NATIVE_AGAIN_MS INT64_C(2000) /* between two reports of the same thing */

/* native.c */
native_node *st_native_node_of(const native *e, int32_t id);
native_job *st_native_job_of(const native *e, uint64_t id);
void st_native_touch(native *e, native_node *node);
void st_native_touch_job(native *e, const native_job *job);
/* Takes the job's tasks off its nodes' lists. */
void st_native_unlist(native *e, const native_job *job);
/* Whether the task lately was on the node. */
native_past *st_native_was(const native_node *node, uint64_t job, int stay, int task);
void st_native_lock(native *e);
/* Unlocks, then tells what was noted meanwhile. */
void st_native_unlock(native *e);

/* native_judge.c: what tasks make of a job, and silence of a node. */
void st_native_judge(native *e, native_job *job, int64_t now);
void st_native_judge_node(native *e, native_node *node, int64_t now);
void st_native_remind(native *e, int64_t now);
/* The job whose task on this node is meant; NULL for one that is none of ours any more. */
native_job *st_native_meant(const native *e, const native_node *node, const st_agent_task *said);

/* Sends the job's report now, and again until its receipt. */
void st_native_send(native *e, native_job *job, int64_t now);
/* Whether something of a task in this state is on the node. */
bool st_native_there(st_task_state state);
int64_t st_native_ended_at(const native_job *job, const st_agent_status *status,
                           const st_agent_task *said, int64_t now);

/* native_halt.c: what was told to be gone, and whether it is. */
void st_native_halt(native *e, native_job *job, int64_t now);
void st_native_unhalt(native *e, native_job *job); /* it is forgotten */
void st_native_hear_halted(native *e, const native_node *node, const st_agent_status *status,
                           int64_t now);
void st_native_judge_halted(native *e, int64_t now);
/* A task that is on no list has ended: told once more to whoever has not heard. */
void st_native_hear_late(native *e, const native_node *node, const st_agent_status *status,
                         const st_agent_task *said, int64_t now);

/* native_restored.c: agents that may know more than the store. */
void st_native_hear_restored(native *e, native_node *node, const st_agent_status *status);
void st_native_on_restored(st_engine *engine, st_lead lead, const uint64_t *adopted, size_t n);
void st_native_on_told(st_engine *engine, st_told *ret);

/* native_voice.c: who speaks for a node. */
void st_native_bind(native_node *node, const st_engine_node *said);
void st_native_listen(native *e, native_node *node, int64_t now);
/* Whether the task may be on the list: of a frozen node only what is there. */
bool st_native_shown(const native_node *node, const native_task *task);
bool st_native_served(const native_node *node, const char *boot);
/* Something is wrong with what the node says; at most once a minute each. */
void st_native_flag(native *e, native_node *node, st_flag flag, const char *reason, int64_t now);

/* native_used.c: what tasks used. */
void st_native_used(native *e, native_node *node, const st_agent_status *status, int64_t now);
void st_native_on_measures(st_engine *engine, st_measures *ret);
bool st_native_on_used(st_engine *engine, uint64_t job, st_used *ret);
bool st_native_on_ranks(st_engine *engine, uint64_t job, st_rank_fn *fn, void *ctx);
void st_native_bounds(const native_job *job, int task, int64_t now, st_bounds *ret);

/* native_notes.c: who slows whom there. */
void st_native_notes(native *e, native_node *node, const st_agent_status *status, int64_t now);

/* native_json.c */
void st_native_hosts(const native *e, const st_engine_order *o, st_strbuf *out);
void st_native_list(const native *e, const native_node *node, st_strbuf *out);
/* Agent's address and UUIDs from what it said of itself. */
void st_native_read_doc(native_node *node, const char *doc);

/* lease of the agent: shorter than ours, so that it is done killing when we begin elsewhere */
int64_t st_native_lease_told(const native *e);

/* native_images.c */
void st_native_images(st_engine *engine, int32_t id, const char *list);
void st_native_take_images(native *e, native_node *node, const st_agent_status *status,
                           int64_t now);

#endif
