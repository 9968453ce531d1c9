/*
 * What became of nodes: their tests, states and remedies. Everybody sees it; who decided something, and what they wrote, is for
 * owners. Tests are asked for in node_tests.c.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "api/state.h"
#include "base/mem.h"
#include "base/quote.h"

static void past_json(st_question *q, json_t *list)
{
    json_t *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        const char *by = json_string_value(json_object_get(row, "by"));
        ST_CLEANUP(st_freep) char *text = NULL;
        int64_t at_ms = json_integer_value(json_object_get(row, "at"));

        if (by && !st_question_owner(q) && strcmp(by, "stintd") != 0)
            json_object_del(row, "reason");
        if (!st_question_owner(q))
            json_object_del(row, "by");
        json_object_del(row, "at");
        json_object_del(row, "no"); /* the number that its agent knows it by, which is `test` */
        if (json_object_get(row, "taken")) { /* of a remedy: numbers of ours */
            char id[ST_ID_TEXT];

            st_control_name(q->api->control, ST_INCIDENT_ID,
                            (uint64_t)json_integer_value(json_object_get(row, "incident")), id);
            json_object_set_new(row, "incident", json_string(id));
            json_object_del(row, "taken");
        }
        text = json_dumps(row, JSON_COMPACT);
        st_strbuf_add(&q->out, i > 0 ? ",{" : "{");
        st_out_time(&q->out, "at", at_ms);
        st_strbuf_addf(&q->out, ",%s", text + 1);
    }
}

static int fill_past(st_question *q, const st_core *core, const char *kind, const char *key,
                     st_err *err)
{
    char text[ST_QUOTE_MAX];
    json_t *list;

    if (st_fleet_node(st_core_fleet(core), q->name) < 0)
        return st_fail(err, ST_ENOENT, "there is no node %s", st_quote(text, q->name));
    list = st_tx_node_past(q->tx, kind, q->name);
    st_strbuf_addf(&q->out, "{\"%s\":[", key);
    past_json(q, list);
    st_strbuf_add(&q->out, "]}");
    json_decref(list);
    return 0;
}

static int fill_tests(st_question *q, st_core *core, st_err *err)
{
    return fill_past(q, core, "node-tests", "tests", err);
}

static int fill_history(st_question *q, st_core *core, st_err *err)
{
    return fill_past(q, core, "node-history", "history", err);
}

static int fill_remedies(st_question *q, st_core *core, st_err *err)
{
    return fill_past(q, core, "node-remedies", "remedies", err);
}

void st_api_node_tests(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_tests, st_call_param(call, "name"), 0);
}

void st_api_node_history(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_history, st_call_param(call, "name"), 0);
}

void st_api_node_remedies(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_remedies, st_call_param(call, "name"), 0);
}
