/*
 * What a job waits for besides room, and whether it is tried again, as people write it: in documents of jobs and in
 * scenarios.
 */
#ifndef ST_SPEC_FLOW_H
#define ST_SPEC_FLOW_H

#include "spec/spec.h"

extern const char *const st_after_words[], *const st_never_words[];

/* One of `after`. */
typedef struct st_after_doc {
    const st_doc_node *job; /* its name, a scalar */
    st_after_how how;
    bool each; /* the n-th of an array for the n-th of another */
    bool only; /* that job, and not the array that goes by its name */
} st_after_doc;

int st_spec_after(const st_doc *doc, const st_doc_node *node, st_after_doc *ret, st_err *err);

/* The rest, but for whom it waits for. */
int st_spec_flow(const st_doc *doc, const st_doc_node *map, const st_flow_fields *f,
                 st_job_spec *ret, st_err *err);

#endif
