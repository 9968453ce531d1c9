#!/usr/bin/env python3
"""Roles and scope: nobody does with a token what its role and account do not allow, by any route."""

from attack import attempt, wall
from harness import Stream, check


@attempt("an admin of rival", "makes itself an owner's token", "a refusal")
def owner_token(site):
    site.refused(site.rival_admin.post("/v1/tokens", {"user": "max", "role": "owner"}))


@attempt("an admin of rival", "makes a token of acme", "acme does not exist for it")
def token_elsewhere(site):
    there = site.refused(site.rival_admin.post("/v1/tokens", {"user": "x", "role": "member", "account": "acme"}))
    never = site.refused(site.rival_admin.post("/v1/tokens", {"user": "x", "role": "member", "account": "nobody"}))
    check(there.json["detail"].replace("acme", "?") == never.json["detail"].replace("nobody", "?"), "acme and nobody differ")


@attempt("an admin of rival", "makes node and join tokens", "a refusal")
def node_token(site):
    for role in ("node", "join"):
        site.refused(site.rival_admin.post("/v1/tokens", {"user": "n0", "role": role}))


@attempt("an admin of rival", "asks for a join token", "a refusal")
def join_token(site):
    site.refused(site.rival_admin.post("/v1/admin/join-tokens", {"pool": "main", "uses": 1}), status=403)


@attempt("a member of rival", "makes any token at all", "a refusal")
def member_token(site):
    site.refused(site.rival.post("/v1/tokens", {"user": "mallory", "role": "viewer"}), status=403)


@attempt("an admin of rival", "raises the guarantee and the max of its own account", "a refusal, and nothing changed")
def own_quota(site):
    before = site.owner.get("/v1/accounts/rival").json
    for change in ({"guarantee": {"gpu": 32}}, {"max": {"gpu": 10000}}, {"weight": 1000}, {"trusted": True}, {"priority": 100}):
        site.refused(site.rival_admin.call("PATCH", "/v1/accounts/rival", change))
    check(site.owner.get("/v1/accounts/rival").json == before, "its account has changed")


@attempt("an admin of rival", "moves its account under acme, or acme under itself", "a refusal")
def move_account(site):
    site.refused(site.rival_admin.call("PATCH", "/v1/accounts/rival", {"parent": "acme"}))
    site.refused(site.rival_admin.call("PATCH", "/v1/accounts/acme", {"parent": "rival"}))


@attempt("an admin of rival", "makes an account below acme and one at the top", "a refusal")
def account_elsewhere(site):
    site.refused(site.rival_admin.post("/v1/accounts", {"name": "mole", "parent": "acme"}))
    made = site.rival_admin.post("/v1/accounts", {"name": "mole"})
    check(made.status >= 400 or site.owner.get("/v1/accounts/mole").json["parent"] == "rival",
          "an account at the top: %s", made.text)


@attempt("a member of rival", "submits to acme's account and in acme's user's name", "a refusal")
def submit_for_others(site):
    site.refused(site.rival.submit(account="acme"))
    answer = site.rival.submit(user="ada")
    check(answer.status >= 400 or answer.json["user"] == "mallory", "a job of ada's: %s", answer.text)


@attempt("a member of rival", "reads, cancels and changes a job of acme", "the answer for a job that never was")
def other_jobs(site):
    job = site.acme.job(pool="paper", gpus=1, name="quiet-work")
    for method, path, body in (("GET", "", None), ("DELETE", "", None), ("PATCH", "", {"priority": "high"}),
                               ("GET", "/why", None), ("GET", "/logs", None)):
        answer = site.rival.call(method, f"/v1/jobs/{job}{path}", body)
        never = site.rival.call(method, f"/v1/jobs/j0000000{path}", body)
        check(answer.status == 404 and answer.status == never.status, "%s %s: %d", method, path, answer.status)
        check("quiet-work" not in answer.text and "ada" not in answer.text, "it says %s", answer.text)
    check(site.acme.show(job)["state"] in ("pending", "running"), "the job is gone")
    site.acme.cancel(job)


@attempt("a member of rival", "cancels a colleague's job", "a refusal")
def colleagues_job(site):
    colleague = site.token("rival", "mona", "member")
    job = colleague.job(pool="paper", gpus=1)
    site.refused(site.rival.cancel(job))
    check(colleague.show(job)["state"] in ("pending", "running"), "the job is gone")
    colleague.cancel(job)


