/*
 * Volumes of accounts (state/volumes.h).
 */
#include "state/volumes.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/quote.h"
#include "base/vec.h"

struct st_volumes {
    pthread_mutex_t lock;
    st_directory *dir;
    ST_VEC(st_volume) all; /* by account and name */
};

const char *const st_volume_below_words[] = {
#define X(id, word) word,
    ST_VOLUME_BELOW_TABLE(X)
#undef X
        NULL,
};

/* ---- documents --------------------------------------------------------------------------- */

static bool copy(char *to, size_t room, const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));

    if (!text || strlen(text) >= room)
        return false;
    memcpy(to, text, strlen(text) + 1);
    return true;
}

int st_volume_read(const char *kept, const char *doc, int64_t version, st_volume *ret, st_err *err)
{
    const char *slash = strrchr(kept, '/'), *below;
    json_t *root = json_loads(doc, 0, NULL);
    st_volume v = {.version = version};
    bool ok = slash && slash - kept <= ST_NAME_MAX && st_plain_name(slash + 1, ST_VOLUME_NAME_MAX);

    if (ok) {
        memcpy(v.account, kept, (size_t)(slash - kept));
        memcpy(v.name, slash + 1, strlen(slash + 1) + 1);
    }
    ok = ok && copy(v.id, sizeof v.id, root, "id") && st_volume_id_ok(v.id) &&
         copy(v.about, sizeof v.about, root, "about") && copy(v.by, sizeof v.by, root, "by") &&
         copy(v.by_account, sizeof v.by_account, root, "by_account");
    v.owner = json_integer_value(json_object_get(root, "owner"));
    v.size_mib = json_integer_value(json_object_get(root, "size_mib"));
    v.made_ms = json_integer_value(json_object_get(root, "made_ms"));
    below = json_string_value(json_object_get(root, "below"));
    for (int i = 0; below && st_volume_below_words[i]; i++)
        if (strcmp(below, st_volume_below_words[i]) == 0)
            v.below = (st_volume_below)i;
    json_decref(root);
    if (!ok || v.owner <= 0 || v.size_mib <= 0)
        return st_fail(err, ST_ECORRUPT, "a volume's row makes no sense");
    *ret = v;
    return 0;
}

void st_volume_write(const st_volume *v, st_strbuf *out)
{
    st_strbuf_addf(out, "{\"id\":\"%s\",\"owner\":%" PRId64 ",\"size_mib\":%" PRId64, v->id,
                   v->owner, v->size_mib);
    st_strbuf_addf(out, ",\"below\":\"%s\",\"made_ms\":%" PRId64 ",\"about\":",
                   st_volume_below_words[v->below], v->made_ms);
    st_quote_json(out, v->about);
    st_strbuf_add(out, ",\"by\":");
    st_quote_json(out, v->by);
    st_strbuf_add(out, ",\"by_account\":");
    st_quote_json(out, v->by_account);
    st_strbuf_addc(out, '}');
}

/* ---- asking ------------------------------------------------------------------------------ */

static int in_order(const void *a, const void *b)
{
    const st_volume *v = a, *w = b;
    int d = strcmp(v->account, w->account);

    return d ? d : strcmp(v->name, w->name);
}

/* With the lock held; NULL: there is none. */
static st_volume *find(const st_volumes *vs, const char *account, const char *name)
{
    st_volume key = {0};

    if (vs->all.n == 0 || strlen(account) > ST_NAME_MAX || strlen(name) > ST_VOLUME_NAME_MAX)
        return NULL;
    memcpy(key.account, account, strlen(account) + 1);
    memcpy(key.name, name, strlen(name) + 1);
    return bsearch(&key, vs->all.v, vs->all.n, sizeof vs->all.v[0], in_order);
}

bool st_volumes_get(st_volumes *vs, const char *account, const char *name, st_volume *ret)
{
    const st_volume *v;

    pthread_mutex_lock(&vs->lock);
    v = find(vs, account, name);
    if (v)
        *ret = *v;
    pthread_mutex_unlock(&vs->lock);
    return v != NULL;
}

void st_volumes_each(st_volumes *vs, const char *account, bool shared,
                     void (*fn)(void *ctx, const st_volume *v), void *ctx)
{
    pthread_mutex_lock(&vs->lock);
    for (size_t i = 0; i < vs->all.n; i++)
        if (strcmp(vs->all.v[i].account, account) == 0 &&
            (!shared || vs->all.v[i].below != ST_BELOW_NOTHING))
            fn(ctx, &vs->all.v[i]);
    pthread_mutex_unlock(&vs->lock);
}

