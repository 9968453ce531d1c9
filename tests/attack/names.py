#!/usr/bin/env python3
"""Names that change hands, and tokens that were good a moment ago: whoever had an account or a token has nothing of whoever
has its name now, nor the other way round, whatever comes at the same time.

rival's admin makes accounts, works in them and removes them; acme then has accounts of these names."""

import json
import random
import socket

from attack import FINAL, attempt, check, many, until, wall
from harness import Client, Stream

CANARY = "kestrel"  # in whatever rival's people are called, say and do
made = iter(range(10**6))


def ok(answer, *statuses):
    check(answer.status in (statuses or (200, 201, 204)), "%d %s", answer.status, answer.text[:300])
    return answer


class Account:
    """An account below rival, and its admin."""

    def __init__(self, site, role="admin"):
        self.site, self.name = site, f"n{next(made)}"
        ok(site.rival_admin.post("/v1/accounts", {"name": self.name, "parent": "rival"}))
        self.token = site.owner.make("/v1/tokens", {"account": self.name, "user": CANARY, "role": role, "label": CANARY})
        self.admin = site.person(self.token["token"], "paper")

    def works(self, **headers):
        job = self.admin.post("/v1/jobs", {"name": CANARY, "pool": "paper", "gpus": 1, "command": ["true"], "sim": {"run": "1s"},
                                           "labels": {CANARY: CANARY}}, headers=headers)
        check(job.status == 201, "%d %s", job.status, job.text)
        self.admin.becomes(job.json["id"], *FINAL)
        return job.json["id"]

    def goes(self):
        ok(self.site.rival_admin.call("DELETE", "/v1/accounts/" + self.name), 204)

    def taken(self):
        """By acme; its new admin."""
        ok(self.site.owner.post("/v1/accounts", {"name": self.name, "parent": "acme"}))
        return self.site.token(self.name, "heir", "admin")


def raw(method, path, body, secret):
    text = json.dumps(body).encode() if body is not None else b""
    length = f"Content-Length: {len(text)}\r\n" if text else ""
    return (f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\nContent-Type: application/json\r\n"
            f"{length}\r\n").encode(), text


def answers(site, requests):
    """All at once, each over a connection of its own: (status, body) of each."""
    socks = [socket.create_connection(("127.0.0.1", site.stintd.port), timeout=30) for _ in requests]
    for sock, (head, body) in zip(socks, requests):
        sock.sendall(head + body)
    return [ended(sock) for sock in socks]


def ended(sock):
    got = b""
    try:
        while b"\r\n\r\n" not in got:
            more = sock.recv(65536)
            if not more:
                break
            got += more
    finally:
        sock.close()
    return int(got[9:12] or 0), got.partition(b"\r\n\r\n")[2]


def quota(site, account):
    rows = site.owner.get(f"/v1/accounts/{account}/service-quota").json["quota"]
    return {row["name"]: row["used"] for row in rows}


# ---- tokens that were good when the request began -----------------------------------------------------------------

LATE = (("POST", "/v1/tokens", {"account": "rival", "user": "backdoor", "role": "admin"}),
        ("POST", "/v1/accounts", {"name": "backyard", "parent": "rival"}),
        ("POST", "/v1/jobs", {"name": "late", "pool": "paper", "gpus": 1, "command": ["true"]}),
        ("POST", "/v1/jobs/batch", {"jobs": [{"name": "late", "pool": "paper", "gpus": 1, "command": ["true"]}]}),
        ("POST", "/v1/whatif", {"job": {"pool": "paper", "gpus": 1, "command": ["true"]}}),
        ("POST", "/v1/jobs?dry_run=true", {"pool": "paper", "gpus": 1, "command": ["true"]}),
        ("PUT", "/v1/sizes/late", {"gpus": 1}),
        ("PUT", "/v1/accounts/rival/secrets/late", {"a": 1}),
        ("PATCH", "/v1/accounts/rival-lab/service-quota", {"tokens": 3}))


