/*
 * Who has too much in /data, where the file system does not prevent it (agent/storage.h): tenants with tasks are
 * counted one after the other, each by a worker with a time limit, and the more time that takes the less often. The
 * worker measures that itself: how late its answer is read has no part in it.
 *
 * A tenant above the limit starts nothing more, and what it runs is ended when the next count finds the same. One whose
 * files cannot be counted in time is treated as if it were above. Who is refused is counted again soon, for it may have
 * tidied up. A tenant's first start waits for its first count.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/host.h"
#include "agent/storage.h"
#include "run/rights.h"

#define LIMIT_MS 120000 /* for one count */
#define NICE     10
#define FIX      "remove files of it, or ask who runs the node"

static st_data_use *find(st_host *h, const char *tenant)
{
    for (size_t i = 0; i < h->data.n; i++)
        if (strcmp(h->data.v[i].tenant, tenant) == 0)
            return &h->data.v[i];
    return NULL;
}

typedef struct work {
    char path[PATH_MAX];
    st_counted *ret;
} work;

/* In a worker. */
static int count(void *ctx, st_err *err)
{
    int64_t began = st_boot_ms();
    work *w = ctx;
    int r;

    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICE);
    r = st_rights_keep(ST_RIGHT(CAP_DAC_READ_SEARCH), err); /* it looks at what a tenant has made */
    if (r == 0)
        r = st_storage_count(w->path, &w->ret->use, err);
    w->ret->took_ms = st_boot_ms() - began;
    return r;
}

static void end_tasks(st_host *h, const char *tenant, const char *why)
{
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        st_task *t = &h->journal.tasks.v[i];

        if (st_task_live(t) && !t->killed && strcmp(t->tenant, tenant) == 0) {
            t->full = true;
            st_host_kill(h, t, why, st_boot_ms());
        }
    }
}

/* Whether a job of the list has it. */
static bool names(const st_order *o, const char *id)
{
    const json_t *row;
    size_t i;

    json_array_foreach(json_object_get(o->job, "volumes"), i, row)
    {
        const char *text = json_string_value(json_object_get(row, "id"));

        if (text && strcmp(text, id) == 0)
            return true;
    }
    return false;
}

/* The live task of an order that has the volume; NULL: there is none. */
static st_task *holder(st_host *h, const st_order *o, const char *id)
{
    st_task *t = names(o, id) ? st_journal_find(&h->journal, &o->key) : NULL;

    return t && st_task_live(t) && !t->stray ? t : NULL;
}

static void end_holders(st_host *h, const char *id, const char *why)
{
    for (size_t i = 0; h->has_list && i < h->list.orders.n; i++) {
        st_task *t = holder(h, &h->list.orders.v[i], id);

        if (t && !t->killed) {
            t->full = true;
            st_host_kill(h, t, why, st_boot_ms());
        }
    }
}

static void judge(st_host *h, st_data_use *d, const char *why)
{
    bool over = why[0] != '\0';

    if (over != (d->over[0] != '\0')) {
        st_say(h, over ? "data-full" : "data-ok", "tenant=%s bytes=%" PRId64 " files=%" PRId64,
               d->tenant, d->use.bytes, d->use.files);
        h->changed = true;
    }
    d->times = over ? d->times + 1 : 0;
    snprintf(d->over, sizeof d->over, "%s", over ? why : "");
    if (d->times >= 2 && d->volume[0])
        end_holders(h, d->tenant, d->over);
    else if (d->times >= 2)
        end_tasks(h, d->tenant, d->over);
}

static void counted(void *ctx, const st_task_key *key, int r, const st_err *err)
{
    st_host *h = ctx;
    st_data_use *d = find(h, h->counting);
    int64_t now = st_boot_ms(), took = h->counted->took_ms;
    char why[160] = "", all[160], what[96] = "its account's /data on this node";

    (void)key;
    h->counting[0] = '\0';
    h->next_ms = 0;
    if (!d)
        return;
    d->known = true;
    if (r < 0) {
        took = took > 0 ? took : LIMIT_MS; /* it was killed before it could say */
        if (!d->volume[0])                 /* a volume may be too large to be counted in time */
            snprintf(why, sizeof why, "its account's /data on this node cannot be counted: %.80s",
                     err->msg);
        st_say(h, "data-uncounted", "tenant=%s reason=\"%s\"", d->tenant, err->msg);
    } else {
        d->use = h->counted->use;
        if (d->volume[0])
            snprintf(what, sizeof what, "volume %s", d->volume);
        (void)st_storage_over(what, &d->use, d->volume[0] ? &d->limit : &h->data_limit, why);
    }
    if (why[0])
        snprintf(all, sizeof all, "%.105s; " FIX, why);
    judge(h, d, why[0] ? all : "");
    d->next_ms = now + st_storage_pause(took, why[0] != '\0',
                                        (d->volume[0] ? &d->limit : &h->data_limit)->bytes -
                                            (r < 0 ? 0 : d->use.bytes));
}

