/*
 * The image catalogue: the owner says what names stand for; everybody sees the names that are for them.
 */
#include <string.h>

#include "api/state.h"
#include "base/mem.h"

static bool sees_all(const st_call *call)
{
    return st_api_who(call)->role == ST_ROLE_OWNER;
}

void st_api_images_list(st_call *call, void *ctx)
{
    st_api *api = ctx;
    json_t *list =
        st_images_list(st_control_images(api->control), st_api_who(call)->account, sees_all(call));

    st_call_reply_json(call, 200, json_pack("{s:o}", "images", list));
}

void st_api_image_get(st_call *call, void *ctx)
{
    st_api *api = ctx;
    const char *name = st_call_param(call, "name");
    json_t *row = st_images_show(st_control_images(api->control), st_api_who(call)->account, name,
                                 sees_all(call));

    if (row) {
        st_api_set_version(call, json_integer_value(json_object_get(row, "version")));
        st_call_reply_json(call, 200, row);
    } else {
        st_api_no_such(call, "image", name);
    }
}

/* What was checked before the commit is not refused after it. */
static void publish(st_control *ctl, st_cmd *cmd)
{
    const st_document_change *c = (const st_document_change *)cmd;
    st_err err;

    st_images_set(st_control_images(ctl), c->name, c->document.doc, c->document.version, &err);
}

static int check_count(st_api *api, const char *name, st_err *err)
{
    st_images *images = st_control_images(api->control);
    json_t *one = st_images_show(images, "", name, true), *all = st_images_list(images, "", true);
    bool full = !one && json_array_size(all) >= ST_IMAGES_MAX;

    json_decref(one);
    json_decref(all);
    return full ? st_fail(err, ST_ELIMIT, "the catalogue has %d images, and that is all it takes",
                          ST_IMAGES_MAX)
                : 0;
}

void st_api_image_put(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_document_change *c = st_document_change_new(call, api, "image");
    st_err err = {0};
    int r = st_call_json(call, &c->doc, &err);

    if (r == 0)
        r = st_images_read(c->name, c->doc, &err);
    if (r == 0)
        r = st_document_accounts_ok(api, json_object_get(c->doc, "accounts"), &err);
    if (r == 0)
        r = check_count(api, c->name, &err);
    if (r == 0)
        c->text = json_dumps(c->doc, JSON_COMPACT | JSON_SORT_KEYS);
    c->kept = st_xstrdup(c->name);
    c->document.cmd.publish = publish;
    st_document_change_post(c, r, &err);
}

void st_api_image_remove(st_call *call, void *ctx)
{
    st_document_change *c = st_document_change_new(call, ctx, "image");

    c->kept = st_xstrdup(c->name);
    c->document.cmd.publish = publish;
    st_document_change_post(c, 0, NULL);
}
