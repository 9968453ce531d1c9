#!/usr/bin/env python3
"""tests/gpu/guard.py --bin DIR --out DIR: the guard on a real GPU, without agent and stintd.

Runs guard_work with libstint-guard.so before it and the agent's files made by guard_pages, beside the same without the
guard: VRAM edge, shares for 2, 4 and 8 tenants, overhead alone, a victim's latency. Needs the driver and python3, no
CUDA compiler. Nothing of the card's settings is changed; MPS runs in the default compute mode, in folders of its own.
Writes OUT/guard.json and OUT/guard.md. --fake LIBDIR: on the device model of tests/guard, to try the script itself.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20


def pairs(text):
    """name=value, as a dictionary of numbers where they are numbers."""
    found = {}
    for word in text.split():
        name, eq, value = word.partition("=")
        if eq:
            try:
                found[name] = float(value)
            except ValueError:
                found[name] = value
    return found


class Bench:
    """One card, and tasks on it."""

    def __init__(self, args):
        self.args = args
        self.root = tempfile.mkdtemp(prefix="guard-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.mps = None
        self.level = 0
        self.began = time.time()
        self.result = {"parts": {}, "errors": []}
        self.env = dict(os.environ)
        if args.fake:
            self.env["LD_LIBRARY_PATH"] = args.fake
            self.env["FAKE_DEVICE"] = self.root + "/model"
            self.pages("device", 143360, 100, 500)

    def rows(self, name):
        """The rows of a part, written down as they come."""
        bench = self

        class Rows(list):
            """Each row is in the file when it is there."""

            def append(self, row):
                super().append(row)
                bench.result["parts"][name] = list(self)
                bench.save()
                print(name, json.dumps(row), flush=True)
        return Rows()

    def save(self):
        with open(os.path.join(self.args.out, "guard.json"), "w", encoding="utf-8") as f:
            json.dump(self.result, f, indent=1)

    def left(self):
        return self.args.seconds - (time.time() - self.began)

    def pages(self, *words):
        done = subprocess.run([self.args.bin + "/guard_pages", self.root, *map(str, words)],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"guard_pages {words}: {done.stderr}")
        return pairs(done.stdout)

    def clear(self):
        for k in range(32):
            if os.path.isdir(f"{self.root}/task.{k}"):
                self.pages("gone", k)

    def start(self, k, guard, words, at_ns=0):
        env = dict(self.env, FAKE_TASK=str(k))
        if self.mps:
            env["CUDA_MPS_PIPE_DIRECTORY"] = self.mps
        if at_ns:
            env["GUARD_START_NS"] = str(at_ns)
        if guard:
            env["STINT_GUARD_DIR"] = f"{self.root}/task.{k}"
            env["LD_PRELOAD"] = self.args.bin + "/libstint-guard.so"
        set_words = [w for w in map(str, words) if w.startswith(("CUDA_", "GUARD_"))]
        env.update(w.split("=", 1) for w in set_words)
        words = [w for w in map(str, words) if w not in set_words]
        program = [self.args.bin + "/guard_work"]
        if words[0] == "program":
            program, words = [words[1]], words[2:]
        elif words[0] == "torch":
            program = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "guard_torch.py")]
            words = words[1:]
        return subprocess.Popen([*program, *words], env=env, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, process, seconds=100):
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.result["errors"].append(f"{process.args[1:]}: took too long")
        if process.returncode:
            self.result["errors"].append(f"{process.args[1:]}: {process.returncode} {out[-200:]} {err[-300:]}")
        return pairs(out)

    def one(self, words, guard=False, k=0):
        return self.end(self.start(k, guard, [str(w) for w in words]))

    def line(self, seconds=3.0):
        return time.monotonic_ns() + int((1.0 if self.args.fake else seconds) * 1e9)

    def used_mib(self):
        if self.args.fake:
            return 0
        done = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, check=False)
        return int(done.stdout.split()[0]) if done.returncode == 0 and done.stdout.split() else -1


def part_vram(b):
    """What a context takes, and how near to the grant a program gets."""
    before = b.used_mib()
    p = b.start(0, False, ["hold", "256"])
    p.stdout.readline()
    with_context = b.used_mib()
    b.end(p)
    context = max(0, with_context - before - 256)
    rows = []
    for vram in (4096, 20480):
        b.pages("task", 0, f"vram={vram}", f"context={context}")
        base = b.used_mib()
        p = b.start(0, True, ["vram", "wait"])
        text = "".join(p.stdout.readline() for _ in range(3))
        seen = b.used_mib()
        got = pairs(text.splitlines()[1])
        told = pairs(text.splitlines()[0])
        b.end(p)
        rows.append({"grant_mib": vram, "context_mib": context, "got_mib": got.get("got_mib"),
                     "edge_mib": got.get("got_mib", 0) + context - vram, "told_total_mib": told.get("total_mib"),
                     "device_sees_mib": seen - base})
    # Two processes of one task: together no more than the grant.
    b.pages("task", 0, "vram=4096", f"context={context}")
    first, second = b.start(0, True, ["hold", "2000"]), None
    first.stdout.readline()
    second = b.one(["vram"], True)
    b.end(first)
    rows.append({"two_processes": 2000 + second.get("got_mib", 0) + 2 * context, "grant_mib": 4096})
    b.clear()
    return rows


def part_overhead(b):
    """Alone: launches a second without and with the guard, in turns."""
    rows = {}
    b.pages("task", 0, "share=1000")
    for name, words in (("5us", ["rate", 2, b.units["fma5"]]), ("graph_20x5us", ["rate", 2, b.units["fma5"], "graph"]),
                        ("200us", ["hog", 2, "fma", b.units["fma200"]])):
        plain, with_guard = [], []
        for _ in range(3):
            plain.append(b.one(words).get("per_s", 0))
            with_guard.append(b.one(words, True).get("per_s", 0))
        best, guarded = max(plain), max(with_guard)
        rows[name] = {"plain_per_s": plain, "guard_per_s": with_guard,
                      "overhead_percent": round(100 * (1 - guarded / best), 2) if best else None}
        rows[name]["gpu_ns"] = b.pages("show", 0).get("gpu_ns")
    b.clear()
    return rows


def shares(b, split, kernel, seconds=2.0, hard=False, ahead=20):
    """Tenants with these shares, the same kernels; what each got of the work, in all and by 200 ms."""
    b.clear()
    for k, share in enumerate(split):
        b.pages("task", k, f"share={share}", f"hard={int(hard)}")
    at = b.line(3.5 + 0.4 * len(split))
    ps = [b.start(k, True, ["hog", str(seconds), "fma", b.units[kernel], str(ahead)], at) for k in range(len(split))]
    outs = [b.end(p) for p in ps]
    windows = [[int(x) for x in str(o.get("windows", "")).split(",") if x.isdigit()] for o in outs]
    # What was done while all were there: what is in flight at the end is no part of it.
    done = [sum(w) / seconds for w in windows]
    total, whole = sum(done) or 1, sum(split)
    off = [100 * d / total - 100 * s / whole for d, s in zip(done, split)]
    worst = 0
    for i in range(1, min((len(w) for w in windows), default=0)):
        here = sum(w[i] for w in windows)
        if here:
            worst = max(worst, max(abs(100 * w[i] / here - 100 * s / whole) for w, s in zip(windows, split)))
    return {"split": split, "kernel": kernel, "got_percent": [round(100 * d / total, 2) for d in done],
            "worst_off_2s": round(max(map(abs, off)), 2), "worst_off_200ms": round(worst, 2),
            "of_alone": round(total / b.alone[kernel], 3) if b.alone.get(kernel) else None}


def part_accuracy(b):
    """Two tenants from 10 to 90 %, over the whole time and by 200 ms."""
    rows = b.rows("accuracy")
    for share in (100, 200, 300, 400, 500):
        if b.left() > 12:
            rows.append(shares(b, [share, 1000 - share], "fma200"))
    for share in (100, 300, 500, 700, 900):
        b.clear()
        b.pages("task", 0, "share=1000", f"cap={share}")
        got = b.one(["hog", 2, "fma", b.units["fma200"]], True).get("per_s", 0)
        rows.append({"cap_alone": share / 10, "got_percent": round(100 * got / b.alone["fma200"], 2)})
    b.clear()
    return rows


def part_shares(b):
    rows = b.rows("shares")
    for split in ([500, 500], [750, 250], [900, 100], [400, 300, 200, 100], [125] * 8, [300, 200, 100, 100, 100, 100, 50, 50]):
        if b.left() > 30:
            rows.append(shares(b, split, "fma200"))
    for kernel in ("fma5", "fma50", "fma1000", "fma10000", "fma50000"):
        if b.left() > 30:
            rows.append(shares(b, [700, 300], kernel, 4.0 if kernel == "fma50000" else 2.0,
                               ahead=2 if kernel in ("fma10000", "fma50000") else 20))
    # A hard share, alone on the card.
    b.clear()
    for share in (100, 300, 500, 900):
        b.pages("task", 0, f"share={share}", "hard=1")
        got = b.one(["hog", 2, "fma", b.units["fma200"]], True).get("per_s", 0)
        rows.append({"hard_alone": share / 10, "got_percent": round(100 * got / b.alone["fma200"], 2)})
    b.clear()
    return rows


def latency(b, period, hog, how, level, limits=()):
    """A victim beside a hog: (victim's figures, the hog's work a second). Of `how`: below (the hog's client priority), %N (its SMs),
    @N (so many us in flight), urgent (the victim's stream)."""
    b.clear()
    guard = "guard" in how
    limits = [*limits, *("bound=" + w[1:] for w in how.split() if w.startswith("@"))]
    urgent = ["GUARD_URGENT=1"] if "urgent" in how else []
    if guard:
        b.pages("task", 0, "share=500", "latency", f"level={level}", *limits)
    if guard and "alone" not in how:
        b.pages("task", 1, "share=500", f"level={level}", *limits)
    percent = ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50"] if how == "mps50" else []
    below = ["CUDA_MPS_CLIENT_PRIORITY=1"] if "below" in how else []
    below += ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=" + w[1:] for w in how.split() if w.startswith("%")]
    at = b.line()
    kind = "copy" if hog.startswith("copy") else "fma"
    h = b.start(1, guard, percent + below + ["hog", "3.4", kind, b.units[hog]], at - int(2e8)) if "alone" not in how else None
    v = b.start(0, guard, percent + urgent + ["victim", "3", str(period)], at)
    out = b.end(v)
    row = {"level": level, "period_us": period, "hog": hog, "how": how, "p50": out.get("p50_us"),
           "p99": out.get("p99_us"), "p999": out.get("p999_us"), "n": out.get("n")}
    if h:
        row["hog_of_alone"] = round(b.end(h).get("per_s", 0) / b.alone[hog], 3) if b.alone.get(hog) else None
    if guard and h:
        row.update({f"hog_{k}": v for k, v in b.pages("show", 1).items() if k in ("yields", "wait_ns", "long_batches", "turns")})
    return row


def ladder(b, level, hows, rows):
    """The victim alone, then beside each hog in each way; what is done is kept when time is up."""
    hows = b.args.hows.split(",") if b.args.hows else hows
    for period in map(int, b.args.periods.split(",")):
        for how in ("alone", "alone guard"):
            rows.append(latency(b, period, "copy80", how, level))
        for hog in ("copy80", "fma80", "fma500"):
            for how in hows:
                if b.left() > 12 and (period == 1000 or hog != "fma500"):
                    rows.append(latency(b, period, hog, how, level))
    return rows


def part_latency(b):
    return ladder(b, 0, ("plain", "guard"), b.rows("latency"))


def under_mps(b, work):
    """A daemon of its own, in the default compute mode."""
    control = shutil.which("nvidia-cuda-mps-control")
    if not control:
        return "no nvidia-cuda-mps-control here"
    folder = tempfile.mkdtemp(prefix="mps-")
    env = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=folder, CUDA_MPS_LOG_DIRECTORY=folder)
    subprocess.run([control, "-d"], env=env, check=False, timeout=20)
    b.mps, b.level = folder, 1
    try:
        return work(b)
    finally:
        b.mps, b.level = None, 0
        subprocess.run([control], input="quit\n", env=env, text=True, check=False, timeout=30)


def part_mps(b):
    """Latency at level mps: plain, the guard, with the hog's client priority below, with half of the SMs for it as well."""
    return under_mps(b, lambda b: ladder(b, 1, ("plain", "guard", "guard below", "guard below %50"), b.rows("mps")))


def part_torchmps(b):
    return under_mps(b, lambda b: requests(b, b.rows("torchmps"), ("alone", "plain", "guard", "guard below")))


def part_torch(b):
    """Training alone, and requests of about a millisecond beside a copying hog."""
    rows = b.rows("torch")
    b.clear()
    b.pages("task", 0, "share=1000")
    plain, guarded = [], []
    for _ in range(3):
        plain.append(b.one(["torch", "train", 3]).get("per_s", 0))
        guarded.append(b.one(["torch", "train", 3], True).get("per_s", 0))
    rows.append({"what": "train", "plain_per_s": plain, "guard_per_s": guarded,
                 "overhead_percent": round(100 * (1 - max(guarded) / max(plain)), 2) if max(plain) else None})
    return requests(b, rows, ("alone", "plain", "guard"))


def requests(b, rows, hows):
    """Requests of about a millisecond beside a copying hog."""
    alone = b.one(["torch", "hog", 2]).get("per_s", 0)
    for how in hows:
        if b.left() < 30:
            break
        b.clear()
        guard = "guard" in how
        if guard:
            b.pages("task", 0, "share=500", "latency", f"level={b.level}")
            b.pages("task", 1, "share=500", f"level={b.level}")
        below = ["CUDA_MPS_CLIENT_PRIORITY=1"] if "below" in how else []
        at = b.line(12)
        h = b.start(1, guard, below + ["torch", "hog", "4.5"], at - int(2e8)) if how != "alone" else None
        out = b.end(b.start(0, guard, ["torch", "infer", "4"], at))
        row = {"what": "infer", "level": b.level, "how": how, "p50": out.get("p50_us"), "p99": out.get("p99_us"), "p999": out.get("p999_us")}
        if h:
            row["hog_of_alone"] = round(b.end(h).get("per_s", 0) / alone, 3) if alone else None
        rows.append(row)
    b.clear()
    return rows


def part_frameworks(b):
    """One feature of one framework each, with a grant of 8 GiB."""
    rows = b.rows("frameworks")
    for name in ("jax_matmul", "cupy_matmul", "torch_processes", "nvidia_smi", "torch_eager", "torch_graph", "torch_vmm",
                 "torch_async", "triton_kernel", "torch_compile"):
        if b.left() < 20:
            break
        b.pages("task", 0, "vram=8192", "context=527")
        p = b.start(0, True, ["torch", "seen", name])
        out = b.end(p)
        count = b.pages("show", 0)
        rows.append({"feature": name, "result": out.get("result"), "launches": count.get("launches"),
                     "graphs": count.get("graph_launches"), "copies": count.get("copies"), "refused": count.get("refused_allocations")})
    b.clear()
    return rows


def part_features(b):
    """One feature of CUDA each, by the runtime linked in three ways (tests/gpu/features.cu, built with nvcc), with a grant of 2 GiB."""
    rows = b.rows("features")
    for way in ("static", "shared", "ptds"):
        program = os.path.join(b.args.bin, "guard_features_" + way)
        if not os.path.exists(program):
            rows.append({"way": way, "result": "not built"})
            continue
        for name in ("plain", "pitched", "cooperative", "streams", "threads", "pool", "array", "managed", "graph", "vmm", "ipc"):
            if b.left() < 10:
                break
            b.clear()
            b.pages("task", 0, "vram=2048", "context=527")
            out = b.end(b.start(0, True, ["program", program, name, "4096"]), 30)
            count = b.pages("show", 0)
            rows.append({"way": way, "feature": name, "result": out.get("result"), "beyond_refused": out.get("refused"),
                         "launches": count.get("launches"), "graphs": count.get("graph_launches")})
    b.clear()
    return rows


def watched(b, hog, level):
    """A service with a request every 2 ms, a hog that comes after a while, and the loop over both: what it finds and does."""
    b.clear()
    for k in (0, 1):
        b.pages("task", k, "share=500", f"level={level}", "latency=0")
    victim = b.start(0, True, ["victim", "34", "2000"])
    loop = subprocess.Popen([b.args.bin + "/guard_loop", b.root, "36"], stdout=subprocess.PIPE, text=True)
    began = time.time()
    time.sleep(14)
    kind = "copy" if hog.startswith("copy") else "fma"
    at = time.monotonic_ns() + int(3e9)
    came = (time.time() - began + 3) * 1000
    h = b.start(1, True, ["hog", "14", kind, b.units[hog]], at)
    out = b.end(victim)
    work = b.end(h).get("per_s", 0)
    lines = [pairs(line) for line in loop.communicate(timeout=60)[0].splitlines()]
    notes = [n for n in lines if "note" in n]
    ratios = [(n["at_ms"] - came, n["p99_percent"]) for n in lines if "note" not in n]
    first = {}
    for n in notes:
        first.setdefault(n["note"], n["at_ms"] - came)
    beside = [r for at_ms, r in ratios if at_ms > 0 and r > 0]
    after = [r for at_ms, r in ratios if 8000 < at_ms < 13500 and r > 0]
    return {"level": level, "hog": hog, "worst_percent": max(beside, default=None), "suspected_ms": first.get("suspected"),
            "confirmed_ms": first.get("confirmed"), "cured_ms": first.get("verified"),
            "action": [n["action"] for n in notes if n["note"] == "acted"], "after_percent": sorted(after)[len(after) // 2] if after else None,
            "victim_p50": out.get("p50_us"), "victim_p99": out.get("p99_us"), "hog_of_alone": round(work / b.alone[hog], 3),
            "notes": [f"{n['note']}@{n['at_ms'] - came:.0f}" for n in notes]}


def part_neighbour(b):
    """The watch on neighbours, end to end but for the agent, at both levels."""
    rows = b.rows("neighbour")

    def each(b):
        for hog in ("copy80", "fma80", "fma500"):
            if b.left() > 45:
                rows.append(watched(b, hog, b.level))
        return rows
    each(b)
    return under_mps(b, each) if not b.args.fake else rows


PARTS = {"vram": part_vram, "overhead": part_overhead, "shares": part_shares, "latency": part_latency, "mps": part_mps,
         "torch": part_torch, "torchmps": part_torchmps, "frameworks": part_frameworks, "accuracy": part_accuracy,
         "neighbour": part_neighbour, "features": part_features}
# The kernels each needs; those that are not here need none.
KERNELS = {"overhead": "fma5 fma200", "shares": "fma5 fma50 fma200 fma1000 fma10000 fma50000", "accuracy": "fma200",
           "latency": "copy80 fma80 fma500", "mps": "copy80 fma80 fma500",
           "neighbour": "copy80 fma80 fma500"}


def calibrate(b):
    """Work that takes so long, and how much of it a program does alone."""
    b.units, b.alone = {}, {}
    for name in sorted({k for part in b.args.parts.split(",") for k in KERNELS.get(part, "").split()}):
        kind = name.rstrip("0123456789")
        b.units[name] = "=%d" % b.one(["units", kind, name[len(kind):]]).get("units", 1024)
    for name in b.units:
        kind = name.rstrip("0123456789")
        b.alone[name] = b.one(["hog", 1, kind, b.units[name]]).get("per_s", 0)
    b.result["units"], b.result["alone_per_s"] = b.units, b.alone


def table(rows):
    """Markdown of a list of flat dictionaries."""
    names = []
    for row in rows:
        names += [n for n in row if n not in names]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for row in rows:
        lines.append("| " + " | ".join(str(row.get(n, "")) for n in names) + " |")
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--parts", default=",".join(PARTS))
    p.add_argument("--seconds", type=int, default=460)
    p.add_argument("--hows", help="ways of the parts latency and mps: plain, guard, ...")
    p.add_argument("--periods", default="1000,200,-200",
                   help="requests of the victim so many us apart; -N: a pause of N us behind each")
    p.add_argument("--fake")
    args = p.parse_args()
    args.bin = os.path.abspath(args.bin)
    b = Bench(args)
    try:
        calibrate(b)
        for name in args.parts.split(","):
            try:
                b.result["parts"][name] = PARTS[name](b)
            except Exception as e:  # pylint: disable=broad-except
                b.result["errors"].append(f"{name}: {type(e).__name__}: {e}")
            b.save()
    finally:
        shutil.rmtree(b.root, ignore_errors=True)
    with open(os.path.join(args.out, "guard.md"), "w", encoding="utf-8") as f:
        for name, rows in b.result["parts"].items():
            if isinstance(rows, dict):
                rows = [dict(what=k, **v) for k, v in rows.items()]
            f.write(f"## {name}\n\n{table(rows) if isinstance(rows, list) else rows}\n\n")
        f.write("errors: " + json.dumps(b.result["errors"]) + "\n")
    print(open(os.path.join(args.out, "guard.md"), encoding="utf-8").read()[-9000:])
    return 1 if b.result["errors"] else 0


if __name__ == "__main__":
    sys.exit(main())
