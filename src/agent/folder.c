/*
 * The folder that a job came with: made once, from what its submit had brought, before the first of its tasks starts. It lies in the
 * tree of volumes, so all its tasks and all its stays have it, and what they write there can be copied away afterwards.
 *
 * The list of files and the chunks are a tenant's. So a child reads them as that tenant, with no other right, and believes
 * no name: the list is what its digest says, each chunk likewise, and every path is opened beneath the new folder. It gets its
 * name when all of it is there; of several tasks that make it at once one is first and the others take that.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/launch.h"
#include "base/mem.h"
#include "beneath/beneath.h"

typedef struct maker {
    const st_folder *of;
    int jobs, brought, root; /* of what is made */
    char temp[64];
    char *chunk; /* room for one */
    int64_t bytes;
} maker;

/* What the child says to who waits for it. */
typedef struct word {
    int code;
    char msg[400];
} word;

static int open_space(const char *dir, const char *id, int *ret, st_err *err)
{
    char path[PATH_MAX];
    int fd = snprintf(path, sizeof path, "%s/%s", dir, id) >= (int)sizeof path
                 ? -1
                 : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return st_fail(
            err, ST_EDOWN,
            "the folder of the job cannot be made: %s is not below %s on this node: is it "
            "mounted?",
            id, dir);
    *ret = fd;
    return 0;
}

