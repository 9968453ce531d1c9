/*
 * Scripts: what they may do to a job, what they cannot do at all, and that nothing they do
 * outlives the call.
 */
#include <jansson.h>

#include "base/mem.h"
#include "base/testing.h"
#include "rules/rules.h"
#include "rules/test/jobs.h"
#include "rules/values.h"

static const st_rules_who ann = {.account = "vision",
                                 .user = "ann",
                                 .role = "member",
                                 .now_ms = INT64_C(1781481600000)}; /* Mon 2026-06-15 00:00 UTC */

/* Applies the only rule to the only job; the text of the one document, or NULL and *err. */
static char *apply(st_rules *rules, const char *job, st_err *err)
{
    ST_CLEANUP(st_json_drop) json_t *jobs = NULL;

    *err = (st_err){0};
    if (rules_apply(rules, &ann, job, strlen(job), &jobs, err) < 0)
        return NULL;
    assert_int_equal(json_array_size(jobs), 1);
    return st_rules_text(json_array_get(jobs, 0));
}

static void becomes(const char *script, const char *job, const char *want)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);
    st_err err = {0};
    char *got;

    assert_ok(st_rules_put(rules, "r", script, 0, &err));
    got = apply(rules, job, &err);
    if (!got)
        fail_msg("%s: %s", script, err.msg);
    assert_string_equal(got, want);
    free(got);
}

/* The script refuses or fails with that code and text; the service goes on. */
static void stops(const char *script, int code, const char *text)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);
    st_err err = {0};
    char *got;

    assert_ok(st_rules_put(rules, "r", script, 0, &err));
    for (int i = 0; i < 2; i++) { /* the box is as good as before */
        got = apply(rules, "{\"gpus\":1}", &err);
        if (got)
            fail_msg("%s: accepted as %s", script, got);
        if (err.code != code || !strstr(err.msg, text))
            fail_msg("%s: %d %s; wanted %d %s", script, err.code, err.msg, code, text);
    }
    assert_ok(st_rules_put(rules, "r", "function submit(job) job.gpus = 3 end", 0, &err));
    got = apply(rules, "{\"gpus\":1}", &err);
    assert_string_equal(got, "{\"gpus\":3}");
    free(got);
}

#define BODY(x) "function submit(job, who)\n" x "\nend"

static void test_changes(void **state)
{
    (void)state;
    becomes(BODY(""), "{\"b\":1,\"a\":[1,2.5,\"x\",true],\"c\":{\"d\":\"e\"}}",
            "{\"b\":1,\"a\":[1,2.5,\"x\",true],\"c\":{\"d\":\"e\"}}");
    becomes(BODY("job.gpus = 8 / 2"), "{\"gpus\":1}", "{\"gpus\":4}");
    becomes(BODY("job.share = 0.1"), "{}", "{\"share\":0.1}");
    becomes(BODY("job.name = nil return true"), "{\"name\":\"x\",\"gpus\":1}", "{\"gpus\":1}");
    becomes(BODY("job.x, job.b, job.a = {}, {1,2}, {k={1}}"), "{}",
            "{\"a\":{\"k\":[1]},\"b\":[1,2],\"x\":{}}");
    becomes(BODY("table.remove(job.command)"), "{\"command\":[\"a\"]}", "{\"command\":[]}");
    becomes(BODY("job.command[#job.command + 1] = 'b'"), "{\"command\":[\"a\"]}",
            "{\"command\":[\"a\",\"b\"]}");
    becomes(BODY("job.n = nil"), "{\"gpus\":null}", "{}");
    becomes(BODY("job.w = who.account .. who.user .. who.role .. tostring(who.trusted)"), "{}",
            "{\"w\":\"visionannmemberfalse\"}");
    becomes(BODY("local n = who.now job.w = string.format('%d-%d-%d %d:%d:%d %d %d', n.year, "
                 "n.month, n.day, n.hour, n.min, n.sec, n.wday, n.unix)"),
            "{}", "{\"w\":\"2026-6-15 0:0:0 2 1781481600\"}");
    becomes(BODY("return nil"), "{\"gpus\":1}", "{\"gpus\":1}");
    becomes(BODY("job.s = ('x'):rep(3, ',') .. #'ab' .. ('A'):lower()"), "{}",
            "{\"s\":\"x,x,x2a\"}");
    becomes(BODY("local ok, m = pcall(error, 'no') job.ok = ok job.m = m"), "{}",
            "{\"m\":\"no\",\"ok\":false}");
    becomes(BODY("job.t = tostring({}) .. tostring(print) .. tostring(1.5)"), "{}",
            "{\"t\":\"tablenil1.5\"}");
}

