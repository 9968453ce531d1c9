/* The tree of accounts: what each is promised, may reach, and holds.
 *
 * Account 0 is the cluster itself; it exists from the start, owns no jobs and has no quota:
 * its floor is the capacity that is there. Everything below is an account of any meaning
 * (organisation, team, project, user), at most ST_DEPTH_MAX deep.
 *
 * The counters are kept by src/admit alone; nothing else writes them. */
#ifndef ST_MODEL_TREE_H
#define ST_MODEL_TREE_H

#include "base/err.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/types.h"

#define ST_ROOT 0

/* A guarantee or a ceiling; ST_UNSET where not given. `gpu_m` is over all types and includes
 * what the typed entries say. */
typedef struct st_quota {
    int64_t gpu_m, cpu_m, ram_mib;
    int64_t type_m[ST_TYPES_MAX];
} st_quota;

/* Amounts in use or on offer. */
typedef struct st_use {
    int64_t gpu_m, cpu_m, ram_mib;
    int64_t type_m[ST_TYPES_MAX];
} st_use;

/* Limits for one job, or for all running jobs of one user; ST_UNSET where not given. */
typedef struct st_limits {
    int64_t gpu_m;
    int64_t vram_mib;
    int64_t share_m; /* compute share on shared GPUs */
    int64_t run_ms;  /* a job's time limit; for a user the sum over running jobs */
} st_limits;

/* Limits on what an account and those below it have booked together; ST_UNSET where not given.
 * X(id, field, key, kind) */
#define ST_BOOK_LIMIT_TABLE(X)                                      \
    X(ST_BOOK_LIMIT_LENGTH, length_ms, "length", ST_F_DURATION)     \
    X(ST_BOOK_LIMIT_LEAD, lead_ms, "lead", ST_F_DURATION)           \
    X(ST_BOOK_LIMIT_CONCURRENT, concurrent, "concurrent", ST_F_I64) \
    X(ST_BOOK_LIMIT_HOURS, hours_m, "gpu_hours", ST_F_MILLI)
typedef enum st_book_limit {
#define X(id, field, key, kind) id,
    ST_BOOK_LIMIT_TABLE(X)
#undef X
        ST_BOOK_LIMIT_COUNT
} st_book_limit;

typedef struct st_book_limits {
    int64_t length_ms;  /* of one window */
    int64_t lead_ms;    /* how far ahead one may begin */
    int64_t concurrent; /* windows at one moment */
    int64_t hours_m;    /* milli-GPU-hours that are ahead */
} st_book_limits;

typedef enum st_trust { ST_TRUST_INHERIT, ST_TRUST_TRUSTED, ST_TRUST_UNTRUSTED } st_trust;

/* What one user holds in one account and below. */
typedef struct st_user_use {
    int64_t gpu_m, vram_mib, share_m, run_ms; /* of its jobs that are placed or held */
} st_user_use;

/* Decayed GPU time of one user in one account. */
typedef struct st_usage {
    int32_t account, user;
    int64_t rate_m; /* milli-GPU it holds now */
    int64_t used;   /* milli-GPU x ms, decayed to `at_ms` */
    int64_t at_ms;
} st_usage;

/* How long the jobs of an account live, by stages of run time; share/life.h says how it is read. */
#define ST_STAGES 16
typedef struct st_life {
    int64_t ended[ST_STAGES];    /* jobs that ended in the stage */
    int64_t outlived[ST_STAGES]; /* jobs that ran on behind it */
    int64_t price_ms[ST_STAGES]; /* derived from these, once reckoned */
    bool reckoned;
} st_life;

typedef struct st_account {
    int32_t id, parent; /* where it stands in the tree's list; kept when it is removed */
    int64_t serial;     /* never given to another, whatever it is called: see st_tree_set */
    bool gone;          /* removed: nobody's child, found by no name; records may still name it */
    bool again;         /* another had its name before; derived */
    int depth;
    char *name;
    st_quota guarantee, max;
    int64_t weight_m; /* 1000 = 1 */
    int priority;
    st_limits job_limits, user_limits;
    st_book_limits book_limits;
    st_trust trust;
    bool own_domain;    /* the root of a trust domain of its own */
    int64_t min_run_ms; /* ST_UNSET: the parent's */

    ST_VEC(int32_t) children;

    /* Derived. */
    st_quota floor;    /* the guarantee as far as capacity covers it */
    st_use now;        /* held by jobs on devices, leaving ones included */
    st_use next;       /* once the holds have come true: leaving ones gone, claimants in */
    st_use guaranteed; /* of `next`, what is guaranteed */
    /* What the floors must be able to deliver, see admit/admit.h. */
    int64_t below_m[ST_TYPES_MAX], below_sum_m;
    int64_t typed_sum_m, need_sum_m;
    /* Of `floor` and `next`, kept so that a standing costs no look at all types: see st_account_reckon. */
    int64_t floor_gpu_m, taken_m;
    /* Numbers of `next`, and of what its guaranteed jobs and those below leave of its floor: see st_admit_inside_print. */
    uint64_t next_print, need_print;
    st_life life;
    uint64_t noted; /* how often the usage of one of its users was */
    int64_t lost;   /* milli-GPU x ms of work lost to preemption and failures */
} st_account;

