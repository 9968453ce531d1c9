#!/bin/sh
# Joined to a job's own terminal and streams: keys, sizes, Ctrl-C, exit status; several at a time; who may only watch; those
# that do not read, come by the hundred, or lose their right; and the end of the job, which everybody hears. With real
# containers. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
start_native
start_agent n1
node_becomes n1 ready

same() {
    ran=$((ran + 1))
    [ "$1" = "$2" ] || fail "it is \"$1\", not \"$2\""
}
holds() {
    ran=$((ran + 1))
    grep -q -e "$2" "$1" || fail "no \"$2\" in $1: $(head -c 600 "$1")"
}
small='--cpu 0.5 --ram 128Mi --gpus 0 --limit 10m'

# ---- a job with a terminal ------------------------------------------------------------------------

cat >"$tmp/term.py" <<'END'
import fcntl, os, pty, re, select, signal, struct, sys, termios, time
stint, what = sys.argv[1:3]
class Terminal:
    def __init__(self, *words, token=None):
        self.got = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "vt100"
            if token:
                os.environ["STINT_TOKEN"] = token
            os.execv(stint, [stint, *words])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    def read(self):
        try:
            return os.read(self.fd, 65536)
        except OSError:
            return b""
    def want(self, text, why):
        until = time.time() + 40
        while text not in self.got:
            if not select.select([self.fd], [], [], max(0, until - time.time()))[0]:
                sys.exit(f"{why}: waited for {text!r}, got {self.got!r}")
            b = self.read()
            if not b:
                sys.exit(f"{why}: ended without {text!r}: {self.got!r}")
            self.got += b
        at = self.got.index(text) + len(text)
        self.got, before = self.got[at:], self.got[:at]
        return before
    def type(self, text):
        os.write(self.fd, text)
    def status(self):
        while b := self.read():
            self.got += b
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
    def size(self, rows, cols):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)
small = "--account acme --cpu 0.5 --ram 128Mi --gpus 0 --limit 10m".split()
def shell():
    t = Terminal("run", "-it", *small, "--", "sh")
    t.want(b"$ ", "a prompt")
    t.type(b"tty; echo is:$TERM:$((40+2))\r")
    t.want(b"is:vt100:42", "a terminal")
    t.type(b"stty size\r")
    t.want(b"33 101", "its size")
    t.size(20, 60)
    until = time.time() + 20
    while True: # when the job hears of it is not ours to say
        t.type(b"echo now:$(stty size):\r")
        if b"now:20 60:" in t.want(b"60:" if time.time() < until else b"now:20 60:", "another size")[-40:]:
            break
    t.type(b"echo begins; sleep 600\r")
    t.want(b"\nbegins", "a command")
    t.type(b"\x03")
    t.type(b"echo after:$?\r")
    t.want(b"after:130", "Ctrl-C")
    # Two terminals at one job see the same, and both may type.
    job = re.search(rb"job (j\w+) is running", t.before if hasattr(t, "before") else b"")
    t.type(b"echo id:$STINT_JOB\r")
    t.want(b"\nid:", "its id")
    job = t.want(b"\r", "its id").strip().decode()
    u = Terminal("attach", job)
    u.want(b"id:" + job.encode(), "what was written before")
    u.type(b"echo from-$((1+1))\r")
    u.want(b"from-2", "the second")
    t.want(b"from-2", "the first sees what the second typed")
    u.type(b"\r~.")
    u.want(b"goes on", "~. leaves")
    if u.status() != 0:
        sys.exit("the status of one that left")
    # Ctrl-Z stops nothing that nobody could let go on.
    t.type(b"exec cat\r")
    time.sleep(0.3)
    t.type(b"\x1a")
    t.type(b"still-here\r")
    t.want(b"still-here\r\nstill-here", "Ctrl-Z")
    t.type(b"\x04")
    if t.status() != 0:
        sys.exit(f"a job that ends well: {t.got!r}")
    t = Terminal("run", "-it", *small, "--", "sh", "-c", "echo last words; exit 9")
    if t.status() != 9 or b"last words" not in t.got:
        sys.exit(f"status and last words: {t.got!r}")
    t = Terminal("run", "-it", *small, "--", "sh")
    t.want(b"$ ", "a prompt")
    t.type(b"kill -9 $$\r")
    if t.status() != 137:
        sys.exit(f"a job that was killed: {t.got!r}")
