/*
 * The secrets a job names, `secrets: {HF_TOKEN: hf, KEY: {secret: deploy, as: env}}`: checked when it is submitted,
 * opened for the node that starts it. The form of the member was checked by the reader of documents.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "vault/state.h"

typedef struct wish {
    const char *name, *secret;
    bool env;
} wish;

static bool read_wish(const char *name, const json_t *value, wish *ret)
{
    const char *as = json_string_value(json_object_get(value, "as"));

    *ret = (wish){.name = name, .secret = json_string_value(value)};
    if (!ret->secret)
        ret->secret = json_string_value(json_object_get(value, "secret"));
    ret->env = as && strcmp(as, "env") == 0;
    return ret->secret && st_plain_name(name, ST_SECRET_NAME_MAX) &&
           st_plain_name(ret->secret, ST_SECRET_NAME_MAX);
}

/* A variable's value ends at the first NUL, and a runtime takes UTF-8 alone. */
static int check_env(const wish *w, const st_strbuf *value, st_err *err)
{
    if (!w->env)
        return 0;
    if (memchr(st_strbuf_str(value), '\0', value->n) ||
        st_utf8_valid(st_strbuf_str(value), value->n) != value->n)
        return st_fail(
            err, ST_EINVAL,
            "secret %s is not text, so it cannot be the variable %s; leave out `as: env` "
            "and read the file",
            w->secret, w->name);
    return 0;
}

static void add_value(st_strbuf *out, const wish *w, const st_strbuf *value, bool first)
{
    size_t room = sodium_base64_encoded_len(value->n, sodium_base64_VARIANT_ORIGINAL);
    char *text = st_xmalloc(room);

    st_strbuf_add(out, first ? ",\"secrets\":[{\"name\":" : ",{\"name\":");
    st_quote_json(out, w->name);
    st_strbuf_addf(out, ",\"env\":%s,\"value\":\"", w->env ? "true" : "false");
    st_strbuf_add(out, sodium_bin2base64(text, room, (const unsigned char *)st_strbuf_str(value),
                                         value->n, sodium_base64_VARIANT_ORIGINAL));
    st_strbuf_add(out, "\"}");
    sodium_memzero(text, room);
    free(text);
}

static int each(st_vault *v, const char *const *above, json_t *map, st_strbuf *out, st_err *err)
{
    size_t bytes = 0, n = 0;
    const char *name;
    json_t *value;

    json_object_foreach(map, name, value)
    {
        ST_CLEANUP(st_wipe) st_strbuf plain = {0};
        wish w;
        int r;

        if (!read_wish(name, value, &w) || n >= ST_JOB_SECRETS_MAX)
            return st_fail(err, ST_EINVAL, "the job's secrets make no sense");
        r = st_vault_secret(v, above, w.secret, &plain, err);
        if (r == 0)
            r = check_env(&w, &plain, err);
        if (r < 0)
            return r;
        bytes += plain.n;
        if (bytes > ST_JOB_SECRETS_BYTES)
            return st_fail(err, ST_ELIMIT, "the secrets of a job have at most %d KiB together",
                           ST_JOB_SECRETS_BYTES / 1024);
        if (out)
            add_value(out, &w, &plain, n == 0);
        n++;
    }
    if (out && n > 0)
        st_strbuf_addc(out, ']');
    return 0;
}

static int walk(st_vault *v, const char *const *above, const char *doc, st_strbuf *out, st_err *err)
{
    json_t *root;
    size_t before = out ? out->n : 0;
    int r;

    if (!strstr(doc, "\"secrets\"")) /* most jobs have none */
        return 0;
    root = json_loads(doc, 0, NULL);
    r = each(v, above, json_object_get(root, "secrets"), out, err);
    json_decref(root);
    if (r < 0 && out) {
        if (out->s)
            sodium_memzero(out->s + before, out->n - before);
        out->n = before;
    }
    return r;
}

int st_vault_check_job(st_vault *v, const char *const *above, const char *doc, st_err *err)
{
    return walk(v, above, doc, NULL, err);
}

int st_vault_deliver(st_vault *v, const char *const *above, const char *doc, st_strbuf *out,
                     st_err *err)
{
    return walk(v, above, doc, out, err);
}
