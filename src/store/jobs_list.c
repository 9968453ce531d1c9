/*
 * Lists of jobs for the eyes of some accounts, filtered (store/list.h does the work).
 */
#include "store/list.h"

#define NOT_OVER "9223372036854775807"

static int build(const st_job_filter *f, const st_store *store, st_list *l, st_err *err)
{
    int r;

    st_list_init(l, &st_shape_job, "id");
    l->within = f->within;
    l->scan = f->scan;
    l->range = f->live ? " AND end_ms < 0" : "";
    l->before = f->before_id;
    l->limit = f->limit;
    l->as_written = f->own_part;
    r = st_list_where_in(l, "state", f->states, f->nstates, err);
    if (r < 0)
        return r;
    if (f->user_name)
        st_list_where(l, "user_name", " = ", st_val_text(f->user_name));
    if (f->name_has && f->name_has[0])
        st_list_where_has(l, store, "name", f->name_has);
    if (f->part_of > 0) {
        l->narrow = true;
        st_strbuf_add(&l->where, " AND part_of > 0"); /* as the index wants it */
        st_list_where(l, "part_of", " = ", st_val_i64(f->part_of));
    }
    if (f->ended_since_ms > 0)
        st_list_where(l, "end_ms", " >= ", st_val_i64(f->ended_since_ms));
    if (f->there_since_ms > 0) /* what is not over ends after everything */
        st_list_where(l, "(CASE WHEN end_ms < 0 THEN " NOT_OVER " ELSE end_ms END)",
                      " >= ", st_val_i64(f->there_since_ms));
    if (f->there_until_ms > 0)
        st_list_where(l, "submit_ms", " <= ", st_val_i64(f->there_until_ms));
    return 0;
}

typedef struct list_ctx {
    st_job_row_fn fn;
    void *ctx;
} list_ctx;

static int list_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    const list_ctx *l = ctx;
    st_job_row row;
    int r = st_shape_read(&st_shape_job, cols, n, &row, err);

    return r < 0 ? r : l->fn(l->ctx, &row, err);
}

int st_store_jobs_list(st_store *store, const st_job_filter *f, st_job_row_fn fn, void *ctx,
                       st_err *err)
{
    list_ctx c = {.fn = fn, .ctx = ctx};
    ST_CLEANUP(st_list_done) st_list l;
    int r = build(f, store, &l, err);

    return r < 0 ? r : st_list_rows(&l, store, list_row, &c, err);
}

int st_store_jobs_reach(st_store *store, const st_job_filter *f, int64_t *ret_id, st_err *err)
{
    ST_CLEANUP(st_list_done) st_list l;
    int r = build(f, store, &l, err);

    return r < 0 ? r : st_list_reach(&l, store, ret_id, err);
}

int st_store_jobs_count(st_store *store, const st_job_filter *f, int64_t *ret, st_err *err)
{
    ST_CLEANUP(st_list_done) st_list l;
    int r = build(f, store, &l, err);

    return r < 0 ? r : st_list_count(&l, store, ret, err);
}
