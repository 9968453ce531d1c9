#!/usr/bin/env python3
"""The console at the size it is built for: frames of the map and of the table of jobs while things change.

    console.py STINTD [NODES [JOBS]]      6,250 nodes of 8 GPUs and 44,000 jobs, of which more than 30,000 wait

A real stintd, real logins, a real browser (console.mjs). Needs node and chromium; the browser's tools are fetched by npm as for
the test of the console. Times are of the machine as it is: rows begin with the frames of an empty page on it.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "service"))
import test_console  # noqa: E402
from harness import Client, Stintd, check, main  # noqa: E402

TEAMS = 100
BATCH = 1000
MAKERS = 8


def many(stintd, n, ask):
    """n requests over a few connections."""
    def some(first):
        client = Client(stintd.port, stintd.owner_token)
        for i in range(first, n, MAKERS):
            ask(client, i)
        client.close()

    threads = [threading.Thread(target=some, args=(first,)) for first in range(MAKERS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def job(i):
    """One in eight is a gang, the others take 1 to 8 GPUs."""
    return {"name": f"train-{i}", "account": f"team{i * 7 % TEAMS}", "user": f"u{i % 11}", "gpus": (1, 2, 4, 8, 8, 4, 2, 8)[i % 8],
            "tasks": 2 << (i // 8 % 4) if i % 8 == 7 else 1, "limit": f"{4 + i % 40}h", "sim": {"run": f"{4 + i % 40}h"}}


def make_world(stintd, nodes, jobs):
    own = stintd.owner
    own.make("/v1/types", {"name": "h100"})
    own.make("/v1/pools", {"name": "main", "allow": ["host-image"]})
    many(stintd, nodes, lambda client, i: client.make("/v1/nodes", {"name": f"n{i:04d}", "gpu": "h100", "rack": f"r{i // 16}",
                                                                    "block": f"b{i // 128}"}))
    for i in range(TEAMS):
        own.make("/v1/accounts", {"name": f"team{i}", "guarantee": {"gpu": nodes * 8 * 0.64 // TEAMS}})
    for first in range(0, jobs, BATCH):
        own.make("/v1/jobs/batch", {"jobs": [job(i) for i in range(first, first + BATCH)]})


def past(stintd, at):
    """How long a past moment takes: seconds, and how often it was asked for."""
    begun, times = time.monotonic(), 0
    while True:
        times += 1
        answer = stintd.owner.get("/v1/history?at=" + at)
        if answer.status == 200:
            return time.monotonic() - begun, times, len(answer.body)
        check(answer.status == 503, "history: %s", answer.text)
        time.sleep(0.1)


def moment(ago):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago))


def history(stintd):
    """From the first row of the log, and then about it."""
    first, now = past(stintd, moment(2)), moment(4)
    for what, at in (("a moment, from the first row of the log", None), ("the same again", now), ("two seconds later", moment(2)), ("ten seconds earlier", moment(14))):
        took, times, size = past(stintd, at) if at else first
        print(f"history, {what}: {took:.2f} s, asked {times} times, {size / 1000:.0f} kB", flush=True)


class Churn(threading.Thread):
    """Jobs that come and go, so that pages have something to follow."""

    def __init__(self, stintd):
        super().__init__(daemon=True)
        self.client, self.over, self.n = Client(stintd.port, stintd.owner_token), threading.Event(), 0
        self.start()

    def run(self):
        while not self.over.wait(0.1):
            made = self.client.post("/v1/jobs", {"name": "comes-and-goes", "account": "team0", "user": "u0", "gpus": 0, "cpu": 0.1,
                                                 "limit": "1h", "sim": {"run": "1h"}})
            if made.status == 201:
                self.client.call("DELETE", "/v1/jobs/" + made.json["id"])
                self.n += 1


def run(program):
    nodes, jobs = (int(text) for text in (sys.argv[2:] + ["6250", "44000"][len(sys.argv) - 2:])[:2])
    missing = [tool for tool in ("npm", "node", "chromium") if not shutil.which(tool)]
    if missing:
        print("skipped:", ", ".join(missing), "not there")
        sys.exit(77)
    folder = test_console.browser_tools()
    stintd = Stintd(program)
    churn = None
    try:
        begun = time.monotonic()
        make_world(stintd, nodes, jobs)
        waiting = stintd.owner.get("/v1/counts").json["states"]["pending"]["jobs"]
        print(f"{nodes * 8} GPUs, {jobs} jobs, {waiting} wait; made in {time.monotonic() - begun:.0f} s; load {os.getloadavg()[0]:.1f}", flush=True)
        churn = Churn(stintd)
        env = dict(os.environ, STINT_NPM=folder, CHROMIUM=shutil.which("chromium"))
        done = subprocess.run(["node", os.path.join(HERE, "console.mjs"), f"http://127.0.0.1:{stintd.port}"], env=env, timeout=1200,
                              input=json.dumps({"tokens": {"owner": stintd.owner_token}, "waiting": waiting}), text=True)
        check(done.returncode == 0, "the browser's part failed")
        history(stintd)
        print(f"load {os.getloadavg()[0]:.1f} at the end; {churn.n} jobs came and went")
    finally:
        if churn:
            churn.over.set()
            churn.join(30)
        stintd.stop()


if __name__ == "__main__":
    main(run)
