#!/usr/bin/env python3
"""Priority classes over the API: what they let jobs do, what they cost, who may use and see them.

alpha and beta stand beside each other. A class that is for alpha alone is for beta one that was never there.
"""

import csv
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, check, fleet, main, token  # noqa: E402

JOB = {"command": ["true"], "gpus": 1, "limit": "1h", "sim": {"run": "90000h"}}


def bad_input(owner):
    """One sentence each, and nothing changes."""
    good = {"lowest": 1, "highest": 9, "priority": 5}
    rows = [
        ({"lowest": "low"}, 400, "lowest is a whole number"),
        ({"lowest": 10}, 400, "highest is a whole number from 10"),
        ({"priority": 10}, 400, "priority is a whole number from 1 to 9"),
        ({"highest": 2000000}, 400, "highest"),
        ({"preempt": "maybe"}, 400, "preempt is true or false"),
        ({"accounts": ["nobody"]}, 404, "there is no account nobody"),
        ({"accounts": "some"}, 400, "accounts says who may use the class"),
        ({"roles": ["king"]}, 400, "there is no role"),
        ({"colour": "red"}, 400, "a class has no key"),
    ]
    before = owner.get("/v1/classes").text
    for change, status, said in rows:
        answer = owner.call("PUT", "/v1/classes/odd", {**good, **change})
        check(answer.status == status and said in answer.text, "%s: %d %s", change, answer.status, answer.text)
    for book in ({"classes": {"critical": "1001%"}}, {"classes": {"a b": "50%"}},
                 {"classes": {"x": "900%"}, "topology": {"rack": "900%"}, "gpu": {"*": {"reserved": 1, "burst": 2, "whole": "9900%"}}}):
        answer = owner.post("/v1/prices", {"prices": "odd", "gpu": {"*": {"reserved": 1, "burst": 2}}, **book})
        check(answer.status == 400, "%s: %d %s", book, answer.status, answer.text)
    check(owner.get("/v1/classes").text == before, "bad input left something behind")


def who_may(owner, alpha, chief, beta):
    """Unknown, another account's and another role's: refused in a sentence, whatever is tried."""
    owner.call("PUT", "/v1/classes/alpha-only", {"lowest": 10, "highest": 20, "priority": 15, "accounts": ["alpha"]})
    for client in (alpha, chief):
        mine = {c["name"]: c for c in client.get("/v1/classes").json["classes"]}
        check(set(mine) == {"alpha-only", "best-effort", "critical", "production", "standard"}, "alpha's: %s", sorted(mine))
        check("accounts" not in mine["alpha-only"], "who else may use it is not told: %s", mine)
    theirs = beta.get("/v1/classes").text
    check("alpha" not in theirs, "beta reads of alpha's class: %s", theirs)
    said = []
    for name in ("alpha-only", "never-was"):
        answer = beta.post("/v1/jobs", {**JOB, "priority_class": name})
        check(answer.status == 404, "beta submits with %s: %d %s", name, answer.status, answer.text)
        said.append(answer.json["detail"].replace(name, "NAME"))
    check(said[0] == said[1], "beta tells them apart: %s", said)
    answer = alpha.post("/v1/jobs", {**JOB, "priority_class": "critical"})
    check(answer.status == 403 and "class critical is for the roles owner, admin; yours is member" in answer.text,
          "a member raises its class: %s", answer.text)
    for client in (alpha, chief, beta):
        for method, path in (("PUT", "/v1/classes/critical"), ("DELETE", "/v1/classes/alpha-only")):
            answer = client.call(method, path, {"lowest": 1, "highest": 900, "priority": 900} if method == "PUT" else None)
            check(answer.status == 403, "%s %s: %d %s", method, path, answer.status, answer.text)
    answer = alpha.post("/v1/jobs", {**JOB, "priority_class": "standard", "priority": 500})
    check(answer.status == 400 and "class standard has the priorities -99 to 99, not 500" in answer.text,
          "a priority of another class: %s", answer.text)
    made = chief.make("/v1/jobs", {**JOB, "priority_class": "critical"})
    check(made["priority"] == 200, "it gets that of its class: %s", made)
    put = chief.call("PATCH", f"/v1/jobs/{made['id']}", {"priority": 5}, {"If-Match": "*"})
    check(put.status == 400 and "class critical has the priorities 200" in put.text, "out of its class: %d %s", put.status, put.text)
    chief.call("DELETE", f"/v1/jobs/{made['id']}")


