/*
 * Scripts as jobs: which words their lines become, what of Slurm's is translated, left out and refused, and what the job runs.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/testing.h"
#include "cli/script.h"

typedef struct world {
    char path[40];
    FILE *notes;
    char *said;
    size_t nsaid;
    st_script script;
    st_err err;
} world;

static int set_up(void **state)
{
    world *w = st_xcalloc(1, sizeof *w);

    w->notes = open_memstream(&w->said, &w->nsaid);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;

    st_script_done(&w->script);
    fclose(w->notes);
    free(w->said);
    free(w);
    return 0;
}

static int read_with(world *w, const char *text, int nargs, char **args)
{
    FILE *f;
    int fd, r;

    snprintf(w->path, sizeof w->path, "/tmp/stint-script-XXXXXX.sh");
    fd = mkstemps(w->path, 3);
    assert_true(fd >= 0);
    f = fdopen(fd, "w");
    fputs(text, f);
    fclose(f);
    st_script_done(&w->script);
    assert_true(st_script_is(w->path) || strncmp(text, "#!", 2) != 0);
    r = st_script_read(w->path, "submit", nargs, args, w->notes, &w->script, &w->err);
    unlink(w->path);
    fflush(w->notes);
    return r;
}

/* The words of all lines, with the verb of each. */
static const char *words(const world *w, char *buf, size_t size)
{
    size_t n = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < w->script.lines.n; i++)
        for (size_t k = 0; k < w->script.lines.v[i].words.n; k++)
            n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? " " : "",
                                  w->script.lines.v[i].words.v[k]);
    return buf;
}

static void its_lines_are_options(void **state)
{
    world *w = *state;
    char buf[512];
    st_err err = {0};

    assert_ok(read_with(w,
                        "#!/bin/sh\n# a comment\n#STINT --gpus 2 --name 'my job'  # that many\n\n"
                        "#STINT --label \"team=a b\" -l 2h\necho hello\n#STINT --gpus 8\n",
                        0, NULL));
    assert_string_equal(words(w, buf, sizeof buf),
                        "submit --gpus 2 --name my job submit --label team=a b -l 2h");
    assert_int_equal(w->script.lines.v[0].line, 3);
    assert_non_null(strstr(w->script.text, "echo hello\n#STINT --gpus 8\n"));
    assert_int_equal(strncmp(w->script.text, "#!/bin/sh\n# a comment\n", 22), 0);
    assert_int_equal(w->nsaid, 0);
}

typedef struct slurm_case {
    const char *lines, *words;
} slurm_case;

static const slurm_case slurm_cases[] = {
    {"#SBATCH --nodes=4 --gres=gpu:h100:8\n#SBATCH -t 12:00:00\n",
     "submit --tasks 4 --gpus 8 --type h100 --limit 12h"},
    {"#SBATCH -N2 --ntasks-per-node=4 --gpus-per-node=8 --mem=512G\n",
     "submit --tasks 8 --gpus 2 --ram 131072Mi"},
    {"#SBATCH -n 8 -G 16 --cpus-per-task 4 --mem-per-cpu=2G\n",
     "submit --tasks 8 --gpus 2 --cpu 4 --ram 8192Mi"},
    {"#SBATCH --gpus-per-task=2 --mem-per-gpu 8000\n", "submit --tasks 1 --gpus 2 --ram 16000Mi"},
    {"#SBATCH --mem=0\n", "submit --tasks 1 --gpus 0"},
    {"#SBATCH --time=90\n", "submit --tasks 1 --gpus 0 --limit 1h30m"},
    {"#SBATCH --time=1:30\n", "submit --tasks 1 --gpus 0 --limit 1m30s"},
    {"#SBATCH --time=2-12\n", "submit --tasks 1 --gpus 0 --limit 2d12h"},
    {"#SBATCH --time=1-02:03:04\n", "submit --tasks 1 --gpus 0 --limit 1d2h3m4s"},
    {"#SBATCH --time=UNLIMITED\n", "submit --tasks 1 --gpus 0"},
    {"#SBATCH -a 0-99:3%8\n", "submit --tasks 1 --gpus 0 --array 0-99x3%8"},
    {"#SBATCH --array=5\n", "submit --tasks 1 --gpus 0 --array 5-5"},
    {"#SBATCH -d afterok:j1:j2,afterany:j3\n",
     "submit --tasks 1 --gpus 0 --after-ok j1,j2 --after j3"},
    {"#SBATCH --begin=now+2hours --deadline=2026-12-01T09:00:00\n",
     "submit --tasks 1 --gpus 0 --begin +2h --end-by 2026-12-01 09:00:00"},
    {"#SBATCH -x n1,n2 --export=NONE,A=1 --signal=B:USR1@60\n",
     "submit --tasks 1 --gpus 0 --exclude-node n1 --exclude-node n2 --env A=1 --signal USR1"},
    {"#SBATCH -J name -A acc -p pool -q cls -H --no-requeue\n",
     "submit --tasks 1 --gpus 0 --name name --account acc --pool pool --class cls --hold "
     "--on-fault=fail"},
    {"#STINT --gpus 1\n#SBATCH --gres=gpu:2\n", "submit --tasks 1 --gpus 2 submit --gpus 1"},
    {"##SBATCH --gres=gpu:2\n#SBATCHED\n", ""},
};

