/* Private to meter: what it remembers, and how its files share the work.
 *
 *   meter.c      time, nodes, plans, cuts; asking
 *   floors.c     what accounts are promised
 *   inside.c     what of borrowed work lies inside that
 *   devs.c       who is on a device and what part of it each has
 *   stays.c      a job's time on devices, in pieces
 *   history.c    what a stay had after a moment that is past
 *   telemetry.c  what was seen of it
 *   basis.c      by what right, and what is on demand
 *   parts.c      where devices were, by pool and cause
 *   save.c       to bytes and back
 *
 * How shares are counted. Residents of a device that hold at most all of it have what they hold: their
 * stay counts them in its `rate_m` and nothing is done until something changes. A crowded device (more
 * than 1000 milli-GPU held) is dealt out over time: from `since_ms` to t there are 1000 x (t - since_ms),
 * and the residents in order of job and task have
 *
 *     1000 x (t - since_ms) x (held by it and those before it) / (held by all), rounded down,
 *
 * less what those before it have. That adds up exactly, and nobody is more than 1 milli-GPU x ms off
 * for each time it is dealt out. */
#ifndef ST_METER_STATE_H
#define ST_METER_STATE_H

#include "base/map.h"
#include "base/vec.h"
#include "meter/meter.h"

#define SPANS_MAX  64
#define PIECES_MAX 256
/* Moments lie within, so that differences and sums of a few never overflow. */
#define MOMENT_MAX (INT64_C(1) << 52)

/* Where a device's time goes. */
enum { GRANTED, IDLE, UNHEALTHY, OVERHEAD, NPLACES };

/* What one resident had up to a moment, since the span before it or the start of its stay. */
typedef struct span {
    int64_t to_ms, share;
} span;

typedef struct past {
    ST_VEC(span) list;
} past;

typedef struct resident {
    struct stay *stay;
    past *past; /* NULL: it had what it holds, all the time */
    int32_t task;
    int32_t before_m; /* held by those before it */
} resident;

typedef struct dev {
    ST_VEC(resident) list; /* by job and task */
    int32_t node;
    int32_t held_m;    /* by residents */
    int64_t planned_m; /* by plans that wait */
    int at_m[NPLACES];
    st_node_state state; /* READY: as its node; else it is out alone */
    st_where why;        /* of its overhead */
    int64_t since_ms;    /* crowded: dealt out up to here */
} dev;

typedef struct host {
    int32_t type;
    int ndevs;
    st_node_state state;
    size_t devs_at;
    int32_t pool;
    size_t part; /* of parts; only where it has devices */
} host;

/* A piece that was handed out, as it is after all corrections. */
typedef struct piece {
    int64_t from_ms, to_ms, share;
    int64_t dev_seen, dev_busy; /* device x ms */
    int64_t seen, busy, energy; /* as told */
    st_basis basis;
    int64_t inside, inside_idle; /* as told */
} piece;

enum { KNOWS_SEEN = 1, KNOWS_BUSY = 2, KNOWS_ENERGY = 4 };

/* Sums of telemetry: of a task, or all of them. */
typedef struct sums {
    int64_t seen, busy, energy;
} sums;

typedef struct stay {
    uint64_t job;
    int number;   /* how often the job had been on devices, with this one */
    int start;    /* ... and had started: what tasks say is about that */
    bool resumed; /* it goes on with the tasks of the one before it, and has what these said */
    int32_t account, user, type;
    st_level level;
    int profile;
    st_topo topo;
    int tasks, ndevs; /* ndevs: of all tasks */
    int64_t dev_m;    /* nominal, on each device */
    int64_t gpu_m, cpu_m, ram_mib;
    st_grant *grants;
    int64_t start_ms;

    /* The piece that is open; its number is first + pieces.n. */
    st_class class;
    st_basis basis;
    int64_t from_ms;
    int64_t acc;    /* share up to now, but for `rate_m` since fold_ms */
    int64_t rate_m; /* of devices that are not crowded */
    int64_t fold_ms;
    int64_t inside_m;        /* of gpu_m, what is inside floors now; 0 unless it borrows */
    int64_t in_acc, in_mark; /* of `acc` up to in_mark, what was inside */

    int first; /* number of pieces.v[0] */
    ST_VEC(piece) pieces;

    unsigned knows;
    sums *by_task;     /* NULL: none came */
    sums total, given; /* what tasks say; what of it is in pieces, or was too much */

    bool over;          /* off its devices */
    bool away;          /* ... and may come back, or its work may yet be lost */
    bool kept;          /* paused: work of it or before it is kept in memory alone */
    int64_t risk_ms;    /* ... of it, its last so much */
    int64_t risk_share; /* ... and what it had then of the piece in which that begins */
    int64_t over_ms;    /* since when it may be forgotten */
    size_t slot;        /* among the open ones, or those away */
    struct stay *older; /* of the same job */
    struct stay *next;  /* in the line of those to be forgotten */
    struct stay *newer; /* likewise */
} stay;

