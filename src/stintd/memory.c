/* How much this process holds, and giving back what it does not use: glibc and /proc. */
#include "stintd/memory.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#define HOUR   (3600 / ST_MEMORY_LOOK_S)
#define LITTLE (INT64_C(2) << 20)
#define PART   16 /* of what it held: so much more is growth */

int64_t st_memory_held(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long long size, resident = 0, shared = 0;

    if (!f)
        return 0;
    if (fscanf(f, "%lld %lld %lld", &size, &resident, &shared) != 3)
        resident = shared = 0;
    fclose(f);
    return (resident - shared) * sysconf(_SC_PAGESIZE);
}

bool st_memory_look(st_memory *memory)
{
    memory->looks++;
    if (memory->looks < HOUR && st_memory_held() <= memory->left + memory->left / PART + LITTLE)
        return false;
    malloc_trim(0);
    *memory = (st_memory){.left = st_memory_held()};
    return true;
}
