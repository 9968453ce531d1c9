/*
 * The other commands: jobs that exist, accounts, tokens, single events, and what
 * engines report.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "billing/billing.h"
#include "control/neighbours.h"
#include "control/state.h"

/* ---- jobs ---------------------------------------------------------------------------------- */

static int no_job(const st_control *ctl, uint64_t id, st_err *err)
{
    char text[ST_ID_TEXT], q[ST_QUOTE_MAX];

    st_control_id_text(ctl, id, text);
    return st_fail(err, ST_ENOENT, "there is no job %s", st_quote(q, text));
}

int st_tx_need_job(st_tx *tx, const st_identity *who, uint64_t id, st_live **ret, st_err *err)
{
    st_control *ctl = tx->ctl;
    st_live *live = st_control_live(ctl, id);
    ST_CLEANUP(st_arena_freep) st_arena *arena = NULL;
    st_job_row row = {0};
    char text[ST_ID_TEXT];
    int r;

    if (live) {
        st_live_row(ctl, live, &row);
    } else {
        arena = st_arena_new();
        r = st_store_job_get(ctl->store, (int64_t)id, arena, &row, err);
        if (r < 0)
            return r == -ST_ENOENT ? no_job(ctl, id, err) : st_tx_fault(tx, r, err);
    }
    if (!st_tx_sees(tx, row.account, who->account))
        return no_job(ctl, id, err);
    st_control_id_text(ctl, id, text);
    if (who->role == ST_ROLE_MEMBER &&
        (strcmp(row.account, who->account) != 0 || strcmp(row.user_name, who->user) != 0))
        return st_fail(err, ST_EPERM,
                       "job %s belongs to %s in account %s: ask them, or an admin of the account",
                       text, row.user_name, row.account);
    if (!live)
        return st_fail(err, ST_ESTATE, "job %s is over (%s)", text, row.state);
    /* It has ended in this very transaction; the core would say so with its own number. */
    if (!st_core_job(ctl->core, id))
        return st_fail(err, ST_ESTATE, "job %s is over", text);
    *ret = live;
    return 0;
}

static int run_cancel(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_job *c = (st_cmd_job *)cmd;
    const st_event event = {.kind = ST_EV_CANCEL, .u.id = c->id};
    char text[ST_ID_TEXT];
    st_live *live;
    int r = st_tx_need_job(tx, &c->who, c->id, &live, err);

    if (r == 0)
        r = st_tx_apply(tx, &event, err);
    if (r < 0)
        return r;
    st_control_id_text(tx->ctl, c->id, text);
    return st_tx_audit(tx, &c->who, "job.cancel", live->account, text, NULL, err);
}

/* A job keeps the priorities of its class. */
static int within_class(st_tx *tx, const st_live *live, int priority, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_doc_words words;

    st_doc_names(st_live_doc(tx->ctl, live), arena, &words);
    return words.priority_class
               ? st_classes_priority(tx->ctl->classes, words.priority_class, priority, err)
               : 0;
}

static int run_priority(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_job *c = (st_cmd_job *)cmd;
    st_event event = {.kind = ST_EV_PRIORITY};
    char text[ST_ID_TEXT], detail[80];
    st_live *live;
    int r = st_tx_need_job(tx, &c->who, c->id, &live, err);

    event.u.priority.id = c->id;
    event.u.priority.priority = c->priority;
    if (r == 0)
        r = within_class(tx, live, c->priority, err);
    if (r == 0)
        r = st_tx_apply(tx, &event, err);
    if (r < 0)
        return r;
    snprintf(detail, sizeof detail, "{\"from\":%d,\"to\":%d}", live->priority, c->priority);
    live->priority = c->priority;
    st_control_touch(tx->ctl, live);
    st_control_id_text(tx->ctl, c->id, text);
    return st_tx_audit(tx, &c->who, "job.priority", live->account, text, detail, err);
}

static const char *limit_text(char buf[ST_FMT_MAX], int64_t limit_ms)
{
    return limit_ms == ST_TIME_NEVER ? "none" : st_fmt_duration(buf, limit_ms);
}

