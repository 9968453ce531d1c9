/* The picks of a fleet (fleet.h): each text once, under a number that is part of what is remembered of shapes. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "model/fleet.h"
#include "model/pick.h"

#define SEED 23

static st_fleet_picked *find(const st_fleet *fleet, uint64_t number)
{
    int64_t at;
    return fleet->pick_at && st_idmap_get(fleet->pick_at, number, &at) ? &fleet->picks.v[at] : NULL;
}

bool st_fleet_pick_as(st_fleet *fleet, uint64_t number, const char *text)
{
    const st_fleet_picked *there = find(fleet, number);
    if (there || number == 0)
        return there && strcmp(there->text, text) == 0;
    if (!fleet->pick_at)
        fleet->pick_at = st_idmap_new();
    st_idmap_put(fleet->pick_at, number, (int64_t)fleet->picks.n);
    st_vec_push(&fleet->picks, (st_fleet_picked){number, st_xstrdup(text), false});
    return true;
}

/* Two texts with one hash have numbers beside each other. */
uint64_t st_fleet_pick(st_fleet *fleet, const char *text)
{
    uint64_t number = st_hash_bytes(text, strlen(text), SEED);
    while (!st_fleet_pick_as(fleet, number, text))
        number++;
    return number;
}

const char *st_fleet_picked_text(const st_fleet *fleet, uint64_t number)
{
    const st_fleet_picked *there = number ? find(fleet, number) : NULL;
    return there ? there->text : NULL;
}

bool st_fleet_picks(const st_fleet *fleet, uint64_t number, const st_node *node)
{
    if (number == 0 || ST_BROKEN(PICK))
        return true;
    const char *text = st_fleet_picked_text(fleet, number);
    return text && st_pick_meets(text, node->name, node->labels);
}

void st_fleet_use_pick(st_fleet *fleet, uint64_t number)
{
    st_fleet_picked *there = number ? find(fleet, number) : NULL;
    if (there)
        there->used = true;
}

void st_fleet_sweep_picks(st_fleet *fleet)
{
    for (size_t i = 0; i < fleet->picks.n;) {
        st_fleet_picked *p = &fleet->picks.v[i];
        if (p->used) {
            p->used = false;
            i++;
            continue;
        }
        st_idmap_del(fleet->pick_at, p->number);
        free(p->text);
        *p = fleet->picks.v[--fleet->picks.n];
        if (i < fleet->picks.n)
            st_idmap_put(fleet->pick_at, p->number, (int64_t)i);
    }
}
