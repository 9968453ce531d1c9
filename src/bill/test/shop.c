/* A shop with its books, for tests. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "bill/test/shop.h"

#define HOUR  INT64_C(3600000)
#define DAY   (24 * HOUR)
#define OCT_1 INT64_C(1790812800000)
#define NOV_1 INT64_C(1793491200000)
#define DEC_1 INT64_C(1796083200000)
#define JAN_1 INT64_C(1798761600000)

static const st_period periods[] = {
    {"2026-10", OCT_1, NOV_1},
    {"2026-11", NOV_1, DEC_1},
    {"2026-12", DEC_1, JAN_1},
};

static void must(int r, const st_err *err)
{
    if (r < 0)
        fprintf(stderr, "shop: %s\n", err->msg);
    ST_ASSERT(r == 0);
}

shop_book *shop_find(const shop *s, const char *account)
{
    for (size_t i = 0; i < s->books.n; i++)
        if (strcmp(s->books.v[i]->account, account) == 0)
            return s->books.v[i];
    return NULL;
}

bool shop_within(const shop *s, const char *account, const char *above)
{
    while (strcmp(account, above) != 0) {
        const shop_book *b = shop_find(s, account);

        if (!b || !b->parent)
            return false;
        account = b->parent;
    }
    return true;
}

/* ---- posting ---------------------------------------------------------------------------------------- */

static shop_book *open_book(shop *s, const char *account, const char *parent)
{
    shop_book *b = st_xcalloc(1, sizeof(*b));

    b->account = st_arena_strdup(s->texts, account);
    b->parent = parent ? st_arena_strdup(s->texts, parent) : NULL;
    st_vec_push(&s->books, b);
    return b;
}

static void put(shop *s, st_entry *e)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    shop_book *b = shop_find(s, e->account);
    st_err err = {0};
    st_hash leaf;

    if (!b)
        b = open_book(s, e->account, NULL);
    s->at_ms = ST_MAX(s->at_ms, e->at_ms);
    e->at_ms = s->at_ms;
    e->seq = (int64_t)b->entries.n + 1;
    must(st_ledger_apply(s->ledger, e, &err), &err);
    st_entry_write(e, &text);
    st_proof_leaf(text.s, text.n, &leaf);
    st_vec_push(&b->entries, st_arena_strdup(s->texts, text.s));
    st_vec_push(&b->leaves, leaf);
}

static void post(shop *s, st_entry *e)
{
    st_err err = {0};

    s->at_ms = ST_MAX(s->at_ms, e->at_ms);
    e->at_ms = s->at_ms;
    must(st_ledger_price(s->ledger, e, &err), &err);
    put(s, e);
}

void shop_prices(shop *s, const char *text)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    ST_CLEANUP(st_freep) st_price_book *book = st_xcalloc(1, sizeof(*book));
    st_err err = {0};

    must(st_price_book_read("prices.yaml", text, strlen(text), s->at_ms, book, &err), &err);
    st_price_book_write(book, &doc);
    put(s, &(st_entry){.kind = ST_ENTRY_PRICES, .at_ms = s->at_ms, .account = "", .doc = doc.s});
}

static void put_terms(shop *s)
{
    st_entry e;

    while (st_ledger_due(s->ledger, &e)) {
        e.at_ms = s->at_ms;
        put(s, &e);
    }
}

void shop_plan(shop *s, const char *text)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    st_price_plan plan;
    st_err err = {0};

    must(st_price_plan_read("plan.yaml", text, strlen(text), s->at_ms, &plan, &err), &err);
    st_price_plan_write(&plan, &doc);
    put(s, &(st_entry){.kind = ST_ENTRY_PLAN,
                       .at_ms = s->at_ms,
                       .account = plan.account[0] ? plan.account : ST_BOOK_FLEET,
                       .doc = doc.s});
    put_terms(s);
}

void shop_credit(shop *s, const char *account, int64_t udollars, const char *reason)
{
    post(s, &(st_entry){.kind = ST_ENTRY_CREDIT,
                        .at_ms = s->at_ms,
                        .account = account,
                        .amount = udollars,
                        .reason = reason,
                        .by = "ops"});
}

