/*
 * What a job waits for besides room, and whether it is tried again (spec/flow.h).
 */
#include "spec/flow.h"

#include <string.h>

#include "base/macros.h"

#define RETRY_AFTER_MS INT64_C(60000)
#define RETRY_MOST_MS  INT64_C(3600000)

const char *const st_after_words[] = {
#define X(id, name, about) name,
    ST_AFTER_TABLE(X)
#undef X
        NULL,
};
const char *const st_never_words[] = {"cancel", "keep", NULL};

typedef struct after_fields {
    const st_doc_node *job;
    int how;
    bool each, only;
} after_fields;

static const st_field after_rows[] = {
    {.key = "job", .kind = ST_F_NODE, .offset = offsetof(after_fields, job), .required = true},
    {.key = "end",
     .kind = ST_F_WORD,
     .offset = offsetof(after_fields, how),
     .words = st_after_words},
    {.key = "each", .kind = ST_F_BOOL, .offset = offsetof(after_fields, each)},
    {.key = "only", .kind = ST_F_BOOL, .offset = offsetof(after_fields, only)},
    {0},
};

int st_spec_after(const st_doc *doc, const st_doc_node *node, st_after_doc *ret, st_err *err)
{
    after_fields f = {.job = node};
    int r = node->kind == ST_DOC_MAP ? st_fields_read(doc, node, after_rows, &f, err) : 0;

    if (r == 0)
        r = st_doc_expect(doc, f.job, ST_DOC_SCALAR, err);
    if (r == 0 && f.each && f.only)
        r = st_doc_fail(doc, node, err, ST_EINVAL,
                        "after: each and only do not go together: each takes the jobs of an array "
                        "one by one, only takes its first one");
    if (r < 0)
        return r;
    *ret = (st_after_doc){.job = f.job, .how = (st_after_how)f.how, .each = f.each, .only = f.only};
    return 0;
}

static int read_retry(const st_doc *doc, const st_doc_node *map, const st_flow_fields *f,
                      st_retries *ret, st_err *err)
{
    static const char *const words[] = {"exit", "timeout", NULL};
    static const char *const with[] = {"retry_after", "retry_max", "retry_on"};
    bool exits = f->retry_on == NULL;

    if (f->retries == 0) {
        for (size_t i = 0; i < ST_ARRAY_LEN(with); i++)
            if (st_doc_get(map, with[i]))
                return st_doc_fail(doc, st_doc_get(map, with[i]), err, ST_EINVAL,
                                   "%s is for jobs with retries: say how many (--retries)",
                                   with[i]);
        return 0;
    }
    *ret = (st_retries){.times = f->retries, .wait_ms = RETRY_AFTER_MS, .most_ms = RETRY_MOST_MS};
    if (st_doc_get(map, "retry_after"))
        ret->wait_ms = f->retry_after_ms;
    ret->most_ms = ST_MAX(ret->most_ms, ret->wait_ms);
    if (st_doc_get(map, "retry_max"))
        ret->most_ms = f->retry_max_ms;
    if (ret->wait_ms < ST_RETRY_WAIT_MIN_MS || ret->most_ms > ST_RETRY_WAIT_MAX_MS)
        return st_doc_fail(doc, map, err, ST_ERANGE,
                           "retry_after is at least 1s, and retry_max at most 7 days");
    if (ret->most_ms < ret->wait_ms)
        return st_doc_fail(doc, map, err, ST_EINVAL, "retry_max is shorter than retry_after");
    for (const st_doc_node *n = NULL; f->retry_on && (n = st_field_each(f->retry_on, n));) {
        int word, r = st_field_word(doc, n, words, &word, err);

        if (r < 0)
            return r;
        exits |= word == 0;
        ret->timeout |= word == 1;
    }
    if (!exits)
        return st_doc_fail(doc, f->retry_on, err, ST_EINVAL,
                           "retry_on has exit in it: a job that is tried again at its time limit "
                           "is tried again when it fails as well");
    return 0;
}

int st_spec_flow(const st_doc *doc, const st_doc_node *map, const st_flow_fields *f,
                 st_job_spec *ret, st_err *err)
{
    int n = 0;

    for (const st_doc_node *at = NULL; f->after && (at = st_field_each(f->after, at));)
        n++;
    if (n > ST_AFTER_MAX)
        return st_doc_fail(doc, f->after, err, ST_ELIMIT,
                           "a job waits for at most %d jobs or arrays, these are %d", ST_AFTER_MAX,
                           n);
    if (f->never && n == 0)
        return st_doc_fail(doc, map, err, ST_EINVAL,
                           "if_never is for jobs that wait for others: say which (after)");
    ret->keeps = f->never == 1;
    ret->held_by = f->hold ? 1 : 0;
    ret->throttle = f->throttle;
    return read_retry(doc, map, f, &ret->retry, err);
}
