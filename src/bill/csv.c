/* Bills and entries as CSV (RFC 4180): a header, commas, CR LF. Amounts are dollars with all their decimals, quantities
 * are given twice: in the unit of the price with nine decimals, and exactly, in the unit that is counted. */
#include <stdio.h>

#include "bill/bill.h"

static void put_i64(st_strbuf *out, int64_t v)
{
    st_strbuf_addf(out, ",%lld", (long long)v);
}

static void put_known(st_strbuf *out, int64_t v, bool known)
{
    if (known)
        put_i64(out, v);
    else
        st_strbuf_addc(out, ',');
}

static void put_money(st_strbuf *out, int64_t udollars)
{
    char buf[ST_MONEY_MAX];

    st_csv_field(out, st_money(buf, udollars), false);
}

static void put_quantity(st_strbuf *out, st_component what, int64_t quantity)
{
    char buf[ST_RATIO_MAX];

    st_csv_field(out, st_ratio(buf, quantity, st_component_per(what), 9), false);
    st_csv_field(out, st_component_unit(what), false);
    put_i64(out, quantity);
}

void st_export_bill_csv(const st_bill *bill, const st_export_about *about, st_strbuf *out)
{
    char factor[ST_RATIO_MAX];

    st_strbuf_add(out,
                  "period,account,component,gpu,level,quantity,unit,counted,rate,factor,amount,"
                  "currency,entries,first_entry,last_entry\r\n");
    for (size_t i = 0; i < bill->lines.n; i++) {
        const st_bill_line *l = &bill->lines.v[i];

        st_csv_field(out, bill->period.name, true);
        st_csv_field(out, l->account, false);
        st_csv_field(out, st_component_name(l->what), false);
        st_csv_field(out, l->gpu, false);
        st_csv_field(out, *l->gpu ? st_level_name(l->level) : "", false);
        put_quantity(out, l->what, l->quantity);
        if (l->rate == ST_UNSET)
            st_strbuf_addc(out, ',');
        else
            put_money(out, l->rate);
        st_csv_field(
            out, l->factor_bp == ST_UNSET ? NULL : st_ratio(factor, l->factor_bp, ST_BP, 4), false);
        put_money(out, l->amount);
        st_csv_field(out, about->currency, false);
        put_i64(out, l->entries);
        put_i64(out, l->first_seq);
        put_i64(out, l->last_seq);
        st_strbuf_add(out, "\r\n");
    }
}

/* ---- entries ------------------------------------------------------------------------------------ */

static bool is_stay(const st_entry *e)
{
    return e->kind == ST_ENTRY_USAGE || e->kind == ST_ENTRY_FIX;
}

static bool is_piece(const st_entry *e)
{
    return is_stay(e) || e->kind == ST_ENTRY_LOST;
}

static bool has_span(const st_entry *e)
{
    return is_piece(e) || e->kind == ST_ENTRY_RESERVE || e->kind == ST_ENTRY_FLEET ||
           e->kind == ST_ENTRY_CLOSE || e->kind == ST_ENTRY_RESTORED ||
           e->kind == ST_ENTRY_BOOKING || e->kind == ST_ENTRY_WINDOW;
}

void st_export_entries_csv_head(st_strbuf *out)
{
    st_strbuf_add(out,
                  "account,entry,kind,at,from,to,job,stay,piece,user,workload,gpu,level,profile,"
                  "basis,topology,tasks,ended,gpu_m,share,held,cpu,ram,seen,busy,energy_mj,lost,"
                  "pieces,fixes,reason,by,component,quantity,unit,counted,rate,factor,carry_in,"
                  "amount,carry,contra,booking,class\r\n");
}

static void put_utc(st_strbuf *out, int64_t ms, bool known)
{
    char buf[ST_UTC_MAX];

    st_csv_field(out, known ? st_utc(buf, ms) : NULL, false);
}

static void put_usage(const st_entry *e, st_strbuf *out)
{
    bool stay = is_stay(e), piece = is_piece(e), fix = e->kind == ST_ENTRY_FIX;
    bool floor =
        e->kind == ST_ENTRY_RESERVE || e->kind == ST_ENTRY_FLOOR || e->kind == ST_ENTRY_BOOKING;

    st_csv_field(out, e->job, false);
    put_known(out, e->stay, piece);
    put_known(out, e->piece, piece);
    st_csv_field(out, e->user, false);
    st_csv_field(out, e->workload, false);
    st_csv_field(out, e->gpu, false);
    st_csv_field(out, piece && e->gpu ? st_level_name(e->level) : NULL, false);
    st_csv_field(out, e->profile, false);
    st_csv_field(out, piece ? st_basis_name(e->basis) : NULL, false);
    st_csv_field(out, stay && e->topo != ST_TOPO_NONE ? st_topo_name(e->topo) : NULL, false);
    put_known(out, e->tasks, stay);
    st_csv_field(out, piece ? st_cut_name(e->cut) : NULL, false);
    put_known(out, e->gpu_m, stay || floor);
    put_known(out, e->share, stay || e->kind == ST_ENTRY_RESERVE || e->kind == ST_ENTRY_WINDOW);
    put_known(out, e->held, stay);
    put_known(out, e->cpu, stay);
    put_known(out, e->ram, stay);
    put_known(out, e->seen, stay && (fix || e->seen != ST_UNKNOWN));
    put_known(out, e->busy, stay && (fix || e->busy != ST_UNKNOWN));
    put_known(out, e->energy_mj, stay && (fix || e->energy_mj != ST_UNKNOWN));
    put_known(out, e->lost, e->kind == ST_ENTRY_LOST);
    put_known(out, e->pieces, e->kind == ST_ENTRY_PIECES);
    put_known(out, e->fixes, e->fixes > 0);
    st_csv_field(out, e->reason, false);
    st_csv_field(out, e->by, false);
}

static void put_entry(const st_entry *e, st_strbuf *out)
{
    st_csv_field(out, e->account, true);
    put_i64(out, e->seq);
    st_csv_field(out, st_entry_kind_name(e->kind), false);
    put_utc(out, e->at_ms, true);
    put_utc(out, e->from_ms, has_span(e));
    put_utc(out, e->to_ms, has_span(e));
    put_usage(e, out);
}

void st_export_entry_csv(const st_entry *e, st_strbuf *out)
{
    char factor[ST_RATIO_MAX];

    for (int i = 0; i < e->nlines; i++) {
        const st_line *l = &e->lines[i];

        put_entry(e, out);
        st_csv_field(out, st_component_name(l->what), false);
        put_quantity(out, l->what, l->quantity);
        put_money(out, l->rate);
        st_csv_field(out, st_ratio(factor, l->factor_bp, ST_BP, 4), false);
        put_i64(out, l->carry_in);
        put_money(out, l->amount);
        put_i64(out, l->carry);
        st_strbuf_addf(out, ",%s%s", e->contra ? "#" : "",
                       e->contra ? st_component_name(l->what) : "");
        st_csv_field(out, e->booking, false);
        st_csv_field(out, e->priority_class, false);
        st_strbuf_add(out, "\r\n");
    }
    if (e->nlines == 0) {
        put_entry(e, out);
        st_strbuf_add(out, ",,,,,,,,,,");
        st_csv_field(out, e->booking, false);
        st_csv_field(out, e->priority_class, false);
        st_strbuf_add(out, "\r\n");
    }
}
