/*
 * Flipped bytes in every page of a store: reading gives what was written, or ST_ECORRUPT.
 */

#include <fcntl.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "store/test/scratch.h"

#define PAGE 4096

typedef struct digest {
    uint64_t h;
} digest;

static int add_job(void *ctx, const st_job_row *r, st_err *err)
{
    digest *d = ctx;

    (void)err;
    d->h = st_hash_u64(d->h, (uint64_t)r->id);
    d->h = st_hash_str(d->h, r->account);
    d->h = st_hash_str(d->h, r->spec);
    d->h = st_hash_u64(d->h, (uint64_t)r->submit_ms);
    return 0;
}

static int add_log(void *ctx, const st_log_row *r, st_err *err)
{
    digest *d = ctx;

    (void)err;
    d->h = st_hash_bytes(r->data.p, r->data.n, d->h ^ r->hash);
    return 0;
}

static int add_blob(void *ctx, const st_series_blob *b, st_err *err)
{
    digest *d = ctx;

    (void)err;
    d->h = st_hash_bytes(b->data.p, b->data.n, d->h ^ (uint64_t)b->at_ms);
    return 0;
}

/* A digest of all there is. */
static int read_all(const char *path, uint64_t *ret, st_err *err)
{
    ST_CLEANUP(st_store_closep) st_store *store = NULL;
    st_audit_verdict v = {0};
    digest d = {0};
    int r = st_store_open(path, &(st_store_options){.read_only = true}, &store, err);

    if (r == 0)
        r = st_store_jobs_list(store, &(st_job_filter){0}, add_job, &d, err);
    if (r == 0)
        r = st_store_log_read(store, 1, add_log, &d, err);
    if (r == 0)
        r = st_store_audit_verify(store, &v, err);
    if (r == 0)
        r = st_store_series_read(store, &(st_series_blob){.width_ms = 60}, 0, INT64_MAX, add_blob,
                                 &d, err);
    *ret = d.h ^ (uint64_t)v.rows;
    return r;
}

static void fill(const char *path)
{
    st_store *store;
    char spec[3000];
    st_err err;

    memset(spec, 'x', sizeof(spec));
    spec[sizeof(spec) - 1] = '\0';
    assert_ok(st_store_open(path, LOOSE, &store, &err));
    assert_ok(st_store_begin(store, &err));
    for (int64_t i = 1; i <= 20; i++) {
        st_job_row job = a_job(i, "a");
        st_log_row log = a_log(i);
        st_audit_row act = an_act("a", "submit");

        if (i % 5 == 0)
            job.spec = spec;
        assert_ok(st_store_job_insert(store, &job, &err));
        assert_ok(st_store_log_append(store, &log, &err));
        assert_ok(st_store_audit_append(store, &act, NULL, &err));
    }
    for (int64_t at = 0; at < 4; at++)
        assert_ok(st_store_series_put(
            store,
            &(st_series_blob){.width_ms = 60, .at_ms = at * 60, .data = {spec, sizeof(spec) / 2}},
            &err));
    assert_ok(st_store_commit(store, &err));
    st_store_close(store);
}

static void flip(int fd, off_t at)
{
    unsigned char byte;

    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x55;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static void test_flips(void **state)
{
    uint64_t want, got;
    int refused = 0, tried = 0;
    struct stat st;
    scratch s;
    int fd;
    st_err err;

    (void)state;
    scratch_init(&s);
    fill(s.path);
    assert_ok(read_all(s.path, &want, &err));
    fd = open(s.path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &st) == 0 && st.st_size % PAGE == 0);
    for (off_t page = 0; page < st.st_size; page += PAGE)
        /* Closely at the start, where the headers are, and some of the rest. */
        for (off_t at = 0; at < PAGE; at += page == 0 && at < 100 ? 1 : 331) {
            int r;

            flip(fd, page + at);
            r = read_all(s.path, &got, &err);
            if (r == 0)
                assert_int_equal(got, want);
            else if (r != -ST_ECORRUPT && !(page == 0 && at < 100))
                fail_msg("byte %lld: %s", (long long)(page + at), err.msg);
            refused += r < 0;
            tried++;
            flip(fd, page + at);
        }
    close(fd);
    assert_true(refused > tried / 3); /* much of it is indexes, which nobody asked here */
    assert_ok(read_all(s.path, &got, &err));
    assert_int_equal(got, want);
    scratch_done(&s);
}

/* What is not a store at all. */
static void test_other_files(void **state)
{
    char junk[3 * PAGE];
    st_store *store = NULL;
    scratch s;
    int fd;
    st_err err;

    (void)state;
    scratch_init(&s);
    memset(junk, 'j', sizeof(junk));
    fd = open(s.path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, junk, sizeof(junk)) == (ssize_t)sizeof(junk));
    close(fd);
    assert_fails(st_store_open(s.path, LOOSE, &store, &err), ST_ECORRUPT, s.path);
    scratch_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flips),
        cmocka_unit_test(test_other_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
