/*
 * A restored store, from its start until it decides again (control/restore.h).
 *
 * Kept in meta:
 *   restore    {"state", "from", "marked_ms"}: state is that of ST_RESTORE_TABLE
 *   branch     the epoch in which the last restore was accepted
 *   job_floor  no job has a number up to this one but those that have a row
 *   last_token likewise of tokens
 */
#include "control/restore.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "billing/billing.h"
#include "control/bookings.h"
#include "control/state.h"

#define META       "restore"
#define BRANCH     "branch"
#define JOB_FLOOR  "job_floor"
#define EPOCHS_OFF 1000 /* what an agent may say beyond what can be; more is not true */

static const char *const words[] = {
#define X(id, word) word,
    ST_RESTORE_TABLE(X)
#undef X
};

/* ---- what the store says -------------------------------------------------------------------------- */

static int number(st_store *store, const char *key, int64_t *ret, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const char *text;
    int r = st_store_meta_get(store, key, arena, &text, err);

    *ret = r == 0 ? strtoll(text, NULL, 10) : 0;
    return r == -ST_ENOENT ? 0 : r;
}

static int put_number(st_store *store, const char *key, int64_t n, st_err *err)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRId64, n);
    return st_store_meta_put(store, key, text, err);
}

static int put_state(st_store *store, const st_restoring *r, st_restore_state state, st_err *err)
{
    json_t *root = json_pack("{s:s,s:s,s:I}", "state", words[state], "from", r->from, "marked_ms",
                             (json_int_t)r->marked_ms);
    ST_CLEANUP(st_freep) char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

    json_decref(root);
    return text ? st_store_meta_put(store, META, text, err)
                : st_fail(err, ST_EINVAL, "the name of the backup is not UTF-8");
}

static int get_state(st_store *store, st_restoring *ret, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const char *text, *state, *from;
    json_t *root;
    int r = st_store_meta_get(store, META, arena, &text, err);

    ret->state = ST_RESTORE_NONE;
    if (r < 0)
        return r == -ST_ENOENT ? 0 : r;
    root = json_loads(text, 0, NULL);
    state = json_string_value(json_object_get(root, "state"));
    from = json_string_value(json_object_get(root, "from"));
    for (size_t i = 0; state && i < ST_ARRAY_LEN(words); i++)
        if (strcmp(words[i], state) == 0)
            ret->state = (int)i;
    ret->marked_ms = json_integer_value(json_object_get(root, "marked_ms"));
    snprintf(ret->from, sizeof ret->from, "%s", from ? from : "");
    if (!state)
        r = st_fail(err, ST_ECORRUPT, "the store's " META " is damaged; restore a backup");
    json_decref(root);
    return r;
}

/* Numbers go on from a clock: one that is behind would give out again what was given out. */
static int check_clock(int64_t marked_ms, int64_t last_ms, st_err *err)
{
    if (marked_ms >= last_ms)
        return 0;
    return st_fail(err, ST_ESTATE,
                   "the machine's clock is %" PRId64
                   " s behind the last moment in the backup, so it "
                   "is wrong; set it right and run stintd --restore again",
                   (last_ms - marked_ms) / 1000);
}

int st_restoring_load(st_control *ctl, st_err *err)
{
    int64_t floor = 0;
    int r = get_state(ctl->store, &ctl->restoring, err);

    if (r == 0)
        r = number(ctl->store, BRANCH, &ctl->restoring.branch, err);
    if (r == 0)
        r = number(ctl->store, JOB_FLOOR, &floor, err);
    if (r < 0)
        return r;
    ctl->last_id = ST_MAX(ctl->last_id, (uint64_t)floor);
    if (ctl->restoring.state == ST_RESTORE_NONE)
        return 0;
    r = check_clock(ctl->restoring.marked_ms, st_control_last_ms(ctl), err);
    if (r < 0)
        return r;
    ctl->last_token =
        ST_MAX(ctl->last_token, st_restore_floor(ST_FLOOR_TOKENS, ctl->restoring.marked_ms));
    st_control_say(ctl, "event=restored state=%s from=\"%s\" log_seq=%" PRId64 "%s",
                   words[ctl->restoring.state], ctl->restoring.from, ctl->log_seq,
                   ctl->restoring.state == ST_RESTORE_WAITING ? " do=\"stint admin restore\"" : "");
    return 0;
}

int64_t st_restoring_epoch(const st_control *ctl)
{
    if (ctl->restoring.state == ST_RESTORE_NONE)
        return 0;
    return st_restore_floor(ST_FLOOR_EPOCHS, ctl->restoring.marked_ms) + 1;
}

