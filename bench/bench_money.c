/*
 * A month of 50,000 GPUs and 900,000 jobs of 300 teams (month.h), metered and billed for real: records become
 * entries, are priced, folded in, hashed and, by a second thread (scribe.h), written to the store with full
 * durability; days and the month are closed and signed, and all teams get their bills as files.
 *
 * `bench_money JOBS` for another size; 45,000 jobs of 2,500 GPUs unless BENCH_ALL is set. The store is made in the current
 * folder, so that it is on a disk, and removed.
 */
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "billing/money.h"
#include "control/control.h"
#include "month.h"
#include "scribe.h"

#define PATH   "bench_money.db"
#define NOV_1  INT64_C(1793491200000)
#define PERIOD "2026-11"
#define CAPPED \
    (1 +       \
     MONTH_ORGS) /* jobs of every tenth team are held for: it has a cap, and so has its organisation */
#define RUNNING "team-010"
#define PIECES  8

static const char prices[] =
    "prices: bench\n"
    "from: 2026-11-01\n"
    "gpu:\n"
    "  h100: {reserved: 1.80, burst: 2.987654, on_demand: 3.10, mig: 110%, mps: 90%, time: 60%}\n"
    "  \"*\": {reserved: 1, burst: 1.5}\n"
    "cpu: 0.012\nram: 0.0015\nenergy: 0.18\nidle: 20%\ntopology: {rack: 5%}\n";

typedef struct book {
    char *account;
    st_hash chain;
    st_peaks peaks;
} book;

typedef struct office {
    month w;
    st_ledger *l;
    scribe *scribe;
    st_store *store; /* when all is written */
    st_arena *arena;
    st_strbuf data;
    st_map *ids; /* of books by account */
    ST_VEC(book *) books;
    int32_t (*pieces)[PIECES]; /* by job: where they are in its book */
    int64_t n, bytes, fixes, holds;
    unsigned char key[64], secret[32];
    st_checkpoint point;
} office;

static double wall_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(int r, const st_err *err)
{
    if (r >= 0)
        return;
    fprintf(stderr, "bench_money: %s\n", err->msg);
    exit(1);
}

static void clean(void)
{
    unlink(PATH);
    unlink(PATH "-wal");
    unlink(PATH "-shm");
    unlink(PATH ".lock");
}

/* ---- entries ------------------------------------------------------------------------------ */

static book *book_of(office *o, const char *account)
{
    int64_t at;

    if (!st_map_get(o->ids, account, &at)) {
        book *b = st_xcalloc(1, sizeof *b);

        b->account = st_xstrdup(account);
        at = (int64_t)o->books.n;
        st_vec_push(&o->books, b);
        st_map_put(o->ids, account, at);
    }
    return o->books.v[at];
}

static void append(office *o, const st_entry *e, const char *period)
{
    book *b = book_of(o, e->account);
    st_hash leaf;

    st_strbuf_clear(&o->data);
    st_entry_write(e, &o->data);
    st_proof_leaf(o->data.s, o->data.n, &leaf);
    st_proof_chain(&b->chain, &leaf);
    st_peaks_add(&b->peaks, &leaf);
    const st_book_row row = {.n = ++o->n,
                             .account = e->account,
                             .seq = e->seq,
                             .at_ms = e->at_ms,
                             .period = period,
                             .job = e->job ? e->job : "",
                             .data = st_strbuf_str(&o->data),
                             .chain = {b->chain.b, ST_HASH}};
    scribe_row(o->scribe, &row);
    o->bytes += (int64_t)o->data.n;
}

static void post(office *o, st_entry *e, int64_t now)
{
    const st_period period = *st_ledger_period(o->l);
    bool priced =
        e->kind == ST_ENTRY_USAGE || e->kind == ST_ENTRY_RESERVE || e->kind == ST_ENTRY_FIX;
    st_err err = {0};

    e->at_ms = now;
    if (priced)
        must(st_ledger_price(o->l, e, &err), &err);
    else
        e->seq = ST_MAX(st_ledger_seq(o->l, e->account), 0) + 1;
    must(st_ledger_apply(o->l, e, &err), &err);
    append(o, e, period.name);
}

