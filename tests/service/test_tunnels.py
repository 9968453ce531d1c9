#!/usr/bin/env python3
"""Ways into jobs, attacked: by other tenants, by nodes that want what is another's, by strangers with stolen names, by thousands
of half-open ones, by readers that do not read.

A node is spoken for by hand and dials; a second one has a key of its own and nothing to do with the job.
"""

import json
import os
import secrets
import select
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(__file__))
from harness import Client, Stintd, check, main, token  # noqa: E402
from node import Node  # noqa: E402

CONFIG = "rate: 1000000\nquota: {tunnels: 40}\n"


class Line:
    """A connection that became bytes, or the status it was refused with."""

    def __init__(self, port, target, bearer, upgrade="stint-tunnel"):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=30)
        head = f"GET {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {bearer}\r\n"
        if upgrade:
            head += f"Connection: Upgrade\r\nUpgrade: {upgrade}\r\n"
        self.sock.sendall((head + "\r\n").encode())
        self.status, self.text, self.rest = None, "", b""

    def answer(self):
        got = b""
        while b"\r\n\r\n" not in got:
            b = self.sock.recv(4096)
            check(b, "no answer, but the end")
            got += b
        head, self.rest = got.split(b"\r\n\r\n", 1)
        self.status = int(head.split()[1])
        if self.status != 101:
            self.text = self.rest.decode()
        return self.status

    def hear(self, n):
        while len(self.rest) < n:
            b = self.sock.recv(65536)
            if not b:
                break
            self.rest += b
        got, self.rest = self.rest[:n], self.rest[n:]
        return got

    def ended(self):
        try:
            while self.sock.recv(65536):
                pass
        except ConnectionResetError:
            pass
        return True


class World:
    def __init__(self, stintd):
        self.stintd, self.owner = stintd, stintd.owner
        owner = self.owner
        owner.make("/v1/types", {"name": "h100", "vram": "80Gi"})
        owner.make("/v1/pools", {"name": "main", "allow": ["host-image"]})
        self.mine, self.theirs = ("w" + secrets.token_hex(6) for _ in range(2))
        self.tokens = {}
        for name in (self.mine, self.theirs):
            owner.make("/v1/accounts", {"name": name, "guarantee": {"gpu": 0}})
            for role in ("member", "admin"):
                self.tokens[name, role] = token(owner, name, role, role)
        join = owner.make("/v1/admin/join-tokens", {"pool": "main", "uses": 2})["token"]
        gpu = {"type": "h100", "count": 2, "vram": "80Gi"}
        self.node = Node(stintd.port, "n0", gpu={**gpu, "uuids": ["GPU-a", "GPU-b"]})
        check(self.node.register(join).json["tunnels"] is True, "the terms say nothing of tunnels")
        self.node.status()
        self.job = self.client(self.mine).make("/v1/jobs", {"name": "j", "gpus": 1, "limit": "1h", "command": ["true"]})["id"]
        stintd.wait(self.runs, "the job runs")
        self.other = Node(stintd.port, "n1", gpu={**gpu, "uuids": ["GPU-c", "GPU-d"]})
        check(self.other.register(join).status == 201, "the second node does not join")
        self.other.status()

    def runs(self):
        doc = self.node.desired()
        if doc:
            self.rows = [{"job": j["job"], "stay": j["stay"], "task": 0, "state": "running"} for j in doc["jobs"]]
        self.node.status(self.rows)
        return self.client(self.mine).get("/v1/jobs/" + self.job).json["state"] == "running" and self.rows

    def client(self, account, role="member"):
        return Client(self.stintd.port, self.tokens[account, role]["token"])

    def ask(self, body=None, account=None, role="member"):
        return self.client(account or self.mine, role).call("POST", f"/v1/jobs/{self.job}/tunnels",
                                                            body or {"kind": "forward", "port": 80})

    def open(self, **more):
        answer = self.ask(**more)
        check(answer.status == 201, "a tunnel: %d %s", answer.status, answer.text)
        return answer.json["id"]

    def connect(self, tunnel, account=None, role="member", **more):
        return Line(self.stintd.port, f"/v1/tunnels/{tunnel}/connect", self.tokens[account or self.mine, role]["token"], **more)

    def told(self, node=None, tries=50):
        """What the node is told to dial."""
        node = node or self.node
        for _ in range(tries):
            answer = node.call("GET", f"/v1/agent/desired?revision={node.revision}&wait=0&tunnels=true")
            if answer.status == 200 and "tunnels" in answer.json:
                return answer.json["tunnels"]
            if answer.status == 200:
                node.revision = answer.json["revision"]
            node.status(self.rows if node is self.node else [])
            time.sleep(0.05)
        return []

    def dial(self, line, node=None):
        node = node or self.node
        target = "/v1/agent/tunnels/" + line
        dialed = Line(self.stintd.port, target, node.proof("GET", target))
        dialed.answer()
        return dialed

    def pair(self, tunnel):
        client = self.connect(tunnel)
        told = self.told()
        check(len(told) == 1, "told of %s", told)
        agent = self.dial(told[0]["id"])
        check(agent.status == 101 and client.answer() == 101, "not joined: %d %s", agent.status, client.status)
        return client, agent, told[0]


