/*
 * Every statement of the store, once: its name, the shape its @cols (as read), @names (as written) and @vals come from, the kinds
 * of its parameters (i number, t text, b bytes; "*" the shape's fields in order), and its text.
 * Statements are prepared when first used and live as long as the connection.
 *
 * Adding one: a row here and a helper in the noun's file. See store/driver.h for what may be in the
 * text; what cannot be a fixed text is built in list.c.
 */
#ifndef ST_STORE_SQL_H
#define ST_STORE_SQL_H

#include "store/driver.h"
#include "store/shape.h"

#define ST_SQL_TABLE(X)                                                                           \
    X(ST_SQL_META_PUT, NULL, "tt",                                                                \
      "INSERT INTO meta (k, v) VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = excluded.v")     \
    X(ST_SQL_META_NEW, NULL, "tt",                                                                \
      "INSERT INTO meta (k, v) VALUES ($1, $2) ON CONFLICT DO NOTHING")                           \
    X(ST_SQL_META_SWAP, NULL, "ttt", "UPDATE meta SET v = $3 WHERE k = $1 AND v = $2")            \
    X(ST_SQL_META_GET, NULL, "t", "SELECT v FROM meta WHERE k = $1")                              \
    X(ST_SQL_META_ALL, NULL, "", "SELECT k, v FROM meta ORDER BY k")                              \
                                                                                                  \
    X(ST_SQL_LOG_APPEND, &st_shape_log, "*",                                                      \
      "INSERT INTO log (@names) SELECT @vals WHERE $1 = 1 + (SELECT MAX(s) FROM "                 \
      "(SELECT COALESCE(MAX(seq), 0) AS s FROM log UNION ALL "                                    \
      "SELECT COALESCE(MAX(seq), 0) FROM snap) AS ends)")                                         \
    X(ST_SQL_LOG_READ, &st_shape_log, "i", "SELECT @cols FROM log WHERE seq >= $1 ORDER BY seq")  \
    X(ST_SQL_LOG_LAST, NULL, "", "SELECT COALESCE(MAX(seq), 0) FROM log")                         \
    X(ST_SQL_LOG_FIRST, NULL, "", "SELECT COALESCE(MIN(seq), 0) FROM log")                        \
    X(ST_SQL_LOG_PRUNE, NULL, "i", "DELETE FROM log WHERE seq <= $1")                             \
                                                                                                  \
    X(ST_SQL_SNAP_PUT, &st_shape_snap, "*",                                                       \
      "INSERT INTO snap (@names) VALUES (@vals) ON CONFLICT (seq) DO UPDATE SET "                 \
      "at_ms = excluded.at_ms, version = excluded.version, data = excluded.data")                 \
    X(ST_SQL_SNAP_TRIM, NULL, "i",                                                                \
      "DELETE FROM snap WHERE seq < (SELECT MIN(seq) FROM "                                       \
      "(SELECT seq FROM snap ORDER BY seq DESC LIMIT 2) AS newest) AND "                          \
      "(seq < (SELECT COALESCE(MAX(seq), 0) FROM snap WHERE at_ms <= $1) OR "                     \
      "seq NOT IN (SELECT MIN(seq) FROM snap GROUP BY at_ms / CASE WHEN at_ms > "                 \
      "(SELECT MAX(at_ms) FROM snap) - 86400000 THEN 3600000 ELSE 21600000 END))")                \
    X(ST_SQL_SNAP_GET, &st_shape_snap, "i",                                                       \
      "SELECT @cols FROM snap WHERE seq <= $1 ORDER BY seq DESC LIMIT 1")                         \
    X(ST_SQL_SNAPS, &st_shape_snap, "", "SELECT @cols FROM snap ORDER BY seq")                    \
    X(ST_SQL_SNAP_FIRST, NULL, "", "SELECT COALESCE(MIN(seq), 0) FROM snap")                      \
    X(ST_SQL_SNAP_LAST, NULL, "", "SELECT COALESCE(MAX(seq), 0) FROM snap")                       \
    X(ST_SQL_SNAP_FIRST_MS, NULL, "",                                                             \
      "SELECT COALESCE(MAX(at_ms), -1) FROM snap WHERE seq = (SELECT MIN(seq) FROM snap)")        \
    X(ST_SQL_SNAP_UPTO_MS, NULL, "i", "SELECT COALESCE(MAX(seq), 0) FROM snap WHERE at_ms <= $1") \
    X(ST_SQL_LOG_FIRST_MS, NULL, "", "SELECT COALESCE(MAX(at_ms), -1) FROM log WHERE seq = 1")    \
                                                                                                  \
    X(ST_SQL_JOB_INSERT, &st_shape_job, "*",                                                      \
      "INSERT INTO jobs (@names) VALUES (@vals) ON CONFLICT DO NOTHING")                          \
    X(ST_SQL_JOB_UPDATE, NULL, "itttiiiiiiitt",                                                   \
      "UPDATE jobs SET name = $2, state = $3, class_name = $4, start_ms = $5, end_ms = $6, "      \
      "priority = $7, gpu_m = $8, preemptions = $9, lost = $10, exit_code = $11, reason = $12, "  \
      "result = $13 WHERE id = $1")                                                               \
    X(ST_SQL_JOB_PUT_SPEC, NULL, "it", "UPDATE jobs SET spec = $2 WHERE id = $1")                 \
    X(ST_SQL_JOBS_REFILE, NULL, "tt", "UPDATE jobs SET account = $2 WHERE account = $1")          \
    X(ST_SQL_JOBS_STAND, NULL, "tiiiiiiii",                                                       \
      "UPDATE jobs SET in1 = $2, in2 = $3, in3 = $4, in4 = $5, in5 = $6, in6 = $7, in7 = $8, "    \
      "in8 = $9 WHERE account = $1")                                                              \
    X(ST_SQL_JOB_GET, &st_shape_job, "i", "SELECT @cols FROM jobs WHERE id = $1")                 \
    X(ST_SQL_JOBS_PRUNE, NULL, "ii",                                                              \
      "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE end_ms >= 0 AND end_ms < $1 "      \
      "ORDER BY end_ms LIMIT $2) AND id < (SELECT MAX(id) FROM jobs)")                            \
    X(ST_SQL_ARRAY_PUT, NULL, "it",                                                               \
      "INSERT INTO arrays (id, head) VALUES ($1, $2) "                                            \
      "ON CONFLICT (id) DO UPDATE SET head = excluded.head")                                      \
    X(ST_SQL_ARRAY_GET, NULL, "i", "SELECT head FROM arrays WHERE id = $1")                       \
    X(ST_SQL_ARRAYS_PRUNE, NULL, "",                                                              \
      "DELETE FROM arrays WHERE NOT EXISTS "                                                      \
      "(SELECT 1 FROM jobs WHERE part_of > 0 AND part_of = arrays.id)")                           \
    X(ST_SQL_JOBS_STATES, NULL, "", "SELECT state, COUNT(*) FROM jobs GROUP BY state")            \
    X(ST_SQL_JOBS_ALL, &st_shape_job, "", "SELECT @cols FROM jobs ORDER BY id")                   \
                                                                                                  \
    X(ST_SQL_TOKEN_INSERT, &st_shape_token, "*",                                                  \
      "INSERT INTO tokens (@names) VALUES (@vals) ON CONFLICT DO NOTHING")                        \
    X(ST_SQL_TOKEN_REVOKE, NULL, "ii",                                                            \
      "UPDATE tokens SET revoked_ms = $2 WHERE id = $1 AND revoked_ms < 0")                       \
    X(ST_SQL_TOKENS_REFILE, NULL, "tti",                                                          \
      "UPDATE tokens SET account = $2 WHERE account = $1 AND revoked_ms >= 0 AND "                \
      "created_ms <= $3")                                                                         \
    X(ST_SQL_TOKEN_REMOVE, NULL, "i", "DELETE FROM tokens WHERE id = $1")                         \
    X(ST_SQL_TOKEN_USED, NULL, "ii", "UPDATE tokens SET last_used_ms = $2 WHERE id = $1")         \
    X(ST_SQL_TOKEN_GET, &st_shape_token, "i", "SELECT @cols FROM tokens WHERE id = $1")           \
    X(ST_SQL_TOKENS, &st_shape_token, "", "SELECT @cols FROM tokens ORDER BY id")                 \
                                                                                                  \
    X(ST_SQL_AUDIT_APPEND, &st_shape_audit, "*",                                                  \
      "INSERT INTO audit (@names) VALUES (@vals) ON CONFLICT DO NOTHING")                         \
    X(ST_SQL_AUDIT_ALL, &st_shape_audit, "", "SELECT @cols FROM audit ORDER BY seq")              \
    X(ST_SQL_AUDIT_STAND, NULL, "tiiiiiiiiii",                                                    \
      "UPDATE audit SET in1 = $4, in2 = $5, in3 = $6, in4 = $7, in5 = $8, in6 = $9, in7 = $10, "  \
      "in8 = $11 WHERE account = $1 AND seq > $2 AND seq <= $3")                                  \
    X(ST_SQL_AUDIT_GET, &st_shape_audit, "i", "SELECT @cols FROM audit WHERE seq = $1")           \
                                                                                                  \
    X(ST_SQL_IDEM_GET, &st_shape_idem, "tt",                                                      \
      "SELECT @cols FROM idem WHERE owner = $1 AND key = $2")                                     \
    X(ST_SQL_IDEM_PUT, &st_shape_idem, "*",                                                       \
      "INSERT INTO idem (@names) VALUES (@vals) ON CONFLICT DO NOTHING")                          \
    X(ST_SQL_IDEM_MORE, NULL, "ttt", "UPDATE idem SET answer = $3 WHERE owner = $1 AND key = $2") \
    X(ST_SQL_IDEM_DROP, NULL, "tt", "DELETE FROM idem WHERE owner = $1 AND key = $2")             \
    X(ST_SQL_IDEM_EXPIRE, NULL, "i", "DELETE FROM idem WHERE at_ms < $1")                         \
    X(ST_SQL_IDEM_OWNERS, NULL, "", "SELECT owner, COUNT(*) FROM idem GROUP BY owner")            \
    X(ST_SQL_IDEM_ALL, &st_shape_idem, "", "SELECT @cols FROM idem ORDER BY owner, key")          \
                                                                                                  \
    X(ST_SQL_DOCUMENT_GET, &st_shape_document, "tt",                                              \
      "SELECT @cols FROM things WHERE kind = $1 AND name = $2")                                   \
    X(ST_SQL_DOCUMENT_NEW, &st_shape_document, "*",                                               \
      "INSERT INTO things (@names) VALUES (@vals) ON CONFLICT DO NOTHING")                        \
    X(ST_SQL_DOCUMENT_PUT, NULL, "ttiit",                                                         \
      "UPDATE things SET version = version + 1, at_ms = $4, doc = $5 "                            \
      "WHERE kind = $1 AND name = $2 AND version = $3")                                           \
    X(ST_SQL_DOCUMENT_DELETE, NULL, "tti",                                                        \
      "DELETE FROM things WHERE kind = $1 AND name = $2 AND version = $3")                        \
    X(ST_SQL_DOCUMENTS_OF, &st_shape_document, "t",                                               \
      "SELECT @cols FROM things WHERE kind = $1 ORDER BY name")                                   \
    X(ST_SQL_DOCUMENTS, &st_shape_document, "", "SELECT @cols FROM things ORDER BY kind, name")   \
                                                                                                  \
    X(ST_SQL_BOOK_APPEND, &st_shape_book, "*",                                                    \
      "INSERT INTO book (@names) VALUES (@vals) ON CONFLICT DO NOTHING")                          \
    X(ST_SQL_BOOK_LAST, NULL, "", "SELECT COALESCE(MAX(n), 0) FROM book")                         \
    X(ST_SQL_BOOK_READ, &st_shape_book, "iii",                                                    \
      "SELECT @cols FROM book WHERE n >= $1 AND n <= $2 ORDER BY n LIMIT $3")                     \
    X(ST_SQL_BOOK_OF, &st_shape_book, "tiii",                                                     \
      "SELECT @cols FROM book WHERE account = $1 AND seq >= $2 AND seq <= $3 ORDER BY seq "       \
      "LIMIT $4")                                                                                 \
    X(ST_SQL_BOOK_OF_JOB, &st_shape_book, "t",                                                    \
      "SELECT @cols FROM book WHERE job = $1 AND job <> '' ORDER BY n")                           \
    X(ST_SQL_CHECKPOINT_PUT, &st_shape_checkpoint, "*",                                           \
      "INSERT INTO checkpoints (@names) VALUES (@vals) ON CONFLICT (n) DO UPDATE SET "            \
      "at_ms = excluded.at_ms, data = excluded.data")                                             \
    X(ST_SQL_CHECKPOINT_LAST, &st_shape_checkpoint, "",                                           \
      "SELECT @cols FROM checkpoints ORDER BY n DESC LIMIT 1")                                    \
    X(ST_SQL_CHECKPOINTS, &st_shape_checkpoint, "i",                                              \
      "SELECT @cols FROM checkpoints WHERE n >= $1 ORDER BY n")                                   \
                                                                                                  \
    X(ST_SQL_SERIES_PUT, &st_shape_series, "*",                                                   \
      "INSERT INTO series (@names) VALUES (@vals) ON CONFLICT (width_ms, kind, part, at_ms) "     \
      "DO UPDATE SET data = excluded.data")                                                       \
    X(ST_SQL_SERIES_READ, &st_shape_series, "iiiii",                                              \
      "SELECT @cols FROM series WHERE width_ms = $1 AND kind = $2 AND part = $3 AND at_ms >= $4 " \
      "AND at_ms < $5 ORDER BY at_ms")                                                            \
    X(ST_SQL_SERIES_PARTS, NULL, "ii",                                                            \
      "SELECT COALESCE(MAX(part) + 1, 0) FROM series WHERE width_ms = $1 AND kind = $2")          \
    X(ST_SQL_SERIES_WIDTH, NULL, "i",                                                             \
      "SELECT COALESCE(MIN(width_ms), 0) FROM series WHERE width_ms > $1")                        \
    X(ST_SQL_SERIES_SPAN, NULL, "iii",                                                            \
      "SELECT COALESCE(MIN(at_ms), -1), COALESCE(MAX(at_ms), -1) FROM series "                    \
      "WHERE width_ms = $1 AND kind = $2 AND part = $3")                                          \
    X(ST_SQL_SERIES_PRUNE, NULL, "iiii",                                                          \
      "DELETE FROM series WHERE width_ms = $1 AND kind = $2 AND part = $3 AND at_ms < $4")

