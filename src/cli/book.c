/*
 * `stint book`: quotes, bookings, and what is done to them.
 */
#include <string.h>
#include <unistd.h>

#include "base/quote.h"
#include "cli/view.h"
#include "cli/when_flags.h"

typedef struct book_flags {
    st_when_flags when;
    st_cli_format format;
    const char *account, *name, *gpus, *tasks, *type, *pool, *topology, *no_show, *image, *level,
        *profile, *share;
    bool dry_run, hold, series, all, yes, dedicated;
    st_cli_words require;
} book_flags;

#define TEXT(option, letter, field, value, about)                                      \
    {                                                                                  \
        option, letter, ST_CLI_STRING, offsetof(book_flags, field), value, about, 0, 0 \
    }
#define FLAG(option, field, about)                                             \
    {                                                                          \
        option, 0, ST_CLI_FLAG, offsetof(book_flags, field), NULL, about, 0, 0 \
    }
#define OUTPUT(words, kind)                                       \
    {                                                             \
        "output", 'o', kind, offsetof(book_flags, format), words, \
            "output format (default: table)", 0, 0                \
    }

const st_cli_row st_cli_book_options[] = {
    TEXT("account", 'a', account, "ACCOUNT", "account that books (default: yours)"),
    TEXT("name", 'n', name, "NAME", "name of the booking (default: booking)"),
    TEXT("gpus", 'g', gpus, "N", "GPUs in all; with --tasks, GPUs of each task"),
    TEXT("tasks", 't', tasks, "N", "tasks, each on one node; of slices or shares, how many"),
    TEXT("level", 0, level, "mig|mps|time", "book slices or shares of GPUs instead of whole ones"),
    TEXT("profile", 0, profile, "PROFILE", "MIG slice: 1g, 3g or 3g.40gb"),
    TEXT("share", 0, share, "PART", "part of one GPU, for example 0.25 (levels mps and time)"),
    TEXT("type", 'T', type, "TYPE", "GPU type"),
    TEXT("pool", 'p', pool, "POOL", "pool (default: any)"),
    TEXT("topology", 0, topology, "LEVEL", "require one nvlink, node, rack, block or zone"),
    {"require", 'r', ST_CLI_MANY, offsetof(book_flags, require), "LABEL=VALUE",
     "label that its nodes must have, as driver=550; repeatable", 0, 0},
    TEXT("image", 'i', image, "NAME",
         "image of the catalogue that its nodes are to have when it begins"),
    FLAG("dedicated", dedicated, "whole nodes, with nobody else on them"),
    TEXT("no-show", 0, no_show, "DURATION",
         "release it if no job came within this time of the start (default: never)"),
    ST_WHEN_ROWS(book_flags, when),
    FLAG("dry-run", dry_run, "show the quote; book nothing"),
    FLAG("hold", hold, "hold it for ten minutes; confirm it with `stint book confirm`"),
    OUTPUT("table|json", ST_CLI_OUTPUT),
    {0},
};
static const st_cli_row list_options[] = {
    TEXT("account", 'a', account, "ACCOUNT", "account, with all below it (default: yours)"),
    FLAG("all", all, "show those that are over, too"),
    OUTPUT("table|json|csv", ST_CLI_LISTING),
    {0},
};
static const st_cli_row show_options[] = {OUTPUT("table|json", ST_CLI_OUTPUT), {0}};
static const st_cli_row cancel_options[] = {
    FLAG("series", series, "cancel all that is left of its series"),
    {"yes", 'y', ST_CLI_FLAG, offsetof(book_flags, yes), NULL, "accept a fee without asking", 0, 0},
    {0},
};
static const st_cli_row change_options[] = {
    {"from", 0, ST_CLI_STRING, offsetof(book_flags, when.from), "TIME", "new start", 0, 0},
    {"to", 0, ST_CLI_STRING, offsetof(book_flags, when.to), "TIME", "new end", 0, 0},
    {"zone", 0, ST_CLI_STRING, offsetof(book_flags, when.zone), "ZONE",
     "time zone of these times (default: this machine's)", 0, 0},
    TEXT("tasks", 't', tasks, "N", "new number of tasks"),
    OUTPUT("table|json", ST_CLI_OUTPUT),
    {0},
};

