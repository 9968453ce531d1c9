/*
 * check_core STORE: brings the core back from a store of stintd and holds the invariants of
 * check/check.h against it. Exits 0 when they hold; for tests that kill stintd.
 */
#include <sodium.h>
#include <stdio.h>

#include "check/check.h"
#include "control/control.h"

int main(int argc, char **argv)
{
    ST_CLEANUP(st_store_closep) st_store *store = NULL;
    const st_store_options options = {.read_only = true};
    st_core *core = NULL;
    st_err err = {0};
    int r;

    if (argc != 2 || sodium_init() < 0) {
        fprintf(stderr, "check_core STORE\n");
        return 2;
    }
    r = st_store_open(argv[1], &options, &store, &err);
    if (r == 0)
        r = st_control_replay(store, &core, NULL, &err);
    if (r == 0)
        r = st_check(core, &err);
    if (r < 0)
        printf("%s\n", err.msg);
    st_core_free(core);
    return r < 0;
}
