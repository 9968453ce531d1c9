#!/usr/bin/env python3
"""Who slowed whom: a node that is spoken for by hand says that one job slows another on a GPU they share. Both sides hear of it, each
of its own side alone; the owner sees both. What a node says of jobs that are not there, or do not share that GPU, counts for nothing.
"""

import json
import os
import secrets
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from harness import Client, Stintd, Stream, check, main, token  # noqa: E402
from node import Node  # noqa: E402

GPU = {"type": "h100", "count": 2, "vram": "80Gi", "uuids": ["GPU-n-0", "GPU-n-1"]}


class World:
    def __init__(self, stintd):
        self.stintd, self.owner, self.no = stintd, stintd.owner, 0
        owner = self.owner
        owner.make("/v1/types", {"name": "h100", "vram": "80Gi"})
        owner.make("/v1/pools", {"name": "main", "allow": ["host-image"], "levels": ["whole", "time"]})
        # Random words: none of one side may be in what the other is told.
        self.victim, self.suspect, self.above = ("w" + secrets.token_hex(6) for _ in range(3))
        owner.make("/v1/accounts", {"name": self.above})
        self.who = {}
        for name in (self.victim, self.suspect):
            owner.make("/v1/accounts", {"name": name, "parent": self.above})
            self.who[name] = token(owner, name, "u" + name, "member")["token"]
        self.who[self.above] = token(owner, self.above, "chief", "admin")["token"]
        self.node = Node(stintd.port, "n0", gpu=GPU)
        join = owner.make("/v1/admin/join-tokens", {"pool": "main", "uses": 1})["token"]
        check(self.node.register(join).status == 201, "the node does not join")
        self.node.status()
        self.rows = {}

    def client(self, name):
        return Client(self.stintd.port, self.who[name])

    def start(self, account, **doc):
        """A job that is on the node's list and said to run."""
        body = {"name": "n" + account, "level": "time", "share": 0.5, "limit": "1h", "command": ["true"], **doc}
        body = {k: v for k, v in body.items() if v is not None}
        job = self.client(account).make("/v1/jobs", body)["id"]
        found = []

        def listed():
            got = self.node.desired(1)
            for j in (got or {"jobs": []})["jobs"]:
                self.rows[j["job"]] = {"job": j["job"], "stay": j["stay"], "task": 0, "state": "running"}
                if j["job"] == job:
                    found.append(j["tasks"][0]["devices"][0]["index"])
            return found
        self.stintd.wait(listed, "an order for " + job)
        check(self.node.status(self.rows.values()).status == 200, "the status is not taken")
        return job, found[0]

    def note(self, what, victim, suspect, gpu, percent=0, action=None, no=None, **more):
        self.no += 1
        said = {"no": no or self.no, "at_ms": int(time.time() * 1000), "what": what, "gpu": gpu, "p99_percent": percent,
                "job": victim, "stay": 1, "task": 0, **more}
        if action:
            said["action"] = action
        if suspect:
            said["suspect"] = {"job": suspect, "stay": 1, "task": 0}
        answer = self.node.status(self.rows.values(), neighbours=[said])
        check(answer.status == 200, "a status with a note: %d %s", answer.status, answer.text)

    def cases(self, name, query=""):
        answer = Client(self.stintd.port, self.who[name]).get("/v1/neighbours" + query) if name else self.owner.get(
            "/v1/neighbours" + query)
        check(answer.status == 200, "GET /v1/neighbours: %d %s", answer.status, answer.text)
        return answer.json["neighbours"]

    def state(self, name, state, query=""):
        self.stintd.wait(lambda: [c["state"] for c in self.cases(name, query)] == [state],
                         f"one case, {state}: {self.cases(name, query)}")


def told(stream, job, words):
    return any(kind == "neighbour" and json.loads(data)["job"] == job and words in json.loads(data)["reason"]
               for _, kind, data in stream.events())


