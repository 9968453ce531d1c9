#!/usr/bin/env python3
"""Notices: what jobs and budgets do reaches webhooks and mailboxes, signed, once more after a failure, in order; and whatever a tenant or a
receiver tries, stintd goes nowhere that the site does not list, and others' notices go out in time.
"""

import email.header
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(__file__))
import nodes  # noqa: E402
from harness import Client, Stintd, check, fleet, main, token  # noqa: E402
from receivers import Mail, Web, signed  # noqa: E402


class World:
    def __init__(self, program):
        self.program, self.folder = program, tempfile.mkdtemp(prefix="notices-")
        self.web, self.tls, self.mail = Web(), Web(self.folder), Mail()
        self.at = f"http://127.0.0.1:{self.web.port}"
        self.stintd = Stintd(program, config=(
            "rate: 1000000\nengine: sim\nsocket: none\npolicy: {notice: 0.1s, grace: 0.3s, min_run: 0.2s, cooldown: 0.2s}\nnotice_retry: 100ms\nnotice_keep: 1h\n"
            f"notice_hosts: \"{self.at}, localhost:{self.tls.port}, http://127.0.0.2:{self.web.port}, http://localhost:{self.web.port}\"\n"
            f"notice_networks: 127.0.0.1\nnotice_ca: {self.tls.ca}\n"
            f"notice_mail: smtp://127.0.0.1:{self.mail.port}\nnotice_mail_from: stint@example.com\nnotice_mail_domains: example.com\n"))
        owner = self.stintd.owner
        fleet(owner, nodes=4)
        owner.make("/v1/prices", {"prices": "p1", "gpu": {"*": {"reserved": "3600", "burst": "3600"}}})
        for name in ("here", "there"):
            owner.make("/v1/accounts", {"name": name, "guarantee": {"gpu": 8}})
        self.tokens = {}
        for account, user, role in (("here", "ada", "member"), ("here", "bob", "member"), ("here", "head", "admin"), ("here", "eye", "viewer"),
                                    ("there", "eve", "admin")):
            self.tokens[user] = token(owner, account, user, role)["token"]
        self.clients()

    def restart(self):
        for client in self.who.values():
            client.close()
        self.stintd.again(self.program)
        self.clients()

    def clients(self):
        self.who = {user: Client(self.stintd.port, text) for user, text in self.tokens.items()}
        self.who["owner"] = self.stintd.owner

    def add(self, user, name, account="here", **body):
        return self.who[user].call("PUT", f"/v1/accounts/{account}/notices/{name}", body)

    def added(self, user, name, account="here", **body):
        answer = self.add(user, name, account, **body)
        check(answer.status == 200, "%s is not added: %d %s", name, answer.status, answer.text)
        return answer.json.get("secret")

    def show(self, user, name, account="here"):
        return self.who[user].get(f"/v1/accounts/{account}/notices/{name}")

    def test(self, user, name, account="here"):
        answer = self.who[user].call("POST", f"/v1/accounts/{account}/notices/{name}/test")
        check(answer.status == 200, "no test of %s: %d %s", name, answer.status, answer.text)
        return answer.json["delivery"]

    def came(self, user, name, delivery, account="here"):
        for row in self.show(user, name, account).json["deliveries"]:
            if row["id"] == delivery:
                return row
        return None

    def settled(self, user, name, delivery, state, account="here"):
        self.stintd.wait(lambda: (self.came(user, name, delivery, account) or {}).get("state") == state,
                         f"the delivery of {name} is {state}")
        return self.came(user, name, delivery, account)

    def remove(self, user, name, account="here"):
        answer = self.who[user].call("DELETE", f"/v1/accounts/{account}/notices/{name}")
        check(answer.status == 204, "%s is not removed: %d %s", name, answer.status, answer.text)

    def job(self, user, name="j", account="here", **sim):
        return self.who[user].make("/v1/jobs", {"name": name, "gpus": 1, "sim": sim or {"run": "1ms"}})["id"]

    def until(self, what, sentence):
        self.stintd.wait(what, sentence)


