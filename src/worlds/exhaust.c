/*
 * All that can happen in a small world; see exhaust.h.
 *
 * Breadth first: what can follow n events is looked at before anything that follows n + 1, so a failure is told
 * with as few events as there can be. A step is played from the beginning, for the watch that checks it has a
 * memory; what leads there has been looked at before and is not looked at again. From every new state the
 * world is also left alone until all has come to rest.
 *
 * Two states are the same when they save to the same bytes, but for the hash over what was said before.
 */
#include "worlds/exhaust.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"

#define MINUTE INT64_C(60000)
#define NEVER  (1 << 30) /* steps */

/* ---- the world ------------------------------------------------------------------------------- */

const char *st_exhaust_name(st_exhaust_world world)
{
    static const char *const names[] = {
#define X(id, name) [id] = name,
        ST_EXHAUST_TABLE(X)
#undef X
    };
    return names[world];
}

static st_policy policy_of(st_exhaust_world world)
{
    st_policy p = st_policy_default();
    p.notice_ms = 1000;
    p.grace_ms = 10000;
    p.min_run_ms = p.cooldown_ms = 0;
    p.pause_limit_ms = MINUTE;
    p.reservations = 2;
    p.overstay_ms = 0;
    p.patience_ms = 2 * MINUTE;
    if (world == ST_EXHAUST_ALONE) {
        p.as_if_alone = 1;
        p.cooldown_ms = 3 * MINUTE;
        p.lookahead = 1;
    } else if (world == ST_EXHAUST_SWAP) {
        p.swap = 1;
        p.order = ST_ORDER_SHORTEST;
        p.defrag = 1;
        p.defrag_restore_ms = 0;
        p.min_run_ms = 30000;
    }
    return p;
}

static st_event *add(st_tape *tape, st_event_kind kind, int64_t at_ms)
{
    st_tape_entry entry = {
        .at_ms = at_ms, .run_ms = ST_TIME_NEVER, .save_ms = 60 * MINUTE, .gone_ms = MINUTE / 3};
    entry.event.kind = kind;
    st_vec_push(&tape->list, entry);
    return &tape->list.v[tape->list.n - 1].event;
}

static void add_account(st_tape *tape, int64_t at_ms, const char *name, int64_t floor_m)
{
    st_account_spec *a = &add(tape, ST_EV_ACCOUNT, at_ms)->u.account;
    st_account_spec_init(a);
    a->name = name;
    if (floor_m > 0)
        a->guarantee.gpu_m = floor_m;
}

static void build(st_exhaust_world world, st_tape *tape)
{
    static const char *const nodes[] = {"n0", "n1"};
    st_event *ev = add(tape, ST_EV_TYPE, 0);
    ev->u.type.name = "h100";
    ev->u.type.vram_mib = 81920;
    ev->u.type.board = ST_BOARD_H100_80;
    ev = add(tape, ST_EV_POOL, 0);
    ev->u.pool.name = "p";
    ev->u.pool.levels = 15;
    ev->u.pool.oversub_m = 2000;
    for (int i = 0; i < 2; i++) {
        ev = add(tape, ST_EV_NODE, 0);
        ev->u.node = (st_node_spec){.name = nodes[i], .ndevs = 2, .cpu_m = 8000, .ram_mib = 65536};
    }
    if (world == ST_EXHAUST_AGENTS) {
        add(tape, ST_EV_AGENT, 0);
        tape->list.v[tape->list.n - 1].node = nodes[0];
    }
    add_account(tape, 0, "a", 2000);
    add_account(tape, 0, "b", 1000);
    add_account(tape, 0, "c", 0);
    for (size_t i = 0; i < tape->list.n; i++)
        tape->list.v[i].setup = true;
}

/* ---- what may happen ------------------------------------------------------------------------- */

enum { JOBS = 3, PER_JOB = 4, NODE_MOVES = 5, REST = 4 };
#define MOVES (JOBS * PER_JOB + NODE_MOVES + REST)

static void submit(st_tape *tape, int job, int64_t at_ms)
{
    static const struct {
        const char *name, *account;
        int tasks, gpus;
        int64_t limit_ms;
        st_yield yield;
    } rows[JOBS] = {
        {"j1", "a", 1, 2, ST_TIME_NEVER, ST_YIELD_REQUEUE},
        {"j2", "b", 2, 1, 5 * MINUTE, ST_YIELD_CHECKPOINT},
        {"j3", "c", 2, 2, 3 * MINUTE, ST_YIELD_PAUSE},
    };
    add(tape, ST_EV_SUBMIT, at_ms)->u.job =
        (st_job_spec){.id = (uint64_t)job + 1,
                      .name = rows[job].name,
                      .account = rows[job].account,
                      .user = "u",
                      .pool = -1,
                      .tasks = rows[job].tasks,
                      .shape = {.level = ST_LEVEL_WHOLE, .gpus = rows[job].gpus, .cpu_m = 1000},
                      .limit_ms = rows[job].limit_ms,
                      .yield = rows[job].yield};
}

static void job_move(st_tape *tape, int job, int what, int64_t at_ms)
{
    uint64_t id = (uint64_t)job + 1;
    if (what == 0)
        submit(tape, job, at_ms);
    else if (what == 1)
        add(tape, ST_EV_FINISH, at_ms)->u.finish.id = id;
    else
        add(tape, what == 2 ? ST_EV_CANCEL : ST_EV_CHECKPOINTED, at_ms)->u.id = id;
}

