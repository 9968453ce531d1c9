/*
 * `stint bill checkpoints`: how far the log of checkpoints has come, and whether it goes on from what was kept.
 *
 * The head that is kept is the proof of what was there; that the log goes on from it is checked here, not by stintd.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/quote.h"
#include "cli/bill_head.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/view.h"

#define STATUS_WRONG 9

typedef struct log_flags {
    st_cli_format format;
    const char *key, *witness, *save, *against;
} log_flags;

const st_cli_row st_cli_bill_log_options[] = {
    {"key", 'k', ST_CLI_STRING, offsetof(log_flags, key), "HEX|FILE",
     "key that you trust: 64 hex digits, or a file with them", 0, 0},
    {"witness", 'w', ST_CLI_STRING, offsetof(log_flags, witness), "HEX|FILE",
     "key of a witness; it must have signed this log", 0, 0},
    {"save", 's', ST_CLI_STRING, offsetof(log_flags, save), "FILE", "keep the signed head here", 0,
     0},
    {"against", 'A', ST_CLI_STRING, offsetof(log_flags, against), "FILE",
     "a head that you kept: the log must go on from it", 0, 0},
    {"output", 'o', ST_CLI_OUTPUT, offsetof(log_flags, format), "table|json",
     "output format (default: table)", 0, 0},
    {0},
};

static bool read_hash(const json_t *text, st_hash *ret)
{
    const char *s = json_string_value(text);

    if (!s || strlen(s) != 2 * ST_HASH)
        return false;
    for (size_t i = 0; i < ST_HASH; i++) {
        char two[3] = {s[2 * i], s[2 * i + 1], 0}, *end;

        ret->b[i] = (unsigned char)strtoul(two, &end, 16);
        if (*end)
            return false;
    }
    return true;
}

/* What was signed, byte for byte: the same keys in the same order. */
static char *as_signed(const json_t *doc)
{
    return json_dumps(doc, JSON_COMPACT | JSON_PRESERVE_ORDER);
}

static int head_of(const json_t *doc, st_log_head *ret, st_err *err)
{
    char *text = as_signed(doc);
    int r = text ? st_log_head_read(text, strlen(text), ret, err)
                 : st_fail(err, ST_ECORRUPT, "the answer has no head of the log");

    free(text);
    return r;
}

static int add_cosigned(const json_t *list, st_headfile *ret, st_err *err)
{
    const json_t *row;
    size_t i;
    int r = 0;

    json_array_foreach(list, i, row)
    {
        char *text = as_signed(json_object_get(row, "signed"));
        st_cosign c;

        if (r == 0)
            r = text ? st_cosign_read(text, strlen(text), &c, err)
                     : st_fail(err, ST_ECORRUPT, "the answer has no witness's signature");
        if (r == 0)
            st_vec_push(&ret->cosigns, c);
        free(text);
    }
    return r;
}

int st_cli_read_head(const char *path, st_headfile *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    int r = st_file_read(path, ST_HEADFILE_MAX, &text, err);

    if (r == 0)
        r = st_headfile_read(st_strbuf_str(&text), text.n, ret, err);
    return r < 0 ? st_fail_prefix(err, "%s: ", st_file_name(path)) : 0;
}

/* Fetches the proof that the log goes on from an earlier size, once. */
static int add_proof(st_client *client, int64_t from, st_headfile *f, st_err *err)
{
    json_t *doc = NULL, *list;
    st_goes_on p = {.from = from};
    char path[128];
    int r;

    for (size_t i = 0; i < f->proofs.n; i++)
        if (f->proofs.v[i].from == from)
            return 0;
    if (from <= 0 || from >= f->head.size)
        return 0;
    snprintf(path, sizeof path, "/v1/billing/checkpoints/proof?from=%" PRId64 "&to=%" PRId64, from,
             f->head.size);
    r = st_client_get(client, path, &doc, err);
    list = json_object_get(doc, "proof");
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        st_hash h;

        if (!read_hash(json_array_get(list, i), &h))
            r = st_fail(err, ST_ECORRUPT, "the proof is not made of hashes");
        else
            st_vec_push(&p.more, h);
    }
    if (r == 0)
        st_vec_push(&f->proofs, p);
    else
        st_vec_free(&p.more);
    json_decref(doc);
    return r;
}

