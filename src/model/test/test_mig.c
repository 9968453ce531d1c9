/*
 * MIG geometry against an enumeration that knows nothing of the code: every set of placements
 * a GPU could carry, tried one by one.
 */
#include "base/macros.h"
#include "base/testing.h"
#include "model/mig.h"

/* The vendor's table, written down again: memory and compute slices, and the legal starts. */
typedef struct placement {
    st_mig profile;
    int start, compute;
    uint8_t mask;
} placement;

#define PLACEMENTS 18 /* 7 + 4 + 3 + 2 + 1 + 1 */
#define SETS_MAX   1000

typedef struct carving {
    uint32_t set; /* bit i set: placement i is carved */
    uint8_t mask;
    int compute;
} carving;

typedef struct atlas {
    placement place[PLACEMENTS];
    int n;
    carving sets[SETS_MAX];
    int nsets;
} atlas;

static void atlas_add(atlas *a, st_mig profile, int compute, int memory, const int *starts, int n)
{
    for (int i = 0; i < n; i++) {
        unsigned run = (1u << memory) - 1;
        a->place[a->n++] =
            (placement){profile, starts[i], compute, (uint8_t)(run << (unsigned)starts[i])};
    }
}

static void atlas_init(atlas *a, bool classic)
{
    memset(a, 0, sizeof *a);
    atlas_add(a, ST_MIG_1G, 1, 1, (const int[]){0, 1, 2, 3, 4, 5, 6}, 7);
    if (!classic)
        atlas_add(a, ST_MIG_1G2, 1, 2, (const int[]){0, 2, 4, 6}, 4);
    atlas_add(a, ST_MIG_2G, 2, 2, (const int[]){0, 2, 4}, 3);
    atlas_add(a, ST_MIG_3G, 3, 4, (const int[]){0, 4}, 2);
    atlas_add(a, ST_MIG_4G, 4, 4, (const int[]){0}, 1);
    atlas_add(a, ST_MIG_7G, 7, 8, (const int[]){0}, 1);
    for (uint32_t set = 0; set < 1u << a->n; set++) {
        carving c = {.set = set};
        bool ok = true;
        for (int i = 0; i < a->n && ok; i++) {
            if (!(set >> i & 1))
                continue;
            ok = !(c.mask & a->place[i].mask);
            c.mask |= a->place[i].mask;
            c.compute += a->place[i].compute;
        }
        if (ok && c.compute <= 7) {
            assert_true(a->nsets < SETS_MAX);
            a->sets[a->nsets++] = c;
        }
    }
}

static bool fits_more(const atlas *a, const carving *c)
{
    for (int i = 0; i < a->n; i++)
        if (!(c->mask & a->place[i].mask) && c->compute + a->place[i].compute <= 7)
            return true;
    return false;
}

/* How many of each profile a set has, as one number. */
static uint32_t multiset(const atlas *a, uint32_t set)
{
    uint32_t sum = 0;
    for (int i = 0; i < a->n; i++)
        if (set >> i & 1)
            sum += 1u << (4 * a->place[i].profile);
    return sum;
}

static void count_maximal(const atlas *a, int *ret_placed, int *ret_multisets)
{
    uint32_t seen[SETS_MAX];
    int placed = 0, n = 0;
    for (int i = 0; i < a->nsets; i++) {
        if (fits_more(a, &a->sets[i]))
            continue;
        placed++;
        uint32_t m = multiset(a, a->sets[i].set);
        int k = 0;
        while (k < n && seen[k] != m)
            k++;
        if (k == n)
            seen[n++] = m;
    }
    *ret_placed = placed;
    *ret_multisets = n;
}

/* Sets that contain this one, itself included. */
static int supersets(const atlas *a, uint32_t set)
{
    int n = 0;
    for (int i = 0; i < a->nsets; i++)
        n += (a->sets[i].set & set) == set;
    return n;
}

/* The atlas itself is right: the published counts. The empty GPU is one of the states. */
static void test_known_counts(void **state)
{
    (void)state;
    static atlas a;
    int placed, multisets;
    atlas_init(&a, true);
    count_maximal(&a, &placed, &multisets);
    assert_int_equal(placed, 19);
    assert_int_equal(multisets, 14);
    assert_int_equal(a.nsets, 298);
    assert_int_equal(st_mig_doors(0, 0, true), 298);

    atlas_init(&a, false);
    count_maximal(&a, &placed, &multisets);
    assert_int_equal(placed, 78);
    assert_int_equal(multisets, 38);
    assert_int_equal(a.nsets, 723);
    assert_int_equal(st_mig_doors(0, 0, false), 723);
}

