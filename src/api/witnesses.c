/*
 * Witnesses: whose keys the owner has registered, and what they have signed last of the log of checkpoints.
 *
 * A signature is taken from anybody who brings one: it says itself whose it is. It must be by the key of that name, about a size
 * that this log has and the root it had then, and not about less than the witness has signed before. So a witness cannot be made
 * to say anything, and what is shown is true of this log; what a witness saw of another history it keeps, and shows by itself.
 */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "base/quote.h"
#include "billing/money.h"
#include "control/control.h"
#include "proof/headfile.h"

#define KIND   "witness"
#define SIGNED "cosignature"

typedef struct witness {
    char name[ST_NAME_MAX + 1];
    unsigned char key[32];
} witness;

typedef struct witness_list {
    ST_VEC(witness) v;
} witness_list;

/* ---- who they are --------------------------------------------------------------------------------- */

static bool read_key(const json_t *doc, unsigned char ret[32])
{
    const char *text = json_string_value(json_object_get(doc, "key"));
    size_t n = 0;

    return text && strlen(text) == 64 && sodium_hex2bin(ret, 32, text, 64, NULL, &n, NULL) == 0 &&
           n == 32;
}

static int add_witness(void *ctx, const st_document_row *row, st_err *err)
{
    witness_list *l = ctx;
    json_t *doc = json_loads(row->doc, 0, NULL);
    witness w = {0};
    int r = 0;

    snprintf(w.name, sizeof w.name, "%s", row->name);
    if (!read_key(doc, w.key))
        r = st_fail(err, ST_ECORRUPT, "the key of witness %s is damaged", row->name);
    else
        st_vec_push(&l->v, w);
    json_decref(doc);
    return r;
}

static const witness *find(const witness_list *l, const char *name)
{
    for (size_t i = 0; i < l->v.n; i++)
        if (strcmp(l->v.v[i].name, name) == 0)
            return &l->v.v[i];
    return NULL;
}

static int check_new(st_api *api, const char *name, const unsigned char key[32], st_err *err)
{
    witness_list list = {0};
    st_store *reader = st_api_reader(api, err);
    st_log_head own;
    int r = reader ? st_store_documents(reader, KIND, add_witness, &list, err) : -err->code;

    st_api_reader_back(api, reader);
    if (r >= 0)
        r = st_api_log_head(api, &own, err);
    if (r >= 0 && !crypto_core_ed25519_is_valid_point(key))
        r = st_fail(err, ST_EINVAL, "`key` is no public key of Ed25519");
    if (r >= 0 && memcmp(own.key, key, sizeof own.key) == 0)
        r = st_fail(err, ST_EINVAL,
                    "`key` is the one that signs bills: a witness is somebody else");
    if (r >= 0 && !find(&list, name) && list.v.n >= ST_WITNESSES_MAX)
        r = st_fail(err, ST_ELIMIT, "there are %d witnesses, and that is all there can be",
                    ST_WITNESSES_MAX);
    for (size_t i = 0; r >= 0 && i < list.v.n; i++)
        if (memcmp(list.v.v[i].key, key, 32) == 0 && strcmp(list.v.v[i].name, name) != 0)
            r = st_fail(err, ST_EINVAL, "`key` is that of witness %s already", list.v.v[i].name);
    st_vec_free(&list.v);
    return r < 0 ? r : 0;
}

void st_api_witness_put(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_document_change *c = st_document_change_new(call, api, KIND);
    unsigned char key[32];
    st_err err = {0};
    int r = st_call_json(call, &c->doc, &err);

    if (r == 0 && (!read_key(c->doc, key) || json_object_size(c->doc) != 1))
        r = st_fail(&err, ST_EINVAL,
                    "a witness has a `key`, a public key of Ed25519 in 64 hex digits, and "
                    "nothing else");
    if (r == 0)
        r = check_new(api, c->name, key, &err);
    if (r == 0)
        c->text = json_dumps(c->doc, JSON_COMPACT | JSON_SORT_KEYS);
    c->kept = st_xstrdup(c->name);
    st_document_change_post(c, r, &err);
}

void st_api_witness_remove(st_call *call, void *ctx)
{
    st_document_change *c = st_document_change_new(call, ctx, KIND);

    c->kept = st_xstrdup(c->name);
    st_document_change_post(c, 0, NULL);
}

/* ---- what they signed ----------------------------------------------------------------------------- */

typedef struct signed_list {
    const witness_list *who;
    st_strbuf *out;
    bool any;
} signed_list;

/* Only what the key of today signed. */
static int write_signed(void *ctx, const st_document_row *row, st_err *err)
{
    signed_list *l = ctx;
    const witness *w = find(l->who, row->name);
    st_cosign c;

    (void)err;
    if (!w || st_cosign_read(row->doc, strlen(row->doc), &c, NULL) < 0 ||
        memcmp(c.key, w->key, sizeof c.key) != 0)
        return 0;
    st_strbuf_add(l->out, l->any ? ",{" : "{");
    st_out_text(l->out, "witness", w->name);
    st_out_raw(l->out, "signed", row->doc);
    st_strbuf_addc(l->out, '}');
    l->any = true;
    return 0;
}

