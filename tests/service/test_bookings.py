#!/usr/bin/env python3
"""Bookings over the API: what two tenants see of each other, what happens twice, at once and after a restart, and bad input.

alpha and beta stand beside each other. What alpha learns of beta's bookings is that a window is not available from a
moment on, never whose it is, how large, or that it exists when nothing is asked for there.
"""

import datetime
import json
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, Stream, check, fleet, main, token  # noqa: E402

READER = "/usr/bin/python3"  # the distribution's, which has icalendar (tools/setup)


def window(hours, length="1h", gpus=8, **more):
    return {"type": "h100", "gpus": gpus, "from": f"+{hours}h", "for": length, "confirm": True, **more}


def bad_input(alpha):
    """One sentence each, and nothing changes."""
    rows = [
        ({"to": "2020-01-01", "for": None, "from": "2020-01-02"}, 400, "is not after the start"),
        ({"from": "2020-01-01 09:00"}, 400, "past"),
        ({"zone": "Mars/Base"}, 400, "there is no time zone"),
        ({"zone": "../../etc/passwd"}, 400, "there is no time zone"),
        ({"from": "2027-10-31 02:30", "zone": "Europe/Berlin"}, 400, "happens twice in Europe/Berlin; write"),
        ({"from": "2027-03-28 02:30", "zone": "Europe/Berlin"}, 400, "does not exist in Europe/Berlin"),
        ({"from": "9998-12-31 23:59", "for": "300000d"}, 400, "booking_length"),
        ({"from": "99999-01-01"}, 400, "is not a time"),
        ({"for": "9000000000d"}, 400, ""),
        ({"for": "0s"}, 400, "is not after the start"),
        ({"for": None}, 400, "either `for` or `to`"),
        ({"gpus": 0}, 400, "gpus"),
        ({"gpus": 12}, 400, "whole nodes"),
        ({"tasks": 2, "gpus": 64}, 400, "the largest has 8"),
        ({"type": "h900"}, 404, "h900"),
        ({"account": "beta"}, 404, "there is no account"),
        ({"account": "nobody"}, 404, "there is no account"),
        ({"repeat": {"every": "day", "count": 10000}}, 403, "1 to 1000 occurrences, not 10000"),
        ({"repeat": {"every": "day"}}, 400, "needs an end"),
        ({"repeat": {"every": "day", "count": 3}, "for": "25h"}, 400, "has ended"),
        ({"repeat": {"every": "fortnight", "count": 3}}, 400, "fortnight"),
        ({"colour": "red"}, 400, "colour"),
    ]
    before = alpha.get("/v1/bookings?all=true").text
    for change, status, said in rows:
        body = {**window(30), **change}
        body = {key: value for key, value in body.items() if value is not None}
        answer = alpha.post("/v1/bookings", body)
        check(answer.status == status and said in answer.text, "%s: %d %s", change, answer.status, answer.text)
    check(alpha.get("/v1/bookings?all=true").text == before, "bad input left something behind")


def quotes(owner, alpha, beta):
    """beta's booking is a moment for alpha, and the sentence is the same as for a floor or a full fleet."""
    asked = {"type": "h100", "gpus": 16, "from": "2027-06-01 09:00", "for": "8h"}
    free = alpha.post("/v1/bookings?dry_run=true", asked)
    check(free.status == 200 and free.json["fits"], "a free fleet: %s", free.text)
    secret = "launch-of-x71"
    beta.make("/v1/bookings", {**asked, "from": "2027-06-01 12:00", "name": secret, "confirm": True})
    told = alpha.post("/v1/bookings?dry_run=true", asked)
    one = told.json["windows"][0]
    check(not told.json["fits"] and one["not_available_from"], "a full one: %s", told.text)
    for word in (secret, "beta", "needed_gpus", "free_gpus", "displaces_gpus"):
        check(word not in told.text, "alpha reads %s in %s", word, told.text)
    check("free_gpus" in owner.post("/v1/bookings?dry_run=true", {**asked, "account": "alpha"}).text, "the owner sees amounts")
    refused = alpha.post("/v1/bookings", {**asked, "confirm": True})
    check(refused.status == 409 and refused.code == "overcommitted" and "beta" not in refused.text, "%s", refused.text)
    for path in ("/v1/bookings", "/v1/bookings?all=true", "/v1/calendar?from=2027-05-30&to=2027-06-10"):
        check(alpha.get(path).json["bookings"] == [], "alpha sees %s", alpha.get(path).text)
    check(alpha.get("/v1/bookings?account=beta").status == 404, "an account that is not alpha's")


