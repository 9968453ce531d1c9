/*
 * Secrets of accounts, and the key under which private things are sealed: opened at the start, renewed when an owner
 * says so, used when an agent is told what to start.
 *
 * A secret is a document of the store, kind "secret", name ACCOUNT/NAME, and belongs to the account's serial. The store's
 * meta says under which key it was last sealed whole, so that a start with another key is refused and not taken for
 * an empty vault, and in which form: what was sealed for names of accounts is sealed anew at the next start.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "billing/billing.h"
#include "control/services.h"
#include "control/state.h"

#define KIND      "secret"
#define META_KEY  "secrets_key"
#define META_FORM "secrets_form"
#define FORM      "serial"
#define CHUNK     256 /* documents that are sealed again in one transaction */

/* ---- names ---------------------------------------------------------------------------------------- */

static char *kept_name(const char *account, const char *name)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    st_strbuf_addf(&out, "%s/%s", account, name);
    return st_strbuf_take(&out);
}

static st_vault_place place_of(int64_t owner, const char *name, int64_t version)
{
    return (st_vault_place){.kind = KIND, .owner = owner, .name = name, .version = version};
}

/* Takes a row apart; its texts are the arena's. */
static int read_row(const st_control *ctl, const st_document_row *row, st_arena *arena,
                    st_secret *ret, st_err *err)
{
    char *account = st_arena_strdup(arena, row->name), *slash = strchr(account, '/');
    st_secret s = {.version = row->version};
    int r = slash ? st_secret_read(row->doc, arena, &s, err)
                  : st_fail(err, ST_ECORRUPT, "a secret's row makes no sense");

    if (r < 0)
        return r;
    *slash = '\0';
    s.account = account;
    s.name = slash + 1;
    s.owner = st_directory_serial(ctl->dir, account);
    *ret = s;
    return 0;
}

/* ---- at the start ----------------------------------------------------------------------------------- */

typedef struct loading {
    st_control *ctl;
    st_arena *arena;
} loading;

static int load_row(void *ctx, const st_document_row *row, st_err *err)
{
    const loading *l = ctx;
    st_secret s;
    int r = read_row(l->ctl, row, l->arena, &s, err);

    if (r == 0)
        st_vault_put(l->ctl->vault, &s);
    return r;
}

static int load_secrets(st_control *ctl, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    loading l = {ctl, arena};

    return st_store_documents(ctl->store, KIND, load_row, &l, err);
}

static int open_key(st_control *ctl, const char *sealed_under, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    int r;

    if (ctl->options.secrets_key)
        st_strbuf_add(&path, ctl->options.secrets_key);
    else
        st_store_beside(ctl->store, "secrets.key", &path);
    r = st_vault_open(st_strbuf_str(&path), !sealed_under, &ctl->vault, err);
    if (r == -ST_ENOENT)
        return st_fail(err, ST_ENOENT,
                       "%s is not there, and this store is sealed under key %s; put the file back "
                       "from where you keep a copy",
                       st_strbuf_str(&path), sealed_under);
    if (r == 0 && sealed_under && !st_vault_has_key(ctl->vault, sealed_under))
        return st_fail(err, ST_ESTATE,
                       "%s does not have key %s, under which this store is sealed; put back the "
                       "file that belongs to it",
                       st_strbuf_str(&path), sealed_under);
    return r;
}

/* ---- sealing again ---------------------------------------------------------------------------------- */

/* A row, or what the pieces of an array begin with, that is to be written anew. */
typedef struct stale {
    int64_t id;
    char *text;
    bool head;
} stale;

/* An array whose head is to be looked at, for whose it is. */
typedef struct headed {
    int64_t array;
    const char *account, *user;
} headed;

typedef struct sweep {
    st_control *ctl;
    st_arena *arena;
    ST_VEC(stale) rows;
    ST_VEC(headed) heads;
    int64_t seen, last;
    bool named; /* the earlier form is taken */
} sweep;

typedef struct kin {
    st_directory *dir;
    const char *account;
} kin;

