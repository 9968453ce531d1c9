/*
 * Reading expectations: every key of an item becomes one expectation, or one
 * per thing listed, with its value in the one way of writing that
 * scenario_check.c uses as well.
 */
#include "scenario/expect.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "scenario/read.h"

#define KEYS_MAX 64

static const char *const state_words[] = {
#define X(id, name, about) name,
    ST_JOB_STATE_TABLE(X)
#undef X
        "refused",
    NULL,
};
static const char *const class_words[] = {"none", "guaranteed", "burstable", "booked", NULL};
static const char *const node_state_words[] = {
#define X(id, name, about) name,
    ST_NODE_STATE_TABLE(X)
#undef X
        NULL,
};
const char *const st_scn_why_words[] = {
#define X(id, name, blocks, means, remedy) name,
    ST_REASON_TABLE(X)
#undef X
        NULL,
};
const char *const st_scn_dim_words[] = {
#define X(id, name) name,
    ST_DIM_TABLE(X)
#undef X
        NULL,
};
void st_scn_list_add(st_strbuf *out, const char *item)
{
    st_strbuf_addf(out, "%s%s", out->n > 0 ? ", " : "", item);
}

void st_scn_devices_text(uint32_t devs, st_strbuf *out)
{
    bool first = true;

    for (int d = 0; d < ST_DEVS_MAX; d++) {
        if (devs >> d & 1) {
            st_strbuf_addf(out, "%s%d", first ? "" : " ", d);
            first = false;
        }
    }
}

/* ---- values that are one scalar -------------------------------------------------------- */

static int read_word(const st_scenario *s, const st_doc_node *node, const char *const *words,
                     st_strbuf *out, st_err *err)
{
    int i, r = st_field_word(s->doc, node, words, &i, err);

    if (r == 0)
        st_strbuf_add(out, words[i]);
    return r;
}

static bool is_word(const st_doc_node *node, const char *word)
{
    return node->kind == ST_DOC_SCALAR && strcmp(node->value, word) == 0;
}

static int read_number(const st_scenario *s, const st_doc_node *node, st_expect_form form,
                       st_strbuf *out, st_err *err)
{
    char buf[ST_FMT_MAX];
    bool flag = false;
    int64_t n = 0;
    int r = 0;

    if (form == ST_X_COUNT) {
        r = st_doc_i64(s->doc, node, 0, ST_QTY_MAX, &n, err);
        st_strbuf_addf(out, "%lld", (long long)n);
    } else if (form == ST_X_MILLI) {
        r = st_doc_milli(s->doc, node, 0, ST_QTY_MAX, &n, err);
        st_strbuf_add(out, st_fmt_milli(buf, n));
    } else if (form == ST_X_BOOL) {
        r = st_doc_bool(s->doc, node, &flag, err);
        st_strbuf_add(out, flag ? "true" : "false");
    } else if (is_word(node, "never")) {
        st_strbuf_add(out, "never");
    } else {
        r = st_doc_duration_ms(s->doc, node, &n, err);
        st_strbuf_add(out, st_fmt_duration(buf, n));
    }
    return r;
}

static int read_named(st_scenario *s, const st_doc_node *node, st_expect_form form, st_strbuf *out,
                      st_err *err)
{
    int32_t id = 0;
    int64_t job = 0;
    int r = 0;

    if (form == ST_X_JOB && is_word(node, "none"))
        r = 0;
    else if (form == ST_X_JOB)
        r = st_scn_find_job(s, node, &job, err);
    else if (form == ST_X_NODE)
        r = st_scn_find_node(s, node, &id, err);
    else
        r = st_scn_find_type(s, node, &id, err);
    if (r == 0)
        st_strbuf_add(out, node->value);
    return r;
}

/* ---- lists ----------------------------------------------------------------------------- */

static int by_number(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

    return (a > b) - (a < b);
}

typedef ST_VEC(int64_t) number_list;

static void numbers_done(number_list *list)
{
    st_vec_free(list);
}

static int read_item(const st_scenario *s, const st_doc_node *n, st_expect_form form, int64_t *ret,
                     st_err *err)
{
    int32_t node = 0;
    int r;

    switch (form) {
    case ST_X_NODES:
        r = st_scn_find_node(s, n, &node, err);
        *ret = node;
        return r;
    case ST_X_JOBS:
    case ST_X_JOB_SET:
        return st_scn_find_job(s, n, ret, err);
    case ST_X_COUNTS:
        return st_doc_i64(s->doc, n, 0, ST_QTY_MAX, ret, err);
    default:
        ST_ASSERT(form == ST_X_REASON_SET);
        int word = 0;

        r = st_field_word(s->doc, n, st_scn_why_words, &word, err);
        *ret = word;
        return r;
    }
}

