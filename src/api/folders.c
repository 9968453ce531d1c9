/*
 * What jobs come with: a folder of the submitter's machine, brought as chunks of its files and a list of them. Chunks are called
 * by their SHA-256 and kept once for each account, so what was brought before is not brought again. An account hears of
 * its own chunks alone: that somebody else has the same bytes is never told (doc/decisions/0044).
 *
 *   PUT  chunks    any number of: 64 hex digits of the digest, 8 of the length, the bytes
 *   POST folders   the list; answers what is missing, or, when nothing is, the digest of the list: what a job says as `with`
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/volumes.h"
#include "base/mem.h"
#include "base/quote.h"

#define HEX         64
#define HEAD        (HEX + 8)
#define MISSING_MAX 4000 /* chunks that are named in one answer */

/* The caller's account's own folder, for a route of an account; false: answered. */
static bool begin(st_call *call, st_api *api, int (*fn)(st_visit *v, int root, st_err *err))
{
    const char *account = st_call_param(call, "name");
    st_visit v = {.api = api, .call = call, .fn = fn};

    if (!account[0] || !st_api_sees(api, call, account)) {
        st_api_no_such(call, "account", account);
        return false;
    }
    if (!st_api_may_touch(call, account))
        return false;
    v.owner = st_directory_serial(api->dir, account);
    if (v.owner <= 0) {
        st_api_no_such(call, "account", account);
        return false;
    }
    st_space_id(ST_SPACE_BROUGHT, v.owner, v.volume.id);
    st_api_visit(&v);
    return true;
}

static void digest_of(const char *bytes, size_t n, char ret[ST_FOLDER_DIGEST])
{
    unsigned char sum[crypto_hash_sha256_BYTES];

    crypto_hash_sha256(sum, (const unsigned char *)bytes, n);
    sodium_bin2hex(ret, ST_FOLDER_DIGEST, sum, sizeof sum);
}

/* Under a name of its own first, so that nobody reads half of it. */
static int keep(int root, const char *at, const char *bytes, size_t n, st_err *err)
{
    char temp[ST_BENEATH_PATH_MAX];
    unsigned char random[8];
    char hex[17];
    struct stat s;
    int fd, r;

    randombytes_buf(random, sizeof random);
    sodium_bin2hex(hex, sizeof hex, random, sizeof random);
    snprintf(temp, sizeof temp, "%.*s/.new-%s", (int)(strrchr(at, '/') - at), at, hex);
    r = st_beneath_create(root, temp, &fd, &s, err);
    if (r < 0)
        return r;
    for (size_t done = 0; r == 0 && done < n;) {
        ssize_t put = write(fd, bytes + done, n - done);

        if (put < 0 && errno != EINTR)
            r = errno == ENOSPC || errno == EDQUOT
                    ? st_fail(err, ST_EFULL, "the disk of the volumes is full")
                    : st_fail(err, ST_EIO, "a chunk cannot be written: %s", strerror(errno));
        done += put > 0 ? (size_t)put : 0;
    }
    if (close(fd) != 0 && r == 0)
        r = st_fail(err, ST_EIO, "a chunk cannot be written: %s", strerror(errno));
    if (r == 0)
        r = st_beneath_rename(root, temp, at, err);
    if (r < 0)
        (void)st_beneath_unlink(root, temp, NULL);
    return r;
}

/* Whether it is there; then it counts as used now, and is not tidied away. -1: it is not. */
static int64_t touch(int root, const char *at)
{
    struct stat s;
    int64_t bytes;
    int fd;

    if (st_beneath_open(root, at, &fd, &s, NULL) < 0)
        return -1;
    bytes = S_ISREG(s.st_mode) && futimens(fd, NULL) == 0 ? s.st_size : -1;
    close(fd);
    return bytes;
}

/* ---- chunks -------------------------------------------------------------------------------------- */

