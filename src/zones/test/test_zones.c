/* Zones by name: the system's, and what a name must not reach. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing.h"
#include "zones/zones.h"

static void test_system(void **state)
{
    (void)state;
    ST_CLEANUP(st_zones_freep) st_zones *zones = st_zones_new(ST_ZONES_DIR);
    const st_tz *a = NULL, *b = NULL;
    char version[ST_ZONES_VERSION_MAX];
    st_err err = {0};

    assert_ok(st_zones_get(zones, "Europe/Berlin", &a, &err));
    assert_ok(st_zones_get(zones, "Europe/Berlin", &b, &err));
    assert_ptr_equal(a, b);
    assert_ok(st_zones_get(zones, "Cuba", &b, &err)); /* a link inside the database */
    assert_int_equal(st_tz_at(b, 1767225600).offset_s, -5 * 3600);
    st_zones_version(zones, version);
    assert_true(version[0] == '2');
    static const char *const wrong[] = {
        "",          "Europe",   "Europe/Berlin2",  "../zoneinfo/UTC", "/etc/passwd",
        "tzdata.zi", "zone.tab", "Europe/./Berlin", "right/UTC/x",     "posix/../UTC"};
    for (size_t i = 0; i < ST_ARRAY_LEN(wrong); i++)
        assert_fails(st_zones_get(zones, wrong[i], &a, &err), ST_EINVAL, "there is no time zone");
    assert_fails(st_zones_get(zones, "right/Europe/Berlin", &a, &err), ST_EPARSE, "leap seconds");
}

static void put(const char *dir, const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* A folder that somebody has prepared: nothing outside of it is opened, and nothing in it hangs. */
static void test_hostile(void **state)
{
    (void)state;
    char dir[] = "/tmp/stint-zones-XXXXXX", path[256];
    const st_tz *tz = NULL;
    char version[ST_ZONES_VERSION_MAX];
    st_err err = {0};

    assert_non_null(mkdtemp(dir));
    ST_CLEANUP(st_zones_freep) st_zones *zones = st_zones_new(dir);

    snprintf(path, sizeof path, "%s/Out", dir);
    assert_int_equal(symlink(ST_ZONES_DIR "/Europe/Berlin", path), 0);
    snprintf(path, sizeof path, "%s/Pipe", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    put(dir, "Text", "TZif");
    put(dir, "tzdata.zi", "# version evil name\n");
    assert_fails(st_zones_get(zones, "Out", &tz, &err), ST_EINVAL, "there is no time zone");
    assert_fails(st_zones_get(zones, "Pipe", &tz, &err), ST_EINVAL, "there is no time zone");
    assert_fails(st_zones_get(zones, "Text", &tz, &err), ST_EPARSE, "cannot be used");
    assert_ok(st_zones_get(zones, "UTC", &tz, &err)); /* which needs no file */
    st_zones_version(zones, version);
    assert_string_equal(version, "evil");
    static const char *const made[] = {"Out", "Pipe", "Text", "tzdata.zi"};
    for (size_t i = 0; i < ST_ARRAY_LEN(made); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, made[i]);
        unlink(path);
    }
    st_zones_version(zones, version);
    assert_string_equal(version, "unknown");
    rmdir(dir);
}

/* Another release is read when somebody asks for that; what was handed out stays. */
static void test_refresh(void **state)
{
    (void)state;
    char dir[] = "/tmp/stint-zones-XXXXXX", path[256];
    const st_tz *was = NULL, *now = NULL;
    st_err err = {0};

    assert_non_null(mkdtemp(dir));
    put(dir, "tzdata.zi", "# version 2026a\n");
    ST_CLEANUP(st_zones_freep) st_zones *zones = st_zones_new(dir);

    assert_ok(st_zones_get(zones, "UTC", &was, &err));
    st_zones_refresh(zones); /* the same release */
    assert_ok(st_zones_get(zones, "UTC", &now, &err));
    assert_ptr_equal(was, now);
    put(dir, "tzdata.zi", "# version 2026b\n");
    st_zones_refresh(zones);
    assert_ok(st_zones_get(zones, "UTC", &now, &err));
    assert_ptr_not_equal(was, now);
    assert_string_equal(st_tz_name(was), "UTC");
    snprintf(path, sizeof path, "%s/tzdata.zi", dir);
    unlink(path);
    rmdir(dir);
}

static void *many(void *arg)
{
    static const char *const names[] = {"Europe/Berlin", "UTC", "Asia/Tokyo", "America/New_York"};
    const st_tz *tz;
    st_err err;

    for (int i = 0; i < 2000; i++)
        if (st_zones_get(arg, names[i % 4], &tz, &err) < 0)
            return arg;
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    ST_CLEANUP(st_zones_freep) st_zones *zones = st_zones_new(ST_ZONES_DIR);
    pthread_t t[4];
    void *bad;

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, many, zones), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], &bad);
        assert_null(bad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_system),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_refresh),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
