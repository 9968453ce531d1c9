#!/usr/bin/env python3
"""What owners and finance do with money, over HTTP: nothing is done twice, and what is given can be taken back."""

import csv
import datetime
import http.server
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(__file__))
from harness import Client, Failure, Stintd, Stream, check, fleet, main, sanitized, token  # noqa: E402


def keyed(client, path, body, key):
    return client.call("POST", path, body, headers={"Idempotency-Key": key})


def balance(owner):
    return owner.get("/v1/bills/open?account=team").json["total_udollars"]


def nothing_is_done_twice(stintd):
    owner = stintd.owner
    credit = {"amount": "12.50", "reason": "the rack lost power", "confirm": True}
    first = keyed(owner, "/v1/accounts/team/credits", credit, "credit-1")
    again = keyed(owner, "/v1/accounts/team/credits", credit, "credit-1")
    check(first.status == 201, "a credit: %d %s", first.status, first.text)
    check((again.status, again.text) == (first.status, first.text), "the same again: %d %s", again.status, again.text)
    check(balance(owner) == -12500000, "one credit was given, the bill has %d", balance(owner))
    other = keyed(owner, "/v1/accounts/team/credits", {**credit, "amount": "13"}, "credit-1")
    check(other.status == 409 and "another request" in other.text, "another body: %d %s", other.status, other.text)
    elsewhere = keyed(owner, "/v1/prices", credit, "credit-1")
    check(elsewhere.status != 201, "another path: %d", elsewhere.status)
    plain = owner.post("/v1/accounts/team/credits", credit)
    check(plain.status == 201 and balance(owner) == -25000000, "without a key it is a new one")

    book = {"prices": "p1", "gpu": {"*": {"reserved": 1, "burst": 2}}}
    first, again = (keyed(owner, "/v1/prices", book, "prices-1") for _ in range(2))
    check((again.status, again.text) == (first.status, first.text) and first.status == 201, "prices: %s", again.text)
    names = [b["prices"] for b in owner.get("/v1/prices").json["prices"]]
    check(names.count("p1") == 1, "one price book, not %s", names)

    # A refusal is not an answer to keep: once the account is there, the request is done.
    first = keyed(owner, "/v1/accounts/late/credits", credit, "late-1")
    owner.make("/v1/accounts", {"name": "late"})
    again = keyed(owner, "/v1/accounts/late/credits", credit, "late-1")
    check((first.status, again.status) == (404, 201), "after a refusal: %d %d", first.status, again.status)


def secrets_are_not_kept(stintd):
    owner = stintd.owner
    spec = {"user": "eve", "role": "member", "account": "team"}
    first = keyed(owner, "/v1/tokens", spec, "token-1")
    again = keyed(owner, "/v1/tokens", spec, "token-1")
    check(first.status == 201 and again.status == 409, "tokens: %d %d", first.status, again.status)
    check("done already" in again.text and first.json["token"] not in again.text, "its secret: %s", again.text)
    tokens = [t for t in owner.get("/v1/tokens").json["tokens"] if t["user"] == "eve"]
    check(len(tokens) == 1, "%d tokens", len(tokens))
    mine = stintd.client(first.json["token"])
    theirs = keyed(mine, "/v1/accounts/team/credits", {"amount": "1", "reason": "x"}, "credit-1")
    check(theirs.status == 403, "a member's key is no way to an owner's answer: %d", theirs.status)


def budgets_count_what_runs(stintd):
    """The budget says what the bill says, and thresholds are told while the job runs."""
    owner = stintd.owner
    owner.make("/v1/accounts", {"name": "busy"})
    owner.make("/v1/prices", {"prices": "dear", "gpu": {"*": {"reserved": 1, "burst": 360000}}})
    put = owner.call("PUT", "/v1/accounts/busy/plan", {"budget": "1000", "warn": ["10%", "50%"]})
    check(put.status == 200, "the plan: %s", put.text)
    stream = Stream(stintd.port, stintd.owner_token)
    owner.make("/v1/jobs", {"name": "j", "account": "busy", "user": "u", "gpus": 1, "sim": {"run": "7d"}})
    check(stream.wait(lambda s: any(e[1] == "budget" for e in s.events()), 60), "a threshold is told while the job runs: %s", stream.events()[-3:])
    stream.close()
    for _ in range(50):
        before = owner.get("/v1/bills/open?account=busy").json["total_udollars"]
        budget = owner.get("/v1/accounts/busy/budget").json
        after = owner.get("/v1/bills/open?account=busy").json["total_udollars"]
        check(before <= budget["spent_udollars"] <= after and before > 0, "bill %d, budget %s, bill %d", before, budget,
              after)
        check(budget["spent_udollars"] >= budget["running_udollars"] > 0, "all of it runs: %s", budget)