def both_sides(w):
    victim, gpu = w.start(w.victim)
    suspect, other = w.start(w.suspect)
    check(gpu == other, "they do not share a GPU: %d and %d", gpu, other)
    streams = {n: Stream(w.stintd.port, w.who[n]) for n in (w.victim, w.suspect)}
    w.note("suspected", victim, suspect, gpu, 450)
    w.note("confirmed", victim, suspect, gpu, 450)
    w.state(w.victim, "confirmed")
    w.note("acted", victim, suspect, gpu, 450, "protect")
    w.state(w.victim, "acting")
    w.note("reverted", victim, suspect, gpu, 440, "protect")
    w.note("acted", victim, suspect, gpu, 450, "cap")
    w.note("verified", victim, suspect, gpu, 110, "cap")
    w.note("acted", victim, suspect, gpu, 110, "move")
    for name in (w.victim, w.suspect):
        w.state(name, "held")
    mine, theirs = w.cases(w.victim)[0], w.cases(w.suspect)[0]
    check(mine["job"] == victim and mine["side"] == "slowed", "the victim's side: %s", mine)
    check((mine["p99_ratio"], mine["p99_ratio_now"], mine["action"]) == (4.5, 1.1, "cap"), "its figures: %s", mine)
    check(theirs["job"] == suspect and theirs["side"] == "slows", "the suspect's side: %s", theirs)
    check("p99" not in json.dumps(theirs) and "4.5" not in json.dumps(theirs), "figures of the victim: %s", theirs)
    check("at most half of its share" in theirs["text"], "it is not told why it is limited: %s", theirs)
    check("other" not in mine and "other" not in theirs, "each is told whom the other is: %s %s", mine, theirs)
    check(streams[w.victim].wait(lambda s: told(s, victim, "that job is limited")), "no event for the victim")
    check(streams[w.suspect].wait(lambda s: told(s, suspect, "half of its share")), "no event for the suspect")
    for name, job in ((w.victim, suspect), (w.suspect, victim)):
        others = {w.victim, w.suspect} - {name}
        for words, where in ((streams[name].bytes().decode(), "events"), (json.dumps(w.cases(name)), "the list"),
                             (w.client(name).get("/metrics").text, "metrics")):
            for word in [job, w.above, *others]:
                check(word not in words, "%s of %s have a word of the other: %s", where, name, word)
    check([c["other"] for c in w.cases(w.above)] in ([suspect, victim], [victim, suspect]), "who sees both: %s",
          w.cases(w.above))
    check(len(w.cases(None)) == 2 and len(w.cases(None, "?job=" + victim)) == 1, "the owner: %s", w.cases(None))
    check(w.cases(w.victim, "?job=" + suspect) == [], "the other's job is found")
    text = w.client(w.victim).get("/metrics").text
    check(f'stint_account_slowed_total{{account="{w.victim}",parent=""}} 1' in text, "it is not in metrics: %s", text)
    text = w.client(w.suspect).get("/metrics").text
    check(f'stint_account_slows_total{{account="{w.suspect}",parent=""}} 1' in text, "it is not in metrics: %s", text)
    w.note("reverted", victim, suspect, gpu, 0, "cap")
    w.state(w.victim, "over", "?all=true")
    check(w.cases(w.victim) == [], "what is over is shown: %s", w.cases(w.victim))
    for s in streams.values():
        s.close()
    return victim, suspect, gpu


def again_and_alone(w, victim, suspect, gpu):
    # A second time, a repeat of the same note, and one that nothing helps.
    before = w.no
    w.note("confirmed", victim, suspect, gpu, 220)
    w.note("confirmed", victim, suspect, gpu, 990, no=before + 1)
    w.note("acted", victim, suspect, gpu, 220, "move")
    w.state(w.victim, "unsolved")
    case = w.cases(w.victim)[0]
    check(case["times"] == 2 and case["p99_ratio"] == 2.2, "found twice, told once: %s", case)
    stream = Stream(w.stintd.port, w.stintd.owner_token)
    w.note("incident", victim, None, gpu, 180)
    w.stintd.wait(lambda: any(c["state"] == "unexplained" for c in w.cases(w.victim)), "slow without a neighbour")
    check(stream.wait(lambda s: any(e[1] == "incident" and "slow-requests" in e[2] and '"node":"n0"' in e[2]
                                    for e in s.events())), "no incident for the owner: %s", stream.events())
    stream.close()
    check(all(c["state"] != "unexplained" for c in w.cases(w.suspect)), "the neighbour hears of it")


