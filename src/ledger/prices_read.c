/* Price books and plans from documents. Two forms are read: what people write (dollars, percent, dates;
 * doc/reference/prices.md) and the canonical one (integers), which is known by its key from_ms. */
#include <string.h>

#include "base/doc.h"
#include "base/num.h"
#include "base/quote.h"
#include "ledger/price.h"
#include "model/tree.h"

#define LEVEL_BP_MAX INT64_C(1000000) /* 100 times */
#define TOPO_BP_MAX  INT64_C(100000)  /* 10 times on top */
#define CLASS_BP_MAX INT64_C(100000)  /* 10 times */
#define WARN_BP_MAX  INT64_C(20000)
#define MS_MAX       INT64_C(253402300800000) /* the year 10000 */
#define DAY_MS       INT64_C(86400000)
#define GRACE_MAX    (7 * DAY_MS)
#define HOLD_MIN     INT64_C(1000)
#define HOLD_MAX     (31 * DAY_MS)
#define STEP_MAX     (3653 * DAY_MS)

static const st_doc_limits limits = {.bytes = 1 << 20, .nodes = 20000, .scalar = 4096, .depth = 8};

typedef struct in {
    const st_doc *doc;
    st_err *err;
} in;

/* ---- values ---------------------------------------------------------------------------------- */

static int read_dollars(in *x, const st_doc_node *node, int64_t hi, int64_t *ret)
{
    char q[ST_QUOTE_MAX];
    const char *s;
    int64_t n;
    int r = st_doc_str(x->doc, node, &s, x->err);
    if (r < 0)
        return r;
    if (!st_price_decimal(s, strlen(s), 6, &n))
        return st_doc_fail(x->doc, node, x->err, ST_EPARSE,
                           "%s is not an amount in dollars with up to six decimals, such as 2.35",
                           st_quote(q, s));
    if (n > hi)
        return st_doc_fail(x->doc, node, x->err, ST_ERANGE, "%s is more than %lld dollars",
                           st_quote(q, s), (long long)(hi / 1000000));
    *ret = n;
    return 0;
}

static int read_percent(in *x, const st_doc_node *node, int64_t hi, int64_t *ret)
{
    char q[ST_QUOTE_MAX];
    const char *s;
    int64_t n;
    int r = st_doc_str(x->doc, node, &s, x->err);
    if (r < 0)
        return r;
    size_t len = strlen(s);
    if (len && s[len - 1] == '%')
        len--;
    if (!st_price_decimal(s, len, 2, &n))
        return st_doc_fail(x->doc, node, x->err, ST_EPARSE,
                           "%s is not a percentage with up to two decimals, such as 12.5%%",
                           st_quote(q, s));
    if (n > hi)
        return st_doc_fail(x->doc, node, x->err, ST_ERANGE, "%s is more than %lld%%",
                           st_quote(q, s), (long long)(hi / 100));
    *ret = n;
    return 0;
}

static int read_from(in *x, const st_doc_node *root, int64_t now, int64_t *ret)
{
    char q[ST_QUOTE_MAX];
    const st_doc_node *node = st_doc_get(root, "from");
    const char *s;
    if (!node) {
        *ret = now;
        return 0;
    }
    int r = st_doc_str(x->doc, node, &s, x->err);
    if (r < 0)
        return r;
    if (!st_price_moment(s, ret))
        return st_doc_fail(x->doc, node, x->err, ST_EPARSE,
                           "%s is not a moment such as 2026-10-01 or 2026-10-01T12:00:00Z",
                           st_quote(q, s));
    if (*ret < now)
        return st_doc_fail(x->doc, node, x->err, ST_EINVAL,
                           "%s is in the past: prices and plans begin now or later", s);
    return 0;
}

static int read_name(in *x, const st_doc_node *node, char out[ST_NAME_MAX + 1])
{
    char q[ST_QUOTE_MAX];
    const char *s;
    int r = st_doc_str(x->doc, node, &s, x->err);
    if (r < 0)
        return r;
    if (!st_name_ok(s))
        return st_doc_fail(x->doc, node, x->err, ST_EINVAL,
                           "%s cannot be a name: it must be 1 to %d bytes without spaces or "
                           "control characters",
                           st_quote(q, s), ST_NAME_MAX);
    memcpy(out, s, strlen(s) + 1);
    return 0;
}

