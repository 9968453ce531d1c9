/*
 * All devices at a glance, and jobs by state: small answers for those who draw them, however large the fleet is.
 *
 * The map has one letter per device, node after node: what the caller's own subtree has on it. What others have is as
 * invisible as what nobody has. Who stands at the cluster sees everybody's. It changes with the jobs' events, which say
 * which devices (events.c), so that it need not be asked again.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "base/mem.h"
#include "base/quote.h"

/* Of a device, by what is on it; upper case where its node is draining. */
#define NOTHING  '.'
#define DRAINING '-' /* nothing, and nothing will be put there */
#define FAILED   'X'
static const char letters[ST_LEVEL_COUNT] = {
    [ST_LEVEL_WHOLE] = 'w', [ST_LEVEL_MIG] = 'm', [ST_LEVEL_MPS] = 'p', [ST_LEVEL_TIME] = 't'};

static void devices_of(const st_core *core, const st_node *n, int32_t root, st_strbuf *out)
{
    const st_tree *tree = st_core_tree(core);
    char text[ST_DEVS_MAX];
    char idle = st_node_away(n) ? FAILED : st_node_closed(n->state) ? DRAINING : NOTHING;

    memset(text, idle, sizeof text);
    for (int d = 0; n->out && idle == NOTHING && d < n->ndevs; d++)
        if (n->out >> d & 1)
            text[d] = st_gpu_away(n, d) ? FAILED : DRAINING;
    for (size_t i = 0; i < n->residents.n; i++) {
        const st_job *job = n->residents.v[i].job;
        uint16_t devs;

        if (!st_job_on_devices(job) || !st_tree_within(tree, job->account, root))
            continue;
        devs = job->grants[n->residents.v[i].task].devs;
        for (int d = 0; d < n->ndevs; d++)
            if (devs >> d & 1)
                text[d] = st_node_closed(n->state) || (n->out >> d & 1)
                              ? (char)toupper(letters[job->shape.level])
                              : letters[job->shape.level];
    }
    st_strbuf_addn(out, text, (size_t)n->ndevs);
}

/* Runs of equal things: ["h100",8,625] is 625 nodes in a row with eight each. */
static void runs_json(const st_fleet *fleet, st_strbuf *out)
{
    const char *sep = "";

    st_out_raw(out, "runs", "[");
    for (size_t i = 0, end; i < fleet->nodes.n; i = end) {
        const st_node *n = fleet->nodes.v[i];
        size_t many = 0;

        for (end = i; end < fleet->nodes.n; end++) {
            const st_node *m = fleet->nodes.v[end];

            if (m->state != ST_NODE_REMOVED && (m->type != n->type || m->ndevs != n->ndevs))
                break;
            many += m->state != ST_NODE_REMOVED;
        }
        if (n->state == ST_NODE_REMOVED && many == 0)
            continue;
        st_strbuf_addf(out, "%s[", sep);
        st_quote_json(out, n->type >= 0 ? fleet->types.v[n->type].name : "");
        st_strbuf_addf(out, ",%d,%zu]", n->ndevs, many);
        sep = ",";
    }
    st_strbuf_addc(out, ']');
}

void st_api_map_json(const st_core *core, int32_t root, st_strbuf *out)
{
    const st_fleet *fleet = st_core_fleet(core);
    const char *sep = "";

    runs_json(fleet, out);
    st_out_raw(out, "nodes", "[");
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        if (fleet->nodes.v[i]->state == ST_NODE_REMOVED)
            continue;
        st_strbuf_add(out, sep);
        st_quote_json(out, fleet->nodes.v[i]->name);
        sep = ",";
    }
    st_strbuf_addc(out, ']');
    st_out_raw(out, "devices", "\"");
    for (size_t i = 0; i < fleet->nodes.n; i++)
        if (fleet->nodes.v[i]->state != ST_NODE_REMOVED)
            devices_of(core, fleet->nodes.v[i], root, out);
    st_strbuf_addc(out, '"');
}

static int fill_devices(st_question *q, st_core *core, st_err *err)
{
    (void)err;
    st_strbuf_addc(&q->out, '{');
    st_api_map_json(core, st_question_root(q, core), &q->out);
    st_strbuf_addc(&q->out, '}');
    return 0;
}

void st_api_devices(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_devices, NULL, 0);
}

/* ---- counts -------------------------------------------------------------------------------------- */

void st_api_states_json(const st_core *core, int32_t root, st_strbuf *out)
{
    int64_t jobs[ST_JOB_STATE_COUNT] = {0}, gpu_m[ST_JOB_STATE_COUNT] = {0};

    for (size_t i = 0; i < st_core_njobs(core); i++) {
        const st_job *job = st_core_job_at(core, i);

        if (!st_tree_within(st_core_tree(core), job->account, root))
            continue;
        jobs[job->state]++;
        gpu_m[job->state] += st_job_gpu_m(job);
    }
    st_out_raw(out, "states", "{");
    for (int s = 0; s <= ST_JOB_PAUSED; s++) {
        st_strbuf_addf(out, "%s\"%s\":{", s ? "," : "", st_job_state_name((st_job_state)s));
        st_out_int(out, "jobs", jobs[s]);
        st_out_milli(out, "gpus", gpu_m[s]);
        st_strbuf_addc(out, '}');
    }
    st_strbuf_addc(out, '}');
}

