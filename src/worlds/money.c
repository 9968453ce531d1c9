/*
 * A ledger beside the meter: what the meter hands out is priced and booked, with random prices, plans,
 * discounts and caps that are announced and come into force, floors, holds for jobs under a cap, pieces, credits by
 * people, months that end at any moment, and restarts from a save. The audit (check_money.h) reads along.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "check/money.h"
#include "worlds/book_money.h"
#include "worlds/run.h"

#define BAD(...)    st_fail(err, ST_EINTERNAL, __VA_ARGS__)
#define MINUTE      INT64_C(60000)
#define BOOKS_MAX   8
#define PLANS_MAX   24
#define SAVE_CHANCE 40
#define LOOK_CHANCE 8 /* one moment in so many, all bills are looked at */
#define NAME        24

typedef struct floor_said {
    int32_t account, type;
    int64_t gpu_m;
} floor_said;

typedef ST_VEC(floor_said) floor_list;

struct st_fuzz_money {
    st_ledger *l;
    st_money_audit *audit;
    st_rng rng;
    st_arena *arena;
    st_idmap *account_of;        /* by job that holds something */
    size_t accounts;             /* of the tree, that are in the books */
    floor_list floors;           /* as the books say */
    ST_VEC(st_piece_sum) pieces; /* by "job stay piece" */
    st_map *piece_of;
    int months, books, plans;
    int64_t now;
    st_rng book_rng;  /* what is about bookings has a stream of its own */
    st_idmap *booked; /* bookings that were looked at when they were confirmed */
};

static int post(st_fuzz_money *f, st_entry *e, st_err *err)
{
    bool priced = e->kind == ST_ENTRY_USAGE || e->kind == ST_ENTRY_RESERVE ||
                  e->kind == ST_ENTRY_FIX || e->kind == ST_ENTRY_LOST ||
                  e->kind == ST_ENTRY_PIECES || e->kind == ST_ENTRY_CREDIT ||
                  e->kind == ST_ENTRY_WINDOW;
    int r = 0;
    e->at_ms = f->now;
    if (priced)
        r = st_ledger_price(f->l, e, err);
    else
        e->seq = ST_MAX(st_ledger_seq(f->l, e->account), 0) + 1;
    if (r == 0)
        r = st_ledger_apply(f->l, e, err);
    return r < 0 ? r : st_money_audit_entry(f->audit, e, err);
}

/* Of what has happened: a refusal is a fault. */
static int post_fact(st_fuzz_money *f, st_entry *e, st_err *err)
{
    return post(f, e, err) < 0
               ? st_fail_prefix(err, "ledger: a %s entry: ", st_entry_kind_name(e->kind))
               : 0;
}

/* ---- bookings -------------------------------------------------------------------------------- */

static int post_booked(void *ctx, st_entry *e, st_err *err)
{
    return post_fact(ctx, e, err);
}

static bool is_fresh(void *ctx, uint64_t id)
{
    st_fuzz_money *f = ctx;
    int64_t at;
    if (st_idmap_get(f->booked, id, &at))
        return false;
    st_idmap_put(f->booked, id, 1);
    return true;
}

static st_fuzz_book_ctx books_of(st_fuzz_money *f, const st_core *core)
{
    return (st_fuzz_book_ctx){
        .core = core, .l = f->l, .now = f->now, .post = post_booked, .fresh = is_fresh, .ctx = f};
}

/* ---- months, prices, plans ------------------------------------------------------------------ */

static void open_month(st_fuzz_money *f)
{
    int64_t ms = st_rng_chance(&f->rng, 1, 3) ? st_rng_range(&f->rng, 1, 40 * MINUTE)
                                              : st_rng_range(&f->rng, 1, 4000) * MINUTE;
    st_period p = {.from_ms = f->now, .to_ms = f->now + ms};
    int month = f->months++;
    snprintf(p.name, sizeof p.name, "%04u-%02u", 2000 + (unsigned)(month / 12) % 8000,
             1 + (unsigned)month % 12);
    st_ledger_set_period(f->l, &p);
    st_money_audit_period(f->audit, &p);
}

