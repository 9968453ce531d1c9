/*
 * `stint cp`: files between this machine and volumes or folders of jobs, a piece at a time. Each piece is checked by its digest. What was broken off
 * goes on where it stood: an upload is called after its file's name, size and time, a download after the version of what it
 * reads, so that pieces of two versions never meet.
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/quote.h"
#include "base/vec.h"
#include "cli/admin_doc.h"
#include "cli/progress.h"
#include "cli/view.h"
#include "cli/volume.h"
#include "model/volume.h"

#define PIECE  ((size_t)1 << 20) /* as much as stintd takes at once */
#define TRIES  5
#define DEPTH  64
#define DIGEST (2 * crypto_hash_sha256_BYTES + 1)

typedef struct cp_flags {
    const char *account;
    bool deep;
} cp_flags;

const st_cli_row st_cli_cp_options[] = {
    {"account", 'A', ST_CLI_STRING, offsetof(cp_flags, account), "ACCOUNT",
     "account of the volume (default: yours)", 0, 0},
    {"recursive", 'r', ST_CLI_FLAG, offsetof(cp_flags, deep), NULL,
     "copy folders with all that is in them", 0, 0},
    {0},
};

/* One file of many: where it comes from, where it goes, and how long it is. */
typedef struct item {
    char *from, *to;
    int64_t bytes;
    bool run;
} item;

typedef struct copier {
    st_cli *cli;
    st_client *client;
    st_strbuf route; /* of the volume */
    st_progress bar;
    int64_t done, all; /* bytes */
    ST_VEC(item) items;
    bool deep;
} copier;

static void copier_done(copier *c)
{
    for (size_t i = 0; i < c->items.n; i++) {
        free(c->items.v[i].from);
        free(c->items.v[i].to);
    }
    st_vec_free(&c->items);
    st_progress_done(&c->bar);
    st_strbuf_done(&c->route);
    st_client_free(c->client);
}

static void address(const copier *c, const char *folder, const char *path, st_strbuf *out)
{
    st_strbuf_addf(out, "%s/%s?path=", st_strbuf_str(&c->route), folder);
    st_url_add(out, path);
}

static void count(copier *c, int64_t bytes)
{
    c->done += bytes;
    st_progress_show(&c->bar, c->all > 0 ? (int)(c->done * 1000 / c->all) : 1000);
}

static void add_item(copier *c, const char *from, const char *to, int64_t bytes, bool run)
{
    st_vec_push(&c->items, (item){st_xstrdup(from), st_xstrdup(to), bytes, run});
    c->all += bytes;
}

static char *join(const char *folder, const char *name)
{
    st_strbuf out = {0};

    st_strbuf_add(&out, folder);
    if (out.n > 0 && out.s[out.n - 1] != '/' && *name)
        st_strbuf_addc(&out, '/');
    st_strbuf_add(&out, name);
    return out.n ? st_strbuf_take(&out) : st_xstrdup("");
}

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* ---- up ------------------------------------------------------------------------------------------ */

static void name_upload(const char *path, const struct stat *s, char ret[33])
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    unsigned char sum[16];

    st_strbuf_addf(&text, "%s\n%lld\n%lld.%09ld", path, (long long)s->st_size,
                   (long long)s->st_mtim.tv_sec, s->st_mtim.tv_nsec);
    crypto_generichash(sum, sizeof sum, (const unsigned char *)text.s, text.n, NULL, 0);
    sodium_bin2hex(ret, 33, sum, sizeof sum);
}

/* How far an upload has come. */
static int uploaded(copier *c, const char *to, const char *upload, int64_t *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    json_t *said = NULL;
    int r;

    address(c, "files", to, &path);
    st_strbuf_addf(&path, "&upload=%s", upload);
    r = st_client_get(c->client, st_strbuf_str(&path), &said, err);
    if (r == 0)
        *ret = json_integer_value(st_view_at(said, "uploaded"));
    json_decref(said);
    return r;
}

