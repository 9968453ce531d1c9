/* Health: what errors of a GPU mean, and whether what was measured of one is good enough (doc/dev/health.md).
 *
 * Three tables and what follows from them. An XID has an action; a site may say another one for its fleet. A diagnosis has
 * rows, each a check of one GPU or of the node against a limit. A GPU type has limits, which a site may change.
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

/* ---- tests ---------------------------------------------------------------------------- */

/* X(id, name, seconds it may take, about). Quick runs nothing on GPUs; each other level does what those before it do. */
#define ST_TEST_LEVEL_TABLE(X)                                                                \
    X(ST_TEST_QUICK, "quick", 0, "reads what GPUs say of themselves; jobs may run beside it") \
    X(ST_TEST_SHORT, "short", 120, "copies, links and memory; needs GPUs that nobody is on")  \
    X(ST_TEST_LONG, "long", 900, "also matrix products, and memory with more patterns")       \
    X(ST_TEST_BURN, "burn", 7200, "the same for two hours, for heat and what it brings to light")
typedef enum st_test_level {
#define X(id, ...) id,
    ST_TEST_LEVEL_TABLE(X)
#undef X
        ST_TEST_LEVEL_COUNT
} st_test_level;

const char *st_test_level_name(st_test_level level);
int64_t st_test_level_ms(st_test_level level);
int st_test_level_parse(const char *name); /* -1: none of them */

/* ---- a diagnosis ---------------------------------------------------------------------- */

#define ST_DIAG_VERSION 2
#define ST_DIAG_TEXT    112

/* What makes a value bad: FACT has a rule of its own; FLOOR fails below its limit, CEILING above it; NOTE is kept and never fails. */
typedef enum st_diag_kind {
    ST_DIAG_FACT,
    ST_DIAG_FLOOR,
    ST_DIAG_CEILING,
    ST_DIAG_NOTE
} st_diag_kind;

/* X(id, word, of the node, least level, kind, unit, what it looks at). Their numbers are kept as codes of findings, so new
 * ones come last. */
#define ST_DIAG_TABLE(X)                                                                           \
    X(ST_DIAG_INVENTORY, "inventory", true, QUICK, FACT, "",                                       \
      "the node has the GPUs it joined with")                                                      \
    X(ST_DIAG_DRIVER, "driver", true, QUICK, FACT, "", "the driver answers")                       \
    X(ST_DIAG_ANSWERS, "answers", false, QUICK, FACT, "", "the GPU answers")                       \
    X(ST_DIAG_XID, "xid", false, QUICK, FACT, "", "the last XID leaves the GPU in service")        \
    X(ST_DIAG_RECOVERY, "recovery", false, QUICK, FACT, "",                                        \
      "the driver asks for no reset and no reboot")                                                \
    X(ST_DIAG_ECC, "ecc", false, QUICK, FACT, "errors",                                            \
      "memory errors that were not corrected, since the driver loaded")                            \
    X(ST_DIAG_REMAP_PENDING, "remap-pending", false, QUICK, FACT, "",                              \
      "no row of memory waits to be replaced")                                                     \
    X(ST_DIAG_REMAP_FAILED, "remap-failed", false, QUICK, FACT, "",                                \
      "every row that had to be replaced was")                                                     \
    X(ST_DIAG_PCIE_WIDTH, "pcie-width", false, QUICK, FACT, "lanes",                               \
      "lanes of PCIe, of those it has")                                                            \
    X(ST_DIAG_PCIE_REPLAY, "pcie-replay", false, QUICK, FACT, "packets",                           \
      "packets that PCIe had to send again")                                                       \
    X(ST_DIAG_NVLINK, "nvlink", false, QUICK, FACT, "links",                                       \
      "links that are up, of those GPUs of the node have")                                         \
    X(ST_DIAG_THROTTLE, "throttle", false, QUICK, FACT, "",                                        \
      "no clock is held down by heat or by a power brake")                                         \
    X(ST_DIAG_WORKS, "works", false, SHORT, FACT, "", "the GPU does what the test asks of it")     \
    X(ST_DIAG_PCIE_IN, "pcie-in", false, SHORT, FLOOR, "MB/s",                                     \
      "copies from host memory to the GPU")                                                        \
    X(ST_DIAG_PCIE_OUT, "pcie-out", false, SHORT, FLOOR, "MB/s",                                   \
      "copies from the GPU to host memory")                                                        \
    X(ST_DIAG_MEMORY_SPEED, "memory-speed", false, SHORT, FLOOR, "MB/s",                           \
      "copies within device memory, read and written")                                             \
    X(ST_DIAG_PATTERN_SHARE, "pattern-share", false, SHORT, FLOOR, "%",                            \
      "part of device memory that was written and read")                                           \
    X(ST_DIAG_PATTERN, "pattern", false, SHORT, CEILING, "words",                                  \
      "words of device memory that were read otherwise than written")                              \
    X(ST_DIAG_PEER, "peer", false, SHORT, FLOOR, "MB/s", "copies to the other GPUs, the slowest")  \
    X(ST_DIAG_ALL_REDUCE, "all-reduce", true, SHORT, FLOOR, "MB/s",                                \
      "sums over all GPUs of the node, bus bandwidth")                                             \
    X(ST_DIAG_SUMS, "sums", true, SHORT, CEILING, "values", "values of such sums that were wrong") \
    X(ST_DIAG_PRODUCT_SPEED, "product-speed", false, LONG, FLOOR, "GFLOP/s", "matrix products")    \
    X(ST_DIAG_PRODUCT, "product", false, LONG, CEILING, "values",                                  \
      "values of the same product that differed")                                                  \
    X(ST_DIAG_TEMPERATURE, "temperature", false, SHORT, CEILING, "C",                              \
      "the highest during the test")                                                               \
    X(ST_DIAG_POWER, "power", false, SHORT, NOTE, "W", "the most during the test")                 \
    X(ST_DIAG_CLOCK, "clock", false, SHORT, NOTE, "MHz", "the lowest clock of a busy GPU")         \
    X(ST_DIAG_SIBLINGS, "siblings", false, SHORT, FLOOR, "%",                                      \
      "the slowest figure, of the middle one of the node's GPUs of its type")                      \
    X(ST_DIAG_DCGM, "dcgm", false, SHORT, CEILING, "failures", "tests of dcgmi diag that failed")