int st_cli_fetch_head(st_client *client, const st_log_head *old, st_headfile *ret, st_err *err)
{
    json_t *doc = NULL;
    int r = st_client_get(client, "/v1/billing/checkpoints?limit=1", &doc, err);

    *ret = (st_headfile){0};
    if (r == 0)
        r = head_of(json_object_get(doc, "head"), &ret->head, err);
    if (r == 0)
        r = add_cosigned(json_object_get(doc, "cosignatures"), ret, err);
    json_decref(doc);
    if (r == 0 && old)
        r = add_proof(client, old->size, ret, err);
    for (size_t i = 0; r == 0 && i < ret->cosigns.n; i++)
        r = add_proof(client, ret->cosigns.v[i].size, ret, err);
    return r;
}

int st_cli_save_head(st_cli *cli, const char *path, const st_headfile *f, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    FILE *file = fopen(path, "we");
    bool ok;

    st_headfile_write(f, &text);
    ok = file && fputs(st_strbuf_str(&text), file) >= 0;
    if (file)
        ok = fclose(file) == 0 && ok;
    if (!ok)
        return st_fail(err, ST_EIO, "%s: cannot be written: %s", path, strerror(errno));
    fprintf(cli->errors, "the head is in %s\n", path);
    return 0;
}

static void put_hex(FILE *out, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%02x", bytes[i]);
}

void st_cli_print_head(st_cli *cli, const st_headfile *f, bool json, bool against, bool trusted)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    st_log_head_write(&f->head, &text);
    if (json) {
        fprintf(cli->out, "%s\n", st_strbuf_str(&text));
        return;
    }
    fprintf(cli->out, "%" PRId64 " checkpoints are signed%s\nroot  ", f->head.size,
            against ? ", and go on from those of the head that you kept" : "");
    put_hex(cli->out, f->head.root.b, ST_HASH);
    fprintf(cli->out, "\nkey   ");
    put_hex(cli->out, f->head.key, sizeof f->head.key);
    for (size_t i = 0; i < f->cosigns.n; i++) {
        fprintf(cli->out, "\nwitness  ");
        put_hex(cli->out, f->cosigns.v[i].key, sizeof f->cosigns.v[i].key);
        fprintf(cli->out, "  has signed the first %" PRId64, f->cosigns.v[i].size);
    }
    fprintf(cli->out, "%s\n",
            trusted ? ""
                    : "\nNobody has vouched for this key: give the one that you trust with --key.");
}

int st_cli_bill_log(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    unsigned char trusted[32], witness[32];
    log_flags f = {0};
    st_headfile now = {0}, old = {0};
    int r = st_cli_read(argc, argv, st_cli_bill_log_options, &f, 0, 0, NULL, err);

    if (r == 0 && f.key)
        r = st_cli_public_key(f.key, trusted, err);
    if (r == 0 && f.witness)
        r = st_cli_public_key(f.witness, witness, err);
    if (r == 0 && f.against)
        r = st_cli_read_head(f.against, &old, err);
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r == 0)
        r = st_cli_fetch_head(client, f.against ? &old.head : NULL, &now, err);
    if (r == 0)
        r = st_headfile_verify(&now, f.key ? trusted : NULL, f.witness ? witness : NULL,
                               f.against ? &old.head : NULL, err);
    if (r == -ST_ECORRUPT) { /* no failure of the program: an answer, as of `verify` */
        fprintf(cli->errors, "stint: %s\n", err->msg);
        r = STATUS_WRONG;
    }
    if (r == 0 && f.save)
        r = st_cli_save_head(cli, f.save, &now, err);
    if (r == 0)
        st_cli_print_head(cli, &now, f.format == ST_CLI_JSON, f.against, f.key);
    st_headfile_done(&now);
    st_headfile_done(&old);
    return r;
}
