/*
 * `stint sim fuzz`: random worlds and events from seeds, with every invariant of
 * the scheduler checked after every step (worlds/worlds.h). One line sums a run up;
 * a seed that fails is told with the command that plays it again, shrunk, and
 * written as a scenario.
 *
 * The seeds are played by a child. It notes each seed before it begins with it
 * in memory shared with its parent, so that a seed that breaks an assertion, and
 * ends the child, can still be told.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/num.h"
#include "base/quote.h"
#include "cli/cli.h"
#include "worlds/worlds.h"

#define SEEDS_DEFAULT "1-100"
#define STEPS_DEFAULT 200
#define SHRINK_TRIES  4000
#define PROGRESS_S    2

/* How far the player came; shared by child and parent. */
typedef struct progress {
    int64_t seed; /* the one being played */
    bool over;    /* the player came to its end */
    bool failed;  /* at `seed` */
    char why[600];
    char scenario[64]; /* where it was written; empty: nowhere */
    st_fuzz_counts counts;
} progress;

typedef struct fuzz_options {
    const char *seeds;
    int64_t first, last, one, steps;
    bool verbose, no_shrink, closely, guided;
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
        {.name = "closely", .kind = ST_CLI_FLAG, .into = &o->closely, .lo = 0, .hi = 0},
        {.name = "guided", .kind = ST_CLI_FLAG, .into = &o->guided, .lo = 0, .hi = 0},
        {.name = "no-shrink", .kind = ST_CLI_FLAG, .into = &o->no_shrink, .lo = 0, .hi = 0},
        {0},
    };
    int n, r = st_cli_options(argc, argv, opts, 0, 0, &n, err);

    if (r < 0)
        return r;
    if (o->guided && o->closely)
        return st_fail(err, ST_EINVAL, "give either --closely or --guided");
    if (o->one >= 0 && o->seeds)
        return st_fail(err, ST_EINVAL, "give either --seed or --seeds");
    o->first = o->last = o->one;
    return o->one >= 0 ? 0
                       : parse_seeds(o->seeds ? o->seeds : SEEDS_DEFAULT, &o->first, &o->last, err);
}

/* The command that plays a seed again. */
static const char *again(char *buf, size_t size, int64_t seed, const fuzz_options *o)
{
    snprintf(buf, size, "stint sim fuzz --seeds %" PRId64 "-%" PRId64 " --steps %" PRId64 "%s",
             o->guided ? o->first : seed, seed, o->steps,
             o->guided    ? " --guided"
             : o->closely ? " --closely"
                          : "");
    return buf;
}

static void write_scenario(st_cli *cli, const st_tape *tape, const st_err *why, progress *p)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    char path[sizeof(p->scenario)];
    FILE *f;
    bool ok;

    snprintf(path, sizeof(path), "fuzz-%" PRIu64 ".yaml", tape->seed);
    st_fuzz_yaml(tape, why->msg, &text);
    f = fopen(path, "w");
    ok = f && fwrite(text.s, 1, text.n, f) == text.n;
    if (f)
        ok = fclose(f) == 0 && ok;
    if (ok)
        memcpy(p->scenario, path, sizeof(path));
    else
        fprintf(cli->errors, "stint: %s cannot be written\n", path);
}

