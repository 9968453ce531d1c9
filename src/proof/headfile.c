/* See headfile.h. */
#include "proof/headfile.h"

#include <inttypes.h>
#include <string.h>

#include "proof/strict.h"

#define PROOF_MAX 256

void st_headfile_done(st_headfile *f)
{
    for (size_t i = 0; i < f->proofs.n; i++)
        st_vec_free(&f->proofs.v[i].more);
    st_vec_free(&f->proofs);
    st_vec_free(&f->cosigns);
}

bool st_headfile_is(const char *text, size_t len)
{
    static const char begins[] = "{\"log\":1,";

    return len >= sizeof begins - 1 && memcmp(text, begins, sizeof begins - 1) == 0;
}

void st_headfile_write(const st_headfile *f, st_strbuf *out)
{
    st_log_head_write(&f->head, out);
    st_strbuf_addc(out, '\n');
    for (size_t i = 0; i < f->cosigns.n; i++) {
        st_cosign_write(&f->cosigns.v[i], out);
        st_strbuf_addc(out, '\n');
    }
    for (size_t i = 0; i < f->proofs.n; i++) {
        const st_goes_on *p = &f->proofs.v[i];

        st_strbuf_addf(out, "{\"goes_on\":%" PRId64 ",\"proof\":[", p->from);
        for (size_t k = 0; k < p->more.n; k++) {
            st_strbuf_add(out, k > 0 ? ",\"" : "\"");
            st_hex_write(p->more.v[k].b, ST_HASH, out);
            st_strbuf_addc(out, '"');
        }
        st_strbuf_add(out, "]}\n");
    }
}

static int read_proof(const char *text, size_t len, st_headfile *ret, st_err *err)
{
    st_strict s = {.at = text, .end = text + len};
    st_goes_on p = {0};
    st_hash h;

    st_strict_text(&s, "{\"goes_on\":");
    p.from = st_strict_count(&s);
    st_strict_text(&s, ",\"proof\":[");
    while (!s.bad && p.more.n < PROOF_MAX && !st_strict_is(&s, "]}")) {
        st_strict_text(&s, p.more.n > 0 ? ",\"" : "\"");
        st_strict_hex(&s, h.b, ST_HASH);
        st_strict_text(&s, "\"");
        st_vec_push(&p.more, h);
    }
    if (!st_strict_done(&s) || ret->proofs.n > ST_WITNESSES_MAX) {
        st_vec_free(&p.more);
        return st_fail(err, ST_ECORRUPT, "not a proof that a log goes on");
    }
    st_vec_push(&ret->proofs, p);
    return 0;
}

static int read_line(const char *line, size_t n, st_headfile *ret, st_err *err)
{
    st_cosign c;
    int r;

    if (n > 11 && memcmp(line, "{\"goes_on\":", 11) == 0)
        return read_proof(line, n, ret, err);
    r = st_cosign_read(line, n, &c, err);
    if (r == 0 && ret->cosigns.n == ST_WITNESSES_MAX)
        r = st_fail(err, ST_ECORRUPT, "more than %d witnesses", ST_WITNESSES_MAX);
    if (r == 0)
        st_vec_push(&ret->cosigns, c);
    return r < 0 ? st_fail(err, ST_ECORRUPT, "neither a witness's signature nor a proof") : 0;
}

int st_headfile_read(const char *text, size_t len, st_headfile *ret, st_err *err)
{
    const char *end = text + len;
    int r = 0;

    *ret = (st_headfile){0};
    for (int line = 1; r == 0 && text < end; line++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((stop ? stop : end) - text);

        while (n > 0 && (text[n - 1] == '\r' || text[n - 1] == ' '))
            n--;
        if (line == 1)
            r = st_log_head_read(text, n, &ret->head, err);
        else if (n > 0)
            r = read_line(text, n, ret, err);
        if (r < 0)
            st_fail_prefix(err, "line %d: ", line);
        text = stop ? stop + 1 : end;
    }
    if (r == 0 && ret->head.cluster[0] == '\0' && ret->head.size == 0)
        r = st_fail(err, ST_ECORRUPT, "not the head of a log of checkpoints");
    if (r < 0)
        st_headfile_done(ret);
    return r;
}

/* ---- checking ------------------------------------------------------------------------------------ */

static int goes_on(const st_headfile *f, int64_t from, const st_hash *root, const char *what,
                   st_err *err)
{
    const st_hashes none = {0}, *more = &none;

    if (from > f->head.size)
        return st_fail(err, ST_ECORRUPT,
                       "%s has %" PRId64 " checkpoints, this head %" PRId64
                       ": what was there is gone",
                       what, from, f->head.size);
    for (size_t i = 0; i < f->proofs.n; i++)
        if (f->proofs.v[i].from == from)
            more = &f->proofs.v[i].more;
    if (more == &none && from > 0 && from < f->head.size)
        return st_fail(err, ST_ECORRUPT,
                       "the file has no proof that it goes on from %s, which has %" PRId64
                       " checkpoints",
                       what, from);
    if (st_proof_goes_on(from, root, f->head.size, &f->head.root, more->v, more->n, err) < 0)
        return st_fail(err, ST_ECORRUPT, "the log does not go on from %s", what);
    return 0;
}

static int check_cosign(const st_headfile *f, const st_cosign *c, st_err *err)
{
    if (!st_cosign_valid(c))
        return st_fail(err, ST_ECORRUPT, "the signature of a witness does not fit its key");
    if (memcmp(c->log, f->head.key, sizeof c->log) != 0 || strcmp(c->cluster, f->head.cluster) != 0)
        return st_fail(err, ST_ECORRUPT, "a witness signed the log of another cluster or key");
    return goes_on(f, c->size, &c->root, "what a witness signed", err);
}

int st_headfile_verify(const st_headfile *f, const unsigned char *key, const unsigned char *witness,
                       const st_log_head *old, st_err *err)
{
    bool seen = witness == NULL;
    int r = 0;

    if (!st_log_head_valid(&f->head))
        return st_fail(err, ST_ECORRUPT, "the signature of the head does not fit");
    if (key && memcmp(key, f->head.key, sizeof f->head.key) != 0)
        return st_fail(err, ST_ECORRUPT,
                       "the head is signed by a key that is not the one you trust");
    for (size_t i = 0; r == 0 && i < f->cosigns.n; i++) {
        r = check_cosign(f, &f->cosigns.v[i], err);
        seen = seen || memcmp(f->cosigns.v[i].key, witness, sizeof f->cosigns.v[i].key) == 0;
    }
    if (r == 0 && !seen)
        r = st_fail(err, ST_ECORRUPT, "the witness that you named has not signed this log");
    if (r == 0 && old && !st_log_head_valid(old))
        r = st_fail(err, ST_ECORRUPT, "the signature of the head that you kept does not fit");
    if (r == 0 && old &&
        (memcmp(old->key, f->head.key, sizeof old->key) != 0 ||
         strcmp(old->cluster, f->head.cluster) != 0))
        r = st_fail(err, ST_ECORRUPT,
                    "the head that you kept is of another cluster, or signed by another key");
    if (r == 0 && old)
        r = goes_on(f, old->size, &old->root, "the head that you kept", err);
    return r;
}
