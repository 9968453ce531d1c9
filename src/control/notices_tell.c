/*
 * What happened, as deliveries of those who want to know: rows of the transaction in which it happened, handed out once that is
 * durable (control/notices.h).
 */
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/num.h"
#include "control/notices_state.h"

#define SOON_MS (INT64_C(15) * 60 * 1000)

static void fmt_time(char buf[32], int64_t ms)
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm;

    gmtime_r(&s, &tm);
    strftime(buf, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void set_text(json_t *doc, const char *key, const char *text)
{
    if (text && text[0])
        json_object_set_new(doc, key, json_string(text));
}

static void set_time(json_t *doc, const char *key, int64_t ms)
{
    char at[32];

    if (ms <= 0 || ms == ST_TIME_NEVER)
        return;
    fmt_time(at, ms);
    json_object_set_new(doc, key, json_string(at));
}

/* ---- one row --------------------------------------------------------------------------------------------- */

static int32_t *of_org(st_noticers *all, int32_t org)
{
    while (all->orgs.n <= (size_t)org)
        st_vec_push(&all->orgs, 0);
    return &all->orgs.v[org];
}

static char *body_of(const st_noticer *to, const st_telling *t, const char *id, int64_t now)
{
    json_t *doc = json_object();
    char *text;

    set_text(doc, "id", id);
    set_text(doc, "type", t->kind ? t->kind : st_notice_words[t->on]);
    set_time(doc, "at", now);
    set_text(doc, "notice", to->name);
    set_text(doc, "account", t->account);
    set_text(doc, "title", t->title);
    if (to->missed > 0)
        json_object_set_new(doc, "missed", json_integer((json_int_t)to->missed));
    if (t->more)
        json_object_update(doc, t->more);
    text = json_dumps(doc, JSON_COMPACT);
    json_decref(doc);
    ST_ASSERT(text);
    return text;
}

int st_notices_put(st_tx *tx, st_noticer *to, const st_telling *t, char ret_id[40], st_err *err)
{
    st_noticers *all = tx->ctl->notices;
    ST_CLEANUP(st_strbuf_done) st_strbuf name = {0};
    unsigned char random[16];
    st_notice_row row;
    char id[40];
    int r = st_tx_open(tx, err);

    if (r < 0)
        return r;
    randombytes_buf(random, sizeof random);
    memcpy(id, "msg_", 5);
    sodium_bin2hex(id + 4, sizeof id - 4, random, sizeof random);
    all->last = ST_MAX(all->last + 1, (uint64_t)tx->now * 1000);
    row = (st_notice_row){.number = all->last,
                          .key = st_xstrdup(to->key),
                          .id = st_xstrdup(id),
                          .title = st_xstrdup(t->title),
                          .body = body_of(to, t, id, tx->now),
                          .at_ms = tx->now};
    st_strbuf_addf(&name, "%s %020" PRIu64, to->key, row.number);
    r = st_document_write(tx, "notice-out", st_strbuf_str(&name),
                          json_pack("{s:s,s:s,s:s,s:I}", "id", id, "title", row.title, "body",
                                    row.body, "at", (json_int_t)tx->now),
                          err);
    st_vec_push(&all->rows, row);
    to->waiting++;
    to->missed = 0;
    ++*of_org(all, to->org);
    if (ret_id)
        memcpy(ret_id, id, sizeof id);
    return r;
}

static bool wants(const st_noticer *n, const st_telling *t)
{
    if (!(n->on >> t->on & 1) && !(t->on == ST_ON_FAIL && (n->on >> ST_ON_END & 1)))
        return false;
    return !n->mine || (t->user && strcmp(n->by, t->user) == 0);
}

static int tell_at(st_tx *tx, int32_t account, const st_telling *t, st_err *err)
{
    st_noticers *all = tx->ctl->notices;
    int r = 0;

    for (st_noticer *n = st_notices_of(tx->ctl, account); r == 0 && n; n = n->next) {
        if (!wants(n, t))
            continue;
        if (n->waiting >= ST_NOTICE_WAITING || *of_org(all, n->org) >= ST_NOTICE_ORG)
            n->missed++;
        else
            r = st_notices_put(tx, n, t, NULL, err);
    }
    return r;
}

int st_notices_tell(st_tx *tx, const st_telling *t, st_err *err)
{
    const st_tree *tree = st_core_tree(tx->ctl->core);
    int32_t id = st_tree_find(tree, t->account);
    int r = 0;

    for (; r == 0 && id > ST_ROOT; id = st_tree_account(tree, id)->parent)
        r = tell_at(tx, id, t, err);
    return r;
}

/* ---- what jobs do ------------------------------------------------------------------------------------------ */

static json_t *job_of(const st_control *ctl, const st_live *live, const st_effect *fx)
{
    char id[ST_ID_TEXT];
    json_t *job = json_object(), *more = json_object();

    st_control_id_text(ctl, live->id, id);
    set_text(job, "id", id);
    set_text(job, "name", live->name);
    set_text(job, "user", live->user);
    set_text(job, "state", st_job_state_name(fx->state));
    set_time(job, "submitted", live->submit_ms);
    if (live->start_ms != ST_STORE_NEVER)
        set_time(job, "started", live->start_ms);
    if (fx->kind == ST_FX_END) {
        set_time(job, "ended", live->end_ms);
        set_text(job, "reason", live->reason);
        if (live->exit_code != (int)ST_STORE_NEVER)
            json_object_set_new(job, "exit_code", json_integer(live->exit_code));
    }
    if (live->preemptions > 0)
        json_object_set_new(job, "preemptions", json_integer(live->preemptions));
    if (fx->kind == ST_FX_NOTIFY)
        set_time(job, "until", fx->until_ms);
    json_object_set_new(more, "job", job);
    return more;
}

static void title_of(const st_control *ctl, const st_live *live, const st_effect *fx,
                     st_strbuf *out)
{
    char id[ST_ID_TEXT], until[32];

    st_control_id_text(ctl, live->id, id);
    st_strbuf_addf(out, "job %s", id);
    if (live->name && live->name[0])
        st_strbuf_addf(out, " (%s)", live->name);
    switch (fx->kind) {
    case ST_FX_START:
        st_strbuf_add(out, " has started");
        break;
    case ST_FX_RESUME:
        st_strbuf_add(out, " goes on after a pause");
        break;
    case ST_FX_NOTIFY:
        st_strbuf_add(out, " is being preempted");
        if (fx->until_ms > 0 && fx->until_ms != ST_TIME_NEVER) {
            fmt_time(until, fx->until_ms);
            st_strbuf_addf(out, ": it leaves its GPUs by %s", until);
        }
        break;
    case ST_FX_PAUSE:
        st_strbuf_add(out, " has left its GPUs and is kept in memory");
        break;
    case ST_FX_REQUEUE:
        st_strbuf_add(out, " has left its GPUs and waits again");
        break;
    default:
        st_strbuf_addf(out, " is over: %s", st_job_state_name(fx->state));
        if (live->reason && live->reason[0])
            st_strbuf_addf(out, ", %s", live->reason);
    }
}

static bool on_of(const st_effect *fx, st_notice_on *ret)
{
    switch (fx->kind) {
    case ST_FX_START:
    case ST_FX_RESUME:
        *ret = ST_ON_START;
        return true;
    case ST_FX_NOTIFY:
    case ST_FX_PAUSE:
    case ST_FX_REQUEUE:
        *ret = ST_ON_PREEMPT;
        return true;
    case ST_FX_END:
        *ret = fx->state == ST_JOB_FAILED || fx->state == ST_JOB_TIMEOUT ? ST_ON_FAIL : ST_ON_END;
        return true;
    default:
        return false;
    }
}

bool st_notices_anybody(const st_control *ctl, int32_t account)
{
    const st_tree *tree = st_core_tree(ctl->core);

    for (; account > ST_ROOT; account = st_tree_account(tree, account)->parent)
        if (st_notices_of(ctl, account))
            return true;
    return false;
}

static int follow_job(st_tx *tx, const st_effect *fx, st_err *err)
{
    const st_live *live = st_control_known(tx->ctl, fx->job);
    ST_CLEANUP(st_strbuf_done) st_strbuf title = {0};
    st_telling t = {0};
    int r;

    if (!live || !on_of(fx, &t.on) ||
        !st_notices_anybody(tx->ctl, st_tree_find(st_core_tree(tx->ctl->core), live->account)))
        return 0;
    title_of(tx->ctl, live, fx, &title);
    t.account = live->account;
    t.user = live->user;
    t.title = st_strbuf_str(&title);
    t.more = job_of(tx->ctl, live, fx);
    r = st_notices_tell(tx, &t, err);
    json_decref(t.more);
    return r;
}

/* ---- nodes that jobs are on ---------------------------------------------------------------------------------- */

/* What tenants are told of a fault is what /v1/incidents tells them. */
static int tell_incident(st_tx *tx, const st_incident *inc, const st_incident_job *at, st_err *err)
{
    const st_live *live = st_control_known(tx->ctl, at->job);
    const char *node = st_core_fleet(tx->ctl->core)->nodes.v[at->node]->name;
    ST_CLEANUP(st_strbuf_done) st_strbuf title = {0};
    char id[ST_ID_TEXT], job[ST_ID_TEXT];
    st_telling t = {.on = ST_ON_INCIDENT};
    int r;

    if (!live)
        return 0;
    st_control_name(tx->ctl, ST_INCIDENT_ID, inc->id, id);
    st_control_id_text(tx->ctl, live->id, job);
    st_strbuf_addf(&title, "node %s, on which job %s is, has a fault: %s", node, job,
                   st_fault_about(inc->kind));
    t.account = live->account;
    t.user = live->user;
    t.title = st_strbuf_str(&title);
    t.more = json_pack("{s:{s:s,s:s,s:s,s:s},s:{s:s,s:s,s:s}}", "incident", "id", id, "node", node,
                       "fault", st_fault_name(inc->kind), "cause",
                       st_cause_name(st_fault_cause(inc->kind)), "job", "id", job, "name",
                       live->name, "user", live->user);
    r = st_notices_tell(tx, &t, err);
    json_decref(t.more);
    return r;
}

static int follow_incident(st_tx *tx, const st_effect *fx, st_err *err)
{
    const st_incident *inc = st_core_incident(tx->ctl->core, fx->other);
    bool news = fx->news == ST_INCIDENT_OPENED || fx->news == ST_INCIDENT_JOINED ||
                fx->news == ST_INCIDENT_HELD;
    int r = 0;

    for (size_t i = 0; r == 0 && inc && news && i < inc->jobs.n; i++)
        if (inc->jobs.v[i].node == fx->node)
            r = tell_incident(tx, inc, &inc->jobs.v[i], err);
    return r;
}

/* ---- bookings --------------------------------------------------------------------------------------------------- */

static int tell_booking(st_tx *tx, const st_booking *b, const char *what, st_err *err)
{
    const st_account *a = st_tree_account(st_core_tree(tx->ctl->core), b->account);
    ST_CLEANUP(st_strbuf_done) st_strbuf title = {0};
    st_telling t = {.on = ST_ON_BOOKING, .account = a->name};
    char id[ST_ID_TEXT], from[32], to[32];
    int r;

    st_control_name(tx->ctl, ST_BOOKING_ID, b->id, id);
    fmt_time(from, b->from_ms);
    fmt_time(to, b->to_ms);
    st_strbuf_addf(&title, "booking %s, %s to %s, %s", id, from, to, what);
    t.title = st_strbuf_str(&title);
    t.more = json_pack("{s:{s:s,s:s,s:s,s:b}}", "booking", "id", id, "begins", from, "ends", to,
                       "degraded", st_booking_degraded(b));
    r = st_notices_tell(tx, &t, err);
    json_decref(t.more);
    return r;
}

static int follow_booking(st_tx *tx, const st_effect *fx, st_err *err)
{
    const st_booking *b = st_core_booking(tx->ctl->core, fx->other);

    if (!b || b->job || !(fx->booking_state & ST_BOOKING_DEGRADED))
        return 0;
    return tell_booking(tx, b, "misses nodes: some of its tasks have no place", err);
}

static int follow(st_tx *tx, const st_effect *fx, st_err *err)
{
    if (fx->kind == ST_FX_INCIDENT)
        return follow_incident(tx, fx, err);
    if (fx->kind == ST_FX_BOOKING)
        return follow_booking(tx, fx, err);
    return fx->job != 0 ? follow_job(tx, fx, err) : 0;
}

int st_notices_follow(st_tx *tx, st_err *err)
{
    int r = 0;

    if (!tx->ctl->notices || tx->ctl->notices->n == 0)
        return 0;
    for (size_t i = 0; r == 0 && i < tx->fx.list.n; i++)
        r = follow(tx, &tx->fx.list.v[i], err);
    return r;
}

/* Those that begin soon and were not told of. Kept beside them: a start of stintd does not tell them again. */
int st_notices_soon(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_control *ctl = tx->ctl;
    json_t *told, *keep = json_object();
    bool changed = false;
    int r = st_tx_open(tx, err);

    (void)cmd;
    told = r == 0 ? st_document_json(ctl->store, "notice-soon", "bookings", &r, err) : NULL;
    for (size_t i = 0; r == 0 && i < st_core_nbookings(ctl->core); i++) {
        const st_booking *b = st_core_booking_at(ctl->core, i);
        char key[64];

        if (b->job || b->from_ms <= tx->now || b->from_ms > tx->now + SOON_MS ||
            b->state < ST_BOOKING_CONFIRMED || b->state > ST_BOOKING_PREPARING ||
            !st_notices_anybody(ctl, b->account))
            continue;
        snprintf(key, sizeof key, "%" PRIu64 " %" PRId64, b->id, b->from_ms);
        json_object_set_new(keep, key, json_true());
        if (json_object_get(told, key))
            continue;
        changed = true;
        r = tell_booking(tx, b, "begins soon", err);
    }
    if (r == 0 && (changed || json_object_size(told) != json_object_size(keep)))
        r = st_document_write(tx, "notice-soon", "bookings", ST_TAKE(keep), err);
    json_decref(told);
    json_decref(keep);
    return r < 0 ? st_tx_fault(tx, r, err) : 0;
}
