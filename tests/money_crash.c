/*
 * money_crash [KILLS] [SEED]: a control loop that meters, prices and closes months of a second or two is killed with SIGKILL
 * again and again; no interval may be there twice or be missing.
 *
 * A child runs the loop with the simulated engine: short jobs, preemption between teams with floors, cancelled jobs, new
 * prices, plans, credits, files of bills, bookings that have a price. The parent kills it at random moments and reads the store:
 *   - every book's chain, every checkpoint, the ledger of the snapshot against all entries (st_control_check),
 *   - for each job that its intervals join, from the start in its row to the end in its row, each once,
 *   - for each booking that the windows charged join, each once, at its size, up to its end when that lies behind,
 *   - that Σ of all accounts is 0 and that what was acknowledged (prices, credits, bookings) is in the books.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/doc.h"
#include "base/mem.h"
#include "base/rng.h"
#include "billing/money.h"
#include "control/bookings.h"
#include "control/control.h"

#define TEAMS     4
#define ZONE      "test-1"
#define CHECK_ALL 10 /* everything is read after so many kills */

/* Shared with the child: what was acknowledged. */
typedef struct told {
    int64_t prices, credits, credited;
    int64_t jobs, closes, bookings;
    uint64_t last_booking;
} told;

typedef struct world {
    char folder[64], path[96];
    told *told;
    st_rng rng;
    st_control *ctl;
    st_engine *engine;
} world;

static void die(const char *what, const st_err *err)
{
    printf("%s: %s\n", what, err->msg);
    fflush(stdout);
    _exit(3);
}

/* ---- the child -------------------------------------------------------------------------------------------- */

