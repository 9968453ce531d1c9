/*
 * Which CPUs a task gets: near its GPUs, whole cores first, fractions together, and never a failure.
 */
#include <stdlib.h>

#include "agent/cpus.h"
#include "base/rng.h"
#include "base/testing.h"

/* `nodes` NUMA nodes of `cores` cores with two threads each, numbered as the kernel likes it: the first
 * threads of all cores, then the second ones. */
static st_topology machine(int nodes, int cores)
{
    st_topology t = {.nnode = nodes, .ncore = nodes * cores};

    for (int k = 0; k < nodes * cores; k++)
        for (int thread = 0; thread < 2; thread++)
            t.cpu[t.n++] = (st_cpu){.id = thread * nodes * cores + k, .core = k, .node = k / cores};
    return t;
}

static st_topology flat(int n)
{
    st_topology t = {.n = n, .ncore = n, .nnode = 1};

    for (int i = 0; i < n; i++)
        t.cpu[i] = (st_cpu){.id = i, .core = i};
    return t;
}

static st_cpuset set(const char *text)
{
    st_err err = {0};
    st_cpuset s;

    assert_ok(st_cpuset_parse(text, &s, &err));
    return s;
}

static const char *text(const st_cpuset *s)
{
    static char buf[ST_CPUS_TEXT_MAX];

    st_cpuset_text(s, buf);
    return buf;
}

/* Picks, and has it taken. */
static st_pin take(const st_topology *t, st_cpu_load *load, int64_t cpu_m, const char *near)
{
    st_cpuset by = set(near);
    st_pin pin = st_cpus_pick(t, load, cpu_m, &by);

    st_cpu_load_add(load, &pin, cpu_m);
    return pin;
}

#define assert_pin(pin, own_text, common_text)                \
    do {                                                      \
        const st_pin pin_ = (pin);                            \
        assert_string_equal(text(&pin_.own), own_text);       \
        assert_string_equal(text(&pin_.common), common_text); \
    } while (0)

static void lists_of_cpus(void **state)
{
    static const char *const bad[] = {"x",    "1-",  "-1",    "3-1",
                                      "1,,2", "1 2", "1-2-3", "99999999999999999999"};
    st_cpuset s = set("0-3,8,1000-5000");
    st_err err = {0};

    (void)state;
    assert_string_equal(text(&s), "0-3,8,1000-1023");
    assert_int_equal(st_cpuset_count(&s), 29);
    s = set("");
    assert_string_equal(text(&s), "");
    s = set("7\n");
    assert_string_equal(text(&s), "7");
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_fails(st_cpuset_parse(bad[i], &s, &err), ST_EINVAL, "list of CPUs");
    assert_string_equal(text(&s), "7");
    s = (st_cpuset){0};
    for (int i = 0; i < ST_CPUS_MAX; i += 2) /* the longest there is */
        st_cpuset_add(&s, i);
    assert_int_equal(st_cpuset_count(&s), ST_CPUS_MAX / 2);
    assert_true(strlen(text(&s)) < ST_CPUS_TEXT_MAX - 1);
}

static void near_its_gpus_first(void **state)
{
    st_topology t = machine(2, 4); /* node 0: 0-3,8-11; node 1: 4-7,12-15 */
    st_cpu_load load = {0};

    (void)state;
    assert_pin(take(&t, &load, 4000, "4-7,12-15"), "4-5,12-13", "");
    assert_pin(take(&t, &load, 4000, "4-7,12-15"), "6-7,14-15", "");
    /* That node is full: the other, whole cores again. */
    assert_pin(take(&t, &load, 2000, "4-7,12-15"), "0,8", "");
    /* GPUs on both: half of each, as far as there is. */
    load = (st_cpu_load){0};
    assert_pin(take(&t, &load, 8000, "0-15"), "0-1,4-5,8-9,12-13", "");
    assert_pin(take(&t, &load, 6000, "0-3,8-11"), "2-3,6,10-11,14", "");
}

static void one_node_if_it_does_not_matter(void **state)
{
    st_topology t = machine(2, 4);
    st_cpu_load load = {0};

    (void)state;
    take(&t, &load, 2000, "4-7"); /* node 1 has six left, node 0 eight */
    assert_pin(take(&t, &load, 6000, ""), "5-7,13-15", "");
    load = (st_cpu_load){0};
    take(&t, &load, 2000, "4-7");
    assert_pin(take(&t, &load, 8000, ""), "0-3,8-11", "");
}

static void whole_cores_first(void **state)
{
    st_topology t = machine(1, 4); /* threads i and i+4 */
    st_cpu_load load = {0};

    (void)state;
    assert_pin(take(&t, &load, 1000, ""), "0", "");
    /* Two are a core, though 1 is the next number. */
    assert_pin(take(&t, &load, 2000, ""), "1,5", "");
    /* One more comes from the core that is broken. */
    assert_pin(take(&t, &load, 1000, ""), "4", "");
    assert_pin(take(&t, &load, 3000, ""), "2-3,6", "");
    assert_pin(take(&t, &load, 1000, ""), "7", "");
}

