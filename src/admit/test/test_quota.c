/*
 * Guarantees and ceilings: the needs rule worked by hand, then against the rule itself over
 * random trees; the counters over random sequences.
 */
#include "admit/admit.h"
#include "base/macros.h"
#include "base/rng.h"
#include "base/testing.h"

#define A 0 /* two GPU types */
#define B 1

typedef struct world {
    st_tree *tree;
} world;

static void begin(world *w, int64_t a_m, int64_t b_m, int64_t cpu_m, int64_t ram_mib)
{
    w->tree = st_tree_new();
    w->tree->capacity = (st_use){a_m + b_m, cpu_m, ram_mib, {a_m, b_m}};
}

static void end(world *w)
{
    st_tree_free(w->tree);
}

/* An account with a guarantee over all types and of each type; ST_UNSET where not given. */
static int32_t put(world *w, const char *name, const char *parent, int64_t gpu_m, int64_t a_m,
                   int64_t b_m)
{
    st_err err = {0};
    int32_t id = -1;
    st_account_spec spec;
    st_account_spec_init(&spec);
    spec.name = name;
    spec.parent = parent;
    spec.guarantee.gpu_m = gpu_m;
    spec.guarantee.type_m[A] = a_m;
    spec.guarantee.type_m[B] = b_m;
    assert_ok(st_tree_set(w->tree, &spec, &id, &err));
    st_admit_floors(w->tree);
    return id;
}

static st_need gpu(int32_t type, int64_t gpu_m)
{
    return (st_need){type, gpu_m, 0, 0};
}

static void charge(world *w, int32_t account, st_need need)
{
    st_admit_charge(w->tree, account, &need, ST_NOW | ST_NEXT | ST_GUARANTEED, 1);
}

static bool guaranteed(const world *w, int32_t account, st_need need)
{
    return st_admit_guaranteed(w->tree, account, &need, NULL);
}

/* Not guaranteed, and this account is the one that says so. */
static void not_guaranteed(const world *w, int32_t account, st_need need, int32_t by)
{
    int32_t at = -7;
    assert_false(st_admit_guaranteed(w->tree, account, &need, &at));
    assert_int_equal(at, by);
}

/* org 8, of it typed 4 A for x, untyped 4 for y. The fleet has 6 A and 4 B.
 *
 *   y runs 2 on A   y needs A 2; org needs A 4+2 = 6; the fleet has 6: guaranteed
 *   y runs 1 more   y itself 3 of 4, org 7 of 8, but the fleet would need 7 A of 6: not
 *   on B instead    y 3 of 4, org 6+1 = 7 of 8, fleet B 1 of 4: guaranteed
 *   x runs 4 on A   inside its typed floor, which was counted all along: guaranteed */
static void test_needs_by_hand(void **state)
{
    (void)state;
    world w;
    begin(&w, 6000, 4000, 0, 0);
    int32_t org = put(&w, "org", NULL, 8000, ST_UNSET, ST_UNSET);
    int32_t x = put(&w, "x", "org", ST_UNSET, 4000, ST_UNSET);
    int32_t y = put(&w, "y", "org", 4000, ST_UNSET, ST_UNSET);
    const st_account *o = st_tree_account(w.tree, org), *root = st_tree_account(w.tree, ST_ROOT);
    assert_int_equal(o->below_m[A], 4000);
    assert_int_equal(o->typed_sum_m, 4000);
    assert_int_equal(o->need_sum_m, 8000); /* its floor, whatever runs */

    assert_true(guaranteed(&w, y, gpu(A, 2000)));
    not_guaranteed(&w, y, gpu(A, 2001), ST_ROOT);
    charge(&w, y, gpu(A, 2000));
    assert_int_equal(st_tree_account(w.tree, y)->below_m[A], 2000);
    assert_int_equal(st_tree_account(w.tree, y)->typed_sum_m, 2000);
    assert_int_equal(st_tree_account(w.tree, y)->need_sum_m, 4000);
    assert_int_equal(o->below_m[A], 6000);
    assert_int_equal(o->typed_sum_m, 6000);
    assert_int_equal(root->below_m[A], 6000);

    not_guaranteed(&w, y, gpu(A, 1), ST_ROOT);
    assert_true(guaranteed(&w, y, gpu(B, 2000)));
    not_guaranteed(&w, y, gpu(B, 2001), y); /* 4 is all y has */
    charge(&w, y, gpu(B, 1000));
    assert_int_equal(o->typed_sum_m, 7000);

    assert_true(guaranteed(&w, x, gpu(A, 4000)));
    charge(&w, x, gpu(A, 4000));
    assert_int_equal(o->typed_sum_m, 7000); /* the floor was counted, its use adds nothing */
    assert_int_equal(o->need_sum_m, 8000);
    assert_int_equal(o->guaranteed.gpu_m, 7000);
    not_guaranteed(&w, x, gpu(A, 1), x);
    not_guaranteed(&w, x, gpu(B, 1), x); /* promised by name, and this is not the name */
    end(&w);
}

