/*
 * Several engines as one: pools name them, and each is told what is its own and nothing else.
 */
#include <string.h>

#include "base/mem.h"
#include "base/testing.h"
#include "engine/engine.h"

typedef struct fake {
    st_engine base;
    char heard[400]; /* a word for each call */
    int64_t next_ms;
    const char *log; /* of job 7; NULL: it knows no such job */
    int *freed;
} fake;

static void note(fake *f, const char *word)
{
    size_t n = strlen(f->heard);

    snprintf(f->heard + n, sizeof f->heard - n, "%s ", word);
}

static void on_lead(st_engine *e, int64_t epoch)
{
    char word[40];

    snprintf(word, sizeof word, "lead:%d", (int)epoch);
    note((fake *)e, word);
}

static void on_order(st_engine *e, const st_engine_order *o)
{
    static const char *const words[] = {
#define X(id, word) word,
        ST_ENG_TABLE(X)
#undef X
    };

    note((fake *)e, words[o->kind]);
}

static void on_complete(st_engine *e)
{
    note((fake *)e, "complete");
}

static void on_tick(st_engine *e, int64_t now)
{
    (void)now;
    note((fake *)e, "tick");
}

static int64_t on_next(st_engine *e)
{
    return ((fake *)e)->next_ms;
}

static void on_node(st_engine *e, const st_engine_node *said)
{
    char word[ST_NAME_MAX + 16];

    snprintf(word, sizeof word, "%s%s", said->node->state == ST_NODE_REMOVED ? "-" : "",
             said->node->name);
    note((fake *)e, word);
}

static int on_logs(st_engine *e, const st_log_ask *ask, st_log_got *ret, st_err *err)
{
    const fake *f = (const fake *)e;

    if (ask->job != 7 || !f->log)
        return st_fail(err, ST_ENOENT, "%s does not know it", e->ops->name);
    st_strbuf_add(&ret->text, f->log);
    ret->next = (int64_t)ret->text.n;
    return 0;
}

static void on_free(st_engine *e)
{
    ++*((fake *)e)->freed;
    free(e);
}

#define ALL                                                                       \
    .lead = on_lead, .order = on_order, .complete = on_complete, .tick = on_tick, \
    .next_ms = on_next, .node = on_node, .logs = on_logs, .free = on_free
static const st_engine_ops slurm = {.name = "slurm", .nodes = ST_NODES_FOUND, ALL};
static const st_engine_ops kube = {
    .name = "kube", .nodes = ST_NODES_FOUND, .lacks = 1u << ST_YIELD_PAUSE, ALL};
static const st_engine_ops plain = {.name = "plain", ALL};
static const st_engine_ops mute = {.name = "mute", .nodes = ST_NODES_AGENTS, .free = on_free};

typedef struct world {
    fake *slurm, *kube, *plain, *mute;
    st_engine *mux;
    int freed;
    st_report last;
    int reports;
    st_node nodes[5];
    st_pool pools[5];
} world;

static fake *make(world *w, const st_engine_ops *ops)
{
    fake *f = st_xcalloc(1, sizeof *f);

    f->base.ops = ops;
    f->freed = &w->freed;
    f->next_ms = ST_TIME_NEVER;
    return f;
}

static void hear(void *ctx, const st_report *r)
{
    world *w = ctx;

    w->last = *r;
    w->reports++;
}

static void tell(world *w, int i, const char *doc)
{
    const st_engine_node said = {.node = &w->nodes[i], .pool = &w->pools[i], .doc = doc};

    w->mux->ops->node(w->mux, &said);
}

/* n0 is of slurm, n1 of kube, n2 of an engine that is not there, n3 of nobody, n4 of nobody with an agent. */
static int set_up(void **state)
{
    static char names[][3] = {"n0", "n1", "n2", "n3", "n4"};
    static const char *const engines[] = {"slurm", "kube", "lost", "", ""};
    world *w = st_xcalloc(1, sizeof *w);
    st_engine *parts[4];

    parts[0] = &(w->slurm = make(w, &slurm))->base;
    parts[1] = &(w->kube = make(w, &kube))->base;
    parts[2] = &(w->plain = make(w, &plain))->base;
    parts[3] = &(w->mute = make(w, &mute))->base;
    w->mux = st_engine_mux_new(parts, 4);
    w->mux->report = hear;
    w->mux->ctx = w;
    for (int i = 0; i < 5; i++) {
        w->nodes[i] = (st_node){.id = i, .name = names[i], .pool = i};
        strcpy(w->pools[i].rules.engine, engines[i]);
    }
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;

    w->mux->ops->free(w->mux);
    assert_int_equal(w->freed, 4);
    free(w);
    return 0;
}

static void expect(fake *f, const char *words)
{
    assert_string_equal(f->heard, words);
    f->heard[0] = '\0';
}

static void order(world *w, st_engine_order_kind kind, const st_grant *grants, int n)
{
    const st_engine_order o = {.kind = kind, .job = 7, .stay = 2, .grants = grants, .ngrants = n};

    w->mux->ops->order(w->mux, &o);
}

static void all_are_told_who_leads_and_when_it_is_complete(void **state)
{
    world *w = *state;

    st_engine_lead(w->mux, 9);
    w->mux->ops->complete(w->mux);
    w->mux->ops->tick(w->mux, 5);
    expect(w->slurm, "lead:9 complete tick ");
    expect(w->kube, "lead:9 complete tick ");
    expect(w->plain, "lead:9 complete tick ");
    assert_int_equal(w->slurm->base.epoch, 9);
    assert_int_equal(w->mute->base.epoch, 9); /* it has no such function, and is set all the same */
    w->kube->next_ms = 50;
    w->plain->next_ms = 70;
    assert_int_equal(w->mux->ops->next_ms(w->mux), 50);
}

