#!/usr/bin/env python3
"""Hostile clients, end to end: whatever they send, stintd stays, its memory stays within a bound,
and honest clients are answered meanwhile.

The honest client comes from another address of the loopback, as real ones would.
"""

import http.client
import json
import os
import resource
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(__file__))
from harness import Stintd, Stream, check, fleet, main, sanitized, token  # noqa: E402

CONNECTIONS = 1200  # of the configuration; one address gets a quarter
TINY = 10000
BOUND_KIB = 32 * 1024  # how far memory may grow over all of this


class Honest:
    """Asks all the time, in the background."""

    def __init__(self, port, secret):
        self.port, self.secret, self.worst, self.n, self.wrong = port, secret, 0.0, 0, []
        self.on = True
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def ask(self, path="/v1/jobs?limit=5"):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20,
                                          source_address=("127.0.0.2", 0))
        try:
            conn.request("GET", path, headers={"Authorization": "Bearer " + self.secret})
            answer = conn.getresponse()
            answer.read()
            return answer.status
        finally:
            conn.close()

    def _run(self):
        while self.on:
            begun = time.monotonic()
            try:
                status = self.ask()
                if status != 200:
                    self.wrong.append(status)
            except OSError as error:
                self.wrong.append(repr(error))
            self.n += 1
            self.worst = max(self.worst, time.monotonic() - begun)
            time.sleep(0.02)

    def stop(self):
        self.on = False
        self.thread.join(30)


class Attack:
    def __init__(self, stintd, secret):
        self.stintd, self.port, self.secret = stintd, stintd.port, secret
        self.head = f"Host: x\r\nAuthorization: Bearer {secret}\r\n"

    def connect(self, address="127.0.0.1"):
        return socket.create_connection(("127.0.0.1", self.port), timeout=20,
                                        source_address=(address, 0))

    def raw(self, data, wait=5, more=False):
        """The answer's status and body, or (0, b"") when there was none. Unless there may be more to say, our side of
        the connection is closed behind the data."""
        s = self.connect()
        got = b""
        try:
            s.settimeout(wait)
            s.sendall(data)
            if not more:
                s.shutdown(socket.SHUT_WR)
            while True:
                piece = s.recv(65536)
                if not piece:
                    break
                got += piece
        except OSError:
            pass
        finally:
            s.close()
        if not got.startswith(b"HTTP/1.1 "):
            return 0, got
        return int(got[9:12]), got.partition(b"\r\n\r\n")[2]

    def post(self, body, path="/v1/jobs", kind="application/json"):
        if isinstance(body, str):
            body = body.encode()
        head = (f"POST {path} HTTP/1.1\r\n{self.head}Content-Type: {kind}\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n")
        return self.raw(head.encode() + body, wait=30, more=True)

    def refused(self, what, answer, *statuses):
        status, body = answer
        check(status in statuses, "%s: %d, expected one of %s: %s", what, status, statuses,
              body[:300])
        if status:
            problem = json.loads(body)
            check(problem["status"] == status and problem["code"], "%s: no problem: %s", what, body)


