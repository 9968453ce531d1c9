/*
 * The functions a script has: the safe part of Lua's own, some of them charged for what they do,
 * and some of ours in their place.
 */
#ifndef ST_RULES_LIBS_H
#define ST_RULES_LIBS_H

#include <lua.h>

#define ST_LIBS_CHARGED 20

/* The library functions behind those that are charged, by number. */
typedef struct st_libs {
    int n;
    lua_CFunction fn[ST_LIBS_CHARGED];
} st_libs;

/* Pushes the table that environments inherit from. Raises errors. */
void st_libs_push(lua_State *L, st_libs *libs);

/* find, match, gmatch, gsub: those with patterns (patterns.c). */
int st_lib_find(lua_State *L);
int st_lib_match(lua_State *L);
int st_lib_gmatch(lua_State *L);
int st_lib_gsub(lua_State *L);

#endif
