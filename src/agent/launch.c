/*
 * What a task needs to be started (agent/launch.h).
 */
#include "agent/launch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/rdma.h"
#include "agent/tenant.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "guard/abi.h"

#define PORT_FIRST    20000
#define PORT_SPREAD   10000
#define GRACE_MS      INT64_C(10000)
#define ENV_MAX       512
#define ADDRESSES_MAX 32768 /* of a variable; a kernel takes no more than four times that */
#define CDI_FILE      "/etc/cdi/nvidia.json"
#define CDI_FILE_RUN  "/var/run/cdi/nvidia.json"

static const char *text(const json_t *map, const char *key)
{
    const char *s = json_string_value(json_object_get(map, key));

    return s && s[0] ? s : NULL;
}

static const char *fmt(st_arena *arena, const char *format, ...) ST_PRINTF(2, 3);

static const char *fmt(st_arena *arena, const char *format, ...)
{
    ST_CLEANUP(st_freep) char *s = NULL;
    va_list args;
    int n;

    va_start(args, format);
    n = vasprintf(&s, format, args);
    va_end(args);
    ST_ASSERT(n >= 0);
    return st_arena_strndup(arena, s, (size_t)n);
}

void st_launch_id(const st_task *t, char ret[ST_RUN_ID_MAX])
{
    if (t->attempt > 0)
        snprintf(ret, ST_RUN_ID_MAX, "%s/%d/%d-%d", t->key.job, t->key.stay, t->key.task,
                 t->attempt);
    else
        snprintf(ret, ST_RUN_ID_MAX, "%s/%d/%d", t->key.job, t->key.stay, t->key.task);
}

/* ---- parts of the spec ------------------------------------------------------------------------- */

static const char **strings(st_arena *arena, const json_t *list)
{
    size_t n = json_array_size(list), i;
    const char **v = st_arena_alloc(arena, (n + 1) * sizeof *v);
    const json_t *row;

    json_array_foreach(list, i, row)
    {
        const char *s = json_string_value(row);
        ST_CLEANUP(st_freep) char *number = s ? NULL : json_dumps(row, JSON_ENCODE_ANY);

        v[i] = s ? s : st_arena_strdup(arena, number ? number : "");
    }
    v[n] = NULL;
    return v;
}

