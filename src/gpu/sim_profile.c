/* Reading a node's profile: TYPExCOUNT[,mig][,pcie], joined by +. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "gpu/sim_state.h"

static int bad_type(const char *type, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf known = {0};
    char quoted[ST_QUOTE_MAX];

    for (size_t i = 0; st_gpu_product_at(i); i++)
        st_strbuf_addf(&known, "%s%s", i ? ", " : "", st_gpu_product_at(i)->type);
    return st_fail(err, ST_EPARSE, "no GPU type %s to simulate; there are %s",
                   st_quote(quoted, type), known.s);
}

static int read_options(char *text, sim_gpu *model, st_err *err)
{
    char quoted[ST_QUOTE_MAX], *save = NULL;

    for (char *o = strtok_r(text, ",", &save); o; o = strtok_r(NULL, ",", &save)) {
        if (strcmp(o, "pcie") == 0)
            model->linked = false;
        else if (strcmp(o, "mig") != 0)
            return st_fail(err, ST_EPARSE, "no option %s of simulated GPUs; there are mig and pcie",
                           st_quote(quoted, o));
        else if (model->product->board == ST_BOARD_NONE)
            return st_fail(err, ST_EPARSE, "a %s has no MIG", model->product->type);
        else
            model->mig = true;
    }
    return 0;
}

/* One group, TYPExCOUNT[,OPTION...]; the text is cut up. */
static int read_group(st_gpu_sim *s, char *group, st_err *err)
{
    char quoted[ST_QUOTE_MAX];
    int64_t count;
    char *options = strchr(group, ',');

    if (options)
        *options++ = '\0';
    char *x = strrchr(group, 'x');
    if (!x || x == group || st_parse_i64(x + 1, 1, ST_DEVS_MAX, &count, NULL) < 0)
        return st_fail(err, ST_EPARSE,
                       "%s is no profile of simulated GPUs; write TYPExCOUNT, such as h100x8, with "
                       "a count of 1 to %d",
                       st_quote(quoted, group), ST_DEVS_MAX);
    *x = '\0';
    sim_gpu model = {.product = st_gpu_product_find(group), .linked = true};
    if (!model.product)
        return bad_type(group, err);
    if (options && read_options(options, &model, err) < 0)
        return -err->code;
    if (s->base.n + count > ST_DEVS_MAX)
        return st_fail(err, ST_ELIMIT, "a node has at most %d GPUs", ST_DEVS_MAX);
    model.linked = model.linked && model.product->links > 0 && count > 1;
    model.temp_m = 30000;
    for (int64_t i = 0; i < count; i++)
        s->gpu[s->base.n++] = model;
    return 0;
}

int st_sim_profile(st_gpu_sim *s, const char *text, st_err *err)
{
    ST_CLEANUP(st_freep) char *copy = st_xstrdup(text);
    st_err own = {0};
    char *save = NULL;

    for (char *group = strtok_r(copy, "+", &save); group; group = strtok_r(NULL, "+", &save))
        if (read_group(s, group, &own) < 0)
            return st_fail(err, own.code, "%s", own.msg);
    if (s->base.n == 0)
        return st_fail(err, ST_EPARSE, "a profile of simulated GPUs is empty; try h100x8");
    return 0;
}
