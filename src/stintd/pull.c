/* See pull.h. */
#include "stintd/pull.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/net.h"
#include "base/quote.h"
#include "beneath/beneath.h"
#include "model/said.h"
#include "spec/spec.h"
#include "stintd/child.h"

#define TIMEOUT_MS INT64_C(1800000)
#define LOOK_MS    INT64_C(60000)      /* to ask which digest it has */
#define FILE_BYTES (INT64_C(64) << 30) /* of one layer */
#define FROM_MAX   512
#define INDEX_MAX  (1 << 20)
#define LETTERS    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

int st_pull_check(const st_pull *p, st_err *err)
{
    if (p->registries && !p->dir)
        return st_fail(err, ST_EINVAL,
                       "registries needs images, the folder where layouts are kept");
    if (p->dir && p->dir[0] != '/')
        return st_fail(err, ST_EINVAL,
                       "images: %.200s must be a path from / on, the same on all nodes", p->dir);
    if (p->dir && strpbrk(p->dir, ":,\\"))
        return st_fail(err, ST_EINVAL, "images: %.200s must not contain : , or \\", p->dir);
    return 0;
}

/* The host is one of the list, letter by letter. */
static bool is_allowed(const st_pull *p, const char *host, size_t n)
{
    const char *at = p->registries ? p->registries : "";

    while (*at) {
        size_t len;

        at += strspn(at, " ,\t");
        len = strcspn(at, " ,\t");
        if (len > 0 && len == n && memcmp(at, host, n) == 0)
            return true;
        at += len;
    }
    return false;
}

/* HOST[:PORT]/NAME[:TAG][@sha256:HEX]: a word that is nothing else to a program. */
static int check_from(const st_pull *p, const char *from, size_t *ret_host, st_err *err)
{
    size_t host = strcspn(from, "/"), n = strlen(from);
    const char *at = strchr(from, '@');
    char q[ST_QUOTE_MAX];

    st_quote(q, from);
    if (n == 0 || n > FROM_MAX || strspn(from, LETTERS "./:_-@") != n ||
        !strchr(LETTERS, from[0]) || host == n || !from[host + 1] || strstr(from, "//") ||
        strstr(from, "..") || memchr(from, '@', host))
        return st_fail(err, ST_EINVAL,
                       "%s is not HOST/NAME:TAG, as in registry.example/team/app:1.2", q);
    if (at && !st_digest_text_ok(at + 1))
        return st_fail(err, ST_EINVAL, "%s: after @ comes sha256: and 64 hex digits", q);
    if (!is_allowed(p, from, host))
        return st_fail(err, ST_EPERM,
                       "registry %.*s is not one of this site's; the configuration says which are "
                       "(registries)",
                       (int)host, from);
    *ret_host = host;
    return 0;
}

/* ---- the program ------------------------------------------------------------------------------------ */

#define ARGS_MAX 24

typedef struct args {
    const char *v[ARGS_MAX];
    size_t n;
} args;

static void add(args *a, const char *word)
{
    ST_ASSERT(a->n + 1 < ARGS_MAX);
    a->v[a->n++] = word;
}

/* Its last sentence, for people. */
static int complain(const char *from, const st_strbuf *said, int status, st_err *err)
{
    const char *text = st_strbuf_str(said), *msg = NULL;
    char words[300], q[ST_QUOTE_MAX];

    for (const char *at = text; (at = strstr(at, "msg=\"")); at += strlen("msg=\""))
        msg = at + strlen("msg=\""); /* of the last line; its end may be long and of no use */
    st_said_text(msg ? msg : text, words, sizeof words);
    st_quote(q, from);
    if (status == -1)
        return st_fail(err, ST_EDOWN, "%s took too long and was given up", q);
    if (status == -2)
        return st_fail(err, ST_EDOWN, "skopeo cannot be run: install it on stintd's machine");
    return st_fail(err, ST_EREFUSED, "%s cannot be pulled: %s", q,
                   words[0] ? words : "no reason given");
}

/* skopeo with what the site has configured, then the words of a command. */
static void begin(const st_pull *p, const char *temp, args *a)
{
    add(a, p->skopeo ? p->skopeo : "/usr/bin/skopeo");
    if (p->policy) {
        add(a, "--policy");
        add(a, p->policy);
    } else {
        add(a, "--insecure-policy");
    }
    if (p->signatures) {
        add(a, "--registries.d");
        add(a, p->signatures);
    }
    add(a, "--tmpdir");
    add(a, temp);
}