/* Who submits stands at or above the job's account. */
static int64_t serial_of(void *ctx, const char *name)
{
    const kin *k = ctx;

    return st_directory_serial_above(k->dir, k->account, name);
}

/* A text that cannot be opened stays as it is: nothing may depend on one damaged row. */
static void look(sweep *s, const headed *of, int64_t id, const char *text, bool head)
{
    st_directory *dir = s->ctl->dir;
    const st_vault_who job = {st_directory_serial(dir, of->account), of->user};
    kin above = {dir, of->account};
    const char *account = st_directory_was(dir, of->account);
    const st_vault_was was = {account ? account : of->account, serial_of, &above};
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    bool changed = false;
    st_err why;

    if (st_vault_doc_renew(s->ctl->vault, &job, s->named ? &was : NULL, text, head, &out, &changed,
                           &why) < 0)
        st_control_say(s->ctl, "event=seal_failed job=%" PRId64 " reason=\"%s\"", id, why.msg);
    else if (changed)
        st_vec_push(&s->rows, (stale){id, st_strbuf_take(&out), head});
}

static int look_row(void *ctx, const st_job_row *row, st_err *err)
{
    sweep *s = ctx;
    const headed of = {row->part_of, row->account, row->user_name};

    (void)err;
    s->seen++;
    s->last = row->id;
    look(s, &of, row->id, row->spec, false);
    /* Pieces of one array stand together. */
    if (row->part_of > 0 && (s->heads.n == 0 || s->heads.v[s->heads.n - 1].array != row->part_of))
        st_vec_push(&s->heads, (headed){row->part_of, st_arena_strdup(s->arena, row->account),
                                        st_arena_strdup(s->arena, row->user_name)});
    return 0;
}

static int look_heads(sweep *s, st_err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->heads.n; i++) {
        const headed *of = &s->heads.v[i];
        const char *text;

        r = st_store_array_get(s->ctl->store, of->array, s->arena, &text, err);
        if (r == 0)
            look(s, of, of->array, text, true);
        r = r == -ST_ENOENT ? 0 : r;
    }
    return r;
}

static void replace(char **at, char **text)
{
    free(*at);
    *at = ST_TAKE(*text);
}

/* In the store, and where the loop keeps it. */
static int rewrite(st_control *ctl, stale *row, st_err *err)
{
    st_live *live = ctl->live && !row->head ? st_control_live(ctl, (uint64_t)row->id) : NULL;
    int64_t at;
    int r = row->head ? st_store_array_put(ctl->store, row->id, row->text, err)
                      : st_store_job_put_spec(ctl->store, row->id, row->text, err);

    if (r == 0 && live)
        replace(&live->doc, &row->text);
    else if (r == 0 && ctl->heads && row->head && st_idmap_get(ctl->heads, (uint64_t)row->id, &at))
        replace(&((st_array_head *)(intptr_t)at)->text, &row->text);
    return r;
}

/* The next CHUNK documents below *before, newest first; *before is 0 when there are no more. In a transaction. */
static int seal_chunk(st_control *ctl, bool named, int64_t *before, int64_t *ret_n, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const st_job_filter f = {.before_id = *before, .limit = CHUNK, .own_part = true};
    sweep s = {.ctl = ctl, .arena = arena, .named = named};
    int r = st_store_jobs_list(ctl->store, &f, look_row, &s, err);

    if (r >= 0)
        r = look_heads(&s, err);
    for (size_t i = 0; i < s.rows.n; i++) {
        if (r >= 0)
            r = rewrite(ctl, &s.rows.v[i], err);
        free(s.rows.v[i].text);
    }
    *ret_n += (int64_t)s.rows.n;
    *before = s.seen < CHUNK ? 0 : s.last;
    st_vec_free(&s.rows);
    st_vec_free(&s.heads);
    return r < 0 ? r : 0;
}