static int close_book(st_fuzz_money *f, const char *account, const st_period *p, st_err *err)
{
    st_entry e = {.kind = ST_ENTRY_CLOSE,
                  .account = account,
                  .period = p->name,
                  .zone = "UTC",
                  .from_ms = p->from_ms,
                  .to_ms = p->to_ms};
    return post_fact(f, &e, err);
}

/* Whether the book of that name is this account's, of those whose books are open: a name may have been
 * used again, in this very step as well. */
static bool has_book(const st_fuzz_money *f, const st_tree *tree, size_t i)
{
    for (size_t k = i + 1; k < f->accounts; k++)
        if (strcmp(tree->accounts.v[k]->name, tree->accounts.v[i]->name) == 0)
            return false;
    return true;
}

static int close_month(st_fuzz_money *f, const st_tree *tree, st_err *err)
{
    const st_period p = *st_ledger_period(f->l);
    int r = close_book(f, ST_BOOK_FLEET, &p, err);
    for (size_t i = 1; r == 0 && i < f->accounts; i++)
        if (has_book(f, tree, i))
            r = close_book(f, tree->accounts.v[i]->name, &p, err);
    if (r == 0)
        r = close_book(f, "", &p, err);
    if (r == 0)
        open_month(f);
    return r;
}

static int64_t some(st_fuzz_money *f, int64_t most)
{
    return st_rng_chance(&f->rng, 1, 5) ? 0 : st_rng_range(&f->rng, 0, most);
}

static int new_prices(st_fuzz_money *f, const st_fleet *fleet, int64_t from_ms, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    ST_CLEANUP(st_freep) st_price_book *b = st_xcalloc(1, sizeof *b);
    const st_price_book *had = st_ledger_book(f->l, from_ms);
    if (f->books >= BOOKS_MAX || (had && had->from_ms == from_ms))
        return 0;
    snprintf(b->name, sizeof b->name, "book-%d", ++f->books);
    b->from_ms = from_ms;
    b->nrates = fleet->types.n > 0 && st_rng_chance(&f->rng, 1, 2) ? 2 : 1;
    if (b->nrates == 2)
        snprintf(b->rates[0].gpu, sizeof b->rates[0].gpu, "%s",
                 fleet->types.v[st_rng_below(&f->rng, fleet->types.n)].name);
    memcpy(b->rates[b->nrates - 1].gpu, "*", 2);
    for (int i = 0; i < b->nrates; i++) {
        for (int c = 0; c <= ST_PAY_BOOKED; c++)
            b->rates[i].rate[c] = some(f, 7000000);
        for (int k = 0; k < ST_LEVEL_COUNT; k++)
            b->rates[i].level_bp[k] = st_rng_range(&f->rng, 1, 20000);
    }
    b->cpu = some(f, 50000);
    b->ram = some(f, 9000);
    b->energy = some(f, 300000);
    for (int k = 1; k < ST_TOPO_COUNT; k++)
        b->topo_bp[k] = some(f, 3000);
    b->idle_bp = some(f, 5000);
    b->lost_bp = some(f, ST_BP);
    b->fault_bp = some(f, ST_BP);
    if (st_rng_chance(&f->rng, 1, 3))
        b->units[b->nunits++] = (st_unit_price){"render", ST_PAY_FRAMES, some(f, 90000)};
    st_fuzz_book_prices(&f->book_rng, b);
    st_price_book_write(b, &doc);
    st_entry e = {.kind = ST_ENTRY_PRICES, .account = "", .doc = doc.s};
    return post_fact(f, &e, err);
}

/* What follows from plans, after a plan or an account. */
static int post_terms(st_fuzz_money *f, st_err *err)
{
    st_entry e;
    int r = 0;
    while (r == 0 && st_ledger_due(f->l, &e))
        r = post_fact(f, &e, err);
    return r;
}

