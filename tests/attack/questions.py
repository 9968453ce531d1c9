#!/usr/bin/env python3
"""Questions: whoever asks much, or about others, slows nobody and learns nothing."""

import json
import threading
import time

from attack import attempt, check, until, wall

JOB = {"gpus": 0, "cpu": 1, "limit": "10m", "pool": "paper"}


def together(n, ask):
    """n threads that each ask once; their statuses."""
    got, lock = [], threading.Lock()

    def run(i):
        try:
            status = ask(i)
        except OSError:
            status = 0
        with lock:
            got.append(status)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return got


def again(person):
    """The same person on a connection of its own."""
    return type(person)(person.port, person.token, person.pool)


def honest_job(site):
    """A job of the honest tenant."""
    return site.acme.job(name="honest", cpu=0.01, limit="1h", pool="paper", sim={"run": "1h"})


@attempt("a member of rival", "asks for 40 dry runs at once", "each answered or turned away, none kept")
def forty_dry_runs(site):
    before = len(site.rival.get("/v1/jobs?limit=1000").json["jobs"])
    got = together(40, lambda i: again(site.rival).post("/v1/jobs?dry_run=true", dict(JOB, name=f"d{i}")).status)
    check(set(got) <= {200, 429, 503} and 200 in got, "dry runs: %s", got)
    check(len(site.rival.get("/v1/jobs?limit=1000").json["jobs"]) == before, "a dry run was kept")


@attempt("a member of rival", "asks what-if with 10,000 variants", "a refusal that says how many it may have")
def many_variants(site):
    answer = site.rival.post("/v1/whatif", {"job": JOB, "variants": [{"gpus": 1}] * 10000})
    check(answer.status == 400 and "16 variants" in answer.text, "%d %s", answer.status, answer.text[:300])


@attempt("an admin of rival", "asks what-if with 10,000 accounts", "a refusal that says how many it may have")
def many_accounts(site):
    answer = site.rival_admin.post("/v1/whatif", {"accounts": [{"name": "rival-lab", "weight": 2}] * 10000})
    check(answer.status == 400 and "64 accounts" in answer.text, "%d %s", answer.status, answer.text[:300])


@attempt("a member of rival", "asks what would become of a job of acme's account", "what a name that never was gets")
def job_of_others(site):
    said = [site.rival.post("/v1/whatif", {"job": dict(JOB, account=name)}).json["answers"][0]
            for name in ("acme", "never-was")]
    check([s["code"] for s in said] == ["not_found"] * 2, "%s", said)
    check(said[0]["detail"].replace("acme", "X") == said[1]["detail"].replace("never-was", "X"), "%s", said)


@attempt("an admin of rival", "asks what a smaller quota of acme would do", "what a name that never was gets")
def quota_of_others(site):
    said = [site.rival_admin.post("/v1/whatif", {"accounts": [{"name": name, "max": {"gpu": 0}}]})
            for name in ("acme", "never-was")]
    check([s.status for s in said] == [404, 404], "%s", [s.text for s in said])


@attempt("an admin of rival", "asks what more quota of its own would do", "a refusal: that comes from above")
def own_quota(site):
    answer = site.rival_admin.post("/v1/whatif", {"accounts": [{"name": "rival", "guarantee": {"gpu": 10 ** 6}}]})
    check(answer.status == 403, "%d %s", answer.status, answer.text)


@attempt("a member of rival", "tries quotas of an account below its own", "a refusal by its role")
def member_quota(site):
    answer = site.rival.post("/v1/whatif", {"accounts": [{"name": "rival-lab", "weight": 9}]})
    check(answer.status == 403, "%d %s", answer.status, answer.text)


@attempt("an admin of rival", "tries a quota and looks whether it was made", "the quota as it was")
def nothing_stays(site):
    before = site.rival_admin.get("/v1/accounts/rival-lab").json
    site.rival_admin.post("/v1/whatif", {"accounts": [{"name": "rival-lab", "weight": 77}], "job": JOB})
    check(site.rival_admin.get("/v1/accounts/rival-lab").json == before, "it was made")


@attempt("a member of rival", "asks why acme's job waits", "what a job that never was gets")
def why_of_others(site):
    job = honest_job(site)
    answers = [site.rival.get(f"/v1/jobs/{name}/why") for name in (job, "j00000000")]
    check([a.status for a in answers] == [404, 404], "%s", [a.text for a in answers])
    site.acme.cancel(job)


@attempt("a member of rival", "looks for acme in everything what-if says", "no word of it")
def names_of_others(site):
    job = honest_job(site)
    answer = site.rival.post("/v1/whatif", {"job": dict(JOB, cpu=10 ** 6), "variants": [
        {}, {"priority": 100}, {"priority": "low"}, {"tasks": 50, "gpus": 1}, {"topology": {"require": "rack"}}]})
    check(answer.status == 200, "%s", answer.text)
    for word in ("acme", "honest", job):
        check(word not in answer.text, "%s is in %s", word, answer.text)
    site.acme.cancel(job)


