/*
 * The audit of the ledger: its own sums, and the ledger's against them. See check_money.h.
 */
#include "check/money.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bill/bill.h"
#include "check/money_book.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

typedef struct place {
    char *job;
    int stay, piece;
    int64_t from_ms, to_ms;
    int64_t net; /* charged for it in all, less what caps paid */
} place;

/* What a job was charged and credited in all. A correction may be a micro-dollar off in each of its lines. */
typedef struct job_sum {
    char *job;
    st_i128 charged, credited;
    int64_t slack;
} job_sum;

typedef struct limit {
    int64_t from_ms, cap;
} limit;

typedef struct account {
    char *name;
    int parent;            /* -1: the cluster */
    ST_VEC(place) entries; /* by seq - 1; job NULL: not a piece of a stay */
    ST_VEC(limit) caps;
    st_i128 owed[ST_PAY_COUNT], charged[ST_PAY_COUNT]; /* numerators; amounts */
    int64_t posted, held;                              /* with all below it, in the open period */
    ST_VEC(int64_t) closed;                            /* what months came to, by period */
    int64_t gave, gave_of, gave_seq; /* by its last correction: how much, of which entry */
} account;

typedef struct stay {
    int number, pieces;
    int64_t to_ms;
    bool over;
} stay;

typedef struct hold {
    int account;
    int64_t amount, left;
} hold;

typedef struct type {
    char *gpu;
    st_i128 total, granted, shares;
} type;

struct st_money_audit {
    ST_VEC(account *) accounts; /* 0 is the cluster */
    st_map *ids;
    st_map *above;      /* by name: who has it as a child */
    ST_VEC(stay) stays; /* the newest of each job */
    st_map *stay_of;
    ST_VEC(hold) holds;
    st_map *hold_of; /* by job */
    ST_VEC(job_sum) jobs;
    st_map *job_of;
    int64_t corrected; /* the job whose credit may have to follow a correction, from 1; 0: none */
    ST_VEC(type) types;
    ST_VEC(st_period) periods;
    int64_t fleet_seq;
    st_strbuf text; /* all entries, one behind the other */
    ST_VEC(size_t) ends;
    st_arena *arena;
    st_book_audit *bookings;
};

st_money_audit *st_money_audit_new(void)
{
    st_money_audit *a = st_xcalloc(1, sizeof *a);
    account *cluster = st_xcalloc(1, sizeof *cluster);
    *a = (st_money_audit){.ids = st_map_new(),
                          .above = st_map_new(),
                          .stay_of = st_map_new(),
                          .hold_of = st_map_new(),
                          .job_of = st_map_new(),
                          .arena = st_arena_new(),
                          .bookings = st_book_audit_new()};
    cluster->name = st_xstrdup("");
    cluster->parent = -1;
    st_vec_push(&a->accounts, cluster);
    st_map_put(a->ids, "", 0);
    return a;
}

void st_money_audit_free(st_money_audit *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->accounts.n; i++) {
        account *x = a->accounts.v[i];
        for (size_t k = 0; k < x->entries.n; k++)
            free(x->entries.v[k].job);
        st_vec_free(&x->entries);
        st_vec_free(&x->caps);
        st_vec_free(&x->closed);
        free(x->name);
        free(x);
    }
    for (size_t i = 0; i < a->types.n; i++)
        free(a->types.v[i].gpu);
    st_vec_free(&a->accounts);
    st_vec_free(&a->stays);
    st_vec_free(&a->holds);
    for (size_t i = 0; i < a->jobs.n; i++)
        free(a->jobs.v[i].job);
    st_vec_free(&a->jobs);
    st_vec_free(&a->types);
    st_vec_free(&a->periods);
    st_vec_free(&a->ends);
    st_strbuf_done(&a->text);
    st_map_free(a->ids);
    st_map_free(a->above);
    st_map_free(a->stay_of);
    st_map_free(a->hold_of);
    st_map_free(a->job_of);
    st_arena_free(a->arena);
    st_book_audit_free(a->bookings);
    free(a);
}

