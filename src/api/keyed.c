/*
 * Every POST takes an Idempotency-Key: what is answered first is answered again, and nothing is done twice
 * (control/keyed.c). Submits have their own way, which also goes on with a batch that was cut off.
 *
 * An answer is kept as "STATUS BODY". One with a secret is not kept: who repeats such a request is told that it was done.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"

#define KEY_MAX 200

typedef struct keyed {
    st_cmd_key key;
    st_api *api;
    bool secret;
} keyed;

/* In the loop's thread, as all commands are answered there; with no transaction open. */
static void on_answer(void *ctx, int *status, const char **type, char **text, size_t *len)
{
    keyed *k = ctx;
    char *body;

    if (k->key.answer) {
        *status = (int)strtol(k->key.answer, &body, 10);
        free(*text);
        *text = st_xstrdup(body[0] ? body + 1 : "");
        *len = strlen(*text);
        *type = NULL;
    } else if (k->key.done && *status < 300 && !k->secret) {
        ST_CLEANUP(st_strbuf_done) st_strbuf answer = {0};

        st_strbuf_addf(&answer, "%d ", *status);
        st_strbuf_addn(&answer, *text, *len);
        st_cmd_key_keep(k->api->control, &k->key, st_strbuf_str(&answer));
    } else if (k->key.done && *status >= 300) {
        st_cmd_key_drop(k->api->control, &k->key);
    }
    free(k->key.answer);
    free(k);
}

static void digest_of(const st_call *call, unsigned char ret[32])
{
    crypto_generichash_state state;
    const char *method = st_call_method(call), *path = st_call_path(call);
    size_t len;
    const char *body = st_call_body(call, &len);

    crypto_generichash_init(&state, NULL, 0, 32);
    crypto_generichash_update(&state, (const unsigned char *)method, strlen(method) + 1);
    crypto_generichash_update(&state, (const unsigned char *)path, strlen(path) + 1);
    crypto_generichash_update(&state, (const unsigned char *)body, len);
    crypto_generichash_final(&state, ret, 32);
}

int st_api_key(st_api *api, st_call *call, st_cmd *cmd, st_err *err)
{
    const st_identity *who = st_api_who(call);
    const char *key = st_call_idempotency_key(call);
    const st_route *route = st_call_route(call);
    keyed *k;

    if (!key || cmd->keys_itself || strcmp(st_call_method(call), "POST") != 0 ||
        (route->flags & (ST_ROUTE_UNCHANGED | ST_ROUTE_NO_KEY)))
        return 0;
    if (!key[0] || strlen(key) > KEY_MAX)
        return st_fail(err, ST_EINVAL, "an Idempotency-Key has 1 to %d bytes", KEY_MAX);
    k = st_xcalloc(1, sizeof *k);
    k->api = api;
    k->secret = route->flags & ST_ROUTE_SECRET;
    k->key.key = key;
    st_cmd_key_owner(who, k->key.owner);
    digest_of(call, k->key.digest);
    cmd->key = &k->key;
    st_call_on_answer(call, on_answer, k);
    return 0;
}
