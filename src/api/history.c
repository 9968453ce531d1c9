/*
 * What the fleet was at a past moment: GET /v1/history. The map, the queue, who was leaving for whom, which nodes were out,
 * and what was decided shortly before, played from the log (control/past.h) by one thread beside the writer.
 *
 * Whoever asks sees what was then below the account that is theirs now: accounts are compared by number, so that
 * nobody sees what was done under a name before they had it. Nothing in an answer depends on what others did: events are
 * counted after they were chosen, and only owners are told to the minute how far back the log reaches.
 */
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "api/work.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "control/past.h"

#define LIST_MAX    200
#define TOLD_MS     (INT64_C(15) * 60000)
#define TOLD_MAX_MS (INT64_C(60) * 60000)
#define DAY_MS      (INT64_C(86400) * 1000)
#define ORG_MAX     4 /* questions of one organisation that wait or are answered */

struct st_moments {
    st_work *work; /* one thread */
    st_past *past; /* that thread's */
    pthread_mutex_t lock;
    ST_VEC(int32_t) orgs; /* whose questions those are */
};

typedef struct question {
    st_api *api;
    st_call *call;
    int64_t at_ms, told_ms, now_ms, from_ms;
    int32_t org;
} question;

/* What an answer is written from. */
typedef struct page {
    const st_api *api;
    const st_past_view *view;
    const st_core *core;
    const st_tree *tree;
    int32_t root; /* of the reader, in that tree; NOBODY: it was not there */
    st_strbuf *out;
} page;

#define NOBODY (-2)

/* ---- who sees what ------------------------------------------------------------------------------ */

static int32_t root_of(st_api *api, const st_identity *who, const st_tree *tree)
{
    int32_t id;

    if (!who->account[0])
        return ST_ROOT;
    id = st_tree_find(tree, who->account);
    return id > ST_ROOT &&
                   st_tree_account(tree, id)->serial == st_directory_serial(api->dir, who->account)
               ? id
               : NOBODY;
}

static bool sees(const page *p, int32_t account)
{
    return st_tree_within(p->tree, account, p->root);
}

/* ---- jobs --------------------------------------------------------------------------------------- */

static void id_json(const page *p, const char *key, uint64_t id)
{
    char text[ST_ID_TEXT];

    st_control_name(p->api->control, 'j', id, text);
    st_out_text(p->out, key, text);
}

static void who_json(const page *p, uint64_t id, const char *name, int32_t account, int32_t user,
                     int64_t gpu_m)
{
    id_json(p, "job", id);
    st_out_text(p->out, "name", name ? name : "");
    st_out_text(p->out, "account", st_tree_account(p->tree, account)->name);
    st_out_text(p->out, "user", user >= 0 ? p->tree->users.v[user] : "");
    st_out_milli(p->out, "gpus", gpu_m);
}

/* For whom, where the reader may know it. */
static void for_json(const page *p, uint64_t id, const char *name, int32_t account)
{
    if (!sees(p, account))
        return;
    id_json(p, "for", id);
    st_out_text(p->out, "for_name", name ? name : "");
    st_out_text(p->out, "for_account", st_tree_account(p->tree, account)->name);
}

static void job_json(const page *p, const st_job *job)
{
    const st_job *claimant = job->claimant ? st_core_job(p->core, job->claimant) : NULL;

    who_json(p, job->id, job->name, job->account, job->user, st_job_gpu_m(job));
    st_out_text(p->out, "state", st_job_state_name(job->state));
    st_out_int(p->out, "priority", job->priority);
    st_out_time(p->out, "submitted", job->submit_ms);
    st_out_time(p->out, "since", st_job_on_devices(job) ? job->start_ms : job->queued_ms);
    if (st_job_leaving(job) && job->deadline_ms > 0)
        st_out_time(p->out, "until", job->deadline_ms);
    if (st_job_leaving(job) && claimant)
        for_json(p, claimant->id, claimant->name, claimant->account);
}

typedef ST_VEC(const st_job *) job_list;

