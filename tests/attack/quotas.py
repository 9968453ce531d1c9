#!/usr/bin/env python3
"""What a tenant may have of the service: waiting jobs, accounts, tokens, streams, connections, turns of the loop.

Each attempt takes more than its share, by a member, an admin of a sub-account or a stranger; the honest tenant's
submits go on beside it and are measured.
"""

import json
import socket
import sys
import threading
import time

from attack import attempt, check, until, wall
from attack import many as crowd  # of a size that STINT_LONG sets
from harness import Client, Stream
from node import Node

CONFIG = """connections: 400
strangers: 30
quota: {pending: 400, pending_bytes: 8388608, array_pieces: 300, accounts: 50, tokens: 100, sizes: 20,
        streams: 20, connections: 100, questions: 8, commands: 64, secrets: 20, idempotency_keys: 50, log_bytes: 1048576}
"""
HANDS = 8  # connections that tidy up
BIG = {f"V{i}": "x" * 1000 for i in range(20)}


def quota(client, account, name):
    answer = client.get(f"/v1/accounts/{account}/service-quota")
    check(answer.status == 200, "service-quota of %s: %d", account, answer.status)
    return next(q for q in answer.json["quota"] if q["name"] == name)


def used(site, account, name):
    return quota(site.owner, account, name)["used"]


def limit(client, account, **limits):
    return client.call("PATCH", f"/v1/accounts/{account}/service-quota", limits)


def clear(site):
    """Cancels all that waits or runs of rival's, and waits until nothing of it counts."""
    page = {"next": ""}
    while "next" in page:
        page = site.rival_admin.get("/v1/jobs?state=pending&state=running&limit=1000").json
        ids = [job["id"] for job in page["jobs"]]

        def cancel(i):
            client = fresh(site, "rival_admin")
            for job in ids[i::HANDS]:
                client.call("DELETE", "/v1/jobs/" + job)
            client.close()

        many(HANDS if ids else 0, cancel)
    for name in ("pending", "pending_bytes", "array_pieces"):
        until(lambda n=name: used(site, "rival", n) == 0, f"{name} of rival given back")


def many(n, function):
    """Runs it n times at once; what came back."""
    got, lock = [], threading.Lock()

    def one(i):
        answer = function(i)
        with lock:
            got.append(answer)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    check(len(got) == n, "%d of %d calls came back", len(got), n)
    return got


def fresh(site, secret="rival"):
    return Client(site.stintd.port, site.secrets[secret])


def statuses(answers):
    return sorted({a.status for a in answers})


WAITS = {"gpus": 8, "tasks": 4, "limit": "1h", "pool": "paper", "command": ["true"], "name": "w"}


# ---- jobs that wait -----------------------------------------------------------------------------------------


@attempt("a member of rival", "asks for an array of 10,000 beyond its quota", "a refusal of the whole")
def array_beyond(site):
    site.refused(site.rival.submit(**{**WAITS, "array": {"count": 10000}}), "rival has reached its quota (array_pieces|pending): 0 of", 429)
    check(used(site, "rival", "pending") == 0, "pieces were left behind")


@attempt("a member of rival", "submits an array of 300 with 20 kB of environment", "one document's memory and disk")
def array_is_one_document(site):
    before = site.stintd.rss_kib()[0]
    answer = site.rival.submit(**{**WAITS, "array": {"count": 300}, "env": BIG})
    check(answer.status == 201, "%d %s", answer.status, answer.text[:300])
    grown = site.stintd.rss_kib()[0] - before
    check(grown < 8 * 1024, "300 pieces took %d KiB", grown)
    piece = site.rival.show(answer.json["jobs"][7]["id"])["spec"]
    check(piece["env"]["V3"] == "x" * 1000 and piece["env"]["STINT_ARRAY_INDEX"] == "7", "a piece lost its document")
    clear(site)


@attempt("a member of rival", "submits one more piece than array_pieces allows", "a refusal that names the limit")
def array_one_more(site):
    site.refused(site.rival.submit(**{**WAITS, "array": {"count": 301}}), "quota array_pieces: 0 of 300", 429)


@attempt("a member of rival", "fills its queue with batches", "refusals by job, with limit and use")
def batch_fills(site):
    answer = site.rival.post("/v1/jobs/batch", {"jobs": [WAITS] * 500})
    check(answer.status == 201, "%d", answer.status)
    codes = [j.get("code") for j in answer.json["jobs"]]
    check(codes.count("service_quota") >= 99, "%d of 500 were refused", codes.count("service_quota"))
    says = next(j["detail"] for j in answer.json["jobs"] if j.get("code"))
    check("rival" in says and "pending" in says and "400" in says, "it says %s", says)


