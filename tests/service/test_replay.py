"""What a real stintd recorded, played again by `stint sim replay`.

Nothing changed is what happened, effect for effect: while stintd runs, after it has stopped, and behind a restart and
snapshots; its bills are those of the books. Changes have their effect. The store stays as it is, and what is not a store is
refused with one sentence.
"""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
import time

from harness import Client, Stintd, check, fleet, main, token

POLICY = "policy: {notice: 0.2s, grace: 0.5s, min_run: 0.3s, cooldown: 0.3s}\n"


def replay(stint, *args, status=0):
    done = subprocess.run([stint, "sim", "replay", "-o", "json", *args], capture_output=True, text=True,
                          timeout=120)
    check(done.returncode == status, "sim replay %s: %d %s", args, done.returncode, done.stderr)
    if status:
        check(done.stderr.count("\n") == 1 and not done.stdout, "not one sentence: %s", done.stderr)
        return done.stderr
    return json.loads(done.stdout)


def load(clients, seed, n):
    rng = random.Random(seed)
    made = []
    for i in range(n):
        account = rng.choice(sorted(clients))
        answer = clients[account].make("/v1/jobs", {
            "name": f"secret-{i}", "gpus": rng.choice([1, 2, 4, 8]), "limit": "1h",
            "sim": {"run": f"0.{rng.randrange(1, 9)}s"},
            "on_preempt": rng.choice(["requeue", "checkpoint"])})
        made.append((account, answer["id"]))
    for account, job in made[::7]:
        clients[account].call("DELETE", f"/v1/jobs/{job}")
    return made


def drain(clients, made):
    end = time.monotonic() + 60
    for account, job in made:
        while clients[account].get(f"/v1/jobs/{job}").json.get("state") in (
                "pending", "running", "notified", "checkpointing", "paused"):
            check(time.monotonic() < end, "job %s does not end", job)
            time.sleep(0.05)


def snapshot_of(folder):
    return {name: open(os.path.join(folder, name), "rb").read() for name in sorted(os.listdir(folder))
            if os.path.isfile(os.path.join(folder, name))}


def books(path):
    """Micro-dollars of all usage in the books."""
    with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as db:
        rows = [json.loads(row[0]) for row in db.execute("SELECT data FROM book")]
    return sum(line[5] for row in rows for line in row.get("lines", []))


STARTED = []


def begin(stintd, config):
    s = Stintd(stintd, config="rate: 1000000\n" + config + POLICY)
    STARTED.append(s)
    fleet(s.owner, 2, 8)
    for account, gpus in (("vision", 8), ("speech", 4), ("lab", 0)):
        s.owner.make("/v1/accounts", {"name": account, "guarantee": {"gpu": gpus}})
    s.owner.make("/v1/prices", {"prices": "p", "gpu": {"*": {"reserved": 0, "burst": 3600, "on_demand": 3600}}})
    return s, {a: Client(s.port, token(s.owner, a, "ann", "member")["token"])
               for a in ("vision", "speech", "lab")}


def same(answer, what):
    check(answer["same"] and answer["was_hash"] == answer["would_hash"], "%s: it is not the same: %s", what, answer)
    check(answer["was"] == answer["would"], "%s: the figures differ", what)
    check(all(a["off"] == "same" for a in answer["accounts"]), "%s: somebody is off otherwise", what)


def whole_log(stintd, stint, work):
    s, clients = begin(stintd, "")
    data = os.path.join(s.dir, "data")
    store = os.path.join(data, "stint.db")
    made = load(clients, 1, 60)
    same(replay(stint, "--store", store), "while it runs")
    drain(clients, made)
    s.owner.make("/v1/admin/backup", {"file": "copy.db"})
    shutil.copy(os.path.join(data, "backups", "copy.db"), work)
    copy = os.path.join(work, "copy.db")
    os.chmod(copy, 0o400)
    files = snapshot_of(work)
    answer = replay(stint, "--backup", copy)
    same(answer, "a copy")
    check(answer["jobs"] == 60, "not all jobs: %s", answer["jobs"])
    check(answer["was"]["wait_ms"]["p99"] > 0, "nobody waited: the load is too small to show anything")
    cost = books(copy)
    check(cost > 0 and abs(answer["was"]["bill_udollars"] - cost) <= 3, "bills: the books have %d, replay has %d", cost,
          answer["was"]["bill_udollars"])
    changes(stint, copy, work)
    check({k: v for k, v in snapshot_of(work).items() if k in files} == files, "the copy was changed")
    check(not os.path.exists(copy + "-wal") and not os.path.exists(copy + "-shm"), "something was made beside the copy")
    for client in clients.values():
        client.close()
    s.stop()


