/*
 * `stint price`, `budget` and `usage`, and what owners do about money: plans, credits, comparing all the numbers.
 */
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/quote.h"
#include "cli/admin_doc.h"
#include "cli/view.h"

#define FILE_MAX (1u << 20)

typedef struct money_flags {
    st_cli_format format;
    const char *month, *by, *label, *reason;
    int64_t entry, reverse;
    bool recent, watch, cluster, forecast, yes, pending;
} money_flags;

#define OUTPUT(words, kind)                                        \
    {                                                              \
        "output", 'o', kind, offsetof(money_flags, format), words, \
            "output format (default: table)", 0, 0                 \
    }

static const st_cli_row output_options[] = {OUTPUT("table|json|csv", ST_CLI_LISTING), {0}};
static const st_cli_row answer_options[] = {OUTPUT("table|json", ST_CLI_OUTPUT), {0}};
const st_cli_row st_cli_reconcile_options[] = {OUTPUT("table|json", ST_CLI_OUTPUT), {0}};
const st_cli_row st_cli_budget_options[] = {
    {"forecast", 'f', ST_CLI_FLAG, offsetof(money_flags, forecast), NULL,
     "instead: what the month will have cost at its end, and what each day has cost", 0, 0},
    OUTPUT("table|json", ST_CLI_OUTPUT),
    {0},
};
const st_cli_row st_cli_usage_options[] = {
    {"month", 'm', ST_CLI_STRING, offsetof(money_flags, month), "2026-10",
     "a closed month (default: the open one)", 0, 0},
    {"by", 'b', ST_CLI_STRING, offsetof(money_flags, by),
     "account|user|gpu|level|job|name|label|cost-center|day",
     "group by (default: user); label:NAME: values of that label; cost-center: the label so called",
     0, 0},
    {"label", 'l', ST_CLI_STRING, offsetof(money_flags, label), "NAME=VALUE",
     "only jobs with this label", 0, 0},
    {"recent", 'r', ST_CLI_FLAG, offsetof(money_flags, recent), NULL,
     "show recent use, which decides whose turn it is, instead", 0, 0},
    {"watch", 'w', ST_CLI_FLAG, offsetof(money_flags, watch), NULL,
     "repeat every two seconds until Ctrl-C (with --recent)", 0, 0},
    OUTPUT("table|json|csv", ST_CLI_LISTING),
    {0},
};

static int begin(st_cli *cli, int argc, char **argv, const st_cli_row *options, int min, int max,
                 money_flags *f, st_client **client, int *ret_n, st_err *err)
{
    int r = st_cli_read(argc, argv, options, f, min, max, ret_n, err);

    return r < 0 ? r : st_client_open(cli->errors, client, err);
}

/* ---- usage ------------------------------------------------------------------------------------------ */

static void busy_part(const json_t *row, st_strbuf *out)
{
    int64_t seen = st_view_milli(row, "seen_gpu_hours"),
            busy = st_view_milli(row, "busy_gpu_hours");

    if (seen <= 0)
        st_strbuf_addc(out, '-');
    else
        st_strbuf_addf(out, "%lld%%", (long long)((busy * 100 + seen / 2) / seen));
}

