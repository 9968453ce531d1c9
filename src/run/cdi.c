/* Container Device Interface specs; see the header. */
#include "run/cdi.h"

#include <jansson.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

#define CDI_BYTES (8u << 20)
#define ITEMS_MAX 1024

typedef struct reader {
    const char *file;
    st_cdi_edits *to;
    st_err *err;
} reader;

/* Grows an array of the edits by one item; NULL when there are too many. */
static void *grow(void *items, size_t *n, size_t *cap, size_t size)
{
    if (*n == ITEMS_MAX)
        return NULL;
    if (*n == *cap) {
        *cap = *cap ? *cap * 2 : 8;
        items = st_xreallocarray(items, *cap, size);
    }
    (*n)++;
    return items;
}

#define GROW(items, count, cap)                                           \
    __extension__({                                                       \
        void *grown_ = grow((items), &(count), &(cap), sizeof(*(items))); \
        if (grown_)                                                       \
            (items) = grown_;                                             \
        grown_ != NULL;                                                   \
    })

static int too_many(const reader *in, const char *what)
{
    return st_fail(in->err, ST_ELIMIT, "%s: more than %d %s", in->file, ITEMS_MAX, what);
}

static int add_env(const reader *in, const json_t *list)
{
    st_cdi_edits *to = in->to;
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);

        if (!text || !strchr(text, '=') || text[0] == '=')
            return st_fail(in->err, ST_EPARSE, "%s: env item %zu is not NAME=value", in->file,
                           i + 1);
        if (!GROW(to->env, to->nenv, to->env_cap))
            return too_many(in, "variables");
        to->env[to->nenv - 1] = st_xstrdup(text);
    }
    return 0;
}

static int add_nodes(const reader *in, const json_t *list)
{
    st_cdi_edits *to = in->to;
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        const char *path = json_string_value(json_object_get(item, "path"));
        const char *type = json_string_value(json_object_get(item, "type"));
        const json_t *major = json_object_get(item, "major");

        if (!path)
            return st_fail(in->err, ST_EPARSE, "%s: device node %zu has no path", in->file, i + 1);
        if (type && strcmp(type, "c") != 0 && strcmp(type, "u") != 0 && strcmp(type, "b") != 0)
            return st_fail(in->err, ST_EPARSE, "%s: device node %s has the type \"%s\"", in->file,
                           path, type);
        if (!GROW(to->devices, to->ndevice, to->devices_cap))
            return too_many(in, "device nodes");
        to->devices[to->ndevice - 1] = (st_run_device){
            .path = path,
            .host_path = json_string_value(json_object_get(item, "hostPath")),
            /* Type and numbers go together; without a type the node itself is asked. */
            .major = major && type ? json_integer_value(major) : -1,
            .minor = json_integer_value(json_object_get(item, "minor")),
            .block = type && strcmp(type, "b") == 0,
            .access = json_string_value(json_object_get(item, "permissions")),
        };
    }
    return 0;
}

static int add_mounts(const reader *in, const json_t *list)
{
    st_cdi_edits *to = in->to;
    const json_t *item, *option;
    size_t i, k;

    json_array_foreach(list, i, item)
    {
        st_run_mount mount = {
            .source = json_string_value(json_object_get(item, "hostPath")),
            .target = json_string_value(json_object_get(item, "containerPath")),
        };

        if (!mount.source || !mount.target)
            return st_fail(in->err, ST_EPARSE, "%s: mount %zu lacks hostPath or containerPath",
                           in->file, i + 1);
        json_array_foreach(json_object_get(item, "options"), k, option)
        {
            const char *word = json_string_value(option);

            mount.writable |= word && strcmp(word, "rw") == 0;
        }
        if (!GROW(to->mounts, to->nmount, to->mounts_cap))
            return too_many(in, "mounts");
        to->mounts[to->nmount - 1] = mount;
    }
    return 0;
}

static int add_edits(const reader *in, const json_t *edits)
{
    int r = add_env(in, json_object_get(edits, "env"));

    if (!r)
        r = add_nodes(in, json_object_get(edits, "deviceNodes"));
    if (!r)
        r = add_mounts(in, json_object_get(edits, "mounts"));
    in->to->hooks += json_array_size(json_object_get(edits, "hooks"));
    return r;
}

static int add_device(const reader *in, const json_t *root, const char *name)
{
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(root, "devices"), i, item)
    {
        const char *found = json_string_value(json_object_get(item, "name"));

        if (found && strcmp(found, name) == 0)
            return add_edits(in, json_object_get(item, "containerEdits"));
    }
    return st_fail(in->err, ST_ENOENT, "%s: no device \"%s\"", in->file, name);
}

int st_cdi_parse(const char *file, const char *text, size_t len, const char *const *names,
                 st_cdi_edits *ret, st_err *err)
{
    st_cdi_edits edits = {0};
    const reader in = {.file = file, .to = &edits, .err = err};
    json_error_t why;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    int r = 0;

    if (!json_is_object(root)) {
        json_decref(root);
        return st_fail(err, ST_EPARSE, "%s:%d: %s", file, why.line,
                       root ? "not a JSON object" : why.text);
    }
    edits.doc = root;
    if (!json_is_string(json_object_get(root, "cdiVersion")) ||
        !json_is_string(json_object_get(root, "kind")))
        r = st_fail(err, ST_EPARSE, "%s: not a CDI spec, it lacks cdiVersion or kind", file);
    if (!r)
        r = add_edits(&in, json_object_get(root, "containerEdits"));
    for (; !r && names && *names; names++)
        r = add_device(&in, root, *names);
    if (r)
        st_cdi_done(&edits);
    else
        *ret = edits;
    return r;
}

int st_cdi_load(const char *file, const char *const *names, st_cdi_edits *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    int r = st_file_read(file, CDI_BYTES, &text, err);

    return r ? r : st_cdi_parse(file, st_strbuf_str(&text), text.n, names, ret, err);
}

void st_cdi_done(st_cdi_edits *edits)
{
    for (size_t i = 0; i < edits->nenv; i++)
        free(edits->env[i]);
    free(edits->env);
    free(edits->devices);
    free(edits->mounts);
    json_decref(edits->doc);
    *edits = (st_cdi_edits){0};
}
