/*
 * Reading the lists of trace/openb_list.h and drawing arrivals from them.
 */
#include "trace/openb_list.h"

#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/rng.h"
#include "trace/csv.h"

#define CPU_MAX_M (INT64_C(1) << 30)

void st_openb_free(st_openb *t)
{
    if (!t)
        return;
    for (int32_t i = 0; i < t->nmodels; i++)
        free(t->models[i]);
    st_vec_free(&t->nodes);
    st_vec_free(&t->pods);
    free(t);
}

/* The number of a model, a new one if need be. */
static int model_of(st_openb *t, const st_csv *csv, const char *s, size_t len, int32_t *ret,
                    st_err *err)
{
    for (int32_t i = 0; i < t->nmodels; i++)
        if (strlen(t->models[i]) == len && strncmp(t->models[i], s, len) == 0) {
            *ret = i;
            return 0;
        }
    if (len == 0)
        return st_csv_fail(csv, err, ST_EPARSE, "a model without a name");
    if (t->nmodels == ST_TYPES_MAX)
        return st_csv_fail(csv, err, ST_ERANGE, "more than %d models", ST_TYPES_MAX);
    *ret = t->nmodels;
    t->models[t->nmodels++] = st_xstrndup(s, len);
    return 0;
}

static int read_node(st_openb *t, const st_csv *csv, const int *column, st_err *err)
{
    const char *model = st_csv_text(csv, column[3]);
    int64_t cpu_m, ram_mib, gpus;
    int32_t type;
    int r;

    r = st_csv_i64(csv, column[0], 0, CPU_MAX_M, &cpu_m, err);
    if (r == 0)
        r = st_csv_i64(csv, column[1], 0, ST_QTY_MAX, &ram_mib, err);
    if (r == 0)
        r = st_csv_i64(csv, column[2], 0, ST_DEVS_MAX, &gpus, err);
    /* A node without GPUs may have no model; it serves pods that want none. */
    if (r == 0)
        r = model_of(t, csv, gpus == 0 && !*model ? "none" : model,
                     gpus == 0 && !*model ? 4 : strlen(model), &type, err);
    if (r < 0)
        return r;
    if (t->nodes.n == ST_NODES_MAX)
        return st_csv_fail(csv, err, ST_ERANGE, "more than %d nodes", ST_NODES_MAX);
    st_vec_push(&t->nodes, (st_openb_node){ram_mib, (int32_t)cpu_m, (int32_t)gpus, type});
    t->capacity_m += gpus * 1000;
    return 0;
}

static int read_types(st_openb *t, const st_csv *csv, const char *spec, uint32_t *ret, st_err *err)
{
    uint32_t types = 0;

    while (*spec) {
        size_t len = strcspn(spec, "|");
        int32_t type;
        int r = model_of(t, csv, spec, len, &type, err);

        if (r < 0)
            return r;
        types |= UINT32_C(1) << type;
        spec += len + (spec[len] == '|');
    }
    *ret = types ? types : ~UINT32_C(0);
    return 0;
}

static int read_pod(st_openb *t, const st_csv *csv, const int *column, int spec, st_err *err)
{
    int64_t cpu_m, ram_mib, gpus, gpu_m;
    st_openb_pod pod = {0};
    int r;

    r = st_csv_i64(csv, column[0], 0, CPU_MAX_M, &cpu_m, err);
    if (r == 0)
        r = st_csv_i64(csv, column[1], 0, ST_QTY_MAX, &ram_mib, err);
    if (r == 0)
        r = st_csv_i64(csv, column[2], 0, 1024, &gpus, err);
    if (r == 0)
        r = st_csv_i64(csv, column[3], 0, 1000, &gpu_m, err);
    if (r == 0)
        r = read_types(t, csv, st_csv_text(csv, spec), &pod.ask.types, err);
    if (r < 0)
        return r;
    if ((gpus == 0) != (gpu_m == 0))
        return st_csv_fail(csv, err, ST_EPARSE, "num_gpu is %lld, but gpu_milli is %lld",
                           (long long)gpus, (long long)gpu_m);
    if (t->pods.n == ST_OPENB_PODS_MAX)
        return st_csv_fail(csv, err, ST_ERANGE, "more than %d pods", ST_OPENB_PODS_MAX);
    pod.ask.cpu_m = (int32_t)cpu_m;
    pod.ask.ram_mib = ram_mib;
    pod.ask.gpus = (int32_t)gpus;
    pod.ask.gpu_m = gpus > 1 ? 1000 : (int32_t)gpu_m;
    pod.gpu_m = (int32_t)gpu_m;
    st_vec_push(&t->pods, pod);
    return 0;
}

