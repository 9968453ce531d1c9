/* Bills worked by hand: the arithmetic is in the comment of each, the code must come to the same. */
#include "base/testing.h"
#include "ledger/test/books.h"

#define GPU_HOUR (1000 * HOUR) /* milli-GPU x ms */

#define PRICES                                                               \
    "prices: base\n"                                                         \
    "gpu:\n"                                                                 \
    "  h100: {reserved: 2.00, burst: 3.00, on_demand: 4.50, booked: 2.50,\n" \
    "         mig: 110%, mps: 90%, time: 60%}\n"                             \
    "  \"*\": {reserved: 1.00, burst: 1.50}\n"                               \
    "cpu: 0.03\n"                                                            \
    "ram: 0.004\n"                                                           \
    "energy: 0.25\n"                                                         \
    "topology: {rack: 10%, nvlink: 20%}\n"                                   \
    "idle: 25%\n"                                                            \
    "credit: {lost: 80%, fault: 100%}\n"                                     \
    "pieces:\n"                                                              \
    "  render: {frames: 0.02}\n"                                             \
    "  transcode: {minutes: 0.015}\n"

static int setup(void **state)
{
    st_ledger *l = books_new();
    books_account(l, "org", "");
    books_account(l, "ml", "org");
    books_account(l, "vfx", "org");
    books_prices(l, OCT_1, PRICES);
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    st_ledger_free(*state);
    return 0;
}

/* 8 GPUs x 744 h (31 days) x $2.00 = $11,904.00. Nobody used it: all of that is idle. */
static void floor_unused(void **state)
{
    st_ledger *l = *state;
    st_idle_floors idle = {0};
    st_err err = {0};
    for (int day = 0; day < 31; day++) {
        st_entry e = books_reserve("ml", "h100", 8000, OCT_1 + day * DAY, OCT_1 + (day + 1) * DAY);
        books_post(l, &e);
    }
    assert_int_equal(books_total(l, "ml", NULL), 11904 * DOLLARS);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_RESERVED), 11904 * DOLLARS);
    assert_int_equal(books_quantity(l, "ml", NULL, ST_PAY_RESERVED), 5952 * GPU_HOUR);
    assert_ok(st_ledger_idle_floors(l, "org", NULL, &idle, &err));
    assert_int_equal(idle.n, 1);
    assert_string_equal(idle.v[0].account, "ml");
    assert_int_equal(idle.v[0].unused, 5952 * GPU_HOUR);
    assert_int_equal(idle.v[0].cost, 11904 * DOLLARS);
    st_vec_free(&idle);
}

/* The same floor, 4 GPUs of it used all month: use inside the floor is $0.00 on top, the bill is the same,
 * $11,904.00; 4 x 744 h = 2,976 GPU-hours were used and as many lay idle, for $5,952.00. */
static void floor_used_half(void **state)
{
    st_ledger *l = *state;
    st_idle_floors idle = {0};
    st_err err = {0};
    st_entry floor = books_reserve("ml", "h100", 8000, OCT_1, NOV_1);
    st_entry use = books_usage("ml", "1", "h100", 4000, ST_BASIS_GUARANTEED, OCT_1, NOV_1);
    books_post(l, &floor);
    books_post(l, &use);
    assert_int_equal(books_total(l, "ml", NULL), 11904 * DOLLARS);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_GUARANTEED), 0);
    assert_int_equal(books_quantity(l, "ml", NULL, ST_PAY_GUARANTEED), 2976 * GPU_HOUR);
    assert_ok(st_ledger_idle_floors(l, "org", NULL, &idle, &err));
    assert_int_equal(idle.v[0].unused, 2976 * GPU_HOUR);
    assert_int_equal(idle.v[0].cost, 5952 * DOLLARS);
    st_vec_free(&idle);
}

/* The floor fully used and 2 GPUs borrowed for 10 h: $11,904.00 + 2 x 10 x $3.00 = $11,964.00. */
static void floor_used_and_burst(void **state)
{
    st_ledger *l = *state;
    st_idle_floors idle = {0};
    st_err err = {0};
    st_entry burst = books_usage("ml", "2", "h100", 2000, ST_BASIS_BURST, OCT_1, OCT_1 + 10 * HOUR);
    st_entry floor = books_reserve("ml", "h100", 8000, OCT_1, NOV_1);
    st_entry use = books_usage("ml", "1", "h100", 8000, ST_BASIS_GUARANTEED, OCT_1, NOV_1);
    books_post(l, &burst);
    books_post(l, &floor);
    books_post(l, &use);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_BURST), 60 * DOLLARS);
    assert_int_equal(books_total(l, "ml", NULL), 11964 * DOLLARS);
    assert_ok(st_ledger_idle_floors(l, "org", NULL, &idle, &err));
    assert_int_equal(idle.n, 0);
    st_vec_free(&idle);
}