typedef struct plan {
    uint64_t job;
    int n;
    int32_t dev_m;
    st_grant *grants;
} plan;

typedef struct floor_of {
    int32_t account, type;
    int64_t gpu_m, since_ms;
} floor_of;

typedef struct account {
    int32_t parent;
    int64_t agreed_m; /* ST_UNSET */
    int64_t burst_m;  /* of it and below: intervals that count as burst */
    int32_t limit;    /* which of the meter's it is, from 1; 0: it has no floor */
} account;

/* A floor, with what was promised further down, and what uses it. */
typedef struct limit {
    int32_t account;
    int64_t gpu_m, type_m[ST_TYPES_MAX];
    int64_t use_m[ST_TYPES_MAX]; /* guaranteed, and of what borrows the part inside */
    int64_t sum_m;               /* over types of use or promise, whichever is larger */
} limit;

typedef struct type_sum {
    int64_t ndevs;
    int64_t rate_m[NPLACES];
    st_i128 acc[NPLACES];   /* since the last cut */
    st_i128 total[NPLACES]; /* before it */
} type_sum;

/* Devices of one type in one pool. */
typedef struct part_sum {
    int32_t type, pool;
    int64_t rate_m[ST_WHERE_COUNT];
    st_i128 total[ST_WHERE_COUNT];
} part_sum;

struct st_meter {
    int64_t now, cut_ms;
    ST_VEC(host) nodes;
    ST_VEC(dev) devs;
    type_sum types[ST_TYPES_MAX];
    ST_VEC(part_sum) parts;       /* in the order they came */
    bool parts_whole;             /* they tell of all the time there was */
    bool pools_known;             /* of every node */
    ST_VEC(stay *) open;          /* in no order */
    st_idmap *by_job;             /* the newest stay of a job */
    ST_VEC(stay *) away;          /* over, and their jobs may come back; in no order */
    stay *first_over, *last_over; /* to be forgotten, in order */
    size_t nover;
    ST_VEC(plan) plans;      /* by job */
    ST_VEC(floor_of) floors; /* by account and type */
    ST_VEC(account) accounts;
    size_t known_accounts; /* of these, whose parents are known */
    bool inside;           /* it is counted what lies inside floors */
    ST_VEC(limit) limits;  /* by account */
    ST_VEC(stay *) borrow; /* below one of them; by branch, account and job */
};

/* ---- numbers ------------------------------------------------------------------------------ */

static inline int64_t clip(st_i128 v)
{
    return v > INT64_MAX ? INT64_MAX : v < -INT64_MAX ? -INT64_MAX : (int64_t)v;
}

static inline int64_t times(int64_t a, int64_t b)
{
    return clip((st_i128)a * b);
}

static inline int64_t plus(int64_t a, int64_t b)
{
    return clip((st_i128)a + b);
}

/* a x b / c, rounded down; c > 0 and nothing negative. */
static inline int64_t part(int64_t a, int64_t b, int64_t c)
{
    return clip((st_i128)a * b / c);
}

/* ---- devs.c ------------------------------------------------------------------------------- */

bool meter_crowded(const dev *d);
void meter_add(st_meter *m, stay *s, int task, int32_t node, int at);
/* The same without counting anything, for one that was there all the time. */
void meter_insert(st_meter *m, stay *s, int task, int32_t node, int at);
void meter_remove(st_meter *m, stay *s, int task, int32_t node, int at);
/* Deals out what there is up to now. */
void meter_deal_out(st_meter *m, dev *d);
/* Count the device anew: somebody came or went, its node's state or a plan changed. */
void meter_place(st_meter *m, dev *d);
/* The part of a crowded device that has not been dealt out. */
int64_t meter_pending(const dev *d, const resident *r, int64_t now);
resident *meter_resident(dev *d, const stay *s, int task);
static inline dev *meter_dev(const st_meter *m, int32_t node, int at)
{
    return &m->devs.v[m->nodes.v[node].devs_at + (size_t)at];
}

