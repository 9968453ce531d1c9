/* Cost data in the FOCUS format, version 1.2, as CSV (bill/bill.h; the mapping is in doc/reference/bill-format.md).
 *
 * A row is an array of texts, one per column of the table; NULL is null and comes out as an empty field. The texts live in
 * an arena until the row is written. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/quote.h"
#include "bill/bill.h"
#include "bill/focus_floors.h"
#include "ledger/price.h"
#include "proof/proof.h"
#include "proof/strict.h"

/* FOCUS columns in alphabetical order, then our own. */
#define COLUMNS(X)                \
    X(BilledCost)                 \
    X(BillingAccountId)           \
    X(BillingAccountName)         \
    X(BillingCurrency)            \
    X(BillingPeriodEnd)           \
    X(BillingPeriodStart)         \
    X(CapacityReservationId)      \
    X(CapacityReservationStatus)  \
    X(ChargeCategory)             \
    X(ChargeClass)                \
    X(ChargeDescription)          \
    X(ChargeFrequency)            \
    X(ChargePeriodEnd)            \
    X(ChargePeriodStart)          \
    X(CommitmentDiscountCategory) \
    X(CommitmentDiscountId)       \
    X(CommitmentDiscountName)     \
    X(CommitmentDiscountQuantity) \
    X(CommitmentDiscountStatus)   \
    X(CommitmentDiscountType)     \
    X(CommitmentDiscountUnit)     \
    X(ConsumedQuantity)           \
    X(ConsumedUnit)               \
    X(ContractedCost)             \
    X(ContractedUnitPrice)        \
    X(EffectiveCost)              \
    X(InvoiceId)                  \
    X(InvoiceIssuerName)          \
    X(ListCost)                   \
    X(ListUnitPrice)              \
    X(PricingCategory)            \
    X(PricingQuantity)            \
    X(PricingUnit)                \
    X(ProviderName)               \
    X(PublisherName)              \
    X(RegionId)                   \
    X(RegionName)                 \
    X(ResourceId)                 \
    X(ResourceName)               \
    X(ResourceType)               \
    X(ServiceCategory)            \
    X(ServiceName)                \
    X(ServiceSubcategory)         \
    X(SkuId)                      \
    X(SkuMeter)                   \
    X(SkuPriceDetails)            \
    X(SkuPriceId)                 \
    X(SubAccountId)               \
    X(SubAccountName)             \
    X(Tags)                       \
    X(x_Basis)                    \
    X(x_Chargeback)               \
    X(x_Component)                \
    X(x_Corrects)                 \
    X(x_Counted)                  \
    X(x_Entry)                    \
    X(x_Proof)                    \
    X(x_Share)

enum {
#define X(name) name,
    COLUMNS(X)
#undef X
        NCOLUMNS
};

struct st_focus {
    st_focus_about about;
    st_floors *floors;
    st_map *inside;  /* "booking day": what was used in it and no window has claimed yet */
    st_arena *arena; /* for one row */
};

/* What FOCUS calls a component: how it is measured, in which unit, and whether it is a charge for usage. */
typedef struct meter {
    const char *meter, *unit;
    bool usage, gpu;
    bool once; /* bought, and not used */
} meter;

static const meter meters[ST_PAY_COUNT] = {
    [ST_PAY_RESERVED] = {"Reserved GPU Time", "GPU-Hours", true, true, false},
    [ST_PAY_GUARANTEED] = {"GPU Time", "GPU-Hours", true, true, false},
    [ST_PAY_BURST] = {"GPU Time", "GPU-Hours", true, true, false},
    [ST_PAY_ON_DEMAND] = {"GPU Time", "GPU-Hours", true, true, false},
    [ST_PAY_BOOKED] = {"GPU Time", "GPU-Hours", true, true, false},
    [ST_PAY_TOPOLOGY] = {"Topology Premium", "GPU-Hours", true, true, false},
    [ST_PAY_IDLE] = {"Idle GPU Time", "GPU-Hours", true, true, false},
    [ST_PAY_CPU] = {"CPU Time", "Core-Hours", true, false, false},
    [ST_PAY_RAM] = {"Memory Time", "GiB-Hours", true, false, false},
    [ST_PAY_ENERGY] = {"Energy", "kWh", true, false, false},
    [ST_PAY_FRAMES] = {"Frames", "Frames", true, false, false},
    [ST_PAY_MINUTES] = {"Video", "Minutes", true, false, false},
    [ST_PAY_WINDOW] = {"Booked GPU Time", "GPU-Hours", true, true, false},
    [ST_PAY_CANCEL] = {"Cancelled GPU Time", "GPU-Hours", true, true, true},
};

