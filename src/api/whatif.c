/*
 * What would become of a job, or of everybody with other quotas: tried on a copy of the core. Nothing is kept and
 * nobody is told.
 *
 * A dry run is one job as it would be submitted. What-if takes several variants of a job, changes of accounts, or both:
 * each variant is tried on a copy of its own, with all the changes made before it. Of those who would have to yield
 * only the asker's own are named.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "base/mem.h"
#include "base/quote.h"
#include "billing/money.h"
#include "control/control.h"

#define VARIANTS_MAX 16
#define ACCOUNTS_MAX 64
#define NAMED_MAX    1000 /* jobs in one list of an answer */

/* Behind all others, as the newest is. */
#define TRIAL_ID ((uint64_t)INT64_MAX)

/* One job to be tried. */
typedef struct variant {
    char *said;              /* the change, JSON; NULL: a dry run */
    const st_job_spec *spec; /* NULL: refused before it came to the core */
    st_job_spec filled;      /* with what its pools say */
    st_err refused;          /* code 0: not */
    int64_t cost_most;       /* ST_UNSET: without a time limit */
    st_job_rates rates;
} variant;

typedef struct trial {
    void (*drop)(void *owner); /* of a dry run */
    void *owner;
    bool dry;             /* one job, answered as `why` answers */
    const char *estimate; /* of a dry run: why it has this place, the owner's; NULL */

    st_doc *doc; /* of what-if */
    st_arena *arena;
    st_expansion jobs;
    ST_VEC(st_doc *) docs;
    ST_VEC(variant) variants;
    ST_VEC(st_account_doc) accounts;
    ST_VEC(st_account_spec) changes; /* as the core takes them */

    st_strbuf saved; /* the state it is tried on */
    int64_t now;
} trial;

static void trial_free(void *arg)
{
    trial *t = arg;

    if (t->drop)
        t->drop(t->owner);
    for (size_t i = 0; i < t->variants.n; i++)
        free(t->variants.v[i].said);
    for (size_t i = 0; i < t->docs.n; i++)
        st_doc_free(t->docs.v[i]);
    st_vec_free(&t->docs);
    st_vec_free(&t->variants);
    st_vec_free(&t->accounts);
    st_vec_free(&t->changes);
    st_expansion_done(&t->jobs);
    st_doc_free(t->doc);
    st_arena_free(t->arena);
    st_strbuf_done(&t->saved);
    free(t);
}

/* ---- what the state is needed for: caps, what accounts are now, and a copy ----------------------- */

static int fill_copy(st_question *q, st_core *core, st_err *err)
{
    trial *t = q->owner;
    int r = 0;

    t->now = st_tx_now(q->tx);
    for (size_t i = 0; r == 0 && i < t->accounts.n; i++) {
        st_account_spec spec;

        r = st_tx_account_change(q->tx, &q->who, &t->accounts.v[i], &spec, err);
        if (r == 0)
            st_vec_push(&t->changes, spec);
    }
    for (size_t i = 0; r == 0 && i < t->variants.n; i++) {
        variant *v = &t->variants.v[i];

        if (v->refused.code != 0)
            continue;
        v->filled = *v->spec;
        if (st_spec_fill(st_core_fleet(core), &v->filled, &v->refused) == 0)
            st_tx_admit(q->tx, &v->filled, &v->refused);
        v->cost_most = st_tx_cost_most(q->tx, &v->filled);
        st_tx_job_rates(q->tx, &v->filled, &v->rates);
    }
    if (r == 0)
        st_core_save(core, &t->saved);
    return r;
}

/* ---- trying --------------------------------------------------------------------------------------- */

/* A copy with the changes of accounts, each of which is taken or refused as it would be for real. */
static int make_copy(const trial *t, st_core **ret, st_effects *fx, st_err *err)
{
    st_core *copy = NULL;
    int r = st_core_load(st_strbuf_str(&t->saved), t->saved.n, &copy, err);

    for (size_t i = 0; r == 0 && i < t->changes.n; i++) {
        const st_event event = {.kind = ST_EV_ACCOUNT, .u.account = t->changes.v[i]};

        r = st_core_apply(copy, &event, t->now, fx, err);
    }
    if (r == 0 && t->changes.n > 0)
        st_core_settle(copy, t->now, fx);
    if (r < 0)
        st_core_free(copy);
    else
        *ret = copy;
    return r;
}