/* 5 GPUs x 2 h x $4.50 = $45.00 beyond what the plan agreed; on an a100, which has only the row "*":
 * on demand is burst there, 5 x 2 x $1.50 = $15.00. */
static void on_demand(void **state)
{
    st_ledger *l = *state;
    st_entry a = books_usage("ml", "1", "h100", 5000, ST_BASIS_ON_DEMAND, OCT_1, OCT_1 + 2 * HOUR);
    st_entry b = books_usage("ml", "2", "a100", 5000, ST_BASIS_ON_DEMAND, OCT_1, OCT_1 + 2 * HOUR);
    books_post(l, &a);
    books_post(l, &b);
    assert_int_equal(a.lines[0].amount, 45 * DOLLARS);
    assert_int_equal(b.lines[0].amount, 15 * DOLLARS);
    assert_int_equal(books_total(l, "org", NULL), 60 * DOLLARS);
}

/* A 3g.40gb counts half a GPU (4 of 8 memory slices): 0.5 x 7 h x $3.00 x 110% = $11.55. */
static void mig_slice(void **state)
{
    st_ledger *l = *state;
    st_entry e = books_usage("ml", "1", "h100", 500, ST_BASIS_BURST, OCT_1, OCT_1 + 7 * HOUR);
    e.level = ST_LEVEL_MIG;
    e.profile = "3g.40gb";
    books_post(l, &e);
    assert_int_equal(e.lines[0].factor_bp, 11000);
    assert_int_equal(books_total(l, "ml", NULL), 11550000);
}

/* A quarter of a GPU by MPS for 8 h: 0.25 x 8 x $3.00 x 90% = $5.40. */
static void mps_share(void **state)
{
    st_ledger *l = *state;
    st_entry e = books_usage("ml", "1", "h100", 250, ST_BASIS_BURST, OCT_1, OCT_1 + 8 * HOUR);
    e.level = ST_LEVEL_MPS;
    books_post(l, &e);
    assert_int_equal(books_total(l, "ml", NULL), 5400000);
}

/* Four time-sliced jobs of half a GPU each on one GPU for 3 h: twice what there is. Each is charged its share of
 * the device, 0.25 x 3 x $3.00 x 60% = $1.35; together the one device, 1 x 3 x $3.00 x 60% = $5.40. */
static void oversubscribed(void **state)
{
    st_ledger *l = *state;
    static const char *const jobs[] = {"1", "2", "3", "4"};
    for (int i = 0; i < 4; i++) {
        st_entry e = books_usage(i < 2 ? "ml" : "vfx", jobs[i], "h100", 500, ST_BASIS_BURST, OCT_1,
                                 OCT_1 + 3 * HOUR);
        e.level = ST_LEVEL_TIME;
        e.share = e.held / 2;
        books_post(l, &e);
        assert_int_equal(e.lines[0].amount, 1350000);
    }
    assert_int_equal(books_total(l, "ml", NULL), 2700000);
    assert_int_equal(books_total(l, "org", NULL), 5400000);
}

/* A gang of 16 runs 5 h and is preempted; the last 2 h were not saved. Charged 16 x 5 x $3.00 = $240.00,
 * credited 16 x 2 x $3.00 x 80% = $76.80: $163.20. */
static void preempted_gang(void **state)
{
    st_ledger *l = *state;
    st_entry e = books_usage("ml", "1", "h100", 16000, ST_BASIS_BURST, OCT_1, OCT_1 + 5 * HOUR);
    e.tasks = 2;
    e.grants = (const st_entry_grant[]){{.node = "n1", .devs = 0xff, .mig_start = -1, .n = 1},
                                        {.node = "n2", .devs = 0xff, .mig_start = -1, .n = 1}};
    e.ngrants = 2;
    e.cut = ST_CUT_PREEMPTED;
    books_post(l, &e);
    books_lose(l, &e, NULL, OCT_1 + 3 * HOUR, 32 * GPU_HOUR);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_BURST), 240 * DOLLARS);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_LOST), -76800000);
    assert_int_equal(books_total(l, "ml", NULL), 163200000);
}

/* CPU and memory of the lost time come back as well, and what a correction adds to them later; a second credit for the
 * same work is none. 1 GPU of 10 h, all lost to a fault: everything that was charged is credited, to the micro-dollar. */
