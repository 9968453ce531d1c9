/*
 * Files of volumes: listed, read and written piece by piece, in threads that may wait for a disk. Each piece is checked by its
 * digest; an upload goes into a file of its own beside its place, and takes the place with its last piece. So a broken upload
 * goes on where it stands, and nobody reads half a file under its name.
 *
 * Whatever tasks put into a volume, stintd opens it beneath the volume's folder, follows no link and waits for no pipe
 * (beneath/beneath.h), as the user it runs as.
 */
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "api/volumes.h"
#include "api/work.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/quote.h"

#define PIECE_MAX  ((int64_t)4 << 20)
#define ENTRIES    1000
#define UPLOAD_MAX 64
#define PART       ".stint-part-"

const st_query_row st_files_query[] = {
    {.name = "path",
     .type = ST_QUERY_TEXT,
     .about = "file or folder of the volume (default: the whole volume)"},
    {.name = "after", .type = ST_QUERY_TEXT, .about = "`next` of the previous page"},
    {.name = "upload",
     .type = ST_QUERY_TEXT,
     .about = "name of an upload to this path: `uploaded` says how many bytes have arrived"},
    {0},
};
const st_query_row st_job_files_query[] = {
    {.name = "path", .type = ST_QUERY_TEXT, .about = "file or folder (default: all of it)"},
    {.name = "after", .type = ST_QUERY_TEXT, .about = "`next` of the previous page"},
    {0},
};
const st_query_row st_file_query[] = {
    {.name = "path", .type = ST_QUERY_TEXT, .about = "file or empty folder of the volume"},
    {0},
};
const st_query_row st_bytes_query[] = {
    {.name = "path", .type = ST_QUERY_TEXT, .about = "file of the volume"},
    {.name = "offset", .type = ST_QUERY_INT, .about = "number of bytes to skip (default: 0)"},
    {.name = "length",
     .type = ST_QUERY_INT,
     .about = "number of bytes, up to 4194304 (default: that many)"},
    {0},
};
const st_query_row st_put_bytes_query[] = {
    {.name = "path", .type = ST_QUERY_TEXT, .about = "file of the volume"},
    {.name = "upload",
     .type = ST_QUERY_TEXT,
     .about = "name of the upload, 1 to 64 hex digits of your choice; the same name goes on where "
              "an upload was broken off"},
    {.name = "offset", .type = ST_QUERY_INT, .about = "bytes that came before (default: 0)"},
    {.name = "size", .type = ST_QUERY_INT, .about = "bytes of the whole file"},
    {.name = "digest", .type = ST_QUERY_TEXT, .about = "SHA-256 of this piece, in hex"},
    {.name = "run", .type = ST_QUERY_BOOL, .about = "the file may be executed (default: false)"},
    {0},
};

static void run_visit(void *arg)
{
    st_visit *v = arg;
    const st_api *api = v->api;
    st_err err = {0};
    int root = -1, r = 0;

    if (!st_directory_opens(api->dir, v->token, api->options.clock(api->options.ctx)))
        r = st_fail(&err, ST_EAUTH,
                    "this token is not valid any more: it has expired or was revoked");
    if (r == 0 && v->owner > 0)
        r = st_api_space_make(v->api, v->volume.id, v->owner, &err);
    if (r == 0)
        r = st_api_volume_root(v->api, v->volume.id, &root, &err);
    if (r == 0)
        r = v->fn(v, root, &err);
    if (r < 0)
        st_call_fail(v->call, &err);
    if (root >= 0)
        close(root);
    free(v);
}

void st_api_visit(const st_visit *visit)
{
    st_visit *v = st_xcalloc(1, sizeof *v);
    st_err err;

    *v = *visit;
    v->token = st_api_who(v->call)->token;
    st_call_defer(v->call);
    if (st_work_run(v->api->files, run_visit, v))
        return;
    st_fail(&err, ST_EDOWN, "many files are being moved just now; try again in a moment");
    st_call_fail(v->call, &err);
    free(v);
}