def credits_by_hand(stintd):
    """What is given can be taken back once; what is more than was charged is confirmed; large ones need two owners."""
    owner = stintd.owner
    owner.make("/v1/accounts", {"name": "spoilt"})
    path = "/v1/accounts/spoilt/credits"
    much = owner.post(path, {"amount": 5, "reason": "sorry"})
    check(much.status == 409 and "was charged, which is 0.00" in much.text, "above charges: %d %s", much.status, much.text)
    check(owner.get("/v1/bills/open?account=spoilt").json["total_udollars"] == 0, "nothing was given")
    given = owner.make(path, {"amount": 5, "reason": "sorry", "confirm": True})
    budget = owner.get("/v1/accounts/spoilt/budget").json
    check((budget["spent"], budget["credit"], budget["committed"]) == ("0.00", "5.00", "0.00"), "no spending below 0: %s", budget)
    # An account that was charged is given as much without a word, once.
    owner.make("/v1/jobs", {"name": "j", "account": "spoilt", "user": "u", "gpus": 1, "limit": "1h", "sim": {"run": "1h"}})
    owner.make("/v1/prices", {"prices": "p3", "gpu": {"*": {"reserved": 1, "burst": 360000}}})
    bill = lambda: owner.get("/v1/bills/open?account=spoilt").json["total_udollars"]
    stintd.wait(lambda: bill() > 6_000_000, "it was charged")
    small = owner.make(path, {"amount": 1, "reason": "sorry again"})

    for body, said in (({"reverse": given["entry"]}, "reason"),
                       ({"reverse": given["entry"], "amount": 5, "reason": "x"}, "give an amount, or"),
                       ({"reason": "x"}, "give an amount, or"),
                       ({"reverse": given["entry"], "entry": 1, "reason": "x"}, "do not go together"),
                       ({"amount": -5, "reason": "x"}, "more than 0"),
                       ({"reverse": 1, "reason": "x"}, "is no credit"),
                       ({"reverse": 99999, "reason": "x"}, "is no credit")):
        bad = owner.post(path, body)
        check(400 <= bad.status < 500 and said in bad.text, "%s: %d %s", body, bad.status, bad.text)
    before = bill()
    back = owner.make(path, {"reverse": given["entry"], "reason": "it was not us"})
    check(back["amount"] == "-5.00" and bill() >= before + 5_000_000, "taken back: %s", back)
    again = owner.post(path, {"reverse": given["entry"], "reason": "it was not us"})
    check(again.status == 409 and f"by entry {back['entry']}" in again.text, "once: %d %s", again.status, again.text)
    both = owner.post(path, {"reverse": back["entry"], "reason": "it was us"})
    check(both.status == 404, "a reversal is no credit: %d %s", both.status, both.text)
    entries = owner.get("/v1/bills/open/entries?account=spoilt&component=adjust").json["entries"]
    check([(e["amount"], e.get("fixes")) for e in entries] ==
          [(5_000_000, None), (1_000_000, None), (-5_000_000, given["entry"])], "in the book: %s", entries)
    check(small["entry"] < back["entry"], "in order")

    # Two owners: the same person twice is one.
    other = stintd.client(token(owner, "", "grace", "owner")["token"])
    large = {"amount": 5000, "reason": "a lost month", "confirm": True}
    total = bill()
    first = owner.post(path, large)
    check(first.status == 200 and first.json["pending"], "it waits: %d %s", first.status, first.text)
    check(owner.post(path, large).json["pending"], "and goes on waiting for somebody else")
    waiting = other.get("/v1/credits/pending").json["credits"]
    check([(c["account"], c["amount"], c["reason"]) for c in waiting] == [("spoilt", "5000.00", "a lost month")], "%s", waiting)
    check(other.post(path, {**large, "amount": 5001}).json["pending"], "another amount is another credit")
    check(bill() >= total, "nothing was given")
    second = other.post(path, large)
    check(second.status == 201 and bill() < total - 4_000_000_000, "given: %d %s", second.status, second.text)
    check([c["amount"] for c in owner.get("/v1/credits/pending").json["credits"]] == ["5001.00"], "one waits still")
    undo = owner.post(path, {"reverse": second.json["entry"], "reason": "no"})
    check(undo.status == 200 and undo.json["pending"], "taking it back needs two as well: %s", undo.text)
    verbs = owner.get("/v1/audit?what=credit&limit=1000").json["rows"]
    check({"credit.give", "credit.reverse", "credit.propose"} <= {r["verb"] for r in verbs}, "the audit log: %s", verbs)

    # The bill's file proves itself with all that.
    file = os.path.join(stintd.dir, "spoilt.bill")
    with open(file, "wb") as f:
        f.write(owner.get("/v1/bills/open?account=spoilt&format=file").body)
    stint = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "stint")
    verify = subprocess.run([stint, "bill", "verify", file], capture_output=True, text=True)
    check(verify.returncode == 0, "verify: %s%s", verify.stdout, verify.stderr)


