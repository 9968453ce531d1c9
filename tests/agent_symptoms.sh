#!/bin/sh
# What is wrong with GPUs in service and lasts: the node takes nothing new, its jobs go on, an incident says what it is, and
# all is over when it is. $1 is stint.
set -u
. "$(dirname "$0")/lib/stintd.sh"
. "$(dirname "$0")/lib/agents.sh"
lease=6s policies="incident_quiet: 1s, breaker_nodes: 50" start_native
: >"$tmp/faults"
"$STINT_AGENT" --server http://127.0.0.1:1 --symptoms warp=1 >"$tmp/out" 2>&1 && fail "a threshold that is none is taken"
grep -q 'warp.*is no threshold' "$tmp/out" || fail "it says $(cat "$tmp/out")"
start_agent a1 --exec sim --sim-faults "$tmp/faults" --symptoms lasts_ms=1500,window_ms=8000,link_changes=3,corrected=100
fault() { echo "a1 $*" >>"$tmp/faults"; }
node_becomes a1 ready
submit --name beside --gpus 1 --limit 1h --sim-run 50m -- true
becomes "$job" running
beside=$job

# A gang on three nodes: the GPUs of one are busy less, and wait for nobody. It takes half a minute to show.
for node in g1 g2 g3; do
    start_agent $node --exec sim --sim-faults "$tmp/faults"
    node_becomes $node ready
done
printf 'g1 * waits 600\ng2 * busy 500\ng3 * waits 600\n' >>"$tmp/faults"
try 0 '^j' submit --account other --tasks 3 --gpus 8 --limit 1h --sim-run 50m -- true
gang=$(cat "$tmp/out")
becomes "$gang" running

while read -r kind words fault; do
    # shellcheck disable=SC2086 # a fault and its value
    fault 2 $fault
    node_becomes a1 draining
    try 0 "GPU 2.*$(echo "$words" | tr _ ' ')" node show a1
    "$stint" incidents --node a1 -o json >"$tmp/out"
    json "[(i['fault'], i['cause'], i['nodes'][0]['gpu']) for i in d['incidents']] == [('$kind', 'hardware', 2)]"
    [ "$(state_of "$beside")" = running ] || fail "$kind: the job is $(state_of "$beside")"
    # What is driven by an error of the driver's is over with a reset, all else by itself.
    fault 2 "$(case $kind in link) echo links-down 0 ;; pcie) echo pcie-width 16 ;; heat) echo thermal 0 ;; *) echo ecc-corrected 1 ;; esac)"
    node_becomes a1 ready
    over() { "$stint" incidents --node a1 -o json >"$tmp/out" && grep -q '"incidents": *\[\]' "$tmp/out"; }
    wait_for over || fail "$kind: the incident is not over"
done <<END
pcie lanes_of_PCIe pcie-width 8
heat heat_or_a_power_brake thermal 1
link NVLinks_are_down links-down 2
wear errors_were_corrected_lately ecc-corrected 500
END

# A link that goes up and down until it is noticed.
flaps() {
    fault 5 links-down $((n = !n))
    "$stint" node show a1 | grep -q draining
}
n=0
wait_for flaps || fail "nobody sees that a link flaps"
try 0 'GPU 5.*NVLinks' node show a1
fault 5 links-down 0
node_becomes a1 ready
[ "$(state_of "$beside")" = running ] || fail "the job is $(state_of "$beside")"

late() { "$stint" stats "$gang" | grep 'the others wait for task [0-2] on g2: its GPU is busy less' >"$tmp/out"; }
wait_for late || fail "nobody names the straggler: $("$stint" stats "$gang" -o json)"
try 0 '^j' submit --account acme --gpus 1 --limit 1h --sim-run 50m -- true
"$stint" stats "$(cat "$tmp/out")" | grep 'others wait' && fail "a job of one task has a straggler"
done_testing
