/*
 * A load generator: HTTP/1.1 over kept connections to a port of this machine, one thread, epoll.
 * Small enough that the client costs little beside the server it measures.
 */
#ifndef ST_BENCH_LOAD_H
#define ST_BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strbuf.h"

typedef struct load {
    int port;
    const char *token;
    const char *method;
    int connections;
    int64_t requests; /* in all */
    int64_t per_s;    /* at most; 0: as fast as answers come */
    /* Fills in the path, the Idempotency-Key ("" is none) and the body of request i. */
    void (*ask)(void *ctx, int64_t i, char path[128], char key[64], st_strbuf *body);
    /* May be NULL. */
    void (*answered)(void *ctx, int64_t i, int status, const char *body, size_t n);
    void *ctx;
} load;

typedef struct load_result {
    int64_t answers, refused; /* refused: not 2xx */
    double seconds;
    int64_t p50_us, p99_us, max_us; /* from when it was due */
} load_result;

/* False: a connection broke or nothing came for 30 s; the sentence is on stderr. */
bool load_run(const load *l, load_result *ret);

/* One request; returns the status, 0 when there was no answer. The body is added to ret. */
int load_once(int port, const char *token, const char *method, const char *path, const char *body,
              st_strbuf *ret);

/* Opens an event stream and reads until its head has come; the socket, -1 on failure. */
int load_stream(int port, const char *token);

int64_t load_now_us(void);
/* User and system time of a process so far, its memory, from /proc. */
int64_t load_cpu_us(pid_t pid);
int64_t load_rss_kib(pid_t pid);

#endif