void st_money_audit_period(st_money_audit *a, const st_period *period)
{
    st_vec_push(&a->periods, *period);
}

static int find(const st_money_audit *a, const char *name)
{
    int64_t id;
    return st_map_get(a->ids, name, &id) ? (int)id : -1;
}

static type *type_of(st_money_audit *a, const char *gpu)
{
    for (size_t i = 0; i < a->types.n; i++)
        if (strcmp(a->types.v[i].gpu, gpu) == 0)
            return &a->types.v[i];
    st_vec_push(&a->types, (type){.gpu = st_xstrdup(gpu)});
    return &a->types.v[a->types.n - 1];
}

int64_t st_money_audit_piece(const st_money_audit *a, const char *name, const char *job, int number,
                             int piece)
{
    int id = find(a, name);
    if (id < 0)
        return 0;
    const account *x = a->accounts.v[id];
    for (size_t i = x->entries.n; i-- > 0;) {
        const place *p = &x->entries.v[i];
        if (p->job && p->piece == piece && p->stay == number && strcmp(p->job, job) == 0)
            return (int64_t)i + 1;
    }
    return 0;
}

/* ---- stays ---------------------------------------------------------------------------------- */

static int on_usage(st_money_audit *a, const st_entry *e, st_err *err)
{
    int64_t at;
    bool last = e->cut != ST_CUT_GOES_ON;
    if (!st_map_get(a->stay_of, e->job, &at)) {
        at = (int64_t)a->stays.n;
        st_vec_push(&a->stays, (stay){.over = true});
        st_map_put(a->stay_of, e->job, at);
    }
    stay *s = &a->stays.v[at];
    if (s->over && e->piece == 1 && (e->stay == s->number + 1 || e->stay == 1))
        *s = (stay){.number = e->stay, .to_ms = e->from_ms};
    if (s->over || e->stay != s->number || e->piece != s->pieces + 1 || e->from_ms != s->to_ms ||
        e->to_ms < e->from_ms)
        return BAD("books: job %s stay %d piece %d is [%" PRId64 ", %" PRId64
                   ") behind stay %d with %d pieces up to %" PRId64,
                   e->job, e->stay, e->piece, e->from_ms, e->to_ms, s->number, s->pieces, s->to_ms);
    s->pieces++;
    s->to_ms = e->to_ms;
    s->over = last;
    return 0;
}

/* The piece that a correction or a credit is about. */
static place *place_of(const account *x, const st_entry *e)
{
    place *p = e->fixes > 0 && e->fixes < e->seq ? &x->entries.v[e->fixes - 1] : NULL;
    bool its = p && p->job && strcmp(p->job, e->job) == 0 && p->stay == e->stay;
    return its && p->piece == e->piece ? p : NULL;
}

static int64_t net_of(const st_entry *e)
{
    int64_t net = 0;
    for (int i = 0; i < e->nlines; i++)
        net += e->lines[i].amount;
    return net;
}

/* A piece of which all is lost was charged what it was charged. */
static int on_lost(const account *x, const st_entry *e, st_err *err)
{
    const place *p = place_of(x, e);
    if (!p || e->from_ms < p->from_ms || e->to_ms > p->to_ms)
        return BAD("books: entry %" PRId64 " of %s says something is lost that is not of piece %d",
                   e->seq, e->account, e->piece);
    bool all = e->from_ms == p->from_ms && e->to_ms == p->to_ms && e->to_ms > e->from_ms;
    if (e->charged > ST_MAX(p->net, 0) || (all && e->charged != ST_MAX(p->net, 0)))
        return BAD("credits: entry %" PRId64 " of %s says that lost work was charged %" PRId64
                   ", all of the piece was %" PRId64,
                   e->seq, e->account, e->charged, p->net);
    return 0;
}

