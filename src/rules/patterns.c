/*
 * string.find, match, gmatch and gsub over our own matcher (rules/pattern.h). They behave as the
 * manual says; a test compares them with the library's.
 */
#include <lauxlib.h>
#include <string.h>

#include "rules/box.h"
#include "rules/libs.h"
#include "rules/pattern.h"

/* Begins to match argument 1 by argument 2. */
static void begin(lua_State *L, st_pattern *m)
{
    m->s = luaL_checklstring(L, 1, &m->ns);
    m->p = luaL_checklstring(L, 2, &m->np);
    m->steps = st_box_left(L);
    m->fault = NULL;
}

/* Matches at s and pays for it; the end, or -1. */
static ptrdiff_t match_at(lua_State *L, st_pattern *m, size_t s, size_t from)
{
    ptrdiff_t r;

    m->steps = st_box_left(L);
    r = st_pattern_at(m, s, from);
    st_box_charge(L, st_box_left(L) - m->steps);
    if (r == ST_PATTERN_FAULT)
        luaL_error(L, "%s", m->fault);
    return r;
}

/* Pushes capture i; without captures the first is the whole match. */
static void push_capture(lua_State *L, const st_pattern *m, int i, size_t s, size_t e)
{
    if (i >= m->ncaptures) {
        if (i != 0)
            luaL_error(L, "invalid capture index %%%d", i + 1);
        lua_pushlstring(L, m->s + s, e - s);
    } else if (m->captures[i].len == ST_CAPTURE_POSITION) {
        lua_pushinteger(L, (lua_Integer)m->captures[i].at + 1);
    } else if (m->captures[i].len == ST_CAPTURE_OPEN) {
        luaL_error(L, "unfinished capture");
    } else {
        lua_pushlstring(L, m->s + m->captures[i].at, (size_t)m->captures[i].len);
    }
}

static int push_captures(lua_State *L, const st_pattern *m, size_t s, size_t e, bool whole)
{
    int n = m->ncaptures == 0 && whole ? 1 : m->ncaptures;

    luaL_checkstack(L, n, "too many captures");
    for (int i = 0; i < n; i++)
        push_capture(L, m, i, s, e);
    return n;
}

/* From where to look, of an optional argument; past the end: SIZE_MAX. */
static size_t start_of(lua_State *L, int arg, size_t len)
{
    lua_Integer i = luaL_optinteger(L, arg, 1);

    if (i > 0)
        return (uint64_t)i > (uint64_t)len + 1 ? SIZE_MAX : (size_t)i - 1;
    if (i == 0 || i < -(lua_Integer)len)
        return 0;
    return len - (size_t)-i;
}

static int find_plain(lua_State *L, const st_pattern *m, size_t s)
{
    const char *at;

    /* memmem is linear in practice and at worst in both lengths; pay for the subject. */
    st_box_charge(L, (int64_t)(m->ns - s + m->np) / 8);
    at = m->np == 0 ? m->s + s : memmem(m->s + s, m->ns - s, m->p, m->np);
    if (!at) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, at - m->s + 1);
    lua_pushinteger(L, at - m->s + (lua_Integer)m->np);
    return 2;
}

/* Without one of these a pattern is plain text, a lone ) included. */
static bool has_specials(const st_pattern *m)
{
    for (size_t i = 0; i < m->np; i++)
        if (m->p[i] != '\0' && strchr("^$*+?.([%-", m->p[i]))
            return true;
    return false;
}

static int look(lua_State *L, bool find)
{
    st_pattern m;
    size_t s, anchor;

    begin(L, &m);
    s = start_of(L, 3, m.ns);
    if (s == SIZE_MAX) {
        lua_pushnil(L);
        return 1;
    }
    if (find && (lua_toboolean(L, 4) || !has_specials(&m)))
        return find_plain(L, &m, s);
    anchor = m.np > 0 && m.p[0] == '^';
    do {
        ptrdiff_t e = match_at(L, &m, s, anchor);

        if (e < 0)
            continue;
        if (!find)
            return push_captures(L, &m, s, (size_t)e, true);
        lua_pushinteger(L, (lua_Integer)s + 1);
        lua_pushinteger(L, (lua_Integer)e);
        return 2 + push_captures(L, &m, s, (size_t)e, false);
    } while (s++ < m.ns && !anchor);
    lua_pushnil(L);
    return 1;
}

int st_lib_find(lua_State *L)
{
    return look(L, true);
}

