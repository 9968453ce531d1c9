/*
 * Jobs: submitting, reading, changing.
 */
#include <inttypes.h>
#include <jansson.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "api/work.h"
#include "base/mem.h"
#include "base/quote.h"

#define BATCH_MAX     10000
#define LIST_MAX      1000
#define SCAN_MAX      20000 /* jobs that one page looks at, if not all of them are wanted */
#define LIST_BYTES    ((size_t)4 << 20) /* a page with more than this ends early */
#define LARGE_BYTES   ((size_t)16 << 10)
#define CHECKED_BYTES ((size_t)64 << 10)
#define KEY_MAX       200

/* ---- submitting -------------------------------------------------------------------------- */

/* A submit on its way through the loop. */
typedef struct submission {
    st_cmd_submit submit;
    st_api *api;
    st_call *call;
    st_doc *doc; /* the specs point into it */
    st_arena *arena;
    st_expansion jobs;
    bool batch;
    bool large; /* reading and freeing it takes long */
} submission;

static void submission_free(submission *s)
{
    if (!s)
        return;
    st_expansion_done(&s->jobs);
    st_doc_free(s->doc);
    st_arena_free(s->arena);
    free(s);
}

static void drop_submission(void *s)
{
    submission_free(s);
}

static void add_item_json(const submission *s, const st_submit_item *item, st_strbuf *out)
{
    char id[ST_ID_TEXT];

    st_strbuf_addc(out, '{');
    if (item->code == 0) {
        st_control_id_text(s->api->control, item->id, id);
        st_out_text(out, "id", id);
    } else {
        st_out_text(out, "code", st_err_name(item->code));
        st_out_text(out, "detail", item->refusal ? item->refusal : "");
    }
    st_strbuf_addc(out, '}');
}

/* What a replay must read from the store: the job may be over by now. */
static int read_row(st_api *api, uint64_t id, st_arena *arena, st_job_row *ret, st_err *err)
{
    st_store *reader = st_api_reader(api, err);
    int r;

    if (!reader)
        return -err->code;
    r = st_store_job_get(reader, (int64_t)id, arena, ret, err);
    st_api_reader_back(api, reader);
    return r;
}

static void answer_one(submission *s, const st_job_row *row)
{
    st_strbuf out = {0};

    st_api_job_json(s->api, &s->submit.who, row, &out);
    st_call_reply_buf(s->call, s->submit.replayed ? 200 : 201, NULL, &out);
    st_strbuf_done(&out);
    submission_free(s);
}

static void answer_stored(submission *s)
{
    st_job_row row;
    st_err err;

    if (read_row(s->api, s->submit.items[0].id, s->arena, &row, &err) == 0) {
        answer_one(s, &row);
        return;
    }
    st_call_fail(s->call, &err);
    submission_free(s);
}

static void answer_many(submission *s)
{
    char array[ST_ID_TEXT];
    st_strbuf out = {0};

    st_strbuf_add(&out, "{\"jobs\":[");
    for (size_t i = 0; i < s->submit.n; i++) {
        if (i > 0)
            st_strbuf_addc(&out, ',');
        add_item_json(s, &s->submit.items[i], &out);
    }
    st_strbuf_add(&out, "]");
    if (!s->batch) { /* one document that became an array */
        st_control_id_text(s->api->control, s->submit.items[0].id, array);
        st_out_text(&out, "array", array);
    }
    st_strbuf_add(&out, "}");
    st_call_reply_buf(s->call, s->submit.replayed ? 200 : 201, NULL, &out);
    st_strbuf_done(&out);
    submission_free(s);
}

static void answer_aside(void *arg)
{
    submission *s = arg;

    if (s->batch || s->submit.n > 1)
        answer_many(s);
    else
        answer_stored(s);
}

/* In the loop, where everybody waits: an answer that grows with the request is made elsewhere, if there is room. */
static void submit_done(st_cmd *cmd, const st_err *err)
{
    submission *s = (submission *)cmd;
    st_job_row row;

    st_api_stamp_now(s->api, s->call);
    if (err) {
        st_call_fail(s->call, err);
        if (!s->large || !st_work_run(s->api->bodies, drop_submission, s))
            submission_free(s);
    } else if (s->large && st_work_run(s->api->bodies, answer_aside, s)) {
        return;
    } else if (s->submit.n == 1 && !s->batch &&
               st_control_row(s->api->control, s->submit.items[0].id, &row)) {
        answer_one(s, &row);
    } else {
        answer_aside(s);
    }
}

