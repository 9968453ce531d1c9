/*
 * Arrays: how far the pieces are, by state and, where they are cut from frames, by frame; and ending them all.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "billing/money.h"
#include "control/control.h"

typedef struct progress {
    int64_t jobs, by_state[ST_JOB_STATE_COUNT];
    int64_t frames, frames_done;
    char name[ST_NAME_MAX + 1];
} progress;

static int add_row(void *ctx, const st_job_row *row, st_err *err)
{
    progress *p = ctx;
    int state = st_job_state_parse(row->state);
    int64_t frames = st_doc_pieces(row->spec, ST_PAY_FRAMES);

    (void)err;
    p->jobs++;
    p->frames += frames;
    if (state >= 0)
        p->by_state[state]++;
    if (state == ST_JOB_DONE)
        p->frames_done += frames;
    strncpy(p->name, row->name, ST_NAME_MAX);
    return 0;
}

static void progress_json(const progress *p, const char *id, st_strbuf *out)
{
    st_strbuf_addc(out, '{');
    st_out_text(out, "array", id);
    st_out_text(out, "name", p->name);
    st_out_int(out, "jobs", p->jobs);
    st_out_raw(out, "states", "{");
    for (int s = 0; s < ST_JOB_STATE_COUNT; s++)
        if (p->by_state[s] > 0)
            st_out_int(out, st_job_state_name((st_job_state)s), p->by_state[s]);
    st_strbuf_addc(out, '}');
    if (p->frames > 0) {
        st_out_int(out, "frames", p->frames);
        st_out_int(out, "frames_done", p->frames_done);
    }
    st_strbuf_addc(out, '}');
}

static void array_get_now(st_call *call, void *ctx)
{
    st_api *api = ctx;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    const char *account = st_api_who(call)->account;
    st_job_filter f = {0};
    st_store *reader = NULL;
    progress p = {0};
    st_err err = {0};
    uint64_t id;
    int r = -ST_ENOENT;

    f.within = st_directory_range(api->dir, account);
    if (st_control_id_parse(api->control, st_call_param(call, "id"), &id)) {
        f.part_of = (int64_t)id;
        st_api_stamp_now(api, call);
        reader = st_api_reader(api, &err);
        r = reader ? st_store_jobs_list(reader, &f, add_row, &p, &err) : -err.code;
        st_api_reader_back(api, reader);
    }
    if (r < 0 && r != -ST_ENOENT) {
        st_call_fail(call, &err);
    } else if (p.jobs == 0) {
        st_api_no_such(call, "array", st_call_param(call, "id"));
    } else {
        progress_json(&p, st_call_param(call, "id"), &out);
        st_call_reply_buf(call, 200, NULL, &out);
    }
}

void st_api_array_get(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, array_get_now);
}

/* ---- cancelling ----------------------------------------------------------------------------- */

/* All pieces that are not over, cancelled by one command each; whoever comes last answers. */
typedef struct sweep {
    st_api *api;
    st_call *call;
    ST_VEC(uint64_t) ids;
    int64_t jobs;
    char name[ST_NAME_MAX + 1];
    _Atomic int64_t left, cancelled, refused;
    pthread_mutex_t lock;
    st_err first; /* of those that were refused */
} sweep;

typedef struct sweep_one {
    st_cmd_job job;
    sweep *all;
} sweep_one;

static int add_id(void *ctx, const st_job_row *row, st_err *err)
{
    sweep *w = ctx;

    (void)err;
    w->jobs++;
    strncpy(w->name, row->name, ST_NAME_MAX);
    if (row->end_ms == ST_STORE_NEVER)
        st_vec_push(&w->ids, (uint64_t)row->id);
    return 0;
}

static void sweep_free(sweep *w)
{
    st_vec_free(&w->ids);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static void sweep_reply(sweep *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    st_api_stamp_now(w->api, w->call);
    if (w->refused > 0 && w->cancelled == 0) {
        st_call_fail(w->call, &w->first);
    } else {
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "array", st_call_param(w->call, "id"));
        st_out_text(&out, "name", w->name);
        st_out_int(&out, "jobs", w->jobs);
        st_out_int(&out, "cancelled", w->cancelled);
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(w->call, 200, NULL, &out);
    }
    sweep_free(w);
}

static void one_done(st_cmd *cmd, const st_err *err)
{
    sweep_one *one = (sweep_one *)cmd;
    sweep *w = one->all;

    free(one);
    if (!err) {
        w->cancelled++;
    } else if (err->code != ST_ESTATE) { /* that it is over by now is as well */
        pthread_mutex_lock(&w->lock);
        if (w->refused++ == 0)
            w->first = *err;
        pthread_mutex_unlock(&w->lock);
    }
    if (--w->left == 0)
        sweep_reply(w);
}

