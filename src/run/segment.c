/*
 * Segments of tenants on this node (run/segment.h).
 */
#include "run/segment.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "run/filter.h"
#include "run/net.h"
#include "run/os.h"
#include "run/state.h"
#include "run/vxlan.h"

#define NOTE "segment.json"

typedef struct segment {
    char tenant[ST_RUN_NAME_MAX];
    uint32_t number;
    uint16_t port;
    st_vxlan_node here;
    ST_VEC(st_vxlan_node) peers;
} segment;

typedef ST_VEC(segment) segments;

static void segments_done(segments *all)
{
    for (size_t i = 0; i < all->n; i++)
        st_vec_free(&all->v[i].peers);
    st_vec_free(all);
}

/* ---- what is noted ------------------------------------------------------------------------------ */

static bool is_address(const char *text)
{
    struct in_addr a;

    return text && inet_pton(AF_INET, text, &a) == 1;
}

static int check_node(const st_run_peer *p, const char *own, st_err *err)
{
    if (!is_address(p->inside))
        return st_fail(err, ST_EINVAL, "a node of its segment has no address there");
    if (!is_address(p->outside))
        return st_fail(err, ST_EREFUSED,
                       "a node of the gang has the address \"%.80s\", which is no IPv4 address; "
                       "start its agent with --address",
                       p->outside ? p->outside : "");
    if (own && strcmp(p->outside, own) == 0)
        return st_fail(err, ST_EREFUSED,
                       "two nodes of the gang have the address %.80s; start their agents with "
                       "--address",
                       own);
    return 0;
}

int st_segment_check(const st_run_segment *s, st_err *err)
{
    int r;

    if (s->number == 0)
        return 0;
    if (s->number < 1 || s->number > ST_RUN_SEGMENT_MAX)
        return st_fail(err, ST_ERANGE, "segment %lld is not from 1 to %d", (long long)s->number,
                       ST_RUN_SEGMENT_MAX);
    if (s->port < 1 || s->port > 65535)
        return st_fail(err, ST_ERANGE, "the port of segments is not from 1 to 65535");
    r = check_node(&s->here, NULL, err);
    for (size_t i = 0; r == 0 && i < s->npeer; i++)
        r = check_node(&s->peers[i], s->here.outside, err);
    return r;
}

static json_t *pack_node(const st_run_peer *p)
{
    return json_pack("[s, s]", p->inside, p->outside);
}

int st_segment_note(const char *dir, const st_run_segment *s, st_err *err)
{
    ST_CLEANUP(st_os_jsonp) json_t *note = NULL;
    json_t *peers = json_array();
    char path[PATH_MAX];
    int r = st_os_path(path, err, "%s/" NOTE, dir);

    for (size_t i = 0; i < s->npeer; i++)
        json_array_append_new(peers, pack_node(&s->peers[i]));
    note = json_pack("{s:I, s:I, s:o, s:o}", "number", (json_int_t)s->number, "port",
                     (json_int_t)s->port, "here", pack_node(&s->here), "peers", peers);
    return r ? r : st_os_write_json(path, note, err);
}

bool st_segment_noted(const char *dir)
{
    char path[PATH_MAX];

    return st_os_path(path, NULL, "%s/" NOTE, dir) == 0 && access(path, F_OK) == 0;
}

static bool read_node(const json_t *pair, st_vxlan_node *ret)
{
    const char *inside = json_string_value(json_array_get(pair, 0));
    const char *outside = json_string_value(json_array_get(pair, 1));

    return inside && outside && inet_pton(AF_INET, inside, &ret->inside) == 1 &&
           inet_pton(AF_INET, outside, &ret->outside) == 1;
}

static segment *segment_of(segments *all, const char *tenant)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->v[i].tenant, tenant) == 0)
            return &all->v[i];
    st_vec_push(all, (segment){0});
    snprintf(all->v[all->n - 1].tenant, sizeof all->v->tenant, "%s", tenant);
    return &all->v[all->n - 1];
}

static void add_peer(segment *s, const st_vxlan_node *p)
{
    for (size_t i = 0; i < s->peers.n; i++)
        if (s->peers.v[i].inside.s_addr == p->inside.s_addr) {
            s->peers.v[i] = *p;
            return;
        }
    st_vec_push(&s->peers, *p);
}

/* Tasks of one tenant agree about the number; where the node's own address has changed, the later one is right. */
static void add_note(segments *all, const char *tenant, const char *dir)
{
    ST_CLEANUP(st_os_jsonp) json_t *note = NULL;
    char path[PATH_MAX];
    st_vxlan_node here, peer;
    const json_t *pair;
    segment *s;
    size_t i;

    if (st_os_path(path, NULL, "%s/" NOTE, dir) != 0 || st_os_read_json(path, &note, NULL) != 0 ||
        !read_node(json_object_get(note, "here"), &here))
        return;
    s = segment_of(all, tenant);
    s->number = (uint32_t)json_integer_value(json_object_get(note, "number"));
    s->port = (uint16_t)json_integer_value(json_object_get(note, "port"));
    s->here = here;
    json_array_foreach(json_object_get(note, "peers"), i, pair)
    {
        if (read_node(pair, &peer))
            add_peer(s, &peer);
    }
}

static int by_asked(const void *a, const void *b)
{
    const st_run_task *x = a, *y = b;

    return (x->asked_ms > y->asked_ms) - (x->asked_ms < y->asked_ms);
}