/* The jobs of a batch, if it is one. */
static int find_jobs(const submission *s, const st_doc_node **ret, st_err *err)
{
    static const char *const keys[] = {"jobs", NULL};
    const st_doc_node *root = st_doc_root(s->doc), *list;
    int r = st_doc_expect(s->doc, root, ST_DOC_MAP, err);

    if (r == 0)
        r = st_doc_check_keys(s->doc, root, keys, err);
    if (r == 0)
        r = st_doc_need(s->doc, root, "jobs", &list, err);
    if (r == 0)
        r = st_doc_expect(s->doc, list, ST_DOC_SEQ, err);
    if (r < 0)
        return r;
    if (list->nchild < 1 || list->nchild > BATCH_MAX)
        return st_doc_fail(s->doc, list, err, ST_ERANGE, "a batch has 1 to %d jobs, this has %d",
                           BATCH_MAX, list->nchild);
    *ret = list;
    return 0;
}

static int read_batch(submission *s, st_err *err)
{
    const st_doc_node *list;
    int r = find_jobs(s, &list, err);

    if (r < 0)
        return r;
    for (const st_doc_node *map = list->child; r == 0 && map; map = map->next) {
        st_err why = {0};

        if (st_expand(&s->jobs, s->doc, map, &why) < 0)
            st_vec_push(&s->jobs.items,
                        (st_submit_item){.code = why.code, .refusal = st_xstrdup(why.msg)});
        if (s->jobs.items.n > BATCH_MAX)
            r = st_doc_fail(s->doc, map, err, ST_ERANGE,
                            "with its arrays this makes more than %d jobs", BATCH_MAX);
    }
    return r;
}

static int read_submission(submission *s, st_err *err)
{
    size_t len;
    const char *body = st_call_body(s->call, &len);
    int r = s->doc ? 0 : st_call_doc(s->call, &s->doc, err);

    if (r < 0)
        return r;
    s->submit.key = st_call_idempotency_key(s->call);
    if (s->submit.key && (!s->submit.key[0] || strlen(s->submit.key) > KEY_MAX))
        return st_fail(err, ST_EINVAL, "an Idempotency-Key has 1 to %d bytes", KEY_MAX);
    crypto_generichash(s->submit.digest, sizeof s->submit.digest, (const unsigned char *)body, len,
                       NULL, 0);
    r = s->batch ? read_batch(s, err) : st_expand(&s->jobs, s->doc, st_doc_root(s->doc), err);
    s->submit.items = s->jobs.items.v;
    s->submit.n = s->jobs.items.n;
    return r;
}

static void hand_over(submission *s)
{
    st_cmd_submit_init(&s->submit);
    s->submit.cmd.done = submit_done;
    st_api_post(s->api, s->call, &s->submit.cmd);
}

/* What is large takes long to read: not in a thread that serves connections. */
static void read_aside(void *arg)
{
    submission *s = arg;
    st_err err = {0};

    if (read_submission(s, &err) == 0) {
        hand_over(s);
        return;
    }
    st_call_fail(s->call, &err);
    submission_free(s);
}

/* What becomes many jobs, or is large. */
static bool is_large(const submission *s)
{
    size_t len;
    const char *body = st_call_body(s->call, &len);

    return s->batch || len > LARGE_BYTES || strstr(body, "array") || strstr(body, "frames") ||
           strstr(body, "duration");
}

/* What is plainly wrong with it is said at once, unless finding out would take long as well. */
static int check_batch(submission *s, st_err *err)
{
    const st_doc_node *list;
    size_t len;
    int r;

    st_call_body(s->call, &len);
    if (len > CHECKED_BYTES)
        return 0;
    r = st_call_doc(s->call, &s->doc, err);
    return r < 0 ? r : find_jobs(s, &list, err);
}

