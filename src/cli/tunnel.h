/*
 * Ways into a job, for the verbs that use them: opened at stintd, connected any number of times, closed.
 */
#ifndef ST_CLI_TUNNEL_H
#define ST_CLI_TUNNEL_H

#include "cli/jobs.h"
#include "dial/dial.h"

typedef struct st_tunnel {
    char id[64], job[32];
    int task, stay;
} st_tunnel;

/* body: what is asked for, as the API takes it. */
int st_tunnel_open(st_client *client, const char *job, json_t *body, st_tunnel *ret, st_err *err);
/* A connection; ST_ENOENT: the tunnel is no more. */
int st_tunnel_connect(st_client *client, const st_tunnel *t, st_dial **ret, st_err *err);
/* It may be gone already. */
void st_tunnel_close(st_client *client, const st_tunnel *t);
/* Whether it is still open; what cannot be asked is taken for open. */
bool st_tunnel_lives(st_client *client, const st_tunnel *t);

/* forward.c: leads a port of this machine, on its loopback address, to a port of a task, until a signal or the job's end. */
typedef struct st_forward_to {
    st_cli *cli;
    st_client *client;
    const char *job;
    int64_t task, local, port; /* local 0: any that is free */
    /* It is open: says so. */
    void (*tell)(const struct st_forward_to *to, int local, int task, const char *job);
    const void *ctx;
} st_forward_to;

int st_forward(const st_forward_to *to, st_err *err);

#endif
