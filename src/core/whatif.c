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
    if (w->n < core->fleet->nodes.n) {
        w->n = core->fleet->nodes.n;
        w->views = st_xrealloc(w->views, w->n * sizeof *w->views);
        free(w->stamp);
        w->stamp = st_xcalloc(w->n, sizeof *w->stamp);
        w->gen = 0;
    }
    w->gen++;
}

static void rebuild(st_core *core, const st_node *node)
{
    st_view_build(core->fleet, core->tree, node, core->whatif.when, &core->whatif.views[node->id]);
    if (core->whatif.stamp[node->id] != core->whatif.gen)
        st_vec_push(&core->whatif.touched, node->id);
    core->whatif.stamp[node->id] = core->whatif.gen;
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

st_view *st_whatif_edit(st_core *core, const st_node *node)
{
    if (core->whatif.stamp[node->id] != core->whatif.gen)
        rebuild(core, node);
    return &core->whatif.views[node->id];
}

const st_view *st_whatif_view(void *ctx, const st_node *node)
{
    const st_core *core = ctx;
    return core->whatif.stamp[node->id] == core->whatif.gen ? &core->whatif.views[node->id]
                                                            : &node->view;
}
