#!/usr/bin/env python3
"""Past events: what streams told, page by page, by kind, account, node, job and time, also after a start; a tenant sees its subtree alone,
whatever it asks, forges or leaves behind, and a file that is damaged costs its own lines.
"""

import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
from harness import Client, Stintd, Stream, check, fleet, main, token  # noqa: E402

CONFIG = "rate: 1000000\nengine: sim\nsocket: none\n"


class World:
    def __init__(self, program):
        self.program = program
        self.stintd = Stintd(program, config=CONFIG)
        owner = self.stintd.owner
        fleet(owner, nodes=3)
        for name, parent in (("here", None), ("team", "here"), ("there", None)):
            owner.make("/v1/accounts", {"name": name, "guarantee": {"gpu": 0}, **({"parent": parent} if parent else {})})
        self.tokens = {user: token(owner, account, user, role)["token"] for account, user, role in
                       (("here", "head", "admin"), ("team", "ada", "member"), ("there", "eve", "admin"), ("team", "eye", "viewer"))}
        self.clients()

    def clients(self):
        self.who = {user: Client(self.stintd.port, text) for user, text in self.tokens.items()}
        self.who["owner"] = self.stintd.owner

    def restart(self):
        for client in self.who.values():
            client.close()
        self.stintd.again(self.program)
        self.clients()

    def job(self, user, name="j", **more):
        return self.who[user].make("/v1/jobs", {"name": name, "gpus": 1, "sim": {"run": "1ms"}, **more})["id"]

    def past(self, user, query="", status=200):
        answer = self.who[user].get("/v1/events/past" + ("?" + query if query else ""))
        check(answer.status == status, "%s?%s: %d %s", user, query, answer.status, answer.text)
        return answer.json["events"] if status == 200 else answer.json

    def all(self, user, query="", limit=7):
        """By pages."""
        found, cursor = [], ""
        for _ in range(1000):
            answer = self.who[user].get(f"/v1/events/past?limit={limit}&{query}" + (f"&cursor={cursor}" if cursor else ""))
            check(answer.status == 200, "%s: %d %s", query, answer.status, answer.text)
            found += answer.json["events"]
            cursor = answer.json.get("next")
            if not cursor:
                return found
        check(False, "pages without end: %s", query)


def over(w, user, job):
    w.stintd.wait(lambda: any(e["kind"] == "end" for e in w.past(user, "job=" + job)), f"{job} has ended, and it is told")


