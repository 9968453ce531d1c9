#!/bin/sh
# A service with real containers: requests reach its replicas through stintd, and nothing else does; replicas that are not
# healthy are replaced, new ones take over before old ones go, and requests that are open are waited for. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
start_native
start_agent n1
start_agent n2
node_becomes n1 ready
node_becomes n2 ready

cat >"$tmp/serve.py" <<'END'
import http.server, os, socketserver, threading, time
me, sick = os.environ["STINT_REPLICA"], []
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def say(self, text, status=200, **more):
        body = text.encode()
        self.send_response(status)
        for key, value in {"Content-Type": "text/html", "Content-Length": str(len(body)), **more}.items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
    def raw(self, data):
        self.wfile.write(data)
        self.close_connection = True
    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/health":
            self.say("sick" if sick else "well", 500 if sick else 200)
        elif path == "/who":
            self.say(me + " " + os.environ.get("VERSION", "1"))
        elif path == "/headers":
            self.say(str(self.headers) + self.path, Set_Cookie="evil=1", X_Mine="yes", Clear_Site_Data="*",
                     Access_Control_Allow_Origin="*", Connection="X-Mine")
        elif path == "/slow":
            time.sleep(1.5)
            self.say(me)
        elif path == "/sick":
            sick.append(1)
            self.say(me)
        elif path == "/away":
            self.say("", 302, Location="http://evil.example/")
        elif path == "/login":
            self.say("", 302, Location="/who")
        elif path == "/smuggle":
            self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        elif path == "/split":
            self.raw(b"HTTP/1.1 200 OK\r\nX-A: b\rSet-Cookie: c=d\r\nContent-Length: 0\r\n\r\n")
        elif path == "/huge":
            self.raw(b"HTTP/1.1 200 OK\r\nX-A: " + b"x" * 100000 + b"\r\n\r\n")
        elif path == "/stream":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"5\r\nfirst\r\n")
            self.wfile.flush()
            time.sleep(0.7)
            self.wfile.write(b"4\r\nlast\r\n0\r\n\r\n")
        else:
            self.say("nothing", 404)
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.say("%s %d %s" % (self.path, len(body), body[:20].decode()), 201)
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
Server(("127.0.0.1", int(os.environ["STINT_PORT"])), Handler).serve_forever()
END

# What a client sees of it. Each function says what is wrong, or nothing.
cat >"$tmp/client.py" <<'END'
import http.client, json, os, sys, threading, time
port, tokens = int(sys.argv[1]), dict(zip(("ann", "eve", "app"), sys.argv[3:]))
def call(path, who="ann", method="GET", body=None, name="web", **headers):
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    if who:
        headers["Authorization"] = "Bearer " + tokens[who]
    conn.request(method, f"/v1/services/{name}/call{path}", body=body, headers=headers)
    answer = conn.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read().decode()
def expect(ok, *what):
    if not ok:
        print("FAILED:", *what)
        sys.exit(1)
def route():
    status, headers, text = call("/who")
    expect(status == 200 and text.split()[0] in ("1", "2"), "who", status, text)
    expect(headers.get("Content-Security-Policy") == "sandbox" and headers.get("X-Content-Type-Options") == "nosniff", headers)
    status, headers, text = call("/headers/../headers?a=b%20c&d", Cookie="stint=1", Connection="keep-alive", X_Own="mine",
                                 **{"X-Forwarded-For": "10.0.0.1", "X-Stint-User": "root", "X-Mine": "1", "Expect": ""})
    status, headers, text = call("/headers?a=b%20c&d", Cookie="stint=1", **{"X-Stint-User": "root", "X-Mine": "1"})
    expect(status == 200, "headers", status, text)
    for word in ("Bearer", "stint_", "Cookie", "root"):
        expect(word not in text, word, "reached the replica:", text)
    expect("X-Mine: 1" in text and "/headers?a=b%20c&d" in text and "X-Stint-User: ann" in text, text)
    for word in ("Set-Cookie", "Clear-Site-Data", "Access-Control-Allow-Origin"):
        expect(word not in headers, word, "came back:", headers)
    expect(headers.get("X-Mine") == "yes", headers)
    status, headers, text = call("/post/it?x=1", method="POST", body="the body" * 100)
    expect((status, text) == (201, "/post/it?x=1 800 the bodythe bodythe "), status, text)
    expect(call("/who", method="HEAD")[0] == 501, "HEAD of a server that has none")
    expect(call("/nowhere")[0] == 404, "its own 404")
    expect("Location" not in call("/away")[1], "it sends a client elsewhere")
    expect(call("/login")[1]["Location"] == "/v1/services/acme%2Fweb/call/who", "a redirect within")
    for path in ("/smuggle", "/split", "/huge"):
        status, headers, text = call(path)
        expect(status == 503 and "Set-Cookie" not in headers, path, status, headers)
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    conn.request("GET", "/v1/services/web/call/stream", headers={"Authorization": "Bearer " + tokens["ann"]})
    answer, began = conn.getresponse(), time.monotonic()
    expect(answer.read(5) == b"first", "the first part")
    expect(time.monotonic() - began < 0.6, "the first part came with the last")
    expect(answer.read() == b"last", "the last part")
