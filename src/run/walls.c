/* Mounts of a container; see the header. */
#include "run/walls.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

typedef struct wall {
    const char *at;
    unsigned long flags;
} wall;

/* Devices are in /dev. What covers parts of /proc and /sys is empty; they are read-only or the kernel's own. */
static unsigned long needed(const char *at)
{
    static const char cgroups[] = "/sys/fs/cgroup";

    if (strcmp(at, "") == 0 || strcmp(at, "/") == 0)
        return MS_RDONLY | MS_NODEV | MS_NOSUID;
    if (strncmp(at, cgroups, sizeof(cgroups) - 1) == 0)
        return MS_RDONLY;
    if (strncmp(at, "/proc/", 6) == 0 || strncmp(at, "/sys/", 5) == 0)
        return 0;
    if (strcmp(at, "/dev") == 0 || (strncmp(at, "/dev/", 5) == 0 && strcmp(at, "/dev/shm") != 0))
        return 0;
    return MS_NODEV | MS_NOSUID;
}

static unsigned long flags_of(char *options)
{
    static const struct {
        const char *word;
        unsigned long flag;
    } rows[] = {{"ro", MS_RDONLY},         {"nosuid", MS_NOSUID},   {"nodev", MS_NODEV},
                {"noexec", MS_NOEXEC},     {"noatime", MS_NOATIME}, {"nodiratime", MS_NODIRATIME},
                {"relatime", MS_RELATIME}, {"nosymfollow", 256}};
    unsigned long flags = 0;
    char *save = NULL;

    for (char *word = strtok_r(options, ",", &save); word; word = strtok_r(NULL, ",", &save))
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
            if (strcmp(rows[i].word, word) == 0)
                flags |= rows[i].flag;
    return flags;
}

/* The kernel writes blanks in names as \040. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *p = text; *p; to++)
        if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] && p[3]) {
            *to = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
            p += 4;
        } else {
            *to = *p++;
        }
    *to = '\0';
}

/* ID PARENT MAJOR:MINOR ROOT AT OPTIONS ... */
static bool read_line(char *line, wall *ret)
{
    char *save = NULL, *word = strtok_r(line, " ", &save), *at = NULL;

    for (int field = 1; word && field < 6; field++) {
        if (field == 5)
            at = word;
        word = strtok_r(NULL, " ", &save);
    }
    if (!word)
        return false;
    unescape(at);
    *ret = (wall){.at = at, .flags = flags_of(word)};
    return true;
}

/* The next mount of which the kernel tells; false: that was the last one, or it cannot be read (*bad). A node may have any number. */
static bool next(FILE *from, char **line, size_t *cap, wall *ret, bool *bad)
{
    if (!from || getline(line, cap, from) < 0) {
        *bad = *bad || !from || ferror(from);
        return false;
    }
    (*line)[strcspn(*line, "\n")] = '\0';
    if (read_line(*line, ret))
        return true;
    *bad = true;
    return false;
}

static FILE *mounts(void)
{
    return fopen("/proc/self/mountinfo", "re");
}

bool st_walls_seal(const char *folder)
{
    char root[PATH_MAX], *line = NULL;
    size_t n = realpath(folder, root) ? strlen(root) : 0, cap = 0;
    FILE *from = mounts();
    bool found = false, bad = n == 0;
    wall w;

    while (!bad && next(from, &line, &cap, &w, &bad)) {
        if (strncmp(w.at, root, n) != 0 || (w.at[n] != '/' && w.at[n] != '\0'))
            continue;
        unsigned long flags = w.flags | needed(w.at + n);

        found = found || w.at[n] == '\0';
        bad = flags != w.flags && mount(NULL, w.at, NULL, MS_REMOUNT | MS_BIND | flags, NULL) != 0;
    }
    free(line);
    if (from)
        fclose(from);
    return found && !bad;
}

bool st_walls_check(void)
{
    unsigned long lacks = 0;
    FILE *from = mounts();
    char *line = NULL;
    bool bad = false;
    size_t cap = 0;
    wall w;

    while (!lacks && next(from, &line, &cap, &w, &bad))
        lacks = needed(w.at) & ~w.flags;
    if (lacks)
        dprintf(STDERR_FILENO, "the mount of %s lets %s\n", w.at,
                lacks & MS_RDONLY  ? "a job write"
                : lacks & MS_NODEV ? "devices work"
                                   : "setuid work");
    free(line);
    if (from)
        fclose(from);
    return !lacks && !bad;
}
