/*
 * Starting a task: its folder, its bundle, its supervisor. The folder is made exclusively and
 * removed again if anything fails before the supervisor exists, so an id that is taken has, or
 * had, a supervisor, or belongs to a starter that died half way (state "lost").
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "run/bundle.h"
#include "run/net.h"
#include "run/os.h"
#include "run/private.h"
#include "run/segment.h"
#include "run/shim.h"
#include "run/state.h"

typedef struct starter {
    st_run *run;
    const st_run_spec *spec;
    char dir[PATH_MAX];
    st_plan plan;
    int private; /* what no disk may hold, on its way to the supervisor */
} starter;

static int make_dir(const char *parent, const char *name, mode_t mode, st_err *err)
{
    char path[PATH_MAX];
    int r = st_os_path(path, err, "%s/%s", parent, name);

    if (!r && (mkdir(path, mode) != 0 || chmod(path, mode) != 0))
        r = st_fail(err, ST_EIO, "cannot make the folder %s: %s", path, strerror(errno));
    return r;
}

static int put_file(const char *dir, const char *name, const char *text, mode_t mode, st_err *err)
{
    char path[PATH_MAX];
    int r = st_os_path(path, err, "%s/%s", dir, name);

    return r ? r : st_os_write(path, text, strlen(text), mode, err);
}

/* For the task's user and nobody else of the node. */
static int put_script(const starter *st, const char *dir, st_err *err)
{
    char path[PATH_MAX];
    int r = st_os_path(path, err, "%s/script", dir);

    if (!r)
        r = put_file(dir, "script", st->spec->script, 0500, err);
    if (!r && chown(path, (uid_t)st->spec->uid, (gid_t)st->spec->gid) != 0)
        r = st_fail(err, ST_EIO, "cannot hand over %s: %s", path, strerror(errno));
    return r;
}

/* Names of a gang's tasks, which every image sees at /etc/hosts. Its own name leads to where the others reach it. */
static int put_hosts(const starter *st, const char *dir, const char *hostname, st_err *err)
{
    const st_run_gang *gang = &st->spec->gang;
    const char *self = gang->self ? gang->self : "127.0.0.1";
    ST_CLEANUP(st_strbuf_done) st_strbuf hosts = {0};

    st_strbuf_addf(&hosts, "127.0.0.1 localhost\n::1 localhost\n%s %s\n", self, hostname);
    if (gang->world_size > 0 && gang->hosts)
        st_strbuf_add(&hosts, gang->hosts);
    return put_file(dir, "hosts", st_strbuf_str(&hosts), 0644, err);
}

/* What a task sees at /run/stint. */
static int write_inject(const starter *st, const char *hostname, char ret[PATH_MAX], st_err *err)
{
    int r = st_os_path(ret, err, "%s/bundle/inject", st->dir);

    if (!r)
        r = make_dir(st->dir, "bundle/inject", 0755, err);
    if (!r)
        r = put_file(ret, "init", "", 0755, err); /* a mount point */
    if (!r)
        r = make_dir(ret, "secrets", 0755, err); /* likewise */
    if (!r && st->spec->script)
        r = put_script(st, ret, err);
    if (!r && st->spec->gang.world_size > 0 && st->spec->gang.hostfile)
        r = put_file(ret, "hostfile", st->spec->gang.hostfile, 0644, err);
    if (!r)
        r = put_hosts(st, ret, hostname, err);
    return r;
}

/* The frame of image "host": links as on the node, mount points, and a few files of our own. */
static int write_host_root(const starter *st, const char *root, st_err *err)
{
    static const char *const dirs[] = {"proc", "sys", "dev", "run", "tmp", "data", "etc", "var"};
    static const char *const owned[] = {"", "/etc"};
    ST_CLEANUP(st_strbuf_done) st_strbuf users = {0};
    bool mapped = st->spec->userns_ids > 0;
    int r = 0;

    for (size_t i = 0; !r && i < ST_ARRAY_LEN(dirs); i++)
        r = make_dir(root, dirs[i], strcmp(dirs[i], "tmp") == 0 ? 01777 : 0755, err);
    for (const char *const *p = st_bundle_host_dirs; !r && *p; p++) {
        char target[PATH_MAX], path[PATH_MAX];
        ssize_t n = readlink(*p, target, sizeof(target) - 1);

        if (n <= 0)
            continue;
        target[n] = '\0';
        r = st_os_path(path, err, "%s%s", root, *p);
        if (!r && symlink(target, path) != 0)
            r = st_fail(err, ST_EIO, "cannot link %s: %s", path, strerror(errno));
    }
    st_strbuf_addf(&users, "job:x:%lld:%lld:job:%s:/bin/sh\n",
                   mapped ? 0LL : (long long)st->spec->uid, mapped ? 0LL : (long long)st->spec->gid,
                   st->spec->data ? "/data" : "/tmp");
    if (!mapped)
        st_strbuf_add(&users, "root:x:0:0:root:/:/bin/false\n");
    st_strbuf_add(&users, "nobody:x:65534:65534:nobody:/:/bin/false\n");
    if (!r)
        r = put_file(root, "etc/passwd", users.s, 0644, err);
    /* In a user namespace the runtime makes mount points as its root. The task never gets to
     * write here: its root is mounted read-only. */
    for (size_t i = 0; !r && mapped && i < ST_ARRAY_LEN(owned); i++) {
        char path[PATH_MAX];

        r = st_os_path(path, err, "%s%s", root, owned[i]);
        if (!r && chown(path, (uid_t)st->spec->uid, (gid_t)st->spec->gid) != 0)
            r = st_fail(err, ST_EIO, "cannot hand over %s: %s", path, strerror(errno));
    }
    return r;
}