/* Why a model has the place it has; NULL: nothing was estimated. */
static const char *estimate_of(const submission *s)
{
    const st_submit_item *item = &s->submit.items[0];
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    const char *why = NULL;
    json_t *doc;

    st_strbuf_add(&text, item->head ? item->head : "");
    st_strbuf_add(&text, item->doc);
    doc = json_loads(st_strbuf_str(&text), 0, NULL);
    if (json_is_string(json_object_get(doc, "estimate")))
        why = st_arena_strdup(s->arena, json_string_value(json_object_get(doc, "estimate")));
    json_decref(doc);
    return why;
}

static void try_out(submission *s)
{
    st_err err = {0};

    if (!st_api_charge(s->api, s->call, ST_AL_QUESTIONS)) {
        submission_free(s);
    } else if (read_submission(s, &err) < 0) {
        st_call_fail(s->call, &err);
        submission_free(s);
    } else {
        st_api_try(s->api, s->call, &s->submit.items[0].spec, estimate_of(s), drop_submission, s);
    }
}

static void submit(st_call *call, st_api *api, bool batch)
{
    submission *s = st_xcalloc(1, sizeof *s);
    st_err err = {0};

    s->api = api;
    s->call = call;
    s->batch = batch;
    s->arena = st_arena_new();
    s->submit.who = *st_api_who(call);
    s->jobs = (st_expansion){.api = api, .who = &s->submit.who, .arena = s->arena};
    if (!batch && st_call_query_bool(call, "dry_run", false)) {
        try_out(s);
        return;
    }
    s->large = is_large(s);
    if (s->large && !st_api_charge(api, call, ST_AL_BATCHES)) {
        submission_free(s);
        return;
    }
    if ((batch ? check_batch(s, &err) : s->large ? 0 : read_submission(s, &err)) < 0) {
        st_call_fail(call, &err);
        submission_free(s);
        return;
    }
    st_call_defer(call);
    if (!s->large) {
        hand_over(s);
    } else if (!st_work_run(api->bodies, read_aside, s)) {
        st_fail(&err, ST_EDOWN,
                "many large requests are being read just now; try again in a moment");
        st_call_fail(call, &err);
        submission_free(s);
    }
}

void st_api_jobs_submit(st_call *call, void *ctx)
{
    submit(call, ctx, false);
}

void st_api_jobs_batch(st_call *call, void *ctx)
{
    submit(call, ctx, true);
}

/* ---- reading ------------------------------------------------------------------------------ */

int st_api_see_job(st_api *api, const st_call *call, const char *text, st_arena *arena,
                   uint64_t *ret_id, st_job_row *ret, st_err *err)
{
    st_err why = {0};
    int r = -ST_ENOENT;

    if (st_control_id_parse(api->control, text, ret_id))
        r = read_row(api, *ret_id, arena, ret, &why);
    if (r == 0 && !st_api_sees(api, call, ret->account))
        r = -ST_ENOENT;
    if (r < 0 && r != -ST_ENOENT)
        *err = why;
    return r;
}

/* The job of the path, if the caller may see it; otherwise the call is answered. */
bool st_api_find_job(st_api *api, st_call *call, st_arena *arena, uint64_t *ret_id, st_job_row *ret)
{
    const char *text = st_call_param(call, "id");
    st_err err = {0};
    int r = st_api_see_job(api, call, text, arena, ret_id, ret, &err);

    if (r == -ST_ENOENT)
        st_api_no_such(call, "job", text);
    else if (r < 0)
        st_call_fail(call, &err);
    return r == 0;
}

void st_api_job_get(st_call *call, void *ctx)
{
    st_api *api = ctx;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_job_row row;
    uint64_t id;

    st_api_stamp_now(api, call);
    if (!st_api_find_job(api, call, arena, &id, &row))
        return;
    st_api_job_json(api, st_api_who(call), &row, &out);
    st_call_reply_buf(call, 200, NULL, &out);
}

typedef struct listing {
    st_api *api;
    st_strbuf out;
    int64_t n, limit;
    uint64_t last;
    uint32_t fields;
    const st_call *call; /* asks for labels; NULL: for none */
    bool more;
} listing;

