/*
 * The schema and its history. Each migration is one transaction that ends by writing its version
 * into meta; a crash leaves the version before or the version after. A migration that has been
 * released is never changed: what must be different goes into a new one.
 */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "store/impl.h"

#define SCHEMA_KEY "schema"

static const char *const version_1[] = {
    "CREATE TABLE log (seq @key PRIMARY KEY, at_ms BIGINT NOT NULL, version TEXT NOT NULL, "
    "data @blob NOT NULL, hash BIGINT NOT NULL)",

    "CREATE TABLE snap (seq @key PRIMARY KEY, at_ms BIGINT NOT NULL, version TEXT NOT NULL, "
    "data @blob NOT NULL)",

    "CREATE TABLE jobs (id @key PRIMARY KEY, account TEXT NOT NULL, user_name TEXT NOT NULL, "
    "name TEXT NOT NULL, state TEXT NOT NULL, class_name TEXT NOT NULL, submit_ms BIGINT NOT NULL, "
    "start_ms BIGINT NOT NULL, end_ms BIGINT NOT NULL, priority BIGINT NOT NULL, "
    "gpu_m BIGINT NOT NULL, preemptions BIGINT NOT NULL, lost BIGINT NOT NULL, "
    "exit_code BIGINT NOT NULL, reason TEXT NOT NULL, spec TEXT NOT NULL, result TEXT NOT NULL)",
    /* An account's list, newest first. */
    "CREATE INDEX jobs_account ON jobs (account, id)",
    /* What ended lately and what may be pruned; costs a live job nothing. */
    "CREATE INDEX jobs_ended ON jobs (end_ms) WHERE end_ms >= 0",

    "CREATE TABLE tokens (id @key PRIMARY KEY, hash @blob NOT NULL UNIQUE, account TEXT NOT NULL, "
    "user_name TEXT NOT NULL, role TEXT NOT NULL, label TEXT NOT NULL, created_ms BIGINT NOT NULL, "
    "expires_ms BIGINT NOT NULL, revoked_ms BIGINT NOT NULL, last_used_ms BIGINT NOT NULL)",

    "CREATE TABLE audit (seq @key PRIMARY KEY, at_ms BIGINT NOT NULL, actor TEXT NOT NULL, "
    "account TEXT NOT NULL, source TEXT NOT NULL, verb TEXT NOT NULL, target TEXT NOT NULL, "
    "detail TEXT NOT NULL, hash @blob NOT NULL)",
    "CREATE INDEX audit_account ON audit (account, seq)",

    "CREATE TABLE idem (owner TEXT NOT NULL, key TEXT NOT NULL, at_ms BIGINT NOT NULL, "
    "digest @blob NOT NULL, answer TEXT NOT NULL, status BIGINT NOT NULL, "
    "PRIMARY KEY (owner, key))",
    "CREATE INDEX idem_at ON idem (at_ms)",

    "CREATE TABLE things (kind TEXT NOT NULL, name TEXT NOT NULL, version BIGINT NOT NULL, "
    "at_ms BIGINT NOT NULL, doc TEXT NOT NULL, PRIMARY KEY (kind, name))",
    NULL,
};

static const char *const version_2[] = {
    "ALTER TABLE jobs ADD COLUMN part_of BIGINT NOT NULL DEFAULT 0",
    /* The pieces of an array; costs a single job nothing. */
    "CREATE INDEX jobs_part ON jobs (part_of, id) WHERE part_of > 0",
    NULL,
};

static const char *const version_3[] = {
    "CREATE TABLE book (n @key PRIMARY KEY, account TEXT NOT NULL, seq BIGINT NOT NULL, "
    "at_ms BIGINT NOT NULL, period TEXT NOT NULL, job TEXT NOT NULL, data TEXT NOT NULL, "
    "chain @blob NOT NULL)",
    /* An account's book in order; also that no place in it is taken twice. */
    "CREATE UNIQUE INDEX book_account ON book (account, seq)",
    /* What a job cost; other entries cost nothing here. */
    "CREATE INDEX book_job ON book (job, n) WHERE job <> ''",

    "CREATE TABLE checkpoints (n @key PRIMARY KEY, at_ms BIGINT NOT NULL, data TEXT NOT NULL)",
    NULL,
};