@attempt("a member of rival", "submits with its queue full", "429, and acme's submits are taken")
def queue_full(site):
    site.refused(site.rival.submit(**WAITS), "quota pending", 429)


@attempt("an admin of rival", "uses the sub-account when the organisation is full", "a refusal: it counts above as well")
def sub_account_full(site):
    site.refused(site.rival_admin.submit(**{**WAITS, "account": "rival-lab", "user": "x"}), "quota pending", 429)
    clear(site)


@attempt("a member of rival", "fills the queue with large documents", "a refusal by bytes")
def bytes_fill(site):
    big = {**WAITS, "script": "#" + "y" * 500000}
    del big["command"]
    answers = [site.rival.post("/v1/jobs", big) for _ in range(20)]
    check(statuses(answers) == [201, 429], "%s", statuses(answers))
    check("pending_bytes" in answers[-1].text, "%s", answers[-1].text[:200])
    clear(site)


@attempt("a member of rival", "sends one batch of 15 MB, or of 55", "a bounded part of it is taken")
def batch_of_bytes(site):
    big = {**WAITS, "script": "#" + "y" * 100000}
    del big["command"]
    answer = site.rival.post("/v1/jobs/batch", {"jobs": [big] * max(crowd(550), 150)})
    taken = sum("id" in j for j in answer.json["jobs"])
    check(answer.status == 201 and taken < 100, "%d, %d were taken", answer.status, taken)
    clear(site)


@attempt("a member of rival", "sends the same batch with one key from eight connections at once", "the jobs once")
def batch_once(site):
    body = {"jobs": [WAITS] * 380}
    answers = many(8, lambda i: fresh(site).post("/v1/jobs/batch", body, headers={"Idempotency-Key": "twice"}))
    ids = {j["id"] for a in answers for j in a.json["jobs"]}
    check(statuses(answers) in ([200, 201], [201]) and len(ids) == 380, "%s, %d ids", statuses(answers), len(ids))
    clear(site)


# ---- turns of the loop ----------------------------------------------------------------------------------------


def beside(site, attack, factor=10):
    """The honest tenant's worst submits while it goes on, as a multiple of quiet."""
    first = len(site.honest.times)
    attack()
    until(lambda: len(site.honest.times) > first + 5, "submits of the honest tenant")
    got = site.honest.p99(first)
    check(got < max(factor * site.quiet, 0.25), "the honest p99 went from %.0f to %.0f ms", site.quiet * 1e3, got * 1e3)


@attempt("a member of rival", "asks for 40 dry runs at once, five times", "few at a time; acme waits for none of them")
def beside_dry_runs(site):
    def attack():
        got = []
        for _ in range(5):
            got += many(40, lambda i: fresh(site).post("/v1/jobs?dry_run=true", WAITS))
        check(set(statuses(got)) <= {200, 429}, "%s", statuses(got))
    beside(site, attack)


@attempt("a member of rival", "asks why of a waiting job 200 times at once", "few at a time")
def beside_whys(site):
    job = site.rival.job(**WAITS)

    def attack():
        got = [a for _ in range(5) for a in many(40, lambda i: fresh(site).get(f"/v1/jobs/{job}/why"))]
        check(set(statuses(got)) <= {200, 429}, "%s", statuses(got))
    beside(site, attack)
    clear(site)


@attempt("a member of rival", "submits from 40 connections at once", "acme has its turns")
def beside_parallel_submits(site):
    beside(site, lambda: many(40, lambda i: [fresh(site).post("/v1/jobs", WAITS) for _ in range(10)]))
    clear(site)


@attempt("a member of rival", "sends batches of 300 from eight connections", "acme's turns come between the slices")
def beside_parallel_batches(site):
    body = {"jobs": [WAITS] * 300}
    beside(site, lambda: many(8, lambda i: fresh(site).post("/v1/jobs/batch", body)))
    clear(site)


