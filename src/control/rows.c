/*
 * What a transaction did to jobs: first as rows of the store, and once they are committed as
 * notices for listeners and orders for the engine.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/state.h"

void st_control_add_live(st_control *ctl, st_live *live)
{
    if (live->head)
        live->head->pieces++;
    st_idmap_put(ctl->live, live->id, (int64_t)(intptr_t)live);
    live->slot = ctl->all.n;
    st_vec_push(&ctl->all, live);
}

void st_control_touch(st_control *ctl, st_live *live)
{
    if (live->dirty)
        return;
    live->dirty = true;
    st_vec_push(&ctl->dirty, live);
}

st_array_head *st_control_head(st_control *ctl, uint64_t array, const char *text)
{
    st_array_head *head;
    int64_t at;

    if (!text)
        return NULL;
    if (st_idmap_get(ctl->heads, array, &at))
        return (st_array_head *)(intptr_t)at;
    head = st_xcalloc(1, sizeof *head);
    *head = (st_array_head){.text = st_xstrdup(text), .array = array};
    st_idmap_put(ctl->heads, array, (int64_t)(intptr_t)head);
    return head;
}

static void drop_head(st_control *ctl, st_array_head *head)
{
    if (!head || --head->pieces > 0)
        return;
    st_idmap_del(ctl->heads, head->array);
    free(head->text);
    free(head);
}

void st_control_drop_live(st_control *ctl, st_live *live)
{
    if (!live)
        return;
    drop_head(ctl, live->head);
    free(live->account);
    free(live->user);
    free(live->name);
    free(live->doc);
    free(live->reason);
    free(live->detail);
    free(live->left);
    st_vec_free(&live->used);
    st_vec_free(&live->late);
    free(live);
}

void st_live_row_own(const st_live *live, st_job_row *ret)
{
    *ret = (st_job_row){
        .id = (int64_t)live->id,
        .account = live->account,
        .user_name = live->user,
        .name = live->name,
        .state = st_job_state_name(live->state),
        .class_name = st_class_name(live->class),
        .submit_ms = live->submit_ms,
        .start_ms = live->start_ms,
        .end_ms = live->end_ms,
        .priority = live->priority,
        .gpu_m = live->gpu_m,
        .preemptions = live->preemptions,
        .lost = live->lost,
        .exit_code = live->exit_code,
        .reason = live->reason ? live->reason : "",
        .spec = live->doc,
        .result = live->detail ? live->detail : "",
        .part_of = live->part_of,
    };
}

void st_live_row(st_control *ctl, const st_live *live, st_job_row *ret)
{
    st_live_row_own(live, ret);
    ret->spec = st_live_doc(ctl, live);
}

/* How often it has started and how long it has run, for a later start of stintd; an object that is not closed. */
static void begin_detail(const st_live *live, st_strbuf *out)
{
    st_strbuf_addf(out, "{\"stay\":%d,\"ran_ms\":%" PRId64, live->stay, live->ran_ms);
    if (live->since_ms >= 0)
        st_strbuf_addf(out, ",\"since_ms\":%" PRId64, live->since_ms);
    if (live->limit_ms == ST_TIME_NEVER)
        st_strbuf_add(out, ",\"limit_ms\":0");
    else if (live->limit_ms > 0)
        st_strbuf_addf(out, ",\"limit_ms\":%" PRId64, live->limit_ms);
    if (live->held_by > 0)
        st_strbuf_addf(out, ",\"held_by\":%d", live->held_by);
    if (live->tries > 0)
        st_strbuf_addf(out, ",\"tries\":%d,\"retry_ms\":%" PRId64, live->tries, live->retry_ms);
    if (live->by_ms > 0)
        st_strbuf_addf(out, ",\"by_ms\":%" PRId64 "%s%s", live->by_ms,
                       live->hard ? ",\"hard\":1" : "", live->at_risk ? ",\"at_risk\":1" : "");
}

/* What is written of it begins with what is remembered here; where it is stays as it was said. */
static void begin_again(st_live *live)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    const char *rest = live->detail ? strstr(live->detail, ",\"type\":") : NULL;

    if (live->detail && !rest)
        rest = strstr(live->detail, ",\"grants\":");
    begin_detail(live, &out);
    st_strbuf_add(&out, rest ? rest : "}");
    free(live->detail);
    live->detail = st_strbuf_take(&out);
}

