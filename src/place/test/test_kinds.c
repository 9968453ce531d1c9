/*
 * Nodes that are alike are counted once: whatever happens to a fleet of nodes that look much the
 * same, the rooms kept for a shape are those of every node looked at by itself.
 */
#include "base/rng.h"
#include "place/test/world.h"

#define STEPS 4000 /* more kinds than are kept for so few nodes */

/* A resident comes to a node, if one of its GPUs is free. */
static void come(world *w, st_rng *rng)
{
    st_node *node = w->fleet->nodes.v[st_rng_below(rng, w->fleet->nodes.n)];
    if (w->njobs == JOBS_MAX || node->view.free == 0)
        return;
    uint16_t dev = (uint16_t)(node->view.free & -node->view.free);
    st_job *job = &w->jobs[w->njobs];
    st_grant *grant = &w->grants[w->njobs++];
    *job = (st_job){.account = 1, .tasks = 1, .state = ST_JOB_RUNNING, .pool = -1};
    job->shape = (st_shape){.types = 1, .level = ST_LEVEL_WHOLE, .gpus = 1};
    if (st_rng_below(rng, 4) == 0) {
        job->shape.level = ST_LEVEL_MPS;
        job->shape.share_m = 300;
    }
    job->shape.cpu_m = (int64_t)st_rng_below(rng, (uint64_t)node->view.cpu_free_m + 1);
    job->shape.ram_mib = (int64_t)st_rng_below(rng, (uint64_t)node->view.ram_free_mib + 1);
    *grant = (st_grant){node->id, dev, -1};
    job->grants = grant;
    st_node_add(w->fleet, w->tree, job, 0);
}

/* The last one goes. */
static void go(world *w)
{
    if (w->njobs > 0)
        st_node_remove(w->fleet, w->tree, &w->jobs[--w->njobs], 0);
}

static void ask_for_all(world *w, st_rng *rng)
{
    gang(w, 1, 1 + (int)st_rng_below(rng, 2));
    w->job.shape.cpu_m = 1000 * (int64_t)st_rng_below(rng, 4);
    w->job.shape.ram_mib = 1000 * (int64_t)st_rng_below(rng, 4);
    int room = 0;
    for (size_t i = 0; i < w->fleet->nodes.n; i++) {
        const st_node *node = w->fleet->nodes.v[i];
        w->job.tasks = TASKS_MAX * NODES_MAX;
        if (node->state == ST_NODE_READY)
            room += st_place_room(w->placer, node, &w->job, &node->view,
                                  (uint16_t)((1u << node->ndevs) - 1));
    }
    st_ask ask = ask_of(w);
    st_place_why why;
    st_place_explain(w->placer, &ask, &why);
    assert_int_equal(why.fit_now, room);
    w->job.tasks = room + 1;
    assert_false(st_place_fits(w->placer, &ask));
    w->job.tasks = room;
    if (room > 0)
        assert_true(st_place_fits(w->placer, &ask));
}

static void test_alike_is_not_the_same(void **state)
{
    (void)state;
    world w;
    st_rng rng;
    st_rng_seed(&rng, 1);
    begin(&w);
    for (int step = 0; step < STEPS; step++) {
        size_t n = w.fleet->nodes.n;
        char name[16];
        snprintf(name, sizeof name, "n%zu", n);
        int dice = (int)st_rng_below(&rng, 100);
        if (n < 4 || (dice == 0 && n < NODES_MAX))
            add(&w, (st_node_spec){.name = name, .ndevs = 4, .cpu_m = 8000, .ram_mib = 8000});
        else if (dice < 5)
            set_state(&w, (int32_t)st_rng_below(&rng, n),
                      st_rng_below(&rng, 2) ? ST_NODE_READY : ST_NODE_DRAINING);
        else if (dice < 55)
            come(&w, &rng);
        else
            go(&w);
        ask_for_all(&w, &rng);
    }
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alike_is_not_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
