/* See advice.h. */
#include "rules/advice.h"

#include <inttypes.h>

#include "base/num.h"
#include "base/strbuf.h"
#include "rules/estimate.h"

#define ENOUGH_MS    30000
#define GIB          1024
#define RUNTIME_MIB  1024
#define BUSY_PERCENT 20
#define SHARE_STEP_M 50 /* thousandths of a GPU */
#define SHARE_MOST_M 500

/* An eighth more than was used, and room for the runtime, in whole GiB. */
static int64_t need_of(int64_t peak_mib)
{
    int64_t mib = peak_mib + peak_mib / 8 + RUNTIME_MIB;

    return (mib + GIB - 1) / GIB * GIB;
}

static void one_gpu(const st_advice_use *u, const char *used, const char *asked, st_strbuf *out)
{
    int64_t need = need_of(u->peak_mib);
    char mib[ST_GIB_TEXT], share[ST_FMT_MAX];
    int64_t share_m = u->whole_mib > 0 ? need * 1000 / u->whole_mib : 1000;

    share_m = (share_m + SHARE_STEP_M - 1) / SHARE_STEP_M * SHARE_STEP_M;
    if (need * 2 > u->asked_mib)
        return;
    st_strbuf_addf(out, "it used at most %s of %s of GPU memory: a MIG slice with %s would hold it",
                   used, asked, st_gib_text(mib, need));
    if (share_m <= SHARE_MOST_M)
        st_strbuf_addf(out, ", or a share (--share %s)", st_fmt_milli(share, share_m));
}

static void more_gpus(const st_advice_use *u, const char *used, const char *asked, st_strbuf *out)
{
    int64_t each = u->asked_mib / u->gpus, spread = u->peak_mib / u->gpus;
    int64_t n = 1;

    while (n < u->gpus && n * each < need_of(spread) * u->gpus)
        n *= 2;
    if (n < u->gpus)
        st_strbuf_addf(out,
                       "a task used at most %s of %s of GPU memory: %" PRId64 " GPU%s would hold "
                       "it",
                       used, asked, n, n == 1 ? "" : "s");
}

static void about_memory(const st_advice_use *u, st_strbuf *out)
{
    char used[ST_GIB_TEXT], asked[ST_GIB_TEXT];

    st_gib_text(used, u->peak_mib);
    st_gib_text(asked, u->asked_mib);
    if (u->peak_mib >= u->asked_mib - u->asked_mib / 20)
        st_strbuf_addf(out, "it filled its GPU memory (%s of %s): ask for more next time", used,
                       asked);
    else if (u->gpus == 1)
        one_gpu(u, used, asked, out);
    else
        more_gpus(u, used, asked, out);
}

void st_advice(const st_advice_use *u, st_advice_fn *fn, void *ctx)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf memory = {0}, busy = {0};

    if (u->seen_ms < ENOUGH_MS || u->gpus < 1)
        return;
    if (u->peak_mib >= 0 && u->asked_mib > 0)
        about_memory(u, &memory);
    if (memory.n > 0)
        fn(ctx, st_strbuf_str(&memory));
    if (u->busy_ms < 0 || u->busy_ms * 100 >= u->seen_ms * BUSY_PERCENT)
        return;
    st_strbuf_addf(&busy,
                   "its GPUs were busy %" PRId64 " %% of the time: see whether it waits for its "
                   "data, or take fewer",
                   u->busy_ms * 100 / u->seen_ms);
    fn(ctx, st_strbuf_str(&busy));
}
