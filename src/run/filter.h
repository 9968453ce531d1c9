/*
 * Who may speak on the nodes' side of segments (run/segment.h), as rules of nftables in the node's own network namespace:
 * a packet for the port of segments is taken only from a node of that very segment, and no program of this node sends one;
 * only the kernel does. Private to run.
 */
#ifndef ST_RUN_FILTER_H
#define ST_RUN_FILTER_H

#include <netinet/in.h>

#include "base/err.h"
#include "base/strbuf.h"

#define ST_FILTER_TABLE "stint_segments"

/* A node that may send packets of a segment. */
typedef struct st_filter_row {
    struct in_addr outside;
    uint32_t number;
    uint16_t port; /* the segment's; tasks from before it was changed have another */
} st_filter_row;

/* The rules as nft reads them; they take the place of those before in one step, and what was counted stays. They guard the
 * ports of all rows and this one; 0: those of the rows. Pure. Rows may repeat. */
void st_filter_text(const st_filter_row *rows, size_t n, uint16_t port, st_strbuf *out);

/* Sets them. */
int st_filter_set(const st_filter_row *rows, size_t n, uint16_t port, st_err *err);
/* Takes them away. */
void st_filter_drop(void);

#endif
