/*
 * What a node has, as the text of a status: built by the acting side, sent by the voice as often as it
 * likes (agent/voice.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/files.h"
#include "agent/host.h"
#include "base/quote.h"

#define LINES_MS  10000
#define REPORT_MS 2500 /* between two reports of which nothing is urgent: what was used, devices */

/* Between two that are: with thousands of tasks a report takes its time. */
static int64_t least_ms(const st_host *h)
{
    return 5 + (int64_t)h->journal.tasks.n / 50;
}

/* An end is told when its last lines have gone ahead, so that who follows them misses none; but
 * not for long, and not where logs cannot be brought. */
static bool lines_first(const st_host *h, const st_task *t, bool log_down)
{
    return t->phase == ST_PHASE_ENDED && t->started_ms != 0 && !t->log_done &&
           h->now_ms - t->ended_ms < LINES_MS && !log_down && !t->fenced;
}

static void add_used(const st_task *t, st_strbuf *out)
{
    if (t->used.sum.has) {
        st_strbuf_add(out, ",\"usage\":");
        st_used_json(&t->used.sum, out);
    }
    if (t->scrub.result != ST_SCRUB_PENDING)
        st_strbuf_addf(out,
                       ",\"scrub\":{\"result\":\"%s\",\"bytes\":%" PRId64 ",\"found\":%" PRId64
                       ",\"ms\":%" PRId64 "}",
                       st_scrub_name(t->scrub.result), t->scrub.bytes, t->scrub.found, t->scrub.ms);
}

/* Over, off the list and looked after: what it used, once more, until that was heard. */
static bool leaves(const st_task *t)
{
    return !st_task_live(t) && t->unlisted_ms != 0 && t->clean && !t->told && !st_trial_is(&t->key);
}

static void past_json(st_host *h, uint64_t no, st_strbuf *out)
{
    const char *sep = "";

    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        st_task *t = &h->journal.tasks.v[i];

        if (!leaves(t)) {
            t->now.telling = 0;
            continue;
        }
        t->now.telling = t->now.telling ? t->now.telling : no;
        st_strbuf_addf(out, "%s{\"job\":\"%s\",\"stay\":%d,\"task\":%d", sep, t->key.job,
                       t->key.stay, t->key.task);
        add_used(t, out);
        st_strbuf_addc(out, '}');
        sep = ",";
    }
}

void st_host_report_heard(st_host *h, uint64_t heard_no)
{
    if (h->test_telling && h->test_telling <= heard_no)
        h->test_told = true;
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        st_task *t = &h->journal.tasks.v[i];

        if (t->now.telling && t->now.telling <= heard_no) {
            t->told = true;
            t->now.telling = 0;
        }
    }
    st_host_neighbours_heard(h, heard_no);
}

static void task_json(const st_host *h, const st_task *t, bool log_down, st_strbuf *out)
{
    static const char *const words[] = {
        [ST_PHASE_NOTED] = "starting",  [ST_PHASE_STARTING] = "starting",
        [ST_PHASE_RUNNING] = "running", [ST_PHASE_PAUSED] = "paused",
        [ST_PHASE_ENDED] = "exited",    [ST_PHASE_UNSTARTED] = "failed-to-start",
    };
    bool saved = t->phase == ST_PHASE_ENDED && t->saved && t->unlisted_ms == 0;
    const char *state = saved ? "checkpointed" : words[t->phase];
    /* Off the list, somebody may wait for the last of it to be gone, and for nothing else. */
    bool lingers = t->phase == ST_PHASE_ENDED && t->unlisted_ms != 0 && !t->gone;
    bool first = lingers || (t->unlisted_ms == 0 && lines_first(h, t, log_down));

    if (first)
        state = words[ST_PHASE_RUNNING];
    st_strbuf_addf(out, "{\"job\":\"%s\",\"stay\":%d,\"task\":%d,\"state\":\"%s\"", t->key.job,
                   t->key.stay, t->key.task, state);
    if (t->started_ms != 0)
        st_strbuf_addf(out, ",\"started_ms\":%" PRId64, t->started_ms + h->wall_of_ms);
    if (t->ended_ms != 0 && !first)
        st_strbuf_addf(out, ",\"ended_ms\":%" PRId64, t->ended_ms + h->wall_of_ms);
    if (t->phase == ST_PHASE_ENDED && t->exit_signal && !first)
        st_strbuf_addf(out, ",\"signal\":%d", t->exit_signal);
    else if ((t->phase == ST_PHASE_ENDED || (t->phase == ST_PHASE_UNSTARTED && t->exit_code)) &&
             !first)
        st_strbuf_addf(out, ",\"exit_code\":%d", t->exit_code);
    if (t->phase == ST_PHASE_ENDED && !first && (t->asked || t->stopped || t->killed || t->fenced))
        st_strbuf_add(out, ",\"stopped\":true");
    if (!st_task_live(t) && !first && t->fault)
        st_strbuf_add(out, ",\"fault\":\"node\"");
    if (!st_task_live(t) && !first && t->full)
        st_strbuf_add(out, ",\"cause\":\"data-full\"");
    if (t->reason[0] && !first) {
        st_strbuf_add(out, ",\"reason\":");
        st_quote_json(out, t->reason);
    }
    add_used(t, out);
    st_strbuf_addc(out, '}');
}

