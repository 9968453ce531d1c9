#!/usr/bin/env python3
"""Nobody sees a neighbour.

Two tenants stand below one parent. Every name of B and of the parent (accounts, users, jobs,
labels, environments, tokens) is a random word. A asks everything it can think of, with every role,
while B is idle and again while B is busy: no word of B may come in any byte of any answer, and the
two sets of answers must be the same byte for byte, but for what ALLOWED lists. doc/dev/stintd.md
("What a tenant may infer") has the same list in words.
"""

import json
import os
import re
import secrets
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, Stream, check, fleet, main, token  # noqa: E402

# What may differ between B idle and B busy, and why: (path, what is cut out, reason).
ALLOWED = [
    (r".*", r'"instance":\s*"[^"]*"', "the request's own random id"),
    (r"/v1/tokens.*", r'"last_used":("[^"]*"|null)', "A's own use of its tokens"),
    (r".*/usage", r'"decayed_gpu_hours":[0-9.]+', "A's own use, which decays with time"),
    (r".*/logs.*", r"(?s).*", "A's own job writes as time goes on"),
    (r".*/why", r'"reasons":\[.*?\](?=,"start|\})', "free capacity, and that somebody holds it"),
    (r".*/why", r',"start_estimate":("[^"]*"|null)', "when there should be room"),
]
# What grows while A's own jobs run, in every line: (path, where the number stands).
GROWS = [
    (r"/metrics", r"(?m)^(stint_account_(?:cost_dollars|gpu_seconds)\{.*\}) .*$"),
    (r"/v1/bills/.*", r'("(?:made|quantity|\w+_mgpu_ms|gpu_mgpu_ms|\w*gpu_hours|at|to|share|held|cpu|ram)":)'
                      r'("[^"]*"|[0-9.]+)'),
    (r"/v1/bills/.*", r'(\["\w+",)[0-9,]+(?=\])'),
    (r"/v1/accounts/.*/service-quota", r'("name":"(?:connections|requests|streams|questions)[^}]*?"used":)(\d+)'),
    (r"/v1/tokens.*", r'("last_used":)("[^"]*"|null)'),
    # A's own calls of this moment.
    (r"/v1/accounts/.*/service-quota",
     r'("(?:connections|requests|questions|commands|streams|batches)","about":"[^"]*","used":)[0-9]+'),
    (r"/v1/accounts/.*/budget", r'("reserved(?:_udollars)?":)("[^"]*"|[0-9]+)'),
]
# What A may be told about a job of its own that waits. Numbers that are in a sentence are A's own,
# or how many of A's tasks fit what is free.
SENTENCES = [
    r"too few \S+ are free",
    r"\d+ of \d+ tasks fit on the free \S+",
    r"[\d.]+ \S+ are free, but scattered: \d+ of \d+ tasks fit",
    r"nodes are down or draining: \d+ of \d+ tasks would fit on the ready ones",
    r"an account above yours would exceed its (max|limit per user) of \w+",
    r"account alpha(-sub)? holds [\d.]+ \w+; [\d.]+ more would exceed its max of [\d.]+",
    r"alpha(-sub)? uses [\d.]+ of its [\d.]+ guaranteed GPUs; this job needs more, so it must borrow \S+",
    r"this job exceeds the guarantee of an account above yours, so it must borrow \S+",
    r"the GPUs it needs are held for (a job of another account|a-\S+)",
    r"the GPUs it needs are reserved for (a job of another account|a-\S+), which should start in \S+",
    r"blocked jobs are ahead of it \(`lookahead`\)",
    r"other jobs are being preempted for it, in \S+ at the latest",
    r"borrowers could be preempted but are protected, the first for \S+ more",
    r"would preempt more GPUs than `reclaim_bound` allows",
    r"preempting every job it is allowed to preempt would still not free enough GPUs",
    r"moving running jobs would make room for it, but the policy `defrag` is off",
    r"(CPU|RAM) is short: \d+ of \d+ tasks fit \(\d+ with more (CPU|RAM)\)",
    r"no \S+ node( of pool \S+)? has room for one of its tasks, even empty",
    r"\d+ of \d+ tasks fit on all \S+ nodes( of pool \S+)?, even empty",
    r"(pool \S+|no node) has (no )?\S+",
]
ROLES = ("admin", "member", "viewer", "auditor")


