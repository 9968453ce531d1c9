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
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/view.h"
#include "ledger/proof.h"

#define HEAD_MAX     4096
#define STATUS_WRONG 9

typedef struct log_flags {
    st_cli_format format;
    const char *key, *save, *against;
} log_flags;

const st_cli_row st_cli_bill_log_options[] = {
    {"key", 'k', ST_CLI_STRING, offsetof(log_flags, key), "HEX|FILE",
     "key that you trust: 64 hex digits, or a file with them", 0, 0},
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

/* The head as it was signed: the same keys in the same order. */
static int head_of(const json_t *doc, st_log_head *ret, st_err *err)
{
    char *text = json_dumps(doc, JSON_COMPACT | JSON_PRESERVE_ORDER);
    int r = text ? st_log_head_read(text, strlen(text), ret, err)
                 : st_fail(err, ST_ECORRUPT, "the answer has no head of the log");

    free(text);
    return r;
}

static int read_head(const char *path, st_log_head *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    int r = st_file_read(path, HEAD_MAX, &text, err);

    while (r == 0 && text.n > 0 && strchr(" \r\n", text.s[text.n - 1]))
        text.n--;
    if (r == 0)
        r = st_log_head_read(st_strbuf_str(&text), text.n, ret, err);
    return r < 0 ? st_fail_prefix(err, "%s: ", st_file_name(path)) : 0;
}

static int check_head(const st_log_head *h, const unsigned char *key, const char *what, st_err *err)
{
    if (!st_log_head_holds(h))
        return st_fail(err, ST_ECORRUPT, "the signature of %s does not fit", what);
    if (key && memcmp(key, h->key, sizeof h->key) != 0)
        return st_fail(err, ST_ECORRUPT, "%s is signed by a key that is not the one you trust",
                       what);
    return 0;
}

/* That the log of `now` goes on from the one that was kept. */
static int goes_on(st_client *client, const st_log_head *old, const st_log_head *now, st_err *err)
{
    json_t *doc = NULL, *list;
    st_hashes more = {0};
    char path[128];
    int r = 0;

    if (strcmp(old->cluster, now->cluster) != 0 || memcmp(old->key, now->key, sizeof now->key) != 0)
        return st_fail(err, ST_ECORRUPT,
                       "the head that you kept is of another cluster, or signed by another key");
    if (old->size > now->size)
        return st_fail(err, ST_ECORRUPT,
                       "the log had %" PRId64 " checkpoints and has %" PRId64
                       ": what you were shown is gone",
                       old->size, now->size);
    if (old->size > 0 && old->size < now->size) {
        snprintf(path, sizeof path, "/v1/billing/checkpoints/proof?from=%" PRId64 "&to=%" PRId64,
                 old->size, now->size);
        r = st_client_get(client, path, &doc, err);
    }
    list = json_object_get(doc, "proof");
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        st_hash h;

        if (!read_hash(json_array_get(list, i), &h))
            r = st_fail(err, ST_ECORRUPT, "the proof is not made of hashes");
        else
            st_vec_push(&more, h);
    }
    if (r == 0 &&
        st_proof_goes_on(old->size, &old->root, now->size, &now->root, more.v, more.n, err) < 0)
        r = st_fail_prefix(err, "the log does not go on from what you kept: ");
    st_vec_free(&more);
    json_decref(doc);
    return r;
}

static int save_head(st_cli *cli, const char *path, const st_log_head *h, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    FILE *file = fopen(path, "we");
    bool ok;

    st_log_head_write(h, &text);
    ok = file && fprintf(file, "%s\n", st_strbuf_str(&text)) > 0;
    if (file)
        ok = fclose(file) == 0 && ok;
    if (!ok)
        return st_fail(err, ST_EIO, "%s: cannot be written: %s", path, strerror(errno));
    fprintf(cli->errors, "the head is in %s\n", path);
    return 0;
}

static void print_head(st_cli *cli, const log_flags *f, const st_log_head *h)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    st_log_head_write(h, &text);
    if (f->format == ST_CLI_JSON) {
        fprintf(cli->out, "%s\n", st_strbuf_str(&text));
        return;
    }
    fprintf(cli->out, "%" PRId64 " checkpoints are signed%s\nroot  ", h->size,
            f->against ? ", and go on from those of the head that you kept" : "");
    for (size_t i = 0; i < ST_HASH; i++)
        fprintf(cli->out, "%02x", h->root.b[i]);
    fprintf(cli->out, "\nkey   ");
    for (size_t i = 0; i < sizeof h->key; i++)
        fprintf(cli->out, "%02x", h->key[i]);
    fprintf(cli->out, "%s\n",
            f->key ? ""
                   : "\nNobody has vouched for this key: give the one that you trust with --key.");
}

int st_cli_bill_log(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    unsigned char trusted[32];
    log_flags f = {0};
    st_log_head now, old;
    json_t *doc = NULL;
    int r = st_cli_read(argc, argv, st_cli_bill_log_options, &f, 0, 0, NULL, err);

    if (r == 0 && f.key)
        r = st_cli_public_key(f.key, trusted, err);
    if (r == 0 && f.against)
        r = read_head(f.against, &old, err);
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r == 0)
        r = st_client_get(client, "/v1/billing/checkpoints?limit=1", &doc, err);
    if (r == 0)
        r = head_of(json_object_get(doc, "head"), &now, err);
    json_decref(doc);
    if (r == 0)
        r = check_head(&now, f.key ? trusted : NULL, "the head", err);
    if (r == 0 && f.against)
        r = check_head(&old, f.key ? trusted : NULL, "the head that you kept", err);
    if (r == 0 && f.against)
        r = goes_on(client, &old, &now, err);
    if (r == -ST_ECORRUPT) { /* no failure of the program: an answer, as of `verify` */
        fprintf(cli->errors, "stint: %s\n", err->msg);
        return STATUS_WRONG;
    }
    if (r == 0 && f.save)
        r = save_head(cli, f.save, &now, err);
    if (r == 0)
        print_head(cli, &f, &now);
    return r;
}
