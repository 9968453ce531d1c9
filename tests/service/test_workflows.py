#!/usr/bin/env python3
"""Jobs that wait for others, holds, throttles and retries over the API, and what hostile tenants try with them.

alpha and beta stand beside each other: a job of one that the other names is for it one that was never there.
"""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, check, fleet, main, token  # noqa: E402

LONG = {"command": ["true"], "gpus": 1, "limit": "10h", "sim": {"run": "9h"}}
SHORT = {"command": ["true"], "gpus": 1, "limit": "1h", "sim": {"run": "0.05s"}}
FAILS = {**SHORT, "sim": {"run": "0.05s", "exit": 3}}


def made(client, body):
    answer = client.post("/v1/jobs", body)
    check(answer.status == 201, "%s: %d %s", body, answer.status, answer.text)
    return answer.json


def refused(client, body, status, said):
    answer = client.post("/v1/jobs", body)
    check(answer.status == status and said in answer.text, "%s: %d %s", body, answer.status, answer.text)
    return answer.json["detail"]


def job(client, id):
    return client.get("/v1/jobs/%s" % id).json


def until(stintd, client, id, state):
    stintd.wait(lambda: job(client, id)["state"] == state, "job %s is never %s" % (id, state))
    return job(client, id)


def why(client, id):
    return client.get("/v1/jobs/%s/why" % id).json["reasons"]


def chains(stintd, alpha):
    """A pipeline: what is done lets the next one start; what fails ends who waits for it, and lets the mender start."""
    first = made(alpha, {**LONG, "name": "first"})["id"]
    ok = made(alpha, {**SHORT, "after": [{"job": first, "end": "ok"}]})["id"]
    fail = made(alpha, {**SHORT, "after": {"job": first, "end": "fail"}})["id"]
    kept = made(alpha, {**SHORT, "after": {"job": first, "end": "ok"}, "if_never": "keep"})["id"]
    behind = made(alpha, {**SHORT, "after": ok})["id"]
    reasons = why(alpha, ok)
    check([r["code"] for r in reasons] == ["after"] and "it waits for first to be done" in reasons[0]["text"], "%s", reasons)
    alpha.call("DELETE", "/v1/jobs/%s" % first)
    over = until(stintd, alpha, ok, "cancelled")
    check(over["reason"] == "%s did not end as this job had to wait for it to" % first, "%s", over)
    until(stintd, alpha, fail, "done")
    until(stintd, alpha, behind, "done")
    check(job(alpha, kept)["state"] == "pending" and why(alpha, kept)[0]["code"] == "never", "%s", why(alpha, kept))
    alpha.call("DELETE", "/v1/jobs/%s" % kept)
    # What is over by now is settled at once.
    until(stintd, alpha, made(alpha, {**SHORT, "after": [first, {"job": first, "end": "fail"}]})["id"], "done")
    refused(alpha, {**SHORT, "after": {"job": first, "end": "ok"}}, 409, "has ended (cancelled)")
    refused(alpha, {**SHORT, "after": {"job": fail, "end": "fail"}}, 409, "has ended (done)")


def bad_input(alpha):
    one = made(alpha, LONG)["id"]
    for more, status, said in (
        ({"after": "nonsense"}, 404, 'there is no job \\"nonsense\\"'),
        ({"after": {"job": one, "end": "well"}}, 400, "none of any, ok or fail"),
        ({"after": {"jobs": one}}, 400, "jobs"),
        ({"after": {"end": "ok"}}, 400, "job"),
        ({"after": {"job": one, "each": True}}, 400, "each is for arrays"),
        ({"after": {"job": one, "each": True, "only": True}}, 400, "do not go together"),
        ({"after": [one] * 65}, 403, "at most 64"),
        ({"if_never": "keep"}, 400, "if_never is for jobs that wait"),
        ({"throttle": 2}, 400, "a throttle is for arrays"),
        ({"retries": 101}, 400, "retries"),
        ({"retry_after": "5m"}, 400, "say how many"),
        ({"retries": 2, "retry_after": "10ms"}, 400, "at least 1s"),
        ({"retries": 2, "retry_after": "2h", "retry_max": "1h"}, 400, "shorter than retry_after"),
        ({"retries": 2, "retry_on": ["timeout"]}, 400, "retry_on has exit in it"),
        ({"retries": 2, "retry_on": ["cancel"]}, 400, "cancel"),
        ({"comment": "two\nlines"}, 400, "a character that is not seen"),
        ({"array": "1-10%x"}, 400, "behind %"),
        ({"by": "+2h", "hard": True, "after": one}, 400, "promised deadline"),
    ):
        refused(alpha, {**LONG, **more}, status, said)
    for body, said in (({}, "say one thing"), ({"hold": True, "priority": 1}, "say one thing"), ({"hold": "maybe"}, "hold")):
        answer = alpha.call("PATCH", "/v1/jobs/%s" % one, body)
        check(answer.status == 400 and said in answer.text, "%s: %s", body, answer.text)
    alpha.call("DELETE", "/v1/jobs/%s" % one)


