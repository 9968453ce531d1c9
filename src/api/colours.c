/*
 * What the cells of the map (devices.c) can be coloured by, two characters for each: whose jobs are there, and what GPUs
 * did in the last bucket of figures over time that is over.
 *
 * Accounts are those of the caller's subtree; a device of others looks as if nobody had it. What a device did says what
 * everybody on it did, so it is for who stands at the cluster. What is not known is "--", never 0.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "base/mem.h"
#include "base/quote.h"
#include "control/series.h"
#include "series/series.h"

/* ---- whose -------------------------------------------------------------------------------------- */

#define DIGITS  64
#define SEVERAL 1 /* 0: nobody, or somebody else; from FIRST on: accounts as they are listed */
#define FIRST   2
#define MOST    (DIGITS * DIGITS - FIRST)

static const char digits[DIGITS + 1] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

typedef struct legend {
    int *number; /* by account; 0: not listed yet */
    int n;
    ST_VEC(int32_t) accounts;
} legend;

/* With more accounts than there are numbers for, the last ones are told as several. */
static int number_of(legend *l, int32_t account)
{
    if (l->number[account] == 0) {
        if (l->n == MOST)
            return SEVERAL;
        l->number[account] = FIRST + l->n++;
        st_vec_push(&l->accounts, account);
    }
    return l->number[account];
}

static void accounts_of(const st_tree *tree, const st_node *n, int32_t root, legend *l,
                        st_strbuf *out)
{
    int whose[ST_DEVS_MAX] = {0};

    for (size_t i = 0; i < n->residents.n; i++) {
        const st_job *job = n->residents.v[i].job;
        unsigned devs;
        int k;

        if (!st_job_on_devices(job) || !st_tree_within(tree, job->account, root))
            continue;
        devs = job->grants[n->residents.v[i].task].devs;
        k = number_of(l, job->account);
        for (int d = 0; d < n->ndevs; d++)
            if (devs >> d & 1)
                whose[d] = whose[d] == 0 || whose[d] == k ? k : SEVERAL;
    }
    for (int d = 0; d < n->ndevs; d++) {
        st_strbuf_addc(out, digits[whose[d] / DIGITS]);
        st_strbuf_addc(out, digits[whose[d] % DIGITS]);
    }
}

static int fill_accounts(st_question *q, st_core *core, st_err *err)
{
    const st_tree *tree = st_core_tree(core);
    const st_fleet *fleet = st_core_fleet(core);
    int32_t root = st_question_root(q, core);
    ST_CLEANUP(st_strbuf_done) st_strbuf cells = {0};
    legend l = {.number = st_xcalloc(tree->accounts.n, sizeof *l.number)};

    (void)err;
    for (size_t i = 0; i < fleet->nodes.n; i++)
        if (fleet->nodes.v[i]->state != ST_NODE_REMOVED)
            accounts_of(tree, fleet->nodes.v[i], root, &l, &cells);
    st_strbuf_addc(&q->out, '{');
    st_out_raw(&q->out, "accounts", "[");
    for (size_t i = 0; i < l.accounts.n; i++) {
        st_strbuf_add(&q->out, i > 0 ? "," : "");
        st_quote_json(&q->out, st_tree_account(tree, l.accounts.v[i])->name);
    }
    st_strbuf_addc(&q->out, ']');
    st_out_text(&q->out, "devices", st_strbuf_str(&cells));
    st_strbuf_addc(&q->out, '}');
    st_vec_free(&l.accounts);
    free(l.number);
    return 0;
}

void st_api_devices_accounts(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_accounts, NULL, 0);
}

/* ---- what they did -------------------------------------------------------------------------------- */

/* over/under x times, in units; of the memory, hundredths of what the GPU has. */
static const struct {
    const char *name, *unit;
    st_series_column over, under;
    int64_t times, most; /* most 0: that of the GPU that has most */
} figures[] = {
    {"utilisation", "%", ST_SERIES_BUSY, ST_SERIES_SEEN, 100, 100},
    {"memory", "%", ST_SERIES_MEMORY, ST_SERIES_FILLED, 100 * 1000, 100},
    {"power", "W", ST_SERIES_ENERGY, ST_SERIES_POWERED, 1, 0},
    {"temperature", "C", ST_SERIES_HEAT, ST_SERIES_WARMED, 1000, 100},
};

typedef struct spot {
    uint64_t id; /* of its node's first GPU */
    int ndevs;
    int64_t vram_mib;
} spot;

typedef struct use {
    size_t figure;
    ST_VEC(spot) spots; /* as the map has them */
    st_series_set set;
    int64_t most;
} use;

static int spots(void *ctx, st_tx *tx, st_err *err)
{
    use *u = ctx;
    const st_fleet *fleet = st_core_fleet(st_tx_core(tx));

    (void)err;
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        const st_node *n = fleet->nodes.v[i];

        if (n->state == ST_NODE_REMOVED)
            continue;
        st_vec_push(&u->spots, (spot){ST_SERIES_GPU_ID(n->id, 0), n->ndevs,
                                      n->type >= 0 ? fleet->types.v[n->type].vram_mib : 0});
    }
    return 0;
}