static void entry_of(office *o, const st_record *rec, char job[24], st_entry *ret)
{
    const st_record_names names = {.fleet = o->w.fleet, .tree = o->w.tree, .job = job};

    st_arena_reset(o->arena);
    snprintf(job, 24, "%llu", (unsigned long long)rec->job);
    st_entry_of_record(rec, &names, o->arena, ret);
}

static void on_record(void *ctx, const st_record *rec, int64_t now)
{
    office *o = ctx;
    char job[24];
    st_entry e;

    entry_of(o, rec, job, &e);
    ST_ASSERT(e.piece <= PIECES);
    if (e.kind == ST_ENTRY_FIX) {
        e.fixes = o->pieces[rec->job - 1][e.piece - 1];
        o->fixes++;
    }
    post(o, &e, now);
    if (e.kind == ST_ENTRY_USAGE)
        o->pieces[rec->job - 1][e.piece - 1] = (int32_t)e.seq;
}

/* ---- caps ----------------------------------------------------------------------------------- */

static bool is_capped(int32_t account)
{
    return account % MONTH_ORGS == CAPPED % MONTH_ORGS;
}

static void on_begin(void *ctx, const st_job *job, int64_t now)
{
    static const char *const gpus[] = {"h100"};
    office *o = ctx;
    char text[24];
    st_err err = {0};
    st_worst worst = {.account = st_tree_account(o->w.tree, job->account)->name,
                      .gpus = gpus,
                      .ngpus = 1,
                      .level = job->shape.level,
                      .gpu_m = st_job_gpu_m(job),
                      .cpu_m = job->shape.cpu_m,
                      .ram_mib = job->shape.ram_mib,
                      .limit_ms = job->limit_ms,
                      .at_ms = now};
    st_entry e = {.kind = ST_ENTRY_HOLD, .account = worst.account, .job = text};

    if (!is_capped(job->account))
        return;
    snprintf(text, sizeof text, "%llu", (unsigned long long)job->id);
    must(st_ledger_admit(o->l, &worst, &e.amount, &err), &err);
    post(o, &e, now);
    o->holds++;
}

static void on_end(void *ctx, uint64_t job, int32_t account, int64_t now)
{
    office *o = ctx;
    char text[24];
    st_entry e = {.kind = ST_ENTRY_RELEASE,
                  .account = st_tree_account(o->w.tree, account)->name,
                  .job = text};

    if (!is_capped(account))
        return;
    snprintf(text, sizeof text, "%llu", (unsigned long long)job);
    post(o, &e, now);
}

/* ---- the month ------------------------------------------------------------------------------ */

/* What follows from plans, after a plan or an account. */
static void post_terms(office *o)
{
    st_entry e;

    while (st_ledger_due(o->l, &e))
        post(o, &e, NOV_1);
}

static void set_plan(office *o, const char *account, const char *rest)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0}, doc = {0};
    st_price_plan plan;
    st_err err = {0};

    st_strbuf_addf(&text, "account: %s\nfrom: 2026-11-01\n%s", account, rest);
    must(st_price_plan_read("plan", text.s, text.n, NOV_1, &plan, &err), &err);
    st_price_plan_write(&plan, &doc);
    post(o, &(st_entry){.kind = ST_ENTRY_PLAN, .account = account, .doc = doc.s}, NOV_1);
    post_terms(o);
}

static void set_prices(office *o)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    st_price_book *prices_book = st_xcalloc(1, sizeof *prices_book);
    st_err err = {0};

    must(st_price_book_read("prices", prices, sizeof prices - 1, NOV_1, prices_book, &err), &err);
    st_price_book_write(prices_book, &doc);
    post(o, &(st_entry){.kind = ST_ENTRY_PRICES, .account = "", .doc = doc.s}, NOV_1);
    free(prices_book);
}

