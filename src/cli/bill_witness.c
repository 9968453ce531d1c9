/*
 * `stint bill witness`: somebody who is not the owner says that the log of checkpoints goes on from what they saw before.
 *
 * The secret key never leaves this machine. Nothing is signed that does not go on from the head that was kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/admin_doc.h"
#include "cli/bill_head.h"
#include "cli/view.h"

#define STATUS_WRONG 9
#define HEX_SECRET   128

typedef struct witness_flags {
    st_cli_format format;
    const char *key, *cluster, *kept;
} witness_flags;

static const st_cli_row sign_options[] = {
    {"key", 'k', ST_CLI_STRING, offsetof(witness_flags, key), "FILE",
     "file of your secret key, from stint bill witness key", 0, 0},
    {"kept", 'K', ST_CLI_STRING, offsetof(witness_flags, kept), "FILE",
     "the last head that you signed: the log must go on from it; the new one is written there", 0,
     0},
    {"cluster", 'c', ST_CLI_STRING, offsetof(witness_flags, cluster), "HEX|FILE",
     "key of the cluster that you trust", 0, 0},
    {0},
};

static const st_cli_row no_options[] = {
    {0},
};

static const st_cli_row list_options[] = {
    {"output", 'o', ST_CLI_OUTPUT, offsetof(witness_flags, format), "table|json",
     "output format (default: table)", 0, 0},
    {0},
};

/* ---- keys --------------------------------------------------------------------------------------- */

static int make_key(st_cli *cli, int argc, char **argv, st_err *err)
{
    unsigned char public[32], secret[64];
    char hex[HEX_SECRET + 2];
    int none = 0, r = st_cli_read(argc, argv, no_options, &none, 1, 1, NULL, err), fd;
    bool ok;

    if (r < 0)
        return r;
    if (sodium_init() < 0)
        return st_fail(err, ST_EIO, "no randomness for a key");
    fd = open(argv[1], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return st_fail(err, ST_EIO, "%s: cannot be made: %s", argv[1], strerror(errno));
    crypto_sign_keypair(public, secret);
    sodium_bin2hex(hex, sizeof hex - 1, secret, sizeof secret);
    hex[HEX_SECRET] = '\n';
    ok = write(fd, hex, HEX_SECRET + 1) == HEX_SECRET + 1 && fsync(fd) == 0;
    ok = close(fd) == 0 && ok;
    sodium_memzero(secret, sizeof secret);
    sodium_memzero(hex, sizeof hex);
    if (!ok)
        return st_fail(err, ST_EIO, "%s: cannot be written: %s", argv[1], strerror(errno));
    for (size_t i = 0; i < sizeof public; i++)
        fprintf(cli->out, "%02x", public[i]);
    fprintf(cli->out, "\n");
    return 0;
}

static int read_secret(const char *path, unsigned char ret[64], st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    size_t n = 0;
    int r = st_file_read(path, HEX_SECRET + 8, &text, err);

    while (r == 0 && text.n > 0 && strchr(" \r\n", text.s[text.n - 1]))
        text.n--;
    if (r == 0 && (text.n != HEX_SECRET ||
                   sodium_hex2bin(ret, 64, text.s, text.n, NULL, &n, NULL) != 0 || n != 64))
        r = st_fail(err, ST_EINVAL, "%s: not a secret key of stint bill witness key",
                    st_file_name(path));
    if (text.s)
        sodium_memzero(text.s, text.n);
    return r;
}

/* ---- signing ------------------------------------------------------------------------------------- */

static int send(st_client *client, const char *name, const st_headfile *f,
                const unsigned char secret[64], st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, body = {0};
    json_t *doc = NULL;
    st_cosign c;
    int r;

    st_cosign_sign(&f->head, secret, &c);
    st_cosign_write(&c, &body);
    st_admin_path(&path, "billing/witnesses", name);
    st_strbuf_add(&path, "/head");
    const st_request request = {
        .method = "PUT", .path = st_strbuf_str(&path), .body = st_strbuf_str(&body)};

    r = st_client_json(client, &request, &doc, NULL, err);
    json_decref(doc);
    return r;
}

static int sign(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    unsigned char secret[64], cluster[32];
    witness_flags f = {0};
    st_headfile now = {0}, old = {0};
    bool had;
    int r = st_cli_read(argc, argv, sign_options, &f, 1, 1, NULL, err);

    if (r == 0 && (!f.key || !f.kept))
        r = st_fail(err, ST_EINVAL, "%s: give --key and --kept", argv[0]);
    had = r == 0 && access(f.kept, F_OK) == 0;
    if (r == 0)
        r = read_secret(f.key, secret, err);
    if (r == 0 && f.cluster)
        r = st_cli_public_key(f.cluster, cluster, err);
    if (r == 0 && had)
        r = st_cli_read_head(f.kept, &old, err);
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r == 0)
        r = st_cli_fetch_head(client, had ? &old.head : NULL, &now, err);
    if (r == 0)
        r = st_headfile_verify(&now, f.cluster ? cluster : NULL, NULL, had ? &old.head : NULL, err);
    if (r == -ST_ECORRUPT) {
        fprintf(cli->errors, "stint: nothing is signed: %s\n", err->msg);
        r = STATUS_WRONG;
    }
    if (r == 0)
        r = send(client, argv[1], &now, secret, err);
    if (r == 0)
        r = st_cli_save_head(cli, f.kept, &now, err);
    if (r == 0)
        fprintf(cli->out, "%s has signed %lld checkpoints\n", argv[1], (long long)now.head.size);
    sodium_memzero(secret, sizeof secret);
    st_headfile_done(&now);
    st_headfile_done(&old);
    return r;
}

