/*
 * Every helper of every noun, with the failing side.
 */

#include "base/strbuf.h"
#include "store/impl.h"
#include "store/test/scratch.h"

typedef struct world {
    scratch s;
    st_store *store;
    st_arena *a;
} world;

static int setup(void **state)
{
    world *w = calloc(1, sizeof(*w));
    st_err err;

    scratch_init(&w->s);
    w->a = st_arena_new();
    assert_ok(st_store_open(w->s.path, LOOSE, &w->store, &err));
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    world *w = *state;

    st_store_close(w->store);
    st_arena_free(w->a);
    scratch_done(&w->s);
    free(w);
    return 0;
}

static void exec(const world *w, const char *sql)
{
    st_err err;

    assert_ok(w->store->driver->exec(w->store->db, sql, &err));
}

static void test_meta(void **state)
{
    world *w = *state;
    const char *v;
    st_err err;

    assert_fails(st_store_meta_get(w->store, "epoch", w->a, &v, &err), ST_ENOENT, "epoch");
    assert_ok(st_store_meta_put(w->store, "epoch", "1", &err));
    assert_ok(st_store_meta_put(w->store, "epoch", "2", &err));
    assert_ok(st_store_meta_get(w->store, "epoch", w->a, &v, &err));
    assert_string_equal(v, "2");
}

static int count_log(void *ctx, const st_log_row *row, st_err *err)
{
    int64_t *n = ctx;

    (void)err;
    assert_int_equal(row->hash, UINT64_MAX - (uint64_t)row->seq);
    assert_int_equal(row->at_ms, row->seq * 10);
    assert_int_equal(row->data.n, 5);
    assert_memory_equal(row->data.p, "event", 5);
    (*n)++;
    return 0;
}

static void test_log(void **state)
{
    world *w = *state;
    int64_t n = 0, last;
    st_snap_row snap = {.seq = 4, .at_ms = 1, .version = "0.1.0", .data = {.p = "core", .n = 4}};
    st_snap_row got;
    st_log_row row;
    st_err err;

    for (int64_t i = 1; i <= 10; i++) {
        row = a_log(i);
        assert_ok(st_store_log_append(w->store, &row, &err));
    }
    assert_fails(st_store_log_append(w->store, &row, &err), ST_ESTATE, "does not follow");
    row = a_log(12);
    assert_fails(st_store_log_append(w->store, &row, &err), ST_ESTATE, "does not follow");
    assert_ok(st_store_log_read(w->store, 3, count_log, &n, &err));
    assert_int_equal(n, 8);
    assert_ok(st_store_log_last(w->store, &last, &err));
    assert_int_equal(last, 10);

    assert_fails(st_store_snap_get(w->store, INT64_MAX, w->a, &got, &err), ST_ENOENT, "snapshot");
    assert_ok(st_store_log_prune(w->store, 10, &n, &err)); /* no snapshot: nothing may go */
    assert_int_equal(n, 0);
    for (; snap.seq <= 8; snap.seq += 2)
        assert_ok(st_store_snap_put(w->store, &snap, INT64_MAX, &err));
    assert_ok(st_store_snap_get(w->store, INT64_MAX, w->a, &got, &err));
    assert_int_equal(got.seq, 8);
    assert_memory_equal(got.data.p, "core", 4);
    assert_ok(st_store_snap_get(w->store, 7, w->a, &got, &err));
    assert_int_equal(got.seq, 6);
    assert_fails(st_store_snap_get(w->store, 5, w->a, &got, &err), ST_ENOENT, "snapshot");

    assert_ok(st_store_log_prune(w->store, 4, &n, &err));
    assert_int_equal(n, 4);
    assert_ok(st_store_log_prune(w->store, 4, &n, &err)); /* up to the older one, 6 */
    assert_int_equal(n, 2);
    n = 0;
    assert_ok(st_store_log_read(w->store, 1, count_log, &n, &err));
    assert_int_equal(n, 4);
    exec(w, "DELETE FROM log WHERE seq = 9");
    assert_fails(st_store_log_read(w->store, 1, count_log, &n, &err), ST_ECORRUPT, "missing");
}

