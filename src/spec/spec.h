/*
 * Nouns as documents: what people write about a job, an account, a pool or a GPU type, read into
 * what the core takes. Scenarios, the API and the CLI read the same fields with the same words
 * and the same complaints; doc/reference/scenarios.md and doc/reference/api.md list them.
 *
 * Reading does not look at any state but names: the caller says what a GPU type or pool is
 * called (st_spec_names), so that a scenario, a client and a server can each use their own.
 */
#ifndef ST_SPEC_SPEC_H
#define ST_SPEC_SPEC_H

#include "core/core.h"
#include "spec/fields.h"

/* How names become numbers. Both functions fail with "FILE:LINE: there is no ...". */
typedef struct st_spec_names {
    void *ctx;
    int (*type)(void *ctx, const st_doc *doc, const st_doc_node *node, int32_t *ret, st_err *err);
    int (*pool)(void *ctx, const st_doc *doc, const st_doc_node *node, int32_t *ret, st_err *err);
    size_t (*ntypes)(void *ctx);
    st_board (*board)(void *ctx, int32_t type);
} st_spec_names;

/* "there is no pool "gold" (did you mean "gold1"?)"; names ends with NULL. */
int st_spec_missing(const st_doc *doc, const st_doc_node *node, const char *what,
                    const char *const *names, st_err *err);

/* node_labels and exclude_nodes, lists of words or one word, each NULL where it is not given, as a pick (model/pick.h). */
int st_spec_pick(const st_doc *doc, const st_doc_node *labels, const st_doc_node *exclude,
                 st_strbuf *ret, st_err *err);
/* The node and all below it as JSON. */
void st_spec_json(const st_doc_node *node, st_strbuf *out);

/* ---- jobs ---------------------------------------------------------------------------- */

/* What a job asks of the scheduler, as written. Embedded in the fields of whoever reads it. */
typedef struct st_job_fields {
    const char *account, *user, *profile;
    const st_doc_node *type, *topology, *priority, *pool;
    int gpus, tasks, level, yield, on_fault;
    int64_t cpu_m, ram_mib, share_m, vram_mib, limit_ms, grace_ms;
    bool latency_critical;
} st_job_fields;

#define ST_JOB_FIELDS_INIT                                                                        \
    {                                                                                             \
        .gpus = -1, .tasks = 1, .level = -1, .yield = ST_YIELD_REQUEUE, .limit_ms = ST_TIME_NEVER \
    }

#define ST_JOB_GPUS_MAX 4096 /* more than any node has, so that asking too much can be explained */

extern const char *const st_level_words[], *const st_yield_words[], *const st_fault_words[],
                                                                        *const st_topo_words[];

/* The rows of a table of fields whose struct S has a st_job_fields M. */
#define ST_JOB_ROWS(S, M)                                                                          \
    {.key = "account", .kind = ST_F_TEXT, .offset = offsetof(S, M.account)},                       \
        {.key = "user", .kind = ST_F_NAME, .offset = offsetof(S, M.user)},                         \
        {.key = "gpus",                                                                            \
         .kind = ST_F_INT,                                                                         \
         .offset = offsetof(S, M.gpus),                                                            \
         .lo = 0,                                                                                  \
         .hi = ST_JOB_GPUS_MAX},                                                                   \
        {.key = "tasks",                                                                           \
         .kind = ST_F_INT,                                                                         \
         .offset = offsetof(S, M.tasks),                                                           \
         .lo = 1,                                                                                  \
         .hi = ST_TASKS_MAX},                                                                      \
        {.key = "type", .kind = ST_F_NODE, .offset = offsetof(S, M.type)},                         \
        {.key = "cpu",                                                                             \
         .kind = ST_F_MILLI,                                                                       \
         .offset = offsetof(S, M.cpu_m),                                                           \
         .lo = 0,                                                                                  \
         .hi = ST_QTY_MAX},                                                                        \
        {.key = "ram", .kind = ST_F_MIB, .offset = offsetof(S, M.ram_mib)},                        \
        {.key = "level",                                                                           \
         .kind = ST_F_WORD,                                                                        \
         .offset = offsetof(S, M.level),                                                           \
         .words = st_level_words},                                                                 \
        {.key = "profile", .kind = ST_F_TEXT, .offset = offsetof(S, M.profile)},                   \
        {.key = "share",                                                                           \
         .kind = ST_F_MILLI,                                                                       \
         .offset = offsetof(S, M.share_m),                                                         \
         .lo = 1,                                                                                  \
         .hi = ST_WHOLE_M},                                                                        \
        {.key = "vram", .kind = ST_F_MIB, .offset = offsetof(S, M.vram_mib)},                      \
        {.key = "topology", .kind = ST_F_NODE, .offset = offsetof(S, M.topology)},                 \
        {.key = "priority", .kind = ST_F_NODE, .offset = offsetof(S, M.priority)},                 \
        {.key = "limit", .kind = ST_F_DURATION, .offset = offsetof(S, M.limit_ms)},                \
        {.key = "on_preempt",                                                                      \
         .kind = ST_F_WORD,                                                                        \
         .offset = offsetof(S, M.yield),                                                           \
         .words = st_yield_words},                                                                 \
        {.key = "grace", .kind = ST_F_DURATION, .offset = offsetof(S, M.grace_ms)},                \
        {.key = "on_fault",                                                                        \
         .kind = ST_F_WORD,                                                                        \
         .offset = offsetof(S, M.on_fault),                                                        \
         .words = st_fault_words},                                                                 \
        {.key = "latency_critical", .kind = ST_F_BOOL, .offset = offsetof(S, M.latency_critical)}, \
    {                                                                                              \
        .key = "pool", .kind = ST_F_NODE, .offset = offsetof(S, M.pool)                            \
    }

