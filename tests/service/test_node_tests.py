#!/usr/bin/env python3
"""Tests of nodes by agents that are spoken for by hand, some of which lie: what is asked for is told, what is said is kept field by
field, and neither a node nor a tenant gets further than that.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from harness import Client, Stintd, check, main, token  # noqa: E402
from node import Node  # noqa: E402

GPUS = 2


class World:
    def __init__(self, stintd):
        self.stintd, self.owner = stintd, stintd.owner
        self.owner.make("/v1/types", {"name": "h100", "vram": "80Gi"})
        self.owner.make("/v1/pools", {"name": "main", "allow": ["host-image"]})
        self.owner.make("/v1/accounts", {"name": "acme"})
        self.tenant = Client(stintd.port, token(self.owner, "acme", "mia", "admin")["token"])
        self.join = self.owner.make("/v1/admin/join-tokens", {"pool": "main", "uses": 9})["token"]
        self.answer = {}

    def node(self, name, labels):
        gpu = {"type": "h100", "count": GPUS, "vram": "80Gi", "uuids": [f"GPU-{name}-{i}" for i in range(GPUS)]}
        node = Node(self.stintd.port, name, gpu=gpu, labels=labels)
        check(node.register(self.join).status == 201, "%s does not join", name)
        return node

    def say(self, node, test=None):
        more = {"test": test} if test is not None else {}
        answer = node.status([], node={"health": "ok"}, **more)
        self.answer[node.name] = answer.json
        return answer

    def state(self, node):
        return self.owner.get("/v1/nodes/" + node.name).json["state"]

    def asked(self, node):
        """What the node is asked for, once it is."""
        def there():
            check(self.say(node).status == 200, "a status is refused")
            return self.answer[node.name].get("test", 0) > 0
        self.stintd.wait(there, node.name + " is asked for no test")
        return self.answer[node.name]["test"], self.answer[node.name]["trial"]

    def passes(self, node):
        no, trial = self.asked(node)
        result = {"no": no, "level": trial["level"], "version": 2, "ms": 5, "passed": True, "reason": "",
                  "results": [{"check": "inventory", "verdict": "pass", "value": 2, "limit": 2}]}
        self.until(node, result, "ready")

    def until(self, node, result, state):
        def there():
            self.say(node, result)
            return self.state(node) == state
        self.stintd.wait(there, f"{node.name} is not {state}")

    def tests(self, node, client=None):
        answer = (client or self.owner).get(f"/v1/nodes/{node.name}/tests")
        check(answer.status == 200, "%d %s", answer.status, answer.text)
        check(len(answer.text) < 400000, "%d bytes of tests", len(answer.text))
        return answer.json["tests"]

    def ask(self, node, level, client=None):
        return (client or self.owner).call("POST", f"/v1/nodes/{node.name}/test", {"level": level})


def told(world):
    """A level and limits reach the node, and only owners ask for them."""
    node = world.node("n1", {"tests": "burn"})
    check(world.asked(node)[1] == {"level": "quick", "type": "h100"}, "a new node is asked for %s", world.answer["n1"])
    world.passes(node)
    for who, status in ((world.tenant, 403), (Client(world.stintd.port, "nobody"), 401)):
        check(world.ask(node, "short", who).status == status, "a test can be asked for by anybody")
        check(who.call("PATCH", "/v1/types/h100/limits", {"peer": 0}).status == status, "limits can be changed by anybody")
    check(node.call("POST", "/v1/nodes/n1/test", {"level": "burn"}).status in (401, 403), "a node asks for tests")
    for body in ({"level": "hard"}, {"level": 7}, {"levels": "short"}, ["short"], {"level": None}):
        answer = world.owner.call("POST", "/v1/nodes/n1/test", body)
        check(answer.status == 400, "%s: %d", body, answer.status)
    for body in ({"warp": 1}, {"peer": "1"}, {"peer": -1}, {"peer": 1.5}, {"pattern-share": 100}, {"peer": 10**30}, {}, [], {"peer": True}):
        answer = world.owner.call("PATCH", "/v1/types/h100/limits", body)
        check(answer.status in (400, 422), "%s: %d %s", body, answer.status, answer.text)
    check(world.state(node) == "ready", "the node is %s", world.state(node))
    limits = world.owner.get("/v1/types/h100/limits").json["limits"]
    check(all(row["value"] == row["default"] for row in limits), "%s", limits)
    # All of them, as long as they can be: they still reach it.
    most = {"pattern-share": 99, "siblings": 100, "temperature": 200, "throttle": 65535}
    most = {row["limit"]: most.get(row["limit"], 1000000) for row in limits}
    check(world.owner.call("PATCH", "/v1/types/h100/limits", most).status == 200, "limits are refused")
    check(world.ask(node, "short").status == 202, "no test")
    check(world.state(node) == "testing", "it is %s", world.state(node))
    check(world.asked(node)[1] == {"level": "short", "type": "h100", "limits": most}, "it is told %s", world.answer["n1"])
    check(world.owner.call("PATCH", "/v1/types/h100/limits", dict.fromkeys(most)).status == 200, "limits do not go back")
    world.passes(node)
    check(world.tests(node)[-1]["level"] == "short", "%s", world.tests(node)[-1])
    world.ask(node, "long")
    check(world.asked(node)[1] == {"level": "long", "type": "h100", "limits": {}}, "it is told %s", world.answer["n1"])
    check(world.ask(node, "quick").status == 202, "no quick test")
    check(world.asked(node)[1]["level"] == "quick", "a long test cannot be taken back")
    world.passes(node)


def lies(world):
    """What a node says of a test is read field by field; of another test, another level or another node it is nothing."""
    node, other = world.node("n2", {"tests": "burn"}), world.node("n3", {"tests": "burn"})
    world.passes(node)
    world.passes(other)
    world.ask(node, "short")
    no, _ = world.asked(node)
    good = {"no": no, "level": "short", "version": 2, "ms": 5, "passed": True, "reason": "", "results": []}
    for wrong in (no + 1, no - 1, 2**62):
        check(world.say(node, {**good, "no": wrong}).status == 200, "a status is refused")
    for wrong in ("7", 7, [], {**good, "no": 0}, {**good, "no": -1}, {**good, "passed": "yes"}, {"no": no},
                  {**good, "results": "x" * 70000}):
        answer = world.say(node, wrong)
        check(answer.status in (400, 403, 413), "%s: %d", str(wrong)[-60:], answer.status)
    check(world.state(node) == "testing", "it is %s", world.state(node))
    # A quick one for a short one: nobody learns from it, and it is asked again.
    before = len(world.tests(node))
    world.stintd.wait(lambda: world.say(node, {**good, "level": "quick"}) and len(world.tests(node)) > before, "nothing is noted")
    row = world.tests(node)[-1]
    check(row["broken"] and not row["passed"] and "a short one was asked for" in row["reason"], "%s", row)
    check(world.state(node) == "testing", "it is %s", world.state(node))
    kinds = [r["cause"] for r in world.owner.get("/v1/incidents").json["incidents"]]
    check(kinds == ["configuration"], "incidents of %s", kinds)
    # Rows of checks that are none, of GPUs that no node has, and much of everything; in the name of another node.
    no, trial = world.asked(node)
    check(trial["level"] == "short", "it is asked for %s", trial)
    row = {"check": "pattern", "gpu": 1, "verdict": "fail", "value": 3, "limit": 0, "unit": "<b>", "x": "y"}
    rows = [row, {**row, "gpu": 99}, {**row, "gpu": -1}, {**row, "gpu": "0"}, {**row, "check": "<script>"}, {**row, "verdict": "maybe"},
            {**row, "value": "much"}, 7, None, [row]] + [{"check": "ecc", "gpu": 0, "verdict": "skip"}] * 1200
    bad = {**good, "no": no, "passed": False, "name": "n3", "node": "n3", "at": 1, "test": 1, "by": "stintd", "broken": True,
           "reason": "GPU 1: bad\x1b[2J\nevent=node_ready " + "x" * 400, "with": "\x07cuda", "results": rows, "secret": "s" * 3000,
           "fault": {"kind": "silent", "gpu": 77, "code": 10**9}}
    world.until(node, bad, "repair")
    check(world.state(other) == "ready", "another node is %s", world.state(other))
    for client in (world.owner, world.tenant):
        last = world.tests(node, client)[-1]
        check(set(last) == {"at", "level", "version", "ms", "reason", "with", "results", "test", "passed"}, "%s is kept", sorted(last))
        check(last["at"].startswith("20") and last["test"] == no, "%s %s", last["at"], last["test"])
        check("\x1b" not in last["reason"] and "\n" not in last["reason"] and len(last["reason"]) < 300, "%s", last["reason"])
        checks = [(r["check"], r.get("gpu"), r["verdict"], r.get("value"), r.get("unit")) for r in last["results"]]
        check(checks[0] == ("pattern", 1, "fail", 3, "words"), "%s", checks[0])
        check(checks[1] == ("pattern", 1, "fail", None, None) and len(checks) < 600, "%s and %d more", checks[1], len(checks))
        check(all(c[:3] == ("ecc", 0, "skip") for c in checks[2:]), "%s", checks[2:9])
    # What failed short comes back by a short one; quick ones in between do not push it out.
    world.until(node, None, "repair")
    no, trial = world.asked(node)
    check(trial["level"] == "short", "it is asked for %s", trial)
    world.passes(node)
    for _ in range(12):
        check(world.ask(node, "quick").status == 202, "no quick test")
        no, _ = world.asked(node)
        world.stintd.wait(lambda no=no: world.say(node, {**good, "no": no, "level": "quick"}) and world.tests(node)[-1]["test"] == no, "none")
    levels = [t["level"] for t in world.tests(node)]
    check(levels.count("quick") == 10 and levels.count("short") == 2, "%s", levels)


def cannot(world):
    """A node whose agent makes no such tests is not asked for one."""
    node = world.node("n4", {"tests": "quick"})
    world.passes(node)
    answer = world.ask(node, "short")
    check(answer.status == 409 and "quick tests at most" in answer.text, "%d %s", answer.status, answer.text)
    check(world.state(node) == "ready", "it is %s", world.state(node))
    bare = world.node("n5", {})
    world.say(bare)
    for level in ("quick", "short"):
        answer = world.ask(bare, level)
        check(answer.status == 409 and "no agent that could test it" in answer.text, "%d %s", answer.status, answer.text)
    check(world.owner.call("POST", "/v1/nodes/nowhere/test", {"level": "short"}).status == 404, "a node that is none is tested")
    check(world.tenant.get("/v1/types/h999/limits").status == 404, "a type that is none has limits")


def run(program):
    config = "engine: native\nagent_lease: 60s\nrate: 100000\npolicy: {suspect: 1s, retest: 1s, breaker_nodes: 50, retire_after: 0}\n"
    stintd = Stintd(program, config=config)
    try:
        world = World(stintd)
        told(world)
        lies(world)
        cannot(world)
    finally:
        stintd.stop()


main(run)
