#!/usr/bin/env python3
"""stintd is killed at random moments under a mixed load; nothing acknowledged may be lost.

  stintd_crash.py STINTD [CHECKER] [KILLS] [SEED]

Four clients submit (alone and in batches, with idempotency keys), cancel, change priorities and
accounts and make tokens while the process is killed with SIGKILL again and again. After each
restart every acknowledged change is looked for; what was not acknowledged is sent again with its
key and must be there once. At the end the store is checked, the audit log is held against what was
acknowledged, and CHECKER (the invariants of the core, from the store) is run.
"""
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

CLIENTS = 4


class Stintd:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.config = os.path.join(folder, "config")
        with open(self.config, "w") as f:
            f.write("listen: 127.0.0.1:0\nrate: 1000000\nsnapshot_rows: 64\n")
        self.process = self.port = None

    def start(self):
        log = os.path.join(self.folder, "log")
        with open(log, "w") as f:
            self.process = subprocess.Popen(
                [self.program, "--config", self.config, "--data", self.folder], stderr=f)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with open(log) as f:
                text = f.read()
            if "event=listening" in text and text.endswith("\n"):
                line = [l for l in text.splitlines() if "event=listening" in l][0]
                self.port = int(line.split("port=")[1].split()[0])
                return
            if self.process.poll() is not None:
                raise SystemExit("stintd did not start: " + text)
            time.sleep(0.002)
        raise SystemExit("stintd does not get ready")

    def kill(self, sig=signal.SIGKILL):
        self.process.send_signal(sig)
        self.process.wait()


class Client:
    """One thread's connection; answers None when the server went away in between."""

    def __init__(self, server, token):
        self.server, self.token, self.link = server, token, None

    def ask(self, method, path, body=None, key=None):
        headers = {"Authorization": "Bearer " + self.token, "If-Match": "*"}
        if body is not None:
            body = json.dumps(body)
            headers["Content-Type"] = "application/json"
        if key:
            headers["Idempotency-Key"] = key
        try:
            if self.link is None:
                self.link = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
            self.link.request(method, path, body, headers)
            answer = self.link.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        except (OSError, http.client.HTTPException, ValueError):
            if self.link:
                self.link.close()
            self.link = None
            return None


class World:
    """What was acknowledged."""

    def __init__(self):
        self.lock = threading.Lock()
        self.jobs = {}        # id -> what must hold of it
        self.keys = {}        # idempotency key -> ids
        self.tokens = []      # texts
        self.weights = {}     # account -> (acknowledged, perhaps)
        self.audit = {}       # verb -> acknowledged changes at least
        self.unsure = []      # (path, body, key) without an answer

    def count(self, verb):
        self.audit[verb] = self.audit.get(verb, 0) + 1


def job(rng, n):
    run = rng.choice(["50ms", "200ms", "1h"])
    return {"name": "j%d" % n, "account": "team%d" % rng.randrange(3), "user": "ann", "gpus": 1,
            "limit": "2h", "sim": {"run": run, "exit": rng.choice([0, 0, 3])}}


def ids_of(answer):
    return [j.get("id") for j in answer["jobs"]] if "jobs" in answer else [answer["id"]]


