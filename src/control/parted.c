/*
 * After a log that this version decides otherwise than the one that wrote it (load.c, decisions/0012): this version's decisions
 * stand, what people were told stands as well, and the books stay as they are.
 *
 *   a job that is over in the table and not in the core    is taken out of the core: its end was told
 *   a job that lives in the table and not in the core      is over, with the reason
 *   a job that lives in both                               is where the core has it; where that is another place than the
 *                                                          table has, it is another stay, and engines end the one before
 *
 * The meter begins anew: what was metered and is not in the books by now is nobody's to pay, and nothing is paid twice.
 * A snapshot ends it: the rows are not played again.
 */
#include <inttypes.h>
#include <stdio.h>

#include "billing/billing.h"
#include "control/state.h"

#define REASON "lost: another version of stintd decided otherwise; submit it again"

typedef ST_VEC(int64_t) ids;

typedef struct looking {
    const st_control *ctl;
    ids ghosts;
} looking;

static int look(void *ctx, const st_job_row *row, st_err *err)
{
    looking *l = ctx;

    (void)err;
    if (!st_core_job(l->ctl->core, (uint64_t)row->id))
        st_vec_push(&l->ghosts, row->id);
    return 0;
}

static int end_ghost(st_control *ctl, int64_t id, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_job_row row;
    int r = st_store_job_get(ctl->store, id, arena, &row, err);

    if (r < 0)
        return r;
    row.state = st_job_state_name(ST_JOB_CANCELLED);
    row.end_ms = ST_MAX(st_control_last_ms(ctl), row.submit_ms);
    row.reason = REASON;
    return st_store_job_update(ctl->store, &row, err);
}

static int end_ghosts(st_control *ctl, const ids *ghosts, st_err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < ghosts->n; i++)
        r = end_ghost(ctl, ghosts->v[i], err);
    return r;
}

/* Those that are over for everybody but the core. */
static int find_over(st_control *ctl, ids *ret, st_err *err)
{
    for (size_t i = 0; i < st_core_njobs(ctl->core); i++) {
        ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
        int64_t id = (int64_t)st_core_job_at(ctl->core, i)->id;
        st_job_row row;
        int r = st_store_job_get(ctl->store, id, arena, &row, err);

        if (r < 0 && r != -ST_ENOENT)
            return r;
        if (r < 0 || row.end_ms != ST_STORE_NEVER)
            st_vec_push(ret, id);
    }
    return 0;
}

static void drop_over(st_control *ctl, const ids *over)
{
    st_effects fx = {0};
    int64_t now = st_control_last_ms(ctl);

    for (size_t i = 0; i < over->n; i++) {
        const st_event ev = {.kind = ST_EV_CANCEL, .u.id = (uint64_t)over->v[i]};

        (void)st_core_apply(ctl->core, &ev, now, &fx, NULL);
    }
    st_core_settle(ctl->core, now, &fx);
    ctl->pace.owed = false;
    st_effects_done(&fx);
}

int st_parted_agree(st_control *ctl, st_err *err)
{
    const char *live[ST_JOB_PAUSED + 1];
    const st_job_filter running = {.states = live, .nstates = ST_ARRAY_LEN(live), .own_part = true};
    looking l = {.ctl = ctl};
    ids over = {0};
    int r;

    for (int s = 0; s <= ST_JOB_PAUSED; s++)
        live[s] = st_job_state_name((st_job_state)s);
    r = find_over(ctl, &over, err);
    if (r == 0) {
        drop_over(ctl, &over);
        r = st_store_jobs_list(ctl->store, &running, look, &l, err);
    }
    if (r >= 0)
        r = st_store_begin(ctl->store, err);
    if (r >= 0)
        r = st_store_end(ctl->store, end_ghosts(ctl, &l.ghosts, err), err);
    if (r >= 0)
        st_control_say(ctl, "event=log_parted_settled over=%zu lost=%zu", over.n, l.ghosts.n);
    st_vec_free(&over);
    st_vec_free(&l.ghosts);
    return r < 0 ? r : 0;
}

static int write_places(st_control *ctl, st_err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < ctl->all.n; i++) {
        st_job_row row;

        st_live_place(ctl, ctl->all.v[i]);
        st_live_row_own(ctl->all.v[i], &row);
        r = st_store_job_update(ctl->store, &row, err);
    }
    return r;
}

/* Until the snapshot is written the log parts again at the next start, and all of this is done again. */
int st_parted_end(st_control *ctl, st_err *err)
{
    st_billing *b = ctl->billing;
    int64_t now = st_control_last_ms(ctl);
    int r = st_store_begin(ctl->store, err);

    if (r == 0)
        r = st_store_end(ctl->store, write_places(ctl, err), err);
    if (r < 0)
        return r;
    if (b->meter) {
        /* What is on devices is metered as another time on them. */
        for (size_t i = 0; i < ctl->all.n; i++)
            st_core_recall_stay(ctl->core, ctl->all.v[i]->id, 0,
                                st_meter_times(b->meter, ctl->all.v[i]->id) + 1);
        st_meter_free(b->meter);
        b->meter = st_meter_new(now);
        st_core_meter_seed(ctl->core, b->meter, now, &b->records);
        st_meter_inside(b->meter, st_core_tree(ctl->core), now);
        st_vec_clear(&b->records);
    }
    return st_control_snapshot(ctl, err);
}
