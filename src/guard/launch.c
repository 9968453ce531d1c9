/*
 * Calls that start work, and calls that wait for it.
 */
#include "guard/guard.h"

/* NAME(parameters): one piece of work in a stream. */
#define START(name, twin, stream, counter, type, args)       \
    type *real = GUARD_REAL(type *, name);                   \
    guard_pass pass;                                         \
    CUresult r;                                              \
                                                             \
    if (!real)                                               \
        return CUDA_ERROR_NOT_INITIALIZED;                   \
    pass = guard_enter(stream, twin, GUARD_COUNT_##counter); \
    r = real args;                                           \
    guard_leave(&pass, r);                                   \
    return r

/* A call that comes back when work is done. */
#define WAIT(name, type, args)             \
    type *real = GUARD_REAL(type *, name); \
    CUresult r;                            \
                                           \
    if (!real)                             \
        return CUDA_ERROR_NOT_INITIALIZED; \
    guard_before_wait();                   \
    r = real args;                         \
    guard_after_wait();                    \
    return r

/* ---- copies and fills: a wrapper from each row ---- */

#define WORK(name, base, version, twin, params, args, stream)    \
    typedef CUresult name##_fn params;                           \
    __attribute__((visibility("default"))) CUresult name params; \
    CUresult name params                                         \
    {                                                            \
        START(name, twin, stream, COPIES, name##_fn, args);      \
    }

GUARD_WORK(WORK)

/* ---- kernels ---- */

typedef CUresult launch_fn(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, CUstream, void **, void **);
typedef CUresult coop_fn(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, CUstream, void **);
typedef CUresult ex_fn(const cu_launch_config *, CUfunction, void **, void **);
typedef CUresult multi_fn(cu_launch_params *, unsigned, unsigned);
typedef CUresult graph_fn(CUexec, CUstream);

#define LAUNCH(name, twin)                                                                         \
    GUARD_CALL(name, CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,             \
               unsigned by, unsigned bz, unsigned shared, CUstream s, void **params, void **extra) \
    {                                                                                              \
        START(name, twin, s, LAUNCHES, launch_fn,                                                  \
              (f, gx, gy, gz, bx, by, bz, shared, s, params, extra));                              \
    }
#define COOPERATIVE(name, twin)                                                                  \
    GUARD_CALL(name, CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,           \
               unsigned by, unsigned bz, unsigned shared, CUstream s, void **params)             \
    {                                                                                            \
        START(name, twin, s, LAUNCHES, coop_fn, (f, gx, gy, gz, bx, by, bz, shared, s, params)); \
    }
#define LAUNCH_EX(name, twin)                                                                   \
    GUARD_CALL(name, const cu_launch_config *config, CUfunction f, void **params, void **extra) \
    {                                                                                           \
        START(name, twin, config ? config->stream : NULL, LAUNCHES, ex_fn,                      \
              (config, f, params, extra));                                                      \
    }
#define GRAPH(name, twin)                                  \
    GUARD_CALL(name, CUexec exec, CUstream s)              \
    {                                                      \
        CUresult fits = guard_graph_fits();                \
                                                           \
        if (fits != CUDA_SUCCESS)                          \
            return fits;                                   \
        START(name, twin, s, GRAPHS, graph_fn, (exec, s)); \
    }

LAUNCH(cuLaunchKernel, false)
LAUNCH(cuLaunchKernel_ptsz, true)
LAUNCH_EX(cuLaunchKernelEx, false)
LAUNCH_EX(cuLaunchKernelEx_ptsz, true)
COOPERATIVE(cuLaunchCooperativeKernel, false)
COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)
GRAPH(cuGraphLaunch, false)
GRAPH(cuGraphLaunch_ptsz, true)

/* Its parts go to several devices; the turn is that of the current one. */
GUARD_CALL(cuLaunchCooperativeKernelMultiDevice, cu_launch_params *list, unsigned n, unsigned flags)
{
    START(cuLaunchCooperativeKernelMultiDevice, false, list && n ? list[0].stream : NULL, LAUNCHES,
          multi_fn, (list, n, flags));
}

typedef CUresult old1_fn(CUfunction);
typedef CUresult old2_fn(CUfunction, int, int);
typedef CUresult old3_fn(CUfunction, int, int, CUstream);

GUARD_CALL(cuLaunch, CUfunction f)
{
    START(cuLaunch, false, NULL, LAUNCHES, old1_fn, (f));
}

GUARD_CALL(cuLaunchGrid, CUfunction f, int w, int h)
{
    START(cuLaunchGrid, false, NULL, LAUNCHES, old2_fn, (f, w, h));
}

GUARD_CALL(cuLaunchGridAsync, CUfunction f, int w, int h, CUstream s)
{
    START(cuLaunchGridAsync, false, s, LAUNCHES, old3_fn, (f, w, h, s));
}

/* ---- waits ---- */

typedef CUresult stream_fn(CUstream);
typedef CUresult event_fn(CUevent);
typedef CUresult none_fn(void);
typedef CUresult context_fn(CUcontext);
typedef CUresult from_device_fn(void *, CUdeviceptr, size_t);
typedef CUresult to_device_fn(CUdeviceptr, const void *, size_t);

GUARD_CALL(cuStreamSynchronize, CUstream s)
{
    WAIT(cuStreamSynchronize, stream_fn, (s));
}

GUARD_CALL(cuStreamSynchronize_ptsz, CUstream s)
{
    WAIT(cuStreamSynchronize_ptsz, stream_fn, (s));
}

GUARD_CALL(cuEventSynchronize, CUevent e)
{
    WAIT(cuEventSynchronize, event_fn, (e));
}

GUARD_CALL(cuCtxSynchronize, void)
{
    WAIT(cuCtxSynchronize, none_fn, ());
}

GUARD_CALL(cuCtxSynchronize_v2, CUcontext c)
{
    WAIT(cuCtxSynchronize_v2, context_fn, (c));
}

GUARD_CALL(cuMemcpyDtoH_v2, void *to, CUdeviceptr from, size_t n)
{
    WAIT(cuMemcpyDtoH_v2, from_device_fn, (to, from, n));
}

GUARD_CALL(cuMemcpyDtoH_v2_ptds, void *to, CUdeviceptr from, size_t n)
{
    WAIT(cuMemcpyDtoH_v2_ptds, from_device_fn, (to, from, n));
}

GUARD_CALL(cuMemcpyHtoD_v2, CUdeviceptr to, const void *from, size_t n)
{
    WAIT(cuMemcpyHtoD_v2, to_device_fn, (to, from, n));
}

GUARD_CALL(cuMemcpyHtoD_v2_ptds, CUdeviceptr to, const void *from, size_t n)
{
    WAIT(cuMemcpyHtoD_v2_ptds, to_device_fn, (to, from, n));
}

/* ---- graphs that are captured: their launches are not work yet ---- */

typedef CUresult capture1_fn(CUstream);
typedef CUresult capture2_fn(CUstream, int);
typedef CUresult capture3_fn(CUstream, CUgraph, const CUnode *, const void *, size_t, int);
typedef CUresult end_fn(CUstream, CUgraph *);

static CUresult captures(CUresult r, int change)
{
    if (r == CUDA_SUCCESS || change < 0)
        atomic_fetch_add(&guard.captures, change);
    if (atomic_load(&guard.captures) < 0)
        atomic_store(&guard.captures, 0);
    return r;
}

#define CAPTURE1(name)                                                   \
    GUARD_CALL(name, CUstream s)                                         \
    {                                                                    \
        capture1_fn *real = GUARD_REAL(capture1_fn *, name);             \
                                                                         \
        return real ? captures(real(s), 1) : CUDA_ERROR_NOT_INITIALIZED; \
    }
#define CAPTURE2(name)                                                         \
    GUARD_CALL(name, CUstream s, int mode)                                     \
    {                                                                          \
        capture2_fn *real = GUARD_REAL(capture2_fn *, name);                   \
                                                                               \
        return real ? captures(real(s, mode), 1) : CUDA_ERROR_NOT_INITIALIZED; \
    }
#define CAPTURE3(name)                                                                           \
    GUARD_CALL(name, CUstream s, CUgraph g, const CUnode *deps, const void *data, size_t n,      \
               int mode)                                                                         \
    {                                                                                            \
        capture3_fn *real = GUARD_REAL(capture3_fn *, name);                                     \
                                                                                                 \
        return real ? captures(real(s, g, deps, data, n, mode), 1) : CUDA_ERROR_NOT_INITIALIZED; \
    }
#define CAPTURE_END(name)                                                      \
    GUARD_CALL(name, CUstream s, CUgraph *ret)                                 \
    {                                                                          \
        end_fn *real = GUARD_REAL(end_fn *, name);                             \
                                                                               \
        return real ? captures(real(s, ret), -1) : CUDA_ERROR_NOT_INITIALIZED; \
    }

CAPTURE1(cuStreamBeginCapture)
CAPTURE1(cuStreamBeginCapture_ptsz)
CAPTURE2(cuStreamBeginCapture_v2)
CAPTURE2(cuStreamBeginCapture_v2_ptsz)
CAPTURE3(cuStreamBeginCaptureToGraph)
CAPTURE3(cuStreamBeginCaptureToGraph_ptsz)
CAPTURE_END(cuStreamEndCapture)
CAPTURE_END(cuStreamEndCapture_ptsz)
