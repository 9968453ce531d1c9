/*
 * The page of a run: well-formed, escaped, the same twice, of bounded size; runs with nothing in
 * them, with one sample, and with far more samples than are drawn.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/testing.h"
#include "report/html.h"
#include "report/html_text.h"

#define HOUR_MS INT64_C(3600000)

/* ---- runs --------------------------------------------------------------------------- */

typedef struct world {
    st_trace trace;
    st_trace_run run;
} world;

static void world_done(world *w)
{
    st_vec_free(&w->trace.nodes);
    st_vec_free(&w->trace.accounts);
    st_vec_free(&w->trace.jobs);
    st_vec_free(&w->run.jobs);
    st_vec_free(&w->run.samples);
    st_vec_free(&w->run.held_m);
    st_vec_free(&w->run.entitled_m);
    st_vec_free(&w->run.accounts);
}

static void add_account(world *w, const char *name)
{
    st_account_spec spec;

    st_account_spec_init(&spec);
    spec.name = name;
    st_vec_push(&w->trace.accounts, spec);
    st_vec_push(&w->run.accounts, (st_run_account){0});
}

static void add_job(world *w, int32_t account, int tasks, int64_t wait_ms, int64_t run_ms)
{
    int64_t submit_ms = (int64_t)w->trace.jobs.n * 60000;
    st_run_job out = {.state = ST_JOB_DONE, .start_ms = ST_UNSET, .end_ms = ST_UNSET};

    st_vec_push(&w->trace.jobs, (st_trace_job){.name = "j",
                                               .account = account,
                                               .user = "u",
                                               .tasks = tasks,
                                               .shape = {.gpus = 1},
                                               .submit_ms = submit_ms,
                                               .run_ms = run_ms});
    if (wait_ms != ST_UNSET) {
        out.start_ms = submit_ms + wait_ms;
        out.end_ms = out.start_ms + run_ms;
    } else {
        out.state = ST_JOB_PENDING;
    }
    st_vec_push(&w->run.jobs, out);
    w->run.accounts.v[account].jobs++;
    w->run.accounts.v[account].late_ms_sum += ST_MAX(wait_ms, 0);
}

static void init(world *w, const char *name, int64_t epoch_s)
{
    *w = (world){.trace = {.name = name, .epoch_s = epoch_s}};
    w->run.trace = &w->trace;
    st_vec_push(&w->trace.nodes, (st_node_spec){.name = "n1", .ndevs = 8});
}

/* Shares that wander, a queue that comes and goes. */
static void wander(world *w, size_t samples, size_t accounts, uint64_t seed)
{
    ST_CLEANUP(st_freep) int64_t *held = st_xcalloc(accounts, sizeof(*held));
    static char names[64][8];
    st_rng rng;

    ST_ASSERT(accounts <= ST_ARRAY_LEN(names));
    st_rng_seed(&rng, seed);
    for (size_t a = 0; a < accounts; a++) {
        snprintf(names[a], sizeof(names[a]), "team%zu", a);
        add_account(w, names[a]);
        held[a] = st_rng_range(&rng, 1, 100) * 1000;
    }
    for (size_t i = 0; i < 400; i++)
        add_job(w, (int32_t)st_rng_below(&rng, accounts), 1 << st_rng_below(&rng, 8),
                st_rng_range(&rng, 0, 1 << st_rng_below(&rng, 28)), HOUR_MS);
    for (size_t i = 0; i < samples; i++) {
        st_run_sample s = {.at_ms = (int64_t)i * 600000};

        for (size_t a = 0; a < accounts; a++) {
            held[a] = ST_MAX(held[a] + st_rng_range(&rng, -4, 4) * 1000, 0);
            s.allocated_m += held[a];
            st_vec_push(&w->run.held_m, held[a]);
            st_vec_push(&w->run.entitled_m, held[a] + 3000);
            w->run.accounts.v[a].held += held[a] * 600000;
            w->run.accounts.v[a].entitled += (held[a] + 3000) * 600000;
        }
        s.capacity_m = (int64_t)accounts * 110000;
        s.stranded_m = st_rng_range(&rng, 0, 9) * 1000;
        s.waiting = st_rng_range(&rng, 0, 200);
        s.waiting_m = s.waiting * 3000;
        w->run.allocated += s.allocated_m * 600000;
        w->run.capacity += s.capacity_m * 600000;
        st_vec_push(&w->run.samples, s);
        w->run.end_ms = s.at_ms;
    }
}