static int check_credits(const job_sum *s, st_err *err)
{
    if (s->credited <= ST_MAX(s->charged, 0) + s->slack)
        return 0;
    return BAD("credits: job %s was charged %" PRId64 " and is credited %" PRId64, s->job,
               (int64_t)s->charged, (int64_t)s->credited);
}

/* The credit that follows a correction of lost work is the next entry. */
static int check_corrected(st_money_audit *a, const st_entry *next, st_err *err)
{
    const job_sum *s = a->corrected > 0 ? &a->jobs.v[a->corrected - 1] : NULL;
    if (!s || (next && next->kind == ST_ENTRY_LOST && strcmp(next->job, s->job) == 0))
        return 0;
    a->corrected = 0;
    return check_credits(s, err);
}

static int on_job_lines(st_money_audit *a, const st_entry *e, st_err *err)
{
    int64_t at;
    int r = check_corrected(a, e, err);
    if (r < 0 || !e->job || e->nlines == 0)
        return r;
    if (!st_map_get(a->job_of, e->job, &at)) {
        at = (int64_t)a->jobs.n;
        st_map_put(a->job_of, e->job, at);
        st_vec_push(&a->jobs, (job_sum){.job = st_xstrdup(e->job)});
    }
    job_sum *s = &a->jobs.v[at];
    for (int i = 0; i < e->nlines; i++) {
        st_component what = e->lines[i].what;
        bool credit = what == ST_PAY_LOST || what == ST_PAY_FAULT || what == ST_PAY_CAP;
        *(credit ? &s->credited : &s->charged) += credit ? -e->lines[i].amount : e->lines[i].amount;
        s->slack += e->kind == ST_ENTRY_FIX;
    }
    a->corrected = e->kind == ST_ENTRY_FIX ? at + 1 : 0;
    return a->corrected ? 0 : check_credits(s, err);
}

static int on_fix(const account *x, const st_entry *e, st_err *err)
{
    place *p = place_of(x, e);
    if (p) {
        p->net += net_of(e);
        if (e->share < 0 || e->held < 0 || e->cpu < 0 || e->ram < 0)
            p->to_ms = ST_MIN(p->to_ms, e->from_ms);
        return 0;
    }
    return BAD("books: entry %" PRId64 " of %s corrects %" PRId64
               ", which is not piece %d of job %s",
               e->seq, e->account, e->fixes, e->piece, e->job);
}

/* ---- money ---------------------------------------------------------------------------------- */

static int64_t cap_of(const account *x, int64_t at_ms)
{
    const limit *now = NULL;
    for (size_t i = 0; i < x->caps.n; i++)
        if (x->caps.v[i].from_ms <= at_ms && (!now || x->caps.v[i].from_ms > now->from_ms))
            now = &x->caps.v[i];
    return now ? now->cap : ST_UNSET;
}

static int under_caps(const st_money_audit *a, int id, const st_entry *e, int64_t more_held,
                      st_err *err)
{
    for (; id >= 0; id = a->accounts.v[id]->parent) {
        const account *x = a->accounts.v[id];
        int64_t cap = cap_of(x, e->at_ms), now = x->posted + (more_held ? x->held : 0);
        if (cap >= 0 && now > cap)
            return BAD("cap: \"%s\" has a cap of %" PRId64 " and %" PRId64 " after entry %" PRId64
                       " of %s",
                       x->name, cap, now, e->seq, e->account);
    }
    return 0;
}

static void move_held(st_money_audit *a, int id, int64_t by)
{
    for (; id >= 0; id = a->accounts.v[id]->parent)
        a->accounts.v[id]->held += by;
}

