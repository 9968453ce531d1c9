/*
 * Questions to the core (api/ask.h).
 */
#include "api/ask.h"

#include <stdlib.h>
#include <string.h>

#include "api/work.h"
#include "base/mem.h"
#include "base/quote.h"

static int read_state(void *ctx, st_tx *tx, st_err *err)
{
    st_question *q = ctx;

    q->tx = tx;
    return q->fill(q, st_tx_core(tx), err);
}

int st_question_read(st_question *q, st_err *err)
{
    int r = st_control_read(q->api->control, q->how, q->at_least, read_state, q, &q->position, err);

    q->tx = NULL;
    return r;
}

static void done(st_question *q, const st_err *err)
{
    if (err) {
        st_call_fail(q->call, err);
    } else {
        if (q->version[0])
            st_call_set_version(q->call, q->version);
        st_api_stamp(q->api, q->call, q->position);
        st_call_reply_buf(q->call, 200, q->type, &q->out);
    }
    if (q->drop)
        q->drop(q->owner);
    st_strbuf_done(&q->out);
    free(q);
}

static void run(void *arg)
{
    st_question *q = arg;
    st_err err = {0};
    int r = q->work ? q->work(q, &err) : q->ask ? q->ask(q, &err) : st_question_read(q, &err);

    done(q, r < 0 ? &err : NULL);
}

st_question *st_question_new(st_api *api, st_call *call,
                             int (*fill)(st_question *, st_core *, st_err *), const char *name,
                             uint64_t job)
{
    st_question *q = st_xcalloc(1, sizeof *q);

    q->api = api;
    q->call = call;
    q->who = *st_api_who(call);
    q->job = job;
    if (name)
        strncpy(q->name, name, sizeof q->name - 1);
    q->fill = fill;
    return q;
}

void st_question_post(st_question *q)
{
    const char *seen = st_call_header(q->call, "Stint-Position");
    st_err err = {0};

    st_call_defer(q->call);
    if (seen && !st_control_position_parse(q->api->control, seen, &q->at_least)) {
        st_fail(&err, ST_EINVAL,
                "invalid Stint-Position; send one from an earlier answer, or none");
        done(q, &err);
    } else if (!st_work_run(q->work ? q->api->lab : q->api->asks, run, q)) {
        st_fail(&err, ST_EDOWN, "many questions are waiting just now; try again in a moment");
        done(q, &err);
    }
}

void st_api_ask(st_api *api, st_call *call, int (*fill)(st_question *, st_core *, st_err *),
                const char *name, uint64_t job)
{
    st_question_post(st_question_new(api, call, fill, name, job));
}

int32_t st_question_root(const st_question *q, const st_core *core)
{
    return q->who.account[0] ? st_tree_find(st_core_tree(core), q->who.account) : ST_ROOT;
}

int st_question_account(const st_question *q, const st_core *core, const char *name, int32_t *ret,
                        st_err *err)
{
    const st_tree *tree = st_core_tree(core);
    int32_t id = st_tree_find(tree, name), root = st_question_root(q, core);
    char text[ST_QUOTE_MAX];

    if (id <= ST_ROOT || root < 0 || !st_tree_within(tree, id, root))
        return st_fail(err, ST_ENOENT, "there is no account %s", st_quote(text, name));
    *ret = id;
    return 0;
}

bool st_question_owner(const st_question *q)
{
    return q->who.account[0] == '\0';
}
