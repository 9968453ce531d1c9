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

int st_parts_per_gpu(st_board board, const st_parts *parts)
{
    switch (parts->level) {
    case ST_LEVEL_MIG:
        return st_mig_name(board, parts->profile) ? st_mig_room(0, 0, parts->profile) : 0;
    case ST_LEVEL_MPS:
    case ST_LEVEL_TIME:
        if (parts->share_m < 1)
            return 0;
        return (int)ST_MIN(ST_WHOLE_M / parts->share_m, ST_MPS_CLIENTS_MAX);
    default:
        return 0;
    }
}

int st_parts_gpus(st_board board, const st_parts *parts)
{
    int each = st_parts_per_gpu(board, parts);
    return each > 0 && parts->n > 0 ? (parts->n - 1) / each + 1 : 0;
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
