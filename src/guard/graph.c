/*
 * Memory of graphs. A node that allocates is charged when it is added, until its graph is destroyed; what the driver has
 * reserved for graphs of the process counts where that is more, since an executable graph outlives the one it
 * was made from.
 */
#include "guard/guard.h"

typedef CUresult alloc_fn(CUnode *, CUgraph, const CUnode *, size_t, cu_alloc_node *);
typedef CUresult node_fn(CUnode *, CUgraph, const CUnode *, size_t, cu_node_params *);
typedef CUresult node2_fn(CUnode *, CUgraph, const CUnode *, const void *, size_t,
                          cu_node_params *);
typedef CUresult inst_fn(CUexec *, CUgraph, CUnode *, char *, size_t);
typedef CUresult flags_fn(CUexec *, CUgraph, unsigned long long);
typedef CUresult params_fn(CUexec *, CUgraph, void *);

static uint64_t reserved(CUdevice device)
{
    typedef CUresult fn(CUdevice, int, void *);
    fn *get = GUARD_REAL(fn *, cuDeviceGetGraphMemAttribute);
    uint64_t bytes = 0;

    return get && get(device, CU_GRAPH_RESERVED, &bytes) == CUDA_SUCCESS ? bytes : 0;
}

static uint64_t in_nodes(int device)
{
    uint64_t sum = 0;
    guard_entry e;

    for (size_t i = 0; guard_table_next(GUARD_SET_GRAPH, &i, &e);)
        sum += e.device == device ? e.bytes : 0;
    return sum;
}

/* CUDA's number of one of ours. */
static CUdevice ordinal(int device)
{
    for (int i = 0; i < guard.nordinal; i++)
        if (guard.ordinal[i] == device)
            return i;
    return -1;
}

static bool recount(int device)
{
    uint64_t nodes = in_nodes(device), held = reserved(ordinal(device));

    return guard_charge_set(&guard.dev[device], GUARD_GRAPH, nodes > held ? nodes : held);
}

/* Before a graph is launched: what was reserved by those before it is known now. */
CUresult guard_graph_fits(void)
{
    guard_device *d;

    if (!guard.graph_memory)
        return CUDA_SUCCESS;
    d = guard_device_now();
    if (!d || recount((int)(d - guard.dev)))
        return CUDA_SUCCESS;
    guard_count(d, GUARD_COUNT_REFUSED, 1);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult charge(CUgraph graph, const cu_alloc_node *a, guard_device **ret)
{
    guard_entry e = {.key = (uintptr_t)graph, .set = GUARD_SET_GRAPH, .kind = GUARD_GRAPH};
    guard_device *d = a->pool.location.type == CU_LOCATION_DEVICE
                          ? guard_device_of(a->pool.location.id)
                          : guard_device_now();

    if (!d)
        return guard_no_device();
    if (!guard_charge(d, GUARD_GRAPH, a->bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    guard.graph_memory = true;
    e.device = (int)(d - guard.dev);
    if (!guard_table_change(GUARD_SET_GRAPH, e.key, 0, (int64_t)a->bytes, &(guard_entry){0})) {
        e.bytes = a->bytes;
        guard_table_put(e);
    }
    *ret = d;
    return CUDA_SUCCESS;
}

static CUresult undo(CUresult r, CUgraph graph, uint64_t bytes, guard_device *d)
{
    if (r != CUDA_SUCCESS && guard_table_change(GUARD_SET_GRAPH, (uintptr_t)graph, 0,
                                                -(int64_t)bytes, &(guard_entry){0}))
        guard_uncharge(d, GUARD_GRAPH, bytes);
    return r;
}

GUARD_CALL(cuGraphAddMemAllocNode, CUnode *ret, CUgraph graph, const CUnode *deps, size_t n,
           cu_alloc_node *a)
{
    alloc_fn *real = GUARD_REAL(alloc_fn *, cuGraphAddMemAllocNode);
    guard_device *d = NULL;
    CUresult r;

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!a)
        return real(ret, graph, deps, n, a);
    r = charge(graph, a, &d);
    return r != CUDA_SUCCESS ? r : undo(real(ret, graph, deps, n, a), graph, a->bytes, d);
}

GUARD_CALL(cuGraphAddNode, CUnode *ret, CUgraph graph, const CUnode *deps, size_t n,
           cu_node_params *p)
{
    node_fn *real = GUARD_REAL(node_fn *, cuGraphAddNode);
    guard_device *d = NULL;
    CUresult r;

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!p || p->type != CU_NODE_MEM_ALLOC)
        return real(ret, graph, deps, n, p);
    r = charge(graph, &p->alloc, &d);
    return r != CUDA_SUCCESS ? r : undo(real(ret, graph, deps, n, p), graph, p->alloc.bytes, d);
}

GUARD_CALL(cuGraphAddNode_v2, CUnode *ret, CUgraph graph, const CUnode *deps, const void *data,
           size_t n, cu_node_params *p)
{
    node2_fn *real = GUARD_REAL(node2_fn *, cuGraphAddNode_v2);
    guard_device *d = NULL;
    CUresult r;

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!p || p->type != CU_NODE_MEM_ALLOC)
        return real(ret, graph, deps, data, n, p);
    r = charge(graph, &p->alloc, &d);
    return r != CUDA_SUCCESS ? r
                             : undo(real(ret, graph, deps, data, n, p), graph, p->alloc.bytes, d);
}