@attempt("a viewer of rival", "scans names of jobs from 50 connections", "429 beyond a few; acme's submits go on")
def beside_name_scans(site):
    viewer = site.token("rival", "vera", "viewer").token
    site.rival.post("/v1/jobs/batch", {"jobs": [WAITS] * 390})

    def attack():
        got = [a for _ in range(4) for a in many(50, lambda i: Client(site.stintd.port, viewer).get("/v1/jobs?name=zzz&limit=1000"))]
        check(set(statuses(got)) <= {200, 429}, "%s", statuses(got))
    beside(site, attack)
    clear(site)


@attempt("a member of rival", "asks for lists and never reads the answers", "its own questions run out, nobody else's")
def slow_readers(site):
    site.rival.post("/v1/jobs/batch", {"jobs": [{**WAITS, "env": {"A": "x" * 20000}}] * 390})
    socks = []
    for _ in range(12):
        s = socket.create_connection(("127.0.0.1", site.stintd.port))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(f"GET /v1/jobs?limit=1000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {site.secrets['rival']}\r\n\r\n".encode())
        socks.append(s)
    until(lambda: used(site, "rival", "questions") >= 1, "questions held by slow readers")
    check(used(site, "rival", "questions") <= 8, "%d questions", used(site, "rival", "questions"))
    check(site.acme.get("/v1/jobs?limit=10").status == 200, "acme's list")
    for s in socks:
        s.close()
    until(lambda: used(site, "rival", "questions") == 0, "questions given back")
    clear(site)


@attempt("a member of rival", "sends more requests per second than it was given", "429 with Retry-After")
def request_rate(site):
    check(limit(site.owner, "rival", requests=30).status == 200, "an owner sets the rate")
    got = many(8, lambda i: [fresh(site).get("/v1/whoami") for _ in range(30)])
    flat = [a for some in got for a in some]
    refused = [a for a in flat if a.status == 429]
    check(refused and set(statuses(flat)) <= {200, 429}, "%s", statuses(flat))
    check(refused[0].header("Retry-After") and "requests" in refused[0].text, "%s", refused[0].text[:200])
    check(limit(site.owner, "rival", requests="none").status == 200, "and takes it away")


# ---- streams and connections -------------------------------------------------------------------------------------


def streams(site, secrets):
    """Opens one of each; those that were taken."""
    got = [Stream(site.stintd.port, s) for s in secrets]
    for s in got:
        s.wait(lambda s: b"\r\n\r\n" in s.bytes())
    return [s for s in got if b" 200 " in s.bytes()[:20]], got


@attempt("a member of rival", "opens 30 event streams with one token", "20, then 429")
def streams_one_token(site):
    good, opened = streams(site, [site.secrets["rival"]] * 30)
    check(len(good) == 20, "%d streams", len(good))
    check(b"quota streams: 20 of 20" in next(s for s in opened if s not in good).bytes(), "the limit is named")
    for s in opened:
        s.close()
    until(lambda: used(site, "rival", "streams") == 0, "streams given back")


@attempt("an admin of rival", "makes 25 tokens and opens a stream with each, some in the sub-account", "20 of them")
def streams_many_tokens(site):
    secrets = [site.rival_admin.make("/v1/tokens", {"account": "rival-lab" if i % 2 else "rival", "user": f"u{i}", "role": "viewer"})["token"] for i in range(25)]
    good, opened = streams(site, secrets)
    check(len(good) == 20, "%d streams", len(good))
    check(streams_of_acme(site), "acme opens a stream")
    for s in opened:
        s.close()
    until(lambda: used(site, "rival", "streams") == 0, "streams given back")


def streams_of_acme(site):
    good, opened = streams(site, [site.secrets["acme"]])
    for s in opened:
        s.close()
    return len(good) == 1


@attempt("a member whose token is revoked", "keeps its stream open", "it ends within a second")
def stream_revoked(site):
    made = site.rival_admin.make("/v1/tokens", {"account": "rival", "user": "gone", "role": "member"})
    good, _ = streams(site, [made["token"]])
    check(len(good) == 1, "the stream")
    check(site.rival_admin.call("DELETE", "/v1/tokens/" + made["id"]).status == 204, "revoked")
    begun = time.monotonic()
    until(lambda: b"event: revoked" in good[0].bytes(), "the end of the stream", 5)
    check(time.monotonic() - begun < 2.5, "it took %.1f s", time.monotonic() - begun)
    until(lambda: used(site, "rival", "streams") == 0, "the stream given back", 5)
    good[0].close()