static int run_limit(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_job *c = (st_cmd_job *)cmd;
    st_event event = {.kind = ST_EV_LIMIT};
    char text[ST_ID_TEXT], detail[2 * ST_FMT_MAX + 32], from[ST_FMT_MAX], to[ST_FMT_MAX];
    int64_t hold = ST_UNSET, before;
    const st_job *job;
    st_live *live;
    int r = st_tx_need_job(tx, &c->who, c->id, &live, err);

    if (r < 0)
        return r;
    job = st_core_job(tx->ctl->core, c->id);
    before = job->limit_ms;
    st_control_id_text(tx->ctl, c->id, text);
    if (c->limit_ms > before && c->who.role == ST_ROLE_MEMBER)
        return st_fail(err, ST_EPERM,
                       "Your role (member) can make the time limit of job %s shorter than %s, not "
                       "longer: ask an admin of account %s",
                       text, limit_text(from, before), live->account);
    event.u.limit.id = c->id;
    event.u.limit.limit_ms = c->limit_ms;
    r = st_money_rehold(tx, job, live->account, c->limit_ms,
                        c->who.account[0] ? c->who.account : NULL, &hold, err);
    if (r == 0)
        r = st_tx_apply(tx, &event, err);
    if (r == 0) /* what fits was looked at before: if not, nothing stays */
        r = st_tx_fault(tx, st_money_hold_anew(tx, c->id, live->account, hold, err), err);
    if (r < 0)
        return r;
    snprintf(detail, sizeof detail, "{\"from\":\"%s\",\"to\":\"%s\"}", limit_text(from, before),
             limit_text(to, c->limit_ms));
    st_live_limit(live, c->limit_ms);
    st_control_touch(tx->ctl, live);
    return st_tx_audit(tx, &c->who, "job.limit", live->account, text, detail, err);
}

static void publish_limit(st_control *ctl, st_cmd *cmd)
{
    st_control_retime(ctl, ((st_cmd_job *)cmd)->id);
}

void st_cmd_job_limit(st_cmd_job *cmd)
{
    cmd->cmd.run = run_limit;
    cmd->cmd.publish = publish_limit;
}

void st_cmd_job_cancel(st_cmd_job *cmd)
{
    cmd->cmd.run = run_cancel;
}

void st_cmd_job_priority(st_cmd_job *cmd)
{
    cmd->cmd.run = run_priority;
}

/* ---- tokens -------------------------------------------------------------------------------- */

static int run_token_make(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_token *c = (st_cmd_token *)cmd;
    st_control *ctl = tx->ctl;
    ST_CLEANUP(st_strbuf_done) st_strbuf detail = {0};
    char target[ST_ID_TEXT];
    int r;

    if (!st_tx_within(tx, c->account, c->who.account))
        return st_no_account(c->account, err);
    if (c->who.role != ST_ROLE_OWNER &&
        (c->role == ST_ROLE_OWNER || c->role == ST_ROLE_NODE || c->role == ST_ROLE_JOIN))
        return st_fail(err, ST_EPERM, "a token with the role %s is made by an owner",
                       st_role_words[c->role]);
    r = st_tx_open(tx, err);
    if (r == 0)
        r = st_charge_token(tx, &c->who, c->account, err);
    if (r < 0)
        return r;
    c->id = ++ctl->last_token;
    const st_token_row row = {.id = c->id,
                              .hash = {c->hash, sizeof c->hash},
                              .account = c->account,
                              .user_name = c->user,
                              .role = st_role_words[c->role],
                              .label = c->label,
                              .created_ms = tx->now,
                              .expires_ms = c->expires_ms,
                              .revoked_ms = ST_STORE_NEVER,
                              .last_used_ms = ST_STORE_NEVER};
    r = st_tx_fault(tx, st_store_token_insert(ctl->store, &row, err), err);
    st_strbuf_add(&detail, "{\"user\":");
    st_quote_json(&detail, c->user);
    st_strbuf_addf(&detail, ",\"role\":\"%s\"}", st_role_words[c->role]);
    st_control_name(tx->ctl, 't', (uint64_t)c->id, target);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, "token.create", c->account, target, st_strbuf_str(&detail),
                        err);
    return r;
}

static void publish_token(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_token *c = (const st_cmd_token *)cmd;
    const st_token_row row = {.id = c->id,
                              .hash = {c->hash, sizeof c->hash},
                              .account = c->account,
                              .user_name = c->user,
                              .role = st_role_words[c->role],
                              .expires_ms = c->expires_ms,
                              .revoked_ms = ST_STORE_NEVER};

    st_directory_put_token(ctl->dir, &row);
}

