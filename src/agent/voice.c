/*
 * The thread that speaks with stintd (agent/voice.h).
 */
#include "agent/voice.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/fence.h"
#include "agent/files.h"
#include "agent/host.h"
#include "base/mem.h"
#include "base/quote.h"

#define STATUS_MS    10000 /* for an answer to a status */
#define LOG_MS       15000 /* to a piece of a log */
#define LOG_DOWN_MS  20000 /* without an answer, and ends no longer wait for logs */
#define POLL_MORE_MS 10000 /* beyond what stintd may wait */
#define PAUSE_MIN_MS 200
#define PAUSE_MAX_MS 15000
#define IDLE_MS      1000
#define AGAIN_MS     2000 /* between two registrations that nothing came of */
#define CHUNK        65536

struct st_agent_voice {
    st_process *process;
    pthread_t thread;
    bool over; /* under the lock */
    pthread_mutex_t lock;
};

void st_mail_init(st_mail *m)
{
    ST_ASSERT(pthread_mutex_init(&m->lock, NULL) == 0);
    m->chunk = CHUNK;
    m->health = "ok";
    m->doing = "its start";
    m->turn_ms = st_boot_ms();
}

void st_mail_done(st_mail *m)
{
    st_strbuf_done(&m->report);
    st_strbuf_done(&m->piece);
    st_strbuf_done(&m->list);
    pthread_mutex_destroy(&m->lock);
}

/* ---- for the acting side ------------------------------------------------------------------------- */

/* Under the lock. */
static bool is_over_now(const st_mail *m)
{
    return !m->keep && m->lease_end_ms > 0 && st_boot_ms() >= m->lease_end_ms;
}

bool st_voice_lease_over(st_host *h)
{
    bool over;

    pthread_mutex_lock(&h->mail.lock);
    over = h->mail.lapsed || is_over_now(&h->mail);
    h->mail.lapsed = false;
    pthread_mutex_unlock(&h->mail.lock);
    return over;
}

bool st_voice_leased(st_host *h)
{
    bool leased;

    pthread_mutex_lock(&h->mail.lock);
    leased = h->mail.lease_end_ms > st_boot_ms();
    pthread_mutex_unlock(&h->mail.lock);
    return leased;
}

void st_voice_doing(st_host *h, const char *what)
{
    pthread_mutex_lock(&h->mail.lock);
    h->mail.turn_ms = st_boot_ms();
    h->mail.doing = what;
    pthread_mutex_unlock(&h->mail.lock);
}

void st_voice_wake(st_host *h)
{
    pthread_mutex_lock(&h->mail.lock);
    h->mail.said = true;
    pthread_mutex_unlock(&h->mail.lock);
    st_lines_wake(h->process->lines);
}

static void poke(st_host *h)
{
    pthread_mutex_lock(&h->mail.lock);
    h->mail.poked = true;
    pthread_mutex_unlock(&h->mail.lock);
    st_poll_wake(h->process->poll);
}

/* ---- pauses ------------------------------------------------------------------------------------- */

void st_retry_ok(st_retry *r)
{
    *r = (st_retry){0};
}

/* Twice as long each time, and never for all nodes at once. */
void st_retry_later(st_host *h, st_retry *r)
{
    int64_t most = ST_MIN((int64_t)PAUSE_MIN_MS << ST_MIN(r->failures, 10), PAUSE_MAX_MS);

    r->failures++;
    r->at_ms =
        st_boot_ms() + most / 2 + (int64_t)st_rng_below(&h->process->rng, (uint64_t)most / 2);
}

/* ---- statuses ----------------------------------------------------------------------------------- */

static void take_terms(st_host *h, const json_t *answer)
{
    const char *end = json_string_value(json_object_get(answer, "at_lease_end"));
    int64_t lease = json_integer_value(json_object_get(answer, "lease_ms"));
    int64_t now = json_integer_value(json_object_get(answer, "now_ms"));
    st_talk *k = &h->talk;
    st_run_lease fresh;
    st_err err = {0};
    int r = 0;

    if (lease > 0)
        k->lease_ms = lease;
    fresh =
        (st_run_lease){.end_ms = k->sent_ms + k->lease_ms, .keep = end && strcmp(end, "keep") == 0};
    if (h->exec->ops->real)
        r = st_lease_save(h->dir, &fresh, &err);
    /* A lease that supervisors do not know of is none: they would end what it is for. */
    if (r < 0 && !k->unsaved)
        st_say(h, "lease-not-saved", "reason=\"%s\"", err.msg);
    k->unsaved = r < 0;
    pthread_mutex_lock(&h->mail.lock);
    /* A lease that ended before the acting side has looked has ended: what it had may run elsewhere. */
    h->mail.lapsed = h->mail.lapsed || is_over_now(&h->mail);
    h->mail.keep = fresh.keep;
    h->mail.lease_end_ms = fresh.end_ms;
    if (now > 0)
        h->mail.skew_ms = now - st_boot_ms();
    pthread_mutex_unlock(&h->mail.lock);
}