class World:
    def __init__(self, stintd):
        self.stintd, self.owner, self.words, self.seen = stintd, stintd.owner, [], set()
        owner = self.owner
        fleet(owner)
        self.parent, self.b, self.b_sub, self.other = (self.word() for _ in range(4))
        owner.make("/v1/accounts", {"name": self.parent, "guarantee": {"gpu": 24}, "max": {"gpu": 28},
                                    "limits": {"job": {"gpu": 26}}})
        owner.make("/v1/accounts", {"name": "alpha", "parent": self.parent, "guarantee": {"gpu": 12}})
        owner.make("/v1/accounts", {"name": "alpha-sub", "parent": "alpha"})
        owner.make("/v1/accounts", {"name": self.b, "parent": self.parent, "guarantee": {"gpu": 8}})
        owner.make("/v1/accounts", {"name": self.other})
        self.a = {role: stintd.client(token(owner, "alpha", "a-" + role, role)["token"])
                  for role in ROLES}
        self.a_stream_token = self.a["viewer"].token
        above = stintd.client(token(owner, self.parent, self.word(), "admin")["token"])
        check(above.call("PUT", "/v1/sizes/large", {"gpus": 8}).status == 200, "no size above")
        self.run = self.submit_a("a-run", 8)
        self.stuck = self.submit_a("a-stuck", 8, tasks=3, gpus=8)  # 24 more: past the parent's max

    def word(self):
        made = "zq" + secrets.token_hex(6)
        self.words.append(made)
        return made

    def submit_a(self, name, total, tasks=1, gpus=None, user="a-member", account="alpha", **more):
        body = {"name": name, "account": account, "user": user, "tasks": tasks,
                "gpus": gpus or total, "sim": {"run": "7d"}, "on_preempt": "requeue", **more}
        return self.a["admin"].make("/v1/jobs", body)["id"]

    def submit_b(self, gpus=1, run="7d", **more):
        return self.owner.make("/v1/jobs", {
            "name": self.word(), "account": self.b, "user": self.word(), "gpus": gpus,
            "env": {self.word().upper(): self.word()}, "labels": {self.word(): self.word()},
            "on_preempt": "requeue", "sim": {"run": run}, **more}).get("id")

    def scan(self, what, data):
        text = data if isinstance(data, bytes) else data.encode()
        for word in self.words:
            check(word.encode() not in text and word.upper().encode() not in text,
                  "%s shows %s: %s", what, word, text[:600])

    def ask(self, role, method, path, body=None, headers=None):
        answer = self.a[role].call(method, path, body, headers)
        self.scan(f"{method} {path} as {role}", answer.body + repr(answer.headers).encode())
        return answer


