/*
 * `stint events`, `audit` and `admin backup`: what happens, who changed what, and a copy of it all.
 */
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "cli/admin_doc.h"
#include "cli/pages.h"
#include "cli/spinner.h"
#include "cli/view.h"

#define LISTEN_MS  10000
#define STEP_MS    200
#define REOPEN_MS  1000
#define REOPEN_MAX 60
#define PAST_MAX   1000000
#define PAST_USUAL 1000
#define PAGE_MAX   1000

typedef struct events_flags {
    st_cli_format format;
    bool follow;
    const char *job, *account, *node, *length, *since, *until;
    st_cli_words kinds;
    int64_t limit; /* 0: not said */
} events_flags;

const st_cli_row st_cli_events_options[] = {
    {"follow", 'f', ST_CLI_FLAG, offsetof(events_flags, follow), NULL,
     "follow until Ctrl-C, even across restarts of stintd", 0, 0},
    {"job", 'j', ST_CLI_STRING, offsetof(events_flags, job), "ID", "events of this job", 0, 0},
    {"kind", 'k', ST_CLI_MANY, offsetof(events_flags, kinds), "KIND",
     "events of this kind: start, end, notify, node, budget, incident and others; repeatable", 0,
     0},
    {"account", 'a', ST_CLI_STRING, offsetof(events_flags, account), "NAME",
     "events of this account and those below it", 0, 0},
    {"node", 'n', ST_CLI_STRING, offsetof(events_flags, node), "NAME", "events about this node", 0,
     0},
    {"since", 0, ST_CLI_STRING, offsetof(events_flags, since), "TIME",
     "past events from then on: 2026-11-15, 2026-11-15T08:30:00Z, or 2h for two hours ago", 0, 0},
    {"until", 0, ST_CLI_STRING, offsetof(events_flags, until), "TIME",
     "past events up to then, in the same forms", 0, 0},
    {"limit", 'l', ST_CLI_I64, offsetof(events_flags, limit), "N",
     "the last N past events (default: 1000, where --since or --until is given)", 1, PAST_MAX},
    {"for", 0, ST_CLI_STRING, offsetof(events_flags, length), "DURATION",
     "time to listen (default: 10s)", 0, 0},
    {"output", 'o', ST_CLI_OUTPUT, offsetof(events_flags, format), "table|json",
     "output format (default: table); json prints one document per line", 0, 0},
    {0},
};

/* "has spent 81.20, more than 80% of its budget of 100.00" */
static void put_budget(const json_t *doc, st_strbuf *line)
{
    const bool cap = st_view_at(doc, "cap") != NULL;
    char percent[ST_FMT_MAX];

    st_strbuf_addf(line, " has spent %s, %s%% of its %s of %s or more", st_view_text(doc, "spent"),
                   st_fmt_milli(percent, st_view_milli(doc, "threshold_percent")),
                   cap ? "cap" : "budget", st_view_text(doc, cap ? "cap" : "budget"));
}

/* "user ada has cost 812.00 today, a usual day 90.00" */
static void put_anomaly(const json_t *doc, st_strbuf *line)
{
    if (st_view_at(doc, "user"))
        st_strbuf_addf(line, ", user %s:", st_view_text(doc, "user"));
    st_strbuf_addf(line, " has cost %s today, a usual day %s", st_view_text(doc, "cost"),
                   st_view_text(doc, "usual"));
}

/* What a cap does, to a job or, when it is reached, to an account. */
static void put_cap(const json_t *doc, st_strbuf *line)
{
    static const struct {
        const char *does, *text;
    } texts[] = {{"stops", ": a spend cap leaves no room, so it stops when its notice is over"},
                 {"waits", ": a spend cap leaves no room, so it does not start"},
                 {"lifted", ": a spend cap leaves room again, so it may run"}};

    for (size_t i = 0; i < ST_ARRAY_LEN(texts); i++)
        if (strcmp(st_view_text(doc, "does"), texts[i].does) == 0)
            st_strbuf_add(line, texts[i].text);
    if (strcmp(st_view_text(doc, "does"), "reached") == 0)
        st_strbuf_addf(line, " has spent %s, its cap is %s (at_cap: %s)",
                       st_view_text(doc, "spent"), st_view_text(doc, "cap"),
                       st_view_text(doc, "at_cap"));
}

