/* The quick diagnosis: what a GPU says of itself, against limits. Nothing runs on the GPU for it, so it may be made beside
 * jobs. */
#include <inttypes.h>
#include <stdio.h>

#include "base/macros.h"
#include "health/health.h"

static const char *const names[] = {
#define X(id, word, about) [id] = word,
    ST_DIAG_TABLE(X)
#undef X
};

const char *st_diag_name(st_diag diag)
{
    ST_ASSERT(diag < ST_DIAG_COUNT);
    return names[diag];
}

const char *st_diag_verdict_name(st_diag_verdict verdict)
{
    static const char *const words[] = {"skip", "pass", "fail"};

    ST_ASSERT(verdict < ST_ARRAY_LEN(words));
    return words[verdict];
}

st_diag_limits st_diag_limits_default(void)
{
    return (st_diag_limits){
#define X(field, word, def, about) .field = def,
        ST_LIMIT_TABLE(X)
#undef X
    };
}

/* Of all GPUs of the node the one with most links says how many there should be. */
static int64_t links_of(const st_diag_facts *facts)
{
    int64_t most = ST_DIAG_UNKNOWN;

    for (int d = 0; d < facts->n; d++)
        if (facts->gpu[d].answers)
            most = ST_MAX(most, facts->gpu[d].links);
    return most;
}

static st_diag_row above(st_diag diag, int64_t value, int64_t limit)
{
    return (st_diag_row){.diag = diag,
                         .verdict = value == ST_DIAG_UNKNOWN ? ST_VERDICT_SKIP
                                    : value > limit          ? ST_VERDICT_FAIL
                                                             : ST_VERDICT_PASS,
                         .value = value,
                         .limit = limit};
}

static st_diag_row below(st_diag diag, int64_t value, int64_t limit)
{
    st_diag_row row = above(diag, value, limit);

    if (value == ST_DIAG_UNKNOWN || limit == ST_DIAG_UNKNOWN)
        row.verdict = ST_VERDICT_SKIP;
    else
        row.verdict = value < limit ? ST_VERDICT_FAIL : ST_VERDICT_PASS;
    return row;
}

static st_diag_row look(const st_diag_facts *facts, const st_diag_limits *limits,
                        const st_xid_rules *rules, st_diag diag, int d)
{
    const st_diag_gpu *g = d >= 0 ? &facts->gpu[d] : NULL;
    st_diag_row row;

    switch (diag) {
    case ST_DIAG_INVENTORY:
        return below(diag, facts->driver ? facts->n : ST_DIAG_UNKNOWN, facts->joined);
    case ST_DIAG_DRIVER:
        return below(diag, facts->driver, facts->joined > 0);
    case ST_DIAG_ANSWERS:
        return below(diag, g->answers, 1);
    case ST_DIAG_XID:
        row = above(diag, g->xid, 0);
        if (row.verdict == ST_VERDICT_FAIL && !st_xid_fatal(st_xid_of(rules, g->xid)))
            row.verdict = ST_VERDICT_PASS;
        return row;
    case ST_DIAG_RECOVERY:
        return above(diag, g->recovery, 0);
    case ST_DIAG_ECC:
        return above(diag, g->ecc_uncorrected, limits->ecc_uncorrected);
    case ST_DIAG_REMAP_PENDING:
        return above(diag, g->remap_pending, 0);
    case ST_DIAG_REMAP_FAILED:
        return above(diag, g->remap_failed, 0);
    case ST_DIAG_PCIE_WIDTH:
        return below(diag, g->pcie_width, g->pcie_width_max);
    case ST_DIAG_PCIE_REPLAY:
        return above(diag, g->pcie_replays, limits->pcie_replays);
    case ST_DIAG_NVLINK:
        return below(diag, g->links, links_of(facts));
    case ST_DIAG_THROTTLE:
        return above(diag,
                     g->throttle == ST_DIAG_UNKNOWN ? g->throttle : g->throttle & ~limits->throttle,
                     0);
    case ST_DIAG_COUNT:
        break;
    }
    return (st_diag_row){.diag = diag};
}

int st_diag_quick(const st_diag_facts *facts, const st_diag_limits *limits,
                  const st_xid_rules *rules, st_diag_fn *fn, void *ctx)
{
    int failed = 0;

    for (int d = -1; d < facts->n; d++) {
        int first = d < 0 ? 0 : ST_DIAG_OF_NODE, end = d < 0 ? ST_DIAG_OF_NODE : ST_DIAG_COUNT;

        for (int k = first; k < end; k++) {
            st_diag_row row = look(facts, limits, rules, (st_diag)k, d);

            if (d >= 0 && !facts->gpu[d].answers && k != ST_DIAG_ANSWERS)
                row = (st_diag_row){.diag = (st_diag)k}; /* what it said before is not known now */
            row.gpu = d;
            failed += row.verdict == ST_VERDICT_FAIL;
            fn(ctx, &row);
        }
    }
    return failed;
}

void st_diag_say(const st_diag_row *row, char ret[ST_DIAG_TEXT])
{
    static const char *const wrong[] = {
        [ST_DIAG_INVENTORY] = "GPUs are missing",
        [ST_DIAG_DRIVER] = "the GPU driver does not answer",
        [ST_DIAG_ANSWERS] = "it does not answer",
        [ST_DIAG_XID] = "an XID took it out of service",
        [ST_DIAG_RECOVERY] = "the driver asks for a recovery action",
        [ST_DIAG_ECC] = "uncorrected memory errors",
        [ST_DIAG_REMAP_PENDING] = "a row of memory waits to be replaced",
        [ST_DIAG_REMAP_FAILED] = "a row of memory could not be replaced",
        [ST_DIAG_PCIE_WIDTH] = "PCIe lanes are missing",
        [ST_DIAG_PCIE_REPLAY] = "PCIe had to send too much again",
        [ST_DIAG_NVLINK] = "NVLinks are down",
        [ST_DIAG_THROTTLE] = "clocks are held down",
    };
    int n = row->gpu >= 0 ? snprintf(ret, ST_DIAG_TEXT, "GPU %d: ", row->gpu) : 0;

    snprintf(ret + n, (size_t)(ST_DIAG_TEXT - n), "%s (%" PRId64 ", limit %" PRId64 ")",
             wrong[row->diag], row->value, row->limit);
}
