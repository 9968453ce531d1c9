/*
 * Tenants by number, what they had by name, and what their jobs may do on a node.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/launch.h"
#include "agent/tenant.h"
#include "base/hash.h"
#include "base/testing.h"

static void put(const char *dir, const char *name, const char *text)
{
    st_err err = {0};

    assert_ok(st_file_replace(dir, name, text, strlen(text), false, &err));
}

static bool there(const char *dir, const char *name)
{
    char path[200];
    struct stat st;

    snprintf(path, sizeof path, "%s/storage/%s", dir, name);
    return stat(path, &st) == 0;
}

static void make(const char *dir, const char *name)
{
    char path[200];
    st_err err = {0};

    snprintf(path, sizeof path, "%s/storage/%s", dir, name);
    assert_ok(st_dir_make(path, &err));
}

static int64_t uid_of(const char *dir, int64_t id)
{
    char name[ST_RUN_NAME_MAX];
    st_err err = {0};
    int64_t uid;

    st_tenant_name(id, name);
    assert_ok(st_tenant_uid(dir, name, &uid, &err));
    return uid;
}

static int begin(void **state)
{
    char dir[] = "/tmp/stint-tenant-XXXXXX";

    assert_non_null(mkdtemp(dir));
    *state = strdup(dir);
    return 0;
}

static int end(void **state)
{
    char command[80];

    snprintf(command, sizeof command, "rm -rf %s", (char *)*state);
    assert_int_equal(system(command), 0);
    free(*state);
    return 0;
}

static void numbers_decide(void **state)
{
    const char *dir = *state;
    int64_t uid;
    st_err err = {0};

    assert_int_not_equal(uid_of(dir, 1), uid_of(dir, 2));
    assert_int_equal(uid_of(dir, 7), uid_of(dir, 7));
    assert_true(uid_of(dir, ST_TENANT_MAX) <= UINT32_MAX - 2);
    assert_fails(st_tenant_uid(dir, "acme", &uid, &err), ST_ENOENT, "not known");
    assert_fails(st_tenant_uid(dir, "t.0", &uid, &err), ST_ENOENT, "not known");
    assert_fails(st_tenant_uid(dir, "t.1x", &uid, &err), ST_ENOENT, "not known");
}

static void what_was_there_is_kept(void **state)
{
    const char *dir = *state;
    int64_t uid;
    st_err err = {0};

    put(dir, "tenants", "acme\nt17\nother\n");
    make(dir, "acme");
    make(dir, "t17");
    assert_ok(st_tenant_adopt(dir, 5, "acme", &err));
    assert_true(there(dir, "t.5") && !there(dir, "acme"));
    assert_int_equal(uid_of(dir, 5), 700000);
    assert_ok(st_tenant_adopt(dir, 5, "acme", &err)); /* again: as it is */
    /* The next of that name, and whoever is called like a number, get nothing. */
    assert_ok(st_tenant_adopt(dir, 9, "acme", &err));
    assert_false(there(dir, "t.9"));
    assert_int_not_equal(uid_of(dir, 9), 700000);
    assert_true(there(dir, "t17"));
    assert_false(there(dir, "t.17"));
    assert_int_not_equal(uid_of(dir, 17), 700001);
    assert_ok(st_tenant_adopt(dir, 8, "t17", &err));
    assert_int_equal(uid_of(dir, 8), 700001);
    assert_int_equal(uid_of(dir, 5), 700000);
    assert_ok(st_tenant_uid(dir, "other", &uid, &err)); /* of a task from before */
    assert_int_equal(uid, 700002);
    assert_ok(st_tenant_adopt(dir, 10, "stranger", &err));
    assert_int_equal(uid_of(dir, 10), 1048586);
}

/* The line is written first: what a crash left of the rest is done with the next task. */
static void a_crash_in_between(void **state)
{
    const char *dir = *state;
    st_err err = {0};

    put(dir, "tenants", "acme\nother\n");
    put(dir, "adopted", "5 700000 acme\n");
    make(dir, "acme");
    assert_ok(st_tenant_adopt(dir, 6, "acme", &err));
    assert_true(there(dir, "acme"));
    assert_ok(st_tenant_adopt(dir, 5, "acme", &err));
    assert_true(there(dir, "t.5") && !there(dir, "acme"));
    make(dir, "acme"); /* whatever made it: it is not moved over what is there */
    assert_ok(st_tenant_adopt(dir, 5, "acme", &err));
    assert_true(there(dir, "t.5") && there(dir, "acme"));
}

