/*
 * Volumes of accounts: made, changed, removed, listed. A folder is made before its row, and set aside after its row has gone, so
 * that whatever happens in between no row is without a folder; both in threads that may wait for a disk.
 */
#include "api/volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/work.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/num.h"
#include "base/quote.h"

#define GONE "gone" /* what is being removed */

const st_query_row st_volume_query[] = {
    {.name = "make",
     .type = ST_QUERY_BOOL,
     .about = "refuse if the volume exists (default: change it then)"},
    {0},
};

int64_t st_volume_files_max(int64_t size_mib)
{
    return ST_MAX((size_mib << 20) / ST_VOLUME_FILE_BYTES, ST_VOLUME_FILES_MIN);
}

/* ---- folders ------------------------------------------------------------------------------------- */

/* Only stintd and who is root can enter it: tasks see what is mounted for them. */
static int tree_root(const st_api *api, int *ret_fd, st_err *err)
{
    const char *dir = api->options.volumes_dir;

    if (!dir || !dir[0])
        return st_fail(err, ST_ESTATE, "this service keeps no volumes");
    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        return st_fail(err, ST_EIO, "%s: cannot be made: %s", dir, strerror(errno));
    return st_beneath_root(dir, ret_fd, err);
}

int st_api_volume_root(st_api *api, const char *id, int *ret_fd, st_err *err)
{
    struct stat s;
    int tree = -1, r = tree_root(api, &tree, err);

    if (r < 0)
        return r;
    r = st_beneath_open(tree, id, ret_fd, &s, err);
    close(tree);
    return r == 0 ? 0
                  : st_fail(err, ST_EDOWN, "the folder of the volume is not there: %.200s",
                            err ? err->msg : "");
}

int st_api_space_make(st_api *api, const char *id, int64_t owner, st_err *err)
{
    int tree = -1, r = tree_root(api, &tree, err);
    st_err why = {0};

    if (r < 0)
        return r;
    r = st_beneath_make(tree, id, ST_TENANT_ID_FIRST + owner, &why);
    close(tree);
    return r == 0 || r == -ST_EEXIST ? 0 : st_fail(err, why.code, "%s", why.msg);
}

static int make_folder(const st_api *api, st_volume *v, st_err *err)
{
    unsigned char bytes[8];
    int tree = -1, r = tree_root(api, &tree, err);

    if (r < 0)
        return r;
    randombytes_buf(bytes, sizeof bytes);
    bytes[0] &= 0x7f; /* others are no volumes (st_space_id) */
    sodium_bin2hex(v->id, sizeof v->id, bytes, sizeof bytes);
    r = st_beneath_make(tree, v->id, ST_TENANT_ID_FIRST + v->owner, err);
    close(tree);
    return r;
}

/* Off the place where jobs find it first, then as far as it goes: what tasks have made private to themselves is left to
 * whoever is root. */