/* Snapshots from which an earlier time can be played: the first of each hour of the last day, and of each quarter of the
 * days before. */
static bool is_kept(int64_t i)
{
    return i >= 239 || (i > 192 ? i % 2 == 0 : i % 12 == 0 && i >= 96);
}

static void test_snapshots_of_days(void **state)
{
    const int64_t day = 86400000;
    world *w = *state;
    st_snap_row snap = {.version = "1", .data = {"core", 4}}, got;
    int64_t n;
    st_err err;

    for (int64_t i = 1; i <= 240; i++) {
        st_log_row row = a_log(i);

        row.at_ms = i * day / 48;
        assert_ok(st_store_log_append(w->store, &row, &err));
        snap.seq = i;
        snap.at_ms = row.at_ms; /* two an hour, for five days */
        assert_ok(st_store_snap_put(w->store, &snap, snap.at_ms - 3 * day, &err));
    }
    for (int64_t i = 240; i >= 96; i--) {
        if (!is_kept(i))
            continue;
        assert_ok(st_store_snap_get(w->store, i, w->a, &got, &err));
        assert_int_equal(got.seq, i);
    }
    assert_ok(st_sql_number(w->store, ST_SQL_SNAP_FIRST, &n, &err));
    assert_int_equal(n, 96); /* one at or before the border */
    n = 0;
    for (int64_t upto = 240; st_store_snap_get(w->store, upto, w->a, &got, &err) == 0;
         upto = got.seq - 1, n++)
        assert_true(is_kept(got.seq));
    assert_int_equal(n, 2 + 23 + 9);
    st_store_reach reach;
    assert_ok(st_store_log_reach(w->store, got.at_ms - 1, &reach, &err));
    assert_true(reach.whole && reach.snap_seq == 0);
    assert_ok(st_store_log_reach(w->store, got.at_ms, &reach, &err));
    assert_int_equal(reach.snap_seq, 96);
    assert_ok(st_store_log_prune(w->store, 1000, &n, &err));
    assert_int_equal(n, 96);
    assert_ok(st_store_log_reach(w->store, INT64_MAX, &reach, &err));
    assert_true(!reach.whole && reach.first_ms == got.at_ms && reach.snap_seq == 240);
    assert_ok(st_store_snap_put(w->store, &snap, INT64_MAX, &err));
    assert_ok(st_store_log_prune(w->store, 1000, &n, &err));
    assert_int_equal(n, 239 - 96); /* up to the older of two, 239 */
}

typedef struct ids {
    int64_t v[64];
    size_t n, stop_at;
} ids;

static int add_job(void *ctx, const st_job_row *row, st_err *err)
{
    ids *l = ctx;

    (void)err;
    l->v[l->n++] = row->id;
    return l->stop_at && l->n == l->stop_at;
}

/* "9 7 5" for the jobs a filter lets through. */
static const char *listed(world *w, const st_job_filter *f)
{
    st_strbuf text = {0};
    const char *ret;
    int64_t count;
    ids l = {0};
    st_err err;

    assert_ok(st_store_jobs_list(w->store, f, add_job, &l, &err));
    for (size_t i = 0; i < l.n; i++)
        st_strbuf_addf(&text, "%s%lld", i ? " " : "", (long long)l.v[i]);
    assert_ok(st_store_jobs_count(w->store, f, &count, &err));
    if (!f->limit && !f->before_id && !f->scan)
        assert_int_equal(count, l.n);
    ret = st_arena_strdup(w->a, st_strbuf_str(&text));
    st_strbuf_done(&text);
    return ret;
}

