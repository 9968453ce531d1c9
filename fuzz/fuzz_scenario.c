/*
 * Fuzzes scenarios: whatever comes in is a scenario or one sentence that names
 * the document, and a scenario that is not too large plays to its end without
 * breaking an invariant of the core.
 */
#include <stdio.h>
#include <string.h>

#include "base/doc.h"
#include "fuzz.h"
#include "scenario/scenario.h"

/* Larger ones only cost time. */
#define NODES_MAX   32
#define TASKS_MAX   200
#define ENTRIES_MAX 40
#define SPAN_MAX_MS (INT64_C(7) * 86400 * 1000)

static const st_doc_limits limits = {.bytes = 1 << 16, .nodes = 4000, .scalar = 4096, .depth = 16};

static bool small_enough(const st_scenario *s)
{
    int64_t tasks = 0;

    for (size_t i = 0; i < s->jobs.n && tasks <= TASKS_MAX; i++)
        tasks += s->jobs.v[i].spec.tasks;
    return s->nodes.n <= NODES_MAX && tasks <= TASKS_MAX && s->entries.n <= ENTRIES_MAX &&
           s->entries.v[s->entries.n - 1].at_ms <= SPAN_MAX_MS && s->until_ms <= SPAN_MAX_MS &&
           (s->arrivals.n == 0 || s->arrivals.v[s->arrivals.n - 1].at_ms <= SPAN_MAX_MS);
}

static void check_failure(const st_err *err, const char *name)
{
    ST_ASSERT(err->code > 0);
    ST_ASSERT(strncmp(err->msg, name, strlen(name)) == 0);
    ST_ASSERT(strchr(err->msg, '\n') == NULL);
}

static void play(const st_scenario *s, const char *name)
{
    ST_CLEANUP(st_play_freep) st_play *played = NULL;
    st_err err = {0};

    if (st_play_run(s, NULL, &played, &err) < 0) {
        check_failure(&err, name);
        return;
    }
    if (played->broken > 0)
        fprintf(stderr, "%s\n", played->diffs.v[0].text);
    ST_ASSERT(played->broken == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    ST_CLEANUP(st_scenario_freep) st_scenario *s = NULL;
    const char *name = "in.yaml";
    st_err err = {0};

    if (st_doc_parse_limited(name, (const char *)data, size, &limits, &doc, &err) < 0)
        return 0; /* the business of fuzz_doc.c */
    if (st_scenario_new(doc, &s, &err) < 0) {
        ST_ASSERT(s == NULL);
        check_failure(&err, name);
    } else if (small_enough(s)) {
        play(s, name);
    }
    return 0;
}