static int remove_folder(const st_api *api, const char *id, st_err *err)
{
    int tree = -1, gone = -1, r = tree_root(api, &tree, err);

    if (r == 0 && mkdirat(tree, GONE, 0700) != 0 && errno != EEXIST)
        r = st_fail(err, ST_EIO, "%s: %s", GONE, strerror(errno));
    if (r == 0) {
        gone = openat(tree, GONE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (gone < 0 || (renameat(tree, id, gone, id) != 0 && errno != ENOENT))
            r = st_fail(err, ST_EIO, "%s: %s", id, strerror(errno));
    }
    if (r == 0)
        r = st_beneath_remove(gone, id, err);
    if (gone >= 0)
        close(gone);
    if (tree >= 0)
        close(tree);
    return r;
}

typedef struct removal {
    st_api *api;
    char id[ST_VOLUME_ID_MAX];
} removal;

static void run_removal(void *arg)
{
    removal *m = arg;
    st_err err = {0};

    (void)remove_folder(m->api, m->id, &err); /* what is left is in gone/, for whoever is root */
    free(m);
}

static void remove_later(st_api *api, const char *id)
{
    removal *m = st_xcalloc(1, sizeof *m);

    m->api = api;
    memcpy(m->id, id, sizeof m->id);
    if (!st_work_run(api->files, run_removal, m))
        free(m); /* it stays, and nobody's job finds it */
}

/* ---- reading ------------------------------------------------------------------------------------- */

bool st_api_volume_find(st_api *api, st_call *call, st_volume *ret)
{
    const char *account = st_call_param(call, "name"), *name = st_call_param(call, "key");

    if (!account[0] || !st_api_sees(api, call, account))
        st_api_no_such(call, "account", account);
    else if (!st_volumes_get(st_control_volumes(api->control), account, name, ret))
        st_api_no_such(call, "volume", name);
    else
        return true;
    return false;
}

typedef struct listing {
    st_api *api;
    const st_call *call;
    st_strbuf out;
    int n;
} listing;

static void put_volume(const st_api *api, const st_call *call, const st_volume *v, st_strbuf *out)
{
    bool sees = st_api_sees((st_api *)(uintptr_t)api, call, v->account);

    st_out_text(out, "name", v->name);
    st_out_text(out, "account", sees ? v->account : "");
    st_out_text(out, "below", st_volume_below_words[v->below]);
    st_out_int(out, "size_mib", v->size_mib);
    st_out_text(out, "about", v->about);
    if (sees) {
        st_out_int(out, "version", v->version);
        st_out_time(out, "created", v->made_ms);
        st_out_text(out, "by",
                    st_api_sees((st_api *)(uintptr_t)api, call, v->by_account)
                        ? v->by
                        : "an account above yours");
    }
}

static void add_row(void *ctx, const st_volume *v)
{
    listing *l = ctx;

    st_strbuf_add(&l->out, l->n++ > 0 ? ",{" : "{");
    put_volume(l->api, l->call, v, &l->out);
    st_strbuf_addc(&l->out, '}');
}

void st_api_volumes_list(st_call *call, void *ctx)
{
    st_api *api = ctx;
    const char *name = st_call_param(call, "name"), *above[ST_ABOVE_MAX];
    listing l = {.api = api, .call = call};

    if (!name[0] || !st_api_sees(api, call, name)) {
        st_api_no_such(call, "account", name);
        return;
    }
    st_strbuf_add(&l.out, "{\"volumes\":[");
    st_directory_above(api->dir, name, above);
    for (size_t i = 0; above[i]; i++)
        st_volumes_each(st_control_volumes(api->control), above[i], i > 0, add_row, &l);
    st_strbuf_add(&l.out, "]}");
    st_call_reply_buf(call, 200, NULL, &l.out);
    st_strbuf_done(&l.out);
}

typedef struct shown {
    st_api *api;
    st_call *call;
    st_volume volume;
} shown;

static void run_show(void *arg)
{
    shown *s = arg;
    st_strbuf out = {0};
    st_beneath_use use;
    st_err err = {0};
    int root = -1, r = st_api_volume_root(s->api, s->volume.id, &root, &err);

    if (r == 0)
        r = st_fills_get(s->api->fills, s->volume.id, root,
                         s->api->options.clock(s->api->options.ctx), &use, &err);
    if (root >= 0)
        close(root);
    if (r < 0) {
        st_call_fail(s->call, &err);
    } else {
        st_strbuf_addc(&out, '{');
        put_volume(s->api, s->call, &s->volume, &out);
        st_out_int(&out, "used_bytes", use.bytes);
        st_out_int(&out, "files", use.files);
        st_out_int(&out, "files_max", st_volume_files_max(s->volume.size_mib));
        st_out_int(&out, "private_folders", use.unread);
        st_strbuf_addc(&out, '}');
        st_api_set_version(s->call, s->volume.version);
        st_call_reply_buf(s->call, 200, NULL, &out);
    }
    st_strbuf_done(&out);
    free(s);
}

void st_api_volume_get(st_call *call, void *ctx)
{
    st_api *api = ctx;
    shown *s = st_xcalloc(1, sizeof *s);
    st_err err;

    *s = (shown){.api = api, .call = call};
    if (!st_api_volume_find(api, call, &s->volume)) {
        free(s);
        return;
    }
    st_call_defer(call);
    if (st_work_run(api->files, run_show, s))
        return;
    st_fail(&err, ST_EDOWN, "many files are being moved just now; try again in a moment");
    st_call_fail(call, &err);
    free(s);
}

/* ---- changing ------------------------------------------------------------------------------------ */

typedef struct change {
    st_cmd_volume cmd;
    st_api *api;
    st_call *call;
    char made[ST_VOLUME_ID_MAX]; /* a folder that was made for it; "": none */
} change;

static void change_done(st_cmd *cmd, const st_err *err)
{
    change *c = (change *)cmd;
    st_strbuf out = {0};

    if (c->made[0] && (err || strcmp(c->made, c->cmd.volume.id) != 0))
        remove_later(c->api, c->made);
    if (err) {
        st_call_fail(c->call, err);
    } else if (c->cmd.remove) {
        remove_later(c->api, c->cmd.volume.id);
        st_call_reply_empty(c->call, 204);
    } else {
        st_api_set_version(c->call, c->cmd.volume.version);
        st_strbuf_addc(&out, '{');
        put_volume(c->api, c->call, &c->cmd.volume, &out);
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(c->call, 200, NULL, &out);
    }
    st_strbuf_done(&out);
    free(c);
}

static int read_text(const json_t *doc, const char *key, const char **ret, st_err *err)
{
    const json_t *value = json_object_get(doc, key);

    if (value && !json_is_string(value))
        return st_fail(err, ST_EINVAL, "%s is a text", key);
    *ret = json_string_value(value);
    return 0;
}

static int read_body(change *c, const json_t *doc, st_err *err)
{
    static const char *const keys[] = {"size", "below", "about", NULL};
    st_volume *v = &c->cmd.volume;
    const char *below = NULL, *about = NULL, *key;
    const json_t *size = json_object_get(doc, "size"), *value;
    char q[ST_QUOTE_MAX];
    int r = 0, word = -1;

    if (!json_is_object(doc))
        return st_fail(err, ST_EINVAL, "a volume is described by an object");
    json_object_foreach((json_t *)(uintptr_t)doc, key, value)
    {
        bool known = false;

        for (int i = 0; keys[i]; i++)
            known = known || strcmp(keys[i], key) == 0;
        if (!known)
            return st_fail(err, ST_EINVAL, "a volume has no key %s; it has size, below and about",
                           st_quote(q, key));
    }
    if (json_is_string(size))
        r = st_parse_mib(json_string_value(size), &v->size_mib, err);
    else if (size)
        r = st_fail(err, ST_EINVAL, "size is a text, for example 100Gi");
    if (r == 0 && size && (v->size_mib < 1 || v->size_mib > ST_VOLUME_MIB_MAX))
        r = st_fail(err, ST_ERANGE, "size is 1Mi to 1Ei");
    if (r == 0)
        r = read_text(doc, "below", &below, err);
    if (r == 0)
        r = read_text(doc, "about", &about, err);
    if (r < 0)
        return r;
    for (int i = 0; below && st_volume_below_words[i]; i++)
        if (strcmp(below, st_volume_below_words[i]) == 0)
            word = i;
    if (below && word < 0)
        return st_fail(err, ST_EINVAL, "below is none, read or write, not %s", st_quote(q, below));
    if (about && strlen(about) > ST_VOLUME_ABOUT_MAX)
        return st_fail(err, ST_ERANGE, "about has at most %d bytes", ST_VOLUME_ABOUT_MAX);
    c->cmd.below = below != NULL;
    c->cmd.about = about != NULL;
    if (below)
        v->below = (st_volume_below)word;
    if (about)
        memcpy(v->about, about, strlen(about) + 1);
    return 0;
}

static int read_change(change *c, st_err *err)
{
    const char *account = st_call_param(c->call, "name"), *name = st_call_param(c->call, "key");
    char q[ST_QUOTE_MAX];
    json_t *doc = NULL;
    int r;

    if (!account[0] || strlen(account) > ST_NAME_MAX || !st_api_sees(c->api, c->call, account))
        return st_fail(err, ST_ENOENT, "there is no account %s", st_quote(q, account));
    if (!st_plain_name(name, ST_VOLUME_NAME_MAX))
        return st_fail(err, ST_EINVAL,
                       "%s cannot be the name of a volume: 1 to %d letters, digits, ., - and _",
                       st_quote(q, name), ST_VOLUME_NAME_MAX);
    if (!c->cmd.remove && st_volume_like_job(name))
        return st_fail(err, ST_EINVAL, "%s looks like the id of a job; choose another name", name);
    memcpy(c->cmd.volume.account, account, strlen(account) + 1);
    memcpy(c->cmd.volume.name, name, strlen(name) + 1);
    if (c->cmd.remove)
        return 0;
    r = st_call_json(c->call, &doc, err);
    if (r == 0)
        r = read_body(c, doc, err);
    json_decref(doc);
    return r;
}

static void post(change *c)
{
    st_cmd_volume_init(&c->cmd);
    c->cmd.cmd.done = change_done;
    st_api_post(c->api, c->call, &c->cmd.cmd);
}

/* Its folder first. */
static void run_make(void *arg)
{
    change *c = arg;
    st_err err = {0};

    if (make_folder(c->api, &c->cmd.volume, &err) < 0) {
        st_call_fail(c->call, &err);
        free(c);
        return;
    }
    memcpy(c->made, c->cmd.volume.id, sizeof c->made);
    post(c);
}

static void begin(st_call *call, st_api *api, bool remove)
{
    change *c = st_xcalloc(1, sizeof *c);
    st_err err = {0};
    st_volume there;
    bool found;

    c->api = api;
    c->call = call;
    c->cmd.who = *st_api_who(call);
    c->cmd.remove = remove;
    if (!remove)
        c->cmd.make = st_call_query_bool(call, "make", false);
    if (read_change(c, &err) < 0) {
        st_call_fail(call, &err);
        free(c);
        return;
    }
    found = st_volumes_get(st_control_volumes(api->control), c->cmd.volume.account,
                           c->cmd.volume.name, &there);
    /* Who may is decided in the loop; nobody else has a folder made. */
    bool may =
        c->cmd.who.role != ST_ROLE_MEMBER || strcmp(c->cmd.volume.account, c->cmd.who.account) == 0;

    if (!found && !remove && may && c->cmd.volume.size_mib == 0) {
        st_fail(&err, ST_EINVAL, "how large may it get? Give a size, for example 100Gi");
        st_call_fail(call, &err);
        free(c);
        return;
    }
    st_call_defer(call);
    if (found || remove || !may) {
        post(c);
        return;
    }
    c->cmd.volume.owner = st_directory_serial(api->dir, c->cmd.volume.account);
    if (st_work_run(api->files, run_make, c))
        return;
    st_fail(&err, ST_EDOWN, "many files are being moved just now; try again in a moment");
    st_call_fail(call, &err);
    free(c);
}

void st_api_volume_put(st_call *call, void *ctx)
{
    begin(call, ctx, false);
}

void st_api_volume_remove(st_call *call, void *ctx)
{
    begin(call, ctx, true);
}