def half_sent(site, secret):
    waiting = []
    for method, path, body in LATE:
        head, text = raw(method, path, body, secret)
        sock = socket.create_connection(("127.0.0.1", site.stintd.port), timeout=30)
        sock.sendall(head + text[:4])
        waiting.append((path, sock, text[4:]))
    return waiting


def finished(site, waiting):
    for path, sock, rest in waiting:
        sock.sendall(rest)
        status, body = ended(sock)
        check(status == 401, "%s was done by a token that opens nothing: %d %s", path, status, body[:200])
    users = site.owner.get("/v1/users").text
    check("backdoor" not in users, "it has a token again")
    check(site.owner.get("/v1/accounts/backyard").status == 404, "it made an account")
    check("late" not in site.owner.get("/v1/sizes").text, "it made a size")


@attempt("an admin of rival", "sends half of its requests, is revoked, and sends the rest", "401 each, and nothing made")
def revoked_in_between(site):
    token = site.owner.make("/v1/tokens", {"account": "rival", "user": "gone", "role": "admin"})
    waiting = half_sent(site, token["token"])
    person = site.person(token["token"])
    until(lambda: person.get("/v1/whoami").status == 200, "its token works")
    ok(site.owner.call("DELETE", "/v1/tokens/" + token["id"]), 204)
    finished(site, waiting)


@attempt("the same", "lets its token expire in the middle of its requests", "401 each, and nothing made")
def expired_in_between(site):
    token = site.owner.make("/v1/tokens", {"account": "rival", "user": "gone", "role": "admin", "expires_in": "2s"})
    waiting = half_sent(site, token["token"])
    person = site.person(token["token"])
    until(lambda: person.get("/v1/whoami").status == 401, "its end")
    finished(site, waiting)


@attempt("an account's own admin", "sends half of its requests while the account is removed and acme takes the name", "401 each")
def removed_in_between(site):
    account = Account(site)
    waiting = half_sent(site, account.token["token"])
    until(lambda: account.admin.get("/v1/whoami").status == 200, "its token works")
    account.goes()
    heir = account.taken()
    finished(site, waiting)
    check(heir.get("/v1/jobs").json["jobs"] == [], "it works in the new account: %s", heir.get("/v1/jobs").text[:300])


# ---- in one turn of the loop ---------------------------------------------------------------------------------------

def raced(site, make, times=20):
    """A removal, and three requests beside it: the accounts that were removed, with what the others were answered."""
    secret, gone = site.secrets["rival_admin"], []
    for _ in range(times):
        name = f"n{next(made)}"
        ok(site.rival_admin.post("/v1/accounts", {"name": name, "parent": "rival"}))
        first, *others = answers(site, [raw("DELETE", "/v1/accounts/" + name, None, secret)] + [raw(*make(name), secret)] * 3)
        check(site.stintd.alive(), "stintd has ended")
        if first[0] == 204:
            gone.append((name, others))
    return gone


@attempt("an admin of rival", "makes tokens for an account as it is removed, and waits for acme to take its name", "they open nothing")
def token_of_a_removed_one(site):
    for name, others in raced(site, lambda n: ("POST", "/v1/tokens", {"account": n, "user": "mole", "role": "admin"}), many(160)):
        ok(site.owner.post("/v1/accounts", {"name": name, "parent": "acme"}))
        for status, body in others:
            mole = status == 201 and site.person(json.loads(body)["token"]).get("/v1/whoami")
            check(not mole or mole.status == 401, "a token of rival's opens acme's account: %s", mole and mole.text)
        check("mole" not in site.owner.get("/v1/users").text, "a token is left")


@attempt("the same", "sets quotas of an account as it is removed", "there is none, and stintd is well")
def quota_of_a_removed_one(site):
    for name, _ in raced(site, lambda n: ("PATCH", f"/v1/accounts/{n}/service-quota", {"tokens": 7}), many(160)):
        ok(site.owner.post("/v1/accounts", {"name": name, "parent": "acme"}))
        rows = site.owner.get(f"/v1/accounts/{name}/service-quota").json["quota"]
        check(next(q for q in rows if q["name"] == "tokens")["limit"] != 7, "acme's has the quota of rival's")


