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
#include "run/rights.h"

/* What making containers needs, and runtimes, networks, quotas, devices and the driver. packaging/stint-agent.service
 * has the same list; tests/agent_rights.sh compares. */
#define RIGHTS                                                                                 \
    (ST_RIGHT(CAP_CHOWN) | ST_RIGHT(CAP_DAC_OVERRIDE) | ST_RIGHT(CAP_DAC_READ_SEARCH) |        \
     ST_RIGHT(CAP_FOWNER) | ST_RIGHT(CAP_FSETID) | ST_RIGHT(CAP_KILL) | ST_RIGHT(CAP_SETGID) | \
     ST_RIGHT(CAP_SETUID) | ST_RIGHT(CAP_SETPCAP) | ST_RIGHT(CAP_NET_BIND_SERVICE) |           \
     ST_RIGHT(CAP_NET_ADMIN) | ST_RIGHT(CAP_SYS_CHROOT) | ST_RIGHT(CAP_SYS_PTRACE) |           \
     ST_RIGHT(CAP_SYS_ADMIN) | ST_RIGHT(CAP_SYS_NICE) | ST_RIGHT(CAP_SYS_RESOURCE) |           \
     ST_RIGHT(CAP_MKNOD))

/* The fence reads files of ours and kills. Where nothing can be given up, it is said, and it works on. */
static void give_up(bool fence)
{
    st_err err = {0};

    if (st_rights_keep(fence ? ST_RIGHT(CAP_KILL) : RIGHTS, &err) < 0 ||
        st_rights_machine(&err) < 0)
        fprintf(stderr, "event=rights-kept reason=\"%s\"\n", err.msg);
}

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
    if (r == 0)
        give_up(fence); /* before there is a second thread */
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
