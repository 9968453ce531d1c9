#!/usr/bin/env python3
"""Whoever changes something leaves a row: every operation that is not a GET, in turn.

How each is called comes from test_isolation.py, which has a row for every route. A route that changes
nothing says so in the OpenAPI document (`x-stint-changes: false`) and must leave none; every other one
must leave a row with the name of who called. A route that nobody can call here fails the test.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
import test_isolation as isolation  # noqa: E402
from harness import Stintd, check, main  # noqa: E402

# Of machines, or about such as have an agent: there is none here. tests/attack/secrets.py sees their rows, test_incidents.py that of a reset.
MACHINES = {("POST", "/v1/agent/register"), ("POST", "/v1/agent/status"), ("POST", "/v1/nodes/{name}/rejoin"), ("POST", "/v1/nodes/{name}/test"), ("POST", "/v1/incidents/{id}/reset"),
            ("POST", "/v1/agent/logs/{job}/{stay}/{task}")}
# Needs a clock that has leapt (test_money.py looks for its row), a restored store (tests/agent_restore.sh does), a month
# that is over (test_invoices.py does), or a job that really runs (tests/agent_forward.sh does), or a witness's signature (test_witness.py does). A login changes nothing.
ELSEWHERE = {("POST", "/v1/jobs/{id}/tunnels"), ("DELETE", "/v1/tunnels/{id}"), ("POST", "/v1/session"), ("POST", "/v1/image-pulls"), ("PUT", "/v1/billing/witnesses/{name}/head"), ("POST", "/v1/admin/clock"), ("POST", "/v1/admin/restore"), ("POST", "/v1/invoices")}


def changes(stintd):
    document = stintd.client().get("/openapi.json").json
    return {(method.upper(), path): operation["x-stint-changes"]
            for path, item in document["paths"].items() for method, operation in item.items()
            if method in ("post", "put", "patch", "delete")}


def newest(owner, **query):
    text = "&".join(f"{key}={value}" for key, value in query.items())
    return owner.get("/v1/audit?limit=1&" + text).json["rows"]


def every_change_leaves_a_row(world):
    said = changes(world.stintd)
    rows = {(method, pattern): (how, cells) for method, pattern, how, cells in isolation.ROWS
            if method != "GET"}
    check(set(said) == set(rows), "these are in one list only: %s", set(said) ^ set(rows))
    for key, (how, cells) in rows.items():
        if key in MACHINES | ELSEWHERE:
            continue
        method, pattern = key
        places = [place for (role, place), status in cells.items()
                  if role == "owner" and 200 <= status < 300]
        check(places, "%s %s: nobody may call it", method, pattern)
        path, body, _ = world.ask(method, pattern, how, "owner", places[0])
        before = newest(world.owner)[0]["id"]
        answer = world.owner.call(method, path, body, {"If-Match": "*"} if method == "PATCH" else {})
        check(200 <= answer.status < 300, "%s %s: %d %s", method, path, answer.status, answer.text)
        row = newest(world.owner)[0]
        if said[key]:
            check(row["id"] != before, "%s %s left no row in the audit log", method, pattern)
            check(row["actor"] == "root", "%s %s: the row is %s's", method, pattern, row["actor"])
        else:
            check(row["id"] == before, "%s %s changes nothing and left a row: %s", method, pattern, row)
    return len(said)


def exports_leave_a_row(world):
    for path in ("bills/open?account=own&format=csv", "bills/open?account=own&format=focus",
                 "bills/open?account=own&format=html", "bills/open?account=own&format=file",
                 "bills/open/entries?account=own&format=csv"):
        before = newest(world.owner, what="bill")
        check(world.clients["auditor"].get("/v1/" + path).status == 200, "no export %s", path)
        row = newest(world.owner, what="bill")
        check(row and row != before and row[0]["verb"] == "bill.export" and
              row[0]["actor"] == "auditor" and row[0]["account"] == "own",
              "the export %s left no row: %s", path, row)
    before = newest(world.owner)[0]
    for path in ("bills/open?account=own", "bills/open/usage?account=own", "bills/open/usage?account=own&by=job",
                 "bills/open/entries?account=own"):
        check(world.clients["auditor"].get("/v1/" + path).status == 200, "no %s", path)
        check(newest(world.owner)[0] == before, "looking at %s left a row", path)


def refused_tokens_are_counted(world):
    bad = world.stintd.client("stint_" + "B" * 43)
    for _ in range(200):
        check(bad.get("/v1/whoami").status == 401, "a token that is none was taken")
    deadline = time.monotonic() + 60
    while True:
        rows = world.owner.get("/v1/audit?what=login.refused&limit=1000").json["rows"]
        if sum(row["detail"]["times"] for row in rows) >= 200:
            break
        check(time.monotonic() < deadline, "refused tokens are not in the log: %s", rows)
        time.sleep(0.2)
    check(len(rows) <= 20, "%d rows for one address", len(rows))
    check({row["target"] for row in rows} == {"127.0.0.1"}, "other addresses: %s", rows)
    seen = world.clients["admin"].get("/v1/audit?what=login&limit=1000").json["rows"]
    check(seen == [], "an admin below sees who tried to come in: %s", seen)


def filters(world):
    owner, admin = world.owner, world.clients["admin"]
    admin.make("/v1/tokens", {"user": "ada", "role": "viewer", "account": "own"})
    for query, good in (
            ("by=admin", lambda row: row["actor"] == "admin"),
            ("what=token", lambda row: row["verb"].startswith("token.")),
            ("what=token.create", lambda row: row["verb"] == "token.create"),
            ("by=admin&what=token.create", lambda row: (row["actor"], row["verb"]) ==
             ("admin", "token.create"))):
        for who in (owner, admin):
            rows = who.get("/v1/audit?limit=1000&" + query).json["rows"]
            check(rows and all(map(good, rows)), "%s: %s", query, rows[:3])
    check(owner.get("/v1/audit?what=toke").json["rows"] == [], "half a noun is one")
    check(owner.get("/v1/audit?since=1h").json["rows"], "nothing in the last hour")
    check(owner.get("/v1/audit?until=1h").json["rows"] == [], "something before the start")
    check(owner.get("/v1/audit?since=2026-01-01T00:00:00Z&until=2099-01-01").json["rows"], "nothing in years")
    for bad in ("since=yesterday", "by=a%20b", "what=%27%3B--", "until=%00"):
        check(owner.get("/v1/audit?" + bad).status == 400, "%s was taken", bad)
    rows = owner.get("/v1/audit?limit=1000&account=own").json["rows"]
    check(rows == admin.get("/v1/audit?limit=1000").json["rows"] or {row["id"] for row in rows} == {
        row["id"] for row in admin.get("/v1/audit?limit=1000").json["rows"]}, "an account's rows are not what its admin sees")
    for elsewhere in ("foe", "nosuch", "", "%00", "own%20(1)"):
        check(admin.get("/v1/audit?account=" + elsewhere).status in (400, 404), "the rows of %s are shown", elsewhere)
    # The names of those above are not to be guessed: their rows are there, without a name.
    above = [row for row in admin.get("/v1/audit?limit=1000").json["rows"]
             if row["actor"] == "an account above yours"]
    check(above, "nothing was done from above")
    check(admin.get("/v1/audit?by=root").json["rows"] == [], "the owner's name was confirmed")
    # Pages of a filtered list are the list.
    whole = [row["id"] for row in owner.get("/v1/audit?limit=1000&by=root&what=token").json["rows"]]
    pages, cursor = [], ""
    while True:
        page = owner.get("/v1/audit?limit=2&by=root&what=token" + cursor).json
        pages += [row["id"] for row in page["rows"]]
        if "next" not in page:
            break
        cursor = "&cursor=" + page["next"]
    check(pages == whole and len(whole) > 4, "pages: %s, whole: %s", pages, whole)


def run(program):
    stintd = Stintd(program, more=isolation.NOTICES)
    try:
        world = isolation.World(stintd)
        n = every_change_leaves_a_row(world)
        exports_leave_a_row(world)
        refused_tokens_are_counted(world)
        filters(world)
        print(f"{n} operations that are not GET, exports, refused tokens, filters")
    finally:
        stintd.stop()


if __name__ == "__main__":
    main(run)