/* What it waits for besides room, and whether it is tried again (spec/flow.h). */
typedef struct st_flow_fields {
    const st_doc_node *after, *retry_on;
    int never, throttle, retries;
    int64_t retry_after_ms, retry_max_ms;
    bool hold;
} st_flow_fields;

extern const char *const st_never_words[];

#define ST_FLOW_ROWS(S, M)                                                                      \
    {.key = "after", .kind = ST_F_NODE, .offset = offsetof(S, M.after)},                        \
        {.key = "if_never",                                                                     \
         .kind = ST_F_WORD,                                                                     \
         .offset = offsetof(S, M.never),                                                        \
         .words = st_never_words},                                                              \
        {.key = "hold", .kind = ST_F_BOOL, .offset = offsetof(S, M.hold)},                      \
        {.key = "throttle",                                                                     \
         .kind = ST_F_INT,                                                                      \
         .offset = offsetof(S, M.throttle),                                                     \
         .lo = 1,                                                                               \
         .hi = INT32_MAX},                                                                      \
        {.key = "retries",                                                                      \
         .kind = ST_F_INT,                                                                      \
         .offset = offsetof(S, M.retries),                                                      \
         .lo = 0,                                                                               \
         .hi = ST_RETRY_MAX},                                                                   \
        {.key = "retry_after", .kind = ST_F_DURATION, .offset = offsetof(S, M.retry_after_ms)}, \
        {.key = "retry_max", .kind = ST_F_DURATION, .offset = offsetof(S, M.retry_max_ms)},     \
    {                                                                                           \
        .key = "retry_on", .kind = ST_F_NODE, .offset = offsetof(S, M.retry_on)                 \
    }

/* From fields that were read to what the core takes: everything but id, name, account and user.
 * A profile that none of the job's types has is not a fault of the document: *ret_none is set,
 * the job can never run, and the caller refuses it in its own words. */
int st_spec_job(const st_doc *doc, const st_doc_node *map, const st_job_fields *f,
                const st_spec_names *names, st_job_spec *ret, bool *ret_none, st_err *err);

/* A job as it is submitted to a service: what it asks for, and what it is to run. What is run is
 * checked for its form here and read by the agent that runs it. */
typedef struct st_submit_doc {
    st_job_fields asks;
    const char *name;
    const st_doc_node *command, *env, *secrets, *volumes, *labels, *sim, *node_labels,
        *exclude_nodes;
    const char *with;
    const char *script, *image, *workdir, *network, *signal, *notify_signal, *size;
    const char *comment;
    st_flow_fields flow;
    const char *workload, *booking, *begin, *end_by, *by, *zone, *slot, *priority_class;
    bool hard, rdma, terminal, input;
    bool hard_share;     /* read by the agent, with the next */
    int64_t gpu_time_ms; /* 0: no limit */
    /* Read by src/rules, and kept with the job. */
    const char *model, *dtype, *context, *concurrency, *attention, *method, *batch_size;
    const char *frames, *chunk, *duration, *fps, *estimate;
    const st_doc_node *array;
} st_submit_doc;

/* The keys of such a document, as they are read; the last row has none. */
const st_field *st_spec_submit_keys(void);

/* Whether a document as it was handed in has a value of the right sort for every key that it names. Sizes and rules
 * may take out what they do not care for, so that st_spec_submit would never see it. */
int st_spec_given(const st_doc *doc, const st_doc_node *map, st_err *err);

/* Names that the document leaves out are the caller's to fill in: ret->account and ret->user may
 * be NULL, ret->name is never. */
int st_spec_submit(const st_doc *doc, const st_doc_node *map, const st_spec_names *names,
                   st_job_spec *ret, st_err *err);

/* What a job does not say is said by the pools it may land in: those that give what it needs, or the
 * one it names. Without `cpu` or `ram` it gets their default for its part of a GPU, the smallest of
 * them so that it suits each, and never less than a task must have. Fails where no pool gives what
 * it needs, or one has a bound it exceeds. */
int st_spec_fill(const st_fleet *fleet, st_job_spec *spec, st_err *err);

/* NAME: TEXT, which are shown to people. */
int st_spec_labels(const st_doc *doc, const st_doc_node *map, st_err *err);
/* A map NAME: VALUE as labels of nodes (model/labels.h). */
int st_spec_node_labels(const st_doc *doc, const st_doc_node *map, st_strbuf *ret, st_err *err);