def restart(stintd, program, ahead_s):
    """The same service again, on a machine whose clock is so far ahead."""
    stintd.owner.close()
    stintd.process.send_signal(signal.SIGTERM)
    check(stintd.process.wait(30) == 0, "stintd did not end well")
    offset = os.path.join(stintd.dir, "clock")
    with open(offset, "w") as f:
        f.write(str(ahead_s * 1000))
    library = os.path.join(os.path.dirname(os.path.abspath(program)), "tests", "libfake_clock.so")
    with open(stintd.log, "w") as log:
        stintd.process = subprocess.Popen(
            [program, "--config", os.path.join(stintd.dir, "config.yaml"), "--data", os.path.join(stintd.dir, "data")],
            stdout=subprocess.DEVNULL, stderr=log, env={**os.environ, "LD_PRELOAD": library, "FAKECLOCK": offset})
    stintd.port = stintd._port()
    stintd.owner = Client(stintd.port, stintd.owner_token)


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def a_wrong_clock_closes_nothing(stintd, program):
    ahead = 400 * 86400
    period = stintd.owner.get("/v1/accounts/team/budget").json["period"]
    restart(stintd, program, ahead)
    clock = stintd.owner.get("/v1/admin/clock").json
    check(not clock["believed"] and abs(clock["ahead_seconds"] - ahead) < 600, "the clock: %s", clock)
    check(stintd.owner.get("/v1/accounts/team/budget").json["period"] == period, "the month goes on")
    check(stintd.owner.get("/v1/bills").json["months"] == [], "nothing is closed")
    with open(stintd.log) as f:
        check("event=clock_doubted" in f.read(), "the log says so")
    wrong = stintd.owner.post("/v1/admin/clock", {"ahead_seconds": 0})
    check(wrong.status == 409 and "look at it again" in wrong.text, "another offset: %s", wrong.text)
    restart(stintd, program, 0)
    clock = stintd.owner.get("/v1/admin/clock").json
    check(clock["believed"], "put right, it is believed again: %s", clock)
    none = stintd.owner.post("/v1/admin/clock", {"ahead_seconds": 0})
    check(none.status == 409 and "already" in none.text, "nothing to accept: %s", none.text)
    # An hour ahead is as little time that has passed: the machine's uptime says so.
    before = stintd.owner.get("/v1/admin/clock").json["now"]
    restart(stintd, program, 3600)
    clock = stintd.owner.get("/v1/admin/clock").json
    check(not clock["believed"] and abs(clock["ahead_seconds"] - 3600) < 60, "an hour ahead: %s", clock)
    check(seconds(clock["now"]) - seconds(before) < 600, "an hour was made: %s, before %s", clock, before)
    restart(stintd, program, 3600)
    again = stintd.owner.get("/v1/admin/clock").json
    check(not again["believed"] and seconds(again["now"]) - seconds(before) < 600, "by another restart: %s", again)
    restart(stintd, program, 3 * 86400)
    clock = stintd.owner.get("/v1/admin/clock").json
    taken = stintd.owner.post("/v1/admin/clock", {"ahead_seconds": clock["ahead_seconds"]})
    check(taken.status == 200 and taken.json["believed"] and taken.json["now"] > clock["now"], "accepted: %s",
          taken.text)
    check("clock.accept" in stintd.owner.get("/v1/audit").text, "it is in the audit log")


def month_end(stintd, program):
    """The end of the month, from its days: here a guarantee of eight GPUs at a dollar an hour, and nothing else."""
    owner = stintd.owner
    owner.make("/v1/accounts", {"name": "steady", "guarantee": {"gpu": 8}})
    early = owner.get("/v1/bills/open/forecast?account=steady").json
    check(early["from"] == "nothing" and early["expected"] is None, "seconds say nothing: %s", early)
    # The sixth of a month to come, at noon.
    month = datetime.datetime.fromtimestamp(time.time() + 3 * 86400, datetime.timezone.utc).replace(day=1)
    month = (month + datetime.timedelta(days=32)).replace(day=6, hour=12, minute=0)
    restart(stintd, program, int(month.timestamp() - time.time()))
    owner = stintd.owner
    clock = owner.get("/v1/admin/clock").json
    owner.make("/v1/admin/clock", {"ahead_seconds": clock["ahead_seconds"]})
    stintd.wait(lambda: owner.get("/v1/bills/open").json["period"] == month.strftime("%Y-%m"), "the month has come")
    stintd.wait(lambda: len(owner.get("/v1/bills/open/usage?account=steady&by=day").json["rows"]) == 6, "all its days have come")

    before = owner.get("/v1/bills/open?account=steady").json["total_udollars"]
    end = owner.get("/v1/bills/open/forecast?account=steady").json
    days = owner.get("/v1/bills/open/usage?account=steady&by=day").json["rows"]
    after = owner.get("/v1/bills/open?account=steady").json["total_udollars"]
    check([d["whole"] for d in end["days"]] == [True] * 5 + [False], "five whole days: %s", end["days"])
    check(all(abs(d["cost_udollars"] - 192_000_000) <= 1 for d in end["days"][:5]), "a day costs 192: %s", end["days"])
    check(before <= sum(d["cost_udollars"] for d in end["days"]) <= after, "the days are the bill: %s", end)
    check(before <= end["spent_udollars"] <= after, "the bill: %s", end)
    check([r["key"] for r in days] == [d["day"] for d in end["days"]], "the series in order: %s", days)
    length = (month.replace(day=28) + datetime.timedelta(days=4)).replace(day=1) - month.replace(day=1)
    whole = round(length.total_seconds() / 86400) * 192_000_000
    check(end["from"] == "days" and end["chance_percent"] == 80, "from days: %s", end)
    check(all(abs(end[k] - whole) < 1000 for k in ("low_udollars", "expected_udollars", "high_udollars")),
          "it ends at %d: %s", whole, end)
    budget = owner.get("/v1/accounts/steady/budget").json
    check(abs(budget["committed_udollars"] - whole) < 1000, "spent and to come: %s", budget)

    # A month that is closed has ended; and somebody else's is nobody's to know.
    last = (month.replace(day=1) - datetime.timedelta(days=1)).strftime("%Y-%m")
    closed = owner.get(f"/v1/bills/{last}/forecast?account=steady").json
    total = owner.get(f"/v1/bills/{last}?account=steady").json["total_udollars"]
    check(closed["closed"] and closed["low_udollars"] == closed["high_udollars"] == total, "closed: %s", closed)


