/*
 * Who is charged for what in the loop: jobs while they wait, accounts, tokens, sizes; and the command that
 * sets limits. The counts are not stored: they are what the core and the tables have, counted at a start.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/services.h"
#include "control/state.h"

#define KIND      "service_quota"
#define JOB_BYTES 256 /* of one that waits, beside its document */

st_allowance *st_control_allowance(st_control *ctl)
{
    return ctl->allowance;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

typedef struct bundle {
    int64_t v[ST_AL_COUNT];
} bundle;

static bundle jobs_cost(int64_t n, int64_t bytes, bool pieces)
{
    bundle b = {0};

    b.v[ST_AL_PENDING] = n;
    b.v[ST_AL_PENDING_BYTES] = bytes;
    b.v[ST_AL_PIECES] = pieces ? n : 0;
    return b;
}

static int charge(st_control *ctl, const char *account, const bundle *b, const char *reader,
                  st_err *err)
{
    int r = 0, i = 0;

    for (; r == 0 && i < ST_AL_COUNT; i++)
        if (b->v[i] > 0)
            r = st_allowance_charge(ctl->allowance, account, (st_allowed)i, b->v[i], reader, err);
    for (i -= 2; r < 0 && i >= 0; i--)
        if (b->v[i] > 0)
            st_allowance_release(ctl->allowance, account, (st_allowed)i, b->v[i]);
    return r;
}

static void put(st_control *ctl, const char *account, const bundle *b, int sign)
{
    for (int i = 0; i < ST_AL_COUNT; i++)
        if (b->v[i] > 0)
            st_allowance_put(ctl->allowance, account, (st_allowed)i, sign * b->v[i]);
}

int st_charge_items(st_tx *tx, st_submit_item *items, size_t n, const st_identity *who, st_err *err)
{
    const char *account = items[0].spec.account;
    int array = items[0].array;
    int64_t bytes = 0;
    size_t same = 1;
    int r;

    while (array > 0 && same < n && items[same].array == array)
        same++;
    for (size_t i = 0; i < same; i++) {
        items[i].charged = JOB_BYTES + (int64_t)strlen(items[i].doc) +
                           (i == 0 && items[i].head ? (int64_t)strlen(items[i].head) : 0);
        bytes += items[i].charged;
    }
    const bundle cost = jobs_cost((int64_t)same, bytes, array > 0);
    r = charge(tx->ctl, account, &cost, who->account, err);
    for (size_t i = 0; r < 0 && i < same; i++) {
        items[i].charged = 0;
        if (i > 0) {
            items[i].code = err->code;
            items[i].refusal = st_xstrdup(err->msg);
        }
    }
    return r;
}

void st_uncharge_item(st_control *ctl, const st_submit_item *item)
{
    const bundle cost = jobs_cost(1, item->charged, item->array > 0);

    if (item->charged > 0)
        put(ctl, item->spec.account, &cost, -1);
}

void st_live_charge(st_control *ctl, st_live *live)
{
    bool waits = live->state == ST_JOB_PENDING;
    bundle cost;

    if (waits == (live->charged > 0))
        return;
    if (waits)
        live->charged = JOB_BYTES + (int64_t)strlen(live->doc);
    cost = jobs_cost(1, live->charged, live->part_of > 0);
    put(ctl, live->account, &cost, waits ? 1 : -1);
    if (!waits)
        live->charged = 0;
}

/* ---- tokens and accounts ----------------------------------------------------------------------- */

/* What an account that is gone has left counts for the next above it. */
const char *st_payer(st_control *ctl, const char *account)
{
    while (account && st_allowance_number(ctl->allowance, account) < 0)
        account = st_directory_parent(ctl->dir, account);
    return account ? account : "";
}

static void count_token(void *ctx, const char *account, bool opens)
{
    st_control *ctl = ctx;

    account = st_payer(ctl, account);
    st_allowance_put(ctl->allowance, account, ST_AL_KEPT, 1);
    if (opens)
        st_allowance_put(ctl->allowance, account, ST_AL_TOKENS, 1);
}

void st_count_tokens(st_control *ctl, int64_t now)
{
    st_allowance_clear(ctl->allowance, ST_AL_TOKENS);
    st_allowance_clear(ctl->allowance, ST_AL_KEPT);
    st_directory_each_token(ctl->dir, now, count_token, ctl);
}

/* Some of those that count may have expired meanwhile. */
int st_charge_token(st_tx *tx, const st_identity *who, const char *account, st_err *err)
{
    st_allowance *al = tx->ctl->allowance;
    int r = st_allowance_charge(al, account, ST_AL_TOKENS, 1, who->account, err);

    if (r < 0) {
        st_count_tokens(tx->ctl, tx->now);
        r = st_allowance_charge(al, account, ST_AL_TOKENS, 1, who->account, err);
    }
    if (r < 0)
        return r;
    r = st_allowance_charge(al, account, ST_AL_KEPT, 1, who->account, err);
    if (r < 0)
        st_allowance_release(al, account, ST_AL_TOKENS, 1);
    return r;
}

/* An account that is removed leaves a row behind in every list of accounts: those count as well, for good. */
int st_charge_account(st_tx *tx, const st_identity *who, const char *parent, st_err *err)
{
    st_allowance *al = tx->ctl->allowance;
    int r = st_allowance_charge(al, parent, ST_AL_ACCOUNTS, 1, who->account, err);

    if (r == 0 && (r = st_allowance_charge(al, parent, ST_AL_MADE, 1, who->account, err)) < 0)
        st_allowance_release(al, parent, ST_AL_ACCOUNTS, 1);
    return r;
}

void st_uncharge_account(st_tx *tx, const char *parent)
{
    st_allowance_release(tx->ctl->allowance, parent, ST_AL_ACCOUNTS, 1);
    st_allowance_release(tx->ctl->allowance, parent, ST_AL_MADE, 1);
}

void st_count_accounts(st_control *ctl)
{
    const st_tree *tree = st_core_tree(ctl->core);

    for (size_t i = ST_MAX(ctl->allowed_accounts, (size_t)ST_ROOT + 1); i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];

        if (a->gone)
            continue;
        st_allowance_add(ctl->allowance, a->name,
                         a->parent == ST_ROOT ? "" : tree->accounts.v[a->parent]->name);
    }
    ctl->allowed_accounts = tree->accounts.n;
}