static void test_order_of_steps(void **state)
{
    (void)state;
    /* prepare sees what was written and may change the size; submit sees what it stands for. */
    becomes("function prepare(job) job.seen = job.gpus or 'none' job.size = 'large' end "
            "function submit(job) job.then_ = job.gpus end",
            "{\"size\":\"medium\"}",
            "{\"size\":\"large\",\"seen\":\"none\",\"gpus\":8,\"cpu\":64,\"ram\":\"512Gi\","
            "\"then_\":8}");
}

static void test_refusals(void **state)
{
    (void)state;
    stops(BODY("return false, 'not today'"), ST_EREFUSED, "rule r: not today");
    stops(BODY("return nil, 'not today'"), ST_EREFUSED, "rule r: not today");
    stops(BODY("return false"), ST_EREFUSED, "rule r: it gives no reason");
    stops(BODY("return false, 'a\\nb\\0c'"), ST_EREFUSED, "rule r: a b c");
    stops(BODY("return 1"), ST_EINTERNAL, "returned a number");
    stops(BODY("return false, {}"), ST_EINTERNAL, "refused with a table");
    stops(BODY("\nreturn job.env.X"), ST_EINTERNAL, "rule r: r:3: attempt to index");
    stops(BODY("error({})"), ST_EINTERNAL, "raised an error that is a table");
    stops(BODY("error()"), ST_EINTERNAL, "raised an error that is a nil");
    stops(BODY("error('x\\ny', 0)"), ST_EINTERNAL, "rule r: x y");
    stops(BODY("assert(false, {1})"), ST_EINTERNAL, "is a table");
}

static void test_documents(void **state)
{
    (void)state;
    stops(BODY("job.f = error"), ST_EINTERNAL, "job.f is a function");
    stops(BODY("job.self = job"), ST_EINTERNAL, "nested too deep, or contains itself");
    stops(BODY("job.l = {1, nil, 3}"), ST_EINTERNAL, "job.l is a list with holes");
    stops(BODY("job.l = {1, x = 2}"), ST_EINTERNAL, "job.l is a list with holes");
    stops(BODY("job.l = {[0] = 1}"), ST_EINTERNAL, "has a key that is not text");
    stops(BODY("job.e = {X = 0/0}"), ST_EINTERNAL, "job.e.X is not a number");
    stops(BODY("job.e = {{}, {math.huge}}"), ST_EINTERNAL, "job.e[2][1] is not a number");
    stops(BODY("job.s = '\\xff'"), ST_EINTERNAL, "job.s is not UTF-8");
    stops(BODY("job.s = 'a\\0b'"), ST_EINTERNAL, "job.s has a zero byte");
    stops(BODY("job['\\xff'] = 1"), ST_EINTERNAL, "is not UTF-8");
    /* 2^20 leaves from 20 tables. */
    stops(BODY("local t = {1} for i = 1, 20 do t = {t, t} end job.t = t"), ST_EINTERNAL,
          "larger than is allowed");
    stops(BODY("local s, t = ('x'):rep(1000000), {} for i = 1, 100 do t[i] = s end job.t = t"),
          ST_EINTERNAL, "too many bytes");
}

/* What would lead out is not there. */
static void test_no_way_out(void **state)
{
    static const char *const gone[] = {
        "os",           "io",          "load",   "loadstring",    "loadfile",       "dofile",
        "require",      "package",     "debug",  "coroutine",     "collectgarbage", "setmetatable",
        "getmetatable", "rawset",      "rawget", "rawequal",      "rawlen",         "xpcall",
        "print",        "string.dump", "_G",     "_ENV._G",       "table.move",     "string.pack",
        "math.random",  "utf8",        "warn",   "string.unpack",
    };
    char script[200];

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(gone); i++) {
        snprintf(script, sizeof script, BODY("job.x = type(%s)"), gone[i]);
        becomes(script, "{}", "{\"x\":\"nil\"}");
    }
    stops(BODY("os.execute('touch /tmp/x')"), ST_EINTERNAL, "attempt to index a nil value");
    stops(BODY("io.open('/etc/passwd')"), ST_EINTERNAL, "attempt to index a nil value");
    stops(BODY("load(string.dump(submit))()"), ST_EINTERNAL, "attempt to call a nil value");
    stops(BODY("local s = ('x').format('%p', {})"), ST_EINTERNAL, "no %p");
    stops(BODY("local s = ('%s'):format({})"), ST_EINTERNAL, "text or a number expected");
    stops(BODY("coroutine.wrap(function() while true do end end)()"), ST_EINTERNAL, "nil value");
}

