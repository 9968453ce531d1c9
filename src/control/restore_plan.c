/*
 * What becomes of what agents have when a store was restored (control/restore.h). Pure.
 */
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "control/restore.h"

#define STAYS_SINCE 1000000 /* of one job, behind a backup; whoever tells of more is wrong */
#define ORIGIN_MS   INT64_C(1767225600000) /* 2026-01-01 UTC */

int64_t st_restore_floor(st_restore_kind kind, int64_t at_ms)
{
    static const int64_t each_ms[] = {[ST_FLOOR_JOBS] = 1,
                                      [ST_FLOOR_EPOCHS] = 1000,
                                      [ST_FLOOR_TOKENS] = 100,
                                      [ST_FLOOR_ACCOUNTS] = 10000,
                                      [ST_FLOOR_BOOKINGS] = 100};

    return ST_MAX(at_ms - ORIGIN_MS, 0) / each_ms[kind];
}

int st_restore_stay(int known, int64_t since_ms, int64_t now_ms)
{
    int64_t more = ST_MAX(now_ms - since_ms, 0) / 10000 + 16;

    return (int)ST_MIN((int64_t)known + more, ST_STAY_MAX);
}

const char *st_fate_name(st_fate fate)
{
    static const char *const words[] = {
#define X(id, word) word,
        ST_FATE_TABLE(X)
#undef X
    };

    return words[fate];
}

void st_restore_plan_done(st_restore_plan *plan)
{
    st_vec_free(&plan->tasks);
    st_vec_free(&plan->jobs);
}

/* What was told, to be asked by job and by node. */
typedef struct looker {
    const st_core *core;
    const st_told *told;
    ST_VEC(const st_told_task *) by_job;
    st_idmap *first; /* job -> the first of its tasks in by_job */
    st_idmap *nodes; /* node -> whether it was heard */
} looker;

static int by_job(const void *a, const void *b)
{
    const st_told_task *x = *(const st_told_task *const *)a, *y = *(const st_told_task *const *)b;

    return x->job < y->job ? -1 : x->job > y->job;
}

static void look(looker *l)
{
    l->first = st_idmap_new();
    l->nodes = st_idmap_new();
    for (size_t i = 0; i < l->told->tasks.n; i++)
        if (l->told->tasks.v[i].job)
            st_vec_push(&l->by_job, &l->told->tasks.v[i]);
    if (l->by_job.n > 0)
        qsort(l->by_job.v, l->by_job.n, sizeof *l->by_job.v, by_job);
    for (size_t i = l->by_job.n; i-- > 0;)
        st_idmap_put(l->first, l->by_job.v[i]->job, (int64_t)i);
    for (size_t i = 0; i < l->told->nodes.n; i++)
        st_idmap_put(l->nodes, (uint64_t)l->told->nodes.v[i].node, l->told->nodes.v[i].heard);
}

static void look_done(looker *l)
{
    st_vec_free(&l->by_job);
    st_idmap_free(l->first);
    st_idmap_free(l->nodes);
}

static bool heard(const looker *l, int32_t node)
{
    int64_t is = 0;

    return st_idmap_get(l->nodes, (uint64_t)node, &is) && is;
}

/* The tasks that agents have of the job; *i goes from one to the next, beginning at -1. */
static const st_told_task *next_of(const looker *l, uint64_t job, int64_t *i)
{
    if (*i < 0 && !st_idmap_get(l->first, job, i))
        return NULL;
    return (size_t)*i < l->by_job.n && l->by_job.v[*i]->job == job ? l->by_job.v[(*i)++] : NULL;
}

/* Where the job's task is, if its agent says so; NULL: nobody does. */
static const st_told_task *told_of(const looker *l, const st_job *job, int task)
{
    const st_told_task *t;

    for (int64_t i = -1; (t = next_of(l, job->id, &i));)
        if (t->stay == job->stay && t->task == task && t->node == job->grants[task].node)
            return t;
    return NULL;
}

/* What speaks against leaving the job where the store has it; NULL: nothing. */
static const char *against(const looker *l, const st_job *job)
{
    const st_fleet *fleet = st_core_fleet(l->core);
    const st_told_task *other;

    for (int64_t i = -1; (other = next_of(l, job->id, &i));)
        if (other->stay > job->stay)
            return "it has started again since the backup";
    for (int t = 0; t < job->tasks; t++) {
        const st_told_task *said;

        if (!fleet->nodes.v[job->grants[t].node]->agent)
            continue; /* simulated: it is where it should be */
        said = told_of(l, job, t);
        if (!said)
            return heard(l, job->grants[t].node) ? "its node does not have it any more"
                                                 : "its node has not been heard";
        if (!said->there && !said->by_itself)
            return "it was told to end since the backup";
    }
    return NULL;
}