st_restore_state st_control_restore_state(const st_control *ctl)
{
    return (st_restore_state)__atomic_load_n(&ctl->restoring.state, __ATOMIC_ACQUIRE);
}

/* As many as could be counted in the time since 2026 and no more: then the next restore knows where to go on. */
int st_restoring_room(const st_tx *tx, st_err *err)
{
    const st_control *ctl = tx->ctl;
    int64_t most = st_restore_floor(ST_FLOOR_JOBS, tx->now), next = (int64_t)ctl->last_id + 1;

    if (ctl->restoring.branch == 0 || next <= most)
        return 0;
    return st_fail(err, ST_EDOWN,
                   "there have been %" PRId64 " jobs more than stintd can number since it was "
                   "restored from a backup; try again in %" PRId64 " s",
                   next - most, (next - most) / 1000 + 1);
}

/* ---- agents --------------------------------------------------------------------------------------- */

static void look(const st_control *ctl, st_told *told, st_restore_plan *plan)
{
    st_engine *engine = ctl->options.engine;

    if (engine && engine->ops->told)
        engine->ops->told(engine, told);
    st_restore_plan_make(ctl->core, told, plan);
}

static void say_lead(const st_control *ctl, st_lead lead, const st_restore_plan *plan)
{
    st_engine *engine = ctl->options.engine;
    ST_VEC(uint64_t) adopted = {0};

    if (!engine || !engine->ops->restored)
        return;
    for (size_t i = 0; plan && i < plan->jobs.n; i++)
        if (plan->jobs.v[i].fate == ST_FATE_ADOPTED)
            st_vec_push(&adopted, plan->jobs.v[i].id);
    engine->ops->restored(engine, lead, adopted.v, adopted.n);
    st_vec_free(&adopted);
}

void st_restoring_lead(st_control *ctl)
{
    st_engine *engine = ctl->options.engine;

    ctl->restoring.clearing = false;
    if (engine && engine->ops->place)
        engine->ops->place(engine, ctl->restoring.branch, ctl->log_seq);
    if (ctl->restoring.state != ST_RESTORE_NONE)
        say_lead(ctl, ST_LEAD_LISTEN, NULL);
}

static bool all(const st_told *told, bool cleared)
{
    for (size_t i = 0; i < told->nodes.n; i++) {
        const st_told_node *n = &told->nodes.v[i];

        if (!n->over && !(cleared ? n->clear : n->heard))
            return false;
    }
    return true;
}

/* ---- the end of it -------------------------------------------------------------------------------- */

/* All books are those of the backup from here on; the cluster's, which is in every bill's file, says so. */
static int post(st_tx *tx, st_err *err)
{
    st_entry e = {.kind = ST_ENTRY_RESTORED,
                  .account = "",
                  .from_ms = tx->now,
                  .to_ms = ST_MAX(tx->ctl->restoring.marked_ms, tx->now)};

    return st_money_begun(tx->ctl) ? st_money_post(tx, &e, err) : 0;
}

/* Those whom nobody has wait again, as of the last moment the store knows of: what became of them since is not known, and
 * nobody pays for it. */
static int branch(st_tx *tx, const st_restore_plan *plan, st_err *err)
{
    st_control *ctl = tx->ctl;
    int64_t marked = ctl->restoring.marked_ms;
    uint64_t jobs = ST_MAX(ctl->last_id, (uint64_t)st_restore_floor(ST_FLOOR_JOBS, marked));
    uint64_t bookings =
        ST_MAX(ctl->last_booking, (uint64_t)st_restore_floor(ST_FLOOR_BOOKINGS, marked));
    st_event ev = {.kind = ST_EV_BRANCH};
    size_t again = 0;
    int r = st_tx_open(tx, err);

    ev.u.branch.job = ctl->last_id;
    ev.u.branch.stay = st_restore_stay(plan->stay, tx->now, marked);
    ev.u.branch.serial = st_restore_floor(ST_FLOOR_ACCOUNTS, marked);
    if (r == 0)
        r = st_tx_apply(tx, &ev, err);
    ev = (st_event){.kind = ST_EV_POLICY, .u.policy = ctl->options.policy};
    if (r == 0 && !st_control_has_policy(ctl, &ctl->options.policy))
        r = st_tx_apply(tx, &ev, err);
    for (size_t i = 0; r == 0 && i < plan->jobs.n; i++) {
        ev = (st_event){.kind = ST_EV_ABSENT, .u.id = plan->jobs.v[i].id};
        if (plan->jobs.v[i].fate == ST_FATE_ADOPTED)
            continue;
        again += plan->jobs.v[i].fate == ST_FATE_AGAIN;
        r = st_tx_apply(tx, &ev, err);
    }
    if (r == 0)
        r = post(tx, err);
    if (r == 0)
        r = put_number(ctl->store, JOB_FLOOR, (int64_t)jobs, err);
    if (r == 0)
        r = put_number(ctl->store, ST_LAST_TOKEN, ctl->last_token, err);
    if (r == 0)
        r = put_number(ctl->store, ST_LAST_BOOKING, (int64_t)bookings, err);
    if (r == 0)
        r = put_state(ctl->store, &ctl->restoring, ST_RESTORE_NONE, err);
    if (r < 0)
        return st_tx_fault(tx, r, err);
    ctl->last_id = jobs;
    ctl->last_booking = bookings;
    st_control_say(ctl, "event=restore_done branch=%" PRId64 " again=%zu adopted=%zu",
                   ctl->restoring.branch, again, plan->jobs.n - again);
    return 0;
}