/* ---- a checker ---------------------------------------------------------------------- */

#define DEPTH_MAX 32

/* Every tag is closed, in order; every & begins one of the five entities. */
static void check_tags(const char *s)
{
    char open[DEPTH_MAX][16];
    int depth = 0;

    for (const char *c = s; *c; c++) {
        if (strncmp(c, "<![CDATA[", 9) == 0) {
            c = strstr(c, "]]>");
            assert_non_null(c);
            continue;
        }
        if (*c == '&' && strncmp(c, "&amp;", 5) && strncmp(c, "&lt;", 4) && strncmp(c, "&gt;", 4) &&
            strncmp(c, "&quot;", 6) && strncmp(c, "&#39;", 5))
            fail_msg("a bare &: %.40s", c);
        if (*c != '<' || c[1] == '!')
            continue;
        const char *end = strchr(c, '>');
        bool closing = c[1] == '/';
        char name[16] = {0};

        assert_non_null(end);
        for (size_t n = 0; n < 15 && isalnum((unsigned char)c[1 + closing + n]); n++)
            name[n] = c[1 + closing + n];
        if (closing) {
            if (depth == 0 || strcmp(open[depth - 1], name) != 0)
                fail_msg("</%s> closes <%s>", name, depth > 0 ? open[depth - 1] : "");
            depth--;
        } else if (end[-1] != '/') {
            assert_true(depth < DEPTH_MAX);
            memcpy(open[depth++], name, sizeof(name));
        }
        c = end;
    }
    assert_int_equal(depth, 0);
}

static char *page(const world *w)
{
    st_strbuf out = {0};

    assert_int_equal(st_trace_html(&w->run, &out), 0);
    check_tags(st_strbuf_str(&out));
    /* Nothing is fetched, and no figure is none. */
    assert_null(strstr(out.s, "http"));
    assert_null(strstr(out.s, "src="));
    assert_null(strstr(out.s, "nan"));
    assert_null(strstr(out.s, "inf%"));
    return st_strbuf_take(&out);
}

static size_t count(const char *s, const char *what)
{
    size_t n = 0;

    for (; (s = strstr(s, what)); s += strlen(what))
        n++;
    return n;
}

/* ---- tests -------------------------------------------------------------------------- */

static void test_empty(void **state)
{
    ST_CLEANUP(world_done) world w;

    (void)state;
    init(&w, "nothing", 0);
    ST_CLEANUP(st_freep) char *text = page(&w);
    assert_non_null(strstr(text, "<h1>nothing</h1>"));
    assert_non_null(strstr(text, "from 0d 00:00 to 0d 00:00"));
}

static void test_one_sample(void **state)
{
    ST_CLEANUP(world_done) world w;

    (void)state;
    init(&w, "one", 0);
    add_account(&w, "a");
    add_job(&w, 0, 4, 2 * HOUR_MS, HOUR_MS);
    add_job(&w, 0, 4, ST_UNSET, HOUR_MS);
    st_vec_push(&w.run.samples,
                (st_run_sample){.capacity_m = 8000, .allocated_m = 4000, .waiting = 1});
    st_vec_push(&w.run.held_m, 4000);
    st_vec_push(&w.run.entitled_m, 8000);
    w.run.end_ms = 3 * HOUR_MS;
    w.run.allocated = 4000 * HOUR_MS;
    w.run.capacity = 8000 * 3 * HOUR_MS;
    ST_CLEANUP(st_freep) char *text = page(&w);
    assert_non_null(strstr(text, "16.7\u00A0%"));
    assert_non_null(strstr(text, "2\u00A0h\u00A000\u00A0m"));
    assert_non_null(strstr(text, "1 done, 1 without an end"));
    /* Two jobs of 2 to 8 GPUs, one of which never started. */
    assert_non_null(strstr(text, "2 to 8 GPUs</th><td>2</td><td>1</td>"));
}

