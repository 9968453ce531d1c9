/*
 * Jobs that choose among nodes, and labels of nodes that change under them: from a stream of their own and in worlds of their own (book.c
 * says why).
 */
#include "base/macros.h"
#include "model/pick.h"
#include "worlds/worlds.h"

static const char *const values[] = {"driver=550.54", "driver=550", "driver=535", "disk=nvme"};

void st_fuzz_pick(st_fuzz_gen *gen, st_job_spec *job)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf pick = {0};
    st_rng *rng = &gen->pick_rng;
    const st_fleet *fleet = st_core_fleet(st_fuzz_run_core(gen->run));
    static const char *const terms[] = {"driver=550", "driver!=550", "driver!=535.1",
                                        "disk=nvme",  "disk!=nvme",  "driver=550.54"};
    if (!gen->picks || !st_rng_chance(rng, 1, 2))
        return;
    for (uint64_t n = st_rng_range(rng, 1, 2); n > 0; n--)
        (void)st_pick_add(&pick, terms[st_rng_below(rng, ST_ARRAY_LEN(terms))], false, NULL);
    if (fleet->nodes.n > 0 && st_rng_chance(rng, 1, 3))
        (void)st_pick_add(&pick, fleet->nodes.v[st_rng_below(rng, fleet->nodes.n)]->name, true,
                          NULL);
    job->nodes = st_arena_strdup(gen->tape->arena, st_strbuf_str(&pick));
}

/* Most nodes have labels soon. */
void st_fuzz_pick_labels(st_fuzz_gen *gen)
{
    st_rng *rng = &gen->pick_rng;
    const st_fleet *fleet = st_core_fleet(st_fuzz_run_core(gen->run));
    if (!gen->picks || fleet->nodes.n == 0 || !st_rng_chance(rng, 1, 5))
        return;
    const st_node *node = fleet->nodes.v[st_rng_below(rng, fleet->nodes.n)];
    st_tape_entry *entry = st_fuzz_record(gen, ST_EV_LABELS, true);
    const char *one = values[st_rng_below(rng, 3)];
    entry->node = st_tape_text(gen->tape, "%s", node->name);
    entry->event.u.labels.force = true;
    if (st_rng_chance(rng, 1, 2))
        entry->event.u.labels.text = st_tape_text(gen->tape, "%s\n%s\n", values[3], one);
    else if (st_rng_chance(rng, 3, 4))
        entry->event.u.labels.text = st_tape_text(gen->tape, "%s\n", one);
}