void st_cmd_token_make(st_cmd_token *cmd)
{
    st_token_make(cmd->text, cmd->hash);
    cmd->cmd.calm = true;
    cmd->cmd.run = run_token_make;
    cmd->cmd.publish = publish_token;
}

static int no_token(const st_control *ctl, int64_t id, st_err *err)
{
    char text[ST_ID_TEXT], q[ST_QUOTE_MAX];

    st_control_name(ctl, 't', (uint64_t)id, text);
    return st_fail(err, ST_ENOENT, "there is no token %s", st_quote(q, text));
}

/* Whether somebody else's token is there for the caller. */
static bool sees_token(const st_tx *tx, const st_identity *who, const st_token_row *row)
{
    return who->role != ST_ROLE_MEMBER && who->role != ST_ROLE_VIEWER &&
           st_tx_sees(tx, row->account, who->account);
}

/* The token, if the caller may do away with it. */
static int need_token(st_tx *tx, const st_cmd_token *c, st_arena *arena, st_token_row *ret,
                      st_err *err)
{
    bool own;
    int r = st_tx_open(tx, err);

    if (r == 0)
        r = st_store_token_get(tx->ctl->store, c->id, arena, ret, err);
    own = r == 0 && strcmp(ret->account, c->who.account) == 0 &&
          strcmp(ret->user_name, c->who.user) == 0;
    if (r == -ST_ENOENT || (r == 0 && !own && !sees_token(tx, &c->who, ret)))
        return no_token(tx->ctl, c->id, err);
    if (r < 0)
        return st_tx_fault(tx, r, err);
    if (!own && c->who.role == ST_ROLE_AUDITOR)
        return st_fail(err, ST_EPERM,
                       "this token is not yours: an auditor sees it, an admin of account %s may "
                       "revoke it",
                       ret->account);
    return 0;
}

static int run_token_revoke(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_token *c = (st_cmd_token *)cmd;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_token_row row;
    char target[ST_ID_TEXT];
    int r = need_token(tx, c, arena, &row, err);

    if (r < 0)
        return r;
    if (row.revoked_ms != ST_STORE_NEVER)
        return 0;
    st_control_name(tx->ctl, 't', (uint64_t)c->id, target);
    r = st_tx_fault(tx, st_store_token_revoke(tx->ctl->store, c->id, tx->now, err), err);
    if (r == 0 && (row.expires_ms == ST_STORE_NEVER || row.expires_ms > tx->now))
        st_allowance_release(tx->ctl->allowance, row.account, ST_AL_TOKENS, 1);
    c->expires_ms = tx->now;
    if (r == 0)
        r = st_tx_audit(tx, &c->who, "token.revoke", row.account, target, NULL, err);
    return r;
}

static void publish_revoke(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_token *c = (const st_cmd_token *)cmd;

    st_directory_revoke(ctl->dir, c->id, c->expires_ms);
}

void st_cmd_token_revoke(st_cmd_token *cmd)
{
    cmd->cmd.calm = true;
    cmd->cmd.run = run_token_revoke;
    cmd->cmd.publish = publish_revoke;
}

/* Its number is in audit rows and idempotency keys: it is never given again. */
static int run_token_remove(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_token *c = (st_cmd_token *)cmd;
    st_control *ctl = tx->ctl;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_token_row row;
    char target[ST_ID_TEXT], number[32];
    int r = need_token(tx, c, arena, &row, err);

    if (r < 0)
        return r;
    st_control_name(ctl, 't', (uint64_t)c->id, target);
    if (row.revoked_ms == ST_STORE_NEVER &&
        (row.expires_ms == ST_STORE_NEVER || row.expires_ms > tx->now))
        return st_fail(err, ST_ESTATE, "token %s is still good; revoke it first", target);
    snprintf(number, sizeof number, "%" PRId64, ctl->last_token);
    r = st_tx_fault(tx, st_store_token_remove(ctl->store, c->id, err), err);
    if (r == 0)
        r = st_tx_fault(tx, st_store_meta_put(ctl->store, ST_LAST_TOKEN, number, err), err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, "token.remove", row.account, target, NULL, err);
    if (r == 0)
        st_allowance_release(ctl->allowance, st_payer(ctl, row.account), ST_AL_KEPT, 1);
    return r;
}

static void publish_remove(st_control *ctl, st_cmd *cmd)
{
    st_directory_remove_token(ctl->dir, ((const st_cmd_token *)cmd)->id);
}

