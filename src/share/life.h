/* How long an account's jobs live, learned from its own jobs, and what that says about one that
 * has run so far without saying when it will end.
 *
 * Run time is cut into stages that double. A life table counts, for each stage, how many jobs
 * ended in it and how many outlived it; those still alive count as far as they got. From it
 * follows a job's price: the run time one more end costs, expected, if the job goes on for as
 * many stages as make it cheapest. It is low where many jobs end soon and high behind that, and
 * where lives are all alike it falls with age, so that who is nearly through is left alone.
 *
 * Every stage starts with one end and one survivor that nobody saw: without a history, a job's
 * price doubles with its stage. Old lives are forgotten by halving. */
#ifndef ST_SHARE_LIFE_H
#define ST_SHARE_LIFE_H

#include "model/job.h"
#include "model/tree.h"

#define ST_STAGE_ONE_MS INT64_C(300000) /* where the first stage ends */
#define ST_LIVES_MAX    1024            /* ends in a table before all counts are halved */

/* The stage a run time falls into, and where a stage ends: ST_TIME_NEVER for the last. */
int st_stage_of(int64_t run_ms);
int64_t st_stage_end_ms(int stage);

/* The job has been on devices for so long: note the stages it outlived. */
void st_life_note(st_account *account, st_job *job, int64_t now);
/* The job ended by itself. */
void st_life_end(st_account *account, const st_job *job);

/* The price of a job in this stage, at least 1. */
int64_t st_life_price_ms(st_account *account, int stage);

#endif
