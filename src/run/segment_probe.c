/*
 * Can networks of tenants reach other nodes from here? Tried in a network namespace of its own, so that nobody on the node
 * notices.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/filter.h"
#include "run/os.h"
#include "run/segment.h"
#include "run/vxlan.h"

typedef struct tried {
    bool works, wireguard;
    char why[ST_RUN_TEXT_MAX];
} tried;

/* In the child. */
static void try_all(tried *ret)
{
    st_err err = {0};

    if (unshare(CLONE_NEWNET) != 0) {
        snprintf(ret->why, sizeof ret->why, "no network namespace: %s", strerror(errno));
        return;
    }
    ret->wireguard = st_vxlan_kernel_has("wireguard");
    if (st_filter_set(NULL, 0, ST_RUN_SEGMENT_PORT, &err) < 0 ||
        st_vxlan_hold("/proc/self/ns/net", ST_RUN_SEGMENT_MAX + 1, ST_RUN_SEGMENT_PORT, &err) < 0)
        snprintf(ret->why, sizeof ret->why, "%.*s", ST_RUN_TEXT_MAX - 1, err.msg);
    else
        ret->works = true;
}

static void in_child(tried *ret)
{
    tried mine = {.why = "the helper died"};
    int ends[2], status;
    pid_t pid;

    *ret = mine;
    if (pipe(ends) != 0)
        return;
    pid = fork();
    if (pid == 0) {
        try_all(&mine);
        _exit(write(ends[1], &mine, sizeof mine) != (ssize_t)sizeof mine);
    }
    close(ends[1]);
    if (read(ends[0], &mine, sizeof mine) == (ssize_t)sizeof mine)
        *ret = mine;
    close(ends[0]);
    if (pid > 0)
        (void)waitpid(pid, &status, 0);
}

/* The interface with the address; false: there is none. */
static bool interface_of(const char *address, char ret[64])
{
    struct ifaddrs *all = NULL;
    struct in_addr want;

    ret[0] = '\0';
    if (!address || inet_pton(AF_INET, address, &want) != 1 || getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *a = all; a && !ret[0]; a = a->ifa_next) {
        struct sockaddr_in at;

        if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET)
            continue;
        memcpy(&at, a->ifa_addr, sizeof at);
        if (at.sin_addr.s_addr == want.s_addr)
            snprintf(ret, 64, "%.63s", a->ifa_name);
    }
    freeifaddrs(all);
    return ret[0] != '\0';
}

static bool is_wireguard(const char *name)
{
    char path[128], text[512];

    snprintf(path, sizeof path, "/sys/class/net/%.63s/uevent", name);
    return st_os_peek(path, text, sizeof text) > 0 && strstr(text, "DEVTYPE=wireguard\n");
}

void st_run_probe_segments(const char *address, st_run_finding *ret)
{
    char name[64];
    bool known = interface_of(address, name);
    tried t;

    *ret = (st_run_finding){.name = "segments", .verdict = ST_CHECK_WARN};
    in_child(&t);
    if (!t.works) {
        snprintf(ret->text, sizeof ret->text,
                 "networks of tenants do not reach other nodes: %.180s", t.why);
        snprintf(ret->fix, sizeof ret->fix,
                 "install nftables and see that the kernel has VXLAN; until then a job on several "
                 "nodes needs `network: host`");
    } else if (address && !known) {
        snprintf(ret->text, sizeof ret->text,
                 "networks of tenants do not reach other nodes: no interface here has the address "
                 "%.64s",
                 address);
        snprintf(ret->fix, sizeof ret->fix, "give the IPv4 address of this node as --address");
    } else {
        ret->verdict = ST_CHECK_OK;
        snprintf(ret->text, sizeof ret->text, "networks of tenants reach other nodes (VXLAN); %s",
                 known && is_wireguard(name)
                     ? "WireGuard encrypts their packets"
                     : (t.wireguard
                            ? "their packets are not encrypted; for that, give the address of a "
                              "WireGuard interface as --address"
                            : "their packets are not encrypted, and this kernel has no WireGuard"));
    }
}