void shop_fix(shop *s, const char *account, int64_t seq)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const char *text = shop_find(s, account)->entries.v[seq - 1];
    st_piece_sum sum = {0};
    st_entry was, fix, again;
    st_err err = {0};

    must(st_entry_read(text, strlen(text), arena, &was, &err), &err);
    ST_ASSERT(was.kind == ST_ENTRY_USAGE);
    for (size_t i = 0; i < shop_find(s, account)->entries.n; i++) {
        text = shop_find(s, account)->entries.v[i];
        must(st_entry_read(text, strlen(text), arena, &fix, &err), &err);
        if (fix.seq == seq || fix.fixes == seq)
            st_piece_add(&sum, &fix);
    }
    fix = was;
    fix.kind = ST_ENTRY_FIX;
    fix.at_ms = s->at_ms;
    fix.fixes = seq;
    fix.grants = NULL;
    fix.ngrants = 0;
    fix.gpu_m = fix.share = fix.held = fix.cpu = fix.ram = fix.inside = fix.inside_idle = 0;
    fix.capped = ST_MAX(sum.capped, 0);
    fix.seen = was.share / 2;
    fix.busy = was.share / 3;
    fix.energy_mj = 7200000;
    fix.nlines = 0;
    post(s, &fix);
    st_piece_add(&sum, &fix);
    if (st_ledger_lost_again(s->ledger, &sum, &fix, &again))
        post(s, &again);
}

/* ---- a random day -------------------------------------------------------------------------------------- */

typedef struct team {
    const char *name;
    const char *gpu; /* of its floor */
    int64_t floor_m;
} team;

static const team teams[] = {
    {"acme", "*", 4000},
    {"vision", "h100", 16000},
    {"speech", "h200", 8000},
    {"beta", NULL, 0},
};

/* The last seventh of it. */
static void lose(shop *s, const st_entry *usage)
{
    st_piece_sum sum = {0};
    st_entry e = *usage;

    e.kind = ST_ENTRY_LOST;
    e.from_ms = usage->to_ms - (usage->to_ms - usage->from_ms) / 7;
    e.lost = usage->share / 7;
    st_piece_add(&sum, usage);
    st_ledger_lost(s->ledger, &sum, &e);
    post(s, &e);
}

/* The newest booking of an account. */
static bool booked(const shop *s, const char *account, st_agreed *ret)
{
    for (size_t i = st_ledger_nbookings(s->ledger); i-- > 0;) {
        st_ledger_booking_at(s->ledger, i, ret);
        if (strcmp(ret->account, account) == 0)
            return true;
    }
    return false;
}

/* Some of it was on GPUs that vision had booked. */
static void lend(shop *s, const st_entry *usage)
{
    bool borrows = usage->basis == ST_BASIS_BURST || usage->basis == ST_BASIS_ON_DEMAND;
    char id[16];
    st_agreed was;
    st_entry e = {.kind = ST_ENTRY_LENT,
                  .at_ms = usage->at_ms,
                  .account = ST_BOOK_FLEET,
                  .child = "vision",
                  .booking = id,
                  .job = usage->job,
                  .stay = usage->stay,
                  .piece = usage->piece,
                  .from_ms = usage->from_ms,
                  .to_ms = usage->to_ms,
                  .share = usage->share / 2};

    if (!borrows || !usage->gpu || strcmp(usage->gpu, "h100") != 0 ||
        strcmp(usage->account, "vision") == 0 || !booked(s, "vision", &was) ||
        was.from_ms > usage->to_ms)
        return;
    snprintf(id, sizeof id, "%s", was.booking);
    if (st_ledger_may_share(s->ledger, usage, "vision"))
        e.charged = st_entry_paid(usage) / 2;
    put(s, &e);
}

