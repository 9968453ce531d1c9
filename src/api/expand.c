/*
 * From a document to the jobs it stands for: sizes, workload types and the site's rules, then the
 * reader of documents, then who it is for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "base/quote.h"
#include "calendar/calendar.h"
#include "control/bookings.h"
#include "model/pick.h"
#include "zones/zones.h"

#define MADE "job.json" /* a document as the rules have left it */

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
    if (!spec->account[0])
        return st_fail(err, ST_EINVAL,
                       "your token belongs to the whole cluster, so the job needs an account: give "
                       "--account NAME (\"account\" in a document)");
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

/* A node that really runs tasks needs something to run. */
static int check_command(const st_expansion *x, const st_doc *doc, const st_doc_node *map,
                         st_err *err)
{
    const st_engine *engine = st_control_engine(x->api->control);

    if (!engine || st_engine_has(engine, ST_NODES_ANNOUNCED) || st_doc_get(map, "command") ||
        st_doc_get(map, "script"))
        return 0;
    return st_doc_fail(doc, map, err, ST_EINVAL,
                       "the job has nothing to run: give a command or a script");
}

/* Whether the catalogue has its image for this account. */
static int check_image(const st_expansion *x, const st_doc *doc, const st_doc_node *map,
                       const st_job_spec *spec, st_err *err)
{
    const st_doc_node *node = st_doc_get(map, "image");
    st_err why = {0};

    if (!node || node->kind != ST_DOC_SCALAR ||
        st_images_admit(st_control_images(x->api->control), spec->account, node->value,
                        spec->shape.level, &why) == 0)
        return 0;
    return st_doc_fail(doc, node, err, why.code, "%s", why.msg);
}

/* Whether its volumes are there for its account. */
static int check_volumes(const st_expansion *x, const st_doc *doc, const st_doc_node *map,
                         const st_job_spec *spec, const char *text, st_err *err)
{
    const st_doc_node *node = st_doc_get(map, "volumes");
    st_err why = {0};

    if (!node)
        node = st_doc_get(map, "with");
    if (!node ||
        st_volumes_admit(st_control_volumes(x->api->control), spec->account, text, &why) == 0)
        return 0;
    return st_doc_fail(doc, node, err, why.code, "%s", why.msg);
}

/* The booking it is to run in. A number that nobody has is refused in the loop, like another's. */
static void set_booking(const st_expansion *x, const st_doc_node *map, st_job_spec *spec)
{
    const st_doc_node *node = st_doc_get(map, "booking");

    if (node && node->kind == ST_DOC_SCALAR &&
        !st_control_named(x->api->control, ST_BOOKING_ID, node->value, &spec->booking))
        spec->booking = UINT64_MAX;
}

/* Its class says which priorities it may have, and gives it one where it says none. */
static int set_class(const st_expansion *x, const st_doc *doc, const st_doc_node *map,
                     st_job_spec *spec, st_err *err)
{
    const st_doc_node *node = st_doc_get(map, "priority_class");
    st_err why = {0};

    if (!node || node->kind != ST_DOC_SCALAR)
        return 0;
    if (st_classes_admit(st_control_classes(x->api->control), node->value, spec->account,
                         (int)x->who->role, st_doc_get(map, "priority") != NULL, &spec->priority,
                         &spec->meek, &why) < 0)
        return st_doc_fail(doc, node, err, why.code, "%s", why.msg);
    spec->priority_class = node->value;
    return 0;
}

/* A moment of a document. One that has passed while it was on its way is now. */
static int set_moment(const st_expansion *x, const st_doc *doc, const st_doc_node *map,
                      const char *key, int64_t *ret_ms, st_err *err)
{
    const st_doc_node *node = st_doc_get(map, key), *zone = st_doc_get(map, "zone");
    int64_t now = x->api->options.clock(x->api->options.ctx);
    const st_tz *tz;
    st_err why = {0};
    char q[ST_QUOTE_MAX];

    if (!node)
        return 0;
    if (st_zones_get(x->api->zones, zone ? zone->value : "UTC", &tz, &why) < 0)
        return st_doc_fail(doc, zone ? zone : node, err, why.code, "%s", why.msg);
    if (st_when_parse(node->value, tz, now, ret_ms, &why) < 0)
        return st_doc_fail(doc, node, err, why.code, "key \"%s\": %s", key, why.msg);
    if (*ret_ms < now - ST_BOOKING_LATE_MS)
        return st_doc_fail(doc, node, err, ST_EINVAL, "key \"%s\": %s is in the past", key,
                           st_quote(q, node->value));
    return 0;
}

