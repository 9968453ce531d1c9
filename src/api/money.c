/*
 * Plans, budgets, credits, and whether all the numbers agree.
 */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "api/work.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "bill/bill.h"
#include "billing/money.h"
#include "control/control.h"
#include "spec/fields.h"

#define REASON_MAX 400

/* ---- changes ---------------------------------------------------------------------------------- */

typedef struct plan_change {
    st_cmd_plan plan;
    st_call *call;
    int (*put)(st_tx *tx, st_cmd *cmd, st_err *err); /* what st_cmd_plan_init gave */
    char warning[400];
} plan_change;

/* Whether the account has a plan of its own, now or from some later moment on. */
static bool has_plan(st_tx *tx, const char *account)
{
    char name[ST_NAME_MAX + 1];
    const char *book = st_tx_book(tx, account, name);
    const st_price_plan *p = st_ledger_plan(st_tx_ledger(tx), book, st_tx_now(tx));

    return st_tx_version(tx, "plan", account) > 0 || (p && strcmp(p->account, book) == 0);
}

/* A cap that guarantees alone will exceed this month leaves no room for anything else. */
static void warn_of_cap(st_tx *tx, plan_change *c)
{
    const st_price_plan *p = &c->plan.plan;
    const st_period *period = st_ledger_period(st_tx_ledger(tx));
    char cap[ST_MONEY_MAX], guaranteed[ST_MONEY_MAX];
    st_budget_state s;
    st_err err = {0};

    if (!p->account[0] || p->cap_udollars == ST_UNSET || p->at_cap == ST_AT_CAP_WARN ||
        p->from_ms >= period->to_ms || st_tx_budget(tx, p->account, &s, &err) < 0 ||
        s.reserved + s.booked == 0 || s.spent + s.reserved + s.booked <= p->cap_udollars)
        return;
    snprintf(c->warning, sizeof c->warning,
             "%s has spent, and its guarantees%s will cost, $%s in %s. The cap of $%s "
             "is less: no job "
             "fits under it, and what is beyond it is not charged",
             p->account, s.booked > 0 ? " and bookings" : "",
             st_money(guaranteed, s.spent + s.reserved + s.booked), period->name,
             st_money(cap, p->cap_udollars));
}

static int plan_run(st_tx *tx, st_cmd *cmd, st_err *err)
{
    plan_change *c = (plan_change *)cmd;
    const char *account = c->plan.plan.account;
    char version[24];
    int r;

    snprintf(version, sizeof version, "%lld", (long long)st_tx_version(tx, "plan", account));
    r = st_api_condition(c->call, version, has_plan(tx, account), "plan of account",
                         account[0] ? account : "(cluster)", err);
    if (r == 0)
        r = c->put(tx, cmd, err);
    if (r == 0)
        warn_of_cap(tx, c);
    return r;
}

static void plan_done(st_cmd *cmd, const st_err *err)
{
    plan_change *c = (plan_change *)cmd;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    if (err) {
        st_call_fail(c->call, err);
    } else {
        st_api_set_version(c->call, c->plan.version);
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "account", c->plan.plan.account);
        st_out_time(&out, "from", c->plan.plan.from_ms);
        st_out_int(&out, "entry", c->plan.seq);
        if (c->warning[0])
            st_out_text(&out, "warning", c->warning);
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(c->call, 200, NULL, &out);
    }
    free(c);
}

/* Of the account in the address; of everybody, the cluster's own, where there is none. */
static const char *plan_account(const st_call *call)
{
    return strchr(st_call_route(call)->pattern, '{') ? st_call_param(call, "name") : "";
}

static int read_plan(st_call *call, const char *account, int64_t now, st_cmd_plan *cmd, st_err *err)
{
    size_t len;
    const char *body = st_call_body(call, &len);
    int r = st_price_plan_read("body", body, len, now, &cmd->plan, err);

    if (r == 0 && cmd->plan.account[0] && strcmp(cmd->plan.account, account) != 0)
        r = st_fail(err, ST_EINVAL, "the plan is of account %s, the address says %s",
                    cmd->plan.account, account[0] ? account : "the cluster");
    if (r < 0)
        return r;
    cmd->now = cmd->plan.from_ms == now; /* or a moment later, when it is its turn */
    snprintf(cmd->plan.account, sizeof cmd->plan.account, "%s", account);
    return 0;
}

void st_api_plan_put(st_call *call, void *ctx)
{
    st_api *api = ctx;
    const char *account = plan_account(call);
    plan_change *c;
    st_err err = {0};

    if (!st_api_sees(api, call, account)) {
        st_api_no_such(call, "account", account);
        return;
    }
    c = st_xcalloc(1, sizeof *c);
    c->call = call;
    c->plan.who = *st_api_who(call);
    if (read_plan(call, account, api->options.clock(api->options.ctx), &c->plan, &err) < 0) {
        st_call_fail(call, &err);
        free(c);
        return;
    }
    st_cmd_plan_init(&c->plan);
    c->put = c->plan.cmd.run;
    c->plan.cmd.run = plan_run;
    c->plan.cmd.done = plan_done;
    st_call_defer(call);
    st_api_post(api, call, &c->plan.cmd);
}