def joined(world):
    tunnel = world.open()
    client, agent, told = world.pair(tunnel)
    check(told["job"] == world.job and told["kind"] == "forward" and told["port"] == 80, "the order: %s", told)
    client.sock.sendall(b"question")
    check(agent.hear(8) == b"question", "what was asked did not come")
    agent.sock.sendall(b"answer")
    check(client.hear(6) == b"answer", "what was answered did not come")
    # Twice, and once more after it ended.
    check(world.dial(told["id"]).status == 404, "a line is dialed twice")
    client.sock.close()
    agent.ended()
    check(world.dial(told["id"]).status == 404, "a line is dialed after its end")
    world.client(world.mine).call("DELETE", "/v1/tunnels/" + tunnel)


def nodes_that_want_more(world):
    tunnel = world.open()
    client = world.connect(tunnel)
    check(world.told(world.other, 5) == [], "another node is told of it")
    told = world.told()[0]
    check(world.dial(told["id"], world.other).status == 404, "another node dials it")
    target = "/v1/agent/tunnels/" + told["id"]
    for name, proof in {"another target": world.node.proof("GET", target + "x"),
                        "a proof that was used": None, "a token": world.tokens[world.mine, "member"]["token"]}.items():
        if proof is None:
            proof = world.node.proof("GET", "/v1/agent/tunnels/l00")
            Line(world.stintd.port, "/v1/agent/tunnels/l00", proof).answer()
        line = Line(world.stintd.port, target, proof)
        check(line.answer() in (401, 403), "%s: %d", name, line.status)
    check(world.dial("l" + "0" * 32).status == 404, "a line that never was")
    # Its refusal is tamed and cut, and reaches who asked.
    bad = "no \x1b[31mred‮ " + "x" * 2000
    quoted = "".join("%%%02X" % b for b in bad.replace("\x1b", "").encode()[:1200])
    plain = bad.replace("\x1b", "").encode()[:1200].decode()
    proof = world.node.proof("GET", target + "?refused=" + plain)
    line = Line(world.stintd.port, target + "?refused=" + quoted, proof, upgrade=None)
    check(line.answer() == 204, "a refusal: %d %s", line.status, line.text)
    check(client.answer() == 409, "refused: %d", client.status)
    said = json.loads(client.text)["detail"]
    check(len(said.encode()) <= 310 and "‮" not in said, "what a node says: %r", said)
    world.client(world.mine).call("DELETE", "/v1/tunnels/" + tunnel)


