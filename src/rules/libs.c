/*
 * The functions a script has (rules/libs.h).
 *
 * Left out, and why: load, loadfile, dofile, require, package, os, io, debug (ways out); dump
 * and pack (bytes); setmetatable, getmetatable and the raw functions (metatables are how read-only
 * is done, and finalizers run when nobody counts); coroutine (each has its own hook);
 * collectgarbage; print (to where?); random (a submit twice is the same twice); table.move and
 * xpcall (unbounded work, or errors that would be caught).
 */
#include "rules/libs.h"

#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

#include "base/macros.h"
#include "rules/box.h"

#define STEP_BYTES 16 /* of work that counts as one step */

/* ---- functions that are charged --------------------------------------------------------- */

/* What the arguments weigh: strings by length, tables by length. */
static int64_t weight(lua_State *L)
{
    int64_t n = 0;

    for (int i = 1; i <= lua_gettop(L); i++)
        if (lua_type(L, i) == LUA_TSTRING)
            n += (int64_t)lua_rawlen(L, i) / STEP_BYTES;
        else if (lua_type(L, i) == LUA_TTABLE)
            n += (int64_t)lua_rawlen(L, i);
    return n;
}

static int charged(lua_State *L)
{
    const st_libs *libs = st_box_libs(L);

    st_box_charge(L, weight(L));
    return libs->fn[lua_tointeger(L, lua_upvalueindex(1))](L);
}

/* Sorting is charged for its comparisons, about n log n; those in Lua count themselves too. */
static int charged_sort(lua_State *L)
{
    const st_libs *libs = st_box_libs(L);
    int64_t n = weight(L), log = 1;

    while (n >> log)
        log++;
    st_box_charge(L, n * log);
    return libs->fn[lua_tointeger(L, lua_upvalueindex(1))](L);
}

/* ---- functions of our own --------------------------------------------------------------- */

