/* The end of a node's lease, as a file (run/run.h). */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run/os.h"
#include "run/run.h"

/* The last word is the end again, backwards: who reads while it is written over sees that. Supervisors of earlier
 * versions look at the first three words only, and files of theirs have no more. */
static bool torn(long long end, const char *back)
{
    char text[32];
    size_t n = (size_t)snprintf(text, sizeof(text), "%lld", end);

    for (size_t i = 0; i < n; i++)
        if (back[i] != text[n - 1 - i])
            return true;
    return back[n] != '\0';
}

st_run_lease st_run_lease_read(const char *text, const char *boot_id)
{
    char id[64], word[8], back[32];
    long long end;
    int n = sscanf(text, "%63s %lld %7s %31s", id, &end, word, back);

    if (!boot_id[0] || n < 3 || strcmp(id, boot_id) != 0 || end < 0 || (n > 3 && torn(end, back)))
        return (st_run_lease){0};
    return (st_run_lease){.end_ms = end, .keep = strcmp(word, "keep") == 0};
}

st_run_lease st_run_lease_load(const char *path)
{
    char boot[ST_OS_BOOT_MAX], text[128];

    if (st_os_peek(path, text, sizeof(text)) <= 0)
        return (st_run_lease){0};
    return st_run_lease_read(text, st_os_boot_id(boot));
}

/* Where there is no room for a new file the old one is written over, which needs none: a lease that supervisors do not
 * hear of ends what it is for. */
static int write_over(const char *path, const char *text, size_t n)
{
    ST_CLEANUP(st_os_closep) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

    return fd >= 0 && pwrite(fd, text, n, 0) == (ssize_t)n && ftruncate(fd, (off_t)n) == 0 ? 0 : -1;
}

int st_run_lease_save(const char *path, const st_run_lease *lease, st_err *err)
{
    char boot[ST_OS_BOOT_MAX], text[128], end[24];
    int digits = snprintf(end, sizeof(end), "%" PRId64, lease->end_ms);
    int n = snprintf(text, sizeof(text), "%s %s %s ", st_os_boot_id(boot), end,
                     lease->keep ? "keep" : "kill");
    st_err full = {0};
    int r;

    for (int i = digits; i > 0;)
        text[n++] = end[--i];
    text[n++] = '\n';
    r = st_os_write(path, text, (size_t)n, 0600, &full);
    if (r < 0 && write_over(path, text, (size_t)n) == 0)
        return 0;
    return r < 0 ? st_fail(err, full.code, "%s", full.msg) : 0;
}