def strangers(owner, alpha, beta):
    """No oracle: another tenant's job, one that was never there, and nonsense are told in the same words."""
    theirs = made(alpha, LONG)["id"]
    array = made(alpha, {**LONG, "array": "1-3"})["array"]
    never = "j" + "".join("z" if c != "z" else "y" for c in theirs[1:])
    said = []
    for id in (theirs, array, never):
        said.append(refused(beta, {**SHORT, "after": id}, 404, "there is no job").replace(id, "ID"))
        said.append(refused(beta, {**SHORT, "after": {"job": id, "end": "fail", "only": True}}, 404, "there is no job").replace(id, "ID"))
    check(len(set(said)) == 1, "beta tells them apart: %s", said)
    said = [refused(beta, {**SHORT, "array": "1-3", "after": {"job": id, "each": True}}, 404, "there is no array").replace(id, "ID")
            for id in (theirs, array, never)]
    check(len(set(said)) == 1, "beta tells them apart: %s", said)
    for method, path, body in (("PATCH", "/v1/jobs/%s", {"hold": True}), ("PATCH", "/v1/jobs/%s", {"hold": False}),
                               ("PATCH", "/v1/arrays/%s", {"throttle": 1})):
        said = [(a.status, a.text.replace(id, "ID").split('"instance"')[0]) for id in (theirs, array, never)
                for a in [beta.call(method, path % id, body)]]
        check(said[0][0] == 404, "%s: %s", path, said)
    # Who stands above sees both, and lets beta's job wait for alpha's; beta reads no name of it.
    mixed = made(owner, {**SHORT, "account": "beta", "user": "bob", "after": theirs})["id"]
    text = why(beta, mixed)[0]["text"]
    check("a job of another account" in text, "beta reads: %s", text)
    owner.call("DELETE", "/v1/jobs/%s" % mixed)
    owner.call("DELETE", "/v1/jobs/%s" % theirs)
    owner.call("DELETE", "/v1/arrays/%s" % array)


def holds(stintd, owner, chief, alpha):
    """What a user holds he releases; what an admin holds the user does not, nor an admin further down."""
    id = made(alpha, {**SHORT, "hold": True})["id"]
    check(job(alpha, id)["on_hold"] == "user" and why(alpha, id)[0]["code"] == "on_hold", "%s", job(alpha, id))
    check(alpha.call("PATCH", "/v1/jobs/%s" % id, {"hold": False}).status == 200, "released")
    until(stintd, alpha, id, "done")
    for holder, weaker in ((chief, [alpha]), (owner, [alpha, chief])):
        id = made(alpha, {**SHORT, "hold": True})["id"]
        check(holder.call("PATCH", "/v1/jobs/%s" % id, {"hold": True}).json["on_hold"] == "admin", "held by an admin")
        for client in weaker:
            answer = client.call("PATCH", "/v1/jobs/%s" % id, {"hold": False})
            check(answer.status == 403 and "ask them to release it" in answer.text, "%s", answer.text)
        check(holder.call("PATCH", "/v1/jobs/%s" % id, {"hold": False}).status == 200, "released")
        until(stintd, alpha, id, "done")
    runs = made(alpha, LONG)["id"]
    answer = alpha.call("PATCH", "/v1/jobs/%s" % runs, {"hold": True})
    check(answer.status == 409 and "only a job that waits" in answer.text, "%s", answer.text)
    answer = alpha.call("PATCH", "/v1/jobs/%s" % runs, {"hold": False})
    check(answer.status == 409 and "is not on hold" in answer.text, "%s", answer.text)
    alpha.call("DELETE", "/v1/jobs/%s" % runs)