static void all_components_come_back_once(void **state)
{
    st_ledger *l = *state;
    st_entry e = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, OCT_1, OCT_1 + 10 * HOUR + 7);
    e.cpu = 7001 * (e.to_ms - e.from_ms);
    e.ram = 65537 * (e.to_ms - e.from_ms);
    e.cut = ST_CUT_FAULT;
    books_post(l, &e);
    st_piece_sum sum = {0};
    books_lose(l, &e, &sum, OCT_1, e.share);
    assert_true(books_amount(l, "ml", NULL, ST_PAY_FAULT) < 0);
    assert_int_equal(books_total(l, "ml", NULL), 0);
    st_entry fix = e, again;
    fix.kind = ST_ENTRY_FIX;
    fix.fixes = e.seq;
    fix.ngrants = 0;
    fix.gpu_m = fix.share = fix.held = fix.cpu = fix.ram = 0;
    fix.seen = e.share;
    fix.busy = e.share / 3;
    fix.energy_mj = 7200001;
    books_post(l, &fix);
    assert_true(books_total(l, "ml", NULL) > 0);
    st_piece_add(&sum, &fix);
    assert_true(st_ledger_lost_again(l, &sum, &fix, &again));
    again.at_ms = fix.at_ms;
    books_post(l, &again);
    st_piece_add(&sum, &again);
    assert_int_equal(books_total(l, "ml", NULL), 0);
    assert_false(st_ledger_lost_again(l, &sum, &fix, &again));
}

/* A credit that is not what was charged is refused, whoever reckons it. */
static void no_credit_beyond_what_was_charged(void **state)
{
    st_ledger *l = *state;
    st_err err = {0};
    st_entry e = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, OCT_1, OCT_1 + HOUR);
    e.cut = ST_CUT_PREEMPTED;
    books_post(l, &e);
    st_entry lost = {.kind = ST_ENTRY_LOST,
                     .at_ms = OCT_1 + HOUR,
                     .account = "ml",
                     .job = "1",
                     .stay = 1,
                     .piece = 1,
                     .gpu = "h100",
                     .cut = ST_CUT_PREEMPTED,
                     .from_ms = OCT_1,
                     .to_ms = OCT_1 + HOUR,
                     .lost = GPU_HOUR,
                     .fixes = e.seq,
                     .charged = 3 * DOLLARS,
                     .amount = 2400001};
    assert_fails(st_ledger_price(l, &lost, &err), ST_EINVAL, "is credited");
    lost.amount = 2400000;
    lost.cut = ST_CUT_ENDED;
    assert_fails(st_ledger_price(l, &lost, &err), ST_EINVAL, "impossible");
}

/* 8 GPUs in one NVLink domain for 10 h, then the node fails and 3 h are lost. 8 x 10 x $3.00 = $240.00, premium
 * 20% = $48.00. Back comes what was paid for the lost time, premium included: 8 x 3 x $3.00 x 120% x 100% =
 * $86.40. In all $201.60. */
static void hardware_fault(void **state)
{
    st_ledger *l = *state;
    st_entry e = books_usage("ml", "1", "h100", 8000, ST_BASIS_BURST, OCT_1, OCT_1 + 10 * HOUR);
    e.topo = ST_TOPO_NVLINK;
    e.cut = ST_CUT_FAULT;
    books_post(l, &e);
    books_lose(l, &e, NULL, OCT_1 + 7 * HOUR, 24 * GPU_HOUR);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_TOPOLOGY), 48 * DOLLARS);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_FAULT), -86400000);
    assert_int_equal(books_total(l, "ml", NULL), 201600000);
}

/* Burst goes from $3.00 to $3.60 at noon of 15 October. 4 GPUs from 6:00 to 18:00 are two intervals:
 * 4 x 6 x $3.00 = $72.00 and 4 x 6 x $3.60 = $86.40: $158.40. One interval across noon is refused. */
static void price_change_in_mid_job(void **state)
{
    st_ledger *l = *state;
    int64_t noon = OCT_1 + 14 * DAY + 12 * HOUR;
    st_err err = {0};
    books_prices(l, OCT_1 + DAY,
                 "prices: dearer\nfrom: 2026-10-15T12:00:00Z\n"
                 "gpu: {\"*\": {reserved: 2, burst: 3.60}}\n");
    assert_int_equal(st_ledger_next_change(l, OCT_1 + DAY), noon);
    st_entry across = books_usage("ml", "1", "h100", 4000, ST_BASIS_BURST, noon - HOUR, noon + 1);
    assert_fails(st_ledger_price(l, &across, &err), ST_ESTATE, "prices change between");
    st_entry a = books_usage("ml", "1", "h100", 4000, ST_BASIS_BURST, noon - 6 * HOUR, noon);
    st_entry b = books_usage("ml", "1", "h100", 4000, ST_BASIS_BURST, noon, noon + 6 * HOUR);
    a.cut = ST_CUT_GOES_ON;
    b.piece = 2;
    books_post(l, &a);
    books_post(l, &b);
    assert_int_equal(a.lines[0].amount, 72 * DOLLARS);
    assert_int_equal(b.lines[0].amount, 86400000);
    assert_int_equal(books_total(l, "ml", NULL), 158400000);
}

