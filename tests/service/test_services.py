#!/usr/bin/env python3
"""Services on simulated nodes: kept at their number, rolled, moved off nodes that drain, scaled, removed, found again after
a crash; and what other tenants, odd input and a service that always fails can do.

alpha and beta stand beside each other.
"""

import os
import signal
import sys

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, check, fleet, main, token  # noqa: E402

FOREVER = {"command": ["serve"], "gpus": 1, "sim": {"run": "90000h"}}


def spec(name, job=None, **more):
    return {"name": name, "port": 8000, "health": "none", "job": job or FOREVER, **more}


def get(client, name):
    answer = client.get(f"/v1/services/{name}")
    check(answer.status == 200, "GET %s: %d %s", name, answer.status, answer.text)
    return answer.json


def wait(stintd, client, name, until, sentence):
    """The service, once it is so."""
    seen = {}

    def look():
        seen["s"] = get(client, name)
        return until(seen["s"])

    try:
        stintd.wait(look, sentence, 40)
    except Exception:
        print("last seen:", seen.get("s"))
        raise
    return seen["s"]


def ready(n):
    return lambda s: s["state"] == "ready" and s["ready"] == n and len(s["replicas"]) == n


def gone(stintd, client, name):
    stintd.wait(lambda: client.get(f"/v1/services/{name}").status == 404, f"{name} is gone", 40)


def change(client, name, body, status=200):
    answer = client.call("PATCH", f"/v1/services/{name}", body)
    check(answer.status == status, "PATCH %s %s: %d %s", name, body, answer.status, answer.text)
    return answer


def jobs_of(s):
    return {r["job"] for r in s["replicas"]}


def life(stintd, alpha):
    """Made, scaled, rolled, restarted, removed; its replicas are jobs like any other."""
    made = alpha.make("/v1/services", spec("chat", replicas=2))
    check(made["state"] == "starting" and made["account"] == "alpha", "made: %s", made)
    first = wait(stintd, alpha, "chat", ready(2), "two replicas are ready")
    job = alpha.get("/v1/jobs/" + first["replicas"][0]["job"]).json
    check(job["name"] == "chat-1" and job["account"] == "alpha" and job["user"] == "ann", "its job: %s", job)
    check(job["spec"]["env"]["STINT_SERVICE"] == "chat" and job["spec"]["env"]["STINT_PORT"] == "8000", "variables: %s", job)

    change(alpha, "chat", {"replicas": 3})
    three = wait(stintd, alpha, "chat", ready(3), "a third one came")
    check(jobs_of(first) < jobs_of(three), "the first two stayed")
    change(alpha, "chat", {"replicas": 2})
    two = wait(stintd, alpha, "chat", ready(2), "one went")

    # Another template: all are replaced, and two are ready all the time.
    low = []
    change(alpha, "chat", {"job": {"env": {"MODEL": "b"}}})

    def rolled(s):
        low.append(s["ready"])
        return ready(2)(s) and all(r["revision"] == 2 for r in s["replicas"])

    second = wait(stintd, alpha, "chat", rolled, "it was rolled")
    check(min(low) >= 2, "fewer than two were ready while it was rolled: %s", low)
    check(not jobs_of(second) & jobs_of(two), "an old replica is left")
    check(second["job"]["env"] == {"MODEL": "b"} and second["job"]["command"] == ["serve"], "template: %s", second["job"])
    alpha.make("/v1/services/chat/restart", None)
    third = wait(stintd, alpha, "chat", lambda s: ready(2)(s) and not jobs_of(s) & jobs_of(second), "it was restarted")

    # A replica that somebody cancels is replaced.
    victim = third["replicas"][0]["job"]
    check(alpha.call("DELETE", f"/v1/jobs/{victim}").status in (200, 202, 204), "cancel %s", victim)
    wait(stintd, alpha, "chat", lambda s: s["trouble"] != "", "it is told")
    change(alpha, "chat", {"wait": "1s"})
    fourth = wait(stintd, alpha, "chat", ready(2), "it was replaced")
    check(victim not in jobs_of(fourth) and "cancelled" in fourth["trouble"], "%s", fourth)

    answer = alpha.call("DELETE", "/v1/services/chat")
    check(answer.status == 200 and answer.json["state"] == "removing", "removing: %s", answer.text)
    gone(stintd, alpha, "chat")
    for job in jobs_of(fourth):
        state = alpha.get(f"/v1/jobs/{job}").json["state"]
        check(state == "cancelled", "job %s of the removed service is %s", job, state)


