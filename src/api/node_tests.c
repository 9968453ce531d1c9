/*
 * Tests of nodes: owners ask for one, and say what GPUs of a type must reach. Everybody sees these limits.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "api/state.h"
#include "base/mem.h"
#include "base/quote.h"
#include "health/health.h"

/* ---- asking for a test ----------------------------------------------------------------------- */

typedef struct trial {
    st_cmd_trial cmd; /* first */
    st_call *call;
    char name[ST_NAME_MAX + 2]; /* one too long for a name is still none */
} trial;

static void test_done(st_cmd *cmd, const st_err *err)
{
    trial *c = (trial *)cmd;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    st_strbuf_addc(&out, '{');
    st_out_text(&out, "name", c->name);
    st_strbuf_addc(&out, '}');
    if (err)
        st_call_fail(c->call, err);
    else
        st_call_reply_buf(c->call, 202, NULL, &out);
    free(c);
}

/* Without a body it is a quick one. */
static int read_level(st_call *call, st_test_level *ret, st_err *err)
{
    char q[ST_QUOTE_MAX];
    const char *key, *word;
    json_t *doc = NULL, *value;
    size_t bytes;
    int r = 0;

    *ret = ST_TEST_QUICK;
    (void)st_call_body(call, &bytes);
    if (bytes > 0)
        r = st_call_json(call, &doc, err);
    if (r == 0 && doc && !json_is_object(doc))
        r = st_fail(err, ST_EINVAL, "a test is an object with a level");
    json_object_foreach(doc, key, value)
    {
        int level = st_test_level_parse(json_string_value(value));

        if (r < 0)
            break;
        word = json_string_value(value);
        if (strcmp(key, "level") != 0)
            r = st_fail(err, ST_EINVAL, "unknown key %s; a test has a level", st_quote(q, key));
        else if (level < 0)
            r = st_fail(err, ST_EINVAL, "level is quick, short, long or burn, not %s",
                        st_quote(q, word ? word : "that"));
        else
            *ret = (st_test_level)level;
    }
    json_decref(doc);
    return r;
}

void st_api_node_test(st_call *call, void *ctx)
{
    trial *c = st_xcalloc(1, sizeof *c);
    st_err err = {0};

    c->call = call;
    strncpy(c->name, st_call_param(call, "name"), ST_NAME_MAX + 1);
    c->cmd.who = *st_api_who(call);
    c->cmd.node = c->name;
    c->cmd.force = st_call_query_bool(call, "force", false);
    st_cmd_trial_init(&c->cmd);
    c->cmd.cmd.done = test_done;
    if (read_level(call, &c->cmd.level, &err) < 0) {
        test_done(&c->cmd.cmd, &err);
        return;
    }
    st_call_defer(call);
    st_api_post(ctx, call, &c->cmd.cmd);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static int fill_limits(st_question *q, st_core *core, st_err *err)
{
    st_diag_limits usual = st_diag_limits_of(q->name), own = usual;
    const st_limit_row *row;
    char text[ST_QUOTE_MAX];
    const char *word;
    json_t *doc, *value;
    st_err ignored;

    if (st_fleet_type(st_core_fleet(core), q->name) < 0)
        return st_fail(err, ST_ENOENT, "there is no GPU type %s", st_quote(text, q->name));
    doc = st_tx_node_past(q->tx, "test-limits", q->name);
    json_object_foreach(doc, word, value)(void)
        st_limit_set(&own, word, json_integer_value(value), &ignored);
    json_decref(doc);
    st_strbuf_addc(&q->out, '{');
    st_out_text(&q->out, "type", q->name);
    st_out_raw(&q->out, "limits", "[");
    for (int i = 0; (row = st_limit_row_at(i)); i++) {
        st_strbuf_add(&q->out, i > 0 ? ",{" : "{");
        st_out_text(&q->out, "limit", row->word);
        st_out_int(&q->out, "value", st_limit_get(&own, i));
        st_out_int(&q->out, "default", st_limit_get(&usual, i));
        st_out_text(&q->out, "unit", row->unit);
        st_out_text(&q->out, "about", row->about);
        st_strbuf_addc(&q->out, '}');
    }
    st_strbuf_add(&q->out, "]}");
    return 0;
}

void st_api_type_limits(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_limits, st_call_param(call, "name"), 0);
}

typedef struct change {
    st_cmd_limits cmd; /* first */
    st_call *call;
    json_t *doc;
    char name[ST_NAME_MAX + 2];
} change;

static void changed(st_cmd *cmd, const st_err *err)
{
    change *c = (change *)cmd;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    st_strbuf_addc(&out, '{');
    st_out_text(&out, "name", c->name);
    st_strbuf_addc(&out, '}');
    if (err)
        st_call_fail(c->call, err);
    else
        st_call_reply_buf(c->call, 200, NULL, &out);
    json_decref(c->doc);
    free(c);
}

void st_api_type_limits_patch(st_call *call, void *ctx)
{
    change *c = st_xcalloc(1, sizeof *c);
    st_err err = {0};
    int r;

    c->call = call;
    strncpy(c->name, st_call_param(call, "name"), ST_NAME_MAX + 1);
    c->cmd.who = *st_api_who(call);
    c->cmd.type = c->name;
    st_cmd_limits_init(&c->cmd);
    c->cmd.cmd.done = changed;
    r = st_call_json(call, &c->doc, &err);
    if (r == 0 && json_object_size(c->doc) == 0)
        r = st_fail(&err, ST_EINVAL, "nothing is to be changed: give limits with their values");
    c->cmd.set = c->doc;
    if (r < 0) {
        changed(&c->cmd.cmd, &err);
        return;
    }
    st_call_defer(call);
    st_api_post(ctx, call, &c->cmd.cmd);
}
