/*
 * From #SBATCH lines to options of ours (cli/sbatch.h). One row for each option of sbatch's; what one row cannot know (how many
 * tasks there are, how much memory each has) is made from the sums at the end.
 */
#include "cli/sbatch.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "base/suggest.h"

#define COUNT_MAX 1000000
#define PER_NODE  0
#define PER_CPU   1
#define PER_GPU   2

struct st_sbatch {
    const char *path;
    FILE *notes;
    int line;
    int64_t nodes, tasks, tasks_per_node, cpus, gpus, gpus_per_node,
        gpus_per_task; /* 0: not said */
    int64_t mib;       /* 0: not said */
    int mib_per;
    char *type;
    st_script_line words; /* what needs no sums */
};

static void say(st_sbatch *s, const char *option, const char *value)
{
    st_vec_push(&s->words.words, st_xstrdup(option));
    if (value)
        st_vec_push(&s->words.words, st_xstrdup(value));
}

/* ---- values --------------------------------------------------------------------------------------- */

typedef int take_fn(st_sbatch *s, const char *value, st_err *err);

static int count_into(const char *value, int64_t *into, st_err *err)
{
    return st_parse_i64(value, 1, COUNT_MAX, into, err);
}

static int take_nodes(st_sbatch *s, const char *value, st_err *err)
{
    return count_into(value, &s->nodes, err);
}

static int take_tasks(st_sbatch *s, const char *value, st_err *err)
{
    return count_into(value, &s->tasks, err);
}

static int take_tasks_per_node(st_sbatch *s, const char *value, st_err *err)
{
    return count_into(value, &s->tasks_per_node, err);
}

static int take_cpus(st_sbatch *s, const char *value, st_err *err)
{
    return count_into(value, &s->cpus, err);
}

/* 4, or h100:4. */
static int gpus_into(st_sbatch *s, const char *value, int64_t *into, st_err *err)
{
    const char *colon = strrchr(value, ':');

    if (colon) {
        free(s->type);
        s->type = st_xstrndup(value, (size_t)(colon - value));
    }
    return st_parse_i64(colon ? colon + 1 : value, 0, COUNT_MAX, into, err);
}

static int take_gpus(st_sbatch *s, const char *value, st_err *err)
{
    return gpus_into(s, value, &s->gpus, err);
}

static int take_gpus_per_node(st_sbatch *s, const char *value, st_err *err)
{
    return gpus_into(s, value, &s->gpus_per_node, err);
}

static int take_gpus_per_task(st_sbatch *s, const char *value, st_err *err)
{
    return gpus_into(s, value, &s->gpus_per_task, err);
}

/* gpu, gpu:4 or gpu:h100:4. */
static int take_gres(st_sbatch *s, const char *value, st_err *err)
{
    char q[ST_QUOTE_MAX];

    if (strchr(value, ',') || (strcmp(value, "gpu") != 0 && strncmp(value, "gpu:", 4) != 0))
        return st_fail(err, ST_EINVAL, "%s: only GPUs are known, as gpu:4 or gpu:h100:4",
                       st_quote(q, value));
    if (!value[3]) {
        s->gpus_per_node = 1;
        return 0;
    }
    return gpus_into(s, value + 4, &s->gpus_per_node, err);
}

/* Slurm's sizes are MiB where no unit is given; 0 is all there is. */
static int mib_into(st_sbatch *s, const char *value, int per, st_err *err)
{
    static const char units[] = "KMGT";
    char number[24], q[ST_QUOTE_MAX];
    size_t n = strspn(value, "0123456789");
    const char *unit = value[n] ? strchr(units, value[n] & ~0x20) : units + 1;
    int64_t amount;

    if (n == 0 || n >= sizeof number || !unit || (value[n] && value[n + 1]))
        return st_fail(err, ST_EINVAL, "%s is no size, as 64G", st_quote(q, value));
    snprintf(number, sizeof number, "%.*s", (int)n, value);
    if (st_parse_i64(number, 0, INT64_C(1) << 30, &amount, err) < 0)
        return -ST_EINVAL;
    s->mib = unit == units ? (amount + 1023) / 1024 : amount << (10 * (unit - units - 1));
    s->mib_per = per;
    return 0;
}

