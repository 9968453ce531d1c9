/*
 * Mutants: the rules of the scheduler, each of which can be broken on purpose.
 *
 * A checker that never fails proves nothing. In the program stint-mutants, and only there
 * (-DST_MUTANTS), ST_BROKEN(RULE) is true while the mutant of that name is switched on; the
 * simulation fuzzer must then catch it within the number of seeds in the last column (above 10,000: with
 * that one seed). Every other build sees the constant false and no trace of this table.
 *
 *     if (!ST_BROKEN(MAX) && used + asked > bound)
 *         ...
 */
#ifndef ST_BASE_MUTANT_H
#define ST_BASE_MUTANT_H

#include <stdbool.h>

/* X(rule, what is broken, seeds until it must be caught) */
#define ST_MUTANT_TABLE(X)                                                              \
    X(MAX, "a start ignores the ceilings of its accounts", 40)                          \
    X(SURE, "a job counts as guaranteed beyond the floor", 40)                          \
    X(VICTIM_GUARANTEED, "guaranteed jobs are displaced", 40)                           \
    X(MINIMAL, "a claim takes more victims than it needs", 40)                          \
    X(BOUND, "a claim evicts more than the bound allows", 40)                           \
    X(HOLD, "what is freed for a claimant is open to anybody", 40)                      \
    X(STRICT, "a preemption need not improve the order", 100)                           \
    X(SWAP, "inside an account anybody may swap places", 100)                           \
    X(RECLAIM, "an owner takes nothing back", 40)                                       \
    X(MIN_RUN, "the minimum run time protects nobody", 40)                              \
    X(COOLDOWN, "the cooldown protects nobody", 100)                                    \
    X(METER_FLOOR, "what borrows inside a floor is charged beside it", 100)             \
    X(INSIDE, "an account's own excess does not use its floor", 100)                    \
    X(EFFORT, "who comes behind costly claims is forgotten", 100)                       \
    X(AGEING, "who has waited long counts for no more than it did", 1000)               \
    X(PRIORITY, "inside an account the one that came first goes first", 400)            \
    X(REST, "a borrower comes back however often it is displaced", 200)                 \
    X(BOOK_CLEAR, "guaranteed jobs sit where a booking will be", 400)                   \
    X(BOOK_TELL, "nobody leaves for a booking", 1300)                                   \
    X(BOOK_NEED, "what jobs need to save is not counted before a booking", 10000003)    \
    X(BOOK_FLOORS, "bookings take what is guaranteed to others", 400)                   \
    X(BOOK_END, "jobs leave a booking before it ends", 400)                             \
    X(BOOK_ENTER, "jobs wait although their booking has room", 400)                     \
    X(BOOK_LEND, "what a booking leaves idle is lent to nobody", 10000007)              \
    X(MEEK, "a job without the right to preempt does so all the same", 400)             \
    X(BOOK_QUOTA, "accounts book more than their limits allow", 400)                    \
    X(BOOK_LABELS, "bookings are placed on nodes without the labels they require", 400) \
    X(BOOK_PARTS, "slices are booked where pools do not give them", 10000149)           \
    X(BOOK_ALONE, "what a dedicated booking leaves idle is lent to others", 10000043)   \
    X(BOOK_POOL, "pools are booked beyond their own limits", 400)                       \
    X(WINDOW_BEGIN, "a job starts before its window begins", 400)                       \
    X(WINDOW_END, "a job is told of its window's end when that has come", 400)          \
    X(WINDOW_SLOT, "a job whose slot is over runs like any other", 400)                 \
    X(DEADLINE, "a hard deadline is taken without a place in the calendar", 400)        \
    X(BAR, "a job that is barred starts all the same", 100)                             \
    X(AFTER, "a job starts before those it waits for are over", 30000001)               \
    X(AFTER_KEPT, "a job waits on when all it waited for has come true", 30000001)      \
    X(ON_HOLD, "a job that is on hold starts all the same", 30000001)                   \
    X(THROTTLE, "more of an array run than its throttle allows", 30000001)              \
    X(RETRY, "a job that fails is tried again for ever", 30000001)                      \
    X(STAY, "who is let stay is guaranteed, whoever is by now", 202313)                 \
    X(GANG, "a gang starts with a task missing", 40)                                    \
    X(NOTICE, "a victim is off its devices before notice and grace are over", 40)       \
    X(CPU, "the CPU of a node is given out without counting", 40)                       \
    X(RAM, "the RAM of a node is given out without counting", 40)                       \
    X(MIG, "MIG slices may overlap", 40)                                                \
    X(TRUST, "MPS is shared across trust domains", 100)                                 \
    X(OVERSUB, "time-slicing ignores the pool's factor", 40)                            \
    X(LATENCY, "latency-critical work shares with unknowns", 100)                       \
    X(TOPOLOGY, "a required topology level is only a wish", 40)                         \
    X(CONSERVE, "a job waits although it could start", 40)                              \
    X(STARVE, "nothing is reserved for a job that waits", 100)                          \
    X(FLOORS, "floors do not shrink with the capacity", 40)                             \
    X(USER_LIMIT, "limits per user are ignored", 40)                                    \
    X(WEIGHT_ZERO, "an account of weight 0 borrows", 40)                                \
    X(FAILED_NODE, "jobs stay on a failed node", 40)                                    \
    X(GONE, "a job starts again before its last stay is known to be over", 40)          \
    X(SAVE, "a save leaves something out", 40)                                          \
    X(REASONS, "a waiting job is given no reason", 40)                                  \
    X(ORDER, "an address decides between equals", 40)                                   \
    X(PAUSED_RAM, "a paused job's RAM is given away", 100)                              \
    X(UNTRUSTED, "an untrusted account shares a GPU", 40)                               \
    X(ABSORBING, "an account below an untrusted one is trusted", 200)                   \
    X(REMOVE, "an account is removed with its jobs", 40)                                \
    X(VRAM, "shares on a GPU ask for more memory than it has", 40)                      \
    X(POOL, "a job runs outside the pool it asked for", 40)                             \
    X(LEVEL, "a pool's isolation levels are ignored", 40)                               \
    X(ALLOW, "a job runs where the permission it needs is not given", 40)               \
    X(DRAIN, "a node that drains takes new jobs", 40)                                   \
    X(DRAIN_BY, "jobs stay on a node beyond the time by which it drains", 20000003)     \
    X(PICK, "a job runs on nodes that it does not allow", 25000001)                     \
    X(ACCEPT, "a node comes back without a test", 100)                                  \
    X(SUSPECT, "a suspicion ends the jobs of a node", 100)                              \
    X(BREAKER, "a storm of one fault takes out every node", 200)                        \
    X(INCIDENT, "an incident is never over", 200)                                       \
    X(GPU_OUT, "a GPU that is out of service is given to jobs", 35000001)               \
    X(GPU_TEST, "a GPU that had failed comes back without a test", 35000012)            \
    X(GPU_STAY, "jobs stay on a GPU that has failed", 35000001)                         \
    X(ON_FAULT, "a job that is to fail with its node waits again", 200)                 \
    X(OVERSTAY, "a forecast counts as much as a limit", 100)                            \
    X(PROFILE, "a node that changed opens when it used to", 40)                         \
    X(KEPT, "a reserved start is kept whatever changes", 40)                            \
    X(NOWHERE, "what found no place is remembered whatever changes", 40)                \
    X(WALLED, "what reservations kept out is remembered whatever changes", 100)         \
    X(EXCHANGE, "a borrower evicts more than it takes as soon as it comes", 200)        \
    X(FILL, "a gang that fills takes as much as it brings", 200)                        \
    X(BOOKS, "what a job used is given back twice", 40)                                 \
    X(HOME, "a job is guaranteed away from its home place", 100)                        \
    X(SETTLE, "an account is at home on more than its floor", 40)                       \
    X(SPARE, "who has a right to a place is displaced by one who goes elsewhere", 400)  \
    X(MOVER_PLACE, "a job is moved that has nowhere to go", 200)                        \
    X(MOVE_GAIN, "jobs are moved although it costs more than it gains", 400)            \
    X(POOL_CHANGE, "a pool changes under those who use it", 200)                        \
    X(POOL_ROOM, "a changed pool is still seen as it was", 400)                         \
    X(METER_REST, "what dividing a crowded GPU leaves over is nobody's", 40)            \
    X(METER_OVERLAP, "a piece begins with what the one before had", 40)                 \
    X(METER_LATE, "what is held after the work has ended is charged", 40)               \
    X(METER_TWICE, "telemetry that comes again counts again", 40)                       \
    X(MONEY_CARRY, "what dividing a price leaves over is lost", 40)                     \
    X(MONEY_RELEASE, "a job that is over goes on holding money", 40)                    \
    X(MONEY_CAP, "a cap keeps jobs out and nothing else", 40)                           \
    X(MONEY_MONTH, "a month begins with what the last one had spent", 40)               \
    X(MONEY_LOST, "lost work is credited though a cap had paid for it", 400)            \
    X(MONEY_AGAIN, "a correction of lost work credits all of it again", 100)            \
    X(MONEY_UNCAP, "a correction gives back what a cap had paid", 400)                  \
    X(MONEY_LENT, "whoever lends may earn more than the booking costs", 10000005)       \
    X(MONEY_SHORT, "what a booking lacks is charged all the same", 10000021)            \
    X(MONEY_FEE, "booked time can be given up for nothing", 400)

#ifdef ST_MUTANTS

typedef enum st_mutant_rule {
    ST_MUTANT_NONE,
#define X(rule, what, seeds) ST_MUTANT_##rule,
    ST_MUTANT_TABLE(X)
#undef X
        ST_MUTANT_COUNT
} st_mutant_rule;

/* The rule that is broken now. The one mutable global there is, and in no program we ship. */
extern int st_mutant;

#define ST_BROKEN(rule) (st_mutant == ST_MUTANT_##rule)

#else

#define ST_BROKEN(rule) false

#endif

#endif
