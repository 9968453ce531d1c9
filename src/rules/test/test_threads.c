/*
 * Four threads submit while a fifth replaces scripts and sizes: every answer is one that some
 * version of the script gives, and nothing of one call is seen in another. Run it under the thread
 * sanitizer as well.
 */
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/testing.h"
#include "rules/rules.h"
#include "rules/test/jobs.h"
#include "rules/values.h"

#define THREADS 4
#define SUBMITS 1500

typedef struct worker {
    st_rules *rules;
    int number, wrong;
} worker;

static atomic_int working;

/* x leaks if globals do; n is the version of the script, 1 or 2. */
static const char *const scripts[] = {
    "function submit(job, who) job.leak = x x = who.user job.v = 1 job.u = who.user end",
    "function submit(job, who) job.leak = x x = who.user job.v = 2 job.u = who.user end",
};

static bool good(const json_t *job, const char *user)
{
    int64_t v = json_integer_value(json_object_get(job, "v"));
    int64_t gpus = json_integer_value(json_object_get(job, "gpus"));

    return (v == 1 || v == 2) && (gpus == 1 || gpus == 2) && !json_object_get(job, "leak") &&
           strcmp(json_string_value(json_object_get(job, "u")), user) == 0;
}

static void *submit(void *arg)
{
    worker *w = arg;
    char user[20];
    st_rules_who who = {.account = "a", .user = user, .role = "member"};

    for (int i = 0; i < SUBMITS; i++) {
        static const char text[] = "{\"size\":\"own\",\"name\":\"x\"}";
        json_t *jobs = NULL;
        st_err err = {0};

        snprintf(user, sizeof user, "u%d-%d", w->number, i);
        if (rules_apply(w->rules, &who, text, sizeof text - 1, &jobs, &err) < 0 ||
            !good(json_array_get(jobs, 0), user))
            w->wrong++;
        json_decref(jobs);
    }
    atomic_fetch_sub(&working, 1);
    return NULL;
}

static void test_threads(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);
    worker workers[THREADS];
    pthread_t threads[THREADS];
    st_err err = {0};
    int64_t calls;
    json_t *list;

    (void)state;
    atomic_store(&working, THREADS);
    for (int round = 0; round == 0 || atomic_load(&working) > 0; round++) {
        json_t *size = json_pack("{s:i}", "gpus", 1 + round % 2);

        assert_ok(st_sizes_set(st_rules_sizes(rules), "", "own", size, 0, &err));
        assert_ok(st_rules_put(rules, "r", scripts[round % 2], 0, &err));
        json_decref(size);
        for (int i = 0; round == 0 && i < THREADS; i++) {
            workers[i] = (worker){.rules = rules, .number = i};
            assert_int_equal(pthread_create(&threads[i], NULL, submit, &workers[i]), 0);
        }
        json_decref(st_rules_list(rules));
        json_decref(st_sizes_list(st_rules_sizes(rules), NULL));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].wrong, 0);
    }
    /* Calls in a script that was just replaced may be left out of the count, never added. */
    list = st_rules_list(rules);
    calls = json_integer_value(json_object_get(json_array_get(list, 0), "calls"));
    assert_true(calls <= THREADS * SUBMITS);
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
