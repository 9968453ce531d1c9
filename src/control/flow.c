/*
 * What keeps jobs waiting besides room: those they name when they are submitted, holds, and throttles of arrays.
 *
 * 1 A name is looked up in the very transaction that submits the job: what has ended by then is settled here, for the core
 *   does not know it any more; what has not, the core follows.
 * 2 A job that the submitter may not see is as unknown as one that is not there, in the same words.
 * 3 Who holds a job has a strength: a user 1, an admin more, the more the higher the account of his token stands.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "control/state.h"

/* ---- whom a job waits for ------------------------------------------------------------------ */

static int no_job(const char *text, st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_fail(err, ST_ENOENT, "there is no job %s", st_quote(q, text));
}

/* Whether it has ended in this very transaction, and how; its row is yet to be written. */
static bool just_ended(const st_tx *tx, uint64_t id, st_job_state *ret)
{
    for (size_t i = tx->fx.list.n; i > 0; i--) {
        const st_effect *fx = &tx->fx.list.v[i - 1];

        if (fx->job != id || fx->kind != ST_FX_END)
            continue;
        *ret = fx->state;
        return true;
    }
    return false;
}

static bool comes_true(st_after_how how, bool well)
{
    return how == ST_AFTER_ANY || (how == ST_AFTER_OK) == well;
}

static int in_vain(const char *what, const char *text, const char *state, st_after_how how,
                   st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_fail(err, ST_ESTATE,
                   "%s %s has ended (%s), so a job that waits for it to %s can never start", what,
                   st_quote(q, text), state, how == ST_AFTER_OK ? "be done" : "fail");
}

static int stop_at_one(void *ctx, const st_job_row *row, st_err *err)
{
    (void)row, (void)err;
    *(bool *)ctx = true;
    return 1;
}

/* Whether the array has such a job: one that is not over, or one that has not ended well. */
static int any_of(st_tx *tx, uint64_t array, bool live, bool *ret, st_err *err)
{
    static const char *const bad[] = {"failed", "timeout", "cancelled"};
    st_job_filter f = {.part_of = (int64_t)array, .live = live, .limit = 1, .own_part = true};

    *ret = false;
    f.within = st_directory_range(tx->ctl->dir, "");
    if (!live) {
        f.states = bad;
        f.nstates = ST_ARRAY_LEN(bad);
    }
    return st_tx_fault(tx, st_store_jobs_list(tx->ctl->store, &f, stop_at_one, ret, err), err);
}

/* A whole array: *ret_open, the core follows it; otherwise it is settled. */
static int look_array(st_tx *tx, const st_after_ask *ask, bool *ret_open, st_err *err)
{
    bool spoilt = false, live = false, bad = false;
    int r;

    *ret_open = st_core_array(tx->ctl->core, ask->id, NULL, &spoilt);
    r = *ret_open ? 0 : any_of(tx, ask->id, true, &live, err);
    if (r == 0 && live)
        return st_fail(
            err, ST_ESTATE,
            "array %s was submitted to an older stintd and can only be waited for job by "
            "job; name its jobs",
            ask->text);
    if (r == 0 && !spoilt && ask->how != ST_AFTER_ANY)
        r = any_of(tx, ask->id, false, &bad, err);
    spoilt |= bad;
    if (r < 0)
        return r;
    if (*ret_open)
        return ask->how == ST_AFTER_OK && spoilt
                   ? st_fail(err, ST_ESTATE,
                             "a job of array %s has not ended well, so one that waits for all of "
                             "them to be done can never start",
                             ask->text)
                   : 0;
    return comes_true(ask->how, !spoilt)
               ? 0
               : in_vain("array", ask->text, spoilt ? "not all done" : "done", ask->how, err);
}

static int look_job(st_tx *tx, const st_after_ask *ask, const st_job_row *row, bool *ret_open,
                    st_err *err)
{
    st_job_state state;
    const char *name = row->state;

    *ret_open = st_core_job(tx->ctl->core, ask->id) != NULL;
    if (*ret_open)
        return 0;
    if (just_ended(tx, ask->id, &state))
        name = st_job_state_name(state);
    return comes_true(ask->how, strcmp(name, st_job_state_name(ST_JOB_DONE)) == 0)
               ? 0
               : in_vain("job", ask->text, name, ask->how, err);
}