static void test_doors_everywhere(void **state)
{
    (void)state;
    static atlas a;
    for (int classic = 0; classic <= 1; classic++) {
        atlas_init(&a, classic);
        for (int i = 0; i < a.nsets; i++) {
            const carving *c = &a.sets[i];
            int got = st_mig_doors(c->mask, c->compute, classic);
            int want = supersets(&a, c->set);
            if (got != want)
                fail_msg("mask %02x compute %d: %d doors, wanted %d", c->mask, c->compute, got,
                         want);
        }
    }
}

static void test_starts(void **state)
{
    (void)state;
    static atlas a;
    atlas_init(&a, false);
    for (int p = 0; p < ST_MIG_COUNT; p++) {
        for (int s = -2; s < 12; s++) {
            const placement *at = NULL;
            for (int i = 0; i < a.n; i++)
                if ((int)a.place[i].profile == p && a.place[i].start == s)
                    at = &a.place[i];
            assert_int_equal(st_mig_start_legal((st_mig)p, s), at != NULL);
            if (at) {
                assert_int_equal(st_mig_mask((st_mig)p, s), at->mask);
                assert_int_equal(st_mig_compute((st_mig)p), at->compute);
                assert_int_equal(st_mig_memory((st_mig)p), __builtin_popcount(at->mask));
            }
        }
    }
}

/* The most instances of one profile that some larger set adds to this one, and to no other. */
static int room_by_hand(const atlas *a, const carving *c, int profile)
{
    int best = 0;
    for (int i = 0; i < a->nsets; i++) {
        uint32_t more = a->sets[i].set & ~c->set;
        if ((a->sets[i].set & c->set) != c->set)
            continue;
        int n = 0;
        bool only = true;
        for (int k = 0; k < a->n; k++) {
            if (!(more >> k & 1))
                continue;
            only &= (int)a->place[k].profile == profile;
            n++;
        }
        if (only)
            best = ST_MAX(best, n);
    }
    return best;
}

static void test_room_everywhere(void **state)
{
    (void)state;
    static atlas a;
    atlas_init(&a, false);
    for (int i = 0; i < a.nsets; i++) {
        const carving *c = &a.sets[i];
        for (int p = 0; p < ST_MIG_COUNT; p++) {
            int got = st_mig_room(c->mask, c->compute, (st_mig)p);
            int want = room_by_hand(&a, c, p);
            if (got != want)
                fail_msg("mask %02x compute %d profile %d: room %d, wanted %d", c->mask, c->compute,
                         p, got, want);
        }
    }
    const int most[ST_MIG_COUNT] = {7, 4, 3, 2, 1, 1};
    for (int p = 0; p < ST_MIG_COUNT; p++)
        assert_int_equal(st_mig_room(0, 0, (st_mig)p), most[p]);
}

/* Doors of a state among the classic profiles, counted here: supersets of a set with the same
 * slices taken. Slices that 1g+ took are taken all the same. */
static int classic_doors(const atlas *classic, uint8_t mask, int compute)
{
    int n = 0;
    for (int i = 0; i < classic->nsets; i++)
        n += !(classic->sets[i].mask & mask) && classic->sets[i].compute + compute <= 7;
    return n;
}

static void test_best_start_everywhere(void **state)
{
    (void)state;
    static atlas a, classic;
    atlas_init(&a, false);
    atlas_init(&classic, true);
    for (int i = 0; i < a.nsets; i++) {
        const carving *c = &a.sets[i];
        for (int p = 0; p < ST_MIG_COUNT; p++) {
            int want = -1, want_doors = -1;
            for (int k = 0; k < a.n; k++) {
                const placement *at = &a.place[k];
                if ((int)at->profile != p || (at->mask & c->mask) || at->compute + c->compute > 7)
                    continue;
                uint8_t then = at->mask | c->mask;
                int compute = at->compute + c->compute;
                int doors = classic_doors(&classic, then, compute);
                if (!(then & 0x0f) && compute + 4 <= 7) /* a 4g still goes to 0-3 */
                    doors += 1000;
                if (doors > want_doors || (doors == want_doors && at->start > want)) {
                    want = at->start;
                    want_doors = doors;
                }
            }
            int got = st_mig_best_start(c->mask, c->compute, (st_mig)p);
            if (got != want)
                fail_msg("mask %02x compute %d profile %d: start %d, wanted %d", c->mask,
                         c->compute, p, got, want);
        }
    }
}

static void test_first_starts(void **state)
{
    (void)state;
    assert_int_equal(st_mig_best_start(0, 0, ST_MIG_3G), 4);
    assert_int_equal(st_mig_best_start(0, 0, ST_MIG_1G), 6);
    assert_int_equal(st_mig_best_start(0, 0, ST_MIG_1G2), 6);
    assert_int_equal(st_mig_best_start(0, 0, ST_MIG_4G), 0);
    assert_int_equal(st_mig_best_start(0, 0, ST_MIG_7G), 0);
}