void st_live_limit(st_live *live, int64_t limit_ms)
{
    live->limit_ms = limit_ms;
    begin_again(live);
}

void st_live_held(st_live *live, int held_by)
{
    live->held_by = held_by;
    begin_again(live);
}

void st_live_deadline(st_live *live, int64_t by_ms, bool hard, bool at_risk)
{
    live->by_ms = by_ms;
    live->hard = hard;
    live->at_risk = at_risk;
    begin_again(live);
}

/* It has left its devices. */
static void leave(st_live *live, int64_t now)
{
    if (live->since_ms >= 0)
        live->ran_ms += ST_MAX(now - live->since_ms, 0);
    live->since_ms = -1;
    if (live->detail && strstr(live->detail, ",\"grants\":"))
        begin_again(live);
}

/* Where it is, for people. */
static void set_detail(const st_control *ctl, st_live *live, const st_grant *grants, int n,
                       int32_t type)
{
    const st_fleet *fleet = st_core_fleet(ctl->core);
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    begin_detail(live, &out);
    if (type >= 0) {
        st_strbuf_add(&out, ",\"type\":");
        st_quote_json(&out, fleet->types.v[type].name);
    }
    st_strbuf_add(&out, ",\"grants\":[");
    for (int t = 0; t < n; t++) {
        st_strbuf_addf(&out, "%s{\"node\":", t ? "," : "");
        st_quote_json(&out, fleet->nodes.v[grants[t].node]->name);
        st_strbuf_add(&out, ",\"gpus\":[");
        for (int d = 0, first = 1; d < ST_DEVS_MAX; d++) {
            if (!(grants[t].devs >> d & 1))
                continue;
            st_strbuf_addf(&out, "%s%d", first ? "" : ",", d);
            first = 0;
        }
        st_strbuf_add(&out, "]");
        if (grants[t].mig_start >= 0)
            st_strbuf_addf(&out, ",\"mig_start\":%d", grants[t].mig_start);
        st_strbuf_add(&out, "}");
    }
    st_strbuf_add(&out, "]}");
    free(live->detail);
    live->detail = st_strbuf_take(&out);
}

static void end_live(st_control *ctl, st_live *live, const st_effect *fx)
{
    bool sane = live->said_end_ms >= live->submit_ms && live->said_end_ms <= fx->at_ms;

    live->end_ms = live->said_end_ms > 0 && sane ? live->said_end_ms : fx->at_ms;
    live->state = fx->state;
    live->class = fx->class;
    st_live_used_write(live);
    st_vec_push(&ctl->over, live);
}

/* NULL for an effect without any: there may be no list to point into. */
static const st_grant *grants_of(const st_tx *tx, const st_effect *fx)
{
    return fx->ngrants > 0 ? tx->fx.grants.v + fx->grants_at : NULL;
}

/* Brings what is remembered of a job in line with one effect. */
/* Whatever its tasks said when they were killed came of it. */
static void say_fault(const st_control *ctl, st_live *live, int32_t node)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    st_strbuf_addf(&text, "node %s failed under it (on_fault: fail)",
                   st_core_fleet(ctl->core)->nodes.v[node]->name);
    free(live->reason);
    live->reason = st_strbuf_take(&text);
}

static void say_never(const st_control *ctl, st_live *live, uint64_t never)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    char id[ST_ID_TEXT];

    st_control_id_text(ctl, never, id);
    st_strbuf_addf(&text, "%s did not end as this job had to wait for it to", id);
    free(live->reason);
    live->reason = st_strbuf_take(&text);
}