def told(w):
    """What happened is there, newest first, page by page, by every filter."""
    jobs = [w.job("ada", f"j{i}") for i in range(12)]
    other = w.job("eve", "secret-of-there")
    for job in jobs:
        over(w, "ada", job)
    over(w, "eve", other)
    w.stintd.owner.call("PATCH", "/v1/nodes/n02", {"state": "draining", "reason": "a fan"})
    mine = w.past("ada", "limit=1000")
    check([e["at"] for e in mine] == sorted((e["at"] for e in mine), reverse=True), "not newest first")
    check(w.all("ada") == mine, "pages are not the whole")
    check({e["job"] for e in mine if "job" in e} == set(jobs), "%s", mine[:3])
    check({e["kind"] for e in w.past("ada", "kind=start&kind=end&limit=1000")} == {"start", "end"}, "kinds")
    check(len(w.past("ada", "kind=end&limit=1000")) == 12, "%s", w.past("ada", "kind=end&limit=1000"))
    check({e["job"] for e in w.past("ada", "job=" + jobs[3])} == {jobs[3]}, "of a job")
    check(w.past("head", "account=team&limit=1000") == mine, "of an account")
    check(len(w.past("owner", "node=n02")) >= 1 and all(e["node"] == "n02" for e in w.past("owner", "node=n02")), "of a node")
    middle = mine[len(mine) // 2]["at"]
    check(w.past("ada", f"until={middle}&limit=1000") + [] == [e for e in mine if e["at"] <= middle], "until")
    check(w.past("ada", f"since={middle}&limit=1000") == [e for e in mine if e["at"] >= middle], "since")
    check(w.past("ada", "since=2099-01-01") == [] and w.past("ada", "until=2001-01-01") == [], "at other times there is nothing")
    return jobs, mine


def bad(w):
    for query, words in (("kind=nosuch", "kinds are"), ("kind=", "kinds are"), ("since=yesterday", "since"), ("until=1x", "until"),
                         ("cursor=abc", "cursor"), ("cursor=p0000000000000", "cursor"), ("limit=x", "limit")):
        answer = w.past("ada", query, status=400)
        check(words in answer["detail"], "%s: %s", query, answer)
    w.past("ada", "job=jzzzzzzzz", status=404)


def walls(w, jobs):
    """Who is elsewhere sees nothing of it, asks as it may."""
    for query in ("limit=1000", "kind=end&limit=1000", "since=2001-01-01&limit=1000"):
        text = json.dumps(w.past("eve", query))
        check("team" not in text and jobs[0] not in text and "n02" not in text, "%s: %s", query, text)
        text = json.dumps(w.past("ada", query))
        check("secret-of-there" not in text and '"node": "n02"' not in text, "%s: %s", query, text)
    w.past("eve", "account=team", status=404)
    w.past("eve", "account=", status=404)
    w.past("ada", "account=here", status=404)  # above it
    w.past("eve", "job=" + jobs[0], status=404)
    check(w.past("eve", "node=n02") == [], "nodes are the cluster's")
    # A cursor of somebody else leads to a place in the file, and there to one's own alone; other veiled numbers lead nowhere.
    cursor = w.who["ada"].get("/v1/events/past?limit=3").json["next"]
    answer = w.who["eve"].get("/v1/events/past?limit=1000&cursor=" + cursor)
    check(answer.status == 200 and "team" not in answer.text, "%s", answer.text)
    for _ in range(20):
        position = w.who["eve"].get("/v1/whoami").header("Stint-Position") or w.who["eve"].get("/v1/jobs").header("Stint-Position")
        answer = w.who["eve"].get("/v1/events/past?limit=1000&cursor=" + position)
        check(answer.status in (200, 400) and "team" not in answer.text, "%s", answer.text)
    check(Client(w.stintd.port, None).get("/v1/events/past").status == 401, "without a token")


def streams(w):
    """The same filters hold streams back; nobody subscribes to a neighbour."""
    ends = Stream(w.stintd.port, w.tokens["head"], "/v1/events?kind=end&account=team")
    refused = Client(w.stintd.port, w.tokens["eve"]).get("/v1/events?account=team")
    check(refused.status == 404, "%d", refused.status)
    check(Client(w.stintd.port, w.tokens["eve"]).get("/v1/events?kind=nosuch").status == 400, "a kind that is none")
    w.stintd.wait(lambda: b"200" in ends.bytes()[:20], "the stream is open")
    job = w.job("ada", "streamed")
    w.job("eve", "other")
    check(ends.wait(lambda s: any(e[1] == "end" for e in s.events())), "nothing comes")
    check({e[1] for e in ends.events()} == {"end"} and json.loads(ends.events()[0][2])["job"] == job, "%s", ends.events())
    ends.close()


def after_a_start(w, mine):
    w.restart()
    found = w.past("ada", "limit=1000")
    strip = lambda events: [{k: v for k, v in e.items() if k != "id"} for e in events]  # noqa: E731
    check(strip(found)[-len(mine):] == strip(mine), "a start has lost or changed events")
    check(not any("id" in e for e in found[-len(mine):]), "numbers of another start are given out")


def gone(w):
    """Who gets the name of an account that is gone gets none of its past."""
    owner = w.stintd.owner
    owner.make("/v1/accounts", {"name": "short", "parent": "here"})
    w.tokens["sue"] = token(owner, "short", "sue", "member")["token"]
    w.clients()
    over(w, "sue", w.job("sue", "of-the-first"))
    check(owner.call("DELETE", "/v1/accounts/short").status == 204, "it is not removed")
    owner.make("/v1/accounts", {"name": "short", "parent": "there"})
    w.tokens["sam"] = token(owner, "short", "sam", "admin")["token"]
    w.clients()
    check(w.past("sam", "limit=1000") == [] and "of-the-first" not in json.dumps(w.past("eve", "limit=1000")), "the past has a new owner")
    check("of-the-first" in json.dumps(w.past("head", "limit=1000")), "who stood above it has lost it")


def damaged(w):
    """Lines that are none are passed over; what comes later is there."""
    folder = os.path.join(w.stintd.dir, "data", "events")
    check(os.stat(folder).st_mode & 0o077 == 0, "others may look into %s", folder)
    newest = sorted(glob.glob(folder + "/*.events"))[-1]
    check(os.stat(newest).st_mode & 0o077 == 0, "others may read %s", newest)
    before = len(w.past("owner", "limit=1000"))
    with open(newest, "ab") as f:
        f.write(b"\n\t\t\t\x00\xff\n9\t9\t9\n" + b"x" * 100000 + b"\n1\t2\t3\t4\t5\t6\tk\ta\tn\tno json\n99\t1\t7")
    w.restart()
    w.job("ada", "behind-it")
    w.stintd.wait(lambda: "behind-it" in json.dumps(w.past("ada")), "what comes behind it is told")
    check(len(w.past("owner", "limit=1000")) >= before, "events are lost")
    check(w.stintd.alive(), "stintd has ended")


def commands(w, jobs):
    stint = os.path.join(os.path.dirname(w.program), "stint")

    def run(*words, user="ada", status=0):
        env = {**os.environ, "STINT_URL": f"http://127.0.0.1:{w.stintd.port}", "STINT_TOKEN": w.tokens[user], "TZ": "UTC"}
        done = subprocess.run([stint, "events", *words], env=env, capture_output=True, text=True, timeout=60)
        check(done.returncode == status, "%s: %d %s%s", words, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    lines = run("--since", "1d", "--kind", "end").splitlines()
    check(len(lines) >= 12 and all("  end " in line for line in lines) and jobs[0] in lines[0], "%s", lines)
    check([line[:19] for line in lines] == sorted(line[:19] for line in lines), "not the oldest first")
    check(run("--limit", "2", "--kind", "end").splitlines() == lines[-2:], "not the last two")
    check(len(run("--since", "1d", "-o", "json", "--job", jobs[1]).splitlines()) >= 3, "of a job")
    json.loads(run("--since", "1d", "-o", "json", "--limit", "1"))
    check(run("--until", "2001-01-01") == "", "long ago")
    check("kinds are" in run("--since", "1d", "--kind", "ending", status=2), "a kind that is none")
    check("--until" in run("-f", "--until", "1h", status=2), "until when, and on")
    follow = subprocess.Popen([stint, "events", "-f", "--since", "1d", "--kind", "end"], stdout=subprocess.PIPE, text=True, env={
        **os.environ, "STINT_URL": f"http://127.0.0.1:{w.stintd.port}", "STINT_TOKEN": w.tokens["ada"], "TZ": "UTC"})
    first = [follow.stdout.readline() for _ in lines]
    check([line.rstrip("\n") for line in first] == lines, "%s", first)
    job = w.job("ada", "followed")
    check(job in follow.stdout.readline(), "it does not go on")
    follow.terminate()
    follow.wait()


def none(program):
    """A site that keeps none says so."""
    stintd = Stintd(program, config=CONFIG + "events_keep: 0\n")
    answer = stintd.owner.get("/v1/events/past")
    check(answer.status == 404 and "events_keep" in answer.text, "%d %s", answer.status, answer.text)
    check(not os.path.exists(os.path.join(stintd.dir, "data", "events")), "they are kept all the same")
    stintd.stop()


def run(program):
    w = World(program)
    try:
        jobs, mine = told(w)
        bad(w)
        walls(w, jobs)
        streams(w)
        commands(w, jobs)
        after_a_start(w, mine)
        gone(w)
        damaged(w)
    finally:
        w.stintd.stop()
    none(program)


main(run)
