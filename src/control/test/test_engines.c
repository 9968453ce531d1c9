/*
 * Pools and their engines, through the loop: two engines that find their own nodes, one of which cannot pause.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/testing.h"
#include "control/test/world.h"

typedef struct fake {
    st_engine base;
    st_engine_ops ops;
    char heard[400];
} fake;

/* The loop is the only one who calls, and a test looks when a command of its own has been answered. */
static void note(fake *f, const char *what, uint64_t job)
{
    size_t n = strlen(f->heard);

    snprintf(f->heard + n, sizeof f->heard - n, job ? "%s:%d " : "%s ", what, (int)job);
}

static void on_order(st_engine *e, const st_engine_order *o)
{
    note((fake *)e,
         o->kind == ST_ENG_RUN    ? "run"
         : o->kind == ST_ENG_STOP ? "stop"
                                  : "other",
         o->job);
}

static void on_node(st_engine *e, const st_engine_node *said)
{
    note((fake *)e, said->node->name, 0);
}

static void on_complete(st_engine *e)
{
    note((fake *)e, "complete", 0);
}

static void on_free(st_engine *e)
{
    (void)e;
}

typedef struct site {
    world *w;
    fake a, b;
} site;

static void reported(void *ctx, const st_report *r)
{
    st_control_report(((site *)ctx)->w->ctl, r);
}

static void make_engine(fake *f, const char *name, uint32_t lacks)
{
    f->ops = (st_engine_ops){.name = name,
                             .nodes = ST_NODES_FOUND,
                             .lacks = lacks,
                             .gone = true,
                             .order = on_order,
                             .node = on_node,
                             .complete = on_complete,
                             .free = on_free};
    f->base.ops = &f->ops;
}

static int set_up(void **state)
{
    site *s = calloc(1, sizeof *s);
    st_engine *parts[] = {&s->a.base, &s->b.base};
    st_event type = {.kind = ST_EV_TYPE};
    st_err err = {0};
    void *w;

    begin(&w);
    s->w = w;
    make_engine(&s->a, "a", 0);
    make_engine(&s->b, "b", 1u << ST_YIELD_PAUSE);
    s->w->engine = st_engine_mux_new(parts, 2);
    s->w->engine->report = reported;
    s->w->engine->ctx = s;
    st_control_free(s->w->ctl);
    assert_ok(open_control(s->w, &err));
    type.u.type.name = "h100";
    type.u.type.vram_mib = 81920;
    make_event(s->w, type);
    make_account(s->w, "team", "", "{name: team}");
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    site *s = *state;
    st_engine *mux = s->w->engine;
    void *w = s->w;

    end(&w);
    mux->ops->free(mux);
    free(s);
    return 0;
}

static int put_pool(site *s, st_event_kind kind, const char *name, const char *engine, st_err *err)
{
    st_cmd_event cmd = {.who = owner, .verb = "test", .target = name};

    cmd.event.kind = kind;
    cmd.event.u.pool.name = name;
    cmd.event.u.pool.levels = ST_POOL_LEVELS;
    cmd.event.u.pool.oversub_m = ST_POOL_OVERSUB_M;
    snprintf(cmd.event.u.pool.rules.engine, sizeof cmd.event.u.pool.rules.engine, "%s", engine);
    st_cmd_event_init(&cmd);
    return do_cmd(s->w, &cmd.cmd, err);
}

/* Comes back when it was taken. */
static void find_node(site *s, fake *f, const char *name, const char *pool, const char *type)
{
    st_found found = {.ndevs = 8, .cpu_m = 64000, .ram_mib = 1 << 20};
    const st_report r = {.kind = ST_REPORT_FOUND, .found = &found};
    st_cmd_note after = {.who = owner, .verb = "test", .account = "", .target = "", .detail = NULL};
    st_err err = {0};

    strcpy(found.name, name);
    strcpy(found.pool, pool);
    strcpy(found.type, type);
    f->base.report(f->base.ctx, &r);
    st_cmd_note_init(&after);
    after.cmd.lane = ST_LANE_AGENTS; /* behind it */
    assert_ok(do_cmd(s->w, &after.cmd, &err));
}

typedef struct look {
    st_cmd cmd;
    size_t nodes;
    bool agent;
    uint32_t lacks;
    int32_t where; /* of job `job` */
    uint64_t job;
} look;

static int run_look(st_tx *tx, st_cmd *cmd, st_err *err)
{
    look *l = (look *)cmd;
    const st_fleet *fleet = st_core_fleet(st_tx_core(tx));
    const st_job *job = st_core_job(st_tx_core(tx), l->job);
    int b = st_fleet_pool(fleet, "pb");

    (void)err;
    l->nodes = fleet->nodes.n;
    l->agent = fleet->nodes.n > 0 && fleet->nodes.v[0]->agent;
    l->lacks = b >= 0 ? fleet->pools.v[b].rules.lacks : 0;
    l->where = job && job->grants ? fleet->nodes.v[job->grants[0].node]->pool : -1;
    return 0;
}

static look look_at(site *s, uint64_t job)
{
    look l = {.cmd = {.run = run_look, .lane = ST_LANE_AGENTS}, .job = job};
    st_err err = {0};

    assert_ok(do_cmd(s->w, &l.cmd, &err));
    return l;
}