static bool is_there(int jobs, const char *job)
{
    struct stat s;

    return fstatat(jobs, job, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(s.st_mode);
}

/* ---- in the child, as the tenant ------------------------------------------------------------------- */

static bool sum_is(const char *bytes, size_t n, const char *hex)
{
    unsigned char sum[crypto_hash_sha256_BYTES];
    char is[2 * sizeof sum + 1];

    crypto_hash_sha256(sum, (const unsigned char *)bytes, n);
    sodium_bin2hex(is, sizeof is, sum, sizeof sum);
    return strcmp(is, hex) == 0;
}

/* All of a file that was brought, if it is what its digest says. */
static int read_brought(const maker *m, const char *at, const char *hex, int64_t max, char *buf,
                        size_t *ret_n, st_err *err)
{
    struct stat s;
    st_err why = {0};
    size_t n = 0;
    int fd, r = st_beneath_open(m->brought, at, &fd, &s, &why);

    if (r < 0)
        return why.code == ST_ENOENT
                   ? st_fail(err, ST_ENOENT,
                             "the folder that the job came with is not there any more; submit it "
                             "again with --with")
                   : st_fail(err, why.code, "what the job came with cannot be read: %s", why.msg);
    while (n <= (size_t)max) {
        ssize_t got = read(fd, buf + n, (size_t)max + 1 - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            r = st_fail(err, ST_EIO, "what the job came with cannot be read: %s", strerror(errno));
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    close(fd);
    if (r == 0 && (n > (size_t)max || !sum_is(buf, n, hex)))
        r = st_fail(err, ST_EPERM,
                    "what the job came with is damaged; submit it again with --with");
    *ret_n = n;
    return r;
}

static int write_file(maker *m, const json_t *file, st_err *err)
{
    const char *path = json_string_value(json_object_get(file, "path"));
    const json_t *chunks = json_object_get(file, "chunks"), *row;
    char own[ST_BENEATH_PATH_MAX], at[ST_FOLDER_CHUNK_AT];
    struct stat s;
    size_t i, n;
    int fd,
        r = path ? st_beneath_path(path, own, err) : st_fail(err, ST_EINVAL, "a file has no path");

    if (r == 0)
        r = st_beneath_create(m->root, own, &fd, &s, err);
    if (r < 0)
        return r;
    json_array_foreach(chunks, i, row)
    {
        const char *hex = json_string_value(row);

        if (r < 0)
            break;
        if (!hex || !st_folder_digest_ok(hex) || s.st_size > 0)
            r = st_fail(err, ST_EPERM, "the list of files makes no sense");
        if (r == 0) {
            st_folder_chunk_at(hex, at);
            r = read_brought(m, at, hex, ST_FOLDER_CHUNK, m->chunk, &n, err);
        }
        m->bytes += r == 0 ? (int64_t)n : 0;
        if (r == 0 && m->bytes > ST_FOLDER_BYTES_MAX)
            r = st_fail(err, ST_ELIMIT, "the folder that the job came with is too large");
        if (r == 0 && write(fd, m->chunk, n) != (ssize_t)n)
            r = st_fail(err, errno == ENOSPC || errno == EDQUOT ? ST_EFULL : ST_EIO,
                        "the folder of the job cannot be written: %s", strerror(errno));
    }
    if (r == 0 && json_is_true(json_object_get(file, "run")) && fchmod(fd, 0770) != 0)
        r = st_fail(err, ST_EIO, "the folder of the job cannot be written: %s", strerror(errno));
    close(fd);
    return r;
}

static int write_files(maker *m, const json_t *list, st_err *err)
{
    const json_t *files = json_object_get(list, "files"),
                 *folders = json_object_get(list, "folders");
    const json_t *row;
    int r = 0;
    size_t i;

    if (json_array_size(files) + json_array_size(folders) > 2 * ST_FOLDER_FILES_MAX)
        return st_fail(err, ST_ELIMIT, "the folder that the job came with has too many files");
    json_array_foreach(folders, i, row)
    {
        const char *path = json_string_value(row);
        char own[ST_BENEATH_PATH_MAX];

        if (r == 0)
            r = st_beneath_path(path ? path : "", own, err);
        if (r == 0)
            r = st_beneath_folders(m->root, own, err);
    }
    json_array_foreach(files, i, row)
    {
        if (r == 0)
            r = write_file(m, row, err);
    }
    return r;
}

static int make(maker *m, st_err *err)
{
    const st_folder *f = m->of;
    char at[ST_FOLDER_DIGEST + 2];
    char *text = st_xmalloc((size_t)ST_FOLDER_LIST_MAX + 2);
    json_t *list = NULL;
    size_t n = 0;
    int r;

    m->chunk = st_xmalloc((size_t)ST_FOLDER_CHUNK + 2);
    snprintf(at, sizeof at, "t/%s", f->tree);
    r = read_brought(m, at, f->tree, ST_FOLDER_LIST_MAX, text, &n, err);
    if (r == 0) {
        list = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(list))
            r = st_fail(err, ST_EPERM, "the list of files makes no sense");
    }
    if (r == 0 && (mkdirat(m->jobs, m->temp, 0770) != 0 ||
                   (m->root = openat(m->jobs, m->temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)) < 0))
        r = st_fail(err, ST_EIO, "the folder of the job cannot be made: %s", strerror(errno));
    if (r == 0)
        r = write_files(m, list, err);
    if (r == 0 && renameat2(m->jobs, m->temp, m->jobs, f->job, RENAME_NOREPLACE) != 0 &&
        errno != EEXIST)
        r = st_fail(err, ST_EIO, "the folder of the job cannot be made: %s", strerror(errno));
    (void)st_beneath_remove(m->jobs, m->temp, NULL); /* if it is still called that */
    json_decref(list);
    free(text);
    free(m->chunk);
    return r;
}

static void child(maker *m, int out)
{
    const gid_t group = (gid_t)m->of->gid;
    st_err err = {0};
    word w = {0};
    int r;

    umask(0007);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || setgroups(1, &group) != 0 ||
        setresgid(group, group, group) != 0 ||
        setresuid((uid_t)m->of->uid, (uid_t)m->of->uid, (uid_t)m->of->uid) != 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        r = st_fail(&err, ST_EIO, "the folder of the job cannot be made as its tenant: %s",
                    strerror(errno));
    else
        r = make(m, &err);
    if (r < 0) {
        w.code = err.code;
        snprintf(w.msg, sizeof w.msg, "%.399s", err.msg);
    }
    _exit(write(out, &w, sizeof w) == (ssize_t)sizeof w ? 0 : 1);
}

/* ---- who waits ------------------------------------------------------------------------------------- */

static int run_child(maker *m, st_err *err)
{
    word w = {0};
    int pipes[2], status;
    ssize_t n;
    pid_t pid;

    if (pipe2(pipes, O_CLOEXEC) != 0)
        return st_fail(err, ST_EIO, "no pipe: %s", strerror(errno));
    pid = fork();
    if (pid == 0) {
        close(pipes[0]);
        child(m, pipes[1]);
    }
    close(pipes[1]);
    do
        n = pid < 0 ? 0 : read(pipes[0], &w, sizeof w);
    while (n < 0 && errno == EINTR);
    close(pipes[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (n != (ssize_t)sizeof w)
        return st_fail(err, ST_EIO, "the folder of the job could not be made: its helper died");
    w.msg[sizeof w.msg - 1] = '\0';
    return w.code ? st_fail(err, w.code, "%s", w.msg) : 0;
}

int st_folder_make(const st_folder *f, st_err *err)
{
    maker m = {.of = f, .jobs = -1, .brought = -1, .root = -1};
    int r = open_space(f->dir, f->space, &m.jobs, err);

    if (r == 0 && !is_there(m.jobs, f->job)) {
        snprintf(m.temp, sizeof m.temp, ".new-%s-%d", f->job, (int)getpid());
        r = open_space(f->dir, f->brought, &m.brought, err);
        if (r == 0)
            r = run_child(&m, err);
        if (r == 0 && !is_there(m.jobs, f->job))
            r = st_fail(err, ST_EIO, "the folder of the job is not there");
    }
    if (m.jobs >= 0)
        close(m.jobs);
    if (m.brought >= 0)
        close(m.brought);
    return r;
}