@attempt("a viewer and an auditor of rival", "submit, cancel and change", "a refusal each")
def readers_write(site):
    job = site.rival.job(pool="paper", gpus=1)
    for role in ("viewer", "auditor"):
        reader = site.token("rival", role + "-of-rival", role)
        site.refused(reader.submit(pool="paper"), status=403)
        site.refused(reader.cancel(job), status=403)
        site.refused(reader.call("PATCH", f"/v1/jobs/{job}", {"priority": "high"}), status=403)
        site.refused(reader.post("/v1/accounts", {"name": "x"}), status=403)
    site.rival.cancel(job)


@attempt("an admin of rival", "changes the fleet: types, pools, nodes, rules, prices, plans, credits", "a refusal each")
def the_fleet(site):
    for method, path, body in (
            ("POST", "/v1/types", {"name": "h200"}), ("POST", "/v1/pools", {"name": "mine"}),
            ("PATCH", "/v1/pools/main", {"levels": ["whole"]}), ("POST", "/v1/nodes", {"name": "x", "pool": "main"}),
            ("PATCH", "/v1/nodes/paper0", {"state": "drain"}), ("PUT", "/v1/rules/mine", "return 1"),
            ("POST", "/v1/prices", {"name": "free"}), ("PUT", "/v1/plan", {}), ("PUT", "/v1/accounts/rival/plan", {}),
            ("POST", "/v1/accounts/rival/credits", {"amount": "1000000", "reason": "thanks"}),
            ("POST", "/v1/admin/reconcile", None), ("POST", "/v1/admin/backup", {"path": "x"})):
        site.refused(site.rival_admin.call(method, path, body), status=403)
    check(site.owner.get("/v1/nodes/paper0").json["state"] == "ready", "paper0 is no longer ready")


@attempt("an admin of rival", "speaks as an agent", "a refusal each")
def as_an_agent(site):
    for who in (site.rival_admin, site.rival, site.owner):
        site.refused(who.get("/v1/agent/desired"), status=403)
        site.refused(who.post("/v1/agent/status", {}), status=403)
        site.refused(who.post("/v1/agent/register", {"name": "n0"}), status=403)


@attempt("a member of rival", "reads acme's accounts, bills, budget, plan and usage", "not found, each")
def other_money(site):
    for path in ("/v1/accounts/acme", "/v1/accounts/acme/quota", "/v1/accounts/acme/usage", "/v1/accounts/acme/plan",
                 "/v1/accounts/acme/budget", "/v1/bills/open?account=acme", "/v1/bills/open/entries?account=acme",
                 "/v1/bills/open/usage?account=acme", "/v1/jobs?account=acme"):
        answer = site.rival.get(path)
        check(answer.status == 404, "GET %s: %d %s", path, answer.status, answer.text[:200])


@attempt("a member of rival", "lists everything it can", "no name of acme's in any answer")
def lists_name_nobody(site):
    job = site.acme.job(pool="paper", gpus=1, name="zebra-finch", labels={"k": "okapi-herd"})
    for path in ("/v1/jobs", "/v1/accounts", "/v1/nodes", "/v1/pools", "/v1/users", "/v1/tokens", "/v1/sizes", "/metrics",
                 "/v1/bills", "/v1/bills/open", "/v1/nodes/paper0", "/v1/nodes/paper1", "/v1/nodes/paper2", "/v1/nodes/paper3"):
        text = site.rival_admin.get(path).text
        for word in ("zebra-finch", "okapi-herd", "acme", "ada", job):
            check(f'"{word}"' not in text, "%s has %s", path, word)
    site.acme.cancel(job)


@attempt("a member of rival", "listens to events while acme works", "no word of acme's")
def events(site):
    stream = Stream(site.stintd.port, site.secrets["rival"])
    job = site.acme.job(pool="paper", gpus=1, name="heron-lake")
    own = site.rival.job(pool="paper", gpus=1, name="own-work")
    check(stream.wait(lambda s: own.encode() in s.bytes()), "its own event never came")
    site.acme.cancel(job)
    site.rival.cancel(own)
    check(b"heron-lake" not in stream.bytes() and job.encode() not in stream.bytes(), "it heard of acme's job")
    stream.close()


