/* The log of checkpoints: how far it has come, signed; and who else has seen it come so far (proof/proof.h). */
#include <string.h>

#include "base/quote.h"
#include "proof/proof.h"
#include "proof/signed.h"

static void write_size(const char *cluster, int64_t at_ms, int64_t size, const st_hash *root,
                       st_strbuf *out)
{
    st_quote_json(out, cluster);
    st_strbuf_addf(out, ",\"at\":%lld,\"size\":%lld,\"root\":\"", (long long)at_ms,
                   (long long)size);
    st_hex_write(root->b, ST_HASH, out);
    st_strbuf_addc(out, '"');
}

static void read_size(st_strict *s, char cluster[64], int64_t *at_ms, int64_t *size, st_hash *root)
{
    st_strict_str(s, cluster, 64);
    st_strict_text(s, ",\"at\":");
    *at_ms = st_strict_i64(s);
    st_strict_text(s, ",\"size\":");
    *size = st_strict_count(s);
    st_strict_text(s, ",\"root\":\"");
    st_strict_hex(s, root->b, ST_HASH);
    st_strict_text(s, "\"");
}

/* ---- the head ----------------------------------------------------------------------------------- */

static void head_body(const void *what, st_strbuf *out)
{
    const st_log_head *h = what;

    st_strbuf_add(out, "{\"log\":1,\"cluster\":");
    write_size(h->cluster, h->at_ms, h->size, &h->root, out);
}

void st_log_head_sign(st_log_head *h, const unsigned char key[64])
{
    st_signed_sign(head_body, h, key, h->key, h->signature);
}

bool st_log_head_valid(const st_log_head *h)
{
    return st_signed_valid(head_body, h, h->key, h->signature);
}

void st_log_head_write(const st_log_head *h, st_strbuf *out)
{
    st_signed_write(head_body, h, h->key, h->signature, out);
}

int st_log_head_read(const char *text, size_t len, st_log_head *ret, st_err *err)
{
    st_strict s = {.at = text, .end = text + len};
    st_log_head h = {0};

    st_strict_text(&s, "{\"log\":1,\"cluster\":");
    read_size(&s, h.cluster, &h.at_ms, &h.size, &h.root);
    st_signed_read(&s, h.key, h.signature);
    if (!st_strict_done(&s))
        return st_fail(err, ST_ECORRUPT, "not the head of a log of checkpoints");
    *ret = h;
    return 0;
}

/* ---- witnesses ---------------------------------------------------------------------------------- */

static void cosign_body(const void *what, st_strbuf *out)
{
    const st_cosign *c = what;

    st_strbuf_add(out, "{\"cosigned\":1,\"log\":\"");
    st_hex_write(c->log, sizeof(c->log), out);
    st_strbuf_add(out, "\",\"cluster\":");
    write_size(c->cluster, c->at_ms, c->size, &c->root, out);
}

void st_cosign_sign(const st_log_head *h, const unsigned char key[64], st_cosign *ret)
{
    *ret = (st_cosign){.at_ms = h->at_ms, .size = h->size, .root = h->root};
    memcpy(ret->cluster, h->cluster, sizeof(ret->cluster));
    memcpy(ret->log, h->key, sizeof(ret->log));
    st_signed_sign(cosign_body, ret, key, ret->key, ret->signature);
}

bool st_cosign_valid(const st_cosign *c)
{
    return st_signed_valid(cosign_body, c, c->key, c->signature);
}

bool st_cosign_is_of(const st_cosign *c, const st_log_head *h)
{
    return strcmp(c->cluster, h->cluster) == 0 && memcmp(c->log, h->key, sizeof(c->log)) == 0 &&
           c->size == h->size && memcmp(c->root.b, h->root.b, ST_HASH) == 0;
}

void st_cosign_write(const st_cosign *c, st_strbuf *out)
{
    st_signed_write(cosign_body, c, c->key, c->signature, out);
}

int st_cosign_read(const char *text, size_t len, st_cosign *ret, st_err *err)
{
    st_strict s = {.at = text, .end = text + len};
    st_cosign c = {0};

    st_strict_text(&s, "{\"cosigned\":1,\"log\":\"");
    st_strict_hex(&s, c.log, sizeof(c.log));
    st_strict_text(&s, "\",\"cluster\":");
    read_size(&s, c.cluster, &c.at_ms, &c.size, &c.root);
    st_signed_read(&s, c.key, c.signature);
    if (!st_strict_done(&s))
        return st_fail(err, ST_EINVAL, "not a witness's signature of the log of checkpoints");
    *ret = c;
    return 0;
}
