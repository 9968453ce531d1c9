/*
 * GET /v1/series: figures over time, read from the store by threads for lists. The control loop has no part in it.
 *
 * Who asks sees its own subtree: accounts in it, and jobs of those. What a node or a GPU does is what everybody on it does,
 * so it is for who stands at the cluster; others are answered as if there were no such node.
 *
 * A figure is one column of a bucket divided by another (series/series.h). A bucket without the one below the line says
 * nothing: null, never 0.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "control/series.h"
#include "series/series.h"

#define POINTS_AIM 1500
#define POINTS_MAX 3000
#define READ_MAX   20000 /* two years by the hour */
#define DAY_MS     INT64_C(86400000)

#define OF(kind) (1u << ST_SERIES_##kind)
#define OF_ALL   (OF(ACCOUNT) | OF(NODE) | OF(GPU) | OF(JOB))

/* over/under x times is what is said, in thousandths; `under` ST_SERIES_COLUMNS: over alone, as it is. */
static const struct {
    const char *name;
    unsigned kinds;
    st_series_column over, under;
    int64_t times, parts;
} figures[] = {
    {"gpus_held", OF_ALL, ST_SERIES_HELD, ST_SERIES_WATCHED, 1, 1},
    {"gpus_guaranteed", OF(ACCOUNT), ST_SERIES_GUARANTEED, ST_SERIES_WATCHED, 1, 1},
    {"gpus_floor", OF(ACCOUNT), ST_SERIES_FLOOR, ST_SERIES_WATCHED, 1, 1},
    {"gpus_healthy", OF(ACCOUNT), ST_SERIES_CAPACITY, ST_SERIES_WATCHED, 1, 1},
    {"gpus_waiting", OF(ACCOUNT), ST_SERIES_WANTED, ST_SERIES_WATCHED, 1, 1},
    {"jobs_running", OF(ACCOUNT), ST_SERIES_RUNNING, ST_SERIES_WATCHED, 1000, 1},
    {"jobs_waiting", OF(ACCOUNT), ST_SERIES_WAITING, ST_SERIES_WATCHED, 1000, 1},
    {"share", OF(ACCOUNT), ST_SERIES_SHARE, ST_SERIES_WATCHED, 1, 1000},
    {"utilisation", OF_ALL, ST_SERIES_BUSY, ST_SERIES_SEEN, 1000, 1},
    {"gpu_power_watts", OF_ALL, ST_SERIES_ENERGY, ST_SERIES_POWERED, 1000, 1},
    {"gpu_memory_mib", OF_ALL, ST_SERIES_MEMORY, ST_SERIES_FILLED, 1000000, 1},
    {"gpu_celsius", OF_ALL, ST_SERIES_HEAT, ST_SERIES_WARMED, 1000000, 1},
    {"failed", OF(NODE) | OF(GPU), ST_SERIES_AWAY, ST_SERIES_WATCHED, 1000, 1},
    {"month_cost_udollars", OF(ACCOUNT), ST_SERIES_SPENT, ST_SERIES_COLUMNS, 1, 1},
};

/* One question. */
typedef struct ask {
    st_api *api;
    st_call *call;
    st_identity who;
    st_series_kind kind;
    const char *name;
    uint64_t id;
    int64_t from_ms, to_ms, width_ms;
    int tier;            /* of the width */
    st_series_row *rows; /* one for each bucket */
    size_t n;
} ask;

/* ---- whose ---------------------------------------------------------------------------------------- */

static int no_such(const char *what, const char *name, st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_fail(err, ST_ENOENT, "there is no %s %s", what, st_quote(q, name));
}

static int find_account(ask *a, const st_core *core, st_err *err)
{
    const st_tree *tree = st_core_tree(core);
    int32_t root = a->who.account[0] ? st_tree_find(tree, a->who.account) : ST_ROOT;
    int32_t id = a->name ? st_tree_find(tree, a->name) : root;

    if (root < 0 || id < 0 || (a->name && id == ST_ROOT) || !st_tree_within(tree, id, root))
        return no_such("account", a->name ? a->name : a->who.account, err);
    a->id = (uint64_t)id;
    return 0;
}

