/*
 * The inside of the control loop. Private to src/control.
 */
#ifndef ST_CONTROL_STATE_H
#define ST_CONTROL_STATE_H

#include <jansson.h>

#include "control/control.h"
#include "control/follower.h"
#include "log/log.h"
#include "state/state.h"

/* load.c: from the store to a core that goes on. */
/* What playing rows of a log needs from row to row; its effects and notes are those of the last. */
typedef struct st_replay {
    st_arena *arena;
    st_effects fx;
    st_notes notes;
} st_replay;

/* Plays one row into core and meter. `strict`: an event that is refused is an error. */
int st_replay_play(st_control *ctl, st_replay *rp, const st_log_row *row, bool strict, st_err *err);
void st_replay_done(st_replay *rp);
int st_control_load(st_control *ctl, st_err *err);
void st_control_unload(st_control *ctl);
/* For looking at a store without changing it: nothing is loaded yet. Nobody is told anything. */
int st_control_open_copy(st_store *store, st_control **ret, st_err *err);
void st_control_free_copy(st_control *ctl);
ST_DEFINE_FREEP(st_control, st_control_free_copy)

/* pace.c: a pass that has become long comes behind the answers. */
bool st_pace_due(const st_control *ctl,
                 bool last); /* what is owed is to be paid now; last: whatever the time */
int64_t st_pace_wait_ms(const st_control *ctl); /* until then */
void st_pace_pass(st_tx *tx); /* the pass for what was applied, or the note that it comes later */

/* commands.c: finds a live job that the caller may change. One that it may not see is not there. */
int st_tx_need_job(st_tx *tx, const st_identity *who, uint64_t id, st_live **ret, st_err *err);

/* rows.c: what a transaction changed, as rows; and afterwards, as orders and notices. */
void st_control_touch(st_control *ctl, st_live *live);
void st_control_add_live(st_control *ctl, st_live *live);
void st_control_drop_live(st_control *ctl, st_live *live);
/* The head of an array, made when it is first asked for; NULL for a text of NULL. */
st_array_head *st_control_head(st_control *ctl, uint64_t array, const char *text);
/* With the whole document; good as long as that. */
void st_live_row(st_control *ctl, const st_live *live, st_job_row *ret);
/* As it is written: of a piece, its own part of the document. */
void st_live_row_own(const st_live *live, st_job_row *ret);
/* Where it is, as the core has it: another place is another stay. */
void st_live_place(st_control *ctl, st_live *live);
int st_rows_write(st_tx *tx, st_err *err);
void st_rows_tell(st_tx *tx);
void st_rows_forget_ended(st_control *ctl); /* forget what ended */
void st_control_order_all(st_control *ctl);
/* The time limit is another one: for its row, and, after the commit, for its engine. */
void st_live_limit(st_live *live, int64_t limit_ms);
void st_live_deadline(st_live *live, int64_t by_ms, bool hard, bool at_risk);
void st_control_retime(st_control *ctl, uint64_t id);
/* Who holds it back, for its row. */
void st_live_held(st_live *live, int held_by);

/* flow.c: what an item waits for is looked up into s->afters. */
int st_flow_look_up(st_tx *tx, st_cmd_submit *s, const st_submit_item *item, st_err *err);

/* allowed.c: what jobs, accounts and tokens are charged for. */
/* The item and, if it is the first piece of an array, all of them; refused: none. */
int st_charge_items(st_tx *tx, st_submit_item *items, size_t n, const st_identity *who,
                    st_err *err);
void st_uncharge_item(st_control *ctl, const st_submit_item *item);
/* Whether the job waits may have changed. */
void st_live_charge(st_control *ctl, st_live *live);
int st_charge_token(st_tx *tx, const st_identity *who, const char *account, st_err *err);
int st_charge_account(st_tx *tx, const st_identity *who, const char *parent, st_err *err);
void st_uncharge_account(st_tx *tx, const char *parent);
/* Who pays for what an account has: itself, or the next above it that is there. */
const char *st_payer(st_control *ctl, const char *account);
void st_count_tokens(st_control *ctl, int64_t now);
/* The account goes: who has its name next has none of its limits. */
int st_unlimit_account(st_tx *tx, const char *account, st_err *err);
/* views.c: those of everybody in an account that is removed; and what all accounts have, at a start. */
int st_views_forget(st_tx *tx, const char *account, st_err *err);
int st_count_views(st_control *ctl, st_err *err);
/* Accounts that are new in the core. */
void st_count_accounts(st_control *ctl);
int st_allowed_load(st_control *ctl, st_err *err);

