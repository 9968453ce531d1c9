#!/usr/bin/env python3
"""Saved views: everybody's own, whatever they are called, never more than may be, and gone with their account.

Each attempt says who tries what; what a stranger could read, or a name could break, is looked at after each of them.
"""

import os
import sys
from urllib.parse import quote

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, check, main, token  # noqa: E402

MOST = 50  # of one person
CONFIG = "rate: 1000000\nquota: {views: 60}\n"
HOSTILE = ["<img/src=x/onerror=alert(1)>", "a/b", "../../etc/passwd", "100%", "' OR 1=1 --", '"}],"x":[{"', "Ünïcödé ♥",
           "two words", "cluster root", "{name}", "?", "#", "\\", "é" * 50]
NO_NAMES = ["", " a", "a ", "x" * 101, "a\u202eb", "a\u200bb", "a\tb", "a\nb", "é" * 51]
NO_QUERIES = ["a b", "a\nb", "<b>", 'a"b', "ü", "a\\b", "a" * 2001, "a#b", "a`b"]


def put(who, name, query="state=pending", page="jobs"):
    return who.call("PUT", "/v1/views/" + quote(name, safe=""), {"page": page, "query": query})


def drop(who, name):
    return who.call("DELETE", "/v1/views/" + quote(name, safe=""))


def names(who):
    answer = who.get("/v1/views")
    check(answer.status == 200, "the list: %s", answer.text)
    return [view["name"] for view in answer.json["views"]]


def refused(answer, status, what):
    check(answer.status == status, "%s: %d instead of %d: %s", what, answer.status, status, answer.text)
    check(answer.json["detail"], "%s: no sentence", what)


def person(stintd, account, user, role="member"):
    return stintd.client(token(stintd.owner, account, user, role)["token"])


def are_kept(ada):
    check(names(ada) == [], "views before any was saved")
    for name in HOSTILE:
        answer = put(ada, name)
        check(answer.status == 200 and answer.json["name"] == name, "%r: %s", name, answer.text)
    check(names(ada) == HOSTILE, "the names: %s", names(ada))
    check(put(ada, HOSTILE[0], "user=ada&name=%3Cb%3E").status == 200, "one again")
    rows = ada.get("/v1/views").json["views"]
    check([row["name"] for row in rows] == HOSTILE and rows[0]["query"] == "user=ada&name=%3Cb%3E", "after the change: %s", rows[0])
    for name in HOSTILE[1:]:
        check(drop(ada, name).status == 204, "%r is not removed", name)
        refused(drop(ada, name), 404, f"{name!r} removed twice")
    check(names(ada) == HOSTILE[:1], "what is left: %s", names(ada))


def are_refused(ada):
    for name in NO_NAMES:
        if name:
            refused(put(ada, name), 400, f"the name {name!r}")
    for query in NO_QUERIES:
        refused(put(ada, "x", query), 400, f"the query {query[:20]!r}")
    for body in ({"page": "evil", "query": ""}, {"page": "jobs"}, {"query": ""}, {"page": "jobs", "query": 7}, [], "x", None,
                 {"page": "jobs", "query": "", "user": "root"}, {"page": "jobs", "query": "", "account": "cluster"}):
        answer = ada.call("PUT", "/v1/views/x", body)
        check(400 <= answer.status < 500, "the body %s: %d", body, answer.status)
    check(names(ada) == HOSTILE[:1], "something of that was kept: %s", names(ada))


def are_ones_own(stintd, ada):
    """The same name elsewhere, another name here, those above, and nobody at all."""
    others = [person(stintd, "north", "grace"), person(stintd, "south", "ada"), person(stintd, "north", "ada-2"),
              person(stintd, "north", "boss", "admin"), person(stintd, "north", "aud", "auditor"), stintd.owner]
    for other in others:
        check(names(other) == [], "somebody else's view: %s", names(other))
        refused(drop(other, HOSTILE[0]), 404, "another's view is removed")
    check(put(others[1], HOSTILE[0], "name=south").status == 200, "a view of the same name")
    check(ada.get("/v1/views").json["views"][0]["query"] != "name=south", "another account's view came through")
    refused(stintd.client().get("/v1/views"), 401, "nobody")
    viewer = person(stintd, "north", "vera", "viewer")
    check(put(viewer, "mine").status == 200 and names(viewer) == ["mine"], "a viewer's own view")
    again = person(stintd, "north", "ada")  # another token of hers
    check(names(again) == HOSTILE[:1], "with another token: %s", names(again))
    rows = stintd.owner.get("/v1/audit?what=view&limit=1000").json["rows"]
    check(rows and not any(name in str(row) for row in rows for name in HOSTILE[:2]), "the audit log tells what views are called")


def are_bounded(stintd, ada):
    for n in range(MOST - 1):
        check(put(ada, f"v{n}").status == 200, "view %d", n)
    refused(put(ada, "one more"), 403, "one more than a person may have")
    check(put(ada, "v7", "name=changed").status == 200, "one that is there is not changed")
    grace = person(stintd, "north", "grace")
    more = [put(grace, f"g{n}").status for n in range(20)]  # 50 of ada's, 1 of vera's
    check(more == [200] * 9 + [429] * 11, "beyond the account's quota: %s", more)
    row = [r for r in stintd.owner.get("/v1/accounts/north/service-quota").json["quota"] if r["name"] == "views"][0]
    check(row["used"] == 60, "the quota counts %s", row)
    check(put(person(stintd, "south", "ada"), "still").status == 200, "another account is kept out too")


def go_with_their_account(stintd):
    """Who has the name later has nothing of what was saved under it."""
    owner = stintd.owner
    check(owner.call("DELETE", "/v1/accounts/south").status == 204, "south is not removed")
    owner.make("/v1/accounts", {"name": "south"})
    ada = person(stintd, "south", "ada")
    check(names(ada) == [], "views of an account that is gone: %s", names(ada))
    row = [r for r in owner.get("/v1/accounts/south/service-quota").json["quota"] if r["name"] == "views"][0]
    check(row["used"] == 0, "a new account has used %s", row)


def run(program):
    stintd = Stintd(program, config=CONFIG)
    try:
        for name in ("north", "south"):
            stintd.owner.make("/v1/accounts", {"name": name})
        ada = person(stintd, "north", "ada")
        are_kept(ada)
        are_refused(ada)
        are_ones_own(stintd, ada)
        are_bounded(stintd, ada)
        go_with_their_account(stintd)
        stintd.again(program)
        check(len(names(person(stintd, "north", "ada"))) == MOST, "after a restart")
        refused(put(person(stintd, "north", "grace"), "one more"), 429, "the quota after a restart")
        print(f"{len(HOSTILE)} names, {len(NO_NAMES) + len(NO_QUERIES)} refusals: views are everybody's own")
    finally:
        stintd.stop()


if __name__ == "__main__":
    main(run)
