/*
 * The device of a segment (run/vxlan.h). All is done in a child, for a process has one network namespace; it makes
 * system calls only.
 */
#include "run/vxlan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/os.h"
#include "run/rtnl.h"

#define HEADERS 50 /* Ethernet, IPv4, UDP and VXLAN around each packet */
#define MTU_MIN 1280
#define STALE   512 /* peers that go at a time */

/* What went wrong, for the parent. */
typedef struct failed {
    int error;
    char what[64];
} failed;

typedef struct scene {
    int out, in; /* sockets: of the node, and of the namespace */
    int netns;
    const st_vxlan *want; /* NULL: there is to be none */
    bool hold;
    failed *fail;
} scene;

static int fail(const scene *s, int error, const char *what)
{
    s->fail->error = error < 0 ? -error : error;
    snprintf(s->fail->what, sizeof s->fail->what, "%s", what);
    return -1;
}

static void mac_of(struct in_addr inside, unsigned char ret[6])
{
    ret[0] = 0x02; /* ours, of one interface */
    ret[1] = 0x53;
    memcpy(ret + 2, &inside, 4);
}

/* ---- the device --------------------------------------------------------------------------------- */

typedef struct found {
    int index;
    uint32_t number, mtu, local;
    uint16_t port; /* as on the wire */
} found;

static void copy(const struct rtattr *a, void *to, size_t n)
{
    if (a && RTA_PAYLOAD(a) >= n)
        memcpy(to, (const char *)a + RTA_LENGTH(0), n);
}

static bool look_link(void *ctx, const struct nlmsghdr *h)
{
    found *f = ctx;
    const struct rtattr *data;
    struct ifinfomsg i;

    memcpy(&i, (const char *)h + NLMSG_HDRLEN, sizeof i);
    data = st_rtnl_inside(st_rtnl_find(h, sizeof i, IFLA_LINKINFO), IFLA_INFO_DATA);
    f->index = i.ifi_index;
    copy(st_rtnl_find(h, sizeof i, IFLA_MTU), &f->mtu, sizeof f->mtu);
    copy(st_rtnl_inside(data, IFLA_VXLAN_ID), &f->number, sizeof f->number);
    copy(st_rtnl_inside(data, IFLA_VXLAN_LOCAL), &f->local, sizeof f->local);
    copy(st_rtnl_inside(data, IFLA_VXLAN_PORT), &f->port, sizeof f->port);
    return false;
}

static int find(const scene *s, found *ret)
{
    struct ifinfomsg i = {.ifi_family = AF_UNSPEC};
    st_rtnl_msg m;
    int r;

    memset(ret, 0, sizeof *ret);
    st_rtnl_begin(&m, RTM_GETLINK, 0, &i, sizeof i);
    st_rtnl_put_text(&m, IFLA_IFNAME, ST_VXLAN_NAME);
    r = st_rtnl_ask(s->in, &m, look_link, ret);
    return r == -ENODEV ? 0 : r;
}

static int delete_link(const scene *s, int index)
{
    struct ifinfomsg i = {.ifi_index = index};
    st_rtnl_msg m;

    st_rtnl_begin(&m, RTM_DELLINK, 0, &i, sizeof i);
    return st_rtnl_ask(s->in, &m, NULL, NULL);
}

/* Asked for by the node's socket: its packets leave from there, while the device is in the namespace from its first
 * moment on. */
static int make_link(const scene *s)
{
    const st_vxlan *w = s->want;
    struct ifinfomsg i = {0};
    unsigned char mac[6];
    uint16_t port = htons(w->port);
    const uint8_t no = 0;
    size_t info, data;
    st_rtnl_msg m;

    mac_of(w->here.inside, mac);
    st_rtnl_begin(&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &i, sizeof i);
    st_rtnl_put_text(&m, IFLA_IFNAME, ST_VXLAN_NAME);
    st_rtnl_put_u32(&m, IFLA_NET_NS_FD, (uint32_t)s->netns);
    if (!s->hold) {
        st_rtnl_put(&m, IFLA_ADDRESS, mac, sizeof mac);
        st_rtnl_put_u32(&m, IFLA_MTU, w->mtu);
    }
    info = st_rtnl_nest(&m, IFLA_LINKINFO);
    st_rtnl_put(&m, IFLA_INFO_KIND, "vxlan", 5);
    data = st_rtnl_nest(&m, IFLA_INFO_DATA);
    st_rtnl_put_u32(&m, IFLA_VXLAN_ID, w->number);
    st_rtnl_put(&m, IFLA_VXLAN_PORT, &port, sizeof port);
    st_rtnl_put(&m, IFLA_VXLAN_LEARNING, &no, sizeof no);
    if (!s->hold)
        st_rtnl_put(&m, IFLA_VXLAN_LOCAL, &w->here.outside, sizeof w->here.outside);
    st_rtnl_nest_end(&m, data);
    st_rtnl_nest_end(&m, info);
    return st_rtnl_ask(s->out, &m, NULL, NULL);
}