/* Accounts, prices, plans, floors. */
static void open_books(office *o)
{
    const st_tree *tree = o->w.tree;

    st_ledger_set_period(o->l, &(st_period){PERIOD, NOV_1, NOV_1 + MONTH_DAYS * MONTH_DAY});
    set_prices(o);
    for (size_t i = 1; i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];
        const char *above = a->parent > ST_ROOT ? tree->accounts.v[a->parent]->name : ST_BOOK_FLEET;

        post(o, &(st_entry){.kind = ST_ENTRY_CHILD, .account = above, .child = a->name}, NOV_1);
        post(o, &(st_entry){.kind = ST_ENTRY_ACCOUNT, .account = a->name}, NOV_1);
        post_terms(o);
        if (is_capped(a->id))
            set_plan(o, a->name, "cap: 500000000\ndiscount: 12.5%\nchargeback: true\n");
        if (a->id > MONTH_ORGS)
            post(o,
                 &(st_entry){.kind = ST_ENTRY_FLOOR,
                             .account = a->name,
                             .gpu = "*",
                             .gpu_m = a->floor.gpu_m},
                 NOV_1);
    }
}

static size_t list_heads(const office *o, st_head **ret)
{
    st_head *heads = st_xcalloc(o->books.n, sizeof *heads);

    for (size_t i = 0; i < o->books.n; i++) {
        const book *b = o->books.v[i];

        strncpy(heads[i].account, b->account, ST_NAME_MAX);
        heads[i].size = b->peaks.size;
        heads[i].chain = b->chain;
        st_peaks_root(&b->peaks, &heads[i].root);
        st_head_salt(&heads[i], o->secret);
    }
    *ret = heads;
    return o->books.n;
}

static void sign(office *o, int64_t now)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf data = {0};
    st_head *heads;
    size_t n = list_heads(o, &heads);

    o->point = (st_checkpoint){.cluster = "bench", .at_ms = now};
    st_checkpoint_make(&o->point, heads, n, o->secret);
    st_checkpoint_sign(&o->point, o->key);
    st_checkpoint_write(&o->point, &data);
    const st_checkpoint_row row = {.n = o->n, .at_ms = now, .data = st_strbuf_str(&data)};
    scribe_point(o->scribe, &row);
    free(heads);
}

static void close_book(office *o, const char *account, int64_t now)
{
    const st_period p = *st_ledger_period(o->l);
    st_entry e = {.kind = ST_ENTRY_CLOSE,
                  .account = account,
                  .period = p.name,
                  .zone = "UTC",
                  .from_ms = p.from_ms,
                  .to_ms = p.to_ms};

    post(o, &e, now);
}

static void close_month(office *o)
{
    const int64_t now = NOV_1 + MONTH_DAYS * MONTH_DAY;
    size_t n = o->books.n;

    for (size_t i = 0; i < n; i++)
        if (o->books.v[i]->account[0])
            close_book(o, o->books.v[i]->account, now);
    close_book(o, "", now);
    st_ledger_set_period(o->l, &(st_period){"2026-12", now, now + 31 * MONTH_DAY});
    sign(o, now);
}

/* ---- bills ---------------------------------------------------------------------------------- */

typedef struct running {
    office *o;
    int32_t account;
    int64_t now, open;
    st_bill *bill;
} running;

static int add_open(void *ctx, const st_record *rec)
{
    running *r = ctx;
    char job[24];
    st_err err = {0};
    st_entry e;

    if (rec->account != r->account || rec->from_ms == rec->to_ms)
        return 0;
    entry_of(r->o, rec, job, &e);
    e.at_ms = r->now;
    must(st_ledger_price(r->o->l, &e, &err), &err);
    st_bill_add(r->bill, &e, false);
    r->open++;
    return 0;
}

