/*
 * The parts of the scenario reader, one file each. Private to it. Every
 * function returns 0 or fails with "FILE:LINE: sentence".
 */
#ifndef ST_SCENARIO_READ_H
#define ST_SCENARIO_READ_H

#include "scenario/scenario.h"

/* scenario_fleet.c: `types`, `pools` and `fleet`, any of which may be NULL. */
int st_scn_read_types(st_scenario *s, const st_doc_node *map, st_err *err);
int st_scn_read_pools(st_scenario *s, const st_doc_node *map, st_err *err);
int st_scn_read_fleet(st_scenario *s, const st_doc_node *list, st_err *err);

/* Labels of nodes, as one text in the arena; NULL: none, also where `map` is NULL. */
int st_scn_read_labels(st_scenario *s, const st_doc_node *map, const char **ret, st_err *err);

/* scenario_account.c: the list `accounts`, and one account or change (in the arena). */
int st_scn_read_accounts(st_scenario *s, const st_doc_node *list, st_err *err);
int st_scn_read_account(st_scenario *s, const st_doc_node *map, st_account_doc **ret, st_err *err);

/* scenario_job.c: one `submit`. `every_ms` is ST_UNSET where it was not given; inside a refusal the
 * job's name may be left out. */
int st_scn_read_job(st_scenario *s, const st_doc_node *map, bool refuse, st_scn_job *ret,
                    int *ret_count, int64_t *ret_every_ms, st_err *err);

/* scenario_action.c: one item of `do`. */
/* fault.c: of nodes; and that somebody has looked at an incident. */
int st_scn_read_fault(st_scenario *s, const st_doc_node *node, const st_scn_action *base,
                      st_err *err);
int st_scn_read_reset(st_scenario *s, const st_doc_node *node, const st_scn_action *base,
                      st_err *err);
int st_scn_read_book(st_scenario *s, const st_doc_node *map, const st_scn_action *base,
                     st_err *err);
int st_scn_read_unbook(st_scenario *s, const st_doc_node *node, const st_scn_action *base,
                       st_err *err);
/* zone.c: `zones` and `start`, which may be NULL; a moment by a zone's clock; new rules. */
int st_scn_read_zones(st_scenario *s, const st_doc_node *map, const st_doc_node *start,
                      st_err *err);
int st_scn_read_clock(const st_scenario *s, const st_doc_node *n, st_tz **ret, st_err *err);
int st_scn_find_zone(const st_scenario *s, const st_doc_node *at, const char *name, int *ret,
                     st_err *err);
int st_scn_read_moment(const st_scenario *s, const st_doc_node *node, const char *zone,
                       int64_t *ret_ms, st_err *err);
int st_scn_read_clocks(st_scenario *s, const st_doc_node *map, const st_scn_action *base,
                       st_err *err);
int st_scn_find_booking(const st_scenario *s, const st_doc_node *node, int64_t *ret, st_err *err);
int st_scn_read_action(st_scenario *s, const st_doc_node *map, int64_t at_ms, st_err *err);

/* scenario_expect.c: one item of `expect`. */
int st_scn_read_expect(st_scenario *s, const st_doc_node *map, st_err *err);

/* scenario_names.c. */

/* The n-th name of a pattern: n instead of its %d, or behind it. */
const char *st_scn_numbered(st_scenario *s, const char *pattern, int n);

/* Fails where a pattern that will be numbered gives too long a name. */
int st_scn_check_pattern(const st_scenario *s, const st_doc_node *node, const char *pattern,
                         st_err *err);

/* Things by name; fail with the nearest name there is. A type that is built in is taken up on
 * first mention. */
int st_scn_find_type(st_scenario *s, const st_doc_node *node, int32_t *ret, st_err *err);
int st_scn_find_pool(const st_scenario *s, const st_doc_node *node, int32_t *ret, st_err *err);
int st_scn_find_node(const st_scenario *s, const st_doc_node *node, int32_t *ret, st_err *err);
int st_scn_find_job(const st_scenario *s, const st_doc_node *node, int64_t *ret, st_err *err);
int st_scn_find_account(const st_scenario *s, const st_doc_node *node, const char **ret,
                        st_err *err);

/* The scenario's names, for readers of documents. */
st_spec_names st_scn_spec_names(st_scenario *s);

/* Remembers that there is an account of that name. */
void st_scn_note_account(st_scenario *s, const char *name);

/* scenario_fleet.c: index of a type by name, the built-in ones included; -1: no such type,
 * -2: there are too many. */
int32_t st_scn_type_index(st_scenario *s, const char *name);

#endif