/* 2 of 4 untyped are promised below by name: what runs outside them has the other 2. */
static void test_typed_child_of_untyped(void **state)
{
    (void)state;
    world w;
    begin(&w, 8000, 8000, 0, 0);
    int32_t org = put(&w, "org", NULL, 4000, ST_UNSET, ST_UNSET);
    int32_t x = put(&w, "x", "org", ST_UNSET, ST_UNSET, 2000);
    int32_t free_ = put(&w, "free", "org", ST_UNSET, ST_UNSET, ST_UNSET);
    assert_true(guaranteed(&w, org, gpu(A, 2000)));
    not_guaranteed(&w, org, gpu(A, 2001), org);
    /* On B the parent's own job competes with the child's typed floor just the same. */
    not_guaranteed(&w, org, gpu(B, 2001), org);
    assert_true(guaranteed(&w, x, gpu(B, 2000)));
    /* An account without a guarantee passes through to the nearest that has one. */
    assert_true(guaranteed(&w, free_, gpu(A, 2000)));
    not_guaranteed(&w, free_, gpu(A, 2001), org);
    charge(&w, free_, gpu(A, 1500));
    assert_int_equal(st_tree_account(w.tree, org)->typed_sum_m, 3500);
    assert_int_equal(st_tree_account(w.tree, org)->below_sum_m, 3500);
    assert_true(guaranteed(&w, org, gpu(A, 500)));
    not_guaranteed(&w, org, gpu(A, 501), org);
    end(&w);
}

/* org has 6, of it x 3 and y 2: one is left for org's own jobs and for those of accounts that
 * pass through, even while x and y stand idle. What x uses is x's. */
static void test_floors_of_others_stay(void **state)
{
    (void)state;
    world w;
    begin(&w, 20000, 0, 0, 0);
    int32_t org = put(&w, "org", NULL, 6000, ST_UNSET, ST_UNSET);
    int32_t x = put(&w, "x", "org", 3000, ST_UNSET, ST_UNSET);
    int32_t y = put(&w, "y", "org", 2000, ST_UNSET, ST_UNSET);
    int32_t free_ = put(&w, "free", "org", ST_UNSET, ST_UNSET, ST_UNSET);
    not_guaranteed(&w, org, gpu(A, 1001), org);
    not_guaranteed(&w, free_, gpu(A, 1001), org);
    assert_true(guaranteed(&w, free_, gpu(A, 1000)));
    charge(&w, free_, gpu(A, 1000));
    not_guaranteed(&w, org, gpu(A, 1), org);
    assert_true(guaranteed(&w, x, gpu(A, 3000)));
    not_guaranteed(&w, x, gpu(A, 3001), x);
    charge(&w, x, gpu(A, 3000));
    assert_true(guaranteed(&w, y, gpu(A, 2000)));
    not_guaranteed(&w, org, gpu(A, 1), org);
    /* At the top it is the fleet that keeps the floors of the others free. */
    w.tree->capacity = (st_use){7000, 0, 0, {7000}};
    int32_t late = put(&w, "late", NULL, 1000, ST_UNSET, ST_UNSET);
    assert_true(guaranteed(&w, late, gpu(A, 1000)));
    not_guaranteed(&w, late, gpu(A, 1001), late);
    end(&w);
}

