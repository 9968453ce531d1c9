/*
 * stint-init by itself, without a container around it: the job's command begins when the supervisor says so, and never
 * when there is none; a hook hears the runtime out.
 */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing.h"
#include "run/init.h"

typedef struct bench {
    char init[PATH_MAX];
    int said; /* the supervisor's end */
    pid_t pid;
} bench;

/* Beside this test's own program. */
static void find_init(char ret[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 32);

    assert_true(n > 0);
    ret[n] = '\0';
    strcpy(strrchr(ret, '/'), "/stint-init");
}

/* A command that ends with 7. */
static bench begin(void)
{
    bench b = {0};
    int ends[2];

    find_init(b.init);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    b.pid = fork();
    assert_true(b.pid >= 0);
    if (b.pid == 0) {
        /* Not onto itself: that would keep it from being handed on. */
        int high = dup(ends[1]);

        high = high == ST_INIT_FD ? dup(high) : high;
        dup2(high, ST_INIT_FD);
        close_range(ST_INIT_FD + 1, ~0U, 0);
        execl(b.init, b.init, "--", "/bin/sh", "-c", "exit 7", NULL);
        _exit(99);
    }
    close(ends[1]);
    b.said = ends[0];
    return b;
}

static int32_t heard(const bench *b, int flags)
{
    st_init_word word = {0};
    ssize_t n = recv(b->said, &word, sizeof(word), flags);

    return n == (ssize_t)sizeof(word) ? word.kind : 0;
}

static int end_of(const bench *b)
{
    int status;

    assert_int_equal(waitpid(b->pid, &status, 0), b->pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_command_waits_to_be_let_go(void **state)
{
    bench b = begin();

    (void)state;
    assert_int_equal(heard(&b, 0), ST_INIT_READY);
    assert_int_equal(heard(&b, MSG_DONTWAIT), 0);
    assert_int_equal(waitpid(b.pid, NULL, WNOHANG), 0);
    assert_int_equal(write(b.said, "", 1), 1);
    assert_int_equal(heard(&b, 0), ST_INIT_STARTED);
    assert_int_equal(heard(&b, 0), ST_INIT_EXITED);
    assert_int_equal(end_of(&b), 7);
    close(b.said);
}

/* It was killed, or the limit could not be set. */
static void without_a_supervisor_nothing_begins(void **state)
{
    bench b = begin();

    (void)state;
    assert_int_equal(heard(&b, 0), ST_INIT_READY);
    assert_int_equal(shutdown(b.said, SHUT_WR), 0);
    assert_int_equal(heard(&b, 0), 0);
    assert_int_equal(end_of(&b), 126);
    close(b.said);
}

/* More than a pipe holds: who writes it is stuck, or dies of SIGPIPE, unless all is read. */
static void a_hook_reads_what_it_is_told(void **state)
{
    char init[PATH_MAX], line[2 * PATH_MAX];

    (void)state;
    find_init(init);
    snprintf(line, sizeof(line),
             "head -c 1000000 /dev/zero | %s --seal /no/such; exit ${PIPESTATUS[0]}", init);
    char *argv[] = {(char[]){"bash"}, (char[]){"-c"}, line, NULL};
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        execvp(argv[0], argv);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 0); /* the writer's, 141 if it was killed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_waits_to_be_let_go),
        cmocka_unit_test(without_a_supervisor_nothing_begins),
        cmocka_unit_test(a_hook_reads_what_it_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
