/*
 * Expectations: one row per key of an `expect` item. A row says how the value
 * is written in the document and how the same thing is found in a play; both
 * are brought to one way of writing and compared as text, which is also what is
 * printed when they differ. Private to scenarios.
 */
#ifndef ST_SCENARIO_EXPECT_H
#define ST_SCENARIO_EXPECT_H

#include "scenario/scenario.h"

/* A thousandth of a GPU-hour in milli-GPU x ms. */
#define ST_SCN_GPU_HOUR (INT64_C(3600) * 1000)

typedef enum st_expect_form {
    ST_X_STATE, /* a job's state */
    ST_X_CLASS, /* guaranteed, burstable or none */
    ST_X_NODE_STATE,
    ST_X_BOOL,
    ST_X_COUNT,    /* a whole number */
    ST_X_MILLI,    /* a number with up to three decimals */
    ST_X_DURATION, /* or never */
    ST_X_NODE,     /* a node's name */
    ST_X_NODES,    /* nodes in any order */
    ST_X_TYPE,     /* a GPU type's name */
    ST_X_JOB,      /* a job's name, or none */
    ST_X_JOBS,     /* jobs in this order */
    ST_X_JOB_SET,  /* jobs in any order */
    ST_X_ACCOUNT_SET,
    ST_X_COUNTS,     /* whole numbers in any order */
    ST_X_DEVICES,    /* [0, 1] on the one node it has, or {n1: [0, 1], n2: [4]} */
    ST_X_AMOUNTS,    /* {gpu: 8, h100: 4, cpu: 2, ram: 1Ti}: one expectation each */
    ST_X_REASONS,    /* codes: one expectation each */
    ST_X_REASON_SET, /* all the codes there are */
    ST_X_REASON,     /* one reason with its numbers */
} st_expect_form;

typedef struct st_expect_row {
    const char *key;
    st_expect_form form;
    /* Writes what there is, in the same way as the reader wrote what was wanted. */
    void (*found)(const st_play *play, const st_scn_expect *e, st_strbuf *out);
} st_expect_row;

/* The tables, each ending with a row without a key: about a job, an account, a node, and the
 * whole scene. */
extern const st_expect_row st_expect_job[];
extern const st_expect_row st_expect_account[];
extern const st_expect_row st_expect_node[];
extern const st_expect_row st_expect_scene[];

/* How a reason's amounts are counted; `bound` for its bound, which may be of another kind than what
 * is used and asked. */
typedef enum st_why_unit { ST_U_COUNT, ST_U_MILLI, ST_U_MIB, ST_U_MS } st_why_unit;

st_why_unit st_scn_why_unit(st_why code, int dim, bool bound);

/* scenario_expect_why.c: `reason: {...}` into e->why, and as it was written. */
int st_scn_read_reason(st_scenario *s, const st_doc_node *node, st_scn_expect *e, st_strbuf *out,
                       st_err *err);

/* Looks at one expectation; NULL when it holds, else what was found (the caller frees it). */
char *st_play_look(const st_play *play, const st_scn_expect *e);

/* "job a: state"; what an expectation is about. */
void st_play_about(const st_play *play, const st_scn_expect *e, st_strbuf *out);

/* Writing lists the one way. */
/* The words of reasons and of resources, each list ended by NULL. */
extern const char *const st_scn_why_words[];
extern const char *const st_scn_dim_words[];

void st_scn_list_add(st_strbuf *out, const char *item);
void st_scn_devices_text(uint32_t devs, st_strbuf *out);

#endif
