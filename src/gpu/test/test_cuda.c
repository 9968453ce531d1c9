/*
 * What stint-cuda does to processes and devices, against a driver that is not there: all or none,
 * done again after a cut, what is left on a device found, cleared and read again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing.h"
#include "gpu/cuda.h"
#include "gpu/cuda_test.h"

typedef struct world {
    char dir[64];
    cu_lib lib;
} world;

static void put(const world *w, const char *name, const char *text)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", w->dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void drop(const world *w, const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", w->dir, name);
    unlink(path);
}

static char *get(const world *w, const char *name)
{
    char path[128];
    char *text = calloc(1, 4096);
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", w->dir, name);
    f = fopen(path, "r");
    if (f) {
        text[fread(text, 1, 4095, f)] = '\0';
        fclose(f);
    }
    return text;
}

static void expect(const world *w, const char *name, const char *text)
{
    char *is = get(w, name);

    assert_string_equal(is, text);
    free(is);
}

static int begin(void **state)
{
    world *w = calloc(1, sizeof *w);
    st_err err = {0};

    strcpy(w->dir, "/tmp/st-cuda-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    setenv("FAKE_CUDA_DIR", w->dir, 1);
    assert_ok(st_cuda_load(getenv("STINT_FAKE_CUDA"), &w->lib, &err));
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

static const st_cuda_pids two = {.pid = {7, 8}, .n = 2};
static const st_cuda_map same = {.n = 0};

/* ---- processes ------------------------------------------------------------------------------ */

static void off_and_back(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_err err = {0};
    bool undone = true;

    assert_ok(st_cuda_pause(&w->lib, &two, 100, &undone, &err));
    expect(w, "log", "lock 7\nlock 8\ncheckpoint 7\ncheckpoint 8\n");
    assert_ok(st_cuda_states(&w->lib, &two, &out, &err));
    assert_string_equal(out.s, "{\"pid\":7,\"state\":\"checkpointed\"},"
                               "{\"pid\":8,\"state\":\"checkpointed\"}");
    assert_ok(st_cuda_pause(&w->lib, &two, 100, &undone, &err)); /* again: nothing is left to do */
    drop(w, "log");
    assert_ok(st_cuda_resume(&w->lib, &two, &same, &err));
    expect(w, "log", "restore 7\nrestore 8\nunlock 7\nunlock 8\n");
    assert_ok(st_cuda_resume(&w->lib, &two, &same, &err));
    expect(w, "p.7", "0\n");
}

/* One will not: the other, which was off already, goes on as before. */
static void all_or_none(void **state)
{
    world *w = *state;
    st_err err = {0};
    bool undone = false;

    put(w, "fail", "checkpoint 8 801\n");
    assert_fails(st_cuda_pause(&w->lib, &two, 100, &undone, &err), ST_EIO,
                 "process 8: its device memory cannot be saved");
    assert_true(undone);
    expect(w, "p.7", "0\n");
    expect(w, "p.8", "0\n");
    put(w, "fail", "lock 8 600\n");
    assert_fails(st_cuda_pause(&w->lib, &two, 100, &undone, &err), ST_EIO, "process 8");
    assert_true(undone);
    expect(w, "p.7", "0\n");
    /* And it cannot be undone. */
    put(w, "fail", "checkpoint 8 801\nrestore 7 2\n");
    assert_fails(st_cuda_pause(&w->lib, &two, 100, &undone, &err), ST_EIO, "process 8");
    assert_false(undone);
    expect(w, "p.7", "2\n");
    expect(w, "p.8", "0\n");
}

/* Whoever did it before was killed somewhere in between. */
static void goes_on_from_anywhere(void **state)
{
    world *w = *state;
    st_err err = {0};
    bool undone;

    put(w, "p.7", "2\n");
    put(w, "p.8", "1\n");
    assert_ok(st_cuda_pause(&w->lib, &two, 100, &undone, &err));
    expect(w, "log", "checkpoint 8\n");
    put(w, "p.7", "1\n");
    assert_ok(st_cuda_resume(&w->lib, &two, &same, &err));
    expect(w, "p.7", "0\n");
    expect(w, "p.8", "0\n");
    put(w, "p.7", "3\n");
    assert_fails(st_cuda_resume(&w->lib, &two, &same, &err), ST_EIO, "gave it up");
    assert_fails(st_cuda_pause(&w->lib, &two, 100, &undone, &err), ST_EIO, "gave it up");
    assert_false(undone);
}

/* Whose state the driver does not tell: one that has ended is skipped, one that lives is not touched,
 * and neither are the others. */
