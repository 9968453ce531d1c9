"""A real stintd on loopback for tests, and a client that shows every byte of an answer.

Standard library only. Tests get the program's path as their first argument.
"""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time


class Failure(Exception):
    pass


def check(ok, sentence, *args):
    if not ok:
        raise Failure(sentence % args if args else sentence)


class Answer:
    """Status, headers and body as they came."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.body)

    def header(self, name):
        for key, value in self.headers:
            if key.lower() == name.lower():
                return value
        return None

    @property
    def code(self):
        return self.json.get("code") if self.body[:1] == b"{" else None


class Client:
    """One token's calls, over one connection that is kept."""

    def __init__(self, port, token=None):
        self.port, self.token, self.conn = port, token, None
        self.source = None  # the address to come from

    def call(self, method, path, body=None, headers=None, kind="application/json"):
        send = dict(headers or {})
        if self.token is not None:
            send["Authorization"] = "Bearer " + self.token
        if body is not None:
            if not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            if isinstance(body, str):
                body = body.encode()
            send["Content-Type"] = kind
        for again in (True, False):
            if self.conn is None:
                self.conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60,
                                                       source_address=self.source and (self.source, 0))
            try:
                self.conn.request(method, path, body=body, headers=send)
                answer = self.conn.getresponse()
                return Answer(answer.status, answer.getheaders(), answer.read())
            except (http.client.HTTPException, ConnectionError):
                self.conn.close()
                self.conn = None
                if not again:
                    raise

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def post(self, path, body, **more):
        return self.call("POST", path, body, **more)

    def make(self, path, body):
        answer = self.post(path, body)
        check(answer.status in (200, 201), "POST %s: %d %s", path, answer.status, answer.text)
        return answer.json

    def close(self):
        if self.conn:
            self.conn.close()
            self.conn = None


class Stream:
    """An event stream, read in the background until it is closed."""

    def __init__(self, port, token, path="/v1/events", last=None):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=60)
        head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        if last:
            head += f"Last-Event-ID: {last}\r\n"
        self.sock.sendall((head + "\r\n").encode())
        self.raw = b""
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        try:
            while True:
                got = self.sock.recv(65536)
                if not got:
                    return
                with self.lock:
                    self.raw += got
        except OSError:
            pass

    def bytes(self):
        with self.lock:
            return self.raw

    def events(self):
        """(id, event, data) of each complete event so far."""
        found = []
        text = self.bytes().decode("utf-8", "replace").replace("\r\n", "\n")
        for block in re.split(r"\n\n", text):
            row = {}
            for line in block.split("\n"):
                key, colon, value = line.partition(": ")
                if colon and key in ("id", "event", "data"):
                    row[key] = value
            if "event" in row:
                found.append((row.get("id"), row["event"], row.get("data")))
        return found

    def wait(self, until, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if until(self):
                return True
            time.sleep(0.02)
        return False

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()


class Stintd:
    def __init__(self, program, sample=False, config="", files=None, more=""):
        self.dir = tempfile.mkdtemp(prefix="stintd-test-")
        self.log = os.path.join(self.dir, "log")
        conf = os.path.join(self.dir, "config.yaml")
        with open(conf, "w") as f:
            f.write("listen: 127.0.0.1:0\n" + (config or "rate: 1000000\n") + more.replace("{dir}", self.dir))
        for name, text in (files or {}).items():  # programs of the site
            with open(os.path.join(self.dir, name), "w") as f:
                f.write(text)
            os.chmod(f.name, 0o755)
        args = [program, "--config", conf, "--data", os.path.join(self.dir, "data")]
        if sample:
            args.append("--sample")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=log)
        self.port = self._port()
        with open(os.path.join(self.dir, "data", "owner.token")) as f:
            self.owner_token = f.read().strip()
        self.socket = os.path.join(self.dir, "data", "stintd.sock")
        self.owner = Client(self.port, self.owner_token)

    def _port(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with open(self.log) as f:
                found = re.search(r"event=listening .*port=(\d+)", f.read())
            if found:
                return int(found.group(1))
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        with open(self.log) as f:
            raise Failure("stintd did not start: " + f.read())

    def again(self, program, running=True):
        """Ends it and starts it on the same store; clients from before have the old port."""
        self.owner.close()
        if running:
            self.process.send_signal(signal.SIGTERM)
            check(self.process.wait(60) == 0, "stintd did not end well")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([program, "--config", os.path.join(self.dir, "config.yaml"), "--data",
                                             os.path.join(self.dir, "data")], stdout=subprocess.DEVNULL, stderr=log)
        self.port = self._port()
        self.owner = Client(self.port, self.owner_token)

    def client(self, token=None):
        return Client(self.port, token)

    def rss_kib(self):
        """(now, the most so far)"""
        with open(f"/proc/{self.process.pid}/status") as f:
            text = f.read()
        return tuple(int(re.search(key + r":\s+(\d+)", text).group(1)) for key in
                     ("VmRSS", "VmHWM"))

    def wait(self, until, sentence, seconds=60):
        end = time.monotonic() + seconds
        while not until():
            check(time.monotonic() < end, "it did not come true: " + sentence)
            time.sleep(0.02)

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        """Ends it and says how it ended."""
        self.owner.close()
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        with open(self.log) as f:
            log = f.read()
        shutil.rmtree(self.dir, ignore_errors=True)
        check(status == 0, "stintd ended with %d:\n%s", status, log[-4000:])


def token(owner, account, user, role, **more):
    body = {"user": user, "role": role, **more}
    if account:
        body["account"] = account
    return owner.make("/v1/tokens", body)


def fleet(owner, nodes=4, gpus=8):
    owner.make("/v1/types", {"name": "h100"})
    owner.make("/v1/pools", {"name": "main", "allow": ["host-image"]})
    for i in range(nodes):
        owner.make(
            "/v1/nodes",
            {"name": f"n{i:02d}", "pool": "main", "gpu": "h100", "gpus": gpus, "rack": f"r{i // 2}"},
        )


def sanitized(program):
    """A build with sanitizers is slow and large; bounds on memory do not hold there."""
    with open(program, "rb") as f:
        text = f.read()
    return b"__asan_init" in text or b"__tsan_init" in text


def main(run):
    """Runs a test with the program's path, and turns failures into one line and a status."""
    if len(sys.argv) < 2:
        sys.exit("usage: TEST PATH-OF-STINTD")
    try:
        run(sys.argv[1])
    except Failure as failure:
        print("FAILED:", failure)
        sys.exit(1)
