/* Incidents: what is wrong with nodes, why, and whom it concerned.
 *
 * A fault has a kind, and a kind has one cause. Faults of one kind in one pool that come one after the other are one
 * incident. It is open as long as one of its nodes is out for it, and a while after that (policy `incident_quiet`). */
#ifndef ST_MODEL_INCIDENT_H
#define ST_MODEL_INCIDENT_H

#include "base/vec.h"
#include "model/types.h"

/* X(id, name, about) */
#define ST_CAUSE_TABLE(X)                                                                    \
    X(ST_CAUSE_HARDWARE, "hardware", "a part is broken or wears out")                        \
    X(ST_CAUSE_SOFTWARE, "software", "the driver, the system or the runtime does not work")  \
    X(ST_CAUSE_NETWORK, "network", "the node cannot be reached; nobody knows what it does")  \
    X(ST_CAUSE_CONFIG, "configuration", "the node, or what looks after it, is set up wrong") \
    X(ST_CAUSE_USER, "user", "programs of jobs fail, and the node is well")
typedef enum st_cause {
#define X(id, ...) id,
    ST_CAUSE_TABLE(X)
#undef X
        ST_CAUSE_COUNT
} st_cause;

/* What a fault does to its node. LOST is a fact: whatever ran there is gone or cannot be counted on. JUDGED is an opinion,
 * which may be wrong in a storm: a breaker and a limit hold it back. NOTED takes no node out of service. */
typedef enum st_fault_weight { ST_FAULT_NOTED, ST_FAULT_JUDGED, ST_FAULT_LOST } st_fault_weight;

/* X(id, name, cause, weight, about). NONE is of those who say nothing; it is in no incident. */
#define ST_FAULT_TABLE(X)                                                                          \
    X(ST_FAULT_NONE, "none", ST_CAUSE_SOFTWARE, LOST, "nobody said what it is")                    \
    X(ST_FAULT_SILENT, "silent", ST_CAUSE_NETWORK, LOST, "the agent has been silent")              \
    X(ST_FAULT_LEASE, "lease", ST_CAUSE_NETWORK, LOST, "the agent did not reach stintd in time")   \
    X(ST_FAULT_XID, "xid", ST_CAUSE_HARDWARE, JUDGED, "a GPU had an error")                        \
    X(ST_FAULT_GPU, "gpu-lost", ST_CAUSE_HARDWARE, JUDGED, "a GPU does not answer")                \
    X(ST_FAULT_RECOVERY, "recovery", ST_CAUSE_HARDWARE, JUDGED, "the driver asks for a recovery")  \
    X(ST_FAULT_DRIVER, "driver", ST_CAUSE_SOFTWARE, JUDGED, "the GPU driver does not work")        \
    X(ST_FAULT_LEFT, "left", ST_CAUSE_SOFTWARE, JUDGED, "a job has left something running")        \
    X(ST_FAULT_SCRUB, "scrub", ST_CAUSE_SOFTWARE, JUDGED, "GPU memory could not be cleared")       \
    X(ST_FAULT_DISK, "disk", ST_CAUSE_CONFIG, JUDGED, "the disk of the node is full or fails")     \
    X(ST_FAULT_UNFIT, "unfit", ST_CAUSE_CONFIG, JUDGED, "the node lacks what its jobs need")       \
    X(ST_FAULT_TEST, "test", ST_CAUSE_HARDWARE, JUDGED, "a test of the node failed")               \
    X(ST_FAULT_CHECKER, "checker", ST_CAUSE_CONFIG, NOTED, "a test could not be made")             \
    X(ST_FAULT_PROGRAM, "program", ST_CAUSE_USER, NOTED, "programs of jobs caused errors on GPUs") \
    X(ST_FAULT_OTHER, "other", ST_CAUSE_SOFTWARE, JUDGED, "the agent says that it cannot be used") \
    X(ST_FAULT_LINK, "link", ST_CAUSE_HARDWARE, JUDGED, "an NVLink is down, or goes up and down")  \
    X(ST_FAULT_WEAR, "wear", ST_CAUSE_HARDWARE, JUDGED, "memory of a GPU wears out")               \
    X(ST_FAULT_PCIE, "pcie", ST_CAUSE_HARDWARE, JUDGED, "a GPU has lost lanes of PCIe")            \
    X(ST_FAULT_HEAT, "heat", ST_CAUSE_HARDWARE, JUDGED, "heat or a power brake slows a GPU")       \
    X(ST_FAULT_MEMORY, "memory", ST_CAUSE_CONFIG, JUDGED, "the node runs out of memory")           \
    X(ST_FAULT_CLOCK, "clock", ST_CAUSE_CONFIG, NOTED, "the clock of the node is wrong")
