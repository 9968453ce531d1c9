/*
 * From a document to the jobs it stands for: sizes, workload types and the site's rules, then the
 * reader of documents, then who it is for.
 */
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "base/quote.h"

#define ABOVE_MAX (ST_DEPTH_MAX + 2)

/* Fills in who it is for; members submit as themselves, to their own account. */
static int address(const st_expansion *x, st_job_spec *spec, st_err *err)
{
    const st_identity *who = x->who;
    char q[ST_QUOTE_MAX];

    if (!spec->account)
        spec->account = who->account;
    if (!spec->user)
        spec->user = who->user;
    spec->reader = who->account[0] ? who->account : NULL;
    if (!st_directory_within(x->api->dir, spec->account, who->account))
        return st_fail(err, ST_ENOENT, "there is no account %s", st_quote(q, spec->account));
    if (who->role == ST_ROLE_MEMBER && strcmp(spec->account, who->account) != 0)
        return st_fail(err, ST_EPERM, "your token submits to account %s, not to %s", who->account,
                       st_quote(q, spec->account));
    if (who->role == ST_ROLE_MEMBER && strcmp(spec->user, who->user) != 0)
        return st_fail(err, ST_EPERM, "your token submits as %s, not as %s", who->user,
                       st_quote(q, spec->user));
    return 0;
}

/* One complete document; `text` is it as JSON, in the arena. */
static int add_item(st_expansion *x, const st_doc *doc, const st_doc_node *map, const char *text,
                    int array, st_err *err)
{
    const st_spec_names names = st_directory_names(x->api->dir);
    st_submit_item item = {.doc = text, .array = array};
    int r = st_spec_submit(doc, map, &names, &item.spec, err);

    if (r == 0)
        r = address(x, &item.spec, err);
    if (r == 0)
        st_vec_push(&x->items, item);
    return r;
}

/* The account it is for, as written, and those above it: where sizes are looked up. */
static const char *account_of(const st_expansion *x, const st_doc_node *map, const char **above)
{
    const st_doc_node *node = st_doc_get(map, "account");
    const char *account = node && node->kind == ST_DOC_SCALAR ? node->value : x->who->account;
    int n = 0;

    if (!st_directory_within(x->api->dir, account, x->who->account))
        account = x->who->account; /* refused later, in its own words */
    for (const char *a = account; a && a[0] && n < ABOVE_MAX - 1;
         a = st_directory_parent(x->api->dir, a))
        above[n++] = a;
    above[n] = NULL;
    return account;
}

static int add_json(st_expansion *x, const json_t *job, int array, st_err *err)
{
    char *text = st_rules_text(job);
    const char *kept = st_arena_strdup(x->arena, text);
    st_doc *doc = NULL;
    int r = st_doc_parse("job.json", text, strlen(text), &doc, err);

    free(text);
    if (r < 0)
        return r;
    st_vec_push(&x->docs, doc);
    return add_item(x, doc, st_doc_root(doc), kept, array, err);
}

static int through_rules(st_expansion *x, const st_doc_node *map, const char *text, size_t len,
                         st_err *err)
{
    const char *above[ABOVE_MAX];
    st_rules_who who = {.user = x->who->user,
                        .role = st_role_words[x->who->role],
                        .above = above,
                        .now_ms = x->api->options.clock(x->api->options.ctx)};
    json_t *jobs = NULL;
    size_t n, had = x->items.n;
    int r;

    who.account = account_of(x, map, above);
    who.trusted = st_directory_trusted(x->api->dir, who.account);
    r = st_rules_apply_text(x->api->rules, &who, text, len, &jobs, err);
    if (r < 0)
        return r;
    n = json_array_size(jobs);
    if (n > 1)
        x->arrays++;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = add_json(x, json_array_get(jobs, i), n > 1 ? x->arrays : 0, err);
    json_decref(jobs);
    if (r < 0)
        x->items.n = had; /* an array is taken whole, or its document is refused */
    return r;
}

int st_expand(st_expansion *x, const st_doc *doc, const st_doc_node *map, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    st_spec_json(map, &text);
    if (map->kind == ST_DOC_MAP && st_rules_concerns(x->api->rules, map))
        return through_rules(x, map, st_strbuf_str(&text), text.n, err);
    return add_item(x, doc, map, st_arena_strndup(x->arena, st_strbuf_str(&text), text.n), 0, err);
}

void st_expansion_done(st_expansion *x)
{
    for (size_t i = 0; i < x->docs.n; i++)
        st_doc_free(x->docs.v[i]);
    for (size_t i = 0; i < x->items.n; i++)
        free(x->items.v[i].refusal);
    st_vec_free(&x->docs);
    st_vec_free(&x->items);
}
