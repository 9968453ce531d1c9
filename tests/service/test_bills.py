#!/usr/bin/env python3
"""Many bills at once.

Bills are written by a few threads of their own, in order; where too many wait, whoever comes is asked to come back.
Everybody else gets the whole bill. Other requests do not wait for them, and stintd ends in order while some are being written.
"""

import gzip
import http.client
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, check, fleet, main, token  # noqa: E402

FORMS = ("json", "csv", "html", "focus", "file")


def make(stintd):
    owner = stintd.owner
    fleet(owner)
    owner.make("/v1/accounts", {"name": "team", "guarantee": {"gpu": 8}})
    for i in range(20):
        owner.make("/v1/prices", {"prices": f"p{i}", "gpu": {"*": {"reserved": 1, "burst": 2 + i}}})
        jobs = [{"name": f"j{k}", "account": "team", "user": "u", "gpus": 0, "cpu": 1,
                 "sim": {"run": "7d"}} for k in range(20)]
        owner.make("/v1/jobs/batch", {"jobs": jobs})


def whole(form, answer):
    if form == "json":
        return answer.json["account"] == "team"
    if form == "html":
        return answer.text.rstrip().endswith("</html>")
    if form == "file":
        return answer.text.rstrip().split("\n")[-1].startswith('{"end":1,')
    return answer.text.endswith("\r\n")


def storm(stintd, secret, threads, each, until=None):
    """{status: how often}; raises for an answer that is neither whole nor a refusal."""
    seen, wrong, lock = {}, [], threading.Lock()

    def work(n):
        client = stintd.client(secret)
        for i in range(each):
            form = FORMS[(n + i) % len(FORMS)]
            try:
                answer = client.get("/v1/bills/open?format=" + form)
            except (OSError, http.client.HTTPException):
                if until and until.is_set():
                    return
                raise
            with lock:
                seen[answer.status] = seen.get(answer.status, 0) + 1
                if answer.status == 503:
                    if answer.code not in ("unavailable", "stopping"):
                        wrong.append(answer.text)
                elif answer.status != 200 or not whole(form, answer):
                    wrong.append(f"{form}: {answer.status} {answer.text[:200]}")

    list_ = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(threads)]
    for t in list_:
        t.start()
    return list_, seen, wrong


def long_answers(stintd):
    """What may be long is the same packed and not, has a length, and is whole or a problem."""
    owner = stintd.owner
    for form in ("bills/open?format=focus&account=team", "bills/open/entries?format=csv&account=team"):
        plain = owner.get("/v1/" + form)
        packed = owner.get("/v1/" + form, headers={"Accept-Encoding": "gzip"})
        check(plain.status == 200 and int(plain.header("Content-Length")) == len(plain.body), "%s: %d", form, plain.status)
        check(packed.header("Content-Encoding") == "gzip" and len(packed.body) < len(plain.body) / 4, "%s is packed to %d of %d",
              form, len(packed.body), len(plain.body))
        check(gzip.decompress(packed.body) == plain.body, "%s: packed it is something else", form)
        head = owner.call("HEAD", "/v1/" + form)
        check(head.status == 200 and not head.body, "HEAD: %d", head.status)
    rows = plain.text.count("\r\n") - 1
    check(rows > 1000, "without a limit all of %d rows", rows)
    few = owner.get("/v1/bills/open/entries?format=csv&account=team&limit=5").text.count("\r\n") - 1
    check(few == 5, "a limit is kept: %d rows", few)
    data = os.path.join(stintd.dir, "data")
    os.rename(data, data + ".away")
    try:
        lost = owner.get("/v1/bills/open/entries?format=csv&account=team")
    finally:
        os.rename(data + ".away", data)
    check(lost.status == 503 and "cannot be kept" in lost.text, "nowhere to keep it: %d %s", lost.status, lost.text[:200])
    check(owner.get("/v1/" + form).text == plain.text, "and it is all there again")


def a_page_is_no_proof(stintd):
    """A page that named the key it is verified with would prove itself to whoever forges both."""
    key = stintd.owner.get("/v1/billing").json["key"]
    page = stintd.owner.get("/v1/bills/open?format=html&account=team").text
    check(len(key) == 64 and key not in page, "the page hands out its key")
    check("stint bill verify --key KEY FILE" in page and "proves nothing" in page, "it says how to verify: %s", page[-900:])


def usage_is_the_bill(stintd):
    """By whatever it is added up, at any moment, with what runs and what has ended."""
    owner = stintd.owner
    for turn in range(3):
        for by in ("account", "user", "gpu", "level", "job"):
            before = owner.get("/v1/bills/open?account=team").json["total_udollars"]
            usage = owner.get(f"/v1/bills/open/usage?account=team&by={by}").json
            after = owner.get("/v1/bills/open?account=team").json["total_udollars"]
            cost = sum(r["cost_udollars"] for r in usage["rows"])
            check(before <= cost <= after, "by %s: %d, %d, %d", by, before, cost, after)
            check(len(usage["rows"]) == usage["rows_in_all"], "by %s: rows are missing", by)
            jobs = sum(r["jobs"] for r in usage["rows"])
            check(jobs == 400 + 10 * turn, "by %s: %d jobs", by, jobs)
        ids = [owner.make("/v1/jobs", {"name": "more", "account": "team", "user": f"v{turn}", "gpus": 0, "cpu": 1,
                                       "sim": {"run": "7d"}})["id"] for _ in range(10)]
        stintd.wait(lambda: all(owner.get(f"/v1/jobs/{i}").json["state"] == "running" for i in ids), "ten more jobs run")
        for i in ids[:5]:
            owner.call("DELETE", f"/v1/jobs/{i}")


def run(program):
    stintd = Stintd(program)
    try:
        make(stintd)
        long_answers(stintd)
        a_page_is_no_proof(stintd)
        usage_is_the_bill(stintd)
        secret = token(stintd.owner, "team", "u", "viewer")["token"]
        list_, seen, wrong = storm(stintd, secret, 24, 20)
        check(stintd.owner.get("/readyz").status == 200, "others wait")
        for t in list_:
            t.join(120)
        check(not wrong, "%d wrong answers, the first: %s", len(wrong), wrong[:1])
        check(seen == {200: 24 * 20}, "answers: %s", seen)
        check(stintd.client(secret).get("/v1/bills/open?format=file").status == 200,
              "no bill when all is quiet again")
        stopping = threading.Event()
        list_, later, wrong = storm(stintd, secret, 24, 1000, stopping)
        while later.get(200, 0) < 5:
            check(stintd.alive(), "stintd is gone")
        stopping.set()
    finally:
        stintd.stop()  # checks how it ended
    check(not wrong, "at the end: %s", wrong[:1])
    print(f"bills under load: {seen}; while stopping: {later}")


if __name__ == "__main__":
    main(run)
