/* Bookings, and what jobs need to save, to bytes and back (save.c). */
#include "base/mem.h"
#include "core/save_health.h"

static int64_t last_of(size_t n)
{
    return (int64_t)n - 1;
}

static void io_plan(codec *c, const st_core *core, st_booking *b)
{
    if (!c->out)
        b->plan = st_xcalloc((size_t)b->tasks, sizeof *b->plan);
    for (int t = 0; t < b->tasks && !c->bad; t++) {
        st_grant *g = &b->plan[t];
        IO_IN(c, g->node, -1, last_of(core->fleet->nodes.n));
        IO_IN(c, g->devs, 0, UINT16_MAX);
        g->mig_start = -1;
        if (c->bad || g->node < 0)
            continue;
        const st_node *node = core->fleet->nodes.v[g->node];
        c->bad |= g->devs == 0 || g->devs >> node->ndevs;
    }
}

void st_save_booking(codec *c, const st_core *core, st_booking *b)
{
    io_u64(c, &b->id);
    io_u64(c, &b->series);
    if (c->format >= 16)
        io_u64(c, &b->job);
    io_str(c, &b->name);
    IO_IN(c, b->account, 1, last_of(core->tree->accounts.n));
    IO_IN(c, b->user, -1, last_of(core->tree->users.n));
    IO_IN(c, b->pool, -1, last_of(core->fleet->pools.n));
    IO_IN(c, b->type, 0, last_of(core->fleet->types.n));
    IO_IN(c, b->tasks, 1, ST_TASKS_MAX);
    IO_IN(c, b->gpus, 1, ST_DEVS_MAX);
    IO_IN(c, b->topo, 0, ST_TOPO_COUNT - 1);
    IO_BOOL(c, b->topo_required);
    IO_IN(c, b->cpu_m, 0, ST_QTY_MAX);
    IO_IN(c, b->ram_mib, 0, ST_QTY_MAX);
    io_i64(c, &b->no_show_ms);
    io_i64(c, &b->from_ms);
    io_i64(c, &b->to_ms);
    io_i64(c, &b->close_ms);
    io_i64(c, &b->clear_ms);
    io_i64(c, &b->made_ms);
    io_i64(c, &b->hold_ms);
    IO_IN(c, b->state, 0, ST_BOOKING_ACTIVE);
    IO_BOOL(c, b->moved);
    IO_BOOL(c, b->open);
    IO_BOOL(c, b->told);
    IO_BOOL(c, b->used);
    IO_BOOL(c, b->over);
    if (c->format >= 20) {
        io_labels(c, &b->require);
        IO_BOOL(c, b->dedicated);
    }
    if (c->format >= 25)
        io_book_parts(c, &b->parts);
    if (!c->bad)
        io_plan(c, core, b);
}

void st_save_grace(codec *c, const st_core *core, st_job *j)
{
    if (c->format >= 25) {
        io_i64(c, &j->grace_ms);
        io_i64(c, &j->saving_ms);
        io_i64(c, &j->pause_ms);
    } else if (!c->out && j->state == ST_JOB_CHECKPOINTING) {
        j->saving_ms = j->deadline_ms - core->policy.grace_ms;
    }
}

void st_save_pauses(codec *c, st_core *core)
{
    for (size_t t = 0; c->format >= 25 && t < core->fleet->types.n; t++)
        io_i64(c, &core->pause_gib_ms[t]);
}
