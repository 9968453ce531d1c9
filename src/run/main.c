/*
 * stint-shim FOLDER: supervises one task; started by st_run_start, not by people.
 * stint-shim enter FOLDER: has a command beside a task's own; started by st_run_enter.
 */
#include <stdio.h>
#include <string.h>

#include "run/shell.h"
#include "run/shim.h"

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "enter") == 0 && argv[2][0] == '/')
        return st_shell_main(argv[2]);
    if (argc != 2 || argv[1][0] != '/') {
        fprintf(stderr, "stint-shim is started by stint-agent: stint-shim FOLDER\n");
        return 2;
    }
    return st_shim_main(argv[1]);
}
