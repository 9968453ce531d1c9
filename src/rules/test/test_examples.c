/*
 * The scripts of doc/run/rules.md do what the page says: every block of Lua there is loaded under the
 * name in its first line and run.
 */
#include <jansson.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/testing.h"
#include "rules/rules.h"
#include "rules/test/jobs.h"
#include "rules/values.h"

/* Mon 2026-06-15 12:00 UTC */
static st_rules_who ann = {
    .account = "vision", .user = "ann", .role = "member", .now_ms = INT64_C(1781524800000)};

static char *page(void)
{
    const char *root = getenv("STINT_SOURCE");
    char path[4096];
    FILE *f;
    char *text = st_xcalloc(1, 100000);

    snprintf(path, sizeof path, "%s/doc/run/rules.md", root ? root : ".");
    f = fopen(path, "re");
    if (!f)
        fail_msg("%s cannot be read; STINT_SOURCE is the root of the sources", path);
    assert_true(fread(text, 1, 99999, f) > 0);
    fclose(f);
    return text;
}

/* Rules with the one example of that name. */
static st_rules *rules_with(const char *name)
{
    ST_CLEANUP(st_freep) char *text = page();
    ST_CLEANUP(st_freep) char *script = NULL;
    st_rules *rules = st_rules_new(NULL);
    char first[100];
    const char *at, *end;
    st_err err = {0};

    snprintf(first, sizeof first, "```lua\n-- %s\n", name);
    at = strstr(text, first);
    assert_non_null(at);
    at += strlen("```lua\n");
    end = strstr(at, "```");
    assert_non_null(end);
    script = st_xstrndup(at, (size_t)(end - at));
    assert_ok(st_rules_put(rules, name, script, 0, &err));
    return rules;
}

static void becomes(st_rules *rules, const char *job, const char *want)
{
    ST_CLEANUP(st_json_drop) json_t *jobs = NULL;
    ST_CLEANUP(st_freep) char *text = NULL;
    st_err err = {0};

    assert_ok(rules_apply(rules, &ann, job, strlen(job), &jobs, &err));
    text = st_rules_text(json_array_get(jobs, 0));
    assert_string_equal(text, want);
}

static void refused(st_rules *rules, const char *job, const char *words)
{
    json_t *jobs = NULL;
    st_err err = {0};

    assert_fails(rules_apply(rules, &ann, job, strlen(job), &jobs, &err), ST_EREFUSED, words);
}

static void test_default_limit(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = rules_with("default-limit");

    (void)state;
    becomes(rules, "{\"gpus\":1}", "{\"gpus\":1,\"limit\":\"24h\"}");
    becomes(rules, "{\"limit\":\"1h\"}", "{\"limit\":\"1h\"}");
}

static void test_shared_by_day(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = rules_with("shared-by-day");

    (void)state;
    refused(rules, "{\"pool\":\"shared\",\"gpus\":4,\"tasks\":2}", "this asks for 8");
    becomes(rules, "{\"pool\":\"shared\",\"gpus\":4}", "{\"pool\":\"shared\",\"gpus\":4}");
    becomes(rules, "{\"pool\":\"batch\",\"gpus\":8}", "{\"pool\":\"batch\",\"gpus\":8}");
    ann.zone_ms = INT64_C(9) * 3600 * 1000; /* 21:00 there */
    becomes(rules, "{\"pool\":\"shared\",\"gpus\":8}", "{\"pool\":\"shared\",\"gpus\":8}");
    ann.zone_ms = 0;
}

static void test_notebooks(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = rules_with("notebooks-in-slices");

    (void)state;
    becomes(rules, "{\"workload\":\"notebook\",\"gpus\":2}",
            "{\"workload\":\"notebook\",\"on_preempt\":\"requeue\",\"limit\":\"8h\",\"level\":"
            "\"mig\",\"profile\":\"1g\"}");
    becomes(rules, "{\"gpus\":2}", "{\"gpus\":2}");
}

static void test_project(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = rules_with("need-project");

    (void)state;
    refused(rules, "{}", "say which project pays");
    refused(rules, "{\"labels\":{\"project\":\"x\"}}", "project x is not written like");
    becomes(rules, "{\"labels\":{\"project\":\"abc-12\"}}",
            "{\"labels\":{\"project\":\"abc-12\"}}");
}

static void test_partitions(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = rules_with("old-partitions");

    (void)state;
    becomes(rules, "{\"partition\":\"dgx\",\"gpus\":1}", "{\"gpus\":1,\"pool\":\"h100\"}");
    refused(rules, "{\"partition\":\"x\"}", "there is no partition x");
    becomes(rules, "{\"pool\":\"y\"}", "{\"pool\":\"y\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_limit), cmocka_unit_test(test_shared_by_day),
        cmocka_unit_test(test_notebooks),     cmocka_unit_test(test_project),
        cmocka_unit_test(test_partitions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
