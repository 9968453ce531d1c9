/*
 * Where a failed ST_ASSERT ends: one line on stderr, then abort(), so that a
 * core file and the supervisor's log both name the broken invariant.
 */
#include "base/macros.h"

#include <stdio.h>

_Noreturn void st_assert_fail(const char *file, int line, const char *func, const char *expr)
{
    fprintf(stderr, "%s:%d: %s: assertion failed: %s\n", file, line, func, expr);
    abort();
}