typedef struct credit_change {
    st_cmd_credit credit;
    st_call *call;
    st_doc *doc;
} credit_change;

static void credit_free(credit_change *c)
{
    st_doc_free(c->doc);
    free(c);
}

static void credit_done(st_cmd *cmd, const st_err *err)
{
    credit_change *c = (credit_change *)cmd;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    if (err) {
        st_call_fail(c->call, err);
    } else {
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "account", c->credit.account);
        st_out_money(&out, "amount", c->credit.amount_udollars);
        if (c->credit.pending)
            st_out_raw(&out, "pending", "true");
        else
            st_out_int(&out, "entry", c->credit.seq);
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(c->call, c->credit.pending ? 200 : 201, NULL, &out);
    }
    credit_free(c);
}

typedef struct credit_fields {
    const char *amount, *reason;
    int64_t fixes, reverse;
    bool confirm;
} credit_fields;

static const st_field credit_rows[] = {
    {.key = "amount", .kind = ST_F_TEXT, .offset = offsetof(credit_fields, amount), .number = true},
    {.key = "reason",
     .kind = ST_F_LINE,
     .offset = offsetof(credit_fields, reason),
     .required = true},
    {.key = "entry",
     .kind = ST_F_I64,
     .offset = offsetof(credit_fields, fixes),
     .lo = 1,
     .hi = INT64_MAX},
    {.key = "reverse",
     .kind = ST_F_I64,
     .offset = offsetof(credit_fields, reverse),
     .lo = 1,
     .hi = INT64_MAX},
    {.key = "confirm", .kind = ST_F_BOOL, .offset = offsetof(credit_fields, confirm)},
    {0},
};

/* Either an amount, for an entry or not, or the credit that is taken back. */
static int check_credit(const credit_fields *f, st_cmd_credit *ret, st_err *err)
{
    int r = 0;

    if (!f->amount == (f->reverse == 0))
        return st_fail(err, ST_EINVAL, "give an amount, or the credit to reverse");
    if (f->reverse > 0 && f->fixes > 0)
        return st_fail(err, ST_EINVAL, "entry and reverse do not go together");
    if (f->amount)
        r = st_money_parse(f->amount, &ret->amount_udollars, err);
    if (r == 0 && f->amount && ret->amount_udollars <= 0)
        r = st_fail(err, ST_ERANGE,
                    "a credit is more than 0; what was used is charged by prices, and a credit "
                    "is taken back with reverse");
    if (r == 0 && (f->reason[0] == '\0' || strlen(f->reason) > REASON_MAX))
        r = st_fail(err, ST_ERANGE, "a credit needs a reason of at most %d bytes", REASON_MAX);
    ret->reason = f->reason;
    ret->fixes = f->fixes;
    ret->reverse = f->reverse;
    ret->confirmed = f->confirm;
    return r;
}

static int read_credit(credit_change *c, st_err *err)
{
    credit_fields f = {0};
    int r = st_call_doc(c->call, &c->doc, err);

    if (r == 0)
        r = st_doc_expect(c->doc, st_doc_root(c->doc), ST_DOC_MAP, err);
    if (r == 0)
        r = st_fields_read(c->doc, st_doc_root(c->doc), credit_rows, &f, err);
    return r < 0 ? r : check_credit(&f, &c->credit, err);
}

void st_api_credit_make(st_call *call, void *ctx)
{
    st_api *api = ctx;
    credit_change *c = st_xcalloc(1, sizeof *c);
    st_err err = {0};

    c->call = call;
    c->credit.who = *st_api_who(call);
    c->credit.account = st_call_param(call, "name");
    if (read_credit(c, &err) < 0) {
        st_call_fail(call, &err);
        credit_free(c);
        return;
    }
    st_cmd_credit_init(&c->credit);
    c->credit.cmd.done = credit_done;
    st_call_defer(call);
    st_api_post(api, call, &c->credit.cmd);
}

/* Credits that wait for a second owner. */
typedef struct pending_list {
    st_strbuf *out;
    int64_t now;
} pending_list;

