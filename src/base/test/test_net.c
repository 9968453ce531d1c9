/*
 * What stays on the machine (base/net.h).
 */
#include "base/net.h"
#include "base/testing.h"

static void this_machine(void **state)
{
    static const char *const texts[] = {"127.0.0.1", "127.0.0.1:80",   "127.9.8.7:1/x",
                                        "localhost", "localhost:7878", "LOCALHOST/",
                                        "[::1]",     "[::1]:80/v1"};

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(texts); i++)
        assert_true(st_net_loopback(texts[i]));
}

static void others(void **state)
{
    static const char *const texts[] = {
        "",
        ":80",
        "0.0.0.0:80",
        "10.0.0.1",
        "127.evil.example",
        "127.0.0.1@evil.example",
        "[::]:80",
        "[::1",
        "[::1]x",
        "localhostess",
        "localhost.evil.example",
        "[fe80::1]",
        "128.0.0.1:1",
        "127.0.0.1.example",
        "user:127.0.0.1@evil.example",
    };

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(texts); i++)
        assert_false(st_net_loopback(texts[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(this_machine), cmocka_unit_test(others)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
