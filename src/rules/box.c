/*
 * The box (rules/box.h).
 */
#include "rules/box.h"

#include <inttypes.h>
#include <lauxlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/vec.h"
#include "rules/convert.h"
#include "rules/libs.h"
#include "rules/values.h"

#define HOOK_STEPS 256 /* between two looks at the budget */
#define ALLOC_STEP 64  /* bytes that cost one step, so that making garbage is not free */
#define TIDY_BYTES ((size_t)1 << 20) /* garbage that a call may leave behind */

/* Slots of the registry. */
enum { SLOT_ENV_META = 100, SLOT_LIST_MARK, SLOT_FIRST_SCRIPT };

typedef enum spent { SPENT_NOT, SPENT_STEPS, SPENT_TIME, SPENT_MEMORY } spent;

struct st_box {
    lua_State *L;
    st_rules_limits limits;
    size_t used, cap;
    int64_t left;
    int64_t deadline_ns; /* 0: not looked at the clock yet */
    spent spent;
    int line; /* where the hook last found the script; 0: it has not run for long */
    st_libs libs;
    ST_VEC(char *) names;
    size_t at_rest; /* bytes used after the last script was loaded */
};

/* ---- counting ----------------------------------------------------------------------------- */

static st_box *box_of(lua_State *L)
{
    return *(st_box **)lua_getextraspace(L);
}

static void *allocate(void *ud, void *ptr, size_t osize, size_t nsize)
{
    st_box *box = ud;
    size_t had = ptr ? osize : 0;
    void *p;

    if (nsize == 0) {
        free(ptr);
        box->used -= had;
        return NULL;
    }
    if (nsize > had) {
        if (nsize - had > box->cap - ST_MIN(box->cap, box->used))
            return NULL;
        box->left -= (int64_t)((nsize - had) / ALLOC_STEP);
    }
    p = realloc(ptr, nsize);
    if (p)
        box->used = box->used - had + nsize;
    return p;
}

static int64_t thread_ns(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
        return 0;
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void hook(lua_State *L, lua_Debug *ar);

/* Raises the error that ends the script. `level` is 0 in the hook, which runs in the script's
 * function, and 1 in a function that the script called. */
static _Noreturn void give_up(lua_State *L, st_box *box, spent why, int level)
{
    box->spent = why;
    lua_sethook(L, hook, LUA_MASKCOUNT, 1); /* from now on every instruction fails */
    luaL_where(L, level);
    if (why == SPENT_TIME)
        lua_pushfstring(L, "took more than %d ms of CPU time", (int)box->limits.cpu_ms);
    else if (why == SPENT_MEMORY)
        lua_pushfstring(L, "took more than %d MiB of memory", (int)(box->limits.memory >> 20));
    else
        lua_pushfstring(L, "took more than %d steps", (int)box->limits.steps);
    lua_concat(L, 2);
    lua_error(L);
    abort();
}

static void hook(lua_State *L, lua_Debug *ar)
{
    st_box *box = box_of(L);
    int64_t now;

    if (lua_getinfo(L, "l", ar))
        box->line = ar->currentline;
    if (box->spent != SPENT_NOT)
        give_up(L, box, box->spent, 0);
    box->left -= HOOK_STEPS;
    if (box->left < 0)
        give_up(L, box, SPENT_STEPS, 0);
    now = thread_ns();
    if (box->deadline_ns == 0)
        box->deadline_ns = now + box->limits.cpu_ms * 1000000;
    else if (now > box->deadline_ns)
        give_up(L, box, SPENT_TIME, 0);
}

void st_box_charge(lua_State *L, int64_t steps)
{
    st_box *box = box_of(L);

    box->left -= steps;
    if (box->left < 0)
        give_up(L, box, SPENT_STEPS, 1);
}

int64_t st_box_left(lua_State *L)
{
    return ST_MAX(0, box_of(L)->left);
}

bool st_box_spent(lua_State *L)
{
    return box_of(L)->spent != SPENT_NOT;
}

void st_box_need(lua_State *L, size_t bytes)
{
    st_box *box = box_of(L);

    if (bytes > box->limits.memory)
        give_up(L, box, SPENT_MEMORY, 1);
}

void st_box_out_of_memory(lua_State *L)
{
    give_up(L, box_of(L), SPENT_MEMORY, 1);
}

st_libs *st_box_libs(lua_State *L)
{
    return &box_of(L)->libs;
}

/* ---- protected calls ----------------------------------------------------------------------- */

/* One line of plain text out of an error value of any kind. */
static void error_text(lua_State *L, char *buf, size_t size)
{
    size_t n = 0, len = 0;
    const char *s = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &len) : NULL;

    if (!s) {
        snprintf(buf, size, "raised an error that is a %s and no text", luaL_typename(L, -1));
        return;
    }
    for (size_t i = 0; i < len && n + 1 < size; i++) {
        unsigned char c = (unsigned char)s[i];

        buf[n++] = c < ' ' || c == 0x7f ? ' ' : (char)c;
    }
    /* Not inside a character. */
    while (n > 0 && n + 1 == size && ((unsigned char)buf[n - 1] & 0x80))
        n--;
    buf[n] = '\0';
}

