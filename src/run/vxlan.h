/*
 * The one interface of a tenant's network namespace that leads out of it: a VXLAN device whose packets go between the
 * nodes' own addresses. Private to run; who calls it is segment.c.
 *
 * Invariants:
 *  1 The device is made inside the namespace and is nowhere else: no bridge, no route, no way to the node.
 *  2 It knows the other nodes of the segment and nobody else, each by a fixed entry: nothing is learned from the
 *    network, there is no ARP, no IPv6, and no place where broadcasts would go.
 *  3 Its hardware addresses follow from the addresses inside, so that all nodes know them.
 */
#ifndef ST_RUN_VXLAN_H
#define ST_RUN_VXLAN_H

#include <netinet/in.h>
#include <stdbool.h>

#include "base/err.h"

#define ST_VXLAN_NAME "stint0"

typedef struct st_vxlan_node {
    struct in_addr inside, outside;
} st_vxlan_node;

typedef struct st_vxlan {
    uint32_t number;
    uint16_t port;
    uint32_t mtu;
    st_vxlan_node here;
    const st_vxlan_node *peers;
    size_t npeer;
} st_vxlan;

/* Has the device in the namespace with these peers and no others. */
int st_vxlan_set(const char *netns, const st_vxlan *want, st_err *err);
/* A device without addresses, which keeps the port from being anybody else's. */
int st_vxlan_hold(const char *netns, uint32_t number, uint16_t port, st_err *err);
/* Removes it, if it is there. */
int st_vxlan_drop(const char *netns, st_err *err);

/* Whether a device of this kind can be made in this namespace; it is gone when this returns. */
bool st_vxlan_kernel_has(const char *kind);

/* Bytes of a packet inside, if the node's address is on an interface of ours; else fails. */
int st_vxlan_mtu(struct in_addr outside, uint32_t *ret, st_err *err);

#endif
