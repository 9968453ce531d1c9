/*
 * `stint sim shares FILE`: reads the question (share/shares.h) and prints the
 * answer, as a table in the shape of the tree or as JSON in the order of the
 * file. Resources no account mentions are left out.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "share/shares.h"

#define DECIMALS_JSON  6
#define DECIMALS_TABLE 3
#define NUMBER_MAX     64

/* The number with at most that many decimals and no zeros behind them. */
static const char *format_number(char buf[NUMBER_MAX], double x, int decimals)
{
    int n = snprintf(buf, NUMBER_MAX, "%.*f", decimals, x);

    if (strchr(buf, '.')) {
        while (buf[n - 1] == '0')
            buf[--n] = '\0';
        if (buf[n - 1] == '.')
            buf[--n] = '\0';
    }
    return strcmp(buf, "-0") == 0 ? "0" : buf;
}

/* Names hold valid UTF-8 and no control characters (share/shares.c), so only these two matter. */
static void print_string(FILE *out, const char *s)
{
    putc('"', out);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            putc('\\', out);
        putc(*s, out);
    }
    putc('"', out);
}

typedef enum { SHARE, WHOLE, LEFT } answer;

/* {"gpu": 3.4, "cpu": 12}: one of the answers, for one account or, for LEFT, for none. */
static void print_amounts(FILE *out, const st_shares *s, answer which, int account)
{
    const char *comma = "";
    char buf[NUMBER_MAX];

    putc('{', out);
    for (int k = 0; k < s->nresources; k++) {
        const st_shares_resource *res = &s->resources[k];

        if (!res->mentioned)
            continue;
        fputs(comma, out);
        comma = ", ";
        print_string(out, res->name);
        if (which == WHOLE)
            fprintf(out, ": %lld", (long long)res->out[account].whole);
        else
            fprintf(out, ": %s",
                    format_number(buf, which == LEFT ? res->left : res->out[account].share,
                                  DECIMALS_JSON));
    }
    putc('}', out);
}

static void print_json(FILE *out, const st_shares *s)
{
    fputs("{\"accounts\": [", out);
    for (int i = 0; i < s->naccounts; i++) {
        fputs(i > 0 ? ",\n  {\"name\": " : "\n  {\"name\": ", out);
        print_string(out, s->accounts[i].name);
        fputs(", \"share\": ", out);
        print_amounts(out, s, SHARE, i);
        fputs(", \"whole\": ", out);
        print_amounts(out, s, WHOLE, i);
        putc('}', out);
    }
    fputs(s->naccounts > 0 ? "\n], \"left\": " : "], \"left\": ", out);
    print_amounts(out, s, LEFT, 0);
    fputs("}\n", out);
}

/* How many decimals the shares of a resource need, so that its column lines up. */
static int column_decimals(const st_shares_resource *res, int n)
{
    int decimals = 0;
    char buf[NUMBER_MAX];

    for (int i = -1; i < n; i++) {
        const char *text =
            format_number(buf, i < 0 ? res->left : res->out[i].share, DECIMALS_TABLE);
        const char *point = strchr(text, '.');

        if (point)
            decimals = ST_MAX(decimals, (int)strlen(point + 1));
    }
    return decimals;
}

/* Lists the accounts so that each is followed by its children, siblings in the order of the file. */
static int *tree_order(const st_shares *s)
{
    size_t n = (size_t)s->naccounts;
    ST_CLEANUP(st_freep) int *next = st_xcalloc(n, sizeof(*next));
    ST_CLEANUP(st_freep) int *first = st_xcalloc(n + 1, sizeof(*first));
    int *order = st_xcalloc(n, sizeof(*order)), done = 0, at;

    for (int i = 0; i <= s->naccounts; i++)
        first[i] = -1;
    for (int i = s->naccounts - 1; i >= 0; i--) {
        next[i] = first[s->accounts[i].parent + 1];
        first[s->accounts[i].parent + 1] = i;
    }
    at = first[0];
    while (at >= 0) {
        order[done++] = at;
        if (first[at + 1] >= 0) {
            at = first[at + 1];
            continue;
        }
        while (at >= 0 && next[at] < 0)
            at = s->accounts[at].parent;
        if (at >= 0)
            at = next[at];
    }
    ST_ASSERT(done == s->naccounts);
    return order;
}

static void print_table(FILE *out, const st_shares *s)
{
    ST_CLEANUP(st_table_done) st_table t = {0};
    ST_CLEANUP(st_freep) int *order = tree_order(s);
    int decimals[ST_SHARES_RESOURCES_MAX];

    st_table_column(&t, "ACCOUNT", false);
    for (int k = 0; k < s->nresources; k++) {
        if (!s->resources[k].mentioned)
            continue;
        decimals[k] = column_decimals(&s->resources[k], s->naccounts);
        st_table_column(&t, s->resources[k].name, true);
        st_table_column(&t, "whole", true);
    }
    for (int row = 0; row <= s->naccounts; row++) {
        bool left = row == s->naccounts;
        int i = left ? -1 : order[row];

        if (left)
            st_table_cell(&t, "(left)");
        else
            st_table_cell(&t, "%*s%s", 2 * (s->accounts[i].depth - 1), "", s->accounts[i].name);
        for (int k = 0; k < s->nresources; k++) {
            const st_shares_resource *res = &s->resources[k];

            if (!res->mentioned)
                continue;
            st_table_cell(&t, "%.*f", decimals[k], left ? res->left : res->out[i].share);
            st_table_cell(&t, "%lld", (long long)(left ? res->left_whole : res->out[i].whole));
        }
    }
    st_table_print(&t, out);
}

int st_cli_sim_shares(st_cli *cli, int argc, char **argv, st_err *err)
{
    st_cli_format format = ST_CLI_TABLE;
    const st_cli_opt opts[] = {ST_CLI_OPT_OUTPUT(&format), {0}};
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    ST_CLEANUP(st_shares_freep) st_shares *s = NULL;
    int r, n;

    r = st_cli_options(argc, argv, opts, 1, 1, &n, err);
    if (r < 0)
        return r;
    r = st_doc_load(argv[1], &doc, err);
    /* A document beyond the reader's limits is bad input, not a quota of the caller's. */
    if (r == -ST_ELIMIT)
        return st_fail(err, ST_ERANGE, "%s", err->msg);
    if (r < 0)
        return r;
    r = st_shares_new(doc, &s, err);
    if (r < 0)
        return r;
    if (format == ST_CLI_JSON)
        print_json(cli->out, s);
    else
        print_table(cli->out, s);
    return 0;
}
