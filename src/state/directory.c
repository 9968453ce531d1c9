/*
 * The directory (state/directory.h): a reader-writer lock around three small tables.
 */
#include "state/directory.h"

#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const char *const st_role_words[] = {
#define X(id, word, what) word,
    ST_ROLE_TABLE(X)
#undef X
        NULL,
};

const char *st_role_about(st_role role)
{
    static const char *const about[] = {
#define X(id, word, what) what,
        ST_ROLE_TABLE(X)
#undef X
    };
    ST_ASSERT(role < ST_ROLE_COUNT);
    return about[role];
}

typedef struct token {
    int64_t id;
    unsigned char hash[ST_TOKEN_HASH];
    char *account, *user;
    int64_t serial; /* of the account it was made for; 0: not looked up yet */
    st_role role;
    int64_t expires_ms, revoked_ms; /* ST_STORE_NEVER */
    int64_t used_ms; /* since it was last told; written under the read lock, atomic */
} token;

typedef struct account {
    char *name;
    int32_t parent;
    bool untrusted;
    bool gone;
    int64_t serial;
    char *was; /* its name while it was there */
} account;

typedef struct type {
    char *name;
    int64_t vram_mib;
    st_board board;
    int node_gpus;
} type;

struct st_directory {
    pthread_rwlock_t lock;
    ST_VEC(token *) tokens;
    st_idmap *by_hash; /* first eight bytes of the hash: it is as random as a key can be */
    st_idmap *by_id;
    ST_VEC(account) accounts; /* as the core numbers them: parents before children */
    st_map *account_ids;
    ST_VEC(type) types;
    ST_VEC(char *) pools;
    size_t nodes; /* of the fleet, that were looked at */
    bool loose;   /* there are tokens whose account was not looked up */
};

/* ---- tokens ------------------------------------------------------------------------------ */

#define PREFIX "stint_"

