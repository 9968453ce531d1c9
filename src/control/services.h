/*
 * Services: documents that say what is wanted (kind "service"), what the controller remembers of each (kind
 * "service-state"), and commands that change either. service/service.h decides, api/services_run.c carries out.
 *
 * Invariants:
 *  1 A replica is a job like any other, submitted and cancelled as whoever made the service; the transaction that submits it
 *    writes down whose it is. So a stintd that ends at any moment finds its replicas again.
 *  2 What is wanted is changed by commands of people and by the controller's last word, when nothing of a removed service is
 *    left. What the controller remembers is changed by the controller alone.
 *  3 A service of one's account is found by its name, of another account that one sees by ACCOUNT/NAME. Others are not there.
 *
 * Everything in st_service is read and written with the lock held. One is freed by the controller's command only, so for the
 * controller's thread a pointer stays good.
 */
#ifndef ST_CONTROL_SERVICES_H
#define ST_CONTROL_SERVICES_H

#include <jansson.h>
#include <pthread.h>

#include "control/control.h"
#include "service/service.h"

#define ST_SERVICE_KIND     "service"
#define ST_SERVICE_STATE    "service-state"
#define ST_SERVICE_NAME_MAX 48
#define ST_SERVICE_PATH_MAX 255
#define ST_SERVICE_WHY_MAX  300
#define ST_SERVICE_KEPT_MAX (ST_NAME_MAX + 1 + ST_SERVICE_NAME_MAX + 1)

/* ---- what is wanted (services_doc.c) ------------------------------------------------------- */

/* As it is written. Texts are the document's. */
typedef struct st_service_said {
    const char *name, *account, *about, *path;
    const st_doc_node *job;
    int replicas, min, max, port, failures, surge, unavailable, health, scale;
    int64_t target, interval_ms, timeout_ms, start_ms, wait_ms, wait_max_ms, drain_ms, up_ms,
        down_ms, idle_ms;
} st_service_said;

/* Reads a whole one; what is not written has its default. */
int st_service_read(const st_doc *doc, const st_doc_node *map, st_service_said *ret, st_err *err);
/* The same of JSON. *ret_doc has the texts of *ret. */
int st_service_read_json(const json_t *wanted, st_doc **ret_doc, st_service_said *ret, st_err *err);
void st_service_spec(const st_service_said *said, st_svc_spec *ret);

/* ---- services ------------------------------------------------------------------------------- */

typedef struct st_service_replica {
    int64_t serial;
    int revision;
    uint64_t job;    /* 0: it is being submitted */
    int64_t left_ms; /* since when it gets no new requests; 0: it may */

    /* As it was last seen. */
    st_svc_state state;
    int64_t since_ms;
    bool began;  /* its tasks have begun in this stay */
    bool moving; /* its place goes away */
    int stay;
    int32_t node; /* of its first task; -1: it has none */
    char node_name[ST_NAME_MAX + 1];
    bool agent; /* that node has an agent */

    /* Its health, and what it is asked just now. */
    bool healthy;     /* the last check was good */
    int bad;          /* checks that were not, in a row */
    int64_t check_ms; /* when to look again */
    char trouble[120];
    bool checking; /* a check is under way */
    bool ending;   /* its job was told to end */
    int open;
    int64_t turn; /* of its last request, counted over the service; 0: it had none */
} st_service_replica;

typedef struct st_service {
    char account[ST_NAME_MAX + 1], name[ST_SERVICE_NAME_MAX + 1];
    char kept[ST_SERVICE_KEPT_MAX]; /* ACCOUNT/NAME */
    st_identity by;                 /* who made it, without a token */
    char user[ST_NAME_MAX + 1];     /* whose its jobs are */
    int64_t made_ms, version;
    st_svc_spec spec;
    int port;
    st_svc_health health;
    char path[ST_SERVICE_PATH_MAX + 1];
    int64_t interval_ms, timeout_ms;
    int failures;
    json_t *wanted; /* as it was written, with defaults left out, without the template */
    char *job;      /* the template, sealed */

    /* The controller's. */
    ST_VEC(st_service_replica) replicas;
    st_svc_memory memory;
    int64_t next_serial;
    char why[ST_SERVICE_WHY_MAX]; /* why a start was refused, or how a replica ended, last */
    int64_t why_ms;
    int64_t look_ms; /* when to decide again though nothing changes */

    /* What it tells, and what came in at its route. */
    int64_t queue, latency_ms, told_ms;
    int64_t last_ms;
} st_service;

typedef struct st_services {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the controller has something to look at */
    ST_VEC(st_service *) all;
} st_services;

st_services *st_services_new(void);
void st_services_free(st_services *s);
st_services *st_control_services(st_control *ctl);
/* From the store, before the loop begins. */
int st_services_load(st_services *s, st_store *store, st_err *err);

/* With the lock held. NULL: there is none. */
st_service *st_services_kept(const st_services *s, const char *kept);
/* The one that somebody at `account` means by NAME or ACCOUNT/NAME; whether the caller sees it is the caller's to ask. */
st_service *st_services_find(const st_services *s, const char *account, const char *text);
st_service_replica *st_service_replica_of(st_service *s, int64_t serial);

/* What is remembered of it, for the store. */
json_t *st_service_state_json(const st_service *s);

/* ---- commands -------------------------------------------------------------------------------- */

typedef enum st_service_verb {
    ST_SERVICE_CREATE,
    ST_SERVICE_SET,
    ST_SERVICE_RESTART, /* every replica is replaced */
    ST_SERVICE_REMOVE,  /* its replicas leave, then it is gone */
    ST_SERVICE_VERBS
} st_service_verb;

typedef struct st_cmd_service {
    st_cmd cmd;
    st_identity who;
    st_service_verb verb;
    char kept[ST_SERVICE_KEPT_MAX];
    char account[ST_NAME_MAX + 1], name[ST_SERVICE_NAME_MAX + 1];
    char user[ST_NAME_MAX + 1]; /* of CREATE */
    json_t *wanted;  /* what is said of it; of SET: what is to be other. Borrowed; NULL: nothing */
    const char *job; /* the template, sealed; NULL: as it is */
    const char *
        was; /* of SET with a template: the sealed one it was made from; another is there now: ST_EVERSION */
    /* Given. */
    int64_t version;
    char *doc; /* as it is kept; the caller's to free */
} st_cmd_service;

void st_cmd_service_init(st_cmd_service *cmd);

/* The controller's: writes what it remembers, together with a submit where there is one. */
typedef struct st_cmd_replica {
    st_cmd cmd;
    st_cmd_submit *submit; /* NULL: none */
    const char *kept;
    int64_t made_ms; /* of the service it is about: another one of this name is not it */
    json_t *
        state; /* borrowed; of a submit the last replica in it gets the job. NULL: the service is gone */
} st_cmd_replica;

void st_cmd_replica_init(st_cmd_replica *cmd);

/* The controller's: what became of the replicas' jobs. */
typedef struct st_cmd_look {
    st_cmd cmd;
} st_cmd_look;

void st_cmd_look_init(st_cmd_look *cmd);

/* Templates that are not sealed under the newest key, sealed anew; in the loop. */
int st_services_reseal(st_tx *tx, st_err *err);

#endif
