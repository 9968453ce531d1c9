/*
 * Bringing a folder for a job (cli/with.h): its files are listed, cut into chunks and named by their SHA-256; stintd says which
 * chunks it lacks, and only those are sent. What .stintignore names stays behind, and .git always.
 *
 * Patterns are those of a shell, one a line: without a slash they match a name anywhere, with one a path from the folder; a slash at
 * the end matches folders alone; # begins a comment.
 */
#include "cli/with.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fts.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cli/admin_doc.h"
#include "cli/progress.h"
#include "cli/view.h"
#include "model/volume.h"

#define IGNORE       ".stintignore"
#define IGNORE_BYTES 65536
#define BODY_BYTES   ((size_t)1000 << 10) /* of a request: chunks and their heads */
#define ROUNDS       64

typedef struct file {
    char *path; /* from the folder */
    int64_t bytes;
    bool run;
} file;

typedef struct bundle {
    st_cli *cli;
    st_client *client;
    const char *dir, *account;
    ST_VEC(char *) ignored;
    ST_VEC(file) files;
    ST_VEC(char *) folders;
    int64_t bytes;
    st_map *chunk_at; /* chunk -> its number in `places` */
    ST_VEC(struct place {
        size_t file;
        int64_t offset;
    })
    places;
    json_t *list;
    st_progress bar;
} bundle;

static void bundle_done(bundle *b)
{
    for (size_t i = 0; i < b->ignored.n; i++)
        free(b->ignored.v[i]);
    for (size_t i = 0; i < b->files.n; i++)
        free(b->files.v[i].path);
    for (size_t i = 0; i < b->folders.n; i++)
        free(b->folders.v[i]);
    st_vec_free(&b->ignored);
    st_vec_free(&b->files);
    st_vec_free(&b->folders);
    st_vec_free(&b->places);
    st_map_free(b->chunk_at);
    json_decref(b->list);
    st_progress_done(&b->bar);
}

/* ---- what stays behind ---------------------------------------------------------------------------- */

static int read_ignored(bundle *b, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, text = {0};
    int r = 0;

    st_vec_push(&b->ignored, st_xstrdup(".git"));
    st_strbuf_addf(&path, "%s/" IGNORE, b->dir);
    if (access(st_strbuf_str(&path), F_OK) == 0)
        r = st_file_read(st_strbuf_str(&path), IGNORE_BYTES, &text, err);
    for (const char *at = st_strbuf_str(&text); r == 0 && *at;) {
        size_t n = strcspn(at, "\n"), len = n;

        while (len > 0 && strchr(" \t\r", at[len - 1]))
            len--;
        if (len > 0 && *at == '!')
            r = st_fail(err, ST_EINVAL, IGNORE ": a pattern cannot begin with !");
        if (len > 0 && *at != '#' && *at != '!')
            st_vec_push(&b->ignored, st_xstrndup(at, len));
        at += n + (at[n] == '\n');
    }
    return r;
}

static bool matches(const char *pattern, const char *path, bool folder)
{
    char *own = st_xstrdup(pattern + (*pattern == '/'));
    size_t n = strlen(own);
    const char *slash = strrchr(path, '/');
    bool only = n > 1 && own[n - 1] == '/', hit;

    if (only)
        own[n - 1] = '\0';
    if (*pattern == '/' || strchr(own, '/'))
        hit = fnmatch(own, path, FNM_PATHNAME) == 0;
    else
        hit = fnmatch(own, slash ? slash + 1 : path, 0) == 0;
    free(own);
    return hit && (folder || !only);
}

static bool is_ignored(const bundle *b, const char *path, bool folder)
{
    for (size_t i = 0; i < b->ignored.n; i++)
        if (matches(b->ignored.v[i], path, folder))
            return true;
    return false;
}

/* ---- what is there --------------------------------------------------------------------------------- */

static int too_much(const bundle *b, st_err *err)
{
    char has[ST_FMT_MAX], most[ST_FMT_MAX];

    return st_fail(
        err, ST_ELIMIT,
        "%s has %zu files with %s or more; with a job come at most %d files with %s: leave "
        "some out (" IGNORE "), or put data into a volume",
        b->dir, b->files.n, st_fmt_mib(has, b->bytes >> 20), ST_FOLDER_FILES_MAX,
        st_fmt_mib(most, ST_FOLDER_BYTES_MAX >> 20));
}