void st_trial_jobs_json(st_question *q, const st_core *core, const st_effects *fx,
                        st_effect_kind kind, uint64_t other, const char *key)
{
    const st_tree *tree = st_core_tree(core);
    int32_t root = st_question_root(q, core);
    int n = 0;

    st_out_raw(&q->out, key, "[");
    for (size_t i = 0; i < fx->list.n && n < NAMED_MAX; i++) {
        const st_effect *e = &fx->list.v[i];
        const st_job *job = e->kind == kind ? st_core_job(core, e->job) : NULL;
        char id[ST_ID_TEXT];

        if (!job || job->id == TRIAL_ID || (other && e->other != other) ||
            !st_tree_within(tree, job->account, root))
            continue;
        st_control_id_text(q->api->control, job->id, id);
        st_strbuf_add(&q->out, n++ > 0 ? ",{" : "{");
        st_out_text(&q->out, "job", id);
        st_out_text(&q->out, "name", job->name);
        st_out_text(&q->out, "account", st_tree_account(tree, job->account)->name);
        st_strbuf_addc(&q->out, '}');
    }
    st_strbuf_addc(&q->out, ']');
}

/* What a GPU-hour of it costs, by the right it would have now; of one that waits, if it comes to borrow. */
static void rate_json(st_question *q, const st_core *copy, const st_job_rates *rates)
{
    const st_job *job = st_core_job(copy, TRIAL_ID);
    st_basis basis = rates->borrows;
    int32_t type = job ? job->type : -1;

    if (job && job->class == ST_CLASS_GUARANTEED)
        basis = ST_BASIS_GUARANTEED;
    else if (job && job->class == ST_CLASS_BOOKED)
        basis = ST_BASIS_BOOKED;
    if (job && type < 0 && (job->shape.types & rates->types))
        type = __builtin_ctz(job->shape.types & rates->types);
    if (type < 0 || !(rates->types >> type & 1)) {
        st_out_raw(&q->out, "rate", "null");
        return;
    }
    st_out_raw(&q->out, "rate", "{");
    st_out_text(&q->out, "basis", st_basis_name(basis));
    st_out_text(&q->out, "type", st_core_fleet(copy)->types.v[type].name);
    st_out_money(&q->out, "gpu_hour", rates->udollars[type][basis]);
    st_strbuf_addc(&q->out, '}');
}

static int variant_json(st_question *q, const trial *t, const variant *v, st_err *err)
{
    st_event event = {.kind = ST_EV_SUBMIT, .u.job = v->filled};
    st_effects fx = {0};
    st_core *copy = NULL;
    int r = make_copy(t, &copy, &fx, err);

    event.u.job.id = q->job = TRIAL_ID;
    event.u.job.hold = TRIAL_ID;
    event.u.job.throttle = 0; /* the first of an array has its turn */
    snprintf(q->name, sizeof q->name, "%.*s", ST_NAME_MAX, v->spec->name);
    st_why_class(q, v->spec->priority_class, v->spec->account);
    if (r == 0) {
        st_effects_clear(&fx);
        r = st_core_step(copy, &event, t->now, &fx, err);
    }
    if (r == 0)
        r = st_why_copy_json(q, copy, err);
    if (r == 0)
        rate_json(q, copy, &v->rates);
    if (r == 0)
        st_out_money_if(&q->out, "cost_most", v->cost_most != ST_UNSET, v->cost_most);
    if (r == 0 && t->estimate)
        st_out_text(&q->out, "estimate", t->estimate);
    if (r == 0 && !t->dry)
        st_trial_jobs_json(q, copy, &fx, ST_FX_NOTIFY, TRIAL_ID, "displaces");
    st_effects_done(&fx);
    st_core_free(copy);
    return r;
}

static void refusal_json(st_question *q, const st_err *err)
{
    st_out_text(&q->out, "state", "refused");
    st_out_raw(&q->out, "reasons", "[]");
    st_out_text(&q->out, "code", st_err_name(err->code));
    st_out_text(&q->out, "detail", err->msg);
}

