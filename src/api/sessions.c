/*
 * Sessions of browsers (api/sessions.h): two small tables behind a lock, found by the hash of a secret.
 */
#include "api/sessions.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

#define HASH 32

/* One that may be used: a session, or a code, which is used once. */
typedef struct pass {
    uint64_t number;
    unsigned char hash[HASH];
    st_identity who;
    int32_t counted;
    int64_t made_ms, used_ms;
} pass;

/* In the order they were made; found by the first eight bytes of the hash, which is as random as a key can be. */
typedef struct table {
    ST_VEC(pass *) rows;
    st_idmap *by_hash, *by_number; /* the pass */
} table;

struct st_sessions {
    pthread_mutex_t lock;
    table sessions, codes;
    uint64_t last;
    void (*gone)(void *ctx, int32_t counted);
    void *ctx;
};

static void table_init(table *t)
{
    t->by_hash = st_idmap_new();
    t->by_number = st_idmap_new();
}

static void pass_free(pass *p)
{
    sodium_memzero(p, sizeof *p);
    free(p);
}

static void table_done(table *t)
{
    for (size_t i = 0; i < t->rows.n; i++)
        pass_free(t->rows.v[i]);
    st_vec_free(&t->rows);
    st_idmap_free(t->by_hash);
    st_idmap_free(t->by_number);
}

st_sessions *st_sessions_new(void (*gone)(void *ctx, int32_t counted), void *ctx)
{
    st_sessions *all = st_xcalloc(1, sizeof *all);

    ST_ASSERT(pthread_mutex_init(&all->lock, NULL) == 0);
    table_init(&all->sessions);
    table_init(&all->codes);
    all->gone = gone;
    all->ctx = ctx;
    return all;
}

