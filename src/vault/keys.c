/*
 * The site's keys: a file with one key a line as hex, the newest first. It is replaced whole, so that it
 * always has every key that something in the store may be sealed under.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "vault/state.h"

#define LINE     (2 * (size_t)KEY_BYTES + 1)
#define FILE_MAX (LINE * KEYS_MAX)

/* Its id tells keys apart and nothing about them. */
static void name_key(vault_key *k)
{
    static const unsigned char context[] = "stint site key id";
    unsigned char hash[8];

    crypto_generichash(hash, sizeof hash, context, sizeof context, k->bytes, KEY_BYTES);
    sodium_bin2hex(k->id, sizeof k->id, hash, sizeof hash);
}

static st_vault *vault_new(const char *path)
{
    st_vault *v = st_xcalloc(1, sizeof *v);

    ST_ASSERT(sodium_init() >= 0);
    ST_ASSERT(pthread_rwlock_init(&v->lock, NULL) == 0);
    v->path = path ? st_xstrdup(path) : NULL;
    sodium_mlock(v->key, sizeof v->key); /* where the limits allow it */
    return v;
}

void st_vault_free(st_vault *v)
{
    if (!v)
        return;
    st_vault_clear(v);
    st_vec_free(&v->all);
    sodium_munlock(v->key, sizeof v->key); /* wipes it too */
    pthread_rwlock_destroy(&v->lock);
    free(v->path);
    free(v);
}

static int parse(st_vault *v, const char *text, size_t n, st_err *err)
{
    size_t keys = n / LINE;

    if (keys == 0 || keys > KEYS_MAX || n % LINE != 0)
        return st_fail(err, ST_ECORRUPT,
                       "%s is no file of keys; restore it from where you keep a copy", v->path);
    for (size_t i = 0; i < keys; i++) {
        const char *line = text + i * LINE;
        size_t got = 0;

        if (line[LINE - 1] != '\n' ||
            sodium_hex2bin(v->key[i].bytes, KEY_BYTES, line, LINE - 1, NULL, &got, NULL) != 0 ||
            got != KEY_BYTES)
            return st_fail(err, ST_ECORRUPT,
                           "line %zu of %s is no key; restore it from where you keep a copy", i + 1,
                           v->path);
        name_key(&v->key[i]);
    }
    v->n = v->filed = keys;
    return 0;
}

static int read_keys(st_vault *v, st_err *err)
{
    char text[FILE_MAX + 1];
    int fd = open(v->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    ssize_t n = 0;
    int r = 0;

    if (fd < 0 && errno == ENOENT)
        return st_fail(err, ST_ENOENT, "%s is not there", v->path);
    if (fd < 0 || fstat(fd, &st) != 0)
        r = st_fail(err, ST_EIO, "%s cannot be read: %s", v->path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        r = st_fail(err, ST_EINVAL, "%s is not a plain file", v->path);
    else if (st.st_mode & 077)
        r = st_fail(err, ST_EPERM,
                    "%s has the site's key and can be read by others (mode %03o); run "
                    "`chmod 600 %s`",
                    v->path, (unsigned)(st.st_mode & 0777), v->path);
    else if ((n = read(fd, text, sizeof text)) < 0)
        r = st_fail(err, ST_EIO, "%s cannot be read: %s", v->path, strerror(errno));
    if (r == 0)
        r = parse(v, text, (size_t)n, err);
    if (fd >= 0)
        close(fd);
    sodium_memzero(text, sizeof text);
    return r;
}

static bool write_whole(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, text, n);

        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        text += k;
        n -= (size_t)k;
    }
    return fsync(fd) == 0;
}

static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    ST_CLEANUP(st_freep)
    char *dir = slash ? st_xstrndup(path, (size_t)(slash + 1 - path)) : st_xstrdup(".");
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

