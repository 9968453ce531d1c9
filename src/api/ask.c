/*
 * Questions to the core (api/ask.h).
 */
#include "api/ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"

static int run(st_cmd_ask *cmd, st_tx *tx, st_err *err)
{
    st_question *q = (st_question *)cmd;

    q->tx = tx;
    return q->fill(q, st_tx_core(tx), err);
}

static void done(st_cmd *cmd, const st_err *err)
{
    st_question *q = (st_question *)cmd;

    if (err) {
        st_call_fail(q->call, err);
    } else {
        if (q->tag[0])
            st_call_set_etag(q->call, q->tag);
        st_call_reply_buf(q->call, 200, q->type, &q->out);
    }
    if (q->drop)
        q->drop(q->owner);
    st_strbuf_done(&q->out);
    free(q);
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
    q->ask.ask = run;
    st_cmd_ask_init(&q->ask);
    q->ask.cmd.done = done;
    return q;
}

void st_question_post(st_question *q)
{
    st_call_defer(q->call);
    st_api_post(q->api, &q->ask.cmd);
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