/* ---- columns -------------------------------------------------------------------------------- */

/* What a clock shows in the booking's zone. */
static void put_clock(const json_t *row, const char *key, st_strbuf *out)
{
    const char *s = st_view_text(row, key);

    if (strlen(s) < 16)
        st_strbuf_addc(out, '-');
    else
        st_strbuf_addf(out, "%.10s %.5s", s, s + 11);
}

static void put_from(const json_t *row, st_strbuf *out)
{
    put_clock(row, "from", out);
}

static void put_to(const json_t *row, st_strbuf *out)
{
    put_clock(row, "to", out);
}

static int64_t count(const json_t *row, const char *key)
{
    return json_integer_value(json_object_get(row, key));
}

static void put_gpus(const json_t *row, st_strbuf *out)
{
    st_strbuf_addf(out, "%lld", (long long)(count(row, "tasks") * count(row, "gpus")));
}

/* What they are divided into, for the jobs inside. */
static void put_parts(const json_t *row, st_strbuf *out)
{
    const char *profile = st_view_text(row, "profile"), *level = st_view_text(row, "level");

    if (count(row, "parts") == 0)
        return;
    st_strbuf_addf(out, "%lld × ", (long long)count(row, "parts"));
    if (*profile)
        st_strbuf_add(out, profile);
    else
        st_strbuf_addf(out, "%s of a GPU (%s)", st_view_text(row, "share"), level);
}

static void put_state(const json_t *row, st_strbuf *out)
{
    st_strbuf_addf(out, "%s%s", st_view_text(row, "state"),
                   json_is_true(json_object_get(row, "degraded")) ? ", degraded" : "");
}