def price(owner, alpha, chief, folder, stint):
    """A class pays its part of the price: in the dry run, on the bill, verified offline, and in FOCUS."""
    owner.make("/v1/prices", {"prices": "classed", "gpu": {"*": {"reserved": 1, "burst": 2}},
                              "classes": {"production": "150%", "best-effort": "25%"}})
    shown = owner.get("/v1/prices").json["prices"]
    check(any(b.get("classes") == {"production": "150%", "best-effort": "25%"} for b in shown), "prices: %s", shown)
    listed = {c["name"]: c["price"] for c in alpha.get("/v1/classes").json["classes"]}
    end = time.monotonic() + 20
    while listed["production"] != "150%" and time.monotonic() < end:  # a book applies from the next millisecond on
        listed = {c["name"]: c["price"] for c in alpha.get("/v1/classes").json["classes"]}
    check(listed["production"] == "150%" and listed["best-effort"] == "25%" and listed["standard"] == "100%", "%s", listed)
    most = {}
    for name in (None, "production", "best-effort"):
        answer = alpha.post("/v1/jobs?dry_run=true", {**JOB, **({"priority_class": name} if name else {})})
        check(answer.status == 200, "a dry run: %s", answer.text)
        most[name] = answer.json["cost_most_udollars"]
    for name, part in (("production", 1.5), ("best-effort", 0.25)):
        check(abs(most[name] - part * most[None]) < 1000, "%s costs %s of %s", name, most[name], most[None])
    jobs = {name: alpha.make("/v1/jobs", {**JOB, "priority_class": name, "sim": {"run": "3s"}}) for name in ("production", "best-effort")}
    for job in jobs.values():
        end = time.monotonic() + 60
        while alpha.get(f"/v1/jobs/{job['id']}").json["state"] != "done":
            check(time.monotonic() < end, "job %s does not end", job["id"])
            time.sleep(0.05)
    text = owner.get("/v1/bills/open?account=alpha&format=file").text
    path, key = os.path.join(folder, "alpha.bill"), os.path.join(folder, "key.pub")
    for name, factor in (("production", 15000), ("best-effort", 2500)):
        mine = [line for line in text.splitlines() if f'"class":"{name}"' in line and f',{factor},' in line]
        check(mine, "entries of class %s with the factor %d", name, factor)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    with open(key, "w", encoding="utf-8") as f:
        f.write(owner.get("/v1/billing").json["key"] + "\n")
    done = subprocess.run([stint, "bill", "verify", "--key", key, path], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, "it does not verify: %s%s", done.stdout, done.stderr)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace('"class":"best-effort"', '"class":"production"'))
    done = subprocess.run([stint, "bill", "verify", "--key", key, path], capture_output=True, text=True, timeout=60)
    check(done.returncode != 0, "another class verifies as well")
    focus = owner.get("/v1/bills/open?account=alpha&format=focus").text
    check("stint/class" in focus and "best-effort" in focus, "FOCUS names the class: %s", focus[:600])


