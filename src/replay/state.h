/*
 * The inside of playing a log again (replay/replay.h).
 *
 *   source.c     from the store: where to begin, rows, prices       side.c      a core and all that is counted of it
 *   rerun.c      both sides, one after the other                    money.c     what its use costs
 *   translate.c  events of one fleet for another                    react.c     what jobs do by themselves
 *   change.c     what is different                                  figures.c   from counters to a report
 *   trace.c      the demand as a trace, with names replaced
 */
#ifndef ST_REPLAY_STATE_H
#define ST_REPLAY_STATE_H

#include "base/map.h"
#include "ledger/ledger.h"
#include "log/log.h"
#include "replay/replay.h"
#include "scenario/scenario.h"
#include "store/store.h"
#include "trace/queue.h"

/* What became of a job on one side. */
typedef struct st_rerun_fate {
    bool there;               /* its core knows, or knew, it */
    bool refused;             /* its core would not have it */
    bool on;                  /* devices */
    int64_t start_ms, end_ms; /* ST_UNSET: never; start is its first */
    int64_t lost;             /* milli-GPU x ms */
    int preemptions;
} st_rerun_fate;

typedef struct st_rerun_job {
    st_job_spec spec; /* texts in the lab's arena */
    size_t account;   /* in st_rerun_lab.names */
    int64_t submit_ms;
    int64_t gpu_m;
    bool counted;     /* had not started when counting began */
    int64_t need_ms;  /* how long it runs until it ends by itself; ST_UNSET: it was not seen to */
    bool failed;      /* and that it failed then */
    int64_t save_ms;  /* how long it took to save; ST_UNSET: it never did */
    int64_t asked_ms; /* while it does */
    uint32_t generation; /* of what is due for it */
    st_rerun_fate fate[ST_SIDES];
} st_rerun_job;

/* Of one account on one side. */
typedef struct st_rerun_count {
    int64_t held_m, demand_m, at_ms;
    double held, entitled, lost; /* milli-GPU x ms */
    uint64_t preemptions;
    int64_t own_udollars;
    int64_t carry[ST_PAY_COUNT];
} st_rerun_count;

typedef struct st_rerun_lab st_rerun_lab;

typedef struct st_rerun_side {
    st_rerun_lab *lab;
    st_side which;
    st_core *core;
    st_meter *meter;
    st_effects fx;
    st_records records;
    int64_t now;
    bool counting;
    int64_t allocated_m, at_ms;
    double allocated, capacity; /* milli-GPU x ms */
    double lost;
    int64_t next_sample_ms;
    ST_VEC(st_rerun_count) accounts; /* by st_rerun_lab.names */
    ST_VEC(st_piece_sum) pieces;     /* of stays, as charged: what is lost of them is credited */
    st_map *piece_ids;
    /* ST_WOULD only. */
    bool reacts; /* an effect differed: jobs go their own ways */
    st_due_queue due;
    st_await afters[ST_AFTER_MAX]; /* of the job that is being translated */
} st_rerun_side;

/* Terms of an account in its book. */
typedef struct st_rerun_terms {
    size_t account;
    st_terms terms;
} st_rerun_terms;

/* A row as it was read; texts in the arena, until the next. */
typedef struct st_rerun_row {
    int64_t seq, at_ms;
    uint64_t hash;
    const char *version;
    ST_VEC(st_event) events;
    st_notes notes;
} st_rerun_row;

struct st_rerun_lab {
    const st_rerun_options *options;
    st_arena *arena, *scratch; /* for good; of one row */
    st_store *store;
    bool still; /* nobody writes it */
    /* Where playing begins: behind the snapshot, or with the first row. */
    st_snap_row snap; /* seq 0: none */
    int64_t first_ms; /* of what there is */

    ST_VEC(st_rerun_job) jobs;
    st_idmap *ids;
    ST_VEC(const char *) names; /* of accounts */
    st_map *name_ids;
    ST_VEC(int64_t) saves; /* how long saving took */
    int64_t save_ms;       /* usually */

