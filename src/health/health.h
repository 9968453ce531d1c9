/* Health: what errors of a GPU mean, and whether what was measured of one is good enough (doc/dev/health.md).
 *
 * Two tables and what follows from them. An XID has an action; a site may say another one for its fleet. A diagnosis has
 * rows, each a check of one GPU or of the node against a limit.
 *
 * Invariants
 *  1 The same facts and rules give the same verdicts: no clock, no chance.
 *  2 What was not measured is skipped, never passed and never failed.
 *  3 An error that programs cause (restart) or that only informs (log) never takes a GPU out of service.
 *
 * Place in the law: base, model <- health <- agent, control. */
#ifndef ST_HEALTH_HEALTH_H
#define ST_HEALTH_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "model/incident.h"

/* ---- XIDs ----------------------------------------------------------------------------- */

/* X(id, word, whether the GPU is out of service until it is done, what it means) */
#define ST_XID_TABLE(X)                                                                       \
    X(ST_XID_UNKNOWN, "unknown", false, "it is in no table; it is counted")                   \
    X(ST_XID_LOG, "log", false, "it informs; nothing is to be done")                          \
    X(ST_XID_RESTART, "restart", false, "the program failed and is to be started again")      \
    X(ST_XID_FOLLOW, "follow", false, "it follows from another error, which says what to do") \
    X(ST_XID_RESET, "reset", true, "the GPU needs a reset")                                   \
    X(ST_XID_REBOOT, "reboot", true, "the node needs a reboot")                               \
    X(ST_XID_INSPECT, "inspect", true, "somebody must look at the hardware")
typedef enum st_xid_action {
#define X(id, ...) id,
    ST_XID_TABLE(X)
#undef X
        ST_XID_ACTION_COUNT
} st_xid_action;

#define ST_XID_MAX 999

/* What a site says instead of the vendor's catalogue. */
typedef struct st_xid_rules {
    uint8_t said[ST_XID_MAX + 1]; /* an st_xid_action + 1; 0: nothing */
} st_xid_rules;

const char *st_xid_action_name(st_xid_action action);
/* Rules may be NULL. */
st_xid_action st_xid_of(const st_xid_rules *rules, int64_t xid);
/* Whether the GPU is out of service until the action is done. */
bool st_xid_fatal(st_xid_action action);
/* Reads "63=reset,31=log" on top of what is there. On failure nothing changed. */
int st_xid_rules_read(const char *text, st_xid_rules *rules, st_err *err);

/* ---- remedies ------------------------------------------------------------------------- */

/* X(id, name, what is done) */
#define ST_REMEDY_TABLE(X)                                  \
    X(ST_REMEDY_NONE, "none", "nothing; it ends by itself") \
    X(ST_REMEDY_RESET, "reset", "the GPU is reset")         \
    X(ST_REMEDY_REBOOT, "reboot", "the node is rebooted")   \
    X(ST_REMEDY_INSPECT, "inspect", "somebody looks at the part")
typedef enum st_remedy {
#define X(id, ...) id,
    ST_REMEDY_TABLE(X)
#undef X
        ST_REMEDY_COUNT
} st_remedy;

const char *st_remedy_name(st_remedy remedy);
const char *st_remedy_about(st_remedy remedy);
/* What mends such a fault. */
st_remedy st_remedy_of(const st_finding *finding);

/* ---- a quick diagnosis ---------------------------------------------------------------- */

#define ST_DIAG_VERSION 1
#define ST_DIAG_TEXT    96

/* X(id, word, what it looks at). The first ST_DIAG_OF_NODE are of the node, all others of each GPU. */
#define ST_DIAG_TABLE(X)                                                                    \
    X(ST_DIAG_INVENTORY, "inventory", "the node has the GPUs it joined with")               \
    X(ST_DIAG_DRIVER, "driver", "the driver answers, with one version for all GPUs")        \
    X(ST_DIAG_ANSWERS, "answers", "the GPU answers")                                        \
    X(ST_DIAG_XID, "xid", "the last XID leaves the GPU in service")                         \
    X(ST_DIAG_RECOVERY, "recovery", "the driver asks for no reset and no reboot")           \
    X(ST_DIAG_ECC, "ecc", "memory errors that were not corrected, since the driver loaded") \
    X(ST_DIAG_REMAP_PENDING, "remap-pending", "no row of memory waits to be replaced")      \
    X(ST_DIAG_REMAP_FAILED, "remap-failed", "every row that had to be replaced was")        \
    X(ST_DIAG_PCIE_WIDTH, "pcie-width", "lanes of PCIe, of those it has")                   \
    X(ST_DIAG_PCIE_REPLAY, "pcie-replay", "packets that PCIe had to send again")            \
    X(ST_DIAG_NVLINK, "nvlink", "links that are up, of those GPUs of the node have")        \
    X(ST_DIAG_THROTTLE, "throttle", "no clock is held down by heat or by a power brake")
typedef enum st_diag {
#define X(id, ...) id,
    ST_DIAG_TABLE(X)
#undef X
        ST_DIAG_COUNT
} st_diag;

#define ST_DIAG_OF_NODE 2

typedef enum st_diag_verdict { ST_VERDICT_SKIP, ST_VERDICT_PASS, ST_VERDICT_FAIL } st_diag_verdict;

const char *st_diag_name(st_diag diag);
const char *st_diag_verdict_name(st_diag_verdict verdict);

/* One GPU as it was measured; ST_DIAG_UNKNOWN where something was not. */
#define ST_DIAG_UNKNOWN (-1)
typedef struct st_diag_gpu {
    bool answers;
    int64_t xid, recovery;
    int64_t ecc_uncorrected, remap_pending, remap_failed;
    int64_t pcie_width, pcie_width_max, pcie_replays;
    int64_t links;
    int64_t throttle; /* bits, as the driver has them */
} st_diag_gpu;

/* Limits of one GPU type, X(field, word, default, about); a value beyond it fails. */
#define ST_LIMIT_TABLE(X)                                                             \
    X(ecc_uncorrected, "ecc_uncorrected", 0, "memory errors that were not corrected") \
    X(pcie_replays, "pcie_replays", 80, "packets that PCIe had to send again")        \
    X(throttle, "throttle", 0x1 | 0x2 | 0x4 | 0x20,                                   \
      "reasons for low clocks that are no fault, as bits of the driver")
typedef struct st_diag_limits {
#define X(field, ...) int64_t field;
    ST_LIMIT_TABLE(X)
#undef X
} st_diag_limits;

st_diag_limits st_diag_limits_default(void);

typedef struct st_diag_facts {
    int joined; /* GPUs it joined with */
    int n;      /* GPUs the driver has */
    bool driver;
    const st_diag_gpu *gpu;
} st_diag_facts;

typedef struct st_diag_row {
    st_diag diag;
    int gpu; /* -1: the node */
    st_diag_verdict verdict;
    int64_t value, limit; /* of PASS and FAIL */
} st_diag_row;

/* All rows go through `fn`, those of the node first, then by GPU; how many failed. Rules may be NULL. */
typedef void st_diag_fn(void *ctx, const st_diag_row *row);
int st_diag_quick(const st_diag_facts *facts, const st_diag_limits *limits,
                  const st_xid_rules *rules, st_diag_fn *fn, void *ctx);

/* A failed row as a sentence: GPU 3: a row of memory waits to be replaced. */
void st_diag_say(const st_diag_row *row, char ret[ST_DIAG_TEXT]);

#endif
