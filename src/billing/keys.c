/*
 * Who signs: one file with the cluster's Ed25519 seed and the secret of the salts, as two lines of hex.
 */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "billing/billing.h"

#define SEED 32

void st_keys_path(const st_store *store, const char *given, st_strbuf *out)
{
    if (given)
        st_strbuf_add(out, given);
    else
        st_store_beside(store, "billing.key", out);
}

static void from_seed(const unsigned char seed[SEED], st_keys *ret)
{
    unsigned char public[32];

    crypto_sign_seed_keypair(public, ret->key, seed);
}

int st_keys_read(const char *path, st_keys *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    unsigned char seed[SEED];
    st_keys keys;
    size_t n = 0, m = 0;
    int r;

    if (access(path, F_OK) < 0 && errno == ENOENT)
        return st_fail(err, ST_ENOENT, "%s is not there: nothing can be signed or proved", path);
    r = st_file_read(path, 4096, &text, err);
    if (r < 0)
        return r;
    if (text.n != 2 * (2 * SEED + 1) ||
        sodium_hex2bin(seed, SEED, text.s, (size_t)2 * SEED, NULL, &n, NULL) != 0 ||
        sodium_hex2bin(keys.secret, sizeof keys.secret, text.s + 2 * SEED + 1, (size_t)2 * SEED,
                       NULL, &m, NULL) != 0 ||
        n != SEED || m != sizeof keys.secret)
        return st_fail(err, ST_ECORRUPT, "%s is not a billing key; restore it from a backup", path);
    from_seed(seed, &keys);
    sodium_memzero(text.s, text.n);
    sodium_memzero(seed, sizeof seed);
    *ret = keys;
    return 0;
}

static int make(const char *path, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf part = {0};
    unsigned char bytes[2 * SEED];
    char seed[2 * SEED + 1], secret[2 * SEED + 1];
    int fd, r = 0;

    randombytes_buf(bytes, sizeof bytes);
    sodium_bin2hex(seed, sizeof seed, bytes, SEED);
    sodium_bin2hex(secret, sizeof secret, bytes + SEED, SEED);
    st_strbuf_addf(&part, "%s.part", path);
    fd = open(part.s, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || dprintf(fd, "%s\n%s\n", seed, secret) < 0 || fsync(fd) < 0 ||
        rename(part.s, path) < 0)
        r = st_fail(err, ST_EIO, "%s cannot be written: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    sodium_memzero(bytes, sizeof bytes);
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(secret, sizeof secret);
    return r;
}

int st_keys_open(const char *path, st_keys *ret, st_err *err)
{
    int r = st_keys_read(path, ret, err);

    if (r != -ST_ENOENT)
        return r;
    r = make(path, err);
    return r < 0 ? r : st_keys_read(path, ret, err);
}