/* Whatever was written before there was a key, or in the earlier form, or when a renewal was cut short. */
static int seal_all(st_control *ctl, bool named, st_err *err)
{
    int64_t before = 0, n = 0;
    int r;

    do {
        r = st_store_begin(ctl->store, err);
        if (r == 0)
            r = st_store_end(ctl->store, seal_chunk(ctl, named, &before, &n, err), err);
    } while (r == 0 && before > 0);
    if (r == 0 && n > 0) {
        st_control_say(ctl, "event=sealed documents=%" PRId64, n);
        r = st_store_scrub(ctl->store, err);
    }
    return r;
}

static int seal_secrets(st_control *ctl, int64_t now, bool named, st_err *err);

static int is_named(st_control *ctl, bool *ret, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const char *form;
    int r = st_store_meta_get(ctl->store, META_FORM, arena, &form, err);

    *ret = r == -ST_ENOENT || (r == 0 && strcmp(form, FORM) != 0);
    return *ret ? 0 : r;
}

static int say_sealed(st_control *ctl, const char *key, st_err *err)
{
    int r = st_store_meta_put(ctl->store, META_FORM, FORM, err);

    return r < 0 ? r : st_store_meta_put(ctl->store, META_KEY, key, err);
}

int st_secrets_open(st_control *ctl, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    char key[ST_VAULT_KEY_ID];
    const char *under = NULL;
    bool named = false;
    int r = st_store_meta_get(ctl->store, META_KEY, arena, &under, err);

    if (r < 0 && r != -ST_ENOENT)
        return r;
    r = open_key(ctl, r == 0 ? under : NULL, err);
    if (r == 0)
        r = load_secrets(ctl, err);
    if (r == 0)
        r = is_named(ctl, &named, err);
    if (r < 0)
        return r;
    st_vault_key(ctl->vault, key);
    if (under && strcmp(key, under) == 0 && !named)
        return 0;
    r = st_store_begin(ctl->store, err);
    if (r == 0)
        r = st_store_end(ctl->store, seal_secrets(ctl, 0, named, err), err);
    if (r == 0)
        r = seal_all(ctl, named, err);
    if (r == 0)
        r = st_store_begin(ctl->store, err);
    if (r == 0)
        r = st_store_end(ctl->store, say_sealed(ctl, key, err), err);
    return r == 0 ? st_vault_retire(ctl->vault, err) : r;
}

/* ---- commands --------------------------------------------------------------------------------------- */

static int write_secret(st_tx *tx, const st_secret *s, int64_t before, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    ST_CLEANUP(st_freep) char *kept = kept_name(s->account, s->name);

    st_secret_write(s, &doc);
    const st_document_row row = {
        .kind = KIND, .name = kept, .version = before, .at_ms = tx->now, .doc = doc.s};
    return st_tx_fault(tx, st_store_document_put(tx->ctl->store, &row, err), err);
}

/* The core knows what went before in this transaction, and the directory does not. */
static int may_change(st_tx *tx, const st_cmd_secret *c, const st_secret *there, int64_t *ret_owner,
                      st_err *err)
{
    const st_identity *who = &c->who;
    const st_tree *tree = st_core_tree(tx->ctl->core);
    int32_t id = c->account[0] ? st_tree_find(tree, c->account) : -1;

    if (id <= ST_ROOT || !st_tx_within(tx, c->account, who->account))
        return st_no_account(c->account, err);
    *ret_owner = st_tree_account(tree, id)->serial;
    if (who->role != ST_ROLE_MEMBER)
        return 0;
    if (strcmp(c->account, who->account) != 0)
        return st_fail(err, ST_EPERM, "you keep secrets in account %s, not in %s; ask an admin",
                       who->account, c->account);
    if (there &&
        (strcmp(there->by, who->user) != 0 || strcmp(there->by_account, who->account) != 0))
        return st_fail(err, ST_EPERM, "secret %s was put by somebody else: ask an admin of %s",
                       c->name, c->account);
    return 0;
}