static void slurms_lines_are_translated(void **state)
{
    world *w = *state;
    char buf[512], text[512];
    st_err err = {0};

    for (size_t i = 0; i < ST_ARRAY_LEN(slurm_cases); i++) {
        snprintf(text, sizeof text, "#!/bin/bash\n%strue\n", slurm_cases[i].lines);
        err = (st_err){0};
        assert_ok(read_with(w, text, 0, NULL));
        assert_string_equal(words(w, buf, sizeof buf), slurm_cases[i].words);
    }
}

static const slurm_case bad_lines[] = {
    {"#SBATCH --licenses=a\n", ":2: #SBATCH \"--licenses=a\" has no counterpart"},
    {"#SBATCH -Z\n", "has no counterpart"},
    {"#SBATCH word\n", "has no counterpart"},
    {"#SBATCH -\n", "has no counterpart"},
    {"#SBATCH --nodes\n", "--nodes needs a value"},
    {"#SBATCH --nodes=1-4\n", ":2: --nodes: "},
    {"#SBATCH --nodes=0\n", ":2: --nodes: "},
    {"#SBATCH --gres=fpga:1\n", "only GPUs are known"},
    {"#SBATCH --mem=4X\n", "is no size"},
    {"#SBATCH --mem=G\n", "is no size"},
    {"#SBATCH --mem=9999999999999999999999G\n", "out of range"},
    {"#SBATCH --time=a\n", "--time: "},
    {"#SBATCH --time=1:2:3:4\n", "is no time"},
    {"#SBATCH --time=\n", "is no time"},
    {"#SBATCH -d singleton\n", "there are afterany"},
    {"#SBATCH -d afterok:1?afterok:2\n", "not for any"},
    {"#SBATCH -x n[1-3]\n", "one by one"},
    {"#SBATCH -n 3 -G 8\n", "8 GPUs cannot be divided among 3 tasks"},
    {"#SBATCH --comment='open\n", "a ' is not closed"},
    {"#STINT \"open\n", ":2: a \" is not closed"},
};

static void what_is_wrong_is_said_with_its_line(void **state)
{
    world *w = *state;
    char text[512];

    for (size_t i = 0; i < ST_ARRAY_LEN(bad_lines); i++) {
        snprintf(text, sizeof text, "#!/bin/bash\n%strue\n", bad_lines[i].lines);
        if (read_with(w, text, 0, NULL) == 0 || !strstr(w->err.msg, bad_lines[i].words))
            fail_msg("%s: %s", bad_lines[i].lines, w->err.msg);
        assert_null(w->script.text);
    }
}