static int send_piece(copier *c, const item *it, const char *upload, int64_t offset,
                      const char *bytes, size_t n, int64_t size, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    unsigned char sum[crypto_hash_sha256_BYTES];
    char hex[DIGEST];

    crypto_hash_sha256(sum, (const unsigned char *)bytes, n);
    sodium_bin2hex(hex, sizeof hex, sum, sizeof sum);
    address(c, "bytes", it->to, &path);
    st_strbuf_addf(&path, "&upload=%s&offset=%lld&size=%lld&digest=%s%s", upload, (long long)offset,
                   (long long)size, hex, it->run ? "&run=true" : "");
    return st_client_call(c->client,
                          &(st_request){.method = "PUT",
                                        .path = st_strbuf_str(&path),
                                        .body = bytes,
                                        .n = n,
                                        .type = "application/octet-stream"},
                          &response, err);
}

static int send_pieces(copier *c, const item *it, int fd, const char *upload, int64_t size,
                       char *bytes, st_err *err)
{
    int64_t at = 0, before = c->done;
    int tries = 0, r = uploaded(c, it->to, upload, &at, err);

    for (bool first = true; r == 0 && (first || at < size); first = false) {
        ssize_t n = pread(fd, bytes, (size_t)ST_MIN((int64_t)PIECE, size - at), (off_t)at);

        if (n < 0 || n < ST_MIN((int64_t)PIECE, size - at))
            return st_fail(err, ST_ESTATE, "%s has changed while it was read; copy it again",
                           it->from);
        bytes[n] = '\0';
        r = send_piece(c, it, upload, at, bytes, (size_t)n, size, err);
        if ((r == -ST_EDOWN || r == -ST_ESTATE) && ++tries < TRIES) {
            sleep((unsigned)tries - 1);
            r = uploaded(c, it->to, upload, &at, err);
            first = true;
            continue;
        }
        if (r == 0) {
            tries = 0;
            at += n;
            c->done = before + at;
            count(c, 0);
        }
    }
    return r;
}

static int upload(copier *c, const item *it, st_err *err)
{
    int fd = open(it->from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), r;
    char name[33], *bytes;
    struct stat s;

    if (fd < 0 || fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) {
        r = st_fail(err, ST_EIO, "%s: %s", it->from,
                    fd < 0 ? strerror(errno) : "is not a file any more");
        if (fd >= 0)
            close(fd);
        return r;
    }
    name_upload(it->to, &s, name);
    bytes = st_xmalloc(PIECE + 1);
    r = send_pieces(c, it, fd, name, s.st_size, bytes, err);
    free(bytes);
    close(fd);
    return r;
}

/* Links and whatever is no file stay behind, and that is said. */
static int gather_up(copier *c, const char *from, const char *to, st_err *err)
{
    char *roots[] = {(char *)(uintptr_t)from, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    size_t skip = strlen(from);
    char q[ST_QUOTE_MAX];
    FTSENT *e;
    int r = 0;

    while (tree && r == 0 && (e = fts_read(tree)) != NULL) {
        const char *rest = e->fts_path + ST_MIN(skip, e->fts_pathlen);

        rest += strspn(rest, "/");
        if (e->fts_info == FTS_D && e->fts_level > 0 && !c->deep)
            fts_set(tree, e, FTS_SKIP);
        if (e->fts_info == FTS_D || e->fts_info == FTS_DP)
            continue;
        if (e->fts_info == FTS_F) {
            ST_CLEANUP(st_freep) char *there = join(to, rest);

            add_item(c, e->fts_path, there, e->fts_statp->st_size,
                     (e->fts_statp->st_mode & 0100) != 0);
        } else if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS) {
            r = st_fail(err, ST_EIO, "%s: %s", e->fts_path, strerror(e->fts_errno));
        } else {
            fprintf(c->cli->errors, "skipped %s: it is not a file or a folder\n",
                    st_quote(q, e->fts_path));
        }
    }
    if (!tree)
        r = st_fail(err, ST_EIO, "%s: %s", from, strerror(errno));
    else
        fts_close(tree);
    return r;
}