def questions(w):
    """Everything A asks in both phases: (method, path, body, headers)."""
    gets = ["/metrics", "/openapi.json", "/healthz", "/readyz", "/v1/whoami", "/v1/roles",
            "/v1/jobs", "/v1/jobs?limit=1", "/v1/jobs?state=running", "/v1/jobs?account=alpha-sub",
            "/v1/jobs?name=a", "/v1/jobs?cursor=" + w.run, "/v1/jobs?cursor=j00000000",
            "/v1/jobs?cursor=zzz", "/v1/jobs?account=" + w.b, "/v1/jobs?account=" + w.parent,
            "/v1/jobs?user=nobody", "/v1/jobs?limit=bad", "/v1/jobs?nonsense=1",
            "/v1/accounts", "/v1/users", "/v1/tokens", "/v1/tokens/t00000000", "/v1/types",
            "/v1/pools", "/v1/pools/main", "/v1/pools/none", "/v1/nodes", "/v1/nodes/n00",
            "/v1/bookings", "/v1/bookings?all=true", "/v1/bookings?account=" + w.b, "/v1/bookings?account=" + w.parent,
            "/v1/calendar?from=2027-01-01&to=2027-12-31", "/v1/calendar?from=2027-01-01&account=" + w.b,
            "/v1/devices", "/v1/devices/accounts", "/v1/counts?by=account", "/v1/counts?by=user", "/v1/counts?by=name", "/v1/counts", "/v1/counts?account=" + w.b, "/v1/counts?account=" + w.parent,
            "/v1/counts?account=none", "/v1/jobs?fields=id,state,placement", "/v1/jobs?fields=secret",
            "/v1/nodes/none", "/v1/audit?what=job", "/v1/audit?what=account", "/v1/audit?limit=2&what=token",
            "/v1/audit?cursor=a00000000",
            "/v1/audit/verify", "/v1/prices", "/v1/billing", "/v1/bills", "/v1/plan", "/v1/bills/1999-01",
            "/v1/bills/open", "/v1/bills/open?format=focus", "/v1/bills/open?account=" + w.b,
            "/v1/bills/open?account=", "/v1/bills/open?account=" + w.parent, "/v1/bills/open/entries",
            "/v1/bills/open/entries?cursor=2", "/v1/bills/open/entries?account=" + w.b,
            "/v1/bills/open/usage", "/v1/bills/open/usage?by=account", "/v1/bills/open/usage?by=job",
            "/v1/bills/open/usage?account=" + w.parent, "/v1/sizes", "/v1/views", "/v1/neighbours?all=true", "/v1/rules", "/v1/arrays/j00000000", "/v1/nothing"]
    for job in (w.run, w.stuck, "j00000000", "jzzzzzzzz", "x"):
        gets += [f"/v1/jobs/{job}", f"/v1/jobs/{job}/why", f"/v1/jobs/{job}/logs"]
    for name in ("alpha", "alpha-sub", w.b, w.parent, w.other, "cluster", "none"):
        gets += [f"/v1/accounts/{name}{more}" for more in ("", "/quota", "/service-quota", "/usage", "/plan",
                                                               "/budget")]
    rows = [("GET", path, None, None) for path in gets]
    job = {"name": "a-try", "account": "alpha", "user": "a-member"}
    rows += [
        ("POST", "/v1/jobs", {**job, "tasks": 4, "gpus": 8}, None),  # past the parent's max
        ("POST", "/v1/jobs", {**job, "tasks": 27, "gpus": 1}, None),  # past its limit per job
        ("POST", "/v1/jobs", {**job, "tasks": 99, "gpus": 8}, None),  # past the fleet
        ("POST", "/v1/jobs", {**job, "account": w.b}, None),
        ("POST", "/v1/jobs", {**job, "pool": "none"}, None),
        ("POST", "/v1/jobs", "{", None),
        ("POST", "/v1/accounts", {"name": w.b}, None),
        ("POST", "/v1/accounts", {"name": "a-more", "parent": w.b}, None),
        ("POST", "/v1/accounts", {"name": "a-more", "guarantee": {"gpu": 13}}, None),
        ("PATCH", "/v1/accounts/alpha", {"weight": 2}, {"If-Match": "*"}),
        ("PATCH", "/v1/accounts/" + w.b, {"weight": 2}, {"If-Match": "*"}),
        ("POST", "/v1/tokens", {"account": w.b, "user": "x", "role": "viewer"}, None),
        ("PATCH", "/v1/nodes/n00", {"state": "draining"}, None),
        ("DELETE", "/v1/tokens/t00000000", None, None),
    ]
    return rows


def cut(path, text):
    for where, what, _ in ALLOWED:
        if re.fullmatch(where, path):
            text = re.sub(what, "*", text, count=1)
    for where, what in GROWS:
        if re.fullmatch(where, path):
            text = re.sub(what, r"\1*", text)
    return text


def capture(w):
    """{question: answer}, without what is allowed to differ. A's own questions that it named by
    B's words are answered with these words; that is no leak, so they are taken out first."""
    found, words = {}, w.words
    for role in ROLES:
        for method, path, body, headers in questions(w):
            asked = [x for x in words if x in path + json.dumps(body)]
            w.words = [x for x in words if x not in asked]
            answer = w.ask(role, method, path, body, headers)
            # A position is veiled anew each time: nothing can be read from two of them.
            keep = sorted((k, v) for k, v in answer.headers if k not in ("Date", "X-Request-Id", "Stint-Position"))
            text = cut(path, answer.text)
            if text != answer.text:  # its length and its digest go with it, and how far a log has got
                keep = [(k, v) for k, v in keep if k not in ("Content-Length", "Stint-Log-Next") and not v.startswith("W/")]
            found[role, method, path, json.dumps(body)] = (answer.status, keep, text)
    w.words = words
    return found