static int take_mem(st_sbatch *s, const char *value, st_err *err)
{
    return mib_into(s, value, PER_NODE, err);
}

static int take_mem_per_cpu(st_sbatch *s, const char *value, st_err *err)
{
    return mib_into(s, value, PER_CPU, err);
}

static int take_mem_per_gpu(st_sbatch *s, const char *value, st_err *err)
{
    return mib_into(s, value, PER_GPU, err);
}

/* minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]] */
static int take_time(st_sbatch *s, const char *value, st_err *err)
{
    static const int64_t without_days[4][3] = {{0}, {60}, {60, 1}, {3600, 60, 1}};
    static const int64_t with_days[3] = {3600, 60, 1};
    const char *dash = strchr(value, '-');
    ST_CLEANUP(st_freep) char *rest = st_xstrdup(dash ? dash + 1 : value);
    char *save = NULL, q[ST_QUOTE_MAX], text[ST_FMT_MAX], *part[3];
    int64_t seconds = 0, n;
    int parts = 0;

    if (strcasecmp(value, "unlimited") == 0 || strcasecmp(value, "infinite") == 0)
        return 0;
    if (dash) {
        ST_CLEANUP(st_freep) char *days = st_xstrndup(value, (size_t)(dash - value));

        if (st_parse_i64(days, 0, 3650, &n, err) < 0)
            return -ST_EINVAL;
        seconds = n * 86400;
    }
    for (char *word = strtok_r(rest, ":", &save); word; word = strtok_r(NULL, ":", &save)) {
        if (parts < 3)
            part[parts] = word;
        parts++;
    }
    if (parts == 0 || parts > 3)
        return st_fail(err, ST_EINVAL, "%s is no time, as 90, 12:00:00 or 2-00:00:00",
                       st_quote(q, value));
    for (int i = 0; i < parts; i++) {
        if (st_parse_i64(part[i], 0, 10000000, &n, err) < 0)
            return -ST_EINVAL;
        seconds += n * (dash ? with_days : without_days[parts])[i];
    }
    say(s, "--limit", st_fmt_duration(text, seconds * 1000));
    return 0;
}

/* 5 is the index 5; a step is written :2 there and x2 here. */
static int take_array(st_sbatch *s, const char *value, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    (void)err;
    if (value[strspn(value, "0123456789")] == '\0' || value[strspn(value, "0123456789")] == '%')
        st_strbuf_addf(&out, "%.*s-", (int)strspn(value, "0123456789"), value);
    for (; *value; value++)
        st_strbuf_addc(&out, *value == ':' ? 'x' : *value);
    say(s, "--array", st_strbuf_str(&out));
    return 0;
}