void st_token_make(char text[ST_TOKEN_TEXT], unsigned char hash[ST_TOKEN_HASH])
{
    unsigned char secret[ST_TOKEN_BYTES];

    randombytes_buf(secret, sizeof secret);
    memcpy(text, PREFIX, sizeof PREFIX);
    sodium_bin2base64(text + strlen(PREFIX), ST_TOKEN_TEXT - strlen(PREFIX), secret, sizeof secret,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    crypto_generichash(hash, ST_TOKEN_HASH, secret, sizeof secret, NULL, 0);
    sodium_memzero(secret, sizeof secret);
}

bool st_token_hash(const char *text, unsigned char hash[ST_TOKEN_HASH])
{
    unsigned char secret[ST_TOKEN_BYTES];
    const char *end;
    size_t n;
    bool ok;

    if (strncmp(text, PREFIX, strlen(PREFIX)) != 0)
        return false;
    text += strlen(PREFIX);
    ok = sodium_base642bin(secret, sizeof secret, text, strlen(text), NULL, &n, &end,
                           sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0 &&
         *end == '\0' && n == sizeof secret;
    if (ok)
        crypto_generichash(hash, ST_TOKEN_HASH, secret, sizeof secret, NULL, 0);
    sodium_memzero(secret, sizeof secret);
    return ok;
}

static uint64_t hash_key(const unsigned char *hash)
{
    uint64_t key;
    memcpy(&key, hash, sizeof key);
    return key;
}

static void token_free(token *t)
{
    if (!t)
        return;
    free(t->account);
    free(t->user);
    free(t);
}

static int role_of(const char *word)
{
    for (int i = 0; st_role_words[i]; i++)
        if (strcmp(st_role_words[i], word) == 0)
            return i;
    return -1;
}

/* Those of a start come before their accounts. */
static void bind(st_directory *dir, token *t)
{
    int64_t i;

    if (st_map_get(dir->account_ids, t->account, &i))
        t->serial = dir->accounts.v[i].serial;
    else
        dir->loose = true;
}

static void bind_all(st_directory *dir)
{
    if (!dir->loose)
        return;
    dir->loose = false;
    for (size_t i = 0; i < dir->tokens.n; i++)
        if (dir->tokens.v[i]->serial == 0)
            bind(dir, dir->tokens.v[i]);
}

void st_directory_put_token(st_directory *dir, const st_token_row *row)
{
    int role = role_of(row->role);
    token *t;

    /* A role this program does not know, or a damaged row, opens nothing. */
    if (role < 0 || row->hash.n != ST_TOKEN_HASH)
        return;
    t = st_xcalloc(1, sizeof *t);
    t->id = row->id;
    memcpy(t->hash, row->hash.p, ST_TOKEN_HASH);
    t->account = st_xstrdup(row->account);
    t->user = st_xstrdup(row->user_name);
    t->role = (st_role)role;
    t->expires_ms = row->expires_ms;
    t->revoked_ms = row->revoked_ms;
    pthread_rwlock_wrlock(&dir->lock);
    bind(dir, t);
    st_idmap_put(dir->by_hash, hash_key(t->hash), (int64_t)dir->tokens.n);
    st_idmap_put(dir->by_id, (uint64_t)t->id, (int64_t)dir->tokens.n);
    st_vec_push(&dir->tokens, t);
    pthread_rwlock_unlock(&dir->lock);
}

void st_directory_revoke(st_directory *dir, int64_t id, int64_t at_ms)
{
    int64_t i;

    pthread_rwlock_wrlock(&dir->lock);
    if (st_idmap_get(dir->by_id, (uint64_t)id, &i))
        dir->tokens.v[i]->revoked_ms = at_ms;
    pthread_rwlock_unlock(&dir->lock);
}

void st_directory_refile(st_directory *dir, const char *from, const char *to)
{
    pthread_rwlock_wrlock(&dir->lock);
    for (size_t i = 0; i < dir->tokens.n; i++) {
        token *t = dir->tokens.v[i];

        if (strcmp(t->account, from) != 0)
            continue;
        free(t->account);
        t->account = st_xstrdup(to);
    }
    pthread_rwlock_unlock(&dir->lock);
}

void st_directory_remove_token(st_directory *dir, int64_t id)
{
    int64_t i;

    pthread_rwlock_wrlock(&dir->lock);
    if (st_idmap_get(dir->by_id, (uint64_t)id, &i)) {
        token *gone = dir->tokens.v[i], *last = dir->tokens.v[dir->tokens.n - 1];

        st_idmap_del(dir->by_id, (uint64_t)gone->id);
        st_idmap_del(dir->by_hash, hash_key(gone->hash));
        if (last != gone) {
            dir->tokens.v[i] = last;
            st_idmap_put(dir->by_id, (uint64_t)last->id, i);
            st_idmap_put(dir->by_hash, hash_key(last->hash), i);
        }
        dir->tokens.n--;
        token_free(gone);
    }
    pthread_rwlock_unlock(&dir->lock);
}

/* Of the account that it was made for: whoever has the name of one that is gone did not make it. */
static bool opens(const st_directory *dir, const token *t, int64_t now)
{
    int64_t i;

    return t->revoked_ms == ST_STORE_NEVER &&
           (t->expires_ms == ST_STORE_NEVER || t->expires_ms > now) &&
           st_map_get(dir->account_ids, t->account, &i) && !dir->accounts.v[i].gone &&
           dir->accounts.v[i].serial == t->serial;
}

bool st_directory_opens(st_directory *dir, int64_t id, int64_t now)
{
    bool ok = id == 0;
    int64_t i;

    pthread_rwlock_rdlock(&dir->lock);
    if (!ok && st_idmap_get(dir->by_id, (uint64_t)id, &i))
        ok = opens(dir, dir->tokens.v[i], now);
    pthread_rwlock_unlock(&dir->lock);
    return ok;
}

bool st_directory_token_account(st_directory *dir, int64_t id, char ret[ST_NAME_MAX + 1])
{
    bool found;
    int64_t i;

    pthread_rwlock_rdlock(&dir->lock);
    found = st_idmap_get(dir->by_id, (uint64_t)id, &i);
    if (found)
        snprintf(ret, ST_NAME_MAX + 1, "%s", dir->tokens.v[i]->account);
    pthread_rwlock_unlock(&dir->lock);
    return found;
}

void st_directory_each_token(st_directory *dir, int64_t now,
                             void (*fn)(void *ctx, const char *account, bool opens), void *ctx)
{
    pthread_rwlock_rdlock(&dir->lock);
    for (size_t i = 0; i < dir->tokens.n; i++)
        fn(ctx, dir->tokens.v[i]->account, opens(dir, dir->tokens.v[i], now));
    pthread_rwlock_unlock(&dir->lock);
}

int st_directory_token(st_directory *dir, const char *text, int64_t now, st_identity *ret,
                       st_err *err)
{
    unsigned char hash[ST_TOKEN_HASH];
    bool ok = false;
    int64_t i;

    if (st_token_hash(text, hash)) {
        pthread_rwlock_rdlock(&dir->lock);
        if (st_idmap_get(dir->by_hash, hash_key(hash), &i)) {
            token *t = dir->tokens.v[i];

            ok = sodium_memcmp(t->hash, hash, sizeof hash) == 0 && opens(dir, t, now);
            if (ok) {
                *ret = (st_identity){.token = t->id, .role = t->role};
                strncpy(ret->account, t->account, sizeof ret->account - 1);
                strncpy(ret->user, t->user, sizeof ret->user - 1);
                if (t->role != ST_ROLE_NODE) /* thousands, all the time: their lease tells */
                    __atomic_store_n(&t->used_ms, now, __ATOMIC_RELAXED);
            }
        }
        pthread_rwlock_unlock(&dir->lock);
    }
    if (!ok)
        return st_fail(err, ST_EAUTH,
                       "this token is not valid: it may be mistyped, expired or revoked; ask an "
                       "admin of your account for a new one");
    return 0;
}

void st_directory_used(st_directory *dir, void (*fn)(void *ctx, int64_t token, int64_t at_ms),
                       void *ctx)
{
    pthread_rwlock_rdlock(&dir->lock);
    for (size_t i = 0; i < dir->tokens.n; i++) {
        int64_t used = __atomic_exchange_n(&dir->tokens.v[i]->used_ms, 0, __ATOMIC_RELAXED);

        if (used > 0)
            fn(ctx, dir->tokens.v[i]->id, used);
    }
    pthread_rwlock_unlock(&dir->lock);
}

/* ---- accounts and names ------------------------------------------------------------------- */

/* What is left of an account that is gone goes by a name that nobody can have: those above it see that,
 * and whoever is called the same later does not. */
static void bury(st_directory *dir, account *a, int64_t i, int64_t serial)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf name = {0};
    int64_t at;

    a->gone = true;
    if (st_map_get(dir->account_ids, a->name, &at) && at == i)
        st_map_del(dir->account_ids, a->name);
    st_strbuf_addf(&name, ST_GONE_NAME, a->name, (long long)serial);
    a->was = a->name; /* somebody may still hold it */
    a->name = st_strbuf_take(&name);
    st_map_put(dir->account_ids, a->name, i);
}

/* Accounts never move, so only new ones have to be taken over; trust may change, and they may go. */
void st_directory_follow(st_directory *dir, const st_core *core)
{
    const st_tree *tree = st_core_tree(core);
    const st_fleet *fleet = st_core_fleet(core);

    pthread_rwlock_wrlock(&dir->lock);
    for (size_t i = dir->accounts.n; i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];

        /* The cluster itself goes by the empty name. */
        st_vec_push(&dir->accounts, (account){.name = st_xstrdup(i == ST_ROOT ? "" : a->name),
                                              .parent = a->parent,
                                              .serial = a->serial});
        if (!a->gone)
            st_map_put(dir->account_ids, dir->accounts.v[i].name, (int64_t)i);
    }
    for (size_t i = 0; i < dir->accounts.n; i++) {
        account *a = &dir->accounts.v[i];

        a->untrusted = st_tree_untrusted(tree, (int32_t)i);
        if (tree->accounts.v[i]->gone && !a->gone)
            bury(dir, a, (int64_t)i, tree->accounts.v[i]->serial);
    }
    bind_all(dir);
    for (size_t i = dir->types.n; i < fleet->types.n; i++)
        st_vec_push(&dir->types, (type){st_xstrdup(fleet->types.v[i].name),
                                        fleet->types.v[i].vram_mib, fleet->types.v[i].board, 0});
    for (; dir->nodes < fleet->nodes.n; dir->nodes++) {
        const st_node *node = fleet->nodes.v[dir->nodes];

        if (node->type >= 0)
            dir->types.v[node->type].node_gpus =
                ST_MAX(dir->types.v[node->type].node_gpus, node->ndevs);
    }
    for (size_t i = 0; i < fleet->pools.n; i++) {
        if (i == dir->pools.n)
            st_vec_push(&dir->pools, st_xstrdup(fleet->pools.v[i].name));
        if (strcmp(dir->pools.v[i], fleet->pools.v[i].name) == 0)
            continue;
        free(dir->pools.v[i]); /* it was removed, or another took its slot */
        dir->pools.v[i] = st_xstrdup(fleet->pools.v[i].name);
    }
    pthread_rwlock_unlock(&dir->lock);
}