static void test_escapes(void **state)
{
    ST_CLEANUP(world_done) world w;

    (void)state;
    init(&w, "</title><script>alert(1)</script>", 0);
    wander(&w, 5, 3, 1);
    w.trace.accounts.v[0].name = "<b>&\"'\x01\xff";
    ST_CLEANUP(st_freep) char *text = page(&w);
    assert_null(strstr(text, "<b>&"));
    assert_null(strstr(text, "<script>alert"));
    assert_non_null(strstr(text, "&lt;b&gt;&amp;&quot;&#39;\xEF\xBF\xBD\xEF\xBF\xBD"));
    /* Inside JSON inside an attribute. */
    assert_non_null(strstr(text, "&quot;n&quot;:&quot;&lt;b&gt;&amp;\\&quot;"));
    assert_int_equal(count(text, "<script"), 1);
}

static void test_same_bytes(void **state)
{
    char *texts[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        ST_CLEANUP(world_done) world w;
        init(&w, "twice", 1767571200);
        wander(&w, 200, 12, 3);
        w.trace.jobs.v[w.trace.jobs.n - 1].submit_ms = w.run.end_ms;
        w.run.seconds = 1.5 + i; /* wall-clock time is not told */
        w.run.peak_kib = 1000 + (size_t)i;
        texts[i] = page(&w);
    }
    assert_string_equal(texts[0], texts[1]);
    assert_non_null(strstr(texts[0], "from 2026-01-05 00:00 UTC to 2026-01-06 09:10 UTC"));
    assert_non_null(strstr(texts[0], ">6 Jan<"));
    free(texts[0]);
    free(texts[1]);
}

/* One job that runs on for weeks does not squeeze what happened before. */
static void test_long_tail(void **state)
{
    ST_CLEANUP(world_done) world w;

    (void)state;
    init(&w, "tail", 0);
    wander(&w, 2000, 3, 7);
    ST_CLEANUP(st_freep) char *text = page(&w);
    /* 400 jobs, one a minute, are followed by 13 days. */
    assert_non_null(strstr(text, "Plots over time end at 0d 08:18,"));
    assert_null(strstr(text, ">10d<"));
}

/* A peak of one sample among 20,000 is still drawn, and the page stays small. */
static void test_many_samples(void **state)
{
    ST_CLEANUP(world_done) world w;

    (void)state;
    init(&w, "many", 1767571200);
    wander(&w, 20000, 60, 4);
    w.trace.jobs.v[w.trace.jobs.n - 1].submit_ms = w.run.end_ms; /* jobs come until the end */
    w.run.samples.v[12345].waiting = 10000;
    ST_CLEANUP(st_freep) char *text = page(&w);
    assert_true(strlen(text) < 1000000);
    const char *plot = strstr(text, "Number of jobs in the queue"), *end = strstr(plot, "</svg>");
    const char *path = strstr(plot, "class=\"area");
    size_t points = 0;
    bool top = false;

    for (const char *c = path; c < end; c++) {
        points += *c == 'L';
        top |= *c == 'L' && strtol(strchr(c, ' '), NULL, 10) < 50;
    }
    assert_true(top);
    assert_in_range(points, 400, 1000); /* there and back */
    assert_non_null(strstr(text, "52 others"));
}

static void test_words(void **state)
{
    char buf[ST_HTML_MAX];

    (void)state;
    assert_string_equal(st_html_count(buf, 1234567), "1,234,567");
    assert_string_equal(st_html_count(buf, -100), "-100");
    assert_string_equal(st_html_short(buf, 2.5), "2.5");
    assert_string_equal(st_html_short(buf, 1500), "1,500");
    assert_string_equal(st_html_short(buf, 12500), "12.5k");
    assert_string_equal(st_html_short(buf, 500000), "500k");
    assert_string_equal(st_html_short(buf, 2e6), "2M");
    assert_string_equal(st_html_short(buf, 2e7), "20M");
    assert_string_equal(st_html_duration(buf, 1500), "1.5\u00A0s");
    assert_string_equal(st_html_duration(buf, 200000), "3\u00A0m\u00A020\u00A0s");
    assert_string_equal(st_html_duration(buf, 27 * HOUR_MS), "1\u00A0d\u00A003\u00A0h");
    assert_string_equal(st_html_moment(buf, 951782400, 0), "2000-02-29 00:00 UTC");
    assert_string_equal(st_html_moment(buf, 0, 27 * HOUR_MS + 60000), "1d 03:01");
    assert_string_equal(st_html_per_cent(buf, 0.9), "90.0\u00A0%");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),        cmocka_unit_test(test_one_sample),
        cmocka_unit_test(test_escapes),      cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_many_samples), cmocka_unit_test(test_words),
        cmocka_unit_test(test_long_tail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