static void use(shop *s, const team *t, int64_t day)
{
    static const char *const gpus[] = {"h100", "h200", "l4"};
    static const char *const workloads[] = {"train", NULL, "render", "serve"};
    static const st_entry_grant grants[] = {{"node-\xC3\xBC-1", 0x0f, -1, 1}};
    int64_t from = day + st_rng_range(&s->rng, 0, 12 * HOUR);
    int64_t to = from + st_rng_range(&s->rng, 1, 11 * HOUR), gpu_m = st_rng_range(&s->rng, 1, 8000);
    bool seen = st_rng_chance(&s->rng, 2, 3);
    char job[32];
    st_entry e = {.kind = ST_ENTRY_USAGE,
                  .at_ms = day + DAY,
                  .account = t->name,
                  .from_ms = from,
                  .to_ms = to,
                  .job = job,
                  .user = "ada",
                  .workload = workloads[st_rng_below(&s->rng, 4)],
                  .stay = 1,
                  .piece = 1,
                  .gpu = gpus[st_rng_below(&s->rng, 3)],
                  .level = (st_level)st_rng_below(&s->rng, ST_LEVEL_COUNT),
                  .basis = (st_basis)st_rng_below(&s->rng, ST_BASIS_COUNT),
                  .topo = (st_topo)st_rng_below(&s->rng, ST_TOPO_COUNT),
                  .tasks = 1,
                  .cut = (st_cut)st_rng_below(&s->rng, ST_CUT_COUNT),
                  .gpu_m = gpu_m,
                  .share = gpu_m * (to - from),
                  .held = gpu_m * (to - from),
                  .cpu = 4 * gpu_m * (to - from),
                  .ram = 32 * gpu_m * (to - from) / 1000,
                  .seen = seen ? gpu_m * (to - from) / 10 * 9 : ST_UNKNOWN,
                  .busy = seen ? gpu_m * (to - from) / 10 * 7 : ST_UNKNOWN,
                  .energy_mj = seen ? 650 * (to - from) : ST_UNKNOWN,
                  .grants = grants,
                  .ngrants = 1};

    snprintf(job, sizeof(job), "j%06d", ++s->jobs);
    if (seen && s->jobs % 5 == 0)
        e.busy = e.seen + 1; /* samples that disagree; nobody pays for being busier than seen */
    if (e.gpu && (e.basis == ST_BASIS_BURST || e.basis == ST_BASIS_ON_DEMAND) && s->jobs % 3 > 0) {
        e.inside = s->jobs % 3 == 1 ? e.share : e.share / 3;
        if (seen && e.busy < e.seen)
            e.inside_idle = s->jobs % 3 == 1 ? e.seen - e.busy : (e.seen - e.busy) / 3;
    }
    if (strcmp(t->name, "beta") == 0) /* has a cap; every other job holds what it could cost */
        put(s, &(st_entry){.kind = ST_ENTRY_HOLD,
                           .at_ms = day + DAY,
                           .account = t->name,
                           .job = job,
                           .user = "ada",
                           .amount = 2000000 * (s->jobs % 2)});
    post(s, &e);
    lend(s, &e);
    if (st_cut_blameless(e.cut))
        lose(s, &e);
    if (e.workload && strcmp(e.workload, "render") == 0)
        post(s, &(st_entry){.kind = ST_ENTRY_PIECES,
                            .at_ms = day + DAY,
                            .account = t->name,
                            .job = job,
                            .workload = "render",
                            .pieces = st_rng_range(&s->rng, 1, 900)});
    if (strcmp(t->name, "beta") == 0)
        put(s, &(st_entry){
                   .kind = ST_ENTRY_RELEASE, .at_ms = day + DAY, .account = t->name, .job = job});
}

/* Another booking, or a change of one, right after it is charged. */
static void book(shop *s, const char *account, int64_t now)
{
    char id[16];
    st_agreed was;
    st_entry window, e = {.kind = ST_ENTRY_BOOKING,
                          .at_ms = now,
                          .account = account,
                          .booking = id,
                          .gpu = "h100",
                          .gpu_m = 1000 * st_rng_range(&s->book_rng, 1, 8),
                          .from_ms = now + st_rng_range(&s->book_rng, 0, 3 * DAY)};
    st_window_price price;
    bool there = booked(s, account, &was);

    e.to_ms = e.from_ms + st_rng_range(&s->book_rng, 1, 40 * HOUR);
    st_ledger_window_price(s->ledger, account, e.gpu, e.gpu_m, e.from_ms, e.to_ms, now, &price);
    if (!there && !price.priced)
        return;
    if (there && (!price.priced || st_rng_chance(&s->book_rng, 2, 3))) {
        snprintf(id, sizeof id, "%s", was.booking);
        if (was.from_ms < now) {
            e.from_ms = was.from_ms;
            e.to_ms = now + st_rng_range(&s->book_rng, 0, 40 * HOUR);
            e.short_m = st_rng_range(&s->book_rng, 0, e.gpu_m);
        } else if (st_rng_chance(&s->book_rng, 1, 2)) {
            e.to_ms = e.from_ms;
            e.reason = "cancelled";
        }
        if (st_ledger_window(s->ledger, &was, &e, now, &window))
            post(s, &window);
    } else {
        snprintf(id, sizeof id, "b%d", ++s->bookings);
    }
    st_ledger_agree(s->ledger, &e);
    put(s, &e);
}

/* At the end of a day all bookings are charged. */
static void book_day(shop *s, int64_t now)
{
    for (size_t i = st_ledger_nbookings(s->ledger); i-- > 0;) {
        st_agreed was;
        st_entry window;

        st_ledger_booking_at(s->ledger, i, &was);
        if (st_ledger_window(s->ledger, &was, NULL, now, &window)) {
            window.booking = st_arena_strdup(s->texts, window.booking);
            post(s, &window);
        }
    }
    if (now >= st_ledger_period(s->ledger)->to_ms)
        return;
    book(s, "vision", now);
    book(s, "acme", now);
}

