/*
 * Playing a scenario: the fleet and the accounts are announced, then time goes
 * from one thing that is due to the next, as it would in stintd.
 *
 * At one moment everything that is due is applied in this order, and then
 * scheduled in one pass: what the core itself waits for, jobs that end by
 * themselves, engines that report a saved job, arrivals of streams, and the
 * entry's own actions. After every step nothing may be left to do (a second
 * pass is silent), and the invariants must hold.
 */
#include "scenario/play.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "scenario/expect.h"

/* A play that does not come to an end by itself is cut off here. */
#define QUIET_MAX_MS  (INT64_C(30) * 86400 * 1000)
#define EFFORT_ENOUGH 10000 /* for a round of whatever a scenario holds */

/* ---- the beginning --------------------------------------------------------------------- */

/* Announces one thing; what the core refuses here is bad input. */
static int announce(st_play *play, const st_event *ev, int line, st_err *err)
{
    const st_doc_node at = {.line = line};
    st_err why = {0};

    if (st_core_apply(play->core, ev, 0, &play->fx, &why) < 0)
        return st_doc_fail(play->s->doc, line > 0 ? &at : NULL, err,
                           why.code == ST_EINTERNAL ? ST_EINTERNAL : ST_EINVAL, "%s", why.msg);
    return 0;
}

static int announce_fleet(st_play *play, st_err *err)
{
    const st_scenario *s = play->s;
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->types.n; i++) {
        st_event ev = {.kind = ST_EV_TYPE};

        ev.u.type.name = s->types.v[i].doc.name;
        ev.u.type.vram_mib = s->types.v[i].doc.vram_mib;
        ev.u.type.board = s->types.v[i].doc.board;
        r = announce(play, &ev, s->types.v[i].line, err);
    }
    for (size_t i = 0; r == 0 && i < s->pools.n; i++) {
        st_event ev = {.kind = ST_EV_POOL};

        ev.u.pool.name = s->pools.v[i].doc.name;
        ev.u.pool.levels = s->pools.v[i].doc.levels;
        ev.u.pool.oversub_m = s->pools.v[i].doc.oversub_m;
        ev.u.pool.rules = s->pools.v[i].doc.rules;
        r = announce(play, &ev, s->pools.v[i].line, err);
    }
    for (size_t i = 0; r == 0 && i < s->nodes.n; i++) {
        st_event ev = {.kind = ST_EV_NODE, .u.node = s->nodes.v[i].spec};

        r = announce(play, &ev, s->nodes.v[i].line, err);
        if (r == 0 && s->nodes.v[i].labels) {
            ev = (st_event){.kind = ST_EV_LABELS};
            ev.u.labels.node = (int32_t)i;
            ev.u.labels.text = s->nodes.v[i].labels;
            r = announce(play, &ev, s->nodes.v[i].line, err);
        }
    }
    return r;
}

static int announce_accounts(st_play *play, st_err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < play->s->accounts.n; i++) {
        st_event ev = {.kind = ST_EV_ACCOUNT};

        st_spec_account_lay(st_core_tree(play->core), play->s->accounts.v[i], &ev.u.account);
        r = announce(play, &ev, play->s->accounts.v[i]->line, err);
    }
    return r;
}

/* ---- time ------------------------------------------------------------------------------ */

/* When a job with a run time of its own will be through. */
static int64_t finish_ms(const st_play *play, const st_job *job)
{
    int64_t run = play->s->jobs.v[job->id - 1].run_ms;

    if (run == ST_TIME_NEVER || !st_job_on_devices(job) || job->stopping)
        return ST_TIME_NEVER;
    return play->now + ST_MAX(run - st_job_ran_ms(job, play->now), 0);
}

static int64_t answer_ms(const st_play *play, const st_job *job)
{
    return job->state == ST_JOB_CHECKPOINTING ? play->jobs[job->id - 1].answer_ms : ST_TIME_NEVER;
}

/* When its agents say that it is gone, once it was told to stop. */
static int64_t gone_ms(const st_play *play, const st_job *job)
{
    int64_t take = play->s->jobs.v[job->id - 1].stop_ms;

    return job->stopping && take != ST_TIME_NEVER ? job->stop_ms + take : ST_TIME_NEVER;
}