static int find_columns(const st_csv *csv, const char *const headings[4], int *ret, st_err *err)
{
    for (int i = 0; i < 4; i++) {
        int r = st_csv_need(csv, headings[i], &ret[i], err);

        if (r < 0)
            return r;
    }
    return 0;
}

static int load_nodes(st_openb *t, const char *path, st_err *err)
{
    static const char *const headings[4] = {"cpu_milli", "memory_mib", "gpu", "model"};
    ST_CLEANUP(st_csv_freep) st_csv *csv = NULL;
    int column[4], r;

    r = st_csv_load(path, &csv, err);
    if (r == 0)
        r = find_columns(csv, headings, column, err);
    if (r < 0)
        return r;
    while ((r = st_csv_next(csv, err)) > 0) {
        r = read_node(t, csv, column, err);
        if (r < 0)
            return r;
    }
    if (r == 0 && t->capacity_m == 0)
        return st_csv_fail(csv, err, ST_EINVAL, "the nodes have no GPUs");
    return r;
}

static int load_pods(st_openb *t, const char *path, st_err *err)
{
    static const char *const headings[4] = {"cpu_milli", "memory_mib", "num_gpu", "gpu_milli"};
    ST_CLEANUP(st_csv_freep) st_csv *csv = NULL;
    int64_t asked_m = 0;
    int column[4], r;

    r = st_csv_load(path, &csv, err);
    if (r == 0)
        r = find_columns(csv, headings, column, err);
    if (r < 0)
        return r;
    while ((r = st_csv_next(csv, err)) > 0) {
        r = read_pod(t, csv, column, st_csv_find(csv, "gpu_spec"), err);
        if (r < 0)
            return r;
        asked_m += t->pods.v[t->pods.n - 1].gpu_m;
    }
    if (r < 0)
        return r;
    if (asked_m == 0)
        return st_csv_fail(csv, err, ST_EINVAL, "the pods ask for no GPU");
    /* Drawing goes on until the fleet is asked for; a list that hardly asks would never end. */
    if (t->capacity_m / asked_m > ST_OPENB_PODS_MAX / (int64_t)t->pods.n)
        return st_csv_fail(csv, err, ST_ERANGE,
                           "the pods ask for too little GPU to fill the nodes");
    return 0;
}

int st_openb_load(const char *nodes_path, const char *pods_path, st_openb **ret, st_err *err)
{
    ST_CLEANUP(st_openb_freep) st_openb *t = st_xcalloc(1, sizeof(*t));
    int r = load_nodes(t, nodes_path, err);

    if (r == 0)
        r = load_pods(t, pods_path, err);
    if (r < 0)
        return r;
    *ret = ST_TAKE(t);
    return 0;
}

static void shuffle(st_rng *rng, int32_t *v, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)st_rng_below(rng, i);
        int32_t x = v[i - 1];

        v[i - 1] = v[j];
        v[j] = x;
    }
}

void st_openb_draw(const st_openb *t, uint64_t seed, int32_t times, st_openb_stream *ret)
{
    int64_t asked_m = 0;
    st_rng rng;

    st_rng_seed(&rng, seed);
    for (size_t i = 0; i < t->pods.n; i++) {
        st_vec_push(&ret->arrivals, (int32_t)i);
        asked_m += t->pods.v[i].gpu_m;
    }
    shuffle(&rng, ret->arrivals.v, ret->arrivals.n);
    while (asked_m * 10 < t->capacity_m * times * 13) {
        int32_t pick = (int32_t)st_rng_below(&rng, t->pods.n);

        st_vec_push(&ret->arrivals, pick);
        asked_m += t->pods.v[pick].gpu_m;
    }
    for (int32_t k = 0; k < times; k++)
        for (size_t i = 0; i < t->nodes.n; i++)
            st_vec_push(&ret->nodes, (int32_t)i);
    shuffle(&rng, ret->nodes.v, ret->nodes.n);
}

void st_openb_stream_done(st_openb_stream *s)
{
    st_vec_free(&s->arrivals);
    st_vec_free(&s->nodes);
}
