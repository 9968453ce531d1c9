#!/usr/bin/env python3
"""Figures over time: what accounts, jobs, nodes and GPUs had, second by second, by two tenants that must not see each other.

A node is spoken for by hand, so that what it measured is known. What nobody measured is unknown and not 0; so is the time in
which stintd was down. Questions that ask for too much, or for what is somebody else's, are refused with a sentence.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from harness import Client, Stintd, check, main, token  # noqa: E402
from node import Node  # noqa: E402

GPU = {"type": "h100", "count": 2, "vram": "80Gi", "uuids": ["GPU-n-0", "GPU-n-1"]}
CONFIG = "rate: 1000000\nseries_step: 1s\nseries_keep: 1h\n"


class World:
    def __init__(self, stintd):
        self.stintd, self.owner = stintd, stintd.owner
        owner = self.owner
        owner.make("/v1/types", {"name": "h100", "vram": "80Gi"})
        owner.make("/v1/pools", {"name": "main", "allow": ["host-image"]})
        self.busy, self.idle, self.above = ("w" + secrets.token_hex(6) for _ in range(3))
        owner.make("/v1/accounts", {"name": self.above})
        self.tokens = {}
        for name in (self.busy, self.idle):
            owner.make("/v1/accounts", {"name": name, "parent": self.above})
            self.tokens[name] = token(owner, name, "u" + name, "viewer")["token"]
        self.member = token(owner, self.busy, "m" + self.busy, "member")["token"]
        self.node = Node(stintd.port, "n0", gpu=GPU)
        join = owner.make("/v1/admin/join-tokens", {"pool": "main", "uses": 1})["token"]
        check(self.node.register(join).status == 201, "the node does not join")
        self.node.status()

    def client(self, name):
        return Client(self.stintd.port, self.tokens[name])

    def run(self):
        """A job on one GPU that was measured for a second: busy for 730 ms of it, at 400 W, with 20 GiB of memory."""
        job = Client(self.stintd.port, self.member).make(
            "/v1/jobs", {"name": "n" + self.busy, "gpus": 1, "limit": "1h", "command": ["true"]})["id"]
        row = {}

        def listed():
            for j in (self.node.desired(1) or {"jobs": []})["jobs"]:
                if j["job"] == job:
                    row.update({"job": job, "stay": j["stay"], "task": 0, "state": "running"})
                    self.gpu = j["tasks"][0]["devices"][0]["index"]
            return row
        self.stintd.wait(listed, "an order for " + job)
        time.sleep(1.2)  # a second of use takes a second: more would be cut
        usage = {"held_gpu_ms": 1000, "seen_gpu_ms": 1000, "busy_gpu_ms": 730, "energy_mj": 400000, "mem_mib_s": 20480}
        check(self.node.status([{**row, "usage": usage}]).status == 200, "the status is not taken")
        self.row, self.began = row, time.monotonic() - 1.2
        return job

    def goes_on(self):
        """The job is half busy, half of the memory is in use, at 200 W and 64 C."""
        ms = int((time.monotonic() - self.began) * 1000)
        usage = {"held_gpu_ms": ms, "seen_gpu_ms": ms, "busy_gpu_ms": ms // 2, "energy_mj": ms * 200, "mem_mib_s": ms * 40960 // 1000,
                 "heat_c_s": ms * 64 // 1000}
        check(self.node.status([{**self.row, "usage": usage}]).status == 200, "the status is not taken")


def series(client, **query):
    query.setdefault("since", "40m")
    answer = client.get("/v1/series?" + "&".join(f"{k}={v}" for k, v in query.items()))
    check(answer.status == 200, "%s: %d %s", query, answer.status, answer.text)
    doc = answer.json
    return doc, doc["figures"]


def known(figures, name):
    return [v for v in figures.get(name, []) if v is not None]


def what_was_there(world, job):
    busy, idle, owner = world.client(world.busy), world.client(world.idle), world.owner

    def measured():
        return known(series(busy, step="1s")[1], "utilisation")
    world.stintd.wait(measured, "a figure of what was measured")
    for client, query in ((busy, {}), (busy, {"of": "job", "name": job}), (owner, {"name": world.busy}),
                          (owner, {"name": world.above}), (owner, {}), (owner, {"of": "node", "name": "n0"}),
                          (owner, {"of": "gpu", "name": f"n0:{world.gpu}"})):
        doc, f = series(client, step="1s", **query)
        # Of all but accounts tenths of a second are kept.
        want = 0.7 if query.get("of") in ("job", "node", "gpu") else 0.73
        check(known(f, "utilisation") == [want], "%s: %s", query, known(f, "utilisation"))
        check(known(f, "gpu_power_watts") == [400], "%s: %s", query, known(f, "gpu_power_watts"))
        check(known(f, "gpu_memory_mib") == [20480], "%s: %s", query, known(f, "gpu_memory_mib"))
        check(f["gpus_held"][-1] == 1, "%s: held %s", query, f["gpus_held"][-5:])
        for name, values in f.items():
            check(len(values) == round((at(doc["until"]) - at(doc["since"])) / doc["step_seconds"]), "%s has %d values", name,
                  len(values))
    # A wide bucket that is not over yet has what there is.
    f = series(busy, step="1m")[1]
    check(known(f, "utilisation") == [0.73], "by the minute: %s", known(f, "utilisation"))
    # Any multiple is the same sums in other groups.
    f = series(busy, step="23s")[1]
    check(known(f, "utilisation") == [0.73], "by 23 seconds: %s", known(f, "utilisation"))
    # The other GPU: held by nobody, which is known, and not measured, which is not 0.
    f = series(owner, of="gpu", name=f"n0:{1 - world.gpu}", step="1s")[1]
    check(f["gpus_held"][-1] == 0 and f["failed"][-1] == 0 and "utilisation" not in f, "the other GPU: %s", list(f))
    f = series(owner, step="1s")[1]
    check(f["gpus_healthy"][-1] == 2 and f["jobs_running"][-1] == 1 and "share" not in f, "the cluster: %s", list(f))
    f = series(busy, step="1s")[1]
    check(f["share"][-1] == 0.5 and "gpus_healthy" not in f, "its share: %s", f["share"][-3:])
    # The neighbour has nothing, and sees nothing.
    doc, f = series(idle, step="1s")
    check(set(f) == {"gpus_held", "gpus_guaranteed", "gpus_floor", "gpus_waiting", "jobs_running", "jobs_waiting", "share",
                     "month_cost_udollars"}, "the neighbour's figures: %s", list(f))
    for name, values in f.items():
        check(set(values) <= {0, None}, "the neighbour's %s: %s", name, values)
    check(doc["name"] == world.idle and world.busy not in json.dumps(doc), "whose: %s", doc["name"])


def at(text):
    return time.mktime(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))


def what_is_not_theirs(world, job):
    """Same status and sentence as for what never was."""
    idle = world.client(world.idle)
    for of, theirs, never in (("account", world.busy, "wffffffffffff"), ("account", world.above, "wffffffffffff"),
                              ("job", job, "j7777777z"), ("node", "n0", "n9"), ("gpu", "n0:0", "n9:0"), ("gpu", "n0:9", "n9:9")):
        one, other = (idle.get(f"/v1/series?of={of}&name={name}") for name in (theirs, never))
        check(one.status == other.status == 404, "%s: %d, %d", of, one.status, other.status)
        check(one.json["detail"].replace(theirs, never) == other.json["detail"], "%s: %s / %s", of, one.json["detail"], other.json["detail"])
    for client in (idle, world.client(world.busy)):
        check(client.get("/v1/series?of=node&name=n0").status == 404, "a tenant sees a node")


def what_is_too_much(world):
    owner = world.owner
    for query, status, says in (
            ("step=7500ms", 400, "1s, 10s and 1m"), ("step=-1s", 400, "no multiple"), ("step=0s", 400, "no multiple"), ("step=1s%00", 400, ""),
            ("since=9d&step=1s", 400, "at most 3000"), ("since=400000h", 400, "20000"), ("since=2h&step=7s", 200, '"step_seconds":7,'), ("since=12d", 200, '"step_seconds":720,'), ("since=1d&step=1m1s", 400, "20000"),
            ("since=2000-01-01", 400, "20000"), ("since=1970-01-01T00:00:00Z&until=1970-01-01T00:01:00Z", 200, ""),
            ("since=2030-01-01", 400, "before"), ("since=1m&until=2m", 400, "before"), ("since=x", 400, "since"),
            ("of=everything", 400, "of"), ("of=node", 404, "no node"), ("of=gpu&name=n0", 404, "NODE:NUMBER"),
            ("of=gpu&name=n0:", 404, "NODE:NUMBER"), ("of=gpu&name=n0:2", 404, "has 2 GPUs"),
            ("of=gpu&name=n0:-1", 404, "NODE:NUMBER"), ("of=gpu&name=n0:0x1", 404, "NODE:NUMBER"),
            ("of=gpu&name=n0:99999999999999999999", 404, "NODE:NUMBER"), ("of=gpu&name=:", 404, "no node"),
            ("of=node&name=" + "n" * 5000, 404, ""), ("of=job&name=1", 404, "no job"), ("name=", 404, "no account"),
            ("of=job", 404, "no job"), ("step=1s&step=1s", 400, "")):
        answer = owner.get("/v1/series?" + query)
        check(answer.status in (status, 414 if len(query) > 4000 else status), "%s: %d %s", query[:60], answer.status,
              answer.text[:300])
        check(says in answer.text, "%s: %s", query[:60], answer.text[:300])
    check(world.stintd.alive(), "stintd ended")


def asked_again(world):
    """An answer that has not changed is not sent again."""
    busy = world.client(world.busy)
    query = "/v1/series?step=1s&since=%s&until=%s" % tuple(
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago)) for ago in (8, 4))
    first = busy.get(query)
    check(first.status == 200 and first.header("ETag"), "%d without a tag", first.status)
    again = busy.get(query, headers={"If-None-Match": first.header("ETag")})
    check(again.status == 304 and again.body == b"", "again: %d", again.status)


def coloured(world):
    """What the map can be coloured by: whose jobs those are, to those who may know, and what each GPU did lately."""
    owner, busy, idle = world.owner, world.client(world.busy), world.client(world.idle)
    cells = ["AA", "AA"]
    cells[world.gpu] = "AC"
    for client in (owner, busy):
        doc = client.get("/v1/devices/accounts").json
        check(doc == {"accounts": [world.busy], "devices": "".join(cells)}, "whose: %s", doc)
    check(idle.get("/v1/devices/accounts").json == {"accounts": [], "devices": "AAAA"}, "a neighbour sees whose they are")
    for figure, unit, most, low, high in (("utilisation", "%", 100, 30, 70), ("memory", "%", 100, 30, 70), ("power", "W", None, 100, 100),
                                          ("temperature", "C", 100, 55, 75)):
        def lit():
            world.goes_on()
            doc = owner.get("/v1/devices/use?figure=" + figure).json
            check(len(doc["devices"]) == 4 and doc["unit"] == unit and most in (None, doc["most"]), "%s: %s", figure, doc)
            check(doc["devices"][2 - 2 * world.gpu:][:2] == "--", "the other GPU is known: %s", doc)
            mine = doc["devices"][2 * world.gpu:][:2]
            return mine != "--" and low <= int(mine, 16) <= high
        world.stintd.wait(lit, figure + " of the GPU")
    bad = owner.get("/v1/devices/use?figure=colour")
    check(bad.status == 400 and "temperature" in bad.text, "a figure that is none: %d %s", bad.status, bad.text)
    check(busy.get("/v1/devices/use").status == 403, "a tenant is told what GPUs do")


def restarted(world, program, job):
    stintd = world.stintd
    owner = stintd.owner
    stintd.wait(lambda: series(owner, step="10s")[1].get("gpus_held"), "ten seconds in one")
    before = known(series(owner, step="1s", name=world.busy)[1], "gpus_held")
    stintd.process.send_signal(signal.SIGTERM)
    stintd.process.wait(60)
    time.sleep(3.5)
    with open(stintd.log, "w") as log:
        stintd.process = subprocess.Popen([program, "--config", os.path.join(stintd.dir, "config.yaml"), "--data",
                                           os.path.join(stintd.dir, "data")], stdout=subprocess.DEVNULL, stderr=log)
    stintd.port = stintd._port()
    owner = stintd.owner = Client(stintd.port, stintd.owner_token)

    def goes_on():
        f = series(owner, step="1s", name=world.busy)[1]["gpus_held"]
        last = [i for i, v in enumerate(f) if v is not None]
        return any(b - a > 2 for a, b in zip(last, last[1:])) and f
    stintd.wait(goes_on, "a gap, and figures behind it")
    after = known(series(owner, step="1s", name=world.busy)[1], "gpus_held")
    check(after[:len(before)] == before, "what was there is not there any more: %d, %d", len(before), len(after))
    f = series(owner, of="job", name=job, step="1s")[1]
    check(known(f, "utilisation")[:1] == [0.7], "what was measured before: %s", known(f, "utilisation"))


def configured(program):
    """Nobody has to keep them; and too narrow buckets are refused with a sentence."""
    stintd = Stintd(program, config="series_step: 0s\n")
    try:
        answer = stintd.owner.get("/v1/series")
        check(answer.status == 404 and "series_step is 0" in answer.text, "%d %s", answer.status, answer.text)
    finally:
        stintd.stop()
    try:
        Stintd(program, config="series_step: 20ms\n").stop()
        check(False, "buckets of 20 ms are taken")
    except Exception as refused:  # noqa: BLE001
        check("series_step" in str(refused) and "1s" in str(refused), "%s", refused)


def run(program):
    stintd = Stintd(program, config=CONFIG)
    try:
        world = World(stintd)
        job = world.run()
        what_was_there(world, job)
        what_is_not_theirs(world, job)
        what_is_too_much(world)
        asked_again(world)
        coloured(world)
        restarted(world, program, job)
    finally:
        stintd.stop()
    configured(program)
    print("figures over time are everybody's own")


if __name__ == "__main__":
    main(run)
