/*
 * A JSON document as a Lua table and back.
 *
 * Null is absence. A list keeps being one when it is emptied: it carries a mark that scripts
 * cannot see. Keys keep the order they had, new ones follow by name, so that the same submit
 * gives the same document. A float that is a whole number becomes one (8/2 is 4).
 */
#ifndef ST_RULES_CONVERT_H
#define ST_RULES_CONVERT_H

#include <jansson.h>
#include <lua.h>

#define ST_CONVERT_DEPTH 24
#define ST_CONVERT_NODES 100000
#define ST_CONVERT_BYTES ((size_t)8 << 20)

/* Both raise Lua errors. `mark` is the stack index of the metatable that lists carry. */
void st_convert_push(lua_State *L, const json_t *value, int mark);

/* Fills `into`, an empty object, from the table on top of the stack; `like` is the document it
 * was made from. `into` may be half filled when an error is raised. */
void st_convert_pull(lua_State *L, json_t *into, const json_t *like, int mark);

#endif
