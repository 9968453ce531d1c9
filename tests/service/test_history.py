#!/usr/bin/env python3
"""GET /v1/history: the fleet at a past moment is what it was then; everybody sees their own part of it, as it was theirs.

What is asked live at a moment is kept, and asked for again later: after other things happened, from snapshots, from marks,
forwards, backwards, and after a restart.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, check, fleet, main, token  # noqa: E402

CONFIG = "rate: 1000000\nsnapshot_rows: 40\npolicy: {min_run: 0s, cooldown: 0s, notice: 0s}\n"
WORDS = ("north", "nora", "n-train", "n-claim", "n-wait")  # what south must never read


def moment():
    now = time.time()
    time.sleep(0.01)  # what comes next is later
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + ".%03dZ" % int(now * 1000 % 1000)


def ask(client, at, **more):
    """An answer, however often stintd says that it is still playing."""
    path = "/v1/history?at=" + at + "".join(f"&{key}={value}" for key, value in more.items())
    for _ in range(600):
        answer = client.get(path)
        if answer.status != 503:
            return answer
        time.sleep(0.1)
    return answer


def past(client, at, **more):
    answer = ask(client, at, **more)
    check(answer.status == 200, "at %s: %s", at, answer.text)
    return answer.json


def live(client):
    """What history is compared with."""
    devices, counts = client.get("/v1/devices").json, client.get("/v1/counts").json
    waiting = client.get("/v1/jobs?state=pending&limit=1000&fields=id").json["jobs"]
    return {**devices, "states": counts["states"], "waiting": sorted(job["id"] for job in waiting)}


def same(was, now, what):
    for key in ("runs", "nodes", "devices", "states"):
        check(now[key] == was[key], "%s: %s is %s, and was %s", what, key, json.dumps(now[key])[:400], json.dumps(was[key])[:400])
    ids = sorted(job["job"] for job in now["waiting"])
    check(ids == was["waiting"] and now["waiting_more"] == 0, "%s: %s wait, and %s did", what, ids, was["waiting"])
    check(now["exact"], "%s: it is not exact", what)


class World:
    def __init__(self, stintd):
        self.stintd, self.owner = stintd, stintd.owner
        fleet(self.owner, nodes=4, gpus=8)
        self.owner.make("/v1/accounts", {"name": "north", "guarantee": {"gpu": 24}})
        self.owner.make("/v1/accounts", {"name": "south"})
        self.tokens = {"owner": self.owner.token, "north": token(self.owner, "north", "nora", "member")["token"],
                       "south": token(self.owner, "south", "sam", "viewer")["token"]}
        self.seen = []  # (moment, {who: what was there})
        self.callers()

    def callers(self):
        self.clients = {who: self.stintd.client(text) for who, text in self.tokens.items()}
        self.owner = self.stintd.owner

    def job(self, account, name, tasks=1, gpus=8, **more):
        return self.owner.make("/v1/jobs", {"name": name, "account": account, "user": "nora" if account == "north" else "sam", "tasks": tasks,
                                            "gpus": gpus, "on_preempt": "requeue", "limit": "7d", "sim": {"run": "6d"}, **more})["id"]

    def state(self, job, state):
        self.stintd.wait(lambda: self.owner.get("/v1/jobs/" + job).json["state"] == state, f"{job} is {state}")

    def look(self):
        self.seen.append(({who: live(client) for who, client in self.clients.items()}, moment()))


def play(w):
    """A day in the life: borrowers, a claim of the floor, a node out, and jobs that come and go."""
    w.look()
    lent = [w.job("south", f"s-borrow{n}", tasks=2) for n in range(2)]  # all there is
    for job in lent:
        w.state(job, "running")
    w.look()
    w.job("north", "n-train", tasks=1)
    claim = w.job("north", "n-claim", tasks=2)
    w.state(claim, "running")
    w.look()
    waits = w.job("north", "n-wait", tasks=4)
    w.owner.call("PATCH", "/v1/nodes/n03", {"state": "draining"})
    w.look()
    for n in range(60):  # rows enough for snapshots
        small = w.job("south", f"s-small{n}", gpus=1)
        if n % 20 == 7:
            w.look()
        w.owner.call("DELETE", "/v1/jobs/" + small)
    w.look()
    w.owner.call("DELETE", "/v1/jobs/" + waits)
    w.owner.call("PATCH", "/v1/nodes/n03", {"state": "ready"})
    w.look()
    return lent


def is_as_it_was(w, order, when, **more):
    for n in order:
        was, at = w.seen[n]
        for who, client in w.clients.items():
            same(was[who], past(client, at, **more), f"{when}, {who} at moment {n}")


def tells_what_happened(w, lent):
    """Who was displaced by whom: the owner reads it all, south that it had to go, and not for whom."""
    at = w.seen[2][1]
    owner, south, north = (past(w.clients[who], at) for who in ("owner", "south", "north"))
    out = [e for e in owner["events"] if e["what"] == "requeue"]
    check(out and all(e["job"] in lent and e["for_account"] == "north" for e in out), "the owner is told of reclaims: %s", out)
    mine = [e for e in south["events"] if e["what"] == "requeue"]
    check([e["job"] for e in mine] == [e["job"] for e in out], "south is told of other reclaims: %s", mine)
    check(not any("for" in e for e in mine), "south is told for whom: %s", mine)
    check({e["name"] for e in north["events"] if "job" in e} <= {"n-train", "n-claim"}, "north sees others' events: %s", north["events"])
    for n, (_, when) in enumerate(w.seen):
        text = ask(w.clients["south"], when).text
        check(not any(word in text for word in WORDS), "south reads of north at moment %d: %s", n, text[:500])
    times = [e["at"] for e in owner["events"]]
    check(times == sorted(times, reverse=True), "events are not the newest first")
    check(past(w.owner, at, before="0s")["events"] == [], "events although none were asked for")
    closed = past(w.clients["south"], w.seen[3][1])
    check(closed["closed"] == [{"name": "n03", "state": "draining"}], "nodes that were out: %s", closed["closed"])
    check(any(e["what"] == "node" and e["node"] == "n03" for e in closed["events"]), "the node's event is missing")


def is_refused(w):
    for query, code in (("at=nonsense", "invalid"), ("at=2999-01-01", "range"), ("at=1999-01-01", "range"), ("before=2h", "range"),
                        ("before=x", None), ("at=", None), ("at=%00", None), ("at=99999d", "range"), ("at=2026-11-19T03:12:00.Z", "invalid")):
        answer = w.owner.get("/v1/history?" + query)
        check(answer.status == 400 and (code is None or answer.code == code), "%s: %d %s", query, answer.status, answer.text)


def is_ones_own(w):
    """Who has the name later does not see what was done under it, and sees nothing of the time before."""
    for job in w.owner.get("/v1/jobs?account=south&limit=1000&state=running&state=pending").json["jobs"]:
        w.owner.call("DELETE", "/v1/jobs/" + job["id"])
        w.stintd.wait(lambda: w.owner.get("/v1/jobs/" + job["id"]).json["state"] == "cancelled", "a job of south is over")
    before = w.seen[1][1]
    check("w" in past(w.clients["south"], before)["devices"], "south has lost its own past")
    check(w.owner.call("DELETE", "/v1/accounts/south").status == 204, "south is not removed")
    w.owner.make("/v1/accounts", {"name": "south"})
    heir = w.stintd.client(token(w.owner, "south", "sam", "admin")["token"])
    for _, at in w.seen:
        answer = past(heir, at)
        check(not answer["waiting"] and not answer["leaving"] and not [e for e in answer["events"] if "job" in e] and
              "w" not in answer["devices"].lower(), "the heir of a name sees what was before it: %s", json.dumps(answer)[:600])
        check(all(row["jobs"] == 0 for row in answer["states"].values()), "and counts it: %s", answer["states"])
    check("w" in past(w.owner, before)["devices"], "the owner has lost the past of an account that is gone")


def run(program):
    stintd = Stintd(program, config=CONFIG)
    try:
        w = World(stintd)
        lent = play(w)
        n = len(w.seen)
        is_as_it_was(w, range(n), "forwards")
        is_as_it_was(w, reversed(range(n)), "backwards")
        is_as_it_was(w, reversed(range(n)), "from snapshots", before="0s")  # each from the one before it
        tells_what_happened(w, lent)
        is_refused(w)
        stintd.again(program)
        w.callers()
        is_as_it_was(w, [n - 1, 0, 2], "after a restart")
        is_ones_own(w)
        print(f"{n} moments are as they were, for three who see different things")
    finally:
        stintd.stop()


if __name__ == "__main__":
    main(run)