def watched(job, token):
    """A viewer sees the terminal; nothing that is typed there arrives."""
    t = Terminal("attach", job)
    t.want(b"$ ", "a prompt")
    v = Terminal("attach", job, token=token)
    v.want(b"watching", "a viewer is told")
    t.type(b"echo seen-$((1+1))\r")
    v.want(b"seen-2", "a viewer sees it")
    v.type(b"echo typed-$((1+1))\r")
    t.type(b"echo still-$((1+1))\r")
    v.want(b"still-2", "a viewer sees it")
    if b"typed-2" in t.want(b"still-2", "the owner"):
        sys.exit("a viewer has typed into the job")
    os.kill(v.pid, signal.SIGINT)
    v.want(b"goes on", "Ctrl-C leaves")
    v.status()
    # The end of the job: all who are joined hear the last of it, and its status.
    others = [Terminal("attach", job) for _ in range(5)] + [Terminal("attach", job, token=token)]
    for o in others:
        o.want(b"still-2", "what was written before")
    t.type(b"echo good''bye; exit 5\r")
    for i, o in enumerate([t] + others):
        status = o.status()
        if status != 5 or b"goodbye" not in o.got:
            sys.exit(f"the end of the job, number {i}: {status} {o.got[-300:]!r}")
shell() if what == "shell" else watched(*sys.argv[3:5])
print("fine")
END
ran=$((ran + 1))
timeout 240 python3 "$tmp/term.py" "$stint" shell >"$tmp/o" 2>&1
grep -q '^fine' "$tmp/o" || fail "a terminal: $(cat "$tmp/o")"

# ---- who may ----------------------------------------------------------------------------------------