static int set_window(const st_expansion *x, const st_doc *doc, const st_doc_node *map,
                      st_job_spec *spec, st_err *err)
{
    const st_doc_node *slot = st_doc_get(map, "slot");
    int r = set_moment(x, doc, map, "begin", &spec->begin_ms, err);

    if (r == 0)
        r = set_moment(x, doc, map, "end_by", &spec->end_by_ms, err);
    if (r == 0)
        r = set_moment(x, doc, map, "by", &spec->by_ms, err);
    if (r == 0 && slot &&
        !st_control_named(x->api->control, ST_BOOKING_ID, slot->value, &spec->series))
        spec->slot = slot->value;
    return r;
}

/* A node whose agent says that it has no volumes is none for who needs them. Those of a booking are chosen already. */
static bool needs_volumes(const st_doc_node *map, const st_job_spec *spec)
{
    const st_doc_node *volumes = st_doc_get(map, "volumes");

    return ((volumes && volumes->nchild > 0) || st_doc_get(map, "with")) &&
           !st_doc_get(map, "booking") && !st_doc_get(map, "slot") && !spec->hard;
}

/* Which nodes will do. */
static int set_nodes(const st_expansion *x, const st_doc *doc, const st_doc_node *map,
                     st_job_spec *spec, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf pick = {0};
    int r = st_spec_pick(doc, st_doc_get(map, "node_labels"), st_doc_get(map, "exclude_nodes"),
                         &pick, err);

    if (r == 0 && needs_volumes(map, spec))
        r = st_pick_add(&pick, "volumes!=none", false, err);
    if (r == 0 && pick.n > 0)
        spec->nodes = st_arena_strdup(x->arena, st_strbuf_str(&pick));
    return r;
}

/* Its secrets must be there for its account. */
static int check_secrets(const st_expansion *x, const st_job_spec *spec, const char *text,
                         st_err *err)
{
    const char *above[ST_ABOVE_MAX];

    st_directory_above(x->api->dir, spec->account, above);
    return st_vault_check_job(st_control_vault(x->api->control), above, text, err);
}

/* Private parts are sealed before anybody keeps them: of a document, or of what an array's pieces begin with. */
static int seal(const st_expansion *x, const st_job_spec *spec, const char *text, bool head,
                const char **ret, st_err *err)
{
    st_vault *vault = st_control_vault(x->api->control);
    st_directory *dir = x->api->dir;
    const st_vault_who job = {st_directory_serial(dir, spec->account), spec->user},
                       by = {st_directory_serial(dir, x->who->account), x->who->user};
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    int r = head ? st_vault_head_seal(vault, &job, &by, text, &out, err)
                 : st_vault_doc_seal(vault, &job, &by, text, &out, err);

    if (r == 0)
        *ret = st_arena_strndup(x->arena, st_strbuf_str(&out), out.n);
    return r;
}

/* One complete document; `text` is it as JSON. */
static int add_item(st_expansion *x, const st_doc *doc, const st_doc_node *map, const char *text,
                    int array, st_err *err)
{
    const st_spec_names names = st_directory_names(x->api->dir);
    st_submit_item item = {.array = array};
    int r = st_spec_submit(doc, map, &names, &item.spec, err);

    if (r == 0)
        set_booking(x, map, &item.spec);
    if (r == 0)
        r = set_nodes(x, doc, map, &item.spec, err);
    if (r == 0)
        r = set_window(x, doc, map, &item.spec, err);
    if (r == 0)
        r = st_api_afters(x, doc, map, &item, err);
    if (r == 0 && item.spec.throttle > 0 && !array)
        r = st_doc_fail(doc, map, err, ST_EINVAL,
                        "a throttle is for arrays: it says how many of their jobs run at a time");
    if (r == 0)
        r = address(x, &item.spec, err);
    if (r == 0)
        r = set_class(x, doc, map, &item.spec, err);
    if (r == 0)
        r = check_command(x, doc, map, err);
    if (r == 0)
        r = check_image(x, doc, map, &item.spec, err);
    if (r == 0)
        r = check_secrets(x, &item.spec, text, err);
    if (r == 0)
        r = check_volumes(x, doc, map, &item.spec, text, err);
    if (r == 0 && !array)
        r = seal(x, &item.spec, text, false, &item.doc, err);
    if (r == 0)
        st_vec_push(&x->items, item);
    return r;
}

/* The account it is for, as written, and those above it: where sizes are looked up. */
static const char *account_of(const st_expansion *x, const st_doc_node *map, const char **above)
{
    const st_doc_node *node = st_doc_get(map, "account");
    const char *account = node && node->kind == ST_DOC_SCALAR ? node->value : x->who->account;

    if (!st_directory_within(x->api->dir, account, x->who->account))
        account = x->who->account; /* refused later, in its own words */
    st_directory_above(x->api->dir, account, above);
    return account;
}

/* A complaint about a document that rules have made names a line that nobody has written: here it gets that of
 * the same value in the caller's own. `made` has one value a line. */
