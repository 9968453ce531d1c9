/*
 * The smallest part of a fleet that fits (rules/fit.h).
 */
#include "rules/fit.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "base/quote.h"
#include "rules/values.h"
#include "spec/spec.h"

void st_kinds_read(const st_rules_options *options, st_kinds *ret)
{
    const char *const *names = st_spec_known_types();

    *ret = (st_kinds){0};
    if (options->types) {
        ret->n = options->types(options->ctx, ret->type);
        ST_ASSERT(ret->n <= ST_TYPES_MAX);
    } else {
        for (; names[ret->n] && ret->n < ST_TYPES_MAX; ret->n++) {
            const st_type_doc *known = st_spec_known_type(names[ret->n]);
            st_rules_type *t = &ret->type[ret->n];

            snprintf(t->name, sizeof t->name, "%s", known->name);
            t->vram_mib = known->vram_mib;
            t->board = known->board;
        }
    }
    ret->allowed = (uint32_t)((UINT64_C(1) << ret->n) - 1);
}

static int allow(const st_kinds *fleet, const json_t *name, uint32_t *types, st_err *err)
{
    const char *text = json_string_value(name);
    char q[ST_QUOTE_MAX];

    if (!text)
        return st_fail(err, ST_EINVAL, "type: the name of a GPU type is wanted, or a list of them");
    for (size_t t = 0; t < fleet->n; t++)
        if (strcmp(fleet->type[t].name, text) == 0) {
            *types |= 1u << t;
            return 0;
        }
    return st_fail(err, ST_EINVAL, "type: there is no GPU type %s", st_quote(q, text));
}

int st_kinds_restrict(st_kinds *fleet, const json_t *job, st_err *err)
{
    const json_t *said = json_object_get(job, "type");
    uint32_t types = 0;
    int r = 0;

    if (!st_value_has(job, "type"))
        return 0;
    if (!json_is_array(said))
        r = allow(fleet, said, &types, err);
    for (size_t i = 0; r == 0 && i < json_array_size(said); i++)
        r = allow(fleet, json_array_get(said, i), &types, err);
    if (r == 0)
        fleet->allowed = types;
    return r;
}

int64_t st_kinds_vram_mib(const st_rules_type *type)
{
    if (type->board == ST_BOARD_NONE)
        return type->vram_mib;
    return ST_MIN(type->vram_mib, st_mig_vram_mib(type->board, ST_MIG_7G));
}

static void consider(st_fit *best, bool *found, const st_fit *fit)
{
    if (!*found || fit->taken_mib < best->taken_mib)
        *best = *fit;
    *found = true;
}

static void try_slices(const st_kinds *fleet, const st_estimate_need *need, int t, st_fit *best,
                       bool *found)
{
    const st_rules_type *type = &fleet->type[t];

    if (type->board == ST_BOARD_NONE)
        return;
    /* 7g is the whole GPU, without its fast links. */
    for (int p = 0; p < ST_MIG_7G; p++) {
        st_fit fit = {.level = ST_LEVEL_MIG,
                      .profile = (st_mig)p,
                      .gpus = 1,
                      .tasks = 1,
                      .each_mib = st_need_each(need, 1),
                      .taken_mib = st_mig_vram_mib(type->board, (st_mig)p),
                      .best = t};

        if (fit.taken_mib >= fit.each_mib)
            consider(best, found, &fit);
    }
}

/* In eighths, so that shares fill a GPU. */
static void try_share(const st_kinds *fleet, const st_estimate_need *need, int t, st_fit *best,
                      bool *found)
{
    int64_t vram = st_kinds_vram_mib(&fleet->type[t]);
    st_fit fit = {
        .level = ST_LEVEL_MPS, .gpus = 1, .tasks = 1, .each_mib = st_need_each(need, 1), .best = t};
    int64_t eighths = (fit.each_mib * 8 + vram - 1) / vram;

    if (eighths > 7)
        return;
    fit.share_m = eighths * 125;
    fit.taken_mib = vram * eighths / 8;
    consider(best, found, &fit);
}

static void try_whole(const st_kinds *fleet, const st_estimate_need *need, int t, int tasks_max,
                      st_fit *best, bool *found)
{
    int node = fleet->type[t].node_gpus > 0 ? fleet->type[t].node_gpus : 8;
    int64_t vram = st_kinds_vram_mib(&fleet->type[t]);
    st_fit fit = {.level = ST_LEVEL_WHOLE, .gpus = 1, .tasks = 1, .best = t};

    for (;;) {
        fit.each_mib = st_need_each(need, (int64_t)fit.gpus * fit.tasks);
        if (fit.each_mib <= vram)
            break;
        if (fit.gpus * 2 <= node)
            fit.gpus *= 2;
        else if (fit.tasks < tasks_max)
            fit.tasks++;
        else
            return;
    }
    fit.taken_mib = vram * fit.gpus * fit.tasks;
    consider(best, found, &fit);
}

/* Whether what was found on one type would do on another. */
static bool fits_too(const st_rules_type *type, const st_fit *fit)
{
    int node = type->node_gpus > 0 ? type->node_gpus : 8;

    switch (fit->level) {
    case ST_LEVEL_MIG:
        return type->board != ST_BOARD_NONE &&
               st_mig_vram_mib(type->board, fit->profile) >= fit->each_mib;
    case ST_LEVEL_WHOLE:
        return node >= fit->gpus && st_kinds_vram_mib(type) >= fit->each_mib;
    default:
        return st_kinds_vram_mib(type) * fit->share_m / ST_WHOLE_M >= fit->each_mib;
    }
}