int st_api_cosigned(st_store *reader, st_strbuf *out, st_err *err)
{
    witness_list list = {0};
    signed_list s = {.who = &list, .out = out};
    int r = st_store_documents(reader, KIND, add_witness, &list, err);

    st_strbuf_addc(out, '[');
    if (r >= 0)
        r = st_store_documents(reader, SIGNED, write_signed, &s, err);
    st_strbuf_addc(out, ']');
    st_vec_free(&list.v);
    return r < 0 ? r : 0;
}

static void out_witnesses(const witness_list *list, st_strbuf *out)
{
    st_strbuf_add(out, "{\"witnesses\":[");
    for (size_t i = 0; i < list->v.n; i++) {
        char hex[65];

        sodium_bin2hex(hex, sizeof hex, list->v.v[i].key, 32);
        st_strbuf_add(out, i > 0 ? ",{" : "{");
        st_out_text(out, "name", list->v.v[i].name);
        st_out_text(out, "key", hex);
        st_strbuf_addc(out, '}');
    }
    st_strbuf_add(out, "],\"cosignatures\":");
}

static void witnesses_now(st_call *call, void *ctx)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    witness_list list = {0};
    st_err err = {0};
    st_store *reader = st_api_reader(ctx, &err);
    int r = reader ? st_store_documents(reader, KIND, add_witness, &list, &err) : -err.code;

    if (r >= 0) {
        out_witnesses(&list, &out);
        r = st_api_cosigned(reader, &out, &err);
    }
    st_strbuf_addc(&out, '}');
    st_api_reader_back(ctx, reader);
    st_vec_free(&list.v);
    if (r < 0)
        st_call_fail(call, &err);
    else
        st_call_reply_buf(call, 200, NULL, &out);
}

void st_api_witnesses(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, witnesses_now);
}

/* ---- a signature comes ------------------------------------------------------------------------------ */

/* In the transaction: a witness never goes back. */
static int not_before(st_tx *tx, st_document_change *c, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_cosign now, had;
    st_document_row row;
    int r = st_cosign_read(c->text, strlen(c->text), &now, err);

    if (r == 0)
        r = st_tx_document(tx, SIGNED, c->kept, arena, &row, err);
    if (r == -ST_ENOENT)
        return 0;
    if (r == 0 && st_cosign_read(row.doc, strlen(row.doc), &had, NULL) == 0 &&
        memcmp(had.key, now.key, sizeof now.key) == 0 && had.size > now.size)
        r = st_fail(err, ST_ESTATE,
                    "%s has signed a log of %lld checkpoints already; this is an earlier one, of "
                    "%lld",
                    c->name, (long long)had.size, (long long)now.size);
    return r;
}

static int check_signed(st_api *api, const char *name, const char *text, size_t len, st_err *err)
{
    witness_list list = {0};
    st_store *reader;
    st_log_head at;
    st_cosign c;
    const witness *w;
    int r = st_cosign_read(text, len, &c, err);

    if (r < 0)
        return r;
    reader = st_api_reader(api, err);
    r = reader ? st_store_documents(reader, KIND, add_witness, &list, err) : -err->code;
    st_api_reader_back(api, reader);
    w = find(&list, name);
    if (r >= 0 && !w)
        r = st_fail(err, ST_ENOENT, "there is no witness %s", name);
    else if (r >= 0 && memcmp(w->key, c.key, sizeof c.key) != 0)
        r = st_fail(err, ST_EPERM, "it is signed by another key than the one of witness %s", name);
    else if (r >= 0 && !st_cosign_valid(&c))
        r = st_fail(err, ST_EPERM, "the signature does not fit");
    st_vec_free(&list.v);
    if (r < 0)
        return r;
    r = st_api_log_head_at(api, c.size, &at, err); /* costly: after the signature */
    if (r == 0 && !st_cosign_is_of(&c, &at))
        r = st_fail(err, ST_ESTATE,
                    "this log had another root at %lld checkpoints: what was signed is of another "
                    "history",
                    (long long)c.size);
    return r;
}

void st_api_cosign(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_document_change *c = st_document_change_new(call, api, SIGNED);
    st_err err = {0};
    size_t len;
    const char *body = st_call_body(call, &len);
    int r;

    while (len > 0 && (body[len - 1] == '\n' || body[len - 1] == '\r'))
        len--;
    r = check_signed(api, c->name, body, len, &err);
    if (r == 0)
        c->text = st_xstrndup(body, len);
    c->kept = st_xstrdup(c->name);
    c->before = not_before;
    st_document_change_post(c, r, &err);
}