static int make_root(starter *st, const char *root, bool *ret_host, st_err *err)
{
    const st_run_image *from = &st->spec->image;
    st_plan_image *to = &st->plan.image;
    int r = make_dir(st->dir, "bundle/rootfs", 0755, err);

    *ret_host = from->kind == ST_IMAGE_HOST;
    if (r)
        return r;
    if (*ret_host)
        return write_host_root(st, root, err);
    if ((r = make_dir(st->dir, "bundle/over", 0755, err)) != 0)
        return r;
    /* Nothing of the image is looked at here: whatever it is, the supervisor sees to it. */
    if (from->kind == ST_IMAGE_FOLDER)
        return st_os_path(st->plan.lower, err, "%s", from->root);
    *to = (st_plan_image){.max_bytes = st->run->images_bytes, .timeout_ms = st->run->image_ms};
    snprintf(to->digest, sizeof(to->digest), "%s", from->digest ? from->digest : "");
    snprintf(to->tenant, sizeof(to->tenant), "%s", from->own ? st->spec->tenant : "");
    if ((r = st_os_path(to->root, err, "%s", from->root)) != 0 ||
        (r = st_os_path(to->path, err, "%s", from->path ? from->path : ".")) != 0)
        return r;
    return st_os_path(to->images, err, "%s/images", st->run->state_dir);
}

static int check_storage(const st_run_spec *spec, st_err *err)
{
    struct stat s;

    if (!spec->data)
        return 0;
    if (lstat(spec->data, &s) != 0)
        return st_fail(err, ST_ENOENT, "the storage %s: %s", spec->data, strerror(errno));
    if (!S_ISDIR(s.st_mode))
        return st_fail(err, ST_EINVAL, "the storage %s is not a folder", spec->data);
    return 0;
}

/* A node where segments cannot be had is as good as any for all other tasks. */
static int join(const starter *st, st_err *err)
{
    st_err why = {0};
    int r = st_segment_join(st->run, st->spec->tenant, &why);

    if (r == -ST_EIO)
        return st_fail(err, ST_EREFUSED, "%s", why.msg);
    return r ? st_fail(err, why.code, "%s", why.msg) : 0;
}

static int write_bundle(starter *st, st_err *err)
{
    char root[PATH_MAX], inject[PATH_MAX], netns[PATH_MAX] = "", path[PATH_MAX];
    char private[PATH_MAX], hosts[PATH_MAX];
    char hostname[64];
    st_cdi_edits cdi = {0};
    ST_CLEANUP(st_os_jsonp) json_t *config = NULL;
    st_bundle_place place = {.rootfs = root,
                             .inject = inject,
                             .hosts = hosts,
                             .private = private,
                             .init = st->run->init,
                             .cgroup = st->plan.cgroup,
                             .hostname = hostname,
                             .netns = netns,
                             .cgroups = st->run->cg.mode};
    int r;

    snprintf(hostname, sizeof(hostname), "%.63s", st->plan.name);
    for (char *p = hostname; *p; p++)
        *p = *p == '.' || *p == '_' ? '-' : *p;
    if ((r = check_storage(st->spec, err)) != 0 ||
        (r = st_os_path(root, err, "%s/bundle/rootfs", st->dir)) != 0 ||
        (r = st_os_path(path, err, "%s/bundle/config.json", st->dir)) != 0 ||
        (r = make_dir(st->dir, "bundle", 0711, err)) != 0 ||
        (r = make_dir(st->dir, "bundle/private", 0711, err)) != 0 ||
        (r = st_os_path(private, err, "%s/bundle/private", st->dir)) != 0 ||
        (r = make_root(st, root, &place.host_root, err)) != 0 ||
        (r = write_inject(st, hostname, inject, err)) != 0 ||
        (r = st_os_path(hosts, err, "%s/hosts", inject)) != 0)
        return r;
    if (st->spec->net == ST_NET_TENANT)
        r = st_net_tenant(st->run->state_dir, st->spec->tenant, netns, err);
    if (!r && st->spec->net == ST_NET_TENANT && st->spec->segment.number > 0 &&
        (r = st_segment_note(st->dir, &st->spec->segment, err)) == 0)
        r = join(st, err);
    if (!r && st->spec->cdi_file)
        r = st_cdi_load(st->spec->cdi_file, st->spec->cdi_names, &cdi, err);
    if (!r)
        r = st_cdi_check(&cdi, err);
    if (!r)
        r = st_bundle_config(st->spec, &cdi, &place, &config, err);
    if (!r)
        r = st_os_write_json(path, config, err);
    if (!r)
        r = st_private_pack(st->spec, &cdi, &st->private, err);
    st_cdi_done(&cdi);
    return r;
}

