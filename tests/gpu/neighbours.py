"""A job whose latency matters beside one that takes all the memory bandwidth it gets."""
import re

from cluster import Trouble

# Level: what was measured by hand (p50, p99 of the copy; p99 of the compute-bound), in µs.
REFERENCE = {"alone": (75, 90, 559), "time": (879, 898, 1357), "mps": (192, 217, 703), "3g alone": (134, 146, None),
             "3g": (139, 154, 580)}
FIELDS = {"time": {"level": "time", "share": 1, "vram": "40Gi"}, "mps": {"level": "mps", "share": 0.5, "vram": "40Gi"},
          "3g": {"level": "mig", "profile": "3g"}}


def measure(test, level, crash=False):
    """{kind: (p50, p99)} of a victim at that level, beside a hog unless it is alone."""
    cluster = test.cluster
    more = FIELDS.get(level.split()[0], {})
    hog = None
    if "alone" not in level:
        hog = cluster.submit("hog", test.work("load", "copy", 60, 8000), account="lab-b", **more)
        cluster.writes(hog, r"^\d+$")
    victim = cluster.submit("victim", test.work("victim", 0.5 if test.sim else 2, "bandwidth", "compute"), **more)
    if crash:
        cluster.writes(victim, "^bandwidth")
        test.crash("under victim and hog")
    row, text = cluster.finish(victim, 40)
    if hog:
        steady = cluster.state(hog) == "running"
        cluster.cancel(hog)
        if not steady:
            raise Trouble(f"the hog did not run all the time: {cluster.job(hog).get('reason')}")
    if row["state"] != "done":
        if test.refused(f"level {level}", row):
            return None
        raise Trouble(f"the victim is {row['state']}: {row.get('reason')} {text[-200:]}")
    return {kind: (float(p50), float(p99)) for kind, p50, p99 in
            re.findall(r"^(\w+) n=\d+ p50_us=(\S+) p99_us=(\S+)", text, re.M)}


def show(report, level, seen):
    p50, p99, compute = REFERENCE[level]
    what = {"alone": "alone", "3g alone": "alone in a 3g"}.get(level, f"beside a hog, {level}")
    report.figure(f"256 MB copy, {what}", "p50 {:.0f} µs, p99 {:.0f} µs".format(*seen["bandwidth"]),
                  f"p50 {p50} µs, p99 {p99} µs")
    report.figure(f"compute-bound, {what}", "p50 {:.0f} µs, p99 {:.0f} µs".format(*seen["compute"]),
                  f"p99 {compute} µs" if compute else "")


def run(test):
    report = test.report
    seen = {}
    for level in REFERENCE:
        if test.leave_settings and level.startswith(("3g", "mps")):
            report.skip(f"level {level}", "the settings of the GPU are to be left alone")
            continue
        try:
            seen[level] = measure(test, level, crash=level == "3g")
        except Trouble as e:
            row = next((test.cluster.job(j) for j in test.cluster.submitted[::-1]), None)
            if not (row and test.refused(f"level {level}", row)):
                report.check(f"level {level}", False, e)
            seen[level] = None
        if seen[level]:
            show(report, level, seen[level])
        test.cluster.cancel_all()
    bounds(report, seen)


def bounds(report, seen):
    """How much slower beside a hog, at the levels that promise something."""
    for level, alone, most, reference in (("3g", "3g alone", 1.25, "1.05"), ("mps", "alone", 4, "2.4")):
        if seen.get(level) and seen.get(alone):
            times = seen[level]["bandwidth"][1] / seen[alone]["bandwidth"][1]
            report.check(f"p99 of the copy, {level} beside a hog over {alone}", times <= most, f"{times:.2f} times",
                         f"{reference}; at most {most}")