static void print_line(const st_cli *cli, const json_t *doc)
{
    static const st_view_column at = {"AT", "at", ST_VIEW_TIME, NULL};
    ST_CLEANUP(st_strbuf_done) st_strbuf line = {0};

    st_view_cell(doc, &at, false, 0, &line);
    st_strbuf_addf(&line, "  %-10s", st_view_text(doc, "kind"));
    if (st_view_at(doc, "job"))
        st_strbuf_addf(&line, "  job %s (%s of %s), %s", st_view_text(doc, "job"),
                       st_view_text(doc, "name"), st_view_text(doc, "account"),
                       st_view_text(doc, "state"));
    else if (st_view_at(doc, "node"))
        st_strbuf_addf(&line, "  node %s%s%s", st_view_text(doc, "node"),
                       st_view_at(doc, "state") ? ", " : "", st_view_text(doc, "state"));
    else if (st_view_at(doc, "account"))
        st_strbuf_addf(&line, "  account %s", st_view_text(doc, "account"));
    if (st_view_at(doc, "by"))
        st_strbuf_addf(&line, " by %s", st_view_text(doc, "by"));
    if (st_view_text(doc, "reason")[0])
        st_strbuf_addf(&line, ": %s", st_view_text(doc, "reason"));
    if (st_view_at(doc, "deadline"))
        st_strbuf_addf(&line, ": %s", st_view_text(doc, "deadline"));
    if (st_view_at(doc, "threshold_percent"))
        put_budget(doc, &line);
    if (strcmp(st_view_text(doc, "kind"), "cap") == 0)
        put_cap(doc, &line);
    if (strcmp(st_view_text(doc, "kind"), "anomaly") == 0)
        put_anomaly(doc, &line);
    fprintf(cli->out, "%s\n", st_strbuf_str(&line));
}

static void print_event(st_cli *cli, st_cli_format format, const st_sse_event *ev)
{
    json_t *doc;

    if (strcmp(ev->kind, "reset") == 0) {
        fprintf(cli->errors, "stint: some events were missed\n");
        return;
    }
    if (format == ST_CLI_JSON) {
        fprintf(cli->out, "%s\n", ev->data);
    } else {
        doc = json_loads(ev->data, 0, NULL);
        print_line(cli, doc);
        json_decref(doc);
    }
    fflush(cli->out);
}

/* ---- the past ------------------------------------------------------------------------------------- */

static void add_filters(st_strbuf *path, const events_flags *f)
{
    st_url_query(path, "job", f->job);
    st_url_query(path, "account", f->account);
    st_url_query(path, "node", f->node);
    for (int i = 0; i < f->kinds.n; i++)
        st_url_query(path, "kind", f->kinds.v[i]);
}

/* Of one event what streams send: without the id, which stands beside it there. */
static void print_past(const st_cli *cli, st_cli_format format, json_t *event)
{
    char *text;

    if (format != ST_CLI_JSON) {
        print_line(cli, event);
        return;
    }
    json_object_del(event, "id");
    text = json_dumps(event, JSON_COMPACT);
    fprintf(cli->out, "%s\n", text);
    free(text);
}

/* Prints what was, the oldest first. *last: the newest event's id, where it has one. */
static int tell_past(const st_cli *cli, st_client *client, const events_flags *f, char **last,
                     st_err *err)
{
    int64_t limit = f->limit > 0 ? f->limit : PAST_USUAL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    const json_t *list;
    json_t *doc;
    int r;

    st_strbuf_addf(&path, "/v1/events/past?limit=%lld", (long long)ST_MIN(limit, PAGE_MAX));
    add_filters(&path, f);
    st_url_query(&path, "since", f->since);
    st_url_query(&path, "until", f->until);
    r = st_pages_get(cli->errors, client, st_strbuf_str(&path), "events", limit, &doc, err);
    if (r < 0)
        return r;
    list = st_view_at(doc, "events");
    if (st_view_at(json_array_get(list, 0), "id"))
        *last = st_xstrdup(st_view_text(json_array_get(list, 0), "id"));
    for (size_t i = json_array_size(list); i > 0; i--)
        print_past(cli, f->format, json_array_get(list, i - 1));
    if (st_view_at(doc, "next") && f->limit == 0)
        fprintf(cli->errors, "stint: there are more; --limit shows them\n");
    json_decref(doc);
    fflush(cli->out);
    return 0;
}