static int by_turn(const void *x, const void *y)
{
    const st_job *a = *(const st_job *const *)x, *b = *(const st_job *const *)y;

    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (a->queued_ms != b->queued_ms)
        return a->queued_ms < b->queued_ms ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static void jobs_json(const page *p, const char *key, const char *more, job_list *list)
{
    if (list->n > 0)
        qsort(list->v, list->n, sizeof *list->v, by_turn);
    st_out_raw(p->out, key, "[");
    for (size_t i = 0; i < list->n && i < LIST_MAX; i++) {
        st_strbuf_add(p->out, i ? ",{" : "{");
        job_json(p, list->v[i]);
        st_strbuf_addc(p->out, '}');
    }
    st_strbuf_addc(p->out, ']');
    st_out_int(p->out, more, list->n > LIST_MAX ? (int64_t)(list->n - LIST_MAX) : 0);
    st_vec_free(list);
}

static void queue_json(const page *p)
{
    job_list waiting = {0}, leaving = {0};

    for (size_t i = 0; i < st_core_njobs(p->core); i++) {
        const st_job *job = st_core_job_at(p->core, i);

        if (!sees(p, job->account))
            continue;
        if (job->state == ST_JOB_PENDING)
            st_vec_push(&waiting, job);
        else if (st_job_leaving(job) || job->state == ST_JOB_PAUSED)
            st_vec_push(&leaving, job);
    }
    jobs_json(p, "waiting", "waiting_more", &waiting);
    jobs_json(p, "leaving", "leaving_more", &leaving);
}

/* ---- nodes and decisions ------------------------------------------------------------------------ */

static void nodes_json(const page *p)
{
    const st_fleet *fleet = st_core_fleet(p->core);
    const char *sep = "{";

    st_out_raw(p->out, "closed", "[");
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        const st_node *n = fleet->nodes.v[i];

        if (n->state == ST_NODE_REMOVED || n->state == ST_NODE_READY)
            continue;
        st_strbuf_add(p->out, sep);
        st_out_text(p->out, "name", n->name);
        st_out_text(p->out, "state", st_node_state_name(n->state));
        st_strbuf_addc(p->out, '}');
        sep = ",{";
    }
    st_strbuf_addc(p->out, ']');
}

/* What is told of: where jobs came and went, and who had to yield. */
static bool is_told(const page *p, const st_past_move *m)
{
    switch (m->kind) {
    case ST_FX_QUEUED:
    case ST_FX_START:
    case ST_FX_RESUME:
    case ST_FX_HOLD:
    case ST_FX_NOTIFY:
    case ST_FX_SPARE:
    case ST_FX_CHECKPOINT:
    case ST_FX_PAUSE:
    case ST_FX_REQUEUE:
    case ST_FX_RETRY:
    case ST_FX_END:
    case ST_FX_STOP:
        return m->job >= 0 && sees(p, p->view->jobs[m->job].account);
    case ST_FX_NODE:
        return m->node >= 0; /* what the fleet is, is everybody's */
    default:
        return false;
    }
}

static void move_json(const page *p, const st_past_move *m)
{
    const st_past_job *job = m->job >= 0 ? &p->view->jobs[m->job] : NULL;
    const st_past_job *other = m->other >= 0 ? &p->view->jobs[m->other] : NULL;

    st_out_time(p->out, "at", m->at_ms);
    st_out_text(p->out, "what", st_effect_name(m->kind));
    if (m->kind == ST_FX_NODE) {
        st_out_text(p->out, "node", st_core_fleet(p->core)->nodes.v[m->node]->name);
        st_out_text(p->out, "state", st_node_state_name((st_node_state)m->value));
        return;
    }
    who_json(p, job->id, job->name, job->account, job->user, job->gpu_m);
    st_out_text(p->out, "state", st_job_state_name(m->state));
    if (m->kind == ST_FX_REQUEUE && m->value > 0)
        st_out_milli(p->out, "lost_gpu_seconds", m->value / 1000);
    if (other)
        for_json(p, other->id, other->name, other->account);
}

/* The newest first. */
static void moves_json(const page *p)
{
    int64_t more = 0;
    size_t n = 0;

    st_out_time(p->out, "events_since", p->view->told_ms);
    st_out_raw(p->out, "events", "[");
    for (size_t i = p->view->nmoves; i > 0; i--) {
        const st_past_move *m = &p->view->moves[i - 1];

        if (m->at_ms < p->view->told_ms)
            break;
        if (!is_told(p, m))
            continue;
        if (n >= LIST_MAX) {
            more++;
            continue;
        }
        st_strbuf_add(p->out, n++ ? ",{" : "{");
        move_json(p, m);
        st_strbuf_addc(p->out, '}');
    }
    st_strbuf_addc(p->out, ']');
    st_out_int(p->out, "events_more", more);
}

/* ---- answering ---------------------------------------------------------------------------------- */

static void write_page(const question *q, const st_past_view *view, st_strbuf *out)
{
    const st_identity *who = st_api_who(q->call);
    page p = {.api = q->api, .view = view, .core = view->core, .out = out};

    p.tree = st_core_tree(view->core);
    p.root = root_of(q->api, who, p.tree);
    st_strbuf_addc(out, '{');
    st_out_time(out, "at", q->at_ms);
    st_out_time(out, "from", q->from_ms);
    st_out_time(out, "to", q->now_ms);
    st_out_raw(out, "exact", view->exact ? "true" : "false");
    st_api_map_json(view->core, p.root, out);
    st_api_states_json(view->core, p.root, out);
    queue_json(&p);
    nodes_json(&p);
    moves_json(&p);
    st_strbuf_addc(out, '}');
}