/* The first `n` keys become the file. With `fresh` there must not be one yet. */
static int write_keys(const st_vault *v, size_t n, bool fresh, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf part = {0};
    char text[FILE_MAX + 1];
    bool ok;
    int fd;

    for (size_t i = 0; i < n; i++) {
        sodium_bin2hex(text + i * LINE, LINE, v->key[i].bytes, KEY_BYTES);
        text[(i + 1) * LINE - 1] = '\n';
    }
    st_strbuf_addf(&part, "%s.part", v->path);
    unlink(part.s);
    fd = open(part.s, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    ok = fd >= 0 && write_whole(fd, text, n * LINE) &&
         (fresh ? link(part.s, v->path) : rename(part.s, v->path)) == 0;
    int why = errno;
    sodium_memzero(text, sizeof text);
    if (fd >= 0)
        close(fd);
    if (fresh || !ok)
        unlink(part.s);
    if (!ok)
        return st_fail(err, ST_EIO, "%s cannot be written: %s", v->path, strerror(why));
    sync_folder(v->path);
    return 0;
}

static void make_key(vault_key *k)
{
    crypto_aead_xchacha20poly1305_ietf_keygen(k->bytes);
    name_key(k);
}

int st_vault_open(const char *path, bool make, st_vault **ret, st_err *err)
{
    ST_CLEANUP(st_vault_freep) st_vault *v = vault_new(path);
    int r = read_keys(v, err);

    if (r == -ST_ENOENT && make) {
        make_key(&v->key[0]);
        v->n = v->filed = 1;
        r = write_keys(v, 1, true, err);
    }
    if (r == 0)
        *ret = ST_TAKE(v);
    return r;
}

st_vault *st_vault_new_fleeting(void)
{
    st_vault *v = vault_new(NULL);

    make_key(&v->key[0]);
    v->n = 1;
    return v;
}

bool st_vault_key_copy(st_vault *v, const char *id, vault_key *ret)
{
    bool found = false;

    pthread_rwlock_rdlock(&v->lock);
    for (size_t i = 0; i < v->n && !found; i++)
        if (!id || strcmp(v->key[i].id, id) == 0) {
            *ret = v->key[i];
            found = true;
        }
    pthread_rwlock_unlock(&v->lock);
    return found;
}

void st_vault_key(st_vault *v, char ret[ST_VAULT_KEY_ID])
{
    pthread_rwlock_rdlock(&v->lock);
    memcpy(ret, v->key[0].id, ST_VAULT_KEY_ID);
    pthread_rwlock_unlock(&v->lock);
}

bool st_vault_has_key(st_vault *v, const char *id)
{
    vault_key k;
    bool has = st_vault_key_copy(v, id, &k);

    sodium_memzero(&k, sizeof k);
    return has;
}

int st_vault_renew(st_vault *v, st_err *err)
{
    int r = 0;

    pthread_rwlock_wrlock(&v->lock);
    if (v->filed == KEYS_MAX)
        r = st_fail(err, ST_ELIMIT,
                    "%d rotations have begun and not one has ended; see why in stintd's log",
                    KEYS_MAX);
    if (r == 0) {
        /* The oldest that only this process still has is given up first. */
        size_t keep = ST_MIN(v->n, (size_t)KEYS_MAX - 1);

        memmove(&v->key[1], &v->key[0], keep * sizeof v->key[0]);
        make_key(&v->key[0]);
        v->n = keep + 1;
        v->filed++;
        r = v->path ? write_keys(v, v->filed, false, err) : 0;
    }
    if (r < 0 && v->filed > 0 && err->code == ST_EIO) {
        v->filed--;
        v->n--;
        memmove(&v->key[0], &v->key[1], v->n * sizeof v->key[0]);
    }
    pthread_rwlock_unlock(&v->lock);
    return r;
}

int st_vault_retire(st_vault *v, st_err *err)
{
    int r;

    pthread_rwlock_wrlock(&v->lock);
    r = v->path ? write_keys(v, 1, false, err) : 0;
    if (r == 0)
        v->filed = 1;
    pthread_rwlock_unlock(&v->lock);
    return r;
}
