#!/bin/sh
# Nodes are tested before they serve: when they join, when they come back, and when somebody asks. A test that fails takes the node
# out for repair and ends nobody's job; a suspicion ends by itself. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
policies="suspect: 2s, retest: 1s" start_native
: >"$tmp/faults"
start_agent a1 --exec sim --sim-faults "$tmp/faults"
fault() { echo "a1 1 $*" >>"$tmp/faults"; }
node_becomes a1 ready
try 0 'quick  yes' node tests a1
try 0 'testing' node history a1
json_of() { "$stint" "$@" -o json >"$tmp/out"; }
json_of node tests a1
json 'd["tests"][-1]["passed"] and len(d["tests"][-1]["results"]) == 2 + 8 * 10'
json 'all(r["verdict"] == "pass" for r in d["tests"][-1]["results"])'

submit --name beside --gpus 1 --limit 1h --sim-run 50m -- true
becomes "$job" running
beside=$job
# The agent reads its faults now and then: a test that came before finds nothing.
repaired() { "$stint" node test a1 && node_is a1 repair; }
# Each fault is found by its own check, beside a job that goes on; healed, the next test lifts the repair by itself.
for row in 'remap-pending remap-pending' 'pcie-width pcie-width 8' 'pcie-replay pcie-replay 200' 'nvlink links-down 1' \
    'throttle thermal 1'; do
    check=${row%% *}
    fault "${row#* }"
    ran=$((ran + 1))
    wait_for repaired || fail "$check: the node is not in repair: $("$stint" node tests a1)"
    [ "$(state_of "$beside")" = running ] || fail "$check: the job is $(state_of "$beside")"
    json_of node tests a1
    json "[r['check'] for t in d['tests'][-1:] for r in t['results'] if r['verdict'] == 'fail'] == ['$check']"
    submit --name waits --gpus 1 --limit 1m -- true
    try 0 'nodes_down\|down or draining' why "$job"
    try 0 '' cancel "$job"
    fault heal
    node_becomes a1 ready
done
[ "$(state_of "$beside")" = running ] || fail "the job is $(state_of "$beside")"

# A suspicion: nobody is ended, and the test lifts it.
try 0 'suspect' node suspect a1 --reason 'slow in two jobs'
try 0 'slow in two jobs' node show a1
node_becomes a1 ready
[ "$(state_of "$beside")" = running ] || fail "the job is $(state_of "$beside")"
try 0 'slow in two jobs' node history a1

# A GPU that needs a reset: the node fails, the job goes, and nothing comes back without a test.
fault xid 79
node_becomes a1 failed
try 0 'XID 79' node show a1
fault heal
node_becomes a1 ready
json_of node history a1
json '[r["state"] for r in d["history"]][-3:] == ["failed", "testing", "ready"]'

# Repair by a person's word stays until a person ends it.
try 0 'repair' node repair a1 --reason fan
last() { json_of node tests a1 && python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["tests"][-1]["test"])' "$tmp/out"; }
before=$(last)
try 0 'being tested' node test a1
later() { [ "$(last)" -gt "$before" ]; }
wait_for later || fail "the node was not tested: $("$stint" node tests a1)"
try 0 'fan' node show a1
node_becomes a1 repair
try 0 '' node ready a1
node_becomes a1 ready

# What people wrote is for owners, and so is who they are.
try 0 '' token create --account acme --user mia --role member
STINT_TOKEN=$(cat "$tmp/out")
json_of node history a1
json 'not any("by" in r for r in d["history"])'
json 'not any("fan" == r.get("reason") for r in d["history"])'
try 8 '' node test a1
done_testing
