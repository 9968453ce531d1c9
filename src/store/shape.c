/*
 * The columns of each noun and the way between rows and structs (store/shape.h).
 *
 * Adding a column: a migration in schema.c, the field in store.h, a row here.
 */
#include "store/shape.h"

#include <stddef.h>
#include <string.h>

#define READ_AS(type, member, what, expression)                      \
    {                                                                \
#member, ST_FIELD_##what, offsetof(type, member), expression \
    }
#define FIELD(type, member, what) READ_AS(type, member, what, NULL)
#define STANDS(type, level)                                                          \
    {                                                                                \
        "in" #level, ST_FIELD_I64, offsetof(type, stands.in) + 8 * (level - 1), NULL \
    }

/* A piece's document begins with what all pieces of its array share. */
#define WHOLE_SPEC "COALESCE((SELECT head FROM arrays WHERE arrays.id = part_of), '') || spec"

static const st_column log_fields[] = {
    FIELD(st_log_row, seq, I64),   FIELD(st_log_row, at_ms, I64), FIELD(st_log_row, version, TEXT),
    FIELD(st_log_row, data, BLOB), FIELD(st_log_row, hash, U64),
};

static const st_column snap_fields[] = {
    FIELD(st_snap_row, seq, I64),
    FIELD(st_snap_row, at_ms, I64),
    FIELD(st_snap_row, version, TEXT),
    FIELD(st_snap_row, data, BLOB),
};

static const st_column job_fields[] = {
    FIELD(st_job_row, id, I64),
    FIELD(st_job_row, account, TEXT),
    FIELD(st_job_row, user_name, TEXT),
    FIELD(st_job_row, name, TEXT),
    FIELD(st_job_row, state, TEXT),
    FIELD(st_job_row, class_name, TEXT),
    FIELD(st_job_row, submit_ms, I64),
    FIELD(st_job_row, start_ms, I64),
    FIELD(st_job_row, end_ms, I64),
    FIELD(st_job_row, priority, I64),
    FIELD(st_job_row, gpu_m, I64),
    FIELD(st_job_row, preemptions, I64),
    FIELD(st_job_row, lost, I64),
    FIELD(st_job_row, exit_code, I64),
    FIELD(st_job_row, reason, TEXT),
    READ_AS(st_job_row, spec, TEXT, WHOLE_SPEC),
    FIELD(st_job_row, result, TEXT),
    FIELD(st_job_row, part_of, I64),
    STANDS(st_job_row, 1),
    STANDS(st_job_row, 2),
    STANDS(st_job_row, 3),
    STANDS(st_job_row, 4),
    STANDS(st_job_row, 5),
    STANDS(st_job_row, 6),
    STANDS(st_job_row, 7),
    STANDS(st_job_row, 8),
};

static const st_column token_fields[] = {
    FIELD(st_token_row, id, I64),         FIELD(st_token_row, hash, BLOB),
    FIELD(st_token_row, account, TEXT),   FIELD(st_token_row, user_name, TEXT),
    FIELD(st_token_row, role, TEXT),      FIELD(st_token_row, label, TEXT),
    FIELD(st_token_row, created_ms, I64), FIELD(st_token_row, expires_ms, I64),
    FIELD(st_token_row, revoked_ms, I64), FIELD(st_token_row, last_used_ms, I64),
};

static const st_column audit_fields[] = {
    FIELD(st_audit_row, seq, I64),     FIELD(st_audit_row, at_ms, I64),
    FIELD(st_audit_row, actor, TEXT),  FIELD(st_audit_row, account, TEXT),
    FIELD(st_audit_row, source, TEXT), FIELD(st_audit_row, verb, TEXT),
    FIELD(st_audit_row, target, TEXT), FIELD(st_audit_row, detail, TEXT),
    FIELD(st_audit_row, hash, BLOB),   STANDS(st_audit_row, 1),
    STANDS(st_audit_row, 2),           STANDS(st_audit_row, 3),
    STANDS(st_audit_row, 4),           STANDS(st_audit_row, 5),
    STANDS(st_audit_row, 6),           STANDS(st_audit_row, 7),
    STANDS(st_audit_row, 8),
};