def shown(alpha, stint, port, secret):
    """A job says its class: alone, in lists, by field, as one of an array, in `show`, `ps` and a dry run; without one it says none."""
    plain = alpha.make("/v1/jobs", {**JOB, "name": "plain"})
    one = alpha.make("/v1/jobs", {**JOB, "name": "classed", "priority_class": "best-effort"})
    many = alpha.make("/v1/jobs", {**JOB, "name": "many", "priority_class": "production", "array": {"count": 2}})
    mine = {j["id"]: j for j in alpha.get("/v1/jobs?limit=100&fields=id,name,array,priority_class").json["jobs"]}
    check("priority_class" not in mine[plain["id"]], "a class from nowhere: %s", mine[plain["id"]])
    check(mine[one["id"]]["priority_class"] == "best-effort", "in a list: %s", mine[one["id"]])
    pieces = [j for j in mine.values() if j["name"].startswith("many")]
    check(len(pieces) == 2 and all(j["priority_class"] == "production" for j in pieces), "of an array: %s", pieces)
    check(alpha.get(f"/v1/jobs/{one['id']}").json["priority_class"] == "best-effort", "alone")
    env = {**os.environ, "STINT_URL": f"http://127.0.0.1:{port}", "STINT_TOKEN": secret}
    for words, wanted in ((["show", one["id"]], "Priority class  best-effort"), (["ps"], "PRIORITY CLASS"),
                          (["ps", "-o", "csv"], ",best-effort")):
        done = subprocess.run([stint, *words], capture_output=True, text=True, timeout=60, env=env)
        check(done.returncode == 0 and wanted in done.stdout, "%s: %s%s", words, done.stdout, done.stderr)
    for job in mine.values():
        alpha.call("DELETE", f"/v1/jobs/{job['id']}")
    done = subprocess.run([stint, "ps", "-a", "--name", "plain"], capture_output=True, text=True, timeout=60, env=env)
    check("NAME" in done.stdout and "PRIORITY CLASS" not in done.stdout, "a column for nobody: %s", done.stdout)


def why(owner, alpha, stint, port, secret):
    """A waiting job's class, its priorities, and that its lack of the right to preempt is what it waits for."""
    owner.call("PUT", "/v1/classes/shy", {"lowest": 50, "highest": 60, "priority": 55, "preempt": False})
    fill = [alpha.make("/v1/jobs", {**JOB, "gpus": 8, "name": f"fill{i}", "priority": -5}) for i in range(2)]
    for job in fill:
        end = time.monotonic() + 30
        while alpha.get(f"/v1/jobs/{job['id']}").json["state"] != "running":
            check(time.monotonic() < end, "job %s does not start", job["id"])
            time.sleep(0.05)
    shy = alpha.make("/v1/jobs", {**JOB, "gpus": 8, "priority_class": "shy", "priority": 58})
    said = alpha.get(f"/v1/jobs/{shy['id']}/why").json
    check(said["priority_class"] == {"name": "shy", "lowest": 50, "highest": 60, "priority": 58, "preempt": False}, "%s", said)
    end = time.monotonic() + 30  # the answer may be of the moment before
    while "no_preempt" not in [r["code"] for r in said["reasons"]]:
        check(time.monotonic() < end, "it is not told: %s", said)
        time.sleep(0.1)
        said = alpha.get(f"/v1/jobs/{shy['id']}/why").json
    env = {**os.environ, "STINT_URL": f"http://127.0.0.1:{port}", "STINT_TOKEN": secret}
    done = subprocess.run([stint, "why", shy["id"]], capture_output=True, text=True, timeout=60, env=env)
    check("Its class is shy: priorities 50 to 60, the job has 58 and preempts only for what its account is guaranteed." in done.stdout
          and "has no right to preempt" in done.stdout, "%s%s", done.stdout, done.stderr)
    owner.call("DELETE", "/v1/classes/shy")
    said = alpha.get(f"/v1/jobs/{shy['id']}/why").json
    check(said["priority_class"] == {"name": "shy", "priority": 58, "preempt": False}, "of a class that is gone: %s", said)
    dry = alpha.post("/v1/jobs?dry_run=true", {**JOB, "priority_class": "best-effort"}).json
    check(dry["priority_class"]["name"] == "best-effort" and not dry["priority_class"]["preempt"], "a dry run: %s", dry)
    for job in (*fill, shy):
        alpha.call("DELETE", f"/v1/jobs/{job['id']}")


