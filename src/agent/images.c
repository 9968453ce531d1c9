/*
 * Images that the list wants ready before any task does: bookings begin with them. One after the other is unpacked by a
 * worker, and kept, so that nobody who needs room takes it away, until the list wants it no more.
 *
 * What is listed is checked as all that comes from outside is: only images of the catalogue, by whole path.
 */
#include <string.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/host.h"
#include "base/quote.h"

#define MOST     64
#define LIMIT_MS (INT64_C(30) * 60 * 1000) /* the image has a limit of its own (--image-timeout) */
#define AGAIN_MS (INT64_C(10) * 1000)      /* after it could not be had */

typedef struct work {
    const st_run *run;
    st_run_image image;
} work;

static const char *text(const json_t *map, const char *key)
{
    const char *s = json_string_value(json_object_get(map, key));

    return s ? s : "";
}

/* False: it is none that can be prepared. */
static bool read_image(const json_t *said, st_image_want *ret)
{
    const char *kind = text(said, "kind"), *path = text(said, "path"),
               *digest = text(said, "digest");
    bool oci = strcmp(kind, "oci") == 0;

    *ret = (st_image_want){.oci = oci, .use = -1};
    if ((!oci && strcmp(kind, "folder") != 0) || path[0] != '/' || strstr(path, "/../") ||
        strlen(path) >= sizeof ret->path || strlen(digest) >= sizeof ret->digest ||
        (oci && strncmp(digest, "sha256:", 7) != 0))
        return false;
    snprintf(ret->path, sizeof ret->path, "%s", path);
    snprintf(ret->digest, sizeof ret->digest, "%s", digest);
    return true;
}

static const char *key_of(const st_image_want *i)
{
    return i->oci ? i->digest : i->path;
}

static st_image_want *find(st_host *h, const char *key)
{
    for (size_t i = 0; i < h->images.n; i++)
        if (strcmp(key_of(&h->images.v[i]), key) == 0)
            return &h->images.v[i];
    return NULL;
}

static void let_go(st_host *h, size_t at)
{
    if (h->images.v[at].use >= 0)
        close(h->images.v[at].use);
    st_vec_remove(&h->images, at);
}

/* What the list wants now; what it has come to want is new, and the rest is as it was. */
void st_host_images_want(st_host *h)
{
    const json_t *list = json_object_get(h->has_list ? h->list.root : NULL, "images"), *row;
    st_image_want want;
    size_t i;

    for (size_t k = 0; k < h->images.n; k++)
        h->images.v[k].listed = false;
    json_array_foreach(list, i, row)
    {
        st_image_want *had;

        if (!read_image(row, &want))
            continue;
        had = find(h, key_of(&want));
        if (!had && h->images.n < MOST) {
            st_vec_push(&h->images, want);
            had = &h->images.v[h->images.n - 1];
        }
        if (had)
            had->listed = true;
    }
    for (size_t k = h->images.n; k-- > 0;)
        if (!h->images.v[k].listed)
            let_go(h, k);
}

static st_run_image image_of(const st_image_want *i)
{
    return (st_run_image){.kind = i->oci ? ST_IMAGE_OCI : ST_IMAGE_FOLDER,
                          .root = i->path,
                          .digest = i->oci ? i->digest : NULL};
}

static int unpack(void *ctx, st_err *err)
{
    const work *w = ctx;

    return st_run_prepare(w->run, &w->image, err);
}

static void finish(st_host *h, st_image_want *i, int r, const char *reason)
{
    const st_run_image image = image_of(i);

    if (r == 0 && i->oci && h->exec->run)
        i->use = st_run_keep(h->exec->run, &image);
    i->ready = r == 0;
    i->known = true;
    i->again_ms = st_boot_ms() + AGAIN_MS;
    snprintf(i->reason, sizeof i->reason, "%s", r == 0 ? "" : reason);
    h->changed = true;
    st_say(h, "image", "image=%s ready=%s reason=\"%s\"", key_of(i), r == 0 ? "true" : "false",
           i->reason);
}

static void unpacked(void *ctx, const st_task_key *key, int r, const st_err *err)
{
    st_host *h = ctx;
    st_image_want *i = find(h, h->unpacking);

    (void)key;
    h->unpacking[0] = '\0';
    h->next_ms = 0;
    if (i)
        finish(h, i, r, err->msg);
}

void st_host_images(st_host *h, int64_t now)
{
    st_err err = {0};
    int id;

    for (size_t k = 0; k < h->images.n && !h->unpacking[0]; k++) {
        st_image_want *i = &h->images.v[k];
        work ctx = {h->exec->run, image_of(i)};
        const st_agent_work w = {.what = "the unpacking of an image",
                                 .limit_ms = LIMIT_MS,
                                 .aside = true,
                                 .fn = unpack,
                                 .ctx = &ctx,
                                 .done = unpacked,
                                 .done_ctx = h};

        if (i->known && (i->ready || now < i->again_ms))
            continue;
        if (!h->exec->run) { /* on paper everything is there */
            finish(h, i, 0, "");
            continue;
        }
        snprintf(h->unpacking, sizeof h->unpacking, "%s", key_of(i));
        if (st_worker_start(h->process->workers, &w, &id, &err) < 0) {
            h->unpacking[0] = '\0';
            return; /* in another turn */
        }
    }
}

void st_host_images_json(const st_host *h, st_strbuf *out)
{
    const char *sep = "";

    st_strbuf_addc(out, '[');
    for (size_t k = 0; k < h->images.n; k++) {
        const st_image_want *i = &h->images.v[k];

        if (!i->known)
            continue;
        st_strbuf_addf(out, "%s{\"image\":", sep);
        st_quote_json(out, key_of(i));
        st_strbuf_addf(out, ",\"ready\":%s", i->ready ? "true" : "false");
        if (i->reason[0]) {
            st_strbuf_add(out, ",\"reason\":");
            st_quote_json(out, i->reason);
        }
        st_strbuf_addc(out, '}');
        sep = ",";
    }
    st_strbuf_addc(out, ']');
}

void st_host_images_done(st_host *h)
{
    while (h->images.n > 0)
        let_go(h, h->images.n - 1);
    st_vec_free(&h->images);
}
