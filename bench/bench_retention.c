/*
 * A month of a control loop with a store: what it keeps, and what it takes, stays as it is once the retention is reached.
 *
 *   bench_retention [JOBS_A_DAY [FOLDER]]
 *
 * 30,000 jobs a day on 400 nodes of 8 GPUs, in batches of 1,000; ended jobs are kept for 7 days and the log for 2, so
 * that a month shows what a year would with more. Books and the audit log grow on purpose: nobody prunes them.
 * FOLDER is /dev/shm unless given, so that the processor is measured and not the disk. Ends with status 1 where something that
 * has a retention, or the memory of the process, grows after the ninth day.
 */
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <sodium.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "control/control.h"

#define DAY       INT64_C(86400000)
#define DAYS      30
#define BATCH     1000
#define NODES     400
#define KEEP_JOBS (7 * DAY)
#define KEEP_LOG  (2 * DAY)
#define FLAT_FROM 9 /* the day on which all retentions are reached */
#define HALF      18
#define FLAT      1.05 /* from there on nothing that has a retention grows by more */
#define FLAT_RSS \
    1.25 /* nor memory: whether a comparison of the books is at work makes that difference */

typedef struct bench {
    st_control *ctl;
    int64_t now;
    char path[128];
    st_submit_item items[BATCH];
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

static void die(const char *what, const st_err *err)
{
    fprintf(stderr, "bench_retention: %s: %s\n", what, err->msg);
    exit(1);
}

static int run_inner(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd *inner = ((waiting *)cmd)->inner;

    return inner ? inner->run(tx, inner, err) : 0;
}

static void publish_inner(st_control *ctl, st_cmd *cmd)
{
    st_cmd *inner = ((waiting *)cmd)->inner;

    if (inner && inner->publish)
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

/* NULL: only waits until all before it is done. */
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

static void make_fleet(bench *b)
{
    st_event type = {.kind = ST_EV_TYPE}, pool = {.kind = ST_EV_POOL}, node = {.kind = ST_EV_NODE};
    st_event account = {.kind = ST_EV_ACCOUNT};
    char name[16];

    type.u.type.name = "h100";
    type.u.type.vram_mib = 81920;
    make_event(b, type);
    pool.u.pool.name = "main";
    pool.u.pool.levels = ST_POOL_LEVELS;
    pool.u.pool.oversub_m = ST_POOL_OVERSUB_M;
    make_event(b, pool);
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "n%03d", i);
        node.u.node = (st_node_spec){.name = name, .ndevs = 8, .cpu_m = 128000, .ram_mib = 1 << 20};
        make_event(b, node);
    }
    st_account_spec_init(&account.u.account);
    account.u.account.name = "team";
    st_cmd_account cmd = {.who = owner, .create = true, .name = "team", .parent = ""};
    const st_spec_names names = st_directory_names(st_control_directory(b->ctl));
    const st_doc_node *children;
    st_doc *doc;
    st_err err = {0};

    if (st_doc_parse("team", "{name: team}", 12, &doc, &err) < 0 ||
        st_spec_account(doc, st_doc_root(doc), &names, true, &cmd.said, &children, &err) < 0)
        die("an account", &err);
    st_cmd_account_put(&cmd);
    do_cmd(b, &cmd.cmd, "an account");
    st_strbuf_done(&cmd.floors);
    st_doc_free(doc);
}

/* A batch comes, runs for an hour, and ends. */
static void one_batch(bench *b)
{
    st_cmd_submit cmd = {.who = owner, .items = b->items, .n = BATCH};

    for (int i = 0; i < BATCH; i++)
        b->items[i] = (st_submit_item){
            .spec = {.name = "train",
                     .account = "team",
                     .user = "ann",
                     .pool = -1,
                     .tasks = 1,
                     .limit_ms = 3600000,
                     .shape = {.gpus = 1, .types = 1, .cpu_m = 1000}},
            .doc = "{\"name\":\"train\",\"command\":[\"python\",\"train.py\",\"--lr\",\"3\"],"
                   "\"gpus\":1,\"limit\":\"1h\"}"};
    st_cmd_submit_init(&cmd);
    do_cmd(b, &cmd.cmd, "a batch");
    __atomic_add_fetch(&b->now, 600000, __ATOMIC_RELAXED);
    for (int i = 0; i < BATCH; i++) {
        const st_report report = {.kind = ST_REPORT_ENDED, .job = b->items[i].id, .stay = 1};

        st_control_report(b->ctl, &report);
    }
    do_cmd(b, NULL, "ends");
}

static int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s = NULL;
    int64_t n = -1;

    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        n = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return n;
}

static int64_t rss_kib(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[200];
    int64_t kib = 0;

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtoll(line + 6, NULL, 10);
    if (f)
        fclose(f);
    return kib;
}

typedef struct seen {
    double kept_mib, rss_mib; /* what has a retention; this process */
} seen;

