/*
 * Notices as tenants make and remove them (control/notices.h).
 */
#include "control/notices.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/notices_state.h"

#define SEALED "notice/%s" /* no job's secret has such a name */

const char *const st_notice_words[] = {
#define X(id, word, about) word,
    ST_NOTICE_TABLE(X)
#undef X
        NULL,
};

void st_notices_key(const char *account, const char *name, st_strbuf *out)
{
    st_strbuf_addf(out, "%s/%s", account, name);
}

/* ---- what the loop has of them ---------------------------------------------------------------------- */

static void noticer_free(st_noticer *n)
{
    if (!n)
        return;
    free(n->key);
    free(n->account);
    free(n->name);
    free(n->by);
    free(n->by_account);
    free(n);
}

void st_notices_drop_row(st_notice_row *row)
{
    free(row->key);
    free(row->id);
    free(row->title);
    free(row->body);
}

void st_noticers_free(st_control *ctl)
{
    st_noticers *all = ST_TAKE(ctl->notices);

    if (!all)
        return;
    for (size_t i = 0; i < all->at.n; i++)
        for (st_noticer *n = all->at.v[i], *next; n; n = next) {
            next = n->next;
            noticer_free(n);
        }
    st_map_free(all->named);
    for (size_t i = 0; i < all->rows.n; i++)
        st_notices_drop_row(&all->rows.v[i]);
    for (size_t i = 0; i < all->late.n; i++) {
        free(all->late.v[i].account);
        free(all->late.v[i].title);
        json_decref(all->late.v[i].more);
    }
    st_vec_free(&all->at);
    st_vec_free(&all->orgs);
    st_vec_free(&all->rows);
    st_vec_free(&all->late);
    free(all);
}

st_noticer *st_notices_find(const st_control *ctl, const char *key)
{
    int64_t at;

    return ctl->notices && st_map_get(ctl->notices->named, key, &at) ? (st_noticer *)(intptr_t)at
                                                                     : NULL;
}

st_noticer *st_notices_of(const st_control *ctl, int32_t account)
{
    return (size_t)account < ctl->notices->at.n ? ctl->notices->at.v[account] : NULL;
}

static const char *text_of(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));

    return text ? text : "";
}

/* NULL: its account is not there. */
st_noticer *st_notices_add(st_control *ctl, const char *key, const json_t *doc)
{
    const st_tree *tree = st_core_tree(ctl->core);
    const char *slash = strchr(key, '/');
    ST_CLEANUP(st_freep) char *account = st_xstrndup(key, slash ? (size_t)(slash - key) : 0);
    int32_t id = slash ? st_tree_find(tree, account) : -1;
    const json_t *word;
    st_noticer *n;
    size_t i;

    if (id <= ST_ROOT)
        return NULL;
    n = st_xcalloc(1, sizeof *n);
    n->key = st_xstrdup(key);
    n->account = ST_TAKE(account);
    n->name = st_xstrdup(slash + 1);
    n->by = st_xstrdup(text_of(doc, "by"));
    n->by_account = st_xstrdup(text_of(doc, "by_account"));
    n->id = id;
    n->org = st_organisation(tree, id);
    n->made_ms = json_integer_value(json_object_get(doc, "made"));
    n->mine = json_is_true(json_object_get(doc, "mine"));
    n->mail = json_is_true(json_object_get(doc, "mail"));
    json_array_foreach(json_object_get(doc, "on"), i, word)
    {
        for (int on = 0; on < ST_ON_COUNT; on++)
            if (json_is_string(word) && strcmp(json_string_value(word), st_notice_words[on]) == 0)
                n->on |= UINT32_C(1) << on;
    }
    while (ctl->notices->at.n <= (size_t)id)
        st_vec_push(&ctl->notices->at, NULL);
    n->next = ctl->notices->at.v[id];
    ctl->notices->at.v[id] = n;
    st_map_put(ctl->notices->named, n->key, (int64_t)(intptr_t)n);
    ctl->notices->n++;
    return n;
}

static int load_notice(void *ctx, const st_document_row *row, st_err *err)
{
    st_control *ctl = ctx;
    json_t *doc = json_loads(row->doc, 0, NULL);
    st_noticer *n = st_notices_add(ctl, row->name, doc);

    (void)err;
    json_decref(doc);
    if (n)
        st_allowance_put(ctl->allowance, n->account, ST_AL_NOTICES, 1);
    return 0;
}

static int load_row(void *ctx, const st_document_row *row, st_err *err)
{
    st_control *ctl = ctx;
    const char *blank = strchr(row->name, ' ');
    ST_CLEANUP(st_freep) char *key = st_xstrndup(row->name, strcspn(row->name, " "));
    st_noticer *n = st_notices_find(ctl, key);
    uint64_t number = blank ? strtoull(blank + 1, NULL, 10) : 0;

    (void)err;
    ctl->notices->last = ST_MAX(ctl->notices->last, number);
    if (!n)
        return 0;
    n->waiting++;
    while (ctl->notices->orgs.n <= (size_t)n->org)
        st_vec_push(&ctl->notices->orgs, 0);
    ctl->notices->orgs.v[n->org]++;
    return 0;
}

