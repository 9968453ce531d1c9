#!/usr/bin/env python3
"""Remedies: the site's program is told what to do about a node that is out of service, once, and the journal says what came of it. A
program that hangs, breaks or talks too much harms nobody.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, check, main  # noqa: E402
from nodes import World  # noqa: E402

PROGRAM = """#!/bin/sh
here=$(dirname "$0")
cat >"$here/asked.$$"
mv "$here/asked.$$" "$here/asked-$(ls "$here" | grep -c '^asked-')"
env >"$here/env"
case $(cat "$here/mode") in
good) echo '{"text": "the board is asked\\u0007 to reset"}' ;;
fails) echo '{"text": "no such board"}'; exit 3 ;;
hangs) sleep 1000 & sleep 1000 ;;
babbles) head -c 3000000 /dev/zero | tr '\\0' x ;;
mute) ;;
gone) exit 127 ;;
esac
"""


class Site:
    def __init__(self, stintd, world):
        self.stintd, self.world = stintd, world

    def mode(self, word):
        with open(os.path.join(self.stintd.dir, "mode"), "w") as f:
            f.write(word)

    def asked(self):
        names = sorted(n for n in os.listdir(self.stintd.dir) if n.startswith("asked-"))
        return [json.load(open(os.path.join(self.stintd.dir, n))) for n in names]

    def journal(self, name):
        answer = self.world.owner.get(f"/v1/nodes/{name}/remedies")
        check(answer.status == 200, "%d %s", answer.status, answer.text)
        return answer.json["remedies"]

    def ended(self, name, n):
        rows = self.journal(name)
        return len(rows) == n and rows[-1]["state"] != "running"


def comes_back(site, name):
    site.world.health[name] = {"health": "ok"}
    site.world.until(lambda: site.world.state(name) == "ready", "it does not come back")


def each_way(site):
    world = site.world
    rows = (("good", "done", "the board is asked"), ("fails", "failed", "no such board"), ("hangs", "timeout", "killed"),
            ("babbles", "broken", "no JSON"), ("mute", "broken", "no JSON"), ("gone", "broken", "127"))
    for n, (mode, state, text) in enumerate(rows):
        site.mode(mode)
        world.sick("n0")
        world.until(lambda n=n: site.ended("n0", n + 1), f"{mode}: no end of the remedy")
        last = site.journal("n0")[-1]
        check((last["state"], last["remedy"], last["fault"], last["gpu"]) == (state, "reboot", "xid", 1), "%s: %s", mode, last)
        check(text in last["text"] and "\a" not in last["text"], "%s: %s", mode, last)
        check(last["incident"] == world.incidents(world.owner, "?all=true")[0]["id"], "%s: %s", mode, last)
        for _ in range(3):
            world.turn()
        check(len(site.journal("n0")) == n + 1, "%s: done again for the same fault", mode)
        comes_back(site, "n0")
    asks = site.asked()
    check(len(asks) == len(rows) and len({a["key"] for a in asks}) == len(rows), "asked %s", asks)
    check((asks[0]["node"], asks[0]["gpu"], asks[0]["code"], asks[0]["remedy"]) == ("n0", 1, 79, "reboot"), "%s", asks[0])
    with open(os.path.join(site.stintd.dir, "env")) as f:
        check("STINT" not in f.read(), "the program has something of ours")


def waits(site):
    """A node that failed a test is left alone until its last job has gone."""
    world, node = site.world, site.world.nodes["n1"]
    site.mode("good")
    doc = node.registration(labels={"tests": "quick"})
    check(node.register(doc=doc).status == 200, "n1 does not come back")

    def answer(passed, **more):
        got = node.status(world.rows["n1"].values()).json.get("test")
        if got:
            node.status(world.rows["n1"].values(), test={"no": got, "passed": passed, "level": "quick", **more})
        return got
    world.until(lambda: answer(True) or world.state("n1") == "ready", "n1 is not tested")
    world.until(lambda: world.state("n1") == "ready", "n1 is not ready")
    for name in world.nodes:
        if name not in ("n1",):
            check(world.owner.call("PATCH", "/v1/nodes/" + name, {"state": "draining"}).status == 200, "cannot drain %s", name)
    job, name = world.job(world.here)
    check(name == "n1", "the job is on %s", name)
    check(world.owner.call("POST", "/v1/nodes/n1/test").status == 202, "no test")
    world.until(lambda: answer(False, reason="GPU 1: no", fault={"kind": "test", "gpu": 1}), "n1 is not asked")
    world.until(lambda: world.state("n1") == "repair", "n1 is not in repair")
    end = time.monotonic() + 5 # two looks of stintd for something to do
    world.until(lambda: time.monotonic() > end, "time goes on")
    check(site.journal("n1") == [], "it did not wait: %s", site.journal("n1"))
    check(world.who[world.here].get("/v1/jobs/" + job).json["state"] == "running", "the job does not run")
    world.who[world.here].call("DELETE", "/v1/jobs/" + job)
    world.until(lambda: site.ended("n1", 1), "nothing is done when nobody is there")
    check(site.journal("n1")[0]["remedy"] == "inspect" and site.journal("n1")[0]["state"] == "done", "%s", site.journal("n1"))


def not_for_tenants(site):
    world = site.world
    for client in (world.who[world.here], world.who[world.there]):
        check(client.get("/v1/nodes/n0/remedies").status == 403, "a tenant reads the journal")
    check(world.owner.get("/v1/nodes/nowhere/remedies").status == 404, "a node that is not there")


def without_a_program(program, config):
    stintd = Stintd(program, config=config)
    try:
        world = World(stintd)
        site = Site(stintd, world)
        world.sick("n0")
        world.until(lambda: site.ended("n0", 1), "nothing is said")
        check(site.journal("n0")[0]["state"] == "said", "%s", site.journal("n0"))
    finally:
        stintd.stop()


def run(program):
    config = "engine: native\nagent_lease: 60s\nrate: 100000\n" \
        "policy: {notice: 0s, grace: 0s, incident_quiet: 1s, retire_after: 0, breaker_nodes: 8}\n"
    without_a_program(program, config)
    stintd = Stintd(program, config=config, files={"remedy": PROGRAM}, more="remedy: {dir}/remedy\nremedy_timeout: 2s\n")
    try:
        site = Site(stintd, World(stintd))
        each_way(site)
        waits(site)
        not_for_tenants(site)
    finally:
        stintd.stop()


main(run)