/* No addresses of its own making, and no ARP: whoever is there is known. */
static int bring_up(const scene *s, int index)
{
    struct ifinfomsg i = {
        .ifi_index = index, .ifi_flags = IFF_UP | IFF_NOARP, .ifi_change = IFF_UP | IFF_NOARP};
    const uint8_t none = IN6_ADDR_GEN_MODE_NONE;
    size_t spec, six;
    st_rtnl_msg m;

    (void)st_os_poke("/proc/sys/net/ipv4/ip_forward", "0");
    if (st_os_poke("/proc/sys/net/ipv6/conf/" ST_VXLAN_NAME "/disable_ipv6", "1") != 0 &&
        errno != ENOENT)
        return -errno;
    st_rtnl_begin(&m, RTM_NEWLINK, 0, &i, sizeof i);
    spec = st_rtnl_nest(&m, IFLA_AF_SPEC);
    six = st_rtnl_nest(&m, AF_INET6);
    st_rtnl_put(&m, IFLA_INET6_ADDR_GEN_MODE, &none, sizeof none);
    st_rtnl_nest_end(&m, six);
    st_rtnl_nest_end(&m, spec);
    int r = st_rtnl_ask(s->in, &m, NULL, NULL);

    if (r != -EAFNOSUPPORT && r != -EOPNOTSUPP)
        return r;
    st_rtnl_begin(&m, RTM_NEWLINK, 0, &i, sizeof i); /* a kernel without IPv6 */
    return st_rtnl_ask(s->in, &m, NULL, NULL);
}

static int give_address(const scene *s, int index)
{
    struct ifaddrmsg a = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = (uint32_t)index};
    st_rtnl_msg m;

    st_rtnl_begin(&m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &a, sizeof a);
    st_rtnl_put(&m, IFA_LOCAL, &s->want->here.inside, sizeof(struct in_addr));
    st_rtnl_put(&m, IFA_ADDRESS, &s->want->here.inside, sizeof(struct in_addr));
    return st_rtnl_ask(s->in, &m, NULL, NULL);
}

/* ---- its peers ---------------------------------------------------------------------------------- */

/* Where its packets go. */
static int forward(const scene *s, int index, const st_vxlan_node *p, bool there)
{
    struct ndmsg n = {.ndm_family = AF_BRIDGE,
                      .ndm_ifindex = index,
                      .ndm_state = NUD_NOARP | NUD_PERMANENT,
                      .ndm_flags = NTF_SELF};
    unsigned char mac[6];
    st_rtnl_msg m;

    mac_of(p->inside, mac);
    st_rtnl_begin(&m, there ? RTM_NEWNEIGH : RTM_DELNEIGH, there ? NLM_F_CREATE | NLM_F_REPLACE : 0,
                  &n, sizeof n);
    st_rtnl_put(&m, NDA_LLADDR, mac, sizeof mac);
    if (there)
        st_rtnl_put(&m, NDA_DST, &p->outside, sizeof p->outside);
    return st_rtnl_ask(s->in, &m, NULL, NULL);
}

static int neighbour(const scene *s, int index, struct in_addr inside, bool there)
{
    struct ndmsg n = {.ndm_family = AF_INET, .ndm_ifindex = index, .ndm_state = NUD_PERMANENT};
    unsigned char mac[6];
    st_rtnl_msg m;

    mac_of(inside, mac);
    st_rtnl_begin(&m, there ? RTM_NEWNEIGH : RTM_DELNEIGH, there ? NLM_F_CREATE | NLM_F_REPLACE : 0,
                  &n, sizeof n);
    st_rtnl_put(&m, NDA_DST, &inside, sizeof inside);
    if (there)
        st_rtnl_put(&m, NDA_LLADDR, mac, sizeof mac);
    return st_rtnl_ask(s->in, &m, NULL, NULL);
}

