#!/usr/bin/env python3
"""What a job used of what it asked for, and its cost so far: while it runs and when it is over, for whoever sees the job and nobody else."""

import json
import os
import secrets
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from harness import Client, Stintd, check, main, token  # noqa: E402
from node import Node  # noqa: E402

GPUS = 16
GPU = {"type": "h100", "count": GPUS, "vram": "80Gi", "uuids": [f"GPU-n-{i}" for i in range(GPUS)]}


class World:
    def __init__(self, program):
        self.stintd = Stintd(program, more="estimate_workspace: 50\nestimate_runtime: 512\n")
        owner = self.owner = self.stintd.owner
        owner.make("/v1/types", {"name": "h100", "vram": "80Gi"})
        owner.make("/v1/pools", {"name": "main", "allow": ["host-image"]})
        owner.make("/v1/prices", {"prices": "p1", "gpu": {"*": {"reserved": "3600", "burst": "3600"}}})
        self.tokens = {}
        for account in ("here", "there"):
            owner.make("/v1/accounts", {"name": account, "guarantee": {"gpu": 0}})
            for role in ("member", "viewer"):
                self.tokens[account, role] = token(owner, account, role + account, role)["token"]
        self.who = {key: Client(self.stintd.port, text) for key, text in self.tokens.items()}
        self.node = Node(self.stintd.port, "n0", gpu=GPU)
        join = owner.make("/v1/admin/join-tokens", {"pool": "main", "uses": 1})["token"]
        check(self.node.register(join).status == 201, "the node does not join")
        self.node.status()
        self.rows = {}

    def submit(self, **more):
        return self.who["here", "member"].make("/v1/jobs", {"name": "j", "limit": "1h", "command": ["true"], **more})["id"]

    def row(self, job):
        rows = self.rows

        def listed():
            if job in rows:
                return True
            for j in (self.node.desired(1) or {"jobs": []})["jobs"]:
                rows[j["job"]] = {"job": j["job"], "stay": j["stay"], "task": 0, "state": "running"}
            return job in rows
        self.stintd.wait(listed, "an order for " + job)
        return rows[job]

    def use(self, job, who=("here", "member")):
        return self.who[who].get(f"/v1/jobs/{job}/use")


def waits(w):
    """Before it starts nothing is known but what it asks for."""
    job = w.submit(gpus=16, vram="40Gi")
    w.row(job)
    other = w.submit(gpus=1)
    doc = w.use(other).json
    check((doc["state"], doc["cost_udollars"], doc["sums"], doc["suggestions"]) == ("pending", 0, {}, []), "%s", doc)
    check(all(v is None for v in doc["gpu"].values()), "%s", doc)
    w.who["here", "member"].call("DELETE", "/v1/jobs/" + other)
    return job


def runs(w, job):
    row, begun = w.row(job), time.monotonic()
    w.stintd.wait(lambda: time.monotonic() > begun + 2.4, "time goes by")
    ms = 2000 * GPUS
    usage = {"held_gpu_ms": ms, "seen_gpu_ms": ms, "busy_gpu_ms": ms // 10, "sm_gpu_ms": ms // 20, "energy_mj": ms * 100,
             "mem_peak_mib": 30 * 1024, "mem_mib_s": 20 * 1024 * 2}
    check(w.node.status([{**row, "usage": usage}]).status == 200, "the status is not taken")
    w.stintd.wait(lambda: w.use(job).json["sums"], "what it used is known")
    doc = w.use(job).json
    check((doc["gpu"]["busy"], doc["gpu"]["sm"], doc["gpu"]["watts"], doc["gpu"]["celsius"]) == (0.1, 0.05, 100, None), "%s", doc)
    check(doc["memory"] == {"asked_mib": GPUS * 40 * 1024, "peak_mib": 30 * 1024}, "%s", doc)
    check(len(doc["suggestions"]) == 2 and "2 GPUs would hold it" in doc["suggestions"][0] and "busy 10 %" in doc["suggestions"][1], "%s", doc)
    first = doc["cost_udollars"]
    check(first > 0, "%s", doc)
    w.stintd.wait(lambda: w.use(job).json["cost_udollars"] > first, "the cost grows")


def is_not_for_others(w, job):
    for who in (("there", "member"), ("there", "viewer")):
        theirs, nobodys = w.use(job, who), w.use("jqqqqqqqq", who)
        check(theirs.status == nobodys.status == 404, "%d %s", theirs.status, theirs.text)
        said = [json.loads(a.text)["detail"].replace(name, "X") for a, name in ((theirs, job), (nobodys, "jqqqqqqqq"))]
        check(said[0] == said[1], "%s", said)
    check(w.use(job, ("here", "viewer")).status == 200, "a viewer may not see it")
    check(Client(w.stintd.port).get(f"/v1/jobs/{job}/use").status == 401, "a stranger sees it")


