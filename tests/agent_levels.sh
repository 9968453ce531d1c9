#!/bin/sh
# Tests of nodes that run on their GPUs: a level that is asked for is made when the last job with GPUs has gone, each fault is
# found by its own check, limits are the site's, and a test that breaks says nothing of the node. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
lease=6s policies="suspect: 1s, retest: 1s" start_native
: >"$tmp/faults"
start_agent a1 --exec sim --sim-faults "$tmp/faults"
fault() { echo "a1 $*" >>"$tmp/faults"; }
json_of() { "$stint" "$@" -o json >"$tmp/out"; }
tests_of() { "$stint" node tests a1 -o json; }
last() { tests_of | python3 -c 'import json, sys; print(json.load(sys.stdin)["tests"][-1]["test"])'; }
later() { [ "$(last)" -gt "$before" ]; }
tested() { # LEVEL: one more test was made
    before=$(last)
    try 0 'being tested' node test --level "$1" a1
    wait_for later || fail "no $1 test was made: $(tests_of)"
    json_of node tests a1
}
node_becomes a1 ready

# What is asked for is made, kept, and ends in service.
tested short
json 'd["tests"][-1]["level"] == "short" and d["tests"][-1]["passed"] and d["tests"][-1]["with"] == "simulated"'
json '{r["check"]: r["value"] for r in d["tests"][-1]["results"] if r.get("gpu", 0) == 0 and r["verdict"] == "pass"}["pcie-in"] == 55000'
json 'not any(r["check"].startswith("product") for r in d["tests"][-1]["results"])'
json 'all(r["unit"] == "MB/s" for r in d["tests"][-1]["results"] if r["check"] in ("peer", "all-reduce"))'
node_becomes a1 ready
tested long
json 'd["tests"][-1]["level"] == "long" and sum(r["check"] == "product-speed" for r in d["tests"][-1]["results"]) == 8'
node_becomes a1 ready

# Each fault fails its own checks, on its own GPU alone; healed, a test of the same level lifts the repair by itself.
failed() { # CHECK[:GPU] ...: what the last test has found, and nothing else
    json "sorted(r['check'] + ':' + str(r.get('gpu', '')) for r in d['tests'][-1]['results'] if r['verdict'] == 'fail') == sorted('$*'.split())"
}
fault 1 test-hangs 1
fault 2 slow-memory 89
fault 3 slow-pcie 80
fault 5 bad-words 7
tested short
failed works:1 siblings:2 pcie-in:3 pcie-out:3 siblings:3 pattern:5
node_becomes a1 repair
try 0 'GPU 1: it failed while it was tested' node show a1
fault '*' heal
node_becomes a1 ready
json_of node tests a1
json 'd["tests"][-1]["level"] == "short"'
fault 0 bad-products 1
fault 4 thermal 1
fault 6 slow-peer 80
fault 7 slow-compute 85
tested long
failed product:0 throttle:4 siblings:4 peer:6 siblings:6 siblings:7 all-reduce:
node_becomes a1 repair
fault '*' heal
node_becomes a1 ready
try 0 'sums over its GPUs are slow' node history a1

# A site's limits hold with the next test; what is none is refused, and a tenant sees them and changes none.
try 0 'other limits' type limits h100 pcie-in=60000
try 0 'pcie-in  *60000  *48000' type limits h100
tested short
json "{(r['check'], r['limit']) for r in d['tests'][-1]['results'] if r['verdict'] == 'fail'} == {('pcie-in', 60000)}"
try 0 'other limits' type limits h100 pcie-in-
try 0 'pcie-in  *48000  *48000' type limits h100
try 2 'no limit' type limits h100 warp=1
try 2 '0 to 99' type limits h100 pattern-share=100
try 2 'LIMIT=NUMBER' type limits h100 pcie-in=-1
try 4 'no GPU type' type limits h999
try 4 'no GPU type' type limits h999 peer=1
try 2 'quick, short, long or burn' node test --level hard a1
node_becomes a1 ready

# A test that breaks is nobody's fault: the node is asked again, and no incident takes it out.
fault 5 test-breaks 127
tested short
json 'd["tests"][-1]["broken"] and "could not be made" in d["tests"][-1]["reason"] and d["tests"][-1]["results"] == []'
try 0 'testing' node show a1
try 0 'configuration' incidents
fault '*' heal
node_becomes a1 ready
json_of node tests a1
json 'd["tests"][-1]["level"] == "short" and d["tests"][-1]["passed"]'