def followed(alpha, stint, port, secret):
    """The sum of a job with a class by hand, from what `bill --explain` and the entries' CSV say."""
    rows = list(csv.DictReader(alpha.get("/v1/bills/open/entries?format=csv").text.splitlines()))
    for name, factor in (("production", "1.5"), ("best-effort", "0.25")):
        mine = [r for r in rows if r["class"] == name and r["component"]]
        check(mine and all(float(r["factor"]) == float(factor) for r in mine), "%s in CSV: %s", name, mine)
        for r in mine:
            by_hand = float(r["quantity"]) * float(r["rate"]) * float(r["factor"])
            check(abs(by_hand - float(r["amount"])) < 1e-5, "by hand %s: %s", by_hand, r)
    env = {**os.environ, "STINT_URL": f"http://127.0.0.1:{port}", "STINT_TOKEN": secret}
    done = subprocess.run([stint, "bill", "--explain", "1", "-o", "csv"], capture_output=True, text=True, timeout=60, env=env)
    rows = list(csv.DictReader(done.stdout.splitlines()))
    for name, factor in (("production", "150%"), ("best-effort", "25%")):
        mine = [r for r in rows if r["class"] == name]
        check(mine and all(r["factor"] == factor for r in mine), "%s explained: %s%s", name, done.stdout, done.stderr)
        for r in mine:
            by_hand = float(r["quantity"]) * float(r["rate"]) * float(r["factor"][:-1]) / 100
            check(abs(by_hand - float(r["amount"])) < 1e-5, "by hand %s: %s", by_hand, r)


def kept(stintd, program):
    """What is set is there after stintd was killed; what is removed is not, and a built-in class is as it was."""
    stintd.owner.call("PUT", "/v1/classes/critical", {"lowest": 300, "highest": 400, "priority": 300, "roles": "all"})
    stintd.owner.call("DELETE", "/v1/classes/alpha-only")
    before = stintd.owner.get("/v1/classes").json
    stintd.process.kill()
    stintd.process.wait(30)
    stintd.owner.close()
    with open(stintd.log, "w") as log:
        stintd.process = subprocess.Popen([program, "--config", os.path.join(stintd.dir, "config.yaml"), "--data",
                                           os.path.join(stintd.dir, "data")], stdout=subprocess.DEVNULL, stderr=log)
    stintd.port = stintd._port()
    stintd.owner = stintd.client(stintd.owner_token)
    check(stintd.owner.get("/v1/classes").json == before, "after a restart: %s", stintd.owner.get("/v1/classes").text)
    check(stintd.owner.call("DELETE", "/v1/classes/critical").status == 204, "removed")
    critical = [c for c in stintd.owner.get("/v1/classes").json["classes"] if c["name"] == "critical"][0]
    check(critical["builtin"] and critical["lowest"] == 200, "as it was: %s", critical)


def run(program):
    stintd = Stintd(program, config="rate: 1000000\npolicy: {min_run: 0s}\n")
    try:
        owner = stintd.owner
        fleet(owner, nodes=2)
        for name in ("alpha", "beta"):
            owner.make("/v1/accounts", {"name": name})
        secret, other = (token(owner, name, "ann", "member")["token"] for name in ("alpha", "beta"))
        alpha, beta = stintd.client(secret), stintd.client(other)
        chief = stintd.client(token(owner, "alpha", "max", "admin")["token"])
        bad_input(owner)
        who_may(owner, alpha, chief, beta)
        stint = os.path.join(os.path.dirname(program), "stint")
        price(owner, alpha, chief, stintd.dir, stint)
        followed(alpha, stint, stintd.port, secret)
        shown(alpha, stint, stintd.port, secret)
        why(owner, alpha, stint, stintd.port, secret)
        kept(stintd, program)
    finally:
        stintd.stop()


main(run)