/* February 2028 has 29 days, 696 h: a floor of 1 GPU is 696 x $2.00 = $1,392.00. */
static void leap_day(void **state)
{
    const int64_t feb = INT64_C(1832976000000), mar = INT64_C(1835481600000);
    st_ledger *l = *state;
    assert_int_equal(mar - feb, 29 * DAY);
    st_ledger_set_period(l, &(st_period){"2028-02", feb, mar});
    st_entry e = books_reserve("ml", "h100", 1000, feb, mar);
    books_post(l, &e);
    assert_int_equal(books_total(l, "ml", "2028-02"), 1392 * DOLLARS);
}

/* October 2026 in Berlin begins at 22:00 UTC on 30 September and ends at 23:00 UTC on 31 October, because
 * the clocks go back on the 25th: 745 h. A floor of 2 GPUs: 2 x 745 x $2.00 = $2,980.00. */
static void month_end_across_dst(void **state)
{
    const int64_t from = OCT_1 - 2 * HOUR, to = NOV_1 - HOUR;
    st_ledger *l = st_ledger_new();
    (void)state;
    assert_int_equal(to - from, 745 * HOUR);
    st_ledger_set_period(l, &(st_period){"2026-10", from, to});
    books_new_account(l, from, "ml", "");
    books_prices(l, from, PRICES);
    st_entry e = books_reserve("ml", "h100", 2000, from, to);
    books_post(l, &e);
    assert_int_equal(books_total(l, "ml", NULL), 2980 * DOLLARS);
    /* And an hour behind the edge is November. */
    st_entry late = books_reserve("ml", "h100", 2000, to, to + HOUR);
    st_err err = {0};
    assert_fails(st_ledger_price(l, &late, &err), ST_ESTATE, "not within 2026-10");
    st_ledger_free(l);
}

/* A cap of $100.00 for the org. Job 1 of ml holds $60.00; job 2 of vfx wants to hold $50.00: 60 + 50 > 100,
 * refused; $40.00 fit. Job 1: 4 GPUs x 2 h x $3.00 = $24.00, then the price rises to $4.50: 4 x 3 h x $4.50 =
 * $54.00, of which the hold has $36.00 left: $18.00 are credited. Job 1 costs $60.00. Job 2 uses 2 x 1 h x $4.50 =
 * $9.00 and releases $31.00. The org: $69.00 spent, nothing held, $31.00 left. */
static void capped_account(void **state)
{
    st_ledger *l = *state;
    st_err err = {0};
    st_budget_state b;
    int64_t rise = OCT_1 + 2 * HOUR;
    books_plan(l, OCT_1, "account: org\ncap: 100\n");
    books_prices(l, OCT_1,
                 "prices: dearer\nfrom: 2026-10-01T02:00:00Z\n"
                 "gpu: {\"*\": {reserved: 2, burst: 4.50}}\n");
    st_entry hold = {.kind = ST_ENTRY_HOLD, .at_ms = OCT_1, .account = "ml", .job = "1"};
    hold.amount = 60 * DOLLARS;
    books_put(l, &hold);
    hold = (st_entry){.kind = ST_ENTRY_HOLD, .at_ms = OCT_1, .account = "vfx", .job = "2"};
    hold.amount = 50 * DOLLARS;
    hold.seq = 2;
    assert_fails(
        st_ledger_apply(l, &hold, &err), ST_EQUOTA,
        "job 2 could cost $50.00: the cap of org is $100.00 in 2026-10, of which $0.00 are "
        "spent, $60.00 on hold");
    hold.amount = 40 * DOLLARS;
    books_put(l, &hold);

    st_entry first = books_usage("ml", "1", "h100", 4000, ST_BASIS_BURST, OCT_1, rise);
    first.cut = ST_CUT_GOES_ON;
    books_post(l, &first);
    st_entry other = books_usage("vfx", "2", "h100", 2000, ST_BASIS_BURST, rise, rise + HOUR);
    books_post(l, &other);
    st_entry second = books_usage("ml", "1", "h100", 4000, ST_BASIS_BURST, rise, rise + 3 * HOUR);
    second.piece = 2;
    books_post(l, &second);
    assert_int_equal(second.nlines, 2);
    assert_int_equal(second.lines[0].amount, 54 * DOLLARS);
    assert_int_equal(second.lines[1].what, ST_PAY_CAP);
    assert_int_equal(second.lines[1].amount, -18 * DOLLARS);
    assert_int_equal(st_ledger_held(l, "ml", "1"), 0);
    assert_int_equal(st_ledger_held(l, "vfx", "2"), 31 * DOLLARS);

    books_put(
        l, &(st_entry){
               .kind = ST_ENTRY_RELEASE, .at_ms = rise + 3 * HOUR, .account = "vfx", .job = "2"});
    assert_int_equal(books_total(l, "ml", NULL), 60 * DOLLARS);
    assert_int_equal(books_total(l, "org", NULL), 69 * DOLLARS);
    assert_ok(st_ledger_budget(l, "org", rise + 3 * HOUR, &b, &err));
    assert_int_equal(b.spent, 69 * DOLLARS);
    assert_int_equal(b.held, 0);
    assert_int_equal(b.left, 31 * DOLLARS);
    assert_int_equal(b.warned, 1); /* 50%, not yet 80% */
}