static void what_has_no_meaning_is_named(void **state)
{
    world *w = *state;
    st_err err = {0};

    assert_ok(read_with(
        w, "#!/bin/sh\n#SBATCH -o out.%j --mail-user=a@b\n#SBATCH --export=ALL\ntrue\n", 0, NULL));
    assert_non_null(strstr(w->said, ":2: --output is left out: output is kept for you"));
    assert_non_null(strstr(w->said, ":2: --mail-user is left out"));
    assert_non_null(strstr(w->said, ":3: a job does not get this machine's environment"));
    assert_non_null(strstr(w->said, "its #SBATCH lines mean: --tasks 1 --gpus 0\n"));
}

/* What a shell is told to do first is done by a real one. */
static void run(const world *w, const char *before, char *out, size_t size)
{
    char path[] = "/tmp/stint-ran-XXXXXX", command[128];
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w"), *p;
    size_t n;

    fputs(w->script.text, f);
    fclose(f);
    snprintf(command, sizeof command, "%s sh %s 2>&1", before, path);
    p = popen(command, "r");
    n = fread(out, 1, size - 1, p);
    out[n] = '\0';
    pclose(p);
    unlink(path);
}

static void a_shell_gets_arguments_and_slurms_variables(void **state)
{
    world *w = *state;
    char lr[] = "--lr", odd[] = "it's $HOME; `x`", none[] = "", out[512];
    char *args[] = {lr, odd, none};
    st_err err = {0};

    assert_ok(read_with(w, "#!/bin/sh\necho \"$#:$1:$2:$3\"\n", 3, args));
    run(w, "", out, sizeof out);
    assert_string_equal(out, "3:--lr:it's $HOME; `x`:\n");
    assert_ok(
        read_with(w,
                  "#!/usr/bin/env -S bash\n#SBATCH -N 2 --gres=gpu:8\n"
                  "srun --ntasks=2 -n 2 -u echo \"$SLURM_JOB_ID $SLURM_NODEID/$SLURM_NNODES $1\"\n"
                  "scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1\n"
                  "echo ${SLURM_ARRAY_TASK_ID-none}\n",
                  1, args));
    run(w, "STINT_JOB=j1 NODE_RANK=1 STINT_TASK_ADDRESSES=10.0.0.1,10.0.0.2", out, sizeof out);
    assert_string_equal(out, "j1 1/2 --lr\n10.0.0.1\nnone\n");
    run(w, "STINT_ARRAY_INDEX=7", out, sizeof out);
    assert_non_null(strstr(out, "\n7\n"));
}

static void only_a_shell_can_be_given_arguments(void **state)
{
    world *w = *state;
    char word[] = "x", *args[] = {word};
    st_err err = {0};

    assert_ok(read_with(w, "#!/usr/bin/env python3\n#SBATCH --gres=gpu:1\nprint(1)\n", 0, NULL));
    assert_string_equal(w->script.text, "#!/usr/bin/env python3\n#SBATCH --gres=gpu:1\nprint(1)\n");
    assert_int_not_equal(read_with(w, "#!/usr/bin/env python3\nprint(1)\n", 1, args), 0);
    assert_non_null(strstr(w->err.msg, "is no shell script"));
}

static void only_scripts_are_scripts(void **state)
{
    world *w = *state;

    assert_false(st_script_is("/nowhere"));
    assert_false(st_script_is("/"));
    assert_false(st_script_is("/dev/zero"));
    assert_false(st_script_is("/proc/self/exe"));
    assert_int_not_equal(read_with(w, "#!/bin/sh\n\xff\n", 0, NULL), 0);
    assert_non_null(strstr(w->err.msg, "UTF-8"));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(its_lines_are_options),
        TEST(slurms_lines_are_translated),
        TEST(what_is_wrong_is_said_with_its_line),
        TEST(what_has_no_meaning_is_named),
        TEST(a_shell_gets_arguments_and_slurms_variables),
        TEST(only_a_shell_can_be_given_arguments),
        TEST(only_scripts_are_scripts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
