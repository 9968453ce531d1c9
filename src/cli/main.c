/*
 * `stint`: the program. Its verbs are in verbs.c, each in a file of its own; see cli.h.
 */
#include <signal.h>

#include "cli/cli.h"

int main(int argc, char **argv)
{
    st_cli cli = {.out = stdout, .errors = stderr};

    /* A reader that went away shows as a failed write, which has a sentence and a status. */
    signal(SIGPIPE, SIG_IGN);
    return st_cli_main(&cli, st_cli_verbs, argc, argv);
}
