/*
 * What a job's `image` refers to (spec/spec.h). Only what the words mean is decided here; what a name of the
 * catalogue stands for, and who may use it, is the site's.
 */
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "spec/spec.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#define SAY                                                                                  \
    "an image is a name of the catalogue (stint image list), data:PATH in your storage, or " \
    "host"

bool st_digest_text_ok(const char *text)
{
    return strlen(text) == ST_IMAGE_DIGEST_MAX - 1 && strncmp(text, "sha256:", 7) == 0 &&
           strspn(text + 7, "0123456789abcdef") == 64;
}

bool st_image_name_ok(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n <= ST_IMAGE_NAME_MAX && strspn(name, LETTERS ".-_:") == n &&
           strspn(name, LETTERS) > 0 && strcmp(name, "host") != 0 && strncmp(name, "data:", 5) != 0;
}

/* A path in the storage: parts without "..", joined by one slash. */
static int read_path(const char *at, size_t len, char ret[ST_IMAGE_PATH_MAX], st_err *err)
{
    size_t n = 0;

    for (size_t i = 0, part; i < len; i += part + 1) {
        part = 0;
        while (i + part < len && at[i + part] != '/') {
            if ((unsigned char)at[i + part] < 0x20)
                return st_fail(err, ST_EINVAL, "the image's path has a control character");
            part++;
        }
        if (part == 2 && memcmp(at + i, "..", 2) == 0)
            return st_fail(err, ST_EINVAL, "the image's path must stay in your storage: no \"..\"");
        if (part == 0 || (part == 1 && at[i] == '.'))
            continue;
        if (n + part + 2 > ST_IMAGE_PATH_MAX)
            return st_fail(err, ST_ELIMIT, "the image's path has more than %d bytes",
                           ST_IMAGE_PATH_MAX - 1);
        if (n > 0)
            ret[n++] = '/';
        memcpy(ret + n, at + i, part);
        n += part;
    }
    if (n == 0)
        ret[n++] = '.';
    ret[n] = '\0';
    return 0;
}

int st_spec_image(const char *text, st_image_ref *ret, st_err *err)
{
    st_image_ref ref = {.kind = ST_IMAGE_REF_NAME};
    const char *at = strrchr(text, '@');
    size_t n = at ? (size_t)(at - text) : strlen(text);
    char q[ST_QUOTE_MAX];
    int r = 0;

    if (at && !st_digest_text_ok(at + 1))
        return st_fail(err, ST_EINVAL,
                       "the image %s: after @ comes its digest, sha256: and 64 hex digits",
                       st_quote(q, text));
    if (at)
        memcpy(ref.digest, at + 1, sizeof ref.digest);
    if (strcmp(text, "host") == 0) {
        ref.kind = ST_IMAGE_REF_HOST;
    } else if (n >= 5 && strncmp(text, "data:", 5) == 0) {
        ref.kind = ST_IMAGE_REF_DATA;
        r = read_path(text + 5, n - 5, ref.path, err);
    } else if (n >= 5 && strncmp(text, "/data", 5) == 0 && (n == 5 || text[5] == '/')) {
        ref.kind = ST_IMAGE_REF_DATA;
        r = read_path(text + 5, n - 5, ref.path, err);
    } else {
        if (n <= ST_IMAGE_NAME_MAX)
            memcpy(ref.name, text, n);
        if (!st_image_name_ok(ref.name))
            r = st_fail(err, ST_EINVAL, "there is no image %s: " SAY, st_quote(q, text));
    }
    if (r == 0)
        *ret = ref;
    return r;
}