static void source(const st_pull *p, args *a, bool copy, bool loopback)
{
    if (loopback) /* nobody is in between */
        add(a, copy ? "--src-tls-verify=false" : "--tls-verify=false");
    if (p->auth) {
        add(a, copy ? "--src-authfile" : "--authfile");
        add(a, p->auth);
    } else {
        add(a, copy ? "--src-no-creds" : "--no-creds");
    }
}

static int run(const st_pull *p, const args *a, const char *home, int64_t timeout_ms,
               st_strbuf *out)
{
    return st_child_run(&(st_child){.argv = a->v,
                                    .home = home,
                                    .complains = true,
                                    .timeout_ms = timeout_ms,
                                    .file_bytes = FILE_BYTES,
                                    .ends = p->ends,
                                    .ctx = p->ctx},
                        out);
}

/* What the registry says that the name stands for now. */
static int ask_digest(const st_pull *p, const char *from, const char *url, const char *home,
                      bool loopback, char ret[72], st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    args a = {.n = 0};
    char *text;
    int status;

    begin(p, home, &a);
    add(&a, "inspect");
    add(&a, "--no-tags");
    source(p, &a, false, loopback);
    add(&a, "--format");
    add(&a, "{{.Digest}}");
    add(&a, url);
    status = run(p, &a, home, LOOK_MS, &out);
    if (status != 0)
        return complain(from, &out, status, err);
    st_strbuf_addc(&out, '\0');
    text = out.s;
    text[strcspn(text, "\r\n")] = '\0';
    if (!st_digest_text_ok(text))
        return st_fail(err, ST_EREFUSED, "the registry says no digest of %.200s", from);
    memcpy(ret, text, 72);
    return 0;
}

static int copy(const st_pull *p, const char *from, const char *url, const char *to,
                const char *home, bool loopback, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0}, target = {0};
    args a = {.n = 0};
    int status;

    st_strbuf_addf(&target, "oci:%s:latest", to);
    begin(p, home, &a);
    add(&a, "copy");
    add(&a, "--quiet");
    add(&a, "--remove-signatures"); /* they are looked at; a layout has no place for them */
    source(p, &a, true, loopback);
    add(&a, url);
    add(&a, st_strbuf_str(&target));
    status = run(p, &a, home, TIMEOUT_MS, &out);
    return status == 0 ? 0 : complain(from, &out, status, err);
}

/* Copies what the name stood for when it was asked. Signatures may be for a tag, so where there is a policy the name as it was given is
 * copied, and asked again. */
static int copy_that(const st_pull *p, const char *from, st_strbuf *url, const char *was,
                     const char *to, bool loopback, st_err *err)
{
    char is[72];
    int r;

    if (!p->policy && !strchr(from, '@')) {
        const char *name = strrchr(from, '/'), *tag = strchr(name, ':');

        st_strbuf_clear(url);
        st_strbuf_addf(url, "docker://%.*s@%s", (int)(tag ? tag - from : (ptrdiff_t)strlen(from)),
                       from, was);
    }
    r = copy(p, from, st_strbuf_str(url), to, p->dir, loopback, err);
    if (r == 0 && p->policy)
        r = ask_digest(p, from, st_strbuf_str(url), p->dir, loopback, is, err);
    if (r == 0 && p->policy && strcmp(is, was) != 0)
        return st_fail(err, ST_ESTATE,
                       "%.200s became another image while it was pulled; pull it again", from);
    return r;
}

/* ---- layouts ---------------------------------------------------------------------------------------- */