def a_job_is_told(w):
    secret = w.added("ada", "mine", webhook=w.at + "/ok/mine?token=T0P", on=["start", "end", "fail"])
    job = w.job("ada", "train-\u00e4", run="1ms")
    w.until(lambda: len(w.web.at("/ok/mine?token=T0P")) == 2, "its start and its end are told")
    start, end = w.web.docs("/ok/mine?token=T0P")
    check((start["type"], end["type"], end["job"]["id"], end["job"]["state"], end["job"]["user"]) == ("start", "end", job, "done", "ada"),
          "%s %s", start, end)
    check(end["account"] == "here" and end["notice"] == "mine" and start["id"] != end["id"], "%s", end)
    for headers, body in w.web.at("/ok/mine?token=T0P"):
        check(signed(secret, headers, body), "a signature is wrong: %s", headers)
        check(headers["webhook-id"] == json.loads(body)["id"], "another id: %s", headers)
        check("authorization" not in headers and "x-evil" not in headers, "%s", headers)
        check(not signed("whsec_" + "A" * 43 + "=", headers, body), "anybody's key signs it")
    w.until(lambda: all(r["state"] == "delivered" for r in w.show("ada", "mine").json["deliveries"]), "the journal says so")
    failed = w.job("ada", "bad", run="1ms", exit=3)
    w.until(lambda: len(w.web.at("/ok/mine?token=T0P")) == 4, "the failure is told")
    last = w.web.docs("/ok/mine?token=T0P")[-1]
    check((last["type"], last["job"]["id"], last["job"]["exit_code"]) == ("fail", failed, 3), "%s", last)


def whose_jobs(w):
    """`mine` are the jobs of who added it; an account's notice has all of it, and nothing of others."""
    w.added("head", "all", webhook=w.at + "/ok/all", on=["end"], jobs="all")
    w.added("eve", "all", account="there", webhook=w.at + "/ok/there", on=["start", "end"], jobs="all")
    before = len(w.web.at("/ok/mine?token=T0P"))
    job = w.job("bob", "bobs")
    w.until(lambda: [d for d in w.web.docs("/ok/all") if d["job"]["id"] == job], "the account's notice has it")
    mine = w.job("ada", "adas")
    w.until(lambda: len(w.web.at("/ok/mine?token=T0P")) == before + 2, "ada's has hers")
    check(all(d["job"]["id"] != job for d in w.web.docs("/ok/mine?token=T0P")), "ada is told of bob's")
    w.until(lambda: [d for d in w.web.docs("/ok/all") if d["job"]["id"] == mine], "the account's notice has both")
    check(w.web.at("/ok/there") == [], "a stranger is told: %s", w.web.docs("/ok/there"))