int st_lib_match(lua_State *L)
{
    return look(L, false);
}

/* Upvalues: subject, pattern, where to go on, where the last match ended (plus one; 0: none). */
static int gmatch_next(lua_State *L)
{
    size_t last = (size_t)lua_tointeger(L, lua_upvalueindex(4));
    st_pattern m = {0};

    m.s = lua_tolstring(L, lua_upvalueindex(1), &m.ns);
    m.p = lua_tolstring(L, lua_upvalueindex(2), &m.np);
    for (size_t s = (size_t)lua_tointeger(L, lua_upvalueindex(3)); s <= m.ns; s++) {
        ptrdiff_t e = match_at(L, &m, s, 0);

        if (e < 0 || (size_t)e + 1 == last)
            continue;
        lua_pushinteger(L, e);
        lua_replace(L, lua_upvalueindex(3));
        lua_pushinteger(L, (lua_Integer)e + 1);
        lua_replace(L, lua_upvalueindex(4));
        return push_captures(L, &m, s, (size_t)e, true);
    }
    return 0;
}

int st_lib_gmatch(lua_State *L)
{
    size_t len, s;

    luaL_checklstring(L, 1, &len);
    luaL_checkstring(L, 2);
    s = start_of(L, 3, len);
    lua_settop(L, 2);
    lua_pushinteger(L, (lua_Integer)(s == SIZE_MAX ? len + 1 : s));
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, gmatch_next, 4);
    return 1;
}

/* The replacement text, with %0 to %9 and %% in it. */
static void add_text(lua_State *L, luaL_Buffer *b, const st_pattern *m, size_t s, size_t e)
{
    size_t n;
    const char *text = lua_tolstring(L, 3, &n);

    st_box_charge(L, (int64_t)n / 8 + 1);
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '%') {
            luaL_addchar(b, text[i]);
            continue;
        }
        if (++i < n && text[i] == '%') {
            luaL_addchar(b, '%');
        } else if (i < n && text[i] == '0') {
            luaL_addlstring(b, m->s + s, e - s);
        } else if (i < n && text[i] >= '1' && text[i] <= '9') {
            push_capture(L, m, text[i] - '1', s, e);
            luaL_tolstring(L, -1, NULL); /* a position is a number */
            lua_remove(L, -2);
            luaL_addvalue(b);
        } else {
            luaL_error(L, "invalid use of '%%' in replacement string");
        }
    }
}

/* What one match becomes. */
static void add_match(lua_State *L, luaL_Buffer *b, const st_pattern *m, size_t s, size_t e,
                      int kind)
{
    if (kind == LUA_TSTRING || kind == LUA_TNUMBER) {
        add_text(L, b, m, s, e);
        return;
    }
    if (kind == LUA_TFUNCTION) {
        lua_pushvalue(L, 3);
        lua_call(L, push_captures(L, m, s, e, true), 1);
    } else {
        push_capture(L, m, 0, s, e);
        lua_gettable(L, 3);
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(b, m->s + s, e - s);
    } else if (!lua_isstring(L, -1)) {
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    } else {
        luaL_addvalue(b);
    }
}

int st_lib_gsub(lua_State *L)
{
    st_pattern m;
    size_t s = 0, anchor, last = SIZE_MAX;
    int kind = lua_type(L, 3);
    lua_Integer max, n = 0;
    luaL_Buffer b;

    begin(L, &m);
    max = luaL_optinteger(L, 4, (lua_Integer)m.ns + 1);
    anchor = m.np > 0 && m.p[0] == '^';
    if (kind != LUA_TSTRING && kind != LUA_TNUMBER && kind != LUA_TFUNCTION && kind != LUA_TTABLE)
        return luaL_argerror(L, 3, "text, a table or a function expected");
    luaL_buffinit(L, &b);
    while (n < max) {
        ptrdiff_t e = match_at(L, &m, s, anchor);

        if (e >= 0 && (size_t)e != last) {
            n++;
            add_match(L, &b, &m, s, (size_t)e, kind);
            s = last = (size_t)e;
        } else if (s < m.ns) {
            luaL_addchar(&b, m.s[s++]);
        } else {
            break;
        }
        if (anchor)
            break;
    }
    if (s < m.ns)
        luaL_addlstring(&b, m.s + s, m.ns - s);
    luaL_pushresult(&b);
    lua_pushinteger(L, n);
    return 2;
}
