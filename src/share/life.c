/* Life tables: counting lives, and prices from the counts. */
#include "share/life.h"

#include "base/macros.h"

#define ONE (INT64_C(1) << 20) /* certainty, as a fixed-point number */

int st_stage_of(int64_t run_ms)
{
    int stage = 0;
    while (stage < ST_STAGES - 1 && run_ms >= st_stage_end_ms(stage))
        stage++;
    return stage;
}

int64_t st_stage_end_ms(int stage)
{
    return stage < ST_STAGES - 1 ? ST_STAGE_ONE_MS << stage : ST_TIME_NEVER;
}

void st_life_note(st_account *account, st_job *job, int64_t now)
{
    int stage = st_stage_of(st_job_served_ms(job, now));
    for (; job->stage < stage; job->stage++) {
        account->life.outlived[job->stage]++;
        account->life.reckoned = false;
    }
}

void st_life_end(st_account *account, const st_job *job)
{
    st_life *life = &account->life;
    life->ended[job->stage]++;
    life->reckoned = false;
    int64_t ends = 0;
    for (int s = 0; s < ST_STAGES; s++)
        ends += life->ended[s];
    for (int s = 0; ends >= ST_LIVES_MAX && s < ST_STAGES; s++) {
        life->ended[s] /= 2;
        life->outlived[s] /= 2;
    }
}

/* Go on for one, two, ... stages; the ends are taken as spread evenly over a stage, so that
 * half of those who end in it are alive on average. */
static int64_t price_ms(const st_life *life, int stage)
{
    int64_t alive = ONE, spent = 0, best = INT64_MAX;
    for (int s = stage; s < ST_STAGES; s++) {
        /* The first stage starts at 0; the last is taken to be as long as all before it. */
        int64_t width = ST_STAGE_ONE_MS << (s == 0 ? 0 : s - 1);
        int64_t outlived = life->outlived[s] + 1, seen = outlived + life->ended[s] + 1;
        int64_t left = alive * outlived / seen;
        spent += width * ((alive + left) / 2);
        alive = left;
        best = ST_MIN(best, spent / (ONE - alive));
    }
    return ST_MAX(best, 1);
}

int64_t st_life_price_ms(st_account *account, int stage)
{
    st_life *life = &account->life;
    if (!life->reckoned) {
        for (int s = 0; s < ST_STAGES; s++)
            life->price_ms[s] = price_ms(life, s);
        life->reckoned = true;
    }
    return life->price_ms[stage];
}
