#!/bin/sh
# A service, which has no end of its own, and an array, in real containers: the service answers its
# tenant and nobody else, is cancelled in peace or by force; the array counts its way. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
start_native
start_agent c1 --exec oci
node_becomes c1 ready

# ---- a service: answers, and ends when it is told to ----------------------------------------

cat >"$tmp/service.py" <<'EOF'
import http.server, signal, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"at your service")
    def log_message(self, *a):
        print("asked", flush=True)
server = http.server.HTTPServer(("127.0.0.1", 8123), Answer)
def bye(*a):
    print("closing", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, bye)
print("listening", flush=True)
server.serve_forever()
EOF
submit --name web --gpus 1 -- python3 -c "$(cat "$tmp/service.py")"
web=$job
becomes "$web" running
writes "$web" '^listening$'
ask='import urllib.request as u
print(u.build_opener(u.ProxyHandler({})).open("http://127.0.0.1:8123", timeout=5).read().decode())'
submit --name client --limit 1m -- python3 -c "$ask"
becomes "$job" done
writes "$job" 'at your service'
writes "$web" '^asked$'
try 0 '^j' submit --account other --name stranger --limit 1m -- python3 -c "$ask"
job=$(cat "$tmp/out")
becomes "$job" failed
writes "$job" 'refused'
is "$web" running || fail "the service is $(state_of "$web")"
try 0 'cancelled' cancel "$web"
said c1 "event=ended .*job=$web .*exit=0 signal=0"
becomes "$web" cancelled
writes "$web" '^closing$'

# One that does not listen to its signal is gone all the same, with all it started.
# shellcheck disable=SC2016 # for the shell inside
submit --name stubborn --gpus 1 -- sh -c 'trap "" TERM; setsid sleep 987654 & echo up; while :; do sleep 1; done'
becomes "$job" running
writes "$job" '^up$'
try 0 'cancelled' cancel "$job"
said c1 "event=killed .*job=$job"
said c1 "event=ended .*job=$job"
ran=$((ran + 1))
pgrep -f 'sleep 987654' >/dev/null && fail "something of it is left"

# ---- an array: each with its number, and how far it is ----------------------------------------

# Six on eight GPUs, of which four stay until they are told; number 3 fails.
cat >"$tmp/part.sh" <<'EOF'
echo part $STINT_ARRAY_INDEX
[ $STINT_ARRAY_INDEX = 3 ] && exit 9
[ $STINT_ARRAY_INDEX = 1 ] || while [ ! -e /data/go ]; do sleep 0.1; done
EOF
try 0 '6 jobs submitted, 0 refused' submit --account acme --array 6 --name part --gpus 1 --cpu 0.1 --ram 64Mi --limit 2m \
    -- sh -c "$(cat "$tmp/part.sh")"
ids=$(cat "$tmp/out")
array=$(sed -n 's/^they are array \([^ ]*\).*/\1/p' "$tmp/err")
far() { "$stint" array "$array" -o json | python3 -c '
import json, sys
d = json.load(sys.stdin)["states"]
sys.exit(not all(d.get(k, 0) == int(v) for k, v in (a.split("=") for a in sys.argv[1:])))' "$@"; }
ran=$((ran + 2))
wait_for far running=4 done=1 failed=1 || fail "not four to go: $("$stint" array "$array" -o json)"
touch "$(storage_of c1 acme)/go"
wait_for far done=5 failed=1 || fail "not five done: $("$stint" array "$array" -o json)"
n=0
for id in $ids; do
    writes "$id" "^part $n\$"
    n=$((n + 1))
done
done_testing
