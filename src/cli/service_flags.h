/*
 * The flags of `stint service create` and `set`: those of the service before those of its job.
 */
#ifndef ST_CLI_SERVICE_FLAGS_H
#define ST_CLI_SERVICE_FLAGS_H

#include "cli/job_doc.h"

/* X(field, option, value, about): keys of the document as they are, but for - and _. */
#define ST_SERVICE_FLAGS(X)                                                                     \
    X(port, "port", "PORT", "port that the program listens on in its container")                \
    X(replicas, "replicas", "N", "replicas that are kept running (default: 1)")                 \
    X(health, "health", "none|tcp|http", "how a replica is checked (default: tcp)")             \
    X(path, "path", "PATH", "path that an http check asks for (default: /)")                    \
    X(interval, "interval", "DURATION", "time between checks (default: 10s)")                   \
    X(timeout, "timeout", "DURATION", "time a check may take (default: 5s)")                    \
    X(failures, "failures", "N", "failed checks in a row that replace a replica (default: 3)")  \
    X(start, "start", "DURATION", "time a replica has to become healthy (default: 10m)")        \
    X(surge, "surge", "N", "replicas more than wanted while some are replaced (default: 1)")    \
    X(unavailable, "unavailable", "N", "replicas fewer than wanted meanwhile (default: 0)")     \
    X(wait, "wait", "DURATION", "wait after a failure, doubled each time (default: 5s)")        \
    X(wait_max, "wait-max", "DURATION", "longest such wait (default: 5m)")                      \
    X(drain, "drain", "DURATION", "time a leaving replica has for its requests (default: 30s)") \
    X(scale, "scale", "none|requests|queue|latency", "what sets the number of replicas")        \
    X(target, "target", "N", "requests or queue per replica, or latency in ms, to scale to")    \
    X(min, "min", "N", "fewest replicas when it scales (default: 1)")                           \
    X(max, "max", "N", "most replicas when it scales")                                          \
    X(up, "up", "DURATION", "time more must be asked for before it grows (default: 30s)")       \
    X(down, "down", "DURATION", "time fewer must be asked for before it shrinks (default: 5m)") \
    X(idle, "idle", "DURATION", "time without requests after which it ends (default: 0s, never)")

typedef struct st_service_flags {
    st_job_flags job; /* first: its rows are ours */
#define X(field, option, value, about) const char *field;
    ST_SERVICE_FLAGS(X)
#undef X
    const char *local; /* of `notebook` */
    st_cli_format format;
} st_service_flags;

extern const st_cli_row st_cli_service_options[];

/* services.c: what flags and file say, of the service on top, of its job under "job"; *ret is the caller's. */
int st_service_doc(const st_service_flags *f, int ncommand, char **command, json_t **ret,
                   st_err *err);

#endif