/* Whether the job has every label that is asked for. Most have none, and need not be read. */
static bool has_labels(const st_call *call, const st_job_row *row)
{
    json_t *doc = strstr(row->spec, "\"labels\"") ? json_loads(row->spec, 0, NULL) : NULL;
    const json_t *labels = json_object_get(doc, "labels");
    const char *word;
    bool all = true;

    for (int i = 0; all && (word = st_call_query_nth(call, "label", i)); i++) {
        const char *sign = strchr(word, '=');
        const json_t *value = sign ? json_object_getn(labels, word, (size_t)(sign - word))
                                   : json_object_get(labels, word);
        char *text = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;

        all = value &&
              (!sign || (json_is_string(value) ? strcmp(json_string_value(value), sign + 1) == 0
                                               : strcmp(text, sign + 1) == 0));
        free(text);
    }
    json_decref(doc);
    return all;
}

static int list_row(void *ctx, const st_job_row *row, st_err *err)
{
    listing *l = ctx;

    (void)err;
    if (l->call && !has_labels(l->call, row))
        return 0;
    if (l->n > 0 && (l->n == l->limit || l->out.n > LIST_BYTES)) {
        l->more = true;
        return 1;
    }
    if (l->n++ > 0)
        st_strbuf_addc(&l->out, ',');
    st_api_job_fields(l->api, NULL, row, l->fields, &l->out);
    l->last = (uint64_t)row->id;
    return 0;
}

static bool is_live(const char *const *states, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int s = 0;

        while (s <= ST_JOB_PAUSED && strcmp(states[i], st_job_state_name((st_job_state)s)) != 0)
            s++;
        if (s > ST_JOB_PAUSED)
            return false;
    }
    return n > 0;
}

static void jobs_list_now(st_call *call, void *ctx)
{
    st_api *api = ctx;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const char *account = st_call_query(call, "account"), *cursor = st_call_query(call, "cursor");
    const char *fields = st_call_query(call, "fields");
    const char *array = st_call_query(call, "array");
    const char *states[ST_JOB_STATE_COUNT];
    listing l = {.api = api, .limit = st_call_query_int(call, "limit", 100)};
    st_job_filter f = {.states = states,
                       .user_name = st_call_query(call, "user"),
                       .name_has = st_call_query(call, "name")};
    st_store *reader;
    int64_t reach = 0;
    st_err err = {0};
    int r = 0;

    if (!account)
        account = st_api_who(call)->account;
    if (!st_api_sees(api, call, account)) {
        st_api_no_such(call, "account", account);
        return;
    }
    l.limit = ST_MAX(1, ST_MIN(l.limit, LIST_MAX));
    l.fields = UINT32_MAX;
    if (fields)
        r = st_api_job_fields_read(fields, &l.fields, &err);
    if (r == 0)
        r = st_api_query_time(api, call, "since", &f.there_since_ms, &err);
    if (r == 0)
        r = st_api_query_time(api, call, "until", &f.there_until_ms, &err);
    f.limit = l.limit + 1;
    f.within = st_directory_range(api->dir, account);
    while (f.nstates < ST_JOB_STATE_COUNT &&
           (states[f.nstates] = st_call_query_nth(call, "state", (int)f.nstates)))
        f.nstates++;
    f.live = is_live(states, f.nstates);
    if (st_call_query_nth(call, "label", 0)) {
        l.call = call; /* labels are in the documents, which are looked through one by one */
        f.limit = 0;
    }
    if (r == 0 && cursor) {
        st_job_row row;
        uint64_t id = 0;

        /* Only a job that it sees: others would tell where its own stand among everybody's. */
        r = st_api_see_job(api, call, cursor, arena, &id, &row, &err);
        if (r == -ST_ENOENT)
            r = st_fail(&err, ST_EINVAL, "invalid cursor; list again without it");
        f.before_id = (int64_t)id;
    }
    if (array) {
        uint64_t id;

        if (!st_control_id_parse(api->control, array, &id))
            id = INT64_MAX; /* an array that is not there has no pieces */
        f.part_of = (int64_t)id;
    } else if (f.nstates > 0 || f.user_name || f.name_has || l.call || f.there_since_ms ||
               f.there_until_ms) {
        f.scan = SCAN_MAX;
    }
    st_api_stamp_now(api, call);
    st_strbuf_add(&l.out, "{\"jobs\":[");
    reader = r == 0 ? st_api_reader(api, &err) : NULL;
    if (reader)
        r = st_store_jobs_list(reader, &f, list_row, &l, &err);
    if (reader && r == 0 && !l.more && f.scan > 0) {
        r = st_store_jobs_reach(reader, &f, &reach, &err);
        l.more = reach > 0;
        l.last = (uint64_t)reach;
    }
    st_api_reader_back(api, reader);
    if (!reader || r < 0) {
        st_call_fail(call, &err);
    } else {
        char next[ST_ID_TEXT];

        st_strbuf_add(&l.out, "]");
        if (l.more) {
            st_control_id_text(api->control, l.last, next);
            st_out_text(&l.out, "next", next);
        }
        st_strbuf_add(&l.out, "}");
        st_call_reply_buf(call, 200, NULL, &l.out);
    }
    st_strbuf_done(&l.out);
}