static void array_cancel_now(st_call *call, void *ctx)
{
    st_api *api = ctx;
    const char *account = st_api_who(call)->account;
    sweep *w = st_xcalloc(1, sizeof *w);
    st_job_filter f = {0};
    st_store *reader = NULL;
    st_err err = {0};
    uint64_t id;
    int r = -ST_ENOENT;

    *w = (sweep){.api = api, .call = call, .lock = PTHREAD_MUTEX_INITIALIZER};
    f.within = st_directory_range(api->dir, account);
    if (st_control_id_parse(api->control, st_call_param(call, "id"), &id)) {
        f.part_of = (int64_t)id;
        reader = st_api_reader(api, &err);
        r = reader ? st_store_jobs_list(reader, &f, add_id, w, &err) : -err.code;
        st_api_reader_back(api, reader);
    }
    if (r < 0 && r != -ST_ENOENT) {
        st_call_fail(call, &err);
        sweep_free(w);
    } else if (w->jobs == 0) {
        st_api_no_such(call, "array", st_call_param(call, "id"));
        sweep_free(w);
    } else if (w->ids.n == 0) {
        st_fail(&err, ST_ESTATE, "every job of array %s is over", st_call_param(call, "id"));
        st_call_fail(call, &err);
        sweep_free(w);
    } else {
        size_t n = w->ids.n;
        const uint64_t *ids = w->ids.v; /* freed after the last was posted, not before */

        w->left = (int64_t)n;
        /* The newest first: those that wait do not start when others make room. */
        for (size_t i = 0; i < n; i++) {
            sweep_one *one = st_xcalloc(1, sizeof *one);

            one->all = w;
            one->job.id = ids[i];
            one->job.who = *st_api_who(call);
            st_cmd_job_cancel(&one->job);
            one->job.cmd.done = one_done;
            st_api_post(api, call, &one->job.cmd);
        }
    }
}

void st_api_array_cancel(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, array_cancel_now);
}

/* ---- throttle ------------------------------------------------------------------------------- */

typedef struct array_change {
    st_cmd_job job;
    st_api *api;
    st_call *call;
} array_change;

static void throttled(st_cmd *cmd, const st_err *err)
{
    array_change *c = (array_change *)cmd;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    st_api_stamp_now(c->api, c->call);
    if (err) {
        st_call_fail(c->call, err);
    } else {
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "array", st_call_param(c->call, "id"));
        if (c->job.throttle > 0)
            st_out_int(&out, "throttle", c->job.throttle);
        else
            st_out_raw(&out, "throttle", "null");
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(c->call, 200, NULL, &out);
    }
    free(c);
}

/* {"throttle": 8}; null or none: as many as there is room for. */
static int read_throttle(st_call *call, int *ret, st_err *err)
{
    static const char *const keys[] = {"throttle", NULL};
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    const st_doc_node *node;
    int64_t n = 0;
    int r = st_call_doc(call, &doc, err);

    if (r == 0)
        r = st_doc_expect(doc, st_doc_root(doc), ST_DOC_MAP, err);
    if (r == 0)
        r = st_doc_check_keys(doc, st_doc_root(doc), keys, err);
    if (r < 0)
        return r;
    node = st_doc_get(st_doc_root(doc), "throttle");
    if (!node)
        return st_fail(err, ST_EINVAL, "say how many jobs of the array run at a time: throttle");
    if (node->kind == ST_DOC_SCALAR && strcmp(node->value, "none") != 0)
        r = st_doc_i64(doc, node, 1, INT32_MAX, &n, err);
    *ret = (int)n;
    return r;
}

void st_api_array_patch(st_call *call, void *ctx)
{
    st_api *api = ctx;
    array_change *c = st_xcalloc(1, sizeof *c);
    st_err err = {0};

    c->api = api;
    c->call = call;
    c->job.who = *st_api_who(call);
    if (read_throttle(call, &c->job.throttle, &err) < 0) {
        st_call_fail(call, &err);
        free(c);
        return;
    }
    if (!st_control_id_parse(api->control, st_call_param(call, "id"), &c->job.id)) {
        st_api_no_such(call, "array", st_call_param(call, "id"));
        free(c);
        return;
    }
    st_cmd_array_throttle(&c->job);
    c->job.cmd.done = throttled;
    st_call_defer(call);
    st_api_post(api, call, &c->job.cmd);
}
