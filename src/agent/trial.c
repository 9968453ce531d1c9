/*
 * The quick test of a node, when stintd asks for one: what its GPUs say of themselves, against limits (health/health.h). It runs
 * nothing on them, so that it may be made beside jobs.
 */
#include <inttypes.h>

#include "agent/files.h"
#include "agent/host.h"
#include "base/quote.h"

#define AGAIN_MS 2000 /* until what was told, and is asked for again, is told again */

static int64_t value_of(const st_gpu_sample *s, st_gpu_metric m)
{
    return st_gpu_has(s, m) ? s->v[m] : ST_DIAG_UNKNOWN;
}

/* A node joined with its GPUs; what the driver says now may be less. */
static void measure(st_host *h, int64_t now, st_gpu_inventory *inv, st_diag_gpu *gpu,
                    st_diag_facts *ret)
{
    st_err err;

    *ret = (st_diag_facts){.joined = h->inv.n, .gpu = gpu};
    ret->driver = h->gpu && st_gpu_inventory_get(h->gpu, inv, &err) == 0;
    ret->n = ret->driver ? ST_MIN(inv->n, h->inv.n) : 0;
    for (int d = 0; d < ret->n; d++) {
        const st_gpu_info *info = &inv->gpu[d];
        st_gpu_sample s = {0};

        gpu[d] = (st_diag_gpu){.answers = !info->lost};
        if (st_gpu_sample_get(h->gpu, d, ST_GPU_WHOLE, now, &s, &err) < 0)
            gpu[d].answers = false;
        gpu[d].xid = value_of(&s, ST_GPU_XID);
        gpu[d].recovery = value_of(&s, ST_GPU_RECOVERY);
        gpu[d].ecc_uncorrected = value_of(&s, ST_GPU_ECC_DBE_VOL);
        gpu[d].remap_pending = value_of(&s, ST_GPU_REMAP_PENDING);
        gpu[d].remap_failed = value_of(&s, ST_GPU_REMAP_FAILURE);
        gpu[d].pcie_width = info->pcie_width > 0 ? info->pcie_width : ST_DIAG_UNKNOWN;
        gpu[d].pcie_width_max = info->pcie_width_max > 0 ? info->pcie_width_max : ST_DIAG_UNKNOWN;
        gpu[d].pcie_replays = value_of(&s, ST_GPU_PCIE_REPLAY);
        gpu[d].links = info->links;
        gpu[d].throttle = value_of(&s, ST_GPU_THROTTLE);
    }
}

typedef struct writer {
    st_strbuf rows;
    char why[ST_DIAG_TEXT]; /* the first that failed */
    st_finding found;
} writer;

static void write_row(void *ctx, const st_diag_row *row)
{
    writer *w = ctx;

    st_strbuf_addf(&w->rows, "%s{\"check\":\"%s\"", w->rows.n > 0 ? "," : "",
                   st_diag_name(row->diag));
    if (row->gpu >= 0)
        st_strbuf_addf(&w->rows, ",\"gpu\":%d", row->gpu);
    st_strbuf_addf(&w->rows, ",\"verdict\":\"%s\"", st_diag_verdict_name(row->verdict));
    if (row->verdict != ST_VERDICT_SKIP)
        st_strbuf_addf(&w->rows, ",\"value\":%" PRId64 ",\"limit\":%" PRId64, row->value,
                       row->limit);
    st_strbuf_addc(&w->rows, '}');
    if (row->verdict != ST_VERDICT_FAIL || w->why[0])
        return;
    st_diag_say(row, w->why);
    w->found = (st_finding){.kind = row->diag == ST_DIAG_DRIVER ? ST_FAULT_DRIVER : ST_FAULT_TEST,
                            .gpu = row->gpu,
                            .code = row->diag};
}

static void make(st_host *h, int64_t now)
{
    st_gpu_inventory inv;
    st_diag_gpu gpu[ST_DEVS_MAX];
    st_diag_facts facts;
    const st_diag_limits limits = st_diag_limits_default();
    writer w = {0};
    int failed;

    measure(h, now, &inv, gpu, &facts);
    failed = st_diag_quick(&facts, &limits, &h->process->xids, write_row, &w);
    st_strbuf_clear(&h->test_text);
    st_strbuf_addf(&h->test_text,
                   "{\"no\":%" PRId64 ",\"level\":\"quick\",\"version\":%d,\"ms\":%" PRId64
                   ",\"passed\":%s,\"reason\":",
                   h->test_wanted, ST_DIAG_VERSION, st_boot_ms() - now, failed ? "false" : "true");
    st_quote_json(&h->test_text, w.why);
    if (failed)
        st_finding_json(&w.found, &h->test_text);
    st_strbuf_addf(&h->test_text, ",\"results\":[%s]}", st_strbuf_str(&w.rows));
    st_say(h, "tested", "test=%" PRId64 " passed=%s failed=%d reason=\"%s\"", h->test_wanted,
           failed ? "false" : "true", failed, w.why);
    st_strbuf_done(&w.rows);
}

void st_host_test(st_host *h, int64_t now)
{
    bool unwell = h->fenced || h->ill[0] || h->hangs[0] || h->stuck[0] || h->full[0] || h->unfit[0];

    if (h->test_wanted == 0 || !h->has_list)
        return;
    if (h->test_no == h->test_wanted) {
        if (!h->test_told || now < h->test_ms)
            return;
    } else if (unwell) {
        return; /* that comes first, and is said already */
    } else {
        make(h, now);
    }
    h->test_no = h->test_wanted;
    h->test_told = false;
    h->test_telling = 0;
    h->test_ms = now + AGAIN_MS;
    h->changed = true;
}
