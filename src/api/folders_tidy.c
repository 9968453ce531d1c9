/*
 * What jobs came with does not stay for ever: a job's folder goes when the job has been over for so long, a list of files when no
 * submit has named it for so long, and a chunk when no list has it any more. In the thread that waits for disks, one account
 * after the other.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/volumes.h"
#include "api/work.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"

#define EVERY_MS INT64_C(3600000)
#define YOUNG_MS (INT64_C(24) * 3600000) /* a chunk is brought before its list is */

typedef struct tidy {
    st_api *api;
    int64_t now_ms, keep_ms;
    st_store *reader;
    st_map *used; /* chunks that a list of the account has */
} tidy;

static int64_t age_ms(const tidy *t, int64_t changed_ms)
{
    return t->now_ms - changed_ms;
}

/* Whether the job is over for long enough, or is not known any more. */
static bool is_past(const tidy *t, const char *job, int64_t changed_ms)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_job_row row;
    uint64_t id;
    int r;

    if (!st_control_id_parse(t->api->control, job, &id))
        return false;
    r = st_store_job_get(t->reader, (int64_t)id, arena, &row, NULL);
    if (r == -ST_ENOENT) /* or of a store that is newer than this one */
        return age_ms(t, changed_ms) > t->keep_ms;
    return r == 0 && row.end_ms != ST_STORE_NEVER && age_ms(t, row.end_ms) > t->keep_ms;
}

typedef struct names {
    ST_VEC(char *) v;
    const tidy *t;
    int64_t older_ms;
    bool jobs;
    char last[ST_BENEATH_NAME_MAX];
} names;

static void note_old(void *ctx, const st_beneath_entry *e)
{
    names *n = ctx;
    bool half = strncmp(e->name, ".new-", 5) == 0;
    bool old = half || !n->jobs ? age_ms(n->t, e->changed_ms) > (half ? YOUNG_MS : n->older_ms)
                                : is_past(n->t, e->name, e->changed_ms);

    strncpy(n->last, e->name, sizeof n->last - 1);
    if (old)
        st_vec_push(&n->v, st_xstrdup(e->name));
}

/* Names of a folder that may go; those that the map has may not. */
static void remove_old(const tidy *t, int fd, int64_t older_ms, bool jobs)
{
    names n = {.t = t, .older_ms = older_ms, .jobs = jobs};
    bool more = true;

    while (more &&
           st_beneath_list(fd, n.last[0] ? n.last : NULL, 1000, note_old, &n, &more, NULL) == 0)
        ;
    for (size_t i = 0; i < n.v.n; i++) {
        int64_t unused;

        if (!t->used || !st_map_get(t->used, n.v.v[i], &unused)) {
            if (jobs)
                (void)st_beneath_remove(fd, n.v.v[i], NULL);
            else
                (void)st_beneath_unlink(fd, n.v.v[i], NULL);
        }
        free(n.v.v[i]);
    }
    st_vec_free(&n.v);
}

static void note_chunks(void *ctx, const st_beneath_entry *e)
{
    names *n = ctx;

    strncpy(n->last, e->name, sizeof n->last - 1);
    st_vec_push(&n->v, st_xstrdup(e->name));
}

/* What a list has is used. False: it cannot be read, and nothing is known. */
static bool read_list(tidy *t, int lists, const char *name)
{
    char *text = st_xmalloc((size_t)ST_FOLDER_LIST_MAX + 1);
    int fd = openat(lists, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, (size_t)ST_FOLDER_LIST_MAX);
    json_t *list = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
    const json_t *file, *chunk;
    size_t i, k;

    json_array_foreach(json_object_get(list, "files"), i, file)
    {
        json_array_foreach(json_object_get(file, "chunks"), k, chunk)
        {
            if (json_is_string(chunk))
                st_map_put(t->used, json_string_value(chunk), 1);
        }
    }
    if (fd >= 0)
        close(fd);
    json_decref(list);
    free(text);
    return list != NULL;
}

static bool read_lists(tidy *t, int lists)
{
    names n = {.t = t};
    bool more = true, all = true;

    while (more && all)
        all = st_beneath_list(lists, n.last[0] ? n.last : NULL, 1000, note_chunks, &n, &more,
                              NULL) == 0;
    for (size_t i = 0; i < n.v.n; i++) {
        if (all && n.v.v[i][0] != '.')
            all = read_list(t, lists, n.v.v[i]);
        free(n.v.v[i]);
    }
    st_vec_free(&n.v);
    return all;
}

/* Chunks that no list has. Nothing is removed where that is not known for sure. */
static void tidy_chunks(tidy *t, int root)
{
    for (unsigned i = 0; i < 256; i++) {
        struct stat s;
        char at[8];
        int fd;

        snprintf(at, sizeof at, "c/%02x", i);
        if (st_beneath_open(root, at, &fd, &s, NULL) < 0)
            continue;
        remove_old(t, fd, YOUNG_MS, false);
        close(fd);
    }
}

static void tidy_brought(tidy *t, int root)
{
    struct stat s;
    int lists;

    if (st_beneath_open(root, "t", &lists, &s, NULL) < 0)
        return;
    remove_old(t, lists, t->keep_ms, false);
    t->used = st_map_new();
    if (read_lists(t, lists))
        tidy_chunks(t, root);
    st_map_free(t->used);
    t->used = NULL;
    close(lists);
}

static void tidy_one(tidy *t, const char *name)
{
    st_err err;
    int root;

    if (!st_volume_id_ok(name) || strncmp(name, "fff", 3) != 0 ||
        st_api_volume_root(t->api, name, &root, &err) < 0)
        return;
    if (name[3] == 'f')
        remove_old(t, root, 0, true);
    else
        tidy_brought(t, root);
    close(root);
}

static void run(void *arg)
{
    tidy *t = arg;
    DIR *dir = opendir(t->api->options.volumes_dir);
    const struct dirent *d;
    st_err err;

    t->reader = st_api_reader(t->api, &err);
    while (dir && t->reader && (d = readdir(dir)) != NULL)
        tidy_one(t, d->d_name);
    if (t->reader)
        st_api_reader_back(t->api, t->reader);
    if (dir)
        closedir(dir);
    free(t);
}

void st_api_folders_tidy(st_api *api, int64_t now_ms)
{
    int_fast64_t last = atomic_load(&api->tidied_ms);
    tidy *t;

    if (!api->options.volumes_dir || api->options.folder_keep_ms == 0 || now_ms < last + EVERY_MS ||
        !atomic_compare_exchange_strong(&api->tidied_ms, &last, now_ms))
        return;
    t = st_xcalloc(1, sizeof *t);
    *t = (tidy){.api = api, .now_ms = now_ms, .keep_ms = api->options.folder_keep_ms};
    if (!st_work_run(api->files, run, t))
        free(t);
}