int st_cli_metered(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"WHO", "key", ST_VIEW_TEXT, NULL},
        {"JOBS", "jobs", ST_VIEW_NUM, NULL},
        {"GPU HOURS", "gpu_hours", ST_VIEW_NUM, NULL},
        {"BUSY", "busy_gpu_hours", ST_VIEW_FN, busy_part},
        {"LOST", "lost_gpu_hours", ST_VIEW_NUM, NULL},
        {"KWH", "energy_kwh", ST_VIEW_NUM, NULL},
        {"COST", "cost", ST_VIEW_NUM, NULL},
        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    money_flags f = {.month = "open", .by = "user"};
    bool of_label;
    int n, r = begin(cli, argc, argv, st_cli_usage_options, 0, 1, &f, &client, &n, err);

    if (r < 0)
        return r;
    of_label = strncmp(f.by, "label:", strlen("label:")) == 0;
    if (f.recent)
        return st_cli_recent(cli, client, f.format, n > 0 ? argv[1] : NULL, f.watch, err);
    st_strbuf_add(&path, "/v1/bills/");
    st_url_add(&path, f.month);
    st_strbuf_add(&path, "/usage");
    st_url_query(&path, "by", of_label ? "label" : f.by);
    st_url_query(&path, "label", of_label ? f.by + strlen("label:") : NULL);
    st_url_query(&path, "where", f.label);
    st_url_query(&path, "account", n > 0 ? argv[1] : NULL);
    r = st_view_list(cli, client, f.format, st_strbuf_str(&path), "rows", columns, err);
    return r < 0 && n > 0 ? st_admin_near(client, "accounts", argv[1], r, err) : r;
}

/* ---- budget ----------------------------------------------------------------------------------------- */

static void month_end(const json_t *doc, st_strbuf *out)
{
    const char *expected = st_view_text(doc, "expected"), *from = st_view_text(doc, "from");

    if (!*expected) {
        st_strbuf_add(out, "not known yet");
        return;
    }
    st_strbuf_add(out, expected);
    if (strcmp(from, "days") == 0)
        st_strbuf_addf(out, "; 8 in 10 end between %s and %s", st_view_text(doc, "low"),
                       st_view_text(doc, "high"));
    else if (strcmp(from, "so far") == 0)
        st_strbuf_addf(out, " at this rate; %s at least, %s at twice the rate",
                       st_view_text(doc, "low"), st_view_text(doc, "high"));
}

/* The end of the month, and its days. */
static int put_forecast(st_cli *cli, st_client *client, const money_flags *f, const char *account,
                        st_err *err)
{
    static const st_view_column facts[] = {
        {"Account", "account", ST_VIEW_TEXT, NULL},
        {"Month", "period", ST_VIEW_TEXT, NULL},
        {"Spent", "spent", ST_VIEW_TEXT, NULL},
        {"At its end", "expected", ST_VIEW_FN, month_end},
        {0},
    };
    /* As wide as what stands above it. */
    static const st_view_column end[] = {{"At its end      ", "expected", ST_VIEW_FN, month_end},
                                         {0}};
    static const st_view_column columns[] = {
        {"DAY", "day", ST_VIEW_TEXT, NULL},
        {"GPU HOURS", "gpu_hours", ST_VIEW_NUM, NULL},
        {"COST", "cost", ST_VIEW_NUM, NULL},
        {"WHOLE", "whole", ST_VIEW_TEXT, NULL},
        {0},
    };
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    json_t *doc = NULL;
    int r;

    st_strbuf_add(&path, "/v1/bills/open/forecast?account=");
    st_url_add(&path, account);
    r = st_client_json(client, &(st_request){.path = st_strbuf_str(&path)}, &doc, &response, err);
    if (r < 0)
        return r;
    if (f->format == ST_CLI_JSON) {
        st_view_raw(cli, &response);
    } else if (f->forecast) {
        st_view_facts(cli, doc, facts);
        fputc('\n', cli->out);
        st_view_rows(cli, f->format, json_object_get(doc, "days"), columns);
    } else {
        st_view_facts(cli, doc, end);
    }
    json_decref(doc);
    return 0;
}