static int take(bundle *b, const FTSENT *e, const char *path, st_err *err)
{
    char q[ST_QUOTE_MAX];

    if (st_utf8_valid(path, strlen(path)) != strlen(path) || strpbrk(path, "\n\r\t\x7f\x1b"))
        return st_fail(err, ST_EINVAL, "%s cannot come with a job: its name is no plain text",
                       st_quote(q, e->fts_path));
    if (e->fts_info == FTS_D) {
        st_vec_push(&b->folders, st_xstrdup(path));
    } else if (e->fts_info == FTS_F) {
        st_vec_push(&b->files, (file){st_xstrdup(path), e->fts_statp->st_size,
                                      (e->fts_statp->st_mode & 0100) != 0});
        b->bytes += e->fts_statp->st_size;
    } else {
        fprintf(b->cli->errors, "skipped %s: it is not a file or a folder\n",
                st_quote(q, e->fts_path));
    }
    if (b->files.n > ST_FOLDER_FILES_MAX || b->folders.n > ST_FOLDER_FILES_MAX ||
        b->bytes > ST_FOLDER_BYTES_MAX)
        return too_much(b, err);
    return 0;
}

static int gather(bundle *b, st_err *err)
{
    char *roots[] = {(char *)(uintptr_t)b->dir, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    FTSENT *e;
    int r = 0;

    while (tree && r == 0 && (e = fts_read(tree)) != NULL) {
        const char *path = e->fts_path + strlen(b->dir);

        path += strspn(path, "/");
        if (e->fts_info == FTS_DP || e->fts_level == 0)
            continue;
        if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS)
            r = st_fail(err, ST_EIO, "%s: %s", e->fts_path, strerror(e->fts_errno));
        else if (is_ignored(b, path, e->fts_info == FTS_D))
            fts_set(tree, e, FTS_SKIP);
        else
            r = take(b, e, path, err);
    }
    if (!tree)
        return st_fail(err, ST_EIO, "%s: %s", b->dir, strerror(errno));
    fts_close(tree);
    return r;
}

static int by_path(const void *x, const void *y)
{
    return strcmp(((const file *)x)->path, ((const file *)y)->path);
}