@attempt("a member whose token expires", "keeps its stream open", "it ends")
def stream_expired(site):
    made = site.rival_admin.make("/v1/tokens", {"account": "rival", "user": "short", "role": "member", "expires_in": "2s"})
    good, _ = streams(site, [made["token"]])
    check(len(good) == 1, "the stream")
    until(lambda: b"event: revoked" in good[0].bytes(), "the end of the stream", 8)
    good[0].close()


@attempt("a member of rival", "keeps 150 connections open", "100, then 429; acme comes in")
def connections(site):
    held, refused = [], 0
    for _ in range(150):
        c = fresh(site)
        c.source = f"127.0.0.{20 + len(held) % 50}"
        refused += c.get("/v1/whoami").status == 429
        held.append(c)
    check(refused >= 45, "%d of 150 were refused", refused)
    check(Client(site.stintd.port, site.secrets["acme"]).get("/v1/whoami").status == 200, "acme comes in")
    for c in held:
        c.close()
    until(lambda: used(site, "rival", "connections") <= 2, "connections given back")


# ---- what admins make ------------------------------------------------------------------------------------------


@attempt("an admin of rival", "makes 60 accounts", "50, then 429")
def accounts(site):
    got = [site.rival_admin.post("/v1/accounts", {"name": f"r{i}", "parent": "rival"}) for i in range(60)]
    check(statuses(got) == [201, 429], "%s", statuses(got))
    check(sum(a.status == 201 for a in got) == 49, "%d were made", sum(a.status == 201 for a in got))  # and rival-lab
    site.refused(got[-1], "quota accounts: 50 of 50")


@attempt("an admin of a sub-account", "makes accounts below it when the organisation has none left", "429 without numbers of those above")
def accounts_below(site):
    lab = site.token("rival-lab", "lena", "admin")
    answer = site.refused(lab.post("/v1/accounts", {"name": "deep", "parent": "rival-lab"}), "an account above yours", 429)
    check("50" not in answer.json["detail"] and '"rival"' not in answer.text, "it tells %s", answer.text)


@attempt("an admin of rival", "is given 5,000 accounts, makes them, and lists jobs", "a list")
def lists_with_accounts(site):
    check(limit(site.owner, "rival", accounts=6000, accounts_made=9000).status == 200, "more accounts")
    each = crowd(560)

    def make(i):
        client = fresh(site, "rival_admin")
        for k in range(each):
            client.post("/v1/accounts", {"name": f"m{i}-{k}", "parent": "rival-lab"})
        client.close()

    many(8, make)
    check(used(site, "rival", "accounts") > 8 * each * 0.98, "%d accounts", used(site, "rival", "accounts"))
    check(site.rival_admin.get("/v1/jobs").status == 200, "the list")
    check(limit(site.owner, "rival", accounts="none", accounts_made="none").status == 200, "as before")
    check(site.rival_admin.get("/v1/audit").status == 200, "the audit log")


@attempt("an admin of rival", "makes 110 tokens", "429 beyond the quota; revoking one makes room for one")
def tokens(site):
    before = used(site, "rival", "tokens")
    got = [site.rival_admin.post("/v1/tokens", {"account": "rival", "user": f"t{i}", "role": "viewer"}) for i in range(110)]
    made = [a.json for a in got if a.status == 201]
    check(100 - before <= len(made) <= 103 - before and statuses(got) == [201, 429], "%d of 110", len(made))
    site.refused(got[-1], "quota tokens: 100 of 100")
    site.rival_admin.call("DELETE", "/v1/tokens/" + made[0]["id"])
    check(site.rival_admin.post("/v1/tokens", {"account": "rival", "user": "again", "role": "viewer"}).status == 201, "room for one")
    check(site.rival_admin.post("/v1/tokens", {"account": "rival", "user": "no", "role": "viewer"}).status == 429, "and for one only")
    for t in made[1:]:
        site.rival_admin.call("DELETE", "/v1/tokens/" + t["id"])


@attempt("an admin of rival", "makes tokens that expire at once", "they do not count for long")
def tokens_expire(site):
    for _ in range(3):
        got = [site.rival_admin.post("/v1/tokens", {"account": "rival", "user": "x", "role": "viewer", "expires_in": "1s"}) for _ in range(60)]
        check(got[0].status == 201, "%d %s", got[0].status, got[0].text[:200])
        time.sleep(1.1)
    check(site.rival_admin.post("/v1/tokens", {"account": "rival", "user": "y", "role": "viewer"}).status == 201, "room")