static void relocate(const st_doc *doc, const st_doc_node *map, const st_doc *made, st_err *err)
{
    const st_doc_node *at = NULL, *own;
    char rest[sizeof err->msg];
    int line = 0, n = 0;

    if (sscanf(err->msg, MADE ":%d: %n", &line, &n) != 1 || n == 0)
        return;
    snprintf(rest, sizeof rest, "%s", err->msg + n);
    for (const st_doc_node *c = st_doc_root(made)->child; c && c->key_line <= line; c = c->next)
        at = c;
    own = at && at->key ? st_doc_get(map, at->key) : NULL;
    if (own)
        st_doc_fail(doc, own, err, err->code, "%s", rest);
    else
        st_fail(err, err->code, "%s", rest);
}

/* Reads what failed again, one value a line, to say where. */
static void say_where(st_expansion *x, const st_doc *doc, const st_doc_node *map, const char *text,
                      st_err *err)
{
    json_t *whole = json_loads(text, 0, NULL);
    char *lines = whole ? json_dumps(whole, JSON_INDENT(1) | JSON_PRESERVE_ORDER) : NULL;
    ST_CLEANUP(st_doc_freep) st_doc *made = NULL;
    size_t first = x->items.n;
    st_err again = {0};

    if (lines && st_doc_parse(MADE, lines, strlen(lines), &made, NULL) == 0 &&
        add_item(x, made, st_doc_root(made), text, 0, &again) < 0 && again.code == err->code) {
        relocate(doc, map, made, &again);
        *err = again;
    }
    x->items.n = first;
    free(lines);
    json_decref(whole);
}

/* Adds all pieces. The first is read whole; the others differ from it by their names and by what
 * only their nodes look at. An array is taken whole, or its document is refused. */
static int add_pieces(st_expansion *x, const st_doc *given, const st_doc_node *map,
                      const st_rules_jobs *jobs, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    bool array = jobs->pieces.n > 1;
    const char *head = NULL;
    size_t first = x->items.n;
    st_doc *doc = NULL;
    int r;

    st_strbuf_add(&text, jobs->head);
    st_strbuf_add(&text, jobs->pieces.v[0].tail);
    r = st_doc_parse(MADE, st_strbuf_str(&text), text.n, &doc, err);
    if (r < 0)
        return r;
    st_vec_push(&x->docs, doc);
    r = add_item(x, doc, st_doc_root(doc), st_strbuf_str(&text), array ? ++x->arrays : 0, err);
    if (r == 0 && array)
        r = seal(x, &x->items.v[first].spec, jobs->head, true, &head, err);
    if (r < 0) {
        x->items.n = first;
        say_where(x, given, map, st_strbuf_str(&text), err);
    }
    for (size_t i = 0; r == 0 && i < jobs->pieces.n; i++) {
        const st_rules_piece *p = &jobs->pieces.v[i];
        st_submit_item item = x->items.v[first];

        item.head = head;
        if (array)
            item.doc = st_arena_strdup(x->arena, p->tail);
        if (p->name)
            item.spec.name = st_arena_strdup(x->arena, p->name);
        if (i == 0)
            x->items.v[first] = item;
        else
            st_vec_push(&x->items, item);
    }
    if (r == 0)
        r = st_api_afters_each(x, first, jobs, err);
    if (r < 0)
        x->items.n = first;
    return r;
}

static int through_rules(st_expansion *x, const st_doc *doc, const st_doc_node *map,
                         const char *text, size_t len, st_err *err)
{
    const char *above[ST_ABOVE_MAX];
    st_rules_who who = {.user = x->who->user,
                        .role = st_role_words[x->who->role],
                        .above = above,
                        .now_ms = x->api->options.clock(x->api->options.ctx)};
    ST_CLEANUP(st_rules_jobs_done) st_rules_jobs jobs = {0};
    int r;

    who.account = account_of(x, map, above);
    who.trusted = st_directory_trusted(x->api->dir, who.account);
    r = st_rules_apply_text(x->api->rules, &who, text, len, &jobs, err);
    /* A script that fails is the site's affair; the service is well, and has refused the job. */
    if (r < 0 && err->code == ST_EINTERNAL) {
        st_err why = *err;

        return st_fail(err, ST_EREFUSED, "%.400s; the job is refused until the rule is mended",
                       why.msg);
    }
    return r < 0 ? r : add_pieces(x, doc, map, &jobs, err);
}

int st_expand(st_expansion *x, const st_doc *doc, const st_doc_node *map, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    if (st_spec_given(doc, map, err) < 0)
        return -err->code;
    st_spec_json(map, &text);
    if (map->kind == ST_DOC_MAP && st_rules_concerns(x->api->rules, map))
        return through_rules(x, doc, map, st_strbuf_str(&text), text.n, err);
    return add_item(x, doc, map, st_strbuf_str(&text), 0, err);
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