/* Without a guarantee anywhere above, nothing is guaranteed, however empty the fleet. */
static void test_no_backing(void **state)
{
    (void)state;
    world w;
    begin(&w, 8000, 0, 64000, 1000);
    int32_t org = put(&w, "org", NULL, ST_UNSET, ST_UNSET, ST_UNSET);
    int32_t leaf = put(&w, "leaf", "org", ST_UNSET, ST_UNSET, ST_UNSET);
    int32_t zero = put(&w, "zero", NULL, 0, ST_UNSET, ST_UNSET);
    not_guaranteed(&w, leaf, gpu(A, 1), leaf);
    not_guaranteed(&w, org, gpu(A, 1), org);
    not_guaranteed(&w, zero, gpu(A, 1), zero);
    st_need cpu = {-1, 0, 1000, 10};
    not_guaranteed(&w, leaf, cpu, leaf);
    end(&w);
}

static void test_cpu_and_ram_floors(void **state)
{
    (void)state;
    world w;
    st_err err = {0};
    begin(&w, 8000, 0, 100000, 1000);
    st_account_spec spec;
    st_account_spec_init(&spec);
    spec.name = "org";
    spec.guarantee.gpu_m = 4000;
    spec.guarantee.cpu_m = 32000;
    spec.guarantee.ram_mib = 500;
    int32_t org, gpu_only;
    assert_ok(st_tree_set(w.tree, &spec, &org, &err));
    gpu_only = put(&w, "gpus", NULL, 4000, ST_UNSET, ST_UNSET);

    assert_true(guaranteed(&w, org, (st_need){A, 1000, 32000, 500}));
    not_guaranteed(&w, org, (st_need){A, 1000, 32001, 1}, org);
    not_guaranteed(&w, org, (st_need){A, 1000, 1, 501}, org);
    charge(&w, org, (st_need){A, 1000, 20000, 400});
    assert_true(guaranteed(&w, org, (st_need){A, 1000, 12000, 100}));
    not_guaranteed(&w, org, (st_need){A, 1000, 12001, 100}, org);
    not_guaranteed(&w, org, (st_need){A, 1000, 12000, 101}, org);
    /* A job without GPUs needs a CPU guarantee to stand on. */
    assert_true(guaranteed(&w, org, (st_need){-1, 0, 12000, 100}));
    not_guaranteed(&w, org, (st_need){-1, 0, 12001, 0}, org);
    not_guaranteed(&w, gpu_only, (st_need){-1, 0, 1, 0}, gpu_only);
    /* Where no CPU was promised it comes with the GPUs, as far as the fleet has it. */
    assert_true(guaranteed(&w, gpu_only, (st_need){A, 1000, 80000, 600}));
    not_guaranteed(&w, gpu_only, (st_need){A, 1000, 80001, 600}, ST_ROOT);
    not_guaranteed(&w, gpu_only, (st_need){A, 1000, 80000, 601}, ST_ROOT);
    end(&w);
}

/* ---- ceilings ------------------------------------------------------------------------ */

static int32_t put_max(world *w, const char *name, const char *parent, int64_t gpu_m, int64_t b_m,
                       int64_t cpu_m, int64_t ram_mib)
{
    st_err err = {0};
    int32_t id = -1;
    st_account_spec spec;
    st_account_spec_init(&spec);
    spec.name = name;
    spec.parent = parent;
    spec.max.gpu_m = gpu_m;
    spec.max.type_m[B] = b_m;
    spec.max.cpu_m = cpu_m;
    spec.max.ram_mib = ram_mib;
    assert_ok(st_tree_set(w->tree, &spec, &id, &err));
    return id;
}