st_focus *st_focus_new(const st_focus_about *about)
{
    st_focus *f = st_xcalloc(1, sizeof(*f));

    f->about = *about;
    f->floors = st_floors_new();
    f->inside = st_map_new();
    f->arena = st_arena_new();
    return f;
}

void st_focus_free(st_focus *f)
{
    if (!f)
        return;
    st_floors_free(f->floors);
    st_map_free(f->inside);
    st_arena_free(f->arena);
    free(f);
}

void st_focus_account(st_focus *f, const char *account, const char *parent)
{
    st_floors_account(f->floors, account, parent);
}

#define DAY_MS     INT64_C(86400000)
#define INSIDE_KEY (ST_NAME_MAX + 32)

static void inside_key(char key[INSIDE_KEY], const st_entry *e)
{
    snprintf(key, INSIDE_KEY, "%s %lld", e->booking, (long long)(e->from_ms / DAY_MS));
}

/* Intervals end at midnight, so a day is enough to tell which window was used. */
static void learn_inside(st_focus *f, const st_entry *e)
{
    char key[INSIDE_KEY];
    int64_t used = 0;

    if (e->kind != ST_ENTRY_USAGE || !e->booking || e->basis != ST_BASIS_BOOKED)
        return;
    inside_key(key, e);
    st_map_get(f->inside, key, &used);
    st_map_put(f->inside, key, used + e->share);
}

void st_focus_learn(st_focus *f, const st_entry *e)
{
    st_floors_learn(f->floors, e);
    learn_inside(f, e);
}

void st_focus_head(st_strbuf *out)
{
#define X(name) #name,
    static const char *const names[] = {COLUMNS(X)};
#undef X

    for (int i = 0; i < NCOLUMNS; i++)
        st_csv_field(out, names[i], i == 0);
    st_strbuf_add(out, "\r\n");
}

/* ---- texts ------------------------------------------------------------------------------------------ */

static const char *keep(st_focus *f, const char *text)
{
    return st_arena_strdup(f->arena, text);
}

static ST_PRINTF(2, 3) const char *keepf(st_focus *f, const char *fmt, ...)
{
    char buf[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf, sizeof(buf), fmt, ap);
    va_end(ap);
    return keep(f, buf);
}

static const char *money(st_focus *f, int64_t udollars)
{
    char buf[ST_MONEY_MAX];

    return keep(f, st_money(buf, udollars));
}

static const char *moment(st_focus *f, int64_t ms)
{
    char buf[ST_UTC_MAX];

    return keep(f, st_utc(buf, ms));
}

/* rate x factor is an integer of 10^-10 dollars: nothing is rounded. */
static const char *unit_price(st_focus *f, int64_t rate, int64_t factor_bp)
{
    char buf[ST_RATIO_MAX];

    return keep(f, st_ratio(buf, (st_i128)rate * factor_bp, INT64_C(10000000000), 10));
}

static const char *number(st_focus *f, int64_t v)
{
    return keepf(f, "%lld", (long long)v);
}

/* The cluster's name in front makes a name one of a kind. */
static const char *qualified(st_focus *f, const char *kind, const char *name)
{
    return keepf(f, "%s/%s/%s", f->about.about->cluster, kind, name);
}

static const char *floor_id(st_focus *f, const char *account, const char *gpu)
{
    return keepf(f, "%s/floors/%s/%s", f->about.about->cluster, account,
                 strcmp(gpu, "*") == 0 ? "any" : gpu);
}

/* ---- groups of columns -------------------------------------------------------------------------------- */

typedef struct row {
    st_focus *f;
    const st_entry *e;
    const st_line *l;
    int64_t quantity, amount; /* of this row: a part of the line's */
    const char *part;         /* "Used" or "Unused" of a floor; NULL: neither */
    const char *v[NCOLUMNS];
} row;

