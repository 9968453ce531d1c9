/*
 * Whether a booking's nodes are ready for it: found anew from the core for every answer.
 *
 *   planned    it has a place, and nothing is to be done there yet
 *   preparing  others are leaving its GPUs, or agents unpack its image
 *   ready      its GPUs are free for it, on nodes that have what it requires
 *   degraded   a part of it has no place, or others are still on it after its start
 */
#include <string.h>

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

/* How many of its nodes have no word of the image yet; the first that cannot have it is said. */
static int without_image(const st_core *core, const st_booking *b, const json_t *record,
                         st_strbuf *reason)
{
    const st_fleet *fleet = st_core_fleet(core);
    const json_t *all = json_object_get(record, "prepared");
    int n = 0;

    if (!json_object_get(record, "image"))
        return 0;
    for (int t = 0; t < b->tasks; t++) {
        const char *name = fleet->nodes.v[b->plan[t].node]->name;
        const json_t *said = json_object_get(all, name);
        const char *state = json_string_value(json_object_get(said, "state"));

        n += !said && (t == 0 || b->plan[t].node != b->plan[t - 1].node);
        if (state && strcmp(state, "failed") == 0) {
            st_strbuf_addf(reason, "node %s cannot have image %s: %s", name,
                           json_string_value(json_object_get(record, "image")),
                           json_string_value(json_object_get(said, "reason")));
            return -1;
        }
    }
    return n;
}

const char *st_booking_ready(const st_core *core, const st_booking *b, const json_t *record,
                             st_strbuf *reason)
{
    int lost = homeless(b), late, images;

    if (lost > 0) {
        st_strbuf_addf(reason, "%d of %d %s no node: none ", lost, b->tasks,
                       b->tasks == 1 ? "task has" : "tasks have");
        say_wanted(core, b, reason);
        st_strbuf_add(reason, " is free for it now; the next that is free is taken");
        return "degraded";
    }
    images = without_image(core, b, record, reason);
    if (images < 0)
        return "degraded";
    if (b->state < ST_BOOKING_PREPARING && st_core_now(core) < b->from_ms - ST_PREPARE_MS)
        return "planned";
    if (images > 0) {
        st_strbuf_addf(reason, "image %s is being prepared on %d of its nodes",
                       json_string_value(json_object_get(record, "image")), images);
        return b->state < ST_BOOKING_ACTIVE ? "preparing" : "degraded";
    }
    if (b->state < ST_BOOKING_PREPARING)
        return json_object_get(record, "image") ? "ready" : "planned";
    late = taken(core, b);
    if (late == 0)
        return "ready";
    st_strbuf_addf(reason, "others are still leaving %d of its GPUs", late);
    return b->state == ST_BOOKING_PREPARING ? "preparing" : "degraded";
}
