/*
 * jobs: one row per job, from its submit until it is pruned. Lists are in list.c.
 */
#include "store/sql.h"

int st_store_job_insert(st_store *store, const st_job_row *row, st_err *err)
{
    int r = st_sql_one_row(store, ST_SQL_JOB_INSERT, row, err);

    if (r > 0)
        r = st_fail(err, ST_EEXIST, "job %lld is in the store already", (long long)row->id);
    return r;
}

static int must_be_there(int r, int64_t id, st_err *err)
{
    return r > 0 ? st_fail(err, ST_ENOENT, "job %lld is not in the store", (long long)id) : r;
}

int st_store_job_update(st_store *store, const st_job_row *row, st_err *err)
{
    int r = st_sql_one(
        store, ST_SQL_JOB_UPDATE,
        ST_PARAMS(st_val_i64(row->id), st_val_text(row->name), st_val_text(row->state),
                  st_val_text(row->class_name), st_val_i64(row->start_ms), st_val_i64(row->end_ms),
                  st_val_i64(row->priority), st_val_i64(row->gpu_m), st_val_i64(row->preemptions),
                  st_val_i64(row->lost), st_val_i64(row->exit_code), st_val_text(row->reason),
                  st_val_text(row->result)),
        err);

    return must_be_there(r, row->id, err);
}

int st_store_job_put_spec(st_store *store, int64_t id, const char *spec, st_err *err)
{
    int r =
        st_sql_one(store, ST_SQL_JOB_PUT_SPEC, ST_PARAMS(st_val_i64(id), st_val_text(spec)), err);

    return must_be_there(r, id, err);
}

int st_store_jobs_refile(st_store *store, const char *from, const char *to, st_err *err)
{
    return st_sql_run(store, ST_SQL_JOBS_REFILE, ST_PARAMS(st_val_text(from), st_val_text(to)),
                      NULL, err);
}

#define IN(s, level) st_val_i64((s)->in[(level)-1])
#define ALL_IN(s)    IN(s, 1), IN(s, 2), IN(s, 3), IN(s, 4), IN(s, 5), IN(s, 6), IN(s, 7), IN(s, 8)

int st_store_jobs_stand(st_store *store, const char *account, const st_stands *stands, st_err *err)
{
    return st_sql_run(store, ST_SQL_JOBS_STAND, ST_PARAMS(st_val_text(account), ALL_IN(stands)),
                      NULL, err);
}

int st_store_audit_stand(st_store *store, const char *account, int64_t after, int64_t upto,
                         const st_stands *stands, st_err *err)
{
    return st_sql_run(
        store, ST_SQL_AUDIT_STAND,
        ST_PARAMS(st_val_text(account), st_val_i64(after), st_val_i64(upto), ALL_IN(stands)), NULL,
        err);
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

int st_store_array_put(st_store *store, int64_t id, const char *head, st_err *err)
{
    return st_sql_run(store, ST_SQL_ARRAY_PUT, ST_PARAMS(st_val_i64(id), st_val_text(head)), NULL,
                      err);
}

typedef struct head_ctx {
    st_arena *arena;
    const char *text;
} head_ctx;

static int keep_head(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    head_ctx *h = ctx;

    if (n != 1 || cols[0].kind != ST_VAL_TEXT)
        return st_fail(err, ST_ECORRUPT,
                       "what an array shares is no text; the store is damaged, restore the last "
                       "backup");
    h->text = st_arena_strndup(h->arena, cols[0].p, cols[0].n);
    return 0;
}

int st_store_array_get(st_store *store, int64_t id, st_arena *a, const char **ret, st_err *err)
{
    head_ctx h = {.arena = a};
    int r = st_sql_query(store, ST_SQL_ARRAY_GET, ST_PARAMS(st_val_i64(id)), keep_head, &h, err);

    if (r < 0)
        return r;
    if (!h.text)
        return st_fail(err, ST_ENOENT, "array %lld shares nothing", (long long)id);
    *ret = h.text;
    return 0;
}

int st_store_jobs_prune(st_store *store, int64_t before_ms, int64_t limit, int64_t *ret_n,
                        st_err *err)
{
    int64_t n = 0;
    int r = st_sql_run(store, ST_SQL_JOBS_PRUNE,
                       ST_PARAMS(st_val_i64(before_ms), st_val_i64(limit)), &n, err);

    if (r == 0 && n > 0)
        r = st_sql_run(store, ST_SQL_ARRAYS_PRUNE, ST_NO_PARAMS, NULL, err);
    if (r == 0 && ret_n)
        *ret_n = n;
    return r;
}
