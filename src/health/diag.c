/* The diagnosis of a node: what its GPUs say of themselves and what was measured on them, against limits. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "health/health.h"

static const struct {
    const char *word, *unit;
    bool of_node;
    st_test_level level;
    st_diag_kind kind;
} rows[] = {
#define X(id, word, node, level, kind, unit, about) \
    [id] = {word, unit, node, ST_TEST_##level, ST_DIAG_##kind},
    ST_DIAG_TABLE(X)
#undef X
};

static const struct {
    const char *name;
    int64_t seconds;
} levels[] = {
#define X(id, name, seconds, about) [id] = {name, seconds},
    ST_TEST_LEVEL_TABLE(X)
#undef X
};

const char *st_test_level_name(st_test_level level)
{
    ST_ASSERT(level < ST_TEST_LEVEL_COUNT);
    return levels[level].name;
}

int64_t st_test_level_ms(st_test_level level)
{
    ST_ASSERT(level < ST_TEST_LEVEL_COUNT);
    return levels[level].seconds * 1000;
}

int st_test_level_parse(const char *name)
{
    for (int l = 0; name && l < ST_TEST_LEVEL_COUNT; l++)
        if (strcmp(levels[l].name, name) == 0)
            return l;
    return -1;
}

const char *st_diag_name(st_diag diag)
{
    ST_ASSERT(diag < ST_DIAG_COUNT);
    return rows[diag].word;
}

const char *st_diag_unit(st_diag diag)
{
    ST_ASSERT(diag < ST_DIAG_COUNT);
    return rows[diag].unit;
}

int st_diag_parse(const char *name)
{
    for (int d = 0; name && d < ST_DIAG_COUNT; d++)
        if (strcmp(rows[d].word, name) == 0)
            return d;
    return -1;
}

const char *st_diag_verdict_name(st_diag_verdict verdict)
{
    static const char *const words[] = {"skip", "pass", "fail"};

    ST_ASSERT(verdict < ST_ARRAY_LEN(words));
    return words[verdict];
}

void st_diag_unmeasured(int64_t measured[ST_DIAG_COUNT])
{
    for (int d = 0; d < ST_DIAG_COUNT; d++)
        measured[d] = ST_DIAG_UNKNOWN;
}

/* ---- what a value is compared with ------------------------------------------------------ */

/* Of all GPUs of the node the one with most links says how many there should be. */
static int64_t links_of(const st_diag_facts *facts)
{
    int64_t most = ST_DIAG_UNKNOWN;

    for (int d = 0; d < facts->n; d++)
        if (facts->gpu[d].answers)
            most = ST_MAX(most, facts->gpu[d].links);
    return most;
}

static int by_value(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

    return a < b ? -1 : a > b;
}

static bool same_type(const st_diag_gpu *a, const st_diag_gpu *b)
{
    return strcmp(a->type ? a->type : "", b->type ? b->type : "") == 0;
}

/* One of its speeds in percent of the middle one of its type, of two the faster; unknown without another GPU. */
static int64_t beside(const st_diag_facts *facts, int gpu, st_diag diag)
{
    int64_t all[ST_DEVS_MAX], own = facts->gpu[gpu].measured[diag];
    size_t n = 0;

    for (int d = 0; d < facts->n && n < ST_DEVS_MAX; d++)
        if (facts->gpu[d].measured[diag] > 0 && same_type(&facts->gpu[d], &facts->gpu[gpu]))
            all[n++] = facts->gpu[d].measured[diag];
    if (own < 0 || n < 2)
        return ST_DIAG_UNKNOWN;
    qsort(all, n, sizeof *all, by_value);
    return own * 100 / all[n / 2];
}

static int64_t siblings(const st_diag_facts *facts, int gpu)
{
    int64_t least = ST_DIAG_UNKNOWN;

    for (int k = 0; k < ST_DIAG_COUNT; k++) {
        bool speed = rows[k].kind == ST_DIAG_FLOOR && !rows[k].of_node && k != ST_DIAG_SIBLINGS &&
                     k != ST_DIAG_PATTERN_SHARE;
        int64_t part = speed ? beside(facts, gpu, (st_diag)k) : ST_DIAG_UNKNOWN;

        if (part != ST_DIAG_UNKNOWN && (least == ST_DIAG_UNKNOWN || part < least))
            least = part;
    }
    return least;
}