static int put_budget(st_cli *cli, st_client *client, const money_flags *f, const char *account,
                      st_err *err)
{
    static const st_view_column facts[] = {
        {"Account", "account", ST_VIEW_TEXT, NULL},
        {"Month", "period", ST_VIEW_TEXT, NULL},
        {"Cap", "cap", ST_VIEW_TEXT, NULL},
        {"Budget", "budget", ST_VIEW_TEXT, NULL},
        {"Spent", "spent", ST_VIEW_TEXT, NULL},
        {"  of it running", "running", ST_VIEW_TEXT, NULL},
        {"Credit left over", "credit", ST_VIEW_TEXT, NULL},
        {"On hold", "held", ST_VIEW_TEXT, NULL},
        {"Floors to come", "reserved", ST_VIEW_TEXT, NULL},
        {"Bookings to come", "booked", ST_VIEW_TEXT, NULL},
        {"Together", "committed", ST_VIEW_TEXT, NULL},
        {"Left", "left", ST_VIEW_TEXT, NULL},
        {0},
    };
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    int r;

    st_admin_path(&path, "accounts", account);
    st_strbuf_add(&path, "/budget");
    r = st_view_one(cli, client, f->format, st_strbuf_str(&path), facts, err);
    if (r == 0 && f->format != ST_CLI_JSON)
        r = put_forecast(cli, client, f, account, err);
    return r;
}

int st_cli_budget(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    money_flags f = {0};
    json_t *me = NULL;
    const char *account;
    int n, r = begin(cli, argc, argv, st_cli_budget_options, 0, 1, &f, &client, &n, err);

    if (r == 0 && n == 0)
        r = st_client_get(client, "/v1/whoami", &me, err);
    if (r < 0)
        return r;
    account = n > 0 ? argv[1] : st_view_text(me, "account");
    if (!*account && !f.forecast)
        r = st_fail(err, ST_EINVAL, "%s: of which account? The cluster has no budget", argv[0]);
    if (r == 0)
        r = f.forecast ? put_forecast(cli, client, &f, account, err)
                       : put_budget(cli, client, &f, account, err);
    if (r < 0 && *account)
        r = st_admin_near(client, "accounts", account, r, err);
    json_decref(me);
    return r;
}

/* ---- prices ----------------------------------------------------------------------------------------- */

static int price_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"NAME", "prices", ST_VIEW_TEXT, NULL},
        {"FROM", "from", ST_VIEW_TIME, NULL},
        {"IN FORCE", "in_force", ST_VIEW_TEXT, NULL},
        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    money_flags f = {0};
    int n, r = begin(cli, argc, argv, output_options, 0, 0, &f, &client, &n, err);

    return r < 0 ? r : st_view_list(cli, client, f.format, "/v1/prices", "prices", columns, err);
}

/* Everything of a book that is not by GPU type. */
static const st_view_column book_facts[] = {
    {"Name", "prices", ST_VIEW_TEXT, NULL},
    {"From", "from", ST_VIEW_TIME, NULL},
    {"In force", "in_force", ST_VIEW_TEXT, NULL},
    {"CPU, a core-hour", "cpu", ST_VIEW_TEXT, NULL},
    {"Memory, a GiB-hour", "ram", ST_VIEW_TEXT, NULL},
    {"Energy, a kWh", "energy", ST_VIEW_TEXT, NULL},
    {"Idle, on top", "idle", ST_VIEW_TEXT, NULL},
    {"Topology, on top", "topology", ST_VIEW_WORDS, NULL},
    {"Credit for lost work", "credit.lost", ST_VIEW_TEXT, NULL},
    {"Credit for faults", "credit.fault", ST_VIEW_TEXT, NULL},
    {0},
};

/* And what is: a row for each. */
static const st_view_column rate_columns[] = {
    {"GPU", "gpu", ST_VIEW_TEXT, NULL},
    {"RESERVED", "reserved", ST_VIEW_NUM, NULL},
    {"GUARANTEED", "guaranteed", ST_VIEW_NUM, NULL},
    {"BURST", "burst", ST_VIEW_NUM, NULL},
    {"ON DEMAND", "on_demand", ST_VIEW_NUM, NULL},
    {"BOOKED", "booked", ST_VIEW_NUM, NULL},
    {"WHOLE", "whole", ST_VIEW_NUM, NULL},
    {"MIG", "mig", ST_VIEW_NUM, NULL},
    {"MPS", "mps", ST_VIEW_NUM, NULL},
    {"TIME", "time", ST_VIEW_NUM, NULL},
    {0},
};