static int on_hold(st_money_audit *a, int id, const st_entry *e, st_err *err)
{
    int64_t at;
    if (e->kind == ST_ENTRY_RELEASE) {
        if (!st_map_get(a->hold_of, e->job, &at))
            return BAD("holds: job %s is released and holds nothing", e->job);
        move_held(a, id, -a->holds.v[at].left);
        st_map_del(a->hold_of, e->job);
        return 0;
    }
    st_map_put(a->hold_of, e->job, (int64_t)a->holds.n);
    st_vec_push(&a->holds, (hold){id, e->amount, e->amount});
    move_held(a, id, e->amount);
    return under_caps(a, id, e, e->amount, err);
}

static int on_lines(st_money_audit *a, int id, const st_entry *e, st_err *err)
{
    account *x = a->accounts.v[id];
    int64_t net = 0, at;
    for (int i = 0; i < e->nlines; i++) {
        const st_line *n = &e->lines[i];
        st_i128 d = (st_i128)st_component_per(n->what) * ST_BP;
        x->owed[n->what] += (st_i128)n->quantity * n->rate * n->factor_bp;
        x->charged[n->what] += n->amount;
        net += n->amount;
        if (n->carry < 0 || n->carry >= d || x->owed[n->what] != x->charged[n->what] * d + n->carry)
            return BAD("money: entry %" PRId64 " of %s: %s is not what was used, with %" PRId64
                       " carried",
                       e->seq, e->account, st_component_name(n->what), n->carry);
    }
    for (int up = id; up >= 0; up = a->accounts.v[up]->parent)
        a->accounts.v[up]->posted += net;
    if (e->job && st_map_get(a->hold_of, e->job, &at) && a->holds.v[at].account == id) {
        hold *h = &a->holds.v[at];
        int64_t left = ST_MAX(0, ST_MIN(h->amount, h->left - net));
        move_held(a, id, left - h->left);
        h->left = left;
    }
    /* A credit that is taken back charges nothing together with the correction that it follows. */
    bool pair = e->kind == ST_ENTRY_LOST && e->seq == x->gave_seq + 1 && e->fixes == x->gave_of;
    int64_t paid = pair ? x->gave : 0;
    x->gave = e->kind == ST_ENTRY_FIX ? ST_MAX(-net, 0) : 0;
    x->gave_of = e->fixes;
    x->gave_seq = e->seq;
    return net > paid ? under_caps(a, id, e, 0, err) : 0;
}

/* ---- entries -------------------------------------------------------------------------------- */

static int on_plan(account *x, const st_entry *e, st_err *err)
{
    st_price_plan plan;
    int r = st_price_plan_read("plan", e->doc, strlen(e->doc), e->at_ms, &plan, err);
    if (r == 0)
        /* What ends as a cap that stops comes into force was before it. */
        st_vec_push(&x->caps,
                    ((limit){plan.from_ms + (plan.at_cap == ST_AT_CAP_STOP),
                             plan.at_cap == ST_AT_CAP_WARN ? ST_UNSET : plan.cap_udollars}));
    return r;
}

static void on_account(st_money_audit *a, const st_entry *e)
{
    account *x = st_xcalloc(1, sizeof *x);
    int64_t parent;
    x->name = st_xstrdup(e->account);
    x->parent = st_map_get(a->above, e->account, &parent) ? (int)parent : 0;
    st_map_put(a->ids, x->name, (int64_t)a->accounts.n);
    for (size_t i = 0; i + 1 < a->periods.n; i++)
        st_vec_push(&x->closed, 0);
    st_vec_push(&a->accounts, x);
}

static void on_close(st_money_audit *a)
{
    for (size_t i = 0; i < a->accounts.n; i++) {
        account *x = a->accounts.v[i];
        st_vec_push(&x->closed, x->posted);
        x->posted = 0;
    }
}