def not_its_business(w, victim, suspect, gpu):
    """Jobs elsewhere, at another level, on another GPU, none at all: nobody is blamed."""
    whole, at = w.start(w.suspect, level="whole", gpus=1, share=None)
    count = len(w.cases(None, "?all=true"))
    for other, where in ((whole, at), (suspect, 1 - gpu), ("j" + "0" * 12, gpu), (victim, gpu), (suspect, 99), (None, gpu)):
        w.note("confirmed", victim, other, where, 300)
    w.note("confirmed", victim, suspect, gpu, -5)
    w.note("nonsense", victim, suspect, gpu, 300)
    w.note("confirmed", victim, suspect, gpu, 300, stay=7)
    answer = w.node.status(w.rows.values(), neighbours=["x", 3, None, {"what": 4}, {"what": "confirmed"}])
    check(answer.status == 200, "odd notes: %d %s", answer.status, answer.text)
    w.note("confirmed", victim, suspect, gpu, 333)
    w.stintd.wait(lambda: any(c.get("p99_ratio") == 3.33 for c in w.cases(w.victim)), "the true one")
    check(len(w.cases(None, "?all=true")) == count, "somebody was blamed: %s", w.cases(None, "?all=true"))


def with_the_cli(w, victim):
    program = os.path.join(os.path.dirname(sys.argv[1]), "stint")
    env = {**os.environ, "STINT_URL": f"http://127.0.0.1:{w.stintd.port}", "STINT_TOKEN": w.who[w.victim]}
    out = subprocess.run([program, "neighbours"], env=env, capture_output=True, text=True, timeout=60)
    check(out.returncode == 0 and victim in out.stdout and "slowed" in out.stdout, "stint neighbours: %s %s", out.stdout,
          out.stderr)


def ended(w, suspect):
    """Who has left slows nobody, whatever its node says or does not say."""
    check(w.client(w.suspect).call("DELETE", "/v1/jobs/" + suspect).status == 200, "it is not cancelled")
    del w.rows[suspect]
    w.node.desired(1)
    w.node.status(w.rows.values())
    w.stintd.wait(lambda: all(c["side"] != "slows" for c in w.cases(w.suspect)), "it is over")


def another_of_its_name(w):
    """Who has the name of an account that is gone sees nothing of it."""
    for job in [j for j, r in w.rows.items() if w.owner.get("/v1/jobs/" + j).json["account"] == w.suspect]:
        check(w.client(w.suspect).call("DELETE", "/v1/jobs/" + job).status == 200, "it is not cancelled")
        del w.rows[job]
    w.node.desired(1)
    w.node.status(w.rows.values())
    check(w.cases(w.suspect, "?all=true"), "there is nothing to be seen")
    w.stintd.wait(lambda: w.owner.call("DELETE", "/v1/accounts/" + w.suspect).status == 204, "the account is removed")
    w.owner.make("/v1/accounts", {"name": w.suspect, "parent": w.above})
    w.who[w.suspect] = token(w.owner, w.suspect, "new", "admin")["token"]
    check(w.cases(w.suspect, "?all=true") == [], "the next of its name sees: %s", w.cases(w.suspect, "?all=true"))


def run(program):
    stintd = Stintd(program, config="engine: auto\nrate: 1000000\n")
    try:
        w = World(stintd)
        victim, suspect, gpu = both_sides(w)
        again_and_alone(w, victim, suspect, gpu)
        not_its_business(w, victim, suspect, gpu)
        with_the_cli(w, victim)
        ended(w, suspect)
        another_of_its_name(w)
    finally:
        stintd.stop()


main(run)
