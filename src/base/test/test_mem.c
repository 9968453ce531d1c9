/*
 * Allocation, arenas and growable arrays, and that their own mistakes abort.
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/testing.h"
#include "base/vec.h"

/* Runs fn in a child and says whether it ended in abort(). */
static bool aborts(void (*fn)(void))
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        /* cmocka catches signals in the parent's image; here the default shall hold. */
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        fn();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void fail_assertion(void)
{
    ST_ASSERT(1 + 1 == 3);
}

static void overflow_calloc(void)
{
    free(st_xcalloc(SIZE_MAX / 2, 16));
}

static void pop_empty(void)
{
    ST_VEC(int) v = {0};

    (void)st_vec_pop(&v);
}

static void test_aborts(void **state)
{
    (void)state;
    assert_true(aborts(fail_assertion));
    assert_true(aborts(overflow_calloc));
    assert_true(aborts(pop_empty));
}

static void test_strings(void **state)
{
    ST_CLEANUP(st_freep) char *a = st_xstrdup("abc");
    ST_CLEANUP(st_freep) char *b = st_xstrndup("abcdef", 3);
    char *c;

    (void)state;
    assert_string_equal(a, b);
    free(st_xcalloc(0, 8));
    c = ST_TAKE(a);
    assert_null(a);
    assert_string_equal(c, "abc");
    st_freep(&c);
    assert_null(c);
}

static void test_arena(void **state)
{
    ST_CLEANUP(st_arena_freep) st_arena *a = st_arena_new();

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 4000; i++) {
            unsigned char *p = st_arena_alloc(a, i % 97);

            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t k = 0; k < i % 97; k++)
                assert_int_equal(p[k], 0);
            memset(p, 0xFF, i % 97);
        }
        /* Larger than any block. */
        memset(st_arena_alloc(a, 3 << 20), 0xFF, 3 << 20);
        assert_string_equal(st_arena_strdup(a, "text"), "text");
        assert_string_equal(st_arena_strndup(a, "text", 2), "te");
        st_arena_reset(a);
    }
    st_arena_free(NULL);
}

typedef struct pair {
    int a, b;
} pair;

static void test_vec(void **state)
{
    ST_VEC(pair) v = {0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        st_vec_push(&v, (pair){.a = i, .b = -i});
    assert_int_equal(v.n, 1000);
    assert_int_equal(v.v[999].b, -999);
    st_vec_remove(&v, 0);
    assert_int_equal(v.v[0].a, 1);
    st_vec_insert(&v, 0, (pair){7, 7});
    st_vec_insert(&v, v.n, (pair){8, 8});
    assert_int_equal(v.v[0].a, 7);
    assert_int_equal(v.v[1].a, 1);
    assert_int_equal(st_vec_pop(&v).a, 8);
    st_vec_pop(&v);
    assert_int_equal(v.n, 999);
    st_vec_clear(&v);
    assert_int_equal(v.n, 0);
    st_vec_trim(&v);
    assert_null(v.v);
    st_vec_push(&v, (pair){1, 2});
    st_vec_trim(&v);
    assert_int_equal(v.cap, 1);
    st_vec_push(&v, (pair){3, 4});
    assert_int_equal(v.v[0].b, 2);
    st_vec_clear(&v);
    st_vec_reserve(&v, 5000);
    assert_true(v.cap >= 5000);
    st_vec_free(&v);
    assert_null(v.v);
}

static void test_vec_of_pointers(void **state)
{
    typedef ST_VEC(const char *) names;
    names v = {0};
    names *p = &v;

    (void)state;
    st_vec_push(p, "b");
    st_vec_insert(p, 0, "a");
    st_vec_push(p, p->v[0]);
    assert_string_equal(v.v[1], "b");
    assert_string_equal(v.v[2], "a");
    st_vec_free(p);
}

static int64_t next_of(int64_t *clock)
{
    return ++*clock;
}

/* A timeout of "until then, but not below 0" came out below 0 when time passed between two looks. */
static void test_macros(void **state)
{
    int a[5];
    int64_t clock = 0;

    (void)state;
    assert_int_equal(ST_ARRAY_LEN(a), 5);
    assert_int_equal(ST_MAX(3, ST_MIN(9, 5)), 5);
    assert_int_equal(ST_MAX(0, 2 - next_of(&clock)), 1);
    assert_int_equal(ST_MIN((int64_t)10, ST_MAX(0, 2 - next_of(&clock))), 0);
    assert_int_equal(clock, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aborts),          cmocka_unit_test(test_strings),
        cmocka_unit_test(test_arena),           cmocka_unit_test(test_vec),
        cmocka_unit_test(test_vec_of_pointers), cmocka_unit_test(test_macros),
    };

    return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