static const st_view_column booking_columns[] = {
    {"ID", "id", ST_VIEW_TEXT, NULL},
    {"NAME", "name", ST_VIEW_TEXT, NULL},
    {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
    {"STATE", "state", ST_VIEW_FN, put_state},
    {"GPUS", "gpus", ST_VIEW_FN, put_gpus},
    {"TYPE", "type", ST_VIEW_TEXT, NULL},
    {"FROM", "from", ST_VIEW_FN, put_from},
    {"TO", "to", ST_VIEW_FN, put_to},
    {"ZONE", "zone", ST_VIEW_TEXT, NULL},
    {"SERIES", "series", ST_VIEW_TEXT, NULL},
    {0},
};
static const st_view_column booking_facts[] = {
    {"Id", "id", ST_VIEW_TEXT, NULL},
    {"Name", "name", ST_VIEW_TEXT, NULL},
    {"Account", "account", ST_VIEW_TEXT, NULL},
    {"User", "user", ST_VIEW_TEXT, NULL},
    {"State", "state", ST_VIEW_FN, put_state},
    {"GPUs", "gpus", ST_VIEW_FN, put_gpus},
    {"Type", "type", ST_VIEW_TEXT, NULL},
    {"Tasks", "tasks", ST_VIEW_NUM, NULL},
    {"Divided", "level", ST_VIEW_FN, put_parts},
    {"Pool", "pool", ST_VIEW_TEXT, NULL},
    {"Topology", "topology", ST_VIEW_TEXT, NULL},
    {"Requires", "require", ST_VIEW_WORDS, NULL},
    {"Dedicated", "dedicated", ST_VIEW_TEXT, NULL},
    {"Image", "image", ST_VIEW_TEXT, NULL},
    {"Ready", "ready", ST_VIEW_TEXT, NULL},
    {"Reason", "reason", ST_VIEW_TEXT, NULL},
    {"From", "from", ST_VIEW_TEXT, NULL},
    {"To", "to", ST_VIEW_TEXT, NULL},
    {"Zone", "zone", ST_VIEW_TEXT, NULL},
    {"Zone data", "zone_change.text", ST_VIEW_TEXT, NULL},
    {"Series", "series", ST_VIEW_TEXT, NULL},
    {"Held until", "held_until", ST_VIEW_TIME, NULL},
    {"Nodes", "nodes", ST_VIEW_WORDS, NULL},
    {"Price", "price.amount", ST_VIEW_TEXT, NULL},
    {"Per GPU-hour", "price.gpu_hour", ST_VIEW_TEXT, NULL},
    {"Discounts", "price.discounts", ST_VIEW_WORDS, NULL},
    {"Cancel fee", "cancel_fee", ST_VIEW_TEXT, NULL},
    {0},
};

/* ---- booking -------------------------------------------------------------------------------- */

static void put_alternatives(const json_t *row, st_strbuf *out)
{
    const json_t *types = json_object_get(row, "other_types");
    const char *gap = "";

    if (st_view_text(row, "earlier")[0]) {
        st_strbuf_add(out, "from ");
        put_clock(row, "earlier", out);
        gap = ", ";
    }
    if (st_view_text(row, "later")[0]) {
        st_strbuf_addf(out, "%sfrom ", gap);
        put_clock(row, "later", out);
        gap = ", ";
    }
    if (count(row, "fewer_gpus") > 0) {
        st_strbuf_addf(out, "%s%lld GPUs", gap, (long long)count(row, "fewer_gpus"));
        gap = ", ";
    }
    for (size_t i = 0; i < json_array_size(types); i++, gap = ", ")
        st_strbuf_addf(out, "%son %s", gap, json_string_value(json_array_get(types, i)));
    if (!*gap)
        st_strbuf_addc(out, '-');
}

static void put_fits(const json_t *row, st_strbuf *out)
{
    if (json_is_true(json_object_get(row, "fits"))) {
        st_strbuf_add(out, "fits");
        if (json_number_value(json_object_get(row, "displaces_own_gpus")) > 0)
            st_strbuf_addf(out, "; %g GPUs of your own jobs would be preempted",
                           json_number_value(json_object_get(row, "displaces_own_gpus")));
    } else if (st_view_text(row, "detail")[0]) {
        st_strbuf_addf(out, "refused: %s", st_view_text(row, "detail"));
    } else if (st_view_text(row, "not_available_from")[0]) {
        st_strbuf_add(out, "not available from ");
        put_clock(row, "not_available_from", out);
    } else {
        st_strbuf_addf(out, "refused: %s", st_view_text(row, "why"));
    }
}

static void put_price(const json_t *row, st_strbuf *out)
{
    const char *amount = st_view_text(json_object_get(row, "price"), "amount");

    st_strbuf_add(out, *amount ? amount : "-");
}

static const st_view_column quote_columns[] = {
    {"FROM", "from", ST_VIEW_FN, put_from},
    {"TO", "to", ST_VIEW_FN, put_to},
    {"QUOTE", "fits", ST_VIEW_FN, put_fits},
    {"PRICE", "price", ST_VIEW_FN, put_price},
    {"INSTEAD", "earlier", ST_VIEW_FN, put_alternatives},
    {0},
};

static void put_topology(st_body *body, const char *topology)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf json = {0};

    if (!topology)
        return;
    st_strbuf_add(&json, "{\"require\":");
    st_quote_json(&json, topology);
    st_strbuf_addc(&json, '}');
    st_body_raw(body, "topology", st_strbuf_str(&json));
}