/* 12.5% off: 10 GPUs x 3 h x $3.00 x 87.5% = $78.75. The plan is the org's; ml has none of its own. vfx has one
 * without a discount: 10 x 3 x $3.00 = $90.00. */
static void discount(void **state)
{
    st_ledger *l = *state;
    books_plan(l, OCT_1, "account: org\ndiscount: 12.5%\n");
    books_plan(l, OCT_1, "account: vfx\nchargeback: true\n");
    st_entry a = books_usage("ml", "1", "h100", 10000, ST_BASIS_BURST, OCT_1, OCT_1 + 3 * HOUR);
    st_entry b = books_usage("vfx", "2", "h100", 10000, ST_BASIS_BURST, OCT_1, OCT_1 + 3 * HOUR);
    books_post(l, &a);
    books_post(l, &b);
    assert_int_equal(a.lines[0].factor_bp, 8750);
    assert_int_equal(books_total(l, "ml", NULL), 78750000);
    assert_int_equal(books_total(l, "vfx", NULL), 90 * DOLLARS);
}

/* A render job pays 1,234 frames x $0.02 = $24.68 and nothing for its GPUs, CPUs or memory; a transcode job
 * 90.5 minutes x $0.015 = $1.3575. */
static void render_frames(void **state)
{
    st_ledger *l = *state;
    st_entry use = books_usage("vfx", "1", "h100", 8000, ST_BASIS_BURST, OCT_1, OCT_1 + 5 * HOUR);
    use.workload = "render";
    use.cpu = 64000 * 5 * HOUR;
    books_post(l, &use);
    assert_int_equal(use.nlines, 0);
    st_entry frames = {.kind = ST_ENTRY_PIECES, .at_ms = OCT_1 + 5 * HOUR, .account = "vfx"};
    frames.job = "1";
    frames.workload = "render";
    frames.pieces = 1234;
    books_post(l, &frames);
    st_entry minutes = frames;
    minutes.job = "2";
    minutes.workload = "transcode";
    minutes.pieces = 90 * 60000 + 30000;
    books_post(l, &minutes);
    assert_int_equal(books_amount(l, "vfx", NULL, ST_PAY_FRAMES), 24680000);
    assert_int_equal(books_amount(l, "vfx", NULL, ST_PAY_MINUTES), 1357500);
    assert_int_equal(books_total(l, "vfx", NULL), 26037500);
}

/* A gang that must be in one rack: 8 x 2 h x $3.00 = $48.00, and 10% of that, $4.80, as a line of its own. */
static void topology_premium(void **state)
{
    st_ledger *l = *state;
    st_entry e = books_usage("ml", "1", "h100", 8000, ST_BASIS_BURST, OCT_1, OCT_1 + 2 * HOUR);
    e.topo = ST_TOPO_RACK;
    books_post(l, &e);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_BURST), 48 * DOLLARS);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_TOPOLOGY), 4800000);
    assert_int_equal(books_total(l, "ml", NULL), 52800000);
}

/* 2 GPUs for 10 h: $60.00. Telemetry covers 8 h of it and saw 5 h of work: 2 x (8 - 5) x $3.00 x 25% = $4.50
 * surcharge. The 2 h nobody saw cost nothing more. */