/* afterok:20:21,afterany:22 */
static int take_dependency(st_sbatch *s, const char *value, st_err *err)
{
    static const char *const kinds[][2] = {{"after", "--after"},
                                           {"afterany", "--after"},
                                           {"afterok", "--after-ok"},
                                           {"afternotok", "--after-fail"}};
    ST_CLEANUP(st_freep) char *copy = st_xstrdup(value);
    char *save = NULL, q[ST_QUOTE_MAX];

    if (strchr(value, '?'))
        return st_fail(err, ST_EINVAL, "%s: a job waits for all it names, not for any",
                       st_quote(q, value));
    for (char *one = strtok_r(copy, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
        char *ids = strchr(one, ':');
        size_t k = 0;

        if (ids)
            *ids++ = '\0';
        while (k < ST_ARRAY_LEN(kinds) && strcmp(one, kinds[k][0]) != 0)
            k++;
        if (!ids || k == ST_ARRAY_LEN(kinds) || strcmp(one, "after") == 0)
            return st_fail(
                err, ST_EINVAL,
                "dependency %s: there are afterany, afterok and afternotok, each with ids",
                st_quote(q, one));
        for (char *c = ids; *c; c++)
            *c = *c == ':' ? ',' : *c;
        say(s, kinds[k][1], ids);
    }
    return 0;
}

/* now+2hours, 2026-12-01T09:00:00, 16:00 */
static int take_begin(st_sbatch *s, const char *value, st_err *err)
{
    static const struct {
        const char *word, *unit;
    } units[] = {{"", "s"},        {"second", "s"}, {"seconds", "s"}, {"minute", "m"},
                 {"minutes", "m"}, {"hour", "h"},   {"hours", "h"},   {"day", "d"},
                 {"days", "d"},    {"week", "w"},   {"weeks", "w"}};
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    char q[ST_QUOTE_MAX], *t;

    if (strncmp(value, "now+", 4) == 0) {
        size_t n = strspn(value + 4, "0123456789"), u = 0;

        while (u < ST_ARRAY_LEN(units) && strcmp(value + 4 + n, units[u].word) != 0)
            u++;
        if (n == 0 || u == ST_ARRAY_LEN(units))
            return st_fail(err, ST_EINVAL, "%s is no time, as now+2hours", st_quote(q, value));
        st_strbuf_addf(&out, "+%.*s%s", (int)n, value + 4, units[u].unit);
    } else {
        st_strbuf_add(&out, value);
        t = strchr(out.s, 'T');
        if (t && t > out.s && t[-1] >= '0' && t[-1] <= '9')
            *t = ' ';
    }
    say(s, "--begin", st_strbuf_str(&out));
    return 0;
}

static int take_deadline(st_sbatch *s, const char *value, st_err *err)
{
    int r = take_begin(s, value, err);

    if (r == 0) {
        free(s->words.words.v[s->words.words.n - 2]);
        s->words.words.v[s->words.words.n - 2] = st_xstrdup("--end-by");
    }
    return r;
}

static int take_exclude(st_sbatch *s, const char *value, st_err *err)
{
    ST_CLEANUP(st_freep) char *copy = st_xstrdup(value);
    char *save = NULL, q[ST_QUOTE_MAX];

    if (strchr(value, '['))
        return st_fail(err, ST_EINVAL, "%s: write the nodes one by one, with commas",
                       st_quote(q, value));
    for (char *node = strtok_r(copy, ",", &save); node; node = strtok_r(NULL, ",", &save))
        say(s, "--exclude-node", node);
    return 0;
}

static int take_export(st_sbatch *s, const char *value, st_err *err)
{
    ST_CLEANUP(st_freep) char *copy = st_xstrdup(value);
    char *save = NULL;

    (void)err;
    for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        if (strcmp(word, "ALL") == 0)
            fprintf(
                s->notes,
                "stint: %s:%d: a job does not get this machine's environment: name the variables "
                "(#STINT --env NAME)\n",
                s->path, s->line);
        else if (strcmp(word, "NONE") != 0 && strcmp(word, "NIL") != 0)
            say(s, "--env", word);
    }
    return 0;
}

/* [B:]USR1[@60]: when it comes is the policy's notice. */
static int take_signal(st_sbatch *s, const char *value, st_err *err)
{
    const char *colon = strchr(value, ':'), *name = colon ? colon + 1 : value;
    ST_CLEANUP(st_freep) char *word = st_xstrndup(name, strcspn(name, "@"));

    (void)err;
    say(s, "--signal", word);
    return 0;
}

/* ---- the table ------------------------------------------------------------------------------------ */

#define VALUE true
#define ALONE false
#define SAME  "what Slurm means by it"

/* X(long, letter, takes a value, option of ours or NULL, function or NULL, about). With neither an option nor a function it means
 * nothing here, and `about` says what there is instead. */