static int64_t wall_ms(void *ctx)
{
    struct timespec t;

    (void)ctx;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* What must never be said. */
static void listen_in(void *ctx, const char *line)
{
    world *w = ctx;

    if (strstr(line, "event=month_closed"))
        w->told->closes++;
    if (strstr(line, "event=entry_refused") || strstr(line, "event=fix_of_nothing") ||
        strstr(line, "event=store_down")) {
        printf("%s\n", line);
        fflush(stdout);
        _exit(3);
    }
}

static void reported(void *ctx, const st_report *report)
{
    world *w = ctx;

    st_control_report(w->ctl, report);
}

typedef struct waiter {
    st_cmd cmd;
    st_cmd *inner;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
    st_err err;
} waiter;

static int run_inner(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd *inner = ((waiter *)cmd)->inner;

    return inner->run(tx, inner, err);
}

static void wake(st_cmd *cmd, const st_err *err)
{
    waiter *w = (waiter *)cmd;

    pthread_mutex_lock(&w->lock);
    if (err)
        w->err = *err;
    w->done = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

static int do_cmd(world *w, st_cmd *cmd, st_err *err)
{
    waiter wait = {.cmd = {.run = run_inner, .done = wake},
                   .inner = cmd,
                   .lock = PTHREAD_MUTEX_INITIALIZER,
                   .cond = PTHREAD_COND_INITIALIZER};

    if (!st_control_post(w->ctl, &wait.cmd))
        return st_fail(err, ST_EDOWN, "the loop has stopped");
    pthread_mutex_lock(&wait.lock);
    while (!wait.done)
        pthread_cond_wait(&wait.cond, &wait.lock);
    pthread_mutex_unlock(&wait.lock);
    *err = wait.err;
    return wait.err.code ? -wait.err.code : 0;
}

static const st_identity owner = {.role = ST_ROLE_OWNER, .user = "root", .source = "test"};

static void make_event(world *w, st_event event)
{
    st_cmd_event cmd = {.who = owner, .event = event, .verb = "test", .target = "test"};
    st_err err = {0};

    st_cmd_event_init(&cmd);
    if (do_cmd(w, &cmd.cmd, &err) < 0 && err.code != ST_EEXIST)
        die("event", &err);
}

static void make_team(world *w, int i)
{
    const st_spec_names names = st_directory_names(st_control_directory(w->ctl));
    st_cmd_account cmd = {.who = owner, .create = true, .parent = ""};
    const st_doc_node *children;
    char name[16], text[80];
    st_doc *doc;
    st_err err = {0};

    snprintf(name, sizeof name, "team%d", i);
    snprintf(text, sizeof text, "{name: %s, guarantee: {gpu: %d}}", name, i % 2 ? 4 : 0);
    cmd.name = name;
    if (st_doc_parse(name, text, strlen(text), &doc, &err) < 0 ||
        st_spec_account(doc, st_doc_root(doc), &names, true, &cmd.said, &children, &err) < 0)
        die("account", &err);
    st_cmd_account_put(&cmd);
    if (do_cmd(w, &cmd.cmd, &err) < 0 && err.code != ST_EEXIST)
        die("account", &err);
    st_doc_free(doc);
}

/* Made again by whoever comes after a kill, as far as it is not there. */
static void make_fleet(world *w)
{
    st_event type = {.kind = ST_EV_TYPE}, pool = {.kind = ST_EV_POOL}, node = {.kind = ST_EV_NODE};

    type.u.type.name = "h100";
    type.u.type.vram_mib = 81920;
    make_event(w, type);
    pool.u.pool.name = "main";
    pool.u.pool.levels = ST_POOL_LEVELS;
    pool.u.pool.oversub_m = ST_POOL_OVERSUB_M;
    make_event(w, pool);
    node.u.node = (st_node_spec){.name = "n1", .ndevs = 8, .cpu_m = 128000, .ram_mib = 1 << 20};
    make_event(w, node);
    node.u.node.name = "n2"; /* what no floor needs can be booked */
    node.u.node.ndevs = 4;
    make_event(w, node);
    for (int i = 0; i < TEAMS; i++)
        make_team(w, i);
}

static uint64_t below(world *w, uint64_t n)
{
    return st_rng_below(&w->rng, n);
}

static void act_submit(world *w)
{
    char doc[80], account[16];
    st_submit_item item = {.spec = {.name = "train",
                                    .user = "ann",
                                    .pool = -1,
                                    .limit_ms = 60000,
                                    .yield = (st_yield)below(w, ST_YIELD_COUNT),
                                    .shape = {.types = 1, .cpu_m = 1000, .ram_mib = 1024}},
                           .doc = doc};
    st_cmd_submit cmd = {.who = owner, .items = &item, .n = 1};
    bool shared = below(w, 3) == 0;
    st_err err = {0};

    snprintf(doc, sizeof doc, "{\"sim\":{\"run\":\"%dms\"}}", 5 << below(w, 9));
    snprintf(account, sizeof account, "team%d", (int)below(w, TEAMS));
    item.spec.account = account;
    item.spec.tasks = 1 + (int)below(w, 3);
    item.spec.shape.gpus = 1;
    if (shared) {
        item.spec.shape.level = ST_LEVEL_TIME;
        item.spec.shape.share_m = 500;
    }
    st_cmd_submit_init(&cmd);
    if (do_cmd(w, &cmd.cmd, &err) == 0)
        w->told->jobs++;
    else if (err.code != ST_EBUDGET)
        die("submit", &err);
}

static void act_cancel(world *w)
{
    st_cmd_job cmd = {.who = owner, .id = 1 + below(w, (uint64_t)w->told->jobs + 1)};
    st_err err = {0};

    st_cmd_job_cancel(&cmd);
    do_cmd(w, &cmd.cmd, &err);
}

static void act_prices(world *w)
{
    ST_CLEANUP(st_freep) st_cmd_prices *cmd = st_xcalloc(1, sizeof *cmd);
    char text[200];
    st_err err = {0};

    snprintf(text, sizeof text,
             "prices: p%d\ngpu: {\"*\": {reserved: 1.%06d, burst: 3.%06d, booking: 2.%06d}}\n"
             "cpu: 0.013\nbooking: {cancel: {24h: %d%%}}\n",
             (int)below(w, 1000000), (int)below(w, 1000000), (int)below(w, 1000000),
             (int)below(w, 1000000), (int)below(w, 100));
    cmd->who = owner;
    cmd->now = true;
    if (st_price_book_read("p", text, strlen(text), 0, &cmd->book, &err) < 0)
        die("prices", &err);
    st_cmd_prices_init(cmd);
    if (do_cmd(w, &cmd->cmd, &err) == 0)
        w->told->prices++;
    else if (err.code != ST_EEXIST) /* two in one millisecond */
        die("prices", &err);
}

static void act_plan(world *w)
{
    st_cmd_plan cmd = {.who = owner, .now = true};
    char text[120];
    st_err err = {0};

    snprintf(text, sizeof text, "account: team%d\ndiscount: %d%%\nburst: %d\ncap: %d\n",
             (int)below(w, TEAMS), (int)below(w, 50), (int)below(w, 6), 1 + (int)below(w, 5));
    if (st_price_plan_read("p", text, strlen(text), 0, &cmd.plan, &err) < 0)
        die("plan", &err);
    st_cmd_plan_init(&cmd);
    if (do_cmd(w, &cmd.cmd, &err) < 0 && err.code != ST_EEXIST && err.code != ST_EBUDGET)
        die("plan", &err);
}

static void act_credit(world *w)
{
    st_cmd_credit cmd = {.who = owner,
                         .confirmed = true,
                         .account = "team1",
                         .reason = "kindness",
                         .amount_udollars = 1 + (int64_t)below(w, 100)};
    st_err err = {0};

    st_cmd_credit_init(&cmd);
    if (do_cmd(w, &cmd.cmd, &err) < 0)
        die("credit", &err);
    w->told->credits++;
    w->told->credited += cmd.amount_udollars;
}

/* What the calendar, a cap or the time says no to is no fault. */
static bool is_no(const st_err *err)
{
    return err->code == ST_EOVER || err->code == ST_EBUDGET || err->code == ST_EINVAL ||
           err->code == ST_ERANGE || err->code == ST_ESTATE || err->code == ST_ENOENT ||
           err->code == ST_EQUOTA || err->code == ST_ELIMIT;
}

/* Windows are as short as months: most kills meet some that are open. */
static void act_book(world *w)
{
    int64_t from = wall_ms(NULL) + 50 + (int64_t)below(w, 400);
    st_window window = {from, from + 300 + (int64_t)below(w, 3000)};
    char account[16];
    st_cmd_book cmd = {.who = owner,
                       .spec = {.name = "launch",
                                .account = account,
                                .user = "ann",
                                .pool = -1,
                                .tasks = 1 + (int)below(w, 2),
                                .gpus = 1,
                                .no_show_ms = below(w, 4) ? ST_TIME_NEVER : 100},
                       .windows = &window,
                       .n = 1,
                       .confirm = true,
                       .zone = "UTC",
                       .tzdata = "test"};
    st_err err = {0};

    snprintf(account, sizeof account, "team%d", (int)below(w, TEAMS));
    st_cmd_book_init(&cmd);
    if (do_cmd(w, &cmd.cmd, &err) == 0) {
        w->told->bookings++;
        w->told->last_booking = cmd.id;
    } else if (!is_no(&err)) {
        die("book", &err);
    }
}

/* One of the last is given up, or ends at another time. */
static void act_rebook(world *w)
{
    uint64_t back = below(w, 6);
    st_cmd_booking cmd = {.who = owner, .name = "it", .from_ms = ST_TIME_NEVER};
    st_err err = {0};

    if (w->told->last_booking <= back)
        return;
    cmd.id = w->told->last_booking - back;
    cmd.to_ms = wall_ms(NULL) + (int64_t)below(w, 2000);
    if (below(w, 3) == 0)
        st_cmd_booking_cancel(&cmd);
    else
        st_cmd_booking_change(&cmd);
    if (do_cmd(w, &cmd.cmd, &err) < 0 && !is_no(&err))
        die("rebook", &err);
    json_decref(cmd.record);
}

static void child(world *w, uint64_t seed)
{
    st_err err = {0};
    st_control_options options = {.store = w->path,
                                  .policy = st_policy_default(),
                                  .clock = wall_ms,
                                  .log = listen_in,
                                  .ctx = w,
                                  .snap_rows = 100,
                                  .billing = {.zone = ZONE}};

    st_rng_seed(&w->rng, seed);
    w->engine = st_engine_sim_new();
    w->engine->report = reported;
    w->engine->ctx = w;
    options.engine = w->engine;
    options.policy.min_run_ms = 0;
    if (st_control_new(&options, &w->ctl, &err) < 0 || st_control_start(w->ctl, &err) < 0)
        die("start", &err);
    make_fleet(w);
    while (w->told->prices == 0) { /* what is booked has a price from here on */
        act_prices(w);
        usleep(3000);
    }
    for (;;) {
        uint64_t dice = below(w, 100);

        if (dice < 70)
            act_submit(w);
        else if (dice < 82)
            act_cancel(w);
        else if (dice < 86)
            act_prices(w);
        else if (dice < 88)
            act_plan(w);
        else if (dice < 92)
            act_credit(w);
        else if (dice < 94)
            act_book(w);
        else if (dice < 95)
            act_rebook(w);
        else
            usleep((useconds_t)below(w, 3000));
    }
}

/* ---- the parent: what the store says ------------------------------------------------------------------------ */

typedef struct interval {
    int stay, piece;
    int64_t first_ms, to_ms, gpu_m;
    bool any, over;
} interval;

/* A booking as its book has it. */
typedef struct booked {
    char *name;
    int64_t gpu_m, from_ms, to_ms, until_ms;
} booked;

typedef struct audit {
    const char *path;
    int64_t faults;
    st_map *ids;
    ST_VEC(interval) jobs;
    st_map *booking_ids;
    ST_VEC(booked) bookings;
    st_arena *arena;
    int64_t prices, credits, credited, closes, usage, windows, closed_ms;
    const st_control *names_of;
} audit;

static void fault(audit *a, const char *what, const char *job, int64_t n)
{
    if (a->faults++ < 20)
        printf("%s, entry %" PRId64 ": %s\n", job, n, what);
}

static interval *job_of(audit *a, const char *job)
{
    int64_t at;

    if (!st_map_get(a->ids, job, &at)) {
        at = (int64_t)a->jobs.n;
        st_vec_push(&a->jobs, (interval){0});
        st_map_put(a->ids, job, at);
    }
    return &a->jobs.v[at];
}

static void see_usage(audit *a, const st_book_row *row, const st_entry *e)
{
    interval *j = job_of(a, e->job);

    a->usage++;
    if (j->over && e->stay == j->stay)
        fault(a, "an interval behind the end of its stay", e->job, row->n);
    if (j->any && e->stay == j->stay && (e->piece != j->piece + 1 || e->from_ms != j->to_ms))
        fault(a, "its intervals do not join", e->job, row->n);
    if ((!j->any || e->stay != j->stay) && e->piece != 1)
        fault(a, "a stay does not begin with its first piece", e->job, row->n);
    if (j->any && e->stay != j->stay && (e->stay != j->stay + 1 || !j->over))
        fault(a, "a stay is missing, or the one before has no end", e->job, row->n);
    if (!j->any)
        j->first_ms = e->from_ms;
    j->any = true;
    j->over = e->cut != ST_CUT_GOES_ON;
    j->stay = e->stay;
    j->piece = e->piece;
    j->to_ms = e->to_ms;
    j->gpu_m = e->gpu_m;
}

static void see_booking(audit *a, const st_entry *e)
{
    int64_t at;

    if (!st_map_get(a->booking_ids, e->booking, &at)) {
        at = (int64_t)a->bookings.n;
        st_vec_push(&a->bookings,
                    ((booked){.name = st_xstrdup(e->booking), .until_ms = e->from_ms}));
        st_map_put(a->booking_ids, e->booking, at);
    }
    booked *b = &a->bookings.v[at];
    if (b->until_ms == b->from_ms)
        b->until_ms = e->from_ms; /* it has not begun, and moves */
    b->gpu_m = e->gpu_m;
    b->from_ms = e->from_ms;
    b->to_ms = e->to_ms;
}

static void see_window(audit *a, const st_book_row *row, const st_entry *e)
{
    booked *b;
    int64_t at;

    a->windows++;
    if (!st_map_get(a->booking_ids, e->booking, &at)) {
        fault(a, "a window of nothing that was booked", e->booking, row->n);
        return;
    }
    b = &a->bookings.v[at];
    if (e->share == 0)
        return;
    if (e->from_ms != b->until_ms || e->to_ms > b->to_ms)
        fault(a, "its windows do not join, or go beyond it", e->booking, row->n);
    if (e->share != b->gpu_m * (e->to_ms - e->from_ms))
        fault(a, "its window has another size", e->booking, row->n);
    b->until_ms = e->to_ms;
}

/* What ended before the last close is charged to its end: a close cuts all. */
static void see_bookings(audit *a)
{
    for (size_t i = 0; i < a->bookings.n; i++) {
        const booked *b = &a->bookings.v[i];

        if (b->to_ms <= a->closed_ms && b->until_ms != b->to_ms && b->to_ms > b->from_ms)
            fault(a, "it is over and not charged to its end", b->name, 0);
        free(b->name);
    }
    st_vec_free(&a->bookings);
    st_map_free(a->booking_ids);
}

static int see_entry(void *ctx, const st_book_row *row, st_err *err)
{
    audit *a = ctx;
    st_entry e;
    int r;

    st_arena_reset(a->arena);
    r = st_entry_read(row->data, strlen(row->data), a->arena, &e, err);
    if (r < 0)
        return r;
    if (e.kind == ST_ENTRY_USAGE)
        see_usage(a, row, &e);
    a->prices += e.kind == ST_ENTRY_PRICES && strstr(e.doc, "unpriced") == NULL;
    if (e.kind == ST_ENTRY_BOOKING)
        see_booking(a, &e);
    if (e.kind == ST_ENTRY_WINDOW)
        see_window(a, row, &e);
    if (e.kind == ST_ENTRY_CLOSE)
        a->closed_ms = ST_MAX(a->closed_ms, e.to_ms);
    a->closes += e.kind == ST_ENTRY_CLOSE && !e.account[0];
    if (e.kind == ST_ENTRY_CREDIT) {
        a->credits++;
        a->credited += e.amount;
    }
    return 0;
}

static int see_job(void *ctx, const st_job_row *row, st_err *err)
{
    audit *a = ctx;
    char name[ST_ID_TEXT];
    int64_t at;

    (void)err;
    st_control_id_text(a->names_of, (uint64_t)row->id, name);
    bool any = st_map_get(a->ids, name, &at);
    const interval *j = any ? &a->jobs.v[at] : NULL;
    if (any && j->first_ms != row->start_ms)
        fault(a, "it is not metered from its start on", name, 0);
    if (row->end_ms == ST_STORE_NEVER || row->start_ms == ST_STORE_NEVER)
        return 0;
    if (!any)
        fault(a, "it ran and is in no book", name, 0);
    else if (!j->over)
        fault(a, "it is over and its last interval is not", name, 0);
    else if (j->to_ms > row->end_ms)
        fault(a, "it is metered beyond its end", name, 0);
    else if (j->gpu_m != row->gpu_m)
        fault(a, "it is metered with other GPUs", name, 0);
    return 0;
}

static void found(void *ctx, const char *sentence)
{
    (void)ctx;
    printf("%s\n", sentence);
}

/* Names of jobs are the store's: a loop that is opened and never started knows them. */
static int64_t read_all(world *w, audit *a)
{
    const st_job_filter all = {0};
    const st_control_options options = {.store = w->path,
                                        .policy = st_policy_default(),
                                        .clock = wall_ms,
                                        .billing = {.zone = ZONE}};
    st_control *ctl = NULL;
    st_store *store;
    int64_t n = 0;
    st_err err = {0};

    if (st_control_new(&options, &ctl, &err) < 0)
        die("opening", &err);
    store = st_control_store(ctl);
    *a = (audit){
        .ids = st_map_new(), .booking_ids = st_map_new(), .arena = st_arena_new(), .names_of = ctl};
    if (st_store_book_read(store, 1, INT64_MAX, see_entry, a, &err) < 0 ||
        st_store_jobs_list(store, &all, see_job, a, &err) < 0 ||
        st_control_check(store, NULL, found, NULL, &n, &err) < 0)
        die("reading", &err);
    if (a->prices < w->told->prices || a->credits < w->told->credits ||
        a->credited < w->told->credited)
        fault(a, "prices or credits were acknowledged and are gone", "-", 0);
    if ((int64_t)a->bookings.n < w->told->bookings)
        fault(a, "bookings were acknowledged and are gone", "-", 0);
    see_bookings(a);
    st_map_free(a->ids);
    st_vec_free(&a->jobs);
    st_arena_free(a->arena);
    st_control_free(ctl);
    return n + a->faults;
}

static bool kill_one(world *w, uint64_t seed, int wait_us)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        child(w, seed);
        _exit(0);
    }
    usleep((useconds_t)wait_us);
    kill(pid, SIGKILL);
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

int main(int argc, char **argv)
{
    int kills = argc > 1 ? atoi(argv[1]) : 25, k = 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
    world w = {.folder = "/tmp/money-crash-XXXXXX"};
    char command[128];
    st_rng rng;
    audit a = {0};
    bool good = true;

    if (sodium_init() < 0 || !mkdtemp(w.folder))
        return 2;
    printf("seed %" PRIu64 ", %d kills\n", seed, kills);
    fflush(stdout);
    snprintf(w.path, sizeof w.path, "%s/stint.db", w.folder);
    w.told = mmap(NULL, sizeof *w.told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    st_rng_seed(&rng, seed);
    for (k = 0; good && k < kills; k++) {
        good = kill_one(&w, st_rng_u64(&rng), 2000 + (int)st_rng_below(&rng, 300000));
        if (good && (k % CHECK_ALL == CHECK_ALL - 1 || k == kills - 1))
            good = read_all(&w, &a) == 0;
    }
    if (!good) {
        printf("the store is left in %s; seed %" PRIu64 ", kill %d\n", w.folder, seed, k);
        return 1;
    }
    printf(
        "%d kills: %" PRId64 " intervals of %" PRId64 " jobs, %" PRId64 " months closed, %" PRId64
        " price books, %" PRId64 " credits, %" PRId64 " windows of %" PRId64 " bookings\n",
        kills, a.usage, w.told->jobs, a.closes, a.prices, a.credits, a.windows, w.told->bookings);
    snprintf(command, sizeof command, "rm -rf %s", w.folder);
    return system(command) == 0 ? 0 : 1;
}