/* node, or node:GPU. */
static int find_node(ask *a, const st_core *core, st_err *err)
{
    const char *name = a->name ? a->name : "", *colon = strrchr(name, ':');
    size_t n = a->kind == ST_SERIES_GPU && colon ? (size_t)(colon - name) : strlen(name);
    const st_node *node = NULL;
    char only[ST_NAME_MAX + 1];
    int32_t id = -1;

    if (a->who.account[0] == '\0' && n <= ST_NAME_MAX) {
        snprintf(only, sizeof only, "%.*s", (int)n, name);
        id = st_fleet_node(st_core_fleet(core), only);
    }
    if (id < 0)
        return no_such("node", name, err);
    node = st_core_fleet(core)->nodes.v[id];
    a->id = (uint64_t)id;
    if (a->kind == ST_SERIES_NODE)
        return 0;
    if (!colon || strspn(colon + 1, "0123456789") != strlen(colon + 1) || !colon[1] ||
        strlen(colon + 1) > 2 || atoi(colon + 1) >= node->ndevs)
        return st_fail(err, ST_ENOENT, "write a GPU as NODE:NUMBER; %s has %d GPUs, from 0 on",
                       only, node->ndevs);
    a->id = ST_SERIES_GPU_ID(id, atoi(colon + 1));
    return 0;
}

static int find(void *ctx, st_tx *tx, st_err *err)
{
    ask *a = ctx;

    return a->kind == ST_SERIES_ACCOUNT ? find_account(a, st_tx_core(tx), err)
                                        : find_node(a, st_tx_core(tx), err);
}

static int find_any(ask *a, int64_t *ret_position, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const char *name = a->name ? a->name : "";
    st_job_row row;
    int r;

    if (a->kind != ST_SERIES_JOB)
        return st_control_read(a->api->control, ST_READ_SHARED, 0, find, a, ret_position, err);
    r = st_api_see_job(a->api, a->call, name, arena, &a->id, &row, err);
    return r == -ST_ENOENT ? no_such("job", name, err) : r;
}

/* ---- of when -------------------------------------------------------------------------------------- */

static int64_t buckets(int64_t from, int64_t to, int64_t width)
{
    return (to - from + width - 1) / width;
}

/* A step that was asked for is a multiple of a width that is kept. */
static int read_step(ask *a, const char *text, const st_series_options *o, st_err *err)
{
    char one[ST_FMT_MAX], ten[ST_FMT_MAX], sixty[ST_FMT_MAX], q[ST_QUOTE_MAX];
    int64_t step;

    if (st_parse_duration_ms(text, &step, NULL) < 0 || step <= 0 || step % o->step_ms != 0)
        return st_fail(err, ST_EINVAL,
                       "step: %s is no multiple of a width that is kept; there are %s, %s and %s",
                       st_quote(q, text), st_fmt_duration(one, st_series_width(o->step_ms, 0)),
                       st_fmt_duration(ten, st_series_width(o->step_ms, 1)),
                       st_fmt_duration(sixty, st_series_width(o->step_ms, 2)));
    a->width_ms = step;
    for (int tier = 0; tier < ST_SERIES_TIERS; tier++)
        if (step % st_series_width(o->step_ms, tier) == 0)
            a->tier = tier;
    return 0;
}

/* The narrowest that is kept for so long and gives no more points than a chart shows; of the widest, so many together. */
static int choose_width(ask *a, const st_series_options *o, int64_t now, st_err *err)
{
    const char *text = st_call_query(a->call, "step");

    if (text)
        return read_step(a, text, o, err);
    for (a->tier = 0; a->tier < ST_SERIES_TIERS - 1; a->tier++) {
        int64_t w = st_series_width(o->step_ms, a->tier);

        if (buckets(a->from_ms, a->to_ms, w) <= POINTS_AIM &&
            a->from_ms >= now - o->keep_ms[a->tier] - w)
            break;
    }
    a->width_ms = st_series_width(o->step_ms, a->tier);
    a->width_ms *= ST_MAX(buckets(a->from_ms, a->to_ms, a->width_ms * POINTS_AIM), 1);
    return 0;
}