static const char *const version_4[] = {
    /* What the documents of an array's pieces have in common, by the array's id: it is read in front
     * of a piece's own part, jobs.spec. Pieces from before have their whole documents there. */
    "CREATE TABLE arrays (id @key PRIMARY KEY, head TEXT NOT NULL)",
    NULL,
};

/* Under which accounts a row stands, one column for each level: the serial of the account there, 0 below its own. What an
 * account and all below it have is one range, (inK, id), however many they are. An index costs only rows that deep. */
#define STANDS(table)                                                     \
    "ALTER TABLE " table " ADD COLUMN in1 BIGINT NOT NULL DEFAULT 0",     \
        "ALTER TABLE " table " ADD COLUMN in2 BIGINT NOT NULL DEFAULT 0", \
        "ALTER TABLE " table " ADD COLUMN in3 BIGINT NOT NULL DEFAULT 0", \
        "ALTER TABLE " table " ADD COLUMN in4 BIGINT NOT NULL DEFAULT 0", \
        "ALTER TABLE " table " ADD COLUMN in5 BIGINT NOT NULL DEFAULT 0", \
        "ALTER TABLE " table " ADD COLUMN in6 BIGINT NOT NULL DEFAULT 0", \
        "ALTER TABLE " table " ADD COLUMN in7 BIGINT NOT NULL DEFAULT 0", \
        "ALTER TABLE " table " ADD COLUMN in8 BIGINT NOT NULL DEFAULT 0"

#define RANGES(table, key)                                                      \
    "CREATE INDEX " table "_in1 ON " table " (in1, " key ") WHERE in1 > 0",     \
        "CREATE INDEX " table "_in2 ON " table " (in2, " key ") WHERE in2 > 0", \
        "CREATE INDEX " table "_in3 ON " table " (in3, " key ") WHERE in3 > 0", \
        "CREATE INDEX " table "_in4 ON " table " (in4, " key ") WHERE in4 > 0", \
        "CREATE INDEX " table "_in5 ON " table " (in5, " key ") WHERE in5 > 0", \
        "CREATE INDEX " table "_in6 ON " table " (in6, " key ") WHERE in6 > 0", \
        "CREATE INDEX " table "_in7 ON " table " (in7, " key ") WHERE in7 > 0", \
        "CREATE INDEX " table "_in8 ON " table " (in8, " key ") WHERE in8 > 0"

/* And of jobs that are not over: a few beside all there were. */
#define LIVE(table, key)                                                                         \
    "CREATE INDEX " table "_live1 ON " table " (in1, " key ") WHERE in1 > 0 AND end_ms < 0",     \
        "CREATE INDEX " table "_live2 ON " table " (in2, " key ") WHERE in2 > 0 AND end_ms < 0", \
        "CREATE INDEX " table "_live3 ON " table " (in3, " key ") WHERE in3 > 0 AND end_ms < 0", \
        "CREATE INDEX " table "_live4 ON " table " (in4, " key ") WHERE in4 > 0 AND end_ms < 0", \
        "CREATE INDEX " table "_live5 ON " table " (in5, " key ") WHERE in5 > 0 AND end_ms < 0", \
        "CREATE INDEX " table "_live6 ON " table " (in6, " key ") WHERE in6 > 0 AND end_ms < 0", \
        "CREATE INDEX " table "_live7 ON " table " (in7, " key ") WHERE in7 > 0 AND end_ms < 0", \
        "CREATE INDEX " table "_live8 ON " table " (in8, " key ") WHERE in8 > 0 AND end_ms < 0"

static const char *const version_5[] = {
    STANDS("jobs"),         STANDS("audit"),    RANGES("jobs", "id"),
    RANGES("audit", "seq"), LIVE("jobs", "id"), NULL,
};

