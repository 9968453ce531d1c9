/* rtnetlink in memory of fixed size; see the header. */
#include "run/rtnl.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/macros.h"

#define WAIT_S     10
#define ANSWER_MAX 32768

int st_rtnl_open(void)
{
    struct timeval wait = {.tv_sec = WAIT_S};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    return fd;
}

void st_rtnl_begin(st_rtnl_msg *m, int type, int flags, const void *fixed, size_t n)
{
    memset(m, 0, sizeof *m);
    ST_ASSERT(n <= sizeof m->body);
    m->h = (struct nlmsghdr){.nlmsg_len = (uint32_t)NLMSG_LENGTH(n),
                             .nlmsg_type = (uint16_t)type,
                             .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)};
    memcpy(m->body, fixed, n);
}

static struct rtattr *room(st_rtnl_msg *m, int attribute, size_t n)
{
    size_t at = NLMSG_ALIGN(m->h.nlmsg_len);
    struct rtattr *a = (struct rtattr *)(void *)((char *)m + at);

    ST_ASSERT(at + RTA_SPACE(n) <= sizeof *m);
    a->rta_type = (unsigned short)attribute;
    a->rta_len = (unsigned short)RTA_LENGTH(n);
    m->h.nlmsg_len = (uint32_t)(at + RTA_SPACE(n));
    return a;
}

void st_rtnl_put(st_rtnl_msg *m, int attribute, const void *bytes, size_t n)
{
    memcpy(RTA_DATA(room(m, attribute, n)), bytes, n);
}

void st_rtnl_put_u32(st_rtnl_msg *m, int attribute, uint32_t value)
{
    st_rtnl_put(m, attribute, &value, sizeof value);
}

void st_rtnl_put_text(st_rtnl_msg *m, int attribute, const char *text)
{
    st_rtnl_put(m, attribute, text, strlen(text) + 1);
}

size_t st_rtnl_nest(st_rtnl_msg *m, int attribute)
{
    size_t at = NLMSG_ALIGN(m->h.nlmsg_len);

    (void)room(m, attribute | NLA_F_NESTED, 0);
    return at;
}

void st_rtnl_nest_end(st_rtnl_msg *m, size_t at)
{
    struct rtattr *a = (struct rtattr *)(void *)((char *)m + at);

    a->rta_len = (unsigned short)(m->h.nlmsg_len - at);
}

/* One answer: 1 goes on, 0 or a negative errno is the end. */
static int take(const struct nlmsghdr *h, st_rtnl_fn fn, void *ctx, bool *enough)
{
    if (h->nlmsg_type == NLMSG_DONE)
        return 0;
    if (h->nlmsg_type == NLMSG_ERROR) {
        struct nlmsgerr e;

        memcpy(&e, (const char *)h + NLMSG_HDRLEN, sizeof e);
        return e.error;
    }
    if (fn && !*enough)
        *enough = !fn(ctx, h);
    return 1;
}

int st_rtnl_ask(int fd, st_rtnl_msg *m, st_rtnl_fn fn, void *ctx)
{
    static const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    char answer[ANSWER_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
    bool enough = false;

    /* An acknowledgement ends what is no dump. */
    if ((m->h.nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
        m->h.nlmsg_flags |= NLM_F_ACK;
    if (sendto(fd, m, m->h.nlmsg_len, 0, (const struct sockaddr *)&kernel, sizeof kernel) < 0)
        return -errno;
    for (;;) {
        ssize_t n = recv(fd, answer, sizeof answer, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        size_t left = (size_t)n;

        for (struct nlmsghdr *h = (struct nlmsghdr *)(void *)answer; NLMSG_OK(h, left);
             h = NLMSG_NEXT(h, left)) {
            int r = take(h, fn, ctx, &enough);

            if (r <= 0)
                return r;
        }
    }
}

static const struct rtattr *among(const struct rtattr *a, size_t n, int attribute)
{
    for (; n >= sizeof *a && a->rta_len >= sizeof *a && a->rta_len <= n;) {
        size_t step = RTA_ALIGN(a->rta_len);

        if ((a->rta_type & NLA_TYPE_MASK) == attribute)
            return a;
        if (step >= n)
            break;
        n -= step;
        a = (const struct rtattr *)(const void *)((const char *)a + step);
    }
    return NULL;
}

const struct rtattr *st_rtnl_find(const struct nlmsghdr *answer, size_t fixed, int attribute)
{
    size_t skip = NLMSG_LENGTH(NLMSG_ALIGN(fixed));

    if (answer->nlmsg_len < skip)
        return NULL;
    return among((const struct rtattr *)(const void *)((const char *)answer + skip),
                 answer->nlmsg_len - skip, attribute);
}

const struct rtattr *st_rtnl_inside(const struct rtattr *nest, int attribute)
{
    if (!nest)
        return NULL;
    return among((const struct rtattr *)(const void *)((const char *)nest + RTA_LENGTH(0)),
                 RTA_PAYLOAD(nest), attribute);
}
