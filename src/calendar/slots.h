/* Which devices of a node are booked, and when.
 *
 * A slot is one task of a booking's plan. Slots of one node are kept in order of time; two that share a device never
 * overlap, which is for the caller to see to. */
#ifndef ST_CALENDAR_SLOTS_H
#define ST_CALENDAR_SLOTS_H

#include "base/vec.h"
#include "model/booking.h"

typedef struct st_slot {
    uint64_t booking;
    int64_t close_ms; /* others are told to leave */
    int64_t from_ms, clear_ms;
    int64_t cpu_m, ram_mib;
    uint16_t devs;
} st_slot;

typedef ST_VEC(st_slot) st_slot_vec;

typedef struct st_slots st_slots;

st_slots *st_slots_new(void);
void st_slots_free(st_slots *slots);

void st_slots_add(st_slots *slots, int32_t node, st_slot slot);
void st_slots_remove(st_slots *slots, int32_t node, uint64_t booking);

/* All of a node, in order of time; NULL: none. */
const st_slot_vec *st_slots_of(const st_slots *slots, int32_t node);

/* What bookings other than `but` have of a node at any time in [from, to): devices, and the most CPU and RAM they have
 * at one time. */
typedef struct st_slots_use {
    uint16_t devs;
    int64_t cpu_m, ram_mib;
} st_slots_use;

st_slots_use st_slots_in(const st_slots *slots, int32_t node, int64_t from_ms, int64_t to_ms,
                         uint64_t but);

#endif
