/*
 * How a supervisor brings its task up (run/shim.h): the image, mounts of its own, streams, and the runtime.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "run/console.h"
#include "run/image.h"
#include "run/init.h"
#include "run/os.h"
#include "run/private.h"
#include "run/shim.h"
#include "run/shim_state.h"
#include "run/targets.h"

/* Runtimes give the private /tmp the mode of the folder it covers; everybody may write there. In
 * a user namespace they also make mount points as its root, which must own the top for that. */
static int open_tmp(const char *root, int64_t root_uid, st_err *err)
{
    ST_CLEANUP(st_os_closep)
    int top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ST_CLEANUP(st_os_closep) int tmp = -1;

    if (top >= 0 && (mkdirat(top, "tmp", 0755) == 0 || errno == EEXIST))
        tmp = openat(top, "tmp", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (tmp < 0 || fchmod(tmp, 01777) != 0)
        return st_fail(err, ST_EINVAL, "the image has no usable folder /tmp: %s", strerror(errno));
    if (root_uid > 0 && fchown(top, (uid_t)root_uid, (gid_t)-1) != 0)
        return st_fail(err, ST_EIO, "cannot hand over %s: %s", root, strerror(errno));
    return 0;
}

static bool unwanted(const void *ctx)
{
    char reason[ST_RUN_TEXT_MAX];

    return st_kill_read(ctx, reason);
}

/* An OCI image is read and unpacked by processes without rights; *s keeps the result until it ends. */
static int ready_image(st_shim *s, st_err *err)
{
    const st_plan_image *i = &s->plan.image;
    const st_image_ask ask = {.images = i->images,
                              .tenant = i->tenant,
                              .root = i->root,
                              .path = i->path,
                              .digest = i->digest,
                              .max_bytes = i->max_bytes,
                              .timeout_ms = i->timeout_ms,
                              .stop = unwanted,
                              .ctx = s->dir};

    return i->root[0] ? st_image_ready(&ask, s->plan.lower, &s->image, err) : 0;
}

/* A mount namespace of our own, so that what is mounted here is gone when we are; and first what no disk may hold. */
static int mount_private(const st_shim *s, st_err *err)
{
    char dir[PATH_MAX];
    int fd = ST_SHIM_PRIVATE_FD, r;

    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
        return st_fail(err, ST_EIO, "cannot make a mount namespace: %s", strerror(errno));
    r = st_os_path(dir, err, "%s/bundle/private", s->dir);
    if (r == 0)
        r = st_private_mount(fd, dir, err);
    close(fd);
    return r;
}

/* The image below, a small writable layer for mount points above. */
static int mount_root(const st_shim *s, st_err *err)
{
    char over[PATH_MAX], root[PATH_MAX], up[PATH_MAX], work[PATH_MAX];
    ST_CLEANUP(st_strbuf_done) st_strbuf options = {0};
    int r;

    if (!s->plan.lower[0])
        return 0;
    if ((r = st_os_path(over, err, "%s/bundle/over", s->dir)) != 0 ||
        (r = st_os_path(root, err, "%s/bundle/rootfs", s->dir)) != 0 ||
        (r = st_os_path(up, err, "%s/bundle/over/up", s->dir)) != 0 ||
        (r = st_os_path(work, err, "%s/bundle/over/work", s->dir)) != 0)
        return r;
    st_strbuf_addf(&options, "lowerdir=%s,upperdir=%s,workdir=%s", s->plan.lower, up, work);
    if (mount("tmpfs", over, "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,mode=755") != 0 ||
        mkdir(up, 0755) != 0 || mkdir(work, 0755) != 0)
        return st_fail(err, ST_EIO, "cannot make room for mount points: %s", strerror(errno));
    if (mount("overlay", root, "overlay", MS_NOSUID | MS_NODEV, options.s) != 0)
        return st_fail(err, ST_EIO, "cannot mount the image %s: %s", s->plan.lower,
                       strerror(errno));
    r = st_os_path(over, err, "%s/bundle", s->dir);
    if (r == 0)
        r = st_targets_check(over, err);
    return r < 0 ? r : open_tmp(root, s->plan.root_uid, err);
}

/* `streams`: those of the job, unless it has a terminal. */
static _Noreturn void become_runtime(const st_shim *s, const int streams[3], int word)
{
    char bundle[PATH_MAX], pid_file[PATH_MAX], log[PATH_MAX];
    char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    char *env[] = {path, NULL};
    sigset_t none;

    if (st_os_path(bundle, NULL, "%s/bundle", s->dir) != 0 ||
        st_os_path(pid_file, NULL, "%s/init.pid", s->dir) != 0 ||
        st_os_path(log, NULL, "%s/runtime.log", s->dir) != 0)
        _exit(127);
    const char *argv[] = {s->plan.runtime,
                          "--root",
                          s->plan.runtime_root,
                          "--log",
                          log,
                          "--log-format",
                          "json",
                          "run",
                          "--detach",
                          "--preserve-fds",
                          "1",
                          "--pid-file",
                          pid_file,
                          "--bundle",
                          bundle,
                          NULL,
                          NULL,
                          NULL,
                          NULL};
    size_t n = 15;

    if (s->plan.terminal) {
        argv[n++] = "--console-socket";
        argv[n++] = ST_CONSOLE;
    }
    argv[n] = s->plan.name;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir(bundle) != 0)
        _exit(127);
    for (int i = 0; i < 3; i++)
        if (streams[i] >= 0)
            dup2(streams[i], i);
    dup2(word, ST_INIT_FD);
    close_range(ST_INIT_FD + 1, ~0U, 0);
    execve(argv[0], (char *const *)(uintptr_t)argv, env);
    _exit(127);
}