for who in eve:other:member bob:acme:member vic:acme:viewer; do
    user=${who%%:*} role=${who##*:} account=${who#*:}
    try 0 '^stint_' token create --account "${account%:*}" --user "$user" --role "$role"
    sed -n 's/.*\(stint_[^ ]*\).*/\1/p' "$tmp/out" >"$tmp/$user"
done
eve=$(cat "$tmp/eve") bob=$(cat "$tmp/bob") vic=$(cat "$tmp/vic")
# shellcheck disable=SC2086 # words
submit --terminal $small -- sh
becomes "$job" running
term=$job
ran=$((ran + 1))
wait_for sh -c '"$0" logs "$1" | grep -q "[$]"' "$stint" "$term" || fail "the terminal has no prompt"
timeout 240 python3 "$tmp/term.py" "$stint" watched "$term" "$vic" >"$tmp/o" 2>&1
grep -q '^fine' "$tmp/o" || fail "watched: $(cat "$tmp/o")"
becomes "$term" failed

# ---- a job with standard input ----------------------------------------------------------------------

head -c 3000000 /dev/urandom >"$tmp/bytes"
# shellcheck disable=SC2086 # words
"$stint" run --account acme --stdin $small -- sh -c 'sha256sum; echo done >&2; exit 4' <"$tmp/bytes" >"$tmp/o" 2>"$tmp/e"
same "$?" 4
holds "$tmp/o" "$(sha256sum "$tmp/bytes" | cut -d ' ' -f 1)"
holds "$tmp/o" '^done'

# ---- a job that takes nothing: it is watched -----------------------------------------------------------

# It writes more than a watcher that does not read can hold, and is not held up; who comes later gets all that is kept.
# shellcheck disable=SC2086,SC2016 # words; for the shell inside
submit $small -- sh -c 'i=0; while [ ! -e /data/go ]; do sleep 0.1; done
    while [ $i -lt 40000 ]; do echo "$i ----------------------------------------------------------------"; i=$((i+1)); done; echo written
    while [ ! -e /data/end ]; do sleep 0.1; done; echo over; exit 3'
becomes "$job" running
plain=$job
data=$(storage_of n1 acme)
"$stint" attach --all "$plain" </dev/null >"$tmp/all" 2>"$tmp/e" &
all=$!
# Does not read: its pipe is full after 64 KiB.
mkfifo "$tmp/deaf"
"$stint" attach --all "$plain" </dev/null >"$tmp/deaf" 2>/dev/null &
deaf=$!
exec 9<"$tmp/deaf"
STINT_TOKEN=$bob "$stint" attach --all "$plain" </dev/null >"$tmp/bobs" 2>"$tmp/e2" &
bobs=$!
wait_for sh -c "[ \$('$stint' audit --what job.attach -o json | grep -o '\"$plain\"' | wc -l) -ge 3 ]" || fail "they are not joined"
touch "$data/go"
writes "$plain" '^written'
touch "$data/end"
wait "$all"
same "$?" 3
wait "$bobs"
same "$?" 3
same "$(grep -c -e '---' "$tmp/all")" 40000
tail -n 1 "$tmp/all" >"$tmp/o"
holds "$tmp/o" '^over'
cmp -s "$tmp/all" "$tmp/bobs" || fail "two watchers saw different things"
becomes "$plain" failed
exec 9<&-
kill "$deaf" 2>/dev/null
wait "$deaf" 2>/dev/null
try 5 'only a job that runs' attach "$plain"

# ---- attacks --------------------------------------------------------------------------------------------

# shellcheck disable=SC2086 # words
submit --stdin $small -- sh -c 'echo up; cat; echo end of input'
becomes "$job" running
writes "$job" up
victim=$job
STINT_TOKEN=$eve try 4 'no job' attach "$victim"
cat >"$tmp/attack.py" <<'END'
import http.client, json, os, select, socket, struct, sys, time, urllib.parse
url, job, owner, eve, bob, vic = sys.argv[1:7]
at = urllib.parse.urlsplit(url)
def call(token, method, path, body=None):
    c = http.client.HTTPConnection(at.hostname, at.port, timeout=40)
    c.request(method, path, json.dumps(body) if body is not None else None,
              {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    r = c.getresponse()
    text = r.read().decode()
    return r.status, text
def opened(token, **more):
    status, text = call(token, "POST", f"/v1/jobs/{job}/tunnels", {"kind": "attach", **more})
    return status, (json.loads(text).get("id") if status == 201 else text)
def connect(token, tunnel):
    s = socket.create_connection((at.hostname, at.port), timeout=40)
    s.sendall(f"GET /v1/tunnels/{tunnel}/connect HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
              "Connection: Upgrade\r\nUpgrade: stint-tunnel\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        b = s.recv(1)
        if not b:
            break
        head += b
    return s, int(head.split()[1]) if head else 0
def frame(kind, data=b""):
    return struct.pack(">BI", kind, len(data)) + data
def ended(s, seconds=20):
    s.settimeout(seconds)
    try:
        while s.recv(65536):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False
def check(ok, what):
    if not ok:
        sys.exit(what)
# Whose it is not; who may only watch; nobody by asking for more.
check(opened(eve)[0] == 404 and opened(eve, read_only=True)[0] == 404, "another tenant")
check(opened(bob)[0] == 403 and opened(vic)[0] == 403, "who may only watch")
for body in ({"read_only": 1}, {"read_only": "no"}, {"write": True}, {"from": "x"}, {"from": 1 << 60}, {"command": ["sh"]}, {"task": 1}):
    status, text = opened(owner, **body)
    check(status in (400, 403, 404), f"{body}: {status} {text}")
for kind in ({"kind": "exec", "command": ["id"]}, {"kind": "forward", "port": 80}):
    status, text = call(vic, "POST", f"/v1/jobs/{job}/tunnels", {**kind})
    check(status == 403, f"a viewer's {kind}: {status} {text}")
# What a watcher sends never reaches the job, whatever it is called: it ends the watcher.
for bad in (frame(1, b"injected\n"), frame(2), frame(4, b"\x09"), frame(4, b"\x0f"), frame(3, struct.pack(">HH", 9, 9)), frame(17, b"x"),
            struct.pack("qq", 0, 1) + frame(1, b"injected\n"), b"\xff" * 64, frame(1, b"x" * 32768) * 4):
    status, tunnel = opened(vic, read_only=True)
    check(status == 201, f"a viewer may watch: {status} {tunnel}")
    check(connect(bob, tunnel)[1] == 404, "another's tunnel is connected")
    s, status = connect(vic, tunnel)
    check(status == 101, f"a viewer is joined: {status}")
    s.sendall(bad)
    check(ended(s), f"a watcher that sends {bad[:24]!r} goes on")
# A writer's nonsense ends the writer, not the job: signals that are none, that kill, sizes, lengths.
for bad in (frame(4, b"\x00"), frame(4, b"\x09"), frame(4, b"\x13"), frame(4, b"\xff"), struct.pack(">BI", 1, 1 << 31), frame(19, b"\0\0"), b"\0" * 9):
    status, tunnel = opened(owner)
    s, status = connect(owner, tunnel)
    check(status == 101, f"the owner is joined: {status}")
    s.sendall(bad)
    check(ended(s), f"a writer that sends {bad[:24]!r} goes on")
# Crowds: more than a task has room for; the job and those that are joined go on.
status, tunnel = opened(owner, **{"from": 0})
first, status = connect(owner, tunnel)
check(status == 101, "the owner is joined")
lines, refused, quota = [], 0, 0
for i in range(90):
    status, tunnel = opened(vic, read_only=True)
    if status == 429:
        quota += 1
        continue
    check(status == 201, f"watcher {i}: {status} {tunnel}")
    s, status = connect(vic, tunnel)
    if status == 101:
        lines.append(s)
    else:
        refused += 1
full = 0
for s in lines:
    s.settimeout(20)
    b = s.recv(5)
    full += len(b) == 5 and b[0] == 20
check(len(lines) - full <= 56, f"{len(lines)} watchers, {full} told that it is full")
status, tunnel = opened(owner)
second, status = connect(owner, tunnel)
second.settimeout(20)
check(status == 101 and second.recv(5)[:1] != bytes([20]), "who may write is locked out by those who watch")
second.close()
check(full + refused + quota >= 20, f"nobody is refused: {len(lines)} {full} {refused} {quota}")
first.sendall(frame(1, b"through the crowd\n"))
got = b""
first.settimeout(20)
while b"through the crowd" not in got:
    b = first.recv(65536)
    check(b, f"the first is cut: {got!r}")
    got += b
for s in lines:
    s.close()
# One that stays and never reads, beside one that does.
until = time.time() + 30
while True:
    status, tunnel = opened(vic, read_only=True)
    s, status = connect(vic, tunnel) if status == 201 else (None, status)
    if status == 101:
        break
    check(time.time() < until, f"there is no room again: {status}")
    time.sleep(0.2)
for i in range(64):
    first.sendall(frame(1, b"%06d " % i + b"y" * 8000 + b"\n"))
got = b""
while b"000063 " not in got:
    b = first.recv(65536)
    check(b, "the first is cut")
    got += b
first.sendall(frame(2))
while b"end of input" not in got:
    b = first.recv(65536)
    check(b, f"the first is cut: {got[-200:]!r}")
    got += b
got = got[got.index(b"end of input"):]
while not got.endswith(frame(19, b"\0\0")):
    b = first.recv(65536)
    check(b, f"it is over, and its status is not told: {got[-200:]!r}")
    got += b
print("fine")
END
ran=$((ran + 60))
timeout 240 python3 "$tmp/attack.py" "$STINT_URL" "$victim" "$STINT_TOKEN" "$eve" "$bob" "$vic" >"$tmp/o" 2>&1
grep -q '^fine' "$tmp/o" || fail "attacks: $(tail -n 5 "$tmp/o")"
becomes "$victim" done
"$stint" logs "$victim" >"$tmp/o"
grep -q injected "$tmp/o" && fail "a watcher has written into the job"

# Its right is revoked: it is cut, and the job goes on.
# shellcheck disable=SC2086 # words
submit --terminal $small -- sh -c 'echo up; sleep 600'
becomes "$job" running
writes "$job" up
rm -f "$tmp/own"
STINT_TOKEN=$vic "$stint" attach "$job" </dev/null >"$tmp/own" 2>"$tmp/e" &
pid=$!
wait_for grep -q up "$tmp/own" || fail "a viewer does not get in: $(cat "$tmp/e")"
id=$("$stint" token list -o json | python3 -c 'import json, sys
print([t["id"] for t in json.load(sys.stdin)["tokens"] if t["user"] == "vic"][-1])')
try 0 '' token revoke "$id"
wait "$pid"
same "$?" 7
# Its folder and its socket are the node's alone, and the job does not see it.
ran=$((ran + 1))
[ "$(stat -c %a "$tmp"/n1/run/tasks/"$job".*/attach)" = 700 ] || fail "the socket: $(ls -l "$tmp"/n1/run/tasks/*/attach)"
"$stint" exec "$job" -- sh -c 'ls -lR /run /dev; cat /proc/mounts' </dev/null >"$tmp/o" 2>/dev/null
grep -e attach -e '^srw' "$tmp/o" && fail "the supervisor's sockets show inside"
# Cancelled: who is joined hears of it, and the agent keeps nothing.
rm -f "$tmp/own"
"$stint" attach "$job" </dev/null >"$tmp/own" 2>"$tmp/e" &
pid=$!
wait_for grep -q up "$tmp/own"
try 0 '' cancel "$job"
becomes "$job" cancelled
wait "$pid"
status=$?
ran=$((ran + 1))
[ $status -eq 143 ] || [ $status -eq 137 ] || [ $status -eq 129 ] || fail "attached to a job that is cancelled: $status $(cat "$tmp/e")"
done_testing