class Worker(threading.Thread):
    def __init__(self, server, world, token, seed, number):
        super().__init__(daemon=True)
        self.client, self.world = Client(server, token), world
        self.rng, self.number, self.n = random.Random(seed), number, 0
        self.go, self.idle, self.over = threading.Event(), threading.Event(), False
        self.faults = []

    def run(self):
        while not self.over:
            if not self.go.is_set():
                self.client.link = None
                self.idle.set()
                self.go.wait()
                self.idle.clear()
                continue
            self.act()

    def act(self):
        dice = self.rng.random()
        self.n += 1
        if dice < 0.55:
            self.submit("/v1/jobs", job(self.rng, self.n))
        elif dice < 0.65:
            self.submit("/v1/jobs/batch", {"jobs": [job(self.rng, self.n) for _ in range(20)]})
        elif dice < 0.80:
            self.cancel()
        elif dice < 0.90:
            self.priority()
        elif dice < 0.97:
            self.account()
        else:
            self.token()

    def submit(self, path, body):
        key = "k%d-%d" % (self.number, self.n)
        answer = self.client.ask("POST", path, body, key)
        with self.world.lock:
            settle_submit(self.world, (path, body, key), answer, self.faults)

    def some_job(self):
        with self.world.lock:
            names = list(self.world.jobs)[-200:]
        return self.rng.choice(names) if names else None

    def cancel(self):
        name = self.some_job()
        if not name:
            return
        answer = self.client.ask("DELETE", "/v1/jobs/" + name)
        with self.world.lock:
            if answer and answer[0] == 200:
                self.world.count("job.cancel")
                if answer[1]["state"] == "cancelled":
                    self.world.jobs[name]["end"] = ("cancelled", None)
            elif answer and answer[0] not in (409, 503):
                self.faults.append("cancel of %s: %s" % (name, answer))

    def priority(self):
        name, value = self.some_job(), self.rng.randrange(5)
        if not name:
            return
        with self.world.lock:
            self.world.jobs[name].setdefault("prio", set()).add(value)
        answer = self.client.ask("PATCH", "/v1/jobs/" + name, {"priority": value})
        with self.world.lock:
            if answer and answer[0] == 200:
                self.world.count("job.priority")

    def account(self):
        name, weight = "team%d" % self.number, self.n % 9 + 1
        before = self.world.weights.get(name, {1})
        self.world.weights[name] = before | {weight}
        answer = self.client.ask("PATCH", "/v1/accounts/" + name, {"weight": weight})
        if answer and answer[0] == 200:
            with self.world.lock:
                self.world.count("account.change")
            self.world.weights[name] = {weight}
        elif answer and answer[0] != 503:
            self.faults.append("account: %s" % (answer,))

    def token(self):
        answer = self.client.ask("POST", "/v1/tokens",
                                 {"account": "team0", "user": "ann", "role": "viewer"})
        with self.world.lock:
            if answer and answer[0] == 201:
                self.world.count("token.create")
                self.world.tokens.append(answer[1]["token"])


def settle_submit(world, request, answer, faults):
    path, body, key = request
    if answer is None or answer[0] == 503:
        world.unsure.append(request)
    elif answer[0] not in (200, 201):
        faults.append("submit: %s" % (answer,))
    else:
        ids = ids_of(answer[1])
        if key in world.keys and world.keys[key] != ids:
            faults.append("key %s gives %s, before %s" % (key, ids, world.keys[key]))
        world.keys[key] = ids
        world.count("job.submit")
        specs = body["jobs"] if "jobs" in body else [body]
        for name, spec in zip(ids, specs):
            world.jobs.setdefault(name, {"spec": spec})


def check_jobs(world, client, names, faults):
    for name in names:
        known = world.jobs[name]
        answer = client.ask("GET", "/v1/jobs/" + name)
        if not answer or answer[0] != 200:
            faults.append("job %s was acknowledged and is gone: %s" % (name, answer))
            continue
        row, spec = answer[1], known["spec"]
        if row["name"] != spec["name"] or row["account"] != spec["account"]:
            faults.append("job %s is another now: %s" % (name, row))
        if row["priority"] not in known.get("prio", set()) | {0}:
            faults.append("job %s has priority %s" % (name, row["priority"]))
        end = known.get("end")
        now = (row["state"], row["exit_code"])
        if end and (now[0] != end[0] or (end[1] is not None and now[1] != end[1])):
            faults.append("job %s had ended %s and is %s now" % (name, end, now))
        if row["state"] in ("done", "failed"):
            if row["exit_code"] != spec["sim"]["exit"]:
                faults.append("job %s: exit code %s" % (name, row["exit_code"]))
            known["end"] = now
        elif row["state"] == "cancelled":
            known["end"] = now


def after_restart(world, client, rng, faults, everything=False):
    unsure, world.unsure = world.unsure, []
    for request in unsure:
        for _ in range(2):  # twice: the same answer
            path, body, key = request
            settle_submit(world, request, client.ask("POST", path, body, key), faults)
    names = list(world.jobs)
    if not everything:
        names = names[-30:] + rng.sample(names, min(20, len(names)))
    check_jobs(world, client, names, faults)
    for text in world.tokens if everything else world.tokens[-2:]:
        if Client(client.server, text).ask("GET", "/v1/whoami")[0] != 200:
            faults.append("a token was acknowledged and is not known")
    for name, weights in world.weights.items():
        row = client.ask("GET", "/v1/accounts/" + name)[1]
        if row["weight"] not in weights:
            faults.append("%s has weight %s, not one of %s" % (name, row["weight"], weights))


