/* Images of the site that are unpacked and kept before any task asks for them (run/run.h). */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/cache.h"
#include "run/image.h"
#include "run/os.h"
#include "run/run.h"
#include "run/state.h"

static bool never(const void *ctx)
{
    (void)ctx;
    return false;
}

static int check_folder(const char *path, st_err *err)
{
    struct stat s;

    if (stat(path, &s) != 0)
        return st_fail(err, ST_ENOENT, "the image's folder is not on this node: %s",
                       strerror(errno));
    return S_ISDIR(s.st_mode) ? 0 : st_fail(err, ST_EINVAL, "the image's folder is a file");
}

int st_run_prepare(const st_run *run, const st_run_image *image, st_err *err)
{
    char images[PATH_MAX / 2 + 16], root[PATH_MAX];
    const st_image_ask ask = {.images = images,
                              .tenant = "",
                              .root = image->root,
                              .path = ".",
                              .digest = image->digest ? image->digest : "",
                              .max_bytes = run->images_bytes,
                              .timeout_ms = run->image_ms,
                              .stop = never};
    int use = -1, r;

    if (image->kind == ST_IMAGE_FOLDER)
        return check_folder(image->root, err);
    snprintf(images, sizeof images, "%s/images", run->state_dir);
    r = st_image_ready(&ask, root, &use, err);
    st_os_closep(&use);
    return r;
}

int st_run_keep(const st_run *run, const st_run_image *image)
{
    char images[PATH_MAX / 2 + 16], scope[PATH_MAX];
    int use = -1;

    snprintf(images, sizeof images, "%s/images", run->state_dir);
    if (image->kind == ST_IMAGE_FOLDER || !image->digest || strlen(image->digest) < 8 ||
        st_cache_scope(images, "", scope, NULL) < 0 ||
        !st_cache_use(scope, image->digest + 7, &use))
        return -1;
    return use;
}