/* Small ones that arrive one after the other leave slices 0-3 to a 4g as long as they can. */
static void test_room_for_4g_is_kept(void **state)
{
    (void)state;
    const struct {
        st_mig profile;
        int n;
    } rows[] = {{ST_MIG_1G, 3}, {ST_MIG_1G2, 2}, {ST_MIG_3G, 1}};
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        uint8_t mask = 0;
        int compute = 0;
        for (int k = 0; k < rows[i].n; k++) {
            int start = st_mig_best_start(mask, compute, rows[i].profile);
            assert_true(start >= 4);
            mask |= st_mig_mask(rows[i].profile, start);
            compute += st_mig_compute(rows[i].profile);
            assert_int_equal(st_mig_room(mask, compute, ST_MIG_4G), 1);
        }
    }
    /* A full GPU takes nothing, and neither does one without compute left. */
    for (int p = 0; p < ST_MIG_COUNT; p++) {
        assert_int_equal(st_mig_best_start(0xff, 0, (st_mig)p), -1);
        assert_int_equal(st_mig_best_start(0x00, 7, (st_mig)p), -1);
    }
    assert_int_equal(st_mig_best_start(0x0f, 4, ST_MIG_4G), -1);
    assert_int_equal(st_mig_best_start(0x0f, 4, ST_MIG_3G), 4);
}

static void test_charge_and_footprint(void **state)
{
    (void)state;
    const int64_t charge[ST_MIG_COUNT] = {142, 250, 285, 500, 571, 1000};
    const int64_t footprint[ST_MIG_COUNT] = {125, 250, 250, 500, 500, 1000};
    for (int p = 0; p < ST_MIG_COUNT; p++) {
        assert_int_equal(st_mig_charge_m((st_mig)p), charge[p]);
        assert_int_equal(st_mig_footprint_m((st_mig)p), footprint[p]);
    }
    /* The pair that fills a GPU and charges more than one. */
    assert_int_equal(st_mig_charge_m(ST_MIG_4G) + st_mig_charge_m(ST_MIG_3G), 1071);
    /* No legal layout's footprint is above one GPU. */
    static atlas a;
    atlas_init(&a, false);
    for (int i = 0; i < a.nsets; i++) {
        int64_t sum = 0;
        for (int k = 0; k < a.n; k++)
            if (a.sets[i].set >> k & 1)
                sum += st_mig_footprint_m(a.place[k].profile);
        assert_true(sum <= 1000);
    }
}