void st_cmd_token_remove(st_cmd_token *cmd)
{
    cmd->cmd.run = run_token_remove;
    cmd->cmd.publish = publish_remove;
}

/* ---- small documents ------------------------------------------------------------------------- */

static int run_document(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_document *c = (st_cmd_document *)cmd;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_document_row row = {0};
    char verb[64];
    int r = st_tx_open(tx, err);

    if (r == 0)
        r = st_store_document_get(tx->ctl->store, c->kind, c->name, arena, &row, err);
    if (r == -ST_ENOENT && !c->doc)
        return r;
    if (r < 0 && r != -ST_ENOENT)
        return st_tx_fault(tx, r, err);
    if (c->counted && c->doc && r == -ST_ENOENT) {
        int full = st_allowance_charge(tx->ctl->allowance, c->account, ST_AL_SIZES, 1,
                                       c->who.account, err);
        if (full < 0)
            return full;
    } else if (c->counted && !c->doc) {
        st_allowance_release(tx->ctl->allowance, c->account, ST_AL_SIZES, 1);
    }
    c->version = c->doc ? st_version_next(tx) : 0;
    const st_document_row next = {.kind = c->kind,
                                  .name = c->name,
                                  .version = r == 0 ? row.version : 0,
                                  .at_ms = c->version,
                                  .doc = c->doc};
    r = c->doc ? st_store_document_put(tx->ctl->store, &next, err)
               : st_store_document_delete(tx->ctl->store, c->kind, c->name, row.version, err);
    st_tx_fault(tx, r, err);
    if (r == 0)
        st_version_set(tx, c->kind, c->name, c->version);
    snprintf(verb, sizeof verb, "%s.%s", c->kind, c->doc ? "put" : "remove");
    if (r == 0)
        r = st_tx_audit(tx, &c->who, verb, c->account, c->name, NULL, err);
    return r;
}

int st_tx_document(st_tx *tx, const char *kind, const char *name, st_arena *arena,
                   st_document_row *ret, st_err *err)
{
    int r = st_store_document_get(tx->ctl->store, kind, name, arena, ret, err);

    return r == -ST_ENOENT ? r : st_tx_fault(tx, r, err);
}

void st_cmd_document_put(st_cmd_document *cmd)
{
    cmd->cmd.run = run_document;
}

/* ---- single events -------------------------------------------------------------------------- */

static int run_event(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_event *c = (st_cmd_event *)cmd;
    int r = st_tx_open(tx, err);

    if (r == 0 && (c->event.kind == ST_EV_POOL || c->event.kind == ST_EV_POOL_CHANGE))
        r = st_pool_engine(tx->ctl, &c->event, err);
    if (r == 0 && c->event.kind == ST_EV_NODE)
        r = st_pool_takes(tx->ctl, c->event.u.node.pool, ST_NODES_ANNOUNCED, err);
    if (c->event.kind == ST_EV_NODE_STATE) {
        c->event.u.node_state.by = c->who.user;
        c->event.u.node_state.reason = c->reason;
    }
    if (r == 0)
        r = st_tx_apply(tx, &c->event, err);
    if (r == 0 && c->event.kind == ST_EV_NODE_STATE &&
        c->event.u.node_state.state == ST_NODE_READY && c->event.u.node_state.part == 0)
        r = st_node_unflag(tx, c->event.u.node_state.node, err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, c->verb, "", c->target, c->detail, err);
    return r;
}

/* The nodes of a pool have its word on what their jobs may do. */
static void tell_pool(st_control *ctl, const char *name)
{
    const st_fleet *fleet = st_core_fleet(ctl->core);
    int pool = st_fleet_pool(fleet, name);

    for (size_t i = 0; i < fleet->nodes.n; i++)
        if (fleet->nodes.v[i]->pool == pool)
            st_control_tell_node(ctl, (int32_t)i);
}

/* Also when the state is what it was: whose decision it is has changed. */
static void publish_event(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_event *c = (const st_cmd_event *)cmd;

    if (c->event.kind == ST_EV_NODE_STATE)
        st_control_tell_node(ctl, c->event.u.node_state.node);
    if (c->event.kind == ST_EV_POOL_CHANGE)
        tell_pool(ctl, c->event.u.pool.name);
}

void st_cmd_event_init(st_cmd_event *cmd)
{
    cmd->cmd.run = run_event;
    cmd->cmd.publish = publish_event;
}