/* used.c: a report of what a task used, and what is kept of it when the job ends. */
void st_control_used(st_tx *tx, const st_report *report);
/* What came for jobs that are over goes into their rows; at the end of a transaction. */
void st_control_used_late(st_tx *tx);
void st_live_used_write(st_live *live);

/* bookings.c: what an effect means for the record of a booking; and the last number that was given out. */
int st_booking_follow(st_tx *tx, const st_effect *fx, st_err *err);
/* Whether a job may run in its booking: it is its account's, or of one above it. Others' are not there. */
int st_booking_admit(const st_tx *tx, const st_job_spec *spec, st_err *err);
int st_bookings_load(st_control *ctl, st_err *err);
/* booking_index.c. The organisation of an account, by number. */
int32_t st_organisation(const st_tree *tree, int32_t account);
int st_booking_index_put(st_tx *tx, const char *account, const char *name, st_err *err);
int st_booking_index_erase(st_tx *tx, const char *account, const char *name, st_err *err);
/* Once in the life of a store: those that are there come into the index. */
int st_bookings_index(st_tx *tx, st_err *err);
/* prepare.c: images on nodes before bookings begin. */
int st_prepare_load(st_control *ctl, st_err *err);
int64_t st_prepare_next(const st_control *ctl);
void st_prepare_turn(st_control *ctl, int64_t now);
/* An agent has one, or cannot have it; `key` is how it names it. */
int st_booking_image(st_tx *tx, const st_report *rep, const char *key, st_err *err);
/* After the commit: whoever listens hears what is new. */
void st_booking_image_news(st_control *ctl);
/* Its record, and the next version of it. */
json_t *st_booking_record(const st_tx *tx, uint64_t id, int *ret_r, st_err *err);
int st_booking_put(st_tx *tx, uint64_t id, json_t *doc, st_err *err);
/* How its window was written; false: as an instant, or nobody knows. */
struct st_wall;
bool st_booking_wall(const json_t *doc, struct st_wall *ret);
/* What is known of the clock (control/mark.c): read, and written where it has changed. */
int st_mark_load(st_control *ctl, st_err *err);
int st_mark_follow(st_tx *tx, st_err *err);

