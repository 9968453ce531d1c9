"""The map of all devices, jobs by state, and lists with the fields that are asked for.

The map and the events that follow give the map: a client that draws it need not ask again. Everybody sees its own subtree and
nothing of others. It is small.
"""

import gzip
import json
import random
import time

from harness import Client, Stintd, Stream, check, fleet, main, token


def devices(client):
    answer = client.get("/v1/devices")
    check(answer.status == 200, "%s", answer.text)
    doc = answer.json
    at, rows = 0, {}
    sizes = [(gpu, n) for gpu, n, many in doc["runs"] for _ in range(many)]
    check(len(sizes) == len(doc["nodes"]), "runs and nodes: %d, %d", len(sizes), len(doc["nodes"]))
    for name, (_, n) in zip(doc["nodes"], sizes):
        rows[name] = doc["devices"][at:at + n]
        at += n
    check(at == len(doc["devices"]), "%d letters are left", len(doc["devices"]) - at)
    return rows


def follow(rows, events, known):
    """Events of jobs, applied to a map: which job is on which device."""
    for name, kind, data in events:
        if name in known or not data:
            continue
        known.add(name)
        data = json.loads(data)
        if kind not in ("start", "resume", "pause", "requeue", "end") or "grants" not in data:
            continue
        for grant in data["grants"]:
            letters = list(rows[grant["node"]])
            for d in grant["gpus"]:
                letters[d] = "w" if kind in ("start", "resume") else "."
            rows[grant["node"]] = "".join(letters)
    return rows


def wait(until, what):
    end = time.monotonic() + 60
    while not until():
        check(time.monotonic() < end, "%s", what)
        time.sleep(0.05)


def deltas(clients, owner, port):
    """Random jobs, some of which have to yield: the first map and all events are the last map."""
    rng = random.Random(3)
    watched = {"": owner, **clients}
    streams = {a: Stream(port, c.token) for a, c in watched.items()}
    for stream in streams.values():
        check(stream.wait(lambda s: b"200 OK" in s.bytes()), "a stream does not open")
    maps = {a: devices(c) for a, c in watched.items()}
    made = []
    for i in range(60):
        account = rng.choice(sorted(clients))
        made.append((account, clients[account].make("/v1/jobs", {
            "name": f"j{i}", "gpus": rng.choice([1, 2, 4, 8]), "limit": "1h",
            "on_preempt": rng.choice(["requeue", "checkpoint"]),
            "sim": {"run": "1h" if i % 10 == 9 else f"0.{rng.randrange(1, 9)}s"}})["id"]))
    wait(lambda: all(c.get("/v1/counts").json["states"]["pending"]["jobs"] == 0 for c in clients.values()) or
         sum(c.get("/v1/counts").json["states"]["running"]["jobs"] for c in clients.values()) <= 6, "jobs do not run")
    known = {a: set() for a in watched}

    def agrees():
        for a, stream in streams.items():
            follow(maps[a], stream.events(), known[a])
        return all(maps[a] == devices(c) for a, c in watched.items())

    wait(agrees, "the events do not lead to the map")
    seen = "".join(maps[""].values())
    check("w" in seen, "nothing runs")
    for a, b in (("vision", "lab"), ("lab", "vision")):
        for name, letters in maps[a].items():
            for mine, theirs, all_ in zip(letters, maps[b][name], maps[""][name]):
                check(not (mine == "w" and theirs == "w") and (mine == "." or all_ == "w"), "%s sees too much of %s", a, name)
    for stream in streams.values():
        stream.close()
    return made


