/*
 * Fuzzes the way of a submit. The input is a job in JSON, or a script in Lua, a line with three
 * dashes, and a job. Whatever comes in, the answer is documents that can be written and are at
 * least one, or one sentence; and the same input twice is answered the same twice.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "fuzz.h"
#include "rules/rules.h"

/* The answer as text. */
static char *answer(st_rules *rules, const char *job, size_t len)
{
    const st_rules_who who = {.account = "a", .user = "u", .role = "member", .trusted = len % 2};
    ST_CLEANUP(st_rules_jobs_done) st_rules_jobs jobs = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    json_t *last;
    st_err err = {0};

    if (st_rules_apply_text(rules, &who, job, len, &jobs, &err) < 0) {
        ST_ASSERT(jobs.pieces.n == 0 && err.code > 0 && err.msg[0] != '\0' &&
                  !strchr(err.msg, '\n'));
        return st_xstrdup(err.msg);
    }
    ST_ASSERT(jobs.pieces.n >= 1 && jobs.pieces.n <= 10000);
    /* The last stands for all: ten thousand take too long to read. */
    st_strbuf_add(&text, jobs.head);
    st_strbuf_add(&text, jobs.pieces.v[jobs.pieces.n - 1].tail);
    last = json_loadb(st_strbuf_str(&text), text.n, JSON_REJECT_DUPLICATES, NULL);
    ST_ASSERT(json_is_object(last));
    json_decref(last);
    return st_strbuf_take(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const st_rules_options options = {
        .limits = {.steps = 50000, .cpu_ms = 10000, .memory = (size_t)2 << 20}};
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(&options);
    const char *text = (const char *)data, *cut = memmem(text, size, "\n---\n", 5);
    st_err err = {0};
    char *one, *two;

    if (cut) {
        char *script = st_xstrndup(text, (size_t)(cut - text));
        int r = st_rules_put(rules, "fuzz", script, 0, &err);

        free(script);
        ST_ASSERT(r == 0 || (err.msg[0] != '\0' && !strchr(err.msg, '\n')));
        size -= (size_t)(cut + 5 - text);
        text = cut + 5;
    }
    one = answer(rules, text, size);
    two = answer(rules, text, size);
    ST_ASSERT(strcmp(one, two) == 0);
    free(one);
    free(two);
    return 0;
}
