/* Price books and plans: their canonical form, and which row of a book is meant. */
#include <string.h>

#include "base/quote.h"
#include "ledger/price.h"

#define LEVELS_ONE                 \
    {                              \
        ST_BP, ST_BP, ST_BP, ST_BP \
    }
const st_price_book st_price_free = {
    .rates = {{.gpu = "*", .level_bp = LEVELS_ONE}},
    .nrates = 1,
};
_Static_assert(ST_LEVEL_COUNT == 4, "a factor of 1 for each level");

const st_rates *st_price_rates(const st_price_book *book, const char *gpu)
{
    const st_rates *any = NULL;
    for (int i = 0; i < book->nrates; i++) {
        if (strcmp(book->rates[i].gpu, gpu) == 0)
            return &book->rates[i];
        if (strcmp(book->rates[i].gpu, "*") == 0)
            any = &book->rates[i];
    }
    return any;
}

const st_unit_price *st_price_unit(const st_price_book *book, const char *workload)
{
    for (int i = 0; workload && i < book->nunits; i++)
        if (strcmp(book->units[i].workload, workload) == 0)
            return &book->units[i];
    return NULL;
}

int64_t st_price_class_bp(const st_price_book *book, const char *name)
{
    for (int i = 0; name && i < book->nclasses; i++)
        if (strcmp(book->classes[i].name, name) == 0)
            return book->classes[i].bp;
    return ST_BP;
}

bool st_price_factors_fit(const st_price_book *b)
{
    int64_t level = ST_BP, more = ST_MAX(b->idle_bp, ST_BP), class = ST_BP;
    for (int i = 0; i < b->nrates; i++)
        for (int l = 0; l < ST_LEVEL_COUNT; l++)
            level = ST_MAX(level, b->rates[i].level_bp[l]);
    for (int t = 0; t < ST_TOPO_COUNT; t++)
        more = ST_MAX(more, b->topo_bp[t]);
    for (int i = 0; i < b->nclasses; i++)
        class = ST_MAX(class, b->classes[i].bp);
    return b->nclasses == 0 || level * more / ST_BP * class / ST_BP <= ST_FACTOR_MAX;
}

bool st_price_decimal(const char *s, size_t n, int places, int64_t *ret)
{
    int64_t v = 0;
    size_t i = 0;
    int after = -1; /* digits behind the point */
    if (n == 0 || s[0] == '.' || s[n - 1] == '.')
        return false;
    for (; i < n; i++) {
        if (s[i] == '.' && after < 0) {
            after = 0;
            continue;
        }
        if (s[i] < '0' || s[i] > '9' || (after >= 0 && ++after > places))
            return false;
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, s[i] - '0', &v))
            return false;
    }
    for (int k = after < 0 ? 0 : after; k < places; k++)
        if (__builtin_mul_overflow(v, 10, &v))
            return false;
    *ret = v;
    return true;
}

int64_t st_steps_reached(const st_steps *s, int64_t ms)
{
    int64_t bp = 0;
    for (int i = 0; i < s->n && s->v[i].ms <= ms; i++)
        bp = s->v[i].bp;
    return bp;
}

int64_t st_steps_above(const st_steps *s, int64_t ms)
{
    for (int i = 0; i < s->n; i++)
        if (ms < s->v[i].ms)
            return s->v[i].bp;
    return 0;
}

static void add_list(st_strbuf *out, const int64_t *v, int n)
{
    for (int i = 0; i < n; i++)
        st_strbuf_addf(out, "%c%lld", i ? ',' : '[', (long long)v[i]);
    st_strbuf_add(out, n ? "]" : "[]");
}

static void add_steps(st_strbuf *out, const char *key, const st_steps *s)
{
    st_strbuf_addf(out, ",\"%s\":[", key);
    for (int i = 0; i < s->n; i++)
        st_strbuf_addf(out, "%s[%lld,%lld]", i ? "," : "", (long long)s->v[i].ms,
                       (long long)s->v[i].bp);
    st_strbuf_addc(out, ']');
}