static void node_move(st_tape *tape, int what, int64_t at_ms)
{
    static const struct {
        const char *node;
        st_node_state state;
    } rows[NODE_MOVES] = {
        {"n0", ST_NODE_FAILED}, {"n0", ST_NODE_READY}, {"n0", ST_NODE_DRAINING},
        {"n1", ST_NODE_FAILED}, {"n1", ST_NODE_READY},
    };
    add(tape, ST_EV_NODE_STATE, at_ms)->u.node_state.state = rows[what].state;
    tape->list.v[tape->list.n - 1].node = rows[what].node;
}

static void add_move(st_tape *tape, int move, int64_t *now)
{
    int rest = move - JOBS * PER_JOB - NODE_MOVES;
    st_event *ev;
    if (move < JOBS * PER_JOB) {
        job_move(tape, move / PER_JOB, move % PER_JOB, *now);
    } else if (rest < 0) {
        node_move(tape, move - JOBS * PER_JOB, *now);
    } else if (rest == 0) { /* a minute goes by */
        *now += MINUTE;
        add(tape, ST_EV_TIMER, *now);
    } else if (rest == 1) {
        ev = add(tape, ST_EV_PRIORITY, *now);
        ev->u.priority.id = 3;
        ev->u.priority.priority = 2;
    } else { /* a promise is taken back, or another is made */
        add_account(tape, *now, rest == 2 ? "a" : "c", rest == 2 ? 0 : 1000);
    }
}

/* ---- the search ------------------------------------------------------------------------------ */

typedef struct path {
    uint8_t n, move[ST_EXHAUST_MAX];
} path;

typedef ST_VEC(path) paths;

static uint64_t state_of(const st_core *core)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0};
    uint64_t said = st_core_hash(core);
    unsigned char mark[8];
    for (int i = 0; i < 8; i++)
        mark[i] = (unsigned char)(said >> 8 * i);
    st_core_save(core, &bytes);
    char *at = memmem(bytes.s, bytes.n, mark, sizeof mark);
    if (at)
        memset(at, 0, sizeof mark);
    return st_hash_bytes(bytes.s, bytes.n - 8, 1); /* without its own hash at the end */
}

static st_lens blind(void)
{
    return (st_lens){
        .idle = 1, .check = NEVER, .wait = NEVER, .again = NEVER, .audit = NEVER, .metered = true};
}

static void write_tape(st_exhaust_world world, const path *p, st_tape *ret)
{
    int64_t now = MINUTE;
    st_tape_init(ret, 0);
    ret->policy = policy_of(world);
    build(world, ret);
    for (int i = 0; i < p->n; i++)
        add_move(ret, p->move[i], &now);
}

/* Plays a path; its last event is looked at. Whether the state is a new one goes to *ret_new. */
static int play(st_tape *tape, st_idmap *seen, st_exhaust_counts *counts, bool *ret_new,
                st_err *err)
{
    tape->lens = blind();
    ST_CLEANUP(st_fuzz_run_freep) st_fuzz_run *run = st_fuzz_run_new(tape);
    size_t n = tape->list.n;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (i + 2 == n)
            tape->lens.twin = 1; /* loaded before the last, it goes along */
        if (i + 1 == n)
            tape->lens = (st_lens){.idle = 1,
                                   .check = 1,
                                   .wait = 1,
                                   .again = 1,
                                   .audit = 1,
                                   .effort = 1,
                                   .metered = true};
        rc = st_fuzz_run_moment(run, i, i + 1, err);
    }
    counts->steps++;
    counts->refused += st_fuzz_run_refused(run, n - 1);
    uint64_t state = state_of(st_fuzz_run_core(run));
    *ret_new = rc == 0 && !st_idmap_get(seen, state, NULL);
    if (*ret_new) {
        counts->states++;
        st_idmap_put(seen, state, 1);
        tape->lens = blind();
        rc = st_fuzz_run_drain(run, err);
    }
    tape->lens = st_lens_close(0);
    return rc;
}

static int widen(st_exhaust_world world, const paths *from, paths *to, int64_t most, st_idmap *seen,
                 st_exhaust_counts *counts, st_tape *ret_tape, st_err *err)
{
    for (size_t i = 0; i < from->n; i++) {
        for (int m = 0; m < MOVES; m++) {
            path p = from->v[i];
            bool is_new = false;
            p.move[p.n++] = (uint8_t)m;
            st_tape_done(ret_tape);
            write_tape(world, &p, ret_tape);
            int rc = play(ret_tape, seen, counts, &is_new, err);
            if (rc < 0)
                return rc;
            if (is_new)
                st_vec_push(to, p);
            if (most > 0 && counts->steps >= most)
                return 0;
        }
    }
    return 0;
}

int st_exhaust(st_exhaust_world world, int depth, int64_t most, st_exhaust_counts *ret,
               st_tape *ret_tape, st_err *err)
{
    ST_CLEANUP(st_idmap_freep) st_idmap *seen = st_idmap_new();
    paths from = {0}, to = {0};
    int rc = 0;
    ST_ASSERT(depth <= ST_EXHAUST_MAX);
    *ret = (st_exhaust_counts){0};
    st_tape_init(ret_tape, 0);
    st_vec_push(&from, (path){0});
    for (int d = 0; rc == 0 && d < depth && (most <= 0 || ret->steps < most); d++) {
        rc = widen(world, &from, &to, most, seen, ret, ret_tape, err);
        paths swap = from;
        from = to;
        to = swap;
        st_vec_clear(&to);
    }
    st_vec_free(&from);
    st_vec_free(&to);
    return rc;
}
