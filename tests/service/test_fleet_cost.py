#!/usr/bin/env python3
"""The owner's report: where the GPUs were, what that is worth, who used what was reserved. Everything adds up.

Months last three seconds here (billing_zone test-3).
"""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, check, fleet, main, token  # noqa: E402

GPU_MS = 1000  # milli-GPU x ms in a GPU x ms
MONTH = 3000


def months(owner):
    return [m["period"] for m in owner.get("/v1/bills").json["months"]]


def next_close(stintd):
    had = len(months(stintd.owner))
    stintd.wait(lambda: len(months(stintd.owner)) > had, "a month is closed")
    return months(stintd.owner)[-1]


def report(client, period="open"):
    answer = client.get("/v1/fleet/cost?period=" + period)
    check(answer.status == 200, "the report of %s: %d %s", period, answer.status, answer.text)
    return answer.json


def adds_up(cost):
    """Rows, places and capacity, in GPU time and in money."""
    check(cost["conserved"], "conserved: %s", cost)
    check(sum(r["mgpu_ms"] for r in cost["rows"]) == cost["capacity_mgpu_ms"], "rows: %s", cost)
    for place in cost["places"]:
        mine = [r for r in cost["rows"] if r["place"] == place["place"]]
        for key in ("mgpu_ms", "worth_udollars"):
            check(sum(r[key] for r in mine) == place[key], "%s of %s: %s", key, place["place"], cost)
    check(sum(p["mgpu_ms"] for p in cost["places"]) == cost["capacity_mgpu_ms"], "places: %s", cost)


def find(cost, **want):
    return sum(r["mgpu_ms"] for r in cost["rows"] if all(r[k] == v for k, v in want.items()))


def state(owner, node, to):
    answer = owner.call("PATCH", "/v1/nodes/" + node, {"state": to}, headers={"If-Match": "*"})
    check(answer.status == 200, "%s: %s", node, answer.text)


def setup(stintd):
    owner = stintd.owner
    fleet(owner, 4, 8)
    owner.make("/v1/pools", {"name": "spare"})
    owner.make("/v1/nodes", {"name": "x", "pool": "spare", "gpu": "h100", "gpus": 2})
    owner.make("/v1/accounts", {"name": "acme", "guarantee": {"gpu": 16}})
    owner.make("/v1/accounts", {"name": "team", "parent": "acme"})
    owner.make("/v1/prices", {"prices": "d", "gpu": {"*": {"reserved": 3600, "burst": 7200}}})
    owner.make("/v1/jobs", {"name": "j", "account": "team", "user": "ada", "gpus": 3, "sim": {"run": "7d"}})
    state(owner, "x", "draining")
    state(owner, "n03", "failed")


def a_month_by_hand(stintd):
    owner = stintd.owner
    next_close(stintd)
    period = next_close(stintd)
    cost = report(owner, period)
    adds_up(cost)
    check(cost["closed"] and cost["capacity_mgpu_ms"] == 34 * MONTH * GPU_MS, "34 GPUs for a month: %s", cost)
    for pool, place, cause, gpus in (("main", "granted", "work", 3), ("main", "idle", "free", 21),
                                     ("main", "unhealthy", "failed", 8), ("spare", "overhead", "draining", 2)):
        got = find(cost, pool=pool, place=place, cause=cause, type="h100")
        check(got == gpus * MONTH * GPU_MS, "%s %s: %d in %s", pool, cause, got, cost["rows"])
    check({p["place"]: p["worth"] for p in cost["places"]} ==
          {"granted": "9.00", "idle": "63.00", "unhealthy": "24.00", "overhead": "6.00"}, "a dollar a GPU second: %s", cost)
    floor, = cost["idle_reservations"]
    check(floor["account"] == "acme" and floor["floor_gpus"] == 16 and floor["cost"] == "39.00", "13 of 16 unused: %s", floor)
    check(floor["cheapest_floor_gpus"] == 3 and floor["saved"] == "39.00", "3 were in use all the time: %s", floor)
    return period, cost


def changes_count_when_they_are(stintd, period, before):
    owner = stintd.owner
    state(owner, "x", "ready")
    state(owner, "n03", "ready")
    next_close(stintd)
    cost = report(owner, next_close(stintd))
    adds_up(cost)
    check(find(cost, pool="spare", cause="free") == 2 * MONTH * GPU_MS and find(cost, place="unhealthy") == 0, "%s", cost)
    check(report(owner, period) == before, "a closed month stays as it is")
    for _ in range(30):  # at any moment of the open one
        adds_up(report(owner))


def who_may(stintd):
    owner = stintd.owner
    admin = stintd.client(token(owner, "acme", "eve", "admin")["token"])
    auditor = stintd.client(token(owner, "acme", "aud", "auditor")["token"])
    above = stintd.client(token(owner, "", "boss", "auditor")["token"])
    check(admin.get("/v1/fleet/cost").status == 403 and auditor.get("/v1/fleet/cost").status == 403, "tenants")
    check(above.get("/v1/fleet/cost").status == 200, "an auditor of the cluster")
    for bad in ("1999-01", "x", "%00", "2026-1'"):
        check(owner.get("/v1/fleet/cost?period=" + bad).status in (400, 404), "period %s", bad)


def run(program):
    stintd = Stintd(program, config="rate: 1000000\nbilling_zone: test-3\n")
    try:
        setup(stintd)
        period, cost = a_month_by_hand(stintd)
        changes_count_when_they_are(stintd, period, cost)
        who_may(stintd)
    finally:
        stintd.stop()


if __name__ == "__main__":
    main(run)