static const st_column idem_fields[] = {
    FIELD(st_idem_row, owner, TEXT),  FIELD(st_idem_row, key, TEXT),
    FIELD(st_idem_row, at_ms, I64),   FIELD(st_idem_row, digest, BLOB),
    FIELD(st_idem_row, answer, TEXT), FIELD(st_idem_row, status, I64),
};

static const st_column document_fields[] = {
    FIELD(st_document_row, kind, TEXT),   FIELD(st_document_row, name, TEXT),
    FIELD(st_document_row, version, I64), FIELD(st_document_row, at_ms, I64),
    FIELD(st_document_row, doc, TEXT),
};

static const st_column book_fields[] = {
    FIELD(st_book_row, n, I64),       FIELD(st_book_row, account, TEXT),
    FIELD(st_book_row, seq, I64),     FIELD(st_book_row, at_ms, I64),
    FIELD(st_book_row, period, TEXT), FIELD(st_book_row, job, TEXT),
    FIELD(st_book_row, data, TEXT),   FIELD(st_book_row, chain, BLOB),
};

static const st_column checkpoint_fields[] = {
    FIELD(st_checkpoint_row, n, I64),
    FIELD(st_checkpoint_row, at_ms, I64),
    FIELD(st_checkpoint_row, data, TEXT),
};

#define SHAPE(name, fields)                \
    {                                      \
        name, fields, ST_ARRAY_LEN(fields) \
    }

const st_row_shape st_shape_log = SHAPE("log", log_fields);
const st_row_shape st_shape_snap = SHAPE("snap", snap_fields);
const st_row_shape st_shape_job = SHAPE("jobs", job_fields);
const st_row_shape st_shape_token = SHAPE("tokens", token_fields);
const st_row_shape st_shape_audit = SHAPE("audit", audit_fields);
const st_row_shape st_shape_idem = SHAPE("idem", idem_fields);
const st_row_shape st_shape_document = SHAPE("things", document_fields);
const st_row_shape st_shape_book = SHAPE("book", book_fields);
const st_row_shape st_shape_checkpoint = SHAPE("checkpoints", checkpoint_fields);

static const st_column series_fields[] = {
    FIELD(st_series_blob, width_ms, I64), FIELD(st_series_blob, kind, I64),
    FIELD(st_series_blob, part, I64),     FIELD(st_series_blob, at_ms, I64),
    FIELD(st_series_blob, data, BLOB),
};
const st_row_shape st_shape_series = SHAPE("series", series_fields);

static void add_columns(const st_row_shape *shape, bool reading, st_strbuf *out)
{
    for (size_t i = 0; i < shape->n; i++) {
        const st_column *f = &shape->fields[i];

        st_strbuf_addf(out, "%s%s", i ? ", " : "", reading && f->read ? f->read : f->name);
    }
}

static void add_values(const st_row_shape *shape, st_strbuf *out)
{
    for (size_t i = 0; i < shape->n; i++)
        st_strbuf_addf(out, "%s$%zu", i ? ", " : "", i + 1);
}

void st_shape_expand(const st_driver *driver, const st_row_shape *shape, const char *sql,
                     st_strbuf *out)
{
    while (*sql) {
        size_t plain = strcspn(sql, "@");
        size_t word;

        st_strbuf_addn(out, sql, plain);
        sql += plain;
        if (!*sql)
            break;
        sql++;
        word = strspn(sql, "abcdefghijklmnopqrstuvwxyz");
        if (word == 4 && memcmp(sql, "cols", 4) == 0 && shape)
            add_columns(shape, true, out);
        else if (word == 5 && memcmp(sql, "names", 5) == 0 && shape)
            add_columns(shape, false, out);
        else if (word == 4 && memcmp(sql, "vals", 4) == 0 && shape)
            add_values(shape, out);
        else if (word == 4 && memcmp(sql, "blob", 4) == 0 && driver)
            st_strbuf_add(out, driver->blob_type);
        else if (word == 3 && memcmp(sql, "key", 3) == 0 && driver)
            st_strbuf_add(out, driver->key_type);
        else
            ST_ASSERT(!"a placeholder nobody knows");
        sql += word;
    }
}