/* Runs fn(arg) with a fresh budget. */
static int protect(st_box *box, const char *name, lua_CFunction fn, void *arg, st_err *err)
{
    lua_State *L = box->L;
    char text[400];
    int status;

    box->left = box->limits.steps;
    box->deadline_ns = 0;
    box->spent = SPENT_NOT;
    box->line = 0;
    box->cap = box->at_rest + box->limits.memory;
    lua_sethook(L, hook, LUA_MASKCOUNT, HOOK_STEPS);
    lua_pushcfunction(L, fn);
    lua_pushlightuserdata(L, arg);
    status = lua_pcall(L, 1, 0, 0);
    if (status == LUA_OK)
        return 0;
    if (status == LUA_ERRMEM && box->line > 0) {
        st_fail(err, ST_EINTERNAL, "rule %s: near line %d: took more than %zu MiB of memory", name,
                box->line, box->limits.memory >> 20);
    } else if (status == LUA_ERRMEM) {
        st_fail(err, ST_EINTERNAL, "rule %s: took more than %zu MiB of memory", name,
                box->limits.memory >> 20);
    } else {
        error_text(L, text, sizeof text);
        st_fail(err, ST_EINTERNAL, "rule %s: %s", name, text);
    }
    lua_settop(L, 0);
    return -ST_EINTERNAL;
}

/* ---- making and loading ------------------------------------------------------------------- */

static int set_up(lua_State *L)
{
    st_box *box = lua_touserdata(L, 1);

    lua_newtable(L); /* of environments */
    st_libs_push(L, &box->libs);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_rawseti(L, LUA_REGISTRYINDEX, SLOT_ENV_META);
    lua_newtable(L); /* of lists */
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_rawseti(L, LUA_REGISTRYINDEX, SLOT_LIST_MARK);
    return 0;
}

int st_box_new(const st_rules_limits *limits, st_box **ret, st_err *err)
{
    ST_CLEANUP(st_box_freep) st_box *box = st_xcalloc(1, sizeof *box);
    int r;

    box->limits = *limits;
    box->cap = SIZE_MAX;
    box->L = lua_newstate(allocate, box);
    if (!box->L)
        return st_fail(err, ST_EINTERNAL, "out of memory for a Lua state");
    *(st_box **)lua_getextraspace(box->L) = box;
    box->at_rest = (size_t)1 << 20; /* for the libraries */
    r = protect(box, "libraries", set_up, box, err);
    if (r < 0)
        return r;
    box->at_rest = box->used;
    *ret = ST_TAKE(box);
    return 0;
}

void st_box_free(st_box *box)
{
    if (!box)
        return;
    if (box->L)
        lua_close(box->L);
    for (size_t i = 0; i < box->names.n; i++)
        free(box->names.v[i]);
    st_vec_free(&box->names);
    free(box);
}

/* Pushes a fresh environment in which the top level of script n has run. */
static void push_env(lua_State *L, size_t n)
{
    lua_newtable(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, SLOT_ENV_META);
    lua_setmetatable(L, -2);
    lua_rawgeti(L, LUA_REGISTRYINDEX, (lua_Integer)(SLOT_FIRST_SCRIPT + n));
    lua_pushvalue(L, -2);
    lua_setupvalue(L, -2, 1); /* a chunk's first upvalue is its environment */
    lua_call(L, 0, 0);
}

/* Pushes a function the script defined; not one it inherits. */
static bool push_function(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    if (lua_isfunction(L, -1))
        return true;
    if (!lua_isnil(L, -1))
        luaL_error(L, "%s is a %s; a function is wanted", name, luaL_typename(L, -1));
    lua_pop(L, 1);
    return false;
}

typedef struct loading {
    const char *name, *text;
    size_t slot;
    unsigned has;
} loading;

static int load_script(lua_State *L)
{
    loading *l = lua_touserdata(L, 1);
    char chunk[ST_NAME_MAX + 2];

    snprintf(chunk, sizeof chunk, "=%s", l->name);
    if (luaL_loadbufferx(L, l->text, strlen(l->text), chunk, "t") != LUA_OK)
        return lua_error(L);
    lua_rawseti(L, LUA_REGISTRYINDEX, (lua_Integer)(SLOT_FIRST_SCRIPT + l->slot));
    push_env(L, l->slot);
    l->has = 0;
    if (push_function(L, "prepare")) {
        l->has |= ST_BOX_PREPARE;
        lua_pop(L, 1);
    }
    if (push_function(L, "submit"))
        l->has |= ST_BOX_SUBMIT;
    if (l->has == 0)
        luaL_error(L, "it defines neither submit(job, who) nor prepare(job, who)");
    return 0;
}