def drains(stintd, alpha):
    """Its node drains: a new replica is ready elsewhere before the old one ends."""
    alpha.make("/v1/services", spec("mover"))
    before = wait(stintd, alpha, "mover", ready(1), "it is ready")["replicas"][0]
    check(stintd.owner.call("PATCH", "/v1/nodes/" + before["node"], {"state": "draining"}).status == 200, "drain")
    seen = []

    def moved(s):
        seen.append(s["ready"])
        return ready(1)(s) and s["replicas"][0]["job"] != before["job"]

    after = wait(stintd, alpha, "mover", moved, "it has moved")["replicas"][0]
    check(after["node"] != before["node"] and min(seen) == 1, "from %s to %s, ready: %s", before["node"], after["node"], seen)
    stintd.owner.call("PATCH", "/v1/nodes/" + before["node"], {"state": "ready"})
    alpha.call("DELETE", "/v1/services/mover")
    gone(stintd, alpha, "mover")


def scales(stintd, alpha, caller):
    """By what it tells, between min and max; a client's token may tell it, and nothing else of it."""
    alpha.make("/v1/services", spec("queue", scale="queue", target=10, min=1, max=3, up="0s", down="0s"))
    wait(stintd, alpha, "queue", ready(1), "it is ready")
    for queue, n in ((95, 3), (15, 2), (0, 1)):
        answer = caller.post("/v1/services/queue/figures", {"queue": queue})
        check(answer.status == 204, "figures: %d %s", answer.status, answer.text)
        wait(stintd, alpha, "queue", ready(n), f"{n} replicas for a queue of {queue}")
    for body in ({}, {"queue": -1}, {"queue": 10 ** 12}, {"latency_ms": "much"}, [], {"queue": 1.5}):
        answer = caller.post("/v1/services/queue/figures", body)
        check(answer.status == 400, "figures %s: %d", body, answer.status)
    for method, path, body in (("GET", "/v1/services", None), ("GET", "/v1/services/queue", None), ("GET", "/v1/jobs", None),
                               ("POST", "/v1/services", spec("x")), ("PATCH", "/v1/services/queue", {"max": 9}),
                               ("POST", "/v1/services/queue/restart", None), ("DELETE", "/v1/services/queue", None),
                               ("POST", "/v1/jobs", FOREVER), ("GET", "/v1/tokens", None)):
        answer = caller.call(method, path, body)
        check(answer.status == 403, "a client's token at %s %s: %d", method, path, answer.status)
    alpha.call("DELETE", "/v1/services/queue")
    gone(stintd, alpha, "queue")


def route(stintd, alpha, beta, caller, viewer):
    """The way in, as far as it goes without anything that listens: who may, and what is said where there is no replica."""
    alpha.make("/v1/services", spec("web", {**FOREVER, "gpus": 8}))
    path = "/v1/services/web/call/some/path?a=b&c"
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"):
        answer = caller.call(method, path, b"{}" if method in ("POST", "PUT", "PATCH") else None)
        check(answer.status == 503 and answer.header("Retry-After") == "1", "%s: %d", method, answer.status)
    check("has no replica that is ready" in caller.get(path).text, "no replica: %s", caller.get(path).text)
    for name in ("web", "alpha%2Fweb", "never"):
        check(beta.get(f"/v1/services/{name}/call/x").status == 404, "beta calls %s", name)
    check(viewer.get(path).status == 403, "a viewer calls")
    check(stintd.client().get(path).status == 401, "nobody calls")
    answer = caller.call("OPTIONS", path)
    check(answer.status == 204 and "POST" in answer.header("Allow"), "OPTIONS: %d", answer.status)
    check(caller.call("TRACE", path).status == 405, "TRACE")
    for tail in ("", "/", "//", "/../../v1/jobs", "/%2e%2e/x", "/" + "a/" * 100, "?", "?%00", "/%ff"):
        answer = caller.get("/v1/services/web/call" + tail)
        check(answer.status in (400, 503), "%s: %d %s", tail, answer.status, answer.text)
    check(caller.get("/v1/services/web/callx").status == 404, "another word")
    change(alpha, "web", {"job": {"gpus": 1}})
    wait(stintd, alpha, "web", ready(1), "it is ready")
    answer = caller.get(path)
    check(answer.status == 409 and "simulated nodes" in answer.text, "on simulated nodes: %s", answer.text)
    # A browser's session is no token here.
    page, own = stintd.client(), {"Stint-Console": "1", "Sec-Fetch-Site": "same-origin"}
    code = alpha.call("POST", "/v1/session/code").json["code"]
    answer = page.call("POST", "/v1/session", {"code": code}, headers=own)
    own["Cookie"] = answer.header("Set-Cookie").split(";")[0]
    check(page.get("/v1/whoami", headers=own).status == 200, "a session opens nothing")
    answer = page.get(path, headers=own)
    check(answer.status == 403 and "session" in answer.text, "a browser's session calls: %d %s", answer.status, answer.text)
    alpha.call("DELETE", "/v1/services/web")
    gone(stintd, alpha, "web")


