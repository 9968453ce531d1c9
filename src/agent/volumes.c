/*
 * A job's volumes (doc/run/nodes.md): folders of one tree that all nodes and stintd see. What they are is in the list, beside the
 * job's document; here a task gets the folder and the group that its files belong to, and nothing on the file system is
 * changed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/launch.h"
#include "agent/tenant.h"
#include "base/names.h"
#include "model/volume.h"

/* One of the list, checked as what comes from outside is. */
typedef struct volume {
    const char *id, *path, *name;
    const char *folder, *tree,
        *brought; /* of the folder that the job came with; NULL: it is none */
    int64_t owner;
    bool write;
} volume;

static int read_one(const json_t *row, volume *ret, st_err *err)
{
    const char *why = json_string_value(json_object_get(row, "refused"));
    volume v = {.id = json_string_value(json_object_get(row, "id")),
                .path = json_string_value(json_object_get(row, "path")),
                .name = json_string_value(json_object_get(row, "name")),
                .folder = json_string_value(json_object_get(row, "folder")),
                .tree = json_string_value(json_object_get(row, "tree")),
                .brought = json_string_value(json_object_get(row, "brought")),
                .owner = json_integer_value(json_object_get(row, "owner")),
                .write = json_is_true(json_object_get(row, "write"))};

    if (why)
        return st_fail(err, ST_EPERM, "%s", why);
    if (!v.id || !st_volume_id_ok(v.id) || !v.path || !v.name || v.owner <= 0 ||
        v.owner > ST_TENANT_MAX)
        return st_fail(err, ST_EINVAL, "the list has a volume that makes no sense");
    if (v.folder && (!st_plain_name(v.folder, ST_VOLUME_NAME_MAX) || !v.tree ||
                     !st_folder_digest_ok(v.tree) || !v.brought || !st_volume_id_ok(v.brought)))
        return st_fail(err, ST_EINVAL, "the list has a folder of a job that makes no sense");
    if (st_volume_path_ok(v.path, err) < 0)
        return st_fail_prefix(err, "volume %s: ", v.name);
    *ret = v;
    return 0;
}

/* A folder, and no link that leads elsewhere. What is below the id is stintd's as well: tasks see what is mounted. */
static int find(st_arena *arena, const char *dir, const volume *v, const char **ret, st_err *err)
{
    size_t room = strlen(dir) + ST_VOLUME_ID_MAX + ST_VOLUME_NAME_MAX + 3;
    char *path = st_arena_alloc(arena, room);
    struct stat s;

    snprintf(path, room, "%s/%s%s%s", dir, v->id, v->folder ? "/" : "", v->folder ? v->folder : "");
    if (lstat(path, &s) != 0 || !S_ISDIR(s.st_mode))
        return st_fail(err, ST_EDOWN, "volume %s is not below %s on this node: is it mounted?",
                       v->name, dir);
    *ret = path;
    return 0;
}

int st_launch_volumes(st_arena *arena, const json_t *job, const char *dir, st_run_spec *s,
                      st_err *err)
{
    const json_t *list = json_object_get(job, "volumes"), *row;
    size_t n = json_array_size(list), i;
    st_run_mount *mounts;
    int64_t *groups;

    if (n == 0)
        return 0;
    mounts = st_arena_alloc(arena, (s->nmount + n) * sizeof *mounts);
    groups = st_arena_alloc(arena, n * sizeof *groups);
    for (i = 0; i < s->nmount; i++)
        mounts[i] = s->mounts[i];
    json_array_foreach(list, i, row)
    {
        volume v = {0};
        int r = read_one(row, &v, err);

        if (r == 0 && !dir)
            r = st_fail(err, ST_EDOWN,
                        "this node has no volumes; start its agent with --volumes DIR");
        if (r == 0 && v.folder)
            r = st_folder_make(&(st_folder){.dir = dir,
                                            .space = v.id,
                                            .brought = v.brought,
                                            .job = v.folder,
                                            .tree = v.tree,
                                            .uid = s->uid,
                                            .gid = ST_TENANT_ID_FIRST + v.owner},
                               err);
        if (r == 0 && v.folder && !s->workdir)
            s->workdir = v.path;
        if (r == 0)
            r = find(arena, dir, &v, &mounts[s->nmount + i].source, err);
        if (r < 0)
            return r;
        mounts[s->nmount + i].target = v.path;
        mounts[s->nmount + i].writable = v.write;
        groups[i] = ST_TENANT_ID_FIRST + v.owner;
    }
    s->mounts = mounts;
    s->nmount += n;
    s->groups = groups;
    s->ngroup = n;
    return 0;
}