/* The next moment at which anything is due. */
static int64_t next_ms(const st_play *play)
{
    int64_t next = st_core_next_timer(play->core);

    for (size_t i = 0; i < st_core_njobs(play->core); i++) {
        const st_job *job = st_core_job_at(play->core, i);

        next = ST_MIN(next, finish_ms(play, job));
        next = ST_MIN(next, answer_ms(play, job));
        next = ST_MIN(next, gone_ms(play, job));
    }
    if (play->arrival < play->s->arrivals.n)
        next = ST_MIN(next, play->s->arrivals.v[play->arrival].at_ms);
    return ST_MAX(next, play->now);
}

/* What happens to jobs without anybody's doing. The core sees to its own deadlines first, so a job
 * may be gone by the time its turn comes. */
static void natural_events(st_play *play)
{
    ST_VEC(st_event) due = {0};

    for (size_t i = 0; i < st_core_njobs(play->core); i++) {
        const st_job *job = st_core_job_at(play->core, i);
        st_event ev = {.kind = ST_EV_TIMER};

        if (gone_ms(play, job) <= play->now) {
            ev.kind = ST_EV_GONE;
            ev.u.gone.id = job->id;
        } else if (finish_ms(play, job) <= play->now) {
            ev.kind = ST_EV_FINISH;
            ev.u.finish.id = job->id;
        } else if (answer_ms(play, job) <= play->now) {
            ev.kind = ST_EV_CHECKPOINTED;
            ev.u.id = job->id;
        }
        if (ev.kind != ST_EV_TIMER)
            st_vec_push(&due, ev);
    }
    for (size_t i = 0; i < due.n; i++)
        (void)st_play_apply(play, &due.v[i], NULL);
    st_vec_free(&due);
    for (; play->arrival < play->s->arrivals.n &&
           play->s->arrivals.v[play->arrival].at_ms <= play->now;
         play->arrival++)
        st_play_act(play, &play->s->arrivals.v[play->arrival]);
}

/* What must hold after any step, whatever the scenario expects. */
static void check_invariants(st_play *play, int line)
{
    ST_VEC(const st_event *) events = {0};
    st_err why = {0};
    int r;

    for (size_t i = 0; i < play->events_in.n; i++)
        st_vec_push(&events, &play->events_in.v[i]);
    r = st_check(play->core, &why);
    if (r == 0)
        r = st_watch_step(play->watch, play->core, events.v, events.n, &play->fx, &why);
    if (r == 0)
        r = st_watch_waiting(play->watch, play->core, 1, 0, &why);
    if (r < 0) {
        play->broken++;
        st_play_differ(play, line, st_xstrdup(why.msg));
    }
    st_vec_free(&events);
}

/* A pass that is short of effort may not come to the end of another round in this moment, and would go on with
 * it in the next, for ever: then a copy has the effort. */
static void pass_again(st_play *play)
{
    st_core *copy = NULL;
    st_err why = {0};
    bool is_short = st_core_policy(play->core)->claim_effort < EFFORT_ENOUGH;
    if (is_short && (st_core_resumes(play->core) || st_core_thorough(play->core, &copy, &why) < 0))
        return;
    st_core_pass(is_short ? copy : play->core, play->now, &play->fx);
    st_core_free(copy);
}

/* Repeating the pass must change nothing. */
static void check_rest(st_play *play, int line)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    const st_effect *first;

    st_effects_clear(&play->fx);
    play->followed = 0;
    pass_again(play);
    if (play->fx.list.n == 0)
        return;
    play->broken++;
    first = &play->fx.list.v[0];
    st_strbuf_addf(&text, "a second pass with nothing new is not silent: %s",
                   st_effect_name(first->kind));
    if (first->job > 0)
        st_strbuf_addf(&text, " %s", play->s->jobs.v[first->job - 1].spec.name);
    st_play_differ(play, line, st_strbuf_take(&text));
    st_play_follow(play);
    st_vec_clear(&play->events_in);
    check_invariants(play, line);
}

static int step(st_play *play, int64_t now, const st_scn_entry *entry, int line, st_err *err)
{
    const st_doc_node at = {.line = line};

    if (++play->steps > ST_SCN_STEPS_MAX)
        return st_doc_fail(play->s->doc, &at, err, ST_ERANGE,
                           "the scenario takes more than %d steps", ST_SCN_STEPS_MAX);
    play->now = now;
    st_effects_clear(&play->fx);
    st_vec_clear(&play->events_in);
    play->followed = 0;
    natural_events(play);
    for (size_t i = 0; entry && i < entry->nactions; i++)
        st_play_act(play, &play->s->actions.v[entry->action + i]);
    st_core_pass(play->core, play->now, &play->fx);
    st_play_follow(play);
    check_invariants(play, line);
    check_rest(play, line);
    st_play_refresh(play);
    return 0;
}