static const char **environment(st_arena *arena, const json_t *job, const st_launch *l)
{
    json_t *env = json_object_get(json_object_get(job, "document"), "env"), *value;
    const char **v = st_arena_alloc(arena, (ENV_MAX + 16) * sizeof *v), *key;
    size_t n = 0;

    json_object_foreach(env, key, value)
    {
        const char *s = json_string_value(value);
        ST_CLEANUP(st_freep) char *number = s ? NULL : json_dumps(value, JSON_ENCODE_ANY);

        if (n < ENV_MAX)
            v[n++] = fmt(arena, "%s=%s", key, s ? s : (number ? number : ""));
    }
    if (json_is_true(json_object_get(json_object_get(job, "document"), "terminal")) &&
        !json_object_get(env, "TERM"))
        v[n++] = "TERM=xterm";
    v[n++] = fmt(arena, "STINT_JOB=%s", l->order->key.job);
    v[n++] = fmt(arena, "STINT_STAY=%d", l->order->key.stay);
    v[n++] = fmt(arena, "STINT_TASK=%d", l->order->key.task);
    v[n++] = fmt(arena, "STINT_NODE=%s", l->node);
    v[n++] = fmt(arena, "STINT_ACCOUNT=%s", text(job, "account") ? text(job, "account") : "");
    if (l->mps) { /* the daemon gives its one GPU the number 0 */
        v[n++] = "CUDA_MPS_PIPE_DIRECTORY=" ST_MPS_PIPE;
        v[n++] = fmt(arena, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=%d", l->mps->limits.percent);
        v[n++] = fmt(arena, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=%lldM",
                     (long long)l->mps->limits.mem_mib);
        if (l->guard && !l->guard->latency) /* the device takes work of others first */
            v[n++] = "CUDA_MPS_CLIENT_PRIORITY=1";
    }
    v[n] = NULL;
    return v;
}

/* What stintd sent with the job, or why it could not. */
static int secrets(st_arena *arena, const json_t *job, st_run_spec *s, st_err *err)
{
    const json_t *list = json_object_get(job, "secrets"), *row;
    const char *why = text(job, "undeliverable");
    size_t n = json_array_size(list), i;
    st_run_secret *v = st_arena_alloc(arena, (n + 1) * sizeof *v);

    if (why)
        return st_fail(err, ST_ESTATE, "%s", why);
    json_array_foreach(list, i, row)
    {
        const char *name = text(row, "name"),
                   *value = json_string_value(json_object_get(row, "value"));
        size_t room = value ? strlen(value) : 0;
        unsigned char *bytes = st_arena_alloc(arena, room + 1);

        v[i] = (st_run_secret){.name = name ? name : "",
                               .bytes = bytes,
                               .env = json_is_true(json_object_get(row, "env"))};
        if (!value || sodium_base642bin(bytes, room, value, room, NULL, &v[i].n, NULL,
                                        sodium_base64_VARIANT_ORIGINAL) != 0)
            return st_fail(err, ST_EINVAL, "secret %s did not arrive whole", v[i].name);
    }
    s->secrets = v;
    s->nsecret = n;
    return 0;
}

/* A node of a gang, and how many of its tasks are there. */
typedef struct gang_row {
    const char *node, *where, *inside;
    int64_t slots;
} gang_row;

typedef ST_VEC(gang_row) gang_rows;

/* What a node says of its address may go into a file of another's task. */
static bool plain(const char *address)
{
    return strspn(address, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.:-") ==
           strlen(address);
}

/* One row per host in order of its first rank. */
static void gang_nodes(const json_t *hosts, gang_rows *ret)
{
    ST_CLEANUP(st_map_freep) st_map *by_node = st_map_new();
    const json_t *host;
    int64_t at;
    size_t k;

    json_array_foreach(hosts, k, host)
    {
        const char *node = text(host, "node"), *address = text(host, "address");

        if (!node)
            continue;
        if (!st_map_get(by_node, node, &at)) {
            at = (int64_t)ret->n;
            st_map_put(by_node, node, at);
            st_vec_push(ret, (gang_row){.node = node,
                                        .where = address && plain(address) ? address : node,
                                        .inside = text(host, "inside")});
        }
        ret->v[at].slots++;
    }
}

/* Where a task's others reach it, which depends on the network they share. */
static const char *reached(st_run_net net, bool across, const json_t *host)
{
    if (net != ST_NET_HOST && !across)
        return "127.0.0.1";
    const char *at = text(host, net == ST_NET_TENANT ? "inside" : "address");

    return at && plain(at) ? at : NULL;
}

static bool is_number(const char *address)
{
    unsigned char bytes[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, address, bytes) == 1 || inet_pton(AF_INET6, address, bytes) == 1;
}

/* Names and addresses of all tasks. What a node says of itself becomes no line of a file unless it is an address. */
static void gang_names(st_arena *arena, const json_t *hosts, bool across, st_run_spec *s)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf names = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf all = {0};
    const json_t *host;
    size_t k;

    json_array_foreach(hosts, k, host)
    {
        const char *at = reached(s->net, across, host);

        st_strbuf_addf(&all, "%s%s", k ? "," : "", at ? at : "");
        if (at && is_number(at))
            st_strbuf_addf(&names, "%s task-%zu\n", at, k);
    }
    s->gang.hosts = st_arena_strdup(arena, st_strbuf_str(&names));
    if (all.n <= ADDRESSES_MAX)
        s->gang.addresses = st_arena_strdup(arena, st_strbuf_str(&all));
}

/* The tenant's segment, for tasks on several nodes. */
static int segment(st_arena *arena, const json_t *job, const st_launch *l, const gang_rows *rows,
                   st_run_segment *ret, st_err *err)
{
    st_run_peer *peers = st_arena_alloc(arena, (rows->n + 1) * sizeof *peers);
    int64_t number = json_integer_value(json_object_get(job, "segment"));

    if (number <= 0)
        return st_fail(
            err, ST_ESTATE,
            "the tenant's network does not reach other nodes: stintd gave it no segment");
    *ret = (st_run_segment){.number = number, .port = l->segment_port, .peers = peers};
    for (size_t i = 0; i < rows->n; i++) {
        st_run_peer p = {.inside = rows->v[i].inside, .outside = rows->v[i].where};

        if (strcmp(rows->v[i].node, l->node) == 0)
            ret->here = p;
        else
            peers[ret->npeer++] = p;
    }
    return 0;
}

static int gang(st_arena *arena, const json_t *job, const st_launch *l, st_run_spec *s, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf file = {0};
    const json_t *hosts = json_object_get(job, "hosts");
    gang_rows rows = {0};
    int64_t here = 0, node_rank = 0;
    const char *first;
    bool across;
    int r = 0;

    gang_nodes(hosts, &rows);
    across = rows.n > 1;
    first = reached(s->net, across, json_array_get(hosts, 0));
    for (size_t i = 0; i < rows.n; i++) {
        const char *at = !across && s->net != ST_NET_HOST ? "127.0.0.1" : rows.v[i].where;

        if (across && s->net == ST_NET_TENANT)
            at = rows.v[i].inside ? rows.v[i].inside : "";
        if (strcmp(rows.v[i].node, l->node) == 0) {
            here = rows.v[i].slots;
            node_rank = (int64_t)i;
        }
        st_strbuf_addf(&file, "%s slots=%lld\n", at, (long long)rows.v[i].slots);
    }
    s->gang = (st_run_gang){
        .master_addr = first ? first : "127.0.0.1",
        .master_port = PORT_FIRST + (int64_t)(st_hash_str(3, l->order->key.job) % PORT_SPREAD),
        .rank = l->order->key.task,
        .world_size = (int64_t)json_array_size(hosts),
        .local_rank = l->order->local_rank,
        .local_world_size = here,
        .node_rank = node_rank,
        .hostfile = st_arena_strdup(arena, st_strbuf_str(&file))};
    gang_names(arena, hosts, across, s);
    if (across && s->net == ST_NET_TENANT) {
        s->gang.self = text(json_array_get(hosts, (size_t)l->order->key.task), "inside");
        r = segment(arena, job, l, &rows, &s->segment, err);
    }
    st_vec_free(&rows);
    return r;
}

static void add_device(st_run_spec *spec, st_run_device *v, const char *path)
{
    if (path[0])
        v[spec->ndevice++] = (st_run_device){.path = path, .major = -1, .access = "rw"};
}

/* UUIDs always; device files where there are devices, by the node's CDI spec if it has one. */
static void devices(st_arena *arena, const st_task *t, const st_launch *l, st_run_spec *ret)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf uuids = {0};
    st_run_device *v = st_arena_alloc(arena, (ST_DEVS_MAX + 4) * sizeof *v);
    const char **names = st_arena_alloc(arena, (ST_DEVS_MAX + 1) * sizeof *names);
    const char *cdi = access(CDI_FILE_RUN, R_OK) == 0 ? CDI_FILE_RUN : CDI_FILE;
    size_t n = 0;

    for (int d = 0; d < l->inv->n; d++) {
        const st_gpu_info *g = &l->inv->gpu[d];

        if (!(t->place.devs >> d & 1))
            continue;
        st_strbuf_addf(&uuids, "%s%s", uuids.n ? "," : "", l->slice ? l->slice->uuid : g->uuid);
        names[n++] = fmt(arena, "%d", g->index);
        if (!l->sim_gpus)
            add_device(ret, v, g->node);
    }
    names[n] = NULL;
    if (n == 0)
        return;
    ret->gpu_uuids = st_arena_strdup(arena, st_strbuf_str(&uuids));
    ret->devices = v;
    if (l->sim_gpus)
        return;
    if (!l->slice && access(cdi, R_OK) == 0) {
        ret->cdi_file = cdi;
        ret->cdi_names = names;
        ret->ndevice = 0;
        return;
    }
    for (int i = 0; i < 2; i++)
        add_device(ret, v, l->inv->nodes[i]);
    for (int i = 0; l->slice && i < 2; i++)
        add_device(ret, v, l->slice->node[i]);
}