static void a_pool_names_its_engine(void **state)
{
    world *w = *state;
    const st_grant on[] = {{.node = 0}, {.node = 1}, {.node = 3}};

    for (int i = 0; i < 5; i++)
        if (i != 2)
            tell(w, i, i == 4 ? "{}" : NULL);
    expect(w->slurm, "n0 ");
    expect(w->kube, "n1 ");
    expect(w->plain, "n3 "); /* whose nodes are announced; n4 has gone to who has agents */
    order(w, ST_ENG_RUN, &on[0], 1);
    order(w, ST_ENG_PAUSE, &on[0], 1);
    order(w, ST_ENG_RUN, &on[1], 1);
    order(w, ST_ENG_RUN, &on[2], 1);
    expect(w->slurm, "run pause ");
    expect(w->kube, "run ");
    expect(w->plain, "run ");
    order(w, ST_ENG_STOP, NULL, 0);
    expect(w->slurm, "stop ");
    expect(w->kube, "stop ");
    expect(w->plain, "stop ");
    assert_int_equal(w->reports, 0);
}

static void what_nobody_can_run_fails_in_words(void **state)
{
    world *w = *state;
    const st_grant gang[] = {{.node = 0}, {.node = 1}}, quiet = {.node = 4};

    for (int i = 0; i < 5; i++)
        tell(w, i, i == 4 ? "{}" : NULL);
    assert_int_equal(w->reports, 1);
    assert_int_equal(w->last.kind, ST_REPORT_NODE);
    assert_int_equal(w->last.node, 2);
    assert_int_equal(w->last.node_state, ST_NODE_FAILED);
    assert_non_null(strstr(w->last.reason, "lost"));
    w->nodes[2].state = ST_NODE_FAILED;
    tell(w, 2, NULL); /* known: said once */
    assert_int_equal(w->reports, 1);
    order(w, ST_ENG_RUN, gang, 2);
    assert_int_equal(w->last.kind, ST_REPORT_ENDED);
    assert_int_equal(w->last.exit_code, 126);
    assert_int_equal(w->last.job, 7);
    assert_int_equal(w->last.stay, 2);
    order(w, ST_ENG_HALT, gang, 2); /* nothing was begun */
    order(w, ST_ENG_RUN, &quiet, 1);
    assert_int_equal(w->reports, 3);
    assert_non_null(strstr(w->last.reason, "runs nothing"));
}

static void a_node_has_one_engine_at_a_time(void **state)
{
    world *w = *state;
    const st_grant on = {.node = 0};

    tell(w, 0, NULL);
    strcpy(w->pools[0].rules.engine, "kube");
    tell(w, 0, NULL);
    expect(w->slurm, "n0 -n0 ");
    expect(w->kube, "n0 ");
    order(w, ST_ENG_RUN, &on, 1);
    expect(w->kube, "run ");
    w->nodes[0].state = ST_NODE_REMOVED;
    tell(w, 0, NULL);
    expect(w->kube, "-n0 ");
    expect(w->slurm, "");
}

static void reports_say_whose_they_are(void **state)
{
    world *w = *state;
    const st_found found = {.name = "x", .pool = "p"};
    const st_report r = {.kind = ST_REPORT_FOUND, .found = &found};

    w->kube->base.report(w->kube->base.ctx, &r);
    assert_string_equal(w->last.engine, "kube");
    assert_ptr_equal(w->last.found, &found);
}

static void logs_are_of_who_knows_the_job(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_log_got_done) st_log_got out = {0};
    const st_log_ask ask = {.job = 7, .max = 100};
    st_err err = {0};

    assert_fails(w->mux->ops->logs(w->mux, &ask, &out, &err), ST_ENOENT, "slurm does not");
    w->plain->log = "hello";
    assert_ok(w->mux->ops->logs(w->mux, &ask, &out, &err));
    assert_string_equal(st_strbuf_str(&out.text), "hello");
}

static void parts_are_found_by_name_and_kind(void **state)
{
    world *w = *state;

    assert_ptr_equal(st_engine_named(w->mux, "kube"), &w->kube->base);
    assert_null(st_engine_named(w->mux, "auto"));
    assert_ptr_equal(st_engine_named(&w->kube->base, "kube"), &w->kube->base);
    assert_ptr_equal(st_engine_of(w->mux, "", true), &w->mute->base);
    assert_ptr_equal(st_engine_of(w->mux, "", false), &w->plain->base);
    assert_ptr_equal(st_engine_of(&w->mute->base, "", false), &w->mute->base); /* the only one */
    assert_null(st_engine_of(w->mux, "lost", false));
    assert_true(st_engine_has(w->mux, ST_NODES_ANNOUNCED));
    assert_false(st_engine_has(&w->mute->base, ST_NODES_ANNOUNCED));
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(all_are_told_who_leads_and_when_it_is_complete),
        T(a_pool_names_its_engine),
        T(what_nobody_can_run_fails_in_words),
        T(a_node_has_one_engine_at_a_time),
        T(reports_say_whose_they_are),
        T(logs_are_of_who_knows_the_job),
        T(parts_are_found_by_name_and_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