bool st_restoring_step(st_tx *tx)
{
    st_control *ctl = tx->ctl;
    st_told told = {0};
    st_restore_plan plan;
    bool ends = false;
    st_err err = {0};

    if (ctl->restoring.state != ST_RESTORE_ACCEPTED)
        return false;
    look(ctl, &told, &plan);
    if (!ctl->restoring.clearing) { /* stintd has started again since it was accepted */
        if (all(&told, false)) {
            say_lead(ctl, ST_LEAD_CLEAR, &plan);
            ctl->restoring.clearing = true;
        }
    } else if (all(&told, true)) {
        tx->branches = true;
        ends = branch(tx, &plan, &err) == 0;
    }
    st_restore_plan_done(&plan);
    st_told_done(&told);
    return ends;
}

void st_restoring_end(st_control *ctl)
{
    pthread_mutex_lock(&ctl->lock);
    __atomic_store_n(&ctl->restoring.state, ST_RESTORE_NONE, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&ctl->lock);
    ctl->restoring.clearing = false;
    say_lead(ctl, ST_LEAD_FULL, NULL);
    st_control_complete(ctl);
    st_control_know_agents(ctl);
    st_control_follow_engines(ctl);
}

/* ---- the owner's commands --------------------------------------------------------------------------- */

static int count_token(void *ctx, const st_token_row *row, st_err *err)
{
    int64_t *n = ctx;

    (void)err;
    *n += row->revoked_ms == ST_STORE_NEVER;
    return 0;
}

static void show(const st_control *ctl, st_cmd_restore *c, const st_told *told,
                 const st_restore_plan *plan)
{
    st_restore_view view = {.state = (st_restore_state)ctl->restoring.state,
                            .from = ctl->restoring.from,
                            .marked_ms = ctl->restoring.marked_ms,
                            .last_ms = st_control_last_ms(ctl),
                            .position = ctl->log_seq,
                            .core = ctl->core,
                            .told = told,
                            .plan = plan};
    st_err err;

    if (view.state == ST_RESTORE_NONE)
        view.plan = NULL;
    else if (st_store_tokens(ctl->store, count_token, &view.tokens, &err) < 0)
        view.tokens = -1;
    if (c->show)
        c->show(c, &view);
}