static int put_require(st_body *body, const st_cli_words *words, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf json = {0};

    for (int i = 0; i < words->n; i++) {
        const char *value = strchr(words->v[i], '=');
        char name[64], q[ST_QUOTE_MAX];

        if (!value || value == words->v[i] || (size_t)(value - words->v[i]) >= sizeof name)
            return st_fail(err, ST_EINVAL, "option --require: %s is not LABEL=VALUE",
                           st_quote(q, words->v[i]));
        snprintf(name, sizeof name, "%.*s", (int)(value - words->v[i]), words->v[i]);
        st_strbuf_addc(&json, i > 0 ? ',' : '{');
        st_quote_json(&json, name);
        st_strbuf_addc(&json, ':');
        st_quote_json(&json, value + 1);
    }
    if (words->n > 0) {
        st_strbuf_addc(&json, '}');
        st_body_raw(body, "require", st_strbuf_str(&json));
    }
    return 0;
}

static int body_of(const book_flags *f, const char *verb, st_body *body, st_err *err)
{
    bool parts = f->level || f->profile || f->share;

    if ((!f->gpus && !parts) || !f->type)
        return st_fail(err, ST_EINVAL,
                       parts ? "%s: say of which GPUs: --type TYPE"
                             : "%s: say what: --gpus N --type TYPE",
                       verb);
    st_body_put(body, "account", f->account);
    st_body_put(body, "name", f->name);
    st_body_put(body, "type", f->type);
    st_body_put(body, "gpus", f->gpus);
    st_body_put(body, "tasks", f->tasks);
    st_body_put(body, "level", f->level);
    st_body_put(body, "profile", f->profile);
    st_body_put(body, "share", f->share);
    st_body_put(body, "pool", f->pool);
    st_body_put(body, "image", f->image);
    st_body_put(body, "no_show", f->no_show);
    put_topology(body, f->topology);
    if (f->dedicated)
        st_body_raw(body, "dedicated", "true");
    if (put_require(body, &f->require, err) < 0)
        return -ST_EINVAL;
    if (!f->hold)
        st_body_raw(body, "confirm", "true");
    return st_when_flags_put(&f->when, verb, body, err);
}

/* Every window with what could be had instead; exit status 6 when one does not fit. */
static int show_quote(st_cli *cli, st_client *client, const book_flags *f, const char *body,
                      st_err *err)
{
    ST_CLEANUP(st_response_done) st_response response = {0};
    json_t *doc = NULL;
    bool fits;
    int r = st_client_json(
        client, &(st_request){.method = "POST", .path = "/v1/bookings?dry_run=true", .body = body},
        &doc, &response, err);

    if (r < 0)
        return r;
    fits = json_is_true(json_object_get(doc, "fits"));
    if (f->format == ST_CLI_JSON) {
        st_view_raw(cli, &response);
    } else {
        ST_CLEANUP(st_strbuf_done) st_strbuf parts = {0};

        put_parts(doc, &parts);
        if (parts.n > 0)
            fprintf(cli->out, "%s on ", st_strbuf_str(&parts));
        fprintf(cli->out, "%lld × %s for %s, times of %s\n",
                (long long)(count(doc, "tasks") * count(doc, "gpus")), st_view_text(doc, "type"),
                st_view_text(doc, "account"), st_view_text(doc, "zone"));
        st_view_rows(cli, ST_CLI_TABLE, json_object_get(doc, "windows"), quote_columns);
    }
    json_decref(doc);
    return fits ? 0 : st_err_exit(ST_EOVER);
}

int st_cli_book(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    book_flags f = {0};
    char key[ST_KEY_MAX];
    json_t *doc = NULL;
    int n, r = st_cli_read(argc, argv, st_cli_book_options, &f, 0, 0, &n, err);

    if (r == 0)
        r = body_of(&f, argv[0], &body, err);
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    const char *text = st_body_end(&body);

    if (f.dry_run)
        return show_quote(cli, client, &f, text, err);
    st_client_key(key);
    r = st_client_json(
        client, &(st_request){.method = "POST", .path = "/v1/bookings", .body = text, .key = key},
        &doc, &response, err);
    if (r == -ST_EOVER) { /* what could be had instead, on the side of what was refused */
        st_cli aside = {.out = cli->errors, .errors = cli->errors};
        st_err ignored = {0};

        f.format = ST_CLI_TABLE;
        show_quote(&aside, client, &f, text, &ignored);
    }
    if (r < 0)
        return r;
    if (f.format == ST_CLI_JSON)
        st_view_raw(cli, &response);
    else
        fprintf(cli->out, "%s\n", st_view_text(doc, "id"));
    if (f.format != ST_CLI_JSON)
        fprintf(cli->errors,
                f.hold ? "held until %s; confirm it with `stint book confirm %s`\n"
                       : "%.0sbooking %s is confirmed\n",
                st_view_text(doc, "held_until"), st_view_text(doc, "id"));
    json_decref(doc);
    return 0;
}

