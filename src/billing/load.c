/*
 * Metering and money from the store back, and into a snapshot.
 */
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "billing/billing.h"

#define ZONES_META "billing_zones"
#define BEGAN_META "billing_began"

/* ---- zones and keys ------------------------------------------------------------------------------- */

static st_zone *find_zone(const st_billing *b, const char *name)
{
    for (size_t i = 0; i < b->zones.n; i++)
        if (strcmp(st_zone_name(b->zones.v[i]), name) == 0)
            return b->zones.v[i];
    return NULL;
}

static int need_zone(st_billing *b, const char *name, st_zone **ret, st_err *err)
{
    st_zone *zone = find_zone(b, name);
    int r = zone ? 0 : st_zone_new(name, &zone, err);

    if (r < 0)
        return r;
    if (!find_zone(b, name))
        st_vec_push(&b->zones, zone);
    *ret = zone;
    return 0;
}

/* All zones in which a month was ever closed: their tables are made while nobody else runs. */
static int open_zones(st_control *ctl, const char *now, bool writes, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf all = {0};
    st_billing *b = ctl->billing;
    const char *text = "";
    int r = st_store_meta_get(ctl->store, ZONES_META, arena, &text, err);

    if (r < 0 && r != -ST_ENOENT)
        return r;
    char *at = st_arena_strdup(arena, r == 0 ? text : ""), *name;
    r = 0;
    while (r == 0 && (name = strsep(&at, " ")))
        if (name[0])
            r = need_zone(b, name, &b->zone, err);
    if (r == 0 && (now || b->zones.n == 0)) {
        bool known = find_zone(b, now ? now : "UTC");

        r = need_zone(b, now ? now : "UTC", &b->zone, err);
        for (size_t i = 0; i < b->zones.n; i++)
            st_strbuf_addf(&all, "%s%s", i ? " " : "", st_zone_name(b->zones.v[i]));
        if (r == 0 && writes && !known)
            r = st_meta_keep(ctl->store, ZONES_META, st_strbuf_str(&all), err);
    }
    return r;
}

int st_billing_zone_as(st_control *copy, const st_control *ctl, st_err *err)
{
    return need_zone(copy->billing, st_zone_name(ctl->billing->zone), &copy->billing->zone, err);
}

/* Whether anything was signed yet: then there must be a key, and it is not made anew in silence. */
static bool has_signed(st_control *ctl)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_checkpoint_row row;
    st_err err;

    return st_store_checkpoint_last(ctl->store, arena, &row, &err) == 0;
}

static int open_keys(st_control *ctl, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_keys *keys = &ctl->billing->keys;
    int r;

    st_keys_path(ctl->store, ctl->options.billing.key, &path);
    if (!has_signed(ctl))
        return st_keys_open(st_strbuf_str(&path), keys, err);
    r = st_keys_read(st_strbuf_str(&path), keys, err);
    if (r == -ST_ENOENT)
        r = st_fail(err, ST_ENOENT,
                    "%s is not there, and bills were signed with it: restore it from a backup; if "
                    "it is lost, write two lines of 64 random hex digits there and publish the new "
                    "public key",
                    st_strbuf_str(&path));
    return r;
}

int st_billing_open(st_control *ctl, bool writes, st_err *err)
{
    const st_billing_options *o = &ctl->options.billing;
    st_billing *b = st_xcalloc(1, sizeof *b);
    int r;

    ctl->billing = b;
    b->arena = st_arena_new();
    st_books_init(&b->books);
    snprintf(b->cluster, sizeof b->cluster, "%s", o->cluster ? o->cluster : "stint");
    r = open_zones(ctl, writes ? (o->zone ? o->zone : "UTC") : NULL, writes, err);
    return r < 0 || !writes ? r : open_keys(ctl, err);
}

void st_billing_reset(st_control *ctl)
{
    st_billing *b = ctl->billing;

    if (!b)
        return;
    st_meter_free(ST_TAKE(b->meter));
    st_ledger_free(ST_TAKE(b->ledger));
    st_books_done(&b->books);
    st_books_init(&b->books);
    b->next_ms = 0;
    st_vec_clear(&b->floors);
    st_vec_clear(&b->lent);
    st_vec_clear(&b->records);
}