def arrays(stintd, alpha):
    """So many at a time; and one for one, the whole of it, or its first job alone."""
    array = made(alpha, {**LONG, "array": "1-6%2"})
    ids = [j["id"] for j in array["jobs"]]
    states = lambda: alpha.get("/v1/arrays/%s" % array["array"]).json["states"]
    check(states() == {"pending": 4, "running": 2}, "%s", states())
    check(why(alpha, ids[2])[0]["code"] == "throttle", "%s", why(alpha, ids[2]))
    check(alpha.call("PATCH", "/v1/arrays/%s" % array["array"], {"throttle": 4}).json["throttle"] == 4, "changed")
    stintd.wait(lambda: states().get("running") == 4, "four never run")
    check(alpha.call("PATCH", "/v1/arrays/%s" % array["array"], {"throttle": 1}).status == 200, "changed")
    check(states()["running"] == 4, "a lower throttle ended somebody: %s", states())
    for bad, said in (({"throttle": 0}, "throttle"), ({}, "say how many"), ({"throttle": "many"}, "throttle")):
        answer = alpha.call("PATCH", "/v1/arrays/%s" % array["array"], bad)
        check(answer.status == 400 and said in answer.text, "%s: %s", bad, answer.text)
    each = made(alpha, {**SHORT, "array": "2-4", "after": {"job": array["array"], "each": True}})
    whole = made(alpha, {**SHORT, "after": array["array"]})["id"]
    only = made(alpha, {**SHORT, "after": {"job": array["array"], "only": True}})["id"]
    refused(alpha, {**SHORT, "array": "5-9", "after": {"job": array["array"], "each": True}}, 400, "has no job 9")
    alpha.call("DELETE", "/v1/jobs/%s" % ids[0])
    until(stintd, alpha, only, "done")
    alpha.call("DELETE", "/v1/jobs/%s" % ids[2])
    until(stintd, alpha, each["jobs"][1]["id"], "done")
    check(job(alpha, each["jobs"][0]["id"])["state"] == "pending", "the one beside it waits")
    check("all jobs of an array" in why(alpha, whole)[0]["text"], "%s", why(alpha, whole))
    refused(alpha, {**SHORT, "after": {"job": array["array"], "end": "ok"}}, 409, "can never start")
    alpha.call("DELETE", "/v1/arrays/%s" % array["array"])
    until(stintd, alpha, whole, "done")
    answer = alpha.call("PATCH", "/v1/arrays/%s" % array["array"], {"throttle": 1})
    check(answer.status == 409 and "is over" in answer.text, "%s", answer.text)
    refused(alpha, {**SHORT, "after": {"job": array["array"], "end": "ok"}}, 409, "has ended")
    until(stintd, alpha, made(alpha, {**SHORT, "after": {"job": array["array"], "end": "fail"}})["id"], "done")


def retries(stintd, alpha):
    """So many tries and no more; who waits for it waits for the last; a cancel ends it in between."""
    id = made(alpha, {**FAILS, "retries": 2, "retry_after": "1s", "retry_max": "1s"})["id"]
    then = made(alpha, {**SHORT, "after": {"job": id, "end": "fail"}})["id"]
    stintd.wait(lambda: job(alpha, id).get("retries_used", 0) == 1, "never tried again")
    check(job(alpha, then)["state"] == "pending", "it waits for the last try")
    over = until(stintd, alpha, id, "failed")
    check(over["retries_used"] == 2 and over["placement"]["stay"] == 3, "%s", over)
    until(stintd, alpha, then, "done")
    id = made(alpha, {**FAILS, "retries": 100, "retry_after": "1h"})["id"]
    stintd.wait(lambda: "retry_at" in job(alpha, id), "never failed")
    check(why(alpha, id)[0]["code"] == "retry" and "retry 1 of 100" in why(alpha, id)[0]["text"], "%s", why(alpha, id))
    alpha.call("DELETE", "/v1/jobs/%s" % id)
    until(stintd, alpha, id, "cancelled")