/* Everything a person wants to know goes to `to`, as soon as it is known. */
static void tell_failure(st_cli *cli, FILE *to, const fuzz_options *o, progress *p, st_tape *tape,
                         st_err *why)
{
    char line[128];

    p->failed = true;
    snprintf(p->why, sizeof(p->why), "%s", why->msg);
    fprintf(to, "seed %" PRId64 ": %s\nagain: %s\n", p->seed, why->msg,
            again(line, sizeof(line), p->seed, o));
    fflush(to);
    if (o->no_shrink)
        return;
    st_fuzz_shrink(tape, SHRINK_TRIES, why);
    fprintf(to, "shrunk to %zu events: %s\n", tape->list.n, why->msg);
    if (o->verbose) {
        st_err same = {0};
        st_fuzz_replay(tape, NULL, to, NULL, &same);
    }
    write_scenario(cli, tape, why, p);
    if (p->scenario[0])
        fprintf(to, "scenario: %s\n", p->scenario);
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

static void play_seeds(st_cli *cli, FILE *to, const fuzz_options *o, progress *p)
{
    ST_CLEANUP(st_guide_freep) st_guide *guide = o->guided ? st_guide_new() : NULL;
    double start = now_s(), shown = 0;

    for (int64_t seed = o->first; seed <= o->last && !p->failed; seed++) {
        st_tape tape;
        st_err why = {0};

        p->seed = seed;
        print_progress(cli, o, seed, start, &shown);
        st_lens close = st_lens_close((uint64_t)seed);
        FILE *trace = o->verbose ? to : NULL;
        int r;

        if (guide)
            r = st_guide_play(guide, (uint64_t)seed, (int)o->steps, trace, &tape, &p->counts, &why);
        else
            r = st_fuzz_seed((uint64_t)seed, (int)o->steps, o->closely ? &close : NULL, trace,
                             &tape, &p->counts, &why);
        if (r < 0)
            tell_failure(cli, to, o, p, &tape, &why);
        st_tape_done(&tape);
    }
    if (guide && !p->failed)
        fprintf(to, "guided by %zu tapes that met %zu\n", st_guide_kept(guide),
                st_guide_met(guide));
    if (shown > 0)
        fputs("\r                                        \r", cli->errors);
    p->over = true;
}

/* Plays the seeds in a child and waits for it; a crash becomes a failure of its seed. */
static int play_guarded(st_cli *cli, FILE *to, const fuzz_options *o, progress *p, st_err *err)
{
    char line[128];
    int status = 0;
    pid_t pid;

    fflush(NULL); /* or the child would write it again */
    pid = fork();
    if (pid < 0)
        return st_fail(err, ST_EIO, "no process for the seeds: %s", strerror(errno));
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        play_seeds(cli, to, o, p);
        exit(0); /* not _exit: a sanitizer has its say about leaks here */
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (p->over && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (!p->failed) {
        p->failed = true;
        if (WIFSIGNALED(status))
            snprintf(p->why, sizeof(p->why), "crash: the player was ended by signal %d (%s)",
                     WTERMSIG(status), strsignal(WTERMSIG(status)));
        else
            snprintf(p->why, sizeof(p->why), "crash: the player ended with status %d",
                     WEXITSTATUS(status));
        fprintf(to, "seed %" PRId64 ": %s\nagain: %s\n", p->seed, p->why,
                again(line, sizeof(line), p->seed, o));
    } else if (!p->over) {
        fprintf(to, "seed %" PRId64 ": the player crashed while it shrank this\n", p->seed);
    }
    return 0;
}

static void print_json(st_cli *cli, const fuzz_options *o, const progress *p, double rate)
{
    const st_fuzz_counts *c = &p->counts;
    char hash[32], line[128];
    json_t *failure = NULL, *root;

    snprintf(hash, sizeof(hash), "%016" PRIx64, c->hash);
    if (p->failed)
        failure = json_pack("{s:I, s:s, s:s, s:s*}", "seed", (json_int_t)p->seed, "why", p->why,
                            "again", again(line, sizeof(line), p->seed, o), "scenario",
                            p->scenario[0] ? p->scenario : NULL);
    root = json_pack("{s:I, s:i, s:I, s:I, s:I, s:I, s:I, s:f, s:s, s:o*}", "seeds",
                     (json_int_t)c->seeds, "failed", p->failed, "events", (json_int_t)c->events,
                     "refused", (json_int_t)c->refused, "steps", (json_int_t)c->steps, "starts",
                     (json_int_t)c->starts, "preemptions", (json_int_t)c->preemptions,
                     "seeds_per_second", rate, "hash", hash, "failure", failure);
    json_dumpf(root, cli->out, JSON_REAL_PRECISION(4));
    fputc('\n', cli->out);
    json_decref(root);
}

static void print_summary(st_cli *cli, const fuzz_options *o, const progress *p, double seconds)
{
    const st_fuzz_counts *c = &p->counts;
    double rate = seconds > 0 ? (double)c->seeds / seconds : 0;

    if (o->format == ST_CLI_JSON) {
        print_json(cli, o, p, rate);
        return;
    }
    fprintf(cli->out,
            "%" PRId64 " seeds, %d failed, %" PRId64 " events (%" PRId64 " refused), %" PRId64
            " steps, %" PRId64 " starts, %" PRId64 " preemptions, %.1f seeds/s, hash %016" PRIx64
            "\n",
            c->seeds, p->failed, c->events, c->refused, c->steps, c->starts, c->preemptions, rate,
            c->hash);
}

int st_cli_sim_fuzz(st_cli *cli, int argc, char **argv, st_err *err)
{
    fuzz_options o = {.one = -1, .steps = STEPS_DEFAULT};
    double start = now_s();
    progress *p;
    FILE *to;
    int failed, r = read_options(argc, argv, &o, err);

    if (r < 0)
        return r;
    p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return st_fail(err, ST_EIO, "no memory to share: %s", strerror(errno));
    to = o.format == ST_CLI_JSON ? cli->errors : cli->out;
    r = play_guarded(cli, to, &o, p, err);
    if (r == 0)
        print_summary(cli, &o, p, now_s() - start);
    failed = p->failed;
    munmap(p, sizeof(*p));
    return r < 0 ? r : failed;
}
