#!/bin/sh
# Services whose replicas have slices and shares of GPUs, on two nodes: each has its own, one that ends is replaced, more come
# when more is asked for, and when a node drains new ones are ready elsewhere before the old ones end, without a request that
# fails. With real containers and simulated GPUs. $1 is stint.
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
import http.server, os, time
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        if self.path == "/end":
            os._exit(3)
        if self.path == "/slow":
            time.sleep(0.3)
        text = f"{os.environ['STINT_REPLICA']} {os.environ.get('CUDA_VISIBLE_DEVICES')}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["STINT_PORT"])), Handler).serve_forever()
END
replicas() { "$stint" service show "$1" -o json | python3 -c "import json, sys
for r in json.load(sys.stdin)['replicas']: print($2)"; }
is_ready() { "$stint" service show "$1" | grep -q "Ready  *$2\$"; }
service_is() {
    ran=$((ran + 1))
    wait_for is_ready "$1" "$2" || wait_for is_ready "$1" "$2" || fail "$1 is not $2: $("$stint" service show "$1")"
}
ask() { curl -s -o "$tmp/answer" -w '%{http_code}' -H "Authorization: Bearer $STINT_TOKEN" "$server/v1/services/acme%2F$1/call$2"; }

for kind in 'mig --profile 1g' 'time --share 0.25'; do
    # shellcheck disable=SC2086 # words
    try 0 'is created' service create "of-${kind%% *}" --account acme --port 8080 --replicas 2 --health http --path / --interval 1s \
        --wait 1s --drain 5s --level $kind --cpu 0.1 --ram 64Mi -- python3 -c "$(cat "$tmp/serve.py")"
done
service_is of-mig 2/2
service_is of-time 2/2
# Slices are of hardware: each its own. Who shares a GPU by time sees the GPU.
devices=$(for j in $(replicas of-mig "r['job']"); do "$stint" exec "$j" -- printenv CUDA_VISIBLE_DEVICES </dev/null; done | sort -u)
ran=$((ran + 1))
[ "$(echo "$devices" | grep -c '^MIG-')" = 2 ] || fail "two replicas have the slices \"$devices\""
# One after the other.
ran=$((ran + 1))
[ "$(for _ in 1 2 3 4; do ask of-mig / >/dev/null; cut -d ' ' -f 1 "$tmp/answer"; done | sort | uniq -c | tr -s ' ' | tr -d '\n')" = " 2 1 2 2" ] ||
    fail "four requests go to one replica"
# Requests all the time, until it is told to stop: none fails.
(
    while [ ! -e "$tmp/stop" ]; do
        for s in of-mig of-time; do
            status=$(ask $s /slow)
            echo "$s $status" >>"$tmp/flow"
        done
    done
) &
flow=$!
# All of a node goes: what was there is elsewhere.
from=$(replicas of-mig "r['node']" | sed -n 1p)
try 0 '' node drain "$from"
moved() { ! replicas "$1" "r['node']" | grep -qx "$from" && is_ready "$1" 2/2; }
for s in of-mig of-time; do
    ran=$((ran + 1))
    wait_for moved $s || wait_for moved $s || fail "$s has not moved from $from: $("$stint" service show $s)"
done
touch "$tmp/stop"
wait "$flow"
ran=$((ran + 1))
grep -v ' 200$' "$tmp/flow" && fail "requests failed while a node was drained"
grep -q ' 200$' "$tmp/flow" || fail "nothing was asked"
# One that ends is started anew, and told.
before=$(replicas of-mig "r['job']" | sort)
ran=$((ran + 1))
ask of-mig /end >/dev/null
again() { is_ready of-mig 2/2 && [ "$(replicas of-mig "r['job']" | sort)" != "$before" ]; }
wait_for again || wait_for again || fail "it is not started anew: $("$stint" service show of-mig)"
# More is asked for: more slices, up to the most; and fewer.
try 0 'changed' service set of-mig --scale queue --target 10 --min 1 --max 3 --up 0s --down 0s
figures() { curl -s -o /dev/null -H "Authorization: Bearer $STINT_TOKEN" -H 'Content-Type: application/json' -d "$1" \
    "$server/v1/services/acme%2Fof-mig/figures"; }
figures '{"queue": 95}'
service_is of-mig 3/3
figures '{"queue": 0}'
service_is of-mig 1/1
done_testing
