/* Mounts below a folder; see the header. */
#include "run/below.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "run/os.h"

#define TEXT_MAX ((size_t)4 << 20)

/* Nothing of these belongs into a task, and some of them into nobody's hands. */
static const char *const windows[] = {"autofs",   "binder",     "binfmt_misc", "bpf",    "cgroup",
                                      "cgroup2",  "configfs",   "debugfs",     "devpts", "devtmpfs",
                                      "efivarfs", "fusectl",    "mqueue",      "nsfs",   "proc",
                                      "pstore",   "securityfs", "selinuxfs",   "sysfs",  "tracefs"};

static bool is_window(const char *type)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(windows); i++)
        if (strcmp(type, windows[i]) == 0)
            return true;
    return false;
}

/* Blanks and backslashes are written as \ooo. */
static void unescape(char *s)
{
    char *to = s;

    while (*s) {
        if (s[0] == '\\' && strspn(s + 1, "01234567") >= 3) {
            *to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
            s += 4;
        } else {
            *to++ = *s++;
        }
    }
    *to = '\0';
}

static bool below(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && path[n] == '/' && path[n + 1] != '\0';
}

static bool known(const st_below *list, const char *path)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i], path) == 0)
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void st_below_parse(const char *mountinfo, const char *dir, st_below *ret)
{
    for (const char *line = mountinfo; line && *line;) {
        const char *end = strchr(line, '\n');
        size_t n = end ? (size_t)(end - line) : strlen(line);
        ST_CLEANUP(st_freep) char *copy = st_xstrndup(line, n);
        const char *dash = strstr(copy, " - ");
        char path[PATH_MAX], type[64];

        if (dash && ret->n < ST_BELOW_MAX && sscanf(copy, "%*s %*s %*s %*s %4095s", path) == 1 &&
            sscanf(dash + 3, "%63s", type) == 1) {
            unescape(path);
            if (below(path, dir) && !is_window(type) && !known(ret, path))
                st_vec_push(ret, st_xstrdup(path));
        }
        line = end ? end + 1 : NULL;
    }
    if (ret->n > 0)
        qsort(ret->v, ret->n, sizeof(ret->v[0]), by_name);
}

void st_below_find(const char *dir, st_below *ret)
{
    ST_CLEANUP(st_freep) char *text = st_xmalloc(TEXT_MAX);
    st_below all = {0};
    struct stat st;

    if (st_os_peek("/proc/self/mountinfo", text, TEXT_MAX) < 0)
        return;
    st_below_parse(text, dir, &all);
    for (size_t i = 0; i < all.n; i++) {
        /* One that another covers leads nowhere. */
        if (lstat(all.v[i], &st) == 0 && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
            st_vec_push(ret, ST_TAKE(all.v[i]));
    }
    st_below_done(&all);
}

void st_below_done(st_below *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->v[i]);
    st_vec_free(list);
}
