/*
 * Names in a scenario: numbered ones, and finding things by theirs.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/suggest.h"
#include "scenario/read.h"

/* Above this many nobody looks for a typo by eye, and comparing with all costs. */
#define SUGGEST_AMONG_MAX 1000

/* Digits a number may add to a name. */
#define NUMBER_ROOM 8

const char *st_scn_numbered(st_scenario *s, const char *pattern, int n)
{
    char buf[ST_NAME_MAX + 32];
    const char *mark = strstr(pattern, "%d");

    if (mark)
        snprintf(buf, sizeof(buf), "%.*s%d%s", (int)(mark - pattern), pattern, n, mark + 2);
    else
        snprintf(buf, sizeof(buf), "%s%d", pattern, n);
    return st_arena_strdup(s->arena, buf);
}

int st_scn_check_pattern(const st_scenario *s, const st_doc_node *node, const char *pattern,
                         st_err *err)
{
    if (strlen(pattern) + NUMBER_ROOM <= ST_NAME_MAX)
        return 0;
    return st_doc_fail(s->doc, node, err, ST_ERANGE,
                       "the name is too long to be numbered (at most %d bytes)",
                       ST_NAME_MAX - NUMBER_ROOM);
}

int st_scn_find_type(st_scenario *s, const st_doc_node *node, int32_t *ret, st_err *err)
{
    const char *names[ST_TYPES_MAX + 1] = {NULL}, *name;
    int r = st_doc_str(s->doc, node, &name, err);
    int32_t type;

    if (r < 0)
        return r;
    type = st_scn_type_index(s, name);
    if (type == -2)
        return st_doc_fail(s->doc, node, err, ST_ERANGE, "there are more than %d GPU types",
                           ST_TYPES_MAX);
    for (size_t i = 0; i < s->types.n; i++)
        names[i] = s->types.v[i].doc.name;
    if (type < 0)
        return st_spec_missing(s->doc, node, "GPU type", names, err);
    *ret = type;
    return 0;
}

int st_scn_find_pool(const st_scenario *s, const st_doc_node *node, int32_t *ret, st_err *err)
{
    const char *names[ST_POOLS_MAX + 1] = {NULL}, *name;
    int r = st_doc_str(s->doc, node, &name, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < s->pools.n; i++) {
        names[i] = s->pools.v[i].doc.name;
        if (strcmp(names[i], name) == 0) {
            *ret = (int32_t)i;
            return 0;
        }
    }
    return st_spec_missing(s->doc, node, "pool", names, err);
}

int st_scn_find_node(const st_scenario *s, const st_doc_node *node, int32_t *ret, st_err *err)
{
    size_t n = ST_MIN(s->nodes.n, (size_t)SUGGEST_AMONG_MAX);
    ST_CLEANUP(st_freep) const char **names = NULL;
    const char *name;
    int64_t id;
    int r = st_doc_str(s->doc, node, &name, err);

    if (r < 0)
        return r;
    if (st_map_get(s->node_ids, name, &id)) {
        *ret = (int32_t)id;
        return 0;
    }
    names = st_xcalloc(n + 1, sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] = s->nodes.v[i].spec.name;
    return st_spec_missing(s->doc, node, "node", names, err);
}

int st_scn_find_job(const st_scenario *s, const st_doc_node *node, int64_t *ret, st_err *err)
{
    size_t n = ST_MIN(s->jobs.n, (size_t)SUGGEST_AMONG_MAX);
    ST_CLEANUP(st_freep) const char **names = NULL;
    const char *name;
    int r = st_doc_str(s->doc, node, &name, err);

    if (r < 0)
        return r;
    if (st_map_get(s->job_ids, name, ret))
        return 0;
    names = st_xcalloc(n + 1, sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] = s->jobs.v[i].spec.name;
    return st_spec_missing(s->doc, node, "job", names, err);
}

int st_scn_find_account(const st_scenario *s, const st_doc_node *node, const char **ret,
                        st_err *err)
{
    size_t n = ST_MIN(s->account_names.n, (size_t)SUGGEST_AMONG_MAX);
    ST_CLEANUP(st_freep) const char **names = NULL;
    const char *name;
    int r = st_doc_str(s->doc, node, &name, err);

    if (r < 0)
        return r;
    if (strcmp(name, "cluster") == 0 || st_map_get(s->account_ids, name, NULL)) {
        *ret = name;
        return 0;
    }
    names = st_xcalloc(n + 1, sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] = s->account_names.v[i];
    return st_spec_missing(s->doc, node, "account", names, err);
}

void st_scn_note_account(st_scenario *s, const char *name)
{
    if (st_map_get(s->account_ids, name, NULL))
        return;
    st_map_put(s->account_ids, name, (int64_t)s->account_names.n);
    st_vec_push(&s->account_names, name);
}

static int type_named(void *ctx, const st_doc *doc, const st_doc_node *node, int32_t *ret,
                      st_err *err)
{
    (void)doc;
    return st_scn_find_type(ctx, node, ret, err);
}

static int pool_named(void *ctx, const st_doc *doc, const st_doc_node *node, int32_t *ret,
                      st_err *err)
{
    (void)doc;
    return st_scn_find_pool(ctx, node, ret, err);
}

static size_t ntypes(void *ctx)
{
    const st_scenario *s = ctx;
    return s->types.n;
}

static st_board board_of(void *ctx, int32_t type)
{
    const st_scenario *s = ctx;
    return s->types.v[type].doc.board;
}

st_spec_names st_scn_spec_names(st_scenario *s)
{
    return (st_spec_names){s, type_named, pool_named, ntypes, board_of};
}