void shop_days(shop *s, int days)
{
    for (int i = 0; i < days; i++) {
        int64_t day = (s->at_ms + DAY - 1) / DAY * DAY;

        for (size_t k = 0; k < ST_ARRAY_LEN(teams); k++) {
            const team *t = &teams[k];

            for (int64_t n = st_rng_range(&s->rng, 0, 3); n > 0; n--)
                use(s, t, day);
            if (t->gpu)
                post(s, &(st_entry){.kind = ST_ENTRY_RESERVE,
                                    .at_ms = day + DAY,
                                    .account = t->name,
                                    .gpu = t->gpu,
                                    .from_ms = day,
                                    .to_ms = day + DAY,
                                    .gpu_m = t->floor_m,
                                    .share = t->floor_m * DAY});
        }
        s->at_ms = day + DAY;
        book_day(s, day + DAY);
    }
}

void shop_close(shop *s)
{
    const st_period *p = st_ledger_period(s->ledger);
    st_period open = *p;
    size_t next = 0;

    s->at_ms = ST_MAX(s->at_ms, open.to_ms);
    for (size_t i = s->books.n; i-- > 0;) /* the cluster's is the first, and closes last */
        if (strcmp(s->books.v[i]->account, ST_BOOK_FLEET) != 0)
            put(s, &(st_entry){.kind = ST_ENTRY_CLOSE,
                               .at_ms = open.to_ms,
                               .account = s->books.v[i]->account,
                               .period = open.name,
                               .zone = "UTC",
                               .from_ms = open.from_ms,
                               .to_ms = open.to_ms});
    while (strcmp(periods[next].name, open.name) != 0)
        next++;
    st_ledger_set_period(s->ledger, &periods[next + 1]);
}

static void add_account(shop *s, const char *name, const char *parent)
{
    put(s, &(st_entry){.kind = ST_ENTRY_CHILD,
                       .at_ms = s->at_ms,
                       .account = *parent ? parent : ST_BOOK_FLEET,
                       .child = name});
    open_book(s, name, parent);
    put(s, &(st_entry){.kind = ST_ENTRY_ACCOUNT, .at_ms = s->at_ms, .account = name});
    put_terms(s);
}

void shop_init(shop *s, uint64_t seed)
{
    *s = (shop){.ledger = st_ledger_new(), .texts = st_arena_new(), .at_ms = OCT_1};
    st_rng_seed(&s->rng, seed);
    st_rng_seed(&s->book_rng, seed + 77);
    for (int i = 0; i < 32; i++)
        s->secret[i] = (unsigned char)(seed + (uint64_t)i);
    crypto_sign_seed_keypair(s->public, s->key, s->secret);
    st_ledger_set_period(s->ledger, &periods[0]);
    open_book(s, "", NULL);
    shop_prices(s, "prices: list\n"
                   "gpu:\n"
                   "  h100: {reserved: 1.98, guaranteed: 0.11, burst: 2.49, on_demand: 3.333333,\n"
                   "         booked: 0.05, mig: 104.25%, mps: 90%, time: 66.67%}\n"
                   "  \"*\": {reserved: 1.1, burst: 1.7}\n"
                   "cpu: 0.0131\nram: 0.0017\nenergy: 0.21\n"
                   "topology: {block: 5%, rack: 7.5%, nvlink: 12.5%}\n"
                   "idle: 20%\ncredit: {lost: 80%, fault: 100%}\n"
                   "pieces: {render: {frames: 0.0123}}\n"
                   "booking: {price: 66.67%, term: {10h: 5%, 30h: 11.11%}, lead: {1d: 3.33%},\n"
                   "          cancel: {12h: 90%, 2d: 33.33%}, lent: 41.37%}\n");
    add_account(s, "acme", "");
    add_account(s, "vision", "acme");
    add_account(s, "speech", "acme");
    add_account(s, "beta", "");
    shop_plan(s, "account: acme\ndiscount: 12.5%\nchargeback: true\n");
    shop_plan(s, "account: speech\ndiscount: 3.33%\n");
    shop_plan(s, "account: beta\ncap: 300\n");
}

void shop_done(shop *s)
{
    for (size_t i = 0; i < s->books.n; i++) {
        st_vec_free(&s->books.v[i]->entries);
        st_vec_free(&s->books.v[i]->leaves);
        free(s->books.v[i]);
    }
    st_vec_free(&s->books);
    st_ledger_free(s->ledger);
    st_arena_free(s->texts);
}