/* The one that a job of these accounts, its own first, means by a name. With the lock held. */
static const st_volume *meant(const st_volumes *vs, const char *const *above, const char *name)
{
    for (size_t i = 0; above[i]; i++) {
        const st_volume *v = find(vs, above[i], name);

        if (v && (i == 0 || v->below != ST_BELOW_NOTHING))
            return v;
    }
    return NULL;
}

typedef struct wanted {
    st_volume_ask ask;
    st_volume volume;
} wanted;

/* What a document names, as far as it may. With the lock held. */
static int look_up(const st_volumes *vs, const char *account, const json_t *list, wanted *w,
                   size_t *ret_n, st_err *err)
{
    const char *above[ST_ABOVE_MAX];
    char q[ST_QUOTE_MAX];
    const json_t *row;
    size_t i, n = 0;

    st_directory_above(vs->dir, account, above);
    json_array_foreach(list, i, row)
    {
        const char *text = json_string_value(row);
        const st_volume *v;

        if (!text || i >= ST_VOLUMES_PER_JOB)
            return st_fail(err, ST_ELIMIT, "a job names at most %d volumes", ST_VOLUMES_PER_JOB);
        if (st_volume_ask_read(text, &w[n].ask, err) < 0)
            return err ? -err->code : -ST_EINVAL;
        v = meant(vs, above, w[n].ask.name);
        if (!v)
            return st_fail(err, ST_ENOENT,
                           "there is no volume %s; stint volume list shows those you may use",
                           st_quote(q, w[n].ask.name));
        if (strcmp(v->account, account) != 0 && v->below == ST_BELOW_READ)
            w[n].ask.ro = true;
        w[n].volume = *v;
        for (size_t k = 0; k < n; k++)
            if (st_volume_paths_meet(w[k].ask.path, w[n].ask.path))
                return st_fail(err, ST_EINVAL, "volumes %s and %s would lie in one another, at %s",
                               w[k].ask.name, w[n].ask.name, st_quote(q, w[n].ask.path));
        n++;
    }
    *ret_n = n;
    return 0;
}

static json_t *volumes_of(const char *doc, json_t **ret_root)
{
    bool has = doc && (strstr(doc, "\"volumes\"") || strstr(doc, "\"with\""));

    *ret_root = has ? json_loads(doc, 0, NULL) : NULL;
    return json_object_get(*ret_root, "volumes");
}

int st_volumes_admit(st_volumes *vs, const char *account, const char *doc, st_err *err)
{
    wanted w[ST_VOLUMES_PER_JOB];
    json_t *root, *list = volumes_of(doc, &root);
    size_t n;
    int r;

    pthread_mutex_lock(&vs->lock);
    r = look_up(vs, account, list, w, &n, err);
    pthread_mutex_unlock(&vs->lock);
    for (size_t i = 0; r == 0 && json_object_get(root, "with") && i < n; i++)
        if (st_volume_paths_meet(w[i].ask.path, ST_FOLDER_PATH))
            r = st_fail(
                err, ST_EINVAL,
                "volume %s would lie in the folder that comes with the job, at " ST_FOLDER_PATH,
                w[i].ask.name);
    json_decref(root);
    return r;
}

/* The folder that a job came with, as one of its volumes. */
static void add_folder(const st_volumes *vs, const char *account, const char *tree, const char *job,
                       st_strbuf *out)
{
    int64_t owner = st_directory_serial(vs->dir, account);
    char jobs[ST_VOLUME_ID_MAX], brought[ST_VOLUME_ID_MAX];

    st_space_id(ST_SPACE_JOBS, owner, jobs);
    st_space_id(ST_SPACE_BROUGHT, owner, brought);
    st_strbuf_addf(out, "{\"id\":\"%s\",\"owner\":%" PRId64 ",\"size_mib\":%" PRId64, jobs, owner,
                   ST_SPACE_MIB);
    st_strbuf_addf(out,
                   ",\"write\":true,\"name\":\"of job folders\",\"path\":\"" ST_FOLDER_PATH
                   "\",\"folder\":\"%s\",\"tree\":\"%s\",\"brought\":\"%s\"}",
                   job, tree, brought);
}