static bool within(const st_directory *dir, int64_t id, int64_t above)
{
    while (id >= 0 && id != above)
        id = dir->accounts.v[id].parent;
    return id == above;
}

bool st_directory_within(st_directory *dir, const char *name, const char *above)
{
    int64_t a, b;
    bool in;

    pthread_rwlock_rdlock(&dir->lock);
    in = st_map_get(dir->account_ids, name, &a) && st_map_get(dir->account_ids, above, &b) &&
         within(dir, a, b);
    pthread_rwlock_unlock(&dir->lock);
    return in;
}

const char *st_directory_parent(st_directory *dir, const char *name)
{
    const char *parent = NULL;
    int64_t id;

    pthread_rwlock_rdlock(&dir->lock);
    if (st_map_get(dir->account_ids, name, &id) && dir->accounts.v[id].parent >= 0)
        parent = dir->accounts.v[dir->accounts.v[id].parent].name;
    pthread_rwlock_unlock(&dir->lock);
    return parent;
}

size_t st_directory_above(st_directory *dir, const char *name, const char *ret[ST_ABOVE_MAX])
{
    size_t n = 0;

    for (const char *a = name; a && a[0] && n < ST_ABOVE_MAX - 1; a = st_directory_parent(dir, a))
        ret[n++] = a;
    ret[n] = NULL;
    return n;
}