/* What is in a volume is for those who could read it with a job. */
bool st_api_may_touch(st_call *call, const char *account)
{
    const st_identity *who = st_api_who(call);
    st_err err;

    if (who->role != ST_ROLE_MEMBER || strcmp(who->account, account) == 0)
        return true;
    st_fail(&err, ST_EPERM, "your token reads and writes files of account %s, not of %s",
            who->account, account);
    st_call_fail(call, &err);
    return false;
}

/* Beneath `below`, which the caller does not see; "": the whole volume. */
static void begin(st_visit *v, const char *below)
{
    const char *path = st_call_query(v->call, "path");
    char said[ST_BENEATH_PATH_MAX];
    st_err err = {0};
    int r = st_beneath_path(path ? path : "", said, &err);

    v->shown = *below ? strlen(below) + 1 : 0;
    if (r == 0 && snprintf(v->path, sizeof v->path, "%s%s%s", below, *below ? "/" : "",
                           *below && strcmp(said, ".") == 0 ? "" : said) >= (int)sizeof v->path)
        r = st_fail(&err, ST_ELIMIT, "the path is too long");
    if (r < 0) {
        st_call_fail(v->call, &err);
        return;
    }
    if (*below && v->path[v->shown] == '\0')
        v->path[v->shown - 1] = '\0'; /* the folder itself */
    st_api_visit(v);
}

static void begin_volume(st_call *call, st_api *api, int (*fn)(st_visit *v, int root, st_err *err))
{
    st_visit v = {.api = api, .call = call, .fn = fn};

    if (st_api_volume_find(api, call, &v.volume) && st_api_may_touch(call, v.volume.account))
        begin(&v, "");
}

/* What is left of a job's folder. */
static void begin_job(st_call *call, st_api *api, int (*fn)(st_visit *v, int root, st_err *err))
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_visit v = {.api = api, .call = call, .fn = fn};
    st_job_row row;
    uint64_t id;

    if (!st_api_find_job(api, call, arena, &id, &row) || !st_api_may_touch(call, row.account))
        return;
    v.owner = st_directory_serial(api->dir, row.account);
    if (v.owner <= 0) {
        st_api_no_such(call, "job", st_call_param(call, "id"));
        return;
    }
    st_space_id(ST_SPACE_JOBS, v.owner, v.volume.id);
    begin(&v, st_call_param(call, "id"));
}

/* ---- listing ------------------------------------------------------------------------------------- */

static int64_t changed_ms(const struct stat *s)
{
    return (int64_t)s->st_mtim.tv_sec * 1000 + s->st_mtim.tv_nsec / 1000000;
}

static const char *kind_word(char kind)
{
    return kind == 'f' ? "file" : kind == 'd' ? "folder" : kind == 'l' ? "link" : "other";
}

typedef struct entries {
    st_strbuf *out;
    int n;
    char last[ST_BENEATH_NAME_MAX];
} entries;

static void add_entry(void *ctx, const st_beneath_entry *e)
{
    entries *l = ctx;

    st_strbuf_add(l->out, l->n++ > 0 ? ",{" : "{");
    st_out_text(l->out, "name", e->name);
    st_out_text(l->out, "kind", kind_word(e->kind));
    st_out_int(l->out, "bytes", e->bytes);
    st_out_time(l->out, "changed", e->changed_ms);
    st_out_raw(l->out, "run", e->run && e->kind == 'f' ? "true" : "false");
    st_strbuf_addc(l->out, '}');
    snprintf(l->last, sizeof l->last, "%s", e->name);
}