/* ---- parts.c ------------------------------------------------------------------------------ */

size_t meter_part(st_meter *m, int32_t type, int32_t pool); /* made if it is new */
/* A device is there now, and no longer where it was. */
void meter_part_move(st_meter *m, const dev *d, const int at[NPLACES], st_where why);
void meter_parts_advance(st_meter *m, int64_t ms);
/* So much of what the stay had was not granted after all. */
void meter_part_ended(st_meter *m, const stay *s, int64_t share, st_where why);
/* Whether parts add up to what the types say. */
int meter_parts_check(const st_meter *m, st_err *err);
/* Indexes in order of type and pool; the caller frees it. */
size_t *meter_parts_sorted(const st_meter *m);

/* ---- inside.c ----------------------------------------------------------------------------- */

/* The stay is open and of its class, or no longer: whoever borrows in its branch may have more or less. */
void meter_inside_enter(st_meter *m, stay *s);
void meter_inside_leave(st_meter *m, stay *s);
void meter_inside_floors(st_meter *m, const st_tree *tree);
/* From limits and open stays. */
void meter_inside_derive(st_meter *m);
/* Of the open piece, which has that share. */
int64_t meter_inside_open(const stay *s, int64_t share);

/* ---- stays.c ------------------------------------------------------------------------------ */

/* Share of the open piece up to now. */
int64_t meter_open_share(const st_meter *m, const stay *s, int64_t now);
/* Everything the stay has up to now is in `acc`, and what of it was inside floors in `in_acc`. */
void meter_deal_out_stay(st_meter *m, stay *s);
/* Takes what was counted at the rate so far into `acc`. */
void meter_fold(st_meter *m, stay *s);
/* Ends the open piece, which has some length, and begins another. */
void meter_next_piece(st_meter *m, stay *s, st_basis basis, st_records *out);
/* A record about a piece, without amounts. */
st_record meter_head(const stay *s, st_record_kind kind, int number, const piece *p);
/* A record of the open piece as if it ended now. */
st_record meter_open_record(const st_meter *m, const stay *s, int64_t now);
stay *meter_find(const st_meter *m, uint64_t job);
void meter_stay_free(stay *s);
/* Puts a stay that was read where it belongs: lists and devices. */
void meter_enter(st_meter *m, stay *s);
/* Forgets what ended long ago. */
void meter_purge(st_meter *m);
int64_t meter_nominal_m(const st_shape *shape);

/* ---- history.c ---------------------------------------------------------------------------- */

void meter_span(past *p, int64_t to_ms, int64_t share);
/* Up to when `past` knows; `start` when there is none. */
int64_t meter_known_to(const past *p, int64_t start);
/* What the stay had from a moment on up to now; its devices are dealt out. */
int64_t meter_after(const st_meter *m, const stay *s, int64_t from_ms);

/* ---- telemetry.c -------------------------------------------------------------------------- */

/* Puts what came in into the newest piece, which is being handed out with `rec` (NULL: it has been),
 * and what it has no room for into those before, with FIX records. */
void meter_allot(stay *s, st_record *rec, st_records *out);
/* The same without changing anything, for the open piece. */
void meter_guess(const stay *s, st_record *rec);
/* A piece has become shorter: what was seen cannot be more. Fills in the deltas. */
void meter_shorten(stay *s, piece *p, st_record *fix);

/* ---- basis.c ------------------------------------------------------------------------------ */

void meter_learn_tree(st_meter *m, const st_tree *tree);
st_basis meter_basis(const st_meter *m, const stay *s, st_class class);
/* Counts the open piece as burst, or no longer. */
void meter_burst(st_meter *m, const stay *s, int sign);
/* Who is burst and who on demand, from this cut on; `list` is by job. */
void meter_decide(st_meter *m, stay *const *list, size_t n, st_basis *ret);

/* ---- floors.c ----------------------------------------------------------------------------- */

st_record meter_floor_record(const floor_of *f, int64_t now);
void meter_cut_floors(st_meter *m, st_records *out);

/* ---- meter.c ------------------------------------------------------------------------------ */

/* What a plan keeps free, or no longer. */
void meter_plan(st_meter *m, const plan *p, int sign);

/* A list of stays by job; the caller frees it. */
stay **meter_sorted(stay *const *list, size_t n);

#endif