/* ---- at a start -------------------------------------------------------------------------------- */

static int count_size(void *ctx, const st_document_row *row, st_err *err)
{
    ST_CLEANUP(st_freep) char *account = st_xstrndup(row->name, strcspn(row->name, "/"));

    (void)err;
    st_allowance_put(ctx, account, ST_AL_SIZES, 1);
    return 0;
}

static int count_secret(void *ctx, const st_document_row *row, st_err *err)
{
    ST_CLEANUP(st_freep) char *account = st_xstrndup(row->name, strcspn(row->name, "/"));

    (void)err;
    st_allowance_put(ctx, account, ST_AL_SECRETS, 1);
    return 0;
}

static int count_service(void *ctx, const st_document_row *row, st_err *err)
{
    const char *slash = strrchr(row->name, '/');
    ST_CLEANUP(st_freep) char *account = st_xstrndup(row->name, (size_t)(slash - row->name));

    (void)err;
    st_allowance_put(ctx, account, ST_AL_SERVICES, 1);
    return 0;
}

static int count_volume(void *ctx, const st_document_row *row, st_err *err)
{
    st_volume v;
    int r = st_volume_read(row->name, row->doc, row->version, &v, err);

    if (r == 0) {
        st_allowance_put(ctx, v.account, ST_AL_VOLUMES, 1);
        st_allowance_put(ctx, v.account, ST_AL_VOLUME_BYTES, v.size_mib << 20);
    }
    return r;
}

static int load_limits(void *ctx, const st_document_row *row, st_err *err)
{
    st_allowance_limits limits = st_allowance_nothing();
    json_t *doc = json_loads(row->doc, 0, NULL);

    (void)err;
    for (int i = 0; i < ST_AL_COUNT; i++) {
        const json_t *v = json_object_get(doc, st_allowed_keys[i]);

        if (json_is_integer(v))
            limits.v[i] = ST_MAX(json_integer_value(v), 0);
    }
    json_decref(doc);
    st_allowance_set(ctx, row->name, &limits);
    return 0;
}

