/*
 * A month of 300 teams in the ledger: a million intervals of 900,000 jobs are priced, written, read back and
 * folded in, then bills are made. Written per second, read per second, one bill, the saved state.
 * `bench_ledger ENTRIES` for another number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "ledger/ledger.h"

#define TEAMS  300
#define OCT_1  INT64_C(1790812800000)
#define MONTH  (31 * INT64_C(86400000))
#define GPU_MS INT64_C(1000)

static const char prices[] =
    "prices: bench\n"
    "gpu:\n"
    "  h100: {reserved: 2, burst: 2.987654, mig: 110%, mps: 90%, time: 60%}\n"
    "  \"*\": {reserved: 1, burst: 1.5}\n"
    "cpu: 0.03\nram: 0.004\nenergy: 0.25\nidle: 10%\ntopology: {rack: 5%}\n";

/* One thread that only reckons: processor time, whoever else is on the machine. */
static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(int r, const st_err *err)
{
    if (r == 0)
        return;
    fprintf(stderr, "ledger: %s\n", err->msg);
    exit(1);
}

static void put(st_ledger *l, st_entry *e)
{
    st_err err = {0};
    int64_t seq = st_ledger_seq(l, e->account);

    e->seq = seq < 0 ? 1 : seq + 1;
    must(st_ledger_apply(l, e, &err), &err);
}

static char team_names[TEAMS][16];

static st_ledger *begin(void)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    st_price_book *book = st_xcalloc(1, sizeof *book);
    st_ledger *l = st_ledger_new();
    st_err err = {0};

    st_ledger_set_period(l, &(st_period){"2026-10", OCT_1, OCT_1 + MONTH});
    must(st_price_book_read("prices", prices, sizeof prices - 1, OCT_1, book, &err), &err);
    st_price_book_write(book, &doc);
    put(l, &(st_entry){.kind = ST_ENTRY_PRICES, .at_ms = OCT_1, .account = "", .doc = doc.s});
    for (int i = 0; i < TEAMS; i++) {
        snprintf(team_names[i], sizeof team_names[i], "team-%03d", i);
        put(l, &(st_entry){.kind = ST_ENTRY_CHILD,
                           .at_ms = OCT_1,
                           .account = i % 10 ? team_names[i - i % 10] : ST_BOOK_FLEET,
                           .child = team_names[i]});
        put(l, &(st_entry){.kind = ST_ENTRY_ACCOUNT, .at_ms = OCT_1, .account = team_names[i]});
    }
    free(book);
    return l;
}

/* Nine of ten jobs are one interval; the tenth goes on over midnight. */
static st_entry make(st_rng *rng, int64_t i, int64_t n, char job[24])
{
    static const st_entry_grant grant = {
        .node = "gpu-node-0417", .devs = 3, .mig_start = -1, .n = 1};
    int64_t to = OCT_1 + 60000 + (int64_t)((double)i / (double)n * (double)(MONTH - 60000));
    int64_t from = to - 1 - (int64_t)st_rng_below(rng, 59999);

    snprintf(job, 24, "%lld", (long long)(i - i / 10));
    return (st_entry){.kind = ST_ENTRY_USAGE,
                      .at_ms = to,
                      .account = team_names[st_rng_below(rng, TEAMS)],
                      .from_ms = from,
                      .to_ms = to,
                      .job = job,
                      .user = "ada",
                      .workload = "train",
                      .stay = 1,
                      .piece = 1,
                      .gpu = st_rng_chance(rng, 1, 3) ? "a100" : "h100",
                      .basis = (st_basis)st_rng_below(rng, 3),
                      .topo = st_rng_chance(rng, 1, 8) ? ST_TOPO_RACK : ST_TOPO_NONE,
                      .tasks = 1,
                      .cut = ST_CUT_ENDED,
                      .gpu_m = 2000,
                      .share = 2 * GPU_MS * (to - from),
                      .held = 2 * GPU_MS * (to - from),
                      .cpu = 16000 * (to - from),
                      .ram = 131072 * (to - from),
                      .seen = 2 * GPU_MS * (to - from),
                      .busy = GPU_MS * (to - from),
                      .energy_mj = 1400 * (to - from),
                      .grants = &grant,
                      .ngrants = 1};
}

static void report(const char *what, double from, int64_t n)
{
    double took = now_s() - from;

    printf("%-22s %.2f s, %.2f us each\n", what, took, took * 1e6 / (double)n);
}

/* What each phase has for the next: all entries, one behind the other. */
typedef struct books {
    st_strbuf text;
    size_t *ends;
    int64_t n;
} books;

static void post_all(books *b, st_ledger *l)
{
    st_err err = {0};
    st_rng rng;

    st_rng_seed(&rng, 1);
    for (int64_t i = 0; i < b->n; i++) {
        char job[24];
        st_entry e = make(&rng, i, b->n, job);

        must(st_ledger_price(l, &e, &err), &err);
        st_entry_write(&e, &b->text);
        put(l, &e);
        b->ends[i + 1] = b->text.n;
    }
}

static void read_all(const books *b, st_ledger *l, bool write)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_err err = {0};

    for (int64_t i = 0; i < b->n; i++) {
        st_entry e;

        st_arena_reset(arena);
        must(st_entry_read(b->text.s + b->ends[i], b->ends[i + 1] - b->ends[i], arena, &e, &err),
             &err);
        if (l)
            must(st_ledger_apply(l, &e, &err), &err);
        if (write) {
            st_strbuf_clear(&out);
            st_entry_write(&e, &out);
        }
    }
}

static void bill_of(const st_ledger *l, const char *what, const char *account)
{
    double t = now_s();
    st_err err = {0};
    st_bill bill;

    must(st_ledger_bill(l, account, NULL, &bill, &err), &err);
    printf("%-22s %.3f ms, %zu lines, $%.2f\n", what, (now_s() - t) * 1e3, bill.lines.n,
           (double)bill.total / 1e6);
    st_bill_done(&bill);
}

int main(int argc, char **argv)
{
    books b = {.n = argc > 1 ? atoll(argv[1]) : 1000000};
    st_ledger *l = begin(), *again = begin();
    st_strbuf saved = {0};
    struct rusage use;
    double t, read;

    b.ends = st_xcalloc((size_t)b.n + 1, sizeof *b.ends);
    t = now_s();
    post_all(&b, l);
    printf("%-22s %lld, %.0f bytes each\n", "entries", (long long)b.n,
           (double)b.text.n / (double)b.n);
    report("price, write, apply", t, b.n);
    t = now_s();
    read_all(&b, NULL, false);
    read = now_s() - t;
    report("read", t, b.n);
    t = now_s();
    read_all(&b, NULL, true);
    report("write", t + read, b.n);
    t = now_s();
    read_all(&b, again, false);
    report("read and apply", t, b.n);
    bill_of(again, "bill of all", "");
    bill_of(again, "bill of ten teams", "team-010");
    st_ledger_save(again, &saved);
    getrusage(RUSAGE_SELF, &use);
    printf("%-22s %zu KiB; peak memory %ld MiB, of which %zu MiB are the books\n", "saved",
           saved.n / 1024, use.ru_maxrss / 1024, b.text.n >> 20);
    st_ledger_free(l);
    st_ledger_free(again);
    st_strbuf_done(&b.text);
    st_strbuf_done(&saved);
    free(b.ends);
    return 0;
}
