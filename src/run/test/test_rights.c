/*
 * Giving up capabilities and calls: what a child then has by the kernel's word, and what it is refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing.h"
#include "run/rights.h"

/* A line of /proc/self/status, as a number. */
static unsigned long long word(const char *key)
{
    unsigned long long value = ~0ULL;
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':')
            value = strtoull(line + strlen(key) + 1, NULL, 16);
    if (f)
        fclose(f);
    return value;
}

/* In a child, whose exit says at which line it was wrong. */
#define MUST(what)                     \
    do {                               \
        if (!(what))                   \
            _exit(__LINE__ % 250 + 1); \
    } while (0)

static int in_child(void (*fn)(void))
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        fn();
        _exit(0);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status;
}

static void keeps(void)
{
    unsigned long long had = word("CapEff");
    uint64_t keep = ST_RIGHT(CAP_KILL) | ST_RIGHT(CAP_CHOWN);
    st_err err = {0};

    MUST(st_rights_keep(keep, &err) == 0);
    MUST(word("CapEff") == (had & keep));
    MUST(word("CapPrm") == (had & keep));
    MUST(word("CapInh") == 0 && word("CapAmb") == 0);
    MUST(geteuid() != 0 || (word("CapBnd") & ~keep) == 0);
    MUST(word("NoNewPrivs") == 1);
    MUST(st_rights_keep(0, &err) == 0); /* less is always possible */
    MUST(word("CapEff") == 0);
    MUST(st_rights_keep(keep, &err) == 0); /* and more never */
    MUST(word("CapEff") == 0);
}

static void no_machine(void)
{
    struct timex t = {0};
    st_err err = {0};

    MUST(st_rights_keep(0, &err) == 0);
    MUST(st_rights_machine(&err) == 0);
    MUST(word("Seccomp") == 2);
    MUST(syscall(SYS_adjtimex, &t) == -1 && errno == EPERM); /* which anybody may ask */
    MUST(syscall(SYS_getpid) == getpid());
    MUST(st_rights_machine(&err) == 0); /* a child's own */
}

static void test_keep(void **state)
{
    (void)state;
    assert_int_equal(in_child(keeps), 0);
}

static void test_machine(void **state)
{
    (void)state;
    assert_int_equal(in_child(no_machine), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