/* The file that an upload goes into, beside its place. */
static int part_of(const st_visit *v, const char *upload, char ret[ST_BENEATH_PATH_MAX],
                   st_err *err)
{
    const char *slash = strrchr(v->path, '/');
    int n = slash ? (int)(slash - v->path) + 1 : 0;
    char q[ST_QUOTE_MAX];

    if (!upload[0] || strlen(upload) > UPLOAD_MAX ||
        strspn(upload, "0123456789abcdef") != strlen(upload))
        return st_fail(err, ST_EINVAL, "upload %s is not 1 to %d hex digits", st_quote(q, upload),
                       UPLOAD_MAX);
    if (strcmp(v->path, ".") == 0)
        return st_fail(err, ST_EINVAL, "name a file: give its path");
    if (snprintf(ret, ST_BENEATH_PATH_MAX, "%.*s" PART "%016" PRIx64 "-%s", n, v->path,
                 st_hash_str(1, v->path + n), upload) >= ST_BENEATH_PATH_MAX)
        return st_fail(err, ST_ELIMIT, "the path is too long");
    return 0;
}

/* What the path names. Of a job, it is told whether it has a folder at all. */
static int open_it(const st_visit *v, int root, int *ret_fd, struct stat *ret, st_err *err)
{
    const char *job = v->owner > 0 ? st_call_param(v->call, "id") : NULL;
    char q[ST_QUOTE_MAX];
    st_err why = {0};
    int r = st_beneath_open(root, v->path, ret_fd, ret, &why);

    if (r == 0)
        return 0;
    if (job && r == -ST_ENOENT) {
        struct stat s;
        int fd;

        if (strlen(v->path) < v->shown || st_beneath_open(root, job, &fd, &s, NULL) < 0)
            return st_fail(err, ST_ESTATE,
                           "job %s has no folder: it came with none (stint submit --with DIR), has "
                           "not started, or was over for long",
                           job);
        close(fd);
        return st_fail(err, ST_ENOENT, "there is no file %s", st_quote(q, v->path + v->shown));
    }
    return st_fail(err, why.code, "%s", why.msg);
}

static int put_folder(const st_visit *v, int fd, st_strbuf *out, st_err *err)
{
    entries l = {.out = out};
    bool more = false;
    int r;

    st_out_text(out, "kind", "folder");
    st_strbuf_add(out, ",\"entries\":[");
    r = st_beneath_list(fd, st_call_query(v->call, "after"), ENTRIES, add_entry, &l, &more, err);
    st_strbuf_add(out, "]");
    if (more)
        st_out_text(out, "next", l.last);
    else
        st_out_raw(out, "next", "null");
    return r;
}

static int list(st_visit *v, int root, st_err *err)
{
    const char *upload = v->owner > 0 ? NULL : st_call_query(v->call, "upload");
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    char part[ST_BENEATH_PATH_MAX];
    struct stat s = {0}, p = {0};
    int fd = -1, part_fd = -1, r;

    r = upload ? part_of(v, upload, part, err) : 0;
    if (r < 0)
        return r;
    r = open_it(v, root, &fd, &s, err);
    if (r < 0 && !(upload && r == -ST_ENOENT))
        return r;
    st_strbuf_addc(&out, '{');
    st_out_text(&out, "path",
                strcmp(v->path, ".") == 0 || strlen(v->path) < v->shown ? "" : v->path + v->shown);
    r = 0;
    if (fd < 0) {
        st_out_text(&out, "kind", "none");
    } else if (S_ISDIR(s.st_mode)) {
        r = put_folder(v, fd, &out, err);
    } else {
        st_out_text(&out, "kind", "file");
        st_out_int(&out, "bytes", s.st_size);
        st_out_time(&out, "changed", changed_ms(&s));
        st_out_raw(&out, "run", s.st_mode & 0100 ? "true" : "false");
    }
    if (r == 0 && upload) {
        st_err none;

        st_out_int(&out, "uploaded",
                   st_beneath_open(root, part, &part_fd, &p, &none) == 0 ? p.st_size : 0);
    }
    st_strbuf_addc(&out, '}');
    if (fd >= 0)
        close(fd);
    if (part_fd >= 0)
        close(part_fd);
    if (r == 0)
        st_call_reply_buf(v->call, 200, NULL, &out);
    return r;
}

void st_api_files_list(st_call *call, void *ctx)
{
    begin_volume(call, ctx, list);
}

