/*
 * The log of checkpoints (proof/proof.h): published to everybody who may read anything, with a signed head, and proofs that it only
 * grows.
 *
 * A checkpoint says nothing about whose books it binds: a root, and when. Leaves are kept from question to question, 40 bytes
 * a checkpoint; a question reads those that came since.
 */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "billing/money.h"
#include "control/control.h"

#define LIST_MOST    1000
#define LIST_DEFAULT 100

struct st_points {
    pthread_mutex_t lock;
    ST_VEC(st_hash) leaves;
    ST_VEC(int64_t) ns; /* of their rows */
    int64_t at_ms;      /* the last one's moment */
};

st_points *st_points_new(void)
{
    st_points *p = st_xcalloc(1, sizeof *p);

    ST_ASSERT(pthread_mutex_init(&p->lock, NULL) == 0);
    return p;
}

void st_points_free(st_points *p)
{
    if (!p)
        return;
    st_vec_free(&p->leaves);
    st_vec_free(&p->ns);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static int add_point(void *ctx, const st_checkpoint_row *row, st_err *err)
{
    st_points *p = ctx;
    st_hash leaf;

    (void)err;
    st_proof_leaf(row->data, strlen(row->data), &leaf);
    st_vec_push(&p->leaves, leaf);
    st_vec_push(&p->ns, row->n);
    p->at_ms = row->at_ms;
    return 0;
}

/* With the lock. */
static int catch_up(st_points *p, st_store *reader, st_err *err)
{
    int64_t from = p->ns.n > 0 ? p->ns.v[p->ns.n - 1] + 1 : 0;

    return st_store_checkpoints(reader, from, add_point, p, err);
}

static void root_of(const st_points *p, int64_t size, st_hash *ret)
{
    st_peaks peaks = {0};

    for (int64_t i = 0; i < size; i++)
        st_peaks_add(&peaks, &p->leaves.v[i]);
    st_peaks_root(&peaks, ret);
}

/* With the lock. */
static void fill_head(st_api *api, st_log_head *ret)
{
    const st_points *p = api->points;

    *ret = (st_log_head){.at_ms = p->at_ms, .size = (int64_t)p->leaves.n};
    root_of(p, ret->size, &ret->root);
    st_control_sign_log(api->control, ret);
}

int st_api_log_head(st_api *api, st_log_head *ret, st_err *err)
{
    st_store *reader = st_api_reader(api, err);
    int r;

    if (!reader)
        return -err->code;
    pthread_mutex_lock(&api->points->lock);
    r = catch_up(api->points, reader, err);
    if (r == 0)
        fill_head(api, ret);
    pthread_mutex_unlock(&api->points->lock);
    st_api_reader_back(api, reader);
    return r;
}

int st_api_log_head_at(st_api *api, int64_t size, st_log_head *ret, st_err *err)
{
    st_store *reader = st_api_reader(api, err);
    const st_points *p = api->points;
    int r;

    if (!reader)
        return -err->code;
    pthread_mutex_lock(&api->points->lock);
    r = catch_up(api->points, reader, err);
    if (r == 0 && size > (int64_t)p->leaves.n)
        r = st_fail(err, ST_ESTATE, "this log has %zu checkpoints, not %lld", p->leaves.n,
                    (long long)size);
    if (r == 0) {
        *ret = (st_log_head){.at_ms = p->at_ms, .size = size};
        root_of(p, size, &ret->root);
        st_control_sign_log(api->control, ret);
    }
    pthread_mutex_unlock(&api->points->lock);
    st_api_reader_back(api, reader);
    return r;
}

/* ---- a list ------------------------------------------------------------------------------------------ */

typedef struct page {
    st_strbuf *out;
    int64_t left;
    bool any;
} page;

static int write_point(void *ctx, const st_checkpoint_row *row, st_err *err)
{
    page *g = ctx;

    if (g->left == 0)
        return st_fail(err, ST_ERANGE, "the page is full");
    st_strbuf_addf(g->out, "%s%s", g->any ? "," : "", row->data);
    g->any = true;
    g->left--;
    return 0;
}

static int list_points(st_api *api, st_store *reader, int64_t after, int64_t limit, st_strbuf *out,
                       st_err *err)
{
    page g = {.out = out, .left = limit};
    st_log_head head;
    int64_t from = INT64_MAX;
    int r;

    pthread_mutex_lock(&api->points->lock);
    r = catch_up(api->points, reader, err);
    if (r == 0) {
        fill_head(api, &head);
        if (after < head.size)
            from = api->points->ns.v[after];
    }
    pthread_mutex_unlock(&api->points->lock);
    if (r < 0)
        return r;
    st_strbuf_add(out, "{\"head\":");
    st_log_head_write(&head, out);
    st_strbuf_add(out, ",\"cosignatures\":");
    r = st_api_cosigned(reader, out, err);
    if (r < 0)
        return r;
    st_strbuf_add(out, ",\"checkpoints\":[");
    g.left = ST_MIN(limit, ST_MAX(head.size - after, 0)); /* none behind the head */
    if (g.left > 0)
        r = st_store_checkpoints(reader, from, write_point, &g, err);
    st_strbuf_add(out, "]}");
    return r == -ST_ERANGE && g.left == 0 ? 0 : r;
}

static void checkpoints_now(st_call *call, void *ctx)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_api *api = ctx;
    int64_t after = st_call_query_int(call, "after", 0);
    int64_t limit = st_call_query_int(call, "limit", LIST_DEFAULT);
    st_err err = {0};
    st_store *reader = NULL;
    int r = 0;

    if (after < 0 || limit < 1 || limit > LIST_MOST)
        r = st_fail(&err, ST_ERANGE, "`after` is 0 or more, `limit` is 1 to %d", LIST_MOST);
    if (r == 0 && !(reader = st_api_reader(api, &err)))
        r = -err.code;
    if (r == 0)
        r = list_points(api, reader, after, limit, &out, &err);
    st_api_reader_back(api, reader);
    if (r < 0)
        st_call_fail(call, &err);
    else
        st_call_reply_buf(call, 200, NULL, &out);
}

