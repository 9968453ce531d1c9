/*
 * The image catalogue (state/images.h).
 */
#include "state/images.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/vec.h"

typedef struct entry {
    char *name;
    json_t *doc;
    int64_t version;
} entry;

struct st_images {
    pthread_mutex_t lock;
    st_directory *dir;
    ST_VEC(entry) all; /* by name */
};

static const char *text(const json_t *doc, const char *key)
{
    return json_string_value(json_object_get(doc, key));
}

/* ---- reading a document ------------------------------------------------------------------ */

static int check_path(const char *key, const char *path, st_err *err)
{
    char q[ST_QUOTE_MAX];

    if (path[0] != '/' || !path[1] || strstr(path, "//") || strstr(path, "/../") ||
        strlen(path) >= ST_IMAGE_PATH_MAX)
        return st_fail(err, ST_EINVAL, "%s %s is not a whole path on the nodes", key,
                       st_quote(q, path));
    if (strpbrk(path, ":,\\")) /* a mount would read them as its own */
        return st_fail(err, ST_EINVAL, "%s %s must not contain : , or \\", key, st_quote(q, path));
    return 0;
}

static int check_accounts(const json_t *said, st_err *err)
{
    const json_t *row;
    size_t i;

    if (json_is_string(said) && strcmp(json_string_value(said), "all") == 0)
        return 0;
    if (json_array_size(said) == 0 || json_array_size(said) > ST_IMAGE_ACCOUNTS_MAX)
        return st_fail(
            err, ST_EINVAL,
            "accounts says who may use the image: \"all\", or a list of 1 to %d accounts",
            ST_IMAGE_ACCOUNTS_MAX);
    json_array_foreach(said, i, row)
    {
        if (!json_is_string(row) || !st_name_ok(json_string_value(row)))
            return st_fail(err, ST_EINVAL, "accounts: number %zu is not a name", i + 1);
    }
    return 0;
}

int st_images_read(const char *name, const json_t *doc, st_err *err)
{
    static const char *const keys[] = {"folder", "layout",   "digest", "trust",
                                       "about",  "accounts", NULL};
    const char *folder = text(doc, "folder"), *layout = text(doc, "layout");
    const char *digest = text(doc, "digest"), *trust = text(doc, "trust"), *key;
    char q[ST_QUOTE_MAX];
    const json_t *value;
    int r = 0;

    if (!st_image_name_ok(name))
        return st_fail(
            err, ST_EINVAL,
            "%s cannot be an image's name: up to %d letters, digits, . - _ and :, not host",
            st_quote(q, name), ST_IMAGE_NAME_MAX);
    if (!json_is_object(doc))
        return st_fail(err, ST_EINVAL, "an image is described by an object");
    json_object_foreach((json_t *)(uintptr_t)doc, key, value)
    {
        bool known = false;

        for (int i = 0; keys[i]; i++)
            known = known || strcmp(keys[i], key) == 0;
        if (!known)
            return st_fail(err, ST_EINVAL, "an image has no key %s", st_quote(q, key));
        if (!json_is_string(value) && strcmp(key, "accounts") != 0)
            return st_fail(err, ST_EINVAL, "%s is a text", key);
    }
    if (!folder == !layout)
        return st_fail(err, ST_EINVAL, "give a folder or a layout, one of the two");
    if (layout && (!digest || !st_digest_text_ok(digest)))
        return st_fail(err, ST_EINVAL,
                       "a layout needs the digest of its manifest: sha256: and 64 hex digits");
    if (folder && digest)
        return st_fail(err, ST_EINVAL, "a folder has no digest; a layout has");
    if (trust && strcmp(trust, "trusted") != 0 && strcmp(trust, "untrusted") != 0)
        return st_fail(err, ST_EINVAL, "trust is trusted or untrusted, not %s", st_quote(q, trust));
    r = check_path(folder ? "folder" : "layout", folder ? folder : layout, err);
    return r < 0 ? r : check_accounts(json_object_get(doc, "accounts"), err);
}

/* ---- asking ------------------------------------------------------------------------------ */

static int by_name(const void *key, const void *one)
{
    return strcmp(key, ((const entry *)one)->name);
}