static int need_name(in *x, const st_doc_node *map, const char *key, char out[ST_NAME_MAX + 1])
{
    const st_doc_node *node;
    int r = st_doc_need(x->doc, map, key, &node, x->err);
    return r < 0 ? r : read_name(x, node, out);
}

/* ---- what people write ----------------------------------------------------------------------- */

/* One row of a table: a key of a map, and where its number goes. */
typedef struct num {
    const char *key;
    int64_t hi;
    int64_t *to;
    bool percent, required;
} num;

static int read_nums(in *x, const st_doc_node *map, const num *nums, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const st_doc_node *node = st_doc_get(map, nums[i].key);
        int r = 0;
        if (!node && nums[i].required)
            return st_doc_need(x->doc, map, nums[i].key, &node, x->err);
        if (node)
            r = nums[i].percent ? read_percent(x, node, nums[i].hi, nums[i].to)
                                : read_dollars(x, node, nums[i].hi, nums[i].to);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_rates(in *x, const st_doc_node *node, st_rates *row)
{
    int r = st_doc_expect(x->doc, node, ST_DOC_MAP, x->err);
    if (r < 0)
        return r;
    for (int l = 0; l < ST_LEVEL_COUNT; l++)
        row->level_bp[l] = ST_BP;
    const num nums[] = {
        {"reserved", ST_RATE_MAX, &row->rate[ST_PAY_RESERVED], false, true},
        {"guaranteed", ST_RATE_MAX, &row->rate[ST_PAY_GUARANTEED], false, false},
        {"burst", ST_RATE_MAX, &row->rate[ST_PAY_BURST], false, true},
        {"on_demand", ST_RATE_MAX, &row->rate[ST_PAY_ON_DEMAND], false, false},
        {"booked", ST_RATE_MAX, &row->rate[ST_PAY_BOOKED], false, false},
        {"booking", ST_RATE_MAX, &row->rate[ST_PAY_WINDOW], false, false},
        {"whole", LEVEL_BP_MAX, &row->level_bp[ST_LEVEL_WHOLE], true, false},
        {"mig", LEVEL_BP_MAX, &row->level_bp[ST_LEVEL_MIG], true, false},
        {"mps", LEVEL_BP_MAX, &row->level_bp[ST_LEVEL_MPS], true, false},
        {"time", LEVEL_BP_MAX, &row->level_bp[ST_LEVEL_TIME], true, false},
    };
    r = read_nums(x, node, nums, ST_ARRAY_LEN(nums));
    if (r == 0)
        r = st_doc_check_unknown(x->doc, node, x->err);
    if (r == 0 && !st_doc_get(node, "on_demand"))
        row->rate[ST_PAY_ON_DEMAND] = row->rate[ST_PAY_BURST];
    return r;
}

/* What does not say its own price is a part of the dearest list price; use inside a window that has a price is free. */
static void default_rates(const st_doc_node *gpus, int64_t of_bp, st_price_book *b)
{
    int i = 0;
    for (const st_doc_node *n = gpus->child; n; n = n->next, i++) {
        int64_t *rate = b->rates[i].rate;
        if (!st_doc_get(n, "booked"))
            rate[ST_PAY_BOOKED] = b->booking.there ? 0 : rate[ST_PAY_GUARANTEED];
        if (b->booking.there && !st_doc_get(n, "booking"))
            rate[ST_PAY_WINDOW] = (int64_t)((st_i128)rate[ST_PAY_ON_DEMAND] * of_bp / ST_BP);
    }
}

static int read_gpus(in *x, const st_doc_node *map, st_price_book *b)
{
    bool any = false;
    int r = st_doc_expect(x->doc, map, ST_DOC_MAP, x->err);
    for (const st_doc_node *n = map->child; r == 0 && n; n = n->next) {
        char q[ST_QUOTE_MAX];
        if (b->nrates == ST_RATES_MAX)
            return st_doc_fail(x->doc, n, x->err, ST_ELIMIT, "more than %d GPU types",
                               ST_RATES_MAX);
        if (!st_name_ok(n->key))
            return st_doc_fail(x->doc, n, x->err, ST_EINVAL, "%s cannot be the name of a GPU type",
                               st_quote(q, n->key));
        st_rates *row = &b->rates[b->nrates++];
        memcpy(row->gpu, n->key, strlen(n->key) + 1);
        any = any || strcmp(n->key, "*") == 0;
        r = read_rates(x, n, row);
        b->booking.there = b->booking.there || st_doc_get(n, "booking");
    }
    if (r == 0 && !any)
        return st_doc_fail(x->doc, map, x->err, ST_EINVAL,
                           "there is no \"*\" for the GPU types that have no row of their own");
    return r;
}

static int read_topology(in *x, const st_doc_node *map, st_price_book *b)
{
    int r = st_doc_expect(x->doc, map, ST_DOC_MAP, x->err);
    for (int t = ST_TOPO_NONE + 1; r == 0 && t < ST_TOPO_COUNT; t++) {
        const num row = {st_topo_name((st_topo)t), TOPO_BP_MAX, &b->topo_bp[t], true, false};
        r = read_nums(x, map, &row, 1);
    }
    return r < 0 ? r : st_doc_check_unknown(x->doc, map, x->err);
}

static int read_piece(in *x, const st_doc_node *n, st_unit_price *u)
{
    char q[ST_QUOTE_MAX];
    int r = st_doc_expect(x->doc, n, ST_DOC_MAP, x->err);
    if (r < 0)
        return r;
    if (!st_name_ok(n->key))
        return st_doc_fail(x->doc, n, x->err, ST_EINVAL, "%s cannot be the name of a workload",
                           st_quote(q, n->key));
    memcpy(u->workload, n->key, strlen(n->key) + 1);
    const st_doc_node *frames = st_doc_get(n, "frames"), *minutes = st_doc_get(n, "minutes");
    if (!frames == !minutes)
        return st_doc_fail(x->doc, n, x->err, ST_EINVAL,
                           "%s needs a price for frames or one for minutes", st_quote(q, n->key));
    u->by = frames ? ST_PAY_FRAMES : ST_PAY_MINUTES;
    r = read_dollars(x, frames ? frames : minutes, ST_RATE_MAX, &u->rate);
    return r < 0 ? r : st_doc_check_unknown(x->doc, n, x->err);
}

static int read_pieces(in *x, const st_doc_node *map, st_price_book *b)
{
    int r = st_doc_expect(x->doc, map, ST_DOC_MAP, x->err);
    for (const st_doc_node *n = map->child; r == 0 && n; n = n->next) {
        if (b->nunits == ST_UNIT_PRICES_MAX)
            return st_doc_fail(x->doc, n, x->err, ST_ELIMIT, "more than %d workloads by piece",
                               ST_UNIT_PRICES_MAX);
        r = read_piece(x, n, &b->units[b->nunits++]);
    }
    return r;
}

/* {critical: 150%, best-effort: 60%} */
static int read_classes(in *x, const st_doc_node *map, st_price_book *b)
{
    int r = st_doc_expect(x->doc, map, ST_DOC_MAP, x->err);
    for (const st_doc_node *n = map->child; r == 0 && n; n = n->next) {
        char q[ST_QUOTE_MAX];
        if (b->nclasses == ST_CLASS_PRICES_MAX)
            return st_doc_fail(x->doc, n, x->err, ST_ELIMIT, "more than %d priority classes",
                               ST_CLASS_PRICES_MAX);
        if (!st_name_ok(n->key))
            return st_doc_fail(x->doc, n, x->err, ST_EINVAL,
                               "%s cannot be the name of a priority class", st_quote(q, n->key));
        st_class_price *c = &b->classes[b->nclasses++];
        memcpy(c->name, n->key, strlen(n->key) + 1);
        r = read_percent(x, n, CLASS_BP_MAX, &c->bp);
    }
    return r;
}

static int check_factors(in *x, const st_doc_node *root, const st_price_book *b)
{
    return st_price_factors_fit(b)
               ? 0
               : st_doc_fail(x->doc, root, x->err, ST_ERANGE,
                             "level, topology or idle, and class multiply to more than %lld times",
                             (long long)(ST_FACTOR_MAX / ST_BP));
}

static int read_credit(in *x, const st_doc_node *map, st_price_book *b)
{
    const num nums[] = {
        {"lost", ST_BP, &b->lost_bp, true, false},
        {"fault", ST_BP, &b->fault_bp, true, false},
    };
    int r = st_doc_expect(x->doc, map, ST_DOC_MAP, x->err);
    if (r == 0)
        r = read_nums(x, map, nums, ST_ARRAY_LEN(nums));
    return r < 0 ? r : st_doc_check_unknown(x->doc, map, x->err);
}

/* {24h: 5%, 7d: 12%}, in any order. */
static int read_steps(in *x, const st_doc_node *map, const char *key, st_steps *ret)
{
    const st_doc_node *table = st_doc_get(map, key);
    int r = table ? st_doc_expect(x->doc, table, ST_DOC_MAP, x->err) : 0;
    for (const st_doc_node *n = table ? table->child : NULL; r == 0 && n; n = n->next) {
        char q[ST_QUOTE_MAX];
        st_price_step s = {0};
        if (ret->n == ST_STEPS_MAX)
            return st_doc_fail(x->doc, n, x->err, ST_ELIMIT, "more than %d steps", ST_STEPS_MAX);
        if (st_parse_duration_ms(n->key, &s.ms, NULL) < 0 || s.ms < 0 || s.ms > STEP_MAX)
            return st_doc_fail(x->doc, n, x->err, ST_EPARSE,
                               "%s is not a length of time such as 24h or 7d, of at most 10 years",
                               st_quote(q, n->key));
        r = read_percent(x, n, ST_BP, &s.bp);
        int at = ret->n;
        while (at > 0 && ret->v[at - 1].ms > s.ms)
            at--;
        if (r == 0 && at > 0 && ret->v[at - 1].ms == s.ms)
            return st_doc_fail(x->doc, n, x->err, ST_EINVAL, "%s is there twice",
                               st_quote(q, n->key));
        memmove(&ret->v[at + 1], &ret->v[at], (size_t)(ret->n - at) * sizeof *ret->v);
        ret->v[at] = s;
        ret->n++;
    }
    return r;
}

static int read_booking(in *x, const st_doc_node *map, int64_t *of_bp, st_booking_prices *b)
{
    static const char *const keys[] = {"price", "term", "lead", "cancel", "lent", NULL};
    const num nums[] = {{"price", LEVEL_BP_MAX, of_bp, true, false},
                        {"lent", ST_BP, &b->lent_bp, true, false}};
    int r = st_doc_expect(x->doc, map, ST_DOC_MAP, x->err);
    if (r == 0)
        r = st_doc_check_keys(x->doc, map, keys, x->err);
    if (r == 0)
        r = read_nums(x, map, nums, ST_ARRAY_LEN(nums));
    b->there = true;
    if (r == 0)
        r = read_steps(x, map, "term", &b->term);
    if (r == 0)
        r = read_steps(x, map, "lead", &b->lead);
    return r < 0 ? r : read_steps(x, map, "cancel", &b->cancel);
}

static int read_book(in *x, const st_doc_node *root, int64_t now, st_price_book *b)
{
    static const char *const keys[] = {"classes", "prices",  "from",     "gpu",  "cpu",
                                       "ram",     "energy",  "topology", "idle", "credit",
                                       "pieces",  "booking", NULL};
    static const struct {
        const char *key;
        int (*read)(in *x, const st_doc_node *map, st_price_book *b);
    } parts[] = {{"topology", read_topology},
                 {"credit", read_credit},
                 {"pieces", read_pieces},
                 {"classes", read_classes}};
    const st_doc_node *gpus;
    int r = st_doc_check_keys(x->doc, root, keys, x->err);
    if (r == 0)
        r = need_name(x, root, "prices", b->name);
    if (r == 0)
        r = read_from(x, root, now, &b->from_ms);
    if (r == 0)
        r = st_doc_need(x->doc, root, "gpu", &gpus, x->err);
    if (r == 0)
        r = read_gpus(x, gpus, b);
    const num nums[] = {
        {"cpu", ST_RATE_MAX, &b->cpu, false, false},
        {"ram", ST_RATE_MAX, &b->ram, false, false},
        {"energy", ST_RATE_MAX, &b->energy, false, false},
        {"idle", TOPO_BP_MAX, &b->idle_bp, true, false},
    };
    b->lost_bp = b->fault_bp = ST_BP;
    if (r == 0)
        r = read_nums(x, root, nums, ST_ARRAY_LEN(nums));
    for (size_t i = 0; r == 0 && i < ST_ARRAY_LEN(parts); i++) {
        const st_doc_node *map = st_doc_get(root, parts[i].key);
        if (map)
            r = parts[i].read(x, map, b);
    }
    const st_doc_node *booking = st_doc_get(root, "booking");
    int64_t of_bp = ST_BP;
    if (r == 0 && booking)
        r = read_booking(x, booking, &of_bp, &b->booking);
    if (r < 0)
        return r;
    default_rates(gpus, of_bp, b);
    for (int i = 0; i < b->nrates; i++)
        if (b->rates[i].rate[ST_PAY_WINDOW] > ST_RATE_MAX)
            return st_doc_fail(x->doc, booking, x->err, ST_ERANGE,
                               "the price of a booking is more than %lld dollars",
                               (long long)(ST_RATE_MAX / 1000000));
    return check_factors(x, root, b);
}

static bool says_none(const st_doc_node *node)
{
    return node->kind == ST_DOC_SCALAR && strcmp(node->value, "none") == 0;
}

static int read_warn(in *x, const st_doc_node *list, st_price_plan *p)
{
    int r = st_doc_expect(x->doc, list, ST_DOC_SEQ, x->err);
    p->nwarn = 0;
    for (const st_doc_node *n = list->child; r == 0 && n; n = n->next) {
        if (p->nwarn == (int)ST_ARRAY_LEN(p->warn_bp))
            return st_doc_fail(x->doc, n, x->err, ST_ELIMIT, "more than %zu thresholds",
                               ST_ARRAY_LEN(p->warn_bp));
        r = read_percent(x, n, WARN_BP_MAX, &p->warn_bp[p->nwarn]);
        if (r == 0 && p->warn_bp[p->nwarn] <= (p->nwarn ? p->warn_bp[p->nwarn - 1] : 0))
            return st_doc_fail(x->doc, n, x->err, ST_EINVAL,
                               "thresholds are above 0%% and each is above the one before");
        p->nwarn++;
    }
    return r;
}

static int read_at_cap(in *x, const st_doc_node *node, st_price_plan *p)
{
    char q[ST_QUOTE_MAX];
    const char *s;
    int r = st_doc_str(x->doc, node, &s, x->err);
    for (int i = 0; r == 0 && i < ST_AT_CAP_COUNT; i++) {
        if (strcmp(s, st_at_cap_name((st_at_cap)i)) == 0) {
            p->at_cap = (st_at_cap)i;
            return 0;
        }
    }
    return r < 0 ? r
                 : st_doc_fail(x->doc, node, x->err, ST_EINVAL,
                               "%s is not what a cap can do: refuse, warn or stop", st_quote(q, s));
}

static int read_time(in *x, const st_doc_node *node, int64_t lo, int64_t hi, int64_t *ret)
{
    char a[ST_FMT_MAX], b[ST_FMT_MAX];
    int64_t ms = 0;
    int r = st_doc_duration_ms(x->doc, node, &ms, x->err);
    if (r == 0 && (ms < lo || ms > hi))
        return st_doc_fail(x->doc, node, x->err, ST_ERANGE, "%s is from %s to %s", node->key,
                           st_fmt_duration(a, lo), st_fmt_duration(b, hi));
    *ret = ms;
    return r;
}

static int read_cap_times(in *x, const st_doc_node *root, st_price_plan *p)
{
    const st_doc_node *node;
    int r = 0;
    if ((node = st_doc_get(root, "at_cap")))
        r = read_at_cap(x, node, p);
    if (r == 0 && (node = st_doc_get(root, "grace")))
        r = read_time(x, node, 0, GRACE_MAX, &p->grace_ms);
    if (r == 0 && (node = st_doc_get(root, "hold")))
        r = read_time(x, node, HOLD_MIN, HOLD_MAX, &p->hold_ms);
    return r;
}

static int read_plan(in *x, const st_doc_node *root, int64_t now, st_price_plan *p)
{
    static const char *const keys[] = {"account", "from",  "chargeback", "discount",
                                       "burst",   "cap",   "warn",       "budget",
                                       "at_cap",  "grace", "hold",       NULL};
    const st_doc_node *node;
    int r = st_doc_check_keys(x->doc, root, keys, x->err);
    /* "" is the cluster: what applies to all who have nothing of their own. So is none, unless whoever sends it says
     * otherwise. */
    if (r == 0 && (node = st_doc_get(root, "account")) &&
        !(node->kind == ST_DOC_SCALAR && node->quoted && !node->value[0]))
        r = read_name(x, node, p->account);
    if (r == 0)
        r = read_from(x, root, now, &p->from_ms);
    if (r == 0 && (node = st_doc_get(root, "chargeback")))
        r = st_doc_bool(x->doc, node, &p->chargeback, x->err);
    if (r == 0 && (node = st_doc_get(root, "discount")))
        r = read_percent(x, node, ST_BP, &p->discount_bp);
    if (r == 0 && (node = st_doc_get(root, "burst")) && !says_none(node))
        r = st_doc_milli(x->doc, node, 0, ST_QTY_MAX, &p->burst_m, x->err);
    if (r == 0 && (node = st_doc_get(root, "cap")) && !says_none(node))
        r = read_dollars(x, node, ST_AMOUNT_MAX, &p->cap_udollars);
    if (r == 0 && (node = st_doc_get(root, "budget")) && !says_none(node))
        r = read_dollars(x, node, ST_AMOUNT_MAX, &p->budget_udollars);
    if (r == 0 && (node = st_doc_get(root, "warn")))
        r = read_warn(x, node, p);
    return r < 0 ? r : read_cap_times(x, root, p);
}

/* ---- the canonical form ------------------------------------------------------------------------ */

static int exact(in *x, const st_doc_node *map, const char *key, int64_t lo, int64_t hi,
                 int64_t *ret)
{
    const st_doc_node *node;
    int r = st_doc_need(x->doc, map, key, &node, x->err);
    return r < 0 ? r : st_doc_i64(x->doc, node, lo, hi, ret, x->err);
}

static int exact_list(in *x, const st_doc_node *list, int64_t hi, int64_t *to, int n)
{
    int r = st_doc_expect(x->doc, list, ST_DOC_SEQ, x->err);
    if (r == 0 && list->nchild != n)
        return st_doc_fail(x->doc, list, x->err, ST_EINVAL, "a list of %d numbers is wanted", n);
    const st_doc_node *node = list->child;
    for (int i = 0; r == 0 && i < n; i++, node = node->next)
        r = st_doc_i64(x->doc, node, 0, hi, &to[i], x->err);
    return r;
}

static int exact_rates(in *x, const st_doc_node *list, st_price_book *b)
{
    int r = st_doc_expect(x->doc, list, ST_DOC_SEQ, x->err);
    for (const st_doc_node *n = list->child; r == 0 && n; n = n->next) {
        if (n->kind != ST_DOC_SEQ || n->nchild != 3 || b->nrates == ST_RATES_MAX)
            return st_doc_fail(x->doc, n, x->err, ST_EINVAL, "no row of rates");
        st_rates *row = &b->rates[b->nrates++];
        r = read_name(x, n->child, row->gpu);
        for (int i = 0; r == 0 && i < b->nrates - 1; i++)
            if (strcmp(b->rates[i].gpu, row->gpu) == 0)
                r = st_doc_fail(x->doc, n, x->err, ST_EINVAL, "a GPU type twice");
        if (r == 0)
            r = exact_list(x, n->child->next, ST_RATE_MAX, row->rate, ST_PAY_BOOKED + 1);
        if (r == 0)
            r = exact_list(x, n->child->next->next, LEVEL_BP_MAX, row->level_bp, ST_LEVEL_COUNT);
    }
    if (r == 0 && !st_price_rates(b, "*"))
        return st_doc_fail(x->doc, list, x->err, ST_EINVAL, "no row for \"*\"");
    return r;
}

static int exact_units(in *x, const st_doc_node *list, st_price_book *b)
{
    int r = st_doc_expect(x->doc, list, ST_DOC_SEQ, x->err);
    for (const st_doc_node *n = list->child; r == 0 && n; n = n->next) {
        if (n->kind != ST_DOC_SEQ || n->nchild != 3 || b->nunits == ST_UNIT_PRICES_MAX)
            return st_doc_fail(x->doc, n, x->err, ST_EINVAL, "no price by piece");
        const char *by;
        st_unit_price *u = &b->units[b->nunits++];
        r = read_name(x, n->child, u->workload);
        if (r == 0 && st_price_unit(b, u->workload) != u)
            r = st_doc_fail(x->doc, n, x->err, ST_EINVAL, "a workload twice");
        if (r == 0)
            r = st_doc_str(x->doc, n->child->next, &by, x->err);
        if (r == 0 && strcmp(by, "frames") != 0 && strcmp(by, "minutes") != 0)
            r = st_doc_fail(x->doc, n, x->err, ST_EINVAL, "a price by frames or by minutes only");
        if (r < 0)
            return r;
        u->by = by[0] == 'f' ? ST_PAY_FRAMES : ST_PAY_MINUTES;
        r = st_doc_i64(x->doc, n->child->next->next, 0, ST_RATE_MAX, &u->rate, x->err);
    }
    return r;
}

static int exact_classes(in *x, const st_doc_node *root, st_price_book *b)
{
    const st_doc_node *list = st_doc_get(root, "classes");
    int r = list ? st_doc_expect(x->doc, list, ST_DOC_SEQ, x->err) : 0;
    for (const st_doc_node *n = list ? list->child : NULL; r == 0 && n; n = n->next) {
        if (n->kind != ST_DOC_SEQ || n->nchild != 2 || b->nclasses == ST_CLASS_PRICES_MAX)
            return st_doc_fail(x->doc, n, x->err, ST_EINVAL, "no factor of a class");
        st_class_price *c = &b->classes[b->nclasses++];
        r = read_name(x, n->child, c->name);
        for (int i = 0; r == 0 && i < b->nclasses - 1; i++)
            if (strcmp(b->classes[i].name, c->name) == 0)
                r = st_doc_fail(x->doc, n, x->err, ST_EINVAL, "a class twice");
        if (r == 0)
            r = st_doc_i64(x->doc, n->child->next, 0, CLASS_BP_MAX, &c->bp, x->err);
    }
    return r < 0 || !list ? r : check_factors(x, list, b);
}

static int exact_steps(in *x, const st_doc_node *map, const char *key, st_steps *ret)
{
    const st_doc_node *list;
    int r = st_doc_need(x->doc, map, key, &list, x->err);
    if (r == 0)
        r = st_doc_expect(x->doc, list, ST_DOC_SEQ, x->err);
    if (r == 0 && list->nchild > ST_STEPS_MAX)
        return st_doc_fail(x->doc, list, x->err, ST_EINVAL, "too many steps");
    for (const st_doc_node *n = r == 0 ? list->child : NULL; r == 0 && n; n = n->next) {
        int64_t v[2] = {0};
        r = exact_list(x, n, STEP_MAX, v, 2);
        if (r == 0 && (v[1] > ST_BP || (ret->n > 0 && v[0] <= ret->v[ret->n - 1].ms)))
            return st_doc_fail(x->doc, n, x->err, ST_EINVAL, "no step of a table");
        ret->v[ret->n++] = (st_price_step){v[0], v[1]};
    }
    return r;
}

static int exact_booking(in *x, const st_doc_node *root, st_price_book *b)
{
    const st_doc_node *map = st_doc_get(root, "booking"), *rates;
    int64_t rate[ST_RATES_MAX] = {0};
    if (!map)
        return 0;
    b->booking.there = true;
    int r = st_doc_expect(x->doc, map, ST_DOC_MAP, x->err);
    if (r < 0 || (r = st_doc_need(x->doc, map, "rates", &rates, x->err)) < 0 ||
        (r = exact_list(x, rates, ST_RATE_MAX, rate, b->nrates)) < 0 ||
        (r = exact_steps(x, map, "term", &b->booking.term)) < 0 ||
        (r = exact_steps(x, map, "lead", &b->booking.lead)) < 0 ||
        (r = exact_steps(x, map, "cancel", &b->booking.cancel)) < 0)
        return r;
    const st_doc_node *lent = st_doc_get(map, "lent_bp");
    if (lent && (r = st_doc_i64(x->doc, lent, 1, ST_BP, &b->booking.lent_bp, x->err)) < 0)
        return r;
    for (int i = 0; i < b->nrates; i++)
        b->rates[i].rate[ST_PAY_WINDOW] = rate[i];
    return st_doc_check_unknown(x->doc, map, x->err);
}

static int exact_book(in *x, const st_doc_node *root, st_price_book *b)
{
    const st_doc_node *rates, *topo, *units;
    int r = need_name(x, root, "name", b->name);
    if (r < 0 || (r = exact(x, root, "from_ms", 0, MS_MAX, &b->from_ms)) < 0 ||
        (r = st_doc_need(x->doc, root, "rates", &rates, x->err)) < 0 ||
        (r = exact_rates(x, rates, b)) < 0 ||
        (r = exact(x, root, "cpu", 0, ST_RATE_MAX, &b->cpu)) < 0 ||
        (r = exact(x, root, "ram", 0, ST_RATE_MAX, &b->ram)) < 0 ||
        (r = exact(x, root, "energy", 0, ST_RATE_MAX, &b->energy)) < 0 ||
        (r = st_doc_need(x->doc, root, "topo_bp", &topo, x->err)) < 0 ||
        (r = exact_list(x, topo, TOPO_BP_MAX, b->topo_bp, ST_TOPO_COUNT)) < 0 ||
        (r = exact(x, root, "idle_bp", 0, TOPO_BP_MAX, &b->idle_bp)) < 0 ||
        (r = exact(x, root, "lost_bp", 0, ST_BP, &b->lost_bp)) < 0 ||
        (r = exact(x, root, "fault_bp", 0, ST_BP, &b->fault_bp)) < 0 ||
        (r = st_doc_need(x->doc, root, "units", &units, x->err)) < 0 ||
        (r = exact_units(x, units, b)) < 0 || (r = exact_classes(x, root, b)) < 0 ||
        (r = exact_booking(x, root, b)) < 0)
        return r;
    return st_doc_check_unknown(x->doc, root, x->err);
}

static int exact_plan(in *x, const st_doc_node *root, st_price_plan *p)
{
    const st_doc_node *account, *chargeback, *warn;
    int r = st_doc_need(x->doc, root, "account", &account, x->err);
    if (r == 0 && !(account->kind == ST_DOC_SCALAR && !account->value[0]))
        r = read_name(x, account, p->account);
    if (r < 0 || (r = exact(x, root, "from_ms", 0, MS_MAX, &p->from_ms)) < 0 ||
        (r = st_doc_need(x->doc, root, "chargeback", &chargeback, x->err)) < 0 ||
        (r = st_doc_bool(x->doc, chargeback, &p->chargeback, x->err)) < 0 ||
        (r = exact(x, root, "discount_bp", 0, ST_BP, &p->discount_bp)) < 0 ||
        (r = exact(x, root, "burst_m", ST_UNSET, ST_QTY_MAX, &p->burst_m)) < 0 ||
        (r = exact(x, root, "cap", ST_UNSET, ST_AMOUNT_MAX, &p->cap_udollars)) < 0 ||
        (r = st_doc_need(x->doc, root, "warn_bp", &warn, x->err)) < 0)
        return r;
    if (warn->nchild > (int)ST_ARRAY_LEN(p->warn_bp))
        return st_doc_fail(x->doc, warn, x->err, ST_EINVAL, "too many thresholds");
    p->nwarn = warn->nchild;
    if ((r = exact_list(x, warn, WARN_BP_MAX, p->warn_bp, p->nwarn)) < 0 ||
        (r = exact(x, root, "budget", ST_UNSET, ST_AMOUNT_MAX, &p->budget_udollars)) < 0)
        return r;
    const st_doc_node *at_cap = st_doc_get(root, "at_cap");
    if (at_cap && ((r = read_at_cap(x, at_cap, p)) < 0 ||
                   (r = exact(x, root, "grace_ms", 0, GRACE_MAX, &p->grace_ms)) < 0 ||
                   (r = exact(x, root, "hold_ms", HOLD_MIN, HOLD_MAX, &p->hold_ms)) < 0))
        return r;
    return st_doc_check_unknown(x->doc, root, x->err);
}

/* ---- both ------------------------------------------------------------------------------------- */

static int open_doc(const char *name, const char *text, size_t len, st_doc **ret, st_err *err)
{
    int r = st_doc_parse_limited(name, text, len, &limits, ret, err);
    return r < 0 ? r : st_doc_expect(*ret, st_doc_root(*ret), ST_DOC_MAP, err);
}

int st_price_book_read(const char *name, const char *text, size_t len, int64_t now,
                       st_price_book *ret, st_err *err)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    st_price_book b = {0};
    int r = open_doc(name, text, len, &doc, err);
    if (r < 0)
        return r;
    const st_doc_node *root = st_doc_root(doc);
    in x = {doc, err};
    r = st_doc_get(root, "from_ms") ? exact_book(&x, root, &b) : read_book(&x, root, now, &b);
    if (r == 0)
        *ret = b;
    return r;
}

int st_price_plan_read(const char *name, const char *text, size_t len, int64_t now,
                       st_price_plan *ret, st_err *err)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    st_price_plan p = {.burst_m = ST_UNSET,
                       .cap_udollars = ST_UNSET,
                       .budget_udollars = ST_UNSET,
                       .warn_bp = {5000, 8000, 10000},
                       .nwarn = 3,
                       .grace_ms = ST_CAP_GRACE_MS,
                       .hold_ms = ST_CAP_HOLD_MS};
    int r = open_doc(name, text, len, &doc, err);
    if (r < 0)
        return r;
    const st_doc_node *root = st_doc_root(doc);
    in x = {doc, err};
    if (st_doc_get(root, "from_ms")) {
        memset(p.warn_bp, 0, sizeof p.warn_bp);
        r = exact_plan(&x, root, &p);
    } else {
        r = read_plan(&x, root, now, &p);
    }
    if (r == 0)
        *ret = p;
    return r;
}
