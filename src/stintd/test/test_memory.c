/*
 * Memory of a busy moment: what is freed between blocks that stay goes back to the system.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/testing.h"
#include "stintd/memory.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_ALLOCATOR 0
#elif defined(__has_feature)
#define OWN_ALLOCATOR (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define OWN_ALLOCATOR 1
#endif

#define MIB   (INT64_C(1) << 20)
#define SIZE  1000
#define COUNT (64 * MIB / SIZE)
#define STAY  256 /* every so manyth block stays: the heap cannot shrink from its end */

static void a_busy_moment_is_given_back(void **state)
{
    char **blocks = st_xcalloc(COUNT, sizeof *blocks);
    st_memory memory = {0};
    int64_t before;
    (void)state;

    st_memory_look(&memory);
    before = st_memory_held();
    for (int64_t i = 0; i < COUNT; i++)
        blocks[i] = memset(st_xmalloc(SIZE), 1, SIZE);
    for (int64_t i = 0; i < COUNT; i++)
        if (i % STAY != 0)
            free(blocks[i]);
    if (OWN_ALLOCATOR) { /* a sanitizer's keeps what it has */
        assert_true(st_memory_held() > before + 48 * MIB);
        assert_true(st_memory_look(&memory));
        assert_true(st_memory_held() < before + 16 * MIB);
    }
    for (int64_t i = 0; i < COUNT; i += STAY)
        free(blocks[i]);
    free(blocks);
}

/* Where nothing grew it looks, and no more, for an hour. */
static void a_quiet_hour_costs_looks(void **state)
{
    st_memory memory = {0};
    int gave = 0;
    (void)state;

    st_memory_look(&memory);
    for (int i = 0; i < 2 * 3600 / ST_MEMORY_LOOK_S; i++)
        gave += st_memory_look(&memory);
    assert_int_equal(gave, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_moment_is_given_back),
        cmocka_unit_test(a_quiet_hour_costs_looks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
