/* RDMA devices of the node; see the header. */
#include "agent/rdma.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macros.h"

#define DEVICES_MAX 64

/* What programs that use verbs open. umad and issm are for managing the fabric, which is nobody's but the site's. */
static bool for_tasks(const char *name)
{
    return strncmp(name, "uverbs", 6) == 0 || strcmp(name, "rdma_cm") == 0;
}

/* Names of those there are, in `ret`; how many. */
static int list(char ret[DEVICES_MAX][64])
{
    DIR *d = opendir(ST_RDMA_DIR);
    struct stat st;
    int n = 0, cards = 0;

    for (struct dirent *e; d && n < DEVICES_MAX && (e = readdir(d));)
        if (for_tasks(e->d_name) && strlen(e->d_name) < sizeof ret[0] &&
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode)) {
            cards += e->d_name[0] == 'u';
            snprintf(ret[n++], sizeof ret[0], "%s", e->d_name);
        }
    if (d)
        closedir(d);
    return cards > 0 ? n : 0;
}

int st_rdma_count(void)
{
    char names[DEVICES_MAX][64];
    int n = list(names), cards = 0;

    for (int i = 0; i < n; i++)
        cards += names[i][0] == 'u';
    return cards;
}

int st_rdma_add(st_arena *arena, st_run_spec *spec, st_err *err)
{
    char names[DEVICES_MAX][64], path[96];
    int n = list(names);
    st_run_device *v = st_arena_alloc(arena, (spec->ndevice + (size_t)n + 1) * sizeof *v);

    if (n == 0)
        return st_fail(err, ST_EREFUSED,
                       "this node has no RDMA device (" ST_RDMA_DIR
                       "/uverbs*); load its driver, or take the node out of the pool");
    if (spec->ndevice > 0)
        memcpy(v, spec->devices, spec->ndevice * sizeof *v);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, ST_RDMA_DIR "/%.63s", names[i]);
        v[spec->ndevice++] =
            (st_run_device){.path = st_arena_strdup(arena, path), .major = -1, .access = "rw"};
    }
    spec->devices = v;
    spec->lock_memory = true;
    return 0;
}
