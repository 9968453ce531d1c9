/*
 * An owner has the configuration read again (stintd/reload.c). That waits for the loop, so a thread of its own does it; the row in
 * the audit log comes first, and the answer where all commands are answered, as with a copy of the store (api/backup.c).
 */
#include <pthread.h>
#include <stdlib.h>

#include "api/state.h"
#include "base/mem.h"

typedef struct reload {
    st_cmd_note note; /* first */
    st_api *api;
    st_call *call;
    st_strbuf said;
    st_err err;
} reload;

static void reload_free(reload *r)
{
    st_strbuf_done(&r->said);
    free(r);
}

static void answer(st_cmd *cmd, const st_err *err)
{
    reload *r = (reload *)cmd;

    (void)err; /* whatever became of the row: it was read or was not */
    if (r->err.code)
        st_call_fail(r->call, &r->err);
    else
        st_call_reply_buf(r->call, 200, NULL, &r->said);
    reload_free(r);
}

static int run_nothing(st_tx *tx, st_cmd *cmd, st_err *err)
{
    (void)tx, (void)cmd, (void)err;
    return 0;
}

static void *run(void *arg)
{
    reload *r = arg;
    st_api *api = r->api;

    if (api->options.reload(api->options.ctx, &r->said, &r->err) < 0)
        r->note.verb = "config.reload_failed";
    else
        r->note.cmd.run = run_nothing;
    r->note.cmd.done = answer;
    r->note.cmd.key = NULL;
    r->note.cmd.keys_itself = true;
    st_api_post(api, r->call, &r->note.cmd);
    return NULL;
}

static void noted(st_cmd *cmd, const st_err *err)
{
    reload *r = (reload *)cmd;
    pthread_t thread;

    if (!err && pthread_create(&thread, NULL, run, r) == 0) {
        pthread_detach(thread);
        return;
    }
    if (!err)
        st_fail(&r->err, ST_EDOWN, "no thread could be started to read the configuration");
    st_call_fail(r->call, err ? err : &r->err);
    reload_free(r);
}

void st_api_reload(st_call *call, void *ctx)
{
    st_api *api = ctx;
    reload *r;
    st_err err = {0};

    if (!api->options.reload) {
        st_fail(&err, ST_ESTATE, "there is no configuration to read");
        st_call_fail(call, &err);
        return;
    }
    r = st_xcalloc(1, sizeof *r);
    r->api = api;
    r->call = call;
    r->note = (st_cmd_note){.who = *st_api_who(call),
                            .verb = "config.reload",
                            .account = "",
                            .target = "configuration"};
    st_cmd_note_init(&r->note);
    r->note.cmd.done = noted;
    st_call_defer(call);
    st_api_post(api, call, &r->note.cmd);
}