static int run_secret(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_secret *c = (st_cmd_secret *)cmd;
    st_control *ctl = tx->ctl;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_freep) char *kept = kept_name(c->account, c->name);
    bool inner = strchr(c->name, '/'); /* a part of something else, which is in the audit log */
    st_secret there = {0};
    st_document_row row;
    int64_t owner = -1;
    int r = st_tx_open(tx, err);

    if (r == 0)
        r = st_store_document_get(ctl->store, KIND, kept, arena, &row, err);
    if (r < 0 && r != -ST_ENOENT)
        return st_tx_fault(tx, r, err);
    c->created = r == -ST_ENOENT;
    r = c->created ? 0 : st_tx_fault(tx, read_row(ctl, &row, arena, &there, err), err);
    if (r == 0)
        r = may_change(tx, c, c->created ? NULL : &there, &owner, err);
    if (r < 0)
        return r;
    if (c->created && !c->value)
        return st_fail(err, ST_ENOENT, "account %s has no secret %s", c->account, c->name);
    if (c->created && st_vault_count(ctl->vault, c->account) >= ST_SECRETS_MAX)
        return st_fail(err, ST_ELIMIT, "account %s has %d secrets, which is as many as it may have",
                       c->account, ST_SECRETS_MAX);
    if (c->created) /* counted anew if the transaction fails */
        r = st_allowance_charge(ctl->allowance, c->account, ST_AL_SECRETS, 1, c->who.account, err);
    if (r < 0)
        return r;
    if (!c->value) {
        r = st_store_document_delete(ctl->store, KIND, kept, row.version, err);
        st_tx_fault(tx, r, err);
        if (r == 0)
            st_allowance_release(ctl->allowance, c->account, ST_AL_SECRETS, 1);
        return r < 0 || inner
                   ? r
                   : st_tx_audit(tx, &c->who, "secret.remove", c->account, c->name, NULL, err);
    }
    int64_t before = c->created ? 0 : there.version;
    const st_vault_place place = place_of(owner, c->name, before + 1);
    st_vault_seal(ctl->vault, &place, c->value, c->n, &c->sealed);
    c->kept = (st_secret){.account = c->account,
                          .name = c->name,
                          .owner = owner,
                          .version = before + 1,
                          .made_ms = c->created ? tx->now : there.made_ms,
                          .changed_ms = tx->now,
                          .by = c->who.user,
                          .by_account = c->who.account,
                          .below = c->below,
                          .sealed = c->sealed.s};
    r = write_secret(tx, &c->kept, before, err);
    if (r == 0 && !inner)
        r = st_tx_audit(tx, &c->who, "secret.put", c->account, c->name,
                        c->below ? "{\"below\":true}" : NULL, err);
    return r;
}

static void publish_secret(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_secret *c = (const st_cmd_secret *)cmd;

    if (c->value)
        st_vault_put(ctl->vault, &c->kept);
    else
        st_vault_remove(ctl->vault, c->account, c->name);
}

void st_cmd_secret_init(st_cmd_secret *cmd)
{
    cmd->cmd.run = run_secret;
    cmd->cmd.publish = publish_secret;
}

/* ---- another key ------------------------------------------------------------------------------------ */

typedef struct old_secrets {
    const st_control *ctl;
    st_arena *arena;
    ST_VEC(st_secret) v;
} old_secrets;

static int collect_row(void *ctx, const st_document_row *row, st_err *err)
{
    old_secrets *o = ctx;
    st_secret s;
    int r = read_row(o->ctl, row, o->arena, &s, err);

    if (r == 0)
        st_vec_push(&o->v, s);
    return r;
}

