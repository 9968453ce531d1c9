/*
 * What a timeline does: each item of `do` becomes one action per thing it
 * names, and the later jobs of a stream become arrivals of their own.
 */
#include <string.h>

#include "base/num.h"
#include "base/quote.h"
#include "base/suggest.h"
#include "scenario/read.h"

static const char *const do_words[] = {
#define X(id, name) name,
    ST_SCN_DO_TABLE(X)
#undef X
        NULL,
};

const char *st_scn_do_name(st_scn_do kind)
{
    ST_ASSERT(kind < ST_DO_COUNT);
    return do_words[kind];
}

static int add_job(st_scenario *s, st_scn_job job, const st_scn_action *base, int number,
                   int64_t every_ms, const st_doc_node *map, st_err *err)
{
    st_scn_action action = *base;
    bool named = st_doc_get(map, "job") != NULL;
    char q[ST_QUOTE_MAX];

    if (s->jobs.n >= ST_SCN_JOBS_MAX)
        return st_doc_fail(s->doc, map, err, ST_ERANGE, "there are more than %d jobs",
                           ST_SCN_JOBS_MAX);
    if (number > 0)
        job.spec.name = st_scn_numbered(s, job.spec.name, number);
    if (named && st_map_get(s->job_ids, job.spec.name, NULL))
        return st_doc_fail(s->doc, map, err, ST_EEXIST, "there is a job %s already",
                           st_quote(q, job.spec.name));
    action.job = (int64_t)s->jobs.n;
    job.spec.id = (uint64_t)s->jobs.n + 1;
    if (job.array)
        job.spec.array = number > 1 ? s->jobs.v[action.job - (number - 1)].spec.id : job.spec.id;
    if (job.spec.hard) /* behind the numbers of bookings */
        job.spec.hold = UINT32_MAX + job.spec.id;
    if (named)
        st_map_put(s->job_ids, job.spec.name, action.job);
    st_vec_push(&s->jobs, job);
    if (number > 1 && every_ms > 0) {
        action.at_ms += (number - 1) * every_ms;
        st_vec_push(&s->arrivals, action);
    } else {
        st_vec_push(&s->actions, action);
    }
    return 0;
}

static int read_submit(st_scenario *s, const st_doc_node *map, const st_scn_action *base,
                       st_err *err)
{
    st_scn_job job;
    int64_t every_ms;
    int count, r = st_scn_read_job(s, map, base->refuse, &job, &count, &every_ms, err);

    if (r < 0)
        return r;
    if (every_ms > 0 && base->at_ms > ST_DURATION_MAX_MS - (int64_t)count * every_ms)
        return st_doc_fail(s->doc, map, err, ST_ERANGE, "the last of these jobs comes too late");
    if (count == 1)
        return add_job(s, job, base, strstr(job.spec.name, "%d") ? 1 : 0, 0, map, err);
    for (int i = 1; r == 0 && i <= count; i++)
        r = add_job(s, job, base, i, every_ms, map, err);
    return r;
}

/* finish, fail, cancel and checkpointed: a job or a list of them. */
static int read_jobs(st_scenario *s, const st_doc_node *node, const st_scn_action *base,
                     st_err *err)
{
    for (const st_doc_node *n = NULL; (n = st_field_each(node, n));) {
        st_scn_action action = *base;
        int r = st_scn_find_job(s, n, &action.job, err);

        if (r == -ST_ENOENT && base->refuse)
            action.job = -1;
        else if (r < 0)
            return r;
        st_vec_push(&s->actions, action);
    }
    return 0;
}

/* within and then: by when a node drains, and what becomes of its jobs. */
static int read_drain(const st_scenario *s, const st_doc_node *map, st_scn_action *action,
                      st_err *err)
{
    static const char *const words[] = {
#define X(id, name, about) name,
        ST_DRAIN_TABLE(X)
#undef X
            NULL};
    static const st_field within = {.key = "within", .kind = ST_F_DURATION};
    const st_doc_node *node = st_doc_get(map, "within");
    int r = 0, then = ST_DRAIN_REQUEUE;

    if (!node)
        return 0;
    r = st_field_read(s->doc, node, &within, &action->within_ms, err);
    if (r == 0 && (node = st_doc_get(map, "then")))
        r = st_field_word(s->doc, node, words, &then, err);
    action->then = (st_drain_then)then;
    return r;
}