typedef enum st_sql_id {
#define ST_SQL_ENUM(id, shape, params, text) id,
    ST_SQL_TABLE(ST_SQL_ENUM)
#undef ST_SQL_ENUM
        ST_SQL_COUNT
} st_sql_id;

static inline ST_UNUSED st_val st_val_i64(int64_t v)
{
    return (st_val){.kind = ST_VAL_I64, .i64 = v};
}

st_val st_val_text(const char *s);

/* The parameters of a statement, as the two arguments that carry them. */
#define ST_PARAMS(...) \
    (const st_val[]){__VA_ARGS__}, sizeof((const st_val[]){__VA_ARGS__}) / sizeof(st_val)
#define ST_NO_PARAMS NULL, 0

/* Runs a statement that returns nothing; ret_changed (rows changed) may be NULL. */
int st_sql_run(st_store *store, st_sql_id id, const st_val *params, size_t n, int64_t *ret_changed,
               st_err *err);

/* The same with all of a row's fields as parameters. */
int st_sql_run_row(st_store *store, st_sql_id id, const void *row, int64_t *ret_changed,
                   st_err *err);

/* A statement that must change one row. 0: it did, or the commit will tell; 1: it did not, and the transaction cannot be
 * committed any more. So the caller says why, and goes on in the same way for drivers that tell later. */