static int pending_row(void *ctx, const st_document_row *row, st_err *err)
{
    const pending_list *l = ctx;
    st_strbuf *out = l->out;
    json_t *doc = json_loads(row->doc, 0, NULL);
    json_int_t entry = json_integer_value(json_object_get(doc, "entry")),
               amount = json_integer_value(json_object_get(doc, "amount_udollars"));

    (void)err;
    if (row->at_ms + ST_CREDIT_PENDING_MS < l->now) {
        json_decref(doc);
        return 0;
    }
    st_strbuf_add(out, out->s[out->n - 1] == '[' ? "{" : ",{");
    st_out_text(out, "account", json_string_value(json_object_get(doc, "account")));
    st_out_money(out, "amount", amount);
    st_out_text(out, "reason", json_string_value(json_object_get(doc, "reason")));
    st_out_text(out, "by", json_string_value(json_object_get(doc, "by")));
    st_out_time(out, "at", row->at_ms);
    if (entry > 0)
        st_out_int(out, amount < 0 ? "reverse" : "entry", entry);
    st_strbuf_addc(out, '}');
    json_decref(doc);
    return 0;
}

void st_api_credits_pending(st_call *call, void *ctx)
{
    st_api *api = ctx;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_err err = {0};
    st_store *reader = st_api_reader(api, &err);
    int r = reader ? 0 : -err.code;

    st_api_stamp_now(api, call);
    st_strbuf_add(&out, "{\"credits\":[");
    if (r == 0)
        r = st_store_documents(
            reader, "credit", pending_row,
            &(pending_list){.out = &out, .now = api->options.clock(api->options.ctx)}, &err);
    st_api_reader_back(api, reader);
    st_strbuf_add(&out, "]}");
    if (r < 0)
        st_call_fail(call, &err);
    else
        st_call_reply_buf(call, 200, NULL, &out);
}

/* ---- what is agreed, and what is left of it ------------------------------------------------------ */

static void out_span(st_strbuf *out, const char *key, int64_t ms)
{
    char buf[ST_FMT_MAX];

    if (ms == ST_UNSET)
        st_out_raw(out, key, "null");
    else
        st_out_text(out, key, st_fmt_duration(buf, ms));
}

/* A plan from above the caller says what it means for the caller, and neither whose it is nor what is agreed there. */
static int fill_plan(st_question *q, st_core *core, st_err *err)
{
    const st_tree *tree = st_core_tree(core);
    const st_price_plan *p;
    char buf[ST_FMT_MAX], name[ST_NAME_MAX + 1];
    const char *book;
    int32_t id, of;
    bool seen;

    if (q->name[0] && st_question_account(q, core, q->name, &id, err) < 0)
        return -err->code;
    book = st_tx_book(q->tx, q->name, name);
    p = st_ledger_plan(st_tx_ledger(q->tx), book, st_tx_now(q->tx));
    of = p ? st_tx_book_account(q->tx, p->account) : -1;
    seen = p && (p->account[0] ? of >= 0 && st_tree_within(tree, of, st_question_root(q, core))
                               : st_question_owner(q));
    snprintf(q->version, sizeof q->version, "%lld",
             (long long)st_tx_version(q->tx, "plan", q->name));
    st_strbuf_addc(&q->out, '{');
    st_out_text(&q->out, "account", q->name);
    st_out_raw(&q->out, "inherited", p && strcmp(p->account, book) == 0 ? "false" : "true");
    if (seen)
        st_out_text(&q->out, "of", of > ST_ROOT ? st_tree_account(tree, of)->name : "");
    else
        st_out_raw(&q->out, "of", "null");
    st_out_raw(&q->out, "chargeback", p && p->chargeback ? "true" : "false");
    st_out_raw(&q->out, "discount_percent", st_fmt_milli(buf, p ? p->discount_bp * 10 : 0));
    st_out_raw(&q->out, "burst_gpus",
               seen && p->burst_m != ST_UNSET ? st_fmt_milli(buf, p->burst_m) : "null");
    st_out_money_if(&q->out, "cap", seen && p->cap_udollars != ST_UNSET,
                    seen ? p->cap_udollars : 0);
    st_out_money_if(&q->out, "budget", seen && p->budget_udollars != ST_UNSET,
                    seen ? p->budget_udollars : 0);
    st_out_raw(&q->out, "warn_percent", "[");
    for (int i = 0; seen && i < p->nwarn; i++)
        st_strbuf_addf(&q->out, "%s%s", i > 0 ? "," : "", st_fmt_milli(buf, p->warn_bp[i] * 10));
    st_strbuf_addc(&q->out, ']');
    /* Of a plan with a cap; whose cap is hidden, so is this. */
    seen = seen && p->cap_udollars != ST_UNSET;
    if (seen)
        st_out_text(&q->out, "at_cap", st_at_cap_name(p->at_cap));
    else
        st_out_raw(&q->out, "at_cap", "null");
    out_span(&q->out, "grace", seen ? p->grace_ms : ST_UNSET);
    out_span(&q->out, "hold", seen ? p->hold_ms : ST_UNSET);
    st_strbuf_addc(&q->out, '}');
    return 0;
}

void st_api_plan_get(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_plan, plan_account(call), 0);
}

