/* Finding an OCI runtime that works; making and freeing the handle. */
#include "run/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/bundle.h"
#include "run/os.h"

#define TRIES  3
#define KILLED 128 /* and the signal */

const char *const st_runtime_names[] = {"crun", "runc", NULL};

/* The folder our own program is in. */
static int own_folder(char ret[PATH_MAX], st_err *err)
{
    ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
    char *slash;

    if (n <= 0)
        return st_fail(err, ST_EIO, "cannot read /proc/self/exe: %s", strerror(errno));
    ret[n] = '\0';
    slash = strrchr(ret, '/');
    if (slash)
        *slash = '\0';
    return 0;
}

static int set_text(char *to, size_t cap, const char *what, st_err *err, const char *a,
                    const char *b)
{
    int n = snprintf(to, cap, "%s%s", a, b);

    if (n < 0 || (size_t)n >= cap)
        return st_fail(err, ST_ERANGE, "%s is too long", what);
    return 0;
}

/* Unpacked images take a quarter of the disk and no more than 64 GiB, unless somebody says otherwise. */
static void set_images(const st_run_conf *conf, st_run *run)
{
    struct statvfs fs;

    run->images_bytes = conf->images_mib > 0 ? conf->images_mib << 20 : INT64_C(64) << 30;
    run->image_ms = conf->image_ms > 0 ? conf->image_ms : INT64_C(600000);
    if (conf->images_mib <= 0 && statvfs(run->state_dir, &fs) == 0)
        run->images_bytes =
            ST_MIN(run->images_bytes, (int64_t)((st_i128)fs.f_blocks * fs.f_frsize / 4));
}

int st_runtime_prepare(const st_run_conf *conf, st_run *ret, st_err *err)
{
    const char *state = conf->state_dir ? conf->state_dir : "/var/lib/stint/run";
    static const char *const parts[] = {"tasks", "runtime", "net", "images"};
    char own[PATH_MAX], path[PATH_MAX];
    int r = conf->libexec ? st_os_path(own, err, "%s", conf->libexec) : own_folder(own, err);

    *ret = (st_run){0};
    if (r)
        return r;
    if (state[0] != '/')
        return st_fail(err, ST_EINVAL, "the state directory %s must be an absolute path", state);
    if ((r = set_text(ret->state_dir, sizeof(ret->state_dir), "the state directory", err, state,
                      "")) != 0 ||
        (r = set_text(ret->cgroup_root, sizeof(ret->cgroup_root), "the cgroup's name", err,
                      conf->cgroup_root ? conf->cgroup_root : "stint", "")) != 0 ||
        (r = set_text(ret->lease, sizeof(ret->lease), "the lease's path", err,
                      conf->lease ? conf->lease : "", "")) != 0 ||
        (r = set_text(ret->shim, sizeof(ret->shim), "a path", err, own, "/stint-shim")) != 0 ||
        (r = set_text(ret->init, sizeof(ret->init), "a path", err, own, "/stint-init")) != 0)
        return r;
    if (geteuid() != 0)
        return st_fail(err, ST_EPERM, "running tasks needs root; this is user %d", (int)geteuid());
    for (size_t i = 0; i < ST_ARRAY_LEN(parts); i++)
        if ((r = st_os_path(path, err, "%s/%s", state, parts[i])) != 0 ||
            (r = st_os_mkdirs(path, 0711, err)) != 0)
            return r;
    if (access(ret->shim, X_OK) != 0 || access(ret->init, X_OK) != 0)
        return st_fail(err, ST_ENOENT, "stint-shim and stint-init are not in %s", own);
    st_cg_find(&ret->cg);
    set_images(conf, ret);
    return 0;
}

static int write_try(const st_run *run, const char *dir, const char *name, st_err *err)
{
    static const char *const command[] = {"/run/stint/init", "--check", NULL};
    char data[PATH_MAX];
    const st_run_spec spec = {.id = "try",
                              .tenant = "stint",
                              .uid = 65533,
                              .gid = 65533,
                              .data = data,
                              .command = command,
                              .cpu_m = 1000,
                              .ram_mib = 64,
                              .pids = 16};
    char root[PATH_MAX], inject[PATH_MAX], init[PATH_MAX], config_path[PATH_MAX], group[256];
    ST_CLEANUP(st_os_jsonp) json_t *config = NULL;
    int r;

    snprintf(group, sizeof(group), "%s/%s", run->cgroup_root, name);
    const st_bundle_place place = {.rootfs = root,
                                   .inject = inject,
                                   .init = run->init,
                                   .cgroup = group,
                                   .hostname = "try",
                                   .cgroups = run->cg.mode};

    if ((r = st_os_path(root, err, "%s/rootfs", dir)) != 0 ||
        (r = st_os_path(inject, err, "%s/inject", dir)) != 0 ||
        (r = st_os_path(data, err, "%s/data", dir)) != 0 ||
        (r = st_os_path(init, err, "%s/inject/init", dir)) != 0 ||
        (r = st_os_path(config_path, err, "%s/config.json", dir)) != 0 ||
        (r = st_os_mkdirs(root, 0755, err)) != 0 || (r = st_os_mkdirs(inject, 0755, err)) != 0 ||
        (r = st_os_mkdirs(data, 0755, err)) != 0 ||
        (r = st_os_write(init, "", 0, 0755, err)) != 0 ||
        (r = st_bundle_config(&spec, NULL, &place, &config, err)) != 0)
        return r;
    /* Nobody supervises it, and it would wait for that. */
    json_object_set_new(json_object_get(config, "process"), "args",
                        json_pack("[s, s]", command[0], command[1]));
    return st_os_write_json(config_path, config, err);
}