def compare(before, after, when):
    for key, was in before.items():
        check(after[key] == was, "%s as %s: answers differ %s:\n%s\n%s", key[1:], key[0], when, was,
              after[key])


def busy_b(w):
    """B does everything a tenant does: accounts, tokens, jobs that run, wait, end, are cancelled."""
    owner = w.owner
    owner.make("/v1/accounts", {"name": w.b_sub, "parent": w.b})
    for role in ROLES:
        token(owner, w.b, w.word(), role, label=w.word())
    b_admin = w.stintd.client(token(owner, w.b, w.word(), "admin", label=w.word())["token"])
    check(b_admin.call("PUT", "/v1/sizes/" + w.word(), {"gpus": 1}).status == 200, "no size")
    check(b_admin.call("PUT", "/v1/views/" + w.word(), {"page": "jobs", "query": "user=" + w.word()}).status == 200, "no view")
    w.submit_b(gpus=0, cpu=1, array={"count": 3})
    b_admin.make("/v1/bookings", {"name": w.word(), "type": "h100", "gpus": 1, "from": "2027-05-01", "for": "1d",
                                  "confirm": True, "repeat": {"every": "week", "count": 8}})
    ids = [w.submit_b(gpus=4) for _ in range(4)] + [w.submit_b(gpus=1, run="1s") for _ in range(8)]
    batch = [{"name": w.word(), "account": w.b, "user": w.word(), "gpus": 0, "cpu": 1,
              "sim": {"run": "7d"}} for _ in range(600)]
    made = owner.make("/v1/jobs/batch", {"jobs": batch})["jobs"]
    for job in made[:300]:
        owner.call("DELETE", "/v1/jobs/" + job["id"])
    owner.call("PATCH", "/v1/jobs/" + ids[0], {"priority": 5})
    return ids + [job["id"] for job in made]


def probe_ids(w, ids, event, audit):
    """B's ids are as unknown to A as any: the same answer but for the id itself."""
    fake_job, fake_event = "j0000000z", "e0000000z"
    probes = ["/v1/jobs/%s", "/v1/jobs/%s/why", "/v1/jobs/%s/logs", "/v1/jobs?cursor=%s",
              "/v1/arrays/%s", "/v1/jobs?array=%s",
              "/v1/events?job=%s"]
    for role in ROLES:
        for path in probes:
            for method, body in (("GET", None), ("DELETE", None), ("PATCH", {"priority": 1})):
                if method != "GET" and path != probes[0]:
                    continue
                said = {cut("", w.ask(role, method, path % job, body).text).replace(job, "ID")
                        for job in (ids[0], ids[-1], fake_job)}
                check(len(said) == 1, "%s %s tells B's ids from others: %s", method, path, said)
    said = {cut("", w.ask("auditor", "GET", "/v1/audit?cursor=" + row).text)
            for row in (audit, "a0000000z")}
    check(len(said) == 1, "a cursor of B's is told from others: %s", said)
    for last in (event, fake_event):
        s = Stream(w.stintd.port, w.a_stream_token, last=last)
        check(s.wait(lambda s: s.events()), "no reset after the event %s", last)
        check([e[1] for e in s.events()] == ["reset"], "after %s: %s", last, s.events())
        s.close()


def check_why(w, when):
    jobs = w.ask("viewer", "GET", "/v1/jobs?limit=1000&state=pending").json["jobs"]
    n = 0
    for job in jobs:
        why = w.ask("viewer", "GET", f"/v1/jobs/{job['id']}/why").json
        for reason in why["reasons"]:
            n += 1
            check(any(re.fullmatch(s, reason["text"]) for s in SENTENCES),
                  "%s: job %s is told: %s", when, job["name"], reason["text"])
            w.seen.add(reason["code"])
    return n