/* ---- what is there -------------------------------------------------------------------------- */

static int begin(st_cli *cli, int argc, char **argv, const st_cli_row *options, int operands,
                 book_flags *f, st_client **client, st_err *err)
{
    int n, r = st_cli_read(argc, argv, options, f, operands, operands, &n, err);

    return r < 0 ? r : st_client_open(cli->errors, client, err);
}

static int book_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    book_flags f = {0};
    int r = begin(cli, argc, argv, list_options, 0, &f, &client, err);

    if (r < 0)
        return r;
    st_strbuf_addf(&path, "/v1/bookings?all=%s", f.all ? "true" : "false");
    if (f.account) {
        st_strbuf_add(&path, "&account=");
        st_url_add(&path, f.account);
    }
    return st_view_list(cli, client, f.format, st_strbuf_str(&path), "bookings", booking_columns,
                        err);
}

static int book_show(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    book_flags f = {0};
    int r = begin(cli, argc, argv, show_options, 1, &f, &client, err);

    if (r < 0)
        return r;
    st_admin_path(&path, "bookings", argv[1]);
    return st_view_one(cli, client, f.format, st_strbuf_str(&path), booking_facts, err);
}

static int book_confirm(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    book_flags f = {0};
    char key[ST_KEY_MAX];
    int r = begin(cli, argc, argv, show_options, 1, &f, &client, err);

    if (r < 0)
        return r;
    st_admin_path(&path, "bookings", argv[1]);
    st_strbuf_add(&path, "/confirm");
    st_strbuf_addf(&said, "booking %s is confirmed", argv[1]);
    st_client_key(key);
    return st_admin_send(cli, client,
                         &(st_request){.method = "POST", .path = st_strbuf_str(&path), .key = key},
                         f.format, st_strbuf_str(&said), err);
}

static int send_cancel(st_client *client, const char *id, bool series, bool dry_run, json_t **ret,
                       st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};

    st_admin_path(&path, "bookings", id);
    st_strbuf_addf(&path, "?series=%s&dry_run=%s", series ? "true" : "false",
                   dry_run ? "true" : "false");
    return st_client_json(client, &(st_request){.method = "DELETE", .path = st_strbuf_str(&path)},
                          ret, NULL, err);
}

/* Whoever cancels knows the fee, where there is one, and has said yes to it. */
static int agree(const st_cli *cli, st_client *client, const book_flags *f, const char *id,
                 st_err *err)
{
    const char *what = f->series ? "the series of booking" : "booking";
    char line[16] = "";
    json_t *doc = NULL;
    int r = f->yes ? 0 : send_cancel(client, id, f->series, true, &doc, err);

    if (r == 0 && count(doc, "cancel_fee_udollars") > 0) {
        const char *fee = st_view_text(doc, "cancel_fee");

        if (!isatty(STDIN_FILENO)) {
            r = st_fail(err, ST_EINVAL, "cancelling %s %s costs %s; accept that with --yes", what,
                        id, fee);
        } else {
            fprintf(cli->errors, "Cancelling %s %s costs %s. Cancel it? [y/N] ", what, id, fee);
            fflush(cli->errors);
            if (!fgets(line, sizeof line, stdin) || (line[0] != 'y' && line[0] != 'Y'))
                r = st_fail(err, ST_ESTATE, "nothing was cancelled");
        }
    }
    json_decref(doc);
    return r;
}

