/*
 * jobs: one row per job, from its submit until it is pruned. Lists are in list.c.
 */
#include "store/sql.h"

int st_store_job_insert(st_store *store, const st_job_row *row, st_err *err)
{
    int64_t changed;
    int r = st_sql_run_row(store, ST_SQL_JOB_INSERT, row, &changed, err);

    if (r < 0)
        return r;
    if (changed == 0)
        return st_fail(err, ST_EEXIST, "job %lld is in the store already", (long long)row->id);
    return 0;
}

static int must_change(int r, int64_t changed, int64_t id, st_err *err)
{
    if (r < 0)
        return r;
    if (changed == 0)
        return st_fail(err, ST_ENOENT, "job %lld is not in the store", (long long)id);
    return 0;
}

int st_store_job_update(st_store *store, const st_job_row *row, st_err *err)
{
    int64_t changed = 0;
    int r = st_sql_run(
        store, ST_SQL_JOB_UPDATE,
        ST_PARAMS(st_val_i64(row->id), st_val_text(row->name), st_val_text(row->state),
                  st_val_text(row->class_name), st_val_i64(row->start_ms), st_val_i64(row->end_ms),
                  st_val_i64(row->priority), st_val_i64(row->gpu_m), st_val_i64(row->preemptions),
                  st_val_i64(row->lost), st_val_i64(row->exit_code), st_val_text(row->reason),
                  st_val_text(row->result)),
        &changed, err);

    return must_change(r, changed, row->id, err);
}

int st_store_job_put_spec(st_store *store, int64_t id, const char *spec, st_err *err)
{
    int64_t changed = 0;
    int r = st_sql_run(store, ST_SQL_JOB_PUT_SPEC, ST_PARAMS(st_val_i64(id), st_val_text(spec)),
                       &changed, err);

    return must_change(r, changed, id, err);
}

int st_store_job_get(st_store *store, int64_t id, st_arena *a, st_job_row *ret, st_err *err)
{
    st_job_row row;
    int r = st_sql_get(store, ST_SQL_JOB_GET, ST_PARAMS(st_val_i64(id)), a, &row, err);

    if (r < 0)
        return r;
    if (r == 0)
        return st_fail(err, ST_ENOENT, "job %lld is not in the store", (long long)id);
    *ret = row;
    return 0;
}

int st_store_jobs_prune(st_store *store, int64_t before_ms, int64_t limit, int64_t *ret_n,
                        st_err *err)
{
    int64_t n;
    int r = st_sql_run(store, ST_SQL_JOBS_PRUNE,
                       ST_PARAMS(st_val_i64(before_ms), st_val_i64(limit)), &n, err);

    if (r == 0 && ret_n)
        *ret_n = n;
    return r;
}
