/*
 * What jobs say of volumes (model/volume.h).
 */
#include "model/volume.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/quote.h"
#include "base/utf8.h"

bool st_volume_id_ok(const char *id)
{
    return strlen(id) == ST_VOLUME_ID_MAX - 1 &&
           strspn(id, "0123456789abcdef") == ST_VOLUME_ID_MAX - 1;
}

void st_space_id(st_space space, int64_t owner, char ret[ST_VOLUME_ID_MAX])
{
    snprintf(ret, ST_VOLUME_ID_MAX, "fff%c%012" PRIx64, space == ST_SPACE_JOBS ? 'f' : 'e',
             (uint64_t)owner & UINT64_C(0xffffffffffff));
}

bool st_folder_digest_ok(const char *text)
{
    return strlen(text) == ST_FOLDER_DIGEST - 1 &&
           strspn(text, "0123456789abcdef") == ST_FOLDER_DIGEST - 1;
}

void st_folder_chunk_at(const char *digest, char ret[ST_FOLDER_CHUNK_AT])
{
    snprintf(ret, ST_FOLDER_CHUNK_AT, "c/%.2s/%s", digest, digest);
}

bool st_volume_like_job(const char *name)
{
    return strlen(name) == 9 && name[0] == 'j' &&
           strspn(name, "0123456789abcdefghijklmnopqrstuvwxyz") == 9;
}

bool st_volume_paths_meet(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), least = n < m ? n : m;

    if (strncmp(a, b, least) != 0)
        return false;
    return n == m || (n > m ? a[m] : b[n]) == '/';
}

static int bad(const char *path, const char *why, st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_fail(err, ST_EINVAL, "%s cannot be where a volume is mounted: %s", st_quote(q, path),
                   why);
}

int st_volume_path_ok(const char *path, st_err *err)
{
    static const char *const taken[] = {"/proc",   "/sys",  "/dev", "/run",   "/etc",
                                        "/bin",    "/sbin", "/lib", "/lib32", "/lib64",
                                        "/libx32", "/usr",  "/tmp", "/data",  "/boot"};
    size_t n = strlen(path);

    if (path[0] != '/' || n < 2)
        return bad(path, "use a whole path, as in /mnt/data", err);
    if (n >= ST_VOLUME_PATH_MAX)
        return bad(path, "it is longer than 255 bytes", err);
    if (st_utf8_valid(path, n) != n)
        return bad(path, "it is not valid UTF-8", err);
    for (const char *p = path; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == ':' || *p == ',' || *p == '\\')
            return bad(path, "it has a character that paths of mounts cannot have", err);
        if (*p == '/' && (!p[1] || p[1] == '/' || (p[1] == '.' && (p[2] == '/' || !p[2])) ||
                          (p[1] == '.' && p[2] == '.' && (p[3] == '/' || !p[3]))))
            return bad(path, "it must not end in / or have //, /./ or /../", err);
    }
    for (size_t i = 0; i < ST_ARRAY_LEN(taken); i++)
        if (st_volume_paths_meet(path, taken[i]))
            return bad(path, "the image or Stint needs that place", err);
    return 0;
}

int st_volume_ask_read(const char *text, st_volume_ask *ret, st_err *err)
{
    const char *colon = strchr(text, ':'), *last;
    st_volume_ask ask = {0};
    char q[ST_QUOTE_MAX];
    size_t n;

    if (!colon || colon[1] != '/')
        return st_fail(err, ST_EINVAL, "%s is not NAME:/PATH or NAME:/PATH:ro", st_quote(q, text));
    n = (size_t)(colon - text);
    if (n <= ST_VOLUME_NAME_MAX)
        memcpy(ask.name, text, n);
    if (!st_plain_name(ask.name, ST_VOLUME_NAME_MAX))
        return st_fail(err, ST_EINVAL,
                       "%s has no name of a volume in front: 1 to %d letters, digits, ., - and _",
                       st_quote(q, text), ST_VOLUME_NAME_MAX);
    last = strchr(colon + 1, ':');
    if (last && strcmp(last, ":ro") != 0 && strcmp(last, ":rw") != 0)
        return st_fail(err, ST_EINVAL, "%s: behind the path stands ro or rw, or nothing",
                       st_quote(q, text));
    ask.ro = last && strcmp(last, ":ro") == 0;
    n = last ? (size_t)(last - colon - 1) : strlen(colon + 1);
    if (n >= sizeof ask.path)
        return bad(colon + 1, "it is longer than 255 bytes", err);
    memcpy(ask.path, colon + 1, n);
    if (st_volume_path_ok(ask.path, err) < 0)
        return err ? -err->code : -ST_EINVAL;
    *ret = ask;
    return 0;
}
