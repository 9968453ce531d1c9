/*
 * JSON and Lua (rules/convert.h).
 *
 * A Lua error is a jump past everything here, so nothing is ever owned by a function of this
 * file: a new value goes into its parent before anything else is done.
 */
#include "rules/convert.h"

#include <lauxlib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/strbuf.h"

/* ---- to Lua ------------------------------------------------------------------------------ */

static void push_value(lua_State *L, const json_t *v, int mark, int depth)
{
    const char *key;
    json_t *item; /* the loops of jansson want it so */
    size_t i;

    if (depth > ST_CONVERT_DEPTH)
        luaL_error(L, "the document is nested more than %d deep", ST_CONVERT_DEPTH);
    luaL_checkstack(L, 6, "the document");
    switch (json_typeof(v)) {
    case JSON_STRING:
        lua_pushlstring(L, json_string_value(v), json_string_length(v));
        break;
    case JSON_INTEGER:
        lua_pushinteger(L, (lua_Integer)json_integer_value(v));
        break;
    case JSON_REAL:
        lua_pushnumber(L, json_real_value(v));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        lua_pushboolean(L, json_is_true(v));
        break;
    case JSON_NULL:
        lua_pushnil(L);
        break;
    case JSON_ARRAY:
        lua_createtable(L, (int)json_array_size(v), 0);
        lua_pushvalue(L, mark);
        lua_setmetatable(L, -2);
        json_array_foreach(v, i, item)
        {
            push_value(L, item, mark, depth + 1);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        break;
    case JSON_OBJECT:
        lua_createtable(L, 0, (int)json_object_size(v));
        for (void *at = json_object_iter((json_t *)(uintptr_t)v); at;
             at = json_object_iter_next((json_t *)(uintptr_t)v, at)) {
            key = json_object_iter_key(at);
            lua_pushstring(L, key);
            push_value(L, json_object_iter_value(at), mark, depth + 1);
            lua_rawset(L, -3);
        }
        break;
    }
}

void st_convert_push(lua_State *L, const json_t *value, int mark)
{
    push_value(L, value, lua_absindex(L, mark), 0);
}

/* ---- from Lua ---------------------------------------------------------------------------- */

typedef struct pull {
    lua_State *L;
    int mark;
    int depth;
    size_t nodes, bytes;
    const char *key[ST_CONVERT_DEPTH + 1]; /* where we are; NULL: in a list, at */
    size_t at[ST_CONVERT_DEPTH + 1];
} pull;

/* Raises "job.env.X WHAT". */
static _Noreturn void complain(const pull *p, const char *what)
{
    char path[256] = "job";
    size_t n = 3;

    for (int i = 1; i <= p->depth && n < sizeof path; i++)
        n += (size_t)(p->key[i] ? snprintf(path + n, sizeof path - n, ".%.60s", p->key[i])
                                : snprintf(path + n, sizeof path - n, "[%zu]", p->at[i]));
    luaL_error(p->L, "%s %s", path, what);
    abort();
}

static void count(pull *p, size_t bytes)
{
    p->nodes++;
    p->bytes += bytes;
    if (p->nodes > ST_CONVERT_NODES)
        complain(p, "makes the document larger than is allowed: too many values");
    if (p->bytes > ST_CONVERT_BYTES)
        complain(p, "makes the document larger than is allowed: too many bytes");
}

static void fill_object(pull *p, json_t *into, const json_t *like);
static void fill_array(pull *p, json_t *into, const json_t *like);

/* Whether the table on top is a list: marked, or with items from 1 on. */
static bool is_list(const pull *p)
{
    bool marked = false;

    if (lua_getmetatable(p->L, -1)) {
        marked = lua_rawequal(p->L, -1, p->mark);
        lua_pop(p->L, 1);
    }
    return marked || lua_rawlen(p->L, -1) > 0;
}

static json_t *scalar(pull *p)
{
    lua_State *L = p->L;
    json_t *v = NULL;
    lua_Integer n;
    const char *s;
    size_t len;
    int whole;

    switch (lua_type(L, -1)) {
    case LUA_TBOOLEAN:
        return json_boolean(lua_toboolean(L, -1));
    case LUA_TNUMBER:
        n = lua_tointegerx(L, -1, &whole);
        if (whole)
            return json_integer(n);
        v = json_real(lua_tonumber(L, -1));
        if (!v)
            complain(p, "is not a number that can be written");
        return v;
    case LUA_TSTRING:
        s = lua_tolstring(L, -1, &len);
        count(p, len);
        if (strlen(s) != len)
            complain(p, "has a zero byte in it");
        v = json_stringn(s, len);
        if (!v)
            complain(p, "is not UTF-8");
        return v;
    default:
        complain(p, lua_isfunction(L, -1) ? "is a function" : "is nothing a document can hold");
    }
}

/* Makes the value on top, adds it to `into` under the place that was entered, and fills it. */
static void add_value(pull *p, json_t *into, const char *key, const json_t *like)
{
    bool table = lua_istable(p->L, -1), list = table && is_list(p);
    json_t *v;

    count(p, key ? strlen(key) : 0);
    v = !table ? scalar(p) : list ? json_array() : json_object();
    if (key ? json_object_set_new(into, key, v) != 0 : json_array_append_new(into, v) != 0)
        complain(p, "has a key that is not UTF-8");
    if (list)
        fill_array(p, v, json_is_array(like) ? like : NULL);
    else if (table)
        fill_object(p, v, json_is_object(like) ? like : NULL);
}

static void enter(pull *p, const char *key, size_t at)
{
    if (p->depth == ST_CONVERT_DEPTH)
        complain(p, "is nested too deep, or contains itself");
    p->depth++;
    p->key[p->depth] = key;
    p->at[p->depth] = at;
    luaL_checkstack(p->L, 8, "the document");
}

static void fill_array(pull *p, json_t *into, const json_t *like)
{
    size_t n = lua_rawlen(p->L, -1), keys = 0;

    lua_pushnil(p->L);
    while (lua_next(p->L, -2)) {
        keys++;
        lua_pop(p->L, 1);
    }
    if (keys != n)
        complain(p, "is a list with holes, or with keys that are not 1, 2, 3");
    for (size_t i = 1; i <= n; i++) {
        enter(p, NULL, i);
        lua_rawgeti(p->L, -1, (lua_Integer)i);
        add_value(p, into, NULL, json_array_get(like, i - 1));
        lua_pop(p->L, 1);
        p->depth--;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys the document did not have, in a userdata on the stack, sorted. */
static const char **new_keys(pull *p, const json_t *like, size_t have, size_t *ret_n)
{
    lua_State *L = p->L;
    const char **keys;
    size_t n = 0;

    keys = lua_newuserdatauv(L, (have + 1) * sizeof *keys, 0);
    lua_pushnil(L);
    while (lua_next(L, -3)) {
        const char *key = lua_tostring(L, -2);

        if (!json_object_get(like, key))
            keys[n++] = key;
        lua_pop(L, 1);
    }
    qsort(keys, n, sizeof *keys, by_name);
    *ret_n = n;
    return keys;
}

static void add_field(pull *p, json_t *into, const char *key, const json_t *like)
{
    enter(p, key, 0);
    add_value(p, into, key, like);
    p->depth--;
}

/* How many fields the table on top has; their names must be text. */
static size_t count_fields(pull *p)
{
    size_t n = 0, len;

    lua_pushnil(p->L);
    while (lua_next(p->L, -2)) {
        if (lua_type(p->L, -2) != LUA_TSTRING)
            complain(p, "has a key that is not text");
        if (strlen(lua_tolstring(p->L, -2, &len)) != len)
            complain(p, "has a key with a zero byte");
        lua_pop(p->L, 1);
        n++;
    }
    return n;
}

static void fill_object(pull *p, json_t *into, const json_t *like)
{
    lua_State *L = p->L;
    size_t have = count_fields(p), seen = 0, n;
    json_t *of = (json_t *)(uintptr_t)like; /* iterating does not change it */

    for (void *at = json_object_iter(of); at; at = json_object_iter_next(of, at)) {
        const char *key = json_object_iter_key(at);

        lua_pushstring(L, key);
        lua_rawget(L, -2);
        if (!lua_isnil(L, -1)) {
            add_field(p, into, key, json_object_iter_value(at));
            seen++;
        }
        lua_pop(L, 1);
    }
    if (seen < have) {
        const char **keys = new_keys(p, like, have, &n);

        for (size_t i = 0; i < n; i++) {
            lua_pushstring(L, keys[i]);
            lua_rawget(L, -3);
            add_field(p, into, keys[i], NULL);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
}

void st_convert_pull(lua_State *L, json_t *into, const json_t *like, int mark)
{
    pull p = {.L = L, .mark = lua_absindex(L, mark)};

    if (is_list(&p))
        complain(&p, "is a list");
    fill_object(&p, into, like);
}
