"""Stores of released versions (tests/stores/VERSION.tar.xz, made by make.py there) are opened by this one.

Where this version decides otherwise than the one that wrote the log, it says so and goes on; what was told and what was billed
stays as it was.
"""

import json
import lzma  # noqa: F401: says early that archives cannot be read here
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import time

from harness import Client, check, main, token



def rows(path, sql):
    with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as db:
        return db.execute(sql).fetchall()


def start(stintd, folder):
    with open(os.path.join(folder, "config.yaml"), "w") as f:
        f.write("listen: 127.0.0.1:0\nengine: sim\njob_keep: 0s\n")
    log = open(os.path.join(folder, "log"), "a")
    process = subprocess.Popen([stintd, "--config", f.name, "--data", os.path.join(folder, "data")], stdout=subprocess.DEVNULL,
                               stderr=log)
    log.close()
    end = time.monotonic() + 60
    while True:
        with open(os.path.join(folder, "log")) as f:
            text = f.read()
        if "event=listening" in text:
            return process, int(text.rsplit(" port=", 1)[1].split()[0]), text
        check(process.poll() is None and time.monotonic() < end, "it does not start: %s", text)
        time.sleep(0.05)


def jobs_of(owner):
    return {j["name"]: j for j in owner.get("/v1/jobs?limit=100").json["jobs"]}


def look(owner, port):
    jobs = jobs_of(owner)
    check({f"done-{i}" for i in range(12)} <= set(jobs), "jobs are missing: %s", sorted(jobs))
    check(all(jobs[f"done-{i}"]["state"] == "done" for i in range(12)), "an end was taken back")
    check(jobs["gone"]["state"] == "done" and jobs["stopped"]["state"] == "cancelled", "an end was taken back: %s", jobs)
    check(jobs["runs"]["state"] == "running", "runs: %s", jobs["runs"]["state"])
    check({jobs["runs-too"]["state"], jobs["waits"]["state"]} <= {"running", "pending", "notified", "checkpointing", "timeout", "done"},
          "lab: %s", jobs)
    lab = Client(port, token(owner, "lab", "bob", "member")["token"])
    new = lab.make("/v1/jobs", {"name": "new", "gpus": 1, "limit": "1h", "sim": {"run": "0.1s"}})
    end = time.monotonic() + 60
    while lab.get(f"/v1/jobs/{new['id']}").json["state"] != "done":
        check(time.monotonic() < end, "a new job does not run")
        time.sleep(0.05)
    lab.close()
    # What the books have from before pools were counted is told as such, and all of it adds up.
    cost = owner.get("/v1/fleet/cost").json
    places = {(r["pool"], r["cause"]) for r in cost["rows"]}
    check(cost["conserved"] and ("main", "work") in places, "the fleet's report: %s", cost)
    check(all(r["cause"] == "unknown" for r in cost["rows"] if r["pool"] is None), "%s", cost["rows"])
    trial = owner.get("/v1/bills/open/trial-balance").json
    check(trial["balanced"] and trial["debit_udollars"] > 0, "entries without the other side: %s", trial)


def one(stintd, archive):
    stint = os.path.join(os.path.dirname(stintd), "stint")
    folder = tempfile.mkdtemp(prefix="stores-")
    data = os.path.join(folder, "data")
    os.mkdir(data, 0o700)
    process = None
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(data)
        for name in os.listdir(data):
            os.chmod(os.path.join(data, name), 0o600)
        store = os.path.join(data, "stint.db")
        version = os.path.basename(archive)[: -len(".tar.xz")]
        wrote = {row[0] for row in rows(store, "SELECT version FROM log")}
        check(wrote and all(w == version for w in wrote), "the log is not of %s: %s", version, wrote)
        check(rows(store, "SELECT MAX(seq) FROM log")[0][0] > rows(store, "SELECT MAX(seq) FROM snap")[0][0],
              "nothing is behind the snapshot")
        books = rows(store, "SELECT n, account, seq, at_ms, data, chain FROM book ORDER BY n")
        audit = rows(store, "SELECT seq, hash FROM audit ORDER BY seq")
        process, port, text = start(stintd, folder)
        with open(os.path.join(data, "owner.token")) as f:
            owner = Client(port, f.read().strip())
        look(owner, port)
        owner.close()
        process.terminate()
        check(process.wait(30) == 0, "it did not stop")
        now = rows(store, "SELECT n, account, seq, at_ms, data, chain FROM book ORDER BY n")
        check(now[: len(books)] == books and len(now) > len(books), "the books were changed")
        check(rows(store, "SELECT seq, hash FROM audit ORDER BY seq")[: len(audit)] == audit, "the audit log was changed")
        done = subprocess.run([stintd, "--check-store", "--data", data], capture_output=True, text=True, timeout=60)
        check(done.returncode == 0, "--check-store: %s%s", done.stdout, done.stderr)
        done = subprocess.run([stint, "sim", "replay", "--store", store, "-o", "json"], capture_output=True, text=True, timeout=60)
        check(done.returncode == 0, "sim replay: %s", done.stderr)
        json.loads(done.stdout)
    finally:
        if process and process.poll() is None:
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def refused(stintd, archive, said):
    """A store that cannot be read any more says why and what to do, and stays as it is."""
    folder = tempfile.mkdtemp(prefix="stores-")
    data = os.path.join(folder, "data")
    os.mkdir(data, 0o700)
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(data)
        for name in os.listdir(data):
            os.chmod(os.path.join(data, name), 0o600)
        store = os.path.join(data, "stint.db")
        books = rows(store, "SELECT n, data, chain FROM book ORDER BY n")
        with open(os.path.join(folder, "config.yaml"), "w") as f:
            f.write("listen: 127.0.0.1:0\nengine: sim\n")
        for more in (["--config", f.name], ["--check-store"]):
            done = subprocess.run([stintd, *more, "--data", data], capture_output=True, text=True, timeout=60)
            text = done.stdout + done.stderr
            check(done.returncode != 0 and all(word in text for word in said), "%s: %d %s", more[0], done.returncode, text)
        check(rows(store, "SELECT n, data, chain FROM book ORDER BY n") == books, "the books were changed")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(stintd):
    stores = os.path.join(os.environ.get("STINT_SOURCE", os.path.join(os.path.dirname(__file__), "..", "..")), "tests", "stores")
    found = sorted(name for name in os.listdir(stores) if name.endswith(".tar.xz"))
    check(found, "there is no store of any release in %s", stores)
    for name in found:
        one(stintd, os.path.join(stores, name))
    refused(stintd, os.path.join(stores, "refused", "credits-in-usage.tar.xz"),
            ("entry 10", "lab", "credits lost work by a rule", "stint bill MONTH -o file", "empty data folder"))


main(run)