/* One secret under the newest key, as its next version. One that cannot be opened stays as it is. */
static int seal_secret(st_control *ctl, const st_secret *old, int64_t now, bool named, st_err *err)
{
    const st_vault_place from = place_of(old->owner, old->name, old->version);
    const st_vault_place to = place_of(old->owner, old->name, old->version + 1);
    ST_CLEANUP(st_wipe) st_strbuf plain = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf sealed = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    ST_CLEANUP(st_freep) char *kept = kept_name(old->account, old->name);
    st_secret next = *old;
    st_err why;
    int r;

    r = named && st_vault_named(old->sealed)
            ? st_vault_unseal_named(ctl->vault, old->account, &from, old->sealed, &plain, &why)
            : st_vault_unseal(ctl->vault, &from, old->sealed, &plain, &why);
    if (r < 0) {
        st_control_say(ctl, "event=seal_failed account=%s secret=%s reason=\"%s\"", old->account,
                       old->name, why.msg);
        return 0;
    }
    st_vault_seal(ctl->vault, &to, st_strbuf_str(&plain), plain.n, &sealed);
    next.version++;
    next.sealed = sealed.s;
    st_secret_write(&next, &doc);
    const st_document_row row = {
        .kind = KIND, .name = kept, .version = old->version, .at_ms = now, .doc = doc.s};
    r = st_store_document_put(ctl->store, &row, err);
    if (r == 0)
        st_vault_put(ctl->vault, &next);
    return r;
}

static int seal_secrets(st_control *ctl, int64_t now, bool named, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    old_secrets old = {.ctl = ctl, .arena = arena};
    int r = st_store_documents(ctl->store, KIND, collect_row, &old, err);

    for (size_t i = 0; r >= 0 && i < old.v.n; i++)
        if (!st_vault_fresh(ctl->vault, old.v.v[i].sealed))
            r = seal_secret(ctl, &old.v.v[i], now, named, err);
    st_vec_free(&old.v);
    return r < 0 ? r : 0;
}

static int run_rotate(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_rotate *c = (st_cmd_rotate *)cmd;
    st_control *ctl = tx->ctl;
    int r = st_tx_open(tx, err);

    if (r == 0 && !c->begun) {
        r = st_vault_renew(ctl->vault, err);
        if (r == 0)
            r = st_tx_fault(tx, seal_secrets(ctl, tx->now, false, err), err);
        if (r == 0)
            r = st_services_reseal(tx, err);
        if (r == 0)
            r = st_tx_audit(tx, &c->who, "secrets.rotate", "", "", NULL, err);
        c->begun = r == 0;
    }
    if (r == 0)
        r = st_tx_fault(tx, seal_chunk(ctl, false, &c->before, &c->documents, err), err);
    c->over = r == 0 && c->before == 0;
    if (c->over) {
        st_vault_key(ctl->vault, c->key);
        r = st_tx_fault(tx, st_store_meta_put(ctl->store, META_KEY, c->key, err), err);
    }
    return r;
}

/* What is in the file must open what is in the store: the old key leaves it after the commit. */
static void publish_rotate(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_rotate *c = (const st_cmd_rotate *)cmd;
    st_err err;

    if (c->over && st_vault_retire(ctl->vault, &err) < 0)
        st_control_say(ctl, "event=key_not_retired reason=\"%s\"", err.msg);
}

void st_cmd_rotate_init(st_cmd_rotate *cmd)
{
    cmd->cmd.run = run_rotate;
    cmd->cmd.publish = publish_rotate;
}

/* ---- using them ------------------------------------------------------------------------------------- */

st_vault *st_control_vault(st_control *ctl)
{
    return ctl->vault;
}

void st_control_dress(st_control *ctl, const char *account, const char *user, const char *doc,
                      st_strbuf *out)
{
    const st_vault_who job = {st_directory_serial(ctl->dir, account), user};
    const char *above[ST_ABOVE_MAX];
    size_t before = out->n;
    st_err err = {0};
    int r = st_vault_doc_open(ctl->vault, &job, doc, ST_VIEW_ALL, out, &err);

    st_directory_above(ctl->dir, account, above);
    if (r == 0)
        r = st_vault_deliver(ctl->vault, above, doc, out, &err);
    if (r == 0)
        return;
    out->n = before;
    st_strbuf_add(out, "{},\"undeliverable\":");
    st_quote_json(out, err.msg);
}