/* Books of the time before bookings had a price are written as they were. */
static void add_booking(st_strbuf *out, const st_price_book *b)
{
    if (!b->booking.there)
        return;
    st_strbuf_add(out, ",\"booking\":{\"rates\":[");
    for (int i = 0; i < b->nrates; i++)
        st_strbuf_addf(out, "%s%lld", i ? "," : "", (long long)b->rates[i].rate[ST_PAY_WINDOW]);
    st_strbuf_addc(out, ']');
    add_steps(out, "term", &b->booking.term);
    add_steps(out, "lead", &b->booking.lead);
    add_steps(out, "cancel", &b->booking.cancel);
    if (b->booking.lent_bp > 0)
        st_strbuf_addf(out, ",\"lent_bp\":%lld", (long long)b->booking.lent_bp);
    st_strbuf_addc(out, '}');
}

/* Likewise of books of the time before there were classes. */
static void add_classes(st_strbuf *out, const st_price_book *b)
{
    if (b->nclasses == 0)
        return;
    for (int i = 0; i < b->nclasses; i++) {
        st_strbuf_add(out, i ? ",[" : ",\"classes\":[[");
        st_quote_json(out, b->classes[i].name);
        st_strbuf_addf(out, ",%lld]", (long long)b->classes[i].bp);
    }
    st_strbuf_addc(out, ']');
}

void st_price_book_write(const st_price_book *b, st_strbuf *out)
{
    st_strbuf_add(out, "{\"name\":");
    st_quote_json(out, b->name);
    st_strbuf_addf(out, ",\"from_ms\":%lld,\"rates\":[", (long long)b->from_ms);
    for (int i = 0; i < b->nrates; i++) {
        st_strbuf_add(out, i ? ",[" : "[");
        st_quote_json(out, b->rates[i].gpu);
        st_strbuf_addc(out, ',');
        add_list(out, b->rates[i].rate, ST_PAY_BOOKED + 1);
        st_strbuf_addc(out, ',');
        add_list(out, b->rates[i].level_bp, ST_LEVEL_COUNT);
        st_strbuf_addc(out, ']');
    }
    st_strbuf_addf(out,
                   "],\"cpu\":%lld,\"ram\":%lld,\"energy\":%lld,\"topo_bp\":", (long long)b->cpu,
                   (long long)b->ram, (long long)b->energy);
    add_list(out, b->topo_bp, ST_TOPO_COUNT);
    st_strbuf_addf(out, ",\"idle_bp\":%lld,\"lost_bp\":%lld,\"fault_bp\":%lld,\"units\":[",
                   (long long)b->idle_bp, (long long)b->lost_bp, (long long)b->fault_bp);
    for (int i = 0; i < b->nunits; i++) {
        st_strbuf_add(out, i ? ",[" : "[");
        st_quote_json(out, b->units[i].workload);
        st_strbuf_addf(out, ",\"%s\",%lld]", st_component_name(b->units[i].by),
                       (long long)b->units[i].rate);
    }
    st_strbuf_addc(out, ']');
    add_classes(out, b);
    add_booking(out, b);
    st_strbuf_addc(out, '}');
}

void st_price_plan_write(const st_price_plan *p, st_strbuf *out)
{
    st_strbuf_add(out, "{\"account\":");
    st_quote_json(out, p->account);
    st_strbuf_addf(out,
                   ",\"from_ms\":%lld,\"chargeback\":%s,\"discount_bp\":%lld,\"burst_m\":%lld,"
                   "\"cap\":%lld,\"warn_bp\":",
                   (long long)p->from_ms, p->chargeback ? "true" : "false",
                   (long long)p->discount_bp, (long long)p->burst_m, (long long)p->cap_udollars);
    add_list(out, p->warn_bp, p->nwarn);
    st_strbuf_addf(out, ",\"budget\":%lld", (long long)p->budget_udollars);
    /* Plans of the time before there was a choice are written as they were. */
    if (p->at_cap != ST_AT_CAP_REFUSE || p->grace_ms != ST_CAP_GRACE_MS ||
        p->hold_ms != ST_CAP_HOLD_MS)
        st_strbuf_addf(out, ",\"at_cap\":\"%s\",\"grace_ms\":%lld,\"hold_ms\":%lld",
                       st_at_cap_name(p->at_cap), (long long)p->grace_ms, (long long)p->hold_ms);
    st_strbuf_addc(out, '}');
}

const char *st_at_cap_name(st_at_cap at)
{
    static const char *const names[] = {
#define X(id, name, what) [id] = name,
        ST_AT_CAP_TABLE(X)
#undef X
    };
    return names[at];
}