# It waits for the last job with GPUs, ends none, and lets nobody in.
submit --name beside --gpus 1 --limit 1h --sim-run 50m -- true
becomes "$job" running
beside=$job
before=$(last)
try 0 'being tested' node test --level short a1
wait_for said a1 'event=test-waits'
node_becomes a1 testing
submit --name waits --gpus 1 --limit 1m --sim-run 1s -- true
[ "$(state_of "$beside")" = running ] || fail "the job is $(state_of "$beside")"
[ "$(last)" = "$before" ] || fail "it was tested beside a job"
try 0 '' cancel "$beside"
wait_for later || fail "it was not tested when the job was gone"
node_becomes a1 ready
becomes "$job" done

# The agent is killed in the middle: the level that was asked for is made by the next one.
before=$(last)
try 0 'being tested' node test --level burn a1
wait_for said a1 'event=testing .*level=burn'
crash_agent a1
start_agent a1 --exec sim --sim-faults "$tmp/faults"
wait_for later || fail "the test was lost with its agent"
json_of node tests a1
json 'd["tests"][-1]["level"] == "burn" and d["tests"][-1]["passed"]'
node_becomes a1 ready
# Of the task that measured nothing is left, and no job of anybody was it.
ran=$((ran + 1))
grep -q node-test "$tmp/stintd.log" && fail "somebody heard of the task"

# In a container, where there are any: the same walls, nobody's image, and nothing of it is left.
if "$STINT_AGENT" doctor --data "$tmp/doctor" --sim h100x1 >"$tmp/doctor.out" 2>&1; then
    start_agent c1 --exec oci --sim-faults "$tmp/faults"
    node_becomes c1 ready
    try 0 'being tested' node test --level long c1
    said c1 'event=tested .*level=long passed=true'
    node_becomes c1 ready
    gone() { [ -z "$(ls "$tmp/c1/run/tasks")" ]; }
    wait_for gone || fail "the task is still there: $(ls "$tmp/c1/run/tasks")"
    echo 'c1 2 bad-words 1' >>"$tmp/faults"
    try 0 'being tested' node test --level short c1
    node_becomes c1 repair
    try 0 'GPU 2: its memory does not keep what is written' node show c1
    echo 'c1 2 test-breaks 3' >>"$tmp/faults"
    said c1 'event=not-tested .*exit 3'
    try 0 'repair' node show c1

    # With dcgmi, where it is installed: what it finds counts, and what breaks in it is a matter of the site's.
    dcgmi() { # what it does
        printf '#!/bin/sh\n[ "$*" = "diag -r 2 -j" ] || exit 9\n%s\n' "$1" >"$tmp/dcgmi.new"
        chmod 755 "$tmp/dcgmi.new"
        mv "$tmp/dcgmi.new" "$tmp/dcgmi"
    }
    finds() { # STATUS of GPU 3
        dcgmi "echo '{\"DCGM Diagnostic\":{\"test_categories\":[{\"category\":\"Hardware\",\"tests\":[{\"name\":\"memory\",
\"results\":[{\"gpu_ids\":\"0,1\",\"status\":\"PASS\"},{\"entity_group\":\"GPU\",\"entity_id\":3,\"status\":\"$1\"}]}]}]},
\"metadata\":{\"version\":\"4.2.3\"}}'; exit 226"
    }
    finds Pass
    chmod 755 "$tmp" # who runs it is nobody who could read this folder
    start_agent d1 --exec oci --dcgmi "$tmp/dcgmi" --test-limit 3s
    node_becomes d1 ready
    try 0 'being tested' node test --level short d1
    said d1 'event=tested .*level=short passed=true'
    json_of node tests d1
    json 'd["tests"][-1]["with"] == "dcgmi 4.2.3" and sum(r["check"] == "dcgm" and r["verdict"] == "pass" for r in d["tests"][-1]["results"]) == 3'
    node_becomes d1 ready
    for breaks in 'exit 127' 'echo not json' 'sleep 60' 'head -c 3000000 /dev/zero | tr "\0" "["'; do
        dcgmi "$breaks"
        : >"$tmp/d1.log"
        try 0 'being tested' node test --level short d1
        said d1 'event=not-tested'
        try 0 'testing' node show d1
    done
    try 0 'configuration' incidents --node d1
    finds Fail
    node_becomes d1 repair
    try 0 'GPU 3: dcgmi diag found faults' node show d1
    finds Pass
    node_becomes d1 ready
fi

# Tests and limits are asked for by owners.
try 0 '' token create --account acme --user mia --role member
STINT_TOKEN=$(cat "$tmp/out")
try 8 '' node test --level short a1
try 8 '' type limits h100 peer=0
try 0 'pcie-in' type limits h100
json_of node tests a1
json 'len(d["tests"]) >= 10'
done_testing
