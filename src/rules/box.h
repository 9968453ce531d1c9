/*
 * A box: one Lua state with compiled scripts in it, in which nothing can be reached but the data
 * of the call, and everything is counted.
 *
 *   1. Scripts see a fresh environment per call. What it inherits from is read-only, the tables
 *      of functions included, and no function gives access to metatables: nothing a call does
 *      can be seen by the next.
 *   2. Only text is compiled, never bytecode.
 *   3. Memory comes from one allocator with a cap. Steps are counted by a hook, by the allocator
 *      and by functions whose work depends on their arguments. When they are used up, every
 *      further instruction fails, and pcall of ours passes such a failure on.
 *   4. Everything that may raise a Lua error runs under lua_pcall.
 *
 * A box is used by one thread at a time.
 */
#ifndef ST_RULES_BOX_H
#define ST_RULES_BOX_H

#include <lua.h>

#include "rules/rules.h"

typedef struct st_box st_box;

typedef enum st_rule_verdict {
    ST_VERDICT_ACCEPT,
    ST_VERDICT_REFUSE, /* the script said no: err has its words */
    ST_VERDICT_FAIL,   /* the script is at fault: err says how */
} st_rule_verdict;

/* What a script has. */
#define ST_BOX_PREPARE 1u
#define ST_BOX_SUBMIT  2u

int st_box_new(const st_rules_limits *limits, st_box **ret, st_err *err);
void st_box_free(st_box *box);
ST_DEFINE_FREEP(st_box, st_box_free)

/* Compiles a script, runs its top level once and says what it has. Scripts are numbered from 0
 * in the order they are loaded. */
int st_box_load(st_box *box, const char *name, const char *text, unsigned *ret_has, st_err *err);

/* Calls prepare or submit of script n. On ACCEPT *ret is the document as the script left it, on
 * anything else err is filled and *ret untouched. */
st_rule_verdict st_box_call(st_box *box, size_t n, unsigned which, const st_rules_who *who,
                            const json_t *job, json_t **ret, st_err *err);

/* ---- for the functions inside ---------------------------------------------------------- */

struct st_libs;

/* Takes steps away; raises an error when there are none left. */
void st_box_charge(lua_State *L, int64_t steps);
int64_t st_box_left(lua_State *L);
/* Whether steps, time or memory are used up, so that no error may be caught. */
bool st_box_spent(lua_State *L);
/* Raise the error of too much memory, which cannot be caught: always, or if that many bytes are
 * more than a script may have. */
void st_box_out_of_memory(lua_State *L);
void st_box_need(lua_State *L, size_t bytes);
struct st_libs *st_box_libs(lua_State *L);

#endif
