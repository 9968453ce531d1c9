/* From a layout to a root file system; see the header. */
#include "run/image.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/cache.h"
#include "run/fetch.h"
#include "run/jail.h"
#include "run/os.h"
#include "run/unpack.h"

#define LOOK_MS 100  /* between two looks whether to go on */
#define GONE_MS 1000 /* for a killed helper; one that a file system holds is left to itself */

/* What helpers say: fixed in size, nothing to parse. */
typedef struct found {
    st_jail_word word;
    char hex[ST_DIGEST_HEX + 1];
    st_manifest manifest;
} found;

typedef struct finished {
    st_jail_word word;
    st_unpacked sum;
} finished;

typedef struct making {
    const st_image_ask *ask;
    int64_t until_ms;
    int64_t most; /* bytes of one image: all there is for the site, half of it for a tenant */
    char scope[PATH_MAX];
    int in, out; /* the private copy, for reading and for writing */
    found found;
} making;

/* ---- waiting ---------------------------------------------------------------------------- */

static int out_of_time(const making *m, st_err *err)
{
    return st_fail(err, ST_EDOWN, "the image was not ready after %lld s; is its storage slow?",
                   (long long)(m->ask->timeout_ms / 1000));
}

static int go_on(const making *m, st_err *err)
{
    if (m->ask->stop && m->ask->stop(m->ask->ctx))
        return st_fail(err, ST_ESTATE, "nobody wants the image any more");
    return st_os_mono_ms() >= m->until_ms ? out_of_time(m, err) : 0;
}

static int lock(const making *m, const char *name, int *ret, st_err *err)
{
    ST_CLEANUP(st_os_closep) int fd = -1;
    char path[PATH_MAX];
    int r = st_os_path(path, err, "%s/%s", m->scope, name);

    if (r < 0)
        return r;
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return st_fail(err, ST_EIO, "cannot open %s: %s", path, strerror(errno));
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if ((r = go_on(m, err)) < 0)
            return r;
        st_os_sleep_ms(LOOK_MS);
    }
    *ret = fd;
    fd = -1;
    return 0;
}

/* Exactly n bytes in one packet from a helper. */
static int hear(const making *m, int fd, void *buf, size_t n, st_err *err)
{
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int r = go_on(m, err);

        if (r < 0)
            return r;
        if (poll(&ready, 1, LOOK_MS) <= 0)
            continue;
        ssize_t got = recv(fd, buf, n, MSG_DONTWAIT);

        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        return got == (ssize_t)n ? 0
                                 : st_fail(err, ST_EIO, "what read the image ended without a word");
    }
}

static void put_end(pid_t pid)
{
    int64_t until = st_os_mono_ms() + GONE_MS;

    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, WNOHANG) == 0 && st_os_mono_ms() < until)
        st_os_sleep_ms(2);
}

/* ---- helpers ---------------------------------------------------------------------------- */

/* A child with one end of a socket; in the child *ret_pid is 0. */
static int start(int *ret_fd, pid_t *ret_pid, st_err *err)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return st_fail(err, ST_EIO, "cannot make a socket: %s", strerror(errno));
    pid_t pid = fork();

    close(ends[pid == 0 ? 0 : 1]);
    *ret_fd = ends[pid == 0 ? 1 : 0];
    *ret_pid = pid;
    return pid < 0 ? st_fail(err, ST_EIO, "cannot fork: %s", strerror(errno)) : 0;
}

static _Noreturn void say(int fd, const void *buf, size_t n)
{
    (void)!write(fd, buf, n);
    _exit(0);
}

