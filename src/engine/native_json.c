/*
 * What agents read: a node's list of tasks as JSON, and what the engine reads of an agent's own
 * description.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "engine/native_state.h"

static const char *const want_words[] = {
#define X(id, word) word,
    ST_WANT_TABLE(X)
#undef X
};

/* ---- the gang ------------------------------------------------------------------------------------ */

/* A node's address in segments of tenants: 10.0.0.1 and on, by its number, which no other node ever has. So it is the same
 * in all of them, needs no record, and two jobs of a tenant agree about it. */
#define INSIDE_FIRST (UINT32_C(10) << 24 | 1)
#define INSIDE_MAX   ((INT64_C(1) << 24) - 3)
#define SEGMENT_MAX  INT64_C(0xfffffe) /* of numbers with 24 bits, two are no tenant's */

static void add_inside(int32_t node, st_strbuf *out)
{
    uint32_t at = INSIDE_FIRST + (uint32_t)node;

    if (node >= 0 && node <= INSIDE_MAX)
        st_strbuf_addf(out, ",\"inside\":\"%u.%u.%u.%u\"", at >> 24, at >> 16 & 255, at >> 8 & 255,
                       at & 255);
}

static bool on_several(const st_engine_order *o)
{
    for (int t = 1; t < o->ngrants; t++)
        if (o->grants[t].node != o->grants[0].node)
            return true;
    return false;
}

/* One host per task, in order of rank: [{"node":"n1","address":"10.0.0.1"}, …]. */
void st_native_hosts(const native *e, const st_engine_order *o, st_strbuf *out)
{
    bool several = on_several(o);

    st_strbuf_addc(out, '[');
    for (int t = 0; t < o->ngrants; t++) {
        const native_node *node = st_native_node_of(e, o->grants[t].node);
        const char *name = o->fleet->nodes.v[o->grants[t].node]->name;

        st_strbuf_add(out, t ? ",{\"node\":" : "{\"node\":");
        st_quote_json(out, name);
        st_strbuf_add(out, ",\"address\":");
        st_quote_json(out, node && node->address ? node->address : name);
        if (several)
            add_inside(o->grants[t].node, out);
        st_strbuf_addc(out, '}');
    }
    st_strbuf_addc(out, ']');
}

/* The segment of a gang that is on several nodes is its tenant's: the account's number. */
static void add_segment(const native_job *job, st_strbuf *out)
{
    for (int t = 1; t < job->tasks; t++)
        if (job->task[t].grant.node != job->task[0].grant.node) {
            if (job->tenant > 0 && job->tenant <= SEGMENT_MAX)
                st_strbuf_addf(out, ",\"segment\":%" PRId64, job->tenant);
            return;
        }
}

/* How many tasks of the gang stand on the same node before this one. */
static int local_rank(const native_job *job, int t)
{
    int n = 0;

    for (int i = 0; i < t; i++)
        n += job->task[i].grant.node == job->task[t].grant.node;
    return n;
}

static void add_task(const native_node *node, const native_job *job, int t, st_strbuf *out)
{
    const st_grant *g = &job->task[t].grant;
    const char *sep = "";
    bool over = job->task[t].state == ST_TASK_EXITED || job->task[t].state == ST_TASK_UNSTARTED;

    st_strbuf_addf(out, "{\"task\":%d,\"rank\":%d,\"local_rank\":%d,\"over\":%s,\"devices\":[", t,
                   t, local_rank(job, t), over ? "true" : "false");
    for (int d = 0; d < ST_DEVS_MAX; d++) {
        if (!(g->devs >> d & 1))
            continue;
        st_strbuf_addf(out, "%s{\"index\":%d", sep, d);
        if (node->uuids[d]) {
            st_strbuf_add(out, ",\"uuid\":");
            st_quote_json(out, node->uuids[d]);
        }
        st_strbuf_addc(out, '}');
        sep = ",";
    }
    st_strbuf_addc(out, ']');
    if (g->mig_start >= 0 && job->profile)
        st_strbuf_addf(out, ",\"mig\":{\"profile\":\"%s\",\"start\":%d}", job->profile,
                       g->mig_start);
    st_strbuf_addc(out, '}');
}

/* Whom a node knows it as; and, for accounts from before, the name that was used for that. */
static void add_tenant(const char *key, int64_t id, const char *was, st_strbuf *out)
{
    st_strbuf_addf(out, ",\"%s\":{\"id\":%" PRId64, key, id);
    if (was) {
        st_strbuf_add(out, ",\"was\":");
        st_quote_json(out, was);
    }
    st_strbuf_addc(out, '}');
}