static void sick_json(const st_host *h, st_strbuf *out)
{
    const char *sep = "";

    if (!h->sick)
        return;
    st_strbuf_add(out, ",\"sick_gpus\":[");
    for (unsigned devs = h->sick; devs; devs &= devs - 1) {
        const st_sick_gpu *g = &h->sick_gpu[__builtin_ctz(devs)];

        st_strbuf_addf(out, "%s{\"gpu\":%d,\"kind\":\"%s\",\"code\":%" PRId64 ",\"reason\":", sep,
                       g->found.gpu, st_fault_name(g->found.kind), g->found.code);
        st_quote_json(out, g->reason);
        st_strbuf_addc(out, '}');
        sep = ",";
    }
    st_strbuf_addc(out, ']');
}

static void report_json(st_host *h, uint64_t no, bool log_down, st_strbuf *out)
{
    const char *sep = "";

    st_strbuf_add(out, "\"tasks\":[");
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        const st_task *t = &h->journal.tasks.v[i];

        /* Off the list and over: how it ended was heard with what it used. */
        if (st_trial_is(&t->key) || (!st_task_live(t) && t->unlisted_ms != 0 && t->told))
            continue;
        st_strbuf_add(out, sep);
        task_json(h, t, log_down, out);
        sep = ",";
    }
    st_strbuf_add(out, "],\"past\":[");
    past_json(h, no, out);
    st_strbuf_add(out, "],\"neighbours\":");
    st_host_neighbours_json(h, no, out);
    st_strbuf_add(out, ",\"images\":");
    st_host_images_json(h, out);
    st_strbuf_add(out, ",\"gpus\":");
    st_host_gpus_json(h, out);
    sick_json(h, out);
    if (h->test_no > 0 && !h->test_told) {
        h->test_telling = h->test_telling ? h->test_telling : no;
        st_strbuf_addf(out, ",\"test\":%s", st_strbuf_str(&h->test_text));
    }
    st_strbuf_addc(out, '}');
}

/* What that is, in the order in which it is said. */
static st_finding found_of(const st_host *h)
{
    st_fault kind = h->fenced                   ? ST_FAULT_LEASE
                    : h->hangs[0]               ? ST_FAULT_DRIVER
                    : h->stuck[0] || h->full[0] ? ST_FAULT_DISK
                                                : ST_FAULT_UNFIT;

    if (!h->fenced && h->ill[0])
        return h->found;
    if (h->symptom[0] && kind == ST_FAULT_UNFIT && !h->unfit[0])
        return h->symptom_found;
    return (st_finding){.kind = kind, .gpu = -1};
}

void st_host_report(st_host *h)
{
    bool failed = h->fenced || h->ill[0];
    const char *reason = h->fenced     ? "its lease ended and its tasks were killed"
                         : h->ill[0]   ? h->ill
                         : h->hangs[0] ? h->hangs
                         : h->stuck[0] ? h->stuck
                         : h->full[0]  ? h->full
                         : h->unfit[0] ? h->unfit
                                       : h->symptom;
    int64_t boot = st_boot_ms();
    st_mail *m = &h->mail;
    st_strbuf text = {0}, old;
    bool log_down;

    if (boot < (h->changed ? h->urgent_ms : h->report_ms))
        return;
    pthread_mutex_lock(&m->lock);
    log_down = m->log_down;
    pthread_mutex_unlock(&m->lock);
    h->report_no++;
    h->wall_of_ms = st_wall_ms() - boot;
    report_json(h, h->report_no, log_down, &text);
    pthread_mutex_lock(&m->lock);
    old = m->report;
    m->report = text;
    m->report_no = h->report_no;
    if (h->changed)
        m->urgent_no = h->report_no;
    m->wall_of_ms = h->wall_of_ms;
    m->epoch = h->journal.epoch;
    m->at = h->journal.at;
    m->revision = h->has_list ? h->list.revision : 0;
    snprintf(m->reason, sizeof m->reason, "%s", reason);
    m->found = found_of(h);
    m->health = failed ? "failed" : reason[0] ? "hold" : "ok";
    pthread_mutex_unlock(&m->lock);
    st_strbuf_done(&old);
    if (h->changed)
        st_voice_wake(h);
    h->changed = false;
    h->report_ms = boot + REPORT_MS;
    h->urgent_ms = st_boot_ms() + least_ms(h);
}
