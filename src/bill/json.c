/* A bill as JSON, for the API and the CLI. Amounts are integers of micro-dollars, quantities are as they are counted,
 * both under names that say so: nothing is lost in a reader's floating point. */
#include <string.h>

#include "base/quote.h"
#include "bill/bill.h"
#include "proof/strict.h"

static void put_i64(st_strbuf *out, const char *key, int64_t v)
{
    st_strbuf_addf(out, ",\"%s\":%lld", key, (long long)v);
}

static void put_known(st_strbuf *out, const char *key, int64_t v, bool known)
{
    if (known)
        put_i64(out, key, v);
    else
        st_strbuf_addf(out, ",\"%s\":null", key);
}

static void put_str(st_strbuf *out, const char *key, const char *text)
{
    st_strbuf_addf(out, ",\"%s\":", key);
    st_quote_json(out, text);
}

static void put_utc(st_strbuf *out, const char *key, int64_t ms)
{
    char buf[ST_UTC_MAX];

    put_str(out, key, st_utc(buf, ms));
}

static void put_line(const st_bill_line *l, st_strbuf *out)
{
    char buf[ST_MONEY_MAX];

    st_strbuf_add(out, "{\"account\":");
    st_quote_json(out, l->account);
    put_str(out, "component", st_component_name(l->what));
    put_str(out, "unit", st_component_unit(l->what));
    put_str(out, "gpu", l->gpu);
    put_str(out, "level", *l->gpu ? st_level_name(l->level) : "");
    put_i64(out, "quantity", l->quantity);
    put_i64(out, "quantity_per_unit", st_component_per(l->what));
    put_known(out, "rate_udollars", l->rate, l->rate != ST_UNSET);
    put_known(out, "factor_bp", l->factor_bp, l->factor_bp != ST_UNSET);
    put_i64(out, "amount_udollars", l->amount);
    put_str(out, "amount", st_money(buf, l->amount));
    put_i64(out, "owed_udollars", l->owed);
    put_i64(out, "entries", l->entries);
    put_i64(out, "first_entry", l->first_seq);
    put_i64(out, "last_entry", l->last_seq);
    st_strbuf_addc(out, '}');
}

static void put_use(const st_bill_use *u, st_strbuf *out)
{
    st_strbuf_add(out, "{\"account\":");
    st_quote_json(out, u->account);
    put_i64(out, "reserved_mgpu_ms", u->reserved);
    put_i64(out, "guaranteed_mgpu_ms", u->guaranteed);
    put_i64(out, "burst_mgpu_ms", u->burst);
    put_i64(out, "on_demand_mgpu_ms", u->on_demand);
    put_i64(out, "booked_mgpu_ms", u->booked);
    put_i64(out, "seen_mgpu_ms", u->seen);
    put_i64(out, "busy_mgpu_ms", u->busy);
    put_i64(out, "energy_mj", u->energy_mj);
    put_i64(out, "lost_mgpu_ms", u->lost);
    put_i64(out, "jobs", u->jobs);
    put_i64(out, "first_entry", u->first_seq);
    put_i64(out, "last_entry", u->last_seq);
    st_strbuf_addc(out, '}');
}

static void put_idle(const st_idle_floors *idle, st_strbuf *out)
{
    st_strbuf_add(out, ",\"idle_reservations\":[");
    for (size_t i = 0; idle && i < idle->n; i++) {
        st_strbuf_add(out, i > 0 ? ",{\"account\":" : "{\"account\":");
        st_quote_json(out, idle->v[i].account);
        put_i64(out, "reserved_mgpu_ms", idle->v[i].reserved);
        put_i64(out, "unused_mgpu_ms", idle->v[i].unused);
        put_i64(out, "cost_udollars", idle->v[i].cost);
        st_strbuf_addc(out, '}');
    }
    st_strbuf_addc(out, ']');
}

void st_export_bill_json(const st_bill *bill, const st_export_about *about, st_strbuf *out)
{
    char buf[ST_MONEY_MAX];

    st_strbuf_add(out, "{\"account\":");
    st_quote_json(out, bill->account);
    put_str(out, "cluster", about->cluster);
    put_str(out, "period", bill->period.name);
    put_utc(out, "from", bill->period.from_ms);
    put_utc(out, "to", bill->period.to_ms);
    put_str(out, "zone", about->zone);
    put_utc(out, "made", about->made_ms);
    st_strbuf_addf(out, ",\"closed\":%s,\"chargeback\":%s", bill->closed ? "true" : "false",
                   bill->chargeback ? "true" : "false");
    if (bill->void_to_ms > 0) {
        char from[ST_UTC_MAX], to[ST_UTC_MAX];

        st_strbuf_addf(out, ",\"restored\":{\"from\":\"%s\",\"at\":\"%s\"}",
                       st_utc(from, bill->void_from_ms), st_utc(to, bill->void_to_ms));
    }
    put_i64(out, "accounts_charged", bill->charged);
    put_i64(out, "accounts_shown", bill->shown);
    put_str(out, "currency", about->currency);
    put_i64(out, "total_udollars", bill->total);
    put_str(out, "total", st_money(buf, bill->total));
    put_i64(out, "owed_udollars", bill->owed);
    put_str(out, "owed", st_money(buf, bill->owed));
    if (about->key) {
        st_strbuf_add(out, ",\"key\":\"");
        st_hex_write(about->key, 32, out);
        st_strbuf_addc(out, '"');
    }
    st_strbuf_add(out, ",\"lines\":[");
    for (size_t i = 0; i < bill->lines.n; i++) {
        st_strbuf_add(out, i > 0 ? "," : "");
        put_line(&bill->lines.v[i], out);
    }
    st_strbuf_add(out, "],\"uses\":[");
    for (size_t i = 0; i < bill->uses.n; i++) {
        st_strbuf_add(out, i > 0 ? "," : "");
        put_use(&bill->uses.v[i], out);
    }
    st_strbuf_addc(out, ']');
    put_idle(about->idle, out);
    st_strbuf_addc(out, '}');
}
