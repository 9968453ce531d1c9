/*
 * Secrets and variables on their way into a task (run/private.h). In the memfd: whose they are, and for each file its
 * name with a NUL, the count of its bytes as 8 bytes, and these.
 */
#include "run/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/strbuf.h"
#include "run/bundle.h"
#include "run/init.h"
#include "run/os.h"

#define NAME_MAX_LEN 255
#define ALL_MAX      (1 << 20)
#define FD_ABOVE     16

typedef struct header {
    int64_t uid, gid;
} header;

static void wipe(st_strbuf *b)
{
    if (b->s)
        explicit_bzero(b->s, b->cap);
    st_strbuf_done(b);
}

static void pack_file(st_strbuf *out, const char *name, const void *bytes, size_t n)
{
    uint64_t count = n;

    st_strbuf_addn(out, name, strlen(name) + 1);
    st_strbuf_addn(out, (const char *)&count, sizeof count);
    st_strbuf_addn(out, bytes, n);
}

static bool names_it(const json_t *env, const char *name)
{
    size_t n = strlen(name), i;
    const json_t *row;

    json_array_foreach(env, i, row)
    {
        const char *pair = json_string_value(row);

        if (strncmp(pair, name, n) == 0 && pair[n] == '=')
            return true;
    }
    return false;
}

static bool has(const json_t *env, const char *pair)
{
    size_t i;
    const json_t *row;

    json_array_foreach(env, i, row)
    {
        if (strcmp(json_string_value(row), pair) == 0)
            return true;
    }
    return false;
}

/* What the job adds to, or puts in the place of, what every task has; what a task must have is not in it. */
static void pack_env(const st_run_spec *spec, const st_cdi_edits *cdi, st_strbuf *out)
{
    st_run_spec bare = *spec;
    json_t *all = st_bundle_env(spec, cdi), *base, *row;
    size_t i;

    bare.env = NULL;
    base = st_bundle_env(&bare, cdi);
    json_array_foreach(all, i, row)
    {
        const char *pair = json_string_value(row);

        if (!has(base, pair))
            st_strbuf_addn(out, pair, strlen(pair) + 1);
    }
    for (i = 0; i < spec->nsecret; i++) {
        const st_run_secret *s = &spec->secrets[i];

        if (!s->env || names_it(base, s->name))
            continue;
        st_strbuf_add(out, s->name);
        st_strbuf_addc(out, '=');
        st_strbuf_addn(out, s->bytes, s->n);
        st_strbuf_addc(out, '\0');
    }
    json_decref(all);
    json_decref(base);
}

int st_private_pack(const st_run_spec *spec, const st_cdi_edits *cdi, int *ret_fd, st_err *err)
{
    ST_CLEANUP(wipe) st_strbuf env = {0};
    ST_CLEANUP(wipe) st_strbuf all = {0};
    ssize_t n;
    int fd;

    st_strbuf_addn(&all, (const char *)&(header){spec->uid, spec->gid}, sizeof(header));
    pack_env(spec, cdi, &env);
    pack_file(&all, ST_INIT_ENV, st_strbuf_str(&env), env.n);
    for (size_t i = 0; i < spec->nsecret; i++)
        pack_file(&all, spec->secrets[i].name, spec->secrets[i].bytes, spec->secrets[i].n);
    fd = memfd_create("stint-private", MFD_CLOEXEC);
    if (fd >= 0 && fd < FD_ABOVE) { /* clear of the supervisor's places */
        int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_ABOVE);

        close(fd);
        fd = high;
    }
    n = fd >= 0 ? write(fd, all.s, all.n) : -1;
    if (n != (ssize_t)all.n || lseek(fd, 0, SEEK_SET) != 0) {
        int r = st_fail(err, ST_EIO, "cannot hand over the task's variables: %s", strerror(errno));

        st_os_closep(&fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

/* ---- in the supervisor ------------------------------------------------------------------------ */

static int make_file(int dir, const char *name, const char *bytes, size_t n, uid_t uid, gid_t gid)
{
    ST_CLEANUP(st_os_closep)
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);

    while (fd >= 0 && n > 0) {
        ssize_t k = write(fd, bytes, n);

        if (k <= 0)
            return -1;
        bytes += k;
        n -= (size_t)k;
    }
    return fd >= 0 && fchown(fd, uid, gid) == 0 && fchmod(fd, 0400) == 0 ? 0 : -1;
}

/* What the starter wrote; still every step is checked. */
static int make_files(int dir, const char *all, size_t n, uid_t uid, gid_t gid)
{
    size_t at = 0;

    while (at < n) {
        const char *name = all + at;
        size_t len = strnlen(name, n - at);
        uint64_t count;

        at += len + 1;
        if (len == 0 || len > NAME_MAX_LEN || at + sizeof count > n)
            return -1;
        memcpy(&count, all + at, sizeof count);
        at += sizeof count;
        if (count > n - at || strchr(name, '/') ||
            make_file(dir, name, all + at, (size_t)count, uid, gid) != 0)
            return -1;
        at += (size_t)count;
    }
    return 0;
}

static int mount_tmpfs(const char *dir)
{
    unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

    /* Never to a swap device, where the kernel can promise that. */
    if (mount("tmpfs", dir, "tmpfs", flags, "size=4m,mode=0500,noswap") == 0)
        return 0;
    return mount("tmpfs", dir, "tmpfs", flags, "size=4m,mode=0500");
}

int st_private_mount(int fd, const char *dir, st_err *err)
{
    ST_CLEANUP(st_os_closep) int top = -1;
    struct stat st;
    header whose;
    char *all;
    int r = 0;

    if (fstat(fd, &st) != 0 || st.st_size < (off_t)sizeof whose || st.st_size > ALL_MAX)
        return st_fail(err, ST_EIO, "the task's variables were not handed over");
    if (mount_tmpfs(dir) != 0)
        return st_fail(err, ST_EIO, "cannot make room for secrets: %s", strerror(errno));
    top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    all = mmap(NULL, (size_t)st.st_size + 1, PROT_READ, MAP_PRIVATE, fd, 0);
    if (all != MAP_FAILED)
        memcpy(&whose, all, sizeof whose);
    if (top < 0 || all == MAP_FAILED ||
        make_files(top, all + sizeof whose, (size_t)st.st_size - sizeof whose, (uid_t)whose.uid,
                   (gid_t)whose.gid) != 0 ||
        fchown(top, (uid_t)whose.uid, (gid_t)whose.gid) != 0)
        r = st_fail(err, ST_EIO, "cannot write down secrets: %s", strerror(errno));
    if (all != MAP_FAILED)
        munmap(all, (size_t)st.st_size + 1);
    return r;
}
