/*
 * Bookings at the size of a large site: what a quote, a year's weekly series and a pass cost with many bookings ahead, and a
 * pass with a hundred of them open. Milliseconds of processor time.
 *
 *   bench_book [NODES [BOOKINGS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/macros.h"
#include "base/rng.h"
#include "core/core.h"

#define HOUR  INT64_C(3600000)
#define WEEKS 52

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void must(st_core *core, const st_event *ev, int64_t now, st_effects *fx)
{
    st_err err = {0};
    st_effects_clear(fx);
    if (st_core_step(core, ev, now, fx, &err) < 0) {
        fprintf(stderr, "%s: %s\n", st_event_name(ev->kind), err.msg);
        exit(1);
    }
}

static st_core *site(int nodes, st_effects *fx)
{
    st_policy policy = st_policy_default();
    policy.booking_account_share_m = 1000;
    st_core *core = st_core_new(&policy);
    st_event ev = {.kind = ST_EV_TYPE, .u.type = {"h100", 80000, ST_BOARD_H100_80}};
    must(core, &ev, 0, fx);
    ev = (st_event){.kind = ST_EV_POOL, .u.pool = {.name = "p", .levels = 0xf, .oversub_m = 1000}};
    must(core, &ev, 0, fx);
    for (int i = 0; i < nodes; i++) {
        char name[32], rack[32];
        snprintf(name, sizeof name, "n%d", i);
        snprintf(rack, sizeof rack, "r%d", i / 8);
        ev = (st_event){
            .kind = ST_EV_NODE,
            .u.node = {
                .name = name, .ndevs = 8, .cpu_m = 128000, .ram_mib = 1000000, .rack = rack}};
        st_err err = {0};
        if (st_core_apply(core, &ev, 0, fx, &err) < 0)
            exit(1);
    }
    for (int i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "a%d", i);
        ev = (st_event){.kind = ST_EV_ACCOUNT};
        st_account_spec_init(&ev.u.account);
        ev.u.account.name = name;
        ev.u.account.guarantee.gpu_m = nodes * 8 * INT64_C(1000) / 400;
        must(core, &ev, 0, fx);
    }
    return core;
}

static st_event a_booking(uint64_t id, const char *account, int tasks, const st_window *w, int n)
{
    st_event ev = {.kind = ST_EV_BOOK};
    ev.u.book.spec = (st_booking_spec){.id = id,
                                       .series = n > 1 ? id : 0,
                                       .name = "b",
                                       .account = account,
                                       .pool = -1,
                                       .tasks = tasks,
                                       .gpus = 8,
                                       .no_show_ms = ST_TIME_NEVER};
    ev.u.book.windows = w;
    ev.u.book.nwindows = n;
    ev.u.book.confirm = true;
    return ev;
}

static st_event a_job(uint64_t id, const char *account)
{
    return (st_event){.kind = ST_EV_SUBMIT,
                      .u.job = {.id = id,
                                .name = "j",
                                .account = account,
                                .user = "u",
                                .pool = -1,
                                .tasks = 1 + (int)(id % 4),
                                .shape = {.level = ST_LEVEL_WHOLE, .gpus = 1 << id % 4},
                                .limit_ms = HOUR * (int64_t)(1 + id % 48),
                                .yield = ST_YIELD_REQUEUE}};
}

/* Milliseconds for one submit and its pass, over many. */
static double passes(st_core *core, st_effects *fx, int64_t at_ms, int first, int jobs)
{
    double begin = now_ms();
    for (int i = first; i < first + jobs; i++) {
        char account[16];
        snprintf(account, sizeof account, "a%d", i % 100);
        st_event ev = a_job((uint64_t)i + 1, account);
        must(core, &ev, at_ms + i, fx);
    }
    return (now_ms() - begin) / jobs;
}

/* The same in two fleets by turns, so that neither has the better of the machine. */
static void compare(st_core *plain, st_core *core, st_effects *fx, int64_t at_ms, int first,
                    int jobs, const char *what)
{
    double a = 0, b = 0;
    for (int i = 0; i < 10; i++) {
        a += passes(plain, fx, at_ms, first + i * jobs / 10, jobs / 10);
        b += passes(core, fx, at_ms, first + i * jobs / 10, jobs / 10);
    }
    printf("a submit with its pass, %s: %.4f ms without bookings, %.4f ms with them: %.2fx\n", what,
           a / 10, b / 10, b / a);
}

#define OPEN 100 /* bookings of eight nodes each, that begin soon */