/* In the child. The folder is opened here and not before: a file system that hangs holds nobody else. */
static _Noreturn void be_fetcher(const making *m, int fd)
{
    ST_CLEANUP(st_freep) found *f = st_xcalloc(1, sizeof(*f));
    const st_image_ask *ask = m->ask;
    const int first[] = {fd, m->out};

    st_jail_keep(first, ST_ARRAY_LEN(first));
    int root =
        open(ask->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (ask->tenant[0] ? O_NOFOLLOW : 0));
    const int keep[] = {fd, m->out, root};
    st_jail jail = {.root = root,
                    .uid = ST_RUN_IMAGE_UID,
                    .gid = ST_RUN_IMAGE_UID,
                    .file_bytes = m->most,
                    .keep = keep,
                    .nkeep = ST_ARRAY_LEN(keep)};
    const st_fetch fetch = {
        .root = root, .path = ask->path, .digest = ask->digest, .max_bytes = m->most};
    st_err err = {0};
    struct stat st;
    int layout = -1, r = 0;
    char go;

    if (root < 0 || fstat(root, &st) != 0)
        r = st_fail(&err, ST_ENOENT, "the image's folder is not on this node: %s", strerror(errno));
    /* A tenant's storage is read as its tenant: what that could not read, nobody reads for it. */
    if (r == 0 && ask->tenant[0]) {
        jail.uid = st.st_uid;
        jail.gid = st.st_gid;
    }
    if (r == 0)
        r = st_jail_enter(&jail, &err);
    if (r == 0)
        r = st_fetch_manifest(&fetch, &f->manifest, f->hex, &layout, &err);
    st_jail_say(&f->word, &err);
    if (r < 0)
        say(fd, f, sizeof(*f));
    if (write(fd, f, sizeof(*f)) != (ssize_t)sizeof(*f) || read(fd, &go, 1) != 1 || !go)
        _exit(0);
    (void)st_fetch_layers(layout, &f->manifest, m->out, &err);
    st_jail_say(&f->word, &err);
    say(fd, &f->word, sizeof(f->word));
}

static _Noreturn void be_unpacker(const making *m, const char *root, int fd)
{
    const int first[] = {fd, m->in};

    st_jail_keep(first, ST_ARRAY_LEN(first));
    int dir = open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int keep[] = {fd, m->in, dir};
    const st_jail jail = {.root = dir,
                          .uid = ST_RUN_IMAGE_UID,
                          .gid = ST_RUN_IMAGE_UID,
                          .file_bytes = m->most,
                          .makes = true,
                          .keep = keep,
                          .nkeep = ST_ARRAY_LEN(keep)};
    finished done = {0};
    st_err err = {0};
    int r = dir < 0 ? st_fail(&err, ST_EIO, "cannot open %s: %s", root, strerror(errno)) : 0;

    umask(0);
    if (r == 0)
        r = st_jail_enter(&jail, &err);
    if (r == 0) {
        st_unpack *u = st_unpack_new(dir, m->most);

        (void)st_unpack_image(u, m->in, &m->found.manifest, &err);
        st_unpack_sum(u, &done.sum);
    }
    st_jail_say(&done.word, &err);
    say(fd, &done, sizeof(done));
}

/* ---- what helpers said is checked as well ------------------------------------------------ */

static int check_found(const making *m, st_err *err)
{
    const found *f = &m->found;
    int64_t bytes = 0;
    bool good = strnlen(f->hex, sizeof(f->hex)) == ST_DIGEST_HEX &&
                strspn(f->hex, "0123456789abcdef") == ST_DIGEST_HEX && f->manifest.n > 0 &&
                f->manifest.n <= ST_LAYERS_MAX;

    for (int i = 0; good && i < f->manifest.n; i++) {
        good = f->manifest.layer[i].size >= 0 && f->manifest.layer[i].size <= m->most - bytes;
        bytes += good ? f->manifest.layer[i].size : 0;
    }
    if (!good || bytes != f->manifest.bytes ||
        (m->ask->digest[0] && strcmp(f->hex, m->ask->digest + 7) != 0))
        return st_fail(err, ST_ECORRUPT, "what read the image was led astray");
    return 0;
}

/* ---- the two halves ---------------------------------------------------------------------- */

/* A file without a name, twice open. */
static int private_copy(making *m, st_err *err)
{
    char path[PATH_MAX];
    int r = st_os_path(path, err, "%s/copy.%d", m->scope, (int)getpid());

    if (r < 0)
        return r;
    unlink(path);
    m->out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    m->in = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    unlink(path);
    return m->in < 0 || m->out < 0
               ? st_fail(err, ST_EIO, "cannot make %s: %s", path, strerror(errno))
               : 0;
}

