/*
 * Saved views: what somebody looks at often in the console, under a name of their own. They are the person's (a user of
 * an account), not the account's: nobody else reads them, and no name in here chooses a path or a page by itself.
 *
 * Invariants: a person's views are one document, "ACCOUNT USER" (no name has a blank), in the order they were made; a
 * person has at most ST_VIEWS_MAX of them, and an account what its service quota says; they go with their account.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/state.h"

#define KIND "view"

void st_view_key(const st_identity *who, char ret[ST_VIEW_KEY])
{
    snprintf(ret, ST_VIEW_KEY, "%s %s", who->account, who->user);
}

/* -1: there is none of that name. */
static int find_view(const json_t *list, const char *name)
{
    const json_t *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0)
            return (int)i;
    }
    return -1;
}

/* Those there are; an empty list where nothing was saved yet. */
static json_t *read_views(st_tx *tx, const char *key, int *ret_r, st_err *err)
{
    json_t *doc = st_document_json(tx->ctl->store, KIND, key, ret_r, err);
    json_t *list = json_incref(json_object_get(doc, "views"));

    json_decref(doc);
    return list ? list : json_array();
}

static int write_views(st_tx *tx, const char *key, json_t *list, st_err *err)
{
    if (json_array_size(list) == 0)
        return st_document_erase(tx, KIND, key, err);
    return st_document_write(tx, KIND, key, json_pack("{s:O}", "views", list), err);
}

static int add_view(st_tx *tx, const st_cmd_view *c, json_t *list, int at, st_err *err)
{
    json_t *row = json_pack("{s:s,s:s,s:s,s:I}", "name", c->name, "page", c->page, "query",
                            c->query, "saved", (json_int_t)tx->now);
    int r = 0;

    if (at >= 0) {
        json_array_set_new(list, (size_t)at, row);
        return 0;
    }
    if (json_array_size(list) >= ST_VIEWS_MAX)
        r = st_fail(err, ST_ELIMIT, "you have %d saved views, and that is the most; remove one",
                    ST_VIEWS_MAX);
    if (r == 0)
        r = st_allowance_charge(tx->ctl->allowance, c->who.account, ST_AL_VIEWS, 1, c->who.account,
                                err);
    if (r < 0)
        json_decref(row);
    else
        json_array_append_new(list, row);
    return r;
}

static int run_view(st_tx *tx, st_cmd *cmd, st_err *err)
{
    const st_cmd_view *c = (const st_cmd_view *)cmd;
    char key[ST_VIEW_KEY], q[ST_QUOTE_MAX];
    json_t *list;
    int at, r = st_tx_open(tx, err);

    if (r < 0)
        return r;
    st_view_key(&c->who, key);
    list = read_views(tx, key, &r, err);
    at = find_view(list, c->name);
    if (r < 0) {
        r = st_tx_fault(tx, r, err);
    } else if (c->page) {
        r = add_view(tx, c, list, at, err);
    } else if (at < 0) {
        r = st_fail(err, ST_ENOENT, "there is no view %s", st_quote(q, c->name));
    } else {
        json_array_remove(list, (size_t)at);
        st_allowance_release(tx->ctl->allowance, c->who.account, ST_AL_VIEWS, 1);
    }
    if (r == 0)
        r = write_views(tx, key, list, err);
    json_decref(list);
    if (r == 0) /* what it is called is the person's own business */
        r = st_tx_audit(tx, &c->who, c->page ? "view.put" : "view.remove", c->who.account,
                        c->who.user, NULL, err);
    return r;
}

void st_cmd_view_init(st_cmd_view *cmd)
{
    cmd->cmd.run = run_view;
}

/* ---- with their account --------------------------------------------------------------------- */

typedef struct gathering {
    const char *account;
    ST_VEC(char *) keys;
} gathering;

static int gather(void *ctx, const st_document_row *row, st_err *err)
{
    gathering *g = ctx;
    size_t n = strlen(g->account);

    (void)err;
    if (strncmp(row->name, g->account, n) == 0 && row->name[n] == ' ')
        st_vec_push(&g->keys, st_xstrdup(row->name));
    return 0;
}

int st_views_forget(st_tx *tx, const char *account, st_err *err)
{
    gathering g = {.account = account};
    int r = st_tx_fault(tx, st_store_documents(tx->ctl->store, KIND, gather, &g, err), err);

    for (size_t i = 0; i < g.keys.n; i++) {
        json_t *list = read_views(tx, g.keys.v[i], &r, err);

        st_allowance_release(tx->ctl->allowance, account, ST_AL_VIEWS,
                             (int64_t)json_array_size(list));
        json_decref(list);
        if (r == 0)
            r = st_document_erase(tx, KIND, g.keys.v[i], err);
        free(g.keys.v[i]);
    }
    st_vec_free(&g.keys);
    return r;
}

static int count_views(void *ctx, const st_document_row *row, st_err *err)
{
    ST_CLEANUP(st_freep) char *account = st_xstrndup(row->name, strcspn(row->name, " "));
    json_t *doc = json_loads(row->doc, 0, NULL);

    (void)err;
    st_allowance_put(ctx, account, ST_AL_VIEWS,
                     (int64_t)json_array_size(json_object_get(doc, "views")));
    json_decref(doc);
    return 0;
}

int st_count_views(st_control *ctl, st_err *err)
{
    st_allowance_clear(ctl->allowance, ST_AL_VIEWS);
    return st_store_documents(ctl->store, KIND, count_views, ctl->allowance, err);
}