static bool is_stay(const st_entry *e)
{
    return e->kind == ST_ENTRY_USAGE || e->kind == ST_ENTRY_FIX;
}

static bool is_piece(const st_entry *e)
{
    return is_stay(e) || e->kind == ST_ENTRY_LOST;
}

static bool is_correction(const row *r)
{
    return is_piece(r->e) && r->e->kind != ST_ENTRY_USAGE &&
           r->e->from_ms < r->f->about.period.from_ms;
}

static void put_who(row *r)
{
    st_focus *f = r->f;
    const st_export_about *about = f->about.about;
    const char *account = f->about.account;

    r->v[BillingAccountId] = *account ? qualified(f, "accounts", account) : about->cluster;
    r->v[BillingAccountName] = *account ? account : about->cluster;
    r->v[BillingCurrency] = about->currency;
    r->v[InvoiceIssuerName] = r->v[ProviderName] = r->v[PublisherName] = about->cluster;
    r->v[RegionId] = r->v[RegionName] = about->cluster;
    r->v[ServiceCategory] = "Compute";
    r->v[ServiceName] = "Stint GPU";
    r->v[ServiceSubcategory] = "Containers";
    if (strcmp(r->e->account, account) != 0) {
        r->v[SubAccountId] = qualified(f, "accounts", r->e->account);
        r->v[SubAccountName] = r->e->account;
    }
    if (st_ledger_owed(f->about.ledger, r->e) && f->about.closed)
        r->v[InvoiceId] = keepf(f, "%s/%s", r->v[BillingAccountId], f->about.period.name);
}

/* Whole seconds: an interval ends where the next begins, and none is empty. */
static void put_when(row *r)
{
    const st_period *p = &r->f->about.period;
    bool window = r->e->kind == ST_ENTRY_WINDOW && r->e->to_ms > r->e->from_ms;
    bool span = is_piece(r->e) || r->e->kind == ST_ENTRY_RESERVE || window;
    int64_t from = (span ? r->e->from_ms : r->e->at_ms) / 1000;
    int64_t to = span ? r->e->to_ms / 1000 : from + 1;

    if (!is_correction(r)) { /* what a person or a job did just behind the end still counts in it */
        from = ST_MAX(p->from_ms / 1000, ST_MIN(from, p->to_ms / 1000 - 1));
        to = ST_MIN(to, p->to_ms / 1000);
    }
    to = ST_MAX(to, from + 1);
    r->v[BillingPeriodStart] = moment(r->f, p->from_ms);
    r->v[BillingPeriodEnd] = moment(r->f, p->to_ms);
    r->v[ChargePeriodStart] = moment(r->f, from * 1000);
    r->v[ChargePeriodEnd] = moment(r->f, to * 1000);
}

/* The factor without the plan's discount. */
static int64_t list_price_factor(const row *r, const st_price_book *book)
{
    const st_rates *rates = book && r->e->gpu ? st_price_rates(book, r->e->gpu) : NULL;
    int64_t level = rates && is_stay(r->e) ? rates->level_bp[r->e->level] : ST_BP;
    int64_t class = book ? st_price_class_bp(book, r->e->priority_class) : ST_BP;

    switch (r->l->what) {
    case ST_PAY_GUARANTEED:
    case ST_PAY_BURST:
    case ST_PAY_ON_DEMAND:
    case ST_PAY_BOOKED:
        return st_price_factor((const int64_t[]){level, class}, 2);
    case ST_PAY_TOPOLOGY:
        return st_price_factor(
            (const int64_t[]){level, book ? book->topo_bp[r->e->topo] : 0, class}, 3);
    case ST_PAY_IDLE:
        return st_price_factor((const int64_t[]){level, book ? book->idle_bp : 0, class}, 3);
    case ST_PAY_CPU:
    case ST_PAY_RAM:
    case ST_PAY_ENERGY:
    case ST_PAY_FRAMES:
    case ST_PAY_MINUTES:
        return class;
    case ST_PAY_CANCEL:
        return r->e->fee_bp;
    default:
        return ST_BP;
    }
}