static void test_max_at_every_ancestor(void **state)
{
    (void)state;
    world w;
    begin(&w, 8000, 8000, 100000, 1000);
    int32_t org = put_max(&w, "org", NULL, 6000, ST_UNSET, ST_UNSET, 100);
    int32_t team = put_max(&w, "team", "org", 5000, 2000, 40000, ST_UNSET);
    int32_t leaf = put_max(&w, "leaf", "team", ST_UNSET, ST_UNSET, ST_UNSET, ST_UNSET);
    st_over over[8];
    st_need need = {B, 5000, 10000, 50};
    assert_int_equal(st_admit_over(w.tree, leaf, &need, ST_NOW | ST_NEXT, false, over, 8), 1);
    assert_int_equal(over[0].account, team);
    assert_int_equal(over[0].dim, ST_GPU);
    assert_int_equal(over[0].type, B);
    assert_int_equal(over[0].used, 0);
    assert_int_equal(over[0].asked, 5000);
    assert_int_equal(over[0].bound, 2000);
    need = (st_need){A, 5000, 40000, 100}; /* exactly at three bounds */
    assert_int_equal(st_admit_over(w.tree, leaf, &need, ST_NOW | ST_NEXT, false, NULL, 0), 0);

    /* Every broken one is counted, whatever fits the caller's array. */
    st_need all = {B, 7000, 41000, 101};
    int n = st_admit_over(w.tree, leaf, &all, ST_NOW, false, over, 8);
    assert_int_equal(n, 5);
    assert_int_equal(st_admit_over(w.tree, leaf, &all, ST_NOW, false, over, 1), 5);
    n = st_admit_over(w.tree, leaf, &all, ST_NOW, false, over, 8);
    assert_int_equal(n, 5);
    int seen_org_ram = 0;
    for (int i = 0; i < n; i++)
        seen_org_ram += over[i].account == org && over[i].dim == ST_RAM && over[i].bound == 100 &&
                        over[i].asked == 101 && over[i].type == -1;
    assert_int_equal(seen_org_ram, 1);
    /* What is not asked for cannot be over, even where nothing is left. */
    st_need cpu = {-1, 0, 1000, 0};
    charge(&w, leaf, (st_need){A, 5000, 0, 100});
    assert_int_equal(st_admit_over(w.tree, leaf, &cpu, ST_NOW, false, NULL, 0), 0);
    end(&w);
}

/* A start must respect the ceilings in both moments, and each may be the tighter one. */
static void test_max_in_both_moments(void **state)
{
    (void)state;
    world w;
    begin(&w, 8000, 0, 0, 0);
    int32_t a = put_max(&w, "a", NULL, 4000, ST_UNSET, ST_UNSET, ST_UNSET);
    st_need leaving = gpu(A, 3000), held = gpu(A, 2000), one = gpu(A, 1000), two = gpu(A, 2000);
    st_admit_charge(w.tree, a, &leaving, ST_NOW, 1);
    st_admit_charge(w.tree, a, &held, ST_NEXT, 1);
    assert_int_equal(st_admit_over(w.tree, a, &one, ST_NOW | ST_NEXT, false, NULL, 0), 0);
    assert_int_equal(st_admit_over(w.tree, a, &two, ST_NOW | ST_NEXT, false, NULL, 0), 1);
    assert_int_equal(st_admit_over(w.tree, a, &two, ST_NEXT, false, NULL, 0), 0);
    assert_int_equal(st_admit_over(w.tree, a, &two, ST_NOW, false, NULL, 0), 1);
    st_admit_charge(w.tree, a, &one, ST_NEXT, 1);
    st_admit_charge(w.tree, a, &leaving, ST_NOW, -1);
    assert_int_equal(st_admit_over(w.tree, a, &two, ST_NEXT, false, NULL, 0), 1);
    assert_int_equal(st_admit_over(w.tree, a, &two, ST_NOW, false, NULL, 0), 0);
    /* Alone: whether it could ever start, whatever is held. */
    st_need four = gpu(A, 4000), more = gpu(A, 4001);
    assert_int_equal(st_admit_over(w.tree, a, &four, 0, true, NULL, 0), 0);
    st_over over;
    assert_int_equal(st_admit_over(w.tree, a, &more, 0, true, &over, 1), 1);
    assert_int_equal(over.used, 0);
    end(&w);
}