/* What is wrong, beside the words for people. */
void st_finding_json(const st_finding *found, st_strbuf *out)
{
    st_strbuf_addf(out, ",\"fault\":{\"kind\":\"%s\"", st_fault_name(found->kind));
    if (found->gpu >= 0)
        st_strbuf_addf(out, ",\"gpu\":%d", found->gpu);
    if (found->code > 0)
        st_strbuf_addf(out, ",\"code\":%" PRId64, found->code);
    st_strbuf_addc(out, '}');
}

/* Under the lock. A clock of its own for each report: the times in it are by that. */
static void status_json(const st_mail *m, const char *health, const char *reason,
                        const st_finding *found, st_strbuf *out)
{
    st_strbuf_addf(out,
                   "{\"epoch\":%" PRId64 ",\"branch\":%" PRId64 ",\"position\":%" PRId64
                   ",\"revision\":%" PRIu64 ",\"now_ms\":%" PRId64 ",\"node\":{\"health\":\"%s\"",
                   m->epoch, m->at.branch, m->at.position, m->revision,
                   st_boot_ms() + m->wall_of_ms, health);
    if (reason[0]) {
        st_strbuf_add(out, ",\"reason\":");
        st_quote_json(out, reason);
        st_finding_json(found, out);
    }
    st_strbuf_add(out, "},");
    st_strbuf_addn(out, m->report.s, m->report.n);
}

/* Under the lock: whether the acting side stands still. */
static bool stuck(const st_mail *m, char why[200])
{
    int64_t ago = st_boot_ms() - m->turn_ms;

    if (ago < ST_STALL_MS)
        return false;
    snprintf(why, 200, "its agent has been at %s for %" PRId64 " s", m->doing, ago / 1000);
    return true;
}

/* 0: sent; otherwise when to come again, on the boot clock. */
static int64_t send_status(st_host *h, int64_t boot)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};
    st_talk *k = &h->talk;
    st_mail *m = &h->mail;
    static const st_finding standing = {.kind = ST_FAULT_OTHER, .gpu = -1};
    char why[200];
    bool stall;

    pthread_mutex_lock(&m->lock);
    stall = stuck(m, why);
    if (m->report.n > 0 && !(stall && k->stalled)) {
        status_json(m, stall ? "failed" : m->health, stall ? why : m->reason,
                    stall ? &standing : &m->found, &body);
        k->sent_no = m->report_no;
    }
    pthread_mutex_unlock(&m->lock);
    if (body.n == 0)
        return boot + IDLE_MS;
    if (stall != k->stalled)
        st_say(h, stall ? "stalled" : "unstalled", "reason=\"%s\"", stall ? why : "");
    k->stalled = stall;
    k->sent_ms = boot;
    st_host_ask(h, k->main, "/v1/agent/status", "application/json", body.s, body.n, STATUS_MS);
    return 0;
}

static void complain(const st_host *h, const char *event, const st_answer *a)
{
    char q[ST_QUOTE_MAX];

    if (a->status == 0)
        st_say(h, event, "reason=\"%s\"", a->err.msg);
    else
        st_say(h, event, "status=%ld answer=%s", a->status, st_quote(q, a->body));
}

/* The list is the one that stintd has, or is being taken. */
static bool same_list(st_host *h, const json_t *root)
{
    uint64_t revision = (uint64_t)json_integer_value(json_object_get(root, "revision"));
    bool same;

    pthread_mutex_lock(&h->mail.lock);
    same = h->mail.has_list || revision == h->mail.revision;
    pthread_mutex_unlock(&h->mail.lock);
    return same;
}

static int64_t epoch_of(st_host *h)
{
    int64_t epoch;

    pthread_mutex_lock(&h->mail.lock);
    epoch = h->mail.epoch;
    pthread_mutex_unlock(&h->mail.lock);
    return epoch;
}