@attempt("an admin of rival", "makes 25 sizes", "20, then 429")
def sizes(site):
    got = [site.rival_admin.call("PUT", f"/v1/sizes/s{i}", {"gpus": 1}) for i in range(25)]
    check([a.status for a in got].count(200) == 20, "%s", [a.status for a in got])
    check(site.rival_admin.call("PUT", "/v1/sizes/s3", {"gpus": 2}).status == 200, "one that is there is replaced")
    check(site.rival_admin.call("DELETE", "/v1/sizes/s3").status == 204, "removed")
    check(site.rival_admin.call("PUT", "/v1/sizes/s99", {"gpus": 2}).status == 200, "room for one")


# ---- setting limits ---------------------------------------------------------------------------------------------


@attempt("an admin of rival", "raises its own organisation's quota", "403")
def own_quota(site):
    site.refused(limit(site.rival_admin, "rival", pending=10**9), "set by those above", 403)


@attempt("an admin of rival", "gives its sub-account more than it has itself", "400 with the number")
def child_above(site):
    site.refused(limit(site.rival_admin, "rival-lab", pending=401), "more than account rival above it has .400.", 400)


@attempt("an admin of a sub-account", "raises its own, its parent's and another organisation's quota", "403 and 404")
def others_quota(site):
    lab = site.token("rival-lab", "lars", "admin")
    for account, status in (("rival-lab", 403), ("rival", 404), ("acme", 404), ("nobody", 404)):
        site.refused(limit(lab, account, pending=5), "", status)
        check(account == "rival-lab" or lab.get(f"/v1/accounts/{account}/service-quota").status == 404, "it reads %s", account)


@attempt("a member of rival", "sets any quota", "403")
def member_sets(site):
    for account in ("rival", "rival-lab", "acme"):
        site.refused(limit(site.rival, account, pending=5), "", 403)


@attempt("an admin of rival", "sets nonsense", "400, and nothing changes")
def nonsense(site):
    for body in ({"pending": -1}, {"pending": 2**63}, {"pending": "many"}, {"pendig": 5}, {"pending": [1]}, [], {"pending": 1.5}):
        answer = site.rival_admin.call("PATCH", "/v1/accounts/rival-lab/service-quota", body)
        check(answer.status == 400, "%s: %d", json.dumps(body), answer.status)
    check(quota(site.rival_admin, "rival-lab", "pending")["set"] is None, "a limit was left")


@attempt("a member of the sub-account", "goes on when its limit is lowered below what it uses", "what is there stays, no more comes")
def lowered(site):
    lab = site.token("rival-lab", "lou", "member")
    lab.pool = "paper"
    for _ in range(5):
        lab.job(**WAITS)
    check(limit(site.rival_admin, "rival-lab", pending=3).status == 200, "lowered")
    site.refused(lab.submit(**WAITS), "quota pending: 5 of 3", 429)
    check(used(site, "rival-lab", "pending") == 5, "jobs were lost")
    check(limit(site.rival_admin, "rival-lab", pending="none").status == 200, "taken away")
    check(lab.submit(**WAITS).status == 201, "and free again")
    clear(site)


@attempt("an admin of rival", "removes an account with a limit and makes one of its name", "it has no limit, and nothing is counted twice")
def name_again(site):
    check(limit(site.owner, "rival", accounts=6000, accounts_made=9000).status == 200, "room: others of its attempts have filled it")
    before = used(site, "rival", "accounts")
    for _ in range(2):
        made = site.rival_admin.post("/v1/accounts", {"name": "again", "parent": "rival"})
        check(made.status == 201, "not made: %s", made.text[:300])
        check(quota(site.rival_admin, "again", "pending")["set"] is None, "it inherited a limit")
        check(limit(site.rival_admin, "again", pending=7).status == 200, "limited")
        gone = site.rival_admin.call("DELETE", "/v1/accounts/again", headers={"If-Match": "*"})
        check(gone.status in (200, 204), "removed: %d %s", gone.status, gone.text[:200])
    check(used(site, "rival", "accounts") == before, "%d accounts, before %d", used(site, "rival", "accounts"), before)
    check(limit(site.owner, "rival", accounts="none", accounts_made="none").status == 200, "as before")


# ---- strangers ------------------------------------------------------------------------------------------------


