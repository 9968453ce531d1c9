/* stint-shim FOLDER: supervises one task; started by st_run_start, not by people. */
#include <stdio.h>

#include "run/shim.h"

int main(int argc, char **argv)
{
    if (argc != 2 || argv[1][0] != '/') {
        fprintf(stderr, "stint-shim is started by stint-agent: stint-shim FOLDER\n");
        return 2;
    }
    return st_shim_main(argv[1]);
}