int st_notices_load(st_control *ctl, st_err *err)
{
    int r;

    st_noticers_free(ctl);
    ctl->notices = st_xcalloc(1, sizeof *ctl->notices);
    ctl->notices->named = st_map_new();
    st_allowance_clear(ctl->allowance, ST_AL_NOTICES);
    r = st_store_documents(ctl->store, "notice", load_notice, ctl, err);
    if (r >= 0)
        r = st_store_documents(ctl->store, "notice-out", load_row, ctl, err);
    if (r >= 0)
        r = st_notices_load_budgets(ctl, err);
    return r < 0 ? r : 0;
}

/* ---- commands ------------------------------------------------------------------------------------------ */

/* The notice, for who may change it; ret NULL: it must not be there. */
static int may_change(st_tx *tx, const st_cmd_notice *c, st_noticer **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf key = {0};
    char q[ST_QUOTE_MAX];
    st_noticer *n;

    if (!c->account[0] || !st_tx_within(tx, c->account, c->who.account))
        return st_no_account(c->account, err);
    st_notices_key(c->account, c->name, &key);
    n = st_notices_find(tx->ctl, st_strbuf_str(&key));
    if (!ret && n)
        return st_fail(err, ST_EEXIST,
                       "account %s has a notice %s; choose another name, or remove that one first",
                       c->account, st_quote(q, c->name));
    if (ret && !n)
        return st_fail(err, ST_ENOENT, "account %s has no notice %s", c->account,
                       st_quote(q, c->name));
    if (c->who.role == ST_ROLE_MEMBER && strcmp(c->account, c->who.account) != 0)
        return st_fail(err, ST_EPERM, "your role, member, has notices in account %s, not in %s",
                       c->who.account, c->account);
    if (c->who.role == ST_ROLE_MEMBER && n &&
        (strcmp(n->by, c->who.user) != 0 || strcmp(n->by_account, c->who.account) != 0))
        return st_fail(err, ST_EPERM, "notice %s was added by somebody else: ask an admin of %s",
                       st_quote(q, c->name), c->account);
    if (ret)
        *ret = n;
    return 0;
}

static int seal(st_tx *tx, st_cmd_notice *c, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf name = {0};
    st_cmd_secret *s = st_xcalloc(1, sizeof *s);
    json_t *doc = c->to ? json_pack("{s:s,s:s,s:I}", "to", c->to, "key", c->key ? c->key : "",
                                    "made", (json_int_t)tx->now)
                        : NULL;
    char *value = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

    st_strbuf_addf(&name, SEALED, c->name);
    json_decref(doc);
    s->who = c->who;
    s->account = c->account;
    s->name = st_strbuf_take(&name);
    s->value = value;
    s->n = value ? strlen(value) : 0;
    st_cmd_secret_init(s);
    c->inner = &s->cmd;
    return s->cmd.run(tx, &s->cmd, err);
}

void st_cmd_notice_done(st_cmd_notice *cmd)
{
    st_cmd_secret *s = (st_cmd_secret *)cmd->inner;

    if (!s)
        return;
    if (s->value) {
        explicit_bzero((void *)(uintptr_t)s->value, s->n);
        free((void *)(uintptr_t)s->value);
    }
    free((char *)(uintptr_t)s->name);
    st_strbuf_done(&s->sealed);
    free(s);
    cmd->inner = NULL;
}

static json_t *document_of(const st_tx *tx, const st_cmd_notice *c)
{
    json_t *on = json_array();

    for (int i = 0; i < ST_ON_COUNT; i++)
        if (c->on >> i & 1)
            json_array_append_new(on, json_string(st_notice_words[i]));
    return json_pack("{s:s,s:s,s:I,s:b,s:b,s:s,s:o}", "by", c->who.user, "by_account",
                     c->who.account, "made", (json_int_t)tx->now, "mine", c->mine, "mail", c->mail,
                     "to", c->host, "on", on);
}

static int run_add(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_notice *c = (st_cmd_notice *)cmd;
    ST_CLEANUP(st_strbuf_done) st_strbuf key = {0};
    ST_CLEANUP(st_freep) char *detail = NULL;
    json_t *doc;
    int r = may_change(tx, c, NULL, err);

    if (r == 0)
        r = st_tx_open(tx, err);
    if (r == 0)
        r = st_allowance_charge(tx->ctl->allowance, c->account, ST_AL_NOTICES, 1, c->who.account,
                                err);
    if (r < 0)
        return r;
    r = seal(tx, c, err);
    if (r < 0) {
        st_allowance_release(tx->ctl->allowance, c->account, ST_AL_NOTICES, 1);
        return r;
    }
    st_notices_key(c->account, c->name, &key);
    doc = document_of(tx, c);
    detail = json_dumps(doc, JSON_COMPACT);
    /* Known at once, for what comes behind it in this transaction; if that fails, all are read again. */
    if (!st_notices_add(tx->ctl, st_strbuf_str(&key), doc))
        r = st_no_account(c->account, err);
    if (r == 0)
        r = st_document_write(tx, "notice", st_strbuf_str(&key), doc, err);
    else
        json_decref(doc);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, "notice.add", c->account, c->name, detail, err);
    return r;
}