static void begin(st_host *h, st_data_use *d, int64_t now)
{
    work ctx = {.ret = h->counted};
    st_agent_work w = {.what = "counting it",
                       .limit_ms = LIMIT_MS,
                       .aside = true,
                       .fn = count,
                       .ctx = &ctx,
                       .done = counted,
                       .done_ctx = h};
    st_err err = {0};
    int id;

    d->next_ms = now + ST_STORAGE_PAUSE_MIN_MS;
    if (snprintf(ctx.path, sizeof ctx.path, "%s%s/%s",
                 d->volume[0] ? h->process->conf->volumes : h->dir, d->volume[0] ? "" : "/storage",
                 d->tenant) >= (int)sizeof ctx.path)
        return;
    *h->counted = (st_counted){0};
    snprintf(h->counting, sizeof h->counting, "%s", d->tenant);
    if (access(ctx.path, F_OK) != 0) { /* it has none yet */
        counted(h, NULL, 0, &err);
    } else if (st_worker_start(h->process->workers, &w, &id, &err) < 0) {
        h->counting[0] = '\0';
        st_say(h, "data-uncounted", "tenant=%s reason=\"%s\"", d->tenant, err.msg);
    }
}

/* Those with tasks are of interest, and those that were refused. */
static void note_tenants(st_host *h)
{
    for (size_t i = 0; i < h->data.n; i++)
        h->data.v[i].used = h->data.v[i].over[0] != '\0' || !h->data.v[i].known;
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        const st_task *t = &h->journal.tasks.v[i];
        st_data_use *d = st_task_live(t) && !t->stray ? find(h, t->tenant) : NULL;

        if (d)
            d->used = true;
    }
    for (size_t k = 0; k < h->data.n; k++)
        for (size_t i = 0; h->data.v[k].volume[0] && h->has_list && i < h->list.orders.n; i++)
            h->data.v[k].used |= holder(h, &h->list.orders.v[i], h->data.v[k].tenant) != NULL;
}

/* Who has waited longest; one that was never counted comes first. */
static st_data_use *next_of(st_host *h)
{
    st_data_use *next = NULL;

    for (size_t i = 0; i < h->data.n; i++)
        if (h->data.v[i].used && (!next || h->data.v[i].next_ms < next->next_ms))
            next = &h->data.v[i];
    return next;
}

void st_host_data(st_host *h, int64_t now)
{
    st_data_use *d;

    if (!h->counted || h->counting[0] || now < h->data_ms)
        return;
    note_tenants(h);
    while (!h->counting[0] && (d = next_of(h)) && now >= d->next_ms)
        begin(h, d, now);
    d = next_of(h);
    h->data_ms = d ? ST_MIN(ST_MAX(d->next_ms, now + 1), now + ST_STORAGE_PAUSE_MIN_MS)
                   : now + ST_STORAGE_PAUSE_MIN_MS;
}

bool st_host_data_known(st_host *h, const char *tenant, const char **ret_over)
{
    bool counts = h->counted && !h->data_held;
    st_data_use *d = counts ? find(h, tenant) : NULL;

    *ret_over = "";
    if (!counts)
        return true;
    if (!d) {
        st_vec_push(&h->data, (st_data_use){.next_ms = 0});
        d = &h->data.v[h->data.n - 1];
        snprintf(d->tenant, sizeof d->tenant, "%s", tenant);
    }
    if (!d->known) {
        h->data_ms = 0;
        st_host_data(h, st_boot_ms());
        d = find(h, tenant);
    }
    *ret_over = d->over;
    return d->known;
}

/* Its first count is not waited for: it may be a large tree, and stintd has counted as well. */
const char *st_host_volumes_over(st_host *h, const st_order *o)
{
    const json_t *row;
    size_t i;

    json_array_foreach(json_object_get(o->job, "volumes"), i, row)
    {
        const char *id = json_string_value(json_object_get(row, "id"));
        const char *name = json_string_value(json_object_get(row, "name"));
        int64_t mib = json_integer_value(json_object_get(row, "size_mib"));
        st_data_use *d;

        if (!h->counted || !h->process->conf->volumes || !id || !st_volume_id_ok(id) || !name ||
            mib <= 0)
            continue;
        d = find(h, id);
        if (!d) {
            st_vec_push(&h->data, (st_data_use){.next_ms = 0});
            d = &h->data.v[h->data.n - 1];
            snprintf(d->tenant, sizeof d->tenant, "%s", id);
        }
        snprintf(d->volume, sizeof d->volume, "%s", name);
        d->limit = (st_storage){mib << 20,
                                ST_MAX((mib << 20) / ST_VOLUME_FILE_BYTES, ST_VOLUME_FILES_MIN)};
        h->data_ms = ST_MIN(h->data_ms, d->next_ms);
        if (d->over[0] && json_is_true(json_object_get(row, "write")))
            return d->over;
    }
    return "";
}

void st_host_data_open(st_host *h)
{
    char dir[PATH_MAX];
    st_err err = {0};

    if (!h->exec->ops->real || snprintf(dir, sizeof dir, "%s/storage", h->dir) >= (int)sizeof dir ||
        st_dir_make(dir, &err) < 0)
        return;
    h->data_limit = st_storage_limit(dir, h->process->conf->data_mib);
    h->data_held = st_storage_enforced(dir);
    st_say(h, "data-limit", "bytes=%" PRId64 " files=%" PRId64 " by=%s", h->data_limit.bytes,
           h->data_limit.files, h->data_held ? "file-system" : "counting");
    if (h->data_held && !h->process->conf->volumes)
        return;
    h->counted =
        mmap(NULL, sizeof *h->counted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (h->counted == MAP_FAILED)
        h->counted = NULL;
}

void st_host_data_close(st_host *h)
{
    if (h->counted)
        munmap(h->counted, sizeof *h->counted);
    st_vec_free(&h->data);
}
