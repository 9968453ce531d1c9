/*
 * Priority classes: the owner says what their names stand for; everybody sees those that are for them, and what their jobs
 * pay.
 */
#include <string.h>

#include "api/ask.h"
#include "base/mem.h"
#include "billing/money.h"
#include "ledger/price.h"
#include "ledger/text.h"

/* What the price book in force says of it. */
static void put_price(json_t *row, const st_price_book *book)
{
    char ratio[ST_RATIO_MAX], text[ST_RATIO_MAX + 1];
    const char *name = json_string_value(json_object_get(row, "name"));

    snprintf(text, sizeof text, "%s%%",
             st_ratio(ratio, book ? st_price_class_bp(book, name) : ST_BP, 100, 2));
    json_object_set_new(row, "price", json_string(text));
}

static int fill(st_question *q, st_core *core, st_err *err)
{
    const st_ledger *ledger = st_tx_ledger(q->tx);
    const st_price_book *book = ledger ? st_ledger_book(ledger, st_core_now(core)) : NULL;
    json_t *list = st_classes_list(st_control_classes(q->api->control), q->who.account,
                                   q->who.role == ST_ROLE_OWNER);
    char *text;
    json_t *row;
    size_t i;

    (void)err;
    json_array_foreach(list, i, row) put_price(row, book);
    text = json_dumps(list, JSON_COMPACT | JSON_SORT_KEYS);
    st_strbuf_addf(&q->out, "{\"classes\":%s}", text);
    free(text);
    json_decref(list);
    return 0;
}

void st_api_classes_list(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill, NULL, 0);
}

/* What was checked before the commit is not refused after it. */
static void publish(st_control *ctl, st_cmd *cmd)
{
    const st_document_change *c = (const st_document_change *)cmd;
    st_err err;

    st_classes_set(st_control_classes(ctl), c->name, c->document.doc, c->document.version, &err);
}

static int check_count(st_api *api, const char *name, st_err *err)
{
    json_t *all = st_classes_list(st_control_classes(api->control), "", true), *row;
    bool full = json_array_size(all) >= ST_CLASSES_MAX;
    size_t i;

    json_array_foreach(all, i, row) full =
        full && strcmp(json_string_value(json_object_get(row, "name")), name) != 0;
    json_decref(all);
    return full ? st_fail(err, ST_ELIMIT, "there are %d classes, and that is all there can be",
                          ST_CLASSES_MAX)
                : 0;
}

void st_api_class_put(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_document_change *c = st_document_change_new(call, api, "class");
    st_err err = {0};
    int r = st_call_json(call, &c->doc, &err);

    if (r == 0)
        r = st_classes_read(c->name, c->doc, &err);
    if (r == 0)
        r = st_document_accounts_ok(api, json_object_get(c->doc, "accounts"), &err);
    if (r == 0)
        r = check_count(api, c->name, &err);
    if (r == 0)
        c->text = json_dumps(c->doc, JSON_COMPACT | JSON_SORT_KEYS);
    c->kept = st_xstrdup(c->name);
    c->document.cmd.publish = publish;
    st_document_change_post(c, r, &err);
}

void st_api_class_remove(st_call *call, void *ctx)
{
    st_document_change *c = st_document_change_new(call, ctx, "class");

    c->kept = st_xstrdup(c->name);
    c->document.cmd.publish = publish;
    st_document_change_post(c, 0, NULL);
}
