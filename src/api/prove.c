/*
 * Nodes prove themselves (doc/decisions/0021): challenges are given to anybody, and signatures of bound keys are
 * checked.
 *
 * A challenge is its own memory: the moment it was made, random bytes, and a code over both with a key of this
 * process. So giving them out costs nothing that could run out. Those that were used are kept until they are too
 * old; only who has signed one with a bound key, or has a join token, uses one.
 */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"

#define CHALLENGE_MS INT64_C(60000)
#define CODE_BYTES   16
#define RANDOM_BYTES 8

typedef struct challenge {
    int64_t at_ms;
    unsigned char random[RANDOM_BYTES], code[CODE_BYTES];
} challenge;

typedef struct used {
    int64_t at_ms;
    char text[ST_SESSION_TEXT];
} used;

struct st_challenges {
    unsigned char key[crypto_generichash_KEYBYTES];
    pthread_mutex_t lock; /* the rest */
    ST_VEC(used) used;    /* oldest first */
    st_map *texts;
};

_Static_assert(sizeof(challenge) == ST_SESSION_MAX, "a challenge is a session's text");

st_challenges *st_challenges_new(void)
{
    st_challenges *c = st_xcalloc(1, sizeof *c);

    randombytes_buf(c->key, sizeof c->key);
    c->texts = st_map_new();
    ST_ASSERT(pthread_mutex_init(&c->lock, NULL) == 0);
    return c;
}

void st_challenges_free(st_challenges *c)
{
    if (!c)
        return;
    st_vec_free(&c->used);
    st_map_free(c->texts);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static void code_of(const st_challenges *c, const challenge *ch, unsigned char ret[CODE_BYTES])
{
    crypto_generichash(ret, CODE_BYTES, (const unsigned char *)ch, offsetof(challenge, code),
                       c->key, sizeof c->key);
}

static void make(const st_challenges *c, int64_t now, char ret[ST_SESSION_TEXT])
{
    challenge ch = {.at_ms = now};

    randombytes_buf(ch.random, sizeof ch.random);
    code_of(c, &ch, ch.code);
    sodium_bin2hex(ret, ST_SESSION_TEXT, (const unsigned char *)&ch, sizeof ch);
}

/* Forgets those that nobody could use again. */
static void tidy(st_challenges *c, int64_t now)
{
    size_t old = 0;

    while (old < c->used.n && c->used.v[old].at_ms + CHALLENGE_MS < now)
        st_map_del(c->texts, c->used.v[old++].text);
    if (old == 0)
        return;
    memmove(c->used.v, c->used.v + old, (c->used.n - old) * sizeof *c->used.v);
    c->used.n -= old;
}

bool st_challenges_take(st_challenges *c, const char *text, int64_t now)
{
    unsigned char code[CODE_BYTES];
    challenge ch;
    size_t n;
    bool fresh;

    if (strlen(text) != 2 * sizeof ch ||
        sodium_hex2bin((unsigned char *)&ch, sizeof ch, text, strlen(text), NULL, &n, NULL) != 0 ||
        n != sizeof ch)
        return false;
    code_of(c, &ch, code);
    if (sodium_memcmp(code, ch.code, sizeof code) != 0 || now < ch.at_ms ||
        now > ch.at_ms + CHALLENGE_MS)
        return false;
    pthread_mutex_lock(&c->lock);
    tidy(c, now);
    fresh = !st_map_get(c->texts, text, NULL);
    if (fresh) {
        used u = {.at_ms = now};

        memcpy(u.text, text, strlen(text) + 1);
        st_map_put(c->texts, text, 1);
        st_vec_push(&c->used, u);
    }
    pthread_mutex_unlock(&c->lock);
    return fresh;
}

void st_api_agent_challenge(st_call *call, void *ctx)
{
    st_api *api = ctx;
    char text[ST_SESSION_TEXT];
    st_strbuf out = {0};

    make(api->challenges, api->options.clock(api->options.ctx), text);
    st_strbuf_addc(&out, '{');
    st_out_text(&out, "challenge", text);
    if (atomic_load(&api->agent_port) > 0)
        st_out_int(&out, "agent_port", atomic_load(&api->agent_port));
    st_strbuf_addc(&out, '}');
    st_call_set_header(call, "Cache-Control", "no-store");
    st_call_reply_buf(call, 200, NULL, &out);
    st_strbuf_done(&out);
}

/* ---- proofs --------------------------------------------------------------------------------------- */

/* One sentence for an unknown node and a wrong key, so that nobody learns which. */
static int stranger(st_err *err)
{
    return st_fail(err, ST_EAUTH,
                   "this is not the key of a node here; join with a join token, or have an owner "
                   "run `stint node rejoin`");
}

int st_api_prove(st_api *api, const char *text, st_caller *ret, st_err *err)
{
    unsigned char key[ST_KEY_BYTES];
    st_proof *p = &ret->proof;
    int64_t now = api->options.clock(api->options.ctx);

    if (!api->options.native || !st_proof_parse(text, p) ||
        !st_native_key(api->options.native, p->node, key) || !st_proof_good(text, key))
        return stranger(err);
    if (p->n == 0) {
        if (!st_challenges_take(api->challenges, p->session, now))
            return st_fail(err, ST_EAUTH,
                           "the challenge is unknown, too old or was used: ask for another");
    } else if (st_native_hear(api->options.native, p, &ret->waiting, err) < 0) {
        return -err->code;
    }
    ret->signed_by = true;
    ret->who.role = ST_ROLE_NODE;
    snprintf(ret->who.user, sizeof ret->who.user, "%s", p->node);
    return 0;
}

int st_api_unbound(const st_api *api, const st_identity *who, st_err *err)
{
    unsigned char key[ST_KEY_BYTES];

    if (who->role == ST_ROLE_NODE && api->options.native &&
        st_native_key(api->options.native, who->user, key))
        return stranger(err);
    return 0;
}

/* Parameters in the order of the route's table, as agents send them. */
bool st_api_digest_is(const st_call *call, const st_proof *proof)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf target = {0};
    unsigned char digest[ST_DIGEST_BYTES];
    size_t n;
    const char *body = st_call_body(call, &n), *sep = "?";

    st_strbuf_add(&target, st_call_path(call));
    for (const st_query_row *q = st_call_route(call)->query; q && q->name; q++) {
        const char *value = st_call_query(call, q->name);

        if (!value)
            continue;
        st_strbuf_addf(&target, "%s%s=%s", sep, q->name, value);
        sep = "&";
    }
    st_proof_digest(st_call_method(call), st_strbuf_str(&target), body, n, digest);
    return sodium_memcmp(digest, proof->digest, sizeof digest) == 0;
}

bool st_api_proved(st_api *api, st_call *call)
{
    const st_caller *caller = st_api_caller(call);
    st_err err;

    (void)api;
    if (!caller->signed_by || st_api_digest_is(call, &caller->proof))
        return true;
    st_fail(&err, ST_EAUTH, "the signature is of another request");
    st_call_fail(call, &err);
    return false;
}
