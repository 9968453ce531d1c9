/* Names of states, and an end. */
#include "model/booking.h"

#include <stdlib.h>

#include "base/macros.h"

const char *st_booking_state_name(st_booking_state state)
{
    static const char *const names[] = {
#define X(id, name, about) [id] = name,
        ST_BOOKING_STATE_TABLE(X)
#undef X
    };
    ST_ASSERT(state < ST_BOOKING_STATE_COUNT);
    return names[state];
}

bool st_booking_degraded(const st_booking *booking)
{
    for (int t = 0; t < booking->tasks; t++)
        if (booking->plan[t].node < 0)
            return true;
    return false;
}

void st_booking_free(st_booking *booking)
{
    if (!booking)
        return;
    free(booking->name);
    free(booking->require);
    free(booking->plan);
    free(booking);
}