static void unknown_to_the_driver(void **state)
{
    world *w = *state;
    st_cuda_pids pids = {.pid = {7, 0}, .n = 2};
    char line[64];
    st_err err = {0};
    bool undone;
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    pids.pid[1] = child;
    snprintf(line, sizeof line, "state %d 1\n", child);
    put(w, "fail", line);
    assert_ok(st_cuda_pause(&w->lib, &pids, 100, &undone, &err));
    expect(w, "log", "lock 7\ncheckpoint 7\n");
    assert_ok(st_cuda_resume(&w->lib, &pids, &same, &err));
    drop(w, "log");
    pids.pid[1] = getpid();
    snprintf(line, sizeof line, "state %d 1\n", getpid());
    put(w, "fail", line);
    assert_fails(st_cuda_pause(&w->lib, &pids, 100, &undone, &err), ST_EIO, "cannot be told");
    assert_true(undone);
    expect(w, "log", "lock 7\nunlock 7\n");
}

static void other_gpus(void **state)
{
    world *w = *state;
    const st_cuda_pids one = {.pid = {7}, .n = 1};
    st_cuda_map map = {.n = 0};
    st_err err = {0};
    bool undone;

    assert_fails(st_cuda_map_add(&map, "GPU-1=GPU-2", &err), ST_EINVAL, "OLDUUID=NEWUUID");
    assert_fails(st_cuda_map_add(&map, "", &err), ST_EINVAL, "OLDUUID=NEWUUID");
    assert_ok(st_cuda_map_add(&map,
                              "GPU-00112233-4455-6677-8899-aabbccddeeff="
                              "GPU-00112233-4455-6677-8899-aabbccddee2a",
                              &err));
    assert_int_equal(map.pair[0].from.bytes[15], 0xff);
    assert_ok(st_cuda_pause(&w->lib, &one, 100, &undone, &err));
    drop(w, "log");
    assert_ok(st_cuda_resume(&w->lib, &one, &map, &err));
    expect(w, "log", "map 42\nrestore 7\nunlock 7\n");
}

/* ---- devices -------------------------------------------------------------------------------- */

static void make_device(const world *w, long mib, const long *dirty, int n)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/device", w->dir);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), mib << 20), 0);
    for (int i = 0; i < n; i++) {
        fseek(f, dirty[i], SEEK_SET);
        fputc(7, f);
    }
    fclose(f);
}

static void finds_and_clears(void **state)
{
    world *w = *state;
    const long dirty[] = {0, 4, 5, (10 << 20) + 8};
    st_cuda_scan s;
    st_err err = {0};

    make_device(w, 16, dirty, 0);
    assert_ok(st_cuda_scan_all(&w->lib, &s, &err));
    assert_int_equal(s.found, 0);
    assert_int_equal(s.total, 16 << 20);
    assert_int_equal(s.bytes, 14 << 20); /* 8 + 4 + 2 */
    assert_int_equal(s.left, 2 << 20);
    assert_false(s.overwritten);
    make_device(w, 16, dirty, 4);
    assert_ok(st_cuda_scan_all(&w->lib, &s, &err));
    assert_int_equal(s.found, 3); /* words */
    assert_true(s.overwritten);
    assert_ok(st_cuda_scan_all(&w->lib, &s, &err));
    assert_int_equal(s.found, 0);
}

static void what_does_not_go_is_said(void **state)
{
    world *w = *state;
    const long dirty[] = {100};
    st_cuda_scan s;
    st_err err = {0};

    make_device(w, 16, dirty, 1);
    put(w, "stuck", "1");
    assert_fails(st_cuda_scan_all(&w->lib, &s, &err), ST_EIO, "cannot be cleared");
    put(w, "stuck", "0");
    put(w, "fail", "sync 0 700\n");
    assert_fails(st_cuda_scan_all(&w->lib, &s, &err), ST_EIO, "cannot be read");
    put(w, "fail", "context 0 46\n");
    assert_fails(st_cuda_scan_all(&w->lib, &s, &err), ST_EIO, "no context");
    drop(w, "fail");
    put(w, "devices", "0");
    assert_fails(st_cuda_scan_all(&w->lib, &s, &err), ST_ENOENT, "no device");
    put(w, "devices", "1");
    w->lib.alloc = NULL;
    assert_fails(st_cuda_scan_all(&w->lib, &s, &err), ST_EDOWN, "too old");
}

static void no_library(void **state)
{
    cu_lib lib;
    st_err err = {0};

    assert_fails(st_cuda_load("/nonexistent/libcuda.so", &lib, &err), ST_EDOWN, "no CUDA driver");
    put(*state, "fail", "init 0 100\n");
    assert_fails(st_cuda_load(getenv("STINT_FAKE_CUDA"), &lib, &err), ST_EDOWN, "does not start");
}

/* ---- measures ------------------------------------------------------------------------------- */

typedef struct measured {
    st_test_figures figures;
    char with[128];
} measured;

