/* Documents of an OCI image layout; see the header. */
#include "run/layout.h"

#include <jansson.h>
#include <string.h>

#include "base/quote.h"
#include "run/os.h"

#define MANIFESTS_MAX 256

#if defined(__x86_64__)
#define MACHINE "amd64"
#elif defined(__aarch64__)
#define MACHINE "arm64"
#else
#error "add this machine's name in OCI"
#endif

static const char *text_of(const json_t *map, const char *key)
{
    return json_string_value(json_object_get(map, key));
}

bool st_digest_ok(const char *text)
{
    return text && strlen(text) == ST_DIGEST_TEXT - 1 && strncmp(text, "sha256:", 7) == 0 &&
           strspn(text + 7, "0123456789abcdef") == ST_DIGEST_HEX;
}

static int load(const char *text, size_t n, json_t **ret, st_err *err)
{
    json_error_t why;
    char q[ST_QUOTE_MAX];
    json_t *doc = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);

    if (!json_is_object(doc)) {
        json_decref(doc);
        return st_fail(err, ST_EPARSE, "a document of the image is not a JSON object: %s",
                       st_quote(q, doc ? "" : why.text));
    }
    *ret = doc;
    return 0;
}

static int read_blob(const json_t *descriptor, st_blob *ret, st_err *err)
{
    const char *digest = text_of(descriptor, "digest");
    const json_t *size = json_object_get(descriptor, "size");

    if (!st_digest_ok(digest))
        return st_fail(err, ST_EPARSE, "a blob of the image has no sha256 digest");
    if (!json_is_integer(size) || json_integer_value(size) < 0)
        return st_fail(err, ST_EPARSE, "blob %.19s of the image has no size", digest);
    *ret = (st_blob){.size = json_integer_value(size)};
    memcpy(ret->hex, digest + 7, ST_DIGEST_HEX + 1);
    return 0;
}

static bool says(const json_t *platform, const char *key, const char *want)
{
    const char *word = text_of(platform, key);

    return !word || strcmp(word, want) == 0;
}

int st_layout_index(const char *text, size_t n, st_blob *ret, bool *ret_index, st_err *err)
{
    ST_CLEANUP(st_os_jsonp) json_t *doc = NULL;
    const json_t *list, *row;
    size_t i;
    int r = load(text, n, &doc, err);

    if (r < 0)
        return r;
    list = json_object_get(doc, "manifests");
    if (json_array_size(list) == 0 || json_array_size(list) > MANIFESTS_MAX)
        return st_fail(err, ST_EPARSE, "the image's index names %zu manifests, 1 to %d are read",
                       json_array_size(list), MANIFESTS_MAX);
    json_array_foreach(list, i, row)
    {
        const json_t *platform = json_object_get(row, "platform");
        const char *type = text_of(row, "mediaType");
        bool index = type && (strstr(type, "image.index") || strstr(type, "manifest.list"));

        if (!says(platform, "os", "linux") || !says(platform, "architecture", MACHINE))
            continue;
        r = read_blob(row, ret, err);
        if (r == 0)
            *ret_index = index;
        return r;
    }
    return st_fail(err, ST_EINVAL, "the image has nothing for linux/" MACHINE);
}

int st_layout_manifest(const char *text, size_t n, st_manifest *ret, st_err *err)
{
    ST_CLEANUP(st_os_jsonp) json_t *doc = NULL;
    const json_t *layers, *row;
    size_t i;
    int r = load(text, n, &doc, err);

    if (r < 0)
        return r;
    layers = json_object_get(doc, "layers");
    if (json_array_size(layers) == 0 || json_array_size(layers) > ST_LAYERS_MAX)
        return st_fail(err, ST_EPARSE, "an image has 1 to %d layers, this one %zu", ST_LAYERS_MAX,
                       json_array_size(layers));
    ret->n = 0;
    ret->bytes = 0;
    json_array_foreach(layers, i, row)
    {
        st_blob *blob = &ret->layer[i];

        if ((r = read_blob(row, blob, err)) < 0)
            return r;
        if (blob->size > INT64_MAX - ret->bytes)
            return st_fail(err, ST_ERANGE, "the image's layers are larger than any disk");
        ret->bytes += blob->size;
        ret->n++;
    }
    return 0;
}
