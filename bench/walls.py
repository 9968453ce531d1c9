#!/usr/bin/env python3
"""What the walls between tenants cost: a submit to the first instruction, submits per second, an agent's CPU and memory.

    walls.py STINTD STINT_AGENT [BEFORE]      BEFORE: the sources of an earlier version, with its programs in BEFORE/build;
                                              both are measured by turns, each three times, and the best of three is shown

Rows are "walls: WHAT: FIGURE"; with BEFORE each has both. Containers are measured where they can be run, as root. An
earlier version is measured by its own bench/agents_real.py: what an agent and a job are told differs between versions.
"""

import os
import re
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "service"))
from harness import Client, Stintd, token  # noqa: E402

SECONDS = 5
TENANTS = 4
JOB = {"name": "s", "gpus": 0, "cpu": 0.01, "ram": "1Mi", "limit": "10m", "command": ["true"], "env": {"A": "b"},
       "sim": {"run": "1s"}}


def submits(program):
    """Submits per second of four tenants on connections of their own, and the 99th percentile of one."""
    stintd = Stintd(program)
    try:
        own, times, over = stintd.owner, [], time.monotonic() + SECONDS
        own.make("/v1/types", {"name": "h100"})
        if own.post("/v1/pools", {"name": "main", "allow": ["host-image"]}).status != 201:
            own.make("/v1/pools", {"name": "main"})  # of a version that has no permissions
        own.make("/v1/nodes", {"name": "n0", "pool": "main", "gpu": "h100", "gpus": 8})

        def tenant(secret):
            client = Client(stintd.port, secret)
            while time.monotonic() < over:
                begun = time.monotonic()
                answer = client.post("/v1/jobs", JOB)
                times.append(time.monotonic() - begun)
                if answer.status != 201:
                    sys.exit(f"walls: a submit was refused: {answer.text[:300]}")

        threads = []
        for i in range(TENANTS):
            own.make("/v1/accounts", {"name": f"t{i}"})
            threads.append(threading.Thread(target=tenant, args=(token(own, f"t{i}", "u", "member")["token"],)))
        begun = time.monotonic()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        took, times = time.monotonic() - begun, sorted(times)
        return {"submits per second, four tenants": f"{len(times) / took:.0f} /s",
                "a submit meanwhile, p99": f"{1e3 * times[len(times) * 99 // 100]:.1f} ms",
                "stintd, resident": f"{stintd.rss_kib()[0] / 1024:.0f} MiB"}
    finally:
        stintd.stop()


def agents(source, stintd, agent):
    """As bench/agents_real.py has it, without its fleet."""
    done = subprocess.run([sys.executable, os.path.join(source, "bench", "agents_real.py"), stintd, agent, "0", "10"],
                          capture_output=True, text=True, timeout=600, env={**os.environ, "STINT_SOURCE": source})
    found = {}
    for line in done.stdout.splitlines():
        what, colon, figure = line.removeprefix("agents_real: ").partition(": ")
        if colon and re.search(r"submit|start|agent", what):
            found[what] = figure
    return found


def measure(source, stintd, agent):
    return {**submits(stintd), **agents(source, stintd, agent)}


def better(a, b):
    """Of two figures of a row the better one by its first number: more per second, less of everything else."""
    x, y = (float(re.search(r"[0-9.]+", f).group(0)) for f in (a, b))
    return a if (x >= y if a.endswith("/s") else x <= y) else b


def best(rounds):
    found = {}
    for figures in rounds:
        for what, figure in figures.items():
            found[what] = better(found[what], figure) if what in found and re.search(r"[0-9]", figure) else figure
    return found


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    here = os.path.join(HERE, "..")
    if len(sys.argv) == 3:
        for what, figure in measure(here, *sys.argv[1:]).items():
            print(f"walls: {what}: {figure}", flush=True)
        return
    source, now, before = sys.argv[3], [], []
    for _ in range(3):
        now.append(measure(here, *sys.argv[1:3]))
        before.append(measure(source, *(os.path.join(source, "build", p) for p in ("stintd", "stint-agent"))))
    now, before = best(now), best(before)
    for what in {**now, **before}:
        print(f"walls: {what}: {now.get(what, 'not there')} (before: {before.get(what, 'not there')})", flush=True)


if __name__ == "__main__":
    main()