int64_t st_directory_serial(st_directory *dir, const char *name)
{
    int64_t id, serial = -1;

    pthread_rwlock_rdlock(&dir->lock);
    if (st_map_get(dir->account_ids, name, &id))
        serial = dir->accounts.v[id].serial;
    pthread_rwlock_unlock(&dir->lock);
    return serial;
}

static const char *was(const account *a)
{
    return a->was ? a->was : a->name;
}

const char *st_directory_was(st_directory *dir, const char *name)
{
    const char *ret = NULL;
    int64_t id;

    pthread_rwlock_rdlock(&dir->lock);
    if (st_map_get(dir->account_ids, name, &id))
        ret = was(&dir->accounts.v[id]);
    pthread_rwlock_unlock(&dir->lock);
    return ret;
}

int64_t st_directory_serial_above(st_directory *dir, const char *from, const char *name)
{
    int64_t id, serial = -1;

    pthread_rwlock_rdlock(&dir->lock);
    if (!st_map_get(dir->account_ids, from, &id))
        id = -1;
    for (; id >= 0 && serial < 0; id = dir->accounts.v[id].parent)
        if (strcmp(was(&dir->accounts.v[id]), name) == 0)
            serial = dir->accounts.v[id].serial;
    pthread_rwlock_unlock(&dir->lock);
    return serial;
}

void st_directory_stands(st_directory *dir, const char *name, st_stands *ret)
{
    int64_t id, path[ST_STORE_DEPTH];
    int n = 0;

    *ret = (st_stands){0};
    pthread_rwlock_rdlock(&dir->lock);
    if (!st_map_get(dir->account_ids, name, &id))
        id = ST_ROOT;
    for (; id > ST_ROOT && n < ST_STORE_DEPTH; id = dir->accounts.v[id].parent)
        path[n++] = dir->accounts.v[id].serial;
    pthread_rwlock_unlock(&dir->lock);
    for (int i = 0; i < n; i++)
        ret->in[i] = path[n - 1 - i];
}

st_within st_directory_range(st_directory *dir, const char *name)
{
    st_within all = {0}, ret = {.level = 1, .serial = -1};
    st_stands s;

    if (!name[0])
        return all;
    st_directory_stands(dir, name, &s);
    for (int i = 0; i < ST_STORE_DEPTH && s.in[i] > 0; i++)
        ret = (st_within){.level = i + 1, .serial = s.in[i]};
    return ret;
}

int32_t st_directory_org(st_directory *dir, const char *name)
{
    int64_t id;

    pthread_rwlock_rdlock(&dir->lock);
    if (!st_map_get(dir->account_ids, name, &id))
        id = ST_ROOT;
    while (id > ST_ROOT && dir->accounts.v[id].parent > ST_ROOT)
        id = dir->accounts.v[id].parent;
    pthread_rwlock_unlock(&dir->lock);
    return (int32_t)id;
}