void st_billing_free(st_control *ctl)
{
    st_billing *b = ST_TAKE(ctl->billing);

    if (!b)
        return;
    st_meter_free(b->meter);
    st_ledger_free(b->ledger);
    st_books_done(&b->books);
    st_vec_free(&b->floors);
    st_vec_free(&b->lent);
    st_vec_free(&b->warned);
    st_map_free(b->anomalies);
    st_vec_free(&b->spent);
    st_vec_free(&b->caps_said);
    st_vec_free(&b->records);
    for (size_t i = 0; i < b->zones.n; i++)
        st_zone_free(b->zones.v[i]);
    st_vec_free(&b->zones);
    st_arena_free(b->arena);
    sodium_memzero(&b->keys, sizeof b->keys);
    free(b);
}

/* ---- snapshots ---------------------------------------------------------------------------------------- */

static void put(st_strbuf *out, int64_t v)
{
    st_strbuf_addn(out, (const char *)&v, sizeof v);
}

static void save_rest(const st_billing *b, st_strbuf *out)
{
    for (size_t i = 0; i < b->floors.n; i++) {
        put(out, b->floors.v[i].account);
        put(out, b->floors.v[i].type);
        put(out, b->floors.v[i].gpu_m);
    }
}

static int load_rest(st_billing *b, const char *data, size_t len, st_err *err)
{
    int64_t v[3];

    if (len % sizeof v != 0)
        return st_fail(err, ST_ECORRUPT, "the snapshot's floors are damaged; restore a backup");
    for (size_t at = 0; at < len; at += sizeof v) {
        memcpy(v, data + at, sizeof v);
        st_vec_push(&b->floors, (st_floor_said){(int32_t)v[0], (int32_t)v[1], v[2]});
    }
    return 0;
}

void st_billing_save(const st_control *ctl, st_strbuf *out)
{
    const st_billing *b = ctl->billing;
    int64_t len[ST_SNAP_PARTS];
    size_t at;

    st_snapshot_begin(out);
    for (int i = 0; i < ST_SNAP_PARTS; i++) {
        at = out->n;
        if (i == ST_SNAP_CORE)
            st_core_save(ctl->core, out);
        else if (i == ST_SNAP_METER && b->meter)
            st_meter_save(b->meter, out);
        else if (i == ST_SNAP_LEDGER && b->ledger)
            st_ledger_save(b->ledger, out);
        else if (i == ST_SNAP_BOOKS)
            st_books_save(&b->books, out);
        else if (i == ST_SNAP_FLOORS)
            save_rest(b, out);
        len[i] = (int64_t)(out->n - at);
    }
    st_snapshot_end(out, len);
}

int st_billing_load(st_control *ctl, const char *data, size_t len, st_err *err)
{
    st_billing *b = ctl->billing;
    st_snapshot s;
    int r = st_snapshot_open(data, len, &s, err);

    if (r == 0)
        r = st_core_load(s.data[ST_SNAP_CORE], s.len[ST_SNAP_CORE], &ctl->core, err);
    if (r < 0 || !s.money)
        return r;
    if (s.len[ST_SNAP_METER] > 0)
        r = st_meter_load(s.data[ST_SNAP_METER], s.len[ST_SNAP_METER], &b->meter, err);
    /* One of an earlier version lacks what only the books know: they are folded from the first entry on, once. */
    if (r == 0 && st_ledger_is_former(s.data[ST_SNAP_LEDGER], s.len[ST_SNAP_LEDGER])) {
        st_control_say(ctl,
                       "event=books_folded_again reason=\"the snapshot is of an earlier version\"");
        return 0;
    }
    if (r == 0 && s.len[ST_SNAP_LEDGER] > 0)
        r = st_ledger_load(s.data[ST_SNAP_LEDGER], s.len[ST_SNAP_LEDGER], &b->ledger, err);
    if (r == 0) {
        st_books_done(&b->books);
        r = st_books_load(s.data[ST_SNAP_BOOKS], s.len[ST_SNAP_BOOKS], &b->books, err);
        if (r < 0)
            st_books_init(&b->books);
    }
    return r < 0 ? r : load_rest(b, s.data[ST_SNAP_FLOORS], s.len[ST_SNAP_FLOORS], err);
}

/* ---- the books behind it ---------------------------------------------------------------------------------- */

int st_billing_apply(const st_billing *b, st_ledger *l, const st_entry *e, st_err *err)
{
    const st_zone *zone;
    st_period next;
    int r = st_ledger_apply(l, e, err);

    if (r < 0 || e->kind != ST_ENTRY_CLOSE || e->account[0])
        return r;
    zone = find_zone(b, e->zone);
    if (!zone)
        return st_fail(err, ST_ECORRUPT,
                       "month %s was closed in the zone %s, which the store does not know of",
                       e->period, e->zone);
    st_zone_after(zone, e->to_ms, &next);
    st_ledger_set_period(l, &next);
    return 0;
}