static int measure(const world *w, st_test_depth depth, measured *ret, st_err *err)
{
    const st_cuda_measure how = {
        .library = getenv("STINT_FAKE_CUDA"), .depth = depth, .seconds = 1, .hang_ms = 2000};

    put(w, "devices", "2\n");
    put(w, "mib", "16\n");
    memset(ret, 0, sizeof *ret);
    return st_cuda_measure_all(&how, &ret->figures, ret->with, err);
}

static int64_t figure(const measured *m, int gpu, st_measure_kind kind)
{
    return m->figures.gpu[gpu].v[kind];
}

static void measures(void **state)
{
    measured m;
    st_err err;

    assert_ok(measure(*state, ST_DEPTH_LONG, &m, &err));
    assert_string_equal(m.with, "cuda 13.0");
    assert_int_equal(m.figures.n, 2);
    assert_true(m.figures.all_reduce > 0);
    assert_int_equal(m.figures.sums, 0);
    for (int d = 0; d < 2; d++) {
        assert_int_equal(figure(&m, d, ST_MEASURE_WORKS), 1);
        assert_int_equal(figure(&m, d, ST_MEASURE_PATTERN), 0);
        assert_int_equal(figure(&m, d, ST_MEASURE_PRODUCT), 0);
        assert_in_range(figure(&m, d, ST_MEASURE_PATTERN_SHARE), 90, 100);
        assert_true(figure(&m, d, ST_MEASURE_PCIE_IN) > 0);
        assert_true(figure(&m, d, ST_MEASURE_PCIE_OUT) > 0);
        assert_true(figure(&m, d, ST_MEASURE_MEMORY_SPEED) > 0);
        assert_true(figure(&m, d, ST_MEASURE_PEER) > 0);
        assert_true(figure(&m, d, ST_MEASURE_PRODUCT_SPEED) >= 0);
    }
}

/* Words that are lost, values that differ, on the device that does it. */
static void finds_what_is_wrong(void **state)
{
    measured m;
    st_err err;

    put(*state, "bad.1", "3\n");
    put(*state, "sum.0", "2\n");
    assert_ok(measure(*state, ST_DEPTH_LONG, &m, &err));
    assert_int_equal(figure(&m, 0, ST_MEASURE_PATTERN), 0);
    assert_true(figure(&m, 1, ST_MEASURE_PATTERN) >= 3);
    assert_true(figure(&m, 0, ST_MEASURE_PRODUCT) > 0);
    assert_int_equal(figure(&m, 1, ST_MEASURE_PRODUCT), 0);
    assert_true(m.figures.sums > 0);
}

/* A device that comes to no end, or fails, is at fault; the other is tested all the same. */
static void one_that_fails(void **state)
{
    static const char *const rows[][3] = {
        {"hang.1", "1\n", "came to no end"},
        {"fail", "put 2 214\n", "a kernel does not start"},
        {"fail", "sync 2 719\n", "did not do what it was told"},
    };
    measured m;
    st_err err;

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        put(*state, rows[i][0], rows[i][1]);
        assert_ok(measure(*state, ST_DEPTH_SHORT, &m, &err));
        assert_int_equal(figure(&m, 0, ST_MEASURE_WORKS), 1);
        assert_int_equal(figure(&m, 0, ST_MEASURE_PATTERN), 0);
        assert_int_equal(figure(&m, 1, ST_MEASURE_WORKS), 0);
        assert_non_null(strstr(m.figures.gpu[1].error, rows[i][2]));
        assert_int_equal(m.figures.all_reduce, ST_UNMEASURED);
        drop(*state, rows[i][0]);
    }
    put(*state, "fail", "peer 1 719\n");
    assert_ok(measure(*state, ST_DEPTH_SHORT, &m, &err));
    assert_int_equal(figure(&m, 0, ST_MEASURE_WORKS), 0);
    assert_int_equal(figure(&m, 1, ST_MEASURE_WORKS), 1);
    assert_int_equal(m.figures.all_reduce, 0);
}

/* What no device is to blame for is no measure of one. */
static void none_is_blamed(void **state)
{
    static const char *const rows[] = {"init 0 100\n", "context 1 46\n", "put 2 801\n",
                                       "copy 1 2\n"};
    measured m;
    st_err err;

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        put(*state, "fail", rows[i]);
        assert_int_equal(measure(*state, ST_DEPTH_SHORT, &m, &err), -ST_EDOWN);
    }
    assert_true(st_cuda_blames_device(214) && st_cuda_blames_device(999));
    assert_false(st_cuda_blames_device(CU_MISSING) || st_cuda_blames_device(CU_OK));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(off_and_back),
        TEST(all_or_none),
        TEST(goes_on_from_anywhere),
        TEST(unknown_to_the_driver),
        TEST(other_gpus),
        TEST(finds_and_clears),
        TEST(what_does_not_go_is_said),
        TEST(no_library),
        TEST(measures),
        TEST(finds_what_is_wrong),
        TEST(one_that_fails),
        TEST(none_is_blamed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