def guessed(alpha, beta):
    """beta's id is as good as one that nobody has, whatever is done to it."""
    theirs = beta.make("/v1/bookings", window(60, gpus=1))["id"]
    for method, path, body in (("GET", "", None), ("DELETE", "", None), ("DELETE", "?series=true", None),
                               ("PATCH", "", {"tasks": 1}), ("POST", "/confirm", None)):
        said = []
        for booking in (theirs, "b00000000", "b0000000", "x", "b" + "0" * 40):
            answer = alpha.call(method, "/v1/bookings/" + booking + path, body, {"If-Match": "*"} if method == "PATCH" else {})
            check(answer.status == 404, "%s %s%s: %d %s", method, booking, path, answer.status, answer.text)
            said.append(json.loads(answer.text)["detail"].replace(booking, "ID"))
        check(len(set(said)) == 1, "%s tells them apart: %s", method, said)
    said = []
    for booking in (theirs, "b00000000"):
        answer = alpha.post("/v1/jobs", {"gpus": 1, "cpu": 1, "booking": booking, "sim": {"run": "1s"}})
        check(answer.status == 404, "a job in it: %s", answer.text)
        said.append(json.loads(answer.text)["detail"].replace(booking, "ID"))
    check(said[0] == said[1], "a submit tells them apart: %s", said)
    check(beta.get("/v1/bookings/" + theirs).json["state"] == "confirmed", "beta's is as it was")