static int by_name(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

/* ---- chunks ----------------------------------------------------------------------------------------- */

/* The chunk of a file at an offset, whole; what has changed since it was listed is an error. */
static int read_chunk(const bundle *b, size_t i, int64_t offset, char *buf, size_t *ret_n,
                      st_err *err)
{
    const file *f = &b->files.v[i];
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    size_t want = (size_t)ST_MIN(ST_FOLDER_CHUNK, f->bytes - offset);
    ssize_t n = -1;
    int fd;

    st_strbuf_addf(&path, "%s/%s", b->dir, f->path);
    fd = open(st_strbuf_str(&path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        n = pread(fd, buf, want, (off_t)offset);
        close(fd);
    }
    if (n != (ssize_t)want)
        return st_fail(err, ST_ESTATE, "%s has changed while it was read; submit again", f->path);
    *ret_n = want;
    return 0;
}

static void digest_of(const char *bytes, size_t n, char ret[ST_FOLDER_DIGEST])
{
    unsigned char sum[crypto_hash_sha256_BYTES];

    crypto_hash_sha256(sum, (const unsigned char *)bytes, n);
    sodium_bin2hex(ret, ST_FOLDER_DIGEST, sum, sizeof sum);
}

static int list_file(bundle *b, size_t i, char *buf, json_t *files, st_err *err)
{
    const file *f = &b->files.v[i];
    json_t *chunks = json_array();
    int r = 0;

    for (int64_t at = 0; r == 0 && at < f->bytes; at += ST_FOLDER_CHUNK) {
        char hex[ST_FOLDER_DIGEST];
        size_t n;

        r = read_chunk(b, i, at, buf, &n, err);
        if (r < 0)
            break;
        digest_of(buf, n, hex);
        json_array_append_new(chunks, json_string(hex));
        st_map_put(b->chunk_at, hex, (int64_t)b->places.n);
        st_vec_push(&b->places, (struct place){i, at});
    }
    json_array_append_new(files, json_pack("{s:s, s:I, s:b, s:o}", "path", f->path, "size",
                                           (json_int_t)f->bytes, "run", f->run, "chunks", chunks));
    return r;
}

static int list_all(bundle *b, char *buf, st_err *err)
{
    json_t *files = json_array(), *folders = json_array();
    int r = 0;

    if (b->files.n > 0)
        qsort(b->files.v, b->files.n, sizeof b->files.v[0], by_path);
    if (b->folders.n > 0)
        qsort(b->folders.v, b->folders.n, sizeof b->folders.v[0], by_name);
    b->list = json_pack("{s:o, s:o}", "files", files, "folders", folders);
    for (size_t i = 0; i < b->folders.n; i++)
        json_array_append_new(folders, json_string(b->folders.v[i]));
    for (size_t i = 0; r == 0 && i < b->files.n; i++)
        r = list_file(b, i, buf, files, err);
    return r;
}

/* ---- bringing --------------------------------------------------------------------------------------- */

static int ask(bundle *b, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_freep) char *body = json_dumps(b->list, JSON_COMPACT);

    st_admin_path(&path, "accounts", b->account);
    st_strbuf_add(&path, "/folders");
    return st_client_json(
        b->client, &(st_request){.method = "POST", .path = st_strbuf_str(&path), .body = body}, ret,
        NULL, err);
}

static int flush(bundle *b, st_strbuf *body, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    int r;

    if (body->n == 0)
        return 0;
    st_admin_path(&path, "accounts", b->account);
    st_strbuf_add(&path, "/chunks");
    r = st_client_call(b->client,
                       &(st_request){.method = "PUT",
                                     .path = st_strbuf_str(&path),
                                     .body = body->s,
                                     .n = body->n,
                                     .type = "application/octet-stream"},
                       &response, err);
    st_strbuf_clear(body);
    return r;
}

static int send_missing(bundle *b, const json_t *missing, char *buf, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};
    const json_t *row;
    int r = 0;
    size_t i;

    json_array_foreach(missing, i, row)
    {
        const char *hex = json_string_value(row);
        char is[ST_FOLDER_DIGEST];
        int64_t at;
        size_t n;

        if (r < 0)
            break;
        if (!hex || !st_map_get(b->chunk_at, hex, &at))
            return st_fail(err, ST_EINTERNAL, "stintd asks for a chunk that %s has not", b->dir);
        r = read_chunk(b, b->places.v[at].file, b->places.v[at].offset, buf, &n, err);
        if (r == 0)
            digest_of(buf, n, is);
        if (r == 0 && strcmp(is, hex) != 0)
            r = st_fail(err, ST_ESTATE, "%s has changed while it was read; submit again",
                        b->files.v[b->places.v[at].file].path);
        if (r == 0 && body.n + n + 72 > BODY_BYTES)
            r = flush(b, &body, err);
        if (r == 0) {
            st_strbuf_addf(&body, "%s%08zx", hex, n);
            st_strbuf_addn(&body, buf, n);
            st_progress_show(&b->bar, (int)(i * 1000 / json_array_size(missing)));
        }
    }
    return r < 0 ? r : flush(b, &body, err);
}

static int bring(bundle *b, char *buf, char ret_digest[ST_FOLDER_DIGEST], st_err *err)
{
    int r = 0;

    for (int round = 0; r == 0 && round < ROUNDS; round++) {
        json_t *answer = NULL;
        const char *digest;

        r = ask(b, &answer, err);
        digest = r == 0 ? st_view_text(answer, "folder") : "";
        if (r == 0 && st_folder_digest_ok(digest)) {
            memcpy(ret_digest, digest, ST_FOLDER_DIGEST);
            json_decref(answer);
            return 0;
        }
        if (r == 0)
            r = send_missing(b, st_view_at(answer, "missing"), buf, err);
        json_decref(answer);
    }
    return r < 0 ? r : st_fail(err, ST_EIO, "%s could not be brought; try again", b->dir);
}

int st_with_bring(st_cli *cli, st_client *client, const char *account, const char *dir,
                  char ret_digest[65], st_err *err)
{
    ST_CLEANUP(st_freep) char *plain = st_xstrdup(dir);
    ST_CLEANUP(st_freep) char *buf = st_xmalloc((size_t)ST_FOLDER_CHUNK + 1);
    ST_CLEANUP(bundle_done)
    bundle b = {
        .cli = cli, .client = client, .dir = plain, .account = account, .chunk_at = st_map_new()};
    struct stat s;
    int r;

    for (size_t n = strlen(plain); n > 1 && plain[n - 1] == '/'; n--)
        plain[n - 1] = '\0';
    if (stat(plain, &s) != 0 || !S_ISDIR(s.st_mode))
        return st_fail(err, ST_EINVAL, "--with %s: it is not a folder", dir);
    st_progress_begin(&b.bar, cli->errors, "bringing files");
    r = read_ignored(&b, err);
    if (r == 0)
        r = gather(&b, err);
    if (r == 0)
        r = list_all(&b, buf, err);
    return r == 0 ? bring(&b, buf, ret_digest, err) : r;
}