void st_billing_begin(st_control *copy, const st_notes *notes, int64_t now)
{
    st_billing *b = copy->billing;
    st_period period;

    for (size_t i = 0; i < notes->n; i++) {
        if (notes->v[i].kind != ST_NOTE_BEGIN)
            continue;
        st_ledger_free(b->ledger);
        b->ledger = st_ledger_new();
        st_zone_month(b->zone, now, &period);
        st_ledger_set_period(b->ledger, &period);
    }
}

/* Floors as the books have them. */
static void remember(st_control *ctl, const st_entry *e)
{
    st_billing *b = ctl->billing;
    int32_t account, type;

    if (e->kind != ST_ENTRY_FLOOR)
        return;
    account = st_book_account(ctl, e->account);
    type = strcmp(e->gpu, "*") == 0 ? -1 : st_fleet_type(st_core_fleet(ctl->core), e->gpu);
    for (size_t i = 0; i < b->floors.n; i++)
        if (b->floors.v[i].account == account && b->floors.v[i].type == type) {
            b->floors.v[i].gpu_m = e->gpu_m;
            return;
        }
    st_vec_push(&b->floors, (st_floor_said){account, type, e->gpu_m});
}

static int fold_row(void *ctx, const st_book_row *row, st_err *err)
{
    st_control *ctl = ctx;
    st_billing *b = ctl->billing;
    size_t len = strlen(row->data);
    st_hash chain;
    st_entry e;
    int r;

    st_arena_reset(b->arena);
    r = st_entry_read(row->data, len, b->arena, &e, err);
    if (r == 0)
        r = st_billing_apply(b, b->ledger, &e, err);
    if (r < 0)
        return st_fail_prefix(err, "entry %" PRId64 " (%s %" PRId64 "): ", row->n, row->account,
                              row->seq);
    st_books_add(&b->books, row->account, row->at_ms, row->data, len, &chain);
    if (row->chain.n != ST_HASH || memcmp(chain.b, row->chain.p, ST_HASH) != 0)
        return st_fail(err, ST_ECORRUPT,
                       "entry %" PRId64 " (number %" PRId64 " of account \"%s\") was changed: its "
                       "hash is not that of its contents; restore a backup",
                       row->n, row->seq, row->account);
    remember(ctl, &e);
    return 0;
}

static int first_row(void *ctx, const st_book_row *row, st_err *err)
{
    (void)err;
    *(int64_t *)ctx = row->at_ms;
    return 1;
}

int st_billing_first(const st_billing *b, st_store *store, st_ledger **ret, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const char *name;
    int64_t at = INT64_MIN;
    st_period period;
    int r = st_store_meta_get(store, BEGAN_META, arena, &name, err);

    if (r == 0)
        r = st_store_book_read(store, 1, 1, first_row, &at, err);
    if (r < 0)
        return r;
    if (at == INT64_MIN || !find_zone(b, name))
        return st_fail(err, ST_ECORRUPT, "the first entry of the books, or its zone, is not there");
    st_zone_month(find_zone(b, name), at, &period);
    *ret = st_ledger_new();
    st_ledger_set_period(*ret, &period);
    return 0;
}

static int last_signed(st_control *ctl, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_checkpoint_row row;
    int r = st_store_checkpoint_last(ctl->store, arena, &row, err);

    if (r == 0) {
        ctl->billing->books.signed_n = row.n;
        ctl->billing->books.signed_ms = row.at_ms;
    }
    return r == -ST_ENOENT ? 0 : r;
}

int st_billing_fold(st_control *ctl, st_err *err)
{
    st_billing *b = ctl->billing;
    int r = 0;

    b->snap_n = b->books.n;
    if (!b->meter)
        return 0;
    if (!b->ledger)
        r = st_billing_first(b, ctl->store, &b->ledger, err);
    if (r == 0)
        r = st_store_book_read(ctl->store, b->books.n + 1, INT64_MAX, fold_row, ctl, err);
    if (r == 0)
        r = last_signed(ctl, err);
    if (r == 0) {
        st_budget_begin(ctl);
        st_lent_begin(ctl);
    }
    if (r == 0)
        r = st_anomalies_begin(ctl, err);
    return r;
}