typedef enum st_diag {
#define X(id, ...) id,
    ST_DIAG_TABLE(X)
#undef X
        ST_DIAG_COUNT
} st_diag;

typedef enum st_diag_verdict { ST_VERDICT_SKIP, ST_VERDICT_PASS, ST_VERDICT_FAIL } st_diag_verdict;

const char *st_diag_name(st_diag diag);
const char *st_diag_unit(st_diag diag);
int st_diag_parse(const char *name); /* -1: none of them */
const char *st_diag_verdict_name(st_diag_verdict verdict);

/* One GPU as it was measured; ST_DIAG_UNKNOWN where something was not. */
#define ST_DIAG_UNKNOWN (-1)
typedef struct st_diag_gpu {
    bool answers;
    const char *type; /* NULL: not known */
    int64_t xid, recovery;
    int64_t ecc_uncorrected, remap_pending, remap_failed;
    int64_t pcie_width, pcie_width_max, pcie_replays;
    int64_t links;
    int64_t throttle;                /* bits, as the driver has them */
    int64_t measured[ST_DIAG_COUNT]; /* of levels above quick, by what it is */
} st_diag_gpu;

/* Nothing of it was measured. */
void st_diag_unmeasured(int64_t measured[ST_DIAG_COUNT]);

/* Limits of one GPU type, X(field, word, default, most, unit, about). Of a speed 0 is: not judged. */
#define ST_LIMIT_TABLE(X)                                                                    \
    X(ecc_uncorrected, "ecc", 0, 1000000, "errors", "memory errors that were not corrected") \
    X(pcie_replays, "pcie-replay", 80, 1000000000, "packets",                                \
      "packets that PCIe had to send again")                                                 \
    X(throttle, "throttle", 0x1 | 0x2 | 0x4 | 0x20, 0xffff, "bits",                          \
      "reasons for low clocks that are no fault, as bits of the driver")                     \
    X(pcie_in, "pcie-in", 0, 100000000, "MB/s", "copies from host memory, at least")         \
    X(pcie_out, "pcie-out", 0, 100000000, "MB/s", "copies to host memory, at least")         \
    X(memory_speed, "memory-speed", 0, 1000000000, "MB/s", "device memory, at least")        \
    X(pattern_share, "pattern-share", 90, 99, "%", "device memory that is tested, at least") \
    X(peer, "peer", 0, 100000000, "MB/s", "copies between linked GPUs, at least")            \
    X(all_reduce, "all-reduce", 0, 100000000, "MB/s",                                        \
      "sums over eight linked GPUs by NCCL, at least")                                       \
    X(product_speed, "product-speed", 0, 1000000000, "GFLOP/s",                              \
      "matrix products by cuBLAS, at least")                                                 \
    X(temperature, "temperature", 90, 200, "C", "temperature during a test, at most")        \
    X(siblings, "siblings", 90, 100, "%", "of what other GPUs of the node reach, at least")
typedef struct st_diag_limits {
#define X(field, ...) int64_t field;
    ST_LIMIT_TABLE(X)
#undef X
} st_diag_limits;

typedef struct st_limit_row {
    const char *word, *unit, *about;
    int64_t most;
} st_limit_row;

/* NULL behind the last. */
const st_limit_row *st_limit_row_at(int i);
int64_t st_limit_get(const st_diag_limits *limits, int i);
/* One by its word. On failure nothing changed. */
int st_limit_set(st_diag_limits *limits, const char *word, int64_t value, st_err *err);

/* Of a GPU type; of one that we know nothing of, those that hold for all. NULL: such a one. */
st_diag_limits st_diag_limits_of(const char *type);

typedef struct st_diag_facts {
    st_test_level level;
    int joined; /* GPUs it joined with */
    int n;      /* GPUs the driver has */
    bool driver;
    bool nccl, blas;                 /* what sums and products were made with; otherwise our own */
    int64_t measured[ST_DIAG_COUNT]; /* of the node */
    const st_diag_gpu *gpu;
} st_diag_facts;

typedef struct st_diag_row {
    st_diag diag;
    int gpu; /* -1: the node */
    st_diag_verdict verdict;
    int64_t value, limit; /* of PASS and FAIL */
} st_diag_row;

/* All rows of its level go through `fn`, those of the node first, then by GPU; how many failed. Rules may be NULL. */
typedef void st_diag_fn(void *ctx, const st_diag_row *row);
int st_diag_judge(const st_diag_facts *facts, const st_diag_limits *limits,
                  const st_xid_rules *rules, st_diag_fn *fn, void *ctx);

/* A failed row as a sentence: GPU 3: a row of memory waits to be replaced. */
void st_diag_say(const st_diag_row *row, char ret[ST_DIAG_TEXT]);

#endif