/* The next one of a body; what it says of itself must be so. */
static int next_chunk(const char *body, size_t all, size_t *at, char ret[ST_FOLDER_DIGEST],
                      size_t *ret_n, st_err *err)
{
    char length[9], is[ST_FOLDER_DIGEST], *end;
    unsigned long n;

    if (all - *at < HEAD)
        return st_fail(err, ST_EINVAL, "a chunk is cut off at byte %zu", *at);
    memcpy(ret, body + *at, HEX);
    ret[HEX] = '\0';
    memcpy(length, body + *at + HEX, 8);
    length[8] = '\0';
    n = strtoul(length, &end, 16);
    if (!st_folder_digest_ok(ret) || strspn(length, "0123456789abcdef") != 8 || n == 0 ||
        n > (unsigned long)ST_FOLDER_CHUNK || n > all - *at - HEAD)
        return st_fail(err, ST_EINVAL,
                       "the chunk at byte %zu does not begin with its digest and its length", *at);
    digest_of(body + *at + HEAD, n, is);
    if (strcmp(is, ret) != 0)
        return st_fail(err, ST_EINVAL, "the chunk at byte %zu is not what its digest says", *at);
    *ret_n = n;
    return 0;
}

static int put_chunks(st_visit *v, int root, st_err *err)
{
    const st_api *api = v->api;
    char hex[ST_FOLDER_DIGEST], path[ST_FOLDER_CHUNK_AT];
    st_beneath_use use;
    size_t all, n = 0, kept = 0;
    const char *body = st_call_body(v->call, &all);
    int r = st_fills_get(api->fills, v->volume.id, root, api->options.clock(api->options.ctx), &use,
                         err);

    if (r == 0 && use.bytes + (int64_t)all > ST_BROUGHT_MIB << 20)
        r = st_fail(err, ST_ELIMIT,
                    "what jobs of this account came with has %" PRId64 " MiB of %" PRId64
                    ": use a volume, or wait until older folders are removed",
                    use.bytes >> 20, ST_BROUGHT_MIB);
    if (r == 0 && use.files > st_volume_files_max(ST_BROUGHT_MIB))
        r = st_fail(err, ST_ELIMIT, "what jobs of this account came with has too many files");
    for (size_t at = 0; r == 0 && at < all; at += HEAD + n) {
        r = next_chunk(body, all, &at, hex, &n, err);
        if (r < 0)
            break;
        st_folder_chunk_at(hex, path);
        if (touch(root, path) != (int64_t)n) {
            r = keep(root, path, body + at + HEAD, n, err);
            st_fills_add(api->fills, v->volume.id, (int64_t)n, 1);
        }
        kept++;
    }
    if (r == 0)
        st_call_reply_json(v->call, 200, json_pack("{s:I}", "kept", (json_int_t)kept));
    return r;
}

void st_api_chunks_put(st_call *call, void *ctx)
{
    begin(call, ctx, put_chunks);
}

/* ---- lists --------------------------------------------------------------------------------------- */

static int bad_list(st_err *err, const char *why, const char *path)
{
    char q[ST_QUOTE_MAX];

    return st_fail(err, ST_EINVAL, "file %s: %s", st_quote(q, path ? path : ""), why);
}

/* As it is used, and behind the one before: so nothing is there twice. */
static int check_path(const char *path, const char **last, st_err *err)
{
    char own[ST_BENEATH_PATH_MAX];

    if (!path)
        return bad_list(err, "it needs a path", path);
    if (st_beneath_path(path, own, err) < 0)
        return -err->code;
    if (strcmp(own, path) != 0 || strcmp(own, ".") == 0)
        return bad_list(err, "its path is not written as it is used", path);
    if (*last && strcmp(*last, path) >= 0)
        return bad_list(err, "files stand in order of their paths, each once", path);
    *last = path;
    return 0;
}

static int check_file(const json_t *file, const char **last, int64_t *bytes, st_err *err)
{
    const char *path = json_string_value(json_object_get(file, "path"));
    const json_t *chunks = json_object_get(file, "chunks"), *size = json_object_get(file, "size");
    const json_t *run = json_object_get(file, "run"), *row;
    int64_t n = json_integer_value(size);
    size_t i;

    if (!json_is_object(file) || json_object_size(file) != 3 + (run != NULL) ||
        (run && !json_is_boolean(run)) || !json_is_integer(size) || !json_is_array(chunks))
        return bad_list(err, "it has path, size, chunks and perhaps run", path);
    if (check_path(path, last, err) < 0)
        return -err->code;
    if (n < 0 || n > ST_FOLDER_BYTES_MAX - *bytes)
        return st_fail(err, ST_ELIMIT, "a folder that comes with a job has at most %" PRId64 " MiB",
                       ST_FOLDER_BYTES_MAX >> 20);
    if ((int64_t)json_array_size(chunks) != (n + ST_FOLDER_CHUNK - 1) / ST_FOLDER_CHUNK)
        return bad_list(err, "it has another number of chunks than its size needs", path);
    json_array_foreach(chunks, i, row)
    {
        if (!json_is_string(row) || !st_folder_digest_ok(json_string_value(row)))
            return bad_list(err, "a chunk is not a SHA-256 in hex", path);
    }
    *bytes += n;
    return 0;
}

