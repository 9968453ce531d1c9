/*
 * Tests of a node, when stintd asks for one: what its GPUs say of themselves, and above level quick what was measured on them
 * (agent/trial.h), against limits (health/health.h).
 */
#include "agent/trial.h"

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
    st_diag_unmeasured(ret->measured);
    ret->driver = h->gpu && st_gpu_inventory_get(h->gpu, inv, &err) == 0;
    ret->n = ret->driver ? ST_MIN(inv->n, h->inv.n) : 0;
    for (int d = 0; d < ret->n; d++) {
        const st_gpu_info *info = &inv->gpu[d];
        st_gpu_sample s = {0};

        gpu[d] = (st_diag_gpu){.answers = !info->lost, .type = h->inv.gpu[d].type};
        st_diag_unmeasured(gpu[d].measured);
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
    uint16_t without; /* GPUs that are not in it */
    int failed;
    char why[ST_DIAG_TEXT]; /* the first that failed */
    st_finding found;
} writer;

static void write_row(void *ctx, const st_diag_row *row)
{
    writer *w = ctx;

    if (row->gpu >= 0 && (w->without >> row->gpu & 1))
        return; /* it is out of service already, and said so */
    w->failed += row->verdict == ST_VERDICT_FAIL;

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

/* ---- what was measured ---------------------------------------------------------------------- */

static void take_measured(const json_t *said, int64_t measured[ST_DIAG_COUNT])
{
    const char *word;
    const json_t *value;

    json_object_foreach((json_t *)(uintptr_t)said, word, value)
    {
        int diag = st_diag_parse(word);

        if (diag >= ST_DIAG_WORKS && json_is_integer(value) && json_integer_value(value) >= 0)
            measured[diag] = json_integer_value(value);
    }
}

/* What the program said, and what the telemetry saw meanwhile. GPUs of which it said nothing were not measured. */
static void add_measured(const st_host *h, const json_t *said, st_diag_gpu *gpu,
                         st_diag_facts *facts)
{
    const json_t *row;
    size_t i;

    facts->nccl = json_is_true(json_object_get(said, "nccl"));
    facts->blas = json_is_true(json_object_get(said, "blas"));
    take_measured(said, facts->measured);
    for (int d = 0; d < facts->n; d++) {
        const st_trial_seen *seen = &h->trial.seen[d];

        gpu[d].measured[ST_DIAG_TEMPERATURE] = seen->temperature;
        gpu[d].measured[ST_DIAG_POWER] = seen->power_w;
        gpu[d].measured[ST_DIAG_CLOCK] = seen->clock;
        if (gpu[d].throttle != ST_DIAG_UNKNOWN)
            gpu[d].throttle |= seen->throttle;
    }
    json_array_foreach(json_object_get(said, "gpus"), i, row)
    {
        int64_t at = json_integer_value(json_object_get(row, "gpu"));

        if (json_is_integer(json_object_get(row, "gpu")) && at >= 0 && at < facts->n)
            take_measured(row, gpu[at].measured);
    }
}

/* ---- a test --------------------------------------------------------------------------------- */

static void begin_text(st_host *h, st_test_level level, int64_t since, bool passed, const char *why)
{
    st_strbuf_clear(&h->test_text);
    st_strbuf_addf(&h->test_text,
                   "{\"no\":%" PRId64 ",\"level\":\"%s\",\"version\":%d,\"ms\":%" PRId64
                   ",\"passed\":%s,\"reason\":",
                   h->test_wanted, st_test_level_name(level), ST_DIAG_VERSION, st_boot_ms() - since,
                   passed ? "true" : "false");
    st_quote_json(&h->test_text, why);
}

/* said NULL: nothing was measured. */
static void make(st_host *h, int64_t now, const json_t *said)
{
    st_gpu_inventory inv;
    st_diag_gpu gpu[ST_DEVS_MAX];
    st_diag_facts facts;
    st_diag_limits limits;
    const char *with = json_string_value(json_object_get(said, "with"));
    const st_test_level asked = st_trial_asked(&h->trial, &limits);
    writer w = {.without = h->sick | st_trial_without(&h->trial)};
    const char *sep = "";
    int failed;

    measure(h, now, &inv, gpu, &facts);
    facts.level = said || h->inv.n == 0 ? asked : ST_TEST_QUICK;
    if (said)
        add_measured(h, said, gpu, &facts);
    st_diag_judge(&facts, &limits, &h->process->xids, write_row, &w);
    failed = w.failed;
    begin_text(h, facts.level, said ? h->trial.began_ms : now, failed == 0, w.why);
    if (failed)
        st_finding_json(&w.found, &h->test_text);
    if (with) {
        st_strbuf_add(&h->test_text, ",\"with\":");
        st_quote_json(&h->test_text, with);
    }
    st_strbuf_add(&h->test_text, ",\"without\":[");
    for (unsigned devs = w.without; devs; devs &= devs - 1, sep = ",")
        st_strbuf_addf(&h->test_text, "%s%d", sep, __builtin_ctz(devs));
    st_strbuf_addf(&h->test_text, "],\"results\":[%s]}", st_strbuf_str(&w.rows));
    st_say(h, "tested", "test=%" PRId64 " level=%s passed=%s failed=%d reason=\"%s\"",
           h->test_wanted, st_test_level_name(facts.level), failed ? "false" : "true", failed,
           w.why);
    st_strbuf_done(&w.rows);
}

/* The checker broke, which says nothing of the node. */
static void not_made(st_host *h, const char *why)
{
    static const st_finding checker = {.kind = ST_FAULT_CHECKER, .gpu = -1};
    st_diag_limits limits;

    begin_text(h, st_trial_asked(&h->trial, &limits), h->trial.began_ms, false, why);
    st_finding_json(&checker, &h->test_text);
    st_strbuf_add(&h->test_text, ",\"results\":[]}");
    st_say(h, "not-tested", "test=%" PRId64 " reason=\"%s\"", h->test_wanted, why);
}

/* False: not yet. */
static bool measured(st_host *h, int64_t now)
{
    json_t *said = NULL;
    st_err err = {0};
    int r = st_trial_look(h, &said, &err);

    if (r > 0)
        make(h, now, said);
    else if (r < 0)
        not_made(h, err.msg);
    json_decref(said);
    return r != 0;
}

void st_host_test(st_host *h, int64_t now)
{
    bool unwell = h->fenced || h->ill[0] || h->hangs[0] || h->stuck[0] || h->full[0] || h->unfit[0];
    st_diag_limits limits;

    if (h->test_wanted == 0 || !h->has_list)
        return;
    if (h->test_no == h->test_wanted) {
        if (!h->test_told || now < h->test_ms)
            return;
    } else if (unwell) {
        return; /* that comes first, and is said already */
    } else if (h->inv.n > 0 && st_trial_asked(&h->trial, &limits) > ST_TEST_QUICK) {
        if (!measured(h, now))
            return;
    } else {
        make(h, now, NULL);
    }
    h->test_no = h->test_wanted;
    h->test_told = false;
    h->test_telling = 0;
    h->test_ms = now + AGAIN_MS;
    h->changed = true;
}
