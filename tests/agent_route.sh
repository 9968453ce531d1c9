#!/bin/sh
# A service's route with what notebooks and models need: WebSockets, bodies of any length, answers that stream; within the
# quotas of the account. And what clients and replicas can try with these: other protocols, split and endless requests, bodies
# that are not as long as they say, tokens that are revoked meanwhile. With a real container. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
start_native
start_agent n1
node_becomes n1 ready

cat >"$tmp/serve.py" <<'END'
import base64, hashlib, os, socket, socketserver, struct, time
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
last = []
class Handler(socketserver.StreamRequestHandler):
    def head(self):
        line = self.rfile.readline().decode("latin-1").strip()
        headers = []
        while (h := self.rfile.readline().decode("latin-1").strip()):
            headers.append(tuple(h.split(": ", 1)))
        return line, headers
    def body(self, headers):
        h = {k.lower(): v for k, v in headers}
        if h.get("transfer-encoding") == "chunked":
            while n := int(self.rfile.readline(), 16):
                left = n
                while left:
                    b = self.rfile.read(min(left, 65536))
                    if not b:
                        raise EOFError
                    left -= len(b)
                    yield b
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(h.get("content-length", "0"))
        while left:
            b = self.rfile.read(min(left, 65536))
            if not b:
                raise EOFError
            left -= len(b)
            yield b
    def send(self, data):
        self.wfile.write(data)
        self.wfile.flush()
    def answer(self, text, status="200 OK"):
        self.send(f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
    def frame(self, op, data):
        n = len(data)
        head = bytes([0x80 | op, n]) if n < 126 else bytes([0x80 | op, 126]) + struct.pack(">H", n) if n < 65536 \
            else bytes([0x80 | op, 127]) + struct.pack(">Q", n)
        return head + data
    def websocket(self, h):
        accept = base64.b64encode(hashlib.sha1(h["sec-websocket-key"].encode() + GUID).digest()).decode()
        self.send(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\nSet-Cookie: a=b\r\n"
                  f"Sec-WebSocket-Protocol: {h.get('sec-websocket-protocol', 'none').split(',')[0]}\r\n"
                  f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode() + self.frame(1, b"hello"))
        while True:
            two = self.rfile.read(2)
            if len(two) < 2:
                last.append("left")
                return
            op, n = two[0] & 15, two[1] & 127
            if n == 126:
                n = struct.unpack(">H", self.rfile.read(2))[0]
            elif n == 127:
                n = struct.unpack(">Q", self.rfile.read(8))[0]
            mask = self.rfile.read(4)
            data = self.rfile.read(n)
            k = int.from_bytes((mask * (n // 4 + 1))[:n], "big") ^ int.from_bytes(data, "big") if n else 0
            self.send(self.frame(op, k.to_bytes(n, "big")))
            if op == 8:
                return
    def handle(self):
        line, headers = self.head()
        method, path, _ = line.split(" ")
        h = {k.lower(): v for k, v in headers}
        if path == "/ws":
            if h.get("upgrade") != "websocket":
                return self.answer(f"no upgrade: {sorted(h)}")
            self.websocket(h)
        elif path == "/h2c":
            self.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nPRI * HTTP/2.0")
        elif path == "/noaccept":
            self.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        elif path == "/twice":
            self.send(b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: a\r\nSec-WebSocket-Accept: b\r\n\r\n")
        elif path == "/length":
            self.send(b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: a\r\nContent-Length: 5\r\n\r\nabcde")
        elif path == "/sink":
            n, s = 0, hashlib.sha256()
            try:
                for b in self.body(headers):
                    n += len(b)
                    s.update(b)
            except (EOFError, ValueError, ConnectionError):
                last.append(f"cut after {n}")
                return
            last.append(f"whole {n}")
            self.answer(f"{n} {s.hexdigest()}")
        elif path == "/last":
            self.answer(" ".join(last))
        elif path == "/echo":
            self.answer(repr((method, headers, b"".join(self.body(headers))[:100])))
        elif path == "/early":
            self.answer("no, thank you", "413 Too much")
        elif path == "/deaf":
            time.sleep(600)
        elif path == "/sse":
            self.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            for i in range(1000):
                self.send(b"data: %d\n\n" % i)
                time.sleep(0.2)
        elif path == "/big":
            self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for i in range(320):
                self.send(b"10000\r\n" + bytes([i & 255]) * 65536 + b"\r\n")
            self.send(b"0\r\n\r\n")
        elif path == "/lies":
            self.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
        else:
            self.answer("nothing", "404 Not Found")
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
Server(("127.0.0.1", int(os.environ["STINT_PORT"])), Handler).serve_forever()
END

cat >"$tmp/client.py" <<'END'
import base64, hashlib, http.client, os, socket, struct, subprocess, sys, threading, time
port, pid, stint = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
tokens = dict(zip(("ann", "eve", "app", "vic"), sys.argv[4:]))
ROUTE = "/v1/services/web/call"
def expect(ok, *what):
    if not ok:
        print("FAILED:", *what)
        os._exit(1)
def call(path, who="ann", method="GET", body=None, **headers):
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    conn.request(method, ROUTE + path, body=body, headers={"Authorization": "Bearer " + tokens[who], **headers})
    answer = conn.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()
def raw(text, who="ann"):
    """What is sent as it is; @ is the route, and the token is added."""
    s = socket.create_connection(("127.0.0.1", port), timeout=60)
    head, _, body = text.partition(b"\r\n\r\n")
    s.sendall(head.replace(b"@", ROUTE.encode()) + b"\r\nHost: x\r\nAuthorization: Bearer " + tokens[who].encode() + b"\r\n\r\n" + body)
    return s
def read_head(s):
    head = b""
    while b"\r\n\r\n" not in head:
        b = s.recv(1)
        if not b:
            break
        head += b
    return int(head.split()[1]) if head else 0, head.decode("latin-1")
def ended(s, seconds=15):
    s.settimeout(seconds)
    try:
        while s.recv(65536):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False
KEY = base64.b64encode(b"0123456789abcdef").decode()
def upgrade(path="/ws", who="ann", more="", to="websocket", method="GET"):
    s = raw(f"{method} @{path} HTTP/1.1\r\nConnection: keep-alive, Upgrade\r\nUpgrade: {to}\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {KEY}\r\nOrigin: http://evil.example\r\nCookie: a=b{more}\r\n\r\n".encode(), who)
    return (s, *read_head(s))
class Socket:
    def __init__(self, s):
        self.s, self.f = s, s.makefile("rb")
    def send(self, op, data):
        n, mask = len(data), os.urandom(4)
        head = bytes([0x80 | op, 0x80 | n]) if n < 126 else bytes([0x80 | op, 254]) + struct.pack(">H", n) if n < 65536 \
            else bytes([0x80 | op, 255]) + struct.pack(">Q", n)
        k = (int.from_bytes((mask * (n // 4 + 1))[:n], "big") ^ int.from_bytes(data, "big")).to_bytes(n, "big") if n else b""
        self.s.sendall(head + mask + k)
    def recv(self):
        two = self.f.read(2)
        if len(two) < 2:
            return None, b""
        n = two[1]
        n = struct.unpack(">H", self.f.read(2))[0] if n == 126 else struct.unpack(">Q", self.f.read(8))[0] if n == 127 else n
        return two[0] & 15, self.f.read(n)
def rss():
    return int(open(f"/proc/{pid}/statm").read().split()[1]) * 4096

def websockets():
    s, status, head = upgrade(more="\r\nSec-WebSocket-Protocol: v1.kernel, other")
    expect(status == 101 and "Sec-WebSocket-Protocol: v1.kernel" in head, head)
    accept = base64.b64encode(hashlib.sha1(KEY.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
    expect("Sec-WebSocket-Accept: " + accept in head and "Set-Cookie" not in head, head)
    w = Socket(s)
    expect(w.recv() == (1, b"hello"), "what came with the handshake")
    for op, data in ((1, b"a"), (2, os.urandom(70000)), (2, os.urandom(3 << 20)), (9, b"ping"), (1, b"")):
        t = threading.Thread(target=w.send, args=(op, data))
        t.start()
        expect(w.recv() == (op, data), "an echo of", len(data))
        t.join()
    w.send(8, struct.pack(">H", 1000))
    expect(w.recv() == (8, struct.pack(">H", 1000)), "the close")
    expect(ended(s), "it goes on after its close")
    # Many at a time, and one that reads nothing holds up none of them.
    ws = [Socket(upgrade()[0]) for _ in range(20)]
    deaf = ws.pop()
    def fill():
        try:
            for _ in range(200):
                deaf.send(2, b"x" * 65536)
        except OSError:
            pass
    threading.Thread(target=fill, daemon=True).start()
    for i, w in enumerate(ws):
        expect(w.recv() == (1, b"hello"), "hello")
        w.send(1, b"%d" % i)
    for i, w in enumerate(ws):
        expect(w.recv() == (1, b"%d" % i), "an echo of", i)
        w.s.close()
    deaf.s.shutdown(socket.SHUT_RDWR)
def switches():
    """Nothing but a WebSocket, and only when the replica says so in one way."""
    for to in ("h2c", "TLS/1.0", "stint-tunnel", "websocketx"):
        s, status, head = upgrade(to=to)
        body = s.recv(65536)
        expect(status == 200 and b"no upgrade" in body and b"'upgrade'" not in body and b"http2" not in body, to, head, body)
    s, status, head = upgrade(to="h2c, websocket")
    expect(status == 101, head)
    for path in ("/h2c", "/noaccept", "/twice", "/length"):
        s, status, head = upgrade(path)
        expect(status == 503 and "Upgrade" not in head.split("\r\n\r\n")[0].replace("Upgrade-", ""), path, head)
        expect(call(path)[0] == 503, path, "without being asked")
    s, status, head = upgrade("/echo")
    body = s.recv(65536)
    expect(status == 200 and b"evil" not in body and b"Cookie" not in body and b"Bearer" not in body, body)
    s, status, head = upgrade("/ws", method="HEAD")
    expect(status == 200, "HEAD", head)
    # With a body it is a request like any other.
    s = raw(f"POST @/echo HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: {KEY}\r\nContent-Length: 3\r\n\r\nabc".encode())
    status, head = read_head(s)
    body = s.recv(65536)
    expect(status == 200 and b"Upgrade" not in body and b"b'abc'" in body, status, body)
    expect(upgrade(who="eve")[1] == 404 and upgrade(who="vic")[1] == 403 and upgrade(who="app")[1] == 101, "who may")
def splits():
    """One request is one request."""
    for head in (b"GET @/echo?a\rX-Evil: 1 HTTP/1.1", b"GET @/echo?a\tb HTTP/1.1", b"GET @/echo?a\x01b HTTP/1.1", b"GET @/ec\x7fho HTTP/1.1",
                 b"GET @/echo HTTP/1.1\r\nX-A: b\rX-Evil: 1", b"GET @/echo HTTP/1.1\r\nX-A: b\n\tX-Evil: 1", b"GET @/echo HTTP/1.1\r\nX-A : b",
                 b"POST @/echo HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked",
                 b"POST @/echo HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3", b"POST @/echo HTTP/1.1\r\nContent-Length: -1",
                 b"POST @/echo HTTP/1.1\r\nContent-Length: 3x", b"POST @/echo HTTP/1.1\r\nContent-Length: 99999999999999999999",
                 b"POST @/echo HTTP/1.1\r\nTransfer-Encoding: xchunked", b"POST @/echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x",
                 b"GET http://169.254.169.254@/echo HTTP/1.1", b"CONNECT 10.0.0.1:80 HTTP/1.1"):
        s = raw(head + b"\r\n\r\nabc")
        s.settimeout(20)
        try:
            status, text = read_head(s)
            text += s.recv(65536).decode("latin-1")
        except ConnectionError:
            status, text = 0, ""
        # A line that is folded is one header, as HTTP has it; what it says is not a header of its own.
        expect(status in (0, 400, 404, 405, 413, 501) or (status == 200 and "'X-Evil'" not in text), head, status, text)
        s.close()
    # What stands behind a request is another one, of whoever sends it, and not part of this one.
    s = raw(b"POST @/echo HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /v1/whoami HTTP/1.1\r\nHost: x\r\n\r\n")
    got = b""
    s.settimeout(5)
    try:
        while b := s.recv(65536):
            got += b
    except (TimeoutError, ConnectionError):
        pass
    expect(b"b'abc'" in got and b"whoami" not in got.split(b"b'abc'")[0], got)
    # Chunks that are none: the replica never sees a whole body.
    for chunks in (b"5\r\nabc\r\n0\r\n\r\n", b"zz\r\nabc\r\n", b"-1\r\n", b"3\r\nabcX\r\n0\r\n\r\n", b"fffffffffffffffff\r\nabc"):
        s = raw(b"POST @/sink HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
        s.shutdown(socket.SHUT_WR)
        s.settimeout(20)
        try:
            status, text = read_head(s)
        except ConnectionError:
            status, text = 0, ""
        expect(status != 200, chunks, status, text)
        s.close()
    expect(b"whole" not in call("/last")[2], call("/last")[2])
def bodies():
    data = os.urandom(1 << 20) * 24
    want = f"{len(data)} {hashlib.sha256(data).hexdigest()}".encode()
    before = rss()
    expect(call("/sink", method="POST", body=data)[2] == want, "24 MiB of a known length")
    expect(call("/sink", method="PUT", body=iter([data[i:i + 100001] for i in range(0, len(data), 100001)]))[2] == want, "24 MiB in chunks")
    got = []
    threads = [threading.Thread(target=lambda: got.append(call("/sink", method="POST", body=data)[2])) for _ in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    expect(got == [want] * 6, "six at a time")
    expect(rss() - before < 48 << 20, "stintd grew by", rss() - before)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        expect(call("/sink", method=method, body=b"x" * 10)[2].startswith(b"10 "), method)
    expect(call("/sink", method="POST")[2].startswith(b"0 "), "none")
    status, _, text = call("/early", method="POST", body=b"x" * 300000)
    expect((status, text) == (413, b"no, thank you"), "an answer before the body was read", status, text)
    # One that reads nothing: its client is held up, stintd holds little, and others go on.
    before = rss()
    s = raw(b"POST @/deaf HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n")
    s.settimeout(1)
    sent = 0
    try:
        while sent < 200 << 20:
            sent += s.send(b"y" * 65536)
    except TimeoutError:
        pass
    expect(sent < 100 << 20, "a replica that reads nothing took", sent)
    expect(rss() - before < 16 << 20, "stintd grew by", rss() - before)
    expect(call("/sink", method="POST", body=data)[2] == want, "beside one that is held up")
    s.close()
    # One that goes in the middle: the replica sees that it is not whole.
    s = raw(b"POST @/sink HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" + b"z" * 300000)
    s.close()
    until = time.time() + 20
    while b"cut after" not in call("/last")[2]:
        expect(time.time() < until, "half a body:", call("/last")[2])
        time.sleep(0.2)
def answers():
    n, s = 0, hashlib.sha256()
    text = call("/big")[2]
    expect(text == b"".join(bytes([i & 255]) * 65536 for i in range(320)), "20 MiB in chunks:", len(text))
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    conn.request("GET", ROUTE + "/sse", headers={"Authorization": "Bearer " + tokens["ann"], "Accept": "text/event-stream"})
    answer, began = conn.getresponse(), time.monotonic()
    expect(answer.read(9) == b"data: 0\n\n" and answer.read(9) == b"data: 1\n\n", "events")
    expect(answer.getheader("Content-Type") == "text/event-stream", answer.getheaders())
    expect(time.monotonic() - began < 20, "events come late")
    conn.close()
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    conn.request("GET", ROUTE + "/lies", headers={"Authorization": "Bearer " + tokens["ann"]})
    try:
        text = conn.getresponse().read()
        expect(False, "an answer shorter than it says was handed on as whole:", text)
    except (http.client.IncompleteRead, ConnectionError):
        pass
def quotas():
    """service_calls 4, service_bytes 1,000,000."""
    until = time.time() + 20
    while True: # what the parts before left open is noticed soon
        ws = [upgrade() for _ in range(4)]
        if [w[1] for w in ws] == [101] * 4:
            break
        expect(time.time() < until, [w[1] for w in ws])
        [w[0].close() for w in ws]
        time.sleep(0.5)
    expect(upgrade()[1] == 429 and call("/last")[0] == 429, "a fifth")
    expect(call("/last", "eve")[0] == 404, "another tenant is shut out")
    ws.pop()[0].close()
    until = time.time() + 20
    while call("/last")[0] != 200:
        expect(time.time() < until, "one that has left is counted still")
        time.sleep(0.1)
    for w in ws:
        w[0].close()
    while call("/last")[0] != 200:
        time.sleep(0.1)
    time.sleep(0.3)
    expect(call("/sink", method="POST", body=b"x" * 900000)[0] == 200, "within it")
    status, _, text = call("/sink", method="POST", body=b"x" * 1000001)
    expect(status == 429 and b"service_bytes" in text, status, text)
    # Of a length that nobody says: refused when it is too much.
    try:
        status, _, text = call("/sink", method="POST", body=iter([b"x" * 65536] * 40))
        expect(status in (429, 503), "in chunks", status, text)
    except ConnectionError:
        pass
    until = time.time() + 20
    while call("/sink", method="POST", body=b"x" * 900000)[0] != 200:
        expect(time.time() < until, "what is over is counted still")
        time.sleep(0.1)
def revoked():
    """All that a token has open ends with it."""
    made = subprocess.run([stint, "token", "create", "--account", "acme", "--user", "brief", "--role", "caller", "-o", "json"],
                          capture_output=True, text=True, check=True, env={**os.environ, "STINT_TOKEN": os.environ["OWNER"]}).stdout
    import json
    made = json.loads(made)
    tokens["brief"] = made.get("token") or made.get("secret") or made["text"]
    w, status, head = upgrade(who="brief")
    expect(status == 101, head)
    stream = raw(b"GET @/sse HTTP/1.1\r\n\r\n", "brief")
    expect(read_head(stream)[0] == 200, "a stream")
    up = raw(b"POST @/sink HTTP/1.1\r\nContent-Length: 1000000\r\n\r\nabc", "brief")
    waits = raw(b"GET @/deaf HTTP/1.1\r\n\r\n", "brief")
    time.sleep(0.5)
    subprocess.run([stint, "token", "revoke", str(made["id"])], check=True, capture_output=True, env={**os.environ, "STINT_TOKEN": os.environ["OWNER"]})
    for what, s in (("a WebSocket", w), ("a stream", stream), ("a body", up), ("one that waits", waits)):
        s.settimeout(15)
        try:
            while b := s.recv(65536):
                if b" 503 " in b[:20] or b" 401 " in b[:20]:
                    break
        except ConnectionError:
            pass
        except TimeoutError:
            expect(False, what, "outlives its token")
def leaves():
    """The replica ends: so does what leads there."""
    s, status, head = upgrade()
    expect(status == 101, head)
    print("open", flush=True)
    expect(ended(s, 40), "it outlives its replica")
globals()[os.environ["PART"]]()
END
owner=$STINT_TOKEN
export OWNER="$owner"
part() {
    ran=$((ran + 1))
    PART=$1 timeout 120 python3 "$tmp/client.py" "$port" "$stintd_pid" "$stint" "$ann" "$eve" "$app" "$vic" >"$tmp/part" 2>&1 ||
        fail "$1: $(tail -n 30 "$tmp/part")"
}
token_of() {
    try 0 '^stint_' token create --account "$1" --user "$2" --role "$3"
    sed -n 's/.*\(stint_[^ ]*\).*/\1/p' "$tmp/out"
}
ann=$(token_of acme ann member)
eve=$(token_of other eve member)
app=$(token_of acme app caller)
vic=$(token_of acme vic viewer)
export STINT_TOKEN="$ann"
try 0 'is created' service create web --port 8080 --health tcp --interval 1s --wait 1s --drain 1s \
    --gpus 0 --cpu 1 --ram 512Mi -- python3 -c "$(cat "$tmp/serve.py")"
ready() { "$stint" service show web | grep -q 'Ready  *1/1'; }
ran=$((ran + 1))
wait_for ready || wait_for ready || fail "$("$stint" service show web)"
for p in splits websockets switches answers revoked; do
    part "$p"
done
STINT_TOKEN=$owner try 0 '' account limit acme service_calls=4 service_bytes=1000000
part quotas
STINT_TOKEN=$owner try 0 '' account limit acme service_calls=none service_bytes=none
part bodies
PART=leaves timeout 60 python3 "$tmp/client.py" "$port" "$stintd_pid" "$stint" "$ann" "$eve" "$app" "$vic" >"$tmp/open" 2>&1 &
pid=$!
wait_for grep -q open "$tmp/open"
try 0 'being removed' service remove web
ran=$((ran + 1))
wait "$pid" || fail "$(cat "$tmp/open")"
done_testing
