/*
 * Caps at the door: a job is let in when its worst case fits, and that much is held until it ends; floors rise when
 * what they will cost fits.
 */
#include <string.h>

#include "billing/billing.h"
#include "billing/money.h"
#include "ledger/price.h"

/* A cap's refusal has a code of its own: more money helps, more quota does not. */
static int as_budget(int r, st_err *err)
{
    if (r != -ST_EQUOTA)
        return r;
    err->code = ST_EBUDGET;
    return -ST_EBUDGET;
}

void st_money_cost(st_tx *tx, const st_job *job, const char *account, const char *reader,
                   const char *priority_class, st_job_cost *ret)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    st_worst *w = &ret->worst;

    ret->priority_class[0] = '\0';
    if (priority_class)
        strncat(ret->priority_class, priority_class, ST_NAME_MAX);

    *w = (st_worst){.account = st_book_of(tx->ctl, account, ret->book),
                    .gpus = ret->gpus,
                    .priority_class = priority_class ? ret->priority_class : NULL,
                    .level = job->shape.level,
                    .topo = job->topo_required ? job->topo : ST_TOPO_NONE,
                    .limit_ms = job->limit_ms,
                    .at_ms = tx->now,
                    .reader = reader ? st_book_of(tx->ctl, reader, ret->reader) : NULL,
                    .gpu_m = st_job_gpu_m(job),
                    .cpu_m = st_job_cpu_m(job),
                    .ram_mib = st_job_ram_mib(job)};
    for (size_t t = 0; w->gpu_m > 0 && t < fleet->types.n; t++)
        if (job->shape.types == 0 || job->shape.types >> t & 1)
            ret->gpus[w->ngpus++] = fleet->types.v[t].name;
}

void st_money_cost_live(st_tx *tx, const st_job *job, const char *account, const char *reader,
                        st_job_cost *ret)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const st_live *live = st_control_live(tx->ctl, job->id);
    st_doc_words words = {0};

    if (live)
        st_doc_names(st_live_doc(tx->ctl, live), arena, &words);
    st_money_cost(tx, job, account, reader, words.priority_class, ret);
}

/* false: the core refuses such a job, in its own words. */
static bool cost_of(st_tx *tx, const st_job_spec *spec, st_job_cost *ret)
{
    const st_job job = {.shape = spec->shape,
                        .tasks = spec->tasks,
                        .topo = spec->topo,
                        .topo_required = spec->topo_required,
                        .limit_ms = spec->limit_ms};

    if (st_tree_find(st_core_tree(tx->ctl->core), spec->account) <= ST_ROOT || spec->tasks <= 0 ||
        spec->tasks > ST_TASKS_MAX)
        return false;
    st_money_cost(tx, &job, spec->account, spec->reader, spec->priority_class, ret);
    return true;
}

int st_money_admit(st_tx *tx, const st_job_spec *spec, int64_t *ret, st_err *err)
{
    st_job_cost cost;

    *ret = ST_UNSET;
    if (!cost_of(tx, spec, &cost))
        return 0;
    return as_budget(st_ledger_admit(tx->ctl->billing->ledger, &cost.worst, ret, err), err);
}

int64_t st_tx_cost_most(st_tx *tx, const st_job_spec *spec)
{
    st_job_cost cost;

    if (spec->limit_ms == ST_TIME_NEVER || !cost_of(tx, spec, &cost))
        return ST_UNSET;
    return st_ledger_worst(tx->ctl->billing->ledger, &cost.worst);
}

static int64_t hour_of(const st_rates *rates, st_basis basis, int64_t factor_bp)
{
    return (int64_t)(((st_i128)rates->rate[st_basis_component(basis)] * factor_bp + ST_BP - 1) /
                     ST_BP);
}

void st_tx_job_rates(st_tx *tx, const st_job_spec *spec, st_job_rates *ret)
{
    const st_ledger *l = tx->ctl->billing->ledger;
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    int32_t account = st_tree_find(st_core_tree(tx->ctl->core), spec->account);
    const st_price_book *book = l ? st_ledger_book(l, tx->now) : NULL;
    char name[ST_NAME_MAX + 1];

    *ret = (st_job_rates){.borrows = ST_BASIS_BURST};
    if (!book || account <= ST_ROOT || spec->shape.gpus == 0)
        return;
    const st_job job = {.shape = spec->shape, .tasks = spec->tasks};
    const st_terms *terms = st_ledger_terms(l, st_book_of(tx->ctl, spec->account, name), tx->now);

    if (tx->ctl->billing->meter)
        ret->borrows = st_meter_borrows_as(tx->ctl->billing->meter, account, st_job_gpu_m(&job));
    for (size_t t = 0; t < fleet->types.n; t++) {
        const st_rates *rates = st_price_rates(book, fleet->types.v[t].name);

        if (!rates)
            continue;
        const int64_t factors[] = {rates->level_bp[spec->shape.level],
                                   ST_BP - (terms ? terms->discount_bp : 0),
                                   st_price_class_bp(book, spec->priority_class)};

        ret->types |= 1u << t;
        for (int b = 0; b < ST_BASIS_COUNT; b++)
            ret->udollars[t][b] = hour_of(rates, (st_basis)b, st_price_factor(factors, 3));
    }
}