/* A refusal is the variant's own: the others are answered all the same. */
static void add_variant(st_question *q, const trial *t, const variant *v)
{
    st_err err = v->refused;
    size_t begin;

    st_strbuf_addc(&q->out, '{');
    st_out_raw(&q->out, "variant", v->said);
    begin = q->out.n;
    if (err.code == 0 && variant_json(q, t, v, &err) == 0) {
        st_strbuf_addc(&q->out, '}');
        return;
    }
    q->out.n = begin; /* what was written of it before it was refused */
    refusal_json(q, &err);
    st_strbuf_addc(&q->out, '}');
}

static int accounts_json(st_question *q, const trial *t, st_err *err)
{
    st_effects fx = {0};
    st_core *copy = NULL;
    int r = make_copy(t, &copy, &fx, err);

    if (r == 0) {
        st_out_raw(&q->out, "accounts", "{");
        st_trial_jobs_json(q, copy, &fx, ST_FX_START, 0, "starts");
        st_trial_jobs_json(q, copy, &fx, ST_FX_NOTIFY, 0, "displaces");
        st_strbuf_addc(&q->out, '}');
    }
    st_effects_done(&fx);
    st_core_free(copy);
    return r;
}

static int read_whatif(trial *t, const st_api *api, const st_identity *who, st_err *err);

static int try_out(st_question *q, st_err *err)
{
    trial *t = q->owner;
    int r = 0;

    /* Here, and not where connections are served: variants may be arrays of thousands. */
    if (!t->dry) {
        t->jobs = (st_expansion){.api = q->api, .who = &q->who, .arena = t->arena};
        r = read_whatif(t, q->api, &q->who, err);
    }
    if (r == 0)
        r = st_question_read(q, err);
    if (r < 0)
        return r;
    st_strbuf_addc(&q->out, '{');
    if (t->dry) {
        variant *v = &t->variants.v[0];

        r = v->refused.code ? -v->refused.code : variant_json(q, t, v, err);
        if (v->refused.code)
            *err = v->refused;
    } else {
        if (t->changes.n > 0)
            r = accounts_json(q, t, err);
        st_out_raw(&q->out, "answers", "[");
        for (size_t i = 0; r == 0 && i < t->variants.n; i++) {
            if (i > 0)
                st_strbuf_addc(&q->out, ',');
            add_variant(q, t, &t->variants.v[i]);
        }
        st_strbuf_addc(&q->out, ']');
    }
    st_strbuf_addc(&q->out, '}');
    return r;
}

static void post(st_api *api, st_call *call, trial *t)
{
    st_question *q = st_question_new(api, call, fill_copy, NULL, TRIAL_ID);

    q->work = try_out;
    q->drop = trial_free;
    q->owner = t;
    st_question_post(q);
}

void st_api_try(st_api *api, st_call *call, const st_job_spec *spec, const char *estimate,
                void (*drop)(void *owner), void *owner)
{
    trial *t = st_xcalloc(1, sizeof *t);

    t->drop = drop;
    t->owner = owner;
    t->dry = true;
    t->estimate = estimate;
    st_vec_push(&t->variants, (variant){.spec = spec});
    post(api, call, t);
}

/* ---- what is asked -------------------------------------------------------------------------------- */

static json_t *node_json(const st_doc_node *node)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    st_spec_json(node, &text);
    return json_loads(st_strbuf_str(&text), 0, NULL);
}

/* The job with the variant's fields over its own. */
static int read_variant(trial *t, const json_t *job, const st_doc_node *node, st_err *err)
{
    json_t *over = node ? node_json(node) : json_object(), *whole = json_deep_copy(job);
    variant v = {.said = json_dumps(over, JSON_COMPACT)};
    st_doc *doc = NULL;
    char *text = NULL;
    size_t first = t->jobs.items.n;
    int r = json_object_update(whole, over) == 0 && v.said
                ? 0
                : st_doc_fail(t->doc, node, err, ST_EINVAL, "a variant is a map of a job's fields");

    if (r == 0) {
        text = json_dumps(whole, JSON_COMPACT);
        if (st_doc_parse("variant", text, strlen(text), &doc, &v.refused) == 0) {
            st_vec_push(&t->docs, doc);
            st_expand(&t->jobs, doc, st_doc_root(doc), &v.refused);
        }
        /* Of an array the first piece stands for all; specs are taken when none is added any more. */
        if (v.refused.code == 0 && t->jobs.items.n == first)
            st_fail(&v.refused, ST_EINVAL, "the document stands for no job");
        if (t->jobs.items.n > first + 1)
            t->jobs.items.n = first + 1;
        v.spec = v.refused.code == 0 ? (const st_job_spec *)(uintptr_t)(first + 1) : NULL;
        st_vec_push(&t->variants, v);
    } else {
        free(v.said);
    }
    free(text);
    json_decref(over);
    json_decref(whole);
    return r;
}

