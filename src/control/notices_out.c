/*
 * Deliveries on their way out, and what came of them (control/notices.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "control/notices_state.h"

static void hand(st_control *ctl, const st_noticer *n, const st_notice_row *row)
{
    const st_outgoing o = {.number = row->number,
                           .notice = n->key,
                           .account = n->account,
                           .name = n->name,
                           .org = n->org,
                           .id = row->id,
                           .title = row->title,
                           .body = row->body,
                           .at_ms = row->at_ms,
                           .mail = n->mail};

    if (ctl->options.deliver)
        ctl->options.deliver(ctl->options.ctx, &o);
}

void st_notices_out(st_control *ctl)
{
    st_noticers *all = ctl->notices;

    for (size_t i = 0; all && i < all->rows.n; i++) {
        const st_noticer *n = st_notices_find(ctl, all->rows.v[i].key);

        if (n)
            hand(ctl, n, &all->rows.v[i]);
        st_notices_drop_row(&all->rows.v[i]);
    }
    if (all)
        st_vec_clear(&all->rows);
}

/* ---- again ------------------------------------------------------------------------------------------------- */

static int hand_row(void *ctx, const st_document_row *row, st_err *err)
{
    st_control *ctl = ctx;
    ST_CLEANUP(st_freep) char *key = st_xstrndup(row->name, strcspn(row->name, " "));
    const char *blank = strchr(row->name, ' '), *id, *title, *body;
    const st_noticer *n = st_notices_find(ctl, key);
    json_t *doc = json_loads(row->doc, 0, NULL);
    json_int_t at;

    (void)err;
    if (n && blank &&
        json_unpack(doc, "{s:s,s:s,s:s,s:I}", "id", &id, "title", &title, "body", &body, "at",
                    &at) == 0) {
        const st_notice_row r = {.number = strtoull(blank + 1, NULL, 10),
                                 .id = (char *)(uintptr_t)id,
                                 .title = (char *)(uintptr_t)title,
                                 .body = (char *)(uintptr_t)body,
                                 .at_ms = at};

        hand(ctl, n, &r);
    }
    json_decref(doc);
    return 0;
}

int st_notices_again(st_tx *tx, st_cmd *cmd, st_err *err)
{
    int r = st_tx_open(tx, err);

    (void)cmd;
    if (r == 0)
        r = st_tx_fault(
            tx, st_store_documents(tx->ctl->store, "notice-out", hand_row, tx->ctl, err), err);
    if (r >= 0)
        r = st_tx_fault(tx, st_notices_keep_budgets(tx, err), err);
    return r < 0 ? r : 0;
}

/* ---- what came of them ---------------------------------------------------------------------------------------- */

static void note(json_t *list, const st_notice_outcome *o, int64_t now)
{
    json_t *entry =
        json_pack("{s:s,s:s,s:i,s:i,s:s,s:I}", "id", o->id, "state", o->state, "tries", o->tries,
                  "status", (int)o->status, "text", o->text, "changed", (json_int_t)now);
    json_t *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "id")), o->id) == 0) {
            json_array_remove(list, i);
            break;
        }
    }
    json_array_append_new(list, entry);
    while (json_array_size(list) > ST_NOTICE_KEPT)
        json_array_remove(list, 0);
}

static int take_out(st_tx *tx, st_noticer *n, const st_notice_outcome *o, st_err *err)
{
    char name[ST_NAME_MAX + ST_NOTICE_NAME_MAX + 32];

    if (strcmp(o->state, "waiting") == 0 || !st_notice_owns(n->made_ms, o->number))
        return 0;
    snprintf(name, sizeof name, "%s %020" PRIu64, n->key, o->number);
    n->waiting = ST_MAX(n->waiting - 1, 0);
    tx->ctl->notices->orgs.v[n->org] = ST_MAX(tx->ctl->notices->orgs.v[n->org] - 1, 0);
    return st_document_erase(tx, "notice-out", name, err);
}

/* All of one notice, in one document. Of one that was removed meanwhile nothing is left. */
static int came(st_tx *tx, const char *key, const st_cmd_outcomes *c, size_t from, st_err *err)
{
    st_noticer *n = st_notices_find(tx->ctl, key);
    json_t *list;
    int r = 0;

    if (!n)
        return 0;
    list = st_document_json(tx->ctl->store, "notice-log", key, &r, err);
    if (!json_is_array(list)) {
        json_decref(list);
        list = json_array();
    }
    for (size_t i = from; r == 0 && i < c->n; i++) {
        if (strcmp(c->v[i].notice, key) != 0 || !st_notice_owns(n->made_ms, c->v[i].number))
            continue;
        note(list, &c->v[i], tx->now);
        r = take_out(tx, n, &c->v[i], err);
    }
    if (r == 0)
        return st_document_write(tx, "notice-log", key, list, err);
    json_decref(list);
    return r;
}

int st_notices_came(st_tx *tx, st_cmd *cmd, st_err *err)
{
    const st_cmd_outcomes *c = (const st_cmd_outcomes *)cmd;
    int r = st_tx_open(tx, err);

    for (size_t i = 0; r == 0 && i < c->n; i++) {
        bool first = true;

        for (size_t k = 0; k < i && first; k++)
            first = strcmp(c->v[k].notice, c->v[i].notice) != 0;
        if (first)
            r = came(tx, c->v[i].notice, c, i, err);
    }
    return r < 0 ? st_tx_fault(tx, r, err) : 0;
}
