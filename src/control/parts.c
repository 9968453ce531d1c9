/*
 * What others may ask a control loop for: its parts, how it is, and the last moment it knows of.
 */
#include "billing/billing.h"
#include "control/restore.h"
#include "control/state.h"

bool st_control_ready(st_control *ctl, st_err *why)
{
    bool ready;

    pthread_mutex_lock(&ctl->lock);
    ready = ctl->started && !ctl->down && !ctl->stopping &&
            st_control_restore_state(ctl) == ST_RESTORE_NONE;
    if (ctl->down)
        *why = ctl->down_why;
    else if (ctl->started && !ctl->stopping && !ready)
        st_restoring_check(ctl, why);
    else if (!ready)
        st_fail(why, ST_EDOWN, "stintd is starting or stopping");
    pthread_mutex_unlock(&ctl->lock);
    return ready;
}

void st_control_stats_get(st_control *ctl, st_control_stats *ret)
{
    pthread_mutex_lock(&ctl->lock);
    *ret = ctl->stats;
    pthread_mutex_unlock(&ctl->lock);
}

st_directory *st_control_directory(st_control *ctl)
{
    return ctl->dir;
}

st_images *st_control_images(st_control *ctl)
{
    return ctl->images;
}

st_volumes *st_control_volumes(st_control *ctl)
{
    return ctl->volumes;
}

st_classes *st_control_classes(st_control *ctl)
{
    return ctl->classes;
}

st_store *st_control_store(st_control *ctl)
{
    return ctl->store;
}

st_engine *st_control_engine(st_control *ctl)
{
    return ctl->options.engine;
}

/* A row without events moves the meter and not the core; an entry of the books, a checkpoint and an act need no row at all. */
int64_t st_control_last_ms(const st_control *ctl)
{
    const st_billing *b = ctl->billing;
    int64_t last = ST_MAX(ctl->last_ms, st_core_now(ctl->core));

    if (b->meter)
        last = ST_MAX(last, st_meter_now(b->meter));
    return ST_MAX(last, ST_MAX(b->books.last_ms, b->books.signed_ms));
}
