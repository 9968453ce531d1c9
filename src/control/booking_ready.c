/*
 * Whether a booking's nodes are ready for it: found anew from the core for every answer.
 *
 *   planned    it has a place, and nothing is to be done there yet
 *   preparing  others are leaving its GPUs
 *   ready      its GPUs are free for it, on nodes that have what it requires
 *   degraded   a part of it has no place, or others are still on it after its start
 */
#include "control/bookings.h"
#include "model/labels.h"

/* Its GPUs that somebody else has who was there before it closed. */
static int taken(const st_core *core, const st_booking *b)
{
    const st_fleet *fleet = st_core_fleet(core);
    int n = 0;

    for (int t = 0; t < b->tasks; t++) {
        const st_node *node = b->plan[t].node < 0 ? NULL : fleet->nodes.v[b->plan[t].node];
        uint16_t devs = 0;

        for (size_t i = 0; node && i < node->residents.n; i++) {
            const st_resident *r = &node->residents.v[i];

            if (st_job_on_devices(r->job) && r->job->class != ST_CLASS_BOOKED &&
                r->job->start_ms < b->from_ms)
                devs |= r->job->grants[r->task].devs & b->plan[t].devs;
        }
        n += __builtin_popcount(devs);
    }
    return n;
}

static int homeless(const st_booking *b)
{
    int n = 0;

    for (int t = 0; t < b->tasks; t++)
        n += b->plan[t].node < 0;
    return n;
}

/* What is looked for, in words: "h100 GPUs, driver=550". */
static void say_wanted(const st_core *core, const st_booking *b, st_strbuf *out)
{
    st_strbuf_addf(out, "with %d %s GPUs", b->gpus, st_core_fleet(core)->types.v[b->type].name);
    if (b->require) {
        st_strbuf_add(out, " and ");
        st_labels_say(b->require, out);
    }
}

const char *st_booking_ready(const st_core *core, const st_booking *b, st_strbuf *reason)
{
    int lost = homeless(b), late;

    if (lost > 0) {
        st_strbuf_addf(reason, "%d of %d %s no node: none ", lost, b->tasks,
                       b->tasks == 1 ? "task has" : "tasks have");
        say_wanted(core, b, reason);
        st_strbuf_add(reason, " is free for it now; the next that is free is taken");
        return "degraded";
    }
    if (b->state < ST_BOOKING_PREPARING)
        return "planned";
    late = taken(core, b);
    if (late == 0)
        return "ready";
    st_strbuf_addf(reason, "others are still leaving %d of its GPUs", late);
    return b->state == ST_BOOKING_PREPARING ? "preparing" : "degraded";
}
