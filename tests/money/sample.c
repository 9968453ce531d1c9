/*
 * A synthetic shop's bills and exports, as files in a folder, for tests of what leaves the house:
 * bills of October (closed) and November (running), the public key, FOCUS exports, CSV, JSON and pages.
 * The small ones are for a corpus.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bill/test/shop.h"

typedef struct out {
    const char *folder;
    st_strbuf text;
} out;

static void save(out *o, const char *name)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    FILE *f;

    st_strbuf_addf(&path, "%s/%s", o->folder, name);
    f = fopen(path.s, "w");
    if (!f || fwrite(o->text.s, 1, o->text.n, f) != o->text.n || fclose(f) != 0) {
        fprintf(stderr, "sample: cannot write %s\n", path.s);
        exit(1);
    }
    st_strbuf_clear(&o->text);
}

static void save_key(out *o, const shop *s)
{
    for (int i = 0; i < 32; i++)
        st_strbuf_addf(&o->text, "%02x", s->public[i]);
    st_strbuf_addc(&o->text, '\n');
    save(o, "key");
}

static void add_entry(void *ctx, const st_entry *e)
{
    st_export_entry_csv(e, ctx);
}

static void save_exports(out *o, shop *s, const char *account, const char *period)
{
    st_export_about about = shop_about(s);
    st_idle_floors idle = {0};
    char name[64];
    st_bill bill;
    st_err err;

    ST_ASSERT(st_ledger_bill(s->ledger, account, period, &bill, &err) == 0);
    ST_ASSERT(st_ledger_idle_floors(s->ledger, account, period, &idle, &err) == 0);
    about.idle = &idle;
    snprintf(name, sizeof(name), "%s-%s.csv", account, bill.period.name);
    st_export_bill_csv(&bill, &about, &o->text);
    save(o, name);
    snprintf(name, sizeof(name), "%s-%s-entries.csv", account, bill.period.name);
    st_export_entries_csv_head(&o->text);
    shop_entries(s, account, period, add_entry, &o->text);
    save(o, name);
    snprintf(name, sizeof(name), "%s-%s.json", account, bill.period.name);
    st_export_bill_json(&bill, &about, &o->text);
    save(o, name);
    snprintf(name, sizeof(name), "%s-%s.html", account, bill.period.name);
    st_export_bill_html(&bill, &about, &o->text);
    save(o, name);
    snprintf(name, sizeof(name), "%s-%s-focus.csv", account, bill.period.name);
    shop_focus(s, account, period, &o->text);
    save(o, name);
    snprintf(name, sizeof(name), "%s-%s.bill", account, bill.period.name);
    shop_bill(s, account, period, &o->text);
    save(o, name);
    st_vec_free(&idle);
    st_bill_done(&bill);
}

/* A correction of the account's first usage. */
static void fix_first(shop *s, const char *account)
{
    const shop_book *b = shop_find(s, account);
    size_t i = 0;

    while (i < b->entries.n && !strstr(b->entries.v[i], "\"kind\":\"usage\""))
        i++;
    ST_ASSERT(i < b->entries.n);
    shop_fix(s, account, (int64_t)i + 1);
}

int main(int argc, char **argv)
{
    out o = {.folder = argc > 1 ? argv[1] : "."};
    shop s;

    shop_init(&s, 11);
    shop_days(&s, 2);
    shop_bill(&s, "vision", NULL, &o.text);
    save(&o, "small.bill");
    shop_days(&s, 12);
    fix_first(&s, "vision");
    shop_credit(&s, "vision", 12345678, "outage, \"the 9th\"\nof October");
    shop_prices(&s, "prices: dearer\ngpu: {\"*\": {reserved: 1.23, burst: 2.34}}\ncpu: 0.02\n");
    shop_days(&s, 17);
    shop_close(&s);
    fix_first(&s, "vision");
    shop_days(&s, 5);
    save_key(&o, &s);
    save_exports(&o, &s, "acme", "2026-10");
    save_exports(&o, &s, "acme", NULL);
    save_exports(&o, &s, "beta", "2026-10");
    shop_done(&s);
    st_strbuf_done(&o.text);
    return 0;
}
