/*
 * The minimal set of victims, for random monotone questions: checked by looking at every
 * smaller set, with the candidates' state watched on the way.
 */
#include "base/macros.h"
#include "base/rng.h"
#include "base/testing.h"
#include "core/minimal.h"

#define CANDS 10
#define TERMS 6

/* "Fits" is true when all candidates of some term are out: every monotone question can be
 * written so. */
typedef struct question {
    unsigned terms[TERMS];
    int nterms;
    unsigned out; /* bit c set: candidate c is out */
    int asked;
} question;

static bool answer(const question *q, unsigned out)
{
    for (int i = 0; i < q->nterms; i++)
        if ((q->terms[i] & ~out) == 0)
            return true;
    return false;
}

static void take(void *ctx, int c)
{
    question *q = ctx;
    assert_false(q->out >> c & 1); /* nobody is taken twice */
    q->out |= 1u << c;
}

static void put_back(void *ctx, int c)
{
    question *q = ctx;
    assert_true(q->out >> c & 1);
    q->out &= ~(1u << c);
}

static bool fits(void *ctx)
{
    question *q = ctx;
    q->asked++;
    return answer(q, q->out);
}

static st_reclaim_ops ops_of(question *q)
{
    return (st_reclaim_ops){q, take, put_back, fits};
}

static void shuffle(st_rng *r, int *order, int n)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int k = (int)st_rng_below(r, (uint64_t)i + 1);
        int t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
}

static int place_in(const int *order, int n, int cand)
{
    for (int i = 0; i < n; i++)
        if (order[i] == cand)
            return i;
    return -1;
}

static void test_random_questions(void **state)
{
    (void)state;
    int impossible = 0, nobody = 0, several = 0;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        st_rng r;
        question q = {0};
        int order[CANDS], got[CANDS];
        st_rng_seed(&r, seed);
        int n = (int)st_rng_range(&r, 0, CANDS);
        shuffle(&r, order, n);
        q.nterms = (int)st_rng_range(&r, 0, TERMS);
        for (int i = 0; i < q.nterms; i++)
            q.terms[i] = (unsigned)(st_rng_u64(&r) & st_rng_u64(&r)) & ((1u << CANDS) - 1);
        st_reclaim_ops ops = ops_of(&q);
        int k = st_reclaim_minimal(&ops, order, n, got);

        unsigned all = (1u << n) - 1;
        if (!answer(&q, all)) {
            assert_int_equal(k, -1);
            assert_int_equal(q.out, 0); /* everybody is in again */
            impossible++;
            continue;
        }
        assert_true(k >= 0);
        unsigned chosen = 0;
        for (int i = 0; i < k; i++)
            chosen |= 1u << got[i];
        assert_int_equal(q.out, chosen); /* the chosen ones are out, and nobody else */
        assert_int_equal(__builtin_popcount(chosen), k);
        assert_int_equal(chosen & ~all, 0);
        assert_true(answer(&q, chosen));
        for (unsigned set = 0; set <= all; set++)
            if (set != chosen && (set & chosen) == set && answer(&q, set))
                fail_msg("seed %d: %x suffices inside %x", (int)seed, set, chosen);
        for (int i = 1; i < k; i++)
            assert_true(place_in(order, n, got[i - 1]) < place_in(order, n, got[i]));
        nobody += k == 0;
        several += k > 2;
    }
    assert_true(impossible > 500 && nobody > 100 && several > 500);
}

/* Nobody behind the shortest prefix that suffices is taken, and inside it the ones that were
 * to go first are taken rather than the later. */
static void test_the_first_go_first(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5000; seed++) {
        st_rng r;
        question q = {0};
        int order[CANDS], got[CANDS];
        st_rng_seed(&r, seed);
        shuffle(&r, order, CANDS);
        q.nterms = (int)st_rng_range(&r, 1, TERMS);
        for (int i = 0; i < q.nterms; i++)
            q.terms[i] = (unsigned)st_rng_range(&r, 1, (1 << CANDS) - 1);
        st_reclaim_ops ops = ops_of(&q);
        int k = st_reclaim_minimal(&ops, order, CANDS, got);
        int prefix = 0;
        unsigned out = 0;
        while (!answer(&q, out))
            out |= 1u << order[prefix++];
        for (int i = 0; i < k; i++)
            assert_true(place_in(order, CANDS, got[i]) < prefix);
        /* Who completes the prefix is needed in every set inside it. */
        assert_int_equal(got[k - 1], order[prefix - 1]);
        /* The most deserving are let off first: walking back, each either had to stay out or
         * was not needed beside those before it and those already kept. */
        unsigned keep = 0;
        for (int i = prefix - 1; i >= 0; i--) {
            unsigned before = 0;
            for (int b = 0; b < i; b++)
                before |= 1u << order[b];
            if (!answer(&q, before | keep))
                keep |= 1u << order[i];
        }
        assert_int_equal(q.out, keep);
    }
}

/* Three are needed; the others were never to go, wherever they stand in the order. */
static void test_three_of_five(void **state)
{
    (void)state;
    question q = {.terms = {0x7}, .nterms = 1};
    int got[5];
    st_reclaim_ops ops = ops_of(&q);
    assert_int_equal(st_reclaim_minimal(&ops, (const int[]){4, 2, 3, 0, 1}, 5, got), 3);
    assert_int_equal(got[0], 2);
    assert_int_equal(got[1], 0);
    assert_int_equal(got[2], 1);
}

static void test_edges(void **state)
{
    (void)state;
    int got[4] = {9, 9, 9, 9};
    question always = {.terms = {0}, .nterms = 1}, never = {0};
    st_reclaim_ops ops = ops_of(&always);
    assert_int_equal(st_reclaim_minimal(&ops, (const int[]){0, 1, 2}, 3, got), 0);
    assert_int_equal(always.out, 0);
    assert_int_equal(st_reclaim_minimal(&ops, NULL, 0, got), 0);
    ops = ops_of(&never);
    assert_int_equal(st_reclaim_minimal(&ops, (const int[]){0, 1, 2}, 3, got), -1);
    assert_int_equal(never.out, 0);
    assert_int_equal(st_reclaim_minimal(&ops, NULL, 0, got), -1);
    assert_int_equal(got[0], 9); /* nothing was written */
}

/* Asking is what costs: the prefix is searched by halves, so of 1024 candidates whose first is
 * enough not 1024 are asked about. */
typedef struct long_line {
    int out, asked;
} long_line;

static void take_long(void *ctx, int c)
{
    ((long_line *)ctx)->out += c == 0;
}

static void put_back_long(void *ctx, int c)
{
    ((long_line *)ctx)->out -= c == 0;
}

static bool fits_long(void *ctx)
{
    long_line *l = ctx;
    l->asked++;
    return l->out > 0;
}

static void test_short_prefix_is_cheap(void **state)
{
    (void)state;
    enum { N = 1024 };
    static int order[N], got[N];
    long_line l = {0};
    for (int i = 0; i < N; i++)
        order[i] = i;
    st_reclaim_ops ops = {&l, take_long, put_back_long, fits_long};
    assert_int_equal(st_reclaim_minimal(&ops, order, N, got), 1);
    assert_int_equal(got[0], 0);
    assert_true(l.asked < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_questions),      cmocka_unit_test(test_the_first_go_first),
        cmocka_unit_test(test_three_of_five),         cmocka_unit_test(test_edges),
        cmocka_unit_test(test_short_prefix_is_cheap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
