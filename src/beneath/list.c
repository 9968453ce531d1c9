/*
 * What is in a folder, in order of names (beneath/beneath.h). A folder with millions of names is gone through as often as it is
 * asked for, and never held in memory: only the next `max` names are.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "beneath/beneath.h"

typedef struct row {
    char *name;
} row;

typedef struct rows {
    row *v; /* a heap: the last in order is on top */
    size_t n, cap;
    bool more;
} rows;

static void sift_down(rows *h, size_t i)
{
    for (;;) {
        size_t top = i;

        for (size_t k = 2 * i + 1; k <= 2 * i + 2; k++)
            if (k < h->n && strcmp(h->v[k].name, h->v[top].name) > 0)
                top = k;
        if (top == i)
            return;
        row t = h->v[i];

        h->v[i] = h->v[top];
        h->v[top] = t;
        i = top;
    }
}

static void add(rows *h, const char *name, size_t max)
{
    size_t i;

    if (h->n == max) {
        h->more = true;
        if (max == 0 || strcmp(name, h->v[0].name) >= 0)
            return;
        free(h->v[0].name);
        h->v[0].name = st_xstrdup(name);
        sift_down(h, 0);
        return;
    }
    i = h->n++;
    h->v[i].name = st_xstrdup(name);
    for (; i > 0 && strcmp(h->v[i].name, h->v[(i - 1) / 2].name) > 0; i = (i - 1) / 2) {
        row t = h->v[i];

        h->v[i] = h->v[(i - 1) / 2];
        h->v[(i - 1) / 2] = t;
    }
}

static int in_order(const void *a, const void *b)
{
    return strcmp(((const row *)a)->name, ((const row *)b)->name);
}

static char kind_of(mode_t mode)
{
    return S_ISREG(mode) ? 'f' : S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : 'o';
}

int st_beneath_list(int fd, const char *after, size_t max,
                    void (*fn)(void *ctx, const st_beneath_entry *e), void *ctx, bool *ret_more,
                    st_err *err)
{
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    rows h = {.v = st_xcalloc(max + 1, sizeof *h.v)};
    const struct dirent *d;

    if (!dir) {
        int why = errno;

        if (own >= 0)
            close(own);
        free(h.v);
        return st_fail(err, ST_EIO, "the folder cannot be read: %s", strerror(why));
    }
    while ((d = readdir(dir)) != NULL)
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
            (!after || strcmp(d->d_name, after) > 0))
            add(&h, d->d_name, max);
    if (h.n > 0)
        qsort(h.v, h.n, sizeof *h.v, in_order);
    for (size_t i = 0; i < h.n; i++) {
        struct stat s;

        if (fstatat(fd, h.v[i].name, &s, AT_SYMLINK_NOFOLLOW) == 0)
            fn(ctx, &(st_beneath_entry){.name = h.v[i].name,
                                        .kind = kind_of(s.st_mode),
                                        .bytes = s.st_size,
                                        .changed_ms = (int64_t)s.st_mtim.tv_sec * 1000 +
                                                      s.st_mtim.tv_nsec / 1000000,
                                        .run = (s.st_mode & 0111) != 0});
        free(h.v[i].name);
    }
    free(h.v);
    closedir(dir);
    *ret_more = h.more;
    return 0;
}
