#!/usr/bin/env python3
"""Many bills at once.

Bills are written by a few threads of their own, in order; where too many wait, whoever comes is asked to come back.
Everybody else gets the whole bill. Other requests do not wait for them, and stintd ends in order while some are being written.
"""

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


def run(program):
    stintd = Stintd(program)
    try:
        make(stintd)
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
