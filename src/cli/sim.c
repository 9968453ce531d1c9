/*
 * `stint sim`: the table of its verbs.
 */
#include "cli/cli.h"

const st_cli_verb st_cli_sim_verbs[] = {
    {"shares", "Divides a capacity over a tree of accounts", "[-o table|json] FILE",
     "FILE is YAML, or JSON when its name ends in .json; - is standard input. It gives\n"
     "the capacity of each resource, the accounts with their guarantees, ceilings,\n"
     "weights, priorities and demands, and the basis on which weights count. The answer\n"
     "is what each account would hold, exactly and in whole units, and what is left.\n"
     "doc/shares.md has the rules and an example.\n",
     st_cli_sim_shares, NULL},
    {0},
};