static void publish_sealed(st_control *ctl, st_cmd *cmd)
{
    st_cmd *inner = ((st_cmd_notice *)cmd)->inner;

    inner->publish(ctl, inner);
}

void st_cmd_notice_add(st_cmd_notice *cmd)
{
    cmd->cmd.run = run_add;
    cmd->cmd.publish = publish_sealed;
}

/* ---- removing ------------------------------------------------------------------------------------------ */

typedef struct gathering {
    const char *key;
    ST_VEC(char *) names;
} gathering;

static int gather(void *ctx, const st_document_row *row, st_err *err)
{
    gathering *g = ctx;
    size_t n = strlen(g->key);

    (void)err;
    if (strncmp(row->name, g->key, n) == 0 && row->name[n] == ' ')
        st_vec_push(&g->names, st_xstrdup(row->name));
    return 0;
}

static int erase_rows(st_tx *tx, const char *key, st_err *err)
{
    gathering g = {.key = key};
    int r = st_tx_fault(tx, st_store_documents(tx->ctl->store, "notice-out", gather, &g, err), err);

    for (size_t i = 0; i < g.names.n; i++) {
        if (r >= 0)
            r = st_document_erase(tx, "notice-out", g.names.v[i], err);
        free(g.names.v[i]);
    }
    st_vec_free(&g.names);
    return r < 0 ? r : 0;
}

static void forget(st_control *ctl, st_noticer *n)
{
    st_noticers *all = ctl->notices;

    if (n->waiting > 0)
        all->orgs.v[n->org] -= (int32_t)n->waiting;
    for (st_noticer **at = &all->at.v[n->id]; *at; at = &(*at)->next)
        if (*at == n) {
            *at = n->next;
            break;
        }
    st_map_del(all->named, n->key);
    all->n--;
    noticer_free(n);
}

static int run_remove(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_notice *c = (st_cmd_notice *)cmd;
    st_noticer *n;
    int r = may_change(tx, c, &n, err);

    if (r == 0)
        r = st_tx_open(tx, err);
    if (r == 0)
        r = seal(tx, c, err);
    if (r == 0)
        r = st_document_erase(tx, "notice", n->key, err);
    if (r == 0)
        r = st_document_erase(tx, "notice-log", n->key, err);
    if (r == 0)
        r = erase_rows(tx, n->key, err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, "notice.remove", c->account, c->name, NULL, err);
    if (r < 0)
        return r;
    st_allowance_release(tx->ctl->allowance, c->account, ST_AL_NOTICES, 1);
    forget(tx->ctl, n);
    return 0;
}

void st_cmd_notice_remove(st_cmd_notice *cmd)
{
    cmd->cmd.run = run_remove;
    cmd->cmd.publish = publish_sealed;
}

static int run_test(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_notice *c = (st_cmd_notice *)cmd;
    const st_telling t = {.kind = "test",
                          .account = c->account,
                          .title = "a test of a notice, asked for by its user"};
    st_noticer *n;
    int r = may_change(tx, c, &n, err);

    if (r == 0 && n->waiting >= ST_NOTICE_WAITING)
        r = st_fail(err, ST_ELIMIT,
                    "notice %s has %" PRId64 " deliveries that wait; its receiver does not take "
                    "them (stint notice show %s)",
                    c->name, n->waiting, c->name);
    if (r == 0)
        r = st_notices_put(tx, n, &t, c->id, err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, "notice.test", c->account, c->name, NULL, err);
    return r;
}

void st_cmd_notice_test(st_cmd_notice *cmd)
{
    cmd->cmd.run = run_test;
}

/* ---- where it goes -------------------------------------------------------------------------------------- */

/* Deliveries are numbered by the time, in thousandths of a millisecond (notices_tell.c). */
bool st_notice_owns(int64_t made_ms, uint64_t number)
{
    return number >= (uint64_t)made_ms * 1000;
}

int st_notice_where(st_control *ctl, const st_outgoing *o, st_strbuf *to, st_strbuf *key,
                    st_err *err)
{
    const char *above[] = {o->account, NULL};
    ST_CLEANUP(st_strbuf_done) st_strbuf sealed = {0};
    ST_CLEANUP(st_wipe) st_strbuf plain = {0};
    json_t *doc;
    int r;

    st_strbuf_addf(&sealed, SEALED, o->name);
    r = st_vault_secret(ctl->vault, above, st_strbuf_str(&sealed), &plain, err);
    if (r < 0)
        return r;
    doc = json_loadb(st_strbuf_str(&plain), plain.n, 0, NULL);
    st_strbuf_add(to, text_of(doc, "to"));
    st_strbuf_add(key, text_of(doc, "key"));
    if (!st_notice_owns(json_integer_value(json_object_get(doc, "made")), o->number))
        r = st_fail(err, ST_ENOENT, "notice %s is another one now", o->name);
    json_decref(doc);
    return r;
}