static void follow(st_tx *tx, const st_effect *fx)
{
    st_control *ctl = tx->ctl;
    st_live *live = st_control_live(ctl, fx->job);
    const st_job *job = st_core_job(ctl->core, fx->job);

    if (!live)
        return;
    st_control_touch(ctl, live);
    live->state = fx->state;
    live->class = fx->class;
    if (job)
        live->preemptions = job->preemptions;
    switch (fx->kind) {
    case ST_FX_START:
        live->stay = fx->stay;
        live->said_start_ms = live->said_end_ms = 0; /* that was of the stay before */
        live->start_noted = false;
        st_vec_clear(&live->late);
        if (live->start_ms == ST_STORE_NEVER)
            live->start_ms = fx->at_ms;
        __attribute__((fallthrough));
    case ST_FX_RESUME:
        live->since_ms = fx->at_ms;
        set_detail(ctl, live, grants_of(tx, fx), fx->ngrants, (int32_t)fx->type);
        break;
    case ST_FX_PAUSE:
        leave(live, fx->at_ms);
        break;
    case ST_FX_RETRY:
        live->tries++;
        live->retry_ms = fx->until_ms;
        __attribute__((fallthrough));
    case ST_FX_REQUEUE:
        leave(live, fx->at_ms);
        live->lost += fx->lost_gpu_ms;
        free(live->left);
        live->left = ST_TAKE(live->detail);
        set_detail(ctl, live, NULL, 0, -1);
        break;
    case ST_FX_END:
        live->lost += fx->lost_gpu_ms;
        if (fx->node >= 0)
            say_fault(ctl, live, fx->node);
        if (fx->never)
            say_never(ctl, live, fx->never);
        end_live(ctl, live, fx);
        break;
    default:
        break;
    }
    st_live_charge(ctl, live);
}

void st_live_place(st_control *ctl, st_live *live)
{
    const st_job *job = st_core_job(ctl->core, live->id);
    ST_CLEANUP(st_freep) char *was = live->detail ? st_xstrdup(live->detail) : NULL;
    bool on = st_job_on_devices(job), placed = on || job->state == ST_JOB_PAUSED;

    if (on && live->since_ms < 0)
        live->since_ms = job->start_ms;
    if (!on)
        leave(live, st_core_now(ctl->core));
    if (on && live->start_ms == ST_STORE_NEVER)
        live->start_ms = job->start_ms;
    set_detail(ctl, live, placed ? job->grants : NULL, placed ? job->tasks : 0,
               placed ? job->type : -1);
    if (!on || (was && strcmp(was, live->detail) == 0))
        return;
    st_core_recall_stay(ctl->core, live->id, live->stay + 1, 0);
    live->stay = job->stay;
    live->since_ms = job->start_ms;
    set_detail(ctl, live, job->grants, job->tasks, job->type);
}

int st_rows_write(st_tx *tx, st_err *err)
{
    st_control *ctl = tx->ctl;
    int r = 0;

    for (size_t i = 0; i < tx->fx.list.n; i++)
        if (tx->fx.list.v[i].job != 0)
            follow(tx, &tx->fx.list.v[i]);
    for (size_t i = 0; r == 0 && i < tx->fx.list.n; i++)
        if (tx->fx.list.v[i].kind == ST_FX_BOOKING)
            r = st_booking_follow(tx, &tx->fx.list.v[i], err);
    for (size_t i = 0; r == 0 && i < tx->fx.list.n; i++)
        if (tx->fx.list.v[i].kind == ST_FX_NODE || tx->fx.list.v[i].kind == ST_FX_GPU)
            r = st_node_follow(tx, &tx->fx.list.v[i], err);
    if (r == 0)
        r = st_notices_follow(tx, err);
    for (size_t i = 0; r == 0 && i < ctl->dirty.n; i++) {
        st_live *live = ctl->dirty.v[i];
        st_job_row row;

        st_live_row_own(live, &row);
        if (live->head && live->head->fresh) {
            r = st_store_array_put(ctl->store, row.part_of, live->head->text, err);
            live->head->fresh = false;
        }
        if (r < 0)
            break;
        if (live->fresh)
            st_stands_of(ctl, live->account, &row.stands);
        r = live->fresh ? st_store_job_insert(ctl->store, &row, err)
                        : st_store_job_update(ctl->store, &row, err);
        live->fresh = live->dirty = false;
    }
    st_vec_clear(&ctl->dirty);
    return st_tx_fault(tx, r, err);
}

/* ---- after the commit ---------------------------------------------------------------------- */

static int order_kind(st_effect_kind kind)
{
    switch (kind) {
    case ST_FX_START:
        return ST_ENG_RUN;
    case ST_FX_RESUME:
        return ST_ENG_RESUME;
    case ST_FX_NOTIFY:
        return ST_ENG_NOTIFY;
    case ST_FX_SPARE:
        return ST_ENG_SPARE;
    case ST_FX_CHECKPOINT:
        return ST_ENG_CHECKPOINT;
    case ST_FX_PAUSE:
        return ST_ENG_PAUSE;
    case ST_FX_STOP:
        return ST_ENG_HALT;
    case ST_FX_REQUEUE:
    case ST_FX_RETRY:
    case ST_FX_END:
        return ST_ENG_STOP;
    default:
        return -1;
    }
}