static bool should_be_somewhere(const st_job *job)
{
    return job->stopping || st_job_on_devices(job) || job->state == ST_JOB_PAUSED;
}

/* A job that leaves is not on any list, so nothing of it is left when all is clear. */
static void plan_job(const looker *l, const st_job *job, st_restore_plan *ret)
{
    st_plan_job p = {.id = job->id, .fate = ST_FATE_STOPS};

    if (!should_be_somewhere(job)) {
        ret->waiting++;
        return;
    }
    if (!job->stopping) {
        p.why = against(l, job);
        p.fate = p.why ? ST_FATE_AGAIN : ST_FATE_ADOPTED;
    }
    st_vec_push(&ret->jobs, p);
}

static void plan_task(const st_core *core, const st_idmap *fates, const st_told_task *t,
                      st_restore_plan *ret)
{
    const st_job *job = t->job ? st_core_job(core, t->job) : NULL;
    st_plan_task p = {.told = *t};
    int64_t at = -1;
    bool ours;

    st_idmap_get(fates, t->job, &at);
    ours = at >= 0 && ret->jobs.v[at].fate == ST_FATE_ADOPTED && job->stay == t->stay &&
           t->task >= 0 && t->task < job->tasks && job->grants[t->task].node == t->node;
    if (ours) {
        p.fate = t->there ? ST_FATE_ADOPTED : ST_FATE_OVER;
    } else {
        p.fate = t->there ? ST_FATE_ENDED : ST_FATE_FORGOTTEN;
        p.why = !job     ? "the store does not know its job, or knows that it is over"
                : at < 0 ? "its job waits in the store"
                : ret->jobs.v[at].fate == ST_FATE_STOPS ? "its job was to leave"
                : ret->jobs.v[at].why                   ? ret->jobs.v[at].why
                                                        : "it is of another stay of its job";
    }
    st_vec_push(&ret->tasks, p);
}

static void digest(st_restore_plan *plan)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    unsigned char hash[16];

    for (size_t i = 0; i < plan->jobs.n; i++)
        st_strbuf_addf(&text, "%" PRIu64 " %d\n", plan->jobs.v[i].id, plan->jobs.v[i].fate);
    for (size_t i = 0; i < plan->tasks.n; i++) {
        const st_plan_task *t = &plan->tasks.v[i];

        st_strbuf_addf(&text, "%d %" PRIu64 " %d %d %d\n", t->told.node, t->told.job, t->told.stay,
                       t->told.task, t->fate);
    }
    crypto_generichash(hash, sizeof hash, (const unsigned char *)st_strbuf_str(&text), text.n, NULL,
                       0);
    sodium_bin2hex(plan->digest, sizeof plan->digest, hash, sizeof hash);
}

static int by_id(const void *a, const void *b)
{
    const st_plan_job *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

/* The next stay of a job must be beyond what anybody has heard of; beyond what can be, nobody has. */
static void count_stay(const looker *l, const st_job *job, st_restore_plan *ret)
{
    const st_told_task *t;

    ret->stay = ST_MAX(ret->stay, job->stay);
    for (int64_t i = -1; (t = next_of(l, job->id, &i));)
        if (t->stay < job->stay + STAYS_SINCE)
            ret->stay = ST_MAX(ret->stay, t->stay);
}

void st_restore_plan_make(const st_core *core, const st_told *told, st_restore_plan *ret)
{
    looker l = {.core = core, .told = told};
    st_idmap *fates = st_idmap_new();

    *ret = (st_restore_plan){0};
    look(&l);
    for (size_t i = 0; i < st_core_njobs(core); i++) {
        count_stay(&l, st_core_job_at(core, i), ret);
        plan_job(&l, st_core_job_at(core, i), ret);
    }
    if (ret->jobs.n > 0)
        qsort(ret->jobs.v, ret->jobs.n, sizeof *ret->jobs.v, by_id);
    for (size_t i = 0; i < ret->jobs.n; i++)
        st_idmap_put(fates, ret->jobs.v[i].id, (int64_t)i);
    for (size_t i = 0; i < told->tasks.n; i++)
        plan_task(core, fates, &told->tasks.v[i], ret);
    digest(ret);
    st_idmap_free(fates);
    look_done(&l);
}
