/* Private to core: bookings.
 *
 *   book.c        what events do to them
 *   book_quote.c  whether a window can be had
 *   book_quota.c  what accounts and pools let be booked
 *   book_plan.c   where a booking will be, and who may be there until then; fences
 *   book_clock.c  what happens to them in time
 *   book_run.c    jobs inside, and what is lent
 *
 * What keeps a booking's word:
 *  1 Slots of two bookings on one device do not overlap (from the start of one until those inside have left).
 *  2 At every moment booked + guaranteed + reserve is there (calendar/promises.h).
 *  3 A job on devices that are booked before it ends is never guaranteed, so it can be told to leave: when a job becomes
 *    guaranteed, the plans on its devices move, or it stays burstable.
 *  4 When a booking closes, all others on its devices are told to leave, with time enough to be gone by its start; from
 *    then on a fence keeps everybody out (st_node.fence), and what is fenced counts neither as capacity nor as promised.
 *  5 Jobs inside are of class booked: nobody displaces them, and they count in no quota. What they leave idle is lent to
 *    borrowers, who yield to them. */
#ifndef ST_CORE_BOOK_H
#define ST_CORE_BOOK_H

#include "calendar/promises.h"
#include "core/state.h"

st_booking *st_book_find(const st_core *core, uint64_t id);

/* book.c */
/* A booking as it is asked for, without name, window and plan. */
int st_book_from_spec(const st_core *core, const st_booking_spec *spec, st_booking *ret,
                      st_err *err);
int st_core_book(st_core *core, const st_event *ev, st_effects *fx, st_err *err);
int st_core_book_confirm(st_core *core, const st_event *ev, st_effects *fx, st_err *err);
int st_core_book_cancel(st_core *core, const st_event *ev, st_effects *fx, st_err *err);
int st_core_book_change(st_core *core, const st_event *ev, st_effects *fx, st_err *err);
/* Whether guarantees may be set so beside what is booked. */
int st_book_check_account(const st_core *core, const st_account_spec *spec, st_err *err);
/* Whether the job may name the booking it names. */
int st_book_check_submit(const st_core *core, const st_job_spec *spec, int32_t account,
                         st_err *err);
/* It has devices of its own from now on; the caller fences them. */
void st_book_open(st_core *core, st_booking *b);
/* What begins sooner than others can leave must be free, and stay so. */
void st_book_open_soon(st_core *core, st_booking *b);
/* Puts it into the list and its plan into the slots. */
void st_book_insert(st_core *core, st_booking *take);
/* Out of the list, told as `state`. */
void st_book_drop(st_core *core, st_booking *b, st_booking_state state, st_effects *fx);
void st_book_tell(st_core *core, const st_booking *b, st_booking_state state, st_effects *fx);
/* After loading: slots, fences, counts. */
void st_book_rebuild(st_core *core);

/* book_quote.c */
/* Where a booking that does not fit its window would: sets earlier_ms and later_ms. */
void st_book_starts(st_core *core, const st_booking *like, st_window w, const st_booked_vec *more,
                    st_book_quote *ret);
/* One window of a booking that is filled in but for its plan, beside those that are booked and `more`; what `b` itself
 * has counts as free. Sets its window and, where it fits, its plan. */
st_book_why st_book_fit(st_core *core, st_booking *b, st_window w, const st_booked_vec *more,
                        st_book_quote *ret);
void st_book_set_window(const st_core *core, st_booking *b, st_window w);
void st_book_carrier(const st_core *core, st_carrier *ret);
/* What bookings but one have in a stretch of time. */
void st_book_list(const st_core *core, uint64_t but, int64_t from_ms, int64_t to_ms,
                  st_booked_vec *ret);
st_booked st_book_row(const st_booking *b);

/* book_quota.c */
/* Whether the booking, in that window and beside what is booked and `more`, passes a limit of its account or of one above. */
bool st_book_over_limit(const st_core *core, const st_booking *b, st_window w,
                        const st_booked_vec *more, st_book_over *ret);
/* Whether a booking that is new, with its window set, passes a limit of the pool if it is there. */
bool st_book_over_pool(const st_core *core, const st_booking *b, int32_t pool, st_book_over *ret);

/* book_plan.c */
/* A job that has, or is to have, devices, and counts as there for good. */
typedef struct st_book_also {
    const st_job *job;
    const st_grant *grants;
} st_book_also;
/* Places for tasks of the booking in its window: `only`, which may be NULL, says which tasks need one. A fault is mended
 * wherever there is a place (`anywhere`); all others keep to the limits of pools. */
bool st_book_find_plan(st_core *core, const st_booking *b, const st_book_also *also,
                       const uint8_t *only, bool anywhere, st_grant *ret);
/* The plan has changed: CPU and RAM of all of it; and its slots. */
void st_book_add_up(const st_core *core, st_booking *b);
void st_book_add_slots(st_core *core, st_booking *b);
void st_book_remove_slots(st_core *core, const st_booking *b);
/* Whether the job may be guaranteed on the grants; plans are moved out of its way where that is possible. */
bool st_book_make_way(st_core *core, const st_job *job, const st_grant *grants, st_effects *fx);
/* A place for the job on what is free now and booked by nobody before it ends. */
bool st_book_place_clear(st_core *core, const st_job *job, int32_t type, st_grant *ret);
/* A node takes nobody any more, or has lost a label: plans on it that cannot stay move. Where there is no other place for one they stay as they are, which
 * is said; or, with `force`, that one is degraded. */
int st_book_leave_node(st_core *core, const st_node *node, bool force, st_effects *fx, st_err *err);
/* A pool gives out no whole GPUs any more: likewise. */
int st_book_leave_pool(st_core *core, int32_t pool, bool force, st_effects *fx, st_err *err);
/* Look for a place for what is degraded; whether one was found. */
bool st_book_mend(st_core *core, st_effects *fx);
void st_book_fence(st_core *core, const st_booking *b);
void st_book_fence_node(st_core *core, int32_t node);
/* What fences leave of guarantees. */
void st_book_promises(st_core *core);
int64_t st_book_cpu_m(const st_core *core, const st_booking *b, const st_grant *g);
int64_t st_book_ram_mib(const st_core *core, const st_booking *b, const st_grant *g);
/* book_clock.c */
void st_book_expire(st_core *core, st_effects *fx);
void st_book_set_due(st_core *core);
/* Everybody who is on the booking's devices and would be when it begins is told to leave. */
void st_book_clear_out(st_core *core, const st_booking *b, st_effects *fx);
/* Those who were told to leave for it may stay. */
void st_book_spare(st_core *core, const st_booking *b, st_effects *fx);

/* book_run.c */
/* Start jobs inside their bookings, or have room made for them there. */
bool st_book_run(st_core *core, st_effects *fx);
/* A job that waits goes into a booking of its account; or borrows what others leave idle of theirs. */
bool st_book_enter_own(st_core *core, st_job *job, st_effects *fx);
bool st_book_lend(st_core *core, st_job *job, int32_t type, st_effects *fx);
/* Whether it could. */
bool st_book_could_enter(st_core *core, const st_job *job);
bool st_book_could_lend(st_core *core, const st_job *job, int32_t type);
/* Nodes that were set in a what-if; others have nothing. */
const st_view *st_book_seen(void *core, const st_node *node);
/* Open the fences of the grants' nodes for somebody who may pass, and close them. */
void st_book_ajar(const st_core *core, const st_job *job, const st_grant *grants, bool on);

#endif