static void add_volumes(st_control *ctl, const st_live *live, const char *doc, st_strbuf *out)
{
    char name[ST_ID_TEXT];

    st_control_id_text(ctl, live->id, name);
    st_volumes_order(ctl->volumes, live->account, doc, name, out);
}

static void order(st_control *ctl, int kind, const st_live *live, const st_job *job,
                  const st_grant *grants, int ngrants, int64_t at_ms, int64_t until_ms)
{
    st_engine *engine = ctl->options.engine;

    if (!engine || kind < 0)
        return;
    const st_tree *tree = st_core_tree(ctl->core);
    int32_t domain = job ? st_tree_domain(tree, job->account) : ST_ROOT;
    const st_account *account = job ? st_tree_account(tree, job->account) : NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf image = {0}, volumes = {0};

    const char *doc = st_live_doc(ctl, live);

    /* Placed by what it needs, so its pool gives that. */
    bool host = job && (job->shape.needs >> ST_ALLOW_HOST_IMAGE & 1);

    if (kind == ST_ENG_RUN && ctl->images)
        st_images_order(ctl->images, live->account, doc, host, &image);
    if (kind == ST_ENG_RUN && ctl->volumes)
        add_volumes(ctl, live, doc, &volumes);
    const st_engine_order o = {.kind = (st_engine_order_kind)kind,
                               .job = live->id,
                               .stay = live->stay,
                               .at_ms = at_ms,
                               .until_ms = until_ms,
                               .ran_ms = job ? st_job_ran_ms(job, at_ms) : 0,
                               .account = live->account,
                               .user = live->user,
                               .untrusted = job && st_tree_untrusted(tree, job->account),
                               .domain = job ? st_tree_account(tree, domain)->name : NULL,
                               .tenant = account ? account->serial : 0,
                               .domain_tenant = st_tree_account(tree, domain)->serial,
                               .named = account && account->serial <= tree->named,
                               .domain_named = st_tree_account(tree, domain)->serial <= tree->named,
                               .doc = doc,
                               .image = st_strbuf_str(&image),
                               .volumes = st_strbuf_str(&volumes),
                               .spec = job,
                               .grants = grants,
                               .ngrants = ngrants,
                               .fleet = st_core_fleet(ctl->core)};
    engine->ops->order(engine, &o);
}

void st_control_retime(st_control *ctl, uint64_t id)
{
    const st_live *live = st_control_live(ctl, id);
    const st_job *job = live ? st_core_job(ctl->core, id) : NULL;

    if (job && st_job_on_devices(job))
        order(ctl, ST_ENG_LIMIT, live, job, job->grants, job->tasks, st_core_now(ctl->core), 0);
}

#define GRANTS_MAX 4096 /* bytes in an event; of more, who draws a map asks for it again */

/* Of the array that begins there; names have no brackets. */
static size_t array_len(const char *at)
{
    int depth = 0;

    for (size_t i = 0; at[i]; i++) {
        depth += at[i] == '[' ? 1 : at[i] == ']' ? -1 : 0;
        if (depth == 0)
            return i + 1;
    }
    return 0;
}

/* Which devices an effect is about, from where the job is or was. */
static const char *devices_told(const st_effect *fx, const st_live *live, char buf[GRANTS_MAX])
{
    bool waits_again = fx->kind == ST_FX_REQUEUE || fx->kind == ST_FX_RETRY;
    const char *detail = waits_again ? live->left : live->detail;
    const char *at = detail ? strstr(detail, "\"grants\":[") : NULL;
    size_t n;

    switch (fx->kind) {
    case ST_FX_START:
    case ST_FX_RESUME:
    case ST_FX_PAUSE:
    case ST_FX_REQUEUE:
    case ST_FX_RETRY:
    case ST_FX_END:
        break;
    default:
        return NULL;
    }
    if (!at)
        return NULL;
    at += strlen("\"grants\":");
    n = array_len(at);
    if (n <= 2 || n >= GRANTS_MAX)
        return NULL;
    memcpy(buf, at, n);
    buf[n] = '\0';
    return buf;
}