static void test_need_of_a_job(void **state)
{
    (void)state;
    st_job job = {.tasks = 3,
                  .shape = {.level = ST_LEVEL_WHOLE, .gpus = 2, .cpu_m = 500, .ram_mib = 7}};
    st_need need = st_need_of(&job, B);
    assert_int_equal(need.type, B);
    assert_int_equal(need.gpu_m, 6000);
    assert_int_equal(need.cpu_m, 1500);
    assert_int_equal(need.ram_mib, 21);
    job.shape.gpus = 0;
    assert_int_equal(st_need_of(&job, B).type, -1);
}

/* ---- random trees -------------------------------------------------------------------- */

#define ACCOUNTS 10
#define CHARGES  40

typedef struct charged {
    int32_t account;
    st_need need;
} charged;

/* Guarantees that fit their parent's; where st_tree_set refuses, the account goes without. */
static void draw_tree(st_rng *r, world *w)
{
    static const char *const names[ACCOUNTS] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    begin(w, 1000 * st_rng_range(r, 0, 12), 1000 * st_rng_range(r, 0, 12), 50000, 500);
    for (int i = 0; i < ACCOUNTS; i++) {
        st_account_spec spec;
        st_account_spec_init(&spec);
        spec.name = names[i];
        spec.parent = i == 0 || st_rng_chance(r, 1, 3) ? NULL : names[st_rng_below(r, (uint64_t)i)];
        if (st_rng_chance(r, 2, 3))
            spec.guarantee.gpu_m = 1000 * st_rng_range(r, 0, 10);
        if (st_rng_chance(r, 1, 3))
            spec.guarantee.type_m[A] = 1000 * st_rng_range(r, 0, 4);
        if (st_rng_chance(r, 1, 4))
            spec.guarantee.type_m[B] = 1000 * st_rng_range(r, 0, 4);
        if (st_rng_chance(r, 1, 4))
            spec.guarantee.cpu_m = 1000 * st_rng_range(r, 0, 30);
        if (st_rng_chance(r, 1, 4))
            spec.guarantee.ram_mib = 10 * st_rng_range(r, 0, 30);
        if (st_tree_set(w->tree, &spec, NULL, NULL) < 0) {
            st_quota_clear(&spec.guarantee);
            st_err err = {0};
            assert_ok(st_tree_set(w->tree, &spec, NULL, &err));
        }
    }
    st_admit_floors(w->tree);
}

static st_need draw_need(st_rng *r)
{
    int32_t type = (int32_t)st_rng_range(r, -1, 1);
    return (st_need){type, type < 0 ? 0 : 500 * st_rng_range(r, 1, 6), 1000 * st_rng_range(r, 0, 6),
                     10 * st_rng_range(r, 0, 6)};
}

/* The rule as it is written: what an account must be able to deliver, of a type and in all;
 * without its own floor, what those in it and below need. */
static int64_t below_of(const world *w, const charged *set, int n, int32_t account, int type);

static int64_t need_of(const world *w, const charged *set, int n, int32_t account, int type)
{
    int64_t floor = st_tree_account(w->tree, account)->floor.type_m[type];
    return ST_MAX(ST_MAX(floor, 0), below_of(w, set, n, account, type));
}

static int64_t all_needs(const world *w, const charged *set, int n, int32_t account)
{
    int64_t typed = need_of(w, set, n, account, A) + need_of(w, set, n, account, B);
    return ST_MAX(typed, below_of(w, set, n, account, -1));
}