int st_allowed_load(st_control *ctl, st_err *err)
{
    static const st_allowed counted[] = {
        ST_AL_PENDING, ST_AL_PENDING_BYTES, ST_AL_PIECES,   ST_AL_ACCOUNTS, ST_AL_MADE,
        ST_AL_SIZES,   ST_AL_SECRETS,       ST_AL_SERVICES, ST_AL_VOLUMES,  ST_AL_VOLUME_BYTES};
    const st_tree *tree = st_core_tree(ctl->core);
    int r;

    for (size_t i = 0; i < ST_ARRAY_LEN(counted); i++)
        st_allowance_clear(ctl->allowance, counted[i]);
    ctl->allowed_accounts = 0;
    st_count_accounts(ctl);
    for (size_t i = ST_ROOT + 1; i < tree->accounts.n; i++) {
        int32_t up = tree->accounts.v[i]->parent;
        const char *parent;

        while (tree->accounts.v[up]->gone)
            up = tree->accounts.v[up]->parent;
        parent = up == ST_ROOT ? "" : tree->accounts.v[up]->name;
        st_allowance_put(ctl->allowance, parent, ST_AL_MADE, 1);
        if (!tree->accounts.v[i]->gone)
            st_allowance_put(ctl->allowance, parent, ST_AL_ACCOUNTS, 1);
    }
    r = st_store_documents(ctl->store, KIND, load_limits, ctl->allowance, err);
    if (r >= 0)
        r = st_store_documents(ctl->store, "size", count_size, ctl->allowance, err);
    if (r >= 0)
        r = st_store_documents(ctl->store, "secret", count_secret, ctl->allowance, err);
    if (r >= 0)
        r = st_store_documents(ctl->store, ST_SERVICE_KIND, count_service, ctl->allowance, err);
    if (r >= 0)
        r = st_store_documents(ctl->store, "volume", count_volume, ctl->allowance, err);
    if (r >= 0)
        r = st_count_views(ctl, err);
    return r < 0 ? r : 0;
}

/* ---- setting limits ---------------------------------------------------------------------------- */

static void write_limits(const st_allowance_limits *limits, st_strbuf *out)
{
    const char *sep = "";

    st_strbuf_addc(out, '{');
    for (int i = 0; i < ST_AL_COUNT; i++) {
        if (limits->v[i] == ST_AL_NONE)
            continue;
        st_strbuf_addf(out, "%s\"%s\":%" PRId64, sep, st_allowed_keys[i], limits->v[i]);
        sep = ",";
    }
    st_strbuf_addc(out, '}');
}

int st_unlimit_account(st_tx *tx, const char *account, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_document_row row;
    int r = st_store_document_get(tx->ctl->store, KIND, account, arena, &row, err);

    if (r == 0)
        r = st_store_document_delete(tx->ctl->store, KIND, account, row.version, err);
    return r == -ST_ENOENT ? 0 : st_tx_fault(tx, r, err);
}

static int run_allowance(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_allowance *c = (st_cmd_allowance *)cmd;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    st_allowance_limits now;
    st_document_row old = {0};
    char q[ST_QUOTE_MAX];
    int r;

    if (!c->account[0] || !st_tx_within(tx, c->account, c->who.account))
        return st_fail(err, ST_ENOENT, "there is no account %s", st_quote(q, c->account));
    if (c->who.role != ST_ROLE_OWNER && strcmp(c->account, c->who.account) == 0)
        return st_fail(err, ST_EPERM, "account %s is your own: its quota is set by those above it",
                       c->account);
    if (!st_allowance_get(tx->ctl->allowance, c->account, &now))
        return st_no_account(c->account, err);
    for (int i = 0; i < ST_AL_COUNT; i++)
        now.v[i] = c->which[i] ? c->limits.v[i] : now.v[i];
    c->limits = now;
    r = st_allowance_fits(tx->ctl->allowance, c->account, &now, c->who.account, err);
    if (r == 0)
        r = st_tx_open(tx, err);
    if (r < 0)
        return r;
    r = st_store_document_get(tx->ctl->store, KIND, c->account, arena, &old, err);
    if (r < 0 && r != -ST_ENOENT)
        return st_tx_fault(tx, r, err);
    write_limits(&now, &doc);
    const st_document_row row = {.kind = KIND,
                                 .name = c->account,
                                 .version = old.version,
                                 .at_ms = tx->now,
                                 .doc = st_strbuf_str(&doc)};
    r = st_tx_fault(tx, st_store_document_put(tx->ctl->store, &row, err), err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, "quota.set", c->account, c->account, st_strbuf_str(&doc), err);
    if (r == 0) /* at once, for others in this transaction; if it fails, limits are read again */
        st_allowance_set(tx->ctl->allowance, c->account, &now);
    return r;
}

void st_cmd_allowance_put(st_cmd_allowance *cmd)
{
    cmd->cmd.run = run_allowance;
}