def unusual_days(stintd, program):
    """A day that costs many times the usual one is told to admins, once, and listed for the owner."""
    owner = stintd.owner
    admin, member = (Stream(stintd.port, token(owner, "steady", name, name)["token"]) for name in ("admin", "member"))
    said = lambda s, kind: [e for e in s.events() if e[1] == kind]
    check(owner.get("/v1/fleet/cost").json["anomalies"] == [], "nothing is unusual yet")
    owner.make("/v1/jobs", {"name": "spree", "account": "steady", "user": "ada", "tasks": 2, "gpus": 8, "sim": {"run": "7d"}})
    check(admin.wait(lambda s: said(s, "anomaly"), 90), "the admin is told: %s", admin.events()[-3:])
    event = json.loads(said(admin, "anomaly")[0][2])
    check(event["account"] == "steady" and "user" not in event, "the account, not the user, who has no usual day: %s", event)
    check(event["cost_udollars"] >= 5 * event["usual_udollars"] > 0, "five times as much: %s", event)
    check(abs(event["usual_udollars"] - 192_000_000) < 1000, "the usual day: %s", event)
    check(member.wait(lambda s: said(s, "start"), 30) and not said(member, "anomaly"), "no member is: %s", member.events())
    admin.close()
    member.close()

    def listed():
        return [(a["account"], a["user"]) for a in stintd.owner.get("/v1/fleet/cost").json["anomalies"]]

    check(listed() == [("steady", None)], "the owner's list: %s", listed())
    ahead = int(float(open(os.path.join(stintd.dir, "clock")).read()) / 1000)
    restart(stintd, program, ahead)
    stintd.owner.make("/v1/jobs", {"name": "more", "account": "steady", "user": "ada", "gpus": 1, "sim": {"run": "1s"}})
    stintd.wait(lambda: stintd.owner.get("/v1/jobs?account=steady&limit=5").text.count('"done"') > 0, "it goes on")
    check(listed() == [("steady", None)], "once a day, over a restart: %s", listed())


def the_fleets_book(stintd):
    """Where the devices were: for owners alone, and it adds up."""
    owner = stintd.owner
    owner.make("/v1/prices", {"prices": "cut", "gpu": {"*": {"reserved": 1, "burst": 2}}})
    path = "/v1/bills/open/entries?account=%23fleet&limit=1000"
    stintd.wait(lambda: any(e["kind"] == "fleet" for e in owner.get(path).json["entries"]), "an interval has ended")
    rows = [e for e in owner.get(path).json["entries"] if e["kind"] == "fleet"]
    for e in rows:
        check(e["total"] == e["granted"] + e["idle"] + e["unhealthy"] + e["overhead"], "a sum: %s", e)
        check(e["gpu"] == "h100" and e["total"] <= 32 * 1000 * (e["to"] - e["from"]), "32 GPUs: %s", e)
    pages, cursor = [], ""
    while cursor is not None:
        page = owner.get(path.replace("1000", "2") + (f"&cursor={cursor}" if cursor else "")).json
        pages, cursor = pages + page["entries"], page["next"]
    check([e["seq"] for e in pages if e["kind"] == "fleet"][:len(rows)] == [e["seq"] for e in rows], "in pages: %s", pages)
    none = owner.get("/v1/bills/open/entries?account=nobody").json
    for role in ("admin", "member", "viewer", "auditor"):
        theirs = stintd.client(token(owner, "team", "u" + role, role)["token"])
        answer = theirs.get(path)
        check(answer.status == 404 and answer.json["code"] == none["code"], "%s: %d %s", role, answer.status, answer.text)
    for other in ("/v1/bills/open?account=%23fleet", "/v1/bills/open/usage?account=%23fleet"):
        check(owner.get(other).status == 404, "it has no bill: %s", other)
    stint = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "stint")
    shown = subprocess.run([stint, "bill", "fleet", "-o", "csv"], capture_output=True, text=True,
                           env={**os.environ, "STINT_URL": f"http://127.0.0.1:{stintd.port}", "STINT_TOKEN": stintd.owner_token})
    check(shown.returncode == 0 and shown.stdout.count("h100") >= len(rows), "stint bill fleet: %s%s", shown.stdout, shown.stderr)


