#!/usr/bin/env python3
"""Memory of stintd under steady work: a real process on a simulated fleet, with retention on.

  soak.py PATH_OF_STINTD [MINUTES [JOBS_A_SECOND]]

A few hundred short jobs a second come, run and end; ended jobs are forgotten after some seconds, so that minutes show
what days would with the defaults. Beside them an event stream is read, jobs are listed, explained and cancelled, and
arrays and idempotency keys are used. Memory is looked at every second; the first quarter is for warming up. Prints the
mean of the first and the second half of the rest, and ends with status 1 where their ratio is above 1.05.
"""
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "service"))
from harness import Stintd, Stream, check, token  # noqa: E402

NODES = 50
KEEP_S = 20
LIMIT = 1.05


def fleet(c):
    c.make("/v1/types", {"name": "h100"})
    c.make("/v1/pools", {"name": "main", "allow": ["host-image"]})
    for i in range(NODES):
        c.make("/v1/nodes", {"name": "n%02d" % i, "gpu": "h100"})
    for name in ("red", "green", "blue"):
        c.make("/v1/accounts", {"name": name, "guarantee": {"gpu": NODES * 2}})


def jobs(n, at):
    return [{"name": "train-%d" % (at + i), "account": ("red", "green", "blue")[i % 3], "user": "u%d" % (i % 7),
             "gpus": 1 + i % 2, "limit": "1m", "command": ["python", "train.py", "--seed", str(at + i)],
             "env": {"SEED": str(at + i)}, "labels": {"run": str(at)}, "sim": {"run": "1s"}} for i in range(n)]


def turn(c, rate, k):
    """A second's worth of everything."""
    answer = c.call("POST", "/v1/jobs/batch", {"jobs": jobs(rate, k * rate)}, {"Idempotency-Key": "soak-%d" % k})
    check(answer.status == 201, "batch: %d %s", answer.status, answer.text[:300])
    ids = [row["id"] for row in answer.json["jobs"] if "id" in row]
    check(ids, "none was taken: %s", answer.text[:300])
    c.make("/v1/jobs", {"name": "array", "account": "red", "user": "a", "gpus": 1, "array": {"count": 4},
                        "sim": {"run": "1s"}})
    c.get("/v1/jobs?limit=100")
    c.get("/v1/jobs/%s/why" % ids[-1])
    c.get("/v1/jobs/%s" % ids[0])
    c.call("DELETE", "/v1/jobs/" + ids[-1])
    for path in ("/v1/counts", "/v1/nodes", "/metrics", "/v1/bills/open/usage", "/v1/accounts/red/budget"):
        c.get(path)
    return len(ids) + 4


def soak(program, minutes, rate):
    stintd = Stintd(program, config="rate: 1000000\njob_keep: %ds\nhistory_keep: 0s\nsnapshot_rows: 1000\n" % KEEP_S)
    try:
        c = stintd.owner
        fleet(c)
        stream = Stream(stintd.port, token(c, "red", "eve", "viewer")["token"])
        rows, made, began, shown = [], 0, time.monotonic(), 0
        while (at := time.monotonic() - began) < minutes * 60:
            made += turn(c, rate, len(rows))
            rows.append((at, stintd.rss_kib()[0]))
            if at >= shown:
                live = sum(row["jobs"] for row in c.get("/v1/counts").json["states"].values())
                print("%6.0f s  %8d jobs  %6d live  %7.1f MiB" % (at, made, live, rows[-1][1] / 1024), flush=True)
                shown += minutes * 6
            time.sleep(max(0.0, began + len(rows) - time.monotonic()))
        stream.close()
        return rows, made
    finally:
        stintd.stop()


def main():
    program = sys.argv[1]
    minutes = float(sys.argv[2]) if len(sys.argv) > 2 else 6
    rate = int(sys.argv[3]) if len(sys.argv) > 3 else 150
    rows, made = soak(program, minutes, rate)
    rest = [kib for at, kib in rows if at > minutes * 15]
    first, second = (statistics.mean(half) / 1024 for half in (rest[:len(rest) // 2], rest[len(rest) // 2:]))
    print("%d jobs in %.1f minutes, kept for %d s: %.1f MiB in the first half, %.1f in the second: ratio %.3f"
          % (made, minutes, KEEP_S, first, second, second / first))
    return 0 if second / first <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