static int new_plan(st_fuzz_money *f, const st_tree *tree, st_err *err)
{
    static const int64_t caps[] = {200000, 90000000, 9000000000, 9000000000000};
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    size_t i = st_rng_below(&f->rng, f->accounts);
    st_price_plan p = {.from_ms = f->now + st_rng_range(&f->rng, 1, f->plans ? 300 * MINUTE : 1),
                       .grace_ms = ST_CAP_GRACE_MS,
                       .hold_ms = ST_CAP_HOLD_MS};
    if (f->plans++ >= PLANS_MAX)
        return 0;
    snprintf(p.account, sizeof p.account, "%s", i > 0 ? tree->accounts.v[i]->name : "");
    const st_price_plan *had = st_ledger_plan(f->l, p.account, p.from_ms);
    if (had && had->from_ms == p.from_ms)
        return 0;
    p.chargeback = st_rng_chance(&f->rng, 1, 2);
    p.discount_bp = some(f, ST_BP);
    p.burst_m = st_rng_chance(&f->rng, 1, 2) ? ST_UNSET : some(f, 8000);
    if (st_rng_chance(&f->rng, 1, 3))
        p.cap_udollars = ST_UNSET;
    else
        p.cap_udollars = some(f, caps[st_rng_below(&f->rng, ST_ARRAY_LEN(caps))]);
    p.budget_udollars = ST_UNSET;
    p.at_cap = (st_at_cap)st_rng_below(&f->rng, ST_AT_CAP_COUNT);
    st_price_plan_write(&p, &doc);
    st_entry e = {
        .kind = ST_ENTRY_PLAN, .account = p.account[0] ? p.account : ST_BOOK_FLEET, .doc = doc.s};
    int r = post_fact(f, &e, err);
    return r < 0 ? r : post_terms(f, err);
}