static void test_names(void **state)
{
    (void)state;
    const struct {
        st_board board;
        const char *name;
        const char *profile[ST_MIG_COUNT];
        int64_t vram_mib[ST_MIG_COUNT];
    } rows[] = {
        {ST_BOARD_A100_40,
         "a100-40",
         {"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"},
         {4864, 9856, 9856, 19968, 19968, 40192}},
        {ST_BOARD_A100_80,
         "a100-80",
         {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
         {9856, 19968, 19968, 40192, 40192, 80384}},
        {ST_BOARD_H100_80,
         "h100-80",
         {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
         {9984, 20090, 20090, 40448, 40448, 81152}},
        {ST_BOARD_H200_141,
         "h200-141",
         {"1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"},
         {16384, 33280, 33280, 71424, 71424, 143360}},
    };
    const char *const brief[ST_MIG_COUNT] = {"1g", "1g+", "2g", "3g", "4g", "7g"};
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        assert_string_equal(st_board_name(rows[i].board), rows[i].name);
        for (int p = 0; p < ST_MIG_COUNT; p++) {
            assert_string_equal(st_mig_name(rows[i].board, (st_mig)p), rows[i].profile[p]);
            assert_int_equal(st_mig_parse(rows[i].board, rows[i].profile[p]), p);
            assert_int_equal(st_mig_parse(rows[i].board, brief[p]), p);
            assert_int_equal(st_mig_vram_mib(rows[i].board, (st_mig)p), rows[i].vram_mib[p]);
        }
    }
}

static void test_impossible_names(void **state)
{
    (void)state;
    const char *const never[] = {"",       "1",        "5g",       "6g",      "3g.",     "3g.40",
                                 "3g.2gb", "3G.40GB",  " 3g",      "3g ",     "1g++",    "1g.5gb+",
                                 "0g",     "7g.141GB", "7g.282gb", "2g.40gb", "3g.40gbx"};
    for (int b = 0; b < ST_BOARD_COUNT; b++)
        for (size_t i = 0; i < ST_ARRAY_LEN(never); i++)
            if (st_mig_parse((st_board)b, never[i]) != -1)
                fail_msg("\"%s\" was taken on %s", never[i], st_board_name((st_board)b));
    /* A name of another board; and one that means another profile there. */
    assert_int_equal(st_mig_parse(ST_BOARD_A100_40, "3g.40gb"), -1);
    assert_int_equal(st_mig_parse(ST_BOARD_H100_80, "3g.20gb"), -1);
    assert_int_equal(st_mig_parse(ST_BOARD_H200_141, "7g.80gb"), -1);
    assert_int_equal(st_mig_parse(ST_BOARD_A100_40, "1g.10gb"), ST_MIG_1G2);
    assert_int_equal(st_mig_parse(ST_BOARD_A100_80, "1g.10gb"), ST_MIG_1G);
    /* A board that cannot be carved has no profiles, not even short ones. */
    assert_int_equal(st_mig_parse(ST_BOARD_NONE, "1g"), -1);
    for (int p = 0; p < ST_MIG_COUNT; p++)
        assert_null(st_mig_name(ST_BOARD_NONE, (st_mig)p));
}

/* Slices come one by one and stay. Of all orders in which the layouts that leave no room can come, how many are placed
 * whole: by the rule, by the best choice of starts there is, and by the best that keeps the place of a 4g while it
 * can. More than the rule has can be had only by giving that up. */
typedef enum choice { BY_RULE, ANY, KEEPING } choice;

#define KINDS 4
static const st_mig kinds[KINDS] = {ST_MIG_1G, ST_MIG_2G, ST_MIG_3G, ST_MIG_4G};
static const int whole_layouts[][KINDS] = {
    {7, 0, 0, 0}, {5, 1, 0, 0}, {4, 0, 1, 0}, {3, 2, 0, 0}, {3, 0, 0, 1}, {2, 1, 1, 0},
    {1, 3, 0, 0}, {1, 1, 0, 1}, {0, 2, 1, 0}, {0, 0, 2, 0}, {0, 0, 1, 1},
};

/* Whether what came is part of such a layout; *ret_whole: all of one. */
static bool leads_on(const int *came, bool *ret_whole)
{
    bool leads = false;
    *ret_whole = false;
    for (size_t i = 0; i < ST_ARRAY_LEN(whole_layouts); i++) {
        int lack = 0, over = 0;
        for (int k = 0; k < KINDS; k++) {
            lack += ST_MAX(whole_layouts[i][k] - came[k], 0);
            over += ST_MAX(came[k] - whole_layouts[i][k], 0);
        }
        leads |= over == 0;
        *ret_whole |= over == 0 && lack == 0;
    }
    return leads;
}

static int placed_whole(int *came, uint8_t mask, int compute, choice how)
{
    bool whole;
    int sum = 0;
    if (!leads_on(came, &whole) || whole)
        return whole;
    for (int k = 0; k < KINDS; k++) {
        int most = 0;
        bool kept = false;
        came[k]++;
        for (int s = 0; s < ST_MIG_MEMORY && st_mig_room(mask, compute, kinds[k]) > 0; s++) {
            if (!st_mig_start_legal(kinds[k], s) || st_mig_overlaps(mask, kinds[k], s) ||
                (how == BY_RULE && s != st_mig_best_start(mask, compute, kinds[k])))
                continue;
            uint8_t with = mask | st_mig_mask(kinds[k], s);
            int used = compute + st_mig_compute(kinds[k]);
            bool keeps = how == KEEPING && st_mig_room(with, used, ST_MIG_4G) > 0;
            if (kept && !keeps)
                continue;
            int n = placed_whole(came, with, used, how);
            most = keeps && !kept ? n : ST_MAX(most, n);
            kept |= keeps;
        }
        came[k]--;
        sum += most;
    }
    return sum;
}

static void test_orders_placed_whole(void **state)
{
    (void)state;
    int came[KINDS] = {0};
    assert_int_equal(placed_whole(came, 0, 0, BY_RULE), 39);
    assert_int_equal(placed_whole(came, 0, 0, KEEPING), 39);
    assert_int_equal(placed_whole(came, 0, 0, ANY), 44); /* of 54 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_counts),
        cmocka_unit_test(test_doors_everywhere),
        cmocka_unit_test(test_starts),
        cmocka_unit_test(test_room_everywhere),
        cmocka_unit_test(test_best_start_everywhere),
        cmocka_unit_test(test_first_starts),
        cmocka_unit_test(test_room_for_4g_is_kept),
        cmocka_unit_test(test_orders_placed_whole),
        cmocka_unit_test(test_charge_and_footprint),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_impossible_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