/* ---- in groups ------------------------------------------------------------------------------------- */

#define GROUPS_MAX 1000

typedef enum group_by { BY_NOTHING, BY_ACCOUNT, BY_USER, BY_NAME } group_by;
static const char *const by_words[] = {"", "account", "user", "name"};

typedef struct group {
    const char *key; /* of a name that ends in a number, what comes before it */
    size_t len;
    int64_t jobs, waiting, gpu_m;
} group;

static int by_key(const void *a, const void *b)
{
    const group *x = a, *y = b;
    int c = memcmp(x->key, y->key, ST_MIN(x->len, y->len));

    return c != 0 ? c : (x->len > y->len) - (x->len < y->len);
}

static int by_gpus(const void *a, const void *b)
{
    const group *x = a, *y = b;

    if (x->gpu_m != y->gpu_m)
        return x->gpu_m > y->gpu_m ? -1 : 1;
    return x->jobs != y->jobs ? (x->jobs > y->jobs ? -1 : 1) : by_key(a, b);
}

static group group_of(const st_tree *tree, const st_job *job, group_by by)
{
    const char *key = by == BY_ACCOUNT ? st_tree_account(tree, job->account)->name
                      : by == BY_USER  ? tree->users.v[job->user]
                                       : job->name;
    size_t len = strlen(key);

    while (by == BY_NAME && len > 1 && key[len - 1] >= '0' && key[len - 1] <= '9')
        len--;
    return (group){key, len, 1, job->state == ST_JOB_PENDING, st_job_gpu_m(job)};
}

static void groups_json(const st_core *core, int32_t root, group_by by, st_strbuf *out)
{
    const st_tree *tree = st_core_tree(core);
    ST_VEC(group) all = {0};
    size_t n = 0;

    for (size_t i = 0; i < st_core_njobs(core); i++) {
        const st_job *job = st_core_job_at(core, i);

        if (!st_job_ended(job) && st_tree_within(tree, job->account, root))
            st_vec_push(&all, group_of(tree, job, by));
    }
    if (all.n > 1)
        qsort(all.v, all.n, sizeof *all.v, by_key);
    for (size_t i = 0; i < all.n; i++) {
        if (n == 0 || by_key(&all.v[n - 1], &all.v[i]) != 0) {
            all.v[n++] = all.v[i];
            continue;
        }
        all.v[n - 1].jobs++;
        all.v[n - 1].waiting += all.v[i].waiting;
        all.v[n - 1].gpu_m += all.v[i].gpu_m;
    }
    if (n > 1)
        qsort(all.v, n, sizeof *all.v, by_gpus);
    st_out_text(out, "by", by_words[by]);
    st_out_raw(out, "groups", "[");
    for (size_t i = 0; i < n && i < GROUPS_MAX; i++) {
        ST_CLEANUP(st_freep) char *key = st_xstrndup(all.v[i].key, all.v[i].len);

        st_strbuf_add(out, i > 0 ? ",{" : "{");
        st_out_text(out, "key", key);
        st_out_int(out, "jobs", all.v[i].jobs);
        st_out_int(out, "waiting", all.v[i].waiting);
        st_out_milli(out, "gpus", all.v[i].gpu_m);
        st_strbuf_addc(out, '}');
    }
    st_strbuf_addc(out, ']');
    st_out_int(out, "groups_more", n > GROUPS_MAX ? (int64_t)n - GROUPS_MAX : 0);
    st_vec_free(&all);
}

static int fill_counts(st_question *q, st_core *core, st_err *err)
{
    int32_t root = st_question_root(q, core);
    int r = q->name[0] ? st_question_account(q, core, q->name, &root, err) : 0;

    if (r < 0)
        return r;
    st_strbuf_addc(&q->out, '{');
    st_out_text(&q->out, "account",
                root > ST_ROOT ? st_tree_account(st_core_tree(core), root)->name : "");
    st_api_states_json(core, root, &q->out);
    if (q->job != BY_NOTHING)
        groups_json(core, root, (group_by)q->job, &q->out);
    st_strbuf_addc(&q->out, '}');
    return 0;
}

void st_api_counts(st_call *call, void *ctx)
{
    const char *by = st_call_query(call, "by");
    uint64_t k = BY_NAME;

    while (by && k > BY_NOTHING && strcmp(by, by_words[k]) != 0)
        k--;
    st_api_ask(ctx, call, fill_counts, st_call_query(call, "account"), by ? k : BY_NOTHING);
}
