/*
 * `stint bill verify FILE`: checks a bill that was downloaded, alone and offline (bill/file.h).
 *
 * A bill that is not right is no failure of the program: it says what is wrong and where, and has an exit
 * status of its own.
 */
#include <string.h>

#include "base/file.h"
#include "base/quote.h"
#include "bill/bill.h"
#include "bill/file.h"
#include "cli/bill_head.h"
#include "cli/cli.h"

#define BILL_MAX     ((size_t)1 << 30)
#define KEY_FILE_MAX 256
#define KEY_BYTES    32
#define STATUS_WRONG 9

typedef struct bill_flags {
    st_cli_format format;
    const char *key, *witness, *against;
} bill_flags;

static const st_cli_row verify_options[] = {
    {"key", 'k', ST_CLI_STRING, offsetof(bill_flags, key), "HEX|FILE",
     "key that you trust: 64 hex digits, or a file with them", 0, 0},
    {"against", 'A', ST_CLI_STRING, offsetof(bill_flags, against), "OLD",
     "an older bill or head that you kept: FILE must go on from it", 0, 0},
    {"witness", 'w', ST_CLI_STRING, offsetof(bill_flags, witness), "HEX|FILE",
     "key of a witness; it must have signed FILE, a head", 0, 0},
    {"output", 'o', ST_CLI_OUTPUT, offsetof(bill_flags, format), "table|json",
     "output format (default: table)", 0, 0},
    {0},
};

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_hex(const char *text, size_t len, unsigned char ret[KEY_BYTES])
{
    if (len != (size_t)2 * KEY_BYTES)
        return false;
    for (size_t i = 0; i < KEY_BYTES; i++) {
        int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        ret[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}

int st_cli_public_key(const char *given, unsigned char ret[KEY_BYTES], st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    char q[ST_QUOTE_MAX];
    int r;

    if (read_hex(given, strlen(given), ret))
        return 0;
    r = st_file_read(given, KEY_FILE_MAX, &text, err);
    if (r < 0)
        return st_fail_prefix(err, "--key is neither 64 hex digits nor a file with them: ");
    while (text.n > 0 && strchr(" \t\r\n", text.s[text.n - 1]))
        text.n--;
    if (!read_hex(st_strbuf_str(&text), text.n, ret))
        return st_fail(err, ST_EINVAL, "%s: the file is not a public key of 64 hex digits",
                       st_quote(q, given));
    return 0;
}

static void key_text(const unsigned char key[KEY_BYTES], char ret[2 * KEY_BYTES + 1])
{
    for (size_t i = 0; i < KEY_BYTES; i++)
        snprintf(ret + 2 * i, 3, "%02x", key[i]);
}

static void print_json(FILE *out, const st_verdict *v, const char *key, bool trusted)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf b = {0};

    st_strbuf_addf(&b, "{\"good\":%s,\"what\":", v->good ? "true" : "false");
    st_quote_json(&b, v->what);
    st_strbuf_addf(&b, ",\"line\":%lld,\"entry\":%lld,\"account\":", (long long)v->line,
                   (long long)v->seq);
    st_quote_json(&b, v->account);
    st_strbuf_add(&b, ",\"period\":");
    st_quote_json(&b, v->period);
    st_strbuf_addf(&b, ",\"entries\":%lld,\"total_udollars\":%lld,\"key\":\"%s\",\"trusted\":%s}",
                   (long long)v->entries, (long long)v->total, key,
                   v->good && trusted ? "true" : "false");
    fprintf(out, "%s\n", st_strbuf_str(&b));
}

static void print_good(FILE *out, const st_verdict *v, const char *key, bool trusted)
{
    char total[ST_MONEY_MAX], q[ST_QUOTE_MAX];

    fprintf(out, "proved: %s.\n\n", v->what);
    fprintf(out, "account  %s\nperiod   %s\ntotal    %s\nentries  %lld\nkey      %s\n",
            *v->account ? st_quote(q, v->account) : "the cluster", v->period,
            st_money(total, v->total), (long long)v->entries, key);
    if (!trusted)
        fprintf(out,
                "\nThis key is not known to you yet: whoever has it signed this bill. Compare it\n"
                "with the key your provider publishes, and give that with --key.\n");
}

/* A head of the log of checkpoints, offline. */
static int verify_head(st_cli *cli, const char *path, const bill_flags *f,
                       const unsigned char *trusted, st_err *err)
{
    unsigned char witness[KEY_BYTES];
    st_headfile now = {0}, old = {0};
    int r = st_cli_read_head(path, &now, err);

    if (r == 0 && f->witness)
        r = st_cli_public_key(f->witness, witness, err);
    if (r == 0 && f->against)
        r = st_cli_read_head(f->against, &old, err);
    if (r == 0)
        r = st_headfile_verify(&now, trusted, f->witness ? witness : NULL,
                               f->against ? &old.head : NULL, err);
    if (r == -ST_ECORRUPT) {
        fprintf(cli->errors, "stint: %s is not right: %s\n", st_file_name(path), err->msg);
        r = STATUS_WRONG;
    }
    if (r == 0)
        st_cli_print_head(cli, &now, f->format == ST_CLI_JSON, f->against, trusted);
    st_headfile_done(&now);
    st_headfile_done(&old);
    return r;
}

int st_cli_bill_verify(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0}, old = {0};
    char key[2 * KEY_BYTES + 1];
    unsigned char trusted[KEY_BYTES];
    bill_flags f = {0};
    st_verdict v;
    int r = st_cli_read(argc, argv, verify_options, &f, 1, 1, NULL, err);

    if (r == 0 && f.key)
        r = st_cli_public_key(f.key, trusted, err);
    if (r == 0)
        r = st_file_read(argv[1], BILL_MAX, &text, err);
    if (r == 0 && st_headfile_is(st_strbuf_str(&text), text.n))
        return verify_head(cli, argv[1], &f, f.key ? trusted : NULL, err);
    if (r == 0 && f.witness)
        r = st_fail(err, ST_EINVAL, "--witness is for a head of the log; %s is none",
                    st_file_name(argv[1]));
    if (r == 0 && f.against)
        r = st_file_read(f.against, BILL_MAX, &old, err);
    if (r < 0)
        return r;
    if (f.against)
        st_billfile_against(st_strbuf_str(&text), text.n, st_strbuf_str(&old), old.n,
                            f.key ? trusted : NULL, &v);
    else
        st_billfile_verify(st_strbuf_str(&text), text.n, f.key ? trusted : NULL, &v);
    key_text(v.key, key);
    if (f.format == ST_CLI_JSON)
        print_json(cli->out, &v, key, f.key != NULL);
    else if (v.good)
        print_good(cli->out, &v, key, f.key != NULL);
    else
        fprintf(cli->errors, "stint: %s is not right: %s\n", st_file_name(argv[1]), v.what);
    return v.good ? 0 : STATUS_WRONG;
}

