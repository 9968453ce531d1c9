/* Private to core: a claim while it is made (claim.c), who may be displaced by it (claim_right.c), and in what
 * order (claim_line.c). */
#ifndef ST_CORE_CLAIM_H
#define ST_CORE_CLAIM_H

#include "core/state.h"

typedef struct st_claim_ctx {
    st_core *core;
    const st_job *job;
    int32_t type;
    bool guaranteed;
    bool own;   /* of its own account alone */
    bool home;  /* it wants its home place back and nothing else (shadow.h) */
    bool spare; /* ... or any place, but of nobody who has the right to one too */
    st_need need;
    st_standing bare[ST_DEPTH_MAX + 1]; /* by depth: its branches as they are */
    st_standing mine[ST_DEPTH_MAX + 1]; /* and with the claimant in them */
    ST_VEC(st_job *) cands;             /* who may be displaced by himself, by account */
    int64_t asked;                      /* of so many */
    uint8_t *useful;                    /* by candidate: its going could make room */
    bool bounds;                        /* the limits of the account hold with nobody gone */
    ST_VEC(int) line;                   /* indices into cands, worst first */
    ST_VEC(int) aside; /* those whose branch lends nothing more once the line is gone */
    bool hopeless;     /* with all of them gone it would not fit */
    bool idle;         /* it would with none of them gone: what is free is kept for others */
    bool fills;        /* it takes less than it brings into use (claim_fill.c) */
    bool told;         /* somebody is told why: nothing is cut short */
    /* Its floor is used up by what the account and those below it hold: */
    int32_t full; /* the nearest account that would hold more than its floor with it; -1 none */
    int32_t
        within; /* only from those inside that account, or one above that is full too: then so much
                       from inside each full one below that all it holds is within its floor; -1: from
                       anybody, and the same for all of them */
    st_ask ask;
} st_claim_ctx;

/* Where the claimant's branch and an account's part, and what holds for all of the account's
 * jobs alike; good while nobody is thought away or back. `known`, per account and from zeros,
 * remembers the comparisons of branches that many accounts are in. */
typedef struct st_parting {
    int32_t account, mine, theirs;
    bool apart; /* neither is above the other */
    int cmp;    /* the claimant's branch, with it, against theirs; < 0: it stands lower */
} st_parting;

st_parting st_claim_part_from(const st_claim_ctx *c, int32_t account, int8_t *known);

/* Taken before anybody is thought away: who is put back later must not have helped. */
void st_claim_set_standings(st_claim_ctx *c);
/* Whether anybody at all stands high enough for a borrower to take from. */
bool st_claim_may_rebalance_any(const st_claim_ctx *c);
/* Whom of an account it may displace, as far as that does not depend on the job. */
typedef enum st_claim_whom { ST_CLAIM_NOBODY, ST_CLAIM_SOME, ST_CLAIM_ALL } st_claim_whom;
st_claim_whom st_claim_may_displace_of(const st_claim_ctx *c, const st_parting *p);
/* Whether a job may be displaced, as things are thought to stand. */
bool st_claim_may_displace(const st_claim_ctx *c, const st_parting *p, const st_job *victim);
/* Whether it is part of what uses the floor up. */
bool st_claim_is_excess(const st_claim_ctx *c, const st_job *victim);
/* Whether displacing it could help. */
bool st_claim_concerns(const st_claim_ctx *c, const st_job *victim);

/* Who may go, protected ones too if wanted, in line (claim_line.c). */
void st_claim_muster(st_claim_ctx *c, bool ignore_protection);
/* Nobody need be asked, with and without protections if wanted; it counts as if everybody had been. */
void st_claim_skip_muster(st_claim_ctx *c, bool both);
/* What uses the floor up goes before what others borrowed. */
void st_claim_excess_first(st_claim_ctx *c);
/* Whether it fits what is free once those have left who are leaving. */
bool st_claim_fits_as_is(st_claim_ctx *c);
/* What is certain before anybody is lined up (claim_excess.c). */
bool st_claim_excess_decides(st_claim_ctx *c, st_claim *ret);
/* The same by numbers of GPUs alone (claim_hope.c): false where it would not fit with all borrowers gone; and whether
 * all choices break the bound it is held to. */
bool st_claim_has_hope(const st_claim_ctx *c);
bool st_claim_bound_decides(const st_claim_ctx *c, st_claim *ret);
/* Whether those whom a borrower may displace hold too little of the type, with what is free: then it fails, protected
 * or not. */
bool st_claim_lacks_victims(const st_claim_ctx *c);
/* A gang that brings more into use than it takes (claim_fill.c): the most that may go for it, who may, what is free
 * on the victim's nodes, and whether all of that is too little. */
int64_t st_claim_fill_m(const st_claim_ctx *c);
bool st_claim_fills_from(const st_claim_ctx *c, const st_parting *p, const st_job *victim);
int64_t st_claim_beside_free_m(const st_claim_ctx *c, const st_job *victim);
bool st_claim_cannot_fill(const st_claim_ctx *c);
/* The same by nodes: with all of them gone, one by one as far as each may be displaced, it would not fit. */
bool st_claim_lacks_places(const st_claim_ctx *c);
/* Until when it is held to the bound, and until when a borrower to what it takes. */
int64_t st_claim_unbound_ms(const st_claim_ctx *c);
int64_t st_claim_exchange_ms(const st_claim_ctx *c);
/* Think what a victim holds away, or back. */
void st_claim_charge(const st_claim_ctx *c, const st_job *victim, int sign);

#endif