static int on_fleet(st_money_audit *a, const st_entry *e, st_err *err)
{
    if (e->seq != ++a->fleet_seq)
        return BAD("books: entry %" PRId64 " of the fleet comes where %" PRId64 " must", e->seq,
                   a->fleet_seq);
    if (e->kind == ST_ENTRY_CHILD)
        st_map_put(a->above, e->child, 0);
    if (e->kind == ST_ENTRY_PLAN) /* everybody's */
        return on_plan(a->accounts.v[0], e, err);
    if (e->kind != ST_ENTRY_FLEET)
        return 0;
    type *t = type_of(a, e->gpu);
    t->total += e->total;
    t->granted += e->granted;
    if (e->granted + e->idle + e->unhealthy + e->overhead == e->total)
        return 0;
    return BAD("books: %s is not all somewhere in entry %" PRId64 " of the fleet", e->gpu, e->seq);
}

static int on_own(st_money_audit *a, int id, const st_entry *e, st_err *err)
{
    account *x = a->accounts.v[id];
    bool piece = e->kind == ST_ENTRY_USAGE;
    int r = 0;
    if (e->seq != (int64_t)x->entries.n + 1)
        return BAD("books: entry %" PRId64 " of \"%s\" comes where %zu must", e->seq, x->name,
                   x->entries.n + 1);
    st_vec_push(&x->entries, (place){piece ? st_xstrdup(e->job) : NULL, e->stay, e->piece,
                                     e->from_ms, e->to_ms, net_of(e)});
    if (piece)
        r = on_usage(a, e, err);
    else if (e->kind == ST_ENTRY_FIX)
        r = on_fix(x, e, err);
    else if (e->kind == ST_ENTRY_LOST)
        r = on_lost(x, e, err);
    else if (e->kind == ST_ENTRY_PLAN)
        r = on_plan(x, e, err);
    else if (e->kind == ST_ENTRY_CHILD)
        st_map_put(a->above, e->child, id);
    else if (e->kind == ST_ENTRY_HOLD || e->kind == ST_ENTRY_RELEASE)
        r = on_hold(a, id, e, err);
    else if (e->kind == ST_ENTRY_CLOSE && id == 0)
        on_close(a);
    if ((piece || e->kind == ST_ENTRY_FIX) && e->gpu)
        type_of(a, e->gpu)->shares += e->share;
    if (r == 0)
        r = on_job_lines(a, e, err);
    return r < 0 ? r : on_lines(a, id, e, err);
}

int st_money_audit_entry(st_money_audit *a, const st_entry *e, st_err *err)
{
    size_t from = a->text.n, len;
    st_entry back;
    st_entry_write(e, &a->text);
    len = a->text.n - from;
    st_vec_push(&a->ends, a->text.n);
    st_arena_reset(a->arena);
    if (st_entry_read(a->text.s + from, len, a->arena, &back, err) < 0)
        return st_fail_prefix(err, "books: what was just written is refused: ");
    if (st_book_audit_entry(a->bookings, &back, err) < 0)
        return -ST_EINTERNAL;
    if (back.kind == ST_ENTRY_ACCOUNT)
        on_account(a, &back);
    if (strcmp(back.account, ST_BOOK_FLEET) == 0)
        return on_fleet(a, &back, err);
    int id = find(a, back.account);
    return id < 0 ? BAD("books: an entry of %s, which is not known", back.account)
                  : on_own(a, id, &back, err);
}

/* ---- after a step ---------------------------------------------------------------------------- */

static int check_bill(const account *x, const st_ledger *l, const char *period, int64_t want,
                      st_err *err)
{
    st_bill bill;
    int64_t sum = 0;
    int r = st_ledger_bill(l, x->name, period, &bill, err);
    if (r < 0)
        return st_fail_prefix(err, "bills: ");
    for (size_t i = 0; i < bill.lines.n; i++)
        sum += bill.lines.v[i].amount;
    if (bill.total != want || sum != want)
        r = BAD("bills: \"%s\" is charged %" PRId64 " in %s, lines are %" PRId64
                ", the books have %" PRId64,
                x->name, bill.total, bill.period.name, sum, want);
    st_bill_done(&bill);
    return r;
}