void st_shape_params(const st_row_shape *shape, const void *row, st_val *vals)
{
    for (size_t i = 0; i < shape->n; i++) {
        const st_column *f = &shape->fields[i];
        const void *at = (const char *)row + f->at;
        const char *text;
        const st_bytes *bytes;

        switch (f->kind) {
        case ST_FIELD_I64:
        case ST_FIELD_U64:
            vals[i] = (st_val){.kind = ST_VAL_I64};
            memcpy(&vals[i].i64, at, sizeof(vals[i].i64));
            break;
        case ST_FIELD_TEXT:
            text = *(const char *const *)at;
            ST_ASSERT(text);
            vals[i] = (st_val){.kind = ST_VAL_TEXT, .p = text, .n = strlen(text)};
            break;
        case ST_FIELD_BLOB:
            bytes = at;
            ST_ASSERT(bytes->p || bytes->n == 0);
            vals[i] = (st_val){.kind = ST_VAL_BLOB, .p = bytes->p, .n = bytes->n};
            break;
        }
    }
}

static int read_field(const st_row_shape *shape, const st_column *f, const st_val *v, void *at,
                      st_err *err)
{
    static const st_val_kind kinds[] = {[ST_FIELD_I64] = ST_VAL_I64,
                                        [ST_FIELD_U64] = ST_VAL_I64,
                                        [ST_FIELD_TEXT] = ST_VAL_TEXT,
                                        [ST_FIELD_BLOB] = ST_VAL_BLOB};

    if (v->kind != kinds[f->kind])
        return st_fail(err, ST_ECORRUPT,
                       "table %s: column %s of a row is not of its type; the store is damaged, "
                       "restore the last backup",
                       shape->table, f->name);
    if (v->kind == ST_VAL_I64) {
        memcpy(at, &v->i64, sizeof(v->i64));
    } else if (v->kind == ST_VAL_BLOB) {
        *(st_bytes *)at = (st_bytes){.p = v->p, .n = v->n};
    } else {
        if (memchr(v->p, '\0', v->n))
            return st_fail(err, ST_ECORRUPT,
                           "table %s: column %s of a row has a NUL inside; the store is damaged, "
                           "restore the last backup",
                           shape->table, f->name);
        *(const char **)at = v->p;
    }
    return 0;
}

int st_shape_read(const st_row_shape *shape, const st_val *cols, size_t n, void *ret, st_err *err)
{
    ST_ASSERT(n == shape->n);
    for (size_t i = 0; i < n; i++) {
        int r =
            read_field(shape, &shape->fields[i], &cols[i], (char *)ret + shape->fields[i].at, err);
        if (r < 0)
            return r;
    }
    return 0;
}

void st_shape_keep(const st_row_shape *shape, void *row, st_arena *a)
{
    for (size_t i = 0; i < shape->n; i++) {
        void *at = (char *)row + shape->fields[i].at;

        if (shape->fields[i].kind == ST_FIELD_TEXT) {
            const char **text = at;
            *text = st_arena_strdup(a, *text);
        } else if (shape->fields[i].kind == ST_FIELD_BLOB) {
            st_bytes *bytes = at;
            void *copy = st_arena_alloc(a, bytes->n);
            if (bytes->n)
                memcpy(copy, bytes->p, bytes->n);
            bytes->p = copy;
        }
    }
}