/* "a.b" was a_b_HASH here, and anybody could be called exactly that. */
static void chosen_names_get_nothing(void **state)
{
    const char *dir = *state;
    char line[ST_RUN_NAME_MAX + 2], attacker[ST_RUN_NAME_MAX];
    st_err err = {0};

    snprintf(attacker, sizeof attacker, "a_b_%016llx", (unsigned long long)st_hash_str(1, "a.b"));
    snprintf(line, sizeof line, "%s\n", attacker);
    put(dir, "tenants", line);
    make(dir, attacker);
    assert_ok(st_tenant_adopt(dir, 3, attacker, &err));
    assert_false(there(dir, "t.3"));
    assert_int_not_equal(uid_of(dir, 3), 700000);
    assert_ok(st_tenant_adopt(dir, 2, "a.b", &err));
    assert_true(there(dir, "t.2"));
    assert_int_equal(uid_of(dir, 2), 700000);
}

static const st_board boards[ST_DEVS_MAX];

/* What the document needs and the list does not permit is refused here too. */
static void test_permissions(void **state)
{
    static const struct {
        const char *allow, *image, *network, *lacks;
        bool rdma;
    } rows[] = {
        {"[]", "host", "none", "host-image", false},
        {"[\"host-image\"]", "host", "none", NULL, false},
        {"[\"host-image\"]", "host", "host", "host-network", false},
        {"[\"host-network\"]", "host", "host", "host-image", false},
        {"[\"host-network\"]", "oci", "host", NULL, false},
        {"[\"everything\", 1]", "oci", "host", "host-network", false},
        {"null", "folder", "tenant", NULL, false},
        {"[\"host-image\"]", "host", "tenant", "rdma", true},
        {"[\"rdma\"]", "oci", "tenant", NULL, true},
    };
    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        json_t *root = json_pack(
            "{s:i,s:[{s:s,s:s,s:s,s:{s:i},s:{s:i},s:{s:s},s:{s:s,s:b},s:[{s:i,s:[]}]}]}", "epoch",
            1, "jobs", "job", "x", "want", "run", "level", "whole", "tenant", "id", 1,
            "domain_tenant", "id", 1, "image", "kind", rows[i].image, "document", "network",
            rows[i].network, "rdma", rows[i].rdma, "tasks", "task", 0, "devices");
        st_agent_list list = {0};
        st_err err = {0};

        json_object_set_new(root, "allow", json_loads(rows[i].allow, JSON_DECODE_ANY, NULL));
        assert_ok(st_list_read(root, boards, 0, &list, &err));
        if (rows[i].lacks)
            assert_fails(st_launch_allowed(&list.orders.v[0], &err), ST_EPERM, rows[i].lacks);
        else
            assert_ok(st_launch_allowed(&list.orders.v[0], &err));
        st_agent_list_done(&list);
        json_decref(root);
    }
}

/* Also one below it that is called trusted: stintd says what holds. */
static void test_untrusted(void **state)
{
    static const struct {
        st_level level;
        int untrusted; /* -1: nothing is said */
        bool refused;
    } rows[] = {{ST_LEVEL_MPS, 1, true},
                {ST_LEVEL_MPS, 0, false},
                {ST_LEVEL_MPS, -1, false},
                {ST_LEVEL_WHOLE, 1, false}};

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        json_t *job = json_pack("{s:b}", "untrusted", rows[i].untrusted);
        st_order o = {.job = rows[i].untrusted < 0 ? NULL : job,
                      .place = {.level = rows[i].level},
                      .allow = UINT32_MAX};
        st_err err = {0};

        if (rows[i].refused)
            assert_fails(st_launch_allowed(&o, &err), ST_EPERM, "not for untrusted accounts");
        else
            assert_ok(st_launch_allowed(&o, &err));
        json_decref(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_decide, begin, end),
        cmocka_unit_test_setup_teardown(what_was_there_is_kept, begin, end),
        cmocka_unit_test_setup_teardown(a_crash_in_between, begin, end),
        cmocka_unit_test_setup_teardown(chosen_names_get_nothing, begin, end),
        cmocka_unit_test(test_permissions),
        cmocka_unit_test(test_untrusted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
