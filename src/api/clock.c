/*
 * The machine's clock, which stintd does not follow when it is far away, and the owner's word that it is right.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/state.h"
#include "base/mem.h"

#define SHOWN_S 60 /* what was shown a moment ago may have changed by as much */

static int64_t clock_off(const st_api *api, bool *ret_doubted)
{
    *ret_doubted = false;
    return api->options.clock_off ? api->options.clock_off(api->options.ctx, ret_doubted) : 0;
}

static void reply(const st_api *api, st_call *call)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    bool doubted;
    int64_t off = clock_off(api, &doubted), now = api->options.clock(api->options.ctx);

    st_strbuf_addc(&out, '{');
    st_out_time(&out, "now", now);
    st_out_time(&out, "machine", now + off);
    st_out_int(&out, "ahead_seconds", off / 1000);
    st_out_raw(&out, "believed", doubted ? "false" : "true");
    st_strbuf_addc(&out, '}');
    st_call_reply_buf(call, 200, NULL, &out);
}

void st_api_clock_get(st_call *call, void *ctx)
{
    reply(ctx, call);
}

typedef struct accept {
    st_cmd_note note; /* first */
    st_api *api;
    st_call *call;
    int64_t ahead_s;
    char detail[64];
} accept;

static int check(const accept *a, st_err *err)
{
    bool doubted;
    int64_t off_s = clock_off(a->api, &doubted) / 1000;

    if (!doubted)
        return st_fail(err, ST_ESTATE, "the machine's clock is believed already");
    if (off_s < 0)
        return st_fail(err, ST_ESTATE,
                       "the machine's clock is %" PRId64 " s behind: time cannot go back, and goes "
                       "on from where it is",
                       -off_s);
    if (off_s - a->ahead_s > SHOWN_S || a->ahead_s - off_s > SHOWN_S)
        return st_fail(err, ST_ESTATE,
                       "the machine's clock is %" PRId64 " s ahead, not %" PRId64
                       ": look at it again",
                       off_s, a->ahead_s);
    return 0;
}

/* The row in the audit log comes first, at the time that was. */
static void noted(st_cmd *cmd, const st_err *err)
{
    accept *a = (accept *)cmd;
    st_err why = {0};

    if (err)
        st_call_fail(a->call, err);
    else if (check(a, &why) < 0 || !a->api->options.clock_accept(a->api->options.ctx))
        st_call_fail(a->call, &why);
    else
        reply(a->api, a->call);
    free(a);
}

void st_api_clock_accept(st_call *call, void *ctx)
{
    accept *a = st_xcalloc(1, sizeof *a);
    st_err err = {0};
    json_t *body = NULL;
    int r = st_call_json(call, &body, &err);
    const json_t *ahead = json_object_get(body, "ahead_seconds");

    a->api = ctx;
    a->call = call;
    a->ahead_s = json_integer_value(ahead);
    if (r == 0 && (!json_is_integer(ahead) || json_object_size(body) != 1))
        r = st_fail(&err, ST_EINVAL,
                    "give ahead_seconds, as GET /v1/admin/clock shows it, and nothing else");
    if (r == 0)
        r = check(a, &err);
    json_decref(body);
    if (r < 0) {
        st_call_fail(call, &err);
        free(a);
        return;
    }
    snprintf(a->detail, sizeof a->detail, "{\"ahead_seconds\":%" PRId64 "}", a->ahead_s);
    a->note = (st_cmd_note){.who = *st_api_who(call),
                            .verb = "clock.accept",
                            .account = "",
                            .target = "clock",
                            .detail = a->detail};
    st_cmd_note_init(&a->note);
    a->note.cmd.done = noted;
    st_call_defer(call);
    st_api_post(a->api, call, &a->note.cmd);
}
