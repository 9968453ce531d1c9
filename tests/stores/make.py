#!/usr/bin/env python3
"""Makes the store of a release, for test_stores.py: tests/stores/make.py STINTD VERSION.tar.xz

A few days of a small organisation are not needed: one of everything that a store has. The log goes on behind the
snapshot, as after a crash.
"""

import os
import sys
import tarfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "service"))
from harness import Client, Stintd, check, fleet, token  # noqa: E402

FILES = ("stint.db", "billing.key", "secrets.key", "owner.token")


def wait(client, job, states):
    end = time.monotonic() + 60
    while client.get(f"/v1/jobs/{job}").json["state"] not in states:
        check(time.monotonic() < end, "job %s is not %s", job, states)
        time.sleep(0.05)


def fill(s):
    owner = s.owner
    fleet(owner, 2, 8)
    owner.make("/v1/accounts", {"name": "acme", "guarantee": {"gpu": 12}})
    owner.make("/v1/accounts", {"name": "vision", "parent": "acme", "guarantee": {"gpu": 8}})
    owner.make("/v1/accounts", {"name": "lab"})
    owner.make("/v1/prices", {"prices": "first", "gpu": {"*": {"reserved": 1, "burst": 2, "on_demand": 3}}})
    vision, lab = (Client(s.port, token(owner, a, u, "member")["token"]) for a, u in (("vision", "ada"), ("lab", "bob")))
    for i in range(12):
        done = vision.make("/v1/jobs", {"name": f"done-{i}", "gpus": 1, "limit": "1h", "sim": {"run": "0.1s"}})
    wait(vision, done["id"], ("done",))
    # From here on rows are behind the snapshot.
    vision.make("/v1/jobs", {"name": "runs", "gpus": 8, "sim": {"run": "90000h"}})
    lab.make("/v1/jobs", {"name": "runs-too", "gpus": 4, "sim": {"run": "90000h"}, "on_preempt": "checkpoint"})
    lab.make("/v1/jobs", {"name": "waits", "gpus": 8, "limit": "24h", "sim": {"run": "1h"}})
    gone = lab.make("/v1/jobs", {"name": "gone", "gpus": 1, "limit": "1h", "sim": {"run": "0.1s"}})
    wait(lab, gone["id"], ("done",))
    stopped = vision.make("/v1/jobs", {"name": "stopped", "gpus": 8, "limit": "1h", "sim": {"run": "1h"}})
    vision.call("DELETE", f"/v1/jobs/{stopped['id']}")
    vision.make("/v1/jobs", {"name": "frames", "gpus": 1, "limit": "1h", "sim": {"run": "0.1s"}, "env": {"TOKEN": "s3cret"},
                             "array": {"count": 3}})
    for client in (vision, lab):
        client.close()


def main():
    stintd, out = sys.argv[1:]
    s = Stintd(stintd, config="rate: 1000000\nsnapshot_rows: 16\nengine: sim\n")
    data = os.path.join(s.dir, "data")
    fill(s)
    s.owner.make("/v1/admin/backup", {"file": "copy.db"})
    with tarfile.open(out, "w:xz", preset=9) as tar:
        for name in FILES:
            path = os.path.join(data, "backups", "copy.db") if name == "stint.db" else os.path.join(data, name)
            tar.add(path, name, filter=lambda i: setattr(i, "mtime", 0) or setattr(i, "uid", 0) or i)
    s.stop()
    print(f"{out}: {os.path.getsize(out)} bytes")


main()