/* The job's ends in `theirs`, ours in the shim. A job with a terminal has it of the runtime. */
static int open_streams(st_shim *s, int theirs[3], st_err *err)
{
    char bundle[PATH_MAX];
    int in[2] = {-1, -1}, out[2], errs[2], r;

    if (s->plan.terminal) {
        if ((r = st_os_path(bundle, err, "%s/bundle", s->dir)) < 0)
            return r;
        s->console = st_console_open(bundle, err);
        return s->console < 0 ? s->console : 0;
    }
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(errs, O_CLOEXEC) != 0 ||
        (s->plan.input && pipe2(in, O_CLOEXEC) != 0))
        return st_fail(err, ST_EIO, "cannot make a pipe: %s", strerror(errno));
    s->in = in[1];
    s->out = out[0];
    s->err = errs[0];
    theirs[0] = in[0];
    theirs[1] = out[1];
    theirs[2] = errs[1];
    return 0;
}

static int start_runtime(st_shim *s, st_err *err)
{
    int theirs[3] = {-1, -1, -1}, word[2], r;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, word) != 0)
        return st_fail(err, ST_EIO, "cannot make a pipe: %s", strerror(errno));
    if ((r = open_streams(s, theirs, err)) < 0)
        return r;
    s->runtime = fork();
    if (s->runtime == 0) {
        const int streams[3] = {theirs[0], theirs[1], s->plan.merge_output ? theirs[1] : theirs[2]};

        become_runtime(s, streams, word[1]);
    }
    for (int i = 0; i < 3; i++)
        st_os_closep(&theirs[i]);
    close(word[1]);
    s->word = word[0];
    if (s->runtime < 0)
        return st_fail(err, ST_EIO, "cannot fork: %s", strerror(errno));
    return 0;
}

/* What no disk may hold first: nothing of it is open while others read the image. */
int st_shim_start(st_shim *s, st_err *err)
{
    int r = mount_private(s, err);

    if (r == 0)
        r = ready_image(s, err);
    if (r == 0)
        r = mount_root(s, err);
    return r == 0 ? start_runtime(s, err) : r;
}
