/*
 * Lanes of commands (state/lanes.h).
 *
 * Invariants: `busy` has the lanes that are not empty, in no order; a lane's `had_us` never goes back; no busy
 * lane is behind `floor_us`, which is where the one served last stood; numbers grow along a lane.
 */
#include "state/lanes.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

#define LANE_MAX    16384       /* commands that wait in one */
#define WAITING_MAX 65536       /* in all of tenants', and of agents' */
#define EACH_US     INT64_C(20) /* what a command costs at least: its row, its answer */

typedef struct lane {
    int32_t org;
    st_cmd *head, **tail;
    size_t n, slot; /* slot: in busy */
    int64_t had_us;
    bool held;
} lane;

struct st_lanes {
    lane first; /* of agents and stintd itself */
    ST_VEC(lane *) lanes;
    ST_VEC(lane *) busy;
    st_idmap *by_org;
    int64_t floor_us;
    size_t n;
    uint64_t came; /* the number of the last */
};

st_lanes *st_lanes_new(void)
{
    st_lanes *q = st_xcalloc(1, sizeof *q);

    q->first.tail = &q->first.head;
    q->by_org = st_idmap_new();
    return q;
}

void st_lanes_free(st_lanes *q)
{
    if (!q)
        return;
    for (size_t i = 0; i < q->lanes.n; i++)
        free(q->lanes.v[i]);
    st_vec_free(&q->lanes);
    st_vec_free(&q->busy);
    st_idmap_free(q->by_org);
    free(q);
}

static lane *lane_of(st_lanes *q, const st_cmd *cmd)
{
    int64_t at;
    lane *l;

    if (cmd->lane == ST_LANE_AGENTS)
        return &q->first;
    if (st_idmap_get(q->by_org, (uint64_t)cmd->lane, &at))
        return q->lanes.v[at];
    l = st_xcalloc(1, sizeof *l);
    l->org = cmd->lane;
    l->tail = &l->head;
    st_idmap_put(q->by_org, (uint64_t)cmd->lane, (int64_t)q->lanes.n);
    st_vec_push(&q->lanes, l);
    return l;
}

static void wakes(st_lanes *q, lane *l)
{
    if (l == &q->first || l->n > 0)
        return;
    l->had_us = ST_MAX(l->had_us, q->floor_us);
    l->slot = q->busy.n;
    st_vec_push(&q->busy, l);
}

static void sleeps(st_lanes *q, lane *l)
{
    if (l == &q->first || l->n > 0)
        return;
    q->busy.v[l->slot] = q->busy.v[q->busy.n - 1];
    q->busy.v[l->slot]->slot = l->slot;
    q->busy.n--;
}

bool st_lanes_put(st_lanes *q, st_cmd *cmd)
{
    lane *l = lane_of(q, cmd);

    /* Agents find room whatever tenants do. */
    if (l == &q->first ? l->n >= WAITING_MAX : l->n >= LANE_MAX || q->n - q->first.n >= WAITING_MAX)
        return false;
    wakes(q, l);
    cmd->number = ++q->came;
    cmd->next = NULL;
    *l->tail = cmd;
    l->tail = &cmd->next;
    l->n++;
    q->n++;
    return true;
}

void st_lanes_block(st_lanes *q, const st_cmd *cmd)
{
    lane_of(q, cmd)->held = true;
}

void st_lanes_give_up(st_lanes *q, const st_cmd *cmd)
{
    lane_of(q, cmd)->held = false;
}

void st_lanes_put_back(st_lanes *q, st_cmd *cmd)
{
    lane *l = lane_of(q, cmd);

    l->held = false;
    wakes(q, l);
    cmd->next = l->head;
    if (!l->head)
        l->tail = &cmd->next;
    l->head = cmd;
    l->n++;
    q->n++;
}

uint64_t st_lanes_last(const st_lanes *q)
{
    return q->came;
}

static bool has_one(const lane *l, uint64_t last)
{
    return l->n > 0 && !l->held && l->head->number <= last;
}

static lane *least(const st_lanes *q, uint64_t last)
{
    lane *best = NULL;

    for (size_t i = 0; i < q->busy.n; i++) {
        lane *l = q->busy.v[i];

        if (!has_one(l, last))
            continue;
        if (!best || l->had_us < best->had_us || (l->had_us == best->had_us && l->org < best->org))
            best = l;
    }
    return best;
}

st_cmd *st_lanes_next(st_lanes *q, uint64_t last, bool young)
{
    lane *l = least(q, last);
    st_cmd *cmd;

    if (has_one(&q->first, last) && (young || !l))
        l = &q->first;
    if (!l)
        return NULL;
    cmd = l->head;
    l->head = cmd->next;
    if (!l->head)
        l->tail = &l->head;
    cmd->next = NULL;
    l->n--;
    q->n--;
    if (l != &q->first)
        q->floor_us = ST_MAX(q->floor_us, l->had_us);
    sleeps(q, l);
    return cmd;
}

void st_lanes_took(st_lanes *q, const st_cmd *cmd, int64_t us)
{
    lane_of(q, cmd)->had_us += ST_MAX(us, 0) + EACH_US;
}

size_t st_lanes_count(const st_lanes *q)
{
    return q->n;
}
