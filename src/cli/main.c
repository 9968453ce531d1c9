/*
 * `stint`: the one table of verbs. Each verb is a file of its own; see cli.h.
 */
#include "cli/cli.h"

#include <signal.h>

static const st_cli_verb verbs[] = {
    {"sim", "Answers questions about a fleet without having one", "COMMAND ...", NULL, NULL,
     st_cli_sim_verbs},
    {0},
};

int main(int argc, char **argv)
{
    st_cli cli = {.out = stdout, .errors = stderr};

    /* A reader that went away shows as a failed write, which has a sentence and a status. */
    signal(SIGPIPE, SIG_IGN);
    return st_cli_main(&cli, verbs, argc, argv);
}