void st_volumes_order(st_volumes *vs, const char *account, const char *doc, const char *job,
                      st_strbuf *out)
{
    wanted w[ST_VOLUMES_PER_JOB];
    json_t *root, *list = volumes_of(doc, &root);
    const char *tree = json_string_value(json_object_get(root, "with"));
    bool with = tree && st_folder_digest_ok(tree) && st_directory_serial(vs->dir, account) > 0;
    st_err why = {0};
    size_t n = 0;

    if (json_array_size(list) == 0 && with) {
        st_strbuf_addc(out, '[');
        add_folder(vs, account, tree, job, out);
        st_strbuf_addc(out, ']');
    } else if (json_array_size(list) > 0) {
        pthread_mutex_lock(&vs->lock);
        if (look_up(vs, account, list, w, &n, &why) < 0) {
            st_strbuf_add(out, "[{\"refused\":");
            st_quote_json(out, why.msg);
            st_strbuf_add(out, "}]");
        }
        pthread_mutex_unlock(&vs->lock);
        for (size_t i = 0; i < n; i++) {
            st_strbuf_addf(out, "%s{\"id\":\"%s\",\"owner\":%" PRId64 ",\"size_mib\":%" PRId64,
                           i ? "," : "[", w[i].volume.id, w[i].volume.owner, w[i].volume.size_mib);
            st_strbuf_addf(out, ",\"write\":%s,\"name\":", w[i].ask.ro ? "false" : "true");
            st_quote_json(out, w[i].ask.name);
            st_strbuf_add(out, ",\"path\":");
            st_quote_json(out, w[i].ask.path);
            st_strbuf_add(out, i + 1 < n ? "}" : with ? "}," : "}]");
        }
        if (n > 0 && with) {
            add_folder(vs, account, tree, job, out);
            st_strbuf_addc(out, ']');
        }
    }
    json_decref(root);
}

bool st_volumes_has(st_volumes *vs, const char *account, const char *doc, const char *id)
{
    wanted w[ST_VOLUMES_PER_JOB];
    json_t *root, *list = volumes_of(doc, &root);
    bool has = false;
    size_t n = 0;

    if (json_array_size(list) > 0) {
        pthread_mutex_lock(&vs->lock);
        (void)look_up(vs, account, list, w, &n, NULL);
        pthread_mutex_unlock(&vs->lock);
    }
    for (size_t i = 0; i < n; i++)
        has |= strcmp(w[i].volume.id, id) == 0;
    json_decref(root);
    return has;
}

/* ---- changing ---------------------------------------------------------------------------- */

st_volumes *st_volumes_new(st_directory *dir)
{
    st_volumes *vs = st_xcalloc(1, sizeof *vs);

    ST_ASSERT(pthread_mutex_init(&vs->lock, NULL) == 0);
    vs->dir = dir;
    return vs;
}

void st_volumes_free(st_volumes *vs)
{
    if (!vs)
        return;
    st_vec_free(&vs->all);
    pthread_mutex_destroy(&vs->lock);
    free(vs);
}

void st_volumes_put(st_volumes *vs, const st_volume *v)
{
    st_volume *old;

    pthread_mutex_lock(&vs->lock);
    old = find(vs, v->account, v->name);
    if (old) {
        *old = *v;
    } else {
        st_vec_push(&vs->all, *v);
        qsort(vs->all.v, vs->all.n, sizeof vs->all.v[0], in_order);
    }
    pthread_mutex_unlock(&vs->lock);
}

void st_volumes_remove(st_volumes *vs, const char *account, const char *name)
{
    st_volume *old;

    pthread_mutex_lock(&vs->lock);
    old = find(vs, account, name);
    if (old)
        st_vec_remove(&vs->all, (size_t)(old - vs->all.v));
    pthread_mutex_unlock(&vs->lock);
}

static int load_one(void *ctx, const st_document_row *row, st_err *err)
{
    st_volume v;
    int r = st_volume_read(row->name, row->doc, row->version, &v, err);

    if (r == 0)
        st_volumes_put(ctx, &v);
    return r;
}

int st_volumes_load(st_volumes *vs, st_store *store, st_err *err)
{
    int r = st_store_documents(store, "volume", load_one, vs, err);

    return r < 0 ? r : 0;
}