def at_a_cap(stintd):
    """A job without an end runs on money by the while. At the cap it is told, stops, waits, and goes on when there is room."""
    owner = stintd.owner
    owner.make("/v1/accounts", {"name": "endless"})
    owner.make("/v1/accounts", {"name": "below", "parent": "endless"})
    owner.make("/v1/accounts", {"name": "stranger"})
    member = stintd.client(token(owner, "below", "kim", "member")["token"])
    admin = stintd.client(token(owner, "endless", "ada", "admin")["token"])
    theirs = token(owner, "stranger", "sam", "admin")["token"]

    for bad in ({"cap": 1, "at_cap": "explode"}, {"cap": 1, "grace": "8d"}, {"cap": 1, "hold": "1ms"}, {"cap": 1, "hold": 3600}):
        put = owner.call("PUT", "/v1/accounts/endless/plan", bad)
        check(put.status in (400, 422), "%s: %d %s", bad, put.status, put.text)
    plan = {"cap": "2000", "at_cap": "stop", "grace": "1s", "hold": "2s"}
    for who in (member, admin, stintd.client(theirs)):
        put = who.call("PUT", "/v1/accounts/endless/plan", plan)
        check(put.status in (403, 404), "who sets a cap: %d %s", put.status, put.text)
    put = owner.call("PUT", "/v1/accounts/endless/plan", plan)
    check(put.status == 200, "the plan: %s", put.text)
    stintd.wait(lambda: not admin.get("/v1/accounts/endless/plan").json["inherited"], "others see the plan too")
    shown = admin.get("/v1/accounts/endless/plan").json
    check((shown["at_cap"], shown["grace"], shown["hold"]) == ("stop", "1s", "2s"), "the plan as it is shown: %s", shown)
    hidden = member.get("/v1/accounts/below/plan").json
    check((hidden["at_cap"], hidden["grace"], hidden["hold"], hidden["cap"]) == (None,) * 4, "a cap above is nobody's below: %s", hidden)

    stream, other = Stream(stintd.port, stintd.owner_token), Stream(stintd.port, theirs)
    # $100 a second: the cap is 20 seconds.
    job = member.make("/v1/jobs", {"name": "serve", "account": "below", "gpus": 1, "sim": {"run": "7d"}})["id"]

    def does(what):
        return [e for e in stream.events() if e[1] == "cap" and f'"does":"{what}"' in e[2] and job in e[2]]

    check(stream.wait(lambda s: does("stops"), 90), "its notice: %s", stream.events()[-3:])
    check('"until"' in does("stops")[0][2], "until when: %s", does("stops")[0])
    stintd.wait(lambda: member.get(f"/v1/jobs/{job}").json["state"] == "pending", "it has left its devices")
    why = member.get(f"/v1/jobs/{job}/why").json
    check(any(r["code"] == "cap" for r in why["reasons"]), "why it waits: %s", why)
    check("endless" not in str(why), "whose cap it is: %s", why)
    stintd.wait(lambda: owner.get("/v1/accounts/endless/budget").json["held_udollars"] == 0, "its hold is released")
    spent = owner.get("/v1/accounts/endless/budget").json
    check(0 < spent["spent_udollars"] <= 2_000_000_000, "spent under the cap: %s", spent)
    bill = owner.get("/v1/bills/open?account=endless").json
    check(not [x for x in bill["lines"] if x["component"] in ("lost", "cap")], "nothing was for free: %s", bill["lines"])

    put = owner.call("PUT", "/v1/accounts/endless/plan", {**plan, "cap": "1000000"})
    check(put.status == 200, "a higher cap: %s", put.text)
    check(stream.wait(lambda s: does("lifted"), 30), "it is told: %s", stream.events()[-3:])
    stintd.wait(lambda: member.get(f"/v1/jobs/{job}").json["state"] == "running", "it runs again")
    owner.call("DELETE", f"/v1/jobs/{job}")
    check(not [e for e in other.events() if e[1] == "cap"], "a stranger hears nothing: %s", other.events())
    stream.close()
    other.close()


