/*
 * `stint sim fuzz`: random worlds and events from seeds, with every invariant of
 * the scheduler checked after every step (sim/fuzz.h). One line sums a run up;
 * a seed that fails is told with the command that plays it again, shrunk, and
 * written as a scenario.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/num.h"
#include "base/quote.h"
#include "cli/cli.h"
#include "sim/fuzz.h"

#define SEEDS_DEFAULT "1-100"
#define STEPS_DEFAULT 200
#define SHRINK_TRIES  4000
#define PROGRESS_S    2

typedef struct fuzz_options {
    const char *seeds;
    int64_t first, last, one, steps;
    bool verbose, no_shrink;
    st_cli_format format;
} fuzz_options;

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* "A-B", or "A" for one seed. */
static int parse_seeds(const char *text, int64_t *first, int64_t *last, st_err *err)
{
    char head[32], q[ST_QUOTE_MAX];
    const char *dash = strchr(text, '-');
    size_t n = dash ? (size_t)(dash - text) : strlen(text);
    int r;

    if (n == 0 || n >= sizeof(head))
        return st_fail(err, ST_EINVAL, "option --seeds: it must be A-B, not %s", st_quote(q, text));
    memcpy(head, text, n);
    head[n] = '\0';
    r = st_parse_i64(head, 0, INT64_MAX - 1, first, err);
    if (r == 0)
        r = st_parse_i64(dash ? dash + 1 : head, 0, INT64_MAX - 1, last, err);
    if (r < 0)
        return st_fail_prefix(err, "option --seeds: ");
    if (*last < *first)
        return st_fail(err, ST_EINVAL, "option --seeds: %" PRId64 " comes before %" PRId64, *last,
                       *first);
    return 0;
}

static int read_options(int argc, char **argv, fuzz_options *o, st_err *err)
{
    const st_cli_opt opts[] = {
        ST_CLI_OPT_OUTPUT(&o->format),
        {.name = "seeds", .kind = ST_CLI_STRING, .into = &o->seeds, .lo = 0, .hi = 0},
        {.name = "seed", .kind = ST_CLI_I64, .into = &o->one, .lo = 0, .hi = INT64_MAX - 1},
        {.name = "steps", .kind = ST_CLI_I64, .into = &o->steps, .lo = 1, .hi = 1000000},
        {.letter = 'v', .name = "verbose", .kind = ST_CLI_FLAG, .into = &o->verbose},
        {.name = "no-shrink", .kind = ST_CLI_FLAG, .into = &o->no_shrink, .lo = 0, .hi = 0},
        {0},
    };
    int n, r = st_cli_options(argc, argv, opts, 0, 0, &n, err);

    if (r < 0)
        return r;
    if (o->one >= 0 && o->seeds)
        return st_fail(err, ST_EINVAL, "give either --seed or --seeds");
    o->first = o->last = o->one;
    return o->one >= 0 ? 0
                       : parse_seeds(o->seeds ? o->seeds : SEEDS_DEFAULT, &o->first, &o->last, err);
}

static int write_scenario(st_cli *cli, const st_tape *tape, const st_err *why)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    char path[64];
    FILE *f;
    bool ok;

    snprintf(path, sizeof(path), "fuzz-%" PRIu64 ".yaml", tape->seed);
    st_fuzz_yaml(tape, why->msg, &text);
    f = fopen(path, "w");
    ok = f && fwrite(text.s, 1, text.n, f) == text.n;
    if (f)
        ok = fclose(f) == 0 && ok;
    if (ok)
        fprintf(cli->out, "scenario: %s\n", path);
    else
        fprintf(cli->errors, "stint: %s cannot be written\n", path);
    return ok ? 0 : -1;
}

static void report_failure(st_cli *cli, const fuzz_options *o, st_tape *tape, st_err *why)
{
    fprintf(cli->out, "seed %" PRIu64 ": %s\n", tape->seed, why->msg);
    fprintf(cli->out, "again: stint sim fuzz --seeds %" PRIu64 "-%" PRIu64 " --steps %" PRId64 "\n",
            tape->seed, tape->seed, o->steps);
    fflush(cli->out);
    if (o->no_shrink)
        return;
    st_fuzz_shrink(tape, SHRINK_TRIES, why);
    fprintf(cli->out, "shrunk to %zu events: %s\n", tape->list.n, why->msg);
    write_scenario(cli, tape, why);
}

static void print_summary(st_cli *cli, const fuzz_options *o, const st_fuzz_counts *c, int failed,
                          double seconds)
{
    double rate = seconds > 0 ? (double)c->seeds / seconds : 0;

    if (o->format == ST_CLI_JSON)
        fprintf(cli->out,
                "{\"seeds\": %" PRId64 ", \"failed\": %d, \"events\": %" PRId64
                ", \"refused\": %" PRId64 ", \"steps\": %" PRId64 ", \"starts\": %" PRId64
                ", \"preemptions\": %" PRId64
                ", \"seeds_per_second\": %.1f, \"hash\": \"%016" PRIx64 "\"}\n",
                c->seeds, failed, c->events, c->refused, c->steps, c->starts, c->preemptions, rate,
                c->hash);
    else
        fprintf(cli->out,
                "%" PRId64 " seeds, %d failed, %" PRId64 " events (%" PRId64 " refused), %" PRId64
                " steps, %" PRId64 " starts, %" PRId64
                " preemptions, %.1f seeds/s, hash %016" PRIx64 "\n",
                c->seeds, failed, c->events, c->refused, c->steps, c->starts, c->preemptions, rate,
                c->hash);
}

static void print_progress(st_cli *cli, const fuzz_options *o, int64_t seed, double start,
                           double *shown)
{
    double now = now_s();

    if (!isatty(fileno(cli->errors)) || now - start < PROGRESS_S || now - *shown < 0.2)
        return;
    *shown = now;
    fprintf(cli->errors, "\rseed %" PRId64 " of %" PRId64 "-%" PRId64 " ", seed, o->first, o->last);
    fflush(cli->errors);
}

int st_cli_sim_fuzz(st_cli *cli, int argc, char **argv, st_err *err)
{
    fuzz_options o = {.one = -1, .steps = STEPS_DEFAULT};
    st_fuzz_counts counts = {0};
    double start = now_s(), shown = 0;
    int failed = 0, r = read_options(argc, argv, &o, err);

    if (r < 0)
        return r;
    for (int64_t seed = o.first; seed <= o.last && failed == 0; seed++) {
        st_tape tape;
        st_err why = {0};

        print_progress(cli, &o, seed, start, &shown);
        if (st_fuzz_seed((uint64_t)seed, (int)o.steps, o.verbose ? cli->out : NULL, &tape, &counts,
                         &why) < 0) {
            failed++;
            report_failure(cli, &o, &tape, &why);
        }
        st_tape_done(&tape);
    }
    if (shown > 0)
        fputs("\r                                        \r", cli->errors);
    print_summary(cli, &o, &counts, failed, now_s() - start);
    return failed > 0;
}