static int give_credit(st_fuzz_money *f, const st_tree *tree, st_err *err)
{
    st_entry e = {.kind = ST_ENTRY_CREDIT,
                  .account = tree->accounts.v[1 + st_rng_below(&f->rng, f->accounts - 1)]->name,
                  .amount = st_rng_range(&f->rng, 1, 3000000),
                  .reason = "a slow day",
                  .by = "ann"};
    return post_fact(f, &e, err);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* One in seven pays by piece, where there is a price for it. */
static const char *workload_of(uint64_t job)
{
    return job % 7 == 0 ? "render" : NULL;
}

static int hold_for(st_fuzz_money *f, const st_core *core, uint64_t id, st_err *err)
{
    const st_job *job = st_core_job(core, id);
    const st_fleet *fleet = st_core_fleet(core);
    const char *gpus[ST_TYPES_MAX];
    char name[NAME];
    st_err why;
    if (!job || job->account <= ST_ROOT)
        return 0;
    for (size_t i = 0; i < fleet->types.n; i++)
        gpus[i] = fleet->types.v[i].name;
    st_worst w = {.account = st_core_tree(core)->accounts.v[job->account]->name,
                  .gpus = gpus,
                  .ngpus = (int)fleet->types.n,
                  .level = job->shape.level,
                  .topo = job->topo_required ? job->topo : ST_TOPO_NONE,
                  .gpu_m = st_job_gpu_m(job),
                  .cpu_m = job->shape.cpu_m * job->tasks,
                  .ram_mib = job->shape.ram_mib * job->tasks,
                  .limit_ms = job->limit_ms,
                  .at_ms = f->now};
    st_entry e = {.kind = ST_ENTRY_HOLD, .account = w.account, .job = name};
    snprintf(name, sizeof name, "%" PRIu64, id);
    if (st_ledger_held(f->l, w.account, name) != ST_UNSET ||
        st_ledger_admit(f->l, &w, &e.amount, &why) < 0 || e.amount == ST_UNSET)
        return 0; /* without one, it may have what nobody holds */
    st_idmap_put(f->account_of, id, job->account);
    return post_fact(f, &e, err);
}

static int end_of(st_fuzz_money *f, const st_tree *tree, const st_effect *fx, st_err *err)
{
    char name[NAME];
    int64_t id;
    snprintf(name, sizeof name, "%" PRIu64, fx->job);
    if (!st_idmap_get(f->account_of, fx->job, &id))
        return 0;
    st_entry pieces = {.kind = ST_ENTRY_PIECES,
                       .account = tree->accounts.v[id]->name,
                       .job = name,
                       .workload = "render",
                       .pieces = st_rng_range(&f->rng, 1, 500)};
    st_entry e = {.kind = ST_ENTRY_RELEASE, .account = pieces.account, .job = name};
    int r = workload_of(fx->job) ? post_fact(f, &pieces, err) : 0;
    if (r == 0)
        r = post_fact(f, &e, err);
    if (r == 0 && st_ledger_held(f->l, e.account, name) != ST_UNSET)
        r = BAD("holds: job %s is over and still holds something", name);
    st_idmap_del(f->account_of, fx->job);
    return r;
}

/* ---- what the meter tells --------------------------------------------------------------------- */

static st_piece_sum *piece_of(st_fuzz_money *f, const st_entry *e)
{
    char key[3 * NAME];
    int64_t at;
    snprintf(key, sizeof key, "%s %d %d", e->job, e->stay, e->piece);
    if (!st_map_get(f->piece_of, key, &at)) {
        at = (int64_t)f->pieces.n;
        st_map_put(f->piece_of, key, at);
        st_vec_push(&f->pieces, (st_piece_sum){0});
    }
    return &f->pieces.v[at];
}

/* Of a stay: an interval, a correction and the credit that may follow from it, lost work. */
static int post_piece(st_fuzz_money *f, st_entry *e, st_err *err)
{
    st_piece_sum *sum = piece_of(f, e);
    st_entry again;
    if (e->kind == ST_ENTRY_FIX) {
        e->fixes = st_money_audit_piece(f->audit, e->account, e->job, e->stay, e->piece);
        e->capped = ST_MAX(sum->capped, 0);
    }
    if (e->kind == ST_ENTRY_LOST)
        st_ledger_lost(f->l, sum, e);
    int r = post_fact(f, e, err);
    if (r == 0) {
        const st_fuzz_book_ctx x = books_of(f, NULL);
        st_piece_add(sum, e);
        r = st_fuzz_book_lend(&x, e, &f->book_rng, err);
    }
    if (r < 0 || e->kind != ST_ENTRY_FIX || !st_ledger_lost_again(f->l, sum, e, &again))
        return r;
    r = post_fact(f, &again, err);
    if (r == 0)
        st_piece_add(sum, &again);
    return r;
}

static int post_record(st_fuzz_money *f, const st_core *core, const st_record *rec, st_err *err)
{
    char job[NAME];
    st_record_names names = {.fleet = st_core_fleet(core),
                             .tree = st_core_tree(core),
                             .job = job,
                             .workload = workload_of(rec->job ? rec->job : 1)};
    st_entry e;
    if (rec->kind != ST_REC_FLEET && rec->account <= ST_ROOT)
        return 0;
    snprintf(job, sizeof job, "%" PRIu64, rec->job);
    st_arena_reset(f->arena);
    st_entry_of_record(rec, &names, f->arena, &e);
    return e.job ? post_piece(f, &e, err) : post_fact(f, &e, err);
}

int st_fuzz_money_records(st_fuzz_money *f, const st_core *core, const st_records *records,
                          int64_t now, st_err *err)
{
    int r = 0;
    f->now = ST_MAX(f->now, now);
    for (size_t i = 0; r == 0 && i < records->n; i++)
        r = post_record(f, core, &records->v[i], err);
    return r;
}

int64_t st_fuzz_money_due(const st_fuzz_money *f)
{
    return ST_MIN(st_ledger_period(f->l)->to_ms, st_ledger_next_change(f->l, f->now));
}

static int check_fleet(const st_fuzz_money *f, const st_fleet *fleet, const st_meter *m,
                       st_err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < fleet->types.n; i++) {
        st_record told;
        st_meter_totals(m, (int32_t)i, &told);
        r = st_money_audit_fleet(f->audit, fleet->types.v[i].name, &told, err);
    }
    return r;
}