static void tell_deadline(st_control *ctl, const st_effect *fx, const st_live *live,
                          st_deadline state)
{
    const st_effect none = {.kind = ST_FX_CLASS, .node = -1, .account = -1};
    const st_notice n = {.seq = ++ctl->notice_seq,
                         .at_ms = fx->at_ms,
                         .job = live->id,
                         .account = live->account,
                         .kind = "deadline",
                         .name = live->name,
                         .state = st_job_state_name(live->state),
                         .deadline = st_deadline_name(state),
                         .fx = &none};

    ctl->options.listen(ctl->options.ctx, &n);
}

/* What is kept for a deadline has lost its place or found one, or the job has ended: told just before its end. */
static void follow_deadline(st_control *ctl, const st_effect *fx, const st_live *ended)
{
    const st_booking *b = fx->kind == ST_FX_BOOKING ? st_core_booking(ctl->core, fx->other) : NULL;
    st_live *live = b && b->job ? st_control_live(ctl, b->job) : NULL;

    if (!ctl->options.listen)
        return;
    if (live && live->at_risk != live->risk_told) {
        live->risk_told = live->at_risk;
        tell_deadline(ctl, fx, live, live->at_risk ? ST_DEADLINE_AT_RISK : ST_DEADLINE_PROMISED);
    }
    if (ended && fx->kind == ST_FX_END && ended->by_ms > 0)
        tell_deadline(ctl, fx, ended,
                      ended->state == ST_JOB_DONE && ended->end_ms <= ended->by_ms
                          ? ST_DEADLINE_MET
                          : ST_DEADLINE_MISSED);
}

/* For owners alone; a person is wanted where a breaker has tripped. */
static void tell_incident(st_control *ctl, const st_effect *fx, st_notice n)
{
    const st_incident *inc = st_core_incident(ctl->core, fx->other);

    n.state = st_incident_name((st_incident_news)fx->news);
    n.name = fx->node >= 0 ? st_core_fleet(ctl->core)->nodes.v[fx->node]->name : NULL;
    n.incident.id = fx->other;
    n.incident.kind = inc ? inc->kind : ST_FAULT_NONE;
    n.incident.reason = inc && inc->words[0] ? inc->words : NULL;
    ctl->options.listen(ctl->options.ctx, &n);
}

static void log_incident(st_control *ctl, const st_effect *fx)
{
    const st_incident *inc = st_core_incident(ctl->core, fx->other);
    const char *node = fx->node >= 0 ? st_core_fleet(ctl->core)->nodes.v[fx->node]->name : "";
    char id[ST_ID_TEXT];

    st_control_name(ctl, ST_INCIDENT_ID, fx->other, id);
    st_control_say(ctl, "event=incident incident=%s news=%s kind=%s cause=%s node=%s", id,
                   st_incident_name((st_incident_news)fx->news),
                   st_fault_name(inc ? inc->kind : ST_FAULT_NONE),
                   st_cause_name(st_fault_cause(inc ? inc->kind : ST_FAULT_NONE)), node);
}

static void tell_gpu(const st_control *ctl, const st_effect *fx, st_notice *n)
{
    const st_node *node = st_core_fleet(ctl->core)->nodes.v[fx->node];
    int gpu = (int)fx->other;

    n->state = st_node_state_name((st_node_state)fx->node_state);
    if ((node->out >> gpu & 1) && node->gpus[gpu].note.by)
        n->word = &node->gpus[gpu].note;
}