static int route(const scene *s, int index, struct in_addr inside, bool there)
{
    struct rtmsg t = {.rtm_family = AF_INET,
                      .rtm_dst_len = 32,
                      .rtm_table = RT_TABLE_MAIN,
                      .rtm_protocol = there ? RTPROT_STATIC : RTPROT_UNSPEC,
                      .rtm_scope = there ? RT_SCOPE_LINK : RT_SCOPE_NOWHERE,
                      .rtm_type = there ? RTN_UNICAST : RTN_UNSPEC};
    st_rtnl_msg m;

    st_rtnl_begin(&m, there ? RTM_NEWROUTE : RTM_DELROUTE, there ? NLM_F_CREATE | NLM_F_REPLACE : 0,
                  &t, sizeof t);
    st_rtnl_put(&m, RTA_DST, &inside, sizeof inside);
    st_rtnl_put_u32(&m, RTA_OIF, (uint32_t)index);
    if (there)
        st_rtnl_put(&m, RTA_PREFSRC, &s->want->here.inside, sizeof(struct in_addr));
    return st_rtnl_ask(s->in, &m, NULL, NULL);
}

typedef struct stale {
    const st_vxlan *want;
    int index;
    struct in_addr gone[STALE];
    size_t n;
} stale;

static bool look_neighbour(void *ctx, const struct nlmsghdr *h)
{
    stale *l = ctx;
    struct in_addr inside = {0};
    struct ndmsg n;

    memcpy(&n, (const char *)h + NLMSG_HDRLEN, sizeof n);
    if (n.ndm_ifindex != l->index || !(n.ndm_state & NUD_PERMANENT))
        return true;
    copy(st_rtnl_find(h, sizeof n, NDA_DST), &inside, sizeof inside);
    if (inside.s_addr == 0)
        return true;
    for (size_t i = 0; i < l->want->npeer; i++)
        if (l->want->peers[i].inside.s_addr == inside.s_addr)
            return true;
    l->gone[l->n++] = inside;
    return l->n < STALE;
}

/* Who is a peer no more; some at a time. */
static int drop_stale(const scene *s, int index)
{
    stale l = {.want = s->want, .index = index};
    struct ndmsg n = {.ndm_family = AF_INET, .ndm_ifindex = index};
    st_rtnl_msg m;
    int r;

    do {
        l.n = 0;
        st_rtnl_begin(&m, RTM_GETNEIGH, NLM_F_DUMP, &n, sizeof n);
        r = st_rtnl_ask(s->in, &m, look_neighbour, &l);
        for (size_t i = 0; r == 0 && i < l.n; i++) {
            (void)forward(s, index, &(st_vxlan_node){.inside = l.gone[i]}, false);
            (void)route(s, index, l.gone[i], false);
            r = neighbour(s, index, l.gone[i], false);
        }
    } while (r == 0 && l.n == STALE);
    return r;
}

/* ---- in the child ------------------------------------------------------------------------------- */

static bool same(const scene *s, const found *f)
{
    const st_vxlan *w = s->want;

    return w && f->number == w->number && f->port == htons(w->port) &&
           (s->hold || (f->mtu == w->mtu && f->local == w->here.outside.s_addr));
}

static const char *why_not_made(int r)
{
    if (r == -EOPNOTSUPP)
        return "the kernel has no VXLAN (modprobe vxlan)";
    return r == -EEXIST ? "another agent on this machine has this segment"
                        : "cannot make the device of the segment";
}

static int change(const scene *s)
{
    const st_vxlan *w = s->want;
    found f;
    int r = find(s, &f);

    if (r < 0)
        return fail(s, r, "cannot look at the network");
    if (f.index > 0 && !same(s, &f)) {
        if ((r = delete_link(s, f.index)) < 0)
            return fail(s, r, "cannot remove the device of the segment");
        f.index = 0;
    }
    if (!w)
        return 0;
    if (f.index == 0) {
        if ((r = make_link(s)) < 0)
            return fail(s, r, why_not_made(r));
        if ((r = find(s, &f)) < 0 || f.index == 0)
            return fail(s, r < 0 ? r : ENODEV, "cannot find the device that was made");
    }
    if ((r = bring_up(s, f.index)) < 0)
        return fail(s, r,
                    r == -EADDRINUSE ? "its UDP port is in use by another program (--segment-port)"
                                     : "cannot bring the device of the segment up");
    if (s->hold)
        return 0;
    if ((r = give_address(s, f.index)) < 0)
        return fail(s, r, "cannot set the address in the segment");
    if ((r = drop_stale(s, f.index)) < 0)
        return fail(s, r, "cannot remove a node that left the segment");
    for (size_t i = 0; i < w->npeer; i++)
        if ((r = forward(s, f.index, &w->peers[i], true)) < 0 ||
            (r = neighbour(s, f.index, w->peers[i].inside, true)) < 0 ||
            (r = route(s, f.index, w->peers[i].inside, true)) < 0)
            return fail(s, r, "cannot add a node to the segment");
    return 0;
}