int st_api_series_end(st_store *reader, int64_t width, int64_t *ret, st_err *err)
{
    const st_series_blob cluster = {.width_ms = width,
                                    .kind = ST_SERIES_ACCOUNT,
                                    .part = st_series_part(ST_SERIES_ACCOUNT, ST_ROOT)};
    int64_t first, last;
    int r = st_store_series_span(reader, &cluster, &first, &last, err);

    if (r == 0)
        *ret = last < 0 ? 0 : last + width;
    return r;
}

/* Whole buckets, up to the one that is gathered. */
static int cut(ask *a, st_store *reader, st_err *err)
{
    int64_t end;
    int r = st_api_series_end(
        reader, st_series_width(st_control_series(a->api->control)->step_ms, 0), &end, err);

    if (r < 0)
        return r;
    a->from_ms = st_series_bucket(a->from_ms, a->width_ms);
    a->to_ms = st_series_bucket(ST_MIN(a->to_ms, end) + a->width_ms - 1, a->width_ms);
    a->to_ms = ST_MAX(a->to_ms, a->from_ms);
    return 0;
}

static int read_times(ask *a, st_err *err)
{
    const st_series_options *o = st_control_series(a->api->control);
    int64_t now = a->api->options.clock(a->api->options.ctx), read;
    int r;

    if (o->step_ms == 0)
        return st_fail(err, ST_ENOENT,
                       "stintd keeps no figures over time here: series_step is 0 in its "
                       "configuration");
    r = st_api_query_time(a->api, a->call, "since", &a->from_ms, err);
    if (r == 0)
        r = st_api_query_time(a->api, a->call, "until", &a->to_ms, err);
    if (r < 0)
        return r;
    a->to_ms = a->to_ms == 0 ? now : ST_MIN(a->to_ms, now);
    a->from_ms = a->from_ms == 0 ? ST_MAX(a->to_ms - DAY_MS, 1) : a->from_ms;
    if (a->from_ms > a->to_ms)
        return st_fail(err, ST_EINVAL, "since: must lie before until, and before now");
    r = choose_width(a, o, now, err);
    read = buckets(a->from_ms, a->to_ms, st_series_width(o->step_ms, a->tier));
    if (r == 0 && (buckets(a->from_ms, a->to_ms, a->width_ms) > POINTS_MAX || read > READ_MAX))
        r = st_fail(err, ST_ERANGE,
                    "%" PRId64 " buckets are asked for, made of %" PRId64 " that are kept; at most "
                    "%d and %d are possible: ask for a wider step or a shorter time",
                    buckets(a->from_ms, a->to_ms, a->width_ms), read, POINTS_MAX, READ_MAX);
    return r;
}

/* ---- reading -------------------------------------------------------------------------------------- */

/* What is read of one part. */
typedef struct reading {
    ask *a;
    uint64_t id;
    uint32_t columns; /* bits: those that count */
} reading;

static int take(void *ctx, const st_series_blob *blob, st_err *err)
{
    reading *rd = ctx;
    size_t at = (size_t)((blob->at_ms - rd->a->from_ms) / rd->a->width_ms);
    ST_CLEANUP(st_series_set_done) st_series_set set = {0};
    const st_series_row *row;
    st_series_row some;

    (void)err;
    /* One that is damaged is a gap like any other. */
    if (st_series_decode((st_series_kind)blob->kind, blob->data.p, blob->data.n, &set, NULL) < 0)
        return 0;
    row = st_series_find(&set, rd->id);
    if (!row || at >= rd->a->n)
        return 0;
    some = *row;
    some.has &= rd->columns;
    st_series_add(&rd->a->rows[at], &some);
    return 0;
}

/* What is not in a bucket of this width yet is in narrower ones: the last is as far as it goes. */
static int read_kind(ask *a, st_store *reader, st_series_kind kind, uint64_t id, uint32_t columns,
                     st_err *err)
{
    const int64_t step = st_control_series(a->api->control)->step_ms;
    reading rd = {a, id, columns};
    int64_t from = a->from_ms, end;
    int r = 0;

    for (int tier = a->tier; r == 0 && tier >= 0; tier--) {
        st_series_blob of = {.width_ms = st_series_width(step, tier),
                             .kind = kind,
                             .part = st_series_part(kind, id)};

        r = st_api_series_end(reader, of.width_ms, &end, err);
        end = r == 0 ? ST_MIN(end, a->to_ms) : 0;
        if (end <= from)
            continue;
        r = st_store_series_read(reader, &of, from, end, take, &rd, err);
        from = end;
    }
    return r;
}