/* Those who read it on nodes are nobody in particular. */
static void open_to_all(int dir)
{
    DIR *list = fdopendir(dup(dir));
    const struct dirent *d;

    while (list && (d = readdir(list)) != NULL) {
        struct stat s;

        if (strcmp(d->d_name, "..") == 0 || fstatat(dir, d->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (S_ISREG(s.st_mode) || strcmp(d->d_name, ".") == 0)
            (void)!fchmodat(dir, d->d_name, S_ISREG(s.st_mode) ? 0644 : 0755, 0);
        if (S_ISDIR(s.st_mode) && d->d_name[0] != '.') {
            int next = openat(dir, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

            if (next >= 0) {
                open_to_all(next);
                close(next);
            }
        }
    }
    if (list)
        closedir(list);
}

static int read_digest(const char *layout, char ret[72], st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, text = {0};
    const char *digest;
    json_t *index;
    int r;

    st_strbuf_addf(&path, "%s/index.json", layout);
    r = st_file_read(st_strbuf_str(&path), INDEX_MAX, &text, err);
    if (r < 0)
        return r;
    index = json_loads(st_strbuf_str(&text), 0, NULL);
    digest = json_string_value(
        json_object_get(json_array_get(json_object_get(index, "manifests"), 0), "digest"));
    if (digest && st_digest_text_ok(digest))
        memcpy(ret, digest, 72);
    else
        r = st_fail(err, ST_EREFUSED, "what was pulled names no manifest");
    json_decref(index);
    return r;
}

/* Which layout an image of the registry became: a file of that name. */
static bool read_known(int root, const char *was, char ret[72])
{
    char name[96], text[72] = "";
    struct stat s;
    ssize_t n = -1;
    int fd = -1;

    snprintf(name, sizeof name, "from-%s", was + 7);
    if (st_beneath_open(root, name, &fd, &s, NULL) == 0) {
        n = read(fd, text, sizeof text - 1);
        close(fd);
    }
    if (n != 71 || !st_digest_text_ok(text) || st_beneath_open(root, text + 7, &fd, &s, NULL) < 0)
        return false;
    close(fd);
    memcpy(ret, text, sizeof text);
    return true;
}

static void note_known(int root, const char *was, const char *digest)
{
    char name[96], temp[104];
    struct stat s;
    int fd;

    snprintf(name, sizeof name, "from-%s", was + 7);
    snprintf(temp, sizeof temp, ".%s", name);
    if (st_beneath_create(root, temp, &fd, &s, NULL) < 0)
        return;
    if (ftruncate(fd, 0) == 0 && write(fd, digest, 71) == 71)
        (void)st_beneath_rename(root, temp, name, NULL);
    close(fd);
}

static int take(const st_pull *p, int root, const char *temp, char ret_digest[72], st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    struct stat s;
    int fd, r;

    st_strbuf_addf(&path, "%s/%s", p->dir, temp);
    r = read_digest(st_strbuf_str(&path), ret_digest, err);
    if (r == 0)
        r = st_beneath_open(root, temp, &fd, &s, err);
    if (r < 0)
        return r;
    open_to_all(fd);
    close(fd);
    if (renameat2(root, temp, root, ret_digest + 7, RENAME_NOREPLACE) != 0 && errno != EEXIST)
        return st_fail(err, ST_EIO, "%s: %s", p->dir, strerror(errno));
    return 0;
}

int st_pull_image(const st_pull *p, const char *from, st_strbuf *ret_path, char ret_digest[72],
                  st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf url = {0}, to = {0};
    char was[72], temp[40], name[64] = "";
    unsigned char random[8];
    size_t host;
    int root = -1, r = check_from(p, from, &host, err);
    bool loopback;

    if (r < 0)
        return r;
    snprintf(name, sizeof name, "%.*s", (int)ST_MIN(host, sizeof name - 1), from);
    loopback = st_net_loopback(name);
    if (mkdir(p->dir, 0755) != 0 && errno != EEXIST)
        return st_fail(err, ST_EIO, "%s: cannot be made: %s", p->dir, strerror(errno));
    r = st_beneath_root(p->dir, &root, err);
    if (r < 0)
        return r;
    randombytes_buf(random, sizeof random);
    memcpy(temp, ".new-", 5);
    sodium_bin2hex(temp + 5, sizeof temp - 5, random, sizeof random);
    st_strbuf_addf(&url, "docker://%s", from);
    st_strbuf_addf(&to, "%s/%s", p->dir, temp);
    r = ask_digest(p, from, st_strbuf_str(&url), p->dir, loopback, was, err);
    /* What was fetched before has not been held against the policy of today. */
    if (r == 0 && (p->policy || !read_known(root, was, ret_digest))) {
        r = copy_that(p, from, &url, was, st_strbuf_str(&to), loopback, err);
        if (r == 0)
            r = take(p, root, temp, ret_digest, err);
        if (r == 0)
            note_known(root, was, ret_digest);
        (void)st_beneath_remove(root, temp, NULL);
    }
    if (r == 0)
        st_strbuf_addf(ret_path, "%s/%s", p->dir, ret_digest + 7);
    close(root);
    return r;
}