/* *ret_use is not negative when it turned out to be here already. */
static int fetch(making *m, int *ret_use, st_err *err)
{
    ST_CLEANUP(st_os_closep) int fd = -1;
    st_jail_word word;
    char go = 1;
    pid_t pid;
    int r = start(&fd, &pid, err);

    if (r < 0)
        return r;
    if (pid == 0)
        be_fetcher(m, fd);
    r = hear(m, fd, &m->found, sizeof(m->found), err);
    if (r == 0)
        r = st_jail_heard(&m->found.word, err);
    if (r == 0)
        r = check_found(m, err);
    if (r == 0 && !st_cache_use(m->scope, m->found.hex, ret_use)) {
        if (send(fd, &go, 1, MSG_NOSIGNAL) != 1)
            r = st_fail(err, ST_EIO, "what read the image is gone");
        if (r == 0)
            r = hear(m, fd, &word, sizeof(word), err);
        if (r == 0)
            r = st_jail_heard(&word, err);
    }
    put_end(pid);
    return r;
}

static int unpack(making *m, const char *part, int64_t *ret_bytes, st_err *err)
{
    ST_CLEANUP(st_os_closep) int fd = -1;
    char root[PATH_MAX];
    finished done;
    pid_t pid;
    int r = st_os_path(root, err, "%s/root", part);

    if (r == 0 && chown(root, ST_RUN_IMAGE_UID, ST_RUN_IMAGE_UID) != 0)
        r = st_fail(err, ST_EIO, "cannot hand over %s: %s", root, strerror(errno));
    if (r == 0)
        r = start(&fd, &pid, err);
    if (r < 0)
        return r;
    if (pid == 0)
        be_unpacker(m, root, fd);
    r = hear(m, fd, &done, sizeof(done), err);
    put_end(pid);
    if (r == 0)
        r = st_jail_heard(&done.word, err);
    if (r == 0 && (done.sum.bytes < 0 || done.sum.bytes > m->most))
        r = st_fail(err, ST_ECORRUPT, "what unpacked the image was led astray");
    if (r == 0)
        *ret_bytes = done.sum.bytes;
    return r;
}

static int make(making *m, st_err *err)
{
    const char *hex = m->found.hex;
    char part[PATH_MAX];
    int64_t bytes = 0;
    int r = st_cache_part(m->scope, hex, part, err);

    if (r < 0)
        return r;
    r = unpack(m, part, &bytes, err);
    if (r == 0)
        r = st_cache_room(m->ask->images, m->scope, bytes, m->ask->max_bytes, err);
    if (r == 0)
        r = st_cache_keep(m->scope, hex, part, bytes, err);
    if (r < 0)
        (void)st_os_remove_tree(part, NULL);
    return r;
}

int st_image_ready(const st_image_ask *ask, char ret[PATH_MAX], int *ret_use, st_err *err)
{
    ST_CLEANUP(st_freep) making *m = st_xcalloc(1, sizeof(*m));
    ST_CLEANUP(st_os_closep) int held = -1;
    char name[ST_DIGEST_HEX + 8] = "lock";
    int use = -1, r;

    *m = (making){.ask = ask,
                  .until_ms = st_os_mono_ms() + ask->timeout_ms,
                  .most = ask->tenant[0] ? ask->max_bytes / 2 : ask->max_bytes,
                  .in = -1,
                  .out = -1};
    if ((r = st_cache_scope(ask->images, ask->tenant, m->scope, err)) < 0)
        return r;
    /* Of the site only one who unpacks an image waits for the other; a tenant waits for itself alone. */
    if (!ask->tenant[0] && ask->digest[0])
        snprintf(name, sizeof(name), "%s.lock", ask->digest + 7);
    if (ask->digest[0] && st_cache_use(m->scope, ask->digest + 7, &use))
        memcpy(m->found.hex, ask->digest + 7, sizeof(m->found.hex));
    if (use < 0) {
        r = lock(m, name, &held, err);
        if (r == 0)
            r = private_copy(m, err);
        if (r == 0)
            r = fetch(m, &use, err);
        if (r == 0 && use < 0)
            r = make(m, err);
        if (r == 0 && use < 0 && !st_cache_use(m->scope, m->found.hex, &use))
            r = st_fail(err, ST_EIO, "the image was taken away again at once");
        st_os_closep(&m->in);
        st_os_closep(&m->out);
    }
    if (r == 0)
        r = st_os_path(ret, err, "%s/%s/root", m->scope, m->found.hex);
    if (r < 0) {
        st_os_closep(&use);
        return r;
    }
    *ret_use = use;
    return 0;
}