static void status_answered(st_host *h, const json_t *root)
{
    ST_CLEANUP(st_freep) char *trial = json_dumps(json_object_get(root, "trial"), JSON_COMPACT);
    st_talk *k = &h->talk;

    if (k->main_at.failures > 0)
        st_say(h, "back", "after=%d", k->main_at.failures);
    k->behind = same_list(h, root) ? 0 : k->behind + 1;
    /* A line that was cut may wait for ever: the network is back, or the list is long due. */
    if (k->main_at.failures > 0 || k->behind >= 2) {
        st_line_drop(k->poll);
        st_retry_ok(&k->poll_at);
        k->behind = 0;
    }
    st_retry_ok(&k->main_at);
    if (!k->stalled)
        take_terms(h, root);
    if (json_is_true(json_object_get(root, "taken")) && k->log_at.failures > 0)
        st_retry_ok(&k->log_at);
    pthread_mutex_lock(&h->mail.lock);
    /* Answered and not taken: stintd waits for the silence of an agent before us. It is said again. */
    if (!json_is_false(json_object_get(root, "taken")))
        h->mail.heard_no = k->sent_no;
    h->mail.test = json_integer_value(json_object_get(root, "test"));
    snprintf(h->mail.trial, sizeof h->mail.trial, "%s",
             trial && strlen(trial) < sizeof h->mail.trial ? trial : "");
    pthread_mutex_unlock(&h->mail.lock);
    k->main_at.at_ms = k->sent_ms + k->interval_ms;
    /* As long as it took: what changes all the time is said all the time, but half of it at most. */
    k->soon_ms = 2 * st_boot_ms() - k->sent_ms;
}

static void status_heard(st_host *h, const st_answer *a)
{
    json_t *root = a->status == 200 ? json_loadb(a->body, a->n, 0, NULL) : NULL;
    int64_t epoch = json_integer_value(json_object_get(root, "epoch"));
    st_talk *k = &h->talk;

    if (root && st_epoch_ok(epoch_of(h), epoch)) {
        status_answered(h, root);
    } else {
        if (k->main_at.failures == 0)
            complain(h, "status-failed", a);
        k->sent_no = 0;
        st_retry_later(h, &k->main_at);
        if (a->status == 401 || a->status == 404)
            k->registered = false;
        /* stintd was restarted: it hears us as soon as we have proved ourselves again. */
        if (a->status == 401 && st_boot_ms() >= k->registered_ms + AGAIN_MS)
            k->main_at.at_ms = 0;
    }
    json_decref(root);
    poke(h);
}

static void main_heard(void *ctx, const st_answer *a)
{
    st_host *h = ctx;

    h->talk.next_ms = 0;
    if (h->talk.registered)
        status_heard(h, a);
    else
        st_host_registered(h, a);
}

/* ---- the list ----------------------------------------------------------------------------------- */

static void poll_heard(void *ctx, const st_answer *a)
{
    st_host *h = ctx;
    st_talk *k = &h->talk;

    k->next_ms = 0;
    if (a->status == 200 && strncmp(a->body, ST_WAYS_ANSWER, strlen(ST_WAYS_ANSWER)) == 0) {
        st_ways_take(h->process->ways, h, a->body, a->n);
    } else if (a->status == 200) {
        pthread_mutex_lock(&h->mail.lock);
        st_strbuf_clear(&h->mail.list);
        st_strbuf_addn(&h->mail.list, a->body, a->n);
        h->mail.has_list = true;
        pthread_mutex_unlock(&h->mail.lock);
        poke(h);
    }
    if (a->status == 200 || a->status == 204)
        st_retry_ok(&k->poll_at);
    else
        st_retry_later(h, &k->poll_at);
}

/* Not before the last one was taken: it says which is known. */
static void ask_list(st_host *h)
{
    char path[96];
    bool wait;

    pthread_mutex_lock(&h->mail.lock);
    wait = h->mail.has_list || h->mail.bad_list;
    if (h->mail.bad_list)
        st_retry_later(h, &h->talk.poll_at);
    h->mail.bad_list = false;
    snprintf(path, sizeof path, "/v1/agent/desired?revision=%" PRIu64 "&wait=%" PRId64 "%s",
             h->mail.revision, h->talk.wait_ms / 1000, h->talk.tunnels ? "&tunnels=true" : "");
    pthread_mutex_unlock(&h->mail.lock);
    if (!wait)
        st_host_ask(h, h->talk.poll, path, NULL, NULL, 0, h->talk.wait_ms + POLL_MORE_MS);
}

/* ---- logs ----------------------------------------------------------------------------------------- */

static void send_piece(st_host *h)
{
    st_mail *m = &h->mail;

    pthread_mutex_lock(&m->lock);
    if (m->piece_state == ST_PIECE_READY)
        st_host_ask(h, h->talk.log, m->piece_path, "application/octet-stream", m->piece.s,
                    m->piece.n, LOG_MS);
    pthread_mutex_unlock(&m->lock);
}