static void running_bill(office *o, int64_t now)
{
    double t = wall_s();
    st_err err = {0};
    st_bill bill;
    running r = {.o = o, .now = now, .bill = &bill};

    r.account = st_tree_find(o->w.tree, RUNNING);
    must(st_ledger_bill(o->l, RUNNING, NULL, &bill, &err), &err);
    st_meter_open(o->w.m, now, add_open, &r);
    printf("  running bill     %8.1f ms, of one team at noon of the 16th, %lld of %zu open "
           "intervals\n",
           1e3 * (wall_s() - t), (long long)r.open, st_meter_stays(o->w.m));
    st_bill_done(&bill);
}

static void all_bills(const office *o)
{
    double t = wall_s();
    int64_t sum = 0;
    st_err err = {0};
    st_bill bill;

    for (size_t i = 1 + MONTH_ORGS; i < o->w.tree->accounts.n; i++) {
        must(st_ledger_bill(o->l, o->w.tree->accounts.v[i]->name, PERIOD, &bill, &err), &err);
        sum += bill.total;
        st_bill_done(&bill);
    }
    printf("  bills            %8.1f ms for 300 teams", 1e3 * (wall_s() - t));
    t = wall_s();
    must(st_ledger_bill(o->l, "", PERIOD, &bill, &err), &err);
    printf(", %.1f ms for the cluster: %zu lines, $%.2f\n", 1e3 * (wall_s() - t), bill.lines.n,
           (double)bill.total / 1e6);
    ST_ASSERT(sum == bill.total && st_ledger_sum(o->l) == 0);
    st_bill_done(&bill);
}

static void write_file(const office *o, st_store *reader, const st_head *heads, const st_account *a,
                       st_strbuf *out)
{
    char *own = a->name;
    st_err err = {0};
    st_bill bill;

    must(st_ledger_bill(o->l, a->name, PERIOD, &bill, &err), &err);
    const st_bill_source src = {.bill = &bill,
                                .currency = "USD",
                                .zone = "UTC",
                                .point = &o->point,
                                .heads = heads,
                                .nheads = o->books.n,
                                .secret = o->secret,
                                .key = o->key,
                                .own = &own,
                                .nown = 1};
    must(st_bill_write(&src, reader, &(st_bill_sink){.out = out}, &err), &err);
    st_bill_done(&bill);
}

/* Every second team's; one in thirty is verified, as its owner would. */
typedef struct files {
    const office *o;
    const st_head *heads;
    st_store *reader;
    int first;
    double writing, verifying;
    int64_t bytes, verified;
    char bad[900];
} files;

static void *half_of_files(void *ctx)
{
    files *f = ctx;
    const office *o = f->o;

    for (int i = f->first; i < MONTH_TEAMS; i += 2) {
        ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
        double t = wall_s();
        st_verdict verdict;

        write_file(o, f->reader, f->heads, o->w.tree->accounts.v[1 + MONTH_ORGS + i], &out);
        f->writing += wall_s() - t;
        f->bytes += (int64_t)out.n;
        if (i % 30 > 1)
            continue;
        t = wall_s();
        st_billfile_verify(out.s, out.n, o->point.key, &verdict);
        f->verifying += wall_s() - t;
        f->verified++;
        if (!verdict.good)
            memcpy(f->bad, verdict.what, sizeof verdict.what);
    }
    return NULL;
}