@attempt("the same", "puts secrets into it and submits to it as it is removed", "nothing of that in the next of its name")
def secret_of_a_removed_one(site):
    for name, _ in raced(site, lambda n: ("PUT", f"/v1/accounts/{n}/secrets/x", {"a": 1}), many(80)):
        ok(site.owner.post("/v1/accounts", {"name": name, "parent": "acme"}))
        check(site.owner.get(f"/v1/accounts/{name}/secrets").json["secrets"] == [], "it has a secret of rival's")
    job = {"pool": "paper", "gpus": 1, "command": ["true"], "sim": {"run": "1s"}}
    for name, _ in raced(site, lambda n: ("POST", "/v1/jobs", {**job, "account": n}), many(80)):
        ok(site.owner.post("/v1/accounts", {"name": name, "parent": "acme"}))
        check(site.owner.get(f"/v1/jobs?account={name}").json["jobs"] == [], "it has a job of rival's")


def storm(name, parent):
    """Everything that can be done to an account, the second one of its name included."""
    child = name + "-c"
    return [("POST", "/v1/accounts", {"name": name, "parent": parent}), ("POST", "/v1/accounts", {"name": child, "parent": name}),
            ("POST", "/v1/tokens", {"account": name, "user": parent, "role": "admin"}),
            ("PATCH", f"/v1/accounts/{name}/service-quota", {"tokens": 5}),
            ("PUT", f"/v1/accounts/{name}/secrets/x", {"a": 1}), ("DELETE", f"/v1/accounts/{name}/secrets/x", None),
            ("POST", "/v1/jobs", {"account": name, "pool": "paper", "gpus": 1, "command": ["true"], "sim": {"run": "1s"}}),
            ("DELETE", "/v1/accounts/" + child, None), ("DELETE", "/v1/accounts/" + name, None),
            ("POST", "/v1/accounts", {"name": name, "parent": parent})]


@attempt("admins of rival and acme", "make, use and remove accounts of the same names, all at once, in any order",
         "stintd is well, tokens are where they were made, and what is there is what is counted")
def both_want_it(site):
    chance, tokens = random.Random(11), []
    boss = site.token("acme", "boss", "admin")
    for _ in range(many(320)):
        name = f"n{next(made)}"
        asked = [(who, one) for who, secret in (("rival", site.secrets["rival_admin"]), ("acme", boss.token))
                 for one in [raw(*r, secret) for r in storm(name, who)]]
        chance.shuffle(asked)
        got = answers(site, [one for _, one in asked])
        check(site.stintd.alive(), "stintd has ended")
        for (who, _), (status, body) in zip(asked, got):
            check(status < 500, "%d %s", status, body[:300])
            if status == 201 and b'"token"' in body:
                tokens.append((who, json.loads(body)["token"]))
    below = {"rival": site.rival_admin.get("/v1/accounts").json["accounts"], "acme": boss.get("/v1/accounts").json["accounts"]}
    below = {who: {a["name"] for a in rows} for who, rows in below.items()}
    check(tokens and any(len(names) > 2 for names in below.values()), "nothing was made: %s", below)
    for who, secret in tokens:
        answer = site.person(secret).get("/v1/whoami")
        check(answer.status == 401 or answer.json["account"] in below[who], "a token that %s made is for %s", who, answer.text)
    for who, names in below.items():
        check(quota(site, who)["accounts"] == len(names) - 1, "%s has %d accounts, counted %d", who, len(names) - 1,
              quota(site, who)["accounts"])


@attempt("the same", "names the account that is gone as those above it see it, NAME (NUMBER), wherever one can be named",
         "there is none: no token, no quota, and stintd is well")
