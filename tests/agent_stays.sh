#!/bin/sh
# No two stays of one job at one time, by evidence from inside the job: at each moment it is alive it notes which stay it
# is, in a folder that both nodes have. It is displaced while its node is cut off, with room elsewhere; and its
# node is declared failed while it answers and the job ignores the signal. And a job that ended while nobody could hear it
# is over when its node is heard again. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
. "$(dirname "$0")/lib/nets.sh"
need_containers
start_nets
lease=9s
start_native "insecure: true"
start_agents h100x8 h200x8
try 0 'made' account create guest
why_says() { "$stint" why "$1" | grep -q "$2"; }

# ---- cut off and displaced ------------------------------------------------------------------------

submit --name filler --gpus 8 --type h200 --cpu 0.2 --ram 64Mi --limit 10m -- sleep 600
filler=$job
becomes "$filler" running
# shellcheck disable=SC2016 # for the shell inside
try 0 '^j' submit --account guest --name beats --gpus 8 --cpu 0.2 --ram 64Mi --limit 10m --on-preempt requeue -- \
    sh -c 'trap "" TERM; while :; do echo $STINT_STAY $STINT_NODE $(date +%s%N) >>/data/beats; sleep 0.05; done'
beats=$(cat "$tmp/out")
notes=$tmp/shared/$(tenant_of guest)/beats
stay() { grep -q "^$1 $2 " "$notes"; }
ran=$((ran + 1))
wait_for stay 1 a1 || fail "it is not on a1: $("$stint" show "$beats")"

cut a1
try 0 '^j' submit --account other --name claim --gpus 8 --type h100 --cpu 0.2 --ram 64Mi --limit 10m -- sleep 600
claim=$(cat "$tmp/out")
becomes "$beats" stopping
is "$claim" pending || fail "the claimant is $(state_of "$claim")"
why_says "$claim" 'have not yet said' || fail "the claimant is not told: $("$stint" why "$claim")"
why_says "$beats" 'have not yet said' || fail "it is not told itself: $("$stint" why "$beats")"
# There is room for it on a2 from now on; it must not be used.
try 0 '' cancel "$filler"
becomes "$filler" cancelled
ran=$((ran + 1))
wait_for stay 2 a2 || wait_for stay 2 a2 || fail "it did not come back on a2: $("$stint" show "$beats")"
heal a1
wait_for is "$claim" running
becomes "$claim" running
node_is a1 ready || fail "a1 is not ready"

# ---- over before anybody could hear ---------------------------------------------------------------

try 0 '' cancel "$claim"
becomes "$claim" cancelled
# shellcheck disable=SC2016 # for the shell inside
submit --name quick --gpus 8 --type h100 --cpu 0.2 --ram 64Mi --limit 10m -- \
    sh -c 'while [ ! -e /data/end ]; do sleep 0.1; done; echo $STINT_STAY >>/data/ends'
quick=$job
mine=$tmp/shared/$(tenant_of acme)
said a1 "event=started .*$quick"
cut a1
touch "$mine/end"
said a1 "event=ended .*$quick"
seen=$(date +%s)
wait_for is "$quick" pending
becomes "$quick" pending
heal a1
becomes "$quick" done
[ "$(cat "$mine/ends")" = 1 ] || fail "it ran again: $(cat "$mine/ends")"
# And ended when it did, not when that was heard or when the lease was over; the books say the same.
ran=$((ran + 1))
ended=$(date -d "$("$stint" show "$quick" -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)["ended"])')" +%s)
[ "$ended" -le "$seen" ] || fail "it ended by $seen, and is said to have at $ended"
try 0 'agree' admin reconcile
node_becomes a1 ready

# ---- a failed node that answers ---------------------------------------------------------------------

try 0 '' node fail a2
becomes "$beats" stopping
ran=$((ran + 1))
wait_for stay 3 a1 || fail "it did not come back on a1: $("$stint" show "$beats")"
try 0 '' cancel "$beats"
becomes "$beats" cancelled

ran=$((ran + 1))
python3 - "$notes" <<'EOF' || fail "two stays at one time"
import sys
rows = [line.split() for line in open(sys.argv[1])]
times = {s: [int(r[2]) for r in rows if r[0] == s] for s in ("1", "2", "3")}
for a, b in (("1", "2"), ("2", "3")):
    print("stay %s: %d moments, then %.1f s of nobody" % (a, len(times[a]), (min(times[b]) - max(times[a])) / 1e9))
sys.exit(not (max(times["1"]) < min(times["2"]) and max(times["2"]) < min(times["3"])))
EOF
done_testing