static int64_t list_cost(const row *r, int64_t factor_bp)
{
    st_i128 d = (st_i128)st_component_per(r->l->what) * ST_BP;
    st_i128 n = (st_i128)r->quantity * r->l->rate * factor_bp;

    if (factor_bp == r->l->factor_bp)
        return r->amount;
    return (int64_t)((2 * n + (n < 0 ? -d : d)) / (2 * d));
}

static void put_costs(row *r, const st_price_book *book)
{
    st_focus *f = r->f;
    const meter *m = &meters[r->l->what];
    int64_t factor_bp = list_price_factor(r, book);
    char buf[ST_RATIO_MAX];

    r->v[BilledCost] = r->v[EffectiveCost] = r->v[ContractedCost] = money(f, r->amount);
    r->v[ListCost] = r->v[BilledCost];
    if (!m->usage)
        return;
    r->v[ListCost] = money(f, list_cost(r, factor_bp));
    r->v[ListUnitPrice] = unit_price(f, r->l->rate, factor_bp);
    r->v[ContractedUnitPrice] = unit_price(f, r->l->rate, r->l->factor_bp);
    r->v[PricingQuantity] = keep(f, st_ratio(buf, r->quantity, st_component_per(r->l->what), 12));
    r->v[PricingUnit] = m->unit;
    r->v[PricingCategory] = r->e->kind == ST_ENTRY_WINDOW ? "Committed" : "Standard";
    if (m->once)
        return;
    r->v[ConsumedQuantity] = r->v[PricingQuantity];
    r->v[ConsumedUnit] = m->unit;
}

/* A booking is a commitment to so much GPU time, used or not. Use of it by jobs has rows of its own that cost nothing. */
static void put_commitment(row *r)
{
    const st_entry *e = r->e;

    if (!e->booking || (e->kind != ST_ENTRY_WINDOW && r->l->what != ST_PAY_BOOKED))
        return;
    r->v[CommitmentDiscountId] = qualified(r->f, "bookings", e->booking);
    r->v[CommitmentDiscountCategory] = "Usage";
    r->v[CommitmentDiscountType] = "Booking";
    if (!meters[r->l->what].usage)
        return;
    r->v[CommitmentDiscountQuantity] = r->v[PricingQuantity];
    r->v[CommitmentDiscountUnit] = r->v[PricingUnit];
    if (!meters[r->l->what].once)
        r->v[CommitmentDiscountStatus] = r->part ? r->part : "Used";
}

static void put_class(row *r)
{
    const meter *m = &meters[r->l->what];

    r->v[ChargeCategory] = m->once ? "Purchase" : m->usage ? "Usage" : "Credit";
    r->v[ChargeClass] = is_correction(r) ? "Correction" : NULL;
    r->v[ChargeFrequency] = !m->usage || m->once            ? "One-Time"
                            : r->l->what == ST_PAY_RESERVED ? "Recurring"
                                                            : "Usage-Based";
}

static void put_sku(row *r, const st_price_book *book)
{
    st_focus *f = r->f;
    const meter *m = &meters[r->l->what];
    const char *gpu = m->gpu && r->e->gpu ? r->e->gpu : NULL;
    const char *level = gpu && is_stay(r->e) ? st_level_name(r->e->level) : NULL;
    const char *what = st_component_name(r->l->what), *topo = "";
    bool one_of_gpu = r->l->what >= ST_PAY_GUARANTEED && r->l->what <= ST_PAY_BOOKED;
    char from[ST_UTC_MAX];

    if (!m->usage)
        return;
    if (r->l->what == ST_PAY_TOPOLOGY)
        topo = st_topo_name(r->e->topo);
    /* How it is paid for is not what it is: guaranteed, burst, on demand and booked are one SKU. */
    r->v[SkuId] =
        keepf(f, "%s%s%s%s%s%s%s", one_of_gpu ? "gpu" : what, gpu ? "/" : "", gpu ? gpu : "",
              level ? "/" : "", level ? level : "", *topo ? "/" : "", topo);
    r->v[SkuMeter] = m->meter;
    r->v[SkuPriceId] =
        keepf(f, "%s@%s/%s%s%s", book ? book->name : "free", st_utc(from, book ? book->from_ms : 0),
              one_of_gpu ? what : "", one_of_gpu ? "/" : "", r->v[SkuId]);
    if (gpu) {
        ST_CLEANUP(st_strbuf_done) st_strbuf b = {0};

        st_strbuf_add(&b, "{\"GpuCount\":1,\"x_GpuType\":");
        st_quote_json(&b, gpu);
        if (level)
            st_strbuf_addf(&b, ",\"x_Isolation\":\"%s\"", level);
        st_strbuf_addf(&b, ",\"x_Component\":\"%s\"}", what);
        r->v[SkuPriceDetails] = keep(f, b.s);
    }
}