def counts(clients, owner):
    def states(client):
        return {state: n["jobs"] for state, n in client.get("/v1/counts").json["states"].items()}

    def add_up():
        """Jobs go on starting and ending between the questions; once nothing moves they add up."""
        sums, before = {}, states(owner)
        for a, c in clients.items():
            check(c.get("/v1/counts").json["account"] == a, "whose counts: %s", a)
            for state, n in states(c).items():
                sums[state] = sums.get(state, 0) + n
        return before == sums and states(owner) == before

    wait(add_up, "counts do not add up")
    wait(lambda: owner.get("/v1/counts?account=lab").json == clients["lab"].get("/v1/counts").json, "the owner's counts of the lab")
    for name in ("lab", "nobody", "x" * 300, "%00", "../lab"):
        answer = clients["vision"].get("/v1/counts?account=" + name)
        check(answer.status in (400, 404) and "pending" not in answer.text, "counts of %s: %d %s", name[:20], answer.status, answer.text)


def fields(client):
    full = client.get("/v1/jobs?limit=3").json["jobs"]
    some = client.get("/v1/jobs?limit=3&fields=id,state,gpus").json["jobs"]
    check(some == [{k: j[k] for k in ("id", "state", "gpus")} for j in full], "fields: %s", some)
    for key in full[0]:
        if key != "running_since":
            check(key in client.get("/v1/jobs?limit=1&fields=" + key).text or key == "array", "no field %s", key)
    for bad in ("stat", "id,", ",", "", "id,secret", "*", "id;state", "sealed", "x" * 3000, ",".join(["id"] * 500) + ",x", "%00", "id%2C%27--"):
        answer = client.get("/v1/jobs?fields=" + bad)
        check(answer.status == 400 and '"jobs"' not in answer.text, "fields=%s: %d %s", bad[:40], answer.status, answer.text[:200])
    check("did you mean state" in client.get("/v1/jobs?fields=stat").text, "nothing is suggested")


def nodes(owner, client):
    owner.call("PATCH", "/v1/nodes/n00", {"state": "draining"})
    owner.call("PATCH", "/v1/nodes/n01", {"state": "failed"})
    for c in (owner, client):
        rows = devices(c)
        check(set(rows["n00"]) <= set("-W"), "draining: %s", rows["n00"])
        check(rows["n01"] == "X" * 8, "failed: %s", rows["n01"])
    owner.call("PATCH", "/v1/nodes/n00", {"state": "ready"})
    owner.call("PATCH", "/v1/nodes/n01", {"state": "ready"})


def small(owner):
    """At the worst, which is chance, a device takes three bits; 50,000 of them and 6,250 names are below 60 kB."""
    rng = random.Random(1)
    doc = {"runs": [["h100", 8, 6250]], "nodes": [f"gpu-{i:05d}" for i in range(6250)],
           "devices": "".join(rng.choice("..wwwwmpt-X") for _ in range(50000))}
    check(len(gzip.compress(json.dumps(doc, separators=(",", ":")).encode(), 6)) <= 60000, "the form itself is too large")
    answer = owner.get("/v1/devices", headers={"Accept-Encoding": "gzip"})
    body = gzip.decompress(answer.body) if answer.header("Content-Encoding") == "gzip" else answer.body
    check(set(json.loads(body)) == {"runs", "nodes", "devices"}, "another form: %s", body[:200])


def run(stintd):
    s = Stintd(stintd, config="rate: 1000000\npolicy: {notice: 0.1s, grace: 0.3s, min_run: 0.2s, cooldown: 0.2s}\n")
    try:
        fleet(s.owner, 3, 8)
        s.owner.make("/v1/accounts", {"name": "vision", "guarantee": {"gpu": 16}})
        s.owner.make("/v1/accounts", {"name": "lab"})
        clients = {a: Client(s.port, token(s.owner, a, "ann", "member")["token"]) for a in ("vision", "lab")}
        deltas(clients, s.owner, s.port)
        counts(clients, s.owner)
        fields(clients["vision"])
        nodes(s.owner, clients["lab"])
        small(s.owner)
        for client in clients.values():
            client.close()
        s.stop()
    finally:
        if s.alive():
            s.process.kill()


main(run)