int st_money_audit_check(const st_money_audit *a, const st_ledger *l, int64_t now, st_err *err)
{
    int r = 0;
    if (st_ledger_sum(l) != 0)
        return BAD("money: the sum over all accounts is not 0");
    for (size_t i = 0; r == 0 && i < a->accounts.n; i++) {
        const account *x = a->accounts.v[i];
        st_budget_state b;
        r = st_ledger_budget(l, x->name, now, &b, err);
        if (r == 0 && (b.spent != x->posted || b.held != x->held))
            r = BAD("holds: \"%s\" has %" PRId64 " spent and %" PRId64
                    " on hold, the books say %" PRId64 " and %" PRId64,
                    x->name, b.spent, b.held, x->posted, x->held);
        if (r == 0)
            r = check_bill(x, l, NULL, x->posted, err);
    }
    return r;
}

int st_money_audit_fleet(const st_money_audit *a, const char *gpu, const st_record *told,
                         st_err *err)
{
    for (size_t i = 0; i < a->types.n; i++) {
        const type *t = &a->types.v[i];
        if (strcmp(t->gpu, gpu) != 0)
            continue;
        if (t->total == told->total && t->granted == told->granted && t->granted == t->shares)
            return 0;
        return BAD("books: of %s the fleet's entries grant %+.0f more than the accounts' have", gpu,
                   (double)(t->granted - t->shares));
    }
    return told->total == 0 ? 0 : BAD("books: nothing is said about %s", gpu);
}

/* ---- again ----------------------------------------------------------------------------------- */

static int play_again(const st_money_audit *a, st_ledger *l, st_err *err)
{
    size_t from = 0, period = 0;
    st_ledger_set_period(l, &a->periods.v[period++]);
    for (size_t i = 0; i < a->ends.n; i++) {
        st_entry e;
        st_arena_reset(a->arena);
        if (st_entry_read(a->text.s + from, a->ends.v[i] - from, a->arena, &e, err) < 0 ||
            st_ledger_apply(l, &e, err) < 0)
            return st_fail_prefix(err, "replay: ");
        if (e.kind == ST_ENTRY_CLOSE && !e.account[0] && period < a->periods.n)
            st_ledger_set_period(l, &a->periods.v[period++]);
        from = a->ends.v[i];
    }
    return 0;
}

static void add_bill(const st_ledger *l, const char *name, const char *period, st_strbuf *out)
{
    const st_export_about about = {.cluster = "c", .currency = "USD", .zone = "UTC"};
    st_bill bill;
    st_err err;
    if (st_ledger_bill(l, name, period, &bill, &err) < 0)
        return;
    st_export_bill_json(&bill, &about, out);
    st_bill_done(&bill);
}

static bool same(const st_strbuf *a, const st_strbuf *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->s, b->s, a->n) == 0);
}

int st_money_audit_replay(const st_money_audit *a, const st_ledger *l, st_err *err)
{
    ST_CLEANUP(st_ledger_freep) st_ledger *again = st_ledger_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf one = {0}, two = {0};
    int r = play_again(a, again, err);
    if (r < 0)
        return r;
    st_ledger_save(l, &one);
    st_ledger_save(again, &two);
    if (!same(&one, &two))
        return BAD("replay: the books played again give another ledger");
    for (size_t p = 0; p < a->periods.n; p++) {
        bool open = p + 1 == a->periods.n;
        st_strbuf_clear(&one);
        st_strbuf_clear(&two);
        add_bill(l, "", open ? NULL : a->periods.v[p].name, &one);
        add_bill(again, "", open ? NULL : a->periods.v[p].name, &two);
        if (one.n == 0 || !same(&one, &two))
            return BAD("replay: the bill of %s is another", a->periods.v[p].name);
        for (size_t i = 0; r == 0 && !open && i < a->accounts.n; i++)
            if (p < a->accounts.v[i]->closed.n)
                r = check_bill(a->accounts.v[i], l, a->periods.v[p].name,
                               a->accounts.v[i]->closed.v[p], err);
    }
    return r;
}