static void tell(st_control *ctl, const st_effect *fx, const st_live *live)
{
    char grants[GRANTS_MAX];
    st_notice n = {.seq = ++ctl->notice_seq,
                   .at_ms = fx->at_ms,
                   .job = fx->job,
                   .account = "",
                   .kind = st_effect_name(fx->kind),
                   .fx = fx};

    if (!ctl->options.listen)
        return;
    if (fx->kind == ST_FX_INCIDENT) {
        tell_incident(ctl, fx, n);
        return;
    }
    if (live) {
        n.account = live->account;
        n.name = live->name;
        n.state = st_job_state_name(fx->state);
        n.grants = devices_told(fx, live, grants);
        n.reason = fx->kind == ST_FX_END ? live->reason : NULL;
        if (fx->kind == ST_FX_DRAIN) {
            n.node = st_core_fleet(ctl->core)->nodes.v[fx->node]->name;
            n.then = st_drain_name((st_drain_then)fx->then);
        }
    } else if (fx->node >= 0) {
        n.name = st_core_fleet(ctl->core)->nodes.v[fx->node]->name;
        if (fx->kind == ST_FX_NODE)
            n.state = st_node_state_name((st_node_state)fx->node_state);
        if (fx->kind == ST_FX_NODE && fx->node_state != ST_NODE_READY)
            n.word = st_node_note_of(st_core_fleet(ctl->core)->nodes.v[fx->node]);
        if (fx->kind == ST_FX_GPU)
            tell_gpu(ctl, fx, &n);
    } else if (fx->account > ST_ROOT) {
        if (fx->kind == ST_FX_BOOKING) {
            n.booking = fx->other;
            n.degraded = fx->booking_state >= ST_BOOKING_DEGRADED;
            n.state =
                st_booking_state_name((st_booking_state)(fx->booking_state % ST_BOOKING_DEGRADED));
        }
        n.name = n.account = st_tree_account(st_core_tree(ctl->core), fx->account)->name;
    }
    ctl->options.listen(ctl->options.ctx, &n);
}

/* A job that started and had to wait again in one transaction has waited for nothing in between. */
static void count(st_control *ctl, const st_effect *fx, const st_live *live)
{
    const st_job *job = st_core_job(ctl->core, fx->job);

    st_tallies_add(ctl->tallies, st_tree_find(st_core_tree(ctl->core), live->account), fx,
                   job ? job->queued_ms : live->submit_ms);
}

void st_rows_tell(st_tx *tx)
{
    st_control *ctl = tx->ctl;

    ctl->count.effects += tx->fx.list.n;
    for (size_t i = 0; i < tx->fx.list.n; i++) {
        const st_effect *fx = &tx->fx.list.v[i];
        const st_live *live = fx->job ? st_control_known(ctl, fx->job) : NULL;

        if (live)
            order(ctl, order_kind(fx->kind), live, st_core_job(ctl->core, fx->job),
                  grants_of(tx, fx), fx->ngrants, fx->at_ms, fx->until_ms);
        if (fx->kind == ST_FX_NODE || fx->kind == ST_FX_GPU)
            st_control_tell_node(ctl, fx->node);
        if (fx->kind == ST_FX_INCIDENT)
            log_incident(ctl, fx);
        follow_deadline(ctl, fx, live);
        tell(ctl, fx, live);
        if (live)
            count(ctl, fx, live);
    }
    st_notices_out(ctl);
}

void st_rows_forget_ended(st_control *ctl)
{
    for (size_t i = 0; i < ctl->over.n; i++) {
        st_live *live = ctl->over.v[i], *last = ctl->all.v[ctl->all.n - 1];

        ctl->all.v[live->slot] = last;
        last->slot = live->slot;
        ctl->all.n--;
        st_idmap_del(ctl->live, live->id);
        st_control_drop_live(ctl, live);
    }
    st_vec_clear(&ctl->over);
}

/* After a start the engine is told everything again. */
void st_control_order_all(st_control *ctl)
{
    int64_t now = ctl->options.clock(ctl->options.ctx);

    st_control_tell_nodes(ctl);
    for (size_t i = 0; i < st_core_njobs(ctl->core); i++) {
        const st_job *job = st_core_job_at(ctl->core, i);
        const st_live *live = st_control_live(ctl, job->id);

        if (!live)
            continue;
        if (job->stopping) {
            order(ctl, ST_ENG_HALT, live, job, job->grants, job->tasks, now, 0);
            continue;
        }
        if (st_job_on_devices(job))
            order(ctl, ST_ENG_RUN, live, job, job->grants, job->tasks, now, 0);
        if (job->state == ST_JOB_NOTIFIED)
            order(ctl, ST_ENG_NOTIFY, live, job, NULL, 0, now, job->deadline_ms);
        else if (job->state == ST_JOB_CHECKPOINTING)
            order(ctl, ST_ENG_CHECKPOINT, live, job, NULL, 0, now, job->deadline_ms);
        else if (job->state == ST_JOB_PAUSED)
            order(ctl, ST_ENG_PAUSE, live, job, job->grants, job->tasks, now, 0);
    }
}