static seen show(const bench *b, int day)
{
    sqlite3 *db = NULL;
    st_control_stats s;
    seen ret;

    if (sqlite3_open_v2(b->path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        exit(1);
    st_control_stats_get(b->ctl, &s);
    ret.kept_mib = (double)(ask(db, "SELECT SUM(LENGTH(spec) + LENGTH(result) + 150) FROM jobs") +
                            ask(db, "SELECT COALESCE(SUM(LENGTH(data) + 40), 0) FROM log") +
                            ask(db, "SELECT COALESCE(SUM(LENGTH(data) + 40), 0) FROM snap")) /
                   1048576.0;
    malloc_trim(0); /* as stintd does (stintd/memory.h) */
    ret.rss_mib = (double)rss_kib() / 1024;
    printf("%4d %9" PRId64 " %9" PRId64 " %6" PRId64 " %11.1f %11.1f %11.1f %9" PRIu64 " %9" PRId64
           "\n",
           day, ask(db, "SELECT COUNT(*) FROM jobs"), ask(db, "SELECT COUNT(*) FROM log"),
           ask(db, "SELECT COUNT(*) FROM snap"), ret.kept_mib,
           (double)(ask(db, "SELECT SUM(LENGTH(data) + 100) FROM book") +
                    ask(db, "SELECT COALESCE(SUM(LENGTH(detail) + 150), 0) FROM audit") +
                    ask(db, "SELECT COALESCE(SUM(LENGTH(data) + 20), 0) FROM checkpoints")) /
               1048576.0,
           (double)ask(db, "SELECT (SELECT * FROM pragma_page_count()) * 4096") / 1048576.0,
           s.pruned_jobs, (int64_t)ret.rss_mib);
    fflush(stdout);
    sqlite3_close(db);
    return ret;
}

int main(int argc, char **argv)
{
    int64_t a_day = argc > 1 ? strtoll(argv[1], NULL, 10) : 30000;
    const char *folder = argc > 2 ? argv[2] : "/dev/shm";
    seen first = {0}, last = {0};
    double most[2] = {0, 0}; /* memory up to the day HALF, and behind it */
    bench b = {.now = INT64_C(1790812800000),
               .lock = PTHREAD_MUTEX_INITIALIZER,
               .cond = PTHREAD_COND_INITIALIZER};
    char dir[96], rm[128];
    st_err err = {0};

    if (sodium_init() < 0)
        return 1;
    snprintf(dir, sizeof dir, "%s/stint-retention-XXXXXX", folder);
    if (!mkdtemp(dir))
        return 1;
    snprintf(b.path, sizeof b.path, "%s/store.db", dir);
    st_allowance_limits all = st_allowance_total();
    const st_control_options options = {.store = b.path,
                                        .store_options = {.durable = ST_DURABLE_CRASH},
                                        .policy = st_policy_default(),
                                        .clock = tell_time,
                                        .ctx = &b,
                                        .quota = &all,
                                        .quota_total = &all,
                                        .keep_jobs_ms = KEEP_JOBS,
                                        .keep_log_ms = KEEP_LOG};
    if (st_control_new(&options, &b.ctl, &err) < 0 || st_control_start(b.ctl, &err) < 0)
        die("start", &err);
    make_fleet(&b);
    printf("%" PRId64 " jobs a day; ended jobs are kept for 7 days, the log for 2\n", a_day);
    puts(" day      jobs  log rows  snaps  pruned MiB   books MiB    file MiB    pruned   RSS MiB");
    for (int day = 1; day <= DAYS; day++) {
        int64_t batches = ST_MAX(a_day / BATCH, 1), end = b.now + DAY, began = b.now;

        for (int64_t k = 0; k < batches; k++) {
            one_batch(&b);
            /* Between batches the loop has time of its own, as it has in life. */
            for (int i = 0; i < 8; i++) {
                int64_t to = began + (DAY - 700000) / batches * (k * 8 + i + 1) / 8;

                __atomic_store_n(&b.now, ST_MAX(to, b.now), __ATOMIC_RELAXED);
                do_cmd(&b, NULL, "time");
            }
        }
        __atomic_store_n(&b.now, end, __ATOMIC_RELAXED);
        do_cmd(&b, NULL, "a day");
        if (day % 3 == 0 || day < 3)
            last = show(&b, day);
        if (day == FLAT_FROM)
            first = last;
        if (day >= FLAT_FROM)
            most[day > HALF] = ST_MAX(most[day > HALF], last.rss_mib);
    }
    st_control_stop(b.ctl);
    st_control_free(b.ctl);
    snprintf(rm, sizeof rm, "%s/store.db", dir);
    unlink(rm);
    for (const char *const *more = (const char *const[]){"-wal", "-shm", ".lock", NULL}; *more;
         more++) {
        snprintf(rm, sizeof rm, "%s/store.db%s", dir, *more);
        unlink(rm);
    }
    snprintf(rm, sizeof rm, "%s/billing.key", dir);
    unlink(rm);
    snprintf(rm, sizeof rm, "%s/secrets.key", dir);
    unlink(rm);
    rmdir(dir);
    printf("day %d to %d: what has a retention %.3f times (at most %.2f)\n", FLAT_FROM, DAYS,
           last.kept_mib / first.kept_mib, FLAT);
    printf("memory: at most %.0f MiB up to day %d, %.0f behind it: %.3f times (at most %.2f)\n",
           most[0], HALF, most[1], most[1] / most[0], FLAT_RSS);
    return last.kept_mib > FLAT * first.kept_mib || most[1] > FLAT_RSS * most[0];
}