/* ---- down ---------------------------------------------------------------------------------------- */

/* A piece and the version that it is of, checked. */
static int get_piece(copier *c, const char *from, int64_t offset, size_t length, st_response *ret,
                     st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    unsigned char sum[crypto_hash_sha256_BYTES];
    char hex[DIGEST];
    int r;

    address(c, "bytes", from, &path);
    st_strbuf_addf(&path, "&offset=%lld&length=%zu", (long long)offset, length);
    r = st_client_call(c->client, &(st_request){.path = st_strbuf_str(&path)}, ret, err);
    if (r < 0)
        return r;
    crypto_hash_sha256(sum, (const unsigned char *)st_strbuf_str(&ret->body), ret->body.n);
    sodium_bin2hex(hex, sizeof hex, sum, sizeof sum);
    if (strcmp(hex, ret->digest) != 0)
        return st_fail(err, ST_EIO, "a piece of %s did not arrive as it was sent; copy it again",
                       from);
    return 0;
}

/* "SIZE-TIME", as the server writes versions; -1: it is none. */
static int64_t size_of(const char *version)
{
    char *end;
    long long n = strtoll(version, &end, 10);

    return *end == '-' && n >= 0 ? n : -1;
}

static int take_pieces(copier *c, const item *it, int fd, int64_t at, const char *version,
                       st_err *err)
{
    int64_t size = size_of(version);
    int r = 0;

    count(c, at);
    while (r == 0 && at < size) {
        ST_CLEANUP(st_response_done) st_response response = {0};

        r = get_piece(c, it->from, at, 4 * PIECE, &response, err);
        if (r == 0 && (strcmp(response.version, version) != 0 || response.body.n == 0))
            r = st_fail(err, ST_ESTATE, "%s has changed while it was read; copy it again",
                        it->from);
        if (r == 0 &&
            pwrite(fd, response.body.s, response.body.n, (off_t)at) != (ssize_t)response.body.n)
            r = st_fail(err, ST_EIO, "%s cannot be written: %s", it->to, strerror(errno));
        if (r == 0) {
            at += (int64_t)response.body.n;
            count(c, (int64_t)response.body.n);
        }
    }
    return r;
}

static int download(copier *c, const item *it, st_err *err)
{
    ST_CLEANUP(st_response_done) st_response head = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf part = {0};
    unsigned char sum[8];
    char hex[17];
    struct stat s;
    int fd, r = get_piece(c, it->from, 0, 0, &head, err);

    if (r < 0)
        return r;
    if (size_of(head.version) < 0)
        return st_fail(err, ST_EINTERNAL, "stintd did not say which version of %s it sends",
                       it->from);
    crypto_generichash(sum, sizeof sum, (const unsigned char *)head.version, strlen(head.version),
                       NULL, 0);
    sodium_bin2hex(hex, sizeof hex, sum, sizeof sum);
    st_strbuf_addf(&part, "%s.stint-part-%s", it->to, hex);
    fd = open(st_strbuf_str(&part), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 || fstat(fd, &s) != 0) {
        r = st_fail(err, ST_EIO, "%s: %s", st_strbuf_str(&part), strerror(errno));
        if (fd >= 0)
            close(fd);
        return r;
    }
    r = take_pieces(c, it, fd, ST_MIN(s.st_size, size_of(head.version)), head.version, err);
    if (r == 0 && it->run && fchmod(fd, 0777 & ~0022) != 0)
        r = st_fail(err, ST_EIO, "%s: %s", it->to, strerror(errno));
    if (close(fd) != 0 && r == 0)
        r = st_fail(err, ST_EIO, "%s: %s", it->to, strerror(errno));
    if (r == 0 && rename(st_strbuf_str(&part), it->to) != 0)
        r = st_fail(err, ST_EIO, "%s: %s", it->to, strerror(errno));
    return r;
}

static int make_folder(const char *path, st_err *err)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return st_fail(err, ST_EIO, "%s: %s", path, strerror(errno));
    return 0;
}