def not_for_others(w):
    """Another tenant's are not there; a colleague's are seen without the address, and are not to be changed."""
    paths = ["/v1/accounts/here/notices/mine", "/v1/accounts/here/notices/nothing", "/v1/accounts/nowhere/notices/mine"]
    said = {w.who["eve"].get(p).text.replace("nowhere", "X").replace("here", "X").split('"instance"')[0] for p in paths}
    check(len(said) == 1, "these differ: %s", said)
    for method, path in (("GET", paths[0]), ("DELETE", paths[0]), ("POST", paths[0] + "/test"), ("PUT", "/v1/accounts/here/notices/spy")):
        body = {"webhook": w.at + "/ok/spy", "jobs": "all"} if method == "PUT" else None
        check(w.who["eve"].call(method, path, body).status == 404, "%s %s is let in", method, path)
    check([n["name"] for n in w.who["eve"].get("/v1/notices").json["notices"]] == ["all"], "eve sees others'")
    check(w.who["eve"].get("/v1/notices?account=here").status == 404, "eve asks for here")
    check(w.who["bob"].call("DELETE", paths[0]).status == 403, "bob removes ada's")
    check(w.who["bob"].call("POST", paths[0] + "/test").status == 403, "bob tries ada's")
    check(w.add("eye", "v", webhook=w.at + "/ok/v").status == 403, "a viewer adds one")
    check(w.add("ada", "mine", webhook=w.at + "/ok/again").status == 409, "two of one name")
    for user in ("bob", "head", "ada", "eye", "owner"):
        for text in (w.show(user, "mine").text, w.who[user].get("/v1/notices").text):
            check("T0P" not in text and "whsec" not in text, "%s reads the address: %s", user, text)
    for path in ("/v1/accounts/here/secrets", "/v1/audit"):
        text = w.who["head"].get(path).text
        check("T0P" not in text and "whsec" not in text and "notice/" not in text, "%s tells: %s", path, text)
    put = w.who["ada"].call("PUT", "/v1/accounts/here/secrets/notice%2Fmine", "x")
    check(put.status in (400, 404), "a secret with the name of a notice: %d", put.status)
    stolen = w.who["ada"].post("/v1/jobs", {"name": "s", "gpus": 0, "cpu": 1, "secrets": {"X": "notice/mine"}})
    check(stolen.status == 400, "a job asks for it: %d %s", stolen.status, stolen.text)
    check(w.stintd.owner.call("DELETE", "/v1/accounts/there").status == 409, "an account goes before its notices")


def at_rest(w):
    """Neither the store nor the log has an address or a key in the clear."""
    data = os.path.join(w.stintd.dir, "data")
    for name in [os.path.join(data, n) for n in os.listdir(data)] + [w.stintd.log]:
        if os.path.isfile(name):
            with open(name, "rb") as f:
                text = f.read()
            check(b"T0P" not in text and b"whsec_" not in text, "%s has it", name)


def nowhere_else(w):
    bad = (["http://127.0.0.1:1/", "http://169.254.169.254/latest/meta-data", "https://127.0.0.1/", "file:///etc/passwd", "gopher://127.0.0.1/",
            f"http://user:pass@127.0.0.1:{w.web.port}/", f"http://127.0.0.1:{w.web.port}@evil.example/", f"http://127.0.0.1:{w.web.port}/\r\nX: 1",
            f"https://127.0.0.1:{w.web.port}/", "", "x" * 5000, f"http://2130706435:{w.web.port}/", "http://[::1]/", f"http://127.0.0.1:{w.web.port}#x"])
    for url in bad:
        answer = w.add("ada", "bad", webhook=url)
        check(answer.status in (400, 403), "%s is let in: %d %s", url[:60], answer.status, answer.text)
    for mail in ("ada@evil.example", "ada@example.com\r\nBcc: all@example.com", "a@example.com,b@example.com", "", "-f@example.com", "<a@example.com>"):
        answer = w.add("ada", "bad", mail=mail)
        check(answer.status in (400, 403), "%r is let in: %d %s", mail, answer.status, answer.text)
    for body in ({}, {"webhook": w.at + "/ok", "mail": "ada@example.com"}, {"webhook": w.at + "/ok", "on": []}, {"webhook": w.at, "on": ["all"]},
                 {"webhook": w.at, "on": "end"}, {"webhook": w.at, "jobs": "theirs"}, {"webhook": 7}, {"webhook": w.at, "more": 1}):
        check(w.add("ada", "bad", **body).status == 400, "%s is let in", body)
    check(w.who["ada"].get("/v1/notices").text.count('"bad"') == 0, "something is there")
    # It is listed, and has an address that is not allowed: what the name stands for does not matter, the connection does.
    w.added("ada", "private", webhook=f"http://127.0.0.2:{w.web.port}/ok/private")
    row = w.settled("ada", "private", w.test("ada", "private"), "failed")
    check("private address" in row["text"] and w.web.at("/ok/private") == [], "%s", row)