static bool eight_linked(const st_diag_facts *facts)
{
    bool linked = facts->n == 8;

    for (int d = 0; d < facts->n; d++)
        linked = linked && facts->gpu[d].links > 0;
    return linked;
}

/* 0: it is kept and not judged. What is published of links and libraries holds for nothing else. */
static int64_t limit_of(const st_diag_facts *facts, const st_diag_limits *l, st_diag diag, int d)
{
    switch (diag) {
    case ST_DIAG_PCIE_IN:
        return l->pcie_in;
    case ST_DIAG_PCIE_OUT:
        return l->pcie_out;
    case ST_DIAG_MEMORY_SPEED:
        return l->memory_speed;
    case ST_DIAG_PATTERN_SHARE:
        return l->pattern_share;
    case ST_DIAG_PEER:
        return facts->gpu[d].links > 0 ? l->peer : 0;
    case ST_DIAG_ALL_REDUCE:
        return facts->nccl && eight_linked(facts) ? l->all_reduce : 1; /* it came to an end */
    case ST_DIAG_PRODUCT_SPEED:
        return facts->blas ? l->product_speed : 0;
    case ST_DIAG_TEMPERATURE:
        return l->temperature;
    case ST_DIAG_SIBLINGS:
        return l->siblings;
    default:
        return 0;
    }
}

/* ---- verdicts --------------------------------------------------------------------------- */

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
    case ST_DIAG_WORKS:
        return below(diag, g->measured[diag], 1);
    default:
        break;
    }
    int64_t value = diag == ST_DIAG_SIBLINGS ? siblings(facts, d)
                    : g                      ? g->measured[diag]
                                             : facts->measured[diag];
    row = rows[diag].kind == ST_DIAG_CEILING ? above(diag, value, limit_of(facts, limits, diag, d))
                                             : below(diag, value, limit_of(facts, limits, diag, d));
    return row;
}

int st_diag_judge(const st_diag_facts *facts, const st_diag_limits *limits,
                  const st_xid_rules *rules, st_diag_fn *fn, void *ctx)
{
    int failed = 0;

    for (int d = -1; d < facts->n; d++) {
        for (int k = 0; k < ST_DIAG_COUNT; k++) {
            if (rows[k].of_node != (d < 0) || rows[k].level > facts->level)
                continue;
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
    static const char *const wrong[ST_DIAG_COUNT] = {
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
        [ST_DIAG_WORKS] = "it failed while it was tested",
        [ST_DIAG_PCIE_IN] = "copies from host memory are slow",
        [ST_DIAG_PCIE_OUT] = "copies to host memory are slow",
        [ST_DIAG_MEMORY_SPEED] = "its memory is slow",
        [ST_DIAG_PATTERN_SHARE] = "too little of its memory could be tested",
        [ST_DIAG_PATTERN] = "its memory does not keep what is written",
        [ST_DIAG_PEER] = "copies to other GPUs are slow",
        [ST_DIAG_ALL_REDUCE] = "sums over its GPUs are slow",
        [ST_DIAG_SUMS] = "sums over its GPUs are wrong",
        [ST_DIAG_PRODUCT_SPEED] = "matrix products are slow",
        [ST_DIAG_PRODUCT] = "the same matrix product differs",
        [ST_DIAG_TEMPERATURE] = "it became too hot",
        [ST_DIAG_SIBLINGS] = "it is slower than its siblings",
        [ST_DIAG_DCGM] = "dcgmi diag found faults",
    };
    int n = row->gpu >= 0 ? snprintf(ret, ST_DIAG_TEXT, "GPU %d: ", row->gpu) : 0;
    const char *unit = rows[row->diag].unit;

    snprintf(ret + n, (size_t)(ST_DIAG_TEXT - n), "%s (%" PRId64 "%s%s, limit %" PRId64 ")",
             wrong[row->diag] ? wrong[row->diag] : "it is out of bounds", row->value,
             unit[0] ? " " : "", unit, row->limit);
}