@attempt("a stranger", "tries tokens: none, empty, huge, binary, another scheme, a prefix", "401 or 400, never more")
def stranger(site):
    good = site.secrets["acme"]
    for value in (None, "Bearer", "Bearer ", "Bearer " + "a" * 4000, "Basic " + good, "Bearer " + good[:-1],
                  "Bearer " + good + "a", "bearer" + good, "Bearer " + good.upper(), "Bearer \x80\xff"):
        headers = {} if value is None else {"Authorization": value.encode("latin-1")}
        client = site.person(None)
        answer = client.call("GET", "/v1/jobs", headers=headers)
        check(answer.status in (400, 401, 431), "%r: %d", value, answer.status)
        client.close()


@attempt("whoever had a token", "uses it after it was revoked", "401 at once")
def revoked(site):
    made = site.owner.make("/v1/tokens", {"account": "rival", "user": "gone", "role": "admin"})
    person = site.person(made["token"])
    check(person.get("/v1/jobs").status == 200, "the token never worked")
    check(site.owner.call("DELETE", "/v1/tokens/" + made["id"]).status == 204, "not revoked")
    check(person.get("/v1/jobs").status == 401, "it still works")


@attempt("an admin of rival", "revokes acme's and the owner's tokens", "not found")
def revoke_others(site):
    rows = site.owner.get("/v1/tokens").json["tokens"]
    others = [row["id"] for row in rows if row.get("account") != "rival" and row.get("account") != "rival-lab"]
    check(others, "no token to try")
    for one in others:
        site.refused(site.rival_admin.call("DELETE", "/v1/tokens/" + one), status=404)
    check(site.acme.get("/v1/whoami").status == 200, "acme's token is gone")


@attempt("a member of rival", "walks through ids near its own", "no job of anybody else")
def guess_ids(site):
    job = site.rival.job(pool="paper", gpus=1)
    letters = "0123456789abcdefghijkmnpqrstvwxyz"
    for at in range(1, len(job)):
        for letter in letters[::3]:
            answer = site.rival.get("/v1/jobs/" + job[:at] + letter + job[at + 1:])
            check(answer.status == 404 or answer.json["account"] in ("rival", "rival-lab"), "found %s", answer.text)
    site.rival.cancel(job)


@attempt("a member of rival", "climbs by path: .., encoded slashes, doubled slashes, NUL", "404 or 400")
def path_tricks(site):
    for path in ("/v1/accounts/rival/../acme", "/v1/accounts/rival%2f..%2facme", "/v1//accounts/acme", "/v1/accounts/acme%00",
                 "/v1/accounts/%61cme", "/v1/accounts/acme/", "//v1/accounts/acme", "/v1/jobs/..%2faccounts%2facme"):
        answer = site.rival.get(path)
        check(answer.status in (400, 404), "%s: %d", path, answer.status)


@attempt("an admin of rival", "uses a cursor and a Last-Event-ID of acme", "a refusal, or nothing of acme's")
def foreign_cursor(site):
    for _ in range(2):
        site.acme.job(pool="paper", gpus=1, name="cursor-mark")
    cursor = site.acme.get("/v1/jobs?limit=1").json.get("next")
    check(cursor, "acme has no cursor")
    answer = site.rival_admin.get("/v1/jobs?cursor=" + cursor)
    check(answer.status == 400 or "cursor-mark" not in answer.text, "it lists acme's")
    check(answer.status < 500, "%d", answer.status)


@attempt("a member of rival", "repeats acme's Idempotency-Key", "a job of its own, nothing of acme's")
def foreign_key(site):
    doc = {"name": "kept-once", "pool": "paper", "gpus": 1, "command": ["true"]}
    mine = site.acme.post("/v1/jobs", doc, headers={"Idempotency-Key": "shared-key"}).json
    theirs = site.rival.post("/v1/jobs", doc, headers={"Idempotency-Key": "shared-key"}).json
    check(theirs["id"] != mine["id"] and theirs["account"] == "rival", "it got %s", theirs)
    other = site.rival.post("/v1/jobs", dict(doc, name="else"), headers={"Idempotency-Key": "shared-key"})
    check(other.status == 409, "the same key for another document: %d", other.status)


wall("roles")