/* ---- who they are -------------------------------------------------------------------------------- */

static int list(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"NAME", "name", ST_VIEW_TEXT, NULL},
        {"SIGNED", "size", ST_VIEW_NUM, NULL},
        {"KEY", "key", ST_VIEW_TEXT, NULL},
        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    witness_flags f = {0};
    json_t *doc = NULL, *row, *one;
    size_t i, k;
    int r = st_cli_read(argc, argv, list_options, &f, 0, 0, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r == 0)
        r = st_client_get(client, "/v1/billing/witnesses", &doc, err);
    json_array_foreach(json_object_get(doc, "witnesses"), i, row)
    {
        json_object_set_new(row, "size", json_integer(0));
        json_array_foreach(json_object_get(doc, "cosignatures"), k, one)
        {
            if (strcmp(st_view_text(one, "witness"), st_view_text(row, "name")) == 0)
                json_object_set(row, "size",
                                json_object_get(json_object_get(one, "signed"), "size"));
        }
    }
    if (r == 0)
        st_view_rows(cli, f.format, json_object_get(doc, "witnesses"), columns);
    json_decref(doc);
    return r;
}

static int change(st_cli *cli, const char *method, const char *name, const char *body,
                  const char *said, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, line = {0};
    int r = st_client_open(cli->errors, &client, err);

    if (r < 0)
        return r;
    st_admin_path(&path, "billing/witnesses", name);
    st_strbuf_addf(&line, "%s %s", name, said);
    return st_admin_send(
        cli, client, &(st_request){.method = method, .path = st_strbuf_str(&path), .body = body},
        ST_CLI_TABLE, st_strbuf_str(&line), err);
}

static int add(st_cli *cli, int argc, char **argv, st_err *err)
{
    unsigned char key[32];
    char hex[65], body[96];
    int none = 0, r = st_cli_read(argc, argv, no_options, &none, 2, 2, NULL, err);

    if (r == 0)
        r = st_cli_public_key(argv[2], key, err);
    if (r < 0)
        return r;
    sodium_bin2hex(hex, sizeof hex, key, sizeof key);
    snprintf(body, sizeof body, "{\"key\":\"%s\"}", hex);
    return change(cli, "PUT", argv[1], body, "is a witness", err);
}

static int drop(st_cli *cli, int argc, char **argv, st_err *err)
{
    int none = 0, r = st_cli_read(argc, argv, no_options, &none, 1, 1, NULL, err);

    return r < 0 ? r : change(cli, "DELETE", argv[1], NULL, "is no witness any more", err);
}

const st_cli_verb st_cli_witness_verbs[] = {
    {"key", "Make a key pair for a witness, and print the public key", "FILE",
     .help =
         "The secret key is written to FILE, which must not exist and which only you can read.\n",
     .fn = make_key, .example = "  stint bill witness key auditor.key\n"},
    {"add", "Register a witness with its public key, or replace its key", "NAME HEX|FILE",
     .fn = add, .example = "  stint bill witness add auditor 4e5f...\n"},
    {"list", "List witnesses and how many checkpoints each has signed", "[-o table|json]",
     .fn = list, .options = list_options, .example = "  stint bill witness list\n"},
    {"sign", "Sign the log of checkpoints, if it goes on from what you signed last",
     "--key FILE --kept FILE [--cluster HEX|FILE] NAME",
     .help = "The head that you sign is kept in FILE. The next time the log must go on from it:\n"
             "otherwise nothing is signed, and the exit status is 9.\n",
     .fn = sign, .options = sign_options,
     .example = "  stint bill witness sign --key auditor.key --kept auditor.head auditor\n"},
    {"remove", "Remove a witness", "NAME", .fn = drop,
     .example = "  stint bill witness remove auditor\n"},
    {0},
};