static int read_variants(trial *t, const st_doc_node *job, const st_doc_node *list, st_err *err)
{
    json_t *base;
    int r = 0;

    if (list && (list->nchild < 1 || list->nchild > VARIANTS_MAX))
        return st_doc_fail(t->doc, list, err, ST_ERANGE,
                           "what-if takes 1 to %d variants, this has %d", VARIANTS_MAX,
                           list->nchild);
    base = node_json(job);
    if (!base)
        return st_doc_fail(t->doc, job, err, ST_EINVAL, "the job cannot be read");
    if (!list)
        r = read_variant(t, base, NULL, err);
    for (const st_doc_node *v = list ? list->child : NULL; r == 0 && v; v = v->next) {
        r = st_doc_expect(t->doc, v, ST_DOC_MAP, err);
        if (r == 0)
            r = read_variant(t, base, v, err);
    }
    for (size_t i = 0; i < t->variants.n; i++)
        if (t->variants.v[i].spec)
            t->variants.v[i].spec = &t->jobs.items.v[(uintptr_t)t->variants.v[i].spec - 1].spec;
    json_decref(base);
    return r;
}

static int read_accounts(trial *t, const st_api *api, const st_identity *who,
                         const st_doc_node *list, st_err *err)
{
    const st_spec_names names = st_directory_names(api->dir);
    int r = 0;

    if (who->role == ST_ROLE_MEMBER)
        return st_fail(err, ST_EPERM,
                       "Your role (member) cannot change accounts, so it cannot try out a change.");
    if (list->nchild < 1 || list->nchild > ACCOUNTS_MAX)
        return st_doc_fail(t->doc, list, err, ST_ERANGE,
                           "what-if takes 1 to %d accounts, this has %d", ACCOUNTS_MAX,
                           list->nchild);
    for (const st_doc_node *map = list->child; r == 0 && map; map = map->next) {
        const st_doc_node *children = NULL;
        st_account_doc said;

        r = st_doc_expect(t->doc, map, ST_DOC_MAP, err);
        if (r == 0)
            r = st_spec_account(t->doc, map, &names, false, &said, &children, err);
        if (r == 0 && (!said.name || said.parent || children))
            r = st_doc_fail(t->doc, map, err, ST_EINVAL,
                            "say the name of an account that is there, and what changes; not its "
                            "parent or children");
        if (r == 0)
            st_vec_push(&t->accounts, said);
    }
    return r;
}

static int read_whatif(trial *t, const st_api *api, const st_identity *who, st_err *err)
{
    static const char *const keys[] = {"job", "variants", "accounts", NULL};
    const st_doc_node *root = st_doc_root(t->doc);
    int r = st_doc_expect(t->doc, root, ST_DOC_MAP, err);

    if (r == 0)
        r = st_doc_check_keys(t->doc, root, keys, err);
    if (r < 0)
        return r;
    const st_doc_node *job = st_doc_get(root, "job"), *variants = st_doc_get(root, "variants");
    const st_doc_node *accounts = st_doc_get(root, "accounts");

    if (!job && (variants || !accounts))
        return st_fail(err, ST_EINVAL, "what-if needs a job, accounts, or both");
    if (job)
        r = st_doc_expect(t->doc, job, ST_DOC_MAP, err);
    if (r == 0 && variants)
        r = st_doc_expect(t->doc, variants, ST_DOC_SEQ, err);
    if (r == 0 && accounts)
        r = st_doc_expect(t->doc, accounts, ST_DOC_SEQ, err);
    if (r == 0 && accounts)
        r = read_accounts(t, api, who, accounts, err);
    if (r == 0 && job)
        r = read_variants(t, job, variants, err);
    return r;
}

void st_api_whatif(st_call *call, void *ctx)
{
    st_api *api = ctx;
    trial *t = st_xcalloc(1, sizeof *t);
    st_err err = {0};

    t->arena = st_arena_new();
    if (st_call_doc(call, &t->doc, &err) < 0) {
        st_call_fail(call, &err);
        trial_free(t);
        return;
    }
    post(api, call, t);
}
