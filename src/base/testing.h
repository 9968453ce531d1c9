/*
 * For unit tests only: cmocka with the headers it wants in front of it, and
 * checks for our error convention.
 */
#ifndef ST_BASE_TESTING_H
#define ST_BASE_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* Last: it does not include what it uses. */
#include <cmocka.h>

#include "base/err.h"

/* The call succeeds; its message is shown if it does not. `err` must be in scope. */
#define assert_ok(call)                                         \
    do {                                                        \
        int st_test_r_ = (call);                                \
        if (st_test_r_ != 0)                                    \
            fail_msg("%s: %d: %s", #call, st_test_r_, err.msg); \
    } while (0)

/* The call fails with that code and a message that contains the text. `err` must be in scope. */
#define assert_fails(call, want, text)                                                     \
    do {                                                                                   \
        int st_test_r_ = (call);                                                           \
        if (st_test_r_ != -(want))                                                         \
            fail_msg("%s: returned %d, wanted %d", #call, st_test_r_, -(want));            \
        if (err.code != (want) || !strstr(err.msg, (text)))                                \
            fail_msg("%s: code %d, message \"%s\" lacks \"%s\"", #call, err.code, err.msg, \
                     (text));                                                              \
    } while (0)

#endif