def idle(site, addresses, each):
    socks = []
    for a in addresses:
        for _ in range(each):
            s = socket.socket()
            s.settimeout(10)
            s.bind((a, 0))
            try:
                s.connect(("127.0.0.1", site.stintd.port))
                socks.append(s)
            except OSError:
                s.close()
    return socks


def comes_in(site, n=20):
    """acme makes new connections, each from one address."""
    for _ in range(n):
        c = Client(site.stintd.port, site.secrets["acme"])
        c.source = "127.0.0.77"
        check(c.get("/v1/whoami").status == 200, "acme is kept out")
        c.close()


@attempt("a stranger", "keeps idle sockets from six addresses", "acme comes in at once")
def six_addresses(site):
    socks = idle(site, [f"127.0.3.{i}" for i in range(6)], 100)
    comes_in(site)
    for s in socks:
        s.close()


@attempt("a stranger", "keeps idle sockets from sixty addresses, more than stintd takes", "strangers go, acme comes in")
def sixty_addresses(site):
    socks = idle(site, [f"127.0.4.{i}" for i in range(60)], 15)
    comes_in(site)
    check(site.stintd.alive(), "stintd has ended")
    for s in socks:
        s.close()


@attempt("a stranger", "sends headers a byte at a time", "it is cut off within seconds")
def drip(site):
    s = idle(site, ["127.0.5.1"], 1)[0]
    begun, open_ = time.monotonic(), True
    s.settimeout(0.2)
    s.sendall(b"GET /v1/whoami HTTP/1.1\r\n")
    while open_ and time.monotonic() - begun < 20:
        try:
            s.sendall(b"X: y\r\n")
            open_ = s.recv(100) != b""
        except TimeoutError:
            continue
        except OSError:
            open_ = False
    check(not open_ and time.monotonic() - begun < 12, "open after %.0f s", time.monotonic() - begun)


@attempt("a stranger", "opens the API document and health pages in a loop from one address", "acme's submits go on")
def beside_open_pages(site):
    def loop(i):
        c = Client(site.stintd.port)
        c.source = "127.0.5.2"
        return [c.get(p) for _ in range(30) for p in ("/healthz", "/openapi.json", "/readyz")][-1]
    beside(site, lambda: many(8, loop))


@attempt("a stranger", "guesses tokens from 20 connections", "401 or 429; acme's submits go on")
def beside_guesses(site):
    def loop(i):
        c = Client(site.stintd.port, f"stint_{'A' * 40}{i:03d}")
        c.source = "127.0.5.3"
        return [c.get("/v1/jobs") for _ in range(40)][-1]

    def attack():
        got = many(20, loop)
        check(set(statuses(got)) <= {401, 429}, "%s", statuses(got))
    beside(site, attack)


@attempt("a stranger", "keeps a connection on which acme's token was used once busy with nothing", "it stays acme's, and counts for acme")
def known_connection(site):
    before = used(site, "acme", "connections")
    c = Client(site.stintd.port, site.secrets["acme"])
    check(c.get("/v1/whoami").status == 200, "known")
    until(lambda: used(site, "acme", "connections") == before + 1, "it counts")
    c.token = site.secrets["rival"]
    check(c.get("/v1/whoami").status == 200, "used by another")
    until(lambda: used(site, "acme", "connections") == before, "it counts for who used it last")
    c.close()


@attempt("a member of rival", "puts 25 secrets, some in the sub-account", "20, then 429; removing one makes room")
def secrets(site):
    def put(n):
        return site.rival_admin.call("PUT", f"/v1/accounts/{'rival-lab' if n % 2 else 'rival'}/secrets/s{n}", b"x",
                                     kind="application/octet-stream")
    got = [put(n) for n in range(25)]
    check(statuses(got[:20]) == [200] and statuses(got[20:]) == [429], "%s", statuses(got))
    check("secrets" in got[-1].text, "%s", got[-1].text[:200])
    check(site.rival_admin.call("DELETE", "/v1/accounts/rival/secrets/s0").status == 204, "it removes one")
    check(put(26).status == 200, "there is room again")
    check(used(site, "rival", "secrets") == 20, "%d of rival", used(site, "rival", "secrets"))


