/* Rules of nftables around segments; see the header. */
#include "run/filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/os.h"

#define T       ST_FILTER_TABLE
#define WAIT_MS 10000
#define PRIORITY \
    -300 /* before connection tracking, and before rules of the site could take a packet for theirs */

static int by_node(const void *a, const void *b)
{
    const st_filter_row *x = a, *y = b;
    uint32_t p = ntohl(x->outside.s_addr), q = ntohl(y->outside.s_addr);

    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (p > q) - (p < q);
}

/* In order and each once: nft refuses an element that is there twice. */
static void add_elements(const st_filter_row *rows, size_t n, st_strbuf *out)
{
    ST_CLEANUP(st_freep) st_filter_row *v = st_xcalloc(n + 1, sizeof *v);
    char at[INET_ADDRSTRLEN];

    if (n == 0)
        return;
    memcpy(v, rows, n * sizeof *v);
    qsort(v, n, sizeof *v, by_node);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && by_node(&v[i - 1], &v[i]) == 0)
            continue;
        (void)inet_ntop(AF_INET, &v[i].outside, at, sizeof at);
        st_strbuf_addf(out, "%s%s . %u", i ? ", " : "add element inet " T " nodes { ", at,
                       v[i].number);
    }
    st_strbuf_add(out, " }\n");
}

/* Each once. There is one but for the time after it was changed. */
static void add_ports(const st_filter_row *rows, size_t n, uint16_t port, st_strbuf *out)
{
    if (port > 0)
        st_strbuf_addf(out, "%u", port);
    for (size_t i = 0; i < n; i++) {
        bool seen = rows[i].port == port;

        for (size_t k = 0; !seen && k < i; k++)
            seen = rows[k].port == rows[i].port;
        if (!seen)
            st_strbuf_addf(out, "%s%u", out->n ? ", " : "", rows[i].port);
    }
}

void st_filter_text(const st_filter_row *rows, size_t n, uint16_t port, st_strbuf *out)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf ports = {0};
    static const char *const chains[] = {"arriving", "leaving"};
    static const char *const hooks[] = {"input", "output"};
    static const char *const counters[] = {"strangers", "programs"};

    st_strbuf_add(out, "add table inet " T "\n");
    for (size_t i = 0; i < ST_ARRAY_LEN(chains); i++)
        st_strbuf_addf(out,
                       "add counter inet " T " %s\n"
                       "add chain inet " T
                       " %s { type filter hook %s priority %d; policy accept; }\n"
                       "flush chain inet " T " %s\n",
                       counters[i], chains[i], hooks[i], PRIORITY, chains[i]);
    st_strbuf_add(out, "add set inet " T " nodes { typeof ip saddr . @th,96,24; }\n"
                       "flush set inet " T " nodes\n");
    add_elements(rows, n, out);
    add_ports(rows, n, port, &ports);
    if (ports.n == 0)
        return;
    st_strbuf_addf(out,
                   "add rule inet " T
                   " arriving udp dport { %s } ip saddr . @th,96,24 @nodes accept\n"
                   "add rule inet " T " arriving udp dport { %s } counter name strangers drop\n",
                   st_strbuf_str(&ports), st_strbuf_str(&ports));
    /* Packets of the kernel itself belong to no user. */
    st_strbuf_addf(out,
                   "add rule inet " T
                   " leaving udp dport { %s } meta skuid 0-4294967294 counter name programs drop\n",
                   st_strbuf_str(&ports));
}

static int tell_nft(const char *text, st_err *err)
{
    static const char *const env[] = {NULL};
    char nft[PATH_MAX], said[256] = "";
    const char *argv[] = {nft, "-f", "-", NULL};
    st_os_call call = {.argv = argv, .env = env, .input = text, .timeout_ms = WAIT_MS};
    int r;

    if (!st_os_which("nft", nft))
        return st_fail(err, ST_EIO,
                       "the program nft is not installed here (package nftables); networks of "
                       "tenants do not reach other nodes without it");
    r = st_os_ask(&call, said, sizeof said);
    if (r == 0)
        return 0;
    said[strcspn(said, "\n")] = '\0';
    return st_fail(err, ST_EIO, "cannot guard segments: nft: %.120s",
                   r < 0 ? strerror(errno) : said);
}

int st_filter_set(const st_filter_row *rows, size_t n, uint16_t port, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    st_filter_text(rows, n, port, &text);
    return tell_nft(st_strbuf_str(&text), err);
}

void st_filter_drop(void)
{
    (void)tell_nft("add table inet " T "\ndelete table inet " T "\n", NULL);
}
