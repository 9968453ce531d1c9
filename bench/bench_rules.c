/*
 * How many submits a second go through the rules on one core: without scripts, with a trivial one,
 * with one that looks at things, and an estimate.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "rules/rules.h"

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const char plain[] =
    "{\"name\":\"train\",\"gpus\":4,\"cpu\":32,\"ram\":\"256Gi\",\"limit\":\"4h\",\"command\":"
    "[\"python\",\"train.py\",\"--lr\",\"0.1\"],\"env\":{\"A\":\"1\",\"B\":\"2\"},\"labels\":"
    "{\"project\":\"abc-12\"}}";

static void measure(const char *what, const char *script, const char *text)
{
    const st_rules_who who = {
        .account = "vision", .user = "ann", .role = "member", .now_ms = INT64_C(1781524800000)};
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);
    size_t len = strlen(text);
    double best = 0;
    st_err err = {0};

    if (script && st_rules_put(rules, "bench", script, 0, &err) < 0) {
        printf("%s\n", err.msg);
        return;
    }
    for (int round = 0; round < 5; round++) {
        double start = seconds(), rate;
        int n = 20000;

        for (int i = 0; i < n; i++) {
            st_rules_jobs jobs = {0};

            if (st_rules_apply_text(rules, &who, text, len, &jobs, &err) < 0) {
                printf("%s: %s\n", what, err.msg);
                return;
            }
            st_rules_jobs_done(&jobs);
        }
        rate = n / (seconds() - start);
        best = rate > best ? rate : best;
    }
    printf("%-40s %9.0f submits/s\n", what, best);
}

int main(void)
{
    measure("no script", NULL, plain);
    measure("a trivial script", "function submit(job, who) end", plain);
    measure("limit and project checked",
            "function submit(job, who)\n"
            "  job.limit = job.limit or '24h'\n"
            "  local p = job.labels and job.labels.project\n"
            "  if not (p and p:match('^%a%w*%-%d+$')) then return false, 'no project' end\n"
            "end",
            plain);
    measure("estimate of a model", NULL, "{\"workload\":\"inference\",\"model\":\"13b\"}");
    return 0;
}