/* When snapshots are written depends on what everybody does: others than owners are told days. */
static int find_from(question *q, st_store *reader, st_err *err)
{
    bool whole = false;
    int r = st_past_first(reader, &q->from_ms, &whole, err);

    if (r == 0 && !whole && st_api_who(q->call)->account[0])
        q->from_ms = (q->from_ms / DAY_MS + 1) * DAY_MS;
    if (r == 0 && q->at_ms < q->from_ms) {
        char text[32];

        st_fmt_time(text, q->from_ms);
        r = st_fail(err, ST_ERANGE,
                    "the log is kept from %s on; ask for a later time, or have it kept for longer "
                    "(history_keep)",
                    text);
    }
    return r;
}

static void leave(st_moments *h, int32_t org)
{
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->orgs.n; i++)
        if (h->orgs.v[i] == org) {
            h->orgs.v[i] = h->orgs.v[--h->orgs.n];
            break;
        }
    pthread_mutex_unlock(&h->lock);
}

static bool enter(st_moments *h, int32_t org)
{
    int n = 0;

    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->orgs.n; i++)
        n += h->orgs.v[i] == org;
    if (n < ORG_MAX)
        st_vec_push(&h->orgs, org);
    pthread_mutex_unlock(&h->lock);
    return n < ORG_MAX;
}

static void answer(void *arg)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    question *q = arg;
    st_moments *h = q->api->history;
    st_past_view view;
    st_err err = {0};
    st_store *reader;
    int r;

    st_api_stamp_now(q->api, q->call);
    reader = st_api_reader(q->api, &err);
    r = reader ? find_from(q, reader, &err) : -1;
    if (r == 0)
        r = st_past_at(h->past, reader, q->at_ms, q->told_ms, &view, &err);
    if (r == 0)
        write_page(q, &view, &out);
    if (reader)
        st_api_reader_back(q->api, reader);
    leave(h, q->org);
    if (r < 0)
        st_call_fail(q->call, &err);
    else
        st_call_reply_buf(q->call, 200, NULL, &out);
    free(q);
}

static int read_question(question *q, st_err *err)
{
    const char *before = st_call_query(q->call, "before");
    int r = st_api_query_time(q->api, q->call, "at", &q->at_ms, err);

    q->now_ms = q->api->options.clock(q->api->options.ctx);
    q->told_ms = TOLD_MS;
    if (r == 0 && q->at_ms == 0)
        q->at_ms = q->now_ms;
    if (r == 0 && before)
        r = st_parse_duration_ms(before, &q->told_ms, err);
    if (r == 0 && (q->told_ms < 0 || q->told_ms > TOLD_MAX_MS))
        r = st_fail(err, ST_ERANGE, "before: events of up to %d minutes are told",
                    (int)(TOLD_MAX_MS / 60000));
    if (r == 0 && q->at_ms > q->now_ms)
        r = st_fail(err, ST_ERANGE, "at: that moment is still to come");
    return r;
}

void st_api_history(st_call *call, void *ctx)
{
    st_api *api = ctx;
    question *q = st_xcalloc(1, sizeof *q);
    st_err err = {0};
    int r;

    q->api = api;
    q->call = call;
    q->org = st_directory_org(api->dir, st_api_who(call)->account);
    r = read_question(q, &err);
    if (r == 0 && !enter(api->history, q->org)) {
        r = st_fail(&err, ST_EDOWN,
                    "your organisation asks for %d past moments already; try again in a moment",
                    ORG_MAX);
    } else if (r == 0) {
        st_call_defer(call);
        if (st_work_run(api->history->work, answer, q))
            return;
        leave(api->history, q->org);
        r = st_fail(&err, ST_EDOWN, "many ask for past moments just now; try again in a moment");
    }
    st_call_fail(call, &err);
    free(q);
}

/* ---- made and freed with the API ---------------------------------------------------------------- */

st_moments *st_moments_new(void)
{
    st_moments *h = st_xcalloc(1, sizeof *h);

    h->work = st_work_new(1, 64, 10);
    h->past = st_past_new(ST_PAST_SLICE_MS);
    ST_ASSERT(pthread_mutex_init(&h->lock, NULL) == 0);
    return h;
}

void st_moments_free(st_moments *h)
{
    if (!h)
        return;
    st_work_free(h->work);
    st_past_free(h->past);
    st_vec_free(&h->orgs);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