static void put_resource(row *r)
{
    st_focus *f = r->f;
    const st_entry *e = r->e;
    const char *gpu = NULL, *owner = NULL;

    if (e->kind == ST_ENTRY_RESERVE) {
        r->v[CapacityReservationId] = r->v[ResourceId] = floor_id(f, e->account, e->gpu);
        r->v[CapacityReservationStatus] = r->part;
        r->v[ResourceType] = "Floor";
        return;
    }
    if (e->kind == ST_ENTRY_WINDOW) {
        r->v[CapacityReservationId] = r->v[ResourceId] = qualified(f, "bookings", e->booking);
        r->v[CapacityReservationStatus] = r->part;
        r->v[ResourceType] = "Booking";
        return;
    }
    if (e->booking && r->l->what == ST_PAY_BOOKED) {
        r->v[CapacityReservationId] = qualified(f, "bookings", e->booking);
        r->v[CapacityReservationStatus] = "Used";
    }
    if (e->job) {
        r->v[ResourceId] = qualified(f, "jobs", e->job);
        r->v[ResourceName] = e->name;
        r->v[ResourceType] = "Job";
    }
    if (r->l->what == ST_PAY_GUARANTEED && e->gpu)
        owner = st_floors_of(f->floors, e->account, e->gpu, &gpu);
    if (owner) {
        r->v[CapacityReservationId] = floor_id(f, owner, gpu);
        r->v[CapacityReservationStatus] = "Used";
    }
}

static void put_tags(row *r)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf b = {0};

    if (r->e->user) {
        st_strbuf_add(&b, "{\"stint/user\":");
        st_quote_json(&b, r->e->user);
    }
    if (r->e->workload) {
        st_strbuf_add(&b, b.n > 0 ? ",\"stint/workload\":" : "{\"stint/workload\":");
        st_quote_json(&b, r->e->workload);
    }
    if (r->e->priority_class) {
        st_strbuf_add(&b, b.n > 0 ? ",\"stint/class\":" : "{\"stint/class\":");
        st_quote_json(&b, r->e->priority_class);
    }
    /* Those of the job as they are; ours have a prefix, as FOCUS wants it. */
    if (r->e->labels && strlen(r->e->labels) > 2) {
        st_strbuf_add(&b, b.n > 0 ? "," : "{");
        st_strbuf_addn(&b, r->e->labels + 1, strlen(r->e->labels) - 2);
    }
    if (b.n > 0) {
        st_strbuf_addc(&b, '}');
        r->v[Tags] = keep(r->f, b.s);
    }
}

static void put_own(row *r, const char *proof)
{
    st_focus *f = r->f;
    const st_entry *e = r->e;

    r->v[x_Component] = st_component_name(r->l->what);
    r->v[x_Basis] = is_piece(e) ? st_basis_name(e->basis) : NULL;
    r->v[x_Chargeback] = st_ledger_owed(f->about.ledger, e) ? "true" : "false";
    r->v[x_Corrects] = e->fixes > 0 ? number(f, e->fixes) : NULL;
    r->v[x_Counted] = number(f, r->quantity);
    r->v[x_Entry] = number(f, e->seq);
    r->v[x_Proof] = proof;
    r->v[x_Share] = is_stay(e) || e->kind == ST_ENTRY_RESERVE || e->kind == ST_ENTRY_WINDOW
                        ? number(f, e->share)
                        : NULL;
}