def strangers(world):
    tunnel = world.open()
    for account, role in ((world.theirs, "member"), (world.theirs, "admin"), (world.mine, "admin")):
        line = world.connect(tunnel, account, role)
        check(line.answer() == 404, "a stolen name as %s of %s: %d", role, account, line.status)
    check(world.ask(account=world.theirs).status == 404, "another tenant's job is there")
    for role in ("member", "admin"):
        answer = world.client(world.theirs, role).call("DELETE", "/v1/tunnels/" + tunnel)
        check(answer.status == 404, "another tenant ends it: %d", answer.status)
        check(world.client(world.theirs, role).get("/v1/tunnels").json["tunnels"] == [], "another tenant sees it")
    check(world.connect(tunnel, upgrade=None).answer() == 400, "without an upgrade")
    check(world.connect(tunnel, upgrade="websocket").answer() == 400, "another upgrade")
    listed = world.client(world.mine, "admin").get("/v1/tunnels").json["tunnels"]
    check([t["id"] for t in listed] == [tunnel] and listed[0]["by"] == "member", "an admin's list: %s", listed)
    check(world.client(world.mine, "admin").call("DELETE", "/v1/tunnels/" + tunnel).status == 204, "an admin ends it")
    check(world.connect(tunnel).answer() == 404, "it is still there")


def bad_orders(world):
    rows = [({}, "kind"), ({"kind": "shell"}, "kind"), ({"kind": "forward"}, "port"), ({"kind": "forward", "port": 0}, "port"),
            ({"kind": "forward", "port": 65536}, "port"), ({"kind": "forward", "port": "80"}, "port"),
            ({"kind": "forward", "port": 80, "host": "10.0.0.1"}, "host"), ({"kind": "forward", "port": 80, "task": 7}, "task"),
            ({"kind": "forward", "port": 80, "task": -1}, "task"), ({"kind": "exec"}, "command"),
            ({"kind": "exec", "command": []}, "command"), ({"kind": "exec", "command": "ls"}, "command"),
            ({"kind": "exec", "command": [""]}, "command"), ({"kind": "exec", "command": ["ls", 7]}, "command"),
            ({"kind": "exec", "command": ["x"] * 300}, "command"), ({"kind": "exec", "command": ["x" * 70000]}, "command"),
            ({"kind": "exec", "command": ["ls\0-l"]}, ""), ({"kind": "exec", "command": ["ls"], "tty": 1}, "tty"),
            ({"kind": "exec", "command": ["ls"], "tty": True, "rows": 0}, "rows"),
            ({"kind": "exec", "command": ["ls"], "tty": True, "term": "x\"y"}, "term"),
            ({"kind": "exec", "command": ["ls"], "env": {"LD_PRELOAD": "x"}}, "env"), ([], "object")]
    for body, word in rows:
        answer = world.client(world.mine).call("POST", f"/v1/jobs/{world.job}/tunnels", body)
        check(answer.status in (400, 403, 404), "%s: %d %s", str(body)[:80], answer.status, answer.text[:200])
        check(word in answer.text, "%s: the sentence does not say what is wrong: %s", str(body)[:80], answer.text[:200])
    check(world.client(world.mine).get("/v1/tunnels").json["tunnels"] == [], "what was refused is there")
    # What a command would draw on a terminal is escaped where it is kept.
    world.client(world.mine).call("DELETE", "/v1/tunnels/" + world.open(body={"kind": "exec", "command": ["\x1b]0;owned\x07"]}))
    rows = world.client(world.mine, "admin").get("/v1/audit?what=job.exec&limit=2").text
    check("\\u001b" in rows.lower() and "\x1b" not in rows, "the audit log: %s", rows)


