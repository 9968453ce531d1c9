/*
 * Fuzzes a request's whole way inside: "METHOD TARGET", a line end, the body. The target goes
 * through the router and the queries of the real table; the body, JSON or (where the route takes
 * it and the method is in small letters) YAML, through the readers of its noun, and what they make
 * of it to a core. Whatever comes in, there is one sentence or something that can be written as
 * JSON, and the core takes it or refuses it.
 */
#include <string.h>

#include "api/api.h"
#include "base/mem.h"
#include "fuzz.h"
#include "http/query.h"
#include "http/router.h"

#define METHOD_MAX 8

static int type_named(void *ctx, const st_doc *doc, const st_doc_node *node, int32_t *ret,
                      st_err *err)
{
    static const char *const names[] = {"h100", "a10", NULL};
    const char *name;
    int r = st_doc_str(doc, node, &name, err);

    (void)ctx;
    for (int i = 0; r == 0 && names[i]; i++) {
        if (strcmp(names[i], name) == 0) {
            *ret = i;
            return 0;
        }
    }
    return r < 0 ? r : st_spec_missing(doc, node, "GPU type", names, err);
}

static int pool_named(void *ctx, const st_doc *doc, const st_doc_node *node, int32_t *ret,
                      st_err *err)
{
    static const char *const names[] = {"main", NULL};
    const char *name;
    int r = st_doc_str(doc, node, &name, err);

    (void)ctx;
    *ret = 0;
    if (r < 0 || strcmp(name, "main") == 0)
        return r;
    return st_spec_missing(doc, node, "pool", names, err);
}

static size_t ntypes(void *ctx)
{
    (void)ctx;
    return 2;
}

static st_board board_of(void *ctx, int32_t type)
{
    (void)ctx;
    return type == 0 ? ST_BOARD_H100_80 : ST_BOARD_NONE;
}

static const st_spec_names names = {NULL, type_named, pool_named, ntypes, board_of};

/* ---- the core -------------------------------------------------------------------------------- */

static void apply(st_core *core, const st_event *event)
{
    st_effects fx = {0};
    st_err err = {0};

    if (st_core_step(core, event, st_core_now(core) + 1, &fx, &err) < 0)
        ST_ASSERT(err.code > 0 && err.msg[0] && !strchr(err.msg, '\n'));
    st_effects_done(&fx);
}

static st_core *world(void)
{
    st_policy policy = st_policy_default();
    st_core *core = st_core_new(&policy);
    st_event ev = {.kind = ST_EV_TYPE};

    ev.u.type.name = "h100";
    ev.u.type.vram_mib = 81920;
    ev.u.type.board = ST_BOARD_H100_80;
    apply(core, &ev);
    ev.u.type.name = "a10";
    ev.u.type.vram_mib = 24576;
    ev.u.type.board = ST_BOARD_NONE;
    apply(core, &ev);
    ev = (st_event){.kind = ST_EV_POOL};
    ev.u.pool.name = "main";
    ev.u.pool.levels = ST_POOL_LEVELS;
    ev.u.pool.oversub_m = ST_POOL_OVERSUB_M;
    apply(core, &ev);
    ev = (st_event){.kind = ST_EV_NODE};
    ev.u.node = (st_node_spec){.name = "n0", .ndevs = 8, .cpu_m = 64000, .ram_mib = 1 << 20};
    apply(core, &ev);
    ev = (st_event){.kind = ST_EV_ACCOUNT};
    st_account_spec_init(&ev.u.account);
    ev.u.account.name = "team";
    ev.u.account.guarantee.gpu_m = 4000;
    apply(core, &ev);
    ST_ASSERT(st_core_tree(core)->accounts.n == 2 && st_core_fleet(core)->nodes.n == 1);
    return core;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static void check_json(const st_doc_node *node)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    json_t *value = NULL;
    st_err err = {0};

    st_spec_json(node, &text);
    if (st_json_parse("spec", st_strbuf_str(&text), text.n, &value, &err) < 0)
        ST_ASSERT(strstr(err.msg, "deeper")); /* a document may nest deeper than an answer */
    json_decref(value);
}

static int read_job(st_core *core, const st_doc *doc, const st_doc_node *map, st_err *err)
{
    st_event ev = {.kind = ST_EV_SUBMIT};
    int r = st_spec_submit(doc, map, &names, &ev.u.job, err);

    if (r < 0)
        return r;
    check_json(map);
    ev.u.job.id = st_core_njobs(core) + 1;
    ev.u.job.account = ev.u.job.account ? ev.u.job.account : "team";
    ev.u.job.user = ev.u.job.user ? ev.u.job.user : "ann";
    ev.u.job.reader = "team";
    apply(core, &ev);
    return 0;
}

