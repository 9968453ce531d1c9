/*
 * Playing a log twice (replay/replay.h): as it was, then with the changes.
 */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "replay/state.h"

#define SAMPLES       500
#define SAMPLE_MIN_MS 1000

static void tell(const st_rerun_lab *lab, int64_t at_ms, int side)
{
    const st_rerun_options *o = lab->options;
    int64_t first = lab->first_ms, last = lab->end_ms > first ? lab->end_ms : at_ms;
    int part = last > first ? (int)((double)(at_ms - first) / (double)(last - first) * 500) : 0;

    if (o->progress && side == ST_WOULD)
        o->progress(o->ctx, 500 + part);
    else if (o->progress)
        o->progress(o->ctx, 0);
}

/* ---- as it was -------------------------------------------------------------------------------------- */

/* What the log alone tells of jobs: before the event is applied. */
static void learn(st_rerun_lab *lab, const st_event *ev, int64_t now)
{
    st_rerun_side *side = &lab->side[ST_WAS];
    uint64_t id = ev->kind == ST_EV_FINISH ? ev->u.finish.id : ev->u.id;
    st_rerun_job *job;
    const st_job *j;

    if (ev->kind == ST_EV_SUBMIT) {
        st_rerun_add(lab, &ev->u.job, now);
        return;
    }
    if (ev->kind != ST_EV_FINISH && ev->kind != ST_EV_CHECKPOINTED)
        return;
    job = st_rerun_find(lab, id);
    j = st_core_job(side->core, id);
    if (!job || !j)
        return;
    if (ev->kind == ST_EV_FINISH) {
        job->need_ms = st_job_ran_ms(j, now);
        job->failed = ev->u.finish.failed;
    } else if (job->asked_ms != ST_UNSET) {
        job->save_ms = now - job->asked_ms;
        job->asked_ms = ST_UNSET;
        st_vec_push(&lab->saves, job->save_ms);
    }
}

static bool has_submit(const st_rerun_row *row)
{
    for (size_t i = 0; i < row->events.n; i++)
        if (row->events.v[i].kind == ST_EV_SUBMIT)
            return true;
    return false;
}

/* The first row that is counted, and from which moment on. */
static void maybe_begin(st_rerun_lab *lab)
{
    st_rerun_side *side = &lab->side[ST_WAS];
    const st_rerun_options *o = lab->options;
    const st_rerun_row *row = &lab->row;
    int64_t from = o->from_ms != ST_UNSET ? o->from_ms : lab->snap.seq > 0 ? side->now : row->at_ms;

    if (side->counting || row->at_ms < from)
        return;
    if (o->from_ms == ST_UNSET && lab->snap.seq == 0 && !has_submit(row))
        return;
    lab->begin_seq = row->seq;
    lab->from_ms = ST_MAX(from, side->now);
    lab->begin_hash = st_core_hash(side->core);
    st_rerun_count_from(side, lab->from_ms);
}

static int check_hash(st_rerun_lab *lab, st_err *err)
{
    const st_rerun_row *row = &lab->row;

    if (lab->parted || st_core_hash(lab->side[ST_WAS].core) == row->hash)
        return 0;
    if (strcmp(row->version, ST_LOG_VERSION) == 0)
        return st_fail(err, ST_ECORRUPT,
                       "row %" PRId64 " of the log does not lead to the state it led to when it "
                       "was written; take a backup that is whole",
                       row->seq);
    lab->parted = row->seq;
    lab->written_by = st_arena_strdup(lab->arena, row->version);
    return 0;
}