static void put_book(st_cli *cli, const json_t *book)
{
    json_t *rows = json_array(), *rates, *price;
    const char *name;
    void *at = json_object_iter(json_object_get(book, "gpu"));

    for (; at; at = json_object_iter_next(json_object_get(book, "gpu"), at)) {
        rates = json_copy(json_object_iter_value(at));
        json_object_set_new(rates, "gpu", json_string(json_object_iter_key(at)));
        json_array_append_new(rows, rates);
    }
    st_view_facts(cli, book, book_facts);
    fputc('\n', cli->out);
    st_view_rows(cli, ST_CLI_TABLE, rows, rate_columns);
    json_decref(rows);
    json_object_foreach(json_object_get(book, "pieces"), name, price)
    {
        const char *frame = st_view_text(price, "frames");

        fprintf(cli->out, "\n%s: %s a %s, and nothing else\n", name,
                *frame ? frame : st_view_text(price, "minutes"), *frame ? "frame" : "minute");
    }
}

/* The last one of that name; without a name the one in force. */
static const json_t *find_book(const json_t *doc, const char *name)
{
    const json_t *found = NULL;
    json_t *book;
    size_t i;

    json_array_foreach(json_object_get(doc, "prices"), i, book)
    {
        if (name ? strcmp(st_view_text(book, "prices"), name) == 0
                 : json_is_true(json_object_get(book, "in_force")))
            found = book;
    }
    return found;
}

static int price_show(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    money_flags f = {0};
    char q[ST_QUOTE_MAX];
    const json_t *book;
    json_t *doc = NULL;
    char *text;
    int n, r = begin(cli, argc, argv, answer_options, 0, 1, &f, &client, &n, err);

    if (r == 0)
        r = st_client_get(client, "/v1/prices", &doc, err);
    if (r < 0)
        return r;
    book = find_book(doc, n > 0 ? argv[1] : NULL);
    if (!book) {
        r = n > 0 ? st_fail(err, ST_ENOENT, "there is no price book %s", st_quote(q, argv[1]))
                  : st_fail(err, ST_ENOENT, "there are no prices yet");
    } else if (f.format == ST_CLI_JSON) {
        text = json_dumps(book, JSON_INDENT(2));
        fprintf(cli->out, "%s\n", text);
        free(text);
    } else {
        put_book(cli, book);
    }
    json_decref(doc);
    return r;
}

/* Sends a file as it is; the server reads YAML and JSON alike. */
static int send_file(st_cli *cli, st_client *client, const money_flags *f, const char *method,
                     const char *path, const char *file, const char *said, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    char key[ST_KEY_MAX];
    int r = st_file_read(file, FILE_MAX, &text, err);

    if (r < 0)
        return r;
    st_client_key(key);
    return st_admin_send(cli, client,
                         &(st_request){.method = method,
                                       .path = path,
                                       .body = st_strbuf_str(&text),
                                       .key = strcmp(method, "POST") == 0 ? key : NULL,
                                       .type = "application/yaml",
                                       .file = file},
                         f->format, said, err);
}

static int price_publish(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    money_flags f = {0};
    int n, r = begin(cli, argc, argv, answer_options, 1, 1, &f, &client, &n, err);

    return r < 0 ? r
                 : send_file(cli, client, &f, "POST", "/v1/prices", argv[1],
                             "the price book is published", err);
}

const st_cli_verb st_cli_price_verbs[] = {
    {"list", "List price books", "[OPTION...]", .fn = price_list, .options = output_options,
     .example = "  stint price list\n"},
    {"show", "Show a price book (default: the one in force)", "[OPTION...] [NAME]",
     .fn = price_show, .options = answer_options, .example = "  stint price show 2026-h2\n"},
    {"publish", "Publish a price book", "[OPTION...] FILE",
     "Valid from now on, or from the time in the file. Past usage keeps its price.\n",
     .fn = price_publish, .options = answer_options,
     .example = "  printf 'prices: 2027\\nfrom: 2027-01-01\\ngpu: {\"*\": {reserved: 1.80, burst: "
                "2.20}}\\n' >prices.yaml\n"
                "  stint price publish prices.yaml\n"},
    {0},
};

