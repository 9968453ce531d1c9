/*
 * Logins: reading, writing, who may read the file, and how the environment is laid over it.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/testing.h"
#include "cli/profile.h"

static const char *const variables[] = {"STINT_URL",     "STINT_TOKEN",    "STINT_CA",
                                        "STINT_PROFILE", "STINT_INSECURE", "STINT_CONFIG"};

typedef struct place {
    char dir[64], path[100];
} place;

static int set_up(void **state)
{
    place *p = st_xcalloc(1, sizeof *p);

    for (size_t i = 0; i < ST_ARRAY_LEN(variables); i++)
        unsetenv(variables[i]);
    snprintf(p->dir, sizeof p->dir, "/tmp/stint-profile-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->path, sizeof p->path, "%s/sub/config", p->dir);
    setenv("STINT_CONFIG", p->path, 1);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    place *p = *state;
    char sub[80];

    snprintf(sub, sizeof sub, "%s/sub", p->dir);
    unlink(p->path);
    rmdir(sub);
    rmdir(p->dir);
    free(p);
    return 0;
}

static void put(st_profiles *all, const char *name, const char *url, const char *token)
{
    st_cli_profile p = {.name = st_xstrdup(name), .url = st_xstrdup(url)};

    if (token)
        p.token = st_xstrdup(token);
    st_profiles_put(all, &p);
    assert_null(p.name);
}

static void save_two(const place *p)
{
    ST_CLEANUP(st_profiles_done) st_profiles all = {.current = st_xstrdup("b \"quoted\"")};
    st_err err = {0};

    put(&all, "default", "http://127.0.0.1:1", "stint_a");
    put(&all, "b \"quoted\"", "https://b.example", "stint_b");
    assert_ok(st_profiles_save(p->path, &all, &err));
}

static void test_round_trip(void **state)
{
    const place *p = *state;
    ST_CLEANUP(st_profiles_done) st_profiles all = {0};
    struct stat st;
    st_err err = {0};

    assert_ok(st_profiles_load(p->path, &all, &err)); /* not there: none */
    assert_int_equal(all.all.n, 0);
    save_two(p);
    assert_int_equal(stat(p->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_ok(st_profiles_load(p->path, &all, &err));
    assert_int_equal(all.all.n, 2);
    assert_string_equal(all.current, "b \"quoted\"");
    assert_string_equal(st_profiles_find(&all, "b \"quoted\"")->token, "stint_b");
    assert_null(st_profiles_find(&all, "default")->ca);
    put(&all, "default", "http://127.0.0.1:2", NULL);
    assert_int_equal(all.all.n, 2);
    assert_string_equal(st_profiles_find(&all, "default")->url, "http://127.0.0.1:2");
    assert_true(st_profiles_remove(&all, "default"));
    assert_false(st_profiles_remove(&all, "default"));
}

static void test_refused(void **state)
{
    const place *p = *state;
    ST_CLEANUP(st_profiles_done) st_profiles all = {0};
    st_err err = {0};
    FILE *f;

    save_two(p);
    assert_int_equal(chmod(p->path, 0640), 0);
    assert_fails(st_profiles_load(p->path, &all, &err), ST_EPERM, "others can read it (mode 0640)");
    assert_int_equal(chmod(p->path, 0600), 0);
    f = fopen(p->path, "w");
    fputs("profiles: {a: {ulr: x}}\n", f);
    fclose(f);
    assert_fails(st_profiles_load(p->path, &all, &err), ST_EINVAL, "did you mean \"url\"?");
    f = fopen(p->path, "w");
    fputs("profiles:\n  a: {token: x}\n", f);
    fclose(f);
    assert_fails(st_profiles_load(p->path, &all, &err), ST_EINVAL, "profile a has no url");
    assert_int_equal(all.all.n, 0);
}

/* The environment wins, but a token never goes where it was not saved for. */
static void test_now(void **state)
{
    const place *p = *state;
    st_cli_profile now = {0};
    st_err err = {0};

    assert_fails(st_profile_now(&now, &err), ST_EINVAL, "where is stintd?");
    save_two(p);
    assert_ok(st_profile_now(&now, &err));
    assert_string_equal(now.token, "stint_b");
    st_profile_done(&now);

    setenv("STINT_PROFILE", "default", 1);
    assert_ok(st_profile_now(&now, &err));
    assert_string_equal(now.url, "http://127.0.0.1:1");
    st_profile_done(&now);
    setenv("STINT_TOKEN", "stint_env", 1);
    setenv("STINT_CA", "/ca.pem", 1);
    assert_ok(st_profile_now(&now, &err));
    assert_string_equal(now.token, "stint_env");
    assert_string_equal(now.ca, "/ca.pem");
    st_profile_done(&now);
    unsetenv("STINT_TOKEN");

    setenv("STINT_URL", "http://localhost:9", 1);
    assert_ok(st_profile_now(&now, &err));
    assert_string_equal(now.url, "http://localhost:9");
    assert_null(now.token);
    st_profile_done(&now);
    setenv("STINT_PROFILE", "none", 1);
    assert_fails(st_profile_now(&now, &err), ST_ENOENT, "there is no login \"none\"");
}

static void test_urls(void **state)
{
    static const char *const good[] = {"https://a", "http://127.0.0.1:1", "http://localhost",
                                       "http://[::1]:7", "unix:/run/stintd.sock"};
    static const char *const bad[] = {"", "a", "unix:", "ftp://a", "https://", "http://"};
    static const char *const open[] = {"http://a", "http://localhost.evil.example",
                                       "http://10.0.0.1:80"};
    st_err err = {0};

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(good); i++)
        assert_ok(st_profile_check_url(good[i], &err));
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_fails(st_profile_check_url(bad[i], &err), ST_EINVAL, "is no address of stintd");
    for (size_t i = 0; i < ST_ARRAY_LEN(open); i++)
        assert_fails(st_profile_check_url(open[i], &err), ST_EINVAL, "in the clear");
    setenv("STINT_INSECURE", "1", 1);
    assert_ok(st_profile_check_url(open[0], &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_now, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_urls, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
