/*
 * st_share_divide against examples worked by hand; test_divide_laws.c holds
 * what must be true of every tree.
 */
#include <math.h>

#include "base/testing.h"
#include "share/divide.h"

#define NONE INFINITY
#define ROWS 8

typedef struct row {
    const char *name, *parent;
    double guarantee, max, weight;
    int priority;
    double demand;
    double share;
    int64_t whole;
} row;

typedef struct example {
    const char *title;
    double capacity;
    st_share_counts counts;
    double left;
    row rows[ROWS];
} example;

/* Rows: name, parent, guarantee, max, weight, priority, demand -> share, whole. */
static const example examples[] = {
    {"equal weights halve",
     10,
     ST_COUNTS_BORROWED,
     0,
     {{"a", NULL, 0, NONE, 1, 0, 10, 5, 5}, {"b", NULL, 0, NONE, 1, 0, 10, 5, 5}}},

    /* 11 - 2 - 2 = 7 to lend in parts of 7/5: a 2 + 1.4, b 2 + 5.6. Rounded down 3 + 7, and the
     * eleventh goes to .6. */
    {"borrowed by weight",
     11,
     ST_COUNTS_BORROWED,
     0,
     {{"a", NULL, 2, 10, 1, 0, 10, 3.4, 3}, {"b", NULL, 2, NONE, 4, 0, 10, 7.6, 8}}},

    /* The same by total: a = L, b = 4L, 5L = 11, L = 2.2, above both guarantees. */
    {"total by weight",
     11,
     ST_COUNTS_TOTAL,
     0,
     {{"a", NULL, 2, 10, 1, 0, 10, 2.2, 2}, {"b", NULL, 2, NONE, 4, 0, 10, 8.8, 9}}},

    /* a holds 8 already, the level stays below that: b and c halve the other 4. */
    {"total: a guarantee above its part",
     12,
     ST_COUNTS_TOTAL,
     0,
     {{"a", NULL, 8, NONE, 1, 0, 20, 8, 8},
      {"b", NULL, 0, NONE, 1, 0, 20, 2, 2},
      {"c", NULL, 0, NONE, 1, 0, 20, 2, 2}}},

    /* Borrowed does not look at the 8: 4/3 more for each. Remainders tie, a is first by name. */
    {"borrowed: a guarantee above its part",
     12,
     ST_COUNTS_BORROWED,
     0,
     {{"a", NULL, 8, NONE, 1, 0, 20, 8 + 4.0 / 3, 10},
      {"b", NULL, 0, NONE, 1, 0, 20, 4.0 / 3, 1},
      {"c", NULL, 0, NONE, 1, 0, 20, 4.0 / 3, 1}}},

    /* a takes its 6; the 4 left in parts of 4/6: b 5 parts = 3.33, c 1 part = 0.67. */
    {"priority before weight",
     10,
     ST_COUNTS_BORROWED,
     0,
     {{"a", NULL, 0, NONE, 1, 1, 6, 6, 6},
      {"b", NULL, 0, NONE, 5, 0, 10, 10.0 / 3, 3},
      {"c", NULL, 0, NONE, 1, 0, 10, 2.0 / 3, 1}}},

    {"a guarantee stands before priority",
     10,
     ST_COUNTS_BORROWED,
     0,
     {{"hi", NULL, 0, NONE, 1, 9, 10, 6, 6}, {"lo", NULL, 4, NONE, 1, 0, 10, 4, 4}}},

    {"three priorities, the last gets nothing",
     5,
     ST_COUNTS_TOTAL,
     0,
     {{"p0", NULL, 0, NONE, 9, -1, 3, 0, 0},
      {"p1", NULL, 0, NONE, 1, 0, 3, 2, 2},
      {"p2", NULL, 0, NONE, 1, 2000, 3, 3, 3}}},

    {"weight 0 borrows nothing",
     10,
     ST_COUNTS_BORROWED,
     3,
     {{"a", NULL, 2, NONE, 0, 0, 10, 2, 2}, {"b", NULL, 0, NONE, 1, 0, 5, 5, 5}}},

    /* org may want t's 2 and u's 1, not t's 9: 3 of 10, other the 7. */
    {"weight 0 below lowers the demand above",
     10,
     ST_COUNTS_BORROWED,
     0,
     {{"org", NULL, 2, NONE, 1, 0, 0, 3, 3},
      {"t", "org", 2, NONE, 0, 0, 9, 2, 2},
      {"u", "org", 0, NONE, 1, 0, 1, 1, 1},
      {"other", NULL, 0, NONE, 1, 0, 20, 7, 7}}},

    /* org cannot pass 6, but inside it t1 may use what t2 leaves: 6 - 1 = 5. */
    {"inside an account of weight 0 children lend",
     20,
     ST_COUNTS_BORROWED,
     14,
     {{"org", NULL, 6, NONE, 0, 0, 0, 6, 6},
      {"t1", "org", 3, NONE, 1, 0, 10, 5, 5},
      {"t2", "org", 3, NONE, 1, 0, 1, 1, 1}}},

    /* 12/3 = 4 each, a stops at 3, its 1 is halved. Remainders tie, b before c. */
    {"max binds",
     12,
     ST_COUNTS_BORROWED,
     0,
     {{"a", NULL, 0, 3, 1, 0, 10, 3, 3},
      {"b", NULL, 0, NONE, 1, 0, 10, 4.5, 5},
      {"c", NULL, 0, NONE, 1, 0, 10, 4.5, 4}}},

    /* L = 3 would give 6 + 3 + 9, but a stops at 5: b + c = 13 = 4L, L = 3.25. */
    {"demand binds",
     18,
     ST_COUNTS_BORROWED,
     0,
     {{"a", NULL, 0, NONE, 2, 0, 5, 5, 5},
      {"b", NULL, 0, NONE, 1, 0, 10, 3.25, 3},
      {"c", NULL, 0, NONE, 3, 0, 10, 9.75, 10}}},

    {"a max of 0",
     4,
     ST_COUNTS_TOTAL,
     3,
     {{"a", NULL, 0, 0, 1, 0, 5, 0, 0}, {"b", NULL, 0, NONE, 1, 0, 1, 1, 1}}},

    {"an unused guarantee is lent",
     10,
     ST_COUNTS_BORROWED,
     0,
     {{"a", NULL, 8, NONE, 1, 0, 2, 2, 2}, {"b", NULL, 0, NONE, 1, 0, 20, 8, 8}}},

    {"max of an inner account",
     20,
     ST_COUNTS_BORROWED,
     9,
     {{"org", NULL, 0, 6, 1, 0, 0, 6, 6},
      {"t1", "org", 0, NONE, 1, 0, 10, 3, 3},
      {"t2", "org", 0, NONE, 1, 0, 10, 3, 3},
      {"other", NULL, 0, NONE, 1, 0, 5, 5, 5}}},

    /* Top: 6 + 0, 6 left halved: 9 and 3. org1's 9: t1 4, t2 its demand 1, and 4 more for t1.
     * t1's 8: p1 3, 5 left; 2.5 more would pass p1's demand of 5, so p1 5, p2 3. */
    {"three levels",
     12,
     ST_COUNTS_BORROWED,
     0,
     {{"org1", NULL, 6, NONE, 1, 0, 0, 9, 9},
      {"org2", NULL, 0, NONE, 1, 0, 20, 3, 3},
      {"t1", "org1", 4, NONE, 1, 0, 0, 8, 8},
      {"t2", "org1", 2, NONE, 1, 0, 1, 1, 1},
      {"p1", "t1", 3, NONE, 1, 0, 5, 5, 5},
      {"p2", "t1", 0, NONE, 1, 0, 5, 3, 3}}},

    {"priority counts among siblings only",
     10,
     ST_COUNTS_BORROWED,
     0,
     {{"org1", NULL, 0, NONE, 1, 0, 0, 5, 5},
      {"t1", "org1", 0, NONE, 1, 5, 4, 4, 4},
      {"t2", "org1", 0, NONE, 1, 0, 4, 1, 1},
      {"org2", NULL, 0, NONE, 1, 0, 10, 5, 5}}},

    /* org2 keeps its 6, org1 = 2L = 6; inside, t1 and t2 are level at 3. */
    {"two levels by total",
     12,
     ST_COUNTS_TOTAL,
     0,
     {{"org1", NULL, 1, NONE, 2, 0, 0, 6, 6},
      {"t1", "org1", 1, NONE, 1, 0, 10, 3, 3},
      {"t2", "org1", 0, NONE, 1, 0, 10, 3, 3},
      {"org2", NULL, 6, NONE, 1, 0, 10, 6, 6}}},

    /* 5 to lend in parts of 5/3: org1 1 + 3.33, org2 6 + 1.67; inside org1 1 + 1.67 and 1.67.
     * Wholes: 4 + 7 and one for .67: 4 and 8; of org1's 4: 2 + 1 and the tie to t1. */
    {"two levels by borrowed, rounded at both",
     12,
     ST_COUNTS_BORROWED,
     0,
     {{"org1", NULL, 1, NONE, 2, 0, 0, 13.0 / 3, 4},
      {"t1", "org1", 1, NONE, 1, 0, 10, 8.0 / 3, 3},
      {"t2", "org1", 0, NONE, 1, 0, 10, 5.0 / 3, 1},
      {"org2", NULL, 6, NONE, 1, 0, 10, 23.0 / 3, 8}}},

    /* 2.5 and 2.5: the tie to x. x's 3 over three times 0.83, y's 2 over twice 1.25. */
    {"largest remainder at two levels",
     5,
     ST_COUNTS_BORROWED,
     0,
     {{"y", NULL, 0, NONE, 1, 0, 0, 2.5, 2},
      {"y1", "y", 0, NONE, 1, 0, 5, 1.25, 1},
      {"y2", "y", 0, NONE, 1, 0, 5, 1.25, 1},
      {"x", NULL, 0, NONE, 1, 0, 0, 2.5, 3},
      {"x1", "x", 0, NONE, 1, 0, 5, 2.5 / 3, 1},
      {"x2", "x", 0, NONE, 1, 0, 5, 2.5 / 3, 1},
      {"x3", "x", 0, NONE, 1, 0, 5, 2.5 / 3, 1}}},

    {"guarantees above capacity shrink in proportion",
     6,
     ST_COUNTS_BORROWED,
     0,
     {{"a", NULL, 6, NONE, 1, 0, 10, 4, 4},
      {"b", NULL, 3, NONE, 1, 0, 10, 2, 2},
      {"c", NULL, 0, NONE, 9, 9, 10, 0, 0}}},

    /* Shrunken by half a would have 3 but wants 1; b and c share the 5 as 3 to 3. */
    {"a shrunken guarantee not wanted returns",
     6,
     ST_COUNTS_TOTAL,
     0,
     {{"a", NULL, 6, NONE, 1, 0, 1, 1, 1},
      {"b", NULL, 3, NONE, 1, 0, 9, 2.5, 3},
      {"c", NULL, 3, NONE, 1, 0, 9, 2.5, 2}}},

    /* The loss is carried down: org 8 of 12, t1 and t2 shrink 8:4 to 16/3 and 8/3. */
    {"shrinking at two levels",
     10,
     ST_COUNTS_BORROWED,
     0,
     {{"org", NULL, 12, NONE, 1, 0, 0, 8, 8},
      {"t1", "org", 8, NONE, 1, 0, 20, 16.0 / 3, 5},
      {"t2", "org", 4, NONE, 1, 0, 20, 8.0 / 3, 3},
      {"z", NULL, 3, NONE, 1, 0, 20, 2, 2}}},

    {"no capacity",
     0,
     ST_COUNTS_BORROWED,
     0,
     {{"a", NULL, 2, NONE, 1, 0, 5, 0, 0}, {"b", NULL, 0, NONE, 1, 0, 5, 0, 0}}},

    {"no demand",
     7,
     ST_COUNTS_BORROWED,
     7,
     {{"a", NULL, 2, NONE, 1, 0, 0, 0, 0}, {"b", NULL, 0, NONE, 1, 0, 0, 0, 0}}},

    {"ties by name, by bytes",
     1,
     ST_COUNTS_BORROWED,
     0,
     {{"b", NULL, 0, NONE, 1, 0, 1, 1.0 / 3, 0},
      {"a", NULL, 0, NONE, 1, 0, 1, 1.0 / 3, 0},
      {"B", NULL, 0, NONE, 1, 0, 1, 1.0 / 3, 1}}},

    {"half a unit stays half",
     2.5,
     ST_COUNTS_BORROWED,
     0,
     {{"a", NULL, 0, NONE, 1, 0, 1, 1, 1}, {"b", NULL, 0, NONE, 1, 0, 5, 1.5, 1}}},

    {"demand without end",
     9,
     ST_COUNTS_BORROWED,
     0,
     {{"a", NULL, 0, NONE, 1, 0, NONE, 3, 3}, {"b", NULL, 0, NONE, 2, 0, NONE, 6, 6}}},

    {"the largest capacity",
     1e12,
     ST_COUNTS_TOTAL,
     0,
     {{"a", NULL, 0, NONE, 1, 0, 1e12, 1e12 / 3, 333333333334},
      {"b", NULL, 0, NONE, 1, 0, 1e12, 1e12 / 3, 333333333333},
      {"c", NULL, 0, NONE, 1, 0, 1e12, 1e12 / 3, 333333333333}}},

    /* 1e21 to 1: b's part is a billionth of a billionth and rounds away. */
    {"the widest weights",
     8,
     ST_COUNTS_BORROWED,
     0,
     {{"a", NULL, 0, NONE, 1e12, 0, 8, 8, 8}, {"b", NULL, 0, NONE, 1e-9, 0, 8, 0, 0}}},
};

