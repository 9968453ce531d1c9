/* Who runs or has a plan outside its floor, by the account that has no room for it.
 *
 * Floors only get fuller until a guaranteed job leaves them, so a borrower need not be looked at
 * again before that happens in the account where it failed. Those who just became one are `fresh`:
 * nobody has looked at them yet. So are those whom their floors would carry, and who sit where a booking
 * will be: when that can move does not show in any floor, and they are looked at every time. */
#include <stdlib.h>

#include "core/state.h"

#define FRESH 0 /* the first list; behind it one for each account */

static void cover(st_core *core)
{
    while (core->borrowers.n < core->tree->accounts.n + 1)
        st_vec_push(&core->borrowers, (st_borrowers){0});
}

static void enlist(st_core *core, st_job *job, size_t at)
{
    st_core_unlist(core, job);
    cover(core);
    st_borrowers *b = &core->borrowers.v[at];
    job->listed = (int32_t)at + 1;
    job->listed_slot = (int32_t)b->list.n;
    st_vec_push(&b->list, job);
}

void st_core_unlist(st_core *core, st_job *job)
{
    if (!job->listed)
        return;
    st_borrowers *b = &core->borrowers.v[job->listed - 1];
    ST_ASSERT(b->list.v[job->listed_slot] == job);
    st_job *last = st_vec_pop(&b->list);
    last->listed_slot = job->listed_slot;
    if (last != job)
        b->list.v[last->listed_slot] = last;
    job->listed = 0;
}

void st_core_list_fresh(st_core *core, st_job *job)
{
    enlist(core, job, FRESH);
}

void st_core_list_at(st_core *core, st_job *job, int32_t account)
{
    enlist(core, job, (size_t)account + 1);
}

void st_core_loosen(st_core *core, int32_t account)
{
    cover(core);
    for (int32_t i = account; i >= 0; i = st_tree_account(core->tree, i)->parent)
        core->borrowers.v[i + 1].loose = true;
}

void st_core_take_borrowers(st_core *core, st_job_vec *ret)
{
    cover(core);
    core->borrowers.v[FRESH].loose = true;
    for (size_t i = 0; i < core->borrowers.n; i++) {
        st_borrowers *b = &core->borrowers.v[i];
        while (b->loose && b->list.n > 0) {
            st_job *job = b->list.v[b->list.n - 1];
            st_core_unlist(core, job);
            st_vec_push(ret, job);
        }
        b->loose = false;
    }
}

void st_core_borrowers_done(st_core *core)
{
    for (size_t i = 0; i < core->borrowers.n; i++)
        st_vec_free(&core->borrowers.v[i].list);
    st_vec_free(&core->borrowers);
}
