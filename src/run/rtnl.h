/*
 * Requests to the kernel about its networks (rtnetlink), in memory of fixed size: also for a child of a process with
 * threads. Private to run.
 */
#ifndef ST_RUN_RTNL_H
#define ST_RUN_RTNL_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct st_rtnl_msg {
    struct nlmsghdr h;
    char body[496];
} st_rtnl_msg;

/* A socket for the network namespace of the calling thread; -1 with errno. */
int st_rtnl_open(void);

/* Begins a request: its kind, NLM_F_… besides what each has, and the fixed part. */
void st_rtnl_begin(st_rtnl_msg *m, int type, int flags, const void *fixed, size_t n);
void st_rtnl_put(st_rtnl_msg *m, int attribute, const void *bytes, size_t n);
void st_rtnl_put_u32(st_rtnl_msg *m, int attribute, uint32_t value);
void st_rtnl_put_text(st_rtnl_msg *m, int attribute, const char *text);
/* What is put between the two is inside the attribute. */
size_t st_rtnl_nest(st_rtnl_msg *m, int attribute);
void st_rtnl_nest_end(st_rtnl_msg *m, size_t at);

/* Each answer to a request; what returns false has seen enough. */
typedef bool (*st_rtnl_fn)(void *ctx, const struct nlmsghdr *answer);

/* Sends it and waits for what the kernel says: 0, or a negative errno. `fn` may be NULL. */
int st_rtnl_ask(int fd, st_rtnl_msg *m, st_rtnl_fn fn, void *ctx);

/* An attribute of an answer whose fixed part has `fixed` bytes, or of another attribute; NULL: it has none. */
const struct rtattr *st_rtnl_find(const struct nlmsghdr *answer, size_t fixed, int attribute);
const struct rtattr *st_rtnl_inside(const struct rtattr *nest, int attribute);

#endif