static int gather(const st_run *run, segments *ret, st_err *err)
{
    ST_CLEANUP(st_freep) st_run_task *tasks = NULL;
    char dir[PATH_MAX];
    size_t n = 0, bad = 0;
    int r = st_run_list(run, &tasks, &n, &bad, err);

    if (r == 0 && n > 0)
        qsort(tasks, n, sizeof *tasks, by_asked);
    for (size_t i = 0; r == 0 && i < n; i++)
        if (tasks[i].state != ST_RUN_ENDED && tasks[i].state != ST_RUN_LOST &&
            st_state_dir(run, tasks[i].id, dir, NULL) == 0)
            add_note(ret, tasks[i].tenant, dir);
    return r;
}

/* ---- what the kernel is told -------------------------------------------------------------------- */

static int set_filter(const segments *all, uint16_t port, st_err *err)
{
    ST_VEC(st_filter_row) rows = {0};
    int r;

    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->v[i].peers.n; k++)
            st_vec_push(&rows, (st_filter_row){.outside = all->v[i].peers.v[k].outside,
                                               .number = all->v[i].number,
                                               .port = all->v[i].port});
    r = st_filter_set(rows.v, rows.n, port, err);
    st_vec_free(&rows);
    return r;
}

/* That a tenant's network may have a device, written down before it has one: so that the many that have none need not be
 * entered to see that. */
static int mark_path(const st_run *run, const char *tenant, char ret[PATH_MAX], st_err *err)
{
    return st_os_path(ret, err, "%s/net/.segment.%s", run->state_dir, tenant);
}

static int drop_device(const st_run *run, const char *netns, const char *tenant, st_err *err)
{
    char mark[PATH_MAX];
    int r = mark_path(run, tenant, mark, err);

    if (r || access(mark, F_OK) != 0)
        return r;
    if ((r = st_vxlan_drop(netns, err)) == 0)
        (void)unlink(mark);
    return r;
}

static int set_device(const st_run *run, const char *netns, const segment *s, st_err *err)
{
    char mark[PATH_MAX];
    st_vxlan want = {.number = s->number,
                     .port = s->port,
                     .here = s->here,
                     .peers = s->peers.v,
                     .npeer = s->peers.n};
    int r = mark_path(run, s->tenant, mark, err);

    if (r || (r = st_os_write(mark, "", 0, 0600, err)) != 0 ||
        (r = st_vxlan_mtu(s->here.outside, &want.mtu, err)) != 0)
        return r;
    return st_vxlan_set(netns, &want, err);
}

/* The port is ours before a task on the node's own network could take it. */
static int hold(const st_run *run, uint16_t port, st_err *err)
{
    char netns[PATH_MAX];
    int r = st_net_make(run->state_dir, ST_SEGMENT_HOLD, netns, err);

    return r ? r : st_vxlan_hold(netns, ST_RUN_SEGMENT_MAX + 1, port, err);
}

int st_segment_join(const st_run *run, const char *tenant, st_err *err)
{
    ST_CLEANUP(segments_done) segments all = {0};
    ST_CLEANUP(st_os_closep) int lock = st_net_lock(run->state_dir, err);
    const segment *s;
    char netns[PATH_MAX];
    int r = lock < 0 ? lock : gather(run, &all, err);

    if (r)
        return r;
    s = segment_of(&all, tenant);
    if (s->number == 0)
        return st_fail(err, ST_EIO, "nothing is noted of the segment of %s", tenant);
    if ((r = st_os_path(netns, err, "%s/net/%s", run->state_dir, tenant)) != 0 ||
        (r = set_filter(&all, s->port, err)) != 0 || (r = hold(run, s->port, err)) != 0)
        return r;
    return set_device(run, netns, s, err);
}

/* One tenant's device, or that it has none. What cannot be done does not keep the others from it. */
static int settle_one(const st_run *run, const segments *all, const char *tenant, st_err *err)
{
    const segment *s = NULL;
    char netns[PATH_MAX];
    int r = st_os_path(netns, err, "%s/net/%s", run->state_dir, tenant);

    if (r || !st_net_there(run->state_dir, tenant))
        return r;
    for (size_t i = 0; i < all->n; i++)
        s = strcmp(all->v[i].tenant, tenant) == 0 ? &all->v[i] : s;
    return s ? set_device(run, netns, s, err) : drop_device(run, netns, tenant, err);
}

int st_segment_settle(const st_run *run, const char *tenant, st_err *err)
{
    ST_CLEANUP(segments_done) segments all = {0};
    ST_CLEANUP(st_os_closep) int lock = -1;
    char net[PATH_MAX];
    int r = 0, last;
    DIR *d;

    /* No segment since the machine was started: nothing to look after. */
    if (!st_net_there(run->state_dir, ST_SEGMENT_HOLD))
        return 0;
    if ((lock = st_net_lock(run->state_dir, err)) < 0)
        return lock;
    if ((r = gather(run, &all, err)) != 0 ||
        (r = st_os_path(net, err, "%s/net", run->state_dir)) != 0)
        return r;
    r = set_filter(&all, 0, err);
    d = opendir(net);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.' || (tenant && strcmp(tenant, e->d_name) != 0))
            continue;
        last = settle_one(run, &all, e->d_name, r ? NULL : err);
        r = r ? r : last;
    }
    if (d)
        closedir(d);
    return r;
}

void st_segment_clear(const st_run *run)
{
    if (!st_net_there(run->state_dir, ST_SEGMENT_HOLD))
        return;
    st_net_forget(run->state_dir, ST_SEGMENT_HOLD);
    st_filter_drop();
}