static int read_node(st_scenario *s, const st_doc_node *map, const st_scn_action *base, st_err *err)
{
    static const char *const keys[] = {"fail",   "drain",  "return", "remove", "suspect", "test",
                                       "repair", "retire", "within", "then",   "gpu",     NULL};
    static const st_node_state states[] = {ST_NODE_FAILED,  ST_NODE_DRAINING, ST_NODE_READY,
                                           ST_NODE_REMOVED, ST_NODE_SUSPECT,  ST_NODE_TESTING,
                                           ST_NODE_REPAIR,  ST_NODE_RETIRED};
    st_scn_action drain = *base;
    const st_doc_node *gpu = st_doc_get(map, "gpu");
    int64_t part = -1;
    int r = st_doc_check_keys(s->doc, map, keys, err);

    if (r == 0)
        r = read_drain(s, map, &drain, err);
    if (r == 0 && gpu)
        r = st_doc_i64(s->doc, gpu, 0, ST_DEVS_MAX - 1, &part, err);
    if (r < 0)
        return r;
    for (const st_doc_node *verb = map->child; verb; verb = verb->next) {
        size_t k = 0;

        while (strcmp(keys[k], verb->key) != 0)
            k++;
        if (k >= ST_ARRAY_LEN(states))
            continue;
        for (const st_doc_node *n = NULL; (n = st_field_each(verb, n));) {
            st_scn_action action = states[k] == ST_NODE_DRAINING ? drain : *base;

            r = st_scn_find_node(s, n, &action.node, err);
            if (r == -ST_ENOENT && base->refuse)
                action.node = -1;
            else if (r < 0)
                return r;
            action.state = states[k];
            action.part = (int)part + 1;
            st_vec_push(&s->actions, action);
        }
    }
    return 0;
}

/* Nodes that have an agent from then on. */
static int read_agents(st_scenario *s, const st_doc_node *node, const st_scn_action *base,
                       st_err *err)
{
    int r = 0;

    for (const st_doc_node *n = NULL; r == 0 && (n = st_field_each(node, n));) {
        st_scn_action action = *base;

        r = st_scn_find_node(s, n, &action.node, err);
        if (r == 0)
            st_vec_push(&s->actions, action);
    }
    return r;
}

/* What nodes have from now on. */
static int read_labels(st_scenario *s, const st_doc_node *map, const st_scn_action *base,
                       st_err *err)
{
    typedef struct {
        const st_doc_node *node, *to;
        bool force;
    } label_fields;
    static const st_field rows[] = {
        {.key = "node",
         .kind = ST_F_NODE,
         .offset = offsetof(label_fields, node),
         .required = true},
        {.key = "to", .kind = ST_F_NODE, .offset = offsetof(label_fields, to), .required = true},
        {.key = "force", .kind = ST_F_BOOL, .offset = offsetof(label_fields, force)},
        {0},
    };
    label_fields f = {0};
    const char *labels = NULL;
    int r = st_fields_read(s->doc, map, rows, &f, err);

    if (r == 0)
        r = st_scn_read_labels(s, f.to, &labels, err);
    for (const st_doc_node *n = NULL; r == 0 && (n = st_field_each(f.node, n));) {
        st_scn_action action = *base;

        action.labels = labels;
        action.force = f.force;
        r = st_scn_find_node(s, n, &action.node, err);
        if (r == 0)
            st_vec_push(&s->actions, action);
    }
    return r;
}

static int read_change(st_scenario *s, const st_doc_node *map, const st_scn_action *base,
                       st_err *err)
{
    st_scn_action action = *base;
    int r = st_scn_read_account(s, map, &action.account, err);

    if (r < 0)
        return r;
    if (!base->refuse)
        st_scn_note_account(s, action.account->name);
    st_vec_push(&s->actions, action);
    return 0;
}