void st_sessions_free(st_sessions *all)
{
    if (!all)
        return;
    table_done(&all->sessions);
    table_done(&all->codes);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

/* ---- secrets ------------------------------------------------------------------------------ */

static void make_secret(char text[ST_LOGIN_TEXT], unsigned char hash[HASH])
{
    unsigned char secret[ST_LOGIN_SECRET];

    randombytes_buf(secret, sizeof secret);
    sodium_bin2base64(text, ST_LOGIN_TEXT, secret, sizeof secret,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    crypto_generichash(hash, HASH, secret, sizeof secret, NULL, 0);
    sodium_memzero(secret, sizeof secret);
}

static bool hash_of(const char *text, unsigned char hash[HASH])
{
    unsigned char secret[ST_LOGIN_SECRET];
    const char *end;
    size_t n;
    bool ok = strlen(text) < ST_LOGIN_TEXT &&
              sodium_base642bin(secret, sizeof secret, text, strlen(text), NULL, &n, &end,
                                sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0 &&
              *end == '\0' && n == sizeof secret;

    if (ok)
        crypto_generichash(hash, HASH, secret, sizeof secret, NULL, 0);
    sodium_memzero(secret, sizeof secret);
    return ok;
}

/* ---- tables --------------------------------------------------------------------------------- */

static bool is_over(const pass *p, int64_t now)
{
    return now - p->used_ms >= ST_SESSION_IDLE_MS || now - p->made_ms >= ST_SESSION_WHOLE_MS;
}

static bool is_late(const pass *p, int64_t now)
{
    return now - p->made_ms >= ST_CODE_MS;
}

static uint64_t hash_key(const unsigned char *hash)
{
    uint64_t key;

    memcpy(&key, hash, sizeof key);
    return key;
}

static pass *find(const table *t, const char *text)
{
    unsigned char hash[HASH];
    int64_t at;
    pass *p;

    if (!hash_of(text, hash) || !st_idmap_get(t->by_hash, hash_key(hash), &at))
        return NULL;
    p = (pass *)(intptr_t)at;
    return sodium_memcmp(p->hash, hash, HASH) == 0 ? p : NULL;
}

static void unlist(table *t, const pass *p)
{
    st_idmap_del(t->by_hash, hash_key(p->hash));
    st_idmap_del(t->by_number, p->number);
}

static void drop(table *t, pass *p)
{
    size_t i = 0;

    while (t->rows.v[i] != p)
        i++;
    for (; i + 1 < t->rows.n; i++)
        t->rows.v[i] = t->rows.v[i + 1];
    t->rows.n--;
    unlist(t, p);
    pass_free(p);
}

static pass *add(st_sessions *all, table *t, const st_identity *who, int64_t now,
                 char ret[ST_LOGIN_TEXT])
{
    pass *p = st_xcalloc(1, sizeof *p);

    p->number = ++all->last;
    p->who = *who;
    p->made_ms = p->used_ms = now;
    make_secret(ret, p->hash);
    st_vec_push(&t->rows, p);
    st_idmap_put(t->by_hash, hash_key(p->hash), (int64_t)(intptr_t)p);
    st_idmap_put(t->by_number, p->number, (int64_t)(intptr_t)p);
    return p;
}

uint64_t st_session_begin(st_sessions *all, const st_identity *who, int32_t counted, int64_t now,
                          char ret[ST_LOGIN_TEXT])
{
    uint64_t number;

    pthread_mutex_lock(&all->lock);
    pass *p = add(all, &all->sessions, who, now, ret);
    p->counted = counted;
    number = p->number;
    pthread_mutex_unlock(&all->lock);
    return number;
}

uint64_t st_session_find(st_sessions *all, const char *text, int64_t now, st_identity *ret)
{
    uint64_t number = 0;

    pthread_mutex_lock(&all->lock);
    pass *p = find(&all->sessions, text);
    if (p && !is_over(p, now)) {
        p->used_ms = now;
        *ret = p->who;
        number = p->number;
    }
    pthread_mutex_unlock(&all->lock);
    return number;
}

bool st_session_lives(st_sessions *all, uint64_t number, int64_t now)
{
    int64_t at;
    bool lives;

    pthread_mutex_lock(&all->lock);
    lives = st_idmap_get(all->sessions.by_number, number, &at) &&
            !is_over((const pass *)(intptr_t)at, now);
    pthread_mutex_unlock(&all->lock);
    return lives;
}

void st_session_end(st_sessions *all, uint64_t number)
{
    int64_t at;

    pthread_mutex_lock(&all->lock);
    if (st_idmap_get(all->sessions.by_number, number, &at)) {
        all->gone(all->ctx, ((const pass *)(intptr_t)at)->counted);
        drop(&all->sessions, (pass *)(intptr_t)at);
    }
    pthread_mutex_unlock(&all->lock);
}

void st_sessions_sweep(st_sessions *all, int64_t now)
{
    size_t n = 0;

    pthread_mutex_lock(&all->lock);
    table *t = &all->sessions;
    for (size_t i = 0; i < t->rows.n; i++) {
        pass *p = t->rows.v[i];

        if (!is_over(p, now)) {
            t->rows.v[n++] = p;
            continue;
        }
        all->gone(all->ctx, p->counted);
        unlist(t, p);
        pass_free(p);
    }
    t->rows.n = n;
    while (all->codes.rows.n > 0 && is_late(all->codes.rows.v[0], now))
        drop(&all->codes, all->codes.rows.v[0]);
    pthread_mutex_unlock(&all->lock);
}

int64_t st_session_until(int64_t begun)
{
    return begun + ST_SESSION_WHOLE_MS;
}

/* The oldest code of a token that has as many as it may; NULL: it may have one more. */
static pass *oldest_of(const table *t, int64_t token)
{
    pass *first = NULL;
    int n = 0;

    for (size_t i = 0; i < t->rows.n; i++) {
        if (t->rows.v[i]->who.token != token)
            continue;
        first = first ? first : t->rows.v[i];
        n++;
    }
    return n >= ST_CODES_EACH ? first : NULL;
}

void st_code_make(st_sessions *all, const st_identity *who, int64_t now, char ret[ST_LOGIN_TEXT])
{
    pthread_mutex_lock(&all->lock);
    pass *old = oldest_of(&all->codes, who->token);
    if (!old && all->codes.rows.n >= ST_CODES_MAX)
        old = all->codes.rows.v[0];
    if (old)
        drop(&all->codes, old);
    add(all, &all->codes, who, now, ret);
    pthread_mutex_unlock(&all->lock);
}

bool st_code_take(st_sessions *all, const char *text, int64_t now, st_identity *ret)
{
    bool ok = false;

    pthread_mutex_lock(&all->lock);
    pass *p = find(&all->codes, text);
    if (p) {
        ok = !is_late(p, now);
        *ret = p->who;
        drop(&all->codes, p);
    }
    pthread_mutex_unlock(&all->lock);
    return ok;
}