#define SBATCH_TABLE(X)                                                                           \
    X("job-name", 'J', VALUE, "--name", NULL, "`--name`")                                         \
    X("account", 'A', VALUE, "--account", NULL, "`--account`")                                    \
    X("partition", 'p', VALUE, "--pool", NULL, "`--pool`")                                        \
    X("qos", 'q', VALUE, "--class", NULL, "`--class`")                                            \
    X("nodes", 'N', VALUE, NULL, take_nodes, "`--tasks`, unless tasks are counted")               \
    X("ntasks", 'n', VALUE, NULL, take_tasks, "`--tasks`")                                        \
    X("ntasks-per-node", 0, VALUE, NULL, take_tasks_per_node, "`--tasks`, times the nodes")       \
    X("cpus-per-task", 'c', VALUE, NULL, take_cpus, "`--cpu`")                                    \
    X("gres", 0, VALUE, NULL, take_gres,                                                          \
      "`--gpus`: the GPUs of a node, divided among its tasks; `--type`")                          \
    X("gpus-per-node", 0, VALUE, NULL, take_gpus_per_node,                                        \
      "`--gpus`: the GPUs of a node, divided among its tasks; `--type`")                          \
    X("gpus", 'G', VALUE, NULL, take_gpus, "`--gpus`: divided among all tasks; `--type`")         \
    X("gpus-per-task", 0, VALUE, NULL, take_gpus_per_task, "`--gpus`, `--type`")                  \
    X("mem", 0, VALUE, NULL, take_mem, "`--ram`: the memory of a node, divided among its tasks")  \
    X("mem-per-cpu", 0, VALUE, NULL, take_mem_per_cpu, "`--ram`, times the CPUs of a task")       \
    X("mem-per-gpu", 0, VALUE, NULL, take_mem_per_gpu, "`--ram`, times the GPUs of a task")       \
    X("time", 't', VALUE, NULL, take_time, "`--limit`")                                           \
    X("array", 'a', VALUE, NULL, take_array, "`--array`")                                         \
    X("dependency", 'd', VALUE, NULL, take_dependency, "`--after`, `--after-ok`, `--after-fail`") \
    X("begin", 'b', VALUE, NULL, take_begin, "`--begin`")                                         \
    X("deadline", 0, VALUE, NULL, take_deadline, "`--end-by`")                                    \
    X("exclude", 'x', VALUE, NULL, take_exclude, "`--exclude-node`")                              \
    X("export", 0, VALUE, NULL, take_export,                                                      \
      "`--env`; other variables of your shell are not passed")                                    \
    X("signal", 0, VALUE, NULL, take_signal, "`--signal`; the policy says how long before")       \
    X("reservation", 0, VALUE, "--booking", NULL, "`--booking`")                                  \
    X("chdir", 'D', VALUE, "--workdir", NULL, "`--workdir`")                                      \
    X("comment", 0, VALUE, "--comment", NULL, "`--comment`")                                      \
    X("hold", 'H', ALONE, "--hold", NULL, "`--hold`")                                             \
    X("wait", 'W', ALONE, "--wait", NULL, "`--wait`")                                             \
    X("test-only", 0, ALONE, "--dry-run", NULL, "`--dry-run`")                                    \
    X("requeue", 0, ALONE, "--on-preempt=requeue", NULL, "`--on-preempt requeue`")                \
    X("no-requeue", 0, ALONE, "--on-fault=fail", NULL, "`--on-fault fail`")                       \
    X("output", 'o', VALUE, NULL, NULL, "output is kept for you: `stint logs ID`")                \
    X("error", 'e', VALUE, NULL, NULL, "errors stand in the output: `stint logs ID`")             \
    X("open-mode", 0, VALUE, NULL, NULL, "output is kept for you: `stint logs ID`")               \
    X("mail-type", 0, VALUE, NULL, NULL, "mail is for the account to set up: `stint notice`")     \
    X("mail-user", 0, VALUE, NULL, NULL, "mail is for the account to set up: `stint notice`")     \
    X("exclusive", 0, ALONE, NULL, NULL,                                                          \
      "whole GPUs are never shared, and CPUs and memory are yours")                               \
    X("nice", 0, VALUE, NULL, NULL, "`--priority` orders the jobs of your account")               \
    X("cpu-bind", 0, VALUE, NULL, NULL, "the agent pins a task beside its GPUs")                  \
    X("gpu-bind", 0, VALUE, NULL, NULL, "a task has its own GPUs")                                \
    X("mem-bind", 0, VALUE, NULL, NULL, "the agent pins a task beside its GPUs")                  \
    X("distribution", 'm', VALUE, NULL, NULL, "`--topology` says how close tasks are")            \
    X("hint", 0, VALUE, NULL, NULL, "the agent pins a task beside its GPUs")                      \
    X("threads-per-core", 0, VALUE, NULL, NULL, "CPUs are counted as the system counts them")     \
    X("get-user-env", 0, ALONE, NULL, NULL, "the image brings the environment")                   \
    X("verbose", 'v', ALONE, NULL, NULL, "`stint show ID` has everything")                        \
    X("parsable", 0, ALONE, NULL, NULL, "only the id is on standard output anyway")               \
    X("quiet", 'Q', ALONE, NULL, NULL, "only the id is on standard output anyway")