/* ---- as they come ----------------------------------------------------------------------------------- */

/* Prints what comes until then (or a signal); *last is the last event's id. */
static int listen(st_cli *cli, st_client *client, const events_flags *f, const char *path,
                  char **last, int64_t until_ms, st_err *err)
{
    ST_CLEANUP(st_events_freep) st_events *events = st_events_open(client, path, *last);

    while (st_cli_clock_ms() < until_ms) {
        st_sse_event ev;
        int r = st_events_next(events, STEP_MS, &ev, err);

        if (r < 0)
            return r;
        if (r > 0) {
            print_event(cli, f->format, &ev);
            free(*last);
            *last = ST_TAKE(ev.id);
            st_sse_event_done(&ev);
        }
        if (st_signals_wait(0))
            return 0;
    }
    return 0;
}

int st_cli_events(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_freep) char *last = NULL;
    events_flags f = {0};
    int64_t length = LISTEN_MS;
    int r = st_cli_read(argc, argv, st_cli_events_options, &f, 0, 0, NULL, err);

    if (r == 0 && f.follow && f.until)
        r = st_fail(err, ST_EINVAL, "--follow goes on from now: leave --until out");
    if (r == 0 && f.length)
        r = st_parse_duration_ms(f.length, &length, err);
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    if (f.since || f.until || f.limit > 0) {
        r = tell_past(cli, client, &f, &last, err);
        if (r < 0 || !f.follow)
            return r;
    }
    st_strbuf_add(&path, "/v1/events");
    add_filters(&path, &f);
    st_signals_block();
    if (!f.follow)
        return listen(cli, client, &f, st_strbuf_str(&path), &last, st_cli_clock_ms() + length,
                      err);
    for (int lost = 0;; lost++) {
        int64_t began = st_cli_clock_ms();

        r = listen(cli, client, &f, st_strbuf_str(&path), &last, INT64_MAX, err);
        if (st_cli_clock_ms() - began > REOPEN_MS)
            lost = 0;
        if (r != -ST_EDOWN || lost >= REOPEN_MAX ||
            (lost == 0 && !last && st_cli_clock_ms() - began < REOPEN_MS))
            return r;
        if (lost == 0)
            fprintf(cli->errors, "stint: %s (trying again)\n", err->msg);
        if (st_signals_wait(REOPEN_MS))
            return 0;
    }
}

/* ---- audit -------------------------------------------------------------------------------------- */

typedef struct audit_flags {
    st_cli_format format;
    bool verify;
    int64_t limit;
    const char *by, *what, *account, *since, *until;
} audit_flags;

