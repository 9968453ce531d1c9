"""A node by hand: it has a key, proves itself as doc/dev/agent-protocol.md says, and says what a test wants.

Ed25519 (RFC 8032) is written here with nothing but Python's integers: slow, and enough for tests.
"""

import hashlib
import json
import os
import time

from harness import Client

P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):
    """The sum of two points, in extended coordinates."""
    x = (a[1] - a[0]) * (b[1] - b[0]) % P
    y = (a[1] + a[0]) * (b[1] + b[0]) % P
    t = 2 * a[3] * b[3] * D % P
    z = 2 * a[2] * b[2] % P
    e, f, g, h = y - x, z - t, z + t, y + x
    return e * f % P, g * h % P, f * g % P, e * h % P


def base_point():
    y = 4 * pow(5, P - 2, P) % P
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    x = P - x if x & 1 else x
    return x, y, 1, x * y % P


# The base point doubled again and again: a product is a sum of some of these.
POWERS = [base_point()]
for _ in range(255):
    POWERS.append(add(POWERS[-1], POWERS[-1]))


def times_base(n):
    at = (0, 1, 1, 0)
    for bit in range(n.bit_length()):
        if n >> bit & 1:
            at = add(at, POWERS[bit])
    inverse = pow(at[2], P - 2, P)
    x, y = at[0] * inverse % P, at[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


class Key:
    """A key pair from its seed; without one, a new one."""

    def __init__(self, seed=None):
        self.seed = seed or os.urandom(32)
        h = hashlib.sha512(self.seed).digest()
        self.scalar = int.from_bytes(h[:32], "little") & (2**254 - 8) | 2**254
        self.prefix = h[32:]
        self.public = times_base(self.scalar)

    def sign(self, message):
        r = int.from_bytes(hashlib.sha512(self.prefix + message).digest(), "little") % Q
        point = times_base(r)
        k = int.from_bytes(hashlib.sha512(point + self.public + message).digest(), "little") % Q
        return point + ((r + k * self.scalar) % Q).to_bytes(32, "little")


class Node:
    """What an agent is to stintd. Each call is on a connection of its own, with a fresh proof."""

    def __init__(self, port, name, machine=None, key=None, **said):
        self.port, self.name, self.machine = port, name, machine or name + "-machine"
        self.key = key or Key()
        self.boot = os.urandom(32).hex()
        self.session, self.n = "00" * 16, 0
        self.epoch = self.revision = 0
        self.said = {"cpu": 64, "ram": "512Gi", **said}

    def copy(self):
        """Another agent with a copy of this one's folder."""
        twin = Node(self.port, self.name, self.machine, self.key, **self.said)
        twin.epoch = self.epoch
        return twin

    def proof(self, method, target, body=b"", session=None, n=None, **other):
        """The proof of a message; what is given replaces what would be true."""
        if n is None:
            self.n += 1
            n = self.n
        digest = hashlib.blake2b(method.encode() + b"\n" + target.encode() + b"\n" + body, digest_size=32).hexdigest()
        name = other.get("name", self.name).encode().hex()
        text = f"node1.{name}.{other.get('boot', self.boot)}.{session or self.session}.{n}.{digest}"
        return text + "." + other.get("key", self.key).sign(text.encode()).hex()

    def call(self, method, target, doc=None, proof=None, raw=None, **headers):
        """An answer; `doc` goes as JSON, `raw` as bytes."""
        body = raw if raw is not None else b"" if doc is None else json.dumps(doc).encode()
        proof = proof or self.proof(method, target, body)
        kind = "application/octet-stream" if raw is not None else "application/json"
        return Client(self.port, proof).call(method, target, body or None, headers=headers, kind=kind)

    def challenge(self):
        return Client(self.port, None).get("/v1/agent/challenge").json["challenge"]

    def registration(self, **more):
        return {"name": self.name, "machine_id": self.machine, "key": self.key.public.hex(), **self.said, **more}

    def register(self, token=None, challenge=None, doc=None, proof=None, **more):
        """Registers by its key, or with a token as well."""
        body = json.dumps(doc if doc is not None else self.registration(**more)).encode()
        challenge = challenge or self.challenge()
        proof = proof or self.proof("POST", "/v1/agent/register", body, session=challenge, n=0)
        headers = {"Stint-Proof": proof} if token else {}
        answer = Client(self.port, token or proof).call("POST", "/v1/agent/register", body, headers=headers)
        if answer.status in (200, 201):
            self.session, self.n, self.epoch = answer.json["session"], 0, answer.json["epoch"]
        return answer

    def status(self, tasks=(), **more):
        return self.call("POST", "/v1/agent/status", {
            "epoch": self.epoch, "revision": self.revision, "now_ms": int(time.time() * 1000),
            "node": {"health": "ok"}, "tasks": list(tasks), **more})

    def desired(self, wait=0):
        """Its list, or None when there is nothing new."""
        answer = self.call("GET", f"/v1/agent/desired?revision={self.revision}&wait={wait}")
        if answer.status == 200:
            self.revision = answer.json["revision"]
        return answer.json if answer.status == 200 else None