def bad_receivers(w):
    """Each is given up or tried again, and none holds up another."""
    for name, path in (("redirected", "/go"), ("redirects", "/go/here"), ("gone", "/gone"), ("big", "/big"), ("later", "/later/3"), ("refuses", "/no")):
        w.added("bob", name, webhook=w.at + path)
    row = w.settled("bob", "gone", w.test("bob", "gone"), "failed")
    check(row["status"] == 410 and row["tries"] == 1, "%s", row)
    w.settled("bob", "big", w.test("bob", "big"), "delivered")
    first = w.test("bob", "later")
    row = w.settled("bob", "later", first, "delivered")
    check(row["tries"] == 3, "%s", row)
    ids = {h["webhook-id"] for h, _ in w.web.at("/later/3")}
    check(ids == {first} and len({body for _, body in w.web.at("/later/3")}) == 1, "a repeat is another: %s", ids)
    for name in ("redirected", "redirects"):
        row = w.settled("bob", name, w.test("bob", name), "waiting")
        check("redirects are not followed" in row["text"], "%s", row)
    check(w.web.at("/reached") == [], "a redirect was followed")
    w.test("bob", "refuses")
    w.until(lambda: len(w.web.at("/no")) >= 3, "it is tried again")
    for name in ("redirected", "redirects", "gone", "big", "later", "refuses"):
        w.remove("bob", name)


def mails(w):
    w.added("ada", "mail", mail="ada@example.com", on=["end"])
    w.job("ada", "evil\u00e9")
    w.until(lambda: w.mail.got, "the mail comes")
    sender, to, message = w.mail.got[0]
    check((sender, to) == ("stint@example.com", ["ada@example.com"]), "%s %s", sender, to)
    subject = str(email.header.make_header(email.header.decode_header(message["Subject"])))
    check(subject.startswith("[stint] job ") and "is over: done" in subject, "%r", subject)
    check(message["To"] == "ada@example.com" and message["Bcc"] is None, "%s", message)
    check("job state: done" in message.get_payload(decode=True).decode(), "%s", message.get_payload(decode=True))
    w.remove("ada", "mail")


def over_tls(w):
    """By the certificates that the site names, and for the name that is asked for."""
    w.added("ada", "tls", webhook=f"https://localhost:{w.tls.port}/ok/tls")
    w.settled("ada", "tls", w.test("ada", "tls"), "delivered")
    check(len(w.tls.at("/ok/tls")) == 1, "it did not come")
    w.remove("ada", "tls")


def budgets(w):
    w.added("head", "money", webhook=w.at + "/ok/money", on=["budget"], jobs="all")
    plan = w.stintd.owner.call("PUT", "/v1/accounts/here/plan", {"budget": "0.5"})
    check(plan.status == 200, "%d %s", plan.status, plan.text)
    job = w.job("bob", "costs", run="1h")
    w.until(lambda: w.web.at("/ok/money"), "the budget is told")
    doc = w.web.docs("/ok/money")[0]
    check(doc["type"] == "budget" and doc["account"] == "here" and doc["budget"]["of"] == "budget" and "here has spent" in doc["title"], "%s", doc)
    w.who["bob"].call("DELETE", "/v1/jobs/" + job)
    w.remove("head", "money")


def once(w):
    """A threshold that was told is not told again after a start."""
    w.added("head", "late", webhook=w.at + "/ok/late", on=["budget"], jobs="all")
    w.restart()
    w.settled("head", "late", w.test("head", "late"), "delivered")
    check(len(w.web.at("/ok/late")) == 1, "what was told before is told again: %s", w.web.docs("/ok/late"))
    w.remove("head", "late")