/* ---- owners ------------------------------------------------------------------------------------------ */

const st_cli_row st_cli_plan_options[] = {
    {"cluster", 'c', ST_CLI_FLAG, offsetof(money_flags, cluster), NULL,
     "the plan of all accounts that have none", 0, 0},
    OUTPUT("table|json", ST_CLI_OUTPUT),
    {0},
};
const st_cli_row st_cli_credit_options[] = {
    {"reason", 'r', ST_CLI_STRING, offsetof(money_flags, reason), "TEXT",
     "reason, shown on the bill", 0, 0},
    {"entry", 'e', ST_CLI_I64, offsetof(money_flags, entry), "N",
     "entry of the account's book that the credit is about", 1, INT64_MAX},
    {"reverse", 'R', ST_CLI_I64, offsetof(money_flags, reverse), "N",
     "reverse the credit with this entry, instead of an amount", 1, INT64_MAX},
    {"yes", 'y', ST_CLI_FLAG, offsetof(money_flags, yes), NULL,
     "credit more than the account was charged", 0, 0},
    {"pending", 'p', ST_CLI_FLAG, offsetof(money_flags, pending), NULL,
     "list the credits that wait for a second owner, instead", 0, 0},
    OUTPUT("table|json", ST_CLI_OUTPUT),
    {0},
};

int st_cli_admin_plan(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column facts[] = {
        {"Account", "account", ST_VIEW_TEXT, NULL},
        {"Plan of", "of", ST_VIEW_TEXT, NULL},
        {"Chargeback", "chargeback", ST_VIEW_TEXT, NULL},
        {"Discount, percent", "discount_percent", ST_VIEW_NUM, NULL},
        {"Burst up to, GPUs", "burst_gpus", ST_VIEW_NUM, NULL},
        {"Cap", "cap", ST_VIEW_TEXT, NULL},
        {"At the cap", "at_cap", ST_VIEW_TEXT, NULL},
        {"Grace", "grace", ST_VIEW_TEXT, NULL},
        {"Held at a time", "hold", ST_VIEW_TEXT, NULL},
        {"Budget", "budget", ST_VIEW_TEXT, NULL},
        {"Warnings at, percent", "warn_percent", ST_VIEW_WORDS, NULL},
        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    money_flags f = {0};
    const char *account, *file;
    int n, r = begin(cli, argc, argv, st_cli_plan_options, 0, 2, &f, &client, &n, err);

    if (r == 0 && (f.cluster ? n > 1 : n < 1))
        r = st_fail(err, ST_EINVAL, "%s: give one account, or --cluster", argv[0]);
    if (r < 0)
        return r;
    account = f.cluster ? NULL : argv[1];
    file = f.cluster ? (n > 0 ? argv[1] : NULL) : (n > 1 ? argv[2] : NULL);
    if (account) {
        st_admin_path(&path, "accounts", account);
        st_strbuf_add(&path, "/plan");
        st_strbuf_addf(&said, "account %s has the plan", account);
    } else {
        st_strbuf_add(&path, "/v1/plan");
        st_strbuf_add(&said, "the cluster has the plan");
    }
    r = file ? send_file(cli, client, &f, "PUT", st_strbuf_str(&path), file, st_strbuf_str(&said),
                         err)
             : st_view_one(cli, client, f.format, st_strbuf_str(&path), facts, err);
    return r < 0 && account ? st_admin_near(client, "accounts", account, r, err) : r;
}

static int list_pending(st_cli *cli, st_client *client, const money_flags *f, st_err *err)
{
    static const st_view_column columns[] = {
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL}, {"AMOUNT", "amount", ST_VIEW_NUM, NULL},
        {"REASON", "reason", ST_VIEW_TEXT, NULL},   {"BY", "by", ST_VIEW_TEXT, NULL},
        {"AGE", "at", ST_VIEW_AGE, NULL},           {0},
    };

    return st_view_list(cli, client, f->format, "/v1/credits/pending", "credits", columns, err);
}

