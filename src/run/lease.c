/* The end of a node's lease, as a file (run/run.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "run/os.h"
#include "run/run.h"

st_run_lease st_run_lease_read(const char *text, const char *boot_id)
{
    char id[64], word[8];
    long long end;

    if (!boot_id[0] || sscanf(text, "%63s %lld %7s", id, &end, word) != 3 ||
        strcmp(id, boot_id) != 0 || end < 0)
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

int st_run_lease_save(const char *path, const st_run_lease *lease, st_err *err)
{
    char boot[ST_OS_BOOT_MAX], text[128];
    int n = snprintf(text, sizeof(text), "%s %" PRId64 " %s\n", st_os_boot_id(boot), lease->end_ms,
                     lease->keep ? "keep" : "kill");

    return st_os_write(path, text, (size_t)n, 0600, err);
}