static entry *find(const st_images *im, const char *name)
{
    return im->all.n ? bsearch(name, im->all.v, im->all.n, sizeof im->all.v[0], by_name) : NULL;
}

/* For the accounts named, and all below them. */
static bool may_use(const st_images *im, const entry *e, const char *account)
{
    const json_t *said = json_object_get(e->doc, "accounts"), *row;
    size_t i;

    if (json_is_string(said))
        return true;
    json_array_foreach(said, i, row)
    {
        if (st_directory_within(im->dir, account, json_string_value(row)))
            return true;
    }
    return false;
}

/* Who may use it, and who stands above those. */
static bool may_see(const st_images *im, const entry *e, const char *account)
{
    const json_t *row;
    size_t i;

    json_array_foreach(json_object_get(e->doc, "accounts"), i, row)
    {
        if (st_directory_within(im->dir, json_string_value(row), account))
            return true;
    }
    return may_use(im, e, account);
}

static int no_image(const char *name, st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_fail(err, ST_ENOENT, "there is no image %s; stint image list shows those you may use",
                   st_quote(q, name));
}

static bool is_untrusted(const entry *e)
{
    const char *trust = text(e->doc, "trust");

    return trust && strcmp(trust, "untrusted") == 0;
}

/* With the lock held. */
static int look_up(const st_images *im, const char *account, const st_image_ref *ref,
                   const entry **ret, st_err *err)
{
    const entry *e = find(im, ref->name);
    const char *digest;

    if (!e || !may_use(im, e, account))
        return no_image(ref->name, err);
    digest = text(e->doc, "digest");
    if (ref->digest[0] && (!digest || strcmp(ref->digest, digest) != 0))
        return st_fail(err, ST_ESTATE, "image %s has another digest now: %s", ref->name,
                       digest ? digest : "none, it is a folder");
    *ret = e;
    return 0;
}

int st_images_admit(st_images *im, const char *account, const char *image, st_level level,
                    st_err *err)
{
    const entry *e = NULL;
    st_image_ref ref;
    int r = st_spec_image(image, &ref, err);

    if (r < 0 || ref.kind != ST_IMAGE_REF_NAME)
        return r;
    pthread_mutex_lock(&im->lock);
    r = look_up(im, account, &ref, &e, err);
    if (r == 0 && is_untrusted(e) && (level == ST_LEVEL_MPS || level == ST_LEVEL_TIME))
        r = st_fail(err, ST_EPERM,
                    "image %s is untrusted and does not share a GPU; ask for level whole or mig",
                    ref.name);
    pthread_mutex_unlock(&im->lock);
    return r;
}

static json_t *shown(const entry *e, bool all)
{
    const char *digest = text(e->doc, "digest"), *about = text(e->doc, "about");
    const char *folder = text(e->doc, "folder");
    json_t *row = json_pack(
        "{s:s, s:s, s:s, s:I}", "name", e->name, "kind", folder ? "folder" : "layout", "trust",
        is_untrusted(e) ? "untrusted" : "trusted", "version", (json_int_t)e->version);

    if (digest)
        json_object_set_new(row, "digest", json_string(digest));
    if (about)
        json_object_set_new(row, "about", json_string(about));
    if (all) {
        json_object_set_new(row, "path", json_string(folder ? folder : text(e->doc, "layout")));
        json_object_set_new(row, "accounts", json_deep_copy(json_object_get(e->doc, "accounts")));
    }
    return row;
}

json_t *st_images_list(st_images *im, const char *account, bool all)
{
    json_t *list = json_array();

    pthread_mutex_lock(&im->lock);
    for (size_t i = 0; i < im->all.n; i++)
        if (all || may_see(im, &im->all.v[i], account))
            json_array_append_new(list, shown(&im->all.v[i], all));
    pthread_mutex_unlock(&im->lock);
    return list;
}

json_t *st_images_show(st_images *im, const char *account, const char *name, bool all)
{
    const entry *e;
    json_t *row = NULL;

    pthread_mutex_lock(&im->lock);
    e = find(im, name);
    if (e && (all || may_see(im, e, account)))
        row = shown(e, all);
    pthread_mutex_unlock(&im->lock);
    return row;
}

/* ---- for agents -------------------------------------------------------------------------- */