/* nodes.c: what is kept of nodes beside the core. */
void st_control_tell_node(st_control *ctl, int32_t id);
void st_control_tell_nodes(st_control *ctl);
void st_node_flags(st_store *store, const char *node, st_flag_fn fn, void *ctx);
void st_node_key(st_store *store, const char *node, char ret[ST_KEY_TEXT], bool *ret_rejoin);
/* Tells the core, once, that the node has an agent. */
int st_node_has_agent(st_tx *tx, int32_t id, bool tests, st_err *err);
/* The core hears what its agent says and owners have added (control/labels.c). */
int st_node_know_labels(st_tx *tx, int32_t id, st_err *err);
void st_control_know_agents(st_control *ctl);
/* Writes the epoch if it is still this stintd's; ST_ESTATE: another one decides since. */
int st_epoch_confirm(st_control *ctl, st_err *err);
/* A higher one, in the open transaction; and what follows its commit. */
int st_epoch_take(st_control *ctl, int64_t epoch, st_err *err);
void st_epoch_taken(st_control *ctl);
/* control/engines.c. Completes what a pool says of its engine, or refuses it. */
int st_pool_engine(const st_control *ctl, st_event *event, st_err *err);
/* Whether nodes come into the pool in this way. */
int st_pool_takes(const st_control *ctl, int32_t pool, st_engine_nodes nodes, st_err *err);
int st_node_found(st_tx *tx, const st_report *rep, st_err *err);
/* After a start: pools have what their engines can do today. */
void st_control_follow_engines(st_control *ctl);
/* All orders have been given; not while a restored store is looked at. */
void st_control_complete(const st_control *ctl);
int st_node_fail(st_tx *tx, int32_t id, const char *reason, st_err *err);
/* What an engine says of a node: failed, held (draining) or well again. */
int st_node_report(st_tx *tx, const st_report *report, st_err *err);
/* Somebody has it ready: what it was flagged with is over. */
int st_node_unflag(st_tx *tx, int32_t id, st_err *err);
/* An effect goes into its history. */
int st_node_follow(st_tx *tx, const st_effect *fx, st_err *err);
/* trials.c: what a test has found; doc: its results, JSON, or NULL. */
int st_node_tested(st_tx *tx, const st_report *report, const char *doc, st_err *err);
/* What its agent is told of the test that is asked for: level, GPU type and limits, JSON; the caller frees it. */
char *st_trial_orders(st_control *ctl, const st_node *node);
/* What is kept of what a node says of a test; said NULL: it says nothing. */
json_t *st_trial_entry(const json_t *said);
/* A report of what is wrong with what a node says; *ret_new: it was not known. */
int st_node_flag(st_tx *tx, const st_report *rep, bool *ret_new, st_err *err);
/* Revokes the token of the time before keys, if there is one. */
int st_node_drop_token(st_tx *tx, int64_t *ret_revoked, int64_t token, st_err *err);
/* meta: the highest number a token ever had, once one was removed. */
#define ST_LAST_TOKEN "last_token"

/* parted.c: after such rows. The core and the table of jobs agree again; then, with the jobs loaded, their rows, the meter
 * and a snapshot. */
int st_parted_agree(st_control *ctl, st_err *err);
int st_parted_end(st_control *ctl, st_err *err);

/* restore.c. What the store says of it, before anything else is made of it: numbers that may not come back. */
int st_restoring_load(st_control *ctl, st_err *err);
/* The lowest epoch that agents can take for a new one. */
int64_t st_restoring_epoch(const st_control *ctl);
/* The engine is told how much it may say; after its nodes and jobs. */
void st_restoring_lead(st_control *ctl);
/* One look at how far agents are; true: all is clear, and `tx` has to be written. */
bool st_restoring_step(st_tx *tx);
/* `tx` is written. */
void st_restoring_end(st_control *ctl);
/* Another job at this moment would be more than can be told from those of a lost history. */
int st_restoring_room(const st_tx *tx, st_err *err);

/* notices.c; and what a transaction has to tell: as its rows, and once it is durable. */
int st_notices_load(st_control *ctl, st_err *err);
void st_noticers_free(st_control *ctl);
int st_notices_follow(st_tx *tx, st_err *err);
void st_notices_out(st_control *ctl);

/* prune.c: what is too old goes, a little at a time. */
void st_prune(st_tx *tx);

/* refusals.c */
int64_t st_refusals_next(st_control *ctl, int64_t now);
void st_refusals_write(st_tx *tx);

/* secrets.c: the key and what is sealed under it; what is not, is sealed first. */
int st_secrets_open(st_control *ctl, st_err *err);

/* ---- keyed.c: idempotency keys, counted at the account of the token they came with -------------------- */

int st_key_charge(st_tx *tx, const char *owner, int64_t n, st_err *err);
/* Counts them anew: some have expired. */
int st_count_keys(st_control *ctl, st_err *err);

/* follower.c: a job is new. */
void st_tx_tell_job(st_tx *tx, const st_live *live);

/* keyed.c: runs it, unless it was done under its key before. */
int st_cmd_run(st_tx *tx, st_cmd *cmd, st_err *err);

/* loop.c */
int st_control_snapshot(st_control *ctl, st_err *err);

/* catalogues.c */
void st_catalogues_new(st_control *ctl);
int st_catalogues_load(st_control *ctl, st_err *err);
void st_catalogues_free(st_control *ctl);

#endif