static uint64_t submit_way(site *s, int32_t pool, st_yield yield, int *ret)
{
    st_submit_item item = {
        .spec = {.name = "train",
                 .account = "team",
                 .user = "ann",
                 .pool = pool,
                 .tasks = 1,
                 .yield = yield,
                 .limit_ms = 3600000,
                 .shape = {.gpus = 8, .types = 1, .cpu_m = 1000, .needs = st_way_needed(yield)}},
        .doc = "{}"};
    st_cmd_submit cmd = {.who = owner, .items = &item, .n = 1};
    st_err err = {0};

    st_cmd_submit_init(&cmd);
    *ret = do_cmd(s->w, &cmd.cmd, &err);
    return item.id;
}

static void make_both(site *s)
{
    st_err err = {0};

    assert_ok(put_pool(s, ST_EV_POOL, "pa", "a", &err));
    assert_ok(put_pool(s, ST_EV_POOL, "pb", "b", &err));
    find_node(s, &s->a, "na", "pa", "h100");
    find_node(s, &s->b, "nb", "pb", "h100");
}

static void nodes_are_found_by_the_engine_of_their_pool(void **state)
{
    site *s = *state;
    st_cmd_event by_hand = {.who = owner, .verb = "test", .target = "n"};
    st_err err = {0};

    make_both(s);
    assert_int_equal(look_at(s, 0).nodes, 2);
    assert_true(look_at(s, 0).agent); /* its devices wait for the engine's word */
    assert_non_null(strstr(s->a.heard, "na "));
    assert_null(strstr(s->a.heard, "nb "));
    find_node(s, &s->a, "na", "pa", "h100");    /* again */
    find_node(s, &s->a, "other", "pb", "h100"); /* another engine's */
    find_node(s, &s->a, "other", "none", "h100");
    find_node(s, &s->a, "other", "pa", "unheard");
    assert_int_equal(look_at(s, 0).nodes, 2);
    by_hand.event.kind = ST_EV_NODE;
    by_hand.event.u.node = (st_node_spec){.name = "n", .cpu_m = 1000, .ram_mib = 1000, .type = -1};
    st_cmd_event_init(&by_hand);
    assert_fails(do_cmd(s->w, &by_hand.cmd, &err), ST_ESTATE, "found by its engine, a");
}

static void a_pool_keeps_its_engine_while_it_has_nodes(void **state)
{
    site *s = *state;
    st_err err = {0};

    assert_fails(put_pool(s, ST_EV_POOL, "pc", "c", &err), ST_ENOENT, "no engine \"c\"");
    assert_ok(put_pool(s, ST_EV_POOL, "pb", "a", &err));
    assert_ok(put_pool(s, ST_EV_POOL_CHANGE, "pb", "b", &err)); /* nobody is in it */
    assert_int_equal(look_at(s, 0).lacks, 1u << ST_YIELD_PAUSE);
    find_node(s, &s->b, "nb", "pb", "h100");
    assert_fails(put_pool(s, ST_EV_POOL_CHANGE, "pb", "a", &err), ST_ESTATE, "node nb belongs");
    assert_ok(put_pool(s, ST_EV_POOL_CHANGE, "pb", "b", &err));
}

/* The first that pauses has the node of a; the second waits for it although b has one free. */
static void a_job_goes_where_it_can_yield_as_it_says(void **state)
{
    site *s = *state;
    uint64_t first, second, third;
    int r;

    make_both(s);
    submit_way(s, 1, ST_YIELD_PAUSE, &r); /* where there is no such way */
    assert_int_equal(r, -ST_EINVAL);
    first = submit_way(s, -1, ST_YIELD_PAUSE, &r);
    assert_int_equal(r, 0);
    second = submit_way(s, -1, ST_YIELD_PAUSE, &r);
    assert_int_equal(r, 0);
    third = submit_way(s, -1, ST_YIELD_REQUEUE, &r);
    assert_int_equal(r, 0);
    assert_int_equal(look_at(s, first).where, 0);
    assert_int_equal(look_at(s, second).where, -1);
    assert_int_equal(look_at(s, third).where, 1);
    assert_non_null(strstr(s->a.heard, "run:"));
    assert_non_null(strstr(s->b.heard, "run:"));
}

/* After a start: nodes and orders first, then that this was all; and the pool has what the engine can do now. */
static void a_start_tells_everything_and_then_that_it_was_all(void **state)
{
    site *s = *state;
    const char *node, *run, *all;
    int r;

    make_both(s);
    submit_way(s, 0, ST_YIELD_PAUSE, &r);
    look_at(s, 0);
    assert_non_null(strstr(s->a.heard, "complete "));
    st_control_free(s->w->ctl);
    s->a.heard[0] = s->b.heard[0] = '\0';
    s->b.ops.lacks = 0;
    st_err err = {0};
    assert_ok(open_control(s->w, &err));
    assert_int_equal(look_at(s, 0).lacks, 0);
    node = strstr(s->a.heard, "na ");
    run = strstr(s->a.heard, "run:");
    all = strstr(s->a.heard, "complete ");
    assert_true(node && run && all && node < run && run < all);
    assert_null(strstr(all + 1, "complete "));
    assert_null(strstr(s->b.heard, "run:"));
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(nodes_are_found_by_the_engine_of_their_pool),
        T(a_pool_keeps_its_engine_while_it_has_nodes),
        T(a_job_goes_where_it_can_yield_as_it_says),
        T(a_start_tells_everything_and_then_that_it_was_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
