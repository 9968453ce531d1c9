/*
 * Arrays: how far the pieces are, by state and, where they are cut from frames, by frame.
 */
#include <string.h>

#include "api/state.h"
#include "control/money.h"

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
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    const char *account = st_api_who(call)->account;
    st_job_filter f = {0};
    st_store *reader = NULL;
    progress p = {0};
    st_err err = {0};
    uint64_t id;
    int r = -ST_ENOENT;

    if (account[0])
        f.accounts = st_directory_below(api->dir, account, arena, &f.naccounts);
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