const st_cli_verb st_cli_bill_verbs[] = {
    {"list", "List closed months", "", .fn = st_cli_bill_list, .example = "  stint bill list\n"},
    {"key", "Print the public key that signs bills", "", .fn = st_cli_bill_key,
     .example = "  stint bill key >cluster.pub\n"},
    {"checkpoints",
     "Show how far the log of signed checkpoints has come, and check that it goes on",
     "[OPTION...]",
     "stintd signs a checkpoint over all books every minute in which something was posted. Keep\n"
     "the head with --save: with --against it proves later that the log still has all you were\n"
     "shown. Exit status 9: it does not.\n",
     .fn = st_cli_bill_log, .options = st_cli_bill_log_options,
     .example = "  stint bill checkpoints --key cluster.pub --save monday.head\n"
                "  stint bill checkpoints --key cluster.pub --against monday.head\n"},
    {"witness", "Have others sign the log of checkpoints, and sign it for others", "COMMAND ...",
     .sub = st_cli_witness_verbs, .example = "  stint bill witness list\n"},
    {"fleet", "Show where the GPUs were in a month: granted, idle, unhealthy, overhead",
     "[OPTION...] [MONTH]",
     "For owners. A row per GPU type and interval; intervals end at midnight UTC and when prices\n"
     "or plans change. The interval that is still open is not there yet.\n",
     .fn = st_cli_bill_fleet, .options = st_cli_bill_fleet_options,
     .example = "  stint bill fleet 2026-10\n"},
    {"trial-balance", "Show what every account of the books was debited and credited in a month",
     "[OPTION...] [MONTH]",
     "For owners and auditors. usage: by account, what was posted. revenue: the other side of "
     "each\n"
     "posting. invoiced and receivable: what invoices moved; tax and rounding are theirs.\n",
     .fn = st_cli_bill_trial, .options = st_cli_trial_options,
     .example = "  stint bill trial-balance 2026-10 -o csv\n"},
    {"verify", "Check a downloaded bill, offline", "[OPTION...] FILE",
     "Checks every byte: checksums and signatures, that no entry is missing, that amounts\n"
     "follow from usage, prices and terms, and that lines and total are their sums. Without\n"
     "--key, stint shows which key signed the bill. Exit status 9: the bill is wrong; the\n"
     "message names the line, the account and the entry. With --against, the books of OLD must\n"
     "be how those of FILE begin: so nothing that you were shown was changed or taken back\n"
     "since. FILE may also be a head of the log, from stint bill checkpoints --save: then what\n"
     "witnesses have signed must be how the log begins.\n",
     .fn = st_cli_bill_verify, .options = verify_options,
     .example = "  stint bill verify --key cluster.pub vision-2026-10.bill\n"
                "  stint bill verify --key cluster.pub --against vision-2026-10.bill "
                "vision-2026-11.bill\n"},
    {0},
};