int st_fuzz_money_cut(st_fuzz_money *f, const st_core *core, const st_meter *m, st_err *err)
{
    const st_tree *tree = st_core_tree(core);
    const st_fuzz_book_ctx x = books_of(f, core);
    int r = check_fleet(f, st_core_fleet(core), m, err);
    if (r == 0)
        r = st_fuzz_book_cut(&x, err);
    if (r == 0 && st_ledger_period(f->l)->to_ms <= f->now)
        r = close_month(f, tree, err);
    if (r == 0 && st_rng_chance(&f->rng, 1, 4))
        r = new_prices(f, st_core_fleet(core), f->now + st_rng_range(&f->rng, 1, 100 * MINUTE),
                       err);
    if (r == 0 && f->accounts > 1 && st_rng_chance(&f->rng, 1, 2))
        r = new_plan(f, tree, err);
    return r;
}

/* ---- floors ---------------------------------------------------------------------------------- */

static int see_floor(void *ctx, const st_record *rec)
{
    floor_list *list = ctx;
    if (rec->kind == ST_REC_RESERVE && rec->account > ST_ROOT)
        st_vec_push(list, (floor_said){rec->account, rec->type, rec->gpu_m});
    return rec->kind == ST_REC_GRANT; /* those come last */
}

static int64_t floor_in(const floor_list *list, const floor_said *want)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].account == want->account && list->v[i].type == want->type)
            return list->v[i].gpu_m;
    return 0;
}

static int say_floor(st_fuzz_money *f, const st_core *core, const floor_said *is, int64_t gpu_m,
                     st_err *err)
{
    st_entry e = {.kind = ST_ENTRY_FLOOR,
                  .account = st_core_tree(core)->accounts.v[is->account]->name,
                  .gpu = is->type < 0 ? "*" : st_core_fleet(core)->types.v[is->type].name,
                  .gpu_m = gpu_m};
    return post_fact(f, &e, err);
}

static int follow_floors(st_fuzz_money *f, const st_core *core, const st_meter *m, st_err *err)
{
    floor_list now = {0};
    int r = 0;
    /* A moment later: what has just begun is not an interval yet. */
    st_meter_open(m, f->now + 1, see_floor, &now);
    for (size_t i = 0; r == 0 && i < f->floors.n; i++)
        if (floor_in(&now, &f->floors.v[i]) == 0)
            r = say_floor(f, core, &f->floors.v[i], 0, err);
    for (size_t i = 0; r == 0 && i < now.n; i++)
        if (floor_in(&f->floors, &now.v[i]) != now.v[i].gpu_m)
            r = say_floor(f, core, &now.v[i], now.v[i].gpu_m, err);
    st_vec_free(&f->floors);
    f->floors = now;
    return r;
}

/* ---- a moment ------------------------------------------------------------------------------- */

int st_fuzz_money_begin(st_fuzz_money *f, const st_core *core, const st_effects *fx, int64_t now,
                        st_err *err)
{
    const st_tree *tree = st_core_tree(core);
    int r = 0;
    f->now = ST_MAX(f->now, now);
    for (; r == 0 && f->accounts < tree->accounts.n; f->accounts++) {
        const st_account *a = tree->accounts.v[f->accounts];
        st_entry child = {.kind = ST_ENTRY_CHILD,
                          .account = a->parent > ST_ROOT ? tree->accounts.v[a->parent]->name
                                                         : ST_BOOK_FLEET,
                          .child = a->name};
        st_entry e = {.kind = ST_ENTRY_ACCOUNT, .account = a->name};
        if (st_ledger_parent(f->l, a->name))
            continue; /* the book of a name goes on */
        r = post_fact(f, &child, err);
        if (r == 0)
            r = post_fact(f, &e, err);
        if (r == 0)
            r = post_terms(f, err);
    }
    for (size_t i = 0; r == 0 && i < fx->list.n; i++)
        if (fx->list.v[i].kind == ST_FX_QUEUED)
            r = hold_for(f, core, fx->list.v[i].job, err);
    return r;
}