def count_all(world, client, faults):
    """No job is there twice: each that the store has is one that was acknowledged."""
    seen, cursor = [], ""
    while True:
        page = client.ask("GET", "/v1/jobs?limit=1000" + cursor)[1]
        seen += [j["id"] for j in page["jobs"]]
        if "next" not in page:
            break
        cursor = "&cursor=" + page["next"]
    if sorted(seen) != sorted(world.jobs):
        faults.append("%d jobs are in the store, %d were acknowledged" %
                      (len(seen), len(world.jobs)))


def check_audit(world, client, faults):
    found, cursor = {}, ""
    while True:
        page = client.ask("GET", "/v1/audit?limit=1000" + cursor)[1]
        rows = page["rows"]
        for row in rows:
            # A batch has a row for each of its accounts, with how many jobs that got.
            n = row["detail"]["jobs"] if row["verb"] == "job.submit" else 1
            found[row["verb"]] = found.get(row["verb"], 0) + n
        if "next" not in page or not rows:
            break
        cursor = "&cursor=" + str(page["next"])
    acknowledged = dict(world.audit, **{"job.submit": len(world.jobs)})
    for verb, n in acknowledged.items():
        # Submits are counted exactly, by their jobs; others may have happened unheard.
        if found.get(verb, 0) < n or (verb == "job.submit" and found.get(verb, 0) != n):
            faults.append("audit: %d rows of %s for %d changes" % (found.get(verb, 0), verb, n))


def check_store(program, checker, folder, faults):
    for command in ([program, "--check-store", "--data", folder],
                    [checker, os.path.join(folder, "stint.db")] if checker else None):
        if command:
            got = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if got.returncode != 0:
                faults.append("%s: %s" % (command[0], got.stdout.decode()))


def set_up(server):
    server.start()
    with open(os.path.join(server.folder, "owner.token")) as f:
        client = Client(server, f.read().strip())
    steps = [("/v1/types", {"name": "h100"}), ("/v1/pools", {"name": "main", "allow": ["host-image"]})]
    steps += [("/v1/nodes", {"name": "n%d" % i, "gpu": "h100"}) for i in range(4)]
    steps += [("/v1/accounts", {"name": "team%d" % i, "guarantee": {"gpu": 4}}) for i in range(4)]
    for path, body in steps:
        answer = client.ask("POST", path, body)
        assert answer and answer[0] == 201, answer
    return client


def main():
    program = sys.argv[1]
    checker = sys.argv[2] if len(sys.argv) > 2 else None
    kills = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 30)
    rng = random.Random(seed)
    print("seed %d, %d kills" % (seed, kills), flush=True)
    folder = tempfile.mkdtemp(prefix="stintd-crash-")
    server, world, faults = Stintd(program, folder), World(), []
    client = set_up(server)
    workers = [Worker(server, world, client.token, seed + i, i) for i in range(CLIENTS)]
    for w in workers:
        w.start()
    began = time.monotonic()
    try:
        for kill in range(kills):
            for w in workers:
                w.go.set()
            time.sleep(rng.uniform(0.002, 0.25))
            server.kill()
            for w in workers:
                w.go.clear()
            for w in workers:
                w.idle.wait()
                faults += w.faults
            if kill % 10 == 9:
                check_store(program, checker, folder, faults)
            if rng.random() < 0.2:  # killed while it starts
                early = subprocess.Popen([program, "--config", server.config, "--data", folder],
                                         stderr=subprocess.DEVNULL)
                time.sleep(rng.uniform(0, 0.03))
                early.kill()
                early.wait()
            server.start()
            client.link = None
            after_restart(world, client, rng, faults)
            if faults:
                break
        if not faults:
            after_restart(world, client, rng, faults, everything=True)
            count_all(world, client, faults)
            check_audit(world, client, faults)
            verdict = client.ask("GET", "/v1/audit/verify")[1]
            if verdict.get("bad_seq") or verdict.get("ok") is False:
                faults.append("the audit chain is broken: %s" % verdict)
        server.kill(signal.SIGTERM)
        check_store(program, checker, folder, faults)
    finally:
        if server.process.poll() is None:
            server.kill()
    if faults:
        print("\n".join(faults[:20]))
        print("the store is left in %s; seed %d" % (folder, seed))
        return 1
    shutil.rmtree(folder)
    print("%d kills in %.0f s: %d submits acknowledged, %d jobs, %d cancelled, %d tokens, %d account "
          "changes" % (kills, time.monotonic() - began, len(world.keys), len(world.jobs),
                       world.audit.get("job.cancel", 0), len(world.tokens),
                       world.audit.get("account.change", 0)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