def a_floor_is_paid_once(stintd):
    """A gang larger than its account's guarantee pays for what it borrows, and not again for what is inside."""
    owner = stintd.owner
    owner.make("/v1/types", {"name": "f8", "vram": "80Gi"})
    owner.make("/v1/nodes", {"name": "big", "pool": "main", "gpu": "f8", "gpus": 8})
    owner.make("/v1/accounts", {"name": "half", "guarantee": {"f8": 4}})
    owner.make("/v1/prices", {"prices": "once", "gpu": {"*": {"reserved": 1, "burst": 360000}}})
    job = owner.make("/v1/jobs", {"name": "gang", "account": "half", "user": "u", "gpus": 8, "type": "f8", "sim": {"run": "2s"}})["id"]
    stintd.wait(lambda: owner.get(f"/v1/jobs/{job}").json["state"] == "done", "the gang has run")
    bill = owner.get("/v1/bills/open?account=half").json
    lines = {line["component"]: line for line in bill["lines"]}
    inside, burst = (lines[what]["quantity"] for what in ("guaranteed", "burst"))
    check(abs(inside - burst) <= 1 and burst > 0, "half of it is inside: %s", bill["lines"])
    check(lines["guaranteed"]["amount_udollars"] == 0, "that was paid with the floor: %s", lines["guaranteed"])
    entries = owner.get("/v1/bills/open/entries?account=half&component=burst").json["entries"]
    check(any(abs(e.get("inside", 0) * 2 - e["share"]) <= 1 for e in entries), "the entry says so: %s", entries)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "half.bill")
        with open(file, "w") as f:
            f.write(owner.get("/v1/bills/open?account=half&format=file").text)
        stint = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "stint")
        done = subprocess.run([stint, "bill", "verify", "--key", bill["key"], file], capture_output=True, text=True, timeout=60)
        check(done.returncode == 0, "the bill's file holds: %s", done.stdout + done.stderr)


def a_cap_below_the_floor(stintd):
    """A cap that a guarantee alone exceeds is taken, with a warning."""
    owner = stintd.owner
    owner.make("/v1/accounts", {"name": "tight", "guarantee": {"gpu": 1}})
    put = owner.call("PUT", "/v1/accounts/tight/plan", {"cap": "1"})
    check(put.status == 200 and "guarantees will cost" in put.json.get("warning", ""), "a dollar: %s", put.text)
    put = owner.call("PUT", "/v1/accounts/tight/plan", {"cap": "100000000"})
    check(put.status == 200 and "warning" not in put.json, "enough: %s", put.text)
    put = owner.call("PUT", "/v1/accounts/tight/plan", {"cap": "1", "at_cap": "warn"})
    check(put.status == 200 and "warning" not in put.json, "one that only warns: %s", put.text)
    owner.call("DELETE", "/v1/accounts/tight")


def names_and_labels(stintd):
    """Usage, entries and FOCUS say what people called their work; strangers do not learn it."""
    owner = stintd.owner
    owner.make("/v1/accounts", {"name": "named"})
    member = stintd.client(token(owner, "named", "nina", "member")["token"])
    other = stintd.client(token(owner, "team", "tom", "admin")["token"])
    odd = 'a "quoted", b=c'
    labels = {"stage": "dev", "cost-center": "cc-7", "odd": odd}
    done = [member.make("/v1/jobs", {"name": "train-7", "account": "named", "gpus": 1, "labels": labels, "sim": {"run": "1s"}})["id"],
            member.make("/v1/jobs", {"name": "plain", "account": "named", "gpus": 1, "sim": {"run": "1s"}})["id"]]
    for job in done:
        stintd.wait(lambda: member.get(f"/v1/jobs/{job}").json["state"] == "done", "it has ended")
    member.make("/v1/jobs", {"name": "runs", "account": "named", "gpus": 1, "labels": {"cost-center": "cc-8"}, "sim": {"run": "7d"}})

    def by(what):
        answer = member.get(f"/v1/bills/open/usage?account=named&by={what}")
        check(answer.status == 200, "usage by %s: %s", what, answer.text)
        return {row["key"]: row["jobs"] for row in answer.json["rows"]}

    stintd.wait(lambda: len(by("name")) == 3, "all three are metered")
    check(by("name") == {"train-7": 1, "plain": 1, "runs": 1}, "by name: %s", by("name"))
    check(by("cost-center") == {"cc-7": 1, "cc-8": 1, "(none)": 1}, "by cost centre: %s", by("cost-center"))
    check(by("label") == {f"cost-center=cc-7,odd={odd},stage=dev": 1, "cost-center=cc-8": 1, "(none)": 1}, "by label: %s", by("label"))
    check(by("label&label=stage") == {"dev": 1, "(none)": 2}, "by one label: %s", by("label&label=stage"))
    check(by("label&label=odd") == {odd: 1, "(none)": 2} and by("label&label=none") == {"(none)": 3}, "by an odd one: %s", by("label&label=odd"))
    check(by("name&where=cost-center%3Dcc-7") == {"train-7": 1}, "of one label's jobs: %s", by("name&where=cost-center%3Dcc-7"))
    check(by("user&where=" + urllib.parse.quote("odd=" + odd)) == {"nina": 1}, "of an odd one's")
    check(by("label&label=stage&where=cost-center%3Dcc-8") == {"(none)": 1}, "both")
    check(by("user&where=stage%3Dprod") == {}, "of none: %s", by("user&where=stage%3Dprod"))
    for bad in ("by=user&label=stage", "by=label&label=", "where=stage", "where=%3Ddev", "by=label&label=a%01b", "where=a%3D%01", "where=a%3D" + "x" * 600):
        answer = member.get("/v1/bills/open/usage?account=named&" + bad)
        check(answer.status == 400, "%s: %d %s", bad, answer.status, answer.text)
    check(other.get("/v1/bills/open/usage?account=named&by=label&label=stage").status == 404, "a stranger asks by one label")
    rows = list(csv.DictReader(io.StringIO(member.get("/v1/bills/open?account=named&format=focus").text)))
    tags = {row["ResourceName"]: json.loads(row["Tags"]) for row in rows if row["ResourceName"]}
    check(tags == {"train-7": {**labels, "stint/user": "nina"}, "plain": {"stint/user": "nina"}}, "FOCUS, without what runs: %s", tags)
    for path in ("/v1/bills/open/usage?account=named&by=label", "/v1/bills/open?account=named&format=focus"):
        check(other.get(path).status == 404, "a stranger asks: %s", path)