def gone_by_its_number(site):
    account = Account(site)
    number = site.owner.get("/v1/accounts/" + account.name).json["id"]
    account.goes()
    gone = f"{account.name} ({number})"
    job = {"pool": "paper", "gpus": 1, "command": ["true"]}
    for person in (site.rival_admin, site.owner):
        site.refused(person.post("/v1/tokens", {"account": gone, "user": "u", "role": "admin"}), "no account", 404)
        site.refused(person.post("/v1/jobs", {**job, "account": gone}), "", 404)
        site.refused(person.post("/v1/accounts", {"name": "below-it", "parent": gone}), "")
        path = "/v1/accounts/" + gone.replace(" ", "%20")
        for method, rest, body in (("PATCH", "/service-quota", {"tokens": 5}), ("PUT", "/secrets/x", {"a": 1}), ("DELETE", "", None),
                                   ("PATCH", "", {"max": {"gpu": 1}}), ("PUT", "/plan", {"discount": "5%"})):
            site.refused(person.call(method, path + rest, body, {"If-Match": "*"} if method == "PATCH" else {}), "")
        check(site.stintd.alive(), "stintd has ended")


# ---- who has the name now -------------------------------------------------------------------------------------------

@attempt("the new holder of a name", "lists, reads and removes the tokens of the old one", "none of them, nor their users' names")
def old_tokens(site):
    account = Account(site)
    account.goes()
    heir = account.taken()
    for person in (heir, site.token("acme", "boss", "admin")):
        check(CANARY not in person.get("/v1/tokens").text, "it lists them: %s", person.get("/v1/tokens").text[:300])
        path = "/v1/tokens/" + account.token["id"]
        site.refused(person.get(path), "no token", 404)
        site.refused(person.call("DELETE", path), "no token", 404)
        site.refused(person.call("DELETE", path + "?remove=true"), "no token", 404)
    mine = [t for t in site.rival_admin.get("/v1/tokens").json["tokens"] if t["id"] == account.token["id"]]
    check(mine and mine[0]["revoked"], "those above the old one have lost it: %s", mine)


@attempt("the new holder of a name", "asks for what it missed, from events of its own organisation", "nothing of the old one's")
def old_events(site):
    boss = site.token("acme", "boss", "admin")
    stream = Stream(site.stintd.port, boss.token)
    boss.job(pool="paper", gpus=1, sim={"run": "1s"})
    check(stream.wait(lambda s: s.events()), "acme has no event")
    last = stream.events()[0][0]
    stream.close()
    account = Account(site)
    job = account.works()
    account.goes()
    heir = account.taken()
    for person in (boss, heir):
        again = Stream(site.stintd.port, person.token, last=last)
        own = person.job(pool="paper", gpus=1, sim={"run": "1s"})
        check(again.wait(lambda s, o=own: o.encode() in s.bytes()), "its own event never came")
        check(CANARY.encode() not in again.bytes() and job.encode() not in again.bytes(), "it hears of rival's job")
        again.close()


@attempt("who watched the old account", "listens while the new one works", "no word of it")
def old_watchers(site):
    account = Account(site)
    stream = Stream(site.stintd.port, account.token["token"])
    account.works()
    check(stream.wait(lambda s: s.events()), "no event")
    account.goes()
    heir = account.taken()
    job = heir.job(pool="paper", gpus=1, sim={"run": "1s"})
    check(stream.wait(lambda s: b"event: revoked" in s.bytes(), 10), "its stream goes on")
    check(job.encode() not in stream.bytes(), "it heard of acme's job")
    stream.close()


@attempt("the new holder of a name", "reads every route there is", "no word of the old one")
def every_route(site):
    account = Account(site)
    job = account.works()
    ok(account.admin.call("PUT", f"/v1/sizes/{CANARY}", {"gpus": 1}))
    ok(account.admin.call("DELETE", f"/v1/sizes/{CANARY}"))
    account.goes()
    heir = account.taken()
    paths = [p for p, item in site.owner.get("/openapi.json").json["paths"].items()
             if "get" in item and p not in ("/v1/events", "/v1/agent/desired")]
    paths += ["/v1/audit?limit=1000", "/v1/jobs?user=" + CANARY, "/v1/bills/open/usage?by=job", "/v1/bills/open/usage?by=user",
              "/v1/bills/open?format=csv", "/v1/bills/open?format=file", "/v1/bills/open/entries?format=csv"]
    for person in (heir, site.token("acme", "boss", "admin")):
        for path in paths:
            text = person.get(path.replace("{id}", job).replace("{name}", account.name).replace("{period}", "open")).text
            check(CANARY not in text, "%s has it: %s", path, text[:300])


