#!/usr/bin/env python3
"""The console: what stintd carries is what web/ builds to, and it works in a real browser.

Needs npm and chromium; where one is missing the test is skipped, but not in CI. On programs with sanitizers its files and
sessions are asked for without a browser: the rest of a page is other routes' answers."""

import filecmp
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(__file__))
from harness import Client, Stintd, check, main, sanitized, token  # noqa: E402
from node import Node  # noqa: E402

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "stint-tests")
BROWSER = ["playwright-core@1.65.0", "axe-core@4.14.0"]
SKIPPED = 77
EVIL = "<img/src=x/onerror=document.title='owned'><b>"  # as in pages.mjs: names have no spaces


def npm(*words, cwd):
    return subprocess.run(["npm", *words, "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=cwd, check=True,
                          capture_output=True, timeout=300)


def is_built(folder):
    """web/ is built again, and gives what is committed."""
    web = os.path.join(folder, "web")
    shutil.copytree(os.path.join(SOURCE, "web"), web, ignore=shutil.ignore_patterns("node_modules", "dist"))
    npm("ci", cwd=web)
    subprocess.run(["node_modules/.bin/tsc", "--noEmit"], cwd=web, check=True, timeout=300)
    subprocess.run(["node", "build.mjs"], cwd=web, check=True, timeout=300)
    kept = os.path.join(SOURCE, "web", "dist")
    check(sorted(os.listdir(kept)) == sorted(os.listdir(os.path.join(web, "dist"))), "other files than in web/dist")
    for name in os.listdir(kept):
        check(filecmp.cmp(os.path.join(kept, name), os.path.join(web, "dist", name), shallow=False),
              "web/dist/%s is not what web/src builds to: run `npm ci && npm run build` in web/", name)


def is_told():
    """The console listens to every event there is. Those that end a stream need no name: the stream ends."""
    with open(os.path.join(SOURCE, "doc", "reference", "states.md")) as f:
        table = f.read().split("\n## Events\n")[1].split("\n## ")[0]
    with open(os.path.join(SOURCE, "web", "src", "follow.ts")) as f:
        heard = f.read().split("const NAMES = [")[1].split("]")[0]
    deaf = set(re.findall(r"^\| `(\w+)` \|", table, re.M)) - set(re.findall(r'"(\w+)"', heard)) - {"revoked", "bye"}
    check(not deaf, "web/src/follow.ts does not listen to %s", sorted(deaf))


class Host(threading.Thread):
    """A node by hand that says all is well until the test is over, makes the tests it is asked for, and runs what it is given."""

    def __init__(self, stintd, name, well=True):
        super().__init__(daemon=True)
        self.node, self.well = Node(stintd.port, name, gpu={"type": "l4", "count": 1, "vram": "24Gi", "uuids": ["GPU-" + name]},
                                    labels={"tests": "quick"}), well
        self.tasks, self.notes, self.no, self.over, self.error = {}, [], 0, threading.Event(), None
        self.since = {}
        join = stintd.owner.make("/v1/admin/join-tokens", {"pool": "desk", "uses": 1})["token"]
        answer = self.node.register(join)
        check(answer.status == 201, "the node %s does not join: %s", name, answer.text)
        self.start()

    def tested(self, number):
        rows = [{"check": "ecc", "gpu": 0, "verdict": "pass" if self.well else "fail", "value": 0 if self.well else 7, "limit": 0},
                {"check": "nvlink", "gpu": 0, "verdict": "skip"},
                {"check": EVIL, "gpu": 0, "verdict": "pass", "value": 16, "limit": 16}]
        return {"no": number, "level": "quick", "passed": self.well, "ms": 12, "results": rows,
                **({} if self.well else {"reason": "GPU 0: uncorrected memory errors (7, limit 0) " + EVIL})}

    def turn(self, said):
        got = self.node.desired()
        if got:
            self.tasks = {j["job"]: {"job": j["job"], "stay": j["stay"], "task": 0, "state": "running"} for j in got["jobs"]}
            self.since = {job: self.since.get(job, time.monotonic()) for job in self.tasks}
        for job, task in self.tasks.items():
            # Half of the time a kernel ran, at 50 W, with 3 GiB of memory and at 55 C.
            ms = int((time.monotonic() - self.since[job]) * 1000)
            task["usage"] = {"held_gpu_ms": ms, "seen_gpu_ms": ms, "busy_gpu_ms": ms // 2, "energy_mj": ms * 50, "mem_mib_s": ms * 3072 // 1000,
                             "heat_c_s": ms * 55 // 1000}
        if self.notes:
            said["neighbours"] = [self.notes.pop(0)]
        answer = self.node.status(self.tasks.values(), **said)
        check(answer.status == 200, "a status: %d %s", answer.status, answer.text)
        number = answer.json.get("test")
        return {"test": self.tested(number)} if number else {}

    def run(self):
        said = {}
        while not self.over.is_set():
            try:
                said = self.turn(said)
            except Exception as e:  # told by whoever waits for what this node should do
                self.error = e
            self.over.wait(0 if self.notes or said else 0.5)

    def note(self, what, victim, suspect, percent, action=None):
        self.no += 1
        self.notes.append({"no": self.no, "at_ms": int(time.time() * 1000), "what": what, "gpu": 0, "p99_percent": percent, "job": victim,
                           "stay": 1, "task": 0, "suspect": {"job": suspect, "stay": 1, "task": 0}, **({"action": action} if action else {})})


def neighbours(stintd, tokens):
    """Two nodes with agents: one is well, and on its GPU a job of grace slows one of ada; the test of the other fails."""
    owner = stintd.owner
    owner.make("/v1/types", {"name": "l4", "vram": "24Gi"})
    owner.make("/v1/pools", {"name": "desk", "allow": ["host-image"], "levels": ["time"]})
    hosts = [Host(stintd, "desk-well"), Host(stintd, "desk-ill", well=False)]
    for host, state in zip(hosts, ("ready", "repair")):
        stintd.wait(lambda: owner.get("/v1/nodes/" + host.node.name).json["state"] == state, f"{host.node.name} is {state}: {host.error}")
    ids = []
    for who, name in (("ada", EVIL), ("grace", "batch-" + EVIL)):
        doc = {"name": name, "type": "l4", "pool": "desk", "level": "time", "share": 0.5, "limit": "1h", "command": ["true"]}
        ids.append(Client(stintd.port, tokens[who]).make("/v1/jobs", doc)["id"])
        stintd.wait(lambda: ids[-1] in hosts[0].tasks, f"{ids[-1]} is given to the node: {hosts[0].error}")
    hosts[0].note("confirmed", *ids, 450)
    hosts[0].note("acted", *ids, 450, "cap")
    hosts[0].note("verified", *ids, 110, "cap")
    stintd.wait(lambda: [c["state"] for c in owner.get("/v1/neighbours").json["neighbours"]] == ["held", "held"],
                f"a case of two sides: {hosts[0].error}")
    return hosts


def browser_tools():
    """The folder with what drives the browser; fetched once."""
    folder = os.path.join(CACHE, "browser")
    if not os.path.exists(os.path.join(folder, "node_modules", "axe-core")):
        os.makedirs(folder, exist_ok=True)
        npm("install", "--prefix", folder, *BROWSER, cwd=folder)
    return folder


def in_a_browser(program):
    folder = browser_tools()
    stintd, hosts = Stintd(program, sample=True, config="rate: 1000000\nseries_step: 30s\nnotice_hosts: \"http://127.0.0.1:9\"\nnotice_networks: 127.0.0.1\n"), []
    try:
        with open(os.path.join(stintd.dir, "data", "tokens")) as f:
            tokens = {row.split()[0]: row.split()[3] for row in f if row.strip()}
        hosts = neighbours(stintd, tokens)
        for role in ("admin", "viewer", "auditor"):
            tokens[role] = token(stintd.owner, "vision", role, role)["token"]
        shots = os.path.join(os.path.dirname(os.path.abspath(program)), "meson-logs", "console")
        os.makedirs(shots, exist_ok=True)
        env = dict(os.environ, SHOTS=os.environ.get("SHOTS", shots), STINT_NPM=folder, CHROMIUM=shutil.which("chromium"))
        script = os.path.join(SOURCE, "tests", "console", "pages.mjs")
        done = subprocess.run(["node", script, f"http://127.0.0.1:{stintd.port}",
                               json.dumps({**{role: tokens[role] for role in ("admin", "viewer", "auditor")},
                                           "owner": tokens["root"], "member": tokens["ada"], "other": tokens["grace"],
                                           "measured": next(iter(hosts[0].tasks))})],
                              env=env, capture_output=True, text=True, timeout=600)
        check(done.returncode == 0, "%s", (done.stdout + done.stderr)[-3000:])
        print(done.stdout.strip())
    finally:
        for host in hosts:
            host.over.set()
            host.join(30)
        stintd.stop()


def by_hand(program):
    """Every file as it is, packed and unpacked, once and again; and a session from its code to its end."""
    stintd = Stintd(program)
    try:
        files = {"/": "index.html", **{f"/console/{name}": name for name in os.listdir(os.path.join(SOURCE, "web", "dist"))}}
        stranger = Client(stintd.port)
        for path, name in files.items():
            with open(os.path.join(SOURCE, "web", "dist", name), "rb") as f:
                kept = f.read()
            plain, packed = stranger.get(path), stranger.get(path, headers={"Accept-Encoding": "gzip"})
            check(plain.status == 200 and plain.body == kept, "%s: %d, %d bytes", path, plain.status, len(plain.body))
            check(packed.status == 200 and gzip.decompress(packed.body) == kept, "%s packed: %d", path, packed.status)
            again = stranger.get(path, headers={"Accept-Encoding": "gzip", "If-None-Match": packed.header("ETag")})
            check(again.status == 304 and not again.body, "%s again: %d", path, again.status)
        check(stranger.get("/console/never.js").status == 404, "a file that is not there")
        code = stintd.owner.call("POST", "/v1/session/code").json["code"]
        own = {"Stint-Console": "1", "Sec-Fetch-Site": "same-origin"}
        answer = stranger.call("POST", "/v1/session", {"code": code}, headers=own)
        check(answer.status == 201, "a session: %d %s", answer.status, answer.text)
        own["Cookie"] = answer.header("Set-Cookie").split(";")[0]
        check(stranger.get("/v1/whoami", headers=own).status == 200, "a session opens nothing")
        check(stranger.call("DELETE", "/v1/session", headers=own).status in (200, 204), "a logout")
        check(stranger.get("/v1/whoami", headers=own).status == 401, "a session that was ended")
        check(stranger.call("POST", "/v1/session", {"code": code}, headers=own).status == 401, "a code twice")
    finally:
        stintd.stop()


def run(program):
    by_hand(program)
    if sanitized(program):
        return
    missing = [tool for tool in ("npm", "node", "chromium") if not shutil.which(tool)]
    if missing and not os.environ.get("CI"):
        print("skipped:", ", ".join(missing), "not there")
        sys.exit(SKIPPED)
    check(not missing, "%s not there", missing)
    is_told()
    with tempfile.TemporaryDirectory() as folder:
        is_built(folder)
    in_a_browser(program)


if __name__ == "__main__":
    main(run)