class Witness(http.server.BaseHTTPRequestHandler):
    """Takes what is posted. Some paths send the poster elsewhere, where nobody may be sent."""

    heads, elsewhere = [], []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        (Witness.elsewhere if self.path == "/elsewhere" else Witness.heads).append((self.path, body))
        if self.path == "/moved":
            self.send_response(307)
            self.send_header("Location", "/elsewhere")
        else:
            self.send_response(200)
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *args):
        pass


def points(client, query=""):
    answer = client.get("/v1/billing/checkpoints" + query)
    check(answer.status == 200, "checkpoints: %s", answer.text)
    return answer.json


def the_log_of_checkpoints(program):
    """Everybody may read it, it only grows, what was kept is proved to be a part of it; a witness is told of it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Witness)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    for bad in ("file:///etc/passwd", "gopher://127.0.0.1/", "http:///x", "http://a:b@127.0.0.1/"):
        try:
            started = Stintd(program, config=f'witness: "{bad}"\n')
        except Failure as why:
            check("witness:" in str(why), "why it does not start: %s", why)
            continue
        started.stop()
        check(False, "a witness at %s", bad)
    stintd = Stintd(program, config=f"rate: 1000000\nwitness: {url}/moved\n")
    try:
        owner = stintd.owner
        fleet(owner)
        owner.make("/v1/accounts", {"name": "team"})
        owner.make("/v1/accounts", {"name": "other"})
        member = stintd.client(token(owner, "other", "olga", "member")["token"])
        first = None
        for i in range(5):
            owner.make("/v1/accounts/team/credits", {"amount": "1", "reason": f"number {i}", "confirm": True})
            owner.get("/v1/bills/open?account=team&format=file")  # signs what is there
            first = first or points(owner)["head"]
        all_of_them = points(member)
        head = all_of_them["head"]
        check(head["size"] == len(all_of_them["checkpoints"]) >= 5 > first["size"], "they are all there: %s", head)
        check(points(member, "?after=2&limit=2")["checkpoints"] == all_of_them["checkpoints"][2:4], "a page of them")
        check("team" not in str(all_of_them) and "number" not in str(all_of_them), "whose books they are over: %s", all_of_them)
        proof = member.get(f"/v1/billing/checkpoints/proof?from={first['size']}&to={head['size']}").json
        check((proof["from_root"], proof["root"]) == (first["root"], head["root"]), "the roots: %s", proof)
        for bad in ("from=-1", f"to={head['size'] + 1}", "from=3&to=2", "from=x", "from=99999999999999999999"):
            answer = member.get(f"/v1/billing/checkpoints/proof?{bad}")
            check(answer.status in (400, 422), "%s: %d %s", bad, answer.status, answer.text)
        for bad in ("after=-1", "limit=0", "limit=1001", "limit=x"):
            check(member.get(f"/v1/billing/checkpoints?{bad}").status in (400, 422), "%s", bad)
        check(member.call("POST", "/v1/billing/checkpoints", {}).status == 405, "nobody adds one")

        stint = os.path.join(os.path.dirname(program), "stint")
        env = {**os.environ, "STINT_URL": f"http://127.0.0.1:{stintd.port}", "STINT_TOKEN": stintd.owner_token}
        key = owner.get("/v1/billing").json["key"]
        with tempfile.TemporaryDirectory() as place:
            def bill(*args):
                return subprocess.run([stint, "bill", *args], env=env, cwd=place, capture_output=True, text=True, timeout=60)

            kept = bill("checkpoints", "--key", key, "--save", "kept.head")
            check(kept.returncode == 0, "kept: %s", kept.stderr)
            old = bill("-a", "team", "-o", "file", "--save", "old.bill")
            check(old.returncode == 0, "the bill: %s", old.stderr)
            owner.make("/v1/accounts/team/credits", {"amount": "1", "reason": "later", "confirm": True})
            bill("-a", "team", "-o", "file", "--save", "new.bill")
            good = bill("checkpoints", "--key", key, "--against", "kept.head")
            check(good.returncode == 0 and "go on from" in good.stdout, "it goes on: %s %s", good.stdout, good.stderr)
            good = bill("verify", "--key", key, "--against", "old.bill", "new.bill")
            check(good.returncode == 0 and "goes on from\n" not in good.stdout and "on from what the older bill saw" in good.stdout, "verify: %s %s", good.stdout, good.stderr)
            bad = bill("verify", "--key", key, "--against", "new.bill", "old.bill")
            check(bad.returncode == 9 and "other way round" in bad.stderr, "the wrong way round: %s", bad.stderr)
            text = open(f"{place}/kept.head").read()
            open(f"{place}/forged.head", "w").write(text.replace('"size":', '"size":1'))
            bad = bill("checkpoints", "--key", key, "--against", "forged.head")
            check(bad.returncode == 9 and "signature" in bad.stderr, "a forged head: %s", bad.stderr)
            bad = bill("checkpoints", "--key", "0" * 64)
            check(bad.returncode == 9, "another key: %s", bad.stderr)

        stintd.wait(lambda: len(Witness.heads) > 0, "the witness is told")
        told = json.loads(Witness.heads[-1][1])
        check(told["log"] == 1 and told["key"] == key, "what it is told: %s", told)
        check(not Witness.elsewhere, "nobody is sent elsewhere: %s", Witness.elsewhere)
    finally:
        stintd.stop()
        server.shutdown()


def metrics_say_the_same(stintd):
    """What is spent is one figure: on the bill, in the budget, in metrics. Those of metrics may be a second old."""
    owner, told = stintd.owner, []
    for _ in range(20):
        told.append((time.monotonic(), owner.get("/v1/accounts/busy/budget").json["spent_udollars"]))
        before = [spent for at, spent in told if at < told[-1][0] - 1][-1:] or [told[0][1] if len(told) > 1 else 0]
        text = owner.get("/metrics").text
        after = owner.get("/v1/accounts/busy/budget").json["spent_udollars"]
        found = [line for line in text.split("\n")
                 if line.startswith('stint_account_budget_dollars{account="busy",parent="",what="spent"}')]
        check(len(found) == 1, "one line: %s", found)
        spent = round(float(found[0].split()[-1]) * 1_000_000)
        check(before[0] <= spent <= after, "budget %d, metrics %d, budget %d", before[0], spent, after)
        time.sleep(0.1)


def a_book_reads_as_it_was_written(stintd):
    """What is shown of a price book can be published again: nothing of it is lost. A check publishes nothing."""
    owner = stintd.owner
    book = {"prices": "whole", "from": "2031-01-01T00:00:00Z", "gpu": {"*": {"reserved": "1", "guaranteed": "0.05", "burst": "2", "on_demand": "3",
            "booked": "0.5", "booking": "1.1", "whole": "100%", "mig": "110%", "mps": "90%", "time": "60%"}}, "cpu": "0.01", "ram": "0.001",
            "energy": "0.2", "topology": {"rack": "5%"}, "idle": "20%", "credit": {"lost": "80%", "fault": "70%"},
            "pieces": {"render": {"frames": "0.004"}}, "classes": {"critical": "150%"},
            "booking": {"term": {"1d": "5%"}, "lead": {"7d": "3%"}, "cancel": {"1d": "50%", "3d": "25%"}, "lent": "30%"}}
    before = owner.get("/v1/prices").json
    shown = owner.post("/v1/prices/check", book)
    check(shown.status == 200, "%d %s", shown.status, shown.text)

    def within(small, big, where):
        for key, value in small.items():
            if isinstance(value, dict):
                within(value, big.get(key, {}), where + key + ".")
            else:
                check(key in big, "%s%s is gone", where, key)
                same = [str(big[key]), str(value)]
                check(same[0] == same[1] or float(same[0].rstrip("%")) == float(same[1].rstrip("%")), "%s%s: %s", where, key, same)
    check(shown.json["from"].startswith("2031-01-01T00:00:00"), "%s", shown.json["from"])
    within({k: v for k, v in book.items() if k != "from"}, shown.json, "")
    again = owner.post("/v1/prices/check", shown.json)
    check(again.status == 200 and again.json == shown.json, "read again it is another: %s", again.text)
    bad = owner.post("/v1/prices/check", {"prices": "bad", "gpu": {"*": {"reserved": 1, "burst": 2}}, "cpu": "much"})
    check(bad.status == 400 and "much" in bad.text, "%d %s", bad.status, bad.text)
    check(owner.get("/v1/prices").json == before, "a check has published something")


def run(program):
    stintd = Stintd(program, config="rate: 1000000\ncredit_alone: 1000\n")
    try:
        fleet(stintd.owner)
        stintd.owner.make("/v1/accounts", {"name": "team", "guarantee": {"gpu": 8}})
        nothing_is_done_twice(stintd)
        a_book_reads_as_it_was_written(stintd)
        secrets_are_not_kept(stintd)
        credits_by_hand(stintd)
        budgets_count_what_runs(stintd)
        metrics_say_the_same(stintd)
        at_a_cap(stintd)
        a_cap_below_the_floor(stintd)
        names_and_labels(stintd)
        the_fleets_book(stintd)
        a_floor_is_paid_once(stintd)
        if not sanitized(program):
            a_wrong_clock_closes_nothing(stintd, program)
            month_end(stintd, program)
            unusual_days(stintd, program)
    finally:
        stintd.stop()
    the_log_of_checkpoints(program)


if __name__ == "__main__":
    main(run)