static int check_list(const json_t *list, st_err *err)
{
    const json_t *files = json_object_get(list, "files"),
                 *folders = json_object_get(list, "folders");
    const json_t *row;
    const char *last = NULL;
    int64_t bytes = 0;
    size_t i;

    if (!json_is_object(list) || !json_is_array(files) || (folders && !json_is_array(folders)) ||
        json_object_size(list) != 1 + (folders != NULL))
        return st_fail(err, ST_EINVAL, "a list has files, and perhaps folders");
    if (json_array_size(files) > ST_FOLDER_FILES_MAX ||
        json_array_size(folders) > ST_FOLDER_FILES_MAX)
        return st_fail(err, ST_ELIMIT, "a folder that comes with a job has at most %d files",
                       ST_FOLDER_FILES_MAX);
    json_array_foreach(files, i, row)
    {
        if (check_file(row, &last, &bytes, err) < 0)
            return -err->code;
    }
    last = NULL;
    json_array_foreach(folders, i, row)
    {
        if (check_path(json_string_value(row), &last, err) < 0)
            return -err->code;
    }
    return 0;
}

/* Chunks that are not there, each named once or more; of one that is, the length must be right. */
static int find_missing(const json_t *list, int root, json_t *missing, st_err *err)
{
    const json_t *file, *chunk;
    size_t i, k;

    json_array_foreach(json_object_get(list, "files"), i, file)
    {
        int64_t left = json_integer_value(json_object_get(file, "size"));

        json_array_foreach(json_object_get(file, "chunks"), k, chunk)
        {
            int64_t want = ST_MIN(left, ST_FOLDER_CHUNK), has;
            char at[ST_FOLDER_CHUNK_AT];

            st_folder_chunk_at(json_string_value(chunk), at);
            has = touch(root, at);
            if (has >= 0 && has != want)
                return bad_list(err, "a chunk has another length than the file needs",
                                json_string_value(json_object_get(file, "path")));
            if (has < 0)
                json_array_append(missing, (json_t *)(uintptr_t)chunk);
            if (json_array_size(missing) >= MISSING_MAX)
                return 0;
            left -= want;
        }
    }
    return 0;
}

static int make_folder(st_visit *v, int root, st_err *err)
{
    char hex[ST_FOLDER_DIGEST] = "", at[ST_FOLDER_DIGEST + 2];
    json_t *list = NULL, *missing = json_array();
    char *text = NULL;
    size_t n;
    int r;

    (void)st_call_body(v->call, &n);
    r = (int64_t)n > ST_FOLDER_LIST_MAX
            ? st_fail(err, ST_ELIMIT, "a list of files has at most %" PRId64 " MiB",
                      ST_FOLDER_LIST_MAX >> 20)
            : st_call_json(v->call, &list, err);
    if (r == 0)
        r = check_list(list, err);
    if (r == 0)
        r = find_missing(list, root, missing, err);
    if (r == 0 && json_array_size(missing) == 0) {
        text = json_dumps(list, JSON_COMPACT | JSON_SORT_KEYS);
        n = strlen(text);
        digest_of(text, n, hex);
        snprintf(at, sizeof at, "t/%s", hex);
        if (touch(root, at) != (int64_t)n)
            r = keep(root, at, text, n, err);
    }
    /* Where it will be used is there when its first task starts. */
    if (r == 0 && hex[0]) {
        char jobs[ST_VOLUME_ID_MAX];

        st_space_id(ST_SPACE_JOBS, v->owner, jobs);
        r = st_api_space_make(v->api, jobs, v->owner, err);
    }
    if (r == 0)
        st_call_reply_json(
            v->call, 200,
            json_pack("{s:s?, s:O}", "folder", hex[0] ? hex : NULL, "missing", missing));
    free(text);
    json_decref(list);
    json_decref(missing);
    return r;
}

void st_api_folder_make(st_call *call, void *ctx)
{
    begin(call, ctx, make_folder);
}