static int book_cancel(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    book_flags f = {0};
    json_t *doc = NULL;
    int r = begin(cli, argc, argv, cancel_options, 1, &f, &client, err);

    if (r == 0)
        r = agree(cli, client, &f, argv[1], err);
    if (r == 0)
        r = send_cancel(client, argv[1], f.series, false, &doc, err);
    if (r < 0)
        return r;
    fprintf(cli->out, "%s %s is cancelled", f.series ? "the series of booking" : "booking",
            argv[1]);
    if (count(doc, "cancel_fee_udollars") > 0)
        fprintf(cli->out, "; the fee is %s", st_view_text(doc, "cancel_fee"));
    else if (st_view_at(doc, "cancel_fee"))
        fprintf(cli->out, "; there is no fee");
    fprintf(cli->out, "\n");
    json_decref(doc);
    return 0;
}

/* Made to the version that was read: nobody's change is lost. */
static int send_change(st_cli *cli, st_client *client, const book_flags *f, const char *id,
                       st_err *err)
{
    ST_CLEANUP(st_body_done) st_body body = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    char tag[80];
    int r;

    st_when_flags_ends(&f->when, &body);
    st_body_put(&body, "tasks", f->tasks);
    st_admin_path(&path, "bookings", id);
    st_strbuf_addf(&said, "booking %s is changed", id);
    r = st_admin_tag(client, st_strbuf_str(&path), tag, err);
    return r < 0 ? r
                 : st_admin_send(cli, client,
                                 &(st_request){.method = "PATCH",
                                               .path = st_strbuf_str(&path),
                                               .body = st_body_end(&body),
                                               .if_match = tag},
                                 f->format, st_strbuf_str(&said), err);
}

static int book_change(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    book_flags f = {0};
    int r = begin(cli, argc, argv, change_options, 1, &f, &client, err);

    if (r == 0 && !f.when.from && !f.when.to && !f.tasks)
        r = st_fail(err, ST_EINVAL, "%s: say what changes: --from, --to or --tasks", argv[0]);
    return r < 0 ? r : send_change(cli, client, &f, argv[1], err);
}

static int book_extend(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    book_flags f = {0};
    int r = begin(cli, argc, argv, change_options, 1, &f, &client, err);

    if (r == 0 && (!f.when.to || f.when.from || f.tasks))
        r = st_fail(err, ST_EINVAL, "%s: say until when: --to TIME", argv[0]);
    return r < 0 ? r : send_change(cli, client, &f, argv[1], err);
}

const st_cli_verb st_cli_book_verbs[] = {
    {"list", "List bookings", "[OPTION...]", .fn = book_list, .options = list_options,
     .example = "  stint book list --all\n"},
    {"show", "Show one booking", "[OPTION...] ID", .fn = book_show, .options = show_options,
     .example = "  stint book show b6x2m9qkt\n"},
    {"confirm", "Confirm a quote that is held, or its whole series", "[OPTION...] ID",
     .fn = book_confirm, .options = show_options, .example = "  stint book confirm b6x2m9qkt\n"},
    {"change", "Change a booking's window or size", "[OPTION...] ID",
     "The change is made whole or refused; a refused change leaves the booking as it was.\n",
     .fn = book_change, .options = change_options,
     .example = "  stint book change b6x2m9qkt --from \"2026-12-01 10:00\" --zone Europe/Berlin\n"},
    {"extend", "Give a booking a later end, if that is free", "[OPTION...] ID", .fn = book_extend,
     .options = change_options,
     .example = "  stint book extend b6x2m9qkt --to \"2026-12-05 09:00\" --zone Europe/Berlin\n"},
    {"cancel", "Cancel a booking, or what is left of its series", "[OPTION...] ID",
     "Where the price book has a fee for that, the verb says how much and asks first.\n",
     .fn = book_cancel, .options = cancel_options,
     .example = "  stint book cancel b6x2m9qkt --series\n"},
    {0},
};
