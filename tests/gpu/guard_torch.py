#!/usr/bin/env python3
"""Frameworks under the guard, for tests/gpu/guard.py: guard_torch.py WHAT [SECONDS].

  train SECONDS    steps a second of a small training loop
  infer SECONDS    a request every 2 ms: 8 layers of 4096 squared, batch 8; its latencies
  hog SECONDS      copies of 512 MB, 20 in flight
  seen NAME        one feature of one framework: prints seen=NAME result=..., and how much it was told it has
"""
import os
import sys
import time


def train(seconds):
    import torch
    net = torch.nn.Sequential(*[m for _ in range(6) for m in (torch.nn.Linear(2048, 2048), torch.nn.ReLU())]).cuda()
    best = torch.optim.Adam(net.parameters())
    x = torch.randn(256, 2048, device="cuda")
    n, end = 0, None
    for i in range(100000000):
        best.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        best.step()
        if i % 20 == 19:
            torch.cuda.synchronize()
            now = time.monotonic()
            if end is None and i > 60:
                begin, end = now, now + seconds
            elif end is not None:
                n += 20
                if now > end:
                    break
    print(f"per_s={n / (now - begin):.2f}")


def infer(seconds):
    import torch
    layers = [torch.randn(4096, 4096, device="cuda", dtype=torch.float16) / 64 for _ in range(8)]
    x = torch.randn(8, 4096, device="cuda", dtype=torch.float16)

    def request():
        y = x
        for w in layers:
            y = torch.relu(y @ w)
        torch.cuda.synchronize()

    for _ in range(200):
        request()
    at = int(os.environ.get("GUARD_START_NS", "0"))
    while time.monotonic_ns() < at:
        time.sleep(0.001)
    us, next_ns = [], time.monotonic_ns()
    end = next_ns + int(seconds * 1e9)
    while next_ns < end:
        while time.monotonic_ns() < next_ns:
            pass
        began = time.monotonic_ns()
        request()
        us.append((time.monotonic_ns() - began) / 1e3)
        next_ns = max(next_ns + 2000000, time.monotonic_ns())
    us.sort()
    n = len(us)
    print(f"n={n} p50_us={us[n // 2]:.1f} p99_us={us[n * 99 // 100]:.1f} p999_us={us[n * 999 // 1000]:.1f}")


def hog(seconds):
    import torch
    a = torch.zeros(128 << 20, device="cuda")
    b = torch.zeros(128 << 20, device="cuda")
    marks = [torch.cuda.Event() for _ in range(20)]
    torch.cuda.synchronize()
    at = int(os.environ.get("GUARD_START_NS", "0"))
    while time.monotonic_ns() < at:
        time.sleep(0.001)
    n, begin = 0, time.monotonic()
    while time.monotonic() < begin + seconds:
        if n >= 20:
            marks[n % 20].synchronize()
        a.copy_(b)
        marks[n % 20].record()
        n += 1
    torch.cuda.synchronize()
    print(f"per_s={n / (time.monotonic() - begin):.1f}")


def torch_eager():
    import torch
    a = torch.randn(2048, 2048, device="cuda")
    s = torch.cuda.Stream()
    with torch.cuda.stream(s):
        b = (a @ a).sum()
    s.synchronize()
    assert b.isfinite().item()
    try:
        torch.empty(10 << 30, dtype=torch.uint8, device="cuda")
        return "10 GiB were to be had"
    except torch.OutOfMemoryError:
        return "ok"


def torch_graph():
    import torch
    a = torch.randn(1024, 1024, device="cuda")
    a @ a
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        b = a @ a + 1
    for _ in range(50):
        g.replay()
    torch.cuda.synchronize()
    assert torch.allclose(b, a @ a + 1)
    return "ok"


def torch_vmm():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
    return torch_eager()


def torch_async():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "backend:cudaMallocAsync"
    return torch_eager()


def torch_compile():
    import torch
    f = torch.compile(lambda x: torch.sin(x) * 2 + torch.cos(x))
    x = torch.randn(1 << 20, device="cuda")
    assert torch.allclose(f(x), torch.sin(x) * 2 + torch.cos(x), atol=1e-5)
    return "ok"


def triton_kernel():
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def add(x, y, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)
    x = torch.zeros(100000, device="cuda")
    y = torch.zeros_like(x)
    add[(100000 // 1024 + 1,)](x, y, 100000, BLOCK=1024)
    assert (y == 1).all().item()
    return "ok"


def torch_processes():
    import torch.multiprocessing as mp
    ctx = mp.get_context("spawn")
    q = ctx.Queue()
    all_here = ctx.Barrier(4)
    ps = [ctx.Process(target=_take, args=(q, all_here)) for _ in range(4)]
    for p in ps:
        p.start()
    got = [q.get(timeout=100) for _ in ps]
    for p in ps:
        p.join()
    # Four contexts of 527 MiB leave room for two.
    return "ok" if sum(got) == 2 else f"{sum(got)} of 4 got 2 GiB of 8 GiB"


def _take(q, all_here):
    """Its context first, which counts; when all have theirs, memory."""
    import torch
    try:
        torch.zeros(1, device="cuda")
        all_here.wait(80)
        a = torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()
        q.put(1)
        time.sleep(6)
        del a
    except Exception as e:  # pylint: disable=broad-except
        print(type(e).__name__, str(e)[:200], file=sys.stderr)
        q.put(0)
        time.sleep(6)


def jax_matmul():
    import jax
    import jax.numpy as jnp
    a = jnp.ones((2048, 2048))
    assert float(jax.jit(lambda x: (x @ x).sum())(a)) > 0
    return "ok"


def cupy_matmul():
    import cupy
    a = cupy.ones((2048, 2048))
    assert float((a @ a).sum()) > 0
    return "ok"


def nvidia_smi():
    import subprocess
    out = subprocess.run(["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"],
                         capture_output=True, text=True, check=False).stdout.split()
    return "ok" if out and int(out[0]) == 8192 else f"says {out}"


def seen(name):
    try:
        result = globals()[name]()
    except ImportError as e:
        result = f"not here: {e}"
    except Exception as e:  # pylint: disable=broad-except
        result = f"{type(e).__name__}: {str(e)[:160]}"
    print(f"seen={name} result={result.replace(' ', '_')}")


if __name__ == "__main__":
    if sys.argv[1] == "seen":
        seen(sys.argv[2])
    else:
        globals()[sys.argv[1]](float(sys.argv[2]))
