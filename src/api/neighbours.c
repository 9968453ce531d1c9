/*
 * Who slowed whom on a shared GPU (control/neighbours.h). Whoever sees a job sees its side of a case. Who sees both jobs is told
 * that the two sides belong together; nobody else is told whom the other side is.
 */
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "control/neighbours.h"

typedef struct cases {
    ST_VEC(st_case) v;
} cases;

static int add_case(void *ctx, const st_document_row *row, st_err *err)
{
    cases *list = ctx;
    st_case c;

    if (!st_case_read(row->doc, &c))
        return st_fail(err, ST_ECORRUPT, "the document of neighbours %s is damaged", row->name);
    st_vec_push(&list->v, c);
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    const st_case *x = a, *y = b;

    return (x->last_ms < y->last_ms) - (x->last_ms > y->last_ms);
}

/* A name that went to another account is not the caller's. */
static bool sees(st_api *api, const st_call *call, const st_case_job *j)
{
    return j->job && st_api_sees(api, call, j->account) &&
           st_directory_serial(api->dir, j->account) == j->serial;
}

/* Whoever has ended slows nobody and is slowed by nobody, also if its node was lost before it could say so. */
static void close_ended(st_store *reader, st_case *c)
{
    for (int s = 0; s < 2 && c->state != ST_CASE_OVER; s++) {
        ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
        st_job_row row = {0};
        st_err err;

        if (c->side[s].job &&
            (st_store_job_get(reader, (int64_t)c->side[s].job, arena, &row, &err) < 0 ||
             row.end_ms != ST_STORE_NEVER))
            c->state = ST_CASE_OVER;
    }
}

static void side_json(const st_api *api, const st_case *c, st_case_side side, bool both,
                      st_strbuf *out)
{
    const st_case_job *j = &c->side[side];
    char id[ST_ID_TEXT], text[ST_CASE_TEXT];

    st_control_id_text(api->control, j->job, id);
    st_case_text(c, side, text);
    st_strbuf_addc(out, '{');
    st_out_text(out, "job", id);
    st_out_text(out, "name", j->name);
    st_out_text(out, "account", j->account);
    st_out_text(out, "side", side == ST_SIDE_VICTIM ? "slowed" : "slows");
    st_out_text(out, "state", st_case_state_name(c->state));
    if (c->state == ST_CASE_HELD)
        st_out_text(out, "action", st_nb_rung_name(c->action));
    st_out_text(out, "node", c->node);
    st_out_int(out, "gpu", c->gpu);
    if (side == ST_SIDE_VICTIM) {
        st_out_milli(out, "p99_ratio", (int64_t)c->before_pct * 10);
        if (c->state == ST_CASE_HELD)
            st_out_milli(out, "p99_ratio_now", (int64_t)c->now_pct * 10);
    }
    st_out_time(out, "since", c->since_ms);
    st_out_time(out, "last", c->last_ms);
    st_out_int(out, "times", c->times);
    st_out_text(out, "text", text);
    if (both) {
        st_control_id_text(api->control, c->side[!side].job, id);
        st_out_text(out, "other", id);
    }
    st_strbuf_addc(out, '}');
}

static void neighbours_now(st_call *call, void *ctx)
{
    st_api *api = ctx;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    bool all = st_call_query_bool(call, "all", false);
    const char *job = st_call_query(call, "job"), *sep = "";
    uint64_t only = 0;
    cases list = {0};
    st_err err = {0};
    st_store *reader = st_api_reader(api, &err);
    int r = reader ? st_store_documents(reader, ST_CASE_KIND, add_case, &list, &err) : -err.code;

    st_api_stamp_now(api, call);
    if (job && !st_control_id_parse(api->control, job, &only))
        only = UINT64_MAX;
    if (r >= 0 && list.v.n > 1)
        qsort(list.v.v, list.v.n, sizeof *list.v.v, newest_first);
    st_strbuf_add(&out, "{\"neighbours\":[");
    for (size_t i = 0; r >= 0 && i < list.v.n; i++) {
        st_case *c = &list.v.v[i];
        bool seen[2] = {sees(api, call, &c->side[0]), sees(api, call, &c->side[1])};

        if (seen[0] || seen[1])
            close_ended(reader, c);
        for (int s = 0; s < 2; s++) {
            if (!seen[s] || (!all && c->state == ST_CASE_OVER) || (only && c->side[s].job != only))
                continue;
            st_strbuf_add(&out, sep);
            side_json(api, c, (st_case_side)s, seen[0] && seen[1], &out);
            sep = ",";
        }
    }
    st_strbuf_add(&out, "]}");
    st_api_reader_back(api, reader);
    st_vec_free(&list.v);
    if (r < 0)
        st_call_fail(call, &err);
    else
        st_call_reply_buf(call, 200, NULL, &out);
}

void st_api_neighbours(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, neighbours_now);
}