void st_api_checkpoints(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, checkpoints_now);
}

/* ---- a proof ------------------------------------------------------------------------------------------- */

static int prove(st_api *api, int64_t from, int64_t to, st_hashes *ret, st_hash *ret_from,
                 st_hash *ret_to, st_err *err)
{
    const st_points *p = api->points;
    int64_t size = (int64_t)p->leaves.n;

    if (from < 0 || to < from || to > size)
        return st_fail(err, ST_ERANGE,
                       "the log has %lld checkpoints: `from` and `to` are sizes of it, in order",
                       (long long)size);
    root_of(p, from, ret_from);
    root_of(p, to, ret_to);
    return from > 0 && from < to ? st_proof_make(p->leaves.v, to, from, from, ret, err) : 0;
}

static void out_hash(st_strbuf *out, const st_hash *h)
{
    char hex[2 * ST_HASH + 1];

    sodium_bin2hex(hex, sizeof hex, h->b, ST_HASH);
    st_strbuf_addf(out, "\"%s\"", hex);
}

static void proof_now(st_call *call, void *ctx)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_api *api = ctx;
    st_hashes more = {0};
    st_hash before, after;
    st_err err = {0};
    st_store *reader = st_api_reader(api, &err);
    int64_t from = st_call_query_int(call, "from", 0), to;
    int r = reader ? 0 : -err.code;

    pthread_mutex_lock(&api->points->lock);
    if (r == 0)
        r = catch_up(api->points, reader, &err);
    to = st_call_query_int(call, "to", (int64_t)api->points->leaves.n);
    if (r == 0)
        r = prove(api, from, to, &more, &before, &after, &err);
    pthread_mutex_unlock(&api->points->lock);
    st_api_reader_back(api, reader);
    if (r < 0) {
        st_call_fail(call, &err);
    } else {
        st_strbuf_addf(&out, "{\"from\":%lld,\"to\":%lld,\"from_root\":", (long long)from,
                       (long long)to);
        out_hash(&out, &before);
        st_strbuf_add(&out, ",\"root\":");
        out_hash(&out, &after);
        st_strbuf_add(&out, ",\"proof\":[");
        for (size_t i = 0; i < more.n; i++) {
            st_strbuf_add(&out, i > 0 ? "," : "");
            out_hash(&out, &more.v[i]);
        }
        st_strbuf_add(&out, "]}");
        st_call_reply_buf(call, 200, NULL, &out);
    }
    st_vec_free(&more);
}

void st_api_checkpoint_proof(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, proof_now);
}