typedef struct st_tree {
    ST_VEC(st_account *) accounts;
    size_t ngone;    /* of them; derived */
    int64_t serials; /* the last one given */
    int64_t named; /* up to this serial accounts are from before there were any: nodes knew them by
                        name */
    st_map *ids;
    st_map *had; /* names of all there ever were */
    ST_VEC(char *) users;
    st_map *user_ids;
    ST_VEC(st_user_use) user_use; /* by (account, user), through user_slots */
    st_idmap *user_slots;
    ST_VEC(st_usage) usage; /* likewise, through usage_slots */
    st_idmap *usage_slots;
    st_use capacity; /* what is there and healthy, and not booked */
    /* A number of what is charged and of the floors: while it is the same, or the same again, so are they. Derived. */
    uint64_t print;
    uint64_t floored; /* counts changes of floors and capacity. Derived */
    bool shrunk;      /* guarantees do not fit the capacity */
    /* By account: what is left of its guarantee beside bookings; empty where there are none. Derived. */
    ST_VEC(st_quota) promised;
} st_tree;

/* What an admin writes about an account. */
typedef struct st_account_spec {
    const char *name, *parent; /* parent NULL: directly below the cluster */
    bool named;                /* written before accounts had serials */
    st_quota guarantee, max;
    int64_t weight_m;
    int priority;
    st_limits job_limits, user_limits;
    st_book_limits book_limits;
    st_trust trust;
    bool own_domain;
    int64_t min_run_ms;
} st_account_spec;

st_tree *st_tree_new(void);
void st_tree_free(st_tree *tree);

void st_quota_clear(st_quota *quota);
void st_limits_clear(st_limits *limits);
void st_book_limits_clear(st_book_limits *limits);
void st_account_spec_init(st_account_spec *spec);

/* Its guarantee, or what bookings that run leave of it to be had elsewhere. */
const st_quota *st_tree_promise(const st_tree *tree, int32_t account);

/* The total a guarantee promises over all types: gpu_m, or the typed entries where that is
 * not given. 0 when nothing is. */
int64_t st_quota_gpu_m(const st_quota *quota);
/* Whether any GPU entry is given. */
bool st_quota_has_gpu(const st_quota *quota);

/* The GPU that the account's floor promises, and what is taken of it and beyond: of each type what it will hold or
 * its typed floor, whichever is more. Must be called when the floor was written; charges keep it. */
void st_account_reckon(st_account *a);
/* What of that lies beyond the floor, with so much more of a type. */
static inline int64_t st_account_beyond_m(const st_account *a, int type, int64_t more_m)
{
    int64_t held_m = a->next.type_m[type], floor_m = ST_MAX(a->floor.type_m[type], 0);
    return a->taken_m + ST_MAX(held_m + more_m, floor_m) - ST_MAX(held_m, floor_m) - a->floor_gpu_m;
}

static inline st_account *st_tree_account(const st_tree *tree, int32_t id)
{
    ST_ASSERT(id >= 0 && (size_t)id < tree->accounts.n);
    return tree->accounts.v[id];
}

int32_t st_tree_find(const st_tree *tree, const char *name);
int32_t st_tree_user(st_tree *tree, const char *name);

/* The key of user_slots and usage_slots. */
uint64_t st_user_key(int32_t account, int32_t user);

/* Whether an account can be made or changed so: names, depth, cycles (a parent cannot be changed), Σ of the
 * children's guarantees within the parent's, guarantee within max. */
int st_tree_check(const st_tree *tree, const st_account_spec *spec, st_err *err);
/* Create an account or change one, if that can be. */
int st_tree_set(st_tree *tree, const st_account_spec *spec, int32_t *ret_id, st_err *err);

/* Takes an account without children out of the tree. Its place in the list and its serial are given to
 * nobody else; its name may be. */
int st_tree_remove(st_tree *tree, int32_t id, st_err *err);

/* Whether it or any account above it is untrusted: nothing below one that is can be trusted. */
bool st_tree_untrusted(const st_tree *tree, int32_t account);
int32_t st_tree_domain(const st_tree *tree, int32_t account);
int64_t st_tree_min_run_ms(const st_tree *tree, int32_t account, int64_t otherwise);

/* Whether `account` is `above` or stands below it. */
bool st_tree_within(const st_tree *tree, int32_t account, int32_t above);
/* The lowest account above both, and the children of it on either side (the account itself
 * where it is that ancestor). */
int32_t st_tree_meet(const st_tree *tree, int32_t a, int32_t b, int32_t *ret_a, int32_t *ret_b);

bool st_name_ok(const char *name);

#endif