static void put_description(row *r)
{
    const st_entry *e = r->e;
    const char *gpu = e->gpu ? strcmp(e->gpu, "*") == 0 ? "any type" : e->gpu : "";
    const char *what = st_component_name(r->l->what);

    if (e->kind == ST_ENTRY_RESERVE)
        r->v[ChargeDescription] = keepf(r->f, "reserved floor of %s, %s part", gpu,
                                        strcmp(r->part, "Used") == 0 ? "used" : "unused");
    else if (e->kind == ST_ENTRY_WINDOW)
        r->v[ChargeDescription] =
            keepf(r->f, "%s, booking %s of %s%s%s", what, e->booking, gpu, r->part ? ", " : "",
                  !r->part                       ? ""
                  : strcmp(r->part, "Used") == 0 ? "used part"
                                                 : "unused part");
    else if (e->kind == ST_ENTRY_CREDIT)
        r->v[ChargeDescription] = keepf(r->f, "credit: %s", e->reason);
    else if (is_piece(e))
        r->v[ChargeDescription] = keepf(r->f, "%s%s, job %s, stay %d, interval %d%s%s",
                                        e->kind == ST_ENTRY_FIX ? "correction of " : "", what,
                                        e->job, e->stay, e->piece, *gpu ? " on " : "", gpu);
    else
        r->v[ChargeDescription] = keepf(r->f, "%s, job %s", what, e->job ? e->job : "");
}

static void write_row(row *r, const char *proof, st_strbuf *out)
{
    int64_t at = is_piece(r->e) || r->e->kind == ST_ENTRY_RESERVE ? r->e->from_ms : r->e->at_ms - 1;

    if (r->e->kind == ST_ENTRY_WINDOW)
        at = r->e->agreed_ms - 1;
    const st_price_book *book = st_ledger_book(r->f->about.ledger, at);

    put_who(r);
    put_when(r);
    put_costs(r, book);
    put_commitment(r);
    put_class(r);
    put_sku(r, book);
    put_resource(r);
    put_tags(r);
    put_own(r, proof);
    put_description(r);
    for (int i = 0; i < NCOLUMNS; i++)
        st_csv_field(out, r->v[i] && *r->v[i] ? r->v[i] : NULL, i == 0);
    st_strbuf_add(out, "\r\n");
}

/* Of what was used in a booking that day, as much as the window had. */
static int64_t claim_inside(st_focus *f, const st_entry *e, int64_t most)
{
    char key[INSIDE_KEY];
    int64_t used = 0;

    inside_key(key, e);
    st_map_get(f->inside, key, &used);
    most = ST_MAX(ST_MIN(most, used), 0);
    st_map_put(f->inside, key, used - most);
    return most;
}

/* The used part of a floor or a window and the rest; money is split like time, and nothing is lost. */
static void write_floor(st_focus *f, const st_entry *e, const st_line *l, const char *proof,
                        st_strbuf *out)
{
    int64_t used = e->kind == ST_ENTRY_RESERVE ? st_floors_used(f->floors, e)
                                               : claim_inside(f, e, l->quantity);
    int64_t used_amount = l->quantity > 0 ? (int64_t)((st_i128)l->amount * used / l->quantity) : 0;
    row r = {.f = f, .e = e, .l = l, .quantity = used, .amount = used_amount, .part = "Used"};

    if (used > 0)
        write_row(&r, proof, out);
    if (used < l->quantity) {
        r = (row){.f = f,
                  .e = e,
                  .l = l,
                  .quantity = l->quantity - used,
                  .amount = l->amount - used_amount,
                  .part = "Unused"};
        write_row(&r, proof, out);
    }
}

void st_focus_rows(st_focus *f, const st_entry *e, st_strbuf *out)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0}, hex = {0};
    st_hash leaf;

    if (e->nlines == 0)
        return;
    st_entry_write(e, &bytes);
    st_proof_leaf(bytes.s, bytes.n, &leaf);
    st_hex_write(leaf.b, ST_HASH, &hex);
    for (int i = 0; i < e->nlines; i++) {
        const st_line *l = &e->lines[i];
        row r = {.f = f, .e = e, .l = l, .quantity = l->quantity, .amount = l->amount};

        st_arena_reset(f->arena);
        if (e->kind == ST_ENTRY_RESERVE || l->what == ST_PAY_WINDOW)
            write_floor(f, e, l, hex.s, out);
        else
            write_row(&r, hex.s, out);
    }
}