static int read_batch(st_core *core, const st_doc *doc, const st_doc_node *root, st_err *err)
{
    const st_doc_node *list = st_doc_get(root, "jobs");
    int r = list ? st_doc_expect(doc, list, ST_DOC_SEQ, err) : 0;

    for (const st_doc_node *n = list ? list->child : NULL; r == 0 && n; n = n->next)
        r = read_job(core, doc, n, err);
    return r;
}

static int read_account(st_core *core, const st_doc *doc, const st_doc_node *map, bool create,
                        st_err *err)
{
    st_event ev = {.kind = ST_EV_ACCOUNT};
    const st_doc_node *children = NULL;
    st_account_doc said;
    int r = st_spec_account(doc, map, &names, create, &said, &children, err);

    if (r < 0)
        return r;
    if (!said.name)
        said.name = "team";
    st_spec_account_lay(st_core_tree(core), &said, &ev.u.account);
    apply(core, &ev);
    return 0;
}

static int read_node(st_core *core, const st_doc *doc, const st_doc_node *map, st_err *err)
{
    st_event ev = {.kind = ST_EV_NODE};
    int r = st_spec_node(doc, map, &names, &ev.u.node, err);

    if (r == 0)
        apply(core, &ev);
    return r;
}

static int read_pool(st_core *core, const st_doc *doc, const st_doc_node *map, st_err *err)
{
    st_event ev = {.kind = ST_EV_POOL_CHANGE};
    st_pool_doc pool = ST_POOL_DOC_INIT;
    int r = st_spec_pool(doc, map, &pool, err);

    ev.u.pool.name = "main";
    ev.u.pool.levels = pool.levels;
    ev.u.pool.oversub_m = pool.oversub_m;
    if (r == 0)
        apply(core, &ev);
    return r;
}

static int read_type(st_core *core, const st_doc *doc, const st_doc_node *map, st_err *err)
{
    st_event ev = {.kind = ST_EV_TYPE};
    st_type_doc type = {0};
    int r = st_spec_type(doc, map, &type, err);

    ev.u.type.name = "odd";
    ev.u.type.vram_mib = type.vram_mib;
    ev.u.type.board = type.board;
    if (r == 0)
        apply(core, &ev);
    return r;
}

static int read_body(const char *schema, const st_doc *doc, st_err *err)
{
    const st_doc_node *root = st_doc_root(doc);
    int priority, r = st_doc_expect(doc, root, ST_DOC_MAP, err);
    st_core *core;

    if (r < 0)
        return r;
    core = world();
    if (strcmp(schema, "JobSpec") == 0)
        r = read_job(core, doc, root, err);
    else if (strcmp(schema, "JobBatch") == 0)
        r = read_batch(core, doc, root, err);
    else if (strcmp(schema, "JobChange") == 0 && root->child)
        r = st_spec_priority(doc, root->child, &priority, err);
    else if (strcmp(schema, "AccountSpec") == 0)
        r = read_account(core, doc, root, st_doc_get(root, "name") != NULL, err);
    else if (strcmp(schema, "NodeSpec") == 0)
        r = read_node(core, doc, root, err);
    else if (strcmp(schema, "PoolChange") == 0)
        r = read_pool(core, doc, root, err);
    else if (strcmp(schema, "TypeSpec") == 0)
        r = read_type(core, doc, root, err);
    st_core_free(core);
    return r;
}

/* ---- the request ------------------------------------------------------------------------------ */

static void read_request(const char *method, char *target, const char *body, size_t len, bool yaml)
{
    ST_CLEANUP(st_router_freep) st_router *router = NULL;
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    char *query = strchr(target, '?');
    st_query asked = {0};
    st_match match;
    st_err err = {0};

    ST_ASSERT(st_router_new(st_api_routes(), &router, &err) == 0);
    if (query)
        *query++ = '\0';
    if (st_router_find(router, method, target, &match) != ST_MATCH_FOUND)
        return;
    if (query && st_query_parse(match.route->query, query, &asked, &err) < 0) {
        ST_ASSERT(err.code > 0 && !strchr(err.msg, '\n'));
        return;
    }
    if (!match.route->request)
        return;
    yaml = yaml && (match.route->flags & ST_ROUTE_YAML);
    if (st_doc_parse(yaml ? "body.yaml" : "body.json", body, len, &doc, &err) < 0 ||
        read_body(match.route->request, doc, &err) < 0)
        ST_ASSERT(err.code > 0 && err.msg[0] && !strchr(err.msg, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_freep) char *text = st_xcalloc(size + 1, 1);
    char *line, *blank;
    size_t body;
    bool yaml;

    memcpy(text, data, size);
    line = memchr(text, '\n', size);
    if (!line)
        return 0;
    *line = '\0';
    body = (size_t)(line - text) + 1;
    blank = strchr(text, ' ');
    if (!blank || blank - text > METHOD_MAX)
        return 0;
    *blank = '\0';
    yaml = text[0] >= 'a' && text[0] <= 'z';
    for (char *c = text; *c; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    read_request(text, blank + 1, text + body, size - body, yaml);
    return 0;
}