# ---- what is counted -----------------------------------------------------------------------------------------------

@attempt("an admin of rival", "removes accounts whose streams and connections are open", "they count until they end, and no longer")
def counts_of_removed_ones(site):
    before = quota(site, "rival")
    account = Account(site)
    people = [site.person(account.token["token"]) for _ in range(8)]
    for person in people:
        ok(person.get("/v1/whoami"))
    streams = [Stream(site.stintd.port, account.token["token"]) for _ in range(4)]
    until(lambda: quota(site, "rival")["streams"] >= before["streams"] + 4, "its streams")
    account.goes()
    check(quota(site, "rival")["connections"] >= before["connections"] + 8, "open connections count for nobody")
    for one in people + streams + [account.admin]:
        one.close()
    until(lambda: all(quota(site, "rival")[k] <= before[k] for k in ("streams", "connections")),
          "what it had was given back", 30)


@attempt("the same", "removes and makes an account again and again, each time with connections that stay", "a bound on them all")
def connections_of_removed_ones(site):
    held, refused = [], 0
    try:
        for _ in range(6):
            account = Account(site)
            for _ in range(20):
                person = site.person(account.token["token"])
                refused += person.get("/v1/whoami").status == 429
                held.append(person)
            account.goes()
            heir = site.rival_admin.post("/v1/accounts", {"name": account.name, "parent": "rival"})
            ok(heir)
        check(refused >= 40, "%d of 120 connections of one organisation were refused, which may have 60", refused)
    finally:
        for person in held:
            person.close()
    until(lambda: quota(site, "rival")["connections"] < 10, "what they had was given back", 30)


@attempt("an admin of rival", "makes and removes accounts without end", "an end, by a quota it is told")
def churn(site):
    last = None
    for _ in range(800):
        name = f"n{next(made)}"
        last = site.rival_admin.post("/v1/accounts", {"name": name, "parent": "rival"})
        if last.status != 201:
            break
        ok(site.rival_admin.call("DELETE", "/v1/accounts/" + name), 204)
    site.refused(last, "quota accounts_made: 600 of 600", 429)
    ok(site.owner.call("PATCH", "/v1/accounts/rival/service-quota", {"accounts_made": 610}))
    ok(site.rival_admin.post("/v1/accounts", {"name": "made-after-all", "parent": "rival"}))


@attempt("the same", "makes and revokes tokens without end", "an end, by a quota it is told; removing some makes room")
def token_churn(site):
    ids, last = [], None
    for _ in range(800):
        last = site.rival_admin.post("/v1/tokens", {"account": "rival", "user": "u", "role": "viewer"})
        if last.status != 201:
            break
        ids.append(last.json["id"])
        ok(site.rival_admin.call("DELETE", "/v1/tokens/" + ids[-1]), 204)
    site.refused(last, "quota tokens_kept: 400 of 400", 429)
    for one in ids[:3]:
        ok(site.rival_admin.call("DELETE", f"/v1/tokens/{one}?remove=true"), 204)
    got = [site.rival_admin.post("/v1/tokens", {"account": "rival", "user": "u", "role": "viewer"}).status for _ in range(4)]
    check(got == [201, 201, 201, 429], "%s", got)
    client = Client(site.stintd.port, site.secrets["acme"])
    ok(client.get("/v1/whoami"))
    client.close()


if __name__ == "__main__":
    wall("names", config="quota: {accounts_made: 600, tokens_kept: 400, connections: 60}\n")