/* Every node has ten labels, one in 16 the network that is required; whole nodes, for themselves. */
static void quote_labels(st_core *core, int nodes, st_rng *rng, st_effects *fx)
{
    double sum = 0, most = 0;
    for (int i = 0; i < nodes; i++) {
        char text[300];
        snprintf(
            text, sizeof text,
            "a=1\nb=2\nc=3\ndriver=550.54.15\nexecutor=oci\ngpu_driver=nvml\nkernel=6.1\nnet=%s\n"
            "storage=nvme\ntests=quick\n",
            i % 16 == 0 ? "ib" : "eth");
        st_event ev = {.kind = ST_EV_LABELS, .u.labels = {i, text, true}};
        st_err err = {0};
        st_effects_clear(fx);
        if (st_core_apply(core, &ev, 0, fx, &err) < 0)
            exit(1);
    }
    for (int i = 0; i < 100; i++) {
        int64_t from = HOUR * st_rng_range(rng, 24, 24 * 330);
        st_window w = {from, from + 24 * HOUR};
        st_event ev = a_booking(1000000, "a7", 8, &w, 1);
        st_book_quote q;
        ev.u.book.spec.require = "driver=550\nnet=ib\nstorage=nvme\n";
        ev.u.book.spec.dedicated = true;
        double at = now_ms();
        st_core_quote(core, &ev.u.book.spec, &w, 1, &q, NULL);
        sum += now_ms() - at;
        most = ST_MAX(most, now_ms() - at);
    }
    printf("a quote with three labels: %.2f ms, %.2f ms at most\n", sum / 100, most);
}

int main(int argc, char **argv)
{
    int nodes = argc > 1 ? atoi(argv[1]) : 6250, bookings = argc > 2 ? atoi(argv[2]) : 10000;
    st_effects fx = {0};
    st_core *plain = site(nodes, &fx), *core = site(nodes, &fx);
    st_rng rng;
    st_rng_seed(&rng, 16);
    double begin = now_ms(), most = 0;
    int made = 0;
    for (int i = 0; i < bookings; i++) {
        int64_t from = HOUR * st_rng_range(&rng, 24, 24 * 330);
        st_window w = {from, from + HOUR * st_rng_range(&rng, 2, 72)};
        char account[16];
        snprintf(account, sizeof account, "a%d", i % 100);
        st_event ev = a_booking((uint64_t)i + 1, account, (int)st_rng_range(&rng, 1, 16), &w, 1);
        st_err err = {0};
        st_effects_clear(&fx);
        double at = now_ms();
        made += st_core_apply(core, &ev, 0, &fx, &err) == 0;
        most = ST_MAX(most, now_ms() - at);
    }
    printf("%d of %d bookings made on %d GPUs: %.2f ms each, %.2f ms at most\n", made, bookings,
           nodes * 8, (now_ms() - begin) / bookings, most);
    double sum = 0;
    most = 0;
    for (int i = 0; i < 100; i++) {
        int64_t from = HOUR * st_rng_range(&rng, 24, 24 * 330);
        st_window w = {from, from + 24 * HOUR};
        st_event ev = a_booking(1000000, "a7", 8, &w, 1);
        st_book_quote q;
        double at = now_ms();
        st_core_quote(core, &ev.u.book.spec, &w, 1, &q, NULL);
        sum += now_ms() - at;
        most = ST_MAX(most, now_ms() - at);
    }
    printf("a quote: %.2f ms, %.2f ms at most\n", sum / 100, most);
    quote_labels(core, nodes, &rng, &fx);
    st_window weeks[WEEKS];
    st_book_quote quotes[WEEKS];
    for (int i = 0; i < WEEKS; i++)
        weeks[i] = (st_window){HOUR * (24 * 7 * i + 33), HOUR * (24 * 7 * i + 41)};
    st_event ev = a_booking(1000000, "a7", 8, weeks, WEEKS);
    double at = now_ms();
    st_core_quote(core, &ev.u.book.spec, weeks, WEEKS, quotes, NULL);
    printf("a year's weekly series: %.1f ms\n", now_ms() - at);
    for (uint64_t i = 0; i < OPEN; i++) {
        char account[16];
        snprintf(account, sizeof account, "a%d", (int)(i % 100));
        ev = a_booking(2000000 + i, account, 8, &(st_window){HOUR, 24 * HOUR}, 1);
        must(core, &ev, 0, &fx);
    }
    compare(plain, core, &fx, 1000, 0, 3000, "none open");
    ev = (st_event){.kind = ST_EV_TIMER};
    must(core, &ev, 2 * HOUR, &fx);
    must(plain, &ev, 2 * HOUR, &fx);
    compare(plain, core, &fx, 2 * HOUR, 3000, 1000, "100 of 8 nodes open");
    st_core_free(core);
    st_core_free(plain);
    st_effects_done(&fx);
    return 0;
}