static void idle_surcharge(void **state)
{
    st_ledger *l = *state;
    st_entry e = books_usage("ml", "1", "h100", 2000, ST_BASIS_BURST, OCT_1, OCT_1 + 10 * HOUR);
    e.seen = 16 * GPU_HOUR;
    e.busy = 10 * GPU_HOUR;
    books_post(l, &e);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_IDLE), 4500000);
    assert_int_equal(books_total(l, "ml", NULL), 64500000);
    /* Nor does it where nobody knows how busy it was, or it was busier than it was seen. */
    e = books_usage("ml", "2", "h100", 2000, ST_BASIS_BURST, OCT_1, OCT_1 + 10 * HOUR);
    e.seen = 16 * GPU_HOUR;
    books_post(l, &e);
    e.busy = 17 * GPU_HOUR;
    books_post(l, &e);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_IDLE), 4500000);
}

/* October: 1 GPU x 10 h x $3.00 = $30.00. In November burst costs $9.00, and it turns out that the job ended an
 * hour earlier: the correction is 1 x -1 h at October's $3.00 = -$3.00, on November's bill. October stays. */
static void correction_after_close(void **state)
{
    st_ledger *l = *state;
    st_entry use = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, OCT_1, OCT_1 + 10 * HOUR);
    books_post(l, &use);
    books_prices(l, OCT_1 + 20 * HOUR,
                 "prices: november\nfrom: 2026-11-01\n"
                 "gpu: {\"*\": {reserved: 9, burst: 9}}\n");
    books_close(l, &(st_period){"2026-11", NOV_1, DEC_1});
    st_entry fix = use;
    fix.kind = ST_ENTRY_FIX;
    fix.at_ms = NOV_1 + HOUR;
    fix.fixes = use.seq;
    fix.share = fix.held = -GPU_HOUR;
    fix.seen = fix.busy = fix.energy_mj = 0;
    books_post(l, &fix);
    assert_int_equal(books_total(l, "ml", "2026-10"), 30 * DOLLARS);
    assert_int_equal(books_total(l, "ml", "2026-11"), -3 * DOLLARS);
    assert_int_equal(books_quantity(l, "ml", "2026-11", ST_PAY_BURST), -GPU_HOUR);
}

/* ml $45.00 (5 x 3 h x $3.00), vfx $30.00 (5 x 2 h x $3.00), the org's own job $1.50 (0.5 x 1 h x $3.00):
 * the org's bill is $76.50, and so is the cluster's. */
static void children_sum_to_the_parent(void **state)
{
    st_ledger *l = *state;
    st_bill bill;
    st_err err = {0};
    st_entry a = books_usage("ml", "1", "h100", 5000, ST_BASIS_BURST, OCT_1, OCT_1 + 3 * HOUR);
    st_entry b = books_usage("vfx", "2", "h100", 5000, ST_BASIS_BURST, OCT_1, OCT_1 + 2 * HOUR);
    st_entry c = books_usage("org", "3", "h100", 500, ST_BASIS_BURST, OCT_1, OCT_1 + HOUR);
    books_post(l, &c);
    books_post(l, &b);
    books_post(l, &a);
    assert_int_equal(books_total(l, "ml", NULL), 45 * DOLLARS);
    assert_int_equal(books_total(l, "vfx", NULL), 30 * DOLLARS);
    assert_int_equal(books_total(l, "org", NULL), 76500000);
    assert_int_equal(books_total(l, "", NULL), 76500000);
    assert_ok(st_ledger_bill(l, "org", "2026-10", &bill, &err));
    assert_int_equal(bill.lines.n, 3);
    assert_string_equal(bill.lines.v[0].account, "ml");
    assert_string_equal(bill.lines.v[1].account, "org");
    assert_string_equal(bill.lines.v[2].account, "vfx");
    assert_int_equal(bill.lines.v[2].first_seq, b.seq);
    assert_int_equal(bill.lines.v[2].last_seq, b.seq);
    st_bill_done(&bill);
}

/* Three intervals of 333 ms of 1 GPU at $3.00 are 277.5 micro-dollars each: 277, 278, 277 and half a one
 * carried, not 3 x 277 and not 3 x 278. A fourth makes it 1,110 for 1.332 s. */
static void remainders_are_not_lost(void **state)
{
    st_ledger *l = *state;
    static const int64_t want[] = {277, 278, 277, 278};
    for (int i = 0; i < 4; i++) {
        st_entry e = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, OCT_1 + i * 333,
                                 OCT_1 + (i + 1) * 333);
        books_post(l, &e);
        assert_int_equal(e.lines[0].amount, want[i]);
    }
    assert_int_equal(books_total(l, "ml", NULL), 1110);
}