static int was_row(st_rerun_lab *lab, st_err *err)
{
    st_rerun_side *side = &lab->side[ST_WAS];
    st_rerun_row *row = &lab->row;

    if (row->at_ms < side->now)
        return st_fail(err, ST_ECORRUPT, "row %" PRId64 " of the log is older than the one before",
                       row->seq);
    maybe_begin(lab);
    tell(lab, row->at_ms, ST_WAS);
    st_rerun_advance(side, row->at_ms);
    for (size_t i = 0; i < row->events.n; i++) {
        const st_event *ev = &row->events.v[i];
        st_err why = {0};

        learn(lab, ev, row->at_ms);
        if (st_core_apply(side->core, ev, row->at_ms, &side->fx, &why) < 0 && !lab->parted)
            return st_fail(err, ST_ECORRUPT, "row %" PRId64 " of the log: %s is refused now: %s",
                           row->seq, st_event_name(ev->kind), why.msg);
    }
    if (st_notes_pass(&row->notes, row->events.n > 0))
        st_core_settle(side->core, row->at_ms, &side->fx);
    st_rerun_follow(side, &row->notes, row->at_ms);
    lab->rows += side->counting;
    lab->last_seq = row->seq;
    return check_hash(lab, err);
}

/* ---- as it would have been ----------------------------------------------------------------------------- */

static int begin_changes(st_rerun_lab *lab, st_err *err)
{
    st_rerun_side *side = &lab->side[ST_WOULD];
    int r;

    st_rerun_count_from(side, lab->from_ms);
    r = st_rerun_change(side, err);
    if (r == 0 && (lab->options->react || st_core_hash(side->core) != lab->begin_hash))
        st_rerun_react(side);
    return r;
}

/* As it is written. Whatever differs, the jobs were as they were until now. */
static void play_same(st_rerun_side *side)
{
    st_rerun_row *row = &side->lab->row;

    st_rerun_advance(side, row->at_ms);
    for (size_t i = 0; i < row->events.n; i++) {
        const char *why = NULL;
        st_event ev;
        bool there = st_rerun_translate(side, &row->events.v[i], &ev, &why);

        if (there && st_core_apply(side->core, &ev, row->at_ms, &side->fx, NULL) == 0)
            continue;
        st_rerun_job *job = ev.kind == ST_EV_SUBMIT ? st_rerun_find(side->lab, ev.u.job.id) : NULL;
        if (job && (there || why))
            job->fate[side->which].refused = true;
    }
    if (st_notes_pass(&row->notes, row->events.n > 0))
        st_core_settle(side->core, row->at_ms, &side->fx);
    st_rerun_translate_notes(side, &row->notes);
    st_rerun_follow(side, &row->notes, row->at_ms);
}

static int would_row(st_rerun_lab *lab, st_err *err)
{
    st_rerun_side *side = &lab->side[ST_WOULD];
    st_rerun_row *row = &lab->row;
    int r = 0;

    tell(lab, row->at_ms, ST_WOULD);
    if (row->seq == lab->begin_seq)
        r = begin_changes(lab, err);
    if (r < 0)
        return r;
    if (side->reacts)
        return st_rerun_react_row(side, err);
    play_same(side);
    if (side->counting && (st_core_hash(side->core) != row->hash || row->seq == lab->parted))
        st_rerun_react(side);
    return 0;
}

/* ---- both ------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int finish_was(st_rerun_lab *lab, st_err *err)
{
    const st_rerun_options *o = lab->options;
    st_rerun_side *side = &lab->side[ST_WAS];

    if (!side->counting)
        return st_fail(err, ST_ERANGE,
                       "nothing was submitted in that time: the log has no row from --from on");
    lab->end_ms = side->now;
    if (o->to_ms != ST_UNSET && o->to_ms < lab->end_ms)
        lab->end_ms = o->to_ms;
    st_rerun_count_to(side, lab->end_ms);
    if (lab->saves.n > 0) {
        qsort(lab->saves.v, lab->saves.n, sizeof *lab->saves.v, by_value);
        lab->save_ms = lab->saves.v[lab->saves.n / 2];
    }
    return 0;
}

static int play_would(st_rerun_lab *lab, st_err *err)
{
    st_rerun_side *side = &lab->side[ST_WOULD];
    int r = st_rerun_load(lab, side, err);

    if (r == 0)
        r = st_rerun_rows(lab, would_row, err);
    if (r == 0 && side->reacts)
        r = st_rerun_react_until(side, lab->end_ms + 1, err);
    if (r == 0)
        st_rerun_count_to(side, lab->end_ms);
    return r;
}

/* Where samples are taken must be known before, so the length of the log is looked at first. */
typedef struct span {
    int64_t to_ms, last_ms;
} span;