static int fill_budget(st_question *q, st_core *core, st_err *err)
{
    st_budget_state s = {0};
    int32_t id;
    int r = st_question_account(q, core, q->name, &id, err);

    if (r == 0)
        r = st_tx_budget(q->tx, q->name, &s, err);
    if (r < 0)
        return r;
    st_strbuf_addc(&q->out, '{');
    st_out_text(&q->out, "account", q->name);
    st_out_text(&q->out, "period", st_ledger_period(st_tx_ledger(q->tx))->name);
    st_out_money_if(&q->out, "cap", s.cap != ST_UNSET, s.cap);
    st_out_money_if(&q->out, "budget", s.budget != ST_UNSET, s.budget);
    /* Credits beyond what was charged are no spending: they are told as what they are. */
    st_out_money(&q->out, "spent", ST_MAX(s.spent, 0));
    st_out_money(&q->out, "credit", ST_MAX(-s.spent, 0));
    st_out_money(&q->out, "running", s.running);
    st_out_money(&q->out, "held", s.held);
    st_out_money(&q->out, "reserved", s.reserved);
    st_out_money_if(&q->out, "left", s.cap != ST_UNSET, s.left);
    st_out_money(&q->out, "booked", s.booked);
    st_out_money(&q->out, "committed", ST_MAX(s.spent, 0) + s.held + s.reserved + s.booked);
    st_out_int(&q->out, "warnings", s.warned);
    st_strbuf_addc(&q->out, '}');
    return 0;
}

void st_api_budget_get(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_budget, st_call_param(call, "name"), 0);
}

void st_api_billing(st_call *call, void *ctx)
{
    const st_api *api = ctx;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    char hex[65];

    sodium_bin2hex(hex, sizeof hex, st_control_key(api->control), 32);
    st_strbuf_addc(&out, '{');
    st_out_text(&out, "cluster", st_control_cluster(api->control));
    st_out_text(&out, "key", hex);
    st_out_text(&out, "currency", st_control_currency(api->control));
    st_out_text(&out, "zone", st_control_zone(api->control));
    st_strbuf_addc(&out, '}');
    st_call_reply_buf(call, 200, NULL, &out);
}

/* ---- do all the numbers agree? -------------------------------------------------------------------- */

typedef struct reconcile_call {
    st_cmd cmd;
    st_api *api;
    st_call *call;
    st_reconcile *rec;
    st_strbuf out;
    int n;
} reconcile_call;

static void reconcile_free(reconcile_call *c)
{
    st_reconcile_free(c->rec);
    st_strbuf_done(&c->out);
    free(c);
}

static void finding(void *ctx, const char *sentence)
{
    reconcile_call *c = ctx;

    st_strbuf_add(&c->out, c->n++ > 0 ? "," : "");
    st_quote_json(&c->out, sentence);
}

static void reconcile_work(void *arg)
{
    reconcile_call *c = arg;
    st_err err = {0};
    st_store *reader = st_api_reader(c->api, &err);
    int64_t n = 0;
    int r = reader ? 0 : -err.code;

    st_strbuf_add(&c->out, "{\"findings\":[");
    if (r == 0)
        r = st_reconcile_run(c->api->control, c->rec, reader, ST_RECONCILE_ENTRIES, finding, c, &n,
                             &err);
    st_api_reader_back(c->api, reader);
    if (r < 0) {
        st_call_fail(c->call, &err);
    } else {
        st_strbuf_addf(&c->out, "],\"agree\":%s}", n == 0 ? "true" : "false");
        st_call_reply_buf(c->call, 200, NULL, &c->out);
    }
    reconcile_free(c);
}

static void reconcile_done(st_cmd *cmd, const st_err *err)
{
    reconcile_call *c = (reconcile_call *)cmd;
    st_err why;

    if (!err)
        c->rec = st_reconcile_new(c->api->control);
    if (c->rec && st_work_run(c->api->work, reconcile_work, c))
        return;
    if (!err && !c->rec)
        st_fail(&why, ST_EDOWN, "the store is down: nothing can be compared; see /readyz");
    else if (!err)
        st_fail(&why, ST_EDOWN, "many bills are being written just now; try again in a moment");
    st_call_fail(c->call, err ? err : &why);
    reconcile_free(c);
}

/* It begins in `done`, when all is committed. */
static int reconcile_run(st_tx *tx, st_cmd *cmd, st_err *err)
{
    (void)tx;
    (void)cmd;
    (void)err;
    return 0;
}

void st_api_reconcile(st_call *call, void *ctx)
{
    reconcile_call *c = st_xcalloc(1, sizeof *c);

    c->api = ctx;
    c->call = call;
    c->cmd.run = reconcile_run;
    c->cmd.done = reconcile_done;
    st_call_defer(call);
    st_api_post(c->api, c->call, &c->cmd);
}
