/* The life of nodes, their incidents and what jobs say of nodes to bytes and back; part of save.c. */
#include "core/save_health.h"

#include "model/pick.h"

static int64_t last_of(size_t n)
{
    return (int64_t)n - 1;
}

/* Those of its GPUs that are out. */
static void io_gpus(codec *c, st_node *node)
{
    IO_IN(c, node->out, 0, (1 << node->ndevs) - 1);
    if (!c->out && node->out && !c->bad)
        node->gpus = st_xcalloc((size_t)node->ndevs, sizeof *node->gpus);
    for (unsigned devs = c->bad ? 0 : node->out; devs; devs &= devs - 1) {
        int d = __builtin_ctz(devs);
        st_gpu_out *g = &node->gpus[d];
        IO_IN(c, g->state, 1, ST_NODE_STATE_COUNT - 1);
        io_note(c, &g->note);
        IO_IN(c, g->found.kind, 0, ST_FAULT_COUNT - 1);
        io_i64(c, &g->found.code);
        IO_BOOL(c, g->worn);
        IO_BOOL(c, g->unproven);
        g->found.gpu = g->found.kind == ST_FAULT_NONE ? -1 : d;
    }
}

void st_save_life(codec *c, st_node *node)
{
    io_note(c, &node->word);
    io_note(c, &node->fault);
    IO_IN(c, node->was, 0, ST_NODE_STATE_COUNT - 1);
    IO_BOOL(c, node->tests);
    IO_BOOL(c, node->unproven);
    IO_BOOL(c, node->failed_test);
    IO_IN(c, node->test, 0, INT64_MAX);
    IO_IN(c, node->tested, 0, node->test);
    IO_IN(c, node->passed_ms, 0, INT64_MAX);
    IO_IN(c, node->due_ms, 0, INT64_MAX);
    if (!c->out)
        node->last.gpu = -1;
    if (c->format < 21)
        return;
    IO_IN(c, node->last.kind, 0, ST_FAULT_COUNT - 1);
    IO_IN(c, node->last.gpu, -1, ST_DEVS_MAX - 1);
    io_i64(c, &node->last.code);
    io_i64(c, &node->last_ms);
    IO_IN(c, node->repeats, 0, INT32_MAX);
    if (c->format < 22)
        return;
    IO_IN(c, node->drain_ms, 0, INT64_MAX);
    IO_IN(c, node->drain_then, 0, ST_DRAIN_COUNT - 1);
    IO_BOOL(c, node->drain_told);
    if (c->format >= 26)
        io_gpus(c, node);
}

static void io_incident(codec *c, const st_core *core, st_incident *inc)
{
    io_u64(c, &inc->id);
    IO_IN(c, inc->kind, 1, ST_FAULT_COUNT - 1);
    IO_IN(c, inc->pool, 0, last_of(core->fleet->pools.n));
    io_i64(c, &inc->from_ms);
    io_i64(c, &inc->last_ms);
    IO_BOOL(c, inc->over);
    io_i64(c, &inc->to_ms);
    IO_IN(c, inc->times, 0, INT64_MAX);
    IO_IN(c, inc->more, 0, INT64_MAX);
    IO_BOOL(c, inc->breaker);
    io_str(c, &inc->words);
    size_t n = io_count(c, inc->nodes.n, core->fleet->nodes.n);
    IO_GROW(c, &inc->nodes, n);
    for (size_t i = 0; i < n && !c->bad; i++) {
        st_incident_node *at = &inc->nodes.v[i];
        IO_IN(c, at->node, 0, last_of(core->fleet->nodes.n));
        IO_IN(c, at->gpu, -1, ST_DEVS_MAX - 1);
        io_i64(c, &at->code);
        io_i64(c, &at->from_ms);
        IO_BOOL(c, at->out);
        IO_BOOL(c, at->held);
        io_i64(c, &at->since_ms);
        io_i64(c, &at->taken_ms);
        io_i64(c, &at->out_ms);
    }
    n = io_count(c, inc->jobs.n, ST_INCIDENT_JOBS);
    IO_GROW(c, &inc->jobs, n);
    for (size_t i = 0; i < n && !c->bad; i++) {
        io_u64(c, &inc->jobs.v[i].job);
        IO_IN(c, inc->jobs.v[i].account, 0, last_of(core->tree->accounts.n));
        IO_IN(c, inc->jobs.v[i].node, 0, last_of(core->fleet->nodes.n));
    }
}

void st_save_incidents(codec *c, st_core *core)
{
    io_u64(c, &core->last_incident);
    size_t n = io_count(c, core->incidents.n, UINT32_MAX);
    for (size_t i = 0; i < n && !c->bad; i++) {
        if (!c->out)
            st_vec_push(&core->incidents, st_xcalloc(1, sizeof(st_incident)));
        io_incident(c, core, core->incidents.v[i]);
        c->bad |= core->incidents.v[i]->id > core->last_incident ||
                  (i > 0 && core->incidents.v[i]->id <= core->incidents.v[i - 1]->id);
    }
}

/* Which nodes it allows: its number, under which others are remembered, and the text. */
void st_save_pick(codec *c, st_fleet *fleet, st_job *j)
{
    if (c->format >= 23)
        io_u64(c, &j->shape.nodes);
    if (j->shape.nodes == 0)
        return;
    const char *text = c->out ? st_fleet_picked_text(fleet, j->shape.nodes) : NULL;
    ST_CLEANUP(st_freep) char *read = NULL;
    size_t n = io_count(c, text ? strlen(text) : 0, ST_PICK_TEXT_MAX);
    if (c->out) {
        st_strbuf_addn(c->out, text ? text : "", n);
        return;
    }
    if (c->bad || c->n - c->at < n) {
        c->bad = true;
        return;
    }
    read = st_xstrndup(c->in + c->at, n);
    c->at += n;
    c->bad |=
        strlen(read) != n || !st_pick_ok(read) || !st_fleet_pick_as(fleet, j->shape.nodes, read);
}
