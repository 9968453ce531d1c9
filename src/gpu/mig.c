/*
 * Reconciling a GPU's MIG instances with those wanted; the same for every driver.
 *
 * Removing comes before making, so that the new may lie where the old was. An instance in use is
 * not forced: a place that overlaps it stays unmade, and the caller is told.
 */
#include <string.h>

#include "gpu/gpu.h"

static int check_wanted(int gpu, const st_gpu_slot *wanted, int n, st_err *err)
{
    uint8_t mask = 0;
    int compute = 0;

    for (int i = 0; i < n; i++) {
        const st_gpu_slot *w = &wanted[i];
        if (!st_mig_start_legal(w->profile, w->start))
            return st_fail(err, ST_EINVAL, "GPU %d: a slice of %d/7 cannot begin at %d", gpu,
                           st_mig_compute(w->profile), w->start);
        if (st_mig_overlaps(mask, w->profile, w->start))
            return st_fail(err, ST_EINVAL, "GPU %d: wanted slices overlap at %d", gpu, w->start);
        mask |= st_mig_mask(w->profile, w->start);
        compute += st_mig_compute(w->profile);
    }
    if (compute > ST_MIG_COMPUTE)
        return st_fail(err, ST_EINVAL, "GPU %d: %d compute slices wanted, it has %d", gpu, compute,
                       ST_MIG_COMPUTE);
    return 0;
}

static bool matches(const st_gpu_instance *have, const st_gpu_slot *want)
{
    return have->ci >= 0 && have->profile == (int)want->profile && have->start == want->start;
}

static int find(const st_gpu_instances *list, const st_gpu_slot *want)
{
    for (int i = 0; i < list->n; i++)
        if (matches(&list->v[i], want))
            return i;
    return -1;
}

static bool wanted_by_any(const st_gpu_instance *have, const st_gpu_slot *wanted, int n)
{
    for (int i = 0; i < n; i++)
        if (matches(have, &wanted[i]))
            return true;
    return false;
}

static uint8_t mask_of(const st_gpu_instance *have)
{
    return (uint8_t)(((1u << have->size) - 1) << have->start);
}

int st_gpu_mig_reconcile(st_gpu *g, int gpu, const st_gpu_slot *wanted, int n,
                         st_gpu_reconciled *ret, st_err *err)
{
    ST_ASSERT(n >= 0 && n <= ST_GPU_INSTANCES_MAX);
    st_gpu_reconciled out = {0};
    st_gpu_instances have;
    uint8_t busy = 0;
    int r;

    if ((r = check_wanted(gpu, wanted, n, err)) < 0 ||
        (r = st_gpu_mig_list(g, gpu, &have, err)) < 0)
        return r;
    for (int i = 0; i < have.n; i++) {
        if (wanted_by_any(&have.v[i], wanted, n)) {
            out.kept++;
            continue;
        }
        r = st_gpu_mig_destroy(g, gpu, have.v[i].gi, err);
        if (r == -ST_ESTATE) {
            busy |= mask_of(&have.v[i]);
            out.busy++;
        } else if (r < 0) {
            return r;
        } else {
            out.removed++;
        }
    }
    for (int i = 0; i < n; i++) {
        st_gpu_instance made;
        if (find(&have, &wanted[i]) >= 0 ||
            st_mig_overlaps(busy, wanted[i].profile, wanted[i].start))
            continue;
        if ((r = st_gpu_mig_create(g, gpu, wanted[i].profile, wanted[i].start, &made, err)) < 0)
            return r;
        out.made++;
    }
    if ((r = st_gpu_mig_list(g, gpu, &out.now, err)) < 0)
        return r;
    for (int i = 0; i < n; i++)
        out.at[i] = find(&out.now, &wanted[i]);
    *ret = out;
    return 0;
}
