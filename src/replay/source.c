/*
 * From the store (replay/state.h): where playing can begin, the rows behind it, and the prices.
 */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "replay/state.h"

/* Whatever a reader calls it: this is not what stintd wrote. */
static int damaged(st_err *err, const char *what, int64_t seq)
{
    err->code = ST_ECORRUPT;
    return st_fail_prefix(err, "%s %" PRId64 " of the log: ", what, seq);
}

/* ---- where to begin --------------------------------------------------------------------------- */

typedef struct first_row {
    int64_t seq, at_ms;
} first_row;

static int see_first(void *ctx, const st_log_row *row, st_err *err)
{
    first_row *first = ctx;

    (void)err;
    *first = (first_row){row->seq, row->at_ms};
    return 1;
}

/* The newest that is not too late; without a beginning that was asked for, the oldest. */
static int find_start(st_rerun_lab *lab, const first_row *first, st_err *err)
{
    int64_t from = lab->options->from_ms, upto = INT64_MAX, oldest_ms = ST_UNSET;
    bool whole = first->seq == 1;
    int r = 0;

    lab->snap = (st_snap_row){0};
    lab->first_ms = whole ? first->at_ms : ST_UNSET;
    if (whole && from == ST_UNSET)
        return 0;
    for (;;) {
        ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
        st_snap_row snap;

        r = st_store_snap_get(lab->store, upto, arena, &snap, err);
        if (r == -ST_ENOENT)
            break;
        if (r < 0)
            return r;
        oldest_ms = snap.at_ms;
        if (from == ST_UNSET || snap.at_ms <= from) {
            lab->snap = snap;
            void *copy = st_arena_alloc(lab->arena, ST_MAX(snap.data.n, 1));

            lab->snap.data.p = memcpy(copy, snap.data.p, snap.data.n);
            lab->snap.version = st_arena_strdup(lab->arena, snap.version);
            lab->first_ms = snap.at_ms;
        }
        if (from != ST_UNSET && snap.at_ms <= from)
            return 0;
        upto = snap.seq - 1;
    }
    if (lab->snap.seq > 0 || whole)
        return 0;
    if (oldest_ms != ST_UNSET)
        return st_fail(err, ST_ERANGE,
                       "the log begins later than --from: ask for a later beginning, or keep the "
                       "log for longer (retention.log)");
    return st_fail(err, ST_ENOENT, "%s has no log to play: its stintd has decided nothing yet",
                   lab->options->path);
}

int st_rerun_open(st_rerun_lab *lab, st_err *err)
{
    /* Where nobody writes it nothing needs to be made beside it either. */
    lab->still = lab->options->backup || !st_store_is_written(lab->options->path);
    const st_store_options o = {.read_only = true, .still = lab->still};
    first_row first = {0};
    int r = st_store_open(lab->options->path, &o, &lab->store, err);

    if (r == 0) /* one moment for everything, although its stintd goes on */
        r = st_store_begin(lab->store, err);
    if (r == 0)
        r = st_store_log_read(lab->store, 1, see_first, &first, err);
    return r < 0 ? r : find_start(lab, &first, err);
}

int st_rerun_close(st_rerun_lab *lab, int r, st_err *err)
{
    if (lab->store && lab->still && st_store_is_written(lab->options->path))
        return st_fail(err, ST_ESTATE, "a stintd has begun to write %s meanwhile; try again",
                       lab->options->path);
    return r;
}

int st_rerun_load(st_rerun_lab *lab, st_rerun_side *side, st_err *err)
{
    const st_policy policy = st_policy_default();
    st_snapshot s;
    int r;

    if (lab->snap.seq == 0) { /* the first row has the policy */
        side->core = st_core_new(&policy);
        return 0;
    }
    r = st_snapshot_open(lab->snap.data.p, lab->snap.data.n, &s, err);
    if (r == 0)
        r = st_core_load(s.data[ST_SNAP_CORE], s.len[ST_SNAP_CORE], &side->core, err);
    if (r == 0 && s.money && s.len[ST_SNAP_METER] > 0)
        r = st_meter_load(s.data[ST_SNAP_METER], s.len[ST_SNAP_METER], &side->meter, err);
    if (r < 0)
        return damaged(err, "the snapshot behind row", lab->snap.seq);
    side->now = st_core_now(side->core);
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------- */

typedef struct reading {
    st_rerun_lab *lab;
    st_rerun_row_fn fn;
} reading;

static int decode(st_rerun_lab *lab, const st_log_row *row, st_err *err)
{
    st_rerun_row *ret = &lab->row;
    size_t at = 0;
    int r = 0;

    st_arena_reset(lab->scratch);
    st_vec_clear(&ret->events);
    st_vec_clear(&ret->notes);
    ret->seq = row->seq;
    ret->at_ms = row->at_ms;
    ret->hash = row->hash;
    ret->version = st_arena_strdup(lab->scratch, row->version);
    while (r == 0 && at < row->data.n && !st_notes_here(row->data.p, row->data.n, at)) {
        st_event ev;

        r = st_event_decode(row->data.p, row->data.n, &at, lab->scratch, &ev, err);
        if (r == 0)
            st_vec_push(&ret->events, ev);
    }
    if (r == 0 && at < row->data.n)
        r = st_notes_read(row->data.p, row->data.n, at, &ret->notes, err);
    return r < 0 ? damaged(err, "row", row->seq) : 0;
}

static int on_row(void *ctx, const st_log_row *row, st_err *err)
{
    reading *rd = ctx;
    st_rerun_lab *lab = rd->lab;
    int r;

    if (lab->options->to_ms != ST_UNSET && row->at_ms > lab->options->to_ms)
        return 1;
    r = decode(lab, row, err);
    return r < 0 ? r : rd->fn(lab, err);
}

int st_rerun_rows(st_rerun_lab *lab, st_rerun_row_fn fn, st_err *err)
{
    reading rd = {lab, fn};
    int r = st_store_log_read(lab->store, lab->snap.seq + 1, on_row, &rd, err);

    return r < 0 ? r : 0;
}

/* ---- prices and terms ---------------------------------------------------------------------------- */

static int on_entry(void *ctx, const st_book_row *row, st_err *err)
{
    st_rerun_lab *lab = ctx;
    st_price_book *book;
    st_entry e;
    int r;

    /* Usage is most of a book and is not wanted: a look is cheaper than reading it. */
    if (!strstr(row->data, "\"prices\"") && !strstr(row->data, "\"terms\""))
        return 0;
    st_arena_reset(lab->scratch);
    r = st_entry_read(row->data, strlen(row->data), lab->scratch, &e, err);
    if (r == 0 && e.kind == ST_ENTRY_PRICES) {
        book = st_arena_alloc(lab->arena, sizeof *book);
        r = st_price_book_read("the price book", e.doc, strlen(e.doc), e.at_ms, book, err);
        if (r == 0)
            st_vec_push(&lab->books, book);
    } else if (r == 0 && e.kind == ST_ENTRY_TERMS) {
        st_rerun_terms t = {.account = st_rerun_name(lab, e.account),
                            .terms = {.from_ms = e.from_ms,
                                      .chargeback = e.chargeback == 1,
                                      .discount_bp = e.discount_bp}};

        st_vec_push(&lab->terms, t);
    }
    return r < 0 ? st_fail_prefix(err, "entry %" PRId64 " of the books: ", row->n) : 0;
}

int st_rerun_books(st_rerun_lab *lab, st_err *err)
{
    int r = st_store_book_read(lab->store, 1, INT64_MAX, on_entry, lab, err);

    return r < 0 ? r : 0;
}