static int remove_it(st_visit *v, int root, st_err *err)
{
    int r = st_beneath_unlink(root, v->path, err);

    if (r == 0)
        st_call_reply_empty(v->call, 204);
    return r;
}

void st_api_job_files(st_call *call, void *ctx)
{
    begin_job(call, ctx, list);
}

void st_api_file_remove(st_call *call, void *ctx)
{
    begin_volume(call, ctx, remove_it);
}

/* ---- reading ------------------------------------------------------------------------------------- */

static void digest_of(const void *bytes, size_t n, char ret[2 * crypto_hash_sha256_BYTES + 1])
{
    unsigned char sum[crypto_hash_sha256_BYTES];

    crypto_hash_sha256(sum, bytes, n);
    sodium_bin2hex(ret, 2 * crypto_hash_sha256_BYTES + 1, sum, sizeof sum);
}

static int read_piece(st_visit *v, int root, st_err *err)
{
    int64_t offset = ST_MAX(st_call_query_int(v->call, "offset", 0), 0);
    int64_t length = st_call_query_int(v->call, "length", PIECE_MAX);
    char hex[2 * crypto_hash_sha256_BYTES + 1], version[80];
    struct stat s;
    char *bytes;
    size_t n = 0;
    int fd = -1, r = open_it(v, root, &fd, &s, err);

    if (r == 0 && S_ISDIR(s.st_mode)) {
        close(fd);
        return st_fail(err, ST_ESTATE, "%.300s is a folder; list it", v->path);
    }
    if (r < 0)
        return r;
    length = ST_MIN(ST_MAX(length, 0), PIECE_MAX);
    length = ST_MAX(ST_MIN(length, s.st_size - ST_MIN(offset, s.st_size)), 0);
    bytes = st_xmalloc((size_t)length + 1);
    while (r == 0 && n < (size_t)length) {
        ssize_t got = pread(fd, bytes + n, (size_t)length - n, (off_t)(offset + (int64_t)n));

        if (got < 0 && errno != EINTR)
            r = st_fail(err, ST_EIO, "%.300s cannot be read: %s", v->path, strerror(errno));
        if (got == 0)
            break; /* it is shorter now */
        n += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    if (r < 0) {
        free(bytes);
        return r;
    }
    digest_of(bytes, n, hex);
    snprintf(version, sizeof version, "%lld-%lld.%09ld", (long long)s.st_size,
             (long long)s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
    st_call_set_header(v->call, "Stint-File-Version", version);
    st_call_set_header(v->call, "Stint-Digest", hex);
    st_call_reply_text(v->call, 200, "application/octet-stream", bytes, n);
    return 0;
}

void st_api_bytes_get(st_call *call, void *ctx)
{
    begin_volume(call, ctx, read_piece);
}

void st_api_job_bytes(st_call *call, void *ctx)
{
    begin_job(call, ctx, read_piece);
}

/* ---- writing ------------------------------------------------------------------------------------- */

typedef struct piece {
    const char *bytes;
    size_t n;
    int64_t offset, size;
} piece;

static int read_asked(const st_visit *v, piece *ret, st_err *err)
{
    piece p = {.offset = st_call_query_int(v->call, "offset", 0),
               .size = st_call_query_int(v->call, "size", -1)};
    const char *digest = st_call_query(v->call, "digest");
    char hex[2 * crypto_hash_sha256_BYTES + 1];

    p.bytes = st_call_body(v->call, &p.n);
    if (p.offset < 0 || p.size < 0 || p.offset > p.size || (int64_t)p.n > p.size - p.offset ||
        (p.n == 0 && p.size > 0))
        return st_fail(err, ST_ERANGE,
                       "bytes %" PRId64 " to %" PRId64 " are not part of a file of %" PRId64
                       " bytes",
                       p.offset, p.offset + (int64_t)p.n, p.size);
    digest_of(p.bytes, p.n, hex);
    if (!digest || strcmp(digest, hex) != 0)
        return st_fail(err, ST_EINVAL,
                       "the piece is not what its digest says; send it again with its SHA-256");
    *ret = p;
    return 0;
}

/* Whether what is to come has room, of bytes and of files. */
static int check_room(const st_visit *v, int root, const piece *p, st_err *err)
{
    const st_api *api = v->api;
    int64_t limit = v->volume.size_mib << 20, most = st_volume_files_max(v->volume.size_mib);
    st_beneath_use use = {0};
    int r = st_fills_get(api->fills, v->volume.id, root, api->options.clock(api->options.ctx), &use,
                         err);

    if (r < 0)
        return r;
    if (use.bytes > limit || p->size - p->offset > limit - use.bytes)
        return st_fail(err, ST_ELIMIT,
                       "volume %s has room for %" PRId64 " MiB more of %" PRId64
                       " MiB: remove files, or make it larger (stint volume set)",
                       v->volume.name, ST_MAX(limit - use.bytes, 0) >> 20, v->volume.size_mib);
    if (use.files >= most)
        return st_fail(err, ST_ELIMIT,
                       "volume %s has %" PRId64 " files, and a volume of %" PRId64
                       " MiB has at most %" PRId64,
                       v->volume.name, use.files, v->volume.size_mib, most);
    return 0;
}

static int write_all(int fd, const piece *p, st_err *err)
{
    size_t n = 0;

    while (n < p->n) {
        ssize_t put = pwrite(fd, p->bytes + n, p->n - n, (off_t)(p->offset + (int64_t)n));

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno == ENOSPC || errno == EDQUOT
                       ? st_fail(err, ST_EFULL, "the disk of the volumes is full")
                       : st_fail(err, ST_EIO, "the piece cannot be written: %s", strerror(errno));
        n += (size_t)put;
    }
    return 0;
}

/* It was all there, and is on the disk before it has its name. */
static int finish(const st_visit *v, int root, int fd, const char *part, st_err *err)
{
    bool run = st_call_query_bool(v->call, "run", false);

    if (run && fchmod(fd, 0770) != 0)
        return st_fail(err, ST_EIO, "the file cannot be made executable: %s", strerror(errno));
    if (fdatasync(fd) != 0)
        return st_fail(err, ST_EIO, "the file cannot be brought to the disk: %s", strerror(errno));
    return st_beneath_rename(root, part, v->path, err);
}

static int write_piece(st_visit *v, int root, st_err *err)
{
    const char *upload = st_call_query(v->call, "upload");
    char part[ST_BENEATH_PATH_MAX];
    struct stat s = {0};
    piece p = {0};
    bool done;
    int fd = -1, r = part_of(v, upload ? upload : "", part, err);

    if (r == 0)
        r = read_asked(v, &p, err);
    if (r == 0)
        r = check_room(v, root, &p, err);
    if (r == 0)
        r = st_beneath_create(root, part, &fd, &s, err);
    if (r == 0 && (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &s) != 0))
        r = st_fail(err, ST_ESTATE, "another piece of this upload is being written just now");
    if (r == 0 && s.st_size != p.offset)
        r = st_fail(err, ST_ESTATE, "the upload stands at %lld bytes; go on there",
                    (long long)s.st_size);
    if (r == 0) {
        r = write_all(fd, &p, err);
        if (r < 0) /* nobody goes on behind half a piece */
            (void)!ftruncate(fd, (off_t)p.offset);
        else
            st_fills_add(v->api->fills, v->volume.id, (int64_t)p.n, p.offset == 0);
    }
    done = r == 0 && p.offset + (int64_t)p.n == p.size;
    if (done) {
        r = finish(v, root, fd, part, err);
        if (r < 0) /* what cannot have its name is nothing to go on with */
            (void)st_beneath_unlink(root, part, NULL);
    }
    if (fd >= 0)
        close(fd);
    if (r == 0)
        st_call_reply_json(
            v->call, 200,
            json_pack("{s:I, s:b}", "next", (json_int_t)(p.offset + (int64_t)p.n), "done", done));
    return r;
}

void st_api_bytes_put(st_call *call, void *ctx)
{
    begin_volume(call, ctx, write_piece);
}