void st_api_jobs_list(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, jobs_list_now);
}

/* ---- changing ------------------------------------------------------------------------------ */

typedef struct job_change {
    st_cmd_job job;
    st_api *api;
    st_call *call;
} job_change;

static void change_done(st_cmd *cmd, const st_err *err)
{
    job_change *c = (job_change *)cmd;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_strbuf out = {0};
    st_job_row row;
    st_err why;

    st_api_stamp_now(c->api, c->call);
    if (err) {
        st_call_fail(c->call, err);
    } else if (!st_control_row(c->api->control, c->job.id, &row) &&
               read_row(c->api, c->job.id, arena, &row, &why) < 0) {
        st_call_fail(c->call, &why);
    } else {
        st_api_job_json(c->api, &c->job.who, &row, &out);
        st_call_reply_buf(c->call, 200, NULL, &out);
    }
    st_strbuf_done(&out);
    free(c);
}

static void change(st_call *call, st_api *api, void (*init)(st_cmd_job *cmd), const st_cmd_job *to)
{
    job_change *c = st_xcalloc(1, sizeof *c);

    c->api = api;
    c->call = call;
    c->job = *to;
    c->job.who = *st_api_who(call);
    if (!st_control_id_parse(api->control, st_call_param(call, "id"), &c->job.id)) {
        st_api_no_such(call, "job", st_call_param(call, "id"));
        free(c);
        return;
    }
    init(&c->job);
    c->job.cmd.done = change_done;
    st_call_defer(call);
    st_api_post(api, call, &c->job.cmd);
}

void st_api_job_cancel(st_call *call, void *ctx)
{
    change(call, ctx, st_cmd_job_cancel, &(st_cmd_job){0});
}

static int read_limit(const st_doc *doc, const st_doc_node *node, int64_t *ret, st_err *err)
{
    if (node->kind == ST_DOC_SCALAR && strcmp(node->value, "none") == 0) {
        *ret = ST_TIME_NEVER;
        return 0;
    }
    return st_doc_duration_ms(doc, node, ret, err);
}

/* One thing at a time: each is refused or done by itself. */
void st_api_job_patch(st_call *call, void *ctx)
{
    static const char *const keys[] = {"priority", "limit", "hold", NULL};
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    const st_doc_node *priority = NULL, *limit = NULL, *hold = NULL;
    st_cmd_job to = {0};
    st_err err = {0};
    int r = st_call_doc(call, &doc, &err);

    if (r == 0)
        r = st_doc_expect(doc, st_doc_root(doc), ST_DOC_MAP, &err);
    if (r == 0)
        r = st_doc_check_keys(doc, st_doc_root(doc), keys, &err);
    if (r == 0) {
        priority = st_doc_get(st_doc_root(doc), "priority");
        limit = st_doc_get(st_doc_root(doc), "limit");
        hold = st_doc_get(st_doc_root(doc), "hold");
        if ((priority != NULL) + (limit != NULL) + (hold != NULL) != 1)
            r = st_fail(&err, ST_EINVAL, "say one thing that changes: priority, limit or hold");
    }
    if (r == 0 && priority)
        r = st_spec_priority(doc, priority, &to.priority, &err);
    if (r == 0 && limit)
        r = read_limit(doc, limit, &to.limit_ms, &err);
    if (r == 0 && hold)
        r = st_doc_bool(doc, hold, &to.hold, &err);
    if (r < 0)
        st_call_fail(call, &err);
    else
        change(call, ctx,
               priority ? st_cmd_job_priority
               : limit  ? st_cmd_job_limit
                        : st_cmd_job_hold,
               &to);
}