static void test_bounds(void **state)
{
    (void)state;
    stops(BODY("while true do end"), ST_EINTERNAL, "r:2: took more than 1000000 steps");
    stops(BODY("repeat until false"), ST_EINTERNAL, "steps");
    stops(BODY("for i = 1, math.huge do end"), ST_EINTERNAL, "steps");
    stops(BODY("local function f() return f() end f()"), ST_EINTERNAL, "steps");
    stops(BODY("while true do pcall(function() while true do end end) end"), ST_EINTERNAL, "steps");
    stops(BODY("pcall(pcall, function() while true do end end) return true"), ST_EINTERNAL,
          "steps");
    stops(BODY("local function f() pcall(f) end while true do f() end"), ST_EINTERNAL, "r:2");
    stops(BODY("local s = ('x'):rep(1 << 30)"), ST_EINTERNAL, "r:2: took more than 16 MiB");
    stops(BODY("local ok = pcall(string.rep, 'x', 1 << 40) return true"), ST_EINTERNAL, "16 MiB");
    stops(BODY("local s = 'x' while true do s = s .. s end"), ST_EINTERNAL, "16 MiB");
    stops(BODY("local t, s = {}, ('x'):rep(9000) while true do t[#t + 1] = s .. #t end"),
          ST_EINTERNAL, "16 MiB");
    stops(BODY("local s = 'x' while true do pcall(function() s = s .. s end) end"), ST_EINTERNAL,
          "16 MiB");
    stops(BODY("local function f() return 1 + f() end f()"), ST_EINTERNAL, "16 MiB");
    stops(BODY("local s = ('('):rep(300) .. ('x') return s:find(s)"), ST_EINTERNAL, "capture");
    becomes(BODY("job.s = (''):rep(1 << 62)"), "{}", "{\"s\":\"\"}");
    /* Work inside one library call is work too. */
    stops(BODY("return (('a'):rep(1000)):find(('a-'):rep(20) .. 'b')"), ST_EINTERNAL, "steps");
    stops(BODY("local s = ('a'):rep(1 << 20) while true do s:upper() end"), ST_EINTERNAL, "steps");
    stops(BODY("local t = {} for i = 1, 20000 do t[i] = i end while true do table.sort(t) end"),
          ST_EINTERNAL, "steps");
    stops(BODY("local t = {} while true do table.insert(t, 1, 1) end"), ST_EINTERNAL, "steps");
    stops(BODY("local s = ('a'):rep(1 << 20) while true do s:byte(1, 100) end"), ST_EINTERNAL,
          "steps");
    stops("function submit() return x end\n" BODY("return tostring(({}) .. 'x')"), ST_EINTERNAL,
          "concatenate");
}

static void test_cpu_time(void **state)
{
    /* Comparing long strings is one instruction each: only the clock sees it. */
    const st_rules_options options = {
        .limits = {.steps = 1000000000, .cpu_ms = 20, .memory = (size_t)64 << 20}};
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(&options);
    st_err err = {0};

    (void)state;
    assert_ok(
        st_rules_put(rules, "slow",
                     BODY("local a, b = ('x'):rep(1 << 20) .. 'a', ('x'):rep(1 << 20) .. 'b'\n"
                          "while a ~= b do end"),
                     0, &err));
    assert_null(apply(rules, "{}", &err));
    assert_non_null(strstr(err.msg, "slow:3: took more than 20 ms of CPU time"));
}

/* Nothing that a call leaves behind is there for the next. */
static void test_leaks(void **state)
{
    static const char *const leaks[] = {
        BODY("job.seen = x x = 'leaked'"),
        "local n = 0 " BODY("n = n + 1 job.seen = n > 1 and n or nil"),
        "t = {} " BODY("job.seen = t.x t.x = 'leaked'"),
        BODY("job.seen = tostring(who.x) ~= 'nil' and 'leaked' or nil who.x = 1"),
        BODY("local s = pcall(function() string.upper = 1 end) job.seen = s or nil"),
        BODY("local s = pcall(function() string.leak = 1 end) job.seen = s or string.leak"),
        BODY("local s = pcall(function() math.pi = 3 end) job.seen = s or nil"),
        BODY("local s = pcall(table.insert, table, 1) job.seen = s or nil"),
        BODY("local s = pcall(function() local m = '' m.x = 1 end) job.seen = s or nil"),
        BODY("job.seen = (string.upper == nil) or nil string = nil"),
        BODY("local ok = pcall(next, string) job.seen = next(string)"),
        BODY("for k, v in pairs(math) do job.seen = k end"),
        BODY("pcall = nil tostring = nil job.seen = nil"),
    };

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(leaks); i++) {
        ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);
        st_err err = {0};

        assert_ok(st_rules_put(rules, "r", leaks[i], 0, &err));
        for (int call = 0; call < 3; call++) {
            char *got = apply(rules, "{}", &err);

            if (!got || strcmp(got, "{}") != 0)
                fail_msg("%s: call %d: %s", leaks[i], call, got ? got : err.msg);
            free(got);
        }
    }
}