/* DIR/storage/TENANT, which only the tenant's id and root can enter, and the id of its trust domain: at
 * level mps its tasks run as that. Files made before somebody could ask for that have to be right too. */
static int storage(st_arena *arena, const char *dir, const char *tenant, int64_t uid,
                   int64_t domain_uid, const char **ret, st_err *err)
{
    const char *path = fmt(arena, "%s/storage/%s", dir, tenant);
    struct stat st;
    int r = st_dir_make(path, err);
    bool right = r == 0 && stat(path, &st) == 0 && st.st_uid == uid && (st.st_mode & 07) == 0;

    /* Not again for nothing: it would take the access list away under tasks that run. */
    if (r == 0 && !right && (chown(path, (uid_t)uid, (gid_t)uid) != 0 || chmod(path, 0700) != 0))
        r = st_fail(err, ST_EIO, "%s: cannot be given to user %lld: %s", path, (long long)uid,
                    strerror(errno));
    if (r == 0 && domain_uid != uid)
        r = st_dir_share(path, uid, domain_uid, err);
    if (r == 0)
        *ret = path;
    return r;
}

static st_run_net network(const char *word)
{
    if (word && strcmp(word, "host") == 0)
        return ST_NET_HOST;
    return word && strcmp(word, "none") == 0 ? ST_NET_NONE : ST_NET_TENANT;
}

