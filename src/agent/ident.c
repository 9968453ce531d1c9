/*
 * Keys and proofs of a node (agent/ident.h).
 */
#include "agent/ident.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "agent/files.h"

#define KEY_FILE "node.key"

static int make_key(st_ident *id, const char *dir, bool sync, st_err *err)
{
    unsigned char key[ST_KEY_BYTES];
    char text[2 * ST_SECRET_BYTES + 1];
    int r;

    crypto_sign_keypair(key, id->secret);
    sodium_bin2hex(text, sizeof text, id->secret, sizeof id->secret);
    r = st_file_replace(dir, KEY_FILE, text, strlen(text), sync, err);
    sodium_memzero(text, sizeof text);
    id->fresh = true;
    return r;
}

static int read_key(st_ident *id, const char *dir, const st_strbuf *text, st_err *err)
{
    size_t n = 0;

    if (sodium_hex2bin(id->secret, sizeof id->secret, st_strbuf_str(text), text->n, NULL, &n,
                       NULL) != 0 ||
        n != sizeof id->secret)
        return st_fail(err, ST_ECORRUPT,
                       "%s/" KEY_FILE ": is no key; restore it, or remove it and have an owner run "
                       "`stint node rejoin`",
                       dir);
    return 0;
}

/* Half drawn now, half the kernel's: who compares sees which of the two has changed. */
static void make_boot(st_ident *id)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf kernel = {0};
    unsigned char bytes[ST_BOOT_BYTES];
    size_t n = 0;
    st_err err;

    randombytes_buf(bytes, sizeof bytes);
    if (st_file_load("/proc/sys/kernel/random", "boot_id", &kernel, &err) == 0)
        sodium_hex2bin(bytes + ST_BOOT_BYTES / 2, ST_BOOT_BYTES / 2, kernel.s, kernel.n, "-\n", &n,
                       NULL);
    sodium_bin2hex(id->boot, sizeof id->boot, bytes, sizeof bytes);
}

int st_ident_open(st_ident *id, const char *dir, bool sync, st_err *err)
{
    st_strbuf text = {0};
    unsigned char key[ST_KEY_BYTES];
    int r = st_file_load(dir, KEY_FILE, &text, err);

    if (r == -ST_ENOENT)
        r = make_key(id, dir, sync, err);
    else if (r == 0)
        r = read_key(id, dir, &text, err);
    if (text.n > 0)
        sodium_memzero(text.s, text.n);
    st_strbuf_done(&text);
    if (r < 0)
        return r;
    crypto_sign_ed25519_sk_to_pk(key, id->secret);
    sodium_bin2hex(id->key, sizeof id->key, key, sizeof key);
    make_boot(id);
    return 0;
}

void st_ident_done(st_ident *id)
{
    sodium_memzero(id, sizeof *id);
}

void st_ident_session(st_ident *id, const char *session)
{
    snprintf(id->session, sizeof id->session, "%s", session);
    id->n = 0;
}

void st_ident_prove(st_ident *id, const char *name, const char *challenge, const char *method,
                    const char *target, const void *body, size_t len, st_strbuf *out)
{
    st_proof p = {.n = challenge ? 0 : ++id->n};

    snprintf(p.node, sizeof p.node, "%s", name);
    snprintf(p.boot, sizeof p.boot, "%s", id->boot);
    snprintf(p.session, sizeof p.session, "%s", challenge ? challenge : id->session);
    st_proof_digest(method, target, body, len, p.digest);
    st_proof_sign(&p, id->secret, out);
}
