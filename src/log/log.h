/*
 * What rows of the log and snapshots are made of (control writes them; replay reads them as well).
 *
 * Notes are what a row says to the meter, beside the events for the core.
 *
 * The meter follows from the core's effects and from a few things the core has no use for: what tasks
 * used, when a job's work really ended, what bursts were agreed, and when intervals were cut. They are written
 * behind the events of their row, so that playing the log gives the same records.
 *
 * One note is for whoever plays the row: where answering could not wait for a pass, there was none (control/pace.c).
 *
 * A row is its events, then, if there are any notes, a byte that begins no event and the notes. They take
 * effect in this order: USED, the core's effects with ENDED, AGREE, BEGIN or CUT.
 */
#ifndef ST_LOG_LOG_H
#define ST_LOG_LOG_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "core/metering.h"
#include "model/record.h"

/* Who writes rows and snapshots: the last release, and a + since it went on. What another one wrote may be decided
 * otherwise (control/parted.c). */
#define ST_LOG_VERSION ST_VERSION "+"

/* X(id, numbers it has) */
#define ST_NOTE_TABLE(X)                                                                           \
    X(ST_NOTE_USED, 7)  /* job, stay, task, seen, busy, energy, memory */                          \
    X(ST_NOTE_ENDED, 2) /* job, when its work ended */                                             \
    X(ST_NOTE_AGREE, 2) /* account, milli-GPU of burst that were agreed */                         \
    X(ST_NOTE_BEGIN, 0) /* metering begins here */                                                 \
    X(ST_NOTE_CUT, 0)   /* all intervals end here: a day, a month, other prices */                 \
    X(ST_NOTE_LATER, 0) /* its events were not followed by a pass: that comes with a later row */  \
    X(ST_NOTE_PASS, 0)  /* which has this note */                                                  \
    X(ST_NOTE_STARTED,                                                                             \
      2)                 /* job, since when its tasks have really run, in the stay that is open */ \
    X(ST_NOTE_INSIDE, 0) /* from here on, what borrows inside a floor is told as such */           \
    X(ST_NOTE_BEYOND, 1) /* job: no booking pays for it, it borrows from here on */                \
    X(ST_NOTE_WITHIN, 1) /* job: the booking it runs in is paid for */                             \
    X(ST_NOTE_LENT, 1)   /* job: from here on, its GPUs are lent by other bookings, or by none */
typedef enum st_note_kind {
#define X(id, n) id,
    ST_NOTE_TABLE(X)
#undef X
        ST_NOTE_COUNT
} st_note_kind;

#define ST_NOTE_NUMBERS 7

typedef struct st_note {
    st_note_kind kind;
    int64_t v[ST_NOTE_NUMBERS];
} st_note;

typedef ST_VEC(st_note) st_notes;

st_note st_note_used(uint64_t job, int stay, int task, const st_sums *sums);
void st_note_sums(const st_note *note, st_sums *ret);
/* The last note of the kind about v[0]; NULL: none. */
const st_note *st_notes_find(const st_notes *notes, st_note_kind kind, int64_t about);

/* Whether a row with these notes is followed by a pass: one with events is, unless that was put off. */
bool st_notes_pass(const st_notes *notes, bool events);

/* Nothing when there are none. */
void st_notes_write(const st_notes *notes, st_strbuf *out);
/* Whether notes begin at this byte of a row. */
bool st_notes_here(const char *data, size_t len, size_t at);
int st_notes_read(const char *data, size_t len, size_t at, st_notes *ret, st_err *err);

/* The meter's part of a row: its notes, and the effects the core has just had from it. *meter is made by
 * BEGIN; NULL before that. Records are added to *out. */
void st_log_meter(const st_core *core, const st_effects *fx, st_notes *notes, int64_t now,
                  st_meter **meter, st_records *out);

/* ---- snapshots ------------------------------------------------------------------------------ */

/* In this order; a part that is empty is not there. */
typedef enum st_snap_part {
    ST_SNAP_CORE,
    ST_SNAP_METER,
    ST_SNAP_LEDGER,
    ST_SNAP_BOOKS,
    ST_SNAP_FLOORS, /* that the books were told */
    ST_SNAP_PARTS,
} st_snap_part;

typedef struct st_snapshot {
    const char *data[ST_SNAP_PARTS]; /* point into what was opened */
    size_t len[ST_SNAP_PARTS];
    bool money; /* false: from before there was any; the core is all there is */
} st_snapshot;

/* Looks at the frame and its hash; what the parts say is their owners' to check. */
int st_snapshot_open(const char *data, size_t len, st_snapshot *ret, st_err *err);

/* Writing: begin, the parts one after another, then end with their lengths. `out` is empty before. */
void st_snapshot_begin(st_strbuf *out);
void st_snapshot_end(st_strbuf *out, const int64_t len[ST_SNAP_PARTS]);

#endif
