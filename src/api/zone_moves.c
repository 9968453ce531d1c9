/*
 * Bookings follow their zone's clock: they are held against the zone data at the start, and once a day from then on.
 */
#include <stdlib.h>

#include "api/state.h"
#include "base/mem.h"
#include "control/bookings.h"
#include "zones/zones.h"

#define EVERY_MS (INT64_C(24) * 3600 * 1000)
#define RETRY_MS (INT64_C(60) * 1000)

typedef struct follow {
    st_cmd_zones cmd;
    st_api *api;
    int64_t at_ms;
} follow;

static void followed(st_cmd *cmd, const st_err *err)
{
    follow *f = (follow *)cmd;

    if (err)
        atomic_store(&f->api->zoned_ms, f->at_ms - EVERY_MS + RETRY_MS);
    st_cmd_zones_done(&f->cmd);
    free(f);
}

void st_api_zones_follow(st_api *api, int64_t now_ms)
{
    int_fast64_t last = atomic_load(&api->zoned_ms);
    follow *f;

    if ((last != 0 && now_ms - last < EVERY_MS) ||
        !atomic_compare_exchange_strong(&api->zoned_ms, &last, now_ms))
        return;
    st_zones_refresh(api->zones);
    f = st_xcalloc(1, sizeof *f);
    f->api = api;
    f->at_ms = now_ms;
    f->cmd.zones = api->zones;
    st_cmd_zones_init(&f->cmd);
    f->cmd.cmd.done = followed;
    if (!st_control_post(api->control, &f->cmd.cmd)) {
        st_err err = {0};

        st_fail(&err, ST_EDOWN, "the control loop has stopped");
        followed(&f->cmd.cmd, &err);
    }
}