int st_box_load(st_box *box, const char *name, const char *text, unsigned *ret_has, st_err *err)
{
    loading l = {.name = name, .text = text, .slot = box->names.n};
    int r = protect(box, name, load_script, &l, err);

    if (r < 0)
        return r;
    lua_gc(box->L, LUA_GCCOLLECT);
    box->at_rest = box->used;
    st_vec_push(&box->names, st_xstrdup(name));
    *ret_has = l.has;
    return 0;
}

/* ---- calling -------------------------------------------------------------------------------- */

typedef struct calling {
    size_t n;
    const char *function;
    const st_rules_who *who;
    const json_t *job;
    json_t *out;
    bool refused;
    char words[400];
} calling;

static void set_text(lua_State *L, const char *key, const char *value)
{
    lua_pushstring(L, value ? value : "");
    lua_setfield(L, -2, key);
}

static void set_integer(lua_State *L, const char *key, int64_t value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, key);
}

/* The names are those of os.date("*t"), so that nobody has to learn others. */
static void push_now(lua_State *L, const st_rules_who *who)
{
    int64_t local_ms = who->now_ms + who->zone_ms;
    time_t t = (time_t)((local_ms - (local_ms % 1000 + 1000) % 1000) / 1000);
    struct tm tm = {0};

    gmtime_r(&t, &tm);
    lua_createtable(L, 0, 8);
    set_integer(L, "unix", (who->now_ms - (who->now_ms % 1000 + 1000) % 1000) / 1000);
    set_integer(L, "year", (int64_t)tm.tm_year + 1900);
    set_integer(L, "month", tm.tm_mon + 1);
    set_integer(L, "day", tm.tm_mday);
    set_integer(L, "hour", tm.tm_hour);
    set_integer(L, "min", tm.tm_min);
    set_integer(L, "sec", tm.tm_sec);
    set_integer(L, "wday", tm.tm_wday + 1);
}

static void push_who(lua_State *L, const st_rules_who *who)
{
    lua_createtable(L, 0, 5);
    set_text(L, "account", who->account);
    set_text(L, "user", who->user);
    set_text(L, "role", who->role);
    lua_pushboolean(L, who->trusted);
    lua_setfield(L, -2, "trusted");
    push_now(L, who);
    lua_setfield(L, -2, "now");
}

/* Reads the n results on top: nothing, nil or true accept; false, or nil with words, refuse. */
static void read_results(lua_State *L, calling *c, int n)
{
    int first = lua_gettop(L) - n + 1;
    int kind = n == 0 ? LUA_TNIL : lua_type(L, first);
    bool words = n >= 2 && !lua_isnil(L, first + 1);

    if (kind != LUA_TNIL && kind != LUA_TBOOLEAN)
        luaL_error(L, "%s returned a %s; it returns true, or false and a sentence", c->function,
                   lua_typename(L, kind));
    if (kind == LUA_TBOOLEAN && lua_toboolean(L, first))
        return;
    if (kind == LUA_TNIL && !words)
        return;
    c->refused = true;
    snprintf(c->words, sizeof c->words, "it gives no reason");
    if (words) {
        lua_settop(L, first + 1);
        if (lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "%s refused with a %s; a sentence is wanted", c->function,
                       luaL_typename(L, -1));
        error_text(L, c->words, sizeof c->words);
    }
}

static int call_script(lua_State *L)
{
    calling *c = lua_touserdata(L, 1);
    int mark = 2, job = 3, base;

    lua_rawgeti(L, LUA_REGISTRYINDEX, SLOT_LIST_MARK);
    st_convert_push(L, c->job, mark);
    push_env(L, c->n);
    base = lua_gettop(L);
    if (!push_function(L, c->function))
        luaL_error(L, "%s is gone: it must be defined whatever happens", c->function);
    lua_pushvalue(L, job);
    push_who(L, c->who);
    lua_call(L, 2, LUA_MULTRET);
    read_results(L, c, lua_gettop(L) - base);
    if (c->refused)
        return 0;
    lua_settop(L, job);
    st_convert_pull(L, c->out, c->job, mark);
    return 0;
}

st_rule_verdict st_box_call(st_box *box, size_t n, unsigned which, const st_rules_who *who,
                            const json_t *job, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_json_drop) json_t *out = json_object();
    calling c = {.n = n,
                 .function = which == ST_BOX_PREPARE ? "prepare" : "submit",
                 .who = who,
                 .job = job,
                 .out = out};
    int r;

    ST_ASSERT(n < box->names.n);
    r = protect(box, box->names.v[n], call_script, &c, err);
    if (box->used > box->at_rest + TIDY_BYTES)
        lua_gc(box->L, LUA_GCCOLLECT);
    if (r < 0)
        return ST_VERDICT_FAIL;
    if (c.refused) {
        st_fail(err, ST_EREFUSED, "rule %s: %s", box->names.v[n], c.words);
        return ST_VERDICT_REFUSE;
    }
    *ret = ST_TAKE(out);
    return ST_VERDICT_ACCEPT;
}