def labels(alpha):
    ids = [made(alpha, {**LONG, "hold": True, "comment": "for the paper", "labels": more})["id"]
           for more in ({"run": "a"}, {"run": "a", "n": 1}, {"run": "b"})]
    find = lambda query: sorted(j["id"] for j in alpha.get("/v1/jobs?state=pending" + query).json["jobs"])
    check(find("&label=run%3Da") == sorted(ids[:2]), "%s", find("&label=run%3Da"))
    check(find("&label=run%3Da&label=n%3D1") == [ids[1]], "%s", find("&label=run%3Da&label=n%3D1"))
    check(find("&label=run") == sorted(ids) and find("&label=run%3Dc") == [], "%s", find("&label=run"))
    check(len(alpha.get("/v1/jobs?label=run&limit=2").json["jobs"]) == 2, "pages")
    check(job(alpha, ids[0])["spec"]["comment"] == "for the paper", "%s", job(alpha, ids[0]))
    for id in ids:
        alpha.call("DELETE", "/v1/jobs/%s" % id)


def crowds(stintd, alpha, beta):
    """The largest arrays wait for each other one for one; beta's submits go through meanwhile, and a break ends them all."""
    n = 3000
    base = made(alpha, {**LONG, "array": {"count": n, "throttle": 1}})["array"]
    made(alpha, {**SHORT, "array": {"count": n}, "after": {"job": base, "each": True, "end": "ok"}})
    began = time.monotonic()
    until(stintd, beta, made(beta, SHORT)["id"], "done")
    alpha.call("DELETE", "/v1/arrays/%s" % base)
    until(stintd, beta, made(beta, SHORT)["id"], "done")
    stintd.wait(lambda: not alpha.get("/v1/jobs?state=pending").json["jobs"], "some of them wait for ever")
    return time.monotonic() - began


def outlives_a_kill(stintd, program, alpha):
    """Killed and started again it goes on: who waits, who holds, how often it was tried."""
    first = made(alpha, LONG)["id"]
    then = made(alpha, {**SHORT, "after": {"job": first, "end": "fail"}})["id"]
    held = made(alpha, {**SHORT, "hold": True})["id"]
    tried = made(alpha, {**FAILS, "retries": 9, "retry_after": "1h"})["id"]
    array = made(alpha, {**LONG, "array": "1-3%1"})["array"]
    stintd.wait(lambda: "retry_at" in job(alpha, tried), "never failed")
    stintd.process.kill()
    stintd.process.wait(30)
    stintd.owner.close()
    with open(stintd.log, "w") as log:
        stintd.process = subprocess.Popen([program, "--config", os.path.join(stintd.dir, "config.yaml"), "--data",
                                           os.path.join(stintd.dir, "data")], stdout=subprocess.DEVNULL, stderr=log)
    stintd.port = stintd._port()
    stintd.owner = stintd.client(stintd.owner_token)
    alpha = stintd.client(alpha.token)
    check(job(alpha, held)["on_hold"] == "user" and job(alpha, tried)["retries_used"] == 1, "%s", job(alpha, tried))
    check(alpha.get("/v1/arrays/%s" % array).json["states"] == {"running": 1, "pending": 2}, "the array")
    alpha.call("DELETE", "/v1/jobs/%s" % first)
    until(stintd, alpha, then, "done")
    alpha.call("PATCH", "/v1/jobs/%s" % held, {"hold": False})
    until(stintd, alpha, held, "done")


def run(program):
    stintd = Stintd(program, config="rate: 1000000\npolicy: {min_run: 0s}\n")
    try:
        owner = stintd.owner
        fleet(owner)
        for name in ("alpha", "beta"):
            owner.make("/v1/accounts", {"name": name})
        alpha, chief, beta = (stintd.client(token(owner, account, user, role)["token"]) for account, user, role in
                              (("alpha", "ann", "member"), ("alpha", "max", "admin"), ("beta", "bob", "member")))
        chains(stintd, alpha)
        bad_input(alpha)
        strangers(owner, alpha, beta)
        holds(stintd, owner, chief, alpha)
        arrays(stintd, alpha)
        retries(stintd, alpha)
        labels(alpha)
        print("the crowds took %.1f s" % crowds(stintd, alpha, beta))
        outlives_a_kill(stintd, program, alpha)
    finally:
        stintd.stop()


main(run)