static void add_text(st_strbuf *out, const char *key, const char *value)
{
    st_strbuf_addf(out, ",\"%s\":", key);
    st_quote_json(out, value);
}

static void add_refusal(st_strbuf *out, const char *why)
{
    st_strbuf_add(out, "{\"kind\":\"refused\"");
    add_text(out, "reason", why);
}

static void add_named(st_images *im, const char *account, const st_image_ref *ref, st_strbuf *out)
{
    const entry *e = NULL;
    st_err why = {0};

    pthread_mutex_lock(&im->lock);
    if (look_up(im, account, ref, &e, &why) < 0) {
        add_refusal(out, why.msg);
    } else if (text(e->doc, "folder")) {
        st_strbuf_add(out, "{\"kind\":\"folder\"");
        add_text(out, "path", text(e->doc, "folder"));
        add_text(out, "trust", is_untrusted(e) ? "untrusted" : "trusted");
    } else {
        st_strbuf_add(out, "{\"kind\":\"oci\"");
        add_text(out, "path", text(e->doc, "layout"));
        add_text(out, "digest", text(e->doc, "digest"));
        add_text(out, "trust", is_untrusted(e) ? "untrusted" : "trusted");
    }
    pthread_mutex_unlock(&im->lock);
}

void st_images_order(st_images *im, const char *account, const char *doc, bool host, st_strbuf *out)
{
    json_t *root = doc && strstr(doc, "\"image\"") ? json_loads(doc, 0, NULL) : NULL;
    const char *image = text(root, "image");
    st_image_ref ref = {.kind = ST_IMAGE_REF_HOST};
    st_err why = {0};

    if (image && image[0] && st_spec_image(image, &ref, &why) < 0) {
        add_refusal(out, why.msg);
    } else if (ref.kind == ST_IMAGE_REF_NAME) {
        add_named(im, account, &ref, out);
    } else if (ref.kind == ST_IMAGE_REF_DATA) {
        st_strbuf_add(out, "{\"kind\":\"data\"");
        add_text(out, "path", ref.path);
        if (ref.digest[0])
            add_text(out, "digest", ref.digest);
    } else if (host) {
        st_strbuf_add(out, "{\"kind\":\"host\"");
    } else {
        add_refusal(out, "its pool does not let jobs use the node's own programs; name an image: "
                         "stint image list");
    }
    st_strbuf_addc(out, '}');
    json_decref(root);
}

/* ---- changing ---------------------------------------------------------------------------- */

st_images *st_images_new(st_directory *dir)
{
    st_images *im = st_xcalloc(1, sizeof *im);

    ST_ASSERT(pthread_mutex_init(&im->lock, NULL) == 0);
    im->dir = dir;
    return im;
}

static void entry_done(entry *e)
{
    free(e->name);
    json_decref(e->doc);
}

void st_images_free(st_images *im)
{
    if (!im)
        return;
    for (size_t i = 0; i < im->all.n; i++)
        entry_done(&im->all.v[i]);
    st_vec_free(&im->all);
    pthread_mutex_destroy(&im->lock);
    free(im);
}

static int in_order(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

int st_images_set(st_images *im, const char *name, const char *doc, int64_t version, st_err *err)
{
    json_t *root = doc ? json_loads(doc, 0, NULL) : NULL;
    int r = doc ? st_images_read(name, root, err) : 0;
    entry *old;

    if (r < 0) {
        json_decref(root);
        return r;
    }
    pthread_mutex_lock(&im->lock);
    old = find(im, name);
    if (old) {
        entry_done(old);
        st_vec_remove(&im->all, (size_t)(old - im->all.v));
    }
    if (doc) {
        st_vec_push(&im->all, (entry){.name = st_xstrdup(name), .doc = root, .version = version});
        qsort(im->all.v, im->all.n, sizeof im->all.v[0], in_order);
    }
    pthread_mutex_unlock(&im->lock);
    return 0;
}

static int load_one(void *ctx, const st_document_row *row, st_err *err)
{
    return st_images_set(ctx, row->name, row->doc, row->at_ms, err);
}

int st_images_load(st_images *im, st_store *store, st_err *err)
{
    int r = st_store_documents(store, "image", load_one, im, err);

    return r < 0 ? r : 0;
}