static int type_named(void *ctx, const st_doc *doc, const st_doc_node *node, int32_t *ret,
                      st_err *err)
{
    st_directory *dir = ctx;
    const char *names[ST_TYPES_MAX + 1] = {NULL}, *name;
    int r = st_doc_str(doc, node, &name, err);

    if (r < 0)
        return r;
    pthread_rwlock_rdlock(&dir->lock);
    r = 1;
    for (size_t i = 0; i < dir->types.n; i++) {
        names[i] = dir->types.v[i].name;
        if (r == 1 && strcmp(names[i], name) == 0) {
            *ret = (int32_t)i;
            r = 0;
        }
    }
    if (r == 1)
        r = st_spec_missing(doc, node, "GPU type", names, err);
    pthread_rwlock_unlock(&dir->lock);
    return r;
}

static int pool_named(void *ctx, const st_doc *doc, const st_doc_node *node, int32_t *ret,
                      st_err *err)
{
    st_directory *dir = ctx;
    const char *names[ST_POOLS_MAX + 1] = {NULL}, *name;
    int r = st_doc_str(doc, node, &name, err);

    if (r < 0)
        return r;
    pthread_rwlock_rdlock(&dir->lock);
    r = 1;
    for (size_t i = 0; i < dir->pools.n; i++) {
        names[i] = dir->pools.v[i];
        if (r == 1 && name[0] && strcmp(names[i], name) == 0) {
            *ret = (int32_t)i;
            r = 0;
        }
    }
    if (r == 1)
        r = st_spec_missing(doc, node, "pool", names, err);
    pthread_rwlock_unlock(&dir->lock);
    return r;
}

static size_t ntypes(void *ctx)
{
    st_directory *dir = ctx;
    size_t n;

    pthread_rwlock_rdlock(&dir->lock);
    n = dir->types.n;
    pthread_rwlock_unlock(&dir->lock);
    return n;
}

static st_board board_of(void *ctx, int32_t t)
{
    st_directory *dir = ctx;
    st_board board;

    pthread_rwlock_rdlock(&dir->lock);
    board = dir->types.v[t].board;
    pthread_rwlock_unlock(&dir->lock);
    return board;
}

st_spec_names st_directory_names(st_directory *dir)
{
    return (st_spec_names){dir, type_named, pool_named, ntypes, board_of};
}

size_t st_directory_types(st_directory *dir, st_directory_gpu ret[ST_TYPES_MAX])
{
    size_t n;

    pthread_rwlock_rdlock(&dir->lock);
    n = ST_MIN(dir->types.n, (size_t)ST_TYPES_MAX);
    for (size_t i = 0; i < n; i++) {
        const type *t = &dir->types.v[i];

        ret[i] = (st_directory_gpu){
            .vram_mib = t->vram_mib, .board = t->board, .node_gpus = t->node_gpus};
        strncpy(ret[i].name, t->name, ST_NAME_MAX);
    }
    pthread_rwlock_unlock(&dir->lock);
    return n;
}

bool st_directory_trusted(st_directory *dir, const char *name)
{
    bool trusted = false;
    int64_t id;

    pthread_rwlock_rdlock(&dir->lock);
    if (st_map_get(dir->account_ids, name, &id))
        trusted = !dir->accounts.v[id].untrusted;
    pthread_rwlock_unlock(&dir->lock);
    return trusted;
}

/* ---- making ------------------------------------------------------------------------------- */

st_directory *st_directory_new(void)
{
    st_directory *dir = st_xcalloc(1, sizeof *dir);

    ST_ASSERT(pthread_rwlock_init(&dir->lock, NULL) == 0);
    dir->by_hash = st_idmap_new();
    dir->by_id = st_idmap_new();
    dir->account_ids = st_map_new();
    return dir;
}

void st_directory_free(st_directory *dir)
{
    if (!dir)
        return;
    for (size_t i = 0; i < dir->tokens.n; i++)
        token_free(dir->tokens.v[i]);
    for (size_t i = 0; i < dir->accounts.n; i++)
        free(dir->accounts.v[i].name), free(dir->accounts.v[i].was);
    for (size_t i = 0; i < dir->types.n; i++)
        free(dir->types.v[i].name);
    for (size_t i = 0; i < dir->pools.n; i++)
        free(dir->pools.v[i]);
    st_vec_free(&dir->tokens);
    st_vec_free(&dir->accounts);
    st_vec_free(&dir->types);
    st_vec_free(&dir->pools);
    st_idmap_free(dir->by_hash);
    st_idmap_free(dir->by_id);
    st_map_free(dir->account_ids);
    pthread_rwlock_destroy(&dir->lock);
    free(dir);
}