def preempted(w):
    """Who has to leave is told, and once more when it has left."""
    w.added("bob", "yields", webhook=w.at + "/ok/yields", on=["preempt", "start"])
    jobs = [w.who["bob"].make("/v1/jobs", {"name": f"b{i}", "gpus": 8, "limit": "2h", "sim": {"run": "1h"}})["id"] for i in range(4)]
    w.until(lambda: len(w.web.docs("/ok/yields")) == 4, "they start")
    claim = w.who["eve"].make("/v1/jobs", {"name": "claim", "gpus": 8, "limit": "2h", "sim": {"run": "1h"}})["id"]
    w.until(lambda: w.who["eve"].get("/v1/jobs/" + claim).json["state"] == "running", "the owner has its GPUs")
    w.until(lambda: [d for d in w.web.docs("/ok/yields") if d["type"] == "preempt" and d["job"]["state"] == "pending"], "it is told")
    told = [d for d in w.web.docs("/ok/yields") if d["type"] == "preempt"]
    check({d["job"]["id"] for d in told} <= set(jobs) and "waits again" in told[-1]["title"], "%s", told)
    check("claim" not in json.dumps(told) and claim not in json.dumps(told), "it is told by whom: %s", told)
    for user, job in [("bob", j) for j in jobs] + [("eve", claim)]:
        w.who[user].call("DELETE", "/v1/jobs/" + job)
    w.remove("bob", "yields")


def faulty(program, w):
    """Whose job is on a node with a fault is told, and nobody else."""
    stintd = Stintd(program, config=f"rate: 1000000\nnotice_hosts: \"{w.at}\"\nnotice_networks: 127.0.0.1\n")
    try:
        world = nodes.World(stintd)
        for name in (world.here, world.there):
            put = world.who[name].call("PUT", f"/v1/accounts/{name}/notices/n", {"webhook": f"{w.at}/ok/{name}", "on": ["incident"], "jobs": "all"})
            check(put.status == 200, "%d %s", put.status, put.text)
        job, node = world.job(world.here)
        world.sick(node)
        world.until(lambda: w.web.at("/ok/" + world.here), "the fault is told")
        doc = w.web.docs("/ok/" + world.here)[0]
        check((doc["type"], doc["incident"]["node"], doc["incident"]["fault"], doc["job"]["id"]) == ("incident", node, "xid", job), "%s", doc)
        check("79" not in doc["title"], "it is told what is the owner's to know: %s", doc)
        check(w.web.at("/ok/" + world.there) == [], "a stranger is told")
    finally:
        stintd.stop()


def turns(w):
    """Thirty notices of one tenant, for receivers that never answer or answer forever, and as many jobs: the other tenant's is there at once."""
    for i in range(30):
        w.added("head", f"slow{i}", webhook=w.at + ("/never", "/drip", "/head")[i % 3] + f"/{i}", on=["start", "end"], jobs="all")
    for i in range(40):
        w.job("bob", f"much{i}")
    w.until(lambda: sum(len(w.web.at(f"/{k}/{i}")) for i in range(30) for k in ("never", "drip", "head")) >= 2, "some are tried")
    begun = time.monotonic()
    delivery = w.test("eve", "all", "there")
    w.settled("eve", "all", delivery, "delivered", "there")
    took = time.monotonic() - begun
    busy = sum(len(w.web.at(f"/{k}/{i}")) for i in range(30) for k in ("never", "drip"))
    check(busy <= 4 or took < 5, "%d attempts at once, and the neighbour waited %.1f s", busy, took)
    check(len(w.show("head", "slow0").json["deliveries"]) <= 20, "the journal grows")
    for i in range(30):
        w.remove("head", f"slow{i}")