static void fractions_share(void **state)
{
    st_topology t = flat(8);
    st_cpu_load load = {0};

    (void)state;
    assert_pin(take(&t, &load, 500, ""), "", "0");
    assert_pin(take(&t, &load, 2000, ""), "1-2", "");
    assert_pin(take(&t, &load, 300, ""), "", "0");
    assert_pin(take(&t, &load, 1500, ""), "3", "4");
    assert_pin(take(&t, &load, 200, ""), "", "0"); /* the fullest that has room */
    assert_pin(take(&t, &load, 400, ""), "", "4");
    for (int i = 0; i < 100; i++)
        take(&t, &load, 1, "");
    /* 0.6 CPUs where two have that between them. */
    t = flat(2);
    load = (st_cpu_load){0};
    assert_pin(take(&t, &load, 700, ""), "", "0");
    assert_pin(take(&t, &load, 700, ""), "", "1");
    assert_pin(take(&t, &load, 600, ""), "", "0-1");
}

static void nothing_fails(void **state)
{
    st_topology t = flat(4);
    st_cpu_load load = {0};

    (void)state;
    assert_pin(take(&t, &load, 128000, "64-127"), "0-3", "");
    assert_pin(take(&t, &load, 3500, ""), "0-3", "");
    assert_pin(take(&t, &load, 2000, ""), "0-1", ""); /* shared: there are no others */
    assert_pin(take(&t, &load, 2000, ""), "2-3", ""); /* those with the least */
    assert_pin(take(&t, &load, 500, ""), "", "0");
    t = flat(1);
    load = (st_cpu_load){0};
    assert_pin(take(&t, &load, 500, ""), "", "0");
    assert_pin(take(&t, &load, 1000, ""), "0", "");
    assert_pin(take(&t, &load, 900, ""), "", "0");
}

/* As long as no more is asked for than there is, a CPU of one's own is nobody else's. */
static void own_is_own(void **state)
{
    st_rng rng;

    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        st_topology t = machine(1 + (int)(seed % 4), 4);
        st_pin pins[64];
        int64_t asks[64], left = (int64_t)t.n * 1000;
        int n = 0;

        st_rng_seed(&rng, seed);
        while (n < 64) {
            st_cpu_load load = {0};
            bool whole = st_rng_below(&rng, 2);
            int64_t ask = whole ? 1000 * (1 + (int64_t)st_rng_below(&rng, 6))
                                : 50 * (1 + (int64_t)st_rng_below(&rng, 19));
            st_cpuset near = {0}, all;

            if (ask > left)
                break;
            if (st_rng_below(&rng, 2))
                near = set("0-3");
            for (int i = 0; i < n; i++)
                st_cpu_load_add(&load, &pins[i], asks[i]);
            pins[n] = st_cpus_pick(&t, &load, ask, &near);
            asks[n] = ask;
            all = st_cpuset_or(&pins[n].own, &pins[n].common);
            assert_true(st_cpuset_count(&all) >= (ask + 999) / 1000);
            assert_int_equal(st_cpuset_count(&pins[n].own), ask / 1000);
            for (int c = 0; c < ST_CPUS_MAX; c++)
                for (int i = 0; i < n && st_cpuset_has(&pins[n].own, c); i++) {
                    assert_false(st_cpuset_has(&pins[i].own, c));
                    assert_false(st_cpuset_has(&pins[i].common, c));
                }
            left -= ask;
            n++;
        }
    }
}

/* What hwloc says is understood; that it says nothing is no end. */
static void topologies(void **state)
{
    st_topology t, now;

    (void)state;
    setenv("HWLOC_SYNTHETIC", "numa:2 core:3 pu:2", 1);
    st_topology_load(&t);
    assert_int_equal(t.n, 12);
    assert_int_equal(t.ncore, 6);
    assert_int_equal(t.nnode, 2);
    assert_int_equal(t.cpu[0].core, t.cpu[1].core);
    assert_int_equal(t.cpu[11].node, 1);
    st_topology_now(&t, &now);
    assert_true(now.n >= 1 && now.n <= 12);
    unsetenv("HWLOC_SYNTHETIC");
    setenv("HWLOC_XMLFILE", "/nonexistent", 1);
    st_topology_load(&t);
    assert_true(t.n >= 1);
    unsetenv("HWLOC_XMLFILE");
    st_topology_load(&t);
    assert_true(t.n >= 1 && t.nnode >= 1 && t.ncore >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_cpus),
        cmocka_unit_test(near_its_gpus_first),
        cmocka_unit_test(one_node_if_it_does_not_matter),
        cmocka_unit_test(whole_cores_first),
        cmocka_unit_test(fractions_share),
        cmocka_unit_test(nothing_fails),
        cmocka_unit_test(own_is_own),
        cmocka_unit_test(topologies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