static const char *const version_6[] = {
    /* Figures over time (series/series.h). In the order in which a chart reads them: one part, from then till then. */
    "CREATE TABLE series (width_ms BIGINT NOT NULL, kind BIGINT NOT NULL, part BIGINT NOT NULL, "
    "at_ms BIGINT NOT NULL, data @blob NOT NULL, PRIMARY KEY (width_ms, kind, part, at_ms))",
    NULL,
};

static const st_migration migrations[] = {
    {1, version_1}, {2, version_2}, {3, version_3}, {4, version_4}, {5, version_5}, {6, version_6},
};

const st_migration *const st_migrations = migrations;
const size_t st_nmigrations = ST_ARRAY_LEN(migrations);

int st_store_schema(st_store *store, int64_t *ret_version, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *a = st_arena_new();
    const char *text;
    char *end;
    long long version;
    int r = st_store_meta_get(store, SCHEMA_KEY, a, &text, err);

    if (r == -ST_ENOENT) {
        *ret_version = 0;
        return 0;
    }
    if (r < 0)
        return r;
    version = strtoll(text, &end, 10);
    if (*end || end == text || version < 1)
        return st_fail(err, ST_ECORRUPT,
                       "store %s is damaged (its schema has version \"%s\"); restore the last "
                       "backup",
                       store->path, text);
    *ret_version = version;
    return 0;
}

static int put_version(st_store *store, int64_t version, st_err *err)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)version);
    return st_store_meta_put(store, SCHEMA_KEY, text, err);
}

static int steps(st_store *store, const st_migration *m, st_err *err)
{
    for (size_t i = 0; m->steps[i]; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf sql = {0};
        int r;

        st_shape_expand(store->driver, NULL, m->steps[i], &sql);
        r = store->driver->exec(store->db, st_strbuf_str(&sql), err);
        if (r < 0)
            return r;
    }
    return put_version(store, m->version, err);
}

static int migrate_one(st_store *store, const st_migration *m, st_err *err)
{
    int r = st_store_begin(store, err);

    if (r < 0)
        return r;
    r = st_sql_end(store, true, steps(store, m, err), err);
    if (r < 0 && err)
        st_fail_prefix(err, "bringing the schema to version %lld: ", (long long)m->version);
    return r;
}

static int refuse_newer(const st_store *store, int64_t version, int64_t newest, st_err *err)
{
    return st_fail(err, ST_ESTATE,
                   "store %s was written by a newer stintd (schema %lld, this one knows %lld); "
                   "run that version, or restore a backup from before",
                   store->path, (long long)version, (long long)newest);
}

int st_schema_migrate(st_store *store, const st_migration *list, size_t n, st_err *err)
{
    int64_t version;
    int r = store->driver->exec(
        store->db, "CREATE TABLE IF NOT EXISTS meta (k TEXT NOT NULL PRIMARY KEY, v TEXT NOT NULL)",
        err);

    if (r == 0)
        r = st_store_schema(store, &version, err);
    if (r < 0)
        return r;
    if (version > list[n - 1].version)
        return refuse_newer(store, version, list[n - 1].version, err);
    for (size_t i = 0; i < n; i++) {
        ST_ASSERT(list[i].version == (int64_t)i + 1);
        if (list[i].version <= version)
            continue;
        r = migrate_one(store, &list[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

int st_schema_require(st_store *store, const st_migration *list, size_t n, st_err *err)
{
    int64_t version, newest = list[n - 1].version;
    int r = st_store_schema(store, &version, err);

    if (r < 0)
        return r;
    if (version > newest)
        return refuse_newer(store, version, newest, err);
    if (version < newest)
        return st_fail(err, ST_ESTATE,
                       "store %s has schema %lld, this stintd needs %lld; start stintd once to "
                       "bring it up to date",
                       store->path, (long long)version, (long long)newest);
    return 0;
}