/* type -1: all of them */
static int64_t below_of(const world *w, const charged *set, int n, int32_t account, int type)
{
    const st_account *a = st_tree_account(w->tree, account);
    int64_t below = 0;
    for (int i = 0; i < n; i++)
        if (set[i].account == account && (type < 0 || set[i].need.type == type))
            below += set[i].need.gpu_m;
    for (size_t c = 0; c < a->children.n; c++) {
        int32_t child = a->children.v[c];
        const st_quota *floor = &st_tree_account(w->tree, child)->floor;
        below += type >= 0 ? need_of(w, set, n, child, type)
                           : ST_MAX(st_quota_gpu_m(floor), all_needs(w, set, n, child));
    }
    return below;
}

static bool sound(const world *w, const charged *set, int n)
{
    const st_use *cap = &w->tree->capacity;
    for (int32_t id = 0; id < (int32_t)w->tree->accounts.n; id++) {
        const st_account *a = st_tree_account(w->tree, id);
        int64_t cpu = 0, ram = 0;
        for (int i = 0; i < n; i++) {
            if (st_tree_within(w->tree, set[i].account, id)) {
                cpu += set[i].need.cpu_m;
                ram += set[i].need.ram_mib;
            }
        }
        int64_t gpu_m = all_needs(w, set, n, id);
        if (id == ST_ROOT) {
            if (need_of(w, set, n, id, A) > cap->type_m[A] ||
                need_of(w, set, n, id, B) > cap->type_m[B] || gpu_m > cap->gpu_m ||
                cpu > cap->cpu_m || ram > cap->ram_mib)
                return false;
        } else if ((st_quota_has_gpu(&a->floor) && gpu_m > st_quota_gpu_m(&a->floor)) ||
                   (a->floor.cpu_m != ST_UNSET && cpu > a->floor.cpu_m) ||
                   (a->floor.ram_mib != ST_UNSET && ram > a->floor.ram_mib)) {
            return false;
        }
    }
    return true;
}

static bool backed(const world *w, const charged *c)
{
    for (int32_t i = c->account; i != ST_ROOT; i = st_tree_account(w->tree, i)->parent) {
        const st_quota *floor = &st_tree_account(w->tree, i)->floor;
        if (c->need.type >= 0 ? st_quota_has_gpu(floor) : floor->cpu_m != ST_UNSET)
            return true;
    }
    return false;
}

/* What st_admit_guaranteed lets in is exactly what keeps the set sound. */
static void test_guaranteed_is_soundness(void **state)
{
    (void)state;
    int yes = 0, no = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        st_rng r;
        world w;
        charged set[CHARGES];
        int n = 0;
        st_rng_seed(&r, seed);
        draw_tree(&r, &w);
        /* Whether the floors themselves are sound is test_floors' business. */
        for (int k = 0; k < 60 && n < CHARGES && sound(&w, set, 0); k++) {
            set[n] = (charged){(int32_t)st_rng_range(&r, 1, ACCOUNTS), draw_need(&r)};
            /* Nothing of a dimension asked cannot break it, as ceilings have it too. */
            if (set[n].need.type < 0 && set[n].need.cpu_m == 0)
                continue;
            bool want = backed(&w, &set[n]) && sound(&w, set, n + 1);
            if (guaranteed(&w, set[n].account, set[n].need) != want)
                fail_msg("seed %d, charge %d: wanted %d", (int)seed, n, want);
            if (want)
                charge(&w, set[n].account, set[n].need), n++;
            yes += want;
            no += !want;
        }
        end(&w);
    }
    assert_true(yes > 1000 && no > 1000); /* both sides were met */
}

typedef struct counters {
    st_use now, next, guaranteed;
    int64_t below_m[ST_TYPES_MAX], below_sum_m, typed_sum_m, need_sum_m, taken_m;
} counters;

