#!/bin/sh
# A port of a job, reached from outside: bytes both ways and whole, many connections at once, an end that is told, and
# nobody else's. Over TLS, with real containers. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
if ! command -v openssl >/dev/null; then
    echo "skipped: no openssl here"
    exit 77
fi
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=stint \
    -addext 'subjectAltName=IP:127.0.0.1' -keyout "$tmp/cert.key" -out "$tmp/cert.pem" 2>/dev/null
scheme=https
export STINT_CA="$tmp/cert.pem"
start_native "tls_cert: $tmp/cert.pem" "tls_key: $tmp/cert.key"
start_agent n1 --ca "$tmp/cert.pem"
node_becomes n1 ready

# Echoes upside down: what comes back was in there. On another port one that sends much and hangs up; on the third one that
# reads nothing.
cat >"$tmp/serve.py" <<'END'
import os, socket, threading, time
def listen(port):
    s = socket.create_server(("127.0.0.1", port))
    print("listens on", port, flush=True)
    return s
def turn(c):
    while True:
        b = c.recv(65536)
        if not b:
            break
        c.sendall(b.swapcase())
    c.sendall(b"<end>")
    c.close()
def serve(port, fn):
    s = listen(port)
    while True:
        c, _ = s.accept()
        threading.Thread(target=fn, args=(c,), daemon=True).start()
def much(c):
    for i in range(64):
        c.sendall(bytes([65 + i % 26]) * 65536)
    c.close()
threading.Thread(target=serve, args=(7001, much), daemon=True).start()
threading.Thread(target=serve, args=(7002, lambda c: time.sleep(600)), daemon=True).start()
serve(7000, turn)
END
submit --name serves --gpus 1 --limit 10m --cpu 1 --ram 512Mi -- python3 -c "$(cat "$tmp/serve.py")"
serves=$job
becomes "$serves" running
writes "$serves" 'listens on 7000'
writes "$serves" 'listens on 7001'
writes "$serves" 'listens on 7002'

# forward JOB [LOCAL:]PORT: sets local and forward_pid.
forwards=
forward() {
    : >"$tmp/forward.out" # what the one before has said is not waited for
    "$stint" forward "$@" >"$tmp/forward.out" 2>"$tmp/forward.err" &
    forward_pid=$!
    forwards="$forwards $forward_pid"
    wait_for grep -q 'leads to' "$tmp/forward.out" || fail "forward $*: $(cat "$tmp/forward.err")"
    local=$(sed -n 's/^127.0.0.1:\([0-9]*\) leads.*/\1/p' "$tmp/forward.out")
}

forward "$serves" 0:7000
turned=$local
first=$forward_pid
cat >"$tmp/ask.py" <<'END'
import os, socket, sys, threading
port = int(sys.argv[1])
def one(n, bad):
    mine = (b"aBcDeFgHiJkLm%06d" % n) * 20000
    c = socket.create_connection(("127.0.0.1", port))
    t = threading.Thread(target=lambda: c.sendall(mine))
    t.start()
    got = b""
    while len(got) < len(mine):
        b = c.recv(65536)
        if not b:
            break
        got += b
    t.join()
    c.close()
    if got != mine.swapcase():
        bad.append((n, len(got), len(mine)))
bad = []
ts = [threading.Thread(target=one, args=(n, bad)) for n in range(int(sys.argv[2]))]
[t.start() for t in ts]
[t.join() for t in ts]
print("bad", bad) if bad else print("whole")
END
python3 "$tmp/ask.py" "$turned" 12 >"$tmp/asked" 2>&1
ran=$((ran + 1))
grep -q '^whole' "$tmp/asked" || fail "bytes: $(cat "$tmp/asked" "$tmp/forward.err")"

