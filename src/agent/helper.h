/*
 * Programs that do one long thing for a node and outlive the agent that started them: stint-cuda.
 *
 * Each has a name, and two files in DIR/helpers: NAME.lock, which it holds as long as it runs, and
 * NAME.json, what it said. So whoever comes later knows whether it runs, and what came of it.
 */
#ifndef ST_AGENT_HELPER_H
#define ST_AGENT_HELPER_H

#include <jansson.h>
#include <limits.h>
#include <stdint.h>

#include "base/err.h"

typedef enum st_helper_state {
    ST_HELPER_NONE, /* there is none, or it died without a word */
    ST_HELPER_RUNNING,
    ST_HELPER_DONE,
} st_helper_state;

/* Where a program is: as given, or beside ours. */
void st_helper_find(const char *given, const char *name, char ret[PATH_MAX]);

#define ST_HELPER_ALL (~UINT64_C(0))

/* `keep`: its capabilities, of ours (run/rights.h); ST_HELPER_ALL. argv and env end with NULL; env is all it gets besides a PATH and where we find
 * libraries. Nothing of ours stays open in it. */
int st_helper_start(const char *dir, const char *name, uint64_t keep, const char *const *argv,
                    const char *const *env, st_err *err);
/* *ret is what it said, an object, when it is done; the caller drops it. */
st_helper_state st_helper_look(const char *dir, const char *name, json_t **ret);
/* The same, after at most so long. */
st_helper_state st_helper_wait(const char *dir, const char *name, int64_t ms, json_t **ret);
/* Its files. Not while it runs. */
void st_helper_forget(const char *dir, const char *name);

#endif