/* hold and release: jobs, or {job, by: user|admin}. */
static int read_hold(st_scenario *s, const st_doc_node *node, const st_scn_action *base,
                     st_err *err)
{
    typedef struct {
        const st_doc_node *job;
        int by;
    } hold_fields;
    static const char *const by_words[] = {"user", "admin", NULL};
    static const st_field rows[] = {
        {.key = "job", .kind = ST_F_NODE, .offset = offsetof(hold_fields, job), .required = true},
        {.key = "by", .kind = ST_F_WORD, .offset = offsetof(hold_fields, by), .words = by_words},
        {0},
    };
    st_scn_action action = *base;
    hold_fields f = {.job = node};
    int r = node->kind == ST_DOC_MAP ? st_fields_read(s->doc, node, rows, &f, err) : 0;

    action.by = f.by + 1;
    return r < 0 ? r : read_jobs(s, f.job, &action, err);
}

/* Of an array, by the name of its first job. */
static int read_throttle(st_scenario *s, const st_doc_node *map, const st_scn_action *base,
                         st_err *err)
{
    typedef struct {
        const st_doc_node *array;
        int to;
    } throttle_fields;
    static const st_field rows[] = {
        {.key = "array",
         .kind = ST_F_NODE,
         .offset = offsetof(throttle_fields, array),
         .required = true},
        {.key = "to",
         .kind = ST_F_INT,
         .offset = offsetof(throttle_fields, to),
         .lo = 0,
         .hi = INT32_MAX,
         .required = true},
        {0},
    };
    throttle_fields f = {0};
    st_scn_action action = *base;
    int r = st_fields_read(s->doc, map, rows, &f, err);

    action.throttle = f.to;
    return r < 0 ? r : read_jobs(s, f.array, &action, err);
}

/* A job's priority or time limit. */
static int read_setting(st_scenario *s, const st_doc_node *map, const st_scn_action *base,
                        st_err *err)
{
    typedef struct {
        const st_doc_node *job, *to;
    } setting_fields;
    static const st_field rows[] = {
        {.key = "job",
         .kind = ST_F_NODE,
         .offset = offsetof(setting_fields, job),
         .required = true},
        {.key = "to", .kind = ST_F_NODE, .offset = offsetof(setting_fields, to), .required = true},
        {0},
    };
    setting_fields f = {0};
    st_scn_action action = *base;
    int r = st_fields_read(s->doc, map, rows, &f, err);

    if (r == 0)
        r = st_scn_find_job(s, f.job, &action.job, err);
    if (r == -ST_ENOENT && base->refuse) {
        action.job = -1;
        r = 0;
    }
    if (r == 0 && base->kind == ST_DO_PRIORITY)
        r = st_spec_priority(s->doc, f.to, &action.priority, err);
    else if (r == 0 && f.to->kind == ST_DOC_SCALAR && strcmp(f.to->value, "none") == 0)
        action.limit_ms = ST_TIME_NEVER;
    else if (r == 0)
        r = st_doc_duration_ms(s->doc, f.to, &action.limit_ms, err);
    if (r == 0)
        st_vec_push(&s->actions, action);
    return r;
}

