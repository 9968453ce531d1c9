"""CPUs of a job: it sees those it was given, and a framework that starts a thread for each is not throttled."""
import glob
import os
import sys

from report import pairs

GIVEN = 4
WORK = """import os, time
print(f"cpus={len(os.sched_getaffinity(0))}", flush=True)
try:
    import torch
    print(f"threads={torch.get_num_threads()}", flush=True)
    a = torch.randn(1500, 1500)
    end = time.time() + 8
    while time.time() < end:
        a @ a
except ImportError:
    print("threads=no torch here", flush=True)
print("worked=1", flush=True)
time.sleep(5)"""


def throttled(job):
    """(times, ms) its group was held back by its quota, from the host; None where no such file is."""
    for file in glob.glob(f"/sys/fs/cgroup/**/{job}.1.0/cpu.stat", recursive=True):
        rows = dict(line.split() for line in open(file))
        if "nr_throttled" in rows:
            ms = int(rows["throttled_usec"]) / 1e3 if "throttled_usec" in rows else int(rows["throttled_time"]) / 1e6
            return int(rows["nr_throttled"]), ms
    return None


def run(test):
    cluster, report = test.cluster, test.report
    given = min(GIVEN, os.cpu_count())
    job = cluster.submit("cpus", ["python3" if test.sim else sys.executable, "-c", WORK], cpu=given, ram="4Gi", limit="2m")
    cluster.writes(job, r"^worked=1$", 60)
    held = throttled(job)
    seen = pairs(cluster.logs(job))
    cluster.cancel(job)
    report.check(f"a job with {given} CPUs sees {given}", seen.get("cpus") == str(given),
                 f"{seen.get('cpus')} of {os.cpu_count()}", str(given))
    if seen.get("threads", "").isdigit():
        report.check("torch starts a thread for each", int(seen["threads"]) <= given, f"{seen['threads']} threads",
                     f"{given}; 16 before CPUs were pinned")
    if held:
        report.figure("throttled in 8 s of matrix products on CPUs", f"{held[0]} times, {held[1]:.0f} ms",
                      "1,800 ms of 13 s before")