def idle(stintd, alpha):
    alpha.make("/v1/services", spec("note", idle="1s"))
    s = wait(stintd, alpha, "note", lambda s: s["state"] == "idle" and not s["replicas"], "it ended by itself")
    check(s["target"] == 0, "%s", s)
    alpha.make("/v1/services/note/restart", None)
    wait(stintd, alpha, "note", lambda s: s["replicas"] or s["state"] != "idle", "it is woken")
    alpha.call("DELETE", "/v1/services/note")
    gone(stintd, alpha, "note")


def fails_forever(stintd, alpha):
    """A program that ends at once is not started again and again without a pause."""
    alpha.make("/v1/services", spec("crash", {**FOREVER, "sim": {"run": "1ms", "exit": 3}}, wait="1s", wait_max="1h"))
    s = wait(stintd, alpha, "crash", lambda s: s["state"] == "failing" and "next_start" in s, "it fails")
    check("ended: failed" in s["trouble"], "why: %s", s)
    wait(stintd, alpha, "crash", lambda s: "replica 3 " in s["trouble"], "it is tried again")
    listed = alpha.get("/v1/jobs?name=crash-&state=failed").json["jobs"]
    check(len(listed) <= 4, "%d starts", len(listed))
    alpha.call("DELETE", "/v1/services/crash")
    gone(stintd, alpha, "crash")


def refused(stintd, alpha):
    """What the account may not have, its service may not have either; the sentence is told."""
    alpha.make("/v1/services", spec("large", {**FOREVER, "gpus": 8}, replicas=2))
    s = wait(stintd, alpha, "large", lambda s: "refused" in s["trouble"], "it is refused")
    check("8" in s["trouble"] and not s["replicas"], "%s", s)
    alpha.call("DELETE", "/v1/services/large")
    gone(stintd, alpha, "large")


def bad_input(alpha, beta, owner):
    rows = [
        (spec("x", port=0), "port"), (spec("x", port=70000), "port"), (spec("a b"), "name"), (spec("../x"), "name"),
        (spec("a/b"), "name"), (spec("x" * 60), "name"), (spec("-x"), "name"), (spec("x", replicas=0), "replicas"),
        (spec("x", replicas=1000), "replicas"), (spec("x", health="maybe"), "none, tcp or http"), (spec("x", path="nowhere"), "path"),
        (spec("x", path="/a b"), "path"), (spec("x", path="/a\r\nX: y"), "not seen"), (spec("x", surge=0), "surge"),
        (spec("x", min=2), "min"), (spec("x", scale="queue"), "target"), (spec("x", scale="queue", target=1, min=3, max=2), "min"),
        (spec("x", interval="1ms"), "interval"), (spec("x", colour="red"), "colour"), ({"name": "x", "port": 1}, "job"),
        (spec("x", {**FOREVER, "array": "1-3"}), "array"),
        (spec("x", {**FOREVER, "gpus": "many"}), "gpus"), (spec("x", "serve"), "job"),
        (spec("x", {**FOREVER, "secrets": {"A": {"secret": "none-such"}}}), "none-such"),
    ]
    for body, said in rows:
        answer = alpha.post("/v1/services", body)
        check(400 <= answer.status < 500 and said in answer.text, "%s: %d %s", body, answer.status, answer.text)
    check(alpha.get("/v1/services").json["services"] == [], "bad input left something behind")
    answer = owner.post("/v1/services", spec("x"))
    check(answer.status == 400 and "needs an account" in answer.text, "the owner without an account: %s", answer.text)
    for account in ("beta", "nobody"):
        answer = alpha.post("/v1/services", spec("x", account=account))
        check(answer.status == 404 and f'there is no account "{account}"' == answer.json["detail"], "for %s: %s", account, answer.text)