static void all_files(const office *o)
{
    files f[2] = {{.o = o}, {.o = o, .first = 1}};
    double t = wall_s();
    pthread_t other;
    st_head *heads;
    st_err err = {0};

    list_heads(o, &heads);
    for (int i = 0; i < 2; i++) {
        f[i].heads = heads;
        must(st_store_open_reader(o->store, &f[i].reader, &err), &err);
    }
    if (pthread_create(&other, NULL, half_of_files, &f[1]) != 0)
        must(st_fail(&err, ST_EINTERNAL, "no second thread"), &err);
    half_of_files(&f[0]);
    pthread_join(other, NULL);
    for (int i = 0; i < 2; i++) {
        st_store_close(f[i].reader);
        if (f[i].bad[0])
            must(st_fail(&err, ST_ECORRUPT, "a bill is not good: %s", f[i].bad), &err);
    }
    printf("  bill files       %8.1f s for 300 teams; one: %.0f ms, %.1f MB, verified in %.0f ms\n",
           wall_s() - t, 1e3 * (f[0].writing + f[1].writing) / MONTH_TEAMS,
           (double)(f[0].bytes + f[1].bytes) / MONTH_TEAMS / 1e6,
           1e3 * (f[0].verifying + f[1].verifying) / (double)(f[0].verified + f[1].verified));
    free(heads);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void begin(office *o, uint32_t jobs)
{
    const month_ears ears = {on_record, on_begin, on_end, o};
    unsigned char public[32];

    clean();
    *o = (office){.l = st_ledger_new(), .arena = st_arena_new(), .ids = st_map_new()};
    crypto_sign_seed_keypair(public, o->key, (const unsigned char[32]){1});
    memcpy(o->point.key, public, sizeof public);
    o->scribe = scribe_new(PATH);
    o->pieces = st_xcalloc(jobs, sizeof *o->pieces);
    month_begin(&o->w, jobs, NOV_1, &ears);
}

static void finish(office *o)
{
    for (size_t i = 0; i < o->books.n; i++) {
        free(o->books.v[i]->account);
        free(o->books.v[i]);
    }
    st_vec_free(&o->books);
    st_map_free(o->ids);
    free(o->pieces);
    st_ledger_free(o->l);
    st_arena_free(o->arena);
    st_strbuf_done(&o->data);
    st_store_close(o->store);
    month_done(&o->w);
    clean();
}

/* Through the days, each signed at its end; half a day is looked at from within. */
static void play(office *o)
{
    double signing = 0;

    for (int64_t day = 1; day <= MONTH_DAYS; day++) {
        int64_t ends = NOV_1 + day * MONTH_DAY;

        if (day == 16) {
            month_until(&o->w, ends - MONTH_DAY / 2);
            running_bill(o, ends - MONTH_DAY / 2);
        }
        month_until(&o->w, ends);
        month_cut(&o->w, ends);
        double t = wall_s();
        sign(o, ends);
        signing += wall_s() - t;
    }
    printf("  a checkpoint     %8.2f ms over %zu books\n", 1e3 * signing / MONTH_DAYS, o->books.n);
}

static void report(const office *o, double wall, double cpu)
{
    struct rusage use;
    struct stat file = {0};

    getrusage(RUSAGE_SELF, &use);
    stat(PATH, &file);
    printf("  all of it        %8.1f s, %.1f s of processor; peak memory %ld MiB\n",
           wall_s() - wall, cpu_s() - cpu, use.ru_maxrss / 1024);
    printf("  store            %8.0f MB: %.0f bytes for each job, of which entries are %.0f\n",
           (double)file.st_size / 1e6, (double)file.st_size / o->w.jobs,
           (double)o->bytes / o->w.jobs);
}

int main(int argc, char **argv)
{
    uint32_t jobs = getenv("BENCH_ALL") ? MONTH_JOBS : MONTH_JOBS / 20;
    double wall = wall_s(), cpu = cpu_s();
    office *o = st_xcalloc(1, sizeof *o);

    if (argc > 1)
        jobs = (uint32_t)strtoul(argv[1], NULL, 10);
    if (sodium_init() < 0 || jobs < MONTH_TEAMS)
        return 1;
    begin(o, jobs);
    printf("a month of %d GPUs, %u jobs, 300 teams; every commit is on the disk\n",
           o->w.nodes * MONTH_DEVS, jobs);
    open_books(o);
    play(o);
    double t = wall_s();
    close_month(o);
    o->store = scribe_end(o->scribe);
    printf("  metered, booked  %8.1f s, %.1f s of processor: %lld entries, %lld corrections, %lld "
           "holds\n",
           wall_s() - wall, cpu_s() - cpu, (long long)o->n, (long long)o->fixes,
           (long long)o->holds);
    printf("  the close        %8.1f ms\n", 1e3 * (wall_s() - t));
    all_bills(o);
    all_files(o);
    report(o, wall, cpu);
    finish(o);
    free(o);
    return 0;
}
