/*
 * Opening, the lock, migrations, readers beside a writer, check, and backup under load.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "store/impl.h"
#include "store/test/scratch.h"

/* Also where the driver is named: the name is no part of the path. */
static void expect_beside(const st_store *store, const scratch *s, const char *where)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf open = {0}, closed = {0}, plain = {0};
    char want[100];

    snprintf(want, sizeof want, "%s/logs", s->folder);
    st_store_beside(store, "logs", &open);
    st_store_beside_of(where, "logs", &closed);
    assert_string_equal(st_strbuf_str(&open), want);
    assert_string_equal(st_strbuf_str(&closed), want);
    st_store_beside_of("sqlite:stint.db", "logs", &plain);
    assert_string_equal(st_strbuf_str(&plain), "logs");
    assert_true(st_store_is_file(where, s->path));
    assert_true(st_store_is_written(where));
    assert_false(st_store_is_written("sqlite:/nowhere/stint.db"));
}

static void test_open(void **state)
{
    ST_CLEANUP(st_store_closep) st_store *store = NULL;
    st_store *other = NULL;
    struct stat st;
    char text[120];
    scratch s;
    int64_t version;
    st_err err;

    (void)state;
    scratch_init(&s);
    assert_fails(st_store_open("postgres://db/stint", NULL, &other, &err), ST_EINVAL,
                 "not in this build");
    assert_fails(st_store_open("sqlite:", NULL, &other, &err), ST_EINVAL, "path");
    assert_fails(st_store_open(":memory:", NULL, &other, &err), ST_EINVAL, "path");
    assert_fails(st_store_open("/nowhere/at/all", NULL, &other, &err), ST_EIO, "/nowhere");
    assert_fails(st_store_open(s.path, &(st_store_options){.read_only = true}, &other, &err),
                 ST_EIO, s.path);
    snprintf(text, sizeof(text), "sqlite:%s", s.path);
    assert_ok(st_store_open(text, LOOSE, &store, &err));
    expect_beside(store, &s, text);
    assert_ok(st_store_schema(store, &version, &err));
    assert_int_equal(version, st_migrations[st_nmigrations - 1].version);
    assert_int_equal(stat(s.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);

    snprintf(text, sizeof(text), "in use by process %ld", (long)getpid());
    assert_fails(st_store_open(s.path, LOOSE, &other, &err), ST_ESTATE, text);
    assert_null(other);
    assert_ok(
        st_store_open(s.path, &(st_store_options){.read_only = true, .loose = true}, &other, &err));
    assert_fails(st_store_meta_put(other, "a", "b", &err), ST_EIO, "read-only");
    st_store_close(other);
    st_store_close(ST_TAKE(store));
    assert_ok(st_store_open(s.path, LOOSE, &store, &err));
    st_store_close(ST_TAKE(store));
    scratch_done(&s);
}

static void test_statements_prepare(void **state)
{
    static const char *const texts[] = {
#define TEXT(id, shape, params, text) text,
        ST_SQL_TABLE(TEXT)
#undef TEXT
    };
    static const st_row_shape *const shapes[] = {
#define SHAPE(id, shape, params, text) shape,
        ST_SQL_TABLE(SHAPE)
#undef SHAPE
    };
    st_store *store;
    scratch s;
    st_err err;

    (void)state;
    scratch_init(&s);
    assert_ok(st_store_open(s.path, LOOSE, &store, &err));
    for (size_t i = 0; i < ST_ARRAY_LEN(texts); i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf sql = {0};
        st_stmt *stmt;

        st_shape_expand(store->driver, shapes[i], texts[i], &sql);
        assert_ok(st_sql_prepare(store, st_strbuf_str(&sql), &stmt, &err));
        st_sql_finish(store, stmt);
    }
    st_store_close(store);
    scratch_done(&s);
}

/* A rolled-back transaction leaves nothing, and a failed one takes nothing more. */
static void test_transactions(void **state)
{
    ST_CLEANUP(st_arena_freep) st_arena *a = st_arena_new();
    const char *v;
    st_store *store;
    scratch s;
    st_err err;

    (void)state;
    scratch_init(&s);
    assert_ok(st_store_open(s.path, LOOSE, &store, &err));
    assert_ok(st_store_begin(store, &err));
    assert_true(st_store_in_transaction(store));
    assert_ok(st_store_meta_put(store, "a", "1", &err));
    st_store_rollback(store);
    st_store_rollback(store);
    assert_fails(st_store_meta_get(store, "a", a, &v, &err), ST_ENOENT, "");

    assert_ok(st_store_begin(store, &err));
    assert_ok(st_store_meta_put(store, "a", "1", &err));
    store->broken = ST_EIO; /* as after an I/O error that made SQLite roll back */
    store->driver->rollback(store->db);
    assert_fails(st_store_meta_put(store, "b", "1", &err), ST_EIO, "rolled back");
    assert_fails(st_store_commit(store, &err), ST_EIO, "rolled back");
    assert_ok(st_store_begin(store, &err));
    assert_ok(st_store_commit(store, &err));
    assert_fails(st_store_meta_get(store, "b", a, &v, &err), ST_ENOENT, "");
    st_store_close(store);
    scratch_done(&s);
}

static void test_migrations(void **state)
{
    static const char *const one[] = {"CREATE TABLE old (a BIGINT)", "INSERT INTO old VALUES (7)",
                                      NULL};
    static const char *const two[] = {"ALTER TABLE old ADD COLUMN b @blob", NULL};
    static const char *const bad[] = {"CREATE TABLE half (a BIGINT)", "CREATE nonsense", NULL};
    const st_migration list[] = {{1, one}, {2, two}, {3, bad}};
    st_store *store = NULL, *none = NULL;
    int64_t version;
    scratch s;
    st_err err;

    (void)state;
    scratch_init(&s);
    assert_ok(st_store_open(s.path, LOOSE, &store, &err));
    assert_ok(store->driver->exec(store->db, "DELETE FROM meta", &err)); /* as before version 1 */
    assert_ok(st_schema_migrate(store, list, 1, &err));
    assert_ok(st_schema_migrate(store, list, 2, &err));
    assert_ok(st_schema_migrate(store, list, 2, &err));
    assert_ok(store->driver->exec(store->db, "UPDATE old SET b = x'00' WHERE a = 7", &err));
    assert_ok(st_store_schema(store, &version, &err));
    assert_int_equal(version, 2);
    /* One that fails leaves the version before, and nothing of itself. */
    assert_fails(st_schema_migrate(store, list, 3, &err), ST_ECORRUPT, "to version 3");
    assert_ok(st_store_schema(store, &version, &err));
    assert_int_equal(version, 2);
    assert_true(store->driver->exec(store->db, "SELECT * FROM half", &err) < 0);
    assert_fails(st_schema_require(store, list, 3, &err), ST_ESTATE, "start stintd once");

    assert_ok(st_store_meta_put(store, "schema", "999", &err));
    st_store_close(store);
    assert_fails(st_store_open(s.path, LOOSE, &none, &err), ST_ESTATE, "newer stintd (schema 999");
    assert_fails(st_store_open(s.path, &(st_store_options){.read_only = true}, &none, &err),
                 ST_ESTATE, "newer");
    scratch_done(&s);
}

/* ---- threads ---------------------------------------------------------------------------- */

#define PAIR 10 /* jobs per transaction: readers must see multiples of it */

typedef struct shared {
    const st_store *store;
    atomic_bool stop;
    atomic_int wrong, looked;
} shared;

static void *look(void *arg)
{
    shared *sh = arg;
    st_store *reader = NULL;
    int64_t n, before = 0;
    st_err err;

    if (st_store_open_reader(sh->store, &reader, &err) < 0) {
        atomic_fetch_add(&sh->wrong, 1);
        return NULL;
    }
    while (!atomic_load(&sh->stop)) {
        if (st_store_jobs_count(reader, &(st_job_filter){0}, &n, &err) < 0 || n % PAIR != 0 ||
            n < before)
            atomic_fetch_add(&sh->wrong, 1);
        before = n;
        atomic_fetch_add(&sh->looked, 1);
    }
    st_store_close(reader);
    return NULL;
}

static void write_some(st_store *store, int64_t from, int64_t transactions)
{
    st_err err;

    for (int64_t t = from; t < from + transactions; t++) {
        assert_ok(st_store_begin(store, &err));
        for (int64_t i = 1; i <= PAIR; i++) {
            st_job_row row = a_job(t * PAIR + i, "a");
            assert_ok(st_store_job_insert(store, &row, &err));
        }
        assert_ok(st_store_commit(store, &err));
    }
}

static void test_readers(void **state)
{
    shared sh = {0};
    pthread_t threads[2];
    st_store *store;
    scratch s;
    st_err err;

    (void)state;
    scratch_init(&s);
    assert_ok(st_store_open(s.path, LOOSE, &store, &err));
    sh.store = store;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look, &sh), 0);
    for (int64_t t = 0; t < 200 || atomic_load(&sh.looked) < 10; t++)
        write_some(store, t, 1);
    atomic_store(&sh.stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&sh.wrong), 0);
    st_store_close(store);
    scratch_done(&s);
}