/* A tmpfs that nobody else sees, over a folder that is there: a full disk says nothing about a runtime, and nothing of a
 * trial is left on it. */
static int hide(const char *over, st_err *err)
{
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", over, "tmpfs", MS_NODEV | MS_NOSUID, "mode=0700,size=4m") != 0)
        return st_fail(err, ST_EDOWN, "a tmpfs cannot be mounted: %s", strerror(errno));
    return 0;
}

/* In a child. */
static int try_alone(const st_run *run, const char *path, const char *name, st_err *err)
{
    char top[PATH_MAX], dir[PATH_MAX], root[PATH_MAX], said[512];
    const char *argv[] = {path, "--root", root, "run", "--bundle", dir, name, NULL};
    const char *clean[] = {path, "--root", root, "delete", "--force", name, NULL};
    int r;

    if ((r = st_os_path(top, err, "%s/runtime", run->state_dir)) != 0 ||
        (r = st_os_path(dir, err, "%s/bundle", top)) != 0 ||
        (r = st_os_path(root, err, "%s/root", top)) != 0 || (r = hide(top, err)) != 0 ||
        (r = write_try(run, dir, name, err)) != 0)
        return r;
    for (int tries = 0; tries < TRIES; tries++) {
        char waste[64];
        int status = st_os_run(argv, said, sizeof(said));

        if (status == 0) {
            *err = (st_err){0};
            return 0;
        }
        said[strcspn(said, "\n")] = '\0';
        r = st_fail(err, ST_EDOWN, "%s cannot run a container here: %s", path,
                    said[0] ? said : "it gave no reason");
        (void)st_os_run(clean, waste, sizeof(waste));
        if (status <= KILLED && said[0]) /* what was killed, or says nothing, has not been tried */
            break;
    }
    return r;
}

int st_runtime_try(const st_run *run, const char *path, st_err *err)
{
    char name[64];
    st_err why = {0};
    int pipes[2], status;
    ssize_t n;
    pid_t pid;

    snprintf(name, sizeof(name), "%s-%d", ST_RUN_TRY, (int)getpid());
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return st_fail(err, ST_EDOWN, "%s cannot be tried: %s", path, strerror(errno));
    pid = fork();
    if (pid == 0) {
        (void)try_alone(run, path, name, &why);
        _exit(write(pipes[1], &why, sizeof(why)) != (ssize_t)sizeof(why));
    }
    close(pipes[1]);
    while ((n = pid > 0 ? read(pipes[0], &why, sizeof(why)) : -1) < 0 && errno == EINTR)
        ;
    close(pipes[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    st_run_rest(run);
    if (n != (ssize_t)sizeof(why))
        return st_fail(err, ST_EDOWN, "%s cannot be tried: no answer came", path);
    return why.code ? st_fail(err, why.code, "%s", why.msg) : 0;
}

static int pick(st_run *run, st_err *err)
{
    int r = st_fail(err, ST_ENOENT, "no OCI runtime is installed; install crun or runc");

    for (const char *const *p = st_runtime_names; *p; p++) {
        char path[PATH_MAX];

        if (!st_os_which(*p, path))
            continue;
        r = st_runtime_try(run, path, err);
        if (r == 0)
            return set_text(run->runtime, sizeof(run->runtime), "a path", err, path, "");
    }
    return r;
}

/* For who takes the folder away: what is to go with it. On a full disk that is not worth a complaint. */
static void name_group(const st_run *run)
{
    char path[PATH_MAX];

    if (st_os_path(path, NULL, "%s/group", run->state_dir) == 0)
        (void)st_os_write(path, run->cgroup_root, strlen(run->cgroup_root), 0644, NULL);
}

int st_run_new(const st_run_conf *conf, st_run **ret, st_err *err)
{
    ST_CLEANUP(st_run_freep) st_run *run = st_xcalloc(1, sizeof(*run));
    int r = st_runtime_prepare(conf, run, err);

    if (r)
        return r;
    if (conf->runtime)
        r = set_text(run->runtime, sizeof(run->runtime), "the runtime's path", err, conf->runtime,
                     "");
    else
        r = pick(run, err);
    if (r)
        return r;
    if (conf->cgroup_root) /* who only looks after tasks does not say */
        name_group(run);
    *ret = ST_TAKE(run);
    return 0;
}

void st_run_free(st_run *run)
{
    free(run);
}

const char *st_run_runtime(const st_run *run)
{
    return run->runtime;
}

bool st_run_pins(const st_run *run)
{
    return st_cg_pins(&run->cg);
}
