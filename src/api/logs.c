/*
 * What tasks have written, for their owners: as much as there is, or, with follow, what comes next.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/park.h"
#include "api/state.h"
#include "base/mem.h"

#define READ_MAX   ((size_t)4 << 20)
#define WAIT_MAX_S 60

typedef struct follower {
    st_parked parked; /* first */
    st_api *api;
    st_call *call;
    st_log_ask ask;
    int64_t token; /* of who asks: it is looked at again with every look */
    bool over;     /* the job is: nothing comes any more */
} follower;

static void put_number(const follower *f, const char *header, int64_t value)
{
    char number[24];

    snprintf(number, sizeof number, "%" PRId64, value);
    st_call_set_header(f->call, header, number);
}

/* One who follows asks for a stay by its number; that there is a newer one tells it to go on there. */
static void reply(const follower *f, st_log_got *got)
{
    put_number(f, "Stint-Log-Next", got->next);
    if (got->stay > 0)
        put_number(f, "Stint-Log-Stay", got->stay);
    if (got->newest > 0)
        put_number(f, "Stint-Log-Newest", got->newest);
    if (f->over && got->text.n == 0)
        st_call_set_header(f->call, "Stint-Log-End", "true");
    if (!got->text.s)
        st_strbuf_add(&got->text, "");
    st_call_reply_buf(f->call, 200, "text/plain; charset=utf-8", &got->text);
}

/* Waits while there is nothing new; a job that has not begun to write is one of those. */
static bool look_log(st_parked *p, bool late)
{
    follower *f = (follower *)p;
    const st_api *api = f->api;
    st_engine *engine = st_control_engine(api->control);
    st_log_got got = {.next = f->ask.offset, .stay = f->ask.stay};
    st_err err = {0};
    bool done = true;
    int r;

    f->ask.now = api->options.clock(api->options.ctx);
    if (!st_directory_opens(api->dir, f->token, f->ask.now)) {
        st_fail(&err, ST_EAUTH, "this token is not valid any more: it has expired or was revoked");
        st_call_fail(f->call, &err);
        return true;
    }
    r = engine->ops->logs(engine, &f->ask, &got, &err);
    if (r == 0 && (got.text.n > 0 || late || f->over || got.newest > got.stay))
        reply(f, &got);
    else if (r == -ST_ENOENT && f->parked.wait_ms > 0 && late && !f->over)
        reply(f, &got);
    else if (r < 0 && (r != -ST_ENOENT || late || f->over))
        st_call_fail(f->call, &err);
    else
        done = false;
    st_log_got_done(&got);
    return done;
}

void st_api_job_logs(st_call *call, void *ctx)
{
    st_api *api = ctx;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_engine *engine = st_control_engine(api->control);
    bool follow = st_call_query_bool(call, "follow", false);
    int64_t wait_s = follow ? st_call_query_int(call, "wait", 30) : 0;
    int64_t since;
    st_err err = {0};
    st_job_row row;
    follower *f;
    uint64_t id;

    if (!st_api_find_job(api, call, arena, &id, &row))
        return;
    if (st_api_query_time(api, call, "since", &since, &err) < 0) {
        st_call_fail(call, &err);
        return;
    }
    if (!engine || !engine->ops->logs) {
        st_fail(&err, ST_ENOENT, "there are no logs: no engine keeps them here");
        st_call_fail(call, &err);
        return;
    }
    if (!follow && row.start_ms == ST_STORE_NEVER) {
        const char *name = st_call_param(call, "id");

        if (row.end_ms == ST_STORE_NEVER)
            st_fail(&err, ST_ENOENT,
                    "job %s has not started, so it has written nothing; `stint why %s` says why",
                    name, name);
        else
            st_fail(&err, ST_ENOENT, "job %s ended before it started (%s), so it wrote nothing",
                    name, row.state);
        st_call_fail(call, &err);
        return;
    }
    f = st_xcalloc(1, sizeof *f);
    *f = (follower){.parked = {.key = ST_PARK_JOB(id),
                               .wait_ms = ST_MAX(0, ST_MIN(wait_s, WAIT_MAX_S)) * 1000,
                               .often = true,
                               .look = look_log},
                    .api = api,
                    .call = call,
                    .token = st_api_who(call)->token,
                    .ask = {.job = id,
                            .stay = (int)st_call_query_int(call, "stay", 0),
                            .task = (int)st_call_query_int(call, "task", 0),
                            .offset = ST_MAX(st_call_query_int(call, "offset", 0), 0),
                            .since_ms = since,
                            .tail = ST_MAX(st_call_query_int(call, "tail", 0), 0),
                            .max = READ_MAX},
                    .over = row.end_ms != ST_STORE_NEVER};
    f->parked.late = f->parked.wait_ms == 0;
    st_call_defer(call);
    st_park_add(api->park, &f->parked);
}