def bodies(a):
    """Documents that are meant to hurt."""
    deep = "[" * 100000 + "]" * 100000
    keys = "{" + ",".join(f'"k{i}": {i}' for i in range(50000)) + "}"
    rows = [
        ("deep JSON", deep, 400), ("deep objects", '{"env":' * 5000 + "1" + "}" * 5000, 400),
        ("fifty thousand keys", keys, 400),
        ("keys twice", '{"name": "a", "name": "b"}', 400),
        ("bad UTF-8", b'{"name": "\xff\xfe"}', 400), ("half a character", b'{"name": "\xc3"}', 400),
        ("a lone surrogate", '{"name": "\\ud800"}', 400),
        ("NUL bytes", b'{"name": "a\x00b"}', 400), ("an escaped NUL", '{"name": "a\\u0000b"}', 400),
        ("an enormous number", '{"gpus": 1' + "0" * 5000 + "}", 400),
        ("an enormous exponent", '{"cpu": 1e999999999}', 400),
        ("a number below everything", '{"priority": -99999999999999999999}', 400),
        ("nothing", "", 400), ("text behind it", '{"name": "a"} x', 400),
        ("a long name", json.dumps({"name": "n" * 100000}), 400),
        ("an array", "[]", 400), ("a number", "1", 400), ("null", "null", 400),
    ]
    for what, body, status in rows:
        a.refused(what, a.post(body), status)
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9))
    yaml = [("a YAML bomb", bomb), ("YAML that merges", "<<: {name: x}\n"),
            ("deep YAML", "[" * 3000), ("YAML with a tag", "!!python/object:x {}\n"),
            ("two YAML documents", "name: a\n---\nname: b\n"), ("an anchor", "name: &x y\n")]
    for what, body in yaml:
        status, text = a.post(body, kind="application/yaml")
        check(status in (400, 201), "%s: %d %s", what, status, text[:300])
        check(status == 400 or what == "an anchor", "%s was taken: %s", what, text[:200])
    batch = json.dumps({"jobs": [{"name": "x", "gpus": 9999}] * 10001})
    a.refused("a batch that is too long", a.post(batch, "/v1/jobs/batch"), 400)
    return len(rows) + len(yaml) + 1