/* The higher epoch makes agents follow, so it is given with the owner's word and not before. */
static int accept(st_tx *tx, st_cmd_restore *c, const st_told *told, const st_restore_plan *plan,
                  st_err *err)
{
    st_control *ctl = tx->ctl;
    int64_t epoch = ctl->epoch, most, ended = 0, again = 0;
    char detail[200];
    int r;

    if (ctl->restoring.state != ST_RESTORE_WAITING)
        return st_fail(err, ST_ESTATE,
                       ctl->restoring.state == ST_RESTORE_NONE
                           ? "no restore waits to be accepted"
                           : "the restore was accepted already; nodes are ending what they have");
    if (strcmp(plan->digest, c->accept) != 0)
        return st_fail(err, ST_ESTATE,
                       "what would become of tasks has changed since it was looked at: look again");
    most = st_restore_floor(ST_FLOOR_EPOCHS, ctl->restoring.marked_ms) + EPOCHS_OFF;
    for (size_t i = 0; i < told->nodes.n; i++)
        if (told->nodes.v[i].epoch <= most)
            epoch = ST_MAX(epoch, told->nodes.v[i].epoch);
    for (size_t i = 0; i < plan->tasks.n; i++)
        ended += plan->tasks.v[i].fate == ST_FATE_ENDED;
    for (size_t i = 0; i < plan->jobs.n; i++)
        again += plan->jobs.v[i].fate == ST_FATE_AGAIN;
    snprintf(detail, sizeof detail,
             "{\"epoch\":%" PRId64 ",\"position\":%" PRId64 ",\"last_ms\":%" PRId64
             ",\"tasks_ended\":%" PRId64 ",\"jobs_again\":%" PRId64 "}",
             epoch + 1, ctl->log_seq, st_control_last_ms(ctl), ended, again);
    r = st_tx_open(tx, err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, "store.restore", "", ctl->restoring.from, detail, err);
    if (r == 0)
        r = st_tx_fault(tx, st_epoch_take(ctl, epoch + 1, err), err);
    if (r == 0)
        r = st_tx_fault(tx, put_number(ctl->store, BRANCH, epoch + 1, err), err);
    if (r == 0)
        r = st_tx_fault(tx, put_state(ctl->store, &ctl->restoring, ST_RESTORE_ACCEPTED, err), err);
    if (r < 0)
        return r;
    ctl->restoring.branch = epoch + 1;
    ctl->restoring.state = ST_RESTORE_ACCEPTED;
    return 0;
}

static int run_restore(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_restore *c = (st_cmd_restore *)cmd;
    st_told told = {0};
    st_restore_plan plan = {0};
    int r = 0;

    if (tx->ctl->restoring.state != ST_RESTORE_NONE)
        look(tx->ctl, &told, &plan);
    if (c->accept)
        r = accept(tx, c, &told, &plan, err);
    if (r == 0)
        show(tx->ctl, c, &told, &plan);
    st_restore_plan_done(&plan);
    st_told_done(&told);
    return r;
}

static void publish_restore(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_restore *c = (const st_cmd_restore *)cmd;
    st_engine *engine = ctl->options.engine;
    st_told told = {0};
    st_restore_plan plan;

    if (!c->accept)
        return;
    st_epoch_taken(ctl);
    if (engine && engine->ops->place)
        engine->ops->place(engine, ctl->restoring.branch, ctl->log_seq);
    look(ctl, &told, &plan);
    say_lead(ctl, ST_LEAD_CLEAR, &plan);
    ctl->restoring.clearing = true;
    st_restore_plan_done(&plan);
    st_told_done(&told);
}

void st_cmd_restore_init(st_cmd_restore *cmd)
{
    cmd->cmd.run = run_restore;
    cmd->cmd.publish = publish_restore;
    cmd->cmd.calm = true;
}

/* ---- marking a store -------------------------------------------------------------------------------- */

int st_control_mark_restored(const char *path, const char *from, int64_t now_ms, st_strbuf *out,
                             st_err *err)
{
    ST_CLEANUP(st_store_closep) st_store *store = NULL;
    const char *live[] = {"running", "paused", "notified", "checkpointing", "stopping"};
    const st_job_filter running = {.states = live, .nstates = ST_ARRAY_LEN(live)};
    const st_job_filter pending = {.states = (const char *[]){"pending"}, .nstates = 1};
    const st_store_options options = {0};
    st_restoring was = {0};
    st_core *core = NULL;
    int64_t last_ms = 0, on = 0, waits = 0, tokens = 0;
    int r = st_store_open(path, &options, &store, err);

    if (r == 0)
        r = st_control_replay(store, &core, &last_ms, err);
    if (r == 0)
        r = check_clock(now_ms, last_ms, err);
    st_core_free(core);
    if (r == 0)
        r = get_state(store, &was, err);
    if (r == 0)
        r = st_store_jobs_count(store, &running, &on, err);
    if (r == 0)
        r = st_store_jobs_count(store, &pending, &waits, err);
    if (r == 0)
        r = st_store_tokens(store, count_token, &tokens, err);
    was.marked_ms = now_ms;
    snprintf(was.from, sizeof was.from, "%s", from);
    if (r == 0)
        r = st_store_begin(store, err);
    if (r == 0)
        r = st_store_end(store, put_state(store, &was, ST_RESTORE_WAITING, err), err);
    if (r == 0)
        st_strbuf_addf(out,
                       "%s: %" PRId64 " jobs are on nodes, %" PRId64 " wait, %" PRId64
                       " tokens are valid. Tokens that were revoked after the backup are valid "
                       "again.\n",
                       path, on, waits, tokens);
    return r;
}