typedef enum st_fault {
#define X(id, ...) id,
    ST_FAULT_TABLE(X)
#undef X
        ST_FAULT_COUNT
} st_fault;

/* How far it reaches: the least that has all its nodes. */
#define ST_SCOPE_TABLE(X)                            \
    X(ST_SCOPE_GPU, "gpu", "one GPU")                \
    X(ST_SCOPE_NODE, "node", "one node")             \
    X(ST_SCOPE_RACK, "rack", "nodes of one rack")    \
    X(ST_SCOPE_SWITCH, "switch", "nodes of a block") \
    X(ST_SCOPE_POOL, "pool", "nodes of the pool")
typedef enum st_scope {
#define X(id, ...) id,
    ST_SCOPE_TABLE(X)
#undef X
        ST_SCOPE_COUNT
} st_scope;

/* What is told of one. X(id, name, about) */
#define ST_INCIDENT_TABLE(X)                                                             \
    X(ST_INCIDENT_OPENED, "opened", "it has begun, with this node")                      \
    X(ST_INCIDENT_JOINED, "joined", "this node has the fault too")                       \
    X(ST_INCIDENT_HELD, "held", "this node has it too, and is not taken out of service") \
    X(ST_INCIDENT_TRIPPED, "tripped", "too many nodes have it: somebody must look")      \
    X(ST_INCIDENT_BACK, "back", "this node is over it")                                  \
    X(ST_INCIDENT_RESET, "reset", "somebody has looked: nodes are taken out again")      \
    X(ST_INCIDENT_CLOSED, "closed", "all its nodes are over it")
typedef enum st_incident_news {
#define X(id, ...) id,
    ST_INCIDENT_TABLE(X)
#undef X
        ST_INCIDENT_COUNT
} st_incident_news;

/* What was said about one node. */
typedef struct st_finding {
    st_fault kind;
    int gpu;           /* -1: of the node */
    int64_t code;      /* of XID its number, of RECOVERY the action; 0: none */
    const char *words; /* in which it was said; NULL: none */
} st_finding;

typedef struct st_incident_node {
    int32_t node;
    int gpu;
    int64_t code;
    int64_t from_ms;  /* when it was first found */
    bool out;         /* it is out of service for it, or held */
    bool held;        /* it goes on, since too many others are out */
    int64_t since_ms; /* of OUT: when that began */
    int64_t taken_ms; /* when it was last taken out of service; -1: never */
    int64_t out_ms;   /* how long it was out before */
} st_incident_node;

/* A job that was there when its node was found to have it. */
typedef struct st_incident_job {
    uint64_t job;
    int32_t account, node;
} st_incident_job;

#define ST_INCIDENT_JOBS 1024 /* of one incident that are listed */

typedef struct st_incident {
    uint64_t id;
    st_fault kind;
    int32_t pool;
    int64_t from_ms, last_ms; /* the first and the last that was found, or came back */
    bool over;
    int64_t to_ms; /* of OVER: when */
    int64_t times; /* how often something was found */
    int64_t more;  /* jobs that are not listed */
    bool breaker;  /* nobody else is taken out for its cause */
    char *words;   /* of what was found first; "": none */
    ST_VEC(st_incident_node) nodes;
    ST_VEC(st_incident_job) jobs;
} st_incident;

const char *st_cause_name(st_cause cause);
const char *st_fault_name(st_fault fault);
const char *st_fault_about(st_fault fault);
st_cause st_fault_cause(st_fault fault);
st_fault_weight st_fault_weighs(st_fault fault);
/* By name; NONE where it is none of them. */
st_fault st_fault_parse(const char *name);
const char *st_scope_name(st_scope scope);
const char *st_incident_name(st_incident_news news);
/* NULL: the node is none of its. */
st_incident_node *st_incident_find(const st_incident *incident, int32_t node);
/* How many of its nodes are out of service, or held. */
size_t st_incident_out(const st_incident *incident);
void st_incident_free(st_incident *incident);

#endif