const st_cli_row st_cli_audit_options[] = {
    {"verify", 0, ST_CLI_FLAG, offsetof(audit_flags, verify), NULL,
     "check the chain of hashes; exit status 1 if it is broken", 0, 0},
    {"by", 'b', ST_CLI_STRING, offsetof(audit_flags, by), "USER", "changes by this user", 0, 0},
    {"what", 'w', ST_CLI_STRING, offsetof(audit_flags, what), "VERB",
     "changes of this kind: token.create, or token for all of them", 0, 0},
    {"since", 0, ST_CLI_STRING, offsetof(audit_flags, since), "TIME",
     "start: 2026-11-15, 2026-11-15T08:30:00Z, or 2h for two hours ago", 0, 0},
    {"until", 0, ST_CLI_STRING, offsetof(audit_flags, until), "TIME", "end, in the same forms", 0,
     0},
    {"account", 'a', ST_CLI_STRING, offsetof(audit_flags, account), "NAME",
     "changes in this account and those below it", 0, 0},
    {"limit", 'l', ST_CLI_I64, offsetof(audit_flags, limit), "N", "number of rows (default: 100)",
     1, PAST_MAX},
    {"output", 'o', ST_CLI_LISTING, offsetof(audit_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};

static int verify(st_cli *cli, st_client *client, st_cli_format format, st_err *err)
{
    ST_CLEANUP(st_response_done) st_response response = {0};
    json_t *doc;
    bool intact;
    int r = st_client_json(client, &(st_request){.path = "/v1/audit/verify"}, &doc, &response, err);

    if (r < 0)
        return r;
    intact = json_is_true(st_view_at(doc, "intact"));
    if (format == ST_CLI_JSON)
        st_view_raw(cli, &response);
    else
        fprintf(cli->out, "%lld rows, %s%s%s\nhead %s\n",
                (long long)st_view_milli(doc, "rows") / 1000,
                intact ? "the chain is intact" : "the chain is BROKEN", intact ? "" : ": ",
                st_view_text(doc, "why"), st_view_text(doc, "head"));
    json_decref(doc);
    return intact ? 0 : 1;
}

static void add_detail(const json_t *row, st_strbuf *out)
{
    char *text =
        st_view_at(row, "detail") ? json_dumps(st_view_at(row, "detail"), JSON_COMPACT) : NULL;

    st_strbuf_add(out, text ? text : "");
    free(text);
}

static void print_json(const st_cli *cli, const json_t *doc)
{
    char *text = json_dumps(doc, JSON_COMPACT);

    fprintf(cli->out, "%s\n", text);
    free(text);
}

int st_cli_audit(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"AT", "at", ST_VIEW_TIME, NULL},         {"ACTOR", "actor", ST_VIEW_TEXT, NULL},
        {"SOURCE", "source", ST_VIEW_TEXT, NULL}, {"VERB", "verb", ST_VIEW_TEXT, NULL},
        {"TARGET", "target", ST_VIEW_TEXT, NULL}, {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"DETAIL", NULL, ST_VIEW_FN, add_detail}, {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    audit_flags f = {.limit = 100};
    json_t *doc = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    int r = st_cli_read(argc, argv, st_cli_audit_options, &f, 0, 0, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    if (f.verify)
        return verify(cli, client, f.format, err);
    st_strbuf_addf(&path, "/v1/audit?limit=%lld", (long long)ST_MIN(f.limit, PAGE_MAX));
    st_url_query(&path, "by", f.by);
    st_url_query(&path, "what", f.what);
    st_url_query(&path, "account", f.account);
    st_url_query(&path, "since", f.since);
    st_url_query(&path, "until", f.until);
    if (f.limit <= PAGE_MAX)
        return st_view_list(cli, client, f.format, st_strbuf_str(&path), "rows", columns, err);
    r = st_pages_get(cli->errors, client, st_strbuf_str(&path), "rows", f.limit, &doc, err);
    if (r == 0 && f.format == ST_CLI_JSON)
        print_json(cli, doc);
    else if (r == 0)
        st_view_rows(cli, f.format, st_view_at(doc, "rows"), columns);
    json_decref(doc);
    return r;
}

int st_cli_admin_backup(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_cli_row no_options[] = {{0}};
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    json_t *doc = NULL;
    int none = 0, n = 0, r = st_cli_read(argc, argv, no_options, &none, 0, 1, &n, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    st_body_put(&body, "file", n > 0 ? argv[1] : NULL);
    r = st_client_json(client,
                       &(st_request){.method = "POST",
                                     .path = "/v1/admin/backup",
                                     .body = st_body_empty(&body) ? "{}" : st_body_end(&body)},
                       &doc, NULL, err);
    if (r < 0)
        return r;
    fprintf(cli->out, "the store is copied to %s, on stintd's machine\n",
            st_view_text(doc, "file"));
    json_decref(doc);
    return 0;
}

const st_cli_verb st_cli_admin_verbs[] = {
    {"backup", "Copy the store into stintd's backup directory", "[NAME]",
     "The directory is backup_dir of the configuration (default: backups beside the store).\n"
     "NAME is a file name there (default: the time). An existing file is never replaced, and\n"
     "the service keeps running.\n",
     .fn = st_cli_admin_backup,
     .example = "  stint admin backup\n  stint admin backup before-upgrade.db\n"},
    {"reload", "Have stintd read its configuration again", "",
     "What can change while stintd runs is in force at once: policy, quota, quota_total, remedy,\n"
     "remedy_timeout, anomaly and what belongs to it, and certificates. Every other key that "
     "differs\n"
     "is named. A file with a mistake changes nothing.\n",
     .fn = st_cli_admin_reload, .example = "  stint admin reload\n"},
    {"export",
     "Write accounts, pools, quotas, classes, images, sizes, rules, plans and prices as files",
     "DIR",
     "Files have a stable order, to be kept and reviewed in a repository. Tokens, keys and "
     "secrets\n"
     "are not among them.\n",
     .fn = st_cli_admin_export, .example = "  stint admin export site\n"},
    {"import",
     "Make accounts, pools, quotas, classes, images, sizes, rules, plans and prices what files say",
     "[--diff] DIR",
     "What is not in the files stays. If a change is refused, those before it are put back. Plans\n"
     "and a price book that differ come last of all.\n",
     .fn = st_cli_admin_import, .options = st_cli_import_options,
     .example = "  stint admin import --diff site\n  stint admin import site\n"},
    {"rotate-secrets-key", "Create a new secrets key and re-encrypt everything with it", "",
     "Older backups need the old key: keep its file as long as you keep them.\n",
     .fn = st_cli_admin_rotate, .example = "  stint admin rotate-secrets-key\n"},
    {"join-token", "Create a token with which machines become nodes", "[OPTION...]",
     "stint-agent reads it from a file (--join-token-file).\n", .fn = st_cli_admin_join,
     .options = st_cli_join_options,
     .example = "  stint admin join-token --pool main --uses 16 --expires 1d >join.token\n"},
    {"plan", "Show or set how an account is charged", "[OPTION...] ACCOUNT|--cluster [FILE]",
     "A plan has a discount, chargeback, a budget that warns and a cap that refuses work, stops it "
     "after\n"
     "a notice (at_cap: stop) or only warns (at_cap: warn). It applies\n"
     "to the account and all below it that have no plan of their own.\n",
     .fn = st_cli_admin_plan, .options = st_cli_plan_options,
     .example = "  stint admin plan vision plan.yaml\n"},
    {"credit", "Credit an account, or reverse a credit", "[OPTION...] ACCOUNT [AMOUNT]",
     "A credit above what the account was charged, less the credits it has, needs --yes. If the\n"
     "configuration has credit_alone, a larger credit needs a second owner: stintd posts it when\n"
     "another owner asks for the same account, amount and reason.\n",
     .fn = st_cli_admin_credit, .options = st_cli_credit_options,
     .example = "  stint admin credit vision 12.50 --reason 'outage of 3 November'\n"
                "  stint admin credit vision --reverse 412 --reason 'wrong account'\n"},
    {"issuer", "Show or set who issues invoices", "[OPTION...] [FILE]",
     "The file has name, address and optionally tax_id, email, series, due_days and payment.\n",
     .fn = st_cli_admin_issuer, .options = st_cli_issuer_options,
     .example = "  stint admin issuer issuer.yaml\n"},
    {"billing", "Show or set an account's billing details", "[OPTION...] ACCOUNT [FILE]",
     "The file has name, address and optionally tax_id, email, reference, due_days and taxes. The\n"
     "account then gets invoices, for itself and for accounts below it that have none.\n",
     .fn = st_cli_admin_billing, .options = st_cli_billing_options,
     .example = "  stint admin billing vision vision-billing.yaml\n"},
    {"reconcile", "Compare meter, ledger, store and agents' counters", "[OPTION...]",
     "Prints one sentence per difference. stintd runs it once a day by itself.\n",
     .fn = st_cli_admin_reconcile, .options = st_cli_reconcile_options,
     .example = "  stint admin reconcile\n"},
    {"clock", "Show stintd's time and the machine's clock, or accept that clock", "[accept]",
     "stintd does not follow a clock that jumps: its time continues from the last trusted\n"
     "moment. Check the machine's clock before you accept it. You cannot undo it, and stintd\n"
     "then closes the months that are over.\n",
     .fn = st_cli_admin_clock, .example = "  stint admin clock\n  stint admin clock accept\n"},
    {"restore", "Show what a restore from a backup would adopt, end and run again, or accept it",
     "[OPTION...] [accept]",
     "After `stintd --restore BACKUP`, stintd waits: agents report what they have, and nothing is\n"
     "started, ended or changed. `accept` takes the restore as shown: nodes end what the store\n"
     "does not know, jobs that no node has run again, and stintd decides again. You cannot undo\n"
     "it. Without --yes it asks first.\n",
     .fn = st_cli_admin_restore, .options = st_cli_restore_options,
     .example = "  stint admin restore\n  stint admin restore accept --yes\n"},
    {0},
};