static void test_put(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);
    ST_CLEANUP(st_json_drop) json_t *list = NULL;
    st_err err = {0};
    char *got;

    (void)state;
    assert_ok(st_rules_put(rules, "b", BODY("job.s = (job.s or '') .. 'b'"), 0, &err));
    assert_ok(st_rules_put(rules, "c", BODY("job.s = (job.s or '') .. 'c'"), 0, &err));
    assert_ok(st_rules_put(rules, "a", BODY("job.s = (job.s or '') .. 'a'"), 0, &err));
    got = apply(rules, "{}", &err);
    assert_string_equal(got, "{\"s\":\"abc\"}"); /* in order of their names */
    free(got);
    assert_fails(st_rules_put(rules, "b", "function submit(", 0, &err), ST_EINVAL, "rule b: b:1:");
    assert_fails(st_rules_put(rules, "b", "x = 1", 0, &err), ST_EINVAL, "neither submit");
    assert_fails(st_rules_put(rules, "b", "submit = 1", 0, &err), ST_EINVAL, "submit is a number");
    assert_fails(st_rules_put(rules, "b", "while true do end", 0, &err), ST_EINVAL, "steps");
    assert_fails(st_rules_put(rules, "b", "\x1bLua", 0, &err), ST_EINVAL, "binary");
    assert_fails(st_rules_put(rules, "b c", "", 0, &err), ST_EINVAL, "cannot be the name");
    assert_fails(st_rules_check(rules, "b", "?", &err), ST_EINVAL, "b:1:");
    got = apply(rules, "{}", &err);
    assert_string_equal(got, "{\"s\":\"abc\"}"); /* the old one stays */
    free(got);
    assert_ok(st_rules_put(rules, "b", BODY("return false, 'B'"), 0, &err));
    assert_null(apply(rules, "{}", &err));
    list = st_rules_list(rules);
    assert_int_equal(json_array_size(list), 3);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 1), "name")), "b");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 1), "calls")), 3);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 1), "refused")), 1);
    assert_ok(st_rules_remove(rules, "b", &err));
    assert_fails(st_rules_remove(rules, "b", &err), ST_ENOENT, "there is no rule \"b\"");
    got = apply(rules, "{}", &err);
    assert_string_equal(got, "{\"s\":\"ac\"}");
    free(got);
}

static void test_fail_open(void **state)
{
    const st_rules_options options = {.fail_open = true};
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(&options);
    ST_CLEANUP(st_json_drop) json_t *list = NULL;
    st_err err = {0};
    char *got;

    (void)state;
    assert_ok(st_rules_put(rules, "a", BODY("job.gpus = 7 error('broken')"), 0, &err));
    assert_ok(st_rules_put(rules, "b", BODY("job.cpu = 2"), 0, &err));
    got = apply(rules, "{\"gpus\":1}", &err);
    assert_string_equal(got, "{\"gpus\":1,\"cpu\":2}"); /* as if a were not there */
    free(got);
    list = st_rules_list(rules);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "failed")), 1);
    assert_non_null(strstr(
        json_string_value(json_object_get(json_array_get(list, 0), "last_error")), "broken"));
    assert_ok(st_rules_put(rules, "b", BODY("return false, 'no'"), 0, &err));
    assert_null(apply(rules, "{}", &err)); /* a refusal is none of this */
}

static void test_bad_input(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);
    json_t *jobs = NULL;
    st_err err = {0};
    char deep[200];

    (void)state;
    assert_fails(rules_apply(rules, &ann, "[]", 2, &jobs, &err), ST_EINVAL, "is a map");
    assert_fails(rules_apply(rules, &ann, "{", 1, &jobs, &err), ST_EPARSE, "no JSON");
    assert_fails(rules_apply(rules, &ann, "{\"a\":1,\"a\":2}", 13, &jobs, &err), ST_EPARSE,
                 "duplicate");
    memset(deep, '[', 50);
    memset(deep + 50, ']', 50);
    snprintf(deep + 100, 100, "}");
    memmove(deep + 5, deep, 102);
    memcpy(deep, "{\"a\":", 5);
    assert_fails(rules_apply(rules, &ann, deep, strlen(deep), &jobs, &err), ST_EINVAL,
                 "nested more than");
    assert_null(jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),    cmocka_unit_test(test_order_of_steps),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_documents),
        cmocka_unit_test(test_no_way_out), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_cpu_time),   cmocka_unit_test(test_leaks),
        cmocka_unit_test(test_put),        cmocka_unit_test(test_fail_open),
        cmocka_unit_test(test_bad_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