static int run_note(st_tx *tx, st_cmd *cmd, st_err *err)
{
    const st_cmd_note *c = (const st_cmd_note *)cmd;

    return st_tx_audit(tx, &c->who, c->verb, c->account, c->target, c->detail, err);
}

void st_cmd_note_init(st_cmd_note *cmd)
{
    cmd->cmd.calm = true;
    cmd->cmd.run = run_note;
}

/* ---- reports --------------------------------------------------------------------------------- */

typedef struct cmd_report {
    st_cmd cmd;
    st_report report;
    st_found *found; /* of ST_REPORT_FOUND */
    char *doc;       /* of ST_REPORT_TESTED and IMAGE */
    bool incident;   /* a flag that is new */
    st_case *said;   /* of ST_REPORT_NEIGHBOUR, and whether people hear of it */
    bool told;
    char *account, *name; /* of a job that ended for a full /data; NULL: none did */
} cmd_report;

/* Where nobody says when it ended, it is taken to have when it was told to. */
static int run_gone(st_tx *tx, st_live *live, const st_report *rep, st_err *err)
{
    const st_job *job = st_core_job(tx->ctl->core, rep->job);
    st_event event = {.kind = ST_EV_GONE};

    if (!job || !job->stopping)
        return 0; /* it was told before */
    live->said_end_ms = rep->ended_ms > 0 ? rep->ended_ms : job->stop_ms;
    event.u.gone.id = rep->job;
    event.u.gone.done = rep->done;
    st_vec_push(&tx->notes,
                (st_note){.kind = ST_NOTE_ENDED, .v = {(int64_t)rep->job, live->said_end_ms}});
    return st_tx_apply(tx, &event, err);
}

static void end_said(st_tx *tx, st_live *live, const st_report *rep)
{
    live->exit_code = rep->exit_code;
    live->said_end_ms = rep->ended_ms;
    free(live->reason);
    live->reason = rep->reason[0] ? st_xstrdup(rep->reason) : NULL;
    st_control_touch(tx->ctl, live);
}

/* It waits again only because its node was silent: with the first task that failed, or when all have ended well, it is over
 * as its agents say. A stay that has begun since is another matter, and what is said of the old one comes too late. */
static int run_late(st_tx *tx, st_live *live, const st_report *rep, st_err *err)
{
    const st_job *job = st_core_job(tx->ctl->core, rep->job);
    st_event event = {.kind = ST_EV_LATE};
    size_t t = 0;
    int r;

    if (!job || job->state != ST_JOB_PENDING || rep->task < 0 || rep->task >= job->tasks)
        return 0;
    while (t < live->late.n && live->late.v[t] != rep->task)
        t++;
    if (t == live->late.n)
        st_vec_push(&live->late, rep->task);
    if (rep->exit_code == 0 && live->late.n < (size_t)job->tasks)
        return 0;
    event.u.finish.id = rep->job;
    event.u.finish.failed = rep->exit_code != 0;
    r = st_tx_apply(tx, &event, err);
    if (r == 0)
        end_said(tx, live, rep);
    return r;
}

