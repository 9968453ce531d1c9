/*
 * stint-agent: the program on a node that makes stintd's decisions true (doc/dev/agent-protocol.md).
 * One process has one real node, or any number of simulated ones.
 */
#ifndef ST_AGENT_AGENT_H
#define ST_AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

typedef struct st_agent_conf {
    const char *server;     /* http://… or https://… */
    bool insecure;          /* without TLS, off the machine */
    const char *ca;         /* NULL: the system's authorities */
    const char *join_file;  /* a file with a join token; NULL: the node has a token already */
    const char *data;       /* the agent's folder */
    const char *name;       /* of the node; NULL: the machine's */
    const char *address;    /* where other nodes reach this one; NULL: as stintd sees it */
    const char *sim;        /* a profile of simulated GPUs; NULL: those of this machine */
    const char *sim_faults; /* a file of faults, see gpu/sim.h; NULL: none */
    int64_t sim_nodes;      /* how many of them; 1 */
    const char *exec;       /* auto, oci or sim */
    const char *runtime;    /* of containers; NULL: the first that works */
    const char *dcgmi; /* the program, or none; NULL: where it usually is, and none for --sim */
    const char *mps_control; /* the vendor's program; NULL: where it usually is */
    const char
        *guard; /* libstint-guard.so, or none; NULL: where it usually is, and none for --sim */
    const char *neighbour; /* thresholds (neighbour/neighbour.h); NULL: the defaults */
    const char *rack, *block, *zone;
    const char *cuda;     /* the program stint-cuda; NULL: beside ours, and none for --sim */
    const char *scrub;    /* tenant, always or never */
    const char *settings; /* of the GPUs: manage or leave */
    const char *volumes;  /* where volumes are on this node; NULL: there are none */
    const char *xids;     /* what XIDs ask for here, see health/health.h; "": as in the catalogue */
    const char *symptoms; /* thresholds (health/symptoms.h); NULL: the defaults */
    const char *metrics;  /* ADDRESS:PORT; NULL: none */
    int64_t cpu_m, ram_mib; /* what jobs may have; 0: what there is */
    int64_t data_mib;       /* what a tenant may have in /data; 0: see agent/storage.h */
    int64_t segment_port;   /* UDP, the same on all nodes */
    int64_t images_mib;     /* for unpacked images; 0: see run/run.h */
    int64_t image_ms;       /* to read and unpack one; 0: see run/run.h */
    int64_t test_ms;        /* for a test above quick; 0: as its level has it */
    int64_t stop_grace_ms;  /* between a task's signal and its end */
} st_agent_conf;

/* Reads the arguments. 0: go on; 1: nothing to do, help was given; -code otherwise. */
int st_agent_conf_read(int argc, char **argv, st_agent_conf *ret, FILE *out, st_err *err);

/* Whether somebody else owns the settings of the GPUs. */
bool st_settings_left(const st_agent_conf *conf);

/* Runs until it is told to end (SIGTERM, SIGINT). Tasks run on. */
int st_agent_run(const st_agent_conf *conf, st_err *err);

/* What works on this node, what does not, how to fix it. Returns the exit status. */
int st_agent_doctor(const st_agent_conf *conf, FILE *out);

#endif
