/*
 * What a task finds in its file system besides its image, and the device nodes it gets.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "run/below.h"
#include "run/bundle.h"
#include "run/private.h"

#define SHM_MAX_MIB (64 * 1024)

/* Image "host" shows these and nothing else of the node: no homes, no state, no sockets. */
const char *const st_bundle_host_dirs[] = {"/usr",   "/bin",    "/sbin", "/lib", "/lib32",
                                           "/lib64", "/libx32", "/opt",  NULL};
const char *const st_bundle_host_files[] = {"/etc/alternatives",
                                            "/etc/ca-certificates",
                                            "/etc/host.conf",
                                            "/etc/ld.so.cache",
                                            "/etc/ld.so.conf",
                                            "/etc/ld.so.conf.d",
                                            "/etc/localtime",
                                            "/etc/nsswitch.conf",
                                            "/etc/protocols",
                                            "/etc/services",
                                            "/etc/ssl/certs",
                                            "/etc/ssl/openssl.cnf",
                                            NULL};

/* `options` is a comma-separated list. */
static void add(json_t *mounts, const char *target, const char *type, const char *source,
                const char *options)
{
    json_t *list = json_array();

    while (*options) {
        size_t n = strcspn(options, ",");

        json_array_append_new(list, json_stringn(options, n));
        options += n + (options[n] == ',');
    }
    json_array_append_new(mounts, json_pack("{s:s, s:s, s:s, s:o}", "destination", target, "type",
                                            type, "source", source, "options", list));
}

static void add_tmpfs(json_t *mounts, const char *target, int64_t mib, const char *more)
{
    char options[128];

    snprintf(options, sizeof(options), "nosuid,nodev,%ssize=%" PRId64 "k", more, mib * 1024);
    add(mounts, target, "tmpfs", "tmpfs", options);
}

static void add_host_root(json_t *mounts)
{
    struct stat st;

    for (const char *const *p = st_bundle_host_dirs; *p; p++) {
        st_below below = {0};

        if (lstat(*p, &st) != 0 || !S_ISDIR(st.st_mode))
            continue;
        add(mounts, *p, "bind", *p, "bind,ro,nosuid,nodev");
        st_below_find(*p, &below);
        for (size_t i = 0; i < below.n; i++)
            add(mounts, below.v[i], "bind", below.v[i], "bind,ro,nosuid,nodev");
        st_below_done(&below);
    }
    for (const char *const *p = st_bundle_host_files; *p; p++)
        if (access(*p, R_OK) == 0)
            add(mounts, *p, "bind", *p, "bind,ro,nosuid,nodev,noexec");
}

/* Image "host" has it already, at the same place. */
static bool in_host_root(const st_run_mount *m)
{
    for (const char *const *p = st_bundle_host_dirs; *p; p++) {
        size_t n = strlen(*p);

        if (strcmp(m->source, m->target) == 0 && strncmp(m->target, *p, n) == 0 &&
            m->target[n] == '/')
            return true;
    }
    return false;
}

static int64_t shm_mib(const st_run_spec *spec)
{
    if (spec->shm_mib > 0)
        return spec->shm_mib;
    return spec->ram_mib > 0 ? ST_MIN(ST_MAX(spec->ram_mib / 2, 1), SHM_MAX_MIB) : 1024;
}

