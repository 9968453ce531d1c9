"""The guard and the watch on neighbours, without an agent: tests/gpu/guard.py, its figures against what is wanted."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAMS = ("libstint-guard.so", "guard_work", "guard_pages", "guard_loop")


def find(folder, name):
    """In the folder of programs, or where a build has it."""
    for path in (os.path.join(folder, name), os.path.join(folder, "tests", "guard", name)):
        if os.path.exists(path):
            return path
    return None


def measure(test, parts, seconds):
    """{part: rows} of guard.py; None where it cannot be run."""
    if test.sim:
        test.report.skip("the guard on a GPU", "GPUs are simulated; tests/guard has it on a model of one")
        return None
    found = {name: find(test.machine.programs, name) for name in PROGRAMS}
    if None in found.values():
        test.report.skip("the guard on a GPU", f"not there: {', '.join(n for n, p in found.items() if not p)}")
        return None
    out = tempfile.mkdtemp(prefix="guard-", dir=test.machine.logs)
    for path in found.values():
        shutil.copy(path, out)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guard.py")
    with open(test.machine.log("guard.log"), "a", encoding="utf-8") as log:
        subprocess.run([sys.executable, "-u", script, "--bin", out, "--out", out, "--seconds", str(seconds), "--parts", parts],
                       stdout=log, stderr=log, check=False, timeout=seconds + 60)
    with open(os.path.join(out, "guard.json"), encoding="utf-8") as f:
        return json.load(f)["parts"]


def guard(test):
    """Memory to the MiB, shares, what it costs, a victim's latency at level time."""
    parts = measure(test, "vram,accuracy,overhead,latency", 330) or {}
    report = test.report
    for row in parts.get("vram", []):
        if "edge_mib" in row:
            report.check(f"{row['grant_mib']} MiB granted", -1 <= row["edge_mib"] <= 0, f"{row['edge_mib']} MiB from it", "-1 to 0")
    for row in parts.get("accuracy", []):
        if "split" in row:
            report.check(f"shares {row['split']}", row["worst_off_2s"] <= 3 and row["worst_off_200ms"] <= 10,
                         f"off by {row['worst_off_2s']} over 2 s, {row['worst_off_200ms']} over 200 ms", "3 and 10 points")
        else:
            report.check(f"a cap of {row['cap_alone']} %", abs(row["got_percent"] - row["cap_alone"]) <= 3, row["got_percent"], "3 points")
    for name, row in parts.get("overhead", {}).items():
        report.check(f"alone, {name}", row["overhead_percent"] < (3 if name == "5us" else 1), f"{row['overhead_percent']} % slower", "3 and 1 %")
    alone = {r["period_us"]: r["p99"] for r in parts.get("latency", []) if r["how"] == "alone"}
    for row in parts.get("latency", []):
        if row["how"] == "guard":
            bound = alone[row["period_us"]] + 160 + int(row["hog"].lstrip("copyfma"))
            report.check(f"a request every {row['period_us']} us beside {row['hog']}", row["p99"] <= bound and row["hog_of_alone"] >= 0.6,
                         f"p99 {row['p99']} us, hog {row['hog_of_alone']}", f"{bound:.0f} us, 0.6")


def around(test):
    """A program that takes the driver's functions past the linker: it is ended, and who shares the GPU with it is not."""
    cluster, report = test.cluster, test.report
    program = find(test.machine.programs, "guard_work")
    if test.sim or not program:
        report.skip("around the guard", "GPUs are simulated" if test.sim else "no guard_work here")
        return
    shutil.copy(program, test.machine.place)
    share = {"level": "time", "share": 0.3, "vram": "8Gi"}
    work = [os.path.join(test.machine.place, "guard_work"), "hog", "60", "fma", "200"]
    honest = cluster.submit("honest", work, account="lab-a", **share)
    sly = cluster.submit("sly", work, account="lab-b", **{**share, "env": {**cluster.env, "GUARD_AROUND": "1"}})
    began = time.time()
    row, text = cluster.finish(sly, 45)
    report.check("a program that goes around the guard", row["state"] == "failed" and "without the limits" in (row.get("reason") or ""),
                 f"{row['state']} after {time.time() - began:.1f} s: {row.get('reason') or text[-200:]}", "ended with the reason")
    report.check("the honest one beside it", cluster.state(honest) == "running", cluster.state(honest), "running")


def neighbour(test):
    """A hog comes to a service: it is found, and the service is as before."""
    for row in (measure(test, "neighbour", 300) or {}).get("neighbour", []):
        test.report.check(f"level {('time', 'mps')[row['level']]}, {row['hog']}",
                          row["cured_ms"] is not None and row["cured_ms"] < 10000,
                          f"p99 at {row['worst_percent']} %, confirmed after {row['confirmed_ms']} ms, cured after {row['cured_ms']} ms by "
                          f"{', '.join(row['action']) or 'nothing'}, then {row['after_percent']} %", "within 10 s")