/* A job without GPUs: 16 cores x 3 h x $0.03 = $1.44, 64 GiB x 3 h x $0.004 = $0.768. And 2.5 kWh x $0.25 =
 * $0.625. In all $2.833. */
static void cpu_memory_energy(void **state)
{
    st_ledger *l = *state;
    st_entry e = books_usage("ml", "1", NULL, 0, ST_BASIS_BURST, OCT_1, OCT_1 + 3 * HOUR);
    e.cpu = 16000 * 3 * HOUR;
    e.ram = 64 * 1024 * 3 * HOUR;
    e.energy_mj = INT64_C(2500) * 3600 * 1000;
    books_post(l, &e);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_CPU), 1440000);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_RAM), 768000);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_ENERGY), 625000);
    assert_int_equal(books_total(l, "ml", NULL), 2833000);
}

/* Two jobs on two types of GPU, 4 cores each for 5 h: one line for CPUs, 2 x 4 x 5 x $0.03 = $1.20, and one for each
 * type, 5 x $3.00 and 5 x $1.50. A job at another level has a line of its own; a second job on the same type has
 * not: 10 x $3.00 = $30.00. */
static void lines_are_by_type_and_level(void **state)
{
    st_ledger *l = *state;
    st_bill bill;
    st_err err = {0};
    static const char *const jobs[] = {"1", "2", "3", "4"};
    static const char *const types[] = {"h100", "a100", "h100", "h100"};
    for (int i = 0; i < 4; i++) {
        st_entry e =
            books_usage("ml", jobs[i], types[i], 1000, ST_BASIS_BURST, OCT_1, OCT_1 + 5 * HOUR);
        e.level = i == 2 ? ST_LEVEL_MPS : ST_LEVEL_WHOLE;
        e.cpu = i < 2 ? 4000 * 5 * HOUR : 0;
        books_post(l, &e);
    }
    assert_ok(st_ledger_bill(l, "ml", NULL, &bill, &err));
    assert_int_equal(bill.lines.n, 4);
    assert_string_equal(bill.lines.v[0].gpu, "a100");
    assert_int_equal(bill.lines.v[0].amount, 7500000);
    assert_int_equal(bill.lines.v[1].amount, 30 * DOLLARS);
    assert_int_equal(bill.lines.v[1].entries, 2);
    assert_int_equal(bill.lines.v[1].rate, 3 * DOLLARS);
    assert_int_equal(bill.lines.v[2].level, ST_LEVEL_MPS);
    assert_int_equal(bill.lines.v[2].amount, 13500000);
    assert_int_equal(bill.lines.v[3].what, ST_PAY_CPU);
    assert_string_equal(bill.lines.v[3].gpu, "");
    assert_int_equal(bill.lines.v[3].amount, 1200000);
    assert_int_equal(bill.uses.v[0].jobs, 4);
    st_bill_done(&bill);
}

/* The org has a floor of 4 GPUs of its own beside ml's 2; ml uses 5 inside floors for 10 h. 3 of the org's are used:
 * what lies idle is 1 x 10 h x $2.00 = $20.00, and it is the org's. vfx lets 3 lie: $60.00, so it comes first. */
static void idle_floors_by_cost(void **state)
{
    st_ledger *l = *state;
    st_idle_floors idle = {0};
    st_err err = {0};
    int64_t to = OCT_1 + 10 * HOUR;
    st_entry org = books_reserve("org", "h100", 4000, OCT_1, to);
    st_entry ml = books_reserve("ml", "h100", 2000, OCT_1, to);
    st_entry vfx = books_reserve("vfx", "h100", 3000, OCT_1, to);
    st_entry use = books_usage("ml", "1", "h100", 5000, ST_BASIS_GUARANTEED, OCT_1, to);
    books_post(l, &org);
    books_post(l, &ml);
    books_post(l, &vfx);
    books_post(l, &use);
    assert_ok(st_ledger_idle_floors(l, "", "2026-10", &idle, &err));
    assert_int_equal(idle.n, 2);
    assert_string_equal(idle.v[0].account, "vfx");
    assert_int_equal(idle.v[0].cost, 60 * DOLLARS);
    assert_string_equal(idle.v[1].account, "org");
    assert_int_equal(idle.v[1].cost, 20 * DOLLARS);
    assert_int_equal(idle.v[1].unused, 10 * GPU_HOUR);
    st_vec_free(&idle);

    /* Ten hours more in which nobody uses the org's: $80.00, and now it comes first. */
    idle = (st_idle_floors){0};
    org = books_reserve("org", "h100", 4000, to, to + 10 * HOUR);
    books_post(l, &org);
    assert_ok(st_ledger_idle_floors(l, "", "2026-10", &idle, &err));
    assert_string_equal(idle.v[0].account, "org");
    assert_int_equal(idle.v[0].cost, 100 * DOLLARS);
    assert_string_equal(idle.v[1].account, "vfx");
    st_vec_free(&idle);
}