int st_money_rehold(st_tx *tx, const st_job *job, const char *account, int64_t limit_ms,
                    const char *reader, int64_t *ret, st_err *err)
{
    char name[ST_ID_TEXT];
    st_job_cost cost;

    st_control_id_text(tx->ctl, job->id, name);
    st_money_cost_live(tx, job, account, reader, &cost);
    return as_budget(
        st_ledger_rehold(tx->ctl->billing->ledger, &cost.worst, name, limit_ms, ret, err), err);
}

int st_money_hold(st_tx *tx, uint64_t job, const char *account, int64_t amount, st_err *err)
{
    char name[ST_ID_TEXT], book[ST_NAME_MAX + 1];
    st_entry e = {.kind = ST_ENTRY_HOLD,
                  .account = st_book_of(tx->ctl, account, book),
                  .job = name,
                  .amount = amount};

    if (amount == ST_UNSET)
        return 0;
    st_control_id_text(tx->ctl, job, name);
    return st_money_post(tx, &e, err);
}

int st_money_hold_anew(st_tx *tx, uint64_t job, const char *account, int64_t amount, st_err *err)
{
    char name[ST_ID_TEXT], book[ST_NAME_MAX + 1];
    st_entry e = {
        .kind = ST_ENTRY_RELEASE, .account = st_book_of(tx->ctl, account, book), .job = name};
    int r;

    if (amount == ST_UNSET)
        return 0;
    st_control_id_text(tx->ctl, job, name);
    r = st_money_post(tx, &e, err);
    return r < 0 ? r : st_money_hold(tx, job, account, amount, err);
}

/* Whether this account, or one above it, has a cap of its own. */
static bool is_capped(const st_tx *tx, int32_t id)
{
    const st_tree *tree = st_core_tree(tx->ctl->core);

    for (; id > ST_ROOT; id = tree->accounts.v[id]->parent) {
        char buf[ST_NAME_MAX + 1];
        const char *name = st_book_name(tx->ctl, id, buf);
        const st_price_plan *plan = st_ledger_plan(tx->ctl->billing->ledger, name, tx->now);

        if (plan && strcmp(plan->account, name) == 0 && plan->cap_udollars != ST_UNSET)
            return true;
    }
    return false;
}

/* Floors are handed down: what an account gets, the one above pays no more, so caps further up see no difference. Only
 * that of the account itself does, and those over a floor that the cluster gives. Where both are, the floor is let
 * through; nothing is charged beyond a cap anyway. */
int st_money_admit_floor(st_tx *tx, const st_account_spec *spec, const char *reader, st_err *err)
{
    const st_tree *tree = st_core_tree(tx->ctl->core);
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    const st_ledger *l = tx->ctl->billing->ledger;
    int32_t id = st_tree_find(tree, spec->name);
    const st_account *old = id > ST_ROOT ? st_tree_account(tree, id) : NULL;
    bool handed_down = old ? old->parent > ST_ROOT : spec->parent != NULL;
    char book[ST_NAME_MAX + 1], buf[ST_NAME_MAX + 1];
    const char *account = old ? st_book_name(tx->ctl, id, book) : "";
    int64_t more = st_quota_gpu_m(&spec->guarantee) - (old ? st_quota_gpu_m(&old->guarantee) : 0);
    int r = 0;

    if (handed_down && (!old || is_capped(tx, old->parent)))
        return 0;
    reader = reader ? st_book_of(tx->ctl, reader, buf) : NULL;
    for (size_t t = 0; r == 0 && t < fleet->types.n; t++) {
        int64_t up =
            ST_MAX(spec->guarantee.type_m[t], 0) - (old ? ST_MAX(old->guarantee.type_m[t], 0) : 0);

        if (up > 0)
            r = st_ledger_admit_floor(l, account, fleet->types.v[t].name, up, tx->now, reader, err);
        more -= ST_MAX(up, 0);
    }
    if (r == 0 && more > 0)
        r = st_ledger_admit_floor(l, account, "*", more, tx->now, reader, err);
    return as_budget(r, err);
}

int st_money_account(st_tx *tx, int32_t id, st_err *err)
{
    const st_account *a = st_tree_account(st_core_tree(tx->ctl->core), id);
    char book[ST_NAME_MAX + 1], above[ST_NAME_MAX + 1];
    const char *name = st_book_name(tx->ctl, id, book),
               *parent = st_book_name(tx->ctl, a->parent, above);
    /* Who is at the top is nobody's business but the cluster's. */
    st_entry child = {
        .kind = ST_ENTRY_CHILD, .account = *parent ? parent : ST_BOOK_FLEET, .child = name};
    st_entry e = {.kind = ST_ENTRY_ACCOUNT, .account = name};
    int r;

    if (st_ledger_parent(tx->ctl->billing->ledger, name))
        return 0; /* of an earlier version: one book for all of a name */
    r = st_money_post(tx, &child, err);

    if (r == 0)
        r = st_money_post(tx, &e, err);
    return r < 0 ? r : st_money_terms(tx, err);
}

/* A plan without its terms would price nothing: this is all or nothing. */
int st_money_terms(st_tx *tx, st_err *err)
{
    st_entry e;
    int r = 0;

    while (r == 0 && st_ledger_due(tx->ctl->billing->ledger, &e))
        r = st_tx_fault(tx, st_money_post(tx, &e, err), err);
    return r;
}
