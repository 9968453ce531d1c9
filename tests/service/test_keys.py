#!/usr/bin/env python3
"""Every POST of the API's own document, sent twice with one Idempotency-Key: it is done once.

The second answer is the first again, or, where an answer has a secret or is one of a long work, 409 and that it was done.
Another body or another path with the same key is refused. A POST of the document that has neither a row here nor a reason
why a key means nothing to it fails the test.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, check, fleet, main  # noqa: E402

# These take no key: the second time does nothing more than the first, or something of one use is in the request.
WITHOUT = {
    "/v1/session": "a login: each is one browser's",
    "/v1/session/code": "a code of one use, soon gone",
    "/v1/whatif": "asks",
    "/v1/rules/check": "asks",
    "/v1/calendar/windows": "asks",
    "/v1/prices/check": "asks",
    "/v1/admin/reconcile": "asks",
    "/v1/agent/status": "says how things stand",
    "/v1/services/{name}/figures": "says how things stand",
    "/v1/agent/logs/{job}/{stay}/{task}": "has an offset",
    "/v1/accounts/{name}/folders": "is called by its content",
    "/v1/image-pulls": "is asked again until it is done",
    "/v1/agent/register": "proves a challenge of one use",
}

# These are done once in the life of a store, or need a clock, a month or a machine that this test does not have: a key
# of a refusal is free again. Where they are done, and done once: tests named beside them.
REFUSED = {
    "/v1/jobs/{id}/tunnels": "agent_forward.sh",
    "/v1/nodes/{name}/rejoin": "test_isolation.py",
    "/v1/incidents/{id}/reset": "test_incidents.py",
    "/v1/nodes/{name}/test": "core/test/test_nodes.c",
    "/v1/admin/clock": "test_money.py",
    "/v1/invoices": "test_invoices.py",
    "/v1/admin/restore": "test_invoices.py",
}


def keyed(client, path, body, key):
    return client.call("POST", path, body, {"Idempotency-Key": key})


def listed(path, key):
    """How many there are in the list at `path`."""
    return lambda owner: len(owner.get(path).json[key])


def audited(owner):
    """The newest row of the audit log: what leaves nothing else behind leaves that."""
    return owner.get("/v1/audit?limit=1").json["rows"][0]["id"]


def rows(owner):
    """(path of the document, path, body, another body, what it changes)"""
    check(owner.call("PUT", "/v1/accounts/team/notices/n", {"webhook": "https://127.0.0.1:9/x"}).status == 200, "a notice")
    quote = owner.make("/v1/bookings", {"account": "team", "type": "h100", "gpus": 8, "from": "+40h", "for": "1h"})["id"]
    job = {"name": "j", "account": "team", "user": "u", "gpus": 0, "cpu": 1, "sim": {"run": "7d"}}
    credit = {"amount": "1", "reason": "r", "confirm": True}
    book = {"account": "team", "type": "h100", "gpus": 8, "from": "2027-06-01", "for": "1h", "confirm": True}
    prices = {"prices": "p1", "gpu": {"*": {"reserved": 1, "burst": 2}}}
    # No node is so large: it is there, and nothing happens by itself.
    service = {"name": "chat", "account": "team", "port": 80, "job": {"gpus": 64, "command": ["serve"]}}
    eve = {"user": "eve", "role": "member", "account": "team"}
    return [
        ("/v1/jobs", None, job, {**job, "name": "k"}, listed("/v1/jobs", "jobs")),
        ("/v1/jobs/batch", None, {"jobs": [job, job]}, {"jobs": [job]}, listed("/v1/jobs", "jobs")),
        ("/v1/accounts", None, {"name": "a1"}, {"name": "a2"}, listed("/v1/accounts", "accounts")),
        ("/v1/accounts/{name}/credits", "/v1/accounts/team/credits", credit, {**credit, "amount": "2"}, audited),
        ("/v1/prices", None, prices, {**prices, "prices": "p2"}, listed("/v1/prices", "prices")),
        ("/v1/bookings", None, book, {**book, "gpus": 16}, listed("/v1/bookings?all=true", "bookings")),
        ("/v1/bookings/{id}/confirm", f"/v1/bookings/{quote}/confirm", None, None, audited),
        ("/v1/services", None, service, {**service, "port": 81}, listed("/v1/services", "services")),
        ("/v1/services/{name}/restart", "/v1/services/team%2Fchat/restart", None, None, audited),
        ("/v1/accounts/{name}/notices/{key}/test", "/v1/accounts/team/notices/n/test", None, None, audited),
        ("/v1/calendar/feeds", None, None, None, audited),
        ("/v1/tokens", None, eve, {**eve, "user": "bob"}, listed("/v1/tokens", "tokens")),
        ("/v1/types", None, {"name": "h200"}, {"name": "t1", "vram": 80}, listed("/v1/types", "types")),
        ("/v1/pools", None, {"name": "spare"}, {"name": "more"}, listed("/v1/pools", "pools")),
        ("/v1/nodes", None, {"name": "x1", "gpu": "h100"}, {"name": "x2", "gpu": "h100"}, listed("/v1/nodes", "nodes")),
        ("/v1/admin/join-tokens", None, {"uses": 2}, {"uses": 3}, audited),
        ("/v1/admin/rotate-secrets-key", None, None, None, audited),
        ("/v1/admin/reload", None, None, None, audited),
        ("/v1/admin/backup", None, {"file": "b1"}, {"file": "b2"}, audited),
    ]


def is_told(first, again):
    """The first answer, or, where it has a secret, that it was done. A repeated submit says 200, nothing was made, and the
    job as it is by now."""
    if "token" in first.json:
        return again.status == 409 and "done already" in again.text and first.json["token"] not in again.text
    if "submitted" in first.json:
        return again.status == 200 and again.json["id"] == first.json["id"]
    return again.status in (first.status, 200) and again.json == first.json


def twice(owner, row, key):
    path, body, other, looked = row[1] or row[0], row[2], row[3], row[4]
    before = looked(owner)
    first = keyed(owner, path, body, key)
    check(first.status in (200, 201), "%s: %d %s", path, first.status, first.text)
    done = looked(owner)
    check(done != before, "%s changed nothing that is seen here", path)
    again = keyed(owner, path, body, key)
    check(is_told(first, again), "%s again: %d %s, not %s", path, again.status, again.text, first.text)
    wrong = keyed(owner, path, other, key) if other else keyed(owner, "/v1/pools", {"name": "p9"}, key)
    check(wrong.status == 409 and "another request" in wrong.text, "%s, another request: %d %s", path, wrong.status,
          wrong.text)
    check(looked(owner) == done, "%s was done twice", path)


def a_trial_is_none(owner):
    """What is only tried leaves the key free."""
    for path, body in (("/v1/accounts", {"name": "dry"}),
                       ("/v1/jobs", {"name": "dry", "account": "team", "user": "u", "gpus": 0, "cpu": 1}),
                       ("/v1/bookings", {"account": "team", "type": "h100", "gpus": 8, "from": "2027-07-01", "for": "1h"})):
        tried = keyed(owner, path + "?dry_run=true", body, "trial " + path)
        made = keyed(owner, path, body, "trial " + path)
        check((tried.status, made.status) == (200, 201), "%s: %d, then %d %s", path, tried.status, made.status, made.text)


def file_in_the_way(stintd):
    """Something in the place where a backup called taken would be."""
    file = os.path.join(stintd.dir, "data", "backups", "taken")
    with open(file, "w"):
        return file


def a_failure_is_none(stintd):
    """A backup fails behind its row in the audit log: that is noted too, and the key is free again."""
    owner, file = stintd.owner, file_in_the_way(stintd)
    failed = keyed(owner, "/v1/admin/backup", {"file": "taken"}, "backup")
    check(failed.status == 409 and failed.code == "exists", "in the place of another: %d %s", failed.status, failed.text)
    check(owner.get("/v1/audit?what=store.backup_failed&limit=1").json["rows"], "a failure without a row in the audit log")
    os.remove(file)
    made = keyed(owner, "/v1/admin/backup", {"file": "taken"}, "backup")
    check(made.status == 201 and os.path.getsize(file) > 0, "and now: %d %s", made.status, made.text)


def run(program):
    stintd = Stintd(program, more="notice_hosts: 127.0.0.1:9\n")
    try:
        owner = stintd.owner
        fleet(owner)
        owner.make("/v1/accounts", {"name": "team", "guarantee": {"gpu": 8}})
        table = rows(owner)
        routes = owner.get("/openapi.json").json["paths"]
        posts = {path for path, ops in routes.items() if "post" in ops}
        known = {row[0] for row in table} | set(WITHOUT) | set(REFUSED)
        check(posts == known, "POSTs without a row here: %s; rows without a POST: %s", posts - known, known - posts)
        for path in sorted(posts):
            takes = any(p.get("name") == "Idempotency-Key" for p in routes[path]["post"].get("parameters", ()))
            check(takes == (path not in WITHOUT), "the document says of %s that it takes %s key", path,
                  "a" if takes else "no")
        for n, row in enumerate(table):
            twice(owner, row, f"key-{n}")
        a_trial_is_none(owner)
        a_failure_is_none(stintd)
    finally:
        stintd.stop()


if __name__ == "__main__":
    main(run)
