/*
 * stint-agent: see agent/agent.h, and doc/run/nodes.md for how to add a node.
 */
#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/fence.h"
#include "base/mem.h"

int main(int argc, char **argv)
{
    bool doctor = argc > 1 && strcmp(argv[1], "doctor") == 0;
    bool fence = argc > 1 && strcmp(argv[1], "fence") == 0; /* started by us, not by people */
    int verb = doctor || fence;
    st_agent_conf conf;
    st_err err = {0};
    int r = st_agent_conf_read(argc - 1 - verb, argv + 1 + verb, &conf, stdout, &err);

    if (r > 0)
        return 0;
    if (r == 0 && sodium_init() < 0)
        r = st_fail(&err, ST_EINTERNAL, "the system gives no random numbers");
    if (r == 0 && doctor)
        return st_agent_doctor(&conf, stdout);
    if (r == 0 && fence)
        return st_fence_main(conf.data);
    /* Its memory has the secrets of jobs. */
    if (r == 0 && st_mem_no_core() < 0)
        r = st_fail(&err, ST_EIO, "core files cannot be switched off: %s", strerror(errno));
    if (r == 0 && !conf.server)
        r = st_fail(&err, ST_EINVAL,
                    "where is stintd? Give --server URL; --help lists the options");
    if (r == 0)
        r = st_agent_run(&conf, &err);
    if (r < 0) {
        fprintf(stderr, "stint-agent: %s\n", err.msg);
        return st_err_exit(err.code);
    }
    return 0;
}
