/*
 * Our matcher and Lua's own agree: every combination of subjects and patterns below, through
 * find, match, gmatch and gsub; then as many made up by a generator. The same script runs in a
 * plain Lua state and in a box.
 */
#include <jansson.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "base/rng.h"
#include "base/testing.h"
#include "rules/box.h"
#include "rules/values.h"

static const char *const subjects[] = {
    "",
    "a",
    "aaa",
    "abc",
    "hello world",
    "  trim me  ",
    "key = value",
    "a-b_c.d",
    "(a(b)c)d",
    "((x",
    "THE (quick) fox",
    "x=1, y=22,z=333",
    "aXbXc",
    "\\n%d",
    "[set]",
    "team/ann@9",
    "2026-06-15",
    "aab aab",
};
static const char *const patterns[] = {
    "",
    "a",
    ".",
    "a*",
    "a+",
    "a-",
    "a?",
    "^a",
    "a$",
    "^a*$",
    "^",
    "$",
    "%a+",
    "%d+",
    "%w+",
    "%s*",
    "^%s*(.-)%s*$",
    "(%w+)%s*=%s*(%w+)",
    "()",
    "()a()",
    "(a)(b)",
    "((a)(b)c)",
    "%b()",
    "%bxx",
    "%f[%w]%w+",
    "%f[%a]",
    "[abc]+",
    "[^abc]+",
    "[a-c]",
    "[%w_]+",
    "[]]",
    "[^]]",
    "[a-]",
    "[%]]",
    "[-a]",
    "(.)%1",
    "(a*)%1",
    "%(",
    "%",
    "[",
    "[a",
    "[%",
    "(",
    ")",
    "(()",
    "%b",
    "%bx",
    "%f",
    "%1",
    "a**",
    "a-b",
    ".-b",
    "%S+",
    "%u%l*",
    "%p",
    "%x+",
    "[%a-z]",
    "(%d+)-(%d+)",
    "x*",
    "%c",
    "%g+",
    "[[-^]",
    "a.-c",
    "^(a)",
    "$a",
    "a^b",
    "%9",
    "(%w+)@(%d)",
    "[^%s]",
    "(a?)(b?)",
};

/* Everything the four functions make of s and p, as one text; an error is just an error. */
static const char script[] =
    "local function say(...)\n"
    "  local r = {}\n"
    "  for i = 1, select('#', ...) do r[i] = tostring((select(i, ...))) end\n"
    "  return '<' .. table.concat(r, '|') .. '>'\n"
    "end\n"
    "local function try(f, ...)\n"
    "  local r = table.pack(pcall(f, ...))\n"
    "  if r[1] then return say(table.unpack(r, 2, r.n)) end\n"
    "  return '<error>'\n"
    "end\n"
    "local function all(s, p, i)\n"
    "  local r = {}\n"
    "  for a, b in string.gmatch(s, p, i) do r[#r + 1] = say(a, b) end\n"
    "  return table.concat(r)\n"
    "end\n"
    "local function half(a, b) if a ~= 'a' then return b end end\n"
    "function run(s, p)\n"
    "  return try(string.find, s, p) .. try(string.match, s, p) .. try(string.find, s, p, -2)\n"
    "    .. try(string.match, s, p, 3) .. try(string.find, s, p, 2, true) .. try(all, s, p)\n"
    "    .. try(all, s, p, 2) .. try(string.gsub, s, p, '[%0]') .. try(string.gsub, s, p, half)\n"
    "    .. try(string.gsub, s, p, '%1%%', 2) .. try(string.gsub, s, p, {a = 'x', ab = 1})\n"
    "end\n"
    "function submit(job) job.r = run(job.s, job.p) end\n";

typedef struct both {
    lua_State *L;
    st_box *box;
} both;

static void begin(both *b)
{
    const st_rules_limits limits = {.steps = 100000000, .cpu_ms = 60000, .memory = 64u << 20};
    unsigned has;
    st_err err = {0};

    b->L = luaL_newstate();
    luaL_openlibs(b->L);
    if (luaL_dostring(b->L, script) != LUA_OK)
        fail_msg("%s", lua_tostring(b->L, -1));
    assert_ok(st_box_new(&limits, &b->box, &err));
    assert_ok(st_box_load(b->box, "pattern", script, &has, &err));
    assert_int_equal(has, ST_BOX_SUBMIT);
}

static void end(both *b)
{
    lua_close(b->L);
    st_box_free(b->box);
}

static void compare(both *b, const char *s, const char *p)
{
    const st_rules_who nobody = {0};
    ST_CLEANUP(st_json_drop) json_t *job = json_pack("{s:s, s:s}", "s", s, "p", p);
    ST_CLEANUP(st_json_drop) json_t *after = NULL;
    const char *theirs, *ours;
    st_err err = {0};

    lua_getglobal(b->L, "run");
    lua_pushstring(b->L, s);
    lua_pushstring(b->L, p);
    if (lua_pcall(b->L, 2, 1, 0) != LUA_OK)
        fail_msg("%s", lua_tostring(b->L, -1));
    theirs = lua_tostring(b->L, -1);
    if (st_box_call(b->box, 0, ST_BOX_SUBMIT, &nobody, job, &after, &err) != ST_VERDICT_ACCEPT)
        fail_msg("\"%s\" \"%s\": %s", s, p, err.msg);
    ours = json_string_value(json_object_get(after, "r"));
    if (strcmp(theirs, ours) != 0)
        fail_msg("subject \"%s\", pattern \"%s\":\nLua %s\nwe  %s", s, p, theirs, ours);
    lua_settop(b->L, 0);
}

static void test_written(void **state)
{
    both b;

    (void)state;
    begin(&b);
    for (size_t s = 0; s < ST_ARRAY_LEN(subjects); s++)
        for (size_t p = 0; p < ST_ARRAY_LEN(patterns); p++)
            compare(&b, subjects[s], patterns[p]);
    end(&b);
}

static void test_generated(void **state)
{
    static const char *const bits[] = {
        "a",    "b", "%a",   "%d", ".",  "*",    "+", "-", "?",   "(",  ")",  "()",     "[", "]",
        "[ab]", "^", "[^a]", "$",  "%1", "%b()", "%", " ", "[a-", "%f", "%2", "%f[%a]", "1"};
    static const char letters[] = "aab1 ()-";
    st_rng rng;
    both b;

    (void)state;
    begin(&b);
    st_rng_seed(&rng, 7);
    for (int i = 0; i < 5000; i++) {
        char s[12] = "", p[64] = "";
        size_t n = st_rng_below(&rng, sizeof s);

        for (size_t k = 0; k < n; k++)
            s[k] = letters[st_rng_below(&rng, sizeof letters - 1)];
        for (size_t k = st_rng_below(&rng, 7); k > 0; k--)
            strcat(p, bits[st_rng_below(&rng, ST_ARRAY_LEN(bits))]);
        compare(&b, s, p);
    }
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_generated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
