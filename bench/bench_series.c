/*
 * Figures over time at full size: what a minute costs the processor, what the loop has of it, and what is on the disk.
 *
 *   bench_series [NODES [MINUTES [FOLDER]]]
 *
 * A control loop with a store, 6,250 nodes of 8 GPUs, 200 accounts and as many jobs of 1 to 8 GPUs as there is room for. Every task
 * says twice a minute how busy it was, what it drew and what memory it had, each time something else. Time is the bench's own, looks
 * are made as the thread makes them. Sizes are those of one bucket of each width times how many are kept. FOLDER is /dev/shm unless
 * given, so that the processor is measured and not the disk.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "control/follower.h"
#include "control/series.h"

#define BATCH    500
#define ACCOUNTS 200
#define LOOK_MS  INT64_C(10000)
#define MINUTE   INT64_C(60000)
#define DAY      INT64_C(86400000)
#define JOB_KEEP (90 * DAY)

typedef struct bench {
    st_engine engine;
    st_engine_ops ops;
    st_control *ctl;
    int64_t now;
    char path[128];
    st_rng rng;
    ST_VEC(st_measure) tasks; /* all there are */
    int64_t said_ms;
    pthread_mutex_t lock;
    pthread_cond_t cond;
} bench;

typedef struct waiting {
    st_cmd cmd;
    st_cmd *inner;
    bench *b;
    bool done;
    st_err err;
} waiting;

static int64_t tell_time(void *ctx)
{
    return __atomic_load_n(&((bench *)ctx)->now, __ATOMIC_RELAXED);
}

static void __attribute__((noreturn)) die(const char *what, const st_err *err)
{
    fprintf(stderr, "bench_series: %s: %s\n", what, err->msg);
    exit(1);
}

static int run_inner(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd *inner = ((waiting *)cmd)->inner;

    return inner->run(tx, inner, err);
}

static void publish_inner(st_control *ctl, st_cmd *cmd)
{
    st_cmd *inner = ((waiting *)cmd)->inner;

    if (inner->publish)
        inner->publish(ctl, inner);
}

static void wake(st_cmd *cmd, const st_err *err)
{
    waiting *w = (waiting *)cmd;

    pthread_mutex_lock(&w->b->lock);
    if (err)
        w->err = *err;
    w->done = true;
    pthread_cond_broadcast(&w->b->cond);
    pthread_mutex_unlock(&w->b->lock);
}

static void do_cmd(bench *b, st_cmd *cmd, const char *what)
{
    waiting w = {
        .cmd = {.run = run_inner, .publish = publish_inner, .done = wake}, .inner = cmd, .b = b};

    if (!st_control_post(b->ctl, &w.cmd))
        exit(1);
    pthread_mutex_lock(&b->lock);
    while (!w.done)
        pthread_cond_wait(&b->cond, &b->lock);
    pthread_mutex_unlock(&b->lock);
    if (w.err.code)
        die(what, &w.err);
}

static const st_identity owner = {.role = ST_ROLE_OWNER, .user = "root", .source = "bench"};

static void make_event(bench *b, st_event event)
{
    st_cmd_event cmd = {.who = owner, .event = event, .verb = "bench", .target = "bench"};

    st_cmd_event_init(&cmd);
    do_cmd(b, &cmd.cmd, "an event");
}

static void make_account(bench *b, const char *name)
{
    st_cmd_account cmd = {.who = owner, .create = true, .name = name, .parent = ""};
    const st_spec_names names = st_directory_names(st_control_directory(b->ctl));
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    const st_doc_node *children;
    st_doc *doc;
    st_err err = {0};

    st_strbuf_addf(&text, "{name: %s}", name);
    if (st_doc_parse("account", text.s, text.n, &doc, &err) < 0 ||
        st_spec_account(doc, st_doc_root(doc), &names, true, &cmd.said, &children, &err) < 0)
        die("an account", &err);
    st_cmd_account_put(&cmd);
    do_cmd(b, &cmd.cmd, "an account");
    st_strbuf_done(&cmd.floors);
    st_doc_free(doc);
}

static void make_fleet(bench *b, int nodes)
{
    st_event type = {.kind = ST_EV_TYPE}, pool = {.kind = ST_EV_POOL}, node = {.kind = ST_EV_NODE};
    char name[16];

    type.u.type.name = "h100";
    type.u.type.vram_mib = 81920;
    make_event(b, type);
    pool.u.pool.name = "main";
    pool.u.pool.levels = ST_POOL_LEVELS;
    pool.u.pool.oversub_m = ST_POOL_OVERSUB_M;
    make_event(b, pool);
    for (int i = 0; i < nodes; i++) {
        snprintf(name, sizeof name, "n%05d", i);
        node.u.node = (st_node_spec){.name = name, .ndevs = 8, .cpu_m = 128000, .ram_mib = 1 << 20};
        make_event(b, node);
    }
    for (int i = 0; i < ACCOUNTS; i++) {
        snprintf(name, sizeof name, "team%03d", i);
        make_account(b, name);
    }
}