json_t *st_bundle_mounts(const st_run_spec *spec, const st_cdi_edits *cdi,
                         const st_bundle_place *place)
{
    json_t *mounts = json_array();
    /* sysfs can only be mounted anew by who owns the network namespace. */
    bool borrowed_net = spec->net != ST_NET_NONE && spec->userns_ids > 0;

    add(mounts, "/proc", "proc", "proc", "nosuid,noexec,nodev");
    if (borrowed_net)
        add(mounts, "/sys", "bind", "/sys", "rbind,ro,nosuid,noexec,nodev");
    else
        add(mounts, "/sys", "sysfs", "sysfs", "nosuid,noexec,nodev,ro");
    if (!borrowed_net)
        add(mounts, "/sys/fs/cgroup", "cgroup", "cgroup", "nosuid,noexec,nodev,relatime,ro");
    add(mounts, "/dev", "tmpfs", "tmpfs", "nosuid,noexec,strictatime,mode=755,size=64k");
    add(mounts, "/dev/pts", "devpts", "devpts",
        "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620");
    if (spec->shm)
        add(mounts, "/dev/shm", "bind", spec->shm, "bind,rw,nosuid,nodev,noexec");
    else
        add_tmpfs(mounts, "/dev/shm", shm_mib(spec), "noexec,mode=1777,");
    add(mounts, "/dev/mqueue", "mqueue", "mqueue", "nosuid,noexec,nodev");
    if (place->host_root)
        add_host_root(mounts);
    add_tmpfs(mounts, "/tmp", spec->tmp_mib > 0 ? spec->tmp_mib : ST_RUN_TMP_DEFAULT_MIB,
              "mode=1777,");
    add_tmpfs(mounts, "/run", 1, "mode=755,");
    add(mounts, "/run/stint", "bind", place->inject, "bind,ro,nosuid,nodev");
    if (place->hosts)
        add(mounts, "/etc/hosts", "bind", place->hosts, "bind,ro,nosuid,nodev,noexec");
    add(mounts, ST_PRIVATE_DIR, "bind", place->private, "bind,ro,nosuid,nodev,noexec");
    add(mounts, "/run/stint/init", "bind", place->init, "bind,ro,nosuid,nodev");
    if (spec->net == ST_NET_HOST && access("/etc/resolv.conf", R_OK) == 0)
        add(mounts, "/etc/resolv.conf", "bind", "/etc/resolv.conf", "bind,ro,nosuid,nodev,noexec");
    for (size_t i = 0; cdi && i < cdi->nmount; i++) {
        const st_run_mount *m = &cdi->mounts[i];

        if (!place->host_root || !in_host_root(m))
            add(mounts, m->target, "bind", m->source,
                m->writable ? "rbind,rw,nosuid,nodev" : "rbind,ro,nosuid,nodev");
    }
    for (size_t i = 0; i < spec->nmount; i++)
        add(mounts, spec->mounts[i].target, "bind", spec->mounts[i].source,
            spec->mounts[i].writable ? "bind,rw,nosuid,nodev" : "bind,ro,nosuid,nodev");
    if (spec->data)
        add(mounts, "/data", "bind", spec->data, "bind,rw,nosuid,nodev");
    return mounts;
}

static int add_device(const st_run_device *d, json_t *devices, json_t *rules, st_err *err)
{
    const char *host = d->host_path ? d->host_path : d->path;
    int64_t major = d->major, minor = d->minor;
    bool block = d->block;

    if (major < 0) {
        struct stat st;

        if (stat(host, &st) != 0)
            return st_fail(err, ST_ENOENT, "device %s: %s", host, strerror(errno));
        if (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode))
            return st_fail(err, ST_EINVAL, "%s is not a device node", host);
        block = S_ISBLK(st.st_mode);
        major = (int64_t)major(st.st_rdev);
        minor = (int64_t)minor(st.st_rdev);
    }
    const char *type = block ? "b" : "c";

    json_array_append_new(devices,
                          json_pack("{s:s, s:s, s:I, s:I, s:i, s:i, s:i}", "path", d->path, "type",
                                    type, "major", (json_int_t)major, "minor", (json_int_t)minor,
                                    "fileMode", 0666, "uid", 0, "gid", 0));
    json_array_append_new(rules, json_pack("{s:b, s:s, s:I, s:I, s:s}", "allow", 1, "type", type,
                                           "major", (json_int_t)major, "minor", (json_int_t)minor,
                                           "access", d->access ? d->access : "rw"));
    return 0;
}

int st_bundle_devices(const st_run_spec *spec, const st_cdi_edits *cdi, json_t *devices,
                      json_t *rules, st_err *err)
{
    int r = 0;

    json_array_append_new(rules, json_pack("{s:b, s:s}", "allow", 0, "access", "rwm"));
    for (size_t i = 0; !r && cdi && i < cdi->ndevice; i++)
        r = add_device(&cdi->devices[i], devices, rules, err);
    for (size_t i = 0; !r && i < spec->ndevice; i++)
        r = add_device(&spec->devices[i], devices, rules, err);
    return r;
}