/* The library's loops without end for an empty string. */
static int lib_rep(lua_State *L)
{
    size_t len, lsep;
    const char *s = luaL_checklstring(L, 1, &len);
    lua_Integer n = luaL_checkinteger(L, 2);
    const char *sep = luaL_optlstring(L, 3, "", &lsep);
    luaL_Buffer b;

    if (n <= 0 || len + lsep == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if ((uint64_t)n > (uint64_t)INT32_MAX / (len + lsep))
        st_box_out_of_memory(L);
    st_box_need(L, (size_t)n * (len + lsep));
    st_box_charge(L, n / 8);
    luaL_buffinitsize(L, &b, (size_t)n * (len + lsep));
    while (n-- > 0) {
        luaL_addlstring(&b, s, len);
        if (n > 0)
            luaL_addlstring(&b, sep, lsep);
    }
    luaL_pushresult(&b);
    return 1;
}

/* The library's would tell where in memory a table lies. */
static int lib_tostring(lua_State *L)
{
    luaL_checkany(L, 1);
    switch (lua_type(L, 1)) {
    case LUA_TNIL:
    case LUA_TBOOLEAN:
    case LUA_TNUMBER:
    case LUA_TSTRING:
        luaL_tolstring(L, 1, NULL);
        break;
    default:
        lua_pushstring(L, luaL_typename(L, 1));
    }
    return 1;
}

static int lib_format(lua_State *L)
{
    size_t len;
    const char *fmt = luaL_checklstring(L, 1, &len);

    for (size_t i = 0; i + 1 < len; i++) {
        size_t at = i;

        if (fmt[i] != '%')
            continue;
        i++;
        while (i < len && strchr("-+ #0123456789.", fmt[i]) && fmt[i])
            i++;
        if (i < len && fmt[i] == 'p')
            return luaL_error(L, "format: there is no %%p here (at byte %d)", (int)at + 1);
    }
    for (int i = 2; i <= lua_gettop(L); i++)
        if (lua_type(L, i) == LUA_TTABLE || lua_type(L, i) == LUA_TFUNCTION)
            return luaL_argerror(L, i, "text or a number expected");
    return charged(L);
}

/* What must not be caught is passed on: out of steps, time or memory. */
static int lib_pcall(lua_State *L)
{
    int status;

    luaL_checkany(L, 1);
    status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    if (status == LUA_ERRMEM)
        st_box_out_of_memory(L);
    if (status != LUA_OK && st_box_spent(L))
        return lua_error(L);
    lua_pushboolean(L, status == LUA_OK);
    lua_insert(L, 1);
    return lua_gettop(L);
}

static int lib_read_only(lua_State *L)
{
    return luaL_error(L, "the table of library functions cannot be changed");
}

/* ---- putting it together ---------------------------------------------------------------- */

typedef struct lib_row {
    const char *lib, *name; /* lib "_G": a plain function */
    lua_CFunction own;      /* NULL: the library's, as it is */
    bool charge;            /* the library's is behind `own` */
} lib_row;

static const lib_row rows[] = {
    {"_G", "assert", NULL, false},
    {"_G", "error", NULL, false},
    {"_G", "ipairs", NULL, false},
    {"_G", "next", NULL, false},
    {"_G", "pairs", NULL, false},
    {"_G", "pcall", lib_pcall, false},
    {"_G", "select", NULL, false},
    {"_G", "tonumber", charged, true},
    {"_G", "tostring", lib_tostring, false},
    {"_G", "type", NULL, false},
    {"string", "byte", charged, true},
    {"string", "char", charged, true},
    {"string", "find", st_lib_find, false},
    {"string", "format", lib_format, true},
    {"string", "gmatch", st_lib_gmatch, false},
    {"string", "gsub", st_lib_gsub, false},
    {"string", "len", NULL, false},
    {"string", "lower", charged, true},
    {"string", "match", st_lib_match, false},
    {"string", "rep", lib_rep, false},
    {"string", "reverse", charged, true},
    {"string", "sub", charged, true},
    {"string", "upper", charged, true},
    {"table", "concat", charged, true},
    {"table", "insert", charged, true},
    {"table", "pack", charged, true},
    {"table", "remove", charged, true},
    {"table", "sort", charged_sort, true},
    {"table", "unpack", charged, true},
    {"math", "abs", NULL, false},
    {"math", "ceil", NULL, false},
    {"math", "exp", NULL, false},
    {"math", "floor", NULL, false},
    {"math", "fmod", NULL, false},
    {"math", "huge", NULL, false},
    {"math", "log", NULL, false},
    {"math", "max", NULL, false},
    {"math", "maxinteger", NULL, false},
    {"math", "min", NULL, false},
    {"math", "mininteger", NULL, false},
    {"math", "modf", NULL, false},
    {"math", "pi", NULL, false},
    {"math", "sqrt", NULL, false},
    {"math", "tointeger", NULL, false},
    {"math", "type", NULL, false},
    {"math", "ult", NULL, false},
};

static const char *const libraries[] = {"string", "table", "math"};

/* Pushes what a row stands for; the library's table is at `from`. */
static void push_function(lua_State *L, st_libs *libs, const lib_row *row, int from)
{
    if (!row->own) {
        lua_getfield(L, from, row->name);
        ST_ASSERT(!lua_isnil(L, -1));
        return;
    }
    if (!row->charge) {
        lua_pushcfunction(L, row->own);
        return;
    }
    lua_getfield(L, from, row->name);
    ST_ASSERT(libs->n < ST_LIBS_CHARGED && lua_tocfunction(L, -1));
    libs->fn[libs->n] = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    lua_pushinteger(L, libs->n++);
    lua_pushcclosure(L, row->own, 1);
}

/* Pushes a new table with the functions of one library; the library's own is at `from`. */
static void push_library(lua_State *L, st_libs *libs, const char *lib, int from)
{
    lua_newtable(L);
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].lib, lib) != 0)
            continue;
        push_function(L, libs, &rows[i], from);
        lua_setfield(L, -2, rows[i].name);
    }
}

/* Replaces the table on top by an empty one that reads from it and cannot be written. */
static void seal(lua_State *L)
{
    lua_newtable(L);
    lua_newtable(L);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, lib_read_only);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_remove(L, -2);
}

void st_libs_push(lua_State *L, st_libs *libs)
{
    static const luaL_Reg opened[] = {
        {LUA_GNAME, luaopen_base},
        {"string", luaopen_string},
        {"table", luaopen_table},
        {"math", luaopen_math},
    };
    int all;

    for (size_t i = 0; i < ST_ARRAY_LEN(opened); i++) {
        luaL_requiref(L, opened[i].name, opened[i].func, 0);
        lua_pop(L, 1);
    }
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, LUA_GNAME);
    push_library(L, libs, LUA_GNAME, lua_gettop(L));
    lua_remove(L, -2);
    all = lua_gettop(L);
    for (size_t i = 0; i < ST_ARRAY_LEN(libraries); i++) {
        lua_getfield(L, all - 1, libraries[i]);
        push_library(L, libs, libraries[i], lua_gettop(L));
        lua_remove(L, -2);
        if (strcmp(libraries[i], "string") == 0) { /* ("x"):upper() finds the same functions */
            lua_pushliteral(L, "");
            lua_getmetatable(L, -1);
            lua_pushvalue(L, -3);
            lua_setfield(L, -2, "__index");
            lua_pop(L, 2);
        }
        seal(L);
        lua_setfield(L, all, libraries[i]);
    }
    lua_remove(L, all - 1);
}