    ST_VEC(st_price_book *) books; /* as they were published */
    st_price_book *other;          /* that is asked for */
    ST_VEC(st_rerun_terms) terms;

    st_scenario *fleet; /* of options->fleet */
    ST_VEC(st_account_doc) accounts;
    st_map *account_ids;

    /* Found out by the first side. */
    int64_t begin_seq; /* counting begins before this row ... */
    int64_t from_ms;   /* ... at this moment */
    uint64_t begin_hash;
    int64_t sample_ms;
    int64_t end_ms, last_seq;
    int64_t rows;
    int64_t parted;
    const char *written_by;
    int64_t differ_ms;

    st_rerun_row row;
    st_rerun_side side[ST_SIDES];
};

/* ---- source.c ------------------------------------------------------------------------------ */

int st_rerun_open(st_rerun_lab *lab, st_err *err);
/* After the last row: r, or that what was read cannot be relied upon. */
int st_rerun_close(st_rerun_lab *lab, int r, st_err *err);
/* A core and a meter as they were where playing begins. */
int st_rerun_load(st_rerun_lab *lab, st_rerun_side *side, st_err *err);
/* All rows from there on; the row is lab->row. */
typedef int (*st_rerun_row_fn)(st_rerun_lab *lab, st_err *err);
int st_rerun_rows(st_rerun_lab *lab, st_rerun_row_fn fn, st_err *err);
/* Prices and terms as the books have them. */
int st_rerun_books(st_rerun_lab *lab, st_err *err);

/* ---- side.c --------------------------------------------------------------------------------- */

/* Number of an account by its name; made if it is new. */
size_t st_rerun_name(st_rerun_lab *lab, const char *name);
st_rerun_job *st_rerun_find(const st_rerun_lab *lab, uint64_t id); /* NULL: unknown */
/* A job that came, or is there. */
st_rerun_job *st_rerun_add(st_rerun_lab *lab, const st_job_spec *spec, int64_t submit_ms);
/* It is that late now. */
void st_rerun_advance(st_rerun_side *side, int64_t now);
/* From here on everything is counted. */
void st_rerun_count_from(st_rerun_side *side, int64_t now);
/* The core has settled: what its effects mean. Clears them. */
void st_rerun_follow(st_rerun_side *side, st_notes *notes, int64_t now);
void st_rerun_count_to(st_rerun_side *side, int64_t now);
st_rerun_count *st_rerun_of(st_rerun_side *side, size_t account);

/* ---- money.c -------------------------------------------------------------------------------- */

/* Prices what the meter has recorded, if it is counted, and clears it. */
void st_rerun_price(st_rerun_side *side);

/* ---- translate.c, change.c ------------------------------------------------------------------ */

/* What a recorded event is for the changed side; false: nothing. *ret_why: the job cannot be had any more. */
bool st_rerun_translate(st_rerun_side *side, const st_event *ev, st_event *ret,
                        const char **ret_why);
void st_rerun_translate_notes(st_rerun_side *side, st_notes *notes);
/* Reads what is to be different. */
int st_rerun_read_changes(st_rerun_lab *lab, st_err *err);
/* And makes it so, now. */
int st_rerun_change(st_rerun_side *side, st_err *err);

/* ---- react.c -------------------------------------------------------------------------------- */

/* From here on jobs end and save by themselves. */
void st_rerun_react(st_rerun_side *side);
/* What an effect makes due. */
void st_rerun_due(st_rerun_side *side, const st_effect *fx);
/* Everything before `until_ms`. */
int st_rerun_react_until(st_rerun_side *side, int64_t until_ms, st_err *err);
/* A recorded row: what came from outside. */
int st_rerun_react_row(st_rerun_side *side, st_err *err);

/* ---- figures.c, trace.c --------------------------------------------------------------------- */

void st_rerun_figures_of(st_rerun_lab *lab, st_rerun *ret);
void st_rerun_trace_of(st_rerun_lab *lab, st_trace *ret);

#endif
