#!/bin/sh
# One fault from its beginning to the bill, with real containers on simulated GPUs: a GPU needs a reset under a job that saves as it
# goes. The incident is told and shown, the job goes on elsewhere from where it was, a job that is to fail with its node does, the node
# comes back through a test, the incident is over, a node is emptied by a time after its job has saved, and the bill credits what was lost. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
need_containers
policies="retire_after: 0, incident_quiet: 2s" start_native
: >"$tmp/faults"
mkdir "$tmp/shared"
for a in a1 a2; do
    mkdir -p "$tmp/$a/storage"
    if ! mount --bind "$tmp/shared" "$tmp/$a/storage" 2>/dev/null; then
        echo "skipped: nothing can be mounted here"
        exit 77
    fi
    mounts="$mounts $tmp/$a/storage"
    start_agent "$a" --exec oci --sim-faults "$tmp/faults"
done
printf 'prices: dear\ngpu: {"*": {reserved: 0, guaranteed: 3600, burst: 3600}}\ncredit: {lost: 0%%, fault: 100%%}\n' >"$tmp/prices.yaml"
try 0 'published' price publish "$tmp/prices.yaml"
node_becomes a1 ready
node_becomes a2 ready
"$stint" events -f -o json >"$tmp/events" 2>/dev/null &
more_pids=$!
json_of() { "$stint" "$@" -o json >"$tmp/out"; }

# It counts, and goes on from what it has written down.
# shellcheck disable=SC2016 # for the shell inside
submit --name counts --gpus 4 --cpu 0.2 --ram 64Mi --limit 10m -- \
    sh -c 'n=$(cat /data/n 2>/dev/null || echo 0); echo "begins at $n"; while :; do n=$((n + 1)); echo $n >/data/.n; mv /data/.n /data/n; sleep 0.1; done'
counts=$job
becomes "$counts" running
here=$(where_is "$counts")
submit --name fails --gpus 1 --cpu 0.1 --ram 32Mi --limit 10m --on-fault fail --on-preempt requeue -- sleep 600
fails=$job
becomes "$fails" running
beside=$(where_is "$fails")
n_of() { cat "$tmp/shared/$(tenant_of acme)/n" 2>/dev/null || echo 0; }
counted() { [ "$(n_of)" -ge "$1" ]; }
ran=$((ran + 1))
wait_for counted 20 || fail "it does not count: $("$stint" show "$counts")"

echo "$here 2 xid 79" >>"$tmp/faults"
node_becomes "$here" failed
# The event, and the incident with its cause, its GPU and the jobs that were there.
tripped() { grep -q '"kind":"incident".*"opened"' "$tmp/events"; }
ran=$((ran + 1))
wait_for tripped || fail "no event of the incident: $(cat "$tmp/events")"
json_of incidents
json "len(d['incidents']) == 1"
json "[d['incidents'][0][k] for k in ('cause', 'fault', 'scope', 'state')] == ['hardware', 'xid', 'gpu', 'open']"
json "d['incidents'][0]['nodes'][0]['gpu'] == 2 and d['incidents'][0]['nodes'][0]['code'] == 79"
json "'$counts' in [j['job'] for j in d['incidents'][0]['jobs']]"
try 0 "XID 79" incidents --job "$counts"

# It goes on where there is room, from where it was, and the record has what was lost.
elsewhere() { is "$counts" running && [ "$(where_is "$counts")" != "$here" ]; }
ran=$((ran + 1))
wait_for elsewhere || fail "it does not go on elsewhere: $("$stint" show "$counts")"
log_begins() { "$stint" logs "$counts" | grep -q 'begins at [1-9]'; }
ran=$((ran + 1))
wait_for log_begins || fail "it does not go on from where it was: $("$stint" logs "$counts")"
json_of show "$counts"
json "d['lost_gpu_seconds'] > 0"
if [ "$beside" = "$here" ]; then
    becomes "$fails" failed
    try 0 "node $here failed under it" show "$fails"
fi

# Back, by a test that is newer than the fault; then nothing is open.
echo "$here 2 heal" >>"$tmp/faults"
node_becomes "$here" ready
json_of node history "$here"
json "[r['state'] for r in d['history']][-3:] == ['failed', 'testing', 'ready']"
none_open() { "$stint" incidents -o json | grep -q '"incidents": *\[\]'; }
ran=$((ran + 1))
wait_for none_open || fail "the incident is not over: $("$stint" incidents)"
json_of incidents --all
json "d['incidents'][0]['state'] == 'over' and d['incidents'][0]['nodes'][0]['out_seconds'] >= 0"

# A node is emptied by a time: who can save does, and goes on elsewhere from there, and nothing of that is lost or counts as
# preempted. The node comes back as it was.
# shellcheck disable=SC2016 # for the shell inside
submit --name saves --gpus 2 --cpu 0.2 --ram 64Mi --limit 10m --on-preempt checkpoint -- \
    sh -c 'n=$(cat /data/saved 2>/dev/null || echo 0); trap "echo \$n >/data/saved; exit 0" TERM; echo "goes on from $n"; while :; do n=$((n + 1)); sleep 0.1; done'
saves=$job
writes "$saves" 'goes on from 0'
left=$(where_is "$saves")
try 0 'draining' node drain --within 2s --reason 'new fans' "$left"
went_on() { "$stint" logs "$saves" | grep -q 'goes on from [1-9]' && is "$saves" running && [ "$(where_is "$saves")" != "$left" ]; }
ran=$((ran + 1))
wait_for went_on || fail "it does not go on from what it saved: $("$stint" show "$saves") $("$stint" logs "$saves")"
json_of show "$saves"
json "d['preemptions'] == 0"
try 0 'ready' node ready "$left"
node_becomes "$left" ready
try 0 '' cancel "$saves"
becomes "$saves" cancelled

# The bill credits what was charged for the work that is lost, at 1 for each GPU-second: no more than what was lost, since time is charged
# from when tasks have begun.
try 0 '' cancel "$counts"
becomes "$counts" cancelled
lost=0
for j in "$counts" "$fails"; do
    json_of show "$j"
    lost=$(python3 -c 'import json, sys; print(float(sys.argv[2]) + json.load(open(sys.argv[1]))["lost_gpu_seconds"])' "$tmp/out" "$lost")
done
is_credited() {
    "$stint" bill -a acme -o json >"$tmp/out" && python3 - "$tmp/out" "$lost" <<'END'
import json, sys
lines = [l for l in json.load(open(sys.argv[1]))["lines"] if l["component"] == "fault"]
credited = -sum(l["amount_udollars"] for l in lines) / 1e6
sys.exit(not 0 < credited <= float(sys.argv[2]) + 0.01)
END
}
ran=$((ran + 1))
wait_for is_credited || fail "the bill does not credit $lost: $("$stint" bill -a acme)"
done_testing