static int restart(st_fuzz_money *f, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf one = {0}, two = {0};
    st_ledger *loaded = NULL;
    st_ledger_save(f->l, &one);
    if (st_ledger_load(one.s, one.n, &loaded, err) < 0)
        return st_fail_prefix(err, "ledger: what was just saved is refused: ");
    st_ledger_free(f->l);
    f->l = loaded;
    st_ledger_save(f->l, &two);
    if (one.n != two.n || memcmp(one.s, two.s, one.n) != 0)
        return BAD("ledger: it saves differently after a restart");
    return 0;
}

int st_fuzz_money_end(st_fuzz_money *f, const st_core *core, const st_meter *m,
                      const st_effects *fx, st_err *err)
{
    bool moved = false;
    int r = 0;
    for (size_t i = 0; r == 0 && i < fx->list.n; i++) {
        const st_effect *e = &fx->list.v[i];
        moved |= e->kind == ST_FX_FLOOR || e->kind == ST_FX_NODE || e->kind == ST_FX_GPU;
        if (e->kind == ST_FX_END)
            r = end_of(f, st_core_tree(core), e, err);
    }
    if (r == 0 && moved)
        r = follow_floors(f, core, m, err);
    if (r == 0) {
        const st_fuzz_book_ctx x = books_of(f, core);
        r = st_fuzz_book_follow(&x, fx, err);
    }
    if (r == 0 && f->books == 0 && st_core_nbookings(core) > 0) /* what comes next has a price */
        r = new_prices(f, st_core_fleet(core), f->now + 1, err);
    if (r == 0 && f->accounts > 1 && st_rng_chance(&f->rng, 1, 20))
        r = give_credit(f, st_core_tree(core), err);
    if (r == 0 && f->accounts > 1 && st_rng_chance(&f->rng, 1, 12))
        r = new_plan(f, st_core_tree(core), err);
    if (r == 0 && st_rng_chance(&f->rng, 1, SAVE_CHANCE))
        r = restart(f, err);
    if (r == 0 && st_rng_chance(&f->rng, 1, LOOK_CHANCE))
        r = st_money_audit_check(f->audit, f->l, f->now, err);
    return r;
}

int st_fuzz_money_close(st_fuzz_money *f, st_err *err)
{
    int r = st_money_audit_check(f->audit, f->l, f->now, err);
    return r < 0 ? r : st_money_audit_replay(f->audit, f->l, err);
}

st_fuzz_money *st_fuzz_money_new(uint64_t seed)
{
    st_fuzz_money *f = st_xcalloc(1, sizeof *f);
    *f = (st_fuzz_money){.l = st_ledger_new(),
                         .audit = st_money_audit_new(),
                         .arena = st_arena_new(),
                         .account_of = st_idmap_new(),
                         .piece_of = st_map_new(),
                         .booked = st_idmap_new(),
                         .accounts = 1};
    st_rng_seed(&f->rng, seed ^ 0x6d6f6e65u);
    st_rng_seed(&f->book_rng, seed ^ 0x626f6f6bu);
    open_month(f);
    return f;
}

void st_fuzz_money_free(st_fuzz_money *f)
{
    if (!f)
        return;
    st_ledger_free(f->l);
    st_money_audit_free(f->audit);
    st_arena_free(f->arena);
    st_idmap_free(f->account_of);
    st_map_free(f->piece_of);
    st_idmap_free(f->booked);
    st_vec_free(&f->pieces);
    st_vec_free(&f->floors);
    free(f);
}