static void add_types(const st_kinds *fleet, st_fit *fit)
{
    for (size_t t = 0; t < fleet->n; t++)
        if ((fleet->allowed >> t & 1) && fits_too(&fleet->type[t], fit))
            fit->types |= 1u << t;
}

bool st_fit_smallest(const st_kinds *fleet, const st_estimate_need *need, const st_fit_rules *rules,
                     st_fit *ret)
{
    bool found = false;
    st_fit best = {0};

    for (int level = 0; level < 3; level++)
        for (int t = 0; t < (int)fleet->n; t++) {
            if (!(fleet->allowed >> t & 1))
                continue;
            if (level == 0)
                try_whole(fleet, need, t, rules->tasks_max, &best, &found);
            else if (level == 1)
                try_slices(fleet, need, t, &best, &found);
            else if (rules->share)
                try_share(fleet, need, t, &best, &found);
        }
    if (!found)
        return false;
    add_types(fleet, &best);
    *ret = best;
    return true;
}

void st_fit_eighth(const st_kinds *fleet, bool share, st_fit *ret)
{
    st_fit fit = {.level = share ? ST_LEVEL_MPS : ST_LEVEL_WHOLE,
                  .gpus = 1,
                  .tasks = 1,
                  .share_m = share ? ST_WHOLE_M / 8 : 0,
                  .best = -1};

    for (size_t t = 0; t < fleet->n; t++)
        if ((fleet->allowed >> t & 1) && fleet->type[t].board != ST_BOARD_NONE) {
            fit.level = ST_LEVEL_MIG;
            fit.profile = ST_MIG_1G;
            fit.share_m = 0;
        }
    *ret = fit;
}

bool st_fit_said(const json_t *job)
{
    return st_value_has(job, "gpus") || st_value_has(job, "level") ||
           st_value_has(job, "profile") || st_value_has(job, "share");
}

/* "1g", "1g+" and so on: the short names exist on every board. */
static const char *short_name(st_mig profile)
{
    static const char *const names[ST_MIG_COUNT] = {"1g", "1g+", "2g", "3g", "4g", "7g"};

    return names[profile];
}

/* The part of one GPU, in eighths. */
static int64_t eighths(const st_fit *fit)
{
    if (fit->level == ST_LEVEL_MIG)
        return st_mig_memory(fit->profile);
    if (fit->level == ST_LEVEL_WHOLE)
        return INT64_C(8) * fit->gpus;
    return ST_MAX(1, (fit->share_m * 8 + 999) / ST_WHOLE_M);
}

void st_fit_write(const st_fit *fit, const st_kinds *fleet, json_t *job)
{
    char mib[ST_FMT_MAX];
    int64_t e = eighths(fit);

    if (fit->level == ST_LEVEL_MIG) {
        st_value_default(job, "level", json_string("mig"));
        st_value_default(job, "profile", json_string(short_name(fit->profile)));
    } else if (fit->level == ST_LEVEL_MPS) {
        st_value_default(job, "level", json_string("mps"));
        st_value_default(job, "share", json_real((double)fit->share_m / ST_WHOLE_M));
        if (fit->each_mib > 0)
            st_value_default(job, "vram", json_string(st_fmt_mib(mib, fit->each_mib)));
    } else {
        st_value_default(job, "gpus", json_integer(fit->gpus));
        if (fit->tasks > 1)
            st_value_default(job, "tasks", json_integer(fit->tasks));
    }
    if (fit->types != 0 && !st_value_has(job, "type")) {
        json_t *types = json_array();

        for (size_t t = 0; t < fleet->n; t++)
            if (fit->types >> t & 1)
                json_array_append_new(types, json_string(fleet->type[t].name));
        st_value_set(job, "type", types);
    }
    st_value_default(job, "cpu", json_integer(ST_GPU_CPU * e / 8));
    st_value_default(job, "ram", json_string(st_fmt_mib(mib, e * ST_GPU_RAM_GIB * 1024 / 8)));
}

void st_fit_say(const st_fit *fit, const st_kinds *fleet, st_strbuf *why)
{
    const st_rules_type *type = &fleet->type[fit->best];
    char g[ST_GIB_TEXT], m[ST_FMT_MAX];

    st_strbuf_add(why, ": ");
    if (fit->level == ST_LEVEL_MIG)
        st_strbuf_addf(why, "a MIG slice %s of %s, which has %s",
                       st_mig_name(type->board, fit->profile), type->name,
                       st_gib_text(g, fit->taken_mib));
    else if (fit->level == ST_LEVEL_MPS)
        st_strbuf_addf(why, "a share of %s of one %s, which is %s", st_fmt_milli(m, fit->share_m),
                       type->name, st_gib_text(g, fit->taken_mib));
    else if (fit->gpus == 1 && fit->tasks == 1)
        st_strbuf_addf(why, "one %s, which has %s", type->name, st_gib_text(g, fit->taken_mib));
    else if (fit->tasks == 1)
        st_strbuf_addf(why, "%d × %s in one node, %s", fit->gpus, type->name,
                       st_gib_text(g, fit->taken_mib));
    else
        st_strbuf_addf(why, "%d nodes with %d × %s, %s", fit->tasks, fit->gpus, type->name,
                       st_gib_text(g, fit->taken_mib));
}
