/*
 * Faults at every write and every sync of a transaction, and power losses there: what was
 * acknowledged is there afterwards, and nothing is there by half.
 */
#include "store/test/faulty_vfs.h"
#include "store/test/scratch.h"

#define VFS       "faulty"
#define MOST      400 /* faults tried in one loop; it must end before */
#define JOBS_EACH 40  /* rows of one transaction: several pages */

static const st_store_options options = {.vfs = VFS, .loose = true};

/* Transaction k: log row k, JOBS_EACH jobs, and k in meta. */
static int transact(st_store *store, int64_t k, st_err *err)
{
    char text[24];
    st_log_row log = a_log(k);
    st_audit_row act = an_act("a", "submit");
    int r = st_store_begin(store, err);

    if (r < 0)
        return r;
    snprintf(text, sizeof(text), "%lld", (long long)k);
    r = st_store_log_append(store, &log, err);
    for (int64_t i = 0; r == 0 && i < JOBS_EACH; i++) {
        st_job_row row = a_job(k * JOBS_EACH + i, "a");

        row.spec = "a document of some length, so that a transaction is more than one page: "
                   "0123456789012345678901234567890123456789012345678901234567890123456789";
        r = st_store_job_insert(store, &row, err);
    }
    if (r == 0)
        r = st_store_audit_append(store, &act, NULL, err);
    if (r == 0)
        r = st_store_meta_put(store, "k", text, err);
    if (r == 0)
        return st_store_commit(store, err);
    st_store_rollback(store);
    return r;
}

static void shout(void *ctx, const char *sentence)
{
    (void)ctx;
    fail_msg("finding: %s", sentence);
}

/* Everything is as after transaction k, whose number is returned. */
static int64_t whole_until(st_store *store)
{
    ST_CLEANUP(st_arena_freep) st_arena *a = st_arena_new();
    int64_t k, jobs, found;
    const char *text = "0";
    st_err err;
    int r;

    assert_ok(st_store_log_last(store, &k, &err));
    assert_ok(st_store_jobs_count(store, &(st_job_filter){0}, &jobs, &err));
    assert_int_equal(jobs, k * JOBS_EACH);
    r = st_store_meta_get(store, "k", a, &text, &err);
    assert_true(r == 0 || (r == -ST_ENOENT && k == 0));
    assert_int_equal(strtoll(text, NULL, 10), k);
    assert_ok(st_store_check(store, NULL, 0, shout, NULL, &found, &err));
    return k;
}

/* A fault while the process lives: the transaction fails, the store goes on afterwards. */
static void faults(fault_kind kind, int code)
{
    scratch s;
    int n = 1;

    for (bool hit = true; hit; n++) {
        faulty_vfs *v = faulty_new(VFS);
        st_store *store;
        int64_t acked = 1;
        st_err err;

        assert_true(n < MOST);
        scratch_init(&s);
        assert_ok(st_store_open(s.path, &options, &store, &err));
        assert_ok(transact(store, 1, &err));
        faulty_arm(v, kind, n);
        for (int64_t k = 2; k <= 4; k++) {
            int r = transact(store, k, &err);

            if (r < 0) {
                assert_int_equal(r, -code);
                assert_true(faulty_hit(v));
                break;
            }
            acked = k;
        }
        hit = faulty_hit(v);
        faulty_arm(v, FAULT_NONE, 0);
        assert_int_equal(whole_until(store), acked);
        assert_ok(transact(store, acked + 1, &err));
        st_store_close(store);
        assert_ok(st_store_open(s.path, &options, &store, &err));
        assert_int_equal(whole_until(store), acked + 1);
        st_store_close(store);
        faulty_free(v);
        scratch_done(&s);
    }
    assert_true(n > 2);
}

static void test_write_fails(void **state)
{
    (void)state;
    faults(FAULT_WRITE_IO, ST_EIO);
}

static void test_disk_full(void **state)
{
    (void)state;
    faults(FAULT_WRITE_FULL, ST_EFULL);
    faults(FAULT_WRITE_SHORT, ST_EFULL);
}

static void test_sync_fails(void **state)
{
    (void)state;
    faults(FAULT_SYNC, ST_EIO);
}

static void test_goes_read_only(void **state)
{
    (void)state;
    faults(FAULT_READ_ONLY, ST_EIO);
}

/* The power goes at the nth write or sync, from the making of the file to its closing. */
static void power(fault_kind kind, power_loss how)
{
    scratch s;
    int n = 1;

    for (bool hit = true; hit; n++) {
        faulty_vfs *v = faulty_new(VFS);
        st_store *store = NULL;
        int64_t acked = 0, there;
        st_err err;

        assert_true(n < MOST);
        scratch_init(&s);
        faulty_arm(v, kind, n);
        if (st_store_open(s.path, &options, &store, &err) == 0) {
            while (acked < 3 && transact(store, acked + 1, &err) == 0)
                acked++;
            st_store_close(store);
        }
        hit = faulty_hit(v);
        faulty_power_on(v, how);
        assert_ok(st_store_open(s.path, &options, &store, &err));
        there = whole_until(store);
        /* The one under way may have made it. */
        assert_in_range(there, acked, acked + 1);
        assert_ok(transact(store, there + 1, &err));
        assert_int_equal(whole_until(store), there + 1);
        st_store_close(store);
        faulty_free(v);
        scratch_done(&s);
    }
    assert_true(n > 2);
}

static void test_power_at_sync(void **state)
{
    (void)state;
    power(FAULT_POWER_SYNC, LOSE_ALL);
    power(FAULT_POWER_SYNC, LOSE_SOME);
    power(FAULT_POWER_SYNC, LOSE_NONE);
}

static void test_power_at_write(void **state)
{
    (void)state;
    power(FAULT_POWER_WRITE, LOSE_ALL);
    power(FAULT_POWER_WRITE, LOSE_SOME);
}

/* The test's own instrument: without a sync, a commit does not survive. */
static void test_power_needs_sync(void **state)
{
    st_store_options lazy = {.vfs = VFS, .loose = true, .durable = ST_DURABLE_CRASH};
    faulty_vfs *v = faulty_new(VFS);
    st_store *store;
    scratch s;
    st_err err;

    (void)state;
    scratch_init(&s);
    assert_ok(st_store_open(s.path, &lazy, &store, &err));
    faulty_sync_all(v);
    assert_ok(transact(store, 1, &err));
    faulty_arm(v, FAULT_POWER_WRITE, 1);
    assert_true(transact(store, 2, &err) < 0);
    st_store_close(store);
    faulty_power_on(v, LOSE_ALL);
    assert_ok(st_store_open(s.path, &options, &store, &err));
    assert_int_equal(whole_until(store), 0);
    st_store_close(store);
    faulty_free(v);
    scratch_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_fails),      cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_sync_fails),       cmocka_unit_test(test_goes_read_only),
        cmocka_unit_test(test_power_at_sync),    cmocka_unit_test(test_power_at_write),
        cmocka_unit_test(test_power_needs_sync),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