typedef struct sbatch_row {
    const char *name;
    char letter;
    bool value;
    const char *option;
    take_fn *take;
    const char *about;
} sbatch_row;

static const sbatch_row rows[] = {
#define X(name, letter, value, option, take, about) {name, letter, value, option, take, about},
    SBATCH_TABLE(X)
#undef X
};

const char *st_sbatch_option(size_t i, const char **ret_about)
{
    if (i >= ST_ARRAY_LEN(rows))
        return NULL;
    *ret_about = rows[i].about;
    return rows[i].name;
}

static const sbatch_row *find(const char *word, size_t n)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        if (word[1] == '-'
                ? strlen(rows[i].name) == n - 2 && strncmp(rows[i].name, word + 2, n - 2) == 0
                : rows[i].letter == word[1])
            return &rows[i];
    return NULL;
}

/* ---- lines ---------------------------------------------------------------------------------------- */

static int take_one(st_sbatch *s, const sbatch_row *row, const char *value, st_err *err)
{
    if (row->take) {
        if (row->take(s, value, err) < 0)
            return st_fail_prefix(err, "--%s: ", row->name);
    } else if (row->option) {
        say(s, row->option, row->value ? value : NULL);
    } else {
        fprintf(s->notes, "stint: %s:%d: --%s is left out: %s\n", s->path, s->line, row->name,
                row->about);
    }
    return 0;
}

int st_sbatch_add(st_sbatch *s, const st_script_line *line, st_err *err)
{
    char q[ST_QUOTE_MAX];

    s->line = line->line;
    for (size_t i = 0; i < line->words.n; i++) {
        const char *word = line->words.v[i], *value = NULL;
        size_t n = word[0] && word[1] == '-' ? strcspn(word, "=") : 2;
        const sbatch_row *row = word[0] == '-' && word[1] ? find(word, n) : NULL;

        if (!row)
            return st_fail(
                err, ST_EINVAL,
                "#SBATCH %s has no counterpart that Stint knows; remove it, or say it with a line "
                "#STINT (options of `stint submit`)",
                st_quote(q, word));
        if (word[n])
            value = word + n + (word[n] == '=');
        else if (row->value && i + 1 < line->words.n)
            value = line->words.v[++i];
        if (row->value && !value)
            return st_fail(err, ST_EINVAL, "--%s needs a value", row->name);
        if (take_one(s, row, value, err) < 0)
            return -ST_EINVAL;
    }
    return 0;
}

/* ---- sums ----------------------------------------------------------------------------------------- */

static int64_t tasks_of(const st_sbatch *s)
{
    int64_t nodes = ST_MAX(s->nodes, 1);

    return s->tasks ? s->tasks : s->tasks_per_node ? nodes * s->tasks_per_node : nodes;
}

/* What all nodes have, for each of the tasks. */
static int divide(int64_t sum, int64_t tasks, const char *what, int64_t *ret, st_err *err)
{
    if (sum % tasks)
        return st_fail(err, ST_EINVAL, "%" PRId64 " %s cannot be divided among %" PRId64 " tasks",
                       sum, what, tasks);
    *ret = sum / tasks;
    return 0;
}

