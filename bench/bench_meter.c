/*
 * A month of 50,000 GPUs and 900,000 jobs (month.h) through the meter alone: what it costs to know who had what.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/strbuf.h"
#include "month.h"

/* Of the processor: one thread does all of it. */
static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double heap_mb(void)
{
    return (double)mallinfo2().uordblks / 1e6;
}

typedef struct counts {
    int64_t records, fixes, share;
} counts;

static void count(void *ctx, const st_record *r, int64_t now)
{
    counts *c = ctx;
    (void)now;
    c->records++;
    c->share += r->kind == ST_REC_GRANT || r->kind == ST_REC_FIX ? r->share : 0;
    c->fixes += r->kind == ST_REC_FIX;
}

static void save_and_load(const month *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0};
    st_meter *loaded = NULL;
    st_err err = {0};
    double start = now_s();
    st_meter_save(w->m, &bytes);
    double saved = now_s();
    ST_ASSERT(st_meter_load(bytes.s, bytes.n, &loaded, &err) == 0);
    printf("  save       %8.1f ms, %.1f MB; load %.1f ms\n", 1e3 * (saved - start),
           (double)bytes.n / 1e6, 1e3 * (now_s() - saved));
    st_meter_free(loaded);
}

static int one_account(void *ctx, const st_record *r)
{
    *(int64_t *)ctx += r->account == 7;
    return 0;
}

int main(void)
{
    const int64_t whole = MONTH_DAYS * MONTH_DAY;
    double empty = heap_mb(), cuts = 0, most = 0;
    counts c = {0};
    int64_t hits = 0;
    month w;
    month_begin(&w, MONTH_JOBS, 0, &(month_ears){.record = count, .ctx = &c});
    double own = heap_mb() - empty, start = now_s();
    for (int64_t day = 1; day <= MONTH_DAYS; day++) {
        month_until(&w, day * MONTH_DAY);
        double from = now_s(), heap = heap_mb() - empty - own;
        month_cut(&w, day * MONTH_DAY);
        cuts += now_s() - from;
        most = heap > most ? heap : most;
    }
    double took = now_s() - start;
    printf("50,000 GPUs, 900,000 jobs (%lld not started), 30 days\n", (long long)w.refused);
    printf("  all of it  %8.2f s of one core, %lld records (%lld corrections)\n", took,
           (long long)c.records, (long long)c.fixes);
    printf("  a cut      %8.1f ms, %zu stays open\n", 1e3 * cuts / MONTH_DAYS, st_meter_stays(w.m));
    printf("  memory     %8.1f MB of open and remembered stays\n", most);
    start = now_s();
    st_meter_open(w.m, whole + 1, one_account, &hits);
    printf("  open       %8.1f ms to go through all that is open\n", 1e3 * (now_s() - start));
    save_and_load(&w);
    st_record total;
    st_meter_totals(w.m, 0, &total);
    ST_ASSERT(total.total == INT64_C(50000000) * whole && total.granted == c.share);
    printf("  granted    %8.1f %% of the month, to the last milli-GPU x ms\n",
           100.0 * (double)total.granted / (double)total.total);
    month_done(&w);
    return 0;
}