static int read_verb(st_scenario *s, const st_doc_node *node, st_scn_action *base, st_err *err)
{
    switch (base->kind) {
    case ST_DO_SUBMIT:
        return read_submit(s, node, base, err);
    case ST_DO_FINISH:
    case ST_DO_FAIL:
    case ST_DO_CANCEL:
    case ST_DO_CHECKPOINTED:
    case ST_DO_GONE:
        return read_jobs(s, node, base, err);
    case ST_DO_AGENT:
        return read_agents(s, node, base, err);
    case ST_DO_TESTER:
    case ST_DO_HEALED:
    case ST_DO_TESTED:
    case ST_DO_FAULT:
        return st_scn_read_fault(s, node, base, err);
    case ST_DO_RESET:
        return st_scn_read_reset(s, node, base, err);
    case ST_DO_NODE:
        return read_node(s, node, base, err);
    case ST_DO_ACCOUNT:
        return read_change(s, node, base, err);
    case ST_DO_PRIORITY:
    case ST_DO_LIMIT:
        return read_setting(s, node, base, err);
    case ST_DO_HOLD:
    case ST_DO_RELEASE:
        return read_hold(s, node, base, err);
    case ST_DO_THROTTLE:
        return read_throttle(s, node, base, err);
    case ST_DO_BOOK:
        return st_scn_read_book(s, node, base, err);
    case ST_DO_UNBOOK:
        return st_scn_read_unbook(s, node, base, err);
    case ST_DO_LABELS:
        return read_labels(s, node, base, err);
    case ST_DO_CLOCKS:
        return st_scn_read_clocks(s, node, base, err);
    case ST_DO_COUNT:
        break;
    }
    ST_ASSERT(false);
    return 0;
}

/* The one verb of an item; the keys `code` and `match` of a refusal are not meant. */
static int find_verb(const st_scenario *s, const st_doc_node *map, const st_doc_node **ret,
                     st_scn_do *ret_kind, st_err *err)
{
    const st_doc_node *verb = NULL;
    int kind = 0;

    for (const st_doc_node *n = map->child; n; n = n->next) {
        if (strcmp(n->key, "code") == 0 || strcmp(n->key, "match") == 0)
            continue;
        if (verb)
            return st_doc_fail(s->doc, map, err, ST_EINVAL,
                               "one item does one thing; make two of %s and %s", verb->key, n->key);
        verb = n;
    }
    if (!verb)
        return st_doc_fail(s->doc, map, err, ST_EINVAL, "nothing is done here");
    while (strcmp(do_words[kind], verb->key) != 0)
        kind++;
    *ret = verb;
    *ret_kind = (st_scn_do)kind;
    return 0;
}

static int read_code(const st_scenario *s, const st_doc_node *node, int *ret, st_err *err)
{
#define NAME_OF(name, string, http, cli, remedy) string,
    static const char *const words[] = {ST_ERR_TABLE(NAME_OF) NULL};
#undef NAME_OF
    int r = st_field_word(s->doc, node, words, ret, err);

    *ret += r == 0; /* codes count from 1 */
    return r;
}

static int read_refuse(const st_scenario *s, const st_doc_node *map, st_scn_action *base,
                       st_err *err)
{
    const char *keys[ST_DO_COUNT + 3] = {"code", "match"};
    const st_doc_node *code, *match;
    int r;

    for (int k = 0; k < ST_DO_COUNT; k++)
        keys[k + 2] = do_words[k];
    r = st_doc_check_keys(s->doc, map, keys, err);
    if (r < 0)
        return r;
    base->refuse = true;
    code = st_doc_get(map, "code");
    match = st_doc_get(map, "match");
    if (code)
        r = read_code(s, code, &base->code, err);
    if (r == 0 && match)
        r = st_doc_str(s->doc, match, &base->match, err);
    return r;
}

int st_scn_read_action(st_scenario *s, const st_doc_node *map, int64_t at_ms, st_err *err)
{
    st_scn_action base = {.at_ms = at_ms, .line = map->line, .job = -1, .node = -1};
    const char *keys[ST_DO_COUNT + 2] = {"refuse"};
    const st_doc_node *refuse, *verb = NULL;
    int r;

    for (int k = 0; k < ST_DO_COUNT; k++)
        keys[k + 1] = do_words[k];
    r = st_doc_check_keys(s->doc, map, keys, err);
    if (r < 0)
        return r;
    refuse = st_doc_get(map, "refuse");
    if (refuse) {
        if (map->nchild > 1)
            return st_doc_fail(s->doc, map, err, ST_EINVAL,
                               "what must be refused stands inside refuse: {...}");
        r = read_refuse(s, refuse, &base, err);
        map = refuse;
        s->asserts = true;
    }
    if (r == 0)
        r = find_verb(s, map, &verb, &base.kind, err);
    return r < 0 ? r : read_verb(s, verb, &base, err);
}
