#!/bin/sh
# One GPU of a node fails, with real containers on simulated GPUs: the job that has it goes on elsewhere, all others on the node go on in
# the stays they have, nobody new comes to it, the incident names it, and it comes back through a test. Owners take one out by hand. A
# GPU whose fault asks for a reboot still takes its node with it. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
policies="retire_after: 0, incident_quiet: 1s, retest: 1s" start_native
: >"$tmp/faults"
start_agent a1 --exec oci --sim-faults "$tmp/faults"
node_becomes a1 ready
"$stint" events -f -o json >"$tmp/events" 2>/dev/null &
more_pids=$!
json_of() { "$stint" "$@" -o json >"$tmp/out"; }
gpu_of() { "$stint" show "$1" -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)["placement"]["grants"][0]["gpus"][0])'; }
stay_of() { "$stint" show "$1" -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)["placement"]["stay"])'; }

jobs=
for n in 1 2 3 4 5 6; do
    submit --name "one$n" --gpus 1 --cpu 0.1 --ram 32Mi --limit 10m --on-preempt requeue -- sleep 600
    becomes "$job" running
    jobs="$jobs $job"
done
# shellcheck disable=SC2086 # a list
set -- $jobs
sick=$3
gpu=$(gpu_of "$sick")

# A GPU that needs a reset: it alone is out.
echo "a1 $gpu xid 46" >>"$tmp/faults"
is_out() { json_of node show a1 && python3 -c 'import json, sys; sys.exit([(g["gpu"], g["state"]) for g in json.load(open(sys.argv[1])).get("gpus_out", [])] != [(int(sys.argv[2]), sys.argv[3])])' "$tmp/out" "$gpu" "$1"; }
ran=$((ran + 1))
wait_for is_out failed || fail "GPU $gpu is not out: $("$stint" node show a1)"; [ "$failed" = 0 ] || exit 1
json "d['state'] == 'ready' and d['gpus_out'][0]['fault'] == 'xid' and d['gpus_out'][0]['cause'] == 'hardware'"
moved() { is "$sick" running && [ "$(gpu_of "$sick")" != "$gpu" ]; }
ran=$((ran + 1))
wait_for moved || fail "the job does not go on elsewhere: $("$stint" show "$sick")"
[ "$(where_is "$sick")" = a1 ] || fail "it left the node"
for j in "$@"; do
    [ "$j" = "$sick" ] && continue
    ran=$((ran + 1))
    [ "$(stay_of "$j")" = 1 ] && [ "$(state_of "$j")" = running ] || fail "$j did not stay: $("$stint" show "$j")"
done
try 0 "GPUs out.*$gpu failed since .*XID 46" node show a1
try 0 "failed .*$gpu .*XID 46" node history a1
json_of incidents
json "[(i['cause'], i['fault'], i['scope'], i['nodes'][0]['gpu']) for i in d['incidents']] == [('hardware', 'xid', 'gpu', $gpu)]"
json_of fleet health
json "[(p['nodes_out'], p['gpus_out'], p['gpus_ready'], p['spare_nodes'], p['failures'], p['out_for']['hardware']) for p in d['parts']] == [(0, 1, 7, 0, 1, 1)]"
try 0 'hardware *1 *1 ' fleet health
told() { grep -q '"kind":"gpu".*"state":"failed"' "$tmp/events"; }
ran=$((ran + 1))
wait_for told || fail "no event of the GPU: $(cat "$tmp/events")"

# Two GPUs of eight are free, one of them is out: who asks for two waits.
submit --name two --gpus 2 --cpu 0.1 --ram 32Mi --limit 10m -- sleep 600
ran=$((ran + 1))
"$stint" why "$job" >/dev/null
[ "$(state_of "$job")" = pending ] || fail "it runs on a GPU that is out: $("$stint" show "$job")"

# Mended: through a test, and the job that waited starts.
echo "a1 $gpu heal" >>"$tmp/faults"
becomes "$job" running
json_of node history a1
json "[r['state'] for r in d['history'] if r.get('gpu') == $gpu] == ['failed', 'testing', 'ready']"
none_open() { "$stint" incidents -o json | grep -q '"incidents": *\[\]'; }
ran=$((ran + 1))
wait_for none_open || fail "the incident is not over: $("$stint" incidents)"
try 0 '' cancel "$job"
becomes "$job" cancelled

json_of fleet health
json "[p['gpus_out'] for p in d['parts']] == [0] and [c['seconds_to_return'] > 0 for c in d['causes'] if c['cause'] == 'hardware'] == [True]"

# By hand: who has it stays, nobody new comes; then it is declared lost.
gpu=$(gpu_of "$1")
try 0 "GPU $gpu of node a1 is draining" node drain --gpu "$gpu" --reason 'slower than its peers' a1
is_out draining || fail "it does not drain: $("$stint" node show a1)"
[ "$(stay_of "$1")" = 1 ] || fail "its job did not stay"
try 0 'slower than its peers' node show a1
try 0 "GPU $gpu of node a1 is failed" node fail --gpu "$gpu" a1
sick=$1
ran=$((ran + 1))
wait_for moved || fail "the job does not go on elsewhere: $("$stint" show "$sick")"
try 0 "GPU $gpu of node a1 is ready" node ready --gpu "$gpu" a1
none_out() { ! "$stint" node show a1 -o json | grep -q gpus_out; }
ran=$((ran + 1))
wait_for none_out || fail "it does not come back: $("$stint" node show a1)"
try 2 'numbered from 0' node fail --gpu 8 a1
try 2 '' node fail --gpu x a1
try 2 'a GPU alone drains without a time' node drain --gpu 1 --within 1h a1

# Who is no owner takes none out, and reads no names.
owner=$STINT_TOKEN
try 0 '' token create --account acme --user mia --role member
STINT_TOKEN=$(cat "$tmp/out")
try 8 '' node fail --gpu 1 a1
try 8 '' fleet health
STINT_TOKEN=$owner

# A fault that asks for a reboot takes the node.
echo "a1 5 xid 79" >>"$tmp/faults"
node_becomes a1 failed
echo "a1 5 heal" >>"$tmp/faults"
node_becomes a1 ready
done_testing
