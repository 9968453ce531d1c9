#!/usr/bin/env python3
"""What the walls between tenants cost: a submit to the first instruction, submits per second, an agent's CPU and memory.

    walls.py STINTD STINT_AGENT [BEFORE]      BEFORE: a build folder of an earlier version, measured in turn with this one

Rows are "walls: WHAT: FIGURE"; with BEFORE each has both. Containers are measured where they can be run, as root.
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
        own.make("/v1/pools", {"name": "main", "allow": ["host-image"]})
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
        return {"submits per second, four tenants": f"{len(times) / took:.0f}",
                "a submit meanwhile, p99": f"{1e3 * times[len(times) * 99 // 100]:.1f} ms",
                "stintd, resident": f"{stintd.rss_kib()[0] / 1024:.0f} MiB"}
    finally:
        stintd.stop()


def agents(stintd, agent):
    """As bench/agents_real.py has it, without its fleet."""
    done = subprocess.run([sys.executable, os.path.join(HERE, "agents_real.py"), stintd, agent, "0", "10"],
                          capture_output=True, text=True, timeout=600)
    found = {}
    for line in done.stdout.splitlines():
        what, colon, figure = line.removeprefix("agents_real: ").partition(": ")
        if colon and re.search(r"submit|start|agent", what):
            found[what] = figure
    return found


def measure(stintd, agent):
    return {**submits(stintd), **agents(stintd, agent)}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    now = measure(sys.argv[1], sys.argv[2])
    before = measure(*(os.path.join(sys.argv[3], p) for p in ("stintd", "stint-agent"))) if len(sys.argv) > 3 else {}
    for what, figure in now.items():
        print(f"walls: {what}: {figure}" + (f" (before: {before.get(what, 'not there')})" if before else ""), flush=True)


if __name__ == "__main__":
    main()