def lies(w, job):
    """What cannot be is not shown: the gate of figures stands before it."""
    row = w.row(job)
    usage = {"held_gpu_ms": 10**12, "seen_gpu_ms": 10**12, "busy_gpu_ms": 10**12, "energy_mj": 10**15, "mem_peak_mib": 10**9}
    check(w.node.status([{**row, "usage": usage}]).status == 200, "the status is not taken")
    doc = w.use(job).json
    check(doc["memory"]["peak_mib"] < 2 * GPUS * 80 * 1024 and (doc["gpu"]["busy"] or 0) <= 1, "%s", doc)


def commands(w, job):
    stint = os.path.join(os.path.dirname(sys.argv[1]), "stint")
    env = {"PATH": os.environ["PATH"], "HOME": w.stintd.dir, "STINT_URL": f"http://127.0.0.1:{w.stintd.port}",
           "STINT_TOKEN": w.tokens["here", "member"]}

    def run(*args, status=0):
        got = subprocess.run([stint, *args], env=env, capture_output=True, text=True, timeout=60)
        check(got.returncode == status, "stint %s: %d %s %s", args, got.returncode, got.stdout, got.stderr)
        return got.stdout + got.stderr
    text = run("stats", job)
    check("30.0 GiB" in text and "640.0 GiB" in text and "would hold it" in text, "%s", text)
    text = run("show", job)
    check("GPU memory asked" in text and "640.0 GiB" in text and "Cost so far" in text, "%s", text)
    check(json.loads(run("stats", "-o", "json", job))[0]["job"] == job, "no JSON")
    check("nobody" in run("stats", "nobody", status=4), "one that is not there")


def is_over(w, job):
    row = w.row(job)
    w.who["here", "member"].call("DELETE", "/v1/jobs/" + job)

    def over():
        w.node.desired(1)
        w.node.status([{**row, "state": "exited", "exit_code": 0}])
        return w.use(job).json["state"] in ("cancelled", "done", "failed")
    w.stintd.wait(over, "it ends")
    w.stintd.wait(lambda: w.use(job).json["memory"].get("peak_mib"), "what it used is kept")
    doc = w.use(job).json
    check(doc["memory"]["asked_mib"] == GPUS * 40 * 1024, "%s", doc)
    cost = [0]

    def settled():
        before, cost[0] = cost[0], w.use(job).json["cost_udollars"]
        return before == cost[0] > 0
    w.stintd.wait(settled, "the cost stands still")
    rows = w.owner.get("/v1/bills/open/usage?account=here&by=job").json["rows"]
    billed = sum(row["cost_udollars"] for row in rows if row["key"] == job)
    check(cost[0] == billed, "%s, and the bill says %s", cost[0], billed)


def is_estimated(w):
    """The site's own constants count, the document says why, and what was estimated stands beside what was used."""
    job = w.submit(workload="serving", model="13B", context=8192)
    row, doc = w.row(job), w.who["here", "member"].get("/v1/jobs/" + job).json
    check(doc["spec"]["workload"] == "inference" and "13 billion parameters" in doc["spec"]["estimate"], "%s", doc["spec"])
    check("with 50 % for workspace" in doc["spec"]["estimate"] and "0.5 GiB per GPU" in doc["spec"]["estimate"], "%s", doc["spec"])
    begun = time.monotonic()
    w.stintd.wait(lambda: time.monotonic() > begun + 0.3, "time goes by")
    usage = {"held_gpu_ms": 200, "seen_gpu_ms": 200, "busy_gpu_ms": 100, "mem_peak_mib": 17 * 1024}
    check(w.node.status([{**row, "usage": usage}]).status == 200, "the status is not taken")
    w.stintd.wait(lambda: w.use(job).json["memory"].get("peak_mib"), "what it used is known")
    memory = w.use(job).json["memory"]
    check(memory["estimated_mib"] == 26247 + 13124 + 512 and memory["peak_mib"] == 17 * 1024, "%s", memory)
    refused = w.who["here", "member"].post("/v1/jobs", {"name": "j", "workload": "inference", "model": "405b", "command": ["true"]})
    check(refused.status == 400 or "estimate" in refused.text, "%d %s", refused.status, refused.text)
    w.who["here", "member"].call("DELETE", "/v1/jobs/" + job)


def run(program):
    w = World(program)
    try:
        job = waits(w)
        for case in (runs, is_not_for_others, commands, lies, is_over):
            case(w, job)
        is_estimated(w)
    finally:
        w.stintd.stop()


main(run)