static int adopt(const json_t *tenant, const char *dir, st_err *err)
{
    const char *was = text(tenant, "was");

    return was ? st_tenant_adopt(dir, json_integer_value(json_object_get(tenant, "id")), was, err)
               : 0;
}

int st_launch_adopt(const st_order *order, const char *dir, st_err *err)
{
    int r = adopt(json_object_get(order->job, "tenant"), dir, err);

    return r < 0 ? r : adopt(json_object_get(order->job, "domain_tenant"), dir, err);
}

/* Its tenant's ids and storage. A server of MPS has clients of one user, so at level mps it is that of the
 * trust domain; the group remains its tenant's. */
static int identity(st_arena *arena, const st_task *t, const st_launch *l, st_run_spec *s,
                    st_err *err)
{
    const char *domain = t->place.domain[0] ? t->place.domain : t->tenant;
    int64_t tenant_uid = 0, domain_uid = 0;
    st_err why = {0};
    int r = st_tenant_uid(l->dir, t->tenant, &tenant_uid, err);

    if (r == 0)
        r = st_tenant_uid(l->dir, domain, &domain_uid, err);
    if (r < 0)
        return r;
    s->uid = l->mps ? l->mps->uid : tenant_uid;
    s->gid = tenant_uid;
    if (l->mps) {
        s->shm = l->mps->shm;
        s->gpu_visible = "0";
    }
    r = storage(arena, l->dir, t->tenant, tenant_uid, domain_uid, &s->data, &why);
    /* Without an access list the storage is its tenant's alone, which suits all but level mps. */
    if (r < 0 && !l->mps && domain_uid != tenant_uid)
        r = storage(arena, l->dir, t->tenant, tenant_uid, tenant_uid, &s->data, &why);
    if (r == 0 && l->data_limit)
        r = st_storage_enforce(s->data, tenant_uid, l->data_limit, &why);
    return r < 0 ? st_fail(err, why.code, "%s", why.msg) : 0;
}

/* What stintd says the job's reference means here. The document is not asked: a tenant writes that. */
static int image(const json_t *said, const char *storage, st_run_image *ret, st_err *err)
{
    const char *kind = text(said, "kind"), *path = text(said, "path"), *why = text(said, "reason");
    st_run_image i = {.root = path, .digest = text(said, "digest")};

    if (kind && strcmp(kind, "host") == 0) {
        i = (st_run_image){.kind = ST_IMAGE_HOST};
    } else if (kind && path && strcmp(kind, "folder") == 0) {
        i.kind = ST_IMAGE_FOLDER;
    } else if (kind && path && i.digest && strcmp(kind, "oci") == 0) {
        i.kind = ST_IMAGE_OCI;
    } else if (kind && path && storage && strcmp(kind, "data") == 0) {
        i = (st_run_image){
            .kind = ST_IMAGE_OCI, .root = storage, .path = path, .digest = i.digest, .own = true};
    } else {
        return st_fail(err, ST_EPERM, "%s",
                       why ? why : "stintd did not say which image it may use");
    }
    *ret = i;
    return 0;
}

int st_launch_allowed(const st_order *order, st_err *err)
{
    const char *kind = text(json_object_get(order->job, "image"), "kind");
    const char *network = text(json_object_get(order->job, "document"), "network");
    bool host = kind && strcmp(kind, "host") == 0;
    bool rdma = json_is_true(json_object_get(json_object_get(order->job, "document"), "rdma"));
    uint32_t lacks = st_allow_needed(host ? NULL : "other", network, rdma) & ~order->allow;

    if (lacks)
        return st_fail(err, ST_EPERM, "the pool of this node does not allow %s",
                       st_allow_name((st_allow)__builtin_ctz(lacks)));
    /* stintd does not place it here; but who is nearest to the GPU looks, too. */
    if (order->place.level == ST_LEVEL_MPS &&
        json_is_true(json_object_get(order->job, "untrusted")))
        return st_fail(err, ST_EPERM, "level mps is not for untrusted accounts");
    return 0;
}

int64_t st_launch_cpu_m(const st_order *order)
{
    return (int64_t)(json_number_value(json_object_get(order->job, "cpu")) * 1000 + 0.5);
}