static int run_report(st_tx *tx, st_cmd *cmd, st_err *err)
{
    const st_report *rep = &((cmd_report *)cmd)->report;
    st_live *live = st_control_live(tx->ctl, rep->job);
    st_event event = {.kind = ST_EV_TIMER};

    if (rep->kind == ST_REPORT_NODE)
        return st_node_report(tx, rep, err);
    if (rep->kind == ST_REPORT_FOUND)
        return st_node_found(tx, rep, err);
    if (rep->kind == ST_REPORT_TESTED)
        return st_node_tested(tx, rep, ((cmd_report *)cmd)->doc, err);
    if (rep->kind == ST_REPORT_IMAGE)
        return st_booking_image(tx, rep, ((cmd_report *)cmd)->doc, err);
    if (rep->kind == ST_REPORT_FLAG)
        return st_node_flag(tx, rep, &((cmd_report *)cmd)->incident, err);
    if (rep->kind == ST_REPORT_NEIGHBOUR)
        return st_case_take(tx, rep, ((cmd_report *)cmd)->said, &((cmd_report *)cmd)->told, err);
    if (rep->kind == ST_REPORT_USED) {
        st_control_used(tx, rep);
        return 0;
    }
    if (!live || live->stay != rep->stay)
        return 0; /* of a stay that is over: nothing to learn from it */
    if (rep->kind == ST_REPORT_STARTED) {
        st_money_started(live, rep->started_ms);
        return 0;
    }
    if (rep->kind == ST_REPORT_LATE)
        return run_late(tx, live, rep, err);
    if (rep->kind == ST_REPORT_GONE)
        return run_gone(tx, live, rep, err);
    if (rep->kind == ST_REPORT_CHECKPOINTED || rep->kind == ST_REPORT_UNSTARTED) {
        event.kind = rep->kind == ST_REPORT_UNSTARTED ? ST_EV_UNSTARTED : ST_EV_CHECKPOINTED;
        event.u.id = rep->job;
        return st_tx_apply(tx, &event, err);
    }
    event.kind = ST_EV_FINISH;
    event.u.finish.id = rep->job;
    event.u.finish.failed = rep->exit_code != 0;
    int r = st_tx_apply(tx, &event, err);
    if (r == 0)
        end_said(tx, live, rep);
    if (r == 0 && rep->data_full && !((cmd_report *)cmd)->account) {
        ((cmd_report *)cmd)->account = st_xstrdup(live->account);
        ((cmd_report *)cmd)->name = st_xstrdup(live->name);
    }
    return r;
}

/* The whole account has too much there: its admins, and those above, must hear of it, not only who ran the job. */
static void tell_data_full(st_control *ctl, const cmd_report *c)
{
    const st_effect none = {.kind = ST_FX_END, .node = -1, .account = -1};
    const st_notice n = {.seq = ++ctl->notice_seq,
                         .at_ms = st_control_last_ms(ctl),
                         .job = c->report.job,
                         .account = c->account,
                         .kind = "data",
                         .name = c->name,
                         .state = st_job_state_name(ST_JOB_FAILED),
                         .reason = c->report.reason,
                         .fx = &none};

    ctl->options.listen(ctl->options.ctx, &n);
}

static void publish_report(st_control *ctl, st_cmd *cmd)
{
    const cmd_report *c = (const cmd_report *)cmd;
    const st_effect none = {.kind = ST_FX_NODE, .node = c->report.node, .account = -1};

    if (c->account && ctl->options.listen)
        tell_data_full(ctl, c);
    st_booking_image_news(ctl);
    if (c->told)
        st_case_tell(ctl, c->said);
    /* Also when a test changed no state: its engine asks for it until then. */
    if (c->report.kind == ST_REPORT_TESTED || c->report.kind == ST_REPORT_FLAG)
        st_control_tell_node(ctl, c->report.node);
    if (c->report.kind != ST_REPORT_FLAG)
        return;
    if (!c->incident || !ctl->options.listen)
        return;
    const st_notice n = {
        .seq = ++ctl->notice_seq,
        .at_ms = st_control_last_ms(ctl),
        .account = "",
        .kind = "incident",
        .name = st_core_fleet(ctl->core)->nodes.v[c->report.node]->name,
        .fx = &none,
        .incident = {.flag = st_flag_name(c->report.flag), .reason = c->report.reason}};
    ctl->options.listen(ctl->options.ctx, &n);
}

static void report_done(st_cmd *cmd, const st_err *err)
{
    (void)err; /* the engine reports again what was not taken */
    free(((cmd_report *)cmd)->account);
    free(((cmd_report *)cmd)->name);
    free(((cmd_report *)cmd)->found);
    free(((cmd_report *)cmd)->said);
    free(((cmd_report *)cmd)->doc);
    free(cmd);
}

void st_control_report(st_control *ctl, const st_report *report)
{
    cmd_report *c = st_xcalloc(1, sizeof *c);

    c->cmd.lane = ST_LANE_AGENTS;
    c->cmd.run = run_report;
    c->cmd.publish = publish_report;
    c->cmd.done = report_done;
    c->report = *report;
    if (report->kind == ST_REPORT_NEIGHBOUR)
        c->said = st_xcalloc(1, sizeof *c->said);
    if (report->found) {
        c->found = st_xcalloc(1, sizeof *c->found);
        *c->found = *report->found;
        c->report.found = c->found;
    }
    c->doc = report->doc ? st_xstrdup(report->doc) : NULL;
    c->report.doc = NULL;
    if (!st_control_post(ctl, &c->cmd))
        report_done(&c->cmd, NULL);
}
