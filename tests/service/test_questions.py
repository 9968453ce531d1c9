#!/usr/bin/env python3
"""Questions beside the writer: what was written is seen, what is asked writes nothing.

Lists, quotas, metrics, why, dry runs and what-if are answered by a follower of the log. The test
submits and asks at the same time and checks that a caller always sees its own writes, that a
Stint-Position is honoured, that no question adds to the log, and what what-if says.
"""

import gzip
import os
import re
import sys
import threading

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, check, fleet, main, token  # noqa: E402


def position(owner):
    """The last row of the log, and the one that answers stand behind."""
    text = owner.get("/metrics").text
    return tuple(int(re.search(rf"(?m)^{name} (\d+)$", text).group(1))
                 for name in ("stint_log_position", "stint_reader_position"))


def held(client, account):
    return client.get(f"/v1/accounts/{account}/quota").json["held"]["gpu"]


def own_writes(stintd, owner):
    """Each writer reads back what it wrote, at once, while others do the same."""
    faults = []

    secrets = [token(owner, "busy", f"u{n}", "member")["token"] for n in range(4)]

    def write(number):
        try:
            client = stintd.client(secrets[number])
            for i in range(25):
                job = client.make("/v1/jobs", {"gpus": 0, "cpu": 0.01, "name": f"w{number}-{i}",
                                               "sim": {"run": "1d"}})
                why = client.get(f"/v1/jobs/{job['id']}/why")
                check(why.status == 200 and why.json["state"] == "running", "why: %s", why.text)
                client.call("DELETE", f"/v1/jobs/{job['id']}")
                why = client.get(f"/v1/jobs/{job['id']}/why").json
                check(why["state"] == "over", "cancelled, and still %s", why)
        except Exception as e:  # noqa: BLE001
            faults.append(e)

    def ask(stop):
        try:
            client = stintd.client(owner.token)
            while not stop.is_set():
                for path in ("/v1/nodes", "/v1/accounts", "/metrics", "/v1/accounts/busy/usage"):
                    check(client.get(path).status == 200, "GET %s", path)
        except Exception as e:  # noqa: BLE001
            faults.append(e)

    stop = threading.Event()
    askers = [threading.Thread(target=ask, args=(stop,)) for _ in range(3)]
    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for t in askers + writers:
        t.start()
    for t in writers:
        t.join()
    stop.set()
    for t in askers:
        t.join()
    check(not faults, "%s", faults)
    log, reader = position(owner)
    check(log == reader, "the log is at %d, readers at %d", log, reader)


def nothing_is_written(owner, waiting):
    before = position(owner)
    for _ in range(5):
        check(owner.get(f"/v1/jobs/{waiting}/why").json["start_estimate"], "no estimate")
        check(owner.post("/v1/jobs?dry_run=true", {"account": "team", "gpus": 8}).status == 200, "dry run")
        check(owner.post("/v1/whatif", {"job": {"account": "team", "gpus": 8}}).status == 200, "what-if")
        for path in ("/v1/nodes", "/v1/pools", "/v1/types", "/v1/accounts", "/v1/jobs", "/metrics", "/v1/bills/open",
                     "/v1/accounts/team/budget", "/v1/accounts/team/plan"):
            check(owner.get(path).status == 200, "GET %s", path)
    check(position(owner) == before, "questions wrote: %s, then %s", before, position(owner))


def positions(stintd, owner):
    made = owner.post("/v1/jobs", {"account": "team", "gpus": 0, "cpu": 1, "sim": {"run": "1d"}})
    seen = made.header("Stint-Position")
    check(seen, "a write without a position: %s", made.headers)
    for path in ("/v1/nodes", "/v1/jobs", "/v1/tokens", "/v1/audit", "/v1/bills/open", "/v1/accounts/team"):
        answer = owner.get(path, headers={"Stint-Position": seen})
        check(answer.status == 200 and answer.header("Stint-Position"), "GET %s: %s", path, answer.headers)
    again = {owner.get("/v1/types").header("Stint-Position") for _ in range(8)}
    check(len(again) == 8, "the same position looks the same: %s", again)
    for bad in ("p0000000000000", "7", "x" * 40, "p" + "z" * 13):
        answer = owner.get("/v1/types", headers={"Stint-Position": bad})
        check(answer.status == 400, "position %s: %d", bad, answer.status)


def packed(owner):
    """Lists come in fewer bytes where that is asked for, and are the same."""
    for path in ("/v1/jobs?limit=1000", "/metrics"):
        plain = owner.get(path)
        small = owner.get(path, headers={"Accept-Encoding": "br, gzip"})
        check(plain.header("Content-Encoding") is None and plain.header("Vary"), "%s: %s", path, plain.headers)
        check(small.header("Content-Encoding") == "gzip" and len(small.body) * 3 < len(plain.body),
              "%s: %d bytes, %d packed", path, len(plain.body), len(small.body))
        check(len(gzip.decompress(small.body)) > len(plain.body) / 2, "%s cannot be unpacked", path)
    answer = owner.post("/v1/whatif", {"job": {"account": "team", "gpus": 1}, "variants": [{"gpus": 8}] * 16},
                        headers={"Accept-Encoding": "gzip"})
    check(answer.status == 200 and answer.header("Content-Encoding") is None, "a POST was packed")


