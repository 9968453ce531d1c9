#!/usr/bin/env python3
"""Incidents of nodes: what agents that are spoken for by hand say becomes one incident, a storm takes out no more than it may, and a
tenant is told of the nodes that its jobs were on and of nobody else.
"""

import json
import os
import sys
import time
from datetime import datetime

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, Stream, check, main  # noqa: E402
from nodes import NODES, World  # noqa: E402

def told(world):
    """A fault under a job: its account hears of the node and the job, the other one of nothing."""
    job, name = world.job(world.here)
    other, elsewhere = world.job(world.there)
    stream = Stream(world.stintd.port, world.stintd.owner_token)
    check(stream.wait(lambda s: b"200 OK" in s.bytes()), "a stream does not open")
    world.sick(name)
    world.until(lambda: world.state(name) == "failed", "the node has not failed")
    rows = world.incidents(world.owner)
    check(len(rows) == 1, "the owner sees %s", rows)
    row = rows[0]
    check((row["cause"], row["fault"], row["scope"], row["state"]) == ("hardware", "xid", "gpu", "open"), "%s", row)
    check(row["reason"] == "GPU 1 had XID 79 and needs a reboot" and row["times"] == 1, "%s", row)
    check(row["nodes"][0]["code"] == 79 and row["nodes"][0]["gpu"] == 1, "%s", row)
    mine = world.incidents(world.who[world.here])
    check([r["id"] for r in mine] == [row["id"]], "its tenant sees %s", mine)
    check(mine[0]["jobs"] == [{"job": job, "node": name}], "%s", mine)
    check(not {"reason", "times", "breaker"} & set(mine[0]), "a tenant is told %s", mine[0])
    check(world.who[world.here].get("/v1/incidents/" + row["id"]).json["about"] == "a GPU had an error", "no words")
    check(world.incidents(world.who[world.there]) == [], "a stranger sees it")
    for query in ("?all=true", "?node=" + name, "?all=true&node=nowhere"):
        check(world.incidents(world.who[world.there], query) == [], "a stranger sees it with %s", query)
    check(world.who[world.there].get("/v1/incidents/" + row["id"]).status == 404, "a stranger opens it")
    for who in (world.here, world.there):
        answer = world.who[who].call("POST", f"/v1/incidents/{row['id']}/reset")
        check(answer.status == 403, "a tenant resets it: %d", answer.status)
    check(stream.wait(lambda s: any(k == "incident" for _, k, _ in s.events())), "no event")
    event = next(json.loads(d) for _, k, d in stream.events() if k == "incident")
    check((event["incident"], event["state"], event["node"]) == (row["id"], "opened", name), "%s", event)
    stream.close()
    # The job goes on elsewhere, and the node comes back.
    world.until(lambda: world.who[world.here].get("/v1/jobs/" + job).json["state"] == "running", "the job does not go on")
    world.health[name] = {"health": "ok"}
    world.until(lambda: world.state(name) == "ready", "the node does not come back")
    world.until(lambda: not world.incidents(world.owner), "the incident is not over")
    over = world.incidents(world.owner, "?all=true")
    check(over[0]["state"] == "over" and over[0]["nodes"][0]["over"] and not over[0]["nodes"][0]["held"], "%s", over)
    both = {job: world.here, other: world.there}
    for j, account in both.items():
        check(world.who[account].call("DELETE", "/v1/jobs/" + j).status in (200, 202, 204), "cannot cancel %s", j)
    world.until(lambda: all(world.who[a].get("/v1/jobs/" + j).json["state"] == "cancelled" for j, a in both.items()), "not over")