/* Steps through everything due before `until`. */
static int advance(st_play *play, int64_t until, int line, st_err *err)
{
    int64_t next;
    int r = 0;

    while (r == 0 && (next = next_ms(play)) < until)
        r = step(play, next, NULL, line, err);
    return r;
}

/* ---- entries --------------------------------------------------------------------------- */

static void look(st_play *play, const st_scn_entry *entry)
{
    for (size_t i = 0; i < entry->nexpects; i++) {
        const st_scn_expect *e = &play->s->expects.v[entry->expect + i];
        ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
        ST_CLEANUP(st_freep) char *found = st_play_look(play, e);

        play->looked++;
        if (!found)
            continue;
        st_play_about(play, e, &text);
        st_strbuf_addf(&text, ": expected %s, found %s", *e->want ? e->want : "nothing", found);
        st_play_differ(play, e->line, st_strbuf_take(&text));
    }
    st_vec_clear(&play->victims);
    st_vec_clear(&play->started);
    st_vec_clear(&play->floors);
}

/* What is saved must be all there is: the loaded core goes on in its place. */
static int reload(st_play *play, int line, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf saved = {0};
    const st_doc_node at = {.line = line};
    st_core *loaded = NULL;
    st_err why = {0};

    st_core_save(play->core, &saved);
    if (st_core_load(saved.s, saved.n, &loaded, &why) < 0)
        return st_doc_fail(play->s->doc, &at, err, ST_EINTERNAL,
                           "what the core saved cannot be loaded: %s", why.msg);
    st_core_free(play->core);
    play->core = loaded;
    return 0;
}

static int play_entries(st_play *play, st_err *err)
{
    const st_scenario *s = play->s;
    int last = s->entries.v[s->entries.n - 1].line;
    int64_t until = s->until_ms;
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->entries.n; i++) {
        const st_scn_entry *entry = &s->entries.v[i];

        r = advance(play, entry->at_ms, entry->line, err);
        if (r == 0 && play->options.reload)
            r = reload(play, entry->line, err);
        if (r == 0)
            r = step(play, entry->at_ms, entry, entry->line, err);
        if (r == 0)
            look(play, entry);
    }
    if (until == ST_UNSET && !s->asserts)
        until = play->now + QUIET_MAX_MS;
    if (r == 0 && until > play->now) {
        r = advance(play, until, last, err);
        if (r == 0 && s->until_ms != ST_UNSET)
            r = step(play, until, NULL, last, err);
    }
    return r;
}

int st_play_run(const st_scenario *s, const st_play_options *options, st_play **ret, st_err *err)
{
    ST_CLEANUP(st_play_freep) st_play *play = st_xcalloc(1, sizeof(*play));
    int r;

    ST_ASSERT(s && ret);
    play->s = s;
    if (options)
        play->options = *options;
    play->core = st_core_new(&s->policy);
    play->jobs = st_xcalloc(s->jobs.n + 1, sizeof(*play->jobs));
    for (size_t i = 0; i < s->jobs.n; i++) {
        st_play_job *j = &play->jobs[i];

        j->type = -1;
        j->until_ms = j->started_ms = j->ended_ms = ST_UNSET;
        j->answer_ms = ST_TIME_NEVER;
    }
    r = announce_fleet(play, err);
    if (r == 0)
        r = announce_accounts(play, err);
    if (r == 0)
        st_core_pass(play->core, 0, &play->fx);
    st_effects_clear(&play->fx); /* that the fleet and the floors are there is no news */
    play->watch = st_watch_new(play->core);
    if (r == 0)
        r = play_entries(play, err);
    if (r < 0)
        return r;
    *ret = ST_TAKE(play);
    return 0;
}

void st_play_free(st_play *play)
{
    if (!play)
        return;
    for (size_t i = 0; play->jobs && i < play->s->jobs.n; i++) {
        st_vec_free(&play->jobs[i].grants);
        free(play->jobs[i].refusal);
    }
    free(play->jobs);
    for (size_t i = 0; i < play->events.n; i++)
        free(play->events.v[i].refused);
    for (size_t i = 0; i < play->diffs.n; i++)
        free(play->diffs.v[i].text);
    st_vec_free(&play->events);
    st_vec_free(&play->grants);
    st_vec_free(&play->diffs);
    st_vec_free(&play->victims);
    st_vec_free(&play->started);
    st_vec_free(&play->floors);
    st_vec_free(&play->events_in);
    st_effects_done(&play->fx);
    st_watch_free(play->watch);
    st_core_free(play->core);
    free(play);
}