@attempt("a member of rival", "sends documents that are 1,000 deep, and variants that are not maps", "refusals, quickly")
def deep_documents(site):
    deep = "[" * 1000 + "]" * 1000
    bodies = ['{"job": %s}' % deep, '{"job": {}, "variants": %s}' % deep, '{"job": {"env": %s}}' % deep,
              '{"job": {}, "variants": [1, 2]}', '{"job": [], "variants": [{}]}', '{"variants": [{}]}', "{}", "[]",
              '{"job": {}, "accounts": {}}', '{"job": {}, "x": 1}', '{"job": {}, "variants": []}', "", "nonsense"]
    began = time.monotonic()
    for body in bodies:
        answer = site.rival.call("POST", "/v1/whatif", body)
        check(400 <= answer.status < 500, "%s: %d %s", body[:60], answer.status, answer.text[:200])
    check(time.monotonic() - began < 30, "it took %.1f s", time.monotonic() - began)


@attempt("a member of rival", "puts an array of 10,000 into each of 16 variants", "an answer or a refusal, and little memory")
def arrays_in_variants(site):
    before = site.stintd.rss_kib()[0]
    answer = site.rival.post("/v1/whatif", {"job": dict(JOB, array={"count": 10000}, name="a"), "variants": [{}] * 16})
    check(answer.status in (200, 400), "%d %s", answer.status, answer.text[:200])
    grown = site.stintd.rss_kib()[0] - before
    check(grown < 400 * 1024, "it took %d KiB", grown)


@attempt("a member of rival", "asks for /metrics 400 times over 16 connections", "answers, or to be slowed down")
def metrics_storm(site):
    def ask(_):
        person, seen = again(site.rival), set()
        for _ in range(25):
            seen.add(person.get("/metrics").status)
        return 200 if seen <= {200, 429} else max(seen)

    got = together(16, ask)
    check(set(got) == {200}, "%s", got)


@attempt("a member of rival", "asks why of one job from 16 connections without pause", "answers, while acme submits")
def why_storm(site):
    site.rival.job(name="holds", gpus=8, pool="paper", limit="1h", sim={"run": "1h"})
    job = site.rival.job(name="waits", gpus=8, tasks=4, pool="paper", limit="1h", sim={"run": "1h"})
    stop = threading.Event()
    bad = []

    def ask():
        person = again(site.rival)
        while not stop.is_set():
            status = person.get(f"/v1/jobs/{job}/why").status
            if status not in (200, 429, 503):
                bad.append(status)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for t in threads:
        t.start()
    for _ in range(10):
        mine = site.acme.job(name="beside", cpu=0.01, pool="paper")
        check(site.acme.show(mine)["name"] == "beside", "it is not there")
        site.acme.cancel(mine)
    stop.set()
    for t in threads:
        t.join()
    check(not bad, "%s", bad)
    for row in site.rival.get("/v1/jobs?state=pending&state=running&limit=1000").json["jobs"]:
        site.rival.cancel(row["id"])


@attempt("a member of rival", "makes up positions and sends others'", "refusals; two of its own tell nothing")
def positions(site):
    seen = [site.rival.get("/v1/types").header("Stint-Position") for _ in range(20)]
    check(len(set(seen)) == 20, "positions repeat: %s", seen)
    for bad in ("", "p", "p0000000000000", "pzzzzzzzzzzzzz", seen[0][:-1], seen[0] + "0", seen[0].upper(), "9" * 2000):
        status = site.rival.get("/v1/types", headers={"Stint-Position": bad}).status
        check(status in (200, 400, 431) and (status != 200 or bad == ""), "position %s: %d", bad[:20], status)
    theirs = site.acme.get("/v1/types").header("Stint-Position")
    check(site.rival.get("/v1/types", headers={"Stint-Position": theirs}).status == 200, "a position is nobody's")


@attempt("a stranger, a viewer's rights", "asks what-if without a token", "a refusal")
def stranger(site):
    person = again(site.rival)
    person.token = None
    check(person.post("/v1/whatif", {"job": JOB}).status == 401, "a stranger was answered")
    person.token = "stint_" + "0" * 64
    check(person.post("/v1/whatif", {"job": JOB}).status == 401, "a made-up token was answered")


@attempt("a member of rival", "goes away in the middle of 30 what-ifs", "stintd goes on")
def gone(site):
    import socket

    body = json.dumps({"job": JOB, "variants": [{}] * 16}).encode()
    for _ in range(30):
        sock = socket.create_connection(("127.0.0.1", site.rival.port), timeout=10)
        sock.sendall(b"POST /v1/whatif HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
                     b"Content-Length: %d\r\n\r\n%s" % (site.rival.token.encode(), len(body), body))
        sock.close()
    until(lambda: site.rival.post("/v1/whatif", {"job": JOB}).status == 200, "an answer afterwards")


wall("questions")
