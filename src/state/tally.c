/* Counting what became of jobs; see tally.h. */
#include "state/tally.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"

static const int64_t bounds_s[] = ST_TALLY_BOUNDS;
_Static_assert(ST_ARRAY_LEN(bounds_s) == ST_TALLY_BUCKETS, "one bucket per bound");

struct st_tallies {
    pthread_mutex_t lock;
    ST_VEC(st_job_counts *) by_account; /* NULL: nothing became of any of its jobs */
};

st_tallies *st_tallies_new(void)
{
    st_tallies *t = st_xcalloc(1, sizeof *t);

    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void st_tallies_free(st_tallies *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->by_account.n; i++)
        free(t->by_account.v[i]);
    st_vec_free(&t->by_account);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static st_job_counts *of(st_tallies *t, int32_t account)
{
    while (t->by_account.n <= (size_t)account)
        st_vec_push(&t->by_account, NULL);
    if (!t->by_account.v[account])
        t->by_account.v[account] = st_xcalloc(1, sizeof(st_job_counts));
    return t->by_account.v[account];
}

static void add_wait(st_job_counts *tally, st_class class, int64_t ms)
{
    size_t b = 0;

    while (b < ST_TALLY_BUCKETS && ms > bounds_s[b] * 1000)
        b++;
    tally->wait[class].count[b]++;
    tally->wait[class].sum_ms += (uint64_t)ms;
}

void st_tallies_add(st_tallies *t, int32_t account, const st_effect *fx, int64_t queued_ms)
{
    if (account < 0)
        return;
    pthread_mutex_lock(&t->lock);
    switch (fx->kind) {
    case ST_FX_START:
    case ST_FX_RESUME:
        add_wait(of(t, account), fx->class, ST_MAX(fx->at_ms - queued_ms, 0));
        break;
    case ST_FX_PAUSE:
    case ST_FX_REQUEUE:
        *(fx->other ? &of(t, account)->preempted : &of(t, account)->requeued) += 1;
        break;
    case ST_FX_END:
        of(t, account)->ended[fx->state]++;
        of(t, account)->preempted += fx->other != 0;
        break;
    default:
        break;
    }
    pthread_mutex_unlock(&t->lock);
}

void st_tallies_neighbour(st_tallies *t, int32_t account, bool slows)
{
    pthread_mutex_lock(&t->lock);
    *(slows ? &of(t, account)->slows : &of(t, account)->slowed) += 1;
    pthread_mutex_unlock(&t->lock);
}

void st_tallies_get(st_tallies *t, int32_t account, st_job_counts *ret)
{
    pthread_mutex_lock(&t->lock);
    const st_job_counts *from =
        account >= 0 && (size_t)account < t->by_account.n ? t->by_account.v[account] : NULL;

    for (int s = 0; from && s < ST_JOB_STATE_COUNT; s++)
        ret->ended[s] += from->ended[s];
    for (int c = 0; from && c < ST_TALLY_CLASSES; c++) {
        for (int b = 0; b <= ST_TALLY_BUCKETS; b++)
            ret->wait[c].count[b] += from->wait[c].count[b];
        ret->wait[c].sum_ms += from->wait[c].sum_ms;
    }
    if (from) {
        ret->preempted += from->preempted;
        ret->requeued += from->requeued;
        ret->slowed += from->slowed;
        ret->slows += from->slows;
    }
    pthread_mutex_unlock(&t->lock);
}
