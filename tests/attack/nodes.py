#!/usr/bin/env python3
"""Nodes: a rogue machine, a stolen token, a copied folder or a stranger on the socket neither becomes another
node, nor reads its orders, nor stops it, nor bills what cannot be.

n0 is an honest stint-agent with a job of acme's. r0 is a node of the pool rogue that joined by the book and then
lies; requests are made by hand."""

import atexit
import json
import os
import shutil
import socket
import subprocess
import threading
import time

from attack import attempt, until, wall
from harness import Client, Failure, Stream, check
from node import Key, Node

GPU = {"type": "h100", "count": 8, "vram": "80Gi", "uuids": [f"GPU-r0-{d}" for d in range(8)]}


def join_token(site, pool="rogue", uses=1, **more):
    return site.owner.make("/v1/admin/join-tokens", {"pool": pool, "uses": uses, **more})["token"]


def node(site, name):
    return site.owner.get("/v1/nodes/" + name).json


def flags(site, name):
    return [f["flag"] for f in node(site, name)["flags"]]


class Honest:
    """A real agent, whose tasks are simulated, and a job on it."""

    def __init__(self, site, name="n0"):
        self.site, self.name, self.data = site, name, os.path.join(site.dir, name)
        self.join = self.data + ".join"
        atexit.register(lambda: self.process.poll() is None and self.process.kill())
        with open(os.open(self.join, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(join_token(site, "main"))
        self.start()
        until(lambda: site.owner.get("/v1/nodes/" + name).status == 200, f"node {name}")
        self.job = site.acme.job(name="kept", gpus=1, limit="2h", sim={"run": "2h"})
        site.acme.becomes(self.job, "running")

    def start(self, data=None, *options):
        with open(self.data + ".log", "a") as log:
            process = subprocess.Popen(
                [os.environ["STINT_AGENT"], "--server", self.site.server(), "--join-token-file", self.join, "--data",
                 data or self.data, "--name", self.name, "--address", "127.0.0.1", "--sim", "h100x8", "--exec", "sim",
                 *options], stdout=log, stderr=log)
        if data is None:
            self.process = process
        return process

    def well(self):
        job = self.site.acme.show(self.job)
        check(job["state"] == "running" and job["preemptions"] == 0, "the honest job: %s", json.dumps(job)[:300])
        check(node(self.site, self.name)["state"] == "ready", "%s: %s", self.name, node(self.site, self.name))
        check(not flags(self.site, self.name), "%s has flags: %s", self.name, flags(self.site, self.name))


def rogue(site):
    """r0, joined; its session is open."""
    if not hasattr(site, "r0"):
        for pool in ("rogue", "other"):
            site.owner.make("/v1/pools", {"name": pool, "allow": ["host-image"]})
        site.kept = Honest(site)
        site.r0 = Node(site.stintd.port, "r0", gpu=GPU)
        check(site.r0.register(join_token(site)).status == 201, "r0 does not join")
        site.mine = site.person(site.secrets["rival"], "rogue")
    site.kept.well()
    return site.r0


def one_job(site, **doc):
    """A job of rival's that r0 has on its list and says it runs; (its id, its row in a status)."""
    r0 = rogue(site)
    r0.status()
    job = site.mine.job(**{"gpus": 8, **doc})
    listed = until(lambda: next((j for j in (r0.desired(1) or {"jobs": []})["jobs"] if j["job"] == job), None), "its order")
    row = {"job": job, "stay": listed["stay"], "task": 0, "state": "running"}
    r0.status([row])
    return job, row


def ended(site, job, row, **more):
    site.r0.status([{**row, "state": "exited", "exit_code": 0, **more}])
    return site.mine.becomes(job, "done", "failed")


def as_it_was(site):
    rogue(site)
    check(site.r0.status().status == 200, "r0 is not served")


# ---- joining ---------------------------------------------------------------------------------------


@attempt("a stranger with a used-up token", "takes n0 with its machine id", "a refusal that says nothing of n0")
def used_up(site):
    rogue(site)
    token = join_token(site, "main")
    site.spare = Node(site.stintd.port, "spare")
    check(site.spare.register(token).status == 201, "the spare node does not join")
    with open(os.path.join(site.kept.data, "machine.id")) as f:
        machine = f.read().strip()
    there = site.refused(Node(site.stintd.port, "n0", machine, gpu=GPU).register(token), "used up", 403)
    never = site.refused(Node(site.stintd.port, "nobody", machine, gpu=GPU).register(token), "used up", 403)
    check(there.json["detail"] == never.json["detail"], "n0 and nobody differ: %s", there.json)
    site.kept.well()


@attempt("a stranger with a token of another pool", "takes n0 with its machine id", "a refusal; n0 has its key and pool")
def other_pool(site):
    rogue(site)
    key = node(site, "n0")["key"]
    with open(os.path.join(site.kept.data, "machine.id")) as f:
        machine = f.read().strip()
    token = join_token(site, "other")
    site.refused(Node(site.stintd.port, "n0", machine, gpu=GPU).register(token), status=409)
    check(node(site, "n0")["key"] == key and node(site, "n0")["pool"] == "main", "n0 has changed")
    check(Node(site.stintd.port, "other0").register(token).status == 201, "a refusal was counted")


@attempt("a machine with an owner's leave to be n-left", "comes with a token of another pool", "a refusal")
def rejoin_other_pool(site):
    rogue(site)
    left = Node(site.stintd.port, "n-left")
    check(left.register(join_token(site)).status == 201, "it does not join")
    site.owner.make("/v1/nodes/n-left/rejoin", None)
    site.refused(Node(site.stintd.port, "n-left").register(join_token(site, "other")), "another pool", 403)
    check(node(site, "n-left")["pool"] == "rogue", "its pool has changed")


@attempt("forty strangers with one token for one machine", "join at the same time", "one of them does")
def one_use(site):
    rogue(site)
    token, done = join_token(site), []
    many = [Node(site.stintd.port, f"race{i}") for i in range(40)]
    threads = [threading.Thread(target=lambda n=n: done.append(n.register(token).status)) for n in many]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(sorted(done) == [201] + [403] * 39, "joined: %s", sorted(done))


@attempt("a node", "registers again for another pool by what it says", "an unknown key, or no change")
def pool_by_words(site):
    r0 = rogue(site)
    site.refused(r0.register(pool="main"), "pool", 400)
    check(node(site, "r0")["pool"] == "rogue", "it moved")
    as_it_was(site)


@attempt("a stranger with a join token", "brings a GPU type of its own", "a refusal; the types are as they were")
def new_type(site):
    rogue(site)
    before = site.owner.get("/v1/types").json
    token = join_token(site)
    for kind in ("zz9000", "h200", "gpu"):
        bad = Node(site.stintd.port, "bringer", gpu={"type": kind, "count": 1, "vram": "1Gi"})
        site.refused(bad.register(token), "type add", 409)
    check(site.owner.get("/v1/types").json == before, "a type was added")


@attempt("a node that joined without a key check", "binds a key it has not", "a refusal")
def key_of_another(site):
    rogue(site)
    bad = Node(site.stintd.port, "liar")
    doc = bad.registration()
    doc["key"] = Key().public.hex()
    site.refused(bad.register(join_token(site), doc=doc), "not proved", 401)
    doc["key"] = "00" * 32
    site.refused(bad.register(join_token(site), doc=doc), "not proved", 401)
    check(site.owner.get("/v1/nodes/liar").status == 404, "it joined")


@attempt("a stranger", "sends a registration that it has recorded again", "a refusal")
def replayed_registration(site):
    r0 = rogue(site)
    body = json.dumps(r0.registration()).encode()
    proof = r0.proof("POST", "/v1/agent/register", body, session=r0.challenge(), n=0)
    answer = Client(site.stintd.port, proof).call("POST", "/v1/agent/register", body)
    check(answer.status == 200, "the first: %d", answer.status)
    r0.session, r0.n = answer.json["session"], 0
    for _ in range(3):
        site.refused(Client(site.stintd.port, proof).call("POST", "/v1/agent/register", body), "challenge", 401)
    as_it_was(site)


@attempt("a stranger", "makes up challenges, or changes one", "a refusal each")
def made_up_challenge(site):
    r0 = rogue(site)
    real = r0.challenge()
    for text in ("00" * 32, "ff" * 32, real[:-2] + "00", "00" + real[2:], real[:40], "zz" * 32):
        site.refused(r0.register(challenge=text), status=401)
    as_it_was(site)


@attempt("an owner's browser and tenants", "register as machines", "a refusal each")
def not_machines(site):
    rogue(site)
    for secret in (site.secrets["rival"], site.secrets["rival_admin"], site.stintd.owner_token):
        site.refused(Node(site.stintd.port, "n0").register(secret), status=403)


# ---- proofs ----------------------------------------------------------------------------------------


@attempt("somebody on the wire", "sends a status again", "a refusal; it counts once")
def replayed_status(site):
    r0 = rogue(site)
    body = json.dumps({"epoch": r0.epoch, "tasks": []}).encode()
    proof = r0.proof("POST", "/v1/agent/status", body)
    wire = Client(site.stintd.port, proof)
    check(wire.call("POST", "/v1/agent/status", body).status == 200, "the first is refused")
    for _ in range(3):
        site.refused(wire.call("POST", "/v1/agent/status", body), "heard before", 401)
    as_it_was(site)


@attempt("somebody on the wire", "puts another body, path or query behind a good proof", "a refusal each")
def other_request(site):
    r0 = rogue(site)
    sick = json.dumps({"epoch": r0.epoch, "tasks": [], "node": {"health": "failed"}}).encode()
    for method, target, body in (("POST", "/v1/agent/status", sick), ("GET", "/v1/agent/desired", None),
                                 ("GET", "/v1/agent/desired?revision=0&wait=0", None)):
        proof = r0.proof("POST", "/v1/agent/status", b'{"tasks":[]}')
        site.refused(Client(site.stintd.port, proof).call(method, target, body), "another request", 401)
    check(node(site, "r0")["state"] == "ready", "it was believed to be sick")
    as_it_was(site)


@attempt("a node", "signs as n0 with its own key", "a refusal; nothing of n0's list")
def wrong_key(site):
    r0 = rogue(site)
    for target in ("/v1/agent/desired?revision=0&wait=0", "/v1/agent/desired"):
        site.refused(r0.call("GET", target, proof=r0.proof("GET", target, name="n0")), "not the key", 401)
    body = json.dumps({"tasks": []}).encode()
    site.refused(r0.call("POST", "/v1/agent/status", raw=body, proof=r0.proof("POST", "/v1/agent/status", body, name="n0")),
                 status=401)
    site.kept.well()


@attempt("a stranger", "sends proofs that are none", "a refusal each")
def no_proofs(site):
    r0 = rogue(site)
    good = r0.proof("GET", "/v1/agent/desired")
    parts = good.split(".")
    bad = [".".join(parts[:i] + parts[i + 1:]) for i in range(1, 7)]
    bad += [".".join(parts[:i] + [""] + parts[i + 1:]) for i in range(1, 7)]
    bad += [good + ".", good.upper(), "node1." * 50, "node1." + "61" * 2000, good[:-1], good + "00"]
    bad += [".".join(parts[:4] + [n] + parts[5:]) for n in ("-1", "0", "01", "1e3", "9" * 30, "18446744073709551616")]
    for text in bad:
        site.refused(Client(site.stintd.port, text).get("/v1/agent/desired"), status=401)
    as_it_was(site)


@attempt("a node", "jumps to the last number there is", "its own session is spent, nobody else's")
def last_number(site):
    r0 = rogue(site)
    body = json.dumps({"epoch": r0.epoch, "tasks": []}).encode()
    top = r0.proof("POST", "/v1/agent/status", body, n=2**64 - 1)
    check(Client(site.stintd.port, top).call("POST", "/v1/agent/status", body).status == 200, "it is refused")
    site.refused(r0.status(), "heard before", 401)
    check(r0.register().status == 200, "it cannot open another")
    as_it_was(site)


@attempt("whoever has a token of a node from before keys", "uses it after the key was bound", "a refusal")
def old_token(site):
    r0 = rogue(site)
    made = site.owner.post("/v1/tokens", {"user": "r0", "role": "node"})
    if made.status == 201:
        for method, target, body in (("GET", "/v1/agent/desired", None), ("POST", "/v1/agent/status", {"tasks": []}),
                                     ("POST", "/v1/agent/register", r0.registration())):
            site.refused(Client(site.stintd.port, made.json["token"]).call(method, target, body), status=401)
    as_it_was(site)


@attempt("a stranger with a join token", "answers for n0 after an owner let r-open join again", "a refusal")
def leave_is_for_one(site):
    rogue(site)
    opened = Node(site.stintd.port, "r-open")
    check(opened.register(join_token(site)).status == 201, "it does not join")
    site.owner.make("/v1/nodes/r-open/rejoin", None)
    site.refused(opened.status(), status=401)
    site.refused(opened.register(), status=401)
    site.refused(Node(site.stintd.port, "n0").register(join_token(site)), status=409)
    check(Node(site.stintd.port, "r-open").register(join_token(site)).status == 200, "leave was not given")


# ---- two agents, one key ----------------------------------------------------------------------------


@attempt("somebody with a copy of r0's folder", "speaks beside it", "no list for the copy, a frozen node, an incident")
def copied_key(site):
    r0 = rogue(site)
    job, row = one_job(site)
    events = Stream(site.stintd.port, site.stintd.owner_token)
    twin = r0.copy()
    check(twin.register().status == 200, "the copy cannot prove itself")
    answer = twin.status([])
    check(answer.status == 200 and answer.json["taken"] is False, "the copy's word was taken: %s", answer.text)
    check(twin.desired() is None, "the copy has the list")
    check(site.mine.show(job)["state"] == "running", "the copy's silence about a task ended it")
    site.refused(r0.status([row]), "prove itself again", 401)
    check(r0.register().status == 200, "r0 cannot prove itself")
    until(lambda: "two-voices" in flags(site, "r0"), "the flag")
    check(node(site, "r0")["state"] == "draining", "it takes new work")
    check(events.wait(lambda s: any(e[1] == "incident" and "r0" in e[2] for e in s.events())), "no incident event")
    events.close()
    r0.status([row])
    check(site.mine.show(job)["state"] == "running", "its job was stopped")
    check(twin.desired() is None, "the copy has the list of a frozen node")
    twin.call("POST", f"/v1/agent/logs/{job}/{row['stay']}/0?offset=0", raw=b"forged\n")
    check("forged" not in site.mine.log(job), "the copy wrote a log")
    check(ended(site, job, row)["state"] == "done", "r0's own word does not count")
    check(site.owner.call("PATCH", "/v1/nodes/r0", {"state": "ready"}).status == 200, "it cannot be taken back")
    check(flags(site, "r0") == [], "the flag stays")
    as_it_was(site)


@attempt("somebody with a copied node key", "takes over from a node that is silent", "found out when that comes back; no new work")
def copied_key_in_silence(site):
    rogue(site)
    own = Node(site.stintd.port, "silent")
    check(own.register(join_token(site)).status == 201, "it does not join")
    check(own.status().json["taken"] is True, "its word is not taken")
    twin = own.copy()
    check(twin.register().status == 200, "the copy cannot prove itself")
    until(lambda: twin.status().json["taken"], "the copy's turn: a node that was started anew has another voice, too")
    check(flags(site, "silent") == [], "flags of a node that seems to have been started anew: %s", flags(site, "silent"))
    site.refused(own.status(), "prove itself again", 401)
    check(own.register().status == 200, "it cannot prove itself")
    until(lambda: "two-voices" in flags(site, "silent"), "the flag", 30)
    check(node(site, "silent")["state"] == "draining", "it takes new work")
    check(own.status().json["taken"] is False and own.desired() is None, "both are believed")


@attempt("two real agents with copies of one folder", "run", "one keeps its job, the node is frozen, no task runs twice")
def copied_folder(site):
    rogue(site)
    other = Honest(site, "n9")
    copy = other.data + "-copy"
    shutil.copytree(other.data, copy)
    os.unlink(os.path.join(copy, "lock"))
    second = other.start(copy)
    try:
        until(lambda: "two-voices" in flags(site, "n9"), "the flag")
        check(site.acme.show(other.job)["state"] == "running", "its job is gone")
    finally:
        second.kill()
        second.wait()
        site.acme.cancel(other.job)
        other.process.terminate()
        other.process.wait()


# ---- what a node says --------------------------------------------------------------------------------


def lie(site, **usage):
    """What the job's row has after r0 said this at its end."""
    job, row = one_job(site)
    began = time.monotonic()
    done = ended(site, job, row, usage=usage)
    return done["placement"].get("usage", {}), 8 * 1000 * (time.monotonic() - began + 20)


@attempt("a node", "says that it used $45,000,000 of energy", "at most board power x time, a flag, an incident")
def energy(site):
    events = Stream(site.stintd.port, site.stintd.owner_token)
    used, most = lie(site, held_gpu_ms=10, energy_mj=10**15)
    check(used.get("energy_mj", 0) <= 700 * most, "billed energy: %s", used)
    until(lambda: "impossible-figures" in flags(site, "r0"), "the flag")
    check(events.wait(lambda s: any(e[1] == "incident" for e in s.events())), "no incident event")
    events.close()
    check(not any("two-voices" == f for f in flags(site, "r0")), "another flag")


@attempt("a node", "says it was held, seen and busy for years", "no more than the time on its devices")
def held(site):
    used, most = lie(site, held_gpu_ms=10**15, seen_gpu_ms=10**15, busy_gpu_ms=10**15, sm_gpu_ms=10**15,
                     dram_gpu_ms=10**15)
    for key, value in used.items():
        check(0 <= value <= most, "%s is %d", key, value)


@attempt("a node", "says it used more memory than there is, and traffic beyond any link", "what its devices have")
def memory(site):
    used, most = lie(site, mem_peak_mib=10**12, pcie_bytes=2**62, nvlink_bytes=2**62)
    check(used.get("mem_peak_mib", 0) <= 8 * 90 * 1024, "memory: %s", used)
    check(used.get("nvlink_bytes", 0) <= 3.6e9 * most, "traffic: %s", used)


@attempt("a node", "says numbers below zero, too large, and no numbers", "nothing below zero, no fault")
def odd_numbers(site):
    for value in (-1, -2**63, 2**63 - 1, 2**64, 1e300, "9", None, [], {"a": 1}):
        r0 = rogue(site)
        job, row = one_job(site)
        said = {key: value for key in ("held_gpu_ms", "seen_gpu_ms", "busy_gpu_ms", "energy_mj", "mem_peak_mib")}
        r0.status([{**row, "state": "exited", "exit_code": 0, "usage": said}])
        r0.status([{**row, "state": "exited", "exit_code": 0}])
        used = site.mine.becomes(job, "done")["placement"].get("usage", {})
        check(all(0 <= v <= 2**52 for v in used.values()), "%r became %s", value, used)


@attempt("a node", "lets its counters fall and rise again", "each unit counts once")
def counters(site):
    job, row = one_job(site)
    time.sleep(1)
    for n in (3000, 10, 3000, 10, 3000):
        site.r0.status([{**row, "usage": {"held_gpu_ms": n, "seen_gpu_ms": n}}])
    used = ended(site, job, row, usage={"held_gpu_ms": 5, "seen_gpu_ms": 5})["placement"]["usage"]
    check(used["held_gpu_ms"] == 3000, "it is %s", used)


@attempt("a node", "says that its task ended in the future, or before it began", "an end between start and now")
def times(site):
    for at in (int(time.time() * 1000) + 10**9, 1, -5, 2**62):
        job, row = one_job(site)
        done = ended(site, job, row, ended_ms=at)
        check(done["submitted"] <= done["started"] <= done["ended"], "%d: %s", at, done)


@attempt("a node", "says exit codes and signals no process has", "a failure, never a success by overflow")
def exits(site):
    for said in ({"exit_code": 2**32}, {"exit_code": -1}, {"exit_code": 256}, {"exit_code": 0, "signal": 2**32}):
        job, row = one_job(site)
        site.r0.status([{**row, "state": "exited", **said}])
        check(site.mine.becomes(job, "done", "failed")["state"] == "failed", "%s is a success", said)


@attempt("a node", "gives reasons with control characters, quotes and overrides", "plain text in the job and the log")
def reasons(site):
    job, row = one_job(site)
    site.r0.status([{**row, "state": "exited", "exit_code": 1,
                     "reason": "x\n\revent=fake \"q\" \x1b[31m\u202eevil" + "A" * 5000}])
    reason = site.mine.becomes(job, "failed")["reason"]
    check(not any(ord(c) < 32 or ord(c) in (0x202e, 0x7f) for c in reason) and len(reason) < 250, "reason: %r", reason)
    site.r0.call("POST", "/v1/agent/status", {"epoch": site.r0.epoch, "tasks": [], "node": {
        "health": "failed", "reason": "sick\nevent=owner_token token=x"}})
    until(lambda: node(site, "r0")["state"] == "failed", "its failure")
    with open(site.stintd.log) as f:
        check("\nevent=owner_token" not in f.read(), "a line of the log was forged")
    until(lambda: site.r0.status(revision=site.r0.revision) and (site.r0.desired() or True) and
          node(site, "r0")["state"] == "ready", "r0 back")


@attempt("a node", "reports on n0's task: running, failed, gone", "n0's job runs on")
def other_jobs(site):
    r0 = rogue(site)
    for stay in (0, 1, 2):
        for state in ({"state": "exited", "exit_code": 1}, {"state": "exited", "exit_code": 0}, {"state": "paused"},
                      {"state": "checkpointed"}, {"state": "failed-to-start"}):
            r0.status([{"job": site.kept.job, "stay": stay, "task": 0, **state, "usage": {"energy_mj": 10**9}}])
    r0.status([], past=[{"job": site.kept.job, "stay": 1, "task": 0, "usage": {"energy_mj": 10**12}}])
    site.kept.well()
    check(site.acme.show(site.kept.job).get("placement", {}).get("usage", {}).get("energy_mj", 0) < 10**9, "it was billed")


@attempt("a node", "reports on jobs, stays and tasks that never were", "nothing happens")
def no_jobs(site):
    r0 = rogue(site)
    rows = [{"job": name, "stay": stay, "task": task, "state": "exited", "exit_code": 0}
            for name in ("j-none", site.kept.job, "") for stay in (-1, 2**31, 2**32 + 1) for task in (-1, 2**31, 2**32)]
    check(r0.status(rows).status in (200, 400), "a fault")
    site.refused(r0.status([{"state": "exited"}]), status=400)
    site.refused(r0.status([{"job": 1, "stay": "x", "task": None, "state": "alive"}]), status=400)
    site.kept.well()
    as_it_was(site)


@attempt("a node", "reads n0's orders by any path", "its own list, or nothing")
def other_orders(site):
    r0 = rogue(site)
    for target in ("/v1/agent/desired?node=n0", "/v1/agent/desired/n0", "/v1/nodes/n0/desired", "/v1/agent/desired?revision=0&node=n0"):
        site.refused(r0.call("GET", target))
    r0.revision = 0
    mine = r0.desired()
    check(site.kept.job not in json.dumps(mine), "n0's job is on r0's list")
    for target in (f"/v1/jobs/{site.kept.job}", f"/v1/jobs/{site.kept.job}/logs", "/v1/nodes/n0", "/v1/jobs"):
        site.refused(r0.call("GET", target), status=403)


@attempt("a node", "writes logs of n0's task, of none, at odd offsets", "a refusal, or a gap that is said")
def other_logs(site):
    r0 = rogue(site)
    for job, stay, task in ((site.kept.job, 1, 0), (site.kept.job, 0, 0), ("j-none", 1, 0), ("..", 1, 0), ("%2e%2e", 1, 0),
                            (site.kept.job, 2**32 + 1, 0), (site.kept.job, 1, 2**32)):
        site.refused(r0.call("POST", f"/v1/agent/logs/{job}/{stay}/{task}?offset=0", raw=b"forged\n"))
    check("forged" not in site.acme.log(site.kept.job), "a log was forged")
    job, row = one_job(site)
    for offset in (2**62, 2**63 - 1, -1, 10**12):
        answer = r0.call("POST", f"/v1/agent/logs/{job}/{row['stay']}/0?offset={offset}", raw=b"x\n")
        check(answer.status < 500, "offset %d: %d %s", offset, answer.status, answer.text)
    try:
        site.refused(r0.call("POST", f"/v1/agent/logs/{job}/{row['stay']}/0?offset=0", raw=b"x" * (2 << 20)))
    except ConnectionError:
        pass  # refused before it was read
    ended(site, job, row)


@attempt("a stranger with a join token", "has names, labels and ids of a megabyte, or of odd letters", "a refusal each")
def long_names(site):
    rogue(site)
    token = join_token(site)
    big = "A" * 10**6
    for more in ({"name": big}, {"machine_id": big}, {"machine_id": "a\nb"}, {"address": "10.0.0.1; rm -rf /"}, {"address": big},
                 {"version": "\u202e"}, {"driver": big}, {"labels": {"x": big}}, {"labels": {f"k{i}": "v" for i in range(100)}},
                 {"topology": {"rack": big}}, {"gpu": {**GPU, "uuids": [big] * 8}}, {"gpu": {**GPU, "uuids": ["a b"] * 8}},
                 {"name": "a/b"}, {"name": ""}, {"name": "\u202en0"}, {"key": big}):
        bad = Node(site.stintd.port, "long")
        try:
            answer = bad.register(token, doc={**bad.registration(), **more})
        except ConnectionError:
            continue  # refused before it was read
        check(400 <= answer.status < 500, "%s: %d %s", list(more), answer.status, answer.text[:200])
    check(site.owner.get("/v1/nodes/long").status == 404, "it joined")


@attempt("a stranger with a join token", "has a billion CPUs, an exabyte, a thousand GPUs, or less than none", "a refusal each")
def capacities(site):
    rogue(site)
    token = join_token(site)
    for more in ({"cpu": 10**9}, {"cpu": -1}, {"cpu": 1e300}, {"ram": "1000000Ti"}, {"ram": "-1Gi"}, {"ram": 10**18},
                 {"gpu": {**GPU, "count": 1000}}, {"gpu": {**GPU, "count": -1}}, {"gpu": {**GPU, "count": 2}},
                 {"topology": {"nvlink": 10**9}}):
        answer = Node(site.stintd.port, "huge").register(token, **more)
        check(400 <= answer.status < 500, "%s: %d %s", more, answer.status, answer.text[:200])


@attempt("a node", "comes back with more GPUs, other GPUs, more CPUs", "what it joined with, or a failed node")
def grows(site):
    r0 = rogue(site)
    check(r0.register(cpu=128).status == 200, "more CPUs are no fault")
    check(node(site, "r0")["cpu"] == 64, "its CPUs grew by its word")
    for gpu in ({**GPU, "count": 16, "uuids": [f"G{i}" for i in range(16)]}, {**GPU, "type": "h200"}):
        site.refused(r0.register(gpu=gpu), "cannot change", 409)
        check(node(site, "r0")["gpus"] == 8 and node(site, "r0")["state"] == "failed", "it is %s", node(site, "r0"))
    check(r0.register().status == 200, "it cannot come back")
    until(lambda: r0.status(revision=r0.revision) and (r0.desired() or True) and node(site, "r0")["state"] == "ready", "r0")


@attempt("a node", "says statuses of a hundred thousand tasks and megabytes", "a refusal; it is served afterwards")
def long_status(site):
    r0 = rogue(site)
    rows = [{"job": "j1", "stay": 1, "task": i, "state": "running"} for i in range(5000)]
    site.refused(r0.status(rows))
    try:
        site.refused(r0.status([], junk="x" * (3 << 20)))
    except ConnectionError:
        pass  # refused before it was read
    as_it_was(site)


# ---- removing -------------------------------------------------------------------------------------------


@attempt("an owner by mistake", "removes a node with a job on it, and a pool with nodes", "a refusal; the job runs on")
def remove_in_use(site):
    rogue(site)
    site.refused(site.owner.call("DELETE", "/v1/nodes/n0"), "has a place there", 409)
    site.refused(site.owner.call("DELETE", "/v1/nodes/n0?force=true"), "has a place there", 409)
    site.refused(site.owner.call("DELETE", "/v1/pools/main"), "is in it", 409)
    site.kept.well()


@attempt("a machine that was removed", "speaks on, and whoever takes its name", "a refusal; the new one inherits nothing")
def removed_node(site):
    rogue(site)
    old = Node(site.stintd.port, "temp", gpu=GPU)
    check(old.register(join_token(site)).status == 201, "it does not join")
    old.status()
    check(site.owner.call("PATCH", "/v1/nodes/temp", {"state": "failed"}).status == 200, "it does not fail")
    site.refused(site.owner.call("DELETE", "/v1/nodes/temp"), "--force", 409)
    check(site.owner.call("DELETE", "/v1/nodes/temp?force=true").status == 204, "it is not removed")
    check(site.owner.get("/v1/nodes/temp").status == 404, "it is there")
    check("temp" not in site.owner.get("/v1/nodes").text, "it is on the list")
    for answer in (old.status(), old.register(), old.call("GET", "/v1/agent/desired")):
        site.refused(answer, status=401)
    new = Node(site.stintd.port, "temp", cpu=8, ram="32Gi")
    check(new.register(join_token(site)).status == 201, "the name is not free")
    check(node(site, "temp")["gpus"] == 0 and node(site, "temp")["state"] == "ready" and flags(site, "temp") == [],
          "it inherits: %s", node(site, "temp"))
    site.refused(old.register(), status=401)
    check(new.status().status == 200, "the new one is not served")
    check(site.owner.call("DELETE", "/v1/nodes/temp").status == 204, "it cannot go")


@attempt("whoever kept a join token of a removed pool", "joins another pool of that name", "a refusal")
def removed_pool(site):
    rogue(site)
    site.owner.make("/v1/pools", {"name": "brief"})
    token = join_token(site, "brief", 5)
    check(site.owner.call("DELETE", "/v1/pools/brief").status == 204, "it is not removed")
    site.refused(site.owner.get("/v1/pools/brief"), status=404)
    site.refused(site.mine.submit(pool="brief"))
    site.refused(Node(site.stintd.port, "late").register(token), "used up", 403)
    site.owner.make("/v1/pools", {"name": "brief"})
    site.refused(Node(site.stintd.port, "late").register(token), "used up", 403)
    check(site.owner.call("DELETE", "/v1/pools/brief").status == 204, "it is not removed")


# ---- strangers on the socket ---------------------------------------------------------------------------


def agent_port(site):
    return Client(site.stintd.port).get("/v1/agent/challenge").json["agent_port"]


def idle(port, n, sources, first=b""):
    """Open connections that say nothing more, from many addresses of this machine."""
    held = []
    for i in range(n):
        s = socket.socket()
        s.settimeout(5)
        try:
            s.bind((f"127.0.{i % sources // 250}.{i % sources % 250 + 2}", 0))
            s.connect(("127.0.0.1", port))
            s.sendall(first)
            held.append(s)
        except OSError:
            s.close()
    return held


def restarts(site):
    """n0's agent is killed and started again: its node is served and its job has not noticed."""
    site.kept.process.kill()
    site.kept.process.wait()
    with open(site.kept.data + ".log") as f:
        before = f.read().count("event=registered")

    def registered():
        with open(site.kept.data + ".log") as f:
            return f.read().count("event=registered") > before

    site.kept.start()
    until(registered, "n0's registration", 15)
    site.kept.well()


@attempt("strangers from 200 addresses", "hold idle sockets on the API's port while n0's agent restarts", "n0 is served")
def idle_on_api(site):
    rogue(site)
    held = idle(site.stintd.port, 6000, 200)
    try:
        restarts(site)
    finally:
        for s in held:
            s.close()
    until(lambda: Client(site.stintd.port).get("/healthz").status == 200, "the API")


@attempt("strangers from 200 addresses", "hold idle sockets on the agents' port while n0's agent restarts", "n0 is served")
def idle_on_agents(site):
    rogue(site)
    held = idle(agent_port(site), 3000, 200)
    try:
        restarts(site)
    finally:
        for s in held:
            s.close()


@attempt("strangers", "send headers a byte at a time to the agents' port", "n0 is served")
def slow_headers(site):
    rogue(site)
    held = idle(agent_port(site), 1500, 100, b"POST /v1/agent/status HTTP/1.1\r\nHost: x\r\nX: ")
    try:
        for _ in range(3):
            for s in held:
                try:
                    s.send(b"a")
                except OSError:
                    pass
            check(Node(site.stintd.port, "x").challenge(), "no challenge")
        restarts(site)
    finally:
        for s in held:
            s.close()


@attempt("strangers", "flood the agents' port with challenges and bad proofs", "statuses of r0 are answered within a second")
def flood(site):
    r0 = rogue(site)
    port, over = agent_port(site), []

    def pester():
        wire = Client(port, "node1." + "61" * 4)
        while not over:
            try:
                wire.get("/v1/agent/challenge")
                wire.get("/v1/agent/desired")
            except (OSError, Failure):
                pass
            except Exception:  # noqa: BLE001 - a connection that was cut
                wire.close()

    threads = [threading.Thread(target=pester, daemon=True) for _ in range(8)]
    for t in threads:
        t.start()
    try:
        for _ in range(20):
            began = time.monotonic()
            check(r0.status().status == 200, "r0 is refused")
            check(time.monotonic() - began < 3, "a status took %.1f s", time.monotonic() - began)
    finally:
        over.append(True)
        for t in threads:
            t.join()


@attempt("a tenant", "asks for everything but an agent's calls at the agents' port", "not found")
def api_on_agents(site):
    rogue(site)
    wire = Client(agent_port(site), site.stintd.owner_token)
    for path in ("/v1/jobs", "/v1/nodes", "/v1/accounts", "/metrics", "/openapi.json", "/v1/events"):
        site.refused(wire.get(path), status=404)


# ---- in the clear ---------------------------------------------------------------------------------------


def says(*args, seconds=10):
    """(exit status, words) of a program that should end by itself."""
    try:
        got = subprocess.run(args, capture_output=True, text=True, timeout=seconds, check=False)
        return got.returncode, got.stdout + got.stderr
    except subprocess.TimeoutExpired as e:
        return None, (e.stderr or b"").decode()


@attempt("an admin in a hurry", "points agents at a remote http://, or one that looks like loopback", "a refusal that names --insecure")
def agent_in_the_clear(site):
    for url in ("http://192.0.2.1:7878", "http://127.evil.example:7878", "http://127.0.0.1@192.0.2.1/", "http://localhost.example",
                "http://0.0.0.0:1"):
        status, words = says(os.environ["STINT_AGENT"], "--server", url, "--data", os.path.join(site.dir, "clear"), "--sim", "h100x1")
        check(status not in (0, None) and "--insecure" in words, "%s: %s %s", url, status, words)
    status, words = says(os.environ["STINT_AGENT"], "--server", "http://192.0.2.1:7878", "--data", os.path.join(site.dir, "clear"),
                         "--sim", "h100x1", "--exec", "sim", "--insecure", seconds=3)
    check(status is None and "INSECURE" in words, "--insecure is not loud: %s %s", status, words)


@attempt("an admin in a hurry", "lets stintd listen for everybody without TLS", "a refusal that names tls_cert")
def stintd_in_the_clear(site):
    for where in ("0.0.0.0:0", "[::]:0", ":0"):
        status, words = says(os.environ["STINTD"], "--data", os.path.join(site.dir, "bare"), "--listen", where)
        check(status not in (0, None) and "tls_cert" in words, "%s: %s %s", where, status, words)


wall("nodes")