def check_reasons(w):
    """A's jobs wait for B in every way there is; what A is told has no name and no count of B."""
    n = 0
    # B has all it can borrow, in many small jobs, then in few large ones: the same sentences.
    said = []
    for gpus in (1, 4):
        held = [w.submit_b(gpus=gpus) for _ in range(20 // gpus)]
        job = w.submit_a("a-more", 8)
        n += check_why(w, f"B holds all in jobs of {gpus}")
        why = w.ask("viewer", "GET", f"/v1/jobs/{job}/why").json
        said.append([r["text"] for r in why["reasons"] if r["code"] == "max"])
        for one in [job]:
            w.ask("admin", "DELETE", "/v1/jobs/" + one)
        for one in held:
            w.owner.call("DELETE", "/v1/jobs/" + one)
    check(said[0] == said[1], "how B holds it can be told: %s", said)
    # A claims inside its guarantee what B has borrowed: B yields; others of A wait meanwhile.
    held = [w.submit_b(gpus=2) for _ in range(10)]
    for i in range(4):
        w.submit_a(f"a-claim{i}", 4, account="alpha" if i % 2 else "alpha-sub")
        n += check_why(w, "B yields")
    w.submit_a("a-large", 16, tasks=2, gpus=8)
    for i in range(3):
        w.submit_b(gpus=8, limit="1h")
        w.submit_a(f"a-small{i}", 1, limit="2h")
        n += check_why(w, "room is reserved")
    for i in range(4):
        w.submit_b(gpus=2, limit="1h")
        w.submit_a(f"a-last{i}", 2, limit="3h", account="alpha-sub")
    n += check_why(w, "many stand in line")
    missing = {"max", "over_floor", "gpus_busy", "yielding"} - w.seen
    check(not missing, "nothing waited for %s, only for %s", sorted(missing), sorted(w.seen))
    return n


def check_trials(w):
    """A dry run tells what `why` would, and keeps nothing."""
    ids = lambda: [j["id"] for j in w.ask("viewer", "GET", "/v1/jobs?limit=1000").json["jobs"]]
    jobs = ids()
    rows = w.ask("auditor", "GET", "/v1/audit?limit=1000").text
    for tasks, gpus in ((1, 1), (1, 8), (2, 8), (3, 4)):
        body = {"name": "a-trial", "account": "alpha", "user": "a-member", "tasks": tasks, "gpus": gpus}
        answer = w.ask("admin", "POST", "/v1/jobs?dry_run=true", body)
        check(answer.status == 200, "a dry run: %d %s", answer.status, answer.text)
        for reason in answer.json["reasons"]:
            check(any(re.fullmatch(s, reason["text"]) for s in SENTENCES), "a dry run tells: %s",
                  reason["text"])
    check(ids() == jobs, "a dry run left a job")
    check(w.ask("auditor", "GET", "/v1/audit?limit=1000").text == rows, "a dry run is in the log")


def check_shared_hands(w):
    """Somebody above who acts for both at once, and keys that both have used."""
    both = [{"name": name, "account": account, "user": "x", "gpus": 0, "cpu": 1} for name, account in
            (("a-one", "alpha"), (w.word(), w.b), (w.word(), w.b), (w.word(), w.b))]
    above = w.stintd.client(token(w.owner, w.parent, w.word(), "admin", label=w.word())["token"])
    above.make("/v1/jobs/batch", {"jobs": both})
    row = w.ask("auditor", "GET", "/v1/audit?limit=1").json["rows"][0]
    check(row["verb"] == "job.submit" and row["detail"] == {"jobs": 1}, "the row is %s", row)
    check(row["actor"] == "an account above yours" and row["source"] == "", "the row is %s", row)
    key = {"Idempotency-Key": w.word()}
    job = {"name": "key", "user": "x", "gpus": 0, "cpu": 1}
    check(w.owner.call("POST", "/v1/jobs", {**job, "account": w.b}, key).status == 201, "no job")
    words, w.words = w.words, [x for x in w.words if x != key["Idempotency-Key"]]
    mine = {**job, "account": "alpha", "name": "a-key"}
    check(w.ask("admin", "POST", "/v1/jobs", mine, key).status == 201, "B's key is in A's way")
    check(w.ask("admin", "POST", "/v1/jobs", mine, key).status == 200, "A's key is not known")
    w.words = words
    # A batch again: what was refused stays refused, what was taken has its id.
    batch = {"jobs": [{**mine, "name": "a-good"}, {**mine, "name": "a-bad", "cpu": 999999}]}
    again = {"Idempotency-Key": "a-batch"}
    first, second = (w.ask("admin", "POST", "/v1/jobs/batch", batch, again) for _ in range(2))
    check(first.status == 201 and second.status == 200, "%s %s", first.text, second.text)
    check(first.json["jobs"][0] == second.json["jobs"][0], "another id: %s", second.text)
    check("code" in second.json["jobs"][1] and "id" not in second.json["jobs"][1], "what was "
          "refused got an id: %s", second.text)


def check_streams(w, stream, before):
    w.scan("the event stream", stream.bytes())
    accounts = {json.loads(data).get("account") for _, _, data in stream.events()}
    check(accounts <= {"alpha", "alpha-sub"}, "events of %s", accounts)
    # B has made far more events than are kept of one account: A goes on where it was.
    s = Stream(w.stintd.port, w.a_stream_token, last=before[-1][0])
    later = [e for e in stream.events() if e not in before]
    check(s.wait(lambda s: len(s.events()) >= len(later)), "the stream does not go on")
    check([e[1] for e in s.events()][:1] != ["reset"], "B's events pushed out A's")
    check(s.events()[: len(later)] == later, "what was missed differs")
    s.close()


def past(w, at):
    """What A is told of that moment, by role, without when it asks: never a word of B, and the same whenever it is asked."""
    found = {}
    for role in ROLES:
        answer = w.ask(role, "GET", "/v1/history?at=" + at)
        while answer.status == 503:
            time.sleep(0.1)
            answer = w.ask(role, "GET", "/v1/history?at=" + at)
        check(answer.status == 200, "the past: %s", answer.text)
        found[role] = {key: value for key, value in answer.json.items() if key != "to"}
    return found


def now():
    time.sleep(1.1)  # moments are given to the second
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def run(program):
    stintd = Stintd(program, config="rate: 1000000\npolicy: {min_run: 0s, notice: 10m, "
                    "lookahead: 1, reservations: 2}\n")
    try:
        w = World(stintd)
        stream = Stream(stintd.port, w.a_stream_token)
        spy = Stream(stintd.port, stintd.owner_token)
        check(stream.wait(lambda s: b"\r\n\r\n" in s.bytes()), "no stream")
        w.submit_a("a-note", 1, gpus=0, cpu=1)
        check(stream.wait(lambda s: len(s.events()) >= 2), "no events of one's own")
        stintd.wait(lambda: capture(w) == capture(w), "answers rest while nobody does anything")
        idle = capture(w)
        then = now()
        was = past(w, then)
        compare(idle, capture(w), "by themselves")
        before = stream.events()
        ids = busy_b(w)
        stintd.wait(lambda: any(stintd.owner.get("/v1/jobs/" + job).json["state"] == "done" for job in ids[4:12]),
                    "some of B's jobs end")
        compare(idle, capture(w), "with B busy")
        check(past(w, then) == was, "the past of A differs with B busy")
        during = past(w, now())
        for role in ROLES:
            same = [key for key in was[role] if key not in ("at", "events_since", "events") and was[role][key] != during[role][key]]
            check(not same, "A as %s sees of B in the past: %s", role, same)
            others = [e for e in during[role]["events"] if e not in was[role]["events"]]
            check(not others, "A as %s is told of B's events: %s", role, others)
        check(stream.events() == before, "B's work is heard: %s", stream.events()[len(before):])
        b_event = [e for e in spy.events() if w.b in (e[2] or "")][-1][0]
        b_audit = stintd.owner.get("/v1/audit?limit=1&what=job").json["rows"][0]["id"]
        probe_ids(w, ids, b_event, b_audit)
        for job in ids:
            stintd.owner.call("DELETE", "/v1/jobs/" + job)
        n = check_reasons(w)
        check_trials(w)
        check_shared_hands(w)
        last = w.submit_a("a-last", 1, gpus=0, cpu=1)
        check(stream.wait(lambda s: any(last in (e[2] or "") for e in s.events())), "no events of the last job")
        check_streams(w, stream, before)
        print(f"{len(idle)} answers the same, {n} reasons ({', '.join(sorted(w.seen))}), "
              f"{len(w.words)} words of B in none")
        stream.close()
        spy.close()
    finally:
        stintd.stop()


if __name__ == "__main__":
    main(run)