static void test_jobs(void **state)
{
    world *w = *state;
    static const char *const done[] = {"done", "failed"};
    const st_within org = {1, 70}, a = {2, 71}, nobody = {1, 99};
    const char *many[100];
    st_job_row row, got;
    int64_t n;
    ids l = {.stop_at = 2};
    st_err err;

    for (int64_t i = 1; i <= 9; i++) {
        row = a_job(i, i % 3 == 0 ? "c" : i % 3 == 1 ? "a" : "b");
        row.stands = (st_stands){{i % 3 == 0 ? 80 : 70, i % 3 == 0 ? 0 : i % 3 == 1 ? 71 : 72}};
        if (i == 5)
            row.name = "100%_Eval";
        assert_ok(st_store_job_insert(w->store, &row, &err));
    }
    assert_fails(st_store_job_insert(w->store, &row, &err), ST_EEXIST, "job 9");
    row = a_job(4, "moved");
    row.state = "done";
    row.end_ms = 5000;
    row.exit_code = 0;
    row.result = "{}";
    assert_ok(st_store_job_update(w->store, &row, &err));
    assert_ok(st_store_job_put_spec(w->store, 4, "{\"gpus\":1}", &err));
    assert_ok(st_store_job_get(w->store, 4, w->a, &got, &err));
    assert_string_equal(got.account, "a");
    assert_string_equal(got.state, "done");
    assert_string_equal(got.spec, "{\"gpus\":1}");
    assert_int_equal(got.end_ms, 5000);
    assert_int_equal(got.start_ms, ST_STORE_NEVER);
    row.id = 99;
    assert_fails(st_store_job_update(w->store, &row, &err), ST_ENOENT, "job 99");
    assert_fails(st_store_job_put_spec(w->store, 99, "", &err), ST_ENOENT, "job 99");
    assert_fails(st_store_job_get(w->store, 99, w->a, &got, &err), ST_ENOENT, "job 99");

    assert_string_equal(listed(w, &(st_job_filter){0}), "9 8 7 6 5 4 3 2 1");
    assert_string_equal(listed(w, &(st_job_filter){.within = nobody}), "");
    assert_string_equal(listed(w, &(st_job_filter){.within = a}), "7 4 1");
    assert_string_equal(listed(w, &(st_job_filter){.within = org}), "8 7 5 4 2 1");
    assert_string_equal(listed(w, &(st_job_filter){.within = org, .limit = 3}), "8 7 5");
    assert_string_equal(listed(w, &(st_job_filter){.within = org, .limit = 3, .before_id = 5}),
                        "4 2 1");
    /* So many are looked at, however few of them are meant. */
    const st_job_filter bounded = {.within = org, .scan = 4, .name_has = "_Eval"};
    const st_job_filter rest = {.within = org, .scan = 4, .before_id = 4};
    assert_string_equal(listed(w, &bounded), "5");
    assert_ok(st_store_jobs_reach(w->store, &bounded, &n, &err));
    assert_int_equal(n, 4);
    assert_string_equal(listed(w, &rest), "2 1");
    assert_ok(st_store_jobs_reach(w->store, &rest, &n, &err));
    assert_int_equal(n, 0);
    assert_string_equal(
        listed(w, &(st_job_filter){.within = org, .scan = 3, .states = done, .nstates = 2}), "");
    assert_string_equal(listed(w, &(st_job_filter){.before_id = 3, .limit = 1}), "2");
    assert_string_equal(listed(w, &(st_job_filter){.states = done, .nstates = 2}), "4");
    assert_string_equal(listed(w, &(st_job_filter){.user_name = "bob"}), "");
    assert_string_equal(listed(w, &(st_job_filter){.name_has = "%_E"}), "5");
    assert_string_equal(listed(w, &(st_job_filter){.name_has = "TRAIN"}), "");
    assert_string_equal(listed(w, &(st_job_filter){.name_has = "' OR 1 = 1 --"}), "");
    assert_string_equal(listed(w, &(st_job_filter){.ended_since_ms = 5000}), "4");
    assert_string_equal(listed(w, &(st_job_filter){.ended_since_ms = 5001}), "");
    /* 4 is over at 5000, the others never; job n was submitted at 1000 + n. */
    assert_string_equal(listed(w, &(st_job_filter){.within = a, .there_since_ms = 5000}), "7 4 1");
    assert_string_equal(listed(w, &(st_job_filter){.within = a, .there_since_ms = 5001}), "7 1");
    assert_string_equal(listed(w, &(st_job_filter){.there_until_ms = 1003}), "3 2 1");
    assert_string_equal(listed(w, &(st_job_filter){.there_since_ms = 5001, .there_until_ms = 1005}),
                        "5 3 2 1");
    assert_ok(st_store_jobs_list(w->store, &(st_job_filter){.within = org}, add_job, &l, &err));
    assert_int_equal(l.n, 2);
    for (size_t i = 0; i < ST_ARRAY_LEN(many); i++)
        many[i] = "x";
    assert_fails(st_store_jobs_list(w->store, &(st_job_filter){.states = many, .nstates = 100},
                                    add_job, &l, &err),
                 ST_ERANGE, "100 values");

    assert_ok(st_store_jobs_prune(w->store, 5000, 10, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(st_store_jobs_prune(w->store, 5001, 10, &n, &err));
    assert_int_equal(n, 1);
    assert_string_equal(listed(w, &(st_job_filter){0}), "9 8 7 6 5 3 2 1");
}

/* Pieces of an array share the beginning of their documents; those of an older store do not. */
static void test_arrays(void **state)
{
    world *w = *state;
    st_job_row row, got;
    const char *head;
    int64_t n;
    st_err err;

    for (int64_t i = 1; i <= 4; i++) {
        row = a_job(i, "a");
        row.part_of = i < 4 ? 1 : 4;
        row.spec = i < 4 ? "1}" : "{\"n\":4}";
        row.end_ms = i == 2 ? ST_STORE_NEVER : 100;
        assert_ok(st_store_job_insert(w->store, &row, &err));
    }
    assert_ok(st_store_array_put(w->store, 1, "{\"n\":", &err));
    assert_ok(st_store_job_get(w->store, 3, w->a, &got, &err));
    assert_string_equal(got.spec, "{\"n\":1}");
    assert_ok(st_store_job_get(w->store, 4, w->a, &got, &err));
    assert_string_equal(got.spec, "{\"n\":4}");
    assert_string_equal(listed(w, &(st_job_filter){.part_of = 1, .own_part = true}), "3 2 1");
    assert_fails(st_store_array_get(w->store, 4, w->a, &head, &err), ST_ENOENT, "shares nothing");
    assert_ok(st_store_jobs_prune(w->store, 5000, 10, &n, &err));
    assert_int_equal(n, 2); /* the newest stays, or its number would be given again */
    assert_ok(st_store_array_get(w->store, 1, w->a, &head, &err)); /* job 2 still needs it */
    row.id = 2;
    row.end_ms = 100;
    assert_ok(st_store_job_update(w->store, &row, &err));
    assert_ok(st_store_jobs_prune(w->store, 5000, 10, &n, &err));
    assert_fails(st_store_array_get(w->store, 1, w->a, &head, &err), ST_ENOENT, "shares nothing");
}

static int count_tokens(void *ctx, const st_token_row *row, st_err *err)
{
    (void)row, (void)err;
    ++*(int *)ctx;
    return 0;
}

static void test_tokens(void **state)
{
    world *w = *state;
    st_token_row row = {.id = 1,
                        .hash = {.p = "0123\0\0ef", .n = 8},
                        .account = "a",
                        .user_name = "ann",
                        .role = "admin",
                        .label = "",
                        .created_ms = 1,
                        .expires_ms = ST_STORE_NEVER,
                        .revoked_ms = ST_STORE_NEVER,
                        .last_used_ms = ST_STORE_NEVER};
    st_token_row got;
    int n = 0;
    st_err err;

    assert_ok(st_store_token_insert(w->store, &row, &err));
    row.id = 2;
    assert_fails(st_store_token_insert(w->store, &row, &err), ST_EEXIST, "hash");
    assert_ok(st_store_token_used(w->store, 1, 50, &err));
    assert_ok(st_store_token_revoke(w->store, 1, 60, &err));
    assert_fails(st_store_token_revoke(w->store, 1, 70, &err), ST_ENOENT, "1");
    assert_ok(st_store_token_get(w->store, 1, w->a, &got, &err));
    assert_int_equal(got.last_used_ms, 50);
    assert_int_equal(got.revoked_ms, 60);
    assert_fails(st_store_token_get(w->store, 2, w->a, &got, &err), ST_ENOENT, "");
    assert_ok(st_store_tokens(w->store, count_tokens, &n, &err));
    assert_int_equal(n, 1);
}

static int count_audit(void *ctx, const st_audit_row *row, st_err *err)
{
    (void)err;
    *(int64_t *)ctx = *(int64_t *)ctx * 10 + row->seq;
    return 0;
}

static void fill_audit(world *w)
{
    st_err err;

    for (int i = 0; i < 5; i++) {
        st_audit_row row = an_act(i % 2 ? "b" : "a", "submit");
        row.stands = (st_stands){{70, i % 2 ? 72 : 71}};
        int64_t seq;

        assert_ok(st_store_audit_append(w->store, &row, &seq, &err));
        assert_int_equal(seq, i + 1);
    }
}

static void test_audit(void **state)
{
    world *w = *state;
    st_audit_verdict v;
    int64_t seen = 0;
    st_err err;

    assert_ok(st_store_audit_verify(w->store, &v, &err));
    assert_int_equal(v.rows, 0);
    fill_audit(w);
    assert_ok(st_store_audit_verify(w->store, &v, &err));
    assert_int_equal(v.rows, 5);
    assert_int_equal(v.bad_seq, 0);
    assert_ok(st_store_audit_list(w->store, &(st_audit_filter){.within = {2, 71}}, count_audit,
                                  &seen, &err));
    assert_int_equal(seen, 531);
    seen = 0;
    assert_ok(st_store_audit_list(
        w->store, &(st_audit_filter){.within = {1, 70}, .before_seq = 5, .limit = 2}, count_audit,
        &seen, &err));
    assert_int_equal(seen, 43);
}

static void test_audit_tampering(void **state)
{
    world *w = *state;
    static const struct {
        const char *sql;
        int64_t bad;
        const char *why;
    } cases[] = {
        {"UPDATE audit SET detail = 'x' WHERE seq = 3", 3, "changed"},
        {"UPDATE audit SET actor = 'an', account = 'n' || account WHERE seq = 2", 2, "changed"},
        {"UPDATE audit SET hash = x'00' WHERE seq = 4", 4, "changed"},
        {"DELETE FROM audit WHERE seq = 3", 3, "missing"},
        {"DELETE FROM audit WHERE seq = 1", 1, "missing"},
        {"DELETE FROM audit WHERE seq = 5", 5, "missing at the end"},
        {"DELETE FROM audit", 1, "missing"},
        {"INSERT INTO audit (seq, at_ms, actor, account, source, verb, target, detail, hash) "
         "SELECT seq - 1, at_ms, actor, account, source, verb, target, detail, "
         "hash FROM audit WHERE seq = 1",
         1, "not the first"},
    };

    for (size_t i = 0; i < ST_ARRAY_LEN(cases); i++) {
        st_audit_verdict v;
        st_audit_row row = an_act("a", "hide");
        st_err err;

        exec(w, "DELETE FROM audit; DELETE FROM meta WHERE k = 'audit_head'");
        fill_audit(w);
        exec(w, cases[i].sql);
        for (int later = 0; later < 2; later++) {
            assert_ok(st_store_audit_verify(w->store, &v, &err));
            assert_int_equal(v.bad_seq, cases[i].bad);
            assert_non_null(strstr(v.why, later ? "row" : cases[i].why));
            assert_ok(st_store_audit_append(w->store, &row, NULL, &err));
        }
    }
}

static void test_idem(void **state)
{
    world *w = *state;
    st_idem_row got, row = {.owner = "a",
                            .key = "k1",
                            .at_ms = 10,
                            .digest = {.p = "d", .n = 1},
                            .answer = "{}",
                            .status = 201};
    int64_t n;
    st_err err;

    assert_ok(st_store_idem_put(w->store, &row, &err));
    assert_fails(st_store_idem_put(w->store, &row, &err), ST_EEXIST, "k1");
    row.owner = "b";
    assert_ok(st_store_idem_put(w->store, &row, &err));
    assert_ok(st_store_idem_get(w->store, "a", "k1", w->a, &got, &err));
    assert_int_equal(got.status, 201);
    assert_fails(st_store_idem_get(w->store, "a", "k2", w->a, &got, &err), ST_ENOENT, "k2");
    assert_ok(st_store_idem_expire(w->store, 10, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(st_store_idem_expire(w->store, 11, &n, &err));
    assert_int_equal(n, 2);
}

static int join_documents(void *ctx, const st_document_row *row, st_err *err)
{
    (void)err;
    st_strbuf_addf(ctx, "%s/%s@%lld ", row->kind, row->name, (long long)row->version);
    return 0;
}

static void test_documents(void **state)
{
    world *w = *state;
    st_document_row got, row = {.kind = "pool", .name = "p", .at_ms = 1, .doc = "{}"};
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_err err;

    assert_ok(st_store_document_put(w->store, &row, &err));
    assert_fails(st_store_document_put(w->store, &row, &err), ST_ESTATE, "exists already");
    row.version = 2;
    assert_fails(st_store_document_put(w->store, &row, &err), ST_ESTATE, "has version 1, not 2");
    row.version = 1;
    row.doc = "{\"a\":1}";
    assert_ok(st_store_document_put(w->store, &row, &err));
    assert_ok(st_store_document_get(w->store, "pool", "p", w->a, &got, &err));
    assert_int_equal(got.version, 2);
    assert_string_equal(got.doc, "{\"a\":1}");
    row.name = "gone";
    assert_fails(st_store_document_put(w->store, &row, &err), ST_ESTATE, "not there any more");
    row.version = 0;
    row.kind = "node";
    assert_ok(st_store_document_put(w->store, &row, &err));
    assert_ok(st_store_documents(w->store, NULL, join_documents, &text, &err));
    assert_string_equal(st_strbuf_str(&text), "node/gone@1 pool/p@2 ");
    st_strbuf_clear(&text);
    assert_ok(st_store_documents(w->store, "pool", join_documents, &text, &err));
    assert_string_equal(st_strbuf_str(&text), "pool/p@2 ");
    assert_fails(st_store_document_delete(w->store, "pool", "p", 1, &err), ST_ESTATE, "version 2");
    assert_ok(st_store_document_delete(w->store, "pool", "p", 2, &err));
    assert_fails(st_store_document_delete(w->store, "pool", "p", 2, &err), ST_ENOENT, "pool p");
}

/* A value of another type than its column's is damage, not a crash. */
static void test_wrong_types(void **state)
{
    world *w = *state;
    st_job_row row = a_job(1, "a");
    st_err err;

    assert_ok(st_store_job_insert(w->store, &row, &err));
    exec(w, "UPDATE jobs SET priority = 'high'");
    assert_fails(st_store_job_get(w->store, 1, w->a, &row, &err), ST_ECORRUPT, "priority");
    exec(w, "UPDATE jobs SET priority = 0.5");
    assert_fails(st_store_job_get(w->store, 1, w->a, &row, &err), ST_ECORRUPT, "fraction");
    exec(w, "UPDATE jobs SET priority = 1, name = CAST(x'610062' AS TEXT)");
    assert_fails(st_store_job_get(w->store, 1, w->a, &row, &err), ST_ECORRUPT, "NUL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_meta, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log, setup, teardown),
        cmocka_unit_test_setup_teardown(test_snapshots_of_days, setup, teardown),
        cmocka_unit_test_setup_teardown(test_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_arrays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tokens, setup, teardown),
        cmocka_unit_test_setup_teardown(test_audit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_audit_tampering, setup, teardown),
        cmocka_unit_test_setup_teardown(test_idem, setup, teardown),
        cmocka_unit_test_setup_teardown(test_documents, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_types, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