static int make_plan(starter *st, st_err *err)
{
    const st_run_spec *spec = st->spec;
    st_plan *p = &st->plan;

    *p = (st_plan){.root_uid = spec->userns_ids > 0 ? spec->uid : 0,
                   .cpu_m = spec->cpu_m,
                   .asked_ms = st_os_now_ms(),
                   .time_limit_ms = spec->time_limit_ms,
                   .grace_ms = spec->grace_ms,
                   .log_bytes = spec->log_bytes > 0 ? spec->log_bytes : ST_RUN_LOG_DEFAULT,
                   .signal = spec->signal,
                   .merge_output = spec->merge_output,
                   .terminal = spec->terminal,
                   .input = spec->input};
    snprintf(p->id, sizeof(p->id), "%s", spec->id);
    snprintf(p->tenant, sizeof(p->tenant), "%s", spec->tenant);
    snprintf(p->runtime, sizeof(p->runtime), "%s", st->run->runtime);
    st_state_name(spec->id, p->name);
    snprintf(p->lease, sizeof(p->lease), "%s", st->run->lease);
    snprintf(p->cgroup, sizeof(p->cgroup), "%s/%s", st->run->cgroup_root, p->name);
    return st_os_path(p->runtime_root, err, "%s/runtime", st->run->state_dir);
}

/* Locks the folder for the supervisor: the lock lives as long as any copy of the descriptor. */
static int take_lock(const char *dir, int *ret_fd, st_err *err)
{
    char path[PATH_MAX];
    int r = st_os_path(path, err, "%s/lock", dir);

    if (r)
        return r;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0) {
        r = st_fail(err, ST_EIO, "cannot lock %s: %s", path, strerror(errno));
        st_os_closep(&fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

static int start_shim(const starter *st, int lock, st_err *err)
{
    char *argv[] = {(char *)(uintptr_t)st->run->shim, (char *)(uintptr_t)st->dir, NULL};
    char *env[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    pid_t pid;
    int status = 0;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    /* In this order: the second is above both places. */
    posix_spawn_file_actions_adddup2(&actions, lock, ST_SHIM_LOCK_FD);
    posix_spawn_file_actions_adddup2(&actions, st->private, ST_SHIM_PRIVATE_FD);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int failed = posix_spawn(&pid, st->run->shim, &actions, &attr, argv, env);

    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return st_fail(err, ST_EIO, "cannot start %s: %s", st->run->shim, strerror(failed));
    /* It forks and ends at once; a caller that reaps all children may have been faster. */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        return st_fail(err, ST_EIO, "%s ended with status %d", st->run->shim, status);
    return 0;
}

int st_run_start(st_run *run, const st_run_spec *spec, st_err *err)
{
    starter st = {.run = run, .spec = spec, .private = -1};
    ST_CLEANUP(st_os_closep) int lock = -1;
    int r;

    if ((r = st_run_check(spec, err)) != 0 || (r = st_state_dir(run, spec->id, st.dir, err)) != 0 ||
        (r = make_plan(&st, err)) != 0)
        return r;
    if (mkdir(st.dir, 0711) != 0)
        return errno == EEXIST
                   ? st_fail(err, ST_EEXIST, "task %s has been started before", spec->id)
                   : st_fail(err, ST_EIO, "cannot make %s: %s", st.dir, strerror(errno));
    if ((r = take_lock(st.dir, &lock, err)) == 0 &&
        (r = make_dir(st.dir, "logs", 0700, err)) == 0 &&
        /* Early, so that a folder left by a starter that died says whose it is. */
        (r = st_plan_write(st.dir, &st.plan, err)) == 0 && (r = write_bundle(&st, err)) == 0 &&
        (r = st_plan_write(st.dir, &st.plan, err)) == 0 && (r = st_reserve_take(st.dir, err)) == 0)
        r = start_shim(&st, lock, err);
    st_os_closep(&st.private);
    if (r) {
        bool segment = st_segment_noted(st.dir);

        (void)st_os_remove_tree(st.dir, NULL);
        if (segment)
            (void)st_segment_settle(run, spec->tenant, NULL);
        return st_fail_prefix(err, "task %s: ", spec->id);
    }
    return 0;
}
