/*
 * stint-mutants: proves that the checkers of the simulator can fail.
 *
 * The same sources as `stint`, compiled with ST_MUTANTS: each rule of base/mutant.h can be broken.
 *
 *   stint-mutants                      breaks every rule in turn and plays seeds until it is noticed
 *   stint-mutants --from-one           the same, and every rule from seed 1 on: which seed is the first
 *   stint-mutants RULE...              only these
 *   stint-mutants --seldom [RULE...]   looked at as most worlds are (worlds/lens.c), with ten times as many seeds
 *   stint-mutants --with RULE sim ...  is `stint sim ...` with that rule broken
 *
 * Every rule is broken in a child of its own, so one that trips an assertion of the scheduler
 * itself, before any checker sees it, counts as noticed too. After that, with nothing broken, the
 * seeds that noticed must find nothing: otherwise they would prove nothing.
 *
 * Where the first seed that notices is far, a table below names it, and it is tried first. What it says may be out of date
 * (a change of the scheduler moves worlds): then the hunt goes on from seed 1 and takes longer, no more.
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

#define STEPS        150
#define SEEDS_MANY   10000
#define SEEDS_BEHIND 400 /* searched behind a seed of its own that notices no more */
#define SEEDS_KEPT   256 /* at most so many seeds are played again with every rule kept */
#define CHILD_S      120 /* a broken rule that makes the scheduler hang is not noticed in time */
#define NAME_LEN     18
#define SELDOM       10 /* times as many seeds, where worlds are looked at less closely */

int st_mutant = ST_MUTANT_NONE;

static bool seldom;
static bool from_one;

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

/* The seed that noticed last, where many come before it: `stint-mutants --from-one` tells. */
static const int likely[ST_MUTANT_COUNT] = {
    [ST_MUTANT_COOLDOWN] = 21,    [ST_MUTANT_EFFORT] = 25,       [ST_MUTANT_REST] = 178,
    [ST_MUTANT_BOOK_CLEAR] = 53,  [ST_MUTANT_BOOK_TELL] = 1157,  [ST_MUTANT_BOOK_FLOORS] = 165,
    [ST_MUTANT_BOOK_END] = 69,    [ST_MUTANT_BOOK_ENTER] = 53,   [ST_MUTANT_BOOK_LEND] = 341,
    [ST_MUTANT_MEEK] = 117,       [ST_MUTANT_BOOK_LABELS] = 69,  [ST_MUTANT_BOOK_QUOTA] = 69,
    [ST_MUTANT_BOOK_POOL] = 53,   [ST_MUTANT_WINDOW_BEGIN] = 19, [ST_MUTANT_WINDOW_END] = 21,
    [ST_MUTANT_WINDOW_SLOT] = 69, [ST_MUTANT_DEADLINE] = 21,     [ST_MUTANT_BAR] = 19,
    [ST_MUTANT_TRUST] = 12,       [ST_MUTANT_OVERSUB] = 13,      [ST_MUTANT_SUSPECT] = 12,
    [ST_MUTANT_OVERSTAY] = 31,    [ST_MUTANT_EXCHANGE] = 21,     [ST_MUTANT_SPARE] = 12,
    [ST_MUTANT_AGEING] = 302,     [ST_MUTANT_PRIORITY] = 93,     [ST_MUTANT_MOVER_PLACE] = 21,
    [ST_MUTANT_POOL_CHANGE] = 15, [ST_MUTANT_MONEY_LOST] = 14,   [ST_MUTANT_MONEY_AGAIN] = 22,
    [ST_MUTANT_MONEY_FEE] = 117,
};

/* What became of a child; in memory it shares with us. */
typedef struct result {
    int seed;
    bool over;
    char why[600]; /* empty: nothing was noticed */
} result;

static void play(int rule, int first, int last, result *r)
{
    st_mutant = rule;
    for (r->seed = first; r->seed <= last; r->seed++) {
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

static void play_in_child(int rule, int first, int last, result *r)
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
        play(rule, first, last, r);
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    rewind(said);
    if (!r->over)
        read_assertion(said, r);
    fclose(said);
}

/* Whether the rule's breach was noticed in time. A number of seeds above SEEDS_MANY is one seed, which a rare breach was
 * found with; a change of the scheduler moves worlds, so those behind it are looked at as well. */
static bool hunt(int rule, result *r)
{
    const mutant *m = &mutants[rule];
    int seeds = seldom && m->seeds <= SEEDS_MANY / SELDOM ? m->seeds * SELDOM : m->seeds;
    int hint = seldom || from_one || seeds > SEEDS_MANY ? 0 : likely[rule];
    if (hint)
        play_in_child(rule, hint, hint, r);
    if (!hint || (r->over && !r->why[0]))
        play_in_child(rule, seeds > SEEDS_MANY ? seeds : 1,
                      seeds > SEEDS_MANY ? seeds + SEEDS_BEHIND : seeds, r);
    if (r->why[0])
        printf("%-*s %4d  %s\n", NAME_LEN, m->name, r->seed, r->why);
    else if (r->over)
        printf("%-*s    -  NOT NOTICED in %d seeds: %s\n", NAME_LEN, m->name, seeds, m->what);
    else
        printf("%-*s %4d  DIED without a sentence: %s\n", NAME_LEN, m->name, r->seed, m->what);
    return r->why[0] != '\0';
}

/* With every rule kept these seeds must find nothing. */
static bool check_sound(const int *seeds, int n, result *r)
{
    for (int i = 0; i < n; i++) {
        play_in_child(ST_MUTANT_NONE, seeds[i], seeds[i], r);
        if (r->over && !r->why[0])
            continue;
        printf("with no rule broken, seed %d fails: %s\n", r->seed, r->why);
        return false;
    }
    return true;
}

/* Breaks every rule. */
static int hunt_all(result *r, int *ret_missed)
{
    int told[SEEDS_KEPT], n = 0;
    _Static_assert(ST_MUTANT_COUNT <= SEEDS_KEPT, "one seed of each rule has room");
    *ret_missed = 0;
    for (int rule = 1; rule < ST_MUTANT_COUNT; rule++) {
        if (!hunt(rule, r)) {
            ++*ret_missed;
            continue;
        }
        int k = 0;
        while (k < n && told[k] != r->seed)
            k++;
        told[k] = r->seed;
        n += k == n;
    }
    if (!seldom && !check_sound(told, n, r))
        ++*ret_missed;
    return ST_MUTANT_COUNT - 1;
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
    if (argc > 1 && (strcmp(argv[1], "--seldom") == 0 || strcmp(argv[1], "--from-one") == 0)) {
        seldom = strcmp(argv[1], "--seldom") == 0;
        from_one = !seldom;
        argc--;
        argv++;
    }
    printf("%-*s SEED  NOTICED AS\n", NAME_LEN, "BROKEN RULE");
    if (argc == 1)
        n = hunt_all(r, &missed);
    for (int i = 1; i < argc; i++, n++)
        missed += !hunt(find(argv[i]), r);
    printf("%d broken rules, %d not noticed\n", n, missed);
    return missed > 0;
}