/* Where tasks are counted and nodes are not, they are thought to be on one node, as a script with one node is. */
static int gpus_of(const st_sbatch *s, int64_t tasks, int64_t *ret, st_err *err)
{
    if (s->gpus_per_task) {
        *ret = s->gpus_per_task;
        return 0;
    }
    return divide(s->gpus ? s->gpus : s->gpus_per_node * ST_MAX(s->nodes, 1), tasks, "GPUs", ret,
                  err);
}

static void put_count(st_script_line *into, const char *option, int64_t n, const char *unit)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRId64 "%s", n, unit);
    st_vec_push(&into->words, st_xstrdup(option));
    st_vec_push(&into->words, st_xstrdup(text));
}

int st_sbatch_words(st_sbatch *s, st_script_line *into, st_err *err)
{
    int64_t tasks = tasks_of(s), gpus, mib = s->mib;
    int r = gpus_of(s, tasks, &gpus, err);

    if (r < 0)
        return r;
    put_count(into, "--tasks", tasks, "");
    put_count(into, "--gpus", gpus, "");
    if (s->type) {
        st_vec_push(&into->words, st_xstrdup("--type"));
        st_vec_push(&into->words, st_xstrdup(s->type));
    }
    if (s->cpus)
        put_count(into, "--cpu", s->cpus, "");
    if (mib) {
        mib = s->mib_per == PER_CPU   ? mib * ST_MAX(s->cpus, 1)
              : s->mib_per == PER_GPU ? mib * ST_MAX(gpus, 1)
                                      : mib * ST_MAX(s->nodes, 1) / tasks;
        put_count(into, "--ram", mib, "Mi");
    }
    for (size_t i = 0; i < s->words.words.n; i++)
        st_vec_push(&into->words, st_xstrdup(s->words.words.v[i]));
    return 0;
}

void st_sbatch_prologue(const st_sbatch *s, st_strbuf *out)
{
    st_strbuf_addf(
        out,
        "export SLURM_JOB_ID=\"$STINT_JOB\" SLURM_JOBID=\"$STINT_JOB\" SLURM_PROCID=\"${RANK:-0}\" "
        "SLURM_LOCALID=\"${LOCAL_RANK:-0}\" SLURM_NODEID=\"${NODE_RANK:-0}\" SLURM_NTASKS=%" PRId64
        " SLURM_JOB_NUM_NODES=%" PRId64 " SLURM_NNODES=%" PRId64,
        tasks_of(s), ST_MAX(s->nodes, 1), ST_MAX(s->nodes, 1));
    if (s->cpus)
        st_strbuf_addf(out, " SLURM_CPUS_PER_TASK=%" PRId64, s->cpus);
    st_strbuf_add(
        out,
        "; [ -z \"${STINT_ARRAY_INDEX:-}\" ] || export SLURM_ARRAY_TASK_ID=\"$STINT_ARRAY_INDEX\"; "
        "srun() { while [ $# -gt 0 ]; do case $1 in --*=*|--[a-z]*) shift;; -[nNcGptAJwxoeim]) "
        "shift 2;; "
        "-*) shift;; *) break;; esac; done; \"$@\"; }; "
        "export SLURM_JOB_NODELIST=\"${STINT_TASK_ADDRESSES:-127.0.0.1}\"; scontrol() { "
        "[ \"$1 $2\" = 'show hostnames' ] && echo \"${3:-$SLURM_JOB_NODELIST}\" | tr , '\\n'; }\n");
}

st_sbatch *st_sbatch_new(const char *path, FILE *notes)
{
    st_sbatch *s = st_xcalloc(1, sizeof *s);

    s->path = path;
    s->notes = notes;
    return s;
}

void st_sbatch_free(st_sbatch *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->words.words.n; i++)
        free(s->words.words.v[i]);
    st_vec_free(&s->words.words);
    free(s->type);
    free(s);
}