# All that a task sends before it hangs up arrives.
forward "$serves" 0:7001
ran=$((ran + 1))
n=$(python3 -c '
import socket
c = socket.create_connection(("127.0.0.1", '"$local"'))
n = 0
while b := c.recv(65536):
    n += len(b)
print(n)')
[ "$n" = 4194304 ] || fail "of 4194304 bytes $n came"

# Where nobody listens: a sentence, and the connection ends. The same for a task that is not there.
forward "$serves" 0:7999
python3 -c '
import socket
c = socket.create_connection(("127.0.0.1", '"$local"'))
assert c.recv(1) == b"", "something came"'
ran=$((ran + 1))
wait_for grep -q 'nothing listens on port 7999' "$tmp/forward.err" || fail "$(cat "$tmp/forward.err")"
try 4 'has no task 3' forward --task 3 "$serves" 7000
try 2 'is no port' forward "$serves" 70000
try 2 'is no port' forward "$serves" x:1
try 4 'no job' forward jnothing 7000

# A reader that does not read, and a task that does not: neither holds up anybody.
python3 -c '
import socket, time
c = socket.create_connection(("127.0.0.1", '"$turned"'))
c.settimeout(0.5)
try:
    while True:
        c.sendall(b"x" * 65536)
except TimeoutError:
    pass
print("full", flush=True)
time.sleep(600)' >"$tmp/stuck" &
stuck=$!
wait_for grep -q full "$tmp/stuck" || fail "it takes whatever is sent"
python3 "$tmp/ask.py" "$turned" 2 >"$tmp/asked" 2>&1
ran=$((ran + 1))
grep -q '^whole' "$tmp/asked" || fail "beside one that does not read: $(cat "$tmp/asked")"
kill "$stuck"

# Whose it is not: another tenant does not see the job, one of the same account is told whose it is.
try 0 '^stint_' token create --account other --user eve --role member
eve=$(sed -n 's/.*\(stint_[^ ]*\).*/\1/p' "$tmp/out")
try 0 '^stint_' token create --account acme --user bob --role member
bob=$(sed -n 's/.*\(stint_[^ ]*\).*/\1/p' "$tmp/out")
owner=$STINT_TOKEN
STINT_TOKEN=$eve try 4 'no job' forward "$serves" 7000
STINT_TOKEN=$bob try 8 'belongs to' forward "$serves" 7000

# The network of the node is not forwarded, and what waits cannot be reached.
submit --name host --gpus 1 --limit 10m --cpu 0.2 --ram 64Mi --network host -- \
    sh -c 'echo up; sleep 600'
becomes "$job" running
writes "$job" up
host=$job
forward "$host" 0:"$port"
python3 -c '
import socket
c = socket.create_connection(("127.0.0.1", '"$local"'))
assert c.recv(1) == b"", "something came"'
ran=$((ran + 1))
wait_for grep -q "has the node's network" "$tmp/forward.err" || fail "$(cat "$tmp/forward.err")"
submit --name waits --gpus 8 --limit 10m -- true
try 5 'is pending' forward "$job" 7000
try 0 '' cancel "$job"

# In the audit log: who, what, and that it ended.
kill -INT "$first"
wait "$first"
ran=$((ran + 1))
wait_for sh -c "'$stint' audit --what job.forward.end -o json | grep -q 'it was left'" || fail "the end is not in the audit log"
try 0 '"port":7000' audit --what job.forward -o json

# The job ends: so does what leads to it.
forward "$serves" 0:7002
python3 -c '
import socket
c = socket.create_connection(("127.0.0.1", '"$local"'))
print("in", flush=True)
while c.recv(1) != b"":
    pass
print("out", flush=True)' >"$tmp/held" &
held=$!
wait_for grep -q in "$tmp/held"
try 0 '' cancel "$serves"
becomes "$serves" cancelled
ran=$((ran + 2))
wait_for grep -q out "$tmp/held" || fail "a connection outlived its job"
wait_for grep -q 'has ended (cancelled)' "$tmp/forward.err" || fail "forward: $(cat "$tmp/forward.err")"
wait "$held"
for pid in $forwards; do
    kill "$pid" 2>/dev/null
done
try 0 '' cancel "$host"
becomes "$host" cancelled
done_testing