def storm(world):
    """Every agent says the same: as many nodes as may be are taken out, jobs of the others go on, and an owner is asked to look."""
    job, name = world.job(world.here)
    others = [n for n in world.nodes if n != name]
    for n in others[:3] + [name] + others[3:]:
        world.sick(n, {"kind": "driver"}, "the driver does not answer")
        world.say(n)
        world.stintd.wait(lambda n=n: world.state(n) != "ready", n + " is ready")
    for _ in range(3):
        world.turn()
    states = list(world.states().values())
    check((states.count("failed"), states.count("suspect")) == (3, NODES - 3), "the storm leaves %s", world.states())
    check(world.who[world.here].get("/v1/jobs/" + job).json["state"] == "running", "a job was taken out by the storm")
    row = world.incidents(world.owner)[0]
    check(row["breaker"] and row["times"] < 3 * NODES, "%s", row)
    check(len(row["nodes"]) == NODES and sum(n["held"] for n in row["nodes"]) == NODES - 3, "%s", row)
    mine = world.incidents(world.who[world.here])
    check(len(mine) == 1 and [n["node"] for n in mine[0]["nodes"]] == [name], "a tenant sees %s", mine)
    # A task that dies on a node that is held goes elsewhere, and fails nobody.
    world.rows[name][job] = {**world.rows[name][job], "state": "exited", "exit_code": 1}
    world.say(name)
    world.until(lambda: world.who[world.here].get("/v1/jobs/" + job).json["state"] == "pending", "the job does not wait again")
    answer = world.owner.call("POST", f"/v1/incidents/{row['id']}/reset")
    check(answer.status == 200, "a reset: %d %s", answer.status, answer.text)
    check(not world.incidents(world.owner)[0]["breaker"], "it is held as before")
    check(world.owner.call("POST", f"/v1/incidents/{row['id']}/reset").status == 409, "it is reset twice")
    for n in world.nodes:
        world.health[n] = {"health": "ok"}
    world.until(lambda: set(world.states().values()) == {"ready"}, "not all come back")
    world.until(lambda: not world.incidents(world.owner), "the incident is not over")
    text = world.stintd.client(world.stintd.owner_token).get("/metrics").text
    check('stint_incidents_open{cause="software"} 0' in text, "the metrics do not say so")


def with_its_node(world):
    """A job that is to fail with its node does, says so, and its record has what was lost; one that waits is in the incident too."""
    body = {"name": "fails", "gpus": 2, "limit": "1h", "command": ["true"], "on_fault": "fail"}
    job = world.who[world.here].make("/v1/jobs", body)["id"]
    get = lambda: world.who[world.here].get("/v1/jobs/" + job).json
    world.until(lambda: get()["state"] == "running", "the job does not run")
    name = next(n for n in world.nodes if job in world.rows[n])
    world.stintd.wait(lambda: time.time() > begun(get()) + 1.2, "time goes on")
    world.sick(name, {"kind": "gpu-lost", "gpu": 0}, "GPU 0 does not answer")
    world.until(lambda: get()["state"] == "failed", "the job is not failed")
    check(get()["reason"] == f"node {name} failed under it (on_fault: fail)", "%s", get())
    check(get()["lost_gpu_seconds"] >= 2, "it lost %s", get()["lost_gpu_seconds"])
    rows = world.incidents(world.who[world.here], "?job=" + job)
    check(len(rows) == 1 and rows[0]["fault"] == "gpu-lost", "its incidents are %s", rows)
    check(world.incidents(world.who[world.there], "?all=true&job=" + job) == [], "a stranger asks by job")
    check(world.incidents(world.owner, "?all=true&job=nobody") == [], "no job has incidents")
    world.health[name] = {"health": "ok"}
    world.until(lambda: world.state(name) == "ready", "the node does not come back")
    wrong = world.who[world.here].post("/v1/jobs", {**body, "on_fault": "never"})
    check(wrong.status == 400 and "requeue" in wrong.text, "%d %s", wrong.status, wrong.text)


def begun(job):
    return datetime.fromisoformat(job["started"].replace("Z", "+00:00")).timestamp()


def lies(world):
    """What an agent may not say of itself, or says badly, makes no incident of that kind and no error."""
    for i, fault in enumerate(({"kind": "silent"}, {"kind": "checker"}, {"kind": 7, "gpu": "x", "code": -1},
                               {"kind": "xid", "gpu": 99, "code": 10**15}, [], "xid")):
        world.health["n0"] = {"health": "hold", "reason": "a\u202eb", "fault": fault}
        world.until(lambda: world.state("n0") != "ready", "it is ready though it says that it cannot be used")
        row = world.incidents(world.owner)[0]
        check(row["fault"] in ("other", "xid"), "%s became %s", fault, row)
        check(all(n.get("gpu", 0) < 16 and n.get("code", 0) < 10000 for n in row["nodes"]), "%s", row)
        world.health["n0"] = {"health": "ok"}
        world.until(lambda: world.state("n0") == "ready", "it does not come back")


def run(program):
    config = "engine: native\nagent_lease: 60s\nrate: 100000\n" \
        "policy: {notice: 0s, grace: 0s, min_run: 0s, cooldown: 0s, incident_quiet: 1s, breaker_share: 0.1, retire_after: 0}\n"
    stintd = Stintd(program, config=config)
    try:
        world = World(stintd)
        told(world)
        storm(world)
        with_its_node(world)
        lies(world)
    finally:
        stintd.stop()


main(run)