/* A person grants $12.34: the bill of $30.00 becomes $17.66, whatever the discount. */
static void credit_by_a_person(void **state)
{
    st_ledger *l = *state;
    st_entry use = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, OCT_1, OCT_1 + 10 * HOUR);
    books_post(l, &use);
    st_entry e = {.kind = ST_ENTRY_CREDIT, .at_ms = OCT_1 + 11 * HOUR, .account = "ml"};
    e.amount = 12340000;
    e.fixes = use.seq;
    e.reason = "slow storage on 1 October";
    e.by = "root";
    books_post(l, &e);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_ADJUST), -12340000);
    assert_int_equal(books_total(l, "ml", NULL), 17660000);
    e = (st_entry){.kind = ST_ENTRY_CREDIT,
                   .at_ms = OCT_1 + 12 * HOUR,
                   .account = "ml",
                   .amount = -12340000,
                   .fixes = e.seq,
                   .reason = "it was fast",
                   .by = "root"};
    books_post(l, &e);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_ADJUST), 0);
    assert_int_equal(books_total(l, "ml", NULL), 30000000);
}

/* One GPU at $3.00: 10 h for information, 5 h to be paid, 3 h for information again. The month is $54.00, of which $15.00 is owed, also
 * after the next change and a save. */
static void chargeback_from_a_moment(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf saved = {0};
    st_ledger *l = *state, *again = NULL;
    st_bill shown = {0};
    st_err err = {0};
    st_entry e = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, OCT_1, OCT_1 + 10 * HOUR);

    books_post(l, &e);
    assert_ok(st_ledger_bill(l, "org", NULL, &shown, &err));
    assert_int_equal(shown.charged, 0);
    assert_int_equal(shown.shown, 3); /* org and those below */
    st_bill_done(&shown);
    books_plan(l, OCT_1 + 10 * HOUR, "account: org\nchargeback: true\n");
    e = books_usage("ml", "2", "h100", 1000, ST_BASIS_BURST, OCT_1 + 10 * HOUR, OCT_1 + 15 * HOUR);
    books_post(l, &e);
    books_plan(l, OCT_1 + 15 * HOUR, "account: org\nchargeback: false\n");
    e = books_usage("ml", "3", "h100", 1000, ST_BASIS_BURST, OCT_1 + 15 * HOUR, OCT_1 + 18 * HOUR);
    books_plan(l, OCT_1 + 18 * HOUR, "account: org\nchargeback: true\n");
    books_post(l, &e); /* made when it is to be paid again, and of a time when it was not */
    st_ledger_save(l, &saved);
    assert_ok(st_ledger_load(saved.s, saved.n, &again, &err));
    for (int turn = 0; turn < 2; turn++) {
        st_bill bill = {0};

        assert_ok(st_ledger_bill(turn ? again : l, "org", NULL, &bill, &err));
        assert_int_equal(bill.total, 54 * DOLLARS);
        assert_int_equal(bill.owed, 15 * DOLLARS);
        assert_int_equal(bill.lines.n, 1);
        assert_int_equal(bill.lines.v[0].owed, 15 * DOLLARS);
        assert_int_equal(bill.charged, 3); /* as it is now */
        assert_int_equal(bill.shown, 0);
        st_bill_done(&bill);
    }
    st_ledger_free(again);
}

int main(void)
{
#define BILL(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        BILL(floor_unused),
        BILL(floor_used_half),
        BILL(floor_used_and_burst),
        BILL(on_demand),
        BILL(mig_slice),
        BILL(mps_share),
        BILL(oversubscribed),
        BILL(preempted_gang),
        BILL(hardware_fault),
        BILL(price_change_in_mid_job),
        BILL(leap_day),
        BILL(month_end_across_dst),
        BILL(capped_account),
        BILL(discount),
        BILL(render_frames),
        BILL(topology_premium),
        BILL(idle_surcharge),
        BILL(correction_after_close),
        BILL(children_sum_to_the_parent),
        BILL(remainders_are_not_lost),
        BILL(all_components_come_back_once),
        BILL(no_credit_beyond_what_was_charged),
        BILL(cpu_memory_energy),
        BILL(lines_are_by_type_and_level),
        BILL(idle_floors_by_cost),
        BILL(credit_by_a_person),
        BILL(chargeback_from_a_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