static int row_index(const example *e, const char *name)
{
    for (int i = 0; name && i < ROWS && e->rows[i].name; i++)
        if (strcmp(e->rows[i].name, name) == 0)
            return i;
    return -1;
}

static int example_input(const example *e, st_divide_in *ret)
{
    int n = 0;

    for (; n < ROWS && e->rows[n].name; n++) {
        const row *r = &e->rows[n];

        ret[n] = (st_divide_in){
            .parent = row_index(e, r->parent),
            .priority = r->priority,
            .name = r->name,
            .guarantee = r->guarantee,
            .max = r->max,
            .demand = r->demand,
            .weight = r->weight,
        };
    }
    return n;
}

static int off(double a, double b)
{
    return fabs(a - b) > 1e-9 * fmax(1, fabs(b));
}

static void test_examples(void **state)
{
    int wrong = 0;

    (void)state;
    for (size_t k = 0; k < ST_ARRAY_LEN(examples); k++) {
        const example *e = &examples[k];
        st_divide_in in[ROWS];
        st_divide_out out[ROWS];
        int n = example_input(e, in);
        double left;

        st_share_divide(e->capacity, e->counts, in, n, out, &left, NULL);
        for (int i = 0; i < n; i++) {
            if (!off(out[i].share, e->rows[i].share) && out[i].whole == e->rows[i].whole)
                continue;
            print_error("%s: %s gets %.12g, whole %lld; expected %.12g, %lld\n", e->title,
                        in[i].name, out[i].share, (long long)out[i].whole, e->rows[i].share,
                        (long long)e->rows[i].whole);
            wrong++;
        }
        if (off(left, e->left)) {
            print_error("%s: %.12g left, expected %.12g\n", e->title, left, e->left);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

static void test_no_accounts(void **state)
{
    double left;
    int64_t left_whole;

    (void)state;
    st_share_divide(7.5, ST_COUNTS_TOTAL, NULL, 0, NULL, &left, &left_whole);
    assert_true(left == 7.5);
    assert_int_equal(left_whole, 7);
}

static void test_left_whole(void **state)
{
    st_divide_in in[] = {{-1, 0, "a", 0, NONE, 1.5, 1}, {-1, 0, "b", 0, NONE, 2.25, 1}};
    st_divide_out out[2];
    double left;
    int64_t left_whole;

    /* 3.75 of 8.5 are taken, 4.75 are left; rounded down 1 + 2 = 3, which is all
     * of floor(3.75); 3 of 8 whole units, 5 left. */
    (void)state;
    st_share_divide(8.5, ST_COUNTS_BORROWED, in, 2, out, &left, &left_whole);
    assert_true(fabs(left - 4.75) < 1e-9);
    assert_int_equal(out[0].whole, 1);
    assert_int_equal(out[1].whole, 2);
    assert_int_equal(left_whole, 5);
}

static void test_same_names(void **state)
{
    st_divide_in in[] = {{-1, 0, NULL, 0, NONE, 1, 1}, {-1, 0, NULL, 0, NONE, 1, 1}};
    st_divide_out out[2];

    /* Half each; with no names the first one in the input gets the unit. */
    (void)state;
    st_share_divide(1, ST_COUNTS_BORROWED, in, 2, out, NULL, NULL);
    assert_int_equal(out[0].whole, 1);
    assert_int_equal(out[1].whole, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_no_accounts),
        cmocka_unit_test(test_left_whole),
        cmocka_unit_test(test_same_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