/* An executable graph is refused when what is held is already too much. */
#define INSTANTIATE(name, type, params, args)                    \
    __attribute__((visibility("default"))) CUresult name params; \
    CUresult name params                                         \
    {                                                            \
        type *real = GUARD_REAL(type *, name);                   \
        CUresult r = guard_graph_fits();                         \
                                                                 \
        if (!real)                                               \
            return CUDA_ERROR_NOT_INITIALIZED;                   \
        return r != CUDA_SUCCESS ? r : real args;                \
    }

INSTANTIATE(cuGraphInstantiate, inst_fn,
            (CUexec * ret, CUgraph graph, CUnode *node, char *log, size_t n),
            (ret, graph, node, log, n))
INSTANTIATE(cuGraphInstantiate_v2, inst_fn,
            (CUexec * ret, CUgraph graph, CUnode *node, char *log, size_t n),
            (ret, graph, node, log, n))
INSTANTIATE(cuGraphInstantiateWithFlags, flags_fn,
            (CUexec * ret, CUgraph graph, unsigned long long flags), (ret, graph, flags))
INSTANTIATE(cuGraphInstantiateWithParams, params_fn, (CUexec * ret, CUgraph graph, void *params),
            (ret, graph, params))
INSTANTIATE(cuGraphInstantiateWithParams_ptsz, params_fn,
            (CUexec * ret, CUgraph graph, void *params), (ret, graph, params))

GUARD_CALL(cuGraphDestroy, CUgraph graph)
{
    typedef CUresult fn(CUgraph);
    fn *real = GUARD_REAL(fn *, cuGraphDestroy);
    CUresult r = real ? real(graph) : CUDA_ERROR_NOT_INITIALIZED;
    guard_entry e;

    if (r == CUDA_SUCCESS && guard_table_take(GUARD_SET_GRAPH, (uintptr_t)graph, &e))
        recount(e.device);
    return r;
}

GUARD_CALL(cuDeviceGraphMemTrim, CUdevice device)
{
    typedef CUresult fn(CUdevice);
    fn *real = GUARD_REAL(fn *, cuDeviceGraphMemTrim);
    guard_device *d = guard_device_of(device);
    CUresult r = real ? real(device) : CUDA_ERROR_NOT_INITIALIZED;

    if (r == CUDA_SUCCESS && d)
        recount((int)(d - guard.dev));
    return r;
}