def limits(w):
    """An organisation has as many as it may; what finds no place is counted, and its own jobs go on."""
    set_to = w.stintd.owner.call("PATCH", "/v1/accounts/there/service-quota", {"notices": 2})
    check(set_to.status in (200, 204), "%d %s", set_to.status, set_to.text)
    w.added("eve", "two", "there", webhook=w.at + "/ok/two")
    third = w.add("eve", "three", "there", webhook=w.at + "/ok/three")
    check(third.status == 429 and "notices" in third.text, "%d %s", third.status, third.text)
    w.remove("eve", "two", "there")
    w.added("eve", "two", "there", webhook=w.at + "/no/two", on=["end"], jobs="all")
    jobs = [{"name": f"m{i}", "gpus": 0, "cpu": 1, "sim": {"run": "1ms"}} for i in range(300)]
    before = len(w.web.at("/ok/there"))
    made = w.who["eve"].post("/v1/jobs/batch", {"jobs": jobs})
    check(made.status in (200, 201), "%d %s", made.status, made.text[:300])
    counts = lambda: w.who["eve"].get("/v1/jobs?state=pending&state=running").json["jobs"]  # noqa: E731
    w.until(lambda: not counts(), "its jobs end")
    w.until(lambda: len(w.web.at("/ok/there")) >= before + 200, "those of a good receiver go out without a pause between two")
    refused = w.who["eve"].call("POST", "/v1/accounts/there/notices/two/test")
    check(refused.status == 403 and "wait" in refused.text, "more waits than may: %d %s", refused.status, refused.text)


def again(w):
    """What waits is told after a restart, with its id; what was taken is not."""
    w.added("ada", "keeps", webhook=f"http://localhost:{w.web.port}/later/4/keeps")
    w.added("head", "soon", webhook=w.at + "/ok/soon", on=["booking"], jobs="all")
    booked = w.who["head"].make("/v1/bookings", {"account": "here", "type": "h100", "gpus": 8, "from": "+12m", "for": "1h", "confirm": True})
    delivery = w.test("ada", "keeps")
    w.until(lambda: len(w.web.at("/later/4/keeps")) >= 1, "it is tried")
    taken = len(w.web.at("/ok/all"))
    w.restart()
    w.settled("ada", "keeps", delivery, "delivered")
    check({h["webhook-id"] for h, _ in w.web.at("/later/4/keeps")} == {delivery}, "another id")
    ids = [h["webhook-id"] for h, _ in w.web.at("/ok/all")[taken:]]
    before = {h["webhook-id"] for h, _ in w.web.at("/ok/all")[:taken]}
    check(not before & set(ids), "told again: %s", ids)
    w.until(lambda: w.web.at("/ok/soon"), "the booking is told")
    doc = w.web.docs("/ok/soon")[0]
    check(doc["booking"]["id"] == booked.get("id", doc["booking"]["id"]) and "begins soon" in doc["title"], "%s, booked %s", doc, booked)


def another(w):
    """Of one that was removed nothing goes to another one that has its name."""
    w.added("bob", "name", webhook=w.at + "/no/first")
    w.test("bob", "name")
    w.until(lambda: w.web.at("/no/first"), "it is tried")
    w.remove("bob", "name")
    w.added("ada", "name", webhook=w.at + "/ok/second")
    delivery = w.test("ada", "name")
    w.settled("ada", "name", delivery, "delivered")
    tried = len(w.web.at("/no/first"))
    check([h["webhook-id"] for h, _ in w.web.at("/ok/second")] == [delivery], "what was the other's comes: %s", w.web.docs("/ok/second"))
    check([r["id"] for r in w.show("ada", "name").json["deliveries"]] == [delivery], "%s", w.show("ada", "name").text)
    check(tried == len(w.web.at("/no/first")), "it is tried on")


