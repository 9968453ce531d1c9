/*
 * The follower: what was committed, kept beside the writer for everybody who asks.
 *
 * The loop hands each committed transaction over as it wrote it: the log's row, the entries of the books and what is
 * known beside them. A thread plays it into a second core, meter and ledger. Questions are asked of these, from any
 * thread; the loop neither waits for them nor hears of them. doc/decisions/0023 says why it is made so.
 *
 * Invariants:
 *  1 The copy is what the writer was after some transaction, never between two; hashes are compared at every row.
 *  2 Whoever asks sees everything that was answered before it asked, unless that takes longer than ST_READ_WAIT_MS.
 *  3 The loop's part of a transaction is to append it to a list. A follower that fell behind, or found another hash
 *    than the writer's, is given a whole new state instead.
 */
#ifndef ST_CONTROL_FOLLOWER_H
#define ST_CONTROL_FOLLOWER_H

#include "control/control.h"

#define ST_READ_WAIT_MS 2000

/* Several may look at once; who lets the core compute (st_core_explain) uses its scratch and must be alone. */
typedef enum st_read_how { ST_READ_SHARED, ST_READ_ALONE } st_read_how;

/* The transaction has no store to write to: it is for st_tx_core, st_tx_now and the questions of billing/money.h. */
typedef int st_read_fn(void *ctx, st_tx *tx, st_err *err);

/* Calls fn with the committed state, no older than this moment and than `at_least` (0: any); *ret_position is the row
 * of the log it stands behind. From any thread but the loop's. Fails with what fn says; with ST_EINVAL when there is
 * no such position yet, with ST_EDOWN when stintd does not run. */
int st_control_read(st_control *ctl, st_read_how how, int64_t at_least, st_read_fn *fn, void *ctx,
                    int64_t *ret_position, st_err *err);

/* In a question: which state it is. Another number is another state, also at the same position, and the same one is the
 * same but for the time. */
uint64_t st_tx_state(const st_tx *tx);

/* The last row of the log that is durable; from any thread. */
int64_t st_control_position(st_control *ctl);

/* The list "node-history" or "node-tests" of a node, the newest last; NULL: there is none. */
json_t *st_tx_node_past(st_tx *tx, const char *kind, const char *node);

/* What a node is flagged with (model/said.h), and the key that is bound to it. */
typedef void (*st_flag_fn)(void *ctx, st_flag flag, const char *reason, int64_t since_ms,
                           int64_t last_ms);
void st_tx_flags_of(st_tx *tx, const char *node, st_flag_fn fn, void *ctx);
void st_tx_key_of(st_tx *tx, const char *node, char ret[ST_KEY_TEXT], bool *ret_rejoin);

typedef struct st_follower_stats {
    int64_t committed;
    uint64_t rows, seeds; /* that were played; that it was given a whole state */
    size_t waiting;       /* transactions it has not played yet */
} st_follower_stats;
void st_control_follower_stats(st_control *ctl, st_follower_stats *ret);

#endif
