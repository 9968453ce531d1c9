/*
 * The secrets of accounts: what is known of each, and its value, sealed. Kept in order of account and name.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "vault/state.h"

/* ---- as a row --------------------------------------------------------------------------------- */

void st_secret_write(const st_secret *s, st_strbuf *out)
{
    json_t *j = json_pack("{s:s,s:s,s:I,s:I,s:b,s:s}", "by", s->by, "by_account", s->by_account,
                          "made_ms", (json_int_t)s->made_ms, "changed_ms",
                          (json_int_t)s->changed_ms, "below", s->below, "sealed", s->sealed);
    char *text = json_dumps(j, JSON_COMPACT);

    ST_ASSERT(text);
    st_strbuf_add(out, text);
    free(text);
    json_decref(j);
}

int st_secret_read(const char *doc, st_arena *arena, st_secret *ret, st_err *err)
{
    json_t *j = json_loads(doc, 0, NULL);
    const char *by, *by_account, *sealed;
    json_int_t made, changed;
    int below, bad = json_unpack(j, "{s:s,s:s,s:I,s:I,s:b,s:s}", "by", &by, "by_account",
                                 &by_account, "made_ms", &made, "changed_ms", &changed, "below",
                                 &below, "sealed", &sealed);

    if (bad == 0) {
        ret->by = st_arena_strdup(arena, by);
        ret->by_account = st_arena_strdup(arena, by_account);
        ret->sealed = st_arena_strdup(arena, sealed);
        ret->made_ms = made;
        ret->changed_ms = changed;
        ret->below = below;
    }
    json_decref(j);
    return bad == 0 ? 0 : st_fail(err, ST_ECORRUPT, "a secret's row makes no sense");
}

/* ---- in memory -------------------------------------------------------------------------------- */

static void secret_free(st_secret *s)
{
    free((char *)(uintptr_t)s->account);
    free((char *)(uintptr_t)s->name);
    free((char *)(uintptr_t)s->by);
    free((char *)(uintptr_t)s->by_account);
    free((char *)(uintptr_t)s->sealed);
    free(s);
}

static int order(const st_secret *s, const char *account, const char *name)
{
    int c = strcmp(s->account, account);

    return c ? c : strcmp(s->name, name);
}

/* The first that is not before it. */
static size_t at_of(const st_vault *v, const char *account, const char *name)
{
    size_t lo = 0, hi = v->all.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (order(v->all.v[mid], account, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static st_secret *find(const st_vault *v, const char *account, const char *name)
{
    size_t at = at_of(v, account, name);

    return at < v->all.n && order(v->all.v[at], account, name) == 0 ? v->all.v[at] : NULL;
}

void st_vault_put(st_vault *v, const st_secret *s)
{
    st_secret *copy = st_xmalloc(sizeof *copy);
    size_t at;

    *copy = *s;
    copy->account = st_xstrdup(s->account);
    copy->name = st_xstrdup(s->name);
    copy->by = st_xstrdup(s->by);
    copy->by_account = st_xstrdup(s->by_account);
    copy->sealed = st_xstrdup(s->sealed);
    pthread_rwlock_wrlock(&v->lock);
    at = at_of(v, s->account, s->name);
    if (at < v->all.n && order(v->all.v[at], s->account, s->name) == 0) {
        secret_free(v->all.v[at]);
        v->all.v[at] = copy;
    } else {
        st_vec_insert(&v->all, at, copy);
    }
    pthread_rwlock_unlock(&v->lock);
}

void st_vault_remove(st_vault *v, const char *account, const char *name)
{
    size_t at;

    pthread_rwlock_wrlock(&v->lock);
    at = at_of(v, account, name);
    if (at < v->all.n && order(v->all.v[at], account, name) == 0) {
        secret_free(v->all.v[at]);
        st_vec_remove(&v->all, at);
    }
    pthread_rwlock_unlock(&v->lock);
}

void st_vault_clear(st_vault *v)
{
    pthread_rwlock_wrlock(&v->lock);
    for (size_t i = 0; i < v->all.n; i++)
        secret_free(v->all.v[i]);
    st_vec_clear(&v->all);
    pthread_rwlock_unlock(&v->lock);
}

static void count_one(void *ctx, const st_secret *s)
{
    (void)s;
    ++*(size_t *)ctx;
}

size_t st_vault_count(st_vault *v, const char *account)
{
    size_t n = 0;

    st_vault_each(v, account, false, count_one, &n);
    return n;
}

void st_vault_each(st_vault *v, const char *account, bool below_only, st_secret_fn fn, void *ctx)
{
    pthread_rwlock_rdlock(&v->lock);
    for (size_t i = at_of(v, account, "");
         i < v->all.n && strcmp(v->all.v[i]->account, account) == 0; i++)
        if (!below_only || v->all.v[i]->below)
            fn(ctx, v->all.v[i]);
    pthread_rwlock_unlock(&v->lock);
}

/* ---- opening ---------------------------------------------------------------------------------- */

typedef struct sealed_copy {
    char *text;
    int64_t owner, version;
} sealed_copy;

static void copy_sealed(sealed_copy *to, const st_secret *s)
{
    *to = (sealed_copy){st_xstrdup(s->sealed), s->owner, s->version};
}

int st_vault_secret(st_vault *v, const char *const *above, const char *name, st_strbuf *ret,
                    st_err *err)
{
    sealed_copy c = {0};
    char q[ST_QUOTE_MAX];
    int r;

    pthread_rwlock_rdlock(&v->lock);
    for (size_t i = 0; above[i] && !c.text; i++) {
        const st_secret *s = find(v, above[i], name);

        if (s && (i == 0 || s->below))
            copy_sealed(&c, s);
    }
    pthread_rwlock_unlock(&v->lock);
    if (!c.text)
        return st_fail(
            err, ST_ENOENT, "%s%s has no secret %s; `stint secret list` shows those it has",
            above[0] ? "account " : "the cluster", above[0] ? above[0] : "", st_quote(q, name));
    const st_vault_place place = {
        .kind = "secret", .owner = c.owner, .name = name, .version = c.version};
    r = st_vault_unseal(v, &place, c.text, ret, err);
    if (r < 0)
        st_fail_prefix(err, "secret %s: ", st_quote(q, name));
    free(c.text);
    return r;
}