static counters counters_of(const world *w, int32_t id)
{
    const st_account *a = st_tree_account(w->tree, id);
    counters c;
    memset(&c, 0, sizeof c);
    c.now = a->now;
    c.next = a->next;
    c.guaranteed = a->guaranteed;
    memcpy(c.below_m, a->below_m, sizeof c.below_m);
    c.below_sum_m = a->below_sum_m;
    c.typed_sum_m = a->typed_sum_m;
    c.need_sum_m = a->need_sum_m;
    c.taken_m = a->taken_m;
    return c;
}

/* In and out in any order: the counters always say what a rebuild would say, and nothing is
 * left when everything is out. */
static void test_charge_is_symmetric(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        st_rng r;
        world w;
        counters before[ACCOUNTS + 1];
        struct {
            charged c;
            unsigned moments;
        } in[CHARGES];
        int n = 0;
        st_rng_seed(&r, seed);
        draw_tree(&r, &w);
        for (int32_t i = 0; i <= ACCOUNTS; i++)
            before[i] = counters_of(&w, i);
        for (int k = 0; k < 200 || n > 0; k++) {
            bool out = n == CHARGES || (n > 0 && (k >= 200 || st_rng_chance(&r, 1, 2)));
            int i = out ? (int)st_rng_below(&r, (uint64_t)n) : n++;
            if (!out) {
                in[i].c = (charged){(int32_t)st_rng_range(&r, 1, ACCOUNTS), draw_need(&r)};
                in[i].moments = (unsigned)st_rng_range(&r, 1, 7);
            }
            st_admit_charge(w.tree, in[i].c.account, &in[i].c.need, in[i].moments, out ? -1 : 1);
            if (out)
                in[i] = in[--n];
            counters told[ACCOUNTS + 1];
            for (int32_t a = 0; a <= ACCOUNTS; a++)
                told[a] = counters_of(&w, a);
            st_admit_needs(w.tree);
            for (int32_t a = 0; a <= ACCOUNTS; a++) {
                counters rebuilt = counters_of(&w, a);
                assert_memory_equal(&told[a], &rebuilt, sizeof rebuilt);
            }
        }
        for (int32_t i = 0; i <= ACCOUNTS; i++) {
            counters after = counters_of(&w, i);
            assert_memory_equal(&before[i], &after, sizeof after);
        }
        end(&w);
    }
}

typedef struct asked {
    charged c;
    uint64_t print;
    int answers;
} asked;

/* What a gang is told on every type. */
static int answers_of(const world *w, const charged *c)
{
    int bits = 0;
    for (int type = A; type <= B; type++) {
        st_need need = c->need;
        need.type = need.gpu_m > 0 ? type : -1;
        bits = bits << 2 | guaranteed(w, c->account, need) << 1 |
               (st_admit_full(w->tree, c->account, &need, true) < 0);
    }
    return bits;
}

/* As long as the number is the same so is the answer, and mostly the number is what it was. */
static void test_inside_print(void **state)
{
    (void)state;
    int same = 0, other = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        st_rng r;
        world w;
        charged in[CHARGES];
        unsigned moments[CHARGES];
        asked asks[16];
        int n = 0;
        st_rng_seed(&r, seed);
        draw_tree(&r, &w);
        for (int i = 0; i < 16; i++)
            asks[i] = (asked){.c = {(int32_t)st_rng_range(&r, 1, ACCOUNTS), draw_need(&r)},
                              .answers = -1};
        for (int k = 0; k < 200; k++) {
            bool out = n == CHARGES || (n > 0 && st_rng_chance(&r, 1, 2));
            int i = out ? (int)st_rng_below(&r, (uint64_t)n) : n++;
            if (!out) {
                in[i] = (charged){(int32_t)st_rng_range(&r, 1, ACCOUNTS), draw_need(&r)};
                moments[i] = (unsigned)st_rng_range(&r, 1, 7);
            }
            st_admit_charge(w.tree, in[i].account, &in[i].need, moments[i], out ? -1 : 1);
            if (out) {
                in[i] = in[--n];
                moments[i] = moments[n];
            }
            for (int q = 0; q < 16; q++) {
                uint64_t print = st_admit_inside_print(w.tree, asks[q].c.account, &asks[q].c.need);
                int answers = answers_of(&w, &asks[q].c);
                if (asks[q].answers >= 0 && print == asks[q].print) {
                    if (answers != asks[q].answers)
                        fail_msg("seed %d, charge %d: told %x, then %x", (int)seed, k,
                                 asks[q].answers, answers);
                    same++;
                }
                other += asks[q].answers >= 0 && answers != asks[q].answers;
                asks[q].print = print;
                asks[q].answers = answers;
            }
        }
        end(&w);
    }
    assert_true(same > 100000 && other > 1000); /* both were met */
}