def crowds(world):
    """Half-open ones are counted, refused, and forgotten; others go on."""
    answers = [world.ask() for _ in range(60)]
    done = [a for a in answers if a.status == 201]
    check(len(done) == 40 and answers[-1].status == 429, "of 60 tunnels %d were opened, then %d", len(done), answers[-1].status)
    check("tunnels" in answers[-1].text, "the sentence: %s", answers[-1].text)
    for a in done:
        world.client(world.mine).call("DELETE", "/v1/tunnels/" + a.json["id"])
    tunnel = world.open()
    lines = [world.connect(tunnel) for _ in range(50)]
    answered = []

    def told():
        """Which of them are one too many is the order in which they were read, and not that in which they came."""
        for l in lines:
            if l not in answered and select.select([l.sock], [], [], 0)[0]:
                answered.append(l)
        return len(answered) >= 11
    world.stintd.wait(told, "11 of 50 lines are refused")
    check([l.answer() in (409, 429) for l in answered[:11]] == [True] * 11, "of 50 lines: %s", [l.status for l in answered])
    check(world.client(world.mine).get("/v1/jobs").status == 200, "the tenant itself is shut out")
    check(world.owner.get("/v1/jobs").status == 200, "others are shut out")
    world.client(world.mine).call("DELETE", "/v1/tunnels/" + tunnel)
    for l in [l for l in lines if l not in answered[:11]]:
        check(l.answer() in (409, 503), "a line whose tunnel ended: %d", l.status)
    world.stintd.wait(lambda: world.ask().status == 201, "there is room again")
    for t in world.client(world.mine).get("/v1/tunnels").json["tunnels"]:
        world.client(world.mine).call("DELETE", "/v1/tunnels/" + t["id"])


def one_that_does_not_read(world):
    slow, fast = world.open(), world.open()
    deaf, writes, _ = world.pair(slow)
    client, agent, _ = world.pair(fast)
    writes.sock.settimeout(0.5)
    sent = 0
    try:
        while sent < 64 << 20:
            sent += writes.sock.send(b"x" * 65536)
    except TimeoutError:
        pass
    check(sent < 64 << 20, "all of it went somewhere")
    agent.sock.sendall(b"y" * 100000)
    check(client.hear(100000) == b"y" * 100000, "the one beside it is held up")
    used = int(open(f"/proc/{world.stintd.process.pid}/statm").read().split()[1]) * 4096
    check(used < 512 << 20, "stintd has grown to %d bytes", used)
    for tunnel in (slow, fast):
        world.client(world.mine).call("DELETE", "/v1/tunnels/" + tunnel)
    check(deaf.ended() and client.ended() and agent.ended(), "they go on")


def revoked(world):
    made = token(world.owner, world.mine, "member", "member")
    world.tokens[world.mine, "brief"] = made
    tunnel = world.open(role="brief")
    client = world.connect(tunnel, role="brief")
    agent = world.dial(world.told()[0]["id"])
    check(client.answer() == 101, "not joined")
    ends = []
    watch = threading.Thread(target=lambda: ends.append(client.ended()))
    watch.start()
    world.owner.call("DELETE", "/v1/tokens/" + made["id"])
    watch.join(20)
    check(ends and agent.ended(), "it outlives its token")
    world.stintd.wait(lambda: "revoked" in world.owner.get("/v1/audit?what=job.forward.end&limit=5").text, "the audit log says why")


def over(world):
    tunnel = world.open()
    client, agent, _ = world.pair(tunnel)
    waiting = world.connect(tunnel)
    world.client(world.mine).call("DELETE", "/v1/jobs/" + world.job)
    check(client.ended() and agent.ended(), "it outlives its job")
    check(waiting.answer() == 409, "one that waits: %d", waiting.status)
    check(world.ask().status == 409, "a job that is over is entered")


def run(program):
    stintd = Stintd(program, config=CONFIG)
    rows = (joined, nodes_that_want_more, strangers, bad_orders, crowds, one_that_does_not_read, revoked, over)
    try:
        world = World(stintd)
        for row in rows:
            row(world)
    finally:
        stintd.stop()
    print(f"{len(rows)} groups of attempts hold")


if __name__ == "__main__":
    main(run)
