#!/usr/bin/env python3
"""What a dry run says a job would cost: by its right, its class and its plan, and on demand beyond what the plan agreed."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, check, fleet, main, token  # noqa: E402

JOB = {"command": ["true"], "gpus": 2, "limit": "1h", "sim": {"run": "90000h"}}


def rate(client, **more):
    answer = client.post("/v1/jobs?dry_run=true", {**JOB, **more})
    check(answer.status == 200, "a dry run: %s", answer.text)
    return answer.json["rate"]


def until(client, want, **more):
    """A book or plan applies from the millisecond after it was said."""
    end = time.monotonic() + 30
    while rate(client, **more) != want and time.monotonic() < end:
        pass
    check(rate(client, **more) == want, "%s, not %s", rate(client, **more), want)


def hour(basis, dollars):
    return {"basis": basis, "type": "h100", "gpu_hour_udollars": int(dollars * 1000000 + 0.5), "gpu_hour": f"{dollars:.2f}"}


def run(program):
    stintd = Stintd(program)
    try:
        owner = stintd.owner
        fleet(owner, nodes=1)
        owner.make("/v1/accounts", {"name": "alpha", "guarantee": {"gpu": 2}})
        owner.make("/v1/accounts", {"name": "beta", "guarantee": {"gpu": 2}})
        alpha, beta = (stintd.client(token(owner, a, "ann", "member")["token"]) for a in ("alpha", "beta"))
        check(rate(alpha)["gpu_hour_udollars"] >= 0, "before prices: %s", rate(alpha))
        check(rate(alpha, gpus=0) is None, "a job without GPUs has no such price")
        owner.make("/v1/prices", {"prices": "p", "gpu": {"*": {"reserved": 1, "guaranteed": 0.5, "burst": 2, "on_demand": 3}},
                                  "classes": {"best-effort": "50%"}})
        until(alpha, hour("guaranteed", 0.5))
        owner.call("PUT", "/v1/accounts/alpha/plan", {"burst": 2, "cap": "1000"})
        alpha.make("/v1/jobs", JOB)
        until(alpha, hour("burst", 2))
        until(alpha, hour("burst", 1), priority_class="best-effort")
        alpha.make("/v1/jobs", JOB)
        # Beyond what the plan agreed it starts at once, at the price that was said; what beta is guaranteed stays free.
        until(alpha, hour("on_demand", 3))
        made = alpha.make("/v1/jobs", JOB)
        check(alpha.get("/v1/jobs/" + made["id"]).json["state"] == "running", "it runs at once")
        until(beta, hour("guaranteed", 0.5))
        check(beta.make("/v1/jobs", JOB)["state"] != "failed", "beta submits")
        used = owner.get("/v1/bills/open?account=alpha").json["lines"]
        check({x["component"] for x in used} >= {"burst", "on_demand"}, "on the bill as such: %s", used)
        over = alpha.post("/v1/jobs", {**JOB, "limit": "1000h"})
        check(over.status in (402, 403) and "cap" in over.text, "the cap holds: %d %s", over.status, over.text)
    finally:
        stintd.stop()


main(run)