def frames(a):
    """HTTP that is meant to hurt."""
    get = f"GET /v1/jobs HTTP/1.1\r\n{a.head}"
    post = f"POST /v1/jobs HTTP/1.1\r\n{a.head}Content-Type: application/json\r\n"
    rows = [
        ("a huge header", get + "X: " + "y" * 20000 + "\r\n\r\n", (431, 0)),
        ("ten thousand headers", get + "X: y\r\n" * 10000 + "\r\n", (431, 0)),
        ("a long target", f"GET /v1/jobs?name={'a' * 6000} HTTP/1.1\r\n{a.head}\r\n", (414, 431)),
        ("two lengths", post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", (400, 0)),
        ("length and chunks", post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
         "0\r\n\r\n", (400, 0)),
        ("a length below 0", post + "Content-Length: -1\r\n\r\n", (400, 413, 0)),
        ("an endless length", post + "Content-Length: 99999999999999999999\r\n\r\n", (400, 413, 0)),
        ("more than is taken", post + "Content-Length: 2000000\r\n\r\n", (413,)),
        ("a bad chunk", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", (400, 0)),
        ("no HTTP", "hello\r\n\r\n", (400, 0)), ("a bare line", "GET /v1/jobs\r\n\r\n", (400, 0)),
        ("control characters", f"GET /v1/jo%00bs HTTP/1.1\r\n{a.head}\r\n", (400, 404)),
        ("a way out", f"GET /v1/../../etc/passwd HTTP/1.1\r\n{a.head}\r\n", (400, 404)),
        ("two tokens", get + "Authorization: Bearer x\r\n\r\n", (400,)),
        ("another type", f"POST /v1/jobs HTTP/1.1\r\n{a.head}Content-Type: text/html\r\n"
         "Content-Length: 2\r\n\r\n{}", (415,)),
    ]
    for what, data, statuses in rows:
        status, body = a.raw(data.encode())
        check(status in statuses, "%s: %d, expected one of %s: %s", what, status, statuses,
              body[:200])
    return len(rows)


def slow(a):
    """Headers and bodies that never end, connections that say nothing, some that just go."""
    held = []
    for i in range(100):
        s = a.connect()
        s.sendall((f"GET /v1/jobs HTTP/1.1\r\n{a.head}X-Slow: " if i % 2 else
                   f"POST /v1/jobs HTTP/1.1\r\n{a.head}Content-Type: application/json\r\n"
                   "Content-Length: 100000\r\n\r\n{").encode())
        held.append(s)
    held += [a.connect() for _ in range(50)]
    for _ in range(5):
        for s in held[:100]:
            try:
                s.sendall(b"x")
            except OSError:
                pass
        time.sleep(0.05)
    return held


def tiny(a):
    """Ten thousand connections that ask for little; those beyond the limits are closed."""
    answered = closed = 0
    held = []
    for i in range(TINY):
        try:
            s = a.connect()
            if i % 3 == 0:
                s.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            held.append(s)
        except OSError:
            closed += 1
        if len(held) >= 2000:
            for s in held[:1000]:
                try:
                    s.setblocking(False)
                    answered += s.recv(16).startswith(b"HTTP/1.1 200")
                except OSError:
                    pass
                s.close()
            held = held[1000:]
    for s in held:
        s.close()
    return answered, closed


def limits(stintd, port):
    """Rates and calls at the same time are counted by token; others do not feel it."""
    greedy = stintd.client(token(stintd.owner, "team", "greedy", "viewer")["token"])
    modest = stintd.client(token(stintd.owner, "team", "modest", "viewer")["token"])
    statuses = [greedy.get("/v1/whoami") for _ in range(150)]
    over = [s for s in statuses if s.status == 429]
    check(over and over[0].code == "rate_limited" and int(over[0].header("Retry-After")) >= 1,
          "150 requests at a rate of 20 were all taken")
    check(modest.get("/v1/whoami").status == 200, "another token pays for it")
    # Streams are calls that run: a token has at most 64.
    secret = token(stintd.owner, "team", "watcher", "viewer")["token"]
    streams = []
    for _ in range(75):
        streams.append(Stream(port, secret))
        time.sleep(0.06)  # within the rate
    time.sleep(0.5)
    refused = sum(b" 429 " in s.bytes()[:20] for s in streams)
    check(refused == len(streams) - 64, "%d of %d streams were refused", refused, len(streams))
    check(modest.get("/v1/whoami").status == 200, "another token pays for the streams")
    for s in streams:
        s.close()
    # Guesses are counted by address.
    guesser = stintd.client("stint_" + "A" * 43)
    guesses = [guesser.get("/v1/whoami").status for _ in range(150)]
    check(429 in guesses and set(guesses) == {401, 429}, "guesses: %s", set(guesses))


def storm(program):
    stintd = Stintd(program, config=f"rate: 1000000\nconnections: {CONNECTIONS}\n")
    held = []
    try:
        fleet(stintd.owner, nodes=1)
        stintd.owner.make("/v1/accounts", {"name": "team"})
        a = Attack(stintd, token(stintd.owner, "team", "eve", "member")["token"])
        honest = Honest(stintd.port, token(stintd.owner, "team", "ann", "member")["token"])
        time.sleep(0.3)
        before, _ = stintd.rss_kib()
        n = bodies(a) + frames(a)
        held = slow(a)
        answered, _ = tiny(a)
        _, peak = stintd.rss_kib()
        status = honest.ask("/readyz")
        honest.stop()
        check(status == 200, "not ready: %d", status)
        check(honest.n >= 5 and not honest.wrong, "honest calls went wrong: %s", honest.wrong[:5])
        check(stintd.alive(), "stintd is gone")
        grown = peak - before
        check(sanitized(program) or grown < BOUND_KIB, "memory grew by %d KiB, the bound is %d",
              grown, BOUND_KIB)
        return (f"{n} hostile requests and {TINY} connections ({answered} answered): memory "
                f"{before} -> {peak} KiB; {honest.n} honest calls, the slowest took "
                f"{honest.worst:.2f} s")
    finally:
        for s in held:
            s.close()
        stintd.stop()


def run(program):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    said = storm(program)
    stintd = Stintd(program, config="rate: 20\n")
    try:
        unix = stintd.owner
        unix.make("/v1/accounts", {"name": "team"})
        limits(stintd, stintd.port)
    finally:
        stintd.stop()
    print(said)


if __name__ == "__main__":
    main(run)