/* The fleet's CPU runs out where no floor names any: near that it matters who uses it. */
static void test_inside_print_of_a_full_fleet(void **state)
{
    (void)state;
    world w;
    begin(&w, 40000, 0, 10000, 10000);
    int32_t a = put(&w, "a", NULL, 20000, ST_UNSET, ST_UNSET);
    int32_t b = put(&w, "b", NULL, 20000, ST_UNSET, ST_UNSET);
    st_admit_floors(w.tree);
    st_need small = {A, 1000, 1000, 1}, each = {A, 1000, 1500, 1};
    for (int i = 0; i < 6; i++)
        charge(&w, a, each);
    assert_true(guaranteed(&w, b, small)); /* the last 1,000 */
    uint64_t last = st_admit_inside_print(w.tree, b, &small);
    charge(&w, a, (st_need){A, 1000, 1, 1});
    assert_false(guaranteed(&w, b, small));
    assert_false(st_admit_inside_print(w.tree, b, &small) == last);
    end(&w);
}

/* Each moment has its own counter, at the account and at all above it. */
static void test_moments_are_apart(void **state)
{
    (void)state;
    world w;
    begin(&w, 8000, 8000, 0, 0);
    int32_t org = put(&w, "org", NULL, 8000, ST_UNSET, ST_UNSET);
    int32_t leaf = put(&w, "leaf", "org", 8000, ST_UNSET, ST_UNSET);
    st_need need = {B, 2000, 300, 4};
    st_admit_charge(w.tree, leaf, &need, ST_NEXT, 1);
    for (int32_t id = leaf; id >= 0; id = st_tree_account(w.tree, id)->parent) {
        const st_account *a = st_tree_account(w.tree, id);
        assert_int_equal(a->next.gpu_m, 2000);
        assert_int_equal(a->next.type_m[B], 2000);
        assert_int_equal(a->next.type_m[A], 0);
        assert_int_equal(a->next.cpu_m, 300);
        assert_int_equal(a->next.ram_mib, 4);
        assert_int_equal(a->now.gpu_m, 0);
        assert_int_equal(a->guaranteed.gpu_m, 0);
        assert_int_equal(a->typed_sum_m, 0);
    }
    st_admit_charge(w.tree, leaf, &need, ST_GUARANTEED, 1);
    assert_int_equal(st_tree_account(w.tree, org)->typed_sum_m, 2000);
    assert_int_equal(st_tree_account(w.tree, org)->now.gpu_m, 0);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_needs_by_hand),
        cmocka_unit_test(test_typed_child_of_untyped),
        cmocka_unit_test(test_floors_of_others_stay),
        cmocka_unit_test(test_no_backing),
        cmocka_unit_test(test_cpu_and_ram_floors),
        cmocka_unit_test(test_max_at_every_ancestor),
        cmocka_unit_test(test_max_in_both_moments),
        cmocka_unit_test(test_need_of_a_job),
        cmocka_unit_test(test_guaranteed_is_soundness),
        cmocka_unit_test(test_charge_is_symmetric),
        cmocka_unit_test(test_inside_print),
        cmocka_unit_test(test_inside_print_of_a_full_fleet),
        cmocka_unit_test(test_moments_are_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