static void write_item(const st_scenario *s, int64_t item, st_expect_form form, st_strbuf *out)
{
    char buf[ST_FMT_MAX];

    if (form == ST_X_NODES) {
        st_scn_list_add(out, s->nodes.v[item].spec.name);
    } else if (form == ST_X_COUNTS) {
        snprintf(buf, sizeof(buf), "%lld", (long long)item);
        st_scn_list_add(out, buf);
    } else if (form == ST_X_REASON_SET) {
        st_scn_list_add(out, st_scn_why_words[item]);
    } else {
        st_scn_list_add(out, s->jobs.v[item].spec.name);
    }
}

static int read_list(const st_scenario *s, const st_doc_node *node, st_expect_form form,
                     st_strbuf *out, st_err *err)
{
    ST_CLEANUP(numbers_done) number_list list = {0};

    for (const st_doc_node *n = NULL; (n = st_field_each(node, n));) {
        int64_t item;
        int r = read_item(s, n, form, &item, err);

        if (r < 0)
            return r;
        st_vec_push(&list, item);
    }
    if (form != ST_X_JOBS && list.n > 1)
        qsort(list.v, list.n, sizeof(*list.v), by_number);
    for (size_t i = 0; i < list.n; i++)
        write_item(s, list.v[i], form, out);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

typedef ST_VEC(const char *) name_list;

static void names_done(name_list *list)
{
    st_vec_free(list);
}

static int read_accounts(const st_scenario *s, const st_doc_node *node, st_strbuf *out, st_err *err)
{
    ST_CLEANUP(names_done) name_list list = {0};

    for (const st_doc_node *n = NULL; (n = st_field_each(node, n));) {
        const char *name;
        int r = st_scn_find_account(s, n, &name, err);

        if (r < 0)
            return r;
        st_vec_push(&list, name);
    }
    if (list.n > 1)
        qsort(list.v, list.n, sizeof(*list.v), by_text);
    for (size_t i = 0; i < list.n; i++)
        st_scn_list_add(out, list.v[i]);
    return 0;
}

static int read_device_list(const st_scenario *s, const st_doc_node *node, st_strbuf *out,
                            st_err *err)
{
    uint32_t devs = 0;

    for (const st_doc_node *n = NULL; (n = st_field_each(node, n));) {
        int64_t d;
        int r = st_doc_i64(s->doc, n, 0, ST_DEVS_MAX - 1, &d, err);

        if (r < 0)
            return r;
        devs |= 1u << d;
    }
    st_scn_devices_text(devs, out);
    return 0;
}

/* {n1: [0, 1], n2: [4]} becomes "n1: 0 1, n2: 4", in the order of the fleet. */
static int read_devices(const st_scenario *s, const st_doc_node *node, st_strbuf *out, st_err *err)
{
    ST_CLEANUP(numbers_done) number_list ids = {0};

    if (node->kind != ST_DOC_MAP)
        return read_device_list(s, node, out, err);
    for (const st_doc_node *n = node->child; n; n = n->next) {
        const st_doc_node key = {.kind = ST_DOC_SCALAR, .value = n->key, .line = n->key_line};
        int32_t id;
        int r = st_scn_find_node(s, &key, &id, err);

        if (r < 0)
            return r;
        st_vec_push(&ids, id);
    }
    if (ids.n > 1)
        qsort(ids.v, ids.n, sizeof(*ids.v), by_number);
    for (size_t i = 0; i < ids.n; i++) {
        const char *name = s->nodes.v[ids.v[i]].spec.name;
        int r;

        st_strbuf_addf(out, "%s%s: ", i > 0 ? ", " : "", name);
        r = read_device_list(s, st_doc_get(node, name), out, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- keys that are several expectations ------------------------------------------------ */

static void push(st_scenario *s, st_scn_expect e, const st_strbuf *want)
{
    e.want = st_arena_strdup(s->arena, st_strbuf_str(want));
    st_vec_push(&s->expects, e);
}

static int read_amount(st_scenario *s, const st_doc_node *n, st_scn_expect e, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf want = {0};
    char buf[ST_FMT_MAX];
    int64_t amount = 0;
    int r = 0;

    e.line = n->line;
    e.type = -1;
    for (e.dim = 0; e.dim < ST_NDIMS && strcmp(st_scn_dim_words[e.dim], n->key) != 0;)
        e.dim++;
    if (e.dim == ST_NDIMS) {
        const st_doc_node key = {.kind = ST_DOC_SCALAR, .value = n->key, .line = n->key_line};

        e.dim = ST_GPU;
        r = st_scn_find_type(s, &key, &e.type, err);
    }
    if (r < 0)
        return r;
    if (e.dim == ST_RAM) {
        r = st_doc_mib(s->doc, n, &amount, err);
        st_strbuf_add(&want, st_fmt_mib(buf, amount));
    } else {
        r = st_doc_milli(s->doc, n, 0, ST_QTY_MAX, &amount, err);
        st_strbuf_add(&want, st_fmt_milli(buf, amount));
    }
    if (r == 0)
        push(s, e, &want);
    return r;
}

static int read_amounts(st_scenario *s, const st_doc_node *map, st_scn_expect e, st_err *err)
{
    int r = st_doc_expect(s->doc, map, ST_DOC_MAP, err);

    for (const st_doc_node *n = map->child; r == 0 && n; n = n->next)
        r = read_amount(s, n, e, err);
    return r;
}

static int read_reasons(st_scenario *s, const st_doc_node *node, st_scn_expect e, st_err *err)
{
    for (const st_doc_node *n = NULL; (n = st_field_each(node, n));) {
        ST_CLEANUP(st_strbuf_done) st_strbuf want = {0};
        int r = st_field_word(s->doc, n, st_scn_why_words, &e.dim, err);

        if (r < 0)
            return r;
        st_strbuf_add(&want, st_scn_why_words[e.dim]);
        push(s, e, &want);
    }
    return 0;
}

static int read_value(st_scenario *s, const st_doc_node *node, const st_expect_row *row,
                      st_scn_expect e, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf want = {0};
    int r = 0;

    e.row = row;
    e.line = node->line;
    switch (row->form) {
    case ST_X_STATE:
        r = read_word(s, node, state_words, &want, err);
        break;
    case ST_X_CLASS:
        r = read_word(s, node, class_words, &want, err);
        break;
    case ST_X_NODE_STATE:
        r = read_word(s, node, node_state_words, &want, err);
        break;
    case ST_X_BOOL:
    case ST_X_COUNT:
    case ST_X_MILLI:
    case ST_X_DURATION:
        r = read_number(s, node, row->form, &want, err);
        break;
    case ST_X_NODE:
    case ST_X_TYPE:
    case ST_X_JOB:
        r = read_named(s, node, row->form, &want, err);
        break;
    case ST_X_NODES:
    case ST_X_JOBS:
    case ST_X_JOB_SET:
    case ST_X_COUNTS:
    case ST_X_REASON_SET:
        r = read_list(s, node, row->form, &want, err);
        break;
    case ST_X_ACCOUNT_SET:
        r = read_accounts(s, node, &want, err);
        break;
    case ST_X_DEVICES:
        r = read_devices(s, node, &want, err);
        break;
    case ST_X_REASON:
        r = st_scn_read_reason(s, node, &e, &want, err);
        break;
    case ST_X_AMOUNTS:
        return read_amounts(s, node, e, err);
    case ST_X_REASONS:
        return read_reasons(s, node, e, err);
    }
    if (r == 0)
        push(s, e, &want);
    return r;
}

/* Everything in the item but its subject. */
static int read_rows(st_scenario *s, const st_doc_node *map, const char *subject,
                     const st_expect_row *rows, st_scn_expect e, st_err *err)
{
    const char *keys[KEYS_MAX + 1] = {subject};
    int n = subject ? 1 : 0, r;

    for (int i = 0; rows[i].key; i++) {
        ST_ASSERT(n < KEYS_MAX);
        keys[n++] = rows[i].key;
    }
    r = st_doc_check_keys(s->doc, map, keys, err);
    if (r == 0 && map->nchild <= (subject ? 1 : 0))
        r = st_doc_fail(s->doc, map, err, ST_EINVAL, "nothing is expected here");
    for (const st_doc_node *node = map->child; r == 0 && node; node = node->next) {
        const st_expect_row *row = rows;

        if (subject && strcmp(node->key, subject) == 0)
            continue;
        while (strcmp(row->key, node->key) != 0)
            row++;
        r = read_value(s, node, row, e, err);
    }
    return r;
}

int st_scn_read_expect(st_scenario *s, const st_doc_node *map, st_err *err)
{
    st_scn_expect e = {.job = -1, .node = -1, .type = -1, .line = map->line};
    const st_doc_node *subject;
    int r = st_doc_expect(s->doc, map, ST_DOC_MAP, err);

    if (r < 0)
        return r;
    subject = st_doc_get(map, "job");
    if (subject) {
        r = st_scn_find_job(s, subject, &e.job, err);
        return r < 0 ? r : read_rows(s, map, "job", st_expect_job, e, err);
    }
    subject = st_doc_get(map, "account");
    if (subject) {
        r = st_scn_find_account(s, subject, &e.account, err);
        return r < 0 ? r : read_rows(s, map, "account", st_expect_account, e, err);
    }
    subject = st_doc_get(map, "node");
    if (subject) {
        r = st_scn_find_node(s, subject, &e.node, err);
        return r < 0 ? r : read_rows(s, map, "node", st_expect_node, e, err);
    }
    return read_rows(s, map, NULL, st_expect_scene, e, err);
}