static int see_row(void *ctx, const st_log_row *row, st_err *err)
{
    span *s = ctx;

    (void)err;
    if (s->to_ms != ST_UNSET && row->at_ms > s->to_ms)
        return 1;
    s->last_ms = row->at_ms;
    return 0;
}

static int measure(st_rerun_lab *lab, st_err *err)
{
    span s = {lab->options->to_ms, lab->first_ms};
    int64_t from = ST_MAX(lab->options->from_ms, lab->first_ms);
    int r = st_store_log_read(lab->store, lab->snap.seq + 1, see_row, &s, err);

    if (r < 0)
        return r;
    lab->end_ms = s.last_ms;
    lab->sample_ms = ST_MAX((s.last_ms - from) / SAMPLES, SAMPLE_MIN_MS);
    return 0;
}

static int play(st_rerun_lab *lab, st_err *err)
{
    int r = st_rerun_read_changes(lab, err);

    if (r == 0)
        r = st_rerun_open(lab, err);
    if (r == 0)
        r = measure(lab, err);
    if (r == 0)
        r = st_rerun_books(lab, err);
    if (r == 0)
        r = st_rerun_load(lab, &lab->side[ST_WAS], err);
    if (r == 0)
        r = st_rerun_rows(lab, was_row, err);
    if (r == 0)
        r = finish_was(lab, err);
    return r < 0 ? r : play_would(lab, err);
}

static void side_done(st_rerun_side *side)
{
    st_core_free(side->core);
    st_meter_free(side->meter);
    st_effects_done(&side->fx);
    st_vec_free(&side->records);
    st_vec_free(&side->accounts);
    st_vec_free(&side->pieces);
    st_map_free(side->piece_ids);
    st_due_done(&side->due);
}

static void lab_done(st_rerun_lab *lab)
{
    for (int s = 0; s < ST_SIDES; s++)
        side_done(&lab->side[s]);
    st_scenario_free(lab->fleet);
    st_store_close(lab->store);
    st_vec_free(&lab->row.events);
    st_vec_free(&lab->row.notes);
    st_vec_free(&lab->jobs);
    st_vec_free(&lab->names);
    st_vec_free(&lab->saves);
    st_vec_free(&lab->books);
    st_vec_free(&lab->terms);
    st_vec_free(&lab->accounts);
    st_idmap_free(lab->ids);
    st_map_free(lab->name_ids);
    st_map_free(lab->account_ids);
    st_arena_free(lab->scratch);
    st_arena_free(lab->arena);
}

int st_rerun_play(const st_rerun_options *options, st_rerun **ret, st_err *err)
{
    ST_CLEANUP(lab_done)
    st_rerun_lab lab = {.options = options,
                        .arena = st_arena_new(),
                        .scratch = st_arena_new(),
                        .ids = st_idmap_new(),
                        .name_ids = st_map_new()};
    st_rerun *run;
    int r;

    for (int s = 0; s < ST_SIDES; s++) {
        lab.side[s].lab = &lab;
        lab.side[s].which = (st_side)s;
        lab.side[s].piece_ids = st_map_new();
    }
    r = st_rerun_close(&lab, play(&lab, err), err);
    if (r < 0)
        return r;
    run = st_xcalloc(1, sizeof *run);
    run->arena = st_arena_new();
    st_rerun_figures_of(&lab, run);
    run->trace = st_trace_new("recorded");
    st_rerun_trace_of(&lab, run->trace);
    *ret = run;
    return 0;
}

void st_rerun_free(st_rerun *run)
{
    if (!run)
        return;
    st_trace_free(run->trace);
    st_vec_free(&run->accounts);
    st_arena_free(run->arena);
    free(run);
}