def changes(stint, copy, work):
    def file(name, text):
        path = os.path.join(work, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    big = file("big.yaml", 'fleet: [{count: 40, name: "x%d", gpu: h100}]\n')
    answer = replay(stint, "--backup", copy, "--fleet", big)
    check(not answer["same"] and answer["would"]["wait_ms"]["max"] == 0, "forty nodes: %s", answer["would"])
    check(answer["sooner"] > 0 and answer["later"] == 0, "forty nodes: %s later", answer["later"])
    answer = replay(stint, "--backup", copy, "--policy", "min_run=30d")
    check(answer["would"]["preemptions"] == 0, "nobody may be displaced: %s", answer["would"])
    quota = file("quota.yaml", "accounts: [{name: vision, guarantee: {gpu: 0}}, {name: lab, guarantee: {gpu: 12}}]\n")
    answer = replay(stint, "--backup", copy, "--accounts", quota)
    lab = next(a for a in answer["accounts"] if a["account"] == "lab")
    check(lab["would"]["wait_ms"] <= lab["was"]["wait_ms"], "the lab's guarantee does not help it: %s", lab)
    prices = file("prices.yaml", 'prices: q\ngpu: {"*": {reserved: 0, burst: 7200, on_demand: 7200}}\n')
    answer = replay(stint, "--backup", copy, "--prices", prices)
    check(answer["same"], "prices decide nothing")
    twice = answer["would"]["bill_udollars"] - 2 * answer["was"]["bill_udollars"]
    check(abs(twice) <= 60, "twice the price: %d against %d", answer["would"]["bill_udollars"], answer["was"]["bill_udollars"])
    shared(stint, copy, work)
    for option, text in (("--accounts", "accounts: [{name: vision, guarantee: {gpu: -1}}]"),
                         ("--accounts", "accounts: [{name: vision, parent: nobody}]"),
                         ("--accounts", "[1, 2"), ("--fleet", "fleet: []"), ("--fleet", "fleet: 7"),
                         ("--prices", "prices: 1\ngpu: {}")):
        replay(stint, "--backup", copy, option, file("bad.yaml", text), status=2 if "nobody" not in text else 4)
    replay(stint, "--backup", copy, "--policy", "swap=perhaps", status=2)
    replay(stint, "--backup", copy, "--from", "yesterday", status=2)
    replay(stint, "--backup", copy, "--from", "2026-02-02", "--to", "2026-02-01", status=2)
    replay(stint, "--backup", copy, "--store", copy, status=2)


def shared(stint, copy, work):
    """A trace that can be given away has nobody's names, and can be played."""
    replay(stint, "--backup", copy, "--anonymous", os.path.join(work, "trace"))
    text = "".join(open(os.path.join(work, "trace", name)).read() for name in ("world.yaml", "jobs.csv"))
    for name in ("vision", "speech", "lab", "ann", "secret", "n00"):
        check(name not in text, "%s is in the trace", name)
    played = json.loads(subprocess.run(
        [stint, "sim", "trace", "-o", "json", "--world", os.path.join(work, "trace", "world.yaml"),
         os.path.join(work, "trace", "jobs.csv")], capture_output=True, text=True, check=True, timeout=120).stdout)
    check(played["jobs"]["done"] > 30, "too few were played: %s", played["jobs"])


def behind_restarts(stintd, stint):
    s, clients = begin(stintd, "snapshot_rows: 30\n")
    data = os.path.join(s.dir, "data")
    store = os.path.join(data, "stint.db")
    load(clients, 2, 40)
    for client in clients.values():
        client.close()
    s.owner.close()
    s.process.terminate()
    check(s.process.wait(30) == 0, "stintd did not stop")
    files = snapshot_of(data)
    answer = replay(stint, "--store", store)
    same(answer, "stopped")
    check(snapshot_of(data) == files, "the store, or what is beside it, was changed")
    with open(s.log, "a") as log:
        s.process = subprocess.Popen([stintd, "--config", os.path.join(s.dir, "config.yaml"), "--data", data],
                                     stdout=subprocess.DEVNULL, stderr=log)
    end = time.monotonic() + 30
    while open(s.log).read().count("event=listening") < 2:
        check(time.monotonic() < end, "stintd does not start again")
        time.sleep(0.05)
    port = int(open(s.log).read().rsplit(" port=", 1)[1].split()[0])
    owner = Client(port, s.owner_token)
    clients = {a: Client(port, token(owner, a, "bob", "member")["token"]) for a in ("vision", "lab")}
    drain(clients, load(clients, 3, 20))
    answer = replay(stint, "--store", store)
    same(answer, "after a restart")
    check(answer["jobs"] > 0, "nothing came after the restart")
    for client in (*clients.values(), owner):
        client.close()
    s.stop()


def not_a_store(stint, work):
    copy = os.path.join(work, "copy.db")
    data = open(copy, "rb").read()
    bad = os.path.join(work, "bad.db")
    for text in (b"", b"hello\n", data[: len(data) // 2], data[:4096], data[:8192] + b"\0" * 4096 + data[12288:],
                 data[:-3000] + bytes(b ^ 0x55 for b in data[-3000:])):
        with open(bad, "wb") as f:
            f.write(text)
        done = subprocess.run([stint, "sim", "replay", "--backup", bad], capture_output=True, text=True, timeout=60)
        check(done.returncode in (4, 5, 7) and done.stderr.count("\n") == 1 and not done.stdout,
              "%d bytes: %d %s%s", len(text), done.returncode, done.stdout[:200], done.stderr)
    replay(stint, "--backup", os.path.join(work, "nothing.db"), status=7)
    replay(stint, "--store", work, status=7)


def run(stintd):
    stint = os.path.join(os.path.dirname(stintd), "stint")
    work = tempfile.mkdtemp(prefix="replay-")
    try:
        whole_log(stintd, stint, work)
        not_a_store(stint, work)
        behind_restarts(stintd, stint)
    finally:
        for s in STARTED:
            if s.alive():
                s.process.kill()
            shutil.rmtree(s.dir, ignore_errors=True)
        shutil.rmtree(work, ignore_errors=True)


main(run)