static int keep(void *ctx, const st_series_blob *blob, st_err *err)
{
    ST_CLEANUP(st_series_set_done) st_series_set set = {0};

    (void)err;
    if (st_series_decode((st_series_kind)blob->kind, blob->data.p, blob->data.n, &set, NULL) == 0)
        st_series_merge(&((use *)ctx)->set, &set);
    return 0;
}

static int read_bucket(use *u, st_store *reader, int64_t at, int64_t width, st_err *err)
{
    int64_t part, last = -1;
    int r = 0;

    for (size_t i = 0; r == 0 && i < u->spots.n; i++) {
        part = st_series_part(ST_SERIES_GPU, u->spots.v[i].id);
        if (part == last)
            continue;
        last = part;
        r = st_store_series_read(
            reader, &(st_series_blob){.width_ms = width, .kind = ST_SERIES_GPU, .part = part}, at,
            at + width, keep, u, err);
    }
    return r;
}

/* -1: not known. */
static int64_t value_of(const use *u, const spot *s, int d)
{
    const st_series_row *row = st_series_find(&u->set, s->id + (uint64_t)d);
    st_series_column over = figures[u->figure].over, under = figures[u->figure].under;
    int64_t v;

    if (!row || !(row->has >> over & 1) || !(row->has >> under & 1) || row->v[under] <= 0)
        return -1;
    if (over != ST_SERIES_MEMORY)
        return row->v[over] * figures[u->figure].times / row->v[under];
    v = row->v[over] * 1000 / row->v[under]; /* MiB */
    return s->vram_mib > 0 ? v * 100 / s->vram_mib : -1;
}

static void values(use *u, st_strbuf *out)
{
    int64_t most = figures[u->figure].most;

    for (size_t i = 0; most == 0 && i < u->spots.n; i++)
        for (int d = 0; d < u->spots.v[i].ndevs; d++)
            u->most = ST_MAX(u->most, value_of(u, &u->spots.v[i], d));
    u->most = most ? most : u->most;
    for (size_t i = 0; i < u->spots.n; i++)
        for (int d = 0; d < u->spots.v[i].ndevs; d++) {
            int64_t v = value_of(u, &u->spots.v[i], d);

            if (v < 0)
                st_strbuf_add(out, "--");
            else
                st_strbuf_addf(out, "%02" PRIx64,
                               (uint64_t)ST_MIN(v * 100 / ST_MAX(u->most, 1), 100));
        }
}

static int find_figure(const char *name, size_t *ret, st_err *err)
{
    char q[ST_QUOTE_MAX];

    for (size_t i = 0; i < ST_ARRAY_LEN(figures); i++)
        if (!name || strcmp(figures[i].name, name) == 0) {
            *ret = i;
            return 0;
        }
    return st_fail(err, ST_EINVAL, "figure: %s is none of utilisation, memory, power, temperature",
                   st_quote(q, name));
}

static int look(st_api *api, st_call *call, use *u, st_strbuf *out, st_err *err)
{
    const int64_t width = st_series_width(st_control_series(api->control)->step_ms, 0);
    ST_CLEANUP(st_strbuf_done) st_strbuf cells = {0};
    int64_t position, end = 0;
    st_store *reader;
    int r = find_figure(st_call_query(call, "figure"), &u->figure, err);

    if (r == 0 && width == 0)
        r = st_fail(err, ST_ENOENT,
                    "stintd keeps no figures over time here: series_step is 0 in its "
                    "configuration");
    if (r == 0)
        r = st_control_read(api->control, ST_READ_SHARED, 0, spots, u, &position, err);
    if (r < 0)
        return r;
    reader = st_api_reader(api, err);
    if (!reader)
        return -ST_EDOWN;
    r = st_api_series_end(reader, width, &end, err);
    if (r == 0 && end > 0)
        r = read_bucket(u, reader, end - width, width, err);
    st_api_reader_back(api, reader);
    if (r < 0)
        return r;
    values(u, &cells);
    st_strbuf_addc(out, '{');
    st_out_text(out, "figure", figures[u->figure].name);
    st_out_text(out, "unit", figures[u->figure].unit);
    st_out_int(out, "most", u->most);
    if (end > 0) {
        st_out_time(out, "since", end - width);
        st_out_time(out, "until", end);
    } else {
        st_out_raw(out, "since", "null");
        st_out_raw(out, "until", "null");
    }
    st_out_text(out, "devices", st_strbuf_str(&cells));
    st_strbuf_addc(out, '}');
    return 0;
}

static void answer(st_call *call, void *ctx)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    use u = {0};
    st_err err = {0};

    if (look(ctx, call, &u, &out, &err) < 0)
        st_call_fail(call, &err);
    else
        st_call_reply_buf(call, 200, NULL, &out);
    st_vec_free(&u.spots);
    st_series_set_done(&u.set);
}

void st_api_devices_use(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, answer);
}