def least():
    """Requests go where the fewest are."""
    got = []
    threads = [threading.Thread(target=lambda: got.append(call("/slow")[2])) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    expect(sorted(got.count(who) for who in set(got)) == [2, 2], "four at once went to", got)
def limits():
    """More at a time than the account may have: a refusal, and those that are open are not touched."""
    got = []
    threads = [threading.Thread(target=lambda: got.append(call("/slow")[0])) for _ in range(5)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    expect(sorted(got) == [200, 200, 429, 429, 429], "five at once, where two may be open", got)
def walls():
    for who, path, status in (("eve", "/who", 404), ("app", "/who", 200), (None, "/who", 401)):
        expect(call(path, who)[0] == status, who, path, call(path, who))
    expect(call("/who", "eve", name="acme%2Fweb")[0] == 404, "eve, by its full name")
    for name in ("never", "..", "acme%2F..%2Fweb", "web%00", "web%0d%0aX:y"):
        expect(call("/who", name=name)[0] in (400, 404), name)
    # The console's session is no token here.
    expect(call("/who", None, Cookie="stint_session=1; __Host-stint=1")[0] == 401, "a cookie")
def flow():
    """Requests all the time: until it is told to stop none fails."""
    seen, bad = [], []
    while not os.path.exists(sys.argv[2] + "/stop"):
        status, _, text = call("/who")
        (seen if status == 200 else bad).append(text)
        time.sleep(0.02)
    expect(not bad, len(bad), "of", len(seen) + len(bad), "failed:", bad[:2])
    print("served", len(seen), "by", sorted(set(seen)))
def open_one():
    status, _, text = call("/slow")
    expect(status == 200, status, text)
globals()[os.environ["PART"]]()
END
part() {
    ran=$((ran + 1))
    PART=$1 python3 "$tmp/client.py" "$port" "$tmp" "$ann" "$eve" "$app" >"$tmp/part" 2>&1 || fail "$1: $(cat "$tmp/part")"
}
token_of() {
    try 0 '^stint_' token create --account "$1" --user "$2" --role "$3"
    sed -n 's/.*\(stint_[^ ]*\).*/\1/p' "$tmp/out"
}
ann=$(token_of acme ann member)
eve=$(token_of other eve member)
app=$(token_of acme app caller)

# service_is TEXT: a line of it that has this, soon.
shows() { "$stint" service show web | grep -q -e "$1"; }
service_is() {
    ran=$((ran + 1))
    wait_for shows "$1" || wait_for shows "$1" || fail "web is not $1: $("$stint" service show web)"
}
replicas() { "$stint" service show web -o json | python3 -c "import json, sys
for r in json.load(sys.stdin)['replicas']: print($1)"; }

owner=$STINT_TOKEN
export STINT_TOKEN="$ann"
try 0 'is created' service create web --port 8080 --replicas 2 --health http --path /health --interval 1s --failures 2 --wait 1s --drain 20s \
    --gpus 1 --cpu 0.2 --ram 64Mi -- python3 -c "$(cat "$tmp/serve.py")"
service_is 'Ready  *2/2'
part route
part least
part walls
STINT_TOKEN=$owner try 0 '' account limit acme service_calls=2
part limits
STINT_TOKEN=$owner try 0 '' account limit acme service_calls=none

# A replica that says it is not well is replaced; requests go on meanwhile.
export PART
PART=flow python3 "$tmp/client.py" "$port" "$tmp" "$ann" "$eve" "$app" >"$tmp/flow" 2>&1 &
flow=$!
sick=$(curl -s -H "Authorization: Bearer $ann" "$server/v1/services/web/call/sick")
replaced() { ! replicas "r['replica']" | grep -qx "$sick" && shows 'Ready  *2/2'; }
ran=$((ran + 1))
wait_for replaced || wait_for replaced || fail "replica $sick is still there: $("$stint" service show web)"

# Another template, one after the other; then a node drains.
try 0 'replaced' service set web -e VERSION=2
rolled() { [ "$(replicas "r['revision'], r['state']" | sort -u)" = "2 ready" ]; }
ran=$((ran + 1))
wait_for rolled || wait_for rolled || fail "it is not rolled: $("$stint" service show web)"
from=$(replicas "r['node']" | sed -n 1p)
STINT_TOKEN=$owner try 0 '' node drain "$from"
moved() { ! replicas "r['node']" | grep -qx "$from" && shows 'Ready  *2/2'; }
ran=$((ran + 1))
wait_for moved || wait_for moved || fail "it has not moved from $from: $("$stint" service show web)"
touch "$tmp/stop"
ran=$((ran + 1))
wait "$flow" || fail "$(cat "$tmp/flow")"
cat "$tmp/flow"

# It is removed: a request that is open is answered, and then the jobs end.
jobs=$(replicas "r['job']")
PART=open_one python3 "$tmp/client.py" "$port" "$tmp" "$ann" "$eve" "$app" >"$tmp/open" 2>&1 &
open=$!
service_is 'Requests  *1'
try 0 'being removed' service remove web
ran=$((ran + 1))
wait "$open" || fail "the open request: $(cat "$tmp/open")"
for j in $jobs; do
    becomes "$j" cancelled
done
gone() { ! "$stint" service show web >/dev/null 2>&1; }
ran=$((ran + 1))
wait_for gone || fail "it is still there: $("$stint" service show web)"

# A notebook, of any program: an address that works, here and again, and an end when nobody uses it.
notebook() {
    : >"$tmp/address"
    "$stint" notebook --local 0 --port 8899 --idle 5s --gpus 1 --cpu 0.2 --ram 64Mi -- \
        python3 -c "$(cat "$tmp/serve.py")" >"$tmp/address" 2>"$tmp/notebook.err" &
    book=$!
    ran=$((ran + 1))
    wait_for grep -q '^http' "$tmp/address" || wait_for grep -q '^http' "$tmp/address" || fail "no address: $(cat "$tmp/notebook.err")"
    address=$(sed -n 's/?token=.*//p' "$tmp/address")
    grep -q '?token=[0-9a-f]\{48\}$' "$tmp/address" || fail "the address has no token: $(cat "$tmp/address")"
    [ "$(curl -s "${address}who")" = "$1 1" ] || fail "it says $(curl -s "${address}who")"
}
book_is() { "$stint" service show notebook | grep -q "^State  *$1"; }
notebook 1
first=$(cat "$tmp/address")
# Somebody who holds a connection uses it, for as long as that is.
curl -s "${address}stream" "${address}slow" "${address}slow" "${address}slow" "${address}slow" \
    "${address}slow" >"$tmp/held"
book_is ready || fail "it ended while it was used"
kill -INT "$book"
wait "$book"
ran=$((ran + 1))
wait_for book_is idle || wait_for book_is idle || fail "it does not end: $("$stint" service show notebook)"
notebook 2
[ "${first#*token=}" = "$(sed 's/.*token=//' "$tmp/address")" ] || fail "it has another token"
kill -INT "$book"
wait "$book"
try 0 'being removed' service remove notebook
done_testing