/* "low", "normal", "high" or a number. */
int st_spec_priority(const st_doc *doc, const st_doc_node *node, int *ret, st_err *err);

/* ---- images -------------------------------------------------------------------------- */

#define ST_IMAGE_NAME_MAX   64
#define ST_IMAGE_PATH_MAX   1024
#define ST_IMAGE_DIGEST_MAX (7 + 64 + 1) /* "sha256:", hex, NUL */

typedef enum st_image_ref_kind {
    ST_IMAGE_REF_HOST, /* "host": the node's own programs */
    ST_IMAGE_REF_NAME, /* a name of the site's catalogue */
    ST_IMAGE_REF_DATA, /* "data:PATH" or "/data/PATH": an OCI layout in the tenant's own storage */
} st_image_ref_kind;

typedef struct st_image_ref {
    st_image_ref_kind kind;
    char name[ST_IMAGE_NAME_MAX + 1];
    char
        path[ST_IMAGE_PATH_MAX]; /* in the storage, without / in front and ".."; "." is all of it */
    char digest
        [ST_IMAGE_DIGEST_MAX]; /* "@sha256:…" at its end: what it must be; "": whatever it is */
} st_image_ref;

/* What a job's `image` refers to. */
int st_spec_image(const char *text, st_image_ref *ret, st_err *err);
bool st_image_name_ok(const char *name);
bool st_digest_text_ok(const char *text);

/* ---- accounts ------------------------------------------------------------------------ */

/* An account, or a change to one: ST_KEEP where the document says nothing. */
#define ST_KEEP INT64_MIN

typedef struct st_account_doc {
    const char *name, *parent; /* NULL: not said */
    st_quota guarantee, max;
    st_limits job_limits, user_limits;
    st_book_limits book_limits;
    int64_t weight_m, priority, min_run_ms;
    int trust;      /* an st_trust; -1: not said */
    int own_domain; /* -1: not said */
    bool
        force; /* although the fleet cannot carry it; where nothing is refused for that it means nothing */
    int line;
} st_account_doc;

/* `name` may be missing where the caller knows it; *ret_children is the node of that key, or
 * NULL. */
int st_spec_account(const st_doc *doc, const st_doc_node *map, const st_spec_names *names,
                    bool need_name, st_account_doc *ret, const st_doc_node **ret_children,
                    st_err *err);

/* What the account will be: as it is in the tree, or new, with what is said laid over it. */
void st_spec_account_lay(const st_tree *tree, const st_account_doc *said, st_account_spec *ret);

/* ---- machines ------------------------------------------------------------------------ */

/* As an agent describes one; texts live in the document. */
typedef struct st_machine_doc {
    const char *name, *machine, *address, *version, *driver, *key; /* NULL where it was not said */
    const st_doc_node *gpu, *topology, *labels;
    int64_t cpu_m, ram_mib;
    const char *type; /* of its GPUs; NULL: it has none */
    const st_doc_node *uuids;
    int count, board;
    int64_t vram_mib;
    const char *rack, *block, *zone, *nvlink_domain;
    int nvlink;
} st_machine_doc;

int st_spec_machine(const st_doc *doc, const st_doc_node *map, st_machine_doc *ret, st_err *err);

/* ---- types and pools ----------------------------------------------------------------- */

typedef struct st_type_doc {
    const char *name;
    int64_t vram_mib;
    st_board board;
} st_type_doc;

typedef struct st_pool_doc {
    const char *name;
    uint32_t levels;
    int64_t oversub_m;
    st_pool_rules rules;
} st_pool_doc;

/* The GPU types everybody knows; NULL: not one of them. */
const st_type_doc *st_spec_known_type(const char *name);
/* NULL-terminated, for suggestions. */
const char *const *st_spec_known_types(void);

#define ST_POOL_OVERSUB_M 2000
#define ST_POOL_LEVELS    ((1u << ST_LEVEL_COUNT) - 1)

#define ST_POOL_DOC_INIT                                         \
    {                                                            \
        .levels = ST_POOL_LEVELS, .oversub_m = ST_POOL_OVERSUB_M \
    }

/* Everything but the name, which is the key of the map or in the address. What is not said of a
 * pool stays as it is in *ret. */
int st_spec_type(const st_doc *doc, const st_doc_node *map, st_type_doc *ret, st_err *err);
/* A permission, or a list of them, as bits of st_allow. */
int st_spec_allow(const st_doc *doc, const st_doc_node *list, uint32_t *ret, st_err *err);
int st_spec_pool(const st_doc *doc, const st_doc_node *map, st_pool_doc *ret, st_err *err);

/* What a node has unless it says otherwise: enough to stay out of the way. */
#define ST_NODE_CPU_M   INT64_C(128000)
#define ST_NODE_RAM_MIB INT64_C(2097152)
#define ST_NODE_GPUS    8

/* One node, with its name. Texts are the document's. */
int st_spec_node(const st_doc *doc, const st_doc_node *map, const st_spec_names *names,
                 st_node_spec *ret, st_err *err);

#endif