static void piece_heard(void *ctx, const st_answer *a)
{
    st_host *h = ctx;
    json_t *root = a->status == 200 ? json_loadb(a->body, a->n, 0, NULL) : NULL;
    st_talk *k = &h->talk;
    st_mail *m = &h->mail;
    bool answered = root || a->status == 404;

    k->next_ms = 0;
    if (answered || k->log_ok_ms == 0)
        k->log_ok_ms = st_boot_ms();
    if (answered)
        st_retry_ok(&k->log_at);
    else
        st_retry_later(h, &k->log_at);
    pthread_mutex_lock(&m->lock);
    m->log_down = !answered && st_boot_ms() > k->log_ok_ms + LOG_DOWN_MS;
    if (answered && m->piece_state == ST_PIECE_READY) {
        m->piece_state = ST_PIECE_ANSWERED;
        m->piece_status = a->status;
        m->piece_next = json_integer_value(json_object_get(root, "next"));
    }
    pthread_mutex_unlock(&m->lock);
    json_decref(root);
    poke(h);
}

/* ---- a turn ------------------------------------------------------------------------------------- */

/* Whether something is urgent, or a report came where there was none. */
static bool pressing(st_host *h)
{
    bool urgent;

    pthread_mutex_lock(&h->mail.lock);
    urgent = h->mail.urgent_no > h->talk.sent_no;
    h->mail.said = false;
    pthread_mutex_unlock(&h->mail.lock);
    return urgent && h->talk.main_at.failures == 0;
}

static void turn(st_host *h, int64_t boot)
{
    st_talk *k = &h->talk;
    int64_t next = boot + IDLE_MS;
    bool urgent = pressing(h);

    if (!st_line_busy(k->main) && boot >= k->main_at.at_ms && !k->registered)
        st_host_register(h);
    if (k->registered) {
        if (!st_line_busy(k->log) && boot >= k->log_at.at_ms)
            send_piece(h);
        if (!st_line_busy(k->poll) && boot >= k->poll_at.at_ms)
            ask_list(h);
    }
    if (k->registered && !st_line_busy(k->main)) {
        int64_t due = urgent ? ST_MIN(k->main_at.at_ms, k->soon_ms) : k->main_at.at_ms;
        int64_t again = boot >= due ? send_status(h, boot) : due;

        next = again ? ST_MIN(next, again) : next;
    }
    if (!st_line_busy(k->main) && !k->registered)
        next = ST_MIN(next, k->main_at.at_ms);
    if (k->registered && !st_line_busy(k->poll) && k->poll_at.at_ms > boot)
        next = ST_MIN(next, k->poll_at.at_ms);
    if (k->registered && !st_line_busy(k->log) && k->log_at.at_ms > boot)
        next = ST_MIN(next, k->log_at.at_ms);
    k->next_ms = ST_MAX(next, boot + 1);
}

static bool was_said(st_host *h)
{
    bool said;

    pthread_mutex_lock(&h->mail.lock);
    said = h->mail.said;
    pthread_mutex_unlock(&h->mail.lock);
    return said;
}

static bool is_over(st_agent_voice *v)
{
    bool over;

    pthread_mutex_lock(&v->lock);
    over = v->over;
    pthread_mutex_unlock(&v->lock);
    return over;
}

static void *run(void *ctx)
{
    st_agent_voice *v = ctx;
    st_process *p = v->process;

    while (!is_over(v)) {
        int64_t boot = st_boot_ms(), next = boot + IDLE_MS;

        for (size_t i = 0; i < p->hosts.n; i++) {
            st_host *h = p->hosts.v[i];

            if (h->talk.next_ms <= boot || was_said(h))
                turn(h, boot);
            next = ST_MIN(next, h->talk.next_ms);
        }
        st_lines_wait(p->lines, (int)ST_MAX(0, next - st_boot_ms()));
    }
    return NULL;
}

/* ---- life --------------------------------------------------------------------------------------- */

int st_voice_start(st_process *process, st_agent_voice **ret, st_err *err)
{
    st_agent_voice *v = st_xcalloc(1, sizeof *v);

    v->process = process;
    ST_ASSERT(pthread_mutex_init(&v->lock, NULL) == 0);
    for (size_t i = 0; i < process->hosts.n; i++) {
        st_host *h = process->hosts.v[i];

        h->talk.main = st_line_new(process->lines, main_heard, h);
        h->talk.poll = st_line_new(process->lines, poll_heard, h);
        h->talk.log = st_line_new(process->lines, piece_heard, h);
    }
    if (pthread_create(&v->thread, NULL, run, v) != 0) {
        pthread_mutex_destroy(&v->lock);
        free(v);
        return st_fail(err, ST_EINTERNAL, "a thread cannot be started");
    }
    *ret = v;
    return 0;
}

void st_voice_stop(st_agent_voice *v)
{
    if (!v)
        return;
    pthread_mutex_lock(&v->lock);
    v->over = true;
    pthread_mutex_unlock(&v->lock);
    st_lines_wake(v->process->lines);
    pthread_join(v->thread, NULL);
    pthread_mutex_destroy(&v->lock);
    free(v);
}
