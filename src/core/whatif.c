/* Views of nodes with some jobs thought away (marked `out`): what a claim or a reservation
 * would find. Nothing real is touched; a generation stamp makes starting over free. */
#include <stdlib.h>

#include "base/mem.h"
#include "core/state.h"

void st_whatif_begin(st_core *core, st_when when)
{
    st_whatif *w = &core->whatif;
    w->when = when;
    st_vec_clear(&w->touched);
    st_vec_clear(&w->later);
    if (w->n < core->fleet->nodes.n) {
        w->n = core->fleet->nodes.n;
        w->views = st_xrealloc(w->views, w->n * sizeof *w->views);
        free(w->stamp);
        w->stamp = st_xcalloc(w->n, sizeof *w->stamp);
        free(w->due);
        w->due = st_xcalloc(w->n, sizeof *w->due);
        w->could = st_xrealloc(w->could, w->n * sizeof *w->could);
        free(w->outline);
        w->outline = st_xcalloc(w->n, sizeof *w->outline);
        w->gen = 0;
    }
    w->gen++;
}

static void mark_touched(st_core *core, const st_node *node)
{
    if (core->whatif.stamp[node->id] != core->whatif.gen)
        st_vec_push(&core->whatif.touched, node->id);
    core->whatif.stamp[node->id] = core->whatif.gen;
}

static void rebuild(st_core *core, const st_node *node)
{
    st_view_build(core->fleet, core->tree, node, core->whatif.when, &core->whatif.views[node->id]);
    core->whatif.outline[node->id] = 0;
    mark_touched(core, node);
}

/* The node's view, whole. */
static st_view *whole_view(st_core *core, const st_node *node)
{
    if (core->whatif.outline[node->id] == core->whatif.gen)
        rebuild(core, node);
    return &core->whatif.views[node->id];
}

void st_whatif_set(st_core *core, const st_node *node, const st_view *view, st_rooms *rooms)
{
    core->whatif.views[node->id] = *view;
    core->whatif.outline[node->id] = 0;
    mark_touched(core, node);
    if (rooms)
        st_rooms_set(core->placer, rooms, node, view);
}

void st_whatif_touch(st_core *core, const st_job *job, st_rooms *rooms)
{
    for (int t = 0; t < job->tasks; t++) {
        const st_node *node = core->fleet->nodes.v[job->grants[t].node];
        if (t > 0 && job->grants[t - 1].node == node->id)
            continue;
        rebuild(core, node);
        if (rooms)
            st_rooms_set(core->placer, rooms, node, &core->whatif.views[node->id]);
    }
}

void st_whatif_note(st_core *core, const st_job *job)
{
    st_whatif *w = &core->whatif;
    for (int t = 0; t < job->tasks; t++) {
        int32_t node = job->grants[t].node;
        if (w->due[node] == w->gen)
            continue;
        w->due[node] = w->gen;
        st_vec_push(&w->later, node);
    }
}

/* Who counts whole GPUs gets outlines: devices are filled in when somebody looks at them, and
 * until the next rebuild nobody more is thought away. */
void st_whatif_rebuild(st_core *core, st_rooms *rooms)
{
    st_whatif *w = &core->whatif;
    bool outlined = rooms && st_rooms_outlined(rooms);
    for (size_t i = 0; i < w->later.n; i++) {
        const st_node *node = core->fleet->nodes.v[w->later.v[i]];
        w->due[node->id] = 0;
        if (outlined) {
            st_view_outline(node, w->when, &w->views[node->id]);
            w->outline[node->id] = w->gen;
            mark_touched(core, node);
        } else {
            rebuild(core, node);
        }
        if (rooms)
            st_rooms_set(core->placer, rooms, node, &w->views[node->id]);
    }
    st_vec_clear(&w->later);
}

st_view *st_whatif_edit(st_core *core, const st_node *node)
{
    if (core->whatif.stamp[node->id] != core->whatif.gen)
        rebuild(core, node);
    return whole_view(core, node);
}

const st_view *st_whatif_view(void *ctx, const st_node *node)
{
    st_core *core = ctx;
    return core->whatif.stamp[node->id] == core->whatif.gen ? whole_view(core, node) : &node->view;
}

void st_whatif_put(st_core *core, const st_node *node, const st_job *job, const st_grant *grant,
                   st_view *view)
{
    if (st_view_add(core->fleet, core->tree, node, job, grant, view) == 0)
        return;
    for (int d = 0; d < node->ndevs; d++)
        if (grant->devs >> d & 1)
            view->dev[d].mode = ST_DEV_WHOLE;
    view->cpu_free_m = ST_MAX(view->cpu_free_m - job->shape.cpu_m, 0);
    view->ram_free_mib = ST_MAX(view->ram_free_mib - st_task_ram_mib(job), 0);
    st_view_seal(node, view);
}