static int look_one(st_tx *tx, const st_identity *who, const st_after_ask *ask, st_await *ret,
                    bool *ret_open, st_err *err)
{
    st_control *ctl = tx->ctl;
    ST_CLEANUP(st_arena_freep) st_arena *arena = NULL;
    const st_live *live = st_control_known(ctl, ask->id);
    st_job_row row = {0};
    int r = 0;

    if (ask->id == 0)
        return no_job(ask->text, err);
    if (live) {
        st_live_row_own(live, &row);
    } else {
        arena = st_arena_new();
        r = st_store_job_get(ctl->store, (int64_t)ask->id, arena, &row, err);
        if (r < 0)
            return r == -ST_ENOENT ? no_job(ask->text, err) : st_tx_fault(tx, r, err);
    }
    if (!st_tx_sees(tx, row.account, who->account))
        return no_job(ask->text, err);
    *ret = (st_await){.id = ask->id, .how = ask->how, .array = row.part_of == row.id && !ask->only};
    return ret->array ? look_array(tx, ask, ret_open, err) : look_job(tx, ask, &row, ret_open, err);
}

/* The pieces of an array wait for the same, which is looked up once for as long as none of it ends. */
static bool still_open(const st_tx *tx, const st_cmd_submit *s, const st_submit_item *item)
{
    if (!item->afters || s->looked_up != item->afters)
        return false;
    for (int i = 0; i < s->nafters; i++)
        if (s->afters[i].array ? !st_core_array(tx->ctl->core, s->afters[i].id, NULL, NULL)
                               : !st_core_job(tx->ctl->core, s->afters[i].id))
            return false;
    return true;
}

int st_flow_look_up(st_tx *tx, st_cmd_submit *s, const st_submit_item *item, st_err *err)
{
    int r = 0;

    if (still_open(tx, s, item))
        return 0;
    s->looked_up = NULL;
    s->nafters = 0;
    for (int i = 0; r == 0 && i < item->nafters; i++) {
        bool open = false;

        r = look_one(tx, &s->who, &item->afters[i], &s->afters[s->nafters], &open, err);
        s->nafters += r == 0 && open;
    }
    if (r == 0)
        s->looked_up = item->afters;
    return r;
}

/* ---- holds --------------------------------------------------------------------------------- */

static int strength(const st_tx *tx, const st_identity *who)
{
    const st_tree *tree = st_core_tree(tx->ctl->core);
    int32_t id = who->account[0] ? st_tree_find(tree, who->account) : ST_ROOT;

    if (who->role == ST_ROLE_MEMBER)
        return 1;
    return 2 + ST_DEPTH_MAX - (id >= 0 ? st_tree_account(tree, id)->depth : ST_DEPTH_MAX);
}

static int run_hold(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_job *c = (st_cmd_job *)cmd;
    st_event event = {.kind = ST_EV_HOLD};
    char text[ST_ID_TEXT];
    st_live *live;
    int r = st_tx_need_job(tx, &c->who, c->id, &live, err);

    if (r < 0)
        return r;
    event.u.hold.id = c->id;
    event.u.hold.on = c->hold;
    event.u.hold.by = strength(tx, &c->who);
    r = st_tx_apply(tx, &event, err);
    if (r < 0)
        return r;
    st_live_held(live, st_core_job(tx->ctl->core, c->id)->held_by);
    st_control_touch(tx->ctl, live);
    st_control_id_text(tx->ctl, c->id, text);
    return st_tx_audit(tx, &c->who, c->hold ? "job.hold" : "job.release", live->account, text, NULL,
                       err);
}

void st_cmd_job_hold(st_cmd_job *cmd)
{
    cmd->cmd.run = run_hold;
}

/* ---- throttles ----------------------------------------------------------------------------- */

static int run_throttle(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_job *c = (st_cmd_job *)cmd;
    st_event event = {.kind = ST_EV_ARRAY};
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    char text[ST_ID_TEXT], detail[64];
    st_job_row row;
    int r = st_store_job_get(tx->ctl->store, (int64_t)c->id, arena, &row, err);

    st_control_id_text(tx->ctl, c->id, text);
    if (r < 0 && r != -ST_ENOENT)
        return st_tx_fault(tx, r, err);
    if (r < 0 || row.part_of != row.id || !st_tx_sees(tx, row.account, c->who.account))
        return st_fail(err, ST_ENOENT, "there is no array \"%s\"", text);
    if (c->who.role == ST_ROLE_MEMBER &&
        (strcmp(row.account, c->who.account) != 0 || strcmp(row.user_name, c->who.user) != 0))
        return st_fail(err, ST_EPERM,
                       "array %s belongs to %s in account %s: ask them, or an admin of the account",
                       text, row.user_name, row.account);
    if (!st_core_array(tx->ctl->core, c->id, NULL, NULL))
        return st_fail(err, ST_ESTATE, "every job of array %s is over", text);
    event.u.array.id = c->id;
    event.u.array.throttle = c->throttle;
    r = st_tx_apply(tx, &event, err);
    if (r < 0)
        return r;
    snprintf(detail, sizeof detail, "{\"throttle\":%d}", c->throttle);
    return st_tx_audit(tx, &c->who, "array.throttle", row.account, text, detail, err);
}

void st_cmd_array_throttle(st_cmd_job *cmd)
{
    cmd->cmd.run = run_throttle;
}