def restored(w):
    """What a backup had to deliver stays where it is until an owner has accepted the restore."""
    w.added("ada", "backup", webhook=w.at + "/no/backup")
    w.test("ada", "backup")
    w.until(lambda: w.web.at("/no/backup"), "it is tried")
    w.stintd.owner.make("/v1/admin/backup", {"file": "n.db"})
    for client in w.who.values():
        client.close()
    w.stintd.process.send_signal(signal.SIGTERM)
    check(w.stintd.process.wait(60) == 0, "stintd did not end well")
    data = os.path.join(w.stintd.dir, "data")
    done = subprocess.run([w.program, "--config", os.path.join(w.stintd.dir, "config.yaml"), "--data", data, "--restore",
                           os.path.join(data, "backups", "n.db")], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, "%s %s", done.stdout, done.stderr)
    w.stintd.again(w.program, running=False)
    w.clients()
    state = lambda: w.stintd.owner.get("/v1/admin/restore").json  # noqa: E731
    check(state()["state"] == "waiting", "%s", state())
    before, begun = len(w.web.at("/no/backup")), time.monotonic()
    w.until(lambda: time.monotonic() > begun + 2.5, "time goes by, in which the loop is asked twice")
    check(len(w.web.at("/no/backup")) == before, "it is told before the restore is accepted")
    accepted = w.stintd.owner.call("POST", "/v1/admin/restore", {"plan": state()["plan"]})
    check(accepted.status in (200, 202), "%d %s", accepted.status, accepted.text)
    w.until(lambda: len(w.web.at("/no/backup")) > before, "it is told afterwards")
    check(len({h["webhook-id"] for h, _ in w.web.at("/no/backup")}) == 1, "with another id")


def removed(w):
    """Nothing of it is left, and nothing goes out."""
    for name in [n["name"] for n in w.who["head"].get("/v1/notices?account=here").json["notices"]]:
        w.remove("head", name)
    for name in [n["name"] for n in w.who["eve"].get("/v1/notices").json["notices"]]:
        w.remove("eve", name, "there")
    check(w.stintd.owner.get("/v1/notices").json["notices"] == [], "some are left")
    with sqlite3.connect(f"file:{os.path.join(w.stintd.dir, 'data', 'stint.db')}?mode=ro", uri=True) as store:
        left = store.execute("SELECT kind, name FROM things WHERE kind IN ('notice', 'notice-out', 'notice-log', 'secret')").fetchall()
    check(left == [], "left: %s", left)
    check(w.stintd.owner.call("DELETE", "/v1/accounts/there").status == 204, "its account can go")


def commands(w):
    """The same with stint."""
    stint = os.path.join(os.path.dirname(w.program), "stint")
    env = {"PATH": os.environ["PATH"], "HOME": w.folder, "STINT_URL": f"http://127.0.0.1:{w.stintd.port}",
           "STINT_TOKEN": w.tokens["ada"]}

    def run(*args, status=0, text=None):
        got = subprocess.run([stint, "notice", *args], env=env, input=text, capture_output=True, text=True, timeout=60)
        check(got.returncode == status, "stint notice %s: %d %s %s", args, got.returncode, got.stdout, got.stderr)
        return got.stdout + got.stderr
    said = run("add", "cli", "--webhook", "-", "--on", "end,fail", text=w.at + "/ok/cli?S3CRET\n")
    check(re.search(r"^whsec_\S{44}$", said, re.M) and "stint notice test cli" in said, "%s", said)
    check("took the test" in run("test", "cli"), "no test")
    check("127.0.0.1" in run("list") and "S3CRET" not in run("list"), "%s", run("list"))
    check("delivered" in run("show", "cli"), "%s", run("show", "cli"))
    check("say where" in run("add", "x", status=2), "no place")
    check("may not go to" in run("add", "x", "-w", "https://other.example/", status=8), "elsewhere")
    run("add", "cli2", "-w", w.at + "/no/cli2")
    check("it answered 500" in run("test", "cli2", status=7), "a test that fails")
    run("remove", "cli", "cli2")


def run(program):
    w = World(program)
    try:
        for case in (a_job_is_told, whose_jobs, not_for_others, at_rest, nowhere_else, bad_receivers, mails, over_tls, budgets, once, preempted,
                     commands, limits, again, another, restored, turns, removed):
            begun = time.monotonic()
            case(w)
            print(f"{case.__name__}: {time.monotonic() - begun:.1f} s")
        faulty(program, w)
    finally:
        w.web.close()
        w.tls.close()
        w.mail.close()
        w.stintd.stop()


main(run)
