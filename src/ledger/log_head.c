/* The log of checkpoints: how far it has come, signed (ledger/proof.h).
 *
 * What is signed is the head as it is written, up to its signature. */
#include <sodium.h>

#include "base/quote.h"
#include "ledger/proof.h"
#include "ledger/strict.h"

static void write_unsigned(const st_log_head *h, st_strbuf *out)
{
    st_strbuf_add(out, "{\"log\":1,\"cluster\":");
    st_quote_json(out, h->cluster);
    st_strbuf_addf(out, ",\"at\":%lld,\"size\":%lld,\"root\":\"", (long long)h->at_ms,
                   (long long)h->size);
    st_hex_write(h->root.b, ST_HASH, out);
    st_strbuf_add(out, "\",\"key\":\"");
    st_hex_write(h->key, sizeof(h->key), out);
    st_strbuf_addc(out, '"');
}

void st_log_head_sign(st_log_head *h, const unsigned char key[64])
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    crypto_sign_ed25519_sk_to_pk(h->key, key);
    write_unsigned(h, &text);
    crypto_sign_detached(h->signature, NULL, (const unsigned char *)text.s, text.n, key);
}

bool st_log_head_holds(const st_log_head *h)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    write_unsigned(h, &text);
    return crypto_sign_verify_detached(h->signature, (const unsigned char *)text.s, text.n,
                                       h->key) == 0;
}

void st_log_head_write(const st_log_head *h, st_strbuf *out)
{
    write_unsigned(h, out);
    st_strbuf_add(out, ",\"signature\":\"");
    st_hex_write(h->signature, sizeof(h->signature), out);
    st_strbuf_add(out, "\"}");
}

int st_log_head_read(const char *text, size_t len, st_log_head *ret, st_err *err)
{
    st_strict s = {.at = text, .end = text + len};
    st_log_head h = {0};

    st_strict_text(&s, "{\"log\":1,\"cluster\":");
    st_strict_str(&s, h.cluster, sizeof(h.cluster));
    st_strict_text(&s, ",\"at\":");
    h.at_ms = st_strict_i64(&s);
    st_strict_text(&s, ",\"size\":");
    h.size = st_strict_count(&s);
    st_strict_text(&s, ",\"root\":\"");
    st_strict_hex(&s, h.root.b, ST_HASH);
    st_strict_text(&s, "\",\"key\":\"");
    st_strict_hex(&s, h.key, sizeof(h.key));
    st_strict_text(&s, "\",\"signature\":\"");
    st_strict_hex(&s, h.signature, sizeof(h.signature));
    st_strict_text(&s, "\"}");
    if (!st_strict_done(&s))
        return st_fail(err, ST_ECORRUPT, "not the head of a log of checkpoints");
    *ret = h;
    return 0;
}
