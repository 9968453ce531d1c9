/*
 * Writing the OCI bundle of a task: config.json and the small files it mounts. Private to run.
 */
#ifndef ST_RUN_BUNDLE_H
#define ST_RUN_BUNDLE_H

#include <jansson.h>

#include "run/cdi.h"
#include "run/cgroup.h"
#include "run/run.h"

/* Where things are on the node, for one task. */
typedef struct st_bundle_place {
    const char *rootfs;  /* the root file system the container gets */
    bool host_root;      /* it is an empty frame for the host's own folders */
    const char *inject;  /* seen as /run/stint, read-only */
    const char *hosts;   /* the file to see at /etc/hosts; NULL: that of the image */
    const char *private; /* its secrets: seen as /run/stint/secrets, read-only */
    const char *init;    /* stint-init on the node */
    const char *cgroup;  /* "stint/NAME" */
    const char *hostname;
    const char *netns; /* of the tenant, for ST_NET_TENANT */
    st_cg_mode cgroups;
} st_bundle_place;

/* The config.json of a task that st_run_check has seen. */
int st_bundle_config(const st_run_spec *spec, const st_cdi_edits *cdi, const st_bundle_place *place,
                     json_t **ret, st_err *err);

/* Its parts, for the files that make them. */
json_t *st_bundle_env(const st_run_spec *spec, const st_cdi_edits *cdi);
json_t *st_bundle_mounts(const st_run_spec *spec, const st_cdi_edits *cdi,
                         const st_bundle_place *place);
json_t *st_bundle_seccomp(void);

/* Adds the devices to linux.devices and to the allow-list of the group. */
int st_bundle_devices(const st_run_spec *spec, const st_cdi_edits *cdi, json_t *devices,
                      json_t *rules, st_err *err);

/* What st_run_check is for a spec, for what a CDI file adds to it. Pure. */
int st_cdi_check(const st_cdi_edits *cdi, st_err *err);

/* Where host folders of image "host" are linked or mounted; NULL-terminated. */
extern const char *const st_bundle_host_dirs[];
extern const char *const st_bundle_host_files[];

#endif
