#!/usr/bin/env python3
"""Many tasks on one node that do nothing: what they cost its agent and their supervisors, and whether the node's statuses come on
time while they start, run and end.

    tasks_idle.py STINTD STINT_AGENT [TASKS [SECONDS]]       300 tasks, looked at for 30 s, unless given

A stintd, and an agent with simulated GPUs and real containers. A status that was answered moves the end of the node's lease, which is
watched. It ends with status 1 where the tasks cost more than 3 % of a core or a status is later than the bound below. As root.
"""

import os
import subprocess
import sys
import threading
import time

import agents_real
from agents_real import Bench, Cpu, rss_mib, until, wait_nodes

MOST_SHARE = 0.03
MOST_GAP = 8.0  # an agent says its status every 5 s at least; somebody else may have the processor
BATCH = 100
LOOK_S = 0.1


def say(text, *args):
    print("tasks_idle: " + (text % args if args else text), flush=True)


class Statuses(threading.Thread):
    """When stintd answered a status of the node: its agent then writes the new end of its lease, which is looked at often."""

    def __init__(self, bench):
        super().__init__(daemon=True)
        self.lease, self.times, self.over = bench.path("real", "lease"), [], False
        self.start()

    def run(self):
        last = None
        while not self.over:
            try:
                with open(self.lease) as f:
                    now = f.read().split()[1]
            except (OSError, IndexError):
                now = last
            if now != last:
                self.times.append(time.monotonic())
            last = now
            time.sleep(LOOK_S)

    def gap(self, since):
        """The longest time without one until now, and how many there were."""
        times = [since] + [t for t in self.times if t > since] + [time.monotonic()]
        return max(b - a for a, b in zip(times, times[1:])), len(times) - 2


def measure(bench, n, seconds):
    bench.serve()
    bench.start_agent("real", "real", "--exec", "oci", "--cpu", "64", "--ram", "256Gi")
    wait_nodes(bench, [("real", 1)])
    statuses = Statuses(bench)
    ours, cpu = f"stint-bench-{os.getpid()}", Cpu()
    cpu.join(ours, bench.started["real"].pid)
    began, jobs = time.monotonic(), []
    while len(jobs) < n:
        doc = {"name": "idle", "account": "lab", "user": "ann", "gpus": 0, "cpu": 0.01, "ram": "16Mi", "pool": "real",
               "limit": "30m", "command": ["sleep", "3600"]}
        jobs += [j["id"] for j in bench.owner.make("/v1/jobs/batch", {"jobs": [doc] * min(BATCH, n - len(jobs))})["jobs"]]
    until("all tasks' start", 300, lambda: bench.said("real").count("event=started") >= n, 0.2)
    gap, sent = statuses.gap(began)
    say("%d tasks started in %.1f s: %d statuses, at most %.1f s between two", n, time.monotonic() - began, sent, gap)
    worst = gap
    time.sleep(10)  # what starts leave to be done
    with open(bench.path("real", "run", "group")) as f:
        inside = f.read().strip()
    before, inner, at = cpu.ms(ours), cpu.ms(inside), time.monotonic()
    time.sleep(seconds)
    span = time.monotonic() - at
    share, within = (cpu.ms(ours) - before) / 1e3 / span, (cpu.ms(inside) - inner) / 1e3 / span
    gap, sent = statuses.gap(at)
    say("%d idle tasks, %.0f s: the agent and their supervisors use %.2f %% of a core, the tasks themselves %.2f %%; the agent has "
        "%.1f MiB; %d statuses, at most %.1f s between two", n, span, share * 100, within * 100, rss_mib(bench.started["real"].pid),
        sent, gap)
    worst, at = max(worst, gap), time.monotonic()
    for job in jobs:
        bench.owner.call("DELETE", f"/v1/jobs/{job}")
    until("their end", 300, lambda: not os.listdir(bench.path("real", "run", "tasks")), 0.2)
    gap, sent = statuses.gap(at)
    say("%d tasks cancelled and gone in %.1f s: %d statuses, at most %.1f s between two", n, time.monotonic() - at, sent, gap)
    statuses.over = True
    cpu.leave(ours)
    return share <= MOST_SHARE and max(worst, gap) <= MOST_GAP


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 300
    seconds = int(sys.argv[4]) if len(sys.argv) > 4 else 30
    bench = Bench(sys.argv[1], sys.argv[2], 4000)
    try:
        doctor = subprocess.run([bench.agent, "doctor", "--data", bench.path("doctor"), "--sim", "h100x8"],
                                capture_output=True, text=True, check=False)
        if doctor.returncode != 0:
            say("containers cannot be run here: nothing is measured")
            return 0
        well = measure(bench, n, seconds)
    finally:
        bench.stop()
    if not well:
        say("more than %.0f %% of a core, or a status later than %.0f s", MOST_SHARE * 100, MOST_GAP)
    return 0 if well else 1


agents_real.say = say
sys.exit(main())