static int list_tasks(void *ctx, st_tx *tx, st_err *err)
{
    bench *b = ctx;
    const st_core *core = st_tx_core(tx);
    const st_tree *tree = st_core_tree(core);

    (void)err;
    for (size_t i = 0; i < st_core_njobs(core); i++) {
        const st_job *job = st_core_job_at(core, i);

        for (int t = 0; st_job_on_devices(job) && t < job->tasks; t++)
            st_vec_push(&b->tasks, (st_measure){.job = job->id,
                                                .tenant = tree->accounts.v[job->account]->serial,
                                                .node = job->grants[t].node,
                                                .devs = job->grants[t].devs});
    }
    return 0;
}

/* Batches until the fleet is full. */
static void fill_fleet(bench *b, int nodes)
{
    st_submit_item *items = st_xcalloc(BATCH, sizeof *items);
    static char names[ACCOUNTS][16];
    int64_t left = (int64_t)nodes * 8;
    st_err err = {0};

    while (left > 0) {
        st_cmd_submit cmd = {.who = owner, .items = items, .n = BATCH};

        for (int i = 0; i < BATCH; i++) {
            int a = (int)st_rng_below(&b->rng, ACCOUNTS), gpus = 1 << st_rng_below(&b->rng, 4);

            snprintf(names[a], sizeof names[a], "team%03d", a);
            items[i] =
                (st_submit_item){.spec = {.name = "train",
                                          .account = names[a],
                                          .user = "ann",
                                          .pool = -1,
                                          .tasks = 1,
                                          .limit_ms = 30 * DAY,
                                          .shape = {.gpus = gpus, .types = 1, .cpu_m = 1000}},
                                 .doc = "{\"command\":[\"train\"],\"limit\":\"30d\"}"};
            left -= gpus;
        }
        st_cmd_submit_init(&cmd);
        do_cmd(b, &cmd.cmd, "a batch");
        for (int i = 0; i < BATCH; i++)
            if (items[i].code) {
                fprintf(stderr, "bench_series: %s\n", items[i].refusal);
                exit(1);
            }
    }
    free(items);
    if (st_control_read(b->ctl, ST_READ_SHARED, 0, list_tasks, b, NULL, &err) < 0)
        die("the jobs", &err);
}

/* Each task's half minute; it is what engines have at hand, so it is not counted. */
static void on_measures(st_engine *engine, st_measures *ret)
{
    bench *b = (bench *)engine;

    if (b->now - b->said_ms < MINUTE / 2)
        return;
    b->said_ms = b->now;
    for (size_t i = 0; i < b->tasks.n; i++) {
        st_measure m = b->tasks.v[i];
        int64_t n = __builtin_popcount(m.devs),
                seen = n * (29000 + (int64_t)st_rng_below(&b->rng, 2000));
        int64_t busy = seen * (int64_t)(50 + st_rng_below(&b->rng, 50)) / 100;

        m.used.has =
            1u << ST_USED_SEEN | 1u << ST_USED_BUSY | 1u << ST_USED_ENERGY | 1u << ST_USED_MEM;
        m.used.v[ST_USED_SEEN] = seen;
        m.used.v[ST_USED_BUSY] = busy;
        m.used.v[ST_USED_ENERGY] = seen * 100 + busy * 550;
        m.used.v[ST_USED_MEM] = seen * (int64_t)(20000 + m.job % 60000) / 1000;
        st_vec_push(&ret->list, m);
    }
}

static void on_order(st_engine *engine, const st_engine_order *order)
{
    (void)engine;
    (void)order;
}