static const char *cpus(st_arena *arena, const st_pin *pin)
{
    st_cpuset all = st_cpuset_or(&pin->own, &pin->common);
    char text[ST_CPUS_TEXT_MAX];

    st_cpuset_text(&all, text);
    return text[0] ? st_arena_strdup(arena, text) : NULL;
}

/* The guard is loaded into every process by the dynamic linker's own file, children and shells too. */
static void guard(st_arena *arena, const st_guard_client *g, st_run_spec *s)
{
    st_run_mount *v = st_arena_alloc(arena, (size_t)(3 + 3 * g->n) * sizeof *v);
    size_t n = 0;

    v[n++] = (st_run_mount){.source = g->library, .target = GUARD_DIR "/libstint-guard.so"};
    v[n++] =
        (st_run_mount){.source = fmt(arena, "%s/preload", g->root), .target = "/etc/ld.so.preload"};
    v[n++] = (st_run_mount){
        .source = fmt(arena, "%s/gpu.%d/own.%d/grant", g->root, g->gpu[0], g->slot[0]),
        .target = GUARD_DIR "/grant"};
    for (int i = 0; i < g->n; i++) {
        v[n++] = (st_run_mount){.source = fmt(arena, "%s/gpu.%d/seen", g->root, g->gpu[i]),
                                .target = fmt(arena, GUARD_DIR "/dev.%d", i)};
        v[n++] = (st_run_mount){
            .source = fmt(arena, "%s/gpu.%d/seen/turn.%d", g->root, g->gpu[i], g->slot[i]),
            .target = fmt(arena, GUARD_DIR "/own.%d/turn", i),
            .writable = true};
        v[n++] = (st_run_mount){
            .source = fmt(arena, "%s/gpu.%d/own.%d/book", g->root, g->gpu[i], g->slot[i]),
            .target = fmt(arena, GUARD_DIR "/own.%d/book", i),
            .writable = true};
    }
    s->mounts = v;
    s->nmount = n;
}

/* What tests the node. It has no guard: it has GPUs whole. */
static void program(st_arena *arena, const char *path, st_run_spec *s)
{
    st_run_mount *v = st_arena_alloc(arena, sizeof *v);

    *v = (st_run_mount){.source = path, .target = ST_TEST_PROGRAM};
    s->mounts = v;
    s->nmount = 1;
}

int st_launch_spec(st_arena *arena, const st_task *t, const st_launch *l, int64_t now_ms,
                   st_run_spec *ret, st_err *err)
{
    const json_t *job = l->order->job, *doc = json_object_get(job, "document");
    char *id = st_arena_alloc(arena, ST_RUN_ID_MAX);
    st_run_spec s = {.tenant = t->tenant,
                     .script = text(doc, "script"),
                     .workdir = text(doc, "workdir"),
                     .net = network(text(doc, "network")),
                     .cpu_m = st_launch_cpu_m(l->order),
                     .cpus = cpus(arena, &t->pin),
                     .ram_mib = json_integer_value(json_object_get(job, "ram_mib")),
                     .grace_ms = GRACE_MS,
                     .signal = t->signal,
                     .merge_output = true,
                     .terminal = json_is_true(json_object_get(doc, "terminal")),
                     .input = json_is_true(json_object_get(doc, "stdin"))};
    int r;

    st_launch_id(t, id);
    s.id = id;
    if (text(job, "undeliverable"))
        return secrets(arena, job, &s, err);
    if (!s.script && json_array_size(json_object_get(doc, "command")) == 0)
        return st_fail(err, ST_EINVAL, "the job has neither a command nor a script");
    if (!s.script)
        s.command = strings(arena, json_object_get(doc, "command"));
    s.env = environment(arena, job, l);
    r = gang(arena, job, l, &s, err);
    if (r < 0)
        return r;
    devices(arena, t, l, &s);
    if (json_is_true(json_object_get(doc, "rdma")) && (r = st_rdma_add(arena, &s, err)) < 0)
        return r;
    if (l->guard)
        guard(arena, l->guard, &s);
    else if (l->program)
        program(arena, l->program, &s);
    if (l->order->deadline_ms > 0)
        s.time_limit_ms = ST_MAX(l->order->deadline_ms + ST_LATE_MS - now_ms, 1);
    r = secrets(arena, job, &s, err);
    if (r == 0)
        r = identity(arena, t, l, &s, err);
    if (r == 0)
        r = image(json_object_get(job, "image"), s.data, &s.image, err);
    if (r == 0)
        r = st_launch_volumes(arena, job, l->volumes, &s, err);
    if (r == 0)
        r = st_run_check(&s, err);
    if (r == 0)
        *ret = s;
    return r;
}