def others(stintd, alpha, beta, bob, chief):
    """Who else may do what: beta nothing, not even learn that it is there; a colleague looks; an admin may."""
    alpha.make("/v1/services", spec("mine"))
    wait(stintd, alpha, "mine", ready(1), "it is ready")
    tries = (("GET", "", None), ("PATCH", "", {"replicas": 5}), ("POST", "/restart", None), ("DELETE", "", None),
             ("POST", "/figures", {"queue": 1}))
    for method, tail, body in tries:
        said = []
        for name in ("mine", "alpha%2Fmine", "never", "alpha%2Fnever", "nobody%2Fmine", "%2Fmine", "alpha%2F..%2Fmine", "x" * 300):
            answer = beta.call(method, f"/v1/services/{name}{tail}", body)
            check(answer.status == 404, "beta: %s %s%s: %d", method, name, tail, answer.status)
            if name in ("alpha%2Fmine", "alpha%2Fnever"):
                said.append(answer.json["detail"].replace("never", "mine"))
        check(said[0] == said[1], "beta tells them apart: %s", said)
    check(beta.get("/v1/services").json["services"] == [], "beta sees it in a list")
    for method, tail, body in tries[1:4]:
        answer = bob.call(method, "/v1/services/mine" + tail, body)
        check(answer.status == 403 and "belongs to ann" in answer.text, "bob: %s %s: %d %s", method, tail, answer.status, answer.text)
    check("env" not in get(bob, "mine")["job"] or all(v is None for v in get(bob, "mine")["job"]["env"].values()), "bob reads variables")
    answer = beta.post("/v1/services", spec("mine"))
    check(answer.status == 201, "beta has one of the same name: %s", answer.text)
    check(get(stintd.owner, "alpha%2Fmine")["account"] == "alpha", "the owner names it in full")
    answer = stintd.owner.get("/v1/services/mine")
    check(answer.status == 404 and "say ACCOUNT/mine" in answer.text, "two of a name: %s", answer.text)
    beta.call("DELETE", "/v1/services/mine")
    change(chief, "mine", {"replicas": 2})
    check(alpha.post("/v1/services", spec("mine")).status == 409, "twice")
    etag = alpha.get("/v1/services/mine").header("ETag").strip('W/"').split("-")[0]
    change(alpha, "mine", {"drain": "1s"})
    answer = alpha.call("PATCH", "/v1/services/mine", {"drain": "2s"}, headers={"If-Match": f'"{etag}"'})
    check(answer.status == 412, "an old version: %d %s", answer.status, answer.text)
    for body in ({"name": "other"}, {"account": "beta"}, {"job": {"user": "root"}}, {"job": {"account": "beta"}}, {"job": 1}, [],
                 {"replicas": "all"}, {"job": {"array": "1-3"}}, {"port": None}):
        answer = alpha.call("PATCH", "/v1/services/mine", body)
        check(answer.status == 400, "%s: %d %s", body, answer.status, answer.text)
    answer = stintd.owner.call("DELETE", "/v1/accounts/alpha")
    check(answer.status in (403, 409), "an account with a service is removed: %d", answer.status)


def crash(stintd, program, alpha_token):
    """stintd is killed: the same replicas afterwards, none twice; and a key that was renewed opens its template."""
    alpha = stintd.client(alpha_token)
    before = wait(stintd, alpha, "mine", ready(2), "both are ready")
    check(stintd.owner.call("POST", "/v1/admin/rotate-secrets-key").status == 200, "rotate")
    stintd.process.send_signal(signal.SIGKILL)
    stintd.process.wait()
    stintd.process.send_signal = lambda *_: None
    stintd.process.wait = lambda *_: 0
    stintd.again(program)
    alpha = stintd.client(alpha_token)
    after = wait(stintd, alpha, "mine", ready(2), "both are there again")
    check(jobs_of(before) == jobs_of(after), "other replicas: %s, %s", jobs_of(before), jobs_of(after))
    change(alpha, "mine", {"replicas": 3})
    three = wait(stintd, alpha, "mine", ready(3), "a third one starts from the template")
    check(jobs_of(before) < jobs_of(three), "it is one more")
    running = alpha.get("/v1/jobs?name=mine-&state=running").json["jobs"]
    check({j["id"] for j in running} == jobs_of(three), "jobs that are nobody's: %s", running)
    alpha.call("DELETE", "/v1/services/mine")
    gone(stintd, alpha, "mine")
    return alpha


def run(program):
    stintd = Stintd(program)
    owner = stintd.owner
    fleet(owner, nodes=3, gpus=4)
    for name in ("alpha", "beta"):
        owner.make("/v1/accounts", {"name": name})
    answer = owner.call("PATCH", "/v1/accounts/alpha", {"max": {"h100": 6}}, {"If-Match": "*"})
    check(answer.status == 200, "a limit: %s", answer.text)
    ann = token(owner, "alpha", "ann", "member")["token"]
    alpha, bob = stintd.client(ann), stintd.client(token(owner, "alpha", "bob", "member")["token"])
    beta = stintd.client(token(owner, "beta", "bea", "member")["token"])
    chief = stintd.client(token(owner, "alpha", "cher", "admin")["token"])
    caller = stintd.client(token(owner, "alpha", "app", "caller")["token"])
    bad_input(alpha, beta, owner)
    life(stintd, alpha)
    drains(stintd, alpha)
    scales(stintd, alpha, caller)
    route(stintd, alpha, beta, caller, stintd.client(token(owner, "alpha", "vera", "viewer")["token"]))
    idle(stintd, alpha)
    fails_forever(stintd, alpha)
    refused(stintd, alpha)
    others(stintd, alpha, beta, bob, chief)
    crash(stintd, program, ann)
    stintd.stop()


if __name__ == "__main__":
    main(run)
