/*
 * A meter beside the core: every moment of every random world is metered, with cuts in between,
 * telemetry that comes twice, late, out of order or not at all, real ends that become known late, and a
 * clock that goes back now and then.
 *
 * A second meter is told the same. Now and then it is saved and loaded; the two must hand out the same
 * records all the time. The audit (check_meter.h) holds them against books of its own.
 *
 * A third hears of no telemetry and recalls what the first handed out, like one that plays a log after a
 * restart. Now and then it takes over, and nobody may notice.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "check/meter.h"
#include "worlds/run.h"

#define BAD(...)    st_fail(err, ST_EINTERNAL, __VA_ARGS__)
#define SAVE_CHANCE 40 /* one moment in so many, the second meter is loaded from its save */

struct st_fuzz_meter {
    st_meter *m, *second, *third;
    st_audit *audit;
    st_fuzz_money *money; /* NULL: this world is not billed */
    const st_core *core;  /* of this moment */
    st_records out, out2, out3;
    st_rng rng;
    uint64_t seed;
    int64_t now;
};

st_fuzz_meter *st_fuzz_meter_new(uint64_t seed, bool billed)
{
    st_fuzz_meter *f = st_xcalloc(1, sizeof *f);
    f->m = st_meter_new(0);
    f->second = st_meter_new(0);
    f->third = st_meter_new(0);
    st_tree *empty = st_tree_new();
    st_meter_inside(f->m, empty, 0);
    st_meter_inside(f->second, empty, 0);
    st_meter_inside(f->third, empty, 0);
    st_tree_free(empty);
    f->audit = st_audit_new(0);
    f->money = billed ? st_fuzz_money_new(seed) : NULL;
    f->seed = seed;
    st_rng_seed(&f->rng, seed ^ 0x6d657465u);
    return f;
}

void st_fuzz_meter_free(st_fuzz_meter *f)
{
    if (!f)
        return;
    st_meter_free(f->m);
    st_meter_free(f->second);
    st_meter_free(f->third);
    st_audit_free(f->audit);
    st_fuzz_money_free(f->money);
    st_vec_free(&f->out);
    st_vec_free(&f->out2);
    st_vec_free(&f->out3);
    free(f);
}

/* One in four is found to have ended some time ago; asked twice, the answer is the same. */
static int64_t real_end(void *ctx, uint64_t job)
{
    const st_fuzz_meter *f = ctx;
    uint64_t h = st_hash_u64(st_hash_u64(f->seed, job), (uint64_t)f->now);
    if (h % 4 != 0)
        return ST_UNSET;
    return ST_MAX(f->now - (int64_t)(h / 4 % ((h & 1024) ? 100000 : 5000000)), 0);
}

/* ---- the two ------------------------------------------------------------------------------ */

/* What both have handed out since last time: the same, and right. */
static int take(st_fuzz_meter *f, bool cut, st_err *err)
{
    int rc = 0;
    if (f->out.n != f->out2.n)
        rc = BAD("meter: one hands out %zu records, its twin %zu", f->out.n, f->out2.n);
    for (size_t i = 0; rc == 0 && i < f->out.n; i++)
        if (!st_record_same(&f->out.v[i], &f->out2.v[i]))
            rc = BAD("meter: record %zu, a %s of job %" PRIu64 ", is another in its twin", i,
                     st_record_name(f->out.v[i].kind), f->out.v[i].job);
    if (rc == 0)
        rc = st_audit_records(f->audit, &f->out, cut, err);
    if (rc == 0 && f->money)
        rc = st_fuzz_money_records(f->money, f->core, &f->out, st_meter_now(f->m), err);
    if (rc == 0 && f->money && cut)
        rc = st_fuzz_money_cut(f->money, f->core, f->m, err);
    for (size_t i = 0; i < f->out.n; i++)
        st_meter_recall(f->third, &f->out.v[i]);
    st_vec_clear(&f->out);
    st_vec_clear(&f->out2);
    st_vec_clear(&f->out3);
    return rc;
}

/* A meter in place of another, by way of its save. */
static int load_into(const st_meter *from, st_meter **to, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0};
    st_meter *loaded = NULL;
    st_err why = {0};
    st_meter_save(from, &bytes);
    if (st_meter_load(bytes.s, bytes.n, &loaded, &why) < 0)
        return BAD("meter: what was just saved is refused: %s", why.msg);
    st_meter_free(*to);
    *to = loaded;
    return 0;
}

static int restart(st_fuzz_meter *f, st_err *err)
{
    int rc = load_into(f->third, &f->m, err);
    return rc < 0 ? rc : load_into(f->third, &f->second, err);
}

static int reload(st_fuzz_meter *f, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf one = {0}, two = {0};
    st_meter *loaded = NULL;
    st_err why = {0};
    st_meter_save(f->m, &one);
    st_meter_save(f->second, &two);
    if (one.n != two.n || memcmp(one.s, two.s, one.n) != 0)
        return BAD("meter: it and its twin save differently, %zu and %zu bytes", one.n, two.n);
    int rc = load_into(f->second, &f->second, err);
    if (rc < 0)
        return rc;
    one.s[st_rng_below(&f->rng, one.n)] ^= (char)(1 << st_rng_below(&f->rng, 8));
    if (st_meter_load(one.s, one.n, &loaded, &why) == 0) {
        st_meter_free(loaded);
        return BAD("meter: a save with a wrong bit still loads");
    }
    return 0;
}

