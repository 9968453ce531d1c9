/*
 * Root file systems; see the header. A layer is checked against its digest, unpacked by tar into
 * an empty folder of its own, its whiteouts are turned into overlayfs's, and the folder gets its
 * final name last: what has that name is whole. Since each layer starts from an empty folder, a
 * link in one cannot lead the files of the next outside.
 */
#include "run/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/os.h"

#define LAYERS_MAX 32
#define DIGEST_LEN (7 + 64) /* "sha256:" and hex */

static bool is_digest(const char *text)
{
    return text && strlen(text) == DIGEST_LEN && strncmp(text, "sha256:", 7) == 0 &&
           strspn(text + 7, "0123456789abcdef") == 64;
}

/* Compares a blob with its name. */
static int check_blob(const char *path, const char *digest, st_err *err)
{
    ST_CLEANUP(st_os_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ST_CLEANUP(st_freep) unsigned char *buf = st_xmalloc(1 << 20);
    unsigned char sum[crypto_hash_sha256_BYTES];
    char hex[2 * sizeof(sum) + 1];
    crypto_hash_sha256_state state;
    ssize_t n;

    if (fd < 0)
        return st_fail(err, ST_ENOENT, "image blob %s: %s", path, strerror(errno));
    crypto_hash_sha256_init(&state);
    while ((n = read(fd, buf, 1 << 20)) > 0)
        crypto_hash_sha256_update(&state, buf, (unsigned long long)n);
    if (n < 0)
        return st_fail(err, ST_EIO, "cannot read %s: %s", path, strerror(errno));
    crypto_hash_sha256_final(&state, sum);
    sodium_bin2hex(hex, sizeof(hex), sum, sizeof(sum));
    if (strcmp(hex, digest + 7) != 0)
        return st_fail(err, ST_ECORRUPT, "image blob %s is damaged: its sum is %s", path, hex);
    return 0;
}

/* ".wh.NAME" becomes a 0/0 device NAME, ".wh..wh..opq" an attribute of the folder. */
static int turn_whiteouts(int dir_fd)
{
    DIR *dir = fdopendir(dir_fd);
    int r = 0;

    if (!dir) {
        close(dir_fd);
        return -1;
    }
    for (struct dirent *e; r == 0 && (e = readdir(dir));) {
        struct stat st;
        const char *name = e->d_name;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (strcmp(name, ".wh..wh..opq") == 0) {
            r = fsetxattr(dirfd(dir), "trusted.overlay.opaque", "y", 1, 0);
            if (r == 0)
                r = unlinkat(dirfd(dir), name, 0);
        } else if (strncmp(name, ".wh.", 4) == 0 && name[4] && strcmp(name + 4, ".") != 0 &&
                   strcmp(name + 4, "..") != 0) {
            r = unlinkat(dirfd(dir), name, 0);
            if (r == 0)
                r = mknodat(dirfd(dir), name + 4, S_IFCHR, makedev(0, 0));
        } else if (fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                   S_ISDIR(st.st_mode)) {
            int sub = openat(dirfd(dir), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

            r = sub < 0 ? -1 : turn_whiteouts(sub);
        }
    }
    int saved = errno;

    closedir(dir);
    errno = saved;
    return r;
}

static int unpack_layer(const char *blob, const char *digest, const char *to, st_err *err)
{
    char part[PATH_MAX], tar[PATH_MAX], said[256];
    int r;

    if ((r = check_blob(blob, digest, err)) != 0 ||
        (r = st_os_path(part, err, "%s.%d", to, (int)getpid())) != 0 ||
        (r = st_os_remove_tree(part, err)) != 0 || (r = st_os_mkdirs(part, 0755, err)) != 0)
        return r;
    if (!st_os_which("tar", tar))
        return st_fail(err, ST_ENOENT, "image layers are unpacked by tar, which is not installed");
    const char *argv[] = {tar,  "--extract", "--numeric-owner", "--file", blob, "--directory",
                          part, NULL};
    int status = st_os_run(argv, said, sizeof(said));

    said[strcspn(said, "\n")] = '\0';
    if (status != 0)
        r = st_fail(err, ST_EIO, "tar cannot unpack %s: %s", blob, said);
    int fd = r ? -1 : open(part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (!r && (fd < 0 || turn_whiteouts(fd) != 0))
        r = st_fail(err, ST_EIO, "cannot prepare %s: %s", part, strerror(errno));
    /* Somebody else may have unpacked the same layer meanwhile. */
    if (!r && rename(part, to) != 0 && errno != EEXIST && errno != ENOTEMPTY)
        r = st_fail(err, ST_EIO, "cannot rename %s: %s", part, strerror(errno));
    if (access(part, F_OK) == 0)
        (void)st_os_remove_tree(part, NULL);
    return r;
}

/* Reads the JSON document a descriptor points to, checked. */
static int read_blob(const char *image, const json_t *descriptor, json_t **ret, st_err *err)
{
    const char *digest = json_string_value(json_object_get(descriptor, "digest"));
    char path[PATH_MAX];
    int r;

    if (!is_digest(digest))
        return st_fail(err, ST_EPARSE, "%s: a descriptor has no sha256 digest", image);
    if ((r = st_os_path(path, err, "%s/blobs/sha256/%s", image, digest + 7)) != 0 ||
        (r = check_blob(path, digest, err)) != 0)
        return r;
    return st_os_read_json(path, ret, err);
}

static int add_layer(const char *cache, const char *image, const json_t *layer, char *lower,
                     st_err *err)
{
    const char *digest = json_string_value(json_object_get(layer, "digest"));
    char blob[PATH_MAX], to[PATH_MAX], before[PATH_MAX];
    int r;

    if (!is_digest(digest))
        return st_fail(err, ST_EPARSE, "%s: a layer has no sha256 digest", image);
    if ((r = st_os_path(blob, err, "%s/blobs/sha256/%s", image, digest + 7)) != 0 ||
        (r = st_os_path(to, err, "%s/%s", cache, digest + 7)) != 0 ||
        (r = st_os_path(before, err, "%s", lower)) != 0)
        return r;
    if (access(to, F_OK) != 0 && (r = unpack_layer(blob, digest, to, err)) != 0)
        return r;
    return st_os_path(lower, err, "%s%s%s", to, before[0] ? ":" : "", before);
}

int st_image_lower(const char *cache, const char *image, char ret[PATH_MAX], st_err *err)
{
    ST_CLEANUP(st_os_jsonp) json_t *index = NULL;
    ST_CLEANUP(st_os_jsonp) json_t *manifest = NULL;
    char path[PATH_MAX], lower[PATH_MAX] = "";
    const json_t *layer;
    struct stat st;
    size_t i;
    int r;

    if (stat(image, &st) != 0 || !S_ISDIR(st.st_mode))
        return st_fail(err, ST_ENOENT, "there is no image folder %s", image);
    if ((r = st_os_path(path, err, "%s/oci-layout", image)) != 0)
        return r;
    if (access(path, F_OK) != 0)
        return st_os_path(ret, err, "%s", image);
    if ((r = st_os_path(path, err, "%s/index.json", image)) != 0 ||
        (r = st_os_read_json(path, &index, err)) != 0 ||
        (r = read_blob(image, json_array_get(json_object_get(index, "manifests"), 0), &manifest,
                       err)) != 0)
        return r;
    const json_t *layers = json_object_get(manifest, "layers");

    if (json_array_size(layers) == 0 || json_array_size(layers) > LAYERS_MAX)
        return st_fail(err, ST_EPARSE, "%s: an image has 1 to %d layers, this one %zu", image,
                       LAYERS_MAX, json_array_size(layers));
    json_array_foreach(layers, i, layer)
    {
        if ((r = add_layer(cache, image, layer, lower, err)) != 0)
            return r;
    }
    memcpy(ret, lower, sizeof(lower));
    return 0;
}