@attempt("a member of rival", "sends 60 requests, each with an idempotency key of its own", "50, then 429; a key that was used works")
def keys(site):
    def send(n):
        return site.rival.call("POST", "/v1/jobs", WAITS, headers={"Idempotency-Key": f"k{n}"})
    room = 50 - used(site, "rival", "idempotency_keys")
    got = [send(n) for n in range(60)]
    check(statuses(got[:room]) == [201] and statuses(got[room:]) == [429], "%s", statuses(got))
    check("idempotency_keys" in got[-1].text, "%s", got[-1].text[:200])
    check(send(3).json["id"] == got[3].json["id"], "a key that was used")
    check(site.rival.post("/v1/jobs", WAITS).status == 201, "one without a key")
    bad = {**WAITS, "pool": "nowhere"}
    check(site.rival.call("POST", "/v1/jobs", bad, headers={"Idempotency-Key": "bad"}).status in (400, 404, 422, 429), "refused")
    check(used(site, "rival", "idempotency_keys") == 50, "%d keys", used(site, "rival", "idempotency_keys"))
    clear(site)


# ---- logs --------------------------------------------------------------------------------------------------------


def node_of(site):
    """A node by hand, which says of its tasks what is wanted."""
    if not hasattr(site, "hand"):
        site.owner.make("/v1/pools", {"name": "hand", "allow": ["host-image"]})
        token = site.owner.make("/v1/admin/join-tokens", {"pool": "hand"})["token"]
        site.hand = Node(site.stintd.port, "hand0", cpu=64, ram="64Gi")
        check(site.hand.register(token).status == 201, "the node does not join")
    site.hand.status(site.hand.rows if hasattr(site.hand, "rows") else ())
    return site.hand


def writes(site, person, text):
    """A job of theirs that runs on the node and has written so much."""
    node = node_of(site)
    job = person.job(pool="hand", cpu=0.1, ram="64Mi")
    stay = until(lambda: next((j["stay"] for j in (node.desired(1) or {"jobs": []})["jobs"] if j["job"] == job), None), "its order")
    node.rows = getattr(node, "rows", []) + [{"job": job, "stay": stay, "task": 0, "state": "running"}]
    check(node.status(node.rows).status == 200, "its status")
    path = f"/v1/agent/logs/{job}/{stay}/0"
    for at in range(0, len(text), 65536):
        part = text[at:at + 65536]
        check(node.call("POST", f"{path}?offset={at}", raw=part).status == 200, "it writes")
    return job


@attempt("jobs of rival", "write three times what rival may keep", "the oldest of rival's make room, acme's log is whole")
def log_bytes(site):
    mine = writes(site, site.acme, b"acme was here" * 1000)
    jobs = [writes(site, site.rival, bytes([65 + i]) * 200000) for i in range(15)]
    until(lambda: used(site, "rival", "log_bytes") <= 1 << 20, "rival within its quota", 30)
    check(used(site, "acme", "log_bytes") >= 13000, "acme's bytes: %d", used(site, "acme", "log_bytes"))
    check(site.acme.log(mine).count("acme was here") == 1000, "acme's log")
    newest, oldest = site.rival.get(f"/v1/jobs/{jobs[-1]}/logs"), site.rival.get(f"/v1/jobs/{jobs[0]}/logs")
    check(newest.text.count("O") == 200000, "the newest has %d bytes", len(newest.body))
    check(oldest.text.count("A") < 200000, "the oldest is whole")


@attempt("a member whose token is revoked", "follows a log that says nothing", "it is cut at once")
def followed_log(site):
    made = site.rival_admin.make("/v1/tokens", {"account": "rival", "user": "reader", "role": "viewer"})
    job = writes(site, site.rival, b"")
    answers = []
    path = f"/v1/jobs/{job}/logs?follow=true&wait=60"
    reader = threading.Thread(target=lambda: answers.append(Client(site.stintd.port, made["token"]).get(path)))
    reader.start()
    time.sleep(0.5)  # whether it waits already or begins to now: it must end
    check(site.rival_admin.call("DELETE", "/v1/tokens/" + made["id"]).status == 204, "revoked")
    begun = time.monotonic()
    reader.join(30)
    check(answers and answers[0].status == 401, "it was answered %s", answers and answers[0].text)
    check(time.monotonic() - begun < 10, "it took %.1f s", time.monotonic() - begun)


@attempt("the owner", "looks at what rival uses when all is over", "nothing is left over")
def nothing_left(site):
    clear(site)
    for name in ("pending", "pending_bytes", "array_pieces", "streams", "questions", "commands"):
        until(lambda n=name: used(site, "rival", n) == 0, f"{name} of rival at nothing")


if __name__ == "__main__":
    sys.exit(wall("quotas", config=CONFIG))