int st_sql_one(st_store *store, st_sql_id id, const st_val *params, size_t n, st_err *err);
int st_sql_one_row(st_store *store, st_sql_id id, const void *row, st_err *err);

/* Calls fn for each row. */
int st_sql_query(st_store *store, st_sql_id id, const st_val *params, size_t n, st_row_fn fn,
                 void *ctx, st_err *err);

/* One row of the statement's shape, kept in the arena; 0 or 1, whether there was one. */
int st_sql_get(st_store *store, st_sql_id id, const st_val *params, size_t n, st_arena *a,
               void *ret, st_err *err);

/* One number, of a statement that always gives one. */
int st_sql_number(st_store *store, st_sql_id id, int64_t *ret, st_err *err);

/* A statement built while running; the caller finishes it. */
int st_sql_prepare(st_store *store, const char *sql, st_stmt **ret, st_err *err);
int st_sql_query_built(st_store *store, st_stmt *stmt, const st_val *params, size_t n, st_row_fn fn,
                       void *ctx, st_err *err);
void st_sql_finish(st_store *store, st_stmt *stmt);

/* The driver's function that finds a part of a text. */
const char *st_sql_position(const st_store *store);

/* 0 inside a transaction. */
int st_sql_may_write(const st_store *store, st_err *err);

/* Makes several statements one transaction: begins one unless the caller has. st_sql_end() commits
 * if r is 0, else rolls back, where own says that it was begun here; it returns r or the failure of
 * the commit. */
int st_sql_begin(st_store *store, bool *ret_own, st_err *err);
int st_sql_end(st_store *store, bool own, int r, st_err *err);

#endif