static int64_t cpu_us(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* What a kind of minute costs: nothing else is at work in this process. */
typedef struct cost {
    const char *name;
    int n;
    int64_t all_us, own_us, most_us; /* process, this thread */
} cost;

static void add_cost(cost *c, int64_t all, int64_t own)
{
    c->n++;
    c->all_us += all;
    c->own_us += own;
    c->most_us = ST_MAX(c->most_us, all);
}

typedef struct sizes {
    int64_t bytes, rows;
    bool decode;
    st_store *copy; /* NULL: they are only counted */
} sizes;

static int add_size(void *ctx, const st_series_blob *blob, st_err *err)
{
    sizes *s = ctx;

    s->bytes += (int64_t)blob->data.n;
    s->rows++;
    if (s->decode) {
        ST_CLEANUP(st_series_set_done) st_series_set set = {0};

        return st_series_decode((st_series_kind)blob->kind, blob->data.p, blob->data.n, &set, err);
    }
    return s->copy ? st_store_series_put(s->copy, blob, err) : 0;
}

/* The newest bucket of each width, and what all that are kept are. */
static void say_sizes(bench *b, const st_series_options *o)
{
    st_store *reader;
    double whole = 0;
    st_err err = {0};

    if (st_store_open_reader(st_control_store(b->ctl), &reader, &err) < 0)
        die("a reader", &err);
    for (int tier = 0; tier < ST_SERIES_TIERS; tier++) {
        int64_t w = st_series_width(o->step_ms, tier), first, last, buckets = o->keep_ms[tier] / w;
        st_series_blob of = {.width_ms = w};
        sizes all = {0};
        double tier_bytes = 0;

        if (st_store_series_span(reader, &of, &first, &last, &err) < 0)
            die("a span", &err);
        printf("bucket of %4" PRId64 " s:", w / 1000);
        for (int k = 0; k < ST_SERIES_KINDS && last >= 0; k++) {
            sizes kind = {0};
            int64_t parts = 0;

            if (st_store_series_parts(reader, w, k, &parts, &err) < 0)
                die("parts", &err);
            for (of.kind = k, of.part = 0; of.part < parts; of.part++)
                if (st_store_series_read(reader, &of, last, last + 1, add_size, &kind, &err) < 0)
                    die("a blob", &err);
            printf(" %s %" PRId64 " kB", st_series_kind_word((st_series_kind)k), kind.bytes / 1000);
            all.bytes += kind.bytes;
            all.rows += kind.rows;
            /* Of jobs that are forgotten nothing is kept. */
            tier_bytes += (double)kind.bytes *
                          (double)(k == ST_SERIES_JOB ? ST_MIN(buckets, JOB_KEEP / w) : buckets);
        }
        whole += tier_bytes;
        printf("; all %" PRId64 " kB in %" PRId64 " rows; %" PRId64 " are kept: %.2f GB\n",
               all.bytes / 1000, all.rows, buckets, tier_bytes / 1e9);
    }
    printf("all that is kept: %.2f GB\n", whole / 1e9);
    st_store_close(reader);
}

/* What the loop does at the end of a minute: the same rows, put into a store of their own. */
static void say_write(bench *b, const st_series_options *o)
{
    st_series_blob of = {.width_ms = o->step_ms};
    st_store *reader, *copy;
    char path[160];
    int64_t first, last, parts, began;
    sizes s = {0};
    st_err err = {0};
    int r;

    snprintf(path, sizeof path, "%s-copy", b->path);
    if (st_store_open_reader(st_control_store(b->ctl), &reader, &err) < 0 ||
        st_store_open(path, NULL, &copy, &err) < 0 ||
        st_store_series_span(reader, &of, &first, &last, &err) < 0)
        die("a copy", &err);
    s.copy = copy;
    began = cpu_us(CLOCK_THREAD_CPUTIME_ID);
    r = st_store_begin(copy, &err);
    for (int k = 0; r == 0 && k < ST_SERIES_KINDS; k++) {
        r = st_store_series_parts(reader, o->step_ms, k, &parts, &err);
        for (of.kind = k, of.part = 0; r == 0 && of.part < parts; of.part++)
            r = st_store_series_read(reader, &of, last, last + 1, add_size, &s, &err);
    }
    if (r < 0 || st_store_commit(copy, &err) < 0)
        die("the rows of a minute", &err);
    printf("the rows of a minute: %" PRId64 ", read and written in %.1f ms CPU\n", s.rows,
           (double)(cpu_us(CLOCK_THREAD_CPUTIME_ID) - began) / 1e3);
    st_store_close(copy);
    st_store_close(reader);
}

/* A chart: the part that its row is in, read and unpacked. */
static void say_reads(bench *b, const st_series_options *o)
{
    st_store *reader;
    st_err err = {0};

    if (st_store_open_reader(st_control_store(b->ctl), &reader, &err) < 0)
        die("a reader", &err);
    for (int k = 0; k < ST_SERIES_KINDS; k++) {
        st_series_blob of = {.width_ms = o->step_ms, .kind = k};
        sizes s = {.decode = true};
        int64_t began = cpu_us(CLOCK_THREAD_CPUTIME_ID);

        if (st_store_series_read(reader, &of, 0, INT64_MAX, add_size, &s, &err) < 0)
            die("a part", &err);
        printf("a chart of one %s: %" PRId64 " buckets, %" PRId64 " kB, %.1f ms CPU\n",
               st_series_kind_word((st_series_kind)k), s.rows, s.bytes / 1000,
               (double)(cpu_us(CLOCK_THREAD_CPUTIME_ID) - began) / 1e3);
    }
    st_store_close(reader);
}

static void play(bench *b, const st_series_options *o, int minutes)
{
    cost plain = {.name = "a minute"}, ten = {.name = "with ten minutes"},
         hour = {.name = "with an hour"}, looks = {.name = "a look"};
    st_gatherer *g;
    st_err err = {0};

    if (st_gatherer_new(b->ctl, o, &g, &err) < 0 || st_gatherer_look(g, &err) < 0)
        die("a gatherer", &err);
    for (int i = 0; i < minutes; i++) {
        int64_t all = 0, own = 0;

        for (int k = 0; k < MINUTE / LOOK_MS; k++) {
            int64_t from, mine;

            __atomic_add_fetch(&b->now, LOOK_MS, __ATOMIC_RELAXED);
            from = cpu_us(CLOCK_PROCESS_CPUTIME_ID);
            mine = cpu_us(CLOCK_THREAD_CPUTIME_ID);
            if (st_gatherer_look(g, &err) < 0)
                die("a look", &err);
            from = cpu_us(CLOCK_PROCESS_CPUTIME_ID) - from;
            mine = cpu_us(CLOCK_THREAD_CPUTIME_ID) - mine;
            all += from;
            own += mine;
            if (k == 0)
                add_cost(&looks, from, mine);
        }
        add_cost(b->now % (60 * MINUTE) == 0   ? &hour
                 : b->now % (10 * MINUTE) == 0 ? &ten
                                               : &plain,
                 all, own);
    }
    st_gatherer_free(g);
    for (const cost *c, *const *at = (const cost *const[]){&looks, &plain, &ten, &hour, NULL};
         (c = *at); at++)
        if (c->n > 0)
            printf("%-18s %4d x %7.1f ms CPU, %5.1f ms of it beside the gatherer; most %.1f ms\n",
                   c->name, c->n, (double)c->all_us / c->n / 1e3,
                   (double)(c->all_us - c->own_us) / c->n / 1e3, (double)c->most_us / 1e3);
}

int main(int argc, char **argv)
{
    int nodes = argc > 1 ? atoi(argv[1]) : 6250, minutes = argc > 2 ? atoi(argv[2]) : 125;
    const char *folder = argc > 3 ? argv[3] : "/dev/shm";
    const st_series_options o = {.step_ms = MINUTE, .keep_ms = {2 * DAY, 30 * DAY, 730 * DAY}};
    bench *b = st_xcalloc(1, sizeof *b);
    ST_CLEANUP(st_strbuf_done) st_strbuf command = {0};
    int64_t before;
    st_err err = {0};

    if (sodium_init() < 0 || nodes < 1 || minutes < 1)
        return 2;
    st_rng_seed(&b->rng, 1);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->cond, NULL);
    b->now = INT64_C(1790812800000);
    b->ops = (st_engine_ops){.name = "bench", .measures = on_measures, .order = on_order};
    b->engine.ops = &b->ops;
    snprintf(b->path, sizeof b->path, "%.80s/stint-series-XXXXXX", folder);
    if (!mkdtemp(b->path))
        return 1;
    snprintf(b->path + strlen(b->path), sizeof b->path - strlen(b->path), "/store.db");
    const st_control_options options = {.store = b->path,
                                        .policy = st_policy_default(),
                                        .clock = tell_time,
                                        .ctx = b,
                                        .engine = &b->engine};
    if (st_control_new(&options, &b->ctl, &err) < 0 || st_control_start(b->ctl, &err) < 0)
        die("the control loop", &err);
    make_fleet(b, nodes);
    fill_fleet(b, nodes);
    printf("%d GPUs, %zu tasks on them, %d accounts, %d minutes\n", nodes * 8, b->tasks.n, ACCOUNTS,
           minutes);
    before = st_store_bytes(st_control_store(b->ctl));
    play(b, &o, minutes);
    printf("the store has grown by %" PRId64 " kB\n",
           (st_store_bytes(st_control_store(b->ctl)) - before) / 1000);
    say_sizes(b, &o);
    say_write(b, &o);
    say_reads(b, &o);
    st_control_free(b->ctl);
    st_vec_free(&b->tasks);
    *strrchr(b->path, '/') = '\0';
    st_strbuf_addf(&command, "rm -r '%s'", b->path);
    free(b);
    return system(st_strbuf_str(&command)) == 0 ? 0 : 1;
}
