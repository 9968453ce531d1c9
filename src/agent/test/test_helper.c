/*
 * Programs that outlive the agent: seen running, seen done, seen dead; with nothing of ours in them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/helper.h"
#include "base/testing.h"

typedef struct world {
    char dir[64];
} world;

static int begin(void **state)
{
    world *w = calloc(1, sizeof *w);

    strcpy(w->dir, "/tmp/st-helper-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    *state = w;
    return 0;
}

static int end(void **state)
{
    world *w = *state;
    char command[128];

    snprintf(command, sizeof command, "rm -r %s", w->dir);
    assert_int_equal(system(command), 0);
    free(w);
    return 0;
}

static int start(const world *w, const char *script, st_err *err)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL}, *env[] = {"GIVEN=yes", NULL};

    return st_helper_start(w->dir, "h", ST_HELPER_ALL, argv, env, err);
}

static void runs_and_answers(void **state)
{
    world *w = *state;
    json_t *said = NULL;
    st_err err = {0};

    assert_int_equal(st_helper_look(w->dir, "h", &said), ST_HELPER_NONE);
    assert_ok(start(w, "sleep 0.3; echo '{\"ok\": true}'", &err));
    assert_int_equal(st_helper_look(w->dir, "h", &said), ST_HELPER_RUNNING);
    assert_fails(start(w, "true", &err), ST_EIO, "helpers/h");
    assert_int_equal(st_helper_wait(w->dir, "h", 10000, &said), ST_HELPER_DONE);
    assert_true(json_is_true(json_object_get(said, "ok")));
    json_decref(said);
    st_helper_forget(w->dir, "h");
    assert_int_equal(st_helper_look(w->dir, "h", &said), ST_HELPER_NONE);
}

static void dies_without_a_word(void **state)
{
    world *w = *state;
    const char *nothing[] = {"/nonexistent/program", NULL};
    json_t *said = NULL;
    st_err err = {0};

    assert_ok(start(w, "printf '{\"ok\": tr'; kill -9 $$", &err));
    assert_int_equal(st_helper_wait(w->dir, "h", 10000, &said), ST_HELPER_NONE);
    assert_ok(start(w, "echo '{}'", &err)); /* and may be begun again */
    assert_int_equal(st_helper_wait(w->dir, "h", 10000, &said), ST_HELPER_DONE);
    json_decref(said);
    assert_fails(st_helper_start(w->dir, "n", ST_HELPER_ALL, nothing, NULL, &err), ST_EDOWN,
                 "/nonexistent");
}

/* It is nobody's child, and has neither our variables nor our files. */
static void is_on_its_own(void **state)
{
    world *w = *state;
    json_t *said = NULL;
    st_err err = {0};
    int mine = dup2(1, 40);

    setenv("SECRET", "x", 1);
    assert_ok(start(w,
                    "echo \"{\\\"fds\\\": \\\"$(ls /proc/$$/fd | tr '\\n' ' ')\\\", "
                    "\\\"secret\\\": \\\"$SECRET\\\", \\\"given\\\": \\\"$GIVEN\\\"}\"",
                    &err));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(st_helper_wait(w->dir, "h", 10000, &said), ST_HELPER_DONE);
    assert_string_equal(json_string_value(json_object_get(said, "secret")), "");
    assert_string_equal(json_string_value(json_object_get(said, "given")), "yes");
    assert_null(strstr(json_string_value(json_object_get(said, "fds")), "40"));
    json_decref(said);
    close(mine);
}

/* Nothing of what we may do, not for what it starts either. */
static void it_has_the_rights_it_is_given(void **state)
{
    world *w = *state;
    const char *argv[] = {"/bin/sh", "-c",
                          "sed -n 's/^Cap\\(Eff\\|Bnd\\):\\t0*$/0/p; s/^NoNewPrivs:\\t//p' "
                          "/proc/self/status | tr -d '\\n' | sed 's/.*/{\"has\":\"&\"}/'",
                          NULL};
    json_t *said = NULL;
    st_err err = {0};

    assert_ok(st_helper_start(w->dir, "bare", 0, argv, NULL, &err));
    assert_int_equal(st_helper_wait(w->dir, "bare", 10000, &said), ST_HELPER_DONE);
    assert_string_equal(json_string_value(json_object_get(said, "has")), "001");
    json_decref(said);
    st_helper_forget(w->dir, "bare");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(runs_and_answers),
        TEST(dies_without_a_word),
        TEST(is_on_its_own),
        TEST(it_has_the_rights_it_is_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