/* ---- what happens to it ------------------------------------------------------------------- */

static int cut(st_fuzz_meter *f, const st_tree *tree, int64_t at, st_err *err)
{
    if (tree->accounts.n > 1 && st_rng_chance(&f->rng, 1, 4)) {
        int32_t who = (int32_t)(1 + st_rng_below(&f->rng, tree->accounts.n - 1));
        int64_t gpu_m = st_rng_chance(&f->rng, 1, 4) ? ST_UNSET : st_rng_range(&f->rng, 0, 8000);
        st_meter_agree(f->m, who, gpu_m);
        st_meter_agree(f->second, who, gpu_m);
        st_meter_agree(f->third, who, gpu_m);
    }
    st_audit_pass(f->audit, at);
    st_meter_cut(f->m, at, &f->out);
    st_meter_cut(f->second, at, &f->out2);
    st_meter_cut(f->third, at, &f->out3);
    return take(f, true, err);
}

/* Of any stay, mostly a late one: sums that may be true, old ones, or nonsense. */
static int telemetry(st_fuzz_meter *f, st_err *err)
{
    size_t n = st_audit_nstays(f->audit);
    if (n == 0)
        return 0;
    size_t among = st_rng_chance(&f->rng, 1, 8) ? n : ST_MIN(n, 12);
    size_t back = st_rng_below(&f->rng, among);
    st_audit_stay s = st_audit_stay_at(f->audit, n - 1 - back);
    int64_t devs = s.ndevs / s.tasks, most = devs * (f->now - s.start_ms);
    st_sums sums = {most, 0, ST_UNKNOWN, ST_UNKNOWN};
    if (st_rng_chance(&f->rng, 1, 2))
        sums.seen_gpu_ms = st_rng_range(&f->rng, 0, most);
    if (st_rng_chance(&f->rng, 1, 10))
        sums.seen_gpu_ms = 3 * most + 17;
    sums.busy_gpu_ms = st_rng_range(&f->rng, 0, sums.seen_gpu_ms);
    if (st_rng_chance(&f->rng, 1, 4))
        sums.energy_mj = st_rng_range(&f->rng, 0, 1000000);
    int task = (int)st_rng_range(&f->rng, 0, s.tasks);
    st_audit_used(f->audit, n - 1 - back, task, &sums);
    int times = st_rng_chance(&f->rng, 1, 4) ? 2 : 1;
    for (int i = 0; i < times; i++) {
        st_meter_used(f->m, s.job, s.start, task, &sums, &f->out);
        st_meter_used(f->second, s.job, s.start, task, &sums, &f->out2);
    }
    return take(f, false, err);
}

/* At all times that the ledger wants. */
static int cuts_due(st_fuzz_meter *f, const st_tree *tree, int64_t until, st_err *err)
{
    int rc = 0;
    while (rc == 0 && f->money && st_fuzz_money_due(f->money) <= until)
        rc = cut(f, tree, st_fuzz_money_due(f->money), err);
    return rc;
}

/* At any time up to now. */
static int cuts(st_fuzz_meter *f, const st_tree *tree, int64_t now, st_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < 2 && st_rng_chance(&f->rng, 1, 8); i++) {
        int64_t at = st_rng_range(&f->rng, f->now, now);
        rc = cuts_due(f, tree, at, err);
        if (rc == 0)
            rc = cut(f, tree, at, err);
    }
    f->now = st_meter_now(f->m);
    if (rc == 0 && st_rng_chance(&f->rng, 1, 20))
        rc = cut(f, tree, f->now - 1000, err); /* a clock that goes back */
    return rc == 0 ? cuts_due(f, tree, now, err) : rc;
}

int st_fuzz_meter_moment(st_fuzz_meter *f, const st_core *core, const st_effects *fx, int64_t now,
                         st_err *err)
{
    st_metering_hint hint = {.ended_ms = real_end, .ctx = f};
    f->core = core;
    int rc = cuts(f, st_core_tree(core), now, err);
    f->now = now;
    st_audit_pass(f->audit, now);
    st_audit_step(f->audit, core, fx, &hint);
    if (rc == 0 && f->money)
        rc = st_fuzz_money_begin(f->money, core, fx, now, err);
    st_core_meter(core, fx, 0, now, &hint, f->m, &f->out);
    st_core_meter(core, fx, 0, now, &hint, f->second, &f->out2);
    st_core_meter(core, fx, 0, now, &hint, f->third, &f->out3);
    if (rc == 0)
        rc = take(f, false, err);
    for (int i = 0; rc == 0 && i < 4 && st_rng_chance(&f->rng, 2, 3); i++)
        rc = telemetry(f, err);
    if (rc == 0 && f->money)
        rc = st_fuzz_money_end(f->money, core, f->m, fx, err);
    if (rc == 0)
        rc = st_audit_check(f->audit, core, f->m, err);
    if (rc == 0 && st_rng_chance(&f->rng, 1, SAVE_CHANCE))
        rc = reload(f, err);
    if (rc == 0 && st_rng_chance(&f->rng, 1, SAVE_CHANCE))
        rc = restart(f, err);
    return rc;
}

int st_fuzz_meter_close(st_fuzz_meter *f, const st_core *core, st_err *err)
{
    f->core = core;
    int rc = cut(f, st_core_tree(core), f->now, err);
    return rc == 0 && f->money ? st_fuzz_money_close(f->money, err) : rc;
}