static int gather_down(copier *c, const char *from, const char *to, int depth, st_err *err);

/* Names come from jobs: one that leads elsewhere on this machine is none. */
static int gather_entry(copier *c, const char *from, const char *to, const json_t *e, int depth,
                        st_err *err)
{
    const char *name = st_view_text(e, "name"), *kind = st_view_text(e, "kind");
    ST_CLEANUP(st_freep) char *there = join(from, name);
    ST_CLEANUP(st_freep) char *here = join(to, name);
    char q[ST_QUOTE_MAX];

    if (!*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return st_fail(err, ST_EINVAL, "the volume has a name that is none: %s", st_quote(q, name));
    if (strcmp(kind, "folder") == 0)
        return gather_down(c, there, here, depth + 1, err);
    if (strcmp(kind, "file") == 0)
        add_item(c, there, here, json_integer_value(st_view_at(e, "bytes")),
                 json_is_true(st_view_at(e, "run")));
    else
        fprintf(c->cli->errors, "skipped %s: it is not a file or a folder\n", st_quote(q, there));
    return 0;
}

static int gather_down(copier *c, const char *from, const char *to, int depth, st_err *err)
{
    ST_CLEANUP(st_freep) char *after = NULL;
    int r = depth > DEPTH ? st_fail(err, ST_ELIMIT, "%s is nested too deep", from)
                          : make_folder(to, err);

    for (bool more = true; r == 0 && more;) {
        ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
        json_t *page = NULL;
        const json_t *e;
        size_t i;

        address(c, "files", from, &path);
        if (after) {
            st_strbuf_add(&path, "&after=");
            st_url_add(&path, after);
        }
        r = st_client_get(c->client, st_strbuf_str(&path), &page, err);
        json_array_foreach(st_view_at(page, "entries"), i, e)
        {
            if (r == 0)
                r = gather_entry(c, from, to, e, depth, err);
        }
        more = r == 0 && st_view_at(page, "next") != NULL;
        free(after);
        after = more ? st_xstrdup(st_view_text(page, "next")) : NULL;
        json_decref(page);
    }
    return r;
}

/* ---- the verb ------------------------------------------------------------------------------------ */

/* VOLUME:PATH; a local name with a colon is written ./NAME. */
static const char *remote(const char *text, char name[ST_VOLUME_NAME_MAX + 1])
{
    const char *colon = strchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;

    if (!colon || n > ST_VOLUME_NAME_MAX)
        return NULL;
    memcpy(name, text, n);
    name[n] = '\0';
    return st_plain_name(name, ST_VOLUME_NAME_MAX) ? colon + 1 + strspn(colon + 1, "/") : NULL;
}

/* What is there: "file", "folder" or "none". */
static int look(copier *c, const char *path, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf address_of = {0};
    st_err why = {0};
    int r;

    address(c, "files", path, &address_of);
    r = st_client_get(c->client, st_strbuf_str(&address_of), ret, &why);
    if (r == -ST_ENOENT && strstr(why.msg, "there is no file")) {
        *ret = json_pack("{s:s}", "kind", "none");
        return 0;
    }
    if (r < 0)
        st_fail(err, why.code, "%s", why.msg);
    return r;
}

static int plan_up(copier *c, const char *from, const char *path, st_err *err)
{
    ST_CLEANUP(st_freep) char *plain = st_xstrdup(from);
    ST_CLEANUP(st_freep) char *to = NULL;
    json_t *there = NULL;
    struct stat s;
    size_t n = strlen(plain);
    int r;

    while (n > 1 && plain[n - 1] == '/')
        plain[--n] = '\0';
    if (stat(plain, &s) != 0)
        return st_fail(err, ST_ENOENT, "%s: %s", from, strerror(errno));
    if (S_ISDIR(s.st_mode) && !c->deep)
        return st_fail(err, ST_EINVAL, "%s is a folder; add -r to copy it", from);
    r = look(c, path, &there, err);
    if (r < 0)
        return r;
    /* Into a folder that is there, under its own name; what is in "." has none. */
    bool into = strcmp(st_view_text(there, "kind"), "folder") == 0 ||
                (*path && path[strlen(path) - 1] == '/');
    bool named = strcmp(last_name(plain), ".") != 0 && strcmp(last_name(plain), "..") != 0;

    json_decref(there);
    to = into && named && *last_name(plain) ? join(path, last_name(plain)) : st_xstrdup(path);
    if (!S_ISDIR(s.st_mode)) {
        add_item(c, plain, to, s.st_size, (s.st_mode & 0100) != 0);
        return 0;
    }
    return gather_up(c, plain, to, err);
}

static int plan_down(copier *c, const char *path, const char *to, st_err *err)
{
    ST_CLEANUP(st_freep) char *here = NULL;
    ST_CLEANUP(st_freep) char *plain = st_xstrdup(path);
    json_t *there = NULL;
    size_t n = strlen(plain);
    struct stat s;
    bool is_dir = stat(to, &s) == 0 && S_ISDIR(s.st_mode), folder;
    char q[ST_QUOTE_MAX];
    int r;

    while (n > 0 && plain[n - 1] == '/')
        plain[--n] = '\0';
    r = look(c, plain, &there, err);
    if (r < 0)
        return r;
    folder = strcmp(st_view_text(there, "kind"), "folder") == 0;
    here = is_dir && *last_name(plain) ? join(to, last_name(plain)) : st_xstrdup(to);
    if (strcmp(st_view_text(there, "kind"), "none") == 0)
        r = st_fail(err, ST_ENOENT, "there is no file %s", st_quote(q, plain));
    else if (folder && !c->deep)
        r = st_fail(err, ST_EINVAL, "%s is a folder; add -r to copy it",
                    *plain ? plain : "the volume");
    else if (folder)
        r = gather_down(c, plain, here, 0, err);
    else
        add_item(c, plain, here, json_integer_value(st_view_at(there, "bytes")),
                 json_is_true(st_view_at(there, "run")));
    json_decref(there);
    return r;
}

int st_cli_cp(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(copier_done) copier c = {.cli = cli};
    ST_CLEANUP(st_freep) char *account = NULL;
    char from[ST_VOLUME_NAME_MAX + 1] = "", to[ST_VOLUME_NAME_MAX + 1] = "";
    const char *down, *up;
    cp_flags f = {0};
    int r = st_cli_read(argc, argv, st_cli_cp_options, &f, 2, 2, NULL, err);

    if (r < 0)
        return r;
    c.deep = f.deep;
    down = remote(argv[1], from);
    up = remote(argv[2], to);
    if (!down == !up)
        return st_fail(
            err, ST_EINVAL,
            "one of the two is in a volume or a job's folder, NAME:PATH, and the other is here");
    r = st_client_open(cli->errors, &c.client, err);
    if (r == 0)
        r = st_volume_like_job(down ? from : to)
                ? 0
                : st_volume_account(c.client, f.account, &account, err);
    if (r < 0)
        return r;
    if (st_volume_like_job(down ? from : to)) {
        st_admin_path(&c.route, "jobs", down ? from : to);
        if (!down)
            r = st_fail(err, ST_EINVAL,
                        "the folder of job %s can be read, not written; use a volume", to);
    } else {
        st_volume_route(&c.route, account, down ? from : to);
    }
    if (r < 0)
        return r;
    r = down ? plan_down(&c, down, argv[2], err) : plan_up(&c, argv[1], up, err);
    st_progress_begin(&c.bar, cli->errors, "copying");
    for (size_t i = 0; r == 0 && i < c.items.n; i++)
        r = down ? download(&c, &c.items.v[i], err) : upload(&c, &c.items.v[i], err);
    st_progress_done(&c.bar);
    if (r == 0)
        fprintf(cli->out, "copied %zu files, %lld bytes\n", c.items.n, (long long)c.all);
    return r;
}
