/* Every entry of the guard's table, so that each can be looked up and called: does nothing and says that all is well.
 * What needs more is in fake_driver.c and takes their place. */
#include <stddef.h>

#include "guard/cuda.h"
#include "guard/entries.h"

int fake_stub_calls;

#define STUB(name, ...)                                          \
    __attribute__((weak, visibility("default"))) int name(void); \
    int name(void)                                               \
    {                                                            \
        fake_stub_calls++;                                       \
        return 0;                                                \
    }

GUARD_CALLS(STUB)
GUARD_WORK(STUB)
GUARD_REFUSED(STUB)
GUARD_HELPERS(STUB)