static void add_job(const native *e, const native_job *job, st_strbuf *out)
{
    char name[ST_NATIVE_NAME] = "", share[ST_FMT_MAX], cpu[ST_FMT_MAX];

    e->opt.name(e->opt.ctx, job->id, name);
    st_strbuf_addf(out, "{\"job\":\"%s\",\"stay\":%d,\"want\":\"%s\"", name, job->stay,
                   want_words[job->want]);
    if (job->until_ms > 0)
        st_strbuf_addf(out, ",\"until_ms\":%" PRId64, job->until_ms);
    if (job->deadline_ms > 0 && job->deadline_ms != ST_TIME_NEVER)
        st_strbuf_addf(out, ",\"deadline_ms\":%" PRId64, job->deadline_ms);
    st_strbuf_add(out, ",\"account\":");
    st_quote_json(out, job->account);
    st_strbuf_add(out, ",\"domain\":");
    st_quote_json(out, job->domain);
    if (job->untrusted)
        st_strbuf_add(out, ",\"untrusted\":true");
    add_tenant("tenant", job->tenant, job->named ? job->account : NULL, out);
    add_tenant("domain_tenant", job->domain_tenant, job->domain_named ? job->domain : NULL, out);
    if (job->type) {
        st_strbuf_add(out, ",\"gpu\":");
        st_quote_json(out, job->type);
    }
    st_strbuf_addf(out, ",\"level\":\"%s\"", st_level_name(job->shape.level));
    if (job->shape.share_m > 0)
        st_strbuf_addf(out, ",\"share\":%s", st_fmt_milli(share, job->shape.share_m));
    if (job->shape.vram_mib > 0)
        st_strbuf_addf(out, ",\"vram_mib\":%" PRId64, job->shape.vram_mib);
    st_strbuf_addf(out, ",\"cpu\":%s,\"ram_mib\":%" PRId64 ",\"on_preempt\":\"%s\"",
                   st_fmt_milli(cpu, job->shape.cpu_m), job->shape.ram_mib,
                   st_yield_name(job->yield));
    add_segment(job, out);
    st_strbuf_addf(out, ",\"world_size\":%d,\"hosts\":%s,\"image\":%s", job->tasks, job->hosts,
                   job->image);
    if (job->volumes)
        st_strbuf_addf(out, ",\"volumes\":%s", job->volumes);
    st_strbuf_add(out, ",\"document\":");
    if (e->opt.dress)
        e->opt.dress(e->opt.ctx, job->account, job->user, job->doc, out);
    else
        st_strbuf_add(out, job->doc);
    st_strbuf_add(out, ",\"tasks\":[");
}

/* What the node's pool permits; agents hold to it by themselves. */
static void add_rules(const st_pool_rules *rules, st_strbuf *out)
{
    const char *sep = "";

    st_strbuf_add(out, ",\"allow\":[");
    for (int p = 0; p < ST_ALLOW_COUNT; p++) {
        if (!(rules->allow >> p & 1))
            continue;
        st_strbuf_addf(out, "%s\"%s\"", sep, st_allow_name((st_allow)p));
        sep = ",";
    }
    st_strbuf_addf(out, "],\"tasks_per_node\":%" PRId64, rules->node_tasks);
}

/* A job's tasks stand together on the list, since they came with one order. */
void st_native_list(const native *e, const native_node *node, st_strbuf *out)
{
    const native_job *last = NULL;

    st_strbuf_add(out, "{\"node\":");
    st_quote_json(out, node->name);
    st_strbuf_addf(out, ",\"epoch\":%" PRId64 ",\"revision\":%" PRIu64 ",\"now_ms\":%" PRId64,
                   e->base.epoch, node->revision, e->opt.clock(e->opt.ctx));
    st_strbuf_addf(out, ",\"branch\":%" PRId64 ",\"position\":%" PRId64, e->branch, e->position);
    st_strbuf_addf(out, ",\"state\":\"%s\"", st_node_state_name(node->state));
    add_rules(&node->rules, out);
    if (node->images && e->lead == ST_LEAD_FULL)
        st_strbuf_addf(out, ",\"images\":%s", node->images);
    st_strbuf_add(out, ",\"jobs\":[");
    for (size_t i = 0; i < node->list.n; i++) {
        const native_job *job = node->list.v[i].job;

        if (!st_native_shown(node, &job->task[node->list.v[i].task]) ||
            (e->lead != ST_LEAD_FULL && !job->adopted))
            continue;
        if (job != last) {
            st_strbuf_add(out, last ? "]}," : "");
            add_job(e, job, out);
        } else {
            st_strbuf_addc(out, ',');
        }
        add_task(node, job, node->list.v[i].task, out);
        last = job;
    }
    st_strbuf_add(out, last ? "]}]}" : "]}");
}

bool st_native_desired(st_engine *engine, int32_t id, const char *boot, uint64_t have,
                       st_strbuf *out)
{
    native *e = (native *)engine;
    const native_node *node;
    bool differs;

    st_native_lock(e);
    node = st_native_node_of(e, id);
    differs = node && node->revision != have && st_native_served(node, boot) &&
              (e->lead == ST_LEAD_FULL || (e->lead == ST_LEAD_CLEAR && node->told));
    if (differs)
        st_native_list(e, node, out);
    st_native_unlock(e);
    return differs;
}

/* ---- the node ------------------------------------------------------------------------------------ */

void st_native_read_doc(native_node *node, const char *doc)
{
    json_t *root = json_loads(doc, 0, NULL);
    const json_t *uuids = json_object_get(json_object_get(root, "gpu"), "uuids");
    const char *address = json_string_value(json_object_get(root, "address"));

    free(node->address);
    node->address = address && address[0] ? st_xstrdup(address) : NULL;
    for (size_t d = 0; d < ST_DEVS_MAX; d++) {
        const char *uuid = json_string_value(json_array_get(uuids, d));

        free(node->uuids[d]);
        node->uuids[d] = uuid ? st_xstrdup(uuid) : NULL;
    }
    json_decref(root);
}
