/*
 * Container Device Interface: what a node's CDI spec (JSON, /etc/cdi) says a container needs for
 * a device. Read: env, deviceNodes, mounts, of the spec as a whole and of the named devices.
 * Hooks are programs run as root on a container's behalf; they are not run, and counted.
 */
#ifndef ST_RUN_CDI_H
#define ST_RUN_CDI_H

#include <stddef.h>

#include "run/run.h"

typedef struct st_cdi_edits st_cdi_edits;

struct st_cdi_edits {
    st_run_device *devices;
    size_t ndevice, devices_cap;
    st_run_mount *mounts;
    size_t nmount, mounts_cap;
    char **env;
    size_t nenv, env_cap;
    size_t hooks;       /* left out */
    struct json_t *doc; /* owns the strings */
};

/* `names` are the devices wanted, NULL-terminated. `file` is for messages. */
int st_cdi_parse(const char *file, const char *text, size_t len, const char *const *names,
                 st_cdi_edits *ret, st_err *err);
int st_cdi_load(const char *file, const char *const *names, st_cdi_edits *ret, st_err *err);
void st_cdi_done(st_cdi_edits *edits);

#endif