def money_metrics(stintd, owner):
    """Sums of money are kept for a moment: never across a change, never for another account."""
    readers = {}
    for name in ("left", "right"):
        owner.make("/v1/accounts", {"name": name})
        readers[name] = stintd.client(token(owner, name, "prom", "viewer")["token"])
    for cap in range(20, 32):
        changed = owner.call("PUT", "/v1/accounts/left/plan", {"cap": str(cap)})
        check(changed.status == 200, "a cap: %s", changed.text)
        for reader in (owner, readers["right"], readers["left"], readers["left"]):
            text = reader.get("/metrics").text
            sample = re.search(r'(?m)^stint_account_budget_dollars\{account="left",[^}]*what="cap"\} ([0-9.]+)$', text)
            if reader is readers["right"]:
                theirs = [line for line in text.splitlines() if re.search(r'(account|parent)="left"', line)]
                check(theirs == [], "right reads of left: %s", theirs)
            else:
                check(sample and float(sample.group(1)) == cap, "a cap of %d: %s", cap, sample)


def whatif(stintd, owner):
    admin = stintd.client(token(owner, "team", "boss", "admin")["token"])
    member = stintd.client(token(owner, "team", "ann", "member")["token"])
    job = {"gpus": 8, "tasks": 2, "limit": "1h"}
    answer = admin.post("/v1/whatif", {"job": job, "variants": [
        {}, {"gpus": 1, "tasks": 1}, {"tasks": 400}, {"limit": "nonsense"}, {"account": "none"}, {"priority": "high"}]})
    check(answer.status == 200, "what-if: %s", answer.text)
    said = answer.json["answers"]
    check([s["state"] for s in said] == ["pending", "running", "refused", "refused", "refused", "pending"],
          "what-if: %s", answer.text)
    check(said[0]["start_estimate"] and said[0]["reasons"], "no start, no reasons: %s", said[0])
    check(said[4]["code"] == "not_found" and said[3]["code"] in ("invalid", "parse"), "%s", said)
    # One and the same as a dry run.
    dry = admin.post("/v1/jobs?dry_run=true", job).json
    check(dry["start_estimate"] == said[0]["start_estimate"], "%s, %s", dry, said[0])
    # What it costs at most: 16 GPUs for an hour at the dearest right; without a limit nobody knows.
    price = owner.make("/v1/prices", {"prices": "dear", "gpu": {"*": {"reserved": "1.00", "guaranteed": "1.00", "burst": "2.00"}}})
    check(price["name"] == "dear", "%s", price)
    dear = admin.post("/v1/jobs?dry_run=true", job).json
    check(32 <= float(dear["cost_most"]) < 32.01, "%s", dear)  # with the moment that ending takes
    check(admin.post("/v1/jobs?dry_run=true", {"gpus": 1, "tasks": 1}).json["cost_most"] is None, "cost without a limit")
    # The numbers of a reason: those of accounts only to whom may see them.
    owner.make("/v1/accounts", {"name": "small", "parent": "team", "max": {"gpu": 1}})
    for who, seen in ((admin, True), (stintd.client(token(owner, "small", "tom", "member")["token"]), True)):
        over = who.post("/v1/jobs?dry_run=true", {"account": "small", "gpus": 1, "limit": "1h"}).json
        check(all(set(r["measure"]) == {"unit", "used", "asked", "bound"} for r in over["reasons"] if "measure" in r), "%s", over)
    # Quotas: an admin those below, nobody its own, members none.
    change = {"accounts": [{"name": "team-sub", "guarantee": {"gpu": 4}}]}
    check(admin.post("/v1/whatif", change).json["accounts"] == {"starts": [], "displaces": []}, "accounts")
    check(admin.post("/v1/whatif", {"accounts": [{"name": "team", "max": {"gpu": 64}}]}).status == 403, "its own")
    check(admin.post("/v1/whatif", {"accounts": [{"name": "busy", "max": {"gpu": 64}}]}).status == 404, "another's")
    check(member.post("/v1/whatif", change).status == 403, "a member")
    before = owner.get("/v1/accounts/team-sub").json
    check(before["guarantee"] == {}, "the change was made: %s", before)
    # A guarantee that would let a job of the asker's start, and displace one of the asker's own.
    wide = owner.post("/v1/whatif", {"accounts": [{"name": "rich", "guarantee": {"gpu": 16}}],
                                     "job": {"account": "rich", "gpus": 8, "tasks": 2, "limit": "1h"}})
    named = {j["account"] for a in wide.json["answers"] for j in a["displaces"]}
    check(wide.status == 200 and named <= {"team", "busy"} and named, "%s", wide.text)


def play(stintd):
    owner = stintd.owner
    fleet(owner)
    nodes = owner.get("/v1/nodes").json["nodes"]
    for name, more in (("team", {"guarantee": {"gpu": 8}}), ("team-sub", {"parent": "team"}), ("busy", {}),
                       ("rich", {})):
        owner.make("/v1/accounts", {"name": name, **more})
    own_writes(stintd, owner)
    for _ in nodes[1:]:
        owner.make("/v1/jobs", {"account": "team", "gpus": 8, "limit": "2h", "sim": {"run": "2h"}})
    waiting = owner.make("/v1/jobs", {"account": "team", "gpus": 8, "tasks": 2, "limit": "1h", "sim": {"run": "1h"}})
    check(waiting["state"] == "pending", "%s", waiting)
    nothing_is_written(owner, waiting["id"])
    positions(stintd, owner)
    whatif(stintd, owner)
    packed(owner)
    money_metrics(stintd, owner)


def run(program):
    stintd = Stintd(program, config="rate: 1000000\npolicy: {min_run: 0s}\n")
    try:
        play(stintd)
    finally:
        stintd.stop()
    print("own writes are seen, questions write nothing, positions hold, what-if answers, lists are packed")


if __name__ == "__main__":
    main(run)