typedef struct copier {
    const st_store *store;
    const char *path;
    atomic_int done, failed;
} copier;

static void *copy(void *arg)
{
    copier *c = arg;
    st_err err;

    if (st_store_backup(c->store, c->path, &err) < 0)
        atomic_store(&c->failed, 1);
    atomic_store(&c->done, 1);
    return NULL;
}

static void shout(void *ctx, const char *sentence)
{
    (void)ctx;
    fail_msg("finding: %s", sentence);
}

static void test_backup(void **state)
{
    copier c = {0};
    pthread_t thread;
    st_store *store, *second;
    int64_t n, t = 1000;
    struct stat st;
    scratch s;
    st_err err;

    (void)state;
    scratch_init(&s);
    assert_ok(st_store_open(s.path, LOOSE, &store, &err));
    write_some(store, 0, 1000);
    assert_fails(st_store_backup(store, s.path, &err), ST_EINVAL, "the store itself");
    assert_fails(st_store_backup(store, "/nowhere/at/all", &err), ST_ESTATE, "/nowhere");
    c.store = store;
    c.path = s.second;
    assert_int_equal(pthread_create(&thread, NULL, copy, &c), 0);
    while (!atomic_load(&c.done))
        write_some(store, t++, 1);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&c.failed), 0);
    assert_int_equal(stat(s.second, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_ok(st_store_open(s.second, LOOSE, &second, &err));
    assert_ok(st_store_jobs_count(second, &(st_job_filter){0}, &n, &err));
    assert_true(n >= 10000 && n <= t * PAIR && n % PAIR == 0);
    assert_ok(st_store_check(second, NULL, 0, shout, NULL, &n, &err));
    write_some(second, 100000, 1);
    st_store_close(second);
    st_store_close(store);
    scratch_done(&s);
}

static void gather(void *ctx, const char *sentence)
{
    st_strbuf_addf(ctx, "%s\n", sentence);
}

static void test_check(void **state)
{
    static const char *const states[] = {"pending", "done"};
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_job_row job = a_job(1, "a");
    st_store *store;
    int64_t n;
    scratch s;
    st_err err;

    (void)state;
    scratch_init(&s);
    assert_ok(st_store_open(s.path, LOOSE, &store, &err));
    assert_ok(st_store_job_insert(store, &job, &err));
    for (int64_t i = 1; i <= 5; i++) {
        st_log_row row = a_log(i);
        assert_ok(st_store_log_append(store, &row, &err));
    }
    assert_ok(st_store_check(store, states, 2, shout, NULL, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(
        store->driver->exec(store->db,
                            "UPDATE jobs SET state = 'lost'; DELETE FROM log WHERE seq = 1; "
                            "INSERT INTO tokens VALUES (1, 'x', 1, 2, 3, 4, 5, 6, 7, 8); "
                            "INSERT INTO audit (seq, at_ms, actor, account, source, verb, target, "
                            "detail, hash) VALUES (2, 1, '', '', '', '', '', '', x'')",
                            &err));
    assert_ok(st_store_check(store, states, 2, gather, &text, &n, &err));
    assert_non_null(strstr(st_strbuf_str(&text), "\"lost\""));
    assert_non_null(strstr(st_strbuf_str(&text), "log: rows 1 to 1"));
    assert_non_null(strstr(st_strbuf_str(&text), "audit: row 1 is missing"));
    assert_non_null(strstr(st_strbuf_str(&text), "table tokens"));
    assert_int_equal(n, 4);
    st_store_close(store);
    scratch_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),         cmocka_unit_test(test_statements_prepare),
        cmocka_unit_test(test_transactions), cmocka_unit_test(test_migrations),
        cmocka_unit_test(test_readers),      cmocka_unit_test(test_backup),
        cmocka_unit_test(test_check),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