/* What is said of a credit that was taken; one that waits says how it goes on. */
static void say_credit(st_cli *cli, const json_t *doc)
{
    const char *account = st_view_text(doc, "account"), *amount = st_view_text(doc, "amount");

    if (json_is_true(json_object_get(doc, "pending")))
        fprintf(cli->out,
                "nothing is given yet: a second owner must ask for the same (%s %s, with the same "
                "reason)\n",
                account, amount);
    else if (amount[0] == '-')
        fprintf(cli->out, "account %s has a credit of %s less\n", account, amount + 1);
    else
        fprintf(cli->out, "account %s is given %s (entry %lld)\n", account, amount,
                (long long)json_integer_value(json_object_get(doc, "entry")));
}

static int send_credit(st_cli *cli, st_client *client, const money_flags *f, const char *account,
                       const char *amount, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    char key[ST_KEY_MAX], *text;
    json_t *doc = NULL, *body = json_pack("{s:s}", "reason", f->reason);
    int r;

    if (amount)
        json_object_set_new(body, "amount", json_string(amount));
    if (f->entry > 0)
        json_object_set_new(body, "entry", json_integer(f->entry));
    if (f->reverse > 0)
        json_object_set_new(body, "reverse", json_integer(f->reverse));
    if (f->yes)
        json_object_set_new(body, "confirm", json_true());
    text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    st_admin_path(&path, "accounts", account);
    st_strbuf_add(&path, "/credits");
    st_client_key(key);
    r = st_client_json(
        client,
        &(st_request){.method = "POST", .path = st_strbuf_str(&path), .body = text, .key = key},
        &doc, &response, err);
    if (r == 0 && f->format == ST_CLI_JSON)
        st_view_raw(cli, &response);
    else if (r == 0)
        say_credit(cli, doc);
    json_decref(doc);
    free(text);
    return r;
}

int st_cli_admin_credit(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    money_flags f = {0};
    int n, r = begin(cli, argc, argv, st_cli_credit_options, 0, 2, &f, &client, &n, err);

    if (r < 0)
        return r;
    if (f.pending)
        return n > 0 ? st_fail(err, ST_EINVAL, "%s: --pending goes alone", argv[0])
                     : list_pending(cli, client, &f, err);
    if (n != (f.reverse > 0 ? 1 : 2))
        return st_fail(err, ST_EINVAL,
                       "%s: give an account and an amount, or an account and --reverse", argv[0]);
    if (!f.reason)
        return st_fail(err, ST_EINVAL, "%s: a credit needs a --reason", argv[0]);
    r = send_credit(cli, client, &f, argv[1], n > 1 ? argv[2] : NULL, err);
    return r < 0 ? st_admin_near(client, "accounts", argv[1], r, err) : 0;
}

int st_cli_admin_reconcile(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_response_done) st_response response = {0};
    money_flags f = {0};
    json_t *doc = NULL, *line;
    size_t i;
    int n, r = begin(cli, argc, argv, answer_options, 0, 0, &f, &client, &n, err);

    if (r == 0)
        r = st_client_json(client, &(st_request){.method = "POST", .path = "/v1/admin/reconcile"},
                           &doc, &response, err);
    if (r < 0)
        return r;
    if (f.format == ST_CLI_JSON) {
        st_view_raw(cli, &response);
    } else {
        json_array_foreach(json_object_get(doc, "findings"), i, line)
            fprintf(cli->out, "%s\n", json_string_value(line));
        if (json_is_true(json_object_get(doc, "agree")))
            fprintf(cli->out, "meter, ledger, store and agents agree\n");
    }
    n = (int)json_array_size(json_object_get(doc, "findings"));
    json_decref(doc);
    if (n > 0)
        fprintf(cli->errors, "stint: %d difference%s found\n", n, n > 1 ? "s were" : " was");
    return n > 0; /* a check that found something, as `audit --verify` */
}
