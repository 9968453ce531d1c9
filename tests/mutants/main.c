/*
 * stint-mutants: proves that the checkers of the simulator can fail.
 *
 * The same sources as `stint`, compiled with ST_MUTANTS: each rule of base/mutant.h can be broken.
 *
 *   stint-mutants                      breaks every rule in turn and plays seeds until it is noticed
 *   stint-mutants RULE...              only these
 *   stint-mutants --seldom [RULE...]   looked at as most worlds are (worlds/lens.c), with ten times as many seeds
 *   stint-mutants --with RULE sim ...  is `stint sim ...` with that rule broken
 *
 * Every rule is broken in a child of its own, so one that trips an assertion of the scheduler
 * itself, before any checker sees it, counts as noticed too. Before that, with nothing broken, the
 * same seeds must find nothing: otherwise they would prove nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mutant.h"
#include "cli/cli.h"
#include "worlds/worlds.h"

#define STEPS      150
#define SEEDS_MANY 10000
#define CHILD_S    120 /* a broken rule that makes the scheduler hang is not noticed in time */
#define NAME_LEN   18

#define SELDOM 10 /* times as many seeds, where worlds are looked at less closely */

int st_mutant = ST_MUTANT_NONE;

static bool seldom;

typedef struct mutant {
    const char *name, *what;
    int seeds;
} mutant;

static const mutant mutants[ST_MUTANT_COUNT] = {
    [ST_MUTANT_NONE] = {"(none)", "every rule is kept", 0},
#define X(rule, what, seeds) [ST_MUTANT_##rule] = {#rule, what, seeds},
    ST_MUTANT_TABLE(X)
#undef X
};

/* What became of a child; in memory it shares with us. */
typedef struct result {
    int seed;
    bool over;
    char why[600]; /* empty: nothing was noticed */
} result;

/* Seeds from 1 on; a number above SEEDS_MANY is one seed, which a rare breach was found with. */
static void play(int rule, int seeds, result *r)
{
    st_mutant = rule;
    for (r->seed = seeds > SEEDS_MANY ? seeds : 1; r->seed <= seeds; r->seed++) {
        st_tape tape;
        st_err err = {0};
        uint64_t seed = (uint64_t)r->seed;
        st_lens lens = seldom ? st_lens_of(seed) : st_lens_close(seed);
        int rc = st_fuzz_seed((uint64_t)r->seed, STEPS, &lens, NULL, &tape, NULL, &err);
        st_tape_done(&tape);
        if (rc < 0) {
            snprintf(r->why, sizeof r->why, "%s", err.msg);
            break;
        }
    }
    r->over = true;
}

/* The assertion's line, without where it stands. */
static void read_assertion(FILE *from, result *r)
{
    char line[500];
    while (fgets(line, sizeof line, from)) {
        const char *at = strstr(line, "assertion failed");
        if (at)
            snprintf(r->why, sizeof r->why, "%.*s", (int)strcspn(at, "\n"), at);
    }
}

static void play_in_child(int rule, int seeds, result *r)
{
    memset(r, 0, sizeof *r);
    fflush(NULL);
    FILE *said = tmpfile();
    pid_t pid = said ? fork() : -1;
    if (pid < 0) {
        perror("stint-mutants");
        exit(1);
    }
    if (pid == 0) {
        dup2(fileno(said), STDERR_FILENO);
        alarm(CHILD_S);
        play(rule, seeds, r);
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    rewind(said);
    if (!r->over)
        read_assertion(said, r);
    fclose(said);
}

/* Whether the rule's breach was noticed in time. */
static bool hunt(int rule, result *r)
{
    const mutant *m = &mutants[rule];
    int seeds = seldom && m->seeds <= SEEDS_MANY / SELDOM ? m->seeds * SELDOM : m->seeds;
    play_in_child(rule, seeds, r);
    if (r->why[0])
        printf("%-*s %4d  %s\n", NAME_LEN, m->name, r->seed, r->why);
    else if (r->over)
        printf("%-*s    -  NOT NOTICED in %d seeds: %s\n", NAME_LEN, m->name, seeds, m->what);
    else
        printf("%-*s %4d  DIED without a sentence: %s\n", NAME_LEN, m->name, r->seed, m->what);
    return r->why[0] != '\0';
}

static bool check_sound(result *r)
{
    int most = 0;
    bool ok = true;
    for (int i = 0; ok && i < ST_MUTANT_COUNT; i++) {
        if (mutants[i].seeds <= SEEDS_MANY) {
            most = mutants[i].seeds > most ? mutants[i].seeds : most;
            continue;
        }
        play_in_child(ST_MUTANT_NONE, mutants[i].seeds, r);
        ok = r->over && !r->why[0];
    }
    if (ok)
        play_in_child(ST_MUTANT_NONE, most, r);
    if (r->over && !r->why[0])
        return true;
    printf("with no rule broken, seed %d fails: %s\n", r->seed, r->why);
    return false;
}

static int find(const char *name)
{
    for (int i = 1; i < ST_MUTANT_COUNT; i++)
        if (strcmp(mutants[i].name, name) == 0)
            return i;
    fprintf(stderr, "stint-mutants: there is no rule \"%s\"\n", name);
    exit(2);
}

static int run_with(int argc, char **argv)
{
    static const st_cli_verb verbs[] = {
        {"sim", "Answers questions about a fleet without having one", "COMMAND ...",
         .sub = st_cli_sim_verbs},
        {0},
    };
    st_cli cli = {.out = stdout, .errors = stderr};
    if (argc < 3) {
        fprintf(stderr, "stint-mutants: --with RULE sim ...\n");
        return 2;
    }
    st_mutant = find(argv[2]);
    argv[2] = argv[0];
    return st_cli_main(&cli, verbs, argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--with") == 0)
        return run_with(argc, argv);
    result *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED) {
        perror("stint-mutants");
        return 1;
    }
    int missed = 0, n = 0;
    if (argc > 1 && strcmp(argv[1], "--seldom") == 0) {
        seldom = true;
        argc--;
        argv++;
    }
    if (argc == 1 && !seldom && !check_sound(r))
        return 1;
    printf("%-*s SEED  NOTICED AS\n", NAME_LEN, "BROKEN RULE");
    for (int i = 1; argc == 1 && i < ST_MUTANT_COUNT; i++, n++)
        missed += !hunt(i, r);
    for (int i = 1; i < argc; i++, n++)
        missed += !hunt(find(argv[i]), r);
    printf("%d broken rules, %d not noticed\n", n, missed);
    return missed > 0;
}