static int read_rows(ask *a, st_store *reader, st_err *err)
{
    int r = cut(a, reader, err);

    if (r < 0)
        return r;
    a->n = (size_t)((a->to_ms - a->from_ms) / a->width_ms);
    a->rows = st_xcalloc(a->n + 1, sizeof *a->rows);
    if (a->n > 0)
        r = read_kind(a, reader, a->kind, a->id, UINT32_MAX, err);
    if (r < 0 || a->kind != ST_SERIES_GPU || a->n == 0)
        return r;
    /* Of GPUs there are rows while somebody has them; that nobody had one is known by its node. */
    r = read_kind(a, reader, ST_SERIES_NODE, a->id / ST_SERIES_GPUS,
                  1u << ST_SERIES_WATCHED | 1u << ST_SERIES_AWAY, err);
    for (size_t i = 0; r == 0 && i < a->n; i++)
        if (a->rows[i].has >> ST_SERIES_WATCHED & 1)
            st_series_put(&a->rows[i], ST_SERIES_HELD, 0);
    return r;
}

/* ---- answering ------------------------------------------------------------------------------------ */

/* False: it is not known. */
static bool value_of(const st_series_row *row, size_t f, st_strbuf *out)
{
    st_series_column over = figures[f].over, under = figures[f].under;
    char buf[ST_FMT_MAX];
    st_i128 v;

    if (!(row->has >> over & 1))
        return false;
    if (under == ST_SERIES_COLUMNS) {
        st_strbuf_addf(out, "%" PRId64, row->v[over]);
        return true;
    }
    if (!(row->has >> under & 1) || row->v[under] <= 0)
        return false;
    v = (st_i128)row->v[over] * figures[f].times;
    v = (v + row->v[under] * figures[f].parts / 2) / ((st_i128)row->v[under] * figures[f].parts);
    st_strbuf_add(out, st_fmt_milli(buf, (int64_t)v));
    return true;
}

static void figure_json(const ask *a, size_t f, bool *some, st_strbuf *out)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf list = {0};
    bool known = false;

    for (size_t i = 0; i < a->n; i++) {
        st_strbuf_add(&list, i ? "," : "");
        if (value_of(&a->rows[i], f, &list))
            known = true;
        else
            st_strbuf_add(&list, "null");
    }
    if (!known)
        return;
    st_strbuf_addf(out, "%s\"%s\":[%s]", *some ? "," : "", figures[f].name, st_strbuf_str(&list));
    *some = true;
}

static void answer(const ask *a, st_strbuf *out)
{
    bool some = false;

    st_strbuf_addc(out, '{');
    st_out_text(out, "of", st_series_kind_word(a->kind));
    st_out_text(out, "name", a->name ? a->name : a->who.account);
    st_out_time(out, "since", a->from_ms);
    st_out_time(out, "until", a->to_ms);
    st_out_milli(out, "step_seconds", a->width_ms);
    st_out_raw(out, "figures", "{");
    for (size_t f = 0; f < ST_ARRAY_LEN(figures); f++)
        if (figures[f].kinds >> a->kind & 1)
            figure_json(a, f, &some, out);
    st_strbuf_add(out, "}}");
}

static void list(st_call *call, void *ctx)
{
    st_api *api = ctx;
    const char *of = st_call_query(call, "of");
    ask a = {.api = api,
             .call = call,
             .who = *st_api_who(call),
             .kind = of ? (st_series_kind)st_series_kind_parse(of) : ST_SERIES_ACCOUNT,
             .name = st_call_query(call, "name")};
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    int64_t position = 0;
    st_store *reader = NULL;
    st_err err = {0};
    int r = read_times(&a, &err);

    if (r == 0)
        r = find_any(&a, &position, &err);
    reader = r == 0 ? st_api_reader(api, &err) : NULL;
    if (reader)
        r = read_rows(&a, reader, &err);
    st_api_reader_back(api, reader);
    if (!reader || r < 0) {
        st_call_fail(call, &err);
    } else {
        answer(&a, &out);
        st_call_reply_buf(call, 200, NULL, &out);
    }
    free(a.rows);
}

void st_api_series(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, list);
}
