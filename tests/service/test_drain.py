#!/usr/bin/env python3
"""Nodes that drain by a time: jobs are told at once and are off by then, each in its own way; nobody else hears of them, and nobody
but the owner may say it.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from harness import Client, Stintd, Stream, check, fleet, main, token  # noqa: E402

CONFIG = """rate: 1000000
policy: {notice: 1s, grace: 1s}
"""


def seconds(text):
    from datetime import datetime

    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def drain(owner, name, status=200, **more):
    answer = owner.call("PATCH", "/v1/nodes/" + name, {"state": "draining", **more})
    check(answer.status == status, "drain %s %s: %d %s", name, more, answer.status, answer.text)
    return answer


def bad_words(owner):
    """One clear sentence for what cannot be meant; and nothing has changed."""
    for more, says in (
        ({"then": "requeue"}, "`then` needs a time"),
        ({"by": "2031-01-01 09:00", "within": "1h"}, "not both"),
        ({"within": "0s"}, "over already"),
        ({"by": "2001-01-01 09:00"}, "over already"),
        ({"by": "2099-01-01 09:00"}, "366 days"),
        ({"within": "1h", "then": "explode"}, "requeue"),
        ({"within": "soon"}, "within"),
        ({"by": "tomorrow 09:00", "zone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"by": "tomorrow 09:00; rm -rf /"}, "tomorrow 09:00; rm -rf /"),
        ({"within": "9999999999999d"}, ""),
        ({"reason": "two\nlines"}, "two"),
        ({"reason": "x" * 513}, "at most 512 bytes"),
        ({"reason": "x" * 100000}, ""),
        ({"within": ["1h"]}, ""),
        ({"until": "1h"}, "until"),
    ):
        answer = owner.call("PATCH", "/v1/nodes/n00", {"state": "draining", **more})
        check(answer.status in (400, 403, 413, 422), "%s: %d %s", more, answer.status, answer.text)
        check(says in answer.json["detail"], "%s: %s", more, answer.json)
    answer = owner.call("PATCH", "/v1/nodes/n00", {"state": "failed", "within": "1h"})
    check(answer.status == 400 and "only a node that drains" in answer.text, "%s", answer.text)
    check(owner.get("/v1/nodes/n00").json["state"] == "ready", "n00 is not ready any more")


def story(program, stintd):
    owner = stintd.owner
    fleet(owner, nodes=1, gpus=4)
    who = {}
    for name in ("here", "there"):
        owner.make("/v1/accounts", {"name": name, "guarantee": {"gpu": 2}})
        who[name] = Client(stintd.port, token(owner, name, "u" + name, "admin")["token"])
    bad_words(owner)

    jobs = {}
    for name, way in (("here", "checkpoint"), ("here", "requeue"), ("there", "requeue")):
        body = {"name": way, "gpus": 1, "on_preempt": way, "command": ["true"], "limit": "1h"}
        jobs[name, way] = who[name].make("/v1/jobs", body)["id"]
    state = lambda key: who[key[0]].get("/v1/jobs/" + jobs[key]).json["state"]
    stintd.wait(lambda: all(state(k) == "running" for k in jobs), "they do not run")

    # Tenants, strangers and nodes may not say it, whatever they name.
    for client in (*who.values(), Client(stintd.port), Client(stintd.port, "stint_" + "A" * 43)):
        for name in ("n00", "nowhere"):
            answer = client.call("PATCH", "/v1/nodes/" + name, {"state": "draining", "within": "1s"})
            check(answer.status in (401, 403), "a tenant drains: %d", answer.status)

    streams = {n: Stream(stintd.port, who[n].token) for n in who}
    for s in streams.values():
        check(s.wait(lambda s: b"200 OK" in s.bytes()), "a stream does not open")
    # A long time first: everybody is told, nobody goes; then a shorter one.
    drain(owner, "n00", within="1h", reason="new fans for ${HOME}")
    told = lambda s: [json.loads(d) for _, k, d in s.events() if k == "drain"]
    for name, s in streams.items():
        mine = {j for (n, _), j in jobs.items() if n == name}
        check(s.wait(lambda s: len(told(s)) == len(mine)), "%s is not told: %s", name, s.bytes())
        for event in told(s):
            check(event["job"] in mine, "%s is told of %s", name, event)
            check((event["node"], event["then"], event["state"]) == ("n00", "requeue", "running"), "%s", event)
            check("HOME" not in json.dumps(event), "a tenant reads what was written for operators: %s", event)
    check(all(state(k) == "running" for k in jobs), "somebody has gone at once")
    node = who["here"].get("/v1/nodes/n00").json
    check(node["drain_then"] == "requeue" and "reason" not in node, "%s", node)
    check(owner.get("/v1/nodes/n00").json["reason"] == "new fans for ${HOME}", "the owner has no reason")
    by = seconds(node["drain_by"])

    drain(owner, "n00", within="3s", then="requeue")
    check(seconds(owner.get("/v1/nodes/n00").json["drain_by"]) < by, "it has the same time")
    stintd.wait(lambda: all(state(k) == "pending" for k in jobs), "they do not leave")
    for key, job in jobs.items():
        s = streams[key[0]]
        kinds = lambda: [k for _, k, d in s.events() if json.loads(d).get("job") == job]
        check(s.wait(lambda _: "requeue" in kinds()), "%s: %s", key, kinds())
        check("notify" in kinds() and (("checkpoint" in kinds()) == (key[1] == "checkpoint")), "%s: %s", key, kinds())
    why = who["here"].get(f"/v1/jobs/{jobs['here', 'requeue']}/why").json
    check("nodes_down" in [r["code"] for r in why["reasons"]], "%s", why)
    check(owner.get("/v1/nodes/n00").json["state"] == "draining", "it does not drain any more")

    # What is noted: who, what, by when; and it outlives a restart.
    rows = owner.get("/v1/audit?what=node.state").json["rows"]
    check(rows[0]["detail"]["state"] == "draining" and rows[0]["detail"]["then"] == "requeue", "%s", rows[0])
    drain(owner, "n00", within="2h", then="pause")
    before = owner.get("/v1/nodes/n00").json
    stintd.again(program)
    owner, who = stintd.owner, {n: Client(stintd.port, c.token) for n, c in who.items()}
    after = owner.get("/v1/nodes/n00").json
    check([after[k] for k in ("drain_by", "drain_then", "state")] == [before[k] for k in ("drain_by", "drain_then", "state")],
          "%s became %s", before, after)
    check(owner.call("PATCH", "/v1/nodes/n00", {"state": "ready"}).status == 200, "it does not come back")
    stintd.wait(lambda: all(state(k) == "running" for k in jobs), "they do not run again")
    check("drain_by" not in owner.get("/v1/nodes/n00").json, "it has a time still")
    for s in streams.values():
        s.close()


def run(program):
    stintd = Stintd(program, config=CONFIG)
    try:
        story(program, stintd)
    finally:
        stintd.stop()


main(run)