def at_once(stintd, alpha_token):
    """64 at once for what 2 can have: two get it, and both are there."""
    answers = []

    def one():
        client = stintd.client(alpha_token)
        answers.append(client.post("/v1/bookings", {"type": "h100", "gpus": 8, "from": "2027-07-01", "for": "1d",
                                                    "confirm": True}))
        client.close()

    threads = [threading.Thread(target=one) for _ in range(64)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    made = [a.json["id"] for a in answers if a.status == 201]
    check({a.status for a in answers} <= {201, 409, 429}, "answers: %s", sorted(a.status for a in answers))
    client = stintd.client(alpha_token)
    there = [b for b in client.get("/v1/calendar?from=2027-07-01&to=2027-07-02").json["bookings"]
             if b["state"] == "confirmed"]
    check(sorted(made) == sorted(b["id"] for b in there), "confirmed: %s, there: %s", made, there)
    check(1 <= len(made) <= 2, "half of 32 GPUs is two nodes, not %d", len(made))


def limits(stintd, owner, member, chief):
    """64 at once for what a limit lets six have: six get it. Nobody sets its own, and each refusal has the numbers."""
    owner.call("PATCH", "/v1/accounts/gamma", {"limits": {"booking": {"gpu_hours": 6, "concurrent": 40, "length": "2h",
                                                                       "lead": "10d"}}}, {"If-Match": "*"})
    shown = owner.get("/v1/accounts/gamma").json["limits"]["booking"]
    check(shown == {"gpu_hours": 6, "concurrent": 40, "length_seconds": 7200, "lead_seconds": 864000}, "limits: %s", shown)
    for body in ({"gpu_hours": 600}, {"length": "none"}):
        raised = chief.call("PATCH", "/v1/accounts/gamma", {"limits": {"booking": body}}, {"If-Match": "*"})
        check(raised.status == 403, "gamma's admin sets gamma's own limits: %d %s", raised.status, raised.text)
    ask = {"type": "h100", "gpus": 1, "from": "+200h", "for": "1h", "confirm": True}
    answers = []

    def one():
        client = stintd.client(member)
        answers.append(client.post("/v1/bookings", ask))
        client.close()

    gamma = stintd.client(member)
    before = {b["id"] for b in gamma.get("/v1/bookings").json["bookings"]}
    check(before == set(), "nothing is booked before: %s", before)
    threads = [threading.Thread(target=one) for _ in range(64)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    made = [a.json["id"] for a in answers if a.status == 201]
    check({a.status for a in answers} <= {201, 403, 429} and len(made) == 6, "six hours: %s", sorted(a.status for a in answers))
    for change, said in (({}, "account gamma may have 6 GPU-hours booked ahead; with this window it would have 7"),
                         ({"for": "3h"}, "account gamma may book windows of up to 2h; this one has 3h"),
                         ({"from": "+241h"}, "account gamma may book up to")):
        refused = gamma.post("/v1/bookings", {**ask, **change})
        check(refused.status == 403 and refused.code == "limit" and said in refused.text, "%s: %s", said, refused.text)
        quote = gamma.post("/v1/bookings?dry_run=true", {**ask, **change}).json["windows"][0]
        check(quote["why"] == "quota" and said in quote["detail"], "the quote says so: %s", quote)
    longer = gamma.call("PATCH", "/v1/bookings/" + made[0], {"to": "+12090m"}, {"If-Match": "*"})
    check(longer.status == 403 and "GPU-hours" in longer.text, "a change is held to it: %s", longer.text)
    for booking in made:
        gamma.call("DELETE", "/v1/bookings/" + booking)
    owner.call("PATCH", "/v1/accounts/gamma", {"limits": {"booking": {"gpu_hours": "none", "concurrent": "none",
                                                                       "length": "none", "lead": "none"}}}, {"If-Match": "*"})
    check(owner.get("/v1/accounts/gamma").json["limits"]["booking"] == {}, "none again")
    owner.call("PATCH", "/v1/pools/main", {"booking_share": 0.25, "booking_horizon": "10d"}, {"If-Match": "*"})
    pool = owner.get("/v1/pools/main").json
    check(pool["booking_share"] == 0.25 and pool["booking_horizon_seconds"] == 864000, "pool: %s", pool)
    for change, said in (({"gpus": 16}, "bookings may have 25 % of the GPUs of pool main at one time"),
                         ({"from": "+300h"}, "pool main can be booked up to 10d ahead")):
        refused = gamma.post("/v1/bookings", {**ask, **change})
        check(refused.status == 403 and said in refused.text, "%s: %s", said, refused.text)
    owner.call("PATCH", "/v1/pools/main", {"booking_share": 0, "booking_horizon": 0}, {"If-Match": "*"})
    check(owner.get("/v1/pools/main").json["booking_share"] is None, "as the policy says again")


def short_hold(alpha):
    """A quote is held for ten minutes, or until others would have to leave for it: what is said is what is kept."""
    for start in ("+5m", "+90h"):
        made = alpha.make("/v1/bookings", {"type": "h100", "gpus": 1, "from": start, "for": "1h"})
        shown = alpha.get("/v1/bookings/" + made["id"]).json
        check(made["held_until"] == shown["held_until"], "held until %s, and shown: %s", made, shown)
        moments = [datetime.datetime.fromisoformat(t.replace("Z", "+00:00")) for t in (shown["made"], made["held_until"])]
        check((moments[1] - moments[0] < datetime.timedelta(minutes=5)) == (start == "+5m"), "%s: %s", start, made)
        alpha.call("DELETE", "/v1/bookings/" + made["id"])


def edits(alpha, elsewhere):
    """Once with a key, to the version that was read, whole or not at all."""
    key = {"Idempotency-Key": "one-launch"}
    first = alpha.call("POST", "/v1/bookings", window(80), key)
    again = alpha.call("POST", "/v1/bookings", window(80), key)
    check(first.status == again.status == 201 and first.text == again.text, "twice: %s %s", first.text, again.text)
    booking = "/v1/bookings/" + first.json["id"]
    read = alpha.get(booking)
    tag = read.header("ETag")
    check(alpha.call("PATCH", booking, {"to": "+90h"}, {"If-Match": tag}).status == 200, "a change")
    late = alpha.call("PATCH", booking, {"to": "+95h"}, {"If-Match": tag})
    check(late.status == 412, "a change of what has changed: %d", late.status)
    now = alpha.get(booking)
    refused = alpha.call("PATCH", booking, {"tasks": 400}, {"If-Match": now.header("ETag")})
    check(refused.status in (400, 409), "more than there is: %d %s", refused.status, refused.text)
    check(alpha.get(booking).json["tasks"] == now.json["tasks"], "a refused change leaves it alone")
    check(elsewhere.call("DELETE", booking).status == 403, "another member's")
    check(alpha.call("DELETE", booking).json["state"] == "cancelled", "cancelled")
    check(alpha.call("DELETE", booking).status == 409, "once")
    check(alpha.get(booking).json["state"] == "cancelled", "and kept")


def series(alpha):
    """Whole, or every clash is told and nothing is there."""
    spec = {"type": "h100", "gpus": 8, "from": "2027-03-26 22:00", "for": "8h", "zone": "Europe/Berlin", "confirm": True,
            "repeat": {"every": "day", "count": 5, "length": "wall", "except": ["2027-03-29"]}}
    made = alpha.make("/v1/bookings", spec)
    check([b["from"] for b in made["bookings"]] ==
          ["2027-03-26T22:00:00+01:00", "2027-03-27T22:00:00+01:00", "2027-03-28T22:00:00+02:00",
           "2027-03-30T22:00:00+02:00"], "its nights: %s", made)
    check(made["bookings"][1]["to"] == "2027-03-28T06:00:00+02:00", "the short night: %s", made)
    one = made["bookings"][2]["id"]
    check(alpha.call("DELETE", "/v1/bookings/" + one).status == 200, "one occurrence")
    states = {b["id"]: b["state"] for b in alpha.get("/v1/bookings?all=true").json["bookings"]
              if b["series"] == made["id"]}
    check(sorted(states.values()) == ["cancelled"] + ["confirmed"] * 3, "the others stay: %s", states)
    wide = {**spec, "gpus": 16, "repeat": {"every": "day", "count": 7}, "from": "2027-03-24 23:00", "for": "2h"}
    told = alpha.post("/v1/bookings?dry_run=true", {**wide}).json
    clashes = [w["from"][:10] for w in told["windows"] if not w["fits"]]
    check(clashes == ["2027-03-26", "2027-03-27", "2027-03-30"], "every clash: %s", told)
    check(alpha.post("/v1/bookings", wide).status == 409, "not a part of it")
    alpha.call("DELETE", f"/v1/bookings/{made['id']}?series=true")
    live = [b for b in alpha.get("/v1/bookings").json["bookings"] if b["series"] == made["id"]]
    check(live == [], "what is left of the series: %s", live)


def windows_of_jobs(alpha, beta):
    """Not before, over by, and from slot to slot; what is wrong is told in one sentence, and no job is there."""
    job = {"command": ["true"], "gpus": 1, "sim": {"run": "10m"}}
    before = alpha.get("/v1/jobs").text
    made = beta.make("/v1/bookings", {**window(400, gpus=1), "name": "secret-nights", "repeat": {"every": "day", "count": 3}})
    rows = [
        ({"begin": "2020-01-01 09:00"}, 400, "is in the past"),
        ({"end_by": "2020-01-01 09:00"}, 400, "is in the past"),
        ({"begin": "+2h", "end_by": "+1h"}, 400, "ends before it begins"),
        ({"end_by": "+1s"}, 400, "no time to run"),
        ({"begin": "soon"}, 400, "is not a time"),
        ({"begin": "+40000d"}, 400, "within 10 years"),
        ({"begin": "2027-10-31 02:30", "zone": "Europe/Berlin"}, 400, "happens twice in Europe/Berlin; write"),
        ({"begin": "+1h", "zone": "Mars/Base"}, 400, "there is no time zone"),
        ({"begin": ["+1h"]}, 400, "begin"),
        ({"slot": "nights"}, 404, "no series of bookings"),
        ({"slot": "secret-nights"}, 404, "no series of bookings"),
        ({"slot": made["id"]}, 404, "no series of bookings"),
        ({"slot": "\u001b[2J"}, 404, "no series of bookings"),
    ]
    for change, status, said in rows:
        for path in ("/v1/jobs", "/v1/jobs?dry_run=true"):
            answer = alpha.post(path, {**job, **change})
            refused = answer.status == status or (path != "/v1/jobs" and answer.status == 200)
            check(refused and said in answer.text, "%s %s: %d %s", path, change, answer.status, answer.text)
    check(alpha.get("/v1/jobs").text == before, "bad input left a job behind")
    later = alpha.make("/v1/jobs", {**job, "begin": "2027-06-01 09:00", "zone": "Europe/Berlin"})
    check(later["state"] == "pending", "it waits: %s", later)
    why = alpha.get(f"/v1/jobs/{later['id']}/why").json
    check(why["reasons"][0]["code"] == "window" and why["reasons"][0]["until"] == "2027-06-01T07:00:00.000Z",
          "it says until when: %s", why)
    now = alpha.make("/v1/jobs", {**job, "begin": "now", "end_by": "+3h"})
    check(now["state"] in ("pending", "running"), "it may run: %s", now)
    alpha.make("/v1/bookings", {**window(400, gpus=1), "name": "nights", "repeat": {"every": "day", "count": 3}})
    slot = alpha.make("/v1/jobs", {**job, "slot": "nights"})
    why = alpha.get(f"/v1/jobs/{slot['id']}/why").json
    check(why["reasons"][0]["code"] == "booking" and "begins in" in why["reasons"][0]["text"], "its slot: %s", why)
    for made in (later, now, slot):
        alpha.call("DELETE", "/v1/jobs/" + made["id"])


def deadlines(alpha, beta):
    """A hard one is promised or refused with the one that would work; a soft one is told how it stands."""
    job = {"command": ["true"], "gpus": 2, "limit": "1h", "sim": {"run": "10m"}}
    before = alpha.get("/v1/jobs").text, alpha.get("/v1/bookings?all=true").text
    rows = [
        ({"by": "2020-01-01"}, 400, "is in the past"),
        ({"hard": True}, 400, "needs a time"),
        ({"by": "+3h", "hard": True, "limit": None}, 400, "needs a time limit"),
        ({"by": "+30m", "hard": True}, 409, "the earliest that would work is"),
        ({"by": "+3h", "hard": True, "end_by": "+2h"}, 400, "no hard deadline"),
        ({"by": "+3h", "hard": "maybe"}, 400, "hard"),
    ]
    for change, status, said in rows:
        body = {key: value for key, value in {**job, **change}.items() if value is not None}
        answer = alpha.post("/v1/jobs", body)
        check(answer.status == status and said in answer.text, "%s: %d %s", change, answer.status, answer.text)
    check((alpha.get("/v1/jobs").text, alpha.get("/v1/bookings?all=true").text) == before, "bad input left something behind")
    check(alpha.post("/v1/jobs?dry_run=true", {**job, "by": "+3h", "hard": True}).status == 200, "a dry run")
    check(alpha.get("/v1/bookings?all=true").text == before[1], "a dry run left a booking behind")
    soft = alpha.make("/v1/jobs", {**job, "by": "+20h"})
    check(soft["deadline"]["state"] == "open" and not soft["deadline"]["hard"], "a soft one: %s", soft)
    hard = alpha.make("/v1/jobs", {**job, "name": "promised-x9", "by": "+20h", "hard": True})
    check(hard["deadline"]["state"] == "promised" and hard["deadline"]["hard"], "a hard one: %s", hard)
    for made, state in ((soft, "open"), (hard, "promised")):
        told = alpha.get(f"/v1/jobs/{made['id']}/why").json
        check(told.get("deadline") == state, "why says how it stands: %s", told)
    kept = [b for b in alpha.get("/v1/bookings").json["bookings"] if b["name"] == "promised-x9"]
    check(len(kept) == 1, "what is kept is seen: %s", kept)
    check("promised-x9" not in beta.get("/v1/bookings?all=true").text, "beta sees what is kept for alpha")
    for path in ("", "?dry_run=true"):
        refused = alpha.call("DELETE", "/v1/bookings/" + kept[0]["id"] + path)
        check(refused.status == 409 and "cancel the job" in refused.text, "it goes with the job: %s", refused.text)
    check(alpha.post("/v1/jobs", {**job, "booking": kept[0]["id"]}).status == 404, "nobody else runs inside")
    for made in (soft, hard):
        alpha.call("DELETE", "/v1/jobs/" + made["id"])
    ended = alpha.get("/v1/jobs/" + hard["id"]).json
    check(ended["deadline"]["state"] == "missed", "cancelled is not met: %s", ended)
    kept = [b for b in alpha.get("/v1/bookings").json["bookings"] if b["name"] == "promised-x9"]
    check(kept == [], "what was kept is gone: %s", kept)


def pages(alpha, beta):
    """Page by page it is the same list; a cursor is a booking that the caller sees."""
    whole = alpha.get("/v1/bookings?all=true").json["bookings"]
    check(len(whole) > 4, "too few to page: %d", len(whole))
    found, cursor = [], ""
    for _ in range(len(whole)):
        page = alpha.get("/v1/bookings?all=true&limit=3" + cursor).json
        check(len(page["bookings"]) <= 3, "a page is too long: %s", page)
        found += page["bookings"]
        if "next" not in page:
            break
        cursor = "&cursor=" + page["next"]
    check(found == whole, "the pages are not the list")
    theirs = beta.get("/v1/bookings?all=true").json["bookings"][0]["id"]
    for wrong in (theirs, "b0", "nonsense", "%00"):
        answer = alpha.get("/v1/bookings?all=true&cursor=" + wrong)
        check(answer.status == 400, "cursor %s: %d %s", wrong, answer.status, answer.text)
    check(alpha.get("/v1/bookings?limit=many").status == 400, "a limit is a number")


def feed(stintd, alpha, beta, alpha_token):
    """Its own token, which opens the feed alone, ends when it is revoked, and is in no log."""
    beta.make("/v1/bookings", window(130, gpus=1, name="beta-only"))
    made = alpha.make("/v1/bookings", {**window(120, gpus=1), "name": "alpha-night", "zone": "America/New_York",
                                       "from": "2027-03-13 02:30", "for": "1h", "repeat": {"every": "day", "count": 3}})
    secret = alpha.call("POST", "/v1/calendar/feeds").json
    nobody = stintd.client()
    answer = nobody.get("/v1/calendar.ics?token=" + secret["token"])
    check(answer.status == 200 and "alpha-night" in answer.text, "%d %s", answer.status, answer.text)
    check("beta" not in answer.text, "beta is in alpha's feed")
    for wrong in ("", "?token=", "?token=stint_" + "A" * 43, "?token=" + alpha_token, "?token=x"):
        status = nobody.get("/v1/calendar.ics" + wrong).status
        check(status in (400, 401), "with %s: %d", wrong, status)
    thief = stintd.client(secret["token"])
    for path in ("/v1/whoami", "/v1/bookings", "/v1/jobs", "/v1/calendar", "/v1/accounts"):
        check(thief.get(path).status == 403, "the feed's token opens %s", path)
    check(thief.post("/v1/bookings", window(5)).status == 403, "the feed's token books")
    read_ics(answer.body, made)
    check(alpha.call("DELETE", "/v1/tokens/" + secret["id"]).status == 204, "revoked")
    check(nobody.get("/v1/calendar.ics?token=" + secret["token"]).status == 401, "a revoked feed")
    with open(stintd.log, "rb") as f:
        check(secret["token"].encode() not in f.read(), "the token is in stintd's log")


def read_ics(body, made):
    """A reader that is not ours has the same instants."""
    if subprocess.run([READER, "-c", "import icalendar"], stderr=subprocess.DEVNULL).returncode != 0:
        print("no icalendar here: tools/setup installs it")
        return
    script = ("import icalendar, sys\n"
              "for e in icalendar.Calendar.from_ical(sys.stdin.buffer.read()).walk('VEVENT'):\n"
              "    print(e['UID'], e['DTSTART'].dt.isoformat(), e['DTEND'].dt.isoformat(), e['STATUS'])\n")
    out = subprocess.run([READER, "-c", script], input=body, capture_output=True, check=True).stdout.decode()
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    for b in made["bookings"]:
        start, end, status = rows[b["id"] + "@stint"]
        for said, ours in ((start, b["from"]), (end, b["to"])):
            same = datetime.datetime.fromisoformat(said) == datetime.datetime.fromisoformat(ours.replace("Z", "+00:00"))
            check(same and status == "CONFIRMED", "%s: %s, not %s", b["id"], said, ours)


def told(stintd, alpha, alpha_token, beta_token):
    """Its state is an event for its account, and for nobody else."""
    mine, theirs = Stream(stintd.port, alpha_token), Stream(stintd.port, beta_token)
    made = alpha.make("/v1/bookings", {**window(200, gpus=1), "confirm": False})
    told = alpha.call("POST", f"/v1/bookings/{made['id']}/confirm")
    there = alpha.get("/v1/bookings/" + made["id"])
    check(told.json == there.json, "a confirmation answers with what is there now: %s, %s", told.text, there.text)
    stays = alpha.call("PATCH", "/v1/bookings/" + made["id"], {"tasks": 1}, {"If-Match": told.header("ETag")})
    check(stays.status == 200, "and its ETag is the newest: %d %s", stays.status, stays.text)
    heard = mine.wait(lambda s: any(made["id"] in str(e) and "confirmed" in str(e) for e in s.events()))
    check(heard, "alpha hears nothing of its booking: %s", mine.events())
    check(not any(made["id"] in str(e) for e in theirs.events()), "beta hears of alpha's booking")
    job = {"command": ["true"], "gpus": 1, "limit": "1h", "by": "+20h"}
    for run, end, state in (("1s", False, "met"), ("10m", True, "missed")):
        dated = alpha.make("/v1/jobs", {**job, "sim": {"run": run}})["id"]
        if end:
            alpha.call("DELETE", "/v1/jobs/" + dated)
        heard = mine.wait(lambda s: any(dated in str(e) and f'"deadline":"{state}"' in str(e) for e in s.events()))
        check(heard, "alpha hears nothing of its deadline, %s: %s", state, mine.events()[-4:])
        check(not any(dated in str(e) for e in theirs.events()), "beta hears of alpha's deadline")
    whole = alpha.make("/v1/jobs", {**job, "tasks": 2, "gpus": 8, "begin": "+2h", "hard": True})
    nodes = [n["name"] for n in stintd.owner.get("/v1/nodes").json["nodes"]][:3]
    for way, state in (("failed", "at_risk"), ("ready", "promised")):
        for node in nodes:
            put = stintd.owner.call("PATCH", "/v1/nodes/" + node, {"state": way})
            check(put.status == 200, "node %s: %s", way, put.text)
        heard = mine.wait(lambda s: any(whole["id"] in str(e) and f'"deadline":"{state}"' in str(e) for e in s.events()))
        check(heard, "alpha hears nothing of its deadline, %s: %s", state, mine.events()[-4:])
        check(alpha.get("/v1/jobs/" + whole["id"]).json["deadline"]["state"] == state, "and the job says so")
    alpha.call("DELETE", "/v1/jobs/" + whole["id"])
    mine.close()
    theirs.close()
    text = stintd.owner.get("/v1/audit?what=booking&limit=100").text
    verbs = {verb for verb in ("booking.create", "booking.quote", "booking.confirm", "booking.cancel", "booking.change")
             if verb in text}
    check(len(verbs) == 5, "in the audit log: %s", verbs)


def restarted(stintd, program, alpha, alpha_token):
    """What is booked is there after stintd was killed, and no number comes back."""
    held = alpha.make("/v1/bookings", {**window(300, gpus=1), "confirm": False})["id"]
    before = alpha.get("/v1/bookings?all=true").text
    stintd.process.kill()
    stintd.process.wait(30)
    stintd.owner.close()
    with open(stintd.log, "w") as log:
        stintd.process = subprocess.Popen([program, "--config", os.path.join(stintd.dir, "config.yaml"), "--data",
                                           os.path.join(stintd.dir, "data")], stdout=subprocess.DEVNULL, stderr=log)
    stintd.port = stintd._port()
    stintd.owner = stintd.client(stintd.owner_token)
    alpha = stintd.client(alpha_token)
    check(alpha.get("/v1/bookings?all=true").text == before, "bookings differ after a restart")
    check(alpha.make("/v1/bookings", window(310, gpus=1))["id"] not in before, "a number came back")
    check(alpha.call("POST", f"/v1/bookings/{held}/confirm").status == 200, "a quote is still held")


def agreed(owner, alpha, beta, free, paid):
    """What was agreed is seen by whose it is, with what cancelling costs; a later price book changes neither."""
    shown = alpha.get("/v1/bookings/" + free).json
    check(shown["price"] is None and shown["cancel_fee"] is None and shown["cancel_fee_udollars"] is None,
          "confirmed without a price: %s", shown)
    wanted = {"amount_udollars": 115200000, "gpu_hour_udollars": 2000000, "discounts": {"agreed": "28%", "plan": "0%"}}
    owner.make("/v1/prices", {"prices": "dearer", "gpu": {"*": {"reserved": 1, "burst": 4, "booking": 3}},
                              "booking": {"cancel": {"30d": "90%"}}})
    listed = {b["id"]: b for b in alpha.get("/v1/bookings").json["bookings"]}[paid]
    for one in (alpha.get("/v1/bookings/" + paid).json, listed, owner.get("/v1/bookings/" + paid).json):
        check({key: one["price"][key] for key in wanted} == wanted and one["cancel_fee_udollars"] == 57600000,
              "as it was agreed: %s", one)
    check(beta.get("/v1/bookings/" + paid).status == 404, "beta sees alpha's price")
    check(paid not in beta.get("/v1/bookings?all=true").text, "beta lists alpha's booking")
    asked = alpha.call("DELETE", f"/v1/bookings/{paid}?dry_run=true")
    check(asked.status == 200 and asked.json["cancel_fee_udollars"] == 57600000 and asked.json["state"] == "confirmed",
          "what cancelling would cost: %s", asked.text)
    check(beta.call("DELETE", f"/v1/bookings/{paid}?dry_run=true").status == 404, "beta asks for alpha's fee")
    check(alpha.get("/v1/bookings/" + paid).json == one, "a dry run changes nothing")


def owed(owner, alpha):
    """What the answer to a cancellation says is what the bill has: of a series, and of one that has begun."""
    def fees():
        bill = owner.get("/v1/bills/open?account=alpha").json
        return sum(x["amount_udollars"] for x in bill["lines"] if x["component"] == "cancel")

    series = alpha.make("/v1/bookings", {**window(600, "1h"), "repeat": {"every": "day", "count": 3}})
    begun = alpha.make("/v1/bookings", {"type": "h100", "gpus": 1, "from": "now", "for": "7h", "confirm": True})
    last = "/v1/bookings/" + series["bookings"][2]["id"]
    bigger = alpha.call("PATCH", last, {"tasks": 2}, {"If-Match": alpha.get(last).header("ETag")})
    shown = alpha.get(last).json
    check(bigger.status == 200 and bigger.json["price"] == shown["price"] and bigger.json["cancel_fee"] == shown["cancel_fee"],
          "a change answers with its new price: %s %s", bigger.text, shown)
    for path, least in ((series["id"] + "?series=true", 1), (begun["id"], 1)):
        before = fees()
        said = alpha.call("DELETE", "/v1/bookings/" + path).json
        check(said["cancel_fee_udollars"] >= least, "a fee is due: %s", said)
        check(fees() - before == said["cancel_fee_udollars"], "the bill has it: %s, %s, %s", before, fees(), said)


def money(owner, alpha, beta, folder):
    """The price is in the quote, agreed when it is confirmed, and on a bill that verifies; a fee for what is given up."""
    quote = alpha.post("/v1/bookings?dry_run=true", window(400))
    check(quote.json["windows"][0]["price"] is None, "no prices yet: %s", quote.text)
    free = alpha.make("/v1/bookings", window(400))["id"]
    owner.make("/v1/prices", {"prices": "booked", "gpu": {"*": {"reserved": 1, "burst": 4, "booking": 2}},
                              "booking": {"term": {"10h": "10%"}, "lead": {"7d": "20%"},
                                          "cancel": {"30d": "50%"}}})
    shown = owner.get("/v1/prices").json["prices"]
    check(any(b.get("booking", {}).get("cancel") == {"30d": "50%"} for b in shown), "prices: %s", shown)
    price = alpha.post("/v1/bookings?dry_run=true", window(500, "10h")).json["windows"][0]["price"]
    check(price["amount_udollars"] == 8 * 10 * 2 * 720000 and price["discounts"] == {"term": "10%", "lead": "20%", "plan": "0%"},
          "8 GPUs, 10 hours, 10%% and 20%% off: %s", price)
    paid = alpha.make("/v1/bookings", window(500, "10h"))["id"]
    agreed(owner, alpha, beta, free, paid)
    budget = owner.get("/v1/accounts/alpha/budget").json
    check(budget["booked_udollars"] in (0, 115200000), "what is booked this month: %s", budget)
    for one, due in ((free, None), (paid, 57600000)):
        said = alpha.call("DELETE", f"/v1/bookings/{one}")
        check(said.status == 200 and said.json["cancel_fee_udollars"] == due and said.json["price"] is None,
              "cancelled, and what is due: %s", said.text)
        check(alpha.get(f"/v1/bookings/{one}").json["cancel_fee"] is None, "nothing is agreed any more")
    bill = owner.get("/v1/bills/open?account=alpha").json
    check([(x["component"], x["amount_udollars"]) for x in bill["lines"] if x["amount_udollars"]] == [("cancel", 57600000)],
          "half of what was agreed, and nothing of what was free: %s", bill["lines"])
    owner.call("PUT", "/v1/accounts/alpha/plan", {"cap": "60"})
    before = alpha.get("/v1/bookings?all=true").text
    for path in ("/v1/bookings", "/v1/bookings?dry_run=true"):
        refused = alpha.post(path, window(600, "10h"))
        check(refused.status in (402, 403, 409) and "cap" in refused.text, "beyond the cap: %d %s", refused.status,
              refused.text)
    check(alpha.get("/v1/bookings?all=true").text == before, "a refusal changes nothing")
    owner.call("PUT", "/v1/accounts/alpha/plan", {"cap": "none"})
    path = os.path.join(folder, "bill.jsonl")
    with open(path, "w", encoding="utf-8") as f:
        f.write(owner.get("/v1/bills/open?account=alpha&format=file").text)
    reference = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "money", "bill_reference.py")
    said = subprocess.run([sys.executable, reference, path], capture_output=True, text=True, timeout=60)
    check(said.returncode == 0 and "57600000" in said.stdout, "another verifier: %s %s", said.stdout, said.stderr)
    owed(owner, alpha)


def run(program):
    stintd = Stintd(program)
    try:
        owner = stintd.owner
        fleet(owner, nodes=4)
        tokens = {}
        for name in ("alpha", "beta"):
            owner.make("/v1/accounts", {"name": name})
            tokens[name] = token(owner, name, "ann", "member")["token"]
        alpha, beta = stintd.client(tokens["alpha"]), stintd.client(tokens["beta"])
        elsewhere = stintd.client(token(owner, "alpha", "eve", "member")["token"])
        bad_input(alpha)
        owner.make("/v1/accounts", {"name": "gamma"})
        limits(stintd, owner, token(owner, "gamma", "ann", "member")["token"],
               stintd.client(token(owner, "gamma", "max", "admin")["token"]))
        quotes(owner, alpha, beta)
        guessed(alpha, beta)
        at_once(stintd, tokens["alpha"])
        edits(alpha, elsewhere)
        short_hold(alpha)
        series(alpha)
        windows_of_jobs(alpha, beta)
        deadlines(alpha, beta)
        pages(alpha, beta)
        feed(stintd, alpha, beta, tokens["alpha"])
        told(stintd, alpha, tokens["alpha"], tokens["beta"])
        money(owner, alpha, beta, stintd.dir)
        restarted(stintd, program, alpha, tokens["alpha"])
    finally:
        stintd.stop()


main(run)
