/*
 * Checking a store (stintd/check.h). Nothing in it is changed.
 */
#include "stintd/check.h"

#include <inttypes.h>
#include <stdio.h>

#include "control/control.h"

static void finding(void *ctx, const char *sentence)
{
    (void)ctx;
    printf("%s\n", sentence);
}

int st_check_store(const char *path, const char *key)
{
    static const char *const states[] = {
#define X(id, name, about) name,
        ST_JOB_STATE_TABLE(X)
#undef X
    };
    ST_CLEANUP(st_store_closep) st_store *store = NULL;
    const st_store_options options = {.read_only = true};
    st_audit_verdict verdict = {0};
    int64_t n = 0;
    st_err err = {0};
    int r = st_store_open(path, &options, &store, &err);

    if (r == 0)
        r = st_store_check(store, states, ST_ARRAY_LEN(states), finding, NULL, &n, &err);
    if (r == 0)
        r = st_store_audit_verify(store, &verdict, &err);
    if (r == 0)
        r = st_control_check(store, key, finding, NULL, &n, &err);
    if (r < 0) {
        printf("%s\n", err.msg);
        return 1;
    }
    printf("%s: %s; audit chain of %" PRId64 " rows\n", path,
           n == 0 ? "nothing wrong" : "there are findings", verdict.rows);
    return n == 0 ? 0 : 1;
}
