/*
 * A stintd of its own for a benchmark: a folder, a process on loopback, an owner's token.
 */
#ifndef ST_BENCH_SERVICE_H
#define ST_BENCH_SERVICE_H

#include <sys/types.h>

typedef struct service {
    const char *program;
    char data[256], config[300], log[300], store[300];
    char token[128];
    pid_t pid;
    int port;
} service;

/* Makes the folder, starts it, reads the token. */
void service_prepare(service *b, const char *folder);
/* Returns how long it took until it was ready. */
double service_start(service *b);
void service_stop(service *b, int sig);
/* Must make something. */
void service_post(const service *b, const char *path, const char *body);
/* Says what went wrong, ends the process and this one. */
void service_die(const service *b, const char *what) __attribute__((noreturn));

#endif
