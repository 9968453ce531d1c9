/*
 * `stint sim exhaust`: every order of every event in a small world, each step checked (worlds/exhaust.h).
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/quote.h"
#include "cli/cli.h"
#include "worlds/exhaust.h"

#define DEPTH_DEFAULT 3
#define SHRINK_TRIES  1000

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void tell_failure(st_cli *cli, st_exhaust_world world, st_tape *tape, st_err *why)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    char path[64];
    FILE *f;

    fprintf(cli->out, "%s: %s\n", st_exhaust_name(world), why->msg);
    for (size_t i = 0; i < tape->list.n; i++) {
        st_strbuf_clear(&text);
        st_tape_tell(&tape->list.v[i], &text);
        if (!tape->list.v[i].setup)
            fprintf(cli->out, "  %s\n", st_strbuf_str(&text));
    }
    st_fuzz_shrink(tape, SHRINK_TRIES, why);
    snprintf(path, sizeof(path), "exhaust-%s.yaml", st_exhaust_name(world));
    st_strbuf_clear(&text);
    st_fuzz_yaml(tape, why->msg, &text);
    f = fopen(path, "w");
    if (f && fwrite(text.s, 1, text.n, f) == text.n && fclose(f) == 0)
        fprintf(cli->out, "scenario: %s\n", path);
    else
        fprintf(cli->errors, "stint: %s cannot be written\n", path);
}

static int exhaust_one(st_cli *cli, st_exhaust_world world, int64_t depth)
{
    double start = now_s();
    st_exhaust_counts counts;
    st_tape tape;
    st_err why = {0};
    int rc = st_exhaust(world, (int)depth, 0, &counts, &tape, &why);

    if (rc < 0)
        tell_failure(cli, world, &tape, &why);
    fprintf(cli->out,
            "%s, up to %" PRId64 " events: %" PRId64 " states, %" PRId64 " steps (%" PRId64
            " refused), %d failed, %.1f s\n",
            st_exhaust_name(world), depth, counts.states, counts.steps, counts.refused, rc < 0,
            now_s() - start);
    st_tape_done(&tape);
    return rc < 0;
}

int st_cli_sim_exhaust(st_cli *cli, int argc, char **argv, st_err *err)
{
    int64_t depth = DEPTH_DEFAULT;
    const char *only = NULL;
    char q[ST_QUOTE_MAX];
    const st_cli_opt opts[] = {
        {.name = "events", .kind = ST_CLI_I64, .into = &depth, .lo = 1, .hi = ST_EXHAUST_MAX},
        {.name = "world", .kind = ST_CLI_STRING, .into = &only, .lo = 0, .hi = 0},
        {0},
    };
    int n, failed = 0, known = 0, r = st_cli_options(argc, argv, opts, 0, 0, &n, err);

    if (r < 0)
        return r;
    for (int w = 0; w < ST_EXHAUST_COUNT; w++)
        known += !only || strcmp(only, st_exhaust_name((st_exhaust_world)w)) == 0;
    if (known == 0)
        return st_fail(err, ST_EINVAL,
                       "option --world: it must be plain, alone, agents or swap, not %s",
                       st_quote(q, only));
    for (int w = 0; w < ST_EXHAUST_COUNT; w++)
        if (!only || strcmp(only, st_exhaust_name((st_exhaust_world)w)) == 0)
            failed |= exhaust_one(cli, (st_exhaust_world)w, depth);
    return failed;
}