static void run_child(scene *s)
{
    s->out = st_rtnl_open();
    if (s->out < 0 || setns(s->netns, CLONE_NEWNET) != 0)
        (void)fail(s, errno, "cannot enter the tenant's network");
    else if ((s->in = st_rtnl_open()) < 0)
        (void)fail(s, errno, "cannot ask the kernel about networks");
    else
        (void)change(s);
}

static int in_child(const char *netns, const st_vxlan *want, bool hold, st_err *err)
{
    failed said = {.error = EPIPE, .what = "the helper died"};
    scene s = {.netns = open(netns, O_RDONLY | O_CLOEXEC), .want = want, .hold = hold};
    ST_CLEANUP(st_os_closep) int ns = s.netns;
    ST_CLEANUP(st_os_closep) int from = -1;
    int ends[2], status;
    pid_t pid;

    if (ns < 0)
        return st_fail(err, ST_EIO, "cannot open %s: %s", netns, strerror(errno));
    if (pipe2(ends, O_CLOEXEC) != 0)
        return st_fail(err, ST_EIO, "cannot make a pipe: %s", strerror(errno));
    from = ends[0];
    pid = fork();
    if (pid == 0) {
        failed mine = {0};

        s.fail = &mine;
        run_child(&s);
        _exit(write(ends[1], &mine, sizeof mine) != (ssize_t)sizeof mine);
    }
    close(ends[1]);
    if (pid < 0)
        return st_fail(err, ST_EIO, "cannot fork: %s", strerror(errno));
    if (read(from, &said, sizeof said) != (ssize_t)sizeof said)
        said = (failed){.error = EPIPE, .what = "the helper died"};
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (said.error)
        return st_fail(err, ST_EIO, "%s: %s", said.what, strerror(said.error));
    return 0;
}

int st_vxlan_set(const char *netns, const st_vxlan *want, st_err *err)
{
    return in_child(netns, want, false, err);
}

int st_vxlan_hold(const char *netns, uint32_t number, uint16_t port, st_err *err)
{
    return in_child(netns, &(st_vxlan){.number = number, .port = port}, true, err);
}

int st_vxlan_drop(const char *netns, st_err *err)
{
    return in_child(netns, NULL, false, err);
}

bool st_vxlan_kernel_has(const char *kind)
{
    ST_CLEANUP(st_os_closep) int fd = st_rtnl_open();
    struct ifinfomsg i = {0};
    size_t info;
    st_rtnl_msg m;
    scene s = {.in = fd};
    found f;

    if (fd < 0)
        return false;
    st_rtnl_begin(&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &i, sizeof i);
    st_rtnl_put_text(&m, IFLA_IFNAME, ST_VXLAN_NAME);
    info = st_rtnl_nest(&m, IFLA_LINKINFO);
    st_rtnl_put(&m, IFLA_INFO_KIND, kind, strlen(kind));
    st_rtnl_nest_end(&m, info);
    if (st_rtnl_ask(fd, &m, NULL, NULL) < 0)
        return false;
    if (find(&s, &f) == 0 && f.index > 0)
        (void)delete_link(&s, f.index);
    return true;
}

int st_vxlan_mtu(struct in_addr outside, uint32_t *ret, st_err *err)
{
    struct ifaddrs *all = NULL;
    struct ifreq request = {0};
    ST_CLEANUP(st_os_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char text[INET_ADDRSTRLEN] = "";

    if (fd < 0 || getifaddrs(&all) != 0)
        return st_fail(err, ST_EIO, "cannot list this node's addresses: %s", strerror(errno));
    for (const struct ifaddrs *a = all; a && !request.ifr_name[0]; a = a->ifa_next) {
        struct sockaddr_in at = {0};

        if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET)
            continue;
        memcpy(&at, a->ifa_addr, sizeof at);
        if (at.sin_addr.s_addr == outside.s_addr)
            snprintf(request.ifr_name, sizeof request.ifr_name, "%s", a->ifa_name);
    }
    freeifaddrs(all);
    (void)inet_ntop(AF_INET, &outside, text, sizeof text);
    if (!request.ifr_name[0])
        return st_fail(err, ST_EIO,
                       "no interface of this node has its address %s; start its agent with the "
                       "right --address",
                       text);
    if (ioctl(fd, SIOCGIFMTU, &request) != 0)
        return st_fail(err, ST_EIO, "cannot ask for the MTU of %s: %s", request.ifr_name,
                       strerror(errno));
    if (request.ifr_mtu < MTU_MIN + HEADERS)
        return st_fail(err, ST_EIO,
                       "the MTU of %s is %d; a segment between nodes needs at least %d",
                       request.ifr_name, request.ifr_mtu, MTU_MIN + HEADERS);
    *ret = (uint32_t)request.ifr_mtu - HEADERS;
    return 0;
}
